//! What dead processes had popped: the copies that the server still keeps.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::BlockingQueue;
use crate::conn::{Command, Reply};
use crate::error::Result;
use crate::queue::{Op, Queue};
use crate::scripts;

/// The most claims that one call of the script reads.
const READ: usize = 100;

/// Payloads that one pop took from a queue and whose arrival no client has confirmed. [`UnconfirmedPops::read`] returns
/// it.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> redelay::Result<()> {
/// let jobs = client.blocking_queue("jobs", codec::Long);
/// for pop in jobs.unconfirmed_pops().read(Duration::from_secs(60), 100).await? {
///     println!("{:?} ago: {} payloads", pop.age, pop.payloads.len());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct UnconfirmedPop {
    /// Time since the pop, by the server's clock.
    pub age: Duration,
    /// The payloads as they were in the queue, in the order of the pop. Of a poll of a delayed queue, these are entries:
    /// see `docs/keys.md`.
    pub payloads: Vec<Bytes>,
    id: Bytes,
}

impl fmt::Debug for UnconfirmedPop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Payloads must not get into a log.
        f.debug_struct("UnconfirmedPop")
            .field("age", &self.age)
            .field("payloads", &self.payloads.len())
            .finish_non_exhaustive()
    }
}

/// The pops of one queue whose replies no client has confirmed. [`BlockingQueue::unconfirmed_pops`] returns this handle.
///
/// The server keeps a copy of what a pop took until the client has confirmed that the reply arrived, usually for 20 ms
/// or less. A process that dies in between leaves the copy. Nobody can know whether it had begun to work on these
/// payloads, so they do not come back by themselves: delivery is at-most-once. The copies stay until a call of this
/// handle requeues or removes them; seven days after the last pop of the queue, the server deletes them.
///
/// Polls of the delayed queue ([`DelayedQueue::poll`](crate::DelayedQueue::poll)) are among them. Blocking pops are not:
/// while a single taker waits on an empty queue, the server keeps no copy.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> redelay::Result<()> {
/// # let jobs = client.blocking_queue("jobs", codec::Long);
/// // After a crash: deliver again what the process may not have handled.
/// let requeued = jobs.unconfirmed_pops().requeue(Duration::from_secs(600)).await?;
/// println!("{requeued} payloads are ready again");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct UnconfirmedPops {
    queue: Arc<Queue>,
}

impl fmt::Debug for UnconfirmedPops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnconfirmedPops").field("name", &self.queue.name).finish_non_exhaustive()
    }
}

impl<T: 'static> BlockingQueue<T> {
    /// The pops of this queue whose replies no client has confirmed: what a process that died had popped. No command is
    /// sent.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.blocking_queue("jobs", codec::Long);
    /// println!("{} pops are unconfirmed", jobs.unconfirmed_pops().len().await?);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn unconfirmed_pops(&self) -> UnconfirmedPops {
        UnconfirmedPops { queue: self.queue.clone() }
    }
}

impl UnconfirmedPops {
    /// The number of pops, those in flight included. O(1).
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable), or [`Refused`](crate::ErrorKind::Refused) for a key of another
    /// type or a missing permission.
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.blocking_queue("jobs", codec::Long);
    /// let unconfirmed = jobs.unconfirmed_pops().len().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn len(&self) -> Result<usize> {
        let op = self.queue.op("unconfirmed_pops().len");
        op.len(op.query(Command::new("HLEN").arg(self.queue.keys.claims().clone())).await?)
    }

    /// Reads up to `limit` pops that are at least this old, the oldest first. A pop younger than a few seconds may be in
    /// flight.
    ///
    /// # Errors
    /// As [`UnconfirmedPops::len`].
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.blocking_queue("jobs", codec::Long);
    /// let pops = jobs.unconfirmed_pops().read(Duration::from_secs(60), 100).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn read(&self, min_age: Duration, limit: usize) -> Result<Vec<UnconfirmedPop>> {
        self.read_with(self.queue.op("unconfirmed_pops().read"), min_age, limit).await
    }

    /// Returns what pops of at least this age took to where it was: to its end of the queue, or to the delayed queue with
    /// its due time. Returns the number of payloads; after a lost reply it may be less.
    ///
    /// A process that is alive may be working on such a payload, or a dead one may have finished it: this can deliver it a
    /// second time. Choose an age above the time for which your handlers work.
    ///
    /// # Errors
    /// As [`UnconfirmedPops::len`]. Each pop is requeued as a whole or not at all.
    ///
    /// # Cancel safety
    /// Cancel safe: each pop is requeued as a whole or not at all.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.blocking_queue("jobs", codec::Long);
    /// jobs.unconfirmed_pops().requeue(Duration::from_secs(600)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn requeue(&self, min_age: Duration) -> Result<usize> {
        let op = self.queue.op("unconfirmed_pops().requeue");
        let keys = &self.queue.keys;
        let mut requeued = 0;
        loop {
            let pops = self.read_with(op, min_age, READ).await?;
            for pop in &pops {
                let call = scripts::REQUEUE_CLAIM.on(&[
                    keys.claims(),
                    keys.target(),
                    keys.timeout_set(),
                    keys.ordered_list(),
                    keys.channel(),
                    keys.scratch(),
                ]);
                let [count, head] = op.parts(op.run(call.arg(pop.id.clone()).idempotent()).await?)?;
                op.on_head(head)?;
                requeued += op.len(count)?;
            }
            if pops.len() < READ {
                return Ok(requeued);
            }
        }
    }

    /// Deletes the copies of pops of at least this age. Returns the number of these pops.
    ///
    /// # Errors
    /// As [`UnconfirmedPops::len`].
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.blocking_queue("jobs", codec::Long);
    /// jobs.unconfirmed_pops().remove(Duration::from_secs(3600)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove(&self, min_age: Duration) -> Result<usize> {
        let op = self.queue.op("unconfirmed_pops().remove");
        let mut removed = 0;
        loop {
            let pops = self.read_with(op, min_age, READ).await?;
            if !pops.is_empty() {
                let ids = pops.iter().map(|pop| pop.id.clone());
                let command = Command::new("HDEL").arg(self.queue.keys.claims().clone()).args(ids);
                removed += op.len(op.query(command).await?)?;
            }
            if pops.len() < READ {
                return Ok(removed);
            }
        }
    }

    async fn read_with(&self, op: Op<'_>, min_age: Duration, limit: usize) -> Result<Vec<UnconfirmedPop>> {
        let call = scripts::READ_CLAIMS
            .on(&[self.queue.keys.claims()])
            .number(min_age.as_millis())
            .number(limit)
            .idempotent();
        let pops = op.run(call).await?.into_array().map_err(|shape| op.failed(shape))?;
        pops.into_iter().map(|pop| unconfirmed(op, pop)).collect()
    }
}

fn unconfirmed(op: Op<'_>, claim: Reply) -> Result<UnconfirmedPop> {
    let mut parts = claim.into_array().map_err(|shape| op.failed(shape))?.into_iter();
    let age = Duration::from_millis(op.len(parts.next().unwrap_or(Reply::Nil))? as u64);
    let mut strings = op.strings(Reply::Array(parts.collect()))?.into_iter();
    let (id, kind) = (strings.next().unwrap_or_default(), strings.next().unwrap_or_default());
    // A poll has pairs of entry and score.
    let payloads = strings.step_by(if kind == "poll" { 2 } else { 1 }).collect();
    Ok(UnconfirmedPop { age, payloads, id })
}
