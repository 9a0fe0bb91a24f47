//! Concurrent offers share one call.
//!
//! A call costs client and server several times what one more entry in it costs. So the first offer spawns a task that
//! yields once and takes along every offer made in the meantime. It waits neither for a reply nor for time to pass: a
//! lone offer is sent immediately, whatever the round-trip time, and the size of a batch follows from the load.
//!
//! | event | consequence |
//! |---|---|
//! | a caller is dropped before the call is sent | its entry is not sent |
//! | a caller is dropped later | its entry is stored all the same: the call belongs to the task |
//! | the script rejects the arguments, because of one offer | each offer is sent again, alone; nothing was written |
//! | the server refuses (type, permission, memory) | every offer gets that error |
//! | the reply is lost | the call is sent again: see `store` |
//! | the client's runtime does not run, or has ended | the caller stops waiting, and says whether the call may have been sent |

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use tokio::sync::mpsc::error::SendError;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::store::{Store, Stored, When};
use crate::conn::{Conn, OpError};
use crate::engine::AtStop;
use crate::pacing::yield_once;
use crate::transfer::Transfer;
use crate::wire::keys::Keys;

/// The most entries in one call: the server serves nobody else meanwhile.
const ENTRIES: usize = 256;
/// The most bytes in one call, unless it has only one entry.
const BYTES: usize = 1 << 18;
/// The number of command timeouts that a call with all its retries may take. It ends before, if the client's runtime runs.
const PATIENCE: u32 = 4;

/// The offers to one queue that are about to be sent. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Batcher {
    store: Store,
    /// To start the transfer of what is due at once, or was not announced. `None`: this client does not transfer.
    transfer: Option<Transfer>,
    after: Arc<OpenBatch>,
    at: Arc<OpenBatch>,
}

/// The batch that the next offer joins.
type OpenBatch = Mutex<Option<Batch>>;

#[derive(Clone, Debug)]
struct Batch {
    /// The channel to the task that sends next. A closed channel means that the task has sent.
    requests: UnboundedSender<Request>,
    /// Whether the task may have sent.
    sent: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Request {
    time: u64,
    entry: Bytes,
    answer: oneshot::Sender<Result<Stored, OpError>>,
}

impl Batcher {
    pub(super) fn new(conn: Conn, keys: Keys, transfer: Option<Transfer>, at_stop: AtStop) -> Self {
        let store = Store::new(conn, keys, at_stop);
        Self { store, transfer, after: Arc::default(), at: Arc::default() }
    }

    /// The same with another command timeout, and with batches of its own.
    pub(super) fn with_timeout(&self, timeout: Duration) -> Self {
        let store = self.store.with_timeout(timeout);
        Self { store, after: Arc::default(), at: Arc::default(), ..self.clone() }
    }

    /// Stores one entry, in a call with other offers. Returns its due time, epoch ms.
    pub(super) async fn store(&self, when: When, time: u64, entry: Bytes) -> Result<u64, OpError> {
        let (answer, mut receiver) = oneshot::channel();
        let sent = self.push(when, Request { time, entry, answer });
        let undriven = OpError::NotExecuted("the client's Tokio runtime does not run".into());
        let (ended, unsent) =
            match timeout(self.store.conn().command_timeout() * PATIENCE, &mut receiver).await {
                Ok(Ok(stored)) => return Ok(stored?.due(time)),
                Ok(Err(_)) => ("the client's Tokio runtime has ended", OpError::Closed),
                Err(_) => ("no reply within four command timeouts", undriven),
            };
        // The task says first that it sends, and then drops requests that nobody waits for.
        receiver.close();
        match receiver.try_recv() {
            Ok(stored) => Ok(stored?.due(time)),
            Err(_) if sent.load(Ordering::SeqCst) => Err(OpError::Unknown(ended.into())),
            Err(_) => Err(unsent),
        }
    }

    /// Stores all entries in one call, without other offers. Returns their due times, epoch ms.
    pub(super) async fn store_all(&self, when: When, entries: &[(u64, Bytes)]) -> Result<Vec<u64>, OpError> {
        let stored = self.send(when, entries).await?;
        Ok(entries.iter().map(|(time, _)| stored.due(*time)).collect())
    }

