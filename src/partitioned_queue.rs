//! `PartitionedQueue`: one logical queue over several ordinary ones.

mod by_id;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use futures::future::{join_all, try_join_all};

use crate::blocking_queue::AsValue;
use crate::codec::Codec;
use crate::conn::{Command, OpError};
use crate::delayed_queue::{Job, JobOffer, Offer, Offered, PlaceOf, Schedule, Ticket};
use crate::error::{Error, Result};
use crate::queue::Queue;
use crate::telemetry::QueueStats;
use crate::{BlockingQueue, DelayedQueue, Worker};

/// The most partitions of a queue. Each has separate connections and calls.
const MOST: usize = 1024;
/// How many payloads go to the same partition in turn. Those that are offered at the same time share a call.
const RUN: usize = 16;

/// One logical queue over several ordinary queues, its *partitions*: for more messages than one server
/// handles, spread over the masters of a cluster; or for very many pending entries with mixed delays, so that
/// each transfer searches only a part of them. `docs/scaling.md` says when that is worth it.
///
/// The partitions of `orders` are the queues `orders#0`, `orders#1` and so on. Each is an ordinary queue of
/// Redisson, so Java services open them by these names. Payloads are spread over them round-robin, in blocks
/// of sixteen, or by a key. Payloads with the same key go to the same partition, and keep their order. There
/// is no order between partitions.
///
/// Jobs by id and schedules are in the partition of their id or name.
///
/// # What is done for each partition
/// | not here | instead |
/// |---|---|
/// | `receiver`, `into_stream` | merge those of the partitions: `futures::stream::select_all(orders.queues().map(\|queue\| queue.receiver().into_stream()))` |
/// | `len`, `is_empty` | [`stats`](Self::stats) has the sums |
/// | `poll`, `take_last`, `poll_last`, `poll_last_timeout` | [`poll_timeout`](Self::poll_timeout) of zero; there is no order between partitions, and so no tail |
/// | `max_in_flight`, `set_max_in_flight`, `rate_limit`, `set_rate_limit`, `max_pending`, `set_max_pending` | a limit holds for one partition, because no server sees all of them: divide it by their number |
/// | `is_paused` | the field of [`stats`](Self::stats) |
/// | `poll_many`, `poll_from_any` and their variants | [`poll_timeout`](Self::poll_timeout), by several tasks: they share calls |
/// | `dead_letters`, `unsettled`, `unconfirmed_pops`, `quarantine`, `schedules`, `release_all`, `clear`, `delete`, `contains`, and all other methods of both handles | call it for each of [`queues`](Self::queues) or [`delayed_queues`](Self::delayed_queues) |
///
/// While a master of a cluster is down, calls that concern its partitions fail as those of an ordinary queue
/// do: an offer is not sent to another partition, and [`stats`](Self::stats), which needs all of them, fails.
///
/// # Number of partitions
/// It is fixed, because a key would lead to another partition if it changed. The first client records it, and
/// other clients are refused if they ask for another number. With fewer than 16 partitions, some masters may
/// have none, or many more than others. To change it, drain the queue and stop all clients: `docs/recipes.md`
/// has the steps.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # use redelay::{Client, codec};
/// # async fn example() -> redelay::Result<()> {
/// let client = Client::connect("redis-cluster://redis-1,redis-2,redis-3").await?;
/// let orders = client.partitioned_queue("orders", 16, codec::Long).await?;
/// orders.offer(&17, Duration::from_secs(30)).await?;
/// orders.offer(&18, Duration::from_secs(30)).id("order-18").replace().await?;
/// orders.worker().concurrency(64).run(|order: i64| async move { println!("{order}") }).await?;
/// # Ok(())
/// # }
/// ```
pub struct PartitionedQueue<T> {
    name: Arc<str>,
    partitions: Arc<[Partition<T>]>,
    turns: Arc<Turns>,
    place_of: PlaceOf,
}

/// Counts what is spread round-robin. Each begins anywhere, or handles that are soon dropped would use the
/// first partitions only.
struct Turns {
    puts: AtomicUsize,
    offers: AtomicUsize,
    polls: AtomicUsize,
}

