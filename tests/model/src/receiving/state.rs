//! The state of everything, and which states are the same.

use std::collections::BTreeMap;

use crate::receiving::client::{Answer, Client, Held, Pop, Settlement};
use crate::receiving::model::{Bounds, SILENT};
use crate::receiving::protocol::{Call, Delivery, MessageId, Payload, Receive, ReceiverId, Time, Token};
use crate::receiving::recovery::{SECOND_LOOK, extra_time};
use crate::receiving::server::{Receipt, Server, Silence};

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The server.
    pub server: Server,
    /// The receivers.
    pub clients: Vec<Client>,
    /// What was sent on connections that were given up, and may still be executed.
    pub late: Vec<Late>,
    /// What happened to each payload: known to nobody but the properties.
    pub fates: Vec<Fate>,
    /// What went wrong on a way here.
    pub flaws: Flaws,
    /// What may still happen.
    pub left: Left,
}

/// A command of a connection that was given up.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Late {
    /// The number of the receiver, unless its process is dead.
    pub owner: Option<usize>,
    /// What it sent.
    pub call: Call,
}

/// What happened to a payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fate {
    /// It was offered.
    pub pushed: bool,
    /// How often somebody else has taken it.
    pub taken: u8,
    /// How often an acknowledgement has deleted it.
    pub acknowledged: u8,
    /// How often an operator has removed it.
    pub removed: u8,
    /// An acknowledgement was answered with `Ok`.
    pub confirmed: bool,
}

/// What cannot be seen in a single state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flaws {
    /// A settlement of a delivery that no longer held has changed something.
    pub old_effect: bool,
    /// A lease of a process that runs was ended.
    pub taken_from_the_living: bool,
    /// A user was told that a delivery no longer held when it was settled, though it was this user who
    /// settled it.
    pub false_loss: bool,
    /// What was acknowledged was delivered.
    pub delivered_again: bool,
}

/// What may still happen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Left {
    pub(crate) faults: u8,
    pub(crate) takes: u8,
    pub(crate) verbs: u8,
    pub(crate) drops: u8,
    pub(crate) operations: u8,
    pub(crate) closes: u8,
}

impl State {
    /// Later than all others.
    pub(crate) fn new_token(&self) -> Token {
        1 + self.tokens().into_iter().max().unwrap_or(0)
    }

    /// An id that nobody has.
    pub(crate) fn new_receiver(&self) -> ReceiverId {
        let late = |id: ReceiverId| {
            self.late.iter().any(|late| receive(&late.call).is_some_and(|c| c.receiver == id))
        };
        let known = |id: &ReceiverId| {
            self.clients.iter().any(|client| client.id == *id)
                || self.server.receipts.contains_key(id)
                || late(*id)
        };
        (0..).find(|id| !known(id)).expect("few are in use")
    }

    /// States that differ in nothing that matters become equal.
    pub(crate) fn normalize(&mut self, bounds: &Bounds) {
        self.forget_answers(bounds);
        self.shift_times(bounds);
        self.forget(bounds);
        for client in &mut self.clients {
            client.held.sort_unstable();
            client.to_settle.sort_unstable();
        }
        self.renumber_tokens();
        if bounds.symmetry {
            self.renumber_payloads();
        }
        if bounds.symmetry && bounds.paces.len() == 1 {
            self.sort_clients();
        }
        self.late.sort_unstable();
    }

    /// What a receiver does not need any more while a call is in flight.
    fn forget_answers(&mut self, bounds: &Bounds) {
        for (n, client) in self.clients.iter_mut().enumerate() {
            let Some(op) = &mut client.op else { continue };
            // The reply says when it was last answered.
            client.last = None;
            // It rests for one unit of time, whenever the first lease ends.
            let answer = op.answer.iter_mut().filter(|_| bounds.pace(n).pause - op.age <= 1);
            answer.for_each(|answer| answer.lease_ends = None);
        }
    }

