//! Processes that receive and are killed, stopped, or killed by what they handle. Others get their messages
//! when the leases end.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use redelay::worker::Backoff;
use redelay::{Worker, codec};
use redelay_fixture::{Program, Server, until, until_async};
use redelay_support::{CONTROL, HOUR, LEASES, MESSAGES, MINUTE, Queues, builder, ms, number_queues, soon};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::never_stuck::clock::Clock;
use super::never_stuck::variable;
use super::receivers::{count, dead_numbers, is_drained, until_drained};

/// The process ends what it has begun when something is in this list.
const END: &str = "end";

/// Receivers and handlers of a process of its own. The tests below start it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a part of another test, in a process of its own"]
async fn works() {
    let [url, lease, kind] =
        ["URL", "LEASE", "KIND"].map(|name| std::env::var(name).expect("started by a test"));
    let client = builder(&url).connect().await.unwrap();
    let queue = client.blocking_queue::<i64>("q", codec::Long);
    let worker = Worker::new(&queue).concurrency(64).lease(ms(lease.parse().unwrap()));
    let worker = worker.backoff(Backoff::fixed(ms(10)));
    match kind.as_str() {
        // A payload that kills its process, beside innocent ones.
        "poison" => {
            let handler = |number: i64| async move {
                sleep(ms(if number < 0 { 150 } else { 300 })).await;
                if number < 0 {
                    std::process::abort();
                }
            };
            worker.run_until(std::future::pending::<()>(), handler).await.unwrap();
        }
        // One message, by hand.
        "waits" => {
            let delivery = queue.receiver().lease(ms(lease.parse().unwrap())).receive().await.unwrap();
            println!("received");
            client.blocking_queue::<i64>(END, codec::Long).take().await.unwrap();
            println!("answer: {:?}", delivery.ack().await.map_err(|error| error.kind()));
        }
        _ => drop(worker.run_until(std::future::pending::<()>(), |_: i64| sleep(HOUR)).await),
    }
}

fn start(server: &Server, lease: u64, kind: &str) -> Program {
    let (url, lease) = (server.url(), lease.to_string());
    Program::start_ignored_test("dying::works", &[("URL", &url), ("LEASE", &lease), ("KIND", kind)])
}

/// Case 15: another process lives, and has the messages a lease after the death at the latest, and a little
/// more. A lease of half a minute, the default, is for a soak.
#[tokio::test]
async fn the_messages_of_a_killed_process_are_delivered_when_their_leases_end() {
    let leases = if variable("REDELAY_SOAK").is_some() { &[5_000, 30_000][..] } else { &[5_000] };
    for lease in leases {
        let server = Server::start();
        let (_client, ready, _) = number_queues(&server).await;
        let program = start(&server, *lease, "sleeps");
        ready.offer_all(&(0..64).collect::<Vec<_>>()).await.unwrap();
        until("64 handlers run", || count(&server, "ZCARD", LEASES) == 64);
        // This process lives all along.
        let receiver = ready.receiver().lease(ms(*lease));
        assert!(receiver.try_receive().await.unwrap().is_none());
        drop(program); // kill -9
        let killed = Instant::now();
        let mut numbers = BTreeSet::new();
        while numbers.len() < 64 {
            let delivery = soon(receiver.receive()).await.unwrap();
            assert_eq!(delivery.attempt(), 2);
            assert!(numbers.insert(*delivery.value()), "each once");
            delivery.ack().await.unwrap();
        }
        println!("lease {lease} ms: all are back after {:?}", killed.elapsed());
        let most = if variable("REDELAY_SOAK").is_some() { 15_000 } else { 120_000 };
        assert!(killed.elapsed() < ms(lease + most), "{:?}", killed.elapsed());
        assert!(is_drained(&server));
    }
}

/// Nobody has given a sign of life for longer than half a lease, so others may live and be about to extend
/// theirs.
#[tokio::test]
async fn a_process_that_comes_back_alone_waits_for_half_a_lease() {
    const LEASE: u64 = 3_000;
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    let program = start(&server, LEASE, "sleeps");
    ready.offer_all(&(0..8).collect::<Vec<_>>()).await.unwrap();
    until("8 handlers run", || count(&server, "ZCARD", LEASES) == 8);
    drop(program); // kill -9
    sleep(ms(LEASE + 100)).await;
    let begun = Instant::now();
    let receiver = ready.receiver().lease(ms(LEASE));
    for _ in 0..8 {
        let delivery = soon(receiver.receive()).await.unwrap();
        assert_eq!(delivery.attempt(), 2);
        delivery.ack().await.unwrap();
    }
    println!("lease {LEASE} ms: all are back after {:?}", begun.elapsed());
    let took = begun.elapsed();
    assert!(took >= ms(LEASE / 2) && took < ms(LEASE + 120_000), "{took:?}");
    assert!(is_drained(&server));
}

