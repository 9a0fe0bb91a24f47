//! Connections that are slow, or have gone silent, and neither side was told.
//!
//! Times are those of the test's own runtime, which a busy machine does not lengthen: see `slowly`.

use std::time::Duration;

use futures::future::join_all;
use redelay::{ErrorKind, codec};
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{HOUR, Queues, builder, leap, ms, slowly, soon, still_builder};
use tokio::time::{Instant, sleep};

/// Longer than a connection may be idle before it is tested.
const IDLE: Duration = Duration::from_secs(31);
/// The default of `command_timeout`: how long a connection may be silent when a reply is due.
const PATIENCE: Duration = Duration::from_secs(5);
/// No connection is silent for longer, whatever is sent on it.
const SILENT: Duration = Duration::from_secs(13);

/// A client behind a proxy that has transferred once, so that the server knows its scripts; and one beside it
/// that offers.
async fn transferring(command_timeout: Duration) -> (Server, Proxy, Queues<i64>, Queues<i64>) {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let queues = Queues::of_numbers(builder(&proxy).command_timeout(command_timeout)).await;
    let producer = Queues::of_numbers(still_builder(&server)).await;
    queues.delayed.offer(&1, ms(1)).await.unwrap();
    assert_eq!(soon(queues.ready.take()).await.unwrap(), 1);
    (server, proxy, queues, producer)
}

/// This number of connections is replaced after this silence, a second later at the latest.
async fn replaced_after(silence: Duration, proxy: &Proxy, count: usize) {
    let accepted = proxy.accepted();
    // What waits for an answer has been sent by then.
    slowly(sleep(ms(20))).await;
    leap(silence).await;
    let begun = Instant::now();
    slowly(until_async("a new connection", || async { proxy.accepted() >= accepted + count })).await;
    assert!(begun.elapsed() < ms(1_000), "{:?} later", begun.elapsed());
    assert_eq!(proxy.accepted(), accepted + count);
}

/// After a restart or a `SCRIPT FLUSH` the server knows no script, and the one that transfers has 13 KB.
#[tokio::test]
async fn what_is_due_moves_on_a_slow_link_after_the_server_has_forgotten_the_scripts() {
    let (server, proxy, queues, producer) = transferring(ms(5_000)).await;
    proxy.delay(ms(200));
    // On a link that takes longer than a connection may be silent, the first try is in vain, and the second
    // has more time. A machine that is held up may cost one more: without more time, it would be all of them.
    for (n, speed, lost) in [(2, 2000, 1), (3, 2000, 1), (4, 1000, 2)] {
        proxy.throttle(speed);
        server.flush_scripts();
        let accepted = proxy.accepted();
        producer.delayed.offer(&n, ms(1)).await.unwrap();
        until_async("it is moved", || async { server.list("q").len() == 1 }).await;
        assert_eq!(soon(queues.ready.take()).await.unwrap(), n);
        let given_up = proxy.accepted() - accepted;
        assert!(given_up <= lost, "at {speed} bytes a second, {given_up} connections were given up");
    }
}

/// A slow link would need a while for the script, but not for ever.
#[tokio::test]
async fn a_connection_that_is_mute_behind_a_long_script_is_given_up() {
    let (server, proxy, queues, producer) = transferring(ms(5_000)).await;
    proxy.swallow_behind(Some(12_000));
    server.flush_scripts();
    producer.delayed.offer(&2, ms(1)).await.unwrap();
    until_async("the script is sent", || async { proxy.swallowing() == 1 }).await;
    proxy.swallow_behind(None);
    replaced_after(SILENT, &proxy, 1).await;
    // The other caller is not kept waiting, either.
    until_async("it answers", || async { queues.ready.len().await.is_ok() }).await;
    assert_eq!(soon(queues.ready.take()).await.unwrap(), 2);
}

/// More time for a script is no more time for a server that is gone.
#[tokio::test]
async fn a_silent_server_is_noticed_when_the_script_was_loaded() {
    let (server, proxy, queues, _producer) = transferring(ms(1_000)).await;
    server.flush_scripts();
    queues.delayed.offer(&2, ms(1)).await.unwrap();
    assert_eq!(soon(queues.ready.take()).await.unwrap(), 2);
    // Replies come in their order: none is missing.
    queues.ready.len().await.unwrap();
    proxy.strand();
    let hasty = queues.client.with_timeout(ms(50)).blocking_queue("q", codec::Long);
    assert!(hasty.len().await.is_err());
    replaced_after(ms(1_000), &proxy, 1).await;
    until_async("it answers", || async { queues.ready.len().await.is_ok() }).await;
}

