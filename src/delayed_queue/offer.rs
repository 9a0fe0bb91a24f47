//! Offering: encode, then store exactly once.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::future::BoxFuture;

use super::batcher::Batcher;
use super::store::When;
use super::{DelayedQueue, Ticket};
use crate::error::Result;
use crate::queue::{AsValue, Op, Queue};
use crate::telemetry::events::Span;
use crate::wire::entry::{self, EntryFormat};
use crate::wire::time;

/// One payload on its way into a delayed queue. [`DelayedQueue::offer`] and [`DelayedQueue::offer_at`] return
/// it.
///
/// It is a future: awaiting it stores the payload and returns its [`Ticket`]. Options are set before that.
/// The value is already encoded, so an `Offer` borrows nothing and can be spawned.
///
/// # Errors
/// * [`Encode`](crate::ErrorKind::Encode), [`Invalid`](crate::ErrorKind::Invalid) (a delay of 10^15 ms or
///   more, a payload over the limit): nothing was sent.
/// * [`Refused`](crate::ErrorKind::Refused): one of the delayed queue's own keys has another type, the user
///   lacks a permission, or the server is out of memory. The payload is not stored. (The target is checked
///   only when the payload is due.)
/// * [`Full`](crate::ErrorKind::Full): with [`set_max_pending`](crate::DelayedQueue::set_max_pending), there
///   is no room. The payload is not stored.
/// * [`Unavailable`](crate::ErrorKind::Unavailable): no connection within the command timeout. The payload is
///   not stored.
/// * [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown): no try was answered in time, so the payload is
///   stored once or not at all. A lost reply alone is no error: the offer is sent again, for about another
///   command timeout. The server recognizes a second try by a key that the first one left, even if the
///   payload was delivered or removed in the meantime: `Ok` means that it was stored once.
///   `docs/guarantees.md` has the details.
///
/// # Cancel safety
/// Not cancel safe: if the future is dropped, the payload may or may not be stored. It is never stored in
/// part and never stored twice. An `Offer` that was never polled, or that was dropped before its call was
/// sent, stores nothing.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let orders = client.delayed_queue(&client.blocking_queue("orders", codec::Long));
/// let minute = Duration::from_secs(60);
/// let ticket = orders.offer(&7, minute).await?;
/// // Within 200 ms, or about twice as long if the reply is lost:
/// let ticket = orders.offer(&8, minute).timeout(Duration::from_millis(200)).await?;
/// // At the same time, in one call:
/// let tickets = futures::future::try_join_all([9, 10].map(|id| orders.offer(&id, minute))).await?;
/// let task = tokio::spawn(orders.offer(&11, minute));
/// task.await??;
/// # Ok(())
/// # }
/// ```
#[must_use = "an offer stores nothing until it is awaited"]
pub struct Offer(State);

enum State {
    /// Not polled yet. `None` after the first poll.
    Prepared(Option<Result<Prepared>>),
    Running(BoxFuture<'static, Result<Ticket>>),
}

/// Where an offer goes.
#[derive(Clone)]
pub(crate) struct Place {
    pub(super) queue: Arc<Queue>,
    pub(super) batcher: Batcher,
}

/// Where an offer with a key goes, if it may go to several places.
pub(crate) type PlaceOf = Arc<dyn Fn(&[u8]) -> Place + Send + Sync>;

/// An offer that is ready to be sent.
pub(super) struct Prepared {
    pub(super) place: Place,
    pub(super) place_of: Option<PlaceOf>,
    pub(super) verb: &'static str,
    pub(super) when: When,
    pub(super) time: u64,
    pub(super) format: EntryFormat,
    pub(super) entry: Bytes,
    pub(super) timeout: Option<Duration>,
}

/// # Offer
impl<T: 'static> DelayedQueue<T> {
    /// Offers a payload that becomes ready after `delay`. Awaiting the [`Offer`] stores it.
    ///
    /// The delay is rounded up to whole milliseconds, so that nothing is ready early. Zero means now.
    /// (Redisson refuses negative delays; a [`Duration`] has none.)
    ///
    /// Concurrent offers from many tasks, through clones of one handle, share a call: up to 256 offers and
    /// 256 KB. A lone one is sent by its first poll. Two offers keep their order only if the
    /// first was awaited before the second was made.
    ///
    /// # Errors
    /// [`Offer`] lists them. An error of the codec is returned when the offer is awaited.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the payload may or may not be stored. It is never stored in
    /// part and never stored twice.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let reminders = client.delayed_queue(&client.blocking_queue("reminders", codec::String));
    /// let ticket = reminders.offer("call back", Duration::from_secs(3600)).await?;
    /// reminders.cancel(&ticket).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "offerAsync")]
    pub fn offer(&self, value: impl AsValue<T>, delay: Duration) -> Offer {
        self.prepare(self.queue.op("offer"), value, When::After, time::millis(delay))
    }

    /// Offers a payload that becomes ready at this time, by the server's clock. A time in the past means now.
    /// Awaiting the [`Offer`] stores it. A `DateTime` of chrono converts by itself; for a `Timestamp` of jiff
    /// 1, write `SystemTime::try_from(timestamp)?`.
    ///
    /// # Errors
    /// As [`DelayedQueue::offer`].
    ///
    /// # Cancel safety
    /// As [`DelayedQueue::offer`].
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
    pub fn offer_at(&self, value: impl AsValue<T>, at: impl Into<SystemTime>) -> Offer {
        self.prepare(self.queue.op("offer_at"), value, When::At, time::epoch_millis(at.into()))
    }

