//! Takers of several lists on one server share their pops, and keep the order of the lists. What they cost is
//! counted in commands.

use futures::future::join_all;
use redelay::{BlockingQueue, Client, ErrorKind, codec};
use redelay_fixture::{Server, until_async};
use redelay_support::{HOUR, soon, still_builder};

const TAKERS: i64 = 32;
/// Of each taker.
const PAYLOADS: i64 = 200;
const ALL: i64 = TAKERS * PAYLOADS;

/// The scripts and blocking pops until now.
fn pops(server: &Server) -> u64 {
    server.command_calls("evalsha") + server.command_calls("blpop")
}

fn fill(server: &Server, list: &str, payloads: std::ops::Range<i64>) {
    let payloads: Vec<String> = payloads.map(|payload| payload.to_string()).collect();
    for payloads in payloads.chunks(1_000) {
        server.cmd(["RPUSH", list].into_iter().chain(payloads.iter().map(String::as_str)));
    }
}

async fn client(server: &Server) -> Client {
    still_builder(&server).connect().await.unwrap()
}

#[tokio::test]
async fn takers_of_sixteen_partitions_share_their_pops() {
    const PARTITIONS: i64 = 16;
    let server = Server::start();
    if server.is_cluster() {
        return; // The lists are in several slots.
    }
    let client = client(&server).await;
    let orders = client.partitioned_queue("orders", PARTITIONS as usize, codec::Long).await.unwrap();
    for partition in 0..PARTITIONS {
        let share = ALL / PARTITIONS;
        fill(&server, &format!("orders#{partition}"), partition * share..(partition + 1) * share);
    }
    let before = pops(&server);
    let takers = (0..TAKERS).map(|_| {
        let orders = orders.clone();
        tokio::spawn(async move {
            let mut taken = Vec::new();
            for _ in 0..PAYLOADS {
                taken.push(orders.take().await.unwrap());
            }
            taken
        })
    });
    let mut taken: Vec<i64> = Vec::new();
    for taker in takers.collect::<Vec<_>>() {
        taken.extend(soon(taker).await.unwrap());
    }
    let pops = pops(&server) - before;
    println!("{pops} pops for {ALL} payloads");
    taken.sort_unstable();
    assert!(taken.into_iter().eq(0..ALL));
    assert!(pops <= ALL as u64 / 10, "{pops} pops for {ALL} payloads");
    client.shutdown().await;
    let is_claim = |key: &Vec<u8>| key.starts_with(b"redelay:popped:");
    until_async("no claim is left", async || !server.keys().iter().any(is_claim)).await;
}

/// As long as the first list has payloads, no taker gets one of another.
#[tokio::test]
async fn takers_of_several_lists_share_their_pops_in_order() {
    for last in [false, true] {
        let server = Server::start();
        if server.is_cluster() {
            return; // The lists are in several slots.
        }
        let client = client(&server).await;
        let urgent = client.blocking_queue("urgent", codec::Long);
        fill(&server, "low", 0..ALL / 2);
        fill(&server, "urgent", ALL / 2..ALL);
        let before = pops(&server);
        let takers = (0..TAKERS).map(|_| {
            let urgent = urgent.clone();
            tokio::spawn(async move {
                let mut names = Vec::new();
                for _ in 0..PAYLOADS {
                    let polled = match last {
                        false => urgent.poll_from_any(HOUR, &["normal", "low"]).await,
                        true => urgent.poll_last_from_any(HOUR, &["normal", "low"]).await,
                    };
                    let (name, _) = polled.unwrap().unwrap();
                    if name == "low" && names.last().is_none_or(|last| last == "urgent") {
                        assert_eq!(urgent.len().await.unwrap(), 0, "a taker was given another list");
                    }
                    names.push(name);
                }
                names
            })
        });
        let mut urgents = 0;
        for taker in takers.collect::<Vec<_>>() {
            let names = soon(taker).await.unwrap();
            urgents += names.iter().filter(|name| *name == "urgent").count();
            assert!(names.is_sorted_by_key(|name| name == "low"), "{names:?}");
        }
        assert_eq!(urgents as i64, ALL / 2);
        let pops = pops(&server) - before;
        println!("{pops} pops for {ALL} payloads");
        assert!(pops <= ALL as u64 / 10, "{pops} pops for {ALL} payloads");
        client.shutdown().await;
        until_async("no claim is left", async || server.keys().is_empty()).await;
    }
}

/// On one server, and in one slot of a cluster.
#[tokio::test]
async fn payloads_of_one_pop_go_to_the_takers_in_order() {
    let servers = [Server::start(), Server::builder().cluster().start()];
    for server in servers {
        let client = client(&server).await;
        let first = client.blocking_queue("{s}first", codec::Long);
        for (last, expected) in [(false, [0, 1, 2, 3, 4]), (true, [2, 1, 0, 5, 4])] {
            fill(&server, "{s}first", 0..3);
            fill(&server, "{s}second", 3..6);
            let before = pops(&server);
            let polls = (0..5).map(async |_| match last {
                false => first.poll_from_any(HOUR, &["{s}second"]).await,
                true => first.poll_last_from_any(HOUR, &["{s}second"]).await,
            });
            let polled = soon(join_all(polls)).await.into_iter().map(|polled| polled.unwrap().unwrap().1);
            assert_eq!(polled.collect::<Vec<_>>(), expected);
            assert!(pops(&server) - before <= 2, "the script, and its text");
            server.cmd(["DEL", "{s}second"]);
        }
        client.shutdown().await;
    }
}

