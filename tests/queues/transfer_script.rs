//! The transfer script, compared with a model after every call. Its constants are small here, so that sixty
//! entries are a long list. Other clients change the queue in between.

use std::collections::{BTreeMap, BTreeSet};

use std::cell::RefCell;

use redelay_fixture::Server;
use redelay_fixture::redis::{self, Cmd, FromRedisValue};
use redelay_support::{
    JOBS, MOVED, ORDERED_LIST, QUARANTINE, REBUILD, SCRATCH, TARGET, TIMEOUT_SET, part, script,
};

type Entry = Vec<u8>;

/// The script with small constants.
fn small(long_entry: usize) -> String {
    let long_entry = format!("LONG_ENTRY = {long_entry}");
    let constants = [
        ("LONG_ENTRY = 8192", &*long_entry),
        ("READ_BYTES = 2 ^ 20", "READ_BYTES = 500"),
        ("DUE_BYTES = 2.5 * 2 ^ 20", "DUE_BYTES = 2.5 * READ_BYTES"),
        ("FIRST_CHUNK = 10", "FIRST_CHUNK = 2"),
        ("LONG_WALK = 1000", "LONG_WALK = 10"),
        ("NEAR_FRONT = 16", "NEAR_FRONT = 2"),
        ("TAIL_PART = 16", "TAIL_PART = 3"),
        ("CHUNK = 1000", "CHUNK = 5"),
        ("SLICE = 100", "SLICE = 3"),
        ("SAMPLE = 100", "SAMPLE = 3"),
        ("FEW = 32", "FEW = 2"),
        ("MOST_OF_FEW = 8", "MOST_OF_FEW = 3"),
        ("SHORT_WALK = 20000", "SHORT_WALK = 40"),
        ("LEAST_MOVED = 2000", "LEAST_MOVED = 4"),
        ("PORTION = 500", "PORTION = 3"),
        ("BULK = 10000", "BULK = 8"),
        ("MOST_KEPT, KEPT_BYTES = 20000, 8 * 2 ^ 20", "MOST_KEPT, KEPT_BYTES = 12, 1500"),
        ("LEAST_READ = 8000", "LEAST_READ = 4"),
        ("WALK = 250000", "WALK = 50"),
        ("PASS_PART, PASS_WIDTH, PASS_TIME = 50", "PASS_PART, PASS_WIDTH, PASS_TIME = 3"),
    ];
    constants.iter().fold(script("TRANSFER"), |text, (constant, small)| {
        assert!(text.contains(constant), "{constant}");
        text.replace(constant, small)
    })
}

fn entry(id: u64, payload: &[u8]) -> Entry {
    let id = [0; 8].into_iter().chain(id.to_be_bytes());
    [16].into_iter()
        .chain(id)
        .chain((payload.len() as u64).to_le_bytes())
        .chain(payload.iter().copied())
        .collect()
}

fn payload(entry: &Entry) -> Option<Vec<u8>> {
    (entry.first() == Some(&16)).then(|| entry[25..].to_vec())
}

/// A server and one connection, for thousands of commands.
struct Keys {
    connection: RefCell<redis::Connection>,
    server: Server,
}

impl Keys {
    fn start() -> Self {
        let server = Server::start();
        Self { connection: RefCell::new(server.redis()), server }
    }

    fn get<T, I>(&self, words: I) -> T
    where
        T: FromRedisValue,
        I: IntoIterator<Item: AsRef<[u8]>>,
    {
        let mut command = Cmd::new();
        for word in words {
            command.arg(word.as_ref());
        }
        command.query(&mut *self.connection.borrow_mut()).expect("a reply")
    }

    fn cmd(&self, words: impl IntoIterator<Item: AsRef<[u8]>>) {
        self.get::<redis::Value, _>(words);
    }

    fn list(&self, key: &str) -> Vec<Entry> {
        self.get(["LRANGE", key, "0", "-1"])
    }

