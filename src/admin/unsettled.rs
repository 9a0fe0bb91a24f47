//! Messages that were received and are not settled: in flight, or waiting for a retry.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::Serialize;

use crate::BlockingQueue;
use crate::conn::{Command, Reply};
use crate::error::{Error, Result};
use crate::queue::{Op, Queue};
use crate::scripts::{self, SetCursor};
use crate::wire::job;
use crate::wire::keys::MessageKeys;
use crate::wire::message::{Member, MessageId, Record};
use crate::wire::time;

/// The most messages that one call of a script reads or changes.
const CALL: usize = 100;
/// The most leases that one call reads, without their messages.
const LEASES: usize = 1000;

/// A message that was received and is not settled. [`Unsettled::in_flight`] and [`Unsettled::waiting`] return
/// it, and read on behind it.
///
/// # Examples
/// ```no_run
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> redelay::Result<()> {
/// # let orders = client.blocking_queue("orders", codec::Long);
/// for message in orders.unsettled().waiting(None, 100).await? {
///     println!("{}: attempt {} in {:?}", message.id, message.attempt, message.remaining);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct UnsettledMessage {
    /// The id of the message.
    pub id: MessageId,
    /// The number of its current attempt, or of the one it waits for.
    pub attempt: u32,
    /// When it was received for the first time, by the server's clock.
    #[serde(serialize_with = "time::in_epoch_ms")]
    pub first_received: SystemTime,
    /// The time until its lease ends, if it is in flight, or until its next delivery is due, if it waits for
    /// a retry. Zero if that time is over.
    #[serde(rename = "remaining_ms", serialize_with = "time::in_ms")]
    pub remaining: Duration,
    /// The id of the job that it is, if something travels with that.
    #[serde(serialize_with = "job::id_as_text")]
    pub job_id: Option<Bytes>,
    /// The payload, as it was in the queue. [`BlockingQueue::decode`] reads it.
    pub payload: Bytes,
    /// The time to which `remaining` counts, as the server wrote it.
    #[serde(skip)]
    score: Bytes,
}

impl UnsettledMessage {
    /// A message of this record. Its time is over at `at`, epoch ms, which the server wrote as `score`.
    pub(crate) fn new(id: MessageId, record: Record, score: Bytes, at: f64, clock: i64) -> Self {
        Self {
            id,
            attempt: 1 + u32::from(record.failed) + u32::from(record.lost),
            first_received: time::from_epoch_millis(record.first),
            remaining: Duration::from_millis((at - clock as f64).max(0.0) as u64),
            job_id: record.job.map(|job| job.id),
            payload: record.payload,
            score,
        }
    }

    /// Its place among the others that wait.
    pub(crate) fn cursor(&self) -> SetCursor {
        [self.score.clone(), self.id.bytes()]
    }
}

impl fmt::Debug for UnsettledMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Payloads must not get into a log.
        f.debug_struct("UnsettledMessage")
            .field("id", &self.id)
            .field("attempt", &self.attempt)
            .field("remaining", &self.remaining)
            .finish_non_exhaustive()
    }
}

/// The messages of one queue that receivers of any client have, or that wait for a retry.
/// [`BlockingQueue::unsettled`] returns this handle.
///
/// # Examples
/// ```no_run
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> redelay::Result<()> {
/// # let orders = client.blocking_queue("orders", codec::Long);
/// let unsettled = orders.unsettled();
/// println!("{} messages are handled now or wait for a retry", unsettled.len().await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Unsettled {
    queue: Arc<Queue>,
    keys: MessageKeys,
}

impl fmt::Debug for Unsettled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unsettled").field("name", &self.queue.name).finish_non_exhaustive()
    }
}

