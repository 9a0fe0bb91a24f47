//! Commands that were in flight on an abandoned connection arrive late, and the server no longer executes
//! them.

use futures::future::join_all;
use redelay::codec;
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{MINUTE, TIMEOUT_SET, keys, ms, soon};
use tokio::task::JoinHandle;

use super::{Queues, behind, connected, each_version};

/// Releases the stranded bytes, and waits until the server has read or refused them.
async fn deliver_late(proxy: &Proxy) {
    let new = proxy.connections() - 1;
    proxy.release();
    until_async("the old connection has ended", || async { proxy.connections() <= new }).await;
}

#[tokio::test]
async fn an_offer_that_arrives_after_its_second_try_was_taken_is_not_stored() {
    for server in each_version() {
        let proxy = Proxy::start(server.port());
        let offering = behind(&proxy).await;
        let others = connected(redelay::Client::builder().url(server.url())).await;
        // Loads the script, so that the first try needs only one command.
        others.delayed.offer(&0, MINUTE).await.unwrap();
        others.delayed.clear().await.unwrap();

        proxy.strand();
        let ticket = soon(offering.delayed.offer(&1, MINUTE)).await.unwrap();
        others.delayed.reschedule(&ticket, ms(0)).await.unwrap();
        assert_eq!(soon(others.ready.take()).await.unwrap(), 1);

        deliver_late(&proxy).await;
        assert_eq!(server.zset(TIMEOUT_SET), [], "{}", server.version());
        assert_eq!(others.ready.poll().await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_poll_that_arrives_after_its_second_try_was_read_takes_nothing() {
    for server in each_version() {
        let proxy = Proxy::start(server.port());
        let polling = behind(&proxy).await;
        assert_eq!(polling.ready.poll().await.unwrap(), None);
        for n in [1, 2] {
            polling.ready.put(&n).await.unwrap();
        }

        proxy.strand();
        assert_eq!(soon(polling.ready.poll()).await.unwrap(), Some(1));
        until_async("the server has forgotten what it gave", || async { server.keys() == [b"q"] }).await;

        deliver_late(&proxy).await;
        assert_eq!(server.list("q"), [b"2"], "{}", server.version());
        assert_eq!(keys(&server), [b"q"]);
    }
}

/// The first words of the commands that the server has executed, latest first.
fn commands(server: &Server) -> Vec<String> {
    type Entry = (u64, u64, u64, Vec<Vec<u8>>, String, String);
    let entries: Vec<Entry> = server.get(["SLOWLOG", "GET", "1000"]);
    let words = entries.into_iter().map(|(.., words, _, _)| words);
    words
        .map(|words| String::from_utf8_lossy(&words[..words.len().min(2)].join(&b' ')).into_owned())
        .collect()
}

/// Needs several threads: on one, the callers would not run before the task that watches the connection.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_tried_again_before_the_old_connection_is_gone() {
    let server = Server::builder().config("slowlog-log-slower-than 0").config("slowlog-max-len 1000").start();
    let proxy = Proxy::start(server.port());
    let offering = behind(&proxy).await;
    proxy.strand();
    server.cmd(["SLOWLOG", "RESET"]);
    let offers = (0..50).map(|n| {
        let delayed = offering.delayed.clone();
        tokio::spawn(async move { delayed.offer(&n, MINUTE).await })
    });
    for offer in soon(join_all(offers)).await {
        offer.unwrap().unwrap();
    }
    let commands = commands(&server);
    let kill = commands.iter().position(|command| command == "CLIENT KILL").expect("in the log");
    let is_try = |command: &&String| command.starts_with("EVALSHA ") || command.starts_with("TIME");
    assert!(commands[..kill].iter().filter(is_try).count() >= 2, "{commands:?}");
    assert_eq!(commands[kill..].iter().filter(is_try).count(), 0, "{commands:?}");
}

/// The ids of the connections in a blocking pop.
fn parked(server: &Server) -> Vec<String> {
    let list: String = server.get(["CLIENT", "LIST"]);
    let parked = list.lines().filter(|line| line.contains(" cmd=blpop"));
    parked.filter_map(|line| line.strip_prefix("id=")?.split(' ').next()).map(str::to_owned).collect()
}

/// A take of one client, in a task.
fn take(queues: &Queues, name: &str) -> JoinHandle<redelay::Result<i64>> {
    let ready = queues.client.blocking_queue(name, codec::Long);
    tokio::spawn(async move { ready.take().await })
}

/// Waits until a pop is parked on a connection that is not in `old`. Returns the client list of that moment.
async fn parked_elsewhere(server: &Server, old: &[String]) -> String {
    let is_new = || async { parked(server).iter().any(|id| !old.contains(id)) };
    until_async("another pop is parked", is_new).await;
    server.get(["CLIENT", "LIST"])
}

/// The client knows that the connection has ended, and the server does not. The server has two parked pops,
/// and serves them in the order of their arrival.
#[tokio::test]
async fn a_parked_pop_of_an_ended_connection_takes_nothing_from_the_next_one() {
    for server in each_version() {
        let proxy = Proxy::start(server.port());
        let taking = behind(&proxy).await;
        let first = take(&taking, "q");
        until_async("the pop is parked", || async { server.blocked_clients() == 1 }).await;
        let old = parked(&server);
        proxy.hang_up();
        let clients = parked_elsewhere(&server, &old).await;
        assert!(!clients.contains(&format!("id={} ", old[0])), "{clients}");
        server.cmd(["RPUSH", "q", "1"]);
        assert_eq!(soon(first).await.unwrap().unwrap(), 1, "{}", server.version());
    }
}

/// After 13 s, the task that pops notices that its block is over and no reply has arrived.
#[tokio::test]
async fn a_parked_pop_that_fell_silent_is_gone_before_the_next_one() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let taking = behind(&proxy).await;
    let first = take(&taking, "q");
    until_async("the pop is parked", || async { server.blocked_clients() == 1 }).await;
    let old = parked(&server);
    proxy.strand();
    let clients = parked_elsewhere(&server, &old).await;
    assert!(!clients.contains(&format!("id={} ", old[0])), "{clients}");

    // Another taker interrupts the pop by the id of its connection, which must be the id of the current one.
    until_async("commands work again", || async { taking.ready.len().await.is_ok() }).await;
    let (accepted, pops) = (proxy.accepted(), server.command_calls("blpop"));
    let second = take(&taking, "other");
    until_async("a pop is parked for both", || async { server.command_calls("blpop") > pops }).await;
    server.cmd(["RPUSH", "other", "2"]);
    assert_eq!(soon(second).await.unwrap().unwrap(), 2);
    server.cmd(["RPUSH", "q", "1"]);
    assert_eq!(soon(first).await.unwrap().unwrap(), 1);
    assert_eq!(proxy.accepted(), accepted);
}
