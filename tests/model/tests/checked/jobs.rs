//! The life of an id that is held until its job is done.

use redelay_model::jobs::model::Bounds;
use redelay_model::jobs::offers::Policy;
use redelay_model::jobs::properties::{CONSERVED, NOTED, ONE_LIVE, SWEPT};
use redelay_model::jobs::protocol::Protocol;
use redelay_model::jobs::receiving::Verb;
use redelay_model::jobs::server::Kind;

use crate::{Checked, fails, visit};

impl Checked for Bounds {}

fn now() -> Bounds {
    Bounds::new(Protocol::NOW)
}

fn equal() -> Bounds {
    Bounds { ids: vec![vec![0], vec![0]], claims: vec![1, 2], ..now() }
}

/// Jobs of each kind with one id.
fn kinds() -> Bounds {
    Bounds { kinds: vec![Kind::Plain, Kind::Free, Kind::Holds], ..now() }
}

/// Offers that move the due time of a job, and calls that do.
fn changes() -> Bounds {
    let policies = vec![Policy::Keep, Policy::Debounce(1)];
    let protocol = Protocol { knows_offers: true, ..Protocol::NOW };
    Bounds { protocol, policies, reschedules: 1, throttles: vec![None, Some(1)], ..now() }
}

fn verbs() -> Vec<Verb> {
    vec![Verb::Ack, Verb::Retry(0), Verb::Retry(1), Verb::Reject, Verb::Unread]
}

mod what_holds {
    use super::*;

    #[test]
    fn one_id() {
        let bounds = Bounds { ids: vec![vec![0, 1]], verbs: verbs(), operations: 2, java: 1, ..now() };
        visit("jobs, one id", Bounds { offers: 3, ticks: 3, ..bounds });
    }

    #[test]
    fn an_id_that_expires() {
        let expiries = vec![None, Some((1, true)), Some((1, false))];
        let policies = vec![Policy::Keep, Policy::Replace, Policy::Earliest];
        let bounds = Bounds { verbs: verbs(), expiries, policies, operations: 1, java: 1, ..now() };
        visit("jobs, expiry", Bounds { ticks: 3, ..bounds });
    }

    #[test]
    fn equal_payloads() {
        visit("jobs, equal payloads", Bounds { offers: 3, java: 1, ..equal() });
    }

    #[test]
    fn a_payload_of_java() {
        visit("jobs, a payload of Java", Bounds { strangers: 1, verbs: verbs(), ..now() });
    }

    #[test]
    fn kinds_of_jobs_with_one_id() {
        visit("jobs, kinds", Bounds { delays: vec![0], java: 1, ..kinds() });
    }

    #[test]
    fn kinds_of_jobs_with_equal_payloads() {
        let bounds =
            Bounds { ids: vec![vec![0], vec![0]], delays: vec![0], policies: vec![Policy::Keep], ..kinds() };
        visit("jobs, kinds with equal payloads", bounds);
    }

    #[test]
    fn changes_of_due_times() {
        let kinds = vec![Kind::Plain, Kind::Holds];
        visit("jobs, changes", Bounds { kinds, offers: 3, ..changes() });
    }

    #[test]
    fn removals() {
        let kinds = vec![Kind::Plain, Kind::Holds];
        visit("jobs, removals of one id", Bounds { removals: 2, kinds, ticks: 3, offers: 3, ..now() });
        visit("jobs, removals", Bounds { removals: 2, ..equal() });
    }

    #[test]
    fn equal_payloads_and_operations() {
        visit("jobs, operations", Bounds { operations: 1, verbs: verbs(), ..equal() });
    }
}

/// What each part of the scripts is for: without it, the model finds what goes wrong.
mod without {
    use super::*;

    fn without(name: &str, protocol: Protocol, bounds: Bounds, property: &'static str) {
        fails(&format!("jobs, {name}"), &Bounds { protocol, ..bounds }, property);
    }

