//! A cluster: who is connected to whom, which names it can hold, and what cannot work.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;
use std::time::Duration;

use redelay::{Client, Error, ErrorKind, codec};
use redelay_fixture::{Cluster, Port, Server, until, until_async, until_async_within};
use redelay_support::{MINUTE, is_soak, ms, rounds, slowly, soon};
use tokio::time::Instant;

use super::bad_settings::says;

/// For tests that do it no harm.
fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| {
        let cluster = Cluster::start();
        cluster.be_patient(true);
        cluster
    })
}

async fn client() -> Client {
    soon(Client::connect(&cluster().url())).await.unwrap()
}

async fn refused(url: &str) -> Error {
    let builder = Client::builder().url(url).connect_timeout(ms(4000));
    let error = soon(builder.connect()).await.expect_err("no connection");
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    error
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_that_cannot_be_used() {
    for url in ["redis-cluster://localhost/1", "redis-cluster://:hunter2@", "redis-cluster://a,:1"] {
        says(&refused(url).await, ErrorKind::Invalid, &["redis-cluster://[user:password@]host[:port]"]);
    }
    let single = Server::builder().config("cluster-enabled no").unix_socket().start();
    let address = format!("127.0.0.1:{}", single.port());
    let error = refused(&format!("redis-cluster://{address}")).await;
    says(&error, ErrorKind::Invalid, &["no server of a cluster", &format!("redis://{address}")]);
    let closed = Port::reserve();
    let error = refused(&format!("redis-cluster://127.0.0.1:{}", closed.number())).await;
    says(&error, ErrorKind::Unavailable, &["refused", &closed.number().to_string()]);
}

/// The others are not asked one after the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seed_that_does_not_answer_delays_nothing() {
    let frozen = Server::start();
    frozen.freeze();
    let port = cluster().servers()[1].port();
    let url = format!("redis-cluster://127.0.0.1:{},127.0.0.1:{port}", frozen.port());
    // Once is enough on a busy machine. A server that does not answer is given up after 3 s.
    until_async("a connection within 2.5 s", || async {
        let begun = Instant::now();
        let client = soon(Client::connect(&url)).await.unwrap();
        let took = begun.elapsed();
        client.blocking_queue("q", codec::Long).len().await.unwrap();
        client.shutdown().await;
        took < ms(2500)
    })
    .await;
}

/// The keys of a queue must be in one slot.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_a_cluster_can_hold() {
    let client = client().await;
    let names = [
        "q",
        "{tag}q",
        "a{b}c",
        "a{b",
        "a}b",
        "{",
        "}",
        "{}q",
        "x{}y{z}",
        "a:b:c",
        "очередь",
        "a b",
        "q*?[x]",
        "app:q",
        "app:{tag}q",
        "{x}",
    ];
    for name in names {
        let [queue, other] = [name, "q"].map(|name| client.blocking_queue(name, codec::Long));
        let keys = queue.keys();
        let slots: HashSet<u16> =
            [&keys.target, &keys.timeout_set, &keys.ordered_list, &keys.channel, &keys.popped]
                .into_iter()
                .map(|key| cluster().slot_of(key))
                .collect();
        let offered = client.delayed_queue(&queue).offer(&1, Duration::from_secs(3600)).await;
        match slots.len() {
            1 => assert!(offered.is_ok(), "{name}: {offered:?}"),
            _ => {
                let error = offered.expect_err(name);
                says(&error, ErrorKind::Invalid, &[name, "braces", "works"]);
                // The name that it tells works.
                let text = error.to_string();
                let told =
                    text.rsplit("a name such as `").next().and_then(|rest| rest.split('`').next()).unwrap();
                client.blocking_queue(told, codec::Long).put(&1).await.unwrap();
                for error in [
                    queue.put(&1).await.unwrap_err(),
                    queue.take().await.unwrap_err(),
                    queue.poll().await.unwrap_err(),
                    queue.receiver().receive().await.unwrap_err(),
                    other.receiver().dead_letters_to(&queue).receive().await.map(drop).unwrap_err(),
                    other.poll_from_any(ms(1), &[name]).await.unwrap_err(),
                ] {
                    says(&error, ErrorKind::Invalid, &[name, "works"]);
                }
            }
        }
    }
    client.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payloads_move_between_queues_of_one_slot_only() {
    let client = client().await;
    let queue = client.blocking_queue("{m}a", codec::Long);
    let error = queue.poll_last_and_offer_first_to("b").await.unwrap_err();
    says(&error, ErrorKind::Invalid, &["`b`", "braces"]);
    let error = client.delayed_queue(&queue).poll_last_and_offer_first_to("b").await.unwrap_err();
    says(&error, ErrorKind::Invalid, &["`b`", "braces"]);
    queue.put(&1).await.unwrap();
    assert_eq!(queue.poll_last_and_offer_first_to("{m}b").await.unwrap(), Some(1));
    assert_eq!(soon(client.blocking_queue("{m}b", codec::Long).take()).await.unwrap(), 1);
    client.shutdown().await;
}

