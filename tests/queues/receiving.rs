//! Receivers: claims, settlements, leases, retries, and what of it Java's side sees.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::join_all;
use redelay::worker::{Backoff, OnUndecodable};
use redelay::{BlockingQueue, Delivery, ErrorKind, Receiver, codec};
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{
    CONTROL, DEAD, DEAD_MESSAGES, HOUR, INBOX, LEASES, MESSAGES, MINUTE, Queues, RECEIPTS, RETRIES, builder,
    ms, number_queues, patient_builder, soon, still_number_queues, text_queues,
};

fn count(server: &Server, command: &str, key: &str) -> usize {
    server.get([command, key])
}

/// Nothing of a message is left, wherever it may be.
fn is_empty(server: &Server) -> bool {
    let lists = ["q", INBOX].map(|key| count(server, "LLEN", key));
    let sets = [LEASES, RETRIES, DEAD].map(|key| count(server, "ZCARD", key));
    let hashes = [MESSAGES, DEAD_MESSAGES].map(|key| count(server, "HLEN", key));
    lists.iter().chain(&sets).chain(&hashes).all(|count| *count == 0)
}

fn values<T: Copy>(deliveries: &[Delivery<T>]) -> Vec<T> {
    deliveries.iter().map(|delivery| *delivery.value()).collect()
}

async fn receive_all(receiver: &Receiver<i64>) -> Vec<Delivery<i64>> {
    let mut all = Vec::new();
    while let Some(delivery) = receiver.try_receive().await.unwrap() {
        all.push(delivery);
    }
    all
}

#[tokio::test]
async fn a_message_is_received_and_acknowledged() {
    let server = Server::start();
    let (client, ready, _delayed) = number_queues(&server).await;
    let receiver = ready.receiver();
    ready.put(&7).await.unwrap();
    let delivery = soon(receiver.receive()).await.unwrap();
    assert_eq!((*delivery.value(), delivery.attempt()), (7, 1));
    assert!(delivery.first_received().elapsed().unwrap_or_default() < HOUR);
    assert_eq!((count(&server, "ZCARD", LEASES), count(&server, "HLEN", MESSAGES)), (1, 1));
    delivery.ack().await.unwrap();
    assert!(is_empty(&server));
    client.shutdown().await;
    assert_eq!(count(&server, "HLEN", RECEIPTS), 0, "a receiver leaves no receipt");
}

/// With a short timeout, so that an outage is longer.
async fn behind_a_proxy() -> (Server, Proxy, Queues<i64>) {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let queues = Queues::of_numbers(builder(&proxy).command_timeout(ms(500)).transfer(false)).await;
    (server, proxy, queues)
}

#[tokio::test]
async fn receivers_that_are_dropped_in_an_outage_leave_no_task() {
    let (_server, proxy, Queues { client, ready, .. }) = behind_a_proxy().await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    ready.receiver().try_receive().await.unwrap();
    proxy.refuse(true);
    proxy.cut();
    until_async("it is noticed", || async { !client.stats().connected }).await;
    let before = tasks();
    let receiving = (0..50).map(async |_| ready.receiver().try_receive().await.map(drop));
    assert!(join_all(receiving).await.iter().all(Result::is_err));
    until_async("their tasks end", || async { tasks() <= before + 5 }).await;
    // A server that accepts calls and does not answer may have claimed for them: until the lease is over.
    proxy.refuse(false);
    until_async("it is back", || async { client.stats().connected }).await;
    proxy.hold_replies(true);
    let receiving = (0..50).map(async |_| ready.receiver().lease(ms(1_000)).try_receive().await.map(drop));
    assert!(join_all(receiving).await.iter().all(Result::is_err));
    until_async("their tasks end, too", || async { tasks() <= before + 5 }).await;
}

