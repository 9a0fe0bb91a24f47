//! Services of `tower` as handlers.

use std::future::poll_fn;
use std::sync::{Mutex, PoisonError};

use tower_service::Service;

use super::outcome::BoxError;
use super::{Context, Handler, IntoOutcome};

/// A handler from a service of the `tower` crate, so that its layers apply: timeouts, limits of rate and
/// concurrency, your own middleware. The request is the value and its [`Context`]; the response is what a
/// handler may return ([`IntoOutcome`]); an error is a failure, as the `Err` of a handler.
///
/// Each message gets a clone of the service. While that is not ready, the message stays claimed, and its
/// lease is extended; [`Worker::timeout`](crate::Worker::timeout) covers this wait, too.
///
/// # Examples
/// ```no_run
/// use std::time::Duration;
///
/// use redelay::worker::{Context, from_service};
/// use redelay::{BlockingQueue, Worker};
/// use tower::{ServiceBuilder, service_fn};
///
/// async fn ship((order, context): (i64, Context)) -> std::io::Result<()> {
///     println!("{order}, attempt {}", context.attempt());
///     Ok(())
/// }
///
/// # async fn example(orders: BlockingQueue<i64>) -> redelay::Result<()> {
/// let service = ServiceBuilder::new()
///     .concurrency_limit(8) // of all workers that share it
///     .timeout(Duration::from_secs(5))
///     .service(service_fn(ship));
/// Worker::new(&orders).concurrency(64).run(from_service(service)).await?;
/// # Ok(())
/// # }
/// ```
#[cfg_attr(docsrs, doc(cfg(feature = "tower")))]
pub fn from_service<S, T>(service: S) -> impl Handler<T, (T, Context), Future: Send>
where
    T: Send + 'static,
    S: Service<(T, Context), Response: IntoOutcome + Send, Error: Into<BoxError>, Future: Send>
        + Clone
        + Send
        + 'static,
{
    // Many services are not Sync.
    let service = Mutex::new(service);
    move |value: T, context: Context| {
        let mut service = service.lock().unwrap_or_else(PoisonError::into_inner).clone();
        async move {
            poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
            service.call((value, context)).await.map_err(Into::<BoxError>::into)
        }
    }
}