/// A password that is right for one server only: its queues work, and the others say which server refuses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_another_password() {
    let cluster = tokio::task::block_in_place(Cluster::start);
    cluster.be_patient(true);
    let port = |name: &String| cluster.master_of(cluster.slot_of(name)).port();
    let names = || (0..100).map(|number| format!("q{number}"));
    // The first one to which a client connects.
    let bad = names().min_by_key(port).unwrap();
    let good = &names().max_by_key(port).unwrap();
    let server = cluster.master_of(cluster.slot_of(&bad));
    for server in cluster.servers() {
        server.cmd(["ACL", "SETUSER", "joe", "on", ">hunter2", "~*", "&*", "+@all"]);
    }
    server.cmd(["ACL", "SETUSER", "joe", "resetpass", ">other"]);
    let url = format!("redis-cluster://joe:hunter2@127.0.0.1:{}", port(good));
    let client = Client::builder().url(url).command_timeout(ms(4000)).connect().await.unwrap();
    assert!(!client.stats().connected);
    client.blocking_queue(good, codec::Long).put(&1).await.unwrap();
    let error = soon(client.blocking_queue(&bad, codec::Long).put(&1)).await.unwrap_err();
    says(&error, ErrorKind::Unavailable, &[&server.port().to_string(), "WRONGPASS"]);
    server.cmd(["ACL", "SETUSER", "joe", ">hunter2"]);
    until_async("it is let in", || async { client.blocking_queue(&bad, codec::Long).put(&1).await.is_ok() })
        .await;
    client.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_nobody_serves() {
    let cluster = tokio::task::block_in_place(Cluster::start);
    cluster.be_patient(true);
    let (slot, elsewhere) = (cluster.slot_of("q"), elsewhere(&cluster, "q"));
    cluster.require_no_full_coverage();
    // Replicas, too: they go on naming the master that they knew.
    let is_unassigned = |server: &Server| server.try_cmd(["CLUSTER", "DELSLOTS", &slot.to_string()]).is_err();
    until("no server knows who serves it", || cluster.servers().iter().all(is_unassigned));
    let client = Client::builder().url(cluster.url()).command_timeout(ms(4000)).connect().await.unwrap();
    let error = soon(client.blocking_queue("q", codec::Long).put(&1)).await.unwrap_err();
    says(&error, ErrorKind::Unavailable, &["slot", &slot.to_string()]);
    assert!(!error.is_outcome_unknown());
    client.blocking_queue(&elsewhere, codec::Long).put(&1).await.unwrap();
    cluster.servers()[0].cmd(["CLUSTER", "ADDSLOTS", &slot.to_string()]);
    let ready = client.blocking_queue("q", codec::Long);
    until_async("a put", || async { ready.put(&2).await.is_ok() }).await;
    assert_eq!(cluster.servers()[0].list("q"), [b"2"]);
    client.shutdown().await;
}

