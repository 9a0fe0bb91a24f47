//! Who listens to each channel: queues, where `q` and `{q}` share theirs, and receivers.

use std::collections::HashMap;
use std::sync::Arc;

use crate::conn::Channels;

#[derive(Debug)]
pub(super) struct Listeners<L>(HashMap<Arc<str>, Vec<L>>);

impl<L> Default for Listeners<L> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<L> Listeners<L> {
    /// Subscribes a listener to a channel.
    pub(super) fn add(&mut self, channel: &[u8], listener: L, channels: &Channels) {
        let channel = name(channel);
        self.0.entry(channel.clone()).or_default().push(listener);
        channels.subscribe(channel);
    }

    /// Removes a listener from a channel, and the subscription with the last one. Returns the channel's name.
    pub(super) fn remove(
        &mut self,
        channel: &[u8],
        is_it: impl Fn(&L) -> bool,
        channels: &Channels,
    ) -> Arc<str> {
        let channel = name(channel);
        if let Some(listeners) = self.0.get_mut(&channel) {
            listeners.retain(|other| !is_it(other));
            if listeners.is_empty() {
                self.0.remove(&channel);
                channels.unsubscribe(channel.clone());
            }
        }
        channel
    }

    /// Subscribes to a channel again. Returns its name.
    pub(super) fn subscribe_again(&self, channel: &[u8], channels: &Channels) -> Arc<str> {
        let channel = name(channel);
        channels.subscribe(channel.clone());
        channel
    }

    /// Subscribes to all channels that have a listener.
    pub(super) fn subscribe_all(&self, channels: &Channels) {
        self.0.keys().for_each(|channel| channels.subscribe(channel.clone()));
    }

    /// Those that listen to a channel.
    pub(super) fn of(&self, channel: &str) -> impl Iterator<Item = &L> {
        self.0.get(channel).into_iter().flatten()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &L> {
        self.0.values().flatten()
    }
}

fn name(channel: &[u8]) -> Arc<str> {
    String::from_utf8_lossy(channel).into()
}