    fn is_marked(&self) -> bool {
        self.get(["EXISTS", REBUILD])
    }

    fn zset(&self, key: &str) -> Vec<(Entry, f64)> {
        self.get(["ZRANGE", key, "0", "-1", "WITHSCORES"])
    }
}

/// The contents of Redis.
#[derive(Clone, Debug, PartialEq)]
struct State {
    /// Entries in the order of their due times.
    pending: Vec<(Entry, f64)>,
    /// The number of times that each entry is in the list. A call may move due entries to its front.
    listed: BTreeMap<Entry, usize>,
    target: Vec<Entry>,
    quarantine: Vec<Entry>,
}

fn state(server: &Keys) -> State {
    let mut listed = BTreeMap::new();
    for entry in server.list(ORDERED_LIST) {
        *listed.entry(entry).or_default() += 1;
    }
    State {
        pending: server.zset(TIMEOUT_SET),
        listed,
        target: server.list(TARGET),
        quarantine: server.list(QUARANTINE),
    }
}

/// The contents after the first `count` entries were moved.
fn after(mut state: State, count: usize) -> State {
    for (entry, score) in state.pending.drain(..count) {
        match payload(&entry) {
            Some(payload) => state.target.push(payload),
            None => {
                let score = match score {
                    f64::INFINITY => "inf".to_owned(),
                    f64::NEG_INFINITY => "-inf".to_owned(),
                    score => score.to_string(),
                };
                state.quarantine.extend([score.into_bytes(), entry.clone()]);
            }
        }
        if let Some(times) = state.listed.get_mut(&entry) {
            *times -= 1;
            if *times == 0 {
                state.listed.remove(&entry);
            }
        }
    }
    state
}

/// A budget in microseconds that no stall of the machine uses up.
const WIDE: u64 = 60_000_000;

/// A client that transfers, with its own limits and cursor.
struct Mover {
    batch: usize,
    budget: u64,
    cursor: i64,
}

impl Mover {
    fn new(random: &mut fastrand::Rng) -> Self {
        let batch = *random.choice(&[1, 2, 3, 4, 7, 20, 100]).unwrap();
        Self { batch, budget: *random.choice(&[1, 1, 20, 40, 100_000]).unwrap(), cursor: 0 }
    }

    /// Returns the number of entries that were moved or quarantined.
    fn call(&mut self, server: &Keys, script: &str) -> usize {
        let (batch, budget, cursor) =
            (self.batch.to_string(), self.budget.to_string(), self.cursor.to_string());
        let keys = [TIMEOUT_SET, ORDERED_LIST, TARGET, QUARANTINE, MOVED, SCRATCH, JOBS, REBUILD];
        let words =
            ["EVAL", script, "8"].into_iter().chain(keys).chain([&*batch, &budget, "me", &cursor, "0"]);
        let (moved, set_aside, _head, _clock, cursor, _runs): (usize, usize, Option<String>, i64, i64, i64) =
            server.get(words);
        self.cursor = cursor;
        moved + set_aside
    }
}

fn fill(server: &Keys, random: &mut fastrand::Rng) {
    let number = *random.choice(&[3, 10, 40, 60]).unwrap();
    let [ghosts, doubles] = [(); 2].map(|()| *random.choice(&[0.0, 0.0, 0.1, 0.4]).unwrap());
    let mut scores: Vec<u64> = (0..number).collect();
    if random.f64() < 0.7 {
        random.shuffle(&mut scores);
    }
    for (n, score) in scores.into_iter().enumerate() {
        let entry = match random.u8(..20) {
            0 => format!("junk {n}").into_bytes(),
            1..4 => entry(n as u64, b"the same"),
            4 | 5 => entry(n as u64, &[b'x'; 400]),
            _ => entry(n as u64, n.to_string().as_bytes()),
        };
        let score = match random.u8(..10) {
            0 => "-inf".to_owned(),
            1 => "-5".to_owned(),
            2 => "1.5".to_owned(),
            3 => "inf".to_owned(),
            4 => "400000000000000".to_owned(),
            5 => (score / 3).to_string(),
            _ => score.to_string(),
        };
        if random.f64() >= ghosts {
            server.cmd([b"ZADD".to_vec(), TIMEOUT_SET.into(), score.into(), entry.clone()]);
        }
        if random.f64() >= ghosts {
            server.cmd([b"RPUSH".to_vec(), ORDERED_LIST.into(), entry.clone()]);
        }
        if random.f64() < doubles {
            server.cmd([b"RPUSH".to_vec(), ORDERED_LIST.into(), entry]);
        }
    }
}

