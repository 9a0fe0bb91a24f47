//! Each operation on a real server has the effect on the keys that Redisson's operation of that name has.

use std::time::{Duration, Instant, SystemTime};

use redelay::{Client, codec};
use redelay_fixture::{Server, until_async};
use redelay_support::{HOUR, keys, patient_builder, still_builder, text, text_queues};

async fn client(server: &Server) -> Client {
    patient_builder(&server).connect().await.expect("a connection")
}

#[tokio::test]
async fn an_offer_is_taken_when_it_is_due() {
    let server = Server::start();
    let (client, ready, delayed) = text_queues(&server).await;
    // On a busy machine, it may be due before anybody can look.
    for delay in [150, 1_000, 10_000, 100_000].map(Duration::from_millis) {
        let begun = Instant::now();
        delayed.offer(&text("a"), delay).await.unwrap();
        let pending = delayed.len().await.unwrap();
        let is_in_time = begun.elapsed() < delay;
        assert!(pending == 1 || !is_in_time, "{pending} pending");
        assert_eq!(ready.take().await.unwrap(), "a");
        assert!(begun.elapsed() >= delay, "early by {:?}", delay - begun.elapsed());
        if is_in_time {
            break;
        }
    }
    assert!(delayed.is_empty().await.unwrap());
    client.shutdown().await;
    until_async("no connection left", || async { server.clients_named("redelay") == 0 }).await;
}

#[tokio::test]
async fn the_keys_hold_what_redisson_would_have_written() {
    let server = Server::start();
    let client = still_builder(&server).connect().await.unwrap();
    let delayed = client.delayed_queue(&client.blocking_queue("q", codec::String));
    let ticket = delayed.offer(&text("hello"), HOUR).await.unwrap();
    let zset = server.zset("redisson_delay_queue_timeout:{q}");
    let list = server.list("redisson_delay_queue:{q}");
    assert_eq!(zset.len(), 1);
    assert_eq!(list, [zset[0].0.clone()]);
    let entry = &list[0];
    assert_eq!(entry[0], 16);
    assert_eq!(entry[17..25], 5_u64.to_le_bytes());
    assert_eq!(&entry[25..], b"hello");
    assert_eq!(SystemTime::UNIX_EPOCH + Duration::from_millis(zset[0].1 as u64), ticket.due());
    let wait = ticket.due().duration_since(SystemTime::now()).unwrap();
    assert!(wait <= HOUR + Duration::from_millis(1) && wait > HOUR - Duration::from_secs(20), "{wait:?}");
}

#[tokio::test]
async fn many_with_their_own_delays_come_in_order_of_due_time() {
    let server = Server::start();
    let (_client, ready, delayed) = text_queues(&server).await;
    let values: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    let offers = values.iter().enumerate().map(|(n, value)| (value, Duration::from_millis(300 - n as u64)));
    let tickets = delayed.offer_all(offers).await.unwrap();
    assert_eq!(tickets.len(), 200);
    for expected in values.iter().rev() {
        assert_eq!(ready.take().await.unwrap(), *expected);
    }
    assert_eq!(keys(&server), Vec::<Vec<u8>>::new());
}

#[tokio::test]
async fn equal_due_times_keep_the_order_of_offers() {
    let server = Server::start();
    let (_client, ready, delayed) = text_queues(&server).await;
    let due = SystemTime::now() + Duration::from_millis(100);
    for n in 0..50 {
        delayed.offer_at(&n.to_string(), due).await.unwrap();
    }
    for n in 0..50 {
        assert_eq!(ready.take().await.unwrap(), n.to_string());
    }
}

#[tokio::test]
async fn looking_into_the_delayed_queue() {
    let server = Server::start();
    let (_client, _ready, delayed) = text_queues(&server).await;
    for (value, hours) in [("a", 3), ("b", 1), ("c", 2), ("b", 4)] {
        delayed.offer(&text(value), HOUR * hours).await.unwrap();
    }
    assert_eq!(delayed.read_all().await.unwrap(), ["a", "b", "c", "b"]);
    assert_eq!(delayed.peek().await.unwrap().as_deref(), Some("a"));
    assert!(delayed.contains(&text("c")).await.unwrap());
    assert!(!delayed.contains(&text("x")).await.unwrap());
    assert!(delayed.contains_all([&text("a"), &text("b"), &text("b")]).await.unwrap());
    assert!(!delayed.contains_all([&text("a"), &text("x")]).await.unwrap());
    assert!(delayed.contains_all([]).await.unwrap());
    assert_eq!(delayed.len().await.unwrap(), 4);
}

