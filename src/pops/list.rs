//! One list with takers: who waits, what they want in sum, and what is known of it. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{AddAssign, SubAssign};

use bytes::Bytes;

use super::lane::{Patience, Waiter, WaiterId};

/// One list, as a lane sees it.
#[derive(Debug, Default)]
pub(super) struct List {
    /// Those who take from it, in the order in which they came.
    pub(super) waiting: BTreeSet<WaiterId>,
    /// What they want, in sum.
    pub(super) demand: Demand,
    pub(super) known: Known,
    /// What is being asked.
    pub(super) questions: Vec<Question>,
    /// When it was last served, counted in pops.
    pub(super) served: u64,
    /// Which of the parked pops it belongs to.
    pub(super) place: Place,
    /// Which of them it is in.
    pub(super) parked: Option<Place>,
    /// Popped, and for nobody: for the next taker, or to go back as soon as no pop is in flight that would overtake it.
    /// In the order in which they were popped.
    pub(super) unclaimed: BTreeMap<u64, Bytes>,
}

impl List {
    /// Whether something is in flight whose end has to come first.
    pub(super) fn is_busy(&self) -> bool {
        !self.questions.is_empty() || self.known == Known::Returning
    }

    /// Payloads that the questions in flight may bring.
    pub(super) fn asked(&self) -> u128 {
        self.questions.iter().map(|question| question.count as u128).sum()
    }

    /// Whether somebody waits for a parked pop on this list.
    pub(super) fn is_for_parking(&self) -> bool {
        if self.known == Known::Returning {
            false
        } else if self.questions.is_empty() {
            self.demand.is_patient()
        } else {
            // No question is asked for takers of several lists, and questions may follow each other without a gap.
            self.demand.over_shared > 0 && self.demand.payloads() > self.asked()
        }
    }
}

/// One of the two parked pops. To park one costs by the number of its lists, so those that are served often are kept
/// apart from the many that hardly ever are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    #[default]
    Hot,
    Cold,
}

impl Place {
    pub(crate) const BOTH: [Self; 2] = [Self::Hot, Self::Cold];
}

/// What takers want of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Demand {
    /// Payloads that are wanted at once; one taker may want `usize::MAX`.
    pub(super) at_once: u128,
    /// Takers that wait for this list alone.
    pub(super) alone: usize,
    /// Takers that wait for several lists.
    pub(super) shared: usize,
    /// Those of them whose time is over.
    pub(super) over: usize,
    pub(super) over_shared: usize,
}

impl Demand {
    pub(super) fn of(waiter: &Waiter) -> Self {
        let patient = waiter.patience != Patience::None;
        let over = waiter.patience == Patience::Over;
        let shared = waiter.keys.len() > 1;
        Self {
            at_once: if patient { 0 } else { waiter.want as u128 },
            alone: usize::from(patient && !shared),
            shared: usize::from(patient && shared),
            over: usize::from(over),
            over_shared: usize::from(over && shared),
        }
    }

    pub(super) fn is_patient(&self) -> bool {
        self.alone + self.shared > 0
    }

    /// Payloads that certainly find a taker.
    pub(super) fn payloads(&self) -> u128 {
        self.at_once + (self.alone + self.shared) as u128
    }
}

impl AddAssign for Demand {
    fn add_assign(&mut self, more: Self) {
        self.at_once += more.at_once;
        self.alone += more.alone;
        self.shared += more.shared;
        self.over += more.over;
        self.over_shared += more.over_shared;
    }
}

impl SubAssign for Demand {
    fn sub_assign(&mut self, less: Self) {
        self.at_once -= less.at_once;
        self.alone -= less.alone;
        self.shared -= less.shared;
        self.over -= less.over;
        self.over_shared -= less.over_shared;
    }
}

/// A pop of up to so many payloads that does not block, on behalf of the waiters before this one. Its answer ends it, and
/// nothing else: who forgot a question would have no place for what it brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) before: WaiterId,
    pub(crate) count: usize,
}

/// What is known of a list that no pop is parked on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Known {
    #[default]
    Nothing,
    /// Payloads are on their way back to it: what is popped before they are there would come in front of them.
    Returning,
    /// The last question was answered in full, so there may be more.
    More,
    /// The last question found it empty: it is time to park.
    Empty,
}
