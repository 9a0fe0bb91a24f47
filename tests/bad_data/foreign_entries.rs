//! Entries from other producers, valid or not: strange ids and scores, the old format, entries in only one of
//! the two structures, and unreadable bytes. What can be delivered is delivered once. The rest delays
//! nothing.

use redelay::delayed_queue::EntryFormat;
use redelay::{BlockingQueue, DelayedQueue};
use redelay_fixture::{Server, until_async};
use redelay_support::{
    HOUR, ORDERED_LIST, TIMEOUT_SET, keys, ms, soon, still_text_queues, text, text_queues,
};
use tokio_test::{assert_pending, task};

/// A client that transfers nothing, so that the keys stay as they were written.
async fn still(server: &Server) -> (BlockingQueue<String>, DelayedQueue<String>) {
    let (_client, ready, delayed) = still_text_queues(server).await;
    (ready, delayed)
}

fn entry(id: &[u8], payload: &str) -> Vec<u8> {
    let length = (payload.len() as u64).to_le_bytes();
    [&[id.len() as u8], id, &length, payload.as_bytes()].concat()
}

/// An entry as Redisson up to 3.21.0 writes it.
fn legacy_entry(id: f64, payload: &str) -> Vec<u8> {
    let length = (payload.len() as u64).to_le_bytes();
    [&id.to_le_bytes(), &length[..], payload.as_bytes()].concat()
}

/// The server's clock in epoch ms, plus this time.
fn due_in(server: &Server, millis: i64) -> String {
    let (seconds, micros): (i64, i64) = server.get(["TIME"]);
    (seconds * 1000 + micros / 1000 + millis).to_string()
}

/// Stores an entry as another producer would, without an announcement.
fn store(server: &Server, score: &str, entry: &[u8]) {
    server.cmd([b"ZADD", TIMEOUT_SET.as_bytes(), score.as_bytes(), entry]);
    server.cmd([b"RPUSH", ORDERED_LIST.as_bytes(), entry]);
}

/// Takes as many as are expected, and then finds nothing.
async fn takes(ready: &BlockingQueue<String>, expected: &[&str]) {
    let mut taken = Vec::new();
    for _ in expected {
        taken.push(soon(ready.take()).await.unwrap());
    }
    assert_eq!(taken, expected);
    assert_eq!(ready.poll().await.unwrap(), None);
}

/// Checks that new payloads are delivered one by one, each for only a few script calls, and that an idle
/// queue costs none.
async fn goes_on(server: &Server, ready: &BlockingQueue<String>, delayed: &DelayedQueue<String>) {
    let before = server.command_calls("evalsha");
    for delay in [0, 1, 2, 3, 0, 1, 2, 3, 5, 20] {
        let element = format!("after {delay}");
        delayed.offer(&element, ms(delay)).await.unwrap();
        assert_eq!(soon(ready.take()).await.unwrap(), element);
    }
    assert_eq!(ready.poll_timeout(ms(50)).await.unwrap(), None);
    let calls = server.command_calls("evalsha") - before;
    assert!(calls <= 10 * 4, "{calls} script calls for 10 elements");
}

#[tokio::test]
async fn ids_of_any_length_are_delivered_listed_removed_and_polled() {
    let server = Server::start();
    let (_ready, delayed) = still(&server).await;
    let lengths = [0, 1, 7, 8, 9, 16, 32, 127, 128, 255];
    let fill = |score: &str| {
        for length in lengths {
            store(&server, score, &entry(&vec![length as u8; length], &format!("id of {length}")));
        }
    };
    let expected = lengths.map(|length| format!("id of {length}"));
    fill(&due_in(&server, 3_600_000));
    assert_eq!(delayed.read_all().await.unwrap(), expected);
    assert!(delayed.contains_all(&expected).await.unwrap());
    for value in &expected {
        assert!(delayed.remove(value).await.unwrap(), "{value}");
    }
    assert_eq!(keys(&server), Vec::<Vec<u8>>::new());
    fill(&due_in(&server, 3_600_000));
    let polled: Vec<_> = delayed.poll_many(99).await.unwrap().into_iter().map(Result::unwrap).collect();
    assert_eq!(polled, expected);
    fill("1");
    let (_client, ready, _delayed) = text_queues(&server).await;
    // Their due times are equal, so they are in the order of their bytes, which begin with the length of the
    // id.
    takes(&ready, &expected.each_ref().map(String::as_str)).await;
    assert_eq!(keys(&server), Vec::<Vec<u8>>::new());
}

