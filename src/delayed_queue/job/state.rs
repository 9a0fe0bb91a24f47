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
use crate::wire::letter::DeadReason;
use crate::wire::time;

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
    /// It was due, and no client has its payload yet.
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
        /// Why.
        reason: DeadReason,
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
        op.ensure_open()?;
        let (queue, op) = (&self.queue, op.reading());
        // In a box, or the futures of callers become so deep that the compiler refuses some.
        let told = Box::pin(scripts::job_states(&queue.conn, &queue.keys, ids)).await;
        let told = told.map_err(|error| op.failed(error))?;
        let state = |state| read(state).ok_or_else(|| op.failed(queue.conn.desynchronised()));
        told.into_iter().map(state).collect()
    }
}

/// One state, as the script tells it.
fn read([word, number, at, text]: [Reply; 4]) -> Option<Option<JobState>> {
    let word = word.into_bytes().ok()?;
    let number = u32::try_from(number.into_int().ok()?).ok()?;
    let at = time::from_epoch_millis(u64::try_from(at.into_int().ok()?).ok()?);
    let text = String::from_utf8_lossy(&text.into_bytes().ok()?).into_owned();
    Some(Some(match &word[..] {
        b"none" => return Some(None),
        b"pending" => JobState::Pending { due: at },
        b"ready" => JobState::Ready,
        b"running" => JobState::InFlight { attempt: number, since: at },
        b"waiting" => JobState::Waiting { retry_at: at, attempts: number, error: text },
        b"dead" => JobState::Dead { reason: DeadReason::read(text.as_bytes()) },
        _ => return None,
    }))
}
