//! The jobs of a queue, by their numbers: ids, payloads, and which of them a call is about.

use std::time::Duration;

use redelay::{Client, DelayedQueue, codec};

pub(super) const QUEUE: &str = "jobs";
/// Calls of each kind, except those that take long.
pub(super) const CALLS: u64 = 1000;
/// Long after the measurement.
pub(super) const LATER: Duration = Duration::from_secs(24 * 3600);

pub(super) fn id(number: u64) -> String {
    format!("job-{number}")
}

pub(super) fn payload(number: u64) -> String {
    format!("{number:0>100}")
}

pub(super) async fn connect(url: &str, sweep: Option<Duration>) -> (Client, DelayedQueue<String>) {
    let builder = Client::builder().url(url);
    let builder = match sweep {
        Some(interval) => builder.sweep_interval(interval),
        None => builder.transfer(false),
    };
    let client = builder.connect().await.expect("a connection");
    let delayed = client.delayed_queue(&client.blocking_queue(QUEUE, codec::String));
    (client, delayed)
}

/// After this time, and up to as much later.
pub(super) fn later(delay: Duration) -> Duration {
    delay + Duration::from_millis(fastrand::u64(0..=delay.as_millis() as u64))
}

/// The number of a random job that is not among the last of `pending` jobs.
pub(super) fn any(pending: u64) -> u64 {
    fastrand::u64(0..pending - 2 * CALLS)
}

/// The number of one of the last of `pending` jobs, another one for each `number`.
pub(super) fn last(pending: u64, number: u64) -> u64 {
    pending - 1 - number % CALLS
}
