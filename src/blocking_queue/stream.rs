//! All payloads of a queue, as a `Stream`.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::Stream;

use super::BlockingQueue;
use crate::error::Result;
use crate::pops::{End, PendingTake};

/// The payloads of a queue as they become ready. Made by [`BlockingQueue::into_stream`].
///
/// An error does not end the stream: a payload that does not decode is followed by the next one. When the
/// server refuses (a key of another type, a missing permission), the stream continues after a pause: 10 ms,
/// doubled with each refusal up to a second. The stream ends when [`BlockingQueue::take`] would fail with
/// [`Closed`](crate::ErrorKind::Closed): after [`Client::stop_taking`](crate::Client::stop_taking) or
/// [`Client::shutdown`](crate::Client::shutdown).
///
/// Delivery is at most once: a payload is no longer in the list when the stream returns it.
///
/// # Examples
/// ```no_run
/// use futures::StreamExt; // Of the crate `futures`.
/// # use redelay::blocking_queue::PayloadStream;
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) {
/// let orders: PayloadStream<i64> = client.blocking_queue("orders", codec::Long).into_stream();
/// let done = orders.for_each_concurrent(8, |order| async move {
///     match order {
///         Ok(order) => println!("{order}"), // Up to 8 at a time.
///         Err(error) => eprintln!("{error}"), // `Error::payload` has the bytes, if they do not decode.
///     }
/// });
/// done.await; // Until the client stops taking.
/// # }
/// ```
#[must_use = "streams do nothing unless polled"]
pub struct PayloadStream<T> {
    queue: BlockingQueue<T>,
    /// The place among the takers. It stays when a `next()` is dropped.
    pending: Option<PendingTake>,
}

impl<T: 'static> PayloadStream<T> {
    pub(super) fn new(queue: BlockingQueue<T>) -> Self {
        Self { queue, pending: None }
    }
}

impl<T: 'static> Stream for PayloadStream<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        let this = &mut *self;
        let pending = match &mut this.pending {
            Some(pending) => pending,
            None => match this.queue.one("stream", End::Head) {
                Ok(wanted) => this.pending.insert(this.queue.queue().engine.pops.wait(wanted)),
                Err(_closed) => return Poll::Ready(None),
            },
        };
        let answer = ready!(Pin::new(pending).poll(cx));
        this.pending = None;
        match this.queue.payload("stream", answer) {
            Err(error) if error.is_closed() => Poll::Ready(None),
            item => Poll::Ready(item.transpose()),
        }
    }
}

impl<T> fmt::Debug for PayloadStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PayloadStream").field("queue", &self.queue).finish_non_exhaustive()
    }
}
