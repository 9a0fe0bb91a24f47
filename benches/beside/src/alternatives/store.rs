//! What both alternatives have: a store of messages, and notes of what was taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::time::Duration;

use crate::job::{due, now};

/// Where messages wait until they are due. Dropping it ends its consumer.
pub(super) trait Store {
    fn offer(&mut self, message: String, delay: Duration);
}

/// Notes what was received.
#[derive(Clone)]
pub(super) struct Taken {
    pub(super) late: Sender<i64>,
    pub(super) count: Arc<AtomicU64>,
}

impl Taken {
    pub(super) fn note(&self, message: &str) {
        // Nobody waits for the last ones.
        let _ = self.late.send(now() - due(message));
        self.count.fetch_add(1, Relaxed);
    }
}
