//! Ending a service in two phases: `stop_taking`, wait for the workers, `shutdown`. No job and no retry is
//! lost.
//!
//!     cargo run --example shutdown
//!
//! It ends after 2 seconds, or on Ctrl-C. It needs a Redis or Valkey at REDIS_URL, or at redis://localhost.

use std::time::Duration;

use redelay::{BlockingQueue, Client, DelayedQueue, codec};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

const JOBS: i64 = 20;

#[derive(Debug, Serialize, Deserialize)]
struct Job {
    id: i64,
    attempt: u32,
}

#[tokio::main]
async fn main() -> redelay::Result<()> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://localhost".into());
    let client = Client::connect(&url).await?;
    let ready = client.blocking_queue::<Job>("example:shutdown", codec::Json);
    let delayed = client.delayed_queue(&ready);
    // A run that was killed may have left some jobs.
    delayed.clear().await?;
    ready.clear().await?;

    let jobs: Vec<Job> = (1..=JOBS).map(|id| Job { id, attempt: 1 }).collect();
    delayed.offer_all(jobs.iter().map(|job| (job, Duration::from_millis(job.id as u64 * 150)))).await?;
    let workers = [(), ()].map(|()| tokio::spawn(work(ready.clone(), delayed.clone())));

    tokio::select! {
        _ = tokio::signal::ctrl_c() => println!("Ctrl-C"),
        () = sleep(Duration::from_secs(2)) => println!("2 seconds have passed"),
    }

    // Phase 1: no worker gets another job. Jobs in progress go on, and can still use the client.
    client.stop_taking().await;
    let mut done = 0;
    for worker in workers {
        done += worker.await.expect("a worker does not panic")?;
    }
    // Phase 2: popped payloads that were not read return to their lists, and the connections close.
    client.shutdown().await;

    // The other jobs are still on the server, for the next process. This client does not transfer, so that
    // none moves from one queue to the other between the two counts.
    let next = Client::builder().url(&url).transfer(false).connect().await?;
    let ready = next.blocking_queue::<Job>("example:shutdown", codec::Json);
    let delayed = next.delayed_queue(&ready);
    let (is_ready, is_pending) = (ready.len().await?, delayed.len().await?);
    println!(
        "{done} jobs done, {is_ready} ready, {is_pending} pending: {} of {JOBS}",
        done + is_ready + is_pending
    );
    delayed.clear().await?;
    ready.clear().await?;
    next.shutdown().await;
    assert_eq!(done + is_ready + is_pending, JOBS as usize, "a job was lost, or is there twice");
    Ok(())
}

/// Works until `take` returns `Closed`, after `stop_taking`. Returns the number of jobs that succeeded.
async fn work(ready: BlockingQueue<Job>, delayed: DelayedQueue<Job>) -> redelay::Result<usize> {
    let mut done = 0;
    loop {
        let job = match ready.take().await {
            Ok(job) => job,
            Err(error) if error.is_closed() => return Ok(done),
            Err(error) => return Err(error),
        };
        sleep(Duration::from_millis(200)).await; // The work. `stop_taking` does not interrupt it.
        if job.id % 4 == 1 && job.attempt == 1 {
            // Job 13 gets here after `stop_taking`. After `shutdown` this offer would fail, and the job would
            // be lost.
            delayed.offer(&Job { id: job.id, attempt: 2 }, Duration::from_secs(60)).await?;
            println!("job {} failed; the next attempt is in a minute", job.id);
        } else {
            println!("job {} is done", job.id);
            done += 1;
        }
    }
}
