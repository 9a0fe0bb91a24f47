//! The connection that receives announcements, and the task that keeps it subscribed.

use std::collections::HashSet;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, interval_at, sleep, sleep_until, timeout};

use super::client::{FredClient, Message, To, content};
use super::link::Link;
use super::op_error::cut;
use super::purpose::Purpose;
use super::pushed::{Push, Pushed};
use super::shared::Shared;
use super::topology::Lead;
use super::{Cause, OpError, Options, library_error};
use crate::pacing::pause_after;
use crate::telemetry::events;

/// Channels per SUBSCRIBE: many queues are opened in few commands, none of which holds the server for long.
const BATCH: usize = 500;
/// How long the server may take to confirm a subscription, or to answer a ping.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// How often a silent connection is tested. A half-open one would otherwise never be noticed.
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// The first and the longest pause before refused channels are tried again. Meanwhile the sweeps find due
/// entries. Each retry costs a connection, and a check of every queue.
const REFUSED: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];
/// Notices that may wait for a busy reader. Beyond it the library's own buffer fills, and then follows
/// [`Notice::Missed`].
pub(super) const NOTICES: usize = 1024;

/// An event for a listener.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The server has confirmed that it sends the messages of these channels from now on.
    Confirmed(Vec<Arc<str>>),
    /// A message on a channel.
    Message { channel: String, payload: Bytes },
    /// The server has refused this channel, which is wanted again, or this pattern. It is tried again anyway.
    Refused(Arc<str>),
    /// Messages were lost, it is not known which. The connection is still there.
    Missed,
}

/// A listener's request.
#[derive(Debug)]
pub(super) enum Wish {
    Subscribe(Arc<str>),
    Unsubscribe(Arc<str>),
}

/// Chooses the channels to listen to. Dropping it ends the listening.
#[derive(Clone, Debug)]
pub(crate) struct Channels(mpsc::UnboundedSender<Wish>);

impl Channels {
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<Wish>) {
        let (wish, wishes) = mpsc::unbounded_channel();
        (Self(wish), wishes)
    }

    /// Channels without a listener, until the wishes are read.
    #[cfg(all(test, workspace))]
    pub(crate) fn unheard() -> (Self, impl Send) {
        Self::new()
    }

    /// Listens to a channel: a [`Notice::Confirmed`] follows, now and after each reconnection. If it is
    /// listened to already, the server confirms that again.
    pub(crate) fn subscribe(&self, channel: Arc<str>) {
        // There is no listener any more only when the client shuts down.
        let _ = self.0.send(Wish::Subscribe(channel));
    }

    /// Stops listening to a channel.
    pub(crate) fn unsubscribe(&self, channel: Arc<str>) {
        let _ = self.0.send(Wish::Unsubscribe(channel));
    }
}

/// A connection for subscriptions. Ends when the [`Channels`] of these wishes are dropped.
pub(super) async fn subscriber(
    to: To,
    options: Options,
    lead: Option<Lead>,
    shared: Shared,
    wishes: mpsc::UnboundedReceiver<Wish>,
    notices: mpsc::Sender<Notice>,
) {
    let link = loop {
        match Link::open_once(&options, Purpose::Subscriber, &shared, lead.clone()).await {
            Ok(link) => break link,
            Err(_) if notices.is_closed() || wishes.is_closed() => return,
            Err(_) => sleep(Duration::from_millis(200)).await,
        }
    };
    let messages = Pushed::of(&link, FredClient::messages);
    let ping = interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
    let subscriber = Subscriber {
        to,
        link,
        messages,
        ping,
        wishes,
        notices,
        wanted: HashSet::new(),
        unconfirmed: Vec::new(),
        refused: HashSet::new(),
        unwanted: Vec::new(),
        batch: BATCH,
        is_searching: false,
        failures: 0,
        not_before: Instant::now(),
        refused_until: Instant::now(),
        pause: REFUSED[0],
        is_failing: false,
    };
    subscriber.run().await;
}

