//! Keys of another type in place of a queue's keys. Each operation is refused with a sentence, nothing is
//! half written, and other queues of the same client go on. When the wrong key is gone, everything goes on by
//! itself.

use std::time::{Duration, SystemTime};

use futures::future::{BoxFuture, FutureExt};
use futures::stream::StreamExt;
use redelay::delayed_queue::Ticket;
use redelay::{BlockingQueue, Client, DelayedQueue, ErrorKind, Result, codec};
use redelay_fixture::{Server, until_async};
use redelay_support::{HOUR, ORDERED_LIST, QUARANTINE, TARGET, TIMEOUT_SET, keys, lasting, ms, slowly, soon};
use tokio::time::Instant;

#[derive(Clone)]
struct Queues {
    client: Client,
    ready: BlockingQueue<i64>,
    delayed: DelayedQueue<i64>,
    /// The ticket of a stored entry.
    ticket: Ticket,
}

/// A queue with 1 and 2 pending, and the contents of the keys.
async fn queues(server: &Server) -> Queues {
    let client = Client::connect(&server.url()).await.expect("a connection");
    let ready = client.blocking_queue(TARGET, codec::Long);
    let delayed = client.delayed_queue(&ready);
    delayed.offer(&1, HOUR).await.unwrap();
    let ticket = delayed.offer(&2, HOUR).await.unwrap();
    Queues { client, ready, delayed, ticket }
}

type Call = (&'static str, fn(Queues) -> BoxFuture<'static, Result<()>>);

macro_rules! calls {
    ($($queues:ident . $queue:ident . $call:ident ($($arg:expr),*)),+ $(,)?) => {
        [$((
            concat!(stringify!($queue), ".", stringify!($call)),
            |$queues: Queues| async move { $queues.$queue.$call($($arg),*).await.map(drop) }.boxed(),
        )),+]
    };
}

const OF_THE_TARGET: &[Call] = &calls![
    q.ready.put(&1),
    q.ready.offer(&1),
    q.ready.offer_all([&1, &2]),
    q.ready.peek(),
    q.ready.peek_last(),
    q.ready.len(),
    q.ready.is_empty(),
    q.ready.contains(&1),
    q.ready.contains_all([&1, &2]),
    q.ready.remove(&1),
    q.ready.remove_all([&1, &2]),
    q.ready.remove_all([]),
    q.ready.retain_all([&1, &2]),
    q.ready.retain_all([]),
    q.ready.read_all(),
    q.ready.take(),
    q.ready.take_last(),
    q.ready.poll(),
    q.ready.poll_last(),
    q.ready.poll_timeout(HOUR),
    q.ready.poll_timeout(Duration::ZERO),
    q.ready.poll_last_timeout(HOUR),
    q.ready.poll_last_timeout(Duration::ZERO),
    q.ready.poll_many(3),
    q.ready.poll_from_any(HOUR, &["{q}other"]),
    q.ready.poll_from_any(Duration::ZERO, &["{q}other"]),
    q.ready.poll_last_from_any(HOUR, &["{q}other"]),
    q.ready.poll_last_from_any(Duration::ZERO, &["{q}other"]),
    q.ready.poll_many_from_any(HOUR, 3, &["{q}other"]),
    q.ready.poll_many_from_any(Duration::ZERO, 3, &["{q}other"]),
    q.ready.poll_last_many_from_any(HOUR, 3, &["{q}other"]),
    q.ready.poll_last_many_from_any(Duration::ZERO, 3, &["{q}other"]),
    q.ready.poll_last_and_offer_first_to("{q}other"),
    q.ready.poll_last_and_offer_first_to_timeout("{q}other", HOUR),
    q.ready.poll_last_and_offer_first_to_timeout("{q}other", Duration::ZERO),
    q.ready.take_last_and_offer_first_to("{q}other"),
    q.delayed.poll_last_and_offer_first_to(TARGET),
];

const OF_THE_TIMEOUT_SET: &[Call] = &calls![
    q.delayed.offer(&1, HOUR),
    q.delayed.offer_at(&1, SystemTime::now()),
    q.delayed.offer_all([(&1, HOUR), (&2, HOUR)]),
    q.delayed.cancel(&q.ticket),
    q.delayed.reschedule(&q.ticket, HOUR),
    q.delayed.reschedule_at(&q.ticket, SystemTime::now()),
    q.delayed.poll(),
    q.delayed.poll_many(2),
    q.delayed.remove(&1),
    q.delayed.remove_all([&1]),
    q.delayed.retain_all([&1]),
    q.delayed.poll_last_and_offer_first_to("{q}other"),
];

