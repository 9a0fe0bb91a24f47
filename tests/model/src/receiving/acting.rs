//! What each action does.

use std::collections::BTreeMap;

use crate::receiving::client::{Answer, Client, Condition, Op, Pop, Settlement};
use crate::receiving::model::{Action, Bounds, SILENT};
use crate::receiving::protocol::{Call, Delivery, Member, MessageId, Receive, Record, Reply, Settled, Time};
use crate::receiving::server::Server;
use crate::receiving::state::{Late, State};

impl Bounds {
    /// The server executes a call of a receiver.
    fn receive(&self, state: &mut State, call: &Receive) -> Reply {
        let is_known = state.server.is_known(self.protocol, call);
        let before = state.server.leases.clone();
        let reply = state.server.execute(self.protocol, &Call::Receive(call.clone()));
        let Reply::Received(received) = &reply else { return reply };
        for (_, record) in &received.claims {
            state.flaws.delivered_again |= state.fates[usize::from(record.payload)].acknowledged > 0;
        }
        if is_known {
            return reply;
        }
        let named = call
            .acknowledge
            .iter()
            .chain(&call.extend)
            .chain(call.settle.iter().map(|(_, delivery)| delivery));
        let mut settled: Vec<Member> = Vec::new();
        for (n, (delivery, result)) in named.zip(&received.results).enumerate() {
            let Delivery { member, payload } = *delivery;
            if *result != Settled::Gone {
                state.flaws.old_effect |= !before.contains_key(&member);
                settled.push(member);
                if n < call.acknowledge.len() {
                    state.fates[usize::from(payload)].acknowledged += 1;
                }
            }
        }
        let State { server, clients, flaws, .. } = state;
        flaws.taken_from_the_living |= ended_leases(&before, server, clients, &settled);
        for op in clients.iter_mut().filter_map(|client| client.op.as_mut()) {
            if op.call == *call {
                op.done.get_or_insert_with(|| received.results.clone());
            }
        }
        reply
    }

    /// The call in flight is executed.
    fn execute(&self, state: &mut State, n: usize) {
        if self.protocol.kills_old_connections {
            state.late.retain(|late| late.owner != Some(n) || late.call == Call::Move);
        }
        let Some(op) = &state.clients[n].op else { return };
        let call = op.call.clone();
        let answer = match self.receive(state, &call) {
            Reply::Received(received) => {
                let delivery = |(id, record): &(MessageId, Record)| Delivery {
                    member: Member { id: *id, delivery: record.delivery },
                    payload: record.payload,
                };
                let claims = received.claims.iter().map(delivery).collect();
                let payload = |id| state.server.messages[id].payload;
                let unsent = received.unsent.iter();
                let unsent =
                    unsent.map(|member| Delivery { member: *member, payload: payload(&member.id) }).collect();
                Answer {
                    clock: received.clock,
                    lease_ends: received.lease_ends,
                    results: received.results,
                    claims,
                    unsent,
                    empty: received.left == 0,
                }
            }
            // An error: nothing is settled and nothing claimed, as far as the receiver knows.
            _ => {
                let settlements = call.acknowledge.len() + call.extend.len() + call.settle.len();
                let results = vec![Settled::Gone; settlements];
                let clock = state.server.clock;
                Answer {
                    clock,
                    lease_ends: None,
                    results,
                    claims: Vec::new(),
                    unsent: Vec::new(),
                    empty: false,
                }
            }
        };
        if let Some(op) = &mut state.clients[n].op {
            op.answer = Some(answer);
        }
    }

    /// Receivers block, if they have a reason.
    pub(super) fn park(&self, state: &mut State) {
        for (n, client) in state.clients.iter_mut().enumerate() {
            client.park(self.capacity, self.pace(n));
        }
    }