    /// Only differences to the clock matter; what is over is over.
    fn shift_times(&mut self, bounds: &Bounds) {
        self.shift_signs_of_life();
        self.forget_silences(bounds);
        let Server { clock, retries, control, messages, dead, receipts, .. } = &mut self.server;
        // No step depends on them.
        receipts.values_mut().for_each(|receipt| receipt.counts = [0; 2]);
        let now = std::mem::take(clock);
        for at in retries.values_mut() {
            *at = (*at - now).max(0);
        }
        control.back = control.back.map(|_| 0);
        // What the second look looks at.
        let since = |silent: Time| silent.max(-SECOND_LOOK);
        control.silent =
            control.silent.map(since).filter(|silent| control.seen.is_some_and(|seen| *silent > seen));
        messages.values_mut().for_each(|record| record.first = 0);
        dead.values_mut().for_each(|letter| (letter.first, letter.died) = (0, 0));
    }

    /// Leases, and what says which of them are spared. Only the order of what is past matters.
    fn shift_signs_of_life(&mut self) {
        let now = self.server.clock;
        // Older than this, a reply to a process that stands still tells nothing.
        self.each_past_time(|at| *at = at.saturating_sub(now).max(-4 * SILENT));
        let Server { leases, control, .. } = &self.server;
        let over = leases.values().copied().filter(|ends| *ends <= 0);
        let newest = over.chain(control.seen).chain(control.silent).max();
        // Nobody is there: then all that is past stays as it is.
        let old = newest.map_or(0, |newest| -SILENT - 1 - newest);
        if old > 0 {
            self.each_past_time(|at| *at = if *at <= 0 { (*at + old).min(0) } else { *at });
        }
        let oldest = self.server.leases.values().copied().min().unwrap_or(1).min(1);
        let seen = self.server.control.seen;
        // A caller that was answered before all of them ended has looked at none of them.
        let clamp = |last: &mut Time| *last = (*last).max(oldest - 1);
        // A call that was to come before the last one of somebody else has waited no longer than since then.
        let expect =
            |expected: &mut Time| *expected = seen.map_or(*expected, |seen| seen.max(*expected)).min(0);
        for client in &mut self.clients {
            if let Some(last) = &mut client.last {
                let mut expected = last.clock + last.age;
                expect(&mut expected);
                clamp(&mut last.clock);
                last.age = expected - last.clock;
            }
        }
        let ops = self.clients.iter_mut().filter_map(|client| client.op.as_mut()).map(|op| &mut op.call);
        let late = self.late.iter_mut().filter_map(|late| match &mut late.call {
            Call::Receive(call) => Some(call),
            _ => None,
        });
        for call in ops.chain(late) {
            // Another try of a call that was executed is answered as before, and looks at nothing.
            let receipt = self.server.receipts.get(&call.receiver);
            if receipt.is_some_and(|receipt| receipt.token >= call.token) {
                call.last = None;
            }
            match &mut call.last {
                Some(last) => {
                    clamp(last);
                    expect(&mut call.expected);
                }
                None => call.expected = 0,
            }
        }
        // Which silences spare a lease that has ended.
        let mut begun = Vec::new();
        self.each_begin(|at| begun.push(*at));
        for ends in self.server.leases.values_mut().filter(|ends| **ends < 0) {
            let before = begun.iter().filter(|at| *at < ends).max();
            *ends = before.map_or_else(|| begun.iter().copied().min().unwrap_or(0).min(*ends), |at| at + 1);
        }
    }

    /// Visits each time at which a silence may have begun, or may begin.
    fn each_begin(&mut self, mut visit: impl FnMut(&mut Time)) {
        let Self { server, clients, late, .. } = self;
        server.control.seen.iter_mut().for_each(&mut visit);
        server.control.silences.iter_mut().filter_map(|silence| silence.since.as_mut()).for_each(&mut visit);
        for client in clients {
            client.last.iter_mut().for_each(|last| visit(&mut last.clock));
            client.op.iter_mut().filter_map(|op| op.call.last.as_mut()).for_each(&mut visit);
        }
        for late in late {
            if let Call::Receive(call) = &mut late.call {
                call.last.iter_mut().for_each(&mut visit);
            }
        }
    }

