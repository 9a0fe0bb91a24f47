//! The non-blocking pops of a dispatcher: which lists get one, for how many payloads, and what a reply means.

use bytes::Bytes;

use super::list::{Content, Demand, Tier, TryPop};
use super::{Action, Dispatcher, TRY_POP_LIMIT};
use crate::conn::OpError;
use crate::pops::waiter::Wait;
use crate::wire::keys::Keys;

impl Dispatcher {
    /// Whether a try pop of this list is in flight.
    pub(crate) fn is_try_popping(&self, keys: &Keys) -> bool {
        self.lists.get(keys).is_some_and(|list| !list.try_pops.is_empty())
    }

    /// A try pop was answered.
    pub(crate) fn on_try_popped(
        &mut self,
        keys: &Keys,
        try_pop: TryPop,
        result: Result<Vec<Bytes>, OpError>,
    ) {
        let TryPop { before, count } = try_pop;
        let list = self.list(keys);
        if let Some(at) = list.try_pops.iter().position(|in_flight| *in_flight == try_pop) {
            list.try_pops.remove(at);
        }
        let full = matches!(&result, Ok(payloads) if payloads.len() >= count);
        list.content = if full { Content::MaybeMore } else { Content::Empty };
        let was_left = std::mem::take(&mut list.left);
        if let Ok(payloads) = &result {
            list.follow_ups.on_try_pop(!payloads.is_empty());
        }
        self.on_change(keys);
        match result {
            Ok(payloads) => {
                if was_left {
                    self.on_left_popped(!payloads.is_empty());
                }
                // If there is no more, takers that wanted more at once get what there is.
                self.on_payloads(keys, payloads, if full { 0 } else { before });
                if !full {
                    self.answer_list(keys, before, |waiter| {
                        (waiter.wait != Wait::Endless && waiter.keys.len() == 1).then_some(Ok(None))
                    });
                }
            }
            Err(error @ (OpError::Server(_) | OpError::Closed)) => {
                self.answer_list(keys, before, |_| Some(Err(error.clone())));
            }
            Err(error) => self
                .answer_list(keys, before, |waiter| (waiter.wait == Wait::None).then(|| Err(error.clone()))),
        }
    }

    /// Requests a try pop if the list needs one. Returns the blocked pop that has to be interrupted.
    pub(super) fn review(&mut self, keys: &Keys) -> Option<Tier> {
        let (is_hot, is_cold) = (self.hot.is_some(), self.cold.is_some());
        let has_others = self.hot_lists.len() > 1;
        let list = self.lists.get_mut(keys)?;
        let blocked_in = list.blocked_in;
        if list.waiting.is_empty() {
            if list.is_busy() || blocked_in.is_some() {
            } else if list.undelivered.is_empty() {
                self.lists.remove(keys);
                self.hot_lists.remove(keys);
            } else {
                list.content = Content::Returning;
                let payloads = std::mem::take(&mut list.undelivered).into_values().collect();
                self.actions.push(Action::ReturnToList { keys: keys.clone(), payloads });
            }
            // A payload that the blocked pop got from this list would have no taker.
            return blocked_in;
        }
        let others_blocked = if list.tier == Tier::Hot { is_hot } else { is_cold };
        let Demand { at_once, alone, expired, .. } = list.demand;
        // A taker that wants something at once waits until the undelivered payloads are complete.
        let at_once = at_once.saturating_sub(list.undelivered.len() as u128);
        let alone = alone.min(TRY_POP_LIMIT) as u128;
        let count = match list.content {
            Content::Returning => 0,
            // Takers that join while others are served would otherwise wait until all of these are served.
            Content::MaybeMore if list.try_pops.len() == 1 && blocked_in.is_none() && at_once == 0 => {
                alone.saturating_sub(list.in_flight())
            }
            _ if !list.try_pops.is_empty() => 0,
            // The blocked pop serves takers that wait. A try pop of each list of a taker of several lists
            // would bring it one payload from each.
            _ if blocked_in.is_some() => at_once,
            _ if at_once > 0 => at_once + alone,
            Content::MaybeMore => alone,
            // A single taker gets a blocking pop at once, if there is no other: this looks at the list as
            // well. But a pop that blocks on many lists brings one payload for all of them.
            Content::Unknown if others_blocked || has_others || alone > 1 => alone,
            _ => 0,
        };
        if count > 0 {
            // A move moves one payload at a time, and a reply of one does not mean that there are no more.
            let count = if self.moves { 1 } else { usize::try_from(count).unwrap_or(usize::MAX) };
            let try_pop = TryPop { before: list.waiting.last().map_or(0, |id| id + 1), count };
            list.try_pops.push(try_pop);
            self.actions.push(Action::TryPop { keys: keys.clone(), try_pop });
        }
        match blocked_in {
            // Takers that a try pop serves need no blocked pop as well.
            Some(tier) => {
                blocked_in.filter(|_| expired > 0 || !list.demand.has_patient() || tier != list.tier)
            }
            None => Some(list.tier).filter(|_| others_blocked && list.wants_blocked_pop()),
        }
    }
}
