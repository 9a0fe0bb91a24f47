//! Messages that go to a broker when they are due.

use std::time::Duration;

use async_nats::jetstream::{self, context::PublishError, message::PublishMessage};
use bytes::Bytes;
use redelay::worker::{Backoff, Context, Stopped};
use redelay::{BlockingQueue, Worker};

/// Publishes due messages to NATS JetStream. `due` has `codec::Bytes`: the broker gets the payloads as they
/// are.
pub async fn forward(due: &BlockingQueue<Bytes>, broker: jetstream::Context) -> redelay::Result<Stopped> {
    let handler = move |body: Bytes, context: Context| publish(broker.clone(), body, context);
    // The broker may be away for a day: there is an attempt every 15 to 30 s.
    let pauses = Backoff::exponential(Duration::from_millis(500), Duration::from_secs(30));
    Worker::new(due).concurrency(64).backoff(pauses).max_attempts(10_000).run(handler).await
}

async fn publish(broker: jetstream::Context, body: Bytes, context: Context) -> Result<(), PublishError> {
    let message = PublishMessage::build().payload(body).message_id(context.id().to_string());
    let stored = broker.send_publish("orders.due", message).await?;
    stored.await?; // Without the broker's acknowledgement, the message is not acknowledged here.
    Ok(())
}
