//! What each change of a schedule writes: its new record, its next run, and the entries of runs.

use bytes::Bytes;

use super::{Overlap, ScheduleRecord};

/// The most bytes of payloads in one change, unless one payload is longer.
const MOST_BYTES: usize = 256 * 1024;

/// How often it is looked whether the run before one that is held back is done, ms.
const HELD: u64 = 1000;

/// A schedule on the server.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) record: ScheduleRecord,
    /// The run whose entry is stored, or was. If runs do not overlap, the next time to decide whether there
    /// is a run: its entry is stored then.
    pub(crate) next: Option<u64>,
    /// What to compare with before a change.
    pub(crate) bytes: Bytes,
    /// A run whose entry is known to be gone before its time: moved by a client with a fast clock, or
    /// cancelled. It is over.
    pub(crate) gone: Option<u64>,
}

/// A change of a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    /// The new record; `None` deletes the schedule.
    pub(crate) record: Option<ScheduleRecord>,
    pub(crate) next: Option<u64>,
    /// The pending entry that is removed: its run, and its payload.
    pub(crate) withdrawn: Option<(u64, Bytes)>,
    /// The runs whose entries are stored, with their payloads.
    pub(crate) stored: Vec<(u64, Bytes)>,
}

impl Step {
    /// The schedule becomes `record`. `Ok(None)` if it is that already. An error says what is wrong with it.
    pub(crate) fn upsert(
        old: Option<&State>,
        mut record: ScheduleRecord,
        now: u64,
    ) -> Result<Option<Self>, String> {
        let next = record.recurrence.rule()?.next(now.max(old.map_or(0, |old| old.record.last)));
        if let Some(old) = old.filter(|old| record.is_like(&old.record)) {
            let is_lost = !old.record.is_paused && old.next.is_none() && next.is_some();
            if !is_lost {
                return Ok(None);
            }
        } else if next.is_none() && record.recurrence.end.is_none() {
            return Err(format!("`{}` never runs again", record.recurrence.when));
        }
        let Some(old) = old else { return Ok(Some(Self::store(record, next))) };
        (record.last, record.is_paused) = (old.last(now), old.record.is_paused);
        record.held = record.recurrence.no_overlap.and(old.held(now)).unwrap_or(0);
        Ok(Some(Self { withdrawn: old.withdrawn(now), ..Self::resumed(record, now)? }))
    }

    /// The same schedule a little later, if its run is held back and the time of the next look has come. To
    /// look may take the server as long as to read all that is ready, so one client does it: the one whose
    /// change of this succeeds.
    pub(crate) fn look(state: &State, now: u64) -> Option<Self> {
        let is_due = state.next.is_some_and(|due| due <= now);
        (is_due && state.record.held > 0).then(|| Self::store(state.record.clone(), Some(now + HELD)))
    }

    /// The run whose entry was stored is due: the next ones. `None` if it is not due yet. If runs do not
    /// overlap, `is_running` says whether the last one is not done.
    pub(crate) fn advance(state: &State, now: u64, is_running: bool) -> Result<Option<Self>, String> {
        let Some(due) = state.next.filter(|due| *due <= now) else { return Ok(None) };
        if let Some(overlap) = state.record.recurrence.no_overlap {
            return Self::alone(state, overlap, due, now, is_running).map(Some);
        }
        let mut record = state.record.clone();
        // The time may have been changed by hand.
        record.last = due.max(record.last);
        let rule = state.record.recurrence.rule()?;
        let mut missed = rule.missed(record.last, now);
        let mut next = rule.next(now.max(record.last));
        let fit = (MOST_BYTES / record.payload.len().max(1)).max(1);
        if missed.len() > fit {
            // The last of these is due, so the rest follows at once.
            missed.truncate(fit);
            next = missed.pop();
        }
        record.last = missed.last().copied().unwrap_or(record.last);
        let mut step = Self::store(record, next);
        let missed = missed.into_iter().map(|run| (run, state.record.payload.clone()));
        step.stored = missed.chain(step.stored).collect();
        Ok(Some(step))
    }

