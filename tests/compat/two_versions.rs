//! Today's redelay beside an older one on one queue, as while the processes of a service are replaced one by
//! one.
//!
//! `make two-versions` builds the peer of the older commit, and runs this with its path in
//! `REDELAY_OLD_PEER`.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use redelay_fixture::{Proxy, Server};
use redelay_support::{
    DEAD, DEAD_MESSAGES, INBOX, LEASES, MESSAGES, ORDERED_LIST, QUARANTINE, RETRIES, TIMEOUT_SET,
};
use serde::Deserialize;
use serde_json::Value;

use crate::peer::{Peer, Setup};
use crate::report;

/// How often each process is replaced by one of the other version.
const REPLACED: usize = 10;
/// What a producer offers before it is replaced.
const OFFERS: usize = 24;
/// What a consumer settles before it is replaced.
const SETTLED: usize = 12;
/// What a consumer has in its hands when it is killed.
const IN_HAND: usize = 2;
/// Leases are extended, unless a machine stands still for as long.
const LEASE: &str = "4000";
/// The bound of docs/guarantees.md for such leases is 24 s. On a busy machine it takes longer.
const PATIENCE: Duration = Duration::from_secs(180);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Old,
    New,
}

use Version::{New, Old};

impl Version {
    fn of(number: usize) -> Self {
        if number.is_multiple_of(2) { Old } else { New }
    }

    fn start(self, url: &str) -> Peer {
        let setup = Setup::new(url);
        let mut peer = match self {
            Old => {
                let path = std::env::var_os("REDELAY_OLD_PEER");
                setup.redelay(&PathBuf::from(path.expect("REDELAY_OLD_PEER: see `make two-versions`")))
            }
            New => setup.rust(),
        };
        peer.tell(&["lease", "q", LEASE, "1000", "on"]);
        peer
    }

    /// One that transfers the queue, too.
    fn open(self, url: &str) -> Peer {
        let mut peer = self.start(url);
        peer.open("q");
        peer
    }
}

/// What becomes of a value.
#[derive(Debug, Default)]
struct Told {
    /// Its offer was answered. Otherwise the process that offered it was killed.
    offered: bool,
    done: usize,
    received: usize,
    /// The highest number of an attempt.
    attempt: usize,
    /// What permits one more delivery, by its kind.
    again: BTreeMap<&'static str, usize>,
}

#[derive(Debug, Default)]
struct Ledger(Mutex<HashMap<String, Told>>);

impl Ledger {
    fn values(&self) -> MutexGuard<'_, HashMap<String, Told>> {
        self.0.lock().unwrap()
    }

    fn tell(&self, value: &str, what: impl FnOnce(&mut Told)) {
        what(self.values().entry(value.to_owned()).or_default());
    }

    fn again(&self, value: &str, kind: &'static str) {
        self.tell(value, |told| *told.again.entry(kind).or_default() += 1);
    }

    /// What was offered and is not done.
    fn missing(&self) -> Vec<String> {
        let values = self.values();
        let missing = values.iter().filter(|(_, told)| told.done == 0 && told.offered);
        missing.map(|(value, told)| format!("{value}: {told:?}")).collect()
    }

    /// Nothing is lost, nothing is done twice, and nothing is delivered again without a reason.
    fn check(&self) {
        let mut sums = BTreeMap::new();
        for (value, told) in &*self.values() {
            assert!(told.done == 1 || told.done == 0 && !told.offered, "{value}: {told:?}");
            let again: usize = told.again.values().sum();
            assert!(told.received <= 1 + again && told.attempt <= 1 + again, "{value}: {told:?}");
            for (kind, count) in &told.again {
                *sums.entry(*kind).or_default() += count;
            }
            *sums.entry("done").or_insert(0) += told.done;
        }
        report(&format!("{sums:?}"));
    }
}

#[derive(Debug, Deserialize)]
struct Delivery {
    id: String,
    attempt: usize,
    value: String,
}

/// If one thread fails, the others end.
struct EndsAll<'a>(&'a AtomicBool);

impl Drop for EndsAll<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Relaxed);
        }
    }
}

