//! `BlockingQueue`: the list that takers read, under the names of Redisson's `RBlockingQueue`.
//!
//! This file has the methods that put. `take`, `take_any` and `take_and_move` take, `stream` takes as a stream,
//! `inspect` reads, `remove` removes payloads without reading them, and `unconfirmed_pops` has what dead processes had popped.

mod inspect;
mod limits;
mod remove;
mod stream;
mod take;
mod take_and_move;
mod take_any;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

pub use crate::queue::{AsValue, QueueKeys};
pub use limits::RateLimit;
pub use stream::PayloadStream;

use crate::codec::Codec;
use crate::conn::Command;
use crate::error::Result;
use crate::pops::Lists;
use crate::queue::{Op, Queue};
use crate::telemetry::QueueCounters;
use crate::transfer::Watch;
use crate::wire::keys::Keys;

/// A list on the server from which payloads are taken: Redisson's `RBlockingQueue<T>`.
/// [`Client::blocking_queue`](crate::Client::blocking_queue) makes one. Cloning is cheap.
///
/// No method blocks the thread: methods that wait are `async`. From its first `take` until its last clone is dropped, a
/// handle also transfers due entries into this queue. (In Redisson nothing moves until some process creates an
/// `RDelayedQueue`.)
///
/// After [`Client::shutdown`](crate::Client::shutdown), every method that needs the server returns
/// [`Closed`](crate::ErrorKind::Closed).
///
/// # Taking is at-most-once
/// A taken payload exists only in the process that took it. If that process dies, the payload is lost. This includes
/// payloads that were popped for a taker that has not read them yet. A [`Worker`](crate::Worker) and a
/// [`receiver`](Self::receiver) lose nothing: they are at-least-once.
///
/// # What a lost connection can cost
/// A lost connection can cost one payload. While a taker waits, a blocking pop waits on the server. If the server
/// replies to it at the moment when the connection dies, that payload is lost: `BLPOP` works this way for every client.
///
/// Other pops lose nothing as long as this process lives. For payloads that are popped without blocking (polls, and
/// batches for several takers), the server keeps a copy until the reply has arrived: see
/// [`unconfirmed_pops`](Self::unconfirmed_pops).
#[doc(alias = "RBlockingQueue")]
#[doc(alias = "RQueue")]
#[doc(alias = "RBlockingDeque")]
pub struct BlockingQueue<T> {
    queue: Arc<Queue>,
    codec: Arc<dyn Codec<T>>,
    /// The lists that this handle and its clones take from.
    watches: Arc<Mutex<HashMap<Keys, Transferring>>>,
}

/// A list that a handle takes from, and therefore transfers to.
struct Transferring {
    /// `None` if this client does not transfer.
    _watch: Option<Watch>,
    counters: Arc<QueueCounters>,
}

impl<T> Clone for BlockingQueue<T> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), codec: self.codec.clone(), watches: self.watches.clone() }
    }
}

impl<T> fmt::Debug for BlockingQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingQueue").field("name", &self.queue.name).finish_non_exhaustive()
    }
}

impl<T: 'static> BlockingQueue<T> {
    pub(crate) fn new(queue: Arc<Queue>, codec: Arc<dyn Codec<T>>) -> Self {
        Self { queue, codec, watches: Arc::default() }
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    pub(crate) fn queue_arc(&self) -> &Arc<Queue> {
        &self.queue
    }

    pub(crate) fn codec(&self) -> &Arc<dyn Codec<T>> {
        &self.codec
    }

    /// The name that the handle was made with, before any mapping of names.
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
    #[doc(alias = "getName")]
    pub fn name(&self) -> &str {
        &self.queue.name
    }

    /// The names of this queue's keys on the server.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # fn example(client: Client) {
    /// let orders = client.blocking_queue("orders", codec::Long);
    /// println!("redis-cli llen {}", orders.keys().target);
    /// # }
    /// ```
    #[must_use]
    pub fn keys(&self) -> QueueKeys {
        QueueKeys::new(&self.queue.keys)
    }

    /// Appends a payload, which is ready at once.
    ///
    /// # Errors
    /// [`Encode`](crate::ErrorKind::Encode) or [`Invalid`](crate::ErrorKind::Invalid) (over the size limit) before
    /// anything is sent. [`Unavailable`](crate::ErrorKind::Unavailable) or [`Refused`](crate::ErrorKind::Refused) (a
    /// key of another type, a missing permission, no memory): the payload was not appended.
    /// [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when the reply was lost: the payload may have been
    /// appended, and a retry may append it again.
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

    /// Appends several payloads, up to 500,000, with one command. They are next to each other in the list. Redisson's
    /// `addAll`.
    ///
    /// # Errors
    /// As [`BlockingQueue::put`], and [`Invalid`](crate::ErrorKind::Invalid) for more than 500,000. All payloads are
    /// encoded and counted before anything is sent.
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

    fn target(&self) -> Bytes {
        self.queue.keys.target().clone()
    }

    /// A handle that takes from a queue also transfers for it.
    fn keep_moving(&self, keys: Vec<Keys>) -> Lists {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        let engine = &self.queue.engine;
        let mut counters = Vec::with_capacity(keys.len());
        for keys in &keys {
            if !watches.contains_key(keys) {
                let counters = engine.conn.counters().queue(keys);
                let transferring = Transferring { _watch: engine.watch(keys), counters };
                watches.insert(keys.clone(), transferring);
            }
            counters.push(watches[keys].counters.clone());
        }
        Lists { keys, counters }
    }
}
