//! The dispatcher between takers and a simulated server. Commands and replies are late, lost or reordered.

mod checks;
mod events;
mod server;
mod task;

use std::collections::VecDeque;

use events::{Break, Event, event};
use proptest::prelude::*;

use super::*;

proptest! {
    // The faults that are left to find occur once in thousands of cases.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(2048), ..ProptestConfig::default() })]

    #[test]
    fn no_payload_is_lost_and_no_taker_forgotten(
        events in proptest::collection::vec(event(), 0..100),
        tail: bool,
        moves in proptest::bool::weighted(0.2),
        close: bool,
        hot_limit in proptest::sample::select(vec![1_usize, 2, 64]),
        together in 1_usize..4,
    ) {
        let mut world = World::new(if tail { End::Tail } else { End::Head }, moves);
        world.dispatcher.hot_limit = hot_limit;
        world.dispatcher.in_a_row = 1;
        world.together = together;
        for event in events {
            world.happen(event);
        }
        world.settle();
        world.check_rest();
        assert!(world.actions <= 4 * world.events, "{} actions after {} events", world.actions, world.events);
        world.end(close);
    }
}

const NAMES: [&str; 3] = ["a", "b", "c"];

type Name = usize;

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
    /// Wants everything that is there at once.
    at_once: bool,
    /// The step at which it began.
    came: usize,
    answer: Delivery,
}

enum Delivery {
    Pending(oneshot::Receiver<Answer>),
    Holds(Popped),
}

/// A command in flight.
struct Call {
    action: Action,
    interrupted: bool,
    stage: Stage,
}

enum Stage {
    Sent,
    /// Failed once, and is retried until it succeeds.
    Trying,
    Blocked,
    PopEnded(PopOutcome),
    TryPopped(Result<Vec<Bytes>, OpError>),
    AnyPopped(Option<Vec<Vec<Bytes>>>),
    Examined(Vec<Name>),
}

struct World {
    dispatcher: Dispatcher,
    end: End,
    keys: Vec<Keys>,
    lists: Vec<VecDeque<Bytes>>,
    wrong: Vec<bool>,
    /// The list that payloads are moved to, if the dispatcher moves.
    destination: Option<Vec<Bytes>>,
    calls: Vec<Call>,
    requests: VecDeque<Request>,
    returned: mpsc::UnboundedReceiver<Payloads>,
    takers: Vec<Taker>,
    taken: Vec<Bytes>,
    lost: Vec<Bytes>,
    /// The payloads that have arrived from the server, in order.
    arrived: Vec<Bytes>,
    pushed: u32,
    ids: WaiterId,
    /// Whether the blocked pop of each tier has certainly looked at its lists.
    looked: [bool; 2],
    step: usize,
    /// The actions of this number of steps run together.
    together: usize,
    /// The last step at which each list was empty, and at which its key had another type.
    empty: Vec<usize>,
    mistyped: Vec<usize>,
    broken: usize,
    closed: bool,
    /// Events from outside, and the actions that followed.
    events: usize,
    actions: usize,
}

impl World {
    fn new(end: End, moves: bool) -> Self {
        let (outbox, returned) = outbox();
        let end = if moves { End::Tail } else { end };
        Self {
            dispatcher: if moves { Dispatcher::moving() } else { Dispatcher::taking(end, outbox) },
            end,
            keys: NAMES.iter().map(Keys::new).collect(),
            lists: vec![VecDeque::new(); NAMES.len()],
            wrong: vec![false; NAMES.len()],
            destination: moves.then(Vec::new),
            calls: Vec::new(),
            requests: VecDeque::new(),
            returned,
            takers: Vec::new(),
            taken: Vec::new(),
            lost: Vec::new(),
            arrived: Vec::new(),
            pushed: 0,
            ids: 0,
            looked: [false; 2],
            step: 1,
            together: 1,
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
            Event::Join { wait, lists, in_order, want, races } => {
                let (lists, want) = if self.destination.is_some() { (vec![0], 1) } else { (lists, want) };
                let wait = if lists.len() == 1 && wait == Wait::Expired { Wait::None } else { wait };
                self.join(wait, &lists, in_order, want);
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
                (self.takers[at].patient, self.takers[at].at_once) = (false, false);
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
                // Enough time passes that no command and no reply is in flight.
                let blocked = |call: &Call| matches!(call.action, Action::Block { .. });
                if self.calls.iter().all(|call| !blocked(call) || matches!(call.stage, Stage::Blocked)) {
                    self.looked = [true; 2];
                }
            }
        }
        self.look_around();
    }

    /// Records the state of the server.
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
}
