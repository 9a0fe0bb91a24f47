//! A load that goes on through a failover. Nothing waits for ever, no pending take or receive fails, and what
//! is lost or comes twice is what the failover has undone.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use redelay::blocking_queue::KeyNames;
use redelay::{BlockingQueue, Client, Worker, codec};
use redelay_fixture::{Server, redis, until_async};
use redelay_support::{MINUTE, builder, ms, soon};
use tokio::task::{JoinHandle, JoinSet, block_in_place};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The queues, in the slot of `q`.
const TAKEN: &str = "{q}taken";
const RECEIVED: &str = "{q}received";
/// How long it takes until replicas have a write, on a busy machine. What is older is not undone.
const REPLICATED: Duration = ms(500);
/// Until a payload that was stored is in the hands of a consumer. What a blocked pop takes when its
/// connection ends may be lost, so what is stored shortly before is in doubt.
const DELIVERED: Duration = ms(500);
/// How long after the promotion is known the client may still write to the old master, if the machine is not
/// busy.
const FOLLOWED: Duration = ms(1000);
/// What a failover has undone, or a receiver has lost, is delivered again after this.
const LEASE: Duration = ms(2000);
/// What a taker has not got after this was lost.
const LOST: Duration = Duration::from_secs(20);
/// How long the load goes on before the failure, and after the time in doubt.
const BESIDE: Duration = ms(500);
/// How much is stored then, at least.
const ENOUGH: usize = 5;

/// One client with takers, receivers and a worker. It offers, and another program pushes, and offers as
/// Redisson does.
pub(crate) struct FailoverLoad {
    client: Client,
    queues: [BlockingQueue<i64>; 2],
    log: Log,
    begun: Instant,
    /// Ends what offers and pushes, even if the test fails.
    stop: DropGuard,
    offering: JoinHandle<()>,
    pushing: thread::JoinHandle<()>,
    consuming: JoinSet<()>,
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Events>>);

/// What has happened to payloads, which are numbers.
#[derive(Default)]
struct Events {
    next: i64,
    stored: Vec<Event>,
    refused: usize,
    delivered: HashMap<i64, Vec<Instant>>,
    /// On a busy machine, with a connection that was lost although no master has failed.
    lost_for_a_reason: HashSet<i64>,
    settled: Vec<Event>,
}

/// A call that has succeeded.
struct Event {
    number: i64,
    begun: Instant,
    ended: Instant,
}

impl Event {
    fn new(number: i64, begun: Instant) -> Self {
        Self { number, begun, ended: Instant::now() }
    }

    /// Whether it was certainly over when a master failed, and so much time has passed since then.
    fn is_before(&self, failed: Instant, since: Duration) -> bool {
        self.ended + since < failed - REPLICATED
    }

    fn is_after(&self, followed: Instant) -> bool {
        self.begun > followed
    }
}

impl Log {
    fn events(&self) -> MutexGuard<'_, Events> {
        self.0.lock().expect("nobody panics meanwhile")
    }

    fn next(&self) -> i64 {
        let mut events = self.events();
        events.next += 1;
        events.next
    }

    fn stored<E>(&self, number: i64, begun: Instant, stored: Result<(), E>) {
        let mut events = self.events();
        match stored {
            Ok(()) => events.stored.push(Event::new(number, begun)),
            Err(_) => events.refused += 1,
        }
    }

    fn delivered(&self, number: i64) {
        self.events().delivered.entry(number).or_default().push(Instant::now());
    }

    fn settled(&self, event: Event) {
        self.events().settled.push(event);
    }

    /// Waits until all that is `certain` is delivered, however long the machine stands still. `reconnects` is
    /// how many connections the client had lost before: each one since then may have cost what its pop took.
    async fn until_delivered(&self, client: &Client, reconnects: u64, certain: impl Fn(&Event) -> bool) {
        let begun = Instant::now();
        until_async("what was stored is delivered", || async {
            let mut events = self.events();
            let stored = events.stored.iter().filter(|event| certain(event)).map(|event| event.number);
            let missing: HashSet<_> =
                stored.filter(|number| !events.delivered.contains_key(number)).collect();
            let lost_connections = client.stats().reconnects - reconnects;
            if begun.elapsed() > LOST && missing.len() as u64 <= lost_connections {
                events.lost_for_a_reason.extend(missing);
                return true;
            }
            missing.is_empty()
        })
        .await;
    }
}

