//! Receives and acknowledges messages that are ready: by hand, or with a worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use redelay::{BlockingQueue, Worker};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::all;
use crate::job::{Receive, Reply};

pub(super) async fn run(queue: &BlockingQueue<String>, job: &Receive) -> redelay::Result<Reply> {
    let begun = Instant::now();
    if job.by_hand {
        by_hand(queue, job.concurrency, job.count).await?;
    } else {
        with_a_worker(queue, job.concurrency, job.count).await?;
    }
    Ok(Reply { count: job.count, seconds: begun.elapsed().as_secs_f64(), ..Reply::default() })
}

async fn by_hand(queue: &BlockingQueue<String>, concurrency: usize, count: u64) -> redelay::Result<()> {
    let receiver = queue.receiver();
    let left = Arc::new(AtomicI64::new(count as i64));
    let mut tasks = JoinSet::new();
    for _ in 0..concurrency {
        let (receiver, left) = (receiver.clone(), left.clone());
        tasks.spawn(async move {
            // Each message is counted before it is received, so that nobody waits for one that does not come.
            while left.fetch_sub(1, Relaxed) > 0 {
                receiver.receive().await?.ack().await?;
            }
            Ok(())
        });
    }
    all(tasks).await
}

/// Ends when all are acknowledged.
async fn with_a_worker(queue: &BlockingQueue<String>, concurrency: usize, count: u64) -> redelay::Result<()> {
    let (handled, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(Notify::new()));
    let over = is_over.clone();
    let signals = futures::stream::once(async move { over.notified().await });
    let handler = move |_: String| {
        if handled.fetch_add(1, Relaxed) + 1 == count {
            is_over.notify_one();
        }
        std::future::ready(())
    };
    Worker::new(queue).concurrency(concurrency).run_until(signals, handler).await.map(drop)
}
