//! When and how often a connection is given up, and what remains of it.

use std::pin::pin;
use std::time::{Duration, Instant};

use futures::future::{join_all, poll_immediate};
use redelay::Client;
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{MINUTE, ms, soon};
use tokio::time::sleep;

use super::{Queues, behind, connected, each_version};

#[tokio::test]
async fn many_callers_on_a_silent_connection_cause_one_reconnection() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let queues = behind(&proxy).await;
    let accepted = proxy.accepted();
    proxy.strand();
    let puts = join_all((0..200).map(|n| async move { n }).map(async |n| queues.ready.put(&n.await).await));
    assert!(soon(puts).await.iter().all(Result::is_err), "none of them was answered");
    queues.ready.put(&1).await.unwrap();
    assert_eq!(server.list("q"), [b"1"]);
    assert_eq!(proxy.accepted(), accepted + 1);
}

#[tokio::test]
async fn many_callers_on_a_demoted_server_cause_one_reconnection() {
    let (server, nobody) = (Server::start(), Server::start());
    nobody.stop();
    let proxy = Proxy::start(server.port());
    let queues = behind(&proxy).await;
    let accepted = proxy.accepted();
    server.cmd(["REPLICAOF", "127.0.0.1", &nobody.port().to_string()]);
    let puts = join_all((0..200).map(|n| async move { n }).map(async |n| queues.ready.put(&n.await).await));
    assert!(soon(puts).await.iter().all(Result::is_err), "all of them were refused");
    server.cmd(["REPLICAOF", "NO", "ONE"]);
    queues.ready.put(&1).await.unwrap();
    assert_eq!(proxy.accepted(), accepted + 1);
}

#[tokio::test]
async fn a_silent_connection_under_steady_load_is_given_up() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let queues = behind(&proxy).await;
    let accepted = proxy.accepted();
    proxy.strand();
    let load = async {
        let mut tick = tokio::time::interval(ms(10));
        loop {
            tick.tick().await;
            let ready = queues.ready.clone();
            tokio::spawn(async move { ready.put(&1).await });
        }
    };
    let goes_on = async {
        until_async("puts arrive again", || async { server.list("q").len() > 100 }).await;
    };
    tokio::select! {
        () = load => {}
        () = goes_on => {}
    }
    assert_eq!(proxy.accepted(), accepted + 1);
}

#[tokio::test]
async fn a_connect_that_was_dropped_or_timed_out_leaves_nothing_behind() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let clients = |server: &Server| server.info("clients").contains("connected_clients:1\r");
    // Dropped at each step of the handshake, because the replies arrive one by one.
    proxy.delay(ms(20));
    for step in 1.. {
        let connect = Client::builder().url(proxy.url()).client_name("dropped").connect();
        let dropped = tokio::time::timeout(ms(20 * step), connect).await.map(drop).is_err();
        until_async("its connection has ended", || async { clients(&server) && proxy.connections() == 0 })
            .await;
        if !dropped {
            break;
        }
    }
    proxy.delay(Duration::ZERO);
    // The server sends no reply, or only those before a certain one.
    for fault in [Proxy::blackhole, Proxy::hold_replies] {
        fault(&proxy, true);
        let connect = Client::builder().url(proxy.url()).connect_timeout(ms(100)).connect();
        soon(connect).await.expect_err("no answer");
        let mut connect = pin!(Client::builder().url(proxy.url()).connect());
        assert!(poll_immediate(&mut connect).await.is_none());
        fault(&proxy, false);
        let client = soon(connect).await.expect("a connection after all");
        assert_eq!(server.clients_named("redelay"), 1);
        drop(client);
        until_async("all have ended", || async { clients(&server) && proxy.connections() == 0 }).await;
    }
}

