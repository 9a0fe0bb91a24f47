//! Opening a connection: once, or until the connect timeout, and what its failure means.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use fred::clients::Client;
use fred::error::{Error as FredError, ErrorKind as FredErrorKind};
use fred::interfaces::ClientLike;
use fred::types::config::{ConnectionConfig, PerformanceConfig, ReconnectPolicy, TcpConfig};
use fred::types::{Builder, RespVersion};
use futures::future::BoxFuture;
use socket2::TcpKeepalive;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::options::Source;
use super::probe::probe;
use super::role::Role;
use super::session::{HANDSHAKE_TIMEOUT, Supervisor};
use super::silence::IDLE;
use super::slot::Slot;
use super::topology::{Lead, outdated, replaced};
use super::{Cause, ConnectError, Link, OpError, Options, Shared, execute, library};
use crate::telemetry::events;

/// How long one try to open a socket may take.
const SOCKET_TIMEOUT: Duration = Duration::from_secs(3);

/// How often TCP probes an idle connection that does not answer.
const PROBES: Duration = Duration::from_secs(5);
/// How long what was sent may be unacknowledged by the other side's TCP.
#[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
const UNACKNOWLEDGED: Duration = Duration::from_secs(13);

/// What to check if no sentinel names a master.
const SENTINELS: &str = "are sentinels running there, do they know a master of this name, and do they need credentials of their own?";

/// What to check if a server answers, and refuses the connection.
const BUSY: &str = "the server answers, and does not accept the connection";

/// What to check if no server of a cluster answers.
pub(super) const SERVERS: &str = "are servers of a cluster running there, and reachable from here?";

/// The longest pause between two tries if there may be a failover: the next try may be led to another server.
const FAILOVER: u32 = 200;

impl Link {
    /// Connects, again and again until `connect_timeout` has passed: a service may start before its server.
    /// What waiting does not fix (credentials, TLS) fails at once.
    pub(super) async fn open(
        options: &Options,
        role: Role,
        shared: &Shared,
    ) -> Result<Arc<Self>, ConnectError> {
        let deadline = Instant::now() + options.connect_timeout;
        let mut pause = Duration::from_millis(20);
        let mut is_first = true;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let lead = options.lead(Slot::ANY);
            let error = match Self::open_within(left, options, role, shared, lead).await {
                Ok(link) => return Ok(link),
                Err(error) => error,
            };
            if !may_pass(&error, options) || Instant::now() + pause >= deadline {
                return Err(error);
            }
            if std::mem::take(&mut is_first) {
                events::connecting_failing(&options.server(), &error.to_string());
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(500));
        }
    }

    /// Connects where it is led to, or says why not.
    pub(super) async fn open_once(
        options: &Options,
        role: Role,
        shared: &Shared,
        lead: Option<Lead>,
    ) -> Result<Arc<Self>, ConnectError> {
        Self::open_within(options.connect_timeout, options, role, shared, lead).await
    }

    /// A link to the server in the options that connects in the background.
    pub(super) fn begin(options: &Options, role: Role, shared: &Shared) -> Result<Arc<Self>, OpError> {
        let client = build(options, role).map_err(|error| OpError::NotExecuted(library::cause(&error)))?;
        let supervisor = Supervisor::unconnected(options, client, role, shared.clone());
        Ok(Self::new(options, supervisor, role, shared.clone()))
    }

    /// Connects, or says why not. A reason is looked for no longer than `left`. Compiled once: see [`execute`].
    #[inline(never)]
    fn open_within<'a>(
        left: Duration,
        options: &'a Options,
        role: Role,
        shared: &'a Shared,
        lead: Option<Lead>,
    ) -> BoxFuture<'a, Result<Arc<Self>, ConnectError>> {
        Box::pin(Self::open_where_led(left, options, role, shared, lead))
    }

    async fn open_where_led(
        left: Duration,
        options: &Options,
        role: Role,
        shared: &Shared,
        mut lead: Option<Lead>,
    ) -> Result<Arc<Self>, ConnectError> {
        let deadline = Instant::now() + left;
        let nobody_knows = |cause| ConnectError::Failed(cause, nobody_knows(options));
        let (at, opened) = loop {
            let at = options.led_by(lead.as_mut()).await.map_err(nobody_knows)?;
            // An old master may accept the connection, and not answer.
            let opened = tokio::select! {
                opened = Self::open_at(&at, deadline, options, role, shared, lead.clone()) => opened,
                () = outdated(lead.as_ref()) => match Instant::now() < deadline {
                    true => continue,
                    false => Err(ConnectError::failed(replaced())),
                },
            };
            break (at, opened);
        };
        opened.map_err(|error| match error {
            ConnectError::Failed(cause, hint) if options.topology().is_some() => {
                ConnectError::Failed(cause.at(&at.address().to_string()), hint)
            }
            error => error,
        })
    }

    async fn open_at(
        at: &Options,
        deadline: Instant,
        options: &Options,
        role: Role,
        shared: &Shared,
        lead: Option<Lead>,
    ) -> Result<Arc<Self>, ConnectError> {
        let begun = Instant::now();
        let left = || deadline.saturating_duration_since(Instant::now());
        let established = match establish(at, role).await {
            Ok(established) => established,
            Err(Failure::Build(error)) => {
                let why = format!("the client library refuses it: {}", error.details());
                return Err(ConnectError::Option(why));
            }
            Err(Failure::Connect(error)) => return Err(reason(at, &error, left()).await),
            Err(Failure::Silence) => {
                return Err(match at.credentials.unanswered() {
                    Some(cause) => ConnectError::Provider(cause),
                    None => ConnectError::failed(silence(at)),
                });
            }
        };
        match Supervisor::start(options, at, established, begun, role, shared.clone(), lead).await {
            Ok(supervisor) => Ok(Self::new(at, supervisor, role, shared.clone())),
            Err(OpError::Server(why)) => Err(refused(why)),
            Err(OpError::NotExecuted(cause)) if at.topology().is_some() => {
                Err(ConnectError::Failed(cause, nobody_knows(at)))
            }
            Err(error) => Err(examine(at, error.into_cause(), true, left()).await),
        }
    }
}

