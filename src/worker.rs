//! `Worker`: runs a handler for each message of one or more queues, until a signal stops it. It is built
//! on the public API alone.

mod handler;
mod outcome;
mod repolled;
mod runner;
#[cfg(feature = "tower")]
mod service;
mod source;

use std::fmt;
use std::future::poll_fn;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::Stream;
use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

pub use crate::receiver::{Backoff, MessageId, OnUndecodable};
#[doc(hidden)]
pub use handler::call;
pub use handler::{Context, Handler};
pub use outcome::{Failure, IntoOutcome, Outcome};
#[cfg(feature = "tower")]
pub use service::from_service;

use crate::{BlockingQueue, Receiver, Result};
use repolled::Repolled;
use runner::{Counts, OnFailure, Runner};
use source::{Setting, Source, invalid};

/// How long handlers may take to end by themselves when the grace is over.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// Runs a handler for each message of one or more queues, a number of them at a time.
///
/// A handler is an async function of the value, or of the value and a [`Context`]. What it returns decides
/// what happens to the message: see [`Outcome`]. A panic, a [timeout](Self::timeout) and an `Err` are
/// failures: the message is delivered again after the [backoff](Self::backoff), and becomes a dead letter
/// after the last [attempt](Self::max_attempts).
///
/// Delivery is at least once: a process that dies loses nothing, but a message that was handled may be
/// delivered again if its acknowledgement was lost. So a handler should be idempotent; [`Context::id`] is the
/// same for all deliveries of a message.
///
/// | setting | default |
/// |---|---|
/// | [`concurrency`](Self::concurrency) | 10 |
/// | [`max_attempts`](Self::max_attempts) | 10 |
/// | [`max_losses`](Self::max_losses) | 5 |
/// | [`lease`](Self::lease) | 30 s |
/// | [`timeout`](Self::timeout) | 30 min |
/// | [`grace`](Self::grace) | 15 s |
/// | [`backoff`](Self::backoff) | 15 s, doubled with each failure, up to 6 h |
/// | [`on_undecodable`](Self::on_undecodable) | dead letter |
/// | dead letters | kept without a limit |
///
/// # Examples
/// ```no_run
/// use redelay::{Client, Worker, codec};
///
/// #[tokio::main]
/// async fn main() -> redelay::Result<()> {
///     let client = Client::connect("redis://localhost").await?;
///     let orders = client.blocking_queue::<i64>("orders", codec::Long);
///     Worker::new(&orders).concurrency(64).run(cancel_if_unpaid).await?; // until Ctrl-C or SIGTERM
///     client.shutdown().await;
///     Ok(())
/// }
///
/// async fn cancel_if_unpaid(order: i64) -> std::io::Result<()> {
///     println!("is {order} paid?");
///     Ok(()) // Acknowledged. An `Err` is tried again, and is a dead letter in the end.
/// }
/// ```
#[must_use = "a worker does nothing until it runs"]
pub struct Worker<T> {
    queues: Vec<(BlockingQueue<T>, u32)>,
    is_strict: bool,
    concurrency: usize,
    timeout: Duration,
    grace: Duration,
    set: Vec<Setting<T>>,
    undecodable: OnUndecodable,
    on_failure: Option<OnFailure>,
}

/// What a worker did until it stopped: how many deliveries ended in each way. A message that fails twice
/// counts twice. [`ReceivingStats`](crate::stats::ReceivingStats) counts those of all workers and receivers
/// of a client.
///
/// # Examples
/// ```no_run
/// # use redelay::{BlockingQueue, Worker};
/// # async fn example(orders: BlockingQueue<i64>) -> redelay::Result<()> {
/// let stopped = Worker::new(&orders).run(|order: i64| async move { println!("{order}") }).await?;
/// println!("{} were released to others", stopped.released);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Stopped {
    /// Those that were acknowledged.
    pub acknowledged: u64,
    /// Those that failed: with an `Err`, a panic or a timeout. The last failure of a dead letter counts here.
    /// An `Err` of a job that was cancelled does not.
    pub failed: u64,
    /// Those that were rejected, the undecodable included.
    pub rejected: u64,
    /// Those whose lease was lost, or whose settlement failed: the message may be delivered again, whatever
    /// its handler did.
    pub lost: u64,
    /// Those that were snoozed.
    pub snoozed: u64,
    /// Those that other receivers get at once, without a failure: their handlers had not ended a second after
    /// the grace, or returned an `Err` or [`Outcome::Retry`] in that second; or snoozed for no time.
    pub released: u64,
    /// Those whose handlers had not done the work, when a client had asked to cancel the job: an `Err`, any
    /// outcome but [`Outcome::Done`], or not in time. They are not reported as failures. `ReceivingStats`
    /// counts them as released.
    pub cancelled: u64,
}

