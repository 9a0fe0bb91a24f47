//! `BlockingQueue`: the list that takers read, under the names of Redisson's `RBlockingQueue`.
//!
//! What takes and may wait is in `take.rs`, the stream in `stream.rs`.

mod stream;
mod take;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use stream::Elements;

use crate::conn::Command;
use crate::error::Result;
use crate::keys::Keys;
use crate::queue::Queue;
use crate::script;
use crate::transfer::Watch;

/// A list on the server from which payloads are taken: Redisson's `RBlockingQueue<T>`. Made by
/// [`Client::blocking_queue`](crate::Client::blocking_queue); cloning is cheap.
///
/// A handle that takes also keeps the delayed queue in front of it moving, from its first take until it is dropped
/// with all its clones. (In Redisson nothing moves until somewhere an `RDelayedQueue` is made.)
///
/// # What a lost connection can cost
/// While somebody waits, a blocking pop is parked on the server. When the server answers it in the very moment in which
/// its connection dies, that one payload is gone: this is how `BLPOP` works, for every client. So per death of that
/// connection at most one payload is lost. Whatever is popped without blocking (polls, drains, and the payloads for
/// several takers at once) is remembered by the server until its reply has arrived, and is not lost as long as this
/// process lives. What it holds when it is killed is gone with it, as with every pop.
pub struct BlockingQueue<T> {
    queue: Queue<T>,
    /// Kept for as long as a handle takes, shared by its clones.
    watches: Arc<Mutex<HashMap<Keys, Option<Watch>>>>,
}

impl<T> Clone for BlockingQueue<T> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), watches: self.watches.clone() }
    }
}

impl<T> fmt::Debug for BlockingQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingQueue").field("name", &self.queue.name).finish_non_exhaustive()
    }
}

