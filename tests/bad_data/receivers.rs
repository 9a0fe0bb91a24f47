//! Settings, calls and keys with which receivers cannot do what they should: clear errors, and nothing is
//! lost.
//!
//! Settings out of their range are in `tests/queues`: those of receivers in `receiving.rs`, those of workers
//! in `workers.rs`.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use redelay::worker::{Backoff, Outcome};
use redelay::{ErrorKind, Worker, codec};
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{
    CONTROL, DEAD, DEAD_MESSAGES, HOUR, MESSAGES, MORE_NOTES, NOTES, Queues, RETRIES, builder, ms,
    number_queues, patient_builder, soon, text_queues,
};
use tokio::time::timeout;

/// A lease that is shorter than three round trips may end before it is extended. One that is shorter than a
/// round trip is over when the message arrives, which nobody handles then. Each message is acknowledged once,
/// or dead.
#[tokio::test]
async fn a_lease_of_fewer_than_three_round_trips_loses_no_message() {
    const COUNT: i64 = 6;
    // On a busy machine, a message may arrive after its lease with the shorter one, too.
    let in_time = Cell::new(0);
    for (lease, round_trip) in [(ms(1_000), ms(600)); 5].into_iter().chain([(ms(100), ms(400))]) {
        let is_shorter = round_trip < lease;
        if is_shorter && in_time.get() > 0 {
            continue;
        }
        let server = Server::start();
        let proxy = Proxy::start(server.port());
        let queues = Queues::of_numbers(builder(&proxy)).await;
        let (_client, near, _) = number_queues(&server).await;
        let [receiver, near] =
            [&queues.ready, &near].map(|queue| queue.receiver().lease(lease).max_losses(2));
        queues.ready.offer_all(&(0..COUNT).collect::<Vec<_>>()).await.unwrap();
        proxy.delay(round_trip);
        let far = async {
            let held = timeout(30 * lease, receiver.receive_many(COUNT as usize)).await;
            in_time.set(in_time.get() + usize::from(held.is_ok()));
            assert!(held.is_err() || is_shorter, "what arrives after its lease is given up");
            let held = held.map_or_else(|_| Vec::new(), |held| held.unwrap());
            let settle = held.into_iter().map(async |delivery| {
                let delivery = delivery.unwrap();
                tokio::time::sleep(lease * *delivery.value() as u32 * 6 / 5).await;
                (*delivery.value(), delivery.ack().await.map_err(|error| error.kind()))
            });
            join_all(settle).await
        };
        let near = async {
            until_async("all are received", || async { server.list("q").is_empty() }).await;
            let mut acknowledged = Vec::new();
            loop {
                let Some(delivery) = soon(near.receive_timeout(ms(1_500))).await.unwrap() else {
                    if server.list("q").is_empty() && server.get::<usize, _>(["HLEN", MESSAGES]) == 0 {
                        return acknowledged;
                    }
                    continue;
                };
                acknowledged.push(*delivery.value());
                // Its lease is short.
                if delivery.ack().await.is_err() {
                    acknowledged.pop();
                }
            }
        };
        let (settled, mut ended) = tokio::join!(far, near);
        let again = ended.len();
        let mut unknown = Vec::new();
        for (number, result) in settled {
            match result {
                Ok(()) => ended.push(number),
                // A busy machine answers late.
                Err(ErrorKind::OutcomeUnknown) => unknown.push(number),
                Err(kind) => assert_eq!(kind, ErrorKind::LeaseLost),
            }
        }
        let letters = queues.ready.dead_letters().read(None, usize::MAX).await.unwrap();
        ended.extend(letters.iter().map(|letter| {
            assert_eq!((letter.reason.as_str(), letter.lost), ("lost", 2));
            String::from_utf8_lossy(&letter.payload).parse::<i64>().unwrap()
        }));
        println!("{round_trip:?}: {again} delivered again, {} dead", letters.len());
        unknown.retain(|number| !ended.contains(number));
        ended.extend(unknown);
        ended.sort_unstable();
        assert_eq!(ended, (0..COUNT).collect::<Vec<_>>());
        assert!(is_shorter || again + letters.len() > 0, "no lease has ended");
        assert_eq!(server.get::<usize, _>(["HLEN", MESSAGES]), 0);
    }
    assert_eq!(in_time.get(), 1, "of the shorter round trip");
}

