//! The lane between takers and a simulated server, with everything in between late, lost or out of order.

use std::collections::VecDeque;

use proptest::prelude::*;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use super::*;

const NAMES: [&str; 3] = ["a", "b", "c"];

type Name = usize;

/// One of those there are, modulo their number.
type Which = usize;

#[derive(Clone, Debug)]
enum Event {
    /// A taker comes; if it races the one before, its request overtakes the other's.
    Join { patience: Patience, lists: Vec<Name>, want: usize, races: bool },
    /// A taker is dropped, whether it was answered or not.
    Drop(Which),
    /// A taker's time is over; perhaps there has been no connection for long.
    Expire(Which, bool),
    /// A taker reads its answer.
    Read(Which),
    /// The task receives what a taker sent.
    Serve,
    /// The task receives what comes back unread.
    Return,
    /// Some other client pushes.
    Push(Name),
    /// Some other client makes the list another type, or a list again.
    Retype(Name),
    /// The server runs a command.
    Run(Which),
    /// A reply arrives.
    Reply(Which),
    /// A command or its reply is lost with the connection.
    Break(Which, Break),
    /// The interrupt reaches the server.
    Unblock,
    /// A parked pop has been parked for as long as it may.
    Slice,
    /// Time passes.
    Pass,
}

#[derive(Clone, Copy, Debug)]
enum Break {
    BeforeItWasSent,
    BeforeItWasRun,
    AfterItWasRun,
}

fn event() -> impl Strategy<Value = Event> {
    let which = || 0_usize..100;
    let name = || 0..NAMES.len();
    let some = || proptest::sample::subsequence(vec![0, 1, 2], 1..=3).prop_shuffle();
    let join = prop_oneof![
        3 => (name(), 1_usize..=3).prop_map(|(list, want)| (Patience::None, vec![list], want)),
        4 => (name(), 1_usize..=3).prop_map(|(list, want)| (Patience::Endless, vec![list], want)),
        3 => some().prop_map(|lists| (Patience::Endless, lists, 1)),
        1 => some().prop_map(|lists| (Patience::Over, lists, 1)),
    ];
    let how =
        prop_oneof![Just(Break::BeforeItWasSent), Just(Break::BeforeItWasRun), Just(Break::AfterItWasRun)];
    prop_oneof![
        8 => (join, proptest::bool::weighted(0.2))
            .prop_map(|((patience, lists, want), races)| Event::Join { patience, lists, want, races }),
        3 => which().prop_map(Event::Drop),
        2 => (which(), proptest::bool::weighted(0.1)).prop_map(|(taker, down)| Event::Expire(taker, down)),
        2 => which().prop_map(Event::Read),
        12 => Just(Event::Serve),
        2 => Just(Event::Return),
        8 => name().prop_map(Event::Push),
        1 => name().prop_map(Event::Retype),
        10 => which().prop_map(Event::Run),
        10 => which().prop_map(Event::Reply),
        2 => (which(), how).prop_map(|(call, how)| Event::Break(call, how)),
        3 => Just(Event::Unblock),
        1 => Just(Event::Slice),
        2 => Just(Event::Pass),
    ]
}

/// What a taker sent to the task.
enum Request {
    Join(WaiterId, Waiter),
    Leave(WaiterId),
    Expire(WaiterId, bool),
}

struct Taker {
    id: WaiterId,
    lists: Vec<Name>,
    want: usize,
    patient: bool,
    /// The step at which it came.
    came: usize,
    answer: Waiting,
}

enum Waiting {
    Yet(oneshot::Receiver<Answer>),
    Holds(Popped),
}

/// A command on its way.
struct Call {
    action: Action,
    interrupted: bool,
    stage: Stage,
}

enum Stage {
    Sent,
    /// Failed once, and tried again until it succeeds.
    Trying,
    Blocked,
    Parked(Parked),
    Asked(Result<Vec<Bytes>, OpError>),
    Examined(Vec<Name>),
}

