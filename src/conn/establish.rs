//! One attempt to connect, and the configuration of the client library for it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use fred::error::ErrorKind;
#[cfg(feature = "tls")]
use fred::types::config::TlsConnector;
use fred::types::config::{
    Config, ConnectionConfig, CredentialProvider, PerformanceConfig, ReconnectPolicy, Server, ServerConfig,
    TcpConfig,
};
use fred::types::{Builder, RespVersion};
use futures::future::BoxFuture;
use socket2::TcpKeepalive;
use tokio::time::timeout;

use super::Options;
use super::address::Endpoint;
use super::client::{Connection, FredClient};
use super::credentials::{Credentials, FAILED, Provider, named};
use super::handshake::HANDSHAKE_TIMEOUT;
use super::library_error::Error;
use super::purpose::Purpose;
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
    pub(super) client: FredClient,
    pub(super) connection: Connection,
}

/// Why there is none.
pub(super) enum NotEstablished {
    Build(Error),
    Connect(Error),
    Silence,
}

/// Makes one attempt to connect. Compiled once: see [`client`](super::client).
#[inline(never)]
pub(super) fn establish(
    options: &Options,
    purpose: Purpose,
) -> BoxFuture<'_, Result<Established, NotEstablished>> {
    Box::pin(establish_now(options, purpose))
}

async fn establish_now(options: &Options, purpose: Purpose) -> Result<Established, NotEstablished> {
    let client = build(options, purpose).map_err(NotEstablished::Build)?;
    let fetch = options.credentials.fetch_timeout(options.connect_timeout);
    let within = options.connect_timeout.min(SOCKET_TIMEOUT + HANDSHAKE_TIMEOUT + fetch);
    let mut connection = client.connect();
    match timeout(within, client.connected(&mut connection)).await {
        Ok(Ok(())) => Ok(Established { client, connection }),
        Ok(Err(error)) => Err(NotEstablished::Connect(error)),
        Err(_) => Err(NotEstablished::Silence),
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
pub(super) fn build(options: &Options, purpose: Purpose) -> Result<FredClient, Error> {
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
        default_command_timeout: match purpose {
            Purpose::Commands | Purpose::Question | Purpose::Tracker | Purpose::Sentinel => {
                options.command_timeout
            }
            Purpose::Blocking | Purpose::Subscriber => Duration::ZERO,
        },
        broadcast_channel_capacity: match purpose {
            Purpose::Subscriber | Purpose::Tracker => 4096,
            Purpose::Commands | Purpose::Question | Purpose::Blocking | Purpose::Sentinel => 32,
        },
        ..PerformanceConfig::default()
    };
    // Leases of receivers are spared for a little longer than the longest pause, and its jitter
    // (`recover.lua`).
    let longest = if options.is_led() { FAILOVER } else { 1_000 };
    let mut policy = ReconnectPolicy::new_exponential(0, 50, longest, 2);
    policy.set_jitter(25);
    let mut builder = Builder::from_config(config(options, purpose));
    builder.set_connection_config(connection).set_performance_config(performance).set_policy(policy);
    builder.build().map(FredClient)
}

fn config(options: &Options, purpose: Purpose) -> Config {
    let server = match &options.endpoint {
        Endpoint::Host(server) => ServerConfig::new_centralized(server.host.clone(), server.port),
        #[cfg(unix)]
        Endpoint::Socket(path) => ServerConfig::Unix { path: path.clone() },
        #[cfg(not(unix))]
        Endpoint::Socket(_) => unreachable!("`parse_url` refuses it"),
    };
    let mut config = Config {
        server,
        username: options.user.clone(),
        password: options.password.clone(),
        database: options.database,
        // The older protocol would need a second connection for what the server sends by itself.
        version: match purpose {
            Purpose::Tracker | Purpose::Sentinel => RespVersion::RESP3,
            Purpose::Commands | Purpose::Question | Purpose::Blocking | Purpose::Subscriber => {
                RespVersion::RESP2
            }
        },
        fail_fast: true,
        ..Config::default()
    };
    if let Credentials::Provider(provider) = &options.credentials {
        let within = options.credentials.fetch_timeout(options.connect_timeout);
        config.credential_provider = Some(Arc::new(Fetcher { provider: provider.clone(), within }));
    }
    #[cfg(feature = "tls")]
    if let Some(tls) = &options.tls {
        config.tls = Some(TlsConnector::Rustls(tls.config.clone().into()).into());
        if let ServerConfig::Centralized { server } = &mut config.server {
            server.tls_server_name = Some(tls.name.to_str().into_owned().into());
        }
    }
    config
}

/// The provider as the client library asks it.
struct Fetcher {
    provider: Provider,
    within: Duration,
}

impl fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fetcher(…)")
    }
}

#[async_trait]
impl CredentialProvider for Fetcher {
    async fn fetch(&self, _: Option<&Server>) -> Result<(Option<String>, Option<String>), Error> {
        let fetched = self.provider.fetch(self.within).await;
        // Of a kind after which the library tries again. What the text lacks is in the provider's state.
        let (user, password) = fetched.map_err(|_| Error::new(ErrorKind::Unknown, FAILED))?;
        Ok((named(user), Some(password)))
    }
}
