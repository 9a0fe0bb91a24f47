//! `stats` reports what has happened, and shows when a queue is stuck.

use std::time::Duration;

use redelay::{ErrorKind, codec};
use redelay_fixture::{ClientKind, Proxy, Server, until, until_async};
use redelay_support::{
    HOUR, ORDERED_LIST, TIMEOUT_SET, lasting, ms, number_queues, patient_builder, soon, still_number_queues,
    still_text_queues,
};
use tokio_test::{assert_pending, task};

#[tokio::test]
async fn a_queue_that_nobody_moves() {
    let server = Server::start();
    let (client, ready, delayed) = still_number_queues(&server).await;
    let empty = delayed.stats().await.unwrap();
    assert_eq!(
        (empty.pending, empty.list_len, empty.ready, empty.overdue, empty.quarantined),
        (0, 0, 0, 0, 0)
    );
    assert_eq!((empty.next_due_in, empty.overdue_for, empty.last_transfer_ago), (None, None, None));

    delayed.offer(&1, HOUR).await.unwrap();
    let stats = delayed.stats().await.unwrap();
    let next = stats.next_due_in.unwrap();
    assert!(next <= HOUR + ms(1) && next > HOUR - ms(10_000), "{next:?}");
    assert_eq!((stats.pending, stats.list_len, stats.overdue, stats.overdue_for), (1, 1, 0, None));

    delayed.offer(&2, ms(0)).await.unwrap();
    delayed.offer(&3, ms(0)).await.unwrap();
    ready.offer_all(&[4, 5, 6]).await.unwrap();
    server.cmd(["RPUSH", "redelay:quarantine:{q}", "1", "junk"]);
    until_async("overdue", || async { delayed.stats().await.unwrap().overdue_for > Some(ms(20)) }).await;
    for stats in [delayed.stats().await.unwrap(), ready.stats().await.unwrap()] {
        assert_eq!((stats.pending, stats.list_len, stats.ready), (3, 3, 3));
        assert_eq!((stats.overdue, stats.next_due_in, stats.quarantined), (2, Some(ms(0)), 1));
        assert!(!stats.transferring, "nobody moves it: that is what is wrong");
        assert_eq!((stats.transfers, stats.transferred, stats.quarantined_by_this_client), (0, 0, 0));
    }
    assert_eq!(client.stats().transferring_queues, 0);
}

#[tokio::test]
async fn what_is_moved_is_counted_for_queue_and_client() {
    let server = Server::start();
    let (client, ready, delayed) = number_queues(&server).await;
    for n in 0..10 {
        delayed.offer(&n, ms(n as u64)).await.unwrap();
    }
    for _ in 0..10 {
        soon(ready.take()).await.unwrap();
    }
    let other = client.blocking_queue("{q}other", codec::Long);
    client.delayed_queue(&other).offer(&1, ms(1)).await.unwrap();
    soon(other.take()).await.unwrap();
    until_async("counted", || async { client.stats().transferred == 11 }).await;

    let stats = delayed.stats().await.unwrap();
    assert_eq!((stats.transferred, stats.pending, stats.ready), (10, 0, 0));
    assert_eq!((stats.failed_transfers, stats.quarantined_by_this_client), (0, 0));
    assert!(stats.transferring);
    assert!(stats.transfers > 0 && stats.transfers <= 1 + 2 * 11, "{stats:?}");
    assert!(stats.last_transfer_ago.unwrap() < Duration::from_secs(10));
    assert!(stats.last_error.is_none(), "{:?}", stats.last_error);
    let both = client.stats();
    assert_eq!((both.transferred, both.transferring_queues, both.reconnects), (11, 2, 0));
    assert!(both.transfers > stats.transfers && both.empty_transfers >= stats.empty_transfers);
    assert!(both.connected);
    assert!(both.last_error.is_none(), "{:?}", both.last_error);
}

#[tokio::test]
async fn looking_at_a_quiet_queue_is_an_empty_wake_up() {
    let server = Server::start();
    let client = patient_builder(&server).sweep_interval(Duration::from_secs(1)).connect().await.unwrap();
    let delayed = client.delayed_queue(&client.blocking_queue("q", codec::Long));
    until_async("sweeps", || async { delayed.stats().await.unwrap().empty_transfers >= 2 }).await;
    let stats = delayed.stats().await.unwrap();
    assert_eq!((stats.empty_transfers, stats.transferred), (stats.transfers, 0));
}

