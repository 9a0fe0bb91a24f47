//! What this module relies on in the client library, on a real server. The list is in the module's
//! documentation.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use futures::future::join_all;
use redelay_fixture::{Proxy, Server, redis, until_async};
use redelay_support::leap;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};

use bytes::Bytes;

use super::*;
use crate::wire::keys::Keys;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Much longer than anything here takes.
async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("within a minute")
}

pub(super) fn settings(url: &str) -> Settings<'_> {
    Settings {
        url,
        credentials: Credentials::OfUrl,
        sentinel_credentials: None,
        #[cfg(feature = "tls")]
        tls: None,
        client_name: "conn".into(),
        connect_timeout: Duration::from_secs(10),
        command_timeout: Duration::from_secs(5),
        replicas: None,
    }
}

pub(super) fn shared() -> Shared {
    Shared::new(None)
}

async fn connect_within(url: &str, command_timeout: Duration) -> Conn {
    connect_with(Settings { command_timeout, ..settings(url) }).await
}

async fn connect_with(settings: Settings<'_>) -> Conn {
    soon(Conn::connect(Options::new(settings).expect("options"))).await.expect("a connection")
}

/// Calls must not time out on a busy machine.
async fn connect(url: &str) -> Conn {
    connect_within(url, Duration::from_secs(60)).await
}

/// Waits until a command is answered. With a short timeout, a busy machine needs several tries.
async fn answered(conn: &Conn) {
    soon(async { while conn.call(&Command::new("PING")).await.is_err() {} }).await;
}

fn push(value: impl Into<Bytes>) -> Command {
    Command::new("RPUSH").arg("q").arg(value)
}

/// The connection for commands.
fn link_of(conn: &Conn) -> &Arc<Link> {
    match &conn.base.servers {
        Servers::One(commands) => &commands.link,
        Servers::Cluster(_) => panic!("one server"),
    }
}

#[tokio::test]
async fn bytes_pass_unchanged_both_ways() {
    let server = Server::start();
    let conn = connect(&server.url()).await;
    let all: Bytes = (0..=255).chain(*b"\r\n$3\r\n").collect();
    conn.call(&push(all.clone())).await.unwrap();
    let reply = conn.call(&Command::new("LRANGE").arg("q").number(0).number(-1)).await.unwrap();
    assert_eq!(reply, Reply::Array(vec![Reply::Bytes(all)]));
    assert_eq!(conn.call(&Command::new("GET").arg("nothing")).await.unwrap(), Reply::Nil);
    assert_eq!(conn.call(&Command::new("LLEN").arg("q")).await.unwrap(), Reply::Int(1));
}

#[tokio::test]
async fn an_error_reply_is_passed_on_and_the_connection_stays() {
    let server = Server::start();
    let conn = connect(&server.url()).await;
    let session = link_of(&conn).session();
    conn.call(&push("a")).await.unwrap();
    let error = conn.call(&Command::new("GET").arg("q")).await.unwrap_err();
    assert!(matches!(&error, OpError::Server(why) if why.starts_with("WRONGTYPE")), "{error:?}");
    let error = conn.call(&Command::new("NO-SUCH-COMMAND")).await.unwrap_err();
    assert!(matches!(&error, OpError::Server(why) if why.starts_with("ERR unknown command")), "{error:?}");
    assert_eq!(link_of(&conn).session(), session);
}

/// Handshakes and the give-back of payloads rely on it.
#[tokio::test]
async fn commands_run_in_the_order_in_which_they_are_first_polled() {
    let server = Server::start();
    let conn = connect(&server.url()).await;
    for result in join_all((0..500).map(async |n| conn.call(&push(format!("{n}"))).await)).await {
        result.unwrap();
    }
    let expected: Vec<_> = (0..500).map(|n| format!("{n}").into_bytes()).collect();
    assert_eq!(server.list("q"), expected);
}

