//! A change of a schedule: it is read, decided on, and written if no other client has changed it in between.
//! Otherwise all of it is tried again.

use std::time::Duration;

use tokio::time::Instant;

use super::Schedule;
use crate::conn::OpError;
use crate::error::Result;
use crate::queue::Op;
use crate::recurrence::{ScheduleRecord, State, Step};
use crate::schedules::{self, Change, Named};

/// How often a change is tried while others change the same schedule.
const TRIES: usize = 100;
/// The most changes that only store missed runs.
const PARTS: usize = 1_000;

/// What a change leaves.
pub(super) struct Changed {
    /// Whether there was such a schedule before.
    pub(super) existed: bool,
    pub(super) next: Option<u64>,
}

impl<T: 'static> Schedule<T> {
    /// The server's time, and the state of the schedule, if there is one.
    pub(super) async fn state(&self, op: Op<'_>) -> Result<(u64, Option<State>)> {
        let (now, schedule) = self.read(op).await?;
        Ok((now, super::stored::state(op, &schedule)?))
    }

    async fn read(&self, op: Op<'_>) -> Result<(u64, Named)> {
        let queue = &self.queue.queue;
        op.ensure_open()?;
        schedules::read_one(&queue.conn, &queue.keys, &self.name).await.map_err(|error| op.failed(error))
    }

    /// Offers a run between the others, unless one is not done. Returns whether it does.
    pub(super) async fn trigger_alone(&self, op: Op<'_>) -> Result<bool> {
        let queue = &self.queue.queue;
        let (conn, keys) = (&queue.conn, &queue.keys);
        let mut lost = None;
        for _ in 0..TRIES {
            let known = async {
                let (now, schedule) = self.read(op).await?;
                let state = super::stored::state(op, &schedule)?;
                let record = state.iter().map(|state| (&schedule.name, &state.record));
                let running =
                    schedules::running(conn, keys, record).await.map_err(|error| op.failed(error))?;
                Ok((now, running.contains(&true), schedule, state))
            };
            let known: Result<_> = known.await;
            let (now, is_running, schedule, state) = match known {
                Ok(known) => known,
                Err(error) => return Err(lost.map_or(error, |(_, error)| error)),
            };
            let Some(state) = state else { return Ok(false) };
            if lost.as_ref().is_some_and(|(run, _)| state.record.last >= *run) {
                return Ok(true);
            }
            let Some(step) = Step::trigger(&state, now, is_running) else { return Ok(false) };
            match schedules::change(conn, keys, &schedule, &step).await {
                Ok((Change::Changed, head)) => {
                    op.on_head(head);
                    return Ok(true);
                }
                Ok(_) => {}
                Err(error) => {
                    let error = op.failed(error);
                    if !error.is_outcome_unknown() {
                        return Err(lost.map_or(error, |(_, error)| error));
                    }
                    op.on_lost(&error);
                    lost = Some((now, error));
                }
            }
        }
        Err(lost.map_or_else(|| op.failed(contended()), |(_, error)| error))
    }

    /// Changes the schedule by what `decide` makes of its state. If `catches_up` says so, the runs that are
    /// due come first, with those that were missed.
    ///
    /// The script changes it only if it is as it was read. So after a lost reply, it is read and decided on
    /// once more.
    pub(super) async fn change(
        &self,
        op: Op<'_>,
        catches_up: impl Fn(&State) -> bool,
        decide: impl Fn(Result<Option<State>>, u64) -> Result<Option<Step>>,
    ) -> Result<Changed> {
        let queue = &self.queue.queue;
        let (mut existed, mut lost, mut gone) = (None, None, None);
        let (mut tries, mut parts) = (0, 0);
        let mut late = Duration::ZERO;
        while tries < TRIES {
            let begun = Instant::now();
            let (now, schedule) = match self.read(op).await {
                Ok(read) => read,
                Err(error) => return Err(lost.unwrap_or(error)),
            };
            let existed = *existed.get_or_insert(schedule.bytes.is_some());
            let mut state = super::stored::state(op, &schedule);
            if let Ok(Some(state)) = &mut state {
                state.gone = gone.as_ref().and_then(|(run, bytes)| (*bytes == state.bytes).then_some(*run));
            }
            let readable = state.as_ref().ok().and_then(Option::as_ref);
            let next = readable.and_then(|state| next_run(&state.record, state.next));
            // If this program cannot tell what was missed, nothing was.
            let due = readable.filter(|state| catches_up(state));
            let due = due.and_then(|state| Step::advance(state, now, false).ok().flatten());
            let is_part =
                parts < PARTS && due.as_ref().is_some_and(|due| due.next.is_some_and(|next| next <= now));
            let step = match due {
                Some(due) if is_part => Some(due),
                Some(due) => {
                    let decided = decide(Ok(due.state()), now)?;
                    Some(due.then(decided))
                }
                // The first run of a new schedule must lie ahead when the change arrives.
                None if schedule.bytes.is_none() => decide(state, now + late.as_millis() as u64)?,
                None => decide(state, now)?,
            };
            let Some(step) = step else { return Ok(Changed { existed, next }) };
            *(if is_part { &mut parts } else { &mut tries }) += 1;
            match schedules::change(&queue.conn, &queue.keys, &schedule, &step).await {
                Ok((Change::Changed, head)) => {
                    op.on_head(head);
                    op.on_schedule();
                    if !is_part {
                        let next = step.record.and_then(|record| next_run(&record, step.next));
                        return Ok(Changed { existed, next });
                    }
                }
                Ok((Change::Differs, _)) => late = 2 * begun.elapsed(),
                Ok((Change::Gone, _)) => gone = step.withdrawn.map(|(run, _)| run).zip(schedule.bytes),
                Err(error) => {
                    let error = op.failed(error);
                    if !error.is_outcome_unknown() {
                        return Err(lost.unwrap_or(error));
                    }
                    op.on_lost(&error);
                    op.on_schedule();
                    lost = Some(error);
                }
            }
        }
        Err(lost.unwrap_or_else(|| op.failed(contended())))
    }
}

/// The time of a run that is held back is in its record; `next` is the time of the next look.
fn next_run(record: &ScheduleRecord, next: Option<u64>) -> Option<u64> {
    Some(record.held).filter(|held| *held > 0).or(next)
}

fn contended() -> OpError {
    OpError::NotExecuted("others change the schedule all the time".into())
}
