//! The lives of a connection: how each begins and ends on the server, and the task that watches over them.
//!
//! A connection that was given up may still have commands on their way to the server, which the network delivers
//! whenever it can: after their second try, perhaps, or after a claim was deleted. So the server is told to forget the
//! old connection before its successor is used.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use fred::clients::Client;
use fred::error::Error as FredError;
use fred::interfaces::{ClientLike, EventInterface};
use fred::types::config::Server;
use fred::types::{ClusterHash, CustomCommand};
use tokio::sync::broadcast::error::RecvError::Closed;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::link::Role;
use super::{OpError, Reply, Shared};
use crate::telemetry::events;

/// How long the commands that introduce a new connection may take.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(3);
/// How often a connection that reported an error, but no reconnection since, is asked whether it lives.
const PROBE: Duration = Duration::from_millis(500);
/// How old a connection is at least before it is given up for what another one was told: while nobody is the master,
/// they must not keep each other reconnecting.
const YOUNG: Duration = Duration::from_secs(1);

/// One life of a connection, from one reconnection to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    /// Counts the reconnections.
    pub(crate) number: u64,
    /// The server's id of this connection, for `CLIENT UNBLOCK`.
    pub(crate) client_id: i64,
    /// It was opened after this, and what it replaces has ended then.
    begun: Instant,
}

type Sessions = watch::Sender<Option<Session>>;

/// What went wrong last.
pub(super) type Trouble = Arc<Mutex<Option<String>>>;

/// When a server was last found to be demoted, by any of the connections that share this. Whoever is the master now
/// answers at the same address, but connections to the old one may stand for as long as it lives; a subscriber's would,
/// for nobody tells a subscriber.
#[derive(Clone, Debug)]
pub(super) struct Demotion(Arc<watch::Sender<Option<Instant>>>);

impl Demotion {
    pub(super) fn none_yet() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }

    /// One that the session has found. What it says was known already if the session is an old one.
    pub(super) fn found_by(&self, session: Session) {
        let unknown = |found: &Option<Instant>| found.is_none_or(|found| found <= session.begun);
        self.0.send_if_modified(|found| {
            let news = unknown(found);
            if news {
                *found = Some(Instant::now());
            }
            news
        });
    }

    /// Waits until one was found after the session's beginning, and the session is no longer young.
    async fn concerns(&self, session: Option<Session>) {
        let Some(session) = session else { return };
        let mut found = self.0.subscribe();
        let since = |found: &Option<Instant>| found.is_some_and(|found| found > session.begun);
        // The sender is in `self`.
        let _ = found.wait_for(since).await.map(drop);
        sleep_until(session.begun + YOUNG).await;
    }
}

/// How the server tells a connection from all others, those of its life before a restart included.
struct Peer {
    id: String,
    address: String,
}

impl Peer {
    /// Reads the reply of `CLIENT INFO`: `id=7 addr=127.0.0.1:43210 laddr=...`. All clients of a Unix socket have the
    /// same address, so it tells nobody apart; but no network delivers anything late there.
    fn of_info(info: &str) -> Option<Self> {
        let field = |name: &str| info.split_whitespace().find_map(|field| field.strip_prefix(name));
        let address = field("addr=").filter(|address| !address.starts_with('/'))?;
        Some(Self { id: field("id=")?.to_owned(), address: address.to_owned() })
    }
}

/// Keeps the session true for as long as the link lives.
pub(super) struct Supervisor {
    client: Client,
    name: String,
    role: Role,
    shared: Shared,
    connection: AbortOnDropHandle<Result<(), FredError>>,
    lost: broadcast::Receiver<(FredError, Option<Server>)>,
    back: broadcast::Receiver<Server>,
    /// The connection that was introduced last, if the server has told its address.
    last: Option<Peer>,
    number: u64,
    /// When the present connection was not yet open.
    begun: Instant,
    sessions: Arc<Sessions>,
    trouble: Trouble,
    loss: Loss,
    /// Says beforehand that the next loss is our own choice, and no fault.
    chosen: Arc<AtomicBool>,
}