/// The library runs a command twice whose reply was lost, unless it is configured not to.
#[tokio::test]
async fn a_command_whose_reply_is_lost_is_not_sent_again() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let conn = connect(&proxy.url()).await;
    for round in 1..=5 {
        proxy.hold_replies(true);
        let cut = async {
            until_async("it has run", || async { server.command_calls("rpush") == round }).await;
            proxy.cut();
            proxy.hold_replies(false);
        };
        let (result, ()) = soon(futures::future::join(conn.call(&push("a")), cut)).await;
        assert!(matches!(result, Err(OpError::Unknown(_))), "{result:?}");
        soon(link_of(&conn).connected()).await.unwrap();
    }
    // What the library may have kept for the new connection would be in front of this one.
    conn.call(&Command::new("PING")).await.unwrap();
    assert_eq!((server.command_calls("rpush"), server.list("q").len()), (5, 5));
}

/// A command that has timed out before it was sent must not be sent later.
#[tokio::test]
async fn nothing_is_sent_for_a_caller_that_found_no_connection() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let conn = connect_within(&proxy.url(), ms(300)).await;
    proxy.refuse(true);
    proxy.cut();
    until_async("it is noticed", || async { !conn.is_connected() }).await;
    let error = soon(conn.call(&push("a"))).await.unwrap_err();
    let OpError::NotExecuted(cause) = &error else { panic!("{error:?}") };
    assert_eq!(cause.io_kind(), Some(io::ErrorKind::ConnectionRefused), "{cause}");
    proxy.refuse(false);
    soon(link_of(&conn).connected()).await.unwrap();
    answered(&conn).await;
    assert_eq!(server.command_calls("rpush"), 0);
    // The next time that there is none has another reason.
    let OpError::NotExecuted(cause) = link_of(&conn).no_connection() else { panic!("no connection") };
    assert_eq!(cause.io_kind(), Some(io::ErrorKind::NotConnected), "{cause}");
}

/// Without a timeout of the library's own; and nil is an answer, not a timeout.
#[tokio::test]
async fn a_blocking_pop_waits_for_longer_than_a_command_may_take() {
    let server = Server::start();
    let conn = connect_within(&server.url(), ms(200)).await;
    let link = soon(conn.open_blocking(None)).await.unwrap();
    let pop = async |seconds: u32| {
        let pop = Command::new("BLPOP").arg("q").number(seconds);
        link.call_blocking(&pop).await
    };
    let begun = Instant::now();
    assert_eq!(soon(pop(1)).await.unwrap(), Reply::Nil);
    assert!(begun.elapsed() >= ms(1_000), "{:?}", begun.elapsed());
    let (popped, ()) = tokio::join!(pop(0), async {
        until_async("it waits", || async { server.blocked_clients() == 1 }).await;
        server.cmd(["RPUSH", "q", "a"]);
    });
    assert_eq!(popped.unwrap().into_array().unwrap()[1], Reply::Bytes("a".into()));
}

#[tokio::test]
async fn a_forced_reconnection_ends_what_is_in_flight_and_begins_a_session() {
    let server = Server::start();
    let conn = connect(&server.url()).await;
    let link = soon(conn.open_blocking(None)).await.unwrap();
    let before = link.session().unwrap();
    let (popped, ()) =
        soon(futures::future::join(link.call_blocking(&Command::new("BLPOP").arg("q").number(0)), async {
            until_async("it waits", || async { server.blocked_clients() == 1 }).await;
            link.reconnect();
        }))
        .await;
    assert!(matches!(popped, Err(OpError::Unknown(_))), "{popped:?}");
    let after = soon(link.connected()).await.unwrap();
    assert!(after.number > before.number && after.client_id != before.client_id);
    // The old connection is closed on the server, so its pop takes nothing.
    until_async("one is left", || async { server.clients_named("conn") == 2 }).await;
    server.cmd(["RPUSH", "q", "a"]);
    assert_eq!(server.list("q").len(), 1);
}

