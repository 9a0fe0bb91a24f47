//! Cancelling jobs. Many of them share one pass through the ordered list, whether one call names them or many
//! concurrent calls do: while a call of the server is under way, further cancels of this handle and its
//! clones wait, and go together then.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Mutex;

use super::batch::{OpenBatch, Requests};
use crate::conn::{Conn, OpError, Reply};
use crate::pacing::yield_once;
use crate::scripts;
use crate::wire::keys::{Keys, new_id};

/// The most jobs of one call.
const CALL: usize = 1000;
/// More jobs than this are cancelled in one pass through the ordered list.
const ALONE: usize = 32;
/// The most passes. What they have not found is not in the ordered list, or others change it all the time.
const PASSES: u32 = 2;
/// How long a call cancels, µs.
const CANCEL_US: u64 = 10_000;

/// Cancels jobs of one queue. Clones share their calls.
#[derive(Clone, Debug)]
pub(super) struct Canceller {
    conn: Conn,
    keys: Keys,
    open: Arc<OpenBatch<Bytes, bool>>,
    /// Held by the batch that is being sent.
    turn: Arc<Mutex<()>>,
}

impl Canceller {
    pub(super) fn new(conn: Conn, keys: Keys) -> Self {
        Self { conn, keys, open: Arc::default(), turn: Arc::default() }
    }

    /// Cancels one job, in a call with others. Returns whether it was pending.
    pub(super) async fn one(&self, id: Bytes) -> Result<bool, OpError> {
        let start = |requests| drop(self.conn.runtime().spawn(self.clone().flush(requests)));
        self.open.ask(id, self.conn.command_timeout(), start).await
    }

    async fn flush(self, requests: Requests<Bytes, bool>) {
        yield_once().await;
        let _turn = self.turn.lock().await;
        let requests = requests.take().await;
        let ids: Vec<_> = requests.iter().map(|request| request.what.clone()).collect();
        let mut waiting: HashMap<_, Vec<_>> = HashMap::new();
        for request in requests {
            waiting.entry(request.what).or_default().push(request.answer);
        }
        let answer = |id: &Bytes, mut was_pending| {
            for waiting in waiting.remove(id).unwrap_or_default() {
                // Only one caller has cancelled the job: the first whose future was not dropped.
                was_pending &= waiting.send(Ok(was_pending)).is_err();
            }
        };
        if let Err(error) = self.all(&ids, answer).await {
            for waiting in waiting.into_values().flatten() {
                // An error means that the caller was dropped.
                let _ = waiting.send(Err(error.clone()));
            }
        }
    }

    /// Cancels jobs. Tells of each id once whether it was pending, as soon as that is known, so also before
    /// an error.
    pub(super) async fn all(
        &self,
        ids: &[Bytes],
        mut on_result: impl FnMut(&Bytes, bool),
    ) -> Result<(), OpError> {
        let mut seen = HashSet::new();
        let ids: Vec<_> = ids.iter().filter(|id| seen.insert(*id)).collect();
        for ids in ids.chunks(CALL) {
            self.some(ids, &mut on_result).await?;
        }
        Ok(())
    }

    async fn some(&self, ids: &[&Bytes], on_result: &mut impl FnMut(&Bytes, bool)) -> Result<(), OpError> {
        let keys = &self.keys;
        let mut left = ids.to_vec();
        let mut from: i64 = if left.len() > ALONE { 0 } else { -1 };
        let mut passes = 1;
        while !left.is_empty() {
            let call = scripts::CANCEL_JOBS
                .on(&[keys.timeout_set(), keys.ordered_list(), &keys.jobs(), keys.scratch()])
                .number(CANCEL_US)
                .number(from)
                .arg(new_id())
                .args(left.iter().copied().cloned());
            let mut results = call.run(&self.conn).await?.into_array()?.into_iter();
            self.open.on_step();
            let mut next = || results.next().unwrap_or(Reply::Nil).into_int();
            from = next()?;
            let mut pending = Vec::new();
            for id in left {
                match next()? {
                    -1 => pending.push(id),
                    result => on_result(id, result == 1),
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
