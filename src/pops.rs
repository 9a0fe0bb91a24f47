//! Taking from lists: one task that owns every pop and hands payloads to takers.
//!
//! A taker may be dropped at any await point, but a pop may not: the server may have popped for it already.
//! So takers wait on a channel, and the task awaits each pop until it ends. A taker without company polls the
//! task itself, see [`driver`](crate::driver). Payloads on their way to a taker stay in an
//! [`Outbox`](crate::outbox::Outbox), and return to their list unless they are read.
//!
//! | if … | then … |
//! |---|---|
//! | the taker is dropped before it got anything | the blocked pop is interrupted, unless others wait for the same list |
//! | … after it got something and has not read it | that payload goes to the next taker, or back to its end of the list |
//! | the client stops taking or is shut down | unread payloads return to their lists, and waiting takers get `Closed` |
//! | … and the server does not answer until the command timeout of a shutdown is over | those payloads are lost, and an event says so |
//! | the runtime ends | the same, unless a taker in another runtime reads them |
//! | the server refuses a pop | its takers get the error, and pause before they may try again |
//! | the reply to a blocked pop is lost with its connection | the one payload that the server may have popped is lost |
//! | the reply to a pop that does not block is lost | it is sent again, and gets what the first attempt popped |
//! | the reply to a return is lost | it is sent again; a receipt on the server shows that it was done |
//! | the server restarts | the pops block again when the connection is back |
//! | the connection falls silent | a watchdog closes it a few seconds after the pop should have ended |

mod blocked_lists;
mod calls;
mod dispatcher;
mod kind;
mod mailbox;
mod of_kind;
mod parked;
mod pending;
mod popped;
mod refusals;
mod task;
mod tracked;
mod tracked_pop;
mod waiter;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::conn::{Command, Conn, OpError, Reply};
use crate::driver::{self, Driver};
use crate::telemetry::Taker;
use crate::telemetry::events::Span;
use crate::wire::keys::Keys;
use blocked_lists::BlockedLists;
use kind::Kind;
pub(crate) use kind::{End, Wanted};
use mailbox::Mailbox;
use pending::PendingPop;
pub(crate) use pending::{PendingTake, PendingWake};
pub(crate) use popped::Popped;
use refusals::{Refusals, Sources};
use task::Task;
pub(crate) use tracked::Permit;
use tracked::{Permits, Tracked};
use waiter::{Answer, Wait, Waiter};

/// How long a taker of several slots looks at their lists before it waits.
const LOOK: Duration = Duration::from_millis(100);

/// The handle of the pops task.
#[derive(Clone, Debug)]
pub(crate) struct Pops {
    conn: Conn,
    driver: Driver,
    mailbox: Mailbox,
    ids: Arc<AtomicU64>,
    refusals: Arc<Refusals>,
    /// Of receivers.
    permits: Permits,
    tracked: Tracked,
    blocked: BlockedLists,
    stop: CancellationToken,
    /// Cancelled when taking has stopped.
    stopped: CancellationToken,
}

impl Pops {
    /// Starts the task. It ends when `stop` is cancelled, after every popped payload is read or back in its
    /// list. When `shutdown` is cancelled, too, it waits for that no longer than the command timeout.
    pub(crate) fn start(
        conn: Conn,
        stop: CancellationToken,
        shutdown: CancellationToken,
    ) -> (Self, JoinHandle<()>) {
        let stopped = CancellationToken::new();
        let (mailbox, blocked) = (Mailbox::default(), BlockedLists::default());
        let tracked = Tracked::new(conn.clone(), stop.clone());
        let task = Task::new(
            conn.clone(),
            mailbox.clone(),
            tracked.clone(),
            blocked.clone(),
            stop.clone(),
            shutdown,
            stopped.clone().drop_guard(),
        );
        let counters = conn.counters().clone();
        let (driver, task) = Driver::new(task.run(), driver::LOOK, move |panic| {
            counters.panicked("the task of takes has ended after a panic", panic);
        });
        let pops = Self {
            conn,
            driver,
            mailbox,
            ids: Arc::default(),
            refusals: Arc::default(),
            permits: Permits::default(),
            tracked,
            blocked,
            stop,
            stopped,
        };
        (pops, tokio::spawn(task))
    }

    /// Stops taking. Waiting takers and later ones get `Closed`. Returns when every payload that was not
    /// delivered is back in its list, after the command timeout at the latest; the task then continues with
    /// the rest until a shutdown.
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

    /// The permit of a receiver to block; `None` if the receivers of too many queues have one.
    pub(crate) fn permit(&self, keys: &Keys) -> Option<Permit> {
        self.permits.acquire(keys)
    }

    /// Waits until there is a payload for the receivers of a queue. With a permit, it is moved to the inbox;
    /// without one, it stays where it is, and others may be quicker.
    pub(crate) fn wake(&self, keys: &Keys, inbox: &Bytes, permit: Option<&Permit>) -> PendingWake {
        match permit {
            Some(_) => PendingWake::Moved(Box::new(self.wait(Wanted::received(keys.clone(), inbox.clone())))),
            None => PendingWake::Changed(self.tracked.wait(keys)),
        }
    }

    /// Takes what is in the lists, without waiting. The timeout is that of the caller's `conn`.
    pub(crate) async fn poll(&self, conn: &Conn, wanted: Wanted) -> Answer {
        let mut timeout = conn.command_timeout();
        if wanted.count > calls::CALL {
            // The task collects payloads for as long as its own timeout.
            timeout = timeout.max(self.conn.command_timeout());
        }
        promptly(self.join(wanted, Wait::None), timeout).await
    }