#[tokio::test]
async fn takers_are_counted_while_they_wait() {
    let server = Server::start();
    let (client, ready, delayed) = number_queues(&server).await;
    let other = client.blocking_queue("{q}other", codec::Long);
    assert_eq!(client.stats().takers, 0);

    let mut take = task::spawn(ready.take());
    let mut any = task::spawn(ready.poll_from_any(HOUR, &["{q}other", "q"]));
    let mut moving = task::spawn(other.take_last_and_offer_first_to("{q}third"));
    assert_eq!(client.stats().takers, 0, "nobody has asked yet");
    assert_pending!(take.poll());
    assert_pending!(any.poll());
    assert_pending!(moving.poll());
    assert_eq!(client.stats().takers, 3);
    assert_eq!(delayed.stats().await.unwrap().takers, 2);
    assert_eq!(other.stats().await.unwrap().takers, 2);
    drop((any, moving));
    assert_eq!(client.stats().takers, 1);
    assert_eq!(other.stats().await.unwrap().takers, 0);
    ready.put(&1).await.unwrap();
    assert_eq!(soon(take).await.unwrap(), 1);
    assert_eq!(client.stats().takers, 0);
    assert_eq!(ready.poll_timeout(ms(1)).await.unwrap(), None);
    assert_eq!(ready.poll().await.unwrap(), None);
    assert_eq!(client.stats().takers, 0);
}

#[tokio::test]
async fn a_transfer_that_fails_says_why() {
    let server = Server::start();
    let (client, ready, delayed) = number_queues(&server).await;
    server.cmd(["SET", "q", "of another type"]);
    delayed.offer(&1, ms(1)).await.unwrap();
    until_async("it has failed", || async { client.stats().failed_transfers > 0 }).await;
    let error = client.stats().last_error.expect("an error");
    assert!(error.message.contains("queue `q`") && error.message.contains("WRONGTYPE"), "{error:?}");
    let refused = delayed.stats().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused, "the key of another type is the answer: {refused}");
    server.cmd(["DEL", "q"]);
    assert_eq!(soon(ready.take()).await.unwrap(), 1);
    until_async("counted", || async { delayed.stats().await.unwrap().transferred == 1 }).await;
    let stats = delayed.stats().await.unwrap();
    let error = stats.last_error.expect("an error");
    assert!(stats.failed_transfers > 0 && error.message.contains("WRONGTYPE"), "{error:?}");
    assert!(error.ago > stats.last_transfer_ago.unwrap(), "it is over");
}

#[tokio::test]
async fn reconnections_are_counted_and_what_was_lost_is_told() {
    let server = Server::start();
    let (client, ready, _delayed) = number_queues(&server).await;
    let taking = tokio::spawn(async move { ready.take().await });
    until_async("all three connections", || async {
        server.blocked_clients() == 1 && server.subscribers("redisson_delay_queue_channel:{q}") == 1
    })
    .await;
    server.kill_clients(ClientKind::Normal);
    server.kill_clients(ClientKind::Pubsub);
    until_async("all three are back", || async { client.stats().reconnects == 3 }).await;
    let stats = client.stats();
    assert!(stats.last_error.is_some());
    until_async("connected", || async { client.stats().connected }).await;

    server.stop();
    until_async("the loss is noticed", || async { !client.stats().connected }).await;
    server.start_again();
    until_async("the connection is back", || async { client.stats().connected }).await;
    until_async("all three are back", || async { client.stats().reconnects == 6 }).await;
    client.shutdown().await;
    assert!(taking.await.unwrap().is_err());
    assert_eq!(client.stats().transferring_queues, 0, "nothing is moved after a shutdown");
    assert_eq!(client.stats().takers, 0);
    assert_eq!(client.stats().reconnects, 6);
}

#[tokio::test]
async fn a_handle_that_is_gone_is_not_watching() {
    let server = Server::start();
    let (client, ready, delayed) = number_queues(&server).await;
    until_async("watched", || async { ready.stats().await.unwrap().transferring }).await;
    delayed.destroy().await;
    assert!(!ready.stats().await.unwrap().transferring);
    assert_eq!(client.stats().transferring_queues, 0);
    assert_eq!(ready.poll().await.unwrap(), None);
    until_async("who takes moves", || async { ready.stats().await.unwrap().transferring }).await;
}

