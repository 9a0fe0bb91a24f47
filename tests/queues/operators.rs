//! The handles of operators have one shape: a reading in pages returns what stays once, whatever comes and
//! goes meanwhile; and rows are written by serde.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use redelay::admin::{DeadLetter, Quarantined, UnconfirmedPop, UnsettledMessage};
use redelay::blocking_queue::RateLimit;
use redelay::delayed_queue::{Missed, Offered};
use redelay::receiver::MessageId;
use redelay::{BlockingQueue, DelayedQueue};
use redelay_fixture::{Server, until_async};
use redelay_support::{
    CLAIMS, DEAD, DEAD_MESSAGES, HOUR, LEASES, MESSAGES, QUARANTINE, RETRIES, SCHEDULE_RECORDS, SCHEDULES,
    ms, soon, still_text_queues,
};
use serde_json::json;

/// Rows in the order of the reading. Some are there from the beginning.
const ROWS: u32 = 300;
/// Of them, each third is added later, among the others.
fn is_later(n: u32) -> bool {
    n % 3 == 1
}

/// One kind of rows, which have the payloads `0000` and so on, in the order of the reading.
trait Rows {
    /// Reads a page, behind the last one.
    async fn read(&mut self, max: usize) -> Vec<u32>;
    async fn add(&self, n: u32);
    /// Lets a row leave: it is removed, or requeued.
    async fn take(&self, n: u32, requeues: bool);
    /// Whether a row that is added later comes behind all others.
    const AT_THE_END: bool = false;
}

/// Reads all, and lets rows come and go after each page.
async fn read_all<R: Rows>(mut rows: R, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut there: Vec<u32> = (0..ROWS).filter(|n| !is_later(*n)).collect();
    let mut later: Vec<u32> = (0..ROWS).filter(|n| is_later(*n)).collect();
    for n in &there {
        rows.add(*n).await;
    }
    if !R::AT_THE_END {
        random.shuffle(&mut later);
    }
    let (initial, mut seen) = (there.clone(), Vec::new());
    let mut left = Vec::new();
    loop {
        let page = rows.read(random.usize(1..20)).await;
        if page.is_empty() {
            break;
        }
        // An operator handles what he has read: all of the page, or some of it, or the last one.
        let handled = match random.u8(..4) {
            0 => page.clone(),
            1 => page.last().copied().into_iter().collect(),
            _ => page.iter().copied().filter(|_| random.bool()).collect(),
        };
        // And others are at work.
        let others: Vec<_> = (0..random.usize(..4)).filter_map(|_| random.choice(&there).copied()).collect();
        for n in handled.into_iter().chain(others) {
            if let Some(at) = there.iter().position(|other| *other == n) {
                there.swap_remove(at);
                left.push(n);
                rows.take(n, random.bool()).await;
            }
        }
        for n in later.split_off(later.len().saturating_sub(random.usize(..4))) {
            rows.add(n).await;
            there.push(n);
        }
        seen.extend(page);
    }
    let mut times = BTreeMap::new();
    seen.iter().for_each(|n| *times.entry(*n).or_insert(0) += 1);
    assert!(times.values().all(|times| *times == 1), "seed {seed}: twice: {times:?}");
    for n in initial.iter().filter(|n| there.contains(n)) {
        assert!(times.contains_key(n), "seed {seed}: {n} has stayed, and was not read");
    }
    assert!(seen.len() > 100 && left.len() > 50, "seed {seed}: {} {}", seen.len(), left.len());
    if !R::AT_THE_END {
        assert!(seen.is_sorted(), "seed {seed}: {seen:?}");
    }
}

const SEEDS: u64 = 12;

fn number(payload: &[u8]) -> u32 {
    std::str::from_utf8(payload).unwrap().parse().unwrap()
}

/// Ids that are no text.
fn id(n: u32) -> [u8; 16] {
    let mut id = [0xff; 16];
    id[12..].copy_from_slice(&n.to_be_bytes());
    id
}

fn message_id(n: u32) -> MessageId {
    id(n).iter().map(|byte| format!("{byte:02x}")).collect::<String>().parse().unwrap()
}

/// Ten rows have the same score.
fn score(n: u32) -> String {
    (1_000_000 + n / 10).to_string()
}

