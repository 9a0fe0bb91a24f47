//! The end of a client. Payloads in flight are returned unchanged to where they came from before the
//! connections close. A future may be dropped outside its runtime.

use std::time::Duration;

use redelay::{BlockingQueue, Client, DelayedQueue, ErrorKind, codec};
use redelay_fixture::{Server, until, until_async};
use redelay_support::{
    Boxed, HOUR, ORDERED_LIST, TIMEOUT_SET, builder, keys, ms, pending, slowly, text_queues, woken,
};
use tokio::time::Instant;
use tokio_test::task::{self, Spawn};
use tokio_test::{assert_pending, assert_ready};

/// A taker that has a payload and has not read it.
async fn unread_take(
    server: &Server,
    ready: &BlockingQueue<String>,
) -> Spawn<Boxed<redelay::Result<String>>> {
    let ready = ready.clone();
    let mut take = pending(async move { ready.take().await });
    server.cmd(["RPUSH", "q", "a"]);
    woken(&mut take).await;
    until_async("it is handed over", || async { server.list("q").is_empty() }).await;
    take
}

/// One entry, due in an hour.
async fn offer_one(server: &Server, delayed: &DelayedQueue<String>) -> Vec<(Vec<u8>, f64)> {
    delayed.offer(&"a".to_owned(), HOUR).await.unwrap();
    let entries = server.zset(TIMEOUT_SET);
    assert_eq!(server.list(ORDERED_LIST), [entries[0].0.clone()]);
    entries
}

#[tokio::test]
async fn the_last_clone_dropped_with_an_unread_element_gives_it_back() {
    let server = Server::start();
    let (client, ready, delayed) = text_queues(&server).await;
    let take = unread_take(&server, &ready).await;
    drop((client, ready, delayed));
    assert!(server.clients_named("redelay") > 0, "the taker keeps the client");
    drop(take);
    until_async("given back", || async { server.list("q") == [b"a"] }).await;
    until_async("no connection left", || async { server.clients_named("redelay") == 0 }).await;
}

