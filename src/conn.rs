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
mod connect;
mod credentials;
mod expect;
mod failover;
mod library;
mod link;
mod op_error;
mod options;
mod probe;
mod replicas;
mod reply;
mod sentinel;
mod session;
mod slots;
mod subscriber;
mod subscribers;
#[cfg(test)]
mod tests;
#[cfg(feature = "tls")]
mod tls;
mod topology;
mod tracker;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

pub(crate) use cluster::ServerId;
pub(crate) use credentials::{Credentials, Provider};
pub(crate) use link::Link;
pub(crate) use op_error::{Cause, OpError};
pub(crate) use options::{ConnectError, Options, Settings};
pub(crate) use replicas::{Replicas, Unconfirmed};
pub(crate) use reply::Reply;
pub(crate) use slots::Slot;
pub(crate) use subscriber::{Channels, Notice};
#[cfg(feature = "tls")]
pub(crate) use tls::TlsOptions;
pub(crate) use tracker::{Change, Changes};

use crate::pacing::{Retries, backoff};
use crate::telemetry::ClientCounters;
use crate::wire::keys::Keys;
use crate::wire::time;
use cluster::Cluster;
use failover::Demotion;
use link::Role;
use options::Source;
use replicas::Confirmations;
use session::Session;
use topology::Lead;

/// A command may take the command timeout, and as long again for each such number of bytes.
const LONG: usize = 2048;
/// No duration of a client is longer, so that no sum of times overflows.
pub(crate) const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// The oldest server that is supported: `LPOP key count` and `CLIENT INFO` came with it.
const OLDEST_SERVER: (u32, u32) = (6, 2);

/// One command and its arguments, binary safe.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    name: &'static str,
    args: Vec<Bytes>,
    tag: Option<i64>,
}

impl Command {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, args: Vec::with_capacity(4), tag: None }
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

    /// Says that the reply is an array that begins with this number: any other reply belongs to another command.
    #[must_use]
    pub(crate) fn tagged(mut self, tag: i64) -> Self {
        self.tag = Some(tag);
        self
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
            "CLIENT" | "CLUSTER" | "INFO" | "PING" | "SENTINEL" | "TIME" | "WAIT" => None,
            _ => self.args.first(),
        };
        key.map(|key| Slot::of(key))
    }
}

/// Shared by all connections of a client to one server, or to servers that stand in for each other.
#[derive(Clone, Debug)]
struct Shared {
    demotion: Demotion,
    counters: ClientCounters,
}

impl Shared {
    /// For a connection to another server, whose demotion does not concern these.
    fn for_another_server(&self) -> Self {
        Self { demotion: Demotion::none_yet(), counters: self.counters.clone() }
    }
}

/// The connections for commands.
#[derive(Clone, Debug)]
enum Servers {
    /// To one server, or to the one that sentinels name.
    One(Arc<Link>, Option<Arc<Confirmations>>),
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
    /// How long the commands may take that are so long that a slow link needs time for them.
    long: Option<Duration>,
}

/// What is the same for all callers.
#[derive(Debug)]
struct Base {
    options: Options,
    servers: Servers,
    shared: Shared,
    runtime: Handle,
}

impl Conn {
    /// Connects and checks the server's version. Keeps trying while no server answers, within `connect_timeout`.
    pub(crate) async fn connect(options: Options) -> Result<Self, ConnectError> {
        let deadline = Instant::now() + options.connect_timeout;
        let shared = Shared { demotion: Demotion::none_yet(), counters: ClientCounters::new() };
        options.follow_sentinels(&shared);
        let servers = match &options.source {
            Source::Cluster(seeds) => {
                Servers::Cluster(Arc::new(Cluster::connect(&options, seeds, &shared, deadline).await?))
            }
            _ => {
                let commands = Link::open(&options, Role::Commands, &shared).await?;
                let confirmations = match options.replicas {
                    Some(replicas) => {
                        let lead = options.lead(Slot::ANY);
                        let link = Link::open_once(&options, Role::Commands, &shared, lead).await?;
                        Some(Confirmations::new(link, replicas, options.command_timeout, Handle::current()))
                    }
                    None => None,
                };
                Servers::One(Arc::new(commands), confirmations)
            }
        };
        let command_timeout = options.command_timeout;
        let base = Base { options, servers, shared, runtime: Handle::current() };
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
        Self { command_timeout, long: Some(long), ..self.clone() }
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
        match &self.base.servers {
            Servers::One(..) => None,
            Servers::Cluster(_) => Some(Slot::of(keys.target())),
        }
    }

