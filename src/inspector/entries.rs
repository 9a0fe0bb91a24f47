//! The ordered list of pending entries.

use std::fmt;
use std::time::SystemTime;

use bytes::Bytes;
use serde::Serialize;

use super::cursor::Short;
use super::look::Look;
use super::page_size::PageSize;
use super::{Cursor, Inspector};
use crate::conn::Command;
use crate::delayed_queue::EntryFormat;
use crate::error::Result;
use crate::wire::{entry, time};

/// An entry of the ordered list. [`Inspector::entries`] returns it.
///
/// # Examples
/// ```no_run
/// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
/// for entry in inspector.entries("orders", None, 100).await? {
///     if entry.score.is_none() {
///         println!("{} is never delivered: the timeout set does not have it", entry.id_text());
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct ListedEntry {
    /// How many entries are in front of it.
    pub index: usize,
    /// When it is due, by the server's clock; `None` if it has no score, or one that is no time.
    #[serde(serialize_with = "time::optional_in_epoch_ms")]
    pub due: Option<SystemTime>,
    /// Its score in the timeout set, as the server prints it; `None` if the set does not have it.
    pub score: Option<String>,
    /// Its id, as that of a [`PendingEntry`](super::PendingEntry).
    pub id: Bytes,
    /// Its layout; `None` if it is malformed.
    pub format: Option<EntryFormat>,
    /// The payload; `None` if the entry is malformed.
    pub payload: Option<Bytes>,
    /// The whole entry.
    pub entry: Bytes,
}

impl ListedEntry {
    fn new(index: usize, entry: Bytes, score: Option<Bytes>) -> Self {
        let score = score.map(|score| String::from_utf8_lossy(&score).into_owned());
        let due = score.as_deref().and_then(|score| score.parse().ok()).and_then(time::of_score);
        let parts = entry::parts(&entry);
        let part = |part: &[u8]| entry.slice_ref(part);
        Self {
            index,
            due: due.map(time::from_epoch_millis),
            score,
            id: parts.map(|parts| part(parts.id)).unwrap_or_default(),
            format: parts.map(|parts| parts.format),
            payload: parts.map(|parts| part(parts.payload)),
            entry,
        }
    }

    /// The id as text: as it is, or in hexadecimal digits behind `0x`.
    ///
    /// # Examples
    /// ```no_run
    /// # fn example(entry: redelay::inspector::ListedEntry) {
    /// println!("{}", entry.id_text()); // order-8120, or 0x9d1f03aa…
    /// # }
    /// ```
    #[must_use]
    pub fn id_text(&self) -> String {
        Short(&self.id).to_string()
    }
}

impl fmt::Debug for ListedEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Payloads must not get into a log.
        f.debug_struct("ListedEntry")
            .field("index", &self.index)
            .field("score", &self.score)
            .field("id", &self.id_text())
            .field("format", &self.format)
            .field("bytes", &self.entry.len())
            .finish_non_exhaustive()
    }
}

impl From<&ListedEntry> for Cursor {
    fn from(listed: &ListedEntry) -> Self {
        Self::in_list(listed.index, &[&listed.entry])
    }
}

impl Inspector {
    /// Reads up to `max` pending entries in the order in which they were offered, with their scores in the
    /// timeout set. Malformed ones are among them. It goes on behind a cursor as [`ready`](Self::ready) does.
    ///
    /// The list and the set are read one after the other, so an entry that is transferred in between has no
    /// score.
    ///
    /// # Errors
    /// As [`ready`](Self::ready), with the permission `ZMSCORE`, too.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
    /// let offered_first = inspector.entries("orders", None, 10).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn entries(
        &self,
        queue: impl AsRef<[u8]>,
        after: Option<Cursor>,
        max: usize,
    ) -> Result<Vec<ListedEntry>> {
        let look = self.look("entries", queue);
        let elements = look.elements(look.keys.ordered_list(), 1, after, max).await?;
        let listed = elements.into_iter().filter_map(|element| {
            let entry = element.items.into_iter().next()?;
            Some((element.index, entry))
        });
        let (indices, entries): (Vec<_>, Vec<_>) = listed.unzip();
        let scores = look.scores(look.keys.timeout_set(), &entries).await?;
        let rows = indices.into_iter().zip(entries).zip(scores);
        Ok(rows.map(|((index, entry), score)| ListedEntry::new(index, entry, score)).collect())
    }
}

impl Look {
    /// The scores of these members, as many at a time as one command may have.
    pub(super) async fn scores(&self, set: &Bytes, members: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        let lengths: Vec<_> = members.iter().map(Bytes::len).collect();
        let mut scores = Vec::with_capacity(members.len());
        while scores.len() < members.len() {
            let from = scores.len();
            let to = (from + 1_000).min(members.len());
            let to = from + PageSize::fitting(&lengths[from..to]);
            let command = Command::new("ZMSCORE").arg(set.clone()).args(members[from..to].iter().cloned());
            let reply = self.ask(command).await?.into_array().map_err(|shape| self.failed(shape))?;
            if reply.len() != to - from {
                return Err(self.failed(self.conn.desynchronised()));
            }
            for score in reply {
                scores.push(score.into_optional_bytes().map_err(|shape| self.failed(shape))?);
            }
        }
        Ok(scores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_without_a_score_is_never_due() {
        let job = entry::pack_job(b"order-8120", b"secret");
        let listed = ListedEntry::new(7, job.clone(), Some("1795615390307".into()));
        assert_eq!(listed.due, Some(time::from_epoch_millis(1_795_615_390_307)));
        assert_eq!((listed.id_text(), listed.index), ("order-8120".into(), 7));
        assert!(!format!("{listed:?}").contains("secret"));
        let lost = ListedEntry::new(0, job, None);
        assert_eq!((lost.due, lost.score), (None, None));
        assert_eq!(ListedEntry::new(0, "junk".into(), Some("inf".into())).due, None);
    }
}