    /// Visits all that is compared with the time of a lease's end.
    fn each_past_time(&mut self, mut visit: impl FnMut(&mut Time)) {
        self.each_begin(&mut visit);
        let Self { server, clients, late, .. } = self;
        server.leases.values_mut().for_each(&mut visit);
        server.control.silences.iter_mut().for_each(|silence| visit(&mut silence.ended));
        server.control.silent.iter_mut().for_each(&mut visit);
        for client in clients {
            let Some(op) = &mut client.op else { continue };
            visit(&mut op.call.expected);
            if let Some(answer) = &mut op.answer {
                visit(&mut answer.clock);
                answer.lease_ends.iter_mut().for_each(&mut visit);
            }
        }
        for late in late {
            if let Call::Receive(call) = &mut late.call {
                visit(&mut call.expected);
            }
        }
    }

    /// Silences that spare no lease, or none that a later one does not spare.
    fn forget_silences(&mut self, bounds: &Bounds) {
        let Server { leases, control, .. } = &mut self.server;
        let lengths = || (0..bounds.receivers).map(|n| bounds.pace(n).lease);
        for silence in &mut control.silences {
            let long = lengths().filter(|lease| silence.is_long(*lease)).max().unwrap_or(0);
            // Short enough to be none for longer leases.
            silence.length = if long > 0 { long / 4 + 1 } else { 0 };
            // As if it had begun when the last lease ended that it does not spare.
            let after = |since: &Time| leases.values().copied().filter(|ends| ends <= since).max();
            silence.since = silence.since.and_then(|since| after(&since));
        }
        let spares =
            |one: &Silence| lengths().any(|lease| one.is_long(lease) && 0 < one.ended + extra_time(lease));
        let covers = |other: &Silence, one: &Silence| {
            other.ended >= one.ended && other.length >= one.length && other.since <= one.since
        };
        control.silences.retain(spares);
        control.silences.sort_unstable();
        control.silences.dedup();
        let all = control.silences.clone();
        control.silences.retain(|one| !all.iter().any(|other| other != one && covers(other, one)));
    }

    /// What nobody asks for again.
    fn forget(&mut self, bounds: &Bounds) {
        let Self { server, clients, late, left, .. } = self;
        let ops = clients.iter().filter_map(|client| client.op.as_ref()).map(|op| &op.call);
        let calls = ops.chain(late.iter().filter_map(|late| receive(&late.call)));
        let calls: Vec<_> = calls.map(|call| (call.receiver, call.token)).collect();
        server.receipts.retain(|id, receipt| {
            if !calls.contains(&(*id, receipt.token)) {
                receipt.results.clear();
                receipt.claims.clear();
            }
            calls.iter().any(|(receiver, _)| receiver == id)
        });
        if left.closes == 0 {
            clients.iter_mut().for_each(|client| client.lost = false);
        }
        if bounds.operations == 0 {
            let dead = std::mem::take(&mut server.dead).into_values();
            let id = |payload| MessageId { token: 0, number: payload };
            server.dead = dead
                .map(|mut letter| {
                    (letter.delivery, letter.failed, letter.lost) = (0, 0, 0);
                    (id(letter.payload), letter)
                })
                .collect();
        }
    }

    /// Only their order matters.
    fn renumber_tokens(&mut self) {
        let mut all = self.tokens();
        all.sort_unstable();
        all.dedup();
        let is_new = |n: usize, token: &Token| usize::from(*token) == n + 1;
        if all.iter().enumerate().all(|(n, token)| is_new(n, token)) {
            return;
        }
        self.each_token(|token| {
            *token = 1 + all.iter().position(|known| known == token).expect("a known one") as Token;
        });
    }

