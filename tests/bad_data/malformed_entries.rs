//! Unreadable entries are quarantined with their scores, wherever a client finds them. Their neighbours are
//! delivered once, and the queue goes on.

use redelay::{BlockingQueue, DelayedQueue};
use redelay_fixture::{Server, until_async};
use redelay_support::{
    ORDERED_LIST, QUARANTINE, TIMEOUT_SET, keys, ms, soon, still_text_queues, text, text_queues,
};

/// A description, and the bytes. Each of these entries blocks Redisson 4.7.0 for ever, as measured.
const SHAPES: [(&str, &[u8]); 12] = [
    ("an empty member", b""),
    ("one byte", b"\x08"),
    ("an id and nothing else", b"\x02ab"),
    ("an id longer than the rest", b"\xffabcdefgh\x05\0\0\0\0\0\0\0hello"),
    ("a length longer than the rest", b"\x01a\x09\0\0\0\0\0\0\0hello"),
    ("a length of 2^63", b"\x01a\0\0\0\0\0\0\0\x80hello"),
    ("a length of 2^64 - 1", b"\x01a\xff\xff\xff\xff\xff\xff\xff\xffhello"),
    (
        "a length of 2^64 - 8, which comes out right with an overflow",
        b"\x02ab\xf8\xff\xff\xff\xff\xff\xff\xffhello",
    ),
    ("a length of 4 bytes", b"\x02ab\x05\0\0\0hello"),
    ("a big-endian length", b"\x08abcdefgh\0\0\0\0\0\0\0\x05hello"),
    ("an old entry that ends too early", b"abcdefgh\x05\0\0\0\0\0\0\0hell"),
    ("text", b"hello"),
];

fn good(payload: &str) -> Vec<u8> {
    [b"\x02id", &(payload.len() as u64).to_le_bytes()[..], payload.as_bytes()].concat()
}

/// Stores an entry as another producer would, without an announcement.
fn store(server: &Server, score: &str, entry: &[u8]) {
    server.cmd([b"ZADD", TIMEOUT_SET.as_bytes(), score.as_bytes(), entry]);
    server.cmd([b"RPUSH", ORDERED_LIST.as_bytes(), entry]);
}

/// The quarantine: scores and entries in turn.
fn quarantined(server: &Server) -> Vec<(String, Vec<u8>)> {
    let list = server.list(QUARANTINE);
    assert!(list.len().is_multiple_of(2));
    list.chunks(2).map(|pair| (String::from_utf8(pair[0].clone()).unwrap(), pair[1].clone())).collect()
}

/// Takes these payloads, and then new ones one by one, each for only a few script calls. Checks that an idle
/// queue costs none.
async fn takes_and_goes_on(
    server: &Server,
    ready: &BlockingQueue<String>,
    delayed: &DelayedQueue<String>,
    expected: &[&str],
) {
    for payload in expected {
        assert_eq!(soon(ready.take()).await.unwrap(), *payload);
    }
    let before = server.command_calls("evalsha");
    for delay in [0, 1, 2, 3, 0, 1, 2, 3, 5, 20] {
        let element = format!("after {delay}");
        delayed.offer(&element, ms(delay)).await.unwrap();
        assert_eq!(soon(ready.take()).await.unwrap(), element);
    }
    assert_eq!(ready.poll_timeout(ms(50)).await.unwrap(), None);
    let calls = server.command_calls("evalsha") - before;
    assert!(calls <= 10 * 4, "{calls} script calls for 10 elements");
    assert_eq!(ready.poll().await.unwrap(), None);
    assert_eq!(keys(server), [QUARANTINE.as_bytes()]);
}

#[tokio::test]
async fn each_shape_is_set_aside_with_its_score_wherever_it_is_in_the_batch() {
    let server = Server::start();
    for (shape, malformed) in SHAPES {
        for place in [0, 2, 4] {
            let mut entries: Vec<_> = ["a", "b", "c", "d"].map(good).into();
            entries.insert(place, malformed.to_vec());
            for (n, entry) in entries.iter().enumerate() {
                store(&server, &(n + 1).to_string(), entry);
            }
            let (client, ready, delayed) = text_queues(&server).await;
            takes_and_goes_on(&server, &ready, &delayed, &["a", "b", "c", "d"]).await;
            assert_eq!(quarantined(&server), [((place + 1).to_string(), malformed.to_vec())], "{shape}");
            client.shutdown().await;
            server.cmd(["DEL", QUARANTINE]);
        }
    }
}

#[tokio::test]
async fn what_is_set_aside_is_appended_to_what_was() {
    let server = Server::start();
    let (_client, ready, delayed) = text_queues(&server).await;
    let mut expected = Vec::new();
    for (n, (shape, malformed)) in SHAPES.into_iter().enumerate() {
        let score = format!("{}.5", 1000 * n);
        store(&server, &score, malformed);
        server.cmd(["PUBLISH", "redisson_delay_queue_channel:{q}", &score]);
        expected.push((score, malformed.to_vec()));
        until_async(shape, || async { quarantined(&server) == expected }).await;
        delayed.offer(&text(shape), ms(1)).await.unwrap();
        assert_eq!(soon(ready.take()).await.unwrap(), shape);
    }
}