#[tokio::test]
async fn what_is_settled_by_the_last_handle_is_settled_after_an_outage() {
    let (server, proxy, Queues { client, ready, .. }) = behind_a_proxy().await;
    ready.put(&7).await.unwrap();
    let delivery = soon(ready.receiver().lease(HOUR).receive()).await.unwrap();
    proxy.refuse(true);
    proxy.cut();
    until_async("it is noticed", || async { !client.stats().connected }).await;
    drop(delivery.ack());
    // Longer than a call takes.
    tokio::time::sleep(ms(3_000)).await;
    proxy.refuse(false);
    until_async("it is acknowledged", || async { is_empty(&server) }).await;
}

#[tokio::test]
async fn a_waiting_receiver_is_woken() {
    let server = Server::start();
    let (_client, ready, delayed) = number_queues(&server).await;
    let receiver = ready.receiver();
    let receive = receiver.receive();
    let mut receive = std::pin::pin!(receive);
    assert!(futures::poll!(&mut receive).is_pending());
    until_async("it is parked", || async { server.blocked_clients() == 1 }).await;
    delayed.offer(&7, ms(20)).await.unwrap();
    let delivery = soon(receive).await.unwrap();
    assert_eq!(*delivery.value(), 7);
    delivery.ack().await.unwrap();
    assert!(is_empty(&server));
}

/// Case 1.
#[tokio::test]
async fn two_receivers_share_the_messages() {
    let server = Server::start();
    let (_first, ready, _) = number_queues(&server).await;
    let (_second, other, _) = number_queues(&server).await;
    let numbers: Vec<i64> = (0..1000).collect();
    ready.offer_all(&numbers).await.unwrap();
    let received = Cell::new(0);
    let drain = async |queue: &BlockingQueue<i64>| {
        let receiver = queue.receiver();
        let mut got = Vec::new();
        while received.get() < numbers.len() {
            let Some(delivery) = soon(receiver.receive_timeout(ms(200))).await.unwrap() else { continue };
            received.set(received.get() + 1);
            got.push(*delivery.value());
            delivery.ack().await.unwrap();
        }
        got
    };
    let (mut first, second) = tokio::join!(drain(&ready), drain(&other));
    assert!(!first.is_empty() && !second.is_empty());
    first.extend(second);
    first.sort_unstable();
    assert_eq!(first, numbers);
    assert!(is_empty(&server));
}

/// Case 4.
#[tokio::test]
async fn nothing_is_claimed_for_nobody() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    ready.offer_all(&(0..100).collect::<Vec<_>>()).await.unwrap();
    let receiver = ready.receiver();
    let deliveries = join_all((0..10).map(|_| receiver.receive())).await;
    assert_eq!((count(&server, "ZCARD", LEASES), count(&server, "LLEN", "q")), (10, 90));
    let many = receiver.receive_many(5).await.unwrap();
    assert_eq!(many.len(), 5);
    assert_eq!((count(&server, "ZCARD", LEASES), count(&server, "LLEN", "q")), (15, 85));
    assert_eq!(receiver.receive_many(0).await.unwrap().len(), 0);
    drop((deliveries, many));
}

/// Case 9.
#[tokio::test]
async fn what_is_released_is_delivered_again_and_counts_nothing() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    ready.put(&7).await.unwrap();
    let receiver = ready.receiver();
    let mut ids = BTreeSet::new();
    for _ in 0..3 {
        let delivery = soon(receiver.receive()).await.unwrap();
        assert_eq!((*delivery.value(), delivery.attempt()), (7, 1));
        ids.insert(delivery.id());
        delivery.release().await.unwrap();
    }
    assert_eq!(ids.len(), 1, "the id stays");
}

#[tokio::test]
async fn a_dropped_receive_puts_the_payload_back_where_java_finds_it() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    let receiver = ready.receiver();
    for _ in 0..20 {
        let mut receive = Box::pin(receiver.receive());
        assert!(futures::poll!(&mut receive).is_pending());
        server.cmd(["RPUSH", "q", "1", "2"]);
        until_async("claimed", || async { count(&server, "ZCARD", LEASES) == 1 }).await;
        drop(receive);
        until_async("back", || async { server.list("q") == [b"1", b"2"] }).await;
        server.cmd(["DEL", "q"]);
        assert!(is_empty(&server));
    }
}

