//! The worker on redelay: this program, which starts itself again.

mod receives;
mod working;

use std::collections::HashMap;
use std::io::{Write, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use redelay::{BlockingQueue, Client, DelayedQueue, codec};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::codecs;
use crate::job::{Fill, Job, Offer, Reply, due, now, payload};
use working::Working;

/// Runs jobs until the input ends.
pub(crate) fn work(url: &str) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let mut worker = runtime.block_on(Worker::connect(url));
    answer(&Reply::default());
    for line in stdin().lines() {
        let job = serde_json::from_str(&line.expect("a readable line")).expect("a job");
        let reply = runtime.block_on(worker.run(job));
        answer(&reply.unwrap_or_else(|error| Reply { error: Some(error.to_string()), ..Reply::default() }));
    }
}

pub(crate) fn answer(reply: &Reply) {
    let mut out = stdout().lock();
    serde_json::to_writer(&mut out, reply).expect("an open pipe");
    out.write_all(b"\n").and_then(|()| out.flush()).expect("an open pipe");
}

struct Worker {
    client: Client,
    open: HashMap<String, DelayedQueue<String>>,
    collector: Option<Collector>,
    working: Option<Working>,
}

impl Worker {
    async fn connect(url: &str) -> Self {
        let client = Client::connect(url).await.unwrap_or_else(|error| panic!("{error}"));
        Self { client, open: HashMap::new(), collector: None, working: None }
    }

    async fn run(&mut self, job: Job) -> redelay::Result<Reply> {
        match job {
            Job::Open { queue, number } => {
                (0..number).for_each(|n| drop(self.delayed(&format!("{queue}-{n}"))));
                Ok(Reply::default())
            }
            Job::Close => {
                for (_, queue) in self.open.drain() {
                    queue.destroy().await;
                }
                Ok(Reply::default())
            }
            Job::Offer(job) => offer(self.delayed(&job.queue), job).await,
            Job::Take { queue, takers, count } => take(&self.ready(&queue), takers, count).await,
            Job::Collect { queue, takers } => {
                self.delayed(&queue);
                self.collector = Some(Collector::start(&self.ready(&queue), takers));
                Ok(Reply::default())
            }
            Job::Collected => {
                let takers = self.collector.as_ref().map_or(0, |collector| collector.count.load(Relaxed));
                let handlers = self.working.as_ref().map_or(0, Working::count);
                Ok(Reply { count: takers + handlers, ..Reply::default() })
            }
            Job::Stop => match self.working.take() {
                Some(working) => working.stop().await,
                None => self.collector.take().expect("something was started").stop().await,
            },
            Job::Fill(job) => fill(&self.ready(&job.queue), &job).await,
            Job::Receive(job) => receives::run(&self.ready(&job.queue), &job).await,
            Job::Work(job) => {
                self.delayed(&job.queue);
                self.working = Some(Working::start(&self.ready(&job.queue), &job));
                Ok(Reply::default())
            }
            Job::Codec { codec, encode, millis } => {
                Ok(codecs::run(&codec, encode, Duration::from_millis(millis)))
            }
        }
    }

    fn ready(&self, name: &str) -> BlockingQueue<String> {
        self.client.blocking_queue(name, codec::String)
    }

    fn delayed(&mut self, name: &str) -> DelayedQueue<String> {
        if !self.open.contains_key(name) {
            self.open.insert(name.to_owned(), self.client.delayed_queue(&self.ready(name)));
        }
        self.open[name].clone()
    }
}

/// Waits for all tasks. Returns the first error, if there is one.
async fn all(mut tasks: JoinSet<redelay::Result<()>>) -> redelay::Result<()> {
    while let Some(ended) = tasks.join_next().await {
        ended.expect("a task that does not panic")?;
    }
    Ok(())
}

