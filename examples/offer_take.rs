//! Payloads that become ready later: offer, take, cancel, reschedule.
//!
//!     cargo run --example offer_take
//!
//! Needs a Redis or Valkey at REDIS_URL, or at redis://localhost.

use std::time::{Duration, Instant};

use redelay::{Client, codec};

#[tokio::main]
async fn main() -> redelay::Result<()> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://localhost".into());
    let client = Client::connect(&url).await?;

    // What is due arrives in `ready`; what is pending waits in `delayed`. Both live on the server, under these names.
    let ready = client.blocking_queue::<String>("example:reminders", codec::String);
    let delayed = client.delayed_queue(&ready);

    let begun = Instant::now();
    let seconds = Duration::from_secs;
    delayed.offer(&"stretch".to_owned(), seconds(2)).await?;
    delayed.offer(&"drink some water".to_owned(), seconds(1)).await?;

    // An offer returns a ticket. It finds the payload again, here or in another process.
    let lunch = delayed.offer(&"lunch".to_owned(), seconds(3600)).await?;
    let meeting = delayed.offer(&"meeting".to_owned(), seconds(3600)).await?;
    println!("lunch now rather than in an hour: {}", delayed.reschedule(&lunch, seconds(3)).await?);
    println!("meeting cancelled: {}", delayed.cancel(&meeting).await?);

    println!(
        "{} are pending, in the order of the offers: {:?}",
        delayed.len().await?,
        delayed.read_all().await?
    );
    for _ in 0..3 {
        let reminder = ready.take().await?;
        println!("after {:.3} s: {reminder}", begun.elapsed().as_secs_f64());
    }

    println!("one more within 200 ms? {:?}", ready.poll_timeout(Duration::from_millis(200)).await?);
    client.shutdown().await;
    Ok(())
}