    fn tokens(&self) -> Vec<Token> {
        let Server { messages, leases, retries, receipts, dead, .. } = &self.server;
        let mut all = Vec::with_capacity(32);
        all.extend(messages.keys().chain(retries.keys()).map(|id| id.token));
        all.extend(leases.keys().map(|member| member.id.token));
        all.extend(dead.keys().map(|id| id.token).filter(|token| *token > 0));
        for Receipt { token, claims, .. } in receipts.values() {
            all.push(*token);
            all.extend(claims.iter().map(|member| member.id.token));
        }
        let ops = self.clients.iter().filter_map(|client| client.op.as_ref());
        let calls =
            ops.clone().map(|op| &op.call).chain(self.late.iter().filter_map(|late| receive(&late.call)));
        for call in calls {
            all.push(call.token);
            let named =
                call.acknowledge.iter().chain(&call.extend).chain(call.settle.iter().map(|(_, named)| named));
            all.extend(named.map(|delivery| delivery.member.id.token));
        }
        let claims =
            ops.flat_map(|op| &op.answer).flat_map(|answer| answer.claims.iter().chain(&answer.unsent));
        all.extend(claims.map(|delivery| delivery.member.id.token));
        for client in &self.clients {
            all.extend(client.held.iter().map(|held| held.delivery.member.id.token));
            all.extend(client.to_settle.iter().map(|(_, delivery)| delivery.member.id.token));
        }
        all
    }

    /// Visits each token. (Those of dead letters that nobody requeues are 0, and not visited.)
    fn each_token(&mut self, mut visit: impl FnMut(&mut Token)) {
        let Server { messages, leases, retries, receipts, dead, .. } = &mut self.server;
        rekey(messages, |id| visit(&mut id.token));
        rekey(leases, |member| visit(&mut member.id.token));
        rekey(retries, |id| visit(&mut id.token));
        rekey(dead, |id| {
            if id.token > 0 {
                visit(&mut id.token);
            }
        });
        for Receipt { token, claims, .. } in receipts.values_mut() {
            visit(token);
            claims.iter_mut().for_each(|member| visit(&mut member.id.token));
        }
        let of_call = |call: &mut Receive, visit: &mut dyn FnMut(&mut Token)| {
            visit(&mut call.token);
            each_delivery(call, |delivery| visit(&mut delivery.member.id.token));
        };
        for client in &mut self.clients {
            if let Some(op) = &mut client.op {
                of_call(&mut op.call, &mut visit);
                let claims = op.answer.iter_mut().flat_map(Answer::deliveries_mut);
                claims.for_each(|delivery| visit(&mut delivery.member.id.token));
            }
            client.deliveries_mut().for_each(|delivery| visit(&mut delivery.member.id.token));
        }
        for late in &mut self.late {
            if let Call::Receive(call) = &mut late.call {
                of_call(call, &mut visit);
            }
        }
    }

    /// In the order of where they are.
    fn renumber_payloads(&mut self) {
        let Self { server, fates, clients, .. } = self;
        let place = |payload: Payload| {
            let at = |list: &[Payload]| list.iter().position(|other| *other == payload);
            let message = server.messages.iter().find(|(_, record)| record.payload == payload);
            let dead = server.dead.iter().find(|(_, letter)| letter.payload == payload);
            let popped = clients.iter().position(|client| client.pops(payload));
            (
                fates[usize::from(payload)],
                at(&server.target),
                at(&server.inbox),
                message.map(|(id, _)| *id),
                dead.map(|(id, _)| *id),
                popped,
            )
        };
        let mut order: Vec<Payload> = (0..fates.len() as Payload).collect();
        order.sort_by_key(|payload| place(*payload));
        if order.iter().enumerate().all(|(n, payload)| usize::from(*payload) == n) {
            return;
        }
        let number = |payload: &mut Payload| {
            *payload = order.iter().position(|old| old == payload).expect("one of them") as Payload;
        };
        self.fates = order.iter().map(|payload| self.fates[usize::from(*payload)]).collect();
        let Server { target, inbox, messages, dead, .. } = &mut self.server;
        target.iter_mut().chain(inbox).for_each(number);
        messages.values_mut().for_each(|record| number(&mut record.payload));
        dead.values_mut().for_each(|letter| number(&mut letter.payload));
        rekey(dead, |id| {
            if id.token == 0 {
                number(&mut id.number);
            }
        });
        for client in &mut self.clients {
            if let Some(Pop::Replied(Some(payload))) = &mut client.pop {
                number(payload);
            }
            client.deliveries_mut().for_each(|delivery| number(&mut delivery.payload));
            if let Some(op) = &mut client.op {
                each_delivery(&mut op.call, |delivery| number(&mut delivery.payload));
                let claims = op.answer.iter_mut().flat_map(Answer::deliveries_mut);
                claims.for_each(|delivery| number(&mut delivery.payload));
            }
        }
        for late in &mut self.late {
            if let Call::Receive(call) = &mut late.call {
                each_delivery(call, |delivery| number(&mut delivery.payload));
            }
        }
    }

