//! Connections, commands, replies, and what an error means for the caller. Only this module knows the client library.
//!
//! A client has one connection for commands, one for announcements, and one for each kind of blocking pop that is in
//! use: at the head of the lists in use (two if there are many), at the tail, and one for each pair of lists between
//! which somebody waits to move. Each is a [`Link`], which reconnects by itself.
//!
//! With sentinels, each link is led to the master that they name. In a cluster, the first two are one for each master, and pops are
//! grouped by slot: `slots` has the table of slots, `topology` the present one, and `sentinel` and `cluster` write it.
//!
//! A call fails in one of the ways in which a caller acts differently: see [`OpError`].
//!
//! # What it relies on in the library
//!
//! | what | test |
//! |---|---|
//! | Bytes pass unchanged in both directions; nil is a reply. | `tests::bytes_pass_unchanged_both_ways` |
//! | An error reply is passed on, and the connection stays. | `tests::an_error_reply_is_passed_on_and_the_connection_stays` |
//! | Commands are sent in the order in which they are first polled. | `tests::commands_run_in_the_order_in_which_they_are_first_polled` |
//! | A command is sent at most once (`max_command_attempts: 1`). | `tests::a_command_whose_reply_is_lost_is_not_sent_again` |
//! | While there is no connection, no command is kept for the next one. | `tests::nothing_is_sent_for_a_caller_that_found_no_connection` |
//! | A blocking command has no timeout (`default_command_timeout: 0`). | `tests::a_blocking_pop_waits_for_longer_than_a_command_may_take` |
//! | `with_options` sets the timeout of a custom command. | `tests::timeouts` |
//! | `force_reconnection` ends what is in flight. | `tests::a_forced_reconnection_ends_what_is_in_flight_and_begins_a_session` |
//! | It reconnects for ever, and reports it. | `tests::a_connection_that_is_killed_comes_back_by_itself`; faults: `links` |
//! | An aborted connection task closes the connection. | `tests::dropping_a_link_closes_its_connection` |
//! | A refused SUBSCRIBE is the reply to the PING behind it. | `a_channel_that_is_refused_does_not_keep_others_waiting` in `links` |
//! | I/O errors are turned into text by `Debug`. | `library::tests` |
//! | A credentials provider is asked at each connection, and may take a while. | `credentials` |
//! | The TLS configuration and server name are used as they are. | `tls` |
//!
//! And against its properties: a dropped future of a command is no cancellation, so a pop is awaited by a task that is
//! never dropped; `SubscriberClient` is not used, since its empty SUBSCRIBE shifts replies; scripts are not reloaded by
//! the library, since it hangs beside a blocking pop; an array that begins with `message` or the like is taken for an
//! announcement, see `scripts`.

mod address;
mod cluster;
mod commands;
mod confirmations;
mod connect_error;
mod credentials;
mod establish;
mod execute;
mod expect;
mod failover;
mod handshake;
mod library;
mod link;
mod master;
mod op_error;
mod open;
mod options;
mod probe;
mod pushed;
mod replicas;
mod reply;
mod role;
mod routing;
mod sentinel;
mod session;
mod shared;
mod silence;
mod slot;
mod slots;
mod subscriber;
mod subscribers;
mod supervisor;
#[cfg(test)]
mod tests;
#[cfg(feature = "tls")]
mod tls;
mod too_large;
mod topology;
mod tracker;
mod wrong_type;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

pub(crate) use cluster::ServerId;
pub(crate) use confirmations::Unconfirmed;
pub(crate) use connect_error::ConnectError;
pub(crate) use credentials::{Credentials, Provider};
pub(crate) use link::Link;
pub(crate) use op_error::{Cause, OpError, line_of, without_position};
pub(crate) use options::{Options, Replicas, Settings};
pub(crate) use reply::Reply;
pub(crate) use slot::Slot;
pub(crate) use subscriber::{Channels, Notice};
#[cfg(feature = "tls")]
pub(crate) use tls::TlsOptions;
pub(crate) use tracker::{Change, Changes};
pub(crate) use wrong_type::wrong_type;

use crate::pacing::{Retries, backoff};
use crate::telemetry::{ClientCounters, events};
use crate::wire::time;
use cluster::Cluster;
use commands::Commands;
use master::Master;
use options::Source;
use role::Role;
use session::Session;
use shared::Shared;
use too_large::Size;
use topology::Topology;