/// For a caller that never waits for long, a test in the background gives the connection up.
#[tokio::test]
async fn a_mute_connection_is_given_up_though_its_callers_are_in_a_hurry() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let queues = Queues::of_numbers(still_builder(&proxy).command_timeout(PATIENCE)).await;
    let hasty = queues.client.with_timeout(ms(300)).blocking_queue("q", codec::Long);
    until_async("it answers", || async { hasty.len().await.is_ok() }).await;
    proxy.swallow_behind(Some(500));
    assert!(hasty.stats().await.is_err());
    proxy.swallow_behind(None);
    replaced_after(SILENT, &proxy, 1).await;
    until_async("it answers again", || async { hasty.len().await.is_ok() }).await;
}

/// A network that forgets idle connections: what is sent on them vanishes. The first call after that works
/// within 2 s, on a new connection; one that has only 500 ms fails at most once.
#[tokio::test]
async fn the_first_call_after_a_silent_drop_works() {
    let server = Server::start();
    let clients = join_all((0..5).map(async |which| {
        let proxy = Proxy::start(server.port());
        let Queues { client, .. } = Queues::of_numbers(still_builder(&proxy)).await;
        let ready = client.blocking_queue(&format!("q{which}"), codec::Long);
        let delayed = client.delayed_queue(&ready);
        // The scripts are known from here on.
        delayed.offer(&1, HOUR).await.unwrap();
        ready.stats().await.unwrap();
        ready.put(&1).await.unwrap();
        (which, proxy, client, ready, delayed)
    }))
    .await;
    // What the clients do by themselves is done.
    leap(ms(2_000)).await;
    let is_receipt = |key: &Vec<u8>| key.starts_with(b"redelay:offered:");
    until_async("no receipt is left", || async { !server.keys().iter().any(is_receipt) }).await;
    for (_, proxy, _, ready, _) in &clients {
        // Replies come in their order: none is missing.
        ready.len().await.unwrap();
        proxy.strand();
    }
    leap(IDLE).await;
    let calls = clients.iter().map(async |(which, proxy, client, ready, delayed)| {
        let accepted = proxy.accepted();
        let begun = Instant::now();
        match which {
            0 => ready.put(&2).await.unwrap(),
            1 => drop(delayed.offer(&2, HOUR).await.unwrap()),
            2 => drop(ready.stats().await.unwrap()),
            3 => assert_eq!(ready.poll().await.unwrap(), Some(1)),
            _ => {
                let hasty = client.with_timeout(ms(500)).blocking_queue(ready.name(), codec::Long);
                if let Err(error) = hasty.put(&2).await {
                    let kinds = [ErrorKind::Unavailable, ErrorKind::OutcomeUnknown];
                    assert!(kinds.contains(&error.kind()), "{error}");
                    hasty.put(&2).await.expect("it fails at most once");
                }
            }
        }
        let took = begun.elapsed();
        assert!(took < ms(2_000), "call {which} took {took:?}");
        assert_eq!(proxy.accepted(), accepted + 1, "call {which}");
    });
    slowly(join_all(calls)).await;
}

/// Nobody calls: the connections are tested all the same, each kind, and replaced.
#[tokio::test]
async fn idle_connections_are_tested() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let queues = Queues::of_numbers(still_builder(&proxy).command_timeout(PATIENCE)).await;
    // One for pops is left behind.
    assert_eq!(queues.ready.poll_timeout(ms(10)).await.unwrap(), None);
    until_async("the pop has ended", || async { server.blocked_clients() == 0 }).await;
    // Its reply has arrived.
    slowly(sleep(ms(50))).await;
    proxy.strand();
    leap(IDLE).await;
    replaced_after(PATIENCE, &proxy, 2).await;
    until_async("they are back", || async { queues.client.stats().connected }).await;
    server.cmd(["RPUSH", "q", "7"]);
    assert_eq!(soon(queues.ready.take()).await.unwrap(), 7);
}

/// While a connection is in use, nothing is sent for its sake; and one that is idle gets two commands a
/// minute.
#[tokio::test]
async fn a_test_is_rare() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let busy = Queues::of_numbers(still_builder(&proxy)).await;
    let _idle = Queues::of_numbers(still_builder(&server)).await;
    let (accepted, before) = (proxy.accepted(), server.command_calls("ping"));
    for _ in 0..70 {
        leap(ms(500)).await;
        busy.ready.len().await.unwrap();
    }
    until_async("the idle one is tested", || async { server.command_calls("ping") == before + 1 }).await;
    assert_eq!(proxy.accepted(), accepted);
}
