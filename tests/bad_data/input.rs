//! Unusual or wrong times, payloads and names. Each works as documented or is refused with a sentence, and
//! nothing is lost.
//!
//! Payloads that do not decode: `undecodable.rs`. Entries written by others: `foreign_entries.rs`,
//! `malformed_entries.rs`. Messages published by others: `foreign_messages.rs`. Keys of another type:
//! `wrong_types.rs`. Addresses, credentials, options: `tests/connections`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redelay::{Client, Error, ErrorKind, codec};
use redelay_fixture::{Server, until_async};
use redelay_support::{HOUR, Queues, keys, ms, patient_builder, soon, text, text_queues};

/// Due times end below this, in ms.
const LIMIT: Duration = Duration::from_millis(1_000_000_000_000_000);

/// Checks that a call was refused before anything was sent, with a sentence that says `why` and names the
/// queue.
#[track_caller]
fn is_invalid<T: std::fmt::Debug>(result: Result<T, Error>, why: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    let sentence = error.to_string();
    assert!(sentence.contains(why) && sentence.contains("queue `q`"), "{sentence}");
}

#[tokio::test]
async fn a_delay_of_zero_is_delivered_at_once() {
    let server = Server::start();
    let (_client, ready, delayed) = text_queues(&server).await;
    for n in 0..20 {
        delayed.offer(&n.to_string(), Duration::ZERO).await.unwrap();
        assert_eq!(soon(ready.take()).await.unwrap(), n.to_string());
    }
}

#[tokio::test]
async fn a_time_in_the_past_is_delivered_at_once() {
    let server = Server::start();
    let (_client, ready, delayed) = text_queues(&server).await;
    for past in [SystemTime::now() - HOUR, UNIX_EPOCH + ms(1), UNIX_EPOCH, UNIX_EPOCH - HOUR] {
        delayed.offer_at(&text("a"), past).await.unwrap();
        assert_eq!(soon(ready.take()).await.unwrap(), "a");
        let ticket = delayed.offer(&text("b"), HOUR).await.unwrap();
        assert!(delayed.reschedule_at(&ticket, past).await.unwrap());
        assert_eq!(soon(ready.take()).await.unwrap(), "b");
    }
    assert_eq!(keys(&server), Vec::<Vec<u8>>::new());
}

#[tokio::test]
async fn a_delay_that_overflows_is_refused_before_anything_is_sent() {
    let server = Server::start();
    let (_client, ready, delayed) = text_queues(&server).await;
    let ticket = delayed.offer(&text("a"), HOUR).await.unwrap();
    let before = server.command_calls("evalsha");
    for delay in [LIMIT, LIMIT + ms(1), Duration::from_secs(u64::MAX / 1000), Duration::MAX] {
        is_invalid(delayed.offer(&text("b"), delay).await, "10^15 ms");
        is_invalid(delayed.offer_all([(&text("b"), HOUR), (&text("c"), delay)]).await, "10^15 ms");
        is_invalid(delayed.reschedule(&ticket, delay).await, "10^15 ms");
        is_invalid(delayed.expire(delay).await, "10^15 ms");
        is_invalid(ready.expire(delay).await, "10^15 ms");
    }
    is_invalid(delayed.offer_at(&text("b"), UNIX_EPOCH + LIMIT).await, "10^15 ms");
    is_invalid(delayed.reschedule_at(&ticket, UNIX_EPOCH + LIMIT).await, "10^15 ms");
    assert_eq!(server.command_calls("evalsha"), before);
    assert_eq!(delayed.read_all().await.unwrap(), ["a"]);
}

#[tokio::test]
async fn a_delay_that_overflows_only_by_the_servers_clock_is_refused_by_the_server() {
    let server = Server::start();
    let (_client, _ready, delayed) = text_queues(&server).await;
    let ticket = delayed.offer(&text("a"), HOUR).await.unwrap();
    let before = server.zset("redisson_delay_queue_timeout:{q}");
    let too_long = LIMIT - ms(1);
    let values = [text("b"), text("c")];
    let errors = [
        delayed.offer(&values[0], too_long).await.unwrap_err(),
        delayed.offer_all([(&values[0], HOUR), (&values[1], too_long)]).await.unwrap_err(),
        delayed.reschedule(&ticket, too_long).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("10^15 ms"), "{error}");
    }
    assert_eq!(server.zset("redisson_delay_queue_timeout:{q}"), before);
    assert_eq!(delayed.read_all().await.unwrap(), ["a"]);
}