#[tokio::test]
async fn removing_from_the_delayed_queue_leaves_nothing_behind() {
    let server = Server::start();
    let (_client, _ready, delayed) = text_queues(&server).await;
    let fill = async || {
        delayed.clear().await.unwrap();
        for value in ["a", "b", "c", "b", "d"] {
            delayed.offer(&text(value), HOUR).await.unwrap();
        }
    };
    let left = async || {
        let left = delayed.read_all().await.unwrap().concat();
        assert_eq!(server.zset("redisson_delay_queue_timeout:{q}").len(), left.len());
        left
    };
    fill().await;
    assert!(delayed.remove(&text("b")).await.unwrap());
    assert_eq!(left().await, "acbd");
    assert!(!delayed.remove(&text("x")).await.unwrap());
    fill().await;
    assert!(delayed.remove_all([&text("b"), &text("d"), &text("x")]).await.unwrap());
    assert_eq!(left().await, "ac");
    assert!(!delayed.remove_all([&text("x")]).await.unwrap());
    fill().await;
    assert!(delayed.retain_all([&text("b"), &text("d")]).await.unwrap());
    assert_eq!(left().await, "bbd");
    assert!(!delayed.retain_all([&text("b"), &text("d")]).await.unwrap());
    assert!(delayed.retain_all([]).await.unwrap());
    assert_eq!(left().await, "");
    fill().await;
    assert!(delayed.delete().await.unwrap());
    assert!(!delayed.delete().await.unwrap());
    assert_eq!(keys(&server), Vec::<Vec<u8>>::new());
}

#[tokio::test]
async fn polling_before_the_due_time() {
    let server = Server::start();
    let (_client, _ready, delayed) = text_queues(&server).await;
    for value in ["a", "b", "c", "d", "e"] {
        delayed.offer(&text(value), HOUR).await.unwrap();
    }
    assert_eq!(delayed.poll().await.unwrap().as_deref(), Some("a"));
    let polled: Vec<String> = delayed.poll_many(2).await.unwrap().into_iter().map(Result::unwrap).collect();
    assert_eq!(polled, ["b", "c"]);
    assert_eq!(delayed.poll_last_and_offer_first_to("{q}other").await.unwrap().as_deref(), Some("e"));
    assert_eq!(server.list("{q}other"), [b"e"]);
    assert_eq!(delayed.poll_many(0).await.unwrap().len(), 0);
    assert_eq!(delayed.poll_many(10).await.unwrap().len(), 1);
    assert_eq!(delayed.poll().await.unwrap(), None);
    assert_eq!(delayed.poll_last_and_offer_first_to("{q}other").await.unwrap(), None);
}

#[tokio::test]
async fn a_ticket_cancels_and_reschedules_from_anywhere() {
    let server = Server::start();
    let (_client, ready, delayed) = text_queues(&server).await;
    let cancelled = delayed.offer(&text("cancelled"), HOUR).await.unwrap();
    let hastened = delayed.offer(&text("hastened"), HOUR).await.unwrap();
    let stored = serde_json::to_string(&hastened).unwrap();

    let (_other, _, elsewhere) = text_queues(&server).await;
    assert!(elsewhere.cancel(&cancelled).await.unwrap());
    assert!(!elsewhere.cancel(&cancelled).await.unwrap());
    let hastened = serde_json::from_str(&stored).unwrap();
    assert!(elsewhere.reschedule(&hastened, Duration::from_millis(50)).await.unwrap());
    assert_eq!(ready.take().await.unwrap(), "hastened");
    assert!(!elsewhere.reschedule(&hastened, HOUR).await.unwrap());
    assert_eq!(keys(&server), Vec::<Vec<u8>>::new());
}

#[tokio::test]
async fn a_ticket_of_another_queue_is_refused() {
    let server = Server::start();
    let (client, _ready, delayed) = text_queues(&server).await;
    let ticket = delayed.offer(&text("a"), HOUR).await.unwrap();
    let other = client.delayed_queue(&client.blocking_queue("{q}other", codec::String));
    let error = other.cancel(&ticket).await.unwrap_err();
    assert_eq!(error.kind(), redelay::ErrorKind::Invalid);
    assert!(error.to_string().contains("`q`"), "{error}");
}

