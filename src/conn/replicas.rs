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

/// The connection that confirms a write that is not sent yet.
#[derive(Clone, Debug)]
pub(crate) struct Unconfirmed {
    confirmations: Arc<Confirmations>,
    session: Option<Session>,
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

    /// Call it before the write is sent.
    pub(super) fn before_write(self: &Arc<Self>) -> Unconfirmed {
        Unconfirmed { confirmations: self.clone(), session: self.link.session() }
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
        let (_, reached) = join(ping, self.link.call(wait, self.within)).await;
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
    /// Whether this is the connection that confirms what `now` confirms.
    pub(super) fn is_by(&self, now: &Arc<Confirmations>) -> bool {
        Arc::ptr_eq(&self.confirmations, now)
    }

    /// Waits until the replicas have the write, which was answered. If they have not, its outcome is unknown: the master may fail
    /// before they have it.
    pub(super) async fn confirm(self) -> Result<(), OpError> {
        let lost = || OpError::Unknown("the connection was lost before replicas have confirmed it".into());
        let Self { confirmations, session } = self;
        let session = session.ok_or_else(lost)?;
        let (write, confirmation) = oneshot::channel();
        let starts = {
            let mut waiting = confirmations.waiting();
            waiting.writes.push(write);
            !std::mem::replace(&mut waiting.is_running, true)
        };
        if starts {
            confirmations.runtime.spawn(confirmations.clone().run());
        }
        match confirmation.await {
            Ok((confirmed_in, confirmed)) if confirmed_in == Some(session) => {
                confirmed.map_err(|error| match error {
                    OpError::NotExecuted(why) => OpError::Unknown(why),
                    error => error,
                })
            }
            _ => Err(lost()),
        }
    }
}
