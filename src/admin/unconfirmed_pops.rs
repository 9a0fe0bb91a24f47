//! What dead processes had popped: the copies that the server still keeps.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;

use crate::BlockingQueue;
use crate::conn::{Command, Reply};
use crate::error::Result;
use crate::queue::{Op, Queue};
use crate::scripts;
use crate::wire::claim::Claim;
use crate::wire::time;

/// The most claims that one call of the script reads.
const READ: usize = 100;

/// Payloads that one pop took from a queue and whose arrival no client has confirmed.
/// [`UnconfirmedPops::read`] returns it, and reads on behind it.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> redelay::Result<()> {
/// let jobs = client.blocking_queue("jobs", codec::Long);
/// for pop in jobs.unconfirmed_pops(Duration::from_secs(60)).read(None, 100).await? {
///     println!("{:?} ago: {} payloads", pop.age, pop.payloads.len());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct UnconfirmedPop {
    /// The id of the pop. Ids are in the order of time.
    pub id: String,
    /// Time since the pop, by the server's clock.
    #[serde(rename = "age_ms", serialize_with = "time::in_ms")]
    pub age: Duration,
    /// Where the payloads were.
    pub kind: PopKind,
    /// The payloads as they were in the queue, in the order of the pop. For a poll of a delayed queue, these
    /// are entries: see `docs/keys.md`.
    pub payloads: Vec<Bytes>,
}

/// Where an [`UnconfirmedPop`] took its payloads from. A requeue returns them there.
///
/// There is no kind for a blocking pop, because it leaves no copy.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # use redelay::admin::PopKind;
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> redelay::Result<()> {
/// # let jobs = client.blocking_queue("jobs", codec::Long);
/// let pops = jobs.unconfirmed_pops(Duration::from_secs(60)).read(None, 100).await?;
/// let polled = pops.iter().filter(|pop| pop.kind == PopKind::Delayed).count();
/// println!("{polled} of {} pops are polls of the delayed queue", pops.len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PopKind {
    /// The head of the ready list: a `take`, a `poll` or a `poll_many`. `LPOP` on the server.
    Head,
    /// The tail of the ready list: a `take_last` or a `poll_last`. `RPOP` on the server.
    Tail,
    /// The delayed queue: a [`DelayedQueue::poll`](crate::DelayedQueue::poll) or `poll_many`. `poll` on the
    /// server.
    Delayed,
}

impl PopKind {
    /// Reads a kind as the scripts write it.
    fn read(kind: &[u8]) -> Self {
        match kind {
            b"RPOP" => Self::Tail,
            b"poll" => Self::Delayed,
            _ => Self::Head,
        }
    }
}

impl UnconfirmedPop {
    /// `popped` is what the copy has.
    fn new(id: String, age: Duration, kind: &[u8], popped: impl Iterator<Item = Bytes>) -> Self {
        let kind = PopKind::read(kind);
        // A poll has pairs of entry and score.
        let payloads = popped.step_by(if kind == PopKind::Delayed { 2 } else { 1 }).collect();
        Self { id, age, kind, payloads }
    }

    /// Reads the copy of a pop. `None` for what no pop has written. `now` is the server's clock, epoch ms.
    pub(crate) fn read(id: &[u8], copy: &[u8], now: i64) -> Option<Self> {
        let Claim { kind, popped_at, popped } = Claim::parse(copy)?;
        let id = std::str::from_utf8(id).ok()?.to_owned();
        let age = Duration::from_millis(now.unsigned_abs().saturating_sub(popped_at));
        Some(Self::new(id, age, &kind, popped.into_iter()))
    }
}

impl fmt::Debug for UnconfirmedPop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Payloads must not get into a log.
        f.debug_struct("UnconfirmedPop")
            .field("id", &self.id)
            .field("age", &self.age)
            .field("kind", &self.kind)
            .field("payloads", &self.payloads.len())
            .finish_non_exhaustive()
    }
}