const OF_THE_ORDERED_LIST: &[Call] = &calls![
    q.delayed.offer(&1, HOUR),
    q.delayed.offer_at(&1, SystemTime::now()),
    q.delayed.offer_all([(&1, HOUR), (&2, HOUR)]),
    q.delayed.cancel(&q.ticket),
    q.delayed.len(),
    q.delayed.is_empty(),
    q.delayed.read_all(),
    q.delayed.peek(),
    q.delayed.poll(),
    q.delayed.poll_many(2),
    q.delayed.remove(&1),
    q.delayed.remove_all([&1]),
    q.delayed.retain_all([&1]),
    q.delayed.contains(&1),
    q.delayed.contains_all([&1, &2]),
    q.delayed.poll_last_and_offer_first_to("{q}other"),
];

const OF_THE_QUARANTINE: &[Call] =
    &calls![q.delayed.poll(), q.delayed.poll_many(2), q.delayed.poll_last_and_offer_first_to("{q}other")];

/// Checks that each of these calls is refused and changes nothing, for each wrong type of the key.
async fn are_refused(key: &str, calls: &[Call]) {
    for wrong in [["SET", key, "text"].as_slice(), &["HSET", key, "field", "1"], &["SADD", key, "member"]] {
        let server = Server::start();
        let queues = queues(&server).await;
        server.cmd(["DEL", key]);
        server.cmd(wrong);
        let before = lasting(&server);
        for (name, call) in calls {
            let error = soon(call(queues.clone())).await.expect_err(name);
            assert_eq!(error.kind(), ErrorKind::Refused, "{name}: {error}");
            let sentence = error.to_string();
            let found = match wrong[0] {
                "SET" => "string",
                "HSET" => "hash",
                _ => "set",
            };
            let types = format!("the key `{key}` is a {found} and must be a ");
            for part in ["WRONGTYPE", "queue `q`", &types] {
                assert!(sentence.contains(part), "{name}: {sentence}");
            }
            assert!(lasting(&server) == before, "{name} has written");
        }
    }
}

#[tokio::test]
async fn every_call_that_needs_the_target_is_refused() {
    are_refused(TARGET, OF_THE_TARGET).await;
}

#[tokio::test]
async fn every_call_that_needs_the_timeout_set_is_refused() {
    are_refused(TIMEOUT_SET, OF_THE_TIMEOUT_SET).await;
}

#[tokio::test]
async fn every_call_that_needs_the_ordered_list_is_refused() {
    are_refused(ORDERED_LIST, OF_THE_ORDERED_LIST).await;
}

#[tokio::test]
async fn every_call_that_may_need_the_quarantine_is_refused() {
    are_refused(QUARANTINE, OF_THE_QUARANTINE).await;
}

/// These act on the key, like `DEL` and `PEXPIRE`, so that a queue can be fixed.
#[tokio::test]
async fn a_wrong_key_can_be_cleared_and_can_expire() {
    let server = Server::start();
    let Queues { ready, delayed, .. } = queues(&server).await;
    let wrong = || {
        server.cmd(["DEL", TARGET, TIMEOUT_SET, ORDERED_LIST]);
        for key in [TARGET, TIMEOUT_SET, ORDERED_LIST] {
            server.cmd(["SET", key, "text"]);
        }
    };
    wrong();
    assert!(ready.clear().await.unwrap() && delayed.clear().await.unwrap());
    assert_eq!(keys(&server), Vec::<Vec<u8>>::new());
    wrong();
    assert!(ready.delete().await.unwrap() && delayed.delete().await.unwrap());
    assert_eq!(keys(&server), Vec::<Vec<u8>>::new());
    wrong();
    assert!(ready.expire(ms(1)).await.unwrap() && delayed.expire(ms(1)).await.unwrap());
    until_async("they have expired", || async { keys(&server).is_empty() }).await;
    ready.put(&3).await.unwrap();
    delayed.offer(&4, HOUR).await.unwrap();
    assert_eq!((ready.read_all().await.unwrap(), delayed.read_all().await.unwrap()), (vec![3], vec![4]));
}

#[tokio::test]
async fn a_list_where_the_timeout_set_should_be_and_the_other_way_round() {
    let server = Server::start();
    let queues = queues(&server).await;
    server.cmd(["DEL", TIMEOUT_SET, ORDERED_LIST]);
    server.cmd(["RPUSH", TIMEOUT_SET, "element"]);
    server.cmd(["ZADD", ORDERED_LIST, "1", "member"]);
    let before = lasting(&server);
    for (name, call) in OF_THE_TIMEOUT_SET.iter().chain(OF_THE_ORDERED_LIST) {
        let error = soon(call(queues.clone())).await.expect_err(name);
        assert!(error.to_string().contains("WRONGTYPE"), "{name}: {error}");
        assert!(lasting(&server) == before, "{name} has written");
    }
}