/// Another server answers at the same address.
#[tokio::test]
async fn a_failover_needs_no_restart() {
    for (old, new) in each_version().zip(each_version()) {
        new.cmd(["REPLICAOF", "127.0.0.1", &old.port().to_string()]);
        until_async("the replica is in step", || async {
            new.info("replication").contains("master_link_status:up")
        })
        .await;
        let proxy = Proxy::start(old.port());
        let queues = connected(Client::builder().url(proxy.url())).await;
        let take = || {
            let ready = queues.ready.clone();
            tokio::spawn(async move { ready.take().await })
        };
        let first = take();
        queues.delayed.offer(&1, ms(1)).await.unwrap();
        assert_eq!(soon(first).await.unwrap().unwrap(), 1);

        let second = take();
        until_async("the pop is parked", || async { old.blocked_clients() == 1 }).await;
        new.cmd(["REPLICAOF", "NO", "ONE"]);
        old.cmd(["REPLICAOF", "127.0.0.1", &new.port().to_string()]);
        proxy.switch_to(new.port());
        soon(queues.delayed.offer(&2, ms(1))).await.unwrap();
        assert_eq!(soon(second).await.unwrap().unwrap(), 2, "{}", new.version());
        soon(queues.ready.put(&3)).await.unwrap();
        assert_eq!(new.list("q"), [b"3"]);
        assert_eq!(soon(take()).await.unwrap().unwrap(), 3);
        // A subscriber is not notified when its server is demoted.
        let channel = "redisson_delay_queue_channel:{q}";
        until_async("it listens there", || async { new.subscribers(channel) == 1 }).await;
        assert_eq!(old.subscribers(channel), 0);
    }
}

/// The number of error replies that the server has sent.
fn errors(server: &Server) -> u64 {
    let stats = server.info("stats");
    let count = stats.lines().find_map(|line| line.strip_prefix("total_error_replies:"));
    count.and_then(|count| count.parse().ok()).expect("a number")
}

/// The same server is demoted and promoted again. No other server answers.
#[tokio::test]
async fn a_demotion_that_ends_needs_no_restart() {
    for server in each_version() {
        let nobody = Server::start();
        nobody.stop();
        let queues = connected(Client::builder().url(server.url())).await;
        queues.delayed.offer(&0, MINUTE).await.unwrap();
        let before = errors(&server);
        server.cmd(["REPLICAOF", "127.0.0.1", &nobody.port().to_string()]);
        let offer = queues.delayed.offer(&1, ms(1));
        let promote = async {
            until_async("a command was refused", || async { errors(&server) > before }).await;
            server.cmd(["REPLICAOF", "NO", "ONE"]);
        };
        let (offer, ()) = soon(async { tokio::join!(offer, promote) }).await;
        offer.unwrap();
        assert_eq!(soon(queues.ready.take()).await.unwrap(), 1);
    }
}

/// Then the old connection stays open for as long as the server keeps it.
#[tokio::test]
async fn without_the_permission_to_end_connections_reconnecting_works() {
    for server in each_version() {
        let rules = ["on", ">secret", "allkeys", "allchannels", "+@all", "-client|kill", "-client|info"];
        if server.try_cmd(["ACL", "SETUSER", "modest"].into_iter().chain(rules)).is_err() {
            // Redis before 7.0 cannot withdraw single subcommands.
            continue;
        }
        let url = format!("redis://modest:secret@127.0.0.1:{}", server.port());
        let queues = connected(Client::builder().url(url).client_name("modest").transfer(false)).await;
        for n in 0..3 {
            queues.ready.put(&n).await.unwrap();
            assert_eq!(server.kill_client_named("modest"), 1);
            until_async("it is back", || async { server.clients_named("modest") == 1 }).await;
            assert_eq!(soon(queues.ready.len()).await.unwrap(), n as usize + 1);
        }
    }
}

/// A call does not wait for the whole pause between two tries.
#[tokio::test]
async fn takers_that_never_wait_for_long_go_on_after_an_outage() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let Queues { ready, .. } = behind(&proxy).await;
    assert_eq!(ready.poll_timeout(ms(2)).await.unwrap(), None);
    proxy.refuse(true);
    proxy.cut();
    let begun = Instant::now();
    while begun.elapsed() < ms(3000) {
        let _ = ready.poll_timeout(ms(2)).await;
        sleep(ms(1)).await;
    }
    proxy.refuse(false);
    server.cmd(["RPUSH", "q", "7"]);
    let taken = async {
        loop {
            if let Ok(Some(taken)) = ready.poll_timeout(ms(2)).await {
                break taken;
            }
            sleep(ms(1)).await;
        }
    };
    assert_eq!(soon(taken).await, 7);
}