    /// Offers many payloads, up to 500,000, each with its own delay, in one call: all are stored or none. The
    /// tickets are in the same order.
    ///
    /// # Errors
    /// Those of [`Offer`], and [`Invalid`](crate::ErrorKind::Invalid) for more than 500,000 payloads.
    /// Everything is encoded and checked before anything is sent.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, either all payloads are stored or none, and none twice.
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
        self.store_all(self.entries(values)?).await
    }

    /// The entries of an `offer_all`, which are encoded and checked before anything is sent.
    pub(crate) fn entries<'a>(
        &self,
        values: impl IntoIterator<Item = (&'a T, Duration)>,
    ) -> Result<Vec<(u64, Bytes)>>
    where
        T: 'a,
    {
        let op = self.queue.op("offer_all");
        let mut entries = Vec::new();
        for (value, delay) in values {
            let payload = op.encode(&*self.codec, value)?;
            let delay = time::millis(delay).map_err(|why| op.invalid(why))?;
            entries.push((delay, entry::pack(self.format, &payload)));
        }
        op.check_count(entries.len())?;
        op.ensure_open()?;
        Ok(entries)
    }

    pub(crate) async fn store_all(&self, entries: Vec<(u64, Bytes)>) -> Result<Vec<Ticket>> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let op = self.queue.op("offer_all");
        let span = Span::offer(&self.queue.keys, entries.len());
        let dues = span.run(self.batcher.store_all(When::After, &entries)).await;
        let dues = dues.map_err(|error| op.failed(error))?;
        let tickets = entries.into_iter().zip(dues);
        Ok(tickets.map(|((_, entry), due)| Ticket::new(&self.queue.keys, entry, due)).collect())
    }

    pub(crate) fn place(&self) -> Place {
        Place { queue: self.queue.clone(), batcher: self.batcher.clone() }
    }

    fn prepare(
        &self,
        op: Op<'_>,
        value: impl AsValue<T>,
        when: When,
        time: std::result::Result<u64, String>,
    ) -> Offer {
        let prepare = || {
            let payload = op.encode(&*self.codec, value)?;
            Ok(Prepared {
                place: self.place(),
                place_of: None,
                verb: op.verb(),
                when,
                time: time.map_err(|why| op.invalid(why))?,
                format: self.format,
                entry: entry::pack(self.format, &payload),
                timeout: None,
            })
        };
        Offer(State::Prepared(Some(prepare())))
    }
}

impl Offer {
    /// Uses this timeout for the offer instead of the client's command timeout. A timeout below 1 ms counts
    /// as 1 ms. Such an offer is sent at once, in a separate call.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::DelayedQueue;
    /// # async fn example(orders: DelayedQueue<i64>) -> redelay::Result<()> {
    /// // In an HTTP handler that must answer soon.
    /// orders.offer(&7, Duration::from_secs(60)).timeout(Duration::from_millis(200)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn timeout(mut self, timeout: Duration) -> Self {
        if let State::Prepared(Some(Ok(prepared))) = &mut self.0 {
            prepared.timeout = Some(timeout);
        }
        self
    }
}

impl Offer {
    /// If it gets a key, it goes where this key belongs.
    pub(crate) fn among(mut self, place_of: PlaceOf) -> Self {
        if let State::Prepared(Some(Ok(prepared))) = &mut self.0 {
            prepared.place_of = Some(place_of);
        }
        self
    }

    /// What was to be offered, for a future of another kind.
    pub(super) fn into_prepared(self) -> Option<Result<Prepared>> {
        match self.0 {
            State::Prepared(prepared) => prepared,
            State::Running(_) => None,
        }
    }
}

impl Prepared {
    async fn store(self) -> Result<Ticket> {
        let Place { queue, batcher } = &self.place;
        let op = queue.op(self.verb);
        op.ensure_open()?;
        let keys = &queue.keys;
        let span = Span::offer(keys, 1);
        let due = match self.timeout {
            None => span.run(batcher.store(self.when, self.time, self.entry.clone())).await,
            Some(timeout) => {
                let batcher = batcher.with_timeout(timeout);
                let entries = [(self.time, self.entry.clone())];
                // In a box, or each offer without a timeout would have room for this call.
                span.run(Box::pin(batcher.store_all(self.when, &entries))).await.map(|dues| dues[0])
            }
        };
        let due = due.map_err(|error| op.failed(error))?;
        Ok(Ticket::new(keys, self.entry, due))
    }
}

impl Future for Offer {
    type Output = Result<Ticket>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let State::Prepared(prepared) = &mut self.0 {
            match prepared.take().expect("an offer that returned an error is not polled again") {
                Ok(prepared) => self.0 = State::Running(Box::pin(prepared.store())),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        match &mut self.0 {
            State::Running(running) => running.as_mut().poll(context),
            State::Prepared(_) => Poll::Pending,
        }
    }
}

impl fmt::Debug for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offer").finish_non_exhaustive()
    }
}
