//! The kinds of pop, and what a taker wants.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;

use crate::conn::{Conn, OpError, Slot};
use crate::telemetry::{QueueCounters, events};
use crate::wire::keys::Keys;

/// The end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum End {
    Head,
    Tail,
}

/// Each kind of pop has a dispatcher, and connections while it is in use: one connection blocks on one
/// command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// From lists in one slot, in a cluster.
    Take(End, Option<Slot>),
    /// From the tail of one list to the head of another.
    Move { source: Keys, destination: Bytes },
    /// From the head of a list to the tail of its inbox, where receivers claim it. What was moved only wakes
    /// up its taker.
    Receive { source: Keys, inbox: Bytes },
}

impl Hash for Kind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Take(end, slot) => (end, slot).hash(state),
            // One queue has few of them.
            Self::Move { source, .. } | Self::Receive { source, .. } => source.hash(state),
        }
    }
}

impl Kind {
    /// The slot of its lists, in a cluster.
    pub(super) fn slot(&self, conn: &Conn) -> Option<Slot> {
        match self {
            Self::Take(_, slot) => *slot,
            Self::Move { source, .. } | Self::Receive { source, .. } => conn.slot_of(source),
        }
    }

    /// The name of its only queue, for events; `None` if it is for several.
    pub(super) fn queue(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Take(..) => None,
            Self::Move { source, .. } | Self::Receive { source, .. } => Some(events::name(source)),
        }
    }

    /// The error for a server that does not answer. A popped payload comes back; a moved payload stays moved.
    pub(super) fn no_answer(&self) -> OpError {
        let why = "the server does not answer".into();
        match self {
            Self::Take(..) => OpError::NotExecuted(why),
            Self::Move { .. } | Self::Receive { .. } => OpError::Unknown(why),
        }
    }
}

/// What a taker wants.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(super) kind: Kind,
    /// The lists that it takes from.
    pub(super) keys: Vec<Keys>,
    /// Of these lists. They count the taker.
    pub(super) counters: Vec<Arc<QueueCounters>>,
    /// Whether the lists of one slot are searched in this order.
    pub(super) in_order: bool,
    pub(super) count: usize,
}

impl Wanted {
    /// One payload from the first of several lists that has any.
    pub(crate) fn one(end: End, keys: Vec<Keys>, counters: Vec<Arc<QueueCounters>>) -> Self {
        Self { kind: Kind::Take(end, None), keys, counters, in_order: true, count: 1 }
    }

    /// The same, from whichever list has any.
    pub(crate) fn in_any_order(self) -> Self {
        Self { in_order: false, ..self }
    }

    /// Up to `count` payloads from one list, for a taker that does not wait.
    pub(crate) fn many(end: End, keys: Keys, count: usize) -> Self {
        Self { count, ..Self::one(end, vec![keys], Vec::new()) }
    }

    /// A payload for the receivers of a queue, moved from the head of its target to its inbox.
    pub(crate) fn received(source: Keys, inbox: Bytes) -> Self {
        let kind = Kind::Receive { source: source.clone(), inbox };
        Self { kind, ..Self::one(End::Head, vec![source], Vec::new()) }
    }

    /// One payload, moved from the tail of a list to the head of another.
    pub(crate) fn moved(source: Keys, counters: Vec<Arc<QueueCounters>>, destination: Bytes) -> Self {
        let kind = Kind::Move { source: source.clone(), destination };
        Self { kind, ..Self::one(End::Tail, vec![source], counters) }
    }
}