#[tokio::test]
async fn after_a_shutdown_nothing_is_settled_and_nothing_is_lost() {
    let server = Server::start();
    let (client, ready, _) = number_queues(&server).await;
    let (_other_client, other, _) = number_queues(&server).await;
    ready.offer_all(&(0..8).collect::<Vec<_>>()).await.unwrap();
    let receiver = ready.receiver().lease(ms(3000));
    let mut held = receiver.receive_many(8).await.unwrap().into_iter().map(Result::unwrap);
    client.shutdown().await;
    let mut next = || held.next().unwrap();
    let closed = [
        next().ack().await,
        next().retry().await,
        next().retry_after(ms(1)).await,
        next().snooze(ms(1)).await,
        next().release().await,
        next().reject("no").await,
        next().extend(HOUR).await,
    ];
    for result in closed {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Closed);
    }
    drop(next());
    assert_eq!(receiver.try_receive().await.map(drop).unwrap_err().kind(), ErrorKind::Closed);
    let other = other.receiver().lease(ms(500));
    let mut again = BTreeSet::new();
    while again.len() < 8 {
        let delivery = soon(other.receive()).await.unwrap();
        assert_eq!(delivery.attempt(), 2, "its lease has ended");
        again.insert(*delivery.value());
        delivery.ack().await.unwrap();
    }
    assert_eq!(server.get::<usize, _>(["EXISTS", MESSAGES, DEAD]), 0);
}

/// A handler whose outcome is impossible gets an error, and its message is retried after the backoff.
#[tokio::test]
async fn a_handler_may_name_no_time_that_is_none() {
    let server = Server::start();
    let (client, ready, _) = number_queues(&server).await;
    ready.offer_all(&[1, 2, 3, 4]).await.unwrap();
    let failures = Arc::<Mutex<Vec<(String, bool)>>>::default();
    let report = failures.clone();
    let handler = |number: i64, context: redelay::worker::Context| async move {
        match (context.attempt(), number) {
            (1, 1) | (_, 4) => Outcome::RetryAfter(Duration::MAX, "no".into()),
            (1, 2) | (_, 3) => Outcome::Snooze(Duration::MAX),
            _ => Outcome::Done,
        }
    };
    let worker = Worker::new(&ready).backoff(Backoff::ladder([])).max_attempts(3);
    let worker = worker.on_failure(move |failure| {
        report.lock().unwrap().push((failure.to_string(), failure.is_dead));
    });
    let running = tokio::spawn(worker.run_until(std::future::pending::<()>(), handler));
    until_async("all are settled", || async { server.get::<usize, _>(["EXISTS", "q", MESSAGES]) == 0 }).await;
    client.stop_taking().await;
    assert_eq!(soon(running).await.unwrap().unwrap().acknowledged, 2);
    let failures = std::mem::take(&mut *failures.lock().unwrap());
    let count = |word: &str| failures.iter().filter(|(failure, _)| failure.contains(word)).count();
    // One that is never settled is not tried for ever, and its dead letter says why.
    assert_eq!((count("retry_after"), count("snooze")), (1 + 3, 1 + 3), "{failures:?}");
    assert_eq!(failures.iter().filter(|(_, is_dead)| *is_dead).count(), 2, "{failures:?}");
    let letters = ready.dead_letters().read(None, 9).await.unwrap();
    let mut errors: Vec<_> = letters.iter().map(|letter| &*letter.error).collect();
    errors.sort_unstable();
    assert!(errors.len() == 2 && errors[0] == "no", "{errors:?}");
    assert!(errors[1].starts_with("snooze: the time is 10^15 ms or more"), "{errors:?}");
}

#[tokio::test]
async fn a_queue_cannot_be_its_own_dead_letters() {
    let server = Server::start();
    let (client, ready, _) = number_queues(&server).await;
    let same = client.blocking_queue::<String>("q", codec::String);
    ready.put(&7).await.unwrap();
    let error = ready.receiver().dead_letters_to(&same).receive().await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    let worker = Worker::new(&ready).dead_letters_to(&same);
    let error = soon(worker.run_until(std::future::pending::<()>(), |_: i64| async {})).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains("dead letters of a queue cannot be sent to that queue"), "{error}");
    assert_eq!(server.list("q"), [b"7"]);
}