#[derive(Debug)]
struct Partition<T> {
    ready: BlockingQueue<T>,
    delayed: DelayedQueue<T>,
}

impl<T> Clone for PartitionedQueue<T> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            partitions: self.partitions.clone(),
            turns: self.turns.clone(),
            place_of: self.place_of.clone(),
        }
    }
}

impl<T> fmt::Debug for PartitionedQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("PartitionedQueue");
        debug.field("name", &self.name).field("partitions", &self.partitions.len()).finish_non_exhaustive()
    }
}

impl<T: 'static> PartitionedQueue<T> {
    /// Opens it, and records or checks the number of its partitions.
    pub(crate) async fn open(
        queue_of: impl Fn(&str) -> Arc<Queue>,
        name: &str,
        count: usize,
        codec: Arc<dyn Codec<T>>,
    ) -> Result<Self> {
        let invalid = |why: String| Error::invalid(format!("`partitioned_queue` of `{name}`"), why);
        if !(2..=MOST).contains(&count) {
            return Err(invalid(format!(
                "{count} partitions are out of range: use 2 to {MOST}, and blocking_queue for an ordinary queue"
            )));
        }
        let queue = queue_of(name);
        if queue.keys.has_tag() {
            let why = "because of the braces in its name, a cluster would put all partitions on one server; choose a name without";
            return Err(invalid(why.into()));
        }
        let recorded = String::from_utf8_lossy(&record(&queue, count).await?).into_owned();
        if recorded != count.to_string() {
            return Err(invalid(format!(
                "the queue has {recorded} partitions, and with {count} a key would lead to another one: open it with {recorded}. To change the number, let it run empty, and delete the key {}",
                String::from_utf8_lossy(&queue.keys.partitions())
            )));
        }
        let partition = |number| {
            let ready = BlockingQueue::new(queue_of(&format!("{name}#{number}")), codec.clone());
            Partition { delayed: DelayedQueue::new(ready.queue(), codec.clone()), ready }
        };
        let partitions: Arc<[_]> = (0..count).map(partition).collect();
        let places: Vec<_> = partitions.iter().map(|partition| partition.delayed.place()).collect();
        let place_of = Arc::new(move |key: &[u8]| places[partition_of(key, places.len())].clone());
        let turn = || AtomicUsize::new(fastrand::usize(..RUN * count));
        let turns = Turns { puts: turn(), offers: turn(), polls: turn() };
        Ok(Self { name: name.into(), partitions, turns: Arc::new(turns), place_of })
    }

    fn of(&self, key: &[u8]) -> &Partition<T> {
        &self.partitions[partition_of(key, self.partitions.len())]
    }

    /// The partition that has given a ticket. If none has, any of them says so.
    fn of_ticket(&self, ticket: &Ticket) -> &Partition<T> {
        let is_its = |partition: &&Partition<T>| partition.delayed.has_given(ticket);
        self.partitions.iter().find(is_its).unwrap_or(&self.partitions[0])
    }

    fn turn(&self, turns: &AtomicUsize) -> &Partition<T> {
        &self.partitions[self.next(turns)]
    }

    /// The number of the partition whose turn it is.
    fn next(&self, turns: &AtomicUsize) -> usize {
        turns.fetch_add(1, Relaxed) / RUN % self.partitions.len()
    }
}

