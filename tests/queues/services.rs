//! Services of the `tower` crate as handlers of workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redelay::Worker;
use redelay::worker::{Backoff, Context, Outcome, from_service};
use redelay_fixture::{Server, until_async};
use redelay_support::{MINUTE, ms, number_queues, soon};
use tokio::sync::oneshot;
use tokio::time::sleep;
use tower::{ServiceBuilder, service_fn};

/// Runs a worker with a service until `is_over`.
macro_rules! run {
    ($worker:expr, $service:expr, $is_over:expr) => {{
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn($worker.run_until(stopped, from_service($service)));
        until_async("all are handled", || async { $is_over }).await;
        stop.send(()).unwrap();
        soon(running).await.unwrap().unwrap()
    }};
}

#[tokio::test]
async fn layers_apply() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    ready.offer_all(&(0..10).collect::<Vec<_>>()).await.unwrap();
    let (now, most, done) =
        (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let handler = {
        let (now, most, done) = (now.clone(), most.clone(), done.clone());
        move |(number, context): (i64, Context)| {
            let (now, most, done) = (now.clone(), most.clone(), done.clone());
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                sleep(ms(10)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                // The layer for timeouts ends the first attempt of one of them.
                if number == 3 && context.attempt() == 1 {
                    sleep(MINUTE).await;
                }
                done.fetch_add(1, Ordering::SeqCst);
                Ok::<_, std::io::Error>(Outcome::Done)
            }
        }
    };
    // The inner layer is nearer to the handler: waiting for a place does not count.
    let service = ServiceBuilder::new()
        .concurrency_limit(2)
        .timeout(Duration::from_secs(4))
        .service(service_fn(handler));
    let worker = Worker::new(&ready).concurrency(10).backoff(Backoff::fixed(ms(1)));
    let stopped = run!(worker, service, done.load(Ordering::SeqCst) == 10);
    assert_eq!((most.load(Ordering::SeqCst), stopped.acknowledged, stopped.failed), (2, 10, 1));
    assert_eq!(ready.unsettled().len().await.unwrap(), 0);
}

/// A buffer makes any service cloneable. When it has ended, it is never ready again.
#[tokio::test]
async fn a_service_that_fails_to_be_ready_is_a_failure() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    ready.put(&7).await.unwrap();
    let service = ServiceBuilder::new().buffer::<(i64, Context)>(1).rate_limit(1, ms(1)).service(service_fn(
        |(_, context): (i64, Context)| async move {
            assert!(context.attempt() == 1, "a panic ends the buffer");
            Err::<(), _>("closed")
        },
    ));
    let failed = Arc::<AtomicUsize>::default();
    let worker = Worker::new(&ready).max_attempts(3).backoff(Backoff::fixed(ms(1))).on_failure({
        let failed = failed.clone();
        move |failure| {
            assert!(!failure.error.to_string().is_empty());
            failed.fetch_add(1, Ordering::SeqCst);
        }
    });
    let stopped = run!(worker, service, failed.load(Ordering::SeqCst) == 3);
    assert_eq!((stopped.acknowledged, stopped.failed), (0, 3));
    assert_eq!(ready.dead_letters().len().await.unwrap(), 1);
}