#[tokio::test]
async fn the_blocking_queue_as_a_list() {
    let server = Server::start();
    let (_client, ready, _delayed) = text_queues(&server).await;
    ready.put(&text("a")).await.unwrap();
    ready.offer(&text("b")).await.unwrap();
    ready.offer_all([&text("c"), &text("b"), &text("d")]).await.unwrap();
    assert_eq!(ready.len().await.unwrap(), 5);
    assert!(!ready.is_empty().await.unwrap());
    assert_eq!(ready.peek().await.unwrap().as_deref(), Some("a"));
    assert!(ready.contains(&text("d")).await.unwrap());
    assert!(!ready.contains(&text("x")).await.unwrap());
    assert!(ready.remove(&text("b")).await.unwrap());
    assert!(!ready.remove(&text("x")).await.unwrap());
    assert_eq!(ready.read_all().await.unwrap(), ["a", "c", "b", "d"]);
    assert_eq!(ready.peek_last().await.unwrap().as_deref(), Some("d"));
    assert!(ready.contains_all([&text("a"), &text("d"), &text("d")]).await.unwrap());
    assert!(!ready.contains_all([&text("a"), &text("x")]).await.unwrap());
    ready.offer_all([&text("e"), &text("e"), &text("f"), &text("g")]).await.unwrap();
    assert!(ready.remove_all([&text("e"), &text("x")]).await.unwrap());
    assert!(!ready.remove_all([&text("e"), &text("x")]).await.unwrap());
    assert_eq!(ready.read_all().await.unwrap().concat(), "acbdfg");
    assert!(ready.retain_all(["a", "b", "c", "d"].map(text).iter()).await.unwrap());
    assert!(!ready.retain_all(["a", "b", "c", "d"].map(text).iter()).await.unwrap());
    assert_eq!(ready.read_all().await.unwrap().concat(), "acbd");
    assert_eq!(ready.poll().await.unwrap().as_deref(), Some("a"));
    assert_eq!(ready.poll_last().await.unwrap().as_deref(), Some("d"));
    let drained: Vec<String> = ready.poll_many(1).await.unwrap().into_iter().map(Result::unwrap).collect();
    assert_eq!(drained, ["c"]);
    assert_eq!(ready.poll_many(usize::MAX).await.unwrap().len(), 1);
    assert_eq!(ready.poll().await.unwrap(), None);
    ready.put(&text("a")).await.unwrap();
    assert!(ready.clear().await.unwrap());
    assert!(!ready.delete().await.unwrap());
}

/// Redisson waits for whole seconds: 1 s instead of 500 ms, 1 s instead of 1.5 s.
#[tokio::test]
async fn timeouts_are_not_rounded() {
    let server = Server::start();
    let (_client, ready, _delayed) = text_queues(&server).await;
    for millis in [0, 1, 20, 500, 1500] {
        let timeout = Duration::from_millis(millis);
        // Compared with a timer of the same runtime and the time of a command, in the best of several tries,
        // because a busy machine delays both.
        let mut tries = 0;
        loop {
            let before = Instant::now();
            assert_eq!(ready.poll().await.unwrap(), None);
            let late = Duration::from_millis(50).max(4 * before.elapsed()).min(Duration::from_millis(400));
            let begun = Instant::now();
            let in_time = tokio::select! {
                biased;
                polled = ready.poll_timeout(timeout) => {
                    assert_eq!(polled.unwrap(), None);
                    true
                }
                () = tokio::time::sleep(timeout + late) => false,
            };
            assert!(begun.elapsed() >= timeout, "{:?} instead of {timeout:?}", begun.elapsed());
            if in_time {
                break;
            }
            tries += 1;
            assert!(tries < 30, "{timeout:?} is never over in time");
        }
    }
    ready.put(&text("a")).await.unwrap();
    assert_eq!(ready.poll_timeout(Duration::ZERO).await.unwrap().as_deref(), Some("a"));
    ready.put(&text("b")).await.unwrap();
    assert_eq!(ready.poll_last_timeout(Duration::ZERO).await.unwrap().as_deref(), Some("b"));
}