/// A master that has lost all of its slots is left, and found again when it has some.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_shrinks_and_grows() {
    let cluster = tokio::task::block_in_place(|| Cluster::without_replicas(2));
    let [here, there] = cluster.servers() else { panic!("two servers") };
    let name = name_on(&cluster, there.port());
    let client = Client::connect(&cluster.url()).await.unwrap();
    let ready = client.blocking_queue(&name, codec::Long);
    let delayed = client.delayed_queue(&ready);
    let taking = |value: i64| {
        let ready = ready.clone();
        tokio::spawn(async move { assert_eq!(ready.take().await.unwrap(), value) })
    };
    let first = taking(1);
    until_async("it waits", || async { there.blocked_clients() > 0 }).await;
    let give = |from: &Server, to: &Server| {
        let words = |what: &'static str| {
            let slots = (8_192..16_384).map(|slot| slot.to_string());
            ["CLUSTER".to_owned(), what.to_owned()].into_iter().chain(slots)
        };
        // As a move of slots does; first, because what the former owner has said before may still arrive.
        to.cmd(["CLUSTER", "BUMPEPOCH"]);
        from.cmd(words("DELSLOTS"));
        until("the other has them", || {
            // It may have heard already that nobody has them.
            let _ = to.try_cmd(words("DELSLOTS"));
            to.try_cmd(words("ADDSLOTS")).is_ok()
        });
    };
    give(there, here);
    // While the slots moved, its connections may have been replaced, so there may be none for a moment.
    until_async("it is left", || async {
        client.stats().masters.len() == 1 && there.clients_named("redelay") == 0
    })
    .await;
    here.cmd(["RPUSH", &name, "1"]);
    soon(first).await.unwrap();
    let second = taking(2);
    until_async("it waits", || async { here.blocked_clients() > 0 }).await;
    give(here, there);
    until_async("it is found again", || async { client.stats().masters.len() == 2 }).await;
    until_async("an offer", || async { delayed.offer(&2, ms(1)).await.is_ok() }).await;
    soon(second).await.unwrap();
    client.shutdown().await;
}

/// A name whose slot another server has.
fn elsewhere(cluster: &Cluster, name: &str) -> String {
    let here = cluster.master_of(cluster.slot_of(name)).port();
    let mut names = (0..).map(|number| format!("other{number}"));
    names.find(|name| cluster.master_of(cluster.slot_of(name)).port() != here).unwrap()
}

/// The connections of clients of this name to each server.
fn connections(name: &str) -> HashMap<u16, usize> {
    cluster().servers().iter().map(|server| (server.port(), server.clients_named(name))).collect()
}

/// Idle queues, however many, have two connections to each master and none to a replica.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_queues_share_two_connections_to_each_master() {
    let builder = Client::builder().url(cluster().url()).client_name("idle-queues");
    let client = builder.connect().await.unwrap();
    let queues: Vec<_> = (0..1000)
        .map(|number| client.delayed_queue(&client.blocking_queue(&format!("idle{number}"), codec::Long)))
        .collect();
    until_async("all are subscribed", || async {
        let masters = &cluster().servers()[..3];
        let subscribed = masters.iter().map(|master| {
            let channels: Vec<Vec<u8>> =
                master.get(["PUBSUB", "CHANNELS", "redisson_delay_queue_channel:{idle*"]);
            channels.len()
        });
        subscribed.sum::<usize>() == queues.len()
    })
    .await;
    let connections = connections("idle-queues");
    for (i, server) in cluster().servers().iter().enumerate() {
        assert_eq!(connections[&server.port()], if i < 3 { 2 } else { 0 }, "server {i}: {connections:?}");
    }
    client.shutdown().await;
}

