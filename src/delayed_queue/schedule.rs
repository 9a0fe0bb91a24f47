//! Schedules: payloads that are offered again and again.

use std::fmt;
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use super::DelayedQueue;
use super::store::When;
use crate::error::Result;
use crate::queue::{AsValue, Op};
use crate::recurrence::{self, Missed, Overlap, Recurrence, ScheduleRecord, State, Step};
use crate::schedules::LONGEST_NAME;
use crate::wire::entry::{self, EntryFormat};
use crate::wire::time;

mod change;
mod stored;

pub use stored::{Schedules, StoredSchedule};

/// How many runs a call computes at most.
const MOST_RUNS: usize = 10_000;

/// A schedule of a delayed queue: it offers a payload repeatedly. [`DelayedQueue::schedule`] returns this
/// handle, whether or not such a schedule exists. [`upsert`](Self::upsert) stores it.
///
/// The schedule is stored on the server, so it outlives all processes. Any number of processes may have the
/// queue open: each run is offered once. Without [`no_overlap`](Self::no_overlap), the next run is always
/// stored ahead, as an ordinary pending payload with the id `name@epoch-ms`. So any client that transfers the
/// queue, redelay or Java, delivers it on time. A redelay client that transfers the queue stores the run
/// after it; for a cron expression, it needs the feature `cron`. Without such a client,
/// [`missed`](Self::missed) decides what happens to the runs. The server's clock decides the times.
///
/// `every`, `cron` and the other options say what `upsert` stores. The other calls ignore them. Of `every`
/// and `cron`, the one that was called last applies.
///
/// # Errors
/// Those of [`JobOffer`](crate::delayed_queue::JobOffer), and [`Invalid`](crate::ErrorKind::Invalid) for a
/// schedule that cannot run: the error says what is wrong with it, and where in the text.
///
/// # Examples
/// ```no_run
/// # async fn example(reports: redelay::DelayedQueue<String>) -> redelay::Result<()> {
/// use redelay::delayed_queue::Missed;
///
/// // At the start of each process: what is there already stays as it is.
/// let nightly = reports.schedule("nightly").cron("0 3 * * *").zone("Europe/Berlin").missed(Missed::Once);
/// let next = nightly.upsert("all shops").await?;
/// println!("the next run is at {next:?}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Schedule<T> {
    queue: DelayedQueue<T>,
    name: Bytes,
    when: Option<recurrence::When>,
    zone: Option<String>,
    start: Option<SystemTime>,
    end: Option<SystemTime>,
    missed: Missed,
    no_overlap: Option<Overlap>,
}

impl<T> fmt::Debug for Schedule<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedule")
            .field("queue", &self.queue)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// # Schedules
impl<T: 'static> DelayedQueue<T> {
    /// The schedule of this name, of 1 to 239 bytes. No command is sent, and the schedule need not exist.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(pings: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// pings.schedule("ping").every(Duration::from_secs(60)).upsert(&1).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn schedule(&self, name: impl Into<String>) -> Schedule<T> {
        Schedule {
            queue: self.clone(),
            name: name.into().into(),
            when: None,
            zone: None,
            start: None,
            end: None,
            missed: Missed::Skip,
            no_overlap: None,
        }
    }
}