/// A call brings about a megabyte.
#[tokio::test]
async fn long_payloads_come_in_several_pops() {
    let server = Server::start();
    let client = client(&server).await;
    let first = client.blocking_queue("first", codec::String);
    let payload = "x".repeat(400_000);
    for list in ["first", "second", "first", "second", "second"] {
        server.cmd(["RPUSH", list, &payload]);
    }
    let before = pops(&server);
    let polls = (0..5).map(|_| first.poll_from_any(HOUR, &["second"]));
    let polled = soon(join_all(polls)).await.into_iter().map(|polled| polled.unwrap().unwrap());
    let names: Vec<String> =
        polled.inspect(|(_, value)| assert!(*value == payload)).map(|(name, _)| name).collect();
    assert_eq!(names, ["first", "first", "second", "second", "second"]);
    assert!((2..=3).contains(&(pops(&server) - before)), "three payloads, then two");
    client.shutdown().await;
}

/// Where payloads arrive one by one, the blocking pop brings them, and other pops become rare.
#[tokio::test]
async fn a_payload_that_comes_alone_costs_little_more_than_a_blocking_pop() {
    const ALONE: i64 = 60;
    let server = Server::start();
    if server.is_cluster() {
        return; // The lists are in several slots.
    }
    let client = client(&server).await;
    let first = client.blocking_queue("first", codec::Long);
    let takers: Vec<_> = (0..ALONE + 3)
        .map(|_| {
            let first = first.clone();
            tokio::spawn(async move { first.poll_from_any(HOUR, &["second"]).await })
        })
        .collect();
    let waits = async || until_async("they wait", async || server.blocked_clients() == 1).await;
    waits().await;
    let before = [server.command_calls("evalsha"), server.command_calls("blpop")];
    for payload in 0..ALONE {
        fill(&server, if payload % 2 == 0 { "first" } else { "second" }, payload..payload + 1);
        until_async("it is taken", async || server.keys().is_empty()).await;
        waits().await;
    }
    let [scripts, blocking] = [server.command_calls("evalsha"), server.command_calls("blpop")];
    let (scripts, blocking) = (scripts - before[0], blocking - before[1]);
    println!("{scripts} scripts and {blocking} blocking pops for {ALONE} payloads");
    assert!(scripts <= 8 && blocking <= ALONE as u64 + 8, "{scripts} scripts, {blocking} blocking pops");
    client.shutdown().await;
    let ended = join_all(takers).await.into_iter().map(Result::unwrap);
    assert_eq!(ended.filter(Result::is_ok).count() as i64, ALONE);
}

/// Whoever may not use the claims of the other queues gets one payload after the other; and of two takers
/// whose lists are not lists, each has the error.
#[tokio::test]
async fn what_is_refused_is_left_to_the_blocking_pop() {
    async fn two(ready: &BlockingQueue<i64>) -> Vec<redelay::Result<Option<(String, i64)>>> {
        soon(join_all((0..2).map(|_| ready.poll_from_any(HOUR, &["other"])))).await
    }
    let server = Server::start();
    if server.is_cluster() {
        return; // The lists are in several slots.
    }
    let keys = ["~q", "~other", "~redelay:popped:{q}"];
    server.cmd(["ACL", "SETUSER", "user", "on", ">secret", "+@all", "allchannels"].into_iter().chain(keys));
    let client = still_builder(&server).credentials("user", "secret");
    let client = client.connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    for round in 0..3 {
        fill(&server, "other", 0..2);
        let mut polled: Vec<_> =
            two(&ready).await.into_iter().map(|polled| polled.unwrap().unwrap().1).collect();
        polled.sort_unstable();
        assert_eq!(polled, [0, 1], "round {round}");
    }
    let error = client.stats().last_error.expect("a refusal").message;
    assert!(error.starts_with("pop from several lists"), "{error}");
    server.cmd(["ACL", "SETUSER", "user", "allkeys"]);
    server.cmd(["SET", "other", "no list"]);
    for error in two(&ready).await {
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Refused);
    }
    // What comes before it arrives.
    fill(&server, "q", 7..8);
    let (polled, refused): (Vec<_>, Vec<_>) = two(&ready).await.into_iter().partition(Result::is_ok);
    let polled: Vec<_> = polled.into_iter().map(|polled| polled.unwrap().unwrap().1).collect();
    assert_eq!((polled, refused.len()), (vec![7], 1));
    server.cmd(["DEL", "other"]);
    server.cmd(["SET", "q", "no list"]);
    for error in two(&ready).await {
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Refused);
    }
    client.shutdown().await;
}
