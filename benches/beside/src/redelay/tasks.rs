//! Tasks that share the payloads of several lists: what is left to claim, and waiting until all have ended.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use tokio::task::JoinSet;

/// Waits for all tasks. Returns the first error, if there is one.
pub(super) async fn all(mut tasks: JoinSet<redelay::Result<()>>) -> redelay::Result<()> {
    while let Some(ended) = tasks.join_next().await {
        ended.expect("a task that does not panic")?;
    }
    Ok(())
}

/// For each of several lists, how many of its payloads nobody has claimed. Each payload is claimed before it
/// is taken, so that no taker waits for one that does not come.
pub(super) fn shares(count: u64, lists: usize) -> Vec<Arc<AtomicI64>> {
    (0..lists).map(|_| Arc::new(AtomicI64::new(count as i64 / lists as i64))).collect()
}
