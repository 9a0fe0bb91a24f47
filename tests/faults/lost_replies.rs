//! Replies that are lost with their connection after the server has executed the command. Offers are stored
//! once, and returned payloads come back once. A proxy holds the replies and then cuts the connections.

use std::pin::pin;
use std::time::Duration;

use futures::future::{BoxFuture, Either, FutureExt, join_all, select};
use redelay::delayed_queue::{Offered, Overlap, Schedule};
use redelay::{BlockingQueue, ErrorKind, codec};
use redelay_fixture::redis::Value;
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{
    Boxed, MINUTE, ORDERED_LIST, SCHEDULE_RECORDS, SELDOM, TIMEOUT_SET, builder, leap, ms, still_builder,
    unread,
};
use tokio_test::assert_pending;
use tokio_test::task::{self};

type Queues = redelay_support::Queues<i64>;

/// A client that is connected through the proxy and transfers nothing. It serves for one fault only, because
/// a test cannot see when all its connections are back.
async fn behind(proxy: &Proxy) -> Queues {
    Queues::of_numbers(still_builder(proxy)).await
}

/// A server that has loaded the scripts, and a proxy in front of it. Without that, the first reply to each
/// script would be `NOSCRIPT`.
async fn server_and_proxy() -> (Server, Proxy) {
    let server = Server::start();
    let queues = Queues::of_numbers(still_builder(&server)).await;
    queues.delayed.offer(&0, MINUTE).await.unwrap();
    drop(unread(queues.delayed.poll()).await);
    until_async("restored", || async { listed(&server) == 1 }).await;
    queues.ready.put(&0).await.unwrap();
    drop(unread(queues.ready.take()).await);
    until_async("given back", || async { server.list("q").len() == 1 }).await;
    queues.ready.poll().await.unwrap();
    let polls = [(); 2].map(|()| queues.ready.poll_from_any(Duration::ZERO, &["other"]));
    join_all(polls).await.into_iter().for_each(|polled| assert_eq!(polled.unwrap(), None));
    queues.client.shutdown().await;
    server.cmd(["FLUSHALL"]);
    let proxy = Proxy::start(server.port());
    (server, proxy)
}

/// Waits until the server has executed the commands and its replies are held. Then cuts all connections, and
/// lets new ones work.
async fn lose_replies(proxy: &Proxy, mut done: impl FnMut() -> bool) {
    until_async("the server has done it, and answers", || std::future::ready(done() && proxy.held() > 0))
        .await;
    proxy.cut();
    proxy.hold_replies(false);
}

/// Waits until what was popped is confirmed, and the reply to that has arrived.
async fn nothing_else_is_sent(ready: &BlockingQueue<i64>) {
    until_async("nothing else is sent", || async { ready.unconfirmed_pops(ms(0)).len().await.unwrap() == 0 })
        .await;
}

fn listed(server: &Server) -> usize {
    server.get(["LLEN", ORDERED_LIST])
}

/// The number of stored entries, which is the same in both structures.
fn stored(server: &Server) -> usize {
    let mut listed = server.list(ORDERED_LIST);
    listed.sort();
    let mut timed: Vec<_> = server.zset(TIMEOUT_SET).into_iter().map(|(entry, _)| entry).collect();
    timed.sort();
    assert!(timed == listed, "the timeout set and the ordered list differ");
    listed.len()
}

#[tokio::test]
async fn an_offer_whose_reply_is_lost_is_stored_once() {
    let (server, proxy) = server_and_proxy().await;
    for n in [1, 2, 3, 4, 5] {
        let Queues { delayed, .. } = behind(&proxy).await;
        proxy.hold_replies(true);
        let (ticket, ()) =
            tokio::join!(delayed.offer(&n, MINUTE), lose_replies(&proxy, || listed(&server) == 1));
        assert_eq!(delayed.read_all().await.unwrap(), [n]);
        assert!(delayed.cancel(&ticket.unwrap()).await.unwrap(), "the ticket is of the entry that is stored");
        assert_eq!(stored(&server), 0);
    }
}

