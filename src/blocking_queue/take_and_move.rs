//! Taking from the tail of one list to the head of another: a payload is in one of the two at any time.

use std::time::Duration;

use super::BlockingQueue;
use crate::conn::OpError;
use crate::error::Result;
use crate::pops::Wanted;

/// # Take and move
impl<T: 'static> BlockingQueue<T> {
    /// Moves the last payload of this queue to the head of another queue and returns it: Redisson's
    /// `pollLastAndOfferFirstTo`. `None` when nothing is ready; it does not wait. The move is atomic, so the
    /// payload is in one of the two lists at any time. The return value is delivered at most once.
    ///
    /// # Errors
    /// * [`Decode`](crate::ErrorKind::Decode): the payload was moved; its bytes are in
    ///   [`Error::payload`](crate::Error::payload).
    /// * [`Refused`](crate::ErrorKind::Refused): one of the keys is not a list, or a permission is missing.
    /// * [`Closed`](crate::ErrorKind::Closed): after [`Client::stop_taking`](crate::Client::stop_taking) or
    ///   [`Client::shutdown`](crate::Client::shutdown).
    /// * [`Unavailable`](crate::ErrorKind::Unavailable): there is no connection.
    /// * [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown): the reply was lost, or the server does not
    ///   answer. One payload may have been moved, and a retry may move another one.
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
    /// // The next `take` gets 8 from `archive`, and 7 from `orders`.
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "pollLastAndOfferFirstTo")]
    #[doc(alias = "move")]
    pub async fn poll_last_and_offer_first_to(&self, destination: &str) -> Result<Option<T>> {
        const VERB: &str = "poll_last_and_offer_first_to";
        let wanted = self.moving(VERB, destination)?;
        let answer = self.queue.engine.pops.poll(&self.queue.conn, wanted).await;
        self.payload(VERB, answer)
    }

    /// As [`BlockingQueue::poll_last_and_offer_first_to`], but waits for a payload for this time, which is
    /// exact to the millisecond: Redisson's `pollLastAndOfferFirstTo` with a timeout. The return value is
    /// delivered at most once.
    ///
    /// # Errors
    /// As [`BlockingQueue::poll_last_and_offer_first_to`], except for lost connections:
    /// * A connection that is lost before the time is over is not an error. The server may have moved a
    ///   payload that no caller gets; the call waits for the next one.
    /// * When the time is over, [`Unavailable`](crate::ErrorKind::Unavailable) and
    ///   [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) as in [`BlockingQueue::poll_timeout`]. It is
    ///   `OutcomeUnknown`, too, when a connection was lost and none was back before the end of the time.
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
    /// // If the worker dies, its own list still has the order.
    /// let mine = client.blocking_queue("worker-3", codec::Long);
    /// let wait = Duration::from_secs(10);
    /// if let Some(order) = orders.poll_last_and_offer_first_to_timeout("worker-3", wait).await? {
    ///     println!("{order}");
    ///     mine.remove(&order).await?; // Done.
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "pollLastAndOfferFirstTo")]
    pub async fn poll_last_and_offer_first_to_timeout(
        &self,
        destination: &str,
        timeout: Duration,
    ) -> Result<Option<T>> {
        const VERB: &str = "poll_last_and_offer_first_to_timeout";
        let wanted = self.moving(VERB, destination)?;
        let answer = self.queue.engine.pops.wait_for(&self.queue.conn, wanted, Some(timeout)).await;
        self.payload(VERB, answer)
    }

    /// As [`BlockingQueue::poll_last_and_offer_first_to`], but waits for a payload without a limit:
    /// Redisson's `takeLastAndOfferFirstTo`. The return value is delivered at most once.
    ///
    /// # Errors
    /// [`Decode`](crate::ErrorKind::Decode), [`Refused`](crate::ErrorKind::Refused) and
    /// [`Closed`](crate::ErrorKind::Closed), as [`BlockingQueue::poll_last_and_offer_first_to`]. After a
    /// refusal the next call pauses, as [`BlockingQueue::take`] does. A lost connection is not an error: the
    /// server may have moved a payload that no caller gets, and the call waits for the next one.
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
    #[doc(alias = "takeLastAndOfferFirstTo")]
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
        self.queue.op(verb).ensure_beside(destination)?;
        let counters = self.watch(verb)?;
        Ok(Wanted::moved(self.queue.keys.clone(), counters, self.queue.engine.target(destination)))
    }
}
