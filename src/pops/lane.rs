//! Who waits for what, and what to ask the server next: the pops of one kind. Pure, but for handing payloads over.
//!
//! One blocking pop is parked on all queues with waiters at a time. A queue that is not in it is asked without
//! blocking; when it has nothing, the parked pop is interrupted and parked again with that queue among its keys.
//! Never is more asked for than is waited for.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::list::{Demand, Known, List};
use super::popped::{End, Home, Popped};
use crate::conn::OpError;
use crate::keys::Keys;

/// A pop parked for so long has certainly looked at its lists, and what it found would be here: more than a command and
/// its reply take, however far the server is.
const LOOKED: Duration = Duration::from_secs(1);
/// Payloads asked for in one call, at most, for takers that wait for one each.
const ASK: usize = 1000;

/// In the order in which they came.
pub(crate) type WaiterId = u64;

/// What a taker gets: payloads, or nothing in time.
pub(crate) type Answer = Result<Option<Popped>, OpError>;

/// One taker.
#[derive(Debug)]
pub(crate) struct Waiter {
    /// The lists it takes from; more than one only when it is patient.
    pub(crate) keys: Vec<Keys>,
    /// Payloads it takes at most.
    pub(crate) want: usize,
    pub(crate) patience: Patience,
    pub(crate) answer: oneshot::Sender<Answer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Wants an answer at once, if only "nothing".
    None,
    /// Waits.
    Endless,
    /// Has waited long enough: "nothing" as soon as the lists have been looked at.
    Over,
}

/// What to do next. Every one but an interrupt has an end that the lane is told of.
#[derive(Debug, PartialEq)]
pub(crate) enum Action {
    /// Park a blocking pop on these lists, in this order; in a hurry it is interrupted as soon as it is sent.
    Park { keys: Vec<Keys>, hurry: bool },
    /// Interrupt the parked pop.
    Interrupt,
    /// Pop up to so many payloads without blocking.
    Ask { keys: Keys, count: usize },
    /// Put payloads back where they came from.
    GiveBack { keys: Keys, payloads: Vec<Bytes> },
    /// One of these lists is none; find out which.
    Examine { keys: Vec<Keys> },
}

/// How a parked pop ended.
#[derive(Debug)]
pub(crate) enum Parked {
    Payload(Keys, Bytes),
    /// The server looked, and found nothing until the pop ended.
    Empty,
    /// Interrupted before it was sent.
    NotSent,
    Failed(OpError),
}

/// The pops of one kind.
#[derive(Debug)]
pub(crate) struct Lane {
    end: End,
    /// Given to payloads so that they come back unread; without it they have arrived already.
    home: Option<Home>,
    waiters: BTreeMap<WaiterId, Waiter>,
    lists: HashMap<Keys, List>,
    /// Lists that something happened to since the last actions.
    touched: HashSet<Keys>,
    park: Option<Park>,
    /// Counts the pops that brought something, to tell which list was served longest ago.
    served: u64,
    /// Counts the payloads that were popped: what comes back keeps their order.
    popped: u64,
    actions: Vec<Action>,
}

#[derive(Debug)]
struct Park {
    keys: HashSet<Keys>,
    /// It serves the waiters before this one.
    before: WaiterId,
    since: Instant,
    interrupted: bool,
}

impl Park {
    fn covers(&self, id: WaiterId, waiter: &Waiter) -> bool {
        id < self.before && waiter.keys.iter().all(|keys| self.keys.contains(keys))
    }
}

impl Lane {
    pub(crate) fn new(end: End, home: Option<Home>) -> Self {
        Self {
            end,
            home,
            waiters: BTreeMap::new(),
            lists: HashMap::new(),
            touched: HashSet::new(),
            park: None,
            served: 0,
            popped: 0,
            actions: Vec::new(),
        }
    }