/// The library does nothing else while it sends a command, for as long as that moves.
#[tokio::test]
async fn a_connection_that_takes_a_command_slowly_is_given_up() {
    let server = Server::start();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let taken = Arc::new(AtomicUsize::new(0));
    let _relay = AbortOnDropHandle::new(tokio::spawn(relay(listener, server.port(), taken.clone())));
    let conn = connect(&url).await;
    let link = link_of(&conn);
    let before = link.session().unwrap();
    // This would take minutes.
    let long = push(vec![0; 32 << 20]);
    let (pushed, after) = soon(futures::future::join(link.call(&long, LONGEST), async {
        until_async("it is on its way", || async { taken.load(Relaxed) > 100_000 }).await;
        link.reconnect();
        link.connected().await.unwrap()
    }))
    .await;
    assert!(matches!(pushed, Err(OpError::Unknown(_))), "{pushed:?}");
    assert!(after.number > before.number);
    soon(conn.call(&push("a"))).await.unwrap();
    assert_eq!(server.list("q"), [b"a"]);
}

/// Forwards connections to the server, the first one slowly. Counts the bytes of commands.
async fn relay(listener: TcpListener, port: u16, taken: Arc<AtomicUsize>) {
    let mut is_slow = true;
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
            (client.into_split(), server.into_split());
        let (is_slow, taken) = (std::mem::take(&mut is_slow), taken.clone());
        let commands = async move {
            let mut buffer = [0; 4096];
            loop {
                let length = from_client.read(&mut buffer).await?;
                if length == 0 {
                    return io::Result::Ok(());
                }
                to_server.write_all(&buffer[..length]).await?;
                taken.fetch_add(length, Relaxed);
                if is_slow {
                    sleep(ms(20)).await;
                }
            }
        };
        tokio::spawn(async move {
            tokio::select! {
                _ = commands => {}
                _ = tokio::io::copy(&mut from_server, &mut to_client) => {}
            }
        });
    }
}

/// What it refuses for now is no command that it lacks: without them, pops would be shorter, for example.
#[tokio::test]
async fn a_server_that_is_busy_is_asked_again() {
    // The library would not connect with a `PING`, but it does with `AUTH`.
    let server = Server::builder().password("secret").config("lua-time-limit 10").start();
    let proxy = Proxy::start(server.port());
    let conn = connect(&format!("redis://:secret@127.0.0.1:{}", proxy.port())).await;
    let mut beside = server.redis();
    let script =
        std::thread::spawn(move || redis::cmd("EVAL").arg("while true do end").arg(0).exec(&mut beside));
    let is_busy = |error: redis::RedisError| error.to_string().contains("BUSY");
    until_async("it is busy", || async { server.try_cmd(["PING"]).is_err_and(is_busy) }).await;
    proxy.cut();
    let why = || link_of(&conn).no_connection().to_string();
    until_async("the handshake is refused", || async { why().contains("BUSY") }).await;
    assert!(link_of(&conn).session().is_none());
    server.cmd(["SCRIPT", "KILL"]);
    let session = soon(link_of(&conn).connected()).await.unwrap();
    assert!(session.client_id.is_some());
    assert!(script.join().unwrap().is_err(), "it was killed");
}

#[tokio::test]
async fn a_connection_that_is_killed_comes_back_by_itself() {
    let server = Server::start();
    let conn = connect(&server.url()).await;
    for _ in 0..10 {
        let before = link_of(&conn).session().unwrap();
        server.kill_client_named("conn");
        let mut sessions = link_of(&conn).sessions();
        soon(sessions.wait_for(|session| session.is_some_and(|session| session != before))).await.unwrap();
        soon(conn.call(&Command::new("PING").idempotent())).await.unwrap();
    }
}

#[tokio::test]
async fn dropping_a_link_closes_its_connection() {
    let server = Server::start();
    let conn = connect(&server.url()).await;
    let link = soon(conn.open_blocking(None)).await.unwrap();
    until_async("both are there", || async { server.clients_named("conn") == 2 }).await;
    drop(link);
    until_async("one is left", || async { server.clients_named("conn") == 1 }).await;
}

const REPLICAS: Option<Replicas> = Some(Replicas { count: 1, timeout: Duration::from_secs(5) });