struct World {
    lane: Lane,
    end: End,
    keys: Vec<Keys>,
    lists: Vec<VecDeque<Bytes>>,
    wrong: Vec<bool>,
    /// Where payloads are moved, in a lane that moves.
    destination: Option<Vec<Bytes>>,
    calls: Vec<Call>,
    requests: VecDeque<Request>,
    home: Home,
    returned: mpsc::UnboundedReceiver<Popped>,
    takers: Vec<Taker>,
    taken: Vec<Bytes>,
    lost: Vec<Bytes>,
    /// What has arrived from the server, in this order.
    arrived: Vec<Bytes>,
    pushed: u32,
    ids: WaiterId,
    now: Instant,
    step: usize,
    /// The last step at which each list was empty, and at which it was none.
    empty: Vec<usize>,
    mistyped: Vec<usize>,
    broken: usize,
    closed: bool,
    /// What came from outside, and what the lane made of it.
    events: usize,
    actions: usize,
}

fn wrong_type() -> OpError {
    OpError::Server("WRONGTYPE Operation against a key holding the wrong kind of value".into())
}

impl World {
    fn new(end: End, moves: bool) -> Self {
        let (returns, returned) = mpsc::unbounded_channel();
        let home = Home { returns, on_their_way: TaskTracker::new() };
        let end = if moves { End::Tail } else { end };
        Self {
            lane: Lane::new(end, (!moves).then(|| home.clone())),
            end,
            keys: NAMES.iter().map(|name| Keys::new(name)).collect(),
            lists: vec![VecDeque::new(); NAMES.len()],
            wrong: vec![false; NAMES.len()],
            destination: moves.then(Vec::new),
            calls: Vec::new(),
            requests: VecDeque::new(),
            home,
            returned,
            takers: Vec::new(),
            taken: Vec::new(),
            lost: Vec::new(),
            arrived: Vec::new(),
            pushed: 0,
            ids: 0,
            now: Instant::now(),
            step: 1,
            empty: vec![1; NAMES.len()],
            mistyped: vec![0; NAMES.len()],
            broken: 0,
            closed: false,
            events: 0,
            actions: 0,
        }
    }

    fn name(&self, keys: &Keys) -> Name {
        self.keys.iter().position(|known| known == keys).unwrap()
    }

    fn names(&self, keys: &[Keys]) -> Vec<Name> {
        keys.iter().map(|keys| self.name(keys)).collect()
    }

    fn happen(&mut self, event: Event) {
        self.step += 1;
        match event {
            Event::Join { patience, lists, want, races } => {
                let (lists, want) = if self.destination.is_some() { (vec![0], 1) } else { (lists, want) };
                let patience =
                    if lists.len() == 1 && patience == Patience::Over { Patience::None } else { patience };
                self.join(patience, &lists, want);
                if let [.., Request::Join(..), Request::Join(..)] = self.requests.make_contiguous()
                    && races
                {
                    let last = self.requests.len() - 1;
                    self.requests.swap(last - 1, last);
                }
            }
            Event::Drop(which) => {
                let Some(at) = which.checked_rem(self.takers.len()) else { return };
                self.drop_taker(at);
            }
            Event::Expire(which, down) => {
                let Some(at) = which.checked_rem(self.takers.len()) else { return };
                self.events += 1;
                self.takers[at].patient = false;
                self.requests.push_back(Request::Expire(self.takers[at].id, down));
            }
            Event::Read(which) => {
                let Some(at) = which.checked_rem(self.takers.len()) else { return };
                self.read(at);
            }
            Event::Serve => self.serve(),
            Event::Return => self.take_back(),
            Event::Push(list) => self.push(list),
            Event::Retype(list) => {
                self.events += 1;
                if self.lists[list].is_empty() {
                    self.wrong[list] = !self.wrong[list];
                }
            }
            Event::Run(which) => {
                let Some(at) = which.checked_rem(self.calls.len()) else { return };
                self.run(at);
            }
            Event::Reply(which) => {
                let Some(at) = which.checked_rem(self.calls.len()) else { return };
                self.reply(at);
            }
            Event::Break(which, how) => {
                let Some(at) = which.checked_rem(self.calls.len()) else { return };
                self.break_off(at, how);
            }
            Event::Unblock => self.unblock(false),
            Event::Slice => self.unblock(true),
            Event::Pass => {
                // So long no command and no reply is on its way.
                let parked = |call: &Call| matches!(call.action, Action::Park { .. });
                if self.calls.iter().all(|call| !parked(call) || matches!(call.stage, Stage::Blocked)) {
                    self.now += LOOKED;
                }
            }
        }
        self.look_around();
    }

    /// Remembers what the server holds now.
    fn look_around(&mut self) {
        for list in 0..NAMES.len() {
            if self.lists[list].is_empty() {
                self.empty[list] = self.step;
            }
            if self.wrong[list] {
                self.mistyped[list] = self.step;
            }
        }
    }

