//! The questions of a lane: which lists are asked without blocking, for how many, and what an answer means.

use bytes::Bytes;

use super::{ASK, Action, Lane, Patience};
use crate::conn::OpError;
use crate::pops::list::{Demand, Known, Place, Question};
use crate::wire::keys::Keys;

impl Lane {
    /// Whether a list is being asked.
    pub(crate) fn is_asking(&self, keys: &Keys) -> bool {
        self.lists.get(keys).is_some_and(|list| !list.questions.is_empty())
    }

    /// A question was answered.
    pub(crate) fn asked(&mut self, keys: &Keys, question: Question, result: Result<Vec<Bytes>, OpError>) {
        let Question { before, count } = question;
        let list = self.list(keys);
        if let Some(at) = list.questions.iter().position(|asked| *asked == question) {
            list.questions.remove(at);
        }
        let full = matches!(&result, Ok(payloads) if payloads.len() >= count);
        list.known = if full { Known::More } else { Known::Empty };
        self.touched.insert(keys.clone());
        match result {
            Ok(payloads) => {
                // There is no more, so those who wanted more at once get what there is.
                self.arrived(keys, payloads, if full { 0 } else { before });
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

    /// Asks, if that is called for; returns the parked pop that is in the way.
    pub(super) fn look_at(&mut self, keys: &Keys) -> Option<Place> {
        let (is_hot, is_cold) = (self.hot.is_some(), self.cold.is_some());
        let has_others = self.hot_lists.len() > 1;
        let list = self.lists.get_mut(keys)?;
        let parked = list.parked;
        if list.waiting.is_empty() {
            if list.is_busy() || parked.is_some() {
            } else if list.unclaimed.is_empty() {
                self.lists.remove(keys);
                self.hot_lists.remove(keys);
            } else {
                list.known = Known::Returning;
                let payloads = std::mem::take(&mut list.unclaimed).into_values().collect();
                self.actions.push(Action::GiveBack { keys: keys.clone(), payloads });
            }
            // Whatever the parked pop got from this list would be for nobody.
            return parked;
        }
        let others_parked = if list.place == Place::Hot { is_hot } else { is_cold };
        let Demand { at_once, alone, over, .. } = list.demand;
        // Those who want something at once wait for what is unclaimed to be completed.
        let at_once = at_once.saturating_sub(list.unclaimed.len() as u128);
        let alone = alone.min(ASK) as u128;
        let count = match list.known {
            Known::Returning => 0,
            // Those who come while others are served would wait for all of these otherwise.
            Known::More if list.questions.len() == 1 && parked.is_none() && at_once == 0 => {
                alone.saturating_sub(list.asked())
            }
            _ if !list.questions.is_empty() => 0,
            // Those who are patient have the parked pop. Asking each of its lists for a taker of several would get it
            // one payload from each.
            _ if parked.is_some() => at_once,
            _ if at_once > 0 => at_once + alone,
            Known::More => alone,
            // A single taker is parked at once, if nobody else is to be: that looks at the list as well. But a pop that is
            // parked for many lists brings one payload for all of them.
            Known::Nothing if others_parked || has_others || alone > 1 => alone,
            _ => 0,
        };
        if count > 0 {
            // A move moves one at a time, and a reply of one does not tell that there are no more.
            let count = if self.moves { 1 } else { usize::try_from(count).unwrap_or(usize::MAX) };
            let question = Question { before: list.waiting.last().map_or(0, |id| id + 1), count };
            list.questions.push(question);
            self.actions.push(Action::Ask { keys: keys.clone(), question });
        }
        match parked {
            // Those who are asked for need no parked pop besides.
            Some(_) => parked.filter(|parked| over > 0 || !list.demand.is_patient() || *parked != list.place),
            None => Some(list.place).filter(|_| others_parked && list.is_for_parking()),
        }
    }
}
