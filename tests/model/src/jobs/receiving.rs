//! Receivers: what they claim, settle and lose. And what operators do with messages.

use super::protocol::Protocol;
use super::server::{Field, JobId, Kind, Letter, MessageId, Note, Place, Reason, Record, Server, Time};

/// How many failures make a dead letter, and how many losses.
pub const ATTEMPTS: u8 = 2;

/// How a receiver settles a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// It is done.
    Ack,
    /// It has failed, and is tried again so much later.
    Retry(Time),
    /// It is not tried again.
    Reject,
    /// Nobody has read it.
    Unread,
}

/// What a receiver's call has done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Received {
    /// Whether the delivery was held that was settled.
    pub was_held: bool,
    /// What it has claimed.
    pub claimed: Vec<MessageId>,
    /// How many jobs had expired.
    pub expired: u8,
    /// How many of them were discarded.
    pub discarded: u8,
}

impl Server {
    /// `RECEIVE`, with one settlement at most.
    pub fn receive(
        &mut self,
        protocol: &Protocol,
        settle: Option<(MessageId, Verb)>,
        most: usize,
    ) -> Received {
        let mut done = Received::default();
        let call = self.next_call();
        if let Some((id, verb)) = settle {
            done.was_held = self.settle(protocol, id, verb);
        }
        self.recover();
        self.claim_retries(most.div_ceil(2), &mut done.claimed);
        let retried = done.claimed.len();
        self.claim_payloads(protocol, true, most, call, &mut done);
        self.claim_payloads(protocol, false, most, call, &mut done);
        debug_assert!(retried <= most);
        self.claim_retries(most, &mut done.claimed);
        done
    }

    /// The number of the next call that claims: the smallest one that nothing names, so that there are few
    /// states.
    pub fn next_call(&self) -> u8 {
        let named = |field: &Field| match field {
            Field::Message { id, .. } => Some(*id),
            Field::Entry { .. } => None,
        };
        let ids = || self.messages.keys().chain(self.dead.keys()).copied();
        let is_free = |call: &u8| ids().chain(self.jobs.values().filter_map(named)).all(|id| id.0 != *call);
        (0..).find(is_free).expect("a number")
    }

    /// Returns whether the delivery was held.
    fn settle(&mut self, protocol: &Protocol, id: MessageId, verb: Verb) -> bool {
        let Some(record) = self.messages.get(&id).copied() else { return false };
        if !matches!(record.place, Place::InFlight(_)) {
            return false;
        }
        if verb == Verb::Ack {
            if let Some(job) = self.held_by(record.note, id) {
                self.jobs.remove(&job);
            }
            self.messages.remove(&id);
            return true;
        }
        if self.end_cancelled(id) {
            return true;
        }
        let clock = self.clock;
        let message = self.messages.get_mut(&id).expect("a message");
        match verb {
            Verb::Reject => self.bury(id, Reason::Rejected),
            Verb::Unread if message.is_fresh => self.make_ready(protocol, id, false),
            Verb::Retry(after) => {
                message.failed += 1;
                (message.is_fresh, message.has_error) = (false, message.note.is_some());
                message.place = Place::Waiting(clock + after);
                if message.failed >= ATTEMPTS {
                    self.bury(id, Reason::Attempts);
                }
            }
            Verb::Unread => message.place = Place::Waiting(clock),
            Verb::Ack => {}
        }
        true
    }

    /// Takes back what receivers have lost.
    fn recover(&mut self) {
        for id in self.ended() {
            if self.end_cancelled(id) {
                continue;
            }
            let clock = self.clock;
            let message = self.messages.get_mut(&id).expect("a message");
            message.lost += 1;
            message.is_fresh = false;
            message.place = Place::Waiting(clock);
            if message.lost >= ATTEMPTS {
                self.bury(id, Reason::Lost);
            }
        }
    }

    /// The messages whose leases have ended.
    pub fn ended(&self) -> Vec<MessageId> {
        let has_ended =
            |record: &Record| matches!(record.place, Place::InFlight(since) if since < self.clock);
        self.messages.iter().filter(|(_, record)| has_ended(record)).map(|(id, _)| *id).collect()
    }

    fn claim_retries(&mut self, most: usize, claimed: &mut Vec<MessageId>) {
        let due = |(id, record): (&MessageId, &Record)| match record.place {
            Place::Waiting(due) if due <= self.clock => Some((due, *id)),
            _ => None,
        };
        let mut ids: Vec<_> = self.messages.iter().filter_map(due).collect();
        ids.sort_unstable();
        ids.truncate(most.saturating_sub(claimed.len()));
        for (_, id) in ids {
            if !self.end_cancelled(id) {
                let message = self.messages.get_mut(&id).expect("a message");
                (message.place, message.is_fresh) = (Place::InFlight(self.clock), false);
                claimed.push(id);
            }
        }
    }