#[tokio::test]
async fn entries_of_the_old_format_are_delivered_listed_removed_and_polled() {
    let server = Server::start();
    let (_ready, delayed) = still(&server).await;
    let fill = |score: &str| {
        for (n, payload) in
            ["a", "b", "", "d", "a long one, with more than a few bytes"].into_iter().enumerate()
        {
            store(&server, score, &legacy_entry(-6.9e18 + 1e15 * n as f64, payload));
        }
    };
    fill(&due_in(&server, 3_600_000));
    assert_eq!(delayed.len().await.unwrap(), 5);
    assert_eq!(delayed.peek().await.unwrap().as_deref(), Some("a"));
    assert_eq!(delayed.read_all().await.unwrap()[..4], ["a", "b", "", "d"]);
    assert!(delayed.contains(&text("d")).await.unwrap());
    assert!(delayed.remove(&text("b")).await.unwrap());
    assert!(delayed.retain_all([&text("a"), &text("d"), &text("")]).await.unwrap());
    assert_eq!(delayed.poll().await.unwrap().as_deref(), Some("a"));
    assert_eq!(delayed.poll_last_and_offer_first_to("{q}other").await.unwrap().as_deref(), Some("d"));
    assert_eq!(delayed.read_all().await.unwrap(), [""]);
    server.cmd(["FLUSHALL"]);
    fill("1");
    let (_client, ready, _delayed) = text_queues(&server).await;
    let mut taken = Vec::new();
    for _ in 0..5 {
        taken.push(soon(ready.take()).await.unwrap());
    }
    taken.sort();
    assert_eq!(taken, ["", "a", "a long one, with more than a few bytes", "b", "d"]);
    assert_eq!(keys(&server), Vec::<Vec<u8>>::new());
}

#[tokio::test]
async fn the_old_format_is_written_when_asked_for() {
    let server = Server::start();
    let (_client, ready, delayed) = text_queues(&server).await;
    let delayed = delayed.with_entry_format(EntryFormat::Legacy);
    let hello = text("hello");
    let first = delayed.offer(&hello, HOUR).await.unwrap();
    delayed.offer_all([(&hello, HOUR), (&hello, HOUR)]).await.unwrap();
    let entries = server.list(ORDERED_LIST);
    for entry in &entries {
        assert_eq!((entry.len(), &entry[8..16], &entry[16..]), (21, &5_u64.to_le_bytes()[..], &b"hello"[..]));
    }
    assert_ne!(entries[0], entries[1]);
    assert!(delayed.reschedule(&first, ms(1)).await.unwrap());
    takes(&ready, &["hello"]).await;
    assert_eq!(delayed.len().await.unwrap(), 2);
}

#[tokio::test]
async fn an_entry_that_is_only_in_the_timeout_set_is_delivered() {
    let server = Server::start();
    let (_client, ready, delayed) = text_queues(&server).await;
    server.cmd([b"ZADD", TIMEOUT_SET.as_bytes(), b"1", &entry(b"id", "a")]);
    assert_eq!(delayed.len().await.unwrap(), 0);
    delayed.offer(&text("b"), ms(1)).await.unwrap();
    takes(&ready, &["a", "b"]).await;
    assert_eq!(keys(&server), Vec::<Vec<u8>>::new());
}

#[tokio::test]
async fn an_entry_that_is_only_in_the_ordered_list_is_counted_listed_and_removed_but_not_delivered() {
    let server = Server::start();
    let (_client, ready, delayed) = text_queues(&server).await;
    let phantom = entry(b"id", "phantom");
    server.cmd([b"RPUSH", ORDERED_LIST.as_bytes(), &phantom]);
    goes_on(&server, &ready, &delayed).await;
    assert_eq!(delayed.len().await.unwrap(), 1);
    assert_eq!(delayed.read_all().await.unwrap(), ["phantom"]);
    assert_eq!(delayed.peek().await.unwrap().as_deref(), Some("phantom"));
    assert!(delayed.contains(&text("phantom")).await.unwrap());

    // Polled for a future that is dropped unread, it is returned unchanged.
    let mut poll = task::spawn(delayed.poll());
    assert_pending!(poll.poll());
    until_async("polled", || std::future::ready(poll.is_woken())).await;
    assert_eq!(server.list(ORDERED_LIST), Vec::<Vec<u8>>::new());
    drop(poll);
    until_async("restored", || async { server.list(ORDERED_LIST) == [phantom.clone()] }).await;
    assert_eq!(server.zset(TIMEOUT_SET), []);

    assert!(delayed.remove(&text("phantom")).await.unwrap());
    server.cmd([b"RPUSH", ORDERED_LIST.as_bytes(), &phantom]);
    assert_eq!(delayed.poll().await.unwrap().as_deref(), Some("phantom"));
    assert!(delayed.is_empty().await.unwrap());
}

