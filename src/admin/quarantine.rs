//! The quarantine: malformed entries, kept apart so that they do not stop the queue.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use crate::DelayedQueue;
use crate::conn::Command;
use crate::error::Result;
use crate::queue::{Op, Queue};
use crate::scripts;

/// One entry of a queue's quarantine: its bytes and the score it had. [`Quarantine::read`] returns it.
///
/// Two are equal if their queues, bytes and scores are equal. Then either identifies the entry.
///
/// # Examples
/// ```no_run
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> redelay::Result<()> {
/// let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
/// for entry in jobs.quarantine().read(100).await? {
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
    /// The bytes of the whole entry. A well-formed entry has one of the layouts of [`EntryFormat`](crate::delayed_queue::EntryFormat).
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{DelayedQueue, Result};
    /// # async fn example(jobs: DelayedQueue<i64>) -> Result<()> {
    /// for quarantined in jobs.quarantine().read(10).await? {
    ///     println!("{:x}", quarantined.entry()); // In hex.
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn entry(&self) -> &Bytes {
        &self.entry
    }

    /// When the entry was due, by the server's clock. `None` if it had no due time, or one that is not a time.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{DelayedQueue, Result};
    /// # async fn example(jobs: DelayedQueue<i64>) -> Result<()> {
    /// let mut quarantined = jobs.quarantine().read(usize::MAX).await?;
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
}

impl fmt::Debug for Quarantined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The entry may hold a payload, which must not get into a log.
        f.debug_struct("Quarantined")
            .field("target", &self.target)
            .field("score", &self.score)
            .field("entry_bytes", &self.entry.len())
            .finish()
    }
}

/// # Malformed entries
impl<T: 'static> DelayedQueue<T> {
    /// The quarantine of this queue. No command is sent.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// println!("{} malformed entries", jobs.quarantine().len().await?);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn quarantine(&self) -> Quarantine {
        Quarantine { queue: self.queue_arc().clone() }
    }
}

/// The malformed entries of one delayed queue: those that neither this crate nor Redisson can read.
/// [`DelayedQueue::quarantine`] returns this handle.
///
/// Transfers and polls move malformed entries here, so that they do not stop the queue. The quarantine is a separate
/// list on the server. Only [`requeue`](Self::requeue) and [`remove`](Self::remove) take entries from it;
/// [`DelayedQueue::clear`], `delete` and `expire` do not touch it.
///
/// # Examples
/// ```no_run
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> redelay::Result<()> {
/// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
/// let quarantine = jobs.quarantine();
/// for entry in quarantine.read(100).await? {
///     println!("removing {entry:?}");
///     quarantine.remove(&entry).await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Quarantine {
    queue: Arc<Queue>,
}

impl Quarantine {
    /// The number of entries in the quarantine, from all clients. O(1).
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) without a connection, or when no reply came within the command
    /// timeout. [`Refused`](crate::ErrorKind::Refused) for a key of another type, or a missing permission.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// if jobs.quarantine().len().await? > 0 {
    ///     println!("some client writes entries that no client can read");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "size")]
    pub async fn len(&self) -> Result<usize> {
        let op = self.queue.reading("quarantine().len");
        let command = Command::new("LLEN").arg(self.queue.keys.quarantine().clone());
        // The list holds a score and an entry for each.
        Ok(op.len(op.query(command).await?)? / 2)
    }

    /// Whether the quarantine is empty.
    ///
    /// # Errors
    /// As [`Quarantine::len`].
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::DelayedQueue;
    /// # async fn example(jobs: DelayedQueue<i64>) -> redelay::Result<()> {
    /// assert!(jobs.quarantine().is_empty().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn is_empty(&self) -> Result<bool> {
        Ok(self.len().await? == 0)
    }

    /// Up to `max` entries, the oldest first. Nothing changes.
    ///
    /// # Errors
    /// As [`Quarantine::len`].
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// for quarantined in jobs.quarantine().read(100).await? {
    ///     println!("{quarantined:?}: {:?}", quarantined.entry());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn read(&self, max: usize) -> Result<Vec<Quarantined>> {
        let op = self.queue.reading("quarantine().read");
        let keys = &self.queue.keys;
        let strings = op.read_payloads(keys.quarantine(), max.saturating_mul(2)).await?;
        let pair = |pair: &[Bytes]| Quarantined {
            target: keys.target().clone(),
            score: pair[0].clone(),
            entry: pair[1].clone(),
        };
        Ok(strings.chunks_exact(2).map(pair).collect())
    }

    /// Returns an entry to the delayed queue, with its due time. Returns whether it was still in the quarantine. It
    /// becomes the last in the ordered list. The call is atomic.
    ///
    /// This is for entries that a client can read now, for example with a newer version of this crate. An entry that is
    /// still malformed is quarantined again as soon as it is due. An entry whose bytes are already pending is not
    /// stored twice.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for an entry of another queue. [`Unavailable`](crate::ErrorKind::Unavailable)
    /// or [`Refused`](crate::ErrorKind::Refused) (a key of another type, no memory): nothing was changed.
    /// [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when the reply was lost: a retry is harmless, but may return
    /// false.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the entry is in either of the two places.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// // After an update that can read them:
    /// let quarantine = jobs.quarantine();
    /// for quarantined in quarantine.read(usize::MAX).await? {
    ///     quarantine.requeue(&quarantined).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn requeue(&self, quarantined: &Quarantined) -> Result<bool> {
        let op = self.queue.op("quarantine().requeue");
        self.check(op, quarantined)?;
        let keys = &self.queue.keys;
        let call = scripts::REQUEUE_QUARANTINED
            .on(&[keys.timeout_set(), keys.ordered_list(), keys.quarantine(), keys.channel(), keys.scratch()])
            .arg(quarantined.score.clone())
            .arg(quarantined.entry.clone());
        let reply = op.run(call).await.inspect_err(|error| op.on_lost(error))?;
        let [requeued, head] = op.parts(reply)?;
        op.on_head(op.optional_score(head)?);
        op.any(requeued)
    }

    /// Deletes an entry from the quarantine. Returns whether it was still there.
    ///
    /// # Errors
    /// As [`Quarantine::requeue`]. After [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown), a retry deletes an equal
    /// entry, if there is another.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the entry may or may not be deleted.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// let quarantine = jobs.quarantine();
    /// for (n, quarantined) in quarantine.read(usize::MAX).await?.iter().enumerate() {
    ///     std::fs::write(format!("jobs-{n}.bin"), quarantined.entry())?; // Kept for an inspection.
    ///     quarantine.remove(quarantined).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove(&self, quarantined: &Quarantined) -> Result<bool> {
        let op = self.queue.op("quarantine().remove");
        self.check(op, quarantined)?;
        let call = scripts::REMOVE_QUARANTINED
            .on(&[self.queue.keys.quarantine(), self.queue.keys.scratch()])
            .arg(quarantined.score.clone())
            .arg(quarantined.entry.clone());
        op.any(op.run(call).await?)
    }

    fn check(&self, op: Op<'_>, quarantined: &Quarantined) -> Result<()> {
        if quarantined.target == self.queue.keys.target() {
            return Ok(());
        }
        let other = String::from_utf8_lossy(&quarantined.target);
        Err(op.invalid(format!("the entry is of another queue: `{other}`")))
    }
}