    /// Claims the first ready payloads.
    fn claim_payloads(
        &mut self,
        protocol: &Protocol,
        is_inbox: bool,
        most: usize,
        call: u8,
        done: &mut Received,
    ) {
        while done.claimed.len() < most {
            let list = if is_inbox { &mut self.inbox } else { &mut self.target };
            let payloads: Vec<_> = list.drain(..list.len().min(most - done.claimed.len())).collect();
            if payloads.is_empty() {
                return;
            }
            let travelling = self.travelling(protocol, &payloads);
            self.remove_notes(&payloads, &travelling);
            let (mut freed, mut expired) = (Vec::new(), Vec::new());
            for (payload, job) in payloads.into_iter().zip(travelling) {
                let note = job.as_ref().map(|job| job.note);
                let is_over = note.and_then(|note| note.expires).is_some_and(|expires| expires <= self.clock);
                let number = match is_over {
                    true => u16::MAX - u16::from(done.expired),
                    false => done.claimed.len() as u16,
                };
                let id = MessageId(call, number);
                let place = Place::InFlight(self.clock);
                let record =
                    Record { payload, note, place, is_fresh: true, failed: 0, lost: 0, has_error: false };
                self.messages.insert(id, record);
                match is_over {
                    true => {
                        done.expired += 1;
                        expired.push(id);
                    }
                    false => done.claimed.push(id),
                }
                let Some(job) = job else { continue };
                if let Some(first) = job.held_since.filter(|_| protocol.claims_move_ids) {
                    let field = Field::Message { id, first, due: job.note.due, is_cancelled: false };
                    self.jobs.insert(job.note.id, field);
                }
                freed.extend(job.is_freed.then_some(job.note.id));
            }
            self.jobs.retain(|id, _| !freed.contains(id));
            for id in expired {
                let note = self.messages[&id].note;
                if note.is_some_and(|note| note.discarded) {
                    done.discarded += 1;
                    if let Some(job) = self.held_by(note, id) {
                        self.jobs.remove(&job);
                    }
                    self.messages.remove(&id);
                } else {
                    self.bury(id, Reason::Expired);
                }
            }
        }
    }

    /// The id that this message holds.
    fn held_by(&self, note: Option<Note>, message: MessageId) -> Option<JobId> {
        let id = note.filter(|note| note.holds)?.id;
        matches!(self.jobs.get(&id), Some(Field::Message { id, .. }) if *id == message).then_some(id)
    }

    /// Ends a message whose job was cancelled.
    fn end_cancelled(&mut self, message: MessageId) -> bool {
        let id = self.held_by(self.messages[&message].note, message);
        let Some(id) = id.filter(|id| self.is_cancelled(*id)) else { return false };
        self.messages.remove(&message);
        self.jobs.remove(&id);
        true
    }

    fn bury(&mut self, id: MessageId, reason: Reason) {
        let Record { payload, note, .. } = self.messages.remove(&id).expect("a message");
        self.dead.insert(id, Letter { payload, note, reason, died: self.clock });
    }

    /// The payload of a message is ready again, before all others.
    fn make_ready(&mut self, protocol: &Protocol, message: MessageId, has_begun: bool) {
        let Record { payload, note, .. } = self.messages[&message];
        self.target.insert(0, payload);
        if let Some(mut note) = note.filter(|_| protocol.returns_hold) {
            if has_begun {
                note.expires = None;
            }
            let id = self.held_by(Some(note), message);
            note.holds = id.is_some();
            self.add_note(payload, note);
            if let Some((id, Field::Message { first, .. })) =
                id.and_then(|id| Some((id, *self.jobs.get(&id)?)))
            {
                let field = Field::Entry { kind: Kind::Holds, first, due: note.due, payload };
                self.jobs.insert(id, field);
            }
        }
        self.messages.remove(&message);
    }

    /// A receiver that waits is woken by a payload: `LMOVE`.
    pub fn wake(&mut self) -> bool {
        let is_ready = !self.target.is_empty();
        if is_ready {
            let payload = self.target.remove(0);
            self.inbox.push(payload);
        }
        is_ready
    }

    /// `REMOVE_MESSAGE` and `REMOVE_DEAD`. Returns whether it was there.
    pub fn remove(&mut self, id: MessageId) -> bool {
        let Some(record) = self.messages.remove(&id) else { return self.dead.remove(&id).is_some() };
        if let Some(job) = self.held_by(record.note, id) {
            self.jobs.remove(&job);
        }
        true
    }

    /// `REQUEUE_DEAD`
    pub fn requeue(&mut self, id: MessageId) -> bool {
        let Some(Letter { payload, note, .. }) = self.dead.remove(&id) else { return false };
        let place = Place::Waiting(self.clock);
        let record = Record { payload, note, place, is_fresh: false, failed: 0, lost: 0, has_error: false };
        self.messages.insert(id, record);
        true
    }

    /// `RELEASE_ALL`, and whether no receiver has been there for a time. Returns how many went back.
    pub fn release(&mut self, protocol: &Protocol, are_gone: bool) -> u8 {
        let waiting = |record: &Record| match record.place {
            Place::Waiting(due) => Some(due),
            Place::InFlight(_) => None,
        };
        let mut released = 0;
        let mut ids: Vec<_> =
            self.messages.iter().filter_map(|(id, record)| Some((waiting(record)?, *id))).collect();
        ids.sort_unstable();
        let mut ended: Vec<_> = if are_gone { self.ended() } else { Vec::new() };
        let since = |id: &MessageId| match self.messages[id].place {
            Place::InFlight(since) | Place::Waiting(since) => (since, *id),
        };
        ended.sort_by_key(since);
        for id in ids.into_iter().rev().map(|(_, id)| id).chain(ended.into_iter().rev()) {
            if !self.end_cancelled(id) {
                self.make_ready(protocol, id, true);
                released += 1;
            }
        }
        if are_gone {
            while let Some(payload) = self.inbox.pop() {
                self.target.insert(0, payload);
                released += 1;
            }
        }
        released
    }
}
