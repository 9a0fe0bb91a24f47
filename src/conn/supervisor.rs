//! The task that watches over the sessions of a connection.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

use super::client::{Back, Connection, FredClient, Lost};
use super::demotion::YOUNG;
use super::establish::{Established, NotEstablished, establish};
use super::handshake::{HANDSHAKE_TIMEOUT, Peer, handshake};
use super::info::field;
use super::probe::probe;
use super::purpose::Purpose;
use super::session::{Session, Sessions};
use super::shared::Shared;
use super::supervised::{Connected, LastCause, Supervised};
use super::topology::{Lead, outdated, replaced};
use super::{Cause, OpError, Options, library_error};
use crate::pacing::pause_after;
use crate::telemetry::events;

/// How often a connection that reported an error, but no reconnection since, is asked whether it lives.
const PROBE: Duration = Duration::from_millis(500);
/// The pauses between the tries to connect to a new master grow up to this one.
const LAST_PAUSE: u32 = 4;
/// The pause before a server that is not the master is left.
const NOT_MASTER: Duration = Duration::from_millis(50);

/// Keeps the session up to date for as long as the link lives.
pub(super) struct Supervisor {
    client: FredClient,
    /// The same, for the link.
    shown: Arc<RwLock<Connected>>,
    options: Options,
    /// The same, for the present server.
    here: Options,
    purpose: Purpose,
    shared: Shared,
    /// Leads it to another server after a failover, if it is led.
    lead: Option<Lead>,
    /// It has not tried to connect yet.
    is_new: bool,
    connection: Connection,
    lost: broadcast::Receiver<Lost>,
    back: broadcast::Receiver<Back>,
    /// The connection that did the last handshake, if the server has named its address.
    last: Option<Peer>,
    number: u64,
    /// When the present connection was not yet open.
    begun: Instant,
    sessions: Arc<Sessions>,
    trouble: LastCause,
    loss: Loss,
    /// Set before this client closes the connection itself, so that the loss is not reported.
    expected_loss: Arc<AtomicBool>,
    closed: Arc<AtomicBool>,
}

/// What is known of the loss of a connection, until there is a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    None,
    Expected,
    Reported,
}

/// What the supervisor reacts to.
enum Event {
    /// A caller has ended the session.
    GivenUp,
    /// The library reports that the connection is lost, and why, unless that report was overtaken by others.
    Lost(Option<library_error::Error>),
    /// The library has no connection yet.
    Nothing,
    /// The library has a new connection.
    Reconnected,
    /// There is no session, but the library has a connection and has not reported it.
    ConnectedUnnoticed,
    /// Another connection has met a demoted server.
    Demoted,
    /// Another server is the master now, or serves the slot.
    Outdated,
    /// The library's task has ended. It says why, unless it was asked to end.
    Ended(Option<library_error::Error>),
}

impl Supervisor {
    /// Begins the first session of a client that has connected since `begun`.
    pub(super) async fn start(
        options: &Options,
        here: &Options,
        established: Established,
        begun: Instant,
        purpose: Purpose,
        shared: Shared,
        lead: Option<Lead>,
    ) -> Result<Self, OpError> {
        let options = options.clone();
        let mut new = Self { options, lead, begun, ..Self::new(here, established, purpose, shared) };
        new.handshake().await?;
        Ok(new)
    }

    /// For a client that has not connected.
    pub(super) fn unconnected(here: &Options, client: FredClient, purpose: Purpose, shared: Shared) -> Self {
        let connection = AbortOnDropHandle::new(tokio::spawn(async { Ok(()) }));
        Self { is_new: true, ..Self::new(here, Established { client, connection }, purpose, shared) }
    }

    fn new(here: &Options, established: Established, purpose: Purpose, shared: Shared) -> Self {
        let Established { client, connection } = established;
        let (lost, back) = (client.losses(), client.reconnections());
        let at = Arc::new(here.address());
        Self {
            shown: Arc::new(RwLock::new(Connected { client: client.clone(), at })),
            client,
            options: here.clone(),
            here: here.clone(),
            purpose,
            shared,
            lead: None,
            is_new: false,
            connection,
            lost,
            back,
            last: None,
            number: 0,
            begun: Instant::now(),
            sessions: Arc::new(watch::Sender::new(None)),
            trouble: LastCause::default(),
            loss: Loss::None,
            expected_loss: Arc::default(),
            closed: Arc::default(),
        }
    }

    /// What its link sees of it.
    pub(super) fn supervised(&self) -> Supervised {
        Supervised {
            connected: self.shown.clone(),
            trouble: self.trouble.clone(),
            session: self.sessions.subscribe(),
            sessions: Arc::downgrade(&self.sessions),
            expected_loss: self.expected_loss.clone(),
            closed: self.closed.clone(),
        }
    }

