//! Users and passwords, from the builder and from a provider that is called for each connection.

use std::convert::Infallible;
use std::error::Error as _;
use std::future::pending;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use redelay::client::ClientBuilder;
use redelay::{Client, ErrorKind, codec};
use redelay_fixture::{Server, until_async};
use redelay_support::{HOUR, MINUTE, ms, soon};
use tokio_util::sync::CancellationToken;

/// A server whose only user is `clerk`, with this password.
fn server_with(password: &str) -> Server {
    let server = Server::builder().password("of the default user").start();
    set_password(&server, password);
    server
}

fn set_password(server: &Server, password: &str) {
    server.cmd(["ACL", "SETUSER", "clerk", "on", "resetpass", &format!(">{password}"), "~*", "&*", "+@all"]);
}

fn address(server: &Server) -> String {
    format!("127.0.0.1:{}", server.port())
}

async fn works(builder: ClientBuilder) {
    let client = builder.connect_timeout(10 * MINUTE).connect().await.expect("a connection");
    let ready = client.blocking_queue("q", codec::String);
    let delayed = client.delayed_queue(&ready);
    delayed.offer(&"a".to_owned(), ms(20)).await.expect("an offer");
    assert_eq!(ready.take().await.expect("a payload"), "a");
    client.shutdown().await;
}

#[tokio::test]
async fn from_the_builder() {
    let server = server_with("p@ss:w/rd %41");
    let at = address(&server);
    let builder = |url: String| Client::builder().url(url);
    works(builder(format!("redis://{at}")).credentials("clerk", "p@ss:w/rd %41")).await;
    works(builder(format!("redis://clerk@{at}")).password("p@ss:w/rd %41")).await;
    works(builder(format!("redis://clerk:old@{at}")).password("p@ss:w/rd %41")).await;
    works(builder(format!("redis://joe:old@{at}/3")).credentials("clerk", "p@ss:w/rd %41")).await;
    // The default user.
    works(builder(format!("redis://{at}")).password("of the default user")).await;
    works(builder(format!("redis://{at}")).credentials("", "of the default user")).await;
    works(builder(format!("redis://joe@{at}")).credentials("default", "of the default user")).await;

    let wrong = builder(format!("redis://{at}")).credentials("clerk", "hunter2").connect_timeout(HOUR);
    let error = wrong.connect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Credentials);
    assert!(
        error.to_string().contains("WRONGPASS") && !format!("{error:?}").contains("hunter2"),
        "{error:?}"
    );
}

#[tokio::test]
async fn over_a_unix_socket() {
    let server = Server::builder().unix_socket().start();
    set_password(&server, "secret");
    server.cmd(["ACL", "SETUSER", "default", "off"]);
    let url = format!("redis+unix://{}", server.unix_path().display());
    works(Client::builder().url(&url).credentials("clerk", "secret")).await;
    works(
        Client::builder().url(&url).credentials_provider(|| async {
            Ok::<_, Infallible>(("clerk".to_owned(), "secret".to_owned()))
        }),
    )
    .await;
}

/// Returns the current password, and counts the calls.
#[derive(Clone, Default)]
struct Vault {
    password: Arc<Mutex<String>>,
    asked: Arc<AtomicUsize>,
}

impl Vault {
    fn with(password: &str) -> Self {
        let new = Self::default();
        new.set(password);
        new
    }

    fn set(&self, password: &str) {
        *self.password.lock().unwrap() = password.to_owned();
    }

    fn builder(&self, server: &Server) -> ClientBuilder {
        let vault = self.clone();
        Client::builder().url(format!("redis://{}", address(server))).credentials_provider(move || {
            let vault = vault.clone();
            async move {
                vault.asked.fetch_add(1, Relaxed);
                tokio::task::yield_now().await;
                let password = vault.password.lock().unwrap().clone();
                Ok::<_, Infallible>(("clerk".to_owned(), password))
            }
        })
    }
}

/// The password changes again and again, and all connections are killed each time, under load.
#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_rotates() {
    let server = server_with("0");
    let vault = Vault::with("0");
    let client = vault.builder(&server).client_name("rotating").connect().await.expect("a connection");
    let ready = client.blocking_queue("q", codec::Long);
    let delayed = client.delayed_queue(&ready);
    let (stored, taken, stop) = (AtomicUsize::new(0), AtomicUsize::new(0), CancellationToken::new());
    let is_empty = || server.keys().iter().all(|key| key.starts_with(b"redelay:"));
    let produce = async {
        while !stop.is_cancelled() {
            if delayed.offer(&1, ms(5)).await.is_ok() {
                stored.fetch_add(1, Relaxed);
            }
        }
    };
    let consume = async {
        let mut idle = Instant::now();
        while !stop.is_cancelled() || idle.elapsed() < Duration::from_secs(2) || !is_empty() {
            if let Ok(Some(_)) = ready.poll_timeout(ms(200)).await {
                taken.fetch_add(1, Relaxed);
                idle = Instant::now();
            }
        }
    };
    let rotate = async {
        for round in 1..=5 {
            let before = taken.load(Relaxed);
            let goes_on = || async { taken.load(Relaxed) > before + 20 };
            until_async("it works", goes_on).await;
            let password = round.to_string();
            // The server changes first, so the provider briefly returns a wrong password.
            set_password(&server, &password);
            server.cmd(["CLIENT", "KILL", "USER", "clerk"]);
            tokio::time::sleep(ms(100)).await;
            vault.set(&password);
            let all_back = || async { server.clients_named("rotating") == 3 };
            until_async("all connections are back", all_back).await;
        }
        let before = taken.load(Relaxed);
        until_async("it works", || async { taken.load(Relaxed) > before + 20 }).await;
        stop.cancel();
    };
    tokio::join!(produce, consume, rotate);
    assert!(client.stats().connected);
    // Three connections at first, and three after each of the five kills.
    assert!(vault.asked.load(Relaxed) >= 18, "{}", vault.asked.load(Relaxed));
    // A killed connection may cost the payload of the pop on it.
    let (stored, taken) = (stored.load(Relaxed), taken.load(Relaxed));
    assert!(taken + 5 >= stored, "{taken} of {stored}");
    client.shutdown().await;
}

