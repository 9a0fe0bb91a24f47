//! Handles whose command timeout is another than the client's.

use std::time::{Duration, Instant};

use redelay::{BlockingQueue, DelayedQueue, ErrorKind, Result};
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{Boxed, CLAIMS, HOUR, MINUTE, ORDERED_LIST, Queues, builder, ms, soon};

/// Every call that takes and does not wait for ever.
fn calls(q: &BlockingQueue<i64>, d: &DelayedQueue<i64>) -> Vec<(&'static str, Boxed<Result<()>>)> {
    macro_rules! calls {
        ($($queue:ident.$call:ident ($($arg:expr),*)),+ $(,)?) => {
            vec![$((
                stringify!($queue.$call),
                { let q = $queue.clone(); Box::pin(async move { q.$call($($arg),*).await.map(drop) }) as Boxed<_> },
            )),+]
        };
    }
    calls![
        q.poll(),
        q.poll_last(),
        q.poll_many(9),
        q.poll_timeout(ms(10)),
        q.poll_last_timeout(ms(10)),
        q.poll_from_any(ms(10), &["x"]),
        q.poll_last_from_any(ms(10), &["x"]),
        q.poll_many_from_any(ms(10), 3, &["x"]),
        q.poll_last_and_offer_first_to("x"),
        q.poll_last_and_offer_first_to_timeout("x", ms(10)),
        d.poll(),
        d.poll_many(9),
        q.len(),
        d.len(),
    ]
}

#[tokio::test]
async fn a_shorter_one_bounds_every_call_that_takes() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let queues = Queues::of_numbers(builder(&proxy).command_timeout(MINUTE)).await;
    let quick = queues.client.with_timeout(ms(200));
    let ready = quick.blocking_queue("q", redelay::codec::Long);
    let delayed = quick.delayed_queue(&ready);
    proxy.blackhole(true);
    for (name, call) in calls(&ready, &delayed) {
        let begun = Instant::now();
        let error = soon(call).await.expect_err(name);
        let kinds = [ErrorKind::Unavailable, ErrorKind::OutcomeUnknown];
        assert!(kinds.contains(&error.kind()), "{name}: {error:?}");
        let took = begun.elapsed();
        assert!((ms(150)..MINUTE / 2).contains(&took), "{name} took {took:?}");
    }
    proxy.blackhole(false);
}

/// The outage is longer than the client's own timeout, and shorter than the handle's.
#[tokio::test]
async fn a_longer_one_waits_longer() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let queues = Queues::of_numbers(builder(&proxy).command_timeout(ms(300))).await;
    let patient = queues.client.with_timeout(MINUTE);
    let ready = patient.blocking_queue("q", redelay::codec::Long);
    let delayed = patient.delayed_queue(&ready);
    delayed.offer(&1, HOUR).await.unwrap();
    ready.put(&2).await.unwrap();
    proxy.blackhole(true);
    let polls = tokio::spawn(async move { tokio::join!(delayed.poll(), ready.poll()) });
    until_async("nobody else waits", || async { queues.delayed.len().await.is_err() }).await;
    tokio::time::sleep(ms(1500)).await;
    proxy.blackhole(false);
    let (early, late) = soon(polls).await.unwrap();
    assert_eq!((early.unwrap(), late.unwrap()), (Some(1), Some(2)));
}

/// A reply that always takes longer than the timeout of the handle arrives all the same, and the entry is in
/// the queue again.
#[tokio::test]
async fn what_a_hasty_poll_has_taken_comes_back() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let queues = Queues::of_numbers(builder(&proxy).command_timeout(MINUTE).transfer(false)).await;
    queues.delayed.offer(&1, HOUR).await.unwrap();
    let hasty = queues.client.with_timeout(ms(100));
    let delayed = hasty.delayed_queue(&hasty.blocking_queue::<i64>("q", redelay::codec::Long));
    proxy.delay(ms(1_000));
    let error = soon(delayed.poll()).await.unwrap_err();
    assert!(error.is_unavailable() || error.is_outcome_unknown(), "{error}");
    let is_back =
        || async { server.list(ORDERED_LIST).len() == 1 && server.get::<usize, _>(["HLEN", CLAIMS]) == 0 };
    until_async("it is back", is_back).await;
}

#[tokio::test]
async fn one_without_an_end() {
    let server = Server::start();
    let queues = Queues::of_numbers(builder(&server)).await;
    let patient = queues.client.with_timeout(Duration::MAX);
    let ready = patient.blocking_queue("q", redelay::codec::Long);
    let delayed = patient.delayed_queue(&ready);
    for (name, call) in calls(&ready, &delayed) {
        soon(call).await.expect(name);
    }
    delayed.offer(&1, HOUR).timeout(Duration::MAX).await.unwrap();
    assert_eq!(delayed.poll().await.unwrap(), Some(1));
}
