//! A load: clients that offer and take continuously, whatever happens, and record the results.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use fastrand::Rng;
use futures::StreamExt;
use redelay::client::ClientBuilder;
use redelay::delayed_queue::EntryFormat;
use redelay::{BlockingQueue, Client};
use redelay_fixture::{Server, until_async, until_async_within};
use redelay_support::{MINUTE, ORDERED_LIST, TARGET, TIMEOUT_SET, builder};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::consumers::{Consumer, How, consume, take_elsewhere};
use crate::ledger::{Ledger, Offered, outcome};

type Queues = redelay_support::Queues<i64>;

/// Shorter than some faults, so that clients notice these.
pub(crate) const COMMAND_TIMEOUT: Duration = Duration::from_millis(300);

/// The clients of a load.
#[derive(Clone, Debug)]
pub(crate) struct Crew {
    /// The seed of their random choices.
    pub(crate) seed: u64,
    /// The number of entries that become due at about the same time, in another order than they were offered.
    pub(crate) backlog: usize,
    /// The delays of entries that become due long after the run, unless the server's clock is set.
    pub(crate) distant: Vec<Duration>,
    pub(crate) clients: Vec<Member>,
    /// The number of takers that use another library.
    pub(crate) others: usize,
}

impl Crew {
    /// Two clients that do everything.
    pub(crate) fn of_two() -> Self {
        use {Producer as P, Taker as T};
        let member = |batch, producers: &[Producer], takers: &[Taker]| Member {
            batch,
            ..Member::new("member", producers, takers)
        };
        let first = member(2, &[P::Offers, P::Cancels], &[T::Takes, T::Drops, T::Polls]);
        let second = member(1000, &[P::OffersMany, P::Drops], &[T::Streams, T::PollsWithTimeout]);
        Self { seed: 0, backlog: 0, distant: Vec::new(), clients: vec![first, second], others: 0 }
    }

    /// Has each client do one thing.
    pub(crate) fn divide(&mut self) {
        self.clients = self.clients.drain(..).flat_map(Member::divided).collect();
    }
}

/// One client, and the work that it does.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// The name of its connections.
    pub(crate) name: &'static str,
    pub(crate) command_timeout: Duration,
    /// The maximum number of entries per transfer.
    pub(crate) batch: u32,
    /// The maximum time per transfer.
    pub(crate) budget: Duration,
    /// Whether it transfers.
    pub(crate) moves: bool,
    /// How often it looks for what nobody announced.
    pub(crate) sweep_interval: Duration,
    /// Whether it writes the older entry format.
    pub(crate) is_legacy: bool,
    /// Whether a replica has to confirm its writes.
    pub(crate) is_replicated: bool,
    pub(crate) producers: Vec<Producer>,
    pub(crate) takers: Vec<Taker>,
    pub(crate) consumers: Vec<Consumer>,
}

impl Member {
    /// The same work, done by clients that do one thing each: offer, take, receive, or transfer.
    pub(crate) fn divided(self) -> Vec<Self> {
        let alone =
            Self { producers: Vec::new(), takers: Vec::new(), consumers: Vec::new(), moves: false, ..self };
        let mut all = Vec::new();
        all.extend(
            self.producers.into_iter().map(|producer| Self { producers: vec![producer], ..alone.clone() }),
        );
        all.extend(self.takers.into_iter().map(|taker| Self { takers: vec![taker], ..alone.clone() }));
        all.extend(
            self.consumers.into_iter().map(|consumer| Self { consumers: vec![consumer], ..alone.clone() }),
        );
        if self.moves {
            all.push(Self { moves: true, ..alone });
        }
        all
    }

    /// How many messages it takes or receives at a time.
    pub(crate) fn at_a_time(&self) -> usize {
        let receives = |consumer: &Consumer| match consumer.how {
            How::Works(handlers) => handlers,
            _ => 1,
        };
        self.takers.len() + self.consumers.iter().map(receives).sum::<usize>()
    }
}

/// The ways in which payloads are offered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Producer {
    Offers,
    /// Offers without a pause.
    Presses,
    /// Offers several in one call.
    OffersMany,
    /// Offers, and cancels some of them.
    Cancels,
    /// Drops some of the futures.
    Drops,
}

impl Producer {
    fn deed(self) -> &'static str {
        match self {
            Self::Offers | Self::Presses => "payloads offered",
            Self::OffersMany => "calls that offered several payloads",
            Self::Cancels => "payloads offered that are cancelled then",
            Self::Drops => "payloads offered by calls that may be dropped",
        }
    }
}

/// The ways in which payloads are taken.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Taker {
    Takes,
    Polls,
    PollsWithTimeout,
    Drains,
    Streams,
    /// Drops some of the futures.
    Drops,
    /// Takes entries that are not due yet.
    PollsPending,
}

impl Taker {
    fn deed(self) -> &'static str {
        match self {
            Self::Takes => "payloads taken",
            Self::Polls => "payloads polled",
            Self::PollsWithTimeout => "payloads polled with a timeout",
            Self::Drains => "payloads drained",
            Self::Streams => "payloads streamed",
            Self::Drops => "payloads taken by calls that may be dropped",
            Self::PollsPending => "payloads polled before they were due",
        }
    }
}

