//! Publishes what a client of redelay counts and measures: to the recorder of the crate `metrics`, and with
//! the feature `opentelemetry-0-33` also to OpenTelemetry's global meter. Without a recorder or a meter
//! provider, it does nothing.
//!
//! A [`Reporter`] reads the stats of a client and of its queues now and then. The names of the metrics are
//! those of the fields of [`QueueStats`] and [`ClientStats`](redelay::stats::ClientStats), with the unit
//! and `_total` where Prometheus expects them: `docs/observability.md` lists them. What Java services do
//! with a queue is not in them.
//!
//! The label `queue`, and OpenTelemetry's `messaging.destination.name`, are the name of the queue on the
//! server, after a mapping of names such as [`name_prefix`](redelay::client::ClientBuilder::name_prefix), as
//! in events, in spans and in `redelay exporter` without a `name_prefix`.

mod differences;
mod facade;
#[cfg(feature = "opentelemetry-0-33")]
mod otel;

use std::fmt;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt, join_all};
use redelay::stats::QueueStats;
use redelay::{BlockingQueue, Client};
use tokio::time::{MissedTickBehavior, interval};

type Read = Box<dyn Fn() -> BoxFuture<'static, redelay::Result<QueueStats>> + Send + Sync>;

/// Reads the stats of a client and of its queues, and publishes them.
///
/// # Examples
/// ```no_run
/// use std::time::Duration;
///
/// use redelay::{Client, codec};
/// use redelay_metrics::Reporter;
///
/// # async fn example() -> redelay::Result<()> {
/// let client = Client::connect("redis://localhost").await?;
/// let orders = client.blocking_queue::<String>("orders", codec::String);
/// tokio::spawn(Reporter::new(&client).queue(&orders).run(Duration::from_secs(15)));
/// # Ok(())
/// # }
/// ```
pub struct Reporter {
    client: Client,
    queues: Vec<Queue>,
    #[cfg(feature = "opentelemetry-0-33")]
    meter: otel::Meter,
}

struct Queue {
    /// On the server.
    name: String,
    read: Read,
    /// What was published of it.
    last: QueueStats,
}

impl Reporter {
    /// Returns a reporter of this client's own counters.
    #[must_use]
    pub fn new(client: &Client) -> Self {
        Self {
            client: client.clone(),
            queues: Vec::new(),
            #[cfg(feature = "opentelemetry-0-33")]
            meter: otel::Meter::new(),
        }
    }

    /// Also reports this queue: what is in it, and what this client has done with it. Each report reads its
    /// stats with one script. As long as the reporter exists, so do the counters of the queue.
    #[must_use]
    pub fn queue<T: Send + 'static>(mut self, queue: &BlockingQueue<T>) -> Self {
        let name = queue.keys().target;
        let queue = queue.clone();
        let read: Read = Box::new(move || {
            let queue = queue.clone();
            async move { queue.stats().await }.boxed()
        });
        self.queues.push(Queue { name, read, last: QueueStats::default() });
        self
    }

    /// Reports at once, and then in this interval, without an end: drop the future, or abort its task. A
    /// [`report`](Self::report) that fails does not end it.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn run(mut self, every: Duration) {
        let mut ticks = interval(every.max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // The next report makes up for what is left out.
            let _ = self.report().await;
        }
    }

    /// Reports once. A queue whose stats cannot be read is left out until they can be; nothing that was
    /// counted meanwhile is missing then.
    ///
    /// # Errors
    /// The first error of those of [`BlockingQueue::stats`], in the order of the queues. The client's own
    /// counters and all other queues are published before it is returned.
    ///
    /// # Cancel safety
    /// Cancel safe: the next report makes up for it.
    pub async fn report(&mut self) -> redelay::Result<()> {
        let stats = join_all(self.queues.iter().map(|queue| (queue.read)())).await;
        facade::client(&self.client.stats());
        let mut reported = Ok(());
        for (queue, stats) in self.queues.iter_mut().zip(stats) {
            match stats {
                Ok(stats) => {
                    facade::queue(&queue.name, &queue.last, &stats);
                    #[cfg(feature = "opentelemetry-0-33")]
                    self.meter.queue(&queue.name, &queue.last, &stats);
                    queue.last = stats;
                }
                Err(error) => reported = reported.and(Err(error)),
            }
        }
        reported
    }
}

impl fmt::Debug for Reporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.queues.iter().map(|queue| &queue.name).collect();
        f.debug_struct("Reporter")
            .field("client", &self.client)
            .field("queues", &names)
            .finish_non_exhaustive()
    }
}
