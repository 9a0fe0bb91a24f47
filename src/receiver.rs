//! `Receiver`: takes messages of a queue, at least once.

mod stream;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::blocking_queue::BlockingQueue;
use crate::conn::OpError;
use crate::delivery::Delivery;
use crate::error::{Error, Result};
use crate::receiving::{Claimed, Destination, Receiving, Settings};
use crate::telemetry::events;
use crate::wire::message::{DeadMode, Policy};
use crate::wire::time;

pub use crate::delivery::Backoff;
pub use crate::wire::message::MessageId;
pub use stream::DeliveryStream;

/// The shortest and the longest lease.
const LEASE_RANGE: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(86_400);

/// Receives messages of a queue, at least once: a message stays on the server until it is acknowledged.
/// [`BlockingQueue::receiver`] makes one. Cloning is cheap; clones share their connection and their settings.
///
/// A message that is received has a *lease*. It is extended in the background while this process lives. If
/// the process dies, the lease ends, and any receiver of the queue gets the message again.
///
/// The settings take effect with the first receive: a setter on a receiver that is in use makes another
/// receiver.
///
/// | setting | default |
/// |---|---|
/// | [`lease`](Self::lease) | 30 s |
/// | [`extend_for`](Self::extend_for) | 30 min |
/// | [`max_attempts`](Self::max_attempts) | 10 |
/// | [`max_losses`](Self::max_losses) | 5 |
/// | [`backoff`](Self::backoff) | 15 s, doubled with each failure, up to 6 h |
/// | [`on_undecodable`](Self::on_undecodable) | dead letter |
/// | dead letters | kept without a limit: see [`keep_dead_letters`](Self::keep_dead_letters) |
///
/// # Receivers, `take` and Java
/// Java's takers, `take` and receivers of one queue share its messages. A message that a receiver has, or
/// that waits for a retry, is in redelay's own keys: Java sees it as taken.
///
/// # Examples
/// ```no_run
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> redelay::Result<()> {
/// let orders = client.blocking_queue("orders", codec::Long).receiver();
/// loop {
///     let order = orders.receive().await?;
///     println!("{}", order.value());
///     order.ack().await?;
/// }
/// # }
/// ```
#[doc(alias = "RReliableQueue")]
pub struct Receiver<T> {
    queue: BlockingQueue<T>,
    options: ReceiverOptions,
    /// Started with the first receive.
    receiving: Arc<OnceLock<Arc<Receiving>>>,
}

#[derive(Clone, Debug)]
struct ReceiverOptions {
    lease: Duration,
    extend_for: Duration,
    attempts: u32,
    losses: u32,
    backoff: Backoff,
    undecodable: OnUndecodable,
    dead: DeadMode,
    dead_letters: (Option<u64>, Option<Duration>),
    send_to: Option<Destination>,
}

/// What happens to a message whose payload cannot be decoded. [`Receiver::on_undecodable`] sets it.
///
/// # Examples
/// ```no_run
/// # use redelay::worker::OnUndecodable;
/// # use redelay::BlockingQueue;
/// # fn example(orders: BlockingQueue<i64>) {
/// // While two versions of a service run, the old one leaves new payloads to the new one.
/// let orders = orders.receiver().on_undecodable(OnUndecodable::Retry);
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnUndecodable {
    /// It becomes a dead letter, with the reason `undecodable`.
    #[default]
    DeadLetter,
    /// It has failed: it is delivered again after the backoff.
    Retry,
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), options: self.options.clone(), receiving: self.receiving.clone() }
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("queue", &self.queue).finish_non_exhaustive()
    }
}

/// # Receive
impl<T: 'static> BlockingQueue<T> {
    /// A receiver of this queue: its messages are delivered at least once.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let orders = client.blocking_queue("orders", codec::Long);
    /// let receiver = orders.receiver().lease(Duration::from_secs(10)).max_attempts(3);
    /// let order = receiver.receive().await?;
    /// order.ack().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn receiver(&self) -> Receiver<T> {
        Receiver {
            queue: self.clone(),
            options: ReceiverOptions {
                lease: Duration::from_secs(30),
                extend_for: Duration::from_secs(1_800),
                attempts: 10,
                losses: 5,
                backoff: Backoff::default(),
                undecodable: OnUndecodable::default(),
                dead: DeadMode::Keep,
                dead_letters: (None, None),
                send_to: None,
            },
            receiving: Arc::default(),
        }
    }
}

