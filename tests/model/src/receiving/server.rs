//! The keys of the receivers of one queue, and the scripts as steps on them.
//!
//! A step does what the script of its name does. `tests/scripts/receivers.rs` compares both, step by step.
//! What is taken back from lost receivers is in `recovery`.

use std::collections::BTreeMap;

use crate::receiving::protocol::{
    Call, DeadMode, Delivery, Letter, Member, MessageId, Payload, Policy, Protocol, Reason, Receive,
    Received, ReceiverId, Record, Reply, Settled, Time, Token, Verb,
};

/// The policy of a requeued dead letter, until a receiver claims it: 10 attempts, 5 losses, 30 s.
pub const REQUEUED: Policy = Policy { attempts: 10, losses: 5, lease: 4, dead: DeadMode::Keep };

/// The server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Server {
    /// Its clock.
    pub clock: Time,
    /// What is ready.
    pub target: Vec<Payload>,
    /// What blocked receivers moved.
    pub inbox: Vec<Payload>,
    /// What receivers have claimed.
    pub messages: BTreeMap<MessageId, Record>,
    /// When the leases end.
    pub leases: BTreeMap<Member, Time>,
    /// When the next delivery is due.
    pub retries: BTreeMap<MessageId, Time>,
    /// The last call of each receiver.
    pub receipts: BTreeMap<ReceiverId, Receipt>,
    /// Dead letters.
    pub dead: BTreeMap<MessageId, Letter>,
    /// What concerns all receivers.
    pub control: Control,
}

/// How the last call of a receiver ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Receipt {
    /// Of the call.
    pub token: Token,
    /// Of its settlements.
    pub results: Vec<Settled>,
    /// Messages that it took back, and that became dead letters in it.
    pub counts: [u8; 2],
    /// What it claimed.
    pub claims: Vec<Member>,
}

/// What concerns all receivers together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Control {
    /// The last sign of life.
    pub seen: Option<Time>,
    /// The silences before it that still matter.
    pub silences: Vec<Silence>,
    /// What the clock showed when it was set back.
    pub back: Option<Time>,
    /// When a client that releases what was left has found receivers silent.
    pub silent: Option<Time>,
}

/// A time without a sign of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Silence {
    /// When the next sign was given.
    pub ended: Time,
    /// How long it was.
    pub length: Time,
    /// It spares leases that end later than this; `None`: all.
    pub since: Option<Time>,
}

impl Server {
    /// Executes a call.
    pub fn execute(&mut self, protocol: Protocol, call: &Call) -> Reply {
        match call {
            Call::Receive(receive) => self.receive(protocol, receive),
            Call::Move => {
                let payload = self.pop();
                self.inbox.extend(payload);
                Reply::Payload(payload)
            }
            Call::ReleaseAll(silent) => Reply::Count(self.release_all(*silent, protocol.looks_twice)),
            Call::Requeue(id) => Reply::Count(self.requeue(*id)),
            Call::Remove(id) => Reply::Count(self.remove(*id, false)),
            Call::RetryNow(id) => Reply::Count(self.remove(*id, true)),
            Call::Forget(receiver) => Reply::Count(u8::from(self.receipts.remove(receiver).is_some())),
            Call::Push(payload) => {
                self.target.push(*payload);
                Reply::Count(self.target.len() as u8)
            }
            Call::Take => Reply::Payload(self.pop()),
        }
    }

    /// Whether this is another try of a call that was executed.
    #[must_use]
    pub fn is_known(&self, protocol: Protocol, call: &Receive) -> bool {
        let receipt = self.receipts.get(&call.receiver);
        protocol.receipts && receipt.is_some_and(|receipt| receipt.token == call.token)
    }

    fn pop(&mut self) -> Option<Payload> {
        (!self.target.is_empty()).then(|| self.target.remove(0))
    }

