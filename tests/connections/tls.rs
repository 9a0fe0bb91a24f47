//! TLS: trusted servers, client certificates, and error messages.

use std::error::Error as _;
use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use redelay::client::{ClientBuilder, Tls};
use redelay::{Client, Error, ErrorKind, codec};
use redelay_fixture::{Port, Server, until_async};
use redelay_support::{alone_with, soon};
use tempfile::TempDir;

/// So long that a test that waits for it fails.
const LONG: Duration = Duration::from_secs(3600);

/// A folder of certificates, made by openssl.
struct Certificates(TempDir);

impl Certificates {
    /// Lets a server also speak TLS, on this port, from its start.
    fn configure(&self, builder: redelay_fixture::Builder, port: &Port) -> redelay_fixture::Builder {
        builder
            .config(format!("tls-port {}", port.number()))
            .config(format!("tls-cert-file {}", self.path("server.pem")))
            .config(format!("tls-key-file {}", self.path("server.key")))
            .config(format!("tls-ca-cert-file {}", self.path("ca.pem")))
            .config("tls-auth-clients no")
    }

    /// An authority, a server certificate for localhost, and a client certificate.
    fn new() -> Self {
        let new = Self(tempfile::tempdir().expect("a folder"));
        new.authority("ca");
        new.signed("server", "subjectAltName=DNS:localhost,DNS:redis.internal", "ca", 2);
        new.signed("client", "extendedKeyUsage=clientAuth", "ca", 2);
        new
    }

    fn openssl(&self, args: &str) {
        let output = Command::new("openssl")
            .args(args.split(' '))
            .current_dir(self.0.path())
            .output()
            .expect("openssl");
        assert!(output.status.success(), "openssl {args}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn authority(&self, name: &str) {
        self.openssl(&format!(
            "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={name} -keyout {name}.key -out {name}.pem"
        ));
    }

    /// Valid for these days from now; a negative number makes one that has expired.
    fn signed(&self, name: &str, extension: &str, authority: &str, days: i32) {
        self.openssl(&format!(
            "req -newkey rsa:2048 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr"
        ));
        std::fs::write(self.path("extension"), extension).expect("a file");
        self.openssl(&format!(
            "x509 -req -days {days} -in {name}.csr -CA {authority}.pem -CAkey {authority}.key -CAcreateserial -extfile extension -out {name}.pem"
        ));
    }

    fn path(&self, file: &str) -> String {
        self.0.path().join(file).display().to_string()
    }

    fn read(&self, file: &str) -> Vec<u8> {
        std::fs::read(self.path(file)).expect("a file")
    }

    /// The port on which the server speaks TLS from now on. `clients` is whether it requires client
    /// certificates.
    fn serve(&self, server: &Server, certificate: &str, clients: &str) -> u16 {
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        let (cert, key) =
            (self.path(&format!("{certificate}.pem")), self.path(&format!("{certificate}.key")));
        for (option, value) in [
            ("tls-cert-file", cert.as_str()),
            ("tls-key-file", &key),
            ("tls-ca-cert-file", &self.path("ca.pem")),
            ("tls-auth-clients", clients),
            ("tls-port", &port.to_string()),
        ] {
            server.cmd(["CONFIG", "SET", option, value]);
        }
        port
    }
}

/// Servers are known by their addresses, and their certificates have names.
#[tokio::test]
async fn sentinels_over_tls() {
    let Some(server) = server() else { return };
    let certificates = Certificates::new();
    let port = certificates.serve(&server, "server", "no");
    let of_sentinel = Port::reserve();
    let builder = Server::builder().sentinel().config(format!("sentinel monitor main 127.0.0.1 {port} 1"));
    let sentinel = certificates.configure(builder, &of_sentinel).start();
    let url = format!("rediss-sentinel://localhost:{}/main", of_sentinel.number());
    let root = || Tls::new().root_certificate_pem(certificates.read("ca.pem"));
    works(Client::builder().url(&url).tls(root())).await;
    let url = url.replace("localhost", "127.0.0.1");
    works(Client::builder().url(&url).tls(root().server_name("redis.internal"))).await;
    let builder = Client::builder().url(&url).tls(root()).connect_timeout(Duration::from_secs(4));
    let error = builder.connect().await.expect_err("127.0.0.1 is not in the certificate");
    assert!(error.to_string().contains("certificate"), "{error}");
    drop(sentinel);
}

/// The servers of a cluster are known by their addresses, too.
#[tokio::test]
async fn a_cluster_over_tls() {
    if server().is_none() {
        return;
    }
    // The port of TLS has a bus port, too.
    let (certificates, port) = (Certificates::new(), Port::reserve_with_bus());
    let builder = certificates.configure(Server::builder().cluster().config("tls-cluster yes"), &port);
    let _server = tokio::task::spawn_blocking(|| builder.start()).await.expect("a cluster");
    let port = port.number();
    let url = format!("rediss-cluster://localhost:{port}");
    let root = || Tls::new().root_certificate_pem(certificates.read("ca.pem"));
    works(Client::builder().url(&url).tls(root())).await;
    let url = url.replace("localhost", "127.0.0.1");
    works(Client::builder().url(&url).tls(root().server_name("redis.internal"))).await;
    let builder = Client::builder().url(&url).tls(root()).connect_timeout(Duration::from_secs(4));
    let error = builder.connect().await.expect_err("127.0.0.1 is not in the certificate");
    assert!(error.to_string().contains("certificate"), "{error}");
}

/// Only the distribution's server is known to be built with TLS.
fn server() -> Option<Server> {
    let is_other = std::env::var_os("REDELAY_SERVER").is_some();
    (!is_other).then(Server::start)
}

fn localhost(port: u16, tls: Tls) -> ClientBuilder {
    Client::builder().url(format!("rediss://localhost:{port}")).tls(tls)
}

async fn works(builder: ClientBuilder) {
    let client = builder.connect_timeout(LONG).connect().await.expect("a connection");
    let ready = client.blocking_queue("q", codec::String);
    let delayed = client.delayed_queue(&ready);
    delayed.offer(&"a".to_owned(), Duration::from_millis(20)).await.expect("an offer");
    assert_eq!(ready.take().await.expect("a payload"), "a");
    client.shutdown().await;
}

/// The error of a handshake that cannot succeed. It is reported at once, although there would be time to
/// retry.
async fn refused(builder: ClientBuilder, parts: &[&str]) -> Error {
    let error = soon(builder.connect_timeout(LONG).connect()).await.expect_err("no connection");
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "no `{part}` in: {text}");
    }
    for phrase in ["is a server running there", "Custom {", "UnknownIssuer", "InvalidCertificate"] {
        assert!(!text.contains(phrase), "`{phrase}` in: {text}");
    }
    error
}

