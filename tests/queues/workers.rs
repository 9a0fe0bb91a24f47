//! Workers: concurrency, outcomes, panics, timeouts, several queues, and the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::stream;
use redelay::worker::{Backoff, Context, OnUndecodable, Outcome, Stopped};
use redelay::{BlockingQueue, ErrorKind, Worker, codec};
use redelay_fixture::{Server, until_async};
use redelay_support::{DEAD, HOUR, LEASES, MESSAGES, ms, number_queues, slowly, soon};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

/// Signals a worker to stop; twice, to end its grace.
#[derive(Clone, Default)]
struct Stop(Arc<Notify>);

impl Stop {
    fn signal(&self) {
        self.0.notify_one();
    }

    fn signals(&self) -> impl futures::Stream<Item = ()> + use<> {
        stream::unfold(self.0.clone(), |stop| async move {
            stop.notified().await;
            Some(((), stop))
        })
    }
}

/// Puts the numbers into a queue, and waits until as many were handled.
async fn run_all<H, A>(
    server: &Server,
    worker: Worker<i64>,
    handled: Arc<AtomicUsize>,
    count: usize,
    handler: H,
) -> Stopped
where
    H: redelay::worker::Handler<i64, A, Future: Send>,
    A: 'static,
{
    let stop = Stop::default();
    let running = tokio::spawn(worker.run_with_signals(stop.signals(), handler));
    until_async("all are handled", || async { handled.load(Ordering::SeqCst) >= count }).await;
    stop.signal();
    let stopped = soon(running).await.unwrap().unwrap();
    assert_eq!(server.get::<usize, _>(["ZCARD", LEASES]), 0, "nothing is in flight");
    stopped
}

/// Case 39.
#[tokio::test]
async fn no_more_than_the_concurrency_are_handled_at_once() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    ready.offer_all(&(0..10).collect::<Vec<_>>()).await.unwrap();
    let (now, most, handled) =
        (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let handler = {
        let (now, most, handled) = (now.clone(), most.clone(), handled.clone());
        move |_: i64| {
            let (now, most, handled) = (now.clone(), most.clone(), handled.clone());
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                sleep(ms(20)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                handled.fetch_add(1, Ordering::SeqCst);
            }
        }
    };
    let stopped = run_all(&server, Worker::new(&ready).concurrency(3), handled, 10, handler).await;
    assert_eq!((most.load(Ordering::SeqCst), stopped.acknowledged), (3, 10));
}

/// Case 40, and each outcome.
#[tokio::test]
async fn each_outcome_does_what_it_says() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    ready.offer_all(&(0..8).collect::<Vec<_>>()).await.unwrap();
    let attempts: Arc<Mutex<BTreeMap<i64, Vec<u32>>>> = Arc::default();
    let finished = Arc::<AtomicUsize>::default();
    let failures: Arc<Mutex<Vec<String>>> = Arc::default();
    let handler = {
        let (attempts, finished) = (attempts.clone(), finished.clone());
        move |number: i64, context: Context| {
            let (attempts, finished) = (attempts.clone(), finished.clone());
            async move {
                let seen = {
                    let mut attempts = attempts.lock().unwrap();
                    let seen = attempts.entry(number).or_default();
                    seen.push(context.attempt());
                    seen.len()
                };
                if seen == 1 {
                    match number {
                        1 => return Outcome::Retry("not now".into()),
                        2 => return Outcome::RetryAfter(ms(1), "later".into()),
                        3 => return Outcome::Snooze(ms(1)),
                        4 => panic!("four"),
                        5 => sleep(HOUR).await,
                        _ => {}
                    }
                }
                finished.fetch_add(1, Ordering::SeqCst);
                match number {
                    6 => Outcome::Reject("six".into()),
                    _ => Outcome::Done,
                }
            }
        }
    };
    let report = failures.clone();
    let worker = Worker::new(&ready)
        .backoff(Backoff::fixed(ms(1)))
        .timeout(ms(300))
        .on_failure(move |failure| report.lock().unwrap().push(failure.to_string()));
    let stopped = run_all(&server, worker, finished, 8, handler).await;
    assert_eq!((stopped.acknowledged, stopped.failed, stopped.rejected), (7, 4, 1));
    assert_eq!((stopped.lost, stopped.snoozed, stopped.released), (0, 1, 0));
    // The stats count alike.
    let counted = || async {
        let stats = ready.stats().await.unwrap().receiving;
        (stats.acknowledged, stats.failed, stats.rejected, stats.lost, stats.snoozed, stats.released)
    };
    until_async("the last answers are counted", || async { counted().await == (7, 4, 1, 0, 1, 0) }).await;
    let attempts = attempts.lock().unwrap();
    for (number, seen) in &*attempts {
        let expected: &[u32] = match number {
            1 | 2 | 4 | 5 => &[1, 2],
            3 => &[1, 1],
            _ => &[1],
        };
        assert_eq!(seen, expected, "{number}");
    }
    assert_eq!(server.get::<usize, _>(["ZCARD", DEAD]), 1);
    let failures = failures.lock().unwrap().join("\n");
    for part in ["not now", "later", "panicked: four", "timed out after 300ms", "six"] {
        assert!(failures.contains(part), "{part}: {failures}");
    }
    // Only the rejected one is not tried again.
    let dead: Vec<_> = failures.lines().filter(|line| line.contains("dead letter")).collect();
    assert!(dead.len() == 1 && dead[0].ends_with("failed: six; it becomes a dead letter"), "{failures}");
}

