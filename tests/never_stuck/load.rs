//! What the members of a plan do all the time, whatever happens, and what they write down.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;
use std::time::Duration;

use fastrand::Rng;
use futures::StreamExt;
use redelay::{BlockingQueue, Client, DelayedQueue, EntryFormat, Error, ErrorKind, codec};
use redelay_fixture::until_async_within;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::oracle::{Offered, Record};
use crate::plan::{Member, Plan, Producer, Taker};

pub(crate) const QUEUE: &str = "q";
/// Shorter than some faults, so that these are noticed.
const COMMAND_TIMEOUT: Duration = Duration::from_millis(300);

/// The handles of one client.
#[derive(Clone)]
pub(crate) struct Queues {
    pub(crate) ready: BlockingQueue<i64>,
    pub(crate) delayed: DelayedQueue<i64>,
}

/// A record in the making.
#[derive(Clone, Default)]
pub(crate) struct Ledger {
    record: Arc<Mutex<Record>>,
    next: Arc<AtomicI64>,
}

impl Ledger {
    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().expect("nobody panics meanwhile")
    }

    /// So many numbers that nobody has had, as offers that have not ended.
    fn begin(&self, count: i64) -> Vec<i64> {
        let first = self.next.fetch_add(count, Ordering::Relaxed);
        let numbers: Vec<_> = (first..first + count).collect();
        self.end(&numbers, Offered::Unknown);
        numbers
    }

    fn end(&self, numbers: &[i64], offered: Offered) {
        self.record().offered.extend(numbers.iter().map(|number| (*number, offered)));
    }

    pub(crate) fn took(&self, numbers: impl IntoIterator<Item = i64>) {
        self.record().taken.extend(numbers);
    }

    /// Offers one, and writes down what came of it.
    pub(crate) async fn offer(&self, queues: &Queues, delay: Duration) -> Option<(i64, redelay::Ticket)> {
        let number = self.begin(1)[0];
        let offered = queues.delayed.offer(&number, delay).await;
        self.end(&[number], outcome(&offered));
        Some((number, offered.ok()?))
    }
}

/// # Panics
/// Panics at an error that no fault explains.
fn outcome<T>(result: &redelay::Result<T>) -> Offered {
    match result.as_ref().map_err(Error::kind) {
        Ok(_) => Offered::Acknowledged,
        Err(ErrorKind::OutcomeUnknown) => Offered::Unknown,
        // No memory, and another type, are refusals.
        Err(ErrorKind::Unavailable | ErrorKind::Refused) => Offered::Refused,
        Err(_) => panic!("{:?}", result.as_ref().map(drop)),
    }
}

/// All clients of a plan at work.
pub(crate) struct Load {
    pub(crate) ledger: Ledger,
    pub(crate) members: Vec<(Client, Queues)>,
    stop: CancellationToken,
    producers: JoinSet<()>,
    takers: JoinSet<()>,
}

impl Load {
    pub(crate) async fn start(plan: &Plan, url: &str) -> Self {
        Self::start_at(0, plan, url).await
    }

    /// The numbers of the offers begin here.
    pub(crate) async fn start_at(first: i64, plan: &Plan, url: &str) -> Self {
        let ledger = Ledger { next: Arc::new(first.into()), ..Ledger::default() };
        let stop = CancellationToken::new();
        if plan.backlog > 0 {
            pile_up(plan, url, &ledger).await;
        }
        let (mut producers, mut takers, mut members) = (JoinSet::new(), JoinSet::new(), Vec::new());
        let mut random = Rng::with_seed(plan.seed);
        for member in &plan.clients {
            let client = connect(member, url).await;
            let ready = client.blocking_queue(QUEUE, codec::Long);
            let format = if member.is_legacy { EntryFormat::Legacy } else { EntryFormat::Current };
            let delayed = client.delayed_queue(&ready).with_entry_format(format);
            let queues = Queues { ready, delayed };
            for producer in &member.producers {
                let work = produce(*producer, queues.clone(), ledger.clone(), stop.clone(), random.fork());
                producers.spawn(work);
            }
            for taker in &member.takers {
                takers.spawn(take(*taker, queues.clone(), ledger.clone(), random.fork()));
            }
            members.push((client, queues));
        }
        Self { ledger, members, stop, producers, takers }
    }

    /// Waits until so many more payloads have been taken.
    pub(crate) async fn goes_on(&self, more: usize) {
        let goal = self.ledger.record().taken.len() + more;
        let reached = || async { self.ledger.record().taken.len() >= goal };
        until_async_within(Duration::from_secs(30), "the load goes on", reached).await;
    }

    /// Ends the offers, and waits until each has said what came of it.
    pub(crate) async fn stop_offering(&mut self) {
        self.stop.cancel();
        while let Some(ended) = self.producers.join_next().await {
            ended.expect("a producer goes on whatever happens");
        }
    }

