//! All that can happen, within bounds.

use stateright::{Model, Property};

use crate::client::{Client, Notice, Op, Outcome, Run, Stamp, Task, Wire};
use crate::properties;
use crate::protocol::{Call, Command, Entry, Protocol, Published, Reply, Time};
use crate::server::Server;
use crate::state::{Left, Message, State};

/// What is checked, and how much of it.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The variant of the protocol.
    pub protocol: Protocol,
    /// How many clients there are.
    pub clients: usize,
    /// The delays of the messages that are offered, each once.
    pub offers: Vec<Time>,
    /// Whether they are all offered in one call.
    pub together: bool,
    /// The due times of messages that are pending from the beginning.
    pub pending: Vec<Time>,
    /// How many messages are ready from the beginning.
    pub ready: u8,
    /// How many payloads are taken without blocking. (Blocking pops are left out: they lose what their
    /// connection loses.)
    pub takes: u8,
    /// How many entries are polled before they are due.
    pub polls: u8,
    /// How often others cancel, remove or clear. They are not modelled as clients, since a call which is not
    /// repeated is one step, whenever it is executed.
    pub removals: u8,
    /// How often an entry gets the delay 1.
    pub reschedules: u8,
    /// How far the time goes.
    pub ticks: Time,
    /// Whether clients transfer by their schedules. Otherwise somebody does it at any time.
    pub schedules: bool,
    /// Whether clients hear of each other's transfers.
    pub peers: bool,
    /// How many faults there are altogether.
    pub faults: u8,
    /// Which faults.
    pub kinds: Faults,
    /// Whether clients that have changed places count as the same state. Without it, counterexamples are
    /// easier to read.
    pub symmetry: bool,
}

/// The kinds of faults.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// A connection for commands is lost, and with it replies; requests may still be executed.
    pub disconnect: bool,
    /// A connection for announcements is lost.
    pub unsubscribe: bool,
    /// The server restarts with all its data.
    pub restart: bool,
    /// The server's clock is set by so much.
    pub clock: &'static [Time],
    /// A permission is revoked, and granted again later.
    pub refuse: &'static [Command],
}

impl Bounds {
    /// One client, one message, nothing else.
    #[must_use]
    pub fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            clients: 1,
            offers: vec![1],
            together: false,
            pending: Vec::new(),
            ready: 0,
            takes: 0,
            polls: 0,
            removals: 0,
            reschedules: 0,
            ticks: 1,
            schedules: false,
            peers: false,
            faults: 0,
            kinds: Faults::default(),
            symmetry: false,
        }
    }
}

/// One step. Numbers are those of clients.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A user offers these messages.
    Offer(usize, Vec<Entry>),
    /// A user takes a ready payload.
    Take(usize),
    /// A user polls an entry before it is due.
    Poll(usize),
    /// A user changes a due time.
    Reschedule(usize, Entry),
    /// Somebody else's call: a removal; or a transfer, where clients have no schedules.
    Elsewhere(Call),
    /// The client sends its call, for the first time or again.
    Send(usize),
    /// The client gives up its offer, between two tries.
    GiveUp(usize),
    /// The server executes the client's call.
    Execute(usize),
    /// The client receives the reply.
    Receive(usize),
    /// The client deletes the claim of a pop that was answered.
    Confirm(usize),
    /// The user reads what was popped.
    Read(usize),
    /// The user's future is dropped, and what was popped returns.
    DropUnread(usize),
    /// The client begins a transfer.
    RunTransfer(usize),
    /// The server executes it.
    ExecuteTransfer(usize),
    /// The client receives its reply.
    ReceiveTransfer(usize),
    /// The client receives an announcement.
    Hear(usize),
    /// The client asks for the server's clock, and finds that it was set.
    ReadClock(usize),
    /// The client's connection for announcements is there again.
    Resubscribe(usize),
    /// Time passes.
    Tick,
    /// The permission is granted again.
    Permit,
    /// The server executes a call of a connection that its client has given up.
    ExecuteLate(usize, usize),
    /// Fault: the connection for commands is lost; what was sent may still be executed.
    Disconnect(usize),
    /// Fault: the connection for announcements is lost.
    Unsubscribe(usize),
    /// Fault: the server restarts.
    Restart,
    /// Fault: the server's clock is set.
    SetClock(Time),
    /// Fault: a permission is revoked.
    Refuse(Command),
}

