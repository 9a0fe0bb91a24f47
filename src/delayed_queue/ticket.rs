//! Tickets: finding a pending entry again, to cancel or reschedule it.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bytes::{Buf, BufMut, Bytes};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::DelayedQueue;
use super::store::When;
use crate::conn::Reply;
use crate::error::{Error, Result};
use crate::queue::Op;
use crate::scripts;
use crate::wire::keys::Keys;
use crate::wire::time;

/// The first byte of a ticket.
const VERSION: u8 = 1;

/// Identifies one pending payload, for [`cancel`](DelayedQueue::cancel) and
/// [`reschedule`](DelayedQueue::reschedule). An offer returns it. Each of the two methods says what it costs.
///
/// A ticket is valid until its payload is due or is removed. Rescheduling keeps it valid. It holds the whole
/// entry, including the payload, so protect it like the payload.
///
/// # Text
/// [`Display`](fmt::Display) and [`FromStr`] convert it to and from URL-safe text: letters, digits, `-` and
/// `_`. Any other text is [`Invalid`](crate::ErrorKind::Invalid). The text has about 4/3 × (payload + queue
/// name) + 50 bytes. Serde writes this text in human-readable formats such as JSON, and the bytes that it
/// encodes in the others.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # use redelay::delayed_queue::Ticket;
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::String));
/// let ticket = jobs.offer("job 1", Duration::from_secs(60)).await?;
/// let column = ticket.to_string();
/// // … later, in another process:
/// let ticket: Ticket = column.parse()?;
/// let was_pending = jobs.cancel(&ticket).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Ticket {
    target: String,
    entry: Bytes,
    /// Epoch ms.
    due: u64,
}

impl Ticket {
    pub(crate) fn new(keys: &Keys, entry: Bytes, due: u64) -> Self {
        Self { target: String::from_utf8_lossy(keys.target()).into_owned(), entry, due }
    }

    /// When the payload becomes ready, by the server's clock, as of the offer. Rescheduling does not change
    /// the ticket.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.delayed_queue(&client.blocking_queue("cancel", codec::Long));
    /// # let reminders = client.delayed_queue(&client.blocking_queue("remind", codec::Long));
    /// let ticket = orders.offer(&7, Duration::from_secs(1800)).await?;
    /// // 5 minutes earlier, whatever the clocks of the two machines say.
    /// reminders.offer_at(&7, ticket.due() - Duration::from_secs(300)).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn due(&self) -> SystemTime {
        time::from_epoch_millis(self.due)
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The entry holds the payload, which must not get into a log.
        f.debug_struct("Ticket").field("target", &self.target).field("due", &self.due).finish_non_exhaustive()
    }
}

/// `version: 1 byte | due: 8 bytes | length of the target: 4 bytes | target | entry`.
impl Ticket {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(13 + self.target.len() + self.entry.len());
        bytes.put_u8(VERSION);
        bytes.put_u64(self.due);
        // Redis keys are shorter than 512 MB.
        bytes.put_u32(self.target.len() as u32);
        bytes.put_slice(self.target.as_bytes());
        bytes.put_slice(&self.entry);
        bytes
    }

    fn from_bytes(mut bytes: Bytes) -> Option<Self> {
        (bytes.try_get_u8().ok()? == VERSION).then_some(())?;
        let due = bytes.try_get_u64().ok()?;
        let length = usize::try_from(bytes.try_get_u32().ok()?).ok()?;
        (bytes.len() >= length).then_some(())?;
        let target = String::from_utf8(bytes.split_to(length).into()).ok()?;
        Some(Self { target, entry: bytes, due })
    }
}

/// The bytes in URL-safe Base64.
impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&BASE64_URL_SAFE_NO_PAD.encode(self.to_bytes()))
    }
}

impl FromStr for Ticket {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok();
        bytes
            .and_then(|bytes| Self::from_bytes(bytes.into()))
            .ok_or_else(|| Error::invalid("read a ticket", "expected the text that Ticket's Display writes"))
    }
}

impl Serialize for Ticket {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_bytes(&self.to_bytes())
        }
    }
}

impl<'de> Deserialize<'de> for Ticket {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
        } else {
            let wrong = || D::Error::custom("expected the bytes of a ticket, of a version that is known");
            Self::from_bytes(Bytes::deserialize(deserializer)?).ok_or_else(wrong)
        }
    }
}