/// A `WAIT` has no answer for as long as replicas may take, and the connection is not silent for too long.
#[tokio::test]
async fn a_connection_on_which_replicas_are_awaited_is_kept() {
    let server = Server::start();
    let conn = connect_with(Settings { replicas: REPLICAS, ..settings(&server.url()) }).await;
    let Servers::One(Commands { confirmations: Some(confirmations), .. }) = &conn.base.servers else {
        panic!("a connection for confirmations")
    };
    let before = confirmations.link().session().unwrap();
    let unconfirmed = conn.before_write(&Keys::new("q"));
    let deadline = Instant::now() + Duration::from_secs(60);
    let (confirmed, ()) = soon(futures::future::join(conn.confirm(unconfirmed, deadline), async {
        until_async("it waits", || async { server.blocked_clients() == 1 }).await;
        leap(Duration::from_secs(6)).await;
        sleep(ms(20)).await;
        // As if it took until now.
        server.cmd(["CLIENT", "UNBLOCK", &before.client_id.unwrap().to_string()]);
    }))
    .await;
    let Err(OpError::Unconfirmed(why)) = confirmed else { panic!("{confirmed:?}") };
    assert!(why.to_string().starts_with("0 of 1 replicas"), "{why}");
    assert_eq!(confirmations.link().session(), Some(before));
}

/// A server may refuse the second connection for a moment.
#[tokio::test]
async fn the_connection_for_confirmations_is_tried_again() {
    let server = Server::start();
    // With this one, there is room for one more.
    let beside = RefCell::new(server.redis());
    let ask =
        |words: &[&str]| redis::cmd(words[0]).arg(&words[1..]).query::<String>(&mut beside.borrow_mut());
    ask(&["CONFIG", "SET", "maxclients", "2"]).unwrap();
    let options = Options::new(Settings { replicas: REPLICAS, ..settings(&server.url()) }).unwrap();
    let connecting = tokio::spawn(Conn::connect(options));
    let is_refused = || async { !ask(&["INFO", "stats"]).unwrap().contains("rejected_connections:0") };
    until_async("the second one is refused", is_refused).await;
    ask(&["CONFIG", "SET", "maxclients", "100"]).unwrap();
    soon(connecting).await.unwrap().expect("a connection");
}

/// What an error is about is asked for in the caller's time; a little later only if the server answers.
#[tokio::test]
async fn the_time_to_look_into_an_error() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let conn = connect(&proxy.url()).await;
    let in_time = |left| conn.time_to_ask(Instant::now() + left);
    assert_eq!((in_time(ms(60_000)), in_time(ms(0))), (Some(ms(2_000)), Some(ms(200))));
    proxy.refuse(true);
    proxy.cut();
    until_async("it is noticed", || async { !conn.is_connected() }).await;
    assert_eq!((in_time(ms(60_000)), in_time(ms(0))), (Some(ms(2_000)), None));
    assert!(in_time(ms(300)).is_none_or(|within| within <= ms(300)));
}

/// The server closes the connection after such an error, and with it a question about its limits.
#[tokio::test]
async fn limits_are_asked_for_again() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let conn = connect(&proxy.url()).await;
    let asked = || server.command_calls("config|get") + server.command_calls("config");
    proxy.hold_replies(true);
    let large = push(vec![b'a'; 2 << 20]);
    let (pushed, ()) = soon(futures::future::join(conn.call(&large), async {
        until_async("it has run", || async { proxy.held() > 0 }).await;
        server.cmd(["CONFIG", "SET", "proto-max-bulk-len", "1mb"]);
        let before = asked();
        proxy.inject("-ERR Protocol error: invalid bulk length\r\n");
        until_async("the server is asked", || async { asked() > before }).await;
        proxy.cut();
        proxy.hold_replies(false);
    }))
    .await;
    let Err(OpError::TooLarge(why)) = pushed else { panic!("{pushed:?}") };
    assert!(why.contains("2097152 bytes, more than the 1048576 of the server's proto-max-bulk-len"), "{why}");
}

