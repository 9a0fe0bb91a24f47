//! One connection for one purpose, kept alive.

use std::fmt;
use std::io::ErrorKind;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use super::address::Address;
use super::client::FredClient;
use super::expect::{Expect, FOREIGN};
use super::op_error::{is_wrong_type, without_position};
use super::options::Lookup;
use super::purpose::Purpose;
use super::reply::{Frame, NoReply};
use super::session::Session;
use super::shared::Shared;
use super::silence::{IDLE, Silence, Verdict};
use super::supervised::Supervised;
use super::supervisor::Supervisor;
use super::topology::replaced;
use super::{Cause, Command, OpError, Options, Reply, library_error};

/// How long `QUIT` may take. The library's call hangs when the connection is lost meanwhile.
const QUIT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a caller waits until an idle connection has proved that it lives. After that, it is replaced.
const TEST: Duration = Duration::from_millis(500);
/// How soon an idle connection is checked again at the earliest.
const SOON: Duration = Duration::from_secs(1);
/// How long a test waits for its answer if no caller waits. The connection is given up before.
const PATIENT: Duration = Duration::from_secs(3600);

/// The number of the next try of a script.
static TAG: AtomicU32 = AtomicU32::new(1);

/// What is remembered of a command until its reply comes.
struct Sent {
    command_name: &'static str,
    expect: Expect,
    session: Option<Session>,
    /// In µs since the link was opened.
    at: u64,
    is_patient: bool,
}

/// A connection that reconnects by itself. Dropping it closes it, without `QUIT`.
///
/// A caller that waits for a reply watches the [`Silence`], and gives up a connection that is silent for too
/// long. While no caller waits, a task tests the connection from time to time: a network may forget it, and
/// tell neither side.
pub(crate) struct Link {
    connection: Supervised,
    /// For messages; `None` if it is where it is connected.
    server: Option<String>,
    shared: Shared,
    command_timeout: Duration,
    supervisor: AbortOnDropHandle<()>,
    /// Whether a task is finding out if the server still answers.
    checking: AtomicBool,
    /// Another server has replaced the one that it was connected to.
    abandoned: AtomicBool,
    /// The number of the last session with a reply that belongs to another command, plus one.
    distrusted: AtomicU64,
    opened: Instant,
    silence: Silence,
    /// A pop blocks on it. The owner of the pop watches the time.
    is_blocked: AtomicBool,
    /// A caller waits for a test of the connection.
    asked: Arc<Notify>,
    /// A test has ended.
    tested: Notify,
    /// The task that tests the connection.
    watching: OnceLock<AbortOnDropHandle<()>>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("session", &*self.connection.session.borrow()).finish_non_exhaustive()
    }
}

impl Link {
    /// The link to a client that has connected.
    pub(super) fn new(
        options: &Options,
        supervisor: Supervisor,
        purpose: Purpose,
        shared: Shared,
    ) -> Arc<Self> {
        // The owner of a subscriber sends pings of another kind.
        let is_watched = purpose != Purpose::Subscriber;
        let link = Arc::new(Self {
            connection: supervisor.supervised(),
            server: (!matches!(options.lookup, Lookup::Cluster(_))).then(|| options.server()),
            shared,
            command_timeout: options.command_timeout,
            supervisor: AbortOnDropHandle::new(tokio::spawn(supervisor.run())),
            checking: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            distrusted: AtomicU64::new(0),
            opened: Instant::now(),
            silence: Silence::default(),
            is_blocked: AtomicBool::new(false),
            asked: Arc::default(),
            tested: Notify::new(),
            watching: OnceLock::new(),
        });
        if is_watched {
            // Not before the link exists: the task may run at once, on another thread, and ends with the
            // link.
            let watching = tokio::spawn(watch(Arc::downgrade(&link)));
            let _ = link.watching.set(AbortOnDropHandle::new(watching));
        }
        link
    }

    /// Runs a command at most once, within this time. Waits for a connection first, and for its test if it
    /// was idle.
    pub(crate) async fn call(&self, command: &Command, within: Duration) -> Result<Reply, OpError> {
        let is_patient = within >= self.command_timeout;
        if within == self.command_timeout && self.session().is_some_and(|session| !self.is_idle(session)) {
            return self.send(command, None, is_patient).await;
        }
        let (session, left) = self.in_use_within(within).await?;
        self.call_in(session, command, left, is_patient).await
    }

