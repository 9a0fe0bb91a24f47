//! What each change of a schedule writes: its new record, its next run, and the entries of runs.

use bytes::Bytes;

use super::Record;

/// The most bytes of payloads in one change, unless one payload is longer.
const MOST_BYTES: usize = 256 * 1024;

/// A schedule on the server.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) record: Record,
    /// The run whose entry is stored, or was.
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
    pub(crate) record: Option<Record>,
    pub(crate) next: Option<u64>,
    /// The pending entry that is removed: its run, and its payload.
    pub(crate) withdrawn: Option<(u64, Bytes)>,
    /// The runs whose entries are stored, with their payloads.
    pub(crate) stored: Vec<(u64, Bytes)>,
}

impl Step {
    /// The schedule becomes `record`. `Ok(None)` if it is that already. An error says what is wrong with it.
    pub(crate) fn upsert(old: Option<&State>, mut record: Record, now: u64) -> Result<Option<Self>, String> {
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
        Ok(Some(Self { withdrawn: old.withdrawn(now), ..Self::resumed(record, now)? }))
    }

    /// The run whose entry was stored is due: the next ones. `None` if it is not due yet.
    pub(crate) fn advance(state: &State, now: u64) -> Result<Option<Self>, String> {
        let Some(due) = state.next.filter(|due| *due <= now) else { return Ok(None) };
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
        record.last = state.last(now);
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

    fn resumed(record: Record, now: u64) -> Result<Self, String> {
        // After a run that was due before the clock was set back, too.
        let next = if record.is_paused { None } else { record.recurrence.rule()?.next(now.max(record.last)) };
        Ok(Self::store(record, next))
    }

    fn store(record: Record, next: Option<u64>) -> Self {
        let stored = next.map(|next| (next, record.payload.clone())).into_iter().collect();
        Self { record: Some(record), next, withdrawn: None, stored }
    }
}

impl State {
    /// The entry that is pending and must not become due.
    fn withdrawn(&self, now: u64) -> Option<(u64, Bytes)> {
        let next = self.next.filter(|next| !self.is_over(*next, now))?;
        Some((next, self.record.payload.clone()))
    }

    /// The last run that is over.
    fn last(&self, now: u64) -> u64 {
        self.next.filter(|next| self.is_over(*next, now)).unwrap_or(0).max(self.record.last)
    }

    fn is_over(&self, run: u64, now: u64) -> bool {
        run <= now || self.gone == Some(run)
    }
}

#[cfg(test)]
mod tests;
