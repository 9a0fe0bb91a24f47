//! Payloads that become ready later: offer, take, cancel, reschedule.
//!
//!     cargo run --example offer_take
//!
//! It needs a Redis or Valkey at REDIS_URL, or at redis://localhost.

use std::time::{Duration, Instant};

use redelay::{Client, codec};

#[tokio::main]
async fn main() -> redelay::Result<()> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://localhost".into());
    let client = Client::connect(&url).await?;

    // `delayed` holds what is pending, `ready` holds what is due. Both are on the server.
    let ready = client.blocking_queue::<String>("example:reminders", codec::String);
    let delayed = client.delayed_queue(&ready);

    let begun = Instant::now();
    let seconds = Duration::from_secs;
    delayed.offer("stretch", seconds(2)).await?;
    delayed.offer("drink some water", seconds(1)).await?;

    // An offer returns a ticket, which cancels or reschedules the payload, from this process or another one.
    let lunch = delayed.offer("lunch", seconds(3600)).await?;
    let meeting = delayed.offer("meeting", seconds(3600)).await?;
    println!("lunch in 3 seconds instead of an hour: {}", delayed.reschedule(&lunch, seconds(3)).await?);
    println!("meeting cancelled: {}", delayed.cancel(&meeting).await?);

    println!(
        "{} reminders are pending, in the order of the offers: {:?}",
        delayed.len().await?,
        delayed.read_all().await?
    );
    for _ in 0..3 {
        let reminder = ready.take().await?;
        println!("after {:.3} s: {reminder}", begun.elapsed().as_secs_f64());
    }

    println!("another one within 200 ms: {:?}", ready.poll_timeout(Duration::from_millis(200)).await?);
    client.shutdown().await;
    Ok(())
}
