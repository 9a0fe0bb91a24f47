//! Entries that are overdue, and of which nobody has heard: a client that transfers looks for them.

use std::time::{Duration, Instant};

use redelay::{BlockingQueue, Client, DelayedQueue, codec};
use redelay_fixture::{ClientKind, Cluster, Server, until_async};
use redelay_support::{HOUR, Listener, ms, patient_builder, soon, still_builder};
use tokio::task::block_in_place;

/// Writes an overdue entry as Redisson does, and tells nobody.
fn offer_silently(server: &Server, queue: &BlockingQueue<i64>, number: u8) {
    offer_silently_at(server, queue, number, 1);
}

/// The same with this due time.
fn offer_silently_at(server: &Server, queue: &BlockingQueue<i64>, number: u8, due: u64) {
    let keys = queue.keys();
    let entry =
        [&[8][..], format!("{number:08}").as_bytes(), &1_u64.to_le_bytes(), &[b'0' + number]].concat();
    server.cmd([b"ZADD", keys.timeout_set.as_bytes(), due.to_string().as_bytes(), &entry]);
    server.cmd([b"RPUSH", keys.ordered_list.as_bytes(), &entry]);
}

/// Only a look finds something.
fn queues(
    client: &Client,
    names: impl Iterator<Item = String>,
) -> Vec<(BlockingQueue<i64>, DelayedQueue<i64>)> {
    let ready = names.map(|name| client.blocking_queue(&name, codec::Long));
    ready.map(|ready| (ready.clone(), client.delayed_queue(&ready))).collect()
}

async fn swept(client: &Client, count: u64) {
    until_async("each queue was swept", || async { client.stats().transfers >= count }).await;
}

#[tokio::test]
async fn a_long_check_interval_saves_commands() {
    let server = Server::start();
    let client = patient_builder(&server).sweep_interval(HOUR);
    let client = client.check_interval(HOUR).connect().await.unwrap();
    let _queues = queues(&client, ["q".to_owned()].into_iter());
    swept(&client, 1).await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    // Nothing else counts entries of an empty queue.
    assert_eq!(server.command_calls("zcount"), 0);
}

/// The producer announces nothing. That is no reason to open a connection, or to look at other queues.
#[tokio::test]
async fn an_overdue_entry_is_found_without_an_announcement() {
    let server = Server::start();
    let client = patient_builder(&server).sweep_interval(HOUR);
    let client = client.connect().await.unwrap();
    let queues = queues(&client, (0..150).map(|n| format!("{{q}}{n}")));
    swept(&client, 150).await;
    let subscriber = || -> String {
        let clients: String = server.get(["CLIENT", "LIST", "TYPE", "pubsub"]);
        clients.split_whitespace().next().unwrap_or_default().to_owned()
    };
    let before = subscriber();
    let transfers = client.stats().transfers;
    for (n, stalled) in [(0, 1), (149, 2), (0, 3)] {
        offer_silently(&server, &queues[n].0, 7);
        // It is moved before the next sweep.
        assert_eq!(soon(queues[n].0.take()).await.unwrap(), 7);
        let stats = client.stats();
        assert_eq!((stats.stalled_transfers, stats.failed_transfers, stats.reconnects), (stalled, 0, 0));
    }
    // Longer than it waits for a connection that does not answer.
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert_eq!(subscriber(), before);
    let transfers = client.stats().transfers - transfers;
    assert!(transfers < 12, "{transfers} transfers for three entries");
    assert_eq!(queues[0].0.stats().await.unwrap().stalled_transfers, 2);
    // The client hears at once what another one announces.
    let other = still_builder(&server).connect().await.unwrap();
    soon(other.delayed_queue(&other.blocking_queue("{q}3", codec::Long)).offer(&8, ms(1))).await.unwrap();
    assert_eq!(soon(queues[3].0.take()).await.unwrap(), 8);
    assert_eq!(client.stats().stalled_transfers, 3);
}

/// A call covers one slot of a cluster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queues_in_many_slots_are_all_looked_at() {
    const QUEUES: usize = 100;
    let cluster = block_in_place(|| Cluster::without_replicas(3));
    let client = patient_builder(&cluster).sweep_interval(HOUR);
    let client = client.connect().await.unwrap();
    let queues = queues(&client, (0..QUEUES).map(|n| format!("q{n}")));
    swept(&client, QUEUES as u64).await;
    let calls = || cluster.servers().iter().map(|server| server.command_calls("evalsha")).sum::<u64>();
    let (begun, before, transfers) = (Instant::now(), calls(), client.stats().transfers);
    for (ready, _) in &queues {
        let server = cluster.master_of(cluster.slot_of(ready.name()));
        block_in_place(|| offer_silently(server, ready, 7));
    }
    // About 34 slots of each master: two passes. Those at both ends of the time may be seen in part.
    let moved = || async { client.stats().transferred as usize == QUEUES };
    until_async("all are moved", moved).await;
    let elapsed = begun.elapsed();
    let looks = calls() - before - (client.stats().transfers - transfers);
    println!("all were moved after {elapsed:?}, with {looks} looks");
    assert!(looks <= 3 * 20 * (elapsed.as_secs() / 5 + 3), "{looks} looks in {elapsed:?}");
    // A connection that a busy machine loses is followed by a transfer of each queue on it.
    let stalled = client.stats().stalled_transfers as usize;
    assert!(QUEUES / 2 < stalled && stalled <= QUEUES, "{stalled} were found by looks");
}

