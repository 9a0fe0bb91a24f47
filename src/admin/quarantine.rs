//! The quarantine: malformed entries, kept apart so that they do not stop the queue.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use serde::Serialize;

use crate::DelayedQueue;
use crate::conn::{Command, Reply};
use crate::error::Result;
use crate::queue::{Op, Queue};
use crate::scripts;
use crate::wire::time;

/// The most entries of the same page that are searched for if an entry has left, and their most bytes.
const KNOWN: usize = 16;
const KNOWN_BYTES: usize = 65_536;
/// The most entries that one call reads.
const MOST: usize = 500;

/// One entry of a queue's quarantine. [`Quarantine::read`] returns it, and reads on behind it.
/// [`requeue`](Quarantine::requeue) and [`remove`](Quarantine::remove) accept it.
///
/// Two are equal if their queues, bytes and scores are equal. Then either identifies the entry.
///
/// # Examples
/// ```no_run
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> redelay::Result<()> {
/// let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
/// for quarantined in jobs.quarantine().read(None, 100).await? {
///     println!("due {:?}: {:x}", quarantined.due, quarantined.entry); // In hex.
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Serialize)]
#[non_exhaustive]
pub struct Quarantined {
    /// When the entry was due, by the server's clock. `None` if it had no due time, or one that is not a
    /// time.
    #[serde(serialize_with = "time::optional_in_epoch_ms")]
    pub due: Option<SystemTime>,
    /// The bytes of the whole entry. A well-formed entry has one of the layouts of
    /// [`EntryFormat`](crate::delayed_queue::EntryFormat).
    pub entry: Bytes,
    /// As the server wrote it; empty for an entry that was in the list only.
    #[serde(skip)]
    score: Bytes,
    #[serde(skip)]
    target: Bytes,
    /// The page on which it was read, and where it is there.
    #[serde(skip)]
    page: Arc<Page>,
    #[serde(skip)]
    at: usize,
    /// How many entries of the list were in front of it.
    #[serde(skip)]
    before: usize,
}

/// Score and entry.
type Pair = [Bytes; 2];

/// What one call has read.
struct Page {
    pairs: Vec<Pair>,
    /// How many of these were in front of the entries that were asked for.
    known: usize,
}

impl PartialEq for Quarantined {
    fn eq(&self, other: &Self) -> bool {
        (&self.target, &self.score, &self.entry) == (&other.target, &other.score, &other.entry)
    }
}

impl Eq for Quarantined {}

impl Hash for Quarantined {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.target, &self.score, &self.entry).hash(state);
    }
}

impl Quarantined {
    /// An entry of which no neighbours are known.
    pub(crate) fn alone(target: Bytes, score: Bytes, entry: Bytes, before: usize) -> Self {
        let due = due(&score);
        let page = Arc::new(Page { pairs: vec![[score.clone(), entry.clone()]], known: 0 });
        Self { due, entry, score, target, page, at: 0, before }
    }

    /// How many entries of the list were in front of it, and what it is there.
    pub(crate) fn position(&self) -> (usize, [&Bytes; 2]) {
        (self.before, [&self.score, &self.entry])
    }

    /// The entries near which the reading goes on: itself, the one behind it, and some of those in front of
    /// it, the nearest one first. For each, how many entries are in front of it at most, and whether the
    /// reading goes on behind it.
    fn cursor(&self) -> impl Iterator<Item = (usize, bool, &Pair)> {
        let Page { pairs, known } = &*self.page;
        let next = pairs.get(self.at + 1).map(|pair| (self.before + 1, false, pair));
        let mut bytes = 0;
        let in_page = pairs[*known..self.at].iter().rev().take(KNOWN).take_while(move |[score, entry]| {
            bytes += score.len() + entry.len();
            bytes <= KNOWN_BYTES
        });
        let in_front = in_page.chain(pairs[..*known].iter().rev());
        [(self.before, true, &pairs[self.at])]
            .into_iter()
            .chain(next)
            .chain(in_front.map(|pair| (self.before, true, pair)))
    }
}

