//! Taking from lists: one task that owns every pop and hands payloads to takers.
//!
//! A taker may be dropped at any await point, but a pop may not: the server has popped for it already. So takers wait
//! on a channel, and the pops belong to a task that sees each of them through. What travels between them lies on a
//! [`Outbox`](crate::outbox::Outbox), and comes back unless it is read.
//!
//! | if … | then … |
//! |---|---|
//! | the taker is dropped before it got anything | the parked pop is interrupted, unless others wait for the same list |
//! | … after it got something and has not read it | that goes to the next taker, or back to its end of the list |
//! | the client is shut down | what lies unread goes back, and whoever waits is told |
//! | the reply to a parked pop is lost with its connection | the one payload that the server may have popped for it is lost |
//! | the reply to a pop that does not block is lost | it is sent again, and gets what the first try took |
//! | the reply to a give-back is lost | it is sent again; a marker on the server tells that it was done |
//! | the server restarts | pops are parked again when the connection is back |
//! | the connection falls silent | a watchdog gives it up a few seconds after the pop should have ended |

mod calls;
mod lane;
mod list;
mod popped;
mod task;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::conn::{Conn, OpError};
use crate::telemetry::events::Span;
use crate::telemetry::{QueueCounters, Taker};
use crate::wire::keys::Keys;
use lane::{Answer, Patience, Waiter, WaiterId};
pub(crate) use popped::{End, Popped};
use task::Task;

/// The kinds of pop; each has a lane, and a connection while it is used, for one connection parks one command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Take(End),
    /// From the tail of one list to the head of another.
    Move {
        source: Keys,
        destination: Bytes,
    },
}

impl Kind {
    /// What it means that a server has fallen silent. What was popped comes back; what was moved is where it is.
    fn silence(&self) -> OpError {
        let why = "the server does not answer".into();
        match self {
            Self::Take(_) => OpError::NotExecuted(why),
            Self::Move { .. } => OpError::Unknown(why),
        }
    }
}

/// The lists that somebody takes from, and where that is counted.
#[derive(Clone, Debug)]
pub(crate) struct Lists {
    pub(crate) keys: Vec<Keys>,
    pub(crate) counters: Vec<Arc<QueueCounters>>,
}

/// What a taker waits for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    kind: Kind,
    lists: Lists,
    count: usize,
}

impl Wanted {
    /// One payload from one of several lists.
    pub(crate) fn one(end: End, lists: Lists) -> Self {
        Self { kind: Kind::Take(end), lists, count: 1 }
    }

    /// Up to `count` payloads from one list; not for one who waits.
    pub(crate) fn many(end: End, keys: Keys, count: usize) -> Self {
        Self { kind: Kind::Take(end), lists: Lists { keys: vec![keys], counters: Vec::new() }, count }
    }

    /// One payload, moved from the tail of a list to the head of another.
    pub(crate) fn moved(source: Keys, counters: Vec<Arc<QueueCounters>>, destination: Bytes) -> Self {
        let kind = Kind::Move { source: source.clone(), destination };
        Self { kind, lists: Lists { keys: vec![source], counters }, count: 1 }
    }
}

/// Takers that may have come and are not looked at yet. A loop that begins a take and drops it, again and again, must not
/// fill the memory.
const BACKLOG: usize = 4096;

/// The way to the pops task.
#[derive(Clone, Debug)]
pub(crate) struct Pops {
    requests: mpsc::UnboundedSender<Request>,
    ids: Arc<AtomicU64>,
    backlog: Arc<AtomicUsize>,
    command_timeout: Duration,
}

#[derive(Debug)]
enum Request {
    Join(Kind, WaiterId, Waiter),
    Leave(Kind, WaiterId),
    Expire(Kind, WaiterId),
}

