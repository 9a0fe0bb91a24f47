//! The task of one receiver. It carries out what its [`Plan`] decides: it has the calls, the deliveries and
//! the blocked pop, and reads the clock.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::OptionFuture;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::call::{Report, Settings, Turn};
use super::deliveries::Deliveries;
use super::forward::Forwarding;
use super::in_flight::{Answered, InFlight, NoReply};
use super::plan::{Blocked, Plan, ReceiveDemand, Scope, Step, View, Wake};
use super::waiting::Waiting;
use crate::agreement::Pair;
use crate::announcements::Announced;
use crate::conn::{Conn, OpError};
use crate::pacing::{within, yield_once};
use crate::pops::{PendingWake, Permit, Pops};
use crate::telemetry::{Delivered, QueueCounters, events};
use crate::wire::keys::{Keys, MessageKeys};

/// A timer that fires this late says that something has held the runtime up.
const LATE: Duration = Duration::from_millis(500);

pub(super) struct Task {
    conn: Conn,
    pops: Pops,
    keys: Keys,
    of_messages: MessageKeys,
    counters: Arc<QueueCounters>,
    lease: Duration,
    in_flight: InFlight,
    waiting: Arc<Waiting>,
    announced: Arc<Announced>,
    deliveries: Deliveries,
    plan: Plan,
    /// What the next call settles.
    turn: Turn,
    /// What wakes it up.
    parked: Option<ParkedWake>,
    /// The permission to block.
    permit: Option<Permit>,
    /// Why the server has last refused to claim.
    refusal: Option<OpError>,
    /// Makes keys agree again.
    agreeing: Option<AbortOnDropHandle<()>>,
    forwarding: Forwarding,
    /// Whether messages of a later version were reported.
    knows_newer: bool,
}

struct ParkedWake {
    wake: PendingWake,
    expired: bool,
}

impl ParkedWake {
    fn expire(&mut self) {
        if !std::mem::replace(&mut self.expired, true) {
            self.wake.expire();
        }
    }
}

impl Task {
    pub(super) fn new(
        conn: Conn,
        pops: Pops,
        keys: Keys,
        settings: &Settings,
        waiting: Arc<Waiting>,
        announced: Arc<Announced>,
        in_flight: InFlight,
    ) -> Self {
        let counters = conn.counters().queue(&keys);
        let lease = settings.lease();
        let deliveries = Deliveries::new(conn.clone(), counters.clone(), waiting.clone(), settings);
        let forwarding = Forwarding::new(settings.send_to.clone());
        Self {
            of_messages: keys.of_messages(),
            counters,
            conn,
            pops,
            keys,
            lease,
            in_flight,
            waiting,
            announced,
            deliveries,
            plan: Plan::new(lease, Instant::now(), fastrand::u64(..)),
            turn: Turn::default(),
            parked: None,
            permit: None,
            refusal: None,
            agreeing: None,
            forwarding,
            knows_newer: false,
        }
    }