/// The time that a score stands for, if it is one.
fn due(score: &[u8]) -> Option<SystemTime> {
    let millis: f64 = std::str::from_utf8(score).ok()?.parse().ok()?;
    let span = Duration::try_from_secs_f64(millis.abs() / 1000.0).ok()?;
    if millis < 0.0 { UNIX_EPOCH.checked_sub(span) } else { UNIX_EPOCH.checked_add(span) }
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
/// Transfers and polls move malformed entries here, so that they do not stop the queue. The quarantine is a
/// separate list on the server. Only the methods of this handle take entries from it;
/// [`DelayedQueue::clear`], `delete` and `expire` do not touch it.
///
/// # Examples
/// ```no_run
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> redelay::Result<()> {
/// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
/// let quarantine = jobs.quarantine();
/// for entry in quarantine.read(None, 100).await? {
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
    /// [`Unavailable`](crate::ErrorKind::Unavailable) without a connection, or when no reply came within the
    /// command timeout. [`Refused`](crate::ErrorKind::Refused) for a key of another type, or a missing
    /// permission.
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
        self.count(self.queue.reading("quarantine().len")).await
    }

    async fn count(&self, op: Op<'_>) -> Result<usize> {
        let command = Command::new("LLEN").arg(self.queue.keys.quarantine().clone());
        // The list holds a score and an entry for each.
        Ok(op.len(op.call(command.only_reads()).await?)? / 2)
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
        Ok(self.count(self.queue.reading("quarantine().is_empty")).await? == 0)
    }

    /// Reads up to `max` entries, the oldest first: from the first one on, or behind `after`, the last one
    /// that was read. If that one has left, an entry beside it shows the place; [the
    /// module](crate::admin#reading-in-pages) says what that is worth.
    ///
    /// # Errors
    /// As [`Quarantine::len`], and [`Invalid`](crate::ErrorKind::Invalid) for an entry of another queue.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// let quarantine = jobs.quarantine();
    /// let mut page = quarantine.read(None, 100).await?;
    /// while let Some(last) = page.last() {
    ///     println!("{page:?}");
    ///     page = quarantine.read(Some(last), 100).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn read(&self, after: Option<&Quarantined>, max: usize) -> Result<Vec<Quarantined>> {
        let op = self.queue.reading("quarantine().read");
        if let Some(after) = after {
            self.check(op, after)?;
        }
        // Not those that come meanwhile.
        let max = if max > MOST { max.min(self.count(op).await?) } else { max };
        let mut entries = Vec::new();
        while entries.len() < max {
            let more = self.read_once(op, entries.last().or(after), max - entries.len()).await?;
            if more.is_empty() {
                break;
            }
            entries.extend(more);
        }
        Ok(entries)
    }

    /// Reads as many entries as one call reads.
    async fn read_once(
        &self,
        op: Op<'_>,
        after: Option<&Quarantined>,
        max: usize,
    ) -> Result<Vec<Quarantined>> {
        // One more, to know what is behind the last one.
        let max = max.min(MOST);
        let mut call = scripts::READ_QUARANTINE.on(&[self.queue.keys.quarantine()]).number(max + 1);
        for (before, is_behind, [score, entry]) in after.iter().flat_map(|after| after.cursor()) {
            call = call.number(before).number(u8::from(is_behind)).arg(score.clone()).arg(entry.clone());
        }
        let mut reply = op.run(call.only_reads()).await?.into_array().map_err(|shape| op.failed(shape))?;
        let strings = reply.split_off(reply.len().min(2));
        let known = op.len(reply.pop().unwrap_or(Reply::Nil))?;
        let before = op.len(reply.pop().unwrap_or(Reply::Nil))?;
        let strings = op.strings(Reply::Array(strings))?;
        let pairs: Vec<_> = strings.chunks_exact(2).map(|pair| [pair[0].clone(), pair[1].clone()]).collect();
        let end = pairs.len().min(known.saturating_add(max));
        let page = Arc::new(Page { pairs, known });
        let entries = (known..end).map(|at| {
            let [score, entry] = page.pairs[at].clone();
            Quarantined {
                due: due(&score),
                entry,
                score,
                target: self.queue.keys.target().clone(),
                page: page.clone(),
                at,
                before: before + (at - known),
            }
        });
        Ok(entries.collect())
    }

    /// Returns an entry to the delayed queue, with its due time. Returns whether it was still in the
    /// quarantine. It becomes the last in the ordered list. The call is atomic.
    ///
    /// This is for entries that a client can read now, for example with a newer version of this crate. An
    /// entry that is still malformed is quarantined again as soon as it is due. An entry whose bytes are
    /// already pending is not stored twice.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for an entry of another queue.
    /// [`Unavailable`](crate::ErrorKind::Unavailable) or [`Refused`](crate::ErrorKind::Refused) (a key of
    /// another type, no memory): nothing was changed. [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown)
    /// when the reply was lost: a retry is harmless, but may return false.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the entry is in either of the two places.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// let quarantine = jobs.quarantine();
    /// for quarantined in quarantine.read(None, 100).await? {
    ///     quarantine.requeue(&quarantined).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn requeue(&self, quarantined: &Quarantined) -> Result<bool> {
        let op = self.queue.op("quarantine().requeue");
        self.check(op, quarantined)?;
        self.requeue_pair(op, quarantined).await
    }

    /// Returns up to `max` entries, the oldest first, to the delayed queue, as [`requeue`](Self::requeue)
    /// does for one; `usize::MAX` means all. Returns how many. Those that are still malformed come to the
    /// quarantine again, behind all others.
    ///
    /// # Errors
    /// As [`Quarantine::requeue`]. If others were requeued before the error, or a reply was lost, it is
    /// [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown), and says how many: call it again for the rest.
    ///
    /// # Cancel safety
    /// If the future is dropped, some may have been requeued.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// // After an update that can read them:
    /// let requeued = jobs.quarantine().requeue_all(usize::MAX).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn requeue_all(&self, max: usize) -> Result<usize> {
        let op = self.queue.op("quarantine().requeue_all");
        let mut requeued = 0;
        self.take_out(op, max, true, &mut requeued)
            .await
            .map_err(|error| error.after_parts(requeued, "entries were requeued"))?;
        Ok(requeued)
    }

    /// Requeues or removes the first entries, and counts them, also those before an error.
    async fn take_out(&self, op: Op<'_>, max: usize, requeues: bool, done: &mut usize) -> Result<()> {
        // Not those that come meanwhile.
        let mut left = max.min(self.count(op).await?);
        while left > 0 {
            let page = self.read_once(op, None, left).await?;
            if page.is_empty() {
                break;
            }
            left -= page.len().min(left);
            for quarantined in &page {
                *done += usize::from(match requeues {
                    true => self.requeue_pair(op, quarantined).await?,
                    false => self.remove_pair(op, quarantined).await?,
                });
            }
        }
        Ok(())
    }

    async fn requeue_pair(&self, op: Op<'_>, quarantined: &Quarantined) -> Result<bool> {
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
    /// As [`Quarantine::requeue`]. After [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown), a retry
    /// deletes an equal entry, if there is another.
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
    /// for (n, quarantined) in quarantine.read(None, 100).await?.iter().enumerate() {
    ///     std::fs::write(format!("jobs-{n}.bin"), &quarantined.entry)?; // Kept for an inspection.
    ///     quarantine.remove(quarantined).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove(&self, quarantined: &Quarantined) -> Result<bool> {
        let op = self.queue.op("quarantine().remove");
        self.check(op, quarantined)?;
        self.remove_pair(op, quarantined).await
    }

    /// Deletes up to `max` entries, the oldest first; `usize::MAX` means all. Returns how many.
    ///
    /// # Errors
    /// As [`Quarantine::requeue_all`].
    ///
    /// # Cancel safety
    /// If the future is dropped, some may have been deleted.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// let removed = jobs.quarantine().remove_all(usize::MAX).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove_all(&self, max: usize) -> Result<usize> {
        let op = self.queue.op("quarantine().remove_all");
        let mut removed = 0;
        self.take_out(op, max, false, &mut removed)
            .await
            .map_err(|error| error.after_parts(removed, "entries were removed"))?;
        Ok(removed)
    }

    async fn remove_pair(&self, op: Op<'_>, quarantined: &Quarantined) -> Result<bool> {
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
