//! Two schedules, each of which offers a payload again and again: one each second, the other each day. A
//! worker handles their runs.
//!
//!     cargo run --example schedules
//!
//! It ends after 4 seconds. It needs a Redis or Valkey at REDIS_URL, or at redis://localhost.

use std::time::{Duration, SystemTime};

use redelay::delayed_queue::Missed;
use redelay::worker::Context;
use redelay::{Client, Worker, codec};

#[tokio::main]
async fn main() -> redelay::Result<()> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://localhost".into());
    let client = Client::connect(&url).await?;
    let reports = client.blocking_queue("example:schedules", codec::String);
    let delayed = client.delayed_queue(&reports);

    // Each process does this when it starts. What is there already stays as it is.
    delayed.schedule("often").every(Duration::from_secs(1)).upsert("the sales of a second").await?;
    // At midnight UTC. With the feature `cron`: .cron("0 3 * * *").zone("Europe/Berlin").
    let daily = delayed.schedule("daily").every(Duration::from_secs(86_400)).missed(Missed::Once);
    let next = daily.upsert("the sales of a day").await?;
    if let Some(wait) = next.and_then(|next| next.duration_since(SystemTime::now()).ok()) {
        println!("the next daily run is in {} minutes", wait.as_secs() / 60);
    }
    daily.trigger().await?; // Once, now.

    Worker::new(&reports).run_until(tokio::time::sleep(Duration::from_secs(4)), report).await?;

    // Schedules go on without this process, until they are removed.
    for (name, schedule) in delayed.schedules().read(None, 100).await? {
        println!("{name} ({}) is removed", schedule?.text);
    }
    delayed.schedules().remove_all(100).await?;
    client.shutdown().await;
    Ok(())
}

async fn report(what: String, context: Context) {
    println!("{what}, attempt {}", context.attempt());
}