/// Case 10.
#[tokio::test]
async fn a_retry_comes_after_its_time_and_java_does_not_see_it() {
    let server = Server::start();
    let (_client, ready, delayed) = number_queues(&server).await;
    ready.put(&7).await.unwrap();
    let receiver = ready.receiver();
    let delivery = soon(receiver.receive()).await.unwrap();
    let (id, begun) = (delivery.id(), Instant::now());
    delivery.with_error("not now").retry_after(ms(700)).await.unwrap();
    assert!(ready.read_all().await.unwrap().is_empty());
    assert!(delayed.read_all().await.unwrap().is_empty());
    let again = soon(receiver.receive()).await.unwrap();
    assert!(begun.elapsed() >= ms(700));
    assert_eq!((*again.value(), again.attempt(), again.id()), (7, 2, id));
    again.ack().await.unwrap();
    assert!(is_empty(&server));
}

/// Cases 30 and 31.
#[tokio::test]
async fn a_message_that_always_fails_is_a_dead_letter_after_all_attempts() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    ready.put(&7).await.unwrap();
    let receiver = ready.receiver().max_attempts(4).backoff(Backoff::ladder([ms(5), ms(10)]));
    for attempt in 1..=4 {
        for _ in 0..5 {
            let snoozed = soon(receiver.receive()).await.unwrap();
            assert_eq!(snoozed.attempt(), attempt);
            snoozed.snooze(ms(1)).await.unwrap();
        }
        let delivery = soon(receiver.receive()).await.unwrap();
        assert_eq!(delivery.attempt(), attempt, "a snooze does not count");
        delivery.with_error(format_args!("attempt {attempt}")).retry().await.unwrap();
    }
    assert!(receiver.receive_timeout(ms(50)).await.unwrap().is_none());
    assert_eq!((count(&server, "ZCARD", DEAD), count(&server, "HLEN", DEAD_MESSAGES)), (1, 1));
    assert_eq!(count(&server, "HLEN", MESSAGES), 0);
    let letters: Vec<Vec<u8>> = server.get(["HVALS", DEAD_MESSAGES]);
    assert!(letters[0].windows(9).any(|part| part == b"attempt 4"), "the last error");
}

#[tokio::test]
async fn a_dropped_delivery_has_failed() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    ready.put(&7).await.unwrap();
    let receiver = ready.receiver().backoff(Backoff::fixed(ms(1)));
    drop(soon(receiver.receive()).await.unwrap());
    let again = soon(receiver.receive()).await.unwrap();
    assert_eq!(again.attempt(), 2);
    again.ack().await.unwrap();
}

/// Case 12.
#[tokio::test]
async fn what_cannot_be_decoded_does_not_stop_the_queue() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    server.cmd(["RPUSH", "q", "not a number", "7"]);
    let receiver = ready.receiver();
    let error = soon(receiver.receive()).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.payload().map(|bytes| &bytes[..])),
        (ErrorKind::Decode, Some(&b"not a number"[..]))
    );
    let next = soon(receiver.receive()).await.unwrap();
    assert_eq!(*next.value(), 7);
    next.ack().await.unwrap();
    until_async("a dead letter", || async { count(&server, "ZCARD", DEAD) == 1 }).await;
    assert_eq!(count(&server, "HLEN", MESSAGES), 0);
    assert_eq!(ready.dead_letters().read(None, 9).await.unwrap()[0].reason.as_str(), "undecodable");

    server.cmd(["RPUSH", "q", "not a number"]);
    let retrying =
        ready.receiver().on_undecodable(OnUndecodable::Retry).backoff(Backoff::fixed(ms(1))).max_attempts(2);
    for _ in 0..2 {
        assert_eq!(soon(retrying.receive()).await.unwrap_err().kind(), ErrorKind::Decode);
    }
    until_async("another one", || async { count(&server, "ZCARD", DEAD) == 2 }).await;
}