#[track_caller]
fn is_of_tls(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Tls, "{error:?}");
    let source = error.source().expect("a source").to_string();
    let words = ["certificate", "fatal alert", "corrupt message"];
    assert!(words.iter().any(|word| source.contains(word)), "{source}");
}

#[tokio::test]
async fn a_private_authority() {
    let Some(server) = server() else { return };
    let certificates = Certificates::new();
    let port = certificates.serve(&server, "server", "no");
    let root = || Tls::new().root_certificate_pem(certificates.read("ca.pem"));
    works(localhost(port, root())).await;
    works(localhost(port, root().only_these_roots())).await;
    // Several certificates in one file, with text around them.
    certificates.authority("other");
    let mut several = certificates.read("other.pem");
    several.extend_from_slice(b"\nThe one of our own:\n");
    several.extend(certificates.read("ca.pem"));
    works(localhost(port, Tls::new().root_certificate_pem(several))).await;

    for tls in [Tls::new(), Tls::new().root_certificate_pem(certificates.read("other.pem"))] {
        let parts = ["an authority that is not trusted", "root_certificate_pem", "SSL_CERT_FILE"];
        is_of_tls(&refused(localhost(port, tls), &parts).await);
    }
    let only = Tls::new().root_certificate_pem(certificates.read("other.pem")).only_these_roots();
    let error = refused(localhost(port, only), &["an authority that is not trusted"]).await;
    assert!(!error.to_string().contains("SSL_CERT_FILE"), "it is not read: {error}");
}

#[tokio::test]
async fn names_of_the_server() {
    let Some(server) = server() else { return };
    let certificates = Certificates::new();
    let port = certificates.serve(&server, "server", "no");
    let root = || Tls::new().root_certificate_pem(certificates.read("ca.pem"));
    let by_address = |tls: Tls| Client::builder().url(format!("rediss://127.0.0.1:{port}")).tls(tls);
    works(by_address(root().server_name("redis.internal"))).await;

    let error = refused(by_address(root()), &["127.0.0.1", "localhost", "Tls::server_name"]).await;
    is_of_tls(&error);
    let error = refused(localhost(port, root().server_name("redis.example")), &["redis.example"]).await;
    is_of_tls(&error);
    let error = refused(localhost(port, root().server_name("no name")), &["`no name`"]).await;
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

#[tokio::test]
async fn a_certificate_that_has_expired() {
    let Some(server) = server() else { return };
    let certificates = Certificates::new();
    certificates.signed("old", "subjectAltName=DNS:localhost", "ca", -1);
    let port = certificates.serve(&server, "old", "no");
    let tls = Tls::new().root_certificate_pem(certificates.read("ca.pem"));
    is_of_tls(&refused(localhost(port, tls), &["the server's certificate has expired"]).await);
}

#[tokio::test]
async fn client_certificates() {
    let Some(server) = server() else { return };
    let certificates = Certificates::new();
    let port = certificates.serve(&server, "server", "yes");
    let root = || Tls::new().root_certificate_pem(certificates.read("ca.pem"));
    let (chain, key) = (certificates.read("client.pem"), certificates.read("client.key"));
    works(localhost(port, root().client_certificate_pem(&chain, &key))).await;
    // In the key format of older tools.
    certificates.openssl("rsa -in client.key -traditional -out client.pkcs1");
    let pkcs1 = certificates.read("client.pkcs1");
    works(localhost(port, root().client_certificate_pem(&chain, pkcs1))).await;

    let parts = ["requires a client certificate", "Tls::client_certificate_pem"];
    is_of_tls(&refused(localhost(port, root()), &parts).await);
    certificates.authority("other");
    certificates.signed("stranger", "extendedKeyUsage=clientAuth", "other", 2);
    let stranger =
        root().client_certificate_pem(certificates.read("stranger.pem"), certificates.read("stranger.key"));
    is_of_tls(&refused(localhost(port, stranger), &["rejected the client certificate"]).await);

    let rows = [
        (root().client_certificate_pem(&chain, certificates.read("ca.key")), "does not belong"),
        (root().client_certificate_pem(&key, &key), "found a private key"),
        (root().client_certificate_pem(&chain, &chain), "expected a private key"),
        (root().root_certificate_pem("ca.pem"), "expected a certificate"),
    ];
    for (tls, part) in rows {
        assert_eq!(refused(localhost(port, tls), &[part]).await.kind(), ErrorKind::Invalid);
    }
}

#[tokio::test]
async fn a_server_without_tls() {
    let server = Server::start();
    // Redis reads a handshake as an inline command, which may need a line break. Not every handshake contains
    // one.
    let builder = || localhost(server.port(), Tls::new()).connect_timeout(Duration::from_secs(4));
    let error = builder().connect().await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Tls | ErrorKind::Unavailable), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("does not speak TLS on this port") || text.contains("the TLS handshake"), "{text}");
    let error = refused(Client::builder().url(server.url()).tls(Tls::new()), &["rediss://"]).await;
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