/// One run: a queue, faults, and processes that are replaced.
struct Run<'a> {
    direct: &'a str,
    faulty: &'a str,
    ledger: Ledger,
    all_offered: AtomicBool,
    over: AtomicBool,
}

impl Run<'_> {
    /// Offers in every way.
    fn produce(&self, slot: usize, mut random: Rng) {
        let _ends = EndsAll(&self.over);
        for generation in 0..=REPLACED {
            let version = Version::of(slot + generation);
            let mut peer = version.open(self.faulty);
            for number in 0..OFFERS {
                let name = format!("{version:?}{slot}-{generation}-{number}-");
                let value = Value::from(&*name).to_string();
                let delay = random.u32(0..600).to_string();
                match random.u8(0..if version == New { 6 } else { 4 }) {
                    0 => {
                        let answer = peer.ask(&["put", "q", &value]);
                        if answer.starts_with("!outcomeunknown") {
                            self.ledger.tell(&name, |_| ());
                            continue;
                        }
                        assert_eq!(answer, "ok");
                    }
                    1 => {
                        peer.tell(&["offerall", "q", "2", &delay, &name]);
                        (0..2).for_each(|n| {
                            self.ledger.tell(&format!("{name}{n}"), |told| told.offered = true)
                        });
                        continue;
                    }
                    2 => peer.tell(&["offer", "q", &value, &delay]),
                    3 => assert_eq!(peer.ask(&["job", "q", &name, &value, &delay, "keep"]), "stored"),
                    // Only the new one has ids that hold.
                    _ => assert_eq!(peer.ask(&["jobheld", "q", &name, &value, &delay, "keep"]), "stored"),
                }
                self.ledger.tell(&name, |told| told.offered = true);
            }
            if random.bool() {
                let name = format!("{version:?}{slot}-{generation}-killed");
                // It may arrive, or not.
                self.ledger.tell(&name, |_| ());
                peer.send(&["offer", "q", &Value::from(name).to_string(), "1"]);
                drop(peer);
            } else {
                peer.quit();
            }
        }
    }

    /// Receives, and settles in every way. Each process is killed while it holds deliveries, or ends well.
    fn consume(&self, slot: usize, mut random: Rng) {
        let _ends = EndsAll(&self.over);
        for generation in 0.. {
            let is_last = generation >= REPLACED;
            let version = Version::of(slot + generation);
            let mut peer = version.open(self.faulty);
            let (mut settled, mut in_hand) = (0, 0);
            while (is_last || settled < SETTLED) && !self.over.load(Relaxed) {
                let answer = if random.bool() {
                    peer.ask(&["receivemany", "q", "3"])
                } else {
                    format!("[{}]", peer.ask(&["receive", "q", "200"]))
                };
                let received: Vec<Option<Delivery>> =
                    serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{version:?}: {answer}"));
                let received: Vec<_> = received.into_iter().flatten().collect();
                if received.is_empty() && !is_last && self.all_offered.load(Relaxed) {
                    // What is left may be in its own hands.
                    break;
                }
                for Delivery { id, attempt, value } in received {
                    self.ledger.tell(&value, |told| {
                        told.received += 1;
                        told.attempt = told.attempt.max(attempt);
                    });
                    let how = random.u8(0..12);
                    let (kind, words): (_, &[&str]) = match how {
                        0 => ("retry", &["retry", "q", &id, "20"]),
                        1 => ("snooze", &["snooze", "q", &id, "20"]),
                        2 => ("release", &["release", "q", &id]),
                        3 => ("reject", &["reject", "q", &id, "no"]),
                        4 | 5 if in_hand < IN_HAND && !is_last => ("held at the end", &[]),
                        _ => ("ack", &["ack", "q", &id]),
                    };
                    if kind != "ack" {
                        self.ledger.again(&value, kind);
                    }
                    if words.is_empty() {
                        in_hand += 1;
                        continue;
                    }
                    match peer.ask(words) {
                        answer if answer == "ok" => {
                            settled += 1;
                            self.ledger.tell(&value, |told| told.done += usize::from(kind == "ack"));
                        }
                        answer if answer.starts_with("!leaselost") => self.ledger.again(&value, "lease lost"),
                        answer => panic!("{version:?} answers {answer} to {words:?}"),
                    }
                }
            }
            if !is_last && random.bool() {
                drop(peer);
            } else {
                peer.quit();
            }
            if is_last {
                return;
            }
        }
    }

    /// Takes, which is at most once, so it is neither killed nor cut off.
    fn take(&self, slot: usize) {
        let _ends = EndsAll(&self.over);
        for generation in 0.. {
            let mut peer = Version::of(slot + generation).open(self.direct);
            let mut taken = 0;
            while (generation >= REPLACED || taken < SETTLED) && !self.over.load(Relaxed) {
                let answer = peer.ask(&["poll", "q", "50"]);
                let value: Option<String> =
                    serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{answer}"));
                if let Some(value) = value {
                    taken += 1;
                    self.ledger.tell(&value, |told| {
                        told.received += 1;
                        told.done += 1;
                    });
                }
            }
            peer.quit();
            if generation >= REPLACED {
                return;
            }
        }
    }

    /// Dead letters go back, by either version.
    fn requeue(&self) {
        let _ends = EndsAll(&self.over);
        let mut peers = [Old, New].map(|version| version.open(self.direct));
        while !self.over.load(Relaxed) {
            for peer in &mut peers {
                let answer = peer.ask(&["requeue", "q", "1000"]);
                assert!(answer.parse::<usize>().is_ok(), "{answer}");
                thread::sleep(Duration::from_millis(100));
            }
        }
        peers.into_iter().for_each(Peer::quit);
    }

    /// Cuts connections, with replies on their way.
    fn fail(&self, proxy: &Proxy, mut random: Rng) {
        while !self.over.load(Relaxed) {
            thread::sleep(Duration::from_millis(random.u64(100..500)));
            if random.bool() {
                proxy.hold_replies(true);
                thread::sleep(Duration::from_millis(random.u64(1..50)));
            }
            proxy.cut();
            proxy.hold_replies(false);
        }
    }
}

