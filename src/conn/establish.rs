//! One attempt to connect, and what the client library is told for it.

use std::time::Duration;

use fred::types::config::{ConnectionConfig, PerformanceConfig, ReconnectPolicy, TcpConfig};
use fred::types::{Builder, RespVersion};
use futures::future::BoxFuture;
use socket2::TcpKeepalive;
use tokio::time::timeout;

use super::Options;
use super::client::{Client, Connection};
use super::handshake::HANDSHAKE_TIMEOUT;
use super::library::Error;
use super::role::Role;
use super::silence::IDLE;

/// How long one try to open a socket may take.
pub(super) const SOCKET_TIMEOUT: Duration = Duration::from_secs(3);

/// How often TCP probes an idle connection that does not answer.
const PROBES: Duration = Duration::from_secs(5);
/// How long what was sent may be unacknowledged by the other side's TCP.
#[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
const UNACKNOWLEDGED: Duration = Duration::from_secs(13);
/// The longest pause between two tries if there may be a failover: the next try may be led to another server.
const FAILOVER: u32 = 200;

/// A client of the library that has connected, and the task that is its connection.
pub(super) struct Established {
    pub(super) client: Client,
    pub(super) connection: Connection,
}

/// Why there is none.
pub(super) enum Failure {
    Build(Error),
    Connect(Error),
    Silence,
}

/// Makes one attempt to connect. Compiled once: see [`client`](super::client).
#[inline(never)]
pub(super) fn establish(options: &Options, role: Role) -> BoxFuture<'_, Result<Established, Failure>> {
    Box::pin(establish_now(options, role))
}

async fn establish_now(options: &Options, role: Role) -> Result<Established, Failure> {
    let client = build(options, role).map_err(Failure::Build)?;
    let fetch = options.credentials.fetch_timeout(options.connect_timeout);
    let within = options.connect_timeout.min(SOCKET_TIMEOUT + HANDSHAKE_TIMEOUT + fetch);
    let mut connection = client.connect();
    match timeout(within, client.connected(&mut connection)).await {
        Ok(Ok(())) => Ok(Established { client, connection }),
        Ok(Err(error)) => Err(Failure::Connect(error)),
        Err(_) => Err(Failure::Silence),
    }
}

/// The operating system notices a dead peer, too, where nothing answers in its place.
fn tcp() -> TcpConfig {
    TcpConfig {
        nodelay: Some(true),
        keepalive: Some(TcpKeepalive::new().with_time(IDLE).with_interval(PROBES)),
        #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
        user_timeout: Some(UNACKNOWLEDGED),
        ..TcpConfig::default()
    }
}

/// A client of the library that has not connected.
pub(super) fn build(options: &Options, role: Role) -> Result<Client, Error> {
    let connection = ConnectionConfig {
        connection_timeout: SOCKET_TIMEOUT.min(options.connect_timeout),
        // For authentication and the like, a credentials provider included.
        internal_command_timeout: HANDSHAKE_TIMEOUT
            + options.credentials.fetch_timeout(options.connect_timeout),
        // More would run a command twice whose reply was lost.
        max_command_attempts: 1,
        tcp: tcp(),
        ..ConnectionConfig::default()
    };
    let performance = PerformanceConfig {
        default_command_timeout: match role {
            Role::Commands | Role::Tracker | Role::Sentinel => options.command_timeout,
            Role::Blocking | Role::Subscriber => Duration::ZERO,
        },
        broadcast_channel_capacity: match role {
            Role::Subscriber | Role::Tracker => 4096,
            Role::Commands | Role::Blocking | Role::Sentinel => 32,
        },
        ..PerformanceConfig::default()
    };
    // Leases of receivers are spared for a little longer than the longest pause, and its jitter (`recover.lua`).
    let longest = if options.is_led() { FAILOVER } else { 1_000 };
    let mut policy = ReconnectPolicy::new_exponential(0, 50, longest, 2);
    policy.set_jitter(25);
    let mut config = options.config.clone();
    if matches!(role, Role::Tracker | Role::Sentinel) {
        // The older protocol would need a second connection for what the server tells.
        config.version = RespVersion::RESP3;
    }
    let mut builder = Builder::from_config(config);
    builder.set_connection_config(connection).set_performance_config(performance).set_policy(policy);
    builder.build().map(Client)
}
