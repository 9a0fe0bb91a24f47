//! A replica is promoted, and the old master becomes its replica: at the address there is another server now.

use std::time::Duration;

use redelay_fixture::{Proxy, Server, until_async_within};
use redelay_support::CHANNEL;

use super::rig::{BOUND, finish};
use crate::workload::{Crew, Load};

async fn until(what: &str, condition: impl Fn() -> bool) {
    until_async_within(BOUND, what, || async { condition() }).await;
}

fn follow(replica: &Server, master: &Server) {
    replica.cmd(["REPLICAOF", "127.0.0.1", &master.port().to_string()]);
}

fn offset(server: &Server) -> u64 {
    let info = server.info("replication");
    let line = info.lines().find_map(|line| line.strip_prefix("master_repl_offset:"));
    line.and_then(|number| number.parse().ok()).expect("an offset")
}

async fn until_in_step(replica: &Server) {
    until("the replica is in step", || replica.info("replication").contains("master_link_status:up")).await;
}

/// Without loss of what was acknowledged, as `FAILOVER` does it: nothing is written while the replica catches up.
async fn fail_over(proxy: &Proxy, old: &Server, new: &Server) {
    old.cmd(["CLIENT", "PAUSE", "10000", "WRITE"]);
    until("the replica has everything", || offset(new) >= offset(old)).await;
    new.cmd(["REPLICAOF", "NO", "ONE"]);
    follow(old, new);
    proxy.switch_to(new.port());
    old.cmd(["CLIENT", "UNPAUSE"]);
}

/// A subscriber that stayed where it was would hear nothing any more of what others offer.
#[tokio::test(flavor = "multi_thread")]
async fn after_each_failover_all_connections_lead_to_the_new_master() {
    // A replica is served at once, not together with others that may come.
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
    println!("{:?}", finish(old, &proxy, &mut load, false).await.unwrap());
}

/// Nobody takes its place: reconnecting helps nothing, and must not become all that clients do.
#[tokio::test(flavor = "multi_thread")]
async fn while_nobody_is_the_master_clients_are_patient() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let mut load = Load::start(&Crew::of_two(), &proxy.url()).await;
    load.goes_on(50).await;
    let before = server.command_calls("subscribe");
    server.cmd(["REPLICAOF", "127.0.0.2", &server.port().to_string()]);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let subscribed = server.command_calls("subscribe") - before;
    server.cmd(["REPLICAOF", "NO", "ONE"]);
    load.goes_on(50).await;
    // Two clients, once a second each, and two channels at most.
    assert!(subscribed <= 20, "{subscribed}");
    println!("{subscribed} subscriptions; {:?}", finish(&server, &proxy, &mut load, false).await.unwrap());
}
