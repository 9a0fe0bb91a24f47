//! `Client`: the connections and the background tasks behind all queues of one server.

mod builder;
mod config;
#[cfg(feature = "tls")]
mod tls;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::admin::Pump;
use crate::blocking_queue::BlockingQueue;
use crate::codec::Codec;
use crate::conn::Conn;
use crate::delayed_queue::DelayedQueue;
use crate::engine::Engine;
use crate::error::Result;
use crate::inspector::Inspector;
use crate::partitioned_queue::PartitionedQueue;
use crate::queue::Queue;
use crate::telemetry::{ClientStats, Health};
pub use builder::ClientBuilder;
pub use config::{ClientConfig, ReplicasConfig, TlsConfig};
#[cfg(feature = "tls")]
pub use tls::Tls;

/// A client of one Redis server, of the master that sentinels name, or of a cluster. It makes the handles of
/// its queues. Cloning is cheap. All clones share the connections.
///
/// # Connections
/// A client opens one connection for commands; one for announcements, with the first queue that it transfers
/// or receives from; one for takers, while they wait; and one for each queue, up to 64, on which receivers
/// wait. `docs/scaling.md` has the others, and those of Sentinel and a cluster.
///
/// The client restores lost connections automatically, however long that takes. It belongs to the Tokio
/// runtime in which it was connected, and ends with it: a test needs a client in each runtime.
///
/// # Shutting down
/// A service ends in two phases. [`Client::stop_taking`] ends the takers, receivers and workers; handlers
/// that are still running can use the client. [`Client::shutdown`] ends everything else, and waits until that
/// is done. (A service that has only workers needs no `stop_taking`: they end on a signal.)
///
/// Dropping the last clone, and all handles made from it, starts a shutdown without waiting for it. Popped
/// payloads that no taker has read then return to their lists only as long as the Tokio runtime runs.
///
/// # Examples
/// ```no_run
/// # async fn example() -> redelay::Result<()> {
/// use std::time::Duration;
///
/// use redelay::{Client, codec};
///
/// let client = Client::connect("redis://127.0.0.1").await?;
/// let orders = client.blocking_queue::<String>("orders", codec::Json);
/// client.delayed_queue(&orders).offer("coffee", Duration::from_secs(30)).await?;
/// println!("{}", orders.take().await?); // 30 s later
///
/// client.shutdown().await; // at the end of the service
/// # Ok(())
/// # }
/// ```
#[doc(alias = "RedissonClient")]
#[doc(alias = "Redisson")]
#[derive(Clone)]
pub struct Client {
    engine: Arc<Engine>,
    /// Its command timeout may differ from the engine's.
    conn: Conn,
}

/// # Connect
impl Client {
    /// Connects with the default options.
    ///
    /// `url` has one of these forms:
    ///
    /// | form | connects to |
    /// |---|---|
    /// | `redis://[user:password@]host[:port][/database]` | a server; the port is 6379 by default |
    /// | `redis+unix://[user:password@]/path/to/socket[?db=N]` | a server on this machine |
    /// | `redis-sentinel://[user:password@]host[:port][,host[:port]...]/master[/database]` | the master of this name, which the sentinels name; their port is 26379 by default |
    /// | `redis-cluster://[user:password@]host[:port][,host[:port]...]` | a cluster, any of whose servers are named; their port is 6379 by default |
    ///
    /// `rediss://`, `rediss-sentinel://` and `rediss-cluster://` use TLS and need the feature `tls`. `valkey`
    /// may be written instead of `redis` in all of them. User, password and the name of the master are
    /// percent-encoded.
    ///
    /// A queue of a cluster is on the master that has its slot. The client asks the servers for all others,
    /// follows failovers and slots that move, and never reads from replicas. All keys of a queue must have
    /// one slot. They do unless the name has unusual braces; calls for such names are refused.
    ///
    /// The user and password of a sentinel URL are those of the servers; for those of the sentinels, see
    /// [`ClientBuilder::sentinel_credentials`]. One sentinel is enough, because the client asks it for the
    /// others. A URL with several connects even if one of them is down. The client follows the sentinels:
    /// whenever they name another master, all of its connections go there.
    ///
    /// # Errors
    /// As [`ClientBuilder::connect`].
    ///
    /// # Cancel safety
    /// Cancel safe: an unfinished connection is closed.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example() -> redelay::Result<()> {
    /// let client = redelay::Client::connect("redis://localhost").await?;
    /// # Ok(())
    /// # }
    /// ```
    /// The master `orders` of three sentinels:
    /// ```no_run
    /// # async fn example() -> redelay::Result<()> {
    /// let url = "redis-sentinel://billing:p%40ss@sentinel-1,sentinel-2,sentinel-3:26380/orders";
    /// let client = redelay::Client::connect(url).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "create")]
    pub async fn connect(url: &str) -> Result<Self> {
        Self::builder().url(url).connect().await
    }

