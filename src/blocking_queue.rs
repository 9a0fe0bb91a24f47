//! `BlockingQueue`: the list that takers read, under the names of Redisson's `RBlockingQueue`.
//!
//! `put` appends. `take`, `take_any` and `take_and_move` take, `stream` takes as a stream, `inspect` reads,
//! `remove` removes payloads without reading them, and `unconfirmed_pops` has what dead processes had popped.

// In the order of the methods on the page of the type.
mod put;

mod take;

mod stream;

mod take_any;

mod take_and_move;

mod inspect;

mod remove;

mod limits;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

pub use crate::queue::{AsValue, KeyNames};
pub use limits::RateLimit;
pub use stream::PayloadStream;

use crate::codec::Codec;
use crate::queue::Queue;
use crate::telemetry::QueueCounters;
use crate::transfer::Watch;
use crate::wire::keys::{Keys, MapByKeys};

/// A list on the server from which payloads are taken: Redisson's `RBlockingQueue<T>`.
/// [`Client::blocking_queue`](crate::Client::blocking_queue) makes one. Cloning is cheap.
///
/// No method blocks the thread: methods that wait are `async`. From its first `take` until its last clone is
/// dropped, a handle also transfers due entries into this queue. (In Redisson nothing moves until some
/// process creates an `RDelayedQueue`.)
///
/// After [`Client::shutdown`](crate::Client::shutdown), every method that needs the server returns
/// [`Closed`](crate::ErrorKind::Closed).
///
/// # Taking is at-most-once
/// A taken payload exists only in the process that took it. If that process dies, the payload is lost. This
/// includes payloads that were popped for a taker that has not read them yet. A [`Worker`](crate::Worker) and
/// a [`receiver`](Self::receiver) lose nothing: they are at-least-once.
///
/// # What a lost connection can cost
/// A lost connection can cost one payload. While a taker waits, a blocking pop waits on the server. If the
/// server replies to it at the moment when the connection dies, that payload is lost: `BLPOP` works this way
/// for every client.
///
/// Other pops lose nothing as long as this process lives. For payloads that are popped without blocking
/// (polls, and batches for several takers), the server keeps a copy until the reply has arrived: see
/// [`unconfirmed_pops`](Self::unconfirmed_pops).
///
/// # Examples
/// ```no_run
/// use std::time::Duration;
///
/// use redelay::{Client, codec};
///
/// # async fn example() -> redelay::Result<()> {
/// let client = Client::connect("redis://127.0.0.1").await?;
/// let orders = client.blocking_queue("orders", codec::Json);
/// orders.put("order-17").await?;
/// if let Some(order) = orders.poll_timeout(Duration::from_secs(10)).await? {
///     let order: String = order;
///     println!("took {order}");
/// }
/// # Ok(())
/// # }
/// ```
#[doc(alias = "RBlockingQueue")]
#[doc(alias = "RQueue")]
#[doc(alias = "RBlockingDeque")]
pub struct BlockingQueue<T> {
    queue: Arc<Queue>,
    codec: Arc<dyn Codec<T>>,
    /// The lists that this handle and its clones take from.
    watches: Arc<Mutex<MapByKeys<Transferring>>>,
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

/// # Names
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
    pub fn keys(&self) -> KeyNames {
        KeyNames::new(&self.queue.keys)
    }

    fn target(&self) -> Bytes {
        self.queue.keys.target().clone()
    }

    /// A handle that takes from a queue also transfers for it. Returns the counters of these queues.
    fn keep_moving(&self, keys: &[Keys]) -> Vec<Arc<QueueCounters>> {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        let engine = &self.queue.engine;
        let counters = keys.iter().map(|keys| match watches.get(keys) {
            Some(transferring) => transferring.counters.clone(),
            None => {
                let counters = engine.conn.counters().queue(keys);
                let transferring = Transferring { _watch: engine.watch(keys), counters: counters.clone() };
                watches.insert(keys.clone(), transferring);
                counters
            }
        });
        counters.collect()
    }
}
