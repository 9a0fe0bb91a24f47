//! The keys of jobs that hold their ids, and the scripts as steps on them.

use std::collections::{BTreeMap, BTreeSet};

/// In units that are longer than a lease.
pub type Time = i8;
/// The id of a job.
pub type JobId = u8;
/// What is delivered. Jobs may have equal ones.
pub type Payload = u8;

/// How many failures make a dead letter, and how many losses.
pub const ATTEMPTS: u8 = 2;

/// The number of the call that claimed the message, and its number in that call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u8, pub u16);

/// What the protocol does. Each is there for a reason, which the checks show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Protocol {
    /// An offer looks for what holds its id when the job is not pending any more.
    pub looks_for_holders: bool,
    /// A transfer leaves ids that are held.
    pub transfers_leave_ids: bool,
    /// A claim notes which message holds the id.
    pub claims_move_ids: bool,
    /// A claim skips the notes of jobs that are pending.
    pub skips_pending: bool,
    /// What goes back to the ready list has its note and its id again.
    pub returns_hold: bool,
    /// A replacement removes what waits for a retry, or is dead.
    pub replacements_remove_messages: bool,
    /// A cancel of a job in flight is remembered until its delivery ends.
    pub remembers_cancels: bool,
    /// A sweep looks for the payload before it removes an id.
    pub sweeps_look_for_payloads: bool,
    /// A sweep looks for the dead letter before it removes an id.
    pub sweeps_look_for_letters: bool,
    /// A sweep removes ids whose messages are gone.
    pub sweeps_look_for_messages: bool,
    /// A sweep compares the notes of equal payloads with how many of these are ready.
    pub sweeps_count_payloads: bool,
    /// What redelay removes takes its note and its id with it.
    pub removals_forget: bool,
    /// A claim knows by the field that nothing travels with the pending entry.
    pub tells_plain_entries: bool,
    /// Keys have the times of the offers. Without them, there are fewer states.
    pub knows_offers: bool,
}

impl Protocol {
    /// As it is.
    pub const NOW: Self = Self {
        looks_for_holders: true,
        transfers_leave_ids: true,
        claims_move_ids: true,
        skips_pending: true,
        returns_hold: true,
        replacements_remove_messages: true,
        remembers_cancels: true,
        sweeps_look_for_payloads: true,
        sweeps_look_for_letters: true,
        sweeps_look_for_messages: true,
        sweeps_count_payloads: true,
        removals_forget: true,
        tells_plain_entries: true,
        knows_offers: false,
    };
}

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

/// What is to be done if the id is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Nothing.
    Keep,
    /// The new job takes the place of the other.
    Replace,
    /// The same, if it is due earlier.
    Earliest,
    /// The same, but a burst waits for no longer than this.
    Debounce(Time),
}

/// An offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Offer {
    /// Its id.
    pub id: JobId,
    /// What the job is.
    pub kind: Kind,
    /// What is delivered.
    pub payload: Payload,
    /// From now on.
    pub delay: Time,
    /// If the id is taken.
    pub policy: Policy,
    /// From now on, and whether it is then discarded.
    pub expiry: Option<(Time, bool)>,
    /// From now on, no other throttled one of this id is accepted.
    pub throttle: Option<Time>,
}

/// The reply to an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Offered {
    /// It is stored.
    Stored,
    /// The id is taken.
    Kept,
    /// The other one is gone.
    Replaced,
    /// A receiver has the other one.
    Running,
    /// One was accepted a short time ago.
    Throttled,
}

/// The reply to a cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cancelled {
    /// It is gone.
    Removed,
    /// There is none.
    NotFound,
    /// A receiver has it.
    Requested,
}

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

/// The state that a caller sees of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JobState {
    /// It is free.
    None,
    /// Until this time.
    Pending(Time),
    /// Since this time.
    Ready(Time),
    /// Attempt, and since when.
    Running(u8, Time),
    /// Attempts so far, until when, and whether there is an error.
    Waiting(u8, Time, bool),
    /// Why, and since when.
    Dead(Reason, Time),
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

/// What holds an id that is not pending.
enum Holder {
    Ready(Payload, Time),
    Running(MessageId),
    Waiting(MessageId, Time),
    Dead(MessageId),
}