/// # Receive
impl<T: 'static> Receiver<T> {
    /// Waits for the next message, without a limit, through reconnections and server restarts.
    ///
    /// # Errors
    /// * [`Decode`](crate::ErrorKind::Decode): its bytes are in [`Error::payload`](crate::Error::payload).
    ///   The message is settled as [`Receiver::on_undecodable`] says.
    /// * [`Refused`](crate::ErrorKind::Refused): a key is of another type, or a permission is missing. The
    ///   next attempt follows after a pause: 10 ms, doubled with each refusal up to a second.
    /// * [`Invalid`](crate::ErrorKind::Invalid): a setting is out of its range, or a cluster cannot hold the
    ///   queue or that for its dead letters.
    /// * [`Closed`](crate::ErrorKind::Closed): after [`Client::stop_taking`](crate::Client::stop_taking) or
    ///   [`Client::shutdown`](crate::Client::shutdown).
    ///
    /// # Cancel safety
    /// Cancel safe: a message on its way to a dropped future is released. If it was never delivered before,
    /// it goes back to the head of the list, also for Java's takers. It does not count as an attempt.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long).receiver();
    /// let order = orders.receive().await?;
    /// println!("{}, attempt {}", order.value(), order.attempt());
    /// order.ack().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn receive(&self) -> Result<Delivery<T>> {
        const VERB: &str = "receive";
        let receiving = self.receiving(VERB)?;
        let claims = receiving.wait(1).await.map_err(|error| self.failed(VERB, error))?;
        self.one(VERB, &receiving, claims).unwrap_or_else(|| Err(self.failed(VERB, OpError::Closed)))
    }

    /// Acknowledges a message, and waits for the next one: [`Delivery::ack`] and [`Receiver::receive`] in one
    /// call of the server, if this receiver or a clone of it has received the message. Otherwise in two.
    ///
    /// # Errors
    /// * As [`Delivery::ack`]: the text of the error names `ack`. Nothing is received then.
    /// * As [`Receiver::receive`]: the text names `ack_and_receive`. The message is acknowledged.
    ///
    /// # Cancel safety
    /// The message is acknowledged even if the future is dropped, also before it is polled. A message on its
    /// way to the dropped future is released, as by [`Receiver::receive`].
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let orders = client.blocking_queue("orders", codec::Long).receiver();
    /// let mut order = orders.receive().await?;
    /// loop {
    ///     println!("{}", order.value());
    ///     order = orders.ack_and_receive(order).await?;
    /// }
    /// # }
    /// ```
    pub fn ack_and_receive<U>(&self, delivery: Delivery<U>) -> impl Future<Output = Result<Delivery<T>>> {
        const VERB: &str = "ack_and_receive";
        let begun = match self.receiving(VERB) {
            Ok(receiving) => {
                let (acked, next) = delivery.ack_and_wait(&receiving);
                (acked, Ok((receiving, next)))
            }
            Err(error) => (delivery.ack(), Err(error)),
        };
        async move {
            let (acked, next) = begun;
            acked.await?;
            let (receiving, next) = next?;
            let claims = next.await.map_err(|error| self.failed(VERB, error))?;
            self.one(VERB, &receiving, claims).unwrap_or_else(|| Err(self.failed(VERB, OpError::Closed)))
        }
    }

    /// Asks the server for a message, and returns `None` if there is none. It does not wait for one.
    ///
    /// # Errors
    /// As [`Receiver::receive`]; and [`Unavailable`](crate::ErrorKind::Unavailable) if there is no connection
    /// or the server does not answer.
    ///
    /// # Cancel safety
    /// As [`Receiver::receive`].
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long).receiver();
    /// while let Some(order) = orders.try_receive().await? {
    ///     order.ack().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn try_receive(&self) -> Result<Option<Delivery<T>>> {
        const VERB: &str = "try_receive";
        let receiving = self.receiving(VERB)?;
        let claims = receiving.poll(1).await.map_err(|error| self.failed(VERB, error))?;
        self.one(VERB, &receiving, claims).transpose()
    }

    /// Waits up to this time for the next message. Returns `None` if there was none.
    ///
    /// # Errors
    /// As [`Receiver::try_receive`].
    ///
    /// # Cancel safety
    /// As [`Receiver::receive`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long).receiver();
    /// if let Some(order) = orders.receive_timeout(Duration::from_secs(5)).await? {
    ///     order.ack().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn receive_timeout(&self, timeout: Duration) -> Result<Option<Delivery<T>>> {
        const VERB: &str = "receive_timeout";
        let receiving = self.receiving(VERB)?;
        let claims = receiving.wait_for(1, timeout).await;
        let claims = claims.map_err(|error| self.failed(VERB, error))?;
        self.one(VERB, &receiving, claims).transpose()
    }

    /// Waits for the first message, then receives up to `max` that are ready: 1,000 and about 1 MB at most.
    /// Each payload is decoded separately. Returns an empty list if `max` is zero.
    ///
    /// # Errors
    /// As [`Receiver::receive`]; [`Decode`](crate::ErrorKind::Decode) is the error of one message.
    ///
    /// # Cancel safety
    /// As [`Receiver::receive`].
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long).receiver();
    /// for order in orders.receive_many(100).await? {
    ///     match order {
    ///         Ok(order) => order.ack().await?,
    ///         Err(error) => eprintln!("{error}"), // It is a dead letter.
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn receive_many(&self, max: usize) -> Result<Vec<Result<Delivery<T>>>> {
        const VERB: &str = "receive_many";
        let receiving = self.receiving(VERB)?;
        if max == 0 {
            return Ok(Vec::new());
        }
        let claims = receiving.wait(max).await.map_err(|error| self.failed(VERB, error))?;
        Ok(claims.into_iter().map(|claim| self.delivery(VERB, &receiving, claim)).collect())
    }

    /// Receives messages one after the other, as a stream. It ends when the client stops taking.
    ///
    /// # Errors
    /// The errors of [`Receiver::receive`] are items and do not end the stream, except
    /// [`Closed`](crate::ErrorKind::Closed), which is its end, and [`Invalid`](crate::ErrorKind::Invalid),
    /// which comes before it.
    ///
    /// # Cancel safety
    /// As [`BlockingQueue::into_stream`].
    ///
    /// # Examples
    /// ```no_run
    /// # use futures::StreamExt;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let orders = client.blocking_queue("orders", codec::Long).receiver().into_stream();
    /// orders
    ///     .for_each_concurrent(8, |order| async move {
    ///         match order {
    ///             Ok(order) => drop(order.ack().await),
    ///             Err(error) => eprintln!("{error}"),
    ///         }
    ///     })
    ///     .await;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use = "streams do nothing unless polled"]
    pub fn into_stream(self) -> DeliveryStream<T> {
        DeliveryStream::new(self)
    }

    /// Waits until the client stops taking: [`Client::stop_taking`](crate::Client::stop_taking) or
    /// [`Client::shutdown`](crate::Client::shutdown) was called. The future does not borrow the receiver.
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn work() {}
    /// # async fn example(client: Client) {
    /// let orders = client.blocking_queue("orders", codec::Long).receiver();
    /// tokio::select! {
    ///     () = work() => {}
    ///     () = orders.closed() => println!("stop"),
    /// }
    /// # }
    /// ```
    pub fn closed(&self) -> impl Future<Output = ()> + Send + use<T> {
        self.queue.queue().engine.pops.stopping().clone().cancelled_owned()
    }

    fn failed(&self, verb: &'static str, error: OpError) -> Error {
        self.queue.queue().op(verb).failed(error)
    }

    /// Whether a call should have been answered, and was not. It is sent again until it is.
    pub(crate) fn is_silent(&self) -> bool {
        self.receiving.get().is_some_and(|receiving| receiving.is_silent())
    }

    /// Whether the queue of another receiver is on the same server.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        let server = |one: &Self| one.queue.queue().conn.server_of(one.queue.queue().keys.target());
        server(self) == server(other)
    }

    fn receiving(&self, verb: &'static str) -> Result<Arc<Receiving>> {
        if let Some(receiving) = self.receiving.get() {
            self.queue.check_taking(verb)?;
            return Ok(receiving.clone());
        }
        self.queue.watch(verb)?;
        let settings = self.settings(verb)?;
        let queue = self.queue.queue();
        Ok(self.receiving.get_or_init(|| Receiving::start(&queue.engine, &queue.keys, settings)).clone())
    }

    fn settings(&self, verb: &'static str) -> Result<Settings> {
        let op = self.queue.queue().op(verb);
        let ReceiverOptions { lease, extend_for, attempts, losses, dead, dead_letters: (most, age), .. } =
            self.options;
        let queue = self.queue.queue();
        if let Some(to) = &self.options.send_to {
            if to.keys == queue.keys && to.conn.server() == queue.conn.server() {
                return Err(op.invalid("the dead letters of a queue cannot be sent to that queue"));
            }
            if !to.conn.can_hold(&to.keys) {
                return Err(op.split(&events::name(&to.keys)));
            }
        }
        if !LEASE_RANGE.contains(&lease) {
            return Err(op.invalid(format!("lease({lease:?}) is out of range; use 100 ms to a day")));
        }
        if most == Some(0) || age == Some(Duration::ZERO) {
            return Err(op.invalid("keep_dead_letters of zero would keep none; use discard_dead_letters"));
        }
        let age = age.map_or(Ok(0), time::millis).map_err(|why| op.invalid(why))?;
        let count = |what: &str, count: u32| match u16::try_from(count) {
            Ok(count @ 1..) => Ok(count),
            _ => Err(op.invalid(format!("{what}({count}) is out of range; use 1 to 65,535"))),
        };
        Ok(Settings {
            policy: Policy {
                attempts: count("max_attempts", attempts)?,
                losses: count("max_losses", losses)?,
                lease_ms: time::millis(lease).ok().and_then(|ms| u32::try_from(ms).ok()).unwrap_or(u32::MAX),
                dead,
            },
            extend_for,
            send_to: self.options.send_to.clone(),
            dead_letters: (most.unwrap_or(0), age),
        })
    }

    fn one(
        &self,
        verb: &'static str,
        receiving: &Arc<Receiving>,
        claims: Vec<Claimed>,
    ) -> Option<Result<Delivery<T>>> {
        claims.into_iter().next().map(|claim| self.delivery(verb, receiving, claim))
    }

    fn delivery(
        &self,
        verb: &'static str,
        receiving: &Arc<Receiving>,
        claim: Claimed,
    ) -> Result<Delivery<T>> {
        let queue = self.queue.queue_arc();
        let backoff = self.options.backoff.clone();
        let payload = claim.payload.clone();
        // Until it is decoded, a delivery of nothing: if the codec panics, it has failed.
        let attempts = self.options.attempts;
        let undecoded = Delivery::new((), claim, receiving.clone(), queue.clone(), backoff, attempts);
        match queue.op(verb).decode(&**self.queue.codec(), payload) {
            Ok(value) => Ok(undecoded.with_value(value)),
            Err(error) => {
                match self.options.undecodable {
                    OnUndecodable::DeadLetter => undecoded.bury("undecodable", &error.reason()),
                    OnUndecodable::Retry => drop(undecoded.with_error(error.reason()).retry()),
                }
                Err(error)
            }
        }
    }
}