    /// Receivers that have changed places, with their receipts and late calls.
    fn sort_clients(&mut self) {
        let Self { server, clients, late, .. } = self;
        let mut order: Vec<usize> = (0..clients.len()).collect();
        // Tokens are unique, so that of a call stands for all of it.
        let key = |n: &usize| {
            let Client { id, condition, op, pop, wants, woken, empty, rest, last, lost, held, to_settle } =
                &clients[*n];
            let receipt = server.receipts.get(id).map(|receipt| receipt.token);
            let flags = (condition, wants, woken, empty, rest, last, lost);
            (flags, pop, op.as_ref().map(|op| op.call.token), receipt, held, to_settle)
        };
        order.sort_by(|one, other| key(one).cmp(&key(other)));
        // Then those of dead processes.
        let mut ids: Vec<ReceiverId> = order.iter().map(|n| clients[*n].id).collect();
        for call in late.iter().filter_map(|late| receive(&late.call)) {
            if !ids.contains(&call.receiver) {
                ids.push(call.receiver);
            }
        }
        let number = |id: &mut ReceiverId| {
            *id = ids.iter().position(|old| old == id).expect("a known one") as ReceiverId;
        };
        *clients = order.iter().map(|n| clients[*n].clone()).collect();
        for client in clients {
            number(&mut client.id);
            if let Some(op) = &mut client.op {
                number(&mut op.call.receiver);
            }
        }
        rekey(&mut server.receipts, number);
        for late in late {
            late.owner =
                late.owner.map(|owner| order.iter().position(|old| *old == owner).expect("one of them"));
            if let Call::Receive(call) = &mut late.call {
                number(&mut call.receiver);
            }
        }
    }
}

impl Client {
    fn deliveries_mut(&mut self) -> impl Iterator<Item = &mut Delivery> + '_ {
        fn of_held(held: &mut Held) -> &mut Delivery {
            &mut held.delivery
        }
        fn of_settled(to_settle: &mut (Settlement, Delivery)) -> &mut Delivery {
            &mut to_settle.1
        }
        self.held.iter_mut().map(of_held).chain(self.to_settle.iter_mut().map(of_settled))
    }
}

fn each_delivery(call: &mut Receive, mut visit: impl FnMut(&mut Delivery)) {
    call.acknowledge.iter_mut().chain(&mut call.extend).for_each(&mut visit);
    call.settle.iter_mut().for_each(|(_, delivery)| visit(delivery));
}

/// The call of a receiver, if it is one.
pub(crate) fn receive(call: &Call) -> Option<&Receive> {
    match call {
        Call::Receive(receive) => Some(receive),
        _ => None,
    }
}

fn rekey<K: Ord, V>(map: &mut BTreeMap<K, V>, mut change: impl FnMut(&mut K)) {
    if map.is_empty() {
        return;
    }
    let changed = std::mem::take(map).into_iter().map(|(mut key, value)| {
        change(&mut key);
        (key, value)
    });
    *map = changed.collect();
}