    fn receive(&mut self, protocol: Protocol, call: &Receive) -> Reply {
        let now = self.clock;
        if let Some(receipt) = self.receipts.get(&call.receiver).cloned() {
            if self.is_known(protocol, call) {
                let held = receipt.claims.iter().filter(|member| self.leases.contains_key(member));
                let mut held = held.filter_map(|member| Some((*member, *self.messages.get(&member.id)?)));
                // As if no two records fitted into the reply.
                let claims = held.next().map(|(member, record)| (member.id, record)).into_iter().collect();
                let unsent = held.map(|(member, _)| member).collect();
                let (results, left, [recovered, died]) = (receipt.results, 1, receipt.counts);
                self.look_at_the_clock(protocol, Some(now), Time::MIN);
                let received = Received {
                    clock: now,
                    lease_ends: self.leases.values().min().copied(),
                    retry: self.retries.values().min().copied(),
                    left,
                    recovered,
                    died,
                    results,
                    claims,
                    unsent,
                    ..Received::default()
                };
                return self.reply(received);
            }
            if protocol.ends_old_tries && receipt.token > call.token {
                return Reply::TooLate;
            }
        }
        let mut results = Vec::new();
        for delivery in &call.acknowledge {
            let member = self.holds(protocol, delivery);
            if let Some(member) = member {
                self.leases.remove(&member);
                if protocol.deletes_at_once {
                    self.messages.remove(&member.id);
                }
            }
            results.push(if member.is_some() { Settled::Done } else { Settled::Gone });
        }
        for delivery in &call.extend {
            results.push(self.extend(protocol, delivery, call.policy.lease));
        }
        for (verb, delivery) in &call.settle {
            results.push(self.settle(protocol, *verb, delivery));
        }
        let mut died =
            results[call.acknowledge.len()..].iter().filter(|r| **r == Settled::Dead).count() as u8;
        self.look_at_the_clock(protocol, call.last, call.expected);
        let (recovered, dead, later) = self.recover(protocol);
        died += dead;
        if call.sweep {
            self.sweep();
        }
        if call.empty_inbox && protocol.empties_inbox {
            self.put_inbox_back();
        }
        // Those that are spared count as one that ends later.
        let ends = self.leases.values().filter(|ends| **ends > now).copied();
        let lease_ends = ends.chain(later).min();
        // Without a receipt, another try of this call may have given its ids to messages.
        let is_first_try = !protocol.looks_for_ids || self.receipts.contains_key(&call.receiver);
        let claims = self.claim(protocol, call, is_first_try);
        let claimed = (!claims.is_empty()).then_some(now + call.policy.lease);
        let members =
            claims.iter().map(|(id, record)| Member { id: *id, delivery: record.delivery }).collect();
        let counts = [recovered, died];
        let receipt = Receipt { token: call.token, results: results.clone(), counts, claims: members };
        self.receipts.insert(call.receiver, receipt);
        let left = u8::from(call.most > 0 && !(self.target.is_empty() && self.inbox.is_empty()));
        let lease_ends = lease_ends.into_iter().chain(claimed).min();
        let retry = self.retries.values().min().copied();
        self.reply(Received {
            clock: now,
            lease_ends,
            retry,
            left,
            recovered,
            died,
            to_send: 0,
            results,
            claims,
            unsent: Vec::new(),
        })
    }

    fn reply(&self, received: Received) -> Reply {
        let to_send = self.dead.values().filter(|letter| letter.to_send).count() as u8;
        Reply::Received(Received { to_send, ..received })
    }

    /// The lease of this delivery; or, without fencing, any lease of the message.
    fn holds(&self, protocol: Protocol, delivery: &Delivery) -> Option<Member> {
        let member = delivery.member;
        if protocol.fences {
            self.leases.contains_key(&member).then_some(member)
        } else {
            self.leases.keys().find(|known| known.id == member.id).copied()
        }
    }

    fn extend(&mut self, protocol: Protocol, delivery: &Delivery, by: Time) -> Settled {
        let till = self.clock + by;
        let Some(member) = self.holds(protocol, delivery) else { return Settled::Gone };
        self.leases.entry(member).and_modify(|ends| *ends = till.max(*ends));
        Settled::Done
    }

    fn settle(&mut self, protocol: Protocol, verb: Verb, delivery: &Delivery) -> Settled {
        if let Verb::Extend(by) = verb {
            return self.extend(protocol, delivery, by);
        }
        let Some(member) = self.holds(protocol, delivery) else { return Settled::Gone };
        let id = member.id;
        self.leases.remove(&member);
        let Some(mut record) = self.messages.get(&id).copied() else { return Settled::Gone };
        let mut after = 0;
        match verb {
            Verb::Reject => {
                self.bury(id, &record, Reason::Rejected);
                return Settled::Dead;
            }
            Verb::Unread if record.delivery == 1 && record.failed + record.lost == 0 => {
                self.target.insert(0, record.payload);
                self.messages.remove(&id);
                return Settled::Done;
            }
            Verb::Retry(pause) => {
                record.failed += 1;
                if record.failed >= record.policy.attempts {
                    self.bury(id, &record, Reason::Attempts);
                    return Settled::Dead;
                }
                self.messages.insert(id, record);
                after = pause;
            }
            Verb::Snooze(pause) => after = pause,
            Verb::Unread | Verb::Extend(_) => {}
        }
        self.retries.insert(id, self.clock + after);
        Settled::Done
    }

