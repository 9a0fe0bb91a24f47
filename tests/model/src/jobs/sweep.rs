//! The sweep.

use super::protocol::Protocol;
use super::server::{Field, Kind, Server};

impl Server {
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
}
