//! The jobs of a worker and its answers: one JSON object a line. All systems speak it, `redelay.rs` here,
//! `compat/java/src/main/java/redelay/bench` with Redisson and `peers` with the others, so that the
//! harness cannot treat them differently.
//!
//! A worker may be started with a number of partitions. Then the name of a queue stands for the queues
//! `{queue}#0`, `{queue}#1`… in [`Job::Offer`], [`Job::Take`], [`Job::Receive`] and [`Job::Collect`].
//!
//! Some jobs have a number of queues. If it is more than one, the name stands for `{queue}-0`, `{queue}-1`…:
//! see [`names`].

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// A delay that does not end during a measurement, ms.
pub(crate) const NOT_SOON: u64 = 3_600_000;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "job", rename_all = "snake_case")]
pub(crate) enum Job {
    /// Opens delayed queues `{queue}-0`, `{queue}-1`…, and transfers them from then on.
    Open { queue: String, number: usize },
    /// Closes all delayed queues.
    Close,
    /// Offers. Replies when every offer is acknowledged.
    Offer(Offer),
    /// Takes with this number of takers. Replies when `count` payloads are taken. If the queue has
    /// partitions, each taker has one of them, and each partition has its share of the payloads.
    Take { queue: String, takers: usize, count: u64 },
    /// The same with takers that take from whichever partition has a payload. Only redelay does this.
    TakeAny { queue: String, takers: usize, count: u64 },
    /// Puts messages that are ready.
    Fill(Fill),
    /// Receives and acknowledges messages that are ready.
    Receive(Receive),
    /// Starts a worker on the delayed queue. Replies at once.
    Work(Work),
    /// Waits with a receiver of each of the queues `{queue}-0`, `{queue}-1`… Only redelay does this.
    Wait { queue: String, number: usize },
    /// Opens the delayed queue and starts takers. Replies at once.
    Collect(Collect),
    /// Replies with the number of payloads that the takers or the handlers of the worker have got so far.
    Collected,
    /// Ends the takers or the worker. Replies with the lateness of each payload.
    Stop,
    /// Runs one codec in one direction, on one thread, for this time.
    Codec { codec: String, encode: bool, millis: u64 },
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Offer {
    pub(crate) queue: String,
    /// They get the payloads by turns.
    pub(crate) queues: usize,
    /// Bytes of a payload.
    pub(crate) size: usize,
    /// Payloads that are acknowledged together.
    pub(crate) batch: usize,
    /// The range of delays, ms.
    pub(crate) delay: (u64, u64),
    /// Calls in flight at any time, unless there is a rate.
    pub(crate) concurrency: usize,
    /// The rate. Zero: as many as possible.
    pub(crate) per_second: f64,
    /// At most this number of payloads,
    pub(crate) count: u64,
    /// for at most this time.
    pub(crate) millis: u64,
}

impl Offer {
    /// Offers one after the other. None becomes due.
    pub(crate) fn new(queue: impl Into<String>) -> Self {
        Self {
            queue: queue.into(),
            queues: 1,
            size: 100,
            batch: 1,
            delay: (NOT_SOON, NOT_SOON),
            concurrency: 1,
            per_second: 0.0,
            count: u64::MAX / 2,
            millis: 600_000,
        }
    }

    pub(crate) fn job(self) -> Job {
        Job::Offer(self)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Fill {
    pub(crate) queue: String,
    pub(crate) count: u64,
    /// Bytes of a payload.
    pub(crate) size: usize,
    /// What will be done with them: BullMQ keeps the settings of retries with the message.
    pub(crate) handler: Handler,
}

impl Fill {
    pub(crate) fn new(queue: &str, count: u64) -> Self {
        Self { queue: queue.into(), count, size: 100, handler: Handler::Done }
    }

    pub(crate) fn job(self) -> Job {
        Job::Fill(self)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Receive {
    pub(crate) queue: String,
    /// Only redelay has both. The others have workers.
    pub(crate) by_hand: bool,
    /// Messages in flight.
    pub(crate) concurrency: usize,
    pub(crate) count: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Collect {
    pub(crate) queue: String,
    pub(crate) queues: usize,
    /// At least one for each queue.
    pub(crate) takers: usize,
}

impl Collect {
    pub(crate) fn new(queue: &str, takers: usize) -> Self {
        Self { queue: queue.into(), queues: 1, takers }
    }

    pub(crate) fn job(self) -> Job {
        Job::Collect(self)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(crate) queue: String,
    pub(crate) queues: usize,
    /// Of all queues together.
    pub(crate) concurrency: usize,
    pub(crate) handler: Handler,
    /// redelay's lease. The others have their defaults.
    pub(crate) lease_ms: u64,
}

impl Work {
    pub(crate) fn new(queue: &str, concurrency: usize, handler: Handler) -> Self {
        Self { queue: queue.into(), queues: 1, concurrency, handler, lease_ms: 30_000 }
    }

    pub(crate) fn job(self) -> Job {
        Job::Work(self)
    }
}

/// What a worker's handler does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Handler {
    /// Returns.
    Done,
    /// Returns. Notes how late the message is.
    Late,
    /// The first attempt fails. The retry is due after a millisecond.
    FailOnce,
    /// Does not return.
    Hold,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Reply {
    pub(crate) count: u64,
    pub(crate) seconds: f64,
    /// µs after the time that the caller asked for.
    pub(crate) late: Vec<i64>,
    pub(crate) error: Option<String>,
}

impl Reply {
    pub(crate) fn per_second(&self) -> f64 {
        self.count as f64 / self.seconds
    }
}

/// The queues that a name stands for.
pub(crate) fn names(queue: &str, queues: usize) -> Vec<String> {
    match queues {
        1 => vec![queue.to_owned()],
        _ => (0..queues).map(|n| format!("{queue}-{n}")).collect(),
    }
}

/// The wall clock, epoch µs. All processes of a machine share it.
pub(crate) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64)
}

/// The due time that the caller asked for, filled up with `x` to the size.
pub(crate) fn payload(due: i64, size: usize) -> String {
    let mut payload = String::with_capacity(size);
    payload.push_str(&due.to_string());
    payload.push(' ');
    payload.extend(std::iter::repeat_n('x', size.saturating_sub(payload.len())));
    payload
}

pub(crate) fn due(payload: &str) -> i64 {
    payload.split(' ').next().and_then(|due| due.parse().ok()).expect("a payload begins with its due time")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_has_its_size_and_tells_its_due_time() {
        let payload = payload(1_795_249_257_299_123, 100);
        assert_eq!((payload.len(), due(&payload)), (100, 1_795_249_257_299_123));
    }

    #[test]
    fn jobs_read_as_the_java_side_reads_them() {
        let line = serde_json::to_string(&Offer::new("q").job()).unwrap();
        assert!(line.starts_with(
            r#"{"job":"offer","queue":"q","queues":1,"size":100,"batch":1,"delay":[3600000,3600000]"#
        ));
    }
}
