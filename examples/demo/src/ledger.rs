//! The ledger: what is known of every order, by its id, so that "lost" and "twice" are counted and not believed.
//!
//! Pure: times are given, as durations since the demo began.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::order::{Order, Side, Taker};

/// An order that is this much overdue should have arrived.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The offer has not been answered yet.
    Offering,
    Stored,
    /// A reply was lost: nobody knows whether the order is stored. It may arrive, once, and need not.
    Unsure,
    /// The offer failed, or the order was cancelled: it must not arrive.
    Refused,
    Cancelled,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) order: Order,
    pub(crate) by: Side,
    pub(crate) due: Duration,
    pub(crate) stage: Stage,
    pub(crate) rescheduled: bool,
    /// Where the reply to `reschedule` was lost, lateness cannot be known.
    due_unsure: bool,
    taken: usize,
}

impl Entry {
    /// It may still arrive.
    fn is_open(&self) -> bool {
        self.taken == 0 && matches!(self.stage, Stage::Offering | Stage::Stored)
    }
}

/// What the arrival of an order means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// As promised, this much after its due time, where that is known.
    Once(Option<Duration>),
    Twice,
    /// It was cancelled or refused, or nobody has offered it.
    Unwanted,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Stored, as far as known.
    pub(crate) offered: usize,
    pub(crate) offered_by_java: usize,
    pub(crate) taken: usize,
    pub(crate) taken_by_java: usize,
    pub(crate) cancelled: usize,
    pub(crate) rescheduled: usize,
    /// Lost replies: neither taken nor certainly there.
    pub(crate) unsure: usize,
    pub(crate) refused: usize,
    pub(crate) twice: usize,
    pub(crate) unwanted: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    entries: BTreeMap<u32, Entry>,
    taken_by_java: usize,
    unwanted: usize,
}

