//! What a server says of itself.

use std::time::{Duration, Instant, SystemTime};

use futures::future::join_all;
use serde::Serialize;

use super::Inspector;
use super::look::failed;
use super::unknown::{Unknown, Unknowns, answered};
use crate::conn::{Command, Conn, OpError, field, product};
use crate::error::Result;
use crate::wire::time;

/// A server, as far as it says. [`Inspector::servers`] returns it.
///
/// What is `None` is not known, or does not exist: `unknown` has what the server has refused to say.
///
/// # Examples
/// ```no_run
/// # use redelay::inspector::Role;
/// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
/// for server in inspector.servers().await? {
///     println!("{}: {:?}, {:?}", server.address, server.product, server.role);
///     if server.eviction_policy.as_deref().is_some_and(|policy| policy != "noeviction") {
///         println!("it may delete a whole queue");
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Server {
    /// `host:port`, or the path of a socket.
    pub address: String,
    /// What it is, with its version: `Redis 7.0.15`, `Valkey 9.1.0`.
    pub product: Option<String>,
    /// Whether it is a master.
    pub role: Option<Role>,
    /// Of a replica: whether it is connected to its master.
    pub is_linked: Option<bool>,
    /// Of a master: the replicas that are connected.
    pub replicas: Option<u64>,
    /// Of a master that accepts writes only with some replicas: those that follow closely enough.
    pub good_replicas: Option<u64>,
    /// Its clock.
    #[serde(serialize_with = "time::optional_in_epoch_ms")]
    pub clock: Option<SystemTime>,
    /// How long the question for the clock and its answer have taken together.
    #[serde(rename = "round_trip_ms", serialize_with = "time::optional_in_ms")]
    pub round_trip: Option<Duration>,
    /// How far its clock is ahead of that of this machine, ms; negative if it is behind. Up to half of
    /// `round_trip` wrong.
    pub ahead_ms: Option<f64>,
    /// Memory that it uses, bytes.
    pub used_memory: Option<u64>,
    /// Memory that it may use, bytes; `None` if there is no limit.
    pub max_memory: Option<u64>,
    /// What it deletes when its memory is full: `noeviction` is right for queues.
    pub eviction_policy: Option<String>,
    /// Keys that it has deleted for lack of memory since it was started.
    pub evicted_keys: Option<u64>,
    /// Whether it writes an append-only file.
    pub has_append_only_file: Option<bool>,
    /// Whether the last snapshot, or the last write to the append-only file, has failed.
    pub saving_fails: Option<bool>,
    /// Connections of clients now.
    pub clients: Option<u64>,
    /// The most connections of clients.
    pub max_clients: Option<u64>,
    /// Scripts in its memory.
    pub cached_scripts: Option<u64>,
    /// How many commands it has refused since it was started because a user lacks a permission.
    pub refused_commands: Option<u64>,
    /// The database of the connection.
    pub database: u32,
    /// The databases that have keys, and how many.
    pub databases: Vec<(u32, u64)>,
    /// Whether it is a server of a cluster.
    pub is_in_cluster: Option<bool>,
    /// What it has refused to say.
    pub unknown: Vec<Unknown>,
}

/// What a server does in its replication.
///
/// # Examples
/// ```
/// # use redelay::inspector::Role;
/// let role = Role::Replica;
/// assert_ne!(role, Role::Master);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Role {
    /// It accepts writes.
    Master,
    /// It copies a master. What it shows may be old.
    Replica,
}

impl Inspector {
    /// Asks the servers about themselves: one; or, in a cluster, each master. `INFO` and `TIME`.
    /// [`server_settings`](Self::server_settings) asks what only an administrator may know.
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
    /// let servers = inspector.servers().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn servers(&self) -> Result<Vec<Server>> {
        let servers = self.conn.each_server();
        let answers = join_all(servers.iter().map(ask)).await;
        let unanswered = |at: usize, unknown| Server {
            address: servers[at].address(),
            unknown: vec![unknown],
            ..Server::default()
        };
        answered(answers, unanswered).map_err(|error| failed("`inspector().servers`", error))
    }
}

