//! The deliveries of one receiver: gathers what its next call settles and extends, and tells what a call has
//! done.

use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::call::{Settings, Turn};
use super::settlement::{Claimed, Settled, Settlement, ToSettle};
use super::waiting::Waiting;
use crate::announcements::CancelRequests;
use crate::conn::{Conn, OpError, Unconfirmed};
use crate::leases::{Leases, ToExtend};
use crate::outbox::Outbox;
use crate::telemetry::{Delivered, QueueCounters};
use crate::wire::job::held_id;
use crate::wire::message::{Member, MessageId, Record};

/// The most deliveries that one call settles, and the most that it extends.
const MOST: usize = 1000;
/// The most settlements of one call that may have a text of a kilobyte.
const MOST_TEXTS: usize = 100;
/// The most bytes of payloads that the settlements of one call read and write again, unless there is only one
/// of them.
const MOST_BYTES: usize = 4 << 20;

/// How long a claim may be under way after its announcement, at most: the reply may have to be repeated.
const UNDER_WAY: Duration = Duration::from_secs(60);

/// How long the release of what nobody read waits after it was refused.
const REFUSED: Duration = Duration::from_secs(1);

/// Where settlements are answered, and how.
type Answers = Vec<(oneshot::Sender<Result<Settled, OpError>>, Result<Settled, OpError>)>;

pub(super) struct Deliveries {
    conn: Conn,
    counters: Arc<QueueCounters>,
    waiting: Arc<Waiting>,
    leases: Leases,
    outbox: Outbox<Vec<Claimed>>,
    /// Claims that nobody read.
    unread: mpsc::UnboundedReceiver<Vec<Claimed>>,
    /// Claims that were not sent to this process.
    unsent: Vec<Member>,
    /// Claims that nobody read, and that the server has refused to release; and when that is tried again.
    refused: Vec<Member>,
    refused_until: Instant,
    /// Messages whose jobs were cancelled, and when that was heard: those that it has not claimed, as far as
    /// it knows. The claims of the latest may be under way.
    cancelled: HashMap<MessageId, Instant>,
    /// Settlements that replicas are to confirm. They are awaited by the task, as whatever answers a caller
    /// must be: one that drives it wakes up with nothing else.
    confirming: FuturesUnordered<BoxFuture<'static, ()>>,
    /// The most receives, or settlements, that were answered at a time since this was last asked for.
    answered: usize,
}

impl Deliveries {
    pub(super) fn new(
        conn: Conn,
        counters: Arc<QueueCounters>,
        waiting: Arc<Waiting>,
        settings: &Settings,
    ) -> Self {
        let (returns, unread) = mpsc::unbounded_channel();
        let outbox = Outbox::new({
            let waiting = waiting.clone();
            move |claims| {
                // Fails only when the task has ended. The leases end then.
                drop(returns.send(claims));
                waiting.wake();
            }
        });
        Self {
            conn,
            counters,
            waiting,
            leases: Leases::new(settings.lease(), settings.extend_for),
            outbox,
            unread,
            unsent: Vec::new(),
            refused: Vec::new(),
            refused_until: Instant::now(),
            cancelled: HashMap::new(),
            confirming: FuturesUnordered::new(),
            answered: 0,
        }
    }

    /// Adds to a call what it is to settle and to extend.
    pub(super) fn gather(&mut self, now: Instant, turn: &mut Turn) {
        let mut unread = std::mem::take(&mut self.unsent);
        if self.refused_until <= now {
            unread.append(&mut self.refused);
        }
        while let Ok(claims) = self.unread.try_recv() {
            unread.extend(claims.iter().map(|claim| claim.member));
        }
        // The first of them is to be the head of the target again, of all receives that were dropped. Ids are
        // in the order of the claims.
        unread.sort_unstable_by_key(|member| std::cmp::Reverse(*member));
        for member in unread {
            self.leases.remove(&member);
            turn.add(ToSettle::unread(member));
        }
        for to_settle in self.waiting.take_to_settle(MOST, MOST_TEXTS, MOST_BYTES) {
            if !matches!(to_settle.settlement, Settlement::Extend { .. }) {
                self.leases.remove(&to_settle.member);
            }
            turn.add(to_settle);
        }
        if self.leases.next().is_some_and(|next| next <= now) {
            turn.extend = self.leases.due(now, MOST);
        }
    }

    /// Tells those that have settled what a call has done that was sent at `sent`, and notes which leases it
    /// has extended.
    pub(super) fn on_settled(
        &mut self,
        turn: Turn,
        settled: Vec<Result<Settled, OpError>>,
        sent: Instant,
        unconfirmed: Option<Unconfirmed>,
    ) {
        let mut answers = Answers::default();
        let mut settled = settled.into_iter();
        for (to_settle, result) in turn.acknowledge.into_iter().zip(&mut settled) {
            self.count(&to_settle.settlement, &result);
            answers.push((to_settle.answer, result));
        }
        for (ToExtend { member, .. }, result) in turn.extend.into_iter().zip(&mut settled) {
            match result {
                Ok(settled) => self.leases.on_extended(&member, sent, settled != Settled::Gone),
                Err(_) => self.leases.on_refused(&member),
            }
            if result == Ok(Settled::Cancelled) {
                self.leases.cancel(|id| id == member.id());
            }
        }
        for (to_settle, result) in turn.settle.into_iter().zip(&mut settled) {
            match (&to_settle.settlement, &result) {
                (Settlement::Extend { by_ms }, Ok(Settled::Done | Settled::Cancelled)) => {
                    let safe_until = sent + Duration::from_millis(*by_ms);
                    self.leases.on_extended_by_hand(&to_settle.member, safe_until);
                }
                (Settlement::Extend { .. }, Ok(_)) => {
                    self.leases.on_extended(&to_settle.member, sent, false);
                }
                _ => {}
            }
            if result == Ok(Settled::Cancelled) {
                self.leases.cancel(|id| id == to_settle.member.id());
            }
            if result.is_err() && matches!(to_settle.settlement, Settlement::Unread) {
                self.keep_unread(to_settle.member);
            }
            self.count(&to_settle.settlement, &result);
            answers.push((to_settle.answer, result));
        }
        self.answered = self.answered.max(answers.len());
        self.answer(answers, unconfirmed);
    }

