//! The connection that listens to the wake-up channels, and the task that keeps it listening.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fred::interfaces::{ClientLike, PubsubInterface};
use fred::types::{ClusterHash, CustomCommand, Message};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Interval, interval_at, sleep, timeout};

use super::link::{Link, Session};
use super::{Conn, Reply};

/// Channels per SUBSCRIBE: many queues are opened in few commands, none of which holds the server for long.
const BATCH: usize = 500;
/// How long the server may take to confirm a subscription, or to answer a ping.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// How often a silent connection is tested. A half-open one would otherwise never be noticed.
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// How long a refused subscription is left alone; until then the sweeps find what is due.
const REFUSED: Duration = Duration::from_secs(1);
/// Notices that may wait for a busy reader. Beyond it the library's own buffer fills, and then [`Notice::Missed`] is told.
const NOTICES: usize = 1024;

/// What a listener learns.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The server confirmed that it sends the messages of these channels from now on.
    Confirmed(Vec<Arc<str>>),
    /// A message on a channel.
    Message { channel: String, payload: Bytes },
    /// Messages were lost, nobody knows which, though the connection stands.
    Missed,
}

/// What a listener asks for.
#[derive(Debug)]
enum Wish {
    Subscribe(Arc<str>),
    Unsubscribe(Arc<str>),
}

/// Says which channels are wanted. Dropping it ends the listening.
#[derive(Clone, Debug)]
pub(crate) struct Channels(mpsc::UnboundedSender<Wish>);

impl Channels {
    /// Asks for a channel: a [`Notice::Confirmed`] follows, now and after each reconnection.
    pub(crate) fn subscribe(&self, channel: Arc<str>) {
        // Nobody listens any more only when the client shuts down.
        let _ = self.0.send(Wish::Subscribe(channel));
    }

    /// Gives a channel up.
    pub(crate) fn unsubscribe(&self, channel: Arc<str>) {
        let _ = self.0.send(Wish::Unsubscribe(channel));
    }
}

impl Conn {
    /// Opens the connection for subscriptions, in a task that ends when [`Channels`] is dropped.
    pub(crate) fn listen(&self) -> (Channels, mpsc::Receiver<Notice>) {
        let (wish, wishes) = mpsc::unbounded_channel();
        let (notice, notices) = mpsc::channel(NOTICES);
        tokio::spawn(run(self.clone(), wishes, notice));
        (Channels(wish), notices)
    }
}

async fn run(conn: Conn, wishes: mpsc::UnboundedReceiver<Wish>, notices: mpsc::Sender<Notice>) {
    let link = loop {
        match conn.open_subscriber().await {
            Ok(link) => break link,
            Err(_) if notices.is_closed() => return,
            Err(_) => sleep(Duration::from_millis(200)).await,
        }
    };
    let messages = link.messages();
    let mut sessions = link.sessions();
    sessions.mark_unchanged();
    let ping = interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
    let subscriber = Subscriber {
        link,
        messages,
        sessions,
        ping,
        wishes,
        notices,
        wanted: HashSet::new(),
        unconfirmed: Vec::new(),
        unwanted: Vec::new(),
        not_before: Instant::now(),
    };
    subscriber.run().await;
}

struct Subscriber {
    link: Link,
    messages: broadcast::Receiver<Message>,
    sessions: watch::Receiver<Option<Session>>,
    ping: Interval,
    wishes: mpsc::UnboundedReceiver<Wish>,
    notices: mpsc::Sender<Notice>,
    wanted: HashSet<Arc<str>>,
    /// Wanted, and not yet confirmed in this session.
    unconfirmed: Vec<Arc<str>>,
    /// Subscribed to, and no longer wanted.
    unwanted: Vec<Arc<str>>,
    /// No further try to subscribe before this time.
    not_before: Instant,
}

impl Subscriber {
    async fn run(mut self) {
        while let Some(step) = self.step().await {
            let notice = match step {
                Step::Notice(notice) => notice,
                Step::Subscribe => match self.confirm().await {
                    Some(confirmed) => Notice::Confirmed(confirmed),
                    None => continue,
                },
                Step::Again => continue,
            };
            if self.notices.send(notice).await.is_err() {
                break;
            }
        }
        self.link.close().await;
    }

