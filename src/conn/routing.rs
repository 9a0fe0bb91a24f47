//! Which server a command is sent to, and what a queue's server is, where there are several.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::{Instant, sleep, sleep_until};

use super::cluster::{Cluster, ServerId};
use super::shared::Shared;
use super::slot::Slot;
use super::topology::Lead;
use super::{Command, Conn, ConnectError, Link, OpError, Options, Reply, Servers, open};
use crate::pacing::pause_after;
use crate::wire::keys::Keys;

/// Shorter waits do not count as part of a call.
const NOTICEABLE: Duration = Duration::from_millis(10);

impl Conn {
    /// Whether there may be several servers.
    pub(crate) fn is_cluster(&self) -> bool {
        matches!(self.base.servers, Servers::Cluster(_))
    }

    /// The same connections, for a queue: in a cluster, its server is asked where a command has no key.
    pub(crate) fn of(&self, keys: &Keys) -> Self {
        self.in_slot(self.slot_of(keys))
    }

    /// The same, for all queues of a slot.
    pub(crate) fn in_slot(&self, slot: Option<Slot>) -> Self {
        Self { slot, ..self.clone() }
    }

    /// The slot of a queue; `None` if one server has all queues.
    pub(crate) fn slot_of(&self, keys: &Keys) -> Option<Slot> {
        self.is_cluster().then(|| Slot::of(keys.target()))
    }

    /// Whether one server has all keys of a queue.
    pub(crate) fn can_hold(&self, keys: &Keys) -> bool {
        let names = [keys.timeout_set(), keys.ordered_list(), keys.channel()];
        !self.is_cluster() || names.iter().all(|name| Slot::of(name) == Slot::of(keys.target()))
    }

    /// The server of the queue that this is for.
    pub(crate) fn own_server(&self) -> ServerId {
        match (&self.base.servers, self.slot) {
            (Servers::Cluster(cluster), Some(slot)) => {
                cluster.master(Some(slot)).map(|master| master.id).unwrap_or_default()
            }
            _ => ServerId::default(),
        }
    }

    /// The server of a key or channel.
    pub(crate) fn server_of(&self, key: &[u8]) -> ServerId {
        match self.is_cluster() {
            true => self.in_slot(Some(Slot::of(key))).own_server(),
            false => ServerId::default(),
        }
    }

    /// How many servers have queues.
    pub(crate) fn server_count(&self) -> usize {
        match &self.base.servers {
            Servers::One(_) => 1,
            Servers::Cluster(cluster) => cluster.count().max(1),
        }
    }

    /// The same connections, for each server that has queues: what has no key is sent to that one.
    pub(crate) fn each_server(&self) -> Vec<Self> {
        match &self.base.servers {
            Servers::One(_) => vec![self.clone()],
            Servers::Cluster(cluster) => {
                cluster.slots_of_masters().into_iter().map(|slot| self.in_slot(Some(slot))).collect()
            }
        }
    }

    /// Leads a connection to the queue's server, unless the URL alone says where it is.
    pub(super) fn lead(&self) -> Option<Lead> {
        self.base.shared.lead(self.slot.unwrap_or(Slot::ANY))
    }

    /// For a connection to the server of the slot.
    pub(super) fn shared_here(&self) -> Shared {
        match &self.base.servers {
            Servers::One(_) => self.base.shared.clone(),
            Servers::Cluster(_) => self.base.shared.for_another_server(),
        }
    }

    /// For a connection to the server that has the slot now, which stays there in a cluster.
    pub(super) async fn options_here(&self) -> Result<(Options, Option<Lead>), ConnectError> {
        match (&self.base.servers, self.lead()) {
            (Servers::Cluster(_), Some(mut lead)) => {
                let server = lead.next().await;
                let server = server.map_err(|cause| ConnectError::Failed(cause, open::SERVERS))?;
                Ok((self.base.options.at(&server), None))
            }
            (_, lead) => Ok((self.base.options.clone(), lead)),
        }
    }

    /// Sends a command at most once, or in a cluster until a server accepts it.
    pub(super) async fn call_within(&self, command: &Command, within: Duration) -> Result<Reply, OpError> {
        match &self.base.servers {
            Servers::One(commands) => self.call_on(&commands.link, command, within).await,
            // In a box, or the futures of callers become so deep that the compiler refuses some.
            Servers::Cluster(cluster) => self.call_in_cluster(cluster, command, within).await,
        }
    }

    async fn call_on(&self, link: &Arc<Link>, command: &Command, within: Duration) -> Result<Reply, OpError> {
        let result = match self.long {
            None => link.call(command, within).await,
            Some(bytes) => link.call_long(command, within, bytes).await,
        };
        let is_timeout = result.as_ref().is_err_and(OpError::is_timeout);
        if is_timeout && within < self.base.options.command_timeout {
            // A caller that waits for less than that cannot tell whether the server still answers.
            link.check_soon(&self.base.runtime);
        }
        result
    }

    /// Sends the command to the server of its slot; and again, as long as servers refuse it because another
    /// one serves it, or soon will. Compiled once: see [`client`](super::client).
    #[inline(never)]
    fn call_in_cluster<'a>(
        &'a self,
        cluster: &'a Cluster,
        command: &'a Command,
        within: Duration,
    ) -> BoxFuture<'a, Result<Reply, OpError>> {
        Box::pin(self.call_until_accepted(cluster, command, within))
    }

    async fn call_until_accepted(
        &self,
        cluster: &Cluster,
        command: &Command,
        within: Duration,
    ) -> Result<Reply, OpError> {
        let slot = command.slot().or(self.slot);
        let deadline = Instant::now() + within;
        let (mut within, mut refusals) = (within, 0);
        let mut last_refusal = None;
        loop {
            let begun = Instant::now();
            let master = cluster.serving(slot, within).await?;
            // Most calls need not wait, and have all of the time. One that has less cannot tell by itself
            // whether the server is silent.
            let waited = begun.elapsed();
            if waited >= NOTICEABLE {
                within = within.saturating_sub(waited).max(Duration::from_millis(1));
            }
            let refused = match self.call_on(&master.commands.link, command, within).await {
                Err(error)
                    if error.is_not_here()
                        || master.commands.link.is_abandoned() && error.is_not_executed() =>
                {
                    error
                }
                // The try before it says more than one that had little time left, and no read has an effect.
                Err(error) if error.is_timeout() && command.is_read() => {
                    return Err(last_refusal.map_or(error, OpError::explained));
                }
                result => return result,
            };
            // The connection has notified the topology. Nothing was executed, so that the command can be sent
            // again.
            let pause = pause_after_refusal(refusals);
            // A try that has no time for its reply would end with an unknown outcome.
            if Instant::now() + 2 * pause >= deadline {
                // Not earlier, or the caller would begin again.
                sleep_until(deadline).await;
                return Err(refused.explained());
            }
            self.base.shared.counters.redirected();
            refusals += 1;
            last_refusal = Some(refused);
            sleep(pause).await;
            within = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        }
    }
}

/// The pause before a command is sent again that a server has refused because another one serves it, or it
/// does in a moment. The first refusals mostly name the server.
fn pause_after_refusal(refusals: u32) -> Duration {
    match refusals {
        0 | 1 => Duration::ZERO,
        more => pause_after(more - 2).min(Duration::from_millis(200)),
    }
}
