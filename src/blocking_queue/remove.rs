//! Removing what is ready, unread.

use std::time::Duration;

use bytes::Bytes;

use super::BlockingQueue;
use crate::conn::Command;
use crate::error::Result;
use crate::queue::{AsValue, Op};
use crate::scripts;
use crate::wire::time;

impl<T: 'static> BlockingQueue<T> {
    /// Removes the first payload with the same bytes; whether there was one.
    ///
    /// # Errors
    /// [`Encode`](crate::ErrorKind::Encode) or [`Invalid`](crate::ErrorKind::Invalid) (over the size limit)
    /// before anything is sent. [`Unavailable`](crate::ErrorKind::Unavailable) or
    /// [`Refused`](crate::ErrorKind::Refused) (a key of another type): nothing was removed.
    /// [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when the reply was lost: then it may be removed,
    /// and a repetition may remove a second one.
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, it may or may not be removed.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// orders.offer_all(&[7, 8, 7]).await?;
    /// assert!(orders.remove(&7).await?);
    /// assert_eq!(orders.read_all().await?, [8, 7]); // The first one only.
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove(&self, value: impl AsValue<T>) -> Result<bool> {
        let op = self.queue.op("remove");
        let payload = op.encode(&*self.codec, value)?;
        op.any(op.call(Command::new("LREM").arg(self.target()).number(1).arg(payload)).await?)
    }

    /// Removes every payload that has the same bytes as one of these, up to 500,000; whether any was removed
    /// (Redisson says so only when it was there exactly once).
    ///
    /// # Errors
    /// As [`BlockingQueue::remove`], and [`Invalid`](crate::ErrorKind::Invalid) for more than 500,000. After
    /// [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown), to repeat it is harmless, but may answer false.
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, they may or may not be removed.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// orders.offer_all(&[7, 8, 7]).await?;
    /// assert!(orders.remove_all(&[7, 9]).await?); // Something was removed, though no 9.
    /// assert_eq!(orders.read_all().await?, [8]);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove_all<'a>(&self, values: impl IntoIterator<Item = &'a T>) -> Result<bool>
    where
        T: 'a,
    {
        let op = self.queue.op("remove_all");
        self.remove_by(op, "all", op.encode_all(&*self.codec, values)?).await
    }

    /// Removes every payload that has the same bytes as none of these, up to 500,000; whether any was
    /// removed.
    ///
    /// # Errors
    /// As [`BlockingQueue::remove_all`].
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, the others may or may not be removed.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// let paid = [7, 9];
    /// if orders.retain_all(&paid).await? {
    ///     println!("whoever takes now gets paid orders only");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn retain_all<'a>(&self, values: impl IntoIterator<Item = &'a T>) -> Result<bool>
    where
        T: 'a,
    {
        let op = self.queue.op("retain_all");
        self.remove_by(op, "all_except", op.encode_all(&*self.codec, values)?).await
    }

    async fn remove_by(&self, op: Op<'_>, which: &'static str, payloads: Vec<Bytes>) -> Result<bool> {
        let call = scripts::REMOVE_READY.on(&[self.queue.keys.target()]).arg(which).args(payloads);
        op.any(op.run(call).await?)
    }

    /// Drops everything that is ready; whether there was anything. The delayed queue stays as it is.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) or [`Refused`](crate::ErrorKind::Refused) (missing
    /// rights): nothing was dropped. [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when the reply was
    /// lost: to repeat it is harmless, but may answer false.
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, it may or may not be done.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let orders = client.blocking_queue("orders", codec::Long);
    /// let delayed = client.delayed_queue(&orders);
    /// delayed.clear().await?; // First: what is pending may become ready at any time.
    /// orders.clear().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn clear(&self) -> Result<bool> {
        self.remove_key(self.queue.op("clear")).await
    }

    /// The same as [`BlockingQueue::clear`]: an empty list does not exist.
    ///
    /// # Errors
    /// As [`BlockingQueue::clear`].
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, it may or may not be done.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// orders.put(&7).await?;
    /// assert!(orders.delete().await?);
    /// assert!(!orders.delete().await?); // There is no list any more.
    /// orders.put(&8).await?; // It is made again.
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete(&self) -> Result<bool> {
        self.remove_key(self.queue.op("delete")).await
    }

    async fn remove_key(&self, op: Op<'_>) -> Result<bool> {
        op.any(op.call(Command::new("DEL").arg(self.target())).await?)
    }

    /// Lets everything that is ready vanish after this time, ms-exact; whether there was anything.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a time of 10^15 ms or more.
    /// [`Unavailable`](crate::ErrorKind::Unavailable) or [`Refused`](crate::ErrorKind::Refused) (missing
    /// rights): it is not set. [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when no reply came: to
    /// repeat it is harmless, and counts the time from then.
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, it may or may not be set.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let prices = client.blocking_queue("prices", codec::Double);
    /// prices.put(&9.99).await?;
    /// // What is put later vanishes with it, unless the list has been empty in between.
    /// assert!(prices.expire(Duration::from_secs(60)).await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn expire(&self, after: Duration) -> Result<bool> {
        let op = self.queue.op("expire");
        let millis = time::millis(after).map_err(|why| op.invalid(why))?;
        op.any(op.query(Command::new("PEXPIRE").arg(self.target()).number(millis)).await?)
    }
}