#[test]
#[ignore = "make two-versions builds the older peer"]
fn processes_of_both_versions_replace_each_other() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let (direct, faulty) = (server.url(), proxy.url());
    let run = Run {
        direct: &direct,
        faulty: &faulty,
        ledger: Ledger::default(),
        all_offered: AtomicBool::new(false),
        over: AtomicBool::new(false),
    };
    let seed = redelay_support::seed();
    let random = |slot: u64| Rng::with_seed(seed.wrapping_add(slot));
    let begun = Instant::now();
    thread::scope(|scope| {
        let run = &run;
        let _ends = EndsAll(&run.over);
        let producers = [0, 1].map(|slot| scope.spawn(move || run.produce(slot, random(slot as u64))));
        for slot in 0..3 {
            scope.spawn(move || run.consume(slot, random(10 + slot as u64)));
        }
        scope.spawn(|| run.take(0));
        scope.spawn(|| run.requeue());
        scope.spawn(|| run.fail(&proxy, random(20)));
        for producer in producers {
            producer.join().unwrap();
        }
        run.all_offered.store(true, Relaxed);
        report(&format!("all is offered after {:.0?}", begun.elapsed()));
        let late = Instant::now() + PATIENCE;
        while !run.over.load(Relaxed) {
            let missing = run.ledger.missing();
            if missing.is_empty() {
                break;
            }
            assert!(Instant::now() < late, "not done: {missing:?}");
            thread::sleep(Duration::from_millis(50));
        }
        report(&format!("all is done after {:.0?}", begun.elapsed()));
        run.over.store(true, Relaxed);
    });
    run.ledger.check();
    for key in
        ["q", TIMEOUT_SET, ORDERED_LIST, INBOX, MESSAGES, LEASES, RETRIES, DEAD, DEAD_MESSAGES, QUARANTINE]
    {
        assert_eq!(server.get::<usize, _>(["EXISTS", key]), 0, "{key} is left");
    }
}