/// # Settings
impl<T: 'static> Receiver<T> {
    fn with(mut self, set: impl FnOnce(&mut ReceiverOptions)) -> Self {
        set(&mut self.options);
        self.receiving = Arc::default();
        self
    }

    /// How long a message stays with a process that does not extend its lease, and so how long it takes until
    /// the messages of a dead process are delivered again: 100 ms to a day, 30 s by default. It should be
    /// several round trips long.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # fn example(orders: redelay::BlockingQueue<i64>) {
    /// let receiver = orders.receiver().lease(Duration::from_secs(5));
    /// # }
    /// ```
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        self.with(|options| options.lease = lease)
    }

    /// For how long the lease of a message is extended in the background, from its delivery on: 30 minutes by
    /// default. [`Duration::ZERO`] turns this off. After that time, only [`Delivery::extend`] extends it.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # fn example(orders: redelay::BlockingQueue<i64>) {
    /// let receiver = orders.receiver().extend_for(Duration::from_secs(7_200));
    /// # }
    /// ```
    #[must_use]
    pub fn extend_for(self, time: Duration) -> Self {
        self.with(|options| options.extend_for = time)
    }

    /// After how many failures a message becomes a dead letter: 1 to 65,535, 10 by default.
    ///
    /// # Examples
    /// ```no_run
    /// # fn example(orders: redelay::BlockingQueue<i64>) {
    /// let receiver = orders.receiver().max_attempts(3);
    /// # }
    /// ```
    #[must_use]
    #[doc(alias = "deliveryLimit")]
    pub fn max_attempts(self, attempts: u32) -> Self {
        self.with(|options| options.attempts = attempts)
    }

    /// After how many ended leases a message becomes a dead letter: 1 to 65,535, 5 by default. A payload that
    /// kills its process does so at each delivery. Other messages in that process lose their leases, too, so
    /// this should not be 1.
    ///
    /// # Examples
    /// ```no_run
    /// # fn example(orders: redelay::BlockingQueue<i64>) {
    /// let receiver = orders.receiver().max_losses(3);
    /// # }
    /// ```
    #[must_use]
    pub fn max_losses(self, losses: u32) -> Self {
        self.with(|options| options.losses = losses)
    }

    /// How long a failed message waits for its next delivery. Default: [`Backoff::default`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::worker::Backoff;
    /// # fn example(orders: redelay::BlockingQueue<i64>) {
    /// let receiver = orders.receiver().backoff(Backoff::fixed(Duration::from_secs(5)));
    /// # }
    /// ```
    #[must_use]
    pub fn backoff(self, backoff: Backoff) -> Self {
        self.with(|options| options.backoff = backoff)
    }

    /// What happens to a message whose payload cannot be decoded. Default: it is a dead letter.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::worker::OnUndecodable;
    /// # fn example(orders: redelay::BlockingQueue<i64>) {
    /// let receiver = orders.receiver().on_undecodable(OnUndecodable::Retry);
    /// # }
    /// ```
    #[must_use]
    pub fn on_undecodable(self, undecodable: OnUndecodable) -> Self {
        self.with(|options| options.undecodable = undecodable)
    }

    /// How many dead letters of the queue are kept, and for how long; `None` means no limit, which is the
    /// default. When there are more, this receiver removes the oldest ones. Zero is
    /// [`Invalid`](crate::ErrorKind::Invalid). Of this, `discard_dead_letters` and `dead_letters_to`, the
    /// last call counts.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # fn example(orders: redelay::BlockingQueue<i64>) {
    /// let receiver = orders.receiver().keep_dead_letters(10_000, Duration::from_secs(90 * 86_400));
    /// # }
    /// ```
    #[must_use]
    pub fn keep_dead_letters(self, max: impl Into<Option<u64>>, age: impl Into<Option<Duration>>) -> Self {
        self.with(|options| {
            options.dead = DeadMode::Keep;
            options.dead_letters = (max.into(), age.into());
            options.send_to = None;
        })
    }

    /// Deletes messages that would become dead letters.
    ///
    /// # Examples
    /// ```no_run
    /// # fn example(clicks: redelay::BlockingQueue<i64>) {
    /// let receiver = clicks.receiver().discard_dead_letters();
    /// # }
    /// ```
    #[must_use]
    pub fn discard_dead_letters(self) -> Self {
        self.with(|options| {
            options.dead = DeadMode::Discard;
            (options.dead_letters, options.send_to) = ((None, None), None);
        })
    }

    /// Sends dead letters to this queue as bare payloads: elements of a Redisson `RBlockingQueue`, which Java
    /// can read. A receiver with this setting does this in a second step; until then they are in
    /// [`BlockingQueue::dead_letters`]. One that another client cancels, replaces or removes in the middle of
    /// that may be sent, too.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # fn example(client: Client, orders: redelay::BlockingQueue<i64>) {
    /// let dead = client.blocking_queue("orders:dead", codec::Long);
    /// let receiver = orders.receiver().dead_letters_to(&dead);
    /// # }
    /// ```
    #[must_use]
    pub fn dead_letters_to<U: 'static>(self, queue: &BlockingQueue<U>) -> Self {
        let to = queue.queue();
        let destination = Destination { conn: to.conn.clone(), keys: to.keys.clone() };
        self.with(|options| {
            options.dead = DeadMode::Send;
            (options.dead_letters, options.send_to) = ((None, None), Some(destination));
        })
    }
}