    /// Waits for a payload, for this time if it is not endless. The server looks at the lists at least once,
    /// within the timeout of the caller's `conn`.
    pub(crate) async fn wait_for(&self, conn: &Conn, wanted: Wanted, time: Option<Duration>) -> Answer {
        let parts = self.by_slots(wanted);
        if parts.len() > 1
            && let Some(answer) = Box::pin(self.look_at_each_slot(conn, &parts)).await
        {
            return answer;
        }
        let mut take = self.join_parts(parts, Wait::Endless);
        let Some(time) = time else { return take.await };
        match timeout(time, &mut take).await {
            Ok(answer) => answer,
            Err(_) => {
                take.expire();
                promptly(take, conn.command_timeout()).await
            }
        }
    }

    /// In a cluster, pops that wait on several slots would each bring a payload, and all but one would have
    /// to go back. So what is there is taken from one slot after the other first. `None` if there is nothing.
    /// Where pops are blocked already, and on a server that does not answer soon, the wait itself finds out.
    async fn look_at_each_slot(&self, conn: &Conn, parts: &[Wanted]) -> Option<Answer> {
        let deadline = Instant::now() + LOOK;
        let mut parts = parts.iter().filter(|part| !self.blocked.has_all(&part.keys)).cloned();
        // If there is a backlog, the first one has a payload. If not, one round trip shows which of the
        // others has.
        let first = self.look(conn, parts.next()?, deadline).await;
        if first.is_some() || Instant::now() >= deadline {
            return first;
        }
        let lengths = parts.map(|part| async {
            let lists = part.keys.iter();
            let lengths =
                lists.map(async |keys| conn.call(&Command::new("LLEN").arg(keys.target().clone())).await);
            let is_filled = |length: &_| matches!(length, Ok(Reply::Int(1..)));
            join_all(lengths).await.iter().any(is_filled).then_some(part)
        });
        let mut lengths = lengths.collect::<FuturesUnordered<_>>();
        while let Ok(Some(part)) = timeout_at(deadline, lengths.next()).await {
            if let Some(part) = part
                && let Some(answer) = self.look(conn, part, deadline).await
            {
                return Some(answer);
            }
        }
        None
    }

    /// Takes what is in the lists of one slot. `None` if there is nothing, or no answer. An error is one of
    /// the wait, too, which knows how to pause after it.
    async fn look(&self, conn: &Conn, part: Wanted, deadline: Instant) -> Option<Answer> {
        let answer = timeout_at(deadline, self.poll(conn, part)).await.ok()?;
        matches!(answer, Ok(Some(_)) | Err(OpError::Closed)).then_some(answer)
    }

    fn join(&self, wanted: Wanted, wait: Wait) -> PendingTake {
        self.join_parts(self.by_slots(wanted), wait)
    }

    fn join_parts(&self, parts: Vec<Wanted>, wait: Wait) -> PendingTake {
        let pops = parts.into_iter().map(|part| {
            // A try pop of several lists is sent for takers that wait.
            let is_expired = wait == Wait::None && part.keys.len() > 1;
            self.join_kind(part, if is_expired { Wait::Expired } else { wait })
        });
        PendingTake::new(&self.driver, pops.collect())
    }

    /// A part for each slot of the lists, in the order in which the caller names them.
    fn by_slots(&self, wanted: Wanted) -> Vec<Wanted> {
        let Kind::Take(end, _) = wanted.kind else { return vec![wanted] };
        if !self.conn.is_cluster() {
            return vec![wanted];
        }
        let mut parts: Vec<Wanted> = Vec::with_capacity(1);
        let mut counters = wanted.counters;
        for keys in wanted.keys {
            let kind = Kind::Take(end, self.conn.slot_of(&keys));
            match parts.iter_mut().find(|part| part.kind == kind) {
                Some(part) => part.keys.push(keys),
                None => {
                    // They count the taker, which is one.
                    let counters = std::mem::take(&mut counters);
                    parts.push(Wanted { kind, keys: vec![keys], counters, ..wanted });
                }
            }
        }
        parts
    }

    fn join_kind(&self, wanted: Wanted, wait: Wait) -> PendingPop {
        let Wanted { kind, keys, counters, in_order, count } = wanted;
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let (answer, receiver) = oneshot::channel();
        let span = Span::take(&keys);
        let sources = (kind, keys.clone());
        let waiter = Waiter { keys, in_order, want: count, wait, answer };
        let waits = wait == Wait::Endless;
        let pause = if waits { self.pause(&sources) } else { None };
        PendingPop {
            id,
            sources,
            unsent: Some(waiter),
            waits,
            pause,
            answer: receiver,
            mailbox: self.mailbox.clone(),
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
        Some(self.conn.runtime().spawn(async move {
            let _ = timeout_at(until, stop.cancelled()).await;
        }))
    }
}

/// Awaits an answer that should come at once. A server that does not answer may never send it; to drop the
/// take then is harmless.
async fn promptly(take: PendingTake, command_timeout: Duration) -> Answer {
    let no_answer = take.no_answer();
    // A command waits for a connection first, for at most the same time. Then it fails with its own error.
    timeout(command_timeout * 2, take).await.unwrap_or(Err(no_answer))
}