impl Bounds {
    /// What happens without users and faults. If nothing is left here, everything is at rest.
    fn progress(&self, state: &State, actions: &mut Vec<Action>) {
        for (n, client) in state.clients.iter().enumerate() {
            if let Some(Op { task, wire, .. }) = &client.op {
                match (task, wire) {
                    (Task::Unread(..), _) => actions.extend([Action::Read(n), Action::DropUnread(n)]),
                    (Task::Offer { .. }, Wire::Idle) => actions.extend([Action::Send(n), Action::GiveUp(n)]),
                    (_, Wire::Idle) => actions.push(Action::Send(n)),
                    (_, Wire::Request(_)) => actions.push(Action::Execute(n)),
                    (_, Wire::Reply(_)) => actions.push(Action::Receive(n)),
                }
            }
            if client.spent_claim.is_some() && !client.takes() {
                actions.push(Action::Confirm(n));
            }
            if !self.schedules {
                continue;
            }
            match client.schedule.run {
                None if client.is_transfer_due(state.now) => actions.push(Action::RunTransfer(n)),
                None => {}
                Some(Run::Request) => actions.push(Action::ExecuteTransfer(n)),
                Some(Run::Reply { .. }) => actions.push(Action::ReceiveTransfer(n)),
            }
            if !client.inbox.is_empty() {
                actions.push(Action::Hear(n));
            }
            if client.offset != state.server.clock - state.now {
                actions.push(Action::ReadClock(n));
            }
            if !client.subscribed {
                actions.push(Action::Resubscribe(n));
            }
        }
        if state.now < self.ticks {
            actions.push(Action::Tick);
        }
        if state.server.refused.is_some() {
            actions.push(Action::Permit);
        }
    }

    fn user(&self, state: &State, actions: &mut Vec<Action>) {
        let left = &state.left;
        for (n, _) in state.clients.iter().enumerate().filter(|(_, client)| client.op.is_none()) {
            let offerable = |m: &usize| {
                let earlier =
                    (0..*m).any(|e| !state.messages[e].offered && self.offers[e] == self.offers[*m]);
                !state.messages[*m].offered && !earlier
            };
            if self.together {
                if !self.offers.is_empty() && !state.messages[0].offered {
                    actions.push(Action::Offer(n, (0..self.offers.len() as Entry).collect()));
                }
            } else {
                let next = (0..self.offers.len()).filter(offerable);
                actions.extend(next.map(|m| Action::Offer(n, vec![m as Entry])));
            }
            if left.takes > 0 {
                actions.push(Action::Take(n));
            }
            if left.polls > 0 {
                actions.push(Action::Poll(n));
            }
            if left.reschedules > 0 {
                let pending = state.server.timeout_set.iter();
                actions.extend(pending.map(|&(_, entry)| Action::Reschedule(n, entry)));
            }
        }
        if left.removals > 0 {
            let pending = state.server.timeout_set.iter();
            actions.extend(pending.map(|&(_, entry)| Action::Elsewhere(Call::Cancel(entry))));
            if state.server.timeout_set.len() > 1 {
                actions.push(Action::Elsewhere(Call::Clear));
            }
        }
        if !self.schedules && state.server.head().is_some_and(|due| due <= state.server.clock) {
            actions.push(Action::Elsewhere(Call::Transfer));
        }
    }