    /// Whether one server has all keys of a queue.
    pub(crate) fn can_hold(&self, keys: &Keys) -> bool {
        let names = [keys.timeout_set(), keys.ordered_list(), keys.channel()];
        matches!(self.base.servers, Servers::One(..))
            || names.iter().all(|name| Slot::of(name) == Slot::of(keys.target()))
    }

    /// The server of a key or channel.
    pub(crate) fn server_of(&self, key: &[u8]) -> ServerId {
        match &self.base.servers {
            Servers::One(..) => ServerId::default(),
            Servers::Cluster(_) => self.server_of_slot(Slot::of(key)),
        }
    }

    /// The server of the queue that this is for.
    pub(crate) fn own_server(&self) -> ServerId {
        self.slot.map(|slot| self.server_of_slot(slot)).unwrap_or_default()
    }

    /// How many servers have queues.
    pub(crate) fn server_count(&self) -> usize {
        match &self.base.servers {
            Servers::One(..) => 1,
            Servers::Cluster(cluster) => cluster.count().max(1),
        }
    }

    pub(crate) fn server_of_slot(&self, slot: Slot) -> ServerId {
        let Servers::Cluster(cluster) = &self.base.servers else { return ServerId::default() };
        cluster.master(Some(slot)).map(|master| master.id).unwrap_or_default()
    }

    /// Opens another connection, for blocking pops. Tries once.
    pub(crate) async fn open_blocking(&self) -> Result<Link, ConnectError> {
        let lead = self.base.options.lead(self.slot.unwrap_or(Slot::ANY));
        Link::open_once(&self.base.options, Role::Blocking, &self.shared_here(), lead).await
    }

    /// For a connection to the server of the slot.
    fn shared_here(&self) -> Shared {
        match &self.base.servers {
            Servers::One(..) => self.base.shared.clone(),
            Servers::Cluster(_) => self.base.shared.for_another_server(),
        }
    }

    /// For a connection to the server that has the slot now, which stays there in a cluster.
    async fn options_here(&self) -> Result<(Options, Option<Lead>), ConnectError> {
        let lead = self.base.options.lead(self.slot.unwrap_or(Slot::ANY));
        match (&self.base.servers, lead) {
            (Servers::Cluster(_), Some(mut lead)) => {
                let server = lead.next().await;
                let server = server.map_err(|cause| ConnectError::Failed(cause, connect::SERVERS))?;
                Ok((self.base.options.at(&server), None))
            }
            (_, lead) => Ok((self.base.options.clone(), lead)),
        }
    }

    /// Runs a command at most once.
    ///
    /// Dropping the future does not cancel a command that was sent: it runs, and its reply is lost. So a command that
    /// takes an element out of Redis is called by a task that is never dropped half-way (see `pops`).
    pub(crate) async fn call(&self, command: Command) -> Result<Reply, OpError> {
        self.call_within(command, self.command_timeout).await
    }

    /// Runs a command that changes nothing: retries it when the reply was lost, within the command timeout.
    pub(crate) async fn query(&self, command: Command) -> Result<Reply, OpError> {
        self.call_repeatedly(command, &mut false).await
    }

    /// Runs an idempotent command: retries it as [`Conn::query`] does. If a try was lost, no error says that nothing was
    /// executed.
    pub(crate) async fn call_idempotent(&self, command: Command) -> Result<Reply, OpError> {
        let mut lost = false;
        let result = self.call_repeatedly(command, &mut lost).await;
        result.map_err(|error| if lost { error.after_a_lost_try() } else { error })
    }

    /// Both. Returns the error of the last try, and notes whether a try was lost, which the server may have executed, or may
    /// still execute.
    pub(crate) async fn call_repeatedly(&self, command: Command, lost: &mut bool) -> Result<Reply, OpError> {
        let deadline = Instant::now() + self.command_timeout;
        let mut retries = Retries::until(deadline);
        let mut within = self.command_timeout;
        loop {
            let error = match self.call_within(command.clone(), within).await {
                Err(error @ OpError::Unknown(_)) => error,
                result => return result,
            };
            *lost = true;
            if !retries.pause().await {
                return Err(error);
            }
            within = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        }
    }

    async fn call_within(&self, command: Command, within: Duration) -> Result<Reply, OpError> {
        match &self.base.servers {
            Servers::One(commands, _) => self.call_on(commands, command, within).await,
            // In a box, or the futures of callers become so deep that the compiler refuses some.
            Servers::Cluster(cluster) => Box::pin(self.call_in_cluster(cluster, command, within)).await,
        }
    }