/// # Settings
impl<T: 'static> Schedule<T> {
    /// Runs at equal intervals, 10 ms or more, counted from [`start_at`](Self::start_at) or from 1970. An
    /// interval of a day runs at midnight UTC. A fraction of a millisecond is rounded up.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(pings: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// pings.schedule("ping").every(Duration::from_secs(60)).upsert(&1).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn every(mut self, interval: Duration) -> Self {
        self.when = Some(recurrence::When::Every(time::millis(interval).unwrap_or(u64::MAX)));
        self
    }

    /// Runs by a cron expression: minutes, hours, day of the month, month and day of the week; with seconds
    /// before them, if there are six fields, and a year after them, if there are seven. `L`, `W`, `#`, names
    /// of months and days, and `@daily` and the like are supported. If both days are given, either of them
    /// suffices.
    ///
    /// When the clocks are set forward, a text with `*` in its seconds, minutes or hours skips the gap, and
    /// any other runs once, at the end of the gap. When they are set back, a text with `*` also runs in the
    /// repeated time, and any other runs the first time only. `@hourly` is `0 * * * *`, so it has a `*`.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(reports: redelay::DelayedQueue<String>) -> redelay::Result<()> {
    /// let workdays = reports.schedule("workdays").cron("30 8 * * MON-FRI").zone("America/Chicago");
    /// workdays.upsert("all shops").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "cron")]
    #[cfg_attr(docsrs, doc(cfg(feature = "cron")))]
    #[must_use]
    pub fn cron(mut self, text: impl Into<String>) -> Self {
        self.when = Some(recurrence::When::Cron { text: text.into(), zone: String::new() });
        self
    }

    /// The time zone of a cron expression, by its name in the IANA database. Defaults to `UTC`.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(reports: redelay::DelayedQueue<String>) -> redelay::Result<()> {
    /// reports.schedule("nightly").cron("0 3 * * *").zone("Europe/Berlin").upsert("all shops").await?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "cron")]
    #[cfg_attr(docsrs, doc(cfg(feature = "cron")))]
    #[must_use]
    pub fn zone(mut self, name: impl Into<String>) -> Self {
        self.zone = Some(name.into());
        self
    }

    /// Does not run before this time, by the server's clock. [`every`](Self::every) counts from here. Give a
    /// fixed time: with the current time, each upsert stores a different schedule, which replaces the
    /// previous one.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::{Duration, SystemTime};
    /// # async fn example(pings: redelay::DelayedQueue<i64>, launch: SystemTime) -> redelay::Result<()> {
    /// pings.schedule("ping").every(Duration::from_secs(60)).start_at(launch).upsert(&1).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn start_at(mut self, at: impl Into<SystemTime>) -> Self {
        self.start = Some(at.into());
        self
    }

    /// Does not run after this time, by the server's clock.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::{Duration, SystemTime};
    /// # async fn example(pings: redelay::DelayedQueue<i64>, finale: SystemTime) -> redelay::Result<()> {
    /// pings.schedule("ping").every(Duration::from_secs(60)).end_at(finale).upsert(&1).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn end_at(mut self, at: impl Into<SystemTime>) -> Self {
        self.end = Some(at.into());
        self
    }

    /// Sets what happens to missed runs. Defaults to [`Missed::Skip`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(pings: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// use redelay::delayed_queue::Missed;
    ///
    /// pings.schedule("ping").every(Duration::from_secs(60)).missed(Missed::UpTo(5)).upsert(&1).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn missed(mut self, missed: Missed) -> Self {
        self.missed = missed;
        self
    }

    /// Never lets two runs overlap: while a run is pending, ready, in flight or waits for a retry, `overlap`
    /// says what happens to the next one. By default, runs may overlap.
    ///
    /// A run holds its id until it is done, as with [`JobOffer::until_done`]: receivers and workers
    /// acknowledge it. A run that `take` or a Java service takes is done when it is taken. A dead letter
    /// holds no run back, not even after it is requeued. Each run is stored when its time has come,
    /// not ahead, by a redelay client that transfers the queue. If there was none, the run comes late,
    /// whatever [`missed`](Self::missed) says. Of those that were missed after it, [`Overlap::Skip`] drops
    /// all, and [`Overlap::Queue`] what `missed` drops.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(imports: redelay::DelayedQueue<String>) -> redelay::Result<()> {
    /// use redelay::delayed_queue::Overlap;
    ///
    /// // Every ten minutes, unless the previous import still runs.
    /// let import = imports.schedule("import").every(Duration::from_secs(600));
    /// import.no_overlap(Overlap::Skip).upsert("all shops").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`JobOffer::until_done`]: crate::delayed_queue::JobOffer::until_done
    #[must_use]
    pub fn no_overlap(mut self, overlap: Overlap) -> Self {
        self.no_overlap = Some(overlap);
        self
    }
}