/// A payload that does not decode is rejected, or has failed, as the setting says.
#[tokio::test]
async fn what_does_not_decode_is_counted_by_what_becomes_of_it() {
    for undecodable in [OnUndecodable::DeadLetter, OnUndecodable::Retry] {
        let server = Server::start();
        let (client, ready, _) = number_queues(&server).await;
        server.cmd(["RPUSH", "q", "no number"]);
        let worker = Worker::new(&ready).on_undecodable(undecodable).backoff(Backoff::fixed(HOUR));
        let running = tokio::spawn(worker.run_until(std::future::pending::<()>(), |_: i64| async {}));
        until_async("it is settled", || async {
            let stats = ready.stats().await.unwrap().receiving;
            stats.dead_letters + stats.waiting == 1
        })
        .await;
        client.stop_taking().await;
        let stopped = soon(running).await.unwrap().unwrap();
        let is_dead = undecodable == OnUndecodable::DeadLetter;
        let expected = (u64::from(!is_dead), u64::from(is_dead), 0);
        assert_eq!((stopped.failed, stopped.rejected, stopped.lost), expected);
    }
}

#[tokio::test]
async fn plain_functions_and_results_are_handlers() {
    async fn plain(number: i64) -> Result<(), std::io::Error> {
        if number < 0 { Err(std::io::Error::other("negative")) } else { Ok(()) }
    }
    let server = Server::start();
    let (client, ready, _) = number_queues(&server).await;
    ready.offer_all(&[1, -1, 2]).await.unwrap();
    let running =
        tokio::spawn(Worker::new(&ready).max_attempts(1).run_until(std::future::pending::<()>(), plain));
    until_async("handled", || async {
        server.get::<usize, _>(["ZCARD", DEAD]) == 1 && server.get::<usize, _>(["HLEN", MESSAGES]) == 0
    })
    .await;
    client.stop_taking().await;
    let stopped = soon(running).await.unwrap().unwrap();
    assert_eq!((stopped.acknowledged, stopped.failed), (2, 1));
}

/// `stop_taking` ends a worker as a signal does: what does not end within the grace is released.
#[tokio::test]
async fn a_client_that_takes_no_more_ends_its_workers() {
    let server = Server::start();
    let (client, ready, _) = number_queues(&server).await;
    ready.put(&7).await.unwrap();
    let begun = Arc::new(AtomicBool::new(false));
    let handler = {
        let begun = begun.clone();
        move |_: i64| {
            begun.store(true, Ordering::SeqCst);
            sleep(HOUR)
        }
    };
    // No handler ends, so no slot asks for another message.
    let worker = Worker::new(&ready).concurrency(1).grace(ms(100));
    let running = tokio::spawn(worker.run_until(std::future::pending::<()>(), handler));
    until_async("begun", || async { begun.load(Ordering::SeqCst) }).await;
    client.stop_taking().await;
    let stopped = soon(running).await.unwrap().unwrap();
    assert_eq!((stopped.acknowledged, stopped.released), (0, 1));
}

