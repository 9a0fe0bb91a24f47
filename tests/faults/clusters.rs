//! A cluster whose masters are replaced: the client goes on with the server of the moment, nothing waits for
//! ever, and the queues of other servers are not delayed.

mod confirmations;
mod many_queues;
mod partitions;
mod slot_moves;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use redelay::client::ClientBuilder;
use redelay::{Client, Error, ErrorKind, codec};
use redelay_fixture::{Cluster, Failover, Server, redis, until_async};
use redelay_support::{HOUR, MINUTE, builder, is_soak, ms, rounds, soon};
use tokio::task::block_in_place;
use tokio::time::timeout;

use super::around_failover::{self, Taker, lacks_scripts, patient, until_left, until_replicated};
use super::failover_load::{FailoverLoad, offer_elsewhere};

/// How the master fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// `CLUSTER FAILOVER`.
    Planned,
    /// `CLUSTER FAILOVER FORCE`.
    Forced,
    Killed,
    /// It comes back, and knows nothing of what has happened.
    Frozen,
}

impl Failure {
    /// Replaces the master of a slot. Returns the new one.
    pub(crate) fn happen(self, cluster: &Cluster, slot: u16) -> &Server {
        let old = cluster.master_of(slot);
        match self {
            Self::Planned => return cluster.failover(slot, Failover::Planned),
            Self::Forced => return cluster.failover(slot, Failover::Forced),
            Self::Killed => old.kill_9(),
            Self::Frozen => old.freeze(),
        }
        cluster.wait_for_other_master(slot, old.port())
    }
}

/// A name whose slot another server has than that of `q`.
fn elsewhere(cluster: &Cluster) -> String {
    let here = cluster.master_of(cluster.slot_of("q")).port();
    let mut names = (0..).map(|number| format!("other{number}"));
    names.find(|name| cluster.master_of(cluster.slot_of(name)).port() != here).unwrap()
}

/// A name whose slot is another one than that of `q`, on the same server.
fn beside(cluster: &Cluster) -> String {
    let slot = cluster.slot_of("q");
    let here = cluster.master_of(slot).port();
    let mut names = (0..).map(|number| format!("beside{number}"));
    let is_beside = |name: &String| {
        let other = cluster.slot_of(name);
        other != slot && cluster.master_of(other).port() == here
    };
    names.find(is_beside).unwrap()
}

/// The longest time that an offer and its take have taken, until `is_over`. A call does not fail while its
/// server refuses it: see `longest_refusal`.
async fn slowest(client: Client, name: String, is_over: Arc<AtomicBool>) -> Duration {
    let client = client.with_timeout(10 * MINUTE);
    let queue = client.blocking_queue(&name, codec::Long);
    let delayed = client.delayed_queue(&queue);
    let mut slowest = Duration::ZERO;
    for value in 0.. {
        let begun = Instant::now();
        delayed.offer(&value, Duration::ZERO).await.expect("an offer on a healthy server");
        assert_eq!(soon(queue.take()).await.unwrap(), value);
        slowest = slowest.max(begun.elapsed());
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        tokio::time::sleep(ms(5)).await;
    }
    slowest
}

/// How long the server refuses every command of a key at most, until `is_over`: while it does not know who
/// the masters are.
fn longest_refusal(mut server: redis::Connection, name: &str, is_over: &AtomicBool) -> Duration {
    let (mut longest, mut accepted) = (Duration::ZERO, Instant::now());
    while !is_over.load(Ordering::Relaxed) {
        if redis::cmd("EXISTS").arg(name).exec(&mut server).is_ok() {
            longest = longest.max(accepted.elapsed());
            accepted = Instant::now();
        }
        std::thread::sleep(ms(2));
    }
    longest
}

/// Takes, receives and offers go on, an entry that becomes due during the failover is delivered, and so is
/// what others offer and push after it.
async fn goes_on(failure: Failure) {
    for round in 0..rounds() {
        goes_on_once(failure, round % 2 == 0).await;
    }
}

