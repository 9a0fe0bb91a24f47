//! A queue of sixteen partitions on three masters, one of which fails.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use redelay::{BlockingQueue, Client, DelayedQueue, PartitionedQueue, codec};
use redelay_fixture::{Cluster, Server, until_async};
use redelay_support::{MINUTE, builder, ms, soon};
use tokio::task::{JoinHandle, block_in_place};

use super::super::around_failover::until_replicated;

const PARTITIONS: usize = 16;

/// What consumers have got.
#[derive(Clone, Default)]
struct Delivered(Arc<Mutex<HashMap<i64, usize>>>);

impl Delivered {
    fn add(&self, value: i64) {
        *self.0.lock().unwrap().entry(value).or_default() += 1;
    }

    fn has(&self, values: &[i64]) -> bool {
        let delivered = self.0.lock().unwrap();
        values.iter().all(|value| delivered.contains_key(value))
    }
}

/// A partitioned queue with its consumers, and what it has acknowledged.
struct Side {
    queue: PartitionedQueue<i64>,
    delivered: Delivered,
    consuming: Vec<JoinHandle<()>>,
    acknowledged: Vec<i64>,
    next: i64,
}

impl Side {
    /// With three takers of all partitions.
    async fn taken(client: &Client) -> Self {
        let mut side = Self::new(client, "taken").await;
        for _ in 0..3 {
            let (queue, delivered) = (side.queue.clone(), side.delivered.clone());
            side.consuming.push(tokio::spawn(async move {
                loop {
                    match queue.take().await {
                        Ok(value) => delivered.add(value),
                        Err(error) if error.is_closed() => return,
                        Err(error) => panic!("a take failed: {error}"),
                    }
                }
            }));
        }
        side
    }

    /// With a worker for all partitions.
    async fn worked(client: &Client) -> Self {
        let mut side = Self::new(client, "worked").await;
        let (worker, delivered) =
            (side.queue.worker().concurrency(8).lease(ms(2000)), side.delivered.clone());
        side.consuming.push(tokio::spawn(async move {
            let handler = move |value: i64| {
                delivered.add(value);
                async {}
            };
            worker.run_until(std::future::pending::<()>(), handler).await.unwrap();
        }));
        side
    }

    async fn new(client: &Client, name: &str) -> Self {
        let queue = client.partitioned_queue(name, PARTITIONS, codec::Long).await.unwrap();
        let (delivered, consuming) = (Delivered::default(), Vec::new());
        Self { queue, delivered, consuming, acknowledged: Vec::new(), next: 0 }
    }

    fn next(&mut self) -> i64 {
        self.next += 1;
        self.next
    }

    /// Two to each partition on average.
    async fn put_all(&mut self) {
        for _ in 0..2 * PARTITIONS {
            let value = self.next();
            self.queue.put(&value).await.unwrap();
            self.acknowledged.push(value);
        }
    }

    /// Eight to each partition, which become due during the failover and after it.
    async fn offer_all(&mut self) {
        for number in 0..8 * PARTITIONS as u64 {
            let value = self.next();
            self.queue.offer(&value, ms(1500 + 25 * number)).await.unwrap();
            self.acknowledged.push(value);
        }
    }

    /// A put and a delayed offer to each of these partitions, which are delivered.
    async fn goes_on(&mut self, partitions: &[(BlockingQueue<i64>, DelayedQueue<i64>)]) {
        let mut values = Vec::new();
        for (ready, delayed) in partitions {
            let [put, offered] = [self.next(), self.next()];
            // After a failover, the partition may be refused for a moment, and what is put once may be in
            // doubt.
            until_async("a put", || async { ready.put(&put).await.is_ok() }).await;
            until_async("an offer", || async { delayed.offer(&offered, ms(50)).await.is_ok() }).await;
            values.extend([put, offered]);
        }
        until_async("these partitions go on", || async { self.delivered.has(&values) }).await;
        self.acknowledged.extend(values);
    }

    /// Its partitions on this server, or on the others.
    fn partitions(
        &self,
        cluster: &Cluster,
        is_wanted: impl Fn(&Server) -> bool,
    ) -> Vec<(BlockingQueue<i64>, DelayedQueue<i64>)> {
        let all = self.queue.queues().cloned().zip(self.queue.delayed_queues().cloned());
        all.filter(|(ready, _)| is_wanted(cluster.master_of(cluster.slot_of(ready.name())))).collect()
    }
}

