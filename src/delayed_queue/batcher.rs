//! Concurrent offers share one call.
//!
//! A call costs client and server several times what one more entry in it costs. So the first offer spawns a task that
//! yields once and takes along every offer made in the meantime. It waits neither for a reply nor for time to pass: a
//! lone offer is sent immediately, whatever the round-trip time, and the size of a batch follows from the load.
//!
//! | event | consequence |
//! |---|---|
//! | a caller is dropped | its entry is sent all the same, and no other offer is affected: the call belongs to the task |
//! | the script refuses the arguments, because of one offer | each offer is sent again, alone; nothing was written |
//! | the server refuses (type, permission, memory) | every offer gets that error |
//! | the reply is lost | each offer has a second try of its own: see `store` |

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::future::join_all;
use tokio::sync::mpsc::error::SendError;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use super::store::{self, When};
use crate::conn::{Conn, OpError};
use crate::pacing::yield_once;
use crate::wire::keys::Keys;

/// The most entries in one call: the server serves nobody else meanwhile.
const ENTRIES: usize = 256;
/// The most bytes in one call, unless it has only one entry.
const BYTES: usize = 1 << 18;

/// The offers to one queue that are about to be sent. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Batcher {
    pub(super) conn: Conn,
    pub(super) keys: Keys,
    after: Arc<OpenBatch>,
    at: Arc<OpenBatch>,
}

/// The channel to the task that sends next. A closed channel means that the task has sent.
type OpenBatch = Mutex<Option<UnboundedSender<Request>>>;

#[derive(Debug)]
struct Request {
    time: u64,
    entry: Bytes,
    answer: oneshot::Sender<Answer>,
}

/// The result of the call.
#[derive(Debug)]
pub(super) struct Answer {
    /// The server's clock, epoch ms.
    pub(super) clock: Result<u64, OpError>,
    /// Whether the call had other offers.
    pub(super) shared: bool,
}

impl Batcher {
    pub(super) fn new(conn: Conn, keys: Keys) -> Self {
        Self { conn, keys, after: Arc::default(), at: Arc::default() }
    }

    /// Adds an entry to the open batch, and waits for the result of its call.
    pub(super) async fn add(&self, when: When, time: u64, entry: Bytes) -> Answer {
        let (answer, receiver) = oneshot::channel();
        self.push(when, Request { time, entry, answer });
        receiver.await.unwrap_or_else(|_| {
            let clock = Err(OpError::Unknown("the client's Tokio runtime has ended".into()));
            Answer { clock, shared: false }
        })
    }

    fn push(&self, when: When, request: Request) {
        let open = match when {
            When::After => &self.after,
            When::At => &self.at,
        };
        let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
        let request = match &*open {
            Some(batch) => match batch.send(request) {
                Ok(()) => return,
                Err(SendError(request)) => request,
            },
            None => request,
        };
        let (sender, requests) = unbounded_channel();
        // The receiver is in scope.
        let _ = sender.send(request);
        *open = Some(sender);
        self.conn.runtime().spawn(self.clone().flush(when, requests));
    }

    async fn flush(self, when: When, mut requested: UnboundedReceiver<Request>) {
        yield_once().await;
        requested.close();
        let mut requests = Vec::with_capacity(requested.len());
        while requested.recv_many(&mut requests, usize::MAX).await > 0 {}
        join_all(chunks(requests).map(|chunk| self.send(when, chunk))).await;
    }

    async fn send(&self, when: When, requests: Vec<Request>) {
        let shared = requests.len() > 1;
        let (entries, answers): (Vec<_>, Vec<_>) =
            requests.into_iter().map(|request| ((request.time, request.entry), request.answer)).unzip();
        let clock = store::first_try(&self.conn, &self.keys, when, &entries).await;
        for answer in answers {
            // An error means that the caller was dropped.
            let _ = answer.send(Answer { clock: clock.clone(), shared });
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
