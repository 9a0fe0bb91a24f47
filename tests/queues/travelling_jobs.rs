//! What travels with a job from its offer to its handler: headers, times, expiry.

use std::time::{Duration, SystemTime};

use redelay::delayed_queue::{Cancelled, JobOffer, Offered};
use redelay::worker::Context;
use redelay::{BlockingQueue, DelayedQueue, Delivery, ErrorKind, Worker};
use redelay_fixture::{Server, until_async};
use redelay_support::{HOUR, JOBS, MINUTE, NOTES, ms, soon, still_text_queues, text_queues};

async fn receive(queue: &BlockingQueue<String>) -> Delivery<String> {
    soon(queue.receiver().receive()).await.unwrap()
}

fn headers(delivery: &Delivery<String>) -> Vec<(String, String)> {
    delivery.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// What is left of jobs: their ids, and what would travel with them.
fn left(server: &Server) -> (usize, usize) {
    (server.get(["HLEN", JOBS]), server.get(["HLEN", NOTES]))
}

#[tokio::test]
async fn headers_and_times_reach_each_attempt() {
    let server = Server::start();
    let (client, ready, delayed) = text_queues(&server).await;
    let offer = delayed.offer("1", ms(20)).id("a").header("traceparent", "00-1").header("b", "");
    let Offered::Stored(due) = offer.header("traceparent", "00-2 ä").await.unwrap() else { panic!() };
    for attempt in 1..=2 {
        let delivery = receive(&ready).await;
        let expected =
            [("b", ""), ("traceparent", "00-2 ä")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(headers(&delivery), expected, "{attempt}");
        assert_eq!(delivery.header("traceparent"), Some("00-2 ä"));
        assert_eq!(delivery.header("Traceparent"), None);
        assert_eq!((delivery.job_id(), delivery.due()), (Some(&b"a"[..]), Some(due)));
        let offered = delivery.offered_at().unwrap();
        assert!(
            offered < due && due <= offered + ms(21) && due <= delivery.first_received(),
            "{offered:?} {due:?}"
        );
        // The id is free all the same: nothing says until_done.
        assert_eq!(delayed.job("a").state().await.unwrap(), None);
        match attempt {
            1 => delivery.retry_after(Duration::ZERO).await.unwrap(),
            _ => delivery.ack().await.unwrap(),
        }
    }
    assert_eq!(left(&server), (0, 0));
    // A job without anything that travels has nothing.
    delayed.offer("1", Duration::ZERO).id("a").await.unwrap();
    let plain = receive(&ready).await;
    assert_eq!(
        (plain.job_id(), plain.due(), plain.offered_at(), plain.headers().count()),
        (None, None, None, 0)
    );
    plain.ack().await.unwrap();
    client.shutdown().await;
}

#[tokio::test]
async fn a_handler_knows_what_travels_with_its_job() {
    let server = Server::start();
    let (client, ready, delayed) = text_queues(&server).await;
    let (tells, mut told) = tokio::sync::mpsc::unbounded_channel();
    let (stop, stopping) = tokio::sync::oneshot::channel::<()>();
    let worker = tokio::spawn(Worker::new(&ready).run_until(stopping, move |_: String, context: Context| {
        let headers: Vec<_> = context.headers().map(|(name, value)| format!("{name}={value}")).collect();
        let id = context.job_id().map(<[u8]>::to_vec);
        tells.send((id, headers, context.offered_at(), context.due())).unwrap();
        async {}
    }));
    let offer = delayed.offer("1", ms(20)).id("a").header("n", "1").header("b", "2");
    let Offered::Stored(due) = offer.await.unwrap() else { panic!() };
    let (id, mut headers, offered_at, its_due) = soon(told.recv()).await.unwrap();
    headers.sort();
    assert_eq!((id, headers), (Some(b"a".to_vec()), vec!["b=2".to_owned(), "n=1".to_owned()]));
    assert_eq!(its_due, Some(due));
    assert!(offered_at.is_some_and(|at| at < due), "{offered_at:?} {due:?}");
    delayed.offer("2", Duration::ZERO).await.unwrap();
    assert_eq!(soon(told.recv()).await.unwrap(), (None, Vec::new(), None, None));
    stop.send(()).unwrap();
    soon(worker).await.unwrap().unwrap();
    client.shutdown().await;
}

#[tokio::test]
async fn a_replaced_job_has_the_headers_of_the_last_offer() {
    let server = Server::start();
    let (client, ready, delayed) = text_queues(&server).await;
    for payload in ["1", "2"] {
        delayed.offer("1", HOUR).id("a").header("n", "old").await.unwrap();
        let replaced =
            delayed.offer(payload, Duration::ZERO).id("a").header("n", "new").replace().await.unwrap();
        assert!(matches!(replaced, Offered::Replaced(_)), "{payload}");
        let delivery = receive(&ready).await;
        assert_eq!((delivery.value().as_str(), delivery.header("n")), (payload, Some("new")));
        delivery.ack().await.unwrap();
        assert_eq!(left(&server), (0, 0), "{payload}");
        // By one that says nothing; and cancelled.
        delayed.offer("1", HOUR).id("a").header("n", "old").await.unwrap();
        delayed.offer(payload, Duration::ZERO).id("a").replace().await.unwrap();
        let delivery = receive(&ready).await;
        assert_eq!((delivery.value().as_str(), delivery.header("n")), (payload, None));
        delivery.ack().await.unwrap();
        delayed.offer("1", HOUR).id("a").header("n", "old").await.unwrap();
        assert_eq!(delayed.job("a").cancel().await.unwrap(), Cancelled::Removed);
        assert_eq!(left(&server), (0, 0), "{payload}");
    }
    client.shutdown().await;
}

/// Its id is free once it is due, so it may be offered again before anybody has claimed the equal payload:
/// each of both has its headers, and the later one keeps its id; also if both are due at the same time.
#[tokio::test]
async fn a_job_that_is_offered_again_before_its_payload_is_claimed_is_another_one() {
    let server = Server::start();
    let (client, ready, delayed) = still_text_queues(&server).await;
    let pump = client.pump("q");
    let past = SystemTime::now() - MINUTE;
    for (again, holds) in [(past + HOUR, false), (past + HOUR, true), (past, false), (past, true)] {
        delayed.offer_at("1", past).id("a").header("n", "first").await.unwrap();
        pump.transfer().await.unwrap();
        let offer = delayed.offer_at("1", again).id("a").header("n", "second");
        let offered = if holds { offer.until_done() } else { offer }.await.unwrap();
        assert!(matches!(offered, Offered::Stored(_)), "{holds}");
        let first = receive(&ready).await;
        assert_eq!((first.header("n"), first.job_id()), (Some("first"), Some(&b"a"[..])), "{holds}");
        assert!(delayed.job("a").exists().await.unwrap(), "{holds}");
        let offered = delayed.offer("2", HOUR).id("a").await.unwrap();
        assert!(matches!(offered, Offered::Kept(_)), "{holds}: {offered:?}");
        first.ack().await.unwrap();
        if again == past {
            pump.transfer().await.unwrap();
            let second = receive(&ready).await;
            assert_eq!((second.header("n"), second.job_id()), (Some("second"), Some(&b"a"[..])), "{holds}");
            assert_eq!(delayed.job("a").state().await.unwrap().is_some(), holds);
            second.ack().await.unwrap();
        } else {
            assert_eq!(delayed.job("a").cancel().await.unwrap(), Cancelled::Removed, "{holds}");
        }
        assert_eq!(left(&server), (0, 0), "{holds}");
    }
    client.shutdown().await;
}

#[tokio::test]
async fn what_cannot_travel_is_refused_before_anything_is_stored() {
    let server = Server::start();
    let (client, _, delayed) = text_queues(&server).await;
    let long = "x".repeat(1021);
    let job = || delayed.offer("1", MINUTE).id("a");
    let refused: Vec<(&str, JobOffer, &str)> = vec![
        ("1,025 bytes", job().header("n", &long), "1025 bytes"),
        ("no name", job().header("", "v"), "no name of a header"),
        ("a space", job().header("a b", "v"), "no name of a header"),
        ("no ASCII", job().header("ä", "v"), "no name of a header"),
        ("a long name", job().header("n".repeat(256), "v"), "no name of a header"),
        ("it expires before it is due", job().expires_after(ms(59_999)), "expire when it is due, or before"),
        ("when it is due", job().expires_after(ms(60_000)), "expire when it is due, or before"),
        (
            "at a time",
            delayed.offer_at("1", SystemTime::now() + HOUR).id("a").expires_at(SystemTime::now()),
            "expire when it is due, or before",
        ),
        ("with another clock", job().expires_at(SystemTime::now()), "expire when it is due, or before"),
        ("no time", job().discard_if_expired(), "needs a time"),
        ("no id", delayed.offer("1", MINUTE).throttle(MINUTE).header("n", "v"), "has no id"),
        ("no id to expire", delayed.offer("1", MINUTE).throttle(MINUTE).expires_after(HOUR), "has no id"),
        ("no id to hold", delayed.offer("1", MINUTE).throttle(MINUTE).until_done(), "has no id"),
    ];
    for (what, offer, why) in refused {
        let error = offer.await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Refused), "{what}: {error:?}");
        assert!(error.to_string().contains(why), "{what}: {error}");
        assert_eq!(left(&server), (0, 0), "{what}");
    }
    assert!(matches!(job().header("n", &long[1..]).await.unwrap(), Offered::Stored(_)), "1,024 bytes");
    client.shutdown().await;
}

