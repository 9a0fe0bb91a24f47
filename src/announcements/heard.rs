//! What a receiver learns from announcements: when a retry is due, and which jobs somebody has asked to
//! cancel.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::wire::message::MessageId;

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
    cancel_requests: CancelRequests,
}

/// Keeps a receiver informed for as long as it lives.
pub(crate) struct Following(Box<dyn Fn() + Send + Sync>);

impl Following {
    /// `end` tells the task that listens.
    pub(crate) fn until_dropped(end: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Box::new(end))
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Which jobs somebody has asked to cancel.
#[derive(Debug, Default)]
pub(crate) struct CancelRequests {
    pub(crate) messages: HashSet<MessageId>,
    /// Of other messages, that may have been announced unheard.
    pub(crate) may_be_others: bool,
}

impl CancelRequests {
    /// The most messages that are remembered. If there are more, the receiver asks about all that it has.
    pub(crate) const MOST: usize = 10_000;
}

impl Announced {
    /// What was announced until now may be missing: a retry may be due, and jobs may be cancelled.
    pub(super) fn on_unheard(&self) {
        self.on_retry(0.0);
        self.heard().cancel_requests.may_be_others = true;
        self.cancelled.notify_one();
    }

    pub(super) fn on_retry(&self, retry: f64) {
        let mut heard = self.heard();
        heard.retry = Some(heard.retry.map_or(retry, |known| known.min(retry)));
        drop(heard);
        self.retry.notify_one();
    }

    pub(super) fn on_cancelled(&self, message: MessageId) {
        let mut heard = self.heard();
        if heard.cancel_requests.messages.len() < CancelRequests::MOST {
            heard.cancel_requests.messages.insert(message);
        } else {
            heard.cancel_requests.may_be_others = true;
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
    pub(crate) async fn cancel_requests(&self) -> CancelRequests {
        loop {
            self.cancelled.notified().await;
            let requests = std::mem::take(&mut self.heard().cancel_requests);
            if requests.may_be_others || !requests.messages.is_empty() {
                return requests;
            }
        }
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
