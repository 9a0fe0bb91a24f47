//! What a receiver learns from announcements: when a retry is due.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

/// When the first retry of a queue is due, as another receiver has announced it: epoch ms, by the server's
/// clock. Shared by the task that listens, and the task of a receiver, whose calls tell it that
/// clock.
#[derive(Debug, Default)]
pub(crate) struct AnnouncedRetry {
    at: Mutex<Option<f64>>,
    changed: Notify,
}

impl AnnouncedRetry {
    /// A retry may be due.
    pub(super) fn announce_now(&self) {
        self.announce(0.0);
    }

    pub(super) fn announce(&self, at: f64) {
        let mut known = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some(known.map_or(at, |known| known.min(at)));
        drop(known);
        self.changed.notify_one();
    }

    /// Waits for an announcement. Cancel safe.
    pub(crate) async fn next(&self) -> f64 {
        loop {
            self.changed.notified().await;
            if let Some(at) = self.at.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return at;
            }
        }
    }
}
