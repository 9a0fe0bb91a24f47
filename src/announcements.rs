//! What a client hears of others: one connection for the announcements of all queues, and who listens to
//! which channel. The connection is opened for the first listener.
//!
//! An announcement that did not come says little about why. Its producer may announce nothing, and then all
//! is well but for one entry. Or this client hears nothing. So it subscribes to the channel again, on the
//! same connection: a subscriber that lives confirms that. Without a confirmation, the client opens another
//! one.

mod heard;
mod listeners;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::conn::{Channels, Conn, Notice};
use crate::wire::message::MessageId;
use crate::wire::time;
pub(crate) use heard::{Announced, CancelRequests, Following};
use listeners::Listeners;

/// How long a subscriber may take to confirm a subscription. It gives up a connection that is silent for 3 s.
const CONFIRMS: Duration = Duration::from_secs(4);
/// How often a client opens another connection because of what it has not heard, at most.
const SELDOM: Duration = Duration::from_secs(60);
/// The same if the subscriber has confirmed its subscription, and an announcement is missing again. Most
/// likely, its producer announces nothing. But a connection may confirm, and deliver no messages.
const RARELY: Duration = Duration::from_secs(600);

/// The announcements for queues, which are `Q` here, and for receivers.
pub(crate) struct Announcements<Q> {
    conn: Conn,
    /// The channels that are subscribed to, and what is heard on them.
    listening: Option<(Channels, mpsc::Receiver<Notice>)>,
    queues: Listeners<Q>,
    receivers: Listeners<Arc<Announced>>,
    /// The channels that a subscriber is to confirm, and since when.
    unconfirmed: HashMap<Arc<str>, Instant>,
    /// Those that it has confirmed since then; and since when one of them has missed announcements again.
    confirmed: HashSet<Arc<str>>,
    doubtful_since: Option<Instant>,
    /// When a connection was last opened because of that.
    reopened: Option<Instant>,
}

impl<Q: Copy + PartialEq> Announcements<Q> {
    pub(crate) fn new(conn: Conn) -> Self {
        Self {
            conn,
            listening: None,
            queues: Listeners::default(),
            receivers: Listeners::default(),
            unconfirmed: HashMap::new(),
            confirmed: HashSet::new(),
            doubtful_since: None,
            reopened: None,
        }
    }

    /// Whether there is a connection: a queue listens, or has listened.
    pub(crate) fn is_open(&self) -> bool {
        self.listening.is_some()
    }

    /// Lets a queue listen to a channel.
    pub(crate) fn join(&mut self, channel: &[u8], queue: Q) {
        let (channels, _) = self.listening.get_or_insert_with(|| self.conn.listen());
        self.queues.add(channel, queue, channels);
    }

    pub(crate) fn leave(&mut self, channel: &[u8], queue: Q) {
        if let Some((channels, _)) = &self.listening {
            let name = self.queues.remove(channel, |other| *other == queue, channels);
            if self.queues.of(&name).next().is_none() {
                self.unconfirmed.remove(&name);
                self.confirmed.remove(&name);
            }
        }
    }

    /// Lets a receiver listen to a channel.
    pub(crate) fn follow(&mut self, channel: &[u8], receiver: Arc<Announced>) {
        let (channels, _) = self.listening.get_or_insert_with(|| self.conn.listen());
        self.receivers.add(channel, receiver, channels);
    }

    pub(crate) fn unfollow(&mut self, channel: &[u8], receiver: &Arc<Announced>) {
        if let Some((channels, _)) = &self.listening {
            self.receivers.remove(channel, |other| Arc::ptr_eq(other, receiver), channels);
        }
    }

    /// The queues that listen to a channel.
    pub(crate) fn of(&self, channel: &str) -> impl Iterator<Item = Q> {
        self.queues.of(channel).copied()
    }