/// With takers, a receiver, and confirmations of replicas, each master has one more connection for each of
/// these.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_of_a_busy_client() {
    let builder = Client::builder()
        .url(cluster().url())
        .client_name("busy")
        .replicas(1, MINUTE)
        .command_timeout(MINUTE);
    let client = builder.connect().await.unwrap();
    let masters = &cluster().servers()[..3];
    let names: Vec<String> = masters.iter().map(|master| name_on(cluster(), master.port())).collect();
    let (mut waiting, mut kept) = (Vec::new(), Vec::new());
    for name in &names {
        let (taken, received) = (format!("{{{name}}}taken"), format!("{{{name}}}received"));
        let queue = client.blocking_queue(&taken, codec::Long);
        let delayed = client.delayed_queue(&queue);
        delayed.offer(&1, ms(1)).await.unwrap();
        assert_eq!(soon(queue.take()).await.unwrap(), 1);
        kept.push(delayed);
        waiting.push(tokio::spawn(async move { queue.take().await.map(drop) }));
        let receiver = client.blocking_queue(&received, codec::Long).receiver();
        waiting.push(tokio::spawn(async move { receiver.receive().await.map(drop) }));
    }
    // For commands, confirmations, announcements, the taker, and the receiver.
    until_async("each master has five", || async {
        let connections = connections("busy");
        masters.iter().all(|master| connections[&master.port()] == 5)
    })
    .await;
    let replicas = &cluster().servers()[3..];
    assert!(replicas.iter().all(|replica| connections("busy")[&replica.port()] == 0));
    client.shutdown().await;
    for waiting in waiting {
        assert!(soon(waiting).await.unwrap().unwrap_err().is_closed());
    }
    until_async("all are closed", || async { connections("busy").values().sum::<usize>() == 0 }).await;
}

/// A name whose slot this server has.
fn name_on(cluster: &Cluster, port: u16) -> String {
    let mut names = (0..).map(|number| format!("on{number}"));
    names.find(|name| cluster.master_of(cluster.slot_of(name)).port() == port).unwrap()
}

/// Ten thousand cost as little: a question about the slots each second, four looks at some of them, and a few
/// sweeps.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_idle_queues_cost_next_to_nothing() {
    const QUEUES: usize = 10_000;
    const PERIOD: Duration = Duration::from_secs(4);
    let cluster = tokio::task::block_in_place(|| Cluster::without_replicas(3));
    let client = Client::connect(&cluster.url()).await.unwrap();
    let queues: Vec<_> = (0..QUEUES)
        .map(|number| client.delayed_queue(&client.blocking_queue(&format!("idle{number}"), codec::Long)))
        .collect();
    // For entries that are due, and for schedules.
    let looks = || {
        let of = |command| cluster.servers().iter().map(|server| server.command_calls(command)).sum::<u64>();
        of("evalsha").min(of("exists")) as usize
    };
    until_async_within(10 * MINUTE, "all are looked at", || async { looks() >= QUEUES }).await;
    let commands = || -> Vec<u64> {
        let number = |server: &Server| {
            let stats = server.info("stats");
            let count = stats.lines().find_map(|line| line.strip_prefix("total_commands_processed:"));
            count.unwrap().trim().parse().unwrap()
        };
        cluster.servers().iter().map(number).collect()
    };
    // On a busy machine, the last of the opening is in the first periods.
    until_async_within(10 * MINUTE, "at most eight commands a second", || async {
        let (begun, before) = (Instant::now(), commands());
        tokio::time::sleep(PERIOD).await;
        let (after, period) = (commands(), begun.elapsed().as_secs_f64());
        let rates: Vec<_> =
            after.iter().zip(before).map(|(after, before)| (after - before) as f64 / period).collect();
        println!("{rates:.1?} commands a second when idle");
        rates.iter().all(|rate| *rate <= 8.0)
    })
    .await;
    for server in cluster.servers() {
        let connections = server.clients_named("redelay");
        assert!(connections <= 3, "{connections} connections to one master");
    }
    client.shutdown().await;
    drop(queues);
}

