//! Pause and limits of a whole queue, for the receivers of all processes.

use std::time::Duration;

use serde::Serialize;

use super::BlockingQueue;
use crate::conn::{Command, Reply};
use crate::error::Result;
use crate::queue::Op;
use crate::wire::time;

/// How many messages the receivers of all processes together may receive per time: at most `burst` at once,
/// and after that evenly. [`BlockingQueue::set_rate_limit`] accepts it.
///
/// In a time `t` they receive no more than `burst + messages · t / per`. Redeliveries count. Takers are not
/// limited.
///
/// # Examples
/// ```
/// # use std::time::Duration;
/// use redelay::blocking_queue::RateLimit;
///
/// let limit = RateLimit::new(50, Duration::from_secs(1)).burst(10);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct RateLimit {
    /// How many messages.
    pub messages: u32,
    /// In which time.
    #[serde(rename = "per_ms", serialize_with = "time::in_ms")]
    pub per: Duration,
    /// How many at once after a time without messages.
    pub burst: u32,
}

impl RateLimit {
    /// `messages` in each `per`, spread evenly, with a burst of 1. Up to a million messages a second. The
    /// time of one message is rounded up to whole microseconds.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # use redelay::blocking_queue::RateLimit;
    /// let limit = RateLimit::new(1000, Duration::from_secs(3600));
    /// ```
    #[must_use]
    pub fn new(messages: u32, per: Duration) -> Self {
        Self { messages, per, burst: 1 }
    }

    /// How many may be received at once after a time without messages. Defaults to 1.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// # use redelay::blocking_queue::RateLimit;
    /// let limit = RateLimit::new(50, Duration::from_secs(1)).burst(10);
    /// ```
    #[must_use]
    pub fn burst(self, burst: u32) -> Self {
        Self { burst, ..self }
    }

    /// The time of one message in µs.
    fn interval(&self) -> std::result::Result<u128, &'static str> {
        if self.burst == 0 {
            return Err("a burst of 0 lets nothing through; use 1 or more");
        }
        if self.messages == 0 {
            return Err("a rate of 0 would stop all receivers; use pause() for that");
        }
        if u128::from(self.messages) > self.per.as_micros() {
            return Err("a limit of more than a million messages a second");
        }
        let interval = self.per.as_micros().div_ceil(self.messages.into());
        if interval > MOST_INTERVAL {
            return Err("a limit of less than one message a day");
        }
        Ok(interval)
    }

    /// The limit in these fields of the control hash: [`FIELDS`](Self::FIELDS).
    pub(crate) fn stored([interval, messages, per, burst]: [Option<u64>; 4]) -> Option<Self> {
        let small = |number: u64| u32::try_from(number).ok();
        let burst = burst.and_then(small).unwrap_or(1);
        interval.filter(|interval| *interval > 0).map(|interval| {
            let given = messages.and_then(small).zip(per.map(Duration::from_nanos));
            let given = given.map(|(messages, per)| Self { messages, per, burst });
            // Otherwise, the time of one message was written by hand.
            let given = given.filter(|given| given.interval().is_ok_and(|given| given == interval.into()));
            given.unwrap_or(Self { messages: 1, per: Duration::from_micros(interval), burst })
        })
    }

    pub(crate) const FIELDS: [&str; 4] = ["interval", "rate", "per", "burst"];
}

/// A day, in µs.
const MOST_INTERVAL: u128 = 86_400_000_000;

