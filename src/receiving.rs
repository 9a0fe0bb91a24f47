//! Receiving: messages are claimed for receivers, and stay on the server until they are settled.
//!
//! Each receiver has a task. Its calls settle deliveries, extend leases and claim messages (`receive.lua`),
//! one at a time, so what comes up during a call shares the next one; with a backlog and many receives, two
//! at a time. While nothing is ready, a blocked pop (see [`pops`](crate::pops)) wakes it up: it moves one
//! payload to the inbox of the queue, where a call finds it.
//!
//! The plan decides what a receiver does next, without a clock or a connection; the task carries it out, and
//! a call says it to the server. Beside them are the receives that wait, and the deliveries in the hands of
//! this process.
//!
//! | if … | then … |
//! |---|---|
//! | the future of a receive is dropped before it got anything | nothing has happened; a payload in the inbox goes to another receiver or back |
//! | … after it got a message and has not read it | the message is released: back to the head of the target, or to the retries if it was delivered before |
//! | a delivery is dropped without being settled | it failed: a retry after the backoff |
//! | the reply to a call is lost | the call is sent again with its token, and gets the same reply |
//! | … because it takes too long on this link | the reply to the second try has 128 KB, and more time; what it does not have is released; the next calls claim fewer messages |
//! | the process dies | the leases end; any receiver of the queue takes the messages back |
//! | the process dies while a payload is in the inbox | any receiver of the queue finds it with its next call |
//! | the server restarts | the leases are on the server; receivers are given time to extend them |
//! | the client stops taking | receives get `Closed`; deliveries are extended and can be settled until the shutdown |

mod call;
mod claim_size;
mod deliveries;
mod forward;
mod in_flight;
mod plan;
mod settlement;
mod task;
mod waiting;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::announcements::{Announced, Following};
use crate::conn::OpError;
use crate::driver::{Caller, Driver, LOOK, poll_answer};
use crate::engine::Engine;
use crate::telemetry::events::{self, Span};
use crate::telemetry::{QueueCounters, Taker};
use crate::wire::keys::Keys;
pub(crate) use call::Settings;
pub(crate) use forward::Destination;
use in_flight::InFlight;
pub(crate) use settlement::{Claimed, Settled, Settlement};
use task::Task;
use waiting::{Received, SettleAnswer, Waiting};

/// The handle of a receiver's task. The task ends when the last handle is dropped, after it has settled what
/// there is.
pub(crate) struct Receiving {
    driver: Driver,
    waiting: Arc<Waiting>,
    keys: Keys,
    counters: Arc<QueueCounters>,
    command_timeout: Duration,
    _retries: Following,
    _end: DropGuard,
}

impl Receiving {
    pub(crate) fn start(engine: &Engine, keys: &Keys, settings: Settings) -> Arc<Self> {
        let waiting = Arc::new(Waiting::default());
        let end = CancellationToken::new();
        let conn = engine.conn.of(keys);
        let announced = Arc::<Announced>::default();
        let retries = engine.follow_retries(keys, &announced);
        let stop = engine.at_stop.stop.clone();
        let in_flight =
            InFlight::new(conn.clone(), keys, settings.clone(), waiting.clone(), end.clone(), stop.clone());
        let task = Task::new(
            conn.clone(),
            engine.pops.clone(),
            keys.clone(),
            &settings,
            waiting.clone(),
            announced,
            in_flight,
        );
        let counters = conn.counters().clone();
        let what = format!("the receiver of `{}` has ended after a panic", events::name(keys));
        let look = LOOK.min(settings.lease() / 8);
        let (driver, task) = Driver::new(task.run(end.clone(), stop), look, move |panic| {
            counters.panicked(&what, panic);
        });
        engine.at_stop.tasks.spawn_on(task, conn.runtime());
        Arc::new(Self {
            driver,
            waiting,
            keys: keys.clone(),
            counters: conn.counters().queue(keys),
            command_timeout: conn.command_timeout(),
            _retries: retries,
            _end: end.drop_guard(),
        })
    }

    /// Waits for messages, up to `most` of them, without a limit.
    pub(crate) fn wait(&self, most: usize) -> PendingReceive {
        self.pending(most, true, None)
    }

    /// Whether a call should have been answered, and was not.
    pub(crate) fn is_silent(&self) -> bool {
        self.waiting.is_silent()
    }

    /// Claims what is there, without waiting.
    pub(crate) async fn poll(&self, most: usize) -> Result<Vec<Claimed>, OpError> {
        promptly(self.pending(most, false, None), self.command_timeout).await
    }

    /// Waits for messages for this time. The server looks at least once.
    pub(crate) async fn wait_for(&self, most: usize, time: Duration) -> Result<Vec<Claimed>, OpError> {
        let mut pending = self.wait(most);
        match timeout(time, &mut pending).await {
            Ok(claims) => claims,
            Err(_) => {
                pending.expire();
                promptly(pending, self.command_timeout).await
            }
        }
    }

    /// Settles a delivery. The result arrives when the server has answered; the delivery is settled without a
    /// listener, too.
    pub(crate) fn settle(&self, claim: &Claimed, settlement: Settlement) -> PendingSettle {
        let answer = self.waiting.settle(claim, settlement);
        self.settling(answer)
    }

