//! A server of small pages over HTTP: what `pump --health` and `exporter` answer with.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::failure::Failure;

/// The most connections at a time. Others wait.
const CONNECTIONS: usize = 64;
/// How long a client may take to ask, and how long an unused connection stays.
const ASKS_WITHIN: Duration = Duration::from_secs(10);

/// A page.
pub(crate) struct Page {
    pub(crate) is_ok: bool,
    pub(crate) content_type: &'static str,
    pub(crate) body: String,
}

/// What is at a path.
pub(crate) type Pages = Arc<dyn Fn(&str) -> Option<BoxFuture<'static, Page>> + Send + Sync>;

/// Listens at an address. Returns it with its port, which the system chooses if it was 0.
pub(crate) async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let cannot = |error| Failure::Usage(format!("{address} cannot be listened at: {error}"));
    let listener = TcpListener::bind(address).await.map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    Ok((listener, address))
}

/// Answers requests, without an end.
pub(crate) async fn serve(listener: TcpListener, pages: Pages) -> Infallible {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let place = places.clone().acquire_owned().await;
        let Ok((stream, _)) = listener.accept().await else {
            // There are too many files for a moment, or the client has left.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let pages = pages.clone();
        tokio::spawn(async move {
            let _place = place;
            let service = service_fn(|request| {
                let pages = pages.clone();
                async move { Ok::<_, Infallible>(answer(&request, &pages).await) }
            });
            let mut server = hyper::server::conn::http1::Builder::new();
            server.timer(TokioTimer::new()).header_read_timeout(ASKS_WITHIN).max_buf_size(16 * 1024);
            // A client that breaks off wants nothing more.
            let _ = server.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(request: &Request<Incoming>, pages: &Pages) -> Response<Full<Bytes>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET\n".into());
        refused.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    let Some(page) = pages(request.uri().path()) else {
        return plain(StatusCode::NOT_FOUND, "there is nothing here\n".into());
    };
    let Page { is_ok, content_type, body } = page.await;
    let status = if is_ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let mut response = plain(status, body);
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(content_type));
    response
}

fn plain(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let value = hyper::header::HeaderValue::from_static;
    headers.insert(CONTENT_TYPE, value("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, value("no-store"));
    response
}
