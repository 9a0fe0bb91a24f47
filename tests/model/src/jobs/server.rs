//! The keys of jobs that hold their ids, and what moves and takes without regard to these.

use std::collections::{BTreeMap, BTreeSet};

use super::protocol::Protocol;

/// In units that are longer than a lease.
pub type Time = i8;
/// The id of a job.
pub type JobId = u8;
/// What is delivered. Jobs may have equal ones.
pub type Payload = u8;

/// The number of the call that claimed the message, and its number in that call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u8, pub u16);

/// What travels with a payload. Its order is that of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Note {
    /// When the job is due.
    pub due: Time,
    /// The id of the job.
    pub id: JobId,
    /// Whether it is discarded if it expires, instead of a dead letter.
    pub discarded: bool,
    /// Whether it holds its id.
    pub holds: bool,
    /// When it was offered.
    pub offered: Time,
    /// When it expires.
    pub expires: Option<Time>,
}

/// What a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Nothing travels with it, and its id is free once it is due.
    Plain,
    /// Its id is free once it is due.
    Free,
    /// It holds its id until it is done.
    Holds,
}

/// The field of an id in the hash of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// It is pending, or its payload is ready.
    Entry {
        /// What the job is.
        kind: Kind,
        /// When it was offered first.
        first: Time,
        /// When it is due.
        due: Time,
        /// What its entry has.
        payload: Payload,
    },
    /// A message holds it.
    Message {
        /// Which.
        id: MessageId,
        /// When the job was offered first.
        first: Time,
        /// When the job was due.
        due: Time,
        /// Whether somebody has asked to cancel it.
        is_cancelled: bool,
    },
}

/// Where a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// With a receiver, since this time.
    InFlight(Time),
    /// Until a retry.
    Waiting(Time),
}

/// A message that was claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// What is delivered.
    pub payload: Payload,
    /// What travels with it.
    pub note: Option<Note>,
    /// Where it is.
    pub place: Place,
    /// Whether it was claimed once, and has no failure and no loss.
    pub is_fresh: bool,
    /// How often it has failed.
    pub failed: u8,
    /// How often its receiver was lost.
    pub lost: u8,
    /// Whether its last claim ended with an error.
    pub has_error: bool,
}

/// Why a message is a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Too many failures.
    Attempts,
    /// Too many losses.
    Lost,
    /// By its handler.
    Rejected,
    /// Nobody began it in time.
    Expired,
}

/// A dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Letter {
    /// What was not delivered.
    pub payload: Payload,
    /// What travels with it.
    pub note: Option<Note>,
    /// Why.
    pub reason: Reason,
    /// When.
    pub died: Time,
}

/// The keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Server {
    /// The server's clock.
    pub clock: Time,
    /// The timeout set.
    pub pending: BTreeMap<(JobId, Payload), Time>,
    /// The ordered list.
    pub list: Vec<(JobId, Payload)>,
    /// The ready payloads.
    pub target: Vec<Payload>,
    /// Those that a waiting receiver was woken by.
    pub inbox: Vec<Payload>,
    /// The hash of jobs.
    pub jobs: BTreeMap<JobId, Field>,
    /// The throttles: until when.
    pub throttles: BTreeMap<JobId, Time>,
    /// The first note of each payload, and the others.
    pub notes: BTreeMap<Payload, (Note, BTreeSet<Note>)>,
    /// What was claimed.
    pub messages: BTreeMap<MessageId, Record>,
    /// Dead letters.
    pub dead: BTreeMap<MessageId, Letter>,
}

impl Server {
    /// Time passes.
    pub fn tick(&mut self) {
        self.clock += 1;
        self.throttles.retain(|_, until| *until > self.clock);
    }

    pub(super) fn pending_of(&self, id: JobId) -> Option<(Payload, Time)> {
        match self.jobs.get(&id) {
            Some(Field::Entry { payload, .. }) => Some((*payload, *self.pending.get(&(id, *payload))?)),
            _ => None,
        }
    }

    pub(super) fn is_ready(&self, payload: Payload) -> bool {
        self.target.contains(&payload) || self.inbox.contains(&payload)
    }

    /// How many ready payloads are equal to this one.
    pub fn ready_count(&self, payload: Payload) -> usize {
        self.target.iter().chain(&self.inbox).filter(|one| **one == payload).count()
    }

    /// How many jobs are somewhere.
    pub fn live(&self) -> usize {
        self.pending.len() + self.target.len() + self.inbox.len() + self.messages.len() + self.dead.len()
    }

    pub(super) fn forget_entry(&mut self, entry: (JobId, Payload)) -> bool {
        self.list.retain(|other| *other != entry);
        self.pending.remove(&entry).is_some()
    }

    /// `TRANSFER`. Returns how many.
    pub fn transfer(&mut self, protocol: &Protocol) -> u8 {
        self.move_due(|server, (id, payload)| {
            let field = server.jobs.get(&id);
            let is_its = |field: &Field| matches!(field, Field::Entry { kind: Kind::Plain, payload: other, .. } if *other == payload);
            if field.is_some_and(is_its) || !protocol.transfers_leave_ids {
                server.jobs.remove(&id);
            }
        })
    }

    /// Java moves what is due.
    pub fn java_transfer(&mut self) -> u8 {
        self.move_due(|_, _| ())
    }

    fn move_due(&mut self, mut moved: impl FnMut(&mut Self, (JobId, Payload))) -> u8 {
        let mut due: Vec<_> = self.pending.iter().filter(|(_, due)| **due <= self.clock).collect();
        due.sort_by_key(|(entry, due)| (**due, **entry));
        let due: Vec<_> = due.into_iter().map(|(entry, _)| *entry).collect();
        for entry in &due {
            self.forget_entry(*entry);
            self.target.push(entry.1);
            moved(self, *entry);
        }
        due.len() as u8
    }

    /// Java takes a payload.
    pub fn java_take(&mut self) -> bool {
        let is_ready = !self.target.is_empty();
        if is_ready {
            self.target.remove(0);
        }
        is_ready
    }

    /// Java takes the first entry from the delayed queue.
    pub fn java_poll(&mut self) -> bool {
        self.list.first().copied().is_some_and(|entry| self.forget_entry(entry))
    }

    /// Java removes the first entry with this payload.
    pub fn java_remove(&mut self, payload: Payload) -> bool {
        let entry = self.list.iter().find(|entry| entry.1 == payload).copied();
        entry.is_some_and(|entry| self.forget_entry(entry))
    }
}
