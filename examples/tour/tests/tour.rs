//! The service of `docs/tour.md`, as a process of its own beside a real server.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use redelay_fixture::{Program, Server, until_async};
use tokio::net::TcpListener;

/// Where reminders are posted to.
#[derive(Clone, Default)]
struct Endpoint {
    /// How many requests are still answered with 503.
    busy: Arc<AtomicU32>,
    /// The id and the text of each request.
    requests: Arc<Mutex<Vec<(String, String)>>>,
}

impl Endpoint {
    async fn start(&self) -> String {
        let this = self.clone();
        let answer = move |headers: HeaderMap, text: String| async move {
            let id = headers["Idempotency-Key"].to_str().unwrap().to_owned();
            this.requests.lock().unwrap().push((id, text.clone()));
            let is_busy = this.busy.fetch_update(SeqCst, SeqCst, |busy| busy.checked_sub(1)).is_ok();
            match &*text {
                _ if is_busy => StatusCode::SERVICE_UNAVAILABLE,
                "nobody wants it" => StatusCode::GONE,
                _ => StatusCode::OK,
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        tokio::spawn(axum::serve(listener, Router::new().route("/", post(answer))).into_future());
        url
    }

    fn texts(&self) -> Vec<String> {
        self.requests.lock().unwrap().iter().map(|(_, text)| text.clone()).collect()
    }
}

/// The program, and a client of its API.
struct Service {
    program: Program,
    base: String,
    http: reqwest::Client,
}

impl Service {
    async fn start(server: &Server) -> Self {
        let environment = [("REDELAY_URL", &*server.url()), ("ADDRESS", "127.0.0.1:0")];
        let program = Program::start(env!("CARGO_BIN_EXE_redelay-tour"), &[], &environment);
        let address = || program.output().lines().find(|line| line.starts_with("http://")).map(str::to_owned);
        until_async("it listens", || async { address().is_some() }).await;
        let base = address().expect("an address");
        Self { program, base, http: reqwest::Client::new() }
    }

    async fn call(&self, method: &str, path: &str, body: String) -> (u16, String) {
        let request = self.http.request(method.parse().unwrap(), format!("{}{path}", self.base));
        let request = request.header("Content-Type", "application/json").body(body);
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    }

    async fn remind(&self, id: &str, seconds: u64, url: &str, text: &str) -> u16 {
        let body = format!(r#"{{"url":"{url}","text":"{text}"}}"#);
        self.call("PUT", &format!("/reminders/{id}/{seconds}"), body).await.0
    }

    async fn get(&self, path: &str) -> String {
        self.call("GET", path, String::new()).await.1
    }

    async fn metric(&self, name: &str) -> Option<f64> {
        let metrics = self.get("/metrics").await;
        let line = metrics.lines().find(|line| line.starts_with(&format!("redelay_queue_{name}{{")))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    /// SIGTERM, as at the end of a pod.
    async fn stop(self) -> String {
        self.program.terminate();
        until_async("it has ended", || async { !self.program.is_running() }).await;
        self.program.output()
    }
}

#[tokio::test]
async fn an_id_replaces_and_cancels() {
    let (server, endpoint) = (Server::start(), Endpoint::default());
    let url = endpoint.start().await;
    let service = Service::start(&server).await;
    assert_eq!(service.remind("1", 3600, &url, "later").await, 201);
    assert_eq!(service.remind("2", 3600, &url, "never").await, 201);
    assert!(service.get("/reminders/1").await.contains("later"));
    assert_eq!(service.metric("pending").await, Some(2.0));
    assert_eq!(service.call("DELETE", "/reminders/2", String::new()).await.0, 204);
    assert_eq!(service.call("DELETE", "/reminders/2", String::new()).await.0, 404);
    assert_eq!(service.remind("1", 0, &url, "now").await, 200);
    until_async("it is sent", || async { endpoint.texts() == ["now"] }).await;
    assert_eq!(service.call("GET", "/reminders/1", String::new()).await.0, 404);
    let output = service.stop().await;
    assert!(output.contains("acknowledged: 1"), "{output}");
}

#[tokio::test]
async fn a_busy_endpoint_is_tried_again_and_what_it_rejects_is_a_dead_letter() {
    let (server, endpoint) = (Server::start(), Endpoint::default());
    let url = endpoint.start().await;
    let service = Service::start(&server).await;
    endpoint.busy.store(1, SeqCst);
    assert_eq!(service.remind("1", 0, &url, "twice").await, 201);
    until_async("it is sent", || async { endpoint.texts() == ["twice", "twice"] }).await;
    let ids: Vec<String> = endpoint.requests.lock().unwrap().iter().map(|(id, _)| id.clone()).collect();
    assert_eq!(ids[0], ids[1], "the same id in each attempt");

    assert_eq!(service.remind("2", 0, &url, "nobody wants it").await, 201);
    until_async("a dead letter", || async { service.metric("dead_letters").await == Some(1.0) }).await;
    let letters = service.get("/dead-letters").await;
    assert!(letters.contains(" rejected: 410 Gone"), "{letters}");
    assert_eq!(service.call("POST", "/dead-letters", String::new()).await.1, "1\n");
    until_async("it is tried again", || async { endpoint.texts().len() == 4 }).await;
    service.stop().await;
}

#[tokio::test]
async fn what_is_pending_outlives_the_process() {
    let (server, endpoint) = (Server::start(), Endpoint::default());
    let url = endpoint.start().await;
    let service = Service::start(&server).await;
    assert_eq!(service.remind("1", 2, &url, "after a restart").await, 201);
    service.stop().await;
    let service = Service::start(&server).await;
    until_async("it is sent", || async { endpoint.texts() == ["after a restart"] }).await;
    // Nothing but the worker's stop decides when the process ends, and it says what it has done.
    let output = service.stop().await;
    assert!(output.contains("Stopped") && output.contains("acknowledged: 1"), "{output}");
}
