use std::sync::{Arc, Mutex};
use std::time::Instant;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use redelay::codec;
use redelay::worker::Backoff;
use redelay_fixture::{Server, until_async};
use redelay_patterns::http_callback::{PAUSES, call_back};
use redelay_patterns::stop_callbacks::stop;
use redelay_support::{HOUR, builder, ms, soon};
use tokio::net::TcpListener;

/// How many requests fail.
const FAILURES: usize = 3;

#[derive(Debug)]
struct Request {
    id: String,
    attempt: u32,
    body: String,
    at: Instant,
}

/// An endpoint that answers 503 `FAILURES` times, and 200 from then on.
async fn endpoint() -> (String, Arc<Mutex<Vec<Request>>>) {
    let requests = Arc::<Mutex<Vec<Request>>>::default();
    let log = requests.clone();
    let answer = move |headers: HeaderMap, body: String| async move {
        let header = |name| headers[name].to_str().unwrap().to_owned();
        let (id, attempt) = (header("Message-Id"), header("Attempt").parse().unwrap());
        let mut log = log.lock().unwrap();
        log.push(Request { id, attempt, body, at: Instant::now() });
        if log.len() > FAILURES { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/unpaid", listener.local_addr().unwrap());
    tokio::spawn(axum::serve(listener, Router::new().route("/unpaid", post(answer))).into_future());
    (url, requests)
}

#[tokio::test]
async fn an_endpoint_is_called_by_the_ladder_until_it_answers_200() {
    let server = Server::start();
    let client = builder(&server).connect().await.unwrap();
    let (url, requests) = endpoint().await;
    // Youzan's ladder, with milliseconds for seconds.
    let fast = Backoff::ladder(PAUSES.map(ms));
    let topic = client.clone();
    let running = tokio::spawn(async move { call_back(&topic, "unpaid", &url, fast).await });
    let due = client.blocking_queue::<String>("unpaid", codec::String);
    client.delayed_queue(&due).offer(r#"{"order":17}"#, ms(50)).await.unwrap();
    until_async("200", || async { due.stats().await.unwrap().receiving.acknowledged == 1 }).await;

    client.stop_taking().await;
    let stopped = soon(running).await.unwrap().unwrap();
    assert_eq!((stopped.acknowledged, stopped.failed), (1, FAILURES as u64));
    assert_eq!(due.dead_letters().len().await.unwrap(), 0);
    let requests = requests.lock().unwrap();
    let attempts: Vec<u32> = requests.iter().map(|request| request.attempt).collect();
    assert_eq!(attempts, [1, 2, 3, 4]);
    assert!(requests.iter().all(|request| request.id == requests[0].id && request.id.len() == 32));
    assert!(requests.iter().all(|request| request.body == r#"{"order":17}"#), "{requests:?}");
    for (pair, step) in requests.windows(2).zip([15, 180, 600]) {
        assert!(pair[1].at - pair[0].at >= ms(step), "not before {step} ms: {requests:?}");
    }
}

/// The last answer is 404: it is no 200, so the message ends as a dead letter, with its body and the reason.
#[tokio::test]
async fn after_ten_attempts_it_is_a_dead_letter() {
    let server = Server::start();
    let client = builder(&server).connect().await.unwrap();
    let (url, requests) = endpoint().await;
    let url = url.replace("/unpaid", "/nowhere");
    let topic = client.clone();
    let running = tokio::spawn(async move { call_back(&topic, "unpaid", &url, Backoff::fixed(ms(1))).await });
    let due = client.blocking_queue::<String>("unpaid", codec::String);
    due.put("order 18").await.unwrap();
    until_async("a dead letter", || async { due.dead_letters().len().await.unwrap() == 1 }).await;
    client.stop_taking().await;
    assert_eq!(soon(running).await.unwrap().unwrap().failed, 10);
    let letter = due.dead_letters().read(None, 1).await.unwrap().remove(0);
    assert_eq!((letter.reason.as_str(), letter.failed, &*letter.error), ("attempts", 10, "404 Not Found"));
    assert!(requests.lock().unwrap().is_empty());
}

/// One is pending, one waits for its retry, and one does not exist.
#[tokio::test]
async fn callbacks_are_deleted_in_any_state() {
    let server = Server::start();
    let client = builder(&server).connect().await.unwrap();
    let (url, requests) = endpoint().await;
    let topic = client.clone();
    let running = tokio::spawn(async move { call_back(&topic, "unpaid", &url, Backoff::fixed(HOUR)).await });
    let due = client.blocking_queue::<String>("unpaid", codec::String);
    let callbacks = client.delayed_queue(&due);
    for (id, delay) in [("pending", HOUR), ("posted", ms(0))] {
        callbacks.offer(id, delay).id(id).until_done().await.unwrap();
    }
    until_async("it waits", || async { due.stats().await.unwrap().receiving.waiting == 1 }).await;
    let ids = ["pending", "posted", "none"].map(str::to_owned);
    stop(&callbacks, &ids).await.unwrap();
    assert_eq!(callbacks.job_states(&ids).await.unwrap(), [None, None, None]);
    let stats = due.stats().await.unwrap();
    assert_eq!((stats.pending, stats.receiving.waiting), (0, 0));
    client.stop_taking().await;
    soon(running).await.unwrap().unwrap();
    assert_eq!(requests.lock().unwrap().len(), 1);
}
