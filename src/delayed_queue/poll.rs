//! Taking entries out of the queue before they are due.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::{sleep, timeout};
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::conn::{Command, Conn, OpError, backoff};
use crate::engine::Engine;
use crate::entry;
use crate::keys::Keys;
use crate::script;

/// Entries that were polled, with their due times. Dropped unread, they are put back.
pub(super) struct Polled {
    engine: Arc<Engine>,
    keys: Keys,
    /// Each with its score, which is empty for an entry that was in the list only.
    entries: Vec<(Bytes, Bytes)>,
    /// Lets a shutdown wait until they are read or put back.
    _on_their_way: TaskTrackerToken,
}

/// Entries that one call polls at most.
const CALL: usize = 1000;

/// Polls up to `n` entries.
///
/// What if this future is dropped? The script's reply would be lost with it, so it runs in a task of its own, whose
/// unread result puts the entries back. What if the reply is lost? The same poll is sent again, and gets what the
/// first try took.
pub(super) async fn poll(engine: &Arc<Engine>, keys: &Keys, n: usize) -> Result<Polled, OpError> {
    let _on_their_way = engine.errands.token();
    let mut polled =
        Polled { engine: engine.clone(), keys: keys.clone(), entries: Vec::new(), _on_their_way };
    let errand = engine.errands.spawn(async move {
        while polled.entries.len() < n {
            let most = CALL.min(n - polled.entries.len());
            let more = match call(&polled.engine.conn, &polled.keys, most).await {
                Ok(more) => more,
                // What came before the error is here, and must not go with it.
                Err(_) if !polled.entries.is_empty() => break,
                Err(error) => return Err(error),
            };
            let last = more.len() < most;
            polled.entries.extend(more);
            if last {
                break;
            }
        }
        Ok(polled)
    });
    // From a server that has fallen silent the answer may not come; the errand goes on, and puts back what it gets.
    let silent = || OpError::NotExecuted("the server does not answer".into());
    let answer = timeout(engine.conn.command_timeout() * 2, errand).await.map_err(|_| silent())?;
    answer.unwrap_or(Err(OpError::Closed))
}

/// Entries and their scores, as the script has them.
async fn call(conn: &Conn, keys: &Keys, most: usize) -> Result<Vec<(Bytes, Bytes)>, OpError> {
    let claim = keys.popped();
    let reply = script::POLL
        .on(&[keys.timeout_set(), keys.ordered_list(), keys.quarantine(), &claim])
        .number(most)
        .number(script::REMEMBERED_MS)
        .run_until_answered(conn)
        .await?;
    let items = reply.into_counted_bytes()?;
    if !items.is_empty() {
        // If this is lost, the server forgets by itself.
        let _ = conn.call(Command::new("DEL").arg(claim)).await;
    }
    Ok(items.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
}

impl Polled {
    /// Takes the payloads: from here on they are the caller's.
    pub(super) fn into_payloads(mut self) -> impl Iterator<Item = Bytes> {
        let entries = std::mem::take(&mut self.entries);
        // The script lets only entries through that have a payload.
        entries.into_iter().map(|(entry, _)| {
            entry::payload(&entry).map_or_else(Bytes::new, |payload| entry.slice_ref(payload))
        })
    }
}

impl Drop for Polled {
    fn drop(&mut self) {
        if self.entries.is_empty() {
            return;
        }
        let (engine, keys) = (self.engine.clone(), self.keys.clone());
        let args: Vec<Bytes> =
            std::mem::take(&mut self.entries).into_iter().flat_map(|(entry, score)| [score, entry]).collect();
        // Whoever drops it may be outside of the runtime.
        let errand = self.engine.errands.track_future(async move {
            let channel = Bytes::copy_from_slice(keys.channel().as_bytes());
            let marker = keys.returned();
            for attempt in 0.. {
                let call = script::RESTORE
                    .on(&[keys.timeout_set(), keys.ordered_list(), &channel, &marker])
                    .number(script::REMEMBERED_MS)
                    .args(args.iter().cloned())
                    .again_is_harmless();
                match call.run(&engine.conn).await {
                    Ok(_) | Err(OpError::Closed) => return,
                    Err(_) => sleep(backoff(attempt)).await,
                }
            }
        });
        self.engine.runtime.spawn(errand);
    }
}
