//! `Client`: the connections and the background tasks behind all queues of one server.

mod builder;

use std::fmt;
use std::sync::Arc;

use crate::blocking_queue::BlockingQueue;
use crate::codec::Codec;
use crate::delayed_queue::DelayedQueue;
use crate::engine::Engine;
use crate::error::Result;
use crate::queue::Queue;
use crate::telemetry::ClientStats;
use crate::wire::entry::EntryFormat;
pub use builder::Builder;

/// A connection to one Redis server and to the queues on it. Cloning is cheap; all clones share the connections.
///
/// It holds one connection for commands, one for announcements as soon as a queue is watched, and one for blocking
/// pops as soon as somebody waits (another when takers wait on more than 64 lists, one while somebody waits at the tail
/// of a list, and one for each pair of lists between which somebody waits to move). It reconnects by itself, for ever.
///
/// # Shutting down
/// [`Client::shutdown`] ends everything in order and waits for it. [`Client::stop_taking`] before that lets a service
/// finish what it has taken while it can still offer. Dropping the last clone, and all queues made from
/// it, starts the same and does not wait: payloads that were popped but not read are then given back only as long as
/// the Tokio runtime runs.
#[derive(Clone)]
pub struct Client(Arc<Engine>);

impl Client {
    /// Connects with the default options.
    ///
    /// `url` is `redis://[user:password@]host[:port][/database]`, `rediss://…` (TLS, feature `tls`) or
    /// `redis+unix://[user:password@]/path/to/socket[?db=N]`; user and password percent-encoded.
    ///
    /// # Errors
    /// As [`Builder::connect`].
    ///
    /// # Cancel safety
    /// Cancel safe: a connection half made is closed.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example() -> redelay::Result<()> {
    /// let client = redelay::Client::connect("redis://localhost").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect(url: &str) -> Result<Self> {
        Self::builder().url(url).connect().await
    }

    /// Starts from the default options.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::Client;
    /// # async fn example() -> redelay::Result<()> {
    /// let client = Client::builder().url("redis://localhost/2").client_name("billing").connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The list that takers read: Redisson's `getBlockingQueue(name, codec)`. No command is sent.
    ///
    /// Any name works on a single server, as it does in Redisson.
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
    pub fn blocking_queue<T: 'static>(&self, name: &str, codec: impl Codec<T>) -> BlockingQueue<T> {
        BlockingQueue::new(Queue::new(self.0.clone(), name, Arc::new(codec)))
    }

    /// The delayed queue in front of a blocking queue: Redisson's `getDelayedQueue(destinationQueue)`.
    ///
    /// From now on, for as long as the handle or a clone lives, this client moves what becomes due (unless it was
    /// built with [`Builder::transfer`]`(false)`). It belongs to the client that `target` was made with.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let ready = client.blocking_queue::<String>("orders", codec::String);
    /// let delayed = client.delayed_queue(&ready);
    /// delayed.offer(&"order 1".to_owned(), Duration::from_secs(30)).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn delayed_queue<T: 'static>(&self, target: &BlockingQueue<T>) -> DelayedQueue<T> {
        DelayedQueue::new(target.queue().clone(), EntryFormat::Current)
    }

    /// What this client has done so far, and how it is now. Cheap: nothing is asked of the server.
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
        self.0.conn.counters().stats(self.0.conn.is_connected())
    }

    /// Stops taking, as the first of two phases of a shutdown: the service finishes the payloads that it has, and gets no
    /// more.
    ///
    /// Waiting takers end with [`ErrorKind::Closed`](crate::ErrorKind::Closed), streams end, and every later take or poll
    /// of a [`BlockingQueue`] gets `Closed`. Payloads that were popped and that no taker has read go back to their lists.
    /// Everything else works as before: offers, the delayed queue with its `poll`, transfers, reads and removals.
    ///
    /// It waits until the payloads are back in their lists, for about the command timeout at most. If the server is down
    /// for longer, the client returns them in the background until [`Client::shutdown`] ends it. There is no way back:
    /// connect a new client to take again. Calling it again waits for the same end. It applies to all clones of this
    /// client and all queues made from it.
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
        self.0.stop_taking().await;
    }

    /// Ends in order: waiting takers get [`ErrorKind::Closed`](crate::ErrorKind::Closed), the transfers in flight are
    /// waited for, popped payloads that nobody read go back to their lists, the connections close. A taker whose future
    /// is polled only after that gets `Closed`, too. Bounded by about twice the command timeout. Calling it again waits
    /// for the same end.
    ///
    /// # Cancel safety
    /// Cancel safe: the end goes on in the background.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let orders = client.blocking_queue("orders", codec::Long);
    /// let taker = tokio::spawn(async move {
    ///     while let Ok(order) = orders.take().await {
    ///         println!("{order}"); // Runs to its end; then `take` answers that the client is closed.
    ///     }
    /// });
    /// client.shutdown().await;
    /// taker.await.expect("a taker that does not panic");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn shutdown(&self) {
        self.0.stop().await;
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("server", &self.0.conn.server()).finish_non_exhaustive()
    }
}