/// A connection that nobody uses is idle from its handshake on, however long nothing was heard before.
#[tokio::test]
async fn a_connection_is_idle_thirty_seconds_after_its_handshake() {
    let server = Server::start();
    let conn = connect(&server.url()).await;
    let length = Command::new("LLEN").arg("q");
    let reconnected = async || {
        let before = link_of(&conn).session().unwrap();
        server.kill_client_named("conn");
        let mut sessions = link_of(&conn).sessions();
        soon(sessions.wait_for(|session| session.is_some_and(|session| session != before))).await.unwrap();
    };
    let pings = || server.command_calls("ping");
    conn.call(&length).await.unwrap();
    leap(Duration::from_secs(29)).await;
    reconnected().await;
    // The library has sent one to connect.
    let before = pings();
    leap(Duration::from_secs(29)).await;
    conn.call(&length).await.unwrap();
    assert_eq!(pings(), before, "it was not idle");
    reconnected().await;
    let before = pings();
    leap(Duration::from_secs(31)).await;
    conn.call(&length).await.unwrap();
    assert_eq!(pings(), before + 1, "it was tested first");
}

mod timeouts {
    use super::*;

    #[tokio::test]
    async fn a_shorter_timeout_shares_the_connection_and_leaves_it_alone() {
        let server = Server::start();
        let proxy = Proxy::start(server.port());
        let conn = connect(&proxy.url()).await;
        let hasty = conn.with_timeout(ms(400));
        let (session, accepted) = (link_of(&conn).session(), proxy.accepted());
        assert_eq!((hasty.command_timeout(), conn.command_timeout()), (ms(400), ms(60_000)));
        answered(&hasty).await;

        proxy.delay(ms(1_200));
        for _ in 0..3 {
            let error = hasty.call(&push("a")).await.unwrap_err();
            let OpError::Unknown(cause) = error else { panic!("{error:?}") };
            assert!(cause.is_timeout(), "{cause}");
            let error = hasty.call(&Command::new("PING").idempotent()).await.unwrap_err();
            assert!(matches!(error, OpError::Unknown(_)), "{error:?}");
        }
        // The other handle waits for the same replies.
        conn.call(&push("b")).await.unwrap();
        proxy.delay(ms(0));
        assert_eq!(server.list("q"), [b"a", b"a", b"a", b"b"]);
        answered(&hasty).await;
        assert_eq!((link_of(&conn).session(), proxy.accepted()), (session, accepted));
    }

