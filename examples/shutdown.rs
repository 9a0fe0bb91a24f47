//! Ending a service: its workers finish what they have in hand, and nothing that was not taken is lost.
//!
//!     cargo run --example shutdown        (it ends by itself after 2 seconds, or by Ctrl-C)
//!
//! Needs a Redis or Valkey at REDIS_URL, or at redis://localhost.

use std::time::Duration;

use redelay::{BlockingQueue, Client, codec};
use tokio::time::sleep;

#[tokio::main]
async fn main() -> redelay::Result<()> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://localhost".into());
    let client = Client::connect(&url).await?;
    let ready = client.blocking_queue::<i64>("example:jobs", codec::Long);
    let delayed = client.delayed_queue(&ready);
    let jobs: Vec<i64> = (1..=20).collect();
    delayed.offer_all(jobs.iter().map(|job| (job, Duration::from_millis(*job as u64 * 150)))).await?;

    let workers = ["first", "second"].map(|name| tokio::spawn(work(name, ready.clone())));
    tokio::select! {
        _ = tokio::signal::ctrl_c() => println!("Ctrl-C"),
        () = sleep(Duration::from_secs(2)) => println!("2 seconds are over"),
    }

    // Waiting takers are told, popped payloads that nobody read go back, the connections close.
    client.shutdown().await;
    let mut done = 0;
    for worker in workers {
        done += worker.await.expect("a worker does not panic")?;
    }

    // Somebody else finds the rest: on the list what was due meanwhile, in the delayed queue what was not.
    let next = Client::connect(&url).await?;
    let ready = next.blocking_queue::<i64>("example:jobs", codec::Long);
    let delayed = next.delayed_queue(&ready);
    let mut left = ready.poll_many(usize::MAX).await?.len();
    left += delayed.poll_many(usize::MAX).await?.len();
    println!("{done} jobs done, {left} left, {} in all", done + left);
    next.shutdown().await;
    Ok(())
}

/// Works until the client is shut down; returns how many jobs it did.
async fn work(name: &str, ready: BlockingQueue<i64>) -> redelay::Result<usize> {
    for done in 0.. {
        match ready.take().await {
            Ok(job) => println!("the {name} worker does job {job}"),
            Err(error) if error.is_closed() => return Ok(done),
            Err(error) => return Err(error),
        }
        sleep(Duration::from_millis(200)).await; // The work. A shutdown does not interrupt it.
    }
    unreachable!("nobody counts that far")
}