impl Stopped {
    fn of(counts: &Counts) -> Self {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Self {
            acknowledged: read(&counts.acknowledged),
            failed: read(&counts.failed),
            rejected: read(&counts.rejected),
            lost: read(&counts.lost),
            snoozed: read(&counts.snoozed),
            released: read(&counts.released),
            cancelled: read(&counts.cancelled),
        }
    }
}

/// # Its queues
impl<T: Send + 'static> Worker<T> {
    /// A worker for one queue.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{BlockingQueue, Worker};
    /// # async fn example(orders: BlockingQueue<i64>) -> redelay::Result<()> {
    /// Worker::new(&orders).run(|order: i64| async move { println!("{order}") }).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(queue: &BlockingQueue<T>) -> Self {
        Self::of(vec![(queue.clone(), 1)], true)
    }

    /// A worker for several queues. A message of a later queue is handled only while there is none in the
    /// queues before it.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{BlockingQueue, Worker};
    /// # async fn example(urgent: BlockingQueue<i64>, orders: BlockingQueue<i64>) -> redelay::Result<()> {
    /// Worker::strict([&urgent, &orders]).run(|order: i64| async move { println!("{order}") }).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn strict<'a>(queues: impl IntoIterator<Item = &'a BlockingQueue<T>>) -> Self {
        Self::of(queues.into_iter().map(|queue| (queue.clone(), 1)).collect(), true)
    }

    /// A worker for several queues. While all of them have messages, they are handled in these proportions.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{BlockingQueue, Worker};
    /// # async fn example(urgent: BlockingQueue<i64>, orders: BlockingQueue<i64>) -> redelay::Result<()> {
    /// Worker::weighted([(&urgent, 6), (&orders, 1)]).run(|order: i64| async move { println!("{order}") }).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn weighted<'a>(queues: impl IntoIterator<Item = (&'a BlockingQueue<T>, u32)>) -> Self {
        Self::of(queues.into_iter().map(|(queue, weight)| (queue.clone(), weight)).collect(), false)
    }

    fn of(queues: Vec<(BlockingQueue<T>, u32)>, is_strict: bool) -> Self {
        Self {
            queues,
            is_strict,
            concurrency: 10,
            timeout: Duration::from_secs(1_800),
            grace: Duration::from_secs(15),
            set: Vec::new(),
            undecodable: OnUndecodable::default(),
            on_failure: None,
        }
    }

    fn with(mut self, setting: impl Fn(Receiver<T>) -> Receiver<T> + Send + 'static) -> Self {
        self.set.push(Box::new(setting));
        self
    }
}

