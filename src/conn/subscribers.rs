//! Listening to channels: one subscriber, or in a cluster one for each master.
//!
//! A message reaches all servers of a cluster, but only by their bus, which promises nothing. So each channel
//! is listened to at the server on which it is published, which has the channel's slot.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::address::Address;
use super::client::To;
use super::cluster::Cluster;
use super::shared::Shared;
use super::slot::Slot;
use super::subscriber::{Channels, NOTICES, Notice, Wish, subscriber};
use super::{Conn, Options, Servers};

impl Conn {
    /// Opens the connections for subscriptions, in tasks that end when [`Channels`] is dropped.
    pub(crate) fn listen(&self) -> (Channels, mpsc::Receiver<Notice>) {
        let (channels, wishes) = Channels::new();
        let (notices, listener) = mpsc::channel(NOTICES);
        let (options, shared) = (self.base.options.clone(), self.base.shared.clone());
        match &self.base.servers {
            Servers::One(_) => {
                let lead = shared.lead(Slot::ANY);
                tokio::spawn(subscriber(To::Channels, options, lead, shared, wishes, notices));
            }
            Servers::Cluster(cluster) => {
                let (at, servers) = (HashMap::new(), HashMap::new());
                let subscribers =
                    Subscribers { cluster: cluster.clone(), options, shared, notices, at, servers };
                tokio::spawn(subscribers.run(wishes));
            }
        }
        (channels, listener)
    }
}

/// The subscribers of a cluster.
struct Subscribers {
    cluster: Arc<Cluster>,
    options: Options,
    shared: Shared,
    notices: mpsc::Sender<Notice>,
    /// Where each channel is listened to; `None` while no server has its slot.
    at: HashMap<Arc<str>, Option<Address>>,
    servers: HashMap<Address, Channels>,
}

impl Subscribers {
    async fn run(mut self, mut wishes: mpsc::UnboundedReceiver<Wish>) {
        let mut tables = self.cluster.topology().tables();
        loop {
            tokio::select! {
                wish = wishes.recv() => match wish {
                    Some(Wish::Subscribe(channel)) => self.subscribe(channel),
                    Some(Wish::Unsubscribe(channel)) => self.unsubscribe(&channel),
                    None => return,
                },
                changed = tables.changed() => match changed {
                    Ok(()) => self.follow(),
                    Err(_) => return,
                },
            }
        }
    }

    fn subscribe(&mut self, channel: Arc<str>) {
        let server = self.cluster.topology().server_of(Slot::of(channel.as_bytes()));
        if self.at.get(&channel).is_some_and(|at| *at != server) {
            self.unsubscribe(&channel);
        }
        if let Some(server) = &server {
            let (options, shared, notices) = (&self.options, &self.shared, &self.notices);
            let channels = self.servers.entry(server.clone()).or_insert_with(|| {
                let (channels, wishes) = Channels::new();
                let shared = shared.for_another_server();
                let options = options.at(server);
                tokio::spawn(subscriber(To::Channels, options, None, shared, wishes, notices.clone()));
                channels
            });
            channels.subscribe(channel.clone());
        }
        self.at.insert(channel, server);
    }

    fn unsubscribe(&mut self, channel: &Arc<str>) {
        if let Some(Some(server)) = self.at.remove(channel)
            && let Entry::Occupied(channels) = self.servers.entry(server)
        {
            channels.get().unsubscribe(channel.clone());
        }
    }

    /// The slots are served by other servers. What was missed meanwhile is found when a channel is confirmed.
    fn follow(&mut self) {
        let server = |channel: &Arc<str>| self.cluster.topology().server_of(Slot::of(channel.as_bytes()));
        let moved = self.at.iter().filter(|(channel, at)| {
            let server = server(channel);
            server.is_some() && server != **at
        });
        let moved: Vec<_> = moved.map(|(channel, _)| channel.clone()).collect();
        for channel in moved {
            self.unsubscribe(&channel);
            self.subscribe(channel);
        }
        let Self { at, servers, .. } = self;
        let used: std::collections::HashSet<_> = at.values().flatten().collect();
        servers.retain(|server, _| used.contains(server));
    }
}
