//! Calls of receivers that are lost, arrive late, or are refused.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::future::join_all;
use redelay::ErrorKind;
use redelay_fixture::{Proxy, Server, until, until_async};
use redelay_support::{
    DEAD, DEAD_MESSAGES, HOUR, MESSAGES, MINUTE, Queues, RECEIPTS, RETRIES, builder, ms, part, soon,
    still_builder,
};
use tokio::time::sleep;

use crate::dropping::{Moment, drop_at};
use crate::receivers::{count, is_drained};

/// A user who may not end connections on the server cannot prevent that the first try of a call arrives after
/// its retry was answered.
async fn without_kill(server: &Server, proxy: &Proxy) -> Queues<i64> {
    let user = ["ACL", "SETUSER", "user", "on", ">secret", "~*", "&*", "+@all", "-client"];
    let but_kill = ["setname", "info", "id", "unblock"].map(|word| format!("+client|{word}"));
    server.cmd(user.into_iter().chain(but_kill.iter().map(String::as_str)));
    let url = format!("redis://user:secret@127.0.0.1:{}", proxy.port());
    Queues::of_numbers(still_builder(&url)).await
}

#[tokio::test]
async fn a_call_that_arrives_after_its_retry_and_the_next_call_claims_nothing() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let queues = without_kill(&server, &proxy).await;
    let receiver = queues.ready.receiver().lease(MINUTE);
    assert!(receiver.try_receive().await.unwrap().is_none());
    server.cmd(["RPUSH", "q", "1"]);
    // The first try of the call is under way, its connection is given up, and the second try is answered.
    proxy.strand();
    let receive = tokio::spawn({
        let receiver = receiver.clone();
        async move { receiver.try_receive().await }
    });
    sleep(ms(200)).await;
    proxy.hang_up();
    let first = soon(receive).await.unwrap().unwrap().expect("the message");
    assert_eq!((*first.value(), first.attempt()), (1, 1));
    assert!(soon(receiver.try_receive()).await.unwrap().is_none());
    server.cmd(["RPUSH", "q", "2"]);
    let calls = server.command_calls("evalsha");
    proxy.release();
    until("the first try has arrived", || server.command_calls("evalsha") > calls);
    first.ack().await.unwrap();
    let second = soon(receiver.receive()).await.unwrap();
    assert_eq!((*second.value(), second.attempt()), (2, 1));
    second.ack().await.unwrap();
    assert!(is_drained(&server));
}

#[tokio::test]
async fn a_settlement_whose_first_try_was_lost_and_whose_second_was_refused_is_unknown() {
    let server = Server::start();
    server.cmd(["ACL", "SETUSER", "user", "on", ">secret", "~*", "&*", "+@all"]);
    let proxy = Proxy::start(server.port());
    let url = format!("redis://user:secret@127.0.0.1:{}", proxy.port());
    let queues = Queues::of_numbers(still_builder(&url)).await;
    server.cmd(["RPUSH", "q", "1"]);
    let delivery = soon(queues.ready.receiver().receive()).await.unwrap();
    proxy.hold_replies(true);
    let ack = tokio::spawn(delivery.ack());
    until_async("the acknowledgement is executed", || async { is_drained(&server) }).await;
    server.cmd(["ACL", "SETUSER", "user", "-evalsha"]);
    proxy.cut();
    proxy.hold_replies(false);
    let error = soon(ack).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
}

#[tokio::test]
async fn receives_end_with_stop_taking_while_the_server_is_away() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let queues = Queues::of_numbers(builder(&proxy).command_timeout(ms(300)).transfer(false)).await;
    let receiver = queues.ready.receiver().lease(ms(300));
    until_async("a call", || async { receiver.try_receive().await.is_ok() }).await;
    proxy.refuse(true);
    proxy.cut();
    let receive = tokio::spawn(async move { receiver.receive().await.map(|delivery| *delivery.value()) });
    // The receiver has begun a call that cannot be answered.
    sleep(ms(1000)).await;
    queues.client.stop_taking().await;
    assert!(soon(receive).await.unwrap().unwrap_err().is_closed());
}

