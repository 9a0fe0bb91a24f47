//! Drops one future at a time, at a chosen moment. The payload on its way to it is returned unchanged to
//! where it came from, and a dropped taker does not delay payloads for others. `shutdown.rs` is about the end
//! of a client.

use futures::stream::StreamExt;
use redelay::{BlockingQueue, codec};
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{
    Boxed, HOUR, MINUTE, ORDERED_LIST, Queues, TIMEOUT_SET, builder, ms, pending, soon, still_builder,
    text_queues, woken,
};
use tokio_test::task::{self};
use tokio_test::{assert_pending, assert_ready};

/// A call whose result does not matter.
type Call = fn(BlockingQueue<String>) -> Boxed<()>;

/// Sends enough commands that everything in progress has happened when it returns.
async fn meanwhile(server: &Server) {
    for _ in 0..50 {
        server.cmd(["PING"]);
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn every_call_gives_back_what_it_was_handed_and_did_not_read() {
    let server = Server::start();
    let (_client, ready, _delayed) = text_queues(&server).await;
    let calls: [(&str, Call); 9] = [
        ("take", |q| Box::pin(async move { drop(q.take().await) })),
        ("take_last", |q| Box::pin(async move { drop(q.take_last().await) })),
        ("poll", |q| Box::pin(async move { drop(q.poll().await) })),
        ("poll_last", |q| Box::pin(async move { drop(q.poll_last().await) })),
        ("poll_timeout", |q| Box::pin(async move { drop(q.poll_timeout(HOUR).await) })),
        ("drain", |q| Box::pin(async move { drop(q.poll_many(3).await) })),
        ("poll_from_any", |q| Box::pin(async move { drop(q.poll_from_any(HOUR, &["x"]).await) })),
        ("poll_last_from_any", |q| Box::pin(async move { drop(q.poll_last_from_any(HOUR, &["x"]).await) })),
        ("stream", |q| Box::pin(async move { drop(q.into_stream().next().await) })),
    ];
    for (name, call) in calls {
        server.cmd(["RPUSH", "q", "a", "b", "c", "d", "e"]);
        let mut call = pending(call(ready.clone()));
        woken(&mut call).await;
        until_async("it is handed something", || async { server.list("q").len() < 5 }).await;
        drop(call);
        until_async(name, || async { server.list("q").concat() == b"abcde" }).await;
        server.cmd(["DEL", "q"]);
    }
}

#[tokio::test]
async fn several_from_any_come_back_together() {
    let server = Server::start();
    let (client, ready, _delayed) = text_queues(&server).await;
    for (polls, last) in [(1, false), (2, false), (1, true), (2, true)] {
        server.cmd(["RPUSH", "q", "a", "b", "c", "d", "e"]);
        let ready = ready.clone();
        let mut call = pending(async move {
            let several = match last {
                false => ready.poll_many_from_any(HOUR, 3, &["x"]).await,
                true => ready.poll_last_many_from_any(HOUR, 3, &["x"]).await,
            };
            several.map(drop)
        });
        woken(&mut call).await;
        if polls == 2 {
            assert_pending!(call.poll());
            woken(&mut call).await;
        }
        drop(call);
        until_async("all of them", || async { server.list("q").concat() == b"abcde" }).await;
        server.cmd(["DEL", "q"]);
    }
    client.shutdown().await;
}

#[tokio::test]
async fn what_a_dropped_taker_was_handed_goes_to_the_next_one() {
    let server = Server::start();
    let (_client, ready, _delayed) = text_queues(&server).await;
    let (first, second) = (ready.clone(), ready.clone());
    let mut first = pending(async move { first.take().await });
    let mut second = pending(async move { second.take().await });
    server.cmd(["RPUSH", "q", "a"]);
    woken(&mut first).await;
    assert!(!second.is_woken());
    drop(first);
    woken(&mut second).await;
    assert_eq!(assert_ready!(second.poll()).unwrap(), "a");
    assert_eq!(server.command_calls("lpush"), 0, "it went round by the server");
}

#[tokio::test]
async fn a_dropped_taker_leaves_the_elements_to_other_processes() {
    let server = Server::start();
    let (_client, ready, _delayed) = text_queues(&server).await;
    for _ in 0..20 {
        let ready = ready.clone();
        let take = pending(async move { ready.take().await });
        until_async("it is parked", || async { server.blocked_clients() == 1 }).await;
        drop(take);
        until_async("it is not parked any more", || async { server.blocked_clients() == 0 }).await;
        server.cmd(["RPUSH", "q", "a"]);
        let (_, element): (String, String) = server.get(["BLPOP", "q", "10"]);
        assert_eq!(element, "a");
    }
}

#[tokio::test]
async fn a_dropped_taker_lets_the_one_behind_it_go_on_waiting() {
    let server = Server::start();
    let (client, ready, _delayed) = text_queues(&server).await;
    let other = client.blocking_queue("other", codec::String);
    let first = ready.clone();
    let first = pending(async move { first.take().await });
    let mut second = pending(async move { other.take().await });
    until_async("they are parked", || async { server.blocked_clients() == 1 }).await;
    drop(first);
    meanwhile(&server).await;
    server.cmd(["RPUSH", "q", "not for anybody"]);
    server.cmd(["RPUSH", "other", "a"]);
    woken(&mut second).await;
    assert_eq!(assert_ready!(second.poll()).unwrap(), "a");
    assert_eq!(server.list("q"), [b"not for anybody"]);
}

#[tokio::test]
async fn a_dropped_next_leaves_its_element_in_the_stream() {
    let server = Server::start();
    let (_client, ready, _delayed) = text_queues(&server).await;
    let mut stream = ready.into_stream();
    let mut next = task::spawn(stream.next());
    assert_pending!(next.poll());
    server.cmd(["RPUSH", "q", "a", "b"]);
    until_async("woken", || std::future::ready(next.is_woken())).await;
    drop(next);
    assert_eq!(stream.next().await.unwrap().unwrap(), "a");
    assert_eq!(stream.next().await.unwrap().unwrap(), "b");
}

#[tokio::test]
async fn dropping_a_stream_gives_back_what_is_on_its_way() {
    let server = Server::start();
    let (_client, ready, _delayed) = text_queues(&server).await;
    let mut stream = ready.into_stream();
    let mut next = task::spawn(stream.next());
    assert_pending!(next.poll());
    server.cmd(["RPUSH", "q", "a", "b"]);
    until_async("woken", || std::future::ready(next.is_woken())).await;
    until_async("it is handed one", || async { server.list("q") == [b"b"] }).await;
    drop(next);
    drop(stream);
    until_async("given back", || async { server.list("q").concat() == b"ab" }).await;
}

#[tokio::test]
async fn polled_entries_come_back_in_their_places() {
    let server = Server::start();
    let (_client, _ready, delayed) = text_queues(&server).await;
    for (n, element) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        delayed.offer(&element.to_owned(), HOUR * (5 - n as u32)).await.unwrap();
    }
    let before = (server.list(ORDERED_LIST), server.zset(TIMEOUT_SET));
    for n in [1, 3, 5, 9] {
        let delayed = delayed.clone();
        let mut poll = pending(async move { delayed.poll_many(n).await });
        woken(&mut poll).await;
        let left = 5_usize.saturating_sub(n);
        until_async("it is handed all", || async { server.list(ORDERED_LIST).len() == left }).await;
        drop(poll);
        until_async("restored", || async { (server.list(ORDERED_LIST), server.zset(TIMEOUT_SET)) == before })
            .await;
    }
}

/// The pop that is parked for the taker and the pop sent for the poll are in flight at the same time. The
/// reply to the later one is so long that it arrives last.
#[tokio::test]
async fn a_poll_beside_a_waiting_taker_loses_nothing() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let client = builder(&proxy).command_timeout(MINUTE).connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::String);
    // Otherwise the first reply to a script would be `NOSCRIPT`.
    assert_eq!(ready.poll().await.unwrap(), None);
    let long = "b".repeat(5_000_000);
    for _ in 0..5 {
        let (taker, poller) = (ready.clone(), ready.clone());
        let take = pending(async move { taker.take().await });
        until_async("it is parked", || async { server.blocked_clients() == 1 }).await;
        proxy.hold_replies(true);
        server.cmd(["RPUSH", "q", "a", &long]);
        let poll = pending(async move { soon(poller.poll()).await });
        until_async("both are answered", || async { server.list("q").is_empty() }).await;
        proxy.hold_replies(false);
        let (taken, polled) = tokio::join!(soon(take), poll);
        let other = match polled.unwrap() {
            Some(other) => other,
            // The taker got the payload that was popped for the poll. The one popped for the taker came too
            // late, and is returned.
            None => soon(ready.take()).await.unwrap(),
        };
        let mut both = [taken.unwrap(), other];
        both.sort();
        assert!(both == ["a", &long]);
    }
}

