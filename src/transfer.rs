//! Transferring due entries to their targets: one task per client for all of its queues. It also hears the
//! announcements for receivers, in a client that does not transfer, too.
//!
//! For each queue: subscribe, wait until the server confirms, and run the script (a sweep). From then on
//! sleep until the head is due, as the last reply or an announcement said, whichever is earlier. The next
//! sweep finds every entry whose event was lost: at once after a reconnection, otherwise about once a minute.

mod all_due;
mod call;
mod clock;
mod overdue;
mod precise_sleep;
mod schedule;
mod servers;
mod task;

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::announcements::{Announced, Following};
use crate::conn::Conn;
use crate::wire::keys::Keys;
pub(crate) use all_due::all_due;
pub(crate) use task::Settings;
use task::{Request, Task};

/// The handle of the transfer task.
#[derive(Clone, Debug)]
pub(crate) struct Transfer(mpsc::UnboundedSender<Request>);

/// Keeps a queue transferring for as long as it lives.
#[derive(Debug)]
pub(crate) struct Watch {
    keys: Keys,
    requests: mpsc::UnboundedSender<Request>,
    closed: bool,
}

impl Transfer {
    /// Starts the task. It ends when `stop` is cancelled, after the calls in flight have ended.
    pub(crate) fn start(
        conn: Conn,
        settings: Settings,
        stop: CancellationToken,
    ) -> (Self, tokio::task::JoinHandle<()>) {
        let (sender, requests) = mpsc::unbounded_channel();
        let task = Task::new(conn, settings, sender.downgrade());
        (Self(sender), tokio::spawn(task.run(requests, stop)))
    }

    /// A reply says that this is the head, epoch ms. The announcement may have been lost, or refused.
    pub(crate) fn head(&self, keys: &Keys, due: f64) {
        // Fails only after a shutdown.
        let _ = self.0.send(Request::Head(keys.clone(), due));
    }

    /// A call ended without a reply that would have named the head: a transfer finds out.
    pub(crate) fn head_unknown(&self, keys: &Keys) {
        self.head(keys, 0.0);
    }

    /// A schedule of the queue was changed: its next run may be earlier than any other's.
    pub(crate) fn scheduled(&self, keys: &Keys) {
        let _ = self.0.send(Request::Scheduled(keys.clone()));
    }

    /// Transfers for this queue until the guard is dropped. Several guards for one queue share its state.
    pub(crate) fn watch(&self, keys: &Keys) -> Watch {
        // Fails only after a shutdown, when nothing is transferred any more.
        let _ = self.0.send(Request::Open(keys.clone()));
        Watch { keys: keys.clone(), requests: self.0.clone(), closed: false }
    }

    /// Tells a receiver of the retries that are announced on a channel, until the guard is dropped.
    pub(crate) fn follow_retries(&self, channel: Bytes, receiver: Arc<Announced>) -> Following {
        let _ = self.0.send(Request::Follow(channel.clone(), receiver.clone()));
        let requests = self.0.clone();
        Following::until_dropped(move || {
            let _ = requests.send(Request::Unfollow(channel.clone(), receiver.clone()));
        })
    }
}

impl Watch {
    /// Ends it, and waits until the last call has ended.
    pub(crate) async fn close(mut self) {
        self.closed = true;
        let (done, stopped) = oneshot::channel();
        let _ = self.requests.send(Request::Close(self.keys.clone(), Some(done)));
        let _ = stopped.await;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.closed {
            let _ = self.requests.send(Request::Close(self.keys.clone(), None));
        }
    }
}