    /// Sends the command to the server of its slot; and again, as long as servers refuse it because another one serves it, or soon
    /// will.
    async fn call_in_cluster(
        &self,
        cluster: &Cluster,
        command: Command,
        within: Duration,
    ) -> Result<Reply, OpError> {
        let slot = command.slot().or(self.slot);
        let deadline = Instant::now() + within;
        let (mut within, mut refusals) = (within, 0);
        loop {
            let master = cluster.serving(slot, within).await?;
            let refused = match self.call_on(&master.link, command.clone(), within).await {
                Err(error)
                    if error.is_not_here() || master.link.is_abandoned() && error.is_not_executed() =>
                {
                    error
                }
                result => return result,
            };
            // The connection has told the topology. Nothing was executed, so that the command can be sent again.
            let pause = pause_after_refusal(refusals);
            if Instant::now() + pause >= deadline {
                // Not earlier, or the caller would begin again.
                sleep_until(deadline).await;
                return Err(refused);
            }
            self.base.shared.counters.redirected();
            refusals += 1;
            sleep(pause).await;
            within = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        }
    }

    /// Makes a write that is idempotent or sent once, and waits until replicas have it, if the client is built with
    /// [`Replicas`].
    pub(crate) fn replicated<'a, R: 'a>(
        &'a self,
        write: impl Future<Output = Result<R, OpError>> + 'a,
    ) -> impl Future<Output = Result<R, OpError>> + 'a {
        // In a box, as is what is rare, so that the futures of callers stay small.
        let write = Box::pin(write);
        async move {
            if self.base.options.replicas.is_none() {
                return write.await;
            }
            // Without a connection, nothing could be confirmed.
            Box::pin(self.confirming()).await?;
            let unconfirmed = self.before_write();
            let reply = write.await?;
            Box::pin(self.confirm(unconfirmed)).await?;
            Ok(reply)
        }
    }

    /// To confirm a write later. Call it before the write is sent. `None` if replicas need not confirm it.
    pub(crate) fn before_write(&self) -> Option<Unconfirmed> {
        self.base.options.replicas?;
        // First the number: what changes behind it is noticed.
        let changes = self.changes();
        Some(Unconfirmed::new(self.confirmations(), changes))
    }

    /// Waits until replicas have a write that was answered.
    pub(crate) async fn confirm(&self, unconfirmed: Option<Unconfirmed>) -> Result<(), OpError> {
        let Some(unconfirmed) = unconfirmed else { return Ok(()) };
        if unconfirmed.changes != self.changes() {
            // Another server may have executed it.
            return Err(replicas::lost());
        }
        unconfirmed.confirm().await
    }

    /// How often the servers of slots have changed.
    fn changes(&self) -> u64 {
        self.base.options.topology().map_or(0, topology::Topology::changes)
    }

    fn confirmations(&self) -> Option<Arc<Confirmations>> {
        match &self.base.servers {
            Servers::One(_, confirmations) => confirmations.clone(),
            Servers::Cluster(cluster) => cluster.master(self.slot)?.confirmations.clone(),
        }
    }

    /// Waits for a connection that confirms writes, within the command timeout.
    async fn confirming(&self) -> Result<(), OpError> {
        let deadline = Instant::now() + self.command_timeout;
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

    async fn call_on(&self, link: &Arc<Link>, command: Command, within: Duration) -> Result<Reply, OpError> {
        let result = match self.long {
            None => link.call(command, within).await,
            Some(long) => link.call_long(command, within, long).await,
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
            Servers::One(commands, _) => {
                Some(commands.clone()).filter(|commands| commands.address() == address)
            }
            Servers::Cluster(cluster) => cluster.at(&address),
        };
        let Some((commands, session)) = beside.zip(blocked.session()) else { return };
        if commands.session().is_none() || blocked.address() != address {
            return;
        }
        let hold = Command::new("EVAL").arg("return 0").number(0);
        let unblock = Command::new("CLIENT").arg("UNBLOCK").number(session.client_id).arg("TIMEOUT");
        let call = |command| commands.call(command, self.base.options.command_timeout);
        let _ = futures::future::join(call(hold), call(unblock)).await;
    }

    /// The counters of this module and of those above it.
    pub(crate) fn counters(&self) -> &ClientCounters {
        &self.base.shared.counters
    }

    /// Whether there is a connection for commands; in a cluster, to the queue's server, or to all.
    pub(crate) fn is_connected(&self) -> bool {
        match &self.base.servers {
            Servers::One(commands, _) => commands.session().is_some(),
            Servers::Cluster(cluster) if self.slot.is_none() => cluster.is_connected(),
            Servers::Cluster(cluster) => {
                cluster.master(self.slot).is_some_and(|master| master.link.session().is_some())
            }
        }
    }

    /// Waits for a connection for commands, within the command timeout.
    pub(crate) async fn connected(&self) -> Result<(), OpError> {
        match &self.base.servers {
            Servers::One(commands, _) => {
                let connected = timeout(self.command_timeout, commands.connected());
                connected.await.map_err(|_| commands.no_connection())?.map(drop)
            }
            Servers::Cluster(cluster) => cluster.serving(self.slot, self.command_timeout).await.map(drop),
        }
    }

    /// When the last reply to a command was received; in a cluster, from the queue's server.
    pub(crate) fn last_reply(&self) -> Option<Instant> {
        match &self.base.servers {
            Servers::One(commands, _) => Some(commands.last_reply()),
            Servers::Cluster(cluster) => Some(cluster.master(self.slot)?.link.last_reply()),
        }
    }

    /// The server's clock, epoch µs.
    pub(crate) async fn time(&self) -> Result<i64, OpError> {
        let [seconds, micros] = self.query(Command::new("TIME")).await?.into_parts()?;
        let (seconds, micros) = (seconds.into_bytes()?, micros.into_bytes()?);
        time::server_clock(&seconds, &micros).ok_or_else(|| self.desynchronised())
    }

    /// Drops the connection for commands, because a reply on it belongs to another command. Returns the error of the call
    /// that got it: nobody knows what became of the command.
    ///
    /// A caller whose reply has the shape of its command, but not the content that it must have, calls this.
    pub(crate) fn desynchronised(&self) -> OpError {
        match &self.base.servers {
            Servers::One(commands, _) => commands.desynchronised(),
            Servers::Cluster(cluster) => match cluster.master(self.slot) {
                Some(master) => master.link.desynchronised(),
                None => OpError::Unknown(cluster.topology().unknown()),
            },
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
        match &self.base.servers {
            Servers::One(commands, _) => commands.address().to_string(),
            Servers::Cluster(cluster) => {
                cluster.master(self.slot).map(|master| master.link.address().to_string()).unwrap_or_default()
            }
        }
    }

    /// The servers that commands are sent to.
    pub(crate) fn masters(&self) -> Vec<String> {
        match &self.base.servers {
            Servers::One(commands, _) => vec![commands.address().to_string()],
            Servers::Cluster(cluster) => cluster.addresses(),
        }
    }

    /// How long a command may take, the wait for a connection and retries included.
    pub(crate) fn command_timeout(&self) -> Duration {
        self.command_timeout
    }

    /// Closes the connections for commands. The other links close with their owners, which end first.
    pub(crate) async fn close(&self) {
        match &self.base.servers {
            Servers::One(commands, confirmations) => {
                if let Some(confirmations) = confirmations {
                    confirmations.link().close().await;
                }
                commands.close().await;
            }
            Servers::Cluster(cluster) => cluster.close().await,
        }
    }

    async fn check_version(&self, deadline: Instant) -> Result<(), ConnectError> {
        let reply = loop {
            let reply = self.query(Command::new("INFO").arg("server")).await;
            // A server that is busy may need more than one command timeout.
            let is_busy = matches!(reply, Err(OpError::Unknown(_) | OpError::NotExecuted(_)));
            if !is_busy || Instant::now() >= deadline {
                break reply;
            }
            sleep(backoff(0)).await;
        };
        let info = match reply {
            Ok(reply) => reply.into_bytes().unwrap_or_default(),
            // A user without permission for INFO may still use the queues. There is nothing to check then.
            Err(OpError::Server(message)) if message.starts_with("NOPERM") => return Ok(()),
            Err(error) => return Err(ConnectError::failed(error.into_cause())),
        };
        match parse_version(&info) {
            Some((version, found)) if found < OLDEST_SERVER => Err(ConnectError::OldServer(version)),
            _ => Ok(()),
        }
    }
}

/// The pause before a command is sent again that a server has refused because another one serves it, or it does in a moment. The
/// first refusals mostly name the server.
fn pause_after_refusal(refusals: u32) -> Duration {
    match refusals {
        0 | 1 => Duration::ZERO,
        more => backoff(more - 2).min(Duration::from_millis(200)),
    }
}

/// Reads `redis_version:7.0.15` out of `INFO server`. Valkey reports the Redis version it is compatible with there.
fn parse_version(info: &[u8]) -> Option<(String, (u32, u32))> {
    let info = String::from_utf8_lossy(info);
    let version = info.lines().find_map(|line| line.strip_prefix("redis_version:"))?.trim();
    let mut parts = version.split('.').map_while(|part| part.parse().ok());
    Some((version.to_owned(), (parts.next()?, parts.next()?)))
}
