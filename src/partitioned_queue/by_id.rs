//! Many jobs at once: each partition is asked for its own.

use futures::future::join_all;

use super::{PartitionedQueue, partition_of};
use crate::DelayedQueue;
use crate::delayed_queue::{Cancelled, JobState};
use crate::error::{Error, Result};

/// # Many jobs by id
impl<T: 'static> PartitionedQueue<T> {
    /// The states of the jobs of these ids: see [`DelayedQueue::job_states`]. One call for each partition
    /// that has any of them.
    ///
    /// # Errors
    /// As [`DelayedQueue::job_states`].
    ///
    /// # Cancel safety
    /// Cancel safe.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::PartitionedQueue<i64>) -> redelay::Result<()> {
    /// let states = orders.job_states(["order-17", "order-18"]).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn job_states<I: AsRef<[u8]>>(
        &self,
        ids: impl IntoIterator<Item = I>,
    ) -> Result<Vec<Option<JobState>>> {
        let (failed, states) = self.by_id(ids, async |queue, ids| queue.job_states(ids).await).await;
        Error::of_several(failed).map_or(Ok(states), Err)
    }

    /// Removes the jobs of these ids: see [`DelayedQueue::cancel_all`]. The partitions do it at the same
    /// time.
    ///
    /// # Errors
    /// As [`DelayedQueue::cancel_all`], also if one partition fails after others have removed jobs.
    ///
    /// # Cancel safety
    /// As [`DelayedQueue::cancel_all`].
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(orders: redelay::PartitionedQueue<i64>) -> redelay::Result<()> {
    /// let cancelled = orders.cancel_all(["order-17", "order-18"]).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cancel_all<I: AsRef<[u8]>>(
        &self,
        ids: impl IntoIterator<Item = I>,
    ) -> Result<Vec<Cancelled>> {
        let ids: Vec<_> = ids.into_iter().collect();
        // Before another partition cancels anything.
        ids.iter().try_for_each(|id| self.delayed_queue_of(id).check_cancel(id.as_ref()))?;
        let (failed, cancelled) = self.by_id(ids, async |queue, ids| queue.cancel_each(ids).await).await;
        let of_failed: usize = failed.iter().map(|(_, cancelled)| cancelled).sum();
        let of_others = cancelled.iter().filter(|what| **what != Cancelled::NotFound).count();
        match Error::of_several(failed.into_iter().map(|(error, _)| error)) {
            Some(error) => Err(error.after_parts(of_failed + of_others, "jobs were cancelled")),
            None => Ok(cancelled),
        }
    }

    /// Calls each partition with its ids. Returns the errors, and the results of the others in the order of
    /// all ids.
    async fn by_id<I: AsRef<[u8]>, R, E>(
        &self,
        ids: impl IntoIterator<Item = I>,
        call: impl AsyncFn(&DelayedQueue<T>, Vec<Vec<u8>>) -> std::result::Result<Vec<R>, E>,
    ) -> (Vec<E>, Vec<R>) {
        let mut parts: Vec<(Vec<usize>, Vec<Vec<u8>>)> = Vec::new();
        parts.resize_with(self.partitions.len(), Default::default);
        for (place, id) in ids.into_iter().enumerate() {
            let part = &mut parts[partition_of(id.as_ref(), self.partitions.len())];
            part.0.push(place);
            part.1.push(id.as_ref().to_vec());
        }
        let asked = self.partitions.iter().zip(parts).filter(|(_, (places, _))| !places.is_empty());
        let calls = asked.map(|(partition, (places, ids))| {
            let call = &call;
            async move { (places, call(&partition.delayed, ids).await) }
        });
        let (mut all, mut errors) = (Vec::new(), Vec::new());
        for (places, results) in join_all(calls).await {
            match results {
                Ok(results) => all.extend(places.into_iter().zip(results)),
                Err(error) => errors.push(error),
            }
        }
        all.sort_unstable_by_key(|(place, _)| *place);
        (errors, all.into_iter().map(|(_, result)| result).collect())
    }
}
