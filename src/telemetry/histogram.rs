//! Times in buckets: how they are counted, and how callers read them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use serde::Serialize;

use crate::wire::time;

/// How many times were how long. A part of [`QueueStats`](crate::stats::QueueStats).
///
/// # Examples
/// ```no_run
/// # use redelay::stats::Histogram;
/// # async fn example(orders: redelay::BlockingQueue<i64>) -> redelay::Result<()> {
/// let done = orders.stats().await?.receiving.handling.acknowledged;
/// for (longest, count) in Histogram::BOUNDS.iter().zip(done.counts) {
///     println!("{count} took up to {longest:?}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Histogram {
    /// How many were as long as the bound of their bucket or shorter, and longer than the one before; the
    /// last one counts what is longer than all bounds.
    pub counts: Vec<u64>,
    /// All times together.
    #[serde(rename = "sum_ms", serialize_with = "time::in_ms")]
    pub sum: Duration,
}

impl Histogram {
    /// The bounds of the buckets, those of OpenTelemetry's durations in messaging.
    pub const BOUNDS: &'static [Duration] = &[
        Duration::from_millis(5),
        Duration::from_millis(10),
        Duration::from_millis(25),
        Duration::from_millis(50),
        Duration::from_millis(75),
        Duration::from_millis(100),
        Duration::from_millis(250),
        Duration::from_millis(500),
        Duration::from_millis(750),
        Duration::from_millis(1_000),
        Duration::from_millis(2_500),
        Duration::from_millis(5_000),
        Duration::from_millis(7_500),
        Duration::from_millis(10_000),
    ];

    pub(super) fn and(self, other: Self) -> Self {
        let counts = self.counts.iter().zip(other.counts).map(|(count, other)| count + other).collect();
        Self { counts, sum: self.sum.saturating_add(other.sum) }
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; Self::BOUNDS.len() + 1], sum: Duration::ZERO }
    }
}

/// A histogram that many count in.
#[derive(Debug, Default)]
pub(super) struct Buckets {
    counts: [AtomicU64; Histogram::BOUNDS.len() + 1],
    /// In µs.
    sum: AtomicU64,
}

impl Buckets {
    pub(super) fn add(&self, time: Duration) {
        let bucket = Histogram::BOUNDS.partition_point(|bound| *bound < time);
        self.counts[bucket].fetch_add(1, Relaxed);
        self.sum.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    pub(super) fn read(&self) -> Histogram {
        let counts = self.counts.iter().map(|count| count.load(Relaxed)).collect();
        Histogram { counts, sum: Duration::from_micros(self.sum.load(Relaxed)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_bucket_of_the_next_bound() {
        let buckets = Buckets::default();
        let bounds = Histogram::BOUNDS;
        assert!(bounds.is_sorted());
        for time in [
            Duration::ZERO,
            bounds[0],
            bounds[0] + Duration::from_nanos(1),
            bounds[13],
            Duration::from_secs(11),
        ] {
            buckets.add(time);
        }
        let read = buckets.read();
        assert_eq!((read.counts[0], read.counts[1], read.counts[13], read.counts[14]), (2, 1, 1, 1));
        assert_eq!(read.counts.iter().sum::<u64>(), 5);
        assert_eq!(read.sum, Duration::from_millis(21_010));
        let twice = read.clone().and(read.clone());
        assert_eq!((twice.counts[0], twice.sum), (4, 2 * read.sum));
        assert_eq!(serde_json::to_value(read).unwrap()["sum_ms"], 21_010.0);
    }
}