/// # Offer
impl<T: 'static> PartitionedQueue<T> {
    /// Puts a payload into the list of one of the partitions, round-robin.
    ///
    /// # Errors
    /// As [`BlockingQueue::put`].
    ///
    /// # Cancel safety
    /// As [`BlockingQueue::put`].
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::PartitionedQueue<i64>) -> redelay::Result<()> {
    /// orders.put(&17).await?; // It is ready at once.
    /// # Ok(())
    /// # }
    /// ```
    pub async fn put(&self, value: impl AsValue<T>) -> Result<()> {
        self.turn(&self.turns.puts).ready.put(value).await
    }

    /// Offers a payload that becomes ready after `delay`, in one of the partitions, round-robin; with
    /// [`id`](crate::delayed_queue::Offer::id), in the partition of that id; with
    /// [`throttle`](crate::delayed_queue::Offer::throttle), in that of the payload. Awaiting the [`Offer`]
    /// stores it.
    ///
    /// # Errors
    /// As [`DelayedQueue::offer`].
    ///
    /// # Cancel safety
    /// As [`DelayedQueue::offer`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(orders: redelay::PartitionedQueue<i64>) -> redelay::Result<()> {
    /// orders.offer(&17, Duration::from_secs(30)).await?;
    /// orders.offer(&18, Duration::from_secs(30)).id("order-18").replace().await?;
    /// assert!(orders.job("order-18").cancel().await?.is_removed());
    /// # Ok(())
    /// # }
    /// ```
    pub fn offer(&self, value: impl AsValue<T>, delay: Duration) -> Offer {
        self.turn(&self.turns.offers).delayed.offer(value, delay).among(self.place_of.clone())
    }

    /// The same, at a time of the server's clock: see [`DelayedQueue::offer_at`].
    ///
    /// # Errors
    /// As [`DelayedQueue::offer_at`].
    ///
    /// # Cancel safety
    /// As [`DelayedQueue::offer_at`].
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::PartitionedQueue<i64>) -> redelay::Result<()> {
    /// let tomorrow = std::time::SystemTime::now() + std::time::Duration::from_secs(24 * 3600);
    /// orders.offer_at(&17, tomorrow).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn offer_at(&self, value: impl AsValue<T>, at: impl Into<SystemTime>) -> Offer {
        self.turn(&self.turns.offers).delayed.offer_at(value, at).among(self.place_of.clone())
    }

    /// Stores many payloads, each due after its own delay: round-robin, with one batch for each partition.
    /// The tickets are in the order of the payloads.
    ///
    /// # Errors
    /// As [`DelayedQueue::offer_all`], the limit being that of one partition. If other partitions have stored
    /// their batches, it is [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown), and says how many payloads
    /// these were.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, each partition stores all of its batch or none.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(orders: redelay::PartitionedQueue<i64>) -> redelay::Result<()> {
    /// let minutes = |n: u64| Duration::from_secs(60 * n);
    /// let tickets = orders.offer_all([(&7, minutes(1)), (&8, minutes(5))]).await?;
    /// orders.cancel(&tickets[1]).await?; // 8
    /// # Ok(())
    /// # }
    /// ```
    pub async fn offer_all<'a>(
        &self,
        values: impl IntoIterator<Item = (&'a T, Duration)>,
    ) -> Result<Vec<Ticket>>
    where
        T: 'a,
    {
        let (mut batches, mut turns) = (vec![Vec::new(); self.partitions.len()], Vec::new());
        for value in values {
            let partition = self.next(&self.turns.offers);
            batches[partition].push(value);
            turns.push(partition);
        }
        let batches: Vec<_> = self
            .delayed_queues()
            .zip(batches)
            .map(|(queue, batch)| queue.entries(batch))
            .collect::<Result<_>>()?;
        let offering = self.delayed_queues().zip(batches).map(|(queue, batch)| queue.store_all(batch));
        // To the end, even if one fails: of a batch that is dropped, no caller learns whether it is stored.
        let (offered, errors): (Vec<_>, Vec<_>) =
            join_all(offering).await.into_iter().partition(Result::is_ok);
        let offered: Vec<_> = offered.into_iter().flatten().collect();
        if let Some(error) = Error::of_several(errors.into_iter().filter_map(Result::err)) {
            return Err(error.after_parts(offered.iter().map(Vec::len).sum(), "payloads were offered"));
        }
        let mut tickets: Vec<_> = offered.into_iter().map(Vec::into_iter).collect();
        Ok(turns.into_iter().filter_map(|partition| tickets[partition].next()).collect())
    }

    /// Offers many payloads with ids, each in the partition of its id: see [`DelayedQueue::offer_jobs`].
    ///
    /// # Errors
    /// As [`DelayedQueue::offer_jobs`]. The other partitions may have stored their jobs.
    ///
    /// # Cancel safety
    /// As [`DelayedQueue::offer_jobs`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(orders: redelay::PartitionedQueue<i64>) -> redelay::Result<()> {
    /// let half_an_hour = Duration::from_secs(1800);
    /// orders.offer_jobs([("order-17", &17, half_an_hour), ("order-18", &18, half_an_hour)]).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn offer_jobs<'a, I: AsRef<[u8]>>(
        &self,
        jobs: impl IntoIterator<Item = (I, &'a T, Duration)>,
    ) -> JobOffer<Vec<Offered>>
    where
        T: 'a,
    {
        self.partitions[0].delayed.offer_jobs(jobs).among(&self.place_of)
    }
}