impl Server {
    fn add_note(&mut self, payload: Payload, note: Note) {
        let Some((first, others)) = self.notes.get_mut(&payload) else {
            self.notes.insert(payload, (note, BTreeSet::new()));
            return;
        };
        if note.due < first.due {
            others.insert(std::mem::replace(first, note));
        } else {
            others.insert(note);
        }
    }

    pub(super) fn remove_first_note(&mut self, payload: Payload) {
        if let Some((first, others)) = self.notes.get_mut(&payload) {
            match others.pop_first() {
                Some(next) => *first = next,
                None => {
                    self.notes.remove(&payload);
                }
            }
        }
    }

    /// The later note of this payload that is of this job, due at this time; the last one that was offered.
    fn last_note(&self, payload: Payload, due: Time, id: JobId, holds: bool) -> Option<Note> {
        let (_, others) = self.notes.get(&payload)?;
        let notes = others.iter().filter(|note| (note.due, note.id, note.holds) == (due, id, holds));
        notes.max_by_key(|note| (note.offered, **note)).copied()
    }

    pub(super) fn remove_note(
        &mut self,
        payload: Payload,
        due: Time,
        id: JobId,
        holds: bool,
    ) -> Option<Note> {
        let last = self.last_note(payload, due, id, holds);
        let (first, others) = self.notes.get_mut(&payload)?;
        if let Some(last) = last {
            others.remove(&last);
            return Some(last);
        }
        let first = *first;
        ((first.due, first.id, first.holds) == (due, id, holds)).then(|| {
            self.remove_first_note(payload);
            first
        })
    }

    /// What travelled with the job of this field does so no longer.
    pub(super) fn remove_note_of(&mut self, id: JobId, field: Field) -> Option<Note> {
        match field {
            Field::Entry { kind: kind @ (Kind::Free | Kind::Holds), due, payload, .. } => {
                self.remove_note(payload, due, id, kind == Kind::Holds)
            }
            _ => None,
        }
    }

    /// Whether what travels with the job of this field waits for nobody. Nothing is pending under the id, and
    /// nothing holds it.
    fn is_stale(&self, field: Field) -> bool {
        match field {
            Field::Entry { kind: Kind::Holds, .. } => true,
            Field::Entry { kind: Kind::Free, due, .. } => due > self.clock,
            _ => false,
        }
    }

    fn is_ready(&self, payload: Payload) -> bool {
        self.target.contains(&payload) || self.inbox.contains(&payload)
    }

    fn pending_of(&self, id: JobId) -> Option<(Payload, Time)> {
        match self.jobs.get(&id) {
            Some(Field::Entry { payload, .. }) => Some((*payload, *self.pending.get(&(id, *payload))?)),
            _ => None,
        }
    }

    fn holder_of(&self, id: JobId) -> Option<Holder> {
        match *self.jobs.get(&id)? {
            Field::Entry { kind, due, payload, .. } => {
                let is_ready = kind == Kind::Holds && due <= self.clock && self.is_ready(payload);
                is_ready.then_some(Holder::Ready(payload, due))
            }
            Field::Message { id, .. } => match self.messages.get(&id) {
                Some(Record { place: Place::InFlight(_), .. }) => Some(Holder::Running(id)),
                Some(Record { place: Place::Waiting(due), .. }) => Some(Holder::Waiting(id, *due)),
                None => self.dead.contains_key(&id).then_some(Holder::Dead(id)),
            },
        }
    }

    fn is_cancelled(&self, id: JobId) -> bool {
        matches!(self.jobs.get(&id), Some(Field::Message { is_cancelled: true, .. }))
    }

    /// Removes one from the head of the first list that has it.
    fn remove_ready(&mut self, payload: Payload) {
        for list in [&mut self.target, &mut self.inbox] {
            if let Some(at) = list.iter().position(|one| *one == payload) {
                list.remove(at);
                return;
            }
        }
    }

    fn remove_holder(&mut self, holder: &Holder) {
        match holder {
            Holder::Ready(payload, _) => self.remove_ready(*payload),
            Holder::Running(id) | Holder::Waiting(id, _) => {
                self.messages.remove(id);
            }
            Holder::Dead(id) => {
                self.dead.remove(id);
            }
        }
    }

