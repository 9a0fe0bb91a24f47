//! Payloads on their way from a pop to a taker.

use bytes::Bytes;

use crate::conn::OpError;
use crate::outbox::{Held, Outbox};
use crate::wire::keys::Keys;

/// The end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum End {
    Head,
    Tail,
}

/// A payload, and its number among all that were popped: what comes back keeps their order.
pub(crate) type Numbered = (u64, Bytes);

/// Payloads that were popped from one end of a list.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) keys: Keys,
    pub(crate) end: End,
    pub(crate) payloads: Vec<Numbered>,
}

/// What a taker is handed. Unread, the payloads go to the next taker, or back to the end of the list they came from.
#[derive(Debug)]
pub(crate) struct Popped {
    pub(crate) keys: Keys,
    batch: Held<Batch>,
}

impl Popped {
    pub(super) fn new(batch: Batch, outbox: &Outbox<Batch>) -> Self {
        Self { keys: batch.keys.clone(), batch: outbox.hold(batch) }
    }

    /// Takes the payloads: from here on they are the caller's. After a shutdown they may have gone back already.
    pub(crate) fn read(self) -> Result<Vec<Bytes>, OpError> {
        let batch = self.batch.read().ok_or(OpError::Closed)?;
        Ok(batch.payloads.into_iter().map(|(_, payload)| payload).collect())
    }

    #[cfg(test)]
    pub(super) fn number(&self) -> usize {
        self.batch.peek(|batch| batch.payloads.len()).unwrap_or_default()
    }

    /// The payloads again, because the taker is gone.
    pub(super) fn unread(self) -> Vec<Numbered> {
        self.batch.read().map(|batch| batch.payloads).unwrap_or_default()
    }
}