/// Case 25: what it says when it goes on has no effect.
#[tokio::test]
async fn a_process_that_is_stopped_for_two_leases_settles_nothing() {
    const LEASE: u64 = 1_000;
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    ready.put(&7).await.unwrap();
    let program = start(&server, LEASE, "waits");
    until("it is received", || program.output().contains("received"));
    program.freeze();
    // So that a busy machine does not end it.
    let receiver = ready.receiver().lease(ms(20 * LEASE));
    sleep(ms(2 * LEASE)).await;
    let again = soon(receiver.receive()).await.unwrap();
    assert_eq!((*again.value(), again.attempt()), (7, 2));
    program.thaw();
    server.cmd(["RPUSH", END, "1"]);
    until("it is acknowledged", || program.output().contains("answer"));
    assert!(program.output().contains("answer: Err(LeaseLost)"), "{}", program.output());
    assert_eq!((count(&server, "ZCARD", LEASES), count(&server, "HLEN", MESSAGES)), (1, 1), "it is ours");
    again.ack().await.unwrap();
    assert!(is_drained(&server));
}

/// Case 26.
#[tokio::test]
async fn a_payload_that_kills_its_process_ends_in_the_dead_letters_alone() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    let mut programs: Vec<Program> = (0..4).map(|_| start(&server, 1000, "poison")).collect();
    let mut numbers: Vec<i64> = (1..64).collect();
    numbers.insert(20, -1);
    ready.offer_all(&numbers).await.unwrap();
    until_async("all are handled, or dead", || {
        for program in &mut programs {
            if !program.is_running() {
                *program = start(&server, 1000, "poison");
            }
        }
        std::future::ready(is_drained(&server))
    })
    .await;
    let dead = dead_numbers(&ready).await;
    assert!(dead.contains(&-1), "{dead:?}");
    assert!(dead.len() <= 4, "innocent ones died: {dead:?}");
    let letters = ready.dead_letters().read(None, 9).await.unwrap();
    let poison = letters.iter().find(|letter| &letter.payload[..] == b"-1").unwrap();
    assert_eq!((poison.reason.as_str(), poison.lost), ("lost", 5));
}

/// A claim of a dead process is found after the clock was set back, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_set_back_leaves_no_lease_for_long() {
    let clock = Clock::start();
    let (_client, ready, _) = number_queues(&clock.server).await;
    ready.put(&7).await.unwrap();
    let program = start(&clock.server, 1000, "sleeps");
    until("it is handled", || count(&clock.server, "ZCARD", LEASES) == 1);
    drop(program); // kill -9
    let receiver = ready.receiver().lease(ms(1000));
    assert!(receiver.try_receive().await.unwrap().is_none());
    clock.set(-3600);
    let Ok(delivery) = timeout(3 * MINUTE, receiver.receive()).await else {
        let control: Vec<String> = clock.server.get(["HGETALL", CONTROL]);
        panic!("control {control:?}, leases {:?}", clock.server.zset(LEASES));
    };
    let delivery = delivery.unwrap();
    assert_eq!((*delivery.value(), delivery.attempt()), (7, 2));
    delivery.ack().await.unwrap();
}

/// Case 24: many receivers, many ended leases.
#[tokio::test(flavor = "multi_thread")]
async fn ended_leases_are_taken_back_once() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    let program = start(&server, 1000, "sleeps");
    ready.offer_all(&(0..64).collect::<Vec<_>>()).await.unwrap();
    until("they run", || count(&server, "ZCARD", LEASES) == 64);
    let (got, mut receiving) = (Arc::<Mutex<Vec<(i64, u32)>>>::default(), JoinSet::new());
    for _ in 0..16 {
        let queues = Queues::of_numbers(builder(&server).command_timeout(MINUTE)).await;
        let got = got.clone();
        receiving.spawn(async move {
            let receiver = queues.ready.receiver().lease(ms(1000));
            while let Ok(delivery) = receiver.receive().await {
                got.lock().unwrap().push((*delivery.value(), delivery.attempt()));
                delivery.ack().await.unwrap();
            }
        });
    }
    until_async("all are parked", || async { server.blocked_clients() == 16 }).await;
    drop(program); // kill -9
    until_drained(&server).await;
    let mut got = got.lock().unwrap().clone();
    got.sort_unstable();
    assert_eq!(got, (0..64).map(|number| (number, 2)).collect::<Vec<_>>(), "each once");
}