/// Case 7, 35.
#[tokio::test]
async fn equal_payloads_are_two_messages() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    ready.offer_all(&[7, 7]).await.unwrap();
    let receiver = ready.receiver();
    let (first, second) = (receiver.receive().await.unwrap(), receiver.receive().await.unwrap());
    assert_ne!(first.id(), second.id());
    first.ack().await.unwrap();
    assert_eq!(count(&server, "ZCARD", LEASES), 1);
    second.reject("the wrong seven").await.unwrap();
    assert_eq!((count(&server, "ZCARD", LEASES), count(&server, "ZCARD", DEAD)), (0, 1));
}

/// Cases 6 and 8: the lease ends, another receiver has the message.
#[tokio::test]
async fn an_old_delivery_changes_nothing() {
    let server = Server::start();
    let (_first, ready, _) = number_queues(&server).await;
    let (_second, other, _) = number_queues(&server).await;
    ready.put(&7).await.unwrap();
    // Nothing extends it.
    let receiver = ready.receiver().lease(ms(300)).extend_for(Duration::ZERO);
    let old: Vec<_> = vec![soon(receiver.receive()).await.unwrap()];
    let new = soon(other.receiver().lease(ms(300)).receive()).await.unwrap();
    assert_eq!((*new.value(), new.attempt(), new.id()), (7, 2, old[0].id()));
    let score = |server: &Server| server.zset(LEASES)[0].1;
    let before = score(&server);
    let old = old.into_iter().next().unwrap();
    assert_eq!(old.extend(MINUTE).await.unwrap_err().kind(), ErrorKind::LeaseLost);
    assert!(score(&server) < before + 30_000.0, "the other's deadline is its own");
    soon(old.lost()).await;
    assert_eq!(old.ack().await.unwrap_err().kind(), ErrorKind::LeaseLost);
    assert_eq!(count(&server, "ZCARD", LEASES), 1);
    new.ack().await.unwrap();
    assert!(is_empty(&server));
}

/// Case 19.
#[tokio::test]
async fn a_long_handler_keeps_its_lease() {
    let server = Server::start();
    let (_first, ready, _) = number_queues(&server).await;
    let (_second, other, _) = number_queues(&server).await;
    ready.put(&7).await.unwrap();
    let (receiver, other) = (ready.receiver().lease(ms(300)), other.receiver().lease(ms(300)));
    let delivery = soon(receiver.receive()).await.unwrap();
    assert!(other.receive_timeout(ms(1500)).await.unwrap().is_none());
    delivery.ack().await.unwrap();
    assert!(is_empty(&server));
}

/// Case 13.
#[tokio::test]
async fn a_flush_of_the_scripts_changes_nothing() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    ready.put(&7).await.unwrap();
    let delivery = ready.receiver().receive().await.unwrap();
    server.cmd(["SCRIPT", "FLUSH"]);
    delivery.ack().await.unwrap();
    assert!(is_empty(&server));
}

/// Case 14: side keys of another type.
#[tokio::test]
async fn a_side_key_of_another_type_is_refused_and_nothing_is_lost() {
    for key in [INBOX, MESSAGES, LEASES, RETRIES, RECEIPTS, CONTROL] {
        let server = Server::start();
        let (_client, ready, _) = number_queues(&server).await;
        ready.put(&7).await.unwrap();
        server.cmd(["SET", key, "junk"]);
        let receiver = ready.receiver();
        let error = soon(receiver.receive()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{key}: {error}");
        assert_eq!(server.list("q"), [b"7"], "{key}");
        server.cmd(["DEL", key]);
        let delivery = soon(receiver.receive()).await.unwrap();
        delivery.ack().await.unwrap();
        assert!(is_empty(&server), "{key}");
    }
}

/// Side keys filled with junk.
#[tokio::test]
async fn junk_in_side_keys_stops_nothing() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    for (index, junk) in ["", "x", "\u{1}short", &"\u{2}".repeat(60)].iter().enumerate() {
        let id = format!("{index:016}");
        server.cmd(["HSET", MESSAGES, &id, junk]);
        server.cmd(["ZADD", LEASES, "1", &id]);
        server.cmd(["ZADD", LEASES, "2", &format!("{id}0001")]);
        server.cmd(["ZADD", RETRIES, "1", &id]);
        server.cmd(["HSET", RECEIPTS, &id, junk]);
    }
    server.cmd(["HSET", CONTROL, "seen", "junk", "silences", "junk 1:x :", "cursor", "junk"]);
    ready.put(&7).await.unwrap();
    let delivery = soon(ready.receiver().receive()).await.unwrap();
    assert_eq!(*delivery.value(), 7);
    delivery.ack().await.unwrap();
}

