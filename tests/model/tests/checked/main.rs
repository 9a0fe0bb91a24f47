//! The model, checked exhaustively within these bounds: what holds, what did not hold before there were
//! receipts, and the gaps that are known. `make model` checks with wider bounds.

mod jobs;
mod receivers;

use std::fmt::Debug;
use std::hash::Hash;
use std::time::Instant;

use redelay_model::model::{Bounds, Faults};
use redelay_model::properties::{NEVER_TWICE, NOT_STUCK, OK_IS_ONCE};
use redelay_model::protocol::{Command, Protocol};
use stateright::{Checker, HasDiscoveries, Model};

const PUBLISHING: &[Command] = &[Command::Announce, Command::PublishMoved];

const NO_KILL: Protocol = Protocol { kills_old_connections: false, ..Protocol::NOW };

/// What can be checked.
trait Checked:
    Model<State: Clone + Debug + PartialEq + Hash + Send + Sync + 'static, Action: Clone + Debug + PartialEq>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl Checked for Bounds {}
impl Checked for redelay_model::receiving::model::Bounds {}

/// Visits every state. Fails with a counterexample.
fn visit(name: &str, model: impl Checked) {
    let begun = Instant::now();
    let checker = model.checker().spawn_bfs().join();
    let (states, depth) = (checker.unique_state_count(), checker.max_depth());
    println!("{name}: {states} states, {depth} steps deep, {:.1?}", begun.elapsed());
    for (property, path) in checker.discoveries() {
        let is_failure = checker.discovery_classification(property).to_string() == "counterexample";
        let steps =
            || path.into_actions().iter().map(|action| format!("\n    {action:?}")).collect::<String>();
        assert!(!is_failure, "{name}: not always: {property}{}", steps());
    }
}

/// Finds the shortest path to a state without the property.
fn shortest<M: Checked>(model: &M, property: &'static str) -> Option<Vec<M::Action>> {
    let found = HasDiscoveries::AnyOf([property].into());
    // One thread visits the states in the order of their depths, so the first path is the shortest.
    let checker = model.clone().checker().threads(1).finish_when(found).spawn_bfs().join();
    Some(checker.discovery(property)?.into_actions())
}

fn holds(name: &str, bounds: Bounds) {
    visit(name, Bounds { symmetry: true, ..bounds });
}

/// Fails if there is no such path.
fn fails(name: &str, model: &impl Checked, property: &'static str) {
    let Some(path) = shortest(model, property) else { panic!("{name}: always: {property}") };
    println!("{name}: not always: {property}");
    path.iter().for_each(|action| println!("    {action:?}"));
}

fn faults(number: u8, kinds: Faults, bounds: Bounds) -> Bounds {
    Bounds { faults: number, kinds, ..bounds }
}

fn disconnect() -> Faults {
    Faults { disconnect: true, ..Faults::default() }
}

mod what_holds {
    use super::*;

    /// Whatever becomes of the entries between two tries, and even if old connections linger.
    #[test]
    fn offers() {
        let kinds = Faults { restart: true, clock: &[3, -3], ..disconnect() };
        let bounds = Bounds { clients: 2, offers: vec![1, 1], removals: 1, ticks: 2, ..Bounds::new(NO_KILL) };
        holds("offers", faults(2, kinds, bounds));
    }

    #[test]
    fn offers_that_are_refused() {
        let kinds = Faults { refuse: Command::ALL, ..disconnect() };
        let bounds = Bounds { clients: 2, offers: vec![1, 0], removals: 1, ..Bounds::new(NO_KILL) };
        holds("offers that are refused", faults(2, kinds.clone(), bounds));
        let together = Bounds { offers: vec![1, 1], together: true, removals: 1, ..Bounds::new(NO_KILL) };
        holds("offers in one call", faults(3, kinds, together));
    }

    #[test]
    fn pops() {
        let kinds = Faults { restart: true, refuse: Command::ALL, ..disconnect() };
        let bounds = Bounds { clients: 2, offers: Vec::new(), ticks: 0, ..Bounds::new(Protocol::NOW) };
        holds("takes", faults(2, kinds.clone(), Bounds { ready: 2, takes: 2, ..bounds.clone() }));
        let polls = Bounds { pending: vec![0, 1], polls: 2, ..bounds };
        holds("polls", faults(2, kinds, polls));
    }

    #[test]
    fn everything_together() {
        let bounds = Bounds {
            clients: 2,
            takes: 1,
            polls: 1,
            removals: 1,
            reschedules: 1,
            ticks: 1,
            ..Bounds::new(Protocol::NOW)
        };
        holds("everything together", faults(2, disconnect(), bounds));
    }