#[tokio::test]
async fn shutdown_gives_back_what_lies_unread() {
    let server = Server::start();
    let (client, ready, _delayed) = text_queues(&server).await;
    let mut take = unread_take(&server, &ready).await;
    let drained = ready.clone();
    let mut drain = pending(async move { drained.poll_many(2).await });
    server.cmd(["RPUSH", "q", "b", "c", "d"]);
    woken(&mut drain).await;
    client.shutdown().await;
    assert_eq!(server.list("q").concat(), b"abcd");
    // So far, the futures were neither polled nor dropped.
    assert_eq!(assert_ready!(take.poll()).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(assert_ready!(drain.poll()).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(server.list("q").concat(), b"abcd");
}

/// What docs/guarantees.md says of a shutdown that does not reach the server.
#[tokio::test]
async fn a_shutdown_without_the_server_ends_in_time_and_loses_what_lies_unread() {
    let timeout = ms(500);
    let mut tries = 0;
    loop {
        let took = shuts_down_without_the_server(timeout).await;
        assert!(took < timeout + ms(3_500), "{took:?}");
        // A call begins a little earlier, and the bound is 3.5 s. On a busy machine, the connection may be
        // given up before.
        if took > timeout / 2 {
            break;
        }
        tries += 1;
        assert!(tries < 10, "{took:?}");
    }
}

async fn shuts_down_without_the_server(timeout: Duration) -> Duration {
    let server = Server::start();
    let client = builder(&server).command_timeout(timeout).connect().await.unwrap();
    let ready = client.blocking_queue::<String>("q", codec::String);
    let unconfirmed = || server.get::<usize, _>(["HLEN", "redelay:popped:{q}"]);
    // No call times out on a busy machine.
    let (mut take, mut poll) = slowly(async {
        let take = unread_take(&server, &ready).await;
        let mut poll = pending({
            let ready = ready.clone();
            async move { ready.poll_many(2).await }
        });
        server.cmd(["RPUSH", "q", "b", "c"]);
        woken(&mut poll).await;
        until_async("the pop is confirmed", || async { unconfirmed() == 0 }).await;
        (take, poll)
    })
    .await;
    server.freeze();
    let began = Instant::now();
    slowly(client.shutdown()).await;
    let took = began.elapsed();
    server.thaw();
    until_async("no connection left", || async { server.clients_named("redelay") == 0 }).await;
    // It does not know the script that returns payloads, or it would run it now: it has received the call. On
    // a busy machine, the connection may still be there to send the text.
    let left = server.list("q").concat();
    assert!(left.is_empty() || left == b"abc", "{left:?}");
    assert!(
        left == b"abc" || told(&client).starts_with("return of unread payloads to `q`: 3 were"),
        "{}",
        told(&client)
    );
    assert_eq!(unconfirmed(), 0, "there is no copy");
    assert_eq!(assert_ready!(take.poll()).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(assert_ready!(poll.poll()).unwrap_err().kind(), ErrorKind::Closed);
    took
}

/// The last error of the client.
fn told(client: &Client) -> String {
    client.stats().last_error.map(|error| error.message).unwrap_or_default()
}

/// A runtime that ends takes with it what could return payloads.
#[test]
fn what_ends_with_the_runtime_is_told() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let server = Server::start();
    let (client, mut read, take, poll) = runtime.block_on(async {
        let (client, ready, delayed) = text_queues(&server).await;
        delayed.offer_all([(&"b".to_owned(), HOUR), (&"c".to_owned(), HOUR)]).await.unwrap();
        let mut poll = pending(async move { delayed.poll_many(2).await });
        woken(&mut poll).await;
        let read = unread_take(&server, &ready).await;
        (client, read, unread_take(&server, &ready).await, poll)
    });
    drop(runtime);
    assert_eq!((assert_ready!(read.poll()).unwrap(), told(&client)), ("a".to_owned(), String::new()));
    drop(take);
    assert_eq!(told(&client), "return of unread payloads to `q`: 1 were not back when the client ended");
    drop(poll);
    assert_eq!(told(&client), "return of unread payloads to `q`: 2 were not back when the client ended");
}

/// A poll of many thousands pops them in parts, and has the first ones while it waits for the next.
#[test]
fn the_first_parts_of_a_poll_that_ends_with_the_runtime_are_told() {
    const MOST: usize = 100_000;
    const PUSH: &str = "for n = 1, 100 do redis.call('RPUSH', 'q', unpack(ARGV, 1, 1000)) end";
    let server = Server::start();
    let part: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
    loop {
        server.cmd(["EVAL", PUSH, "0"].into_iter().chain(part.iter().map(String::as_str)));
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (client, poll) = runtime.block_on(async {
            let (client, ready, _delayed) = text_queues(&server).await;
            (client, pending(async move { ready.poll_many(usize::MAX).await }))
        });
        let left = || server.get::<usize, _>(["LLEN", "q"]);
        until("some parts are popped", || left() <= MOST - 5 * 1000);
        server.freeze();
        drop(runtime);
        let before = told(&client);
        drop(poll);
        server.thaw();
        let popped = MOST - left();
        if popped < MOST {
            // The reply of one part has not come.
            let all = [popped, popped - 1000];
            let all = all.map(|n| {
                format!("return of unread payloads to `q`: {n} were not back when the client ended")
            });
            assert!(all.contains(&before), "{popped} popped, {before}");
            break;
        }
        // It was over before the server was frozen.
        server.cmd(["DEL", "q"]);
    }
}

#[tokio::test]
async fn an_element_read_during_the_shutdown_is_the_takers() {
    let server = Server::start();
    let (client, ready, _delayed) = text_queues(&server).await;
    let mut take = unread_take(&server, &ready).await;
    let mut shutdown = task::spawn(client.shutdown());
    assert_pending!(shutdown.poll());
    assert_eq!(assert_ready!(take.poll()).unwrap(), "a");
    shutdown.await;
    assert_eq!(server.list("q"), Vec::<Vec<u8>>::new());
}

#[tokio::test]
async fn shutdown_restores_what_was_polled_for_a_future_dropped_half_way() {
    for half_way in [false, true] {
        let server = Server::start();
        let (client, _ready, delayed) = text_queues(&server).await;
        let entries = offer_one(&server, &delayed).await;
        let mut poll = pending(async move { delayed.poll().await });
        if half_way {
            woken(&mut poll).await;
            until_async("it is handed over", || async { keys(&server).is_empty() }).await;
        }
        drop(poll);
        client.shutdown().await;
        assert_eq!(server.zset(TIMEOUT_SET), entries);
        assert_eq!(server.list(ORDERED_LIST), [entries[0].0.clone()]);
    }
}

#[tokio::test]
async fn shutdown_restores_what_a_dropped_poll_gets_late() {
    let server = Server::start();
    let (client, _ready, delayed) = text_queues(&server).await;
    // They return in three parts, one after the other.
    let texts: Vec<String> = (0..2500).map(|n| n.to_string()).collect();
    delayed.offer_all(texts.iter().map(|text| (text, HOUR))).await.unwrap();
    let (entries, order) = (server.zset(TIMEOUT_SET), server.list(ORDERED_LIST));
    server.freeze();
    drop(pending(async move { delayed.poll_many(usize::MAX).await }));
    let mut shutdown = task::spawn(client.shutdown());
    assert_pending!(shutdown.poll());
    // The shutdown waits for the poll by now.
    tokio::time::sleep(ms(100)).await;
    server.thaw();
    slowly(shutdown).await;
    assert_eq!(told(&client), "");
    assert!(server.zset(TIMEOUT_SET) == entries && server.list(ORDERED_LIST) == order);
}

#[tokio::test]
async fn shutdown_restores_what_was_polled_and_lies_unread() {
    let server = Server::start();
    let (client, _ready, delayed) = text_queues(&server).await;
    let entries = offer_one(&server, &delayed).await;
    let mut poll = pending(async move { delayed.poll().await });
    woken(&mut poll).await;
    client.shutdown().await;
    assert_eq!(server.zset(TIMEOUT_SET), entries);
    assert_eq!(server.list(ORDERED_LIST), [entries[0].0.clone()]);
    assert_eq!(assert_ready!(poll.poll()).unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn what_is_dropped_outside_of_the_runtime_comes_back_too() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let server = Server::start();
    let (take, poll, entries) = runtime.block_on(async {
        let (_client, ready, delayed) = text_queues(&server).await;
        let entries = offer_one(&server, &delayed).await;
        let mut poll = pending(async move { delayed.poll().await });
        woken(&mut poll).await;
        (unread_take(&server, &ready).await, poll, entries)
    });
    drop(take);
    until("the element is back", || server.list("q") == [b"a"]);
    drop(poll);
    until("the entry is back", || server.zset(TIMEOUT_SET) == entries);
}
