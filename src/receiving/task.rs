//! The task of one receiver. It carries out what its [`Plan`] decides: it has the channels, the leases and
//! the blocked pop, and reads the clock.

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
use super::in_flight::InFlight;
use super::plan::{Blocked, Demand, Look, Plan, Step, View, Wake};
use super::waiting::{ToSettle, Waiting};
use super::{Claim, Settings};
use crate::agreement::Pair;
use crate::conn::{Conn, OpError};
use crate::leases::Leases;
use crate::outbox::Outbox;
use crate::pacing::yield_once;
use crate::pops::{PendingWake, Place, Pops};
use crate::telemetry::{QueueCounters, events};
use crate::transfer::AnnouncedRetry;
use crate::wire::keys::{Keys, MessageKeys};
use crate::wire::message::Member;

/// The most deliveries that one call settles.
const MOST: usize = 1000;
/// The most settlements of one call that may have a text of a kilobyte.
const MOST_TEXTS: usize = 100;
/// The most bytes of payloads that the settlements of one call read and write again, unless there is only one
/// of them.
const MOST_BYTES: usize = 4 << 20;
/// A timer that fires this late says that something has held the runtime up.
const LATE: Duration = Duration::from_millis(500);

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
    plan: Plan,
    /// What the next call settles.
    turn: Turn,
    /// What wakes it up.
    parked: Option<Parked>,
    /// The permission to block.
    place: Option<Place>,
    /// Why the server has last refused to claim.
    refusal: Option<OpError>,
    /// Makes keys agree again.
    agreeing: Option<AbortOnDropHandle<()>>,
    forwarding: Forwarding,
    /// The most receives, or settlements, that were answered at a time in this turn.
    answered: usize,
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
            plan: Plan::new(lease, Instant::now(), fastrand::u64(..)),
            turn: Turn::default(),
            parked: None,
            place: None,
            refusal: None,
            agreeing: None,
            forwarding,
            answered: 0,
        }
    }

    /// Runs until the last handle is gone (`end`) or the client ends (`stop`), and then settles what there
    /// is.
    pub(super) async fn run(mut self, end: CancellationToken, stop: CancellationToken) {
        let closing = self.pops.stopping().clone();
        loop {
            let ends = end.is_cancelled() || stop.is_cancelled();
            let wakes_at = if ends { None } else { self.take_steps() };
            let next = self.next_timer(wakes_at);
            // What is announced during a call may be in its reply, or not. So it is looked at behind the
            // reply.
            let rests = self.in_flight.is_empty();
            let follows = self.plan.follows_receives(self.in_flight.len());
            // Every branch is cancel safe: notifications, tokens, timers, and futures that stay where they
            // are.
            tokio::select! {
                answered = self.in_flight.next() => if !self.on_ended(answered) { break },
                () = self.waiting.changed(), if follows => {}
                Some(answer) = OptionFuture::from(self.parked.as_mut().map(|parked| &mut parked.wake)), if rests => {
                    let expired = self.parked.take().is_none_or(|parked| parked.expired);
                    self.on_woken(answer, expired);
                }
                at = self.announced.next(), if rests => self.plan.on_announced(Instant::now(), at),
                more = self.forwarding.ended(&self.keys) => if more { self.plan.on_forwarded(Instant::now()) },
                () = sleep_until(next) => {}
                () = closing.cancelled(), if !self.plan.is_closed() => self.close(),
                () = end.cancelled(), if rests => break,
                () = stop.cancelled(), if rests => break,
            }
            self.notice_delay(next);
            // Handlers that were answered just now settle and receive again. They share one call, if the task
            // lets them run first. That wakes up a thread, so it is not done for one handler.
            let answered = std::mem::take(&mut self.answered);
            if answered > 1 || self.leases.len() > 1 || self.waiting.has_several() {
                yield_once().await;
            }
        }
        self.finish().await;
    }

    /// Takes the steps that are to be taken now. Returns when to ask for the next one; `None` if that is when
    /// a call is answered.
    fn take_steps(&mut self) -> Option<Instant> {
        loop {
            let (step, demand) = self.next_step();
            match step {
                Step::Call(look) => self.begin(look, demand),
                Step::Answer { refused } => {
                    let why = self.refusal.clone().filter(|_| refused);
                    self.waiting.answer(demand.before, false, || why.clone().map_or(Ok(()), Err));
                    // More of them may come as fast as they are answered.
                    return Some(Instant::now());
                }
                Step::Block => self.block(),
                Step::Unblock => self.unblock(),
                Step::Sleep(at) => return Some(at),
                Step::Idle => return None,
            }
        }
    }

    /// What to do now, and the demand for which this was decided.
    fn next_step(&mut self) -> (Step, Demand) {
        let (now, demand) = (Instant::now(), self.waiting.demand());
        let mut view = View {
            calls: self.in_flight.len(),
            claiming: self.in_flight.claiming(),
            most: self.in_flight.most(),
            settles: self.turn.settles(),
            blocked: match &self.parked {
                None => Blocked::No,
                Some(Parked { expired: false, .. }) => Blocked::Waits,
                Some(Parked { expired: true, .. }) => Blocked::Ending,
            },
        };
        if !view.settles && self.plan.may_call(demand, view) {
            self.gather(now);
            view.settles = self.turn.settles();
        }
        (self.plan.next(now, demand, view), demand)
    }

    /// Gathers what the next call settles.
    fn gather(&mut self, now: Instant) {
        let mut unread = std::mem::take(&mut self.unsent);
        while let Ok(claims) = self.unread.try_recv() {
            unread.extend(claims.iter().map(|claim| claim.member));
        }
        // The first of them is to be the head of the target again, of all receives that were dropped. Ids are in
        // the order of the claims.
        unread.sort_unstable_by_key(|member| std::cmp::Reverse(*member));
        for member in unread {
            self.leases.remove(&member);
            self.turn.add(ToSettle::unread(member));
        }
        for to_settle in self.waiting.take_to_settle(MOST, MOST_TEXTS, MOST_BYTES) {
            if !matches!(to_settle.settlement, Settlement::Extend { .. }) {
                self.leases.remove(&to_settle.member);
            }
            self.turn.add(to_settle);
        }
        if self.leases.next().is_some_and(|next| next <= now) {
            self.turn.extend = self.leases.due(now);
        }
    }

    fn begin(&mut self, look: Look, demand: Demand) {
        if look.most > 0 {
            // If the notice of a change was lost, the server tells of none until the list is read again.
            self.parked.take_if(|parked| matches!(parked.wake, PendingWake::Changed(_)));
        }
        let turn = Turn { look, ..std::mem::take(&mut self.turn) };
        self.in_flight.begin(turn, demand);
    }

    fn block(&mut self) {
        self.place = self.place.take().or_else(|| self.pops.place(&self.keys));
        let wake = self.pops.wake(&self.keys, &self.of_messages.inbox, self.place.as_ref());
        self.parked = Some(Parked { wake, expired: false });
    }

    fn unblock(&mut self) {
        if let Some(parked) = &mut self.parked {
            parked.expire();
        }
        self.place = None;
    }

    /// When to look at the clock again.
    fn next_timer(&mut self, wakes_at: Option<Instant>) -> Instant {
        let now = Instant::now();
        // Handlers are told when their leases are over, also while the server does not answer.
        let over = self.leases.end(now);
        let next = match wakes_at {
            Some(at) => at.min(self.leases.next().unwrap_or(at)),
            None => over.unwrap_or(now + self.lease),
        };
        next.max(now)
    }

    /// The timer should have fired at `due`, or later.
    fn notice_delay(&self, due: Instant) {
        let late = due.elapsed();
        if late > LATE.max(self.lease / 3) && !self.leases.is_empty() {
            events::runtime_blocked(&self.keys, late);
        }
    }

    /// Somebody has deleted a key, or a part of it.
    fn agree(&mut self) {
        let (conn, keys) = (self.conn.clone(), self.keys.clone());
        let agree = async move {
            for pair in [Pair::Dead, Pair::Retries] {
                pair.agree_or_report(&conn, &keys).await;
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

    /// No more receives. What they have not read is released.
    fn close(&mut self) {
        self.plan.close();
        self.waiting.close();
        self.outbox.close();
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
            self.plan.set_woken(false);
            self.settle_all().await;
            if let Some(mut parked) = self.parked.take() {
                parked.expire();
                let _ = parked.wake.await;
            }
            // A blocked pop may move one more payload until it has ended.
            if self.pops.stopping().is_cancelled() {
                self.pops.stopped().await;
            }
            self.plan.set_woken(true);
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
        while let (Step::Call(look), demand) = self.next_step() {
            self.begin(look, demand);
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