/// A command may take the command timeout, and as long again for each such number of bytes.
const LONG: usize = 2048;
/// No duration of a client is longer, so that no sum of times overflows.
pub(crate) const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// The oldest server that is supported: `LPOP key count` and `CLIENT INFO` came with it.
const OLDEST_SERVER: (u32, u32) = (6, 2);

/// One command and its arguments, binary safe. Each try borrows it, and copies only the list of arguments, so it
/// is still there when an error is to be explained.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    name: &'static str,
    args: Vec<Bytes>,
    is_tagged: bool,
}

impl Command {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, args: Vec::with_capacity(4), is_tagged: false }
    }

    /// A call of a script that the server knows. Each try has a number, its *tag*, as the last argument, and the
    /// reply is an array that begins with it: any other reply belongs to another command.
    pub(crate) fn script(sha1: &'static str) -> Self {
        let mut args = Vec::with_capacity(16);
        args.extend([Bytes::from_static(sha1.as_bytes()), Bytes::from_static(b"0")]);
        Self { name: "EVALSHA", args, is_tagged: true }
    }

    /// More keys of a script, which has no other arguments yet.
    #[must_use]
    pub(crate) fn script_keys(mut self, keys: impl IntoIterator<Item = Bytes>) -> Self {
        self.args.extend(keys);
        self.args[1] = (self.args.len() - 2).to_string().into();
        self
    }

    /// The same call with the text of the script, for a server that does not know it.
    #[must_use]
    pub(crate) fn script_text(&self, text: String) -> Self {
        let mut command = Self { name: "EVAL", ..self.clone() };
        command.args[0] = text.into();
        command
    }

    #[must_use]
    pub(crate) fn arg(mut self, arg: impl Into<Bytes>) -> Self {
        self.args.push(arg.into());
        self
    }

    #[must_use]
    pub(crate) fn number(self, number: impl ToString) -> Self {
        self.arg(number.to_string())
    }

    #[must_use]
    pub(crate) fn args(mut self, args: impl IntoIterator<Item = Bytes>) -> Self {
        self.args.extend(args);
        self
    }

    /// The slot of its keys, if it has any: all are of one queue.
    fn slot(&self) -> Option<Slot> {
        let key = match self.name {
            "EVAL" | "EVALSHA" if self.args.get(1).is_some_and(|keys| keys == "0") => None,
            "EVAL" | "EVALSHA" => self.args.get(2),
            "CLIENT" | "CLUSTER" | "CONFIG" | "INFO" | "PING" | "SENTINEL" | "TIME" | "WAIT" => None,
            _ => self.args.first(),
        };
        key.map(|key| Slot::of(key))
    }
}

/// The connections for commands.
#[derive(Clone, Debug)]
enum Servers {
    /// To one server, or to the one that sentinels name.
    One(Commands),
    /// To each master of a cluster.
    Cluster(Arc<Cluster>),
}

/// The connections for commands, and the options of the others.
#[derive(Clone, Debug)]
pub(crate) struct Conn {
    base: Arc<Base>,
    /// In a cluster, what has no key is sent to the server of this slot.
    slot: Option<Slot>,
    command_timeout: Duration,
    /// How many bytes the commands, or their replies, have that are so long that a slow link needs time for them.
    long: Option<usize>,
}

/// What is the same for all callers.
#[derive(Debug)]
struct Base {
    options: Options,
    servers: Servers,
    shared: Shared,
    runtime: Handle,
    /// Follows the sentinels, if they say where to connect, until the client is closed, or its last handle is dropped.
    sentinels: Option<AbortOnDropHandle<()>>,
}

