//! Every way to reach a server: TCP, a Unix socket, a database, a user with few permissions, TLS.

use std::time::Duration;

use redelay::{Client, codec};
use redelay_fixture::{Server, until_async};
use redelay_support::Listener;

/// Offers and takes over a connection.
async fn works(client: &Client) {
    let ready = client.blocking_queue("q", codec::String);
    let delayed = client.delayed_queue(&ready);
    delayed.offer(&"a".to_owned(), Duration::from_millis(20)).await.expect("an offer");
    assert_eq!(ready.take().await.expect("a payload"), "a");
}

#[tokio::test]
async fn over_a_unix_socket_and_into_a_database() {
    let server = Server::builder().unix_socket().start();
    let url = format!("redis+unix://{}?db=3", server.unix_path().display());
    let client = Client::connect(&url).await.expect("a connection");
    works(&client).await;
    client.blocking_queue("here", codec::Long).put(&1).await.expect("a put");
    assert!(server.info("keyspace").contains("db3:keys="), "{}", server.info("keyspace"));
    client.shutdown().await;
}

#[tokio::test]
async fn over_tcp_with_a_password_and_into_a_database() {
    let server = Server::builder().password("p@ss:w/rd").start();
    let client = Client::connect(&format!("{}/5", server.url())).await.expect("a connection");
    works(&client).await;
    client.blocking_queue("here", codec::Long).put(&1).await.expect("a put");
    assert!(server.info("keyspace").contains("db5:keys="), "{}", server.info("keyspace"));
}

#[tokio::test]
async fn with_a_name_that_the_server_shows_on_each_connection() {
    let server = Server::start();
    let client =
        Client::builder().url(server.url()).client_name("billing-7").connect().await.expect("a connection");
    works(&client).await;
    assert_eq!(server.clients_named("billing-7"), 3, "commands, pops and announcements");
}

/// The command of docs/deployment.md that makes a user for the queue `q`.
fn documented_user() -> Vec<&'static str> {
    let documentation = include_str!("../../docs/deployment.md");
    let command =
        documentation.split("redis-cli ACL SETUSER").nth(1).and_then(|rest| rest.split("```").next());
    let words = command.expect("the command").split_whitespace().filter(|word| *word != "\\");
    ["ACL", "SETUSER"].into_iter().chain(words.map(|word| word.trim_matches('\''))).collect()
}

/// The calls for which a user needs permissions, each of them once.
async fn everything_works(client: &Client) -> redelay::Result<()> {
    all_but_receivers_works(client).await?;
    let ready = client.blocking_queue("q", codec::String);
    ready.put("one").await?;
    let received = ready.receiver().receive().await?;
    let id = received.id();
    received.reject("no").await?;
    ready.dead_letters().requeue(id).await?;
    ready.receiver().receive().await?.ack().await
}

