//! Quarantined entries are listed, counted, requeued and removed, all or none of them, once.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::future::join_all;
use redelay::admin::Quarantined;
use redelay::{ErrorKind, codec};
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{
    HOUR, ORDERED_LIST, QUARANTINE, TIMEOUT_SET, everything, keys, ms, soon, still_text_queues, text_queues,
};

fn good(payload: &str) -> Vec<u8> {
    [b"\x02id", &(payload.len() as u64).to_le_bytes()[..], payload.as_bytes()].concat()
}

/// Stores an entry as another producer would.
fn store(server: &Server, score: &str, entry: &[u8]) {
    server.cmd([b"ZADD", TIMEOUT_SET.as_bytes(), score.as_bytes(), entry]);
    server.cmd([b"RPUSH", ORDERED_LIST.as_bytes(), entry]);
}

/// Quarantines an entry, as a client does that cannot read it.
fn set_aside(server: &Server, score: &str, entry: &[u8]) {
    server.cmd([b"RPUSH", QUARANTINE.as_bytes(), score.as_bytes(), entry]);
}

fn entries(quarantined: &[Quarantined]) -> Vec<&[u8]> {
    quarantined.iter().map(|quarantined| &quarantined.entry[..]).collect()
}

fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()
}

#[tokio::test]
async fn is_listed_and_counted() {
    let server = Server::start();
    store(&server, "1", b"junk 1");
    store(&server, "2000.5", b"");
    store(&server, "-3", b"message");
    store(&server, "-inf", b"\xff\0\r\n");
    server.cmd(["RPUSH", ORDERED_LIST, "only in the list"]);
    let (_client, _ready, delayed) = text_queues(&server).await;
    until_async("set aside", || async { delayed.quarantine().len().await.unwrap() == 4 }).await;
    assert!(delayed.poll().await.unwrap().is_none(), "sets the fifth aside");

    let quarantined = delayed.quarantine().read(None, usize::MAX).await.unwrap();
    assert_eq!(entries(&quarantined), [&b"\xff\0\r\n"[..], b"message", b"junk 1", b"", b"only in the list"]);
    let dues: Vec<_> = quarantined.iter().map(|quarantined| quarantined.due).collect();
    assert_eq!(
        dues,
        [
            None,
            Some(UNIX_EPOCH - ms(3)),
            Some(UNIX_EPOCH + ms(1)),
            Some(UNIX_EPOCH + Duration::from_micros(2_000_500)),
            None
        ]
    );
    assert_eq!(delayed.quarantine().len().await.unwrap(), 5);
    for max in 0..7 {
        assert_eq!(delayed.quarantine().read(None, max).await.unwrap(), quarantined[..max.min(5)]);
    }
    assert!(!format!("{:?}", quarantined[2]).contains("junk"), "bytes have no place in a log");
}

#[tokio::test]
async fn an_empty_quarantine_is_empty() {
    let server = Server::start();
    let (_client, _ready, delayed) = still_text_queues(&server).await;
    assert_eq!(delayed.quarantine().len().await.unwrap(), 0);
    assert_eq!(delayed.quarantine().read(None, 10).await.unwrap(), []);
}

#[tokio::test]
async fn what_can_be_read_by_now_is_put_back_and_delivered_when_it_is_due() {
    let server = Server::start();
    let (_client, ready, delayed) = text_queues(&server).await;
    // The transfer task has made its first call, and sleeps for an hour.
    delayed.offer(&"later".to_owned(), HOUR).await.unwrap();
    until_async("looked", || async { delayed.stats().await.unwrap().transfers > 0 }).await;
    set_aside(&server, "1", &good("overdue"));
    let soon_due = format!("{}.25", now_ms() + 300);
    set_aside(&server, &soon_due, &good("soon due"));
    set_aside(&server, "32503680000000.25", &good("not due"));
    let quarantined = delayed.quarantine().read(None, 3).await.unwrap();
    assert!(delayed.quarantine().requeue(&quarantined[2]).await.unwrap());
    assert_eq!(delayed.read_all().await.unwrap(), ["later", "not due"], "it comes last");
    assert!(delayed.quarantine().requeue(&quarantined[0]).await.unwrap());
    assert_eq!(soon(ready.take()).await.unwrap(), "overdue", "it was announced");
    assert!(delayed.quarantine().requeue(&quarantined[1]).await.unwrap());
    assert_eq!(soon(ready.take()).await.unwrap(), "soon due", "it was announced");
    let due = quarantined[1].due.unwrap();
    assert!(SystemTime::now() >= due, "not early");
    for quarantined in &quarantined {
        assert!(!delayed.quarantine().requeue(quarantined).await.unwrap(), "it is not there any more");
        assert!(!delayed.quarantine().remove(quarantined).await.unwrap());
    }
    assert_eq!(delayed.quarantine().len().await.unwrap(), 0);
    assert_eq!(delayed.read_all().await.unwrap(), ["later", "not due"]);
}