/// `needs_all` is whether the servers serve no slot while one has no server, which is their default.
async fn goes_on_once(failure: Failure, needs_all: bool) {
    let cluster = Arc::new(Cluster::start());
    cluster.be_patient(true);
    if !needs_all {
        cluster.require_no_full_coverage();
    }
    let slot = cluster.slot_of("q");
    let old = cluster.master_of(slot);
    let client = builder(&*cluster).connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    let delayed = patient(&client);
    let load = FailoverLoad::start(&cluster.url(), {
        let cluster = cluster.clone();
        move || cluster.master_of(slot).port()
    })
    .await;
    delayed.offer(&1, ms(100)).await.unwrap();
    assert_eq!(soon(ready.take()).await.unwrap(), 1);
    let pending = tokio::spawn({
        let ready = ready.clone();
        async move { ready.take().await }
    });
    let receiver = client.blocking_queue("{q}r", codec::Long).receiver();
    let receiving = tokio::spawn(async move { receiver.receive().await?.ack().await });
    let beside = beside(&cluster);
    let dropped = client.blocking_queue(&beside, codec::Long);
    let dropped = tokio::spawn(async move { dropped.take().await });
    let is_over = Arc::new(AtomicBool::new(false));
    let other = elsewhere(&cluster);
    let healthy = tokio::spawn(slowest(client.clone(), other.clone(), is_over.clone()));
    let refusing = std::thread::spawn({
        let (server, is_over) = (cluster.master_of(cluster.slot_of(&other)).redis(), is_over.clone());
        move || longest_refusal(server, &other, &is_over)
    });
    let failed = load.under_way().await;
    delayed.offer(&2, ms(3000)).await.unwrap();
    let due = Instant::now() + ms(3000);
    let replica = cluster.replica_of(slot);
    until_replicated(old, replica).await;
    // On a busy machine, it may have been the master already.
    let is_new = lacks_scripts(replica) || replica.port() == old.port();
    assert!(is_new, "it has {} scripts", replica.cached_scripts());
    // No other master is replaced, nor the new one, however long a busy machine keeps it from answering.
    for server in cluster.servers().iter().filter(|server| server.port() != replica.port()) {
        server.cmd(["CONFIG", "SET", "cluster-replica-no-failover", "yes"]);
    }
    cluster.be_patient(false);
    // A taker leaves while nobody answers.
    let leaving = tokio::spawn(async move {
        tokio::time::sleep(ms(50)).await;
        dropped.abort();
    });
    let new = block_in_place(|| failure.happen(&cluster, slot));
    let promoted = Instant::now();
    soon(leaving).await.unwrap();
    // Foreign pushes and a foreign offer, then an offer, and the entry that was armed.
    new.cmd(["RPUSH", &beside, "4"]);
    new.cmd(["RPUSH", "{q}r", "3"]);
    soon(receiving).await.unwrap().unwrap();
    let received = promoted.elapsed();
    offer_elsewhere(&mut new.redis(), &ready.keys(), 4, ms(1)).unwrap();
    soon(delayed.offer(&3, ms(1))).await.unwrap();
    let mut taker = Taker { ready: &ready, again: (due < promoted).then_some(2) };
    let first = soon(pending).await.unwrap().unwrap();
    taker.take_all([first].into(), &[2, 3, 4]).await;
    let delivered = promoted.max(due).elapsed();
    is_over.store(true, Ordering::Relaxed);
    let slowest = soon(healthy).await.unwrap();
    let refused = refusing.join().unwrap();
    println!(
        "{failure:?}: {received:?} after the promotion a message is received, after {delivered:?} all is delivered; the slowest call of others took {slowest:?}, their server refused for {refused:?}"
    );
    let (back, more) = if is_soak() { (1, 1) } else { (60, 60) };
    assert!(received.max(delivered) < Duration::from_secs(back), "{received:?} {delivered:?}");
    // What exceeds that is the client. It is a fraction of a second if the machine is not busy.
    let refused = if needs_all { refused } else { Duration::ZERO };
    assert!(slowest < refused + Duration::from_secs(more), "{slowest:?} {refused:?}");
    load.judge(failed, promoted, new).await;
    if failure == Failure::Frozen {
        cluster.servers().iter().for_each(|server| server.thaw());
        // It becomes a replica of the new one. Nothing goes there meanwhile.
        taker.delivers(&delayed).await;
    }
    until_left(old).await;
    // Nobody has this but the taker that has left.
    assert_eq!(new.list(&beside), [b"4"]);
    // Nothing is left anywhere.
    client.shutdown().await;
    for server in cluster.servers().iter().filter(|server| server.is_running()) {
        let are_gone =
            until_async("no connection is left", || async { server.clients_named("redelay") == 0 });
        // Which they are says whose.
        if timeout(MINUTE, are_gone).await.is_err() {
            panic!(
                "connections are left on {}: {}",
                server.port(),
                server.get::<String, _>(["CLIENT", "LIST"])
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_planned_failover_of_a_cluster() {
    goes_on(Failure::Planned).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forced_failover_of_a_cluster() {
    goes_on(Failure::Forced).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_of_a_cluster_that_is_killed() {
    goes_on(Failure::Killed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_of_a_cluster_that_is_frozen_and_comes_back() {
    goes_on(Failure::Frozen).await;
}

/// Takers of lists on all servers: the first payload is there in a moment, and each comes once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn takers_of_lists_on_several_servers() {
    const VALUES: i64 = 2_000;
    let cluster = Cluster::start();
    cluster.be_patient(true);
    let client = builder(&cluster).command_timeout(MINUTE).connect().await.unwrap();
    let names = ["a", "b", "c", "d"];
    let servers: HashSet<_> =
        names.iter().map(|name| cluster.master_of(cluster.slot_of(name)).port()).collect();
    assert_eq!(servers.len(), 3, "choose other names");
    let first = client.blocking_queue("a", codec::Long);
    let mut late = Vec::new();
    for name in names.repeat(if is_soak() { 50 } else { 1 }) {
        let taking = async {
            let taken = soon(first.poll_from_any(HOUR, &names[1..])).await.unwrap();
            (taken, Instant::now())
        };
        let pushing = async {
            tokio::time::sleep(ms(100)).await;
            let pushed = Instant::now();
            client.blocking_queue(name, codec::Long).put(&7).await.unwrap();
            pushed
        };
        let ((taken, at), pushed) = tokio::join!(taking, pushing);
        assert_eq!(taken, Some((name.to_owned(), 7)));
        late.push(at.saturating_duration_since(pushed));
    }
    late.sort_unstable();
    let (median, most) = (late[late.len() / 2], late[late.len() * 99 / 100]);
    println!("{} payloads taken after {median:?} (median), {most:?} (99 %)", late.len());
    if is_soak() {
        assert!(most < ms(50), "{late:?}");
    }
    // Most of them, on a busy machine.
    assert!(median < ms(3000), "{late:?}");
    let left = Arc::new(AtomicI64::new(VALUES));
    let takers: Vec<_> = (0..8)
        .map(|_| {
            let (first, left) = (first.clone(), left.clone());
            tokio::spawn(async move {
                let mut taken = Vec::new();
                while left.load(Ordering::Relaxed) > 0 {
                    if let Some((_, value)) = first.poll_from_any(ms(1500), &names[1..]).await.unwrap() {
                        left.fetch_sub(1, Ordering::Relaxed);
                        taken.push(value);
                    }
                }
                taken
            })
        })
        .collect();
    for value in 0..VALUES {
        client.blocking_queue(names[value as usize % 4], codec::Long).put(&value).await.unwrap();
    }
    let mut taken = Vec::new();
    for taker in takers {
        taken.extend(soon(taker).await.unwrap());
    }
    taken.sort_unstable();
    assert!(taken.iter().copied().eq(0..VALUES), "{} of {VALUES}", taken.len());
    client.shutdown().await;
}

/// The only seed may be gone: the masters that are left say who has replaced it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_the_url_does_not_name_are_found() {
    let cluster = Cluster::start();
    let slot = cluster.slot_of("q");
    let seed = cluster.master_of(slot);
    let url = format!("redis-cluster://127.0.0.1:{}", seed.port());
    let client = builder(&url).command_timeout(MINUTE).connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    ready.put(&1).await.unwrap();
    block_in_place(|| {
        let old = seed.port();
        seed.kill_9();
        cluster.wait_for_other_master(slot, old);
    });
    until_async("a put", || async {
        let put = ready.put(&2).await;
        // On a busy machine, the cluster may be down for longer than a put is tried.
        assert!(put.as_ref().err().is_none_or(Error::is_outcome_unknown), "{put:?}");
        put.is_ok()
    })
    .await;
    client.shutdown().await;
}

/// The seeds are gone, and with them all masters: their replicas are known, and say that they have replaced
/// them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_that_replace_all_masters_at_once_are_found() {
    let cluster = Cluster::start();
    cluster.be_patient(true);
    let (masters, replicas) = cluster.servers().split_at(3);
    let seeds: Vec<_> = masters.iter().map(|master| format!("127.0.0.1:{}", master.port())).collect();
    let url = format!("redis-cluster://{}", seeds.join(","));
    let client = builder(&url).command_timeout(MINUTE).connect().await.unwrap();
    let names = ["a", "b", "c", "d"];
    let queues = names.map(|name| client.blocking_queue(name, codec::Long));
    for queue in &queues {
        queue.put(&0).await.unwrap();
        assert_eq!(soon(queue.take()).await.unwrap(), 0);
    }
    let pending: Vec<_> = queues
        .iter()
        .map(|queue| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.take().await })
        })
        .collect();
    until_async("they wait", || async {
        masters.iter().map(Server::blocked_clients).sum::<u64>() == names.len() as u64
    })
    .await;
    // A server does not name a replica before it has received something. Two answers later, the client knows
    // it.
    let named = |master: &Server| {
        let slots = format!("{:?}", master.cmd(["CLUSTER", "SLOTS"]));
        replicas.iter().all(|replica| slots.contains(&format!("int({})", replica.port())))
    };
    until_async("all replicas are named", || async { masters.iter().all(named) }).await;
    let answers =
        |master: &Server| master.command_calls("cluster|slots").max(master.command_calls("cluster"));
    let before: Vec<_> = masters.iter().map(answers).collect();
    until_async("two answers", || async {
        masters.iter().map(answers).zip(&before).all(|(now, before)| now > before + 1)
    })
    .await;
    block_in_place(|| {
        masters.iter().for_each(Server::kill_9);
        for replica in replicas {
            replica.cmd(["CLUSTER", "FAILOVER", "TAKEOVER"]);
        }
    });
    for queue in &queues {
        until_async("a put", || async { queue.put(&1).await.is_ok() }).await;
    }
    for pending in pending {
        assert_eq!(soon(pending).await.unwrap().unwrap(), 1);
    }
    assert_eq!(client.stats().failovers, 3);
    client.shutdown().await;
}

/// A whole shard is down: its queues fail with its address, and come back with it. Others go on, as far as
/// the servers let them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_without_a_server() {
    let cluster = Cluster::start();
    cluster.require_no_full_coverage();
    let slot = cluster.slot_of("q");
    let client = builder(&cluster).command_timeout(ms(1500)).connect().await.unwrap();
    let (ready, other) =
        (client.blocking_queue("q", codec::Long), client.blocking_queue(&elsewhere(&cluster), codec::Long));
    until_async("a put", || async { ready.put(&1).await.is_ok() }).await;
    let (master, replica) = (cluster.master_of(slot), cluster.replica_of(slot));
    replica.kill_9();
    master.kill_9();
    // The connection may not know it yet.
    let _ = soon(ready.put(&2)).await.unwrap_err();
    let error = soon(ready.put(&2)).await.unwrap_err();
    assert!(error.to_string().contains(&master.port().to_string()), "{error}");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(!error.is_outcome_unknown(), "{error}");
    until_async("a put", || async { other.put(&3).await.is_ok() }).await;
    assert_eq!(soon(other.take()).await.unwrap(), 3);
    let pending = tokio::spawn({
        let ready = ready.clone();
        async move { ready.take().await }
    });
    block_in_place(|| {
        master.start_again();
        replica.start_again();
    });
    until_async("a put", || async { ready.put(&4).await.is_ok() }).await;
    assert_eq!(soon(pending).await.unwrap().unwrap(), 4);
    client.shutdown().await;
}

/// The same with the server's defaults, with which all other masters refuse, too: errors say that it is the
/// cluster that is down.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_without_a_server_stops_the_others_until_it_is_back() {
    let cluster = Cluster::start();
    let slot = cluster.slot_of("q");
    let (master, replica) = (cluster.master_of(slot), cluster.replica_of(slot));
    let client = builder(&cluster).command_timeout(ms(1500)).connect().await.unwrap();
    let (ready, other) =
        (client.blocking_queue("q", codec::Long), client.blocking_queue(&elsewhere(&cluster), codec::Long));
    let delayed = client.delayed_queue(&other);
    let pending: Vec<_> = [&ready, &other]
        .into_iter()
        .map(|queue| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.take().await })
        })
        .collect();
    until_async("they wait", || async {
        cluster.servers().iter().map(Server::blocked_clients).sum::<u64>() == 2
    })
    .await;
    replica.kill_9();
    master.kill_9();
    let healthy = cluster.master_of(cluster.slot_of(other.name()));
    until_async("the others refuse", || async { healthy.try_cmd(["LLEN", other.name()]).is_err() }).await;
    // The client library ends the connection at this reply. It is the reason of one call, and the others that
    // are on their way have lost their connection. So a call is of unknown outcome, unless it waits for the
    // next connection when its time ends.
    let says_why = |error: Error| {
        assert!(error.is_unavailable() || error.is_outcome_unknown(), "{error}");
        error.to_string().contains("CLUSTERDOWN")
    };
    until_async("an offer says why", || async { delayed.offer(&1, ms(1)).await.is_err_and(says_why) }).await;
    until_async("a put says why", || async { other.put(&1).await.is_err_and(says_why) }).await;
    let error = soon(other.poll()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    let error = soon(ready.put(&1)).await.unwrap_err();
    assert!(error.to_string().contains(&master.port().to_string()), "{error}");
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    block_in_place(|| {
        master.start_again();
        replica.start_again();
    });
    until_async("an offer", || async { delayed.offer(&2, ms(1)).await.is_ok() }).await;
    until_async("a put", || async { ready.put(&2).await.is_ok() }).await;
    for pending in pending {
        assert_eq!(soon(pending).await.unwrap().unwrap(), 2);
    }
    client.shutdown().await;
}

