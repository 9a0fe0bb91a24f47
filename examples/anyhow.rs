//! Errors of `anyhow`, in `main` and in a handler. The text of a failure has its context, and so has the dead
//! letter.
//!
//!     cargo run --example anyhow
//!
//! It ends after 2 seconds. It needs a Redis or Valkey at REDIS_URL, or at redis://localhost.

use std::time::Duration;

use anyhow::{Context as _, bail};
use redelay::{Client, Worker, codec};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://localhost".into());
    let client = Client::connect(&url).await.with_context(|| "cannot connect")?;
    let orders = client.blocking_queue("example:anyhow", codec::String);
    orders.offer_all(&["1", "2", "three"].map(String::from)).await?;
    Worker::new(&orders)
        .max_attempts(1)
        .on_failure(|failure| println!("{failure}"))
        .run_until(tokio::time::sleep(Duration::from_secs(2)), ship)
        .await?;
    for letter in orders.dead_letters().read(None, 10).await? {
        println!("dead: {}", letter.error);
    }
    orders.dead_letters().remove_all(usize::MAX).await?;
    client.shutdown().await;
    Ok(())
}

async fn ship(order: String) -> anyhow::Result<()> {
    let number: u32 = order.parse().with_context(|| format!("order {order:?} has no number"))?;
    if number == 2 {
        bail!("order {number} is not paid");
    }
    println!("order {number} is shipped");
    Ok(())
}
