//! A worker that runs until it is stopped, and counts.

use std::future::pending;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use redelay::worker::{Backoff, Context, Outcome};
use redelay::{BlockingQueue, Worker};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::job::{Handler, Reply, Work, due, now};

pub(super) struct Working {
    counts: Arc<Counts>,
    stop: oneshot::Sender<()>,
    worker: JoinHandle<redelay::Result<()>>,
}

#[derive(Default)]
struct Counts {
    count: AtomicU64,
    late: Mutex<Vec<i64>>,
}

impl Working {
    pub(super) fn start(queues: &[BlockingQueue<String>], job: &Work) -> Self {
        let counts = Arc::<Counts>::default();
        let (stop, stopped) = oneshot::channel::<()>();
        let worker = Worker::weighted(queues.iter().map(|queue| (queue, 1)))
            .concurrency(job.concurrency)
            .lease(Duration::from_millis(job.lease_ms))
            .backoff(Backoff::fixed(Duration::from_millis(1)))
            .grace(Duration::ZERO);
        let (kind, counted) = (job.handler, counts.clone());
        let handler = move |payload: String, context: Context| {
            let counted = counted.clone();
            async move { handle(kind, &payload, &context, &counted).await }
        };
        let worker = tokio::spawn(async move { worker.run_until(stopped, handler).await.map(drop) });
        Self { counts, stop, worker }
    }

    pub(super) fn count(&self) -> u64 {
        self.counts.count.load(Relaxed)
    }

    pub(super) async fn stop(self) -> redelay::Result<Reply> {
        let _ = self.stop.send(());
        self.worker.await.expect("a task that does not panic")?;
        let late = std::mem::take(&mut *self.counts.late.lock().expect("no panic"));
        Ok(Reply { count: self.counts.count.load(Relaxed), late, ..Reply::default() })
    }
}

async fn handle(kind: Handler, payload: &str, context: &Context, counts: &Counts) -> Outcome {
    match kind {
        Handler::Done => {}
        Handler::Late => counts.late.lock().expect("no panic").push(now() - due(payload)),
        Handler::FailOnce if context.attempt() == 1 => {
            return Outcome::Retry("the first attempt fails".into());
        }
        Handler::FailOnce => {}
        Handler::Hold => {
            counts.count.fetch_add(1, Relaxed);
            pending::<()>().await;
        }
    }
    counts.count.fetch_add(1, Relaxed);
    Outcome::Done
}
