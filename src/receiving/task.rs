//! The task of one receiver: it decides what the next call does, makes it, and hands out what it brings.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::OptionFuture;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::call::{Outcome, Settled, Settlement, Turn};
use super::waiting::{Demand, ToSettle, Waiting};
use super::{Claim, Settings};
use crate::conn::{Command, Conn, OpError};
use crate::leases::Leases;
use crate::outbox::Outbox;
use crate::pacing::{backoff, yield_once};
use crate::pops::{PendingTake, Pops, Wanted};
use crate::telemetry::{Delivered, QueueCounters, events};
use crate::wire::keys::{Keys, MessageKeys, new_binary_id};
use crate::wire::message::{Member, Record};

/// The most messages that one call claims, and the most deliveries that it settles.
const MOST: usize = 1000;
/// The most settlements of one call that may have a text of a kilobyte.
const MOST_TEXTS: usize = 100;
/// An idle receiver makes a call this often, and at least every third of its lease.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);
/// How often a receiver sweeps.
const SWEEP: Duration = Duration::from_secs(10);
/// Receivers of other processes do not look at an ended lease at the same time.
const JITTER: Duration = Duration::from_millis(20);
/// After this time without a receive, the blocked pop is ended. A loop of receives with a timeout keeps it.
const LINGER: Duration = Duration::from_secs(1);
/// How long a receiver asks instead of waiting, after the server has refused to let it wait.
const ASK: Duration = Duration::from_secs(1);
/// A timer that fires this late says that something has held the runtime up.
const LATE: Duration = Duration::from_millis(500);

/// What is known of the payloads that are ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// There may be some.
    Unknown,
    /// There were none; a blocked pop finds the next one.
    Empty,
}

pub(super) struct Task {
    conn: Conn,
    pops: Pops,
    keys: Keys,
    of_messages: MessageKeys,
    settings: Settings,
    counters: Arc<QueueCounters>,
    lease: Duration,
    /// The id of the receiver.
    id: Bytes,
    waiting: Arc<Waiting>,
    outbox: Outbox<Vec<Claim>>,
    /// Claims that nobody read.
    unread: mpsc::UnboundedReceiver<Vec<Claim>>,
    leases: Leases,
    /// The blocked pop.
    parked: Option<Parked>,
    content: Content,
    /// A payload may be in the inbox that was moved there for this receiver.
    woken: bool,
    /// The next call looks at retries first, if it claims only one message.
    retries_first: bool,
    /// The time of the next call, if there is no other reason for one.
    next_call: Instant,
    /// When the first retry is due.
    retry_at: Option<Instant>,
    next_sweep: Instant,
    /// The server has refused to claim or to wait: no attempt before then.
    pause_until: Option<Instant>,
    refusals: u32,
    may_park_at: Instant,
    /// When the last receive ended.
    idle_since: Option<Instant>,
    /// Dead letters could not be sent on.
    forward_failing: bool,
    closed: bool,
}

struct Parked {
    take: PendingTake,
    expired: bool,
}

/// Why a call was not answered.
enum NoAnswer {
    Refused(OpError),
    Closed,
}

impl Task {
    pub(super) fn new(conn: Conn, pops: Pops, keys: Keys, settings: Settings, waiting: Arc<Waiting>) -> Self {
        let (returns, unread) = mpsc::unbounded_channel();
        let outbox = Outbox::new({
            let waiting = waiting.clone();
            move |claims| {
                // Fails only when the task has ended. The leases end then.
                drop(returns.send(claims));
                waiting.wake();
            }
        });
        let lease = Duration::from_millis(settings.policy.lease_ms.into());
        let now = Instant::now();
        Self {
            of_messages: keys.of_messages(),
            leases: Leases::new(lease, settings.extend_for),
            id: Bytes::copy_from_slice(&new_binary_id()),
            counters: conn.counters().queue(&keys),
            conn,
            pops,
            keys,
            settings,
            lease,
            waiting,
            outbox,
            unread,
            parked: None,
            content: Content::Unknown,
            woken: false,
            retries_first: false,
            next_call: now,
            retry_at: None,
            next_sweep: now,
            pause_until: None,
            refusals: 0,
            may_park_at: now,
            idle_since: None,
            forward_failing: false,
            closed: false,
        }
    }

