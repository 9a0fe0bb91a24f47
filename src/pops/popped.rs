//! Payloads on their way from a pop to a taker.

use bytes::Bytes;

use super::kind::End;
use crate::conn::OpError;
use crate::outbox::{Held, Outbox};
use crate::wire::keys::Keys;

/// Payloads that were popped from one end of a list. Each has its number among all popped payloads, so that
/// returned payloads keep their order.
#[derive(Debug)]
pub(crate) struct Payloads {
    pub(crate) keys: Keys,
    pub(crate) end: End,
    pub(crate) payloads: Vec<(u64, Bytes)>,
}

/// What a taker receives. If it is dropped unread, its payloads go to the next taker, or back to the end of
/// the list they came from.
#[derive(Debug)]
pub(crate) struct Popped {
    pub(crate) keys: Keys,
    payloads: Held<Payloads>,
}

impl Popped {
    pub(super) fn new(payloads: Payloads, outbox: &Outbox<Payloads>) -> Self {
        Self { keys: payloads.keys.clone(), payloads: outbox.hold(payloads) }
    }

    /// Takes the payloads; from here on the caller owns them. After a shutdown they may be back in their
    /// list.
    pub(crate) fn read(self) -> Result<Vec<Bytes>, OpError> {
        let popped = self.payloads.read().ok_or(OpError::Closed)?;
        Ok(popped.payloads.into_iter().map(|(_, payload)| payload).collect())
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.payloads.peek(|popped| popped.payloads.len()).unwrap_or_default()
    }

    /// The numbered payloads, because the taker was dropped.
    pub(super) fn into_undelivered(self) -> Vec<(u64, Bytes)> {
        self.payloads.read().map(|popped| popped.payloads).unwrap_or_default()
    }
}