/// Those without receivers.
async fn all_but_receivers_works(client: &Client) -> redelay::Result<()> {
    const HOUR: Duration = Duration::from_secs(3600);
    let ready = client.blocking_queue("q", codec::String);
    let delayed = client.delayed_queue(&ready);
    let one = || ["one".to_owned()];

    let ticket = delayed.offer("one", HOUR).await?;
    delayed.reschedule(&ticket, HOUR).await?;
    delayed.cancel(&ticket).await?;
    delayed.offer_all([(&one()[0], HOUR), (&one()[0], HOUR)]).await?;
    delayed.read_all().await?;
    delayed.peek().await?;
    delayed.len().await?;
    delayed.contains("one").await?;
    delayed.remove("one").await?;
    delayed.poll().await?;
    delayed.retain_all(&[]).await?;
    delayed.offer("one", HOUR).await?;
    delayed.poll_last_and_offer_first_to("q").await?;
    delayed.offer("one", HOUR).await?;
    delayed.expire(HOUR).await?;
    delayed.clear().await?;

    ready.offer_all(&one()).await?;
    ready.put("one").await?;
    ready.read_all().await?;
    ready.peek_last().await?;
    ready.len().await?;
    ready.contains("one").await?;
    ready.remove("one").await?;
    ready.poll_last_and_offer_first_to("q").await?;
    ready.poll_last().await?;
    ready.poll_many(2).await?;
    ready.poll_timeout(Duration::from_millis(1)).await?;
    ready.poll_last_timeout(Duration::from_millis(1)).await?;
    ready.expire(HOUR).await?;
    ready.delete().await?;

    delayed.quarantine().len().await?;
    delayed.quarantine().read(None, 1).await?;
    ready.stats().await?;
    let unconfirmed = ready.unconfirmed_pops(HOUR);
    unconfirmed.len().await?;
    unconfirmed.read(None, 1).await?;
    unconfirmed.requeue_all(usize::MAX).await?;
    unconfirmed.remove_all(usize::MAX).await?;
    until_async("each pop is confirmed", || async {
        ready.stats().await.is_ok_and(|stats| stats.unconfirmed_pops == 0)
    })
    .await;

    // Few entries, and more.
    for count in [1, 20] {
        let failed = client.stats().failed_transfers;
        let payload = "one".to_owned();
        delayed.offer_all(vec![(&payload, Duration::from_millis(1)); count]).await?;
        while ready.poll_timeout(Duration::from_millis(20)).await?.is_none() {
            if client.stats().failed_transfers > failed {
                // The transfer lacks a permission. An error is returned by a call that may not touch its key.
                return delayed.poll_last_and_offer_first_to("a key of another user").await.map(drop);
            }
        }
        ready.delete().await?;
    }
    Ok(())
}

/// The permissions that, according to docs/deployment.md, are enough.
#[tokio::test]
async fn as_a_user_with_few_permissions() {
    let (listener, _listening) = Listener::start();
    let server = Server::start();
    server.cmd(documented_user());
    let url = format!("redis://worker:secret@127.0.0.1:{}", server.port());
    let client = Client::connect(&url).await.expect("INFO is neither permitted nor needed");
    works(&client).await;
    everything_works(&client).await.expect("nothing is refused");
    let last_error = client.stats().last_error.expect("INFO was refused").message;
    assert!(last_error.starts_with("INFO: NOPERM"), "{last_error}");
    let missing = listener.named("redelay.permissions.missing");
    assert!(missing.is_empty(), "a false alarm: {missing:?}");
    let error = client.blocking_queue("other", codec::String).put(&"a".to_owned()).await.unwrap_err();
    assert_eq!(error.kind(), redelay::ErrorKind::Refused);
    assert!(error.to_string().contains("NOPERM") && error.to_string().contains("`other`"), "{error}");
}

/// Without any of the single commands in that list, something does not work.
#[tokio::test]
async fn as_a_user_with_too_few_permissions() {
    let server = Server::start();
    let user = documented_user();
    // The second try of an offer needs the first of these; the second one names the list that a blocking pop
    // is refused. Without the third one, schedules are read to find out whether there are any. Of the last
    // two, either deletes; without `DEL`, receipts stay until they expire.
    let rarely_needed = ["+get", "+type", "+exists", "+del", "+unlink"];
    for permission in user.iter().filter(|word| word.starts_with('+') && !word.starts_with("+@")) {
        server.cmd(["FLUSHALL"]);
        server.cmd(["SCRIPT", "FLUSH"]);
        server.cmd(user.iter().copied().chain([&*permission.replacen('+', "-", 1)]));
        let url = format!("redis://worker:secret@127.0.0.1:{}", server.port());
        let client = Client::connect(&url).await.expect("a connection");
        let outcome = everything_works(&client).await;
        assert_eq!(outcome.is_ok(), rarely_needed.contains(permission), "without {permission}: {outcome:?}");
    }
}

