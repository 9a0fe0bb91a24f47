//! One of the concurrent runners of a worker: it receives a message, handles it, settles it, and receives the
//! next one.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{self, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::handler::{Context, Handler, call};
use super::outcome::{Failure, Outcome, WithCauses};
use super::source::Source;
use crate::receiver::{MessageId, OnUndecodable};
use crate::{Delivery, ErrorKind, Result};

/// What is told of each failed attempt.
pub(super) type OnFailure = Arc<dyn Fn(&Failure) + Send + Sync>;

/// What runners count.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) acknowledged: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) rejected: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) snoozed: AtomicU64,
    pub(super) released: AtomicU64,
    pub(super) cancelled: AtomicU64,
}

pub(super) struct Runner<T, H, A> {
    pub(super) source: Arc<Source<T>>,
    pub(super) handler: Arc<H>,
    pub(super) timeout: Duration,
    pub(super) undecodable: OnUndecodable,
    /// How long a handler may take to end when the worker is over.
    pub(super) last_moment: Duration,
    /// Receive no more.
    pub(super) stopping: CancellationToken,
    /// The grace is over.
    pub(super) over: CancellationToken,
    pub(super) counts: Arc<Counts>,
    pub(super) on_failure: Option<OnFailure>,
    pub(super) arguments: PhantomData<fn(A)>,
}

/// A settlement that was begun. Ready with what it is about, when it is answered.
struct Settling {
    answer: BoxFuture<'static, Result<()>>,
    /// What is counted when it succeeds.
    count: fn(&Counts) -> &AtomicU64,
    message: Message,
}

impl Settling {
    /// Ends a delivery without a failure.
    fn release(message: Message, delivery: Delivery<()>) -> Self {
        let count: fn(&Counts) -> &AtomicU64 = match delivery.is_cancel_requested() {
            true => |counts| &counts.cancelled,
            false => |counts| &counts.released,
        };
        Self { answer: delivery.release(), count, message }
    }
}

impl Future for Settling {
    type Output = (fn(&Counts) -> &AtomicU64, Message, Result<()>);

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        let result = ready!(self.answer.poll_unpin(cx));
        Poll::Ready((self.count, self.message.clone(), result))
    }
}

/// What a report says of a message.
#[derive(Clone)]
struct Message {
    queue: Arc<str>,
    id: Option<MessageId>,
    attempt: u32,
    is_last_attempt: bool,
    job_id: Option<Bytes>,
    payload: Bytes,
}

impl<T, H, A> Clone for Runner<T, H, A> {
    fn clone(&self) -> Self {
        Self {
            source: self.source.clone(),
            handler: self.handler.clone(),
            timeout: self.timeout,
            undecodable: self.undecodable,
            last_moment: self.last_moment,
            stopping: self.stopping.clone(),
            over: self.over.clone(),
            counts: self.counts.clone(),
            on_failure: self.on_failure.clone(),
            arguments: PhantomData,
        }
    }
}