/// Offers four jobs that expire, and waits until nobody can begin with them in time.
async fn let_expire(server: &Server, delayed: &DelayedQueue<String>) {
    let job = |number: &str| delayed.offer(number, Duration::ZERO).id(number);
    job("1").expires_after(ms(100)).discard_if_expired().await.unwrap();
    job("2").expires_after(ms(100)).discard_if_expired().until_done().await.unwrap();
    // A time that is over when the offer arrives is refused.
    until_async("it is in time", || async {
        job("3").expires_at(SystemTime::now() + ms(100)).until_done().await.is_ok()
    })
    .await;
    job("4").expires_after(HOUR).await.unwrap();
    until_async("all are ready", || async { server.list("q").len() == 4 }).await;
    tokio::time::sleep(ms(110)).await;
}

#[tokio::test]
async fn a_job_that_nobody_has_begun_in_time_is_dropped_or_a_dead_letter() {
    let server = Server::start();
    let (client, ready, delayed) = text_queues(&server).await;
    let_expire(&server, &delayed).await;
    let delivery = receive(&ready).await;
    assert_eq!(delivery.value(), "4");
    delivery.ack().await.unwrap();
    let receiving = ready.stats().await.unwrap().receiving;
    assert_eq!((receiving.received, receiving.expired, receiving.died, receiving.dead_letters), (1, 3, 1, 1));
    let letter = ready.dead_letters().read(None, 9).await.unwrap().remove(0);
    assert_eq!((letter.reason.as_str(), &letter.payload[..]), ("expired", &b"3"[..]));
    assert_eq!(letter.job_id.as_deref(), Some(&b"3"[..]));
    // It holds its id; the one that was dropped does not.
    let held = |id: &'static str| delayed.offer("5", HOUR).id(id).until_done();
    assert!(matches!(held("2").await.unwrap(), Offered::Stored(_)));
    assert!(matches!(held("3").await.unwrap(), Offered::Kept(_)));
    // A job that has begun does not expire.
    ready.dead_letters().requeue_all(9).await.unwrap();
    let delivery = receive(&ready).await;
    assert_eq!(delivery.value(), "3");
    delivery.retry_after(Duration::ZERO).await.unwrap();
    let delivery = receive(&ready).await;
    assert_eq!((delivery.value().as_str(), delivery.attempt()), ("3", 2));
    delivery.ack().await.unwrap();
    assert!(delayed.job("2").cancel().await.unwrap().is_removed());
    assert_eq!(left(&server), (0, 0));
    let keys: Vec<String> = server.get(["KEYS", "redelay:messages*"]);
    assert_eq!(keys, Vec::<String>::new());
    client.shutdown().await;
}

