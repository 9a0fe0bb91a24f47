//! Appending payloads that are ready at once.

use bytes::Bytes;

use super::BlockingQueue;
use crate::conn::Command;
use crate::error::Result;
use crate::queue::{AsValue, Op};

/// # Put
impl<T: 'static> BlockingQueue<T> {
    /// Appends a payload, which is ready at once.
    ///
    /// # Errors
    /// [`Encode`](crate::ErrorKind::Encode) or [`Invalid`](crate::ErrorKind::Invalid) (over the size limit)
    /// before anything is sent. [`Unavailable`](crate::ErrorKind::Unavailable) or
    /// [`Refused`](crate::ErrorKind::Refused) (a key of another type, a missing permission, no memory): the
    /// payload was not appended. [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when the reply was
    /// lost: the payload may have been appended, and a retry may append it again.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the payload may or may not be appended.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let numbers = client.blocking_queue("numbers", codec::Long);
    /// numbers.put(&7).await?;
    /// assert_eq!(numbers.take().await?, 7);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "add")]
    #[doc(alias = "putLast")]
    #[doc(alias = "addLast")]
    #[doc(alias = "offerLast")]
    pub async fn put(&self, value: impl AsValue<T>) -> Result<()> {
        let op = self.queue.op("put");
        self.push(op, vec![op.encode(&*self.codec, value)?]).await
    }

    /// Appends a payload: the same as [`BlockingQueue::put`], since a list on the server is never full.
    ///
    /// # Errors
    /// As [`BlockingQueue::put`].
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the payload may or may not be appended.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// // In Java, `offer` always returns true.
    /// orders.offer(&7).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "add")]
    pub async fn offer(&self, value: impl AsValue<T>) -> Result<()> {
        let op = self.queue.op("offer");
        self.push(op, vec![op.encode(&*self.codec, value)?]).await
    }

    /// Appends several payloads, up to 500,000, with one command. They are next to each other in the list.
    /// Redisson's `addAll`.
    ///
    /// # Errors
    /// As [`BlockingQueue::put`], and [`Invalid`](crate::ErrorKind::Invalid) for more than 500,000. All
    /// payloads are encoded and counted before anything is sent.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, either all are appended or none.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let orders = client.blocking_queue("orders", codec::Long);
    /// orders.offer_all(&[7, 8, 9]).await?; // No other payload comes between them.
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "addAll")]
    #[doc(alias = "addLast")]
    pub async fn offer_all<'a>(&self, values: impl IntoIterator<Item = &'a T>) -> Result<()>
    where
        T: 'a,
    {
        let op = self.queue.op("offer_all");
        self.push(op, op.encode_all(&*self.codec, values)?).await
    }

    async fn push(&self, op: Op<'_>, payloads: Vec<Bytes>) -> Result<()> {
        if payloads.is_empty() {
            return Ok(());
        }
        op.write(Command::new("RPUSH").arg(self.target()).args(payloads)).await.map(drop)
    }
}