    pub(super) async fn run(mut self) {
        let mut given_up = self.sessions.subscribe();
        if self.is_new {
            self.connect().await;
        }
        loop {
            match self.next_event(&mut given_up).await {
                Event::Nothing => {}
                Event::GivenUp => self.on_given_up(),
                Event::Lost(error) => self.on_lost(error),
                Event::Demoted => self.on_demoted(),
                Event::Outdated => self.move_on().await,
                Event::Reconnected => self.on_reconnected().await,
                Event::ConnectedUnnoticed => self.begin_session(true).await,
                Event::Ended(_) if self.closed.load(Relaxed) => break,
                Event::Ended(error) => self.on_ended(error).await,
            }
        }
        self.sessions.send_replace(None);
    }

    async fn next_event(&mut self, given_up: &mut watch::Receiver<Option<Session>>) -> Event {
        let session = *self.sessions.borrow();
        let connected = session.is_some();
        tokio::select! {
            // A loss is seen before the reconnection that came after it, so the last event is about the
            // present.
            biased;
            _ = async { given_up.wait_for(Option::is_none).await.map(drop) }, if connected => Event::GivenUp,
            lost = self.lost.recv() => match lost {
                Ok((error, _)) => Event::Lost(Some(error)),
                Err(RecvError::Closed) => Event::Ended(None),
                Err(RecvError::Lagged(_)) => Event::Lost(None),
            },
            back = self.back.recv() => match back {
                Err(RecvError::Closed) => Event::Ended(None),
                _ => Event::Reconnected,
            },
            () = self.shared.demotion.concerns(session, self.purpose), if connected => Event::Demoted,
            () = outdated(self.lead.as_ref()) => Event::Outdated,
            // Until the library has a connection again, the handshake would only wait in its queue.
            () = sleep(PROBE), if !connected => match self.client.is_connected() {
                true => Event::ConnectedUnnoticed,
                false => Event::Nothing,
            },
            ended = &mut self.connection => Event::Ended(ended.ok().and_then(Result::err)),
        }
    }

    /// From here on the supervisor asks the library whether it has a connection, should it report none.
    fn on_given_up(&mut self) {
        self.end_session();
        self.report_loss(&given_up());
    }

    fn on_lost(&mut self, error: Option<library_error::Error>) {
        match error {
            Some(error)
                if self.options.is_tls() && library_error::is_vague(&error) && self.loss != Loss::None =>
            {
                self.explain(self.cause(&error));
            }
            Some(error) => self.report_loss(&self.cause(&error)),
            None => {}
        }
        self.end_session();
    }

    fn on_demoted(&mut self) {
        self.end_session();
        self.report_loss(&Cause::of_kind(ErrorKind::ConnectionAborted, "the server was demoted"));
        self.force_reconnection();
    }

    /// Leaves a server that another one has replaced.
    async fn move_on(&mut self) {
        self.end_session();
        self.report_loss(&replaced());
        // Ends what is in flight there.
        self.connection.abort();
        self.connect().await;
    }

    /// Connects where it is led to now, with as many tries as it takes.
    async fn connect(&mut self) {
        let mut tries = 0;
        loop {
            let why = match self.established().await {
                Ok(Established { client, connection }) => {
                    (self.lost, self.back) = (client.losses(), client.reconnections());
                    (self.client, self.connection) = (client.clone(), connection);
                    let at = Arc::new(self.here.address());
                    let now = Connected { client, at: at.clone() };
                    let before = std::mem::replace(
                        &mut *self.shown.write().unwrap_or_else(PoisonError::into_inner),
                        now,
                    );
                    // Its id is one of the server that it was on.
                    self.last.take_if(|_| before.at != at);
                    if before.at != at && self.purpose == Purpose::Commands {
                        self.shared.counters.left(&before.at.to_string());
                    }
                    return self.begin_session(true).await;
                }
                Err(why) => why,
            };
            self.report_loss(&why);
            sleep(pause_after(tries)).await;
            tries = (tries + 1).min(LAST_PAUSE);
        }
    }

    async fn established(&mut self) -> Result<Established, Cause> {
        self.here = self.options.led_by(self.lead.as_mut()).await?;
        let established = tokio::select! {
            established = establish(&self.here, self.purpose) => established,
            () = outdated(self.lead.as_ref()) => return Err(replaced()),
        };
        established.map_err(|why| match why {
            NotEstablished::Build(error) | NotEstablished::Connect(error) => self.cause(&error),
            NotEstablished::Silence => Cause::silence(),
        })
    }

    async fn on_reconnected(&mut self) {
        // The library does not report the loss when it was asked to reconnect.
        self.report_given_up();
        self.sessions.send_replace(None);
        self.begin_session(false).await;
    }