    /// `JOB_STATES`
    pub fn state_of(&self, id: JobId) -> JobState {
        if let Some((_, due)) = self.pending_of(id) {
            return JobState::Pending(due);
        }
        match self.holder_of(id) {
            None => JobState::None,
            Some(Holder::Ready(_, due)) => JobState::Ready(due),
            Some(Holder::Dead(id)) => JobState::Dead(self.dead[&id].reason, self.dead[&id].died),
            Some(Holder::Running(id) | Holder::Waiting(id, _)) => {
                let record = &self.messages[&id];
                let attempts = record.failed + record.lost;
                match record.place {
                    Place::InFlight(since) => JobState::Running(attempts + 1, since),
                    Place::Waiting(due) => JobState::Waiting(attempts, due, record.has_error),
                }
            }
        }
    }

    /// `OFFER_HELD`
    pub fn offer(&mut self, protocol: &Protocol, offer: &Offer) -> Offered {
        let Offer { id, kind, payload, policy, .. } = *offer;
        let pending = self.pending_of(id);
        let holder = if pending.is_some() || !protocol.looks_for_holders { None } else { self.holder_of(id) };
        let field = self.jobs.get(&id).copied();
        let now = if protocol.knows_offers { self.clock } else { 0 };
        let first = match field {
            Some(Field::Entry { first, .. } | Field::Message { first, .. }) => first,
            None => now,
        };
        let mut due = self.clock + offer.delay;
        if let Policy::Debounce(wait) = policy {
            let begun = if pending.is_some() { first } else { self.clock };
            due = due.min(begun + wait).max(self.clock);
        }
        if offer.throttle.is_some() && self.throttles.contains_key(&id) {
            return Offered::Throttled;
        }
        let is_kept = |other: Time| policy == Policy::Keep || policy == Policy::Earliest && due >= other;
        let replaces = !matches!(policy, Policy::Keep | Policy::Earliest);
        match (&pending, &holder) {
            (Some((_, other)), _) if is_kept(*other) => return Offered::Kept,
            (None, Some(_)) if self.is_cancelled(id) => return Offered::Running,
            (None, Some(Holder::Waiting(_, at))) if is_kept(*at) => return Offered::Kept,
            (None, Some(Holder::Waiting(..))) => {}
            (None, Some(_)) if !replaces => return Offered::Kept,
            (None, Some(Holder::Running(_))) => return Offered::Running,
            _ => {}
        }
        match (&pending, &holder, field) {
            (Some(_), _, Some(field)) => drop(self.remove_note_of(id, field)),
            (None, Some(Holder::Ready(old, due)), _) => {
                self.remove_note(*old, *due, id, true);
            }
            (None, None, Some(field)) if self.is_stale(field) => drop(self.remove_note_of(id, field)),
            _ => {}
        }
        if kind != Kind::Plain {
            let expires = offer.expiry.map(|(after, _)| self.clock + after);
            let discarded = offer.expiry.is_some_and(|(_, discarded)| discarded);
            let holds = kind == Kind::Holds;
            self.add_note(payload, Note { due, id, holds, discarded, offered: now, expires });
        }
        // The field of a job that keeps its entry stays as it is, unless something travels with it.
        let is_same = pending.is_some_and(|(old, _)| old == payload) && kind == Kind::Plain;
        if !(is_same && matches!(field, Some(Field::Entry { kind: Kind::Plain, .. }))) {
            // With `debounce`, what is not pending any more is another burst.
            let goes_on = pending.is_some() || holder.is_some() && !matches!(policy, Policy::Debounce(_));
            let first = if goes_on { first } else { now };
            self.jobs.insert(id, Field::Entry { kind, first, due, payload });
        }
        if self.pending.insert((id, payload), due).is_none() {
            self.list.push((id, payload));
        }
        if let Some((old, _)) = pending.filter(|(old, _)| *old != payload) {
            self.forget_entry((id, old));
        }
        match &holder {
            Some(Holder::Waiting(..) | Holder::Dead(_)) if !protocol.replacements_remove_messages => {}
            Some(holder) => self.remove_holder(holder),
            None => {}
        }
        if let Some(window) = offer.throttle {
            self.throttles.insert(id, self.clock + window);
        }
        if pending.is_some() || holder.is_some() { Offered::Replaced } else { Offered::Stored }
    }

    /// Time passes.
    pub fn tick(&mut self) {
        self.clock += 1;
        self.throttles.retain(|_, until| *until > self.clock);
    }