/// An operation of another client.
fn interfere(server: &Keys, random: &mut fastrand::Rng, next: &mut u64) {
    let (pending, list) = (server.zset(TIMEOUT_SET), server.list(ORDERED_LIST));
    let remove = |command: &str, entry: &Entry| {
        let (command, key, count) = match command {
            "ZREM" => ("ZREM", TIMEOUT_SET, None),
            _ => ("LREM", ORDERED_LIST, Some(b"1".to_vec())),
        };
        server.cmd([command.into(), key.into()].into_iter().chain(count).chain([entry.clone()]));
    };
    let several = *random.choice(&[1, 1, 10]).unwrap();
    match random.u8(..8) {
        // Cancellations, or a transfer by Redisson.
        0 | 1 => {
            let from = if random.bool() { 0 } else { random.usize(..=pending.len()) };
            for (entry, _) in pending.iter().skip(from).take(several) {
                remove("LREM", entry);
                remove("ZREM", entry);
            }
        }
        // Polls, from both ends.
        2 => list.iter().take(several).for_each(|entry| {
            remove("LREM", entry);
            remove("ZREM", entry);
        }),
        3 => list.iter().rev().take(several).for_each(|entry| {
            remove("LREM", entry);
            remove("ZREM", entry);
        }),
        4 | 5 => {
            *next += 1;
            let (new, push) = (entry(*next, b"new"), if random.bool() { "RPUSH" } else { "LPUSH" });
            let score = *random.choice(&["0", "50", "-inf"]).unwrap();
            server.cmd([b"ZADD".to_vec(), TIMEOUT_SET.into(), score.into(), new.clone()]);
            server.cmd([push.as_bytes().to_vec(), ORDERED_LIST.into(), new]);
        }
        6 => {
            if let Some((entry, _)) = random.choice(&pending) {
                let score = *random.choice(&["0", "5", "-inf", "400000000000000"]).unwrap();
                server.cmd([
                    b"ZADD".to_vec(),
                    TIMEOUT_SET.into(),
                    b"XX".to_vec(),
                    score.into(),
                    entry.clone(),
                ]);
            }
        }
        _ if random.u8(..20) == 0 => {
            server.cmd(["DEL", *random.choice(&[TIMEOUT_SET, ORDERED_LIST]).unwrap()]);
        }
        _ => {
            if let Some(entry) = random.choice(&list) {
                server.cmd([b"RPUSH".to_vec(), ORDERED_LIST.into(), entry.clone()]);
            }
        }
    }
}

/// Whether an entry with this score is due for as long as the test runs.
fn is_due(score: f64) -> bool {
    score < 1e13
}

