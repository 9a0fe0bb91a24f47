//! Waiting until replicas have a write (`WAIT`).
//!
//! `WAIT` covers the last write of its connection, and with it every earlier write of any client. So it has a
//! connection of its own, on which nothing else waits behind it, and goes behind a small write: one `WAIT`
//! confirms all writes whose replies arrived before it was sent. For Redis, any command in place of the write
//! would do; for Valkey 9.1 it would not.
//!
//! A master that has restarted, or another one, would confirm what it does not have. So a confirmation counts
//! only if it comes on the same connection as before the write.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::session::Session;
use super::{Command, Link, OpError, Replicas};
use crate::wire::keys::Keys;

/// Leaves a key for a second. The first write needs no memory, and after it none is refused for lack of it.
const WRITE: &str = "redis.call('DEL', KEYS[1]) redis.call('SET', KEYS[1], '', 'PX', '1000')";

/// A connection to a master whose writes replicas confirm.
#[derive(Debug)]
pub(super) struct Confirmations {
    link: Arc<Link>,
    replicas: Replicas,
    runtime: Handle,
    waiting: Mutex<Waiting>,
}

/// The writes that the next `WAIT` confirms.
#[derive(Debug, Default)]
struct Waiting {
    writes: Vec<Write>,
    /// Whether a task sends it.
    is_running: bool,
}

/// A write that was answered: its queue, and the channel for its confirmation.
type Write = (Keys, oneshot::Sender<Confirmation>);

/// The session in which a `WAIT` was answered, and what it says.
type Confirmation = (Option<Session>, Result<(), OpError>);

/// A write that is not sent yet, and what is to confirm it.
#[derive(Clone, Debug)]
pub(crate) struct Unconfirmed {
    confirmations: Option<Arc<Confirmations>>,
    session: Option<Session>,
    keys: Keys,
    /// How often the servers of slots had changed.
    pub(super) changes: u64,
}

impl Confirmations {
    pub(super) fn new(link: Arc<Link>, replicas: Replicas, runtime: Handle) -> Arc<Self> {
        Arc::new(Self { link, replicas, runtime, waiting: Mutex::default() })
    }

    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    /// How long `WAIT` may take, with its way there and back.
    fn within(&self) -> Duration {
        self.link.command_timeout()
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server has executed a write, and too few replicas have it.
    fn unconfirmed(&self, replicas: &str, within: Duration) -> OpError {
        let why = format!("{replicas} confirmed it to {} within {within:?}", self.link.address());
        OpError::Unconfirmed(why.into())
    }

    /// Until no write waits.
    async fn run(self: Arc<Self>) {
        loop {
            let writes = {
                let mut waiting = self.waiting();
                waiting.is_running = !waiting.writes.is_empty();
                std::mem::take(&mut waiting.writes)
            };
            let Some((keys, _)) = writes.last() else { return };
            let before = self.link.session();
            let confirmed = self.wait(keys).await;
            let session = before.filter(|before| self.link.session() == Some(*before));
            for (_, write) in writes {
                // The caller may have stopped waiting.
                let _ = write.send((session, confirmed.clone()));
            }
        }
    }

    async fn wait(&self, keys: &Keys) -> Result<(), OpError> {
        let Replicas { count, timeout } = self.replicas;
        let wait = Command::new("WAIT").number(count).number(timeout.as_millis());
        let write = Command::new("EVAL").arg(WRITE).number(1).arg(keys.confirmed());
        // Nothing may come between the two commands.
        let within = self.within();
        tokio::time::timeout(within, self.link.in_use()).await.map_err(|_| self.link.no_connection())??;
        let (written, reached) = join(self.link.call(&write, within), self.link.call(&wait, within)).await;
        written?;
        let reached = reached?.into_int()?;
        if reached >= i64::from(count) {
            return Ok(());
        }
        Err(self.unconfirmed(&format!("{reached} of {count} replicas have"), timeout))
    }
}

impl Unconfirmed {
    /// Call it before the write is sent. Without `confirmations`, the server of the slot is not known now.
    pub(super) fn new(confirmations: Option<Arc<Confirmations>>, keys: Keys, changes: u64) -> Self {
        let session = confirmations.as_ref().and_then(|confirmations| confirmations.link.session());
        Self { confirmations, session, keys, changes }
    }

    /// Waits until the replicas have the write, which was answered. If they have not, its outcome is unknown:
    /// the master may fail before they have it.
    pub(super) async fn confirm(self, deadline: Instant) -> Result<(), OpError> {
        let (Some(confirmations), Some(session)) = (self.confirmations, self.session) else {
            return Err(lost());
        };
        let (write, confirmation) = oneshot::channel();
        let starts = {
            let mut waiting = confirmations.waiting();
            waiting.writes.push((self.keys, write));
            !std::mem::replace(&mut waiting.is_running, true)
        };
        if starts {
            confirmations.runtime.spawn(confirmations.clone().run());
        }
        let begun = Instant::now();
        // Behind a `WAIT` that is on its way.
        match timeout_at(deadline.min(begun + 2 * confirmations.within()), confirmation).await {
            Ok(Ok((confirmed_in, confirmed))) if confirmed_in == Some(session) => {
                // Whatever it says, the write was executed.
                confirmed.map_err(|error| OpError::Unconfirmed(error.into_cause()))
            }
            Ok(_) => Err(lost()),
            Err(_) => Err(confirmations.unconfirmed("replicas have not", begun.elapsed())),
        }
    }
}

/// The error of a write that was not confirmed.
pub(super) fn lost() -> OpError {
    OpError::Unknown("the connection was lost before replicas have confirmed it".into())
}