    // The takers.

    fn join(&mut self, patience: Patience, lists: &[Name], want: usize) {
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
            came: self.step,
            answer: Waiting::Yet(receiver),
        });
    }

    fn drop_taker(&mut self, at: usize) {
        self.events += 1;
        let taker = self.takers.remove(at);
        if matches!(taker.answer, Waiting::Yet(_)) {
            self.requests.push_back(Request::Leave(taker.id));
        }
    }

    fn read(&mut self, at: usize) {
        if matches!(self.takers[at].answer, Waiting::Holds(_)) {
            let taker = self.takers.remove(at);
            let Waiting::Holds(popped) = taker.answer else { unreachable!() };
            let payloads = popped.into_payloads();
            assert!((1..=taker.want).contains(&payloads.len()));
            self.check_sequence(&payloads);
            self.taken.extend(payloads);
        }
    }

    // The task.

    fn serve(&mut self) {
        match self.requests.pop_front() {
            Some(Request::Join(id, waiter)) => self.lane.join(id, waiter),
            Some(Request::Leave(id)) => self.lane.leave(id),
            Some(Request::Expire(id, down)) => {
                self.broken += usize::from(down);
                self.lane.expire(id, self.now, down.then(|| OpError::NotExecuted("down for long".into())));
            }
            None => return,
        }
        self.act();
    }

    fn take_back(&mut self) {
        if let Ok(popped) = self.returned.try_recv() {
            self.lane.given_back(popped);
            self.act();
        }
    }

    fn reply(&mut self, at: usize) {
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
            (_, Stage::Parked(outcome)) => self.lane.parked(outcome),
            (Action::Ask { keys, count }, Stage::Asked(result)) => self.lane.asked(&keys, count, result),
            (_, Stage::Examined(wrong)) => {
                let wrong: Vec<Keys> = wrong.iter().map(|list| self.keys[*list].clone()).collect();
                self.lane.examined(&wrong);
            }
            (action, _) => panic!("no reply to {action:?}"),
        }
        self.act();
    }

    /// Does what the lane asks for, and looks at what it told the takers.
    fn act(&mut self) {
        let mut asked = HashSet::new();
        for action in self.lane.next_actions(self.now) {
            self.actions += 1;
            match &action {
                Action::Interrupt => {
                    let parked =
                        self.calls.iter_mut().find(|call| matches!(call.action, Action::Park { .. }));
                    parked.expect("nothing to interrupt").interrupted = true;
                    continue;
                }
                Action::Park { keys, .. } => {
                    assert!(!self.is_parked(), "parks a second pop");
                    self.check_order(keys);
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
            assert!(list.waiting.is_empty() || list.unclaimed.is_empty(), "{list:?}");
        }
    }

    fn is_parked(&self) -> bool {
        self.calls.iter().any(|call| matches!(call.action, Action::Park { .. }))
    }

    /// Never is more asked for than is waited for, unless the pop is being interrupted; nor before what comes back is
    /// there.
    fn check_measure(&self, list: Name) {
        let keys = &self.keys[list];
        let returning = |call: &Call| {
            let back = matches!(&call.action, Action::GiveBack { keys: back, .. } if back == keys);
            back && matches!(call.stage, Stage::Sent)
        };
        assert!(!self.calls.iter().any(returning), "pops while something comes back");
        let in_flight = |call: &Call| match &call.action {
            Action::Park { keys: parked, .. } => usize::from(parked.contains(keys) && !call.interrupted),
            Action::Ask { keys: asked, count } if asked == keys => *count,
            _ => 0,
        };
        let asked: usize = self.calls.iter().map(in_flight).sum();
        let waiters = self.lane.waiters.values().filter(|waiter| waiter.keys.contains(keys));
        let wanted: usize = waiters.map(|waiter| waiter.want).sum();
        assert!(asked <= wanted, "asks for {asked} of {list}, and {wanted} are wanted");
    }

    /// What goes on together keeps the order in which it arrived.
    fn check_sequence(&self, payloads: &[Bytes]) {
        let place = |payload: &Bytes| self.arrived.iter().rposition(|arrived| arrived == payload);
        assert!(payloads.iter().map(place).is_sorted(), "{payloads:?} arrived as {:?}", self.arrived);
    }

    /// What a list brings goes to its first taker, who is promised that those it named before are looked at before.
    fn check_order(&self, parked: &[Keys]) {
        for (at, keys) in parked.iter().enumerate() {
            assert!(!parked[..at].contains(keys), "parks on {keys:?} twice");
            let first = self.lane.waiters.values().find(|waiter| waiter.keys.contains(keys));
            let named_before = first.unwrap().keys.iter().take_while(|other| *other != keys);
            for other in named_before {
                assert!(!parked[at..].contains(other), "{keys:?} comes before {other:?}");
            }
        }
    }

    fn check_answers(&mut self) {
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
    fn check_turn(&self, taker: &Taker, keys: &Keys) {
        assert!(taker.lists.contains(&self.name(keys)), "{} got something from {keys:?}", taker.id);
        let first = self.lane.waiters.iter().find(|(_, waiter)| waiter.keys.contains(keys));
        assert!(first.is_none_or(|(id, _)| *id > taker.id), "{} came before {}", first.unwrap().0, taker.id);
    }

    /// Whoever gets nothing gets it for a reason.
    fn check_nothing(&self, taker: &Taker, error: Option<OpError>) {
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

    // The server.

    fn push(&mut self, list: Name) {
        self.events += 1;
        if !self.wrong[list] {
            self.lists[list].push_back(Bytes::copy_from_slice(&self.pushed.to_be_bytes()));
            self.pushed += 1;
            self.serve_blocked();
        }
    }

    fn pop(&mut self, list: Name) -> Option<Bytes> {
        let payload = match self.end {
            End::Head => self.lists[list].pop_front(),
            End::Tail => self.lists[list].pop_back(),
        };
        if let (Some(payload), Some(destination)) = (&payload, &mut self.destination) {
            destination.push(payload.clone());
        }
        self.look_around();
        payload
    }

    /// What a blocking pop finds; `None`: nothing yet.
    fn look(&mut self, lists: &[Name]) -> Option<Parked> {
        for list in lists {
            if self.wrong[*list] {
                return Some(Parked::Failed(wrong_type()));
            }
            if let Some(payload) = self.pop(*list) {
                return Some(Parked::Payload(self.keys[*list].clone(), payload));
            }
        }
        None
    }

    /// Who is blocked gets what is pushed, but does not learn of another type.
    fn serve_blocked(&mut self) {
        for at in 0..self.calls.len() {
            let Action::Park { keys, .. } = &self.calls[at].action else { continue };
            if matches!(self.calls[at].stage, Stage::Blocked) {
                let mut lists = self.names(keys);
                lists.retain(|list| !self.wrong[*list]);
                if let Some(outcome) = self.look(&lists) {
                    self.calls[at].stage = Stage::Parked(outcome);
                }
            }
        }
    }

    fn run(&mut self, at: usize) {
        let first_try = matches!(self.calls[at].stage, Stage::Sent);
        if !first_try && !matches!(self.calls[at].stage, Stage::Trying) {
            return;
        }
        match &self.calls[at].action {
            Action::Park { hurry: false, .. }
                if self.calls[at].interrupted && self.step.is_multiple_of(2) =>
            {
                self.calls[at].stage = Stage::Parked(Parked::NotSent);
            }
            Action::Park { keys, .. } => {
                let lists = self.names(keys);
                self.calls[at].stage = self.look(&lists).map_or(Stage::Blocked, Stage::Parked);
            }
            Action::Ask { keys, count } => {
                let (list, count) = (self.name(keys), *count);
                let count = if self.destination.is_some() { 1 } else { count };
                let result = match self.wrong[list] {
                    true => Err(wrong_type()),
                    false => Ok((0..count).map_while(|_| self.pop(list)).collect()),
                };
                self.calls[at].stage = Stage::Asked(result);
            }
            Action::Examine { keys } => {
                let mut lists = self.names(keys);
                lists.retain(|list| self.wrong[*list]);
                self.calls[at].stage = Stage::Examined(lists);
            }
            Action::GiveBack { keys, .. } => {
                let (keys, list) = (keys.clone(), self.name(keys));
                if self.wrong[list] {
                    // The first try has failed; nobody waits for the others.
                    self.calls[at].stage = Stage::Trying;
                } else {
                    let Action::GiveBack { payloads, .. } = self.calls.remove(at).action else {
                        unreachable!()
                    };
                    for payload in payloads.into_iter().rev() {
                        match self.end {
                            End::Head => self.lists[list].push_front(payload),
                            End::Tail => self.lists[list].push_back(payload),
                        }
                    }
                    self.serve_blocked();
                }
                if first_try {
                    self.lane.returned(&keys);
                    self.act();
                }
            }
            Action::Interrupt => unreachable!(),
        }
    }

    /// Ends a blocked pop, because it is interrupted, or has been there for long.
    fn unblock(&mut self, long: bool) {
        for call in &mut self.calls {
            let Action::Park { .. } = call.action else { continue };
            if matches!(call.stage, Stage::Blocked) && (long || call.interrupted) {
                self.events += usize::from(long);
                call.stage = Stage::Parked(Parked::Empty);
            }
        }
    }

    /// The connection breaks; a server may run later what it has received.
    fn break_off(&mut self, at: usize, how: Break) {
        if let Action::GiveBack { keys, .. } = &self.calls[at].action {
            let keys = keys.clone();
            if matches!(how, Break::AfterItWasRun) {
                // A marker on the server tells the next try that it was done.
                self.run(at);
            } else if matches!(self.calls[at].stage, Stage::Sent) {
                self.calls[at].stage = Stage::Trying;
                self.lane.returned(&keys);
                self.act();
            }
            return;
        }
        self.events += 1;
        self.broken += 1;
        let sent = matches!(self.calls[at].stage, Stage::Sent);
        if sent && matches!(how, Break::AfterItWasRun) {
            self.run(at);
        }
        let error = match how {
            Break::BeforeItWasSent if sent => OpError::NotExecuted("no connection".into()),
            _ => OpError::Unknown("the connection broke".into()),
        };
        let call = &mut self.calls[at];
        let stage = match call.action {
            Action::Park { .. } => Stage::Parked(Parked::Failed(error)),
            Action::Ask { .. } => Stage::Asked(Err(error)),
            _ => Stage::Examined(Vec::new()),
        };
        let lost = match std::mem::replace(&mut call.stage, stage) {
            Stage::Parked(Parked::Payload(_, payload)) => vec![payload],
            Stage::Asked(Ok(payloads)) => payloads,
            _ => Vec::new(),
        };
        if self.destination.is_none() {
            self.lost.extend(lost);
        }
    }

    // The end.

    /// Until nothing is on its way any more.
    fn settle(&mut self) {
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
    fn check_rest(&self) {
        let parked = self.calls.iter().find_map(|call| match (&call.action, &call.stage) {
            (Action::Park { keys, .. }, Stage::Blocked) if !call.interrupted => Some(keys),
            _ => None,
        });
        for (id, waiter) in &self.lane.waiters {
            assert_eq!(waiter.patience, Patience::Endless, "{id} waits on");
            let covered = waiter.keys.iter().all(|keys| parked.is_some_and(|parked| parked.contains(keys)));
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
    fn end(mut self, close: bool) {
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
        assert!(self.calls.is_empty() && self.home.on_their_way.is_empty());

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

proptest! {
    #[test]
    fn nothing_is_lost_and_nobody_forgotten(
        events in proptest::collection::vec(event(), 0..100),
        tail: bool,
        moves in proptest::bool::weighted(0.2),
        close: bool,
    ) {
        let mut world = World::new(if tail { End::Tail } else { End::Head }, moves);
        for event in events {
            world.happen(event);
        }
        world.settle();
        world.check_rest();
        assert!(world.actions <= 3 * world.events, "{} actions after {} events", world.actions, world.events);
        world.end(close);
    }
}

/// A lane step by step.
struct Steps {
    lane: Lane,
    now: Instant,
    returned: mpsc::UnboundedReceiver<Popped>,
}

impl Steps {
    fn new() -> Self {
        let (returns, returned) = mpsc::unbounded_channel();
        let home = Home { returns, on_their_way: TaskTracker::new() };
        Self { lane: Lane::new(End::Head, Some(home)), now: Instant::now(), returned }
    }

    fn join(&mut self, id: WaiterId, names: &[&str], patience: Patience) -> oneshot::Receiver<Answer> {
        self.join_for(1, id, names, patience)
    }

    fn join_for(
        &mut self,
        want: usize,
        id: WaiterId,
        names: &[&str],
        patience: Patience,
    ) -> oneshot::Receiver<Answer> {
        let (answer, receiver) = oneshot::channel();
        self.lane.join(id, Waiter { keys: keys(names), want, patience, answer });
        receiver
    }

    fn actions(&mut self) -> Vec<Action> {
        self.lane.next_actions(self.now)
    }

    fn parked(&mut self, name: &str, payload: &'static str) {
        self.lane.parked(Parked::Payload(Keys::new(name), payload.into()));
    }

    fn asked(&mut self, name: &str, count: usize, payloads: &[&'static str]) {
        self.lane.asked(
            &Keys::new(name),
            count,
            Ok(payloads.iter().map(|payload| (*payload).into()).collect()),
        );
    }
}

fn keys(names: &[&str]) -> Vec<Keys> {
    names.iter().map(|name| Keys::new(name)).collect()
}

fn ask(name: &str, count: usize) -> Action {
    Action::Ask { keys: Keys::new(name), count }
}

fn park(names: &[&str], hurry: bool) -> Action {
    Action::Park { keys: keys(names), hurry }
}

/// What a taker got; an empty text for "nothing".
fn got(receiver: &mut oneshot::Receiver<Answer>) -> Option<String> {
    let answer = receiver.try_recv().ok()?.unwrap();
    let payloads = answer.map(Popped::into_payloads).unwrap_or_default().concat();
    Some(String::from_utf8(payloads).unwrap())
}

#[test]
fn a_question_is_not_forgotten_over_the_parked_pop() {
    let mut steps = Steps::new();
    let mut patient = steps.join(0, &["a"], Patience::Endless);
    assert_eq!(steps.actions(), [park(&["a"], false)]);
    let mut poll = steps.join(1, &["a"], Patience::None);
    assert_eq!(steps.actions(), [ask("a", 1)]);
    steps.parked("a", "1");
    assert_eq!(steps.actions(), []);
    steps.asked("a", 1, &["2"]);
    assert_eq!(steps.actions(), []);
    assert_eq!((got(&mut patient).as_deref(), got(&mut poll).as_deref()), (Some("1"), Some("2")));
    assert!(steps.lane.is_idle());
}

#[test]
fn a_move_that_brings_one_is_a_full_answer() {
    let mut steps = Steps::new();
    steps.lane = Lane::new(End::Tail, None);
    let mut polls = [0, 1].map(|id| steps.join(id, &["a"], Patience::None));
    assert_eq!(steps.actions(), [ask("a", 1)]);
    steps.asked("a", 1, &["1"]);
    assert_eq!(steps.actions(), [ask("a", 1)]);
    steps.asked("a", 1, &["2"]);
    assert_eq!(polls.each_mut().map(got), [Some("1".into()), Some("2".into())]);
}

#[test]
fn a_slow_reply_is_waited_for() {
    let mut steps = Steps::new();
    let mut taker = steps.join(0, &["a"], Patience::Endless);
    assert_eq!(steps.actions(), [park(&["a"], false)]);
    steps.now += Duration::from_millis(300);
    steps.lane.expire(0, steps.now, None);
    assert_eq!(steps.actions(), [Action::Interrupt]);
    assert_eq!(got(&mut taker), None);
    steps.parked("a", "1");
    assert_eq!(got(&mut taker).as_deref(), Some("1"));
}

#[test]
fn a_pop_parked_for_long_has_looked() {
    let mut steps = Steps::new();
    let _other = steps.join(0, &["a"], Patience::Endless);
    let mut taker = steps.join(1, &["a"], Patience::Endless);
    assert_eq!(steps.actions(), [ask("a", 2)]);
    steps.asked("a", 2, &[]);
    assert_eq!(steps.actions(), [park(&["a"], false)]);
    steps.now += LOOKED;
    steps.lane.expire(1, steps.now, None);
    assert_eq!(got(&mut taker).as_deref(), Some(""));
    assert_eq!(steps.actions(), []);
}

/// Each question is answered when the next poll is there already, so the list is being asked all the time.
#[test]
fn polls_without_a_gap_keep_nobody_waiting() {
    let mut steps = Steps::new();
    let mut polls = vec![steps.join(0, &["a"], Patience::None)];
    assert_eq!(steps.actions(), [ask("a", 1)]);
    let mut taker = steps.join(1, &["a", "b"], Patience::Over);
    for id in 2..10 {
        polls.push(steps.join(id, &["a"], Patience::None));
        for action in steps.actions() {
            if let Action::Park { hurry: true, .. } = action {
                steps.lane.parked(Parked::Empty);
            }
        }
        steps.asked("a", 1, &[]);
    }
    assert_eq!(got(&mut taker).as_deref(), Some(""));
}

#[test]
fn no_pop_stays_parked_for_polls() {
    let mut steps = Steps::new();
    let mut patient = steps.join(0, &["a"], Patience::Endless);
    assert_eq!(steps.actions(), [park(&["a"], false)]);
    let _poll = steps.join(1, &["a"], Patience::None);
    assert_eq!(steps.actions(), [ask("a", 1)]);
    // Its question brings what the patient one had the pop parked for.
    steps.asked("a", 1, &["1"]);
    assert_eq!(got(&mut patient).as_deref(), Some("1"));
    assert_eq!(steps.actions(), [ask("a", 1), Action::Interrupt]);
}

#[test]
fn lists_are_looked_at_in_the_order_in_which_they_were_named() {
    // Whatever comes first by chance: with the next taker's lists, too.
    for _ in 0..20 {
        let mut steps = Steps::new();
        let _takers = [
            steps.join(0, &["b", "a"], Patience::Endless),
            steps.join(1, &["c", "a"], Patience::Endless),
            steps.join(2, &["a", "b"], Patience::Endless),
        ];
        let actions = steps.actions();
        let [Action::Park { keys, .. }] = &actions[..] else { panic!("{actions:?}") };
        let place = |name| keys.iter().position(|keys| *keys == Keys::new(name)).unwrap();
        assert!(place("b") < place("a"), "{keys:?}");
    }
}

#[test]
fn the_list_served_longest_ago_comes_first() {
    let mut steps = Steps::new();
    let names = ["a", "b", "c"];
    let mut takers: Vec<_> =
        (0..30).map(|id| steps.join(id, &[names[id as usize % 3]], Patience::Endless)).collect();
    for action in steps.actions() {
        let Action::Ask { keys, count } = action else { panic!("{action:?}") };
        steps.lane.asked(&keys, count, Ok(Vec::new()));
    }
    // All three are always full; after each payload the others of its list are asked for, and find nothing.
    let mut served = Vec::new();
    for _ in 0..9 {
        for action in steps.actions() {
            match action {
                Action::Park { keys, .. } => {
                    served.push(String::from_utf8(keys[0].target().to_vec()).unwrap());
                    steps.lane.parked(Parked::Payload(keys[0].clone(), "1".into()));
                }
                Action::Ask { keys, count } => steps.lane.asked(&keys, count, Ok(Vec::new())),
                action => panic!("{action:?}"),
            }
        }
    }
    assert!(
        served.len() > 3 && served.iter().zip(&served[3..]).all(|(list, again)| list == again),
        "{served:?}"
    );
    takers.iter_mut().for_each(oneshot::Receiver::close);
}

#[test]
fn who_is_gone_is_passed_over_and_nothing_changes_its_order() {
    let mut steps = Steps::new();
    let mut takers: Vec<_> = (0..4).map(|id| steps.join(id, &["a"], Patience::Endless)).collect();
    assert_eq!(steps.actions(), [ask("a", 4)]);
    drop(takers.remove(1));
    drop(takers.remove(2));
    steps.asked("a", 4, &["1", "2", "3", "4"]);
    assert_eq!(got(&mut takers[0]).as_deref(), Some("1"));
    let back = |payloads: &[&'static str]| Action::GiveBack {
        keys: Keys::new("a"),
        payloads: payloads.iter().map(|payload| (*payload).into()).collect(),
    };
    assert_eq!(steps.actions(), [back(&["3", "4"])]);
    steps.lane.returned(&Keys::new("a"));
    // Handed over, not read.
    drop(takers);
    let popped = steps.returned.try_recv().unwrap();
    steps.lane.given_back(popped);
    assert_eq!(steps.actions(), [back(&["2"])]);
    steps.lane.returned(&Keys::new("a"));
    assert_eq!(steps.actions(), []);
    assert!(steps.lane.is_idle());
}

#[test]
fn what_a_drain_leaves_keeps_its_order() {
    let mut steps = Steps::new();
    let gone = steps.join_for(3, 0, &["a"], Patience::None);
    assert_eq!(steps.actions(), [ask("a", 3)]);
    let mut drains = [1, 2].map(|id| steps.join_for(2, id, &["a"], Patience::None));
    drop(gone);
    steps.asked("a", 3, &["1", "2", "3"]);
    assert_eq!(drains.each_mut().map(got), [Some("12".into()), Some("3".into())]);
}

#[test]
fn a_poll_is_told_of_a_lost_connection_and_nobody_else() {
    let mut steps = Steps::new();
    let mut patient = steps.join(0, &["a"], Patience::Endless);
    let mut poll = steps.join(1, &["a"], Patience::None);
    assert_eq!(steps.actions(), [ask("a", 2)]);
    let error = OpError::Unknown("the connection broke".into());
    steps.lane.asked(&Keys::new("a"), 2, Err(error.clone()));
    assert_eq!(poll.try_recv().unwrap().unwrap_err(), error);
    assert_eq!(steps.actions(), [park(&["a"], false)]);
    steps.lane.parked(Parked::Failed(error.clone()));
    assert_eq!(steps.actions(), [park(&["a"], false)]);
    // Unless its time is over.
    steps.lane.expire(0, steps.now, None);
    assert_eq!(steps.actions(), [Action::Interrupt]);
    steps.lane.parked(Parked::Failed(error.clone()));
    assert_eq!(patient.try_recv().unwrap().unwrap_err(), error);
}

#[test]
fn an_empty_end_says_nothing_of_what_was_not_looked_at() {
    let mut steps = Steps::new();
    let _poll = steps.join(0, &["b"], Patience::None);
    assert_eq!(steps.actions(), [ask("b", 1)]);
    steps.lane.leave(0);
    let mut taker = steps.join(1, &["a", "b"], Patience::Over);
    // What the question brings is the taker's, so no more of that list is asked for.
    assert_eq!(steps.actions(), [park(&["a"], false)]);
    let mut late = steps.join(2, &["a", "b"], Patience::Endless);
    steps.lane.expire(2, steps.now, None);
    assert_eq!(steps.actions(), [Action::Interrupt]);
    steps.lane.parked(Parked::Empty);
    assert_eq!(got(&mut taker), None);
    // A second taker makes it two that are wanted.
    assert!(matches!(&steps.actions()[..], [Action::Park { keys, hurry: true }] if keys.len() == 2));
    // This one comes when the end of that pop may be on its way already.
    let mut last = steps.join(3, &["a", "b"], Patience::Over);
    steps.lane.parked(Parked::Empty);
    assert_eq!([&mut taker, &mut late, &mut last].map(got), [Some("".into()), Some("".into()), None]);
}

#[test]
fn one_wrong_list_spoils_it_for_nobody_else() {
    let mut steps = Steps::new();
    let mut right = steps.join(0, &["a"], Patience::Endless);
    let mut wrong = steps.join(1, &["b", "a"], Patience::Endless);
    assert!(matches!(&steps.actions()[..], [Action::Park { keys, .. }] if keys.len() == 2));
    steps.lane.parked(Parked::Failed(wrong_type()));
    assert!(matches!(&steps.actions()[..], [Action::Examine { keys }] if keys.len() == 2));
    // Nothing is parked while they are examined, whoever leaves or comes.
    let mut left = steps.join(2, &["b"], Patience::Endless);
    steps.lane.leave(2);
    let mut late = steps.join(3, &["a", "b"], Patience::Endless);
    assert_eq!(steps.actions(), []);
    steps.lane.examined(&keys(&["b"]));
    assert!(matches!(wrong.try_recv(), Ok(Err(OpError::Server(_)))));
    assert!(left.try_recv().is_err());
    // By now it may be a list.
    assert_eq!(steps.actions(), [park(&["a", "b"], false)]);
    assert_eq!([&mut right, &mut late].map(got), [None, None]);
}

/// One look at each of them whenever one comes would take minutes.
#[test]
fn ten_thousand_takers_of_one_list() {
    const TAKERS: WaiterId = 10_000;
    let mut steps = Steps::new();
    let mut takers: Vec<_> = Vec::new();
    let mut questions = Vec::new();
    for id in 0..TAKERS {
        takers.push(steps.join(id, &["a"], Patience::Endless));
        questions.extend(steps.actions());
    }
    assert_eq!(questions, [park(&["a"], false)]);
    steps.parked("a", "1");
    for _ in 0..TAKERS / ASK as WaiterId {
        let actions = steps.actions();
        let [Action::Ask { count, .. }] = actions[..] else { panic!("{actions:?}") };
        steps.asked("a", count, &vec!["1"; count]);
    }
    assert!(takers.iter_mut().all(|taker| got(taker).as_deref() == Some("1")));
    assert_eq!(steps.actions(), []);
    assert!(steps.lane.is_idle());
}
