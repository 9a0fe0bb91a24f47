//! The calls of one receiver that are on their way: one, or two while the server has a backlog.
//!
//! With two, the server works on one while this process handles what the other has brought. To the server
//! they come from two receivers: it remembers the last call of each, and refuses one that arrives later than
//! that.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt, ready};
use futures::stream::{FuturesUnordered, StreamExt};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::call::{LastReply, Report, Settings, Turn};
use super::claim_size::ClaimSize;
use super::plan::{LONGEST_ROUND_TRIP, ReceiveDemand};
use super::waiting::Waiting;
use crate::conn::{Command, Conn, OpError, Unconfirmed};
use crate::pacing::pause_after;
use crate::scripts::Call;
use crate::wire::id;
use crate::wire::keys::{Keys, MessageKeys};

/// A call takes longer than this only on a slow link, or if its server is silent.
const SILENT: Duration = Duration::from_secs(2);

pub(super) struct InFlight {
    shared: Arc<Shared>,
    calls: FuturesUnordered<BoxFuture<'static, (CallingReceiver, Answered)>>,
    idle: Vec<CallingReceiver>,
    /// The messages that these calls are to claim.
    claiming: usize,
    /// The token of the last call.
    token: [u8; 16],
    last: Option<LastReply>,
    claim_size: ClaimSize,
}

/// What all calls need.
struct Shared {
    conn: Conn,
    keys: Keys,
    of_messages: MessageKeys,
    settings: Settings,
    waiting: Arc<Waiting>,
    /// The last handle is gone.
    end: CancellationToken,
    /// The client ends.
    stop: CancellationToken,
}

/// A receiver, as the server sees it. It makes one call at a time.
struct CallingReceiver {
    id: Bytes,
    /// A try of a call was lost, and may still arrive.
    lost: bool,
}

/// A call that has ended.
pub(super) struct Answered {
    pub(super) turn: Turn,
    pub(super) demand: ReceiveDemand,
    /// When the first try was sent. The server may count from then on.
    pub(super) sent: Instant,
    /// It was sent more than once.
    pub(super) repeated: bool,
    /// When it ended.
    pub(super) ended: Instant,
    pub(super) unconfirmed: Option<Unconfirmed>,
    pub(super) result: Result<Report, NoReply>,
}

impl Answered {
    /// What the network took, and the wait for a connection; not known of a call that was sent more than
    /// once.
    pub(super) fn round_trip(&self) -> Option<Duration> {
        (!self.repeated).then(|| self.ended - self.sent)
    }
}

/// Why a call got no reply.
pub(super) struct NoReply {
    pub(super) error: OpError,
    /// A try may have been executed.
    pub(super) lost: bool,
    /// The client has ended, or nobody needs the answer. Otherwise the server has refused the call.
    pub(super) closed: bool,
}

