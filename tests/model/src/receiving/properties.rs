//! What must hold in every state.

use stateright::Property;

use crate::receiving::client::{Client, Condition, Pop};
use crate::receiving::model::Bounds;
use crate::receiving::protocol::{Delivery, Member, Payload};
use crate::receiving::state::State;

/// Nothing is lost or doubled.
pub const CONSERVED: &str =
    "each payload is in exactly one place, or was acknowledged, taken or removed once";
/// The side keys.
pub const KEYS_AGREE: &str = "each message has either a lease of its last delivery or a retry";
/// The counts.
pub const COUNTED_ONCE: &str = "each delivery has failed or was lost at most once";
/// The names of deliveries.
pub const ONE_NUMBER: &str = "no two living deliveries have the same number";
/// Fencing.
pub const FENCED: &str = "a delivery that no longer holds changes nothing";
/// What a user who acknowledged relies on.
pub const DONE_ONCE: &str = "what was acknowledged is not delivered again";
/// What calls return to their users.
pub const TOLD_TRULY: &str =
    "who has settled a delivery is not told that it was lost, nor the other way round";
/// What a user who handles a message relies on.
pub const EXCLUSIVE: &str = "a lease that is not over by its holder's clock holds on the server";
/// Grace.
pub const LIVING_KEEP: &str = "no lease of a process that runs is ended";
/// Liveness.
pub const NOT_STUCK: &str = "without another fault, everything is settled after a while";

/// The longest while: a lease, a pause after a second loss, extra time, or the silence and
/// a second look; and calls in between.
const A_WHILE: i8 = 40;

/// All properties. Those that hold *sometimes* show that the others are not true for want of events.
pub fn all() -> Vec<Property<Bounds>> {
    vec![
        Property::always(CONSERVED, |_, state| {
            each(state, |payload| {
                places(state, payload) == usize::from(state.fates[usize::from(payload)].pushed)
            })
        }),
        Property::always(KEYS_AGREE, |_, state: &State| {
            let server = &state.server;
            let last = |member: &Member| {
                server.messages.get(&member.id).is_some_and(|record| record.delivery == member.delivery)
            };
            let has_one = |(id, record): (&_, &crate::receiving::protocol::Record)| {
                let leased = server.leases.contains_key(&Member { id: *id, delivery: record.delivery });
                leased != server.retries.contains_key(id)
            };
            server.leases.keys().all(last)
                && server.messages.iter().all(has_one)
                && server.retries.keys().all(|id| server.messages.contains_key(id))
        }),
        Property::always(COUNTED_ONCE, |_, state: &State| {
            state.server.messages.values().all(|record| record.failed + record.lost <= record.delivery)
        }),
        Property::always(ONE_NUMBER, |_, state: &State| {
            let mut all: Vec<&Delivery> = state.clients.iter().flat_map(living).collect();
            all.sort_unstable();
            let is_record = |delivery: &&Delivery| {
                !state.server.leases.contains_key(&delivery.member)
                    || state.server.messages.get(&delivery.member.id).map(|record| record.payload)
                        == Some(delivery.payload)
            };
            all.iter().all(is_record) && all.windows(2).all(|two| two[0].member != two[1].member)
        }),
        Property::always(FENCED, |_, state: &State| !state.flaws.old_effect),
        Property::always(DONE_ONCE, |_, state: &State| !state.flaws.delivered_again),
        Property::always(TOLD_TRULY, |_, state: &State| {
            !state.flaws.false_loss
                && state.fates.iter().all(|fate| !fate.confirmed || fate.acknowledged == 1)
        }),
        Property::always(EXCLUSIVE, |bounds: &Bounds, state: &State| {
            let mut held = state.clients.iter().flat_map(|client| &client.held);
            bounds.operations > 0
                || held.all(|held| {
                    held.safe == 0 || held.exposed || state.server.leases.contains_key(&held.delivery.member)
                })
        }),
        Property::always(LIVING_KEEP, |_, state: &State| !state.flaws.taken_from_the_living),
        Property::always(NOT_STUCK, |bounds: &Bounds, state: &State| {
            let is_quiet = |client: &Client| {
                client.op.is_none()
                    && client.to_settle.is_empty()
                    && !matches!(client.pop, Some(Pop::Replied(_)))
            };
            !state.clients.iter().all(is_quiet) || bounds.settles_within(state, A_WHILE)
        }),
        Property::sometimes("everything is acknowledged", |_, state: &State| {
            state.fates.iter().all(|fate| fate.confirmed)
        }),
        Property::sometimes("a message is lost and delivered again", |_, state: &State| {
            let again =
                |member: &Member| state.server.messages.get(&member.id).is_some_and(|record| record.lost > 0);
            state.server.leases.keys().any(again)
        }),
        Property::sometimes("a message is a dead letter", |_, state: &State| !state.server.dead.is_empty()),
        Property::sometimes(
            "a payload is in the inbox, and nobody will be woken for it",
            |_, state: &State| {
                let blocked = |client: &Client| client.condition == Condition::Runs && client.pop.is_some();
                !state.server.inbox.is_empty() && !state.clients.iter().any(blocked)
            },
        ),
    ]
}

fn each(state: &State, holds: impl Fn(Payload) -> bool) -> bool {
    (0..state.fates.len() as Payload).all(holds)
}

/// Deliveries that a process has, or is about to settle.
fn living(client: &Client) -> impl Iterator<Item = &Delivery> {
    let held = client.held.iter().map(|held| &held.delivery);
    held.chain(client.to_settle.iter().map(|(_, delivery)| delivery))
}

/// In how many places a payload is, each end of it included.
fn places(state: &State, payload: Payload) -> usize {
    let server = &state.server;
    let listed = server.target.iter().chain(&server.inbox).filter(|listed| **listed == payload).count();
    let messages = server.messages.values().filter(|record| record.payload == payload).count();
    let dead = server.dead.values().filter(|letter| letter.payload == payload).count();
    let popped = state.clients.iter().filter(|client| client.pops(payload)).count();
    let fate = &state.fates[usize::from(payload)];
    listed + messages + dead + popped + usize::from(fate.taken + fate.acknowledged + fate.removed)
}