/// More than a call looks at: none is lost, and the receive does not end without a message.
#[tokio::test]
async fn thousands_that_have_expired_hold_up_nothing_behind_them() {
    let server = Server::start();
    let (client, ready, delayed) = text_queues(&server).await;
    let jobs: Vec<(String, String, Duration)> =
        (0..3000).map(|number| (number.to_string(), number.to_string(), Duration::ZERO)).collect();
    let jobs = jobs.iter().map(|(id, payload, delay)| (id, payload, *delay));
    delayed.offer_jobs(jobs).expires_after(ms(1)).discard_if_expired().await.unwrap();
    delayed.offer("last", ms(10)).await.unwrap();
    until_async("all are ready", || async { server.list("q").len() == 3001 }).await;
    let delivery = receive(&ready).await;
    assert_eq!(delivery.value(), "last");
    delivery.ack().await.unwrap();
    let receiving = ready.stats().await.unwrap().receiving;
    assert_eq!((receiving.received, receiving.expired), (1, 3000));
    assert_eq!(left(&server), (0, 0));
    client.shutdown().await;
}

/// Java knows no expiry, and neither does whoever takes bare payloads.
#[tokio::test]
async fn whoever_takes_payloads_without_a_receiver_takes_expired_ones() {
    let server = Server::start();
    let (client, ready, delayed) = text_queues(&server).await;
    let_expire(&server, &delayed).await;
    let mut taken: Vec<String> = ready.poll_many(9).await.unwrap().into_iter().map(Result::unwrap).collect();
    taken.sort();
    assert_eq!(taken, ["1", "2", "3", "4"]);
    client.shutdown().await;
}
