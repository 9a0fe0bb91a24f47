//! `BlockingQueue`: the list that takers read, under the names of Redisson's `RBlockingQueue`.
//!
//! Here is putting. What takes is in `take.rs`, `take_any.rs` and `take_and_move.rs`, the stream in
//! `stream.rs`; looking at what is ready is in `reading.rs`, and what removes it unread in `removal.rs`.

mod reading;
mod removal;
mod stream;
mod take;
mod take_and_move;
mod take_any;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

pub use stream::PayloadStream;

use crate::conn::Command;
use crate::error::Result;
use crate::pops::Lists;
use crate::queue::Queue;
use crate::telemetry::QueueCounters;
use crate::transfer::Watch;
use crate::wire::keys::Keys;

/// A list on the server from which payloads are taken: Redisson's `RBlockingQueue<T>`. Made by
/// [`Client::blocking_queue`](crate::Client::blocking_queue); cloning is cheap.
///
/// A handle that takes also keeps the delayed queue in front of it moving, from its first take until it is
/// dropped with all its clones. (In Redisson nothing moves until somewhere an `RDelayedQueue` is made.)
///
/// After [`Client::shutdown`](crate::Client::shutdown), whatever asks the server ends with
/// [`Closed`](crate::ErrorKind::Closed).
///
/// # What a lost connection can cost
/// While somebody waits, a blocking pop is parked on the server. When the server answers it in the very
/// moment in which its connection dies, that one payload is gone: this is how `BLPOP` works, for every
/// client. So per death of that connection at most one payload is lost. Whatever is popped without blocking
/// (polls, drains, and the payloads for several takers at once) is remembered by the server until its reply
/// has arrived, for an hour at most, and is not lost as long as this process lives. What it holds when it is
/// killed is gone with it, as with every pop.
pub struct BlockingQueue<T> {
    queue: Queue<T>,
    /// Kept for as long as a handle takes, shared by its clones.
    watches: Arc<Mutex<HashMap<Keys, Taken>>>,
}

/// A list that a handle takes from.
struct Taken {
    /// None if this client does not move.
    _watch: Option<Watch>,
    counters: Arc<QueueCounters>,
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
    /// [`Encode`](crate::ErrorKind::Encode) or [`Invalid`](crate::ErrorKind::Invalid) (over the size limit)
    /// before anything is sent. [`Unavailable`](crate::ErrorKind::Unavailable) or
    /// [`Refused`](crate::ErrorKind::Refused) (a key of another type, missing rights, no memory): it is not
    /// there. [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when the reply was lost: then it may be
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
    /// Not cancel safe: when the future is dropped, the payload may or may not be appended.
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

    /// Appends several payloads, up to 500,000, with one command, next to each other. Redisson's `addAll`.
    ///
    /// # Errors
    /// As [`BlockingQueue::put`], and [`Invalid`](crate::ErrorKind::Invalid) for more than 500,000; all are
    /// encoded and counted before anything is sent.
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, either all are appended or none.
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

    fn target(&self) -> bytes::Bytes {
        self.queue.keys.target().clone()
    }

    /// Whoever takes from a queue also sees to it that it moves.
    fn keep_moving(&self, keys: Vec<Keys>) -> Lists {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        let engine = &self.queue.engine;
        let mut counters = Vec::with_capacity(keys.len());
        for keys in &keys {
            if !watches.contains_key(keys) {
                let counters = engine.conn.counters().queue(keys);
                watches.insert(keys.clone(), Taken { _watch: engine.watch(keys), counters });
            }
            counters.push(watches[keys].counters.clone());
        }
        Lists { keys, counters }
    }
}
