//! Receiving by hand: acknowledge, retry, snooze, reject; then the dead letters.
//!
//!     cargo run --example receive
//!
//! It needs a Redis or Valkey at REDIS_URL, or at redis://localhost.

use std::time::{Duration, Instant};

use redelay::worker::Backoff;
use redelay::{Client, codec};

#[tokio::main]
async fn main() -> redelay::Result<()> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://localhost".into());
    let client = Client::connect(&url).await?;
    let orders = client.blocking_queue::<String>("example:receive", codec::String);
    // A run that was killed may have left something.
    orders.clear().await?;
    orders.dead_letters().remove_all(usize::MAX).await?;
    for item in ["coffee", "tea", "milk", "gold"] {
        orders.put(item).await?;
    }

    let begun = Instant::now();
    let mut milk_is_late = true;
    let receiver = orders.receiver().backoff(Backoff::fixed(Duration::from_millis(700)));
    while let Some(order) = receiver.receive_timeout(Duration::from_secs(2)).await? {
        print!("{:4} ms: {}, attempt {}: ", begun.elapsed().as_millis(), order.value(), order.attempt());
        // Each of these calls settles the delivery, and consumes it.
        match order.value().as_str() {
            "tea" if order.attempt() == 1 => {
                println!("failed");
                order.with_error("the shop does not answer").retry().await?;
            }
            "milk" if milk_is_late => {
                println!("not yet; this does not count as an attempt");
                milk_is_late = false;
                order.snooze(Duration::from_millis(300)).await?;
            }
            "gold" if order.attempt() == 1 => {
                println!("rejected");
                order.reject("we do not sell it").await?;
                // It is a dead letter now. It stays one until it is requeued or removed.
                for letter in orders.dead_letters().read(None, 10).await? {
                    println!("dead letter {}: {}, {}", letter.id, letter.reason, letter.error);
                }
            }
            _ => {
                println!("done");
                order.ack().await?;
            }
        }
    }

    println!("{} messages are unsettled", orders.unsettled().len().await?);
    println!("{} dead letters were removed", orders.dead_letters().remove_all(usize::MAX).await?);
    client.shutdown().await;
    Ok(())
}
