//! Waiting until replicas have a write (`WAIT`).
//!
//! `WAIT` covers the last write of its connection, and with it every earlier write of any client. So it has a connection of its
//! own, on which nothing else waits behind it, and goes behind a small write: one `WAIT` confirms all writes whose replies arrived
//! before it was sent. For Redis, any command in place of the write would do; for Valkey 9.1 it would not.
//!
//! A master that has restarted, or another one, would confirm what it does not have. So a confirmation counts only if it comes on
//! the same connection as before the write.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::join;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};

use super::session::Session;
use super::topology::Topology;
use super::{Command, Conn, Link, OpError, Servers};
use crate::pacing::Retries;
use crate::wire::keys::Keys;

/// How many replicas must have a write, and how long that may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replicas {
    pub(crate) count: u32,
    pub(crate) timeout: Duration,
}

/// Leaves a key for a second. The first write needs no memory, and after it none is refused for lack of it.
const WRITE: &str = "redis.call('DEL', KEYS[1]) redis.call('SET', KEYS[1], '', 'PX', '1000')";

/// A connection to a master whose writes replicas confirm.
#[derive(Debug)]
pub(super) struct Confirmations {
    link: Arc<Link>,
    replicas: Replicas,
    /// How long `WAIT` may take, with its way there and back.
    within: Duration,
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
    changes: u64,
}

impl Conn {
    /// Makes a write that is idempotent or sent once, and waits until replicas have it, if the client is built with
    /// [`Replicas`]; for that not beyond the deadline. It does not wait if `wrote` says of the reply that nothing was written.
    pub(crate) fn replicated<'a, R: 'a>(
        &'a self,
        keys: &'a Keys,
        deadline: Instant,
        write: impl Future<Output = Result<R, OpError>> + 'a,
        wrote: impl FnOnce(&R) -> bool + 'a,
    ) -> impl Future<Output = Result<R, OpError>> + 'a {
        // In a box, as is what is rare, so that the futures of callers stay small.
        let write = Box::pin(write);
        async move {
            if self.base.options.replicas.is_none() {
                return write.await;
            }
            // Without a connection, nothing could be confirmed.
            Box::pin(self.confirming(deadline)).await?;
            let unconfirmed = self.before_write(keys);
            let reply = write.await?;
            if wrote(&reply) {
                Box::pin(self.confirm(unconfirmed, deadline)).await?;
            }
            Ok(reply)
        }
    }

    /// Whether a write would be sent now, and not after a wait for a connection.
    pub(crate) fn is_ready_to_write(&self) -> bool {
        let confirms =
            || self.confirmations().is_some_and(|confirmations| confirmations.link().session().is_some());
        self.is_connected() && (self.base.options.replicas.is_none() || confirms())
    }

    /// To confirm a write later. Call it before the write is sent. `None` if replicas need not confirm it.
    pub(crate) fn before_write(&self, keys: &Keys) -> Option<Unconfirmed> {
        self.base.options.replicas?;
        // First the number: what changes behind it is noticed.
        let changes = self.changes();
        Some(Unconfirmed::new(self.confirmations(), keys.clone(), changes))
    }

    /// Waits until replicas have a write that was answered, until the deadline.
    pub(crate) async fn confirm(
        &self,
        unconfirmed: Option<Unconfirmed>,
        deadline: Instant,
    ) -> Result<(), OpError> {
        let Some(unconfirmed) = unconfirmed else { return Ok(()) };
        if unconfirmed.changes != self.changes() {
            // Another server may have executed it.
            return Err(lost());
        }
        unconfirmed.confirm(deadline).await
    }

    /// How often the servers of slots have changed.
    fn changes(&self) -> u64 {
        self.base.options.topology().map_or(0, Topology::changes)
    }

    fn confirmations(&self) -> Option<Arc<Confirmations>> {
        self.commands()?.confirmations
    }

    /// Waits for a connection that confirms writes, until the deadline.
    async fn confirming(&self, deadline: Instant) -> Result<(), OpError> {
        let mut retries = Retries::until(deadline);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if let Servers::Cluster(cluster) = &self.base.servers {
                cluster.serving(self.slot, left).await?;
            }
            let error = match self.confirmations() {
                Some(confirmations) => match timeout(left, confirmations.link().connected()).await {
                    Ok(Ok(_)) => return Ok(()),
                    Ok(Err(error)) => error,
                    Err(_) => return Err(confirmations.link().no_connection()),
                },
                None => OpError::NotExecuted("nobody knows the server of the slot".into()),
            };
            // It was replaced just now.
            if error == OpError::Closed || !retries.pause().await {
                return Err(error);
            }
        }
    }
}

impl Confirmations {
    pub(super) fn new(
        link: Arc<Link>,
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
                // Nobody may wait any more.
                let _ = write.send((session, confirmed.clone()));
            }
        }
    }

    async fn wait(&self, keys: &Keys) -> Result<(), OpError> {
        let Replicas { count, timeout } = self.replicas;
        let wait = Command::new("WAIT").number(count).number(timeout.as_millis());
        let write = Command::new("EVAL").arg(WRITE).number(1).arg(keys.confirmed());
        // Nothing may come between the two commands.
        tokio::time::timeout(self.within, self.link.in_use())
            .await
            .map_err(|_| self.link.no_connection())??;
        let (written, reached) =
            join(self.link.call(&write, self.within), self.link.call(&wait, self.within)).await;
        written?;
        let reached = reached?.into_int()?;
        if reached >= i64::from(count) {
            return Ok(());
        }
        Err(self.unconfirmed(&format!("{reached} of {count} replicas have"), timeout))
    }
}

impl Unconfirmed {
    /// Call it before the write is sent. Without `confirmations`, nobody knows the server of the slot now.
    fn new(confirmations: Option<Arc<Confirmations>>, keys: Keys, changes: u64) -> Self {
        let session = confirmations.as_ref().and_then(|confirmations| confirmations.link.session());
        Self { confirmations, session, keys, changes }
    }

    /// Waits until the replicas have the write, which was answered. If they have not, its outcome is unknown: the master may fail
    /// before they have it.
    async fn confirm(self, deadline: Instant) -> Result<(), OpError> {
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
        match timeout_at(deadline.min(begun + 2 * confirmations.within), confirmation).await {
            Ok(Ok((confirmed_in, confirmed))) if confirmed_in == Some(session) => {
                // Whatever it says, the write was executed.
                confirmed.map_err(|error| OpError::Unconfirmed(error.into_cause()))
            }
            Ok(_) => Err(lost()),
            Err(_) => Err(confirmations.unconfirmed("replicas have not", begun.elapsed())),
        }
    }
}

/// The error of a write that nobody has confirmed.
fn lost() -> OpError {
    OpError::Unknown("the connection was lost before replicas have confirmed it".into())
}
