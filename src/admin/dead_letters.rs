//! Dead letters: messages that failed too often, or were rejected.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use serde::Serialize;

use crate::BlockingQueue;
use crate::agreement::Pair;
use crate::conn::{Command, Reply};
use crate::error::Result;
use crate::queue::{Op, Queue};
use crate::scripts::{self, SetCursor};
use crate::wire::job::{self, JobData};
use crate::wire::keys::MessageKeys;
use crate::wire::letter::{DeadReason, Letter};
use crate::wire::message::MessageId;
use crate::wire::time;

/// The most letters that one call of a script reads, requeues or removes.
const CALL: usize = 100;
/// How often the keys of the letters are compared before they are read through: a letter that comes or goes
/// between the two commands makes them differ.
const LOOKS: usize = 3;

/// A message that failed too often, or was rejected. [`DeadLetters::read`] returns it, and reads on behind
/// it.
///
/// # Examples
/// ```no_run
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> redelay::Result<()> {
/// # let orders = client.blocking_queue("orders", codec::Long);
/// for letter in orders.dead_letters().read(None, 100).await? {
///     println!("{}: {} after {} failures: {}", letter.id, letter.reason, letter.failed, letter.error);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The id of the message.
    pub id: MessageId,
    /// Why it is dead.
    pub reason: DeadReason,
    /// The error of its last attempt, up to 1,000 bytes. That of a [`Worker`](crate::Worker) has its causes.
    pub error: String,
    /// Attempts that failed.
    pub failed: u32,
    /// Attempts whose lease ended.
    pub lost: u32,
    /// When it was received for the first time, by the server's clock.
    #[serde(serialize_with = "time::in_epoch_ms")]
    pub first_received: SystemTime,
    /// When it became a dead letter, by the server's clock.
    #[serde(serialize_with = "time::in_epoch_ms")]
    pub died: SystemTime,
    /// The id of the job, if it was offered with `until_done`, a header or an expiry. With
    /// [`until_done`](crate::delayed_queue::JobOffer::until_done), it stays taken until the letter is
    /// removed, sent to another queue, or deleted by a limit.
    #[serde(serialize_with = "job::id_as_text")]
    pub job_id: Option<Bytes>,
    /// The payload, as it was in the queue. [`BlockingQueue::decode`] reads it.
    pub payload: Bytes,
    /// Its place among the others, as the server wrote it.
    #[serde(skip)]
    score: Bytes,
}

impl DeadLetter {
    /// Reads the content of a letter. `None` for what another program wrote.
    pub(crate) fn read(id: MessageId, score: Bytes, content: &[u8]) -> Option<Self> {
        let Letter { reason, error, failed, lost, first, died, payload, job } = Letter::parse(content)?;
        Some(Self {
            id,
            reason,
            error,
            failed,
            lost,
            first_received: time::from_epoch_millis(first),
            died: time::from_epoch_millis(died),
            job_id: job.map(|job| job.id),
            payload,
            score,
        })
    }

    /// Its place among the others.
    pub(crate) fn cursor(&self) -> SetCursor {
        [self.score.clone(), self.id.bytes()]
    }
}

impl fmt::Debug for DeadLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Payloads must not get into a log.
        f.debug_struct("DeadLetter")
            .field("id", &self.id)
            .field("reason", &self.reason)
            .field("error", &self.error)
            .field("failed", &self.failed)
            .field("lost", &self.lost)
            .field("died", &self.died)
            .finish_non_exhaustive()
    }
}

/// The dead letters of one queue, from all clients. [`BlockingQueue::dead_letters`] returns this handle.
///
/// They are kept until they are requeued or removed, unless receivers
/// [limit](crate::Receiver::keep_dead_letters) their number or age.
///
/// # Examples
/// ```no_run
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> redelay::Result<()> {
/// # let orders = client.blocking_queue("orders", codec::Long);
/// // The bug is fixed: try all of them again.
/// let requeued = orders.dead_letters().requeue_all(usize::MAX).await?;
/// println!("{requeued} messages are delivered again");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct DeadLetters {
    queue: Arc<Queue>,
    keys: MessageKeys,
}

