//! Everything that takes: a payload leaves the list, and is delivered or returned.

use std::sync::Arc;
use std::time::Duration;

use super::{BlockingQueue, PayloadStream};
use crate::conn::OpError;
use crate::error::Result;
use crate::pops::{End, Popped, Wanted};
use crate::telemetry::QueueCounters;

/// # Take
impl<T: 'static> BlockingQueue<T> {
    /// Waits for the next payload, without a limit, through reconnections and server restarts: Redisson's
    /// `take`. The takers of one client are served in the order in which they began.
    ///
    /// Delivery is at most once: a payload that was taken is no longer in the list, and a lost connection can
    /// cost [one payload](BlockingQueue#what-a-lost-connection-can-cost).
    ///
    /// # Errors
    /// * [`Decode`](crate::ErrorKind::Decode): the payload is no longer in the list; its bytes are in
    ///   [`Error::payload`](crate::Error::payload).
    /// * [`Refused`](crate::ErrorKind::Refused): the key is not a list, or a permission is missing. After
    ///   such an error, the next `take` first pauses, so that a loop does not flood the server: 10 ms,
    ///   doubled with each refusal up to a second.
    /// * [`Closed`](crate::ErrorKind::Closed): after [`Client::stop_taking`](crate::Client::stop_taking) or
    ///   [`Client::shutdown`](crate::Client::shutdown).
    ///
    /// A lost connection is not an error: `take` waits for the next connection, even while the server rejects
    /// the user. The feature `tracing` logs this.
    ///
    /// # Cancel safety
    /// Cancel safe: a payload on its way to a dropped future goes to the next taker, or back to the head of
    /// the list. The order holds among the takers of this client, not across processes.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let orders = client.blocking_queue("orders", codec::String);
    /// loop {
    ///     match orders.take().await {
    ///         Ok(order) => println!("{order}"),
    ///         Err(error) if error.payload().is_some() => eprintln!("set aside: {error}"),
    ///         Err(error) => return Err(error),
    ///     }
    /// }
    /// # }
    /// ```
    #[doc(alias = "takeFirst")]
    pub async fn take(&self) -> Result<T> {
        self.take_from("take", End::Head).await
    }

    /// As [`BlockingQueue::take`], from the tail of the list: Redisson's `RBlockingDeque.takeLast`. At most
    /// once, as `take`.
    ///
    /// # Errors
    /// As [`BlockingQueue::take`].
    ///
    /// # Cancel safety
    /// Cancel safe: as [`BlockingQueue::take`]; an undelivered payload goes back to the tail.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// orders.offer_all(&[7, 8, 9]).await?;
    /// assert_eq!(orders.take_last().await?, 9); // The newest first.
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "takeLast")]
    pub async fn take_last(&self) -> Result<T> {
        self.take_from("take_last", End::Tail).await
    }

    async fn take_from(&self, verb: &'static str, end: End) -> Result<T> {
        let answer = self.queue.engine.pops.wait(self.one(verb, end)?).await;
        match self.payload(verb, answer)? {
            Some(value) => Ok(value),
            None => Err(self.queue.op(verb).failed(OpError::Closed)),
        }
    }

    /// Takes the first payload, or returns `None` when nothing is ready. It does not wait: Redisson's
    /// `poll()`, `pollFirst()` and `remove()` without its exception. At most once, as
    /// [`BlockingQueue::take`].
    ///
    /// # Errors
    /// As [`BlockingQueue::take`], but without the pause after a refusal; and
    /// [`Unavailable`](crate::ErrorKind::Unavailable) when there is no connection or the server does not
    /// answer. A payload that the server may have popped then goes back to the list.
    ///
    /// # Cancel safety
    /// Cancel safe: as [`BlockingQueue::take`].
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// while let Some(order) = orders.poll().await? {
    ///     println!("{order}");
    /// }
    /// println!("nothing is ready now; `take` would wait for pending orders");
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "pollFirst")]
    #[doc(alias = "removeFirst")]
    #[doc(alias = "remove")]
    #[doc(alias = "pop")]
    pub async fn poll(&self) -> Result<Option<T>> {
        self.poll_end("poll", End::Head).await
    }

    /// As [`BlockingQueue::poll`], from the tail of the list: Redisson's `RBlockingDeque.pollLast()`. At most
    /// once, as `poll`.
    ///
    /// # Errors
    /// As [`BlockingQueue::poll`].
    ///
    /// # Cancel safety
    /// Cancel safe: as [`BlockingQueue::take_last`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// // Too many orders for now: postpone the newest one.
    /// if let Some(order) = orders.poll_last().await? {
    ///     client.delayed_queue(&orders).offer(&order, Duration::from_secs(60)).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "pollLast")]
    #[doc(alias = "removeLast")]
    pub async fn poll_last(&self) -> Result<Option<T>> {
        self.poll_end("poll_last", End::Tail).await
    }

    async fn poll_end(&self, verb: &'static str, end: End) -> Result<Option<T>> {
        let answer = self.queue.engine.pops.poll(&self.queue.conn, self.one(verb, end)?).await;
        self.payload(verb, answer)
    }

    /// Waits up to this time for the next payload; `None` when there was none. The time is exact to the
    /// millisecond. (Redisson's `poll(timeout, unit)` truncates it to whole seconds, and waits indefinitely
    /// on zero.) The server looks at the list at least once, even when the time is zero. At most once, as
    /// [`BlockingQueue::take`].
    ///
    /// # Errors
    /// As [`BlockingQueue::take`], and when the time is over:
    /// * [`Unavailable`](crate::ErrorKind::Unavailable): there has been no connection for a second or more,
    ///   or the server does not answer.
    /// * [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown): the connection was lost at that moment.
    ///
    /// Either may have cost [one payload](BlockingQueue#what-a-lost-connection-can-cost). Take again.
    ///
    /// # Cancel safety
    /// Cancel safe: as [`BlockingQueue::take`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// match orders.poll_timeout(Duration::from_millis(1500)).await? {
    ///     Some(order) => println!("{order}"),
    ///     None => println!("none within 1.5 s"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "poll")]
    #[doc(alias = "pollFirst")]
    pub async fn poll_timeout(&self, timeout: Duration) -> Result<Option<T>> {
        self.poll_end_timeout("poll_timeout", End::Head, timeout).await
    }

    /// As [`BlockingQueue::poll_timeout`], from the tail of the list: Redisson's
    /// `RBlockingDeque.pollLast(timeout, unit)`. At most once, as `poll_timeout`.
    ///
    /// # Errors
    /// As [`BlockingQueue::poll_timeout`].
    ///
    /// # Cancel safety
    /// Cancel safe: as [`BlockingQueue::take_last`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// // Zero tries once. In Redisson it would wait indefinitely.
    /// let newest = orders.poll_last_timeout(Duration::ZERO).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "pollLast")]
    pub async fn poll_last_timeout(&self, timeout: Duration) -> Result<Option<T>> {
        self.poll_end_timeout("poll_last_timeout", End::Tail, timeout).await
    }

    async fn poll_end_timeout(&self, verb: &'static str, end: End, timeout: Duration) -> Result<Option<T>> {
        let wanted = self.one(verb, end)?;
        let answer = self.queue.engine.pops.wait_for(&self.queue.conn, wanted, Some(timeout)).await;
        self.payload(verb, answer)
    }

    /// Takes up to `max` payloads that are ready, in order, without waiting: Redisson's `poll(int)`,
    /// `pollFirst(int)` and `drainTo`. `usize::MAX` takes all of them, or as many as arrive within the
    /// command timeout. The server pops at most 1,000 at a time, so other clients can take in between. Each
    /// payload is decoded separately: one that does not decode does not affect the others. At most once, as
    /// [`BlockingQueue::take`].
    ///
    /// # Errors
    /// As [`BlockingQueue::poll`].
    ///
    /// # Cancel safety
    /// Cancel safe: payloads on their way to a dropped future go back to the head of the list, in order.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// for order in orders.poll_many(100).await? {
    ///     match order {
    ///         Ok(order) => println!("{order}"),
    ///         Err(error) => eprintln!("{error}: {:?}", error.payload()), // Off the list like the others.
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "drain")]
    #[doc(alias = "drainTo")]
    #[doc(alias = "poll")]
    #[doc(alias = "pollFirst")]
    pub async fn poll_many(&self, max: usize) -> Result<Vec<Result<T>>> {
        const VERB: &str = "poll_many";
        if max == 0 {
            return Ok(Vec::new());
        }
        self.watch(VERB)?;
        let wanted = Wanted::many(End::Head, self.queue.keys.clone(), max);
        let popped = self
            .queue
            .engine
            .pops
            .poll(&self.queue.conn, wanted)
            .await
            .map_err(|error| self.queue.op(VERB).failed(error))?;
        self.decode_each(VERB, popped)
    }

    /// Takes all payloads as they become ready, one after the other, as a stream: Redisson's
    /// `subscribeOnElements`. The stream ends when the client stops taking or is shut down. At most once, as
    /// [`BlockingQueue::take`].
    ///
    /// # Errors
    /// The errors of [`BlockingQueue::take`] are items and do not end the stream, except
    /// [`Closed`](crate::ErrorKind::Closed), which is its end.
    ///
    /// # Cancel safety
    /// Cancel safe: a `next()` may be dropped at any time, and a payload on its way stays in the stream.
    /// Dropping the stream returns that payload, as [`BlockingQueue::take`] does.
    ///
    /// # Examples
    /// ```no_run
    /// use futures::StreamExt; // Of the crate `futures`.
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let mut orders = client.blocking_queue("orders", codec::String).into_stream();
    /// while let Some(order) = orders.next().await {
    ///     println!("{}", order?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "subscribeOnElements")]
    #[doc(alias = "subscribeOnFirstElements")]
    #[doc(alias = "unsubscribe")]
    #[must_use = "streams do nothing unless polled"]
    pub fn into_stream(self) -> PayloadStream<T> {
        PayloadStream::new(self)
    }

    /// One payload of this queue.
    pub(super) fn one(&self, verb: &'static str, end: End) -> Result<Wanted> {
        let counters = self.watch(verb)?;
        Ok(Wanted::one(end, vec![self.queue.keys.clone()], counters))
    }

    /// From now on this handle keeps its delayed queue moving.
    pub(crate) fn watch(&self, verb: &'static str) -> Result<Vec<Arc<QueueCounters>>> {
        self.check_taking(verb)?;
        Ok(self.keep_moving(std::slice::from_ref(&self.queue.keys)))
    }

    /// An error when the client takes no more.
    pub(crate) fn check_taking(&self, verb: &'static str) -> Result<()> {
        let op = self.queue.op(verb);
        self.queue.engine.pops.check_open().map_err(|error| op.failed(error))?;
        op.ensure_whole()
    }

    pub(crate) fn payload(
        &self,
        verb: &'static str,
        answer: std::result::Result<Option<Popped>, OpError>,
    ) -> Result<Option<T>> {
        let popped = answer.map_err(|error| self.queue.op(verb).failed(error))?;
        self.decode_each(verb, popped)?.pop().transpose()
    }

    /// Reads popped payloads; from here on the caller owns them.
    pub(super) fn decode_each(
        &self,
        verb: &'static str,
        popped: impl IntoIterator<Item = Popped>,
    ) -> Result<Vec<Result<T>>> {
        let mut payloads = Vec::new();
        for popped in popped {
            match popped.read() {
                Ok(more) => payloads.extend(more),
                Err(error) if payloads.is_empty() => return Err(self.queue.op(verb).failed(error)),
                // Payloads that were read before the error are here, and must not be lost with it.
                Err(_) => break,
            }
        }
        Ok(payloads.into_iter().map(|payload| self.queue.op(verb).decode(&*self.codec, payload)).collect())
    }
}