#[tokio::test]
async fn scores_that_are_due_in_any_notation_are_delivered() {
    let server = Server::start();
    let now = due_in(&server, 0);
    let scores = ["-inf", "-9.2e18", "-5", "-0.5", "0", "0.25", "1", "1.5e12", &format!("{now}.5")];
    for (n, score) in scores.iter().enumerate() {
        store(&server, score, &entry(b"id", &n.to_string()));
    }
    let (_client, ready, delayed) = text_queues(&server).await;
    takes(&ready, &["0", "1", "2", "3", "4", "5", "6", "7", "8"]).await;
    assert_eq!(keys(&server), Vec::<Vec<u8>>::new());
    goes_on(&server, &ready, &delayed).await;
}

#[tokio::test]
async fn each_score_that_is_due_is_delivered_when_it_is_the_only_one() {
    for score in ["-inf", "-5", "-0.5", "0", "0.25", "1.5e12"] {
        let server = Server::start();
        store(&server, score, &entry(b"id", "a"));
        let (_client, ready, delayed) = text_queues(&server).await;
        takes(&ready, &["a"]).await;
        goes_on(&server, &ready, &delayed).await;
    }
}

#[tokio::test]
async fn fractional_scores_ahead_are_delivered_when_they_are_due() {
    let server = Server::start();
    for n in 0..10 {
        let score = format!("{}.{n}", due_in(&server, 20 + 3 * n));
        store(&server, &score, &entry(b"id", &n.to_string()));
    }
    let (_client, ready, delayed) = text_queues(&server).await;
    takes(&ready, &["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]).await;
    goes_on(&server, &ready, &delayed).await;
}

#[tokio::test]
async fn scores_that_are_never_due_stay_and_hold_nothing_up() {
    for score in ["+inf", "1e20", "1e15", "9007199254740993", "253402300800000.5"] {
        let server = Server::start();
        store(&server, score, &entry(b"id", "never"));
        let (_client, ready, delayed) = text_queues(&server).await;
        goes_on(&server, &ready, &delayed).await;
        assert_eq!(delayed.read_all().await.unwrap(), ["never"]);
        // A poll whose future is dropped changes neither position nor score.
        let before = server.zset(TIMEOUT_SET);
        let mut poll = task::spawn(delayed.poll());
        assert_pending!(poll.poll());
        until_async("polled", || std::future::ready(poll.is_woken())).await;
        drop(poll);
        until_async("restored", || async { server.zset(TIMEOUT_SET) == before }).await;
        goes_on(&server, &ready, &delayed).await;
        assert!(delayed.remove(&text("never")).await.unwrap());
    }
}

#[tokio::test]
async fn the_same_entry_stored_twice_is_delivered_once() {
    let server = Server::start();
    for _ in 0..2 {
        store(&server, "1", &entry(b"id", "a"));
    }
    let (_client, ready, delayed) = text_queues(&server).await;
    takes(&ready, &["a"]).await;
    goes_on(&server, &ready, &delayed).await;
    assert!(delayed.len().await.unwrap() <= 1);
}

#[tokio::test]
async fn an_entry_that_is_in_the_list_several_times_is_removed_for_good() {
    let server = Server::start();
    let (_ready, delayed) = still(&server).await;
    for (others, first) in [(0, "a"), (0, "b"), (40, "b")] {
        store(&server, "1e14", &entry(b"first", first));
        for _ in 0..3 {
            store(&server, "1e14", &entry(b"id", "a"));
            for n in 0..others {
                store(&server, "1e14", &entry(&[n], "a"));
            }
        }
        store(&server, "1e14", &entry(b"{q}other", "b"));
        assert!(delayed.remove_all([&text("a")]).await.unwrap());
        assert!(delayed.read_all().await.unwrap().iter().all(|left| left == "b"));
        assert!(delayed.retain_all([]).await.unwrap());
        assert_eq!(keys(&server), Vec::<Vec<u8>>::new());
    }
}