/// A due retry is no reason to look while the receiver pauses after a refusal.
#[tokio::test]
async fn a_receiver_that_is_refused_is_idle_until_its_next_attempt() {
    let server = Server::start();
    server.cmd(["ACL", "SETUSER", "user", "on", ">secret", "~*", "&*", "+@all"]);
    let url = format!("redis://user:secret@127.0.0.1:{}", server.port());
    let queues = Queues::of_numbers(still_builder(&url)).await;
    let receiver = queues.ready.receiver();
    server.cmd(["RPUSH", "q", "1"]);
    let delivery = soon(receiver.receive()).await.unwrap();
    delivery.retry_after(ms(300)).await.unwrap();
    server.cmd(["ACL", "SETUSER", "user", "-evalsha"]);
    let refused = async {
        let mut refused = 0;
        while refused < 9 {
            let error = receiver.receive().await.expect_err("a refusal");
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
            refused += 1;
        }
    };
    let metrics = tokio::runtime::Handle::current().metrics();
    let parks = metrics.worker_park_count(0);
    soon(refused).await;
    let parks = metrics.worker_park_count(0) - parks;
    println!("{parks} wake-ups");
    assert!(parks < 600, "{parks} wake-ups");
}

/// A lease that has ended and cannot be taken back is no reason to try again and again.
#[tokio::test]
async fn a_receiver_that_cannot_recover_pauses() {
    let server = Server::start();
    server.cmd(["ACL", "SETUSER", "user", "on", ">secret", "~*", "&*", "+@all"]);
    let url = format!("redis://user:secret@127.0.0.1:{}", server.port());
    let queues = Queues::of_numbers(still_builder(&url)).await;
    let receiver = queues.ready.receiver().lease(ms(600)).extend_for(Duration::ZERO);
    server.cmd(["RPUSH", "q", "1"]);
    let delivery = soon(receiver.receive()).await.unwrap();
    server.cmd(["ACL", "SETUSER", "user", "-zrem"]);
    sleep(ms(2500)).await;
    let calls = server.command_calls("evalsha");
    sleep(ms(5000)).await;
    let calls = server.command_calls("evalsha") - calls;
    println!("{calls} calls in 5 s");
    assert!(calls < 60, "{calls} calls");
    drop(delivery);
}

/// After an outage, the extra time of the receivers with the longest leases counts.
#[tokio::test]
async fn a_receiver_with_a_shorter_lease_does_not_end_the_extra_time_of_others() {
    // With equal leases it holds.
    for lease in [14_000, 200] {
        let server = Server::builder().appendonly(true).start();
        let proxy = Proxy::start(server.port());
        let long = Queues::of_numbers(builder(&proxy).transfer(false)).await;
        let short = Queues::of_numbers(builder(&server).transfer(false)).await;
        server.cmd(["RPUSH", "q", "1"]);
        let delivery = soon(long.ready.receiver().lease(ms(14_000)).receive()).await.unwrap();
        let receiver = short.ready.receiver().lease(ms(lease));
        let other = tokio::spawn(async move { receiver.receive().await.map(|delivery| delivery.attempt()) });
        sleep(ms(500)).await;
        proxy.refuse(true);
        server.kill_9();
        sleep(ms(15_000)).await;
        server.start_again();
        let back = Instant::now();
        sleep(ms(2500)).await;
        proxy.refuse(false);
        until_async("it is extended, or lost", || async { proxy.connections() > 0 }).await;
        sleep(ms(300)).await;
        let (was_delivered, acknowledged) = (other.is_finished(), delivery.ack().await);
        // The extra time may be over if the machine was held up for as long.
        if back.elapsed() < ms(6_000) {
            assert!(!was_delivered, "a lease of {lease} ms: it was delivered twice");
            acknowledged.unwrap();
        }
        other.abort();
    }
}

