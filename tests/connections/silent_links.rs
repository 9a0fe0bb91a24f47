//! Connections that have gone silent, and neither side was told.

use std::time::{Duration, Instant};

use redelay::{ErrorKind, codec};
use redelay_fixture::{Proxy, Server, until_async, until_async_within};
use redelay_support::{HOUR, MINUTE, Queues, builder, ms, soon, still_builder};
use tokio::time::sleep;

/// Longer than a connection may be idle before it is tested.
const IDLE: Duration = Duration::from_secs(31);

/// The text of the script that transfers has 13 KB. A slow link would need a while for it, but not for ever.
#[tokio::test]
async fn a_connection_that_is_mute_behind_a_long_script_is_given_up() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let queues = Queues::of_numbers(builder(&proxy)).await;
    let producer = Queues::of_numbers(still_builder(&server)).await;
    queues.delayed.offer(&1, ms(1)).await.unwrap();
    assert_eq!(soon(queues.ready.take()).await.unwrap(), 1);
    proxy.swallow_behind(Some(12_000));
    server.flush_scripts();
    producer.delayed.offer(&2, ms(1)).await.unwrap();
    let begun = Instant::now();
    until_async("the script is sent", || async { proxy.swallowing() == 1 }).await;
    proxy.swallow_behind(None);
    // The other caller is not kept waiting, either.
    let is_over = || async { queues.ready.len().await.is_ok() && server.list("q").len() == 1 };
    until_async_within(Duration::from_secs(25), "it is moved", is_over).await;
    println!("given up after {:?}", begun.elapsed());
    assert_eq!(soon(queues.ready.take()).await.unwrap(), 2);
}

/// For a caller that never waits for long, a test in the background gives the connection up.
#[tokio::test]
async fn a_mute_connection_is_given_up_though_its_callers_are_in_a_hurry() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let queues = Queues::of_numbers(still_builder(&proxy)).await;
    let hasty = queues.client.with_timeout(ms(300)).blocking_queue("q", codec::Long);
    hasty.len().await.unwrap();
    proxy.swallow_behind(Some(500));
    assert!(hasty.stats().await.is_err());
    proxy.swallow_behind(None);
    until_async_within(Duration::from_secs(30), "it answers again", || async { hasty.len().await.is_ok() })
        .await;
}

/// A network that forgets idle connections: what is sent on them vanishes. The first call after that works.
#[tokio::test]
async fn the_first_call_after_a_silent_drop_works() {
    let server = Server::start();
    let calls = async |which: usize| {
        let proxy = Proxy::start(server.port());
        let queues = Queues::of_numbers(still_builder(&proxy).client_name("idle")).await;
        let name = format!("q{which}");
        let ready = queues.client.blocking_queue(&name, codec::Long);
        let delayed = queues.client.delayed_queue(&ready);
        // The scripts are known from here on.
        delayed.offer(&1, HOUR).await.unwrap();
        ready.stats().await.unwrap();
        ready.put(&1).await.unwrap();
        // What the client does by itself is done.
        let is_receipt = |key: &Vec<u8>| key.starts_with(b"redelay:offered:");
        until_async("no receipt is left", || async { !server.keys().iter().any(is_receipt) }).await;
        sleep(ms(2_000)).await;
        let accepted = proxy.accepted();
        proxy.strand();
        sleep(IDLE).await;
        let begun = Instant::now();
        assert_eq!(proxy.accepted(), accepted, "nobody has noticed it yet");
        match which {
            0 => ready.put(&2).await.unwrap(),
            1 => drop(delayed.offer(&2, HOUR).await.unwrap()),
            2 => drop(ready.stats().await.unwrap()),
            3 => assert_eq!(ready.poll().await.unwrap(), Some(1)),
            _ => {
                let hasty = queues.client.with_timeout(ms(500)).blocking_queue(&name, codec::Long);
                let mut failures = 0;
                while let Err(error) = hasty.put(&2).await {
                    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
                    failures += 1;
                }
                // Once, on a machine that is not busy.
                assert!(failures <= 3, "{failures}");
            }
        }
        println!("call {which}: {:?}", begun.elapsed());
    };
    futures::future::join_all((0..5).map(calls)).await;
}

/// Nobody calls: the connections are tested all the same, each kind, and replaced.
#[tokio::test]
async fn idle_connections_are_tested() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let queues = Queues::of_numbers(still_builder(&proxy).client_name("idle")).await;
    // One for pops is left behind.
    assert_eq!(queues.ready.poll_timeout(ms(10)).await.unwrap(), None);
    sleep(ms(1_000)).await;
    let accepted = proxy.accepted();
    proxy.strand();
    until_async_within(MINUTE, "both are replaced", || async { proxy.accepted() == accepted + 2 }).await;
    until_async("they are back", || async { queues.client.stats().connected }).await;
    server.cmd(["RPUSH", "q", "7"]);
    assert_eq!(soon(queues.ready.take()).await.unwrap(), 7);
}

/// While a connection is in use, nothing is sent for its sake; and one that is idle gets two commands a minute.
#[tokio::test]
async fn a_test_is_rare() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let busy = Queues::of_numbers(still_builder(&proxy)).await;
    let idle = Queues::of_numbers(still_builder(&server)).await;
    let accepted = proxy.accepted();
    let begun = Instant::now();
    let before = server.command_calls("ping");
    while begun.elapsed() < Duration::from_secs(35) {
        busy.ready.len().await.unwrap();
        sleep(ms(500)).await;
    }
    assert_eq!(server.command_calls("ping") - before, 1, "of the idle one");
    assert_eq!(proxy.accepted(), accepted);
    drop(idle);
}
