//! Waiting until replicas have a write (`WAIT`).
//!
//! `WAIT` covers all that the master had written when the last command of the same connection ran. So writes that are to be
//! confirmed have a connection of their own, where nothing else waits behind it; and one `WAIT` confirms all writes whose replies
//! came before it was sent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::session::Session;
use super::{Command, Link, OpError};

/// How many replicas must have a write, and how long that may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replicas {
    pub(crate) count: u32,
    pub(crate) timeout: Duration,
}

/// A connection whose writes are confirmed by replicas.
#[derive(Debug)]
pub(super) struct Confirmed {
    link: Arc<Link>,
    replicas: Replicas,
    /// How long a command may take.
    within: Duration,
    runtime: Handle,
    waiting: Mutex<Vec<Waiting>>,
    /// Whether a task sends `WAIT`.
    is_running: AtomicBool,
}

/// A write whose reply has come in this session.
#[derive(Debug)]
struct Waiting {
    session: Session,
    confirmed: oneshot::Sender<Result<(), OpError>>,
}

impl Confirmed {
    pub(super) fn new(link: Link, replicas: Replicas, within: Duration, runtime: Handle) -> Arc<Self> {
        Arc::new(Self {
            link: Arc::new(link),
            replicas,
            within: within.max(replicas.timeout * 2),
            runtime,
            waiting: Mutex::default(),
            is_running: AtomicBool::new(false),
        })
    }

    pub(super) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Waits until the replicas have what `reply` answers: all that the link had sent when it came. A write that is not confirmed
    /// is one of unknown outcome: a retry finds it, or writes it again at the next master.
    pub(super) async fn confirm(self: &Arc<Self>, session: Option<Session>) -> Result<(), OpError> {
        // A confirmation by another master, or after a restart, would be none of this write.
        let session = session.filter(|session| self.link.session() == Some(*session)).ok_or_else(Self::lost)?;
        let (confirmed, confirmation) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(Waiting { session, confirmed });
        if !self.is_running.swap(true, Ordering::AcqRel) {
            let this = self.clone();
            self.runtime.spawn(async move { this.run().await });
        }
        confirmation.await.unwrap_or_else(|_| Err(Self::lost()))
    }

    /// Until no write waits.
    async fn run(&self) {
        loop {
            let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
            if waiting.is_empty() {
                self.is_running.store(false, Ordering::Release);
                let has_more = !self.waiting.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
                if has_more && !self.is_running.swap(true, Ordering::AcqRel) {
                    continue;
                }
                return;
            }
            let (before, confirmed) = (self.link.session(), self.wait().await);
            let session = before.filter(|session| self.link.session() == Some(*session));
            for Waiting { session: written_in, confirmed: waits } in waiting {
                let is_same = session == Some(written_in);
                let _ = waits.send(confirmed.clone().and_then(|()| if is_same { Ok(()) } else { Err(Self::lost()) }));
            }
        }
    }

    async fn wait(&self) -> Result<(), OpError> {
        let Replicas { count, timeout } = self.replicas;
        let wait = Command::new("WAIT").number(count).number(timeout.as_millis());
        let reached = match self.link.call(wait, self.within).await {
            Ok(reply) => reply.into_int()?,
            Err(OpError::NotExecuted(why)) => return Err(OpError::Unknown(why)),
            Err(error) => return Err(error),
        };
        if reached >= i64::from(count) {
            return Ok(());
        }
        let why = format!("it is stored on {}, but {reached} of {count} replicas have it after {timeout:?}", self.link.address());
        Err(OpError::Unknown(why.into()))
    }

    fn lost() -> OpError {
        OpError::Unknown("the connection was lost before the replicas have confirmed it".into())
    }
}
