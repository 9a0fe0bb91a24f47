//! Many processes on one queue. One of them transfers for all. When it stops, another one takes over.

use std::time::{Duration, Instant, SystemTime};

use redelay::{BlockingQueue, DelayedQueue, codec};
use redelay_fixture::{Program, Server, until, until_async};
use redelay_support::{builder, still_builder};

const PROCESSES: usize = 16;
/// Longer than the other tests in this binary take.
const PATIENCE: Duration = Duration::from_secs(900);
/// The interval between due times.
const GAP: Duration = Duration::from_millis(60);

/// A process that transfers the queue. The test below starts it.
#[tokio::test]
#[ignore = "a part of another test, in a process of its own"]
async fn watches() {
    let [url, name] = ["URL", "NAME"].map(|name| std::env::var(name).expect("started by a test"));
    let client = builder(&url).client_name(name).connect().await.unwrap();
    let _delayed = client.delayed_queue(&client.blocking_queue("q", codec::Long));
    std::future::pending::<()>().await;
}

fn name(process: usize) -> String {
    format!("watcher-{process:02}")
}

/// The number of subscribed processes. (`PUBSUB NUMSUB` of Valkey 9.1.2 answers with a number of nine digits
/// here.)
fn watching(server: &Server) -> usize {
    let clients: String = server.get(["CLIENT", "LIST"]);
    clients.lines().filter(|client| client.contains(" name=watcher-") && client.contains(" sub=1 ")).count()
}

/// The process whose command connection was used last.
fn leader(server: &Server) -> usize {
    let clients: String = server.get(["CLIENT", "LIST"]);
    let mut idle: Vec<(u64, usize)> = Vec::new();
    for client in clients.lines().filter(|client| client.contains(" cmd=evalsha")) {
        let field = |name: &str| client.split(' ').find_map(|field| field.strip_prefix(name));
        if let (Some(name), Some(seconds)) = (field("name=watcher-"), field("idle=")) {
            idle.push((seconds.parse().unwrap(), name.parse().unwrap()));
        }
    }
    idle.sort_unstable();
    idle[0].1
}

/// Offers `number` entries, each due a little later than the one before, and takes them. Returns how late
/// each was.
async fn deliver(ready: &BlockingQueue<i64>, delayed: &DelayedQueue<i64>, number: i64) -> Vec<Duration> {
    let first = SystemTime::now() + GAP * 5;
    let dues: Vec<SystemTime> = (0..number).map(|n| first + GAP * n as u32).collect();
    for (n, due) in (0..).zip(&dues) {
        delayed.offer_at(&n, *due).await.unwrap();
    }
    let mut late = Vec::new();
    for (n, due) in (0..).zip(&dues) {
        assert_eq!(ready.take().await.unwrap(), n);
        late.push(due.elapsed().unwrap_or_default());
    }
    late
}

#[tokio::test]
async fn one_call_for_each_due_entry_and_another_takes_over() {
    let server = Server::start();
    let url = server.url();
    let mut programs: Vec<_> = (0..PROCESSES)
        .map(|process| {
            Program::start_ignored_test("processes::watches", &[("URL", &url), ("NAME", &name(process))])
        })
        .collect();
    until("all watch", || watching(&server) == PROCESSES);
    let client = still_builder(&url).connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    let delayed = client.delayed_queue(&ready);
    deliver(&ready, &delayed, 30).await;

    const NUMBER: i64 = 50;
    let mut fewest = u64::MAX;
    // Other programs and tests on the machine delay wake-ups, which can only add calls. So this repeats until
    // one round is undisturbed.
    let patience = Instant::now();
    while patience.elapsed() < PATIENCE {
        let (before, begun) = (server.command_calls("evalsha"), Instant::now());
        let late = deliver(&ready, &delayed, NUMBER).await;
        // Offers, and an occasional sweep, are calls, too.
        let sweeps = PROCESSES as u64 * (1 + begun.elapsed().as_secs() / 60);
        let calls = server.command_calls("evalsha") - before - NUMBER as u64 - sweeps.min(PROCESSES as u64);
        println!(
            "{PROCESSES} processes: {calls} calls for {NUMBER} entries; late by {:?} at most",
            late.iter().max()
        );
        fewest = fewest.min(calls);
        if fewest <= 2 * NUMBER as u64 {
            break;
        }
    }
    assert!(fewest <= 2 * NUMBER as u64, "{fewest} calls for {NUMBER} entries");

    for kill in [false, true] {
        let leader = leader(&server);
        if kill {
            // Dropping it kills it.
            programs[leader] = Program::start_ignored_test("none of this name", &[]);
        } else {
            programs[leader].freeze();
        }
        let late = deliver(&ready, &delayed, 20).await;
        let what = if kill { "killed" } else { "stopped" };
        println!(
            "the one that moved is {what}: the next entries are late by {:?}, then {:?}",
            late[0],
            late.iter().skip(1).max()
        );
        // Without the others, the next sweep would bring them.
        assert!(late.iter().all(|late| *late < Duration::from_secs(30)));
        programs[leader].thaw();
    }
    until_async("nothing is left", || async { delayed.is_empty().await.unwrap() }).await;
}
