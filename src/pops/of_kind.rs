//! What the pops task keeps for each kind of pop: the dispatcher, its blocking pops, the claims
//! of its try pops, and whether its pops fail.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::dispatcher::{Dispatcher, PopOutcome, Tier};
use super::kind::Kind;
use super::waiter::{Waiter, WaiterId};
use crate::claims::ClaimId;
use crate::conn::{Conn, Link, OpError};
use crate::telemetry::events;
use crate::wire::keys::{Hashed, Keys, MapByKeys};

/// A pop that has blocked for this long has looked at its lists, and what it found would have arrived, if the
/// server answers other commands in the meantime. This is more time than a command and its reply take, at any
/// distance.
const LOOKED: Duration = Duration::from_secs(1);
/// After this time without a connection, expired takers get its error.
const DOWN: Duration = Duration::from_secs(1);

/// What the pops task keeps.
pub(super) type Kinds = HashMap<Kind, PopsOfKind, BuildHasherDefault<Hashed>>;

/// The pops of one kind.
pub(super) struct PopsOfKind {
    pub(super) dispatcher: Dispatcher,
    hot: PopLink,
    cold: PopLink,
    /// The claims of try pops whose replies have arrived. The next try pop of a list confirms one of them.
    claims: MapByKeys<Vec<ClaimId>>,
    /// Whether a timer runs for the claims that no try pop confirms.
    confirming: bool,
    failing: Option<Failing>,
    used: Instant,
}

/// The pops of a kind fail.
struct Failing {
    since: Instant,
    /// The number of failures in a row.
    times: u32,
    /// The reason for takers whose time is over.
    error: OpError,
}

/// A connection that blocks on one pop at a time.
#[derive(Default)]
pub(super) struct PopLink {
    pub(super) link: Option<Arc<Link>>,
    /// Whether it has a connection, or a pop opens one.
    pub(super) is_parked: bool,
    pub(super) interrupt: CancellationToken,
    /// When the blocked pop was sent.
    pub(super) sent: Arc<OnceLock<Instant>>,
}

impl PopLink {
    /// Prepares for a new pop.
    pub(super) fn reset(&mut self) {
        self.interrupt = CancellationToken::new();
        self.sent = Arc::default();
    }

    /// Whether the pop has certainly looked at its lists, and what it found would have arrived.
    fn has_looked(&self, conn: &Conn) -> bool {
        self.sent
            .get()
            .filter(|sent| sent.elapsed() >= LOOKED)
            .is_some_and(|sent| conn.last_reply().is_some_and(|reply| reply >= *sent + LOOKED / 2))
    }
}

impl PopsOfKind {
    pub(super) fn new(dispatcher: Dispatcher) -> Self {
        Self {
            dispatcher,
            hot: PopLink::default(),
            cold: PopLink::default(),
            claims: MapByKeys::default(),
            confirming: false,
            failing: None,
            used: Instant::now(),
        }
    }

    pub(super) fn blocking_pop(&mut self, tier: Tier) -> &mut PopLink {
        match tier {
            Tier::Hot => &mut self.hot,
            Tier::Cold => &mut self.cold,
        }
    }

    /// The number of its connections, those that are being opened included.
    pub(super) fn parked(&self) -> usize {
        usize::from(self.hot.is_parked) + usize::from(self.cold.is_parked)
    }

    pub(super) fn into_links(self) -> impl Iterator<Item = Arc<Link>> {
        [self.hot.link, self.cold.link].into_iter().flatten()
    }

    /// A taker begins to wait. Returns whether others wait, too.
    pub(super) fn join(&mut self, id: WaiterId, waiter: Waiter) -> bool {
        self.used = Instant::now();
        self.dispatcher.join(id, waiter);
        self.dispatcher.has_several()
    }

    /// Whether nothing has used it for this long, and nothing is in flight or to be confirmed.
    pub(super) fn is_unused_for(&self, time: Duration) -> bool {
        self.dispatcher.is_idle() && self.claims.is_empty() && self.used.elapsed() >= time
    }

