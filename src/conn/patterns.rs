//! Listening to all channels that match patterns: one subscriber, or in a cluster one for each master.
//!
//! The bus of a cluster brings each message to all of its servers. The one of the server that has the
//! channel's slot counts, so that each comes once.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::address::Address;
use super::client::To;
use super::cluster::Cluster;
use super::shared::Shared;
use super::slot::Slot;
use super::subscriber::{Channels, NOTICES, Notice, subscriber};
use super::{Conn, Options, Servers};

impl Conn {
    /// Listens to these patterns, in tasks that end with `stop`, or when the receiver is dropped.
    pub(crate) fn listen_to_patterns(
        &self,
        patterns: &'static [&'static str],
        stop: CancellationToken,
    ) -> mpsc::Receiver<Notice> {
        let (notices, listener) = mpsc::channel(NOTICES);
        let (options, shared) = (self.base.options.clone(), self.base.shared.clone());
        let listening = match &self.base.servers {
            Servers::One(_) => {
                let lead = shared.lead(Slot::ANY);
                let listening = async move {
                    let (channels, wishes) = Channels::new();
                    patterns.iter().for_each(|pattern| channels.subscribe((*pattern).into()));
                    subscriber(To::Patterns, options, lead, shared, wishes, notices).await;
                };
                listening.boxed()
            }
            Servers::Cluster(cluster) => follow(cluster.clone(), options, shared, patterns, notices).boxed(),
        };
        self.base.runtime.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = listening => {}
            }
        });
        listener
    }
}

/// Listens at each master, whichever these are.
async fn follow(
    cluster: Arc<Cluster>,
    options: Options,
    shared: Shared,
    patterns: &'static [&'static str],
    notices: mpsc::Sender<Notice>,
) {
    let mut tables = cluster.topology().tables();
    // A subscriber ends with its channels.
    let mut servers: BTreeMap<Address, Channels> = BTreeMap::new();
    loop {
        let table = tables.borrow_and_update().clone().unwrap_or_default();
        let masters = table.masters();
        servers.retain(|server, _| masters.contains(server));
        for server in masters {
            servers.entry(server.clone()).or_insert_with(|| {
                let (channels, wishes) = Channels::new();
                patterns.iter().for_each(|pattern| channels.subscribe((*pattern).into()));
                let (options, shared) = (options.at(server), shared.for_another_server());
                let (all, here) = mpsc::channel(NOTICES);
                tokio::spawn(subscriber(To::Patterns, options, None, shared, wishes, all));
                tokio::spawn(forward(here, server.clone(), cluster.clone(), notices.clone()));
                channels
            });
        }
        tokio::select! {
            changed = tables.changed() => if changed.is_err() {
                return;
            },
            () = notices.closed() => return,
        }
    }
}

/// Passes on what is published on this server.
async fn forward(
    mut here: mpsc::Receiver<Notice>,
    server: Address,
    cluster: Arc<Cluster>,
    notices: mpsc::Sender<Notice>,
) {
    while let Some(notice) = here.recv().await {
        if let Notice::Message { channel, .. } = &notice
            && cluster.topology().server_of(Slot::of(channel.as_bytes())).as_ref() != Some(&server)
        {
            continue;
        }
        if notices.send(notice).await.is_err() {
            return;
        }
    }
}