    /// The library gives up on errors that it takes for a wrong configuration. A queue must not stop for
    /// that, nor for any other reason that ends the library's task.
    async fn on_ended(&mut self, error: Option<library_error::Error>) {
        self.end_session();
        match error {
            Some(error) => self.report_loss(&self.cause(&error)),
            None => self.report_given_up(),
        }
        sleep(PROBE).await;
        self.connect().await;
    }

    fn cause(&self, error: &library_error::Error) -> Cause {
        self.options.credentials.failure(error).unwrap_or_else(|| library_error::cause(error))
    }

    /// Looks in the background for a better reason than this one: a certificate that has expired, for
    /// example.
    fn explain(&self, cause: Cause) {
        let here = self.here.clone();
        let report = self.reporting();
        let mut sessions = self.sessions.subscribe();
        tokio::spawn(async move {
            tokio::select! {
                biased;
                // The connection is back, or not wanted any more.
                _ = async { sessions.wait_for(Option::is_some).await.map(drop) } => {}
                found = probe(&here, HANDSHAKE_TIMEOUT) => report(&found.map_or(cause, Cause::from)),
            }
        });
    }

    /// Begins a session with a handshake.
    async fn handshake(&mut self) -> Result<(), OpError> {
        let (name, lead) = (&self.options.client_name, self.lead.as_ref());
        let answered = handshake(&self.client, self.purpose, name, self.last.as_ref(), lead).await?;
        self.report_settings(&answered.info);
        self.last = answered.peer;
        let (number, client_id, begun) = (self.number, answered.client_id, self.begun);
        let server = self.last.as_ref().and_then(Peer::server);
        let session = Session { number, client_id, begun, answered: Instant::now(), server };
        if self.purpose == Purpose::Commands && self.lead.is_none() {
            self.shared.demotion.leads_to(session);
        }
        self.sessions.send_replace(Some(session));
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    fn end_session(&mut self) {
        self.doubt();
        self.begun = Instant::now();
        self.sessions.send_replace(None);
    }

    /// Begins a session on the connection that the library has.
    async fn begin_session(&mut self, is_unnoticed: bool) {
        self.number += 1;
        let Err(error) = self.handshake().await else {
            self.expected_loss.store(false, Relaxed);
            if self.purpose == Purpose::Commands {
                self.shared.begun.send_modify(|begun| *begun += 1);
            }
            if std::mem::replace(&mut self.loss, Loss::None) == Loss::Reported {
                self.shared.counters.reconnected();
                let queue = self.shared.queue.as_deref().unwrap_or_default();
                events::connection_back(self.purpose.name(), queue, &self.here.address());
            }
            return;
        };
        let (is_unknown, is_silent) = (matches!(error, OpError::Unknown(_)), error.is_timeout());
        let is_refused = self.lead.is_some() || error.is_not_executed();
        let cause = error.into_cause();
        self.report_loss(&cause);
        if (is_unnoticed || is_unknown || is_refused) && self.client.is_connected() {
            if is_refused {
                if self.lead.is_some() && !cause.is_of_server() {
                    // It is a replica until it is known who the master is.
                    self.doubt();
                    sleep(NOT_MASTER).await;
                } else {
                    // It is busy; or it may be a replica, and without sentinels nobody tells.
                    tokio::select! {
                        () = sleep(YOUNG) => {}
                        () = outdated(self.lead.as_ref()) => {}
                    }
                }
            }
            // Nothing else watches a connection before it has a session.
            if is_silent {
                // The library may still be sending a long command, and reconnects only after that. This ends
                // it, and what is in flight.
                self.connection.abort();
            } else {
                self.force_reconnection();
            }
        }
    }

    /// Another server may be the master now.
    fn doubt(&self) {
        if let Some(topology) = &self.shared.topology {
            topology.doubt();
        }
    }

    /// The library reports when it is done.
    fn force_reconnection(&self) {
        self.client.clone().force_reconnection();
    }

    /// Reports the loss, unless the connection was given up for a reason, which is reported.
    fn report_given_up(&mut self) {
        if self.loss == Loss::None {
            self.report_loss(&given_up());
        }
    }

    /// Reports each loss once, however many ways there are to notice it. The last reason is kept.
    fn report_loss(&mut self, why: &Cause) {
        if self.loss != Loss::None {
            if !why.is_of_network() {
                // The loss was our own choice. That there is no new connection is not.
                self.loss = Loss::Reported;
            }
            self.reporting()(why);
            return;
        }
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.clone());
        self.loss = if self.expected_loss.swap(false, Relaxed) { Loss::Expected } else { Loss::Reported };
        if self.loss == Loss::Reported {
            let queue = self.shared.queue.as_deref().unwrap_or_default();
            self.shared.counters.failed(format_args!("connection for {}", self.purpose.name()), why);
            events::connection_lost(self.purpose.name(), queue, &self.here.address(), why);
        }
    }

