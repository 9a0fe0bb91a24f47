//! Pending entries, by due time.

use std::fmt;
use std::time::SystemTime;

use bytes::Bytes;
use serde::Serialize;

use super::cursor::Short;
use super::sorted::Scored;
use super::{Cursor, Inspector};
use crate::delayed_queue::{EntryFormat, Ticket};
use crate::error::Result;
use crate::wire::keys::Keys;
use crate::wire::{entry, time};

/// A pending entry. [`Inspector::pending`] returns it.
///
/// # Examples
/// ```no_run
/// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
/// for entry in inspector.pending("orders", None, 100).await? {
///     println!("{:?} {}: {} bytes", entry.due, entry.id_text(), entry.payload.map_or(0, |payload| payload.len()));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct PendingEntry {
    /// When it is due, by the server's clock; `None` if its score is no time.
    #[serde(serialize_with = "time::optional_in_epoch_ms")]
    pub due: Option<SystemTime>,
    /// Its score, as the server prints it: epoch milliseconds, unless a client has made a mistake.
    pub score: String,
    /// Its id: random bytes of Redisson, a time-ordered id of redelay, or that of a job. Empty if the entry
    /// is malformed.
    pub id: Bytes,
    /// Its layout; `None` if it is malformed.
    pub format: Option<EntryFormat>,
    /// The payload; `None` if the entry is malformed.
    pub payload: Option<Bytes>,
    /// The whole entry, as it is in the timeout set and in the ordered list.
    pub entry: Bytes,
    #[serde(skip)]
    keys: Target,
}

/// The queue of an entry.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Target(Keys);

impl PendingEntry {
    fn new(keys: &Keys, Scored { member: entry, score }: Scored) -> Self {
        let score = String::from_utf8_lossy(&score).into_owned();
        let parts = entry::parts(&entry);
        let part = |part: &[u8]| entry.slice_ref(part);
        Self {
            due: due_of(&score).map(time::from_epoch_millis),
            id: parts.map(|parts| part(parts.id)).unwrap_or_default(),
            format: parts.map(|parts| parts.format),
            payload: parts.map(|parts| part(parts.payload)),
            keys: Target(keys.clone()),
            score,
            entry,
        }
    }

    /// The id as text: as it is, or in hexadecimal digits behind `0x`.
    ///
    /// # Examples
    /// ```no_run
    /// # fn example(entry: redelay::inspector::PendingEntry) {
    /// println!("{}", entry.id_text()); // order-8120, or 0x9d1f03aa…
    /// # }
    /// ```
    #[must_use]
    pub fn id_text(&self) -> String {
        Short(&self.id).to_string()
    }

    /// The ticket with which a client cancels or reschedules this entry, whichever client has offered it.
    /// `None` if the entry is malformed or has no due time.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let orders = client.delayed_queue(&client.blocking_queue::<Vec<u8>>("orders", codec::Bytes));
    /// let next = client.inspector().pending("orders", None, 1).await?;
    /// if let Some(ticket) = next.first().and_then(|entry| entry.ticket()) {
    ///     orders.cancel(&ticket).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn ticket(&self) -> Option<Ticket> {
        let due = due_of(&self.score)?;
        self.format?;
        Some(Ticket::new(&self.keys.0, self.entry.clone(), due))
    }
}

impl fmt::Debug for PendingEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Payloads must not get into a log.
        f.debug_struct("PendingEntry")
            .field("score", &self.score)
            .field("id", &self.id_text())
            .field("format", &self.format)
            .field("bytes", &self.entry.len())
            .finish_non_exhaustive()
    }
}

impl From<&PendingEntry> for Cursor {
    fn from(entry: &PendingEntry) -> Self {
        Self::in_set(&Bytes::copy_from_slice(entry.score.as_bytes()), &entry.entry)
    }
}

/// The due time of a score, epoch ms.
fn due_of(score: &str) -> Option<u64> {
    score.parse().ok().and_then(time::of_score)
}

impl Inspector {
    /// Reads up to `max` pending entries in the order in which they are due, from the first one or behind a
    /// cursor. Malformed ones are among them.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable), or [`Refused`](crate::ErrorKind::Refused) for a key of
    /// another type or a missing permission (`ZRANGE`, `ZRANGEBYSCORE`, `ZCARD`, `ZCOUNT`).
    /// [`Invalid`](crate::ErrorKind::Invalid) for a cursor of something else.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
    /// let next = inspector.pending("orders", None, 10).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn pending(
        &self,
        queue: impl AsRef<[u8]>,
        after: Option<Cursor>,
        max: usize,
    ) -> Result<Vec<PendingEntry>> {
        let look = self.look("pending", queue);
        let members = look.members(look.keys.timeout_set(), after, max).await?;
        Ok(members.into_iter().map(|member| PendingEntry::new(&look.keys, member)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_taken_apart() {
        let read = |score: &'static str, entry: Bytes| {
            PendingEntry::new(&Keys::new("q"), Scored { member: entry, score: score.into() })
        };
        let job = read("1795615390307", entry::pack_job(b"order-8120", b"secret"));
        assert_eq!(job.due, Some(time::from_epoch_millis(1_795_615_390_307)));
        assert_eq!((job.id_text(), job.format), ("order-8120".into(), Some(EntryFormat::Current)));
        assert_eq!(job.payload.as_deref(), Some(&b"secret"[..]));
        assert!(job.ticket().is_some() && !format!("{job:?}").contains("secret"));
        let malformed = read("7", Bytes::from_static(b"junk"));
        assert_eq!((malformed.format, malformed.payload.clone()), (None, None));
        assert!(malformed.ticket().is_none() && malformed.due.is_some());
        for score in ["-5", "inf", "1e15", "nan"] {
            let strange = read(score, entry::pack_job(b"x", b"y"));
            assert!(strange.due.is_none() && strange.ticket().is_none(), "{score}");
        }
        assert_eq!(read("1.5", entry::pack_job(b"x", b"y")).due, Some(time::from_epoch_millis(2)));
    }
}