    fn faults(&self, state: &State, actions: &mut Vec<Action>) {
        for (n, client) in state.clients.iter().enumerate() {
            actions.extend((0..client.late.len()).map(|call| Action::ExecuteLate(n, call)));
        }
        if state.left.faults == 0 {
            return;
        }
        for (n, client) in state.clients.iter().enumerate() {
            let in_flight = client.op.as_ref().is_some_and(|op| op.wire != Wire::Idle);
            if self.kinds.disconnect && (in_flight || client.schedule.run.is_some()) {
                actions.push(Action::Disconnect(n));
            }
            if self.kinds.unsubscribe && client.subscribed {
                actions.push(Action::Unsubscribe(n));
            }
        }
        if self.kinds.restart {
            actions.push(Action::Restart);
        }
        actions.extend(self.kinds.clock.iter().map(|by| Action::SetClock(*by)));
        if state.server.refused.is_none() {
            actions.extend(self.kinds.refuse.iter().map(|command| Action::Refuse(*command)));
        }
    }

    /// Whether nothing happens any more unless a user or a fault begins it.
    #[must_use]
    pub fn is_at_rest(&self, state: &State) -> bool {
        let mut actions = Vec::new();
        self.progress(state, &mut actions);
        actions.is_empty()
    }

    /// The server executes a call. Its messages go out.
    fn execute(&self, state: &mut State, by: Option<usize>, call: &Call) -> (Reply, Stamp) {
        let stamp = if self.peers { state.next_stamp() } else { (0, 0) };
        let before = state.server.clone();
        let (reply, published) = state.server.execute(self.protocol, call);
        let State { server, messages, clients, now, .. } = state;
        match call {
            Call::Transfer => {
                for entry in server.target.iter().filter(|entry| !before.target.contains(entry)) {
                    messages[usize::from(*entry)].became_ready(*now);
                }
            }
            Call::Cancel(_) | Call::Clear => {
                for (_, entry) in before.timeout_set.iter().filter(|(_, entry)| server.due(*entry).is_none())
                {
                    messages[usize::from(*entry)].removed += 1;
                }
            }
            Call::Reschedule(entry, delay) if before.due(*entry).is_some() && reply != Reply::Refused => {
                messages[usize::from(*entry)].not_before = Some(*now + *delay);
            }
            _ => {}
        }
        if self.schedules {
            for message in published {
                for (n, client) in clients.iter_mut().enumerate() {
                    let heeds = match message {
                        Published::Announcement(_) => true,
                        Published::Moved(_) => self.peers && by != Some(n),
                    };
                    if client.subscribed && heeds {
                        client.inbox.push(Notice { message, stamp });
                    }
                }
            }
        }
        (reply, stamp)
    }

