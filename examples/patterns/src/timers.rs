//! The job of a timing wheel: many short timers, most of which are cancelled.

use std::time::Duration;

use futures::StreamExt;
use redelay::{BlockingQueue, DelayedQueue, Result};

/// Starts a timer for each request, a thousand in a call.
pub async fn start(timers: &DelayedQueue<i64>, requests: &[(i64, Duration)]) -> Result<()> {
    timers.offer_jobs(requests.iter().map(|(id, timeout)| (id.to_string(), id, *timeout))).await?;
    Ok(())
}

/// Cancels the timers of requests that were answered. Returns how many had not ended.
pub async fn answered(timers: &DelayedQueue<i64>, requests: &[i64]) -> Result<usize> {
    let cancelled = timers.cancel_all(requests.iter().map(i64::to_string)).await?;
    Ok(cancelled.into_iter().filter(|one| one.is_removed()).count())
}

/// Calls `on_timeout` for each request whose timer ends, until the client stops taking.
pub async fn run(ended: BlockingQueue<i64>, mut on_timeout: impl FnMut(Result<i64>)) {
    let mut ended = ended.into_stream();
    while let Some(request) = ended.next().await {
        on_timeout(request);
    }
}
