//! Sends jobs that are offered, and reads what became of them.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::future::join_all;
use hmac_sha256::Hash;
use serde::Serialize;

use super::data::{Data, Expiry};
use crate::conn::{OpError, Reply};
use crate::delayed_queue::offer::Place;
use crate::delayed_queue::store::When;
use crate::error::{Error, Result};
use crate::queue::Op;
use crate::scripts::{self, REMEMBERED_MS};
use crate::telemetry::events::Span;
use crate::telemetry::trace_context;
use crate::wire::entry;
use crate::wire::keys::Keys;
use crate::wire::time;

/// The most jobs of one call.
const CALL: usize = 1000;
/// The most jobs of one call that may replace others, each with a scan of the ordered list.
const REPLACING: usize = 16;

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Offered {
    /// It is stored, and due at this time.
    Stored(#[serde(serialize_with = "time::in_epoch_ms")] SystemTime),
    /// The id was taken, and its job stays. This is when it was or is due, or its next attempt is.
    Kept(#[serde(serialize_with = "time::in_epoch_ms")] SystemTime),
    /// The id was taken, and the new job has replaced the old one. This is the due time.
    Replaced(#[serde(serialize_with = "time::in_epoch_ms")] SystemTime),
    /// A receiver has the job that holds the id, or it is cancelled and about to end. This offer is not
    /// stored.
    Running,
    /// Another job was accepted recently. The next one is accepted from this time on.
    Throttled(#[serde(serialize_with = "time::in_epoch_ms")] SystemTime),
}
/// Jobs that are ready to be sent.
pub(super) struct PreparedJobs<R> {
    pub(super) parts: Vec<Part>,
    pub(super) verb: &'static str,
    pub(super) when: When,
    pub(super) timeout: Option<Duration>,
    pub(super) if_taken: IfTaken,
    pub(super) throttle: Option<Duration>,
    pub(super) data: Data,
    /// What the future returns.
    pub(super) result: fn(Vec<Offered>) -> R,
}

/// Those that go to one place.
pub(super) struct Part {
    pub(super) place: Place,
    pub(super) jobs: Vec<Prepare>,
}

/// One of them.
pub(super) struct Prepare {
    /// Its place in the result.
    pub(super) number: usize,
    pub(super) time: u64,
    /// Empty for a payload without an id.
    pub(super) id: Bytes,
    pub(super) entry: Bytes,
}

/// What to do while an id is taken.
#[derive(Clone, Copy, Debug)]
pub(super) enum IfTaken {
    Keep,
    Replace,
    KeepEarliest,
    Debounce(Duration),
}

impl IfTaken {
    fn word(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Replace => "replace",
            Self::KeepEarliest => "earliest",
            Self::Debounce(_) => "debounce",
        }
    }

    /// The option that says what becomes of a pending job, which only an id can find.
    fn needs_id(self) -> Option<&'static str> {
        match self {
            Self::Keep => None,
            Self::Replace => Some("replace"),
            Self::KeepEarliest => Some("keep_earliest"),
            Self::Debounce(_) => Some("debounce"),
        }
    }
}

impl Prepare {
    /// What decides where it goes: its id, or its payload, so that equal ones are throttled together.
    pub(super) fn key(&self) -> &[u8] {
        if self.id.is_empty() { entry::payload(&self.entry).unwrap_or_default() } else { &self.id }
    }

    fn throttle(&self, keys: &Keys) -> Bytes {
        if self.id.is_empty() {
            // The processes of a service must agree on it, so it is a hash that is the same everywhere.
            keys.throttle("payload", &Hash::hash(entry::payload(&self.entry).unwrap_or_default()))
        } else {
            keys.throttle("id", &self.id)
        }
    }
}

/// What the options come to: times in milliseconds.
#[derive(Clone, Copy)]
struct Limits {
    max_wait: u64,
    throttle: u64,
}

impl<R> PreparedJobs<R> {
    pub(super) async fn offer(self) -> Result<R> {
        let Some(first) = self.parts.first() else { return Ok((self.result)(Vec::new())) };
        let op = first.place.queue.op(self.verb);
        op.ensure_open()?;
        let limits = self.limits(op)?;
        let count = self.parts.iter().map(|part| part.jobs.len()).sum();
        let mut offered = vec![None; count];
        // To the end, even if one fails: of a part that is dropped, no caller learns what is stored.
        let results = join_all(self.parts.iter().map(|part| self.offer_part(part, limits))).await;
        let (mut stored, mut errors) = (0, Vec::new());
        for (part, (results, error)) in self.parts.iter().zip(results) {
            stored += results.len();
            errors.extend(error);
            for (job, result) in part.jobs.iter().zip(results) {
                offered[job.number] = Some(result);
            }
        }
        match Error::of_several(errors) {
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
            if let Some(option) = self.if_taken.needs_id() {
                return Err(op.invalid(format!("{option}() is about a pending job of the same id, {why}")));
            } else if let Some(option) = self.data.needs_id() {
                return Err(op.invalid(format!("{option}() is said of the id of a job, {why}")));
            }
        }
        self.data.bytes().map_err(|why| op.invalid(why))?;
        let is_before = |at: u64| jobs().any(|job| at <= job.time);
        let expires_early = match (self.data.expires, self.when) {
            (Some(Expiry::After(after)), When::After) => is_before(millis(after)?),
            (Some(Expiry::At(at)), When::At) => {
                is_before(time::epoch_millis(at).map_err(|why| op.invalid(why))?)
            }
            _ => false,
        };
        if expires_early {
            return Err(op.invalid(
                "the job would expire when it is due, or before: raise expires_after(…) or expires_at(…)",
            ));
        }
        let mut max_wait = 0;
        if let IfTaken::Debounce(most) = self.if_taken {
            max_wait = millis(most)?;
            let latest = jobs().map(|job| job.time).max().unwrap_or(0);
            if self.when == When::After && max_wait < latest {
                return Err(op.invalid(format!(
                    "a maximum wait of {max_wait} ms is below the delay of {latest} ms: raise debounce(…), or lower the delay"
                )));
            }
        }
        Ok(Limits { max_wait, throttle })
    }

    /// What became of the jobs of one place, up to the first call that failed.
    async fn offer_part(&self, part: &Part, limits: Limits) -> (Vec<Offered>, Option<Error>) {
        let op = part.place.queue.op(self.verb);
        let mut offered = Vec::with_capacity(part.jobs.len());
        let span = Span::offer(&part.place.queue.keys, part.jobs.len());
        let mut data = self.data.clone();
        if part.jobs.iter().all(|job| !job.id.is_empty()) {
            data.set_trace(span.within(trace_context::current));
        }
        let offering = async {
            let data = data.bytes().map_err(|why| op.invalid(why))?;
            let most = if matches!(self.if_taken, IfTaken::Keep) { CALL } else { REPLACING };
            while let Some(left) = part.jobs.get(offered.len()..).filter(|left| !left.is_empty()) {
                let jobs = &left[..most.min(left.len())];
                offered.extend(self.offer_some(op, &part.place, jobs, limits, &data).await?);
            }
            Ok(())
        };
        let error = span.run(offering).await.err();
        (offered, error)
    }

    async fn offer_some(
        &self,
        op: Op<'_>,
        place: &Place,
        jobs: &[Prepare],
        Limits { max_wait, throttle }: Limits,
        data: &Bytes,
    ) -> Result<Vec<Offered>> {
        let Place { queue, batcher } = place;
        let keys = &queue.keys;
        let throttles: Vec<_> = jobs.iter().filter(|_| throttle > 0).map(|job| job.throttle(keys)).collect();
        let call = |finds_holders: bool, receipt: &Bytes, base: String, looks: bool| {
            let script = match (finds_holders, throttle > 0) {
                (true, _) => &scripts::OFFER_HELD,
                (false, true) => &scripts::OFFER_THROTTLED,
                (false, false) => &scripts::OFFER_JOBS,
            };
            let args = jobs.iter().flat_map(|job| {
                [Bytes::from(job.time.to_string()), job.id.clone(), job.entry.clone(), data.clone()]
            });
            script
                .of(keys, Some(receipt))
                .keys(throttles.iter().cloned())
                .arg(base)
                .number(REMEMBERED_MS)
                .arg(self.if_taken.word())
                .number(max_wait)
                .number(throttle)
                .number(u8::from(looks))
                .args(args)
        };
        let offer = async |finds_holders| {
            let call = |receipt: &Bytes, base, looks| call(finds_holders, receipt, base, looks);
            batcher.offer_jobs(self.timeout, self.when, call).await.map_err(|error| op.failed(error))
        };
        let mut parts = if data.is_empty() { offer(false).await? } else { offer(true).await? };
        if parts == [Reply::Nil] {
            // A job holds one of the ids, or may hold it. Nothing is stored.
            parts = offer(true).await?;
        }
        let mut parts = parts.into_iter();
        let (_base, head, _is_limited) = (parts.next(), parts.next().unwrap_or(Reply::Nil), parts.next());
        op.on_head(op.optional_score(head)?);
        let mut offered = Vec::with_capacity(jobs.len());
        while let (Some(outcome), Some(at)) = (parts.next(), parts.next()) {
            let number = op.int(at)?.unsigned_abs();
            let at = time::from_epoch_millis(number);
            offered.push(match op.optional_bytes(outcome)?.as_deref() {
                // The others before it are stored. The next call says it again.
                Some(b"full") if !offered.is_empty() => break,
                Some(b"full") => return Err(op.failed(OpError::is_full(number))),
                Some(b"stored") => Offered::Stored(at),
                Some(b"kept") => Offered::Kept(at),
                Some(b"replaced") => Offered::Replaced(at),
                Some(b"running") => Offered::Running,
                Some(b"throttled") => Offered::Throttled(at),
                _ => return Err(op.failed(queue.conn.desynchronised())),
            });
        }
        // A call that has searched much leaves the rest to the next one.
        match offered.len() {
            0 => Err(op.failed(queue.conn.desynchronised())),
            count if count > jobs.len() => Err(op.failed(queue.conn.desynchronised())),
            _ => Ok(offered),
        }
    }
}
