//! Errors of connections: the reason in plain words, the kind, and the I/O error behind it.

use std::error::Error as _;
use std::io;

use redelay::{Client, Error, ErrorKind, codec};
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{MINUTE, ms};

#[track_caller]
fn io_kind(error: &Error) -> io::ErrorKind {
    let source = error.source().unwrap_or_else(|| panic!("no source: {error:?}"));
    let source: &io::Error = source.downcast_ref().unwrap_or_else(|| panic!("another source: {error:?}"));
    assert!(error.to_string().contains(&source.to_string()), "{error:?}: {source}");
    source.kind()
}

async fn fails(url: &str) -> Error {
    Client::builder().url(url).connect_timeout(ms(4000)).connect().await.unwrap_err()
}

#[tokio::test]
async fn nobody_listens() {
    let server = Server::start();
    server.stop();
    let error = fails(&server.url()).await;
    assert_eq!((error.kind(), io_kind(&error)), (ErrorKind::Unavailable, io::ErrorKind::ConnectionRefused));
    let expected = format!(
        "connect to 127.0.0.1:{} failed: Connection refused (os error 111); is a server running there, and reachable from here? [Unavailable]",
        server.port()
    );
    assert_eq!((format!("{error:?}"), format!("{error:#?}")), (expected.clone(), expected));
}

#[tokio::test]
async fn no_such_socket() {
    let error = fails("redis+unix:///nowhere/redis.sock").await;
    assert_eq!(io_kind(&error), io::ErrorKind::NotFound);
    assert!(error.to_string().starts_with("connect to /nowhere/redis.sock failed: No such file"), "{error}");
}

#[tokio::test]
async fn no_such_host() {
    let error = fails("redis://no-such-host.invalid").await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    io_kind(&error);
    assert!(error.to_string().contains("failed to lookup address"), "{error}");
}

#[tokio::test]
async fn no_answer() {
    let server = Server::start();
    server.freeze();
    let error = fails(&server.url()).await;
    assert_eq!(io_kind(&error), io::ErrorKind::TimedOut);
    assert!(error.to_string().contains("the server does not answer"), "{error}");
}

/// A server that closes each connection at once, as one that expects TLS does. With and without a password.
#[tokio::test]
async fn connections_are_closed() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let closing = tokio::spawn(async move {
        loop {
            drop(listener.accept().await);
        }
    });
    for user in ["", "joe:hunter2@"] {
        let error = fails(&format!("redis://{user}127.0.0.1:{port}")).await;
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        io_kind_of_closed(&error);
        assert!(error.to_string().contains("If it expects TLS, use rediss://"), "{error}");
        assert!(!format!("{error:?}").contains("hunter2"));
    }
    closing.abort();
}

fn io_kind_of_closed(error: &Error) {
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    let kind = source.map(io::Error::kind);
    let kinds = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
    assert!(kind.is_some_and(|kind| kinds.contains(&kind)), "{kind:?} {error:?}");
}

/// A command that finds no connection reports why there is none.
#[tokio::test]
async fn a_command_without_a_connection() {
    let server = Server::start();
    let client =
        Client::builder().url(server.url()).command_timeout(ms(4_000)).connect().await.expect("a connection");
    let ready = client.blocking_queue("q", codec::String);
    server.stop();
    until_async("it is noticed", || async { !client.stats().connected }).await;
    let error = ready.len().await.unwrap_err();
    assert_eq!((error.kind(), io_kind(&error)), (ErrorKind::Unavailable, io::ErrorKind::ConnectionRefused));
    assert!(error.to_string().contains("there is no connection to 127.0.0.1"), "{error}");
}

/// A command whose connection breaks, or goes silent, while it waits for its reply.
#[tokio::test]
async fn a_command_whose_reply_is_lost() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let client =
        Client::builder().url(proxy.url()).command_timeout(MINUTE).connect().await.expect("a connection");
    let ready = client.blocking_queue("q", codec::String);
    server.freeze();
    let put = "a".to_owned();
    let (error, ()) = tokio::join!(async { ready.put(&put).await.unwrap_err() }, async {
        tokio::time::sleep(ms(200)).await;
        proxy.cut();
    });
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    assert!(error.source().is_some_and(|source| source.is::<io::Error>()), "{error:?}");
    for part in ["the reply was lost", "check before you retry"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert!(!error.to_string().contains("route command"), "{error}");
    server.thaw();
}

/// A program whose `main` returns an error ends with its text.
#[test]
fn debug_of_other_kinds() {
    let error = futures::executor::block_on(Client::connect("redis://localhost")).unwrap_err();
    let text = format!("{error:?}");
    assert!(
        text.starts_with("connect failed: there is no Tokio runtime") && text.ends_with(" [Invalid]"),
        "{text}"
    );
    assert!(error.source().is_none());
}
