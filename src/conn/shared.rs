//! What the connections of a client share.

use std::sync::Arc;

use tokio::sync::watch;

use super::demotion::Demotion;
use super::slot::Slot;
use super::topology::{Lead, Topology};
use crate::telemetry::ClientCounters;

/// Shared by all connections of a client to one server, or to servers that stand in for each other.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) demotion: Demotion,
    pub(super) counters: ClientCounters,
    /// How many sessions of connections for commands have begun, to any server.
    pub(super) begun: Arc<watch::Sender<u64>>,
    /// The queue that the connection is for, if it is for one.
    pub(super) queue: Option<Arc<str>>,
    /// Where the servers are at present, unless the URL alone says so.
    pub(super) topology: Option<Topology>,
}

impl Shared {
    pub(super) fn new(topology: Option<Topology>) -> Self {
        let (demotion, counters) = (Demotion::none_yet(), ClientCounters::new());
        Self { demotion, counters, begun: Arc::default(), queue: None, topology }
    }

    /// For a connection to another server, whose demotion does not concern these.
    pub(super) fn for_another_server(&self) -> Self {
        Self { demotion: Demotion::none_yet(), ..self.clone() }
    }

    /// For a connection to a server that the topology does not name: a sentinel.
    pub(super) fn without_topology(&self) -> Self {
        Self { topology: None, ..self.for_another_server() }
    }

    /// Leads a connection to the server of this slot, unless the URL alone says where it is.
    pub(super) fn lead(&self, slot: Slot) -> Option<Lead> {
        Some(self.topology.as_ref()?.lead(slot))
    }
}