/// When a server's certificate is replaced by an untrusted one, the client waits for the server, and reports
/// the reason.
#[tokio::test]
async fn a_certificate_that_changes_later() {
    let Some(server) = server() else { return };
    let certificates = Certificates::new();
    certificates.authority("other");
    certificates.signed("new", "subjectAltName=DNS:localhost", "other", 2);
    let port = certificates.serve(&server, "server", "no");
    let tls = Tls::new().root_certificate_pem(certificates.read("ca.pem"));
    let builder = localhost(port, tls).command_timeout(Duration::from_secs(4));
    let client = builder.connect().await.expect("a connection");
    let ready = client.blocking_queue("q", codec::String);
    server.cmd([
        "CONFIG",
        "SET",
        "tls-key-file",
        &certificates.path("new.key"),
        "tls-cert-file",
        &certificates.path("new.pem"),
    ]);
    server.kill_client_named("redelay");
    until_async("it is noticed", || async { !client.stats().connected }).await;
    let error = ready.len().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("an authority that is not trusted here"), "{error:?}");
    assert!(error.source().is_some_and(|source| source.to_string().contains("certificate")), "{error:?}");
    server.cmd([
        "CONFIG",
        "SET",
        "tls-key-file",
        &certificates.path("server.key"),
        "tls-cert-file",
        &certificates.path("server.pem"),
    ]);
    until_async("it is back", || async { ready.len().await.is_ok() }).await;
}

/// Nobody is to look for a mistake in a URL that is right.
#[tokio::test]
async fn a_file_of_root_certificates_that_is_none() {
    const MISSING: &str = "/nowhere/authority.pem";
    let name = "tls::a_file_of_root_certificates_that_is_none";
    // The environment belongs to the process.
    if !alone_with(name, &[("SSL_CERT_FILE", MISSING), ("SSL_CERT_DIR", "")]) {
        return;
    }
    let Some(server) = server() else { return };
    let certificates = Certificates::new();
    let port = certificates.serve(&server, "server", "no");
    for builder in [localhost(port, Tls::new()), Client::builder().url(format!("rediss://localhost:{port}"))]
    {
        let error = refused(builder, &["no root certificates", "SSL_CERT_FILE", MISSING]).await;
        assert!(!error.to_string().contains("URL"), "{error}");
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }
    // Another authority is named: the file is not the only reason why this one is not trusted.
    certificates.authority("other");
    let other = Tls::new().root_certificate_pem(certificates.read("other.pem"));
    let error = refused(localhost(port, other), &["an authority that is not trusted", MISSING]).await;
    is_of_tls(&error);
    works(localhost(port, Tls::new().root_certificate_pem(certificates.read("ca.pem")))).await;
}

/// The reason is there however short the time to connect is.
#[tokio::test]
async fn a_refused_certificate_and_little_time() {
    let Some(server) = server() else { return };
    let certificates = Certificates::new();
    let port = certificates.serve(&server, "server", "no");
    for timeout in [Duration::from_secs(3), LONG] {
        let error = soon(localhost(port, Tls::new()).connect_timeout(timeout).connect()).await.unwrap_err();
        is_of_tls(&error);
    }
}

#[test]
fn debug_shows_no_key() {
    let tls = Tls::new().root_certificate_pem("hunter2").client_certificate_pem("hunter2", "hunter2");
    let builder = Client::builder().tls(tls.clone());
    let text = format!("{tls:?} {tls:#?} {builder:?}");
    assert!(!text.contains("hunter2") && !text.contains("104"), "{text}");
    assert!(text.contains("client_certificate: true"), "{text}");
}
