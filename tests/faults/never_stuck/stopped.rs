//! A client whose process is stopped (`SIGSTOP`) while it works, and continued later.

use std::time::Duration;

use redelay::codec;
use redelay_fixture::{
    ClientKind, Program, Proxy, Server, until, until_async, until_async_within, until_within,
};
use redelay_support::{MINUTE, builder};

use super::rig::{BOUND, finish};
use super::variable;
use crate::ledger::{Offered, Record};
use crate::workload::{Crew, Load, until_empty};

/// The child ends when something is in this list.
const END: &str = "end";
/// A parked pop lasts 10 s, and the client waits 3 s more for its reply.
const LONGER_THAN_A_POP: Duration = Duration::from_secs(15);
/// Enough takers that some reach their timeout before the connection's task reads the reply.
const TAKERS: usize = 50;
/// Pushes for each taker, if all of them have a pop that blocks at this moment. Returns whether they have.
const PUSH: &str = "
    local takers = tonumber(ARGV[1])
    local blocked = string.match(redis.call('INFO', 'clients'), 'blocked_clients:(%d+)')
    if tonumber(blocked) ~= takers then
        return 0
    end
    for n = 0, takers - 1 do
        redis.call('RPUSH', 'q' .. n, 'payload ' .. n)
    end
    return 1";
/// The first number of the child's offers.
const CHILDS: i64 = 1_000_000;

/// Runs in the stopped process: offers and takes like the others until it is asked to end, and then prints
/// its record.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "runs as a process of its own"]
async fn child() {
    let url = std::env::var("REDELAY_CHILD").expect("the address of the server");
    let mut crew = Crew::of_two();
    crew.clients.truncate(1);
    let mut load = Load::start_at(CHILDS, &crew, &url).await;
    println!("works");
    let client = builder(&url).command_timeout(MINUTE).connect().await.unwrap();
    client.blocking_queue::<i64>(END, codec::Long).take().await.unwrap();
    load.stop_offering().await;
    println!("has stopped offering");
    client.blocking_queue::<i64>(END, codec::Long).take().await.unwrap();
    load.shut_down().await;
    client.shutdown().await;
    let record = load.ledger.record();
    for (number, offered) in &record.offered {
        let gone = record.cancelled.contains(number);
        let perhaps = record.perhaps_cancelled.contains(number);
        let what = match offered {
            // Its outcome is unknown, as that of an offer without a result.
            Offered::Acknowledged if perhaps => "Unknown",
            Offered::Acknowledged if !gone => "Acknowledged",
            Offered::Unknown | Offered::Begun => "Unknown",
            _ => "Refused",
        };
        println!("{what} {number}");
    }
    for number in &record.taken {
        println!("taken {number}");
    }
}

/// Adds the record that the child has printed.
fn read(output: &str, record: &mut Record) {
    let words = output.lines().filter_map(|line| line.split_once(' '));
    for (what, number) in words.filter_map(|(what, number)| Some((what, number.parse().ok()?))) {
        let offered = match what {
            "Acknowledged" => Offered::Acknowledged,
            "Unknown" => Offered::Unknown,
            "Refused" => Offered::Refused,
            "taken" => {
                record.taken.push(number);
                continue;
            }
            _ => continue,
        };
        record.offered.insert(number, offered);
    }
}

/// Three seconds are longer than the command timeout. Thirty seconds, in a soak, are longer than every
/// timeout.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_stopped_for_a_while() {
    let stopped = Duration::from_secs(if variable("REDELAY_SOAK").is_some() { 30 } else { 3 });
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let child =
        Program::start_ignored_test("never_stuck::stopped::child", &[("REDELAY_CHILD", &proxy.url())]);
    let prints = async |what: &str| {
        until_async_within(BOUND, what, || async { child.output().contains(what) || !child.is_running() })
            .await;
        assert!(child.output().contains(what), "{}", child.output());
    };
    prints("works").await;
    let mut load = Load::start(&Crew::of_two(), &proxy.url()).await;
    load.goes_on(50).await;
    child.freeze();
    load.goes_on(50).await;
    tokio::time::sleep(stopped).await;
    load.goes_on(50).await;
    child.thaw();
    load.goes_on(50).await;
    load.stop_offering().await;
    server.cmd(["RPUSH", END, "1"]);
    prints("has stopped offering").await;
    tokio::time::timeout(BOUND, until_empty(&server)).await.expect("everything is taken");
    server.cmd(["RPUSH", END, "2"]);
    until_async_within(BOUND, "the child ends", || async { !child.is_running() }).await;
    read(&child.output(), &mut load.ledger.record());
    println!("{stopped:?}: {:?}", finish(&server, &proxy, &mut load).await.unwrap());
}

/// Runs in the stopped process: takers with a connection each, which print what they take.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "runs as a process of its own"]
async fn takers() {
    let url = std::env::var("REDELAY_CHILD").expect("the address of the server");
    let take = async |n: usize| {
        let client = builder(&url).connect().await.unwrap();
        let payload = client.blocking_queue::<String>(&format!("q{n}"), codec::String).take().await.unwrap();
        println!("takes {payload}");
        client.shutdown().await;
    };
    futures::future::join_all((0..TAKERS).map(take)).await;
}

/// The replies wait in the sockets of the stopped process for longer than the timeout for a silent server.
/// When the process continues, its timers have expired and the replies are there. The replies count.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_popped_for_a_stopped_client_is_taken_when_it_goes_on() {
    let server = Server::start();
    let child =
        Program::start_ignored_test("never_stuck::stopped::takers", &[("REDELAY_CHILD", &server.url())]);
    // The server ends a pop after 10 s, and a busy client needs a moment for the next one. So the server
    // looks in the step that pushes. If one of them has none, all begin again, at about the same time.
    until_within(10 * MINUTE, "all have a pop on the server when their process stops", || {
        until("the takers wait", || server.blocked_clients() == TAKERS as u64);
        child.freeze();
        let are_pushed: bool = server.get(["EVAL", PUSH, "0", &TAKERS.to_string()]);
        if !are_pushed {
            child.thaw();
            server.kill_clients(ClientKind::Normal);
        }
        are_pushed
    });
    let is_popped = || server.keys().iter().all(|key| !key.starts_with(b"q"));
    until_within(10 * MINUTE, "the server has popped for them", is_popped);
    tokio::time::sleep(LONGER_THAN_A_POP).await;
    child.thaw();
    let is_over =
        || async { child.output().matches("takes payload").count() == TAKERS || !child.is_running() };
    // After a timeout, the missing payloads say more than the timeout.
    let _ = tokio::time::timeout(BOUND, until_async("all is taken", is_over)).await;
    for n in 0..TAKERS {
        assert!(child.output().contains(&format!("takes payload {n}\n")), "{n}: {}", child.output());
    }
}