/// A message that cannot go back to the list stays, and is in the way of no other.
#[tokio::test]
async fn what_cannot_be_released_stays() {
    let server = Server::start();
    let (_client, ready, delayed) = number_queues(&server).await;
    let receiver = ready.receiver().backoff(Backoff::fixed(HOUR));
    for number in 1..=3 {
        match number {
            2 => drop(delayed.offer(&number, Duration::ZERO).id("job").header("n", "1").await.unwrap()),
            _ => ready.put(&number).await.unwrap(),
        }
        let delivery = soon(receiver.receive()).await.unwrap();
        assert_eq!(*delivery.value(), number);
        delivery.retry().await.unwrap();
    }
    server.cmd(["SET", NOTES, "of another type"]);
    let error = ready.release_all().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    assert!(error.to_string().contains("(2 messages were released before)"), "{error}");
    let mut released = server.list("q");
    released.sort();
    assert_eq!(released, [b"1", b"3"]);
    let error = ready.release_all().await.unwrap_err();
    assert!(error.kind() == ErrorKind::Refused && error.to_string().contains("WRONGTYPE"), "{error}");
    server.cmd(["DEL", NOTES]);
    assert_eq!(ready.release_all().await.unwrap(), 1);
    assert_eq!(server.list("q").len(), 3);
}

/// A message that cannot become a dead letter stays a message. It is not counted as dead, and `last_error`
/// says why. No receiver begins an expired job.
#[tokio::test]
async fn what_cannot_become_a_dead_letter_waits() {
    let server = Server::start();
    let (client, ready, delayed) = number_queues(&server).await;
    let (other_client, other, _) = number_queues(&server).await;
    let receiver = other.receiver();
    server.cmd(["SET", DEAD_MESSAGES, "of another type"]);
    ready.put(&1).await.unwrap();
    let short = ready.receiver().lease(ms(300)).extend_for(Duration::ZERO).max_losses(1);
    let _lost = soon(short.receive()).await.unwrap();
    let again = soon(receiver.receive()).await.unwrap();
    assert_eq!((*again.value(), again.attempt()), (1, 2));
    // By the receiver that has found it.
    let is_told = |error: redelay::stats::LastError| {
        error.message.starts_with("dead letters of `q`: ") && error.message.contains("WRONGTYPE")
    };
    until_async("the error is reported", || async {
        [&client, &other_client].iter().any(|client| client.stats().last_error.is_some_and(is_told))
    })
    .await;
    again.ack().await.unwrap();
    let offer = delayed.offer(&2, Duration::ZERO).id("2").until_done();
    offer.expires_after(ms(1)).await.unwrap();
    until_async("it is ready", || async { server.list("q").len() == 1 }).await;
    tokio::time::sleep(ms(2)).await;
    let looks = async |is_over: &dyn Fn() -> bool| {
        until_async("it is tried", || async {
            let begun = receiver.receive_timeout(ms(10)).await.unwrap();
            assert!(begun.is_none(), "a receiver has begun it");
            is_over()
        })
        .await;
    };
    looks(&|| server.zset(RETRIES).len() == 1).await;
    // Nor when it was put back.
    assert_eq!(other.release_all().await.unwrap(), 1);
    looks(&|| server.zset(RETRIES).len() == 1).await;
    let stats = || async { other.stats().await.unwrap().receiving };
    assert_eq!((stats().await.died, stats().await.expired, stats().await.waiting), (0, 0, 1));
    assert_eq!(ready.stats().await.unwrap().receiving.died, 0);
    server.cmd(["DEL", DEAD_MESSAGES]);
    looks(&|| server.zset(DEAD).len() == 1).await;
    let letter = other.dead_letters().read(None, 9).await.unwrap().remove(0);
    assert_eq!((letter.reason.as_str(), letter.lost, &letter.payload[..]), ("expired", 0, &b"2"[..]));
    assert_eq!((stats().await.died, stats().await.expired, stats().await.waiting), (1, 1, 0));
    assert!(other.dead_letters().requeue(letter.id).await.unwrap());
    let again = soon(receiver.receive()).await.unwrap();
    assert_eq!(*again.value(), 2);
    again.ack().await.unwrap();
}

