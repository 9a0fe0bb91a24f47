//! Cancels of jobs that hold their ids, racing with what else happens to them: with the due time, the claim,
//! the acknowledgement and the retry. One of both wins, and both sides are told the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fastrand::Rng;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use redelay::delayed_queue::Cancelled;
use redelay::worker::{Backoff, Outcome, Stopped};
use redelay::{BlockingQueue, DelayedQueue, Worker};
use redelay_fixture::{Server, until_async};
use redelay_support::{JOBS, MORE_NOTES, NOTES, ms, number_queues, rounds};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// In each round. `make soak` has 20 rounds.
const JOBS_OF_A_ROUND: usize = 500;
const AT_A_TIME: usize = 64;

/// What became of one job.
struct Race {
    number: usize,
    /// The answer of its cancel.
    cancelled: Cancelled,
    /// How many attempts had begun when the answer came, and how many in the end.
    before: usize,
    after: usize,
}

/// Offers and cancels jobs. The handler gets the number of a job, and that of the attempt. Returns what the
/// worker has counted, too.
async fn race(
    ready: &BlockingQueue<i64>,
    delayed: &DelayedQueue<i64>,
    jobs: usize,
    handler: impl Fn(usize, usize) -> BoxFuture<'static, Outcome> + Send + Sync + 'static,
) -> (Vec<Race>, Stopped) {
    let begun: Arc<Vec<_>> = Arc::new((0..jobs).map(|_| AtomicUsize::new(0)).collect());
    let stop = CancellationToken::new();
    let working = {
        let worker =
            Worker::new(ready).concurrency(AT_A_TIME).max_attempts(1000).backoff(Backoff::fixed(ms(2)));
        let begun = begun.clone();
        tokio::spawn(worker.run_until(stop.clone().cancelled_owned(), move |number: i64| {
            let number = usize::try_from(number).unwrap();
            let attempt = begun[number].fetch_add(1, Ordering::SeqCst);
            handler(number, attempt)
        }))
    };
    let one = async |number: usize| {
        let mut random = Rng::with_seed(number as u64);
        let (value, id) = (number as i64, number.to_string());
        delayed.offer(&value, ms(random.u64(0..4))).id(&id).until_done().await.unwrap();
        sleep(Duration::from_micros(random.u64(0..8000))).await;
        let cancelled = delayed.job(&id).cancel().await.unwrap();
        (number, cancelled, begun[number].load(Ordering::SeqCst))
    };
    let answers: Vec<_> = stream::iter(0..jobs).map(one).buffer_unordered(AT_A_TIME).collect().await;
    until_async("all are done", || async {
        let stats = ready.stats().await.unwrap();
        stats.pending + stats.ready + stats.receiving.in_flight + stats.receiving.waiting == 0
    })
    .await;
    stop.cancel();
    let stopped = working.await.unwrap().unwrap();
    for cancelled in [Cancelled::Removed, Cancelled::Requested] {
        let count = answers.iter().filter(|answer| answer.1 == cancelled).count();
        println!("{count} of {jobs} {cancelled:?}");
        assert!(count > jobs / 100, "too few to say anything");
    }
    let race = |(number, cancelled, before): (usize, Cancelled, usize)| {
        let after = begun[number].load(Ordering::SeqCst);
        Race { number, cancelled, before, after }
    };
    (answers.into_iter().map(race).collect(), stopped)
}

/// A while that differs from job to job, and from attempt to attempt.
async fn work(number: usize, attempt: usize) {
    sleep(Duration::from_micros(Rng::with_seed((number + attempt) as u64).u64(0..3000))).await;
}

async fn nothing_is_left(server: &Server, ready: &BlockingQueue<i64>) {
    let left: usize = server.get(["EXISTS", JOBS, NOTES, MORE_NOTES]);
    assert_eq!(left, 0);
    assert!(ready.dead_letters().is_empty().await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_cancelled_or_done() {
    let server = Server::start();
    let (client, ready, delayed) = number_queues(&server).await;
    let handler = |number, attempt| -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            work(number, attempt).await;
            Outcome::Done
        })
    };
    let (races, stopped) = race(&ready, &delayed, rounds() * JOBS_OF_A_ROUND, handler).await;
    let mut done = 0;
    for Race { number, cancelled, after, .. } in races {
        assert_eq!(after, usize::from(cancelled != Cancelled::Removed), "{number}: {cancelled:?}");
        done += after as u64;
    }
    // An acknowledgement after the cancel counts, too.
    assert_eq!((stopped.acknowledged, stopped.cancelled, stopped.failed, stopped.lost), (done, 0, 0, 0));
    nothing_is_left(&server, &ready).await;
    client.shutdown().await;
}

/// Each attempt fails, so only a cancel ends a job.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_retry_follows_a_cancel() {
    let server = Server::start();
    let (client, ready, delayed) = number_queues(&server).await;
    let handler = |number, attempt| -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            work(number, attempt).await;
            Outcome::Retry("no luck".into())
        })
    };
    let (races, stopped) = race(&ready, &delayed, rounds() * JOBS_OF_A_ROUND, handler).await;
    let requested = races.iter().filter(|race| race.cancelled == Cancelled::Requested).count();
    let attempts: usize = races.iter().map(|race| race.after).sum();
    // A handler that returns before its process has heard of the cancel has failed.
    assert!(stopped.cancelled <= requested as u64, "{stopped:?}");
    assert_eq!((stopped.cancelled + stopped.failed, stopped.lost), (attempts as u64, 0));
    for race in races {
        let Race { number, cancelled, before, after } = race;
        // A message that was claimed may reach its handler behind the answer to the cancel.
        let is_late = cancelled == Cancelled::Requested && after == before + 1;
        assert!(after == before || is_late, "{number}: {cancelled:?} after {before} attempts of {after}");
        assert_ne!(cancelled, Cancelled::NotFound, "{number}");
    }
    nothing_is_left(&server, &ready).await;
    client.shutdown().await;
}