async fn offer(queue: DelayedQueue<String>, job: Offer) -> redelay::Result<Reply> {
    let begun = Instant::now();
    let stored = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    if job.per_second > 0.0 {
        for n in 0..job.count {
            tokio::time::sleep_until((begun + Duration::from_secs_f64(n as f64 / job.per_second)).into())
                .await;
            let (queue, job, stored) = (queue.clone(), job.clone(), stored.clone());
            tasks.spawn(async move { offer_batch(&queue, &job, &stored).await });
        }
    } else {
        let claimed = Arc::new(AtomicU64::new(0));
        let end = begun + Duration::from_millis(job.millis);
        for _ in 0..job.concurrency {
            let (queue, job) = (queue.clone(), job.clone());
            let (stored, claimed) = (stored.clone(), claimed.clone());
            tasks.spawn(async move {
                while claimed.fetch_add(job.batch as u64, Relaxed) < job.count && Instant::now() < end {
                    offer_batch(&queue, &job, &stored).await?;
                }
                Ok(())
            });
        }
    }
    all(tasks).await?;
    Ok(Reply { count: stored.load(Relaxed), seconds: begun.elapsed().as_secs_f64(), ..Reply::default() })
}

async fn offer_batch(queue: &DelayedQueue<String>, job: &Offer, stored: &AtomicU64) -> redelay::Result<()> {
    let fresh = || {
        let delay = fastrand::u64(job.delay.0..=job.delay.1);
        (payload(now() + delay as i64 * 1_000, job.size), Duration::from_millis(delay))
    };
    if job.batch == 1 {
        let (payload, delay) = fresh();
        queue.offer(&payload, delay).await?;
    } else {
        let batch: Vec<_> = (0..job.batch).map(|_| fresh()).collect();
        queue.offer_all(batch.iter().map(|(payload, delay)| (payload, *delay))).await?;
    }
    stored.fetch_add(job.batch as u64, Relaxed);
    Ok(())
}

async fn fill(queue: &BlockingQueue<String>, job: &Fill) -> redelay::Result<Reply> {
    const CHUNK: u64 = 1_000;
    let payload = payload(0, job.size);
    let mut left = job.count;
    while left > 0 {
        let chunk = left.min(CHUNK);
        queue.offer_all((0..chunk).map(|_| &payload)).await?;
        left -= chunk;
    }
    Ok(Reply { count: job.count, ..Reply::default() })
}

async fn take(queue: &BlockingQueue<String>, takers: usize, count: u64) -> redelay::Result<Reply> {
    let begun = Instant::now();
    let left = Arc::new(AtomicI64::new(count as i64));
    let mut tasks = JoinSet::new();
    for _ in 0..takers {
        let (queue, left) = (queue.clone(), left.clone());
        tasks.spawn(async move {
            // Each payload is claimed before it is taken, so that no taker waits for one that does not come.
            while left.fetch_sub(1, Relaxed) > 0 {
                queue.take().await?;
            }
            Ok(())
        });
    }
    all(tasks).await?;
    Ok(Reply { count, seconds: begun.elapsed().as_secs_f64(), ..Reply::default() })
}

/// Tasks that take until they are stopped, and how late each payload came.
struct Collector {
    takers: JoinSet<redelay::Result<()>>,
    late: mpsc::UnboundedReceiver<i64>,
    count: Arc<AtomicU64>,
}

impl Collector {
    fn start(queue: &BlockingQueue<String>, takers: usize) -> Self {
        let count = Arc::<AtomicU64>::default();
        let (sender, late) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        for _ in 0..takers {
            let (queue, sender, count) = (queue.clone(), sender.clone(), count.clone());
            tasks.spawn(async move {
                loop {
                    let payload = queue.take().await?;
                    let _ = sender.send(now() - due(&payload));
                    count.fetch_add(1, Relaxed);
                }
            });
        }
        Self { takers: tasks, late, count }
    }

    async fn stop(mut self) -> redelay::Result<Reply> {
        self.takers.shutdown().await;
        let mut late = Vec::new();
        while let Some(by) = self.late.recv().await {
            late.push(by);
        }
        Ok(Reply { count: late.len() as u64, late, ..Reply::default() })
    }
}