    /// Callers that never wait long enough must not keep a dead connection in use.
    #[tokio::test]
    async fn a_silent_connection_is_replaced_though_all_timeouts_are_shorter() {
        let server = Server::start();
        let proxy = Proxy::start(server.port());
        let conn = connect_within(&proxy.url(), ms(1_000)).await;
        let hasty = conn.with_timeout(ms(20));
        proxy.strand();
        let begun = Instant::now();
        soon(async {
            while hasty.call(&Command::new("PING")).await.is_err() {
                sleep(ms(5)).await;
            }
        })
        .await;
        assert!(begun.elapsed() >= ms(900), "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn a_silent_connection_is_replaced_though_all_timeouts_are_longer() {
        let server = Server::start();
        let proxy = Proxy::start(server.port());
        let conn = connect_within(&proxy.url(), ms(1_000)).await;
        let patient = conn.with_timeout(Duration::from_secs(600));
        proxy.strand();
        let begun = Instant::now();
        let error = soon(patient.call(&push("a"))).await.unwrap_err();
        assert!(matches!(error, OpError::Unknown(_)), "{error:?}");
        assert!(begun.elapsed() >= ms(900), "{:?}", begun.elapsed());
        soon(patient.call(&push("b"))).await.unwrap();
        assert_eq!(server.list("q"), [b"b"]);
    }

    #[tokio::test]
    async fn a_silent_connection_is_replaced_though_all_calls_are_repeated() {
        let server = Server::start();
        let proxy = Proxy::start(server.port());
        let conn = connect_within(&proxy.url(), ms(1_000)).await;
        for _ in 0..3 {
            proxy.strand();
            let begun = Instant::now();
            let error = conn.call(&Command::new("PING").idempotent()).await.unwrap_err();
            assert!(matches!(error, OpError::Unknown(_)), "{error:?}");
            assert!(begun.elapsed() >= ms(900), "{:?}", begun.elapsed());
            answered(&conn).await;
        }
        assert!(proxy.accepted() >= 4);
    }

    /// A slow link, or a server that is gone: the connection is kept for as long as a long command may take.
    #[tokio::test]
    async fn a_connection_with_a_long_command_on_its_way_is_kept() {
        let server = Server::start();
        let proxy = Proxy::start(server.port());
        let conn = connect_within(&proxy.url(), ms(500)).await;
        let hasty = conn.with_timeout(ms(100));
        let (session, accepted) = (link_of(&conn).session(), proxy.accepted());
        proxy.throttle(4_000);
        let text = vec![b'a'; 6_000];
        let long = conn.for_long(text.len());
        assert_eq!((long.command_timeout(), hasty.for_long(9_000).command_timeout()), (ms(1_500), ms(100)));
        let long = conn.for_long(40 * text.len());
        let command = push(text);
        let long = long.call(&command);
        let others = async {
            // Behind it, on the same connection.
            sleep(ms(50)).await;
            for conn in [&conn, &hasty] {
                let error = conn.call(&Command::new("PING")).await.unwrap_err();
                assert!(matches!(error, OpError::Unknown(_)), "{error:?}");
            }
        };
        let (reply, ()) = tokio::join!(long, others);
        assert_eq!(reply.unwrap().into_int().unwrap(), 1);
        assert_eq!((link_of(&conn).session(), proxy.accepted()), (session, accepted));
        // From now on silence is silence: how long, a test of `silence` says.
        proxy.strand();
        answered(&conn).await;
        assert!(proxy.accepted() > accepted);
    }

    /// There was no reply for so long that the connection would be tested, and the test would wait behind a
    /// long command.
    #[tokio::test]
    async fn a_connection_with_a_long_command_on_its_way_is_not_idle() {
        let server = Server::start();
        let proxy = Proxy::start(server.port());
        let conn = connect_within(&proxy.url(), Duration::from_secs(5)).await;
        let accepted = proxy.accepted();
        sleep(Duration::from_secs(27)).await;
        proxy.throttle(1_250);
        let text = vec![b'a'; 10_000];
        let long = conn.for_long(text.len());
        let command = push(text);
        let long = long.call(&command);
        let patient = conn.with_timeout(Duration::from_secs(30));
        let other = async {
            sleep(Duration::from_secs(5)).await;
            patient.call(&Command::new("PING")).await
        };
        let (long, other) = tokio::join!(long, other);
        assert_eq!((long.unwrap().into_int().unwrap(), proxy.accepted()), (1, accepted));
        other.unwrap();
    }

    /// The test would wait behind a command that the server is slow to answer.
    #[tokio::test]
    async fn a_connection_with_a_command_on_its_way_is_not_idle() {
        let server = Server::start();
        let proxy = Proxy::start(server.port());
        let conn = connect_within(&proxy.url(), Duration::from_secs(60)).await;
        let accepted = proxy.accepted();
        sleep(Duration::from_secs(29)).await;
        proxy.hold_replies(true);
        let command = push("a");
        let first = conn.call(&command);
        let second = async {
            sleep(Duration::from_secs(3)).await;
            let answered = async {
                sleep(Duration::from_secs(2)).await;
                proxy.hold_replies(false);
            };
            let ping = Command::new("PING");
            tokio::join!(conn.call(&ping), answered).0
        };
        let (first, second) = tokio::join!(first, second);
        assert_eq!((first.unwrap().into_int().unwrap(), proxy.accepted()), (1, accepted));
        second.unwrap();
    }

    #[tokio::test]
    async fn a_longer_timeout_waits_longer_for_a_connection() {
        let server = Server::start();
        let proxy = Proxy::start(server.port());
        let conn = connect_within(&proxy.url(), ms(200)).await;
        let patient = conn.with_timeout(Duration::from_secs(30));
        proxy.refuse(true);
        proxy.cut();
        until_async("it is noticed", || async { !conn.is_connected() }).await;
        let begun = Instant::now();
        assert!(matches!(conn.call(&push("a")).await, Err(OpError::NotExecuted(_))));
        let command = push("b");
        let (result, ()) = tokio::join!(patient.call(&command), async {
            sleep(ms(800)).await;
            proxy.refuse(false);
        });
        result.unwrap();
        assert!(begun.elapsed() >= ms(800), "{:?}", begun.elapsed());
        assert_eq!(server.list("q"), [b"b"]);
    }
}

/// Replies that the server has not sent, or not for this command.
mod desynchronised {
    use super::*;

