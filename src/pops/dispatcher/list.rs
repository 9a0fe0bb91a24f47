//! One list with takers: its waiters, what they want in sum, and what is known of its content. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{AddAssign, SubAssign};

use bytes::Bytes;

use crate::pops::waiter::{Wait, Waiter, WaiterId};

/// The most payloads of the hot pop that are not followed by a try pop. When many messages arrive at once
/// after they have come one by one, this is the number of round trips until they are popped together, with
/// one more for each list.
pub(super) const WITHOUT_TRY_POP: u8 = 16;

/// One list, as a dispatcher sees it.
#[derive(Debug, Default)]
pub(super) struct List {
    /// The takers that wait for it, in the order in which they began.
    pub(super) waiting: BTreeSet<WaiterId>,
    /// What they want, in sum.
    pub(super) demand: Demand,
    pub(super) content: Content,
    /// The non-blocking pops in flight.
    pub(super) try_pops: Vec<TryPop>,
    /// It is among those that the next actions consider.
    pub(super) is_changed: bool,
    /// When it was last served, counted in pops.
    pub(super) served: u64,
    /// The blocked pop that it belongs to.
    pub(super) tier: Tier,
    /// The blocked pop that it is in.
    pub(super) blocked_in: Option<Tier>,
    /// The cold pop has left it to a try pop.
    pub(super) left: bool,
    pub(super) follow_ups: FollowUps,
    /// Popped payloads without a taker, in the order in which they were popped. They go to the next taker, or
    /// back to the list as soon as no pop is in flight that would overtake them.
    pub(super) undelivered: BTreeMap<u64, Bytes>,
}

impl List {
    /// Whether something is in flight that has to end first.
    pub(super) fn is_busy(&self) -> bool {
        !self.try_pops.is_empty() || self.content == Content::Returning
    }

    /// A blocked pop on this number of lists has brought a payload of this one. `of_several` is for the
    /// takers of several lists, if there are some.
    pub(super) fn on_blocked_payload(
        &mut self,
        tier: Tier,
        lists: usize,
        of_several: Option<&mut FollowUps>,
    ) {
        // A busy list stays as it is: the reply to a try pop may hold payloads.
        if self.is_busy() {
            return;
        }
        let is_next = match of_several {
            // One try pop is for all of their lists.
            Some(follow_ups) => follow_ups.is_next(1),
            // While it goes on without a try pop, it takes turns with the others.
            None => self.follow_ups.is_next(lists),
        };
        self.content = if is_next || tier == Tier::Cold { Content::Unknown } else { Content::Empty };
    }

    /// The most payloads that the non-blocking pops in flight can bring.
    pub(super) fn in_flight(&self) -> u128 {
        self.try_pops.iter().map(|try_pop| try_pop.count as u128).sum()
    }

    /// Whether a taker needs a blocked pop on this list.
    pub(super) fn wants_blocked_pop(&self) -> bool {
        if self.content == Content::Returning {
            false
        } else if self.try_pops.is_empty() {
            self.demand.has_patient()
        } else {
            // A try pop of this list alone, which is not for takers of several lists, may follow the other
            // without a gap.
            self.demand.expired_shared > 0 && self.demand.payloads() > self.in_flight()
        }
    }
}

/// Which payloads of the hot pop are followed by a try pop. Where messages arrive one by one, most try pops
/// find nothing, so they become rare.
#[derive(Debug, Default)]
pub(super) struct FollowUps {
    /// How many more payloads are not followed by one.
    without: u8,
    /// The same, right after the last try pop.
    last: u8,
}

impl FollowUps {
    /// A try pop has found something, or nothing.
    pub(super) fn on_try_pop(&mut self, found: bool) {
        self.last = if found { 0 } else { (self.last * 2).clamp(1, WITHOUT_TRY_POP) };
        self.without = self.last;
    }

    /// A try pop is to follow the next payload.
    pub(super) fn wants_one(&mut self) {
        self.without = 0;
    }

