//! What a receiver does between the calls: what redelay's own plan decides (`src/receiving/plan.rs`).
//!
//! A plan has many times and a random number generator. Of what it knows, a [`Client`] keeps as much as the
//! protocol depends on; to decide, a plan is made that has learned this, and afterwards asked what it knows.
//!
//! Backoff and jitter are left out: what waits for them may happen at any time. A receiver that runs pauses
//! between its calls as long as its pace says, and no longer.

use std::sync::OnceLock;
use std::time::Duration;

use tokio::time::Instant;

use crate::real::receiving::plan::{Blocked, News, Plan, ReceiveDemand, Scope, Step, View, Wake};
use crate::receiving::protocol::{
    Delivery, Policy, Protocol, Receive, ReceiverId, Settled, Time, Token, Verb,
};

/// One receiver, with its connections: one for calls, one for the blocked pop.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Client {
    /// Its id. A process that is started again has another one.
    pub id: ReceiverId,
    /// Whether it runs.
    pub condition: Condition,
    /// The call in flight.
    pub op: Option<Op>,
    /// The blocked pop.
    pub pop: Option<Pop>,
    /// Whether its user waits for messages.
    pub wants: bool,
    /// There may be a payload in the inbox that was moved for it.
    pub woken: bool,
    /// As far as it knows, nothing is ready.
    pub empty: bool,
    /// How long it may rest until its next call.
    pub rest: Time,
    /// When it was last answered.
    pub last: Option<Last>,
    /// A try of one of its calls was lost.
    pub lost: bool,
    /// What its user has.
    pub held: Vec<Held>,
    /// What its user has settled since the last call.
    pub to_settle: Vec<(Settlement, Delivery)>,
}

/// When a receiver was last answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Last {
    /// What the server's clock showed.
    pub clock: Time,
    /// The time since a call that arrived then was sent.
    pub age: Time,
}

/// The times of one receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The length of its leases.
    pub lease: Time,
    /// It makes a call as often as this; and in each third of its lease, if it has a message.
    pub pause: Time,
    /// How long a reply takes.
    pub round_trip: Time,
}

/// Whether a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Condition {
    /// It runs.
    Runs,
    /// It stands still, and does not know.
    Stalled,
    /// It does not exist, until it is started again.
    Dead,
}

/// How a user settles a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Settlement {
    /// It is done.
    Acknowledge,
    /// In another way.
    Other(Verb),
}

/// A delivery that a user has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Held {
    /// What it has.
    pub delivery: Delivery,
    /// For how long its lease is certainly not over.
    pub safe: Time,
    /// The process stood still meanwhile.
    pub stalled: bool,
    /// The server's clock was set forward meanwhile.
    pub exposed: bool,
}

/// A call, through all its tries.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Op {
    /// The same for each try.
    pub call: Receive,
    /// The time since the first try.
    pub age: Time,
    /// The server's clock was set forward since.
    pub exposed: bool,
    /// The process stood still since.
    pub stalled: bool,
    /// A try of it was lost.
    pub repeated: bool,
    /// What its settlements did when it was executed first. Known to nobody but the properties.
    pub done: Option<Vec<Settled>>,
    /// The reply, which is on its way. Otherwise the last try was lost.
    pub answer: Option<Answer>,
}

/// What a receiver learns from a reply.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Answer {
    /// What the server's clock showed.
    pub clock: Time,
    /// When the first lease may be ended.
    pub lease_ends: Option<Time>,
    /// Of each settlement, in the order of the call.
    pub results: Vec<Settled>,
    /// What was claimed.
    pub claims: Vec<Delivery>,
    /// What was claimed, too, and did not arrive.
    pub unsent: Vec<Delivery>,
    /// Nothing is left to claim.
    pub empty: bool,
}

/// A blocked pop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pop {
    /// On the server.
    Blocked,
    /// Executed; the reply is on its way. With the payload, if it was popped instead of moved.
    Replied(Option<u8>),
}

/// What a call returns to its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Of which delivery.
    pub delivery: Delivery,
    /// How it was to be settled.
    pub settlement: Settlement,
    /// What that has done.
    pub result: Settled,
    /// What it really did, at the first time.
    pub done: Option<Settled>,
}

impl Answer {
    /// What it names.
    pub fn deliveries_mut(&mut self) -> impl Iterator<Item = &mut Delivery> {
        self.claims.iter_mut().chain(&mut self.unsent)
    }
}

impl Op {
    /// Whether the reply is on its way.
    #[must_use]
    pub fn is_under_way(&self, pace: Pace) -> bool {
        self.answer.is_some() && !self.repeated && self.age < pace.round_trip
    }
}

/// The unit of time, for the plan: half of its longest pause.
const UNIT: Duration = Duration::from_secs(3);

