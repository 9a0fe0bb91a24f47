//! A blocking pop on a shared connection, for a cluster: there, one connection blocks on the lists of one
//! slot only, so takers of a thousand queues would need a thousand. Beyond some of them for each server, a
//! pop waits on the connection on which the server tells which lists have changed, and then pops without
//! blocking.

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::calls::try_pop;
use super::dispatcher::PopOutcome;
use super::kind::Kind;
use super::tracked::Tracked;
use crate::claims::ClaimId;
use crate::conn::{Conn, OpError};
use crate::pacing::{jittered, pause_after};
use crate::wire::keys::Keys;

/// After this time it looks without a sign, in case that one was lost: a server that hands a slot over
/// notifies no client, and `FLUSHALL` ends the tracking of all lists.
const AGAIN: Duration = Duration::from_secs(20);

/// A pop on several lists that waits until one of them has changed.
pub(super) struct TrackedPop {
    pub(super) conn: Conn,
    pub(super) kind: Kind,
    pub(super) keys: Vec<Keys>,
    pub(super) tracked: Tracked,
    /// Interrupt it at once: the only purpose is that the server looks at the lists.
    pub(super) interrupt_at_once: bool,
    pub(super) interrupt: CancellationToken,
    /// The number of attempts in a row that have failed before.
    pub(super) failures: u32,
}

/// How it ended, and the claim of what it took, which is to be confirmed.
type Ended = (PopOutcome, Option<ClaimId>);

impl TrackedPop {
    pub(super) async fn run(self) -> Ended {
        if self.failures > 0 {
            sleep(pause_after(self.failures - 1)).await;
        }
        if self.interrupt_at_once {
            return self.look(&self.keys).await;
        }
        loop {
            let mut waiting: FuturesUnordered<_> = self.keys.iter().map(|keys| self.changed(keys)).collect();
            let mut again = pin!(sleep(jittered(AGAIN)));
            let lists = tokio::select! {
                // A list may have changed meanwhile.
                () = self.interrupt.cancelled() => return self.look(&self.keys).await,
                () = &mut again => &self.keys[..],
                Some((keys, changed)) = waiting.next() => match changed {
                    Ok(()) => std::slice::from_ref(keys),
                    Err(error) => return (PopOutcome::Failed(error), None),
                },
            };
            match self.look(lists).await {
                // Another client was quicker, or it is only time to read the lists again.
                (PopOutcome::Empty, _) => {}
                ended => return ended,
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
                        return (PopOutcome::Payload(keys.clone(), payload), claim);
                    }
                }
                (Err(error), _) => return (PopOutcome::Failed(error), None),
            }
        }
        (PopOutcome::Empty, None)
    }
}