/// Its caller is not there any more when the reply is lost.
#[tokio::test]
async fn a_dropped_offer_whose_reply_is_lost_is_stored_once() {
    let (server, proxy) = server_and_proxy().await;
    for n in 1..=5 {
        let Queues { client, delayed, .. } = behind(&proxy).await;
        proxy.hold_replies(true);
        let mut offer = task::spawn(delayed.offer(&(n as i64), MINUTE));
        assert_pending!(offer.poll());
        drop(offer);
        lose_replies(&proxy, || listed(&server) == n).await;
        client.shutdown().await;
        assert_eq!(stored(&server), n);
    }
}

/// Nor is it there for the second try.
#[tokio::test]
async fn a_dropped_offer_that_did_not_arrive_is_sent_again() {
    let (server, proxy) = server_and_proxy().await;
    for n in 1..=5 {
        let Queues { client: _client, delayed, .. } = behind(&proxy).await;
        proxy.blackhole(true);
        let mut offer = task::spawn(delayed.offer(&(n as i64), MINUTE));
        assert_pending!(offer.poll());
        drop(offer);
        proxy.cut();
        proxy.blackhole(false);
        until_async("sent again", || std::future::ready(listed(&server) == n)).await;
    }
    assert_eq!(stored(&server), 5);
}

#[tokio::test]
async fn an_offer_at_a_time_whose_reply_is_lost_is_stored_once_with_its_time() {
    let (server, proxy) = server_and_proxy().await;
    let Queues { delayed, .. } = behind(&proxy).await;
    proxy.hold_replies(true);
    let at = std::time::SystemTime::now() + MINUTE;
    let (ticket, ()) = tokio::join!(delayed.offer_at(&1, at), lose_replies(&proxy, || listed(&server) == 1));
    let score = Duration::from_millis(server.zset(TIMEOUT_SET)[0].1 as u64);
    assert_eq!(ticket.unwrap().due(), std::time::UNIX_EPOCH + score);
    assert_eq!(stored(&server), 1);
}