    /// Runs until the last handle is gone (`end`) or the client ends (`stop`), and then settles what there is.
    pub(super) async fn run(mut self, end: CancellationToken, stop: CancellationToken) {
        let closing = self.pops.stopping().clone();
        loop {
            let next = self.next_timer().max(Instant::now());
            // Every branch is cancel safe: notifications, tokens, timers, and a pop that stays where it is.
            tokio::select! {
                () = self.waiting.changed() => {}
                Some(answer) = OptionFuture::from(self.parked.as_mut().map(|parked| &mut parked.take)) => {
                    self.parked = None;
                    self.on_woken(answer.map(|popped| popped.is_some()));
                }
                () = sleep_until(next) => self.on_timer(next),
                () = closing.cancelled(), if !self.closed => self.close(),
                () = end.cancelled() => break,
                () = stop.cancelled() => break,
            }
            // Handlers that were answered just now settle and receive again, and share one call.
            yield_once().await;
            while let Some((turn, demand)) = self.next_turn() {
                match self.make(turn, demand, &stop).await {
                    Ok(()) => {}
                    Err(NoAnswer::Refused(error)) => self.on_refused(error, demand),
                    Err(NoAnswer::Closed) => break,
                }
                if end.is_cancelled() || stop.is_cancelled() {
                    break;
                }
                yield_once().await;
            }
            self.park();
        }
        self.finish(stop).await;
    }

    /// When to look at the clock again.
    fn next_timer(&self) -> Instant {
        let demand = self.waiting.demand();
        let mut next = self.next_call;
        next = next.min(self.leases.next().unwrap_or(next));
        if demand.messages > 0 {
            next = next.min(self.retry_at.unwrap_or(next));
            if self.parked.is_none() && !self.closed {
                let resumes = self.pause_until.unwrap_or(self.may_park_at);
                next = next.min(resumes.max(self.may_park_at));
            }
        } else if let (Some(parked), Some(since)) = (&self.parked, self.idle_since)
            && !parked.expired
        {
            next = next.min(since + LINGER);
        }
        next
    }

    fn on_timer(&self, due: Instant) {
        let late = due.elapsed();
        if late > LATE.max(self.lease / 3) && !self.leases.is_empty() {
            events::runtime_blocked(&self.keys, late);
        }
    }

    /// The blocked pop ended.
    fn on_woken(&mut self, answer: Result<bool, OpError>) {
        match answer {
            Ok(moved) => {
                self.woken |= moved;
                self.may_park_at = Instant::now();
            }
            Err(OpError::Closed) => self.woken = true,
            // Without the permission, or without memory on the server, the receiver asks.
            Err(OpError::Server(_)) => {
                self.content = Content::Unknown;
                self.may_park_at = Instant::now() + ASK.mul_f64(0.75 + fastrand::f64() / 2.0);
            }
            Err(_) => self.woken = true,
        }
    }

    /// No more receives. What they have not read is released.
    fn close(&mut self) {
        self.closed = true;
        self.waiting.close();
        self.outbox.close();
        // A payload may have been moved for a receive that has ended.
        self.woken = true;
        self.content = Content::Unknown;
    }

    /// What the next call is to do, if one is needed now.
    fn next_turn(&mut self) -> Option<(Turn, Demand)> {
        let now = Instant::now();
        let demand = self.waiting.demand();
        if demand.messages > 0 {
            self.idle_since = None;
        } else if self.idle_since.is_none() {
            self.idle_since = Some(now);
        }
        let mut turn = Turn::default();
        let mut unread = Vec::new();
        while let Ok(claims) = self.unread.try_recv() {
            unread.extend(claims.into_iter().map(|claim| claim.member));
        }
        // The first of them is to be the head of the target again, of all receives that were dropped. Ids are in the order of
        // the claims.
        unread.sort_unstable_by(|one, other| other.cmp(one));
        for member in unread {
            self.leases.remove(&member);
            turn.settle.push(ToSettle::unheard(member, Settlement::Unread));
        }
        for to_settle in self.waiting.take_to_settle(MOST, MOST_TEXTS) {
            match &to_settle.settlement {
                Settlement::Acknowledge => turn.acknowledge.push(to_settle),
                _ => turn.settle.push(to_settle),
            }
        }
        for to_settle in turn.acknowledge.iter().chain(&turn.settle) {
            if !matches!(to_settle.settlement, Settlement::Extend { .. }) {
                self.leases.remove(&to_settle.member);
            }
        }
        if self.leases.next().is_some_and(|next| next <= now) {
            turn.extend = self.leases.due(now);
        }
        let is_due = self.next_call <= now;
        let may_look = self.pause_until.is_none_or(|until| until <= now);
        let looks = demand.messages > 0
            && may_look
            && (self.woken
                || demand.at_once
                || is_due
                || self.content == Content::Unknown
                || self.retry_at.is_some_and(|retry| retry <= now));
        let settles = !(turn.acknowledge.is_empty() && turn.extend.is_empty() && turn.settle.is_empty());
        let empties = self.woken && demand.messages == 0;
        if !(settles || looks || is_due || empties) {
            return None;
        }
        turn.most = if looks { demand.messages.min(MOST) } else { 0 };
        turn.empty_inbox = empties || is_due && turn.most == 0;
        turn.sweep = is_due && self.next_sweep <= now;
        turn.retries_first = self.retries_first;
        if turn.most > 0 {
            self.woken = false;
            self.retries_first = !self.retries_first;
        }
        if turn.empty_inbox {
            self.woken = false;
        }
        if turn.sweep {
            self.next_sweep = now + SWEEP;
        }
        // Until the reply says more.
        self.next_call = now + SIGN_OF_LIFE.min(self.lease / 3);
        Some((turn, demand))
    }