    /// Returns a builder with the default options.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::Client;
    /// # async fn example() -> redelay::Result<()> {
    /// let client = Client::builder().url("redis://localhost/2").client_name("billing").connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "Config")]
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Returns the same client with another command timeout, for a part of the program that must answer
    /// sooner or can wait longer. Handles made from it inherit the timeout. Connections, background tasks and
    /// stats are shared.
    ///
    /// The timeout bounds commands, including the wait for a connection and retries. A timeout below 1 ms
    /// counts as 1 ms, one above a year as a year. These waits differ:
    ///
    /// * If the server is silent, a poll of either queue ends after twice the timeout.
    /// * A `poll_many` of more than 1,000 ready payloads collects them until the timeout of the builder is
    ///   over, if that is longer.
    /// * `take` waits without limit.
    /// * Receives, and what settles a delivery, have the timeout of the builder: one task makes the calls of
    ///   all receivers of a queue.
    /// * A connection on which the server is silent is replaced after the
    ///   [`command_timeout`](ClientBuilder::command_timeout) of the builder, regardless of this timeout.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let quick = client.with_timeout(Duration::from_millis(200));
    /// let orders = quick.blocking_queue("orders", codec::Long);
    /// println!("{} ready", orders.len().await?); // Fails after 200 ms without a reply.
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self { engine: self.engine.clone(), conn: self.conn.with_timeout(timeout) }
    }
}

/// # Queues
impl Client {
    /// Returns a handle for the list that takers read: Redisson's `getBlockingQueue(name, codec)`. No command
    /// is sent.
    ///
    /// Every name works on a single server, as in Redisson. In a cluster, calls are refused if the braces of
    /// the name put its keys into several slots: `a{b` does, while `q`, `{shop}q` and `q{shop}` do not. The
    /// codec decides the type of the values. All clients of a queue must use the same codec; this is not
    /// checked.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let orders = client.blocking_queue::<String>("orders", codec::String);
    /// let order = orders.take().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[doc(alias = "getBlockingQueue")]
    #[doc(alias = "getBlockingDeque")]
    #[doc(alias = "getQueue")]
    pub fn blocking_queue<T: 'static>(&self, name: &str, codec: impl Codec<T>) -> BlockingQueue<T> {
        BlockingQueue::new(self.queue(name), Arc::new(codec))
    }

    fn queue(&self, name: &str) -> Arc<Queue> {
        Queue::blocking(self.engine.clone(), self.conn.clone(), name)
    }

    /// Opens one logical queue over several ordinary queues, its partitions: `orders#0`, `orders#1` and so
    /// on. The first client records how many there are.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) if `partitions` is below 2 or above 1,024, or not the number
    /// that the queue has, or if the name has braces; and what every command may return, as
    /// [`BlockingQueue::len`].
    ///
    /// # Cancel safety
    /// Cancel safe: the number may be recorded.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let orders = client.partitioned_queue("orders", 16, codec::Long).await?;
    /// orders.offer(&17, Duration::from_secs(30)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn partitioned_queue<T: 'static>(
        &self,
        name: &str,
        partitions: usize,
        codec: impl Codec<T>,
    ) -> Result<PartitionedQueue<T>> {
        PartitionedQueue::open(|name| self.queue(name), name, partitions, Arc::new(codec)).await
    }

    /// Returns a handle for the delayed queue in front of a blocking queue: Redisson's
    /// `getDelayedQueue(destinationQueue)`. No command is sent.
    ///
    /// While the handle or a clone exists, this client transfers due entries, unless it was built with
    /// [`ClientBuilder::transfer`]`(false)`. The handle belongs to the client that `target` was made with.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let ready = client.blocking_queue::<String>("orders", codec::String);
    /// let delayed = client.delayed_queue(&ready);
    /// delayed.offer("order 1", Duration::from_secs(30)).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[doc(alias = "getDelayedQueue")]
    pub fn delayed_queue<T: 'static>(&self, target: &BlockingQueue<T>) -> DelayedQueue<T> {
        DelayedQueue::new(target.queue(), target.codec().clone())
    }
}