/// What is known of the loss of a connection, until there is a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    None,
    Chosen,
    Told,
}

impl Supervisor {
    /// Begins the first session of a client that has connected since `begun`.
    pub(super) async fn start(
        client: Client,
        name: String,
        connection: AbortOnDropHandle<Result<(), FredError>>,
        begun: Instant,
        role: Role,
        shared: Shared,
    ) -> Result<Self, OpError> {
        let (lost, back) = (client.error_rx(), client.reconnect_rx());
        let mut new = Self {
            client,
            name,
            role,
            shared,
            connection,
            lost,
            back,
            last: None,
            number: 0,
            begun,
            sessions: Arc::new(watch::Sender::new(None)),
            trouble: Trouble::default(),
            loss: Loss::None,
            chosen: Arc::default(),
        };
        new.introduce().await?;
        Ok(new)
    }

    /// To follow the sessions, and to end them.
    pub(super) fn sessions(&self) -> (watch::Receiver<Option<Session>>, Weak<Sessions>) {
        (self.sessions.subscribe(), Arc::downgrade(&self.sessions))
    }

    /// To tell why there is no session.
    pub(super) fn trouble(&self) -> Trouble {
        self.trouble.clone()
    }

    /// To say that the next loss is our own choice.
    pub(super) fn chosen(&self) -> Arc<AtomicBool> {
        self.chosen.clone()
    }

    pub(super) async fn run(mut self) {
        let mut given_up = self.sessions.subscribe();
        loop {
            let session = *self.sessions.borrow();
            let connected = session.is_some();
            let mut probing = false;
            tokio::select! {
                // A loss is seen before the reconnection that came after it, so what is kept last is what holds now.
                biased;
                // From here on it probes, should no reconnection be told of.
                _ = async { given_up.wait_for(Option::is_none).await.map(drop) }, if connected => {
                    self.begun = Instant::now();
                    self.tell_loss("given up");
                    continue;
                }
                lost = self.lost.recv() => {
                    match lost {
                        Err(Closed) => break,
                        Ok((error, _)) => self.tell_loss(error.details()),
                        Err(_) => {}
                    }
                    self.begun = Instant::now();
                    self.sessions.send_replace(None);
                    continue;
                }
                back = self.back.recv() => {
                    if matches!(back, Err(Closed)) {
                        break;
                    }
                    // A forced reconnection tells of no loss.
                    self.tell_loss("given up");
                    self.sessions.send_replace(None);
                }
                () = self.shared.demotion.concerns(session), if connected => {
                    self.begun = Instant::now();
                    self.sessions.send_replace(None);
                    self.tell_loss("the server was demoted");
                    self.force_reconnection();
                    continue;
                }
                // Until the library has a connection again, the introduction would only wait in its queue.
                () = sleep(PROBE), if !connected => {
                    if !self.client.is_connected() {
                        continue;
                    }
                    probing = true;
                }
                ended = &mut self.connection => {
                    self.begun = Instant::now();
                    self.sessions.send_replace(None);
                    // Asked to quit, or gave up: the client library does so on errors that it takes for a wrong
                    // configuration. A queue must not stop for that.
                    match ended {
                        Ok(Ok(())) => break,
                        Ok(Err(error)) => self.tell_loss(error.details()),
                        Err(_) => {}
                    }
                    sleep(PROBE).await;
                    self.connection = AbortOnDropHandle::new(self.client.connect());
                    continue;
                }
            }
            self.number += 1;
            let Err(error) = self.introduce().await else {
                self.chosen.store(false, Relaxed);
                if std::mem::replace(&mut self.loss, Loss::None) == Loss::Told {
                    self.shared.counters.reconnected();
                    events::connection_back(self.role.name());
                }
                continue;
            };
            self.tell_loss(&error.to_string());
            if (probing || matches!(error, OpError::Unknown(_))) && self.client.is_connected() {
                // Nobody else watches a connection before it has a session.
                self.force_reconnection();
            }
        }
        self.sessions.send_replace(None);
    }