/// Connects as a user who may do what docs/deployment.md says, except this.
async fn documented_user_but(server: &Server, refused: &[&str]) -> Client {
    let is_kept = |word: &&str| !refused.contains(word);
    let without = refused.iter().filter(|word| !word.starts_with('&')).map(|command| format!("-{command}"));
    let words = documented_user().into_iter().filter(is_kept).map(str::to_owned);
    server.cmd(words.chain(without));
    let url = format!("redis://worker:secret@127.0.0.1:{}", server.port());
    let builder = Client::builder().url(url).sweep_interval(Duration::from_secs(1));
    builder.connect().await.expect("a connection")
}

/// What only receivers need, according to docs/deployment.md.
#[tokio::test]
async fn as_a_user_who_receives_nothing() {
    let server = Server::start();
    let of_receivers =
        ["&redelay:receivers:{q}", "hmget", "hexists", "blmove", "lmove", "zrangebyscore", "zrank"];
    let client = documented_user_but(&server, &of_receivers).await;
    let last_error = client.stats().last_error.expect("INFO was refused").message;
    assert!(last_error.starts_with("INFO: NOPERM"), "{last_error}");
    works(&client).await;
    all_but_receivers_works(&client).await.expect("nothing is refused");
    let stats = client.stats();
    assert_eq!(stats.failed_transfers, 0);
    // If this took a second, the sweep of stale ids was refused, too.
    let last_error = stats.last_error.expect("the same").message;
    let is_expected = ["INFO: NOPERM", "removal of stale ids"].iter().any(|why| last_error.starts_with(why));
    assert!(is_expected, "{last_error}");
    let error = client.blocking_queue("q", codec::String).receiver().receive().await.unwrap_err();
    assert_eq!(error.kind(), redelay::ErrorKind::Refused, "{error}");
}

/// Of the commands that receivers need, too, one is for the moves from list to list.
#[tokio::test]
async fn as_a_user_who_moves_nothing() {
    let server = Server::start();
    let client = documented_user_but(&server, &["rpoplpush", "brpoplpush"]).await;
    works(&client).await;
    let ready = client.blocking_queue("q", codec::String);
    ready.put("one").await.expect("a put");
    let error = ready.poll_last_and_offer_first_to("q").await.unwrap_err();
    assert_eq!(error.kind(), redelay::ErrorKind::Refused, "{error}");
    assert_eq!(ready.poll().await.expect("a poll").as_deref(), Some("one"));
}

/// A transfer forgets the ids of the jobs that it delivers. Without the permission they are delivered all the
/// same, and a later sweep forgets them.
#[tokio::test]
async fn as_a_user_who_cannot_forget_jobs() {
    const JOBS: &str = "redelay:jobs:{q}";
    for refused in [&[][..], &["hmget"]] {
        let server = Server::start();
        let client = documented_user_but(&server, refused).await;
        let ready = client.blocking_queue("q", codec::String);
        let delayed = client.delayed_queue(&ready);
        delayed.offer("one", Duration::from_millis(20)).id("a").await.expect("an offer");
        assert_eq!(ready.take().await.expect("a payload"), "one");
        assert_eq!(server.get::<usize, _>(["HLEN", JOBS]), refused.len());
        server.cmd(["ACL", "SETUSER", "worker", "+hmget"]);
        until_async("the id is forgotten", || async { server.get::<usize, _>(["HLEN", JOBS]) == 0 }).await;
    }
}