/// The pops of one queue, of at least an age, whose replies no client has confirmed.
/// [`BlockingQueue::unconfirmed_pops`] returns this handle.
///
/// The server keeps a copy of what a pop took until the client has confirmed that the reply arrived, usually
/// for 20 ms or less. A process that dies in between leaves the copy. No client can know whether it had
/// started to work on these payloads, so they do not come back automatically: delivery is at-most-once. The
/// copies stay until a call of this handle requeues or removes them, or until seven days after the queue's
/// last pop that does not block, when the server deletes them. (A field of the hash that no pop has written
/// is ignored.)
///
/// **The age** says which of them are meant. The server cannot tell a dead process from one that is alive: a
/// pop younger than a few seconds may be in flight, and with an age of zero, a requeue also returns what
/// processes that are alive have just popped. Choose an age that is longer than any handler runs.
///
/// [`PopKind`] lists which pops leave a copy. A blocking pop leaves none. So the payload that ends the wait
/// of a taker on an empty queue has no copy.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> redelay::Result<()> {
/// # let jobs = client.blocking_queue("jobs", codec::Long);
/// // After a crash: deliver again what the process may not have handled.
/// let requeued = jobs.unconfirmed_pops(Duration::from_secs(600)).requeue_all(usize::MAX).await?;
/// println!("the payloads of {requeued} pops are ready again");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct UnconfirmedPops {
    queue: Arc<Queue>,
    min_age: Duration,
}

impl fmt::Debug for UnconfirmedPops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnconfirmedPops").field("name", &self.queue.name).finish_non_exhaustive()
    }
}

/// # Pops that were not confirmed
impl<T: 'static> BlockingQueue<T> {
    /// The pops of this queue, of at least this age by the server's clock, whose replies no client has
    /// confirmed: what a dead process had popped. No command is sent.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.blocking_queue("jobs", codec::Long);
    /// let dead = jobs.unconfirmed_pops(Duration::from_secs(600));
    /// println!("{} pops are unconfirmed", dead.len().await?);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn unconfirmed_pops(&self, min_age: Duration) -> UnconfirmedPops {
        UnconfirmedPops { queue: self.queue_arc().clone(), min_age }
    }
}

