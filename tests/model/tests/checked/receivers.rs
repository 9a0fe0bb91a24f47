//! The same for the protocol of receivers. Each check prints how many states it has visited: millions, if
//! there are three faults, which `make model` has. A core visits 80,000 in a second.

use redelay_model::receiving::client::Pace;
use redelay_model::receiving::model::{Bounds, Faults, SILENT};
use redelay_model::receiving::properties::{
    CONSERVED, COUNTED_ONCE, DONE_ONCE, EXCLUSIVE, FENCED, KEYS_AGREE, LIVING_KEEP, NOT_STUCK, ONE_NUMBER,
    TOLD_TRULY,
};
use redelay_model::receiving::protocol::{Protocol, Verb};

use crate::{fails, visit};

const NO_KILL: Protocol = Protocol { kills_old_connections: false, ..Protocol::NOW };

const NONE: Faults =
    Faults { disconnect: false, late: false, crash: false, stall: false, outage: None, clock: &[] };
const DISCONNECT: Faults = Faults { disconnect: true, ..NONE };
const STALL: Faults = Faults { stall: true, ..NONE };
const ANY: Faults =
    Faults { disconnect: true, crash: true, stall: true, outage: Some(5), clock: &[5], late: false };

/// A receiver with short leases, and one whose pauses are silences for them.
const TWO_LEASES: &[Pace] =
    &[Pace { lease: 4, pause: 1, round_trip: 0 }, Pace { lease: 12, pause: 2, round_trip: 0 }];
/// Both have the same lease, and call a little less often than every quarter of it. Their replies take a
/// while.
const SELDOM: &[Pace] = &[Pace { lease: 4, pause: 2, round_trip: 0 }];
const FAR: &[Pace] =
    &[Pace { lease: 4, pause: 1, round_trip: 1 }, Pace { lease: 12, pause: 2, round_trip: 1 }];

fn holds(name: &str, bounds: Bounds) {
    visit(name, Bounds { symmetry: true, ..bounds });
}

fn now() -> Bounds {
    Bounds::new(Protocol::NOW)
}

mod what_holds {
    use super::*;

    /// Connections, processes, the server and its clock.
    #[test]
    fn two_faults() {
        holds("receivers, one fault", Bounds { faults: 1, kinds: ANY, ..now() });
        holds("receivers, two faults", Bounds { ready: 1, faults: 2, kinds: ANY, ..now() });
    }

    /// Retries, releases, rejections, and claims that nobody read.
    #[test]
    fn settlements() {
        holds("receivers, settlements", Bounds { verbs: 1, faults: 1, kinds: ANY, ..now() });
    }

    /// Payloads that arrive while receivers wait, of which another taker gets one.
    #[test]
    fn waiting() {
        let kinds = Faults { crash: true, ..DISCONNECT };
        let bounds = Bounds { ready: 0, offers: 2, takes: 1, ..now() };
        holds("receivers, waiting", Bounds { faults: 2, kinds: kinds.clone(), ..bounds.clone() });
        holds("receivers, waiting no longer", Bounds { offers: 1, drops: 1, faults: 1, kinds, ..bounds });
    }

    /// Connections linger, without the permission to end them.
    #[test]
    fn late_calls() {
        let bounds = Bounds { faults: 1, ..late_calls_and_crashes() };
        holds("receivers, late calls", bounds.clone());
        let bounds = Bounds { verbs: 1, kinds_of_verbs: &[Verb::Retry(1)], closes: 1, ..bounds };
        holds("receivers, late calls of receivers that ended", bounds);
    }

    /// Leases of two lengths, and pauses that are silences for the shorter one.
    #[test]
    fn two_leases() {
        let kinds = Faults { crash: true, outage: Some(5), ..NONE };
        let bounds = Bounds { paces: TWO_LEASES, ready: 1, kinds, ..now() };
        holds("receivers, two leases", Bounds { faults: 2, ..bounds.clone() });
        for (name, paces) in
            [("two leases", TWO_LEASES), ("two leases, far away", FAR), ("seldom calls", SELDOM)]
        {
            let name = format!("receivers, {name}, any fault");
            holds(&name, Bounds { paces, faults: 1, kinds: ANY, ..bounds.clone() });
        }
    }

    #[test]
    fn a_long_outage() {
        holds("receivers, a long outage", after_a_long_outage());
    }

