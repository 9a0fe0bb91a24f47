//! The worker on redelay: this program, which starts itself again.

mod queue;
mod receives;
mod tasks;
mod working;

use std::collections::HashMap;
use std::io::{Write, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use redelay::{BlockingQueue, Client, codec};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::codecs;
use crate::job::{Fill, Job, Offer, Reply, due, names, now, payload};
use queue::Queue;
use tasks::{all, shares};
use working::Working;

/// Runs jobs until the input ends. Each queue has this number of partitions; one stands for an ordinary
/// queue.
pub(crate) fn work(url: &str, partitions: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let mut worker = runtime.block_on(Worker::connect(url, partitions));
    answer(&Reply::default());
    for line in stdin().lines() {
        let job = serde_json::from_str(&line.expect("a readable line")).expect("a job");
        // A job runs on the threads of the runtime, as the work of a service does.
        let run = runtime.spawn(async move { (worker.run(job).await, worker) });
        let (reply, same) = runtime.block_on(run).expect("a job that does not panic");
        worker = same;
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
    partitions: usize,
    open: HashMap<String, Queue>,
    collector: Option<Collector>,
    working: Option<Working>,
    /// Receivers that wait until the process ends.
    waiting: JoinSet<redelay::Result<()>>,
}

impl Worker {
    async fn connect(url: &str, partitions: usize) -> Self {
        let client = Client::connect(url).await.unwrap_or_else(|error| panic!("{error}"));
        let waiting = JoinSet::new();
        Self { client, partitions, open: HashMap::new(), collector: None, working: None, waiting }
    }

    async fn run(&mut self, job: Job) -> redelay::Result<Reply> {
        match job {
            Job::Open { queue, number } => {
                for n in 0..number {
                    self.queue(&format!("{queue}-{n}")).await?;
                }
                Ok(Reply::default())
            }
            Job::Close => {
                for (_, queue) in self.open.drain() {
                    queue.destroy().await;
                }
                Ok(Reply::default())
            }
            Job::Offer(job) => offer(self.queues(&job.queue, job.queues).await?, job).await,
            Job::Take { queue, takers, count } => take(&self.lists(&queue).await?, takers, count).await,
            Job::TakeAny { queue, takers, count } => {
                let queue = self.queue(&queue).await?;
                take_any(&queue, takers, count).await
            }
            Job::Collect(job) => {
                let queues = self.queues(&job.queue, job.queues).await?;
                self.collector = Some(Collector::start(&queues, job.takers));
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
            Job::Receive(job) => {
                let worker = match self.partitions {
                    1 => redelay::Worker::new(&self.ready(&job.queue)),
                    _ => self.queue(&job.queue).await?.worker(),
                };
                receives::run(&self.lists(&job.queue).await?, worker, &job).await
            }
            Job::Work(job) => {
                self.queues(&job.queue, job.queues).await?;
                let ready: Vec<_> =
                    names(&job.queue, job.queues).iter().map(|name| self.ready(name)).collect();
                self.working = Some(Working::start(&ready, &job));
                Ok(Reply::default())
            }
            Job::Wait { queue, number } => {
                for n in 0..number {
                    let receiver = self.ready(&format!("{queue}-{n}")).receiver();
                    self.waiting.spawn(async move { receiver.receive().await?.ack().await });
                }
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

    /// The lists that takers read.
    async fn lists(&mut self, name: &str) -> redelay::Result<Vec<BlockingQueue<String>>> {
        Ok(match self.partitions {
            1 => vec![self.ready(name)],
            _ => self.queue(name).await?.lists(),
        })
    }

    /// Those that a name stands for.
    async fn queues(&mut self, name: &str, number: usize) -> redelay::Result<Vec<Queue>> {
        let mut queues = Vec::with_capacity(number);
        for name in names(name, number) {
            queues.push(self.queue(&name).await?);
        }
        Ok(queues)
    }

    /// Opens the delayed queue, if it is not open.
    async fn queue(&mut self, name: &str) -> redelay::Result<Queue> {
        if !self.open.contains_key(name) {
            let queue = Queue::open(&self.client, name, self.partitions).await?;
            self.open.insert(name.to_owned(), queue);
        }
        Ok(self.open[name].clone())
    }
}

/// The queues take turns.
async fn offer(queues: Vec<Queue>, job: Offer) -> redelay::Result<Reply> {
    let begun = Instant::now();
    let stored = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    if job.per_second > 0.0 {
        for n in 0..job.count {
            tokio::time::sleep_until((begun + Duration::from_secs_f64(n as f64 / job.per_second)).into())
                .await;
            let queue = queues[n as usize % queues.len()].clone();
            let (job, stored) = (job.clone(), stored.clone());
            tasks.spawn(async move { offer_batch(&queue, &job, &stored).await });
        }
    } else {
        let claimed = Arc::new(AtomicU64::new(0));
        let end = begun + Duration::from_millis(job.millis);
        for _ in 0..job.concurrency {
            let (queues, job) = (queues.clone(), job.clone());
            let (stored, claimed) = (stored.clone(), claimed.clone());
            tasks.spawn(async move {
                loop {
                    let first = claimed.fetch_add(job.batch as u64, Relaxed);
                    if first >= job.count || Instant::now() >= end {
                        return Ok(());
                    }
                    let turn = first as usize / job.batch;
                    offer_batch(&queues[turn % queues.len()], &job, &stored).await?;
                }
            });
        }
    }
    all(tasks).await?;
    Ok(Reply { count: stored.load(Relaxed), seconds: begun.elapsed().as_secs_f64(), ..Reply::default() })
}

async fn offer_batch(queue: &Queue, job: &Offer, stored: &AtomicU64) -> redelay::Result<()> {
    let fresh = || {
        let delay = fastrand::u64(job.delay.0..=job.delay.1);
        (payload(now() + delay as i64 * 1_000, job.size), Duration::from_millis(delay))
    };
    if job.batch == 1 {
        let (payload, delay) = fresh();
        queue.offer(&payload, delay).await?;
    } else {
        let batch: Vec<_> = (0..job.batch).map(|_| fresh()).collect();
        queue.offer_all(&batch).await?;
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

async fn take(lists: &[BlockingQueue<String>], takers: usize, count: u64) -> redelay::Result<Reply> {
    let begun = Instant::now();
    let shares = shares(count, lists.len());
    let mut tasks = JoinSet::new();
    for (list, left) in lists.iter().zip(&shares).cycle().take(takers) {
        let (list, left) = (list.clone(), left.clone());
        tasks.spawn(async move {
            while left.fetch_sub(1, Relaxed) > 0 {
                list.take().await?;
            }
            Ok(())
        });
    }
    all(tasks).await?;
    Ok(Reply { count, seconds: begun.elapsed().as_secs_f64(), ..Reply::default() })
}

async fn take_any(queue: &Queue, takers: usize, count: u64) -> redelay::Result<Reply> {
    let begun = Instant::now();
    let left = Arc::new(AtomicI64::new(count as i64));
    let mut tasks = JoinSet::new();
    for _ in 0..takers {
        let (queue, left) = (queue.clone(), left.clone());
        tasks.spawn(async move {
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
    /// At least one for each queue.
    fn start(queues: &[Queue], takers: usize) -> Self {
        let count = Arc::<AtomicU64>::default();
        let (sender, late) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        for queue in queues.iter().cycle().take(takers.max(queues.len())) {
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