/// Dead letters are sent to a server that does not answer, and leases are extended all the same.
#[tokio::test]
async fn a_destination_that_is_away_holds_nothing_up() {
    let (server, away) = (Server::start(), Server::start());
    let proxy = Proxy::start(away.port());
    let queues = Queues::of_numbers(still_builder(&server)).await;
    let other = Queues::of_numbers(still_builder(&server)).await;
    let dead = Queues::of_numbers(builder(&proxy).transfer(false)).await;
    let receiver = queues.ready.receiver().lease(ms(3000)).dead_letters_to(&dead.ready);
    assert!(receiver.try_receive().await.unwrap().is_none());
    proxy.blackhole(true);
    server.cmd(["RPUSH", "q", "1", "2"]);
    soon(receiver.receive()).await.unwrap().reject("no").await.unwrap();
    let delivery = soon(receiver.receive()).await.unwrap();
    let second = tokio::spawn(async move {
        other.ready.receiver().lease(ms(3000)).receive().await.map(|delivery| delivery.attempt())
    });
    sleep(ms(12_000)).await;
    assert!(!second.is_finished(), "the lease of a process that lives has ended");
    delivery.ack().await.unwrap();
    proxy.blackhole(false);
    until_async("the dead letter is sent", || async { away.list("q") == [b"1"] }).await;
    until_async("it is no longer here", || async { count(&server, "ZCARD", DEAD) == 0 }).await;
    second.abort();
}

/// A letter and its content go together. The content of a letter that is no longer listed would stay for
/// ever.
#[tokio::test]
async fn a_refused_removal_of_a_dead_letter_changes_nothing() {
    let server = Server::start();
    server.cmd(["ACL", "SETUSER", "user", "on", ">secret", "~*", "&*", "+@all"]);
    let url = format!("redis://user:secret@127.0.0.1:{}", server.port());
    let queues = Queues::of_numbers(still_builder(&url)).await;
    server.cmd(["RPUSH", "q", "1"]);
    soon(queues.ready.receiver().receive()).await.unwrap().reject("no").await.unwrap();
    server.cmd(["ACL", "SETUSER", "user", "-hdel"]);
    let error = queues.ready.dead_letters().remove_all(1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert_eq!(queues.ready.dead_letters().read(None, 9).await.unwrap().len(), 1);
    server.cmd(["ACL", "SETUSER", "user", "+hdel"]);
    assert_eq!(queues.ready.dead_letters().remove_all(1).await.unwrap(), 1);
    assert_eq!((count(&server, "ZCARD", DEAD), count(&server, "HLEN", DEAD_MESSAGES)), (0, 0));
}

/// Otherwise it would be claimed again at once, by each receiver.
#[tokio::test]
async fn a_retry_that_may_not_be_removed_is_not_claimed() {
    let server = Server::start();
    server.cmd(["ACL", "SETUSER", "user", "on", ">secret", "~*", "&*", "+@all"]);
    let url = format!("redis://user:secret@127.0.0.1:{}", server.port());
    let queues = Queues::of_numbers(still_builder(&url)).await;
    server.cmd(["RPUSH", "q", "1"]);
    let receiver = queues.ready.receiver();
    soon(receiver.receive()).await.unwrap().retry_after(ms(0)).await.unwrap();
    server.cmd(["ACL", "SETUSER", "user", "-zrem"]);
    let error = receiver.try_receive().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    server.cmd(["ACL", "SETUSER", "user", "+zrem"]);
    let again = soon(receiver.receive()).await.unwrap();
    assert_eq!((*again.value(), again.attempt()), (1, 2));
    assert!(receiver.try_receive().await.unwrap().is_none());
    again.ack().await.unwrap();
    assert!(is_drained(&server));
}

/// Somebody deletes the receipts between two tries of a call, and the ids of both derive from the same token.
#[tokio::test]
async fn a_retry_without_its_receipt_overwrites_no_message() {
    for before in ["nothing", "a retry is due"] {
        let server = Server::start();
        let proxy = Proxy::start(server.port());
        // This client loads the script, so that the receive is the first call of its receiver: an idle one
        // calls every 200 ms, and a receive waits until that is answered.
        let other = Queues::of_numbers(still_builder(&server)).await;
        let first = other.ready.receiver();
        if before != "nothing" {
            // It takes the first number of the retry's claims, which shifts the others.
            server.cmd(["RPUSH", "q", "0"]);
            soon(first.receive()).await.unwrap().snooze(HOUR).await.unwrap();
        }
        assert!(first.try_receive().await.unwrap().is_none());
        other.client.shutdown().await;
        server.cmd(["RPUSH", "q", "1", "2", "3", "4"]);
        let queues = Queues::of_numbers(still_builder(&proxy)).await;
        let receiver = queues.ready.receiver().lease(ms(1000));
        proxy.hold_replies(true);
        let receive = tokio::spawn({
            let receiver = receiver.clone();
            async move { receiver.receive_many(4).await }
        });
        until_async("four are claimed", || async { server.get::<usize, _>(["LLEN", "q"]) == 0 }).await;
        server.cmd(["RPUSH", "q", "5", "6", "7", "8"]);
        let (seconds, micros): (u64, u64) = server.get(["TIME"]);
        let leases_are_over = || async {
            let (now, now_micros): (u64, u64) = server.get(["TIME"]);
            (now, now_micros) > (seconds + 5, micros)
        };
        until_async("the leases are over", leases_are_over).await;
        for (id, _) in server.zset(RETRIES) {
            // It is due now, and was not for the first try.
            server.cmd([b"ZADD".as_slice(), RETRIES.as_bytes(), b"1", &id]);
        }
        server.cmd(["DEL", RECEIPTS]);
        proxy.cut();
        proxy.hold_replies(false);
        let mut received = BTreeMap::new();
        let mut deliveries = soon(receive).await.unwrap().unwrap();
        let expected = if before == "nothing" { 8 } else { 9 };
        loop {
            for delivery in deliveries {
                let delivery = delivery.unwrap();
                *received.entry(*delivery.value()).or_insert(0) += 1;
                delivery.ack().await.unwrap();
            }
            if received.len() == expected {
                break;
            }
            deliveries = soon(receiver.receive_many(4)).await.unwrap();
        }
        assert!(received.values().all(|count| *count == 1), "{received:?}");
        assert!(is_drained(&server));
    }
}

/// The message keeps its lease, and comes back when that ends: "When a message is delivered twice" in
/// docs/guarantees.md.
#[tokio::test]
async fn what_was_refused_to_be_acknowledged_is_delivered_again() {
    for (missing, at_once) in [("zrem", 1), ("zmscore", 2)] {
        let server = Server::start();
        server.cmd(["ACL", "SETUSER", "user", "on", ">secret", "~*", "&*", "+@all"]);
        let url = format!("redis://user:secret@127.0.0.1:{}", server.port());
        let queues = Queues::of_numbers(still_builder(&url)).await;
        queues.ready.offer_all(&(0..at_once).collect::<Vec<_>>()).await.unwrap();
        let receiver = queues.ready.receiver().lease(ms(3000)).extend_for(Duration::ZERO);
        let held = soon(receiver.receive_many(2)).await.unwrap();
        assert_eq!(held.len(), at_once as usize);
        server.cmd(["ACL", "SETUSER", "user", &format!("-{missing}")]);
        let acks = join_all(held.into_iter().map(|delivery| delivery.unwrap().ack()));
        for result in soon(acks).await {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::Refused, "without {missing}");
        }
        server.cmd(["ACL", "SETUSER", "user", "+@all"]);
        for _ in 0..at_once {
            let again = soon(receiver.receive()).await.unwrap();
            assert_eq!(again.attempt(), 2, "without {missing}");
            again.ack().await.unwrap();
        }
        assert!(is_drained(&server));
    }
}

