//! Runs the jobs of benches/beside with apalis-redis: one JSON object on each line, and an answer to each. It
//! ends when its input ends. benches/beside/src/job.rs describes the jobs.

use std::error::Error;
use std::io::{Write, stdin, stdout};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use apalis::prelude::*;
use apalis_redis::{Config, ConnectionManager, RedisStorage};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::task::{JoinHandle, JoinSet};

/// How often an idle worker asks. Without this, it asks with each heartbeat, every 30 s.
const POLL: Duration = Duration::from_millis(100);
/// Calls in flight, unless the job says how many.
const CONCURRENCY: usize = 32;

#[derive(Deserialize, Default)]
#[serde(default)]
struct Job {
    job: String,
    queue: String,
    count: u64,
    millis: u64,
    size: usize,
    concurrency: usize,
    handler: String,
    delay: [u64; 2],
    per_second: f64,
}

#[derive(Serialize, Default)]
struct Reply {
    count: u64,
    seconds: f64,
    late: Vec<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let url = std::env::args().nth(1).ok_or("a URL is missing")?;
    let mut peer = Peer { conn: apalis_redis::connect(url).await?, working: None, workers: 0 };
    answer(&Reply::default())?;
    for line in stdin().lines() {
        let reply = match serde_json::from_str(&line?) {
            Ok(job) => peer.run(job).await,
            Err(error) => Err(error.into()),
        };
        answer(&reply.unwrap_or_else(|error| Reply { error: Some(error.to_string()), ..Reply::default() }))?;
    }
    Ok(())
}

fn answer(reply: &Reply) -> Outcome<()> {
    let mut out = stdout().lock();
    writeln!(out, "{}", serde_json::to_string(reply)?)?;
    Ok(out.flush()?)
}

struct Peer {
    conn: ConnectionManager,
    working: Option<Working>,
    workers: u64,
}

impl Peer {
    async fn run(&mut self, job: Job) -> Outcome<Reply> {
        match &*job.job {
            "fill" => self.fill(job).await,
            "offer" => self.offer(job).await,
            "receive" => self.receive(job).await,
            "work" => {
                self.working = Some(self.start(&job));
                Ok(Reply::default())
            }
            "collected" => {
                let working = self.working.as_ref().ok_or("no worker runs")?;
                Ok(Reply { count: working.handled.count.load(Ordering::Relaxed), ..Reply::default() })
            }
            "stop" => self.working.take().ok_or("no worker runs")?.stop().await,
            "close" => Ok(Reply::default()),
            other => Err(format!("no such job: {other}").into()),
        }
    }

    fn storage(&self, queue: &str, batch: usize) -> RedisStorage<String> {
        RedisStorage::new(self.conn.clone()).with_config(Config::default().queue(queue).batch_size(batch))
    }

    /// A worker with apalis' defaults, but for the concurrency, the tasks that it fetches at a time, and the
    /// interval. Results of tasks stay on the server, as always with apalis-redis.
    fn start(&mut self, job: &Job) -> Working {
        self.workers += 1;
        let notes_lateness = job.handler == "late";
        let handled = Arc::new(Handled { wanted: job.count, notes_lateness, ..Handled::default() });
        let (stop, stopped) = oneshot::channel::<()>();
        let worker = WorkerBuilder::new(format!("{}-{}", std::process::id(), self.workers))
            .backend(self.storage(&job.queue, job.concurrency.max(1)).poll_with_interval(POLL))
            .concurrency(job.concurrency.max(1))
            .parallelize(tokio::spawn)
            .data(handled.clone())
            .build(handle);
        let running = tokio::spawn(worker.run_until(until(stopped)));
        Working { handled, stop, running }
    }

