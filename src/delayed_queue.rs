//! `DelayedQueue`: payloads that are not due yet, under the names of Redisson's `RDelayedQueue`.
//!
//! Offering is in `offer.rs`, polling before the due time in `poll.rs`.

mod offer;
mod poll;
mod ticket;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;

pub use ticket::Ticket;

use crate::conn::{Command, Reply};
use crate::due;
use crate::entry::{self, EntryFormat};
use crate::error::Result;
use crate::queue::Queue;
use crate::script;
use crate::transfer::Watch;
use offer::When;

/// Payloads that become ready later: Redisson's `RDelayedQueue<T>`. Made by
/// [`Client::delayed_queue`](crate::Client::delayed_queue); cloning is cheap.
///
/// When its due time has come, a payload moves to the blocking queue behind it, where takers find it. While the handle
/// or a clone lives, this client does the moving; so does every other client, and every Redisson, with a handle of its
/// own. The server's clock decides what is due, so that clocks of producers need not agree.
pub struct DelayedQueue<T> {
    queue: Queue<T>,
    format: EntryFormat,
    watch: Arc<Mutex<Option<Watch>>>,
}

impl<T> Clone for DelayedQueue<T> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), format: self.format, watch: self.watch.clone() }
    }
}

impl<T> fmt::Debug for DelayedQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayedQueue").field("name", &self.queue.name).finish_non_exhaustive()
    }
}