/// Its receive is gone, and no other program knows of it.
#[tokio::test]
async fn what_nobody_has_read_is_released_after_a_refusal() {
    let server = Server::start();
    server.cmd(["ACL", "SETUSER", "user", "on", ">secret", "~*", "&*", "+@all"]);
    let proxy = Proxy::start(server.port());
    let url = format!("redis://user:secret@127.0.0.1:{}", proxy.port());
    let queues = Queues::of_numbers(still_builder(&url)).await;
    let receiver = queues.ready.receiver().lease(HOUR);
    assert!(receiver.try_receive().await.unwrap().is_none());
    server.cmd(["RPUSH", "q", "1"]);
    proxy.hold_replies(true);
    let receive = tokio::spawn({
        let receiver = receiver.clone();
        async move { receiver.try_receive().await }
    });
    until_async("it is claimed", || async { count(&server, "LLEN", "q") == 0 }).await;
    receive.abort();
    assert!(receive.await.unwrap_err().is_cancelled());
    server.cmd(["ACL", "SETUSER", "user", "-evalsha"]);
    let before = server.errors("NOPERM");
    proxy.hold_replies(false);
    until_async("its release is refused", || async { server.errors("NOPERM") > before }).await;
    let begun = server.errors("NOPERM");
    sleep(ms(300)).await;
    let refused = server.errors("NOPERM") - begun;
    assert!(refused <= 2, "{refused} calls in 0.3 s");
    server.cmd(["ACL", "SETUSER", "user", "+@all"]);
    let again = soon(receiver.receive()).await.unwrap();
    assert_eq!((*again.value(), again.attempt()), (1, 1));
    again.ack().await.unwrap();
    assert!(is_drained(&server));
}

