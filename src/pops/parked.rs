//! How many connections block on pops, in a cluster.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::kind::Kind;
use super::of_kind::Kinds;
use crate::conn::{Conn, ServerId};

/// The most blocking connections that takers hold to one master.
const MOST: usize = 64;
/// How often they are counted, at most.
const RECOUNT: Duration = Duration::from_millis(100);
/// How long each pop has a separate connection after the server has refused to track lists.
const UNLIMITED: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(super) struct Parked {
    at_servers: HashMap<ServerId, usize>,
    counted: Option<Instant>,
    /// The user may not track lists, so each pop needs a connection.
    unlimited_until: Option<Instant>,
}

impl Parked {
    /// The server refuses to track lists.
    pub(super) fn on_untracked(&mut self) {
        self.unlimited_until = Some(Instant::now() + UNLIMITED);
    }

    /// Whether pops of this kind may block on a separate connection. Counts those that may.
    pub(super) fn has_room(&mut self, conn: &Conn, kind: &Kind, kinds: &Kinds) -> bool {
        let Kind::Take(_, Some(slot)) = kind else { return true };
        let is_unlimited = self.unlimited_until.is_some_and(|until| Instant::now() < until);
        if is_unlimited || kinds.get(kind).is_some_and(|pops| pops.parked() > 0) {
            return true;
        }
        if self.counted.is_none_or(|counted| counted.elapsed() > RECOUNT) {
            self.counted = Some(Instant::now());
            self.at_servers.clear();
            for (kind, pops) in kinds {
                if let Some(slot) = kind.slot(conn) {
                    *self.at_servers.entry(conn.in_slot(Some(slot)).own_server()).or_default() +=
                        pops.parked();
                }
            }
        }
        let parked = self.at_servers.entry(conn.in_slot(Some(*slot)).own_server()).or_default();
        *parked += 1;
        *parked <= MOST
    }
}