    /// A call was refused.
    pub(super) fn on_refused(&mut self, turn: &Turn) {
        turn.extend.iter().for_each(|one| self.leases.on_refused(&one.member));
        let unread = turn.settle.iter().filter(|one| matches!(one.settlement, Settlement::Unread));
        unread.for_each(|one| self.keep_unread(one.member));
    }

    /// The release of what no program has read was refused. A later call tries it again.
    fn keep_unread(&mut self, member: Member) {
        self.refused.push(member);
        self.refused_until = Instant::now() + REFUSED;
    }

    /// Somebody has asked to cancel these jobs.
    pub(super) fn cancel(&mut self, CancelRequests { mut messages, may_be_others }: CancelRequests) {
        self.leases.cancel(|id| messages.remove(&id));
        let now = Instant::now();
        let is_full = self.cancelled.len() + messages.len() > CancelRequests::MOST;
        if is_full {
            self.cancelled.clear();
        }
        if is_full || may_be_others {
            self.leases.on_unheard(now);
        }
        self.cancelled.extend(messages.into_iter().map(|message| (message, now)));
    }

    /// Hands out what a call has brought that was sent at `sent`, unless that is too old. What no receive
    /// gets is released, and so is what the reply did not have (`unsent`).
    pub(super) fn hand_out(
        &mut self,
        claims: Vec<(Member, Record)>,
        unsent: Vec<Member>,
        sent: Instant,
        are_old: bool,
    ) {
        self.answered = self.answered.max(claims.len());
        self.counters.delivered(Delivered::Received, (claims.len() + unsent.len()) as u64);
        self.unsent.extend(unsent);
        let leases = &mut self.leases;
        let claim = |(member, record): (Member, Record)| Claimed {
            lease: leases.add(member, held_id(&record.job), sent),
            member,
            failed: record.failed,
            lost: record.lost,
            first: record.first,
            job: record.job,
            payload: record.payload,
        };
        let claims: Vec<Claimed> = claims.into_iter().map(claim).collect();
        // Each of them hears of it once. If the server has lost the cancel since, in a failover for example,
        // the message is delivered again, and its handler is to do its work.
        let now = Instant::now();
        for claim in &claims {
            let heard = self.cancelled.remove(&claim.member.id());
            if heard.is_some_and(|heard| now - heard < UNDER_WAY) {
                claim.lease.cancel();
            }
        }
        let unwanted = if are_old { claims } else { self.waiting.hand_out(claims, &self.outbox) };
        if !unwanted.is_empty() {
            drop(self.outbox.hold(unwanted));
        }
    }

    /// Answers those that have settled, when replicas have it, if they are to confirm it. Receives do not
    /// wait for that.
    fn answer(&mut self, answers: Answers, unconfirmed: Option<Unconfirmed>) {
        // The others have written nothing that could be confirmed.
        let waits = |result: &Result<_, _>| {
            unconfirmed.is_some() && matches!(result, Ok(Settled::Done | Settled::Dead))
        };
        let (written, others): (Answers, Answers) =
            answers.into_iter().partition(|(_, result)| waits(result));
        for (answer, result) in others {
            let _ = answer.send(result);
        }
        if written.is_empty() {
            return;
        }
        let conn = self.conn.clone();
        let deadline = Instant::now() + conn.command_timeout();
        let confirm = async move {
            let confirmed = conn.confirm(unconfirmed, deadline).await;
            for (answer, result) in written {
                let _ = answer.send(result.and_then(|settled| confirmed.clone().map(|()| settled)));
            }
        };
        self.confirming.push(Box::pin(confirm));
    }

    fn count(&self, settlement: &Settlement, result: &Result<Settled, OpError>) {
        let what = match result {
            Ok(Settled::Gone) => Some(Delivered::Lost),
            Ok(_) => settlement.counted(),
            Err(_) => None,
        };
        if let Some(what) = what {
            self.counters.delivered(what, 1);
        }
    }

    /// When the next lease is to be extended, or is over, or what was refused is to be released.
    pub(super) fn next(&self) -> Option<Instant> {
        let refused = (!self.refused.is_empty()).then_some(self.refused_until);
        self.leases.next().into_iter().chain(refused).min()
    }

    /// Tells the handlers whose leases are over. Returns when to do so again.
    pub(super) fn end_leases(&mut self, now: Instant) -> Option<Instant> {
        self.leases.end(now)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// Whether there are several of them, or several receives or settlements were answered since this was
    /// last asked for.
    pub(super) fn are_several(&mut self) -> bool {
        std::mem::take(&mut self.answered) > 1 || self.leases.len() > 1
    }

    /// What was handed out and not read is released from here on.
    pub(super) fn close(&self) {
        self.outbox.close();
    }

    /// Waits until replicas have confirmed settlements, or have not, and tells those that wait for it. Cancel
    /// safe.
    pub(super) async fn confirmed(&mut self) {
        if self.confirming.next().await.is_none() {
            pending().await
        }
    }

    /// Waits until those that have settled are answered.
    pub(super) async fn finish(&mut self) {
        while self.confirming.next().await.is_some() {}
    }
}
