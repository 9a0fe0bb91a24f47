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
    /// A handler has begun, or Java has taken the order.
    Begun {
        id: u32,
        by: Taker,
        attempt: u32,
    },
    /// A handler has done its work. It is not acknowledged yet.
    Done {
        id: u32,
        by: Taker,
    },
    Failed {
        id: u32,
    },
    ConsumerStarted(usize),
    /// The process is gone: killed, or ended in another way.
    ConsumerGone {
        number: usize,
        killed: bool,
    },
    ConnectionsKilled(usize),
    Queue(Queue),
    /// The server has not answered.
    Disconnected,
    /// For the reader only.
    Note(String),
}

/// What the server says of the queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Queue {
    pub(crate) connected: bool,
    pub(crate) sizes: Sizes,
    pub(crate) in_flight: Vec<Unsettled>,
    pub(crate) waiting: Vec<Unsettled>,
    /// The first ones.
    pub(crate) dead: Vec<Dead>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) ready: usize,
    pub(crate) timeout_set: usize,
    pub(crate) ordered_list: usize,
    /// Due, but not yet among the ready ones.
    pub(crate) overdue: usize,
    pub(crate) in_flight: usize,
    pub(crate) waiting: usize,
    pub(crate) dead: usize,
}

impl Sizes {
    /// Whatever is due, and still on the server.
    pub(crate) fn held(self) -> usize {
        self.ready + self.overdue + self.in_flight + self.waiting + self.dead
    }

    pub(crate) fn is_empty(self) -> bool {
        self.held() + self.timeout_set + self.ordered_list == 0
    }
}

/// An order that a consumer has, or that waits for its next attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unsettled {
    pub(crate) order: Order,
    pub(crate) attempt: u32,
    /// Until the end of its lease, or until its next attempt.
    pub(crate) remaining: Duration,
}

/// A dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dead {
    pub(crate) order: Order,
    pub(crate) failed: u32,
    pub(crate) lost: u32,
    /// The last one.
    pub(crate) error: String,
}
