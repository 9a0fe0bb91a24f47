//! The non-blocking pops for takers of several lists. One pops from all lists of takers that name the same
//! ones, as many payloads as there are such takers: whichever list a payload comes from, one of them takes
//! it. The server searches the lists in the takers' order, as a blocking pop does.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;

use super::list::{Content, List, TryPop};
use super::{Action, Dispatcher, HOT_LIMIT, TRY_POP_LIMIT};
use crate::pops::waiter::{Wait, Waiter, WaiterId};
use crate::scripts;
use crate::wire::keys::Keys;

/// Takers that name the same lists.
struct Group {
    first: WaiterId,
    takers: usize,
    /// Whether more of them can join. They cannot behind a taker of some of these lists who has another
    /// order: it would get a payload out of its turn.
    is_open: bool,
}

impl List {
    /// Whether a try pop of several lists may have it among them.
    fn is_free(&self) -> bool {
        !self.is_busy() && self.blocked_in.is_none() && self.demand.at_once == 0
    }
}

impl Dispatcher {
    /// Requests try pops for takers of several lists, if one of these lists has changed.
    pub(super) fn review_several(&mut self, changed: Range<usize>) {
        let may_have_some =
            |list: &List| list.demand.shared > 0 && list.content != Content::Empty && list.is_free();
        if !self.changed[changed].iter().any(|keys| self.lists.get(keys).is_some_and(may_have_some)) {
            return;
        }
        for Group { first, takers, .. } in self.groups() {
            let waiter = &self.waiters[&first];
            let has = |content| waiter.keys.iter().any(|keys| self.lists[keys].content == content);
            // A single taker gets a blocking pop, which looks at the lists as well.
            if !has(Content::MaybeMore) && (takers < 2 || !has(Content::Unknown)) {
                continue;
            }
            let mut lists = waiter.keys.clone();
            if !waiter.in_order {
                lists.sort_by_key(|keys| self.lists[keys].served);
            }
            let before = self.waiters.last_key_value().map_or(0, |(id, _)| id + 1);
            let try_pop = TryPop { before, count: takers };
            for keys in &lists {
                if let Some(list) = self.lists.get_mut(keys) {
                    list.try_pops.push(try_pop);
                }
            }
            self.actions.push(Action::TryPopAny { lists, try_pop });
        }
    }

    /// The groups of the takers of several lists whose lists have no pop. Payloads go to the first taker of
    /// their list, so no list of a group has an earlier taker of other lists.
    fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        let mut named: HashMap<&Keys, usize> = HashMap::new();
        for id in self.of_several.iter().take(TRY_POP_LIMIT) {
            let waiter = &self.waiters[id];
            let group = named.get(&waiter.keys[0]).map(|at| (*at, &mut groups[*at]));
            if let Some((at, group)) = group.filter(|(_, group)| group.is_open)
                && let first = &self.waiters[&group.first]
                && are_alike(first, waiter, |keys| named.get(keys) == Some(&at))
            {
                group.takers += 1;
                continue;
            }
            if waiter.in_order {
                waiter
                    .keys
                    .iter()
                    .filter_map(|keys| named.get(keys))
                    .for_each(|at| groups[*at].is_open = false);
            }
            let is_free = |keys: &Keys| !named.contains_key(keys) && self.lists[keys].is_free();
            let is_open = waiter.keys.len() <= HOT_LIMIT && waiter.keys.iter().all(is_free);
            for keys in &waiter.keys {
                named.entry(keys).or_insert(groups.len());
            }
            groups.push(Group { first: *id, takers: usize::from(is_open), is_open });
        }
        groups.retain(|group| group.takers > 0);
        groups
    }

    /// A try pop of several lists was answered: with the payloads of each list, or `None` if it has failed.
    pub(crate) fn on_any_popped(&mut self, lists: &[Keys], try_pop: TryPop, popped: Option<Vec<Vec<Bytes>>>) {
        let has_answer = popped.is_some();
        let mut popped = popped.unwrap_or_default();
        popped.resize(lists.len(), Vec::new());
        let lengths = || popped.iter().flatten().map(Bytes::len);
        let is_full = lengths().count() >= try_pop.count || scripts::is_full(lengths());
        let last = popped.iter().rposition(|payloads| !payloads.is_empty());
        self.follow_ups.on_try_pop(last.is_some());
        let mut has_expired = false;
        for (at, keys) in lists.iter().enumerate() {
            let list = self.list(keys);
            if let Some(at) = list.try_pops.iter().position(|in_flight| *in_flight == try_pop) {
                list.try_pops.remove(at);
            }
            has_expired |= list.demand.expired > 0;
            // If it has failed, the blocking pop finds out why, and with which of the lists.
            list.content = match last.filter(|_| is_full) {
                Some(last) if at > last => list.content,
                Some(last) if at == last => Content::MaybeMore,
                _ => Content::Empty,
            };
        }
        for (keys, payloads) in lists.iter().zip(popped) {
            self.on_payloads(keys, payloads, 0);
        }
        if has_answer && !is_full && has_expired {
            self.answer_all(|id, waiter| {
                let was_empty = waiter.wait == Wait::Expired
                    && id < try_pop.before
                    && waiter.keys.iter().all(|keys| lists.contains(keys));
                was_empty.then_some(Ok(None))
            });
        }
    }
}

/// Whether two takers name the same lists, in the same order if that matters.
fn are_alike(first: &Waiter, other: &Waiter, first_names: impl Fn(&Keys) -> bool) -> bool {
    first.in_order == other.in_order
        && first.keys.len() == other.keys.len()
        && (first.keys == other.keys || !first.in_order && other.keys.iter().all(first_names))
}
