//! What was on its way on a connection that was given up arrives late, and finds the door closed.

use redelay_fixture::{Proxy, Server, until_async, until_async_within};

use crate::{MINUTE, TIMEOUT_SET, behind, connected, each_version, ms, soon};

/// Lets what was stranded go on, and waits until the server has read it, or has refused to.
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
        // So that the script is known, and the first try needs one command only.
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
        assert_eq!(server.keys(), [b"q"]);
    }
}

/// The ids of the connections in a blocking pop.
fn parked(server: &Server) -> Vec<String> {
    let list: String = server.get(["CLIENT", "LIST"]);
    let parked = list.lines().filter(|line| line.contains(" cmd=blpop"));
    parked.filter_map(|line| line.strip_prefix("id=")?.split(' ').next()).map(str::to_owned).collect()
}

/// The pops task notices when its slice is over and no reply has come, after 13 s.
#[tokio::test]
async fn a_parked_pop_that_fell_silent_is_gone_before_the_next_one() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let taking = behind(&proxy).await;
    let take = tokio::spawn({
        let ready = taking.ready.clone();
        async move { ready.take().await }
    });
    until_async("the pop is parked", || async { server.blocked_clients() == 1 }).await;
    let old = parked(&server);

    proxy.strand();
    let is_new =
        || async { server.blocked_clients() == 1 && !parked(&server).iter().all(|id| old.contains(id)) };
    until_async_within(MINUTE, "another pop is parked", is_new).await;
    let clients: String = server.get(["CLIENT", "LIST"]);
    assert!(!clients.contains(&format!("id={} ", old[0])), "{clients}");
    server.cmd(["RPUSH", "q", "1"]);
    assert_eq!(soon(take).await.unwrap().unwrap(), 1);
}

/// Whoever begins to take from another queue interrupts the pop; when that has no effect, the connection is given up
/// long before the server would end the old pop, which would take what is put now.
#[tokio::test]
async fn a_parked_pop_on_a_silent_connection_takes_nothing_from_the_next_one() {
    for server in each_version() {
        let proxy = Proxy::start(server.port());
        let taking = connected(redelay::Client::builder().url(proxy.url()).transfer(false)).await;
        let take = |name: &str| {
            let ready = taking.client.blocking_queue::<i64>(name, redelay::codec::Long);
            tokio::spawn(async move { ready.take().await })
        };
        let first = take("q");
        until_async("the pop is parked", || async { server.blocked_clients() == 1 }).await;
        let old = parked(&server);

        proxy.strand();
        let second = take("other");
        let is_new = || async { !parked(&server).iter().all(|id| old.contains(id)) };
        until_async_within(MINUTE, "another pop is parked", is_new).await;
        server.cmd(["RPUSH", "q", "1"]);
        assert_eq!(soon(first).await.unwrap().unwrap(), 1, "{}", server.version());

        // The next interruption knows the connection's new id, so it needs no further connection.
        until_async("the pop is parked again", || async { server.blocked_clients() == 1 }).await;
        let accepted = proxy.accepted();
        let third = take("third");
        server.cmd(["RPUSH", "third", "3"]);
        assert_eq!(soon(third).await.unwrap().unwrap(), 3);
        server.cmd(["RPUSH", "other", "2"]);
        assert_eq!(soon(second).await.unwrap().unwrap(), 2);
        assert_eq!(proxy.accepted(), accepted);
    }
}