#[tokio::test]
async fn moving_into_a_key_of_another_type_moves_nothing() {
    let server = Server::start();
    let Queues { ready, delayed, .. } = queues(&server).await;
    ready.put(&3).await.unwrap();
    server.cmd(["SET", "{q}other", "text"]);
    let before = lasting(&server);
    let errors = [
        soon(ready.poll_last_and_offer_first_to("{q}other")).await.unwrap_err(),
        soon(ready.poll_last_and_offer_first_to_timeout("{q}other", HOUR)).await.unwrap_err(),
        soon(ready.take_last_and_offer_first_to("{q}other")).await.unwrap_err(),
        soon(delayed.poll_last_and_offer_first_to("{q}other")).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("WRONGTYPE"), "{error}");
    }
    assert!(lasting(&server) == before);
}

/// Returns when the client has made a successful transfer call, so that a later failure is not the first
/// result.
async fn first_look(ready: &BlockingQueue<i64>, delayed: &DelayedQueue<i64>) {
    delayed.offer(&0, Duration::ZERO).await.unwrap();
    assert_eq!(soon(ready.take()).await.unwrap(), 0);
}

/// A long overdue entry of another producer.
fn due_entry(server: &Server, timeout_set: &str, payload: &str) {
    let entry = [b"\x01x", &(payload.len() as u64).to_le_bytes()[..], payload.as_bytes()].concat();
    server.cmd([b"ZADD", timeout_set.as_bytes(), b"1", &entry]);
    server.cmd(["PUBLISH", "redisson_delay_queue_channel:{q}", "1"]);
}

#[tokio::test]
async fn what_is_due_stays_while_a_key_is_wrong_and_is_delivered_when_it_is_fixed() {
    for key in [TARGET, ORDERED_LIST, QUARANTINE] {
        let server = Server::start();
        let Queues { ready, delayed, .. } = queues(&server).await;
        first_look(&ready, &delayed).await;
        delayed.clear().await.unwrap();
        server.cmd(["SET", key, "text"]);
        due_entry(&server, TIMEOUT_SET, "3");
        if key == QUARANTINE {
            // Only a malformed entry needs it.
            server.cmd(["ZADD", TIMEOUT_SET, "1", "malformed"]);
        }
        if key != ORDERED_LIST {
            delayed.offer(&4, Duration::ZERO).await.unwrap();
        }
        let before = lasting(&server);
        let tries = || server.command_calls("zcount") + server.command_calls("llen");
        let first = tries();
        until_async("it was tried", || async { tries() >= first + 5 }).await;
        assert!(lasting(&server) == before, "half of it was moved");
        server.cmd(["DEL", key]);
        assert_eq!(soon(ready.take()).await.unwrap(), 3);
        if key != ORDERED_LIST {
            assert_eq!(soon(ready.take()).await.unwrap(), 4);
        }
        if key == QUARANTINE {
            assert_eq!(server.list(QUARANTINE), [b"1".to_vec(), b"malformed".to_vec()]);
            server.cmd(["DEL", key]);
        }
        assert_eq!(keys(&server), Vec::<Vec<u8>>::new());
    }
}

#[tokio::test]
async fn everything_goes_on_when_the_timeout_set_is_fixed() {
    let server = Server::start();
    let Queues { ready, delayed, .. } = queues(&server).await;
    first_look(&ready, &delayed).await;
    server.cmd(["RENAME", TIMEOUT_SET, "{q}aside"]);
    server.cmd(["SET", TIMEOUT_SET, "text"]);
    assert_eq!(delayed.offer(&3, ms(1)).await.unwrap_err().kind(), ErrorKind::Refused);
    due_entry(&server, "{q}aside", "3");
    let tries = || server.command_calls("zrange");
    let first = tries();
    until_async("it was tried", || async { tries() >= first + 2 }).await;
    server.cmd(["RENAME", "{q}aside", TIMEOUT_SET]);
    assert_eq!(soon(ready.take()).await.unwrap(), 3);
    delayed.offer(&4, ms(1)).await.unwrap();
    assert_eq!(soon(ready.take()).await.unwrap(), 4);
    assert_eq!(delayed.read_all().await.unwrap(), [1, 2]);
}

