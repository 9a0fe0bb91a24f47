//! The limit of pending entries.

use super::DelayedQueue;
use crate::conn::Command;
use crate::error::Result;

/// # A limit for producers
impl<T: 'static> DelayedQueue<T> {
    /// Limits how many entries may be pending. While there are as many, offers and runs of schedules are
    /// refused with [`Full`](crate::ErrorKind::Full). `None` removes the limit, which is the default. The
    /// limit outlives all processes.
    ///
    /// It binds the offers of redelay, in all processes, but not those of Java services. Nor does it bind
    /// anything that is delivered again: retries, requeued dead letters and payloads that are returned. An
    /// offer that replaces a pending job needs no room. A batch of [`offer_all`](Self::offer_all) is refused
    /// as a whole if it has no room; of [`offer_jobs`](Self::offer_jobs), the first ones are stored, and
    /// the error says how many, as `OutcomeUnknown`. The overdue entries that were not transferred yet count,
    /// too, and ready payloads do not.
    ///
    /// A process that has offered to the queue within the last five seconds, and knows of no limit, may learn
    /// of a new one that much later. An offer to a queue with a limit costs the server two more commands, and
    /// an offer to any other one every five seconds.
    ///
    /// # Errors
    /// As [`BlockingQueue::pause`](crate::BlockingQueue::pause), and
    /// [`Invalid`](crate::ErrorKind::Invalid) for zero.
    ///
    /// # Cancel safety
    /// Not cancel safe: if the future is dropped, the limit may or may not be set.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(mails: redelay::DelayedQueue<String>) -> redelay::Result<()> {
    /// use redelay::ErrorKind;
    ///
    /// mails.set_max_pending(Some(100_000)).await?;
    /// match mails.offer("welcome", Duration::from_secs(60)).await {
    ///     Err(error) if error.kind() == ErrorKind::Full => println!("too many: come back later"),
    ///     offered => drop(offered?),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn set_max_pending(&self, max: Option<u64>) -> Result<()> {
        let op = self.queue.op("set_max_pending");
        let control = self.queue.keys.named("control");
        let command = match max {
            Some(0) => return Err(op.invalid("a limit of 0 would refuse all offers")),
            Some(max) => Command::new("HSET").arg(control).arg("max_pending").number(max),
            None => Command::new("HDEL").arg(control).arg("max_pending"),
        };
        op.call(command.idempotent()).await?;
        self.batcher.on_limit(max.is_some());
        Ok(())
    }

    /// The limit that [`set_max_pending`](Self::set_max_pending) has set, if any.
    ///
    /// # Errors
    /// As [`BlockingQueue::is_paused`](crate::BlockingQueue::is_paused).
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(mails: redelay::DelayedQueue<String>) -> redelay::Result<()> {
    /// println!("at most {:?} are pending", mails.max_pending().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn max_pending(&self) -> Result<Option<u64>> {
        let op = self.queue.reading("max_pending");
        let control = self.queue.keys.named("control");
        let reply = op.call(Command::new("HGET").arg(control).arg("max_pending").only_reads()).await?;
        let most = op.optional_bytes(reply)?;
        Ok(most.and_then(|digits| std::str::from_utf8(&digits).ok()?.parse().ok()))
    }
}
