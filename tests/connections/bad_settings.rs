//! Addresses, credentials, servers and options that cannot work. Each is refused with a sentence that says
//! what to fix. If waiting cannot help, it is refused at once. No error contains the password.

use std::time::Duration;

use redelay::client::ClientBuilder;
use redelay::{Client, Error, ErrorKind, codec};
use redelay_fixture::{Proxy, Server, Version, until_async};
use redelay_support::{ms, soon};
use tokio_test::{assert_pending, task};

/// So long that a test that waits for it fails.
const LONG: Duration = Duration::from_secs(3600);
const SECRET: &str = "hunter2";

/// The error of a connection that is refused at once, although there would be time to retry.
async fn refused(builder: ClientBuilder) -> Error {
    let error = soon(builder.connect_timeout(LONG).connect()).await.expect_err("no connection");
    keeps_the_secret(&error);
    error
}

#[track_caller]
fn keeps_the_secret(error: &Error) {
    let texts = format!("{error} {error:?} {error:#?}");
    assert!(!texts.contains(SECRET), "{texts}");
}

/// The error is of this kind, and its sentence has these parts.
#[track_caller]
pub(crate) fn says(error: &Error, kind: ErrorKind, parts: &[&str]) {
    let sentence = error.to_string();
    assert_eq!(error.kind(), kind, "{sentence}");
    for part in parts {
        assert!(sentence.contains(part), "no `{part}` in: {sentence}");
    }
}

#[tokio::test]
async fn urls_that_cannot_be_used() {
    let rows: [(&str, &[&str]); 19] = [
        ("", &["no scheme", "redis://localhost:6379"]),
        ("localhost", &["no scheme", "redis://localhost:6379"]),
        ("localhost:6379", &["no scheme", "redis://localhost:6379"]),
        ("hunter2@localhost", &["no scheme"]),
        ("http://localhost", &["the scheme `http` is unknown", "redis://"]),
        ("Redis-cluster://:hunter2@localhost", &["is unknown", "redis://"]),
        ("redis://", &["redis://[user:password@]host[:port][/database]"]),
        ("redis://:6379", &["redis://[user:password@]host[:port][/database]"]),
        ("redis://localhost:port", &["redis://[user:password@]host[:port][/database]"]),
        ("redis://joe:hunter2@localhost:65536", &["redis://[user:password@]host[:port][/database]"]),
        ("redis://joe:hunter2@localhost:-1", &["redis://[user:password@]host[:port][/database]"]),
        ("redis://localhost/first", &["redis://[user:password@]host[:port][/database]"]),
        ("redis://:hunter2@localhost/256", &["redis://[user:password@]host[:port][/database]"]),
        ("redis://localhost/-1", &["redis://[user:password@]host[:port][/database]"]),
        ("redis://joe:hunter2@[::1", &["redis://[user:password@]host[:port][/database]"]),
        ("redis+unix://", &["redis+unix://[user:password@]/path/to/redis.sock"]),
        ("redis+unix:///", &["redis+unix://[user:password@]/path/to/redis.sock"]),
        ("redis+unix://?db=1", &["redis+unix://[user:password@]/path/to/redis.sock"]),
        ("redis+unix:///tmp/x.sock?db=hunter2", &["database", "?db=N"]),
    ];
    for (url, parts) in rows {
        let error = refused(Client::builder().url(url)).await;
        assert_eq!(error.kind(), ErrorKind::Invalid, "{url}: {error}");
        says(&error, ErrorKind::Invalid, parts);
    }
}

#[cfg(not(feature = "tls"))]
#[tokio::test]
async fn tls_without_the_feature() {
    for url in ["rediss://localhost", "rediss://joe:hunter2@localhost:6380/1"] {
        says(&refused(Client::builder().url(url)).await, ErrorKind::Invalid, &["rediss://", "feature `tls`"]);
    }
}

#[tokio::test]
async fn wrong_and_missing_credentials() {
    let server = Server::builder().password(SECRET).start();
    server.cmd(["ACL", "SETUSER", "joe", "on", ">open", "~*", "&*", "+@all"]);
    let port = server.port();
    let rows = [
        ("no password", format!("redis://127.0.0.1:{port}")),
        ("a wrong password", format!("redis://:wrong-hunter2@127.0.0.1:{port}")),
        ("an unknown user", format!("redis://bob:hunter2@127.0.0.1:{port}")),
        ("a known user with another's password", format!("redis://joe:hunter2@127.0.0.1:{port}")),
        ("a known user without a password", format!("redis://joe:@127.0.0.1:{port}")),
    ];
    for (what, url) in rows {
        let error = refused(Client::builder().url(url)).await;
        assert_eq!(error.kind(), ErrorKind::Credentials, "{what}: {error}");
        says(&error, ErrorKind::Credentials, &[&format!("127.0.0.1:{port}"), "user and password"]);
    }
    let client = soon(Client::connect(&format!("redis://joe:open@127.0.0.1:{port}"))).await.unwrap();
    client.blocking_queue("q", codec::Long).put(&1).await.unwrap();
}