/// # Store and read
impl<T: 'static> Schedule<T> {
    /// Stores the schedule with the payload of its runs, and the next run. Returns when that is; `None` if
    /// the schedule is paused, or if there are no more runs. For an equal schedule, that is the stored run,
    /// which may be due already.
    ///
    /// An equal schedule changes nothing, so each process may call this when it starts. A different one
    /// replaces the pending run, which costs a scan of the ordered list, as
    /// [`Job::cancel`](crate::delayed_queue::Job::cancel) does. A paused schedule stays paused. Two schedules
    /// are equal if they run at the same times and their payloads have the same bytes: encode a map with
    /// sorted keys.
    ///
    /// # Errors
    /// [`Schedule`] lists them. After [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown), call it again: it
    /// does no harm.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the schedule may or may not be stored. A run is never
    /// stored twice.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(pings: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// let next = pings.schedule("ping").every(Duration::from_secs(60)).upsert(&1).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn upsert(&self, value: impl AsValue<T>) -> Result<Option<SystemTime>> {
        let op = self.op("schedule().upsert")?;
        let payload = op.encode(&*self.queue.codec, value)?;
        let record =
            ScheduleRecord { recurrence: self.recurrence(op)?, payload, last: 0, held: 0, is_paused: false };
        // Runs that do not overlap are not stored ahead, and only one at a time.
        let overlaps = |record: &ScheduleRecord| record.recurrence.no_overlap.is_none();
        let differs =
            |state: &State| !state.record.is_like(&record) && overlaps(&state.record) && overlaps(&record);
        let upsert = |state: Result<Option<State>>, now| {
            Step::upsert(state?.as_ref(), record.clone(), now).map_err(|why| op.invalid(why))
        };
        Ok(self.change(op, differs, upsert).await?.next.map(time::from_epoch_millis))
    }

    fn recurrence(&self, op: Op<'_>) -> Result<Recurrence> {
        let mut when = self.when.clone().ok_or_else(|| {
            op.invalid(
                "a schedule needs to know when to run: call every(), or cron() with the feature `cron`",
            )
        })?;
        match (&mut when, &self.zone) {
            (recurrence::When::Cron { zone, .. }, name) => {
                *zone = name.clone().unwrap_or_else(|| "UTC".into())
            }
            (recurrence::When::Every(_), Some(_)) => {
                return Err(op.invalid("an interval has no time zone: use cron(), or leave zone() out"));
            }
            (recurrence::When::Every(_), None) => {}
        }
        if let recurrence::When::Cron { text, zone } = &when
            && [text, zone].into_iter().any(|text| text.contains('\n'))
        {
            return Err(op.invalid("a cron expression or the name of a time zone has a line break"));
        }
        let millis =
            |at: Option<SystemTime>| at.map(time::epoch_millis).transpose().map_err(|why| op.invalid(why));
        let (start, end) = (millis(self.start)?, millis(self.end)?);
        Ok(Recurrence { when, start, end, missed: self.missed, no_overlap: self.no_overlap })
    }

    /// Reads the schedule. `None` if there is none.
    ///
    /// # Errors
    /// As [`Job::get`](crate::delayed_queue::Job::get).
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(reports: redelay::DelayedQueue<String>) -> redelay::Result<()> {
    /// let next = reports.schedule("nightly").get().await?.and_then(|nightly| nightly.next_run);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get(&self) -> Result<Option<StoredSchedule<T>>> {
        let op = self.op("schedule().get")?.reading();
        let (_, Some(state)) = self.state(op).await? else { return Ok(None) };
        let is_running = self.queue.running(op, &[(&self.name, &state)]).await?.contains(&true);
        self.queue.stored(op, &self.name, state, is_running).map(Some)
    }

    /// The next runs after now, by the server's clock, up to `count` or 10,000 of them. Empty if the schedule
    /// is paused, or if there is no such schedule.
    ///
    /// # Errors
    /// As [`get`](Self::get), and [`Invalid`](crate::ErrorKind::Invalid) for a cron expression without the
    /// feature `cron`.
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(reports: redelay::DelayedQueue<String>) -> redelay::Result<()> {
    /// for run in reports.schedule("nightly").next_runs(5).await? {
    ///     println!("{run:?}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn next_runs(&self, count: usize) -> Result<Vec<SystemTime>> {
        let op = self.op("schedule().next_runs")?.reading();
        let (now, state) = self.state(op).await?;
        let Some(State { record, next, .. }) = state.filter(|state| !state.record.is_paused) else {
            return Ok(Vec::new());
        };
        let rule = record.recurrence.rule().map_err(|why| op.invalid(why))?;
        // That of one that is held back is the time of the next look.
        let ahead = next.filter(|next| *next > now && record.held == 0);
        let first = ahead.or_else(|| rule.next(now));
        let runs = std::iter::successors(first, |run| rule.next(*run));
        Ok(runs.take(count.min(MOST_RUNS)).map(time::from_epoch_millis).collect())
    }
}

