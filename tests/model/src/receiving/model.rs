//! All that can happen, within bounds.

use stateright::{Model, Property};

use crate::receiving::client::{Client, Condition, Held, Op, Pace, Pop, Settlement};
use crate::receiving::properties;
use crate::receiving::protocol::{
    Call, DeadMode, Delivery, MessageId, Payload, Policy, Protocol, Time, Verb,
};
use crate::receiving::recovery::Look;
use crate::receiving::server::Server;
use crate::receiving::state::{Fate, Flaws, Left, State};

/// After this silence of all receivers, others give back what those have left. (An hour, in reality.)
pub const SILENT: Time = 6;

/// What is checked, and how much of it.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The variant of the protocol.
    pub protocol: Protocol,
    /// The settings of the receivers.
    pub policy: Policy,
    /// How many receivers there are, each in a process of its own.
    pub receivers: usize,
    /// The times of each of them; the others have those of the last one. The settings say nothing of leases.
    pub paces: &'static [Pace],
    /// How many messages a user handles at the same time.
    pub capacity: u8,
    /// How many payloads are ready from the beginning.
    pub ready: u8,
    /// How many are offered later.
    pub offers: u8,
    /// How many payloads others take, without receivers: Java.
    pub takes: u8,
    /// How many deliveries are settled in another way than by an acknowledgement.
    pub verbs: u8,
    /// In which ways.
    pub kinds_of_verbs: &'static [Verb],
    /// How often a user does not wait for messages any more.
    pub drops: u8,
    /// How often an operator releases all, removes a message, or lets one be delivered at once.
    pub operations: u8,
    /// How many receivers end.
    pub closes: u8,
    /// How many faults there are altogether.
    pub faults: u8,
    /// Which faults.
    pub kinds: Faults,
    /// Whether an outage may last as long as the silence after which others give back what receivers have
    /// left.
    pub long_outages: bool,
    /// Whether states count as the same in which receivers or payloads have changed places.
    pub symmetry: bool,
}

/// The kinds of faults.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// A connection is lost, and with it a command or a reply.
    pub disconnect: bool,
    /// What was sent on a connection that is lost may still be executed.
    pub late: bool,
    /// A process dies.
    pub crash: bool,
    /// A process stands still.
    pub stall: bool,
    /// The server cannot be reached for a while.
    pub outage: Option<Time>,
    /// The server's clock is set by so much.
    pub clock: &'static [Time],
}

impl Bounds {
    /// Two receivers of two messages, and nothing else.
    #[must_use]
    pub fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            policy: Policy { attempts: 2, losses: 3, lease: 4, dead: DeadMode::Keep },
            receivers: 2,
            paces: &[Pace { lease: 4, pause: 1, round_trip: 0 }],
            capacity: 1,
            ready: 2,
            offers: 0,
            takes: 0,
            verbs: 0,
            kinds_of_verbs: &[Verb::Retry(1), Verb::Snooze(0), Verb::Reject, Verb::Unread],
            drops: 0,
            operations: 0,
            closes: 0,
            faults: 0,
            kinds: Faults::default(),
            long_outages: false,
            symmetry: false,
        }
    }
}

/// One step. Numbers are those of receivers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// The receiver makes a call, which is executed.
    Call(usize),
    /// The same call again.
    Retry(usize),
    /// The receiver gets the reply.
    Receive(usize),
    /// The server moves a payload for a blocked receiver.
    Move(usize),
    /// The receiver learns that.
    Wake(usize),
    /// The blocked pop of a receiver that waits no longer is ended.
    Expire(usize),
    /// A user settles a delivery.
    Settle(usize, Settlement, Delivery),
    /// A user waits no longer, or waits again.
    Drop(usize),
    /// See [`Drop`](Self::Drop).
    Want(usize),
    /// A receiver ends.
    Close(usize),
    /// A dead process is started again.
    Start(usize),
    /// A process that stood still goes on.
    Resume(usize),
    /// Somebody else's call.
    Elsewhere(Call),
    /// Time passes.
    Tick,
    /// The server executes a command of a connection that was given up.
    ExecuteLate(usize),
    /// Fault: a call is lost before it is executed.
    LoseCall(usize),
    /// Fault: a reply is lost.
    LoseReply(usize),
    /// Fault: the connection of a blocked pop is lost.
    LosePop(usize),
    /// Fault: a process dies.
    Crash(usize),
    /// Fault: a process stands still.
    Stall(usize),
    /// Fault: nobody reaches the server for this long.
    Outage(Time),
    /// Fault: the server's clock is set.
    SetClock(Time),
}

