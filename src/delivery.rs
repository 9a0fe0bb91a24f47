//! `Delivery`: a message that this process has, until it is settled.

mod backoff;
mod settle;

use std::fmt::{self, Display};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::future::{BoxFuture, ready};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use tokio::time::Instant;

use crate::error::{Error, Result};
use crate::queue::Queue;
use crate::receiving::{Claimed, PendingReceive, Receiving, Settlement};
use crate::telemetry::events::Span;
use crate::wire::job::{JobData, TRACEPARENT};
use crate::wire::message::MessageId;
use crate::wire::time;
pub use backoff::Backoff;
use settle::{Open, answered, cut, settle, settle_after, settle_by};

/// A message that was received, until it is settled.
///
/// The server keeps the message. It gives it to no other receiver as long as this process extends its lease,
/// which happens in the background. A method that settles it takes `self`, so a message cannot be settled
/// twice:
///
/// | call | effect |
/// |---|---|
/// | [`ack`](Self::ack), [`Receiver::ack_and_receive`](crate::Receiver::ack_and_receive) | done: the message is deleted |
/// | [`retry`](Self::retry), [`retry_after`](Self::retry_after) | it failed: it is delivered again later, or becomes a dead letter |
/// | [`snooze`](Self::snooze) | it is delivered again later; this is not a failure |
/// | [`release`](Self::release) | it is delivered again at once; this is not a failure |
/// | [`reject`](Self::reject) | it becomes a dead letter now |
/// | drop | as [`retry`](Self::retry) |
///
/// The server decides by its own clock whether the lease holds, so a message may be delivered twice if this
/// process stalls for longer than the lease: make handlers idempotent, with [`id`](Self::id) as the key.
///
/// # Examples
/// ```no_run
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> redelay::Result<()> {
/// let orders = client.blocking_queue("orders", codec::Long).receiver();
/// let order = orders.receive().await?;
/// println!("order {}, attempt {}", order.value(), order.attempt());
/// order.ack().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a delivery that is dropped is delivered again"]
pub struct Delivery<T> {
    /// `None` only after it was taken out.
    value: Option<T>,
    open: Option<Box<Open>>,
    id: MessageId,
    attempt: u32,
    is_last_attempt: bool,
    first: u64,
    job: Option<JobData>,
    bytes: Bytes,
}

impl FromStr for MessageId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            Error::invalid("read a message id", "a message id has 32 hexadecimal digits; this text does not")
        };
        let digits = text.as_bytes();
        let mut id = [0; 16];
        if digits.len() != 32 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(wrong());
        }
        for (byte, pair) in id.iter_mut().zip(text.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        Ok(Self(id))
    }
}

impl<'de> Deserialize<'de> for MessageId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// # The message
impl<T> Delivery<T> {
    pub(crate) fn new(
        value: T,
        claim: Claimed,
        receiving: Arc<Receiving>,
        queue: Arc<Queue>,
        backoff: Backoff,
        attempts: u32,
    ) -> Self {
        let id = claim.member.id();
        let attempt = 1 + u32::from(claim.failed) + u32::from(claim.lost);
        let span = Span::process(&queue.keys, id, attempt, claim.payload.len());
        if let Some(traceparent) = claim.job.as_ref().and_then(|job| job.header(TRACEPARENT)) {
            span.caused_by(traceparent);
        }
        Self {
            value: Some(value),
            id,
            attempt,
            is_last_attempt: u32::from(claim.failed) + 1 >= attempts,
            first: claim.first,
            job: claim.job.clone(),
            bytes: claim.payload.clone(),
            open: Some(Box::new(Open {
                claim,
                receiving,
                queue,
                backoff,
                error: String::new(),
                since: Instant::now(),
                span,
            })),
        }
    }

    /// The same delivery, of this value.
    pub(crate) fn with_value<V>(mut self, value: V) -> Delivery<V> {
        Delivery {
            value: Some(value),
            open: self.open.take(),
            id: self.id,
            attempt: self.attempt,
            is_last_attempt: self.is_last_attempt,
            first: self.first,
            job: self.job.take(),
            bytes: self.bytes.clone(),
        }
    }

    /// The message becomes a dead letter, for a reason of ours.
    pub(crate) fn bury(mut self, reason: &'static str, error: &dyn Display) {
        let error = cut(error);
        drop(settle(self.open.take(), reason, |_| Settlement::Reject { reason, error }));
    }