    /// The session, and what is left of the time.
    async fn in_use_within(&self, within: Duration) -> Result<(Session, Duration), OpError> {
        let begun = Instant::now();
        let session = timeout(within, self.in_use()).await.map_err(|_| self.no_connection())??;
        Ok((session, within.saturating_sub(begun.elapsed()).max(Duration::from_millis(1))))
    }

    /// Runs a command in this session. A caller that may wait for longer than a silent connection is kept has
    /// to watch the silence.
    async fn call_in(
        &self,
        session: Session,
        command: &Command,
        within: Duration,
        is_patient: bool,
    ) -> Result<Reply, OpError> {
        let mut reply = pin!(self.send(command, Some(within), is_patient));
        let (sent, mut look_at) = (self.micros(), self.command_timeout);
        while look_at < within {
            let until = self.opened + Duration::from_micros(sent) + look_at;
            match timeout_at(until, &mut reply).await {
                Ok(reply) => return reply,
                Err(_) => match self.on_silence(Some(session), sent, self.command_timeout) {
                    Verdict::Over => break,
                    Verdict::LookAt(at) => look_at = Duration::from_micros(at.saturating_sub(sent)),
                },
            }
        }
        reply.await
    }

    /// Runs a command of so many bytes that a slow link may take longer than the command timeout to transmit
    /// them.
    pub(crate) async fn call_long(
        &self,
        command: &Command,
        within: Duration,
        bytes: usize,
    ) -> Result<Reply, OpError> {
        let is_patient = within >= self.command_timeout;
        let (session, left) = self.in_use_within(within).await?;
        self.silence.begin_long(self.micros(), bytes);
        self.call_in(session, command, left, is_patient).await
    }

    /// Runs a command that may block. The caller must await the future to its end: an element popped for a
    /// future that was dropped is lost. [`Link::reconnect`] ends it when the server has fallen silent.
    pub(crate) async fn call_blocking(&self, command: &Command) -> Result<Reply, OpError> {
        self.is_blocked.store(true, Ordering::Relaxed);
        let reply = self.send(command, None, true).await;
        self.is_blocked.store(false, Ordering::Relaxed);
        reply
    }

    /// Finds out in the background whether the server still answers on this connection, and replaces the
    /// connection if not: for a caller that did not wait long enough to know.
    pub(super) fn check_soon(self: &Arc<Self>, runtime: &Handle) {
        if self.checking.swap(true, Ordering::Relaxed) {
            return;
        }
        let link = self.clone();
        runtime.spawn(async move {
            if let Some(session) = link.session() {
                let _ = link.call_in(session, &Command::new("PING"), PATIENT, true).await;
            }
            link.checking.store(false, Ordering::Relaxed);
        });
    }

    async fn send(
        &self,
        command: &Command,
        within: Option<Duration>,
        is_patient: bool,
    ) -> Result<Reply, OpError> {
        let (sent, args) = self.prepare(command, is_patient)?;
        let executed = self.client().execute(command.name, args, within).await;
        self.finish(sent, executed)
    }

    /// What is remembered of a command, and what is sent.
    #[inline(never)]
    fn prepare(&self, command: &Command, is_patient: bool) -> Result<(Sent, Vec<Bytes>), OpError> {
        if self.connection.is_closed() {
            return Err(OpError::Closed);
        }
        if self.is_abandoned() {
            return Err(OpError::NotExecuted(replaced()));
        }
        let command_name = command.name;
        let mut args = Vec::with_capacity(command.args.len() + 1);
        args.extend_from_slice(&command.args);
        let expect = if command.is_tagged {
            let tag = TAG.fetch_add(1, Ordering::Relaxed);
            args.push(tag.to_string().into());
            Expect::Tagged { tag: tag.into(), has_text: command_name == "EVAL" }
        } else {
            Expect::of(command_name, &args)
        };
        let at = self.micros();
        // That tests the connection.
        if command_name != "PING" {
            self.silence.sends(at);
        }
        Ok((Sent { command_name, expect, session: self.session(), at, is_patient }, args))
    }

