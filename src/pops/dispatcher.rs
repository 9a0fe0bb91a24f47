//! Decides which pops to send next and which taker gets which payload, for one kind of pop. Pure, but for the
//! hand-over of payloads.
//!
//! One short blocking pop covers the lists that are served often (hot). When there are many lists, a long
//! blocking pop covers the others (cold). A list that is in neither gets a non-blocking pop (a *try pop*);
//! when that finds nothing, the hot pop is interrupted and sent again with this list among its keys. Takers
//! that name the same several lists share a try pop of all of these. The dispatcher never requests more
//! payloads than the takers wait for.
//!
//! A cold pop brings one payload. When many cold lists get payloads at the same time, it would be sent again
//! with all the others for each. So when it brings payload after payload, it leaves more and more of its
//! lists to try pops, as long as these find something.
//!
//! ```text
//! A list          (its `content`; the events are methods, the actions are what `next_actions` returns)
//!
//!      join      +---------+   Action::TryPop   +------------+  fewer than requested  +-------+
//!   -----------> | Unknown | -----------------> | try pop in | ---------------------> | Empty |
//!                +---------+                    | flight     |                        +-------+
//!                 ^   ^   |                     +------------+                            |
//!   on_returned   |   |   |                      | as many     ^                          | Action::Block
//!                 |   |   |                      v requested   | Action::TryPop           |
//!   +-----------+ |   |   |                     +-----------+  |                          |
//!   | Returning |-+   |   |                     | MaybeMore |--+                          |
//!   +-----------+     |   |                     +-----------+                             v
//!     ^               |   |   a single taker and no other list: Action::Block     +----------------+
//!     |               |   +-----------------------------------------------------> | in the hot or  |
//!     |               +---------------------------------------------------------- | the cold pop   |
//!     |                   on_pop_ended: a payload of this list                    +----------------+
//!     |                   (Empty, while none is to follow: `List::on_blocked_payload`)
//!     |
//!     +-- no waiter, nothing in flight, undelivered payloads: Action::ReturnToList
//!         no waiter, nothing in flight, nothing undelivered: the list is removed
//!
//! A waiter
//!
//!   join --> waiting --+-- payload popped --------------> answered with it; dropped unread: on_unread
//!                      +-- expire, then the lists are
//!                      |   found empty -----------------> answered with `None`
//!                      +-- refused, or close -----------> answered with the error
//!                      +-- leave (the future is dropped)> removed; its payload goes to the next waiter
//!
//! A blocking pop  (one for each tier)
//!
//!           Action::Block             Action::Interrupt
//!   free ------------------> blocked -------------------> interrupted
//!    ^                        |   |                          |     |
//!    |   on_pop_ended         |   |  refused, several lists  |     |
//!    +------------------------+   +--> Action::Examine <-----+     |
//!    +----------------------------------- | -----------------------+
//!    |   on_examined                      |      on_pop_ended
//!    +------------------------------------+
//! ```

mod any;
mod blocked;
mod list;
mod try_pops;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;

use super::kind::End;
use super::popped::{Payloads, Popped};
use super::waiter::{Answer, Wait, Waiter, WaiterId};
use crate::conn::OpError;
use crate::outbox::Outbox;
use crate::wire::keys::{Keys, MapByKeys, SetOfKeys};
use list::{Content, Demand, FollowUps, List};
pub(crate) use list::{Tier, TryPop};

/// The most payloads that one try pop requests for takers that wait for one payload each.
const TRY_POP_LIMIT: usize = 1000;
/// The most lists in the hot pop. Above this number, the least recently served half of them become cold. A
/// blocking pop on ten lists costs the server 45 µs, on 100 lists 85 µs, on 10,000 lists over 750 µs.
const HOT_LIMIT: usize = 64;
/// The number of payloads in a row after which the cold pop leaves a list to a try pop.
const IN_A_ROW: usize = 8;
/// A cold pop costs the client and the server about as much as one try pop for this number of its lists. It
/// leaves as many more lists when a try pop of a list that it has left finds something.
const PER_TRY_POP: usize = 600;
/// The most lists that the cold pop leaves to try pops when it ends, because the replies share a connection.
const LEFT_LIMIT: usize = 1024;