/// # Run
impl<T: Send + 'static> Worker<T> {
    /// Runs until the process gets Ctrl-C or SIGTERM. Then it stops receiving, lets handlers continue for the
    /// [grace](Self::grace), and releases the messages of those that have not ended; a second signal ends the
    /// grace. After [`Client::stop_taking`](crate::Client::stop_taking), it ends in the same way.
    ///
    /// Tokio's handlers of these signals stay: when this has returned, Ctrl-C no longer ends the process by
    /// itself.
    ///
    /// # Errors
    /// [`Closed`](crate::ErrorKind::Closed) after [`Client::shutdown`](crate::Client::shutdown), and if it
    /// begins after `stop_taking`. [`Invalid`](crate::ErrorKind::Invalid) for a setting out of its range: no
    /// queue, two queues with one name, a weight or a concurrency of zero,
    /// [`keep_dead_letters`](Self::keep_dead_letters) of zero, [`max_attempts`](Self::max_attempts),
    /// [`max_losses`](Self::max_losses) or a [`lease`](Self::lease) out of range, or a queue for dead letters
    /// that is the queue itself, or that a cluster cannot hold. Errors of the server do not end it: the
    /// worker continues when the server is back.
    ///
    /// # Cancel safety
    /// If the future is dropped, the handlers are dropped at once, and their messages are released.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{BlockingQueue, Worker};
    /// # async fn example(orders: BlockingQueue<i64>) -> redelay::Result<()> {
    /// let stopped = Worker::new(&orders).run(|order: i64| async move { println!("{order}") }).await?;
    /// println!("{} done", stopped.acknowledged);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run<H, A>(self, handler: H) -> Result<Stopped>
    where
        H: Handler<T, A, Future: Send>,
        A: 'static,
    {
        self.run_with_signals(signals(), handler).await
    }

    /// As [`Worker::run`], until this future is ready: the receiving end of a channel, or the `cancelled` of
    /// a token. Signals to the process are left to the program.
    ///
    /// # Errors
    /// As [`Worker::run`].
    ///
    /// # Cancel safety
    /// As [`Worker::run`].
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{BlockingQueue, Worker};
    /// # async fn example(orders: BlockingQueue<i64>, stop: tokio::sync::oneshot::Receiver<()>) -> redelay::Result<()> {
    /// Worker::new(&orders).run_until(stop, |order: i64| async move { println!("{order}") }).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run_until<H, A>(self, stop: impl Future, handler: H) -> Result<Stopped>
    where
        H: Handler<T, A, Future: Send>,
        A: 'static,
    {
        self.run_with_signals(futures::stream::once(stop), handler).await
    }

    /// As [`Worker::run`], with these signals instead of those to the process. The first item of the stream
    /// starts the stop, the second one ends the grace; the end of the stream is not a signal.
    ///
    /// # Errors
    /// As [`Worker::run`].
    ///
    /// # Cancel safety
    /// As [`Worker::run`].
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{BlockingQueue, Worker};
    /// # async fn example(orders: BlockingQueue<i64>, signals: futures::channel::mpsc::Receiver<()>) -> redelay::Result<()> {
    /// Worker::new(&orders).run_with_signals(signals, |order: i64| async move { println!("{order}") }).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run_with_signals<H, A>(self, signals: impl Stream, handler: H) -> Result<Stopped>
    where
        H: Handler<T, A, Future: Send>,
        A: 'static,
    {
        let Self { queues, is_strict, concurrency, timeout, grace, set, undecodable, on_failure } = self;
        if concurrency == 0 {
            return Err(invalid("concurrency(0) is out of range; use 1 or more"));
        }
        let source = Source::new(queues, is_strict, &set, timeout)?;
        // A setting that is out of range is found now, and not by each runner.
        source.check().await?;
        let (stopping, over) = (CancellationToken::new(), CancellationToken::new());
        let _stop_on_drop = over.clone().drop_guard();
        let counts = Arc::new(Counts::default());
        let source = Arc::new(source);
        let mut closed = pin!({
            let source = source.clone();
            async move { source.closed().await }
        });
        let runner = Runner {
            source,
            handler: Arc::new(handler),
            timeout,
            undecodable,
            last_moment: LAST_MOMENT,
            stopping: stopping.clone(),
            over: over.clone(),
            counts: counts.clone(),
            on_failure,
            arguments: std::marker::PhantomData,
        };
        let mut runners = JoinSet::new();
        for _ in 0..concurrency {
            runners.spawn(Repolled::new(runner.clone().run()));
        }
        let mut signals = pin!(signals);
        let mut signals_ended = false;
        let mut grace_over: Option<Instant> = None;
        let stop = |grace_over: &mut Option<Instant>| {
            if !stopping.is_cancelled() {
                stopping.cancel();
                *grace_over = Instant::now().checked_add(grace);
            }
        };
        loop {
            let deadline = async {
                match grace_over {
                    Some(at) if !over.is_cancelled() => sleep_until(at).await,
                    _ => std::future::pending().await,
                }
            };
            tokio::select! {
                ended = runners.join_next() => match ended {
                    None => break,
                    Some(Ok(())) => {}
                    // The handler's own destructor has panicked. Its message has failed; the worker goes on.
                    Some(Err(error)) if error.is_panic() && !over.is_cancelled() => {
                        drop(runners.spawn(Repolled::new(runner.clone().run())));
                    }
                    Some(Err(error)) if error.is_panic() => resume_unwind(error.into_panic()),
                    Some(Err(_)) => {}
                },
                signal = poll_fn(|cx| signals.as_mut().poll_next(cx)), if !signals_ended => {
                    signals_ended = signal.is_none();
                    if signal.is_some() {
                        if stopping.is_cancelled() {
                            over.cancel();
                        } else {
                            stop(&mut grace_over);
                        }
                    }
                }
                // Handlers that run get the grace.
                () = &mut closed, if !stopping.is_cancelled() => stop(&mut grace_over),
                () = deadline => over.cancel(),
            }
        }
        Ok(Stopped::of(&counts))
    }
}