#[tokio::test]
async fn health_says_what_is_overdue_and_what_fails() {
    let server = Server::start();
    let client = patient_builder(&server).transfer_batch(1).connect().await.unwrap();
    assert_eq!(client.health().transferring_queues, 0);
    let ready = client.blocking_queue("q", codec::Long);
    let delayed = client.delayed_queue(&ready);
    until_async("it transfers", || async { client.health().last_transfer_ago.is_some() }).await;
    let health = client.health();
    assert!(health.connected && health.last_reply_ago.is_some(), "{health:?}");
    assert_eq!((health.transferring_queues, health.failing_queues, health.overdue_for), (1, 0, None));

    // A backlog that was due in 1970. A look finds it, and each transfer moves one.
    let fill = "for n = 1, 50000 do \
        redis.call('ZADD', KEYS[1], n, struct.pack('Bc8<I8c1', 8, string.format('%08d', n), 1, '1')) end";
    server.cmd(["EVAL", fill, "1", TIMEOUT_SET]);
    until_async("it is behind", || async { client.health().overdue_for > Some(24 * HOUR) }).await;
    server.cmd(["DEL", TIMEOUT_SET]);
    until_async("nothing is overdue", || async { client.health().overdue_for.is_none() }).await;

    server.cmd(["DEL", "q"]);
    server.cmd(["SET", "q", "of another type"]);
    delayed.offer(&1, ms(0)).await.unwrap();
    until_async("it fails", || async { client.health().failing_queues == 1 }).await;
    server.cmd(["DEL", "q"]);
    until_async("it works again", || async { client.health().failing_queues == 0 }).await;

    server.stop();
    until_async("the loss is noticed", || async { !client.health().connected }).await;
    let silent = client.health().last_reply_ago.unwrap();
    until_async("the silence lasts", || async { client.health().last_reply_ago > Some(silent) }).await;
    delayed.destroy().await;
    assert_eq!(client.health().transferring_queues, 0);
}

/// Entries that are in only one of the two structures.
#[tokio::test]
async fn phantoms_are_seen() {
    let server = Server::start();
    let (_client, _ready, delayed) = number_queues(&server).await;
    server.cmd(["RPUSH", ORDERED_LIST, "a", "b"]);
    server.cmd(["ZADD", TIMEOUT_SET, "5e14", "c"]);
    let stats = delayed.stats().await.unwrap();
    assert_eq!((stats.pending, stats.list_len), (1, 2));
    assert_eq!(delayed.len().await.unwrap(), 2);
}

#[tokio::test]
async fn what_is_set_aside_is_counted_however_it_was_met() {
    let server = Server::start();
    let (client, _ready, delayed) = still_number_queues(&server).await;
    let store = |entry: &str| {
        server.cmd(["ZADD", TIMEOUT_SET, "1", entry]);
        server.cmd(["RPUSH", ORDERED_LIST, entry]);
    };
    store("junk 1");
    store("junk 2");
    assert_eq!(delayed.poll().await.unwrap(), None);
    assert_eq!(client.stats().quarantined, 2);
    store("junk 3");
    assert_eq!(delayed.poll_last_and_offer_first_to("{q}other").await.unwrap(), None);
    assert_eq!(client.stats().quarantined, 3);
    store("junk 4");
    let (mover, _ready, _delayed) = number_queues(&server).await;
    until_async("transferred", || async { mover.stats().quarantined == 1 }).await;
    assert_eq!(mover.stats().empty_transfers, mover.stats().transfers - 1);
    let stats = delayed.stats().await.unwrap();
    assert_eq!((stats.quarantined, stats.quarantined_by_this_client), (4, 3));
}