const AT_REST: View = View { calls: 0, claiming: 0, most: usize::MAX, settles: false, blocked: Blocked::No };

fn length(time: Time) -> Duration {
    UNIT * time.unsigned_abs().into()
}

/// When a plan has learned what it knows: the beginning of all times, for it.
fn begun() -> Instant {
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    *BEGUN.get_or_init(Instant::now)
}

/// When it decides: after all jitter.
fn decided() -> Instant {
    begun() + Duration::from_millis(100)
}

fn one_each(messages: u8) -> ReceiveDemand {
    ReceiveDemand { messages: messages.into(), one_each: true, ..ReceiveDemand::default() }
}

impl Client {
    /// A new receiver, whose user waits.
    #[must_use]
    pub fn new(id: ReceiverId) -> Self {
        Self {
            id,
            condition: Condition::Runs,
            op: None,
            pop: None,
            wants: true,
            woken: false,
            empty: false,
            rest: 0,
            last: None,
            lost: false,
            held: Vec::new(),
            to_settle: Vec::new(),
        }
    }

    /// How many messages its user waits for.
    #[must_use]
    pub fn demand(&self, capacity: u8) -> u8 {
        if self.wants { capacity.saturating_sub(self.held.len() as u8) } else { 0 }
    }

    /// The plan of redelay, of a receiver that knows this. It is asked at [`decided`].
    fn plan(&self, pace: Pace) -> Plan {
        // So that it pauses for as long as that. It decides nothing else by its lease.
        let mut plan = Plan::new(length(5 * pace.pause), begun(), 0);
        let Step::Call(scope) = plan.next(begun(), one_each(1), AT_REST) else {
            unreachable!("the first call")
        };
        let news = News { left: !self.empty, lease_ends_in: Some(length(self.rest)), ..News::default() };
        plan.on_answered(begun(), scope, news, true);
        plan.set_woken(self.woken);
        plan
    }

    /// Keeps what the plan knows: what it would do before anything is due.
    fn keep(&mut self, mut plan: Plan) {
        let next = |plan: &Plan, demand| plan.clone().next(begun(), demand, AT_REST);
        self.woken = matches!(next(&plan, one_each(0)), Step::Call(_));
        plan.set_woken(false);
        self.empty = next(&plan, one_each(1)) == Step::Block;
        let Step::Sleep(at) = next(&plan, one_each(0)) else { unreachable!("nothing is due") };
        self.rest = (at.duration_since(begun()).as_secs() / UNIT.as_secs()) as Time;
    }

    /// What the plan has in hand.
    fn view(&self, pace: Pace) -> View {
        let extends = self.held.iter().any(|held| held.safe <= pace.lease - (pace.lease / 3).max(1));
        View {
            calls: usize::from(self.op.is_some()),
            claiming: self.op.as_ref().map_or(0, |op| op.call.most.into()),
            most: usize::MAX,
            settles: extends || !self.to_settle.is_empty(),
            blocked: if self.pop.is_some() { Blocked::Waits } else { Blocked::No },
        }
    }

    /// What to do now.
    fn next(&self, capacity: u8, pace: Pace) -> (Step, Plan) {
        let mut plan = self.plan(pace);
        let step = plan.next(decided(), one_each(self.demand(capacity)), self.view(pace));
        (step, plan)
    }

    /// Whether it has a reason for a call.
    #[must_use]
    pub fn needs_call(&self, capacity: u8, pace: Pace) -> bool {
        matches!(self.next(capacity, pace).0, Step::Call(_))
    }

    /// The next call.
    pub fn turn(&mut self, token: Token, policy: Policy, capacity: u8, pace: Pace) -> Receive {
        let (Step::Call(scope), plan) = self.next(capacity, pace) else {
            unreachable!("a reason for a call")
        };
        // The plan sweeps less often, and alternates between retries and new messages.
        let is_due = self.rest == 0;
        self.keep(plan);
        let last = self.last.map(|last| last.clock);
        let expected = self.last.map_or(0, |last| last.clock + last.age);
        let mut acknowledge = Vec::new();
        let mut settle = Vec::new();
        for (settlement, delivery) in std::mem::take(&mut self.to_settle) {
            match settlement {
                Settlement::Acknowledge => acknowledge.push(delivery),
                Settlement::Other(verb) => settle.push((verb, delivery)),
            }
        }
        let extend = self.held.iter().filter(|held| held.safe < policy.lease || held.exposed);
        let extend = extend.map(|held| held.delivery).collect();
        let (most, empty_inbox) = (scope.most as u8, scope.empty_inbox);
        let (receiver, sweep, retries_first) = (self.id, is_due, is_due);
        Receive {
            receiver,
            token,
            most,
            policy,
            last,
            expected,
            sweep,
            retries_first,
            empty_inbox,
            acknowledge,
            extend,
            settle,
        }
    }

