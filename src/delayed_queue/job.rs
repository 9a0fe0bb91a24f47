//! Jobs: pending payloads with ids of the user's.

mod data;
mod offer;
mod sending;
mod state;

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::Serialize;

use super::DelayedQueue;
use super::canceller::Cancelled;
use super::store::When;
use crate::conn::Reply;
use crate::error::{Error, Result};
use crate::queue::{AsValue, Op};
use crate::scripts;
use crate::wire::{entry, time};
pub use offer::JobOffer;
pub use sending::Offered;
pub use state::JobState;

/// A job that is pending. [`Job::get`] returns it.
///
/// # Examples
/// ```no_run
/// # async fn example(orders: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
/// if let Some(job) = orders.job("order-17").get().await? {
///     println!("{} is due at {:?}", job.value, job.due);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct PendingJob<T> {
    /// The value.
    pub value: T,
    /// When it is due, by the server's clock.
    #[serde(serialize_with = "time::in_epoch_ms")]
    pub due: SystemTime,
    /// When its id was taken: when this job was stored, or the first of the jobs that it has replaced.
    #[serde(serialize_with = "time::in_epoch_ms")]
    pub first_offered: SystemTime,
}

/// One id of a delayed queue. [`DelayedQueue::job`] returns this handle, whether or not such a job exists.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # async fn example(orders: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
/// let job = orders.job("order-17");
/// if !job.reschedule(Duration::from_secs(60)).await? {
///     println!("too late: it is due, or was cancelled");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Job<T> {
    queue: DelayedQueue<T>,
    id: Bytes,
}

fn check_id(op: Op<'_>, id: &[u8]) -> Result<()> {
    match id.len() {
        1..=255 => Ok(()),
        0 => Err(op.invalid("an id needs 1 to 255 bytes; this one has none")),
        length => Err(op.invalid(format!("an id needs 1 to 255 bytes; this one has {length}"))),
    }
}

impl<T> fmt::Debug for Job<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("queue", &self.queue).field("id", &self.id).finish()
    }
}

/// # Jobs by id
impl<T: 'static> DelayedQueue<T> {
    /// The job of this id. No command is sent, and the job need not exist.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// let cancelled = orders.job("order-17").cancel().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn job(&self, id: impl AsRef<[u8]>) -> Job<T> {
        Job { queue: self.clone(), id: Bytes::copy_from_slice(id.as_ref()) }
    }

    /// Removes the jobs of these ids, as [`Job::cancel`] does. Returns what has become of each, in their
    /// order; of an id that is there twice, the second one is [`NotFound`](Cancelled::NotFound).
    ///
    /// Up to 32 are found one by one, as in [`Job::cancel`]. More of them share one pass through the ordered
    /// list, in calls of about 10 ms (30 ms among a million), so that the server serves others in between.
    ///
    /// # Errors
    /// As [`Job::cancel`]. If a call fails after others have cancelled jobs, it is
    /// [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown), and says how many were cancelled: call it again
    /// for the rest.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, some of the jobs may be cancelled.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// let cancelled = orders.cancel_all(["order-17", "order-18"]).await?;
    /// println!("{} were cancelled", cancelled.iter().filter(|one| one.is_removed()).count());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cancel_all<I: AsRef<[u8]>>(
        &self,
        ids: impl IntoIterator<Item = I>,
    ) -> Result<Vec<Cancelled>> {
        let cancelled = self.cancel_each(ids).await;
        cancelled.map_err(|(error, cancelled)| error.after_parts(cancelled, "jobs were cancelled"))
    }

    /// Whether `cancel_all` may be called with this id.
    pub(crate) fn check_cancel(&self, id: &[u8]) -> Result<()> {
        check_id(self.queue.op("cancel_all"), id)
    }

    /// The same as `cancel_all`. An error says how many were cancelled before.
    pub(crate) async fn cancel_each<I: AsRef<[u8]>>(
        &self,
        ids: impl IntoIterator<Item = I>,
    ) -> std::result::Result<Vec<Cancelled>, (Error, usize)> {
        let op = self.queue.op("cancel_all");
        let ids: Vec<_> = ids.into_iter().map(|id| Bytes::copy_from_slice(id.as_ref())).collect();
        let checked = ids.iter().try_for_each(|id| check_id(op, id)).and_then(|()| op.ensure_open());
        checked.map_err(|error| (error, 0))?;
        let (mut answers, mut cancelled) = (HashMap::new(), 0);
        let result = self.canceller.all(&ids, |id, what| {
            cancelled += usize::from(what != Cancelled::NotFound);
            answers.insert(id.clone(), what);
        });
        result.await.map_err(|error| (op.failed(error), cancelled))?;
        Ok(ids.iter().map(|id| answers.remove(id).unwrap_or(Cancelled::NotFound)).collect())
    }
}

