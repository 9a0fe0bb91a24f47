//! The task that owns the pops: it brings requests and replies to the dispatchers, and runs the actions they
//! return.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt, join_all};
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc::{self, error::SendError};
use tokio::time::{interval, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::blocked_lists::BlockedLists;
use super::calls::{self, BlockingPop, Return};
use super::dispatcher::{Action, Dispatcher, PopOutcome, Tier, TryPop};
use super::kind::{End, Kind};
use super::mailbox::{Mailbox, TakerRequest};
use super::of_kind::{Kinds, PopsOfKind};
use super::parked::Parked;
use super::popped::Payloads;
use super::tracked::{Tracked, UNTRACKED};
use super::tracked_pop::TrackedPop;
use crate::claims::{self, ClaimId};
use crate::conn::{Conn, Link, OpError};
use crate::outbox::Outbox;
use crate::pacing::{within, yield_once};
use crate::unreturned::Unreturned;
use crate::wire::keys::{Hashed, Keys};

/// The most requests that are served before replies get their turn.
const A_TURN: usize = 256;
/// How long a claim waits for a try pop that confirms it on its way.
const CONFIRM_AFTER: Duration = Duration::from_millis(20);
/// How long an unused connection for a rare kind of pop is kept.
const KEEP: Duration = Duration::from_secs(30);
/// The end of something that the task had started.
enum Completed {
    BlockingPop {
        kind: Kind,
        tier: Tier,
        link: Option<Arc<Link>>,
        outcome: PopOutcome,
        /// To be confirmed.
        claim: Option<ClaimId>,
    },
    TryPop {
        kind: Kind,
        keys: Keys,
        try_pop: TryPop,
        payloads: Result<Vec<Bytes>, OpError>,
        /// To be confirmed.
        claim: Option<ClaimId>,
    },
    TryPopAny {
        kind: Kind,
        lists: Vec<Keys>,
        try_pop: TryPop,
        payloads: Result<Vec<Vec<Bytes>>, OpError>,
        /// To be confirmed.
        claims: Vec<(Keys, ClaimId)>,
    },
    Examination {
        kind: Kind,
        tier: Tier,
        refused: HashMap<Keys, OpError>,
    },
    /// The first attempt to return payloads.
    FirstReturn {
        kind: Kind,
        keys: Keys,
        way_back: Return,
    },
    /// It is time to confirm the claims that no try pop has confirmed.
    ConfirmTimer {
        kind: Kind,
    },
    /// Nothing that a dispatcher waits for.
    Other,
}

/// The task that owns every pop.
pub(super) struct Task {
    conn: Conn,
    mailbox: Mailbox,
    outbox: Outbox<Payloads>,
    /// What left the outbox unread.
    unread: mpsc::UnboundedReceiver<Payloads>,
    kinds: Kinds,
    tracked: Tracked,
    blocked: BlockedLists,
    parked: Parked,
    running: FuturesUnordered<BoxFuture<'static, Completed>>,
    /// Whether the takers that have joined last share their pops with others.
    several: bool,
    /// Cancelled to end taking.
    stop: CancellationToken,
    /// Cancelled when the client ends.
    shutdown: CancellationToken,
    /// Dropped when taking has ended.
    stopped: Option<DropGuard>,
}

impl Drop for Task {
    /// The runtime may end before taking does. Takers that were answered still get their payloads: they may
    /// run in another one.
    fn drop(&mut self) {
        self.mailbox.close();
        self.unread.close();
        self.gather_unread();
        self.tell_lost();
    }
}

impl Task {
    pub(super) fn new(
        conn: Conn,
        mailbox: Mailbox,
        tracked: Tracked,
        blocked: BlockedLists,
        stop: CancellationToken,
        shutdown: CancellationToken,
        stopped: DropGuard,
    ) -> Self {
        let (returns, unread) = mpsc::unbounded_channel();
        let counters = conn.counters().clone();
        let outbox = Outbox::new(move |popped| {
            // Fails when the task is over. Then nothing returns them.
            if let Err(SendError(Payloads { keys, payloads, .. })) = returns.send(popped) {
                drop(Unreturned::new(&counters, keys, payloads.len()));
            }
        });
        Self {
            conn,
            mailbox,
            outbox,
            unread,
            kinds: Kinds::default(),
            tracked,
            blocked,
            parked: Parked::default(),
            running: FuturesUnordered::new(),
            several: true,
            stop,
            shutdown,
            stopped: Some(stopped),
        }
    }

    pub(super) async fn run(mut self) {
        let mut closing_idle = interval(KEEP);
        let mut changed: HashSet<Kind, BuildHasherDefault<Hashed>> = HashSet::default();
        let (mailbox, stop) = (self.mailbox.clone(), self.stop.clone());
        // These futures are kept between rounds, because registering a new waiter in each round costs more.
        let (mut arrived, mut stopping) = (pin!(mailbox.arrived()), pin!(stop.cancelled()));
        loop {
            // Every branch is cancel safe: channels, the mailbox, a timer, and futures that stay in the set.
            // No branch has precedence, so takers that begin and end without a pause do not delay replies.
            tokio::select! {
                () = &mut stopping => break,
                Some(popped) = self.unread.recv() => changed.extend(self.on_unread(popped)),
                () = &mut arrived => arrived.set(mailbox.arrived()),
                Some(completed) = self.running.next() => changed.extend(self.on_completed(completed)),
                _ = closing_idle.tick() => self.close_idle(),
            }
            // Takers that were served begin again at once, and share one try pop. A yield wakes up a thread,
            // so there is none for one taker.
            if self.several {
                yield_once().await;
            }
            for _ in 0..A_TURN {
                let Some(Some(completed)) = self.running.next().now_or_never() else { break };
                changed.extend(self.on_completed(completed));
            }
            // Payloads that returned before a taker began are handed out before more are requested for it.
            while let Ok(popped) = self.unread.try_recv() {
                changed.extend(self.on_unread(popped));
            }
            let requests = self.mailbox.take(A_TURN);
            self.several &= !requests.iter().any(|request| matches!(request, TakerRequest::Join(..)));
            for request in requests {
                changed.extend(self.serve(request));
            }
            changed.drain().for_each(|kind| self.run_actions(&kind));
        }
        self.mailbox.close();
        self.finish().await;
    }

    fn serve(&mut self, request: TakerRequest) -> Option<Kind> {
        match request {
            TakerRequest::Join(kind, id, waiter) => {
                let pops = self.pops_of(&kind);
                let has_several = pops.join(id, waiter);
                self.several |= has_several;
                Some(kind)
            }
            TakerRequest::Leave(kind, id) => {
                self.kinds.get_mut(&kind)?.dispatcher.leave(id);
                Some(kind)
            }
            TakerRequest::Expire(kind, id) => {
                let conn = self.conn.in_slot(kind.slot(&self.conn));
                self.kinds.get_mut(&kind)?.expire(id, &conn);
                Some(kind)
            }
        }
    }

    fn on_unread(&mut self, popped: Payloads) -> Option<Kind> {
        let kind = Kind::Take(popped.end, self.conn.slot_of(&popped.keys));
        self.pops_of(&kind).dispatcher.on_unread(popped);
        Some(kind)
    }

    fn on_completed(&mut self, completed: Completed) -> Option<Kind> {
        match completed {
            Completed::BlockingPop { kind, tier, link, outcome, claim } => {
                let outcome = match outcome {
                    // The next one blocks on a separate connection.
                    PopOutcome::Failed(OpError::Server(why)) if why.starts_with(UNTRACKED) => {
                        self.parked.on_untracked();
                        PopOutcome::NotSent
                    }
                    outcome => outcome,
                };
                let pops = self.kinds.get_mut(&kind)?;
                if let PopOutcome::Payload(keys, _) = &outcome
                    && claim.is_some()
                {
                    pops.add_claim(keys, claim);
                    pops.dispatcher.wants_try_pop(keys);
                }
                pops.on_pop_ended(&self.conn, &kind, tier, link, outcome);
                Some(kind)
            }
            Completed::TryPop { kind, keys, try_pop, payloads, claim } => {
                let pops = self.pops_of(&kind);
                pops.add_claim(&keys, claim);
                pops.dispatcher.on_try_popped(&keys, try_pop, payloads);
                Some(kind)
            }
            Completed::TryPopAny { kind, lists, try_pop, payloads, claims } => {
                let pops = self.pops_of(&kind);
                claims.into_iter().for_each(|(keys, claim)| pops.add_claim(&keys, Some(claim)));
                pops.dispatcher.on_any_popped(&lists, try_pop, payloads.ok());
                Some(kind)
            }
            Completed::Examination { kind, tier, refused } => {
                self.kinds.get_mut(&kind)?.dispatcher.on_examined(tier, &refused);
                Some(kind)
            }
            Completed::FirstReturn { kind, keys, way_back } => {
                let (stop, shutdown) = (self.stop.clone(), self.shutdown.clone());
                self.running.push(Box::pin(async move {
                    way_back.finish(stop, shutdown).await;
                    Completed::Other
                }));
                self.kinds.get_mut(&kind)?.dispatcher.on_returned(&keys);
                Some(kind)
            }
            Completed::ConfirmTimer { kind } => {
                self.confirm_claims(&kind);
                Some(kind)
            }
            Completed::Other => None,
        }
    }

    /// Closes the connections of rare kinds of pop that have not been used for a while.
    fn close_idle(&mut self) {
        let common = Kind::Take(End::Head, None);
        self.kinds.retain(|kind, pops| *kind == common || !pops.is_unused_for(KEEP));
    }

    fn pops_of(&mut self, kind: &Kind) -> &mut PopsOfKind {
        self.kinds.entry(kind.clone()).or_insert_with(|| {
            PopsOfKind::new(match kind {
                Kind::Take(end, _) => Dispatcher::taking(*end, self.outbox.clone()),
                Kind::Move { .. } | Kind::Receive { .. } => Dispatcher::moving(),
            })
        })
    }

    /// Runs the actions of a dispatcher.
    fn run_actions(&mut self, kind: &Kind) {
        let Some(pops) = self.kinds.get_mut(kind) else { return };
        let actions = pops.dispatcher.next_actions();
        let blocks = actions.iter().any(|action| matches!(action, Action::Block { .. }));
        let may_park = !blocks || self.parked.has_room(&self.conn, kind, &self.kinds);
        for action in actions {
            let running = self.begin(kind.clone(), action, may_park);
            running.into_iter().for_each(|running| self.running.push(running));
        }
        if self.pops_of(kind).starts_confirming() {
            let kind = kind.clone();
            self.running.push(Box::pin(async move {
                sleep(CONFIRM_AFTER).await;
                Completed::ConfirmTimer { kind }
            }));
        }
    }

    /// Begins an action. `None` if there is no end to wait for.
    fn begin(&mut self, kind: Kind, action: Action, may_park: bool) -> Option<BoxFuture<'static, Completed>> {
        let conn = self.conn.in_slot(kind.slot(&self.conn));
        let pops = self.pops_of(&kind);
        Some(match action {
            Action::Interrupt(tier) => {
                pops.blocking_pop(tier).interrupt.cancel();
                return None;
            }
            Action::Block { tier, keys, interrupt_at_once } => {
                self.block(conn, kind, tier, keys, interrupt_at_once, may_park)
            }
            Action::TryPop { keys, try_pop } => {
                let earlier = pops.take_claim(&keys);
                Box::pin(async move {
                    let (payloads, claim) = calls::try_pop(&conn, &kind, &keys, try_pop.count, earlier).await;
                    Completed::TryPop { kind, keys, try_pop, payloads, claim }
                })
            }
            Action::TryPopAny { lists, try_pop } => {
                let earlier = lists.iter().map(|keys| pops.take_claim(keys).unwrap_or_default()).collect();
                Box::pin(async move {
                    let (payloads, claims) =
                        calls::try_pop_any(&conn, &kind, &lists, try_pop.count, earlier).await;
                    Completed::TryPopAny { kind, lists, try_pop, payloads, claims }
                })
            }
            Action::ReturnToList { keys, payloads } => {
                let Kind::Take(end, _) = kind else { return None };
                let mut way_back = Return::new(conn, end, keys.clone(), payloads);
                Box::pin(async move {
                    way_back.try_once().await;
                    Completed::FirstReturn { kind, keys, way_back }
                })
            }
            Action::Examine { tier, keys, refused } => Box::pin(async move {
                let refused = calls::examine(&conn, keys, refused).await;
                Completed::Examination { kind, tier, refused }
            }),
        })
    }

    /// A blocking pop. Where no more connections may block, it waits for a notice that a list has changed.
    fn block(
        &mut self,
        conn: Conn,
        kind: Kind,
        tier: Tier,
        keys: Vec<Keys>,
        interrupt_at_once: bool,
        may_park: bool,
    ) -> BoxFuture<'static, Completed> {
        let (tracked, blocked) = (self.tracked.clone(), self.blocked.clone());
        let pops = self.pops_of(&kind);
        let failures = pops.failures();
        let prepared = pops.blocking_pop(tier);
        prepared.reset();
        let (link, interrupt, sent) =
            (prepared.link.clone(), prepared.interrupt.clone(), prepared.sent.clone());
        let ended = kind.clone();
        if link.is_none() && !may_park {
            let pop = TrackedPop { conn, kind, keys, tracked, interrupt_at_once, interrupt, failures };
            return Box::pin(async move {
                let (outcome, claim) = pop.run().await;
                Completed::BlockingPop { kind: ended, tier, link: None, outcome, claim }
            });
        }
        prepared.is_parked = true;
        let pop = BlockingPop { conn, kind, keys, interrupt_at_once, interrupt, sent, blocked, failures };
        Box::pin(async move {
            let (link, outcome) = pop.run(link).await;
            Completed::BlockingPop { kind: ended, tier, link, outcome, claim: None }
        })
    }

    fn confirm_claims(&mut self, kind: &Kind) {
        let Some(pops) = self.kinds.get_mut(kind) else { return };
        for (keys, claims) in pops.take_unused_claims() {
            let conn = self.conn.of(&keys);
            self.running.push(Box::pin(async move {
                claims::confirm(&conn, &keys, claims).await;
                Completed::Other
            }));
        }
    }

    /// Answers the waiters, ends the pops, and returns undelivered payloads to their lists. Says that taking
    /// has stopped when they are back, after the command timeout at the latest.
    async fn finish(mut self) {
        self.kinds.values_mut().for_each(|pops| pops.dispatcher.close());
        self.outbox.close();
        self.gather_unread();
        let kinds: Vec<Kind> = self.kinds.keys().cloned().collect();
        kinds.iter().for_each(|kind| self.run_actions(kind));
        let bound = self.conn.command_timeout();
        let settled = within(bound, self.settle()).await.is_some();
        self.stopped = None;
        if !settled && !self.shutdown.is_cancelled() {
            // The rest of the client goes on, so there is time to return what is left.
            let shutdown = self.shutdown.clone();
            let shutdown = async {
                shutdown.cancelled().await;
                sleep(bound).await;
            };
            tokio::select! {
                () = self.settle() => {}
                () = shutdown => {}
            }
        }
        self.tell_lost();
        // At the same time: of a silent server, each takes as long as it may.
        let links = std::mem::take(&mut self.kinds).into_values().flat_map(PopsOfKind::into_links);
        join_all(links.map(async |link| link.close().await)).await;
    }

    /// What was dropped unread is undelivered from here on.
    fn gather_unread(&mut self) {
        // Together, so that they keep their order.
        while let Ok(popped) = self.unread.try_recv() {
            self.on_unread(popped);
        }
    }

    /// Tells of what was popped and will not be returned. What is on its way tells that itself.
    fn tell_lost(&self) {
        let undelivered = self.kinds.values().flat_map(|pops| pops.dispatcher.undelivered());
        undelivered
            .for_each(|(keys, payloads)| drop(Unreturned::new(self.conn.counters(), keys.clone(), payloads)));
    }

    /// Waits until nothing is in flight and every undelivered payload is back in its list.
    async fn settle(&mut self) {
        loop {
            let kind = tokio::select! {
                biased;
                Some(popped) = self.unread.recv(), if !self.unread.is_empty() => self.on_unread(popped),
                Some(completed) = self.running.next() => self.on_completed(completed),
                else => break,
            };
            if let Some(kind) = kind {
                self.run_actions(&kind);
            }
        }
    }
}