impl<T: 'static> BlockingQueue<T> {
    pub(crate) fn new(queue: Queue<T>) -> Self {
        Self { queue, watches: Arc::default() }
    }

    pub(crate) fn queue(&self) -> &Queue<T> {
        &self.queue
    }

    /// The name the handle was made with, before any mapping.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example() -> redelay::Result<()> {
    /// let client = Client::builder().name_prefix("shop:").connect().await?;
    /// let orders = client.blocking_queue("orders", codec::Long);
    /// assert_eq!(orders.name(), "orders"); // The list on the server is `shop:orders`.
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        &self.queue.name
    }

    /// Appends a payload: takers can have it at once.
    ///
    /// # Errors
    /// [`Encode`](crate::ErrorKind::Encode) or [`Invalid`](crate::ErrorKind::Invalid) (over the size limit) before
    /// anything is sent; [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when the reply was lost: then it may be
    /// there, and a repetition may put it there twice.
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, the payload may or may not be appended.
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
    pub async fn put(&self, value: &T) -> Result<()> {
        self.push("put", &[self.queue.encode("put", value)?]).await
    }

    /// The same as [`BlockingQueue::put`]: a list on the server is never full.
    ///
    /// # Errors
    /// As [`BlockingQueue::put`].
    ///
    /// # Cancel safety
    /// As [`BlockingQueue::put`].
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// // Java's answer, which is always true, is not there.
    /// orders.offer(&7).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn offer(&self, value: &T) -> Result<()> {
        self.push("offer", &[self.queue.encode("offer", value)?]).await
    }

    /// Appends several payloads with one command, next to each other. Redisson's `addAll`.
    ///
    /// # Errors
    /// As [`BlockingQueue::put`]; all are encoded before anything is sent.
    ///
    /// # Cancel safety
    /// As [`BlockingQueue::put`]; all are appended or none.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let orders = client.blocking_queue("orders", codec::Long);
    /// orders.offer_all(&[7, 8, 9]).await?; // Nobody else's payload gets between them.
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "addAll")]
    pub async fn offer_all<'a>(&self, values: impl IntoIterator<Item = &'a T>) -> Result<()>
    where
        T: 'a,
    {
        self.push("offer_all", &self.queue.encode_all("offer_all", values)?).await
    }

    async fn push(&self, verb: &str, payloads: &[bytes::Bytes]) -> Result<()> {
        if payloads.is_empty() {
            return Ok(());
        }
        let command = Command::new("RPUSH").arg(self.target()).args(payloads.iter().cloned());
        self.queue.call(verb, command).await.map(drop)
    }

    /// The first payload, which stays where it is.
    ///
    /// # Errors
    /// [`Decode`](crate::ErrorKind::Decode), or the server's.
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
        self.element("peek", 0).await
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
        self.element("peek_last", -1).await
    }

    async fn element(&self, verb: &str, index: i64) -> Result<Option<T>> {
        let reply = self.queue.read(verb, Command::new("LINDEX").arg(self.target()).number(index)).await?;
        let payload = self.queue.shape(verb, reply.into_optional_bytes())?;
        payload.map(|payload| self.queue.decode(verb, payload)).transpose()
    }

    /// How many payloads are ready. Redisson's `size`.
    ///
    /// # Errors
    /// The server's, such as a key of another type.
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
    /// println!("{} to be taken, {} not due yet", orders.len().await?, delayed.size().await?);
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "size")]
    pub async fn len(&self) -> Result<usize> {
        let reply = self.queue.read("len", Command::new("LLEN").arg(self.target())).await?;
        Ok(self.queue.shape("len", reply.into_int())?.max(0) as usize)
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

    /// Whether a payload with the same bytes is ready.
    ///
    /// # Errors
    /// [`Encode`](crate::ErrorKind::Encode), or the server's.
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
    pub async fn contains(&self, value: &T) -> Result<bool> {
        let payload = self.queue.encode("contains", value)?;
        let reply = self.queue.read("contains", Command::new("LPOS").arg(self.target()).arg(payload)).await?;
        Ok(reply != crate::conn::Reply::Nil)
    }

    /// Removes the first payload with the same bytes; whether there was one.
    ///
    /// # Errors
    /// [`Encode`](crate::ErrorKind::Encode), [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown), or the server's.
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
    pub async fn remove(&self, value: &T) -> Result<bool> {
        let payload = self.queue.encode("remove", value)?;
        let command = Command::new("LREM").arg(self.target()).number(1).arg(payload);
        let reply = self.queue.call("remove", command).await?;
        Ok(self.queue.shape("remove", reply.into_int())? > 0)
    }

    /// Whether for each of these a payload with the same bytes is ready. Reads through the list on the server once.
    ///
    /// # Errors
    /// As [`BlockingQueue::contains`].
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
        const VERB: &str = "contains_all";
        let payloads = self.queue.encode_all(VERB, values)?;
        let call = script::CONTAINS_READY.on(&[self.queue.keys.target()]).args(payloads).again_is_harmless();
        let reply = self.queue.run(VERB, call).await?;
        Ok(self.queue.shape(VERB, reply.into_int())? > 0)
    }

    /// Removes every payload that has the same bytes as one of these; whether any was removed (Redisson says so only
    /// when it was there exactly once).
    ///
    /// # Errors
    /// As [`BlockingQueue::remove`].
    ///
    /// # Cancel safety
    /// As [`BlockingQueue::remove`].
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
        self.remove_by("remove_all", "all", values).await
    }

    /// Removes every payload that has the same bytes as none of these; whether any was removed.
    ///
    /// # Errors
    /// As [`BlockingQueue::remove`].
    ///
    /// # Cancel safety
    /// As [`BlockingQueue::remove`].
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
        let call = script::REMOVE_READY.on(&[self.queue.keys.target()]).arg(which).args(payloads);
        let reply = self.queue.run(verb, call).await?;
        Ok(self.queue.shape(verb, reply.into_int())? > 0)
    }

    /// Everything that is ready, in order. It all stays where it is.
    ///
    /// # Errors
    /// [`Decode`](crate::ErrorKind::Decode) for the first payload that does not decode, or the server's.
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
        let call = script::RANGE.on(&[self.queue.keys.target()]).number(0).number(-1).again_is_harmless();
        let reply = self.queue.run("read_all", call).await?;
        let payloads = self.queue.shape("read_all", reply.into_counted_bytes())?;
        payloads.into_iter().map(|payload| self.queue.decode("read_all", payload)).collect()
    }

    /// Drops everything that is ready; whether there was anything. The delayed queue stays as it is.
    ///
    /// # Errors
    /// The server's.
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
        self.remove_key("clear").await
    }

    /// The same as [`BlockingQueue::clear`]: an empty list does not exist.
    ///
    /// # Errors
    /// The server's.
    ///
    /// # Cancel safety
    /// As [`BlockingQueue::clear`].
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
        self.remove_key("delete").await
    }

    async fn remove_key(&self, verb: &str) -> Result<bool> {
        let reply = self.queue.call(verb, Command::new("DEL").arg(self.target())).await?;
        Ok(self.queue.shape(verb, reply.into_int())? > 0)
    }

    /// Lets everything that is ready vanish after this time, ms-exact; whether there was anything.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a time of 10^15 ms or more, or the server's.
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
        let millis = crate::due::millis(after).map_err(|why| self.queue.refuse("expire", why))?;
        let reply =
            self.queue.read("expire", Command::new("PEXPIRE").arg(self.target()).number(millis)).await?;
        Ok(self.queue.shape("expire", reply.into_int())? > 0)
    }

    fn target(&self) -> bytes::Bytes {
        self.queue.keys.target().clone()
    }

    /// Whoever takes from a queue also sees to it that it moves.
    fn keep_moving(&self, lists: &[Keys]) {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        for keys in lists {
            if !watches.contains_key(keys) {
                watches.insert(keys.clone(), self.queue.engine.watch(keys));
            }
        }
    }
}