    /// One client has nobody to rely on.
    #[test]
    fn transfers_by_one_client() {
        let bounds = Bounds { offers: vec![1, 2], schedules: true, ticks: 3, ..Bounds::new(Protocol::NOW) };
        let kinds = Faults { unsubscribe: true, restart: true, clock: &[2, -2], ..disconnect() };
        holds("transfers by one client", faults(1, kinds.clone(), bounds.clone()));
        let kinds = Faults { refuse: &[Command::Rpush, Command::PublishMoved], ..kinds };
        let bounds = Bounds { offers: vec![1], reschedules: 1, ticks: 2, ..bounds };
        holds("transfers by one client, with changes", faults(2, kinds, bounds));
    }

    /// They hear of each other's transfers.
    #[test]
    fn transfers_by_two_clients() {
        holds(
            "transfers by two clients",
            Bounds { pending: vec![0], offers: vec![1], ..two_that_transfer() },
        );
    }

    /// Also if nothing may be announced.
    #[test]
    fn transfers_without_announcements() {
        let bounds = Bounds {
            clients: 2,
            pending: vec![0],
            schedules: true,
            peers: true,
            ..Bounds::new(Protocol::NOW)
        };
        let kinds = Faults { unsubscribe: true, refuse: PUBLISHING, ..disconnect() };
        holds("transfers without announcements", faults(2, kinds, bounds));
    }
}

/// They hear of each other's transfers. A connection is lost, or a subscription.
fn two_that_transfer() -> Bounds {
    let kinds = Faults { unsubscribe: true, ..disconnect() };
    let bounds = Bounds { clients: 2, schedules: true, peers: true, ..Bounds::new(Protocol::NOW) };
    faults(1, kinds, bounds)
}

/// What was attacked: each is found in the protocol as it was, and is gone.
mod before_there_were_receipts {
    use super::*;

    fn was_and_is_gone(name: &str, bounds: Bounds, property: &'static str) {
        fails(name, &Bounds { protocol: Protocol::BEFORE, ..bounds.clone() }, property);
        holds(name, bounds);
    }

    #[test]
    fn an_entry_that_was_removed_between_two_tries_came_back() {
        let bounds = faults(1, disconnect(), Bounds { removals: 1, ..Bounds::new(Protocol::NOW) });
        was_and_is_gone("removed between two tries", bounds, OK_IS_ONCE);
    }

    #[test]
    fn an_entry_that_was_polled_between_two_tries_came_back() {
        let bounds = faults(1, disconnect(), Bounds { clients: 2, polls: 1, ..Bounds::new(Protocol::NOW) });
        was_and_is_gone("polled between two tries", bounds, OK_IS_ONCE);
    }

    #[test]
    fn an_entry_was_stored_again_when_the_clock_was_set_forward() {
        let kinds = Faults { clock: &[2], ..disconnect() };
        was_and_is_gone("the clock is ahead", faults(2, kinds, Bounds::new(Protocol::NOW)), OK_IS_ONCE);
    }

    #[test]
    fn an_entry_whose_announcement_was_refused_waited_for_a_sweep() {
        let kinds = Faults { refuse: &[Command::Announce], ..Faults::default() };
        let bounds = Bounds { schedules: true, ..Bounds::new(Protocol::NOW) };
        was_and_is_gone("not announced", faults(1, kinds, bounds), NOT_STUCK);
    }
}

/// What the model has found, and what closes it.
mod closed_gaps {
    use super::*;

    /// Fails without what closes the gap.
    fn is_closed(name: &str, bounds: &Bounds, property: &'static str, without: Protocol) {
        fails(name, &Bounds { protocol: without, ..bounds.clone() }, property);
        holds(name, bounds.clone());
    }

    /// The reply to an offer names the head. Then a message arrives of a transfer before that offer, by a
    /// peer: its head would count for the newer one, since a client knows only of its own transfers when they
    /// were. The announcement, which would come after that message, was refused.
    #[test]
    fn an_older_message_of_a_peer_does_not_withdraw_the_head_that_a_reply_has_named() {
        let kinds = Faults { refuse: &[Command::Announce], ..Faults::default() };
        let bounds = Bounds {
            clients: 2,
            pending: vec![0],
            schedules: true,
            peers: true,
            ..Bounds::new(Protocol::NOW)
        };
        let without = Protocol { own_heads_stay: false, ..Protocol::NOW };
        is_closed("an older message", &faults(1, kinds, bounds), NOT_STUCK, without);
    }

    /// An entry that is stored and was not announced is found, also if the offer ends without a reply.
    #[test]
    fn a_lost_reply_is_followed_by_a_transfer() {
        let kinds = Faults { refuse: &[Command::Announce], ..disconnect() };
        let bounds = Bounds { schedules: true, ..Bounds::new(Protocol::NOW) };
        let without = Protocol { lost_replies_wake: false, ..Protocol::NOW };
        is_closed("a lost reply", &faults(2, kinds.clone(), bounds.clone()), NOT_STUCK, without);
        let reschedule = Bounds { offers: Vec::new(), pending: vec![2], reschedules: 1, ..bounds.clone() };
        is_closed("a lost reply of a reschedule", &faults(2, kinds.clone(), reschedule), NOT_STUCK, without);
        let restore = Bounds { offers: Vec::new(), pending: vec![1], polls: 1, ..bounds };
        holds("a lost reply of a return", faults(2, kinds, restore));
    }