/// What stays is read once, while the row that was read last has left, and rows come in front of it and
/// behind it.
macro_rules! paging {
    ($($name:ident: $rows:ty, |$ready:ident, $delayed:ident| $make:expr;)+) => {
        $(#[tokio::test]
        async fn $name() {
            let server = Server::start();
            let (_client, $ready, $delayed) = still_text_queues(&server).await;
            for seed in 0..SEEDS {
                server.cmd(["FLUSHALL"]);
                let _ = (&$ready, &$delayed);
                let (server, make) = (&server, $make);
                let rows: $rows = make(server);
                read_all(rows, seed).await;
            }
        })+
    };
}

paging! {
    dead_letters: Dead<'_>, |ready, delayed| |server| Dead { server, queue: &ready, last: None };
    waiting_messages: Waiting<'_>, |ready, delayed| |server| Waiting { server, queue: &ready, last: None };
    messages_in_flight: InFlight<'_>, |ready, delayed| |server| InFlight { server, queue: &ready, last: None };
    unconfirmed_pops: Pops<'_>, |ready, delayed| |server| Pops { server, queue: &ready, last: None };
    quarantined_entries: Malformed<'_>, |ready, delayed| |server| Malformed { server, queue: &delayed, last: None };
    schedules: Named<'_>, |ready, delayed| |server| Named { server, queue: &delayed, last: None };
}

struct Dead<'a> {
    server: &'a Server,
    queue: &'a BlockingQueue<String>,
    last: Option<DeadLetter>,
}

impl Rows for Dead<'_> {
    async fn read(&mut self, max: usize) -> Vec<u32> {
        let page = self.queue.dead_letters().read(self.last.as_ref(), max).await.unwrap();
        let numbers = page.iter().map(|letter| number(&letter.payload)).collect();
        self.last = page.into_iter().next_back().or(self.last.take());
        numbers
    }

    async fn add(&self, n: u32) {
        let add = "redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
            redis.call('HSET', KEYS[2], ARGV[1], cmsgpack.pack({'lost', '', 1, 1, 1, 1, 1, ARGV[3]}))";
        let (id, score, payload) = (id(n), score(n), format!("{n:04}"));
        let words = ["EVAL", add, "2", DEAD, DEAD_MESSAGES].map(str::as_bytes);
        self.server.cmd(words.into_iter().chain([&id[..], score.as_bytes(), payload.as_bytes()]));
    }

    async fn take(&self, n: u32, requeues: bool) {
        let dead = self.queue.dead_letters();
        let id = message_id(n);
        assert!(if requeues { dead.requeue(id).await } else { dead.remove(id).await }.unwrap());
    }
}

/// Adds a message with a record. `member` is in the set, with this score.
fn add_message(server: &Server, set: &str, n: u32, member: &[u8], score: &str) {
    let add = "redis.call('ZADD', KEYS[1], ARGV[2], ARGV[3])
        redis.call('HSET', KEYS[2], ARGV[1], struct.pack('>BI4HHHHI4c1I2I4', 1, 1, 0, 0, 9, 9, 30000, 'k', 0, 1) .. ARGV[4])";
    let (id, payload) = (id(n), format!("{n:04}"));
    let words = ["EVAL", add, "2", set, MESSAGES].map(str::as_bytes);
    server.cmd(words.into_iter().chain([&id[..], score.as_bytes(), member, payload.as_bytes()]));
}

struct Waiting<'a> {
    server: &'a Server,
    queue: &'a BlockingQueue<String>,
    last: Option<UnsettledMessage>,
}

impl Rows for Waiting<'_> {
    async fn read(&mut self, max: usize) -> Vec<u32> {
        let page = self.queue.unsettled().waiting(self.last.as_ref(), max).await.unwrap();
        let numbers = page.iter().map(|message| number(&message.payload)).collect();
        self.last = page.into_iter().next_back().or(self.last.take());
        numbers
    }

    async fn add(&self, n: u32) {
        add_message(self.server, RETRIES, n, &id(n), &score(n));
    }

    async fn take(&self, n: u32, requeues: bool) {
        if requeues {
            // A receiver has it.
            self.server.cmd([b"ZREM", RETRIES.as_bytes(), &id(n)]);
        } else {
            assert!(self.queue.unsettled().remove(message_id(n)).await.unwrap());
        }
    }
}

