//! What only redelay's own tests do with a cluster: moves of slots.

use std::time::{Duration, Instant};

use super::{Cluster, NODE_TIMEOUT, Node, PATIENT_NODE_TIMEOUT, id, nodes};
use crate::until::until_some;
use crate::{Server, until};

/// When to ask again for a move of a slot that has not happened.
const MIGRATION: Duration = Duration::from_secs(10);

impl Cluster {
    /// With `true`, no master is replaced because a busy machine is slow, and a dead one is replaced late.
    /// With `false` it is as at the start: a master is dead after 1.5 s of silence.
    ///
    /// # Panics
    /// Panics if one of the servers is down.
    #[track_caller]
    pub fn be_patient(&self, patient: bool) {
        let timeout = if patient { PATIENT_NODE_TIMEOUT } else { NODE_TIMEOUT };
        self.set("cluster-node-timeout", &timeout.as_millis().to_string());
    }

    /// Starts this number of masters, and no replicas. They have the server's default time after which a
    /// silent one counts as dead, since nobody replaces it.
    ///
    /// # Panics
    /// Panics with the reason if one of them does not start.
    #[must_use]
    pub fn without_replicas(masters: usize) -> Self {
        let node = Server::builder().node().config("cluster-announce-ip 127.0.0.1");
        Self::start_with(&node, masters, 0)
    }

    /// Makes the servers serve their slots even if others have no server, which is not their default.
    ///
    /// # Panics
    /// Panics if one of them refuses.
    #[track_caller]
    pub fn require_no_full_coverage(&self) {
        self.set("cluster-require-full-coverage", "no");
    }

    /// Whether a server is a master, by its own account.
    #[must_use]
    pub fn is_master(&self, server: &Server) -> bool {
        nodes(server).is_some_and(|nodes| nodes.iter().any(Node::is_own_master))
    }

    /// Waits until the master of a slot has a replica with all its data, and until all servers that answer
    /// know it. Returns it. A master that was replaced becomes a replica some time after it is back.
    ///
    /// # Panics
    /// Panics if that does not happen in time.
    #[track_caller]
    pub fn wait_for_replica(&self, slot: u16) -> &Server {
        until_some("the slot has a replica", || {
            let owner = self.owner(slot);
            let is_known = |nodes: &Vec<Node>| nodes.iter().any(|node| node.master == owner.id);
            let master = self.server_of(&owner);
            let replica = self.servers.iter().find(|server| server.follows(master))?;
            self.views().iter().all(is_known).then_some(replica)
        })
    }

    /// Begins to move a slot to another master. From now on, the old master replies `ASK` for a key that it
    /// does not have, and the new one accepts commands after `ASKING`.
    ///
    /// # Panics
    /// Panics if one of them refuses.
    #[track_caller]
    pub fn begin_move(&self, slot: u16, to: &Server) {
        let from = self.master_of(slot);
        let slot = slot.to_string();
        to.cmd(["CLUSTER", "SETSLOT", &slot, "IMPORTING", &id(from)]);
        from.cmd(["CLUSTER", "SETSLOT", &slot, "MIGRATING", &id(to)]);
    }

    /// Moves the keys of a slot that [`begin_move`](Self::begin_move) began to move.
    ///
    /// # Panics
    /// Panics if the slot is not on the move, or if a server goes on refusing.
    #[track_caller]
    pub fn migrate_keys(&self, slot: u16) {
        let (from, to) = (self.master_of(slot), self.destination(slot));
        loop {
            let keys: Vec<Vec<u8>> = from.get(["CLUSTER", "GETKEYSINSLOT", &slot.to_string(), "100"]);
            if keys.is_empty() {
                return;
            }
            let words = ["MIGRATE", "127.0.0.1", &to.port().to_string(), "", "0", "10000", "KEYS"];
            let migrate: Vec<_> = words.iter().map(|word| word.as_bytes().to_vec()).chain(keys).collect();
            // A cluster is down for a moment after the machine was held up.
            until("the keys of the slot move", || from.try_cmd(&migrate).is_ok());
        }
    }

    /// Gives a slot to the master that it moves to, and waits until all servers that answer know it. The old
    /// master must have no key of the slot any more.
    ///
    /// # Panics
    /// Panics if the slot is not on the move, or if a server refuses.
    #[track_caller]
    pub fn end_move(&self, slot: u16) {
        let (from, to) = (self.master_of(slot), self.destination(slot));
        let new = id(to);
        let others = self.servers.iter().filter(|server| ![from.port(), to.port()].contains(&server.port()));
        // The new one first. The old one would send clients to it before it accepts them.
        for server in [to, from].into_iter().chain(others) {
            // A replica refuses. It learns it from the others.
            if nodes(server).is_some_and(|nodes| nodes.iter().any(Node::is_own_master)) {
                server.cmd(["CLUSTER", "SETSLOT", &slot.to_string(), "NODE", &new]);
            }
        }
        until("all know the new master of the slot", || self.agreed(slot) == Some(to.port()));
    }

    /// Moves a slot to another master at once, with its keys: `CLUSTER MIGRATESLOTS` of Valkey 9. Waits until
    /// all servers that answer know it.
    ///
    /// # Panics
    /// Panics if a server refuses, or if it does not happen in time.
    #[track_caller]
    pub fn migrate_slot(&self, slot: u16, to: &Server) {
        let (slot_text, new) = (slot.to_string(), id(to));
        let words = ["CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", &slot_text, &slot_text, "NODE", &new];
        self.master_of(slot).cmd(words);
        let mut asked = Instant::now();
        until("all know the new master of the slot", || {
            let is_moved = self.agreed(slot) == Some(to.port());
            if !is_moved && asked.elapsed() > MIGRATION {
                // It fails if a server is silent for a moment. While it goes on, this is refused.
                let _ = self.master_of(slot).try_cmd(words);
                asked = Instant::now();
            }
            is_moved
        });
    }

    /// Where a slot is moving to.
    #[track_caller]
    fn destination(&self, slot: u16) -> &Server {
        let prefix = format!("[{slot}->-");
        let nodes = nodes(self.master_of(slot)).expect("the master of the slot answers");
        let marks = nodes.iter().flat_map(|node| &node.slots);
        let mut to = marks.filter_map(|mark| mark.strip_prefix(&prefix)?.strip_suffix(']'));
        let id = to.next().unwrap_or_else(|| panic!("slot {slot} is not on the move"));
        self.server_of(
            nodes.iter().find(|node| node.id == id).expect("a node knows where it moves a slot to"),
        )
    }
}

impl Node {
    /// Whether this is the server that was asked, and a master.
    fn is_own_master(&self) -> bool {
        self.flags.contains("myself,master")
    }
}
