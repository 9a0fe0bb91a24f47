//! Ready payloads, from the head of the list.

use std::fmt;

use bytes::Bytes;
use serde::Serialize;

use super::list::Element;
use super::{Cursor, Inspector};
use crate::error::Result;

/// A payload that takers can take. [`Inspector::ready`] and [`Inspector::inbox`] return it.
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

impl From<&ReadyPayload> for Cursor {
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
    /// Reads up to `max` payloads that takers can take, from the head of the list or behind a cursor.
    ///
    /// If more than 1,000 payloads in front of the cursor have been taken since it was read, the reading
    /// begins at the head again, and some may be returned twice. Equal payloads cannot be told apart: if
    /// others were taken meanwhile, some may be returned twice, or not at all.
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
        after: Option<Cursor>,
        max: usize,
    ) -> Result<Vec<ReadyPayload>> {
        let look = self.look("ready", queue);
        Ok(payloads(look.elements(look.keys.target(), 1, after, max).await?))
    }

    /// Reads up to `max` payloads of the inbox: they were moved there for a waiting receiver, and no
    /// receiver has claimed them yet. That takes a round trip usually.
    ///
    /// # Errors
    /// As [`ready`](Self::ready).
    ///
    /// # Cancel safety
    /// Cancel safe: it only reads.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(inspector: redelay::inspector::Inspector) -> redelay::Result<()> {
    /// let unclaimed = inspector.inbox("orders", None, 10).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn inbox(
        &self,
        queue: impl AsRef<[u8]>,
        after: Option<Cursor>,
        max: usize,
    ) -> Result<Vec<ReadyPayload>> {
        let look = self.look("inbox", queue);
        Ok(payloads(look.elements(&look.keys.of_messages().inbox, 1, after, max).await?))
    }
}

fn payloads(elements: Vec<Element>) -> Vec<ReadyPayload> {
    let payload = |Element { index, items }| Some(ReadyPayload { index, payload: items.into_iter().next()? });
    elements.into_iter().filter_map(payload).collect()
}
