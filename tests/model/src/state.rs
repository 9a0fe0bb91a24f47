//! The state of everything, and which states are the same.

use crate::client::{Client, Outcome, Stamp};
use crate::model::Bounds;
use crate::protocol::{Entry, Id, Receipt, Time};
use crate::server::Server;

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The server.
    pub server: Server,
    /// The clients.
    pub clients: Vec<Client>,
    /// What happened to each message: known to nobody but the properties.
    pub messages: Vec<Message>,
    /// The clock of the clients, which is never set.
    pub now: Time,
    /// What may still happen.
    pub left: Left,
}

/// What happened to a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Message {
    /// Whether its offer was started.
    pub offered: bool,
    /// How its offer ended.
    pub outcome: Option<Outcome>,
    /// How often a user has received it.
    pub delivered: u8,
    /// How often a user has removed it.
    pub removed: u8,
    /// The earliest time, by the clients' clock, at which it may become ready. `None` if it did, or if the
    /// server's clock was set forward since then.
    pub not_before: Option<Time>,
    /// Whether it became ready before that.
    pub early: bool,
}

/// What may still happen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Left {
    pub(crate) faults: u8,
    pub(crate) takes: u8,
    pub(crate) polls: u8,
    pub(crate) removals: u8,
    pub(crate) reschedules: u8,
}

impl Message {
    pub(crate) fn became_ready(&mut self, now: Time) {
        self.early |= self.not_before.is_some_and(|not_before| now < not_before);
        self.not_before = None;
    }
}

impl State {
    /// An id that nobody knows. The smallest one, so that states which differ only in ids are the same.
    pub(crate) fn new_id(&self) -> Id {
        let server = &self.server;
        let known = |id: &Id| {
            server.claims.contains_key(id)
                || server.receipts.contains_key(id)
                || self.clients.iter().any(|client| client.ids().any(|known| known == *id))
        };
        (0..).find(|id| !known(id)).expect("few are in use")
    }

    /// Later than all others of this time of the server's clock.
    pub(crate) fn next_stamp(&self) -> Stamp {
        let clock = self.server.clock;
        let stamps = self.clients.iter().flat_map(Client::stamps).filter(|(time, _)| *time == clock);
        (clock, stamps.map(|(_, number)| number + 1).max().unwrap_or(0))
    }

    pub(crate) fn ended(&mut self, ended: Option<(Vec<Entry>, Outcome)>) {
        let Some((entries, outcome)) = ended else { return };
        for entry in entries {
            self.messages[usize::from(entry)].outcome = Some(outcome);
        }
    }

    /// States that differ in nothing that matters become equal.
    pub(crate) fn normalize(&mut self, bounds: &Bounds) {
        let now = self.now;
        for client in &mut self.clients {
            let schedule = &mut client.schedule;
            for head in [&mut schedule.head, &mut schedule.own_head] {
                *head = head.map(|head| head.max(now));
            }
        }
        // Only tickets need to know what the delays counted from.
        for (receipt, _) in self.server.receipts.values_mut() {
            if let Receipt::Stored(base) = receipt {
                *base = 0;
            }
        }
        if bounds.peers {
            self.renumber_stamps(!bounds.kinds.clock.is_empty());
        }
        if bounds.symmetry {
            self.clients.sort_unstable();
        }
    }

    /// Only their order matters. Unless the clock is set, it is the order of the scripts, and the time makes
    /// no difference.
    fn renumber_stamps(&mut self, with_time: bool) {
        let mut all: Vec<Stamp> = self.clients.iter().flat_map(Client::stamps).collect();
        all.sort_unstable();
        all.dedup();
        for stamp in self.clients.iter_mut().flat_map(Client::stamps_mut) {
            let same_time = all.iter().filter(|(time, _)| !with_time || *time == stamp.0);
            let number = same_time.take_while(|known| *known < stamp).count() as u8;
            *stamp = (if with_time { stamp.0 } else { self.server.clock }, number);
        }
    }
}
