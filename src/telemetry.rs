//! What a client reports about itself: counters that callers read as stats, and events and spans for
//! `tracing`.

mod counters;
pub(crate) mod events;
mod stats;

pub(crate) use counters::{ClientCounters, Delivered, OnServer, QueueCounters, Taker};
pub use stats::{ClientStats, LastError, PumpStats, QueueStats, ReceivingStats};