/// The reply is lost before and after the call was executed.
#[tokio::test]
async fn an_acknowledgement_with_the_next_claim_whose_reply_is_lost_is_made_once() {
    for is_executed in [true, false] {
        let server = Server::start();
        let proxy = Proxy::start(server.port());
        let queues = Queues::of_numbers(builder(&proxy).command_timeout(MINUTE).transfer(false)).await;
        let receiver = queues.ready.receiver();
        server.cmd(["RPUSH", "q", "1", "2"]);
        let order = soon(receiver.receive()).await.unwrap();
        if is_executed {
            proxy.hold_replies(true)
        } else {
            proxy.blackhole(true)
        }
        let lose = async {
            if is_executed {
                until_async("it is executed", || async { count(&server, "LLEN", "q") == 0 }).await;
            } else {
                sleep(ms(50)).await;
            }
            proxy.cut();
            proxy.hold_replies(false);
            proxy.blackhole(false);
        };
        let (next, ()) = tokio::join!(receiver.ack_and_receive(order), lose);
        let next = next.unwrap();
        assert_eq!((*next.value(), next.attempt()), (2, 1));
        assert_eq!(count(&server, "HLEN", MESSAGES), 1, "the first one is acknowledged");
        next.ack().await.unwrap();
        assert!(is_drained(&server));
    }
}

/// The retry of the call finds in its receipt what was counted.
#[tokio::test]
async fn what_a_call_has_counted_survives_a_lost_reply() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let queues = Queues::of_numbers(builder(&proxy).command_timeout(MINUTE).transfer(false)).await;
    let receiver = queues.ready.receiver();
    server.cmd(["RPUSH", "q", "1"]);
    soon(receiver.receive()).await.unwrap().retry_after(ms(0)).await.unwrap();
    server.cmd(["DEL", MESSAGES]);
    let mover = Queues::of_numbers(builder(&server).command_timeout(MINUTE)).await;
    mover.delayed.offer(&2, ms(1)).id("job").expires_after(ms(50)).await.unwrap();
    until_async("it is moved", || async { count(&server, "LLEN", "q") == 1 }).await;
    sleep(ms(60)).await;
    proxy.hold_replies(true);
    let lose = async {
        until_async("it is executed", || async { count(&server, "ZCARD", DEAD) == 1 }).await;
        proxy.cut();
        proxy.hold_replies(false);
    };
    let (received, ()) = tokio::join!(receiver.try_receive(), lose);
    assert!(received.unwrap().is_none());
    let counts = queues.ready.stats().await.unwrap().receiving;
    assert_eq!((counts.vanished, counts.expired, counts.died), (1, 1, 1));
}

/// Dropped at each poll: each message is acknowledged once, and none is lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_ack_and_receive_has_acknowledged() {
    let server = Server::start();
    // A call that nobody delays often ends before the moment at which it would be dropped.
    let proxy = Proxy::start(server.port());
    proxy.delay(ms(1));
    let queues = Queues::of_numbers(still_builder(&proxy)).await;
    let numbers: Vec<i64> = (0..part().share(4_000) as i64).collect();
    queues.ready.offer_all(&numbers).await.unwrap();
    let receiver = queues.ready.receiver();
    let (mut acknowledged, mut dropped) = (Vec::new(), 0);
    let mut order = soon(receiver.receive()).await.unwrap();
    while acknowledged.len() + 1 < numbers.len() {
        assert_eq!(order.attempt(), 1);
        acknowledged.push(*order.value());
        order = match drop_at(Moment::number(acknowledged.len()), receiver.ack_and_receive(order)).await {
            Some(next) => next.unwrap(),
            None => {
                dropped += 1;
                soon(receiver.receive()).await.unwrap()
            }
        };
    }
    acknowledged.push(*order.value());
    order.ack().await.unwrap();
    acknowledged.sort_unstable();
    assert_eq!(acknowledged, numbers);
    assert!(dropped > numbers.len() / 4, "{dropped} were dropped");
    assert!(is_drained(&server));
}
