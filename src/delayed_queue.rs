//! `DelayedQueue`: payloads that are not due yet, under the names of Redisson's `RDelayedQueue`.
//!
//! Here are offering and tickets. Looking at what is pending is in `reading.rs`, what takes entries out before
//! they are due in `removal.rs`, and what nobody can read in `quarantine.rs`.

mod offer;
mod quarantine;
mod reading;
mod removal;
mod ticket;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;

pub use quarantine::Quarantined;
pub use ticket::Ticket;

use crate::conn::Reply;
use crate::error::Result;
use crate::queue::Queue;
use crate::scripts;
use crate::telemetry::events::Span;
use crate::transfer::Watch;
use crate::wire::entry::{self, EntryFormat};
use crate::wire::time;
use offer::{Gathering, When};

/// Payloads that become ready later: Redisson's `RDelayedQueue<T>`. Made by
/// [`Client::delayed_queue`](crate::Client::delayed_queue); cloning is cheap.
///
/// When its due time has come, a payload moves to the blocking queue behind it, where takers find it. While
/// the handle or a clone lives, this client does the moving; so does every other client, and every Redisson,
/// with a handle of its own. The server's clock decides what is due, so that clocks of producers need not
/// agree.
///
/// After [`Client::shutdown`](crate::Client::shutdown), whatever asks the server ends with
/// [`Closed`](crate::ErrorKind::Closed).
pub struct DelayedQueue<T> {
    queue: Queue<T>,
    format: EntryFormat,
    watch: Arc<Mutex<Option<Watch>>>,
    gathering: Gathering,
}

impl<T> Clone for DelayedQueue<T> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
            format: self.format,
            watch: self.watch.clone(),
            gathering: self.gathering.clone(),
        }
    }
}

impl<T> fmt::Debug for DelayedQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DelayedQueue").field("name", &self.queue.name).finish_non_exhaustive()
    }
}

