//! A service that posts reminders to URLs, when they are due. docs/tour.md explains it.

use std::error::Error;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, put};
use axum::{Json, Router};
use redelay::client::ClientConfig;
use redelay::delayed_queue::{Cancelled, Offered};
use redelay::worker::{Backoff, Context, Outcome};
use redelay::{BlockingQueue, DelayedQueue, Worker, codec};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reminder {
    url: String,
    text: String,
}

#[derive(Clone)]
struct Queues {
    /// Reminders that are not due yet.
    pending: DelayedQueue<Reminder>,
    /// Reminders that are due. The worker handles them.
    due: BlockingQueue<Reminder>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = ClientConfig::from_env("REDELAY")?.builder()?.connect().await?;
    let due = client.blocking_queue::<Reminder>("reminders", codec::Json);
    let pending = client.delayed_queue(&due);

    let routes = Router::new()
        .route("/reminders/{id}/{seconds}", put(remind))
        .route("/reminders/{id}", get(find).delete(cancel))
        .route("/dead-letters", get(dead_letters).post(requeue))
        .route("/metrics", get(metrics))
        .with_state(Queues { pending, due: due.clone() });
    let address = std::env::var("ADDRESS").unwrap_or_else(|_| "127.0.0.1:3000".into());
    let listener = TcpListener::bind(address).await?;
    println!("http://{}", listener.local_addr()?);
    let (stop, stopping) = oneshot::channel::<()>();
    let server = axum::serve(listener, routes).with_graceful_shutdown(async { drop(stopping.await) });
    let server = tokio::spawn(server.into_future());

    let stopped = work(&due).await?; // Until Ctrl-C or SIGTERM, and until the handlers have ended.
    println!("{stopped:?}");
    drop(stop); // No new connections; the requests that have begun are answered.
    server.await??;
    client.shutdown().await; // Last, so that those requests could still offer.
    Ok(())
}

/// `PUT /reminders/{id}/{seconds}`
async fn remind(
    State(queues): State<Queues>,
    Path((id, seconds)): Path<(String, u64)>,
    Json(reminder): Json<Reminder>,
) -> Result<StatusCode, Failed> {
    let delay = Duration::from_secs(seconds);
    match queues.pending.offer(&reminder, delay).id(id).replace().await.map_err(failed)? {
        Offered::Replaced(_) => Ok(StatusCode::OK),
        _ => Ok(StatusCode::CREATED),
    }
}

/// `GET /reminders/{id}`
async fn find(State(queues): State<Queues>, Path(id): Path<String>) -> Result<Json<Reminder>, Failed> {
    match queues.pending.job(id).get().await.map_err(failed)? {
        Some(job) => Ok(Json(job.value)),
        None => Err((StatusCode::NOT_FOUND, "it is due, or was never here".into())),
    }
}

/// `DELETE /reminders/{id}`
async fn cancel(State(queues): State<Queues>, Path(id): Path<String>) -> Result<StatusCode, Failed> {
    match queues.pending.job(id).cancel().await.map_err(failed)? {
        Cancelled::Removed => Ok(StatusCode::NO_CONTENT),
        _ => Ok(StatusCode::NOT_FOUND),
    }
}

type Failed = (StatusCode, String);

fn failed(error: redelay::Error) -> Failed {
    let may_retry = error.is_unavailable() || error.is_outcome_unknown();
    let status = if may_retry { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::INTERNAL_SERVER_ERROR };
    (status, error.to_string())
}

async fn work(due: &BlockingQueue<Reminder>) -> redelay::Result<redelay::worker::Stopped> {
    let http = reqwest::Client::new();
    Worker::new(due)
        .concurrency(64)
        .timeout(Duration::from_secs(10))
        .max_attempts(6)
        .backoff(Backoff::ladder([1, 15, 60, 600, 3600].map(Duration::from_secs)))
        .on_failure(|failure| eprintln!("{failure}"))
        .run(move |reminder, context| send(http.clone(), reminder, context))
        .await
}

async fn send(
    http: reqwest::Client,
    reminder: Reminder,
    context: Context,
) -> Result<Outcome, reqwest::Error> {
    // The id is the same in all attempts, so that the receiver can drop a reminder that comes twice.
    let request = http.post(reminder.url).header("Idempotency-Key", context.id().to_string());
    match request.body(reminder.text).send().await?.status() {
        status if status.is_success() => Ok(Outcome::Done),
        status @ (StatusCode::NOT_FOUND | StatusCode::GONE) => Ok(Outcome::Reject(status.to_string().into())),
        status => Ok(Outcome::Retry(status.to_string().into())),
    }
}

/// `GET /dead-letters`
async fn dead_letters(State(queues): State<Queues>) -> Result<String, Failed> {
    let letters = queues.due.dead_letters().read(None, 100).await.map_err(failed)?;
    let lines = letters.iter().map(|letter| format!("{} {}: {}\n", letter.id, letter.reason, letter.error));
    Ok(lines.collect())
}

/// `POST /dead-letters`: once the cause is repaired, all of them are tried again.
async fn requeue(State(queues): State<Queues>) -> Result<String, Failed> {
    let requeued = queues.due.dead_letters().requeue_all(usize::MAX).await.map_err(failed)?;
    Ok(format!("{requeued}\n"))
}

/// `GET /metrics`, for Prometheus.
async fn metrics(State(queues): State<Queues>) -> Result<String, Failed> {
    let stats = queues.due.stats().await.map_err(failed)?;
    let overdue_for = stats.overdue_for.unwrap_or_default().as_secs_f64();
    let metrics = [
        ("redelay_queue_pending", stats.pending as f64),
        ("redelay_queue_ready", stats.ready as f64),
        ("redelay_queue_overdue_for_seconds", overdue_for),
        ("redelay_queue_in_flight", stats.receiving.in_flight as f64),
        ("redelay_queue_retries", stats.receiving.waiting as f64),
        ("redelay_queue_dead_letters", stats.receiving.dead_letters as f64),
    ];
    Ok(metrics.map(|(name, value)| format!("{name}{{queue=\"reminders\"}} {value}\n")).concat())
}