/// The look at a server that is silent ends late, and those at the others do not wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_master_delays_no_look_at_others() {
    let cluster = block_in_place(|| Cluster::without_replicas(3));
    cluster.require_no_full_coverage();
    let client = patient_builder(&cluster).sweep_interval(HOUR);
    let client = client.command_timeout(HOUR).connect().await.unwrap();
    let queues = queues(&client, (0..20).map(|n| format!("q{n}")));
    swept(&client, 20).await;
    let master_of =
        |ready: &BlockingQueue<i64>| block_in_place(|| cluster.master_of(cluster.slot_of(ready.name())));
    let silent = master_of(&queues[0].0);
    silent.freeze();
    // Two looks at each of them.
    tokio::time::sleep(ms(11_000)).await;
    let other = queues.iter().find(|(ready, _)| master_of(ready).port() != silent.port());
    let (ready, _) = other.expect("three masters");
    block_in_place(|| offer_silently(master_of(ready), ready, 7));
    assert_eq!(soon(ready.take()).await.unwrap(), 7);
    silent.thaw();
}

/// A client of the user `worker`, and its two queues: of one slot, or one call could not look at both.
async fn of_a_worker(
    server: &Server,
    names: [&str; 2],
) -> (Client, Vec<(BlockingQueue<i64>, DelayedQueue<i64>)>) {
    server.cmd(["ACL", "SETUSER", "worker", "on", ">secret", "+@all", "allkeys", "allchannels"]);
    let url = format!("redis://worker:secret@127.0.0.1:{}", server.port());
    let client = patient_builder(&url).sweep_interval(HOUR);
    let client = client.connect().await.unwrap();
    let queues = queues(&client, names.map(|name| format!("{{q}}{name}")).into_iter());
    swept(&client, 2).await;
    (client, queues)
}

/// A permission is taken away, and nothing else would tell before an entry is late.
#[tokio::test]
async fn a_look_that_is_refused_is_reported_once() {
    let (listener, _listening) = Listener::start();
    let server = Server::start();
    let (client, queues) = of_a_worker(&server, ["a", "b"]).await;
    let reported = || listener.named("redelay.check.failing");
    for round in 1..=2 {
        server.cmd(["ACL", "SETUSER", "worker", "-zcount"]);
        until_async("it is reported", || async { reported().len() == round }).await;
        let error = reported().pop().unwrap().fields["error"].to_lowercase();
        assert!(error.contains("zcount"), "{error}");
        let last_error = client.stats().last_error.unwrap().message.to_lowercase();
        // Or that of a transfer, which is refused, too.
        assert!(last_error.contains("zcount"), "{last_error}");
        // The clock is read all the same.
        let times = server.command_calls("time");
        until_async("the next look", || async { server.command_calls("time") >= times + 2 }).await;
        assert_eq!(reported().len(), round, "once");
        server.cmd(["ACL", "SETUSER", "worker", "+zcount"]);
        // The second one is found by a look.
        for _ in 0..2 {
            offer_silently(&server, &queues[1].0, 7);
            assert_eq!(soon(queues[1].0.take()).await.unwrap(), 7);
        }
    }
}

/// The others are looked at all the same.
#[tokio::test]
async fn a_queue_that_is_forbidden_hides_no_other() {
    let server = Server::start();
    let (_client, queues) = of_a_worker(&server, ["forbidden", "permitted"]).await;
    server.cmd(["ACL", "SETUSER", "worker", "resetkeys", "~*permitted*"]);
    for _ in 0..2 {
        offer_silently(&server, &queues[1].0, 7);
        assert_eq!(soon(queues[1].0.take()).await.unwrap(), 7);
    }
}

/// A user may not listen to channels, so that no confirmation of a subscription starts the sweep.
#[tokio::test]
async fn a_queue_is_swept_when_its_server_is_back() {
    let server = Server::start();
    let user = ["ACL", "SETUSER", "deaf", "on", ">secret", "+@all", "allkeys", "resetchannels"];
    server.cmd(user);
    let url = format!("redis://deaf:secret@127.0.0.1:{}", server.port());
    let client = patient_builder(&url).connect().await.unwrap();
    let queue = client.blocking_queue("q", codec::Long);
    let _delayed = client.delayed_queue(&queue);
    swept(&client, 1).await;
    for number in 0..3 {
        // It is not overdue enough for a look to find it, which might come first.
        let (seconds, _): (u64, u64) = server.get(["TIME"]);
        offer_silently_at(&server, &queue, number, seconds * 1000);
        server.kill_clients(ClientKind::Normal);
        assert_eq!(soon(queue.take()).await.unwrap(), i64::from(number));
    }
    assert_eq!(client.stats().stalled_transfers, 0);
}