    fn open(&self) -> &Open {
        self.open.as_deref().expect("a delivery is open until it is settled")
    }

    /// The value.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(order: redelay::Delivery<String>) -> redelay::Result<()> {
    /// println!("{} of {}", order.value(), order.queue());
    /// order.ack().await
    /// # }
    /// ```
    #[must_use]
    pub fn value(&self) -> &T {
        self.value.as_ref().expect("a delivery has its value until that is taken out")
    }

    /// Takes the value out. The delivery must still be settled.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn ship(order: String) -> redelay::Result<()> { Ok(()) }
    /// # async fn example(delivery: redelay::Delivery<String>) -> redelay::Result<()> {
    /// let (order, delivery) = delivery.into_parts();
    /// match ship(order).await {
    ///     Ok(()) => delivery.ack().await,
    ///     Err(error) => delivery.with_error(error).retry().await,
    /// }
    /// # }
    /// ```
    #[must_use = "a delivery that is dropped is delivered again"]
    pub fn into_parts(mut self) -> (T, Delivery<()>) {
        let value = self.value.take().expect("a delivery has its value until that is taken out");
        (value, self.with_value(()))
    }

    /// The name of the queue that the message came from, as the program gave it to the client: without the
    /// prefix.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(order: redelay::Delivery<i64>) -> redelay::Result<()> {
    /// println!("{} of {}", order.id(), order.queue());
    /// order.ack().await
    /// # }
    /// ```
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.open().queue.name
    }

    /// The id of the message, the same for all its deliveries.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::Delivery;
    /// # async fn example(done: std::collections::HashSet<redelay::receiver::MessageId>, order: Delivery<i64>) -> redelay::Result<()> {
    /// if done.contains(&order.id()) {
    ///     return order.ack().await; // It was done before, but the acknowledgement was lost.
    /// }
    /// # order.ack().await
    /// # }
    /// ```
    #[must_use]
    pub fn id(&self) -> MessageId {
        self.id
    }

    /// Which attempt this is: 1 at first, and one more for each failure and for each lease that ended.
    /// Snoozed and released deliveries do not count.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(order: redelay::Delivery<i64>) -> redelay::Result<()> {
    /// if order.attempt() > 1 {
    ///     println!("again: {}", order.id());
    /// }
    /// # order.ack().await
    /// # }
    /// ```
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Whether the message becomes a dead letter if this delivery fails:
    /// [`Receiver::max_attempts`](crate::Receiver::max_attempts) of this receiver allows no more failures. A
    /// lease that ends is not a failure, but a loss, which has its own limit:
    /// [`Receiver::max_losses`](crate::Receiver::max_losses).
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(order: redelay::Delivery<i64>) -> redelay::Result<()> {
    /// if order.is_last_attempt() {
    ///     println!("{} is a dead letter now", order.id());
    /// }
    /// order.retry().await
    /// # }
    /// ```
    #[must_use]
    pub fn is_last_attempt(&self) -> bool {
        self.is_last_attempt
    }

    /// The job id of this message, if the offer said
    /// [`until_done`](crate::delayed_queue::JobOffer::until_done),
    /// [`header`](crate::delayed_queue::JobOffer::header) or
    /// [`expires_after`](crate::delayed_queue::JobOffer::expires_after). Other jobs have no id any more once
    /// they are due, because the list of ready payloads has nothing but payloads.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(order: redelay::Delivery<i64>) -> redelay::Result<()> {
    /// if let Some(id) = order.job_id() {
    ///     println!("job {}", String::from_utf8_lossy(id));
    /// }
    /// # order.ack().await
    /// # }
    /// ```
    #[must_use]
    pub fn job_id(&self) -> Option<&[u8]> {
        self.job.as_ref().map(|job| &job.id[..])
    }

    /// A header of the job: see [`JobOffer::header`](crate::delayed_queue::JobOffer::header).
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(order: redelay::Delivery<i64>) -> redelay::Result<()> {
    /// println!("trace {}", order.header("traceparent").unwrap_or("none"));
    /// # order.ack().await
    /// # }
    /// ```
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.job.as_ref().and_then(|job| job.header(name))
    }

    /// The names and values of all [headers](Self::header).
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(order: redelay::Delivery<i64>) -> redelay::Result<()> {
    /// for (name, value) in order.headers() {
    ///     println!("{name}: {value}");
    /// }
    /// # order.ack().await
    /// # }
    /// ```
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.job.iter().flat_map(JobData::headers)
    }

    /// When the job was offered, by the server's clock; `None` if it has no [`job_id`](Self::job_id). If
    /// the job was replaced, that of the replacing offer;
    /// [`PendingJob::first_offered`](crate::delayed_queue::PendingJob) is that of the first one.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(order: redelay::Delivery<i64>) -> redelay::Result<()> {
    /// println!("offered {:?} ago", order.offered_at().and_then(|at| at.elapsed().ok()));
    /// # order.ack().await
    /// # }
    /// ```
    #[must_use]
    pub fn offered_at(&self) -> Option<SystemTime> {
        self.job.as_ref().map(|job| time::from_epoch_millis(job.offered))
    }

    /// When the job was due, by the server's clock; `None` if it has no [`job_id`](Self::job_id). With
    /// [`first_received`](Self::first_received), it says how late the first attempt began.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(order: redelay::Delivery<i64>) -> redelay::Result<()> {
    /// let late = order.due().and_then(|due| order.first_received().duration_since(due).ok());
    /// println!("late by {late:?}");
    /// # order.ack().await
    /// # }
    /// ```
    #[must_use]
    pub fn due(&self) -> Option<SystemTime> {
        self.job.as_ref().map(|job| time::from_epoch_millis(job.due))
    }

    /// When the message was received for the first time, by the server's clock.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(order: redelay::Delivery<i64>) -> redelay::Result<()> {
    /// if order.first_received().elapsed().is_ok_and(|age| age.as_secs() > 86_400) {
    ///     return order.reject("too old").await;
    /// }
    /// # order.ack().await
    /// # }
    /// ```
    #[must_use]
    pub fn first_received(&self) -> SystemTime {
        time::from_epoch_millis(self.first)
    }

    /// The payload, as it is on the server.
    ///
    /// # Examples
    /// ```no_run
    /// # fn example(order: &redelay::Delivery<i64>) {
    /// println!("{} bytes", order.payload().len());
    /// # }
    /// ```
    #[must_use]
    pub fn payload(&self) -> &Bytes {
        &self.bytes
    }
}