#[tokio::test]
async fn is_put_back_as_it_was() {
    let server = Server::start();
    let (_client, _ready, delayed) = still_text_queues(&server).await;
    let scores = ["1e14", "-5", "0.5", "-inf", "inf", "9007199254740993", "1795249257299"];
    for (n, score) in scores.iter().enumerate() {
        store(&server, score, format!("junk {n}").as_bytes());
    }
    let before = (server.zset(TIMEOUT_SET), server.list(ORDERED_LIST));
    for (n, score) in scores.iter().enumerate() {
        let entry = format!("junk {n}");
        let written: Vec<u8> = server.get(["ZSCORE", TIMEOUT_SET, &entry]);
        server.cmd(["ZREM", TIMEOUT_SET, &entry]);
        server.cmd(["LREM", ORDERED_LIST, "1", &entry]);
        set_aside(&server, std::str::from_utf8(&written).unwrap(), entry.as_bytes());
        let quarantined = delayed.quarantine().read(None, 1).await.unwrap();
        assert!(delayed.quarantine().requeue(&quarantined[0]).await.unwrap(), "{score}");
    }
    assert_eq!((server.zset(TIMEOUT_SET), server.list(ORDERED_LIST)), before);
    // And entries that were in the list only.
    set_aside(&server, "", b"only in the list");
    let quarantined = delayed.quarantine().read(None, 1).await.unwrap();
    assert!(delayed.quarantine().requeue(&quarantined[0]).await.unwrap());
    assert_eq!(server.zset(TIMEOUT_SET), before.0);
    assert_eq!(server.list(ORDERED_LIST).last().unwrap(), b"only in the list");
}

#[tokio::test]
async fn what_still_cannot_be_read_is_set_aside_again() {
    let server = Server::start();
    let (_client, ready, delayed) = text_queues(&server).await;
    store(&server, "1", b"junk");
    server.cmd(["PUBLISH", "redisson_delay_queue_channel:{q}", "1"]);
    for round in 1..=3 {
        until_async("set aside", || async { delayed.quarantine().len().await.unwrap() == 1 }).await;
        until_async("counted", || async {
            delayed.stats().await.unwrap().quarantined_by_this_client == round
        })
        .await;
        let quarantined = delayed.quarantine().read(None, 1).await.unwrap();
        assert!(delayed.quarantine().requeue(&quarantined[0]).await.unwrap());
    }
    delayed.offer(&"good".to_owned(), ms(1)).await.unwrap();
    assert_eq!(soon(ready.take()).await.unwrap(), "good");
}

#[tokio::test]
async fn an_entry_that_is_pending_is_not_stored_twice() {
    let server = Server::start();
    let (_client, _ready, delayed) = still_text_queues(&server).await;
    store(&server, "7", b"junk");
    set_aside(&server, "9", b"junk");
    let quarantined = delayed.quarantine().read(None, 1).await.unwrap();
    assert!(delayed.quarantine().requeue(&quarantined[0]).await.unwrap());
    assert_eq!(server.zset(TIMEOUT_SET), [(b"junk".to_vec(), 7.0)]);
    assert_eq!(server.list(ORDERED_LIST), [b"junk"]);
    assert_eq!(delayed.quarantine().len().await.unwrap(), 0);
}

