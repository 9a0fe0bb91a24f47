//! The lane between takers and a simulated server, with everything in between late, lost or out of order.

mod checks;
mod events;
mod server;
mod task;

use std::collections::VecDeque;

use events::{Break, Event, event};
use proptest::prelude::*;

use super::*;

proptest! {
    // What is left to find comes once in thousands.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(2048), ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_and_nobody_forgotten(
        events in proptest::collection::vec(event(), 0..100),
        tail: bool,
        moves in proptest::bool::weighted(0.2),
        close: bool,
        most_hot in proptest::sample::select(vec![1_usize, 2, 64]),
        together in 1_usize..4,
    ) {
        let mut world = World::new(if tail { End::Tail } else { End::Head }, moves);
        world.lane.most_hot = most_hot;
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
    /// Wants all that there is at once.
    at_once: bool,
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
    returned: mpsc::UnboundedReceiver<Batch>,
    takers: Vec<Taker>,
    taken: Vec<Bytes>,
    lost: Vec<Bytes>,
    /// What has arrived from the server, in this order.
    arrived: Vec<Bytes>,
    pushed: u32,
    ids: WaiterId,
    /// Whether the parked pop has been so for long.
    looked: [bool; 2],
    step: usize,
    /// Of so many steps in a row, the lane's actions are done together.
    together: usize,
    /// The last step at which each list was empty, and at which it was none.
    empty: Vec<usize>,
    mistyped: Vec<usize>,
    broken: usize,
    closed: bool,
    /// What came from outside, and what the lane made of it.
    events: usize,
    actions: usize,
}

impl World {
    fn new(end: End, moves: bool) -> Self {
        let (outbox, returned) = outbox();
        let end = if moves { End::Tail } else { end };
        Self {
            lane: if moves { Lane::moving() } else { Lane::taking(end, outbox) },
            end,
            keys: NAMES.iter().map(|name| Keys::new(name)).collect(),
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
                // So long no command and no reply is on its way.
                let parked = |call: &Call| matches!(call.action, Action::Park { .. });
                if self.calls.iter().all(|call| !parked(call) || matches!(call.stage, Stage::Blocked)) {
                    self.looked = [true; 2];
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
}