    /// One more reply than commands, each of another shape than what is asked for.
    #[tokio::test]
    async fn a_reply_of_an_impossible_shape_drops_the_connection() {
        let server = Server::start();
        let proxy = Proxy::start(server.port());
        let conn = connect(&proxy.url()).await;
        conn.call(&push("a")).await.unwrap();
        let commands = [
            (":7\r\n", Command::new("LINDEX").arg("q").number(0)),
            ("$1\r\na\r\n", Command::new("LLEN").arg("q")),
            (":-1\r\n", Command::new("LLEN").arg("q")),
            (":2\r\n", Command::new("DEL").arg("nothing")),
            (":0\r\n", push("b")),
            ("*1\r\n:1\r\n", Command::new("TYPE").arg("q")),
            ("+OK\r\n", Command::new("PING")),
            ("*1\r\n$1\r\n1\r\n", Command::new("TIME")),
            ("*0\r\n", Command::new("INFO").arg("server")),
            ("#t\r\n", Command::new("LINDEX").arg("q").number(0)),
            ("%1\r\n+a\r\n+b\r\n", Command::new("EVAL").arg("return 1").number(0)),
        ];
        for (extra, command) in commands {
            let what = format!("{extra:?} for {command:?}");
            let before = soon(link_of(&conn).connected()).await.unwrap();
            proxy.hold_replies(true);
            let (result, ()) = soon(futures::future::join(conn.call(&command), async {
                until_async("it has run", || async { proxy.held() > 0 }).await;
                proxy.inject(extra);
            }))
            .await;
            let Err(OpError::Unknown(cause)) = result else { panic!("{what}: {result:?}") };
            assert_eq!(cause.io_kind(), Some(io::ErrorKind::InvalidData), "{what}: {cause}");
            proxy.hold_replies(false);
            let after = soon(link_of(&conn).connected()).await.unwrap();
            assert!(after.number > before.number, "{what}");
            // The next caller gets its own reply.
            let own = conn.call(&Command::new("LINDEX").arg("q").number(0)).await;
            assert_eq!(own.unwrap(), Reply::Bytes("a".into()), "{what}");
        }
    }

    #[tokio::test]
    async fn a_pop_of_an_impossible_shape_drops_the_connection() {
        let server = Server::start();
        let proxy = Proxy::start(server.port());
        let conn = connect(&proxy.url()).await;
        for extra in [":1\r\n", "*2\r\n+q\r\n:1\r\n", "*3\r\n+q\r\n+a\r\n+b\r\n", "+q\r\n"] {
            let link = soon(conn.open_blocking(None)).await.unwrap();
            let before = link.session().unwrap();
            let (popped, ()) = soon(futures::future::join(
                link.call_blocking(&Command::new("BLPOP").arg("p").arg("q").number(0)),
                async {
                    until_async("it waits", || async { server.blocked_clients() == 1 }).await;
                    proxy.inject(extra);
                },
            ))
            .await;
            assert!(matches!(popped, Err(OpError::Unknown(_))), "{extra:?}: {popped:?}");
            assert!(soon(link.connected()).await.unwrap().number > before.number, "{extra:?}");
        }
    }