async fn ask(conn: &Conn) -> std::result::Result<Server, OpError> {
    let info = async {
        let text = conn.call(&Command::new("INFO").only_reads()).await?.into_bytes()?;
        Ok::<_, OpError>(String::from_utf8_lossy(&text).into_owned())
    };
    let clock = async {
        let (asked, at) = (Instant::now(), SystemTime::now());
        let clock = conn.time().await;
        (clock, asked.elapsed(), at)
    };
    let (info, (clock, round_trip, asked_at)) = futures::join!(info, clock);
    let mut unknowns = Unknowns::default();
    let info = unknowns.known("product", "INFO", info)?;
    let clock = unknowns.known("clock", "TIME", clock)?;
    let own = asked_at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default() + round_trip / 2;
    let mut server = info.as_deref().map(of_info).unwrap_or_default();
    server.address = conn.address();
    server.database = conn.database();
    server.clock = clock.map(|micros| time::from_epoch_millis(micros.unsigned_abs() / 1_000));
    server.round_trip = clock.map(|_| round_trip);
    server.ahead_ms = clock.map(|micros| (micros as f64 / 1e6 - own.as_secs_f64()) * 1e3);
    server.unknown = unknowns.to_vec();
    Ok(server)
}

/// The role in a reply to `INFO`.
pub(super) fn role(info: &str) -> Option<Role> {
    let is_master = field(info, "role")? == "master";
    Some(if is_master { Role::Master } else { Role::Replica })
}

/// Reads the reply to `INFO`.
fn of_info(info: &str) -> Server {
    let text = |name: &str| field(info, name).map(str::to_owned);
    let number = |name: &str| field(info, name)?.parse::<u64>().ok();
    let flag = |name: &str| number(name).map(|number| number > 0);
    let role = role(info);
    let failed = |name: &str| field(info, name).map(|status| status != "ok");
    let saved = [failed("rdb_last_bgsave_status"), failed("aof_last_write_status")];
    let database = |line: &str| {
        let (number, rest) = line.strip_prefix("db")?.split_once(":keys=")?;
        Some((number.parse().ok()?, rest.split(',').next()?.trim().parse().ok()?))
    };
    Server {
        product: Some(product(info)),
        role,
        is_linked: field(info, "master_link_status").map(|status| status == "up"),
        replicas: number("connected_slaves").filter(|_| role == Some(Role::Master)),
        good_replicas: number("min_slaves_good_slaves"),
        used_memory: number("used_memory"),
        max_memory: number("maxmemory").filter(|limit| *limit > 0),
        eviction_policy: text("maxmemory_policy"),
        evicted_keys: number("evicted_keys"),
        has_append_only_file: flag("aof_enabled"),
        saving_fails: saved.into_iter().flatten().reduce(|one, other| one || other),
        clients: number("connected_clients"),
        max_clients: number("maxclients"),
        cached_scripts: number("number_of_cached_scripts"),
        // Without that line, none was refused.
        refused_commands: match field(info, "errorstat_NOPERM") {
            Some(count) => count.strip_prefix("count=").and_then(|count| count.parse().ok()),
            None => field(info, "total_error_replies").map(|_| 0),
        },
        databases: info.lines().filter_map(database).collect(),
        is_in_cluster: flag("cluster_enabled"),
        ..Server::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_is_read() {
        let info = "# Server\r\nredis_version:7.0.15\r\nrole:slave\r\nmaster_link_status:down\r\n\
            connected_slaves:0\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\naof_enabled:1\r\n\
            rdb_last_bgsave_status:ok\r\naof_last_write_status:err\r\n# Keyspace\r\n\
            db0:keys=7,expires=0,avg_ttl=0\r\ndb3:keys=1,expires=0\r\n";
        let server = of_info(info);
        assert_eq!(server.product.as_deref(), Some("Redis 7.0.15"));
        assert_eq!(
            (server.role, server.is_linked, server.replicas),
            (Some(Role::Replica), Some(false), None)
        );
        assert_eq!((server.max_memory, server.eviction_policy.as_deref()), (None, Some("allkeys-lru")));
        assert_eq!((server.has_append_only_file, server.saving_fails), (Some(true), Some(true)));
        assert_eq!(server.databases, [(0, 7), (3, 1)]);
    }

    #[test]
    fn what_is_not_said_is_not_known() {
        let server = of_info("");
        assert_eq!((server.role, server.saving_fails, server.used_memory), (None, None, None));
    }
}