/// What others wrote among the dead letters hides no letter, and stops neither reading nor trimming.
#[tokio::test]
async fn junk_among_dead_letters_hides_none() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    for (index, junk) in ["", "x", "\u{1}short", &"\u{2}".repeat(60)].iter().enumerate() {
        let id = format!("{index:016}");
        server.cmd(["ZADD", DEAD, &index.to_string(), &id]);
        server.cmd(["HSET", DEAD_MESSAGES, &id, junk]);
    }
    server.cmd(["ZADD", DEAD, "9", "short"]);
    ready.put(&7).await.unwrap();
    soon(ready.receiver().receive()).await.unwrap().reject("no").await.unwrap();
    let letters = ready.dead_letters().read(None, usize::MAX).await.unwrap();
    assert_eq!(letters.iter().map(|letter| &letter.payload[..]).collect::<Vec<_>>(), [b"7"]);
    assert_eq!(ready.dead_letters().requeue_all(usize::MAX).await.unwrap(), 1);
    let again = soon(ready.receiver().keep_dead_letters(1, None).receive()).await.unwrap();
    assert_eq!(*again.value(), 7);
    again.ack().await.unwrap();
}

/// Another program has written where the data of jobs is. That concerns its own payload alone.
#[tokio::test]
async fn what_is_no_data_of_a_job_holds_no_message_up() {
    let server = Server::start();
    let (_client, ready, delayed) = text_queues(&server).await;
    let sha1: String = server.get(["EVAL", "return redis.sha1hex('x')", "0"]);
    let receiver = ready.receiver();
    for junk in ["", "0", "1", "0junk", "1junk", "0\0\0\0\0\0\0\u{7f}", "0\0\0\0\0\0\0\u{1}a\u{1}\0\0"] {
        let note = || {
            server.cmd(["HSET", NOTES, &sha1, junk]);
            server.cmd(["ZADD", MORE_NOTES, "0", &format!("{sha1}{junk}")]);
            server.cmd(["HSET", CONTROL, "notes", "1"]);
        };
        note();
        ready.put("x").await.unwrap();
        let delivery = soon(receiver.receive()).await.unwrap();
        assert_eq!((delivery.value().as_str(), delivery.job_id()), ("x", None), "{junk:?}");
        delivery.ack().await.unwrap();
        note();
        ready.offer_all(&["w", "x", "x", "y"].map(String::from)).await.unwrap();
        for delivery in soon(receiver.receive_many(4)).await.unwrap() {
            delivery.unwrap().ack().await.unwrap();
        }
        note();
        delayed.offer("x", Duration::ZERO).id("a").until_done().header("n", "1").await.unwrap();
        let delivery = soon(receiver.receive()).await.unwrap();
        assert_eq!((delivery.job_id(), delivery.header("n")), (Some(&b"a"[..]), Some("1")), "{junk:?}");
        delivery.ack().await.unwrap();
        assert_eq!(delayed.job("a").state().await.unwrap(), None, "{junk:?}");
        note();
        ready.put("x").await.unwrap();
        assert_eq!(soon(ready.take()).await.unwrap(), "x");
    }
    // A sweep deletes it.
    server.cmd(["HDEL", CONTROL, "jobs", "jobs-at", "notes-at"]);
    let sweeping = Queues::of_texts(patient_builder(&server).sweep_interval(Duration::from_secs(1))).await;
    until_async("it is gone", || async { server.get::<usize, _>(["EXISTS", NOTES]) == 0 }).await;
    sweeping.client.shutdown().await;

    // A message with such data.
    let numbers = [&[2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 3, 0, 3, 0, 0, 0x75, 0x30, b'k'][..], &[0; 12]].concat();
    for data in ["", "abc", "123456"] {
        let lengths = [0, data.len() as u8, 0, 0];
        let record = [&numbers[..], &lengths, data.as_bytes(), b"z"].concat();
        server.cmd([b"HSET".as_slice(), MESSAGES.as_bytes(), b"0123456789abcdef", &record]);
        server.cmd(["ZADD", RETRIES, "1", "0123456789abcdef"]);
        ready.put("w").await.unwrap();
        let mut received = Vec::new();
        while received.len() < 2 {
            let delivery = soon(receiver.receive()).await.unwrap();
            received.push((delivery.value().clone(), delivery.job_id().is_none()));
            delivery.ack().await.unwrap();
        }
        received.sort();
        assert_eq!(received, [("w".to_owned(), true), ("z".to_owned(), true)], "{data:?}");
    }
}
