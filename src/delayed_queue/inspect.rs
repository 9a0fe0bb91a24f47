//! Reading what is pending. Nothing changes.

use std::collections::HashSet;

use bytes::Bytes;

use super::DelayedQueue;
use crate::error::Result;
use crate::queue::{AsValue, Op};
use crate::scripts;
use crate::telemetry::QueueStats;
use crate::wire::entry;

/// # Look
impl<T: 'static> DelayedQueue<T> {
    /// Returns the number of pending payloads. O(1).
    ///
    /// While a transfer moves a backlog of 10,000 entries or more, overdue ones count here until they are
    /// moved, although Redisson's `size`, and the other methods that read what is pending, may not see them.
    ///
    /// # Errors
    /// [`Refused`](crate::ErrorKind::Refused) for a key of another type, or a missing permission.
    /// [`Unavailable`](crate::ErrorKind::Unavailable) without a connection, or when no reply came within the
    /// command timeout: the client asks again until then.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// jobs.offer(&1, Duration::from_secs(60)).await?;
    /// assert_eq!(jobs.len().await?, 1); // A minute later it counts in the blocking queue.
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "size")]
    pub async fn len(&self) -> Result<usize> {
        let op = self.queue.reading("len");
        let keys = &self.queue.keys;
        let call = scripts::LEN.on(&[keys.timeout_set(), keys.ordered_list(), &keys.rebuild()]);
        op.len(op.run(call.only_reads()).await?)
    }

    /// Returns whether nothing is pending: whether [`DelayedQueue::len`] is 0.
    ///
    /// # Errors
    /// As [`DelayedQueue::len`].
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// if !jobs.is_empty().await? {
    ///     println!("the old queue still has pending jobs: keep its workers");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "isEmpty")]
    #[doc(alias = "isExists")]
    pub async fn is_empty(&self) -> Result<bool> {
        Ok(self.len().await? == 0)
    }

    /// Returns all pending payloads in the order in which they were offered, as in Redisson. Malformed
    /// entries are left out. Nothing changes.
    ///
    /// Up to 1,000 entries of 1 MB in sum are read at one instant. A longer list is read in pages, so that no
    /// call holds up the server. What stays pending throughout is returned once. What is offered, removed or
    /// becomes due meanwhile may be missing. Overdue entries that a transfer brings to the front meanwhile
    /// come first.
    ///
    /// # Errors
    /// [`Decode`](crate::ErrorKind::Decode) for the first payload that does not decode, and those of
    /// [`DelayedQueue::len`].
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// jobs.offer(&1, Duration::from_secs(60)).await?;
    /// jobs.offer(&2, Duration::from_secs(5)).await?;
    /// assert_eq!(jobs.read_all().await?, [1, 2]); // 2 is due first.
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "readAll")]
    #[doc(alias = "toArray")]
    #[doc(alias = "iterator")]
    #[doc(alias = "forEach")]
    #[doc(alias = "spliterator")]
    #[doc(alias = "stream")]
    #[doc(alias = "parallelStream")]
    pub async fn read_all(&self) -> Result<Vec<T>> {
        let op = self.queue.reading("read_all");
        let (mut entries, mut read) = (Vec::new(), Vec::new());
        let list = self.queue.keys.ordered_list();
        op.read_entries(list, |page, is_front| {
            if is_front {
                entries.extend(page)
            } else {
                read.extend(page)
            }
            true
        })
        .await?;
        entries.append(&mut read);
        entries.iter().filter_map(entry::payload_in).map(|payload| op.decode(&*self.codec, payload)).collect()
    }

    /// Returns the pending payload that was offered first, which may not be the one that is due first. It
    /// stays in the queue.
    ///
    /// # Errors
    /// [`Decode`](crate::ErrorKind::Decode), and those of [`DelayedQueue::len`].
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// jobs.offer(&1, Duration::from_secs(60)).await?;
    /// jobs.offer(&2, Duration::from_secs(5)).await?;
    /// assert_eq!(jobs.peek().await?, Some(1)); // Not 2, which is due first.
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "element")]
    pub async fn peek(&self) -> Result<Option<T>> {
        let op = self.queue.reading("peek");
        let list = self.queue.keys.ordered_list();
        let Some(entry) = op.element(list, 0).await? else { return Ok(None) };
        let mut first = entry::payload_in(&entry);
        if first.is_none() {
            // Malformed entries are rare, and may be many.
            op.read_entries(list, |entries, _| {
                first = entries.iter().find_map(entry::payload_in);
                first.is_none()
            })
            .await?;
        }
        first.map(|payload| op.decode(&*self.codec, payload)).transpose()
    }

    /// Decodes a payload of this queue with its codec: that of a
    /// [`PendingEntry`](crate::inspector::PendingEntry), for example. No command is sent.
    ///
    /// # Errors
    /// [`Decode`](crate::ErrorKind::Decode) if the codec cannot read these bytes.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::inspector::Inspector;
    /// # async fn example(orders: redelay::DelayedQueue<i64>) -> redelay::Result<()> {
    /// for entry in Inspector::from(&orders).pending(orders.keys().target, None, 100).await? {
    ///     if let Some(payload) = &entry.payload {
    ///         println!("{}, due at {:?}", orders.decode(payload)?, entry.due);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn decode(&self, payload: &[u8]) -> Result<T> {
        self.queue.reading("decode").decode(&*self.codec, Bytes::copy_from_slice(payload))
    }

    /// Returns counters and gauges of the queue: what is pending, ready, overdue and quarantined on the
    /// server now, and what this client has done for the queue. O(log n) on the server.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) without a connection, or when no reply came within the
    /// command timeout. [`Refused`](crate::ErrorKind::Refused) for a key of another type, or a missing
    /// permission. In these cases [`Client::stats`](crate::Client::stats) still works: it does not ask the
    /// server.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// let stats = jobs.stats().await?;
    /// if stats.overdue_for > Some(Duration::from_secs(5)) {
    ///     eprintln!("no process transfers {}: {stats:?}", jobs.name());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn stats(&self) -> Result<QueueStats> {
        self.queue.stats().await
    }

    /// Returns whether a payload with the same bytes is pending. O(n): if it is not among the last 10,000
    /// entries of a longer queue, the client reads the queue as [`DelayedQueue::read_all`] does.
    ///
    /// The server compares bytes, not values. `codec::Json` and Java's codec may write different bytes for
    /// equal values: see `docs/codecs.md`.
    ///
    /// # Errors
    /// [`Encode`](crate::ErrorKind::Encode) or [`Invalid`](crate::ErrorKind::Invalid) (over the size limit),
    /// and those of [`DelayedQueue::len`].
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// if !jobs.contains(&7).await? {
    ///     // Two processes may get here at the same time.
    ///     jobs.offer(&7, Duration::from_secs(60)).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn contains(&self, value: impl AsValue<T>) -> Result<bool> {
        let op = self.queue.reading("contains");
        self.contains_each(op, vec![op.encode(&*self.codec, value)?]).await
    }

    /// Returns whether all of these payloads, up to 500,000, are pending. They are searched and compared as
    /// in [`DelayedQueue::contains`].
    ///
    /// # Errors
    /// As [`DelayedQueue::contains`], and [`Invalid`](crate::ErrorKind::Invalid) for more than 500,000.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// let planned = [1, 2, 3];
    /// let all_pending = jobs.contains_all(&planned).await?; // None of them is ready, taken or cancelled.
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "containsAll")]
    pub async fn contains_all<'a>(&self, values: impl IntoIterator<Item = &'a T>) -> Result<bool>
    where
        T: 'a,
    {
        let op = self.queue.reading("contains_all");
        self.contains_each(op, op.encode_all(&*self.codec, values)?).await
    }

    async fn contains_each(&self, op: Op<'_>, payloads: Vec<Bytes>) -> Result<bool> {
        let list = self.queue.keys.ordered_list();
        let call = scripts::CONTAINS.on(&[list]).args(payloads.iter().cloned()).only_reads();
        let answer = op.int(op.run(call).await?)?;
        if answer >= 0 {
            return Ok(answer > 0);
        }
        let mut missing: HashSet<_> = payloads.into_iter().collect();
        op.read_entries(list, |entries, _| {
            for payload in entries.iter().filter_map(entry::payload_in) {
                missing.remove(&payload);
            }
            !missing.is_empty()
        })
        .await?;
        Ok(missing.is_empty())
    }
}
