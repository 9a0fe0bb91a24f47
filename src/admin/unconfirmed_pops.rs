//! What dead processes had popped: the copies that the server still keeps.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::BlockingQueue;
use crate::conn::{Command, Reply};
use crate::error::Result;
use crate::queue::{Op, Queue};
use crate::scripts;

/// The most claims that one call of the script reads.
const READ: usize = 100;

/// Payloads that one pop took from a queue and whose arrival no client has confirmed. [`UnconfirmedPops::read`] returns
/// it. [`requeue_one`](UnconfirmedPops::requeue_one) and [`remove_one`](UnconfirmedPops::remove_one) accept it.
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
    /// Where the payloads were.
    pub kind: PopKind,
    /// The payloads as they were in the queue, in the order of the pop. For a poll of a delayed queue, these are
    /// entries: see `docs/keys.md`.
    pub payloads: Vec<Bytes>,
    target: Bytes,
    id: Bytes,
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
/// let pops = jobs.unconfirmed_pops().read(Duration::from_secs(60), 100).await?;
/// let polled = pops.iter().filter(|pop| pop.kind == PopKind::Delayed).count();
/// println!("{polled} of {} pops are polls of the delayed queue", pops.len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PopKind {
    /// The head of the ready list: a `take`, a `poll` or a `poll_many`. `LPOP` on the server.
    Head,
    /// The tail of the ready list: a `take_last` or a `poll_last`. `RPOP` on the server.
    Tail,
    /// The delayed queue: a [`DelayedQueue::poll`](crate::DelayedQueue::poll) or `poll_many`. `poll` on the server.
    Delayed,
}

impl PopKind {
    /// Reads a kind as the scripts do: whatever they do not know is returned to the head.
    fn read(kind: &[u8]) -> Self {
        match kind {
            b"RPOP" => Self::Tail,
            b"poll" => Self::Delayed,
            _ => Self::Head,
        }
    }
}

impl fmt::Debug for UnconfirmedPop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Payloads must not get into a log.
        f.debug_struct("UnconfirmedPop")
            .field("age", &self.age)
            .field("kind", &self.kind)
            .field("payloads", &self.payloads.len())
            .finish_non_exhaustive()
    }
}

/// The pops of one queue whose replies no client has confirmed. [`BlockingQueue::unconfirmed_pops`] returns this handle.
///
/// The server keeps a copy of what a pop took until the client has confirmed that the reply arrived, usually for 20 ms
/// or less. A process that dies in between leaves the copy. Nobody can know whether it had started to work on these
/// payloads, so they do not come back automatically: delivery is at-most-once. The copies stay until a call of this
/// handle requeues or removes them, or until seven days after the queue's last pop that does not block, when the server
/// deletes them. ([`len`](Self::len) also counts a field of the hash that no pop has written; the other methods ignore
/// it.)
///
/// [`PopKind`] lists which pops leave a copy. A blocking pop leaves none. So the payload that ends the wait of a taker on
/// an empty queue has no copy.
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

