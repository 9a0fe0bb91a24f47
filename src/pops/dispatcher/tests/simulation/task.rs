//! The takers, and the task around the dispatcher.

use super::*;
use std::collections::HashSet;

impl World {
    // The takers.

    pub(super) fn join(&mut self, wait: Wait, lists: &[Name], in_order: bool, want: usize) {
        self.events += 1;
        let (answer, receiver) = oneshot::channel();
        let keys = lists.iter().map(|list| self.keys[*list].clone()).collect();
        let id = self.ids;
        self.ids += 1;
        self.requests.push_back(Request::Join(id, Waiter { keys, in_order, want, wait, answer }));
        self.takers.push(Taker {
            id,
            lists: lists.to_vec(),
            want,
            patient: wait == Wait::Endless,
            at_once: wait == Wait::None,
            came: self.step,
            answer: Delivery::Pending(receiver),
        });
    }

    pub(super) fn drop_taker(&mut self, at: usize) {
        self.events += 1;
        let taker = self.takers.remove(at);
        if matches!(taker.answer, Delivery::Pending(_)) {
            self.requests.push_back(Request::Leave(taker.id));
        }
    }

    pub(super) fn read(&mut self, at: usize) {
        if matches!(self.takers[at].answer, Delivery::Holds(_)) {
            let taker = self.takers.remove(at);
            let Delivery::Holds(popped) = taker.answer else { unreachable!() };
            let payloads = popped.read().unwrap();
            assert!((1..=taker.want).contains(&payloads.len()));
            self.check_sequence(&payloads);
            self.taken.extend(payloads);
        }
    }

    // The task.

    pub(super) fn serve(&mut self) {
        match self.requests.pop_front() {
            Some(Request::Join(id, waiter)) => self.dispatcher.join(id, waiter),
            Some(Request::Leave(id)) => self.dispatcher.leave(id),
            Some(Request::Expire(id, down)) => {
                self.broken += usize::from(down);
                let looked = self.looked;
                self.dispatcher.expire(
                    id,
                    |tier| looked[tier as usize],
                    down.then(|| OpError::NotExecuted("down for long".into())),
                );
            }
            None => return,
        }
        self.act();
    }

    pub(super) fn take_back(&mut self) {
        if let Ok(batch) = self.returned.try_recv() {
            self.dispatcher.on_unread(batch);
            self.act();
        }
    }

    pub(super) fn reply(&mut self, at: usize) {
        if matches!(self.calls[at].stage, Stage::Sent | Stage::Trying | Stage::Blocked) {
            return;
        }
        let call = self.calls.remove(at);
        match &call.stage {
            Stage::PopEnded(PopOutcome::Payload(_, payload)) => self.arrived.push(payload.clone()),
            Stage::TryPopped(Ok(payloads)) => self.arrived.extend(payloads.iter().cloned()),
            Stage::AnyPopped(Some(payloads)) => self.arrived.extend(payloads.iter().flatten().cloned()),
            _ => {}
        }
        match (call.action, call.stage) {
            (Action::Block { tier, .. }, Stage::PopEnded(outcome)) => {
                self.dispatcher.on_pop_ended(tier, outcome)
            }
            (Action::TryPop { keys, try_pop }, Stage::TryPopped(result)) => {
                self.dispatcher.on_try_popped(&keys, try_pop, result);
            }
            (Action::TryPopAny { lists, try_pop }, Stage::AnyPopped(popped)) => {
                self.dispatcher.on_any_popped(&lists, try_pop, popped);
            }
            (Action::Examine { tier, .. }, Stage::Examined(wrong)) => {
                let wrong = wrong.iter().map(|list| (self.keys[*list].clone(), wrong_type())).collect();
                self.dispatcher.on_examined(tier, &wrong);
            }
            (action, _) => panic!("no reply to {action:?}"),
        }
        self.act();
    }

    /// Runs the actions of the dispatcher, and checks the answers of the takers.
    pub(super) fn act(&mut self) {
        if !self.step.is_multiple_of(self.together) {
            self.check_answers();
            return;
        }
        let mut requested = HashSet::new();
        for action in self.dispatcher.next_actions() {
            self.actions += 1;
            match &action {
                Action::Interrupt(interrupted) => {
                    let is_it = |call: &&mut Call| matches!(&call.action, Action::Block { tier, .. } if tier == interrupted);
                    let blocked = self.calls.iter_mut().find(is_it);
                    blocked.expect("nothing to interrupt").interrupted = true;
                    continue;
                }
                Action::Block { tier, keys, .. } => {
                    self.check_blocked(*tier, keys);
                    self.check_order(keys, 1);
                    self.looked[*tier as usize] = false;
                    requested.extend(self.names(keys));
                }
                Action::TryPop { keys, .. } => {
                    requested.insert(self.name(keys));
                }
                Action::TryPopAny { lists, try_pop } => {
                    self.check_order(lists, try_pop.count);
                    requested.extend(self.names(lists));
                }
                Action::ReturnToList { keys, payloads } => {
                    assert!(!payloads.is_empty());
                    self.check_sequence(payloads);
                    let overtakes = |call: &Call| match &call.action {
                        Action::Block { keys: blocked, .. } => blocked.contains(keys),
                        Action::TryPop { keys: popped, .. } => popped == keys,
                        Action::TryPopAny { lists, .. } => lists.contains(keys),
                        _ => false,
                    };
                    assert!(
                        !self.calls.iter().any(overtakes),
                        "gives back in front of what was popped later"
                    );
                }
                Action::Examine { .. } => {}
            }
            self.calls.push(Call { action, interrupted: false, stage: Stage::Sent });
        }
        for list in requested {
            self.check_measure(list);
        }
        for call in &mut self.calls {
            call.interrupted |= matches!(call.action, Action::Block { interrupt_at_once: true, .. });
        }
        self.check_answers();
        for (keys, list) in &self.dispatcher.lists {
            let mut demand = Demand::default();
            list.waiting.iter().for_each(|id| demand += Demand::of(&self.dispatcher.waiters[id]));
            assert_eq!(list.demand, demand, "{keys:?}");
            // Unless the first taker wants more at once.
            let first = list.waiting.first().map(|id| &self.dispatcher.waiters[id]);
            let is_content =
                |first: &Waiter| first.wait != Wait::None || first.want <= list.undelivered.len();
            assert!(list.undelivered.is_empty() || !first.is_some_and(is_content), "{list:?}");
        }
    }
}