/// Case 41.
#[tokio::test]
async fn a_stop_waits_for_the_grace_and_releases_the_rest() {
    for (grace, takes, expected) in [(HOUR, ms(2000), (1, 0)), (ms(200), HOUR, (0, 1))] {
        let server = Server::start();
        let (_client, ready, _) = number_queues(&server).await;
        ready.put(&7).await.unwrap();
        let (stop, begun) = (Stop::default(), Arc::new(AtomicBool::new(false)));
        let handler = {
            let begun = begun.clone();
            move |_: i64| {
                let begun = begun.clone();
                async move {
                    begun.store(true, Ordering::SeqCst);
                    sleep(takes).await;
                }
            }
        };
        let running =
            tokio::spawn(Worker::new(&ready).grace(grace).run_with_signals(stop.signals(), handler));
        until_async("begun", || async { begun.load(Ordering::SeqCst) }).await;
        stop.signal();
        let stopped = soon(running).await.unwrap().unwrap();
        assert_eq!((stopped.acknowledged, stopped.released), expected);
        if expected.1 == 1 {
            let again = soon(ready.receiver().receive()).await.unwrap();
            assert_eq!((*again.value(), again.attempt()), (7, 1), "it does not count");
            again.ack().await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_second_signal_skips_the_grace_and_handlers_are_told() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    ready.put(&7).await.unwrap();
    let (stop, begun) = (Stop::default(), Arc::new(AtomicBool::new(false)));
    let handler = {
        let begun = begun.clone();
        move |_: i64, context: Context| {
            let begun = begun.clone();
            async move {
                begun.store(true, Ordering::SeqCst);
                context.cancelled().await;
                Outcome::Snooze(HOUR)
            }
        }
    };
    let running = tokio::spawn(Worker::new(&ready).grace(HOUR).run_with_signals(stop.signals(), handler));
    until_async("begun", || async { begun.load(Ordering::SeqCst) }).await;
    stop.signal();
    sleep(ms(100)).await;
    assert!(!running.is_finished());
    stop.signal();
    let stopped = soon(running).await.unwrap().unwrap();
    assert_eq!(stopped.snoozed, 1);
}

/// Case 42.
#[tokio::test]
async fn the_stop_of_three_queues_takes_one_grace() {
    let server = Server::start();
    let (client, _, _) = number_queues(&server).await;
    let queues: Vec<BlockingQueue<i64>> =
        ["a", "b", "c"].map(|name| client.blocking_queue(name, codec::Long)).into();
    for queue in &queues {
        queue.offer_all(&[1, 2]).await.unwrap();
    }
    let (stop, begun) = (Stop::default(), Arc::<AtomicUsize>::default());
    let handler = {
        let begun = begun.clone();
        move |_: i64| {
            let begun = begun.clone();
            async move {
                begun.fetch_add(1, Ordering::SeqCst);
                sleep(HOUR).await;
            }
        }
    };
    let worker = Worker::strict(&queues).concurrency(3).grace(ms(1500));
    let running = tokio::spawn(worker.run_with_signals(stop.signals(), handler));
    until_async("begun", || async { begun.load(Ordering::SeqCst) == 3 }).await;
    let (stopped, took) = slowly(async {
        let signalled = Instant::now();
        stop.signal();
        (soon(running).await.unwrap().unwrap(), signalled.elapsed())
    })
    .await;
    assert!(took < ms(4000), "{took:?}");
    assert_eq!((stopped.released, begun.load(Ordering::SeqCst)), (3, 3), "nothing begins after the signal");
}

/// Case 44.
#[tokio::test]
async fn weights_are_proportions_and_strict_is_an_order() {
    const EACH: usize = 7_000;
    let server = Server::start();
    let (client, _, _) = number_queues(&server).await;
    let queues: Vec<BlockingQueue<i64>> =
        ["a", "b", "c"].map(|name| client.blocking_queue(name, codec::Long)).into();
    for (is_strict, of) in [(false, 10_000), (true, EACH)] {
        for (index, queue) in queues.iter().enumerate() {
            queue.delete().await.unwrap();
            queue.offer_all(&vec![index as i64; EACH]).await.unwrap();
        }
        let order: Arc<Mutex<Vec<i64>>> = Arc::default();
        let handler = {
            let order = order.clone();
            move |queue: i64| {
                order.lock().unwrap().push(queue);
                async {}
            }
        };
        let worker =
            if is_strict { Worker::strict(&queues) } else { Worker::weighted(queues.iter().zip([6, 3, 1])) };
        let stop = Stop::default();
        let running = tokio::spawn(worker.concurrency(8).run_with_signals(stop.signals(), handler));
        until_async("enough", || async { order.lock().unwrap().len() >= of }).await;
        stop.signal();
        soon(running).await.unwrap().unwrap();
        let order = order.lock().unwrap();
        let share =
            |queue: i64| order[..of].iter().filter(|index| **index == queue).count() as f64 / of as f64;
        let shares = [0, 1, 2].map(share);
        if is_strict {
            assert!(shares[0] > 0.99, "{shares:?}");
        } else {
            for (share, expected) in shares.iter().zip([0.6, 0.3, 0.1]) {
                assert!((share - expected).abs() < 0.03, "{shares:?}");
            }
        }
    }
}

#[tokio::test]
async fn settings_that_make_no_sense_are_refused() {
    let server = Server::start();
    let (client, ready, _) = number_queues(&server).await;
    let other = client.blocking_queue::<i64>("other", codec::Long);
    let workers = [
        (
            Worker::new(&ready).concurrency(0),
            "`Worker::run` failed: concurrency(0) is out of range; use 1 or more",
        ),
        (
            Worker::new(&ready).max_attempts(0),
            "`Worker::run` on `q` failed: max_attempts(0) is out of range; use 1 to 65,535",
        ),
        (
            Worker::new(&ready).max_losses(65_536),
            "`Worker::run` on `q` failed: max_losses(65536) is out of range; use 1 to 65,535",
        ),
        (
            Worker::new(&ready).lease(ms(99)),
            "`Worker::run` on `q` failed: lease(99ms) is out of range; use 100 ms to a day",
        ),
        (Worker::strict([]), "`Worker::run` failed: the worker has no queue"),
        (
            Worker::strict([&ready, &other, &ready]),
            "`Worker::run` failed: the worker has two queues with the name `q`",
        ),
        (
            Worker::weighted([(&ready, 1), (&other, 0)]),
            "`Worker::run` failed: the queue `other` has a weight of 0",
        ),
    ];
    for (worker, expected) in workers {
        let error =
            soon(worker.run_until(std::future::pending::<()>(), |_: i64| async {})).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().starts_with(expected), "{error}");
    }
}

#[tokio::test]
async fn an_error_says_whether_the_client_takes_no_more_or_was_shut_down() {
    let server = Server::start();
    let (client, ready, _) = number_queues(&server).await;
    let waiting = tokio::spawn({
        let ready = ready.clone();
        async move { ready.take().await }
    });
    until_async("it waits", || async { server.blocked_clients() == 1 }).await;
    let run = || Worker::new(&ready).run_until(std::future::pending::<()>(), |_: i64| async {});
    client.stop_taking().await;
    for error in [waiting.await.unwrap().unwrap_err(), soon(run()).await.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Closed);
        assert!(error.to_string().contains("takes no more"), "{error}");
    }
    ready.put(&1).await.unwrap();
    client.shutdown().await;
    let called =
        [ready.put(&1).await.unwrap_err(), ready.take().await.unwrap_err(), soon(run()).await.unwrap_err()];
    for error in called {
        assert_eq!(error.kind(), ErrorKind::Closed);
        assert!(error.to_string().contains("the client was shut down"), "{error}");
    }
}