    /// Everything goes back to the target, a message is removed or delivered at once, a dead letter is
    /// requeued.
    #[test]
    fn operations() {
        holds("receivers, operations", Bounds { ready: 1, ..operations_and_a_fault() });
        // The same beside another taker, which gets what was released.
        let kinds = Faults { crash: true, ..DISCONNECT };
        let bounds = Bounds { ready: 1, offers: 1, operations: 1, takes: 1, ..now() };
        holds("receivers, operations and a taker", Bounds { faults: 1, kinds, ..bounds });
    }
}

fn late_calls_and_crashes() -> Bounds {
    let kinds = Faults { crash: true, late: true, ..DISCONNECT };
    Bounds { ready: 1, offers: 1, kinds, ..Bounds::new(NO_KILL) }
}

fn operations_and_a_fault() -> Bounds {
    let kinds_of_verbs = &[Verb::Reject, Verb::Retry(1)];
    Bounds { operations: 1, verbs: 1, kinds_of_verbs, faults: 1, kinds: ANY, ..now() }
}

/// The server is away for as long as the silence after which others release what receivers have left. The
/// receivers run.
fn after_a_long_outage() -> Bounds {
    let kinds = Faults { outage: Some(SILENT), ..NONE };
    Bounds { ready: 1, faults: 1, kinds, long_outages: true, ..now() }
}

/// What each part of the protocol is for: without it, the model finds what goes wrong.
mod without {
    use super::*;

    fn without(name: &str, protocol: Protocol, bounds: Bounds, property: &'static str) {
        fails(name, &Bounds { protocol, ..bounds }, property);
    }

    fn one(kinds: Faults) -> Bounds {
        Bounds { ready: 1, faults: 1, kinds, ..now() }
    }

    #[test]
    fn fences() {
        let protocol = Protocol { fences: false, ..Protocol::NOW };
        without("no fences", protocol, one(STALL), FENCED);
    }

    #[test]
    fn numbers_of_deliveries() {
        let protocol = Protocol { numbers_deliveries: false, ..Protocol::NOW };
        without("no numbers", protocol, one(STALL), ONE_NUMBER);
        // The counts of two deliveries are those of one.
        let bounds = Bounds { verbs: 1, ..one(Faults { crash: true, ..NONE }) };
        without("no numbers, a loss and a failure", protocol, bounds, COUNTED_ONCE);
    }

    #[test]
    fn receipts() {
        let protocol = Protocol { receipts: false, ..Protocol::NOW };
        without("no receipts", protocol, one(DISCONNECT), TOLD_TRULY);
    }

    #[test]
    fn extra_time() {
        let protocol = Protocol { extra_time: false, ..Protocol::NOW };
        without("no extra time", protocol, one(Faults { outage: Some(5), ..NONE }), LIVING_KEEP);
        without("no extra time, another clock", protocol, one(Faults { clock: &[5], ..NONE }), LIVING_KEEP);
    }

    /// The pause of a survivor is a silence for the lease of the dead, and the wait for the end of the extra
    /// time is the next one.
    #[test]
    fn knowledge_of_pauses() {
        let protocol = Protocol { knows_pauses: false, ..Protocol::NOW };
        for (name, paces) in
            [("two leases", TWO_LEASES), ("two leases, far away", FAR), ("seldom calls", SELDOM)]
        {
            let bounds = Bounds { paces, ..one(Faults { crash: true, ..NONE }) };
            without(&format!("no knowledge of pauses, {name}"), protocol, bounds, NOT_STUCK);
        }
    }

    /// Others may look at once after an outage, before the receivers have connected again.
    #[test]
    fn a_second_look() {
        let protocol = Protocol { looks_twice: false, ..Protocol::NOW };
        without("one look", protocol, after_a_long_outage(), LIVING_KEEP);
    }

    #[test]
    fn a_lease_that_is_counted_from_the_call() {
        let protocol = Protocol { counts_from_the_call: false, ..Protocol::NOW };
        without("a lease from the reply on", protocol, one(STALL), EXCLUSIVE);
    }

    #[test]
    fn a_deletion_with_the_lease() {
        let protocol = Protocol { deletes_at_once: false, ..Protocol::NOW };
        without("a message without its lease", protocol, one(NONE), DONE_ONCE);
    }

    #[test]
    fn a_move_to_the_inbox() {
        let protocol = Protocol { moves: false, ..Protocol::NOW };
        let bounds = Bounds { ready: 0, offers: 1, ..one(Faults { crash: true, ..NONE }) };
        without("a pop, and then a call", protocol, bounds, CONSERVED);
    }

