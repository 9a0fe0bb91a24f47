//! Faults under load: every acknowledged payload is delivered once, and no process needs a restart. Each test
//! prints how long that took, even when it passes.
//!
//! One kind of loss is allowed, and counted: a payload that the server popped for a connection that died
//! before the reply arrived.

use std::io::Write;
use std::time::{Duration, Instant};

use redelay_fixture::{Server, until_async};
use redelay_support::{builder, ms, part};

use crate::ledger::{Offered, Price};
use crate::workload::{Crew, Load, Member, Producer, Taker, until_empty};

/// Like `println!`, but shown for passing tests, too.
macro_rules! report {
    ($($what:tt)+) => {{
        let _ = writeln!(std::io::stdout(), $($what)+);
    }};
}

/// The number of concurrent takers.
const TAKERS: usize = 4;

/// One client that offers, and one that takes. The names of their connections begin with `offers` and
/// `takes`.
async fn start(server: &Server, producers: usize) -> Load {
    // Long enough to wait for a reconnection, and short enough to give up on a silent server.
    let client = |name, producers: &[Producer], takers: &[Taker]| Member {
        command_timeout: ms(2000),
        ..Member::new(name, producers, takers)
    };
    let clients = vec![
        client("offers", &vec![Producer::Presses; producers], &[]),
        client("takes", &[], &[Taker::Takes; TAKERS]),
    ];
    Load::start(&Crew { seed: 0, backlog: 0, distant: Vec::new(), clients, others: 0 }, &server.url()).await
}

/// Stops offering, waits until the queue is empty, and checks that no more than `may_be_lost` payloads are
/// lost.
async fn finish(what: &str, mut load: Load, server: &Server, may_be_lost: usize) -> String {
    load.stop_offering().await;
    until_empty(server).await;
    // A payload in flight reaches its taker, or is returned before the shutdown ends.
    load.shut_down().await;
    load.ledger.took_what_is_left(server, &["q"]);
    let record = load.ledger.record();
    let verdict = record.judge(Price { dead_pops: may_be_lost, ..Price::default() });
    assert!(verdict.is_good(), "{what}: {verdict}");
    assert_eq!(record.failed_takes, 0, "{what}: a take has failed, though it waits for connections");
    let count = |offered| record.count(offered);
    format!(
        "{} offers acknowledged, {} unknown, {} refused, {} lost",
        count(Offered::Acknowledged),
        count(Offered::Unknown),
        count(Offered::Refused),
        verdict.lost.len(),
    )
}

/// The ids of the clients whose line in CLIENT LIST is wanted.
fn clients(server: &Server, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let list: String = server.get(["CLIENT", "LIST"]);
    let id = |line: &str| line.split(' ').find_map(|field| field.strip_prefix("id=")).map(str::to_owned);
    list.lines().filter(|line| wanted(line)).filter_map(id).collect()
}

fn is_subscriber(line: &str) -> bool {
    !line.contains(" sub=0 ")
}

fn is_blocking(line: &str) -> bool {
    line.contains(" cmd=blpop")
}