impl Bounds {
    /// The times of a receiver.
    pub(super) fn pace(&self, n: usize) -> Pace {
        self.paces[n.min(self.paces.len() - 1)]
    }

    /// The settings of a receiver.
    pub(super) fn policy(&self, n: usize) -> Policy {
        Policy { lease: self.pace(n).lease, ..self.policy }
    }

    /// What receivers and the server do by themselves.
    fn progress(&self, state: &State, actions: &mut Vec<Action>) {
        for (n, client) in state.clients.iter().enumerate() {
            if client.pop == Some(Pop::Blocked) && !state.server.target.is_empty() {
                actions.push(Action::Move(n));
            }
            match client.condition {
                Condition::Dead => actions.push(Action::Start(n)),
                Condition::Stalled => actions.push(Action::Resume(n)),
                Condition::Runs => {
                    match &client.op {
                        None if client.needs_call(self.capacity, self.pace(n)) => {
                            actions.push(Action::Call(n))
                        }
                        None => {}
                        Some(op) if op.is_under_way(self.pace(n)) => {}
                        Some(Op { answer: None, .. }) => actions.push(Action::Retry(n)),
                        Some(_) => actions.push(Action::Receive(n)),
                    }
                    match client.pop {
                        Some(Pop::Replied(_)) => actions.push(Action::Wake(n)),
                        Some(Pop::Blocked) if !client.wants => actions.push(Action::Expire(n)),
                        _ => {}
                    }
                }
            }
        }
        let is_idle = |(n, client): (usize, &Client)| client.is_idle(self.capacity, self.pace(n));
        if state.clients.iter().enumerate().all(is_idle) {
            actions.push(Action::Tick);
        }
        if self.is_abandoned(state) {
            actions.push(Action::Elsewhere(Call::ReleaseAll(SILENT)));
        }
        actions.extend((0..state.late.len()).map(Action::ExecuteLate));
    }

    /// Whether a client that transfers the queue would give something back.
    pub(super) fn is_abandoned(&self, state: &State) -> bool {
        let Server { clock, messages, inbox, retries, leases, .. } = &state.server;
        // A lease may be longer than the silence.
        let is_over = leases.values().any(|ends| ends <= clock);
        let has_left = !(inbox.is_empty() && retries.is_empty()) || is_over;
        let look = state.server.look(SILENT, self.protocol.looks_twice);
        let runs = |client: &Client| client.condition == Condition::Runs;
        look != Look::Wait
            && (has_left || look != Look::Second)
            && !(messages.is_empty() && inbox.is_empty())
            && (self.long_outages || !state.clients.iter().any(runs))
    }