    #[test]
    fn a_look_for_holders() {
        let protocol = Protocol { looks_for_holders: false, ..Protocol::NOW };
        without("offers look for entries only", protocol, now(), ONE_LIVE);
    }

    #[test]
    fn transfers_that_leave_ids() {
        let protocol = Protocol { transfers_leave_ids: false, ..Protocol::NOW };
        without("transfers forget ids", protocol, now(), ONE_LIVE);
    }

    #[test]
    fn claims() {
        let protocol = Protocol { claims_move_ids: false, ..Protocol::NOW };
        without("claims do not move ids", protocol, now(), ONE_LIVE);
        let protocol = Protocol { skips_pending: false, ..Protocol::NOW };
        without("claims take notes of pending jobs", protocol, Bounds { strangers: 1, ..now() }, ONE_LIVE);
    }

    #[test]
    fn returns() {
        let protocol = Protocol { returns_hold: false, ..Protocol::NOW };
        without("returns hold nothing", protocol, Bounds { verbs: verbs(), ..now() }, ONE_LIVE);
        without("releases hold nothing", protocol, Bounds { operations: 1, ..now() }, ONE_LIVE);
    }

    #[test]
    fn replacements() {
        let protocol = Protocol { replacements_remove_messages: false, ..Protocol::NOW };
        without("replacements leave messages", protocol, now(), ONE_LIVE);
    }

    #[test]
    fn cancels() {
        let protocol = Protocol { remembers_cancels: false, ..Protocol::NOW };
        without("cancels are forgotten", protocol, now(), CONSERVED);
    }

    #[test]
    fn sweeps() {
        let protocol = Protocol { sweeps_look_for_payloads: false, ..Protocol::NOW };
        without("sweeps forget ready jobs", protocol, now(), SWEPT);
        let protocol = Protocol { sweeps_look_for_letters: false, ..Protocol::NOW };
        without("sweeps forget dead letters", protocol, now(), SWEPT);
        let protocol = Protocol { sweeps_look_for_messages: false, ..Protocol::NOW };
        without("sweeps leave ids", protocol, Bounds { operations: 1, ..now() }, SWEPT);
        let protocol = Protocol { sweeps_count_payloads: false, ..Protocol::NOW };
        without("sweeps do not count", protocol, Bounds { java: 1, ..equal() }, NOTED);
    }

    #[test]
    fn removals() {
        let protocol = Protocol { removals_forget: false, ..Protocol::NOW };
        without("removals leave jobs", protocol, Bounds { removals: 1, ..now() }, NOTED);
    }

    #[test]
    fn plain_entries() {
        let protocol = Protocol { tells_plain_entries: false, ..Protocol::NOW };
        without("claims skip notes for plain entries", protocol, Bounds { offers: 3, ..kinds() }, NOTED);
    }
}

/// `make model`
mod wider_bounds {
    use super::*;

    #[test]
    #[ignore = "long"]
    fn equal_payloads() {
        let bounds = Bounds { offers: 4, java: 1, operations: 1, verbs: verbs(), ..equal() };
        visit("jobs, equal payloads", bounds);
    }

    #[test]
    #[ignore = "long"]
    fn kinds_of_jobs() {
        let bounds = Bounds { offers: 3, policies: vec![Policy::Replace], ..kinds() };
        visit("jobs, kinds", Bounds { operations: 1, ..bounds });
        visit("jobs, kinds beside Java", Bounds { offers: 3, delays: vec![0], java: 1, ..kinds() });
        let policies = vec![Policy::Keep];
        let bounds = Bounds { ids: vec![vec![0], vec![0]], offers: 3, delays: vec![0], policies, ..kinds() };
        visit("jobs, kinds with equal payloads", bounds);
    }

    #[test]
    #[ignore = "long"]
    fn changes_of_due_times() {
        let kinds = vec![Kind::Plain, Kind::Free, Kind::Holds];
        visit("jobs, changes", Bounds { kinds, offers: 3, reschedules: 2, ..changes() });
    }
}
