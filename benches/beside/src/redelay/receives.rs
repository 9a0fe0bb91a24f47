//! Receives and acknowledges messages that are ready: by hand, or with a worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use redelay::{BlockingQueue, Worker};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::tasks::{all, shares};
use crate::job::{Receive, Reply};

pub(super) async fn run(
    lists: &[BlockingQueue<String>],
    worker: Worker<String>,
    job: &Receive,
) -> redelay::Result<Reply> {
    let begun = Instant::now();
    if job.by_hand {
        by_hand(lists, job.concurrency, job.count).await?;
    } else {
        with_a_worker(worker, job.concurrency, job.count).await?;
    }
    Ok(Reply { count: job.count, seconds: begun.elapsed().as_secs_f64(), ..Reply::default() })
}

async fn by_hand(lists: &[BlockingQueue<String>], concurrency: usize, count: u64) -> redelay::Result<()> {
    let receivers: Vec<_> = lists.iter().map(BlockingQueue::receiver).collect();
    let shares = shares(count, lists.len());
    let mut tasks = JoinSet::new();
    for (receiver, left) in receivers.iter().zip(&shares).cycle().take(concurrency) {
        let (receiver, left) = (receiver.clone(), left.clone());
        tasks.spawn(async move {
            while left.fetch_sub(1, Relaxed) > 0 {
                receiver.receive().await?.ack().await?;
            }
            Ok(())
        });
    }
    all(tasks).await
}

/// Ends when all are acknowledged.
async fn with_a_worker(worker: Worker<String>, concurrency: usize, count: u64) -> redelay::Result<()> {
    let (handled, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(Notify::new()));
    let over = is_over.clone();
    let handler = move |_: String| {
        if handled.fetch_add(1, Relaxed) + 1 == count {
            is_over.notify_one();
        }
        std::future::ready(())
    };
    worker.concurrency(concurrency).run_until(over.notified(), handler).await.map(drop)
}