    /// Makes a call until it is answered, and hands out what it brings. Meanwhile leases may end.
    async fn make(
        &mut self,
        mut turn: Turn,
        demand: Demand,
        stop: &CancellationToken,
    ) -> Result<(), NoAnswer> {
        // The server may count from the first try on.
        let sent = Instant::now();
        let call = turn.call(&self.id, &self.keys, &self.of_messages, &self.settings);
        let settlements = turn.acknowledge.len() + turn.extend.len() + turn.settle.len();
        let mut attempts = 0;
        let outcome = loop {
            let reply = {
                let mut reply = std::pin::pin!(call.clone().run(&self.conn));
                loop {
                    let over = self.leases.end(Instant::now());
                    let over = OptionFuture::from(over.map(sleep_until));
                    tokio::select! {
                        biased;
                        reply = &mut reply => break reply,
                        Some(()) = over => {}
                    }
                }
            };
            match reply {
                Ok(reply) => match Outcome::read(reply, settlements) {
                    Some(outcome) => break outcome,
                    None => drop(self.conn.desynchronised()),
                },
                Err(OpError::Closed) => return Err(NoAnswer::Closed),
                Err(error @ (OpError::Server(_) | OpError::Rejected(_))) => {
                    turn.answer_all(&error);
                    turn.extend.iter().for_each(|member| self.leases.on_refused(member));
                    return Err(NoAnswer::Refused(error));
                }
                Err(error) => {
                    if stop.is_cancelled() {
                        turn.answer_all(&error);
                        return Err(NoAnswer::Closed);
                    }
                    // Receives that do not wait are not delayed by what nobody can do now.
                    self.waiting.answer(u64::MAX, false, || Err(error.clone()));
                }
            }
            let pause = sleep(backoff(attempts));
            tokio::select! {
                () = pause => {}
                () = stop.cancelled() => {}
            }
            attempts += 1;
        };
        let to_send = outcome.to_send;
        self.on_answered(turn, demand, outcome, sent);
        if let Some(destination) = self.settings.send_to.clone().filter(|_| to_send > 0) {
            match destination.send(&self.conn, &self.of_messages, to_send).await {
                // What cannot be read is not sent, and is no reason to hurry.
                Ok(0) => self.forward_failing = false,
                // There may be more.
                Ok(_) => {
                    self.forward_failing = false;
                    self.next_call = Instant::now();
                }
                Err(error) => {
                    if !std::mem::replace(&mut self.forward_failing, true) {
                        events::forward_failing(&self.keys, &error);
                    }
                }
            }
        }
        Ok(())
    }

