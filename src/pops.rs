//! Taking from lists: one task that owns every pop and hands payloads to takers.
//!
//! A taker may be dropped at any await point, but a pop may not: the server may have popped for it already. So takers
//! wait on a channel, and the task awaits each pop until it ends. Payloads on their way to a taker stay in an
//! [`Outbox`](crate::outbox::Outbox), and return to their list unless they are read.
//!
//! | if … | then … |
//! |---|---|
//! | the taker is dropped before it got anything | the blocked pop is interrupted, unless others wait for the same list |
//! | … after it got something and has not read it | that payload goes to the next taker, or back to its end of the list |
//! | the client stops taking or is shut down | unread payloads return to their lists, and waiting takers get `Closed` |
//! | … and the server does not answer until the command timeout of a shutdown is over | those payloads are lost |
//! | the server refuses a pop | its takers get the error, and pause before they may try again |
//! | the reply to a blocked pop is lost with its connection | the one payload that the server may have popped is lost |
//! | the reply to a pop that does not block is lost | it is sent again, and gets what the first attempt popped |
//! | the reply to a return is lost | it is sent again; a receipt on the server shows that it was done |
//! | the server restarts | the pops block again when the connection is back |
//! | the connection falls silent | a watchdog closes it a few seconds after the pop should have ended |

mod calls;
mod dispatcher;
mod inbox;
mod kind;
mod popped;
mod refusals;
mod slots;
mod task;
mod tracked;
mod waiter;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::conn::{Conn, OpError};
use crate::telemetry::Taker;
use crate::telemetry::events::Span;
use crate::wire::keys::Keys;
use inbox::Inbox;
pub(crate) use kind::{End, Lists, Wanted};
pub(crate) use popped::Popped;
use refusals::{Refusals, Sources};
use task::Task;
pub(crate) use tracked::Place;
use tracked::{Places, Tracked};
use waiter::{Answer, Wait, Waiter, WaiterId};

/// The handle of the pops task.
#[derive(Clone, Debug)]
pub(crate) struct Pops {
    inbox: Inbox,
    ids: Arc<AtomicU64>,
    refusals: Arc<Refusals>,
    /// Of receivers.
    places: Places,
    tracked: Tracked,
    /// The client's own.
    command_timeout: Duration,
    runtime: Handle,
    stop: CancellationToken,
    /// Cancelled when taking has stopped.
    stopped: CancellationToken,
}

impl Pops {
    /// Starts the task. It ends when `stop` is cancelled, after every popped payload is read or back in its list. When
    /// `shutdown` is cancelled, too, it waits for that no longer than the command timeout.
    pub(crate) fn start(
        conn: Conn,
        stop: CancellationToken,
        shutdown: CancellationToken,
    ) -> (Self, JoinHandle<()>) {
        let stopped = CancellationToken::new();
        let pops = Self {
            inbox: Inbox::default(),
            ids: Arc::default(),
            refusals: Arc::default(),
            places: Places::default(),
            tracked: Tracked::start(conn.clone(), stop.clone()),
            command_timeout: conn.command_timeout(),
            runtime: conn.runtime().clone(),
            stop: stop.clone(),
            stopped: stopped.clone(),
        };
        let task = Task::new(conn, pops.inbox.clone(), stop, shutdown, stopped.drop_guard());
        (pops, tokio::spawn(task.run()))
    }