impl<T: 'static> DelayedQueue<T> {
    pub(crate) fn new(queue: Queue<T>, format: EntryFormat) -> Self {
        let watch = queue.client.watch(&queue.keys);
        Self { queue, format, watch: Arc::new(Mutex::new(watch)) }
    }

    /// Writes entries in another layout. Both are always read; the older is for a fleet that still runs Redisson
    /// 3.21.0 or earlier. Defaults to [`EntryFormat::Current`].
    #[must_use]
    pub fn with_entry_format(mut self, format: EntryFormat) -> Self {
        self.format = format;
        self
    }

    /// The name of the blocking queue behind it, before any mapping.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.queue.name
    }

    /// Offers a payload that becomes ready after this delay. Whole milliseconds; what is left is rounded up, so that
    /// it is never ready early. Zero is now. (Redisson refuses negative delays; a [`Duration`] has none.)
    ///
    /// # Errors
    /// * [`Encode`](crate::ErrorKind::Encode), [`Invalid`](crate::ErrorKind::Invalid) (a delay of 10^15 ms or more, a
    ///   payload over the limit): nothing was sent.
    /// * [`Unavailable`](crate::ErrorKind::Unavailable): no connection within the command timeout; it is not stored.
    /// * [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown): the reply was lost, and so were those of further tries,
    ///   or the delay had passed meanwhile. A lost reply alone is no error: the offer is sent again, and is stored
    ///   once.
    ///
    /// # Cancel safety
    /// When the future is dropped, the payload may or may not be stored, never in part and never twice.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let reminders = client.delayed_queue(&client.blocking_queue("reminders", codec::String));
    /// let ticket = reminders.offer(&"call back".to_owned(), Duration::from_secs(3600)).await?;
    /// reminders.cancel(&ticket).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn offer(&self, value: &T, delay: Duration) -> Result<Ticket> {
        const VERB: &str = "offer";
        let payload = self.queue.encode(VERB, value)?;
        let delay = due::millis(delay).map_err(|why| self.queue.refuse(VERB, why))?;
        self.store_one(VERB, When::After, delay, &payload).await
    }

    /// Offers a payload that becomes ready at this time, by the server's clock. A time in the past is now.
    ///
    /// # Errors
    /// As [`DelayedQueue::offer`].
    ///
    /// # Cancel safety
    /// As [`DelayedQueue::offer`].
    pub async fn offer_at(&self, value: &T, at: SystemTime) -> Result<Ticket> {
        const VERB: &str = "offer_at";
        let payload = self.queue.encode(VERB, value)?;
        let at = due::epoch_millis(at).map_err(|why| self.queue.refuse(VERB, why))?;
        self.store_one(VERB, When::At, at, &payload).await
    }

    /// Offers many payloads, each with its own delay, in one call: all are stored or none. The tickets are in the
    /// same order.
    ///
    /// # Errors
    /// As [`DelayedQueue::offer`]; everything is encoded and checked before anything is sent.
    ///
    /// # Cancel safety
    /// As [`DelayedQueue::offer`].
    pub async fn offer_all<'a>(
        &self,
        values: impl IntoIterator<Item = (&'a T, Duration)>,
    ) -> Result<Vec<Ticket>>
    where
        T: 'a,
    {
        const VERB: &str = "offer_all";
        let mut entries = Vec::new();
        for (value, delay) in values {
            let payload = self.queue.encode(VERB, value)?;
            let delay = due::millis(delay).map_err(|why| self.queue.refuse(VERB, why))?;
            entries.push((delay, entry::pack(self.format, &payload)));
        }
        self.store(VERB, When::After, entries).await
    }

    async fn store_one(&self, verb: &str, when: When, time: u64, payload: &[u8]) -> Result<Ticket> {
        let entry = entry::pack(self.format, payload);
        let mut tickets = self.store(verb, when, vec![(time, entry)]).await?;
        Ok(tickets.remove(0))
    }

    async fn store(&self, verb: &str, when: When, entries: Vec<(u64, Bytes)>) -> Result<Vec<Ticket>> {
        self.queue.open(verb)?;
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let dues = offer::store(&self.queue.client.conn, &self.queue.keys, when, &entries)
            .await
            .map_err(self.queue.failed(verb))?;
        let tickets = entries.into_iter().zip(dues);
        Ok(tickets.map(|((_, entry), due)| Ticket::new(&self.queue.keys, entry, due)).collect())
    }

    /// Takes a pending payload back; whether it was still pending. Costs O(log n) and one scan of the list inside the
    /// server, no matter how large the payload's queue is in Lua's terms.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a ticket of another queue;
    /// [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when the reply was lost: to repeat it is harmless, but may
    /// answer false.
    ///
    /// # Cancel safety
    /// When the future is dropped, it may or may not be cancelled.
    pub async fn cancel(&self, ticket: &Ticket) -> Result<bool> {
        const VERB: &str = "cancel";
        let entry = self.entry_of(VERB, ticket)?;
        let call =
            script::CANCEL.on(&[self.queue.keys.timeout_set(), self.queue.keys.ordered_list()]).arg(entry);
        let reply = self.queue.run(VERB, call).await?;
        Ok(self.queue.shape(VERB, reply.into_int())? > 0)
    }

    /// Gives a pending payload another delay, counted from now; whether it was still pending. Its place in
    /// [`DelayedQueue::read_all`] stays. O(log n).
    ///
    /// # Errors
    /// As [`DelayedQueue::cancel`], and [`Invalid`](crate::ErrorKind::Invalid) for a delay of 10^15 ms or more.
    ///
    /// # Cancel safety
    /// When the future is dropped, it may or may not be rescheduled.
    pub async fn reschedule(&self, ticket: &Ticket, delay: Duration) -> Result<bool> {
        const VERB: &str = "reschedule";
        let delay = due::millis(delay).map_err(|why| self.queue.refuse(VERB, why))?;
        self.set_due(VERB, ticket, When::After, delay).await
    }

    /// Gives a pending payload another due time, by the server's clock; whether it was still pending. O(log n).
    ///
    /// # Errors
    /// As [`DelayedQueue::reschedule`].
    ///
    /// # Cancel safety
    /// As [`DelayedQueue::reschedule`].
    pub async fn reschedule_at(&self, ticket: &Ticket, at: SystemTime) -> Result<bool> {
        const VERB: &str = "reschedule_at";
        let at = due::epoch_millis(at).map_err(|why| self.queue.refuse(VERB, why))?;
        self.set_due(VERB, ticket, When::At, at).await
    }

    async fn set_due(&self, verb: &str, ticket: &Ticket, when: When, time: u64) -> Result<bool> {
        let entry = self.entry_of(verb, ticket)?;
        let call = script::RESCHEDULE
            .on(&[self.queue.keys.timeout_set(), &self.channel()])
            .arg(when.word())
            .number(time)
            .arg(entry);
        Ok(self.queue.run(verb, call).await? != Reply::Nil)
    }

    fn entry_of(&self, verb: &str, ticket: &Ticket) -> Result<Bytes> {
        if ticket.is_of(&self.queue.keys) {
            Ok(ticket.entry().clone())
        } else {
            Err(self.queue.refuse(verb, format!("the ticket is of another queue: `{}`", ticket.target())))
        }
    }

    /// How many payloads are pending.
    ///
    /// # Errors
    /// The server's, such as a key of another type.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    pub async fn size(&self) -> Result<usize> {
        let command = Command::new("LLEN").arg(self.queue.keys.ordered_list().clone());
        let reply = self.queue.read("size", command).await?;
        Ok(self.queue.shape("size", reply.into_int())?.max(0) as usize)
    }

    /// Whether nothing is pending.
    ///
    /// # Errors
    /// As [`DelayedQueue::size`].
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    pub async fn is_empty(&self) -> Result<bool> {
        Ok(self.size().await? == 0)
    }

    /// All pending payloads, in the order in which they were offered, which is Redisson's order too. Entries that
    /// nobody can read are left out.
    ///
    /// # Errors
    /// [`Decode`](crate::ErrorKind::Decode) for the first payload that does not decode, or the server's.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    pub async fn read_all(&self) -> Result<Vec<T>> {
        self.range("read_all", -1).await
    }

    /// The payload offered first of those that are pending. It stays.
    ///
    /// # Errors
    /// As [`DelayedQueue::read_all`].
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    pub async fn peek(&self) -> Result<Option<T>> {
        Ok(self.range("peek", 0).await?.into_iter().next())
    }

    async fn range(&self, verb: &str, last: i64) -> Result<Vec<T>> {
        let list = self.queue.keys.ordered_list().clone();
        let reply = self.queue.read(verb, Command::new("LRANGE").arg(list).number(0).number(last)).await?;
        let entries = self.queue.shape(verb, reply.into_all_bytes())?;
        let payloads = entries.iter().filter_map(|entry| Some(entry.slice_ref(entry::payload(entry)?)));
        payloads.map(|payload| self.queue.decode(verb, payload)).collect()
    }

    /// Takes the payload offered first out of the queue, due or not.
    ///
    /// # Errors
    /// [`Decode`](crate::ErrorKind::Decode): the payload is out of the queue, its bytes are in
    /// [`Error::payload`](crate::Error::payload). [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when the reply
    /// was lost: then a payload may be, too.
    ///
    /// # Cancel safety
    /// Cancel safe: what a dropped future had polled goes back to where it was, with its due time.
    pub async fn poll(&self) -> Result<Option<T>> {
        let mut polled = self.poll_entries("poll", 1).await?;
        polled.pop().transpose()
    }

    /// Takes up to `n` payloads out of the queue, due or not, in the order in which they were offered: Redisson's
    /// `poll(int)`. Each is decoded by itself, so that one that does not decode costs no other.
    ///
    /// # Errors
    /// As [`DelayedQueue::poll`].
    ///
    /// # Cancel safety
    /// As [`DelayedQueue::poll`].
    #[doc(alias = "poll")]
    pub async fn poll_many(&self, n: usize) -> Result<Vec<Result<T>>> {
        if n == 0 {
            return Ok(Vec::new());
        }
        self.poll_entries("poll_many", n).await
    }

    async fn poll_entries(&self, verb: &str, n: usize) -> Result<Vec<Result<T>>> {
        self.queue.open(verb)?;
        let polled =
            poll::poll(&self.queue.client, &self.queue.keys, n).await.map_err(self.queue.failed(verb))?;
        Ok(polled.into_payloads().map(|payload| self.queue.decode(verb, payload)).collect())
    }

    /// Removes the first offered payload with the same bytes; whether there was one. Reads through the list on the
    /// server: with a [`Ticket`], [`DelayedQueue::cancel`] is the cheaper way.
    ///
    /// # Errors
    /// [`Encode`](crate::ErrorKind::Encode), [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown), or the server's.
    ///
    /// # Cancel safety
    /// When the future is dropped, it may or may not be removed.
    pub async fn remove(&self, value: &T) -> Result<bool> {
        self.remove_by("remove", "first", [value]).await
    }

    /// Removes every payload that has the same bytes as one of these; whether any was removed.
    ///
    /// # Errors
    /// As [`DelayedQueue::remove`].
    ///
    /// # Cancel safety
    /// As [`DelayedQueue::remove`].
    pub async fn remove_all<'a>(&self, values: impl IntoIterator<Item = &'a T>) -> Result<bool>
    where
        T: 'a,
    {
        self.remove_by("remove_all", "all", values).await
    }

    /// Removes every payload that has the same bytes as none of these, so that it is never delivered (Redisson's
    /// `retainAll` delivers it all the same); whether any was removed.
    ///
    /// # Errors
    /// As [`DelayedQueue::remove`].
    ///
    /// # Cancel safety
    /// As [`DelayedQueue::remove`].
    pub async fn retain_all<'a>(&self, values: impl IntoIterator<Item = &'a T>) -> Result<bool>
    where
        T: 'a,
    {
        self.remove_by("retain_all", "others", values).await
    }

    async fn remove_by<'a>(
        &self,
        verb: &str,
        which: &'static str,
        values: impl IntoIterator<Item = &'a T>,
    ) -> Result<bool>
    where
        T: 'a,
    {
        let payloads = self.queue.encode_all(verb, values)?;
        let keys = &self.queue.keys;
        let call = script::REMOVE.on(&[keys.timeout_set(), keys.ordered_list()]).arg(which).args(payloads);
        let reply = self.queue.run(verb, call).await?;
        Ok(self.queue.shape(verb, reply.into_int())? > 0)
    }

    /// Whether a payload with the same bytes is pending. Reads through the list on the server.
    ///
    /// # Errors
    /// [`Encode`](crate::ErrorKind::Encode), or the server's.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    pub async fn contains(&self, value: &T) -> Result<bool> {
        self.contains_each("contains", [value]).await
    }

    /// Whether for each of these a payload with the same bytes is pending. Reads through the list on the server once.
    ///
    /// # Errors
    /// As [`DelayedQueue::contains`].
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    pub async fn contains_all<'a>(&self, values: impl IntoIterator<Item = &'a T>) -> Result<bool>
    where
        T: 'a,
    {
        self.contains_each("contains_all", values).await
    }

    async fn contains_each<'a>(&self, verb: &str, values: impl IntoIterator<Item = &'a T>) -> Result<bool>
    where
        T: 'a,
    {
        let payloads = self.queue.encode_all(verb, values)?;
        let call = script::CONTAINS.on(&[self.queue.keys.ordered_list()]).args(payloads).again_is_harmless();
        let reply = self.queue.run(verb, call).await?;
        Ok(self.queue.shape(verb, reply.into_int())? > 0)
    }

    /// Takes the payload offered last out of the queue, due or not, and puts it at the head of another list; `None`
    /// when nothing is pending. It is in one of the two at any time.
    ///
    /// # Errors
    /// As [`DelayedQueue::poll`]; a payload that does not decode has been moved all the same.
    ///
    /// # Cancel safety
    /// Nothing is lost: when the future is dropped, the payload may or may not have been moved.
    pub async fn poll_last_and_offer_first_to(&self, destination: &str) -> Result<Option<T>> {
        const VERB: &str = "poll_last_and_offer_first_to";
        let keys = &self.queue.keys;
        let destination = self.queue.client.target(destination);
        let call = script::POLL_LAST_AND_OFFER_FIRST_TO.on(&[
            keys.timeout_set(),
            keys.ordered_list(),
            keys.quarantine(),
            &destination,
        ]);
        let reply = self.queue.run(VERB, call).await?;
        let payload = self.queue.shape(VERB, reply.into_optional_bytes())?;
        payload.map(|payload| self.queue.decode(VERB, payload)).transpose()
    }

    /// Drops everything that is pending; whether there was anything. What is ready stays.
    ///
    /// # Errors
    /// The server's.
    ///
    /// # Cancel safety
    /// When the future is dropped, it may or may not be done.
    pub async fn clear(&self) -> Result<bool> {
        self.remove_keys("clear").await
    }

    /// The same as [`DelayedQueue::clear`]: an empty queue does not exist.
    ///
    /// # Errors
    /// The server's.
    ///
    /// # Cancel safety
    /// As [`DelayedQueue::clear`].
    pub async fn delete(&self) -> Result<bool> {
        self.remove_keys("delete").await
    }

    async fn remove_keys(&self, verb: &str) -> Result<bool> {
        let keys = &self.queue.keys;
        let command = Command::new("DEL").arg(keys.ordered_list().clone()).arg(keys.timeout_set().clone());
        let reply = self.queue.call(verb, command).await?;
        Ok(self.queue.shape(verb, reply.into_int())? > 0)
    }

    /// Lets everything that is pending vanish after this time, ms-exact; whether there was anything.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a time of 10^15 ms or more, or the server's.
    ///
    /// # Cancel safety
    /// When the future is dropped, it may or may not be set.
    pub async fn expire(&self, after: Duration) -> Result<bool> {
        const VERB: &str = "expire";
        let millis = due::millis(after).map_err(|why| self.queue.refuse(VERB, why))?;
        let keys = &self.queue.keys;
        let call = script::EXPIRE.on(&[keys.timeout_set(), keys.ordered_list()]).number(millis);
        let reply = self.queue.run(VERB, call.again_is_harmless()).await?;
        Ok(self.queue.shape(VERB, reply.into_int())? > 0)
    }

    /// Stops moving for this handle and its clones, and waits until it has stopped. What is pending stays, and is
    /// moved by whoever else watches; offers are still accepted. Dropping the handle and its clones does the same,
    /// without waiting.
    ///
    /// # Cancel safety
    /// Cancel safe: it stops all the same.
    pub async fn destroy(&self) {
        let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(watch) = watch {
            watch.close().await;
        }
    }

    fn channel(&self) -> Bytes {
        Bytes::copy_from_slice(self.queue.keys.channel().as_bytes())
    }
}