async fn acknowledged_and_lost(failure: Failure, builder: ClientBuilder) -> (usize, usize) {
    let cluster = Cluster::start();
    let builder = builder.url(cluster.url()).connect_timeout(10 * MINUTE);
    around_failover::acknowledged_and_lost(builder, || {
        failure.happen(&cluster, cluster.slot_of("q"));
        std::thread::sleep(ms(500));
        cluster.servers().iter().for_each(|server| server.thaw());
    })
    .await
}

/// With one replica for each master, what is acknowledged with `replicas(1)` survives the death of the
/// master.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_a_replica_has_confirmed_is_lost() {
    for failure in [Failure::Planned, Failure::Killed].repeat(rounds()) {
        let builder = Client::builder().replicas(1, ms(500));
        let (acknowledged, lost) = acknowledged_and_lost(failure, builder).await;
        println!("{failure:?}: {acknowledged} offers acknowledged, {lost} lost");
        assert_eq!(lost, 0);
        assert!(acknowledged > 10, "too few to say anything");
    }
}

/// What the servers lose without that, which depends on them alone. For the documents.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it shows numbers, and checks none"]
async fn what_failovers_lose() {
    for failure in [Failure::Planned, Failure::Forced, Failure::Killed, Failure::Frozen].repeat(rounds()) {
        let (acknowledged, lost) = acknowledged_and_lost(failure, Client::builder()).await;
        println!("{failure:?}: {acknowledged} offers acknowledged, {lost} lost");
    }
}
