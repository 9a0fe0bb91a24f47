//! The only room that knows the client library: connections, commands, replies, and what an error means for the caller.
//!
//! A client has one connection for commands, one for subscriptions and one per kind of blocking pop that is in use.
//! Whatever goes wrong is one of four things, because a caller can act on no more: see [`OpError`].

mod connect;
mod credentials;
mod failover;
mod library;
mod link;
mod op_error;
mod options;
mod probe;
mod reply;
mod session;
mod subscriber;
#[cfg(feature = "tls")]
mod tls;

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout_at};

pub(crate) use credentials::{Credentials, Provider};
pub(crate) use link::Link;
pub(crate) use op_error::{Cause, OpError};
pub(crate) use options::{ConnectError, Options, Settings};
pub(crate) use reply::Reply;
pub(crate) use subscriber::{Channels, Notice};
#[cfg(feature = "tls")]
pub(crate) use tls::TlsOptions;

use crate::pacing::Retries;
use crate::telemetry::ClientCounters;
use failover::Demotion;
use link::Role;
use session::Session;

/// The oldest server with every command that is used (`LPOP key count`, `LPOS`, `BLMOVE`).
const OLDEST_SERVER: (u32, u32) = (6, 2);

/// One command and its arguments, binary safe.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    name: &'static str,
    args: Vec<Bytes>,
}

impl Command {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, args: Vec::with_capacity(4) }
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
}

/// What all connections of a client share.
#[derive(Clone, Debug)]
struct Shared {
    demotion: Demotion,
    counters: ClientCounters,
}

/// The connection for commands, and the recipe for the others.
#[derive(Clone, Debug)]
pub(crate) struct Conn {
    options: Arc<Options>,
    commands: Arc<Link>,
    shared: Shared,
    runtime: Handle,
    command_timeout: Duration,
}

impl Conn {
    /// Connects and checks the server's version. Keeps trying while no server answers, within `connect_timeout`.
    pub(crate) async fn connect(options: Options) -> Result<Self, ConnectError> {
        let options = Arc::new(options);
        let shared = Shared { demotion: Demotion::none_yet(), counters: ClientCounters::new() };
        let commands = Link::open(&options, Role::Commands, &shared).await?;
        let command_timeout = options.command_timeout;
        let (commands, runtime) = (Arc::new(commands), Handle::current());
        let conn = Self { options, commands, shared, runtime, command_timeout };
        conn.check_version().await?;
        Ok(conn)
    }

    /// The same connections and counters, with another command timeout (above zero).
    ///
    /// A longer timeout than that of [`Options`] applies to the wait for a connection and to retries. A connection on
    /// which the server is silent is replaced after the timeout of [`Options`] all the same.
    #[allow(dead_code)]
    pub(crate) fn with_timeout(&self, command_timeout: Duration) -> Self {
        Self { command_timeout, ..self.clone() }
    }

    /// A connection of its own for blocking pops. Tries once.
    pub(crate) async fn open_blocking(&self) -> Result<Link, ConnectError> {
        Link::open_once(&self.options, Role::Blocking, &self.shared).await
    }

    /// A connection of its own for subscriptions. Tries once.
    async fn open_subscriber(&self) -> Result<Link, ConnectError> {
        Link::open_once(&self.options, Role::Subscriber, &self.shared).await
    }

    /// Runs a command at most once.
    ///
    /// Dropping the future does not withdraw a command that is on its way: its effect happens, its reply is lost. So
    /// whatever takes an element out of Redis is called by a task that is never dropped half-way (see `pops`).
    pub(crate) async fn call(&self, command: Command) -> Result<Reply, OpError> {
        let result = self.commands.call(command, self.command_timeout).await;
        if matches!(&result, Err(OpError::Unknown(cause)) if cause.is_timeout()) {
            self.on_timeout();
        }
        result
    }

