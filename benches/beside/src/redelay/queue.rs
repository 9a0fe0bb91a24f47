//! What the name of a queue in a job stands for.

use std::time::Duration;

use redelay::{BlockingQueue, Client, DelayedQueue, PartitionedQueue, Worker, codec};

#[derive(Clone)]
pub(super) enum Queue {
    Ordinary { ready: BlockingQueue<String>, delayed: DelayedQueue<String> },
    Partitioned(PartitionedQueue<String>),
}

impl Queue {
    /// One partition stands for an ordinary queue.
    pub(super) async fn open(client: &Client, name: &str, partitions: usize) -> redelay::Result<Self> {
        if partitions > 1 {
            let queue = client.partitioned_queue(name, partitions, codec::String).await?;
            return Ok(Self::Partitioned(queue));
        }
        let ready = client.blocking_queue(name, codec::String);
        let delayed = client.delayed_queue(&ready);
        Ok(Self::Ordinary { ready, delayed })
    }

    pub(super) async fn offer(&self, payload: &String, delay: Duration) -> redelay::Result<()> {
        match self {
            Self::Ordinary { delayed, .. } => delayed.offer(payload, delay).await.map(drop),
            Self::Partitioned(queue) => queue.offer(payload, delay).await.map(drop),
        }
    }

    pub(super) async fn offer_all(&self, batch: &[(String, Duration)]) -> redelay::Result<()> {
        let batch = batch.iter().map(|(payload, delay)| (payload, *delay));
        match self {
            Self::Ordinary { delayed, .. } => delayed.offer_all(batch).await.map(drop),
            Self::Partitioned(queue) => queue.offer_all(batch).await.map(drop),
        }
    }

    /// Of whichever partition has a payload.
    pub(super) async fn take(&self) -> redelay::Result<String> {
        match self {
            Self::Ordinary { ready, .. } => ready.take().await,
            Self::Partitioned(queue) => queue.take().await,
        }
    }

    pub(super) fn worker(&self) -> Worker<String> {
        match self {
            Self::Ordinary { ready, .. } => Worker::new(ready),
            Self::Partitioned(queue) => queue.worker(),
        }
    }

    /// The list of each partition.
    pub(super) fn lists(&self) -> Vec<BlockingQueue<String>> {
        match self {
            Self::Ordinary { ready, .. } => vec![ready.clone()],
            Self::Partitioned(queue) => queue.queues().cloned().collect(),
        }
    }

    pub(super) async fn destroy(&self) {
        match self {
            Self::Ordinary { delayed, .. } => delayed.destroy().await,
            Self::Partitioned(queue) => {
                for delayed in queue.delayed_queues() {
                    delayed.destroy().await;
                }
            }
        }
    }
}
