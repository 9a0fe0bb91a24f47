//! Offers of jobs: payloads with ids of the user's, or throttled ones.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::future::{BoxFuture, join_all};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::check_id;
use super::data::{Data, Expiry};
use crate::conn::Reply;
use crate::delayed_queue::offer::{self, Place, PlaceOf};
use crate::delayed_queue::store::When;
use crate::delayed_queue::{DelayedQueue, Offer};
use crate::error::{Error, Result};
use crate::queue::Op;
use crate::scripts::{self, REMEMBERED_MS};
use crate::telemetry::events::Span;
use crate::wire::entry::{self, EntryFormat};
use crate::wire::keys::{Keys, MessageKeys};
use crate::wire::time;

/// The most jobs of one call.
const CALL: usize = 1000;
/// The most jobs of one call that may replace others, each with a scan of the ordered list.
const REPLACING: usize = 16;

/// Jobs on their way into a delayed queue: payloads with ids. [`Offer::id`] and [`DelayedQueue::offer_jobs`]
/// return it, and [`Offer::throttle`] for a payload without an id.
///
/// **An id is taken while its job is pending, and free once it is due**: when a transfer has moved it, it is
/// a payload like any other, which Java may have taken. [`throttle`](Self::throttle) covers longer times.
///
/// It is a future: awaiting it offers the jobs and returns what happened to them. One of these says what to
/// do while an id is taken:
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
/// A job that is replaced by another payload costs a scan of the ordered list by the server, from the newest
/// entry on: 25 ms for a job at a random place among a million.
///
/// # Errors
/// Those of [`Offer`], and [`Invalid`](crate::ErrorKind::Invalid) for an id without bytes or with more than
/// 255 of them, for a queue that writes [`EntryFormat::Legacy`](crate::delayed_queue::EntryFormat), for a
/// maximum wait below the delay, for a throttle of zero, and for `replace`, `keep_earliest` or `debounce`
/// without an id.
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

/// What happened to a job that was offered. The times are by the server's clock.
///
/// # Examples
/// ```
/// # fn example(offered: redelay::delayed_queue::Offered) {
/// if let redelay::delayed_queue::Offered::Throttled(until) = offered {
///     println!("too many; the next one is accepted at {until:?}");
/// }
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Offered {
    /// It is stored, and due at this time.
    Stored(#[serde(serialize_with = "time::in_epoch_ms")] SystemTime),
    /// The id was taken, and the pending job stays. This is its due time.
    Kept(#[serde(serialize_with = "time::in_epoch_ms")] SystemTime),
    /// The id was taken, and the new job has replaced the old one. This is the due time.
    Replaced(#[serde(serialize_with = "time::in_epoch_ms")] SystemTime),
    /// A receiver has the job that holds the id. That goes on, and this offer is not stored.
    Running,
    /// Another job was accepted recently. The next one is accepted from this time on.
    Throttled(#[serde(serialize_with = "time::in_epoch_ms")] SystemTime),
}

enum State<R> {
    /// Not polled yet. `None` after the first poll.
    Prepared(Option<Result<Box<Prepared<R>>>>),
    Running(BoxFuture<'static, Result<R>>),
}

/// Jobs that are ready to be sent.
struct Prepared<R> {
    parts: Vec<Part>,
    verb: &'static str,
    when: When,
    timeout: Option<Duration>,
    policy: Policy,
    throttle: Option<Duration>,
    data: Data,
    /// What the future returns.
    result: fn(Vec<Offered>) -> R,
}

/// Those that go to one place.
struct Part {
    place: Place,
    jobs: Vec<Prepare>,
}

/// One of them.
struct Prepare {
    /// Its place in the result.
    number: usize,
    time: u64,
    /// Empty for a payload without an id.
    id: Bytes,
    entry: Bytes,
}

/// What to do while an id is taken.
#[derive(Clone, Copy, Debug)]
enum Policy {
    Keep,
    Replace,
    KeepEarliest,
    Debounce(Duration),
}

impl Policy {
    fn word(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Replace => "replace",
            Self::KeepEarliest => "earliest",
            Self::Debounce(_) => "debounce",
        }
    }

    /// The option that sets a policy about a pending job, which only an id can find.
    fn needs_id(self) -> Option<&'static str> {
        match self {
            Self::Keep => None,
            Self::Replace => Some("replace"),
            Self::KeepEarliest => Some("keep_earliest"),
            Self::Debounce(_) => Some("debounce"),
        }
    }
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
    /// Gives the payload an id, of 1 to 255 bytes. An id is taken while its job is pending, and free once it
    /// is due: see [`JobOffer`].
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
            Ok(Box::new(Prepared {
                parts: vec![Part { place, jobs: vec![job] }],
                verb,
                when,
                timeout,
                policy: Policy::Keep,
                throttle: None,
                data: Data::default(),
                result: |offered| offered[0],
            }))
        })))
    }
}