    fn begin(&self, state: &mut State, n: usize) {
        let token = state.new_token();
        let call = state.clients[n].turn(token, self.policy(n), self.capacity, self.pace(n));
        state.clients[n].op = Some(Op {
            call,
            age: 0,
            exposed: false,
            stalled: false,
            repeated: false,
            done: None,
            answer: None,
        });
    }

    /// What was sent on this connection may still be executed.
    fn linger(&self, state: &mut State, owner: usize, call: Call) {
        if self.kinds.late {
            state.late.push(Late { owner: Some(owner), call });
        }
    }

    /// Takes a step.
    pub(super) fn act(&self, state: &mut State, action: Action) {
        match action {
            Action::Call(n) => {
                self.begin(state, n);
                self.execute(state, n);
            }
            Action::Retry(n) => self.execute(state, n),
            Action::Receive(n) => {
                let now = state.server.clock;
                for told in state.clients[n].receive(self.protocol, self.capacity, self.pace(n), now) {
                    let is_done = told.result != Settled::Gone;
                    state.flaws.false_loss |= !is_done && told.done.is_some_and(|done| done != Settled::Gone);
                    if is_done && told.settlement == Settlement::Acknowledge {
                        state.fates[usize::from(told.delivery.payload)].confirmed = true;
                    }
                }
            }
            Action::Move(n) => {
                let popped = if self.protocol.moves {
                    state.server.execute(self.protocol, &Call::Move);
                    None
                } else {
                    Some(state.server.target.remove(0))
                };
                state.clients[n].pop = Some(Pop::Replied(popped));
            }
            Action::Wake(n) => {
                let popped = state.clients[n].wake(self.pace(n));
                state.server.inbox.extend(popped);
            }
            Action::Expire(n) => state.clients[n].pop = None,
            Action::Settle(n, settlement, delivery) => {
                if settlement != Settlement::Acknowledge {
                    state.left.verbs -= 1;
                }
                let client = &mut state.clients[n];
                client.held.retain(|held| held.delivery != delivery);
                client.to_settle.push((settlement, delivery));
            }
            Action::Drop(n) => {
                state.left.drops -= 1;
                state.clients[n].wants = false;
            }
            Action::Want(n) => state.clients[n].wants = true,
            Action::Close(n) => self.close(state, n),
            Action::Start(n) => state.clients[n] = Client::new(state.new_receiver()),
            Action::Resume(n) => state.clients[n].condition = Condition::Runs,
            Action::Elsewhere(call) => self.elsewhere(state, &call),
            Action::Tick => self.advance(state, 1),
            Action::ExecuteLate(late) => match state.late.remove(late).call {
                Call::Receive(call) => drop(self.receive(state, &call)),
                call => drop(state.server.execute(self.protocol, &call)),
            },
            Action::LoseCall(n) => {
                if state.clients[n].op.is_none() {
                    self.begin(state, n);
                }
                state.clients[n].lost = true;
                let Some(op) = &mut state.clients[n].op else { return };
                op.repeated = true;
                let call = Call::Receive(op.call.clone());
                self.linger(state, n, call);
            }
            Action::LoseReply(n) => self.lose_reply(&mut state.clients[n]),
            Action::LosePop(n) => {
                if state.clients[n].pop == Some(Pop::Blocked) {
                    self.linger(state, n, Call::Move);
                }
                state.clients[n].lose_pop(self.pace(n));
            }
            Action::Crash(n) => self.crash(state, n),
            Action::Stall(n) => {
                let client = &mut state.clients[n];
                client.condition = Condition::Stalled;
                client.held.iter_mut().for_each(|held| held.stalled = true);
                client.op.iter_mut().for_each(|op| op.stalled = true);
            }
            Action::Outage(by) => {
                for n in 0..state.clients.len() {
                    let rest = self.call_in_vain(state, n, by);
                    state.clients[n].advance(by - rest, self.pace(n).lease);
                }
                state.server.clock += by;
                for (n, client) in state.clients.iter_mut().enumerate() {
                    self.lose_reply(client);
                    if client.pop.is_some() {
                        client.lose_pop(self.pace(n));
                    }
                }
            }
            Action::SetClock(by) => {
                state.server.clock += by;
                for client in &mut state.clients {
                    client.held.iter_mut().for_each(|held| held.exposed = true);
                    client.op.iter_mut().for_each(|op| op.exposed = true);
                }
            }
        }
    }

