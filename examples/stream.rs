//! A queue as a `Stream`, with the adapters of the `futures` crate: four payloads are handled at a time.
//!
//!     cargo run --example stream
//!
//! It needs a Redis or Valkey at REDIS_URL, or at redis://localhost.

use std::time::Duration;

use futures::StreamExt;
use redelay::{Client, codec};
use tokio::time::sleep;

#[tokio::main]
async fn main() -> redelay::Result<()> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://localhost".into());
    let client = Client::connect(&url).await?;
    let ready = client.blocking_queue("example:stream", codec::Long);
    let delayed = client.delayed_queue(&ready);

    // Many offers in one call: all of them are stored, or none. They become ready in the order of their due
    // times.
    let numbers: Vec<i64> = (1..=12).collect();
    let offers = numbers.iter().map(|number| (number, Duration::from_millis(1300 - *number as u64 * 100)));
    delayed.offer_all(offers).await?;

    // Here, `take` is the adapter of streams. Without it, the stream goes on until the client is shut down.
    ready
        .into_stream()
        .take(numbers.len())
        .for_each_concurrent(4, |number| async {
            match number {
                Ok(number) => {
                    println!("  {number:>2} begins");
                    sleep(Duration::from_millis(250)).await;
                    println!("  {number:>2} is done");
                }
                // One payload does not decode. The stream continues.
                Err(error) => eprintln!("does not decode: {error}"),
            }
        })
        .await;

    client.shutdown().await;
    Ok(())
}