/// # Offer jobs
impl<T: 'static> DelayedQueue<T> {
    /// Offers many payloads with ids, each with its own delay, in calls of 1,000; or of 16, if they may
    /// replace others. Each call stores all of its jobs or none. The options of [`JobOffer`] apply to all of
    /// them, and the results are in the same order. Of two jobs with one id, the first counts as pending for
    /// the second.
    ///
    /// # Errors
    /// Those of [`JobOffer`]. Everything is encoded and checked before anything is sent. If a call fails
    /// after others have stored their jobs, it is [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown), and
    /// says how many were offered.
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
            Ok(Box::new(Prepared {
                parts: vec![Part { place: self.place(), jobs }],
                verb: op.verb(),
                when: When::After,
                timeout: None,
                policy: Policy::Keep,
                throttle: None,
                data: Data::default(),
                result: |offered| offered,
            }))
        };
        JobOffer(State::Prepared(Some(prepare())))
    }
}

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

    fn with(mut self, set: impl FnOnce(&mut Prepared<R>)) -> Self {
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
        self.with(|job| job.policy = Policy::Keep)
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
        self.with(|job| job.policy = Policy::Replace)
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
        self.with(|job| job.policy = Policy::KeepEarliest)
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
        self.with(|job| job.policy = Policy::Debounce(max_wait))
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

    /// **The id is taken until the job is done**: until its message is acknowledged, removed or cancelled, not
    /// only until it is due. It stays taken while the payload is ready, while a handler works on it, while it
    /// waits for a retry, and as a dead letter. Without this option it is free once the job is due.
    ///
    /// While the id is taken, an offer of it answers, whether or not it has this option itself:
    ///
    /// | the job is | [`keep`](Self::keep) and [`keep_earliest`](Self::keep_earliest) | [`replace`](Self::replace) and [`debounce`](Self::debounce) |
    /// |---|---|---|
    /// | pending | as without this option | as without this option |
    /// | ready, or a dead letter | [`Offered::Kept`] | [`Offered::Replaced`]: it is removed, and the new job is pending |
    /// | waiting for a retry | [`Offered::Kept`]; `keep_earliest` replaces it if the new job is due before the retry | [`Offered::Replaced`] |
    /// | in the hands of a handler | [`Offered::Kept`] | [`Offered::Running`]: nothing is stored |
    ///
    /// **What takes payloads without a receiver ends the job**: `take`, and whatever Java does with a payload.
    /// The id is found to be free then by the next offer of it, or within a minute. Payloads that are equal are
    /// interchangeable: of several such jobs, the one that was due first is the first to be done.
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

    /// Sends a header with the job: what the handler reads by [`Context::header`](crate::worker::Context::header)
    /// or [`Delivery::header`](crate::Delivery::header), for example the id of a trace. Call [`Offer::id`]
    /// before it: headers wait beside the queue, under what the id and the payload have in common, so a payload
    /// without an id has none, and what Java offers has none.
    ///
    /// A name has 1 to 255 letters of ASCII, digits, `-`, `_` or `.`; a value is any text. All of them together have
    /// up to 1,024 bytes, with 3 for the lengths of each. A second header of the same name replaces the first.
    ///
    /// What takes payloads without a receiver sees no headers: `take`, `poll` and Java. Payloads that are equal
    /// are interchangeable: the first one to be delivered has the headers of the one that was due first.
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

    /// Drops the job if no receiver has begun with it this long after the offer. Call [`Offer::id`] before it.
    ///
    /// It is dropped when a receiver finds it: it is counted
    /// ([`ReceivingStats::expired`](crate::stats::ReceivingStats::expired)), and reported by the event
    /// `redelay.jobs.expired`. A job that has begun does not expire: its retries go on. What takes payloads without
    /// a receiver, `take`, `poll` and Java, takes expired ones, too. The offer is refused if the job would expire
    /// before it is due; a job that is rescheduled behind its expiry is dropped when it is due.
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

    /// If the job expires, it becomes a dead letter with the reason `expired`, instead of being dropped.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(calls: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// let call = calls.offer(&17, Duration::ZERO).id("call-17").expires_after(Duration::from_secs(60));
    /// call.dead_letter_if_expired().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn dead_letter_if_expired(self) -> Self {
        self.with(|job| job.data.is_kept = true)
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

impl Prepare {
    /// What decides where it goes: its id, or its payload, so that equal ones are throttled together.
    fn key(&self) -> &[u8] {
        if self.id.is_empty() { entry::payload(&self.entry).unwrap_or_default() } else { &self.id }
    }

    fn throttle(&self, keys: &Keys) -> Bytes {
        if self.id.is_empty() {
            // The processes of a service must agree on it, so it is a hash that is the same everywhere.
            keys.throttle("payload", &Sha256::digest(entry::payload(&self.entry).unwrap_or_default()))
        } else {
            keys.throttle("id", &self.id)
        }
    }
}

/// What the options come to: times in milliseconds, and what travels with each job.
struct Limits {
    max_wait: u64,
    throttle: u64,
    data: Bytes,
}

impl<R> Prepared<R> {
    async fn offer(self) -> Result<R> {
        let Some(first) = self.parts.first() else { return Ok((self.result)(Vec::new())) };
        let op = first.place.queue.op(self.verb);
        op.ensure_open()?;
        let limits = self.limits(op)?;
        let count = self.parts.iter().map(|part| part.jobs.len()).sum();
        let mut offered = vec![None; count];
        // To the end, even if one fails: of a part that is dropped, no caller learns what is stored.
        let results = join_all(self.parts.iter().map(|part| self.offer_part(part, &limits))).await;
        let (mut stored, mut failed) = (0, None::<Error>);
        for (part, (results, error)) in self.parts.iter().zip(results) {
            stored += results.len();
            // Of what is unknown, no other error may say that it is not stored.
            failed = match (failed, error) {
                (Some(known), Some(error)) if error.is_outcome_unknown() && !known.is_outcome_unknown() => {
                    Some(error)
                }
                (failed, error) => failed.or(error),
            };
            for (job, result) in part.jobs.iter().zip(results) {
                offered[job.number] = Some(result);
            }
        }
        match failed {
            Some(error) => Err(error.after_parts(stored, "jobs were offered")),
            None => Ok((self.result)(offered.into_iter().flatten().collect())),
        }
    }

    fn limits(&self, op: Op<'_>) -> Result<Limits> {
        let jobs = || self.parts.iter().flat_map(|part| &part.jobs);
        let millis = |duration| time::millis(duration).map_err(|why| op.invalid(why));
        let throttle = match self.throttle {
            Some(Duration::ZERO) => {
                return Err(op.invalid("throttle(0) holds nothing back; use 1 ms or more, or leave it out"));
            }
            window => millis(window.unwrap_or_default())?,
        };
        if jobs().any(|job| job.id.is_empty()) {
            let why = "and this payload has no id: call id(…) on the offer first";
            if let Some(option) = self.policy.needs_id() {
                return Err(op.invalid(format!("{option}() is about a pending job of the same id, {why}")));
            } else if let Some(option) = self.data.needs_id() {
                return Err(op.invalid(format!("{option}() is said of the id of a job, {why}")));
            }
        }
        let data = self.data.bytes().map_err(|why| op.invalid(why))?;
        let is_before = |at: u64| jobs().any(|job| at < job.time);
        let expires_early = match (self.data.expires, self.when) {
            (Some(Expiry::After(after)), When::After) => is_before(millis(after)?),
            (Some(Expiry::At(at)), When::At) => {
                is_before(time::epoch_millis(at).map_err(|why| op.invalid(why))?)
            }
            _ => false,
        };
        if expires_early {
            return Err(
                op.invalid("the job would expire before it is due: raise expires_after(…) or expires_at(…)")
            );
        }
        let mut max_wait = 0;
        if let Policy::Debounce(most) = self.policy {
            max_wait = millis(most)?;
            let latest = jobs().map(|job| job.time).max().unwrap_or(0);
            if self.when == When::After && max_wait < latest {
                return Err(op.invalid(format!(
                    "a maximum wait of {max_wait} ms is below the delay of {latest} ms: raise debounce(…), or lower the delay"
                )));
            }
        }
        Ok(Limits { max_wait, throttle, data })
    }

    /// What became of the jobs of one place, up to the first call that failed.
    async fn offer_part(&self, part: &Part, limits: &Limits) -> (Vec<Offered>, Option<Error>) {
        let op = part.place.queue.op(self.verb);
        let mut offered = Vec::with_capacity(part.jobs.len());
        let offering = async {
            let most = if matches!(self.policy, Policy::Keep) { CALL } else { REPLACING };
            for jobs in part.jobs.chunks(most) {
                offered.extend(self.offer_some(op, &part.place, jobs, limits).await?);
            }
            Ok(())
        };
        let error = Span::offer(&part.place.queue.keys, part.jobs.len()).run(offering).await.err();
        (offered, error)
    }

    async fn offer_some(
        &self,
        op: Op<'_>,
        place: &Place,
        jobs: &[Prepare],
        &Limits { max_wait, throttle, ref data }: &Limits,
    ) -> Result<Vec<Offered>> {
        let Place { queue, batcher } = place;
        let keys = &queue.keys;
        let (ids, [notes, more_notes]) = (keys.jobs(), keys.notes());
        let of_messages = keys.of_messages();
        let throttles: Vec<_> = jobs.iter().filter(|_| throttle > 0).map(|job| job.throttle(keys)).collect();
        let call = |finds_holders: bool, receipt: &Bytes, base: String| {
            let mut named =
                vec![keys.timeout_set(), keys.ordered_list(), keys.channel(), receipt, &ids, keys.scratch()];
            let script = match (finds_holders, throttle > 0) {
                (true, _) => {
                    let MessageKeys { inbox, messages, retries, dead, dead_messages, control, .. } =
                        &of_messages;
                    named.extend([
                        keys.target(),
                        inbox,
                        messages,
                        retries,
                        dead,
                        dead_messages,
                        control,
                        &notes,
                        &more_notes,
                    ]);
                    &scripts::OFFER_HELD
                }
                (false, true) => &scripts::OFFER_THROTTLED,
                (false, false) => &scripts::OFFER_JOBS,
            };
            let args = jobs.iter().flat_map(|job| {
                [Bytes::from(job.time.to_string()), job.id.clone(), job.entry.clone(), data.clone()]
            });
            script
                .on(&named)
                .keys(throttles.iter().cloned())
                .arg(base)
                .number(REMEMBERED_MS)
                .arg(self.policy.word())
                .number(max_wait)
                .number(throttle)
                .args(args)
        };
        let offer = async |finds_holders| {
            let call = |receipt: &Bytes, base: String| call(finds_holders, receipt, base);
            batcher.offer_jobs(self.timeout, self.when, call).await.map_err(|error| op.failed(error))
        };
        let mut parts = if data.is_empty() { offer(false).await? } else { offer(true).await? };
        if parts == [Reply::Nil] {
            // A job holds one of the ids, or may hold it. Nothing is stored.
            parts = offer(true).await?;
        }
        let mut parts = parts.into_iter();
        let (_base, head) = (parts.next(), parts.next().unwrap_or(Reply::Nil));
        op.on_head(op.optional_score(head)?);
        let mut offered = Vec::with_capacity(jobs.len());
        while let (Some(outcome), Some(at)) = (parts.next(), parts.next()) {
            let at = time::from_epoch_millis(op.int(at)?.unsigned_abs());
            offered.push(match op.optional_bytes(outcome)?.as_deref() {
                Some(b"stored") => Offered::Stored(at),
                Some(b"kept") => Offered::Kept(at),
                Some(b"replaced") => Offered::Replaced(at),
                Some(b"running") => Offered::Running,
                Some(b"throttled") => Offered::Throttled(at),
                _ => return Err(op.failed(queue.conn.desynchronised())),
            });
        }
        if offered.len() == jobs.len() { Ok(offered) } else { Err(op.failed(queue.conn.desynchronised())) }
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