/// # Take
impl<T: 'static> PartitionedQueue<T> {
    /// Takes a payload of any partition: see [`BlockingQueue::take`], with its guarantees.
    ///
    /// # Errors
    /// As [`BlockingQueue::take`].
    ///
    /// # Cancel safety
    /// Cancel safe, as [`BlockingQueue::poll_from_any`].
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::PartitionedQueue<i64>) -> redelay::Result<()> {
    /// let order = orders.take().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn take(&self) -> Result<T> {
        let taken = self.pop("take", None).await?;
        taken.ok_or_else(|| self.partitions[0].ready.queue().op("take").failed(OpError::Closed))
    }

    /// Takes a payload of any partition, or returns `None` if there is none within `timeout`.
    ///
    /// # Errors
    /// As [`BlockingQueue::poll_from_any`].
    ///
    /// # Cancel safety
    /// Cancel safe, as [`BlockingQueue::poll_from_any`].
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::PartitionedQueue<i64>) -> redelay::Result<()> {
    /// while let Some(order) = orders.poll_timeout(std::time::Duration::from_secs(1)).await? {
    ///     println!("{order}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn poll_timeout(&self, timeout: Duration) -> Result<Option<T>> {
        self.pop("poll_timeout", Some(timeout)).await
    }

    async fn pop(&self, verb: &'static str, timeout: Option<Duration>) -> Result<Option<T>> {
        // Lists of one server are searched in the order in which they are named. Each is the first one now
        // and then.
        let first = self.turns.polls.fetch_add(1, Relaxed) % self.partitions.len();
        let (before, from) = self.partitions.split_at(first);
        let lists = from.iter().chain(before).map(|partition| partition.ready.queue().keys.clone()).collect();
        // By the same handle each time, which transfers all of them from then on.
        let popped = self.partitions[0].ready.poll_lists(verb, timeout, lists).await?;
        let Some(popped) = popped else { return Ok(None) };
        let is_its = |partition: &&Partition<T>| partition.ready.queue().keys == popped.keys;
        let partition = self.partitions.iter().find(is_its).unwrap_or(&self.partitions[0]);
        partition.ready.payload(verb, Ok(Some(popped)))
    }
}

