//! All payloads of a queue, as a `Stream`.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::Stream;
use tokio::time::{Sleep, sleep};

use super::BlockingQueue;
use crate::error::{ErrorKind, Result};
use crate::pops::{End, PendingTake, Wanted};

/// How long a stream rests after a refusal.
const PAUSE: Duration = Duration::from_secs(1);

/// The payloads of a queue as they come; made by [`BlockingQueue::into_stream`].
///
/// An error does not end it: one payload may not decode, and the next one does. When the server refuses (a key of another
/// type, missing rights), it goes on after a pause of a second. It ends after
/// [`ErrorKind::Closed`](crate::ErrorKind::Closed) would be returned, that is when the client is shut down.
///
/// # Examples
/// ```no_run
/// # use futures::StreamExt;
/// # use redelay::{Client, Elements, codec};
/// # async fn example(client: Client) {
/// let orders: Elements<i64> = client.blocking_queue("orders", codec::Long).into_stream();
/// let done = orders.for_each_concurrent(8, |order| async move {
///     match order {
///         Ok(order) => println!("{order}"), // Up to 8 at a time.
///         Err(error) => eprintln!("{error}"), // `Error::payload` has it, if it does not decode.
///     }
/// });
/// done.await; // Until the client is shut down.
/// # }
/// ```
#[must_use = "streams do nothing unless polled"]
pub struct Elements<T> {
    queue: BlockingQueue<T>,
    /// The place among the takers. It stays when a `next()` is dropped.
    waiting: Option<PendingTake>,
    /// After a refusal, which will probably last.
    pause: Option<Pin<Box<Sleep>>>,
}

impl<T: 'static> Elements<T> {
    pub(super) fn new(queue: BlockingQueue<T>) -> Self {
        Self { queue, waiting: None, pause: None }
    }
}

impl<T: 'static> Stream for Elements<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        let this = &mut *self;
        if let Some(pause) = &mut this.pause {
            ready!(pause.as_mut().poll(cx));
            this.pause = None;
        }
        let waiting = match &mut this.waiting {
            Some(waiting) => waiting,
            None => match this.queue.own_list("stream") {
                Ok(lists) => {
                    let pops = &this.queue.queue().engine.pops;
                    this.waiting.insert(pops.wait(Wanted::one(End::Head, lists)))
                }
                Err(_closed) => return Poll::Ready(None),
            },
        };
        let answer = ready!(Pin::new(waiting).poll(cx));
        this.waiting = None;
        match this.queue.payload("stream", answer) {
            Err(error) if error.is_closed() => Poll::Ready(None),
            Err(error) if error.kind() == ErrorKind::Refused => {
                this.pause = Some(Box::pin(sleep(PAUSE)));
                Poll::Ready(Some(Err(error)))
            }
            item => Poll::Ready(item.transpose()),
        }
    }
}

impl<T> fmt::Debug for Elements<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elements").field("queue", &self.queue).finish_non_exhaustive()
    }
}
