//! Removing ready payloads without reading them.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;

use super::BlockingQueue;
use crate::conn::Command;
use crate::error::Result;
use crate::queue::{AsValue, Op, are_few};
use crate::scripts;
use crate::wire::id;
use crate::wire::time;

/// # Remove
impl<T: 'static> BlockingQueue<T> {
    /// Removes the first payload with the same bytes. Returns whether there was one. O(n): the server
    /// compares the payloads up to this one, which takes 40 ms for a million of 100 bytes.
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
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// orders.offer_all(&[7, 8, 7]).await?;
    /// assert!(orders.remove(&7).await?);
    /// assert_eq!(orders.read_all().await?, [8, 7]); // Only the first 7 is removed.
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "removeFirstOccurrence")]
    #[doc(alias = "removeIf")]
    pub async fn remove(&self, value: impl AsValue<T>) -> Result<bool> {
        let op = self.queue.op("remove");
        let payload = op.encode(&*self.codec, value)?;
        op.any(op.run(scripts::REMOVE_FIRST.of(&self.queue.keys, None).arg(payload)).await?)
    }

    /// Removes every payload that has the same bytes as one of these, up to 500,000. Returns whether any was
    /// removed. (Redisson returns true only if a value was in the list exactly once.) Bytes are compared as
    /// in [`BlockingQueue::remove`].
    ///
    /// Up to 10,000 payloads of 4 MB in sum are searched at one instant. A longer list is searched in parts,
    /// and so is any for more than 1,000 values, or 1 MB of them: then it is read, because they would have to
    /// be sent with each part. Payloads that stay in the list are found, unless others put more of them in
    /// front during the call than two parts overlap: a tenth of a part, at least 250 payloads, or fewer if
    /// they are longer than a kilobyte.
    ///
    /// # Errors
    /// As [`BlockingQueue::remove`], and [`Invalid`](crate::ErrorKind::Invalid) for more than 500,000. If
    /// some were removed before the error, it is [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) and
    /// says how many. After [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown), a retry is harmless, but
    /// may return false.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the payloads may or may not be removed.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// orders.offer_all(&[7, 8, 7]).await?;
    /// assert!(orders.remove_all(&[7, 9]).await?); // True, although there was no 9.
    /// assert_eq!(orders.read_all().await?, [8]);
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
    /// Returns whether any was removed. Bytes are compared as in [`BlockingQueue::remove`], and a long list
    /// is searched as in [`BlockingQueue::remove_all`].
    ///
    /// # Errors
    /// As [`BlockingQueue::remove_all`].
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the other payloads may or may not be removed.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// let paid = [7, 9];
    /// if orders.retain_all(&paid).await? {
    ///     println!("from now on, only paid orders are taken");
    /// }
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
        let keys = &self.queue.keys;
        let (jobs, [notes, more_notes]) = (keys.jobs(), keys.notes());
        let tombstone = id::text();
        let call = |which, from: i64, payloads: Vec<Bytes>| {
            let call = scripts::REMOVE_READY.on(&[
                keys.target(),
                keys.scratch(),
                keys.timeout_set(),
                &jobs,
                &notes,
                &more_notes,
            ]);
            call.arg(which).number(from).arg(tombstone.clone()).args(payloads)
        };
        if are_few(&payloads) {
            return Ok(op.remove_in_parts(|from| call(which, from, payloads.clone())).await? > 0);
        }
        let (listed, except) = (payloads.into_iter().collect::<HashSet<_>>(), which == "all_except");
        let goes = |payload: &Bytes| listed.contains(payload) != except;
        let call = |from, found| call("all", from, found);
        Ok(op.remove_in_pages(keys.target(), |payload| Some(payload.clone()), goes, call).await? > 0)
    }

    /// Deletes all ready payloads, irrevocably. Returns whether there were any. Pending payloads are not
    /// affected. It is done at one instant, or in parts of 1,000, as
    /// [`DelayedQueue::clear`](crate::DelayedQueue::clear) does it.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) or [`Refused`](crate::ErrorKind::Refused) (a missing
    /// permission): nothing was deleted. [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when the reply
    /// was lost, or after some parts: a retry may return false, and also deletes what was put or became ready
    /// in the meantime.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, all, some or none of the payloads may be deleted.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let orders = client.blocking_queue("orders", codec::Long);
    /// let delayed = client.delayed_queue(&orders);
    /// delayed.clear().await?; // First, because pending orders may become ready at any time.
    /// orders.clear().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn clear(&self) -> Result<bool> {
        self.remove_all_payloads(self.queue.op("clear")).await
    }

    /// Deletes all ready payloads, irrevocably: the same as [`BlockingQueue::clear`], since an empty list has
    /// no key.
    ///
    /// # Errors
    /// As [`BlockingQueue::clear`].
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the payloads may or may not be deleted.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// orders.put(&7).await?;
    /// assert!(orders.delete().await?);
    /// assert!(!orders.delete().await?); // The list does not exist any more.
    /// orders.put(&8).await?; // Creates it again.
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete(&self) -> Result<bool> {
        self.remove_all_payloads(self.queue.op("delete")).await
    }

    async fn remove_all_payloads(&self, op: Op<'_>) -> Result<bool> {
        op.clear_in_parts(|| scripts::CLEAR_READY.of(&self.queue.keys, None)).await
    }

    /// Sets the time after which everything that is ready is deleted, exact to the millisecond. Returns
    /// whether anything was ready. Payloads that are put or become ready in the meantime are deleted, too,
    /// unless the list has been empty in between.
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
    /// let prices = client.blocking_queue("prices", codec::Double);
    /// prices.put(&9.99).await?;
    /// // Prices that are put within this minute are deleted with it.
    /// assert!(prices.expire(Duration::from_secs(60)).await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn expire(&self, after: Duration) -> Result<bool> {
        let op = self.queue.op("expire");
        let millis = time::millis(after).map_err(|why| op.invalid(why))?;
        op.any(op.call(Command::new("PEXPIRE").arg(self.target()).number(millis).idempotent()).await?)
    }
}
