//! What must hold in every state.

use stateright::Property;

use super::model::{Bounds, State};
use super::offers::JobState;
use super::server::{Field, JobId, Kind, Note, Payload, Server};

/// Uniqueness.
pub const ONE_LIVE: &str = "no two live messages have one held id";
/// What makes the other one true.
pub const HELD: &str = "each job that is somewhere holds an id";
/// Conservation.
pub const CONSERVED: &str =
    "what was stored is somewhere until it is done, dead, cancelled, expired or taken";
/// The sweep.
pub const SWEPT: &str = "after a sweep, each id is held by something, and what held an id still does";
/// What travels is not lost, nor does it stay behind.
pub const NOTED: &str = "what travels with ready jobs waits for each of their payloads, and for no other";
/// A caller who sees a pending job can find it.
pub const KNOWN: &str = "an entry is pending under its id, and the keys of pending entries agree";

/// All properties. Those that hold *sometimes* show that the others are not true for want of events.
pub fn all() -> Vec<Property<Bounds>> {
    vec![
        Property::always(ONE_LIVE, |bounds: &Bounds, state: &State| {
            (state.server.live() <= bounds.ids.len() + state.strangers || !bounds.all_hold())
                && (0..bounds.ids.len()).all(|id| held(&state.server, id as JobId) <= 1)
        }),
        Property::always(HELD, |bounds: &Bounds, state: &State| {
            let is_held = |id: &usize| state.server.state_of(*id as JobId) != JobState::None;
            let held = (0..bounds.ids.len()).filter(is_held).count();
            state.server.live() <= held + state.strangers || !bounds.all_hold()
        }),
        Property::always(CONSERVED, |_, state: &State| state.server.live() as i8 == state.owed),
        Property::always(SWEPT, |bounds: &Bounds, state: &State| {
            let mut swept = state.server.clone();
            swept.sweep(&bounds.protocol);
            let is_same =
                |id| state.server.state_of(id) == swept.state_of(id) || is_surplus(&state.server, id);
            (0..bounds.ids.len()).all(|id| is_same(id as JobId))
                && swept.jobs.iter().all(|(id, _)| is_held(&swept, *id))
        }),
        Property::always(NOTED, |bounds: &Bounds, state: &State| {
            let (server, mut swept) = (&state.server, state.server.clone());
            swept.sweep(&bounds.protocol);
            server.notes.keys().copied().all(|payload| {
                let (ready, has_java) = (server.ready_count(payload), bounds.java > 0);
                let of_ready = notes_of_ready(server, payload);
                let are_equal = of_ready == ready || !bounds.all_hold() || bounds.strangers > 0;
                let are_due_first = !swept.pending.keys().any(|entry| entry.1 == payload);
                let is_swept =
                    notes_of_ready(&swept, payload) <= ready || !bounds.all_hold() || !are_due_first;
                is_swept && (has_java || of_ready <= ready && are_equal)
            })
        }),
        Property::always(KNOWN, |_, state: &State| {
            let server = &state.server;
            server.pending.len() == server.list.len()
                && server.pending.iter().all(|((id, _), due)| server.state_of(*id) == JobState::Pending(*due))
        }),
        Property::sometimes("an id is free again", |_, state: &State| {
            state.left.offers == 0 && state.owed == 0 && state.server.jobs.is_empty()
        }),
        Property::sometimes("a cancel is requested", |_, state: &State| !state.requested.is_empty()),
        Property::sometimes("a dead letter holds its id", |_, state: &State| {
            (0..9).any(|id| matches!(state.server.state_of(id), JobState::Dead(..)))
        }),
    ]
}

/// How many are known to hold this id. A ready payload has no id.
fn held(server: &Server, id: JobId) -> usize {
    let is_of = |note: &Option<Note>| note.is_some_and(|note| note.id == id && note.holds);
    server.pending.keys().filter(|entry| entry.0 == id).count()
        + server.messages.values().filter(|record| is_of(&record.note)).count()
        + server.dead.values().filter(|letter| is_of(&letter.note)).count()
}

/// Whether one of equal payloads is missing that has this id, or another one.
fn is_surplus(server: &Server, id: JobId) -> bool {
    let Some(Field::Entry { payload, .. }) = server.jobs.get(&id) else { return false };
    matches!(server.state_of(id), JobState::Ready(_))
        && notes_of_ready(server, *payload) > server.ready_count(*payload)
}

/// How many notes of this payload are of jobs that are not pending.
fn notes_of_ready(server: &Server, payload: Payload) -> usize {
    let travels = |(id, _): &&(JobId, Payload)| {
        !matches!(server.jobs.get(id), Some(Field::Entry { kind: Kind::Plain, .. }))
    };
    let pending = server.pending.keys().filter(|entry| entry.1 == payload).filter(travels).count();
    server.notes.get(&payload).map_or(0, |(_, others)| 1 + others.len()).saturating_sub(pending)
}

/// Whether anything may hold it. An equal payload counts as long as it is ready.
fn is_held(server: &Server, id: JobId) -> bool {
    match server.jobs[&id] {
        Field::Entry { kind, payload, .. } => {
            server.pending.contains_key(&(id, payload))
                || kind != Kind::Plain && server.ready_count(payload) > 0
        }
        Field::Message { id, .. } => server.messages.contains_key(&id) || server.dead.contains_key(&id),
    }
}
