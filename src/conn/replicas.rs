//! Writes that replicas confirm: `confirmations` has the connections.

use std::sync::Arc;

use tokio::time::{Instant, timeout};

use super::confirmations::{Confirmations, Unconfirmed, lost};
use super::topology::Topology;
use super::{Conn, OpError, Servers};
use crate::pacing::Retries;
use crate::wire::keys::Keys;

impl Conn {
    /// Makes a write that is idempotent or sent once, and waits until replicas have it, if the client is
    /// built with [`Replicas`]; for that not beyond the deadline. It does not wait if `wrote` says of the
    /// reply that nothing was written.
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
        self.base.shared.topology.as_ref().map_or(0, Topology::changes)
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
                None => OpError::NotExecuted("no server of the slot is known".into()),
            };
            // It has just been replaced.
            if error == OpError::Closed || !retries.pause().await {
                return Err(error);
            }
        }
    }
}
