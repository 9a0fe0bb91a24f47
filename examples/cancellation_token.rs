//! A worker that ends with the rest of the program: on a token of `tokio-util`.
//!
//!     cargo run --example cancellation_token
//!
//! It ends after 2 seconds. It needs a Redis or Valkey at REDIS_URL, or at redis://localhost.

use std::time::Duration;

use redelay::{Client, Worker, codec};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> redelay::Result<()> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://localhost".into());
    let client = Client::connect(&url).await?;
    let orders = client.blocking_queue("example:token", codec::Long);
    let delayed = client.delayed_queue(&orders);
    delayed.offer_all([1, 2, 3].iter().map(|order| (order, Duration::from_millis(100)))).await?;

    // Its clones belong to the other parts of the program, such as an HTTP server.
    let stop = CancellationToken::new();
    tokio::spawn({
        let stop = stop.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(2)).await;
            stop.cancel();
        }
    });
    let worker = Worker::new(&orders).concurrency(2).grace(Duration::from_secs(10));
    let stopped =
        worker.run_until(stop.cancelled(), |order: i64| async move { println!("order {order}") }).await?;
    println!("{stopped:?}");
    client.shutdown().await;
    Ok(())
}