/// More payloads than one call takes, so that they are returned in parts.
#[tokio::test]
async fn thousands_come_back_in_order() {
    let server = Server::start();
    let (_client, ready, delayed) = text_queues(&server).await;
    let values: Vec<String> = (0..2_500).map(|n| n.to_string()).collect();
    ready.offer_all(&values).await.unwrap();
    let queue = ready.clone();
    let mut drain = pending(async move { queue.poll_many(2_400).await });
    woken(&mut drain).await;
    until_async("it is handed all", || async { server.list("q").len() == 100 }).await;
    drop(drain);
    until_async("given back", || async { server.list("q").len() == values.len() }).await;
    assert_eq!(ready.read_all().await.unwrap(), values);
    let queue = ready.clone();
    let mut from_tail = pending(async move { queue.poll_last_many_from_any(HOUR, 2_400, &[]).await });
    // It waits for the first payload, and then asks for the others. On a busy machine, it is woken before the
    // first one is there, too, because the task goes on without it.
    until_async("it is handed all", || {
        let is_woken = from_tail.is_woken();
        let has_all = server.list("q").len() == 100;
        if is_woken && !has_all {
            assert_pending!(from_tail.poll());
        }
        std::future::ready(has_all)
    })
    .await;
    woken(&mut from_tail).await;
    drop(from_tail);
    until_async("given back", || async { server.list("q").len() == values.len() }).await;
    assert_eq!(ready.read_all().await.unwrap(), values);
    delayed.offer_all(values.iter().map(|value| (value, HOUR))).await.unwrap();
    let (entries, times) = (server.list(ORDERED_LIST), server.zset(TIMEOUT_SET));
    let polled = delayed.clone();
    let mut poll = pending(async move { polled.poll_many(2_400).await });
    woken(&mut poll).await;
    until_async("it is handed all", || async { server.list(ORDERED_LIST).len() == 100 }).await;
    drop(poll);
    until_async("put back", || async { server.list(ORDERED_LIST).len() == values.len() }).await;
    assert!(server.list(ORDERED_LIST) == entries && server.zset(TIMEOUT_SET) == times);
    // The copy on the server is gone.
    until_async("nothing else is left", || async { server.keys().len() == 3 }).await;
}

