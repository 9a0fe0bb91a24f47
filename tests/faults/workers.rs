//! Workers that cannot reach the server: what their handlers learn, and how a worker stops.

use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use redelay::worker::Context;
use redelay::{Error, Worker};
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{MINUTE, Queues, builder, ms, soon, still_builder};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::receivers::{is_drained, until_drained};

/// What has happened to a handler.
#[derive(Debug, Default)]
struct Seen {
    begun: AtomicBool,
    told: AtomicBool,
    dropped: AtomicBool,
}

struct Guard(Arc<Seen>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.dropped.store(true, Ordering::SeqCst);
    }
}

/// A signal that a test gives.
/// The server cannot be reached until the lease is over, and another receiver has the message.
async fn lose_a_lease(command_timeout: Duration) {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let other = Queues::of_numbers(still_builder(&server)).await;
    let cut_off = builder(&proxy).transfer(false).command_timeout(command_timeout);
    let cut_off = Queues::of_numbers(cut_off).await;
    let seen = Arc::<Seen>::default();
    let handler = {
        let seen = seen.clone();
        move |number: i64, context: Context| {
            let seen = seen.clone();
            async move {
                seen.begun.store(true, Ordering::SeqCst);
                if number != 7 {
                    return;
                }
                let _guard = Guard(seen.clone());
                context.cancelled().await;
                seen.told.store(true, Ordering::SeqCst);
                // It does not listen.
                pending::<()>().await;
            }
        }
    };
    let failures = Arc::<Mutex<Vec<(String, u32, bool)>>>::default();
    let report = failures.clone();
    let worker = Worker::new(&cut_off.ready).concurrency(1).lease(ms(1000)).on_failure(move |failure| {
        report.lock().unwrap().push((failure.error.to_string(), failure.attempt, failure.is_dead));
    });
    let (stop, over) = oneshot::channel();
    let running = tokio::spawn(worker.run_until(over, handler));
    other.ready.put(&7).await.unwrap();
    until_async("it is handled", || async { seen.begun.load(Ordering::SeqCst) }).await;

    proxy.blackhole(true);
    let receiver = other.ready.receiver().lease(ms(1000));
    let held = soon(receiver.receive()).await.unwrap();
    assert_eq!((*held.value(), held.attempt()), (7, 2));
    until_async("it is told", || async { seen.told.load(Ordering::SeqCst) }).await;
    assert!(!seen.dropped.load(Ordering::SeqCst), "nobody knows yet that another one has the message");
    assert_eq!(*failures.lock().unwrap(), []);

    proxy.blackhole(false);
    until_async("it is dropped", || async { seen.dropped.load(Ordering::SeqCst) }).await;
    until_async("it is reported", || async { !failures.lock().unwrap().is_empty() }).await;
    assert_eq!(*failures.lock().unwrap(), [("the lease was lost".to_owned(), 1, false)]);
    held.ack().await.expect("the claim of the other one is untouched");
    assert!(is_drained(&server));

    // The slot is free for the next message.
    drop(receiver);
    seen.begun.store(false, Ordering::SeqCst);
    other.ready.put(&8).await.unwrap();
    // The pop of the other receiver may move it once more, and give it back.
    until_async("it is handled", || async { seen.begun.load(Ordering::SeqCst) }).await;
    until_drained(&server).await;
    stop.send(()).unwrap();
    let stopped = soon(running).await.unwrap().unwrap();
    assert_eq!((stopped.acknowledged, stopped.failed, stopped.lost, stopped.released), (1, 0, 1, 0));
    assert_eq!(failures.lock().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_whose_lease_is_over_is_told_and_dropped_when_it_is_lost() {
    lose_a_lease(MINUTE).await;
}

/// The client gives the connection up meanwhile, and makes another one.
#[tokio::test(flavor = "multi_thread")]
async fn a_handler_whose_lease_is_lost_is_dropped_by_the_next_connection() {
    lose_a_lease(ms(300)).await;
}

/// As in the documentation of `Worker::grace`.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_stops_in_time_while_the_server_is_silent() {
    const GRACE: Duration = ms(300);
    const COMMAND_TIMEOUT: Duration = ms(1000);
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let other = Queues::of_numbers(still_builder(&server)).await;
    let queues = Queues::of_numbers(builder(&proxy).transfer(false).command_timeout(COMMAND_TIMEOUT)).await;
    let (begun, signalled) = (Arc::<AtomicUsize>::default(), CancellationToken::new());
    let handler = {
        let (begun, signalled) = (begun.clone(), signalled.clone());
        move |number: i64, context: Context| {
            let (begun, signalled) = (begun.clone(), signalled.clone());
            async move {
                begun.fetch_add(1, Ordering::SeqCst);
                match number {
                    1 => signalled.cancelled().await,
                    2 => context.cancelled().await,
                    _ => pending().await,
                }
            }
        }
    };
    let unknown = Arc::<AtomicUsize>::default();
    let report = unknown.clone();
    // The fourth slot waits for a message.
    let worker =
        Worker::new(&queues.ready).concurrency(4).lease(ms(1000)).grace(GRACE).on_failure(move |failure| {
            let error = failure.error.downcast_ref::<Error>().expect("no handler fails");
            assert!(error.is_outcome_unknown(), "{error}");
            report.fetch_add(1, Ordering::SeqCst);
        });
    let (stop, over) = oneshot::channel();
    let running = tokio::spawn(worker.run_until(over, handler));
    other.ready.offer_all(&[1, 2, 3]).await.unwrap();
    until_async("they are handled", || async { begun.load(Ordering::SeqCst) == 3 }).await;

    proxy.blackhole(true);
    let began = Instant::now();
    stop.send(()).unwrap();
    signalled.cancel();
    // The grace, the last moment of the handlers, twice the command timeout; and as much again for a busy
    // machine.
    let bound = GRACE + ms(1000) + 2 * COMMAND_TIMEOUT;
    let stopped = timeout(2 * bound + ms(5000), running).await.expect("it stops").unwrap().unwrap();
    println!("stopped after {:?}, of {bound:?}", began.elapsed());
    assert_eq!((stopped.acknowledged, stopped.released), (0, 0), "nobody has answered");
    assert_eq!(unknown.load(Ordering::SeqCst), 3, "a report for each settlement");
    let began = Instant::now();
    let bound = COMMAND_TIMEOUT + ms(3000);
    timeout(2 * bound + ms(5000), queues.client.shutdown()).await.expect("it ends");
    println!("shut down after {:?}, of {bound:?}", began.elapsed());

    // No settlement has reached the server.
    proxy.refuse(true);
    proxy.cut();
    let receiver = other.ready.receiver().lease(ms(1000));
    for _ in 0..3 {
        let again = soon(receiver.receive()).await.unwrap();
        assert_eq!(again.attempt(), 2);
        again.ack().await.unwrap();
    }
    assert!(is_drained(&server));
}