#[tokio::test]
async fn what_is_due_in_the_far_future_stays_and_holds_nothing_up() {
    let server = Server::start();
    let (_client, ready, delayed) = text_queues(&server).await;
    let ticket = delayed.offer_at(&text("a"), UNIX_EPOCH + (LIMIT - ms(1))).await.unwrap();
    assert_eq!(ticket.due(), UNIX_EPOCH + (LIMIT - ms(1)));
    delayed.offer(&text("b"), HOUR * 24 * 365 * 1000).await.unwrap();
    for n in 0..20 {
        delayed.offer(&n.to_string(), ms(n % 3)).await.unwrap();
        assert_eq!(soon(ready.take()).await.unwrap(), n.to_string());
    }
    assert_eq!(delayed.read_all().await.unwrap(), ["a", "b"]);
    assert!(delayed.cancel(&ticket).await.unwrap());
}

#[tokio::test]
async fn an_empty_payload_is_a_payload() {
    let server = Server::start();
    let (_client, ready, delayed) = text_queues(&server).await;
    let empty = String::new();
    for legacy in [false, true] {
        let delayed = match legacy {
            true => delayed.clone().with_entry_format(redelay::delayed_queue::EntryFormat::Legacy),
            false => delayed.clone(),
        };
        delayed.offer(&empty, HOUR).await.unwrap();
        assert_eq!(delayed.read_all().await.unwrap(), [""]);
        assert_eq!(delayed.peek().await.unwrap().as_deref(), Some(""));
        assert!(delayed.contains(&empty).await.unwrap());
        assert!(delayed.remove(&empty).await.unwrap());
        delayed.offer(&empty, HOUR).await.unwrap();
        assert_eq!(delayed.poll().await.unwrap().as_deref(), Some(""));
        delayed.offer(&empty, ms(1)).await.unwrap();
        assert_eq!(soon(ready.take()).await.unwrap(), "");
    }
    ready.put(&empty).await.unwrap();
    assert_eq!(ready.peek().await.unwrap().as_deref(), Some(""));
    assert!(ready.contains(&empty).await.unwrap());
    assert!(ready.remove(&empty).await.unwrap());
    ready.offer_all([&empty, &empty]).await.unwrap();
    assert_eq!(ready.poll_last().await.unwrap().as_deref(), Some(""));
    assert_eq!(ready.poll_last_and_offer_first_to("{q}other").await.unwrap().as_deref(), Some(""));
    assert_eq!(keys(&server), [b"{q}other"]);
}

#[tokio::test]
async fn a_payload_over_the_limit_is_refused_before_anything_is_sent() {
    let server = Server::start();
    let client = Client::builder().url(server.url()).max_payload(10).connect().await.unwrap();
    let ready = client.blocking_queue("q", codec::String);
    let delayed = client.delayed_queue(&ready);
    let (right, over) = (text("0123456789"), text("0123456789a"));
    delayed.offer(&right, ms(1)).await.unwrap();
    assert_eq!(soon(ready.take()).await.unwrap(), right);
    ready.put(&right).await.unwrap();

    let calls = || ["evalsha", "eval", "rpush", "lrem", "lpos"].map(|command| server.command_calls(command));
    let before = calls();
    let why = "11 bytes, more than the 10 that max_payload allows";
    is_invalid(delayed.offer(&over, HOUR).await, why);
    is_invalid(delayed.offer_at(&over, SystemTime::now()).await, why);
    is_invalid(delayed.offer_all([(&right, HOUR), (&over, HOUR)]).await, why);
    is_invalid(delayed.remove(&over).await, why);
    is_invalid(delayed.contains_all([&right, &over]).await, why);
    is_invalid(ready.put(&over).await, why);
    is_invalid(ready.offer(&over).await, why);
    is_invalid(ready.offer_all([&right, &over]).await, why);
    is_invalid(ready.contains(&over).await, why);
    is_invalid(ready.contains_all([&right, &over]).await, why);
    is_invalid(ready.remove(&over).await, why);
    is_invalid(ready.remove_all([&right, &over]).await, why);
    is_invalid(ready.retain_all([&right, &over]).await, why);
    assert_eq!(calls(), before);
    assert_eq!(keys(&server), [b"q"]);
}