impl InFlight {
    pub(super) fn new(
        conn: Conn,
        keys: &Keys,
        settings: Settings,
        waiting: Arc<Waiting>,
        end: CancellationToken,
        stop: CancellationToken,
    ) -> Self {
        let (keys, of_messages) = (keys.clone(), keys.of_messages());
        Self {
            shared: Arc::new(Shared { conn, keys, of_messages, settings, waiting, end, stop }),
            calls: FuturesUnordered::new(),
            idle: Vec::new(),
            claiming: 0,
            token: [0; 16],
            last: None,
            claim_size: ClaimSize::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// The messages that the calls on their way are to claim.
    pub(super) fn claiming(&self) -> usize {
        self.claiming
    }

    /// The most messages that a call is to claim.
    pub(super) fn most(&self) -> usize {
        self.claim_size.most()
    }

    /// How long a call may take before its server counts as silent.
    fn answers_within(&self) -> Duration {
        if self.claim_size.is_slow() { self.shared.conn.command_timeout() } else { SILENT }
    }

    pub(super) fn begin(&mut self, turn: Turn, demand: ReceiveDemand) {
        let new = || CallingReceiver { id: Bytes::copy_from_slice(&id::new()), lost: false };
        let caller = self.idle.pop().unwrap_or_else(new);
        self.token = id::new();
        self.claiming += turn.scope.most;
        self.shared.waiting.call_begins(self.answers_within());
        let is_slow = self.claim_size.is_slow();
        let call = self.shared.clone().make(caller, self.token, turn, demand, self.last, is_slow);
        self.calls.push(call.boxed());
        // It is sent now, and not when the reply to the other one has been handled. When the set has polled
        // each call once, it wakes its task, which wakes another thread. Here, it wakes nothing.
        if let Some(Some(ended)) = self.calls.next().now_or_never() {
            self.calls.push(ready(ended).boxed());
        }
    }

    /// The next call that ends; pending if there is none. Cancel safe.
    pub(super) async fn next(&mut self) -> Answered {
        let Some((caller, answered)) = self.calls.next().await else { std::future::pending().await };
        self.idle.push(caller);
        self.claiming -= answered.turn.scope.most;
        self.shared.waiting.call_ended(self.calls.is_empty(), self.answers_within());
        if let Ok(report) = &answered.result {
            let command_timeout = self.shared.conn.command_timeout();
            self.claim_size.answered(report.claims.len(), answered.round_trip(), command_timeout);
            // Calls that take equally long arrive as far apart as they are sent.
            let round_trip = answered.round_trip().unwrap_or_default().min(LONGEST_ROUND_TRIP);
            self.last = Some(LastReply { clock: report.news.clock, sent: answered.ended - round_trip });
        }
        answered
    }

    /// Leaves no receipts on the server.
    pub(super) async fn finish(&mut self) {
        // With its receipt, a try that arrives late has no effect.
        let ids: Vec<Bytes> =
            self.idle.drain(..).filter(|caller| !caller.lost).map(|caller| caller.id).collect();
        if !ids.is_empty() {
            let receipts = Command::new("HDEL").arg(self.shared.of_messages.receipts.clone()).args(ids);
            let _ = self.shared.conn.call(&receipts).await;
        }
    }
}

impl Shared {
    /// Whether there is nobody to receive for, because the last handle is gone. What a lost try may have
    /// claimed is released behind its reply, unless its lease is over by now.
    fn is_in_vain(&self, lost: bool, sent: Instant) -> bool {
        self.end.is_cancelled() && (!lost || sent.elapsed() > self.settings.lease())
    }

    /// The same report, in which refusals name the keys of another type.
    async fn explained(&self, mut report: Report, call: &Call) -> Report {
        let refusals = report.settled.iter_mut().filter_map(|settled| match settled {
            Err(OpError::Server(why)) => Some(why),
            _ => None,
        });
        let deadline = Instant::now() + self.conn.command_timeout();
        for why in report.refused.iter_mut().chain(&mut report.unburied).chain(refusals) {
            *why = Box::pin(call.explained(&self.conn, std::mem::take(why), deadline)).await;
        }
        report
    }

    /// Makes a call until it is answered. On a slow link, and if a reply was lost, a reply with messages has
    /// more time.
    async fn make(
        self: Arc<Self>,
        mut caller: CallingReceiver,
        token: [u8; 16],
        turn: Turn,
        demand: ReceiveDemand,
        last: Option<LastReply>,
        is_slow: bool,
    ) -> (CallingReceiver, Answered) {
        let sent = Instant::now();
        let call = turn.call(&caller.id, token, &self.keys, &self.of_messages, &self.settings, last);
        let settlements = turn.settlements();
        let (mut attempts, mut lost) = (0, false);
        let mut unconfirmed;
        let result = loop {
            unconfirmed = self.conn.before_write(&self.keys);
            let is_long = turn.scope.most > 0 && (is_slow || lost);
            let conn = if is_long { &self.conn.for_long_reply() } else { &self.conn };
            match call.run_noting(conn, &mut lost).await {
                Ok(reply) => match Report::read(reply, settlements) {
                    Some(report) => break Ok(self.explained(report, &call).await),
                    None => drop(self.conn.desynchronised()),
                },
                Err(error @ OpError::Closed) => break Err(NoReply { error, lost, closed: true }),
                Err(error @ (OpError::Server(_) | OpError::TooLarge(_) | OpError::Rejected(_))) => {
                    break Err(NoReply { error, lost, closed: false });
                }
                Err(error) if self.stop.is_cancelled() || settlements == 0 && self.is_in_vain(lost, sent) => {
                    break Err(NoReply { error, lost, closed: true });
                }
                // Receives that do not wait are not delayed by what nobody can do now. For them, nothing is
                // unknown: what a lost try has claimed, the next one brings.
                Err(OpError::Unknown(why)) => {
                    self.waiting.answer(u64::MAX, false, || Err(OpError::NotExecuted(why.clone())));
                }
                Err(error) => self.waiting.answer(u64::MAX, false, || Err(error.clone())),
            }
            let _ = timeout(pause_after(attempts), self.stop.cancelled()).await;
            attempts += 1;
        };
        caller.lost |= lost;
        let (repeated, ended) = (attempts > 0 || lost, Instant::now());
        (caller, Answered { turn, demand, sent, repeated, ended, unconfirmed, result })
    }
}