/// # Messages that are not settled
impl<T: 'static> BlockingQueue<T> {
    /// The messages of this queue that were received and are not settled. No command is sent.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// println!("{}", orders.unsettled().len().await?);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn unsettled(&self) -> Unsettled {
        let queue = self.queue_arc().clone();
        Unsettled { keys: queue.keys.of_messages(), queue }
    }

    /// Returns unsettled messages to the head of the list, so that `take` and Java can receive them: those
    /// that wait for a retry, and those whose leases have ended. They lose their ids and counts. Messages in
    /// flight stay with their receivers. Returns how many messages went back.
    ///
    /// This is for a queue that no longer has receivers. Without this call, a client that transfers for the
    /// queue does it when no receiver has been active for an hour.
    ///
    /// If a receiver was active within the last 10 s, only messages that wait for a retry go back: living
    /// receivers take back what the dead have left, and may still extend leases that ended during an outage.
    /// So call it 10 s after the last receiver has ended, and when the leases have ended. If
    /// `redelay:control` was deleted by hand, the first call counts as a sign of life: call it again 10 s
    /// later.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable), [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown)
    /// (a retry is harmless), or [`Refused`](crate::ErrorKind::Refused) for a key of another type or a
    /// missing permission.
    ///
    /// # Cancel safety
    /// If the future is dropped, some may have gone back.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// let released = orders.release_all().await?;
    /// println!("{released} messages are Java's now");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn release_all(&self) -> Result<usize> {
        let mut released = 0;
        self.release_all_counted(&mut released)
            .await
            .map_err(|error| error.after_parts(released, "messages were released"))?;
        Ok(released)
    }

    async fn release_all_counted(&self, released: &mut usize) -> Result<()> {
        let queue = self.queue();
        let op = queue.op("release_all");
        let keys = queue.keys.of_messages();
        // Messages that fail meanwhile are not released.
        let count = async |command, key: &Bytes| {
            op.len(op.call(Command::new(command).arg(key.clone()).only_reads()).await?)
        };
        let most = count("HLEN", &keys.messages).await? + count("LLEN", &keys.inbox).await?;
        while *released < most {
            let call = scripts::RELEASE_ALL.of(&queue.keys, None).number(0);
            let [more, looked_at] = op.parts(op.run(call.idempotent()).await?)?;
            *released += op.len(more)?;
            if op.len(looked_at)? == 0 {
                break;
            }
        }
        Ok(())
    }
}