    fn user(&self, state: &State, actions: &mut Vec<Action>) {
        let State { server, clients, fates, left, .. } = state;
        for (n, client) in clients.iter().enumerate() {
            if client.condition != Condition::Runs {
                continue;
            }
            for Held { delivery, .. } in &client.held {
                actions.push(Action::Settle(n, Settlement::Acknowledge, *delivery));
                if left.verbs > 0 {
                    let verbs = self.kinds_of_verbs.iter();
                    actions.extend(verbs.map(|verb| Action::Settle(n, Settlement::Other(*verb), *delivery)));
                }
            }
            if !client.wants {
                actions.push(Action::Want(n));
            } else if left.drops > 0 {
                actions.push(Action::Drop(n));
            }
            let is_idle = client.op.is_none() && client.held.is_empty() && client.to_settle.is_empty();
            if left.closes > 0 && is_idle {
                actions.push(Action::Close(n));
            }
        }
        if let Some(next) = fates.iter().position(|fate| !fate.pushed) {
            actions.push(Action::Elsewhere(Call::Push(next as Payload)));
        }
        if left.takes > 0 && !server.target.is_empty() {
            actions.push(Action::Elsewhere(Call::Take));
        }
        if left.operations > 0 {
            if !(server.messages.is_empty() && server.inbox.is_empty()) {
                actions.push(Action::Elsewhere(Call::ReleaseAll(0)));
            }
            let each = |call: fn(MessageId) -> Call| move |id: &MessageId| Action::Elsewhere(call(*id));
            actions.extend(server.messages.keys().map(each(Call::Remove)));
            actions.extend(server.messages.keys().map(each(Call::RetryNow)));
            actions.extend(server.dead.keys().map(each(Call::Requeue)));
        }
    }

    fn faults(&self, state: &State, actions: &mut Vec<Action>) {
        if state.left.faults == 0 {
            return;
        }
        let kinds = &self.kinds;
        for (n, client) in state.clients.iter().enumerate() {
            let runs = client.condition == Condition::Runs;
            if kinds.disconnect {
                match &client.op {
                    None if runs && client.needs_call(self.capacity, self.pace(n)) => {
                        actions.push(Action::LoseCall(n));
                    }
                    Some(Op { answer: None, .. }) if runs && kinds.late => actions.push(Action::LoseCall(n)),
                    Some(Op { answer: Some(_), .. }) => actions.push(Action::LoseReply(n)),
                    _ => {}
                }
                if client.pop.is_some() {
                    actions.push(Action::LosePop(n));
                }
            }
            if kinds.crash && client.condition != Condition::Dead {
                actions.push(Action::Crash(n));
            }
            if kinds.stall && runs {
                actions.push(Action::Stall(n));
            }
        }
        actions.extend(kinds.outage.map(Action::Outage));
        actions.extend(kinds.clock.iter().map(|by| Action::SetClock(*by)));
    }
}

impl Action {
    fn is_fault(&self) -> bool {
        use Action::{Crash, LoseCall, LosePop, LoseReply, Outage, SetClock, Stall};
        matches!(
            self,
            LoseCall(_) | LoseReply(_) | LosePop(_) | Crash(_) | Stall(_) | Outage(_) | SetClock(_)
        )
    }
}

impl Model for Bounds {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let ready = 0..self.ready;
        let fates = (0..self.ready + self.offers).map(|n| Fate { pushed: n < self.ready, ..Fate::default() });
        let left = Left {
            faults: self.faults,
            takes: self.takes,
            verbs: self.verbs,
            drops: self.drops,
            operations: self.operations,
            closes: self.closes,
        };
        let mut state = State {
            server: Server { target: ready.collect(), ..Server::default() },
            clients: (0..self.receivers).map(|n| Client::new(n as u8)).collect(),
            late: Vec::new(),
            fates: fates.collect(),
            flaws: Flaws::default(),
            left,
        };
        // Receivers have been here before.
        state.server.control.seen = Some(0);
        state.normalize(self);
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.progress(state, actions);
        self.user(state, actions);
        self.faults(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        if action.is_fault() {
            state.left.faults -= 1;
        }
        let called = if let Action::Call(n) | Action::Retry(n) = action { Some(n) } else { None };
        self.act(&mut state, action);
        // If nothing can happen to the reply, it makes no difference what happens before it arrives.
        if let Some(n) = called
            && (state.left.faults, state.left.drops, self.pace(n).round_trip) == (0, 0, 0)
        {
            self.act(&mut state, Action::Receive(n));
        }
        self.park(&mut state);
        state.normalize(self);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}