impl<T: Send + 'static, H: Handler<T, A, Future: Send>, A: 'static> Runner<T, H, A> {
    pub(super) async fn run(self) {
        // The answer to the last settlement comes with the next message.
        let mut settling = FuturesUnordered::<Settling>::new();
        'runner: loop {
            let (queue, received) = {
                let mut next = pin!(self.source.next());
                loop {
                    // The receive comes before what is settled, which otherwise would have a call of its own.
                    tokio::select! {
                        biased;
                        () = self.stopping.cancelled() => break 'runner,
                        received = &mut next => break received,
                        Some(answered) = settling.next() => self.settled(answered),
                    }
                }
            };
            // What came with the message counts before it is handled.
            self.take_answers(&mut settling);
            match received {
                Ok(delivery) => {
                    let message = Message {
                        queue: queue.clone(),
                        id: Some(delivery.id()),
                        attempt: delivery.attempt(),
                        is_last_attempt: delivery.is_last_attempt(),
                        job_id: delivery.job_id().map(Bytes::copy_from_slice),
                        payload: delivery.payload().clone(),
                    };
                    let settles = self.handle(message, delivery).await;
                    self.settle_next(&mut settling, settles).await;
                }
                Err(error) if error.is_closed() => break,
                Err(error) => {
                    // Without a payload, it concerns no message. The receiver pauses after a refusal.
                    if let Some(payload) = error.payload().cloned() {
                        let is_dead = self.undecodable == OnUndecodable::DeadLetter;
                        let count = if is_dead { &self.counts.rejected } else { &self.counts.failed };
                        count.fetch_add(1, Ordering::Relaxed);
                        let queue = queue.clone();
                        let (attempt, is_last_attempt) = (1, false);
                        let message =
                            Message { queue, id: None, attempt, is_last_attempt, job_id: None, payload };
                        self.failed(message, error, is_dead);
                    }
                }
            }
        }
        while let Some(answered) = settling.next().await {
            self.settled(answered);
        }
    }

    /// The next receive carries this settlement, if those before it are answered. Otherwise, waits for
    /// answers until one settlement is left, but not for servers that are silent: messages of others go on.
    /// A silent one gives no more messages, so there are never many.
    async fn settle_next(&self, settling: &mut FuturesUnordered<Settling>, next: Settling) {
        self.take_answers(settling);
        settling.push(next);
        while settling.len() > 1 {
            let queues: Vec<_> = settling.iter().map(|one| one.message.queue.clone()).collect();
            tokio::select! {
                biased;
                Some(answered) = settling.next() => self.settled(answered),
                () = self.source.all_silent(queues.iter()) => return,
            }
        }
    }

    /// Those that are there.
    fn take_answers(&self, settling: &mut FuturesUnordered<Settling>) {
        while let Some(Some(answered)) = settling.next().now_or_never() {
            self.settled(answered);
        }
    }

    fn settled(&self, (count, message, result): <Settling as Future>::Output) {
        match result {
            Ok(()) => drop(count(&self.counts).fetch_add(1, Ordering::Relaxed)),
            Err(error) => {
                self.counts.lost.fetch_add(1, Ordering::Relaxed);
                // A pause that is too long makes a failure of the attempt.
                let is_dead = error.kind() == ErrorKind::Invalid && message.is_last_attempt;
                self.failed(message, error, is_dead);
            }
        }
    }

    /// Runs the handler, and begins to settle the message.
    async fn handle(&self, message: Message, delivery: Delivery<T>) -> Settling {
        let context = Context::new(message.queue.clone(), &delivery);
        let cancelled = context.cancelled.clone();
        let _cancel_on_drop = cancelled.clone().drop_guard();
        let (value, delivery) = delivery.into_parts();
        let handled = delivery.instrument(call(&*self.handler, value, context));
        let mut handled = pin!(timeout(self.timeout, handled));
        let (mut to_end, mut lost) = (pin!(delivery.cancelled()), pin!(delivery.lost()));
        let delivery = ReleaseOnDrop(Some(delivery));
        let mut is_told = false;
        let outcome = loop {
            tokio::select! {
                biased;
                outcome = &mut handled => break outcome,
                // Another receiver has it, or will have it. There is nothing to settle.
                () = &mut lost => {
                    drop(delivery);
                    self.failed(message.clone(), "the lease was lost", false);
                    let answer = Box::pin(std::future::ready(Ok(())));
                    return Settling { answer, count: |counts| &counts.lost, message };
                }
                () = self.over.cancelled() => {
                    cancelled.cancel();
                    match timeout(self.last_moment, &mut handled).await {
                        // Others are to try it again, and not because it failed.
                        Ok(Ok(Ok(Outcome::Retry(_) | Outcome::RetryAfter(..)))) | Err(_) => {
                            return Settling::release(message, delivery.take());
                        }
                        Ok(outcome) => break outcome,
                    }
                }
                () = &mut to_end, if !is_told => {
                    is_told = true;
                    cancelled.cancel();
                }
            }
        };
        let delivery = delivery.take();
        // The server removes a message whose job was cancelled, however it is settled, unless it is done.
        if !matches!(outcome, Ok(Ok(Outcome::Done) | Err(_))) && delivery.is_cancel_requested() {
            return Settling::release(message, delivery);
        }
        let outcome = match outcome {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(panic)) => Outcome::Retry(panic.into()),
            Err(_) => Outcome::Retry(format!("timed out after {:?}", self.timeout).into()),
        };
        self.settle(message, delivery, outcome)
    }

    fn settle(&self, message: Message, delivery: Delivery<()>, outcome: Outcome) -> Settling {
        let answer;
        let mut count: fn(&Counts) -> &AtomicU64 = |counts| &counts.failed;
        let mut is_dead = message.is_last_attempt;
        let error = match outcome {
            Outcome::Done => {
                return Settling { answer: delivery.ack(), count: |counts| &counts.acknowledged, message };
            }
            Outcome::Snooze(pause) => {
                let count: fn(&Counts) -> &AtomicU64 = match pause {
                    Duration::ZERO => |counts| &counts.released,
                    _ => |counts| &counts.snoozed,
                };
                return Settling { answer: delivery.snooze(pause), count, message };
            }
            Outcome::Retry(error) => {
                answer = delivery.with_error(WithCauses(&*error)).retry();
                error
            }
            Outcome::RetryAfter(pause, error) => {
                answer = delivery.with_error(WithCauses(&*error)).retry_after(pause);
                error
            }
            Outcome::Reject(error) => {
                answer = delivery.reject(WithCauses(&*error));
                count = |counts| &counts.rejected;
                is_dead = true;
                error
            }
        };
        self.failed(message.clone(), error, is_dead);
        // Told once, also if the pause is too long.
        let message = Message { is_last_attempt: false, ..message };
        Settling { answer, count, message }
    }

    fn failed(
        &self,
        message: Message,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
        is_dead: bool,
    ) {
        if let Some(report) = &self.on_failure {
            let Message { queue, id, attempt, job_id, payload, .. } = message;
            let (queue, error) = (queue.to_string(), error.into());
            let failure = Failure { queue, id, attempt, job_id, payload, error, is_dead };
            // A report that panics must not end the worker.
            let _ = catch_unwind(AssertUnwindSafe(|| report(&failure)));
        }
    }
}

/// A delivery whose worker may be dropped. That is not its handler's failure.
struct ReleaseOnDrop(Option<Delivery<()>>);

impl ReleaseOnDrop {
    fn take(mut self) -> Delivery<()> {
        self.0.take().expect("it is taken once")
    }
}

impl Drop for ReleaseOnDrop {
    fn drop(&mut self) {
        if let Some(delivery) = self.0.take() {
            drop(delivery.release());
        }
    }
}