struct InFlight<'a> {
    server: &'a Server,
    queue: &'a BlockingQueue<String>,
    last: Option<UnsettledMessage>,
}

impl InFlight<'_> {
    fn member(n: u32) -> Vec<u8> {
        [&id(n)[..], &1_u32.to_be_bytes()].concat()
    }
}

impl Rows for InFlight<'_> {
    async fn read(&mut self, max: usize) -> Vec<u32> {
        let page = self.queue.unsettled().in_flight(self.last.as_ref(), max).await.unwrap();
        let numbers: Vec<_> = page.iter().map(|message| number(&message.payload)).collect();
        // Leases are extended all the time.
        for n in &numbers {
            let until = (33_000_000_000_000_u64 + u64::from(*n)).to_string();
            self.server.cmd([b"ZADD", LEASES.as_bytes(), b"XX", until.as_bytes(), &Self::member(*n)]);
        }
        self.last = page.into_iter().next_back().or(self.last.take());
        numbers
    }

    async fn add(&self, n: u32) {
        add_message(self.server, LEASES, n, &Self::member(n), "32503680000000");
    }

    async fn take(&self, n: u32, requeues: bool) {
        let unsettled = self.queue.unsettled();
        let id = message_id(n);
        assert!(if requeues { unsettled.requeue(id).await } else { unsettled.remove(id).await }.unwrap());
    }
}

struct Pops<'a> {
    server: &'a Server,
    queue: &'a BlockingQueue<String>,
    last: Option<UnconfirmedPop>,
}

impl Rows for Pops<'_> {
    async fn read(&mut self, max: usize) -> Vec<u32> {
        let page = self.queue.unconfirmed_pops(HOUR).read(self.last.as_ref(), max).await.unwrap();
        let numbers = page.iter().map(|pop| number(&pop.payloads[0])).collect();
        self.last = page.into_iter().next_back().or(self.last.take());
        numbers
    }

    async fn add(&self, n: u32) {
        let add = "redis.call('HSET', KEYS[1], ARGV[1], cmsgpack.pack({'LPOP', 1, {ARGV[1]}}))";
        self.server.cmd(["EVAL", add, "1", CLAIMS, &format!("{n:04}")]);
    }

    async fn take(&self, n: u32, requeues: bool) {
        let (pops, id) = (self.queue.unconfirmed_pops(HOUR), format!("{n:04}"));
        assert!(if requeues { pops.requeue(&id).await } else { pops.remove(&id).await }.unwrap());
    }
}

struct Malformed<'a> {
    server: &'a Server,
    queue: &'a DelayedQueue<String>,
    last: Option<Quarantined>,
}

impl Rows for Malformed<'_> {
    const AT_THE_END: bool = true;

    async fn read(&mut self, max: usize) -> Vec<u32> {
        let page = self.queue.quarantine().read(self.last.as_ref(), max).await.unwrap();
        let numbers = page.iter().map(|quarantined| number(&quarantined.entry)).collect();
        self.last = page.into_iter().next_back().or(self.last.take());
        numbers
    }

    async fn add(&self, n: u32) {
        self.server.cmd(["RPUSH", QUARANTINE, "1", &format!("{n:04}")]);
    }

    async fn take(&self, n: u32, requeues: bool) {
        let quarantine = self.queue.quarantine();
        let all = quarantine.read(None, usize::MAX).await.unwrap();
        let quarantined = all.iter().find(|quarantined| number(&quarantined.entry) == n).unwrap();
        let done = if requeues {
            quarantine.requeue(quarantined).await
        } else {
            quarantine.remove(quarantined).await
        };
        assert!(done.unwrap());
    }
}

struct Named<'a> {
    server: &'a Server,
    queue: &'a DelayedQueue<String>,
    last: Option<String>,
}

