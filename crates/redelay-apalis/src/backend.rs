//! The backend: deliveries become tasks.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use apalis_core::backend::finalize::Ephemeral;
use apalis_core::backend::{Backend, BackendConfig};
use apalis_core::task::Task;
use apalis_core::task::builder::TaskBuilder;
use apalis_core::task::metadata::MetadataStore;
use apalis_core::task::task_id::TaskId;
use apalis_core::worker::context::WorkerContext;
use futures::StreamExt;
use redelay::receiver::DeliveryStream;
use redelay::{DelayedQueue, Delivery, Error, Receiver};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::PollSemaphore;

use crate::settle::{Hand, Settle};
use crate::sink::Offers;

/// A queue as the backend of a worker of apalis, which handles its messages; and a sink, which offers to it.
///
/// It gives the worker up to [`concurrency`](Self::concurrency) tasks at a time. The id of a task is that of
/// the message, its attempt that of the delivery, and its metadata are the headers of the job. Leases are
/// extended in the background until the handler has ended.
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
    /// Until it is polled.
    receiver: Option<Receiver<T>>,
    deliveries: Option<DeliveryStream<T>>,
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
            receiver: Some(receiver),
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

/// What a handler gets of a delivery; the rest is settled after it.
fn task<T>(delivery: Delivery<T>, permit: OwnedSemaphorePermit) -> Task<T> {
    let (value, delivery) = delivery.into_parts();
    let headers = delivery.headers().map(|(name, value)| (name.to_owned(), value.to_owned()));
    TaskBuilder::new(value)
        .task_id(TaskId::String(delivery.id().to_string()))
        // apalis counts one more when the handler begins.
        .attempt(delivery.attempt() as usize - 1)
        .with_metadata(MetadataStore::from_map(headers.collect()))
        .data(Hand::new(delivery, permit))
        .build()
}

impl<T: Send + 'static> Backend for RedelayBackend<T> {
    type Task = Task<T>;
    type Error = Error;

    fn poll_ready(&mut self, cx: &mut Context<'_>, _: &WorkerContext) -> Poll<Result<(), Error>> {
        if self.permit.is_none() {
            self.permit = ready!(self.permits.poll_acquire(cx));
        }
        Poll::Ready(Ok(()))
    }

    fn poll_next(&mut self, cx: &mut Context<'_>, _: &WorkerContext) -> Poll<Option<Result<Task<T>, Error>>> {
        if let Some(receiver) = self.receiver.take() {
            self.deliveries = Some(receiver.into_stream());
        }
        let Some(deliveries) = &mut self.deliveries else { return Poll::Ready(None) };
        loop {
            match ready!(deliveries.poll_next_unpin(cx)) {
                Some(Ok(delivery)) => {
                    let permit = self.permit.take().expect("`poll_ready` comes before each task");
                    return Poll::Ready(Some(Ok(task(delivery, permit))));
                }
                // Such as a payload that cannot be decoded, of which the receiver disposes.
                Some(Err(error)) if !error.is_closed() => {}
                // The client is shut down.
                Some(Err(_)) | None => return Poll::Ready(None),
            }
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>, _: &WorkerContext) -> Poll<Result<(), Error>> {
        // What no handler has begun goes back.
        (self.receiver, self.deliveries, self.permit) = (None, None, None);
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