#[tokio::test]
async fn a_password_that_the_server_accepts_only_later() {
    let server = server_with("new");
    let vault = Vault::with("old");
    let connecting = tokio::spawn(vault.builder(&server).connect_timeout(10 * MINUTE).connect());
    until_async("refused", || async { vault.asked.load(Relaxed) >= 3 }).await;
    vault.set("new");
    connecting.await.unwrap().expect("a connection");

    let error =
        Vault::with("hunter2").builder(&server).connect_timeout(ms(4000)).connect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Credentials);
    assert!(!format!("{error:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_provider_that_fails() {
    let server = server_with("secret");
    let failures = Arc::new(AtomicUsize::new(0));
    let failing = |times: usize| {
        let failures = failures.clone();
        Client::builder().url(format!("redis://{}", address(&server))).credentials_provider(move || {
            let is_failing = failures.fetch_add(1, Relaxed) < times;
            async move {
                match is_failing {
                    true => Err(io::Error::other("the vault is sealed")),
                    false => Ok(("clerk".to_owned(), "secret".to_owned())),
                }
            }
        })
    };
    let error = failing(usize::MAX).connect_timeout(ms(4000)).connect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().ends_with("the credentials provider failed: the vault is sealed"), "{error}");
    assert_eq!(error.source().expect("a source").to_string(), "the vault is sealed");
    assert!(failures.swap(0, Relaxed) > 1, "it was retried");

    let client = failing(3).connect_timeout(10 * MINUTE).connect().await.expect("a connection");
    // It fails again at the reconnection.
    let ready = client.blocking_queue("q", codec::Long);
    failures.store(0, Relaxed);
    server.cmd(["CLIENT", "KILL", "USER", "clerk"]);
    until_async("asked again", || async { failures.load(Relaxed) > 3 }).await;
    until_async("it works", || async { ready.put(&1).await.is_ok() }).await;
}

#[tokio::test]
async fn a_provider_that_fails_later_is_the_reason() {
    let server = server_with("secret");
    let calls = Arc::new(AtomicUsize::new(0));
    let builder = Client::builder().url(format!("redis://{}", address(&server)));
    let builder = builder.command_timeout(ms(4_000)).credentials_provider(move || {
        let is_first = calls.fetch_add(1, Relaxed) == 0;
        async move {
            let credentials = ("clerk".to_owned(), "secret".to_owned());
            is_first.then_some(credentials).ok_or(io::Error::other("the vault is sealed"))
        }
    });
    let client = builder.connect().await.expect("a connection");
    server.cmd(["CLIENT", "KILL", "USER", "clerk"]);
    let ready = client.blocking_queue("q", codec::Long);
    until_async("it is noticed", || async { !client.stats().connected }).await;
    let error = ready.put(&1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("the credentials provider failed: the vault is sealed"), "{error}");
    assert_eq!(error.source().expect("a source").to_string(), "the vault is sealed");
}

#[tokio::test]
async fn a_provider_that_hangs() {
    let server = server_with("secret");
    let builder = Client::builder().url(format!("redis://{}", address(&server)));
    let builder = builder
        .connect_timeout(ms(500))
        .credentials_provider(pending::<Result<(String, String), Infallible>>);
    let error = soon(builder.connect()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("the credentials provider did not answer in time"), "{error}");
}

/// Slower than the timeout of a handshake.
#[tokio::test]
async fn a_provider_that_is_slow() {
    let server = server_with("secret");
    let builder = Client::builder().url(format!("redis://{}", address(&server)));
    let builder = builder.credentials_provider(|| async {
        tokio::time::sleep(ms(4_000)).await;
        Ok::<_, Infallible>(("clerk".to_owned(), "secret".to_owned()))
    });
    let client = builder.connect().await.expect("a connection");
    client.blocking_queue("q", codec::Long).put(&1).await.expect("a put");
}

#[tokio::test]
async fn debug_shows_no_password() {
    let server = server_with("hunter2");
    let url = format!("redis://clerk:hunter2@{}", address(&server));
    let provider = || async { Ok::<_, Infallible>(("clerk".to_owned(), "hunter2".to_owned())) };
    for builder in [
        Client::builder().url(&url),
        Client::builder().url(&url).password("hunter2"),
        Client::builder().url(&url).credentials("clerk", "hunter2"),
        Client::builder().url(&url).credentials_provider(provider),
    ] {
        assert!(!format!("{builder:?} {builder:#?}").contains("hunter2"));
        let client = builder.connect().await.expect("a connection");
        assert!(!format!("{client:?} {client:#?}").contains("hunter2"));
    }
}
