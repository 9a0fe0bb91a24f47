//! What users have, beside real workers and queues.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use redelay::worker::{Context, Outcome};
use redelay::{BlockingQueue, Client, DelayedQueue, Worker, codec};
use redelay_testing::{
    Cluster, Failover, Proxy, Sentinels, Server, ServerBuilder, assert_pending, make_due, run_once,
    run_once_with, until_async,
};

const HOUR: Duration = Duration::from_secs(3_600);
const MINUTE: Duration = Duration::from_secs(60);

/// A break is a compile error.
#[test]
fn types_are_shared_by_threads() {
    fn is_shared<T: Send + Sync + 'static>() {}
    is_shared::<(Server, ServerBuilder, Proxy, Sentinels, Cluster, Failover)>();
}

async fn queues(server: &Server) -> (BlockingQueue<i64>, DelayedQueue<i64>) {
    let client = Client::connect(&server.url()).await.unwrap();
    let ready = client.blocking_queue("{orders}", codec::Long);
    let delayed = client.delayed_queue(&ready);
    (ready, delayed)
}

/// A handler that ends in another way for each value.
async fn handle(value: i64, context: Context) -> Result<Outcome, String> {
    assert!(value != 1, "one is no order");
    match value {
        2 => Err("closed".into()),
        3 => Ok(Outcome::Retry("later".into())),
        4 => Ok(Outcome::RetryAfter(MINUTE, "in a minute".into())),
        5 => Ok(Outcome::Reject("never".into())),
        6 => panic!("attempt {}", context.attempt()),
        7 => std::panic::panic_any(7),
        _ => Ok(Outcome::Done),
    }
}

/// The text of a failure.
fn failure(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Retry(error) | Outcome::RetryAfter(_, error) | Outcome::Reject(error) => {
            Some(error.to_string())
        }
        _ => None,
    }
}

#[tokio::test]
async fn a_handler_ends_as_in_a_worker() {
    let server = Server::start();
    let (ready, _) = queues(&server).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = Worker::new(&ready).concurrency(1).max_attempts(1).on_failure({
        let seen = seen.clone();
        move |failure| seen.lock().unwrap().push(failure.error.to_string())
    });
    let worker = tokio::spawn(worker.run_until(stopped, handle));
    ready.offer_all(&[1, 2, 3, 4, 5, 6, 7, 8]).await.unwrap();
    until_async("all are handled", || async {
        let stats = ready.stats().await.unwrap();
        stats.ready == 0 && stats.receiving.in_flight == 0
    })
    .await;
    drop(stop);
    let stopped = worker.await.unwrap().unwrap();
    assert_eq!((stopped.acknowledged, stopped.failed, stopped.rejected), (1, 6, 1));

    let mut outcomes = Vec::new();
    for value in 1..=8 {
        outcomes.push(run_once(handle, value).await);
    }
    let texts: Vec<_> = outcomes.iter().filter_map(failure).collect();
    assert_eq!(texts, *seen.lock().unwrap());
    assert_eq!(texts[0], "panicked: one is no order");
    assert!(
        matches!(outcomes[3], Outcome::RetryAfter(MINUTE, _)) && matches!(outcomes[4], Outcome::Reject(_))
    );
    assert!(matches!(outcomes[7], Outcome::Done));
    let third = run_once_with(handle, 6, Context::for_test(1, 3)).await;
    assert_eq!(failure(&third).unwrap(), "panicked: attempt 3");
}

/// The text of the panic of an assertion.
async fn refused(delayed: &DelayedQueue<i64>, value: i64, at: SystemTime) -> String {
    let delayed = delayed.clone();
    let asserted = tokio::spawn(async move { assert_pending(&delayed, &value, at, MINUTE).await });
    *asserted.await.unwrap_err().into_panic().downcast().unwrap()
}

#[tokio::test]
async fn what_is_pending_is_found_by_value_and_due_time() {
    let server = Server::start();
    let (ready, delayed) = queues(&server).await;
    let at = SystemTime::now() + HOUR;
    delayed.offer(&7, HOUR + HOUR).await.unwrap();
    delayed.offer(&7, HOUR).await.unwrap();
    delayed.offer(&8, HOUR).id("8").await.unwrap();
    ready.put(&9).await.unwrap();
    for value in [7, 8] {
        assert_pending(&delayed, &value, at, MINUTE).await;
    }
    assert_pending(&delayed, &7, at + HOUR, MINUTE).await;
    assert_pending(&delayed, &8, at + 2 * MINUTE, 3 * MINUTE).await;
    for (value, at) in [(8, at + HOUR), (8, at - 5 * MINUTE), (9, at), (1, at)] {
        let text = refused(&delayed, value, at).await;
        assert!(text.contains(&format!("{value} is not pending")) && text.contains(file!()), "{text}");
    }
    let text = refused(&delayed, 8, at - 5 * MINUTE).await;
    assert!(text.contains("\"8 300.") && text.contains("s later\""), "{text}");
}

#[tokio::test]
async fn a_pending_string_is_found_by_a_str() {
    let server = Server::start();
    let client = Client::connect(&server.url()).await.unwrap();
    let orders = client.delayed_queue(&client.blocking_queue("orders", codec::String));
    orders.offer("order 1", HOUR).await.unwrap();
    let at = SystemTime::now() + HOUR;
    assert_pending(&orders, "order 1", at, MINUTE).await;
    assert_pending(&orders, &"order 1".to_owned(), at, MINUTE).await;
    let asserted = tokio::spawn(async move { assert_pending(&orders, "order 2", at, MINUTE).await });
    let text: Box<String> = asserted.await.unwrap_err().into_panic().downcast().unwrap();
    assert!(text.starts_with("\"order 2\" is not pending") && text.contains("order 1"), "{text}");
}

/// More than are read at a time, in a cluster, too, and some of them with ids.
#[tokio::test]
async fn everything_pending_is_made_due() {
    for server in [Server::start(), Server::builder().cluster().start()] {
        let (ready, delayed) = queues(&server).await;
        let plain: Vec<i64> = (0..2_500).collect();
        delayed.offer_all(plain.iter().map(|value| (value, HOUR))).await.unwrap();
        delayed.offer(&2_500, HOUR).id("a job").until_done().await.unwrap();
        assert_eq!(make_due(&delayed).await, 2_501);
        let mut taken = BTreeSet::new();
        while taken.len() < 2_501 {
            assert!(taken.insert(ready.take().await.unwrap()), "twice");
        }
        assert_eq!(make_due(&delayed).await, 0);
    }
}
