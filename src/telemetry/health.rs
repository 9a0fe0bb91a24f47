//! What the probes of an orchestrator ask for.

use std::time::Duration;

use serde::Serialize;

use crate::wire::time;

/// Whether a client works, for the probes of an orchestrator. [`Client::health`](crate::Client::health)
/// returns it.
///
/// It covers the queues that this client transfers for. An entry is overdue if it has been due for more than
/// 5 s. The client knows that from its transfers, and from the check that it makes every 5 s anyway
/// ([`check_interval`](crate::client::ClientBuilder::check_interval)): of up to 100 queues of a server, in
/// turns if there are more. Queues whose transfers fail are not checked.
///
/// Serialized, a duration is a number of milliseconds with decimals, and its field ends in `_ms`.
///
/// # Examples
/// A process that is connected, but has not moved what has been due for minutes:
/// ```no_run
/// # use std::time::Duration;
/// # fn example(client: &redelay::Client) -> bool {
/// let health = client.health();
/// let long = Some(Duration::from_secs(300));
/// health.connected && health.overdue_for > long && health.last_transfer_ago > long
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Health {
    /// Whether the connection for commands is up now; in a cluster, those to all masters.
    pub connected: bool,
    /// Time since the server last answered a command; in a cluster, the master that has been silent for
    /// longest. An idle client asks after 30 s. While it is not connected, this is about how long. `None` if
    /// no master of a cluster is known.
    #[serde(rename = "last_reply_ago_ms", serialize_with = "time::optional_in_ms")]
    pub last_reply_ago: Option<Duration>,
    /// Queues for which this client transfers now.
    pub transferring_queues: u64,
    /// Those of them whose last transfer failed: the server cannot be reached, or it refuses.
    pub failing_queues: u64,
    /// Time since the server last answered a transfer. An idle client transfers about once a minute
    /// ([`ClientBuilder::sweep_interval`](crate::client::ClientBuilder::sweep_interval)). `None` if there was
    /// none.
    #[serde(rename = "last_transfer_ago_ms", serialize_with = "time::optional_in_ms")]
    pub last_transfer_ago: Option<Duration>,
    /// How long the earliest overdue entry of all these queues has been due. `None` if none is overdue.
    #[serde(rename = "overdue_for_ms", serialize_with = "time::optional_in_ms")]
    pub overdue_for: Option<Duration>,
}