/// A missing permission is reported before a call needs it. Redis 6.2 cannot tell.
#[tokio::test]
async fn each_missing_permission_is_named() {
    let (listener, _listening) = Listener::start();
    let server = Server::start();
    if server.version().major == 6 {
        return;
    }
    let user = documented_user();
    let single = user.iter().filter_map(|word| word.strip_prefix('+').filter(|name| !name.starts_with('@')));
    // Without `eval`, the check itself is refused. Only receivers need the next three, and many clients have
    // none. Others do what the last two do.
    let not_reported = ["eval", "hmget", "hscan", "hexists", "exists", "unlink"];
    // These are granted by categories.
    let others = ["blpop", "brpop", "publish", "subscribe", "zadd", "rpush", "client|kill", "client|unblock"];
    let commands: Vec<_> = single.filter(|name| !not_reported.contains(name)).chain(others).collect();
    let channels = ["&redisson_delay_queue_channel:{q}", "&redelay:moved:{q}"];
    let without_a_command = commands.iter().map(|name| (vec![format!("-{name}")], name.to_uppercase()));
    let without_a_channel = channels.iter().map(|kept| {
        let lost = channels.iter().find(|channel| *channel != kept).expect("two");
        (vec!["resetchannels".to_owned(), (*kept).to_owned()], lost[1..].to_owned())
    });
    for (n, (rules, named)) in without_a_command.chain(without_a_channel).enumerate() {
        server.cmd(user.iter().copied().chain(rules.iter().map(String::as_str)));
        let url = format!("redis://worker:secret@127.0.0.1:{}", server.port());
        let client = Client::builder().url(url).transfer(false).connect().await.expect("a connection");
        let _queue = client.blocking_queue("q", codec::String);
        let reported = || listener.named("redelay.permissions.missing");
        until_async(&named, || async { reported().len() == n + 1 }).await;
        let missing = &reported()[n].fields["missing"];
        let words: Vec<_> = missing.split([' ', ',', ';']).collect();
        assert!(words.contains(&&*named), "{named}: {missing}");
        let last_error = client.stats().last_error.expect("an error").message;
        assert_eq!(last_error, format!("permissions: {missing}"));
    }
}

/// Runs twice. As a test, it makes certificates and a server, and starts itself with the URL and the
/// authority to trust. The environment of the test process must not contain the authority.
#[cfg(feature = "tls")]
#[tokio::test]
async fn over_tls_with_a_certificate_that_is_verified() {
    use std::process::Command;
    if let Ok(url) = std::env::var("REDELAY_TEST_TLS_URL") {
        let client = Client::builder()
            .url(url)
            .connect_timeout(Duration::from_secs(60))
            .connect()
            .await
            .expect("a connection");
        return works(&client).await;
    }
    if std::env::var_os("REDELAY_SERVER").is_some() {
        eprintln!("only the distribution's server is known to be built with TLS");
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let openssl = |args: &str| {
        let status =
            Command::new("openssl").args(args.split(' ')).current_dir(dir.path()).output().expect("openssl");
        assert!(status.status.success(), "openssl {args}: {}", String::from_utf8_lossy(&status.stderr));
    };
    openssl("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.pem");
    openssl(
        "req -newkey rsa:2048 -nodes -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout server.key -out server.csr",
    );
    std::fs::write(dir.path().join("san"), "subjectAltName=DNS:localhost").expect("a file");
    openssl(
        "x509 -req -days 2 -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile san -out server.pem",
    );

    let plain = Server::start();
    let tls_port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let path = |file: &str| dir.path().join(file).display().to_string();
    server_with_tls(&plain, tls_port, &path("server.pem"), &path("server.key"), &path("ca.pem"));

    let run = |authority: &str| {
        Command::new(std::env::current_exe().expect("a path"))
            .args(["--exact", "transports::over_tls_with_a_certificate_that_is_verified"])
            .env("REDELAY_TEST_TLS_URL", format!("rediss://localhost:{tls_port}"))
            .env("SSL_CERT_FILE", path(authority))
            .output()
            .expect("this very test")
    };
    let trusted = run("ca.pem");
    assert!(trusted.status.success(), "{}", String::from_utf8_lossy(&trusted.stdout));
    openssl("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=stranger -keyout other.key -out other.pem");
    assert!(!run("other.pem").status.success(), "a certificate by an unknown authority must be refused");
}

#[cfg(feature = "tls")]
fn server_with_tls(server: &Server, port: u16, cert: &str, key: &str, authority: &str) {
    for (option, value) in [
        ("tls-cert-file", cert),
        ("tls-key-file", key),
        ("tls-ca-cert-file", authority),
        ("tls-auth-clients", "no"),
        ("tls-port", &port.to_string()),
    ] {
        server.cmd(["CONFIG", "SET", option, value]);
    }
}
