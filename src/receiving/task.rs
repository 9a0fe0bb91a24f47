//! The task of one receiver: it decides what the next call does, and waits for a reason to make one.

mod answered;

use std::sync::Arc;
use std::time::Duration;

use futures::future::OptionFuture;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::call::{Settlement, Turn};
use super::forward::Forwarding;
use super::in_flight::{InFlight, LONGEST_ROUND_TRIP};
use super::waiting::{Demand, ToSettle, Waiting};
use super::{Claim, Settings};
use crate::agreement::Pair;
use crate::announcements::AnnouncedRetry;
use crate::conn::{Conn, OpError};
use crate::leases::Leases;
use crate::outbox::Outbox;
use crate::pacing::{jittered, yield_once};
use crate::pops::{PendingWake, Place, Pops};
use crate::telemetry::{QueueCounters, events};
use crate::wire::keys::{Keys, MessageKeys};
use crate::wire::message::Member;

/// The most deliveries that one call settles.
const MOST: usize = 1000;
/// The most settlements of one call that may have a text of a kilobyte.
const MOST_TEXTS: usize = 100;
/// The most bytes of payloads that the settlements of one call read and write again, unless there is only one of them.
const MOST_BYTES: usize = 4 << 20;
/// A call is worth making beside another one if it can claim this many messages.
const WORTH_A_CALL: usize = 16;
/// An idle receiver makes a call this often, and at least every fifth of its lease: a silence of a quarter of a lease means
/// that receivers may be cut off (`recover.lua`).
const SIGN_OF_LIFE: Duration = Duration::from_secs(6);
/// How often a receiver sweeps.
const SWEEP: Duration = Duration::from_secs(10);
/// How often keys that do not agree are looked at, at most: what somebody else wrote there never agrees.
const AGREE: Duration = Duration::from_secs(60);
/// Receivers of other processes do not look at an ended lease at the same time.
const JITTER: Duration = Duration::from_millis(20);
/// After this time without a receive, the blocked pop is ended. A loop of receives with a timeout keeps it.
const LINGER: Duration = Duration::from_secs(1);
/// How long a receiver asks instead of waiting, after the server has refused to let it wait.
const ASK: Duration = Duration::from_secs(1);
/// After this number of slow calls in a row, the server is far away.
const FAR: u32 = 3;
/// A timer that fires this late says that something has held the runtime up.
const LATE: Duration = Duration::from_millis(500);

/// What is known of the payloads that are ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// There may be some.
    Unknown,
    /// There were more than the last call has claimed.
    Left,
    /// There were none; a blocked pop finds the next one.
    Empty,
}

pub(super) struct Task {
    conn: Conn,
    /// Settlements that replicas are to confirm.
    confirming: TaskTracker,
    pops: Pops,
    keys: Keys,
    of_messages: MessageKeys,
    counters: Arc<QueueCounters>,
    lease: Duration,
    in_flight: InFlight,
    waiting: Arc<Waiting>,
    announced: Arc<AnnouncedRetry>,
    outbox: Outbox<Vec<Claim>>,
    /// Claims that nobody read.
    unread: mpsc::UnboundedReceiver<Vec<Claim>>,
    /// Claims that were not sent to this process.
    unsent: Vec<Member>,
    leases: Leases,
    /// What wakes it up.
    parked: Option<Parked>,
    /// The permission to block.
    place: Option<Place>,
    content: Content,
    /// A payload may be in the inbox that was moved there for this receiver.
    woken: bool,
    /// The next call looks at retries first, if it claims only one message.
    retries_first: bool,
    /// The time of the next call, if there is no other reason for one.
    next_call: Instant,
    /// When the first retry is due.
    retry_at: Option<Instant>,
    /// The server's clock, epoch ms, and when the last reply has told it.
    clock: Option<(u64, Instant)>,
    next_sweep: Instant,
    /// Makes keys agree again, and when it may do so next.
    agreeing: Option<AbortOnDropHandle<()>>,
    may_agree_at: Instant,
    /// The server has refused to claim or to wait, or receivers are held back: no attempt before then.
    pause_until: Option<Instant>,
    /// Why, if it was a refusal.
    refusal: Option<OpError>,
    /// The queue is paused, or one of its limits is reached.
    hold: bool,
    refusals: u32,
    /// A refusal was reported, and no call has done since what was refused.
    is_failing: bool,
    may_park_at: Instant,
    /// When the last receive ended.
    idle_since: Option<Instant>,
    forwarding: Forwarding,
    /// The most receives, or settlements, that were answered at a time in this turn.
    answered: usize,
    /// Announcements in a row that have led to nothing, because others were quicker.
    misses: u32,
    /// Calls in a row that took too long.
    slow: u32,
    closed: bool,
}

