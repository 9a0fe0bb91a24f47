//! Payloads on their way from a pop to a taker.

use bytes::Bytes;

use super::kind::End;
use crate::conn::OpError;
use crate::outbox::{Held, Outbox};
use crate::wire::keys::Keys;

/// Payloads that were popped from one end of a list. Each has its number among all popped payloads, so that returned
/// payloads keep their order.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) keys: Keys,
    pub(crate) end: End,
    pub(crate) payloads: Vec<(u64, Bytes)>,
}

/// What a taker receives. If it is dropped unread, its payloads go to the next taker, or back to the end of the list they
/// came from.
#[derive(Debug)]
pub(crate) struct Popped {
    pub(crate) keys: Keys,
    batch: Held<Batch>,
}

impl Popped {
    pub(super) fn new(batch: Batch, outbox: &Outbox<Batch>) -> Self {
        Self { keys: batch.keys.clone(), batch: outbox.hold(batch) }
    }

    /// Takes the payloads; from here on the caller owns them. After a shutdown they may be back in their list.
    pub(crate) fn read(self) -> Result<Vec<Bytes>, OpError> {
        let batch = self.batch.read().ok_or(OpError::Closed)?;
        Ok(batch.payloads.into_iter().map(|(_, payload)| payload).collect())
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.batch.peek(|batch| batch.payloads.len()).unwrap_or_default()
    }

    /// The numbered payloads, because the taker was dropped.
    pub(super) fn into_undelivered(self) -> Vec<(u64, Bytes)> {
        self.batch.read().map(|batch| batch.payloads).unwrap_or_default()
    }
}