    /// Stops taking. Waiting takers and later ones get `Closed`. Returns when every payload that was not delivered is back
    /// in its list, after the command timeout at the latest; the task then continues with the rest until a shutdown.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.stopped.cancelled().await;
    }

    /// Cancelled by [`Pops::stop`], and when the client ends.
    pub(crate) fn stopping(&self) -> &CancellationToken {
        &self.stop
    }

    /// Waits until the pops have ended, after [`Pops::stop`] or the end of the client.
    pub(crate) async fn stopped(&self) {
        self.stopped.cancelled().await;
    }

    /// An error after [`Pops::stop`].
    pub(crate) fn check_open(&self) -> Result<(), OpError> {
        if self.stop.is_cancelled() { Err(OpError::Closed) } else { Ok(()) }
    }

    /// Waits for a payload, without a limit.
    pub(crate) fn wait(&self, wanted: Wanted) -> PendingTake {
        self.join(wanted, Wait::Endless)
    }

    /// A place for a receiver that blocks; `None` if too many queues have one.
    pub(crate) fn place(&self, keys: &Keys) -> Option<Place> {
        self.places.enter(keys)
    }

    /// Waits until there is a payload for the receivers of a queue. With a place, it is moved to the inbox; without one, it
    /// stays where it is, and others may be quicker.
    pub(crate) fn wake(&self, keys: &Keys, inbox: &Bytes, place: Option<&Place>) -> PendingWake {
        match place {
            Some(_) => PendingWake::Moved(Box::new(self.wait(Wanted::received(keys.clone(), inbox.clone())))),
            None => PendingWake::Changed(self.tracked.wait(keys)),
        }
    }

    /// Takes what is in the lists, without waiting. The timeout is that of the caller's `conn`.
    pub(crate) async fn poll(&self, conn: &Conn, wanted: Wanted) -> Answer {
        let wait = if wanted.lists.keys.len() == 1 { Wait::None } else { Wait::Expired };
        let mut timeout = conn.command_timeout();
        if wanted.count > calls::CALL {
            // The task collects payloads for as long as its own timeout.
            timeout = timeout.max(self.command_timeout);
        }
        let take = self.join(wanted, wait);
        promptly(take, timeout).await
    }

    /// Waits for a payload for this time. The server looks at the lists at least once, within the timeout of the caller's
    /// `conn`.
    pub(crate) async fn wait_for(&self, conn: &Conn, wanted: Wanted, time: Duration) -> Answer {
        let mut take = self.wait(wanted);
        match timeout(time, &mut take).await {
            Ok(answer) => answer,
            Err(_) => {
                take.expire();
                promptly(take, conn.command_timeout()).await
            }
        }
    }

    fn join(&self, wanted: Wanted, wait: Wait) -> PendingTake {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let (answer, receiver) = oneshot::channel();
        let Lists { keys, counters } = wanted.lists;
        let span = Span::take(&keys);
        let sources = (wanted.kind, keys.clone());
        let waiter = Waiter { keys, want: wanted.count, wait, answer };
        let waits = wait == Wait::Endless;
        let pause = if waits { self.pause(&sources) } else { None };
        PendingTake {
            id,
            sources,
            unsent: Some(waiter),
            waits,
            pause,
            answer: receiver,
            inbox: self.inbox.clone(),
            refusals: self.refusals.clone(),
            answered: false,
            span,
            _counted: Taker::new(counters),
        }
    }

    /// The pause after a refusal. It runs in the client's runtime: a taker may be polled by another executor.
    fn pause(&self, sources: &Sources) -> Option<JoinHandle<()>> {
        let until = self.refusals.pause_until(sources, Instant::now())?;
        let stop = self.stop.clone();
        Some(self.runtime.spawn(async move {
            let _ = timeout_at(until, stop.cancelled()).await;
        }))
    }
}

/// Awaits an answer that should come at once. A server that does not answer may never send it; to drop the take then is
/// harmless.
async fn promptly(take: PendingTake, command_timeout: Duration) -> Answer {
    let no_answer = take.sources.0.no_answer();
    // A command waits for a connection first, for at most the same time. Then it fails with its own error.
    timeout(command_timeout * 2, take).await.unwrap_or(Err(no_answer))
}

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

/// The place of a taker among the waiters. Dropping it gives up the place; a payload on its way to it goes to the next
/// taker.
#[derive(Debug)]
pub(crate) struct PendingTake {
    id: WaiterId,
    sources: Sources,
    /// Until it is polled for the first time, and during the pause.
    unsent: Option<Waiter>,
    /// Whether it waits, and so pauses after refusals.
    waits: bool,
    pause: Option<JoinHandle<()>>,
    answer: oneshot::Receiver<Answer>,
    inbox: Inbox,
    refusals: Arc<Refusals>,
    answered: bool,
    span: Span,
    _counted: Taker,
}

impl PendingTake {
    /// Its time is over: it will be answered soon.
    pub(crate) fn expire(&mut self) {
        self.pause = None;
        match &mut self.unsent {
            Some(waiter) => waiter.wait = Wait::Expired,
            None => self.inbox.expire(&self.sources.0, self.id),
        }
    }

    /// Sends the waiter to the task, after the pause.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(pause) = &mut self.pause {
            // Fails only when the runtime is shutting down.
            let _ = ready!(Pin::new(pause).poll(cx));
            self.pause = None;
        }
        if let Some(waiter) = self.unsent.take() {
            self.inbox.join(self.sources.0.clone(), self.id, waiter);
        }
        Poll::Ready(())
    }
}

impl Future for PendingTake {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        ready!(self.poll_send(cx));
        let Self { span, answer, .. } = &mut *self;
        let answer = ready!(span.within(|| Pin::new(answer).poll(cx))).unwrap_or(Err(OpError::Closed));
        self.answered = true;
        match &answer {
            Ok(_) => self.refusals.on_success(&self.sources),
            Err(OpError::Server(_)) if self.waits => self.refusals.on_refused(&self.sources, Instant::now()),
            Err(_) => {}
        }
        Poll::Ready(answer)
    }
}

impl Drop for PendingTake {
    fn drop(&mut self) {
        if !self.answered && self.unsent.is_none() {
            self.inbox.leave(&self.sources.0, self.id);
        }
    }
}
