//! One connection in one role, kept alive.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use fred::clients::Client;
use fred::error::{Error as FredError, ErrorKind as FredErrorKind};
use fred::interfaces::{ClientLike, EventInterface};
use fred::types::config::{
    ConnectionConfig, Options as CallOptions, PerformanceConfig, ReconnectPolicy, TcpConfig,
    UnresponsiveConfig,
};
use fred::types::{Builder, ClusterHash, CustomCommand, Message};
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::session::{HANDSHAKE_TIMEOUT, Supervisor, Trouble};
use super::{Command, ConnectError, OpError, Options, Reply, Session, Shared};
use crate::telemetry::events;

/// How long one try to open a socket may take.
const SOCKET_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a polite goodbye may take. It never comes back when the connection is lost meanwhile.
const QUIT_TIMEOUT: Duration = Duration::from_secs(1);

/// What a connection is for; it decides the timeouts that can work on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Every command has a timeout, and a silent server is noticed by it.
    Commands,
    /// A command may block for as long as it likes: its owner watches the time.
    Blocking,
    /// Receives messages. Its owner pings.
    Subscriber,
}

impl Role {
    /// As events and errors name it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Commands => "commands",
            Self::Blocking => "pops",
            Self::Subscriber => "announcements",
        }
    }
}

/// A connection that reconnects by itself. Dropping it closes it, without a goodbye.
pub(crate) struct Link {
    client: Client,
    /// For messages.
    server: String,
    shared: Shared,
    command_timeout: Duration,
    /// Why there is no session, while there is none.
    trouble: Trouble,
    session: watch::Receiver<Option<Session>>,
    /// To end a session. The supervisor owns it: when that has ended, there will be no further session.
    sessions: Weak<watch::Sender<Option<Session>>>,
    supervisor: AbortOnDropHandle<()>,
    /// Whether the next loss of the connection is our own choice.
    chosen: Arc<AtomicBool>,
    closed: AtomicBool,
    opened: Instant,
    /// When the last reply came, in ms since the link was opened.
    last_reply: AtomicU64,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("session", &*self.session.borrow()).finish_non_exhaustive()
    }
}

