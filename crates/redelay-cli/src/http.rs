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
use tokio::sync::{Notify, Semaphore};
use tokio::time::sleep;

use crate::failure::Failure;

/// The most connections at a time. Others wait.
const CONNECTIONS: usize = 64;
/// How long a client may take to ask, and then to read the answer. A scrape that waits for a place has 10 s
/// by default.
const WITHIN: Duration = if cfg!(test) { Duration::from_secs(2) } else { Duration::from_secs(5) };

/// A page.
pub(crate) struct Page {
    pub(crate) is_ok: bool,
    pub(crate) content_type: &'static str,
    pub(crate) body: Bytes,
}

/// What is at a path.
pub(crate) type Pages = Arc<dyn Fn(&str) -> Option<BoxFuture<'static, Page>> + Send + Sync>;

/// Listens at an address. Returns it with its port, which the system chooses if it was 0.
pub(crate) async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Failure> {
    let cannot = |error| Failure::Other(format!("{address} cannot be listened at: {error}"));
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
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let pages = pages.clone();
        tokio::spawn(async move {
            let _place = place;
            let has_answered = Notify::new();
            let service = service_fn(async |request| {
                let answer = answer(&request, &pages).await;
                has_answered.notify_one();
                Ok::<_, Infallible>(answer)
            });
            let mut server = hyper::server::conn::http1::Builder::new();
            server.timer(TokioTimer::new()).header_read_timeout(WITHIN).max_buf_size(16 * 1024);
            // One request: a connection that is not used would take the place of another.
            let connection = server.keep_alive(false).serve_connection(TokioIo::new(stream), service);
            // A client that breaks off, or does not read, wants nothing more.
            tokio::select! {
                _ = connection => {}
                () = async { has_answered.notified().await; sleep(WITHIN).await } => {}
            }
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

fn plain(status: StatusCode, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let value = hyper::header::HeaderValue::from_static;
    headers.insert(CONTENT_TYPE, value("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, value("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    /// Longer than what the buffers of both ends hold.
    const LONG: usize = 32 << 20;

    /// Its answer to a request for a path, as far as it is read.
    async fn ask(address: SocketAddr, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    #[tokio::test]
    async fn clients_that_do_not_read_make_room_for_others() {
        let (listener, address) = listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let long = Bytes::from(vec![b'x'; LONG]);
        let pages: Pages = Arc::new(move |path| {
            let body = if path == "/long" { long.clone() } else { long.slice(..1) };
            Some(async move { Page { is_ok: true, content_type: "text/plain", body } }.boxed())
        });
        tokio::spawn(serve(listener, pages));
        let mut slow = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut stream = ask(address, "/long").await;
            // The answer has begun.
            stream.read_exact(&mut [0; 1]).await.unwrap();
            slow.push(stream);
        }
        let mut answer = String::new();
        ask(address, "/").await.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nx"), "{answer}");
    }
}
