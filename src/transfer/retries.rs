//! What a receiver learns from announcements: when a retry is due.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

/// When the first retry of a queue is due, as another receiver has announced it. Shared by the transfer task, which listens,
/// and the task of a receiver.
#[derive(Debug, Default)]
pub(crate) struct AnnouncedRetry {
    at: Mutex<Option<Instant>>,
    changed: Notify,
}

impl AnnouncedRetry {
    pub(super) fn announce(&self, at: Instant) {
        let mut known = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some(known.map_or(at, |known| known.min(at)));
        drop(known);
        self.changed.notify_one();
    }

    /// Waits for an announcement. Cancel safe.
    pub(crate) async fn next(&self) -> Instant {
        loop {
            self.changed.notified().await;
            if let Some(at) = self.at.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return at;
            }
        }
    }
}