impl Conn {
    /// Connects and checks the server's version. Keeps trying while no server answers, within `connect_timeout`.
    ///
    /// Compiled once: see [`execute`].
    #[inline(never)]
    pub(crate) fn connect(options: Options) -> BoxFuture<'static, Result<Self, ConnectError>> {
        Box::pin(Self::connect_now(options))
    }

    async fn connect_now(options: Options) -> Result<Self, ConnectError> {
        let deadline = Instant::now() + options.connect_timeout;
        let (servers, shared, sentinels) = match &options.source {
            Source::Url => {
                let shared = Shared::new(None);
                (Servers::One(Commands::open(&options, &shared).await?), shared, None)
            }
            Source::Sentinels(group) => {
                let master = Master::new(group.master.clone());
                let shared = Shared::new(Some(master.topology().clone()));
                let sentinels = sentinel::follow(group.clone(), master, &shared);
                (Servers::One(Commands::open(&options, &shared).await?), shared, Some(sentinels))
            }
            Source::Cluster(seeds) => {
                let unknown = "the servers of the cluster are not known".to_owned();
                let topology = Topology::new(unknown, "none has answered");
                let shared = Shared::new(Some(topology.clone()));
                let cluster = Cluster::connect(&options, seeds, topology, &shared, deadline).await?;
                (Servers::Cluster(Arc::new(cluster)), shared, None)
            }
        };
        let command_timeout = options.command_timeout;
        let base = Base { options, servers, shared, runtime: Handle::current(), sentinels };
        let conn = Self { base: Arc::new(base), slot: None, command_timeout, long: None };
        conn.check_version(deadline).await?;
        Ok(conn)
    }

    /// The same connections and counters, with another command timeout, of at least 1 ms and a year at most.
    ///
    /// A longer timeout than that of [`Options`] applies to the wait for a connection and to retries. A connection on
    /// which the server is silent is replaced after the timeout of [`Options`] all the same.
    pub(crate) fn with_timeout(&self, command_timeout: Duration) -> Self {
        let command_timeout = command_timeout.clamp(Duration::from_millis(1), LONGEST);
        Self { command_timeout, ..self.clone() }
    }

    /// The same, for a command of this many bytes: a slow link may take longer than the command timeout to transmit it, and
    /// is not given up for that. A handle with a shorter timeout than that of [`Options`] keeps it.
    pub(crate) fn for_long(&self, bytes: usize) -> Self {
        let timeout = self.base.options.command_timeout;
        let times = u32::try_from(1 + bytes / LONG).unwrap_or(u32::MAX);
        let long = timeout.saturating_mul(times).min(LONGEST);
        let is_hasty = self.command_timeout < timeout;
        let command_timeout = if is_hasty { self.command_timeout } else { self.command_timeout.max(long) };
        Self { command_timeout, long: Some(bytes), ..self.clone() }
    }

    /// The same, for a command whose reply may be so long that a slow link takes longer than the command timeout to transmit it.
    pub(crate) fn for_long_reply(&self) -> Self {
        let timeout = self.base.options.command_timeout;
        let is_hasty = self.command_timeout < timeout;
        // As long again for the wait for a connection.
        let long = timeout.saturating_mul(2).saturating_add(silence::LONGER).min(LONGEST);
        let command_timeout = if is_hasty { self.command_timeout } else { self.command_timeout.max(long) };
        Self { command_timeout, long: Some(usize::MAX), ..self.clone() }
    }

    /// Opens another connection, for blocking pops, of this queue if only of one. Tries once.
    pub(crate) async fn open_blocking(&self, queue: Option<&str>) -> Result<Arc<Link>, ConnectError> {
        let shared = Shared { queue: queue.map(Arc::from), ..self.shared_here() };
        Link::open_once(&self.base.options, Role::Blocking, &shared, self.lead()).await
    }

    /// Runs a command at most once.
    ///
    /// Dropping the future does not cancel a command that was sent: it runs, and its reply is lost. So a command that
    /// takes an element out of Redis is called by a task that is never dropped half-way (see `pops`).
    pub(crate) async fn call(&self, command: &Command) -> Result<Reply, OpError> {
        let deadline = Instant::now() + self.command_timeout;
        match self.call_within(command, self.command_timeout).await {
            // In boxes, as is what is rare, so that the futures of callers stay small.
            Err(error) if Size::of(command).may_explain(&error) => {
                Err(Box::pin(self.blaming_size(error, Size::of(command), deadline)).await)
            }
            Err(error @ OpError::Server(_)) => {
                Err(Box::pin(self.naming_keys(error, command.name, command.keys(), deadline)).await)
            }
            result => result,
        }
    }

    /// Runs a command that changes nothing: retries it when the reply was lost, within the command timeout.
    pub(crate) async fn query(&self, command: &Command) -> Result<Reply, OpError> {
        self.call_repeatedly(command, &mut false).await
    }

    /// Runs an idempotent command: retries it as [`Conn::query`] does. If a try was lost, no error says that nothing was
    /// executed.
    pub(crate) async fn call_idempotent(&self, command: &Command) -> Result<Reply, OpError> {
        let mut lost = false;
        let result = self.call_repeatedly(command, &mut lost).await;
        result.map_err(|error| if lost { error.after_a_lost_try() } else { error })
    }

    /// Both. Returns the error of the last try, and notes whether a try was lost, which the server may have executed, or may
    /// still execute.
    pub(crate) async fn call_repeatedly(&self, command: &Command, lost: &mut bool) -> Result<Reply, OpError> {
        let deadline = Instant::now() + self.command_timeout;
        let mut retries = Retries::until(deadline);
        let mut within = self.command_timeout;
        loop {
            let error = match self.call_within(command, within).await {
                Err(error) if Size::of(command).may_explain(&error) => {
                    let error = Box::pin(self.blaming_size(error, Size::of(command), deadline)).await;
                    if !matches!(error, OpError::Unknown(_)) {
                        return Err(error);
                    }
                    error
                }
                Err(error @ OpError::Unknown(_)) => error,
                Err(error @ OpError::Server(_)) => {
                    return Err(
                        Box::pin(self.naming_keys(error, command.name, command.keys(), deadline)).await
                    );
                }
                result => return result,
            };
            *lost = true;
            if !retries.pause().await {
                return Err(error);
            }
            within = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        }
    }

    async fn call_within(&self, command: &Command, within: Duration) -> Result<Reply, OpError> {
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
        let is_timeout = matches!(&result, Err(OpError::Unknown(cause)) if cause.is_timeout());
        if is_timeout && within < self.base.options.command_timeout {
            // A caller that waits for less than that cannot tell whether the server still answers.
            link.check_soon(&self.base.runtime);
        }
        result
    }

    /// Ends the pop that this other connection blocks on. It has no effect before the server has received the pop.
    ///
    /// Redis 7.0.15 that is paused for writes, as in a failover, holds the pop back, and crashes when such a client is to be
    /// unblocked. It holds a script back, too, and with it the commands that follow on its connection.
    pub(crate) async fn unblock(&self, blocked: &Link) {
        // Ids are those of one server. On another one, this would end somebody else's pop.
        let address = blocked.address();
        let beside = match &self.base.servers {
            Servers::One(commands) => Some(commands.link.clone()).filter(|link| link.address() == address),
            Servers::Cluster(cluster) => cluster.at(&address),
        };
        let id = blocked.session().and_then(|session| session.client_id);
        let Some((commands, id)) = beside.zip(id) else { return };
        if commands.session().is_none() || blocked.address() != address {
            return;
        }
        // Nothing may come between the two commands.
        if timeout(self.base.options.command_timeout, commands.in_use()).await.is_err() {
            return;
        }
        let hold = Command::new("EVAL").arg("return 0").number(0);
        let unblock = Command::new("CLIENT").arg("UNBLOCK").number(id).arg("TIMEOUT");
        let call = |command| commands.call(command, self.base.options.command_timeout);
        let _ = futures::future::join(call(&hold), call(&unblock)).await;
    }

    /// The counters of this module and of those above it.
    pub(crate) fn counters(&self) -> &ClientCounters {
        &self.base.shared.counters
    }

    /// The connections to the queue's server; to any in a cluster, if this is for no queue. `None` while nobody serves its slot.
    fn commands(&self) -> Option<Commands> {
        match &self.base.servers {
            Servers::One(commands) => Some(commands.clone()),
            Servers::Cluster(cluster) => Some(cluster.master(self.slot)?.commands.clone()),
        }
    }

    /// Whether there is a connection for commands; in a cluster, to the queue's server, or to all.
    pub(crate) fn is_connected(&self) -> bool {
        match &self.base.servers {
            Servers::Cluster(cluster) if self.slot.is_none() => cluster.is_connected(),
            _ => self.commands().is_some_and(|commands| commands.is_connected()),
        }
    }

    /// Waits for a connection for commands, within the command timeout.
    pub(crate) async fn connected(&self) -> Result<(), OpError> {
        match &self.base.servers {
            Servers::One(Commands { link, .. }) => {
                let connected = timeout(self.command_timeout, link.connected());
                connected.await.map_err(|_| link.no_connection())?.map(drop)
            }
            Servers::Cluster(cluster) => cluster.serving(self.slot, self.command_timeout).await.map(drop),
        }
    }

    /// Changes when a connection for commands was lost and is back, or leads to another server.
    pub(crate) fn sessions(&self) -> watch::Receiver<u64> {
        self.base.shared.begun.subscribe()
    }

    /// Tells the sessions of the connection to the queue's server apart. `None` while there is no connection.
    pub(crate) fn session(&self) -> Option<u64> {
        Some(self.commands()?.link.session()?.number)
    }

    /// When the last reply to a command was received; in a cluster, from the queue's server.
    pub(crate) fn last_reply(&self) -> Option<Instant> {
        Some(self.commands()?.link.last_reply())
    }

    /// The server's clock, epoch µs.
    pub(crate) async fn time(&self) -> Result<i64, OpError> {
        let [seconds, micros] = self.query(&Command::new("TIME")).await?.into_parts()?;
        let (seconds, micros) = (seconds.into_bytes()?, micros.into_bytes()?);
        time::server_clock(&seconds, &micros).ok_or_else(|| self.desynchronised())
    }

    /// Drops the connection for commands, because a reply on it belongs to another command. Returns the error of the call
    /// that got it: nobody knows what became of the command.
    ///
    /// A caller whose reply has the shape of its command, but not the content that it must have, calls this.
    pub(crate) fn desynchronised(&self) -> OpError {
        match self.commands() {
            Some(commands) => commands.link.desynchronised(),
            None => OpError::Unknown("nobody knows the server of the slot".into()),
        }
    }

    /// Replaces the connection for commands; in a cluster, to the queue's server. What is in flight ends with
    /// [`OpError::Unknown`].
    pub(crate) fn reconnect(&self) {
        if let Some(commands) = self.commands() {
            commands.link.reconnect();
        }
    }

    /// The runtime of the connections. A task that others depend on runs there: a caller may be in another runtime, which
    /// makes no progress when nobody drives it.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.base.runtime
    }

    /// Host and port, for messages.
    pub(crate) fn server(&self) -> String {
        self.base.options.server()
    }

    /// Host and port of the queue's server, or the path of its socket.
    pub(crate) fn address(&self) -> String {
        self.commands().map(|commands| commands.link.address().to_string()).unwrap_or_default()
    }

    /// The servers that commands are sent to.
    pub(crate) fn masters(&self) -> Vec<String> {
        match &self.base.servers {
            Servers::One(_) => vec![self.address()],
            Servers::Cluster(cluster) => cluster.addresses(),
        }
    }

    /// How long a command may take, the wait for a connection and retries included.
    pub(crate) fn command_timeout(&self) -> Duration {
        self.command_timeout
    }

    /// Closes the connections for commands, and those to sentinels. The other links close with their owners, which end first.
    pub(crate) async fn close(&self) {
        self.base.sentinels.iter().for_each(AbortOnDropHandle::abort);
        match &self.base.servers {
            Servers::One(commands) => commands.close().await,
            Servers::Cluster(cluster) => cluster.close().await,
        }
    }

    async fn check_version(&self, deadline: Instant) -> Result<(), ConnectError> {
        let reply = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let conn = self.with_timeout(self.command_timeout.min(left));
            let reply = conn.query(&Command::new("INFO").arg("server")).await;
            // A server that is busy may need more than one command timeout.
            let is_busy = matches!(reply, Err(OpError::Unknown(_) | OpError::NotExecuted(_)));
            if !is_busy || Instant::now() >= deadline {
                break reply;
            }
            sleep(backoff(0)).await;
        };
        let info = match reply {
            Ok(reply) => reply.into_bytes().unwrap_or_default(),
            // A server may lack INFO, or the user the permission, and serve queues all the same. There is
            // nothing to check then.
            Err(OpError::Server(_)) => Bytes::new(),
            Err(error) => return Err(ConnectError::failed(error.into_cause())),
        };
        let info = String::from_utf8_lossy(&info);
        match parse_version(&info) {
            Some((version, found)) if found < OLDEST_SERVER => Err(ConnectError::OldServer(version)),
            _ => {
                events::connected(&self.server(), &product(&info));
                Ok(())
            }
        }
    }
}

/// The field of this name in the reply of `INFO`.
fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// What the server is, with its own version: `Redis 7.0.15`, `Valkey 9.1.0`.
fn product(info: &str) -> String {
    match (field(info, "valkey_version"), field(info, "redis_version")) {
        (Some(version), _) => format!("Valkey {version}"),
        (None, Some(version)) => format!("Redis {version}"),
        (None, None) => "an unknown version".to_owned(),
    }
}

/// Reads `redis_version:7.0.15` out of `INFO server`. Valkey reports the Redis version it is compatible with there.
fn parse_version(info: &str) -> Option<(String, (u32, u32))> {
    let version = field(info, "redis_version")?;
    let mut parts = version.split('.').map_while(|part| part.parse().ok());
    Some((version.to_owned(), (parts.next()?, parts.next()?)))
}