    /// `RESCHEDULE_JOB`
    pub fn reschedule(&mut self, id: JobId, delay: Time) -> bool {
        let due = self.clock + delay;
        if let Some((payload, _)) = self.pending_of(id) {
            let field = self.jobs.get(&id).copied();
            if let Some(field @ Field::Entry { kind: kind @ (Kind::Free | Kind::Holds), first, .. }) = field {
                self.jobs.insert(id, Field::Entry { kind, first, due, payload });
                if let Some(note) = self.remove_note_of(id, field) {
                    self.add_note(payload, Note { due, ..note });
                }
            }
            self.pending.insert((id, payload), due);
            return true;
        }
        let Some(Holder::Waiting(message, _)) = self.holder_of(id) else { return false };
        self.messages.get_mut(&message).expect("a message").place = Place::Waiting(due);
        true
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

    /// `CANCEL_JOBS`
    pub fn cancel(&mut self, protocol: &Protocol, id: JobId) -> Cancelled {
        let field = self.jobs.get(&id).copied();
        if let (Some((payload, _)), Some(field)) = (self.pending_of(id), field) {
            self.jobs.remove(&id);
            self.remove_note_of(id, field);
            self.forget_entry((id, payload));
            return Cancelled::Removed;
        }
        let holder = self.holder_of(id);
        if let Some(Holder::Running(_)) = holder {
            if let Some(Field::Message { is_cancelled, .. }) = self.jobs.get_mut(&id) {
                *is_cancelled = protocol.remembers_cancels;
            }
            return Cancelled::Requested;
        }
        if let Some(field) = field {
            let is_stale = self.is_stale(field);
            if is_stale {
                self.remove_note_of(id, field);
            }
            if is_stale || !matches!(field, Field::Entry { kind: Kind::Free, .. }) {
                self.jobs.remove(&id);
            }
        }
        match holder {
            Some(holder) => {
                self.remove_holder(&holder);
                Cancelled::Removed
            }
            None => Cancelled::NotFound,
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

    /// `REMOVE_MESSAGE` and `REMOVE_DEAD`. Returns whether it was there.
    pub fn remove(&mut self, id: MessageId) -> bool {
        let Some(record) = self.messages.remove(&id) else { return self.dead.remove(&id).is_some() };
        if let Some(job) = self.held_by(record.note, id) {
            self.jobs.remove(&job);
        }
        true
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

    /// Whether this note is of the pending entry of its job.
    fn is_pending(&self, protocol: &Protocol, payload: Payload, note: Note, is_first: bool) -> bool {
        let Some(due) = self.pending.get(&(note.id, payload)) else { return false };
        match self.jobs.get(&note.id) {
            Some(Field::Entry { kind, payload: other, .. })
                if protocol.tells_plain_entries
                    && *other == payload
                    && (*kind == Kind::Plain || (*kind == Kind::Holds) != note.holds) =>
            {
                false
            }
            _ if note.holds => true,
            _ if *due != note.due => false,
            _ => {
                let last = self.last_note(payload, *due, note.id, false);
                last.is_none_or(|last| !is_first && last == note)
            }
        }
    }

    /// The first note of this payload whose job is not pending, and whether another job of its id is.
    pub(super) fn take_note(&mut self, protocol: &Protocol, payload: Payload) -> Option<(Note, bool)> {
        let (first, others) = self.notes.get(&payload)?;
        let notes = std::iter::once((first, true)).chain(others.iter().map(|note| (note, false)));
        let is_free = |(note, is_first): &(&Note, bool)| {
            !protocol.skips_pending || !self.is_pending(protocol, payload, **note, *is_first)
        };
        // Behind the note of a job that is due much later, and pending, nobody looks.
        let mut notes = notes.map(|(note, is_first)| (*note, is_first));
        let found = notes.find(|(note, is_first)| note.due > self.clock || is_free(&(note, *is_first)))?;
        let (note, is_first) = Some(found).filter(|(note, is_first)| is_free(&(note, *is_first)))?;
        let is_pending_again = self.pending.contains_key(&(note.id, payload));
        if is_first {
            self.remove_first_note(payload);
        } else {
            self.notes.get_mut(&payload).expect("notes").1.remove(&note);
        }
        Some((note, is_pending_again))
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
            if list.is_empty() {
                return;
            }
            let payload = list.remove(0);
            let (mut note, is_pending_again) = self.take_note(protocol, payload).unzip();
            let is_over = note.and_then(|note| note.expires).is_some_and(|expires| expires <= self.clock);
            let number = if is_over { u16::MAX - u16::from(done.expired) } else { done.claimed.len() as u16 };
            let id = MessageId(call, number);
            if let Some(note) = &mut note {
                let field = self.jobs.get(&note.id).copied();
                match field {
                    Some(Field::Entry { kind: Kind::Holds, first, payload: other, .. })
                        if other == payload && note.holds =>
                    {
                        if protocol.claims_move_ids {
                            let field = Field::Message { id, first, due: note.due, is_cancelled: false };
                            self.jobs.insert(note.id, field);
                        }
                    }
                    Some(Field::Entry { kind: Kind::Free, payload: other, .. })
                        if other == payload && is_pending_again == Some(false) =>
                    {
                        self.jobs.remove(&note.id);
                        note.holds = false;
                    }
                    _ => note.holds = false,
                }
            }
            let place = Place::InFlight(self.clock);
            let record =
                Record { payload, note, place, is_fresh: true, failed: 0, lost: 0, has_error: false };
            self.messages.insert(id, record);
            if !is_over {
                done.claimed.push(id);
                continue;
            }
            done.expired += 1;
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

    /// A receiver that waits is woken by a payload: `LMOVE`.
    pub fn wake(&mut self) -> bool {
        let is_ready = !self.target.is_empty();
        if is_ready {
            let payload = self.target.remove(0);
            self.inbox.push(payload);
        }
        is_ready
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

    /// `SWEEP_JOBS`, a whole pass. Returns how many ids it has removed.
    pub fn sweep(&mut self, protocol: &Protocol) -> u8 {
        let known = self.jobs.len();
        for (id, field) in self.jobs.clone() {
            let is_stale = match field {
                Field::Message { id, .. } => {
                    let is_dead = protocol.sweeps_look_for_letters && self.dead.contains_key(&id);
                    protocol.sweeps_look_for_messages && !self.messages.contains_key(&id) && !is_dead
                }
                Field::Entry { kind, due, payload, .. } => {
                    let was_due = kind != Kind::Plain && due <= self.clock;
                    let is_ready = was_due && protocol.sweeps_look_for_payloads && self.is_ready(payload);
                    !self.pending.contains_key(&(id, payload)) && !is_ready
                }
            };
            if is_stale {
                self.jobs.remove(&id);
                self.remove_note_of(id, field);
            }
        }
        for payload in self.notes.keys().copied().collect::<Vec<_>>() {
            let mut surplus = None;
            while let Some((first, others)) = self.notes.get(&payload) {
                let (first, has_others) = (*first, !others.is_empty());
                let is_known = matches!(
                    self.jobs.get(&first.id),
                    Some(Field::Entry { kind: Kind::Free | Kind::Holds, due, payload: other, .. })
                        if (*due, *other) == (first.due, payload)
                );
                if is_known || !first.holds && !self.is_old(first) {
                    let counts = protocol.sweeps_count_payloads && is_known && has_others;
                    let gone = surplus.get_or_insert_with(|| if counts { self.surplus(payload) } else { 0 });
                    if *gone == 0 {
                        break;
                    }
                    if is_known {
                        self.jobs.remove(&first.id);
                    }
                }
                surplus = surplus.map(|gone: usize| gone.saturating_sub(1));
                self.remove_first_note(payload);
            }
        }
        (known - self.jobs.len()) as u8
    }

    /// How many more of the first notes of this payload were due, and are not pending, than there are such
    /// payloads.
    fn surplus(&self, payload: Payload) -> usize {
        let ready = self.ready_count(payload);
        let (first, others) = &self.notes[&payload];
        let was_due =
            |note: &&Note| !self.pending.contains_key(&(note.id, payload)) && note.due <= self.clock;
        std::iter::once(first).chain(others).take_while(was_due).count().saturating_sub(ready)
    }

    /// How many ready payloads are equal to this one.
    pub fn ready_count(&self, payload: Payload) -> usize {
        self.target.iter().chain(&self.inbox).filter(|one| **one == payload).count()
    }

    fn is_old(&self, note: Note) -> bool {
        self.target.is_empty() && self.inbox.is_empty() || note.due > self.clock
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

    /// How many jobs are somewhere.
    pub fn live(&self) -> usize {
        self.pending.len() + self.target.len() + self.inbox.len() + self.messages.len() + self.dead.len()
    }
}