/// # Cancel, reschedule, schedule
impl<T: 'static> PartitionedQueue<T> {
    /// Removes a pending payload: see [`DelayedQueue::cancel`].
    ///
    /// # Errors
    /// As [`DelayedQueue::cancel`].
    ///
    /// # Cancel safety
    /// As [`DelayedQueue::cancel`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(orders: redelay::PartitionedQueue<i64>) -> redelay::Result<()> {
    /// let ticket = orders.offer(&17, Duration::from_secs(30)).await?;
    /// assert!(orders.cancel(&ticket).await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cancel(&self, ticket: &Ticket) -> Result<bool> {
        self.of_ticket(ticket).delayed.cancel(ticket).await
    }

    /// Gives a pending payload another delay: see [`DelayedQueue::reschedule`].
    ///
    /// # Errors
    /// As [`DelayedQueue::reschedule`].
    ///
    /// # Cancel safety
    /// As [`DelayedQueue::reschedule`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(orders: redelay::PartitionedQueue<i64>) -> redelay::Result<()> {
    /// let ticket = orders.offer(&17, Duration::from_secs(30)).await?;
    /// assert!(orders.reschedule(&ticket, Duration::from_secs(60)).await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn reschedule(&self, ticket: &Ticket, delay: Duration) -> Result<bool> {
        self.of_ticket(ticket).delayed.reschedule(ticket, delay).await
    }

    /// Gives a pending payload another due time, by the server's clock: see [`DelayedQueue::reschedule_at`].
    ///
    /// # Errors
    /// As [`DelayedQueue::reschedule_at`].
    ///
    /// # Cancel safety
    /// As [`DelayedQueue::reschedule_at`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(orders: redelay::PartitionedQueue<i64>) -> redelay::Result<()> {
    /// let ticket = orders.offer(&17, Duration::from_secs(30)).await?;
    /// orders.reschedule_at(&ticket, ticket.due() + Duration::from_secs(600)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn reschedule_at(&self, ticket: &Ticket, at: impl Into<SystemTime>) -> Result<bool> {
        self.of_ticket(ticket).delayed.reschedule_at(ticket, at).await
    }

    /// The job of this id.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::PartitionedQueue<i64>) -> redelay::Result<()> {
    /// if orders.job("order-17").exists().await? {
    ///     println!("still pending");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn job(&self, id: impl AsRef<[u8]>) -> Job<T> {
        self.of(id.as_ref()).delayed.job(id)
    }

    /// The schedule of this name, in the partition of its name: see [`DelayedQueue::schedule`].
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::PartitionedQueue<i64>) -> redelay::Result<()> {
    /// let day = std::time::Duration::from_secs(24 * 3600);
    /// orders.schedule("nightly").every(day).upsert(&17).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn schedule(&self, name: impl Into<String>) -> Schedule<T> {
        let name = name.into();
        self.of(name.as_bytes()).delayed.schedule(name)
    }
}

/// # Pause and stats
impl<T: 'static> PartitionedQueue<T> {
    /// Holds back the receivers of all partitions: see [`BlockingQueue::pause`].
    ///
    /// # Errors
    /// As [`BlockingQueue::pause`]. Some of the partitions may be paused already: repeat the call.
    ///
    /// # Cancel safety
    /// If it is dropped, some of the partitions may be paused.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::PartitionedQueue<i64>) -> redelay::Result<()> {
    /// orders.pause().await?;
    /// assert!(orders.stats().await?.is_paused);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn pause(&self) -> Result<()> {
        try_join_all(self.queues().map(BlockingQueue::pause)).await.map(drop)
    }

    /// Ends what [`pause`](Self::pause) began.
    ///
    /// # Errors
    /// As [`BlockingQueue::resume`]. Some of the partitions may still be paused: repeat the call.
    ///
    /// # Cancel safety
    /// If it is dropped, some of the partitions may still be paused.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::PartitionedQueue<i64>) -> redelay::Result<()> {
    /// orders.resume().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn resume(&self) -> Result<()> {
        try_join_all(self.queues().map(BlockingQueue::resume)).await.map(drop)
    }

    /// Decodes a payload of any partition: see [`BlockingQueue::decode`]. No command is sent.
    ///
    /// # Errors
    /// As [`BlockingQueue::decode`].
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::PartitionedQueue<i64>) -> redelay::Result<()> {
    /// let queue = orders.clone();
    /// let worker = orders.worker().on_failure(move |failure| {
    ///     eprintln!("{failure}: {:?}", queue.decode(&failure.payload));
    /// });
    /// # Ok(())
    /// # }
    /// ```
    pub fn decode(&self, payload: &[u8]) -> Result<T> {
        self.partitions[0].ready.decode(payload)
    }

    /// The stats of all partitions together: numbers are sums, `is_paused` says whether all are paused,
    /// `next_due_in` is that of the next entry overall, and `overdue_for` that of the oldest. While the
    /// transfers of some partitions fail, `last_error` and `last_transfer_ago` are theirs. `server` is empty
    /// if the partitions are on several servers.
    ///
    /// # Errors
    /// As [`BlockingQueue::stats`].
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::PartitionedQueue<i64>) -> redelay::Result<()> {
    /// let stats = orders.stats().await?;
    /// println!("{} pending, {} ready", stats.pending, stats.ready);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn stats(&self) -> Result<QueueStats> {
        let stats = try_join_all(self.queues().map(BlockingQueue::stats)).await?;
        Ok(stats.into_iter().reduce(QueueStats::and).unwrap_or_default())
    }
}