/// What to do next. Every action except an interrupt has an end that the dispatcher is notified of.
#[derive(Debug, PartialEq)]
pub(crate) enum Action {
    /// Send a blocking pop on these lists, in this order. With `interrupt_at_once` it is interrupted as soon
    /// as it is sent.
    Block { tier: Tier, keys: Vec<Keys>, interrupt_at_once: bool },
    /// Interrupt a blocked pop.
    Interrupt(Tier),
    /// Pop without blocking.
    TryPop { keys: Keys, try_pop: TryPop },
    /// The same, from the first of several lists that has any, then from the next.
    TryPopAny { lists: Vec<Keys>, try_pop: TryPop },
    /// Return payloads to the end of the list they came from.
    ReturnToList { keys: Keys, payloads: Vec<Bytes> },
    /// The server refused a pop from these lists: find out which of them it refuses.
    Examine { tier: Tier, keys: Vec<Keys>, refused: OpError },
}

/// How a blocking pop ended.
#[derive(Debug)]
pub(crate) enum PopOutcome {
    Payload(Keys, Bytes),
    /// The server looked, and found nothing until the pop ended.
    Empty,
    /// Interrupted before it was sent.
    NotSent,
    Failed(OpError),
}

/// A blocking pop that was sent.
#[derive(Debug)]
struct BlockedPop {
    keys: Vec<Keys>,
    /// It serves the waiters before this one.
    before: WaiterId,
    interrupted: bool,
}

/// Decides about the pops of one kind.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    end: End,
    /// Holds payloads until their takers read them.
    outbox: Outbox<Payloads>,
    /// The pops move one payload at a time from list to list. A moved payload is in the other list, and never
    /// returns.
    moves: bool,
    waiters: BTreeMap<WaiterId, Waiter>,
    /// The waiters for several lists.
    of_several: BTreeSet<WaiterId>,
    /// Of the hot pops of such waiters.
    follow_ups: FollowUps,
    lists: MapByKeys<List>,
    /// Lists that changed since the last actions.
    changed: Vec<Keys>,
    hot: Option<BlockedPop>,
    cold: Option<BlockedPop>,
    /// The lists of the hot tier, in the hot pop or not.
    hot_lists: SetOfKeys,
    /// The most lists in the hot pop.
    hot_limit: usize,
    /// The lists that stay in the cold pop when it ends, because it is sent again at once. Thousands of them
    /// are not reviewed because of one.
    cold_lists: Vec<Keys>,
    /// Lists that leave the cold pop when it ends.
    leaving_cold: SetOfKeys,
    /// Lists that join the cold pop when it is sent again.
    joining_cold: Vec<Keys>,
    /// How many cold lists seem to have payloads, in units of one list for each `in_a_row`: the cold pop and
    /// the try pops of its lists have found some.
    filled_cold: usize,
    /// The number of payloads in a row after which the cold pop leaves a list to a try pop.
    in_a_row: usize,
    /// Counts the pops that brought something, to know which list was served least recently.
    served: u64,
    /// Counts the popped payloads, so that returned payloads keep their order.
    popped: u64,
    actions: Vec<Action>,
}

impl Dispatcher {
    /// Pops from this end. Undelivered payloads leave the outbox for [`Dispatcher::on_unread`].
    pub(crate) fn taking(end: End, outbox: Outbox<Payloads>) -> Self {
        Self::new(end, outbox, false)
    }

    /// Moves from the tails of lists to the head of another list.
    pub(crate) fn moving() -> Self {
        Self::new(End::Tail, Outbox::new(drop), true)
    }

    fn new(end: End, outbox: Outbox<Payloads>, moves: bool) -> Self {
        Self {
            end,
            outbox,
            moves,
            waiters: BTreeMap::new(),
            of_several: BTreeSet::new(),
            follow_ups: FollowUps::default(),
            lists: MapByKeys::default(),
            changed: Vec::new(),
            hot: None,
            cold: None,
            hot_lists: SetOfKeys::default(),
            hot_limit: HOT_LIMIT,
            cold_lists: Vec::new(),
            leaving_cold: SetOfKeys::default(),
            joining_cold: Vec::new(),
            filled_cold: 0,
            in_a_row: IN_A_ROW,
            served: 0,
            popped: 0,
            actions: Vec::new(),
        }
    }

