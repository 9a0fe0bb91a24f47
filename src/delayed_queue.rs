//! `DelayedQueue`: payloads that are not due yet, under the names of Redisson's `RDelayedQueue`.
//!
//! `offer` stores entries, with `store` and `batcher` below it. `job` stores, finds and changes those with
//! ids, with `canceller` below it. `batch` gathers what concurrent callers send together, and `lone` is for
//! offers that have no company. `ticket` finds an entry again. `schedule` offers again and again. `inspect`
//! reads, and `remove` takes entries out before they are due. `max_pending` limits how many there are.

// In the order of the methods on the page of the type.
mod offer;

mod ticket;

mod job;

mod schedule;

mod inspect;

mod remove;

mod max_pending;

mod batch;
mod batcher;
mod canceller;
mod lone;
mod store;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

pub use crate::recurrence::{Missed, Overlap};
pub use crate::wire::entry::EntryFormat;
pub use canceller::Cancelled;
pub use job::{Job, JobOffer, JobState, Offered, PendingJob};
pub use offer::Offer;
pub(crate) use offer::PlaceOf;
pub use schedule::{Schedule, Schedules, StoredSchedule};
pub use ticket::Ticket;

use crate::codec::Codec;
use crate::queue::{KeyNames, Queue};
use crate::transfer::Watch;
use batcher::Batcher;
use canceller::Canceller;

/// Payloads that become ready later: Redisson's `RDelayedQueue<T>`.
/// [`Client::delayed_queue`](crate::Client::delayed_queue) makes one. Cloning is cheap.
///
/// When a payload is due, it moves to the blocking queue behind the delayed queue, where takers find it.
/// While the handle or a clone lives, this client transfers due entries. So does every other client, and
/// every Redisson, that has its own handle. The server's clock decides what is due, so the clocks of
/// producers need not agree.
///
/// After [`Client::shutdown`](crate::Client::shutdown), every method that needs the server returns
/// [`Closed`](crate::ErrorKind::Closed).
///
/// # Examples
/// ```no_run
/// use std::time::Duration;
///
/// # async fn example(client: redelay::Client) -> redelay::Result<()> {
/// let orders = client.blocking_queue::<String>("orders", redelay::codec::Json);
/// let delayed = client.delayed_queue(&orders);
/// delayed.offer("order-17", Duration::from_secs(600)).await?;
/// println!("{} pending", delayed.len().await?);
/// # Ok(())
/// # }
/// ```
#[doc(alias = "RDelayedQueue")]
pub struct DelayedQueue<T> {
    queue: Arc<Queue>,
    codec: Arc<dyn Codec<T>>,
    format: EntryFormat,
    watch: Arc<Mutex<Option<Watch>>>,
    batcher: Batcher,
    canceller: Canceller,
}

impl<T> Clone for DelayedQueue<T> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
            codec: self.codec.clone(),
            format: self.format,
            watch: self.watch.clone(),
            batcher: self.batcher.clone(),
            canceller: self.canceller.clone(),
        }
    }
}

impl<T> fmt::Debug for DelayedQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayedQueue").field("name", &self.queue.name).finish_non_exhaustive()
    }
}

/// # Names and the end
impl<T: 'static> DelayedQueue<T> {
    pub(crate) fn queue_arc(&self) -> &Arc<Queue> {
        &self.queue
    }

    pub(crate) fn new(target: &Queue, codec: Arc<dyn Codec<T>>) -> Self {
        let queue = target.delayed();
        let watch = queue.engine.watch(&queue.keys);
        let transfer = queue.engine.transfer.clone();
        let at_stop = queue.engine.at_stop.clone();
        let batcher = Batcher::new(queue.conn.clone(), queue.keys.clone(), transfer, at_stop);
        let canceller = Canceller::new(queue.conn.clone(), queue.keys.clone());
        let watch = Arc::new(Mutex::new(watch));
        Self { queue, codec, format: EntryFormat::Current, watch, batcher, canceller }
    }

    /// Writes entries in another layout. Both layouts are always read. The legacy layout is for a fleet that
    /// still runs Redisson 3.21.0 or earlier. Defaults to [`EntryFormat::Current`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::delayed_queue::EntryFormat;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let ready = client.blocking_queue("jobs", codec::Long);
    /// // As long as a Redisson 3.21.0 reads this queue, too.
    /// let jobs = client.delayed_queue(&ready).with_entry_format(EntryFormat::Legacy);
    /// jobs.offer(&7, Duration::from_secs(60)).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_entry_format(mut self, format: EntryFormat) -> Self {
        self.format = format;
        self
    }

    /// The name of the blocking queue behind this queue, before any mapping of names.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let ready = client.blocking_queue("jobs", codec::Long);
    /// assert_eq!(client.delayed_queue(&ready).name(), "jobs"); // The name of its target.
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
    /// let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// println!("redis-cli zrange {} 0 9 withscores", jobs.keys().timeout_set);
    /// # }
    /// ```
    #[must_use]
    pub fn keys(&self) -> KeyNames {
        KeyNames::new(&self.queue.keys)
    }

    /// Stops transferring for this handle and its clones, and waits until that has stopped. Pending entries
    /// stay; other clients transfer them, and so does a blocking queue of this client that takes. Offers are
    /// still accepted. Dropping the handle and all its clones does the same without waiting.
    ///
    /// # Cancel safety
    /// Cancel safe: transferring stops anyway.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// jobs.destroy().await; // Other clients transfer what is pending,
    /// jobs.offer(&7, Duration::from_secs(60)).await?; // and what is offered from now on.
    /// # Ok(())
    /// # }
    /// ```
    pub async fn destroy(&self) {
        let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(watch) = watch {
            self.queue.engine.wait(watch.close()).await;
        }
    }
}