/// # Its partitions
impl<T: 'static> PartitionedQueue<T> {
    /// The name, as it was given. The names of the partitions add a number.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::PartitionedQueue<i64>) -> redelay::Result<()> {
    /// assert_eq!(orders.name(), "orders");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The lists that takers read, one for each partition, in the order of their numbers.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::PartitionedQueue<i64>) -> redelay::Result<()> {
    /// for queue in orders.queues() {
    ///     println!("{}: {} dead letters", queue.name(), queue.dead_letters().len().await?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn queues(&self) -> impl Iterator<Item = &BlockingQueue<T>> {
        self.partitions.iter().map(|partition| &partition.ready)
    }

    /// The delayed queues, one for each partition, in the order of their numbers.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::PartitionedQueue<i64>) -> redelay::Result<()> {
    /// for queue in orders.delayed_queues() {
    ///     println!("{} pending", queue.len().await?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn delayed_queues(&self) -> impl Iterator<Item = &DelayedQueue<T>> {
        self.partitions.iter().map(|partition| &partition.delayed)
    }

    /// The list of the partition of a key. Payloads that are put there keep their order.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::PartitionedQueue<i64>) -> redelay::Result<()> {
    /// orders.queue_of("customer-7").put(&17).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn queue_of(&self, key: impl AsRef<[u8]>) -> &BlockingQueue<T> {
        &self.of(key.as_ref()).ready
    }

    /// The delayed queue of the partition of a key. Jobs by id belong to the partition of their id.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(orders: redelay::PartitionedQueue<i64>) -> redelay::Result<()> {
    /// orders.delayed_queue_of("customer-7").offer(&17, Duration::from_secs(30)).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn delayed_queue_of(&self, key: impl AsRef<[u8]>) -> &DelayedQueue<T> {
        &self.of(key.as_ref()).delayed
    }
}

/// # Work
impl<T: Send + 'static> PartitionedQueue<T> {
    /// A worker for all partitions. While all have messages, each has the same share.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::PartitionedQueue<i64>) -> redelay::Result<()> {
    /// orders.worker().concurrency(64).run(|order: i64| async move { println!("{order}") }).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn worker(&self) -> Worker<T> {
        Worker::weighted(self.queues().map(|queue| (queue, 1)))
    }
}

/// The number of partitions that the first client has recorded.
async fn record(queue: &Queue, count: usize) -> Result<Vec<u8>> {
    let (op, key) = (queue.op("partitioned_queue"), queue.keys.partitions());
    op.call(Command::new("SET").arg(key.clone()).number(count).arg("NX").idempotent()).await?;
    let recorded = op.call(Command::new("GET").arg(key).only_reads()).await?;
    // Deleted between `SET` and `GET`.
    Ok(op.optional_bytes(recorded)?.map_or_else(|| count.to_string().into(), |recorded| recorded.to_vec()))
}

/// FNV-1a of the key, modulo the number of partitions. It is a part of the wire format: other clients must
/// find the same one.
fn partition_of(key: &[u8], count: usize) -> usize {
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (hash % count as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_the_same_partition_for_ever() {
        // The hash of nothing and of "a" and "foobar" are those of the reference.
        assert_eq!(partition_of(b"", 1024), 0xcbf2_9ce4_8422_2325_u64 as usize % 1024);
        assert_eq!(partition_of(b"a", 1 << 20), 0xaf63_dc4c_8601_ec8c_u64 as usize % (1 << 20));
        assert_eq!(partition_of(b"foobar", 1 << 20), 0x8594_4171_f739_67e8_u64 as usize % (1 << 20));
        let mut sizes = [0; 16];
        (0..16_000).for_each(|number| sizes[partition_of(format!("order-{number}").as_bytes(), 16)] += 1);
        assert!(sizes.iter().all(|size| (800..1200).contains(size)), "{sizes:?}");
    }
}