/// Entries that look like scores, like each other, and like the marker that the script writes temporarily.
#[tokio::test]
async fn just_the_one_that_is_meant_goes() {
    let server = Server::start();
    let (_client, _ready, delayed) = still_text_queues(&server).await;
    let pairs: [(&str, &[u8]); 10] = [
        ("1", b"2"),
        ("2", b"1"),
        ("1", b"1"),
        ("1", b"2"),
        ("", b""),
        ("1", b"gone"),
        ("1", b"gone."),
        ("3", b"gone"),
        ("", b"1"),
        ("2", b"2"),
    ];
    let fill = || {
        server.cmd(["FLUSHALL"]);
        pairs.iter().for_each(|(score, entry)| set_aside(&server, score, entry));
    };
    for put_back in [false, true] {
        for at in 0..pairs.len() {
            fill();
            let all = delayed.quarantine().read(None, usize::MAX).await.unwrap();
            let done = match put_back {
                false => delayed.quarantine().remove(&all[at]).await.unwrap(),
                true => delayed.quarantine().requeue(&all[at]).await.unwrap(),
            };
            assert!(done);
            // The first of two equal entries.
            let first = all.iter().position(|other| *other == all[at]).unwrap();
            let left = [&all[..first], &all[first + 1..]].concat();
            assert_eq!(delayed.quarantine().read(None, usize::MAX).await.unwrap(), left, "{:?}", pairs[at]);
            let pending = server.list(ORDERED_LIST);
            assert_eq!(pending, if put_back { vec![pairs[at].1.to_vec()] } else { vec![] });
        }
    }
    fill();
    for quarantined in delayed.quarantine().read(None, usize::MAX).await.unwrap() {
        assert!(delayed.quarantine().remove(&quarantined).await.unwrap());
    }
    assert_eq!(keys(&server), Vec::<Vec<u8>>::new());
}

#[tokio::test]
async fn thousands_are_read_and_dropped() {
    let server = Server::start();
    let (_client, _ready, delayed) = text_queues(&server).await;
    for n in 0..3_000 {
        store(&server, "1", format!("junk {n}").as_bytes());
    }
    server.cmd(["PUBLISH", "redisson_delay_queue_channel:{q}", "1"]);
    until_async("set aside", || async { delayed.quarantine().len().await.unwrap() == 3_000 }).await;
    let all = delayed.quarantine().read(None, usize::MAX).await.unwrap();
    assert_eq!(all.len(), 3_000);
    for quarantined in all.iter().rev().take(50).chain(&all[..50]) {
        assert!(delayed.quarantine().remove(quarantined).await.unwrap());
    }
    assert_eq!(delayed.quarantine().read(None, usize::MAX).await.unwrap(), all[50..2_950]);
}

#[tokio::test]
async fn all_of_it_or_nothing() {
    let server = Server::start();
    let (_client, _ready, delayed) = still_text_queues(&server).await;
    set_aside(&server, "1", b"junk");
    let quarantined = delayed.quarantine().read(None, 1).await.unwrap().remove(0);
    for wrong in [TIMEOUT_SET, ORDERED_LIST, QUARANTINE] {
        server.cmd(["FLUSHALL"]);
        set_aside(&server, "1", b"junk");
        server.cmd(["SET", wrong, "of another type"]);
        let before = everything(&server);
        let error = delayed.quarantine().requeue(&quarantined).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{wrong}: {error}");
        assert_eq!(everything(&server), before, "{wrong}");
    }
    for error in [
        delayed.quarantine().remove(&quarantined).await.unwrap_err(),
        delayed.quarantine().read(None, 1).await.unwrap_err(),
        delayed.quarantine().len().await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    }
    // A score that was edited by hand and is not a number.
    server.cmd(["FLUSHALL"]);
    set_aside(&server, "soon", b"junk");
    let before = everything(&server);
    let quarantined = delayed.quarantine().read(None, 1).await.unwrap().remove(0);
    assert_eq!(quarantined.due, None);
    let error = delayed.quarantine().requeue(&quarantined).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert_eq!(everything(&server), before);
    assert!(delayed.quarantine().remove(&quarantined).await.unwrap());
}

#[tokio::test]
async fn an_entry_of_another_queue_is_refused() {
    let server = Server::start();
    let (client, _ready, delayed) = still_text_queues(&server).await;
    set_aside(&server, "1", b"junk");
    let quarantined = delayed.quarantine().read(None, 1).await.unwrap().remove(0);
    let other = client.delayed_queue(&client.blocking_queue("other", codec::String));
    for error in [
        other.quarantine().requeue(&quarantined).await.unwrap_err(),
        other.quarantine().remove(&quarantined).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("of another queue: `q`"), "{error}");
    }
    assert_eq!(delayed.quarantine().len().await.unwrap(), 1);
}

