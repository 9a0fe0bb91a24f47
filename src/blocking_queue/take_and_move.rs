//! Taking from the tail of one list to the head of another: a payload is in one of the two at any time.

use std::time::Duration;

use super::BlockingQueue;
use crate::conn::OpError;
use crate::error::Result;
use crate::pops::Wanted;

impl<T: 'static> BlockingQueue<T> {
    /// Moves the last payload of this queue to the head of another, and returns it; `None` when nothing is ready.
    /// It is in one of the two at any time.
    ///
    /// # Errors
    /// As [`BlockingQueue::poll`]; a payload that does not decode has been moved all the same.
    ///
    /// # Cancel safety
    /// Nothing is lost: when the future is dropped, the payload may or may not have been moved.
    pub async fn poll_last_and_offer_first_to(&self, destination: &str) -> Result<Option<T>> {
        const VERB: &str = "poll_last_and_offer_first_to";
        let wanted = self.moving(VERB, destination)?;
        let answer = self.queue.engine.pops.poll(wanted).await;
        self.payload(VERB, answer)
    }

    /// As [`BlockingQueue::poll_last_and_offer_first_to`], and waits for a payload, ms-exact.
    ///
    /// # Errors
    /// As [`BlockingQueue::poll_timeout`].
    ///
    /// # Cancel safety
    /// As [`BlockingQueue::poll_last_and_offer_first_to`].
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
    /// As [`BlockingQueue::take`].
    ///
    /// # Cancel safety
    /// As [`BlockingQueue::poll_last_and_offer_first_to`].
    pub async fn take_last_and_offer_first_to(&self, destination: &str) -> Result<T> {
        const VERB: &str = "take_last_and_offer_first_to";
        let wanted = self.moving(VERB, destination)?;
        let answer = self.queue.engine.pops.wait(wanted).await;
        match self.payload(VERB, answer)? {
            Some(value) => Ok(value),
            None => Err(self.queue.failed(VERB)(OpError::Closed)),
        }
    }

    fn moving(&self, verb: &str, destination: &str) -> Result<Wanted> {
        self.own_list(verb)?;
        Ok(Wanted::moved(self.queue.keys.clone(), self.queue.engine.target(destination)))
    }
}
