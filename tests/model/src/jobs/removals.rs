//! What redelay removes, and the jobs that it forgets.

use super::protocol::Protocol;
use super::server::{Field, JobId, Kind, Payload, Server};

impl Server {
    /// `REMOVE`, of the first entry with this payload. Returns whether there was one.
    pub fn remove_entry(&mut self, protocol: &Protocol, payload: Payload) -> bool {
        let entry = self.list.iter().find(|entry| entry.1 == payload).copied();
        entry.is_some_and(|entry| self.forget_entry(entry) && self.forget_job(protocol, entry))
    }

    /// `POLL`, of one, and `FORGET_JOBS`. Returns whether there was one.
    pub fn poll(&mut self, protocol: &Protocol) -> bool {
        let Some(entry) = self.list.first().copied() else { return false };
        let due = self.pending.get(&entry).copied();
        self.forget_entry(entry);
        if let Some(due) = due.filter(|_| protocol.removals_forget && !self.jobs.is_empty()) {
            let (id, payload) = entry;
            if self.remove_note(payload, due, id, false).is_none() {
                self.remove_note(payload, due, id, true);
            }
            let field = self.jobs.get(&id);
            if matches!(field, Some(Field::Entry { kind, due: was_due, payload: other, .. })
                if *other == payload && (*kind == Kind::Plain || *was_due == due))
            {
                self.jobs.remove(&id);
            }
        }
        true
    }

    /// `CLEAR`. Returns how many there were.
    pub fn clear(&mut self, protocol: &Protocol) -> u8 {
        let (travels, entries) = (!self.notes.is_empty(), std::mem::take(&mut self.list));
        self.pending.clear();
        for entry in entries.iter().filter(|_| travels) {
            self.forget_job(protocol, *entry);
        }
        entries.len() as u8
    }

    /// `REMOVE_FIRST`. Returns whether there was such a payload.
    pub fn remove_payload(&mut self, protocol: &Protocol, payload: Payload) -> bool {
        let Some(at) = self.target.iter().position(|one| *one == payload) else { return false };
        self.target.remove(at);
        self.forget_ready(protocol, &[payload]);
        true
    }

    /// `CLEAR_READY`. Returns how many there were.
    pub fn clear_ready(&mut self, protocol: &Protocol) -> u8 {
        let payloads = std::mem::take(&mut self.target);
        self.forget_ready(protocol, &payloads);
        payloads.len() as u8
    }

    /// The job that was this entry is gone. Always true, as the entry was there.
    fn forget_job(&mut self, protocol: &Protocol, (id, payload): (JobId, Payload)) -> bool {
        let field = self.jobs.get(&id).copied();
        let is_its = matches!(field, Some(Field::Entry { payload: other, .. }) if other == payload);
        if let Some(field) = field.filter(|_| is_its && protocol.removals_forget) {
            self.remove_note_of(id, field);
            self.jobs.remove(&id);
        }
        true
    }

    /// Of equal payloads, the jobs that were due first, and are not pending, are gone.
    fn forget_ready(&mut self, protocol: &Protocol, payloads: &[Payload]) {
        if !protocol.removals_forget {
            return;
        }
        let travelling = self.travelling(protocol, payloads);
        self.remove_notes(payloads, &travelling);
        for job in travelling.into_iter().flatten() {
            if job.held_since.is_some() || job.is_freed {
                self.jobs.remove(&job.note.id);
            }
        }
    }
}
