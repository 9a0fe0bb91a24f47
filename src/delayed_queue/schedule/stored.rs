//! What operators see of schedules: all of a queue, by their names.

use std::fmt;
use std::time::SystemTime;

use bytes::Bytes;
use serde::Serialize;

use super::Schedule;
use crate::DelayedQueue;
use crate::conn::Command;
use crate::error::Result;
use crate::queue::Op;
use crate::recurrence::{Missed, Overlap, Recurrence, State};
use crate::schedules::{self, Named};
use crate::wire::time;

/// How many schedules a call reads at most.
const PAGE: usize = 100;

/// A schedule that is stored. [`Schedule::get`] and [`Schedules::read`] return it.
///
/// # Examples
/// ```no_run
/// # async fn example(reports: redelay::DelayedQueue<String>) -> redelay::Result<()> {
/// if let Some(nightly) = reports.schedule("nightly").get().await? {
///     println!("{}: {}, next {:?}", nightly.name, nightly.text, nightly.next_run);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct StoredSchedule<T> {
    /// The name.
    pub name: String,
    /// The value that each run offers.
    pub value: T,
    /// When it runs, for people: `every 1500 ms`, or a cron expression and its time zone.
    pub text: String,
    /// The first time at which it may run, if there is one.
    #[serde(serialize_with = "time::optional_in_epoch_ms")]
    pub start: Option<SystemTime>,
    /// The last time at which it may run, if there is one.
    #[serde(serialize_with = "time::optional_in_epoch_ms")]
    pub end: Option<SystemTime>,
    /// What happens to missed runs.
    pub missed: Missed,
    /// What happens to a run that would overlap with the one before it; `None` if runs may overlap.
    pub no_overlap: Option<Overlap>,
    /// The next run, as of the last change that was stored; `None` if it is paused, or if there are no more.
    /// If it is in the past, no client has stored the run after it yet, or it waits until the last one is
    /// done.
    #[serde(serialize_with = "time::optional_in_epoch_ms")]
    pub next_run: Option<SystemTime>,
    /// The last run that became due, since the schedule was stored, as of the last change that was stored. It
    /// does not say that the run was handled. If runs do not overlap: the last one that was offered.
    #[serde(serialize_with = "time::optional_in_epoch_ms")]
    pub last_run: Option<SystemTime>,
    /// Whether the last run is not done: it is pending, ready, in flight or waits for a retry. False if runs
    /// may overlap: then nothing tells.
    pub is_running: bool,
    /// Whether it is paused.
    pub is_paused: bool,
}

/// The schedules of one delayed queue. [`DelayedQueue::schedules`] returns this handle;
/// [`DelayedQueue::schedule`] that of one of them.
///
/// It has the verbs of the handles in [`admin`](crate::admin), but for `requeue`: a schedule is
/// [triggered](Schedule::trigger) instead.
///
/// # Examples
/// ```no_run
/// # async fn example(reports: redelay::DelayedQueue<String>) -> redelay::Result<()> {
/// for (name, schedule) in reports.schedules().read(None, 100).await? {
///     match schedule {
///         Ok(schedule) => println!("{name}: {}, next {:?}", schedule.text, schedule.next_run),
///         Err(error) => println!("{name}: {error}"),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Schedules<T> {
    queue: DelayedQueue<T>,
}

impl<T> fmt::Debug for Schedules<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedules").field("queue", &self.queue).finish()
    }
}

impl<T: 'static> DelayedQueue<T> {
    /// The schedules of this queue. No command is sent.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(reports: redelay::DelayedQueue<String>) -> redelay::Result<()> {
    /// println!("{} schedules", reports.schedules().len().await?);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn schedules(&self) -> Schedules<T> {
        Schedules { queue: self.clone() }
    }

    pub(super) fn stored(
        &self,
        op: Op<'_>,
        name: &Bytes,
        state: State,
        is_running: bool,
    ) -> Result<StoredSchedule<T>> {
        let value = op.decode(&*self.codec, state.record.payload.clone())?;
        Ok(StoredSchedule::new(name, value, state, is_running))
    }

    /// Which of these schedules have a run that is not done. Without such as do not overlap, it costs
    /// nothing.
    pub(super) async fn running(&self, op: Op<'_>, schedules: &[(&Bytes, &State)]) -> Result<Vec<bool>> {
        let records = schedules.iter().map(|(name, state)| (*name, &state.record));
        let running = schedules::running(&self.queue.conn, &self.queue.keys, records).await;
        running.map_err(|error| op.failed(error))
    }
}

impl<T> StoredSchedule<T> {
    pub(crate) fn new(name: &Bytes, value: T, State { record, next, .. }: State, is_running: bool) -> Self {
        let Recurrence { when, start, end, missed, no_overlap } = record.recurrence;
        let next = Some(record.held).filter(|held| *held > 0).or(next);
        Self {
            name: String::from_utf8_lossy(name).into_owned(),
            value,
            text: when.to_string(),
            start: start.map(time::from_epoch_millis),
            end: end.map(time::from_epoch_millis),
            missed,
            no_overlap,
            next_run: next.filter(|_| !record.is_paused).map(time::from_epoch_millis),
            last_run: (record.last > 0).then(|| time::from_epoch_millis(record.last)),
            is_running,
            is_paused: record.is_paused,
        }
    }
}

