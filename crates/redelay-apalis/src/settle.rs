//! The layer that settles deliveries: outside of all layers of the user, so it sees the last result.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use apalis_core::error::{AbortError, BoxDynError, RetryAfterError};
use apalis_core::task::Task;
use futures::FutureExt;
use futures::future::{BoxFuture, Either, pending, select};
use redelay::Delivery;
use tokio::sync::OwnedSemaphorePermit;
use tower::{Layer, Service};

/// A delivery and its permit, in the data of its task. Layers that repeat tasks clone them, so all clones
/// share it. If the last one is dropped, the message is delivered again.
#[derive(Clone)]
pub(crate) struct Hand(Arc<Mutex<Option<Held>>>);

struct Held {
    delivery: Delivery<()>,
    /// It is free when the delivery is settled.
    _permit: OwnedSemaphorePermit,
}

impl Hand {
    pub(crate) fn new(delivery: Delivery<()>, permit: OwnedSemaphorePermit) -> Self {
        Self(Arc::new(Mutex::new(Some(Held { delivery, _permit: permit }))))
    }

    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Held> {
        self.held().take()
    }

    /// Waits until the server says that the delivery no longer holds.
    async fn lost(&self) {
        let lost = self.held().as_ref().map(|held| held.delivery.lost());
        match lost {
            Some(lost) => lost.await,
            None => pending().await,
        }
    }
}

impl Held {
    async fn settle(self, failure: Option<&BoxDynError>) -> redelay::Result<()> {
        let Self { delivery, _permit } = self;
        let Some(error) = failure else { return delivery.ack().await };
        if error.is::<AbortError>() {
            return delivery.reject(error).await;
        }
        let pause = error.downcast_ref::<RetryAfterError>().map(RetryAfterError::get_duration);
        let delivery = delivery.with_error(error);
        match pause {
            Some(pause) => delivery.retry_after(pause).await,
            None => delivery.retry().await,
        }
    }
}

/// Settles a message by the result of its handler. Workers of a
/// [`RedelayBackend`](crate::RedelayBackend) have this layer.
#[derive(Clone, Debug)]
pub struct Settle(pub(crate) ());

impl<S> Layer<S> for Settle {
    type Service = SettleService<S>;

    fn layer(&self, inner: S) -> SettleService<S> {
        SettleService { inner }
    }
}

/// The service of [`Settle`].
#[derive(Clone, Debug)]
pub struct SettleService<S> {
    inner: S,
}

impl<S, T> Service<Task<T>> for SettleService<S>
where
    S: Service<Task<T>, Future: Send + 'static, Error: Into<BoxDynError>, Response: Send>,
{
    type Response = S::Response;
    type Error = BoxDynError;
    type Future = BoxFuture<'static, Result<S::Response, BoxDynError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxDynError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, task: Task<T>) -> Self::Future {
        let hand = task.ctx().data().get::<Hand>().cloned();
        let work = self.inner.call(task);
        async move {
            let Some(hand) = hand else { return work.await.map_err(Into::into) };
            let result = match select(pin!(work), pin!(hand.lost())).await {
                Either::Left((result, _)) => result.map_err(Into::into),
                // Another delivery has taken its place, or will. There is nothing to settle.
                Either::Right(_) => {
                    drop(hand.take());
                    return Err("the lease was lost".into());
                }
            };
            let Some(held) = hand.take() else { return result };
            let settled = held.settle(result.as_ref().err()).await;
            // The handler's own failure says more.
            let response = result?;
            settled?;
            Ok(response)
        }
        .boxed()
    }
}