    /// Settles a delivery and waits for a message, in one call.
    pub(crate) fn settle_and_wait(
        &self,
        claim: &Claimed,
        settlement: Settlement,
    ) -> (PendingSettle, PendingReceive) {
        let (answer, joined) = self.waiting.settle_and_join(claim, settlement);
        (self.settling(answer), self.pending(1, true, Some(joined)))
    }

    fn settling(&self, answer: SettleAnswer) -> PendingSettle {
        PendingSettle { caller: self.driver.caller(), waiting: self.waiting.clone(), asks: None, answer }
    }

    /// Until when a caller waits for the result of a settlement that begins now.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + 2 * self.command_timeout
    }

    fn pending(&self, most: usize, patient: bool, joined: Option<Joined>) -> PendingReceive {
        PendingReceive {
            caller: self.driver.caller(),
            most,
            patient,
            waiting: self.waiting.clone(),
            joined,
            span: Span::receive(&self.keys),
            _counted: Taker::new(vec![self.counters.clone()]),
        }
    }
}

/// Awaits an answer that should come at once.
async fn promptly(pending: PendingReceive, command_timeout: Duration) -> Result<Vec<Claimed>, OpError> {
    let silent = || Err(OpError::NotExecuted("the server does not answer".into()));
    timeout(command_timeout * 2, pending).await.unwrap_or_else(|_| silent())
}

impl fmt::Debug for Receiving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiving").finish_non_exhaustive()
    }
}

/// A delivery that is being settled: with the next call, and there is one as soon as this is polled or
/// dropped.
#[derive(Debug)]
pub(crate) struct PendingSettle {
    caller: Caller,
    waiting: Arc<Waiting>,
    /// Whether it counts as a caller; `None` before it is polled.
    asks: Option<bool>,
    answer: SettleAnswer,
}

impl Future for PendingSettle {
    /// `None` if the task has ended.
    type Output = Option<Result<Settled, OpError>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { caller, waiting, asks, answer } = &mut *self;
        // A later call may already carry the settlement, as a worker's next receive does. Then this future
        // only waits for the answer. If it is polled again without one, the caller that drives may be stuck.
        let was_polled = asks.is_some();
        let asks = asks.get_or_insert_with(|| waiting.has_to_settle());
        if !*asks {
            let answer = poll_answer(answer, cx, false);
            *asks = was_polled;
            if answer.is_ready() || !was_polled {
                return answer;
            }
        }
        let is_driving = caller.poll(cx, || waiting.wake_to_settle());
        poll_answer(answer, cx, is_driving)
    }
}

impl Drop for PendingSettle {
    fn drop(&mut self) {
        self.caller.leave();
        if self.asks.is_none() {
            self.waiting.wake_to_settle();
        }
    }
}

/// The number of a receive, and where it is answered.
type Joined = (u64, oneshot::Receiver<Received>);

/// The place of a receive among those that wait. Dropping it gives up the place; messages on their way to it
/// are released.
#[derive(Debug)]
pub(crate) struct PendingReceive {
    caller: Caller,
    most: usize,
    patient: bool,
    waiting: Arc<Waiting>,
    /// `None` until it is polled, and after the answer.
    joined: Option<Joined>,
    span: Span,
    _counted: Taker,
}

impl PendingReceive {
    /// Ends the wait after the next answer.
    fn expire(&mut self) {
        self.patient = false;
        if let Some((id, _)) = self.joined {
            self.waiting.expire(id);
        }
    }
}

impl Future for PendingReceive {
    type Output = Result<Vec<Claimed>, OpError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { caller, most, patient, waiting, joined, span, .. } = &mut *self;
        let answer = loop {
            let is_driving = caller.poll(cx, || {
                joined.get_or_insert_with(|| waiting.join(*most, *patient));
            });
            let Some((_, answer)) = joined else { break Err(OpError::Closed) };
            let answer = ready!(span.within(|| poll_answer(answer, cx, is_driving)));
            *joined = None;
            let answer = answer.unwrap_or(Err(OpError::Closed));
            // This process may have stood still since they were handed out. They go back, and others may have
            // them.
            let now = Instant::now();
            let are_over = |claims: &Vec<Claimed>| claims.iter().any(|claim| claim.lease.is_over(now));
            match answer {
                Ok(Some(claims)) if claims.peek(are_over) == Some(true) => {
                    drop(claims);
                    if !*patient {
                        break Ok(None);
                    }
                }
                answer => break answer,
            }
        };
        let claims = match answer {
            Ok(Some(claims)) => claims.read().ok_or(OpError::Closed),
            Ok(None) => Ok(Vec::new()),
            Err(error) => Err(error),
        };
        if let Ok(claims) = &claims {
            span.received(claims.len());
        }
        Poll::Ready(claims)
    }
}

impl Drop for PendingReceive {
    fn drop(&mut self) {
        // Giving up the place is for the task.
        self.caller.leave();
        if let Some((id, _)) = self.joined {
            self.waiting.leave(id);
        }
    }
}