/// # Settings
impl<T: Send + 'static> Worker<T> {
    /// How many messages are handled at a time, of all queues together: 10 by default.
    ///
    /// # Examples
    /// ```no_run
    /// # fn example(orders: redelay::BlockingQueue<i64>) {
    /// let worker = redelay::Worker::new(&orders).concurrency(64);
    /// # }
    /// ```
    pub fn concurrency(mut self, handlers: usize) -> Self {
        self.concurrency = handlers;
        self
    }

    /// After how many failures a message becomes a dead letter: see [`Receiver::max_attempts`].
    ///
    /// # Examples
    /// ```no_run
    /// # fn example(orders: redelay::BlockingQueue<i64>) {
    /// let worker = redelay::Worker::new(&orders).max_attempts(3);
    /// # }
    /// ```
    pub fn max_attempts(self, attempts: u32) -> Self {
        self.with(move |receiver| receiver.max_attempts(attempts))
    }

    /// After how many ended leases a message becomes a dead letter: see [`Receiver::max_losses`].
    ///
    /// # Examples
    /// ```no_run
    /// # fn example(orders: redelay::BlockingQueue<i64>) {
    /// let worker = redelay::Worker::new(&orders).max_losses(3);
    /// # }
    /// ```
    pub fn max_losses(self, losses: u32) -> Self {
        self.with(move |receiver| receiver.max_losses(losses))
    }

    /// How long a message belongs to a process that has died, about: see [`Receiver::lease`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # fn example(orders: redelay::BlockingQueue<i64>) {
    /// let worker = redelay::Worker::new(&orders).lease(Duration::from_secs(5));
    /// # }
    /// ```
    pub fn lease(self, lease: Duration) -> Self {
        self.with(move |receiver| receiver.lease(lease))
    }

    /// How long a handler may take: 30 minutes by default. After that, its future is dropped, and the message
    /// has failed.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # fn example(orders: redelay::BlockingQueue<i64>) {
    /// let worker = redelay::Worker::new(&orders).timeout(Duration::from_secs(60));
    /// # }
    /// ```
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long handlers may continue after the signal to stop: 15 s by default. After that, they have a
    /// second to end.
    ///
    /// So by default the stop takes about 16 s if the server answers. If it does not, settling takes up to
    /// twice the command timeout more (10 s), and so does the [`Client::shutdown`](crate::Client::shutdown)
    /// that follows: 36 s in all. Kubernetes kills a process after 30 s, unless
    /// `terminationGracePeriodSeconds` says otherwise.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # fn example(orders: redelay::BlockingQueue<i64>) {
    /// let worker = redelay::Worker::new(&orders).grace(Duration::from_secs(5));
    /// # }
    /// ```
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// How long a failed message waits for its next delivery: see [`Receiver::backoff`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # fn example(orders: redelay::BlockingQueue<i64>) {
    /// let worker = redelay::Worker::new(&orders).backoff(redelay::worker::Backoff::fixed(Duration::from_secs(5)));
    /// # }
    /// ```
    pub fn backoff(self, backoff: Backoff) -> Self {
        self.with(move |receiver| receiver.backoff(backoff.clone()))
    }

    /// What happens to a message whose payload cannot be decoded: see [`Receiver::on_undecodable`].
    ///
    /// # Examples
    /// ```no_run
    /// # fn example(orders: redelay::BlockingQueue<i64>) {
    /// let worker = redelay::Worker::new(&orders).on_undecodable(redelay::worker::OnUndecodable::Retry);
    /// # }
    /// ```
    pub fn on_undecodable(mut self, undecodable: OnUndecodable) -> Self {
        self.undecodable = undecodable;
        self.with(move |receiver| receiver.on_undecodable(undecodable))
    }

    /// How many dead letters are kept, and for how long: see [`Receiver::keep_dead_letters`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # fn example(orders: redelay::BlockingQueue<i64>) {
    /// let worker = redelay::Worker::new(&orders).keep_dead_letters(10_000, Duration::from_secs(90 * 86_400));
    /// # }
    /// ```
    pub fn keep_dead_letters(self, max: impl Into<Option<u64>>, age: impl Into<Option<Duration>>) -> Self {
        let (max, age) = (max.into(), age.into());
        self.with(move |receiver| receiver.keep_dead_letters(max, age))
    }

    /// Deletes messages that would become dead letters: see [`Receiver::discard_dead_letters`].
    ///
    /// # Examples
    /// ```no_run
    /// # fn example(clicks: redelay::BlockingQueue<i64>) {
    /// let worker = redelay::Worker::new(&clicks).discard_dead_letters();
    /// # }
    /// ```
    pub fn discard_dead_letters(self) -> Self {
        self.with(Receiver::discard_dead_letters)
    }

    /// Sends dead letters to this queue: see [`Receiver::dead_letters_to`].
    ///
    /// # Examples
    /// ```no_run
    /// # fn example(orders: redelay::BlockingQueue<i64>, dead: redelay::BlockingQueue<i64>) {
    /// let worker = redelay::Worker::new(&orders).dead_letters_to(&dead);
    /// # }
    /// ```
    pub fn dead_letters_to<U: Send + 'static>(self, queue: &BlockingQueue<U>) -> Self {
        let queue = queue.clone();
        self.with(move |receiver| receiver.dead_letters_to(&queue))
    }

    /// Sets a callback for failed attempts: an error, a panic, a timeout, a lost lease, an undecodable
    /// payload. It should be quick. [`Failure::is_dead`] says whether it was the last one.
    ///
    /// Errors of the server that concern no message are not reported here. They are in
    /// [`ClientStats::last_error`](crate::stats::ClientStats), and in the event `redelay.receives.failing`.
    ///
    /// # Examples
    /// ```no_run
    /// # fn example(orders: redelay::BlockingQueue<i64>) {
    /// let worker = redelay::Worker::new(&orders).on_failure(|failure| eprintln!("{failure}"));
    /// # }
    /// ```
    pub fn on_failure(mut self, report: impl Fn(&Failure) + Send + Sync + 'static) -> Self {
        self.on_failure = Some(Arc::new(report));
        self
    }
}

impl<T> fmt::Debug for Worker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.queues.iter().map(|(queue, _)| queue).collect();
        f.debug_struct("Worker")
            .field("queues", &names)
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}

/// Ctrl-C and SIGTERM.
fn signals() -> impl Stream<Item = ()> {
    futures::stream::unfold((), |()| async {
        let interrupted = async {
            // That there can be no handler for the signal is no reason to stop.
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending().await
            }
        };
        let terminated = async {
            #[cfg(unix)]
            if let Ok(mut terminate) =
                tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
            {
                terminate.recv().await;
                return;
            }
            std::future::pending().await
        };
        tokio::select! {
            () = interrupted => {}
            () = terminated => {}
        }
        Some(((), ()))
    })
}