#[tokio::test]
async fn taking_from_several_queues() {
    let server = Server::start();
    let (client, ready, _delayed) = text_queues(&server).await;
    let second = Duration::from_secs(1);
    let other = client.blocking_queue("{q}other", codec::String);
    let third = client.blocking_queue("{q}third", codec::String);

    let any = ready.poll_from_any(second * 30, &["{q}other", "{q}third"]);
    let put = async {
        until_async("somebody waits", || async { server.blocked_clients() == 1 }).await;
        other.put(&text("x")).await.unwrap();
    };
    assert_eq!(tokio::join!(any, put).0.unwrap(), Some((text("{q}other"), text("x"))));

    for (queue, value) in [(&third, "t"), (&other, "o"), (&ready, "r"), (&third, "t"), (&other, "o")] {
        queue.put(&text(value)).await.unwrap();
    }
    for expected in ["q", "{q}other", "{q}other", "{q}third", "{q}third"] {
        let (name, _) = ready.poll_from_any(second * 30, &["{q}other", "{q}third"]).await.unwrap().unwrap();
        assert_eq!(name, expected, "the order of the names decides");
    }

    third.offer_all([&text("1"), &text("2")]).await.unwrap();
    let last = ready.poll_last_from_any(second * 30, &["{q}other", "{q}third"]).await.unwrap();
    assert_eq!(last, Some((text("{q}third"), text("2"))));

    third.offer_all([&text("2"), &text("3"), &text("4")]).await.unwrap();
    let (name, several) =
        ready.poll_many_from_any(second * 30, 3, &["{q}other", "{q}third"]).await.unwrap().unwrap();
    assert_eq!(name, "{q}third");
    assert_eq!(several.into_iter().map(Result::unwrap).collect::<Vec<_>>(), ["1", "2", "3"]);
    let (_, several) = ready.poll_last_many_from_any(second * 30, 3, &["{q}third"]).await.unwrap().unwrap();
    assert_eq!(several.len(), 1);
    assert_eq!(
        ready.poll_from_any(Duration::from_millis(20), &["{q}other", "{q}third"]).await.unwrap(),
        None
    );
    assert_eq!(ready.poll_from_any(Duration::ZERO, &["{q}other"]).await.unwrap(), None);
}

#[tokio::test]
async fn moving_from_list_to_list() {
    let server = Server::start();
    let (_client, ready, _delayed) = text_queues(&server).await;
    ready.offer_all([&text("a"), &text("b"), &text("c")]).await.unwrap();
    assert_eq!(ready.poll_last_and_offer_first_to("{q}other").await.unwrap().as_deref(), Some("c"));
    assert_eq!(
        ready.poll_last_and_offer_first_to_timeout("{q}other", HOUR).await.unwrap().as_deref(),
        Some("b")
    );
    assert_eq!(ready.take_last_and_offer_first_to("{q}other").await.unwrap(), "a");
    assert_eq!(ready.poll_last_and_offer_first_to("{q}other").await.unwrap(), None);
    let exact = Duration::from_millis(50);
    assert_eq!(ready.poll_last_and_offer_first_to_timeout("{q}other", exact).await.unwrap(), None);
    let waiting = ready.poll_last_and_offer_first_to_timeout("{q}other", HOUR);
    let put = async {
        until_async("somebody waits", || async { server.blocked_clients() == 1 }).await;
        ready.put(&text("d")).await.unwrap();
    };
    assert_eq!(tokio::join!(waiting, put).0.unwrap().as_deref(), Some("d"));
    assert_eq!(server.list("{q}other"), [b"d", b"a", b"b", b"c"]);
}

#[tokio::test]
async fn taking_from_the_tail_while_others_take_from_the_head() {
    let server = Server::start();
    let (_client, ready, _delayed) = text_queues(&server).await;
    let put = async {
        until_async("both wait", || async { server.blocked_clients() == 2 }).await;
        ready.offer_all([&text("a"), &text("b")]).await.unwrap();
    };
    let (head, tail, ()) = tokio::join!(ready.take(), ready.take_last(), put);
    let mut both = [head.unwrap(), tail.unwrap()];
    both.sort();
    assert_eq!(both, ["a", "b"]);
}

#[tokio::test]
async fn everything_can_expire() {
    let server = Server::start();
    let (_client, ready, delayed) = text_queues(&server).await;
    assert!(!ready.expire(HOUR).await.unwrap());
    assert!(!delayed.expire(HOUR).await.unwrap());
    ready.put(&text("a")).await.unwrap();
    delayed.offer(&text("b"), HOUR).await.unwrap();
    assert!(ready.expire(HOUR).await.unwrap());
    assert!(delayed.expire(Duration::from_millis(1)).await.unwrap());
    until_async("only the ready one left", || async { keys(&server) == [b"q"] }).await;
}

#[tokio::test]
async fn a_taker_alone_keeps_its_queue_moving() {
    let server = Server::start();
    let producer = still_builder(&server).connect().await.unwrap();
    let delayed = producer.delayed_queue(&producer.blocking_queue("q", codec::String));
    delayed.offer(&text("a"), Duration::from_millis(20)).await.unwrap();
    let consumer = client(&server).await;
    assert_eq!(consumer.blocking_queue("q", codec::String).take().await.unwrap(), "a");
}