impl Ledger {
    /// Before the offer is sent, so that no arrival can come first.
    pub(crate) fn offering(&mut self, order: Order, by: Side, due: Duration) {
        let stage = Stage::Offering;
        let id = order.id;
        let entry = Entry { order, by, due, stage, rescheduled: false, due_unsure: false, taken: 0 };
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

    pub(crate) fn taken(&mut self, id: u32, by: Taker, at: Duration) -> Arrival {
        let Some(entry) = self.entries.get_mut(&id) else {
            self.unwanted += 1;
            return Arrival::Unwanted;
        };
        entry.taken += 1;
        if entry.taken > 1 {
            return Arrival::Twice;
        }
        if matches!(entry.stage, Stage::Refused | Stage::Cancelled) {
            self.unwanted += 1;
            return Arrival::Unwanted;
        }
        self.taken_by_java += usize::from(by == Taker::Java);
        Arrival::Once((!entry.due_unsure).then(|| at.saturating_sub(entry.due)))
    }

    pub(crate) fn counts(&self) -> Counts {
        let mut counts =
            Counts { taken_by_java: self.taken_by_java, unwanted: self.unwanted, ..Counts::default() };
        for entry in self.entries.values() {
            let wanted = !matches!(entry.stage, Stage::Refused | Stage::Cancelled);
            let stored = entry.taken > 0 || matches!(entry.stage, Stage::Stored | Stage::Cancelled);
            counts.offered += usize::from(stored);
            counts.offered_by_java += usize::from(stored && entry.by == Side::Java);
            counts.taken += usize::from(wanted && entry.taken > 0);
            counts.twice += entry.taken.saturating_sub(1);
            counts.rescheduled += usize::from(entry.rescheduled);
            counts.cancelled += usize::from(entry.stage == Stage::Cancelled);
            counts.refused += usize::from(entry.stage == Stage::Refused);
            counts.unsure += usize::from(entry.stage == Stage::Unsure && entry.taken == 0);
        }
        counts
    }

    /// Open orders, the next due first; those before `now` are ready.
    pub(crate) fn open(&self) -> Vec<&Entry> {
        let mut open: Vec<_> = self.entries.values().filter(|entry| entry.is_open()).collect();
        open.sort_by_key(|entry| (entry.due, entry.order.id));
        open
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

    /// Orders that should have arrived, less those that the server still has: that many are lost. `held` counts what
    /// was due on the server a moment ago, the list of ready payloads included.
    pub(crate) fn lost(&self, now: Duration, held: usize) -> usize {
        let overdue =
            |entry: &&Entry| entry.taken == 0 && entry.stage == Stage::Stored && entry.due + GRACE < now;
        self.entries.values().filter(overdue).count().saturating_sub(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Taker = Taker::Consumer(0);

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
    fn an_order_arrives_once_and_late() {
        let mut ledger = ledger(1);
        let arrival = ledger.taken(1, A, Duration::from_millis(1003));
        assert_eq!(arrival, Arrival::Once(Some(Duration::from_millis(3))));
        assert_eq!(ledger.counts(), Counts { offered: 1, taken: 1, ..Counts::default() });
        assert_eq!(ledger.lost(secs(9), 0), 0);
        assert!(ledger.open().is_empty());
    }

    #[test]
    fn the_second_arrival_is_counted() {
        let mut ledger = ledger(1);
        ledger.taken(1, A, secs(1));
        assert_eq!(ledger.taken(1, Taker::Java, secs(1)), Arrival::Twice);
        assert_eq!(ledger.counts(), Counts { offered: 1, taken: 1, twice: 1, ..Counts::default() });
    }

    #[test]
    fn lost_is_what_neither_arrived_nor_is_on_the_server() {
        let ledger = ledger(3);
        assert_eq!(ledger.lost(secs(3), 0), 0, "order 1 may still be on its way");
        assert_eq!(ledger.lost(Duration::from_millis(4500), 0), 2);
        assert_eq!(ledger.lost(Duration::from_millis(4500), 1), 1);
        assert_eq!(ledger.lost(Duration::from_millis(4500), 7), 0);
    }

    #[test]
    fn a_cancelled_order_is_not_lost_and_must_not_arrive() {
        let mut ledger = ledger(2);
        ledger.becomes(1, Stage::Cancelled);
        assert_eq!(ledger.open().len(), 1);
        assert_eq!(ledger.lost(secs(9), 0), 1, "order 2");
        assert_eq!(ledger.taken(1, A, secs(1)), Arrival::Unwanted);
        assert_eq!(ledger.counts(), Counts { offered: 2, cancelled: 1, unwanted: 1, ..Counts::default() });
    }

    #[test]
    fn a_rescheduled_order_is_late_by_its_new_time() {
        let mut ledger = ledger(1);
        ledger.rescheduled(1, secs(5), true);
        assert_eq!(ledger.lost(secs(6), 0), 0);
        assert_eq!(ledger.last_due(), secs(5));
        assert_eq!(ledger.taken(1, A, secs(6)), Arrival::Once(Some(secs(1))));
        assert_eq!(ledger.counts().rescheduled, 1);
    }

    #[test]
    fn what_a_lost_reply_leaves_open_counts_neither_way() {
        let mut ledger = ledger(3);
        ledger.becomes(1, Stage::Unsure);
        ledger.becomes(2, Stage::Unsure);
        ledger.rescheduled(3, secs(7), false);
        assert_eq!(ledger.lost(secs(5), 0), 0);
        assert!(matches!(ledger.taken(2, A, secs(3)), Arrival::Once(_)));
        assert_eq!(ledger.taken(3, A, secs(8)), Arrival::Once(None));
        assert_eq!((ledger.counts().unsure, ledger.counts().twice), (1, 0));
    }

    #[test]
    fn an_order_may_arrive_before_its_offer_is_answered() {
        let mut ledger = Ledger::default();
        ledger.offering(Order { id: 1, item: "tea".into() }, Side::Java, secs(1));
        assert_eq!(ledger.taken(1, Taker::Java, secs(1)), Arrival::Once(Some(Duration::ZERO)));
        ledger.becomes(1, Stage::Stored);
        let counts = ledger.counts();
        assert_eq!((counts.offered_by_java, counts.taken_by_java, counts.twice), (1, 1, 0));
    }

    #[test]
    fn nobody_has_offered_it() {
        let mut ledger = ledger(0);
        assert_eq!(ledger.taken(1, A, secs(1)), Arrival::Unwanted);
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