    /// The number of blocking pops that have failed in a row.
    pub(super) fn failures(&self) -> u32 {
        self.failing.as_ref().map_or(0, |failing| failing.times)
    }

    /// The time of a taker is over.
    pub(super) fn expire(&mut self, id: WaiterId, conn: &Conn) {
        let down = self.failing.as_ref().filter(|failing| failing.since.elapsed() >= DOWN);
        let down = down.map(|failing| failing.error.clone());
        let looked = Tier::BOTH.map(|tier| self.blocking_pop(tier).has_looked(conn));
        self.dispatcher.expire(id, |tier| looked[tier as usize], down);
    }

    /// A blocking pop ended.
    pub(super) fn on_pop_ended(
        &mut self,
        conn: &Conn,
        kind: &Kind,
        tier: Tier,
        link: Option<Arc<Link>>,
        outcome: PopOutcome,
    ) {
        let pop = self.blocking_pop(tier);
        pop.link = link.or(pop.link.take());
        pop.is_parked = pop.link.is_some();
        match &outcome {
            PopOutcome::Failed(error @ (OpError::Unknown(_) | OpError::NotExecuted(_))) => {
                // Perhaps the server accepts no more connections.
                if matches!(error, OpError::NotExecuted(_)) && conn.in_slot(kind.slot(conn)).is_connected() {
                    self.dispatcher.on_no_connection(tier);
                }
                self.on_failure(kind, error);
            }
            // A pop that was not sent still had a connection. Where takers do not wait for long, none may
            // ever be sent: each taker gets the failure, and leaves before the pause is over.
            _ => {
                if self.failing.take().is_some() {
                    events::pops_recovered();
                }
            }
        }
        let outcome = match (kind, outcome) {
            // A payload may be in the inbox. The receiver looks: all that such a pop brings is a wake-up.
            (Kind::Receive { source, .. }, PopOutcome::Failed(OpError::Unknown(_))) => {
                PopOutcome::Payload(source.clone(), Bytes::new())
            }
            (_, outcome) => outcome,
        };
        self.dispatcher.on_pop_ended(tier, outcome);
    }

    fn on_failure(&mut self, kind: &Kind, error: &OpError) {
        let Some(failing) = &mut self.failing else {
            events::pops_failing(error);
            self.failing = Some(Failing { since: Instant::now(), times: 1, error: error.clone() });
            return;
        };
        failing.times += 1;
        // A payload may have been moved, whatever has failed since.
        let stays = matches!(kind, Kind::Move { .. } | Kind::Receive { .. })
            && matches!(failing.error, OpError::Unknown(_));
        if !stays {
            failing.error = error.clone();
        }
    }

    /// A try pop was answered.
    pub(super) fn add_claim(&mut self, keys: &Keys, claim: Option<ClaimId>) {
        if let Some(claim) = claim {
            self.claims.entry(keys.clone()).or_default().push(claim);
        }
    }

    /// A claim that the next try pop of this list can confirm.
    pub(super) fn take_claim(&mut self, keys: &Keys) -> Option<ClaimId> {
        let claims = self.claims.get_mut(keys)?;
        let claim = claims.pop();
        if claims.is_empty() {
            self.claims.remove(keys);
        }
        claim
    }

    /// Whether to start the timer for the claims that no try pop confirms. Returns true once for each timer.
    pub(super) fn starts_confirming(&mut self) -> bool {
        !self.claims.is_empty() && !std::mem::replace(&mut self.confirming, true)
    }

    /// The timer is over: the claims of lists without a try pop in flight.
    pub(super) fn take_unused_claims(&mut self) -> Vec<(Keys, Vec<ClaimId>)> {
        self.confirming = false;
        let Self { claims, dispatcher, .. } = self;
        let unused: Vec<Keys> =
            claims.keys().filter(|keys| !dispatcher.is_try_popping(keys)).cloned().collect();
        unused.into_iter().filter_map(|keys| claims.remove_entry(&keys)).collect()
    }
}
