//! Offers of jobs: payloads with ids of the user's, or throttled ones.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::future::BoxFuture;

use super::check_id;
use super::data::{Data, Expiry};
use super::sending::{IfTaken, Offered, Part, Prepare, PreparedJobs};
use crate::delayed_queue::offer::{self, PlaceOf};
use crate::delayed_queue::store::When;
use crate::delayed_queue::{DelayedQueue, Offer};
use crate::error::Result;
use crate::queue::Op;
use crate::wire::entry::{self, EntryFormat};
use crate::wire::time;

/// Jobs on their way into a delayed queue: payloads with ids. [`Offer::id`] and [`DelayedQueue::offer_jobs`]
/// return it, and [`Offer::throttle`] for a payload without an id.
///
/// **An id is taken while its job is pending, and free once it is due**: when a transfer has moved it, it is
/// a payload like any other, which Java may have taken. [`until_done`](Self::until_done) and
/// [`throttle`](Self::throttle) cover longer times.
///
/// It is a future: awaiting it offers the jobs and returns what happened to them. `Ok` does not mean that the
/// job is stored: see [`Offered`]. One of these says what to do while an id is taken:
///
/// | option | while the id is taken |
/// |---|---|
/// | [`keep`](Self::keep), the default | nothing: the pending job stays as it is |
/// | [`replace`](Self::replace) | the new payload and due time replace the old ones |
/// | [`keep_earliest`](Self::keep_earliest) | the job that is due earlier stays |
/// | [`debounce`](Self::debounce) | as `replace`, but due no later than a maximum wait after the first offer |
///
/// A payload without an id finds no pending job, so only `throttle`, `timeout` and `keep` make sense for it.
///
/// A job that is replaced by another payload costs a scan of the ordered list by the server, from the
/// nearer end: 25 ms for a job at a random place among a million.
///
/// # Errors
/// Those of [`Offer`], and [`Invalid`](crate::ErrorKind::Invalid) for an id without bytes or with more than
/// 255 of them, for a queue that writes [`EntryFormat::Legacy`](crate::delayed_queue::EntryFormat), for a
/// maximum wait below the delay, and for a throttle of zero; for `replace`, `keep_earliest`, `debounce`,
/// `until_done`, a header or an expiry without an id; for a name or value that is no header, and for more
/// than 1,024 bytes of them; for an expiry that is not after the due time, and for `discard_if_expired`
/// without one.
///
/// # Cancel safety
/// Not cancel safe: if the future is dropped, a job may or may not be stored. It is never stored twice.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # use redelay::delayed_queue::Offered;
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> redelay::Result<()> {
/// let orders = client.delayed_queue(&client.blocking_queue("orders", codec::Long));
/// match orders.offer(&17, Duration::from_secs(1800)).id("order-17").await? {
///     Offered::Stored(due) => println!("due at {due:?}"),
///     Offered::Kept(due) => println!("it was there before, and is due at {due:?}"),
///     other => println!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "an offer stores nothing until it is awaited"]
pub struct JobOffer<R = Offered>(State<R>);

enum State<R> {
    /// Not polled yet. `None` after the first poll.
    Prepared(Option<Result<Box<PreparedJobs<R>>>>),
    Running(BoxFuture<'static, Result<R>>),
}

fn entry_of(op: Op<'_>, format: EntryFormat, id: &Bytes, payload: &[u8]) -> Result<Bytes> {
    check_id(op, id)?;
    if format == EntryFormat::Legacy {
        return Err(op.invalid(
            "an id needs an entry of the current format, which has a place for it: use EntryFormat::Current",
        ));
    }
    Ok(entry::pack_job(id, payload))
}

impl Offer {
    /// Gives the payload an id, of 1 to 255 bytes, that is taken until the job is due; with
    /// [`until_done`](JobOffer::until_done), until it is done. [`JobOffer`] says more.
    ///
    /// Call `id` before the other options: `.id(…).replace()`, `.id(…).throttle(…)`. A `JobOffer` has no
    /// `id`.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(orders: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// orders.offer(&17, Duration::from_secs(1800)).id("order-17").await?;
    /// orders.job("order-17").cancel().await?; // It was paid.
    /// # Ok(())
    /// # }
    /// ```
    pub fn id(self, id: impl AsRef<[u8]>) -> JobOffer {
        let id = Bytes::copy_from_slice(id.as_ref());
        self.into_job(|prepared| {
            let op = prepared.place.queue.op(prepared.verb);
            let payload = entry::payload(&prepared.entry).unwrap_or_default();
            let entry = entry_of(op, prepared.format, &id, payload)?;
            Ok((id, entry))
        })
    }

    /// For this time after this offer, no equal payload that is also throttled is accepted, whether or not
    /// this one is still pending: [`Offered::Throttled`]. Offers without `throttle` are not held back.
    /// Payloads are equal if their bytes are.
    ///
    /// For a throttle by an id, call [`id`](Self::id) first: see [`JobOffer::throttle`], which also says what
    /// ends one.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(alerts: redelay::DelayedQueue<String>) -> redelay::Result<()> {
    /// // The same alert at most once an hour.
    /// alerts.offer("disk full", Duration::ZERO).throttle(Duration::from_secs(3600)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn throttle(self, window: Duration) -> JobOffer {
        self.into_job(|prepared| Ok((Bytes::new(), prepared.entry.clone()))).throttle(window)
    }

    fn into_job(self, job: impl FnOnce(&offer::Prepared) -> Result<(Bytes, Bytes)>) -> JobOffer {
        JobOffer(State::Prepared(self.into_prepared().map(|prepared| {
            let prepared = prepared?;
            let (id, entry) = job(&prepared)?;
            let offer::Prepared { place, place_of, verb, when, time, timeout, .. } = prepared;
            let job = Prepare { number: 0, time, id, entry };
            let place = place_of.map_or(place, |place_of| place_of(job.key()));
            Ok(Box::new(PreparedJobs {
                parts: vec![Part { place, jobs: vec![job] }],
                verb,
                when,
                timeout,
                if_taken: IfTaken::Keep,
                throttle: None,
                data: Data::default(),
                result: |mut offered| offered.swap_remove(0),
            }))
        })))
    }
}

/// # Offer jobs
impl<T: 'static> DelayedQueue<T> {
    /// Offers many payloads with ids, each with its own delay, in calls of 1,000; or of 16, if they may
    /// replace others. Jobs are stored in order: if one has no room, those before it are stored. The options
    /// of [`JobOffer`] apply to all of them, and the results are in the same order. Of two jobs with one id,
    /// the first counts as pending for the second.
    ///
    /// # Errors
    /// Those of [`JobOffer`], and [`Invalid`](crate::ErrorKind::Invalid) for more than 500,000 jobs.
    /// Everything is encoded and checked before anything is sent. If a call fails after others have stored
    /// their jobs, it is [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown), and says how many were
    /// offered.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, some of the jobs may be stored. None is stored twice.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(orders: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// let half_an_hour = Duration::from_secs(1800);
    /// let offered = orders.offer_jobs([("order-17", &17, half_an_hour), ("order-18", &18, half_an_hour)]).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn offer_jobs<'a, I: AsRef<[u8]>>(
        &self,
        jobs: impl IntoIterator<Item = (I, &'a T, Duration)>,
    ) -> JobOffer<Vec<Offered>>
    where
        T: 'a,
    {
        let op = self.queue.op("offer_jobs");
        let job = |(number, (id, value, delay)): (usize, (I, &T, Duration))| {
            let id = Bytes::copy_from_slice(id.as_ref());
            let payload = op.encode(&*self.codec, value)?;
            let time = time::millis(delay).map_err(|why| op.invalid(why))?;
            Ok(Prepare { number, time, entry: entry_of(op, self.format, &id, &payload)?, id })
        };
        let prepare = || {
            let jobs = jobs.into_iter().enumerate().map(job).collect::<Result<Vec<_>>>()?;
            op.check_count(jobs.len())?;
            Ok(Box::new(PreparedJobs {
                parts: vec![Part { place: self.place(), jobs }],
                verb: op.verb(),
                when: When::After,
                timeout: None,
                if_taken: IfTaken::Keep,
                throttle: None,
                data: Data::default(),
                result: |offered| offered,
            }))
        };
        JobOffer(State::Prepared(Some(prepare())))
    }
}