impl Member {
    pub(crate) fn new(name: &'static str, producers: &[Producer], takers: &[Taker]) -> Self {
        Self {
            name,
            command_timeout: COMMAND_TIMEOUT,
            batch: 1000,
            budget: Duration::from_millis(10),
            moves: true,
            sweep_interval: MINUTE,
            is_legacy: false,
            is_replicated: false,
            producers: producers.to_vec(),
            takers: takers.to_vec(),
            consumers: Vec::new(),
        }
    }
}

/// All clients of a crew at work.
pub(crate) struct Load {
    pub(crate) ledger: Ledger,
    pub(crate) members: Vec<Queues>,
    taking: usize,
    /// Clients that transfer, and do nothing else.
    transferring: Vec<Client>,
    stop: CancellationToken,
    /// Ends the takers that use another library.
    end: CancellationToken,
    producers: JoinSet<()>,
    takers: JoinSet<()>,
}

impl Load {
    pub(crate) async fn start(crew: &Crew, url: &str) -> Self {
        Self::start_at(0, crew, url).await
    }

    /// The numbers of the offers begin here.
    pub(crate) async fn start_at(first: i64, crew: &Crew, url: &str) -> Self {
        let ledger = Ledger::starting_at(first);
        let stop = CancellationToken::new();
        if crew.backlog > 0 || !crew.distant.is_empty() {
            pile_up(crew, url, &ledger).await;
        }
        let (mut producers, mut takers) = (JoinSet::new(), JoinSet::new());
        let (mut members, mut transferring) = (Vec::new(), Vec::new());
        let mut random = Rng::with_seed(crew.seed);
        for member in &crew.clients {
            let mut queues = connect(member, url).await;
            let format = if member.is_legacy { EntryFormat::Legacy } else { EntryFormat::Current };
            queues.delayed = queues.delayed.with_entry_format(format);
            for producer in &member.producers {
                let work = produce(*producer, queues.clone(), ledger.clone(), stop.clone(), random.fork());
                producers.spawn(work);
            }
            for taker in &member.takers {
                takers.spawn(take(*taker, queues.clone(), ledger.clone(), random.fork()));
            }
            for consumer in &member.consumers {
                takers.spawn(consume(*consumer, queues.clone(), ledger.clone(), random.fork()));
            }
            if member.producers.is_empty() && member.takers.is_empty() && member.consumers.is_empty() {
                transferring.push(queues.client.clone());
            }
            members.push(queues);
        }
        let end = CancellationToken::new();
        for _ in 0..crew.others {
            takers.spawn(take_elsewhere(url.to_owned(), ledger.clone(), end.clone()));
        }
        let taking = crew.clients.iter().filter(|member| !member.takers.is_empty()).count();
        Self { ledger, members, taking, transferring, stop, end, producers, takers }
    }

    /// Waits until `more` payloads have been taken. Returns how long that took.
    pub(crate) async fn goes_on(&self, more: usize) -> Duration {
        let begun = Instant::now();
        let goal = self.ledger.record().taken.len() + more;
        let reached = || async { self.ledger.record().taken.len() >= goal };
        until_async("the load goes on", reached).await;
        begun.elapsed()
    }

    /// How many clients take.
    pub(crate) fn takers(&self) -> usize {
        self.taking
    }

    /// How many entries were moved by clients that do nothing else.
    pub(crate) fn transferred(&self) -> usize {
        self.transferring.iter().map(|client| client.stats().transferred as usize).sum()
    }

    /// Ends the offers, and waits until each has a result.
    pub(crate) async fn stop_offering(&mut self) {
        self.stop.cancel();
        while let Some(ended) = self.producers.join_next().await {
            ended.expect("a producer goes on whatever happens");
        }
    }

    /// Shuts all clients down. Payloads in flight arrive or are returned.
    pub(crate) async fn shut_down(&mut self) {
        self.end.cancel();
        for queues in &self.members {
            queues.client.shutdown().await;
        }
        while let Some(ended) = self.takers.join_next().await {
            ended.expect("a taker goes on whatever happens");
        }
    }
}

/// Waits until nothing is pending and nothing is ready.
pub(crate) async fn until_empty(server: &Server) {
    let is_empty = || async { server.get::<usize, _>(["EXISTS", TARGET, TIMEOUT_SET, ORDERED_LIST]) == 0 };
    until_async_within(10 * MINUTE, "everything is moved and taken", is_empty).await;
}

/// Offers entries that become due together while the load runs, more than one transfer call moves. On a busy
/// machine that takes longer than their delays; nothing is moved meanwhile.
async fn pile_up(crew: &Crew, url: &str, ledger: &Ledger) {
    let queues = Queues::of_numbers(builder_of(&crew.clients[0], url).transfer(false)).await;
    let mut random = Rng::with_seed(crew.seed);
    let mut delays = crew.distant.clone();
    delays.extend((0..crew.backlog).map(|_| Duration::from_millis(random.u64(200..260))));
    ledger.offer_all(&queues, &delays).await;
    queues.client.shutdown().await;
}