/// The partitions of the other masters go on while it is down, and all do when its replica has replaced it.
/// Nothing is lost.
async fn go_on(fail: impl Fn(&Server)) {
    let cluster = Cluster::start();
    cluster.be_patient(true);
    cluster.require_no_full_coverage();
    let client = builder(&cluster).connect().await.unwrap();
    let mut sides = [Side::taken(&client).await, Side::worked(&client).await];
    let slot = cluster.slot_of("worked#0");
    let (old, replica) = (cluster.master_of(slot), cluster.replica_of(slot));
    let all_masters: HashSet<_> = sides
        .iter()
        .flat_map(|side| side.queue.queues())
        .map(|queue| cluster.master_of(cluster.slot_of(queue.name())).port())
        .collect();
    assert_eq!(all_masters.len(), 3, "choose other names");

    let [_, worked] = &sides;
    worked.queue.pause().await.unwrap();
    until_async("all are paused", || async { worked.queue.stats().await.unwrap().is_paused }).await;
    for side in &mut sides {
        side.put_all().await;
    }
    let [taken, worked] = &sides;
    until_async("takers go on", || async { taken.delivered.has(&taken.acknowledged) }).await;
    assert_eq!(worked.queue.stats().await.unwrap().ready, 2 * PARTITIONS as u64);
    worked.queue.resume().await.unwrap();
    until_async("the worker goes on", || async { worked.delivered.has(&worked.acknowledged) }).await;
    until_async("all is settled", || async {
        worked.queue.stats().await.unwrap().receiving.acknowledged == 2 * PARTITIONS as u64
    })
    .await;

    // It stays down until the others have gone on.
    replica.cmd(["CONFIG", "SET", "cluster-replica-no-failover", "yes"]);
    for side in &mut sides {
        side.offer_all().await;
    }
    until_replicated(old, replica).await;
    cluster.be_patient(false);
    fail(old);
    for side in &mut sides {
        let others = side.partitions(&cluster, |master| master.port() != old.port());
        side.goes_on(&others).await;
    }
    for side in &sides {
        let error = soon(side.queue.stats()).await.unwrap_err();
        assert!(error.to_string().contains(&old.port().to_string()), "{error}");
    }
    assert!(!cluster.is_master(replica), "it was down meanwhile");
    replica.cmd(["CONFIG", "SET", "cluster-replica-no-failover", "no"]);
    block_in_place(|| cluster.wait_for_other_master(slot, old.port()));
    for side in &mut sides {
        let all = side.partitions(&cluster, |_| true);
        side.goes_on(&all).await;
    }
    let [_, worked] = &sides;
    until_async("a pause", || async { worked.queue.pause().await.is_ok() }).await;
    assert!(worked.queue.stats().await.unwrap().is_paused);
    worked.queue.resume().await.unwrap();
    for side in &sides {
        until_async("all that was acknowledged is delivered", || async {
            side.delivered.has(&side.acknowledged)
        })
        .await;
        until_async("nothing is left", || async {
            let stats = side.queue.stats().await;
            stats.is_ok_and(|stats| (stats.pending, stats.ready, stats.receiving.in_flight) == (0, 0, 0))
        })
        .await;
    }
    old.thaw();
    client.shutdown().await;
    for side in sides {
        for consuming in side.consuming {
            soon(consuming).await.unwrap();
        }
        let doubled = side.delivered.0.lock().unwrap().values().filter(|times| **times > 1).count();
        println!("{}: {} acknowledged, {doubled} doubled", side.queue.name(), side.acknowledged.len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_of_the_others_go_on_while_a_master_is_dead() {
    go_on(Server::kill_9).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partitions_of_the_others_go_on_while_a_master_is_frozen() {
    go_on(Server::freeze).await;
}

/// A worker waits for the answers of a silent master only as long as that may be a slow answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_master_holds_up_no_worker_of_the_others() {
    let cluster = block_in_place(|| Cluster::without_replicas(3));
    cluster.be_patient(true);
    cluster.require_no_full_coverage();
    let builder = || builder(&cluster).command_timeout(10 * MINUTE);
    let (working, offering) = (builder().connect().await.unwrap(), builder().connect().await.unwrap());
    let worked = Side::worked(&working).await;
    let mut side = Side::new(&offering, "worked").await;
    side.delivered = worked.delivered.clone();
    side.put_all().await;
    until_async("the worker goes on", || async { side.delivered.has(&side.acknowledged) }).await;
    let silent = cluster.master_of(cluster.slot_of("worked#0"));
    // Some of its calls wait for its answers, and some have settlements there.
    let held = side.partitions(&cluster, |master| master.port() == silent.port());
    for (ready, _) in &held {
        let value = side.next();
        ready.put(&value).await.unwrap();
    }
    silent.freeze();
    let others = side.partitions(&cluster, |master| master.port() != silent.port());
    for _ in 0..3 {
        side.goes_on(&others).await;
    }
    silent.thaw();
    side.goes_on(&held).await;
    drop((worked, working, offering));
}

/// A take that waited on the slots of three masters would get a payload of each, and give two of them back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn takes_of_a_backlog_give_nothing_back() {
    let cluster = block_in_place(|| Cluster::without_replicas(3));
    let client = builder(&cluster).connect().await.unwrap();
    let mut side = Side::new(&client, "backlog").await;
    // Payloads go back by this.
    let pushes = || cluster.servers().iter().map(|server| server.command_calls("lpush")).sum::<u64>();
    let begun = Instant::now();
    // A take looks at the lists for 100 ms, and then waits on all slots. So this repeats until no other
    // program slows it down.
    loop {
        side.acknowledged.clear();
        for _ in 0..4 {
            side.put_all().await;
        }
        let before = pushes();
        for _ in 0..side.acknowledged.len() {
            soon(side.queue.take()).await.unwrap();
        }
        let pushes = pushes() - before;
        if pushes <= 3 {
            return;
        }
        assert!(begun.elapsed() < 15 * MINUTE, "{pushes} payloads went back");
    }
}