    /// Runs a command that may be run twice without harm: again when the reply was lost, within the command timeout.
    pub(crate) async fn call_repeatable(&self, command: Command) -> Result<Reply, OpError> {
        let deadline = Instant::now() + self.command_timeout;
        let mut retries = Retries::until(deadline);
        loop {
            let call = self.commands.call(command.clone(), self.command_timeout);
            let error = match timeout_at(deadline, call).await {
                Ok(Err(error @ OpError::Unknown(_))) => error,
                Ok(result) => return result,
                // Whatever became of earlier tries: it does no harm to say that there is no connection.
                Err(_) if self.commands.session().is_none() => return Err(self.commands.no_connection()),
                Err(_) => {
                    self.on_timeout();
                    return Err(OpError::Unknown(no_reply()));
                }
            };
            if !retries.pause().await {
                self.on_timeout();
                return Err(error);
            }
        }
    }

    /// A caller that waits for less than the connection's own timeout cannot tell whether the server still answers.
    fn on_timeout(&self) {
        if self.command_timeout < self.options.command_timeout {
            self.commands.check_soon(&self.runtime);
        }
    }

    /// What is counted, by this room and by those above.
    pub(crate) fn counters(&self) -> &ClientCounters {
        &self.shared.counters
    }

    /// Whether the connection for commands stands.
    pub(crate) fn is_connected(&self) -> bool {
        self.commands.session().is_some()
    }

    /// When the last reply to a command came.
    pub(crate) fn last_reply(&self) -> Instant {
        self.commands.last_reply()
    }

    /// What the server's clock shows, epoch µs.
    pub(crate) async fn time(&self) -> Result<i64, OpError> {
        let [seconds, micros] = self.call_repeatable(Command::new("TIME")).await?.into_parts()?;
        let number = |reply: Reply| -> Result<i64, OpError> {
            let text = reply.into_bytes()?;
            let number = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
            number.ok_or_else(|| OpError::Server("TIME did not answer in numbers".into()))
        };
        Ok(number(seconds)? * 1_000_000 + number(micros)?)
    }

    /// Where the connections live. A task that others depend on runs there: a caller may be in another runtime, which
    /// stands still when nobody drives it.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Host and port, for messages.
    pub(crate) fn server(&self) -> String {
        self.options.server()
    }

    /// How long a command may take.
    pub(crate) fn command_timeout(&self) -> Duration {
        self.command_timeout
    }

    /// Closes the command connection. The other links close with their owners, which end first.
    pub(crate) async fn close(&self) {
        self.commands.close().await;
    }

    async fn check_version(&self) -> Result<(), ConnectError> {
        let info = match self.call_repeatable(Command::new("INFO").arg("server")).await {
            Ok(reply) => reply.into_bytes().unwrap_or_default(),
            // A user whose rights leave out INFO may still use the queues; there is nothing to check then.
            Err(OpError::Server(message)) if message.starts_with("NOPERM") => return Ok(()),
            Err(error) => return Err(ConnectError::failed(error.into_cause())),
        };
        match parse_version(&info) {
            Some((version, found)) if found < OLDEST_SERVER => Err(ConnectError::OldServer(version)),
            _ => Ok(()),
        }
    }
}

fn no_reply() -> Cause {
    Cause::of_kind(ErrorKind::TimedOut, "no reply within the command timeout")
}

/// Reads `redis_version:7.0.15` out of `INFO server`. Valkey reports the Redis version it is compatible with there.
fn parse_version(info: &[u8]) -> Option<(String, (u32, u32))> {
    let info = String::from_utf8_lossy(info);
    let version = info.lines().find_map(|line| line.strip_prefix("redis_version:"))?.trim();
    let mut parts = version.split('.').map_while(|part| part.parse().ok());
    Some((version.to_owned(), (parts.next()?, parts.next()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_read_from_info() {
        let info = b"# Server\r\nredis_version:6.0.16\r\nredis_mode:standalone\r\n";
        assert_eq!(parse_version(info), Some(("6.0.16".into(), (6, 0))));
        assert!(parse_version(info).unwrap().1 < OLDEST_SERVER);
        assert!(parse_version(b"redis_version:7.0.15").unwrap().1 > OLDEST_SERVER);
        assert_eq!(parse_version(b"nothing"), None);
    }
}