impl Pops {
    /// Starts the task. It ends when `stop` is cancelled, after everything that was popped has found a place.
    pub(crate) fn start(conn: Conn, stop: CancellationToken) -> (Self, tokio::task::JoinHandle<()>) {
        let (sender, requests) = mpsc::unbounded_channel();
        let command_timeout = conn.command_timeout();
        let backlog = Arc::<AtomicUsize>::default();
        let handle = tokio::spawn(Task::new(conn, backlog.clone()).run(requests, stop));
        (Self { requests: sender, ids: Arc::default(), backlog, command_timeout }, handle)
    }

    /// Waits as long as it takes.
    pub(crate) fn wait(&self, wanted: Wanted) -> Waiting {
        self.join(wanted, Patience::Endless)
    }

    /// Takes what is there.
    pub(crate) async fn poll(&self, wanted: Wanted) -> Answer {
        let patience = if wanted.lists.keys.len() == 1 { Patience::None } else { Patience::Over };
        let waiting = self.join(wanted, patience);
        self.soon(waiting).await
    }

    /// Waits until something comes, or this time has passed; looks at least once.
    pub(crate) async fn wait_for(&self, wanted: Wanted, time: Duration) -> Answer {
        let mut waiting = self.wait(wanted);
        match timeout(time, &mut waiting).await {
            Ok(answer) => answer,
            Err(_) => {
                waiting.expire();
                self.soon(waiting).await
            }
        }
    }

    /// An answer that should come at once. From a server that has fallen silent it may not come at all; to give the
    /// place up is harmless.
    async fn soon(&self, waiting: Waiting) -> Answer {
        let silence = waiting.kind.silence();
        // A command waits for a connection first, for which it has as long; then it has an error of its own.
        timeout(self.command_timeout * 2, waiting).await.unwrap_or(Err(silence))
    }

    fn join(&self, wanted: Wanted, patience: Patience) -> Waiting {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let (answer, receiver) = oneshot::channel();
        let Lists { keys, counters } = wanted.lists;
        let span = Span::take(&keys);
        let waiter = Waiter { keys, want: wanted.count, patience, answer };
        Waiting {
            id,
            kind: wanted.kind,
            unsent: Some(waiter),
            answer: receiver,
            requests: self.requests.clone(),
            backlog: self.backlog.clone(),
            answered: false,
            span,
            _counted: Taker::new(counters),
        }
    }
}

/// A taker's place in the queue. Dropping it gives the place up; whatever was on its way to it goes on to the next.
#[derive(Debug)]
pub(crate) struct Waiting {
    id: WaiterId,
    kind: Kind,
    /// Until it is polled for the first time.
    unsent: Option<Waiter>,
    answer: oneshot::Receiver<Answer>,
    requests: mpsc::UnboundedSender<Request>,
    backlog: Arc<AtomicUsize>,
    answered: bool,
    span: Span,
    _counted: Taker,
}

impl Waiting {
    /// It has waited long enough.
    fn expire(&mut self) {
        match &mut self.unsent {
            Some(waiter) => waiter.patience = Patience::Over,
            None => drop(self.requests.send(Request::Expire(self.kind.clone(), self.id))),
        }
    }
}

impl Future for Waiting {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        if let Some(waiter) = self.unsent.take() {
            if self.backlog.load(Ordering::Relaxed) >= BACKLOG {
                self.unsent = Some(waiter);
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.backlog.fetch_add(1, Ordering::Relaxed);
            // If the task is over, the waiter is dropped, and with it the channel: that is an answer, too.
            let _ = self.requests.send(Request::Join(self.kind.clone(), self.id, waiter));
        }
        let Self { span, answer, .. } = &mut *self;
        let answer = ready!(span.within(|| Pin::new(answer).poll(cx)));
        self.answered = true;
        Poll::Ready(answer.unwrap_or(Err(OpError::Closed)))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.answered && self.unsent.is_none() {
            let _ = self.requests.send(Request::Leave(self.kind.clone(), self.id));
        }
    }
}
