//! A worker runs a handler for each message, four at a time. It retries a handler that fails.
//!
//!     cargo run --example worker
//!
//! It ends after 3 seconds. It needs a Redis or Valkey at REDIS_URL, or at redis://localhost.

use std::time::Duration;

use redelay::worker::{Backoff, Context};
use redelay::{Client, Worker, codec};

#[tokio::main]
async fn main() -> redelay::Result<()> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://localhost".into());
    let client = Client::connect(&url).await?;
    let orders = client.blocking_queue("example:worker", codec::Long);
    let delayed = client.delayed_queue(&orders);
    for order in 1..=10 {
        delayed.offer(&order, Duration::from_millis(150 * order as u64)).await?;
    }

    // A service calls `run`, which stops on Ctrl-C and on SIGTERM.
    let stopped = Worker::new(&orders)
        .concurrency(4)
        .backoff(Backoff::fixed(Duration::from_millis(500)))
        .on_failure(|failure| println!("{failure}"))
        .run_until(tokio::time::sleep(Duration::from_secs(3)), cancel_if_unpaid)
        .await?;
    println!("{stopped:?}");
    client.shutdown().await;
    Ok(())
}

async fn cancel_if_unpaid(order: i64, context: Context) -> Result<(), &'static str> {
    if order == 3 && context.attempt() == 1 {
        return Err("the shop does not answer"); // The message is delivered again after 500 ms.
    }
    println!("order {order}, attempt {}", context.attempt());
    Ok(()) // The message is acknowledged: the server deletes it.
}
