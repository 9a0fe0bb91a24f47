//! What holds while it goes on, when all has come to rest, and at the end.

use super::*;

impl World {
    /// Never is more asked for than is waited for, unless the pop is being interrupted; nor before what comes back is
    /// there.
    pub(super) fn check_measure(&self, list: Name) {
        let keys = &self.keys[list];
        let returning = |call: &Call| {
            let back = matches!(&call.action, Action::GiveBack { keys: back, .. } if back == keys);
            back && matches!(call.stage, Stage::Sent)
        };
        assert!(!self.calls.iter().any(returning), "pops while something comes back");
        let in_flight = |call: &Call| match &call.action {
            Action::Park { keys: parked, .. } => usize::from(parked.contains(keys) && !call.interrupted),
            Action::Ask { keys: asked, question } if asked == keys => question.count,
            _ => 0,
        };
        let asked: usize = self.calls.iter().map(in_flight).sum();
        let waiters = self.lane.waiters.values().filter(|waiter| waiter.keys.contains(keys));
        let wanted: usize = waiters.map(|waiter| waiter.want).sum();
        assert!(asked <= wanted, "asks for {asked} of {list}, and {wanted} are wanted");
    }

    /// What goes on together keeps the order in which it arrived.
    pub(super) fn check_sequence(&self, payloads: &[Bytes]) {
        let place = |payload: &Bytes| self.arrived.iter().rposition(|arrived| arrived == payload);
        assert!(payloads.iter().map(place).is_sorted(), "{payloads:?} arrived as {:?}", self.arrived);
    }

    /// At most one pop is parked in each place, and a list is in one of them.
    pub(super) fn check_parked(&self, place: Place, keys: &[Keys]) {
        for call in &self.calls {
            let (Action::Park { place: other, keys: parked, .. }
            | Action::Examine { place: other, keys: parked, .. }) = &call.action
            else {
                continue;
            };
            assert_ne!(place, *other, "parks a second pop");
            assert!(!parked.iter().any(|parked| keys.contains(parked)), "parks two pops on one list");
        }
    }

    /// What a list brings goes to its first taker, who is promised that those it named before are looked at before.
    pub(super) fn check_order(&self, parked: &[Keys]) {
        for (at, keys) in parked.iter().enumerate() {
            assert!(!parked[..at].contains(keys), "parks on {keys:?} twice");
            let first = self.lane.waiters.values().find(|waiter| waiter.keys.contains(keys));
            let named_before = first.unwrap().keys.iter().take_while(|other| *other != keys);
            for other in named_before {
                assert!(!parked[at..].contains(other), "{keys:?} comes before {other:?}");
            }
        }
    }

    pub(super) fn check_answers(&mut self) {
        let mut at = 0;
        while at < self.takers.len() {
            let Waiting::Yet(receiver) = &mut self.takers[at].answer else {
                at += 1;
                continue;
            };
            match receiver.try_recv() {
                Err(oneshot::error::TryRecvError::Empty) => at += 1,
                Err(oneshot::error::TryRecvError::Closed) => panic!("{} got no answer", self.takers[at].id),
                Ok(Ok(Some(popped))) => {
                    self.check_turn(&self.takers[at], &popped.keys);
                    self.check_number(&self.takers[at], popped.number());
                    self.takers[at].answer = Waiting::Holds(popped);
                    at += 1;
                }
                Ok(nothing) => {
                    let taker = self.takers.remove(at);
                    self.check_nothing(&taker, nothing.err());
                }
            }
        }
    }

    /// Whoever came first is served first.
    pub(super) fn check_turn(&self, taker: &Taker, keys: &Keys) {
        assert!(taker.lists.contains(&self.name(keys)), "{} got something from {keys:?}", taker.id);
        let first = self.lane.waiters.iter().find(|(_, waiter)| waiter.keys.contains(keys));
        assert!(first.is_none_or(|(id, _)| *id > taker.id), "{} came before {}", first.unwrap().0, taker.id);
    }

    /// Whoever wants many at once gets all there are.
    pub(super) fn check_number(&self, taker: &Taker, number: usize) {
        let all = number == taker.want || self.empty[taker.lists[0]] >= taker.came;
        assert!(all || !taker.at_once, "{} got {number}, and there were more", taker.id);
    }