struct Parked {
    wake: PendingWake,
    expired: bool,
}

impl Parked {
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
        announced: Arc<AnnouncedRetry>,
        in_flight: InFlight,
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
        let lease = Duration::from_millis(settings.policy.lease_ms.into());
        let now = Instant::now();
        let forwarding = Forwarding::new(settings.send_to.clone());
        Self {
            of_messages: keys.of_messages(),
            leases: Leases::new(lease, settings.extend_for),
            counters: conn.counters().queue(&keys),
            conn,
            confirming: TaskTracker::new(),
            pops,
            keys,
            lease,
            in_flight,
            waiting,
            announced,
            outbox,
            unread,
            unsent: Vec::new(),
            parked: None,
            place: None,
            content: Content::Unknown,
            woken: false,
            retries_first: false,
            next_call: now,
            retry_at: None,
            clock: None,
            next_sweep: now,
            agreeing: None,
            may_agree_at: now,
            pause_until: None,
            refusal: None,
            hold: false,
            refusals: 0,
            is_failing: false,
            may_park_at: now,
            idle_since: None,
            forwarding,
            answered: 0,
            misses: 0,
            slow: 0,
            closed: false,
        }
    }

    /// Runs until the last handle is gone (`end`) or the client ends (`stop`), and then settles what there is.
    pub(super) async fn run(mut self, end: CancellationToken, stop: CancellationToken) {
        let closing = self.pops.stopping().clone();
        loop {
            if !(end.is_cancelled() || stop.is_cancelled()) {
                while let Some((turn, demand)) = self.next_turn() {
                    self.in_flight.begin(turn, demand);
                }
            }
            self.park();
            let next = self.next_timer().max(Instant::now());
            // What is announced during a call may be in its reply, or not. So it is looked at behind the reply.
            let rests = self.in_flight.is_empty();
            let may_begin = rests || self.content == Content::Left && !self.in_flight.is_full();
            // Every branch is cancel safe: notifications, tokens, timers, and futures that stay where they are.
            tokio::select! {
                answered = self.in_flight.next() => if !self.on_ended(answered) { break },
                () = self.waiting.changed(), if may_begin => {}
                Some(answer) = OptionFuture::from(self.parked.as_mut().map(|parked| &mut parked.wake)), if rests => {
                    let expired = self.parked.take().is_none_or(|parked| parked.expired);
                    self.on_woken(answer, expired);
                }
                at = self.announced.next(), if rests => self.on_announced(at),
                more = self.forwarding.ended(&self.keys) => if more { self.next_call = Instant::now() },
                () = sleep_until(next) => {}
                () = closing.cancelled(), if !self.closed => self.close(),
                () = end.cancelled(), if rests => break,
                () = stop.cancelled(), if rests => break,
            }
            self.notice_delay(next);
            // Handlers that were answered just now settle and receive again. They share one call, if the task lets them run
            // first. That wakes up a thread, so it is not done for one handler.
            let answered = std::mem::take(&mut self.answered);
            if answered > 1 || self.leases.len() > 1 || self.waiting.has_several() {
                yield_once().await;
            }
        }
        self.finish().await;
    }

    /// When to look at the clock again.
    fn next_timer(&mut self) -> Instant {
        // Handlers are told when their leases are over, also while the server does not answer.
        let over = self.leases.end(Instant::now());
        if !self.in_flight.is_empty() {
            return over.unwrap_or_else(|| Instant::now() + SIGN_OF_LIFE);
        }
        let demand = self.waiting.demand();
        let mut next = self.next_call;
        next = next.min(self.leases.next().unwrap_or(next));
        if demand.messages > 0 {
            // During a pause, neither a retry nor anything else is a reason to look.
            let pause = self.pause_until.unwrap_or(self.may_park_at);
            next = next.min(self.retry_at.map_or(next, |retry| retry.max(self.pause_until.unwrap_or(retry))));
            if self.parked.is_none() && !self.closed {
                next = next.min(pause.max(self.may_park_at));
            } else if self.pause_until.is_some() && self.content == Content::Unknown {
                next = next.min(pause);
            }
        } else if let (Some(parked), Some(since)) = (&self.parked, self.idle_since)
            && !parked.expired
        {
            next = next.min(since + LINGER);
        }
        next
    }

    /// The timer should have fired at `due`, or later.
    fn notice_delay(&self, due: Instant) {
        let late = due.elapsed();
        if late > LATE.max(self.lease / 3) && !self.leases.is_empty() {
            events::runtime_blocked(&self.keys, late);
        }
    }

    /// A call took this long. Leases are extended, and silences told from pauses, only if that is short
    /// beside a lease.
    fn notice_distance(&mut self, round_trip: Duration) {
        if round_trip <= LONGEST_ROUND_TRIP.min(self.lease / 3) {
            self.slow = 0;
            return;
        }
        self.slow = self.slow.saturating_add(1);
        if self.slow == FAR {
            events::receiver_far(&self.keys, round_trip);
        }
    }

    /// Another receiver announces a retry that is due at this time, epoch ms, or that there is room for more
    /// messages. Not all receivers look for it at the same time.
    fn on_announced(&mut self, due: f64) {
        let now = Instant::now();
        // Before the first reply, the clock is not known, and every time may be now.
        let (clock, read) = self.clock.unwrap_or((u64::MAX, now));
        let wait = Duration::from_millis((due - clock as f64).max(0.0) as u64);
        let Some(due) = read.checked_add(wait) else { return };
        let misses = if self.hold { 0 } else { self.misses.min(6) };
        let at = due + Duration::from_millis(1) + JITTER.saturating_mul(1 << misses).mul_f64(fastrand::f64());
        if !self.hold {
            self.misses = self.misses.saturating_add(1);
        }
        self.retry_at = Some(self.retry_at.map_or(at, |known| known.min(at)));
        if self.hold {
            // It may be over.
            self.pause_until = self.pause_until.map(|until| until.min(at));
        }
    }

    /// Somebody has deleted a key, or a part of it.
    fn agree(&mut self) {
        let now = Instant::now();
        if now < self.may_agree_at {
            return;
        }
        self.may_agree_at = now + AGREE;
        let (conn, keys) = (self.conn.clone(), self.keys.clone());
        let agree = async move {
            for pair in [Pair::Dead, Pair::Retries] {
                pair.agree_or_report(&conn, &keys).await;
            }
        };
        self.agreeing = Some(AbortOnDropHandle::new(self.conn.runtime().spawn(agree)));
    }

    /// The blocked pop ended.
    fn on_woken(&mut self, answer: Result<bool, OpError>, expired: bool) {
        match answer {
            Ok(moved) => {
                self.woken |= moved;
                if !expired {
                    self.content = Content::Unknown;
                }
                self.may_park_at = Instant::now();
            }
            Err(OpError::Closed) => self.woken = true,
            // Without the permission, a connection, or memory on the server, the receiver asks.
            Err(OpError::Server(_) | OpError::NotExecuted(_)) => {
                self.content = Content::Unknown;
                self.may_park_at = Instant::now() + jittered(ASK);
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

    /// Whether there is so much to do that a call beside the one that is on its way saves time. A receive of many ends with
    /// what the first call brings, so a second one might claim what nobody waits for.
    fn is_worth_another(&self, demand: Demand, wanted: usize) -> bool {
        !self.in_flight.is_full()
            && self.content == Content::Left
            && self.pause_until.is_none()
            && demand.one_each
            && wanted >= WORTH_A_CALL
    }

    /// What the next call is to do, if one is needed now.
    fn next_turn(&mut self) -> Option<(Turn, Demand)> {
        let now = Instant::now();
        let demand = self.waiting.demand();
        let wanted = demand.messages.saturating_sub(self.in_flight.claiming());
        if !self.in_flight.is_empty() && !self.is_worth_another(demand, wanted) {
            return None;
        }
        if demand.messages > 0 {
            self.idle_since = None;
        } else if self.idle_since.is_none() {
            self.idle_since = Some(now);
        }
        let mut turn = Turn::default();
        let mut unread = std::mem::take(&mut self.unsent);
        while let Ok(claims) = self.unread.try_recv() {
            unread.extend(claims.iter().map(|claim| claim.member));
        }
        // The first of them is to be the head of the target again, of all receives that were dropped. Ids are in the order of
        // the claims.
        unread.sort_unstable_by_key(|member| std::cmp::Reverse(*member));
        for member in unread {
            self.leases.remove(&member);
            turn.add(ToSettle::unread(member));
        }
        for to_settle in self.waiting.take_to_settle(MOST, MOST_TEXTS, MOST_BYTES) {
            turn.add(to_settle);
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
        let settles = !(turn.acknowledge.is_empty() && turn.extend.is_empty() && turn.settle.is_empty());
        // What is settled makes room for more.
        let may_look = self.pause_until.is_none_or(|until| until <= now) || self.hold && settles;
        if demand.at_once && !may_look {
            // Who does not wait may have other queues to ask.
            let why = self.refusal.clone();
            self.waiting.answer(demand.before, false, || why.clone().map_or(Ok(()), Err));
        }
        let looks = wanted > 0
            && may_look
            && (self.woken
                || demand.at_once
                || is_due
                || self.content != Content::Empty
                || self.retry_at.is_some_and(|retry| retry <= now));
        let empties = self.woken && (demand.messages == 0 || self.hold && !may_look);
        if !(settles || looks || is_due || empties) {
            return None;
        }
        turn.most = match (looks, self.content) {
            // Two calls share a backlog.
            (true, Content::Left) if demand.one_each && demand.messages >= 2 * WORTH_A_CALL => {
                wanted.min(demand.messages.div_ceil(2)).min(self.in_flight.most())
            }
            (true, _) => wanted.min(self.in_flight.most()),
            (false, _) => 0,
        };
        turn.empty_inbox = empties || is_due && turn.most == 0;
        turn.sweep = self.next_sweep <= now;
        turn.retries_first = self.retries_first;
        if turn.most > 0 {
            self.woken = false;
            self.retries_first = !self.retries_first;
            // If the notice of a change was lost, the server tells of none until the list is read again.
            self.parked.take_if(|parked| matches!(parked.wake, PendingWake::Changed(_)));
        }
        if turn.empty_inbox {
            self.woken = false;
        }
        if turn.sweep {
            self.next_sweep = now + SWEEP;
        }
        // Until the reply says more.
        self.next_call = now + SIGN_OF_LIFE.min(self.lease / 5);
        Some((turn, demand))
    }

    /// Blocks while nothing is ready and somebody waits. Ends a blocked pop that nobody waits for.
    fn park(&mut self) {
        if !self.in_flight.is_empty() {
            return;
        }
        let now = Instant::now();
        let demand = self.waiting.demand();
        if let Some(parked) = &mut self.parked {
            let lingers = self.idle_since.is_none_or(|since| now < since + LINGER);
            if (demand.messages == 0 && !lingers || self.closed) && !parked.expired {
                parked.expire();
                self.place = None;
            }
            return;
        }
        let may_park = now >= self.may_park_at && self.pause_until.is_none_or(|until| until <= now);
        if demand.messages > 0 && self.content == Content::Empty && may_park && !self.closed {
            self.place = self.place.take().or_else(|| self.pops.place(&self.keys));
            let wake = self.pops.wake(&self.keys, &self.of_messages.inbox, self.place.as_ref());
            self.parked = Some(Parked { wake, expired: false });
        }
    }

    /// Settles what is left, and leaves nothing of this receiver behind.
    async fn finish(mut self) {
        self.close();
        let bound = self.conn.command_timeout();
        let _ = timeout(bound, async {
            while !self.in_flight.is_empty() {
                let answered = self.in_flight.next().await;
                self.on_ended(answered);
            }
            // First what is known. Blocked pops may take the whole time to end, if their server is away.
            self.woken = false;
            self.settle_all().await;
            if let Some(mut parked) = self.parked.take() {
                parked.expire();
                let _ = parked.wake.await;
            }
            // A blocked pop may move one more payload until it has ended.
            if self.pops.stopping().is_cancelled() {
                self.pops.stopped().await;
            }
            self.woken = true;
            self.settle_all().await;
            self.forwarding.finish(&self.keys).await;
            self.confirming.close();
            self.confirming.wait().await;
            self.in_flight.finish().await;
        })
        .await;
    }

    /// Makes calls while there is something to do and the server answers.
    async fn settle_all(&mut self) {
        while let Some((turn, demand)) = self.next_turn() {
            self.in_flight.begin(turn, demand);
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
        self.waiting.end();
    }
}
