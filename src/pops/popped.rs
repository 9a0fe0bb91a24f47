//! Payloads on their way from a pop to a taker.

use std::fmt;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::keys::Keys;

/// The end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum End {
    Head,
    Tail,
}

/// Payloads that were popped and are in nobody's hands yet.
///
/// Whoever drops it unread gives them back: to the next taker, or to the end of the list they came from. So a taker's
/// future may be dropped at any point: before the hand-over, after it, or between being woken and being polled, when
/// the channel drops what it holds.
pub(crate) struct Popped {
    pub(crate) keys: Keys,
    pub(crate) end: End,
    payloads: Vec<Numbered>,
    /// Where they go when dropped. A payload that was moved to another list has no way back, and needs none.
    home: Option<Home>,
    _on_its_way: Option<TaskTrackerToken>,
}

/// A payload, and its number among all that were popped: what comes back keeps their order.
pub(crate) type Numbered = (u64, Bytes);

/// The way back to the task that popped.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    pub(crate) returns: mpsc::UnboundedSender<Popped>,
    /// Lets a shutdown wait for payloads that are handed over but not read.
    pub(crate) on_their_way: TaskTracker,
}

impl Popped {
    pub(crate) fn new(keys: Keys, end: End, payloads: Vec<Numbered>, home: Option<Home>) -> Self {
        let _on_its_way = home.as_ref().map(|home| home.on_their_way.token());
        Self { keys, end, payloads, home, _on_its_way }
    }

    /// Takes the payloads: from here on they are the caller's.
    pub(crate) fn into_payloads(self) -> Vec<Bytes> {
        self.into_numbered().into_iter().map(|(_, payload)| payload).collect()
    }

    pub(super) fn into_numbered(mut self) -> Vec<Numbered> {
        std::mem::take(&mut self.payloads)
    }

    /// Takes a single payload.
    pub(crate) fn into_payload(self) -> Option<Bytes> {
        self.into_payloads().into_iter().next()
    }

    /// Adds what another pop from the same list brought.
    pub(crate) fn append(&mut self, other: Popped) {
        self.payloads.append(&mut other.into_numbered());
    }
}

impl Drop for Popped {
    fn drop(&mut self) {
        if let Some(home) = self.home.take().filter(|_| !self.payloads.is_empty()) {
            let payloads = std::mem::take(&mut self.payloads);
            // Counted anew before this one is uncounted, so that a shutdown never overlooks them.
            let returns = home.returns.clone();
            let popped = Popped::new(self.keys.clone(), self.end, payloads, Some(home));
            if let Err(mpsc::error::SendError(mut popped)) = returns.send(popped) {
                // The task has ended, and with it the connection: nobody is left to take them back.
                popped.home = None;
            }
        }
    }
}

impl fmt::Debug for Popped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Popped").field("keys", &self.keys).field("payloads", &self.payloads.len()).finish()
    }
}
