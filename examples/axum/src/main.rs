//! A service with axum and a worker: state, the probes of an orchestrator, and one token that stops
//! everything.
//!
//!     cargo run --package redelay-axum
//!     curl -X PUT localhost:3000/orders/7; curl localhost:3000/ready
//!
//! It needs a Redis or Valkey at REDIS_URL, or at redis://localhost. ADDRESS is where it listens.

use std::error::Error;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, put};
use axum::{Json, Router};
use redelay::stats::Health;
use redelay::{Client, DelayedQueue, Worker, codec};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A process in which nothing has moved for this time, although something is due, does not recover by itself.
const STUCK: Duration = Duration::from_secs(300);

/// What the handlers of requests use. Its clones share the connections.
#[derive(Clone)]
struct App {
    client: Client,
    orders: DelayedQueue<i64>,
    stop: CancellationToken,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://localhost".into());
    let client = Client::connect(&url).await?;
    let due = client.blocking_queue("example:axum", codec::Long);
    let stop = CancellationToken::new();
    let app = App { client: client.clone(), orders: client.delayed_queue(&due), stop: stop.clone() };
    let routes = Router::new()
        .route("/orders/{id}", put(offer))
        .route("/live", get(live))
        .route("/ready", get(ready))
        .with_state(app);
    let address = std::env::var("ADDRESS").unwrap_or_else(|_| "127.0.0.1:3000".into());
    let listener = TcpListener::bind(address).await?;
    println!("http://{}", listener.local_addr()?);

    tokio::spawn(cancel_on_signal(stop.clone()));
    let server = axum::serve(listener, routes).with_graceful_shutdown(stop.clone().cancelled_owned());
    let server = tokio::spawn(server.into_future());
    // Until the token is cancelled, and until the handlers have ended.
    let stopped = Worker::new(&due).concurrency(8).run_until(stop.cancelled(), handle).await?;
    println!("{stopped:?}");
    server.await??; // The requests that have begun are answered.
    client.shutdown().await; // Last, so that those requests could still offer.
    Ok(())
}

async fn handle(order: i64) {
    println!("order {order} is due");
}

/// `PUT /orders/{id}`
async fn offer(State(app): State<App>, Path(order): Path<i64>) -> Result<StatusCode, (StatusCode, String)> {
    match app.orders.offer(&order, Duration::from_secs(1)).await {
        Ok(_) => Ok(StatusCode::CREATED),
        Err(error) => Err((StatusCode::SERVICE_UNAVAILABLE, error.to_string())),
    }
}

/// `GET /live`. If it fails, the process is restarted. That brings back no server, so a lost connection is no
/// reason.
async fn live(State(app): State<App>) -> (StatusCode, Json<Health>) {
    let health = app.client.health();
    let is_overdue = health.overdue_for.is_some_and(|overdue| overdue > STUCK);
    let is_idle = health.last_transfer_ago.is_none_or(|last| last > STUCK);
    answer(!(health.connected && is_overdue && is_idle), health)
}

/// `GET /ready`. If it fails, the process gets no requests.
async fn ready(State(app): State<App>) -> (StatusCode, Json<Health>) {
    let health = app.client.health();
    answer(health.connected && !app.stop.is_cancelled(), health)
}

fn answer(is_well: bool, health: Health) -> (StatusCode, Json<Health>) {
    (if is_well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, Json(health))
}

/// On Ctrl-C, or SIGTERM, which orchestrators send.
async fn cancel_on_signal(stop: CancellationToken) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted?,
            _ = terminate.recv() => {}
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await?;
    stop.cancel();
    Ok(())
}
