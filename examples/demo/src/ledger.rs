//! The ledger: what is known of every order, by its id, so that "lost" and "twice" are counted and not
//! believed.
//!
//! Pure: times are given, as durations since the demo began.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::consumer::ATTEMPTS;
use crate::order::{Order, Side, Taker};

/// An order that is this much overdue should have arrived.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The offer has not been answered yet.
    Offering,
    Stored,
    /// A reply was lost: nobody knows whether the order is stored. It may arrive, and need not.
    Unsure,
    /// The offer failed, or the order was cancelled: it must not arrive.
    Refused,
    Cancelled,
}

/// In whose hands an order is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hand {
    Free,
    With(Taker),
    /// Whose process was killed.
    Orphaned(Taker),
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) order: Order,
    pub(crate) by: Side,
    pub(crate) due: Duration,
    pub(crate) stage: Stage,
    pub(crate) rescheduled: bool,
    pub(crate) hand: Hand,
    /// The number of its last attempt.
    pub(crate) attempt: u32,
    /// Where the reply to `reschedule` was lost, lateness cannot be known.
    due_unsure: bool,
    /// Of its first attempt.
    late: Option<Duration>,
    failed: u32,
    done: usize,
}

impl Entry {
    /// It is still to be done.
    fn is_open(&self) -> bool {
        self.done == 0 && matches!(self.stage, Stage::Offering | Stage::Stored)
    }

    fn is_wanted(&self) -> bool {
        !matches!(self.stage, Stage::Refused | Stage::Cancelled)
    }
}

/// What it means that a handler begins with an order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// As promised, this much after its due time, where that is known.
    First(Option<Duration>),
    /// After a failure, or after a killed consumer.
    Again { from: Hand },
    /// It was cancelled or refused, or nobody has offered it.
    Unwanted,
}

/// What it means that a handler has done its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    Once { late: Option<Duration> },
    Twice,
    Unwanted,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Stored, as far as known.
    pub(crate) offered: usize,
    pub(crate) offered_by_java: usize,
    pub(crate) done: usize,
    pub(crate) done_by_java: usize,
    pub(crate) cancelled: usize,
    pub(crate) rescheduled: usize,
    /// Lost replies: neither done nor certainly there.
    pub(crate) unsure: usize,
    pub(crate) refused: usize,
    pub(crate) twice: usize,
    pub(crate) unwanted: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    entries: BTreeMap<u32, Entry>,
    done_by_java: usize,
    unwanted: usize,
}

