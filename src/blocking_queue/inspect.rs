//! Reading what is ready. Nothing changes.

use std::collections::HashSet;

use bytes::Bytes;

use super::BlockingQueue;
use crate::conn::{Command, Reply};
use crate::error::Result;
use crate::queue::{AsValue, Op};
use crate::scripts;
use crate::telemetry::QueueStats;

/// # Look
impl<T: 'static> BlockingQueue<T> {
    /// Returns the number of ready payloads. Redisson's `size`. O(1).
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
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let orders = client.blocking_queue("orders", codec::Long);
    /// let delayed = client.delayed_queue(&orders);
    /// println!("{} ready, {} not due yet", orders.len().await?, delayed.len().await?);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "size")]
    pub async fn len(&self) -> Result<usize> {
        let op = self.queue.reading("len");
        op.len(op.call(Command::new("LLEN").arg(self.target()).only_reads()).await?)
    }

    /// Returns whether nothing is ready.
    ///
    /// # Errors
    /// As [`BlockingQueue::len`].
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// # let delayed = client.delayed_queue(&orders);
    /// // Orders that are not due yet are in the delayed queue, and do not count here.
    /// let all_done = delayed.is_empty().await? && orders.is_empty().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "isEmpty")]
    #[doc(alias = "isExists")]
    pub async fn is_empty(&self) -> Result<bool> {
        Ok(self.len().await? == 0)
    }

    /// Returns all ready payloads, in order. They stay in the list.
    ///
    /// Up to 1,000 payloads of 1 MB in sum are read at one instant. A longer list is read in pages, so that
    /// no call holds up the server. What stays in the list throughout is returned. What is put, taken or
    /// moved meanwhile may be missing, and what is moved may come twice. Of equal payloads there may then be
    /// more, by as many as have left the list.
    ///
    /// # Errors
    /// [`Decode`](crate::ErrorKind::Decode) for the first payload that does not decode, and those of
    /// [`BlockingQueue::len`].
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// for (position, order) in orders.read_all().await?.iter().enumerate() {
    ///     println!("{position}: {order}"); // Another process may have taken it by now.
    /// }
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
    #[doc(alias = "descendingIterator")]
    pub async fn read_all(&self) -> Result<Vec<T>> {
        let op = self.queue.reading("read_all");
        let payloads = op.read_payloads(self.queue.keys.target(), usize::MAX).await?;
        payloads.into_iter().map(|payload| op.decode(&*self.codec, payload)).collect()
    }

    /// Returns the first payload, which is taken next. It stays in the list.
    ///
    /// # Errors
    /// [`Decode`](crate::ErrorKind::Decode), and those of [`BlockingQueue::len`].
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let orders = client.blocking_queue("orders", codec::Long);
    /// if let Some(order) = orders.peek().await? {
    ///     println!("the next order is {order}, unless another process takes it first");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "element")]
    #[doc(alias = "peekFirst")]
    #[doc(alias = "getFirst")]
    pub async fn peek(&self) -> Result<Option<T>> {
        self.element(self.queue.reading("peek"), 0).await
    }

    /// Returns the last payload, the newest one. It stays in the list. Redisson's `RBlockingDeque.peekLast`.
    ///
    /// # Errors
    /// As [`BlockingQueue::peek`].
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// orders.offer_all(&[7, 8, 9]).await?;
    /// assert_eq!(orders.peek_last().await?, Some(9)); // Unless another process puts one.
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "peekLast")]
    #[doc(alias = "getLast")]
    pub async fn peek_last(&self) -> Result<Option<T>> {
        self.element(self.queue.reading("peek_last"), -1).await
    }

    /// Decodes a payload of this queue with its codec: that of a [`DeadLetter`](crate::admin::DeadLetter), of
    /// an [`UnsettledMessage`](crate::admin::UnsettledMessage) or of a [`Failure`](crate::worker::Failure),
    /// for example. No command is sent.
    ///
    /// # Errors
    /// [`Decode`](crate::ErrorKind::Decode) if the codec cannot read these bytes.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let orders = client.blocking_queue::<i64>("orders", codec::Long);
    /// for letter in orders.dead_letters().read(None, 100).await? {
    ///     match orders.decode(&letter.payload) {
    ///         Ok(order) => println!("order {order}: {}", letter.error),
    ///         Err(error) => println!("{}: {error}", letter.id),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn decode(&self, payload: &[u8]) -> Result<T> {
        self.queue.reading("decode").decode(&*self.codec, Bytes::copy_from_slice(payload))
    }

    /// Returns counters and gauges of the queue: what is pending, ready, overdue and quarantined on the
    /// server now, and what this client has done for the queue. The same as
    /// [`DelayedQueue::stats`](crate::DelayedQueue::stats). O(log n) on the server.
    ///
    /// # Errors
    /// As [`DelayedQueue::stats`](crate::DelayedQueue::stats).
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// let stats = orders.stats().await?;
    /// println!("{} orders are ready, {} takers wait", stats.ready, stats.takers);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn stats(&self) -> Result<QueueStats> {
        self.queue.stats().await
    }

    async fn element(&self, op: Op<'_>, index: i64) -> Result<Option<T>> {
        let payload = op.element(self.queue.keys.target(), index).await?;
        payload.map(|payload| op.decode(&*self.codec, payload)).transpose()
    }

    /// Returns whether a payload with the same bytes is ready. O(n): the server compares the whole list,
    /// which takes 40 ms for a million payloads of 100 bytes.
    ///
    /// The server compares bytes, not values. `codec::Json` and Java's codec may write different bytes for
    /// equal values: see `docs/codecs.md`.
    ///
    /// # Errors
    /// [`Encode`](crate::ErrorKind::Encode) or [`Invalid`](crate::ErrorKind::Invalid) (over the size limit),
    /// and those of [`BlockingQueue::len`].
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::String);
    /// if !orders.contains("order 7").await? {
    ///     println!("not ready: pending, taken, or written with different bytes");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn contains(&self, value: impl AsValue<T>) -> Result<bool> {
        let op = self.queue.reading("contains");
        let payload = op.encode(&*self.codec, value)?;
        Ok(op.call(Command::new("LPOS").arg(self.target()).arg(payload).only_reads()).await? != Reply::Nil)
    }

    /// Returns whether all of these payloads, up to 500,000, are ready. Bytes are compared as in
    /// [`BlockingQueue::contains`]. If they are not among the last 10,000 of a longer list, the client reads
    /// the list as [`BlockingQueue::read_all`] does.
    ///
    /// # Errors
    /// As [`BlockingQueue::contains`], and [`Invalid`](crate::ErrorKind::Invalid) for more than 500,000.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// orders.offer_all(&[7, 8]).await?;
    /// assert!(orders.contains_all(&[8, 7, 7]).await?); // Repetitions do not count.
    /// assert!(!orders.contains_all(&[7, 9]).await?);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "containsAll")]
    pub async fn contains_all<'a>(&self, values: impl IntoIterator<Item = &'a T>) -> Result<bool>
    where
        T: 'a,
    {
        let op = self.queue.reading("contains_all");
        let payloads = op.encode_all(&*self.codec, values)?;
        let list = self.queue.keys.target();
        let call = scripts::CONTAINS_READY.on(&[list]).args(payloads.iter().cloned()).only_reads();
        let answer = op.int(op.run(call).await?)?;
        if answer >= 0 {
            return Ok(answer > 0);
        }
        let ready: HashSet<_> = op.read_payloads(list, usize::MAX).await?.into_iter().collect();
        Ok(payloads.iter().all(|payload| ready.contains(payload)))
    }
}
