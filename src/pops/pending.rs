//! Takers and receivers that wait for the pops task.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::mailbox::Mailbox;
use super::refusals::{Refusals, Sources};
use super::waiter::{Answer, Wait, Waiter, WaiterId};
use crate::conn::OpError;
use crate::driver::{Caller, Driver, poll_answer};
use crate::telemetry::Taker;
use crate::telemetry::events::Span;

/// What wakes up a receiver.
#[derive(Debug)]
pub(crate) enum PendingWake {
    /// A payload is moved to the inbox.
    Moved(Box<PendingTake>),
    /// The list may have a payload.
    Changed(oneshot::Receiver<Result<(), OpError>>),
}

impl PendingWake {
    /// Its time is over: it will be answered soon.
    pub(crate) fn expire(&mut self) {
        match self {
            Self::Moved(take) => take.expire(),
            Self::Changed(changed) => {
                changed.close();
            }
        }
    }
}

impl Future for PendingWake {
    /// Whether a payload was moved to the inbox.
    type Output = Result<bool, OpError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Moved(take) => Pin::new(take).poll(cx).map(|answer| answer.map(|popped| popped.is_some())),
            // Without a sender, it has expired or the client takes no more.
            Self::Changed(changed) => {
                Pin::new(changed).poll(cx).map(|answer| answer.unwrap_or(Ok(())).map(|()| false))
            }
        }
    }
}

/// A taker. Dropping it gives up its place; a payload on its way to it goes to the next taker.
///
/// In a cluster, no pop covers lists of several slots. So a taker of such lists has a place for each slot.
/// The first one that gets a payload answers, and the others are dropped.
#[derive(Debug)]
pub(crate) struct PendingTake {
    /// It is dropped before the places, so that giving them up is for the task.
    caller: Caller,
    pub(super) pops: Vec<PendingPop>,
    /// The error of a pop, if no other has a payload.
    failed: Option<OpError>,
}

impl PendingTake {
    pub(super) fn new(driver: &Driver, pops: Vec<PendingPop>) -> Self {
        Self { caller: driver.caller(), pops, failed: None }
    }

    /// Its time is over: it will be answered soon.
    pub(crate) fn expire(&mut self) {
        self.pops.iter_mut().for_each(PendingPop::expire);
    }

    /// The error for a server that does not answer.
    pub(super) fn no_answer(&self) -> OpError {
        match self.pops.first() {
            Some(pop) => pop.sources.0.no_answer(),
            None => OpError::Closed,
        }
    }
}

impl Future for PendingTake {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let Self { caller, pops, failed } = &mut *self;
        let to_send = pops.iter().any(|pop| pop.unsent.is_some()).then(|| cx.waker().clone());
        let is_driving = caller.poll(cx, || {
            if let Some(waker) = to_send {
                pops.iter_mut().for_each(|pop| pop.send(&mut Context::from_waker(&waker)));
            }
        });
        let mut i = 0;
        while let Some(pop) = pops.get_mut(i) {
            match pop.poll_answer(cx, is_driving) {
                Poll::Pending => i += 1,
                Poll::Ready(Ok(None)) => drop(pops.remove(i)),
                // The taker's time was over. Another server may have a payload.
                Poll::Ready(Err(error @ (OpError::NotExecuted(_) | OpError::Unknown(_)))) => {
                    drop(pops.remove(i));
                    failed.get_or_insert(error);
                }
                Poll::Ready(answer) => {
                    caller.leave();
                    pops.clear();
                    return Poll::Ready(answer);
                }
            }
        }
        match pops.is_empty() {
            true => Poll::Ready(failed.take().map_or(Ok(None), Err)),
            false => Poll::Pending,
        }
    }
}

/// The place of a taker among the waiters of one kind of pop. Dropping it gives up the place; a payload on
/// its way to it goes to the next taker.
#[derive(Debug)]
pub(super) struct PendingPop {
    pub(super) id: WaiterId,
    pub(super) sources: Sources,
    /// Until it is polled for the first time, and during the pause.
    pub(super) unsent: Option<Waiter>,
    /// Whether it waits, and so pauses after refusals.
    pub(super) waits: bool,
    pub(super) pause: Option<JoinHandle<()>>,
    pub(super) answer: oneshot::Receiver<Answer>,
    pub(super) mailbox: Mailbox,
    pub(super) refusals: Arc<Refusals>,
    pub(super) answered: bool,
    pub(super) span: Span,
    pub(super) _counted: Taker,
}

impl PendingPop {
    /// Its time is over: it will be answered soon.
    fn expire(&mut self) {
        self.pause = None;
        match &mut self.unsent {
            Some(waiter) => waiter.wait = Wait::Expired,
            None => self.mailbox.expire(&self.sources.0, self.id),
        }
    }

    /// Sends the waiter to the task, after the pause.
    fn send(&mut self, cx: &mut Context<'_>) {
        if let Some(pause) = &mut self.pause {
            // Fails only when the runtime is shutting down.
            if Pin::new(pause).poll(cx).is_pending() {
                return;
            }
            self.pause = None;
        }
        if let Some(waiter) = self.unsent.take() {
            self.mailbox.join(self.sources.0.clone(), self.id, waiter);
        }
    }

    /// The answer. If the taker drives the task, it is woken with that.
    fn poll_answer(&mut self, cx: &mut Context<'_>, is_driving: bool) -> Poll<Answer> {
        if self.unsent.is_some() {
            return Poll::Pending;
        }
        let Self { span, answer, .. } = self;
        let answer = ready!(span.within(|| poll_answer(answer, cx, is_driving)));
        let answer = answer.unwrap_or(Err(OpError::Closed));
        self.answered = true;
        match &answer {
            Ok(_) => self.refusals.on_success(&self.sources),
            Err(OpError::Server(_)) if self.waits => self.refusals.on_refused(&self.sources, Instant::now()),
            Err(_) => {}
        }
        Poll::Ready(answer)
    }
}

impl Drop for PendingPop {
    fn drop(&mut self) {
        if !self.answered && self.unsent.is_none() {
            self.mailbox.leave(&self.sources.0, self.id);
        }
    }
}