    /// The receipt of a return that was sent again is kept. It matters without the permission for `CLIENT
    /// KILL`.
    #[test]
    fn a_return_that_arrives_late_is_not_done_again() {
        let ready = Bounds { offers: Vec::new(), ready: 1, takes: 1, ticks: 0, ..Bounds::new(NO_KILL) };
        let pending = Bounds { ready: 0, takes: 0, pending: vec![0], polls: 1, ..ready.clone() };
        for (name, bounds) in [("a late return", ready), ("a late return to the delayed queue", pending)] {
            let bounds = faults(1, disconnect(), bounds);
            let without = Protocol { keeps_receipts_of_returns: false, ..NO_KILL };
            fails(name, &Bounds { protocol: without, ..bounds.clone() }, NEVER_TWICE);
            // Only this property: a late pop is a gap that is open.
            assert_eq!(shortest(&bounds, NEVER_TWICE), None, "{name}");
        }
    }
}

/// What does not hold. Who closes a gap changes [`Protocol::NOW`], and moves its test.
mod known_gaps {
    use super::*;

    /// Without the permission for `CLIENT KILL`. Its claim remains, and is listed as a pop without
    /// confirmation.
    #[test]
    fn a_pop_that_arrives_late_takes_a_payload_for_nobody() {
        let bounds = Bounds { offers: Vec::new(), ready: 1, takes: 1, ticks: 0, ..Bounds::new(NO_KILL) };
        fails("a late pop", &faults(1, disconnect(), bounds), OK_IS_ONCE);
    }

    /// The server's clock decides when a receipt expires.
    #[test]
    fn a_clock_that_is_set_forward_beyond_the_life_of_a_receipt_lets_an_offer_be_stored_twice() {
        let kinds = Faults { clock: &[3], ..disconnect() };
        let life = |life| Bounds::new(Protocol { life: Some(life), ..Protocol::NOW });
        fails("an expired receipt", &faults(2, kinds.clone(), life(3)), OK_IS_ONCE);
        holds("a receipt that lives longer", faults(2, kinds, life(6)));
    }
}

/// `make model`: up to 9 million states each, two minutes and 2 GB.
mod wider_bounds {
    use super::*;

    #[test]
    #[ignore = "long"]
    fn offers() {
        let kinds = Faults {
            restart: true,
            clock: &[3, -3],
            refuse: &[Command::Set, Command::Rpush],
            ..disconnect()
        };
        let bounds = Bounds { clients: 2, offers: vec![1, 1], removals: 1, ticks: 2, ..Bounds::new(NO_KILL) };
        holds("offers", faults(3, kinds, bounds));
    }

    #[test]
    #[ignore = "long"]
    fn takes() {
        let kinds = Faults { restart: true, refuse: Command::ALL, ..disconnect() };
        let bounds = Bounds {
            clients: 2,
            offers: Vec::new(),
            ready: 2,
            takes: 2,
            ticks: 0,
            ..Bounds::new(Protocol::NOW)
        };
        holds("takes", faults(3, kinds, bounds));
    }

    #[test]
    #[ignore = "long"]
    fn everything_together() {
        let bounds = Bounds {
            clients: 2,
            offers: vec![1, 1],
            takes: 1,
            polls: 1,
            removals: 1,
            ticks: 1,
            ..Bounds::new(Protocol::NOW)
        };
        holds("everything together", faults(2, disconnect(), bounds));
    }

    #[test]
    #[ignore = "long"]
    fn transfers_by_one_client() {
        let kinds = Faults {
            unsubscribe: true,
            restart: true,
            clock: &[2, -2],
            refuse: &[Command::Rpush, Command::PublishMoved],
            ..disconnect()
        };
        let bounds = Bounds {
            offers: vec![1],
            reschedules: 1,
            polls: 1,
            removals: 1,
            schedules: true,
            ticks: 3,
            ..Bounds::new(Protocol::NOW)
        };
        holds("transfers by one client", faults(2, kinds, bounds));
    }

    #[test]
    #[ignore = "long"]
    fn offers_and_transfers_by_two_clients() {
        holds("transfers by two clients", Bounds { offers: vec![1, 0], ..two_that_transfer() });
    }

    #[test]
    #[ignore = "long"]
    fn transfers_by_two_clients() {
        let kinds = Faults { unsubscribe: true, restart: true, clock: &[2, -2], ..disconnect() };
        let bounds = Bounds {
            clients: 2,
            pending: vec![0],
            schedules: true,
            peers: true,
            ticks: 2,
            ..Bounds::new(Protocol::NOW)
        };
        holds("transfers by two clients", faults(1, kinds, bounds));
    }
}