    async fn send(&self, when: When, entries: &[(u64, Bytes)]) -> Result<Stored, OpError> {
        let result = self.store.all(when, entries).await;
        if let Some(transfer) = &self.transfer {
            match &result {
                Ok(stored) => stored.head.into_iter().for_each(|head| transfer.head(self.store.keys(), head)),
                Err(OpError::Unknown(_)) => transfer.head_unknown(self.store.keys()),
                Err(_) => {}
            }
        }
        result
    }

    /// Adds an offer to the open batch. Returns whether that may have been sent.
    fn push(&self, when: When, request: Request) -> Arc<AtomicBool> {
        let open = match when {
            When::After => &self.after,
            When::At => &self.at,
        };
        let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
        let request = match &*open {
            Some(batch) => match batch.requests.send(request) {
                Ok(()) => return batch.sent.clone(),
                Err(SendError(request)) => request,
            },
            None => request,
        };
        let (requests, receiver) = unbounded_channel();
        // The receiver is in scope.
        let _ = requests.send(request);
        let sent = Arc::new(AtomicBool::new(false));
        *open = Some(Batch { requests, sent: sent.clone() });
        self.store.conn().runtime().spawn(self.clone().flush(when, receiver, sent.clone()));
        sent
    }

    async fn flush(self, when: When, mut requested: UnboundedReceiver<Request>, sent: Arc<AtomicBool>) {
        yield_once().await;
        requested.close();
        let mut requests = Vec::with_capacity(requested.len());
        while requested.recv_many(&mut requests, usize::MAX).await > 0 {}
        sent.store(true, Ordering::SeqCst);
        requests.retain(|request| !request.answer.is_closed());
        join_all(chunks(requests).map(|chunk| self.send_chunk(when, chunk))).await;
    }

    async fn send_chunk(&self, when: When, requests: Vec<Request>) {
        let (entries, answers): (Vec<_>, Vec<_>) =
            requests.into_iter().map(|request| ((request.time, request.entry), request.answer)).unzip();
        let result = self.send(when, &entries).await;
        let answer = |answer: oneshot::Sender<_>, result| {
            // An error means that the caller was dropped.
            let _ = answer.send(result);
        };
        if entries.len() > 1 && matches!(result, Err(OpError::Rejected(_))) {
            // Nothing was written, perhaps because of another offer.
            let alone = entries.iter().zip(answers).map(|(entry, waiting)| async move {
                answer(waiting, self.send(when, std::slice::from_ref(entry)).await);
            });
            join_all(alone).await;
        } else {
            answers.into_iter().for_each(|waiting| answer(waiting, result.clone()));
        }
    }
}

/// Splits requests into calls.
fn chunks(requests: Vec<Request>) -> impl Iterator<Item = Vec<Request>> {
    let mut requests = requests.into_iter().peekable();
    std::iter::from_fn(move || {
        let mut chunk = vec![requests.next()?];
        let mut bytes = chunk[0].entry.len();
        while chunk.len() < ENTRIES {
            let Some(request) = requests.next_if(|request| bytes + request.entry.len() <= BYTES) else {
                break;
            };
            bytes += request.entry.len();
            chunk.push(request);
        }
        Some(chunk)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(sizes: &[usize]) -> Vec<Request> {
        let request = |size: &usize| Request {
            time: 0,
            entry: Bytes::from(vec![0; *size]),
            answer: oneshot::channel().0,
        };
        sizes.iter().map(request).collect()
    }

    #[test]
    fn calls_are_bounded_by_entries_and_bytes() {
        let sizes = |requests| chunks(requests).map(|chunk| chunk.len()).collect::<Vec<_>>();
        assert_eq!(sizes(requests(&[10; 2 * ENTRIES + 1])), [ENTRIES, ENTRIES, 1]);
        assert_eq!(sizes(requests(&[BYTES / 2, BYTES / 2, 1])), [2, 1]);
        assert_eq!(sizes(requests(&[2 * BYTES, 1])), [1, 1]);
    }
}