/// # Look
impl Client {
    /// Returns an [`Inspector`], which looks into any queue of the server with commands that only read. No
    /// command is sent.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(client: redelay::Client) -> redelay::Result<()> {
    /// let next = client.inspector().pending("orders", None, 1).await?;
    /// println!("the next one is due at {:?}", next.first().map(|entry| entry.due));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn inspector(&self) -> Inspector {
        Inspector::new(self.engine.clone(), self.conn.clone())
    }

    /// Returns a [`Pump`], which transfers for the queue of this name while it exists. It is the name on the
    /// server, as the inspector finds it: not mapped, and not necessarily text. No command is sent.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(client: redelay::Client) {
    /// let orders = client.pump("orders"); // Due entries of this queue move, whichever clients offer and take.
    /// # drop(orders);
    /// # }
    /// ```
    #[must_use]
    pub fn pump(&self, name: impl AsRef<[u8]>) -> Pump {
        Pump::new(self.engine.clone(), &self.conn, name.as_ref())
    }

    /// Returns counters and gauges of this client. Cheap: it sends nothing to the server.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::Client;
    /// # fn example(client: &Client) {
    /// let stats = client.stats();
    /// println!("transferred {} payloads in {} calls, {} calls failed", stats.transferred, stats.transfers, stats.failed_transfers);
    /// # }
    /// ```
    #[must_use]
    pub fn stats(&self) -> ClientStats {
        ClientStats { masters: self.conn.masters(), ..self.conn.counters().stats(self.conn.is_connected()) }
    }

    /// Returns whether this client works, for the probes of an orchestrator. Cheap: it sends nothing to the
    /// server. `docs/deployment.md` has a program that answers such probes.
    ///
    /// # Examples
    /// ```no_run
    /// # fn example(client: &redelay::Client) {
    /// let health = client.health();
    /// println!("connected: {}; overdue for {:?}", health.connected, health.overdue_for);
    /// # }
    /// ```
    #[must_use]
    pub fn health(&self) -> Health {
        self.conn.counters().health(self.conn.is_connected(), self.conn.silent_for())
    }
}

/// # End
impl Client {
    /// Stops taking, as the first of two phases of a shutdown: the service finishes the payloads that it has,
    /// and gets no more.
    ///
    /// Waiting takers end with [`ErrorKind::Closed`](crate::ErrorKind::Closed), streams end, and every later
    /// take or poll of a [`BlockingQueue`] gets `Closed`. Payloads that were popped and that no taker has
    /// read go back to their lists. Everything else works as before: offers, the delayed queue with its
    /// `poll`, transfers, reads and removals.
    ///
    /// Receives end with `Closed`, too, and messages that no receiver has read go back. Deliveries in hand
    /// are still extended, and can be settled. Each [`Worker`](crate::Worker) stops as after a signal: its
    /// handlers get the [grace](crate::Worker::grace).
    ///
    /// It waits until the payloads are back in their lists, but not without limit: `docs/guarantees.md` has
    /// the time. If the server is down for longer, the client returns them in the background until
    /// [`Client::shutdown`] ends it. This cannot be undone: connect a new client to take again. Calling it
    /// again waits for the same end. It applies to all clones of this client and all queues made from it.
    ///
    /// # Errors
    /// It cannot fail.
    ///
    /// # Cancel safety
    /// Cancel safe: the client stops taking in the background.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let orders = client.blocking_queue("orders", codec::Long);
    /// let retries = client.delayed_queue(&orders);
    /// let worker = tokio::spawn(async move {
    ///     while let Ok(order) = orders.take().await {
    ///         // An order that was taken before the stop can still be offered again.
    ///         retries.offer(&order, Duration::from_secs(60)).await?;
    ///     }
    ///     redelay::Result::Ok(())
    /// });
    /// client.stop_taking().await; // No new orders.
    /// worker.await.expect("a worker that does not panic")?; // It finishes the order that it has.
    /// client.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn stop_taking(&self) {
        self.engine.stop_taking().await;
    }

    /// Shuts the client down, and waits until that is done, but not without limit: `docs/guarantees.md` has
    /// the time.
    ///
    /// 1. Waiting takers and receives end with [`Closed`](crate::ErrorKind::Closed). From now on, every
    ///    method that needs the server returns `Closed`, including a `take` whose future is polled later.
    /// 2. Transfers in flight finish.
    /// 3. Popped payloads that no taker has read return to their lists. If the server cannot be reached, they
    ///    are lost.
    /// 4. Settlements that have begun finish, for up to the command timeout. All other deliveries can no
    ///    longer be settled: their messages are delivered again when their leases end.
    /// 5. The connections close.
    ///
    /// Call [`Client::stop_taking`] first if handlers are still running: after `shutdown`, they cannot offer
    /// a retry. A second call of `shutdown` waits for the end of the first.
    ///
    /// # Cancel safety
    /// Cancel safe: the shutdown continues in the background.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let orders = client.blocking_queue("orders", codec::Long);
    /// let worker = tokio::spawn(async move {
    ///     while let Ok(order) = orders.take().await {
    ///         println!("{order}"); // Not interrupted. Then `take` returns `Closed`.
    ///     }
    /// });
    /// client.stop_taking().await;
    /// worker.await.expect("the worker does not panic");
    /// client.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn shutdown(&self) {
        self.engine.stop().await;
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("server", &self.conn.server()).finish_non_exhaustive()
    }
}