    /// Runs until the last handle is gone (`end`) or the client ends (`stop`), and then settles what there
    /// is.
    pub(super) async fn run(mut self, end: CancellationToken, stop: CancellationToken) {
        let (waiting, announced) = (self.waiting.clone(), self.announced.clone());
        // These futures are kept between rounds, because registering a new waiter in each round costs more.
        let mut changed = pin!(waiting.changed());
        let (mut retry, mut cancelled) = (pin!(announced.retry()), pin!(announced.cancel_requests()));
        let mut closing = pin!(self.pops.stopping().clone().cancelled_owned());
        let (mut ending, mut stopping) = (pin!(end.cancelled()), pin!(stop.cancelled()));
        let mut timer = pin!(sleep_until(Instant::now()));
        loop {
            let ends = end.is_cancelled() || stop.is_cancelled();
            let wakes_at = if ends { None } else { self.take_steps() };
            let next = self.next_timer(wakes_at);
            timer.as_mut().reset(next);
            // What is announced during a call may be in its reply, or not. So it is looked at behind the
            // reply.
            let rests = self.in_flight.is_empty();
            let follows = self.plan.follows_receives(self.in_flight.len());
            // Every branch is cancel safe: notifications, tokens, timers, and futures that stay where they
            // are.
            tokio::select! {
                answered = self.in_flight.next() => if !self.on_ended(answered) { break },
                () = &mut changed, if follows => changed.set(waiting.changed()),
                Some(answer) = OptionFuture::from(self.parked.as_mut().map(|parked| &mut parked.wake)), if rests => {
                    let expired = self.parked.take().is_none_or(|parked| parked.expired);
                    self.on_woken(answer, expired);
                }
                at = &mut retry, if rests => {
                    retry.set(announced.retry());
                    self.plan.on_announced(Instant::now(), at);
                }
                messages = &mut cancelled => {
                    cancelled.set(announced.cancel_requests());
                    self.deliveries.cancel(messages);
                }
                () = self.deliveries.confirmed() => {}
                more = self.forwarding.ended(&self.keys) => if more { self.plan.on_forwarded(Instant::now()) },
                () = &mut timer => {}
                () = &mut closing, if !self.plan.is_closed() => self.close(),
                () = &mut ending, if rests => break,
                () = &mut stopping, if rests => break,
            }
            self.notice_delay(next);
            // Handlers that were answered just now settle and receive again. They share one call, if the task
            // lets them run first. That wakes up a thread, so it is not done for one handler.
            if self.deliveries.are_several() || self.waiting.has_several() {
                yield_once().await;
            }
        }
        self.finish(&stop).await;
    }

    /// Takes the steps that are to be taken now. Returns when to ask for the next one; `None` if that is when
    /// a call is answered.
    fn take_steps(&mut self) -> Option<Instant> {
        let mut has_answered = false;
        loop {
            let (step, demand) = self.next_step(has_answered);
            match step {
                Step::Call(scope) => self.begin(scope, demand),
                Step::Answer { refused } => {
                    let why = self.refusal.clone().filter(|_| refused);
                    self.waiting.answer(demand.before, false, || why.clone().map_or(Ok(()), Err));
                    has_answered = true;
                }
                Step::Block => self.block(),
                Step::Unblock => self.unblock(),
                Step::Sleep(at) => return Some(at),
                Step::Idle => return None,
            }
        }
    }

    /// What to do now, and the demand for which this was decided.
    fn next_step(&mut self, has_answered: bool) -> (Step, ReceiveDemand) {
        let (now, mut demand) = (Instant::now(), self.waiting.demand());
        // Receives that do not wait may come as fast as they are answered. What is to be settled does not
        // wait for them, and they have notified the task.
        demand.at_once &= !has_answered;
        let mut view = View {
            calls: self.in_flight.len(),
            claiming: self.in_flight.claiming(),
            most: self.in_flight.most(),
            settles: self.turn.settles(),
            blocked: match &self.parked {
                None => Blocked::No,
                Some(ParkedWake { expired: false, .. }) => Blocked::Waits,
                Some(ParkedWake { expired: true, .. }) => Blocked::Ending,
            },
        };
        if !view.settles && self.plan.may_call(demand, view) {
            self.deliveries.gather(now, &mut self.turn);
            view.settles = self.turn.settles();
        }
        (self.plan.next(now, demand, view), demand)
    }

    fn begin(&mut self, scope: Scope, demand: ReceiveDemand) {
        if scope.most > 0 {
            // If the notice of a change was lost, the server tells of none until the list is read again.
            self.parked.take_if(|parked| matches!(parked.wake, PendingWake::Changed(_)));
        }
        let turn = Turn { scope, ..std::mem::take(&mut self.turn) };
        self.in_flight.begin(turn, demand);
    }