/// # The same id again
impl<R> JobOffer<R> {
    /// Each job goes where its id belongs.
    pub(crate) fn among(self, place_of: &PlaceOf) -> Self {
        self.with(|prepared| {
            let mut parts: Vec<Part> = Vec::new();
            for job in prepared.parts.drain(..).flat_map(|part| part.jobs) {
                let place = place_of(job.key());
                match parts.iter_mut().find(|part| Arc::ptr_eq(&part.place.queue, &place.queue)) {
                    Some(part) => part.jobs.push(job),
                    None => parts.push(Part { place, jobs: vec![job] }),
                }
            }
            prepared.parts = parts;
        })
    }

    fn with(mut self, set: impl FnOnce(&mut PreparedJobs<R>)) -> Self {
        if let State::Prepared(Some(Ok(prepared))) = &mut self.0 {
            set(prepared);
        }
        self
    }

    /// A pending job of this id stays as it is. This is the default.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(orders: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// orders.offer(&17, Duration::from_secs(60)).id("order-17").keep().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn keep(self) -> Self {
        self.with(|job| job.if_taken = IfTaken::Keep)
    }

    /// This job replaces a pending one of its id. Call [`Offer::id`] before it.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(orders: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// orders.offer(&17, Duration::from_secs(60)).id("order-17").replace().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn replace(self) -> Self {
        self.with(|job| job.if_taken = IfTaken::Replace)
    }

    /// This job replaces a pending one of its id if this job is due earlier.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(orders: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// orders.offer(&17, Duration::from_secs(60)).id("order-17").keep_earliest().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn keep_earliest(self) -> Self {
        self.with(|job| job.if_taken = IfTaken::KeepEarliest)
    }

    /// This job replaces a pending one of its id, and is due no later than `max_wait` after the first of them
    /// was offered. So a burst of offers becomes one job, with the last payload.
    ///
    /// The first offer is [`Offered::Stored`], and each later one is [`Offered::Replaced`] while the job is
    /// pending. An offer after that starts a new job, with its own maximum wait: [`Offered::Stored`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(index: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// // 5 s after the last change, and a minute after the first one at the latest.
    /// index.offer(&17, Duration::from_secs(5)).id("page-17").debounce(Duration::from_secs(60)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn debounce(self, max_wait: Duration) -> Self {
        self.with(|job| job.if_taken = IfTaken::Debounce(max_wait))
    }

    /// For this time after this offer, no other offer that is also throttled is accepted for this id, whether
    /// or not this job is still pending: [`Offered::Throttled`]. Offers without `throttle` are not held back,
    /// and start no such time.
    ///
    /// The time starts when the job is stored, or replaces another one. A throttled offer that finds its id
    /// taken by an offer without `throttle` does what the other option says: with [`keep`](Self::keep), it is
    /// [`Offered::Kept`], and starts no time. Call [`Offer::id`] before it. Nothing ends the time early:
    /// neither [`Job::cancel`](crate::delayed_queue::Job::cancel) nor
    /// [`DelayedQueue::clear`](crate::DelayedQueue::clear).
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(mails: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// // One mail an hour.
    /// mails.offer(&17, Duration::ZERO).id("user-17").throttle(Duration::from_secs(3600)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn throttle(self, window: Duration) -> Self {
        self.with(|job| job.throttle = Some(window))
    }

    /// **The id is taken until the job is done**: until its message is acknowledged, removed or cancelled,
    /// not only until it is due. It stays taken while the payload is ready, while a handler works on it,
    /// while it waits for a retry, and as a dead letter. Without this option it is free once the job is due.
    ///
    /// While the id is taken, an offer of it answers, whether or not it has this option itself:
    ///
    /// | the job is | [`keep`](Self::keep) and [`keep_earliest`](Self::keep_earliest) | [`replace`](Self::replace) and [`debounce`](Self::debounce) |
    /// |---|---|---|
    /// | pending | as without this option | as without this option |
    /// | ready, or a dead letter | [`Offered::Kept`] | [`Offered::Replaced`]: it is removed, and the new job is pending |
    /// | waiting for a retry | [`Offered::Kept`]; `keep_earliest` replaces it if the new job is due before the retry | [`Offered::Replaced`] |
    /// | in the hands of a handler | [`Offered::Kept`], and [`Offered::Running`] once it is cancelled | [`Offered::Running`]: nothing is stored |
    ///
    /// **What takes payloads without a receiver ends the job**: `take`, and whatever Java does with a
    /// payload. The next offer of the id finds it free, and so does a sweep, usually within a minute.
    /// Payloads that are equal are interchangeable: of several such jobs, the one that was due first is the
    /// first to be done.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::delayed_queue::Offered;
    /// # async fn example(callbacks: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// let offer = callbacks.offer(&17, Duration::from_secs(60)).id("merchant-17").until_done();
    /// if let Offered::Kept(_) = offer.await? {
    ///     println!("the callback of this merchant is not done yet");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn until_done(self) -> Self {
        self.with(|job| job.data.holds = true)
    }
}