#[tokio::test]
async fn takers_of_other_queues_go_on_beside_a_wrong_key() {
    let server = Server::start();
    let Queues { client, ready: wrong, .. } = queues(&server).await;
    let right = client.blocking_queue("right", codec::Long);
    let later = client.delayed_queue(&right);
    server.cmd(["SET", TARGET, "text"]);
    // Only a few, because each refusal lengthens the pause before the next one.
    for n in 0..8 {
        let other_taker = async {
            let error = soon(wrong.take()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
            if n % 2 == 0 {
                right.put(&n).await.unwrap();
            } else {
                later.offer(&n, ms(2)).await.unwrap();
            }
        };
        let (taken, ()) = tokio::join!(soon(right.take()), other_taker);
        assert_eq!(taken.unwrap(), n);
    }
    // A taker of both lists gets the error. A taker of the intact list alone does not.
    let both = soon(wrong.poll_from_any(HOUR, &["right"])).await.unwrap_err();
    assert_eq!(both.kind(), ErrorKind::Refused);
    let tail = async {
        assert_eq!(soon(wrong.take_last()).await.unwrap_err().kind(), ErrorKind::Refused);
        right.put(&-1).await.unwrap();
    };
    assert_eq!(tokio::join!(soon(right.take_last()), tail).0.unwrap(), -1);
}

#[tokio::test]
async fn takers_go_on_when_the_wrong_key_is_gone() {
    let server = Server::start();
    let Queues { ready, delayed, .. } = queues(&server).await;
    server.cmd(["SET", TARGET, "text"]);
    let mut stream = ready.clone().into_stream();
    assert_eq!(soon(stream.next()).await.unwrap().unwrap_err().kind(), ErrorKind::Refused);
    assert_eq!(soon(ready.take()).await.unwrap_err().kind(), ErrorKind::Refused);
    server.cmd(["DEL", TARGET]);
    delayed.offer_all([(&3, ms(5)), (&4, ms(10))]).await.unwrap();
    assert_eq!(soon(stream.next()).await.unwrap().unwrap(), 3);
    assert_eq!(soon(ready.take()).await.unwrap(), 4);
}

#[tokio::test]
async fn a_key_that_turns_wrong_under_a_waiting_taker_hurts_nobody_else() {
    let server = Server::start();
    let Queues { client, ready, .. } = queues(&server).await;
    let right = client.blocking_queue("right", codec::Long);
    let turned = tokio::spawn(async move { soon(ready.take()).await });
    until_async("it is parked", || async { server.blocked_clients() == 1 }).await;
    server.cmd(["SET", TARGET, "text"]);
    for n in 0..20 {
        right.put(&n).await.unwrap();
        assert_eq!(soon(right.take()).await.unwrap(), n);
    }
    let waiting = tokio::spawn({
        let right = right.clone();
        async move { soon(right.take()).await }
    });
    assert_eq!(
        turned.await.unwrap().unwrap_err().kind(),
        ErrorKind::Refused,
        "the taker gets the error at the next pop"
    );
    right.put(&99).await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap(), 99);
}

