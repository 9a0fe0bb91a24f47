//! The blocked pops of a dispatcher: which lists each of them covers.

use std::collections::HashSet;

use super::list::{Content, List, Tier};
use super::{Action, BlockedPop, Dispatcher, LEFT_LIMIT, PER_TRY_POP};
use crate::pops::waiter::{Wait, Waiter, WaiterId};
use crate::wire::keys::Keys;

impl Dispatcher {
    /// Makes the least recently served lists cold, if there are too many hot lists for the pop that is sent
    /// next.
    pub(super) fn cool_down(&mut self) {
        if self.hot.is_some() || self.hot_lists.len() <= self.hot_limit {
            return;
        }
        let lists = self.hot_lists.iter().filter_map(|keys| Some((keys, self.lists.get(keys)?)));
        let mut cooling: Vec<(u64, Keys)> = lists
            .filter(|(_, list)| list.demand.shared == 0 && list.demand.expired == 0)
            .filter(|(_, list)| list.blocked_in.is_none() && list.wants_blocked_pop())
            .map(|(keys, list)| (list.served, keys.clone()))
            .collect();
        if cooling.len() <= self.hot_limit {
            return;
        }
        cooling.sort_unstable_by_key(|(served, _)| *served);
        cooling.truncate(cooling.len() - self.hot_limit / 2);
        for (_, keys) in cooling {
            if let Some(list) = self.lists.get_mut(&keys) {
                list.tier = Tier::Cold;
                self.hot_lists.remove(&keys);
                self.joining_cold.push(keys);
            }
        }
        if let Some(cold) = self.cold.as_mut().filter(|cold| !cold.interrupted) {
            cold.interrupted = true;
            self.actions.push(Action::Interrupt(Tier::Cold));
        }
    }

    /// Makes a list hot. If it is in the cold pop, the next review interrupts that pop.
    pub(super) fn warm_up(&mut self, keys: &Keys) {
        if let Some(list) = self.lists.get_mut(keys).filter(|list| list.tier == Tier::Cold) {
            list.tier = Tier::Hot;
            self.hot_lists.insert(keys.clone());
            self.on_change(keys);
        }
    }

    /// Sends the cold pop, if there are cold lists.
    pub(super) fn block_cold(&mut self) {
        let mut keys = std::mem::take(&mut self.cold_lists);
        for joining in std::mem::take(&mut self.joining_cold) {
            let Some(list) = self.lists.get_mut(&joining).filter(|list| list.tier == Tier::Cold) else {
                continue;
            };
            if list.blocked_in.is_none() && list.wants_blocked_pop() {
                list.blocked_in = Some(Tier::Cold);
                keys.push(joining);
            } else {
                self.warm_up(&joining);
            }
        }
        if !keys.is_empty() {
            self.actions.push(Action::Block {
                tier: Tier::Cold,
                keys: keys.clone(),
                interrupt_at_once: false,
            });
            let before = self.waiters.last_key_value().map_or(0, |(id, _)| id + 1);
            self.cold = Some(BlockedPop { keys, before, interrupted: false });
        }
    }

    /// Sends the hot pop on every hot list with waiters and without a try pop, the least recently served list
    /// first.
    pub(super) fn block_hot(&mut self) {
        let lists = self.hot_lists.iter().filter_map(|keys| self.lists.get_key_value(keys));
        let mut lists: Vec<(&Keys, &List)> =
            lists.filter(|(_, list)| list.blocked_in.is_none() && list.wants_blocked_pop()).collect();
        if lists.is_empty() {
            return;
        }
        lists.sort_by_key(|(_, list)| std::cmp::Reverse(list.served));
        let keys = self.in_order_of_takers(&lists);
        let some_expired = lists.iter().any(|(_, list)| list.demand.expired > 0);
        for keys in &keys {
            if let Some(list) = self.lists.get_mut(keys) {
                list.blocked_in = Some(Tier::Hot);
            }
        }
        let before = self.waiters.last_key_value().map_or(0, |(id, _)| id + 1);
        self.hot = Some(BlockedPop { keys: keys.clone(), before, interrupted: false });
        let is_expired = |(id, waiter): (&WaiterId, &Waiter)| {
            waiter.wait == Wait::Expired && self.covers(Tier::Hot, *id, waiter)
        };
        let interrupt_at_once = some_expired && self.waiters.iter().any(is_expired);
        if let Some(pop) = &mut self.hot {
            pop.interrupted = interrupt_at_once;
        }
        self.actions.push(Action::Block { tier: Tier::Hot, keys, interrupt_at_once });
    }