/// # Settle
impl<T> Delivery<T> {
    /// Records why it failed. A dead letter has the error of its last attempt, up to 1,000 bytes of it.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(order: redelay::Delivery<i64>) -> redelay::Result<()> {
    /// order.with_error("the shop does not answer").retry().await
    /// # }
    /// ```
    #[must_use = "a delivery that is dropped is delivered again"]
    pub fn with_error(mut self, error: impl Display) -> Self {
        if let Some(open) = &mut self.open {
            open.error = cut(&error);
        }
        self
    }

    /// The message is done, and is deleted.
    ///
    /// # Errors
    /// These are the errors of all methods that settle a delivery:
    /// * [`LeaseLost`](crate::ErrorKind::LeaseLost): the lease ended before the call, and the message was or
    ///   will be given to another receiver. Nothing was changed.
    /// * [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown): the server has not answered within twice the
    ///   command timeout. The call continues in the background. If it does not reach the server before the
    ///   lease ends, the message is delivered again.
    /// * [`Refused`](crate::ErrorKind::Refused): a permission is missing. The message is delivered again when
    ///   the lease ends.
    /// * [`Closed`](crate::ErrorKind::Closed): after [`Client::shutdown`](crate::Client::shutdown). The
    ///   message is delivered again when the lease ends.
    ///
    /// # Cancel safety
    /// The message is settled even if the future is dropped, also before it is polled. The settlement is sent
    /// with the receiver's next call, at the latest when the future is polled or dropped.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(order: redelay::Delivery<i64>) {
    /// if let Err(error) = order.ack().await {
    ///     println!("it may be delivered again: {error}");
    /// }
    /// # }
    /// ```
    #[doc(alias = "acknowledge")]
    pub fn ack(mut self) -> BoxFuture<'static, Result<()>> {
        settle(self.open.take(), "ack", |_| Settlement::Acknowledge)
    }

    /// Acknowledges the message, and waits for one of this receiver: in one call, if it is the receiver of
    /// this message.
    pub(crate) fn ack_and_wait(
        mut self,
        receiving: &Arc<Receiving>,
    ) -> (BoxFuture<'static, Result<()>>, PendingReceive) {
        let mut next = None;
        let acked = settle_by(
            self.open.take(),
            "ack",
            |_| Settlement::Acknowledge,
            |own, claim, settlement| {
                if !Arc::ptr_eq(own, receiving) {
                    return own.settle(claim, settlement);
                }
                let (answer, pending) = own.settle_and_wait(claim, settlement);
                next = Some(pending);
                answer
            },
        );
        (acked, next.unwrap_or_else(|| receiving.wait(1)))
    }

    /// It failed: the message is delivered again after the [backoff](crate::Receiver::backoff) of the
    /// receiver. If it has failed as often as the receiver [allows](crate::Receiver::max_attempts), it
    /// becomes a dead letter.
    ///
    /// # Errors
    /// As [`Delivery::ack`].
    ///
    /// # Cancel safety
    /// As [`Delivery::ack`].
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(order: redelay::Delivery<i64>) -> redelay::Result<()> {
    /// order.retry().await
    /// # }
    /// ```
    #[doc(alias = "negativeAcknowledge")]
    pub fn retry(mut self) -> BoxFuture<'static, Result<()>> {
        settle(self.open.take(), "retry", Open::retry)
    }

    /// As [`Delivery::retry`], after this time, which is exact to the millisecond.
    ///
    /// # Errors
    /// As [`Delivery::ack`]; and [`Invalid`](crate::ErrorKind::Invalid) for 10^15 ms or more: the message is
    /// then delivered again after the backoff.
    ///
    /// # Cancel safety
    /// As [`Delivery::ack`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(order: redelay::Delivery<i64>) -> redelay::Result<()> {
    /// order.retry_after(Duration::from_secs(60)).await
    /// # }
    /// ```
    pub fn retry_after(mut self, pause: Duration) -> BoxFuture<'static, Result<()>> {
        let open = self.open.take();
        settle_after(open, "retry_after", pause, |after_ms, open| Settlement::Retry {
            after_ms,
            error: std::mem::take(&mut open.error),
        })
    }

    /// The message is delivered again after this time. This is not a failure: [`attempt`](Self::attempt)
    /// stays as it is.
    ///
    /// # Errors
    /// As [`Delivery::retry_after`]. A time that is too long is a failure: the attempt counts.
    ///
    /// # Cancel safety
    /// As [`Delivery::ack`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(order: redelay::Delivery<i64>) -> redelay::Result<()> {
    /// order.snooze(Duration::from_secs(3600)).await // The shop is closed.
    /// # }
    /// ```
    pub fn snooze(mut self, pause: Duration) -> BoxFuture<'static, Result<()>> {
        settle_after(self.open.take(), "snooze", pause, |after_ms, _| Settlement::Snooze { after_ms })
    }

    /// The message is delivered again at once, to this receiver or another one. This is not a failure:
    /// [`attempt`](Self::attempt) stays as it is.
    ///
    /// # Errors
    /// As [`Delivery::ack`].
    ///
    /// # Cancel safety
    /// As [`Delivery::ack`].
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(order: redelay::Delivery<i64>) -> redelay::Result<()> {
    /// order.release().await // This process is about to end.
    /// # }
    /// ```
    pub fn release(mut self) -> BoxFuture<'static, Result<()>> {
        settle(self.open.take(), "release", |_| Settlement::Snooze { after_ms: 0 })
    }

    /// The message becomes a dead letter now, for this reason.
    ///
    /// # Errors
    /// As [`Delivery::ack`].
    ///
    /// # Cancel safety
    /// As [`Delivery::ack`].
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(order: redelay::Delivery<i64>) -> redelay::Result<()> {
    /// order.reject("there is no such customer").await
    /// # }
    /// ```
    #[doc(alias = "rejected")]
    pub fn reject(mut self, reason: impl Display) -> BoxFuture<'static, Result<()>> {
        let error = cut(&reason);
        settle(self.open.take(), "reject", |_| Settlement::Reject { reason: "rejected", error })
    }
}