impl<T: 'static> DelayedQueue<T> {
    pub(crate) fn new(queue: Queue<T>, format: EntryFormat) -> Self {
        let watch = queue.engine.watch(&queue.keys);
        let gathering = Gathering::new(queue.engine.conn.clone(), queue.keys.clone());
        Self { queue: queue.delayed(), format, watch: Arc::new(Mutex::new(watch)), gathering }
    }

    /// Writes entries in another layout. Both are always read; the older is for a fleet that still runs
    /// Redisson 3.21.0 or earlier. Defaults to [`EntryFormat::Current`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, EntryFormat, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let ready = client.blocking_queue("jobs", codec::Long);
    /// // For as long as a Redisson 3.21.0 reads this queue, too.
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

    /// The name of the blocking queue behind it, before any mapping.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let ready = client.blocking_queue("jobs", codec::Long);
    /// assert_eq!(client.delayed_queue(&ready).name(), "jobs"); // No name of its own.
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn name(&self) -> &str {
        &self.queue.name
    }

    /// Offers a payload that becomes ready after this delay. Whole milliseconds; what is left is rounded up,
    /// so that it is never ready early. Zero is now. (Redisson refuses negative delays; a [`Duration`] has
    /// none.)
    ///
    /// Offers that are made at the same time, from many tasks with clones of one handle, share a call, up to
    /// 256 of them and 256 KB. One that is not awaited before another call is made has no order with it.
    ///
    /// # Errors
    /// * [`Encode`](crate::ErrorKind::Encode), [`Invalid`](crate::ErrorKind::Invalid) (a delay of 10^15 ms or
    ///   more, a payload over the limit): nothing was sent.
    /// * [`Refused`](crate::ErrorKind::Refused): one of the delayed queue's own keys is of another type, or
    ///   there is no memory. It is not stored. (The target is looked at when the payload is due.)
    /// * [`Unavailable`](crate::ErrorKind::Unavailable): no connection within the command timeout; it is not
    ///   stored.
    /// * [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown): the reply was lost, and so were those of
    ///   further tries, or the due time had come meanwhile. A lost reply alone is no error: the offer is sent
    ///   again, for up to another command timeout, and is stored once.
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, the payload may or may not be stored, never in part and
    /// never twice.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let reminders = client.delayed_queue(&client.blocking_queue("reminders", codec::String));
    /// let ticket = reminders.offer(&"call back".to_owned(), Duration::from_secs(3600)).await?;
    /// reminders.cancel(&ticket).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn offer(&self, value: &T, delay: Duration) -> Result<Ticket> {
        const VERB: &str = "offer";
        let payload = self.queue.encode(VERB, value)?;
        let delay = time::millis(delay).map_err(|why| self.queue.refuse(VERB, why))?;
        self.store_one(VERB, When::After, delay, &payload).await
    }

    /// Offers a payload that becomes ready at this time, by the server's clock. A time in the past is now.
    ///
    /// # Errors
    /// As [`DelayedQueue::offer`].
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, the payload may or may not be stored, never in part and
    /// never twice.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::{Duration, UNIX_EPOCH};
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// let new_year = UNIX_EPOCH + Duration::from_secs(1_798_761_600); // 2027-01-01, 0:00 UTC
    /// jobs.offer_at(&7, new_year).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn offer_at(&self, value: &T, at: SystemTime) -> Result<Ticket> {
        const VERB: &str = "offer_at";
        let payload = self.queue.encode(VERB, value)?;
        let at = time::epoch_millis(at).map_err(|why| self.queue.refuse(VERB, why))?;
        self.store_one(VERB, When::At, at, &payload).await
    }

    /// Offers many payloads, up to 500,000, each with its own delay, in one call: all are stored or none. The
    /// tickets are in the same order.
    ///
    /// # Errors
    /// As [`DelayedQueue::offer`], and [`Invalid`](crate::ErrorKind::Invalid) for more than 500,000;
    /// everything is encoded and checked before anything is sent.
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, either all are stored or none, and none twice.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// let minutes = |n: u64| Duration::from_secs(60 * n);
    /// let tickets = jobs.offer_all([(&7, minutes(1)), (&8, minutes(5))]).await?;
    /// jobs.cancel(&tickets[1]).await?; // 8
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
        const VERB: &str = "offer_all";
        let mut entries = Vec::new();
        for (value, delay) in values {
            let payload = self.queue.encode(VERB, value)?;
            let delay = time::millis(delay).map_err(|why| self.queue.refuse(VERB, why))?;
            entries.push((delay, entry::pack(self.format, &payload)));
        }
        self.queue.check_number(VERB, entries.len())?;
        self.store(VERB, When::After, entries).await
    }

    async fn store_one(&self, verb: &str, when: When, time: u64, payload: &[u8]) -> Result<Ticket> {
        let entry = entry::pack(self.format, payload);
        let mut tickets = self.store(verb, when, vec![(time, entry)]).await?;
        Ok(tickets.remove(0))
    }

    async fn store(&self, verb: &str, when: When, entries: Vec<(u64, Bytes)>) -> Result<Vec<Ticket>> {
        self.queue.open(verb)?;
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let span = Span::offer(&self.queue.keys, entries.len());
        let dues =
            span.run(offer::store(&self.gathering, when, &entries)).await.map_err(self.queue.failed(verb))?;
        let tickets = entries.into_iter().zip(dues);
        Ok(tickets.map(|((_, entry), due)| Ticket::new(&self.queue.keys, entry, due)).collect())
    }

    /// Takes a pending payload back; whether it was still pending. Costs O(log n), and one scan of the list
    /// by the server itself, from the youngest entry on.
    ///
    /// # Errors
    /// [`Invalid`](crate::ErrorKind::Invalid) for a ticket of another queue.
    /// [`Unavailable`](crate::ErrorKind::Unavailable) or [`Refused`](crate::ErrorKind::Refused) (a key of
    /// another type): nothing was changed.
    /// [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown) when the reply was lost: to repeat it is
    /// harmless, but may answer false.
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, it may or may not be cancelled.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// let ticket = jobs.offer(&7, Duration::from_secs(60)).await?;
    /// if !jobs.cancel(&ticket).await? {
    ///     println!("too late: it is ready, or taken already");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cancel(&self, ticket: &Ticket) -> Result<bool> {
        const VERB: &str = "cancel";
        let entry = self.entry_of(VERB, ticket)?;
        let call =
            scripts::CANCEL.on(&[self.queue.keys.timeout_set(), self.queue.keys.ordered_list()]).arg(entry);
        let reply = self.queue.run(VERB, call).await?;
        Ok(self.queue.shape(VERB, reply.into_int())? > 0)
    }

    /// Gives a pending payload another delay, counted from now; whether it was still pending. Its place in
    /// [`DelayedQueue::read_all`] stays. O(log n).
    ///
    /// # Errors
    /// As [`DelayedQueue::cancel`], and [`Invalid`](crate::ErrorKind::Invalid) for a delay of 10^15 ms or
    /// more.
    /// After [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown), to repeat it counts the delay from then.
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, it may or may not be rescheduled.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// let alarm = jobs.offer(&7, Duration::from_secs(30)).await?;
    /// // A sign of life: the alarm is put off again.
    /// if !jobs.reschedule(&alarm, Duration::from_secs(30)).await? {
    ///     println!("it has gone off");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn reschedule(&self, ticket: &Ticket, delay: Duration) -> Result<bool> {
        const VERB: &str = "reschedule";
        let delay = time::millis(delay).map_err(|why| self.queue.refuse(VERB, why))?;
        self.set_due(VERB, ticket, When::After, delay).await
    }

    /// Gives a pending payload another due time, by the server's clock; whether it was still pending.
    /// O(log n).
    ///
    /// # Errors
    /// As [`DelayedQueue::cancel`], and [`Invalid`](crate::ErrorKind::Invalid) for a time of 10^15 ms or
    /// more.
    ///
    /// # Cancel safety
    /// Not cancel safe: when the future is dropped, it may or may not be rescheduled.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// let ticket = jobs.offer(&7, Duration::from_secs(60)).await?;
    /// // 10 minutes later than it was, whenever this is run.
    /// jobs.reschedule_at(&ticket, ticket.due() + Duration::from_secs(600)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn reschedule_at(&self, ticket: &Ticket, at: SystemTime) -> Result<bool> {
        const VERB: &str = "reschedule_at";
        let at = time::epoch_millis(at).map_err(|why| self.queue.refuse(VERB, why))?;
        self.set_due(VERB, ticket, When::At, at).await
    }

    async fn set_due(&self, verb: &str, ticket: &Ticket, when: When, time: u64) -> Result<bool> {
        let entry = self.entry_of(verb, ticket)?;
        let call = scripts::RESCHEDULE
            .on(&[self.queue.keys.timeout_set(), self.queue.keys.channel()])
            .arg(when.word())
            .number(time)
            .arg(entry);
        Ok(self.queue.run(verb, call).await? != Reply::Nil)
    }

    fn entry_of(&self, verb: &str, ticket: &Ticket) -> Result<Bytes> {
        if ticket.is_of(&self.queue.keys) {
            Ok(ticket.entry().clone())
        } else {
            Err(self.queue.refuse(verb, format!("the ticket is of another queue: `{}`", ticket.target())))
        }
    }

    /// Stops moving for this handle and its clones, and waits until it has stopped. What is pending stays,
    /// and is moved by whoever else watches, such as a blocking queue of this client that takes; offers are
    /// still accepted. Dropping the handle and its clones does the same, without waiting.
    ///
    /// # Cancel safety
    /// Cancel safe: it stops all the same.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.delayed_queue(&client.blocking_queue("jobs", codec::Long));
    /// jobs.destroy().await; // Others move what is pending,
    /// jobs.offer(&7, Duration::from_secs(60)).await?; // and what is offered from now on.
    /// # Ok(())
    /// # }
    /// ```
    pub async fn destroy(&self) {
        let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(watch) = watch {
            watch.close().await;
        }
    }
}