    /// A receiver that is to call before this time has passed does so, and nothing arrives. Returns how much
    /// time has passed.
    fn call_in_vain(&self, state: &mut State, n: usize, before: Time) -> Time {
        let Client { condition, op, rest, .. } = &state.clients[n];
        let rest = *rest;
        if *condition != Condition::Runs || op.is_some() || rest >= before {
            return 0;
        }
        state.clients[n].advance(rest, self.pace(n).lease);
        self.begin(state, n);
        let client = &mut state.clients[n];
        client.lost = true;
        client.op.iter_mut().for_each(|op| op.repeated = true);
        rest
    }

    fn lose_reply(&self, client: &mut Client) {
        if let Some(op) = &mut client.op {
            op.answer = None;
            op.repeated = true;
            client.lost = true;
        }
    }

    pub(super) fn advance(&self, state: &mut State, by: Time) {
        state.server.clock += by;
        for (n, client) in state.clients.iter_mut().enumerate() {
            client.advance(by, self.pace(n).lease);
        }
    }

    /// The process dies. What it has sent may still be executed.
    fn crash(&self, state: &mut State, n: usize) {
        let client = &state.clients[n];
        if client.pop == Some(Pop::Blocked) {
            self.linger(state, n, Call::Move);
        }
        for late in &mut state.late {
            late.owner = late.owner.filter(|owner| *owner != n);
        }
        self.bury(state, n);
    }

    /// What the end of a receiver's task does: puts the inbox back, and deletes the receipt.
    fn close(&self, state: &mut State, n: usize) {
        state.left.closes -= 1;
        state.clients[n].wants = false;
        state.clients[n].woken = true;
        self.begin(state, n);
        self.execute(state, n);
        let Client { id, lost, .. } = state.clients[n];
        if !(lost && self.protocol.keeps_receipts) {
            state.server.execute(self.protocol, &Call::Forget(id));
        }
        self.bury(state, n);
    }

    fn bury(&self, state: &mut State, n: usize) {
        state.clients[n] = Client { condition: Condition::Dead, ..Client::new(state.new_receiver()) };
    }

    fn elsewhere(&self, state: &mut State, call: &Call) {
        let State { server, clients, fates, flaws, left, .. } = state;
        match call {
            Call::Push(payload) => fates[usize::from(*payload)].pushed = true,
            Call::Take => left.takes -= 1,
            Call::ReleaseAll(SILENT) => {}
            _ => left.operations -= 1,
        }
        if let Call::Remove(id) = call
            && let Some(record) = server.messages.get(id)
        {
            fates[usize::from(record.payload)].removed += 1;
        }
        let before = server.leases.clone();
        let reply = server.execute(self.protocol, call);
        if *call == Call::ReleaseAll(SILENT) {
            flaws.taken_from_the_living |= ended_leases(&before, server, clients, &[]);
        }
        if let (Call::Take, Reply::Payload(Some(payload))) = (call, reply) {
            fates[usize::from(payload)].taken += 1;
        }
    }
}

/// Whether a lease was ended, and not by a settlement, of a process that runs and has not stood still.
fn ended_leases(
    before: &BTreeMap<Member, Time>,
    server: &Server,
    clients: &[Client],
    settled: &[Member],
) -> bool {
    let lives = |client: &&Client| client.condition == Condition::Runs;
    let held = clients.iter().filter(lives).flat_map(|client| &client.held).filter(|held| !held.stalled);
    held.map(|held| held.delivery.member).any(|member| {
        before.contains_key(&member) && !server.leases.contains_key(&member) && !settled.contains(&member)
    })
}
