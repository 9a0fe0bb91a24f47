//! Taking from whichever of several queues has something first.

use std::time::Duration;

use super::BlockingQueue;
use crate::error::Result;
use crate::pops::{End, Popped, Wanted};
use crate::wire::keys::Keys;

impl<T: 'static> BlockingQueue<T> {
    /// The next payload of this queue or of the others, whichever has one first, and the name of the queue it
    /// is from: Redisson's `pollFromAnyWithName`. When several have one, this queue comes first, then the
    /// others in the order of their names here. `None` when none came within the time, ms-exact.
    ///
    /// # Errors
    /// As [`BlockingQueue::poll_timeout`].
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
    /// // As long as `urgent` has something, it comes first.
    /// if let Some((name, job)) = urgent.poll_from_any(Duration::from_secs(10), &["normal", "low"]).await? {
    ///     println!("{job}, from {name}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "pollFromAnyWithName")]
    pub async fn poll_from_any(&self, timeout: Duration, others: &[&str]) -> Result<Option<(String, T)>> {
        self.poll_any("poll_from_any", End::Head, timeout, others).await
    }

    /// As [`BlockingQueue::poll_from_any`], from the tails of the lists: Redisson's
    /// `pollLastFromAnyWithName`.
    ///
    /// # Errors
    /// As [`BlockingQueue::poll_timeout`].
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
        verb: &str,
        end: End,
        timeout: Duration,
        others: &[&str],
    ) -> Result<Option<(String, T)>> {
        let Some(popped) = self.pop_any(verb, end, timeout, others).await? else { return Ok(None) };
        let name = self.name_of(&popped.keys, others);
        Ok(self.payload(verb, Ok(Some(popped)))?.map(|value| (name, value)))
    }

    /// Up to `count` payloads of this queue or of one of the others, whichever has some first, and the name
    /// of that queue: Redisson's `pollFirstFromAny`. It waits for the first payload only; what else is ready
    /// in the same queue then comes with it. `None` when none came within the time, ms-exact. Works below
    /// Redis 7, too.
    ///
    /// # Errors
    /// As [`BlockingQueue::poll_timeout`], and [`Invalid`](crate::ErrorKind::Invalid) for a count of 0. What
    /// the question for the further payloads meets is no error: the first one is there.
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
    ///     println!("{} of {name}", jobs.len()); // 1 to 100, none of them from the other queue.
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn poll_many_from_any(
        &self,
        timeout: Duration,
        count: usize,
        others: &[&str],
    ) -> Result<Option<(String, Vec<Result<T>>)>> {
        self.poll_many_of_any("poll_many_from_any", End::Head, timeout, count, others).await
    }

    /// As [`BlockingQueue::poll_many_from_any`], from the tails of the lists: Redisson's `pollLastFromAny`
    /// with a count.
    ///
    /// # Errors
    /// As [`BlockingQueue::poll_many_from_any`].
    ///
    /// # Cancel safety
    /// Cancel safe: as [`BlockingQueue::poll_many`]; what comes back goes to the tail.
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
        count: usize,
        others: &[&str],
    ) -> Result<Option<(String, Vec<Result<T>>)>> {
        self.poll_many_of_any("poll_last_many_from_any", End::Tail, timeout, count, others).await
    }

    async fn poll_many_of_any(
        &self,
        verb: &str,
        end: End,
        timeout: Duration,
        count: usize,
        others: &[&str],
    ) -> Result<Option<(String, Vec<Result<T>>)>> {
        if count == 0 {
            return Err(self.queue.refuse(verb, "a count of 0 asks for nothing; it must be at least 1"));
        }
        let Some(first) = self.pop_any(verb, end, timeout, others).await? else { return Ok(None) };
        let name = self.name_of(&first.keys, others);
        let mut popped = vec![first];
        if count > 1 {
            let more = Wanted::many(end, popped[0].keys.clone(), count - 1);
            // Whatever becomes of the others, the first one is here.
            popped.extend(self.queue.engine.pops.poll(more).await.ok().flatten());
        }
        Ok(Some((name, self.decode_each(verb, popped)?)))
    }

    async fn pop_any(
        &self,
        verb: &str,
        end: End,
        timeout: Duration,
        others: &[&str],
    ) -> Result<Option<Popped>> {
        self.check_taking(verb)?;
        let mut lists = vec![self.queue.keys.clone()];
        for name in others {
            let keys = self.queue.engine.keys(name);
            if !lists.contains(&keys) {
                lists.push(keys);
            }
        }
        let wanted = Wanted::one(end, self.keep_moving(lists));
        self.queue.engine.pops.wait_for(wanted, timeout).await.map_err(self.queue.failed(verb))
    }

    /// The caller's name for a list.
    fn name_of(&self, keys: &Keys, others: &[&str]) -> String {
        let other = others.iter().find(|name| self.queue.engine.keys(name) == *keys);
        other.map_or(self.name(), |name| name).to_owned()
    }
}
