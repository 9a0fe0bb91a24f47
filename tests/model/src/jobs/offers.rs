//! Offers, and what callers ask of a job by its id.

use super::protocol::Protocol;
use super::server::{Field, JobId, Kind, MessageId, Note, Payload, Place, Reason, Record, Server, Time};

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

/// What holds an id that is not pending.
enum Holder {
    Ready(Payload, Time),
    Running(MessageId),
    Waiting(MessageId, Time),
    Dead(MessageId),
}

impl Server {
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

    /// Removes one from the head of the first list that has it.
    fn remove_ready(&mut self, payload: Payload) {
        for list in [&mut self.target, &mut self.inbox] {
            if let Some(at) = list.iter().position(|one| *one == payload) {
                list.remove(at);
                return;
            }
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

    pub(super) fn is_cancelled(&self, id: JobId) -> bool {
        matches!(self.jobs.get(&id), Some(Field::Message { is_cancelled: true, .. }))
    }
}