    #[tokio::test]
    async fn times_that_no_clock_shows_are_refused() {
        let server = Server::start();
        let proxy = Proxy::start(server.port());
        let conn = connect_within(&proxy.url(), ms(2_000)).await;
        for (seconds, micros) in [
            ("9223372036854775807", "0"),
            ("-9223372036854775808", "0"),
            ("1000000000000", "0"),
            ("-1", "0"),
            ("1", "1000000"),
            ("1", "-1"),
            ("x", "1"),
            ("1e9", "1"),
        ] {
            proxy.hold_replies(true);
            let length = seconds.len();
            let reply = format!("*2\r\n${length}\r\n{seconds}\r\n${}\r\n{micros}\r\n", micros.len());
            let (time, ()) = soon(futures::future::join(conn.time(), async {
                until_async("it has run", || async { proxy.held() > 0 }).await;
                proxy.inject(reply);
                proxy.hold_replies(false);
            }))
            .await;
            assert!(matches!(time, Err(OpError::Unknown(_))), "{seconds}.{micros}: {time:?}");
            let time = soon(conn.time()).await;
            let plausible = 1_000_000_000_000_000..4_000_000_000_000_000;
            assert!(time.as_ref().is_ok_and(|time| plausible.contains(time)), "{time:?}");
        }
    }

    /// The replies behind an extra one belong to the commands before, though each has the right shape.
    #[tokio::test]
    async fn what_follows_an_impossible_reply_is_not_trusted() {
        let server = Server::start();
        let proxy = Proxy::start(server.port());
        let conn = connect(&proxy.url()).await;
        proxy.hold_replies(true);
        let calls = join_all((0..50).map(async |n| conn.call(&push(format!("{n}"))).await));
        let (results, ()) = soon(futures::future::join(calls, async {
            until_async("they have run", || async { server.list("q").len() == 50 }).await;
            proxy.inject("+OK\r\n");
            proxy.hold_replies(false);
        }))
        .await;
        let trusted = results.iter().filter(|result| !matches!(result, Err(OpError::Unknown(_)))).count();
        assert_eq!(trusted, 0, "{results:?}");
        assert_eq!(soon(conn.call(&push("a"))).await.unwrap(), Reply::Int(51));
    }

    /// The library survives a thousand levels. Deeper ones never come to this module: see
    /// docs/design/connections.md.
    #[tokio::test]
    async fn nested_replies_are_refused() {
        let server = Server::start();
        let proxy = Proxy::start(server.port());
        let conn = connect(&proxy.url()).await;
        for depth in [17, 64, 500] {
            proxy.hold_replies(true);
            let eval = Command::new("EVAL").arg("return 1").number(0);
            let (result, ()) = soon(futures::future::join(conn.call(&eval), async {
                until_async("it has run", || async { proxy.held() > 0 }).await;
                proxy.inject(format!("{}:1\r\n", "*1\r\n".repeat(depth)));
            }))
            .await;
            proxy.hold_replies(false);
            let Err(OpError::Unknown(cause)) = result else { panic!("{depth}: {result:?}") };
            assert!(cause.to_string().contains("nested"), "{depth}: {cause}");
            conn.call(&Command::new("PING").idempotent()).await.unwrap();
        }
    }

    #[tokio::test]
    async fn long_words_of_the_server_are_cut() {
        let server = Server::start();
        let proxy = Proxy::start(server.port());
        let conn = connect(&proxy.url()).await;
        for code in ["ERR", "LOADING", "REDELAY"] {
            proxy.hold_replies(true);
            let (result, ()) = soon(futures::future::join(conn.call(&Command::new("PING")), async {
                until_async("it has run", || async { proxy.held() > 0 }).await;
                proxy.inject(format!("-{code} {}\r\n", "ä".repeat(1_000_000)));
            }))
            .await;
            let text = result.unwrap_err().to_string();
            assert!(text.len() < 2_000 && text.ends_with('…'), "{}", text.len());
            proxy.cut();
            proxy.hold_replies(false);
            soon(conn.call(&Command::new("PING").idempotent())).await.unwrap();
        }
    }
}

/// A link that is not watched tests nothing: after a time without a call, each of its calls would fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_link_is_watched() {
    let server = Server::start();
    let url = server.url();
    for _ in 0..40 {
        let conns = join_all((0..10).map(|_| connect(&url))).await;
        let watched = conns.iter().filter(|conn| link_of(conn).is_watched()).count();
        assert_eq!(watched, conns.len());
    }
}
