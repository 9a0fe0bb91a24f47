//! Everything that takes: a payload leaves the list, and arrives or comes back.

use std::time::Duration;

use super::{BlockingQueue, PayloadStream};
use crate::conn::OpError;
use crate::error::Result;
use crate::pops::{End, Lists, Popped, Wanted};

impl<T: 'static> BlockingQueue<T> {
    /// Waits for the next payload, for as long as it takes, through reconnections and restarts of the server.
    /// Takers of one client are served in the order in which they began.
    ///
    /// The death of the connection can cost one payload, which the server had popped for it: see
    /// [`BlockingQueue`](BlockingQueue#what-a-lost-connection-can-cost).
    ///
    /// # Errors
    /// [`Decode`](crate::ErrorKind::Decode): the payload is off the list, its bytes are in
    /// [`Error::payload`](crate::Error::payload). [`Refused`](crate::ErrorKind::Refused): the key is no list,
    /// or rights are missing. [`Closed`](crate::ErrorKind::Closed). A lost connection is no error; it is
    /// waited for, also when the server refuses the user meanwhile (feature `tracing` tells of that).
    ///
    /// # Cancel safety
    /// Cancel safe: a payload on its way to a dropped future goes to the next taker, or back to the head of
    /// the list. Order holds among the takers of this client, not across processes.
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
    pub async fn take(&self) -> Result<T> {
        self.take_from("take", End::Head).await
    }

    /// As [`BlockingQueue::take`], from the tail of the list: Redisson's `RBlockingDeque.takeLast`.
    ///
    /// # Errors
    /// As [`BlockingQueue::take`].
    ///
    /// # Cancel safety
    /// Cancel safe: as [`BlockingQueue::take`]; what comes back goes to the tail.
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
    pub async fn take_last(&self) -> Result<T> {
        self.take_from("take_last", End::Tail).await
    }

    async fn take_from(&self, verb: &str, end: End) -> Result<T> {
        let lists = self.own_list(verb)?;
        let answer = self.queue.engine.pops.wait(Wanted::one(end, lists)).await;
        match self.payload(verb, answer)? {
            Some(value) => Ok(value),
            None => Err(self.queue.failed(verb)(OpError::Closed)),
        }
    }

    /// The first payload, or `None` when nothing is ready. Does not wait.
    ///
    /// # Errors
    /// As [`BlockingQueue::take`], and [`Unavailable`](crate::ErrorKind::Unavailable) without a connection,
    /// or when the server does not answer; what it may have popped then goes back to the list.
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
    /// println!("that was all; for what is still pending, `take` would wait");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn poll(&self) -> Result<Option<T>> {
        self.poll_end("poll", End::Head).await
    }

    /// As [`BlockingQueue::poll`], from the tail of the list.
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
    /// // Too many to be done now: the newest one is put off.
    /// if let Some(order) = orders.poll_last().await? {
    ///     client.delayed_queue(&orders).offer(&order, Duration::from_secs(60)).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn poll_last(&self) -> Result<Option<T>> {
        self.poll_end("poll_last", End::Tail).await
    }

    async fn poll_end(&self, verb: &str, end: End) -> Result<Option<T>> {
        let lists = self.own_list(verb)?;
        let answer = self.queue.engine.pops.poll(Wanted::one(end, lists)).await;
        self.payload(verb, answer)
    }

    /// The next payload, or `None` when none came within this time, ms-exact (Redisson truncates it to whole
    /// seconds, and takes zero for ever). The list is looked at at least once, whatever the time.
    ///
    /// # Errors
    /// As [`BlockingQueue::take`], and when the time is over: [`Unavailable`](crate::ErrorKind::Unavailable)
    /// when there has been no connection for a second or more, or the server does not answer,
    /// [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when the connection is lost just then. Either can
    /// have cost [a payload](BlockingQueue#what-a-lost-connection-can-cost); to take again is right.
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
    pub async fn poll_timeout(&self, timeout: Duration) -> Result<Option<T>> {
        let lists = self.own_list("poll_timeout")?;
        let answer = self.queue.engine.pops.wait_for(Wanted::one(End::Head, lists), timeout).await;
        self.payload("poll_timeout", answer)
    }

    /// As [`BlockingQueue::poll_timeout`], from the tail of the list.
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
    /// // Zero looks once, and is not for ever as in Redisson.
    /// let newest = orders.poll_last_timeout(Duration::ZERO).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn poll_last_timeout(&self, timeout: Duration) -> Result<Option<T>> {
        let lists = self.own_list("poll_last_timeout")?;
        let answer = self.queue.engine.pops.wait_for(Wanted::one(End::Tail, lists), timeout).await;
        self.payload("poll_last_timeout", answer)
    }

    /// Takes up to `max` payloads that are ready, in order, without waiting: Redisson's `drainTo` and
    /// `poll(int)`. `usize::MAX` takes all, or as many as come within the command timeout. Each is decoded by
    /// itself, so that one that does not decode costs no other.
    ///
    /// # Errors
    /// As [`BlockingQueue::poll`].
    ///
    /// # Cancel safety
    /// Cancel safe: payloads on their way to a dropped future come back to the head of the list, in order.
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
    #[doc(alias = "drainTo")]
    #[doc(alias = "poll")]
    #[doc(alias = "drain")]
    pub async fn poll_many(&self, max: usize) -> Result<Vec<Result<T>>> {
        if max == 0 {
            return Ok(Vec::new());
        }
        self.own_list("poll_many")?;
        let wanted = Wanted::many(End::Head, self.queue.keys.clone(), max);
        let popped = self.queue.engine.pops.poll(wanted).await.map_err(self.queue.failed("poll_many"))?;
        self.decode_each("poll_many", popped)
    }

    /// All that comes, one after the other, as a stream that ends when the client is shut down.
    ///
    /// # Errors
    /// Errors are items, as [`BlockingQueue::take`] has them, and do not end the stream. Only
    /// [`Closed`](crate::ErrorKind::Closed) is none: it is the end.
    ///
    /// # Cancel safety
    /// Cancel safe: a `next()` may be dropped at any time, and a payload on its way stays in the stream.
    /// Dropping the stream gives it back, as [`BlockingQueue::take`] does.
    ///
    /// # Examples
    /// ```no_run
    /// # use futures::StreamExt;
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
    #[must_use = "streams do nothing unless polled"]
    pub fn into_stream(self) -> PayloadStream<T> {
        PayloadStream::new(self)
    }

    /// The list of this queue alone, which is kept moving from now on.
    pub(super) fn own_list(&self, verb: &str) -> Result<Lists> {
        self.check_taking(verb)?;
        Ok(self.keep_moving(vec![self.queue.keys.clone()]))
    }

    /// An error when the client takes no more.
    pub(super) fn check_taking(&self, verb: &str) -> Result<()> {
        self.queue.engine.pops.check_open().map_err(self.queue.failed(verb))
    }

    pub(super) fn payload(
        &self,
        verb: &str,
        answer: std::result::Result<Option<Popped>, OpError>,
    ) -> Result<Option<T>> {
        let popped = answer.map_err(self.queue.failed(verb))?;
        self.decode_each(verb, popped)?.pop().transpose()
    }

    /// Reads what was popped: from here on it is the caller's.
    pub(super) fn decode_each(
        &self,
        verb: &str,
        popped: impl IntoIterator<Item = Popped>,
    ) -> Result<Vec<Result<T>>> {
        let mut payloads = Vec::new();
        for popped in popped {
            match popped.read() {
                Ok(more) => payloads.extend(more),
                Err(error) if payloads.is_empty() => return Err(self.queue.failed(verb)(error)),
                // What came before is here, and must not go with it.
                Err(_) => break,
            }
        }
        Ok(payloads.into_iter().map(|payload| self.queue.decode(verb, payload)).collect())
    }
}