    /// Handles tasks that are ready. The time begins with the start of the worker, and ends with the return
    /// of the last handler.
    async fn receive(&mut self, job: Job) -> Outcome<Reply> {
        let begun = Instant::now();
        let mut working = self.start(&job);
        tokio::select! {
            () = working.handled.all.notified() => {}
            ended = &mut working.running => {
                ended?.map_err(|error| format!("the worker ended: {error}"))?;
                return Err("the worker ended".into());
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        working.stop().await?;
        Ok(Reply { count: job.count, seconds, ..Reply::default() })
    }

    /// Puts tasks that are ready.
    async fn fill(&self, job: Job) -> Outcome<Reply> {
        let body = "x".repeat(job.size);
        self.push(&job, CONCURRENCY, |_| Task::new(body.clone())).await
    }

    /// Offers delayed tasks: at a rate, or as fast as possible. A payload begins with the time at which it is
    /// due; apalis keeps whole seconds of that.
    async fn offer(&self, job: Job) -> Outcome<Reply> {
        let concurrency = if job.per_second > 0.0 { CONCURRENCY } else { job.concurrency };
        let spread = job.delay[1] - job.delay[0] + 1;
        self.push(&job, concurrency, |n| {
            // Without a package for random numbers: the delays are spread evenly.
            let delay = Duration::from_millis(job.delay[0] + n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % spread);
            TaskBuilder::new(payload(now() + delay.as_micros() as i64, job.size)).run_after(delay).build()
        })
        .await
    }

    /// Pushes each of the tasks, in order, until the time of the job is over, if it has one and no rate.
    async fn push(
        &self,
        job: &Job,
        concurrency: usize,
        task: impl Fn(u64) -> Task<String>,
    ) -> Outcome<Reply> {
        let begun = Instant::now();
        let end =
            (job.millis > 0 && job.per_second == 0.0).then(|| begun + Duration::from_millis(job.millis));
        let room = Arc::new(Semaphore::new(concurrency));
        let (storage, mut tasks, mut sent) = (self.storage(&job.queue, 1), JoinSet::new(), 0);
        while sent < job.count && end.is_none_or(|end| Instant::now() < end) {
            if job.per_second > 0.0 {
                tokio::time::sleep_until(
                    (begun + Duration::from_secs_f64(sent as f64 / job.per_second)).into(),
                )
                .await;
            }
            let free = room.clone().acquire_owned().await?;
            let (mut storage, task) = (storage.clone(), task(sent));
            tasks.spawn(async move {
                let pushed = storage.push_task(task).await.map_err(|error| error.to_string());
                drop(free);
                pushed
            });
            sent += 1;
            while let Some(pushed) = tasks.try_join_next() {
                pushed??;
            }
        }
        while let Some(pushed) = tasks.join_next().await {
            pushed??;
        }
        Ok(Reply { count: sent, seconds: begun.elapsed().as_secs_f64(), ..Reply::default() })
    }
}

async fn until(stopped: oneshot::Receiver<()>) -> Result<(), WorkerError> {
    _ = stopped.await;
    Ok(())
}

async fn handle(payload: String, handled: Data<Arc<Handled>>) -> Result<(), BoxDynError> {
    handled.one(&payload);
    Ok(())
}

#[derive(Default)]
struct Handled {
    count: AtomicU64,
    wanted: u64,
    notes_lateness: bool,
    /// As many as the job says.
    all: Notify,
    late: Mutex<Vec<i64>>,
}

impl Handled {
    fn one(&self, payload: &str) {
        if self.notes_lateness {
            self.late.lock().expect("no panic").push(now() - due(payload));
        }
        if self.count.fetch_add(1, Ordering::Relaxed) + 1 == self.wanted {
            self.all.notify_one();
        }
    }
}

struct Working {
    handled: Arc<Handled>,
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<(), WorkerError>>,
}

impl Working {
    async fn stop(self) -> Outcome<Reply> {
        drop(self.stop);
        self.running.await?.map_err(|error| error.to_string())?;
        let late = std::mem::take(&mut *self.handled.late.lock().expect("no panic"));
        Ok(Reply { count: self.handled.count.load(Ordering::Relaxed), late, ..Reply::default() })
    }
}

/// Epoch µs.
fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64)
}

/// The due time, filled up with `x` to the size.
fn payload(due: i64, size: usize) -> String {
    let text = format!("{due} ");
    let fill = size.saturating_sub(text.len());
    text + &"x".repeat(fill)
}

fn due(payload: &str) -> i64 {
    payload.split(' ').next().and_then(|due| due.parse().ok()).expect("a payload begins with its due time")
}