/// # What travels with it
impl<R> JobOffer<R> {
    /// Sends a header with the job: what the handler reads by
    /// [`Context::header`](crate::worker::Context::header) or [`Delivery::header`](crate::Delivery::header),
    /// for example the id of a trace. Call [`Offer::id`] before it. The list of ready payloads has nothing
    /// but payloads, so headers wait beside it, under the SHA-1 of the payload and with the id. A payload
    /// without an id has none.
    ///
    /// A name has 1 to 255 letters of ASCII, digits, `-`, `_` or `.`; a value is any text. All of them
    /// together have up to 1,024 bytes, with 3 for the lengths of each. A second header of the same name
    /// replaces the first.
    ///
    /// What takes payloads without a receiver sees no headers: `take`, `poll` and Java. Payloads that are
    /// equal are interchangeable: the first one to be delivered has the headers of the one that was due
    /// first.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(orders: redelay::DelayedQueue<i64>, trace: &str) -> redelay::Result<()> {
    /// orders.offer(&17, Duration::from_secs(60)).id("order-17").header("traceparent", trace).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(|job| job.data.set_header(name.into(), value.into()))
    }
}

/// # Expiry and timeout
impl<R> JobOffer<R> {
    /// If no receiver has begun with the job this long after the offer, it becomes a dead letter with the
    /// reason `expired`; or is discarded, with [`discard_if_expired`](Self::discard_if_expired). Call
    /// [`Offer::id`] before it.
    ///
    /// That happens when a receiver finds it: until then, it counts as ready. It is counted
    /// ([`ReceivingStats::expired`](crate::stats::ReceivingStats::expired)), and reported by the event
    /// `redelay.jobs.expired`. A job that has begun does not expire: its retries go on. What takes payloads
    /// without a receiver, `take`, `poll` and Java, takes expired ones, too. The offer is refused if the job
    /// would expire when it is due, or before; one that is rescheduled behind its expiry expires when it is
    /// due.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(calls: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// // In a minute, and not if all handlers are busy for an hour.
    /// let (delay, most) = (Duration::from_secs(60), Duration::from_secs(3660));
    /// calls.offer(&17, delay).id("call-17").expires_after(most).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn expires_after(self, duration: Duration) -> Self {
        self.with(|job| job.data.expires = Some(Expiry::After(duration)))
    }

    /// The same at a time, by the server's clock: see [`expires_after`](Self::expires_after).
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::{Duration, SystemTime};
    /// # async fn example(calls: redelay::DelayedQueue<i64>, midnight: SystemTime) -> redelay::Result<()> {
    /// calls.offer(&17, Duration::from_secs(60)).id("call-17").expires_at(midnight).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn expires_at(self, time: impl Into<SystemTime>) -> Self {
        self.with(|job| job.data.expires = Some(Expiry::At(time.into())))
    }

    /// A job that [expires](Self::expires_after) is deleted, and is no dead letter.
    ///
    /// **Use it only if every consumer of the queue is a receiver or a worker.** If `take` or Java takes the
    /// payload, its expiry stays behind until a sweep removes it, usually for less than a minute. An equal
    /// payload that comes in that time is taken for it, and deleted.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(calls: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// let call = calls.offer(&17, Duration::ZERO).id("call-17").expires_after(Duration::from_secs(60));
    /// call.discard_if_expired().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn discard_if_expired(self) -> Self {
        self.with(|job| job.data.is_discarded = true)
    }

    /// Uses this timeout for each call instead of the client's command timeout, as [`Offer::timeout`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(orders: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// // In an HTTP handler that must answer soon.
    /// orders.offer(&17, Duration::from_secs(60)).id("order-17").timeout(Duration::from_millis(200)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|job| job.timeout = Some(timeout))
    }
}

impl<R: 'static> Future for JobOffer<R> {
    type Output = Result<R>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let State::Prepared(prepared) = &mut self.0 {
            match prepared.take().expect("an offer that returned an error is not polled again") {
                Ok(prepared) => self.0 = State::Running(Box::pin(prepared.offer())),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        match &mut self.0 {
            State::Running(running) => running.as_mut().poll(context),
            State::Prepared(_) => Poll::Pending,
        }
    }
}

impl<R> fmt::Debug for JobOffer<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobOffer").finish_non_exhaustive()
    }
}
