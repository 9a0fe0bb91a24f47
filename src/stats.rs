//! Counters and gauges of a client and of a queue: [`Client::stats`](crate::Client::stats),
//! [`Client::health`](crate::Client::health),
//! [`DelayedQueue::stats`](crate::DelayedQueue::stats),
//! [`BlockingQueue::stats`](crate::BlockingQueue::stats).

pub use crate::telemetry::{
    ClientStats, HandlingStats, Health, Histogram, LastError, PumpStats, QueueStats, ReceivingStats,
};