/// Takers of very many queues share connections, and a payload that somebody else pushes is there at once.
#[tokio::test]
async fn takers_of_a_thousand_queues() {
    const QUEUES: usize = 1000;
    let builder = Client::builder().url(cluster().url()).client_name("many-takers").transfer(false);
    let client = builder.connect().await.unwrap();
    let (taken, mut values) = tokio::sync::mpsc::unbounded_channel();
    let takers: Vec<_> = (0..QUEUES)
        .map(|number| {
            let (queue, taken) =
                (client.blocking_queue(&format!("many{number}"), codec::Long), taken.clone());
            tokio::spawn(async move {
                while let Ok(value) = queue.take().await {
                    let _ = taken.send((number, value, Instant::now()));
                }
            })
        })
        .collect();
    until_async("all wait", || async { client.stats().takers == QUEUES as u64 }).await;
    tokio::time::sleep(ms(1000)).await;
    for server in &cluster().servers()[..3] {
        let connections = server.clients_named("many-takers");
        // For commands, 64 that block, and one for all others.
        assert!(connections <= 66, "{connections} connections to one master");
    }
    let measured = async {
        let mut late = Vec::new();
        for round in 0..2 * rounds() as i64 {
            for number in (0..QUEUES).step_by(7) {
                let name = format!("many{number}");
                let master = cluster().master_of(cluster().slot_of(&name));
                let pushed = Instant::now();
                master.cmd(["RPUSH", &name, &round.to_string()]);
                let (taken_from, value, at) = soon(values.recv()).await.unwrap();
                assert_eq!((taken_from, value), (number, round));
                late.push(at.saturating_duration_since(pushed));
            }
        }
        late
    };
    let mut late = if is_soak() { measured.await } else { slowly(measured).await };
    late.sort_unstable();
    let (median, most) = (late[late.len() / 2], late[late.len() * 99 / 100]);
    println!("taken after {median:?} (median), {most:?} (99 %)");
    assert!(most < if is_soak() { ms(20) } else { ms(1000) }, "{most:?}");
    client.shutdown().await;
    for taker in takers {
        soon(taker).await.unwrap();
    }
}

/// A server of a cluster that is taken for a single one says so at once, and nobody waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_behind_the_url_of_one_server() {
    let (here, there) = ("q", elsewhere(cluster(), "q"));
    let port = cluster().master_of(cluster().slot_of(here)).port();
    let client = Client::connect(&format!("redis://127.0.0.1:{port}")).await.unwrap();
    client.blocking_queue(here, codec::Long).put(&1).await.unwrap();
    let queue = client.blocking_queue(&there, codec::Long);
    for error in [
        soon(queue.put(&1)).await.unwrap_err(),
        soon(queue.take()).await.unwrap_err(),
        soon(async { client.delayed_queue(&queue).offer(&1, ms(1)).await }).await.unwrap_err(),
    ] {
        says(&error, ErrorKind::Refused, &["MOVED", "write redis-cluster://"]);
    }
    client.shutdown().await;
}

/// A pop that blocks is interrupted for the taker of another list, even if the server announces a host name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_a_host_name() {
    let server = Server::builder().cluster();
    let version = tokio::task::block_in_place(Server::start).version();
    if version.major < 7 {
        println!("skipped: {version} announces no host name");
        return;
    }
    let server = server.config("cluster-announce-hostname redis.internal");
    let server = tokio::task::block_in_place(|| server.start());
    let client = Client::connect(&server.url()).await.unwrap();
    // Lists of one slot share a connection. A taker of another list interrupts the pop that blocks.
    let (first, second) =
        (client.blocking_queue("{q}a", codec::Long), client.blocking_queue("{q}b", codec::Long));
    let waiting = tokio::spawn(async move { first.take().await });
    until_async("it waits", || async { server.blocked_clients() == 1 }).await;
    // Once is enough on a busy machine. A pop that is not interrupted is given up after 3 s.
    until_async("a poll within 2 s", || async {
        let begun = Instant::now();
        assert_eq!(second.poll_timeout(ms(50)).await.unwrap(), None);
        begun.elapsed() < Duration::from_secs(2)
    })
    .await;
    client.blocking_queue("{q}a", codec::Long).put(&1).await.unwrap();
    assert_eq!(soon(waiting).await.unwrap().unwrap(), 1);
    client.shutdown().await;
}