impl Link {
    /// Connects, again and again until `connect_timeout` has passed: a service may start before its server.
    /// What waiting does not mend (credentials, TLS) fails at once.
    pub(super) async fn open(options: &Options, role: Role, shared: &Shared) -> Result<Self, ConnectError> {
        let deadline = Instant::now() + options.connect_timeout;
        let mut pause = Duration::from_millis(20);
        let mut is_first = true;
        loop {
            match Self::open_once(options, role, shared).await {
                Err(ConnectError::Failed(why)) if Instant::now() + pause < deadline => {
                    if is_first {
                        events::connecting_failing(&options.server(), &why);
                    }
                }
                result => return result,
            }
            is_first = false;
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(500));
        }
    }

    /// Connects, or says why not.
    pub(super) async fn open_once(
        options: &Options,
        role: Role,
        shared: &Shared,
    ) -> Result<Self, ConnectError> {
        let begun = Instant::now();
        let client = build(options, role).map_err(|error| ConnectError::Url(error.details().to_owned()))?;
        let within = options.connect_timeout.min(SOCKET_TIMEOUT + HANDSHAKE_TIMEOUT);
        // `init()` would leave its task behind, and with it a connection, when it is dropped half-way.
        let mut connection = AbortOnDropHandle::new(client.connect());
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
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(refusal(&error)),
            Err(_) => return Err(ConnectError::Failed("the server does not answer".into())),
        }
        let name = options.client_name.clone();
        let supervisor = Supervisor::start(client.clone(), name, connection, begun, role, shared.clone())
            .await
            .map_err(|error| match error {
                OpError::Server(why) => ConnectError::Refused(why),
                error => ConnectError::Failed(error.to_string()),
            })?;
        let (session, sessions) = supervisor.sessions();
        let trouble = supervisor.trouble();
        let chosen = supervisor.chosen();
        let supervisor = AbortOnDropHandle::new(tokio::spawn(supervisor.run()));
        Ok(Self {
            client,
            server: options.server(),
            shared: shared.clone(),
            command_timeout: options.command_timeout,
            trouble,
            session,
            sessions,
            supervisor,
            chosen,
            closed: AtomicBool::new(false),
            opened: Instant::now(),
            last_reply: AtomicU64::new(0),
        })
    }

    /// Runs a command at most once; waits for a connection first, no longer than the command timeout.
    pub(crate) async fn call(&self, command: Command) -> Result<Reply, OpError> {
        if self.session().is_some() {
            return self.send(&self.client, command).await;
        }
        let begun = Instant::now();
        timeout(self.command_timeout, self.connected()).await.map_err(|_| self.no_connection())??;
        let left = self.command_timeout.saturating_sub(begun.elapsed()).max(Duration::from_millis(1));
        let options = CallOptions { timeout: Some(left), ..CallOptions::default() };
        self.send(&self.client.with_options(&options), command).await
    }

    /// Runs a command that may block. The caller must see the future through: an element popped for a future that
    /// was dropped is gone. [`Link::reconnect`] ends it when the server has fallen silent.
    pub(crate) async fn call_blocking(&self, command: Command) -> Result<Reply, OpError> {
        self.send(&self.client, command).await
    }

    async fn send(&self, client: &impl ClientLike, command: Command) -> Result<Reply, OpError> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(OpError::Closed);
        }
        let blocking = command.name.starts_with('B');
        let command_name = command.name;
        let custom = CustomCommand::new_static(command_name, ClusterHash::FirstKey, blocking);
        let (session, sent) = (self.session(), self.millis());
        let error = match client.custom_raw(custom, command.args).await {
            Ok(frame) => {
                self.last_reply.fetch_max(self.millis(), Ordering::Relaxed);
                let reply = Reply::of_frame(frame);
                if let Err(error) = &reply {
                    self.note(command_name, error);
                }
                if matches!(&reply, Err(OpError::NotExecuted(why)) if why.contains("READONLY")) {
                    // The server was demoted: whoever is the master now answers at the same address.
                    session.into_iter().for_each(|session| self.shared.demotion.found_by(session));
                    self.give_up(session);
                }
                return reply;
            }
            Err(error) => error,
        };
        if *error.kind() == FredErrorKind::Timeout {
            // The library's own check for a silent server is put off by every further command that is written.
            if self.last_reply.load(Ordering::Relaxed) < sent {
                self.give_up(session);
            }
        } else {
            // The connection is lost. The supervisor may hear of it later than the caller, whose next try must not get
            // in front of the introduction of the next connection.
            self.end(session);
        }
        let error = OpError::of_sent(&error);
        self.note(command_name, &error);
        Err(error)
    }

    /// Keeps an error for those who ask how the client is, unless it belongs to normal work.
    pub(super) fn note(&self, command: &str, error: &OpError) {
        let is_normal = |why: &str| ["NOSCRIPT", "UNBLOCKED"].iter().any(|code| why.starts_with(code));
        if !matches!(error, OpError::Server(why) if is_normal(why)) {
            self.shared.counters.failed(command, error);
        }
    }

    /// When the last reply came.
    pub(super) fn last_reply(&self) -> Instant {
        self.opened + Duration::from_millis(self.last_reply.load(Ordering::Relaxed))
    }

    fn millis(&self) -> u64 {
        self.opened.elapsed().as_millis() as u64
    }

    /// That there is none, and why.
    pub(crate) fn no_connection(&self) -> OpError {
        let why = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let why = why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        OpError::NotExecuted(format!("there is no connection to {}{why}", self.server))
    }

    /// Waits until there is a connection.
    pub(crate) async fn connected(&self) -> Result<Session, OpError> {
        let mut session = self.session.clone();
        match session.wait_for(Option::is_some).await {
            Ok(session) => session.ok_or(OpError::Closed),
            Err(_) => Err(OpError::Closed),
        }
    }

    /// The session, while there is a connection.
    pub(crate) fn session(&self) -> Option<Session> {
        *self.session.borrow()
    }

    /// Follows the sessions from here on.
    pub(crate) fn sessions(&self) -> watch::Receiver<Option<Session>> {
        self.session.clone()
    }

    /// Gives the present connection up and makes a new one; what is in flight ends with [`OpError::Unknown`].
    pub(crate) fn reconnect(&self) {
        self.give_up(self.session());
    }

    /// Says that the connection is about to be given up for no fault of its own.
    pub(super) fn choose_loss(&self) {
        self.chosen.store(true, Ordering::Relaxed);
    }

    /// Asks for a new connection, unless another caller has: once for each session is enough.
    fn give_up(&self, session: Option<Session>) {
        if self.end(session) {
            let client = self.client.clone();
            // Its future ends with the reconnection, for which the caller need not wait.
            tokio::spawn(async move { client.force_reconnection().await });
        }
    }

    /// Ends a session at once: what is sent from now on waits for the next one. Whether it had not ended before.
    fn end(&self, session: Option<Session>) -> bool {
        let Some((session, sessions)) = session.zip(self.sessions.upgrade()) else { return false };
        sessions.send_if_modified(|present| present.take_if(|present| *present == session).is_some())
    }

    /// The client library's own handle, for subscriptions.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn messages(&self) -> broadcast::Receiver<Message> {
        self.client.message_rx()
    }

    /// Says goodbye, for one second at most, and ends.
    pub(crate) async fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        let _ = timeout(QUIT_TIMEOUT, self.client.quit()).await;
        self.supervisor.abort();
    }
}

fn build(options: &Options, role: Role) -> Result<Client, FredError> {
    let connection = ConnectionConfig {
        connection_timeout: SOCKET_TIMEOUT.min(options.connect_timeout),
        internal_command_timeout: HANDSHAKE_TIMEOUT,
        // More would run a command twice whose reply was lost.
        max_command_attempts: 1,
        unresponsive: UnresponsiveConfig {
            // Blocked and subscribed connections are silent by nature; their owners watch them.
            max_timeout: (role == Role::Commands).then_some(options.command_timeout),
            interval: Duration::from_secs(1),
        },
        tcp: TcpConfig { nodelay: Some(true), ..TcpConfig::default() },
        ..ConnectionConfig::default()
    };
    let performance = PerformanceConfig {
        default_command_timeout: match role {
            Role::Commands => options.command_timeout,
            Role::Blocking | Role::Subscriber => Duration::ZERO,
        },
        broadcast_channel_capacity: if role == Role::Subscriber { 4096 } else { 32 },
        ..PerformanceConfig::default()
    };
    let mut policy = ReconnectPolicy::new_exponential(0, 50, 5_000, 2);
    policy.set_jitter(25);
    let mut builder = Builder::from_config(options.config.clone());
    builder.set_connection_config(connection).set_performance_config(performance).set_policy(policy);
    builder.build()
}

fn refusal(error: &FredError) -> ConnectError {
    let why = error.details().to_owned();
    if why.contains("DB index is out of range") {
        return ConnectError::Url(format!("the server has no database of this number ({why})"));
    }
    match error.kind() {
        FredErrorKind::Auth => ConnectError::Refused(why),
        FredErrorKind::Config | FredErrorKind::Url | FredErrorKind::InvalidArgument => ConnectError::Url(why),
        _ => ConnectError::Failed(why),
    }
}
