//! Connections, commands, replies, and what an error means for the caller. Only this module knows the client
//! library: `client`, `establish`, `library_error`, `reply` and `url` name it.
//!
//! `docs/scaling.md` has the connections of a client. Each is a [`Link`], which reconnects by itself.
//!
//! With sentinels, each link is led to the master that they name. In a cluster, each master has a link for
//! commands and one for announcements, and pops are grouped by slot: `slots` has the table of slots,
//! `topology` the present one, and `master` and `cluster` write it.
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
//! | It reconnects indefinitely, and reports it. | `tests::a_connection_that_is_killed_comes_back_by_itself`; `links` |
//! | An aborted connection task closes the connection. | `tests::dropping_a_link_closes_its_connection` |
//! | A refused SUBSCRIBE is the reply to the PING behind it. | `a_channel_that_is_refused_does_not_keep_others_waiting` in `links` |
//! | I/O errors are turned into text by `Debug`. | `library_error::tests` |
//! | A credentials provider is asked at each connection, and may take a while. | `credentials` |
//! | The TLS configuration and server name are used as they are. | `tls` |
//!
//! And against its properties: a dropped future of a command is no cancellation, so a pop is awaited by a
//! task that is never dropped; `SubscriberClient` is not used, since its empty SUBSCRIBE shifts replies;
//! scripts are not reloaded by the library, since it hangs beside a blocking pop; a connection that stays
//! silent is aborted, since the library reconnects only when it has sent what it is sending; an array that
//! begins with `message` or the like is taken for an announcement, see `scripts`.

mod address;
mod call;
mod client;
mod cluster;
mod command;
mod commands;
mod confirmations;
mod connect;
mod connect_error;
mod credentials;
mod demotion;
mod establish;
mod expect;
mod handshake;
mod info;
mod library_error;
mod link;
mod master;
mod op_error;
mod open;
mod options;
mod patterns;
mod probe;
mod purpose;
mod pushed;
mod replicas;
mod reply;
mod routing;
mod sentinel;
mod session;
mod shared;
mod silence;
mod slot;
mod slots;
mod subscriber;
mod subscribers;
mod supervised;
mod supervisor;
#[cfg(all(test, workspace))]
mod tests;
#[cfg(feature = "tls")]
mod tls;
mod too_large;
mod topology;
mod tracker;
mod url;
mod wrong_type;

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;

pub(crate) use cluster::ServerId;
pub(crate) use command::{Command, Digits};
pub(crate) use confirmations::Unconfirmed;
pub(crate) use connect_error::ConnectError;
pub(crate) use credentials::{Credentials, Provider};
pub(crate) use info::{field, product};
pub(crate) use link::Link;
pub(crate) use op_error::{Cause, OpError, is_forbidden, line_of, without_position};
pub(crate) use options::{Options, Replicas, Settings};
pub(crate) use reply::Reply;
pub(crate) use sentinel::Opinion;
pub(crate) use slot::Slot;
pub(crate) use subscriber::{Channels, Notice};
#[cfg(feature = "tls")]
pub(crate) use tls::TlsOptions;
pub(crate) use too_large::LARGE;
pub(crate) use tracker::{Change, Changes};
pub(crate) use wrong_type::wrong_type;

use crate::telemetry::ClientCounters;
use cluster::Cluster;
use commands::Commands;
use purpose::Purpose;
use shared::Shared;

/// A command may take the command timeout, and as long again for each such number of bytes.
const LONG: usize = 2048;
/// No duration of a client is longer, so that no sum of times overflows.
pub(crate) const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

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
    /// How many bytes the commands, or their replies, have that are so long that a slow link needs time for
    /// them.
    long: Option<usize>,
}

/// What is the same for all callers.
#[derive(Debug)]
struct Base {
    options: Options,
    servers: Servers,
    shared: Shared,
    runtime: Handle,
    /// Follows the sentinels, if they say where to connect, until the client is closed, or its last handle is
    /// dropped.
    sentinels: Option<AbortOnDropHandle<()>>,
}

impl Conn {
    /// The same connections and counters, with another command timeout, of at least 1 ms and a year at most.
    ///
    /// A longer timeout than that of [`Options`] applies to the wait for a connection and to retries. A
    /// connection on which the server is silent is still replaced after the timeout of [`Options`].
    pub(crate) fn with_timeout(&self, command_timeout: Duration) -> Self {
        let command_timeout = command_timeout.clamp(Duration::from_millis(1), LONGEST);
        Self { command_timeout, ..self.clone() }
    }

    /// The same, for a command of this many bytes: a slow link may take longer than the command timeout to
    /// transmit it, and is not given up for that. A handle with a shorter timeout than that of [`Options`]
    /// keeps it.
    pub(crate) fn for_long(&self, bytes: usize) -> Self {
        let timeout = self.base.options.command_timeout;
        let times = u32::try_from(1 + bytes / LONG).unwrap_or(u32::MAX);
        let long = timeout.saturating_mul(times).min(LONGEST);
        let is_hasty = self.command_timeout < timeout;
        let command_timeout = if is_hasty { self.command_timeout } else { self.command_timeout.max(long) };
        Self { command_timeout, long: Some(bytes), ..self.clone() }
    }

    /// The same, for a command whose reply may be so long that a slow link takes longer than the command
    /// timeout to transmit it.
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
        Link::open_once(&self.base.options, Purpose::Blocking, &shared, self.lead()).await
    }

    /// The counters of this module and of those above it.
    pub(crate) fn counters(&self) -> &ClientCounters {
        &self.base.shared.counters
    }

    /// The connections to the queue's server; to any in a cluster, if this is for no queue. `None` while no
    /// server has its slot.
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

    /// Time since the server last answered; in a cluster, the master that has been silent for longest. `None`
    /// if none is known.
    pub(crate) fn silent_for(&self) -> Option<Duration> {
        match &self.base.servers {
            Servers::One(commands) => Some(commands.link.silent_for()),
            Servers::Cluster(cluster) => {
                let masters = cluster.slots_of_masters().into_iter();
                let masters = masters.filter_map(|slot| cluster.master(Some(slot)));
                masters.map(|master| master.commands.link.silent_for()).max()
            }
        }
    }

    /// Drops the connection for commands, because a reply on it belongs to another command. Returns the error
    /// of the call that got it: whether the command was executed is not known.
    ///
    /// A caller whose reply has the shape of its command, but not the content that it must have, calls this.
    pub(crate) fn desynchronised(&self) -> OpError {
        match self.commands() {
            Some(commands) => commands.link.desynchronised(),
            None => OpError::Unknown("no server of the slot is known".into()),
        }
    }

    /// Replaces the connection for commands; in a cluster, to the queue's server. What is in flight ends with
    /// [`OpError::Unknown`].
    pub(crate) fn reconnect(&self) {
        if let Some(commands) = self.commands() {
            commands.link.reconnect();
        }
    }

    /// The runtime of the connections. A task that others depend on runs there: a caller may be in another
    /// runtime, which makes no progress while it is not driven.
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

    /// The database whose keys it works on.
    pub(crate) fn database(&self) -> u32 {
        self.base.options.database.unwrap_or(0).into()
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

    /// Closes the connections for commands, and those to sentinels. The other links close with their owners,
    /// which end first.
    pub(crate) async fn close(&self) {
        self.base.sentinels.iter().for_each(AbortOnDropHandle::abort);
        match &self.base.servers {
            Servers::One(commands) => commands.close().await,
            Servers::Cluster(cluster) => cluster.close().await,
        }
    }
}
