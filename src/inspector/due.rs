//! How many entries become due when.

use std::time::{Duration, SystemTime};

use futures::future::try_join_all;
use serde::Serialize;

use super::Inspector;
use crate::conn::Command;
use crate::error::Result;
use crate::wire::time;

/// The most steps of one call.
const STEPS: usize = 1_000;

/// How many entries become due in a span of time. [`Inspector::due`] returns it.
///
/// # Examples
/// ```no_run
/// # use std::time::Duration;
/// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
/// for span in inspector.due("orders", Duration::from_secs(600), 6).await? {
///     println!("until {:?}: {}", span.until, span.count);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct DueCount {
    /// The end of the span, which begins with the end of the one before, by the server's clock; `None` for
    /// what is due later than all of them.
    #[serde(serialize_with = "time::optional_in_epoch_ms")]
    pub until: Option<SystemTime>,
    /// How many entries.
    pub count: u64,
}

impl Inspector {
    /// Counts the pending entries by the time at which they are due: first what is due already, then `count`
    /// spans of this length from now on, then the rest. At most 1,000 spans. O(log n) for each.
    ///
    /// # Errors
    /// As [`pending`](Self::pending), with the permissions `ZCOUNT` and `TIME`; and
    /// [`Invalid`](crate::ErrorKind::Invalid) for a span of less than a millisecond.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
    /// let hours = inspector.due("orders", Duration::from_secs(3600), 24).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn due(&self, queue: impl AsRef<[u8]>, step: Duration, count: usize) -> Result<Vec<DueCount>> {
        let look = self.look("due", queue);
        let step = u64::try_from(step.as_millis()).unwrap_or(u64::MAX).min(time::LIMIT);
        if step == 0 {
            return Err(look.invalid("a step of less than 1 ms; use 1 ms or longer"));
        }
        let now = look.millis().await?.unsigned_abs();
        let end = |n: usize| now.saturating_add(step.saturating_mul(n as u64)).min(time::LIMIT);
        let ends: Vec<u64> = (0..=count.min(STEPS)).map(end).collect();
        // From one to the next, the end included: an entry is due at its time.
        let bounds = std::iter::once("-inf".to_owned()).chain(ends.iter().map(|end| format!("({end}")));
        let spans = bounds.zip(ends.iter().map(ToString::to_string).chain(["+inf".to_owned()]));
        let counts = spans.map(async |(from, to)| {
            look.count(Command::new("ZCOUNT").arg(look.keys.timeout_set().clone()).arg(from).arg(to)).await
        });
        let counts = try_join_all(counts).await?;
        let until = ends.into_iter().map(|end| Some(time::from_epoch_millis(end))).chain([None]);
        Ok(until.zip(counts).map(|(until, count)| DueCount { until, count: count as u64 }).collect())
    }
}