/// # Cancel and reschedule
impl<T: 'static> DelayedQueue<T> {
    /// Removes a pending payload. Returns whether it was still pending. O(log n) in the timeout set. In the
    /// ordered list, the server searches from the newest entry on, which is O(n).
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a ticket of another queue.
    /// [`Unavailable`](crate::ErrorKind::Unavailable) or [`Refused`](crate::ErrorKind::Refused) (a key of
    /// another type): nothing was changed. [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when the
    /// reply was lost: a retry is harmless, but may return false.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the payload may or may not be cancelled.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// let ticket = jobs.offer(&7, Duration::from_secs(60)).await?;
    /// if !jobs.cancel(&ticket).await? {
    ///     println!("too late: it is ready, or already taken");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cancel(&self, ticket: &Ticket) -> Result<bool> {
        let op = self.queue.op("cancel");
        let call = scripts::CANCEL.of(&self.queue.keys, None).arg(self.entry_of(op, ticket)?);
        op.any(op.run(call).await?)
    }

    /// Gives a pending payload another delay, counted from now. Returns whether it was still pending. Its
    /// place in [`DelayedQueue::read_all`] does not change. O(log n).
    ///
    /// # Errors
    /// As [`DelayedQueue::cancel`], and [`Invalid`](crate::ErrorKind::Invalid) for a delay of 10^15 ms or
    /// more. After [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown), a retry counts the delay from the
    /// retry.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the payload may or may not be rescheduled.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// let alarm = jobs.offer(&7, Duration::from_secs(30)).await?;
    /// // A sign of life puts the alarm off again.
    /// if !jobs.reschedule(&alarm, Duration::from_secs(30)).await? {
    ///     println!("the alarm has gone off");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn reschedule(&self, ticket: &Ticket, delay: Duration) -> Result<bool> {
        let op = self.queue.op("reschedule");
        let delay = time::millis(delay).map_err(|why| op.invalid(why))?;
        self.set_due(op, ticket, When::After, delay).await
    }

    /// Gives a pending payload another due time, by the server's clock. Returns whether it was still pending.
    /// O(log n).
    ///
    /// # Errors
    /// As [`DelayedQueue::cancel`], and [`Invalid`](crate::ErrorKind::Invalid) for a time of 10^15 ms or
    /// more.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the payload may or may not be rescheduled.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// let ticket = jobs.offer(&7, Duration::from_secs(60)).await?;
    /// // 10 minutes later than it was.
    /// jobs.reschedule_at(&ticket, ticket.due() + Duration::from_secs(600)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn reschedule_at(&self, ticket: &Ticket, at: impl Into<SystemTime>) -> Result<bool> {
        let op = self.queue.op("reschedule_at");
        let at = time::epoch_millis(at.into()).map_err(|why| op.invalid(why))?;
        self.set_due(op, ticket, When::At, at).await
    }

    async fn set_due(&self, op: Op<'_>, ticket: &Ticket, when: When, time: u64) -> Result<bool> {
        let entry = self.entry_of(op, ticket)?;
        let keys = &self.queue.keys;
        let call = scripts::RESCHEDULE.of(keys, None).arg(when.base()).number(time).arg(entry);
        let reply = op.run(call).await.inspect_err(|error| op.on_lost(error))?;
        if reply == Reply::Nil {
            return Ok(false);
        }
        let [_clock, head] = op.parts(reply)?;
        op.on_head(op.optional_score(head)?);
        Ok(true)
    }

    /// Whether a ticket is of this queue.
    pub(crate) fn has_given(&self, ticket: &Ticket) -> bool {
        ticket.target.as_bytes() == self.queue.keys.target()
    }

    fn entry_of(&self, op: Op<'_>, ticket: &Ticket) -> Result<Bytes> {
        if self.has_given(ticket) {
            Ok(ticket.entry.clone())
        } else {
            Err(op.invalid(format!("the ticket is of another queue: `{}`", ticket.target)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn ticket() -> Ticket {
        Ticket {
            target: "shop:очередь".into(),
            entry: Bytes::from(vec![0xff; 1_000]),
            due: 1_700_000_000_000,
        }
    }

    #[test]
    fn text_is_safe_in_a_url_and_compact() {
        let text = ticket().to_string();
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{text}");
        assert!(text.len() < 1_400, "{} bytes", text.len());
        assert_eq!(text.parse::<Ticket>().unwrap(), ticket());
    }

    #[test]
    fn serde_uses_the_text_in_json_and_bytes_elsewhere() {
        let json = serde_json::to_string(&ticket()).unwrap();
        assert_eq!(json, format!("\"{}\"", ticket()));
        assert_eq!(serde_json::from_str::<Ticket>(&json).unwrap(), ticket());
        let packed = rmp_serde::to_vec(&ticket()).unwrap();
        assert!(packed.len() < 1_040, "{} bytes", packed.len());
        assert_eq!(rmp_serde::from_slice::<Ticket>(&packed).unwrap(), ticket());
        let mut other_version = ticket().to_bytes();
        other_version[0] += 1;
        let other_version = rmp_serde::to_vec(&Bytes::from(other_version)).unwrap();
        let error = rmp_serde::from_slice::<Ticket>(&other_version).unwrap_err();
        assert!(error.to_string().contains("version"), "{error}");
    }

    #[test]
    fn other_texts_are_refused() {
        let text = ticket().to_string();
        let other_version = format!("AA{}", &text[2..]);
        for wrong in ["", "A", "order-17", "a b", &text[..16], &other_version] {
            let error = wrong.parse::<Ticket>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{wrong}");
            assert!(error.to_string().contains("read a ticket"), "{error}");
        }
    }
}
