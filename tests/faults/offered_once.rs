//! An offer that returned `Ok` is stored once, whatever becomes of its entry between two tries.

use std::time::{Duration, Instant, SystemTime};

use redelay::DelayedQueue;
use redelay::delayed_queue::Ticket;
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{HOUR, MINUTE, Queues, TIMEOUT_SET, builder, ms, soon, still_builder};

use super::never_stuck::clock::Clock;

/// Offers through a proxy, whose reply is lost with the connection; what happens on the server before the
/// client has another connection is `meanwhile`. Returns the answer to the offer, and the client that made
/// it.
async fn offered_while<T>(
    server: &Server,
    limit: Duration,
    meanwhile: impl AsyncFnOnce(&Queues<i64>) -> T,
) -> (redelay::Result<Ticket>, Queues<i64>, T) {
    let proxy = Proxy::start(server.port());
    let other = Queues::of_numbers(still_builder(server)).await;
    other.delayed.offer(&0, MINUTE).await.unwrap();
    other.delayed.clear().await.unwrap();
    let offering = Queues::of_numbers(still_builder(&proxy)).await;
    proxy.hold_replies(true);
    let fault = async {
        until_async("stored, and the reply is held", || async {
            !server.zset(TIMEOUT_SET).is_empty() && proxy.held() > 0
        })
        .await;
        proxy.refuse(true);
        proxy.cut();
        proxy.hold_replies(false);
        let done = meanwhile(&other).await;
        proxy.refuse(false);
        done
    };
    let (ticket, done) = tokio::join!(offering.delayed.offer(&1, MINUTE).timeout(limit), fault);
    (ticket, offering, done)
}

/// The offer must succeed, and nothing of it may be left.
async fn between_two_tries(meanwhile: impl AsyncFn(&Queues<i64>)) {
    let server = Server::start();
    let (ticket, _offering, ()) = offered_while(&server, MINUTE, meanwhile).await;
    let ticket = ticket.expect("an answer that is known");
    assert_eq!(server.zset(TIMEOUT_SET), [], "it is not stored again");
    let other = Queues::of_numbers(still_builder(&server)).await;
    assert!(!other.delayed.cancel(&ticket).await.unwrap());
}

#[tokio::test]
async fn its_entry_was_polled() {
    between_two_tries(async |other| assert_eq!(other.delayed.poll().await.unwrap(), Some(1))).await;
}

#[tokio::test]
async fn its_entry_was_removed() {
    between_two_tries(async |other| assert!(other.delayed.remove(&1).await.unwrap())).await;
}

#[tokio::test]
async fn the_queue_was_cleared() {
    between_two_tries(async |other| assert!(other.delayed.clear().await.unwrap())).await;
}

#[tokio::test]
async fn its_payload_was_moved() {
    between_two_tries(async |other| {
        let moved = other.delayed.poll_last_and_offer_first_to("other").await.unwrap();
        assert_eq!(moved, Some(1));
    })
    .await;
}

/// A server that loses its data between two tries loses the receipt, too. The second try stores the entry
/// again, since the first one is gone; unless it was delivered before, that is the only one.
#[tokio::test]
async fn the_server_lost_its_data() {
    for (is_polled, deliveries) in [(false, 1), (true, 2)] {
        let server = Server::start();
        let (ticket, _offering, before) = offered_while(&server, MINUTE, async |other| {
            let polled = if is_polled { other.delayed.poll().await.unwrap() } else { None };
            server.kill_9();
            server.start_again();
            polled.iter().count()
        })
        .await;
        ticket.expect("it is stored");
        let after = server.zset(TIMEOUT_SET).len();
        assert_eq!(before + after, deliveries);
    }
}

/// The clock of the server is set between two tries, as a failover to a machine with another clock does.
#[tokio::test(flavor = "multi_thread")]
async fn the_clock_was_set() {
    let clock = Clock::start();
    for jump in [3600, -3600, 10] {
        clock.set(0);
        let proxy = Proxy::start(clock.server.port());
        let taking = Queues::of_numbers(builder(&clock.server)).await;
        taking.delayed.offer(&0, ms(1)).await.unwrap();
        assert_eq!(soon(taking.ready.take()).await.unwrap(), 0);
        let offering = Queues::of_numbers(still_builder(&proxy)).await;
        proxy.hold_replies(true);
        let fault = async {
            until_async("stored", || async {
                clock.server.zset(TIMEOUT_SET).len() == 20 && proxy.held() > 0
            })
            .await;
            proxy.refuse(true);
            proxy.cut();
            proxy.hold_replies(false);
            clock.set(jump);
            if jump > 0 {
                // All of them are due now, and delivered.
                for _ in 0..20 {
                    soon(taking.ready.take()).await.unwrap();
                }
            }
            proxy.refuse(false);
        };
        let offers = (1..=20).map(|n| {
            let delayed: DelayedQueue<i64> = offering.delayed.clone();
            async move { delayed.offer(&n, 5 * Duration::from_secs(1)).await }
        });
        let (offers, ()) = tokio::join!(futures::future::join_all(offers), fault);
        offers.into_iter().for_each(|offer| drop(offer.unwrap()));
        let left = clock.server.zset(TIMEOUT_SET).len();
        assert_eq!(left, if jump > 0 { 0 } else { 20 }, "clock {jump:+} s");
        taking.delayed.clear().await.unwrap();
        taking.client.shutdown().await;
    }
}

