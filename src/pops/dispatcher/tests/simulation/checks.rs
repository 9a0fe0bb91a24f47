//! The invariants: during the run, when nothing is in flight any more, and at the end.

use super::*;

impl World {
    /// The dispatcher never requests more payloads than takers want, unless the pop is being interrupted. It
    /// requests none before returning payloads are back.
    pub(super) fn check_measure(&self, list: Name) {
        let keys = &self.keys[list];
        let returning = |call: &Call| {
            let back = matches!(&call.action, Action::ReturnToList { keys: back, .. } if back == keys);
            back && matches!(call.stage, Stage::Sent)
        };
        assert!(!self.calls.iter().any(returning), "pops while payloads are returning");
        let in_flight = |call: &Call| match &call.action {
            Action::Block { keys: blocked, .. } => usize::from(blocked.contains(keys) && !call.interrupted),
            Action::TryPop { keys: popped, try_pop } if popped == keys => try_pop.count,
            Action::TryPopAny { lists, try_pop } if lists.contains(keys) => try_pop.count,
            _ => 0,
        };
        let requested: usize = self.calls.iter().map(in_flight).sum();
        let waiters = self.dispatcher.waiters.values().filter(|waiter| waiter.keys.contains(keys));
        let wanted: usize = waiters.map(|waiter| waiter.want).sum();
        assert!(requested <= wanted, "requests {requested} of {list}, and {wanted} are wanted");
    }

    /// Payloads that are handed over together keep the order in which they arrived.
    pub(super) fn check_sequence(&self, payloads: &[Bytes]) {
        let place = |payload: &Bytes| self.arrived.iter().rposition(|arrived| arrived == payload);
        assert!(payloads.iter().map(place).is_sorted(), "{payloads:?} arrived as {:?}", self.arrived);
    }

    /// At most one pop is blocked in each tier, and a list is in one of them.
    pub(super) fn check_blocked(&self, tier: Tier, keys: &[Keys]) {
        for call in &self.calls {
            let (Action::Block { tier: other, keys: blocked, .. }
            | Action::Examine { tier: other, keys: blocked, .. }) = &call.action
            else {
                continue;
            };
            assert_ne!(tier, *other, "sends a second blocking pop");
            assert!(!blocked.iter().any(|blocked| keys.contains(blocked)), "blocks twice on one list");
        }
    }

    /// Up to `count` payloads of a list go to its first takers. The lists that these named before it must
    /// come before it.
    pub(super) fn check_order(&self, popped: &[Keys], count: usize) {
        for (at, keys) in popped.iter().enumerate() {
            assert!(!popped[..at].contains(keys), "pops from {keys:?} twice");
            let takers = self.dispatcher.waiters.values().filter(|waiter| waiter.keys.contains(keys));
            for taker in takers.take(count).filter(|taker| taker.in_order) {
                let mut named_before = taker.keys.iter().take_while(|other| *other != keys);
                let is_passed = |other: &Keys| match count {
                    1 => popped[at..].contains(other),
                    _ => !popped[..at].contains(other),
                };
                let passed = named_before.find(|other| is_passed(other));
                assert!(passed.is_none(), "{keys:?} comes before {passed:?}");
            }
        }
    }

    pub(super) fn check_answers(&mut self) {
        let mut at = 0;
        while at < self.takers.len() {
            let Delivery::Pending(receiver) = &mut self.takers[at].answer else {
                at += 1;
                continue;
            };
            match receiver.try_recv() {
                Err(oneshot::error::TryRecvError::Empty) => at += 1,
                Err(oneshot::error::TryRecvError::Closed) => panic!("{} got no answer", self.takers[at].id),
                Ok(Ok(Some(popped))) => {
                    self.check_turn(&self.takers[at], &popped.keys);
                    self.check_number(&self.takers[at], popped.len());
                    self.takers[at].answer = Delivery::Holds(popped);
                    at += 1;
                }
                Ok(nothing) => {
                    let taker = self.takers.remove(at);
                    self.check_nothing(&taker, nothing.err());
                }
            }
        }
    }

