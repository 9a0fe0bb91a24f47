//! What runs behind a client and its queues: the connections and the background tasks, and the order in which they end.

use std::sync::Arc;

use bytes::Bytes;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::conn::{Conn, OpError};
use crate::early_polls::Polls;
use crate::pops::Pops;
use crate::transfer::{self, Transfer, Watch};
use crate::wire::keys::Keys;

/// Maps a queue's name to the name that is used on the server.
pub(crate) type NameMapper = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// What an engine needs to know beyond its connection.
pub(crate) struct Settings {
    /// `None`: somebody else moves what is due.
    pub(crate) transfer: Option<transfer::Settings>,
    pub(crate) map_name: NameMapper,
    /// Bytes.
    pub(crate) max_payload: usize,
}

/// Shared by a client and all queues made from it. The last one to go stops the tasks.
pub(crate) struct Engine {
    pub(crate) conn: Conn,
    pub(crate) pops: Pops,
    pub(crate) polls: Polls,
    transfer: Option<Transfer>,
    map_name: NameMapper,
    pub(crate) max_payload: usize,
    stop: CancellationToken,
    stopped: TaskTracker,
    _stop_on_drop: DropGuard,
}

impl Engine {
    pub(crate) fn start(conn: Conn, settings: Settings) -> Arc<Self> {
        let stop = CancellationToken::new();
        let (pops, popping) = Pops::start(conn.clone(), stop.child_token(), stop.clone());
        let (transfer, transferring) = match settings.transfer {
            Some(settings) => {
                let (transfer, task) = Transfer::start(conn.clone(), settings, stop.clone());
                (Some(transfer), Some(task))
            }
            None => (None, None),
        };
        let polls = Polls::start(conn.clone());
        let stopped = TaskTracker::new();
        stopped.spawn({
            let (conn, stop, polls) = (conn.clone(), stop.clone(), polls.clone());
            async move {
                stop.cancelled().await;
                let transferring = async { transferring?.await.ok() };
                // What finds a place for payloads needs the command connection, so that one closes last.
                let _ = tokio::join!(transferring, popping, polls.finish());
                conn.close().await;
            }
        });
        stopped.close();
        Arc::new(Self {
            conn,
            pops,
            polls,
            transfer,
            map_name: settings.map_name,
            max_payload: settings.max_payload,
            _stop_on_drop: stop.clone().drop_guard(),
            stop,
            stopped,
        })
    }

    /// Stops everything, and waits until it has stopped.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.stopped.wait().await;
    }

    /// Stops taking, and waits until undelivered payloads are back in their lists. Everything else goes on.
    pub(crate) async fn stop_taking(&self) {
        self.pops.stop().await;
    }

    /// An error after a shutdown.
    pub(crate) fn check_open(&self) -> Result<(), OpError> {
        if self.stop.is_cancelled() { Err(OpError::Closed) } else { Ok(()) }
    }

    pub(crate) fn keys(&self, name: &str) -> Keys {
        Keys::new(&(self.map_name)(name))
    }

    /// The key of a list under the caller's name for it.
    pub(crate) fn target(&self, name: &str) -> Bytes {
        self.keys(name).target().clone()
    }

    /// Keeps a queue moving while the guard lives, unless this client does not transfer.
    pub(crate) fn watch(&self, keys: &Keys) -> Option<Watch> {
        self.transfer.as_ref().map(|transfer| transfer.watch(keys))
    }
}
