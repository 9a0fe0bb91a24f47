//! Who waits for what, and what to ask the server next: the pops of one kind. Pure, but for handing payloads over.
//!
//! Blocking pops are parked on all queues with waiters: a short one on those that are served often (hot), and when there
//! are many, a long one on the others (cold). A queue that is in none is asked without blocking; when it has nothing, the
//! hot pop is interrupted and parked again with that queue among its keys. Never is more asked for than is waited for.

mod parks;
mod questions;

use std::collections::{BTreeMap, HashMap, HashSet};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::list::{Demand, Known, List, Place, Question};
use super::popped::{Batch, End, Popped};
use crate::conn::OpError;
use crate::outbox::Outbox;
use crate::wire::keys::Keys;
use parks::Park;

/// Payloads asked for in one call, at most, for takers that wait for one each.
const ASK: usize = 1000;
/// Lists in the hot pop, at most: then the half of them that were served longest ago become cold. To park a pop on ten
/// lists costs the server 45 µs, on 100 it costs 85 µs, on 10,000 over 750 µs.
const HOT: usize = 64;

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
    Park { place: Place, keys: Vec<Keys>, hurry: bool },
    /// Interrupt a parked pop.
    Interrupt(Place),
    /// Pop without blocking.
    Ask { keys: Keys, question: Question },
    /// Put payloads back where they came from.
    GiveBack { keys: Keys, payloads: Vec<Bytes> },
    /// The server refused a pop from these lists; find out which of them it was for.
    Examine { place: Place, keys: Vec<Keys>, refused: OpError },
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
    /// Where payloads lie until their takers read them.
    outbox: Outbox<Batch>,
    /// Pops move from list to list, one payload at a time: it is in the other list already, and never goes back.
    moves: bool,
    waiters: BTreeMap<WaiterId, Waiter>,
    lists: HashMap<Keys, List>,
    /// Lists that something happened to since the last actions.
    touched: HashSet<Keys>,
    hot: Option<Park>,
    cold: Option<Park>,
    /// The lists of the hot pop, and those that may come to be.
    hot_lists: HashSet<Keys>,
    /// Lists in the hot pop, at most.
    most_hot: usize,
    /// The lists of the cold pop that stay there when it ends, for it is parked again at once; thousands of them are not
    /// looked at for the sake of one.
    cold_lists: Vec<Keys>,
    /// Those that are to leave it.
    leaving: HashSet<Keys>,
    /// Those that are to come.
    cooled: Vec<Keys>,
    /// Counts the pops that brought something, to tell which list was served longest ago.
    served: u64,
    /// Counts the payloads that were popped: what comes back keeps their order.
    popped: u64,
    actions: Vec<Action>,
}

impl Lane {
    /// Pops from this end. Unread payloads leave the outbox for [`Lane::given_back`].
    pub(crate) fn taking(end: End, outbox: Outbox<Batch>) -> Self {
        Self::new(end, outbox, false)
    }

    /// Moves from the tails of lists to the head of another.
    pub(crate) fn moving() -> Self {
        Self::new(End::Tail, Outbox::new(drop), true)
    }

    fn new(end: End, outbox: Outbox<Batch>, moves: bool) -> Self {
        Self {
            end,
            outbox,
            moves,
            waiters: BTreeMap::new(),
            lists: HashMap::new(),
            touched: HashSet::new(),
            hot: None,
            cold: None,
            hot_lists: HashSet::new(),
            most_hot: HOT,
            cold_lists: Vec::new(),
            leaving: HashSet::new(),
            cooled: Vec::new(),
            served: 0,
            popped: 0,
            actions: Vec::new(),
        }
    }

