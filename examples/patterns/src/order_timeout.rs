//! An order that is not paid in time: jobs by id.

use std::time::Duration;

use redelay::delayed_queue::Offered;
use redelay::{DelayedQueue, Result};

/// `HSET` the order, and `ZADD NX` its due time. `Offered::Kept`: the order is there already, and keeps its
/// time.
pub async fn place(unpaid: &DelayedQueue<String>, id: &str, order: &str, delay: Duration) -> Result<Offered> {
    unpaid.offer(order, delay).id(id).await
}

/// `ZADD XX`. Returns false if it is too late.
pub async fn extend(unpaid: &DelayedQueue<String>, id: &str, delay: Duration) -> Result<bool> {
    unpaid.job(id).reschedule(delay).await
}

/// `ZREM` and `HDEL`. Returns false if it is too late.
pub async fn paid(unpaid: &DelayedQueue<String>, id: &str) -> Result<bool> {
    Ok(unpaid.job(id).cancel().await?.is_removed())
}

/// `HGET`, and `get` knows the due time, too.
pub async fn find(unpaid: &DelayedQueue<String>, id: &str) -> Result<Option<String>> {
    Ok(unpaid.job(id).get().await?.map(|job| job.value))
}