    /// Takers are served in the order in which they began.
    pub(super) fn check_turn(&self, taker: &Taker, keys: &Keys) {
        assert!(taker.lists.contains(&self.name(keys)), "{} got something from {keys:?}", taker.id);
        let first = self.dispatcher.waiters.iter().find(|(_, waiter)| waiter.keys.contains(keys));
        assert!(first.is_none_or(|(id, _)| *id > taker.id), "{} came before {}", first.unwrap().0, taker.id);
    }

    /// A taker that wants many at once gets all of them.
    pub(super) fn check_number(&self, taker: &Taker, number: usize) {
        let all = number == taker.want || self.empty[taker.lists[0]] >= taker.came;
        assert!(all || !taker.at_once, "{} got {number}, and there were more", taker.id);
    }

    /// A taker without a payload has a reason.
    pub(super) fn check_nothing(&self, taker: &Taker, error: Option<OpError>) {
        match error {
            None => {
                assert!(!taker.patient, "{} did not wait", taker.id);
                let seen = taker.lists.iter().all(|list| self.empty[*list] >= taker.came);
                assert!(seen, "{} got nothing, and there was a payload", taker.id);
            }
            Some(OpError::Server(why)) => {
                let wrong = taker.lists.iter().any(|list| self.mistyped[*list] >= taker.came);
                assert!(wrong, "{} got the error {why}", taker.id);
            }
            Some(OpError::Closed) => assert!(self.closed),
            Some(error) => assert!(!taker.patient && self.broken > 0, "{} got the error {error}", taker.id),
        }
    }

    // The end.

    /// Runs until nothing is in flight.
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
        panic!("does not settle");
    }

    /// Nothing is in flight, so a blocked pop covers every taker that waits, and all others have their
    /// answers.
    pub(super) fn check_rest(&self) {
        let in_place = |call: &Call| match (&call.action, &call.stage) {
            (Action::Block { keys, .. }, Stage::Blocked) if !call.interrupted => Some(keys.clone()),
            _ => None,
        };
        let blocked: Vec<Vec<Keys>> = self.calls.iter().filter_map(in_place).collect();
        for (id, waiter) in &self.dispatcher.waiters {
            assert_eq!(waiter.wait, Wait::Endless, "{id} still waits");
            let covered = blocked.iter().any(|blocked| waiter.keys.iter().all(|keys| blocked.contains(keys)));
            assert!(covered, "{id} is forgotten");
            for list in self.names(&waiter.keys) {
                assert!(self.lists[list].is_empty(), "{id} waits, and {list} has {:?}", self.lists[list]);
            }
        }
        assert!(
            self.dispatcher.lists.values().all(|list| list.undelivered.is_empty()),
            "{:?}",
            self.dispatcher.lists
        );
        let waiting = self.takers.iter().filter(|taker| matches!(taker.answer, Delivery::Pending(_)));
        assert!(waiting.map(|taker| taker.id).eq(self.dispatcher.waiters.keys().copied()));
    }

    /// All takers leave, or the client closes: nothing is left over, and every payload is in one place.
    pub(super) fn end(mut self, close: bool) {
        if close {
            self.closed = true;
            self.dispatcher.close();
            self.act();
            assert!(
                self.takers.iter().all(|taker| matches!(taker.answer, Delivery::Holds(_))),
                "a waiting taker got no answer"
            );
        }
        self.wrong = vec![false; NAMES.len()];
        while !self.takers.is_empty() {
            // Half of the takers that hold payloads read them, the others are dropped with them.
            let holds = matches!(self.takers[0].answer, Delivery::Holds(_));
            if holds && self.takers.len().is_multiple_of(2) {
                self.read(0);
            } else {
                self.drop_taker(0);
            }
        }
        self.settle();
        assert!(self.dispatcher.is_idle(), "{:?}", self.dispatcher);
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