/// `REDELAY_CASES` sets the number of cases.
#[test]
fn each_call_moves_the_first_entries_and_changes_nothing_else() {
    let cases = std::env::var("REDELAY_CASES").map_or(30, |cases| cases.parse().expect("a number"));
    let (server, scripts) = (Keys::start(), [small(8192), small(100)]);
    let mut rebuilds = 0;
    for seed in (0..cases).filter(|seed| part().has(*seed)) {
        let random = &mut fastrand::Rng::with_seed(seed);
        let script = random.choice(&scripts).unwrap();
        server.cmd(["FLUSHALL"]);
        fill(&server, random);
        let mut movers = [Mover::new(random), Mover::new(random)];
        let (interference, mut next) = (*random.choice(&[0.0, 0.2, 0.6]).unwrap(), 1000);
        let mut calls_for_nothing = 0;
        for step in 0.. {
            if step < 200 && random.f64() < interference {
                interfere(&server, random, &mut next);
                continue;
            }
            let mover = random.choice(&mut movers).unwrap();
            if random.u8(..20) == 0 {
                // A cursor of an earlier call, or one that no call has returned.
                mover.cursor = *random.choice(&[-1_000_000, -7, 0, 1, 20, i64::MAX / 1024]).unwrap();
            }
            let before = state(&server);
            let all_due = before.pending.iter().filter(|(_, score)| is_due(*score));
            let all_due: BTreeSet<Entry> = all_due.map(|(entry, _)| entry.clone()).collect();
            let due = all_due.len();
            let the_others = || {
                let mut list = server.list(ORDERED_LIST);
                list.retain(|entry| !all_due.contains(entry));
                list
            };
            let others_before = the_others();
            let was_marked = server.is_marked();
            let moved = mover.call(&server, script);
            assert!(moved <= due.min(mover.batch), "seed {seed}, step {step}: {moved} of {due} moved");
            let (mut now, mut expected) = (state(&server), after(before, moved));
            if was_marked || server.is_marked() {
                rebuilds += 1;
                // What is due may have left the list.
                for entry in &all_due {
                    let [now, expected] = [&mut now, &mut expected].map(|state| state.listed.remove(entry));
                    assert!(now <= expected, "seed {seed}, step {step}: it is in the list again");
                }
            }
            assert_eq!(now, expected, "seed {seed}, step {step}: {moved} moved");
            assert_eq!(the_others(), others_before, "seed {seed}, step {step}: the order of what is not due");
            calls_for_nothing = if moved == 0 { calls_for_nothing + 1 } else { 0 };
            // Two clients that move entries to the front disturb each other for a while, but not for ever.
            assert!(
                due == 0 || calls_for_nothing < 200,
                "seed {seed}, step {step}: it stands still with {due} due"
            );
            if due == 0 && step >= 200 {
                break;
            }
        }
    }
    println!("{rebuilds} calls while a list was rebuilt");
    assert!(rebuilds > 0 || cases < 30);
}

/// A queue with these entries and due times, in list order.
fn queue(entries: impl IntoIterator<Item = (u64, Entry)>) -> Keys {
    let server = Keys::start();
    for (score, entry) in entries {
        server.cmd([b"ZADD".to_vec(), TIMEOUT_SET.into(), score.to_string().into(), entry.clone()]);
        server.cmd([b"RPUSH".to_vec(), ORDERED_LIST.into(), entry]);
    }
    server
}

/// A cursor does not survive a list that was empty in between.
#[test]
fn an_expiry_is_kept() {
    let later = 400_000_000_000_000;
    let entries = (0..400).map(|n| (if n % 2 == 0 { n } else { later }, entry(n, b"payload")));
    let server = queue(entries);
    server.cmd(["PEXPIRE", TIMEOUT_SET, "600000"]);
    server.cmd(["PEXPIRE", ORDERED_LIST, "600000"]);
    let moved = Mover { batch: 5_000, budget: WIDE, cursor: 0 }.call(&server, &script("TRANSFER"));
    assert_eq!(moved, 200);
    assert!(server.get::<i64, _>(["PTTL", TIMEOUT_SET]) > 0);
    assert!(server.get::<i64, _>(["PTTL", ORDERED_LIST]) > 0);
}

