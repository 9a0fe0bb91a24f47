//! A change of a schedule: it is read, decided on, and written if nobody has changed it in between. Otherwise all of it is
//! tried again.

use super::Schedule;
use crate::conn::OpError;
use crate::error::Result;
use crate::queue::Op;
use crate::recurrence::{State, Step};
use crate::schedules::{self, Named, Outcome};

/// How often a change is tried while others change the same schedule.
const TRIES: usize = 20;

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
        let state = schedule.map(|schedule| super::state(op, &schedule)).transpose()?.flatten();
        Ok((now, state))
    }

    async fn read(&self, op: Op<'_>) -> Result<(u64, Option<Named>)> {
        let queue = &self.queue.queue;
        op.ensure_open()?;
        schedules::read_one(&queue.conn, &queue.keys, &self.name).await.map_err(|error| op.failed(error))
    }

    /// Changes the schedule by what `decide` makes of its state. If `catches_up` says so, the runs that are due come first, with
    /// those that were missed.
    ///
    /// The script changes it only if it is as it was read. So after a lost reply, it is read and decided on once more.
    pub(super) async fn change(
        &self,
        op: Op<'_>,
        catches_up: impl Fn(&State) -> bool,
        decide: impl Fn(Result<Option<State>>, u64) -> Result<Option<Step>>,
    ) -> Result<Changed> {
        let queue = &self.queue.queue;
        let (mut existed, mut lost, mut gone) = (None, None, None);
        let mut tries = 0;
        while tries < TRIES {
            let (now, schedule) = match self.read(op).await {
                Ok(read) => read,
                Err(error) => return Err(lost.unwrap_or(error)),
            };
            let existed = *existed.get_or_insert(schedule.is_some());
            let mut state = schedule.as_ref().map_or(Ok(None), |schedule| super::state(op, schedule));
            if let Ok(Some(state)) = &mut state {
                state.gone = gone.as_ref().and_then(|(run, bytes)| (*bytes == state.bytes).then_some(*run));
            }
            let readable = state.as_ref().ok().and_then(Option::as_ref);
            let next = readable.and_then(|state| state.next);
            // If this program cannot tell what was missed, nothing was.
            let due = readable.filter(|state| catches_up(state));
            let due = due.and_then(|state| Step::advance(state, now).ok().flatten());
            let is_last = due.is_none();
            let step = match due {
                Some(due) => Some(due),
                None => decide(state, now)?,
            };
            let Some(step) = step else { return Ok(Changed { existed, next }) };
            let old = schedule.and_then(|schedule| schedule.bytes).unwrap_or_default();
            tries += usize::from(is_last);
            match schedules::change(&queue.conn, &queue.keys, &self.name, &old, &step).await {
                Ok((Outcome::Changed, head)) => {
                    op.on_head(head);
                    op.on_schedule();
                    if is_last {
                        return Ok(Changed { existed, next: step.next });
                    }
                }
                Ok((Outcome::Differs, _)) => {}
                Ok((Outcome::Gone, _)) => gone = step.withdrawn.map(|(run, _)| (run, old)),
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
        Err(lost.unwrap_or_else(|| {
            op.failed(OpError::NotExecuted("others change the schedule all the time".into()))
        }))
    }
}