/// # Pause, remove, trigger
impl<T: 'static> Schedule<T> {
    /// Stops the runs, in all processes, until [`resume`](Self::resume). Withdraws the stored run, unless its
    /// job was replaced by its id. Returns false if there is no such schedule. The pause outlives all
    /// processes. Costs a scan of the ordered list, as [`Job::cancel`](crate::delayed_queue::Job::cancel)
    /// does.
    ///
    /// # Errors
    /// [`Schedule`] lists them.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the schedule may or may not be paused.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(reports: redelay::DelayedQueue<String>) -> redelay::Result<()> {
    /// reports.schedule("nightly").pause().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn pause(&self) -> Result<bool> {
        let op = self.op("schedule().pause")?;
        let pause = |state: Result<Option<State>>, now| Ok(state?.and_then(|state| Step::pause(&state, now)));
        Ok(self.change(op, |_| false, pause).await?.existed)
    }

    /// Ends a pause. The next run is the first one after now: runs during the pause are dropped, regardless
    /// of `missed`. Returns false if there is no such schedule.
    ///
    /// # Errors
    /// [`Schedule`] lists them.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the schedule may or may not run again.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(reports: redelay::DelayedQueue<String>) -> redelay::Result<()> {
    /// reports.schedule("nightly").resume().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn resume(&self) -> Result<bool> {
        let op = self.op("schedule().resume")?;
        let resume = |state: Result<Option<State>>, now| match state? {
            Some(state) => Step::resume(&state, now).map_err(|why| op.invalid(why)),
            None => Ok(None),
        };
        Ok(self.change(op, |_| false, resume).await?.existed)
    }

    /// Deletes the schedule, and withdraws the stored run, as [`pause`](Self::pause) does. Returns whether
    /// there was one. The run of a schedule that cannot be read is not withdrawn.
    ///
    /// # Errors
    /// [`Schedule`] lists them.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the schedule may or may not be deleted.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(reports: redelay::DelayedQueue<String>) -> redelay::Result<()> {
    /// reports.schedule("nightly").remove().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove(&self) -> Result<bool> {
        self.remove_by(self.op("schedule().remove")?).await
    }

    async fn remove_by(&self, op: Op<'_>) -> Result<bool> {
        let remove = |state: Result<Option<State>>, now| {
            Ok(match state {
                Ok(state) => state.map(|state| Step::remove(&state, now)),
                // It has no run that could be withdrawn.
                Err(_) => Some(Step::default()),
            })
        };
        Ok(self.change(op, |_| false, remove).await?.existed)
    }

    /// Offers the payload of the schedule now, as an additional run, even while it is paused. Returns false
    /// if there is no such schedule; or if runs do not [overlap](Self::no_overlap), and one is not done.
    ///
    /// # Errors
    /// Those of [`Offer`](crate::delayed_queue::Offer).
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the payload may or may not be offered. It is never offered
    /// twice.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(reports: redelay::DelayedQueue<String>) -> redelay::Result<()> {
    /// reports.schedule("nightly").trigger().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn trigger(&self) -> Result<bool> {
        let op = self.op("schedule().trigger")?;
        let (_, Some(state)) = self.state(op).await? else { return Ok(false) };
        if state.record.recurrence.no_overlap.is_some() {
            return self.trigger_alone(op).await;
        }
        let entry = entry::pack(self.queue.format, &state.record.payload);
        let stored = self.queue.batcher.store(When::After, 0, entry).await;
        stored.map_err(|error| op.failed(error))?;
        Ok(true)
    }

    fn op(&self, verb: &'static str) -> Result<Op<'_>> {
        let op = self.queue.queue.op(verb);
        match self.name.len() {
            1..=LONGEST_NAME => {}
            length => {
                return Err(op.invalid(format!(
                    "a name of {length} bytes is not between 1 and {LONGEST_NAME} bytes: with the time of a run, it is an id"
                )));
            }
        }
        if self.queue.format == EntryFormat::Legacy {
            return Err(op.invalid("a run has an id, which an entry of the legacy format has no place for: use EntryFormat::Current"));
        }
        Ok(op)
    }
}
