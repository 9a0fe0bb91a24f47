//! The queues behind each channel: `q` and `{q}` share theirs.

use std::collections::HashMap;
use std::sync::Arc;

use super::schedule::QueueId;
use crate::conn::Channels;

#[derive(Debug, Default)]
pub(super) struct Listeners(HashMap<Arc<str>, Vec<QueueId>>);

impl Listeners {
    /// Subscribes a queue to a channel.
    pub(super) fn add(&mut self, channel: &[u8], queue: QueueId, channels: &Channels) {
        let channel = name(channel);
        self.0.entry(channel.clone()).or_default().push(queue);
        channels.subscribe(channel);
    }

    /// Removes a queue from a channel, and the subscription with the last queue.
    pub(super) fn remove(&mut self, channel: &[u8], queue: QueueId, channels: &Channels) {
        let channel = name(channel);
        let Some(queues) = self.0.get_mut(&channel) else { return };
        queues.retain(|other| *other != queue);
        if queues.is_empty() {
            self.0.remove(&channel);
            channels.unsubscribe(channel);
        }
    }

    /// The queues that listen to a channel.
    pub(super) fn of(&self, channel: &str) -> impl Iterator<Item = QueueId> {
        self.0.get(channel).into_iter().flatten().copied()
    }
}

fn name(channel: &[u8]) -> Arc<str> {
    String::from_utf8_lossy(channel).into()
}