#[tokio::test]
async fn a_payload_of_many_megabytes_comes_back_as_it_was() {
    let server = Server::start();
    let (client, _ready, _delayed) = text_queues(&server).await;
    let ready = client.blocking_queue("bytes", codec::Bytes);
    let delayed = client.delayed_queue(&ready);
    let payload: bytes::Bytes =
        (0..20_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    delayed.offer(&payload, ms(1)).await.unwrap();
    assert!(soon(ready.take()).await.unwrap() == payload);
}

#[tokio::test]
async fn every_name_goes_the_whole_way_under_redissons_keys() {
    // Name and tag, as measured with Redisson 4.7.0.
    let rows = [
        ("", "{}"),
        ("{}", "{}"),
        ("{}q", "{}q"),
        ("a{b", "a{b"),
        ("a}b", "{a}b}"),
        ("{", "{"),
        ("}", "{}}"),
        ("x{}y{z}", "x{}y{z}"),
        ("a{b}c", "a{b}c"),
        ("a:b:c", "{a:b:c}"),
        ("очередь", "{очередь}"),
        ("a b", "{a b}"),
        ("q*?[x]", "{q*?[x]}"),
        ("line\r\nbreak\0", "{line\r\nbreak\0}"),
    ];
    let server = Server::start();
    let client = Client::connect(&server.url()).await.unwrap();
    for (name, tag) in rows {
        let ready = client.blocking_queue(name, codec::String);
        let delayed = client.delayed_queue(&ready);
        // The keys of some names are in several slots.
        if server.is_cluster() && delayed.len().await.is_err_and(|error| error.kind() == ErrorKind::Invalid) {
            continue;
        }
        let channel = format!("redisson_delay_queue_channel:{tag}");
        until_async(name, || async { server.subscribers(&channel) == 1 }).await;
        delayed.offer(&text("later"), HOUR).await.unwrap();
        ready.put(&text("now")).await.unwrap();
        let own = [format!("redisson_delay_queue:{tag}"), format!("redisson_delay_queue_timeout:{tag}")];
        let mut expected = vec![name.as_bytes(), own[0].as_bytes(), own[1].as_bytes()];
        expected.sort();
        assert_eq!(keys(&server), expected, "{name:?}");
        assert_eq!(soon(ready.take()).await.unwrap(), "now", "{name:?}");
        assert_eq!(delayed.poll().await.unwrap().as_deref(), Some("later"), "{name:?}");
        delayed.offer(&text("soon"), ms(5)).await.unwrap();
        let taken = ready.poll_from_any(HOUR, &["elsewhere"]).await.unwrap();
        assert_eq!(taken, Some((text(name), text("soon"))));
        assert_eq!(keys(&server), Vec::<Vec<u8>>::new(), "{name:?}");
    }
}

#[tokio::test]
async fn a_name_and_the_same_name_in_braces_share_their_pending_entries_as_in_redisson() {
    let server = Server::start();
    let client = Client::builder().url(server.url()).transfer(false).connect().await.unwrap();
    let bare = client.delayed_queue(&client.blocking_queue("q", codec::String));
    let braced = client.delayed_queue(&client.blocking_queue("{q}", codec::String));
    bare.offer(&text("a"), HOUR).await.unwrap();
    assert_eq!(braced.read_all().await.unwrap(), ["a"]);
}

/// Redis before 7 drops the connection of a client that sends too many arguments.
#[tokio::test]
async fn more_payloads_than_a_call_takes_are_refused_before_anything_is_sent() {
    let server = Server::start();
    // A busy machine takes a while for that many.
    let patient = patient_builder(&server);
    let Queues { ready, delayed, .. } = Queues::of_texts(patient).await;
    let values = vec![String::new(); 500_001];
    let why = "500001 payloads are more than the 500000 that one call takes";
    is_invalid(ready.offer_all(&values).await, why);
    is_invalid(ready.retain_all(&values).await, why);
    is_invalid(delayed.offer_all(values.iter().map(|value| (value, ms(1)))).await, why);
    is_invalid(delayed.remove_all(&values).await, why);
    assert_eq!(keys(&server), Vec::<Vec<u8>>::new());
    delayed.offer_all(values[1..].iter().map(|value| (value, ms(3_600_000)))).await.unwrap();
    assert_eq!(delayed.len().await.unwrap(), 500_000);
}