    /// Takes the reply to its call. Returns what the call returns to its user.
    pub fn receive(&mut self, protocol: Protocol, capacity: u8, pace: Pace, now: Time) -> Vec<Told> {
        let Some(Op { call, age, exposed, stalled, repeated, done, answer: Some(answer) }) = self.op.take()
        else {
            unreachable!("a reply to a call");
        };
        let lease = call.policy.lease;
        // Their leases are over, or the first try may have claimed them long ago.
        let are_old = age >= lease || repeated && 2 * age > lease;
        let call_age = age;
        let age = if protocol.counts_from_the_call { age } else { 0 };
        let done = |n: usize| done.as_ref().map(|done| done[n]);
        let mut told = Vec::new();
        for (n, result) in answer.results.iter().copied().enumerate() {
            let (acks, extends) = (call.acknowledge.len(), call.extend.len());
            if n < acks {
                let (delivery, settlement) = (call.acknowledge[n], Settlement::Acknowledge);
                told.push(Told { delivery, settlement, result, done: done(n) });
            } else if n < acks + extends {
                let safe = lease - age;
                self.extended(Held { delivery: call.extend[n - acks], safe, stalled, exposed }, result);
            } else {
                let (verb, delivery) = call.settle[n - acks - extends];
                told.push(Told { delivery, settlement: Settlement::Other(verb), result, done: done(n) });
            }
        }
        for delivery in answer.claims {
            if self.demand(capacity) > 0 && !are_old {
                let safe = (lease - age).max(0);
                self.held.push(Held { delivery, safe, stalled, exposed });
            } else {
                self.to_settle.push((Settlement::Other(Verb::Unread), delivery));
            }
        }
        let unsent = answer.unsent.into_iter();
        self.to_settle.extend(unsent.map(|delivery| (Settlement::Other(Verb::Unread), delivery)));
        let scope = Scope { most: call.most.into(), empty_inbox: call.empty_inbox, ..Scope::default() };
        let lease_ends_in = answer.lease_ends.map(|ends| length((ends - now).max(0)));
        let news = News { left: !answer.empty, lease_ends_in, ..News::default() };
        let mut plan = self.plan(pace);
        plan.on_answered(begun(), scope, news, true);
        self.keep(plan);
        // If it is due again already, then in the next unit of time.
        self.rest = self.rest.max(1);
        self.last = Some(Last { clock: answer.clock, age: if repeated { 0 } else { call_age } });
        told
    }

    fn extended(&mut self, extended: Held, result: Settled) {
        let Some(n) = self.held.iter().position(|held| held.delivery == extended.delivery) else { return };
        if result == Settled::Gone {
            self.held.remove(n);
        } else {
            self.held[n] = Held { safe: extended.safe.max(self.held[n].safe), ..extended };
        }
    }

    /// Blocks, if the plan says so.
    pub fn park(&mut self, capacity: u8, pace: Pace) {
        if self.condition == Condition::Runs && self.next(capacity, pace).0 == Step::Block {
            self.pop = Some(Pop::Blocked);
        }
    }

    /// The blocked pop has ended. Returns a payload to be recorded.
    pub fn wake(&mut self, pace: Pace) -> Option<u8> {
        let pop = self.pop.take();
        self.on_woken(Wake::Moved(true), pace);
        match pop {
            Some(Pop::Replied(popped)) => popped,
            _ => None,
        }
    }

    /// The connection of the blocked pop was lost.
    pub fn lose_pop(&mut self, pace: Pace) {
        self.pop = None;
        self.on_woken(Wake::Unknown, pace);
    }

    fn on_woken(&mut self, wake: Wake, pace: Pace) {
        let mut plan = self.plan(pace);
        plan.on_woken(begun(), wake, false);
        self.keep(plan);
    }

    /// Time passes.
    pub fn advance(&mut self, by: Time, lease: Time) {
        self.rest = (self.rest - by).max(0);
        if let Some(last) = &mut self.last {
            last.age = last.age.saturating_add(by);
        }
        for held in &mut self.held {
            held.safe = (held.safe - by).max(0);
        }
        if let Some(op) = &mut self.op {
            op.age = (op.age + by).min(lease);
        }
    }

    /// Whether the next unit of time may begin.
    #[must_use]
    pub fn is_idle(&self, capacity: u8, pace: Pace) -> bool {
        let at_rest = match &self.op {
            Some(op) => op.is_under_way(pace),
            None => !self.needs_call(capacity, pace),
        };
        self.condition != Condition::Runs || at_rest && !matches!(self.pop, Some(Pop::Replied(_)))
    }

    /// Whether a payload that was popped for it is on its way to it.
    #[must_use]
    pub fn pops(&self, payload: u8) -> bool {
        self.pop == Some(Pop::Replied(Some(payload)))
    }
}
