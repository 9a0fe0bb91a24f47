//! The events: of takers, of the task and of the server.

use super::*;

/// An index, modulo the number of the things there are.
type Which = usize;

#[derive(Clone, Debug)]
pub(super) enum Event {
    /// A taker joins. If it races the one before, its request overtakes the other's.
    Join { wait: Wait, lists: Vec<Name>, in_order: bool, want: usize, races: bool },
    /// A taker is dropped, whether it was answered or not.
    Drop(Which),
    /// The time of a taker is over; the flag says that there has been no connection for long.
    Expire(Which, bool),
    /// A taker reads its answer.
    Read(Which),
    /// The task receives a request.
    Serve,
    /// The task receives an unread batch.
    Return,
    /// Another client pushes.
    Push(Name),
    /// Another client gives the key another type, or makes it a list again.
    Retype(Name),
    /// The server runs a command.
    Run(Which),
    /// A reply arrives.
    Reply(Which),
    /// A command or its reply is lost with the connection.
    Break(Which, Break),
    /// The interrupt reaches the server.
    Unblock,
    /// The slice of a blocked pop is over.
    Slice,
    /// Time passes.
    Pass,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Break {
    BeforeItWasSent,
    BeforeItWasRun,
    AfterItWasRun,
}

pub(super) fn event() -> impl Strategy<Value = Event> {
    let which = || 0_usize..100;
    let name = || 0..NAMES.len();
    let some = || proptest::sample::subsequence(vec![0, 1, 2], 1..=3).prop_shuffle();
    let join = prop_oneof![
        3 => (name(), 1_usize..=3).prop_map(|(list, want)| (Wait::None, vec![list], want)),
        4 => (name(), 1_usize..=3).prop_map(|(list, want)| (Wait::Endless, vec![list], want)),
        3 => some().prop_map(|lists| (Wait::Endless, lists, 1)),
        1 => some().prop_map(|lists| (Wait::Expired, lists, 1)),
    ];
    let how =
        prop_oneof![Just(Break::BeforeItWasSent), Just(Break::BeforeItWasRun), Just(Break::AfterItWasRun)];
    prop_oneof![
        8 => (join, proptest::bool::weighted(0.7), proptest::bool::weighted(0.2)).prop_map(
            |((wait, lists, want), in_order, races)| Event::Join { wait, lists, in_order, want, races },
        ),
        3 => which().prop_map(Event::Drop),
        2 => (which(), proptest::bool::weighted(0.1)).prop_map(|(taker, down)| Event::Expire(taker, down)),
        2 => which().prop_map(Event::Read),
        12 => Just(Event::Serve),
        2 => Just(Event::Return),
        8 => name().prop_map(Event::Push),
        1 => name().prop_map(Event::Retype),
        10 => which().prop_map(Event::Run),
        10 => which().prop_map(Event::Reply),
        2 => (which(), how).prop_map(|(call, how)| Event::Break(call, how)),
        3 => Just(Event::Unblock),
        1 => Just(Event::Slice),
        2 => Just(Event::Pass),
    ]
}