    fn on_answered(&mut self, turn: Turn, demand: Demand, outcome: Outcome, sent: Instant) {
        let now = Instant::now();
        let Outcome { settled, claims, refused, .. } = outcome;
        let mut settled = settled.into_iter();
        for (to_settle, result) in turn.acknowledge.into_iter().zip(&mut settled) {
            self.count(&to_settle.settlement, &result);
            let _ = to_settle.answer.send(result);
        }
        for (member, result) in turn.extend.into_iter().zip(&mut settled) {
            match result {
                Ok(settled) => self.leases.on_extended(&member, sent, settled == Settled::Done),
                Err(_) => self.leases.on_refused(&member),
            }
        }
        for (to_settle, result) in turn.settle.into_iter().zip(&mut settled) {
            match (&to_settle.settlement, &result) {
                (Settlement::Extend { by_ms }, Ok(Settled::Done)) => {
                    let safe_until = sent + Duration::from_millis(*by_ms);
                    self.leases.on_extended_by_hand(&to_settle.member, safe_until);
                }
                (Settlement::Extend { .. }, Ok(_)) => {
                    self.leases.on_extended(&to_settle.member, sent, false);
                }
                _ => {}
            }
            self.count(&to_settle.settlement, &result);
            let _ = to_settle.answer.send(result);
        }
        self.counters.delivered(Delivered::Received, claims.len() as u64);
        self.counters.delivered(Delivered::Recovered, outcome.recovered);
        self.counters.delivered(Delivered::Died, outcome.died);
        let leases = &mut self.leases;
        let claim = |(member, record): (Member, Record)| Claim {
            lease: leases.add(member, sent),
            member,
            failed: record.failed,
            lost: record.lost,
            first: record.first,
            payload: record.payload,
        };
        let claims: Vec<Claim> = claims.into_iter().map(claim).collect();
        // A call claims a megabyte or so, and no more than it was told to.
        let is_all = claims.is_empty() || outcome.left == 0 && outcome.retry_in != Some(Duration::ZERO);
        let unwanted = self.waiting.hand_out(claims, &self.outbox);
        if !unwanted.is_empty() {
            drop(self.outbox.hold(unwanted));
        }
        let after = |wait: Duration| now + wait;
        self.retry_at = outcome.retry_in.map(|wait| after(wait + Duration::from_millis(1)));
        if let Some(ends) = outcome.lease_ends_in {
            let looks = after(ends) + Duration::from_millis(1) + JITTER.mul_f64(fastrand::f64());
            self.next_call = self.next_call.min(looks);
        }
        if outcome.recovered > 0 {
            events::leases_ended(&self.keys, outcome.recovered);
        }
        if outcome.trimmed > 0 {
            events::dead_letters_removed(&self.keys, outcome.trimmed);
        }
        if outcome.died > 0 {
            events::dead_letters(&self.keys, outcome.died);
        }
        if let Some(why) = refused {
            self.on_refused(OpError::Server(why), demand);
            return;
        }
        if turn.most > 0 {
            self.refusals = 0;
            self.pause_until = None;
            self.content = if outcome.left == 0 { Content::Empty } else { Content::Unknown };
            // They have seen what there is. If there is more, the next call is for them.
            if is_all {
                self.waiting.answer(demand.before, false, || Ok(()));
            }
        } else if turn.empty_inbox {
            self.content = Content::Unknown;
        }
    }

    fn count(&self, settlement: &Settlement, result: &Result<Settled, OpError>) {
        let what = match (result, settlement) {
            (Ok(Settled::Gone), _) => Delivered::Lost,
            (Err(_), _) | (_, Settlement::Extend { .. }) => return,
            (_, Settlement::Acknowledge) => Delivered::Acknowledged,
            (_, Settlement::Retry { .. }) => Delivered::Failed,
            (_, Settlement::Snooze { .. } | Settlement::Unread) => Delivered::Released,
            (_, Settlement::Reject { .. }) => Delivered::Rejected,
        };
        self.counters.delivered(what, 1);
    }

    /// The server refuses to claim.
    fn on_refused(&mut self, error: OpError, demand: Demand) {
        if self.refusals == 0 {
            self.conn.counters().failed(format!("receive from `{}`", events::name(&self.keys)), &error);
        }
        self.pause_until = Some(Instant::now() + backoff(self.refusals));
        self.refusals = self.refusals.saturating_add(1);
        self.content = Content::Unknown;
        self.waiting.answer(demand.before, true, || Err(error.clone()));
    }

    /// Blocks while nothing is ready and somebody waits. Ends a blocked pop that nobody waits for.
    fn park(&mut self) {
        let now = Instant::now();
        let demand = self.waiting.demand();
        if let Some(parked) = &mut self.parked {
            let lingers = self.idle_since.is_none_or(|since| now < since + LINGER);
            if (demand.messages == 0 && !lingers || self.closed) && !parked.expired {
                parked.expired = true;
                parked.take.expire();
            }
            return;
        }
        let may_park = now >= self.may_park_at && self.pause_until.is_none_or(|until| until <= now);
        if demand.messages > 0 && self.content == Content::Empty && may_park && !self.closed {
            let wanted = Wanted::received(self.keys.clone(), self.of_messages.inbox.clone());
            self.parked = Some(Parked { take: self.pops.wait(wanted), expired: false });
        }
    }

    /// Settles what is left, and leaves nothing of this receiver behind.
    async fn finish(mut self, stop: CancellationToken) {
        self.close();
        let bound = self.conn.command_timeout();
        let _ = timeout(bound, async {
            if let Some(mut parked) = self.parked.take() {
                if !parked.expired {
                    parked.take.expire();
                }
                let _ = parked.take.await;
            }
            self.woken = true;
            while let Some((turn, demand)) = self.next_turn() {
                if self.make(turn, demand, &stop).await.is_err() {
                    break;
                }
            }
            let receipt = Command::new("HDEL").arg(self.of_messages.receipts.clone()).arg(self.id.clone());
            let _ = self.conn.call(receipt).await;
        })
        .await;
        self.waiting.end();
    }
}