impl FailoverLoad {
    /// `master` returns the port of the server that has `q` now.
    pub(crate) async fn start(url: &str, master: impl Fn() -> u16 + Send + 'static) -> Self {
        let client = builder(&url).connect().await.unwrap();
        let queues = [TAKEN, RECEIVED].map(|name| client.blocking_queue(name, codec::Long));
        let (log, stop, mut consuming) = (Log::default(), CancellationToken::new(), JoinSet::new());
        for _ in 0..3 {
            consuming.spawn(take(queues[0].clone(), log.clone()));
            consuming.spawn(receive(queues[1].clone(), log.clone()));
        }
        consuming.spawn(work(queues[1].clone(), log.clone()));
        let offering = tokio::spawn(offer(client.clone(), queues.clone(), log.clone(), stop.clone()));
        let pushing = thread::spawn({
            let (keys, log, stop) = (queues.clone().map(|queue| queue.keys()), log.clone(), stop.clone());
            move || {
                while !stop.is_cancelled() {
                    keys.iter().for_each(|keys| push(&master, keys, &log));
                    thread::sleep(ms(10));
                }
            }
        });
        let stop = stop.drop_guard();
        Self { client, queues, log, begun: Instant::now(), stop, offering, pushing, consuming }
    }

    /// Waits until there is something that a failure from now on must not undo. Returns when that was.
    pub(crate) async fn under_way(&self) -> Instant {
        tokio::time::sleep_until((self.begun + DELIVERED + REPLICATED + BESIDE).into()).await;
        until_async("a busy machine has stored enough", || async {
            let failed = Instant::now();
            self.log.events().count(|event| event.is_before(failed, DELIVERED)) > ENOUGH
        })
        .await;
        let failed = Instant::now();
        self.log.until_delivered(&self.client, 0, |event| event.is_before(failed, DELIVERED)).await;
        failed
    }

    /// Ends the load, and checks what it has done. The master `failed`, and everybody knew the new one when
    /// it was `promoted`.
    pub(crate) async fn judge(mut self, failed: Instant, promoted: Instant, new: &Server) {
        tokio::time::sleep_until((promoted + FOLLOWED).into()).await;
        // On a busy machine, the client may follow later.
        let address = format!(":{}", new.port());
        until_async("the client has followed", || async {
            self.client.stats().masters.iter().any(|master| master.ends_with(&address))
        })
        .await;
        let (followed, reconnects) = (Instant::now(), self.client.stats().reconnects);
        assert!(followed - promoted < MINUTE, "{:?} after the promotion", followed - promoted);
        tokio::time::sleep_until((followed + BESIDE).into()).await;
        until_async("a busy machine has stored enough", || async {
            self.log.events().count(|event| event.is_after(followed)) > ENOUGH
        })
        .await;
        drop(self.stop);
        soon(self.offering).await.unwrap();
        block_in_place(|| self.pushing.join()).expect("a program goes on whatever happens");
        until_async("all that the new master has is delivered", || async {
            // What a receiver pops between the first and the second look is claimed at the third.
            have_none_left(&self.queues).await && !has_inbox(new) && have_none_left(&self.queues).await
        })
        .await;
        // In a shutdown, what is on its way to a taker has only so much time. After this timeout, what is
        // missing says more than the timeout.
        let delivered = self.log.until_delivered(&self.client, reconnects, |event| event.is_after(followed));
        let _ = timeout(2 * MINUTE, delivered).await;
        self.client.shutdown().await;
        while let Some(ended) = soon(self.consuming.join_next()).await {
            ended.expect("no take and no receive fails");
        }
        // What was on its way to a taker when the client ended is back.
        for payload in new.list(TAKEN) {
            self.log.delivered(String::from_utf8_lossy(&payload).parse().expect("a number"));
        }
        self.log.events().judge(failed, followed);
    }
}

/// Whether no payload is pending, listed or claimed.
async fn have_none_left(queues: &[BlockingQueue<i64>]) -> bool {
    for queue in queues {
        let Ok(stats) = queue.stats().await else { return false };
        let left = stats.pending + stats.list_len + stats.ready;
        if left + stats.receiving.in_flight + stats.receiving.waiting > 0 {
            return false;
        }
    }
    true
}

/// Whether a receiver has popped what is not claimed yet.
fn has_inbox(server: &Server) -> bool {
    server.keys().iter().any(|key| key.starts_with(b"redelay:inbox:"))
}