#[tokio::test]
async fn a_dropped_worker_leaves_its_messages_to_others() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    ready.offer_all(&(0..20).collect::<Vec<_>>()).await.unwrap();
    let worker = Worker::new(&ready).backoff(Backoff::fixed(Duration::ZERO));
    let running = tokio::spawn(worker.run_until(std::future::pending::<()>(), |_: i64| sleep(HOUR)));
    until_async("begun", || async { server.get::<usize, _>(["ZCARD", LEASES]) == 10 }).await;
    running.abort();
    let receiver = ready.receiver();
    let mut got = BTreeSet::new();
    while got.len() < 20 {
        let delivery = soon(receiver.receive()).await.unwrap();
        assert_eq!(delivery.attempt(), 1, "no handler has failed");
        got.insert(*delivery.value());
        delivery.ack().await.unwrap();
    }
}

/// An acknowledgement that fails is counted and reported.
#[tokio::test]
async fn a_settlement_that_fails_is_a_failure() {
    let server = Server::start();
    let (client, ready, _) = number_queues(&server).await;
    ready.put(&1).await.unwrap();
    let (goes_on, reports) = (Arc::new(Notify::new()), Arc::new(Mutex::new(Vec::new())));
    let worker = Worker::new(&ready).on_failure({
        let reports = reports.clone();
        move |failure| reports.lock().unwrap().push((failure.to_string(), failure.is_dead))
    });
    let running = tokio::spawn(worker.run_until(std::future::pending::<()>(), {
        let goes_on = goes_on.clone();
        move |_: i64| {
            let goes_on = goes_on.clone();
            async move { goes_on.notified().await }
        }
    }));
    until_async("it is handled", || async { server.get::<usize, _>(["ZCARD", LEASES]) == 1 }).await;
    // As if another receiver had handled it.
    server.cmd(["DEL", LEASES, MESSAGES]);
    goes_on.notify_one();
    until_async("a report", || async { !reports.lock().unwrap().is_empty() }).await;
    client.stop_taking().await;
    let stopped = soon(running).await.unwrap().unwrap();
    assert_eq!((stopped.acknowledged, stopped.failed, stopped.lost), (0, 0, 1));
    let reports = reports.lock().unwrap();
    assert!(reports.len() == 1 && reports[0].0.contains("lease") && !reports[0].1, "{reports:?}");
}

