//! A replica is promoted and the old master becomes its replica, so another server answers at the address.

use std::time::{Duration, Instant};

use redelay::{Client, DelayedQueue, codec};
use redelay_fixture::{Proxy, Server, until_async_within};
use redelay_support::{CHANNEL, builder};

use super::rig::{BOUND, finish_demoted};
use crate::workload::{Crew, Load};

async fn until(what: &str, condition: impl Fn() -> bool) {
    until_async_within(BOUND, what, || async { condition() }).await;
}

fn follow(replica: &Server, master: &Server) {
    replica.cmd(["REPLICAOF", "127.0.0.1", &master.port().to_string()]);
}

async fn until_in_step(replica: &Server) {
    until("the replica is in step", || replica.info("replication").contains("master_link_status:up")).await;
}

/// Fails over without losing acknowledged writes, as `FAILOVER` does: writes are paused until the replica has
/// caught up.
async fn fail_over(proxy: &Proxy, old: &Server, new: &Server) {
    old.cmd(["CLIENT", "PAUSE", "10000", "WRITE"]);
    until("the replica has everything", || new.replication_offset() >= old.replication_offset()).await;
    new.cmd(["REPLICAOF", "NO", "ONE"]);
    follow(old, new);
    proxy.switch_to(new.port());
    old.cmd(["CLIENT", "UNPAUSE"]);
}

/// A subscriber that stayed on the old server would not receive the announcements of other clients.
#[tokio::test(flavor = "multi_thread")]
async fn after_each_failover_all_connections_lead_to_the_new_master() {
    // Lets a replica synchronise at once, without waiting for others.
    let start = || Server::builder().config("repl-diskless-sync-delay 0").start();
    let servers = [start(), start()];
    let (mut old, mut new) = (&servers[0], &servers[1]);
    follow(new, old);
    until_in_step(new).await;
    let proxy = Proxy::start(old.port());
    let mut load = Load::start(&Crew::of_two(), &proxy.url()).await;
    for _ in 0..4 {
        load.goes_on(50).await;
        fail_over(&proxy, old, new).await;
        load.goes_on(50).await;
        until("both listen there", || new.subscribers(CHANNEL) == 2).await;
        until("nobody is left behind", || old.clients_named("member") == 0).await;
        (old, new) = (new, old);
        until_in_step(new).await;
    }
    println!("{:?}", finish_demoted(old, &proxy, &mut load, 4).await.unwrap());
}

/// A client behind a proxy that hears announcements.
async fn listening(server: &Server) -> (Proxy, Client, DelayedQueue<i64>) {
    let proxy = Proxy::start(server.port());
    let client = builder(&proxy).connect().await.unwrap();
    let delayed = client.delayed_queue(&client.blocking_queue("q", codec::Long));
    until("it listens", || server.subscribers(CHANNEL) == 1).await;
    (proxy, client, delayed)
}

/// The address leads to the old master for a while. A connection on which nothing is written would stay
/// there.
#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_that_reaches_the_old_master_once_more_leaves_it() {
    let servers = [Server::start(), Server::start()];
    let [old, new] = &servers;
    let (proxy, client, _delayed) = listening(old).await;
    follow(old, new);
    old.cmd(["CLIENT", "KILL", "TYPE", "pubsub"]);
    until("it is back, and asks", || old.command_calls("role") >= 2).await;
    // No write is refused there any more.
    proxy.switch_to(new.port());
    old.cmd(["CLIENT", "KILL", "TYPE", "normal"]);
    until("it listens to the new master", || new.subscribers(CHANNEL) == 1).await;
    assert_eq!(old.subscribers(CHANNEL), 0);
    client.shutdown().await;
}

/// The connection for commands is lost before a write is refused on it, and then leads to the new master. The
/// subscriber's is not lost: the old one goes on as a replica.
#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_follows_the_commands_to_the_new_master() {
    let servers = [Server::start(), Server::start()];
    let [old, new] = &servers;
    let (proxy, client, _delayed) = listening(old).await;
    proxy.switch_to(new.port());
    old.cmd(["CLIENT", "KILL", "TYPE", "normal"]);
    follow(old, new);
    until("it listens to the new master", || new.subscribers(CHANNEL) == 1).await;
    until("it has left the old one", || old.subscribers(CHANNEL) == 0).await;
    client.shutdown().await;
}

/// No server is promoted. Reconnecting does not help, and clients must not keep reconnecting.
#[tokio::test(flavor = "multi_thread")]
async fn while_nobody_is_the_master_clients_are_patient() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let mut load = Load::start(&Crew::of_two(), &proxy.url()).await;
    load.goes_on(50).await;
    let before = server.command_calls("subscribe");
    let begun = Instant::now();
    server.cmd(["REPLICAOF", "127.0.0.2", &server.port().to_string()]);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let subscribed = server.command_calls("subscribe") - before;
    let seconds = begun.elapsed().as_secs();
    server.cmd(["REPLICAOF", "NO", "ONE"]);
    load.goes_on(50).await;
    // Two clients, each at most once a second on two channels.
    assert!(subscribed <= 4 * (seconds + 2), "{subscribed} in {seconds} s");
    println!(
        "{subscribed} subscriptions; {:?}",
        finish_demoted(&server, &proxy, &mut load, 1).await.unwrap()
    );
}