    /// One event; `None` when nobody listens any more.
    async fn step(&mut self) -> Option<Step> {
        let connected = self.link.session().is_some();
        let wishes = connected && !(self.unconfirmed.is_empty() && self.unwanted.is_empty());
        let waits = wishes && Instant::now() < self.not_before;
        let subscribe = wishes && !waits;
        tokio::select! {
            biased;
            wish = self.wishes.recv() => {
                self.note(wish?);
                Some(Step::Again)
            }
            changed = self.sessions.changed() => {
                changed.ok()?;
                // Whatever the server knew of the old connection is gone with it.
                self.sessions.mark_unchanged();
                self.unwanted.clear();
                self.unconfirmed = self.wanted.iter().cloned().collect();
                Some(Step::Again)
            }
            () = std::future::ready(()), if subscribe => Some(Step::Subscribe),
            message = self.messages.recv() => Some(Step::Notice(match message {
                Ok(message) => Notice::Message {
                    channel: message.channel.to_string(),
                    payload: message.value.into_bytes().unwrap_or_default(),
                },
                Err(RecvError::Lagged(_)) => Notice::Missed,
                Err(RecvError::Closed) => return None,
            })),
            () = tokio::time::sleep_until(self.not_before), if waits => Some(Step::Again),
            _ = self.ping.tick() => {
                if connected && !self.answers().await {
                    self.give_up_connection().await;
                }
                Some(Step::Again)
            }
        }
    }

    fn note(&mut self, wish: Wish) {
        match wish {
            Wish::Subscribe(channel) => {
                self.unwanted.retain(|unwanted| *unwanted != channel);
                if self.wanted.insert(channel.clone()) {
                    self.unconfirmed.push(channel);
                }
            }
            Wish::Unsubscribe(channel) => {
                if self.wanted.remove(&channel) {
                    self.unconfirmed.retain(|unconfirmed| *unconfirmed != channel);
                    self.unwanted.push(channel);
                }
            }
        }
    }

    /// Gives up what is no longer wanted, subscribes to one batch, and waits until the server has confirmed that.
    async fn confirm(&mut self) -> Option<Vec<Arc<str>>> {
        let session = self.link.session()?;
        let batch: Vec<Arc<str>> = self.unconfirmed.iter().take(BATCH).cloned().collect();
        let channels = |names: &[Arc<str>]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let client = self.link.client();
        let exchange = async {
            if !self.unwanted.is_empty() {
                client.unsubscribe(channels(&self.unwanted)).await?;
            }
            if !batch.is_empty() {
                client.subscribe(channels(&batch)).await?;
            }
            Ok::<_, fred::error::Error>(())
        };
        // The library answers before the server has: the reply to a ping right behind it is the confirmation.
        let confirmed = matches!(timeout(ANSWER_TIMEOUT, exchange).await, Ok(Ok(()))) && self.answers().await;
        if self.link.session() != Some(session) {
            return None;
        }
        if !confirmed {
            // Refused, or silent. Either way the replies of this connection are no longer to be trusted.
            self.not_before = Instant::now() + REFUSED;
            self.give_up_connection().await;
            return None;
        }
        self.unwanted.clear();
        self.unconfirmed.drain(..batch.len());
        (!batch.is_empty()).then_some(batch)
    }

    /// Whether the server answers on this very connection: with `PONG`, or while subscribed with `["pong", ""]`. Any
    /// other reply is one to an earlier command, such as a refusal to subscribe.
    async fn answers(&self) -> bool {
        let ping = CustomCommand::new_static("PING", ClusterHash::Random, false);
        let answer = self.link.client().custom_raw::<&str>(ping, vec![]);
        let Ok(Ok(frame)) = timeout(ANSWER_TIMEOUT, answer).await else { return false };
        match Reply::of_frame(frame) {
            Ok(Reply::Bytes(pong)) => pong == "PONG",
            Ok(Reply::Array(parts)) => parts.first() == Some(&Reply::Bytes(Bytes::from_static(b"pong"))),
            _ => false,
        }
    }

    /// Asks for a new connection and leaves the old one some time to end.
    async fn give_up_connection(&mut self) {
        self.link.reconnect();
        let mut sessions = self.sessions.clone();
        sessions.mark_unchanged();
        let _ = timeout(ANSWER_TIMEOUT, sessions.changed()).await;
    }
}

enum Step {
    Notice(Notice),
    Subscribe,
    Again,
}
