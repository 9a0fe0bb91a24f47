//! Messages that were received and are not settled: in flight, or waiting for a retry.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;

use crate::BlockingQueue;
use crate::conn::{Command, Reply};
use crate::error::Result;
use crate::queue::{Op, Queue};
use crate::scripts;
use crate::wire::keys::MessageKeys;
use crate::wire::message::{MessageId, Record};
use crate::wire::time;

/// The most messages that one call of a script reads.
const CALL: usize = 100;

/// A message that was received and is not settled. [`Unsettled::in_flight`] and [`Unsettled::waiting`] return it.
///
/// # Examples
/// ```no_run
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> redelay::Result<()> {
/// # let orders = client.blocking_queue("orders", codec::Long);
/// for message in orders.unsettled().waiting(0, 100).await? {
///     println!("{}: attempt {} in {:?}", message.id, message.attempt, message.remaining);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct UnsettledMessage {
    /// The id of the message.
    pub id: MessageId,
    /// The number of its current attempt, or of the one it waits for.
    pub attempt: u32,
    /// When it was received for the first time, by the server's clock.
    pub first_received: SystemTime,
    /// The time until its lease ends, if it is in flight, or until its next delivery is due, if it waits for a retry.
    /// Zero if that time is over.
    pub remaining: Duration,
    /// The payload, as it was in the queue.
    pub payload: Bytes,
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

/// The messages of one queue that receivers of any client have, or that wait for a retry. [`BlockingQueue::unsettled`] returns
/// this handle.
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

    /// Returns unsettled messages to the head of the list, so that `take` and Java can receive them: those that wait
    /// for a retry, and those whose leases have ended. They lose their ids and counts. Messages in flight stay with
    /// their receivers. Returns how many messages went back.
    ///
    /// This is for a queue that no longer has receivers. Without this call, a client that transfers for the queue does
    /// it when no receiver has been active for an hour.
    ///
    /// If a receiver was active within the last 10 s, only messages that wait for a retry go back: living receivers
    /// take back what the dead have left, and may still extend leases that ended during an outage. So call it 10 s
    /// after the last receiver has ended, and when the leases have ended. If somebody has deleted `redelay:control`, the
    /// first call counts as a sign of life: call it again 10 s later.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable), [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) (a retry is
    /// harmless), or [`Refused`](crate::ErrorKind::Refused) for a key of another type or a missing permission.
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
        let count =
            async |command, key: &Bytes| op.len(op.query(Command::new(command).arg(key.clone())).await?);
        let most = count("HLEN", &keys.messages).await? + count("LLEN", &keys.inbox).await?;
        while *released < most {
            let call = scripts::release_all(&queue.keys, &keys, 0);
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
    /// [`Unavailable`](crate::ErrorKind::Unavailable), or [`Refused`](crate::ErrorKind::Refused) for a key of another type
    /// or a missing permission.
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
        let op = self.queue.reading("unsettled().len");
        op.len(op.query(Command::new("HLEN").arg(self.keys.messages.clone())).await?)
    }

    /// Reads up to `most` messages that receivers have now, in the order in which their leases end, after skipping
    /// `skip` of them.
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
    /// let first_page = orders.unsettled().in_flight(0, 50).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn in_flight(&self, skip: usize, most: usize) -> Result<Vec<UnsettledMessage>> {
        self.read(self.queue.reading("unsettled().in_flight"), &self.keys.leases, skip, most).await
    }

    /// Reads up to `most` messages that wait for their next delivery, in the order in which they are due, after
    /// skipping `skip` of them.
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
    /// let first_page = orders.unsettled().waiting(0, 50).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn waiting(&self, skip: usize, most: usize) -> Result<Vec<UnsettledMessage>> {
        self.read(self.queue.reading("unsettled().waiting"), &self.keys.retries, skip, most).await
    }

    async fn read(&self, op: Op<'_>, set: &Bytes, skip: usize, most: usize) -> Result<Vec<UnsettledMessage>> {
        let (mut messages, mut read) = (Vec::new(), 0);
        while messages.len() < most {
            let from = skip.saturating_add(read).min(u32::MAX as usize);
            let call = scripts::READ_MESSAGES.on(&[set, &self.keys.messages]);
            let call = call.number(from).number(CALL.min(most - messages.len()));
            let reply = op.run(call.only_reads()).await?.into_array().map_err(|shape| op.failed(shape))?;
            if reply.len() <= 1 {
                break;
            }
            read += reply.len() / 3;
            messages.extend(read_messages(reply).ok_or_else(|| op.failed(self.queue.conn.desynchronised()))?);
        }
        Ok(messages)
    }

    /// Makes a message deliverable again at once. If it is in flight, its delivery no longer holds: a handler may be
    /// working on it, so it may be handled twice. Returns whether it was there.
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
    /// orders.unsettled().retry_now(id).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn retry_now(&self, id: MessageId) -> Result<bool> {
        self.change(self.queue.op("unsettled().retry_now"), "retry", id).await
    }

    /// Deletes a message. If it is in flight, its delivery no longer holds. Returns whether it was there.
    ///
    /// # Errors
    /// As [`Unsettled::retry_now`].
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
        self.change(self.queue.op("unsettled().remove"), "remove", id).await
    }

    async fn change(&self, op: Op<'_>, what: &'static str, id: MessageId) -> Result<bool> {
        let MessageKeys { messages, leases, retries, channel, .. } = &self.keys;
        let call = scripts::REMOVE_MESSAGE
            .on(&[messages, leases, retries, self.queue.keys.scratch(), channel])
            .arg(what)
            .arg(id.bytes());
        op.any(op.run(call).await?)
    }
}

fn read_messages(reply: Vec<Reply>) -> Option<Vec<UnsettledMessage>> {
    let mut reply = reply.into_iter();
    let clock = reply.next()?.into_int().ok()?;
    let mut messages = Vec::new();
    while let Some(id) = reply.next() {
        let (id, at) = (id.into_bytes().ok()?, reply.next()?.into_optional_score().ok()??);
        let record = reply.next()?.into_bytes().ok()?;
        // What somebody else wrote there is no message.
        let (Ok(id), Some(record)) = (<[u8; 16]>::try_from(&id[..]), Record::parse(&record)) else {
            continue;
        };
        messages.push(UnsettledMessage {
            id: MessageId(id),
            attempt: 1 + u32::from(record.failed) + u32::from(record.lost),
            first_received: time::from_epoch_millis(record.first),
            remaining: Duration::from_millis((at - clock as f64).max(0.0) as u64),
            payload: record.payload,
        });
    }
    Some(messages)
}