#[tokio::test]
async fn a_list_without_rights_is_refused_to_its_takers_alone() {
    let server = Server::start();
    server.cmd(["ACL", "SETUSER", "clerk", "on", ">pass", "+@all", "&*", "~q", "~redelay:*", "~redisson*"]);
    let builder = Client::builder().url(server.url()).credentials("clerk", "pass");
    let client = builder.connect().await.unwrap();
    let [ready, other, forbidden] =
        ["q", "redelay:other", "forbidden"].map(|name| client.blocking_queue(name, codec::Long));
    let takers = async { tokio::join!(soon(ready.take()), soon(other.take())) };
    let refused = async {
        for _ in 0..5 {
            let error = soon(forbidden.take()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
            assert!(error.to_string().contains("NOPERM"), "{error}");
            let error = soon(ready.poll_from_any(HOUR, &["forbidden"])).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        }
        server.cmd(["RPUSH", "q", "1"]);
        server.cmd(["RPUSH", "redelay:other", "2"]);
    };
    let ((one, two), ()) = tokio::join!(takers, refused);
    assert_eq!((one.unwrap(), two.unwrap()), (1, 2));
    // Without the permission to pop, every taker gets the error.
    server.cmd(["ACL", "SETUSER", "clerk", "-blpop"]);
    let (one, two) = tokio::join!(soon(ready.take()), soon(other.take()));
    assert!(one.is_err() && two.is_err());
}

/// A refusal may last, so a stream pauses before it asks again.
#[tokio::test]
async fn a_stream_rests_after_a_refusal_and_goes_on() {
    let server = Server::start();
    let Queues { ready, .. } = queues(&server).await;
    server.cmd(["SET", TARGET, "text"]);
    let mut stream = ready.into_stream();
    let asked = server.command_calls("blpop");
    for _ in 0..2 {
        let error = soon(stream.next()).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    }
    // The second error came after a pause, in which nothing was sent.
    assert!(server.command_calls("blpop") - asked <= 4, "it asks again and again");
    server.cmd(["DEL", TARGET]);
    server.cmd(["RPUSH", TARGET, "7"]);
    assert_eq!(soon(stream.next()).await.unwrap().unwrap(), 7);
}

/// A taker in a loop pauses, too, and goes on soon after the key is fixed.
#[tokio::test]
async fn a_taker_in_a_loop_pauses_after_refusals() {
    let server = Server::start();
    let Queues { ready, .. } = queues(&server).await;
    server.cmd(["SET", TARGET, "text"]);
    let mut errors = 0;
    slowly(async {
        let window = Instant::now() + ms(2000);
        while let Ok(refused) = tokio::time::timeout_at(window, ready.take()).await {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Refused);
            errors += 1;
        }
    })
    .await;
    assert!((2..=12).contains(&errors), "{errors} errors in 2 s");
    // Calls that do not wait are answered at once, even during a pause.
    for _ in 0..20 {
        assert_eq!(soon(ready.poll()).await.unwrap_err().kind(), ErrorKind::Refused);
        assert_eq!(soon(ready.poll_timeout(ms(1))).await.unwrap_err().kind(), ErrorKind::Refused);
    }
    assert_eq!(soon(ready.take()).await.unwrap_err().kind(), ErrorKind::Refused);
    server.cmd(["DEL", TARGET]);
    server.cmd(["RPUSH", TARGET, "7"]);
    let right = Instant::now();
    assert_eq!(slowly(soon(ready.take())).await.unwrap(), 7);
    assert!(right.elapsed() < ms(3000), "{:?}", right.elapsed());
}

/// Each key of receivers, while somebody receives: errors, events and stats name it; and "recovered" is said
/// when it is true.
#[cfg(feature = "tracing")]
#[tokio::test]
async fn what_receivers_say_of_a_wrong_key_is_true() {
    for (key, must_be) in [
        ("redelay:messages:{q}", "hash"),
        ("redelay:leases:{q}", "zset"),
        ("redelay:retries:{q}", "zset"),
        ("redelay:control:{q}", "hash"),
        ("redelay:receipts:{q}", "hash"),
        ("redelay:inbox:{q}", "list"),
        ("q", "list"),
    ] {
        let (listener, _listening) = redelay_support::Listener::start();
        let server = Server::start();
        let Queues { client, ready, .. } = queues(&server).await;
        server.cmd(["DEL", TARGET]);
        let receiver = ready.receiver();
        assert!(receiver.receive_timeout(ms(1)).await.unwrap().is_none());
        server.cmd(["DEL", key]);
        server.cmd(["SET", key, "text"]);
        let named = format!("the key `{key}` is a string and must be a {must_be}");
        if key != "q" {
            server.cmd(["RPUSH", "q", "1"]);
        }
        let is_fixed = std::cell::Cell::new(false);
        let receive = async {
            loop {
                match receiver.receive_timeout(ms(200)).await {
                    Ok(Some(delivery)) => break delivery,
                    Ok(None) => {}
                    Err(error) => assert!(is_fixed.get() || error.to_string().contains(&named), "{error}"),
                }
            }
        };
        let check = async {
            let failing = || listener.named("redelay.receives.failing");
            until_async("it is reported", || async { !failing().is_empty() }).await;
            assert!(failing()[0].fields["error"].contains(&named), "{:?}", failing());
            let last = client.stats().last_error.expect("an error").message;
            assert!(last.contains(&named), "{last}");
            // Somebody else takes what there was, and then there is nothing that could be refused.
            if key != "q" {
                server.cmd(["LPOP", "q"]);
            }
            tokio::time::sleep(ms(3_000)).await;
            assert_eq!(
                (failing().len(), listener.named("redelay.receives.recovered").len()),
                (1, 0),
                "{key}"
            );
            // A refusal whose key is gone cannot name it.
            is_fixed.set(true);
            server.cmd(["DEL", key]);
            server.cmd(["RPUSH", "q", "2"]);
        };
        let (delivery, ()) = soon(async { tokio::join!(receive, check) }).await;
        delivery.ack().await.unwrap();
        until_async("it is reported", || async { listener.named("redelay.receives.recovered").len() == 1 })
            .await;
        for event in listener.events() {
            assert!(!format!("{event:?}").contains("user_script"), "{event:?}");
        }
    }
}
