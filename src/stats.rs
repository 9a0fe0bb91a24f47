//! Counters and gauges of a client and of a queue: [`Client::stats`](crate::Client::stats),
//! [`DelayedQueue::stats`](crate::DelayedQueue::stats),
//! [`BlockingQueue::stats`](crate::BlockingQueue::stats).

pub use crate::telemetry::{
    ClientStats, HandlingStats, Histogram, LastError, PumpStats, QueueStats, ReceivingStats,
};
