//! Callbacks that are deleted by their ids, whatever state they are in.

use redelay::{DelayedQueue, Result};

/// Deletes jobs that were offered with these ids and `until_done`.
pub async fn stop(callbacks: &DelayedQueue<String>, ids: &[String]) -> Result<()> {
    callbacks.cancel_all(ids).await.map(drop)
}