/// Case 23.
#[tokio::test]
async fn a_message_without_lease_and_retry_is_found_again() {
    let server = Server::start();
    let (_first, ready, _) = number_queues(&server).await;
    let (_second, other, _) = number_queues(&server).await;
    ready.put(&7).await.unwrap();
    let delivery = ready.receiver().receive().await.unwrap();
    server.cmd(["DEL", LEASES]);
    let again = soon(other.receiver().receive()).await.unwrap();
    assert_eq!((*again.value(), again.id()), (7, delivery.id()));
    assert_eq!(delivery.ack().await.unwrap_err().kind(), ErrorKind::LeaseLost);
    again.ack().await.unwrap();
    assert!(is_empty(&server));
}

/// Case 29.
#[tokio::test]
async fn receivers_drain_a_server_without_memory() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    let numbers: Vec<i64> = (0..200).collect();
    ready.offer_all(&numbers).await.unwrap();
    server.cmd(["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(ready.put(&1).await.unwrap_err().kind(), ErrorKind::Refused);
    let receiver = ready.receiver().backoff(Backoff::fixed(ms(1)));
    let mut got = BTreeSet::new();
    while got.len() < numbers.len() {
        let delivery = soon(receiver.receive()).await.unwrap();
        delivery.extend(MINUTE).await.unwrap();
        if delivery.attempt() == 1 && *delivery.value() % 3 == 0 {
            delivery.retry().await.unwrap();
        } else {
            got.insert(*delivery.value());
            delivery.ack().await.unwrap();
        }
    }
    assert!(is_empty(&server));
}

/// Case 29: what is rejected, and what a lost receiver had, is not in the way either.
#[tokio::test]
async fn a_server_without_memory_takes_rejected_and_lost_messages() {
    let server = Server::start();
    let (_first, ready, _) = number_queues(&server).await;
    let (_second, other, delayed) = number_queues(&server).await;
    ready.offer_all(&[1, 2]).await.unwrap();
    // Nothing extends it.
    let receiver = ready.receiver().lease(ms(300)).extend_for(Duration::ZERO);
    let lost = soon(receiver.receive()).await.unwrap();
    server.cmd(["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(delayed.offer(&3, ms(1)).await.unwrap_err().kind(), ErrorKind::Refused);
    let receiver = other.receiver().lease(ms(300));
    let mut got = BTreeSet::new();
    for _ in 0..2 {
        let delivery = soon(receiver.receive()).await.unwrap();
        got.insert((*delivery.value(), delivery.attempt()));
        delivery.reject("no").await.unwrap();
    }
    assert_eq!(got, BTreeSet::from([(1, 2), (2, 1)]));
    assert_eq!(lost.ack().await.unwrap_err().kind(), ErrorKind::LeaseLost);
    let letters = other.dead_letters().read(None, 9).await.unwrap();
    let losses: BTreeSet<_> = letters.iter().map(|letter| (&letter.payload[..], letter.lost)).collect();
    assert_eq!(losses, BTreeSet::from([(&b"1"[..], 1), (&b"2"[..], 0)]));
    assert_eq!(other.dead_letters().remove_all(2).await.unwrap(), 2);
    assert!(is_empty(&server));
}

/// As a taker does, without a handle of the delayed queue.
#[tokio::test]
async fn a_receiver_alone_keeps_its_queue_moving() {
    let server = Server::start();
    let (_producer, _, delayed) = still_number_queues(&server).await;
    delayed.offer(&7, ms(20)).await.unwrap();
    let client = patient_builder(&server).connect().await.unwrap();
    let receiver = client.blocking_queue::<i64>("q", codec::Long).receiver();
    let delivery = soon(receiver.receive()).await.unwrap();
    assert_eq!(*delivery.value(), 7);
    delivery.ack().await.unwrap();
    assert!(is_empty(&server));
}

#[tokio::test]
async fn a_stream_delivers_and_ends() {
    let server = Server::start();
    let (client, ready, _) = number_queues(&server).await;
    ready.offer_all(&[1, 2, 3]).await.unwrap();
    let mut stream = ready.receiver().into_stream();
    for expected in [1, 2, 3] {
        let delivery = soon(stream.next()).await.unwrap().unwrap();
        assert_eq!(*delivery.value(), expected);
        delivery.ack().await.unwrap();
    }
    client.stop_taking().await;
    assert!(soon(stream.next()).await.is_none());
    assert!(is_empty(&server));
}

#[tokio::test]
async fn a_client_that_takes_no_more_still_settles() {
    let server = Server::start();
    let (client, ready, _) = number_queues(&server).await;
    ready.offer_all(&[1, 2]).await.unwrap();
    let receiver = ready.receiver();
    let delivery = soon(receiver.receive()).await.unwrap();
    client.stop_taking().await;
    assert_eq!(receiver.receive().await.unwrap_err().kind(), ErrorKind::Closed);
    delivery.ack().await.unwrap();
    assert_eq!(server.list("q"), [b"2"]);
    client.shutdown().await;
    assert_eq!(count(&server, "HLEN", MESSAGES), 0);
}

#[tokio::test]
async fn settings_out_of_range_are_refused() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    let receivers = [
        ready.receiver().lease(Duration::ZERO),
        ready.receiver().lease(ms(99)),
        ready.receiver().lease(Duration::from_secs(86_401)),
        ready.receiver().max_attempts(0),
        ready.receiver().max_attempts(65_536),
        ready.receiver().max_losses(0),
        ready.receiver().keep_dead_letters(1, Duration::MAX),
        ready.receiver().keep_dead_letters(0, None),
        ready.receiver().keep_dead_letters(None, Duration::ZERO),
    ];
    for receiver in receivers {
        let error = receiver.try_receive().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    let last_counts = ready.receiver().keep_dead_letters(0, None).discard_dead_letters();
    assert!(last_counts.try_receive().await.unwrap().is_none());
    ready.put(&7).await.unwrap();
    let delivery = ready.receiver().backoff(Backoff::ladder([])).receive().await.unwrap();
    assert_eq!(delivery.extend(HOUR * 25).await.unwrap_err().kind(), ErrorKind::Invalid);
    delivery.extend(Duration::ZERO).await.unwrap();
    assert_eq!(delivery.retry_after(Duration::MAX).await.unwrap_err().kind(), ErrorKind::Invalid);
    let again = soon(ready.receiver().receive()).await.unwrap();
    assert_eq!(again.attempt(), 2, "it is retried all the same");
    again.ack().await.unwrap();
}

/// Case 33.
#[tokio::test]
async fn java_sees_what_nobody_claimed() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    ready.offer_all(&[1, 2, 3]).await.unwrap();
    let receiver = ready.receiver();
    let delivery = soon(receiver.receive()).await.unwrap();
    assert_eq!(ready.read_all().await.unwrap(), [2, 3]);
    delivery.retry_after(ms(100)).await.unwrap();
    assert!(ready.delete().await.unwrap(), "Java clears the queue");
    let again = soon(receiver.receive()).await.unwrap();
    assert_eq!((*again.value(), again.attempt()), (1, 2));
    again.ack().await.unwrap();
}

#[tokio::test]
async fn queues_with_and_without_braces_are_two() {
    let server = Server::start();
    let (client, _, _) = still_number_queues(&server).await;
    let (bare, braced) = (client.blocking_queue("q", codec::Long), client.blocking_queue("{q}", codec::Long));
    bare.put(&1).await.unwrap();
    braced.put(&2).await.unwrap();
    let (bare, braced) = (bare.receiver(), braced.receiver());
    let (one, two) = (bare.receive().await.unwrap(), braced.receive().await.unwrap());
    assert_eq!((*one.value(), *two.value()), (1, 2));
    one.retry_after(Duration::ZERO).await.unwrap();
    two.retry_after(Duration::ZERO).await.unwrap();
    let (one, two) = (bare.receive().await.unwrap(), braced.receive().await.unwrap());
    assert_eq!((*one.value(), *two.value()), (1, 2));
    one.ack().await.unwrap();
    two.ack().await.unwrap();
}

#[tokio::test]
async fn all_messages_can_be_received_at_once() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    let numbers: Vec<i64> = (0..2500).collect();
    ready.offer_all(&numbers).await.unwrap();
    let receiver = ready.receiver();
    let mut got = Vec::new();
    while got.len() < numbers.len() {
        got.extend(receiver.receive_many(5000).await.unwrap().into_iter().map(Result::unwrap));
    }
    assert_eq!(values(&got), numbers, "in order");
    join_all(got.into_iter().map(Delivery::ack)).await.into_iter().for_each(Result::unwrap);
    assert!(is_empty(&server));
    assert!(receive_all(&receiver).await.is_empty());
}

#[tokio::test]
async fn texts_survive_binary() {
    let server = Server::start();
    let (_client, ready, _) = text_queues(&server).await;
    for text in ["", "\0\r\n", "é"] {
        ready.put(text).await.unwrap();
        let delivery = soon(ready.receiver().receive()).await.unwrap();
        assert_eq!(*delivery.value(), text);
        delivery.retry_after(Duration::ZERO).await.unwrap();
        let again = soon(ready.receiver().receive()).await.unwrap();
        assert_eq!(*again.value(), text);
        again.ack().await.unwrap();
    }
}

#[tokio::test]
async fn stats_count_what_became_of_messages() {
    let server = Server::start();
    let (client, ready, _) = number_queues(&server).await;
    ready.offer_all(&[1, 2, 3, 4, 5]).await.unwrap();
    let receiver = ready.receiver();
    let next = async || soon(receiver.receive()).await.unwrap();
    next().await.release().await.unwrap();
    next().await.ack().await.unwrap();
    next().await.retry_after(HOUR).await.unwrap();
    next().await.snooze(HOUR).await.unwrap();
    next().await.reject("no").await.unwrap();
    let held = next().await;
    let stats = ready.stats().await.unwrap().receiving;
    assert_eq!((stats.in_flight, stats.waiting, stats.dead_letters, stats.overdue_for), (1, 2, 1, None));
    assert_eq!((stats.received, stats.acknowledged, stats.failed, stats.snoozed), (6, 1, 1, 1));
    assert_eq!((stats.released, stats.rejected, stats.lost, stats.died), (1, 1, 0, 1));
    let (_other, looking, _) = still_number_queues(&server).await;
    let overdue_for = async || looking.stats().await.unwrap().receiving.overdue_for;
    let is_overdue = |time: Option<Duration>| time.is_some_and(|time| time >= ms(50) && time < MINUTE);
    let (member, end) = server.zset(LEASES).remove(0);
    held.retry_after(ms(1)).await.unwrap();
    // Nobody receives it.
    tokio::time::sleep(ms(100)).await;
    let time = overdue_for().await;
    assert!(is_overdue(time), "{time:?}");
    // As if a receiver were gone, and no other one has looked.
    client.shutdown().await;
    server.cmd(["DEL", RETRIES]);
    assert_eq!(overdue_for().await, None);
    server.cmd([&b"ZADD"[..], LEASES.as_bytes(), (end - 31_000.0).to_string().as_bytes(), &member[..]]);
    let time = overdue_for().await;
    assert!(is_overdue(time), "{time:?}");
}
