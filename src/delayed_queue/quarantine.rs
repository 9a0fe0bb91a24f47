//! What was set aside because nobody can read it.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use super::DelayedQueue;
use crate::conn::Command;
use crate::error::Result;
use crate::scripts;
use crate::wire::keys::Keys;

/// One entry of a queue's quarantine: its bytes, and the score it had. From
/// [`DelayedQueue::read_quarantine`].
///
/// Two are equal when their queue, bytes and scores are: one of them then stands for the other.
///
/// # Examples
/// ```no_run
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> redelay::Result<()> {
/// let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
/// for entry in jobs.read_quarantine(100).await? {
///     println!("{} bytes, due {:?}: {:?}", entry.entry().len(), entry.due(), entry.entry());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Quarantined {
    target: Bytes,
    /// As the server wrote it; empty for an entry that was in the list only.
    score: Bytes,
    entry: Bytes,
}

impl Quarantined {
    /// The whole entry, as it was found: an id, a length and a payload, if it were one. The
    /// layouts that can be read are those of [`EntryFormat`](crate::EntryFormat).
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{DelayedQueue, Result};
    /// # async fn example(jobs: DelayedQueue<i64>) -> Result<()> {
    /// for quarantined in jobs.read_quarantine(10).await? {
    ///     println!("{:x}", quarantined.entry()); // In hex.
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn entry(&self) -> &Bytes {
        &self.entry
    }

    /// When it was due, by the server's clock. `None` for an entry that had no due time, or one that is no time.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{DelayedQueue, Result};
    /// # async fn example(jobs: DelayedQueue<i64>) -> Result<()> {
    /// let mut quarantined = jobs.read_quarantine(usize::MAX).await?;
    /// quarantined.sort_by_key(|entry| entry.due());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn due(&self) -> Option<SystemTime> {
        let millis: f64 = std::str::from_utf8(&self.score).ok()?.parse().ok()?;
        let span = Duration::try_from_secs_f64(millis.abs() / 1000.0).ok()?;
        if millis < 0.0 { UNIX_EPOCH.checked_sub(span) } else { UNIX_EPOCH.checked_add(span) }
    }

    fn is_of(&self, keys: &Keys) -> bool {
        self.target == keys.target()
    }
}

impl fmt::Debug for Quarantined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The entry may hold a payload, which has no place in a log.
        f.debug_struct("Quarantined")
            .field("target", &self.target)
            .field("score", &self.score)
            .field("entry_bytes", &self.entry.len())
            .finish()
    }
}

impl<T: 'static> DelayedQueue<T> {
    /// How many entries are in the quarantine: set aside, by whichever client, because nobody can read them. O(1).
    ///
    /// It is a list of its own. Nothing takes from it but [`DelayedQueue::put_back`] and
    /// [`DelayedQueue::drop_quarantined`]; `clear`, `delete` and `expire` leave it alone.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) without a connection, or when no reply came within the
    /// command timeout; [`Refused`](crate::ErrorKind::Refused) for a key of another type, or missing rights.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// if jobs.quarantine_size().await? > 0 {
    ///     println!("somebody writes what nobody can read");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn quarantine_size(&self) -> Result<usize> {
        const VERB: &str = "quarantine_size";
        let command = Command::new("LLEN").arg(self.queue.keys.quarantine().clone());
        let reply = self.queue.read(VERB, command).await?;
        Ok(self.queue.shape(VERB, reply.into_int())?.max(0) as usize / 2)
    }

    /// Up to `max` entries of the quarantine, in the order in which they were set aside. Nothing changes.
    ///
    /// # Errors
    /// As [`DelayedQueue::quarantine_size`].
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// for quarantined in jobs.read_quarantine(100).await? {
    ///     println!("{quarantined:?}: {:?}", quarantined.entry());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn read_quarantine(&self, max: usize) -> Result<Vec<Quarantined>> {
        const VERB: &str = "read_quarantine";
        if max == 0 {
            return Ok(Vec::new());
        }
        let last = i64::try_from(max.saturating_mul(2)).unwrap_or(i64::MAX) - 1;
        let keys = &self.queue.keys;
        let call = scripts::RANGE.on(&[keys.quarantine()]).number(0).number(last).again_is_harmless();
        let reply = self.queue.run(VERB, call).await?;
        let strings = self.queue.shape(VERB, reply.into_counted_bytes())?;
        let pair = |pair: &[Bytes]| Quarantined {
            target: keys.target().clone(),
            score: pair[0].clone(),
            entry: pair[1].clone(),
        };
        Ok(strings.chunks_exact(2).map(pair).collect())
    }

    /// Puts an entry of the quarantine back to where it was, with its due time; whether it was still in the
    /// quarantine. It comes last in the order of the offers. All of it is done, or nothing.
    ///
    /// This is for entries that somebody can read by now, such as a newer version of this crate. One that still
    /// nobody can read is quarantined again as soon as it is due. An entry that is pending already, by its bytes,
    /// is not stored a second time.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for an entry of another queue.
    /// [`Unavailable`](crate::ErrorKind::Unavailable) or [`Refused`](crate::ErrorKind::Refused) (a key of
    /// another type, no memory): nothing was changed.
    /// [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when the reply was lost: to repeat it is harmless,
    /// but may answer false.
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, it may or may not be put back; it is in one of the two places.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// // After an update that reads them:
    /// for quarantined in jobs.read_quarantine(usize::MAX).await? {
    ///     jobs.put_back(&quarantined).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn put_back(&self, quarantined: &Quarantined) -> Result<bool> {
        const VERB: &str = "put_back";
        self.check_quarantined(VERB, quarantined)?;
        let keys = &self.queue.keys;
        let call = scripts::PUT_BACK
            .on(&[keys.timeout_set(), keys.ordered_list(), keys.quarantine(), keys.channel()])
            .arg(quarantined.score.clone())
            .arg(quarantined.entry.clone());
        let reply = self.queue.run(VERB, call).await?;
        Ok(self.queue.shape(VERB, reply.into_int())? > 0)
    }

    /// Deletes an entry from the quarantine, for good; whether it was still there.
    ///
    /// # Errors
    /// As [`DelayedQueue::put_back`]. After [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown), to repeat it
    /// deletes an equal entry, if there is another.
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, it may or may not be deleted.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// for (n, quarantined) in jobs.read_quarantine(usize::MAX).await?.iter().enumerate() {
    ///     std::fs::write(format!("jobs-{n}.bin"), quarantined.entry())?; // Kept for whoever wrote it.
    ///     jobs.drop_quarantined(quarantined).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn drop_quarantined(&self, quarantined: &Quarantined) -> Result<bool> {
        const VERB: &str = "drop_quarantined";
        self.check_quarantined(VERB, quarantined)?;
        let call = scripts::DROP_QUARANTINED
            .on(&[self.queue.keys.quarantine()])
            .arg(quarantined.score.clone())
            .arg(quarantined.entry.clone());
        let reply = self.queue.run(VERB, call).await?;
        Ok(self.queue.shape(VERB, reply.into_int())? > 0)
    }

    fn check_quarantined(&self, verb: &str, quarantined: &Quarantined) -> Result<()> {
        if quarantined.is_of(&self.queue.keys) {
            return Ok(());
        }
        let other = String::from_utf8_lossy(&quarantined.target);
        Err(self.queue.refuse(verb, format!("the entry is of another queue: `{other}`")))
    }
}
