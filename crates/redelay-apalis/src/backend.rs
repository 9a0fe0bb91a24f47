//! The backend: deliveries become tasks.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use apalis_core::backend::finalize::Ephemeral;
use apalis_core::backend::{Backend, BackendConfig};
use apalis_core::task::Task;
use apalis_core::task::builder::TaskBuilder;
use apalis_core::task::metadata::MetadataStore;
use apalis_core::task::task_id::TaskId;
use apalis_core::worker::context::WorkerContext;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use redelay::receiver::DeliveryStream;
use redelay::{DelayedQueue, Delivery, Error, ErrorKind, Receiver};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::PollSemaphore;

use crate::settle::{Hand, Settle};
use crate::sink::Offers;

/// A queue as the backend of a worker of apalis, which handles its messages; and a sink, which offers to it.
///
/// It gives the worker up to [`concurrency`](Self::concurrency) tasks at a time. The attempt of a task is
/// that of the delivery, and its metadata are the headers of the job. Its id is that of the message, followed
/// by a dash and a number, because a message can come again before its last handler has ended. The extractor
/// `Data<MessageId>` has the [id of the message](redelay::receiver::MessageId) alone. Leases are extended in
/// the background until the handler has ended.
///
/// The worker ends with the client: [`stop_taking`](redelay::Client::stop_taking) stops it, and so does
/// [`shutdown`](redelay::Client::shutdown). A receiver whose settings are invalid ends it with an error.
///
/// While the server is away, the worker waits; that is no error of the backend, which would end it.
/// `ClientStats::last_error` and the event `redelay.receives.failing` say so.
///
/// Programs that only offer need no backend: [`DelayedQueue::offer`] is the same.
///
/// # Examples
/// ```no_run
/// use apalis_core::worker::builder::WorkerBuilder;
/// use redelay::{Client, codec};
/// use redelay_apalis::RedelayBackend;
///
/// # async fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let orders = client.blocking_queue::<i64>("orders", codec::Long);
/// let backend = RedelayBackend::new(orders.receiver().max_attempts(3), client.delayed_queue(&orders));
/// let worker = WorkerBuilder::new("orders").backend(backend).build(|order: i64| async move {
///     println!("is {order} paid?");
/// });
/// worker.run().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a backend does nothing without a worker"]
pub struct RedelayBackend<T> {
    receiver: Receiver<T>,
    /// While the worker takes tasks.
    deliveries: Option<DeliveryStream<T>>,
    /// The client stops taking.
    closed: BoxFuture<'static, ()>,
    permits: PollSemaphore,
    /// That of the next task.
    permit: Option<OwnedSemaphorePermit>,
    pub(crate) delayed: DelayedQueue<T>,
    pub(crate) offers: Offers,
}

impl<T> fmt::Debug for RedelayBackend<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedelayBackend").field("permits", &self.permits).finish_non_exhaustive()
    }
}

impl<T: Send + 'static> RedelayBackend<T> {
    /// A backend of what this receiver gets, which offers to that queue. Nothing is received before a worker
    /// runs.
    ///
    /// # Examples
    /// ```no_run
    /// # use redelay::{Client, codec};
    /// # use redelay_apalis::RedelayBackend;
    /// # fn example(client: &Client) {
    /// let orders = client.blocking_queue::<i64>("orders", codec::Long);
    /// let backend = RedelayBackend::new(orders.receiver(), client.delayed_queue(&orders));
    /// # }
    /// ```
    pub fn new(receiver: Receiver<T>, delayed: DelayedQueue<T>) -> Self {
        Self {
            closed: receiver.closed().fuse().boxed(),
            receiver,
            deliveries: None,
            permits: PollSemaphore::new(Arc::new(Semaphore::new(10))),
            permit: None,
            delayed,
            offers: Offers::default(),
        }
    }

    /// How many tasks the worker has at a time: 10 by default, at least one. Layers of apalis that limit
    /// further do not change how many messages are in flight.
    ///
    /// # Examples
    /// ```no_run
    /// # fn example(backend: redelay_apalis::RedelayBackend<i64>) {
    /// let backend = backend.concurrency(64);
    /// # }
    /// ```
    pub fn concurrency(mut self, tasks: usize) -> Self {
        self.permits = PollSemaphore::new(Arc::new(Semaphore::new(tasks.max(1))));
        self
    }
}

/// apalis waits for a stop of a worker whose backend has ended.
fn stop(worker: &WorkerContext) {
    if !worker.is_shutting_down() {
        // It fails only for a worker that does not run.
        let _ = worker.stop();
    }
}

/// What a handler gets of a delivery; the rest is settled after it.
fn task<T>(delivery: Delivery<T>, permit: OwnedSemaphorePermit) -> Task<T> {
    /// Tasks of this process.
    static TASKS: AtomicU64 = AtomicU64::new(0);
    let (value, delivery) = delivery.into_parts();
    let id = delivery.id();
    let number = TASKS.fetch_add(1, Ordering::Relaxed);
    let headers = delivery.headers().map(|(name, value)| (name.to_owned(), value.to_owned()));
    TaskBuilder::new(value)
        // With the feature `task-context`, apalis panics at the second task of an id.
        .task_id(TaskId::String(format!("{id}-{number}")))
        // apalis counts one more when the handler begins.
        .attempt(delivery.attempt() as usize - 1)
        .with_metadata(MetadataStore::from_map(headers.collect()))
        .data(id)
        .data(Hand::new(delivery, permit))
        .build()
}

impl<T: Send + 'static> Backend for RedelayBackend<T> {
    type Task = Task<T>;
    type Error = Error;

    fn poll_ready(&mut self, cx: &mut Context<'_>, worker: &WorkerContext) -> Poll<Result<(), Error>> {
        // apalis polls again after a stop, and after a pause.
        if self.closed.poll_unpin(cx).is_ready() {
            stop(worker);
            return Poll::Pending;
        }
        if worker.is_paused() {
            // What has come for the receive that waited goes back.
            self.deliveries = None;
            return Poll::Pending;
        }
        if self.permit.is_none() {
            self.permit = ready!(self.permits.poll_acquire(cx));
        }
        Poll::Ready(Ok(()))
    }

    fn poll_next(&mut self, cx: &mut Context<'_>, _: &WorkerContext) -> Poll<Option<Result<Task<T>, Error>>> {
        let deliveries = self.deliveries.get_or_insert_with(|| self.receiver.clone().into_stream());
        let mut invalid = None;
        loop {
            match ready!(deliveries.poll_next_unpin(cx)) {
                Some(Ok(delivery)) => {
                    let permit = self.permit.take().expect("`poll_ready` comes before each task");
                    return Poll::Ready(Some(Ok(task(delivery, permit))));
                }
                // A setting, if the stream ends with it. Another one is, say, a payload that cannot be
                // decoded, of which the receiver disposes.
                Some(Err(error)) => invalid = (error.kind() == ErrorKind::Invalid).then_some(error),
                None => return Poll::Ready(invalid.map(Err)),
            }
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, worker: &WorkerContext) -> Poll<Result<(), Error>> {
        stop(worker);
        // What no handler has begun goes back.
        (self.deliveries, self.permit) = (None, None);
        self.offers.poll(cx)
    }
}

impl<T> BackendConfig for RedelayBackend<T> {
    type Args = T;
    type Id = String;
    type Kind = Ephemeral;
    type Config = ();
    type Layer = Settle;

    fn config(&self) -> &() {
        &()
    }

    fn middleware(&mut self, _: &mut WorkerContext) -> Settle {
        Settle(())
    }
}
