//! Waiting until replicas have a write (`WAIT`).
//!
//! `WAIT` covers all that the master had written when the last command of the same connection ran, whoever wrote it. So it is sent on
//! a connection of its own, behind a `PING`: nothing else waits behind it, and one `WAIT` confirms all writes whose replies came
//! before it was sent.
//!
//! A master that has restarted, or another one, would confirm what it does not have. So a confirmation counts only if it comes on
//! the same connection as before the write.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::session::Session;
use super::{Command, Link, OpError};

/// How many replicas must have a write, and how long that may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replicas {
    pub(crate) count: u32,
    pub(crate) timeout: Duration,
}

/// A connection to a master whose writes replicas confirm.
#[derive(Debug)]
pub(super) struct Confirmations {
    link: Link,
    replicas: Replicas,
    /// How long `WAIT` may take, with its way there and back.
    within: Duration,
    runtime: Handle,
    waiting: Mutex<Waiting>,
}

/// The writes that the next `WAIT` confirms.
#[derive(Debug, Default)]
struct Waiting {
    writes: Vec<oneshot::Sender<Confirmation>>,
    /// Whether a task sends it.
    is_running: bool,
}

/// The session in which a `WAIT` was answered, and what it says.
type Confirmation = (Option<Session>, Result<(), OpError>);

/// A write that is not sent yet, and what is to confirm it.
#[derive(Clone, Debug)]
pub(crate) struct Unconfirmed {
    confirmations: Option<Arc<Confirmations>>,
    session: Option<Session>,
    /// How often the servers of slots had changed.
    pub(super) changes: u64,
}

impl Confirmations {
    pub(super) fn new(
        link: Link,
        replicas: Replicas,
        command_timeout: Duration,
        runtime: Handle,
    ) -> Arc<Self> {
        let within = command_timeout.saturating_add(replicas.timeout);
        Arc::new(Self { link, replicas, within, runtime, waiting: Mutex::default() })
    }

    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until no write waits.
    async fn run(self: Arc<Self>) {
        loop {
            let writes = {
                let mut waiting = self.waiting();
                waiting.is_running = !waiting.writes.is_empty();
                if !waiting.is_running {
                    return;
                }
                std::mem::take(&mut waiting.writes)
            };
            let before = self.link.session();
            let confirmed = self.wait().await;
            let session = before.filter(|before| self.link.session() == Some(*before));
            for write in writes {
                // Nobody may wait any more.
                let _ = write.send((session, confirmed.clone()));
            }
        }
    }

    async fn wait(&self) -> Result<(), OpError> {
        let Replicas { count, timeout } = self.replicas;
        let wait = Command::new("WAIT").number(count).number(timeout.as_millis());
        let ping = self.link.call(Command::new("PING"), self.within);
        let (pong, reached) = join(ping, self.link.call(wait, self.within)).await;
        pong?;
        let reached = reached?.into_int()?;
        if reached >= i64::from(count) {
            return Ok(());
        }
        let server = self.link.address();
        let why = format!(
            "it is on {server}, and {reached} of {count} replicas have confirmed it within {timeout:?}"
        );
        Err(OpError::Unknown(why.into()))
    }
}

impl Unconfirmed {
    /// Call it before the write is sent. Without `confirmations`, nobody knows the server of the slot now.
    pub(super) fn new(confirmations: Option<Arc<Confirmations>>, changes: u64) -> Self {
        let session = confirmations.as_ref().and_then(|confirmations| confirmations.link.session());
        Self { confirmations, session, changes }
    }

    /// Waits until the replicas have the write, which was answered. If they have not, its outcome is unknown: the master may fail
    /// before they have it.
    pub(super) async fn confirm(self) -> Result<(), OpError> {
        let (Some(confirmations), Some(session)) = (self.confirmations, self.session) else {
            return Err(lost());
        };
        let (write, confirmation) = oneshot::channel();
        let starts = {
            let mut waiting = confirmations.waiting();
            waiting.writes.push(write);
            !std::mem::replace(&mut waiting.is_running, true)
        };
        if starts {
            confirmations.runtime.spawn(confirmations.clone().run());
        }
        // Behind a `WAIT` that is on its way.
        match timeout(2 * confirmations.within, confirmation).await {
            Ok(Ok((confirmed_in, confirmed))) if confirmed_in == Some(session) => {
                // Whatever it says, the write was executed.
                confirmed.map_err(|error| OpError::Unknown(error.into_cause()))
            }
            _ => Err(lost()),
        }
    }
}

/// The error of a write that nobody has confirmed.
pub(super) fn lost() -> OpError {
    OpError::Unknown("the connection was lost before replicas have confirmed it".into())
}
