//! Looking at what is ready; nothing changes.

use super::BlockingQueue;
use crate::conn::{Command, Reply};
use crate::error::Result;
use crate::queue::{AsValue, Op};
use crate::scripts;
use crate::telemetry::QueueStats;

impl<T: 'static> BlockingQueue<T> {
    /// How many payloads are ready. Redisson's `size`.
    ///
    /// # Errors
    /// [`Refused`](crate::ErrorKind::Refused): a key of another type, or missing rights.
    /// [`Unavailable`](crate::ErrorKind::Unavailable) or
    /// [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown): no answer came; to ask again is harmless.
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
    /// println!("{} to be taken, {} not due yet", orders.len().await?, delayed.len().await?);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "size")]
    pub async fn len(&self) -> Result<usize> {
        let op = self.queue.op("len");
        op.len(op.query(Command::new("LLEN").arg(self.target())).await?)
    }

    /// Whether nothing is ready.
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
    /// // What is not due yet is in the delayed queue, and does not count here.
    /// let all_done = delayed.is_empty().await? && orders.is_empty().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn is_empty(&self) -> Result<bool> {
        Ok(self.len().await? == 0)
    }

    /// Everything that is ready, in order. It all stays where it is.
    ///
    /// # Errors
    /// [`Decode`](crate::ErrorKind::Decode) for the first payload that does not decode, or as
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
    /// for (place, order) in orders.read_all().await?.iter().enumerate() {
    ///     println!("{place}: {order}"); // Somebody may be taking it just now.
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn read_all(&self) -> Result<Vec<T>> {
        let call = scripts::RANGE.on(&[self.queue.keys.target()]).number(0).number(-1).idempotent();
        let op = self.queue.op("read_all");
        let payloads = op.counted_bytes(op.run(call).await?)?;
        payloads.into_iter().map(|payload| op.decode(&*self.codec, payload)).collect()
    }

    /// The first payload, which stays where it is.
    ///
    /// # Errors
    /// [`Decode`](crate::ErrorKind::Decode), or as [`BlockingQueue::len`].
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
    ///     println!("the next one is {order}, unless somebody takes it first");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn peek(&self) -> Result<Option<T>> {
        self.element(self.queue.op("peek"), 0).await
    }

    /// The last payload, which stays where it is: Redisson's `RBlockingDeque.peekLast`.
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
    /// assert_eq!(orders.peek_last().await?, Some(9)); // The newest, as long as nobody else puts.
    /// # Ok(())
    /// # }
    /// ```
    pub async fn peek_last(&self) -> Result<Option<T>> {
        self.element(self.queue.op("peek_last"), -1).await
    }

    /// How the queue is: what is pending, ready, overdue and quarantined on the server at this moment, and what
    /// this client has done with it. The same as
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
    /// println!("{} are ready, {} wait for one", stats.ready, stats.takers);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn stats(&self) -> Result<QueueStats> {
        self.queue.stats().await
    }

    async fn element(&self, op: Op<'_>, index: i64) -> Result<Option<T>> {
        let reply = op.query(Command::new("LINDEX").arg(self.target()).number(index)).await?;
        op.optional_bytes(reply)?.map(|payload| op.decode(&*self.codec, payload)).transpose()
    }

    /// Whether a payload with the same bytes is ready.
    ///
    /// # Errors
    /// [`Encode`](crate::ErrorKind::Encode) or [`Invalid`](crate::ErrorKind::Invalid) (over the size limit),
    /// or as [`BlockingQueue::len`].
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::String);
    /// if !orders.contains(&"order 7".to_owned()).await? {
    ///     println!("not ready: pending, taken, or written with other bytes");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn contains(&self, value: impl AsValue<T>) -> Result<bool> {
        let op = self.queue.op("contains");
        let payload = op.encode(&*self.codec, value)?;
        Ok(op.query(Command::new("LPOS").arg(self.target()).arg(payload)).await? != Reply::Nil)
    }

    /// Whether for each of these, up to 500,000, a payload with the same bytes is ready. Reads through the
    /// list on the server once.
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
    /// assert!(orders.contains_all(&[8, 7, 7]).await?); // How often does not count.
    /// assert!(!orders.contains_all(&[7, 9]).await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn contains_all<'a>(&self, values: impl IntoIterator<Item = &'a T>) -> Result<bool>
    where
        T: 'a,
    {
        let op = self.queue.op("contains_all");
        let payloads = op.encode_all(&*self.codec, values)?;
        let call = scripts::CONTAINS_READY.on(&[self.queue.keys.target()]).args(payloads).idempotent();
        op.any(op.run(call).await?)
    }
}
