//! What a server says to its administrators only.

use std::time::Duration;

use futures::future::join_all;
use serde::Serialize;

use super::Inspector;
use super::look::failed;
use super::unknown::{Unknown, Unknowns, answered};
use crate::conn::{Command, Conn, OpError, field};
use crate::error::Result;
use crate::wire::time;

/// Slots of a cluster.
const SLOTS: u64 = 16_384;

/// Settings of a server, as far as the user may know them. [`Inspector::server_settings`] returns it.
///
/// # Examples
/// ```no_run
/// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
/// for server in inspector.server_settings().await? {
///     if server.save.as_deref() == Some("") {
///         println!("{} saves no snapshots", server.address);
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct ServerSettings {
    /// `host:port`, or the path of a socket.
    pub address: String,
    /// When it saves a snapshot, as `CONFIG GET save` has it: empty if never.
    pub save: Option<String>,
    /// After which time without a command it closes a connection: zero if never.
    #[serde(rename = "idle_timeout_ms", serialize_with = "time::optional_in_ms")]
    pub idle_timeout: Option<Duration>,
    /// Without so many replicas, it accepts no writes.
    pub min_replicas: Option<u64>,
    /// Whether a server of a cluster serves nothing if any slot has no server.
    pub requires_full_coverage: Option<bool>,
    /// The state of its cluster; `None` also if it is in none.
    pub cluster: Option<ClusterState>,
    /// What it has refused to say.
    pub unknown: Vec<Unknown>,
}

/// A cluster, as one of its servers sees it.
///
/// # Examples
/// ```no_run
/// # fn example(cluster: redelay::inspector::ClusterState) {
/// if !cluster.is_ok {
///     println!("{} slots have no server", cluster.slots_without_server);
/// }
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct ClusterState {
    /// Whether it serves keys.
    pub is_ok: bool,
    /// Slots whose master is unknown, or does not answer.
    pub slots_without_server: u64,
    /// Slots that this server is moving to another one, or from it.
    pub moving_slots: Vec<u16>,
}

impl Inspector {
    /// Asks the servers for settings: one; or, in a cluster, each master. `CONFIG GET`, and in a cluster
    /// `CLUSTER INFO` and `CLUSTER NODES`. Users who may only read are refused them.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable), if none answers. What a server refuses is in
    /// `unknown`.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
    /// let settings = inspector.server_settings().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn server_settings(&self) -> Result<Vec<ServerSettings>> {
        let servers = self.conn.each_server();
        let answers = join_all(servers.iter().map(ask)).await;
        let unanswered = |at: usize, unknown| ServerSettings {
            address: servers[at].address(),
            unknown: vec![unknown],
            ..ServerSettings::default()
        };
        answered(answers, unanswered).map_err(|error| failed("`inspector().server_settings`", error))
    }
}

async fn ask(conn: &Conn) -> std::result::Result<ServerSettings, OpError> {
    let config = async |name: &'static str| {
        let command = Command::new("CONFIG").arg("GET").arg(name);
        let pair = conn.call(&command.only_reads()).await?.into_strings()?;
        Ok::<_, OpError>(pair.get(1).map(|value| String::from_utf8_lossy(value).into_owned()))
    };
    let cluster = async |what: &'static str| {
        if !conn.is_cluster() {
            return Ok(None);
        }
        let command = Command::new("CLUSTER").arg(what);
        let text = conn.call(&command.only_reads()).await?.into_bytes()?;
        Ok::<_, OpError>(Some(String::from_utf8_lossy(&text).into_owned()))
    };
    let coverage =
        async { if conn.is_cluster() { config("cluster-require-full-coverage").await } else { Ok(None) } };
    let (save, idle, replicas, coverage, info, nodes) = futures::join!(
        config("save"),
        config("timeout"),
        config("min-replicas-to-write"),
        coverage,
        cluster("INFO"),
        cluster("NODES"),
    );
    let mut unknowns = Unknowns::default();
    let mut config = |what: &str, answer| {
        let value: Option<Option<String>> = unknowns.known(what, "CONFIG GET", answer)?;
        Ok::<_, OpError>(value.flatten())
    };
    let save = config("save", save)?;
    let idle = config("idle_timeout", idle)?;
    let replicas = config("min_replicas", replicas)?;
    let coverage = config("requires_full_coverage", coverage)?;
    let info = unknowns.known("cluster", "CLUSTER INFO", info)?.flatten();
    let nodes = unknowns.known("moving_slots", "CLUSTER NODES", nodes)?.flatten();
    let number = |text: Option<String>| text.and_then(|text| text.parse::<u64>().ok());
    Ok(ServerSettings {
        address: conn.address(),
        save,
        idle_timeout: number(idle).map(Duration::from_secs),
        min_replicas: number(replicas),
        requires_full_coverage: coverage.map(|coverage| coverage == "yes"),
        cluster: info.map(|info| state(&info, nodes.as_deref().unwrap_or_default())),
        unknown: unknowns.to_vec(),
    })
}

/// Reads the replies to `CLUSTER INFO` and `CLUSTER NODES`.
fn state(info: &str, nodes: &str) -> ClusterState {
    let ok = field(info, "cluster_slots_ok").and_then(|count| count.parse().ok()).unwrap_or(SLOTS);
    let own = nodes.lines().find(|line| line.split(' ').nth(2).is_some_and(|flags| flags.contains("myself")));
    // `[93->-node]` leaves, and `[93-<-node]` comes.
    let moving = |word: &str| word.strip_prefix('[')?.split_once('-')?.0.parse().ok();
    ClusterState {
        is_ok: field(info, "cluster_state") == Some("ok"),
        slots_without_server: SLOTS.saturating_sub(ok),
        moving_slots: own.into_iter().flat_map(|line| line.split(' ').skip(8)).filter_map(moving).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_cluster_is_read() {
        let info = "cluster_state:fail\r\ncluster_slots_assigned:16384\r\ncluster_slots_ok:16380\r\n";
        let nodes = "a1 127.0.0.1:7001@17001 myself,master - 0 0 1 connected 0-5460 [93->-b2] [77-<-c3]\n\
            b2 127.0.0.1:7002@17002 master - 0 0 2 connected 5461-16383 [5->-c3]\n";
        let read = state(info, nodes);
        assert_eq!((read.is_ok, read.slots_without_server, read.moving_slots), (false, 4, vec![93, 77]));
        let read = state("cluster_state:ok\r\ncluster_slots_ok:16384\r\n", "");
        assert_eq!(read, ClusterState { is_ok: true, ..ClusterState::default() });
    }
}