/// # Pops that nobody has confirmed
impl<T: 'static> BlockingQueue<T> {
    /// The pops of this queue whose replies no client has confirmed: what a dead process had popped. No command is
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
        UnconfirmedPops { queue: self.queue_arc().clone() }
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
        let op = self.queue.reading("unconfirmed_pops().len");
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
        let op = self.queue.reading("unconfirmed_pops().read");
        let target = self.queue.keys.target();
        let mut pops = Vec::new();
        let ids = self.ids(op).await?;
        let mut left = &ids[..];
        while !left.is_empty() && pops.len() < limit {
            let claims = self.read_claims(op, min_age, &mut left, "payloads").await?;
            let claims = claims.into_iter().map(|pop| unconfirmed(op, target.clone(), pop));
            pops.extend(claims.collect::<Result<Vec<_>>>()?);
        }
        pops.truncate(limit);
        Ok(pops)
    }

    /// Returns the payloads of pops of at least this age to where they were: to their end of the queue, or to the
    /// delayed queue with their due times. Returns the number of payloads; after a lost reply it may be less.
    ///
    /// This can deliver a payload a second time. The server cannot tell a dead process from one that is alive: with an
    /// age of zero, this also requeues what processes that are alive have just popped. A process may also have finished
    /// a payload before it died. Choose an age that is longer than any handler runs.
    ///
    /// # Errors
    /// As [`UnconfirmedPops::len`]. Each pop is requeued as a whole or not at all. If others were requeued before the error,
    /// or a reply was lost, it is [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown), and says how many: call it again for
    /// the rest.
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
        let mut requeued = 0;
        self.requeue_all(op, min_age, &mut requeued)
            .await
            .map_err(|error| error.after_parts(requeued, "payloads were requeued"))?;
        Ok(requeued)
    }

    /// Counts what is requeued before an error, too.
    async fn requeue_all(&self, op: Op<'_>, min_age: Duration, requeued: &mut usize) -> Result<()> {
        let ids = self.ids(op).await?;
        let mut left = &ids[..];
        while !left.is_empty() {
            for id in op.strings(Reply::Array(self.read_claims(op, min_age, &mut left, "ids").await?))? {
                *requeued += self.requeue_claim(op, &id).await?;
            }
        }
        Ok(())
    }

    /// Returns the payloads of this pop to where they were, as [`requeue`](Self::requeue) does for all pops of an age.
    /// Returns whether the server still had the copy. It does not if the process has confirmed the pop since, or if the
    /// pop was requeued or removed.
    ///
    /// # Errors
    /// As [`UnconfirmedPops::len`], and [`Invalid`](crate::ErrorKind::Invalid) for a pop of another queue. After a lost
    /// reply, the client retries, which changes nothing more, but may return false. If the retries get no reply either,
    /// the error is [`OutcomeUnknown`](crate::ErrorKind::OutcomeUnknown).
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
    /// let unconfirmed = jobs.unconfirmed_pops();
    /// for pop in unconfirmed.read(Duration::from_secs(600), 100).await? {
    ///     if was_handled(&pop) {
    ///         unconfirmed.remove_one(&pop).await?;
    ///     } else {
    ///         unconfirmed.requeue_one(&pop).await?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn requeue_one(&self, pop: &UnconfirmedPop) -> Result<bool> {
        let op = self.queue.op("unconfirmed_pops().requeue_one");
        self.check(op, pop)?;
        Ok(self.requeue_claim(op, &pop.id).await? > 0)
    }

    /// Deletes the copies of pops of at least this age. Returns the number of these pops.
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
    /// jobs.unconfirmed_pops().remove(Duration::from_secs(3600)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove(&self, min_age: Duration) -> Result<usize> {
        let op = self.queue.op("unconfirmed_pops().remove");
        let mut removed = 0;
        self.remove_all(op, min_age, &mut removed)
            .await
            .map_err(|error| error.after_parts(removed, "pops were removed"))?;
        Ok(removed)
    }

    /// Counts what is removed before an error, too.
    async fn remove_all(&self, op: Op<'_>, min_age: Duration, removed: &mut usize) -> Result<()> {
        let ids = self.ids(op).await?;
        let mut left = &ids[..];
        while !left.is_empty() {
            let ids = op.strings(Reply::Array(self.read_claims(op, min_age, &mut left, "ids").await?))?;
            if !ids.is_empty() {
                let command = Command::new("HDEL").arg(self.queue.keys.claims().clone()).args(ids);
                *removed += op.len(op.call_idempotent(command).await?)?;
            }
        }
        Ok(())
    }

    /// Deletes the copy of this pop. Returns whether the server still had it: see [`requeue_one`](Self::requeue_one).
    ///
    /// # Errors
    /// As [`UnconfirmedPops::requeue_one`].
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
    /// let unconfirmed = jobs.unconfirmed_pops();
    /// for pop in unconfirmed.read(Duration::from_secs(600), 100).await? {
    ///     if pop.kind == PopKind::Delayed {
    ///         unconfirmed.remove_one(&pop).await?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove_one(&self, pop: &UnconfirmedPop) -> Result<bool> {
        let op = self.queue.op("unconfirmed_pops().remove_one");
        self.check(op, pop)?;
        let command = Command::new("HDEL").arg(self.queue.keys.claims().clone()).arg(pop.id.clone());
        op.any(op.call_idempotent(command).await?)
    }

    fn check(&self, op: Op<'_>, pop: &UnconfirmedPop) -> Result<()> {
        if pop.target == self.queue.keys.target() {
            return Ok(());
        }
        let other = String::from_utf8_lossy(&pop.target);
        Err(op.invalid(format!("the pop is of another queue: `{other}`")))
    }

    /// Requeues one pop. Returns the number of its payloads, or 0 if the claim is gone. A second try finds no claim, so
    /// it returns nothing twice.
    async fn requeue_claim(&self, op: Op<'_>, id: &Bytes) -> Result<usize> {
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
        op.len(count)
    }

    /// The ids of all pops, the oldest first: they are in the order of time.
    async fn ids(&self, op: Op<'_>) -> Result<Vec<Bytes>> {
        let (mut ids, mut cursor) = (BTreeSet::new(), Bytes::from_static(b"0"));
        loop {
            let call = scripts::CLAIM_IDS.on(&[self.queue.keys.claims()]).arg(cursor).only_reads();
            let mut found = op.strings(op.run(call).await?)?.into_iter();
            cursor = found.next().unwrap_or_default();
            ids.extend(found);
            if matches!(&cursor[..], b"0" | b"") {
                return Ok(ids.into_iter().collect());
            }
        }
    }

    /// Reads some of these claims, those of this age or their ids, and takes what it has looked at from
    /// `ids`.
    async fn read_claims(
        &self,
        op: Op<'_>,
        min_age: Duration,
        ids: &mut &[Bytes],
        what: &'static str,
    ) -> Result<Vec<Reply>> {
        let call = scripts::READ_CLAIMS
            .on(&[self.queue.keys.claims()])
            .number(min_age.as_millis())
            .arg(what)
            .args(ids.iter().take(READ).cloned())
            .only_reads();
        let mut claims = op.run(call).await?.into_array().map_err(|shape| op.failed(shape))?;
        let read = claims.split_off(claims.len().min(1));
        let looked_at = op.len(claims.pop().unwrap_or(Reply::Nil))?.clamp(1, ids.len());
        *ids = &ids[looked_at..];
        Ok(read)
    }
}

fn unconfirmed(op: Op<'_>, target: Bytes, claim: Reply) -> Result<UnconfirmedPop> {
    let mut parts = claim.into_array().map_err(|shape| op.failed(shape))?.into_iter();
    let age = Duration::from_millis(op.len(parts.next().unwrap_or(Reply::Nil))? as u64);
    let mut strings = op.strings(Reply::Array(parts.collect()))?.into_iter();
    let (id, kind) = (strings.next().unwrap_or_default(), strings.next().unwrap_or_default());
    let kind = PopKind::read(&kind);
    // A poll has pairs of entry and score.
    let payloads = strings.step_by(if kind == PopKind::Delayed { 2 } else { 1 }).collect();
    Ok(UnconfirmedPop { age, kind, payloads, target, id })
}