    /// Shuts all clients down: what is on its way arrives, or is put back.
    pub(crate) async fn shut_down(&mut self) {
        for (client, _) in &self.members {
            client.shutdown().await;
        }
        while let Some(ended) = self.takers.join_next().await {
            ended.expect("a taker goes on whatever happens");
        }
    }
}

/// What comes due together while the load runs: more than a transfer moves in one call.
async fn pile_up(plan: &Plan, url: &str, ledger: &Ledger) {
    let client = connect(&plan.clients[0], url).await;
    let ready = client.blocking_queue(QUEUE, codec::Long);
    let numbers = ledger.begin(plan.backlog);
    let mut random = Rng::with_seed(plan.seed);
    let delays = numbers.iter().map(|number| (number, Duration::from_millis(random.u64(200..260))));
    let offered = client.delayed_queue(&ready).offer_all(delays).await;
    ledger.end(&numbers, outcome(&offered));
    client.shutdown().await;
}

async fn connect(member: &Member, url: &str) -> Client {
    let builder = Client::builder().url(url).client_name("member").command_timeout(COMMAND_TIMEOUT);
    let builder = builder.transfer(member.moves).transfer_batch(member.batch).transfer_budget(member.budget);
    builder.connect().await.expect("no fault has begun")
}

async fn produce(
    producer: Producer,
    queues: Queues,
    ledger: Ledger,
    stop: CancellationToken,
    mut random: Rng,
) {
    let ms = Duration::from_millis;
    while !stop.is_cancelled() {
        let delay = ms(random.u64(0..60));
        let mut count = 1;
        match producer {
            Producer::Offers => drop(ledger.offer(&queues, delay).await),
            Producer::OffersMany => {
                let numbers = ledger.begin(random.i64(1..20));
                count = numbers.len() as u32;
                let delays = numbers.iter().map(|number| (number, delay + ms(*number as u64 % 7)));
                let offered = queues.delayed.offer_all(delays).await;
                ledger.end(&numbers, outcome(&offered));
            }
            Producer::Cancels => {
                let Some((number, ticket)) = ledger.offer(&queues, delay).await else { continue };
                // Not to be awaited while the record is held.
                let cancelled = queues.delayed.cancel(&ticket).await;
                match outcome(&cancelled) {
                    Offered::Acknowledged if matches!(cancelled, Ok(true)) => {
                        ledger.record().cancelled.insert(number);
                    }
                    Offered::Unknown => {
                        ledger.record().perhaps_cancelled.insert(number);
                    }
                    _ => {}
                }
            }
            Producer::Drops => {
                let _ = timeout(random_pause(&mut random), ledger.offer(&queues, delay)).await;
            }
        }
        // So that there is not more than what takers can take.
        sleep(ms(random.u64(1..6)) * count).await;
    }
}

fn random_pause(random: &mut Rng) -> Duration {
    Duration::from_micros(random.u64(0..4_000))
}

/// Takes until the client is shut down.
async fn take(taker: Taker, queues: Queues, ledger: Ledger, mut random: Rng) {
    let Queues { ready, delayed } = queues;
    let mut stream = ready.clone().into_stream();
    loop {
        let pause = random_pause(&mut random);
        let taken = match taker {
            Taker::Takes => ready.take().await.map(|number| vec![number]),
            Taker::Polls => with_pause(pause, ready.poll()).await.map(Vec::from_iter),
            Taker::PollsWithTimeout => ready.poll_timeout(pause).await.map(Vec::from_iter),
            Taker::Drains => {
                let drained = with_pause(pause, ready.poll_many(random.usize(1..30))).await;
                drained.map(numbers)
            }
            Taker::Streams => match stream.next().await {
                Some(number) => number.map(|number| vec![number]),
                None => return,
            },
            Taker::Drops => {
                let call = async {
                    match pause.as_micros() % 4 {
                        0 => ready.poll_many(3).await.map(numbers),
                        1 => delayed.poll().await.map(Vec::from_iter),
                        _ => ready.take().await.map(|number| vec![number]),
                    }
                };
                match drop_after(random.usize(1..5), call).await {
                    Some(taken) => taken,
                    None => continue,
                }
            }
            Taker::PollsPending => with_pause(pause, delayed.poll()).await.map(Vec::from_iter),
        };
        match taken {
            Ok(numbers) => ledger.took(numbers),
            Err(error) if error.is_closed() => return,
            Err(error) => {
                outcome(&Err::<(), _>(error));
                sleep(Duration::from_millis(2)).await;
            }
        }
    }
}

fn numbers(drained: Vec<redelay::Result<i64>>) -> Vec<i64> {
    drained.into_iter().map(|number| number.expect("a number")).collect()
}

/// Drops a future when it is woken after so many polls: something is on its way to it, most likely.
async fn drop_after<F: Future>(mut polls: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|context| {
        if polls == 0 {
            return Poll::Ready(None);
        }
        polls -= 1;
        future.as_mut().poll(context).map(Some)
    })
    .await
}

/// What does not wait by itself is not called without a rest.
async fn with_pause<T>(pause: Duration, call: impl Future<Output = T>) -> T {
    sleep(pause).await;
    call.await
}