    pub(super) fn bury(&mut self, id: MessageId, record: &Record, reason: Reason) {
        let Record { delivery, failed, lost, policy, first, payload } = *record;
        if policy.dead != DeadMode::Discard {
            let to_send = policy.dead == DeadMode::Send;
            let died = self.clock;
            self.dead.insert(id, Letter { to_send, died, reason, delivery, failed, lost, first, payload });
        }
        self.messages.remove(&id);
    }

    pub(super) fn put_inbox_back(&mut self) {
        self.inbox.append(&mut self.target);
        std::mem::swap(&mut self.inbox, &mut self.target);
    }

    fn claim(&mut self, protocol: Protocol, call: &Receive, is_first_try: bool) -> Vec<(MessageId, Record)> {
        let most = call.most;
        let mut claims = Vec::new();
        let first = if most == 1 && !call.retries_first { 0 } else { most.div_ceil(2) };
        self.claim_retries(protocol, call, first, &mut claims);
        if protocol.claims_inbox {
            let mut inbox = std::mem::take(&mut self.inbox);
            self.claim_payloads(call, is_first_try, &mut inbox, &mut claims);
            self.inbox = inbox;
        }
        let mut target = std::mem::take(&mut self.target);
        self.claim_payloads(call, is_first_try, &mut target, &mut claims);
        self.target = target;
        self.claim_retries(protocol, call, most - claims.len() as u8, &mut claims);
        claims
    }

    fn claim_retries(
        &mut self,
        protocol: Protocol,
        call: &Receive,
        most: u8,
        claims: &mut Vec<(MessageId, Record)>,
    ) {
        let mut due: Vec<(Time, MessageId)> =
            self.retries.iter().filter(|(_, at)| **at <= self.clock).map(|(id, at)| (*at, *id)).collect();
        due.sort_unstable();
        for (_, id) in due.into_iter().take(most.into()) {
            self.retries.remove(&id);
            let Some(record) = self.messages.get_mut(&id) else { continue };
            record.delivery += u8::from(protocol.numbers_deliveries);
            record.policy = call.policy;
            self.leases.insert(Member { id, delivery: record.delivery }, self.clock + call.policy.lease);
            claims.push((id, *record));
        }
    }

    fn claim_payloads(
        &mut self,
        call: &Receive,
        is_first_try: bool,
        list: &mut Vec<Payload>,
        claims: &mut Vec<(MessageId, Record)>,
    ) {
        let wanted = usize::from(call.most).saturating_sub(claims.len()).min(list.len());
        let ids = (claims.len()..).map(|number| MessageId { token: call.token, number: number as u8 });
        let is_taken = |id: MessageId| self.messages.contains_key(&id) || self.dead.contains_key(&id);
        if !is_first_try && ids.take(wanted).any(is_taken) {
            return;
        }
        while claims.len() < call.most.into() && !list.is_empty() {
            let id = MessageId { token: call.token, number: claims.len() as u8 };
            let (policy, first, payload) = (call.policy, self.clock, list.remove(0));
            let record = Record { delivery: 1, failed: 0, lost: 0, policy, first, payload };
            self.messages.insert(id, record);
            self.leases.insert(Member { id, delivery: 1 }, self.clock + policy.lease);
            claims.push((id, record));
        }
    }

    /// Counts the ids, also of what is no dead letter.
    fn requeue(&mut self, id: MessageId) -> u8 {
        if let Some(Letter { delivery, first, payload, .. }) = self.dead.remove(&id) {
            self.messages
                .insert(id, Record { delivery, failed: 0, lost: 0, policy: REQUEUED, first, payload });
            self.retries.insert(id, self.clock);
        }
        1
    }

    fn remove(&mut self, id: MessageId, retry: bool) -> u8 {
        let Some(record) = self.messages.get(&id) else { return 0 };
        self.leases.remove(&Member { id, delivery: record.delivery });
        if retry {
            self.retries.insert(id, self.clock);
        } else {
            self.retries.remove(&id);
            self.messages.remove(&id);
        }
        1
    }
}
