//! Messages of a topic that are posted to an HTTP endpoint until it answers 200.

use std::time::Duration;

use redelay::worker::{Backoff, Context, Outcome, Stopped};
use redelay::{Client, Worker, codec};
use reqwest::{RequestBuilder, StatusCode};

/// The pauses in seconds: nine, so there are ten attempts.
pub const PAUSES: [u64; 9] = [15, 180, 600, 1_800, 1_800, 3_600, 7_200, 21_600, 54_000];

/// Posts the due messages of a topic to `url`.
pub async fn call_back(client: &Client, topic: &str, url: &str, pauses: Backoff) -> redelay::Result<Stopped> {
    let due = client.blocking_queue(topic, codec::String);
    let (http, url) = (reqwest::Client::new(), url.to_owned());
    let handler = move |body: String, context: Context| post(http.post(&url), body, context);
    let worker = Worker::new(&due).concurrency(64).timeout(Duration::from_secs(10));
    worker.max_attempts(10).backoff(pauses).run(handler).await
}

async fn post(request: RequestBuilder, body: String, context: Context) -> Result<Outcome, reqwest::Error> {
    let request = request.header("Message-Id", context.id().to_string()).header("Attempt", context.attempt());
    match request.body(body).send().await?.status() {
        StatusCode::OK => Ok(Outcome::Done),
        other => Ok(Outcome::Retry(other.to_string().into())),
    }
}