#[tokio::test]
async fn hundreds_of_them_at_the_head_hold_nothing_up() {
    let server = Server::start();
    for n in 0..700 {
        store(&server, "1", format!("junk {n}").as_bytes());
    }
    store(&server, "2", &good("a"));
    let (_client, ready, delayed) = text_queues(&server).await;
    takes_and_goes_on(&server, &ready, &delayed, &["a"]).await;
    assert_eq!(quarantined(&server).len(), 700);
}

#[tokio::test]
async fn one_that_is_not_due_waits_like_any_other() {
    let server = Server::start();
    store(&server, "1e14", b"junk");
    let (_client, ready, delayed) = text_queues(&server).await;
    for n in 0..20 {
        delayed.offer(&n.to_string(), ms(n % 4)).await.unwrap();
        assert_eq!(soon(ready.take()).await.unwrap(), n.to_string());
    }
    assert_eq!(server.zset(TIMEOUT_SET), [(b"junk".to_vec(), 1e14)]);
    assert_eq!(server.list(ORDERED_LIST), [b"junk"]);
    assert_eq!(quarantined(&server), []);
}

#[tokio::test]
async fn trailing_bytes_are_ignored_as_redisson_does() {
    let server = Server::start();
    let with_trailing = [&good("a")[..], b" and more"].concat();
    store(&server, "1", &with_trailing);
    store(&server, "2", &good("b"));
    let (_client, ready, delayed) = still_text_queues(&server).await;
    assert_eq!(delayed.read_all().await.unwrap(), ["a", "b"]);
    assert!(delayed.contains(&text("a")).await.unwrap());
    let (_client, mover, _delayed) = text_queues(&server).await;
    assert_eq!(soon(mover.take()).await.unwrap(), "a");
    assert_eq!(soon(mover.take()).await.unwrap(), "b");
    assert!(ready.is_empty().await.unwrap());
    assert_eq!(keys(&server), Vec::<Vec<u8>>::new());
}

#[tokio::test]
async fn reading_leaves_them_out() {
    let server = Server::start();
    let (_client, _ready, delayed) = still_text_queues(&server).await;
    store(&server, "1", b"junk 1");
    store(&server, "2", &good("a"));
    store(&server, "3", b"junk 2");
    store(&server, "4", &good("b"));
    assert_eq!(delayed.len().await.unwrap(), 4, "as Redisson counts");
    assert_eq!(delayed.read_all().await.unwrap(), ["a", "b"]);
    assert!(delayed.contains_all([&text("a"), &text("b")]).await.unwrap());
    assert!(delayed.remove(&text("b")).await.unwrap());
    assert!(delayed.retain_all([&text("a")]).await.is_ok());
    assert_eq!(delayed.read_all().await.unwrap(), ["a"]);
    assert_eq!(server.zset(TIMEOUT_SET).len(), 3);
}

#[tokio::test]
async fn peek_looks_behind_them() {
    let server = Server::start();
    let (_client, _ready, delayed) = still_text_queues(&server).await;
    store(&server, "1", b"junk 1");
    assert_eq!(delayed.peek().await.unwrap(), None);
    for n in 0..300 {
        store(&server, "2", format!("junk {n}").as_bytes());
    }
    store(&server, "3", &good("a"));
    assert_eq!(delayed.peek().await.unwrap().as_deref(), Some("a"));
}

#[tokio::test]
async fn polling_sets_them_aside_and_goes_on_to_the_next() {
    let server = Server::start();
    let (_client, _ready, delayed) = still_text_queues(&server).await;
    let fill = || {
        server.cmd(["FLUSHALL"]);
        server.cmd(["RPUSH", ORDERED_LIST, "only in the list"]);
        for (n, (_, malformed)) in SHAPES.into_iter().enumerate() {
            store(&server, &format!("{n}.5"), malformed);
        }
        for payload in ["a", "b"] {
            store(&server, "99", &good(payload));
        }
        for (n, (_, malformed)) in SHAPES.into_iter().enumerate() {
            store(&server, &format!("{n}.75"), &[malformed, b"\xff\xff"].concat());
        }
    };
    let first_half: Vec<_> = [(String::new(), b"only in the list".to_vec())]
        .into_iter()
        .chain((0..).zip(SHAPES).map(|(n, (_, malformed))| (format!("{n}.5"), malformed.to_vec())))
        .collect();

    fill();
    assert_eq!(delayed.poll().await.unwrap().as_deref(), Some("a"));
    assert_eq!(quarantined(&server), first_half);
    fill();
    let polled: Vec<_> = delayed.poll_many(2).await.unwrap().into_iter().map(Result::unwrap).collect();
    assert_eq!(polled, ["a", "b"]);
    assert_eq!(quarantined(&server), first_half);
    assert_eq!(delayed.poll_many(2).await.unwrap().len(), 0);
    assert_eq!(keys(&server), [QUARANTINE.as_bytes()]);
    fill();
    assert_eq!(delayed.poll_last_and_offer_first_to("{q}other").await.unwrap().as_deref(), Some("b"));
    assert_eq!(quarantined(&server).len(), SHAPES.len());
    assert_eq!(server.list("{q}other"), [b"b"]);
    assert_eq!(server.zset(TIMEOUT_SET).len(), SHAPES.len() + 1, "the others were not looked at");
    assert_eq!(delayed.poll().await.unwrap().as_deref(), Some("a"));
    assert_eq!(delayed.poll().await.unwrap(), None);
    assert_eq!(quarantined(&server).len(), 2 * SHAPES.len() + 1);
}