    /// Whether one follows this payload, which counts for `payloads` of them.
    fn is_next(&mut self, payloads: usize) -> bool {
        let is_next = self.without == 0;
        self.without = self.without.saturating_sub(u8::try_from(payloads).unwrap_or(u8::MAX));
        is_next
    }
}

/// The two blocked pops. The cost of a blocking pop grows with the number of its lists, so lists that are
/// served often are kept apart from the many that are rarely served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Tier {
    #[default]
    Hot,
    Cold,
}

impl Tier {
    pub(crate) const BOTH: [Self; 2] = [Self::Hot, Self::Cold];
}

/// What the takers of a list want, in sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Demand {
    /// Payloads for takers that do not wait. One taker may want `usize::MAX`.
    pub(super) at_once: u128,
    /// Takers that wait for this list alone.
    pub(super) alone: usize,
    /// Takers that wait for several lists.
    pub(super) shared: usize,
    /// The waiting takers whose time is over.
    pub(super) expired: usize,
    /// Those of them that wait for several lists.
    pub(super) expired_shared: usize,
}

impl Demand {
    pub(super) fn of(waiter: &Waiter) -> Self {
        let patient = waiter.wait != Wait::None;
        let expired = waiter.wait == Wait::Expired;
        let shared = waiter.keys.len() > 1;
        Self {
            at_once: if patient { 0 } else { waiter.want as u128 },
            alone: usize::from(patient && !shared),
            shared: usize::from(patient && shared),
            expired: usize::from(expired),
            expired_shared: usize::from(expired && shared),
        }
    }

    /// Whether any taker waits.
    pub(super) fn has_patient(&self) -> bool {
        self.alone + self.shared > 0
    }

    /// The number of payloads that certainly find a taker.
    pub(super) fn payloads(&self) -> u128 {
        self.at_once + (self.alone + self.shared) as u128
    }
}

impl AddAssign for Demand {
    fn add_assign(&mut self, more: Self) {
        self.at_once += more.at_once;
        self.alone += more.alone;
        self.shared += more.shared;
        self.expired += more.expired;
        self.expired_shared += more.expired_shared;
    }
}

impl SubAssign for Demand {
    fn sub_assign(&mut self, less: Self) {
        self.at_once -= less.at_once;
        self.alone -= less.alone;
        self.shared -= less.shared;
        self.expired -= less.expired;
        self.expired_shared -= less.expired_shared;
    }
}

/// A non-blocking pop of up to `count` payloads for the waiters before `before`. Only its reply completes it:
/// a dispatcher that forgot an outstanding pop could not deliver its payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TryPop {
    pub(crate) before: WaiterId,
    pub(crate) count: usize,
}

/// What is known of the content of a list that is in no blocked pop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Content {
    #[default]
    Unknown,
    /// Payloads are on their way back to it. A pop that ran before they arrive would overtake them.
    Returning,
    /// The last non-blocking pop was answered in full, so there may be more.
    MaybeMore,
    /// The next pop should block: the last non-blocking pop emptied the list, or none follows its last
    /// payload.
    Empty,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of payloads of a pop on this number of lists that no try pop follows.
    fn skipped(tier: Tier, lists: usize) -> usize {
        let mut list = List::default();
        (0..10).for_each(|_| list.follow_ups.on_try_pop(false));
        let mut follows = || {
            list.on_blocked_payload(tier, lists, None);
            list.content == Content::Unknown
        };
        (0..).take_while(|_| !follows()).count()
    }

    /// A pop brings one payload for all of its lists, so those that share one wait for each other.
    #[test]
    fn lists_that_share_a_pop_get_a_try_pop_sooner() {
        assert_eq!([1, 2, 16, 1_000].map(|lists| skipped(Tier::Hot, lists)), [16, 8, 1, 1]);
        assert_eq!(skipped(Tier::Cold, 1), 0);
    }
}
