//! What happens to queues while one looks.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::SystemTime;

use bytes::Bytes;
use futures::Stream;
use serde::Serialize;
use tokio::sync::mpsc;

use super::Inspector;
use super::find::glob;
use super::find::names;
use crate::announcements;
use crate::conn::{Conn, Notice, OpError};
use crate::error::{Error, Result};
use crate::wire::keys::MOVED;
use crate::wire::time;

const ATTEMPT: &str = "`inspector().watch`";
/// Announcements, and transfers.
const PATTERNS: &[&str] = &[names::CHANNELS, "redelay:moved:*"];

/// Something that happens to a queue. [`Inspector::watch`] returns these.
///
/// A tag is in braces if the name of the queue has none: `{orders}` is that of `orders`, and also that of the
/// queue `{orders}`, which a message on a channel does not tell apart.
///
/// # Examples
/// ```no_run
/// # use futures::TryStreamExt;
/// # use redelay::inspector::Happening;
/// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
/// let mut happenings = inspector.watch("*");
/// while let Some(happening) = happenings.try_next().await? {
///     match happening {
///         Happening::Announced { queue, due, .. } => println!("{queue:?}: the next one is due at {due:?}"),
///         Happening::Transferred { queue, next, .. } => println!("{queue:?}: moved; the next one: {next:?}"),
///         _ => {}
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Happening {
    /// The server sends what happens from now on. It is the first one, and comes again after a lost
    /// connection, and after more messages than were read in time: what happened before is not known.
    Listening,
    /// A client has offered the entry that is due next.
    #[non_exhaustive]
    Announced {
        /// The name of the queue.
        queue: Bytes,
        /// When it is due; `None` if the message is no time.
        #[serde(serialize_with = "time::optional_in_epoch_ms")]
        due: Option<SystemTime>,
    },
    /// A redelay client has transferred what was due. Redisson publishes no such messages.
    #[non_exhaustive]
    Transferred {
        /// The name of the queue.
        queue: Bytes,
        /// When, by the server's clock.
        #[serde(serialize_with = "time::optional_in_epoch_ms")]
        at: Option<SystemTime>,
        /// When the next entry is due; `None` if there is none.
        #[serde(serialize_with = "time::optional_in_epoch_ms")]
        next: Option<SystemTime>,
    },
}

/// What happens to queues. [`Inspector::watch`] returns this stream. It ends with the client.
pub struct Happenings {
    notices: mpsc::Receiver<Notice>,
    pattern: Vec<u8>,
    conn: Conn,
    is_over: bool,
}

impl Happenings {
    fn of(&self, notice: Notice) -> Option<Result<Happening>> {
        match notice {
            Notice::Confirmed(_) | Notice::Missed => Some(Ok(Happening::Listening)),
            Notice::Refused(pattern) => {
                let why = format!(
                    "NOPERM no permission to listen to `{pattern}` (PSUBSCRIBE, and channels that match)"
                );
                Some(Err(Error::operation(ATTEMPT, OpError::Server(why))))
            }
            Notice::Message { channel, payload } => {
                let happening = happening(channel.into(), &payload)?;
                let (Happening::Announced { queue, .. } | Happening::Transferred { queue, .. }) = &happening
                else {
                    return None;
                };
                glob::matches(&self.pattern, queue).then_some(Ok(happening))
            }
        }
    }
}

/// What a message on a channel says.
fn happening(channel: Bytes, payload: &[u8]) -> Option<Happening> {
    let time = |millis: f64| time::of_score(millis).map(time::from_epoch_millis);
    if let Some(tag) = channel.strip_prefix(MOVED.as_bytes()) {
        let queue = names::of_tag(channel.slice_ref(tag))?.likelier();
        let (_, clock, head) = announcements::moved(payload)?;
        return Some(Happening::Transferred {
            queue,
            at: time(clock as f64 / 1_000.0),
            next: head.and_then(time),
        });
    }
    let due = std::str::from_utf8(payload).ok().and_then(|due| due.parse().ok());
    Some(Happening::Announced { queue: names::of_channel(&channel)?.likelier(), due: due.and_then(time) })
}

impl Stream for Happenings {
    type Item = Result<Happening>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while !self.is_over {
            let Some(notice) = std::task::ready!(self.notices.poll_recv(context)) else { break };
            if let Some(happening) = self.of(notice) {
                self.is_over = happening.is_err();
                return Poll::Ready(Some(happening));
            }
        }
        Poll::Ready(None)
    }
}

impl fmt::Debug for Happenings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Happenings").field("server", &self.conn.server()).finish_non_exhaustive()
    }
}

impl Inspector {
    /// Watches what happens to the queues whose names match a pattern, as [`queues`](Self::queues) has it.
    /// Opens a connection for that; in a cluster, one to each master.
    ///
    /// # Errors
    /// The stream ends with [`Refused`](crate::ErrorKind::Refused) if the user lacks the permission for
    /// `PSUBSCRIBE`, or for the channels. A lost connection is restored.
    ///
    /// # Examples
    /// ```no_run
    /// # use futures::TryStreamExt;
    /// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
    /// let mut happenings = inspector.watch("shop:*");
    /// while let Some(happening) = happenings.try_next().await? {
    ///     println!("{happening:?}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn watch(&self, pattern: impl AsRef<[u8]>) -> Happenings {
        Happenings {
            notices: self.conn.listen_to_patterns(PATTERNS, self.engine.at_stop.stop.clone()),
            pattern: pattern.as_ref().to_vec(),
            conn: self.conn.clone(),
            is_over: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read() {
        let read = |channel: &'static str, payload: &str| happening(channel.into(), payload.as_bytes());
        let at = |millis| Some(time::from_epoch_millis(millis));
        assert_eq!(
            read("redisson_delay_queue_channel:{q}", "1795615390307"),
            Some(Happening::Announced { queue: "q".into(), due: at(1_795_615_390_307) })
        );
        assert_eq!(
            read("redisson_delay_queue_channel:{tag}q", "junk"),
            Some(Happening::Announced { queue: "{tag}q".into(), due: None })
        );
        assert_eq!(
            read("redelay:moved:{q}", "me 1795615390307000 1795615390400"),
            Some(Happening::Transferred {
                queue: "q".into(),
                at: at(1_795_615_390_307),
                next: at(1_795_615_390_400)
            })
        );
        assert_eq!(
            read("redelay:moved:{q}", "me 1795615390307000 "),
            Some(Happening::Transferred { queue: "q".into(), at: at(1_795_615_390_307), next: None })
        );
        assert_eq!(read("other", "1"), None);
    }
}