/// # Look
impl<T: 'static> Job<T> {
    /// Reads the job. `None` if it is not pending.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for an id without bytes or with more than 255 of them.
    /// [`Decode`](crate::ErrorKind::Decode); the job stays. [`Unavailable`](crate::ErrorKind::Unavailable),
    /// or [`Refused`](crate::ErrorKind::Refused) for a key of another type or a missing permission.
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// let due = orders.job("order-17").get().await?.map(|job| job.due);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get(&self) -> Result<Option<PendingJob<T>>> {
        let op = self.op("job().get")?.reading();
        let Some((due, first_offered, entry)) = self.read(op).await? else { return Ok(None) };
        let payload = entry::payload_in(&entry).unwrap_or_default();
        let value = op.decode(&*self.queue.codec, payload)?;
        Ok(Some(PendingJob { value, due, first_offered }))
    }

    /// Whether the job is pending.
    ///
    /// # Errors
    /// As [`Job::get`], without `Decode`.
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// let is_pending = orders.job("order-17").exists().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn exists(&self) -> Result<bool> {
        let op = self.op("job().exists")?.reading();
        Ok(self.read(op).await?.is_some())
    }

    async fn read(&self, op: Op<'_>) -> Result<Option<(SystemTime, SystemTime, Bytes)>> {
        let keys = &self.queue.queue.keys;
        let call = scripts::READ_JOB.on(&[keys.timeout_set(), &keys.jobs()]).arg(self.id.clone());
        let reply = op.run(call.only_reads()).await?;
        if reply == Reply::Nil {
            return Ok(None);
        }
        let [due, offered, entry] = op.parts(reply)?;
        let at = |time| Ok::<_, crate::Error>(time::from_epoch_millis(op.int(time)?.unsigned_abs()));
        let entry = op.optional_bytes(entry)?.unwrap_or_default();
        Ok(Some((at(due)?, at(offered)?, entry)))
    }
}