    /// Its future ends with the reconnection, which is told of.
    fn force_reconnection(&self) {
        let client = self.client.clone();
        tokio::spawn(async move { client.force_reconnection().await });
    }

    /// Told once for each loss, however many ways there are to hear of it; the last reason is kept.
    fn tell_loss(&mut self, why: &str) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.to_owned());
        if self.loss != Loss::None {
            return;
        }
        self.loss = if self.chosen.swap(false, Relaxed) { Loss::Chosen } else { Loss::Told };
        if self.loss == Loss::Told {
            self.shared.counters.failed(format_args!("connection for {}", self.role.name()), why);
            events::connection_lost(self.role.name(), why);
        }
    }

    /// Begins a session: ends the connection before this one on the server, names this one, and learns its id.
    async fn introduce(&mut self) -> Result<(), OpError> {
        let mut words = vec![vec!["SETNAME", self.name.as_str()]];
        if let Some(Peer { id, address }) = &self.last {
            // Both, for after a restart of the server the id may be another client's. The caller is spared (SKIPME),
            // should it turn out to be the same connection.
            words.push(vec!["KILL", "ID", id, "ADDR", address]);
        }
        words.push(vec!["INFO"]);
        words.push(vec!["ID"]);
        // In this order on one connection, and without a pause: each is handed over when it is first polled.
        let replies = futures::future::try_join_all(words.into_iter().map(|words| {
            let command = CustomCommand::new_static("CLIENT", ClusterHash::FirstKey, false);
            self.client.custom_raw(command, words)
        }));
        let mut replies = timeout(HANDSHAKE_TIMEOUT, replies)
            .await
            .map_err(|_| OpError::Unknown("the server does not answer".into()))?
            .map_err(|error| OpError::of_sent(&error))?
            .into_iter()
            .rev()
            .map(Reply::of_frame);
        let mut next = || replies.next().expect("a reply for each command");
        let client_id = next()?.into_int()?;
        // A user may lack the right to the others: then it has no name, or what is left of the old one stays.
        let info = next().ok().and_then(|info| info.into_bytes().ok());
        self.last = info.and_then(|info| Peer::of_info(&String::from_utf8_lossy(&info)));
        self.sessions.send_replace(Some(Session { number: self.number, client_id, begun: self.begun }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::poll_immediate;
    use std::pin::pin;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn a_demotion_concerns_sessions_that_began_before_it() {
        let demotion = Demotion::none_yet();
        let begun_now = || Session { number: 0, client_id: 0, begun: Instant::now() };
        let concerns = async |session| poll_immediate(pin!(demotion.concerns(Some(session)))).await.is_some();
        let ms = Duration::from_millis;

        let (found, other) = (begun_now(), begun_now());
        advance(ms(5_000)).await;
        assert!(!concerns(other).await);
        demotion.found_by(found);
        assert!(concerns(other).await);

        advance(ms(1)).await;
        let new = begun_now();
        advance(ms(1)).await;
        demotion.found_by(other);
        assert!(!concerns(new).await, "what an old session finds is known");
        demotion.found_by(new);
        assert!(!concerns(new).await, "it is young");
        advance(YOUNG).await;
        assert!(concerns(new).await);
    }

    #[test]
    fn peer_is_read_from_client_info() {
        let rows = [
            ("id=7 addr=127.0.0.1:43210 laddr=127.0.0.1:6379 fd=8 name=\n", Some(("7", "127.0.0.1:43210"))),
            ("id=7 addr=[::1]:43210 laddr=[::1]:6379", Some(("7", "[::1]:43210"))),
            ("id=7 addr=/run/redis.sock:0 laddr=/run/redis.sock:0", None),
            ("id=7 laddr=127.0.0.1:6379", None),
            ("", None),
        ];
        for (info, expected) in rows {
            let peer = Peer::of_info(info);
            assert_eq!(
                peer.as_ref().map(|peer| (peer.id.as_str(), peer.address.as_str())),
                expected,
                "{info}"
            );
        }
    }
}