impl UnconfirmedPops {
    /// The number of pops. All are looked at, a hundred at a time.
    /// [`QueueStats::unconfirmed_pops`](crate::stats::QueueStats::unconfirmed_pops) is the number of pops of
    /// any age, in O(1).
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable), or [`Refused`](crate::ErrorKind::Refused) for a key of
    /// another type or a missing permission.
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
    /// let unconfirmed = jobs.unconfirmed_pops(Duration::from_secs(600)).len().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn len(&self) -> Result<usize> {
        self.count(self.queue.reading("unconfirmed_pops().len"), usize::MAX).await
    }

    /// Whether there is no such pop.
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
    /// assert!(jobs.unconfirmed_pops(Duration::from_secs(600)).is_empty().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn is_empty(&self) -> Result<bool> {
        Ok(self.count(self.queue.reading("unconfirmed_pops().is_empty"), 1).await? == 0)
    }

    /// Counts until there are so many.
    async fn count(&self, op: Op<'_>, enough: usize) -> Result<usize> {
        let ids = self.ids(op).await?;
        let (mut left, mut count) = (&ids[..], 0);
        while !left.is_empty() && count < enough {
            count += self.read_claims(op, &mut left, READ, "ids").await?.len();
        }
        Ok(count)
    }

    /// Reads up to `max` pops, the oldest first: from the first one on, or behind `after`, the last one that
    /// was read.
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
    /// let pops = jobs.unconfirmed_pops(Duration::from_secs(60)).read(None, 100).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn read(&self, after: Option<&UnconfirmedPop>, max: usize) -> Result<Vec<UnconfirmedPop>> {
        let op = self.queue.reading("unconfirmed_pops().read");
        let mut pops = Vec::new();
        if max == 0 {
            return Ok(pops);
        }
        let ids = self.ids(op).await?;
        let read = after.map_or(0, |after| ids.partition_point(|id| id[..] <= *after.id.as_bytes()));
        let mut left = &ids[read..];
        while !left.is_empty() && pops.len() < max {
            let claims = self.read_claims(op, &mut left, max - pops.len(), "payloads").await?;
            let claims = claims.into_iter().map(|pop| unconfirmed(op, pop));
            pops.extend(claims.collect::<Result<Vec<_>>>()?);
        }
        Ok(pops)
    }

    /// Returns the payloads of a pop to where they were: to their end of the queue, or to the delayed queue
    /// with their due times. Returns whether the server still had the copy. It does not if the process has
    /// confirmed the pop since, or if the pop was requeued or removed.
    ///
    /// This can deliver a payload a second time: the process may have finished it before it died.
    ///
    /// # Errors
    /// As [`UnconfirmedPops::len`]. After a lost reply, the client retries, which changes nothing more, but
    /// may return false. If the retries get no reply either, the error is
    /// [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown).
    ///
    /// # Cancel safety
    /// Cancel safe: the pop is requeued as a whole or not at all.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::admin::UnconfirmedPop;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.blocking_queue("jobs", codec::Long);
    /// # fn was_handled(pop: &UnconfirmedPop) -> bool { false }
    /// let unconfirmed = jobs.unconfirmed_pops(Duration::from_secs(600));
    /// for pop in unconfirmed.read(None, 100).await? {
    ///     if was_handled(&pop) {
    ///         unconfirmed.remove(&pop.id).await?;
    ///     } else {
    ///         unconfirmed.requeue(&pop.id).await?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn requeue(&self, id: &str) -> Result<bool> {
        let op = self.queue.op("unconfirmed_pops().requeue");
        self.requeue_claim(op, &Bytes::copy_from_slice(id.as_bytes())).await
    }

    /// Does for up to `max` pops, the oldest first, what [`requeue`](Self::requeue) does for one;
    /// `usize::MAX` means all. Returns how many; after a lost reply it may be less.
    ///
    /// # Errors
    /// As [`UnconfirmedPops::len`]. Each pop is requeued as a whole or not at all. If others were requeued
    /// before the error, or a reply was lost, it is [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown), and
    /// says how many: call it again for the rest.
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
    /// jobs.unconfirmed_pops(Duration::from_secs(600)).requeue_all(usize::MAX).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn requeue_all(&self, max: usize) -> Result<usize> {
        let op = self.queue.op("unconfirmed_pops().requeue_all");
        let mut requeued = 0;
        self.requeue_up_to(op, max, &mut requeued)
            .await
            .map_err(|error| error.after_parts(requeued, "pops were requeued"))?;
        Ok(requeued)
    }

    /// Counts what is requeued before an error, too.
    async fn requeue_up_to(&self, op: Op<'_>, max: usize, requeued: &mut usize) -> Result<()> {
        let ids = self.ids(op).await?;
        let mut left = &ids[..];
        while !left.is_empty() && *requeued < max {
            let claims = self.read_claims(op, &mut left, max - *requeued, "ids").await?;
            for id in op.strings(Reply::Array(claims))? {
                *requeued += usize::from(self.requeue_claim(op, &id).await?);
            }
        }
        Ok(())
    }

    /// Deletes the copy of a pop. Returns whether the server still had it: see [`requeue`](Self::requeue).
    ///
    /// # Errors
    /// As [`UnconfirmedPops::requeue`].
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::admin::PopKind;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let jobs = client.blocking_queue("jobs", codec::Long);
    /// let unconfirmed = jobs.unconfirmed_pops(Duration::from_secs(600));
    /// for pop in unconfirmed.read(None, 100).await? {
    ///     if pop.kind == PopKind::Delayed {
    ///         unconfirmed.remove(&pop.id).await?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove(&self, id: &str) -> Result<bool> {
        let op = self.queue.op("unconfirmed_pops().remove");
        Ok(self.remove_claims(op, [Bytes::copy_from_slice(id.as_bytes())]).await? > 0)
    }

    /// Deletes the copies of up to `max` pops, the oldest first; `usize::MAX` means all. Returns how many.
    ///
    /// # Errors
    /// As [`UnconfirmedPops::len`]. If others were removed before the error, or a reply was lost, it is
    /// [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown): call it again for the rest.
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
    /// jobs.unconfirmed_pops(Duration::from_secs(3600)).remove_all(usize::MAX).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove_all(&self, max: usize) -> Result<usize> {
        let op = self.queue.op("unconfirmed_pops().remove_all");
        let mut removed = 0;
        self.remove_up_to(op, max, &mut removed)
            .await
            .map_err(|error| error.after_parts(removed, "pops were removed"))?;
        Ok(removed)
    }

    /// Counts what is removed before an error, too.
    async fn remove_up_to(&self, op: Op<'_>, max: usize, removed: &mut usize) -> Result<()> {
        let ids = self.ids(op).await?;
        let mut left = &ids[..];
        while !left.is_empty() && *removed < max {
            let claims = self.read_claims(op, &mut left, max - *removed, "ids").await?;
            let ids = op.strings(Reply::Array(claims))?;
            if !ids.is_empty() {
                *removed += self.remove_claims(op, ids).await?;
            }
        }
        Ok(())
    }

    async fn remove_claims(&self, op: Op<'_>, ids: impl IntoIterator<Item = Bytes>) -> Result<usize> {
        let command = Command::new("HDEL").arg(self.queue.keys.claims().clone()).args(ids);
        op.len(op.call(command.idempotent()).await?)
    }

    /// Requeues one pop. Returns false if the claim is gone. A second try finds no claim, so it returns
    /// nothing twice.
    async fn requeue_claim(&self, op: Op<'_>, id: &Bytes) -> Result<bool> {
        let keys = &self.queue.keys;
        let call = scripts::REQUEUE_CLAIM.on(&[
            keys.claims(),
            keys.target(),
            keys.timeout_set(),
            keys.ordered_list(),
            keys.channel(),
            keys.scratch(),
        ]);
        let reply = op.run(call.arg(id.clone()).idempotent()).await.inspect_err(|error| op.on_lost(error))?;
        let [count, head] = op.parts(reply)?;
        op.on_head(op.optional_score(head)?);
        op.any(count)
    }

    /// The ids of all pops, the oldest first: they are in the order of time. What is no text was not written
    /// by a pop.
    async fn ids(&self, op: Op<'_>) -> Result<Vec<Bytes>> {
        let ids = op.fields(self.queue.keys.claims()).await?.into_iter();
        Ok(ids.filter(|id| std::str::from_utf8(id).is_ok()).collect())
    }

    /// Reads up to `most` of these claims, those of the age or their ids, and takes what it has looked at
    /// from `ids`.
    async fn read_claims(
        &self,
        op: Op<'_>,
        ids: &mut &[Bytes],
        most: usize,
        what: &'static str,
    ) -> Result<Vec<Reply>> {
        let call = scripts::READ_CLAIMS
            .on(&[self.queue.keys.claims()])
            .number(self.min_age.as_millis())
            .arg(what)
            .args(ids.iter().take(READ.min(most)).cloned())
            .only_reads();
        let mut claims = op.run(call).await?.into_array().map_err(|shape| op.failed(shape))?;
        let read = claims.split_off(claims.len().min(1));
        let looked_at = op.len(claims.pop().unwrap_or(Reply::Nil))?.clamp(1, ids.len());
        *ids = &ids[looked_at..];
        Ok(read)
    }
}

fn unconfirmed(op: Op<'_>, claim: Reply) -> Result<UnconfirmedPop> {
    let mut parts = claim.into_array().map_err(|shape| op.failed(shape))?.into_iter();
    let age = Duration::from_millis(op.len(parts.next().unwrap_or(Reply::Nil))? as u64);
    let mut strings = op.strings(Reply::Array(parts.collect()))?.into_iter();
    let (id, kind) = (strings.next().unwrap_or_default(), strings.next().unwrap_or_default());
    Ok(UnconfirmedPop::new(String::from_utf8_lossy(&id).into_owned(), age, &kind, strings))
}
