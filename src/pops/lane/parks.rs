//! The parked pops of a lane: which lists each of them is parked on.

use std::collections::HashSet;

use super::{Action, Lane, Patience, Waiter, WaiterId};
use crate::pops::list::{List, Place};
use crate::wire::keys::Keys;

/// A pop that is parked.
#[derive(Debug)]
pub(super) struct Park {
    pub(super) keys: Vec<Keys>,
    /// It serves the waiters before this one.
    pub(super) before: WaiterId,
    pub(super) interrupted: bool,
}

impl Lane {
    /// Makes the lists that were served longest ago cold, if too many are hot for a pop that is to be parked.
    pub(super) fn cool_down(&mut self) {
        if self.hot.is_some() || self.hot_lists.len() <= self.most_hot {
            return;
        }
        let lists = self.hot_lists.iter().filter_map(|keys| Some((keys, self.lists.get(keys)?)));
        let mut cooling: Vec<(u64, Keys)> = lists
            .filter(|(_, list)| list.demand.shared == 0 && list.demand.over == 0)
            .filter(|(_, list)| list.parked.is_none() && list.is_for_parking())
            .map(|(keys, list)| (list.served, keys.clone()))
            .collect();
        if cooling.len() <= self.most_hot {
            return;
        }
        cooling.sort_unstable_by_key(|(served, _)| *served);
        cooling.truncate(cooling.len() - self.most_hot / 2);
        for (_, keys) in cooling {
            if let Some(list) = self.lists.get_mut(&keys) {
                list.place = Place::Cold;
                self.hot_lists.remove(&keys);
                self.cooled.push(keys);
            }
        }
        if let Some(cold) = self.cold.as_mut().filter(|cold| !cold.interrupted) {
            cold.interrupted = true;
            self.actions.push(Action::Interrupt(Place::Cold));
        }
    }

    /// Makes a list hot. If it is in the cold pop, that is in the way.
    pub(super) fn warm_up(&mut self, keys: &Keys) {
        if let Some(list) = self.lists.get_mut(keys).filter(|list| list.place == Place::Cold) {
            list.place = Place::Hot;
            self.hot_lists.insert(keys.clone());
            self.touched.insert(keys.clone());
        }
    }

    /// Parks on the lists that are cold.
    pub(super) fn park_cold(&mut self) {
        let mut keys = std::mem::take(&mut self.cold_lists);
        for cooled in std::mem::take(&mut self.cooled) {
            let Some(list) = self.lists.get_mut(&cooled).filter(|list| list.place == Place::Cold) else {
                continue;
            };
            if list.parked.is_none() && list.is_for_parking() {
                list.parked = Some(Place::Cold);
                keys.push(cooled);
            } else {
                self.warm_up(&cooled);
            }
        }
        if !keys.is_empty() {
            self.actions.push(Action::Park { place: Place::Cold, keys: keys.clone(), hurry: false });
            let before = self.waiters.last_key_value().map_or(0, |(id, _)| id + 1);
            self.cold = Some(Park { keys, before, interrupted: false });
        }
    }

    /// Parks on every hot list with waiters that is not being asked, the one served longest ago first.
    pub(super) fn park_hot(&mut self) {
        let lists = self.hot_lists.iter().filter_map(|keys| self.lists.get_key_value(keys));
        let mut lists: Vec<(&Keys, &List)> =
            lists.filter(|(_, list)| list.parked.is_none() && list.is_for_parking()).collect();
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
        let some_over = lists.iter().any(|(_, list)| list.demand.over > 0);
        for keys in &keys {
            if let Some(list) = self.lists.get_mut(keys) {
                list.parked = Some(Place::Hot);
            }
        }
        let before = self.waiters.last_key_value().map_or(0, |(id, _)| id + 1);
        self.hot = Some(Park { keys: keys.clone(), before, interrupted: false });
        let is_over = |(id, waiter): (&WaiterId, &Waiter)| {
            waiter.patience == Patience::Over && self.covers(Place::Hot, *id, waiter)
        };
        let hurry = some_over && self.waiters.iter().any(is_over);
        if let Some(park) = &mut self.hot {
            park.interrupted = hurry;
        }
        self.actions.push(Action::Park { place: Place::Hot, keys, hurry });
    }

    pub(super) fn parked_pop(&self, place: Place) -> Option<&Park> {
        match place {
            Place::Hot => self.hot.as_ref(),
            Place::Cold => self.cold.as_ref(),
        }
    }

    pub(super) fn parked_mut(&mut self, place: Place) -> Option<&mut Park> {
        self.place_mut(place).as_mut()
    }

    pub(super) fn place_mut(&mut self, place: Place) -> &mut Option<Park> {
        match place {
            Place::Hot => &mut self.hot,
            Place::Cold => &mut self.cold,
        }
    }

    /// A parked pop is over. What it stood in the way of is looked at: what is unclaimed may go back now, and lists may
    /// go to the other pop. Those who wait are parked for again.
    pub(super) fn take_parked(&mut self, place: Place) -> Option<Park> {
        let park = self.place_mut(place).take()?;
        if place == Place::Cold {
            self.cold_lists = park.keys.clone();
            self.leave_cold();
            return Some(park);
        }
        for keys in &park.keys {
            if let Some(list) = self.lists.get_mut(keys) {
                list.parked = None;
                if list.waiting.is_empty() {
                    self.touched.insert(keys.clone());
                }
            }
        }
        Some(park)
    }

    /// Takes out of the cold pop, which is not parked now, what is to leave it.
    pub(super) fn leave_cold(&mut self) {
        let leaving = std::mem::take(&mut self.leaving);
        if !leaving.is_empty() {
            self.cold_lists.retain(|keys| !leaving.contains(keys));
        }
        for keys in leaving {
            if let Some(list) = self.lists.get_mut(&keys) {
                list.parked = None;
            }
            self.warm_up(&keys);
            self.touched.insert(keys);
        }
    }

    /// Whether a parked pop is on all lists of a waiter, and for it.
    pub(super) fn covers(&self, place: Place, id: WaiterId, waiter: &Waiter) -> bool {
        let is_parked = |keys: &Keys| self.lists.get(keys).is_some_and(|list| list.parked == Some(place));
        self.parked_pop(place).is_some_and(|park| id < park.before) && waiter.keys.iter().all(is_parked)
    }
}