#[tokio::test]
async fn a_password_for_a_server_that_has_none_does_no_harm() {
    let server = Server::start();
    let url = format!("redis://:{SECRET}@127.0.0.1:{}", server.port());
    let client = soon(Client::connect(&url)).await.unwrap();
    client.blocking_queue("q", codec::Long).put(&1).await.unwrap();
}

#[tokio::test]
async fn a_database_that_the_server_does_not_have() {
    let server = Server::start();
    for database in [16, 255] {
        let url = format!("redis://:{SECRET}@127.0.0.1:{}/{database}", server.port());
        let error = refused(Client::builder().url(url)).await;
        says(&error, ErrorKind::Invalid, &["no database of this number", "DB index is out of range"]);
    }
}

#[tokio::test]
async fn a_server_that_is_not_there() {
    let server = Server::start();
    let url = format!("redis://:{SECRET}@127.0.0.1:{}", server.port());
    server.stop();
    let error = soon(Client::builder().url(url).connect_timeout(ms(4000)).connect()).await.unwrap_err();
    keeps_the_secret(&error);
    let address = format!("127.0.0.1:{}", server.port());
    says(
        &error,
        ErrorKind::Unavailable,
        &["Connection refused (os error 111)", &address, "is a server running there"],
    );
    assert!(error.is_unavailable());
}

#[tokio::test]
async fn a_host_that_does_not_exist() {
    let builder = Client::builder().url("redis://no-such-host.invalid:6379").connect_timeout(ms(1000));
    let error = soon(builder.connect()).await.unwrap_err();
    says(&error, ErrorKind::Unavailable, &["no-such-host.invalid:6379"]);
}

#[tokio::test]
async fn a_socket_that_does_not_exist() {
    let builder = Client::builder().url("redis+unix:///nowhere/redis.sock").connect_timeout(ms(1000));
    let error = soon(builder.connect()).await.unwrap_err();
    says(&error, ErrorKind::Unavailable, &["/nowhere/redis.sock"]);
}

#[tokio::test]
async fn a_server_that_accepts_and_never_answers() {
    let server = Server::start();
    server.freeze();
    let builder = Client::builder().url(server.url()).connect_timeout(ms(100));
    let error = soon(builder.connect()).await.unwrap_err();
    says(&error, ErrorKind::Unavailable, &["the server does not answer"]);
}

#[tokio::test]
async fn a_port_where_somebody_else_answers() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    proxy.rewrite(*b"+OK\r\n", *b"HTTP!");
    let builder = Client::builder().url(proxy.url()).connect_timeout(ms(4000));
    let error = soon(builder.connect()).await.unwrap_err();
    says(&error, ErrorKind::Unavailable, &["is it a Redis server"]);
}

#[tokio::test]
async fn a_server_that_is_too_old() {
    if !Version::RedisOld.is_installed() {
        return;
    }
    let server = Server::builder().version(Version::RedisOld).start();
    let error = refused(Client::builder().url(server.url())).await;
    says(&error, ErrorKind::UnsupportedServer, &["Redis 5.0.6", "Redis 6.2 or later", "Valkey"]);
    until_async("it has hung up", || async { server.clients_named("redelay") == 0 }).await;
}

#[tokio::test]
async fn a_server_that_says_it_is_too_old() {
    let server = Server::start();
    let info = server.info("server");
    let version = info.lines().find_map(|line| line.strip_prefix("redis_version:")).unwrap().trim();
    let older = format!("6.1{}", &version[3..]);
    let proxy = Proxy::start(server.port());
    proxy.rewrite(format!("redis_version:{version}"), format!("redis_version:{older}"));
    let error = refused(Client::builder().url(proxy.url())).await;
    says(&error, ErrorKind::UnsupportedServer, &[&format!("Redis {older}")]);
}

#[tokio::test]
async fn a_server_that_comes_up_late_is_waited_for() {
    let server = Server::builder().password(SECRET).start();
    server.stop();
    let mut connect = task::spawn(Client::builder().url(server.url()).connect_timeout(LONG).connect());
    assert_pending!(connect.poll());
    let starting = async {
        // The client has found the port closed, and retries.
        for _ in 0..3 {
            until_async("another try", || std::future::ready(connect.is_woken())).await;
            assert_pending!(connect.poll());
        }
        server.start_again();
        soon(connect).await
    };
    let client = starting.await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    client.delayed_queue(&ready).offer(&1, ms(1)).await.unwrap();
    assert_eq!(soon(ready.take()).await.unwrap(), 1);
}

/// The timeout ends while the pop still waits for its connection.
#[tokio::test]
async fn a_slow_way_to_the_server_is_no_reason_to_say_that_there_is_nothing() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let client = Client::connect(&proxy.url()).await.unwrap();
    let ready = client.blocking_queue("q", codec::String);
    server.cmd(["RPUSH", "q", "a"]);
    proxy.delay(ms(600));
    assert_eq!(soon(ready.poll_timeout(ms(1_100))).await.unwrap().as_deref(), Some("a"));
}

