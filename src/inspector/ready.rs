//! Ready payloads, from the head of the list.

use std::fmt;

use bytes::Bytes;
use serde::Serialize;

use super::list::Element;
use super::{Inspector, Place};
use crate::error::Result;

/// A payload that takers can take. [`Inspector::ready`] returns it.
///
/// # Examples
/// ```no_run
/// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
/// for ready in inspector.ready("orders", None, 100).await? {
///     println!("{}: {} bytes", ready.index, ready.payload.len());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct ReadyPayload {
    /// How many payloads were in front of it.
    pub index: usize,
    /// The payload.
    pub payload: Bytes,
}

impl From<&ReadyPayload> for Place {
    fn from(ready: &ReadyPayload) -> Self {
        Self::in_list(ready.index, &[&ready.payload])
    }
}

impl fmt::Debug for ReadyPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Payloads must not get into a log.
        f.debug_struct("ReadyPayload")
            .field("index", &self.index)
            .field("bytes", &self.payload.len())
            .finish_non_exhaustive()
    }
}

impl Inspector {
    /// Reads up to `limit` payloads that takers can take, from the head of the list or behind a place.
    ///
    /// If more than 1,000 payloads in front of the place have been taken since it was read, the reading
    /// begins at the head again, and some may be returned twice. So it is with equal payloads.
    ///
    /// # Errors
    /// As [`pending`](Self::pending), with the permissions `LLEN`, `LRANGE` and `LINDEX`.
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
    /// let next = inspector.ready("orders", None, 10).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn ready(
        &self,
        queue: impl AsRef<[u8]>,
        after: Option<Place>,
        limit: usize,
    ) -> Result<Vec<ReadyPayload>> {
        let look = self.look("ready", queue);
        let elements = look.elements(look.keys.target(), 1, after, limit).await?;
        let payload =
            |Element { index, items }| Some(ReadyPayload { index, payload: items.into_iter().next()? });
        Ok(elements.into_iter().filter_map(payload).collect())
    }
}