/// A slow link takes longer than the command timeout for all of them.
#[tokio::test]
async fn long_payloads_come_back_a_few_at_a_time() {
    let server = Server::start();
    let (_client, ready, _delayed) = text_queues(&server).await;
    let values: Vec<String> = (0..64).map(|n| format!("{n:02}{}", "x".repeat(100_000))).collect();
    ready.offer_all(&values).await.unwrap();
    let queue = ready.clone();
    let mut drain = pending(async move { queue.poll_many(64).await });
    woken(&mut drain).await;
    until_async("it is handed all", || async { server.list("q").is_empty() }).await;
    // A call leaves a receipt.
    let before = server.command_calls("set");
    drop(drain);
    until_async("given back", || async { ready.len().await.unwrap() == values.len() }).await;
    let calls = server.command_calls("set") - before;
    assert!(calls >= 6, "{calls} calls for 6.4 MB");
    assert!(ready.read_all().await.unwrap() == values);
}

/// A return that was refused waits for up to a second, which is longer than a shutdown with this timeout
/// waits for it.
#[tokio::test]
async fn a_shutdown_cuts_the_pauses_of_a_return_short() {
    let server = Server::start();
    let builder = still_builder(&server).command_timeout(ms(400));
    let Queues { client, ready, .. } = Queues::of_texts(builder).await;
    server.cmd(["RPUSH", "q", "payload"]);
    let mut take = pending(async move { ready.take().await });
    woken(&mut take).await;
    until_async("it is handed over", || async { server.list("q").is_empty() }).await;
    server.cmd(["ACL", "SETUSER", "default", "-lpush"]);
    let before = server.command_calls("evalsha");
    drop(take);
    until_async("it was refused often", || async { server.command_calls("evalsha") >= before + 9 }).await;
    server.cmd(["ACL", "SETUSER", "default", "+lpush"]);
    client.shutdown().await;
    assert_eq!(server.list("q"), [b"payload"]);
}

/// The usual `select!` of a busy channel and a take. Other takers of the client are served all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn takers_that_come_and_go_without_a_pause_starve_nobody() {
    let server = Server::start();
    let (client, ready, _delayed) = text_queues(&server).await;
    let stop = tokio_util::sync::CancellationToken::new();
    let mut loops = Vec::new();
    for n in 0..2 {
        let (stop, other) = (stop.clone(), client.blocking_queue(&format!("idle {n}"), codec::String));
        loops.push(tokio::spawn(async move {
            let mut rounds = 0_u64;
            while !stop.is_cancelled() {
                tokio::select! {
                    biased;
                    _ = other.take() => panic!("there is nothing"),
                    () = std::future::ready(()) => rounds += 1,
                }
                tokio::task::consume_budget().await;
            }
            rounds
        }));
    }
    for n in 0..20 {
        server.cmd(["RPUSH", "q", &n.to_string()]);
        assert_eq!(soon(ready.take()).await.unwrap(), n.to_string());
    }
    stop.cancel();
    for each in loops {
        assert!(each.await.unwrap() > 1_000);
    }
}