/// # While it is handled
impl<T> Delivery<T> {
    /// Extends the lease to at least this long from now on; never shortens it. Leases are extended
    /// automatically. Call this only if that is [turned off](crate::Receiver::extend_for), or ends too early.
    ///
    /// # Errors
    /// As [`Delivery::ack`]; and [`Invalid`](crate::ErrorKind::Invalid) for more than a day.
    ///
    /// # Cancel safety
    /// As [`Delivery::ack`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(order: redelay::Delivery<i64>) -> redelay::Result<()> {
    /// order.extend(Duration::from_secs(600)).await?;
    /// # order.ack().await
    /// # }
    /// ```
    pub fn extend(&self, by: Duration) -> BoxFuture<'static, Result<()>> {
        const DAY: Duration = Duration::from_secs(86_400);
        let open = self.open();
        if by > DAY {
            let error = open.queue.op("extend").invalid("a lease of more than a day is not possible");
            return Box::pin(ready(Err(error)));
        }
        let by_ms = time::millis(by).unwrap_or(0);
        let answer = open.receiving.settle(&open.claim, Settlement::Extend { by_ms });
        let span = open.span.settle(&open.queue.keys, self.id, "extend");
        let (receiving, queue) = (open.receiving.clone(), open.queue.clone());
        Box::pin(async move { answered("extend", answer, &receiving, &queue, &span).await })
    }

    /// Awaits a future inside the span `redelay.process` of this delivery, so that what it logs names the
    /// message. The span lasts from the delivery until it is settled. [`Worker`](crate::Worker) does this for
    /// its handlers. Without the feature `tracing`, the future is only awaited.
    ///
    /// # Cancel safety
    /// As the future.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn ship(order: i64) {}
    /// # async fn example(order: redelay::Delivery<i64>) -> redelay::Result<()> {
    /// order.instrument(ship(*order.value())).await;
    /// order.ack().await
    /// # }
    /// ```
    pub fn instrument<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F, T> {
        let span = self.open().span.clone();
        async move { span.run(work).await }
    }

    /// Waits until the work should end. Either the lease is certainly over, by this machine's clock: another
    /// receiver may have the message. Stop then, or continue only with work that may be done twice. Or a
    /// client has asked to cancel the job ([`Job::cancel`](crate::delayed_queue::Job::cancel)): within a
    /// second, or, if the announcement is lost, when the lease is next extended: by the receiver, which does
    /// so every third of the lease until [`extend_for`](crate::Receiver::extend_for) is over, or by hand.
    /// However the delivery ends then, there is no other one, unless a failover loses the request. The future
    /// does not borrow the delivery.
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn ship(order: i64) {}
    /// # async fn example(order: redelay::Delivery<i64>) -> redelay::Result<()> {
    /// let over = order.cancelled();
    /// tokio::select! {
    ///     () = ship(*order.value()) => order.ack().await,
    ///     () = over => Ok(()), // Another process ships it, or it was cancelled.
    /// }
    /// # }
    /// ```
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + use<T> {
        let lease = self.open().claim.lease.clone();
        async move { lease.cancelled().await }
    }

    /// Whether [`cancelled`](Self::cancelled) returns because a client has asked to cancel the job. Such a
    /// delivery has not failed: [`release`](Self::release) ends it without a count, and as it is cancelled,
    /// there is no other one. A [`Worker`](crate::Worker) does so with any outcome but `Done`, and with a
    /// timeout.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(order: redelay::Delivery<i64>) -> redelay::Result<()> {
    /// order.cancelled().await;
    /// if order.is_cancel_requested() { order.release().await } else { order.retry().await }
    /// # }
    /// ```
    #[must_use]
    pub fn is_cancel_requested(&self) -> bool {
        self.open().claim.lease.is_cancelled()
    }

    /// Waits until the server says that this delivery no longer holds. The future does not borrow the
    /// delivery.
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(order: redelay::Delivery<i64>) {
    /// order.lost().await;
    /// println!("{} was given to another receiver", order.id());
    /// # }
    /// ```
    pub fn lost(&self) -> impl Future<Output = ()> + Send + use<T> {
        let lease = self.open().claim.lease.clone();
        async move { lease.lost().await }
    }
}

impl<T> Drop for Delivery<T> {
    fn drop(&mut self) {
        if let Some(mut open) = self.open.take() {
            if open.error.is_empty() {
                "dropped without being settled".clone_into(&mut open.error);
            }
            let settlement = open.retry();
            open.span.processed("dropped");
            drop(open.receiving.settle(&open.claim, settlement));
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Delivery<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("id", &self.id)
            .field("attempt", &self.attempt)
            .field("value", &self.value)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_printed_and_read() {
        let id = MessageId([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]);
        assert_eq!(id.to_string().parse::<MessageId>().unwrap(), id);
        for wrong in ["", "00", &"0".repeat(31), &"0".repeat(33), &"+f".repeat(16), &"é".repeat(16)] {
            assert!(wrong.parse::<MessageId>().is_err(), "{wrong}");
        }
    }
}