    #[inline(never)]
    fn finish(&self, sent: Sent, executed: Result<Frame, library_error::Error>) -> Result<Reply, OpError> {
        let Sent { command_name, expect, session, at, is_patient } = sent;
        let error = match executed {
            Ok(frame) => {
                self.silence.replied(self.micros(), at);
                let mut reply = self.check(expect.read(frame), session);
                if let (None, Err(error)) = (&self.shared.topology, &mut reply) {
                    error.end_without_cluster();
                }
                if let Err(error) = &reply {
                    self.note(command_name, error);
                }
                if let (Some(topology), Err(error)) = (&self.shared.topology, &reply)
                    && error.is_not_here()
                {
                    topology.refused(error, &self.address());
                }
                if matches!(&reply, Err(OpError::NotExecuted(why)) if why.says("READONLY")) {
                    // The server was demoted. The new master answers at the same address.
                    session.into_iter().for_each(|session| self.shared.demotion.found_by(session));
                    self.give_up(session);
                }
                return reply;
            }
            Err(error) => error,
        };
        if library_error::is_timeout(&error) {
            if is_patient {
                let waited = Duration::from_micros(self.micros().saturating_sub(at));
                self.on_silence(session, at, waited.min(self.command_timeout));
            }
        } else {
            // The connection is lost. The supervisor may notice it later than the caller, whose retry must
            // not get in front of the handshake of the next connection.
            self.end(session);
        }
        let error = library_error::of_sent(&error);
        self.note(command_name, &error);
        Err(error)
    }

    /// A command that was sent at `sent` was not answered in time. The connection is given up if it has been
    /// silent for too long.
    fn on_silence(&self, session: Option<Session>, sent: u64, patience: Duration) -> Verdict {
        let now = self.micros();
        if self.is_blocked.load(Ordering::Relaxed) {
            return Verdict::LookAt(now + self.command_timeout.as_micros() as u64);
        }
        let verdict = self.silence.judge(now, sent, patience);
        if verdict == Verdict::Over {
            self.give_up(session);
        }
        verdict
    }

    fn idle_for(&self, session: Session) -> Duration {
        self.last_reply().max(session.answered).elapsed()
    }

    /// How long ago the server last answered, the handshake included.
    pub(super) fn silent_for(&self) -> Duration {
        self.session().map_or_else(|| self.last_reply().elapsed(), |session| self.idle_for(session))
    }

    fn is_idle(&self, session: Session) -> bool {
        let (now, patience) = (self.micros(), self.command_timeout);
        self.idle_for(session) >= IDLE
            && !self.silence.is_long(now, patience)
            && !self.silence.is_awaited(now, patience)
    }

    /// Waits until there is a connection on which the server has answered lately, or answers now. As
    /// [`Link::connected`].
    pub(crate) async fn in_use(&self) -> Result<Session, OpError> {
        loop {
            let session = self.connected().await?;
            let mut tested = pin!(self.tested.notified());
            tested.as_mut().enable();
            // Without the task, nobody would test it.
            if !self.is_watched() || !self.is_idle(session) {
                return Ok(session);
            }
            self.asked.notify_one();
            tested.await;
        }
    }

    /// Tests the connection if it is idle, and gives it up if it is dead. Returns when to look again.
    async fn test_if_idle(&self, is_asked: bool) -> Duration {
        if let Some(session) = self.session()
            && self.is_idle(session)
            && !self.is_blocked.load(Ordering::Relaxed)
        {
            let ping = Command::new("PING");
            let mut ping = pin!(self.call_in(session, &ping, PATIENT, true));
            let asked = async {
                if !is_asked {
                    self.asked.notified().await;
                }
                sleep(TEST).await;
            };
            tokio::select! {
                biased;
                _ = &mut ping => {}
                () = asked => self.give_up(Some(session)),
            }
        }
        self.tested.notify_waiters();
        let idle = self.session().map_or(Duration::ZERO, |session| self.idle_for(session));
        IDLE.saturating_sub(idle).max(SOON)
    }

    /// Records an error for `Client::stats`, unless it belongs to normal work, or is recorded with the names
    /// of the keys.
    pub(super) fn note(&self, command: &str, error: &OpError) {
        let is_normal = |why: &str| {
            ["NOSCRIPT", "UNBLOCKED"].iter().any(|code| why.starts_with(code))
                || is_wrong_type(why)
                // Any reply to a test shows that the server lives.
                || command == "PING"
        };
        let is_redirect = self.shared.topology.is_some() && error.is_redirect();
        if !is_redirect && !matches!(error, OpError::Server(why) if is_normal(why)) {
            self.shared.counters.failed(command, without_position(&error.to_string()));
        }
    }

    /// When the last reply came.
    pub(super) fn last_reply(&self) -> Instant {
        self.opened + Duration::from_micros(self.silence.last_reply())
    }

    fn micros(&self) -> u64 {
        self.opened.elapsed().as_micros() as u64
    }