    /// Whether nobody waits and nothing is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiters.is_empty() && self.hot.is_none() && self.cold.is_none() && self.lists.is_empty()
    }

    /// A taker comes. An id that is smaller than another's comes before it.
    pub(crate) fn join(&mut self, id: WaiterId, waiter: Waiter) {
        for keys in &waiter.keys {
            let list = self.list(keys);
            list.waiting.insert(id);
            list.demand += Demand::of(&waiter);
            if waiter.keys.len() > 1 {
                // One pop has to be on all of them.
                self.warm_up(keys);
            }
            self.touched.insert(keys.clone());
        }
        self.waiters.insert(id, waiter);
    }

    /// A taker is gone.
    pub(crate) fn leave(&mut self, id: WaiterId) {
        self.remove(id);
    }

    /// A taker has waited long enough. `looked` says that a parked pop certainly has looked at its lists, and that what
    /// it found would be here; `down` tells why there has been no connection for a while.
    pub(crate) fn expire(&mut self, id: WaiterId, looked: impl Fn(Place) -> bool, down: Option<OpError>) {
        let Some(waiter) = self.waiters.get_mut(&id) else { return };
        let before = Demand::of(waiter);
        waiter.patience = Patience::Over;
        for keys in &waiter.keys {
            if let Some(list) = self.lists.get_mut(keys) {
                list.demand -= before;
                list.demand += Demand::of(waiter);
            }
        }
        let waiter = &self.waiters[&id];
        // What was moved while the end of the pop was on its way would be moved for nobody.
        let looked = !self.moves
            && Place::BOTH.into_iter().any(|place| {
                let is_sure = self.parked_pop(place).is_some_and(|park| !park.interrupted && looked(place));
                is_sure && self.covers(place, id, waiter)
            });
        if let Some(error) = down {
            self.answer(id, Err(error));
        } else if looked {
            self.answer(id, Ok(None));
        } else {
            // The cold pop is a long one, too long for who waits no more.
            for keys in self.waiters[&id].keys.clone() {
                self.warm_up(&keys);
                self.touched.insert(keys);
            }
        }
    }

    /// A parked pop ended.
    pub(crate) fn parked(&mut self, place: Place, outcome: Parked) {
        match outcome {
            // One list of another type, or without rights, spoils the pop for all: it has to be found.
            Parked::Failed(refused @ OpError::Server(_))
                if self.parked_pop(place).is_some_and(|park| park.keys.len() > 1) =>
            {
                if let Some(park) = self.parked_mut(place) {
                    park.interrupted = true;
                    let keys = park.keys.clone();
                    self.actions.push(Action::Examine { place, keys, refused });
                }
                return;
            }
            Parked::Empty => {
                self.answer_covered(place, || Ok(None));
            }
            // The connection: whoever can wait waits for the next one.
            Parked::Failed(ref error @ (OpError::NotExecuted(_) | OpError::Unknown(_))) => {
                self.answer_covered(place, || Err(error.clone()));
            }
            _ => {}
        }
        if let (Place::Cold, Parked::Payload(keys, _)) = (place, &outcome) {
            self.leaving.insert(keys.clone());
        }
        let Some(park) = self.take_parked(place) else { return };
        match outcome {
            Parked::Payload(keys, payload) => {
                // What is in flight stays so: a question's answer may hold payloads.
                if let Some(list) = self.lists.get_mut(&keys).filter(|list| !list.is_busy()) {
                    list.known = Known::Nothing;
                }
                self.arrived(&keys, vec![payload], 0);
            }
            Parked::Failed(error @ (OpError::Server(_) | OpError::Closed)) => {
                let wrong = park.keys.iter().map(|keys| (keys.clone(), error.clone())).collect();
                self.answer_wrong(park.before, &wrong);
            }
            _ => {}
        }
    }

    /// The lists that cannot be popped from, out of those that were to be examined, and why.
    pub(crate) fn examined(&mut self, place: Place, wrong: &HashMap<Keys, OpError>) {
        if let Some(park) = self.take_parked(place) {
            self.answer_wrong(park.before, wrong);
        }
    }

    /// Payloads whose taker is gone come back: to the next taker, else to where they came from.
    pub(crate) fn given_back(&mut self, batch: Batch) {
        let keys = batch.keys;
        self.list(&keys).unclaimed.extend(batch.payloads);
        self.touched.insert(keys);
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
    pub(crate) fn next_actions(&mut self) -> Vec<Action> {
        let mut in_the_way = HashSet::new();
        while !self.touched.is_empty() {
            let mut touched = HashSet::new();
            while !self.touched.is_empty() {
                let fresh = std::mem::take(&mut self.touched);
                fresh.iter().for_each(|keys| self.hand_out(keys, 0));
                touched.extend(fresh);
            }
            for keys in touched {
                let place = self.look_at(&keys);
                in_the_way.extend(place);
                let Some(list) = self.lists.get(&keys) else { continue };
                if list.parked == Some(Place::Cold) && (place.is_some() || list.is_busy()) {
                    self.leaving.insert(keys);
                }
            }
            if self.cold.is_none() {
                self.leave_cold();
            }
        }
        self.cool_down();
        for place in Place::BOTH {
            match self.parked_mut(place) {
                Some(park) if in_the_way.contains(&place) && !park.interrupted => {
                    park.interrupted = true;
                    self.actions.push(Action::Interrupt(place));
                }
                Some(_) => {}
                None if place == Place::Hot => self.park_hot(),
                None => self.park_cold(),
            }
        }
        std::mem::take(&mut self.actions)
    }

    /// A list, which is a new one if nobody has taken from it so far.
    fn list(&mut self, keys: &Keys) -> &mut List {
        self.lists.entry(keys.clone()).or_insert_with(|| {
            self.hot_lists.insert(keys.clone());
            List::default()
        })
    }

    /// Answers those whose time is over and whom this pop was for.
    fn answer_covered(&mut self, place: Place, answer: impl Fn() -> Answer) {
        let is_over = |(id, waiter): &(&WaiterId, &Waiter)| {
            waiter.patience == Patience::Over && self.covers(place, **id, waiter)
        };
        let over: Vec<WaiterId> = self.waiters.iter().filter(is_over).map(|(id, _)| *id).collect();
        over.into_iter().for_each(|id| self.answer(id, answer()));
    }

    /// Answers those with a list that cannot be popped from. Who came later finds out by a pop of its own: it may have
    /// become one meanwhile.
    fn answer_wrong(&mut self, before: WaiterId, wrong: &HashMap<Keys, OpError>) {
        self.answer_all(|id, waiter| {
            let why = waiter.keys.iter().find_map(|keys| wrong.get(keys)).filter(|_| id < before);
            why.map(|why| Err(why.clone()))
        });
    }

    /// Payloads were popped from a list; for takers before `empty_for` there are no more.
    fn arrived(&mut self, keys: &Keys, payloads: Vec<Bytes>, empty_for: WaiterId) {
        let first = self.popped;
        self.popped += payloads.len() as u64;
        self.served += u64::from(!payloads.is_empty());
        let served = self.served;
        let list = self.list(keys);
        if !payloads.is_empty() {
            list.served = served;
        }
        list.unclaimed.extend((first..).zip(payloads));
        self.touched.insert(keys.clone());
        self.hand_out(keys, empty_for);
    }

    /// Gives what is unclaimed of a list to those who wait for it, in order. Who wants many at once gets them together,
    /// or, before `empty_for`, as many as there are.
    fn hand_out(&mut self, keys: &Keys, empty_for: WaiterId) {
        loop {
            let Some(list) = self.lists.get_mut(keys) else { return };
            let Some(&id) = list.waiting.first() else {
                if self.moves {
                    list.unclaimed.clear();
                }
                return;
            };
            let Waiter { want, patience, .. } = self.waiters[&id];
            let is_partial = list.unclaimed.len() < want && patience == Patience::None && id >= empty_for;
            if list.unclaimed.is_empty() || is_partial {
                return;
            }
            let payloads = std::iter::from_fn(|| list.unclaimed.pop_first()).take(want).collect();
            let Some(waiter) = self.remove(id) else { return };
            let batch = Batch { keys: keys.clone(), end: self.end, payloads };
            let popped = Popped::new(batch, &self.outbox);
            // Gone in this very moment: what it was to get is the next one's.
            if let Err(Ok(Some(popped))) = waiter.answer.send(Ok(Some(popped))) {
                self.list(keys).unclaimed.extend(popped.unread());
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