    fn act(&self, state: &mut State, action: Action) {
        let (protocol, now) = (self.protocol, state.now);
        match action {
            Action::Offer(n, entries) => {
                for entry in &entries {
                    let message = &mut state.messages[usize::from(*entry)];
                    message.offered = true;
                    message.not_before = Some(now + self.offers[usize::from(*entry)]);
                }
                let receipt = protocol.receipts.then(|| state.new_id());
                let entries =
                    entries.into_iter().map(|entry| (self.offers[usize::from(entry)], entry)).collect();
                state.clients[n].start(Task::Offer { receipt, entries, sent: None, base: None });
            }
            Action::Take(n) | Action::Poll(n) => {
                let early = matches!(action, Action::Poll(_));
                let left = if early { &mut state.left.polls } else { &mut state.left.takes };
                *left -= 1;
                let claim = state.new_id();
                state.clients[n].start(Task::Pop { claim, early });
            }
            Action::Reschedule(n, entry) => {
                state.left.reschedules -= 1;
                state.clients[n].start(Task::Reschedule(entry, 1));
            }
            Action::Elsewhere(call) => {
                if call != Call::Transfer {
                    state.left.removals -= 1;
                }
                self.execute(state, None, &call);
            }
            Action::Send(n) => state.clients[n].send(protocol, now, state.server.clock),
            Action::GiveUp(n) => {
                let ended = state.clients[n].give_up(protocol);
                state.ended(ended);
            }
            Action::Execute(n) => {
                let Some(Op { wire: Wire::Request(call), .. }) = state.clients[n].op.clone() else { return };
                let (mut reply, _) = self.execute(state, Some(n), &call);
                if let Reply::Stored { base, .. } = &mut reply {
                    *base = 0;
                }
                if let Some(op) = &mut state.clients[n].op {
                    op.wire = Wire::Reply(reply);
                }
            }
            Action::Receive(n) => {
                let (ended, forget) = state.clients[n].receive(protocol, now);
                state.ended(ended);
                if let Some(id) = forget {
                    self.execute(state, None, &Call::Forget(id));
                }
            }
            Action::Confirm(n) => {
                // It is repeated until it is answered. That makes no difference to the server.
                if let Some(claim) = state.clients[n].spent_claim.take() {
                    self.execute(state, None, &Call::Confirm(claim));
                }
            }
            Action::Read(n) => {
                let Some(Op { task: Task::Unread(popped, _), .. }) = state.clients[n].op.take() else {
                    return;
                };
                for (entry, _) in popped {
                    state.messages[usize::from(entry)].delivered += 1;
                }
            }
            Action::DropUnread(n) => {
                let Some(Op { task: Task::Unread(popped, early), .. }) = state.clients[n].op.take() else {
                    return;
                };
                let receipt = state.new_id();
                state.clients[n].start(Task::Return { receipt, popped, early });
            }
            Action::RunTransfer(n) => state.clients[n].run_transfer(protocol),
            Action::ExecuteTransfer(n) => {
                let (reply, stamp) = self.execute(state, Some(n), &Call::Transfer);
                let offset = state.server.clock - now;
                state.clients[n].schedule.run = Some(Run::Reply { reply, stamp, offset });
            }
            Action::ReceiveTransfer(n) => state.clients[n].finish_transfer(now),
            Action::Hear(n) => state.clients[n].hear(now),
            Action::ReadClock(n) => state.clients[n].observe(state.server.clock - now),
            Action::Resubscribe(n) => state.clients[n].resubscribe(),
            Action::Tick => {
                state.now += 1;
                state.server.set_clock(state.server.clock + 1);
            }
            Action::Permit => state.server.refused = None,
            Action::ExecuteLate(n, call) => {
                let call = state.clients[n].late.remove(call);
                self.execute(state, None, &call);
            }
            Action::Disconnect(n) => state.clients[n].disconnect(protocol, true),
            Action::Unsubscribe(n) => state.clients[n].unsubscribe(),
            Action::Restart => {
                for client in &mut state.clients {
                    client.disconnect(protocol, false);
                    client.late.clear();
                    client.unsubscribe();
                }
            }
            Action::SetClock(by) => {
                state.server.set_clock(state.server.clock + by);
                if by > 0 {
                    state.messages.iter_mut().for_each(|message| message.not_before = None);
                }
            }
            Action::Refuse(command) => state.server.refused = Some(command),
        }
    }
}

impl Action {
    fn is_fault(&self) -> bool {
        matches!(
            self,
            Self::Disconnect(_) | Self::Unsubscribe(_) | Self::Restart | Self::SetClock(_) | Self::Refuse(_)
        )
    }
}

impl Model for Bounds {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let offered = self.offers.len();
        let mut server = Server::default();
        for (n, due) in self.pending.iter().enumerate() {
            server.timeout_set.push((*due, (offered + n) as Entry));
            server.ordered_list.push((offered + n) as Entry);
        }
        server.timeout_set.sort_unstable();
        let ready = offered + self.pending.len();
        server.target.extend((ready..ready + usize::from(self.ready)).map(|n| n as Entry));
        let present = |_| Message { offered: true, outcome: Some(Outcome::Ok), ..Message::default() };
        let mut messages = vec![Message::default(); offered];
        messages.extend((offered..ready + usize::from(self.ready)).map(present));
        for (n, due) in self.pending.iter().enumerate() {
            messages[offered + n].not_before = Some(*due);
        }
        let mut client = Client::new();
        // It has heard of what is pending.
        client.schedule.head = server.head();
        let left = Left {
            faults: self.faults,
            takes: self.takes,
            polls: self.polls,
            removals: self.removals,
            reschedules: self.reschedules,
        };
        vec![State { server, clients: vec![client; self.clients], messages, now: 0, left }]
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
        self.act(&mut state, action);
        state.normalize(self);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}
