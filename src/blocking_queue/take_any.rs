//! Taking from whichever of several queues has a payload first.

use std::time::Duration;

use super::BlockingQueue;
use crate::error::Result;
use crate::pops::{End, Popped, Wanted};
use crate::wire::keys::Keys;

/// # Take from any of several queues
impl<T: 'static> BlockingQueue<T> {
    /// Waits for the next payload of this queue or of one of the others, and returns it with the name of its
    /// queue: Redisson's `pollFromAny` and `pollFromAnyWithName`. When several queues have payloads, this
    /// queue comes first, then the others in the order of `others`. `None` when there was no payload within
    /// the time, which is exact to the millisecond. At most once, as [`BlockingQueue::take`].
    ///
    /// The handle keeps all queues that it was given, and transfers them, until it and its clones are
    /// dropped. If the names change, take a new handle for each call.
    ///
    /// # Errors
    /// As [`BlockingQueue::poll_timeout`]; [`Refused`](crate::ErrorKind::Refused) when one of the keys is
    /// refused.
    ///
    /// # Cancel safety
    /// Cancel safe: as [`BlockingQueue::take`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// let urgent = client.blocking_queue("urgent", codec::Long);
    /// // As long as `urgent` has payloads, they come first.
    /// if let Some((name, job)) = urgent.poll_from_any(Duration::from_secs(10), &["normal", "low"]).await? {
    ///     println!("{job}, from {name}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "pollFromAny")]
    #[doc(alias = "pollFromAnyWithName")]
    #[doc(alias = "pollFirstFromAny")]
    pub async fn poll_from_any(&self, timeout: Duration, others: &[&str]) -> Result<Option<(String, T)>> {
        self.poll_any("poll_from_any", End::Head, timeout, others).await
    }

    /// As [`BlockingQueue::poll_from_any`], from the tails of the lists: Redisson's `pollLastFromAny` and
    /// `pollLastFromAnyWithName`. At most once, as `poll_from_any`.
    ///
    /// # Errors
    /// As [`BlockingQueue::poll_from_any`].
    ///
    /// # Cancel safety
    /// Cancel safe: as [`BlockingQueue::take_last`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// if let Some((name, order)) = orders.poll_last_from_any(Duration::ZERO, &["returns"]).await? {
    ///     println!("{order} is the newest of {name}"); // Not of both: the times are not compared.
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "pollLastFromAny")]
    #[doc(alias = "pollLastFromAnyWithName")]
    pub async fn poll_last_from_any(
        &self,
        timeout: Duration,
        others: &[&str],
    ) -> Result<Option<(String, T)>> {
        self.poll_any("poll_last_from_any", End::Tail, timeout, others).await
    }

    async fn poll_any(
        &self,
        verb: &'static str,
        end: End,
        timeout: Duration,
        others: &[&str],
    ) -> Result<Option<(String, T)>> {
        let Some(popped) = self.pop_any(verb, end, timeout, others).await? else { return Ok(None) };
        let name = self.name_of(&popped.keys, others);
        Ok(self.payload(verb, Ok(Some(popped)))?.map(|value| (name, value)))
    }

    /// Takes up to `max` payloads from the first of these queues that has any, and returns them with the
    /// name of that queue: Redisson's `pollFirstFromAny` with a count. It waits for the first payload only;
    /// the others are those that are ready in the same queue at that moment. `None` when there was no payload
    /// within the time, which is exact to the millisecond. Works on servers before Redis 7, too. At most
    /// once, as [`BlockingQueue::take`].
    ///
    /// # Errors
    /// As [`BlockingQueue::poll_from_any`], and [`Invalid`](crate::ErrorKind::Invalid) for a `max` of 0. A
    /// failure to get more payloads after the first one is not an error.
    ///
    /// # Cancel safety
    /// Cancel safe: as [`BlockingQueue::poll_many`].
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let urgent = client.blocking_queue("urgent", codec::Long);
    /// let some = urgent.poll_many_from_any(Duration::from_secs(10), 100, &["normal"]).await?;
    /// if let Some((name, jobs)) = some {
    ///     println!("{} of {name}", jobs.len()); // 1 to 100, all of one queue.
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "poll_first_from_any")]
    #[doc(alias = "pollFirstFromAny")]
    pub async fn poll_many_from_any(
        &self,
        timeout: Duration,
        max: usize,
        others: &[&str],
    ) -> Result<Option<(String, Vec<Result<T>>)>> {
        self.poll_many_of_any("poll_many_from_any", End::Head, timeout, max, others).await
    }

    /// As [`BlockingQueue::poll_many_from_any`], from the tails of the lists: Redisson's `pollLastFromAny`
    /// with a count. At most once, as `poll_many_from_any`.
    ///
    /// # Errors
    /// As [`BlockingQueue::poll_many_from_any`].
    ///
    /// # Cancel safety
    /// Cancel safe: as [`BlockingQueue::poll_many`]; undelivered payloads go back to the tail.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # use redelay::{Client, codec};
    /// # async fn example(client: Client) -> redelay::Result<()> {
    /// # let orders = client.blocking_queue("orders", codec::Long);
    /// orders.offer_all(&[7, 8, 9]).await?;
    /// if let Some((_, newest)) = orders.poll_last_many_from_any(Duration::ZERO, 2, &[]).await? {
    ///     assert_eq!(newest.len(), 2); // 9, then 8.
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "pollLastFromAny")]
    pub async fn poll_last_many_from_any(
        &self,
        timeout: Duration,
        max: usize,
        others: &[&str],
    ) -> Result<Option<(String, Vec<Result<T>>)>> {
        self.poll_many_of_any("poll_last_many_from_any", End::Tail, timeout, max, others).await
    }

    async fn poll_many_of_any(
        &self,
        verb: &'static str,
        end: End,
        timeout: Duration,
        max: usize,
        others: &[&str],
    ) -> Result<Option<(String, Vec<Result<T>>)>> {
        if max == 0 {
            return Err(self.queue.op(verb).invalid("a max of 0 takes nothing; it must be at least 1"));
        }
        let Some(first) = self.pop_any(verb, end, timeout, others).await? else { return Ok(None) };
        let name = self.name_of(&first.keys, others);
        let mut popped = vec![first];
        if max > 1 {
            let more = Wanted::many(end, popped[0].keys.clone(), max - 1);
            // Whatever happens to the others, the first payload is here.
            popped.extend(self.queue.engine.pops.poll(&self.queue.conn, more).await.ok().flatten());
        }
        Ok(Some((name, self.decode_each(verb, popped)?)))
    }

    async fn pop_any(
        &self,
        verb: &'static str,
        end: End,
        timeout: Duration,
        others: &[&str],
    ) -> Result<Option<Popped>> {
        self.check_taking(verb)?;
        let mut lists = vec![self.queue.keys.clone()];
        for name in others {
            let keys = self.queue.engine.keys(name);
            self.queue.op(verb).ensure_other_is_whole(name, &keys)?;
            if !lists.contains(&keys) {
                lists.push(keys);
            }
        }
        let counters = self.keep_moving(&lists);
        self.pop_from(verb, Some(timeout), Wanted::one(end, lists, counters)).await
    }

    /// Takes from whichever of these lists has a payload first, for a partitioned queue: they are different
    /// ones, and those of one server are searched in any order. Without a timeout, it waits as `take` does.
    pub(crate) async fn poll_lists(
        &self,
        verb: &'static str,
        timeout: Option<Duration>,
        lists: Vec<Keys>,
    ) -> Result<Option<Popped>> {
        self.check_taking(verb)?;
        let counters = self.keep_moving(&lists);
        let wanted = Wanted::one(End::Head, lists, counters);
        self.pop_from(verb, timeout, wanted.in_any_order()).await
    }

    async fn pop_from(
        &self,
        verb: &'static str,
        timeout: Option<Duration>,
        wanted: Wanted,
    ) -> Result<Option<Popped>> {
        let popped = self.queue.engine.pops.wait_for(&self.queue.conn, wanted, timeout).await;
        popped.map_err(|error| self.queue.op(verb).failed(error))
    }

    /// The caller's name for a list.
    fn name_of(&self, keys: &Keys, others: &[&str]) -> String {
        let other = others.iter().find(|name| self.queue.engine.keys(name) == *keys);
        other.map_or(self.name(), |name| name).to_owned()
    }
}
