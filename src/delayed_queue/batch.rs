//! Requests of concurrent callers that one task sends together: what offers and cancels have in common.
//!
//! | event | consequence |
//! |---|---|
//! | a caller is dropped before the batch is sent | its request is not sent |
//! | a caller is dropped later | its request is still executed: the call belongs to the task |
//! | the client's runtime does not run, or has ended | the caller stops waiting, and says whether the request may have been sent |

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::error::SendError;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::conn::OpError;

/// The number of command timeouts that a call with all its retries may take. It ends before, if the client's
/// runtime runs.
const PATIENCE: u32 = 4;

/// The batch that the next request joins.
#[derive(Debug)]
pub(super) struct OpenBatch<R, A> {
    open: Mutex<Option<Batch<R, A>>>,
    /// Grows while the tasks make progress.
    steps: AtomicU64,
}

#[derive(Debug)]
struct Batch<R, A> {
    /// The channel to the task that sends next. A closed channel means that the task has sent.
    requests: UnboundedSender<BatchRequest<R, A>>,
    /// Whether the task may have sent.
    sent: Arc<AtomicBool>,
}

#[derive(Debug)]
pub(super) struct BatchRequest<R, A> {
    pub(super) what: R,
    pub(super) answer: oneshot::Sender<Result<A, OpError>>,
}

/// The requests of a batch, for its task.
pub(super) struct Requests<R, A> {
    requested: UnboundedReceiver<BatchRequest<R, A>>,
    sent: Arc<AtomicBool>,
}

impl<R, A> Default for OpenBatch<R, A> {
    fn default() -> Self {
        Self { open: Mutex::default(), steps: AtomicU64::default() }
    }
}

impl<R, A> OpenBatch<R, A> {
    /// Makes a request, and waits for the answer. `start` starts the task of a new batch.
    pub(super) async fn ask(
        &self,
        what: R,
        command_timeout: Duration,
        start: impl FnOnce(Requests<R, A>),
    ) -> Result<A, OpError> {
        let (answer, mut receiver) = oneshot::channel();
        let sent = self.push(BatchRequest { what, answer }, start);
        let undriven = OpError::NotExecuted("the client's Tokio runtime does not run".into());
        let mut seen = self.steps.load(Ordering::Relaxed);
        let (ended, unsent) = loop {
            match timeout(command_timeout * PATIENCE, &mut receiver).await {
                Ok(Ok(answer)) => return answer,
                Ok(Err(_)) => break ("the client's Tokio runtime has ended", OpError::Closed),
                Err(_) => {
                    let steps = self.steps.load(Ordering::Relaxed);
                    if std::mem::replace(&mut seen, steps) == steps {
                        break ("no reply within four command timeouts", undriven);
                    }
                }
            }
        };
        // The task says first that it sends, and then drops requests that no caller waits for.
        receiver.close();
        match receiver.try_recv() {
            Ok(answer) => answer,
            Err(_) if sent.load(Ordering::SeqCst) => Err(OpError::Unknown(ended.into())),
            Err(_) => Err(unsent),
        }
    }

    /// Notes that a task has made progress, so that those who wait go on waiting.
    pub(super) fn on_step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds a request to the open batch. Returns whether that may have been sent.
    fn push(&self, request: BatchRequest<R, A>, start: impl FnOnce(Requests<R, A>)) -> Arc<AtomicBool> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let request = match &*open {
            Some(batch) => match batch.requests.send(request) {
                Ok(()) => return batch.sent.clone(),
                Err(SendError(request)) => request,
            },
            None => request,
        };
        let (requests, requested) = unbounded_channel();
        // The receiver is in scope.
        let _ = requests.send(request);
        let sent = Arc::new(AtomicBool::new(false));
        *open = Some(Batch { requests, sent: sent.clone() });
        start(Requests { requested, sent: sent.clone() });
        sent
    }
}

impl<R, A> Requests<R, A> {
    /// Closes the batch. Returns the requests that a caller waits for, in their order.
    pub(super) async fn take(mut self) -> Vec<BatchRequest<R, A>> {
        self.requested.close();
        let mut requests = Vec::with_capacity(self.requested.len());
        while self.requested.recv_many(&mut requests, usize::MAX).await > 0 {}
        self.sent.store(true, Ordering::SeqCst);
        requests.retain(|request| !request.answer.is_closed());
        requests
    }
}