    /// These lists, from the last one on, in the order in which a pop searches them.
    fn in_order_of_takers(&self, lists: &[(&Keys, &List)]) -> Vec<Keys> {
        let mut next: Vec<&Keys> = lists.iter().map(|(keys, _)| *keys).collect();
        if lists.iter().all(|(_, list)| list.demand.shared == 0) {
            return next.into_iter().rev().cloned().collect();
        }
        let mut keys: Vec<Keys> = Vec::with_capacity(lists.len());
        let mut left: HashSet<&Keys> = next.iter().copied().collect();
        while let Some(list) = next.pop() {
            if !left.contains(list) {
                continue;
            }
            // Redisson promises a taker of several lists that they are searched in the order in which it
            // named them. The payloads of a list go to its first taker, so the lists that this taker named
            // before it come first. There is no cycle: the first takers of those lists are the same taker, or
            // began even earlier.
            let first = self.lists[list].waiting.first().map(|id| &self.waiters[id]);
            let first = first.filter(|taker| taker.in_order);
            let mut named_before =
                first.into_iter().flat_map(|taker| &taker.keys).take_while(|other| *other != list);
            match named_before.find(|other| left.contains(other)) {
                Some(other) => next.extend([list, other]),
                None => keys.extend(left.take(list).cloned()),
            }
        }
        keys
    }

    pub(super) fn blocked(&self, tier: Tier) -> Option<&BlockedPop> {
        match tier {
            Tier::Hot => self.hot.as_ref(),
            Tier::Cold => self.cold.as_ref(),
        }
    }

    pub(super) fn blocked_mut(&mut self, tier: Tier) -> Option<&mut BlockedPop> {
        self.of_tier(tier).as_mut()
    }

    fn of_tier(&mut self, tier: Tier) -> &mut Option<BlockedPop> {
        match tier {
            Tier::Hot => &mut self.hot,
            Tier::Cold => &mut self.cold,
        }
    }

    /// Removes a blocked pop that has ended. The lists that it held up are reviewed: undelivered payloads can
    /// return now, and lists can go to the other pop. Lists with waiters are blocked on again.
    pub(super) fn take_blocked(&mut self, tier: Tier) -> Option<BlockedPop> {
        let pop = self.of_tier(tier).take()?;
        if tier == Tier::Cold {
            self.cold_lists = pop.keys.clone();
            self.leave_cold();
            return Some(pop);
        }
        for keys in &pop.keys {
            if let Some(list) = self.lists.get_mut(keys) {
                list.blocked_in = None;
                if list.waiting.is_empty() {
                    self.on_change(keys);
                }
            }
        }
        Some(pop)
    }

    /// The cold pop brought a payload of this list, which leaves it. If many cold lists seem to have
    /// payloads, those after it leave, too, and get try pops. Those before it were empty.
    pub(super) fn leave_with(&mut self, keys: &Keys) {
        self.leaving_cold.insert(keys.clone());
        self.filled_cold += 1;
        let left = (self.filled_cold / self.in_a_row).min(LEFT_LIMIT);
        let Some(pop) = self.cold.as_ref().filter(|_| left > 0) else { return };
        for keys in pop.keys.iter().skip_while(|other| *other != keys).skip(1).take(left) {
            if let Some(list) = self.lists.get_mut(keys).filter(|list| !list.is_busy()) {
                list.content = Content::Unknown;
                list.left = true;
                self.leaving_cold.insert(keys.clone());
            }
        }
    }

    /// A try pop of a list that the cold pop has left was answered.
    pub(super) fn on_left_popped(&mut self, found: bool) {
        self.filled_cold = if found {
            let lists = self.cold.as_ref().map_or(self.cold_lists.len(), |pop| pop.keys.len());
            let more = lists.div_ceil(PER_TRY_POP).max(1);
            (self.filled_cold + more * self.in_a_row).min(LEFT_LIMIT * self.in_a_row)
        } else {
            self.filled_cold.saturating_sub(self.in_a_row)
        };
    }

    /// Removes lists from the cold pop while it is not sent.
    pub(super) fn leave_cold(&mut self) {
        let leaving = std::mem::take(&mut self.leaving_cold);
        if !leaving.is_empty() {
            self.cold_lists.retain(|keys| !leaving.contains(keys));
        }
        for keys in leaving {
            if let Some(list) = self.lists.get_mut(&keys) {
                list.blocked_in = None;
            }
            self.warm_up(&keys);
            self.on_change(&keys);
        }
    }

    /// Whether a blocked pop covers all lists of a waiter, and was sent for it.
    pub(super) fn covers(&self, tier: Tier, id: WaiterId, waiter: &Waiter) -> bool {
        let is_covered = |keys: &Keys| self.lists.get(keys).is_some_and(|list| list.blocked_in == Some(tier));
        self.blocked(tier).is_some_and(|pop| id < pop.before) && waiter.keys.iter().all(is_covered)
    }
}
