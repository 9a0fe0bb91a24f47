//! A delayed queue within one process.

use std::time::Duration;

use redelay::{Client, Result, codec};

/// Returns the sessions in the order in which they expire.
pub async fn expire(client: &Client, sessions: &[(String, Duration)]) -> Result<Vec<String>> {
    let expired = client.blocking_queue::<String>("sessions", codec::String);
    let delayed = client.delayed_queue(&expired);
    let consumer = async {
        let mut order = Vec::new();
        while order.len() < sessions.len() {
            order.push(expired.take().await?); // Waits until the next one is due.
        }
        Ok(order)
    };
    let producer = async {
        for (session, delay) in sessions {
            delayed.offer(session, *delay).await?;
        }
        Ok(())
    };
    Ok(tokio::try_join!(consumer, producer)?.0)
}
