//! Removing entries before they are due, always from both structures.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;

use super::DelayedQueue;
use crate::conn::OpError;
use crate::error::Result;
use crate::queue::{AsValue, Op, are_few};
use crate::scripts::{self, Call};
use crate::telemetry::events;
use crate::wire::id;
use crate::wire::{entry, time};

/// # Remove
impl<T: 'static> DelayedQueue<T> {
    /// Takes the payload that was offered first, although it is not due yet. `None` if nothing is pending.
    ///
    /// This is Redisson's `poll()`. An entry that is due but not transferred yet can be taken, too. To take
    /// what is ready, use [`BlockingQueue::poll`](crate::BlockingQueue::poll) or
    /// [`BlockingQueue::take`](crate::BlockingQueue::take).
    ///
    /// # Errors
    /// * [`Decode`](crate::ErrorKind::Decode): the payload is no longer in the queue. Its bytes are in
    ///   [`Error::payload`](crate::Error::payload).
    /// * [`Refused`](crate::ErrorKind::Refused): a key of another type, or a missing permission.
    /// * [`Unavailable`](crate::ErrorKind::Unavailable): no connection, or the server does not reply. If it
    ///   polled a payload anyway, the payload returns to the queue.
    /// * [`Closed`](crate::ErrorKind::Closed): the client was shut down.
    ///
    /// A lost reply is no error and loses nothing: the client asks for it again.
    ///
    /// # Cancel safety
    /// Cancel safe: if the future is dropped, a payload that it had polled returns to its place, with its due
    /// time.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// // The service is retired: the remaining jobs run now, before they are due.
    /// while let Some(job) = jobs.poll().await? {
    ///     println!("{job}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "remove")]
    pub async fn poll(&self) -> Result<Option<T>> {
        let mut polled = self.poll_entries(self.queue.op("poll"), 1).await?;
        polled.pop().transpose()
    }

    /// Takes up to `max` payloads, although they are not due yet, in the order in which they were offered.
    /// This is Redisson's `poll(int)`.
    ///
    /// Each payload has its own result, so one that does not decode does not affect the others. The client
    /// polls in parts of 1,000. It returns fewer than `max` payloads if fewer are pending, or if not all
    /// parts came within the command timeout.
    ///
    /// # Errors
    /// As [`DelayedQueue::poll`].
    ///
    /// # Cancel safety
    /// Cancel safe: as [`DelayedQueue::poll`].
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// for job in jobs.poll_many(100).await? {
    ///     match job {
    ///         Ok(job) => println!("{job}"),
    ///         Err(error) => eprintln!("{error}: {:?}", error.payload()), // Only this one.
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "poll")]
    pub async fn poll_many(&self, max: usize) -> Result<Vec<Result<T>>> {
        if max == 0 {
            return Ok(Vec::new());
        }
        self.poll_entries(self.queue.op("poll_many"), max).await
    }

    async fn poll_entries(&self, op: Op<'_>, max: usize) -> Result<Vec<Result<T>>> {
        op.ensure_open()?;
        let polled = self.queue.engine.early_polls.poll(&self.queue.conn, &self.queue.keys, max).await;
        let polled = polled.and_then(|held| held.read().ok_or(OpError::Closed));
        let polled = polled.map_err(|error| op.failed(error))?;
        self.queue.engine.early_polls.forget_jobs(&polled);
        Ok(polled.into_payloads().map(|payload| op.decode(&*self.codec, payload)).collect())
    }

    /// Removes the payload that was offered first among those with the same bytes. Returns whether there was
    /// one. O(n): of more than 10,000 entries, the client reads the queue as [`DelayedQueue::read_all`] does,
    /// up to the payload. [`DelayedQueue::cancel`] with a [`Ticket`](crate::delayed_queue::Ticket) is
    /// cheaper.
    ///
    /// The server compares bytes, not values. `codec::Json` and Java's codec may write different bytes for
    /// equal values: see `docs/codecs.md`.
    ///
    /// # Errors
    /// [`Encode`](crate::ErrorKind::Encode) or [`Invalid`](crate::ErrorKind::Invalid) (over the size limit)
    /// before anything is sent. [`Unavailable`](crate::ErrorKind::Unavailable) or
    /// [`Refused`](crate::ErrorKind::Refused) (a key of another type): nothing was removed.
    /// [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when the reply was lost: a payload may have been
    /// removed, and a retry may remove a second one.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the payload may or may not be removed.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// jobs.offer(&7, Duration::from_secs(60)).await?;
    /// jobs.offer(&7, Duration::from_secs(5)).await?;
    /// jobs.remove(&7).await?; // The one that was offered first, with 60 s. The other is due in 5 s.
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "removeIf")]
    pub async fn remove(&self, value: impl AsValue<T>) -> Result<bool> {
        let op = self.queue.op("remove");
        let payload = op.encode(&*self.codec, value)?;
        let call = self.removal("first", -1, std::slice::from_ref(&payload));
        let [removed, next] = op.parts(op.run(call).await?)?;
        if op.int(next)? < 0 {
            return op.any(removed);
        }
        // The list is long: it is read up to the first one, which is then removed by its bytes.
        let mut tried = HashSet::new();
        loop {
            let has_it = |entry: &Bytes| entry::payload_in(entry).is_some_and(|found| found == payload);
            let has_it = |entry: &Bytes| has_it(entry) && !tried.contains(entry);
            let (list, mut found) = (self.queue.keys.ordered_list(), Vec::new());
            op.read_entries(list, |entries, _| {
                found.extend(entries.into_iter().filter(has_it));
                found.is_empty()
            })
            .await?;
            if found.is_empty() {
                return Ok(false);
            }
            for entry in found {
                // Others may have taken it since.
                let call = scripts::CANCEL.of(&self.queue.keys, None).arg(entry.clone()).arg("listed");
                if op.any(op.run(call).await?)? {
                    return Ok(true);
                }
                tried.insert(entry);
            }
        }
    }

    /// Removes every payload that has the same bytes as one of these, up to 500,000. Returns whether any was
    /// removed. Bytes are compared as in [`DelayedQueue::remove`].
    ///
    /// Up to 10,000 entries of 4 MB in sum are searched at one instant. A longer queue is searched in parts,
    /// and so is any for more than 1,000 values, or 1 MB of them: then it is read, because they would have to
    /// be sent with each part. Entries that stay in the list are found, unless others put more of them in
    /// front during the call than two parts overlap, as a transfer of very many overdue ones may: a tenth of
    /// a part, at least 250 entries, or fewer if payloads are longer than a kilobyte.
    ///
    /// # Errors
    /// As [`DelayedQueue::remove`], and [`Invalid`](crate::ErrorKind::Invalid) for more than 500,000. If some
    /// were removed before the error, it is [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) and says how
    /// many. After [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown), a retry is harmless, but may return
    /// false.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the payloads may or may not be removed.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// let paid = [7, 8, 9];
    /// if !jobs.remove_all(&paid).await? {
    ///     println!("none of them was pending; ready ones are in the blocking queue");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "removeAll")]
    pub async fn remove_all<'a>(&self, values: impl IntoIterator<Item = &'a T>) -> Result<bool>
    where
        T: 'a,
    {
        let op = self.queue.op("remove_all");
        self.remove_by(op, "all", op.encode_all(&*self.codec, values)?).await
    }

    /// Keeps the payloads that have the same bytes as one of these, up to 500,000, and removes all others.
    /// Returns whether any was removed. What is removed is never delivered. (Redisson's `retainAll` still
    /// delivers it.) Bytes are compared as in [`DelayedQueue::remove`], and a long queue is searched as in
    /// [`DelayedQueue::remove_all`].
    ///
    /// # Errors
    /// As [`DelayedQueue::remove_all`].
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the other payloads may or may not be removed.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// jobs.offer_all([(&7, Duration::from_secs(5)), (&8, Duration::from_secs(5))]).await?;
    /// jobs.retain_all(&[8]).await?;
    /// assert_eq!(jobs.read_all().await?, [8]); // 7 is never delivered.
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "retainAll")]
    pub async fn retain_all<'a>(&self, values: impl IntoIterator<Item = &'a T>) -> Result<bool>
    where
        T: 'a,
    {
        let op = self.queue.op("retain_all");
        self.remove_by(op, "all_except", op.encode_all(&*self.codec, values)?).await
    }

    async fn remove_by(&self, op: Op<'_>, which: &'static str, payloads: Vec<Bytes>) -> Result<bool> {
        if are_few(&payloads) {
            return Ok(op.remove_in_parts(|from| self.removal(which, from, &payloads)).await? > 0);
        }
        let (listed, except) = (payloads.into_iter().collect::<HashSet<_>>(), which == "all_except");
        let goes = |payload: &Bytes| listed.contains(payload) != except;
        let call = |from, found: Vec<Bytes>| self.removal("all", from, &found);
        let list = self.queue.keys.ordered_list();
        Ok(op.remove_in_pages(list, entry::payload_in, goes, call).await? > 0)
    }

    /// Removes entries in a part of the ordered list.
    fn removal(&self, which: &'static str, from: i64, payloads: &[Bytes]) -> Call {
        let keys = &self.queue.keys;
        let (set, list, [notes, more_notes]) = (keys.timeout_set(), keys.ordered_list(), keys.notes());
        let call = scripts::REMOVE.on(&[set, list, keys.scratch(), &keys.jobs(), &notes, &more_notes]);
        call.arg(which).number(from).arg(id::text()).args(payloads.iter().cloned())
    }

    /// Moves the payload that was offered last, although it is not due yet, to the front of another list, and
    /// returns it. `None` if nothing is pending. At any time the payload is in exactly one of the two. It is
    /// no job any more.
    ///
    /// # Errors
    /// * [`Decode`](crate::ErrorKind::Decode): the payload was moved. Its bytes are in
    ///   [`Error::payload`](crate::Error::payload).
    /// * [`Unavailable`](crate::ErrorKind::Unavailable), [`Refused`](crate::ErrorKind::Refused) (a key of
    ///   another type): nothing was moved.
    /// * [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown): the reply was lost. One payload may have been
    ///   moved, and a retry may move another.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the payload may or may not be moved.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// jobs.offer(&7, Duration::from_secs(60)).await?;
    /// // It is ready at once, and is taken next from `urgent`.
    /// jobs.poll_last_and_offer_first_to("urgent").await?;
    /// let urgent = client.blocking_queue("urgent", codec::Long);
    /// assert_eq!(urgent.take().await?, 7);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "pollLastAndOfferFirstTo")]
    pub async fn poll_last_and_offer_first_to(&self, destination: &str) -> Result<Option<T>> {
        let op = self.queue.op("poll_last_and_offer_first_to");
        op.ensure_beside(destination)?;
        let keys = &self.queue.keys;
        let destination = self.queue.engine.target(destination);
        let (jobs, [notes, more_notes]) = (keys.jobs(), keys.notes());
        let named = [
            keys.timeout_set(),
            keys.ordered_list(),
            keys.quarantine(),
            &destination,
            keys.scratch(),
            &jobs,
            &notes,
            &more_notes,
        ];
        loop {
            let call = scripts::POLL_LAST_AND_OFFER_FIRST_TO.on(&named);
            let [quarantined, payload, is_more] = op.parts(op.run(call).await?)?;
            let quarantined = op.int(quarantined)?;
            if self.queue.counters.quarantined(quarantined) {
                events::quarantined(keys, quarantined);
            }
            if op.int(is_more)? == 0 {
                let payload = op.optional_bytes(payload)?;
                return payload.map(|payload| op.decode(&*self.codec, payload)).transpose();
            }
        }
    }

    /// Deletes all pending payloads, irrevocably. Returns whether there were any. Ready payloads and the
    /// quarantine are not affected. A schedule loses its pending run, and continues with the run after it.
    ///
    /// They are deleted at one instant. If jobs with headers, an expiry or `until_done` are in the queue, it
    /// is done in parts of 1,000, from the oldest offer on.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) or [`Refused`](crate::ErrorKind::Refused) (a missing
    /// permission): nothing was deleted. [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when the reply
    /// was lost, or after some parts: a retry may return false, and also deletes what was offered in the
    /// meantime.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, all, some or none of the payloads may be deleted.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let ready = client.blocking_queue("jobs", codec::Long);
    /// let jobs = client.delayed_queue(&ready);
    /// jobs.clear().await?;
    /// println!("{} jobs were ready before, and can still be taken", ready.len().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn clear(&self) -> Result<bool> {
        self.remove_all_entries(self.queue.op("clear")).await
    }

    /// Deletes all pending payloads, irrevocably: the same as [`DelayedQueue::clear`], since an empty queue
    /// has no keys.
    ///
    /// # Errors
    /// As [`DelayedQueue::clear`].
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the payloads may or may not be deleted.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// jobs.delete().await?;
    /// jobs.offer(&7, Duration::from_secs(60)).await?; // The handle is still usable.
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete(&self) -> Result<bool> {
        self.remove_all_entries(self.queue.op("delete")).await
    }

    async fn remove_all_entries(&self, op: Op<'_>) -> Result<bool> {
        op.clear_in_parts(|| scripts::CLEAR.of(&self.queue.keys, None)).await
    }

    /// Sets the time after which everything that is pending is deleted, exact to the millisecond. Returns
    /// whether anything was pending. What is offered in the meantime is deleted, too, unless nothing was
    /// pending in between. Ready payloads and the quarantine are not affected.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a time of 10^15 ms or more.
    /// [`Unavailable`](crate::ErrorKind::Unavailable) or [`Refused`](crate::ErrorKind::Refused) (a missing
    /// permission): the time is not set. [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when no reply
    /// came: a retry is harmless, and the time counts from the retry.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the time may or may not be set.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// jobs.offer(&7, Duration::from_secs(60)).await?;
    /// // Deleted before it is due: no worker gets it. What is offered in the meantime is deleted, too.
    /// assert!(jobs.expire(Duration::from_secs(30)).await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn expire(&self, after: Duration) -> Result<bool> {
        let op = self.queue.op("expire");
        let millis = time::millis(after).map_err(|why| op.invalid(why))?;
        let keys = &self.queue.keys;
        let call = scripts::EXPIRE.on(&[keys.timeout_set(), keys.ordered_list()]).number(millis);
        op.any(op.run(call.idempotent()).await?)
    }
}
