//! More queues with takers on one master than connections that block. The server reports which of the other
//! lists have changed, and so does a new master.

use std::collections::HashSet;
use std::time::Duration;

use redelay::codec;
use redelay_fixture::{Cluster, Failover, Server, until_async};
use redelay_support::{builder, soon};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::task::block_in_place;
use tokio::time::timeout;

/// How many of a master's lists have a connection that blocks.
const PARKED: usize = 64;
const QUEUES: usize = PARKED + 16;
/// Half of the time after which a taker looks by itself, without a sign.
const BEFORE_IT_LOOKS: Duration = Duration::from_secs(10);

/// Pushes to each list at its master, all at once. Each payload is taken.
async fn each_is_taken(
    cluster: &Cluster,
    names: &[(String, u16)],
    taken: &mut UnboundedReceiver<(usize, i64)>,
    value: i64,
) {
    for (name, slot) in names {
        let master = cluster.master_of(*slot);
        master.cmd(["RPUSH", name, &value.to_string()]);
    }
    let mut left: HashSet<usize> = (0..names.len()).collect();
    while !left.is_empty() {
        match timeout(BEFORE_IT_LOOKS, taken.recv()).await {
            Ok(Some((number, got))) => assert!(got == value && left.remove(&number), "{number}: {got}"),
            _ => panic!("{} lists have payloads that nobody takes: {left:?}", left.len()),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn takers_beyond_the_connections_that_block_follow_their_lists() {
    let cluster = Cluster::start();
    cluster.be_patient(true);
    let master = &cluster.servers()[0];
    let slots = 0..16_384 / 3;
    // Each has a slot of its own.
    let mut seen = HashSet::new();
    let names: Vec<(String, u16)> = (0..)
        .map(|number| format!("many{number}"))
        .map(|name| (cluster.slot_of(&name), name))
        .filter(|(slot, _)| slots.contains(slot) && seen.insert(*slot))
        .map(|(slot, name)| (name, slot))
        .take(QUEUES)
        .collect();
    let client = builder(&cluster).transfer(false).connect().await.unwrap();
    let (sender, mut taken) = mpsc::unbounded_channel();
    for (number, (name, _)) in names.iter().enumerate() {
        let (queue, sender) = (client.blocking_queue(name, codec::Long), sender.clone());
        tokio::spawn(async move {
            while let Ok(value) = queue.take().await {
                let _ = sender.send((number, value));
            }
        });
        if number + 1 == PARKED {
            until_async("they block", || async { master.blocked_clients() == PARKED as u64 }).await;
        }
    }
    until_all_wait(master).await;
    each_is_taken(&cluster, &names, &mut taken, 1).await;

    let new = block_in_place(|| cluster.failover(names[0].1, Failover::Planned));
    until_all_wait(new).await;
    each_is_taken(&cluster, &names, &mut taken, 2).await;

    // Of an empty list that has gone elsewhere, the server tells those that have no connection of their own
    // nothing.
    let to = &cluster.servers()[1];
    let moved = [0, QUEUES - 2, QUEUES - 1];
    block_in_place(|| {
        for number in moved {
            let slot = names[number].1;
            cluster.begin_move(slot, to);
            cluster.migrate_keys(slot);
            cluster.end_move(slot);
        }
    });
    each_is_taken(&cluster, &names, &mut taken, 3).await;
    for number in moved {
        assert_eq!(cluster.master_of(names[number].1).port(), to.port());
    }
    soon(client.shutdown()).await;
}

/// Some of them block, and the master tells of the lists of the others.
async fn until_all_wait(master: &Server) {
    until_async("all wait", || async {
        let info = master.info("stats");
        let told = info.lines().find_map(|line| line.strip_prefix("tracking_total_keys:")).unwrap();
        let (blocked, told) = (master.blocked_clients() as usize, told.trim().parse::<usize>().unwrap());
        blocked >= PARKED && blocked + told >= QUEUES
    })
    .await;
}