const OUTAGE: Duration = Duration::from_secs(5);
/// Of times in ms.
const ROUNDING: f64 = 2.0;

/// A try that waits for a connection does not put the entry off, and the ticket says when it is due.
#[tokio::test]
async fn an_outage_is_not_added_to_the_delay() {
    for executed in [false, true] {
        let server = Server::start();
        let proxy = Proxy::start(server.port());
        let warm = Queues::of_numbers(still_builder(&server)).await;
        warm.delayed.offer(&0, MINUTE).await.unwrap();
        warm.delayed.clear().await.unwrap();
        let offering = Queues::of_numbers(still_builder(&proxy)).await;
        if executed {
            proxy.hold_replies(true);
        } else {
            proxy.blackhole(true);
        }
        // A stall between the two counts as time that was spent.
        let (begun, called) = (Instant::now(), SystemTime::now());
        let fault = async {
            if executed {
                until_async("stored", || async { !server.zset(TIMEOUT_SET).is_empty() }).await;
            } else {
                tokio::time::sleep(ms(100)).await;
            }
            proxy.refuse(true);
            proxy.cut();
            proxy.hold_replies(false);
            proxy.blackhole(false);
            tokio::time::sleep(OUTAGE).await;
            proxy.refuse(false);
        };
        let (ticket, ()) = tokio::join!(offering.delayed.offer(&1, HOUR), fault);
        let ticket = ticket.unwrap();
        let else_spent = begun.elapsed().checked_sub(OUTAGE).expect("it has waited for the outage");
        let [(_, score)] = &server.zset(TIMEOUT_SET)[..] else { panic!("one entry") };
        let asked = called.duration_since(SystemTime::UNIX_EPOCH).unwrap() + HOUR;
        let late = *score - asked.as_secs_f64() * 1e3;
        let most = else_spent.as_secs_f64() * 1e3 + ROUNDING;
        assert!((-ROUNDING..most).contains(&late), "executed: {executed}; late by {late} ms of {most}");
        let due = ticket.due().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        assert!(
            (due.as_secs_f64() * 1e3 - score).abs() < 1.5,
            "executed: {executed}; the ticket says another time"
        );
    }
}

/// The same for an offer that is made while there is no connection.
#[tokio::test]
async fn a_wait_for_a_connection_is_not_added_to_the_delay() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let offering = Queues::of_numbers(still_builder(&proxy)).await;
    proxy.refuse(true);
    proxy.cut();
    until_async("the connection is lost", || async { !offering.client.stats().connected }).await;
    // A stall between the two counts as time that was spent.
    let (begun, called) = (Instant::now(), SystemTime::now());
    let heal = async {
        tokio::time::sleep(OUTAGE).await;
        proxy.refuse(false);
    };
    let (ticket, ()) = tokio::join!(offering.delayed.offer(&1, HOUR), heal);
    let else_spent = begun.elapsed().checked_sub(OUTAGE).expect("it has waited for the outage");
    let asked = called.duration_since(SystemTime::UNIX_EPOCH).unwrap() + HOUR;
    let due = ticket.unwrap().due().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let late = (due.as_secs_f64() - asked.as_secs_f64()) * 1e3;
    let most = else_spent.as_secs_f64() * 1e3 + ROUNDING;
    assert!((-ROUNDING..most).contains(&late), "late by {late} ms of {most}");
}

/// Receipts do not stay, however many calls there are at a time.
#[tokio::test]
async fn receipts_are_deleted() {
    let server = Server::start();
    let Queues { client: _client, delayed, .. } = Queues::of_numbers(still_builder(&server)).await;
    for _ in 0..4 {
        let offers = (0..500).map(|n| {
            let delayed = delayed.clone();
            async move { delayed.offer(&n, HOUR).timeout(MINUTE).await }
        });
        futures::future::join_all(offers).await.into_iter().for_each(|offer| drop(offer.unwrap()));
    }
    until_async("only the queue is left", || async { server.keys().len() == 2 }).await;
}

/// Many with one command, which costs little beside the offers.
#[tokio::test]
async fn receipts_are_deleted_together() {
    let server = Server::start();
    let Queues { client: _client, delayed, .. } = Queues::of_numbers(still_builder(&server)).await;
    let begun = Instant::now();
    for n in 0..640 {
        delayed.offer(&n, HOUR).await.unwrap();
    }
    until_async("only the queue is left", || async { server.keys().len() == 2 }).await;
    let commands = server.command_calls("del");
    let most = 10 + 2 + begun.elapsed().as_secs();
    assert!(commands <= most, "{commands} commands, of {most}");
}

/// A clean shutdown leaves none of them for the server to expire.
#[tokio::test]
async fn a_shutdown_deletes_receipts() {
    let server = Server::start();
    let Queues { client, delayed, .. } = Queues::of_numbers(still_builder(&server)).await;
    delayed.offer(&1, HOUR).await.unwrap();
    client.shutdown().await;
    let left = server.keys();
    assert_eq!(left.len(), 2, "only the queue is left: {left:?}");
}