impl Ledger {
    /// Before the offer is sent, so that no arrival can come first.
    pub(crate) fn offering(&mut self, order: Order, by: Side, due: Duration) {
        let id = order.id;
        let entry = Entry {
            order,
            by,
            due,
            stage: Stage::Offering,
            rescheduled: false,
            hand: Hand::Free,
            attempt: 0,
            due_unsure: false,
            late: None,
            failed: 0,
            done: 0,
        };
        self.entries.insert(id, entry);
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Entry> {
        self.entries.get(&id)
    }

    /// The offer's, or the cancellation's, answer.
    pub(crate) fn becomes(&mut self, id: u32, stage: Stage) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.stage = stage;
        }
    }

    pub(crate) fn rescheduled(&mut self, id: u32, due: Duration, sure: bool) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.due = due;
            entry.due_unsure |= !sure;
            entry.rescheduled = true;
        }
    }

    pub(crate) fn begun(&mut self, id: u32, by: Taker, attempt: u32, at: Duration) -> Arrival {
        let Some(entry) = self.entries.get_mut(&id).filter(|entry| entry.is_wanted()) else {
            self.unwanted += 1;
            return Arrival::Unwanted;
        };
        let from = std::mem::replace(&mut entry.hand, Hand::With(by));
        let first = entry.attempt == 0;
        entry.attempt = attempt;
        if !first {
            return Arrival::Again { from };
        }
        entry.late = (!entry.due_unsure).then(|| at.saturating_sub(entry.due));
        Arrival::First(entry.late)
    }

    pub(crate) fn done(&mut self, id: u32, by: Taker) -> Finish {
        // It was counted when it arrived.
        let Some(entry) = self.entries.get_mut(&id).filter(|entry| entry.is_wanted()) else {
            return Finish::Unwanted;
        };
        entry.hand = Hand::Free;
        entry.done += 1;
        if entry.done > 1 {
            return Finish::Twice;
        }
        self.done_by_java += usize::from(by == Taker::Java);
        Finish::Once { late: entry.late }
    }

    /// How often it has failed.
    pub(crate) fn failed(&mut self, id: u32) -> u32 {
        let Some(entry) = self.entries.get_mut(&id) else { return 0 };
        entry.hand = Hand::Free;
        entry.failed += 1;
        entry.failed
    }

    /// A process is gone: the orders that it had in hand, which are not done.
    pub(crate) fn gone(&mut self, taker: Taker) -> Vec<u32> {
        let mut orphans = Vec::new();
        for (id, entry) in &mut self.entries {
            if entry.hand == Hand::With(taker) {
                entry.hand = Hand::Orphaned(taker);
                orphans.push(*id);
            }
        }
        orphans
    }

    pub(crate) fn counts(&self) -> Counts {
        let mut counts =
            Counts { done_by_java: self.done_by_java, unwanted: self.unwanted, ..Counts::default() };
        for entry in self.entries.values() {
            let arrived = entry.attempt > 0;
            let stored = arrived || matches!(entry.stage, Stage::Stored | Stage::Cancelled);
            counts.offered += usize::from(stored);
            counts.offered_by_java += usize::from(stored && entry.by == Side::Java);
            counts.done += usize::from(entry.done > 0);
            counts.twice += entry.done.saturating_sub(1);
            counts.rescheduled += usize::from(entry.rescheduled);
            counts.cancelled += usize::from(entry.stage == Stage::Cancelled);
            counts.refused += usize::from(entry.stage == Stage::Refused);
            counts.unsure += usize::from(entry.stage == Stage::Unsure && !arrived);
        }
        counts
    }

    /// Open orders, the next due first; those before `now` have become due.
    pub(crate) fn open(&self) -> Vec<&Entry> {
        let mut open: Vec<_> = self.entries.values().filter(|entry| entry.is_open()).collect();
        open.sort_by_key(|entry| (entry.due, entry.order.id));
        open
    }

    /// Orders whose handlers run now, and the consumers that run them; the youngest first.
    pub(crate) fn in_hand(&self) -> Vec<(u32, usize)> {
        let with = |(id, entry): (&u32, &Entry)| match entry.hand {
            Hand::With(Taker::Consumer(number)) => Some((*id, number)),
            _ => None,
        };
        self.entries.iter().rev().filter_map(with).collect()
    }

    /// The order to fail: one that has failed before and is not dead, so that a few keys make a dead letter;
    /// else one in hand.
    pub(crate) fn next_to_fail(&self) -> Option<u32> {
        let again = |(_, entry): &(&u32, &Entry)| entry.is_open() && (1..ATTEMPTS).contains(&entry.failed);
        let failing = self.entries.iter().filter(again).max_by_key(|(_, entry)| entry.failed);
        failing.map(|(id, _)| *id).or_else(|| self.in_hand().first().map(|(id, _)| *id))
    }

    pub(crate) fn last_due(&self) -> Duration {
        self.entries.values().map(|entry| entry.due).max().unwrap_or_default()
    }

    /// The order to cancel or reschedule: the next one that is due in half a second or later.
    pub(crate) fn next_to_change(&self, now: Duration) -> Option<u32> {
        let later = now + Duration::from_millis(500);
        let changeable =
            |entry: &&&Entry| entry.by == Side::Rust && entry.stage == Stage::Stored && entry.due > later;
        self.open().iter().find(changeable).map(|entry| entry.order.id)
    }

    /// Orders that should be done, less those that the server still has: that many are lost. `held` counts
    /// what was due on the server a moment ago: ready, in flight, waiting for an attempt, or dead.
    pub(crate) fn lost(&self, now: Duration, held: usize) -> usize {
        let overdue =
            |entry: &&Entry| entry.done == 0 && entry.stage == Stage::Stored && entry.due + GRACE < now;
        self.entries.values().filter(overdue).count().saturating_sub(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Taker = Taker::Consumer(0);
    const B: Taker = Taker::Consumer(1);

    fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    /// Orders 1 to `n`, each due at as many seconds, stored.
    fn ledger(n: u32) -> Ledger {
        let mut ledger = Ledger::default();
        for id in 1..=n {
            ledger.offering(Order { id, item: "tea".into() }, Side::Rust, secs(id.into()));
            ledger.becomes(id, Stage::Stored);
        }
        ledger
    }

    #[test]
    fn an_order_is_late_when_it_begins_and_done_when_it_ends() {
        let mut ledger = ledger(1);
        let late = Some(Duration::from_millis(3));
        assert_eq!(ledger.begun(1, A, 1, Duration::from_millis(1003)), Arrival::First(late));
        assert_eq!((ledger.open().len(), ledger.in_hand()), (1, vec![(1, 0)]));
        assert_eq!(ledger.done(1, A), Finish::Once { late });
        assert_eq!(ledger.counts(), Counts { offered: 1, done: 1, ..Counts::default() });
        assert_eq!(ledger.lost(secs(9), 0), 0);
        assert!(ledger.open().is_empty() && ledger.in_hand().is_empty());
    }

    #[test]
    fn what_a_killed_consumer_had_begins_again_and_is_done_once() {
        let mut ledger = ledger(3);
        ledger.begun(1, A, 1, secs(1));
        ledger.begun(2, A, 1, secs(2));
        ledger.begun(3, B, 1, secs(3));
        ledger.done(1, A);
        assert_eq!(ledger.gone(A), [2]);
        assert_eq!(ledger.in_hand(), [(3, 1)]);
        assert_eq!(ledger.begun(2, B, 2, secs(5)), Arrival::Again { from: Hand::Orphaned(A) });
        assert_eq!(ledger.in_hand(), [(3, 1), (2, 1)], "the youngest first");
        assert!(matches!(ledger.done(2, B), Finish::Once { late: Some(Duration::ZERO) }));
        assert_eq!(ledger.counts().twice, 0);
    }

    #[test]
    fn what_was_done_and_not_acknowledged_is_done_twice() {
        let mut ledger = ledger(1);
        ledger.begun(1, A, 1, secs(1));
        ledger.done(1, A);
        assert_eq!(ledger.gone(A), [0; 0]);
        assert_eq!(ledger.begun(1, B, 2, secs(4)), Arrival::Again { from: Hand::Free });
        assert_eq!(ledger.done(1, B), Finish::Twice);
        assert_eq!(ledger.counts(), Counts { offered: 1, done: 1, twice: 1, ..Counts::default() });
    }

    #[test]
    fn a_failed_order_is_open_until_it_is_dead() {
        let mut ledger = ledger(2);
        ledger.begun(1, A, 1, secs(1));
        ledger.begun(2, B, 1, secs(2));
        assert_eq!(ledger.next_to_fail(), Some(2), "the youngest in hand");
        assert_eq!(ledger.failed(1), 1);
        assert_eq!((ledger.open().len(), ledger.in_hand()), (2, vec![(2, 1)]));
        assert_eq!(ledger.next_to_fail(), Some(1), "it has failed before, and waits");
        assert_eq!(ledger.begun(1, A, 2, secs(3)), Arrival::Again { from: Hand::Free });
        assert_eq!((ledger.failed(1), ledger.failed(1)), (2, ATTEMPTS));
        assert_eq!(ledger.next_to_fail(), Some(2), "order 1 is dead");
    }

    #[test]
    fn lost_is_what_is_neither_done_nor_on_the_server() {
        let ledger = ledger(3);
        assert_eq!(ledger.lost(secs(3), 0), 0, "order 1 may still be on its way");
        assert_eq!(ledger.lost(Duration::from_millis(4500), 0), 2);
        assert_eq!(ledger.lost(Duration::from_millis(4500), 1), 1);
        assert_eq!(ledger.lost(Duration::from_millis(4500), 7), 0);
    }

    #[test]
    fn an_order_that_was_begun_and_vanishes_is_lost() {
        let mut ledger = ledger(1);
        ledger.begun(1, A, 1, secs(1));
        ledger.gone(A);
        assert_eq!(ledger.lost(secs(9), 0), 1);
    }

    #[test]
    fn a_cancelled_order_is_not_lost_and_must_not_arrive() {
        let mut ledger = ledger(2);
        ledger.becomes(1, Stage::Cancelled);
        assert_eq!(ledger.open().len(), 1);
        assert_eq!(ledger.lost(secs(9), 0), 1, "order 2");
        assert_eq!(ledger.begun(1, A, 1, secs(1)), Arrival::Unwanted);
        assert_eq!(ledger.done(1, A), Finish::Unwanted);
        assert_eq!(ledger.counts(), Counts { offered: 2, cancelled: 1, unwanted: 1, ..Counts::default() });
    }

    #[test]
    fn a_rescheduled_order_is_late_by_its_new_time() {
        let mut ledger = ledger(1);
        ledger.rescheduled(1, secs(5), true);
        assert_eq!(ledger.lost(secs(6), 0), 0);
        assert_eq!(ledger.last_due(), secs(5));
        assert_eq!(ledger.begun(1, A, 1, secs(6)), Arrival::First(Some(secs(1))));
        assert_eq!(ledger.counts().rescheduled, 1);
    }

    #[test]
    fn what_a_lost_reply_leaves_open_counts_neither_way() {
        let mut ledger = ledger(3);
        ledger.becomes(1, Stage::Unsure);
        ledger.becomes(2, Stage::Unsure);
        ledger.rescheduled(3, secs(7), false);
        assert_eq!(ledger.lost(secs(5), 0), 0);
        assert!(matches!(ledger.begun(2, A, 1, secs(3)), Arrival::First(_)));
        assert_eq!(ledger.begun(3, A, 1, secs(8)), Arrival::First(None));
        assert_eq!((ledger.counts().unsure, ledger.counts().twice), (1, 0));
    }

    #[test]
    fn an_order_may_arrive_before_its_offer_is_answered() {
        let mut ledger = Ledger::default();
        ledger.offering(Order { id: 1, item: "tea".into() }, Side::Java, secs(1));
        assert_eq!(ledger.begun(1, Taker::Java, 1, secs(1)), Arrival::First(Some(Duration::ZERO)));
        ledger.done(1, Taker::Java);
        ledger.becomes(1, Stage::Stored);
        let counts = ledger.counts();
        assert_eq!((counts.offered_by_java, counts.done_by_java, counts.twice), (1, 1, 0));
    }

    #[test]
    fn nobody_has_offered_it() {
        let mut ledger = ledger(0);
        assert_eq!(ledger.begun(1, A, 1, secs(1)), Arrival::Unwanted);
        assert_eq!(ledger.counts().unwanted, 1);
    }

    #[test]
    fn the_order_to_change_has_time_left_and_a_ticket() {
        let mut ledger = ledger(4);
        ledger.becomes(2, Stage::Offering);
        ledger.rescheduled(3, secs(9), true);
        assert_eq!(ledger.next_to_change(Duration::from_millis(900)), Some(4));
        assert_eq!(ledger.next_to_change(Duration::from_millis(400)), Some(1));
        assert_eq!(ledger.next_to_change(secs(10)), None);
    }
}
