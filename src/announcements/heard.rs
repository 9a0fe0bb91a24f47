//! What a receiver learns from announcements: when a retry is due, and which jobs somebody has asked to
//! cancel.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::wire::message::MessageId;

/// The most cancelled messages that are remembered. Of others, the receiver learns when it extends their
/// leases.
const MOST: usize = 10_000;

/// What was announced to the receivers of a queue. Shared by the task that listens, and the task of a
/// receiver.
#[derive(Debug, Default)]
pub(crate) struct Announced {
    heard: Mutex<Heard>,
    retry: Notify,
    cancelled: Notify,
}

#[derive(Debug, Default)]
struct Heard {
    /// When the first retry is due: epoch ms, by the server's clock, which the calls of the receiver tell.
    retry: Option<f64>,
    cancelled: HashSet<MessageId>,
}

impl Announced {
    /// A retry may be due.
    pub(super) fn announce_now(&self) {
        self.announce(0.0);
    }

    pub(super) fn announce(&self, retry: f64) {
        let mut heard = self.heard();
        heard.retry = Some(heard.retry.map_or(retry, |known| known.min(retry)));
        drop(heard);
        self.retry.notify_one();
    }

    pub(super) fn announce_cancelled(&self, message: MessageId) {
        let mut heard = self.heard();
        if heard.cancelled.len() < MOST {
            heard.cancelled.insert(message);
        }
        drop(heard);
        self.cancelled.notify_one();
    }

    /// Waits until a retry is announced. Cancel safe.
    pub(crate) async fn retry(&self) -> f64 {
        loop {
            self.retry.notified().await;
            if let Some(at) = self.heard().retry.take() {
                return at;
            }
        }
    }

    /// Waits until messages are announced whose jobs somebody has asked to cancel. Cancel safe.
    pub(crate) async fn cancelled(&self) -> HashSet<MessageId> {
        loop {
            self.cancelled.notified().await;
            let messages = std::mem::take(&mut self.heard().cancelled);
            if !messages.is_empty() {
                return messages;
            }
        }
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