impl Unsettled {
    /// The number of messages, in flight or waiting. O(1).
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
    /// let unsettled = orders.unsettled().len().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn len(&self) -> Result<usize> {
        self.count(self.queue.reading("unsettled().len"), "HLEN", &self.keys.messages).await
    }

    /// Whether there is no message, in flight or waiting. O(1).
    ///
    /// # Errors
    /// As [`Unsettled::len`].
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// let all_done = orders.is_empty().await? && orders.unsettled().is_empty().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn is_empty(&self) -> Result<bool> {
        let op = self.queue.reading("unsettled().is_empty");
        Ok(self.count(op, "HLEN", &self.keys.messages).await? == 0)
    }

    async fn count(&self, op: Op<'_>, command: &'static str, key: &Bytes) -> Result<usize> {
        op.len(op.call(Command::new(command).arg(key.clone()).only_reads()).await?)
    }

    /// Reads up to `max` messages that receivers have now, in the order of their ids, so those that were
    /// received first for the first time come first: from the first one on, or behind `after`, the last one
    /// that was read.
    ///
    /// Leases are extended all the time, so their ends are no order in which to read on. The ids have no
    /// order on the server: each call of this method reads all leases, 1,000 at a time, without their
    /// messages.
    ///
    /// # Errors
    /// As [`Unsettled::len`].
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// let first_page = orders.unsettled().in_flight(None, 50).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn in_flight(
        &self,
        after: Option<&UnsettledMessage>,
        max: usize,
    ) -> Result<Vec<UnsettledMessage>> {
        let op = self.queue.reading("unsettled().in_flight");
        let mut messages = Vec::new();
        if max == 0 {
            return Ok(messages);
        }
        let mut ids = self.leased(op).await?;
        if let Some(after) = after {
            ids = ids.split_off(&after.id);
            ids.remove(&after.id);
        }
        let ids: Vec<_> = ids.iter().map(MessageId::bytes).collect();
        let mut left = &ids[..];
        while !left.is_empty() && messages.len() < max {
            let count = CALL.min(max - messages.len()).min(left.len());
            let call = scripts::READ_IN_FLIGHT.on(&[&self.keys.messages, &self.keys.leases]);
            let call = call.args(left[..count].iter().cloned());
            let mut reply =
                op.run(call.only_reads()).await?.into_array().map_err(|shape| op.failed(shape))?;
            let read = reply.split_off(reply.len().min(2));
            let looked_at = op.len(reply.pop().unwrap_or(Reply::Nil))?;
            let clock = op.int(reply.pop().unwrap_or(Reply::Nil))?;
            left = &left[looked_at.clamp(1, count)..];
            let read = read_messages(clock, read).ok_or_else(|| self.desynchronised(op))?;
            messages.extend(read.into_iter().filter_map(|(_, message)| message));
        }
        Ok(messages)
    }

    /// The ids of all messages that have a lease. Those whose leases are extended meanwhile move behind the
    /// place that is read.
    async fn leased(&self, op: Op<'_>) -> Result<BTreeSet<MessageId>> {
        let (mut ids, mut cursor) = (BTreeSet::new(), SetCursor::default());
        loop {
            let (_, leases) = self.read_set(op, &self.keys.leases, cursor, LEASES, "members").await?;
            let members = leases.chunks_exact(3).filter_map(|lease| match lease {
                // What another program wrote there is no lease.
                [Reply::Bytes(member), ..] => Some(Member(member[..].try_into().ok()?).id()),
                _ => None,
            });
            ids.extend(members);
            // A shorter page is the last one: on a busy queue there is always one more lease behind it.
            match leases.last_chunk() {
                Some([Reply::Bytes(member), Reply::Bytes(score), _]) if leases.len() >= 3 * LEASES => {
                    cursor = [score.clone(), member.clone()];
                }
                _ => return Ok(ids),
            }
        }
    }

    /// Reads up to `max` messages that wait for their next delivery, in the order in which they are due: from
    /// the first one on, or behind `after`, the last one that was read.
    ///
    /// # Errors
    /// As [`Unsettled::len`].
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// let unsettled = orders.unsettled();
    /// let first_page = unsettled.waiting(None, 50).await?;
    /// let second_page = unsettled.waiting(first_page.last(), 50).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn waiting(
        &self,
        after: Option<&UnsettledMessage>,
        max: usize,
    ) -> Result<Vec<UnsettledMessage>> {
        let op = self.queue.reading("unsettled().waiting");
        // Not what fails meanwhile.
        let max = if max > CALL { max.min(self.count(op, "ZCARD", &self.keys.retries).await?) } else { max };
        let mut messages = Vec::new();
        let mut cursor = after.map_or_else(SetCursor::default, UnsettledMessage::cursor);
        while messages.len() < max {
            let most = CALL.min(max - messages.len());
            let (clock, read) = self.read_set(op, &self.keys.retries, cursor, most, "records").await?;
            let read = read_messages(clock, read).ok_or_else(|| self.desynchronised(op))?;
            let Some((last, _)) = read.last() else { break };
            cursor = last.clone();
            messages.extend(read.into_iter().filter_map(|(_, message)| message));
        }
        Ok(messages)
    }

    /// Reads a page of a sorted set: the server's clock; and member, score and record of each.
    async fn read_set(
        &self,
        op: Op<'_>,
        set: &Bytes,
        after: SetCursor,
        most: usize,
        what: &'static str,
    ) -> Result<(i64, Vec<Reply>)> {
        let call = scripts::READ_MESSAGES.on(&[set, &self.keys.messages]).args(after).number(most).arg(what);
        let mut reply = op.run(call.only_reads()).await?.into_array().map_err(|shape| op.failed(shape))?;
        let read = reply.split_off(reply.len().min(1));
        Ok((op.int(reply.pop().unwrap_or(Reply::Nil))?, read))
    }

    fn desynchronised(&self, op: Op<'_>) -> Error {
        op.failed(self.queue.conn.desynchronised())
    }

    /// Makes a message deliverable again at once. If it is in flight, its delivery no longer holds: a handler
    /// may be working on it, so it may be handled twice. The number of its attempts stays. A job that was
    /// cancelled ends instead. Returns whether it was there.
    ///
    /// # Errors
    /// As [`Unsettled::len`]; and [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) if the reply was lost.
    ///
    /// # Cancel safety
    /// If the future is dropped, it may or may not be done.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::receiver::MessageId;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client, id: MessageId) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// orders.unsettled().requeue(id).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn requeue(&self, id: MessageId) -> Result<bool> {
        let op = self.queue.op("unsettled().requeue");
        Ok(self.change(op, "retry", "any", [id.bytes()]).await?.0 > 0)
    }

    /// Makes up to `max` messages that wait for their next delivery deliverable at once, those that are due
    /// next first; `usize::MAX` means all. Messages in flight stay with their receivers. Returns how many;
    /// those that were due already do not count.
    ///
    /// # Errors
    /// As [`Unsettled::len`]; and [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) if some were requeued
    /// before the call failed, or if a reply was lost. A retry is harmless.
    ///
    /// # Cancel safety
    /// If the future is dropped, some may have been requeued.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// // The payment provider is back: no message waits for the end of its backoff.
    /// orders.unsettled().requeue_all(usize::MAX).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn requeue_all(&self, max: usize) -> Result<usize> {
        let op = self.queue.op("unsettled().requeue_all");
        let mut requeued = 0;
        self.change_waiting(op, "retry", max, &mut requeued)
            .await
            .map_err(|error| error.after_parts(requeued, "messages were requeued"))?;
        Ok(requeued)
    }

    /// Deletes a message. If it is in flight, its delivery no longer holds. Returns whether it was there.
    ///
    /// # Errors
    /// As [`Unsettled::requeue`].
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
    /// orders.unsettled().remove(id).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove(&self, id: MessageId) -> Result<bool> {
        let op = self.queue.op("unsettled().remove");
        Ok(self.change(op, "remove", "any", [id.bytes()]).await?.0 > 0)
    }

    /// Deletes up to `max` messages that wait for their next delivery, those that are due next first;
    /// `usize::MAX` means all. Messages in flight stay with their receivers. Returns how many.
    ///
    /// # Errors
    /// As [`Unsettled::requeue_all`].
    ///
    /// # Cancel safety
    /// If the future is dropped, some may have been deleted.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// let removed = orders.unsettled().remove_all(usize::MAX).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove_all(&self, max: usize) -> Result<usize> {
        let op = self.queue.op("unsettled().remove_all");
        let mut removed = 0;
        self.change_waiting(op, "remove", max, &mut removed)
            .await
            .map_err(|error| error.after_parts(removed, "messages were removed"))?;
        Ok(removed)
    }

    /// Changes messages that wait, and counts them, also those before an error.
    async fn change_waiting(
        &self,
        op: Op<'_>,
        what: &'static str,
        max: usize,
        changed: &mut usize,
    ) -> Result<()> {
        // Not what fails meanwhile.
        let mut left = self.count(op, "ZCARD", &self.keys.retries).await?;
        let mut cursor = SetCursor::default();
        while left > 0 && *changed < max {
            let most = CALL.min(left).min(max - *changed);
            let (_, read) = self.read_set(op, &self.keys.retries, cursor, most, "members").await?;
            let ids: Vec<_> = read.iter().step_by(3).filter_map(|id| id.clone().into_bytes().ok()).collect();
            if ids.is_empty() {
                break;
            }
            let (more, looked_at) = self.change(op, what, "waiting", ids).await?;
            *changed += more;
            left -= looked_at.min(left);
            let last = read.chunks_exact(3).take(looked_at).last();
            let Some([Reply::Bytes(member), Reply::Bytes(score), _]) = last else { break };
            cursor = [score.clone(), member.clone()];
        }
        Ok(())
    }

    /// Returns how many it has changed, and how many of the first ones it has looked at.
    async fn change(
        &self,
        op: Op<'_>,
        what: &'static str,
        which: &'static str,
        ids: impl IntoIterator<Item = Bytes>,
    ) -> Result<(usize, usize)> {
        let MessageKeys { messages, leases, retries, channel, jobs, notes, more_notes, .. } = &self.keys;
        let scratch = self.queue.keys.scratch();
        let call = scripts::REMOVE_MESSAGE
            .on(&[messages, leases, retries, scratch, channel, jobs, notes, more_notes])
            .arg(what)
            .arg(which)
            .args(ids);
        let [changed, looked_at] = op.parts(op.run(call).await?)?;
        Ok((op.len(changed)?, op.len(looked_at)?))
    }
}

/// The messages of triples of member, score and record, each with its place. What another program wrote is no
/// message.
fn read_messages(clock: i64, reply: Vec<Reply>) -> Option<Vec<(SetCursor, Option<UnsettledMessage>)>> {
    let mut reply = reply.into_iter();
    let mut messages = Vec::new();
    while let Some(member) = reply.next() {
        let (member, score) = (member.into_bytes().ok()?, reply.next()?);
        let (at, score) = (score.clone().into_optional_score().ok()??, score.into_bytes().ok()?);
        let record = Record::parse(&reply.next()?.into_bytes().ok()?);
        let message = <[u8; 16]>::try_from(&member[..]).ok().zip(record);
        let message = message
            .map(|(id, record)| UnsettledMessage::new(MessageId(id), record, score.clone(), at, clock));
        messages.push(([score, member], message));
    }
    Some(messages)
}