/// # Change
impl<T: 'static> Job<T> {
    /// Removes the job, if it is pending; or, if it holds its id, whatever its state. If a handler has it,
    /// the message is removed when that handler returns or its lease ends, and is not delivered again; a
    /// handler that acknowledges it has done the job.
    ///
    /// O(log n), and one scan of the ordered list by the server, from the nearer end; or of the target,
    /// if it holds its id and its payload is ready. While it runs, further cancels of this queue handle and
    /// its clones wait, and then share their scans as in [`DelayedQueue::cancel_all`].
    ///
    /// # Errors
    /// As [`Job::get`], without `Decode`; and [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) if the
    /// reply was lost: a retry does no harm, but may answer `NotFound`.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the job may or may not be cancelled.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// use redelay::delayed_queue::Cancelled;
    ///
    /// match orders.job("order-17").cancel().await? {
    ///     Cancelled::Removed => println!("cancelled"),
    ///     Cancelled::Requested => println!("a handler has it"),
    ///     _ => println!("too late: it is due, or was cancelled before"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cancel(&self) -> Result<Cancelled> {
        let op = self.op("job().cancel")?;
        op.ensure_open()?;
        self.queue.canceller.one(self.id.clone()).await.map_err(|error| op.failed(error))
    }

    /// Gives the job another delay, counted from now: if it is pending; or, if it holds its id, also while it
    /// waits for a retry. Returns whether that was so. O(log n).
    ///
    /// # Errors
    /// As [`Job::cancel`], and [`Invalid`](crate::ErrorKind::Invalid) for a delay of 10^15 ms or more.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the job may or may not be rescheduled.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(orders: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// orders.job("order-17").reschedule(Duration::from_secs(60)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn reschedule(&self, delay: Duration) -> Result<bool> {
        let op = self.op("job().reschedule")?;
        let delay = time::millis(delay).map_err(|why| op.invalid(why))?;
        self.set_due(op, When::After, delay).await
    }

    /// Gives the job another due time, by the server's clock, as [`Job::reschedule`] does. O(log n).
    ///
    /// # Errors
    /// As [`Job::reschedule`].
    ///
    /// # Cancel safety
    /// As [`Job::reschedule`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::{Duration, SystemTime};
    /// # async fn example(orders: redelay::DelayedQueue<i64>, midnight: SystemTime) -> redelay::Result<()> {
    /// orders.job("order-17").reschedule_at(midnight).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn reschedule_at(&self, at: impl Into<SystemTime>) -> Result<bool> {
        let op = self.op("job().reschedule_at")?;
        let at = time::epoch_millis(at.into()).map_err(|why| op.invalid(why))?;
        self.set_due(op, When::At, at).await
    }

    /// Offers this payload with the id of the job: it replaces a pending job, and is stored otherwise. The
    /// same as [`Offer::id`](crate::delayed_queue::Offer::id) with [`JobOffer::replace`].
    ///
    /// # Errors
    /// Those of [`JobOffer`].
    ///
    /// # Cancel safety
    /// As [`JobOffer`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(orders: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// orders.job("order-17").replace(&18, Duration::from_secs(60)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn replace(&self, value: impl AsValue<T>, delay: Duration) -> JobOffer {
        self.queue.offer(value, delay).id(&self.id).replace()
    }

    /// Makes the job due now, as [`Job::reschedule`] does. O(log n).
    ///
    /// # Errors
    /// As [`Job::reschedule`].
    ///
    /// # Cancel safety
    /// As [`Job::reschedule`].
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// orders.job("order-17").run_now().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run_now(&self) -> Result<bool> {
        let op = self.op("job().run_now")?;
        self.set_due(op, When::After, 0).await
    }

    async fn set_due(&self, op: Op<'_>, when: When, time: u64) -> Result<bool> {
        let call = scripts::RESCHEDULE_JOB.of(&self.queue.queue.keys, None);
        let call = call.arg(when.base()).number(time).arg(self.id.clone());
        let reply = op.run(call).await.inspect_err(|error| op.on_lost(error))?;
        if reply == Reply::Nil {
            return Ok(false);
        }
        let [_due, head] = op.parts(reply)?;
        op.on_head(op.optional_score(head)?);
        Ok(true)
    }
}

/// # State
impl<T: 'static> Job<T> {
    /// The state of the job. If it does not hold its id ([`JobOffer::until_done`]), it is pending, or there
    /// is none.
    ///
    /// O(log n); and if it holds its id and its payload is ready, one scan of the target by the server.
    ///
    /// # Errors
    /// As [`Job::get`], without `Decode`.
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(callbacks: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// use redelay::delayed_queue::JobState;
    ///
    /// if let Some(JobState::Waiting { retry_at, error, .. }) = callbacks.job("merchant-17").state().await? {
    ///     println!("tried again at {retry_at:?}, because: {error}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn state(&self) -> Result<Option<JobState>> {
        let op = self.op("job().state")?.reading();
        let mut states = self.queue.states(op, std::slice::from_ref(&self.id)).await?;
        Ok(states.pop().flatten())
    }

    fn op(&self, verb: &'static str) -> Result<Op<'_>> {
        let op = self.queue.queue.op(verb);
        check_id(op, &self.id)?;
        Ok(op)
    }
}