    fn block(&mut self) {
        self.permit = self.permit.take().or_else(|| self.pops.permit(&self.keys));
        let wake = self.pops.wake(&self.keys, &self.of_messages.inbox, self.permit.as_ref());
        self.parked = Some(ParkedWake { wake, expired: false });
    }

    fn unblock(&mut self) {
        if let Some(parked) = &mut self.parked {
            parked.expire();
        }
        self.permit = None;
    }

    /// When to look at the clock again.
    fn next_timer(&mut self, wakes_at: Option<Instant>) -> Instant {
        let now = Instant::now();
        // Handlers are told when their leases are over, also while the server does not answer.
        let over = self.deliveries.end_leases(now);
        let next = match wakes_at {
            Some(at) => at.min(self.deliveries.next().unwrap_or(at)),
            None => over.unwrap_or(now + self.lease),
        };
        next.max(now)
    }

    /// The timer should have fired at `due`, or later.
    fn notice_delay(&self, due: Instant) {
        let late = due.elapsed();
        if late > LATE.max(self.lease / 3) && !self.deliveries.is_empty() {
            events::runtime_blocked(&self.keys, late);
        }
    }

    /// Somebody has deleted a key, or a part of it. What has begun goes on: it may take minutes.
    fn agree(&mut self) {
        if self.agreeing.as_ref().is_some_and(|agreeing| !agreeing.is_finished()) {
            return;
        }
        let (conn, keys) = (self.conn.clone(), self.keys.clone());
        let agree = async move {
            for pair in [Pair::Dead, Pair::Retries] {
                let _ = pair.agree_or_report(&conn, &keys).await;
            }
        };
        self.agreeing = Some(AbortOnDropHandle::new(self.conn.runtime().spawn(agree)));
    }

    /// The blocked pop ended.
    fn on_woken(&mut self, answer: Result<bool, OpError>, ending: bool) {
        let wake = match answer {
            Ok(moved) => Wake::Moved(moved),
            Err(OpError::Server(_) | OpError::NotExecuted(_)) => Wake::Refused,
            Err(_) => Wake::Unknown,
        };
        self.plan.on_woken(Instant::now(), wake, ending);
    }

    /// A call has ended. Returns whether the server answers calls.
    fn on_ended(&mut self, answered: Answered) -> bool {
        if let (Some(round_trip), Ok(_)) = (answered.round_trip(), &answered.result)
            && self.plan.on_round_trip(round_trip)
        {
            events::receiver_far(&self.keys, round_trip);
        }
        let Answered { mut turn, demand, sent, repeated, unconfirmed, result, .. } = answered;
        let report = match result {
            Ok(report) => report,
            Err(NoReply { error, lost, closed }) => {
                if !closed {
                    self.deliveries.on_refused(&turn);
                }
                turn.answer_all(&if lost { error.clone().after_a_lost_try() } else { error.clone() });
                if !closed {
                    self.on_refused(error, demand);
                }
                return !closed;
            }
        };
        let now = Instant::now();
        self.note(&report);
        let Report { news, settled, claims, unsent, refused, .. } = report;
        let scope = turn.scope;
        self.deliveries.on_settled(turn, settled, sent, unconfirmed);
        let are_old = self.plan.are_old(now, sent, repeated);
        self.deliveries.hand_out(claims, unsent, sent, are_old);
        let consequences = self.plan.on_answered(now, scope, news, self.in_flight.is_empty());
        if consequences.agree {
            self.agree();
        }
        if let Some(why) = refused {
            self.on_refused(OpError::Server(why), demand);
        }
        if consequences.recovered {
            events::receives_recovered(&self.keys);
        }
        if consequences.answer {
            self.waiting.answer(demand.before, false, || Ok(()));
        }
        true
    }