    /// Whether nobody waits and nothing is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiters.is_empty() && self.park.is_none() && self.lists.is_empty()
    }

    /// A taker comes. Ids must grow.
    pub(crate) fn join(&mut self, id: WaiterId, waiter: Waiter) {
        for keys in &waiter.keys {
            let list = self.lists.entry(keys.clone()).or_default();
            list.waiting.insert(id);
            list.demand += Demand::of(&waiter);
            self.touched.insert(keys.clone());
        }
        let lists = waiter.keys.clone();
        self.waiters.insert(id, waiter);
        for keys in &lists {
            self.hand_out(keys);
        }
    }

    /// A taker is gone.
    pub(crate) fn leave(&mut self, id: WaiterId) {
        self.remove(id);
    }

    /// A taker has waited long enough. `down` tells why there has been no connection for a while.
    pub(crate) fn expire(&mut self, id: WaiterId, now: Instant, down: Option<OpError>) {
        let Some(waiter) = self.waiters.get_mut(&id) else { return };
        let before = Demand::of(waiter);
        waiter.patience = Patience::Over;
        for keys in &waiter.keys {
            if let Some(list) = self.lists.get_mut(keys) {
                list.demand -= before;
                list.demand += Demand::of(waiter);
            }
        }
        let looked = self.park.as_ref().is_some_and(|park| {
            park.covers(id, waiter)
                && !park.interrupted
                && now.saturating_duration_since(park.since) >= LOOKED
        });
        if let Some(error) = down {
            self.answer(id, Err(error));
        } else if looked {
            self.answer(id, Ok(None));
        } else {
            self.touched.extend(self.waiters[&id].keys.iter().cloned());
        }
    }

    /// The parked pop ended.
    pub(crate) fn parked(&mut self, outcome: Parked) {
        let Some(park) = self.park.take() else { return };
        self.touch_unclaimed(&park);
        match outcome {
            Parked::Payload(keys, payload) => {
                // What is in flight stays so: a question's answer may hold payloads.
                if let Some(list) = self.lists.get_mut(&keys).filter(|list| !list.is_busy()) {
                    list.known = Known::Nothing;
                }
                self.arrived(&keys, vec![payload]);
            }
            Parked::NotSent => {}
            Parked::Empty => self.answer_all(|id, waiter| {
                (waiter.patience == Patience::Over && park.covers(id, waiter)).then_some(Ok(None))
            }),
            // One wrong list spoils the pop for all: it has to be found.
            Parked::Failed(OpError::Server(why)) if why.starts_with("WRONGTYPE") && park.keys.len() > 1 => {
                self.park = Some(Park { interrupted: true, ..park });
                let keys = self.park.iter().flat_map(|park| park.keys.iter().cloned()).collect();
                self.actions.push(Action::Examine { keys });
            }
            Parked::Failed(error @ (OpError::Server(_) | OpError::Closed)) => {
                self.answer_all(|id, waiter| {
                    let touched = id < park.before && waiter.keys.iter().any(|keys| park.keys.contains(keys));
                    touched.then(|| Err(error.clone()))
                });
            }
            // The connection: whoever can wait waits for the next one.
            Parked::Failed(error) => self.answer_all(|id, waiter| {
                (waiter.patience == Patience::Over && park.covers(id, waiter)).then(|| Err(error.clone()))
            }),
        }
    }

    /// The lists that are none, out of those that were to be examined.
    pub(crate) fn examined(&mut self, wrong: &[Keys]) {
        let Some(park) = self.park.take() else { return };
        self.touch_unclaimed(&park);
        // Who came later finds out by a pop of its own: the list may have become one meanwhile.
        self.answer_all(|id, waiter| {
            let is_wrong = id < park.before && waiter.keys.iter().any(|keys| wrong.contains(keys));
            is_wrong.then(|| Err(OpError::Server("WRONGTYPE the key holds another type than a list".into())))
        });
    }

    /// A question was answered.
    pub(crate) fn asked(&mut self, keys: &Keys, count: usize, result: Result<Vec<Bytes>, OpError>) {
        let Some(list) = self.lists.get_mut(keys) else { return };
        let Known::Asking { before, .. } = list.known else { return };
        let full = matches!(&result, Ok(payloads) if payloads.len() >= count);
        list.known = if full { Known::More } else { Known::Empty };
        self.touched.insert(keys.clone());
        match result {
            Ok(payloads) => {
                self.arrived(keys, payloads);
                if !full {
                    self.answer_list(keys, before, |waiter| {
                        (waiter.patience != Patience::Endless && waiter.keys.len() == 1).then_some(Ok(None))
                    });
                }
            }
            Err(error @ (OpError::Server(_) | OpError::Closed)) => {
                self.answer_list(keys, before, |_| Some(Err(error.clone())));
            }
            Err(error) => self.answer_list(keys, before, |waiter| {
                (waiter.patience == Patience::None).then(|| Err(error.clone()))
            }),
        }
    }

    /// Payloads whose taker is gone come back: to the next taker, else to where they came from.
    pub(crate) fn given_back(&mut self, popped: Popped) {
        let keys = popped.keys.clone();
        self.lists.entry(keys.clone()).or_default().unclaimed.extend(popped.into_numbered());
        self.hand_out(&keys);
    }

    /// Payloads have come back to their list, or will some time: the first try to put them there has ended.
    pub(crate) fn returned(&mut self, keys: &Keys) {
        if let Some(list) = self.lists.get_mut(keys) {
            list.known = Known::Nothing;
        }
        self.touched.insert(keys.clone());
    }

    /// Everybody is told that the client is shut down.
    pub(crate) fn close(&mut self) {
        self.answer_all(|_, _| Some(Err(OpError::Closed)));
    }

    /// What to do now, after whatever happened since the last call.
    pub(crate) fn next_actions(&mut self, now: Instant) -> Vec<Action> {
        let mut interrupt = false;
        for keys in std::mem::take(&mut self.touched) {
            interrupt |= self.look_at(keys);
        }
        match &mut self.park {
            Some(park) if interrupt && !park.interrupted => {
                park.interrupted = true;
                self.actions.push(Action::Interrupt);
            }
            Some(_) => {}
            None => self.park(now),
        }
        std::mem::take(&mut self.actions)
    }

    /// Asks, if that is called for; returns whether the parked pop is in the way.
    fn look_at(&mut self, keys: Keys) -> bool {
        let parked = self.park.as_ref().is_some_and(|park| park.keys.contains(&keys));
        let others_parked = self.park.is_some();
        let Some(list) = self.lists.get_mut(&keys) else { return parked };
        if list.waiting.is_empty() {
            if !list.is_busy() && list.unclaimed.is_empty() {
                self.lists.remove(&keys);
            } else if !list.is_busy() && !parked {
                list.known = Known::Returning;
                let payloads = std::mem::take(&mut list.unclaimed).into_values().collect();
                self.actions.push(Action::GiveBack { keys, payloads });
            }
            // Whatever the parked pop got from this list would be for nobody.
            return parked;
        }
        let Demand { at_once, alone, over, .. } = list.demand;
        let alone = alone.min(ASK) as u128;
        let count = match list.known {
            Known::Asking { .. } | Known::Returning => 0,
            // Those who are patient have the parked pop. Asking each of its lists for a taker of several would get it
            // one payload from each.
            _ if parked => at_once,
            _ if at_once > 0 => at_once + alone,
            Known::More => alone,
            // A single taker is parked at once, if nothing else is: that looks at the list as well.
            Known::Nothing if others_parked || alone > 1 => alone,
            _ => 0,
        };
        if count > 0 {
            // A move moves one at a time, and a reply of one does not tell that there are no more.
            let count = if self.home.is_some() { usize::try_from(count).unwrap_or(usize::MAX) } else { 1 };
            list.known = Known::Asking { before: list.waiting.last().map_or(0, |id| id + 1), count };
            self.actions.push(Action::Ask { keys: keys.clone(), count });
        }
        // Those who are asked for need no parked pop besides.
        if parked { over > 0 || !list.demand.is_patient() } else { others_parked && list.is_for_parking() }
    }

    /// Parks on every list with waiters that is not being asked, the one served longest ago first.
    fn park(&mut self, now: Instant) {
        let mut lists: Vec<(&Keys, &List)> =
            self.lists.iter().filter(|(_, list)| list.is_for_parking()).collect();
        if lists.is_empty() {
            return;
        }
        lists.sort_by_key(|(_, list)| std::cmp::Reverse(list.served));
        let mut keys: Vec<Keys> = Vec::with_capacity(lists.len());
        let mut left: HashSet<&Keys> = lists.iter().map(|(keys, _)| *keys).collect();
        let mut next: Vec<&Keys> = lists.iter().map(|(keys, _)| *keys).collect();
        while let Some(list) = next.pop() {
            if !left.contains(list) {
                continue;
            }
            // Redisson promises a taker of several lists that they are looked at in the order in which it named them.
            // What a list brings goes to its first taker, so the lists which that one named before it come first. This
            // makes no circle: the first takers of those are the same, or came even earlier.
            let first = self.lists[list].waiting.first().map(|id| &self.waiters[id]);
            let mut named_before =
                first.into_iter().flat_map(|taker| &taker.keys).take_while(|other| *other != list);
            match named_before.find(|other| left.contains(other)) {
                Some(other) => next.extend([list, other]),
                None => keys.extend(left.take(list).cloned()),
            }
        }
        let park = Park {
            keys: keys.iter().cloned().collect(),
            before: self.waiters.last_key_value().map_or(0, |(id, _)| id + 1),
            since: now,
            interrupted: false,
        };
        let hurry = lists.iter().any(|(_, list)| list.demand.over > 0)
            && self
                .waiters
                .iter()
                .any(|(id, waiter)| waiter.patience == Patience::Over && park.covers(*id, waiter));
        self.park = Some(Park { interrupted: hurry, ..park });
        self.actions.push(Action::Park { keys, hurry });
    }

    /// Payloads were popped from a list.
    fn arrived(&mut self, keys: &Keys, payloads: Vec<Bytes>) {
        if payloads.is_empty() {
            return;
        }
        let first = self.popped;
        self.popped += payloads.len() as u64;
        self.served += 1;
        let list = self.lists.entry(keys.clone()).or_default();
        list.served = self.served;
        list.unclaimed.extend((first..).zip(payloads));
        self.hand_out(keys);
    }

    /// What the pop on these lists stood in the way of may go back now. Those who wait are parked for again.
    fn touch_unclaimed(&mut self, park: &Park) {
        let is_unclaimed = |keys: &&Keys| self.lists.get(*keys).is_some_and(|list| list.waiting.is_empty());
        self.touched.extend(park.keys.iter().filter(is_unclaimed).cloned());
    }

    /// Gives what is unclaimed of a list to those who wait for it, in order.
    fn hand_out(&mut self, keys: &Keys) {
        self.touched.insert(keys.clone());
        loop {
            let Some(list) = self.lists.get_mut(keys) else { return };
            let Some(&id) = list.waiting.first() else {
                if self.home.is_none() {
                    // They have arrived in the other list.
                    list.unclaimed.clear();
                }
                return;
            };
            let want = self.waiters[&id].want;
            let share: Vec<_> = std::iter::from_fn(|| list.unclaimed.pop_first()).take(want).collect();
            if share.is_empty() {
                return;
            }
            let Some(waiter) = self.remove(id) else { return };
            let popped = Popped::new(keys.clone(), self.end, share, self.home.clone());
            // Gone in this very moment: what it was to get is the next one's.
            if let Err(Ok(Some(unread))) = waiter.answer.send(Ok(Some(popped))) {
                self.lists.entry(keys.clone()).or_default().unclaimed.extend(unread.into_numbered());
            }
        }
    }

    fn answer(&mut self, id: WaiterId, answer: Answer) {
        if let Some(waiter) = self.remove(id) {
            let _ = waiter.answer.send(answer);
        }
    }

    fn answer_all(&mut self, answer: impl Fn(WaiterId, &Waiter) -> Option<Answer>) {
        let answers: Vec<_> =
            self.waiters.iter().filter_map(|(id, waiter)| Some((*id, answer(*id, waiter)?))).collect();
        for (id, answer) in answers {
            self.answer(id, answer);
        }
    }

    fn answer_list(&mut self, keys: &Keys, before: WaiterId, answer: impl Fn(&Waiter) -> Option<Answer>) {
        let Some(list) = self.lists.get(keys) else { return };
        let answers: Vec<_> =
            list.waiting.range(..before).filter_map(|id| Some((*id, answer(&self.waiters[id])?))).collect();
        for (id, answer) in answers {
            self.answer(id, answer);
        }
    }

    fn remove(&mut self, id: WaiterId) -> Option<Waiter> {
        let waiter = self.waiters.remove(&id)?;
        for keys in &waiter.keys {
            if let Some(list) = self.lists.get_mut(keys) {
                list.waiting.remove(&id);
                list.demand -= Demand::of(&waiter);
            }
            self.touched.insert(keys.clone());
        }
        Some(waiter)
    }
}

#[cfg(test)]
mod tests;
