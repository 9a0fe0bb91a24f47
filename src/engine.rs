//! `Engine`: the connections and background tasks behind a client and its queues, and the order in which they
//! end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::announcements::{Announced, Following};
use crate::conn::{Conn, OpError};
use crate::early_polls::EarlyPolls;
use crate::pacing::{at_most, within};
use crate::pops::Pops;
use crate::scripts;
use crate::telemetry::events;
use crate::transfer::{self, Transfer, Watch};
use crate::wire::keys::Keys;

/// Maps the name of a queue to its name on the server.
pub(crate) type NameMapper = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// The options of an engine, without those of its connection.
pub(crate) struct Settings {
    /// Whether this client transfers.
    pub(crate) transfers: bool,
    pub(crate) transfer: transfer::Settings,
    pub(crate) map_name: NameMapper,
    /// In bytes.
    pub(crate) max_payload: usize,
}

/// How long tasks may take to close their connections, after what the command timeout bounds.
const CLOSING: Duration = Duration::from_secs(3);

/// The begin of the end, and the tasks that have something to do on the server before the connections close.
#[derive(Clone, Debug, Default)]
pub(crate) struct AtStop {
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

/// Shared by a client and all handles made from it. Dropping the last of them stops the tasks.
pub(crate) struct Engine {
    pub(crate) conn: Conn,
    pub(crate) pops: Pops,
    pub(crate) early_polls: EarlyPolls,
    /// `None`: this client does not transfer.
    pub(crate) transfer: Option<Transfer>,
    /// The task that hears announcements, whether or not it transfers.
    listening: Transfer,
    pub(crate) at_stop: AtStop,
    pub(crate) transfer_settings: transfer::Settings,
    map_name: NameMapper,
    pub(crate) max_payload: usize,
    /// Whether the user's permissions have been looked at.
    checked: Arc<AtomicBool>,
    /// Cancelled when the connections are closed.
    stopped: CancellationToken,
    _stop_on_drop: DropGuard,
}

impl Engine {
    pub(crate) fn start(conn: Conn, settings: Settings) -> Arc<Self> {
        let at_stop = AtStop::default();
        let stop = &at_stop.stop;
        let (pops, popping) = Pops::start(conn.clone(), stop.child_token(), stop.clone());
        let (listening, task) = Transfer::start(conn.clone(), settings.transfer.clone(), stop.clone());
        let transfer = settings.transfers.then(|| listening.clone());
        let on_head = {
            let transfer = transfer.clone();
            move |keys: &Keys, due| transfer.iter().for_each(|transfer: &Transfer| transfer.head(keys, due))
        };
        let early_polls = EarlyPolls::start(conn.clone(), Arc::new(on_head));
        let stopped = CancellationToken::new();
        tokio::spawn({
            let (conn, early_polls) = (conn.clone(), early_polls.clone());
            let AtStop { stop, tasks } = at_stop.clone();
            let is_over = stopped.clone().drop_guard();
            async move {
                let _is_over = is_over;
                stop.cancelled().await;
                // Returning payloads needs the command connection, so that connection closes last.
                let _ = tokio::join!(task, popping, early_polls.finish());
                tasks.close();
                within(conn.command_timeout(), tasks.wait()).await;
                conn.close().await;
            }
        });
        Arc::new(Self {
            conn,
            pops,
            early_polls,
            transfer,
            listening,
            transfer_settings: settings.transfer,
            map_name: settings.map_name,
            max_payload: settings.max_payload,
            checked: Arc::default(),
            _stop_on_drop: stop.clone().drop_guard(),
            at_stop,
            stopped,
        })
    }

    /// Stops all tasks and closes the connections, and waits until that is done.
    pub(crate) async fn stop(&self) {
        self.at_stop.stop.cancel();
        self.wait(self.stopped.cancelled()).await;
    }

    /// Stops taking, and waits until undelivered payloads are back in their lists. Everything else goes on.
    pub(crate) async fn stop_taking(&self) {
        self.wait(self.pops.stop()).await;
    }

    /// Waits for background tasks, no longer than they may take: no thread may be driving their runtime.
    pub(crate) async fn wait(&self, tasks: impl Future<Output = ()>) {
        let timeout = self.conn.command_timeout();
        at_most((2 * timeout).max(timeout + CLOSING), tasks).await;
    }

    /// Returns an error after a shutdown.
    pub(crate) fn check_open(&self) -> Result<(), OpError> {
        if self.at_stop.stop.is_cancelled() { Err(OpError::Closed) } else { Ok(()) }
    }

    pub(crate) fn keys(&self, name: &str) -> Keys {
        Keys::new((self.map_name)(name))
    }

    /// Looks in the background, until the server has answered once, whether the user lacks a permission for
    /// this queue, and reports it. A call that needs it is refused and changes nothing; but some calls are
    /// rare, and the reason should be in the log before.
    pub(crate) fn check_permissions(&self, keys: &Keys) {
        if self.checked.swap(true, Ordering::Relaxed) {
            return;
        }
        let (conn, keys, checked) = (self.conn.of(keys), keys.clone(), self.checked.clone());
        self.conn.runtime().spawn(async move {
            let (offered, returned, rebuild) = (keys.offered(), keys.returned(), keys.rebuild());
            let names = [
                keys.target(),
                keys.timeout_set(),
                keys.ordered_list(),
                keys.quarantine(),
                keys.claims(),
                keys.scratch(),
                &offered,
                &returned,
                keys.channel(),
                keys.moved(),
                &rebuild,
            ];
            let call = scripts::PERMISSIONS.on(&[]).args(names.map(Bytes::clone));
            let missing = call.run_once(&conn).await.and_then(|reply| Ok(reply.into_strings()?));
            if let Err(OpError::NotExecuted(_) | OpError::Unknown(_)) = missing {
                // Nothing was learned, so the next queue looks.
                checked.store(false, Ordering::Relaxed);
            }
            let missing = missing.unwrap_or_default();
            if !missing.is_empty() {
                let missing: Vec<_> = missing.iter().map(|part| String::from_utf8_lossy(part)).collect();
                let mut missing = missing.join("; ");
                // Each receipt has a separate key: the pattern of an ACL is what is missing.
                for receipt in [&offered, &returned] {
                    let receipt = String::from_utf8_lossy(receipt);
                    if let Some((queue, _)) = receipt.rsplit_once(':') {
                        missing = missing.replace(&*receipt, &format!("{queue}:*"));
                    }
                }
                conn.counters().failed("permissions", &missing);
                events::permissions_missing(&keys, &missing);
            }
        });
    }

    /// The key of the list that the caller names.
    pub(crate) fn target(&self, name: &str) -> Bytes {
        self.keys(name).target().clone()
    }

    /// Tells a receiver of the retries that are announced for these keys, until the guard is dropped.
    pub(crate) fn follow_retries(&self, keys: &Keys, receiver: &Arc<Announced>) -> Following {
        self.listening.follow_retries(keys.of_messages().channel, receiver.clone())
    }

    /// Transfers a queue while the guard exists. `None` if this client does not transfer, or a cluster cannot
    /// hold the queue.
    pub(crate) fn watch(&self, keys: &Keys) -> Option<Watch> {
        let transfer = self.transfer.as_ref().filter(|_| self.conn.can_hold(keys));
        transfer.map(|transfer| transfer.watch(keys))
    }
}
