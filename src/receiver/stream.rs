//! All messages of a queue, as a `Stream`.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::Stream;

use super::Receiver;
use crate::conn::OpError;
use crate::delivery::Delivery;
use crate::error::Result;
use crate::receiving::{PendingReceive, Receiving};

/// The messages of a queue as they become ready. Made by [`Receiver::into_stream`].
///
/// # Examples
/// ```no_run
/// # use futures::StreamExt;
/// # use redelay::receiver::DeliveryStream;
/// # use redelay::{Client, codec};
/// # async fn example(client: Client) -> redelay::Result<()> {
/// let mut orders: DeliveryStream<i64> = client.blocking_queue("orders", codec::Long).receiver().into_stream();
/// while let Some(order) = orders.next().await {
///     order?.ack().await?;
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "streams do nothing unless polled"]
pub struct DeliveryStream<T> {
    receiver: Receiver<T>,
    /// The place among those that wait. It stays when a `next()` is dropped.
    pending: Option<(Arc<Receiving>, PendingReceive)>,
    ended: bool,
}

impl<T> DeliveryStream<T> {
    pub(super) fn new(receiver: Receiver<T>) -> Self {
        Self { receiver, pending: None, ended: false }
    }
}

impl<T: 'static> Stream for DeliveryStream<T> {
    type Item = Result<Delivery<T>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        const VERB: &str = "stream";
        let this = &mut *self;
        if this.ended {
            return Poll::Ready(None);
        }
        if this.pending.is_none() {
            match this.receiver.receiving(VERB) {
                Ok(receiving) => {
                    let pending = receiving.wait(1);
                    this.pending = Some((receiving, pending));
                }
                Err(error) => {
                    this.ended = true;
                    return Poll::Ready((!error.is_closed()).then_some(Err(error)));
                }
            }
        }
        let Some((_, pending)) = &mut this.pending else { return Poll::Ready(None) };
        let answer = ready!(Pin::new(pending).poll(cx));
        let Some((receiving, _)) = this.pending.take() else { return Poll::Ready(None) };
        Poll::Ready(match answer {
            Ok(claims) => this.receiver.one(VERB, &receiving, claims),
            Err(OpError::Closed) => {
                this.ended = true;
                None
            }
            Err(error) => Some(Err(this.receiver.failed(VERB, error))),
        })
    }
}

impl<T> fmt::Debug for DeliveryStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeliveryStream").field("receiver", &self.receiver).finish_non_exhaustive()
    }
}