/// What a process that died had popped is counted, can be read, and comes back when somebody says so.
#[test]
fn unconfirmed_pops_of_a_dead_process() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let here = runtime();
    let (_client, ready, delayed) = here.block_on(still_text_queues(&server));
    let values: Vec<String> = ["a", "b", "c"].map(str::to_owned).into();
    here.block_on(async {
        // So that the server knows the scripts: a pop needs one command only.
        ready.put(&values[0]).await.unwrap();
        ready.poll_many(2).await.unwrap();
        delayed.poll_many(2).await.unwrap();
        ready.offer_all(&values).await.unwrap();
        for value in &values {
            delayed.offer(value, HOUR).await.unwrap();
        }
    });
    let before = lasting(&server);

    let dying = runtime();
    let (client, its_ready, its_delayed) = dying.block_on(still_text_queues(&proxy));
    proxy.hold_replies(true);
    dying.spawn(async move { its_ready.poll_many(2).await });
    dying.spawn(async move { its_delayed.poll_many(2).await });
    until("both are popped", || server.list("q").len() == 1 && server.list(ORDERED_LIST).len() == 1);
    dying.shutdown_background();
    drop(client);
    proxy.cut();

    here.block_on(async {
        let unconfirmed = ready.unconfirmed_pops(Duration::ZERO);
        until_async("its own are confirmed", || async { unconfirmed.len().await.unwrap() == 2 }).await;
        assert_eq!(ready.stats().await.unwrap().unconfirmed_pops, 2);
        let old = ready.unconfirmed_pops(HOUR);
        assert_eq!(old.read(None, 10).await.unwrap(), [], "they are younger than that");
        assert!(old.is_empty().await.unwrap() && !unconfirmed.is_empty().await.unwrap());
        let pops = unconfirmed.read(None, 10).await.unwrap();
        assert_eq!(pops.iter().map(|pop| pop.payloads.len()).collect::<Vec<_>>(), [2, 2]);
        assert!(pops.iter().any(|pop| pop.payloads == ["a", "b"]), "{pops:?}");
        assert!(pops.iter().all(|pop| pop.age < HOUR));
        let first = unconfirmed.read(None, 1).await.unwrap();
        let second = unconfirmed.read(first.last(), 9).await.unwrap();
        assert_eq!([&first[0].id, &second[0].id], [&pops[0].id, &pops[1].id]);
        assert_eq!(second.len(), 1);
        assert_eq!(old.requeue_all(usize::MAX).await.unwrap(), 0);
        assert_eq!(unconfirmed.requeue_all(1).await.unwrap(), 1);
        assert_eq!(unconfirmed.requeue_all(usize::MAX).await.unwrap(), 1);
        assert_eq!(unconfirmed.len().await.unwrap(), 0);
        assert!(lasting(&server) == before, "everything is where it was");
        assert_eq!(unconfirmed.remove_all(usize::MAX).await.unwrap(), 0);
    });
}

#[tokio::test]
async fn how_long_deliveries_took_and_how_late_transfers_were() {
    let server = Server::start();
    let (_client, ready, delayed) = number_queues(&server).await;
    for n in 0..5 {
        delayed.offer(&n, ms(30)).await.unwrap();
    }
    let receiver = ready.receiver();
    let first = soon(receiver.receive()).await.unwrap();
    tokio::time::sleep(ms(30)).await;
    soon(first.ack()).await.unwrap();
    soon(soon(receiver.receive()).await.unwrap().retry_after(HOUR)).await.unwrap();
    soon(soon(receiver.receive()).await.unwrap().snooze(HOUR)).await.unwrap();
    soon(soon(receiver.receive()).await.unwrap().reject("no")).await.unwrap();
    let last = soon(receiver.receive()).await.unwrap();
    // Longer than it was, but not settled.
    soon(last.extend(HOUR)).await.unwrap();
    soon(last.release()).await.unwrap();
    until_async("counted", || async { delayed.stats().await.unwrap().transferred == 5 }).await;
    let stats = delayed.stats().await.unwrap();
    let handling = &stats.receiving.handling;
    for histogram in
        [&handling.acknowledged, &handling.failed, &handling.snoozed, &handling.rejected, &handling.released]
    {
        assert_eq!(histogram.counts.iter().sum::<u64>(), 1, "{handling:?}");
    }
    assert!(handling.acknowledged.sum >= ms(30) && handling.acknowledged.counts[..3].iter().all(|n| *n == 0));
    // A transfer may move several entries. All of them were announced before.
    let late: u64 = stats.lateness.counts.iter().sum();
    assert!((1..=5).contains(&late), "{:?}", stats.lateness);
}