async fn connect(member: &Member, url: &str) -> Queues {
    Queues::of_numbers(builder_of(member, url)).await
}

fn builder_of(member: &Member, url: &str) -> ClientBuilder {
    let builder = builder(&url).client_name(member.name).command_timeout(member.command_timeout);
    let builder = builder.transfer(member.moves).transfer_batch(member.batch).transfer_budget(member.budget);
    let mut builder = builder.sweep_interval(member.sweep_interval);
    if member.is_replicated {
        builder = builder.replicas(1, COMMAND_TIMEOUT);
    }
    builder
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
        let (mut count, mut is_done) = (1, false);
        match producer {
            Producer::Offers => is_done = ledger.offer(&queues, delay).await.is_some(),
            Producer::Presses => {
                drop(ledger.offer(&queues, delay).await);
                continue;
            }
            Producer::OffersMany => {
                count = random.u32(1..20);
                let delays: Vec<_> = (0..count).map(|_| delay + ms(random.u64(0..7))).collect();
                is_done = ledger.offer_all(&queues, &delays).await.is_some();
            }
            Producer::Cancels => {
                let Some((number, ticket)) = ledger.offer(&queues, delay).await else { continue };
                // Must not be awaited while the record is locked.
                let cancelled = queues.delayed.cancel(&ticket).await;
                match outcome(&cancelled) {
                    Offered::Acknowledged if matches!(cancelled, Ok(true)) => {
                        is_done = true;
                        ledger.record().cancelled.insert(number);
                    }
                    Offered::Unknown => {
                        ledger.record().perhaps_cancelled.insert(number);
                    }
                    _ => {}
                }
            }
            Producer::Drops => {
                let offered = timeout(random_pause(&mut random), ledger.offer(&queues, delay)).await;
                is_done = matches!(offered, Ok(Some(_)));
            }
        }
        if is_done {
            ledger.record().deliveries.did(producer.deed());
        }
        // Takers must be able to keep up.
        sleep(ms(random.u64(1..6)) * count).await;
    }
}

pub(crate) fn random_pause(random: &mut Rng) -> Duration {
    Duration::from_micros(random.u64(0..4_000))
}

/// Takes until the client is shut down.
async fn take(taker: Taker, queues: Queues, ledger: Ledger, mut random: Rng) {
    let Queues { ready, delayed, .. } = queues;
    let mut stream = ready.clone().into_stream();
    loop {
        let pause = random_pause(&mut random);
        let mut were_pending = matches!(taker, Taker::PollsPending);
        let taken = match taker {
            Taker::Takes => ready.take().await.map(|number| vec![number]),
            Taker::Polls => with_pause(pause, ready.poll()).await.map(Vec::from_iter),
            Taker::PollsWithTimeout if pause.as_micros().is_multiple_of(2) => {
                // Two of one client share their pops.
                let (polled, other) = tokio::join!(poll_any(&ready, pause), poll_any(&ready, pause));
                match other {
                    Ok(numbers) => {
                        if !numbers.is_empty() {
                            ledger.record().deliveries.did("payloads polled from several lists");
                        }
                        ledger.took(numbers);
                    }
                    Err(error) if error.is_closed() => {}
                    Err(error) => {
                        ledger.record().failed_takes += 1;
                        outcome(&Err::<(), _>(error));
                    }
                }
                polled
            }
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
                let which = pause.as_micros() % 4;
                were_pending = which == 1;
                let call = async {
                    match which {
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
        if taken.as_ref().is_ok_and(|numbers| !numbers.is_empty()) {
            ledger.record().deliveries.did(taker.deed());
        }
        match taken {
            Ok(numbers) if were_pending => ledger.took_pending(numbers),
            Ok(numbers) => ledger.took(numbers),
            Err(error) if error.is_closed() => return,
            Err(error) => {
                ledger.record().failed_takes += 1;
                outcome(&Err::<(), _>(error));
                sleep(Duration::from_millis(2)).await;
            }
        }
    }
}

/// The other list is in the same slot, and always empty.
async fn poll_any(ready: &BlockingQueue<i64>, timeout: Duration) -> redelay::Result<Vec<i64>> {
    let polled = ready.poll_from_any(timeout, &["{q}other"]).await?;
    Ok(polled.map(|(_, number)| number).into_iter().collect())
}

fn numbers(drained: Vec<redelay::Result<i64>>) -> Vec<i64> {
    drained.into_iter().map(|number| number.expect("a number")).collect()
}

/// Drops a future when it is woken after this number of polls, which most likely means that a payload is on
/// its way to it.
pub(crate) async fn drop_after<F: Future>(mut polls: usize, future: F) -> Option<F::Output> {
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

/// Pauses between calls that do not wait by themselves.
async fn with_pause<T>(pause: Duration, call: impl Future<Output = T>) -> T {
    sleep(pause).await;
    call.await
}