/// Whether another try may succeed.
pub(super) fn may_pass(error: &ConnectError, options: &Options) -> bool {
    match error {
        ConnectError::Failed(..) | ConnectError::Provider(_) => true,
        ConnectError::Credentials(_) => options.credentials.may_change(),
        _ => false,
    }
}

/// What to check if nobody says where the server is.
fn nobody_knows(options: &Options) -> &'static str {
    if matches!(options.source, Source::Cluster(_)) { SERVERS } else { SENTINELS }
}

/// A client of the library that has connected, and the task that is its connection.
pub(super) struct Established {
    pub(super) client: Client,
    pub(super) connection: AbortOnDropHandle<Result<(), FredError>>,
}

/// Why there is none.
pub(super) enum Failure {
    Build(FredError),
    Connect(FredError),
    Silence,
}

/// Makes one attempt to connect. Compiled once: see [`execute`].
#[inline(never)]
pub(super) fn establish(options: &Options, role: Role) -> BoxFuture<'_, Result<Established, Failure>> {
    Box::pin(establish_now(options, role))
}

async fn establish_now(options: &Options, role: Role) -> Result<Established, Failure> {
    let client = build(options, role).map_err(Failure::Build)?;
    let fetch = options.credentials.fetch_timeout(options.connect_timeout);
    let within = options.connect_timeout.min(SOCKET_TIMEOUT + HANDSHAKE_TIMEOUT + fetch);
    let mut connection = execute::connect(&client);
    let connecting = async {
        tokio::select! {
            connected = client.wait_for_connect() => connected,
            ended = &mut connection => match ended {
                Ok(result) => result,
                Err(error) => Err(FredError::new(FredErrorKind::Unknown, error.to_string())),
            },
        }
    };
    match timeout(within, connecting).await {
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

fn build(options: &Options, role: Role) -> Result<Client, FredError> {
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
    let longest = if options.topology().is_some() { FAILOVER } else { 1_000 };
    let mut policy = ReconnectPolicy::new_exponential(0, 50, longest, 2);
    policy.set_jitter(25);
    let mut config = options.config.clone();
    if matches!(role, Role::Tracker | Role::Sentinel) {
        // The older protocol would need a second connection for what the server tells.
        config.version = RespVersion::RESP3;
    }
    let mut builder = Builder::from_config(config);
    builder.set_connection_config(connection).set_performance_config(performance).set_policy(policy);
    builder.build()
}

/// What the client library's error means.
async fn reason(options: &Options, error: &FredError, left: Duration) -> ConnectError {
    if let Some(cause) = options.credentials.failure(error) {
        return ConnectError::Provider(cause);
    }
    let cause = library::cause(error);
    if cause.source().is_none() && cause.to_string().contains("DB index is out of range") {
        return ConnectError::Option(format!("the server has no database of this number ({cause})"));
    }
    if cause.is_of_server() {
        return match cause.to_string() {
            // After these errors, another try is worth it, as it is for a call.
            why if OpError::of_reply(&why).is_not_executed() => ConnectError::Failed(cause, BUSY),
            why => refused(why),
        };
    }
    match error.kind() {
        FredErrorKind::Config | FredErrorKind::Url | FredErrorKind::InvalidArgument => {
            return ConnectError::Url("the client library refuses it".into());
        }
        _ => {}
    }
    examine(options, cause, library::is_vague(error), left).await
}

/// How a server refuses a user or a password, or the lack of one.
const OF_CREDENTIALS: [&str; 4] = ["NOAUTH", "WRONGPASS", "ERR AUTH ", "ERR Client sent AUTH"];

/// What the server's words mean.
fn refused(why: String) -> ConnectError {
    if OF_CREDENTIALS.iter().any(|words| why.starts_with(words)) {
        return ConnectError::Credentials(why);
    }
    // A limit or the protected mode may end.
    if ["NOPERM", "ERR unknown", "ERR Unknown"].iter().any(|words| why.starts_with(words)) {
        return ConnectError::Refused(why);
    }
    ConnectError::Failed(why.into(), BUSY)
}

/// Looks for a better reason where this one is vague.
async fn examine(options: &Options, cause: Cause, is_vague: bool, left: Duration) -> ConnectError {
    if cause.is_timeout() {
        return ConnectError::failed(silence(options));
    }
    // A server that rejects the client's certificate may close the connection before that is read.
    if cause.source().is_some()
        && (is_vague || options.is_tls())
        && let Some(found) = probe(options, left.min(SOCKET_TIMEOUT)).await
    {
        return found;
    }
    if cause.source().is_none() || !(is_vague || cause.is_closed()) {
        return ConnectError::failed(cause);
    }
    ConnectError::Failed(
        cause,
        match options.is_tls() {
            true => "does the server speak TLS on this port?",
            false => "is it a Redis server, and without TLS? If it expects TLS, use rediss://",
        },
    )
}

/// A server that accepts connections and does not answer, or an address from which nothing comes back.
fn silence(options: &Options) -> Cause {
    let text = match options.is_tls() {
        true => "the server does not answer the TLS handshake",
        false => "the server does not answer",
    };
    Cause::of_kind(ErrorKind::TimedOut, text)
}
