//! Taking entries out before they are due: always out of both structures.

use std::time::Duration;

use bytes::Bytes;

use super::DelayedQueue;
use crate::conn::{Command, OpError};
use crate::error::Result;
use crate::queue::{AsValue, Op};
use crate::scripts;
use crate::telemetry::events;
use crate::wire::time;

impl<T: 'static> DelayedQueue<T> {
    /// Takes the payload offered first out of the queue, due or not.
    ///
    /// # Errors
    /// [`Decode`](crate::ErrorKind::Decode): the payload is out of the queue, its bytes are in
    /// [`Error::payload`](crate::Error::payload). [`Refused`](crate::ErrorKind::Refused): a key of another
    /// type, or missing rights. [`Closed`](crate::ErrorKind::Closed).
    /// [`Unavailable`](crate::ErrorKind::Unavailable) without a connection, or when the server does not
    /// answer; what it may have polled then goes back. A lost reply is asked for again, and costs nothing.
    ///
    /// # Cancel safety
    /// Cancel safe: what a dropped future had polled goes back to where it was, with its due time.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// // The service is given up: what is left is done now, before it is due.
    /// while let Some(job) = jobs.poll().await? {
    ///     println!("{job}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn poll(&self) -> Result<Option<T>> {
        let mut polled = self.poll_entries(self.queue.op("poll"), 1).await?;
        polled.pop().transpose()
    }

    /// Takes up to `n` payloads out of the queue, due or not, in the order in which they were offered:
    /// Redisson's `poll(int)`; fewer if they do not come within the command timeout. Each is decoded by
    /// itself, so that one that does not decode costs no other.
    ///
    /// # Errors
    /// As [`DelayedQueue::poll`].
    ///
    /// # Cancel safety
    /// Cancel safe: as [`DelayedQueue::poll`].
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// for job in jobs.poll_many(100).await? {
    ///     match job {
    ///         Ok(job) => println!("{job}"),
    ///         Err(error) => eprintln!("{error}: {:?}", error.payload()), // The others are not lost with it.
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "poll")]
    pub async fn poll_many(&self, n: usize) -> Result<Vec<Result<T>>> {
        if n == 0 {
            return Ok(Vec::new());
        }
        self.poll_entries(self.queue.op("poll_many"), n).await
    }

    async fn poll_entries(&self, op: Op<'_>, n: usize) -> Result<Vec<Result<T>>> {
        op.ensure_open()?;
        let polled = self.queue.engine.early_polls.poll(&self.queue.keys, n).await;
        let polled = polled.and_then(|held| held.read().ok_or(OpError::Closed));
        let polled = polled.map_err(|error| op.failed(error))?;
        Ok(polled.into_payloads().map(|payload| op.decode(&*self.codec, payload)).collect())
    }

    /// Removes the first offered payload with the same bytes; whether there was one. Reads through the list
    /// on the server: with a [`Ticket`](crate::Ticket), [`DelayedQueue::cancel`] is the cheaper way.
    ///
    /// # Errors
    /// [`Encode`](crate::ErrorKind::Encode) or [`Invalid`](crate::ErrorKind::Invalid) (over the size limit)
    /// before anything is sent. [`Unavailable`](crate::ErrorKind::Unavailable) or
    /// [`Refused`](crate::ErrorKind::Refused) (a key of another type): nothing was removed.
    /// [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when the reply was lost: then it may be removed,
    /// and a repetition may remove a second one.
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, it may or may not be removed.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// jobs.offer(&7, Duration::from_secs(60)).await?;
    /// jobs.offer(&7, Duration::from_secs(5)).await?;
    /// jobs.remove(&7).await?; // The one of a minute, which was offered first. The other comes in 5 s.
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove(&self, value: impl AsValue<T>) -> Result<bool> {
        let op = self.queue.op("remove");
        self.remove_by(op, "first", vec![op.encode(&*self.codec, value)?]).await
    }

    /// Removes every payload that has the same bytes as one of these, up to 500,000; whether any was removed.
    ///
    /// # Errors
    /// As [`DelayedQueue::remove`], and [`Invalid`](crate::ErrorKind::Invalid) for more than 500,000. After
    /// [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown), to repeat it is harmless, but may answer false.
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, they may or may not be removed.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// let paid = [7, 8, 9];
    /// if !jobs.remove_all(&paid).await? {
    ///     println!("none of them was pending; what is ready already is not looked at");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove_all<'a>(&self, values: impl IntoIterator<Item = &'a T>) -> Result<bool>
    where
        T: 'a,
    {
        let op = self.queue.op("remove_all");
        self.remove_by(op, "all", op.encode_all(&*self.codec, values)?).await
    }

    /// Removes every payload that has the same bytes as none of these, up to 500,000, so that it is never
    /// delivered (Redisson's `retainAll` delivers it all the same); whether any was removed.
    ///
    /// # Errors
    /// As [`DelayedQueue::remove_all`].
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, the others may or may not be removed.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// jobs.offer_all([(&7, Duration::from_secs(5)), (&8, Duration::from_secs(5))]).await?;
    /// jobs.retain_all(&[8]).await?;
    /// assert_eq!(jobs.read_all().await?, [8]); // 7 is never delivered.
    /// # Ok(())
    /// # }
    /// ```
    pub async fn retain_all<'a>(&self, values: impl IntoIterator<Item = &'a T>) -> Result<bool>
    where
        T: 'a,
    {
        let op = self.queue.op("retain_all");
        self.remove_by(op, "all_except", op.encode_all(&*self.codec, values)?).await
    }

    async fn remove_by(&self, op: Op<'_>, which: &'static str, payloads: Vec<Bytes>) -> Result<bool> {
        let keys = &self.queue.keys;
        let call = scripts::REMOVE.on(&[keys.timeout_set(), keys.ordered_list()]).arg(which).args(payloads);
        op.any(op.run(call).await?)
    }

    /// Takes the payload offered last out of the queue, due or not, and puts it at the head of another list;
    /// `None` when nothing is pending. It is in one of the two at any time.
    ///
    /// # Errors
    /// [`Decode`](crate::ErrorKind::Decode): the payload is moved all the same, its bytes are in
    /// [`Error::payload`](crate::Error::payload). [`Unavailable`](crate::ErrorKind::Unavailable) or
    /// [`Refused`](crate::ErrorKind::Refused) (a key of another type): nothing was moved.
    /// [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when the reply was lost: one payload may be
    /// moved, and a second try may move another.
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, the payload may or may not be moved.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// jobs.offer(&7, Duration::from_secs(60)).await?;
    /// // Ready at once, and the next to be taken from `urgent`.
    /// jobs.poll_last_and_offer_first_to("urgent").await?;
    /// let urgent = client.blocking_queue("urgent", codec::Long);
    /// assert_eq!(urgent.take().await?, 7);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn poll_last_and_offer_first_to(&self, destination: &str) -> Result<Option<T>> {
        let op = self.queue.op("poll_last_and_offer_first_to");
        let keys = &self.queue.keys;
        let destination = self.queue.engine.target(destination);
        let call = scripts::POLL_LAST_AND_OFFER_FIRST_TO.on(&[
            keys.timeout_set(),
            keys.ordered_list(),
            keys.quarantine(),
            &destination,
        ]);
        let [quarantined, payload] = op.parts(op.run(call).await?)?;
        let quarantined = op.int(quarantined)?;
        if self.queue.counters.quarantined(quarantined) {
            events::quarantined(keys, quarantined);
        }
        let payload = op.optional_bytes(payload)?;
        payload.map(|payload| op.decode(&*self.codec, payload)).transpose()
    }

    /// Drops everything that is pending; whether there was anything. What is ready stays, and so does what is
    /// quarantined.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) or [`Refused`](crate::ErrorKind::Refused) (missing
    /// rights): nothing was dropped. [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when the reply was
    /// lost: to repeat it is harmless, but may answer false.
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, it may or may not be done.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let ready = client.blocking_queue("jobs", codec::Long);
    /// let jobs = client.delayed_queue(&ready);
    /// jobs.clear().await?;
    /// println!("{} were ready before, and can still be taken", ready.len().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn clear(&self) -> Result<bool> {
        self.remove_keys(self.queue.op("clear")).await
    }

    /// The same as [`DelayedQueue::clear`]: an empty queue does not exist.
    ///
    /// # Errors
    /// As [`DelayedQueue::clear`].
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, it may or may not be done.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// jobs.delete().await?;
    /// jobs.offer(&7, Duration::from_secs(60)).await?; // The handle is as good as before.
    /// # Ok(())
    /// # }
    /// ```
    pub async fn delete(&self) -> Result<bool> {
        self.remove_keys(self.queue.op("delete")).await
    }

    async fn remove_keys(&self, op: Op<'_>) -> Result<bool> {
        let keys = &self.queue.keys;
        let command = Command::new("DEL").arg(keys.ordered_list().clone()).arg(keys.timeout_set().clone());
        op.any(op.call(command).await?)
    }

    /// Lets everything that is pending vanish after this time, ms-exact; whether there was anything.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a time of 10^15 ms or more.
    /// [`Unavailable`](crate::ErrorKind::Unavailable) or [`Refused`](crate::ErrorKind::Refused) (missing
    /// rights): it is not set. [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when no reply came: to
    /// repeat it is harmless, and counts the time from then.
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, it may or may not be set.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// jobs.offer(&7, Duration::from_secs(60)).await?;
    /// // Gone before it is due: nobody gets it. What is offered meanwhile goes with it.
    /// assert!(jobs.expire(Duration::from_secs(30)).await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn expire(&self, after: Duration) -> Result<bool> {
        let op = self.queue.op("expire");
        let millis = time::millis(after).map_err(|why| op.invalid(why))?;
        let keys = &self.queue.keys;
        let call = scripts::EXPIRE.on(&[keys.timeout_set(), keys.ordered_list()]).number(millis);
        op.any(op.run(call.idempotent()).await?)
    }
}
