//! What the running part reports to the model.

use std::time::Duration;

use crate::ledger::Stage;
use crate::order::{Order, Side, Taker};

/// What happened. Each comes with its time.
#[derive(Debug)]
pub(crate) enum Event {
    Offering {
        order: Order,
        by: Side,
        due: Duration,
    },
    /// The answer to an offer or to a cancellation.
    Became {
        id: u32,
        stage: Stage,
    },
    Rescheduled {
        id: u32,
        due: Duration,
        sure: bool,
    },
    Taken {
        id: u32,
        by: Taker,
    },
    ConsumerKilled(usize),
    ConsumerBack(usize),
    ConnectionsKilled(usize),
    Sizes(Sizes),
    /// The server has not answered.
    Disconnected,
    /// For the reader only.
    Note(String),
}

/// What the server says of the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) connected: bool,
    pub(crate) ready: usize,
    pub(crate) timeout_set: usize,
    pub(crate) ordered_list: usize,
    /// Due, but not yet among the ready ones.
    pub(crate) overdue: usize,
}
