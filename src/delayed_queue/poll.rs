//! Taking entries out of the queue before they are due.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::sleep;

use crate::conn::{OpError, Reply};
use crate::engine::Engine;
use crate::entry;
use crate::keys::Keys;
use crate::script;

/// Entries that were polled, with their due times. Dropped unread, they are put back.
pub(super) struct Polled {
    engine: Arc<Engine>,
    keys: Keys,
    entries: Vec<(Bytes, Option<Bytes>)>,
}

/// Polls up to `n` entries.
///
/// What if this future is dropped? The script's reply would be lost with it, so it runs in a task of its own, whose
/// unread result puts the entries back.
pub(super) async fn poll(engine: &Arc<Engine>, keys: &Keys, n: usize) -> Result<Polled, OpError> {
    let (runner, keys) = (engine.clone(), keys.clone());
    let errand = engine.errands.spawn(async move {
        let reply = script::POLL
            .on(&[keys.timeout_set(), keys.ordered_list(), keys.quarantine()])
            .number(n)
            .run(&runner.conn)
            .await?;
        let items = reply.into_array()?;
        let entries = items.chunks_exact(2).map(|pair| match pair {
            [Reply::Bytes(entry), Reply::Bytes(score)] => Ok((entry.clone(), Some(score.clone()))),
            [Reply::Bytes(entry), Reply::Nil] => Ok((entry.clone(), None)),
            _ => Err(OpError::Server("the reply was not entries and scores".into())),
        });
        Ok(Polled { entries: entries.collect::<Result<_, OpError>>()?, engine: runner, keys })
    });
    errand.await.unwrap_or(Err(OpError::Closed))
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
        // Outside of a runtime nothing can be sent any more.
        if self.entries.is_empty() || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (engine, keys) = (self.engine.clone(), self.keys.clone());
        let args: Vec<Bytes> = std::mem::take(&mut self.entries)
            .into_iter()
            .flat_map(|(entry, score)| [score.unwrap_or_default(), entry])
            .collect();
        self.engine.errands.spawn(async move {
            let channel = Bytes::copy_from_slice(keys.channel().as_bytes());
            let mut pause = Duration::from_millis(10);
            loop {
                let call = script::RESTORE
                    .on(&[keys.timeout_set(), keys.ordered_list(), &channel])
                    .args(args.iter().cloned())
                    .again_is_harmless();
                match call.run(&engine.conn).await {
                    Ok(_) | Err(OpError::Closed) => return,
                    Err(_) => sleep(pause).await,
                }
                pause = (pause * 2).min(Duration::from_secs(1));
            }
        });
    }
}
