//! Cancelling jobs. Many of them share one pass through the ordered list, whether one call names them or many
//! concurrent calls do: while a call of the server is under way, further cancels of this handle and its
//! clones wait, and go together then.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use tokio::sync::Mutex;

use super::batch::{OpenBatch, Requests};
use crate::conn::{Conn, OpError, Reply};
use crate::pacing::yield_once;
use crate::scripts;
use crate::wire::id;
use crate::wire::keys::Keys;

/// The most jobs of one call.
const CALL: usize = 1000;
/// More jobs than this are cancelled in one pass through the ordered list.
const ALONE: usize = 32;
/// The most passes. What they have not found is not in the ordered list, or others change it all the time.
const PASSES: u32 = 2;
/// How long a call cancels, µs.
const CANCEL_US: u64 = 10_000;

/// What became of a job that was to be cancelled.
///
/// # Examples
/// ```
/// # fn example(cancelled: redelay::delayed_queue::Cancelled) {
/// if cancelled == redelay::delayed_queue::Cancelled::NotFound {
///     println!("too late");
/// }
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cancelled {
    /// It is removed.
    Removed,
    /// A handler has it, and it holds its id. It is removed when that handler returns without acknowledging
    /// it, or a receiver finds that its lease has ended: it is not delivered again. Until then, it holds its
    /// id.
    Requested,
    /// There is no such job: it was due before, or handled, or there never was one.
    NotFound,
}

impl Cancelled {
    /// Whether the job is removed.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// if !orders.job("order-17").cancel().await?.is_removed() {
    ///     println!("it was due or cancelled before, or a handler has it and is asked to stop");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn is_removed(self) -> bool {
        self == Self::Removed
    }
}

/// Cancels jobs of one queue. Clones share their calls.
#[derive(Clone, Debug)]
pub(super) struct Canceller {
    conn: Conn,
    keys: Keys,
    open: Arc<OpenBatch<Bytes, Cancelled>>,
    /// Held by the batch that is being sent.
    turn: Arc<Mutex<()>>,
}

impl Canceller {
    pub(super) fn new(conn: Conn, keys: Keys) -> Self {
        Self { conn, keys, open: Arc::default(), turn: Arc::default() }
    }

    /// Cancels one job, in a call with others.
    pub(super) async fn one(&self, id: Bytes) -> Result<Cancelled, OpError> {
        let start = |requests| drop(self.conn.runtime().spawn(self.clone().flush(requests)));
        self.open.ask(id, self.conn.command_timeout(), start).await
    }

    async fn flush(self, requests: Requests<Bytes, Cancelled>) {
        yield_once().await;
        let _turn = self.turn.lock().await;
        let requests = requests.take().await;
        let ids: Vec<_> = requests.iter().map(|request| request.what.clone()).collect();
        let mut waiting: HashMap<_, Vec<_>> = HashMap::new();
        for request in requests {
            waiting.entry(request.what).or_default().push(request.answer);
        }
        let answer = |id: &Bytes, mut cancelled| {
            for waiting in waiting.remove(id).unwrap_or_default() {
                // Only one caller has removed the job: the first whose future was not dropped.
                if waiting.send(Ok(cancelled)).is_ok() && cancelled == Cancelled::Removed {
                    cancelled = Cancelled::NotFound;
                }
            }
        };
        if let Err(error) = self.all(&ids, answer).await {
            for waiting in waiting.into_values().flatten() {
                // An error means that the caller was dropped.
                let _ = waiting.send(Err(error.clone()));
            }
        }
    }

    /// Cancels jobs. Tells of each id once what has become of it, as soon as that is known, so also before an
    /// error.
    pub(super) async fn all(
        &self,
        ids: &[Bytes],
        mut on_result: impl FnMut(&Bytes, Cancelled),
    ) -> Result<(), OpError> {
        let mut seen = HashSet::new();
        let ids: Vec<_> = ids.iter().filter(|id| seen.insert(*id)).collect();
        for ids in ids.chunks(CALL) {
            self.some(ids, &mut on_result).await?;
        }
        Ok(())
    }

    async fn some(
        &self,
        ids: &[&Bytes],
        on_result: &mut impl FnMut(&Bytes, Cancelled),
    ) -> Result<(), OpError> {
        let mut left = ids.to_vec();
        let mut from: i64 = if left.len() > ALONE { 0 } else { -1 };
        let mut passes = 1;
        while !left.is_empty() {
            let call = scripts::CANCEL_JOBS
                .of(&self.keys, None)
                .number(CANCEL_US)
                .number(from)
                .arg(id::text())
                .args(left.iter().copied().cloned());
            let mut results = call.run(&self.conn).await?.into_array()?.into_iter();
            self.open.on_step();
            let mut next = || results.next().unwrap_or(Reply::Nil).into_int();
            from = next()?;
            let mut pending = Vec::new();
            for id in left {
                match next()? {
                    -1 => pending.push(id),
                    0 => on_result(id, Cancelled::NotFound),
                    2 => on_result(id, Cancelled::Requested),
                    _ => on_result(id, Cancelled::Removed),
                }
            }
            left = pending;
            // If others have removed entries meanwhile, a pass may miss some.
            if from < 0 && left.len() > ALONE && passes < PASSES {
                from = 0;
                passes += 1;
            }
        }
        Ok(())
    }
}
