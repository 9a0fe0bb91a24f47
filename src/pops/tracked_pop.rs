//! A blocking pop without a connection of its own, for a cluster: there, one connection blocks on the lists of one slot only, so
//! takers of a thousand queues would need a thousand. Beyond some of them for each server, a pop waits on the connection on which the
//! server tells which lists have changed, and then pops without blocking.

use std::sync::{Arc, OnceLock};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::calls::try_pop;
use super::dispatcher::PopOutcome;
use super::kind::Kind;
use super::tracked::Tracked;
use crate::claims::ClaimId;
use crate::conn::{Conn, OpError};
use crate::pacing::backoff;
use crate::wire::keys::Keys;

/// A pop on several lists that waits until one of them has changed.
pub(super) struct TrackedPop {
    pub(super) conn: Conn,
    pub(super) kind: Kind,
    pub(super) keys: Vec<Keys>,
    pub(super) tracked: Tracked,
    /// Interrupt it at once: the only purpose is that the server looks at the lists.
    pub(super) interrupt_at_once: bool,
    pub(super) interrupt: CancellationToken,
    /// Set when it begins to wait.
    pub(super) sent: Arc<OnceLock<Instant>>,
    /// The number of attempts in a row that have failed before.
    pub(super) failures: u32,
}

/// How it ended, and the claim of what it took, which is to be confirmed.
type Ended = (PopOutcome, Option<(Keys, ClaimId)>);

impl TrackedPop {
    pub(super) async fn run(self) -> Ended {
        if self.failures > 0 {
            sleep(backoff(self.failures - 1)).await;
        }
        let _ = self.sent.set(Instant::now());
        if self.interrupt_at_once {
            return self.look(&self.keys).await;
        }
        let mut waiting: FuturesUnordered<_> = self.keys.iter().map(|keys| self.changed(keys)).collect();
        loop {
            tokio::select! {
                // A list may have changed just now.
                () = self.interrupt.cancelled() => return self.look(&self.keys).await,
                Some((keys, changed)) = waiting.next() => {
                    if let Err(error) = changed {
                        return (PopOutcome::Failed(error), None);
                    }
                    match self.look(std::slice::from_ref(keys)).await {
                        // Somebody else was quicker.
                        (PopOutcome::Empty, _) => waiting.push(self.changed(keys)),
                        ended => return ended,
                    }
                }
            }
        }
    }

    /// Waits until a list may have a payload. Cancel safe.
    async fn changed<'a>(&self, keys: &'a Keys) -> (&'a Keys, Result<(), OpError>) {
        // Without an answer, the task has ended; the pop finds out why.
        (keys, self.tracked.wait(keys).await.unwrap_or(Ok(())))
    }

    async fn look(&self, lists: &[Keys]) -> Ended {
        for keys in lists {
            match try_pop(&self.conn, &self.kind, keys, 1, None).await {
                (Ok(mut payloads), claim) => {
                    if let Some(payload) = payloads.pop() {
                        let claim = claim.map(|claim| (keys.clone(), claim));
                        return (PopOutcome::Payload(keys.clone(), payload), claim);
                    }
                }
                (Err(error), _) => return (PopOutcome::Failed(error), None),
            }
        }
        (PopOutcome::Empty, None)
    }
}