    /// What concerns queues. Receivers have been told. Pending if there is no connection, or if its task has
    /// ended. Cancel safe.
    pub(crate) async fn next(&mut self) -> Notice {
        let notice = match &mut self.listening {
            Some((_, notices)) => notices.recv().await,
            None => None,
        };
        let Some(notice) = notice else { std::future::pending().await };
        match &notice {
            Notice::Confirmed(channels) => {
                for channel in channels {
                    self.confirms(channel);
                    // What was announced before is not known.
                    self.receivers.of(channel).for_each(|receiver| receiver.on_unheard());
                }
            }
            // It is reported, and tried again.
            Notice::Refused(channel) => self.confirms(channel),
            Notice::Missed => self.receivers.all().for_each(|receiver| receiver.on_unheard()),
            Notice::Message { channel, payload } => {
                let mut receivers = self.receivers.of(channel).peekable();
                if receivers.peek().is_some() {
                    match cancelled(payload) {
                        Some(message) => receivers.for_each(|receiver| receiver.on_cancelled(message)),
                        None => {
                            let due = due(payload);
                            receivers.for_each(|receiver| receiver.on_retry(due));
                        }
                    }
                }
            }
        }
        notice
    }

    /// An announcement should have come on this channel, and has not. Asks the subscriber for a sign of life.
    pub(crate) fn misses(&mut self, channel: &[u8], now: Instant) {
        let Some((channels, _)) = &self.listening else { return };
        let channel = self.queues.subscribe_again(channel, channels);
        if self.confirmed.contains(&channel) {
            self.doubtful_since.get_or_insert(now);
        }
        self.unconfirmed.entry(channel).or_insert(now);
    }

    /// Opens another connection if this one hears nothing. The old one ends with its channels.
    pub(crate) fn check(&mut self, now: Instant) {
        // The task that listens has ended, although nothing should end it; or it does nothing.
        let has_ended = self.listening.as_ref().is_some_and(|(_, notices)| notices.is_closed());
        let is_mute = self.unconfirmed.values().any(|since| now - *since >= CONFIRMS);
        let may_reopen = self.reopened.is_none_or(|last| now - last >= SELDOM);
        let is_doubtful = self.doubtful_since.is_some_and(|since| now - since >= RARELY);
        if has_ended || is_mute && may_reopen || is_doubtful {
            self.reopened = Some(now);
            self.trust();
            let listening = self.conn.listen();
            self.queues.subscribe_all(&listening.0);
            self.receivers.subscribe_all(&listening.0);
            self.listening = Some(listening);
        }
    }

    /// Nothing is known against the connection.
    pub(crate) fn trust(&mut self) {
        self.unconfirmed.clear();
        self.confirmed.clear();
        self.doubtful_since = None;
    }

    /// A subscriber has said what became of a subscription.
    fn confirms(&mut self, channel: &str) {
        if let Some((channel, _)) = self.unconfirmed.remove_entry(channel) {
            self.confirmed.insert(channel);
        }
    }

    /// The subscriber hears no wishes, and sends no notices, as long as the test runs.
    #[cfg(all(test, workspace))]
    pub(crate) fn deafen(&mut self) {
        let (channels, wishes) = Channels::unheard();
        let (sender, notices) = mpsc::channel(1);
        std::mem::forget((sender, wishes));
        self.listening = Some((channels, notices));
    }
}

/// The message whose job somebody has asked to cancel: see `cancel_jobs.lua`.
fn cancelled(payload: &[u8]) -> Option<MessageId> {
    payload.strip_prefix(b"cancel ")?.try_into().ok().map(MessageId)
}

/// The due time of an announcement, epoch ms.
pub(crate) fn due(payload: &[u8]) -> f64 {
    // Redisson understands decimal integers only. Any other message still means that something happened, and
    // one call costs little.
    let due = std::str::from_utf8(payload).ok().and_then(|text| text.trim().parse::<f64>().ok());
    due.filter(|due| !due.is_nan()).unwrap_or(0.0)
}

/// What a client says after a transfer: its id, the server's clock, µs, and the head, epoch ms.
pub(crate) fn moved(payload: &[u8]) -> Option<(&str, i64, Option<f64>)> {
    let mut words = std::str::from_utf8(payload).ok()?.split(' ');
    let (client_id, clock, head) = (words.next()?, words.next()?.parse().ok()?, words.next()?);
    let head = match head {
        "" => None,
        head => Some(head.parse().ok().filter(|head: &f64| !head.is_nan())?),
    };
    time::is_clock(clock).then_some((client_id, clock, head))
}
