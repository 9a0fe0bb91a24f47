//! A handler behind layers of `tower`: a limit, a timeout, and one that is written here.
//!
//!     cargo run --example tower --features tower
//!
//! It ends after 2 seconds. It needs a Redis or Valkey at REDIS_URL, or at redis://localhost.

use std::task::{self, Poll};
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt};
use redelay::worker::{Context, from_service};
use redelay::{Client, Worker, codec};
use tower::{BoxError, Layer, Service, ServiceBuilder, service_fn};

/// Says how long each message took. It works around any handler.
#[derive(Clone)]
struct Timed<S>(S);

struct TimedLayer;

impl<S> Layer<S> for TimedLayer {
    type Service = Timed<S>;

    fn layer(&self, service: S) -> Timed<S> {
        Timed(service)
    }
}

impl<S, T> Service<(T, Context)> for Timed<S>
where
    S: Service<(T, Context), Future: Send + 'static>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut task::Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, message: (T, Context)) -> Self::Future {
        let (id, begun) = (message.1.id(), Instant::now());
        let handled = self.0.call(message);
        async move {
            let result = handled.await;
            println!("{id}: {:?}", begun.elapsed());
            result
        }
        .boxed()
    }
}

#[tokio::main]
async fn main() -> redelay::Result<()> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://localhost".into());
    let client = Client::connect(&url).await?;
    let orders = client.blocking_queue("example:tower", codec::Long);
    orders.offer_all(&[1, 2, 3]).await?;
    let service = ServiceBuilder::new()
        .layer(TimedLayer)
        .concurrency_limit(2) // of all workers that share it
        .timeout(Duration::from_secs(5))
        .service(service_fn(ship));
    let worker = Worker::new(&orders).concurrency(8).on_failure(|failure| println!("{failure}"));
    let stopped = worker.run_until(tokio::time::sleep(Duration::from_secs(2)), from_service(service)).await?;
    println!("{stopped:?}");
    client.shutdown().await;
    Ok(())
}

async fn ship((order, context): (i64, Context)) -> Result<(), BoxError> {
    tokio::time::sleep(Duration::from_millis(50)).await;
    println!("order {order}, attempt {}", context.attempt());
    Ok(())
}