/// Kills connections of one kind repeatedly under load. Each kill may lose `cost` payloads. Only a connection
/// with a parked pop may lose a payload, and then only one.
async fn kill_repeatedly(
    what: &str,
    wanted: impl Fn(&str) -> bool,
    producers: usize,
    times: usize,
    cost: usize,
) {
    let times = part().share(times);
    let server = Server::start();
    let load = start(&server, producers).await;
    load.goes_on(100).await;
    let (mut killed, mut recovery) = (0, Vec::new());
    while killed < times {
        for id in clients(&server, |line| line.contains(" name=") && wanted(line)) {
            let gone: usize = server.get(["CLIENT", "KILL", "ID", &id]);
            killed += gone;
        }
        recovery.push(load.goes_on(20).await);
    }
    let outcome = finish(what, load, &server, killed * cost).await;
    recovery.sort();
    report!(
        "{what}: {killed} kills, {outcome}; going on after {:?} (median), {:?} (max)",
        recovery[recovery.len() / 2],
        recovery[recovery.len() - 1],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_command_connections() {
    let commands = |line: &str| line.contains(" name=offers") && !is_subscriber(line) && !is_blocking(line);
    kill_repeatedly("commands", commands, 4, 200, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_takers_command_connection() {
    let commands = |line: &str| line.contains(" name=takes") && !is_subscriber(line) && !is_blocking(line);
    kill_repeatedly("takers' commands", commands, 4, 100, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_blocking_connection() {
    kill_repeatedly("blocking pops", is_blocking, 1, 200, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_subscribers() {
    kill_repeatedly("subscribers", is_subscriber, 4, 200, 0).await;
}

/// Runs one fault in the middle of a load. `deaths` is how often the fault ends the connection with the
/// parked pop.
async fn survives(what: &str, server: Server, deaths: usize, fault: impl AsyncFnOnce(&Server, &Load)) {
    let load = start(&server, 4).await;
    load.goes_on(200).await;
    let begun = Instant::now();
    fault(&server, &load).await;
    let took = begun.elapsed();
    let recovery = load.goes_on(200).await;
    let outcome = finish(what, load, &server, deaths).await;
    report!("{what}: took {took:?}, going on {recovery:?} after it; {outcome}");
}

#[tokio::test(flavor = "multi_thread")]
async fn script_flush() {
    survives("script flush", Server::start(), 0, async |server, load| {
        for _ in 0..50 {
            server.flush_scripts();
            load.goes_on(20).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_server() {
    survives("client pause", Server::start(), 0, async |server, load| {
        for _ in 0..3 {
            server.pause(Duration::from_millis(300));
            load.goes_on(20).await;
        }
    })
    .await;
}

/// Redis 7.0.15 crashes on a `CLIENT UNBLOCK` for a client whose pop it holds back while writes are paused,
/// for example by a failover. So redelay never interrupts a pop that may be held back.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_paused_for_writes() {
    survives("pause of writes", Server::start(), 0, async |server, load| {
        let client = builder(server).connect().await.unwrap();
        let stop = tokio_util::sync::CancellationToken::new();
        // Takers that come and go. Each of them may interrupt the pop of the others.
        let takers: Vec<_> = (0..8)
            .map(|n| {
                let ready = client.blocking_queue::<String>(&format!("other-{n}"), redelay::codec::String);
                let poll = async move {
                    loop {
                        let _ = ready.poll_timeout(Duration::from_millis(fastrand::u64(..30))).await;
                    }
                };
                tokio::spawn(stop.clone().run_until_cancelled_owned(poll))
            })
            .collect();
        for _ in 0..20 {
            server.cmd(["CLIENT", "PAUSE", "150", "WRITE"]);
            load.goes_on(20).await;
        }
        stop.cancel();
        for taker in takers {
            taker.await.unwrap();
        }
        client.shutdown().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_server() {
    survives("frozen server", Server::start(), 1, async |server, load| {
        let count = |offered| load.ledger.record().count(offered);
        let before = count(Offered::Acknowledged);
        server.freeze();
        // Longer than the command timeout, so every offer in flight is given up.
        until_async("offers fail", || async { count(Offered::Unknown) + count(Offered::Refused) >= 4 }).await;
        server.thaw();
        assert!(count(Offered::Acknowledged) <= before + 8, "acknowledged by a frozen server");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn restart_with_aof() {
    let server = Server::builder().appendonly(true).start();
    let load = start(&server, 4).await;
    let mut recovery = Vec::new();
    for _ in 0..5 {
        load.goes_on(200).await;
        server.restart();
        recovery.push(load.goes_on(50).await);
    }
    for _ in 0..3 {
        load.goes_on(200).await;
        server.kill_9();
        server.start_again();
        recovery.push(load.goes_on(50).await);
    }
    // Every connection died eight times, including the one with the parked pop.
    let outcome = finish("restart with AOF", load, &server, 8).await;
    report!("restart with AOF: going on after {recovery:?}; {outcome}");
}