    /// Whoever gets nothing gets it for a reason.
    pub(super) fn check_nothing(&self, taker: &Taker, error: Option<OpError>) {
        match error {
            None => {
                assert!(!taker.patient, "{} did not wait", taker.id);
                let seen = taker.lists.iter().all(|list| self.empty[*list] >= taker.came);
                assert!(seen, "{} was told that there is nothing, and there was", taker.id);
            }
            Some(OpError::Server(why)) => {
                let wrong = taker.lists.iter().any(|list| self.mistyped[*list] >= taker.came);
                assert!(wrong, "{} was told {why}", taker.id);
            }
            Some(OpError::Closed) => assert!(self.closed),
            Some(error) => assert!(!taker.patient && self.broken > 0, "{} was told {error}", taker.id),
        }
    }

    // The end.

    /// Until nothing is on its way any more.
    pub(super) fn settle(&mut self) {
        self.together = 1;
        self.act();
        for _ in 0..1_000 {
            let before = (self.events, self.actions, self.calls.len(), self.requests.len());
            self.step += 1;
            self.serve();
            self.take_back();
            for at in (0..self.calls.len()).rev() {
                self.run(at);
            }
            self.unblock(false);
            for at in (0..self.calls.len()).rev() {
                self.reply(at);
            }
            self.look_around();
            if before == (self.events, self.actions, self.calls.len(), self.requests.len())
                && self.returned.is_empty()
            {
                return;
            }
        }
        panic!("does not come to rest");
    }

    /// Nothing is on its way, so whoever waits is served by the parked pop, and whoever does not wait is gone.
    pub(super) fn check_rest(&self) {
        let in_place = |call: &Call| match (&call.action, &call.stage) {
            (Action::Park { keys, .. }, Stage::Blocked) if !call.interrupted => Some(keys.clone()),
            _ => None,
        };
        let parked: Vec<Vec<Keys>> = self.calls.iter().filter_map(in_place).collect();
        for (id, waiter) in &self.lane.waiters {
            assert_eq!(waiter.patience, Patience::Endless, "{id} waits on");
            let covered = parked.iter().any(|parked| waiter.keys.iter().all(|keys| parked.contains(keys)));
            assert!(covered, "{id} is forgotten");
            for list in self.names(&waiter.keys) {
                assert!(self.lists[list].is_empty(), "{id} waits, and {list} has {:?}", self.lists[list]);
            }
        }
        assert!(self.lane.lists.values().all(|list| list.unclaimed.is_empty()), "{:?}", self.lane.lists);
        let waiting = self.takers.iter().filter(|taker| matches!(taker.answer, Waiting::Yet(_)));
        assert!(waiting.map(|taker| taker.id).eq(self.lane.waiters.keys().copied()));
    }

    /// Everybody leaves, or is told to: nothing is left over, and every payload is in one place.
    pub(super) fn end(mut self, close: bool) {
        if close {
            self.closed = true;
            self.lane.close();
            self.act();
            assert!(self.takers.iter().all(|taker| matches!(taker.answer, Waiting::Holds(_))), "not told");
        }
        self.wrong = vec![false; NAMES.len()];
        while !self.takers.is_empty() {
            // Half of those who hold something read it, the others are dropped with it.
            let holds = matches!(self.takers[0].answer, Waiting::Holds(_));
            if holds && self.takers.len().is_multiple_of(2) {
                self.read(0);
            } else {
                self.drop_taker(0);
            }
        }
        self.settle();
        assert!(self.lane.is_idle(), "{:?}", self.lane);
        assert!(self.calls.is_empty());

        let all: Vec<Bytes> =
            (0..self.pushed).map(|number| Bytes::copy_from_slice(&number.to_be_bytes())).collect();
        let mut places: Vec<Bytes> = self.lists.into_iter().flatten().collect();
        self.taken.sort();
        match self.destination {
            None => {
                places.append(&mut self.taken);
                places.append(&mut self.lost);
            }
            Some(mut moved) => {
                assert!(self.taken.windows(2).all(|pair| pair[0] != pair[1]), "taken twice");
                assert!(self.taken.iter().all(|payload| moved.contains(payload)));
                places.append(&mut moved);
            }
        }
        places.sort();
        assert_eq!(places, all);
    }
}