    /// The error that there is no connection, and why.
    pub(crate) fn no_connection(&self) -> OpError {
        let why = self.connection.trouble();
        if self.is_abandoned() {
            return OpError::NotExecuted(replaced());
        }
        let server = self.server.clone().unwrap_or_else(|| self.address().to_string());
        let text = format!("there is no connection to {server}");
        OpError::NotExecuted(match why {
            Some(why) => Cause::new(format!("{text} ({why})"), why.source().cloned()),
            None => Cause::of_kind(ErrorKind::NotConnected, "there is no connection").instead(text),
        })
    }

    /// Waits until there is a connection. [`OpError::Closed`] when there will be none any more.
    pub(crate) async fn connected(&self) -> Result<Session, OpError> {
        self.connection.next_session().await.ok_or_else(|| match self.is_abandoned() {
            true => OpError::NotExecuted(replaced()),
            false => OpError::Closed,
        })
    }

    /// The session, while there is a connection.
    pub(crate) fn session(&self) -> Option<Session> {
        self.connection.session()
    }

    /// Ends it, because another server has replaced the one that it is connected to. What is in flight ends
    /// with [`OpError::Unknown`], and what follows with [`OpError::NotExecuted`].
    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
        self.supervisor.abort();
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Where it is connected, or tries to be.
    pub(super) fn address(&self) -> Arc<Address> {
        self.connection.address()
    }

    /// How long a command may take, and the server be silent.
    pub(super) fn command_timeout(&self) -> Duration {
        self.command_timeout
    }

    /// Follows the sessions from here on.
    pub(crate) fn sessions(&self) -> watch::Receiver<Option<Session>> {
        self.connection.sessions()
    }

    /// Replaces the connection. What is in flight ends with [`OpError::Unknown`].
    pub(crate) fn reconnect(&self) {
        self.give_up(self.session());
    }

    /// Replaces the connection, because a reply on it belongs to another command: those that follow may, too.
    /// Returns the error of the call that got it.
    pub(crate) fn desynchronised(&self) -> OpError {
        self.distrust(self.session());
        NoReply::Impossible(FOREIGN).into()
    }

    fn check(&self, reply: Result<Reply, NoReply>, session: Option<Session>) -> Result<Reply, OpError> {
        let reply = match reply {
            Err(NoReply::Impossible(_)) => {
                self.distrust(session);
                reply
            }
            _ if session.is_some_and(|session| self.distrusted.load(Ordering::Relaxed) > session.number) => {
                Err(NoReply::Impossible(FOREIGN))
            }
            _ => reply,
        };
        reply.map_err(OpError::from)
    }

    fn distrust(&self, session: Option<Session>) {
        if let Some(session) = session {
            self.distrusted.fetch_max(session.number + 1, Ordering::Relaxed);
            self.give_up(Some(session));
        }
    }

    /// Says that the connection is about to be replaced and is not at fault.
    pub(super) fn expect_loss(&self) {
        self.connection.expect_loss();
    }

    /// Requests a new connection, unless another caller has: once for each session is enough.
    fn give_up(&self, session: Option<Session>) {
        if self.end(session) {
            // The caller need not wait for it.
            self.client().force_reconnection();
        }
    }

    /// Ends a session at once: commands wait for the next one from now on. Returns whether it had not ended
    /// before.
    fn end(&self, session: Option<Session>) -> bool {
        let is_first = self.connection.end(session);
        if is_first {
            self.silence.lost();
        }
        is_first
    }

    /// Whether a task tests the connection.
    pub(super) fn is_watched(&self) -> bool {
        self.watching.get().is_some_and(|watching| !watching.is_finished())
    }

    /// The client library's own handle. After a failover, it is another one.
    pub(super) fn client(&self) -> FredClient {
        self.connection.client()
    }

    /// Closes the connection: with `QUIT`, within one second, else without.
    pub(crate) async fn close(&self) {
        self.connection.close();
        let _ = timeout(QUIT_TIMEOUT, self.client().quit()).await;
        self.supervisor.abort();
    }
}

/// Tests the connection whenever it is idle, until the link is dropped.
async fn watch(link: Weak<Link>) {
    let mut pause = IDLE;
    loop {
        let asked = {
            let Some(link) = link.upgrade() else { return };
            link.asked.clone()
        };
        let is_asked = timeout(pause, asked.notified()).await.is_ok();
        let Some(link) = link.upgrade() else { return };
        pause = link.test_if_idle(is_asked).await;
    }
}
