//! The connection on which the server says which lists have changed (`CLIENT TRACKING`).

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::watch;

use super::client::{FredClient, Invalidation, changed_keys};
use super::purpose::Purpose;
use super::pushed::{Push, Pushed};
use super::slots::Table;
use super::topology::Topology;
use super::{Conn, ConnectError, Link};

/// What has changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Lists(Vec<Bytes>),
    /// Any list may have, because the connection is a new one, or notices were lost.
    Any,
}

/// The changes of the lists that were read on a tracking connection: the first one after each reading.
#[derive(Debug)]
pub(crate) struct Changes {
    notices: Pushed<Invalidation>,
    /// In a cluster, a list may have gone to another server, which notifies no one.
    tables: Option<watch::Receiver<Option<Table>>>,
}

impl Conn {
    /// Opens a connection that tracks the keys that are read on it, to the server that has the queue's slot
    /// now. Tries once. A user may lack the permission.
    pub(crate) async fn open_tracker(&self) -> Result<(Arc<Link>, Changes), ConnectError> {
        let (options, lead) = self.options_here().await?;
        let tables = self.base.shared.topology.as_ref().map(Topology::tables);
        let link = Link::open_once(&options, Purpose::Tracker, &self.shared_here(), lead).await?;
        let notices = Pushed::of(&link, FredClient::invalidations);
        Ok((link, Changes { notices, tables }))
    }
}

impl Changes {
    /// Waits for the next change. Cancel safe. `None` when there will be none any more.
    pub(crate) async fn next(&mut self) -> Option<Change> {
        tokio::select! {
            notice = self.notices.next() => Some(match notice? {
                Push::Message(notice) => Change::Lists(changed_keys(notice)),
                Push::Missed | Push::Session => Change::Any,
            }),
            Some(changed) = async { Some(self.tables.as_mut()?.changed().await) } => {
                changed.ok()?;
                Some(Change::Any)
            }
        }
    }
}