    /// A server with another policy than `noeviction` deletes keys when its memory is full, and a queue is a
    /// few keys. One without an append-only file forgets what came after its last snapshot when it restarts.
    fn report_settings(&self, info: &str) {
        let (server, counters) = (self.here.address().to_string(), &self.shared.counters);
        if let Some(policy) = field(info, "maxmemory_policy") {
            let policy = Some(policy).filter(|policy| *policy != "noeviction");
            if counters.evicts(&server, policy)
                && let Some(policy) = policy
            {
                events::evicts(&server, policy);
            }
        }
        let has_aof = match field(info, "aof_enabled") {
            Some("0") => false,
            Some("1") => true,
            _ => return,
        };
        if counters.has_aof(&server, has_aof) && !has_aof {
            events::has_no_aof(&server);
        }
    }

    /// Reports why there is still no connection, if that is another reason than before. That the server does
    /// not answer follows from most losses; what is wrong with a password or a certificate, no retry changes.
    fn reporting(&self) -> impl Fn(&Cause) + Send + 'static {
        let (trouble, shared, purpose) = (self.trouble.clone(), self.shared.clone(), self.purpose.name());
        let (server, is_expected) = (self.here.address(), self.loss == Loss::Expected);
        move |why| {
            let before = trouble.lock().unwrap_or_else(PoisonError::into_inner).replace(why.clone());
            if is_expected || before.is_some_and(|before| before == *why) {
                return;
            }
            shared.counters.failed(format_args!("connection for {purpose}"), why);
            if !why.is_of_network() {
                events::connection_refused(
                    purpose,
                    shared.queue.as_deref().unwrap_or_default(),
                    &server,
                    why,
                );
            }
        }
    }
}

fn given_up() -> Cause {
    Cause::of_kind(ErrorKind::ConnectionAborted, "the connection was given up")
}

#[cfg(all(test, workspace))]
mod tests {
    #[cfg(feature = "tls")]
    use super::*;

    /// The look for a reason takes longer than the reconnection.
    #[cfg(feature = "tls")]
    #[tokio::test]
    async fn no_reason_is_reported_when_the_connection_is_back() {
        use redelay_fixture::{Proxy, Server, until_async};

        use crate::conn::establish::build;
        use crate::conn::tests::{settings, shared};
        use crate::conn::{Settings, TlsOptions};

        let server = Server::start();
        let proxy = Proxy::start(server.port());
        let tls =
            TlsOptions { roots: vec![AUTHORITY.into()], only_these_roots: true, ..TlsOptions::default() };
        let url = format!("rediss://127.0.0.1:{}", proxy.port());
        let options = Options::new(Settings { tls: Some(&tls), ..settings(&url) }).expect("options");
        let client = build(&options, Purpose::Commands).expect("a client");
        let supervisor = Supervisor::unconnected(&options, client, Purpose::Commands, shared());
        let reason = || supervisor.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let now = Instant::now();
        for session in
            [Some(Session { number: 0, client_id: None, begun: now, answered: now, server: None }), None]
        {
            supervisor.sessions.send_replace(None);
            proxy.blackhole(true);
            supervisor.explain("the TLS connection failed".into());
            until_async("it looks for the reason", || async { proxy.connections() == 1 }).await;
            supervisor.sessions.send_replace(session);
            proxy.blackhole(false);
            until_async("it has ended", || async { proxy.connections() == 0 }).await;
            assert_eq!(reason().is_some(), session.is_none());
        }
    }

    /// Of a certificate that signs nothing here.
    #[cfg(feature = "tls")]
    const AUTHORITY: &str = "-----BEGIN CERTIFICATE-----
MIIBeDCCAR+gAwIBAgIUE7MRRim1nMCShtRnHJduUaB2pyowCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGbm9ib2R5MCAXDTI2MTEyNjAwMjUyOFoYDzIxMjYxMTAyMDAy
NTI4WjARMQ8wDQYDVQQDDAZub2JvZHkwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AAQ7KIdV9P+H+bkm09gOsCLBmbp6JwUeiLbVG2qJe00uvsADQrZhTMD1kLeFYHPh
2QniYgPybnUjp1BswATemXpIo1MwUTAdBgNVHQ4EFgQUKA9w7biBwJqyW9bq4dey
Gln0oUEwHwYDVR0jBBgwFoAUKA9w7biBwJqyW9bq4deyGln0oUEwDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiB7a1GGI1rHeXEcOQesPebK04P299NW
YtwwbU/eVn8BRAIgBX8iWRuRyGZ/8YiqLvtc3qmY+tXsCZeWAYI4LVhid3U=
-----END CERTIFICATE-----
";
}
