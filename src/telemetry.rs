//! What a client reports about itself: counters that callers read as stats, and events and spans for
//! `tracing`.

mod counters;
pub(crate) mod events;
mod health;
mod histogram;
mod stats;
pub(crate) mod trace_context;

pub(crate) use counters::{ClientCounters, Delivered, OnServer, QueueCounters, Taker};
pub use health::Health;
pub use histogram::Histogram;
pub use stats::{ClientStats, HandlingStats, LastError, PumpStats, QueueStats, ReceivingStats};