#[tokio::test]
async fn what_removes_the_pending_leaves_it_alone() {
    let server = Server::start();
    let (_client, ready, delayed) = still_text_queues(&server).await;
    set_aside(&server, "1", b"junk");
    delayed.offer(&"a".to_owned(), HOUR).await.unwrap();
    assert!(delayed.expire(ms(1)).await.unwrap());
    until_async("gone", || async { delayed.is_empty().await.unwrap() }).await;
    delayed.offer(&"a".to_owned(), HOUR).await.unwrap();
    assert!(delayed.clear().await.unwrap());
    assert!(!delayed.delete().await.unwrap());
    assert!(!delayed.retain_all([]).await.unwrap());
    assert!(!ready.delete().await.unwrap());
    assert_eq!(delayed.quarantine().len().await.unwrap(), 1);
    assert_eq!(keys(&server), [QUARANTINE.as_bytes()]);
}

#[tokio::test]
async fn of_many_who_put_back_or_drop_the_same_one_succeeds() {
    let server = Server::start();
    let clients = join_all((0..4).map(|_| still_text_queues(&server))).await;
    for n in 0..20 {
        set_aside(&server, "5e14", format!("junk {n}").as_bytes());
    }
    let all = clients[0].2.quarantine().read(None, usize::MAX).await.unwrap();
    for quarantined in &all {
        let done = join_all(clients.iter().enumerate().map(|(n, (_, _, delayed))| async move {
            match n % 2 {
                0 => delayed.quarantine().requeue(quarantined).await.unwrap(),
                _ => delayed.quarantine().remove(quarantined).await.unwrap(),
            }
        }));
        assert_eq!(done.await.into_iter().filter(|done| *done).count(), 1);
    }
    let stats = clients[0].2.stats().await.unwrap();
    assert_eq!(stats.quarantined, 0);
    assert_eq!(stats.pending, stats.list_len);
}

#[tokio::test]
async fn a_lost_reply_costs_nothing_and_doubles_nothing() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    for put_back in [true, false] {
        server.cmd(["FLUSHALL"]);
        set_aside(&server, "5e14", b"junk");
        let (_client, _ready, delayed) = still_text_queues(&proxy).await;
        // After that, the scripts are loaded.
        set_aside(&server, "6e14", b"other");
        let known = delayed.quarantine().read(None, 2).await.unwrap();
        assert!(delayed.quarantine().requeue(&known[1]).await.unwrap());
        server.cmd(["DEL", TIMEOUT_SET, ORDERED_LIST]);
        set_aside(&server, "6e14", b"other");
        assert!(delayed.quarantine().remove(&known[1]).await.unwrap());

        let call = async || match put_back {
            true => delayed.quarantine().requeue(&known[0]).await,
            false => delayed.quarantine().remove(&known[0]).await,
        };
        proxy.hold_replies(true);
        let losing = async {
            until_async("the server has done it, and answers", || async {
                server.list(QUARANTINE).is_empty() && proxy.held() > 0
            })
            .await;
            proxy.cut();
            proxy.hold_replies(false);
        };
        let (answer, ()) = tokio::join!(call(), losing);
        let error = answer.unwrap_err();
        assert!(error.is_outcome_unknown(), "{error}");
        assert!(!soon(call()).await.unwrap(), "the first call has done it");
        let expected = if put_back { vec![b"junk".to_vec()] } else { vec![] };
        assert_eq!(server.list(ORDERED_LIST), expected);
    }
}

/// A call looks at about 1 MB, whatever it is.
#[tokio::test]
async fn malformed_entries_hide_nothing_from_a_poll() {
    let server = Server::start();
    let (_client, _ready, delayed) = still_text_queues(&server).await;
    let fill = |long: usize| {
        for n in 0..long {
            store(&server, "32503680000000", format!("{n:02}{}", "x".repeat(100_000)).as_bytes());
        }
        for n in 0..5 {
            store(&server, "32503680000000", &good(&n.to_string()));
        }
    };
    fill(11);
    assert_eq!(delayed.poll().await.unwrap().as_deref(), Some("0"));
    assert_eq!(delayed.poll_many(100).await.unwrap().len(), 4);
    fill(35);
    let polled: Vec<_> = delayed.poll_many(100).await.unwrap().into_iter().map(Result::unwrap).collect();
    assert_eq!(polled, ["0", "1", "2", "3", "4"]);
    assert_eq!(delayed.quarantine().len().await.unwrap(), 46);
    assert_eq!(delayed.poll().await.unwrap(), None);
}