impl Events {
    fn judge(&self, failed: Instant, followed: Instant) {
        // What certainly happened before the failover or after it.
        let before = |event: &Event, then: Duration| event.is_before(failed, then);
        let after = |event: &Event| event.is_after(followed);
        let is_lost = |event: &&Event| !self.delivered.contains_key(&event.number);
        let lost: Vec<_> = self.stored.iter().filter(is_lost).collect();
        let lost_for_no_reason: Vec<_> = lost
            .iter()
            .filter(|event| before(event, DELIVERED) || after(event))
            .map(|event| event.number)
            .filter(|number| !self.lost_for_a_reason.contains(number))
            .collect();
        let again = |number: &i64, than: Instant| self.delivered[number].iter().any(|at| *at > than);
        let settled: HashSet<_> = self.settled.iter().map(|event| event.number).collect();
        let mut doubled: Vec<_> =
            self.settled.iter().filter(|event| again(&event.number, event.ended)).collect();
        // A take is settled when it returns.
        let taken: Vec<_> = self
            .delivered
            .iter()
            .filter(|(number, times)| times.len() > 1 && !settled.contains(number))
            .map(|(number, times)| Event { number: *number, begun: times[0], ended: times[0] })
            .collect();
        doubled.extend(&taken);
        let doubled_for_no_reason: Vec<_> = doubled
            .iter()
            .filter(|event| before(event, Duration::ZERO) || after(event))
            .map(|event| event.number)
            .collect();
        println!(
            "{} offers and pushes were acknowledged, {} were not; {} lost, {} settled twice",
            self.stored.len(),
            self.refused,
            lost.len(),
            doubled.len(),
        );
        assert!(lost_for_no_reason.is_empty(), "lost: {lost_for_no_reason:?}");
        assert!(doubled_for_no_reason.is_empty(), "delivered again: {doubled_for_no_reason:?}");
        let (before, after) = (self.count(|event| before(event, DELIVERED)), self.count(after));
        assert!(before > ENOUGH && after > ENOUGH, "there was no load: {before} before, {after} after");
    }

    /// How many of what was stored.
    fn count(&self, is: impl Fn(&Event) -> bool) -> usize {
        self.stored.iter().filter(|event| is(event)).count()
    }
}

/// Offers to both queues until the end.
async fn offer(client: Client, queues: [BlockingQueue<i64>; 2], log: Log, stop: CancellationToken) {
    let queues = queues.map(|queue| client.delayed_queue(&queue));
    while !stop.is_cancelled() {
        for queue in &queues {
            let (number, begun) = (log.next(), Instant::now());
            let offered = queue.offer(&number, ms(number as u64 % 40)).await;
            log.stored(number, begun, offered.map(drop));
        }
        tokio::time::sleep(ms(5)).await;
    }
}

/// Pushes to the list as another program does, and offers as Redisson does. Asks for the master each time.
fn push(master: impl Fn() -> u16, keys: &KeyNames, log: &Log) {
    let begun = Instant::now();
    let Ok(mut server) = connection(master()) else { return };
    let number = log.next();
    let pushed = redis::cmd("RPUSH").arg(&keys.target).arg(number).exec(&mut server);
    log.stored(number, begun, pushed);
    let (number, begun) = (log.next(), Instant::now());
    let offered = offer_elsewhere(&mut server, keys, number, ms(number as u64 % 40));
    log.stored(number, begun, offered);
}

/// Offers as Redisson does.
pub(crate) fn offer_elsewhere(
    server: &mut redis::Connection,
    keys: &KeyNames,
    number: i64,
    delay: Duration,
) -> redis::RedisResult<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let due = (now + delay).as_millis() as u64;
    let (entry, mut offer) = (entry(number), redis::pipe());
    offer.atomic();
    offer.cmd("ZADD").arg(&keys.timeout_set).arg(due).arg(&entry).ignore();
    offer.cmd("RPUSH").arg(&keys.ordered_list).arg(&entry).ignore();
    offer.cmd("PUBLISH").arg(&keys.channel).arg(due).ignore();
    offer.exec(server)
}

fn connection(port: u16) -> redis::RedisResult<redis::Connection> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}"))?;
    let connection = client.get_connection_with_timeout(ms(300))?;
    connection.set_read_timeout(Some(ms(1_000)))?;
    Ok(connection)
}

/// An entry as Redisson packs it: `Bc0Lc0`.
fn entry(number: i64) -> Vec<u8> {
    let (id, payload) = (format!("{number:016}"), number.to_string());
    let mut entry = vec![id.len() as u8];
    entry.extend(id.bytes());
    entry.extend((payload.len() as u64).to_le_bytes());
    entry.extend(payload.bytes());
    entry
}

async fn take(queue: BlockingQueue<i64>, log: Log) {
    loop {
        match queue.take().await {
            Ok(number) => log.delivered(number),
            Err(error) if error.is_closed() => return,
            Err(error) => panic!("a take failed: {error}"),
        }
    }
}

async fn receive(queue: BlockingQueue<i64>, log: Log) {
    let receiver = queue.receiver().lease(LEASE);
    loop {
        match receiver.receive().await {
            Ok(delivery) => {
                let (number, begun) = (*delivery.value(), Instant::now());
                log.delivered(number);
                if delivery.ack().await.is_ok() {
                    log.settled(Event::new(number, begun));
                }
            }
            Err(error) if error.is_closed() => return,
            Err(error) => panic!("a receive failed: {error}"),
        }
    }
}

async fn work(queue: BlockingQueue<i64>, log: Log) {
    let worker = Worker::new(&queue).concurrency(2).lease(LEASE);
    let handler = move |number: i64| {
        log.delivered(number);
        async {}
    };
    // It ends with the client.
    worker.run_until(std::future::pending::<()>(), handler).await.expect("settings in their range");
}
