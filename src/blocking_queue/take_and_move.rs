//! Taking from the tail of one list to the head of another: a payload is in one of the two at any time.

use std::time::Duration;

use super::BlockingQueue;
use crate::conn::OpError;
use crate::error::Result;
use crate::pops::Wanted;

impl<T: 'static> BlockingQueue<T> {
    /// Moves the last payload of this queue to the head of another, and returns it; `None` when nothing is
    /// ready. It is in one of the two at any time.
    ///
    /// # Errors
    /// [`Decode`](crate::ErrorKind::Decode): the payload is moved all the same, its bytes are in
    /// [`Error::payload`](crate::Error::payload). [`Refused`](crate::ErrorKind::Refused): one of the keys is
    /// no list, or rights are missing. [`Closed`](crate::ErrorKind::Closed).
    /// [`Unavailable`](crate::ErrorKind::Unavailable) without a connection.
    /// [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when the reply was lost, or the server does not
    /// answer: one payload may be moved, and a second try may move another.
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, the payload may or may not be moved.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// orders.offer_all(&[7, 8]).await?;
    /// assert_eq!(orders.poll_last_and_offer_first_to("archive").await?, Some(8));
    /// // 8 is the next to be taken from `archive`, and 7 from here.
    /// # Ok(())
    /// # }
    /// ```
    pub async fn poll_last_and_offer_first_to(&self, destination: &str) -> Result<Option<T>> {
        const VERB: &str = "poll_last_and_offer_first_to";
        let wanted = self.moving(VERB, destination)?;
        let answer = self.queue.engine.pops.poll(wanted).await;
        self.payload(VERB, answer)
    }

    /// As [`BlockingQueue::poll_last_and_offer_first_to`], and waits for a payload, ms-exact.
    ///
    /// # Errors
    /// As [`BlockingQueue::poll_last_and_offer_first_to`], but
    /// [`Unavailable`](crate::ErrorKind::Unavailable) and
    /// [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) only when the time is over, as
    /// [`BlockingQueue::poll_timeout`]. A connection that was lost before that is no error: it may have moved
    /// a payload of which nobody is told, and the next one is waited for. When the time is over before there
    /// is a connection again, that is `OutcomeUnknown`, too.
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, the payload may or may not be moved.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// // The worker's own list still has the order if the worker dies.
    /// let mine = client.blocking_queue("worker-3", codec::Long);
    /// let wait = Duration::from_secs(10);
    /// if let Some(order) = orders.poll_last_and_offer_first_to_timeout("worker-3", wait).await? {
    ///     println!("{order}");
    ///     mine.remove(&order).await?; // Done.
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn poll_last_and_offer_first_to_timeout(
        &self,
        destination: &str,
        timeout: Duration,
    ) -> Result<Option<T>> {
        const VERB: &str = "poll_last_and_offer_first_to_timeout";
        let wanted = self.moving(VERB, destination)?;
        let answer = self.queue.engine.pops.wait_for(wanted, timeout).await;
        self.payload(VERB, answer)
    }

    /// As [`BlockingQueue::poll_last_and_offer_first_to`], and waits for as long as it takes.
    ///
    /// # Errors
    /// [`Decode`](crate::ErrorKind::Decode), [`Refused`](crate::ErrorKind::Refused),
    /// [`Closed`](crate::ErrorKind::Closed), as [`BlockingQueue::poll_last_and_offer_first_to`]. A lost
    /// connection is no error: it may have moved a payload of which nobody is told, and the next one is
    /// waited for.
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, the payload may or may not be moved.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// loop {
    ///     let order = orders.take_last_and_offer_first_to("billing").await?;
    ///     println!("{order} is on its way to billing");
    /// }
    /// # }
    /// ```
    pub async fn take_last_and_offer_first_to(&self, destination: &str) -> Result<T> {
        const VERB: &str = "take_last_and_offer_first_to";
        let wanted = self.moving(VERB, destination)?;
        let answer = self.queue.engine.pops.wait(wanted).await;
        match self.payload(VERB, answer)? {
            Some(value) => Ok(value),
            None => Err(self.queue.op(VERB).failed(OpError::Closed)),
        }
    }

    fn moving(&self, verb: &'static str, destination: &str) -> Result<Wanted> {
        let counters = self.own_list(verb)?.counters;
        Ok(Wanted::moved(self.queue.keys.clone(), counters, self.queue.engine.target(destination)))
    }
}