    /// Counts and reports what a call has found, and sends dead letters on if there are some to be sent.
    fn note(&mut self, report: &Report) {
        self.forwarding.start(&self.conn, &self.keys, report.to_send);
        self.counters.delivered(Delivered::Recovered, report.recovered);
        self.counters.delivered(Delivered::Died, report.died);
        self.counters.delivered(Delivered::Vanished, report.gone);
        self.counters.delivered(Delivered::Expired, report.expired);
        if report.expired > 0 {
            events::jobs_expired(&self.keys, report.expired);
        }
        if report.recovered > 0 {
            events::leases_ended(&self.keys, report.recovered);
        }
        if report.trimmed > 0 {
            events::dead_letters_removed(&self.keys, report.trimmed);
        }
        if report.died > 0 {
            events::dead_letters(&self.keys, report.died);
        }
        if report.gone > 0 {
            events::keys_disagreed(&self.keys, "messages", report.gone, 0);
        }
        if let Some(why) = &report.unburied {
            self.conn.counters().failed(format!("dead letters of `{}`", events::name(&self.keys)), why);
        }
        let refused = report.settled.iter().find_map(|settled| settled.as_ref().err());
        if let Some(why) = refused.filter(|_| report.unburied.is_none()) {
            let what = format!("settle messages of `{}`", events::name(&self.keys));
            self.conn.counters().failed(what, why);
        }
        if report.newer > 0 && !std::mem::replace(&mut self.knows_newer, true) {
            let what = format!("messages of `{}`", events::name(&self.keys));
            self.conn.counters().failed(what, "they are of a newer version of redelay, and left to it");
            events::foreign_fields(&self.keys, "messages", report.newer);
        }
    }

    /// The server refuses to claim.
    fn on_refused(&mut self, error: OpError, demand: ReceiveDemand) {
        if self.plan.on_refused(Instant::now()) {
            self.conn.counters().failed(format!("receive from `{}`", events::name(&self.keys)), &error);
            events::receives_failing(&self.keys, &error);
        }
        self.waiting.answer(demand.before, true, || Err(error.clone()));
        self.refusal = Some(error);
    }

    /// No more receives. What they have not read is released.
    fn close(&mut self) {
        self.plan.close();
        self.waiting.close();
        self.deliveries.close();
    }

    /// Settles what is left, however long that takes while the client goes on, and leaves nothing of this
    /// receiver behind.
    async fn finish(mut self, stop: &CancellationToken) {
        self.close();
        let bound = self.conn.command_timeout();
        let is_over = async {
            stop.cancelled().await;
            within(bound, pending::<()>()).await;
        };
        let settling = async {
            while !self.in_flight.is_empty() {
                let answered = self.in_flight.next().await;
                self.on_ended(answered);
            }
            // First what is known. Blocked pops may take the whole time to end, if their server is away.
            self.plan.set_woken(false);
            self.settle_all().await;
            let parked = self.parked.take();
            let ended = async {
                if let Some(mut parked) = parked {
                    parked.expire();
                    let _ = parked.wake.await;
                }
                // A blocked pop may move one more payload until it has ended.
                if self.pops.stopping().is_cancelled() {
                    self.pops.stopped().await;
                }
            };
            // Replicas confirm meanwhile what was settled.
            futures::future::join(ended, self.deliveries.finish()).await;
            self.plan.set_woken(true);
            self.settle_all().await;
            // Anybody may complete that, later.
            let _ = within(bound, self.forwarding.finish(&self.keys)).await;
            self.deliveries.finish().await;
            self.in_flight.finish().await;
        };
        tokio::select! {
            () = settling => {}
            () = is_over => {}
        }
    }

    /// Makes calls while there is something to do and the server answers.
    async fn settle_all(&mut self) {
        while let (Step::Call(scope), demand) = self.next_step(false) {
            self.begin(scope, demand);
            let answered = self.in_flight.next().await;
            let is_refused = answered.result.is_err();
            if !self.on_ended(answered) || is_refused {
                break;
            }
        }
    }
}

impl Drop for Task {
    /// The runtime may end before the client does.
    fn drop(&mut self) {
        self.turn.answer_all(&OpError::Closed);
        self.waiting.end();
    }
}