impl Rows for Named<'_> {
    async fn read(&mut self, max: usize) -> Vec<u32> {
        let page = self.queue.schedules().read(self.last.as_deref(), max).await.unwrap();
        let numbers: Vec<_> = page.iter().map(|(name, _)| number(name.as_bytes())).collect();
        // Each run moves a schedule behind those that run earlier.
        for n in &numbers {
            self.server.cmd(["ZADD", SCHEDULES, "XX", "32503680000001", &format!("{n:04}")]);
        }
        self.last = page.into_iter().next_back().map(|(name, _)| name).or(self.last.take());
        numbers
    }

    async fn add(&self, n: u32) {
        let name = format!("{n:04}");
        self.server.cmd(["ZADD", SCHEDULES, "32503680000000", &name]);
        // Some cannot be read.
        let record =
            if n.is_multiple_of(7) { "junk" } else { "every 60000\nmissed once\nlast 1\npaused\n\npayload" };
        self.server.cmd(["HSET", SCHEDULE_RECORDS, &name, record]);
    }

    async fn take(&self, n: u32, _: bool) {
        assert!(self.queue.schedules().remove(format!("{n:04}")).await.unwrap());
    }
}

/// Entries that are handled in pages come to the quarantine again, behind the others, as they were.
#[tokio::test]
async fn what_comes_again_does_not_hide_the_others() {
    let server = Server::start();
    let (_client, _ready, delayed) = still_text_queues(&server).await;
    for n in 0..40 {
        server.cmd(["RPUSH", QUARANTINE, "1", &format!("{n:04}")]);
    }
    let quarantine = delayed.quarantine();
    let (mut page, mut seen) = (quarantine.read(None, 3).await.unwrap(), Vec::new());
    while seen.len() < 40 {
        for quarantined in &page {
            seen.push(number(&quarantined.entry));
            assert!(quarantine.remove(quarantined).await.unwrap());
            server.cmd(["RPUSH", QUARANTINE, "1", std::str::from_utf8(&quarantined.entry).unwrap()]);
        }
        page = quarantine.read(page.last(), 3).await.unwrap();
    }
    assert_eq!(seen[..40], (0..40).collect::<Vec<_>>());
}

/// All of them, and a part of them, the first ones first.
#[tokio::test]
async fn all_are_requeued_or_removed() {
    let server = Server::start();
    let (_client, ready, delayed) = still_text_queues(&server).await;
    let fill = async || {
        server.cmd(["FLUSHALL"]);
        for n in 0..250 {
            add_message(&server, RETRIES, n, &id(n), &(32_503_680_000_000_u64 + u64::from(n)).to_string());
            server.cmd(["RPUSH", QUARANTINE, "32503680000000", &format!("{n:04}")]);
        }
        add_message(&server, LEASES, 300, &InFlight::member(300), "32503680000000");
    };
    let (unsettled, quarantine) = (ready.unsettled(), delayed.quarantine());
    let waiting = async || -> Vec<u32> {
        let waiting = unsettled.waiting(None, usize::MAX).await.unwrap();
        waiting.iter().map(|message| number(&message.payload)).collect()
    };

    fill().await;
    assert_eq!(unsettled.requeue_all(120).await.unwrap(), 120);
    let due = async || -> Vec<u32> {
        let waiting = unsettled.waiting(None, usize::MAX).await.unwrap();
        let due = waiting.iter().filter(|message| message.remaining == Duration::ZERO);
        due.map(|message| number(&message.payload)).collect()
    };
    until_async("they are due", || async { due().await == (0..120).collect::<Vec<_>>() }).await;
    assert_eq!(unsettled.requeue_all(usize::MAX).await.unwrap(), 130, "those that are due do not count");
    assert_eq!(unsettled.requeue_all(usize::MAX).await.unwrap(), 0);
    assert_eq!(quarantine.requeue_all(120).await.unwrap(), 120);
    assert_eq!(number(&quarantine.read(None, 1).await.unwrap()[0].entry), 120);
    assert_eq!(quarantine.requeue_all(usize::MAX).await.unwrap(), 130);
    assert!(quarantine.is_empty().await.unwrap());
    assert_eq!(delayed.len().await.unwrap(), 250);
    assert_eq!(unsettled.in_flight(None, 9).await.unwrap().len(), 1, "its receiver has it");

    fill().await;
    assert_eq!(unsettled.remove_all(120).await.unwrap(), 120);
    assert_eq!(waiting().await, (120..250).collect::<Vec<_>>());
    assert_eq!(unsettled.remove_all(usize::MAX).await.unwrap(), 130);
    assert_eq!(unsettled.len().await.unwrap(), 1, "its receiver has it");
    assert!(!unsettled.is_empty().await.unwrap());
    assert_eq!(quarantine.remove_all(120).await.unwrap(), 120);
    assert_eq!(number(&quarantine.read(None, 1).await.unwrap()[0].entry), 120);
    assert_eq!(quarantine.remove_all(usize::MAX).await.unwrap(), 130);
    assert_eq!(quarantine.remove_all(usize::MAX).await.unwrap(), 0);
}