/// Number, queue, attempt, and whether it is the last one.
type Seen = Arc<Mutex<BTreeSet<(i64, String, u32, bool)>>>;

/// A handler knows where its message comes from and whether it may fail once more, and a report says what
/// became of it.
#[tokio::test]
async fn the_queue_the_last_attempt_and_what_is_dead() {
    let server = Server::start();
    let (client, ready, _) = number_queues(&server).await;
    let other = client.blocking_queue::<i64>("other", codec::Long);
    ready.put(&1).await.unwrap();
    other.offer_all(&[2, 3]).await.unwrap();
    let seen = Seen::default();
    let handler = {
        let seen = seen.clone();
        move |number: i64, context: Context| {
            let queue = context.queue().to_owned();
            seen.lock().unwrap().insert((number, queue, context.attempt(), context.is_last_attempt()));
            async move {
                match number {
                    3 => Outcome::Reject("three".into()),
                    _ => Outcome::Retry("no".into()),
                }
            }
        }
    };
    let reports: Arc<Mutex<BTreeSet<(String, u32, bool)>>> = Arc::default();
    let report = reports.clone();
    let worker = Worker::strict([&ready, &other]).max_attempts(2).backoff(Backoff::fixed(ms(1))).on_failure(
        move |failure| {
            report.lock().unwrap().insert((
                failure.queue.clone() + &failure.error.to_string(),
                failure.attempt,
                failure.is_dead,
            ));
        },
    );
    let stop = Stop::default();
    let running = tokio::spawn(worker.run_with_signals(stop.signals(), handler));
    let dead = async || ready.dead_letters().len().await.unwrap() + other.dead_letters().len().await.unwrap();
    until_async("all are dead", || async { dead().await == 3 }).await;
    // A payload of another codec has no handler.
    server.cmd(["RPUSH", "q", "no number"]);
    until_async("undecodable", || async { dead().await == 4 }).await;
    stop.signal();
    soon(running).await.unwrap().unwrap();
    let first_and_last = |number, queue: &str| {
        [(number, queue.to_owned(), 1, false), (number, queue.to_owned(), 2, true)].into_iter()
    };
    let expected: BTreeSet<_> = first_and_last(1, "q")
        .chain(first_and_last(2, "other"))
        .chain([(3, "other".to_owned(), 1, false)])
        .collect();
    assert_eq!(*seen.lock().unwrap(), expected);
    let reports = reports.lock().unwrap().clone();
    let (undecodable, reports): (Vec<_>, Vec<_>) =
        reports.into_iter().partition(|(text, ..)| text.contains("cannot decode as Long: "));
    assert!(matches!(&undecodable[..], [(_, 1, true)]), "{undecodable:?}");
    let expected = [
        ("otherno", 1, false),
        ("otherno", 2, true),
        ("otherthree", 1, true),
        ("qno", 1, false),
        ("qno", 2, true),
    ];
    assert_eq!(reports, expected.map(|(text, attempt, dead)| (text.to_owned(), attempt, dead)));
}
