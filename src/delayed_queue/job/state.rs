//! The states of jobs.

use std::time::SystemTime;

use bytes::Bytes;
use serde::Serialize;

use super::check_id;
use crate::conn::Reply;
use crate::delayed_queue::DelayedQueue;
use crate::error::Result;
use crate::queue::Op;
use crate::scripts;
use crate::wire::time;

/// The most ids of one call.
const CALL: usize = 100;

/// Where a job is. [`Job::state`](crate::delayed_queue::Job::state) returns it. All but `Pending` are those
/// of jobs that hold their ids: see [`JobOffer::until_done`](crate::delayed_queue::JobOffer::until_done). The
/// times are by the server's clock.
///
/// # Examples
/// ```
/// # fn example(state: redelay::delayed_queue::JobState) {
/// if let redelay::delayed_queue::JobState::InFlight { attempt, since, .. } = state {
///     println!("attempt {attempt}, since {since:?}");
/// }
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum JobState {
    /// It is due at this time.
    #[non_exhaustive]
    Pending {
        /// When it is due.
        #[serde(serialize_with = "time::in_epoch_ms")]
        due: SystemTime,
    },
    /// It was due, and nobody has its payload yet.
    Ready,
    /// A handler has it.
    #[non_exhaustive]
    InFlight {
        /// Which attempt that is, from 1 on.
        attempt: u32,
        /// When the attempt began.
        #[serde(serialize_with = "time::in_epoch_ms")]
        since: SystemTime,
    },
    /// It waits for a retry.
    #[non_exhaustive]
    Waiting {
        /// When it is delivered again.
        #[serde(serialize_with = "time::in_epoch_ms")]
        retry_at: SystemTime,
        /// The attempts so far.
        attempts: u32,
        /// The error of the last one that failed, up to 1,000 bytes.
        error: String,
    },
    /// It is a dead letter.
    #[non_exhaustive]
    Dead {
        /// Why: see [`DeadLetter::reason`](crate::admin::DeadLetter::reason).
        reason: String,
    },
}

impl<T: 'static> DelayedQueue<T> {
    /// The states of the jobs of these ids, in their order; `None` where there is no such job. A call of 100
    /// ids costs as much as 100 calls of [`Job::state`](crate::delayed_queue::Job::state) on the server, and
    /// one round trip.
    ///
    /// # Errors
    /// As [`Job::state`](crate::delayed_queue::Job::state).
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(callbacks: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// let states = callbacks.job_states(["merchant-17", "merchant-18"]).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn job_states<I: AsRef<[u8]>>(
        &self,
        ids: impl IntoIterator<Item = I>,
    ) -> Result<Vec<Option<JobState>>> {
        let op = self.queue.reading("job_states");
        let ids: Vec<_> = ids.into_iter().map(|id| Bytes::copy_from_slice(id.as_ref())).collect();
        ids.iter().try_for_each(|id| check_id(op, id))?;
        self.states(op, &ids).await
    }

    pub(super) async fn states(&self, op: Op<'_>, ids: &[Bytes]) -> Result<Vec<Option<JobState>>> {
        let mut states = Vec::with_capacity(ids.len());
        while states.len() < ids.len() {
            let some = ids[states.len()..].iter().take(CALL).cloned();
            let reply =
                op.run(scripts::JOB_STATES.of(&self.queue.keys, None).args(some).only_reads()).await?;
            let mut parts = reply.into_array().map_err(|shape| op.failed(shape))?.into_iter();
            let known = states.len();
            while let Some(word) = parts.next() {
                let state =
                    read(&word, &mut parts).ok_or_else(|| op.failed(self.queue.conn.desynchronised()))?;
                states.push(state);
            }
            if states.len() == known || states.len() > ids.len() {
                return Err(op.failed(self.queue.conn.desynchronised()));
            }
        }
        Ok(states)
    }
}

/// One state, of which the script has said this word.
fn read(word: &Reply, parts: &mut impl Iterator<Item = Reply>) -> Option<Option<JobState>> {
    let Reply::Bytes(word) = word else { return None };
    let number = u32::try_from(parts.next()?.into_int().ok()?).ok()?;
    let at = time::from_epoch_millis(u64::try_from(parts.next()?.into_int().ok()?).ok()?);
    let text = String::from_utf8_lossy(&parts.next()?.into_bytes().ok()?).into_owned();
    Some(Some(match &word[..] {
        b"none" => return Some(None),
        b"pending" => JobState::Pending { due: at },
        b"ready" => JobState::Ready,
        b"running" => JobState::InFlight { attempt: number, since: at },
        b"waiting" => JobState::Waiting { retry_at: at, attempts: number, error: text },
        b"dead" => JobState::Dead { reason: text },
        _ => return None,
    }))
}