impl<T: 'static> Schedules<T> {
    /// The number of schedules, those that are paused or have no more runs included. O(1).
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable), or [`Refused`](crate::ErrorKind::Refused) for a key of
    /// another type or a missing permission.
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(reports: redelay::DelayedQueue<String>) -> redelay::Result<()> {
    /// let schedules = reports.schedules().len().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn len(&self) -> Result<usize> {
        self.count(self.queue.queue.reading("schedules().len")).await
    }

    /// Whether there is no schedule. O(1).
    ///
    /// # Errors
    /// As [`Schedules::len`].
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(reports: redelay::DelayedQueue<String>) -> redelay::Result<()> {
    /// assert!(reports.schedules().is_empty().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn is_empty(&self) -> Result<bool> {
        Ok(self.count(self.queue.queue.reading("schedules().is_empty")).await? == 0)
    }

    async fn count(&self, op: Op<'_>) -> Result<usize> {
        let [_, records] = self.queue.queue.keys.schedules();
        op.len(op.call(Command::new("HLEN").arg(records).only_reads()).await?)
    }

    /// Reads up to `max` schedules with their names, in the order of the names: from the first one on, or
    /// behind the name `after`, the last one that was read. A schedule that cannot be read or decoded is an
    /// error in its row.
    ///
    /// The next runs change all the time, so they are no order in which to read on. The names have no order
    /// on the server: each call of this method reads all of them, about a hundred at a time.
    ///
    /// # Errors
    /// As [`Schedules::len`].
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(reports: redelay::DelayedQueue<String>) -> redelay::Result<()> {
    /// let schedules = reports.schedules();
    /// let first_page = schedules.read(None, 50).await?;
    /// let last = first_page.last().map(|(name, _)| name.as_str());
    /// let second_page = schedules.read(last, 50).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn read(
        &self,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<(String, Result<StoredSchedule<T>>)>> {
        let queue = &self.queue.queue;
        let op = queue.reading("schedules().read");
        op.ensure_open()?;
        let mut read = Vec::new();
        if max == 0 {
            return Ok(read);
        }
        let names = self.names(op).await?;
        let first = after.map_or(0, |after| names.partition_point(|(name, _)| name.as_str() <= after));
        let mut left = &names[first..];
        while !left.is_empty() && read.len() < max {
            let page = left.iter().take(PAGE.min(max - read.len())).map(|(_, name)| name.clone());
            let found = schedules::read_these(&queue.conn, &queue.keys, page).await;
            let found = found.map_err(|error| op.failed(error))?;
            left = &left[found.len().clamp(1, left.len())..];
            // A schedule may have been removed since its name was read.
            let states = found.iter().filter_map(|named| Some((&named.name, state(op, named).transpose()?)));
            let states: Vec<_> = states.collect();
            let readable: Vec<_> =
                states.iter().filter_map(|(name, state)| Some((*name, state.as_ref().ok()?))).collect();
            let mut running = self.queue.running(op, &readable).await?.into_iter();
            read.extend(states.into_iter().map(|(name, state)| {
                let stored = state
                    .and_then(|state| self.queue.stored(op, name, state, running.next().unwrap_or_default()));
                (String::from_utf8_lossy(name).into_owned(), stored)
            }));
        }
        Ok(read)
    }

    /// The names of all schedules, in the order in which they are read: as text, and as they are on the
    /// server.
    async fn names(&self, op: Op<'_>) -> Result<Vec<(String, Bytes)>> {
        let [_, records] = self.queue.queue.keys.schedules();
        let with_text = |name: Bytes| (String::from_utf8_lossy(&name).into_owned(), name);
        let mut names: Vec<_> = op.fields(&records).await?.into_iter().map(with_text).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Deletes the schedule of this name: [`Schedule::remove`].
    ///
    /// # Errors
    /// As [`Schedule::remove`].
    ///
    /// # Cancel safety
    /// As [`Schedule::remove`].
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(reports: redelay::DelayedQueue<String>) -> redelay::Result<()> {
    /// reports.schedules().remove("nightly").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove(&self, name: impl Into<String>) -> Result<bool> {
        let op = self.queue.queue.op("schedules().remove");
        op.ensure_open()?;
        self.queue.schedule(name).remove_by(op).await
    }

    /// Deletes up to `max` schedules, in the order of their names, as [`Schedule::remove`] does it for each;
    /// `usize::MAX` means all. Returns how many.
    ///
    /// # Errors
    /// As [`Schedule::remove`]. If others were removed before the error, it is
    /// [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown), and says how many: call it again for the rest.
    ///
    /// # Cancel safety
    /// If the future is dropped, some may have been removed.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(reports: redelay::DelayedQueue<String>) -> redelay::Result<()> {
    /// let removed = reports.schedules().remove_all(usize::MAX).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove_all(&self, max: usize) -> Result<usize> {
        let op = self.queue.queue.op("schedules().remove_all");
        op.ensure_open()?;
        let mut removed = 0;
        for (_, name) in self.names(op.reading()).await? {
            if removed == max {
                break;
            }
            let schedule = Schedule { name, ..self.queue.schedule("") };
            let is_removed = schedule.remove_by(op).await;
            removed += usize::from(
                is_removed.map_err(|error| error.after_parts(removed, "schedules were removed"))?,
            );
        }
        Ok(removed)
    }
}

/// What can be read of a schedule. `None` if its record is gone.
pub(super) fn state(op: Op<'_>, schedule: &Named) -> Result<Option<State>> {
    schedule.state().map_err(|why| {
        let name = String::from_utf8_lossy(&schedule.name);
        op.unreadable(format!("the schedule `{name}` cannot be read: {why}"))
    })
}