    /// The time of a run that must not overlap has come, or that of a look at one that is held back.
    fn alone(state: &State, overlap: Overlap, due: u64, now: u64, is_running: bool) -> Result<Self, String> {
        let mut record = state.record.clone();
        let rule = state.record.recurrence.rule()?;
        // The sorted set was lost, and the time with it (`agree.lua`).
        if due == 0 && record.held == 0 {
            let next = rule.next(now.max(record.last));
            return Ok(Self::store(record, next));
        }
        // After each run before, so that the last one is the latest: one may have been triggered since.
        let run = state.held(now).unwrap_or(due).max(record.last + 1);
        let following = |run: u64| rule.next(now.max(run));
        record.held = 0;
        match (is_running, overlap) {
            (true, Overlap::Skip) => Ok(Self::store(record, following(run))),
            (true, Overlap::Queue) => {
                record.held = run;
                Ok(Self::store(record, Some(now + HELD)))
            }
            (false, _) => {
                let late = if overlap == Overlap::Queue { rule.missed(run, now) } else { Vec::new() };
                let next = late.first().copied().or_else(|| following(run));
                let stored = vec![(run, record.payload.clone())];
                record.last = run;
                Ok(Self { stored, ..Self::store(record, next) })
            }
        }
    }

    /// A run between the others. `None` if it would overlap, which must not be.
    pub(crate) fn trigger(state: &State, now: u64, is_running: bool) -> Option<Self> {
        if is_running {
            return None;
        }
        let mut record = state.record.clone();
        let stored = vec![(now, record.payload.clone())];
        record.last = now;
        Some(Self { record: Some(record), next: state.next, withdrawn: None, stored })
    }

    /// The schedule as this step leaves it.
    pub(crate) fn state(&self) -> Option<State> {
        let record = self.record.clone()?;
        Some(State { record, next: self.next, bytes: Bytes::new(), gone: None })
    }

    /// This step, and one that was decided on the state that it leaves, in one change.
    pub(crate) fn then(mut self, next: Option<Self>) -> Self {
        let Some(next) = next else { return self };
        if let Some((run, _)) = next.withdrawn {
            // It was not stored yet.
            self.stored.retain(|(stored, _)| *stored != run);
        }
        let stored = self.stored.into_iter().chain(next.stored).collect();
        Self { withdrawn: self.withdrawn, stored, ..next }
    }

    /// No more runs. `None` if it is paused already.
    pub(crate) fn pause(state: &State, now: u64) -> Option<Self> {
        let mut record = state.record.clone();
        if std::mem::replace(&mut record.is_paused, true) {
            return None;
        }
        (record.last, record.held) = (state.last(now), 0);
        Some(Self { withdrawn: state.withdrawn(now), ..Self::store(record, None) })
    }

    /// Runs again. `None` if it is not paused.
    pub(crate) fn resume(state: &State, now: u64) -> Result<Option<Self>, String> {
        let mut record = state.record.clone();
        if !std::mem::replace(&mut record.is_paused, false) {
            return Ok(None);
        }
        Self::resumed(record, now).map(Some)
    }

    pub(crate) fn remove(state: &State, now: u64) -> Self {
        Self { withdrawn: state.withdrawn(now), ..Self::default() }
    }

    fn resumed(record: ScheduleRecord, now: u64) -> Result<Self, String> {
        // After a run that was due before the clock was set back, too.
        let rule = record.recurrence.rule()?;
        let next = if record.held > 0 { Some(now) } else { rule.next(now.max(record.last)) };
        let next = next.filter(|_| !record.is_paused);
        Ok(Self::store(record, next))
    }

    fn store(record: ScheduleRecord, next: Option<u64>) -> Self {
        let ahead = next.filter(|_| record.recurrence.no_overlap.is_none());
        let stored = ahead.map(|next| (next, record.payload.clone())).into_iter().collect();
        Self { record: Some(record), next, withdrawn: None, stored }
    }
}

impl State {
    /// The run that waits until the last one is done, or whose time has come: of those that do not overlap.
    fn held(&self, now: u64) -> Option<u64> {
        let due = || self.next.filter(|next| *next <= now);
        let ScheduleRecord { recurrence, held, .. } = &self.record;
        recurrence.no_overlap.and_then(|_| Some(*held).filter(|held| *held > 0).or_else(due))
    }

    /// The run that is stored ahead, or was.
    fn ahead(&self) -> Option<u64> {
        self.next.filter(|_| self.record.recurrence.no_overlap.is_none())
    }

    /// The entry that is pending and must not become due.
    fn withdrawn(&self, now: u64) -> Option<(u64, Bytes)> {
        let next = self.ahead().filter(|next| !self.is_over(*next, now))?;
        Some((next, self.record.payload.clone()))
    }

    /// The last run that is over.
    fn last(&self, now: u64) -> u64 {
        self.ahead().filter(|next| self.is_over(*next, now)).unwrap_or(0).max(self.record.last)
    }

    fn is_over(&self, run: u64, now: u64) -> bool {
        run <= now || self.gone == Some(run)
    }
}

#[cfg(test)]
mod tests;