#[tokio::test]
async fn options_that_cannot_work() {
    let server = Server::start();
    let builder = || Client::builder().url(server.url());
    let rows = [
        (builder().transfer_batch(0), "transfer_batch is 0"),
        (builder().transfer_batch(100_001), "transfer_batch is over 100,000"),
        (builder().transfer_batch(u32::MAX), "transfer_batch is over 100,000"),
        (builder().transfer_budget(Duration::ZERO), "transfer_budget is zero"),
        (
            builder().transfer_budget(ms(1_000) + Duration::from_nanos(1)),
            "transfer_budget is longer than 1 s",
        ),
        (builder().transfer_budget(Duration::MAX), "transfer_budget is longer than 1 s"),
        (builder().sweep_interval(ms(999)), "sweep_interval is shorter than 1 s"),
        (builder().check_interval(ms(999)), "check_interval is shorter than 1 s"),
        (builder().release_abandoned_after(ms(29_999)), "release_abandoned_after is shorter than 30 s"),
        (builder().sweep_interval(Duration::ZERO), "sweep_interval is shorter than 1 s"),
        (builder().command_timeout(Duration::ZERO), "timeout is zero"),
        (builder().client_name("two words"), "client_name has other than visible ASCII characters"),
        (builder().client_name("line\nbreak"), "client_name has other than visible ASCII characters"),
        (builder().client_name("имя"), "client_name has other than visible ASCII characters"),
    ];
    for (builder, sentence) in rows {
        says(&refused(builder).await, ErrorKind::Invalid, &[sentence]);
    }
    let error = soon(builder().connect_timeout(Duration::ZERO).connect()).await.unwrap_err();
    says(&error, ErrorKind::Invalid, &["timeout is zero"]);
    assert_eq!(server.command_calls("client"), 0, "nothing was sent");
}

#[tokio::test]
async fn options_at_their_limits_work() {
    let server = Server::start();
    let builder = || Client::builder().url(server.url());
    let rows = [
        builder().transfer_batch(1).transfer_budget(Duration::from_nanos(1)),
        builder().transfer_batch(100_000).transfer_budget(Duration::from_secs(1)),
        builder().sweep_interval(Duration::from_secs(1)),
        builder().sweep_interval(Duration::MAX),
        builder().connect_timeout(Duration::MAX),
        builder().command_timeout(Duration::MAX),
        builder().client_name(""),
        builder().max_payload(0),
        builder().max_payload(usize::MAX),
    ];
    for builder in rows {
        let options = format!("{builder:?}");
        let client = soon(builder.connect()).await.expect(&options);
        let ready = client.blocking_queue("q", codec::String);
        let delayed = client.delayed_queue(&ready);
        for delay in [0, 1, 20] {
            delayed.offer(&String::new(), ms(delay)).await.expect(&options);
            assert_eq!(soon(ready.take()).await.expect(&options), "");
        }
        ready.put(&String::new()).await.expect(&options);
        assert_eq!(soon(ready.poll_timeout(Duration::MAX)).await.expect(&options).as_deref(), Some(""));
        assert_eq!(soon(ready.poll_timeout(ms(1))).await.expect(&options), None);
        soon(client.shutdown()).await;
    }
}

#[tokio::test]
async fn no_text_of_ours_shows_the_password() {
    let server = Server::builder().password(SECRET).start();
    let builder = Client::builder().url(server.url());
    assert!(!format!("{builder:?} {builder:#?}").contains(SECRET));
    let client = soon(builder.connect()).await.unwrap();
    let ready = client.blocking_queue("q", codec::Long);
    let delayed = client.delayed_queue(&ready);
    let ticket = delayed.offer(&1, LONG).await.unwrap();
    let stream = ready.clone().into_stream();
    let texts = format!("{client:?} {client:#?} {ready:?} {delayed:?} {ticket:?} {stream:?}");
    assert!(!texts.contains(SECRET), "{texts}");
    drop(stream);
    client.shutdown().await;
    keeps_the_secret(&ready.take().await.unwrap_err());
}

#[test]
fn without_a_runtime_there_is_no_connection() {
    let error = futures::executor::block_on(Client::builder().connect()).unwrap_err();
    says(&error, ErrorKind::Invalid, &["Tokio runtime"]);
}

/// A call that waits for a connection ends with the reason why there is none.
#[tokio::test]
async fn credentials_that_change_meanwhile_are_told() {
    let server = Server::start();
    server.cmd(["ACL", "SETUSER", "clerk", "on", ">old", "~*", "&*", "+@all"]);
    let url = server.url().replace("redis://", "redis://clerk:old@");
    let client = Client::builder().url(url).command_timeout(ms(4_000)).connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::String);
    server.cmd(["ACL", "SETUSER", "clerk", "resetpass", ">new"]);
    server.kill_client_named("redelay");
    let error = soon(ready.len()).await.unwrap_err();
    says(&error, ErrorKind::Unavailable, &["there is no connection to 127.0.0.1", "WRONGPASS"]);
}