    #[test]
    fn claims_from_the_inbox() {
        let protocol = Protocol { claims_inbox: false, ..Protocol::NOW };
        without("nobody claims from the inbox", protocol, Bounds { ready: 0, offers: 1, ..now() }, NOT_STUCK);
    }

    #[test]
    fn putting_the_inbox_back() {
        let protocol = Protocol { empties_inbox: false, ..Protocol::NOW };
        let bounds = Bounds { receivers: 1, ready: 0, offers: 1, drops: 1, ..now() };
        without("nobody puts the inbox back", protocol, bounds, NOT_STUCK);
    }

    /// The ids of messages derive from the token of the call. Without `CLIENT KILL`, a lost try that arrives
    /// after its retry and another call would claim a payload under the id of a message that is there, and
    /// overwrite it.
    #[test]
    fn an_end_of_old_tries() {
        let bounds = Bounds { receivers: 1, ready: 2, ..one(Faults { late: true, ..DISCONNECT }) };
        let protocol = Protocol { ends_old_tries: false, ..NO_KILL };
        without("a late try", protocol, bounds.clone(), CONSERVED);
        // The same after the end of the receiver.
        let verbs = &[Verb::Retry(1)];
        let bounds = Bounds { ready: 1, offers: 1, verbs: 1, kinds_of_verbs: verbs, closes: 1, ..bounds };
        let protocol = Protocol { keeps_receipts: false, looks_for_ids: false, ..NO_KILL };
        without("a late try of a receiver that ended", protocol, bounds.clone(), CONSERVED);
        // A receipt that is gone, for whatever reason, is no reason to overwrite anything.
        let protocol = Protocol { keeps_receipts: false, ..NO_KILL };
        holds("receivers, late calls without a receipt", Bounds { protocol, ..bounds.clone() });
        // The message that it overwrites waits for a retry.
        let bounds = Bounds { closes: 0, ..bounds };
        let protocol = Protocol { ends_old_tries: false, ..NO_KILL };
        without("a late try, and a retry", protocol, bounds, KEYS_AGREE);
    }
}

/// What does not hold.
mod known_gaps {
    use super::*;

    /// A second outage between the two looks, as long as the time between them.
    #[test]
    fn two_long_outages_look_like_an_end_of_all_receivers() {
        let bounds = Bounds { faults: 2, ..after_a_long_outage() };
        fails("two long outages", &bounds, LIVING_KEEP);
    }
}

/// `make model`
mod wider_bounds {
    use super::*;

    #[test]
    #[ignore = "long"]
    fn three_faults() {
        holds("receivers, three faults", Bounds { faults: 3, kinds: ANY, ..now() });
    }

    #[test]
    #[ignore = "long"]
    fn late_calls() {
        holds("receivers, late calls", Bounds { faults: 2, ..late_calls_and_crashes() });
    }

    #[test]
    #[ignore = "long"]
    fn two_leases() {
        for (name, paces) in
            [("two leases", TWO_LEASES), ("two leases, far away", FAR), ("seldom calls", SELDOM)]
        {
            let bounds = Bounds { paces, ready: 1, faults: 2, kinds: ANY, ..now() };
            holds(&format!("receivers, {name}"), bounds);
        }
    }

    #[test]
    #[ignore = "long"]
    fn settlements() {
        for (verbs, faults) in [(1, 2), (2, 1)] {
            holds("receivers, settlements", Bounds { verbs, faults, kinds: ANY, ..now() });
        }
    }

    #[test]
    #[ignore = "long"]
    fn waiting() {
        let kinds = Faults { crash: true, ..DISCONNECT };
        let bounds = Bounds { ready: 0, offers: 2, takes: 1, ..now() };
        holds("receivers, waiting", Bounds { faults: 3, kinds: kinds.clone(), ..bounds.clone() });
        holds("receivers, waiting no longer", Bounds { drops: 1, faults: 1, kinds, ..bounds });
    }

    #[test]
    #[ignore = "long"]
    fn operations() {
        holds("receivers, operations", operations_and_a_fault());
    }

    #[test]
    #[ignore = "long"]
    fn operations_and_a_taker() {
        let kinds = Faults { crash: true, ..DISCONNECT };
        let bounds = Bounds { ready: 1, offers: 1, operations: 1, takes: 1, ..now() };
        holds("receivers, operations and a taker", Bounds { faults: 3, kinds, ..bounds });
    }
}