/// Entries that a call reads and does not move are read again, so a call must not read much more than it
/// moves.
#[test]
fn long_payloads_and_short_budgets_are_no_reason_to_move_next_to_nothing() {
    for (number, length, budget) in [(2_000, 20_000, 40_000), (20_000, 10, 1_000)] {
        let payload = vec![b'x'; length];
        let server = queue((0..number).map(|n| (n, entry(n, &payload))));
        let mut mover = Mover { batch: 5_000, budget, cursor: 0 };
        let mut calls = 0;
        while server.get::<usize, _>(["ZCARD", TIMEOUT_SET]) > 0 {
            assert!(
                mover.call(&server, &script("TRANSFER")) > 0,
                "{length} bytes, {budget} µs: in order, and nothing was moved"
            );
            calls += 1;
        }
        println!("{number} entries of {length} bytes, {budget} µs: {calls} calls");
    }
}

/// Entries with short delays are the last ones of a list. They are found without a pass over all that have
/// long ones.
#[test]
fn due_entries_at_the_end_of_a_long_list_are_found_there() {
    let later = 400_000_000_000_000;
    for due in [1, 5, 200] {
        let mut last: Vec<u64> = (0..due).collect();
        fastrand::Rng::with_seed(due).shuffle(&mut last);
        let waiting = (1_000..21_000).map(|n| (later, entry(n, b"later")));
        let server = queue(waiting.chain(last.into_iter().map(|n| (n, entry(n, b"due")))));
        server.cmd(["CONFIG", "RESETSTAT"]);
        let moved = Mover { batch: 5_000, budget: WIDE, cursor: 0 }.call(&server, &script("TRANSFER"));
        let reads = server.server.command_calls("lrange");
        assert_eq!(moved, due as usize);
        assert!(reads <= 8, "{due} due: the list was read {reads} times");
        assert_eq!(server.get::<usize, _>(["LLEN", ORDERED_LIST]), 20_000);
    }
}

/// Each call reads a thousand elements at least.
#[test]
fn a_pass_takes_few_calls_however_short_the_budget_is() {
    let mut all: Vec<u64> = (0..3_000).collect();
    fastrand::Rng::with_seed(1).shuffle(&mut all);
    let server = queue(all.into_iter().map(|n| (n, entry(n, b"payload"))));
    let mut mover = Mover { batch: 100, budget: 1, cursor: 0 };
    let calls = (1..).take_while(|_| {
        mover.call(&server, &script("TRANSFER"));
        server.get::<usize, _>(["ZCARD", TIMEOUT_SET]) > 0
    });
    let calls = calls.count();
    println!("{calls} calls");
    assert!(calls < 200, "{calls} calls");
}

/// The calls of a pass put what they have found to the front, one after the other: the first due entries may
/// be behind many others.
#[test]
fn what_a_pass_has_put_to_the_front_is_found_there_in_any_order() {
    let later = 400_000_000_000_000;
    let found = (2_000..8_000).chain(0..2_000).map(|n| (n, entry(n, b"found")));
    let server = queue(found.chain((8_000..12_000).map(|n| (later, entry(n, b"later")))));
    let mut mover = Mover { batch: 2_000, budget: WIDE, cursor: -8_000 };
    for call in 1..=4 {
        assert_eq!(mover.call(&server, &script("TRANSFER")), 2_000, "call {call}");
    }
    assert_eq!(server.get::<usize, _>(["LLEN", ORDERED_LIST]), 4_000);
}

/// A list of long payloads may have more bytes than a call can read in its time.
#[test]
fn long_payloads_are_moved_without_reading_the_list() {
    let payload = vec![b'x'; 100_000];
    let mut all: Vec<u64> = (0..100).collect();
    fastrand::Rng::with_seed(1).shuffle(&mut all);
    let server = queue(all.into_iter().map(|n| (n, entry(n, &payload))));
    let mut mover = Mover { batch: 5_000, budget: WIDE, cursor: 0 };
    while server.get::<usize, _>(["ZCARD", TIMEOUT_SET]) > 0 {
        assert!(mover.call(&server, &script("TRANSFER")) > 0);
    }
    assert_eq!(server.server.command_calls("lrange"), 0);
    assert_eq!(server.get::<usize, _>(["LLEN", ORDERED_LIST]), 0);
}