/// Times are epoch ms, durations ms, payloads bytes.
#[tokio::test]
async fn rows_are_written_by_serde() {
    let server = Server::start();
    let (_client, ready, delayed) = still_text_queues(&server).await;
    let text = |row: serde_json::Result<String>| row.unwrap();

    let dead = Dead { server: &server, queue: &ready, last: None };
    dead.add(7).await;
    let letter = ready.dead_letters().read(None, 1).await.unwrap().remove(0);
    assert_eq!(
        text(serde_json::to_string(&letter)),
        r#"{"id":"ffffffffffffffffffffffff00000007","reason":"lost","error":"","failed":1,"lost":1,"first_received":1,"died":1,"job_id":null,"payload":[48,48,48,55]}"#
    );
    assert_eq!(serde_json::from_value::<MessageId>(json!(letter.id)).unwrap(), letter.id);
    assert!(serde_json::from_value::<MessageId>(json!("7")).is_err());

    add_message(&server, RETRIES, 7, &id(7), "1");
    let message = ready.unsettled().waiting(None, 1).await.unwrap().remove(0);
    assert_eq!(
        text(serde_json::to_string(&message)),
        r#"{"id":"ffffffffffffffffffffffff00000007","attempt":1,"first_received":1,"remaining_ms":0.0,"job_id":null,"payload":[48,48,48,55]}"#
    );

    Pops { server: &server, queue: &ready, last: None }.add(7).await;
    let mut pop = ready.unconfirmed_pops(HOUR).read(None, 1).await.unwrap().remove(0);
    pop.age = ms(1500);
    assert_eq!(
        text(serde_json::to_string(&pop)),
        r#"{"id":"0007","age_ms":1500.0,"kind":"head","payloads":[[48,48,48,55]]}"#
    );

    server.cmd(["RPUSH", QUARANTINE, "1795249257299.75", "ab", "", "c"]);
    let quarantined = delayed.quarantine().read(None, 9).await.unwrap();
    assert_eq!(
        text(serde_json::to_string(&quarantined)),
        r#"[{"due":1795249257299,"entry":[97,98]},{"due":null,"entry":[99]}]"#
    );
    assert!(quarantined[0].clone() == quarantined[0] && quarantined[0] != quarantined[1]);

    delayed
        .schedule("s")
        .every(HOUR)
        .missed(Missed::UpTo(3))
        .start_at(UNIX_EPOCH + ms(5))
        .upsert("v")
        .await
        .unwrap();
    assert!(delayed.schedule("s").pause().await.unwrap());
    let stored = delayed.schedule("s").get().await.unwrap().unwrap();
    assert_eq!(
        text(serde_json::to_string(&stored)),
        r#"{"name":"s","value":"v","text":"every 3600000 ms","start":5,"end":null,"missed":{"up_to":3},"no_overlap":null,"next_run":null,"last_run":null,"is_running":false,"is_paused":true}"#
    );

    let due = UNIX_EPOCH + Duration::from_millis(32_503_680_000_000);
    let offered = delayed.offer_at("v", due).id("job").await.unwrap();
    assert_eq!(text(serde_json::to_string(&offered)), r#"{"stored":32503680000000}"#);
    assert_eq!(offered, Offered::Stored(due));
    let mut job = delayed.job("job").get().await.unwrap().unwrap();
    job.first_offered = UNIX_EPOCH;
    assert_eq!(text(serde_json::to_string(&job)), r#"{"value":"v","due":32503680000000,"first_offered":0}"#);

    let limit = RateLimit::new(50, Duration::from_micros(1500)).burst(10);
    assert_eq!(text(serde_json::to_string(&limit)), r#"{"messages":50,"per_ms":1.5,"burst":10}"#);
    let stopped = soon(redelay::Worker::new(&ready).run_until(async {}, |_: String| async {})).await.unwrap();
    let expected =
        r#"{"acknowledged":0,"failed":0,"rejected":0,"lost":0,"snoozed":0,"released":0,"cancelled":0}"#;
    assert_eq!(text(serde_json::to_string(&stopped)), expected);
}
