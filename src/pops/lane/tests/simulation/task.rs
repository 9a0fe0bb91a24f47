//! The takers, and the task that the lane is in.

use super::*;

impl World {
    // The takers.

    pub(super) fn join(&mut self, patience: Patience, lists: &[Name], want: usize) {
        self.events += 1;
        let (answer, receiver) = oneshot::channel();
        let keys = lists.iter().map(|list| self.keys[*list].clone()).collect();
        let id = self.ids;
        self.ids += 1;
        self.requests.push_back(Request::Join(id, Waiter { keys, want, patience, answer }));
        self.takers.push(Taker {
            id,
            lists: lists.to_vec(),
            want,
            patient: patience == Patience::Endless,
            at_once: patience == Patience::None,
            came: self.step,
            answer: Waiting::Yet(receiver),
        });
    }

    pub(super) fn drop_taker(&mut self, at: usize) {
        self.events += 1;
        let taker = self.takers.remove(at);
        if matches!(taker.answer, Waiting::Yet(_)) {
            self.requests.push_back(Request::Leave(taker.id));
        }
    }

    pub(super) fn read(&mut self, at: usize) {
        if matches!(self.takers[at].answer, Waiting::Holds(_)) {
            let taker = self.takers.remove(at);
            let Waiting::Holds(popped) = taker.answer else { unreachable!() };
            let payloads = popped.read().unwrap();
            assert!((1..=taker.want).contains(&payloads.len()));
            self.check_sequence(&payloads);
            self.taken.extend(payloads);
        }
    }

    // The task.

    pub(super) fn serve(&mut self) {
        match self.requests.pop_front() {
            Some(Request::Join(id, waiter)) => self.lane.join(id, waiter),
            Some(Request::Leave(id)) => self.lane.leave(id),
            Some(Request::Expire(id, down)) => {
                self.broken += usize::from(down);
                let looked = self.looked;
                self.lane.expire(
                    id,
                    |place| looked[place as usize],
                    down.then(|| OpError::NotExecuted("down for long".into())),
                );
            }
            None => return,
        }
        self.act();
    }

    pub(super) fn take_back(&mut self) {
        if let Ok(batch) = self.returned.try_recv() {
            self.lane.given_back(batch);
            self.act();
        }
    }

    pub(super) fn reply(&mut self, at: usize) {
        if matches!(self.calls[at].stage, Stage::Sent | Stage::Trying | Stage::Blocked) {
            return;
        }
        let call = self.calls.remove(at);
        match &call.stage {
            Stage::Parked(Parked::Payload(_, payload)) => self.arrived.push(payload.clone()),
            Stage::Asked(Ok(payloads)) => self.arrived.extend(payloads.iter().cloned()),
            _ => {}
        }
        match (call.action, call.stage) {
            (Action::Park { place, .. }, Stage::Parked(outcome)) => self.lane.parked(place, outcome),
            (Action::Ask { keys, question }, Stage::Asked(result)) => {
                self.lane.asked(&keys, question, result);
            }
            (Action::Examine { place, .. }, Stage::Examined(wrong)) => {
                let wrong = wrong.iter().map(|list| (self.keys[*list].clone(), wrong_type())).collect();
                self.lane.examined(place, &wrong);
            }
            (action, _) => panic!("no reply to {action:?}"),
        }
        self.act();
    }

    /// Does what the lane asks for, and looks at what it told the takers.
    pub(super) fn act(&mut self) {
        if !self.step.is_multiple_of(self.together) {
            self.check_answers();
            return;
        }
        let mut asked = HashSet::new();
        for action in self.lane.next_actions() {
            self.actions += 1;
            match &action {
                Action::Interrupt(interrupted) => {
                    let is_it = |call: &&mut Call| matches!(&call.action, Action::Park { place, .. } if place == interrupted);
                    let parked = self.calls.iter_mut().find(is_it);
                    parked.expect("nothing to interrupt").interrupted = true;
                    continue;
                }
                Action::Park { place, keys, .. } => {
                    self.check_parked(*place, keys);
                    self.check_order(keys);
                    self.looked[*place as usize] = false;
                    asked.extend(self.names(keys));
                }
                Action::Ask { keys, .. } => {
                    asked.insert(self.name(keys));
                }
                Action::GiveBack { keys, payloads } => {
                    assert!(!payloads.is_empty());
                    self.check_sequence(payloads);
                    let overtakes = |call: &Call| match &call.action {
                        Action::Park { keys: parked, .. } => parked.contains(keys),
                        Action::Ask { keys: asked, .. } => asked == keys,
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
        for list in asked {
            self.check_measure(list);
        }
        for call in &mut self.calls {
            call.interrupted |= matches!(call.action, Action::Park { hurry: true, .. });
        }
        self.check_answers();
        for (keys, list) in &self.lane.lists {
            let mut demand = Demand::default();
            list.waiting.iter().for_each(|id| demand += Demand::of(&self.lane.waiters[id]));
            assert_eq!(list.demand, demand, "{keys:?}");
            // But for one who wants more at once.
            let first = list.waiting.first().map(|id| &self.lane.waiters[id]);
            let is_content =
                |first: &Waiter| first.patience != Patience::None || first.want <= list.unclaimed.len();
            assert!(list.unclaimed.is_empty() || !first.is_some_and(is_content), "{list:?}");
        }
    }
}