impl fmt::Debug for DeadLetters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetters").field("name", &self.queue.name).finish_non_exhaustive()
    }
}

/// # Dead letters
impl<T: 'static> BlockingQueue<T> {
    /// The dead letters of this queue. No command is sent.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// println!("{} dead letters", orders.dead_letters().len().await?);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn dead_letters(&self) -> DeadLetters {
        let queue = self.queue_arc().clone();
        DeadLetters { keys: queue.keys.of_messages(), queue }
    }
}

impl DeadLetters {
    /// The number of dead letters. O(1).
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable), or [`Refused`](crate::ErrorKind::Refused) for a key of
    /// another type or a missing permission.
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// let dead = orders.dead_letters().len().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn len(&self) -> Result<usize> {
        self.count(self.queue.reading("dead_letters().len")).await
    }

    /// Whether there is no dead letter. O(1).
    ///
    /// # Errors
    /// As [`DeadLetters::len`].
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// assert!(orders.dead_letters().is_empty().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn is_empty(&self) -> Result<bool> {
        Ok(self.count(self.queue.reading("dead_letters().is_empty")).await? == 0)
    }

    async fn count(&self, op: Op<'_>) -> Result<usize> {
        op.len(op.call(Command::new("ZCARD").arg(self.keys.dead.clone()).only_reads()).await?)
    }

    /// How many fields another program has written, as far as it is known.
    async fn foreign(&self, op: Op<'_>) -> usize {
        let foreign = Command::new("HGET").arg(self.keys.control.clone()).arg("foreign");
        let foreign = op.call(foreign.only_reads()).await.ok().and_then(|reply| reply.into_bytes().ok());
        foreign.and_then(|foreign| std::str::from_utf8(&foreign).ok()?.parse().ok()).unwrap_or_default()
    }

    /// The number of letters. If a key of theirs was deleted by hand, what can still be read is listed again
    /// first.
    async fn agreed_count(&self, op: Op<'_>) -> Result<usize> {
        for _ in 0..LOOKS {
            let count = self.count(op).await?;
            let contents = Command::new("HLEN").arg(self.keys.dead_messages.clone());
            let contents = op.len(op.call(contents.only_reads()).await?)?;
            if contents == count || contents == count + self.foreign(op).await {
                return Ok(count);
            }
        }
        let agree = Pair::Dead.agree(&self.queue.conn, &self.queue.keys);
        agree.await.map_err(|error| op.failed(error))?;
        self.count(op).await
    }

    /// Reads up to `max` dead letters, the oldest first: from the first one on, or behind `after`, the last
    /// one that was read.
    ///
    /// # Errors
    /// As [`DeadLetters::len`].
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// let dead = orders.dead_letters();
    /// let first_page = dead.read(None, 50).await?;
    /// let second_page = dead.read(first_page.last(), 50).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn read(&self, after: Option<&DeadLetter>, max: usize) -> Result<Vec<DeadLetter>> {
        let op = self.queue.reading("dead_letters().read");
        // Not those that die meanwhile.
        let max = if max > CALL { max.min(self.count(op).await?) } else { max };
        let mut letters = Vec::new();
        let mut cursor = after.map_or_else(SetCursor::default, DeadLetter::cursor);
        while letters.len() < max {
            let (next, more) = self.read_once(op, cursor, max - letters.len()).await?;
            letters.extend(more);
            let Some(next) = next else { break };
            cursor = next;
        }
        Ok(letters)
    }

    /// The letters of a [`page`](Self::page), and the place.
    async fn read_once(
        &self,
        op: Op<'_>,
        after: SetCursor,
        max: usize,
    ) -> Result<(Option<SetCursor>, Vec<DeadLetter>)> {
        let (next, letters) = self.page(op, after, max, "letters").await?;
        let letters = read_letters(letters).ok_or_else(|| op.failed(self.queue.conn.desynchronised()))?;
        Ok((next, letters))
    }

    /// Reads as many letters, or ids of letters, as one call reads. Returns the last place that it has looked
    /// at, too, if there was one.
    async fn page(
        &self,
        op: Op<'_>,
        after: SetCursor,
        max: usize,
        what: &'static str,
    ) -> Result<(Option<SetCursor>, Vec<Reply>)> {
        let call = scripts::READ_DEAD.on(&[&self.keys.dead, &self.keys.dead_messages]).args(after);
        let call = call.number(CALL.min(max)).arg(what);
        let mut place = op.run(call.only_reads()).await?.into_array().map_err(|shape| op.failed(shape))?;
        let read = place.split_off(place.len().min(2));
        let place = SetCursor::try_from(op.strings(Reply::Array(place))?);
        let place = place.map_err(|_| op.failed(self.queue.conn.desynchronised()))?;
        Ok((Some(place).filter(|[score, _]| !score.is_empty()), read))
    }

    /// Requeues up to `max` dead letters, the oldest first; `usize::MAX` means all. They are delivered again
    /// at once, keep their ids, and start with the first attempt. Returns how many.
    ///
    /// # Errors
    /// As [`DeadLetters::len`]; and [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) if some were
    /// requeued before the call failed, or if a reply was lost. A retry is harmless.
    ///
    /// # Cancel safety
    /// If the future is dropped, some may have been requeued.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// let requeued = orders.dead_letters().requeue_all(10).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn requeue_all(&self, max: usize) -> Result<usize> {
        let op = self.queue.op("dead_letters().requeue_all");
        let mut requeued = 0;
        self.requeue_up_to(op, max, &mut requeued)
            .await
            .map_err(|error| error.after_parts(requeued, "dead letters were requeued"))?;
        Ok(requeued)
    }

    async fn requeue_up_to(&self, op: Op<'_>, max: usize, requeued: &mut usize) -> Result<()> {
        // Not those that die meanwhile.
        let max = max.min(self.agreed_count(op).await?);
        while *requeued < max {
            let ids = self.oldest(op, max - *requeued).await?;
            if ids.is_empty() {
                break;
            }
            *requeued += self.requeue_these(op, ids).await?;
        }
        Ok(())
    }

    /// The ids of the oldest letters, at most as many as one call of a script changes.
    async fn oldest(&self, op: Op<'_>, max: usize) -> Result<Vec<Bytes>> {
        let mut cursor = SetCursor::default();
        loop {
            let (next, ids) = self.page(op, cursor, max, "ids").await?;
            match next {
                Some(next) if ids.is_empty() => cursor = next,
                _ => {
                    let ids = op.strings(Reply::Array(ids))?;
                    let are_ids = ids.iter().all(|id| id.len() == 16);
                    return are_ids.then_some(ids).ok_or_else(|| op.failed(self.queue.conn.desynchronised()));
                }
            }
        }
    }

    /// Requeues one dead letter, so that it is delivered again at once. Returns whether it was there.
    ///
    /// # Errors
    /// As [`DeadLetters::len`]; and [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) if no reply came. A
    /// retry is harmless, but may return false.
    ///
    /// # Cancel safety
    /// If the future is dropped, it may or may not be requeued.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::receiver::MessageId;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client, id: MessageId) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// orders.dead_letters().requeue(id).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn requeue(&self, id: MessageId) -> Result<bool> {
        let op = self.queue.op("dead_letters().requeue");
        if !self.contains(op, id).await? {
            return Ok(false);
        }
        Ok(self.requeue_these(op, vec![id.bytes()]).await? > 0)
    }

    async fn contains(&self, op: Op<'_>, id: MessageId) -> Result<bool> {
        let exists = Command::new("HEXISTS").arg(self.keys.dead_messages.clone()).arg(id.bytes());
        op.any(op.call(exists.only_reads()).await?)
    }

    async fn requeue_these(&self, op: Op<'_>, ids: Vec<Bytes>) -> Result<usize> {
        let MessageKeys { dead, dead_messages, messages, retries, channel, .. } = &self.keys;
        let MessageKeys { jobs, notes, more_notes, .. } = &self.keys;
        let call = scripts::REQUEUE_DEAD
            .on(&[
                dead,
                dead_messages,
                messages,
                retries,
                self.queue.keys.scratch(),
                channel,
                jobs,
                notes,
                more_notes,
            ])
            .args(ids);
        op.len(op.run(call.idempotent()).await?)
    }

    /// Deletes up to `max` dead letters, the oldest first; `usize::MAX` means all. Returns how many.
    ///
    /// # Errors
    /// As [`DeadLetters::len`]; and [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) if some were deleted
    /// before the call failed, or if a reply was lost. A retry is harmless.
    ///
    /// # Cancel safety
    /// If the future is dropped, some may have been deleted.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// let removed = orders.dead_letters().remove_all(usize::MAX).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove_all(&self, max: usize) -> Result<usize> {
        let op = self.queue.op("dead_letters().remove_all");
        let mut removed = 0;
        self.remove_up_to(op, max, &mut removed)
            .await
            .map_err(|error| error.after_parts(removed, "dead letters were removed"))?;
        Ok(removed)
    }

    async fn remove_up_to(&self, op: Op<'_>, max: usize, removed: &mut usize) -> Result<()> {
        let max = max.min(self.agreed_count(op).await?);
        while *removed < max {
            let ids = self.oldest(op, max - *removed).await?;
            if ids.is_empty() {
                break;
            }
            let count = ids.len();
            self.remove_these(op, ids).await?;
            *removed += count;
        }
        Ok(())
    }

    /// Deletes one dead letter. Returns whether it was there.
    ///
    /// # Errors
    /// As [`DeadLetters::len`]; and [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) if no reply came. A
    /// retry is harmless, but may return false.
    ///
    /// # Cancel safety
    /// If the future is dropped, it may or may not be deleted.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::receiver::MessageId;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client, id: MessageId) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// orders.dead_letters().remove(id).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove(&self, id: MessageId) -> Result<bool> {
        let op = self.queue.op("dead_letters().remove");
        let was_there = self.contains(op, id).await?;
        self.remove_these(op, vec![id.bytes()]).await?;
        Ok(was_there)
    }

    /// First from the set: content that nothing names is deleted with the next letter of this id, and never
    /// read.
    async fn remove_these(&self, op: Op<'_>, ids: Vec<Bytes>) -> Result<()> {
        let MessageKeys { dead, dead_messages, .. } = &self.keys;
        let call = scripts::REMOVE_DEAD.on(&[dead, dead_messages, self.queue.keys.scratch()]).args(ids);
        op.run(call.idempotent()).await?;
        Ok(())
    }
}

fn read_letters(reply: Vec<Reply>) -> Option<Vec<DeadLetter>> {
    let mut letters = Vec::with_capacity(reply.len() / 10);
    let mut reply = reply.into_iter();
    while let Some(id) = reply.next() {
        let id = MessageId(id.into_bytes().ok()?[..].try_into().ok()?);
        let score = reply.next()?.into_bytes().ok()?;
        let reason = DeadReason::read(&reply.next()?.into_bytes().ok()?);
        let error = String::from_utf8_lossy(&reply.next()?.into_bytes().ok()?).into_owned();
        let mut number = || u64::try_from(reply.next()?.into_int().ok()?).ok();
        let (failed, lost, first, died) = (number()?, number()?, number()?, number()?);
        let payload = reply.next()?.into_bytes().ok()?;
        let data = JobData::parse(&reply.next()?.into_bytes().ok()?);
        letters.push(DeadLetter {
            id,
            reason,
            error,
            failed: u32::try_from(failed).ok()?,
            lost: u32::try_from(lost).ok()?,
            first_received: time::from_epoch_millis(first),
            died: time::from_epoch_millis(died),
            job_id: data.map(|data| data.id),
            payload,
            score,
        });
    }
    Some(letters)
}