    /// Whether no taker waits and nothing is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiters.is_empty() && self.hot.is_none() && self.cold.is_none() && self.lists.is_empty()
    }

    /// Whether more than one taker waits.
    pub(crate) fn has_several(&self) -> bool {
        self.waiters.len() > 1
    }

    /// A taker begins to wait. A smaller id is served before a larger one.
    pub(crate) fn join(&mut self, id: WaiterId, waiter: Waiter) {
        for keys in &waiter.keys {
            let list = self.list(keys);
            list.waiting.insert(id);
            list.demand += Demand::of(&waiter);
            if waiter.keys.len() > 1 {
                // One blocked pop has to cover all of them.
                self.warm_up(keys);
            }
            self.on_change(keys);
        }
        if waiter.keys.len() > 1 {
            self.of_several.insert(id);
        }
        self.waiters.insert(id, waiter);
    }

    /// A taker was dropped.
    pub(crate) fn leave(&mut self, id: WaiterId) {
        self.remove(id);
    }

    /// The time of a taker is over. `has_looked` says that the blocked pop of this tier has certainly looked
    /// at its lists, and that what it found would have arrived. `down` is the reason why there has been no
    /// connection for a while.
    pub(crate) fn expire(&mut self, id: WaiterId, has_looked: impl Fn(Tier) -> bool, down: Option<OpError>) {
        let Some(waiter) = self.waiters.get_mut(&id) else { return };
        let before = Demand::of(waiter);
        waiter.wait = Wait::Expired;
        for keys in &waiter.keys {
            if let Some(list) = self.lists.get_mut(keys) {
                list.demand -= before;
                list.demand += Demand::of(waiter);
            }
        }
        let waiter = &self.waiters[&id];
        // A payload that is moved while the end of the pop is on its way would be moved for no taker.
        let looked = !self.moves
            && Tier::BOTH.into_iter().any(|tier| {
                let is_sure = self.blocked(tier).is_some_and(|pop| !pop.interrupted && has_looked(tier));
                is_sure && self.covers(tier, id, waiter)
            });
        if let Some(error) = down {
            self.answer(id, Err(error));
        } else if looked {
            self.answer(id, Ok(None));
        } else {
            // The cold pop takes too long for a taker whose time is over.
            for keys in self.waiters[&id].keys.clone() {
                self.warm_up(&keys);
                self.on_change(&keys);
            }
        }
    }

    /// A blocking pop is about to end because it has no connection, and others have one: its lists are looked
    /// at without it, some of them each time.
    pub(crate) fn on_no_connection(&mut self, tier: Tier) {
        let Some(pop) = self.blocked(tier) else { return };
        let some: Vec<Keys> = pop.keys.iter().take(HOT_LIMIT).cloned().collect();
        for keys in some {
            if let Some(list) = self.lists.get_mut(&keys) {
                list.content = Content::MaybeMore;
            }
            if tier == Tier::Cold {
                self.leaving_cold.insert(keys.clone());
            }
            self.on_change(&keys);
        }
    }

    /// A blocking pop ended.
    pub(crate) fn on_pop_ended(&mut self, tier: Tier, outcome: PopOutcome) {
        match outcome {
            // One list of another type, or without permission, makes the pop fail for all lists: find that
            // list.
            PopOutcome::Failed(refused @ OpError::Server(_))
                if self.blocked(tier).is_some_and(|pop| pop.keys.len() > 1) =>
            {
                if let Some(pop) = self.blocked_mut(tier) {
                    pop.interrupted = true;
                    let keys = pop.keys.clone();
                    self.actions.push(Action::Examine { tier, keys, refused });
                }
                return;
            }
            PopOutcome::Empty => {
                self.answer_covered(tier, || Ok(None));
            }
            // The connection failed. Takers that can wait, wait for the next one.
            PopOutcome::Failed(ref error @ (OpError::NotExecuted(_) | OpError::Unknown(_))) => {
                self.answer_covered(tier, || Err(error.clone()));
            }
            _ => {}
        }
        match (tier, &outcome) {
            (Tier::Hot, _) => {}
            (Tier::Cold, PopOutcome::Payload(keys, _)) => self.leave_with(keys),
            (Tier::Cold, _) => self.filled_cold = 0,
        }
        let Some(pop) = self.take_blocked(tier) else { return };
        match outcome {
            PopOutcome::Payload(keys, payload) => {
                if let Some(list) = self.lists.get_mut(&keys) {
                    let of_several = Some(&mut self.follow_ups).filter(|_| list.demand.shared > 1);
                    list.on_blocked_payload(tier, pop.keys.len(), of_several);
                }
                self.on_payloads(&keys, vec![payload], 0);
            }
            PopOutcome::Failed(error @ (OpError::Server(_) | OpError::Closed)) => {
                let refused = pop.keys.iter().map(|keys| (keys.clone(), error.clone())).collect();
                self.answer_refused(pop.before, &refused);
            }
            _ => {}
        }
    }

    /// The result of an examination: the lists that the server refuses, and why.
    pub(crate) fn on_examined(&mut self, tier: Tier, refused: &HashMap<Keys, OpError>) {
        if let Some(pop) = self.take_blocked(tier) {
            self.answer_refused(pop.before, refused);
        }
    }

    /// The next try pop of this list is more than a look: it confirms a claim.
    pub(crate) fn wants_try_pop(&mut self, keys: &Keys) {
        if let Some(list) = self.lists.get_mut(keys) {
            list.follow_ups.wants_one();
        }
    }

    /// The taker of these payloads was dropped. They go to the next taker, or back to their list.
    pub(crate) fn on_unread(&mut self, popped: Payloads) {
        let keys = popped.keys;
        self.list(&keys).undelivered.extend(popped.payloads);
        self.on_change(&keys);
    }

    /// The first attempt to return payloads to their list has ended: they are back, or will be at some later
    /// time.
    pub(crate) fn on_returned(&mut self, keys: &Keys) {
        if let Some(list) = self.lists.get_mut(keys) {
            list.content = Content::Unknown;
        }
        self.on_change(keys);
    }

    /// Answers all takers: the client takes no more.
    pub(crate) fn close(&mut self) {
        self.answer_all(|_, _| Some(Err(OpError::Closed)));
    }

    /// How many payloads of which lists no taker has got. What was moved is in Redis.
    pub(crate) fn undelivered(&self) -> impl Iterator<Item = (&Keys, usize)> {
        let lists = self.lists.iter().filter(|_| !self.moves);
        lists.map(|(keys, list)| (keys, list.undelivered.len()))
    }

    /// What to do after the events since the last call.
    pub(crate) fn next_actions(&mut self) -> Vec<Action> {
        let mut to_interrupt = [false; 2];
        let mut reviewed = 0;
        while reviewed < self.changed.len() {
            let mut handed_out = reviewed;
            // To hand out one may change others.
            while let Some(keys) = self.changed.get(handed_out).cloned() {
                if let Some(list) = self.lists.get_mut(&keys) {
                    list.is_changed = false;
                }
                self.hand_out(&keys, 0);
                handed_out += 1;
            }
            self.review_several(reviewed..handed_out);
            for at in reviewed..handed_out {
                let keys = self.changed[at].clone();
                let in_the_way = self.review(&keys);
                if let Some(tier) = in_the_way {
                    to_interrupt[tier as usize] = true;
                }
                let Some(list) = self.lists.get(&keys) else { continue };
                if list.blocked_in == Some(Tier::Cold) && (in_the_way.is_some() || list.is_busy()) {
                    self.leaving_cold.insert(keys);
                }
            }
            if self.cold.is_none() {
                self.leave_cold();
            }
            reviewed = handed_out;
        }
        self.changed.clear();
        self.cool_down();
        for tier in Tier::BOTH {
            match self.blocked_mut(tier) {
                Some(pop) if to_interrupt[tier as usize] && !pop.interrupted => {
                    pop.interrupted = true;
                    self.actions.push(Action::Interrupt(tier));
                }
                Some(_) => {}
                None if tier == Tier::Hot => self.block_hot(),
                None => self.block_cold(),
            }
        }
        std::mem::take(&mut self.actions)
    }

    /// The state of a list; a new one when no taker has used the list so far.
    fn list(&mut self, keys: &Keys) -> &mut List {
        self.lists.entry(keys.clone()).or_insert_with(|| {
            self.hot_lists.insert(keys.clone());
            List::default()
        })
    }

    /// The next actions consider this list.
    fn on_change(&mut self, keys: &Keys) {
        if let Some(list) = self.lists.get_mut(keys)
            && !std::mem::replace(&mut list.is_changed, true)
        {
            self.changed.push(keys.clone());
        }
    }

    /// Answers the expired takers that this blocked pop covered.
    fn answer_covered(&mut self, tier: Tier, answer: impl Fn() -> Answer) {
        let is_answered = |(id, waiter): &(&WaiterId, &Waiter)| {
            waiter.wait == Wait::Expired && self.covers(tier, **id, waiter)
        };
        let answered: Vec<WaiterId> = self.waiters.iter().filter(is_answered).map(|(id, _)| *id).collect();
        answered.into_iter().for_each(|id| self.answer(id, answer()));
    }

    /// Answers the takers before `before` that wait for a refused list. A later taker gets a separate pop,
    /// because the key may be a list by then.
    fn answer_refused(&mut self, before: WaiterId, refused: &HashMap<Keys, OpError>) {
        self.answer_all(|id, waiter| {
            let why = waiter.keys.iter().find_map(|keys| refused.get(keys)).filter(|_| id < before);
            why.map(|why| Err(why.clone()))
        });
    }

    /// Payloads were popped from a list. For takers before `empty_for` the list has no more.
    fn on_payloads(&mut self, keys: &Keys, payloads: Vec<Bytes>, empty_for: WaiterId) {
        let first = self.popped;
        self.popped += payloads.len() as u64;
        self.served += u64::from(!payloads.is_empty());
        let served = self.served;
        let list = self.list(keys);
        if !payloads.is_empty() {
            list.served = served;
        }
        list.undelivered.extend((first..).zip(payloads));
        self.on_change(keys);
        self.hand_out(keys, empty_for);
    }

    /// Gives the undelivered payloads of a list to its waiters, in order. A taker that wants many at once
    /// gets them together; before `empty_for` it gets as many as there are.
    fn hand_out(&mut self, keys: &Keys, empty_for: WaiterId) {
        loop {
            let Some(list) = self.lists.get_mut(keys) else { return };
            let Some(&id) = list.waiting.first() else {
                if self.moves {
                    list.undelivered.clear();
                }
                return;
            };
            let Waiter { want, wait, .. } = self.waiters[&id];
            let is_partial = list.undelivered.len() < want && wait == Wait::None && id >= empty_for;
            if list.undelivered.is_empty() || is_partial {
                return;
            }
            let payloads = std::iter::from_fn(|| list.undelivered.pop_first()).take(want).collect();
            let Some(waiter) = self.remove(id) else { return };
            let popped = Payloads { keys: keys.clone(), end: self.end, payloads };
            let popped = Popped::new(popped, &self.outbox);
            // The taker was dropped in this very moment: the next one gets the payloads.
            if let Err(Ok(Some(popped))) = waiter.answer.send(Ok(Some(popped))) {
                self.list(keys).undelivered.extend(popped.into_undelivered());
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
        self.of_several.remove(&id);
        for keys in &waiter.keys {
            if let Some(list) = self.lists.get_mut(keys) {
                list.waiting.remove(&id);
                list.demand -= Demand::of(&waiter);
            }
            self.on_change(keys);
        }
        Some(waiter)
    }
}

#[cfg(test)]
mod tests;