/// Case 50.
#[tokio::test]
async fn a_job_whose_reply_is_lost_is_stored_once() {
    let (server, proxy) = server_and_proxy().await;
    let warm = Queues::of_numbers(still_builder(&server)).await;
    warm.delayed.offer(&0, MINUTE).id("a").await.unwrap();
    warm.delayed.job("a").cancel().await.unwrap();
    warm.delayed.offer(&0, MINUTE).throttle(ms(1)).await.unwrap();
    warm.delayed.clear().await.unwrap();
    for n in [1, 2, 3] {
        let Queues { delayed, .. } = behind(&proxy).await;
        proxy.hold_replies(true);
        let (offered, ()) = tokio::join!(
            delayed.offer(&n, MINUTE).id("a").replace(),
            lose_replies(&proxy, || server
                .list(ORDERED_LIST)
                .first()
                .is_some_and(|entry| entry.ends_with(n.to_string().as_bytes())))
        );
        match offered.unwrap() {
            Offered::Stored(_) if n == 1 => {}
            Offered::Replaced(_) if n > 1 => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(delayed.read_all().await.unwrap(), [n]);
        assert_eq!(stored(&server), 1);
    }
    // Two jobs with one id, of which the second replaces the first, also in the first try.
    let Queues { delayed, .. } = behind(&proxy).await;
    proxy.hold_replies(true);
    let (offered, ()) = tokio::join!(
        delayed.offer_jobs([("b", &7, MINUTE), ("b", &8, MINUTE)]).replace(),
        lose_replies(&proxy, || listed(&server) == 2)
    );
    assert!(matches!(offered.unwrap()[..], [Offered::Stored(_), Offered::Replaced(_)]));
    assert_eq!(delayed.read_all().await.unwrap(), [3, 8]);
    delayed.job("b").cancel().await.unwrap();
    // The window counts from the first try, and the second one is not throttled by it.
    let Queues { delayed, .. } = behind(&proxy).await;
    proxy.hold_replies(true);
    let (offered, ()) = tokio::join!(
        delayed.offer(&9, MINUTE).throttle(MINUTE),
        lose_replies(&proxy, || listed(&server) == 2)
    );
    assert!(matches!(offered.unwrap(), Offered::Stored(_)));
}

#[tokio::test]
async fn a_change_of_a_schedule_whose_reply_is_lost_is_made_once() {
    let (server, proxy) = server_and_proxy().await;
    let warm = Queues::of_numbers(still_builder(&server)).await.delayed;
    warm.schedule("s").every(SELDOM).upsert(&0).await.unwrap();
    assert!(warm.schedule("s").remove().await.unwrap());
    type Call = fn(Schedule<i64>) -> BoxFuture<'static, redelay::Result<bool>>;
    let calls: [(&str, Call, usize); 8] = [
        ("upsert", |s| async move { s.every(SELDOM).upsert(&1).await.map(|run| run.is_some()) }.boxed(), 1),
        (
            "replace",
            |s| async move { s.every(2 * SELDOM).upsert(&2).await.map(|run| run.is_some()) }.boxed(),
            1,
        ),
        ("pause", |s| async move { s.pause().await }.boxed(), 0),
        ("resume", |s| async move { s.resume().await }.boxed(), 1),
        ("trigger", |s| async move { s.trigger().await }.boxed(), 2),
        (
            "no overlap",
            |s| {
                async move { s.every(SELDOM).no_overlap(Overlap::Skip).upsert(&3).await.map(|run| run.is_some()) }
                .boxed()
            },
            1,
        ),
        ("trigger without overlap", |s| async move { s.trigger().await }.boxed(), 2),
        ("remove", |s| async move { s.remove().await }.boxed(), 2),
    ];
    let record = || server.get::<Option<Vec<u8>>, _>(["HGET", SCHEDULE_RECORDS, "s"]);
    for (name, call, left) in calls {
        let Queues { delayed, .. } = behind(&proxy).await;
        let before = (record(), listed(&server));
        // The reply to the read comes, and the one to the change does not.
        proxy.delay(Duration::from_millis(200));
        let (done, ()) = tokio::join!(
            call(delayed.schedule("s")),
            lose_replies(&proxy, || (record(), listed(&server)) != before)
        );
        proxy.delay(Duration::ZERO);
        assert!(done.unwrap(), "{name}");
        assert_eq!(stored(&server), left, "{name}");
    }
    assert_eq!(record(), None);
}

/// The first try does not arrive, and the round trip is long.
#[tokio::test]
async fn a_second_try_is_not_due_early() {
    let (server, proxy) = server_and_proxy().await;
    let Queues { delayed, .. } = behind(&proxy).await;
    let clock = || server.get::<(u64, u64), _>(["TIME"]);
    proxy.blackhole(true);
    let (seconds, micros) = clock();
    let mut offer = task::spawn(delayed.offer(&1, MINUTE));
    assert_pending!(offer.poll());
    proxy.cut();
    proxy.blackhole(false);
    proxy.delay(ms(100));
    let ticket = offer.await.unwrap();
    let due = server.zset(TIMEOUT_SET)[0].1 as u64;
    assert!(
        due + 1 >= seconds * 1_000 + micros / 1_000 + 60_000,
        "due {due}, offered at {seconds} s {micros} µs"
    );
    assert_eq!(ticket.due(), std::time::UNIX_EPOCH + ms(due));
}

#[tokio::test]
async fn an_offer_of_many_whose_reply_is_lost_is_stored_once() {
    let (server, proxy) = server_and_proxy().await;
    let Queues { delayed, .. } = behind(&proxy).await;
    let values: Vec<i64> = (0..2500).collect();
    proxy.hold_replies(true);
    let offers = delayed.offer_all(values.iter().map(|value| (value, MINUTE)));
    let (tickets, ()) = tokio::join!(offers, lose_replies(&proxy, || listed(&server) == values.len()));
    assert_eq!(tickets.unwrap().len(), values.len());
    assert_eq!(stored(&server), values.len());
    assert_eq!(delayed.read_all().await.unwrap(), values);
}

#[tokio::test]
async fn an_offer_whose_reply_is_lost_twice_is_stored_once() {
    let (server, proxy) = server_and_proxy().await;
    let Queues { delayed, .. } = behind(&proxy).await;
    proxy.hold_replies(true);
    let cut_twice = async {
        let scripts = || server.command_calls("evalsha") + server.command_calls("eval");
        lose_replies(&proxy, || listed(&server) == 1).await;
        // Holds the reply to the second try as well, unless it has passed already.
        let before = scripts();
        proxy.hold_replies(true);
        until_async("the server has answered again", || async { proxy.held() > 0 || scripts() > before })
            .await;
        proxy.cut();
        proxy.hold_replies(false);
    };
    let (ticket, ()) = tokio::join!(delayed.offer(&1, MINUTE), cut_twice);
    ticket.unwrap();
    assert_eq!(stored(&server), 1);
}

/// Offers with short delays, interrupted by `fault` while another client delivers. Each is delivered at most
/// once, and exactly once if it was acknowledged.
async fn delivered_at_most_once(fault: impl AsyncFn(&Server, &Proxy)) {
    let (server, proxy) = server_and_proxy().await;
    let others = Queues::of_numbers(builder(&server).command_timeout(MINUTE)).await;
    let (mut acknowledged, mut unknown) = (Vec::new(), Vec::new());
    for n in 0..36 {
        let Queues { delayed, .. } = behind(&proxy).await;
        match tokio::join!(delayed.offer(&n, ms(n as u64 % 6)), fault(&server, &proxy)).0 {
            Ok(_) => acknowledged.push(n),
            Err(error) if error.is_outcome_unknown() => unknown.push(n),
            Err(error) => panic!("{error}"),
        }
    }
    // This entry is due last. When it has arrived, all others have.
    others.delayed.offer(&-1, ms(20)).await.unwrap();
    let mut delivered = Vec::new();
    loop {
        match others.ready.take().await.unwrap() {
            -1 => break,
            element => delivered.push(element),
        }
    }
    delivered.sort_unstable();
    assert!(delivered.is_sorted_by(|a, b| a < b), "doubled: {delivered:?}");
    let lost: Vec<_> = acknowledged.iter().filter(|element| !delivered.contains(element)).collect();
    assert!(lost.is_empty(), "acknowledged, and lost: {lost:?}");
    assert!(delivered.iter().all(|element| acknowledged.contains(element) || unknown.contains(element)));
}

#[tokio::test]
async fn an_offer_with_a_short_delay_whose_reply_is_lost_is_delivered_at_most_once() {
    delivered_at_most_once(async |server, proxy| {
        let before = server.command_calls("zadd");
        proxy.hold_replies(true);
        lose_replies(proxy, || server.command_calls("zadd") > before).await;
    })
    .await;
}

#[tokio::test]
async fn an_offer_with_a_short_delay_that_is_cut_on_its_way_is_delivered_at_most_once() {
    delivered_at_most_once(async |_, proxy| {
        proxy.blackhole(true);
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        proxy.cut();
        proxy.blackhole(false);
    })
    .await;
}

#[tokio::test]
async fn an_offer_that_a_frozen_server_runs_later_is_delivered_at_most_once() {
    delivered_at_most_once(async |server, proxy| {
        server.freeze();
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        proxy.cut();
        server.thaw();
    })
    .await;
}

/// A call, and its result.
type Call = fn(Queues) -> BoxFuture<'static, Vec<i64>>;

/// The calls that take what is ready without waiting.
const POLLS: [(&str, Call); 6] = [
    ("poll", |q| async move { Vec::from_iter(q.ready.poll().await.unwrap()) }.boxed()),
    ("poll_last", |q| async move { Vec::from_iter(q.ready.poll_last().await.unwrap()) }.boxed()),
    ("drain", |q| {
        async move { q.ready.poll_many(3).await.unwrap().into_iter().map(Result::unwrap).collect() }.boxed()
    }),
    ("drain of many", |q| {
        async move { q.ready.poll_many(2500).await.unwrap().into_iter().map(Result::unwrap).collect() }
            .boxed()
    }),
    ("of several lists", |q| of_several_lists(q, false).boxed()),
    ("of the ends of several lists", |q| of_several_lists(q, true).boxed()),
];

/// Two polls share a pop.
async fn of_several_lists(queues: Queues, last: bool) -> Vec<i64> {
    let polls = [(); 2].map(|()| async {
        match last {
            false => queues.ready.poll_from_any(MINUTE, &["other"]).await,
            true => queues.ready.poll_last_from_any(MINUTE, &["other"]).await,
        }
    });
    join_all(polls).await.into_iter().map(|polled| polled.unwrap().unwrap().1).collect()
}

/// A queue with its elements. From now on, no reply comes.
async fn full_queue(proxy: &Proxy) -> (Queues, Vec<i64>) {
    let queues = behind(proxy).await;
    // After these, the next polls do not expect to be alone, and share a call.
    let polls = [(); 2].map(|()| queues.ready.poll_from_any(Duration::ZERO, &["other"]));
    join_all(polls).await.into_iter().for_each(|polled| assert_eq!(polled.unwrap(), None));
    let elements: Vec<i64> = (0..3000).collect();
    queues.ready.offer_all(&elements).await.unwrap();
    proxy.hold_replies(true);
    (queues, elements)
}

#[tokio::test]
async fn a_poll_whose_reply_is_lost_gets_what_the_server_popped_for_it() {
    let (server, proxy) = server_and_proxy().await;
    for (name, poll) in POLLS {
        let (queues, elements) = full_queue(&proxy).await;
        let lost = lose_replies(&proxy, || server.list("q").len() < elements.len());
        let (mut found, ()) = tokio::join!(poll(queues.clone()), lost);
        assert!(!found.is_empty(), "{name}");
        found.extend(queues.ready.read_all().await.unwrap());
        found.sort_unstable();
        assert!(found == elements, "{name}: {} elements", found.len());
        queues.ready.clear().await.unwrap();
    }
}

#[tokio::test]
async fn a_dropped_poll_whose_reply_is_lost_leaves_everything_as_it_was() {
    let (server, proxy) = server_and_proxy().await;
    for (name, poll) in POLLS {
        let (queues, elements) = full_queue(&proxy).await;
        let mut poll = task::spawn(poll(queues.clone()));
        assert_pending!(poll.poll());
        lose_replies(&proxy, || server.list("q").len() < elements.len()).await;
        drop(poll);
        until_async(name, || async { server.list("q").len() == elements.len() }).await;
        assert!(queues.ready.read_all().await.unwrap() == elements, "{name}: in another order");
        queues.ready.clear().await.unwrap();
    }
}

#[tokio::test]
async fn a_poll_of_the_delayed_queue_whose_reply_is_lost_gets_what_the_server_took_for_it() {
    let (server, proxy) = server_and_proxy().await;
    for dropped in [false, true] {
        let Queues { delayed, .. } = behind(&proxy).await;
        let elements: Vec<i64> = (0..5).collect();
        delayed.offer_all(elements.iter().map(|element| (element, MINUTE))).await.unwrap();
        let before = server.zset(TIMEOUT_SET);
        proxy.hold_replies(true);
        let mut poll = task::spawn(delayed.poll_many(3));
        assert_pending!(poll.poll());
        lose_replies(&proxy, || listed(&server) == 2).await;
        if dropped {
            drop(poll);
            until_async("restored", || async { server.zset(TIMEOUT_SET) == before }).await;
            assert_eq!(delayed.read_all().await.unwrap(), elements);
        } else {
            let polled: Vec<i64> = poll.await.unwrap().into_iter().map(Result::unwrap).collect();
            assert_eq!((polled, stored(&server)), (vec![0, 1, 2], 2));
            assert_eq!(delayed.read_all().await.unwrap(), [3, 4]);
        }
        delayed.clear().await.unwrap();
    }
}

#[tokio::test]
async fn an_element_whose_give_back_is_not_answered_comes_back_once() {
    let (server, proxy) = server_and_proxy().await;
    for _ in 0..5 {
        let Queues { client, ready, .. } = behind(&proxy).await;
        server.cmd(["RPUSH", "q", "1", "2", "3"]);
        let drain = unread(ready.poll_many(2)).await;
        until_async("it is handed two", || async { server.list("q").len() == 1 }).await;
        nothing_else_is_sent(&ready).await;
        proxy.hold_replies(true);
        drop(drain);
        lose_replies(&proxy, || server.list("q").len() == 3).await;
        // It waits for the second try.
        client.shutdown().await;
        assert_eq!(server.list("q").concat(), b"123");
        assert_eq!(receipts(&server), 1, "a lost try may still arrive");
        server.cmd(["FLUSHALL"]);
    }
}

#[tokio::test]
async fn an_entry_whose_restoring_is_not_answered_is_delivered_once() {
    let (server, proxy) = server_and_proxy().await;
    for element in 0..5 {
        let Queues { client, ready, delayed } = behind(&proxy).await;
        // Due, but not transferred yet.
        delayed.offer(&element, Duration::ZERO).await.unwrap();
        let poll = unread(delayed.poll()).await;
        until_async("it is handed over", || async { listed(&server) == 0 }).await;
        nothing_else_is_sent(&ready).await;
        proxy.hold_replies(true);
        drop(poll);
        until_async("put back", || async { listed(&server) == 1 }).await;
        let others = Queues::of_numbers(builder(&server)).await;
        assert_eq!(others.ready.take().await.unwrap(), element);
        proxy.cut();
        proxy.hold_replies(false);
        // It waits for the second try.
        client.shutdown().await;
        others.client.shutdown().await;
        assert_eq!((stored(&server), server.list("q")), (0, vec![]), "stored again");
        assert_eq!(receipts(&server), 1, "a lost try may still arrive");
        server.cmd(["FLUSHALL"]);
    }
}

/// The second try of a pop is refused, for a while. What the first one took must not be left behind.
#[tokio::test]
async fn a_pop_whose_second_try_is_refused_arrives() {
    let (server, proxy) = server_and_proxy().await;
    server.cmd(["ACL", "SETUSER", "user", "on", ">secret", "allkeys", "allchannels", "+@all"]);
    for early in [false, true] {
        let client = still_builder(&proxy).credentials("user", "secret");
        let Queues { ready, delayed, .. } = Queues::of_numbers(client).await;
        if early {
            delayed.offer(&7, MINUTE).await.unwrap();
        } else {
            ready.put(&7).await.unwrap();
        }
        let losing = async {
            until_async("it is executed", || async {
                listed(&server) + server.list("q").len() == 0 && proxy.held() > 0
            })
            .await;
            server.cmd(["ACL", "SETUSER", "user", "-evalsha", "-eval"]);
            server.cmd(["ACL", "LOG", "RESET"]);
            proxy.cut();
            proxy.hold_replies(false);
            until_async("refused", || async { !server.get::<Vec<Value>, _>(["ACL", "LOG"]).is_empty() })
                .await;
            server.cmd(["ACL", "SETUSER", "user", "+evalsha", "+eval"]);
        };
        proxy.hold_replies(true);
        let polling = async { if early { delayed.poll().await } else { ready.poll().await } };
        let ((), polled) = tokio::join!(losing, polling);
        assert_eq!(polled.unwrap(), Some(7), "early: {early}");
        until_async("confirmed", || async { ready.unconfirmed_pops(ms(0)).len().await.unwrap() == 0 }).await;
        server.cmd(["FLUSHALL"]);
    }
}

/// The keys that say which returns were done.
fn receipts(server: &Server) -> usize {
    server.keys().iter().filter(|key| key.starts_with(b"redelay:returned:")).count()
}

/// What was sent on a connection that is lost can be executed late: the user lacks the permission to end that
/// connection.
#[tokio::test]
async fn a_return_that_arrives_late_is_done_once() {
    let (server, proxy) = server_and_proxy().await;
    let may_not_kill = ["-client", "+client|id", "+client|info", "+client|unblock"];
    server.cmd(
        ["ACL", "SETUSER", "user", "on", ">secret", "allkeys", "allchannels", "+@all"]
            .iter()
            .chain(&may_not_kill),
    );
    for early in [false, true] {
        let client = still_builder(&proxy).credentials("user", "secret");
        let Queues { client, ready, delayed } = Queues::of_numbers(client).await;
        let waiting = || if early { listed(&server) } else { server.list("q").len() };
        let taker: Boxed<()> = if early {
            delayed.offer(&7, MINUTE).await.unwrap();
            let delayed = delayed.clone();
            Box::pin(async move { drop(delayed.poll().await) })
        } else {
            ready.put(&7).await.unwrap();
            let ready = ready.clone();
            Box::pin(async move { drop(ready.poll_many(1).await) })
        };
        let taker = unread(taker).await;
        until_async("it is handed over", || async { waiting() == 0 }).await;
        nothing_else_is_sent(&ready).await;
        proxy.strand();
        drop(taker);
        // Until the return has been sent.
        tokio::time::sleep(ms(200)).await;
        let before = server.command_calls("evalsha");
        proxy.hang_up();
        until_async("the second try has arrived", || async { waiting() == 1 }).await;
        if early {
            assert_eq!(delayed.poll().await.unwrap(), Some(7));
        } else {
            assert_eq!(ready.poll().await.unwrap(), Some(7));
        }
        client.shutdown().await;
        let calls = server.command_calls("evalsha");
        assert!(calls > before);
        proxy.release();
        until_async("the first try has arrived", || async { server.command_calls("evalsha") > calls }).await;
        assert_eq!(waiting(), 0, "early: {early}");
        server.cmd(["FLUSHALL"]);
    }
}

type Change = fn(Queues) -> BoxFuture<'static, redelay::Result<()>>;

/// A call that is sent again after a lost reply, and then finds no connection, may have been executed.
#[tokio::test]
async fn a_retry_without_a_connection_says_that_it_does_not_know() {
    let calls: [(&str, &str, Change); 4] = [
        ("expire", "pexpire", |q| async move { q.delayed.expire(MINUTE).await.map(drop) }.boxed()),
        ("expire of what is ready", "pexpire", |q| {
            async move { q.ready.expire(MINUTE).await.map(drop) }.boxed()
        }),
        ("requeue", "lpush", |q| {
            async move { q.ready.unconfirmed_pops(MINUTE).requeue_all(9).await.map(drop) }.boxed()
        }),
        ("remove", "hdel", |q| {
            async move { q.ready.unconfirmed_pops(MINUTE).remove_all(9).await.map(drop) }.boxed()
        }),
    ];
    let (server, proxy) = server_and_proxy().await;
    for (name, command, call) in calls {
        // On a busy machine, the reply to the second command may get through, too.
        let mut tries = 0;
        let result = loop {
            let result = lost_at(&server, &proxy, command, call).await;
            tries += 1;
            if result.is_err() || command == "pexpire" || tries == 10 {
                break result;
            }
        };
        assert_eq!(result.unwrap_err().kind(), ErrorKind::OutcomeUnknown, "{name}");
    }
}

/// Makes a call. When the server has executed this command of it, the proxy cuts the connection before the
/// reply, and refuses new ones.
async fn lost_at(server: &Server, proxy: &Proxy, command: &str, call: Change) -> redelay::Result<()> {
    let queues = Queues::of_numbers(still_builder(proxy)).await;
    queues.ready.put(&1).await.unwrap();
    queues.delayed.offer(&1, MINUTE).await.unwrap();
    queues.delayed.expire(MINUTE).await.unwrap();
    let leave = "redis.call('HSET', 'redelay:popped:{q}', '1', cmsgpack.pack({'LPOP', 1, {'1'}}))";
    server.cmd(["EVAL", leave, "0"]);
    queues.ready.unconfirmed_pops(MINUTE).requeue_all(9).await.unwrap();
    server.cmd(["EVAL", leave, "0"]);
    if command != "pexpire" {
        // The reply to the first command, which reads, gets through.
        proxy.delay(ms(1_000));
    }
    let before = server.command_calls(command);
    let losing = async {
        if command == "pexpire" {
            proxy.hold_replies(true);
        }
        until_async("it is executed", || async {
            server.command_calls(command) > before && proxy.held() > 0
        })
        .await;
        proxy.refuse(true);
        proxy.cut();
    };
    // For this call only.
    let client = queues.client.with_timeout(ms(6_000));
    let ready = client.blocking_queue("q", codec::Long);
    let delayed = client.delayed_queue(&ready);
    let call = call(Queues { client, ready, delayed });
    let result = match select(call, pin!(losing)).await {
        Either::Left((result, _)) => result,
        Either::Right(((), call)) => call.await,
    };
    proxy.refuse(false);
    proxy.hold_replies(false);
    proxy.delay(Duration::ZERO);
    server.cmd(["FLUSHALL"]);
    result
}

/// A destroyed handle transfers nothing more, not even by a call that was in flight.
#[tokio::test]
async fn destroy_waits_for_the_transfer_in_flight() {
    let (server, proxy) = server_and_proxy().await;
    for _ in 0..20 {
        behind(&proxy).await.delayed.offer(&1, ms(4_000)).await.unwrap();
        let patient = builder(&proxy).command_timeout(MINUTE);
        let Queues { client, delayed, .. } = Queues::of_numbers(patient).await;
        // The reply says when the next call will be.
        until_async("looked", || async { client.stats().transfers > 0 }).await;
        // A call that is a moment early is followed by another.
        proxy.delay(ms(4_000));
        until_async("moved", || async { server.list("q").len() == 1 }).await;
        // From here on, neither the reply nor the end of its time comes.
        proxy.hold_replies(true);
        tokio::time::pause();
        let mut destroy = task::spawn(delayed.destroy());
        assert_pending!(destroy.poll());
        for _ in 0..50 {
            server.cmd(["PING"]);
            tokio::task::yield_now().await;
        }
        // On a busy machine, the reply may have come before.
        let is_answered = client.stats().transferred > 0;
        assert!(is_answered || !destroy.is_woken(), "the call is in flight");
        tokio::time::resume();
        proxy.delay(Duration::ZERO);
        proxy.hold_replies(false);
        destroy.await;
        if !is_answered {
            return;
        }
        server.cmd(["FLUSHALL"]);
    }
    panic!("it was answered each time");
}

/// "Nothing was executed" would be wrong then.
#[tokio::test]
async fn a_move_whose_reply_is_lost_for_good_says_that_it_does_not_know() {
    let (server, proxy) = server_and_proxy().await;
    for wait in [None, Some(ms(30_000))] {
        let Queues { client, ready, .. } = behind(&proxy).await;
        let moving = async {
            match wait {
                None => ready.poll_last_and_offer_first_to("d").await,
                Some(wait) => ready.poll_last_and_offer_first_to_timeout("d", wait).await,
            }
        };
        let losing = async {
            // A waiting pop has its own connection, which has to be opened first.
            until_async("parked", || async { wait.is_none() || server.blocked_clients() == 1 }).await;
            proxy.hold_replies(true);
            server.cmd(["RPUSH", "q", "1"]);
            until_async("moved", || async { server.list("d").len() == 1 }).await;
            proxy.refuse(true);
            proxy.cut();
            until_async("it is noticed", || async { !client.stats().connected }).await;
            leap(wait.unwrap_or_default()).await;
        };
        let ((), moved) = tokio::join!(losing, moving);
        assert_eq!(moved.unwrap_err().kind(), ErrorKind::OutcomeUnknown, "{wait:?}");
        proxy.refuse(false);
        proxy.hold_replies(false);
        server.cmd(["DEL", "d"]);
    }
}

/// A call that ends with nothing after its timeout must not have moved anything.
#[tokio::test]
async fn a_timed_move_is_seen_through() {
    let (server, proxy) = server_and_proxy().await;
    let Queues { ready, .. } = behind(&proxy).await;
    let moving = ready.poll_last_and_offer_first_to_timeout("d", ms(30_000));
    let late = async {
        until_async("parked", || async { server.blocked_clients() == 1 }).await;
        proxy.hold_replies(true);
        server.cmd(["RPUSH", "q", "1"]);
        until_async("moved", || async { server.list("d").len() == 1 }).await;
        // Its time is over before the reply comes.
        leap(ms(31_000)).await;
        proxy.hold_replies(false);
    };
    let (moved, ()) = tokio::join!(moving, late);
    assert!(!matches!(moved, Ok(None)), "it is in the other list");
}

#[tokio::test]
async fn a_silent_server_is_not_an_empty_list() {
    let server = Server::start();
    // A busy machine may stand still for 5 s.
    let builder = still_builder(&server).command_timeout(ms(15_000));
    let Queues { ready, .. } = Queues::of_numbers(builder).await;
    assert_eq!(ready.poll_timeout(ms(50)).await.unwrap(), None);
    server.cmd(["RPUSH", "q", "1"]);
    server.freeze();
    let answer = ready.poll_timeout(ms(1_500)).await;
    server.thaw();
    assert!(!matches!(answer, Ok(None)), "nobody has looked at the list");
}
