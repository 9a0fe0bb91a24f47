//! `Pump`: transfers for a queue of any name, without its codec.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::conn::Conn;
use crate::engine::Engine;
use crate::error::Result;
use crate::queue::Queue;
use crate::telemetry::{LastError, PumpStats};
use crate::transfer::{self, Watch};

/// Transfers the due entries of one queue while it exists, beside other clients and Redisson.
/// [`Client::pump`](crate::Client::pump) makes one.
///
/// A [`DelayedQueue`](crate::DelayedQueue) transfers, too. A pump needs no codec, and takes any name that
/// [`Inspector::queues`](crate::inspector::Inspector::queues) finds. Payloads are moved as they are. Entries
/// that cannot be read go to the quarantine. The server's clock decides what is due.
///
/// The names `{orders}` and `orders` share their pending entries. If Java's name is `{orders}`, give that
/// name, or the payloads go to the list `orders`.
///
/// In a client that was built with
/// [`ClientBuilder::transfer`](crate::client::ClientBuilder::transfer)`(false)`, only
/// [`transfer`](Self::transfer) moves something.
///
/// # Examples
/// ```no_run
/// use futures::TryStreamExt;
///
/// # async fn example(client: redelay::Client) -> redelay::Result<()> {
/// let names: Vec<_> = client.inspector().queues("shop:*").try_collect().await?;
/// let pumps: Vec<_> = names.iter().map(|name| client.pump(name)).collect();
/// # Ok(())
/// # }
/// ```
pub struct Pump {
    queue: Arc<Queue>,
    _watch: Option<Watch>,
}

impl Pump {
    pub(crate) fn new(engine: Arc<Engine>, conn: &Conn, name: &[u8]) -> Self {
        let queue = Queue::on_server(engine, conn, name);
        let watch = queue.engine.watch(&queue.keys);
        Self { queue, _watch: watch }
    }

    /// Transfers all entries that are due now, and returns how many that were. It is not needed for what the
    /// pump does by itself.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable); [`Refused`](crate::ErrorKind::Refused) without a
    /// permission, or if a key has another type; [`Invalid`](crate::ErrorKind::Invalid) if a cluster cannot
    /// hold the queue; and [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) after a lost reply, or if
    /// others were transferred before the error, which says how many. Calling it again is harmless.
    ///
    /// # Cancel safety
    /// Cancel safe: what was transferred stays so. [`stats`](Self::stats) has the counts.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(client: redelay::Client) -> redelay::Result<()> {
    /// let orders = client.pump("orders");
    /// println!("{} were due", orders.transfer().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn transfer(&self) -> Result<u64> {
        let op = self.queue.op("transfer");
        op.ensure_open()?;
        let Queue { engine, conn, keys, counters, .. } = &*self.queue;
        let mut transferred = 0;
        transfer::all_due(conn, keys, counters, &engine.transfer_settings, &mut transferred)
            .await
            .map_err(|error| op.failed(error).after_parts(transferred, "entries were transferred"))?;
        Ok(transferred as u64)
    }

    /// Returns what this client has transferred for the queue, and whether its last transfer failed. It sends
    /// nothing to the server. The counts begin with the first handle of this client for the queue.
    ///
    /// # Examples
    /// ```no_run
    /// # fn example(orders: redelay::admin::Pump) {
    /// if let Some(failure) = orders.stats().failure {
    ///     println!("nothing is transferred: {}", failure.message);
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn stats(&self) -> PumpStats {
        let stats = self.queue.counters.pumped();
        match self.queue.op("transfer").ensure_whole() {
            Ok(()) => stats,
            Err(error) => PumpStats {
                failure: Some(LastError { message: error.to_string(), ago: Duration::ZERO }),
                ..stats
            },
        }
    }
}

impl fmt::Debug for Pump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pump").field("queue", &self.queue.name).finish_non_exhaustive()
    }
}