#[tokio::test]
async fn destroy_stops_the_moving_and_nothing_else() {
    let server = Server::start();
    let (_client, _ready, delayed) = text_queues(&server).await;
    let channel = "redisson_delay_queue_channel:{q}";
    until_async("subscribed", || async { server.subscribers(channel) == 1 }).await;
    delayed.destroy().await;
    until_async("unsubscribed", || async { server.subscribers(channel) == 0 }).await;
    delayed.offer(&text("a"), Duration::ZERO).await.unwrap();
    assert_eq!(delayed.len().await.unwrap(), 1);
    let (_other, ready, _delayed) = text_queues(&server).await;
    assert_eq!(ready.take().await.unwrap(), "a");
}

#[tokio::test]
async fn names_are_mapped_before_anything_else() {
    let server = Server::start();
    let client = patient_builder(&server).name_prefix("app:").connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::String);
    let delayed = client.delayed_queue(&ready);
    delayed.offer(&text("later"), HOUR).await.unwrap();
    ready.put(&text("now")).await.unwrap();
    let mut keys = keys(&server);
    keys.sort();
    assert_eq!(
        keys.iter().map(|key| String::from_utf8_lossy(key)).collect::<Vec<_>>(),
        ["app:q", "redisson_delay_queue:{app:q}", "redisson_delay_queue_timeout:{app:q}"]
    );
    assert_eq!(ready.name(), "q");
    if server.is_cluster() {
        // The two have no slot in common.
        return;
    }
    assert_eq!(delayed.poll_last_and_offer_first_to("other").await.unwrap().as_deref(), Some("later"));
    let (name, _) = ready.poll_from_any(HOUR, &["other"]).await.unwrap().unwrap();
    assert_eq!(name, "q");
    let (name, _) = ready.poll_from_any(HOUR, &["other"]).await.unwrap().unwrap();
    assert_eq!(name, "other");
}

#[tokio::test]
async fn shutdown_ends_takers_and_later_calls() {
    let server = Server::start();
    let (client, ready, delayed) = text_queues(&server).await;
    let shutdown = async {
        until_async("somebody waits", || async { server.blocked_clients() == 1 }).await;
        client.shutdown().await;
    };
    let (taken, ()) = tokio::join!(ready.take(), shutdown);
    assert!(taken.unwrap_err().is_closed());
    assert!(ready.take().await.unwrap_err().is_closed());
    assert!(delayed.offer(&text("a"), HOUR).await.unwrap_err().is_closed());
    assert!(ready.len().await.unwrap_err().is_closed());
    until_async("no connection left", || async { server.clients_named("redelay") == 0 }).await;
}

#[tokio::test]
async fn dropping_the_last_clone_closes_everything() {
    let server = Server::start();
    let (client, ready, delayed) = text_queues(&server).await;
    delayed.offer(&text("a"), Duration::ZERO).await.unwrap();
    ready.take().await.unwrap();
    drop((client, ready));
    assert!(server.clients_named("redelay") > 0, "a queue keeps its client");
    drop(delayed);
    until_async("no connection left", || async { server.clients_named("redelay") == 0 }).await;
}

/// The client library mistakes some arrays of strings for announcements, and then gives replies to the wrong
/// callers.
#[tokio::test]
async fn payloads_that_read_like_announcements() {
    let server = Server::start();
    let (_client, ready, delayed) = text_queues(&server).await;
    let words = [
        "message",
        "pmessage",
        "smessage",
        "subscribe",
        "psubscribe",
        "unsubscribe",
        "punsubscribe",
        "pubsub",
    ];
    for word in words {
        for count in 3..=5 {
            let values: Vec<String> = std::iter::once(word).chain(["a"; 4]).take(count).map(text).collect();
            ready.offer_all(&values).await.unwrap();
            assert_eq!(ready.read_all().await.unwrap(), values);
            let drained = ready.poll_many(count).await.unwrap();
            assert_eq!(drained.into_iter().map(Result::unwrap).collect::<Vec<_>>(), values);
            delayed.offer_all(values.iter().map(|value| (value, HOUR))).await.unwrap();
            assert_eq!(delayed.read_all().await.unwrap(), values);
            assert_eq!(delayed.poll_many(count).await.unwrap().len(), count);
            assert_eq!(ready.len().await.unwrap(), 0, "replies stay in step");
        }
    }
}
