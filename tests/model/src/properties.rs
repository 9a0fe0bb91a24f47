//! What must hold in every state.

use stateright::Property;

use crate::client::{Outcome, Task};
use crate::model::Bounds;
use crate::protocol::{Entry, Popped, Receipt};
use crate::state::State;

/// An offer that returned `Ok`.
pub const OK_IS_ONCE: &str =
    "what is offered with Ok is in exactly one place, or was delivered or removed once";
/// An offer that certainly failed.
pub const REFUSED_IS_NOWHERE: &str = "what was refused, or was not sent, is nowhere";
/// Any offer.
pub const NEVER_TWICE: &str = "nothing is there twice";
/// Becoming ready.
pub const NOT_EARLY: &str = "nothing is ready early";
/// The two keys of the pending entries.
pub const KEYS_AGREE: &str = "the timeout set and the ordered list have the same entries";
/// Liveness.
pub const NOT_STUCK: &str = "nothing due waits for a sweep";

/// All properties. Those that hold *sometimes* show that the others are not true for want of events.
pub fn all() -> Vec<Property<Bounds>> {
    vec![
        Property::always(OK_IS_ONCE, |_, state| {
            each(state, |n, message| message.outcome != Some(Outcome::Ok) || copies(state, n) == 1)
        }),
        Property::always(REFUSED_IS_NOWHERE, |_, state| {
            let failed = [Some(Outcome::Refused), Some(Outcome::Unavailable)];
            each(state, |n, message| !failed.contains(&message.outcome) || copies(state, n) == 0)
        }),
        Property::always(NEVER_TWICE, |_, state| each(state, |n, _| copies(state, n) <= 1)),
        Property::always(NOT_EARLY, |_, state| each(state, |_, message| !message.early)),
        Property::always(KEYS_AGREE, |_, state: &State| {
            let mut pending: Vec<Entry> = state.server.timeout_set.iter().map(|(_, entry)| *entry).collect();
            let mut listed = state.server.ordered_list.clone();
            pending.sort_unstable();
            listed.sort_unstable();
            pending == listed
        }),
        Property::always(NOT_STUCK, |bounds: &Bounds, state: &State| {
            let is_due = state.server.head().is_some_and(|due| due <= state.server.clock);
            !bounds.schedules || !is_due || !bounds.is_at_rest(state)
        }),
        Property::sometimes("a message is delivered", |_, state: &State| {
            state.messages.iter().any(|m| m.delivered > 0)
        }),
        Property::sometimes("an offer ends with Ok", |_, state| has(state, Outcome::Ok)),
        Property::sometimes("an offer ends as Refused", |_, state| has(state, Outcome::Refused)),
        Property::sometimes("an offer ends as OutcomeUnknown", |_, state| has(state, Outcome::Unknown)),
        Property::sometimes("everything is ready", |_, state: &State| {
            state.server.target.len() == state.messages.len()
        }),
    ]
}

fn each(state: &State, holds: impl Fn(Entry, &crate::state::Message) -> bool) -> bool {
    state.messages.iter().enumerate().all(|(n, message)| holds(n as Entry, message))
}

fn has(state: &State, outcome: Outcome) -> bool {
    state.messages.iter().any(|message| message.outcome == Some(outcome))
}

/// In how many places a message is, each delivery and each removal included.
fn copies(state: &State, message: Entry) -> usize {
    let server = &state.server;
    let within = |popped: &Popped| popped.iter().filter(|(entry, _)| *entry == message).count();
    let listed = server.ordered_list.iter().filter(|entry| **entry == message).count();
    let pending = listed.max(usize::from(server.due(message).is_some()));
    let ready = server.target.iter().filter(|entry| **entry == message).count();
    let held: usize = state
        .clients
        .iter()
        .filter_map(|client| client.op.as_ref())
        .map(|op| match &op.task {
            // What a claim holds counts for as long as its client is going to ask for it.
            Task::Pop { claim, .. } => server.claims.get(claim).map_or(0, within),
            Task::Unread(popped, _) => within(popped),
            Task::Return { receipt, popped, .. } => match server.receipts.get(receipt) {
                Some((Receipt::Returned, _)) => 0,
                _ => within(popped),
            },
            Task::Offer { .. } | Task::Reschedule(..) => 0,
        })
        .sum();
    let gone = &state.messages[usize::from(message)];
    pending + ready + held + usize::from(gone.delivered) + usize::from(gone.removed)
}
