//! What travels with payloads.

use std::collections::{BTreeMap, BTreeSet};

use super::protocol::Protocol;
use super::server::{Field, JobId, Kind, Note, Payload, Server, Time};

/// A job that a ready payload is.
pub(super) struct Travelling {
    /// Its note, and whether that is the first one of the payload.
    known: Note,
    is_first: bool,
    /// The same, holding its id if the message will.
    pub(super) note: Note,
    /// When the job was offered first whose id the message will hold.
    pub(super) held_since: Option<Time>,
    /// Whether nothing has its id from now on.
    pub(super) is_freed: bool,
}

impl Server {
    pub(super) fn add_note(&mut self, payload: Payload, note: Note) {
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

    /// The jobs that these ready payloads are. Of equal payloads, the first one is the job that was due first
    /// and is not pending.
    pub(super) fn travelling(&self, protocol: &Protocol, payloads: &[Payload]) -> Vec<Option<Travelling>> {
        let mut seen = BTreeMap::new();
        let travelling = payloads.iter().map(|payload| {
            let (first, others) = self.notes.get(payload)?;
            let seen = seen.entry(*payload).or_insert(0);
            let mut notes = std::iter::once(first).chain(others).copied().enumerate().skip(*seen);
            let is_free = |(at, note): &(usize, Note)| {
                !protocol.skips_pending || !self.is_pending(protocol, *payload, *note, *at == 0)
            };
            // Behind the note of a job that is due much later, and pending, nobody looks.
            let found = notes.find(|found| found.1.due > self.clock || is_free(found)).filter(is_free);
            *seen = found.map_or(usize::MAX, |(at, _)| at + 1);
            let (at, known) = found?;
            let field = match self.jobs.get(&known.id) {
                Some(Field::Entry { kind, first, payload: other, .. }) if other == payload => {
                    Some((*kind, *first))
                }
                _ => None,
            };
            let holds = |(kind, _): &(Kind, Time)| *kind == Kind::Holds && known.holds;
            let held_since = field.filter(holds).map(|(_, first)| first);
            let is_pending = self.pending.contains_key(&(known.id, *payload));
            let is_freed = matches!(field, Some((Kind::Free, _))) && !is_pending;
            let note = Note { holds: held_since.is_some(), ..known };
            Some(Travelling { known, is_first: at == 0, note, held_since, is_freed })
        });
        travelling.collect()
    }

    /// These jobs are claimed or removed.
    pub(super) fn remove_notes(&mut self, payloads: &[Payload], travelling: &[Option<Travelling>]) {
        let jobs =
            || payloads.iter().zip(travelling).filter_map(|(payload, job)| Some((payload, job.as_ref()?)));
        for (payload, job) in jobs().filter(|(_, job)| !job.is_first) {
            self.notes.get_mut(payload).expect("notes").1.remove(&job.known);
        }
        // One of the others takes its place.
        for (payload, _) in jobs().filter(|(_, job)| job.is_first) {
            self.remove_first_note(*payload);
        }
    }

    /// How many more of the first notes of this payload were due, and are not pending, than there are such
    /// payloads.
    pub(super) fn surplus(&self, payload: Payload) -> usize {
        let ready = self.ready_count(payload);
        let (first, others) = &self.notes[&payload];
        let was_due =
            |note: &&Note| !self.pending.contains_key(&(note.id, payload)) && note.due <= self.clock;
        std::iter::once(first).chain(others).take_while(was_due).count().saturating_sub(ready)
    }

    pub(super) fn is_old(&self, note: Note) -> bool {
        self.target.is_empty() && self.inbox.is_empty() || note.due > self.clock
    }
}