/// # Pause and limits
impl<T: 'static> BlockingQueue<T> {
    /// Stops all receivers and workers of the queue, in all processes: they receive nothing more until
    /// [`resume`](Self::resume). Messages that the server had already handed out are still delivered.
    /// Received messages are handled and settled as usual. Takers, transfers and Java continue. The pause
    /// outlives all processes.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable), [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown),
    /// or [`Refused`](crate::ErrorKind::Refused) for a key of another type or a missing permission.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the queue may or may not be paused.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::BlockingQueue<i64>) -> redelay::Result<()> {
    /// orders.pause().await?;
    /// // ... the payment provider is back.
    /// orders.resume().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn pause(&self) -> Result<()> {
        let op = self.queue.op("pause");
        self.control(op, Command::new("HSET"), |command| command.arg("paused").arg("1")).await
    }

    /// Ends a [`pause`](Self::pause). Waiting receivers continue at once.
    ///
    /// # Errors
    /// As [`BlockingQueue::pause`].
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the queue may or may not be paused.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::BlockingQueue<i64>) -> redelay::Result<()> {
    /// orders.resume().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn resume(&self) -> Result<()> {
        let op = self.queue.op("resume");
        self.control(op, Command::new("HDEL"), |command| command.arg("paused")).await
    }

    /// Whether the queue is paused.
    ///
    /// # Errors
    /// As [`BlockingQueue::pause`], without `OutcomeUnknown`.
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::BlockingQueue<i64>) -> redelay::Result<()> {
    /// if orders.is_paused().await? {
    ///     orders.resume().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn is_paused(&self) -> Result<bool> {
        let op = self.queue.reading("is_paused");
        let control = self.queue.keys.of_messages().control;
        let reply = op.call(Command::new("HGET").arg(control).arg("paused").only_reads()).await?;
        Ok(op.optional_bytes(reply)?.is_some())
    }

    /// Limits how many messages are in flight at a time, in all processes together. `None` removes the limit,
    /// which is the default. The limit outlives all processes. Payloads that takers take do not count.
    ///
    /// Messages of a dead process count until they are delivered again, so a crash may stop the queue for
    /// longer than a [lease](crate::Receiver::lease): `docs/guarantees.md` has the times.
    ///
    /// # Errors
    /// As [`BlockingQueue::pause`], and [`Invalid`](crate::ErrorKind::Invalid) for zero.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the limit may or may not be set.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::BlockingQueue<i64>) -> redelay::Result<()> {
    /// orders.set_max_in_flight(Some(5)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn set_max_in_flight(&self, max: Option<u64>) -> Result<()> {
        let op = self.queue.op("set_max_in_flight");
        match max {
            Some(0) => Err(op.invalid("a limit of 0 would stop all receivers; use pause() for that")),
            Some(max) => {
                self.control(op, Command::new("HSET"), |command| command.arg("most").number(max)).await
            }
            None => self.control(op, Command::new("HDEL"), |command| command.arg("most")).await,
        }
    }

    /// The limit that [`set_max_in_flight`](Self::set_max_in_flight) has set, if any.
    ///
    /// # Errors
    /// As [`BlockingQueue::is_paused`].
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::BlockingQueue<i64>) -> redelay::Result<()> {
    /// println!("at most {:?} at a time", orders.max_in_flight().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn max_in_flight(&self) -> Result<Option<u64>> {
        let op = self.queue.reading("max_in_flight");
        let control = self.queue.keys.of_messages().control;
        let reply = op.call(Command::new("HGET").arg(control).arg("most").only_reads()).await?;
        let most = op.optional_bytes(reply)?;
        Ok(most.and_then(|digits| std::str::from_utf8(&digits).ok()?.parse().ok()))
    }

    /// Limits how many messages are received per time, in all processes together. `None` removes the limit,
    /// which is the default. The limit outlives all processes.
    ///
    /// # Errors
    /// As [`BlockingQueue::pause`], and [`Invalid`](crate::ErrorKind::Invalid) for a burst of zero, and for a
    /// rate of zero, of more than a million messages a second, or of less than one a day.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the limit may or may not be set.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::blocking_queue::RateLimit;
    /// # async fn example(orders: redelay::BlockingQueue<i64>) -> redelay::Result<()> {
    /// let limit = RateLimit::new(50, Duration::from_secs(1)).burst(10);
    /// orders.set_rate_limit(Some(limit)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn set_rate_limit(&self, limit: Option<RateLimit>) -> Result<()> {
        let op = self.queue.op("set_rate_limit");
        let Some(limit) = limit else {
            let fields = ["interval", "burst", "next", "rate", "per"];
            let command = |command| fields.into_iter().fold(command, Command::arg);
            return self.control(op, Command::new("HDEL"), command).await;
        };
        let interval = limit.interval().map_err(|why| op.invalid(why))?;
        self.control(op, Command::new("HSET"), |command| {
            let command = command.arg("interval").number(interval).arg("burst").number(limit.burst);
            // For `rate_limit`.
            command.arg("rate").number(limit.messages).arg("per").number(limit.per.as_nanos())
        })
        .await
    }

    /// The limit that [`set_rate_limit`](Self::set_rate_limit) has set, if any.
    ///
    /// # Errors
    /// As [`BlockingQueue::is_paused`].
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::BlockingQueue<i64>) -> redelay::Result<()> {
    /// if let Some(limit) = orders.rate_limit().await? {
    ///     println!("{} messages in {:?}", limit.messages, limit.per);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn rate_limit(&self) -> Result<Option<RateLimit>> {
        let op = self.queue.reading("rate_limit");
        let command = Command::new("HMGET").arg(self.queue.keys.of_messages().control);
        let command = RateLimit::FIELDS.into_iter().fold(command, Command::arg);
        let fields: [Reply; 4] = op.parts(op.call(command.only_reads()).await?)?;
        let mut numbers = [None; 4];
        for (number, field) in numbers.iter_mut().zip(fields) {
            *number =
                op.optional_bytes(field)?.and_then(|digits| std::str::from_utf8(&digits).ok()?.parse().ok());
        }
        Ok(RateLimit::stored(numbers))
    }

    /// Changes fields of the control hash, and wakes up the receivers that are held back.
    async fn control(
        &self,
        op: Op<'_>,
        command: Command,
        fields: impl FnOnce(Command) -> Command,
    ) -> Result<()> {
        let of_messages = self.queue.keys.of_messages();
        op.call(fields(command.arg(of_messages.control)).idempotent()).await?;
        // Without it, they look a few seconds later.
        let now = Command::new("PUBLISH").arg(of_messages.channel).arg("0");
        let _ = self.queue.conn.call(&now).await;
        Ok(())
    }
}
