//! Draining long lists in random order: several calls share one pass over the list, alone and while others
//! change it.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use futures::future::join_all;
use futures::{StreamExt, stream};
use redelay::client::ClientBuilder;
use redelay::delayed_queue::Ticket;
use redelay::{BlockingQueue, Client, DelayedQueue, codec};
use redelay_fixture::{Server, until_async};
use redelay_support::{patient_builder, still_text_queues};

use super::reads::Monitor;

const NUMBER: i64 = 20_000;

fn client(server: &Server) -> ClientBuilder {
    patient_builder(&server)
}

/// A call so short that one pass takes dozens of them.
fn mover(server: &Server, batch: u32, budget: Duration) -> ClientBuilder {
    client(server).transfer_batch(batch).transfer_budget(budget)
}

/// Fills a queue that no client transfers. Entry `n` is due `n` ms after the first one, and all are long
/// overdue.
async fn fill(server: &Server) -> (Client, BlockingQueue<i64>, DelayedQueue<i64>, HashMap<i64, Ticket>) {
    let still = client(server).transfer(false).connect().await.unwrap();
    let ready = still.blocking_queue("q", codec::Long);
    let delayed = still.delayed_queue(&ready);
    let first = SystemTime::now() - Duration::from_secs(3600);
    let mut numbers: Vec<i64> = (0..NUMBER).collect();
    fastrand::Rng::with_seed(7).shuffle(&mut numbers);
    let tickets = stream::iter(numbers)
        .map(|n| {
            let delayed = delayed.clone();
            async move { (n, delayed.offer_at(&n, first + Duration::from_millis(n as u64)).await.unwrap()) }
        })
        .buffer_unordered(256)
        .collect()
        .await;
    (still, ready, delayed, tickets)
}

async fn until_moved(delayed: &DelayedQueue<i64>) {
    until_async("all is moved", || async { delayed.stats().await.unwrap().pending == 0 }).await;
    assert_eq!(delayed.len().await.unwrap(), 0, "nothing is left in the list");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_pass_for_many_calls_keeps_the_order() {
    let server = Server::start();
    let (_still, ready, delayed, _) = fill(&server).await;
    let client = mover(&server, 7_000, Duration::from_millis(1)).connect().await.unwrap();
    let _moving = client.delayed_queue(&client.blocking_queue("q", codec::Long));
    let empty = Cell::new(0);
    until_async("all is moved and counted", || async {
        let seen = client.stats().empty_transfers;
        let is_over = client.stats().transferred >= NUMBER as u64;
        if !is_over {
            empty.set(seen);
        }
        is_over
    })
    .await;
    until_moved(&delayed).await;
    assert_eq!(ready.read_all().await.unwrap(), (0..NUMBER).collect::<Vec<_>>());
    let stats = client.stats();
    println!("{} transfers", stats.transfers);
    // One pass per call would take 20 calls of at least 1 ms. Each call has to continue where the last one
    // stopped.
    assert_eq!((stats.transferred, empty.into_inner()), (NUMBER as u64, 0), "{stats:?}");
    // The subscription to the transfers of peers may be confirmed during the last call; another one follows.
    assert!(stats.empty_transfers <= 1, "{stats:?}");
}

/// Even when the positions that one call passes to the next are out of date, each entry is delivered or
/// removed once.
#[tokio::test(flavor = "multi_thread")]
async fn others_may_change_the_list_in_between() {
    // Transfers are fast, so that a round may see few changes, or none.
    let (mut gone, mut late, mut rounds) = (0, 0, 0);
    while gone <= 10 || late <= 10 {
        let changes = change_the_list_in_between().await;
        (gone, late, rounds) = (gone + changes.0, late + changes.1, rounds + 1);
        assert!(
            rounds < 30,
            "{gone} taken out, {late} put in: they were too fast for this test to show anything"
        );
    }
}

/// Returns how many entries the others have taken out and put in.
async fn change_the_list_in_between() -> (usize, usize) {
    let server = Server::start();
    let (_still, ready, delayed, tickets) = fill(&server).await;
    let mut clients = Vec::new();
    for (batch, budget) in [(3_000, 1), (500, 2), (10_000, 3)] {
        let client = mover(&server, batch, Duration::from_millis(budget)).connect().await.unwrap();
        let moving = client.delayed_queue(&client.blocking_queue::<i64>("q", codec::Long));
        clients.push((client, moving));
    }
    let (gone, late) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    // The last due entries, which are still pending. Removes some behind the found position and some in front
    // of it.
    let change = async |n: i64| match n % 4 {
        0 if delayed.cancel(&tickets[&n]).await.unwrap() => gone.lock().unwrap().push(n),
        // First by due time, and last in the list.
        1 => {
            delayed.offer_at(&(NUMBER + n), SystemTime::UNIX_EPOCH).await.unwrap();
            late.lock().unwrap().push(NUMBER + n);
        }
        2 => drop(delayed.reschedule(&tickets[&n], Duration::ZERO).await.unwrap()),
        3 => {
            let polled = delayed.poll().await.unwrap();
            gone.lock().unwrap().extend(polled);
        }
        _ => {}
    };
    for numbers in (0..NUMBER).rev().collect::<Vec<_>>().chunks(16) {
        join_all(numbers.iter().map(|n| change(*n))).await;
        if delayed.is_empty().await.unwrap() {
            break;
        }
    }
    let (gone, late) = (gone.into_inner().unwrap(), late.into_inner().unwrap());
    println!("{} taken out, {} put in while the others moved", gone.len(), late.len());
    let changes = (gone.len(), late.len());
    until_moved(&delayed).await;
    let mut all = ready.read_all().await.unwrap();
    all.extend(gone);
    all.sort_unstable();
    let mut expected: Vec<i64> = (0..NUMBER).chain(late).collect();
    expected.sort_unstable();
    assert!(all == expected, "{} instead of {}", all.len(), expected.len());
    let moved: u64 = clients.iter().map(|(client, _)| client.stats().transferred).sum();
    assert_eq!(moved as usize, ready.len().await.unwrap());
    changes
}

/// `LSET` walks to each of them from the nearer end, so a call marks fewer where that is far.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_far_from_both_ends_is_removed_in_small_parts() {
    const LENGTH: usize = 400_000;
    const COUNT: usize = 6_000;
    let server = Server::start();
    let (_client, ready, _delayed) = still_text_queues(&server).await;
    let fill = "for n = 1, ARGV[1] do redis.call('RPUSH', KEYS[1], ARGV[2] ~= '' and ARGV[2] or n) end";
    for (count, what) in [(LENGTH / 2, ""), (COUNT, "far"), (LENGTH / 2, ""), (COUNT, "near")] {
        server.cmd(["EVAL", fill, "1", "q", &count.to_string(), what]);
    }
    for (what, most) in [("far", 2_050), ("near", COUNT)] {
        let before: usize = server.get(["LLEN", "q"]);
        let monitor = Monitor::start(&server);
        assert!(ready.remove_all([&what.to_owned()]).await.unwrap());
        let calls = monitor.end(&server);
        let marks = |call: &Vec<String>| call.iter().filter(|command| command.starts_with("\"LSET")).count();
        let marks = calls.iter().map(marks).max().unwrap();
        println!("{what}: {} calls, {marks} marks at most", calls.len());
        // One more shows that it is permitted.
        assert!((most / 2..=most + 1).contains(&marks), "{marks} of {most}");
        assert_eq!(before - server.get::<usize, _>(["LLEN", "q"]), COUNT);
    }
}
