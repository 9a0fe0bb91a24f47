//! How many connections block on pops, in a cluster. Beyond some of them for each server, a pop is tracked.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::kind::Kind;
use super::of_kind::PopsOfKind;
use crate::conn::{Conn, ServerId};

/// The most blocking connections that takers hold to one master of a cluster.
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
    /// The server has refused to track lists: the next pops block on separate connections.
    pub(super) fn refused_tracking(&mut self) {
        self.unlimited_until = Some(Instant::now() + UNLIMITED);
    }

    /// Whether pops of this kind may block on a separate connection.
    pub(super) fn allows(&mut self, kind: &Kind, kinds: &HashMap<Kind, PopsOfKind>, conn: &Conn) -> bool {
        let Kind::Take(_, Some(_)) = kind else { return true };
        let is_unlimited = self.unlimited_until.is_some_and(|until| Instant::now() < until);
        if is_unlimited || kinds.get(kind).is_some_and(|pops| pops.parked() > 0) {
            return true;
        }
        let server = |kind: &Kind| Some(conn.in_slot(Some(kind.slot(conn)?)).own_server());
        if self.counted.is_none_or(|counted| counted.elapsed() > RECOUNT) {
            self.counted = Some(Instant::now());
            self.at_servers.clear();
            for (kind, pops) in kinds {
                if let Some(server) = server(kind) {
                    *self.at_servers.entry(server).or_default() += pops.parked();
                }
            }
        }
        let Some(server) = server(kind) else { return true };
        let parked = self.at_servers.entry(server).or_default();
        *parked += 1;
        *parked <= MOST
    }
}