struct Subscriber {
    to: To,
    link: Arc<Link>,
    messages: Pushed<Message>,
    ping: Interval,
    wishes: mpsc::UnboundedReceiver<Wish>,
    notices: mpsc::Sender<Notice>,
    wanted: HashSet<Arc<str>>,
    /// Wanted, and not yet confirmed in this session.
    unconfirmed: Vec<Arc<str>>,
    /// Those of the unconfirmed that the server has refused when they were alone. They must not keep the
    /// others waiting: one channel without ACL permission makes the server refuse the whole command.
    refused: HashSet<Arc<str>>,
    /// Subscribed to, and no longer wanted.
    unwanted: Vec<Arc<str>>,
    /// The maximum number of channels in one command; smaller during the search for the refused one, and
    /// growing behind it.
    batch: usize,
    /// Whether the last batch was refused, and had several channels.
    is_searching: bool,
    /// How many attempts in a row have failed.
    failures: u32,
    /// No further attempt to subscribe before this time ...
    not_before: Instant,
    /// ... and none with a refused channel before this one.
    refused_until: Instant,
    pause: Duration,
    /// Whether the refusal was reported.
    is_failing: bool,
}

impl Subscriber {
    async fn run(mut self) {
        while let Some(step) = self.step().await {
            let notice = match step {
                Step::Notice(notice) => notice,
                Step::Subscribe => match self.confirm().await {
                    Some(notice) => notice,
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

    /// One event; `None` when there is no listener any more.
    async fn step(&mut self) -> Option<Step> {
        let connected = self.messages.session().is_some();
        let next = self.next_try().filter(|_| connected);
        let subscribe = next.is_some_and(|next| next <= Instant::now());
        tokio::select! {
            biased;
            wish = self.wishes.recv() => {
                Some(self.note(wish?).map_or(Step::Again, Step::Notice))
            }
            () = std::future::ready(()), if subscribe => Some(Step::Subscribe),
            message = self.messages.next() => Some(match message? {
                Push::Message(message) => {
                    let (channel, payload) = content(message);
                    Step::Notice(Notice::Message { channel, payload })
                }
                Push::Missed => Step::Notice(Notice::Missed),
                Push::Session => {
                    // The subscriptions of the old connection ended with it.
                    self.unwanted.clear();
                    self.unconfirmed = self.wanted.iter().cloned().collect();
                    Step::Again
                }
            }),
            () = async { match next { Some(at) => sleep_until(at).await, None => pending().await } } => {
                Some(Step::Again)
            }
            _ = self.ping.tick() => {
                if connected && self.exchange(&[]).await.is_err() {
                    self.give_up_connection().await;
                }
                Some(Step::Again)
            }
        }
    }

    fn note(&mut self, wish: Wish) -> Option<Notice> {
        match wish {
            Wish::Subscribe(channel) => {
                if self.refused.contains(&channel) {
                    return Some(Notice::Refused(channel));
                }
                self.unwanted.retain(|unwanted| *unwanted != channel);
                if self.wanted.insert(channel.clone()) || !self.unconfirmed.contains(&channel) {
                    self.unconfirmed.push(channel);
                }
            }
            Wish::Unsubscribe(channel) => {
                if self.wanted.remove(&channel) {
                    self.refused.remove(&channel);
                    self.unconfirmed.retain(|unconfirmed| *unconfirmed != channel);
                    self.unwanted.push(channel);
                }
            }
        }
        None
    }

    /// When to send the next request; `None` while there is none to send.
    fn next_try(&self) -> Option<Instant> {
        if !self.unwanted.is_empty() || self.unconfirmed.len() > self.refused.len() {
            return Some(self.not_before);
        }
        (!self.unconfirmed.is_empty()).then(|| self.refused_until.max(self.not_before))
    }

    /// The channels to subscribe to next. Refused ones follow when no others are left, and then one at
    /// random, since any of them may be allowed by now.
    fn next_batch(&self) -> Vec<Arc<str>> {
        let fresh = self.unconfirmed.iter().filter(|channel| !self.refused.contains(*channel));
        let batch: Vec<_> = fresh.take(self.batch).cloned().collect();
        if !batch.is_empty() || Instant::now() < self.refused_until {
            return batch;
        }
        fastrand::choice(&self.unconfirmed).cloned().into_iter().collect()
    }

    /// Unsubscribes from unwanted channels, subscribes to one batch, and waits until the server has confirmed
    /// both.
    async fn confirm(&mut self) -> Option<Notice> {
        let session = self.link.session()?;
        let batch = self.next_batch();
        let confirmed = self.exchange(&batch).await;
        if self.link.session() != Some(session) {
            return None;
        }
        if let Err(error) = confirmed {
            // Refused, or silent. Either way the replies of this connection can no longer be trusted.
            let refused = batch.first().filter(|_| self.to == To::Patterns).cloned();
            let refused = refused.filter(|_| matches!(error, OpError::Server(_)));
            self.put_off(batch, &error);
            self.give_up_connection().await;
            return refused.map(Notice::Refused);
        }
        self.failures = 0;
        self.unwanted.clear();
        if !self.is_searching {
            self.batch = (self.batch * 2).min(BATCH);
        }
        if batch.iter().any(|channel| self.refused.contains(channel)) {
            // The ACL has changed, so the others may be allowed now, too.
            (self.batch, self.is_searching, self.pause) = (BATCH, false, REFUSED[0]);
            self.refused.clear();
        }
        let confirmed: HashSet<_> = batch.iter().collect();
        self.unconfirmed.retain(|channel| !confirmed.contains(channel));
        if self.unconfirmed.is_empty() {
            self.is_searching = false;
            if std::mem::take(&mut self.is_failing) {
                events::announcements_back();
            }
        }
        (!batch.is_empty()).then_some(Notice::Confirmed(batch))
    }

    /// After a failure: searches for the refused channel, or pauses before it is tried again.
    fn put_off(&mut self, batch: Vec<Arc<str>>, error: &OpError) {
        self.not_before = Instant::now() + pause_after(self.failures);
        self.failures += 1;
        if !matches!(error, OpError::Server(_)) {
            return;
        }
        self.link.expect_loss();
        if !std::mem::replace(&mut self.is_failing, true) {
            events::announcements_failing(error);
            self.link.note("SUBSCRIBE", error);
        }
        self.is_searching = batch.len() > 1;
        if self.is_searching {
            self.batch = batch.len() / 2;
        } else {
            self.refused.extend(batch);
            self.refused_until = Instant::now() + self.pause;
            self.pause = (self.pause * 2).min(REFUSED[1]);
        }
    }

    /// Sends the request, and waits until the server confirms on this same connection that it has executed
    /// it.
    async fn exchange(&self, batch: &[Arc<str>]) -> Result<(), OpError> {
        let names = |channels: &[Arc<str>]| channels.iter().map(ToString::to_string).collect::<Vec<_>>();
        let client = self.link.client();
        let exchange = client.resubscribe(self.to, names(&self.unwanted), names(batch));
        let is_pong = match timeout(ANSWER_TIMEOUT, exchange).await {
            Err(_) => return Err(OpError::Unknown(Cause::silence())),
            Ok(Err(error)) if ["NOPERM ", "ERR "].iter().any(|code| error.details().starts_with(code)) => {
                return Err(OpError::Server(cut(error.details()).into_owned()));
            }
            Ok(Err(error)) => return Err(library_error::of_sent(&error)),
            Ok(Ok(is_pong)) => is_pong,
        };
        // Any other reply belongs to an earlier command.
        if is_pong { Ok(()) } else { Err(OpError::Unknown("the reply was to another command".into())) }
    }

    /// Requests a new connection and gives the old one some time to end.
    async fn give_up_connection(&mut self) {
        self.link.reconnect();
        let mut sessions = self.link.sessions();
        sessions.mark_unchanged();
        let _ = timeout(ANSWER_TIMEOUT, sessions.changed()).await;
    }
}

enum Step {
    Notice(Notice),
    Subscribe,
    Again,
}
