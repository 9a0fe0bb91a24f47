//! Dead letters, and messages that are in flight or wait for a retry: read, requeued, removed, sent on,
//! released.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use redelay::admin::DeadLetter;
use redelay::receiver::MessageId;
use redelay::worker::{Backoff, Outcome};
use redelay::{BlockingQueue, ErrorKind, Worker, codec};
use redelay_fixture::{Proxy, Server, until_async};
use redelay_support::{
    CONTROL, DEAD, DEAD_MESSAGES, HOUR, INBOX, LEASES, Listener, MESSAGES, MINUTE, Queues, RETRIES, TARGET,
    builder, ms, number_queues, patient_builder, soon, still_builder, still_number_queues, text_queues,
};

/// Makes dead letters of these numbers.
async fn bury(queue: &BlockingQueue<i64>, numbers: &[i64]) -> Vec<MessageId> {
    queue.offer_all(numbers).await.unwrap();
    let receiver = queue.receiver();
    let mut ids = Vec::new();
    for number in numbers {
        let delivery = soon(receiver.receive()).await.unwrap();
        assert_eq!(*delivery.value(), *number);
        ids.push(delivery.id());
        delivery.reject(format_args!("no {number}")).await.unwrap();
    }
    ids
}

fn payloads(letters: &[DeadLetter]) -> Vec<String> {
    letters.iter().map(|letter| String::from_utf8(letter.payload.to_vec()).unwrap()).collect()
}

#[tokio::test]
async fn they_are_listed_with_their_reasons() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    let ids = bury(&ready, &(0..250).collect::<Vec<_>>()).await;
    let dead = ready.dead_letters();
    assert_eq!(dead.len().await.unwrap(), 250);
    let mut letters = dead.read(None, usize::MAX).await.unwrap();
    assert_eq!(letters.len(), 250);
    assert_eq!(dead.read(Some(&letters[9]), 5).await.unwrap(), letters[10..15]);
    assert_eq!(dead.read(letters.last(), 5).await.unwrap(), []);
    letters.sort_by_key(|letter| letter.id);
    assert_eq!(letters.iter().map(|letter| letter.id).collect::<Vec<_>>(), ids);
    let letter = &letters[7];
    assert_eq!(
        (letter.reason.as_str(), letter.error.as_str(), letter.failed, letter.lost),
        ("rejected", "no 7", 0, 0)
    );
    assert_eq!(&letter.payload[..], b"7");
    assert!(letter.died >= letter.first_received);
    assert!(!format!("{letter:?}").contains("payload"), "bytes have no place in a log");
}

/// By the codec of the queue: from an operator's row, and from the report of a worker.
#[tokio::test]
async fn the_queue_decodes_its_payloads() {
    let server = Server::start();
    let (client, ready, _) = number_queues(&server).await;
    ready.put(&7).await.unwrap();
    server.cmd(["RPUSH", "q", "seven"]);
    let reports: Arc<Mutex<Vec<String>>> = Arc::default();
    let worker = Worker::new(&ready).on_failure({
        let (reports, queue) = (reports.clone(), ready.clone());
        move |failure| {
            assert!(failure.is_dead);
            let value = queue.decode(&failure.payload);
            reports.lock().unwrap().push(format!("{failure}: {:?}", value.map_err(|error| error.kind())));
        }
    });
    let handler = |number: i64| async move { Outcome::Reject(format!("no {number}").into()) };
    let running = tokio::spawn(worker.run_until(std::future::pending::<()>(), handler));
    until_async("both are dead", || async { ready.dead_letters().len().await.unwrap() == 2 }).await;
    client.stop_taking().await;
    soon(running).await.unwrap().unwrap();
    let mut reports = reports.lock().unwrap().clone();
    // The payload that does not decode has no id: "a message in …".
    reports.sort();
    assert!(reports[1].ends_with("`q` failed: no 7; it becomes a dead letter: Ok(7)"), "{reports:?}");
    assert!(reports[0].ends_with("; it becomes a dead letter: Err(Decode)"), "{reports:?}");

    let letters = ready.dead_letters().read(None, 10).await.unwrap();
    // It needs no server.
    client.shutdown().await;
    let mut found = Vec::new();
    for letter in letters {
        match ready.decode(&letter.payload) {
            Ok(number) => found.push(number.to_string()),
            Err(error) => {
                assert_eq!((error.kind(), error.payload()), (ErrorKind::Decode, Some(&letter.payload)));
                let text = error.to_string();
                assert!(
                    text.starts_with("`decode` on the blocking queue `q` failed: cannot decode"),
                    "{text}"
                );
                found.push("none".to_owned());
            }
        }
    }
    found.sort();
    assert_eq!(found, ["7", "none"]);
}

#[test]
fn a_text_that_is_no_id_says_what_one_is() {
    let error = "nonsense".parse::<redelay::admin::MessageId>().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let expected = "read a message id failed: a message id has 32 hexadecimal digits; this text does not";
    assert_eq!(error.to_string(), expected);
    // One type, wherever a program meets it first.
    let id: redelay::worker::MessageId = "0".repeat(32).parse().unwrap();
    let _: MessageId = id;
}

/// Case 37: the reply to the requeue is lost.
#[tokio::test]
async fn they_are_requeued_once() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let (_client, ready, _) = number_queues(&server).await;
    bury(&ready, &(0..20).collect::<Vec<_>>()).await;
    let other = Queues::of_numbers(patient_builder(&proxy)).await;
    let letters = other.ready.dead_letters();
    // Loads the script.
    let nothing: MessageId = "0".repeat(32).parse().unwrap();
    assert!(!letters.requeue(nothing).await.unwrap());
    // The letters are counted and listed first. Those replies come through.
    proxy.delay(ms(500));
    let fault = async {
        until_async("they are requeued", || async { server.get::<usize, _>(["ZCARD", DEAD]) == 10 }).await;
        proxy.cut();
        proxy.delay(Duration::ZERO);
    };
    let (requeued, ()) = tokio::join!(letters.requeue_all(10), fault);
    assert_eq!(requeued.unwrap(), 10);
    assert_eq!(letters.len().await.unwrap(), 10);
    let receiver = ready.receiver();
    for number in 0..10 {
        let delivery = soon(receiver.receive()).await.unwrap();
        assert_eq!((*delivery.value(), delivery.attempt()), (number, 1), "the counts are reset");
        delivery.ack().await.unwrap();
    }
    assert!(receiver.try_receive().await.unwrap().is_none());
}

#[tokio::test]
async fn one_of_them_is_requeued_or_removed() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    let ids = bury(&ready, &[1, 2, 3, 4]).await;
    let dead = ready.dead_letters();
    assert!(dead.requeue(ids[1]).await.unwrap() && !dead.requeue(ids[1]).await.unwrap());
    assert!(dead.remove(ids[2]).await.unwrap() && !dead.remove(ids[2]).await.unwrap());
    let delivery = soon(ready.receiver().receive()).await.unwrap();
    assert_eq!((*delivery.value(), delivery.id()), (2, ids[1]), "it keeps its id");
    delivery.ack().await.unwrap();
    assert_eq!(payloads(&dead.read(None, 9).await.unwrap()), ["1", "4"]);
    assert_eq!(dead.remove_all(1).await.unwrap(), 1);
    assert_eq!(dead.remove_all(usize::MAX).await.unwrap(), 1);
    assert_eq!(server.get::<usize, _>(["HLEN", DEAD_MESSAGES]), 0);
}

/// Case 38.
#[tokio::test]
async fn receivers_limit_them() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    bury(&ready, &[1, 2, 3, 4, 5]).await;
    let dead = ready.dead_letters();
    let before = payloads(&dead.read(None, 9).await.unwrap());
    ready.put(&6).await.unwrap();
    let receiver = ready.receiver().keep_dead_letters(2, None);
    soon(receiver.receive()).await.unwrap().reject("six").await.unwrap();
    until_async("the oldest are removed", || async { dead.len().await.unwrap() == 2 }).await;
    assert_eq!(payloads(&dead.read(None, 9).await.unwrap()), [before[4].as_str(), "6"]);
    let aged = ready.receiver().keep_dead_letters(None, ms(1));
    assert!(aged.try_receive().await.unwrap().is_none());
    until_async("they are too old", || async { dead.len().await.unwrap() == 0 }).await;

    ready.put(&7).await.unwrap();
    soon(ready.receiver().discard_dead_letters().receive()).await.unwrap().reject("seven").await.unwrap();
    assert_eq!(dead.len().await.unwrap(), 0);
    assert_eq!(server.get::<usize, _>(["HLEN", MESSAGES]), 0);
}

/// A message that could not become a dead letter is delivered again, and leaves no content behind.
#[tokio::test]
async fn what_cannot_become_a_dead_letter_is_none() {
    for key in [DEAD, DEAD_MESSAGES] {
        let server = Server::start();
        let (_client, ready, _) = number_queues(&server).await;
        ready.put(&7).await.unwrap();
        let delivery = soon(ready.receiver().receive()).await.unwrap();
        server.cmd(["SET", key, "x"]);
        assert_eq!(delivery.reject("no").await.unwrap_err().kind(), ErrorKind::Refused, "{key}");
        server.cmd(["DEL", key]);
        // Another receiver finds it when it looks for what is in no other key.
        let again = soon(ready.receiver().receive()).await.unwrap();
        assert_eq!((*again.value(), again.attempt()), (7, 1), "{key}");
        again.ack().await.unwrap();
        assert_eq!(server.get::<usize, _>(["EXISTS", DEAD, DEAD_MESSAGES, MESSAGES]), 0, "{key}");
    }
}

/// Case 11.
#[tokio::test]
async fn they_are_sent_to_another_queue() {
    let server = Server::start();
    let (client, ready, _) = number_queues(&server).await;
    let dead = client.blocking_queue::<i64>("dead", codec::Long);
    let receiver = ready.receiver().dead_letters_to(&dead).max_attempts(1);
    let numbers: Vec<i64> = (0..50).collect();
    ready.offer_all(&numbers).await.unwrap();
    for number in &numbers {
        let delivery = soon(receiver.receive()).await.unwrap();
        if number % 2 == 0 { delivery.reject("even").await.unwrap() } else { delivery.retry().await.unwrap() }
    }
    let mut sent = Vec::new();
    for _ in &numbers {
        sent.push(soon(dead.take()).await.unwrap());
    }
    sent.sort_unstable();
    assert_eq!(sent, numbers);
    assert_eq!(ready.dead_letters().len().await.unwrap(), 0);
    assert!(ready.receiver().dead_letters_to(&ready).try_receive().await.is_err());
}

#[tokio::test]
async fn one_that_is_too_long_for_the_other_server_is_in_the_way_of_no_other() {
    let (server, away) = (Server::start(), Server::start());
    away.cmd(["CONFIG", "SET", "proto-max-bulk-len", "1mb"]);
    let (_client, ready, _) = text_queues(&server).await;
    let destination = patient_builder(&away).connect().await.unwrap();
    let dead = destination.blocking_queue::<String>("dead", codec::String);
    let receiver = ready.receiver().dead_letters_to(&dead);
    ready.offer_all(&["x".repeat(2 << 20), "short".to_owned()]).await.unwrap();
    for _ in 0..2 {
        soon(receiver.receive()).await.unwrap().reject("no").await.unwrap();
    }
    let receiving = tokio::spawn(async move { receiver.receive().await.map(drop) });
    // The next call removes it here.
    let is_sent =
        || async { away.list("dead") == [b"short"] && ready.dead_letters().len().await.unwrap() == 1 };
    until_async("the short one is sent", is_sent).await;
    receiving.abort();
}

/// While nothing is sent, the pauses grow, and one event tells it. A letter that may be too long is passed
/// over, which is no success.
#[tokio::test]
async fn one_long_letter_that_is_refused_again_and_again_is_told_once() {
    let (listener, _listening) = Listener::start();
    let (server, away) = (Server::start(), Server::start());
    away.cmd(["SET", "dead", "of another type"]);
    let (_client, ready, _) = text_queues(&server).await;
    let destination = patient_builder(&away).connect().await.unwrap();
    let dead = destination.blocking_queue::<String>("dead", codec::String);
    let receiver = ready.receiver().dead_letters_to(&dead);
    ready.put(&"x".repeat(1 << 20)).await.unwrap();
    soon(receiver.receive()).await.unwrap().reject("no").await.unwrap();
    until_async("it was tried three times", || async {
        assert!(receiver.try_receive().await.unwrap().is_none());
        away.errors("WRONGTYPE") >= 3
    })
    .await;
    assert_eq!(listener.named("redelay.forward.failing").len(), 1);
    away.cmd(["DEL", "dead"]);
    until_async("it is sent", || async {
        assert!(receiver.try_receive().await.unwrap().is_none());
        !away.list("dead").is_empty()
    })
    .await;
}

#[tokio::test]
async fn what_is_unsettled_is_listed_retried_and_removed() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    ready.offer_all(&[1, 2, 3]).await.unwrap();
    let receiver = ready.receiver();
    let mut deliveries = Vec::new();
    for _ in 0..3 {
        deliveries.push(soon(receiver.receive()).await.unwrap());
    }
    let ids: Vec<_> = deliveries.iter().map(redelay::Delivery::id).collect();
    let third = deliveries.pop().unwrap();
    third.retry_after(HOUR).await.unwrap();
    let unsettled = ready.unsettled();
    assert_eq!(unsettled.len().await.unwrap(), 3);
    let in_flight = unsettled.in_flight(None, 9).await.unwrap();
    assert_eq!(in_flight.iter().map(|message| message.id).collect::<Vec<_>>(), ids[..2]);
    assert_eq!(unsettled.in_flight(Some(&in_flight[0]), 9).await.unwrap()[0].id, ids[1]);
    assert!(unsettled.in_flight(Some(&in_flight[1]), 9).await.unwrap().is_empty());
    assert!(in_flight[0].remaining <= MINUTE && in_flight[0].remaining > ms(1000));
    let waiting = unsettled.waiting(None, 9).await.unwrap();
    assert_eq!((waiting[0].id, waiting[0].attempt, &waiting[0].payload[..]), (ids[2], 2, &b"3"[..]));
    assert!(waiting[0].remaining > HOUR - MINUTE);
    assert!(unsettled.waiting(waiting.last(), 9).await.unwrap().is_empty());

    assert!(unsettled.requeue(ids[2]).await.unwrap());
    let again = soon(receiver.receive()).await.unwrap();
    assert_eq!((*again.value(), again.attempt()), (3, 2));
    assert!(unsettled.remove(ids[2]).await.unwrap() && !unsettled.remove(ids[2]).await.unwrap());
    assert_eq!(again.ack().await.unwrap_err().kind(), redelay::ErrorKind::LeaseLost);
    assert!(unsettled.requeue(ids[0]).await.unwrap(), "its handler loses it");
    let again = soon(receiver.receive()).await.unwrap();
    assert_eq!(again.id(), ids[0]);
    again.ack().await.unwrap();
}

#[tokio::test]
async fn everything_is_released_to_java() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    let numbers: Vec<i64> = (0..1500).collect();
    ready.offer_all(&numbers).await.unwrap();
    let receiver = ready.receiver().backoff(Backoff::fixed(HOUR));
    let mut failed = 0;
    while failed < numbers.len() {
        for delivery in receiver.receive_many(1000).await.unwrap() {
            drop(delivery.unwrap());
            failed += 1;
        }
    }
    until_async("they failed", || async { server.get::<usize, _>(["ZCARD", RETRIES]) == 1500 }).await;
    assert_eq!(ready.release_all().await.unwrap(), 1500);
    server.cmd(["RPUSH", INBOX, "-1"]);
    server.cmd(["HSET", CONTROL, "seen", "1"]);
    assert_eq!(ready.release_all().await.unwrap(), 1, "nobody has been active");
    let mut back = ready.read_all().await.unwrap();
    back.sort_unstable();
    assert_eq!(back, (-1..1500).collect::<Vec<_>>());
    assert_eq!(server.get::<usize, _>(["HLEN", MESSAGES]), 0);
}

/// Case 34: all receivers are gone.
#[tokio::test]
async fn what_is_abandoned_goes_back_by_itself() {
    let server = Server::start();
    let first = Queues::of_numbers(patient_builder(&server)).await;
    first.ready.offer_all(&[1, 2, 3]).await.unwrap();
    let receiver = first.ready.receiver().backoff(Backoff::fixed(HOUR));
    soon(receiver.receive()).await.unwrap().retry().await.unwrap();
    let in_flight = soon(receiver.receive()).await.unwrap();
    let watching = patient_builder(&server).sweep_interval(ms(1000)).release_abandoned_after(ms(30_000));
    let watching = Queues::of_numbers(watching).await;
    tokio::time::sleep(ms(12_000)).await;
    assert_eq!(watching.ready.read_all().await.unwrap(), [3], "the receiver gives signs of life");
    in_flight.release().await.unwrap();
    first.client.shutdown().await;
    let (seconds, _): (u64, u64) = server.get(["TIME"]);
    let ago = |past: u64| ((seconds - past) * 1000).to_string();
    server.cmd(["HSET", CONTROL, "seen", &ago(40)]);
    // The first look only makes a note: the server may have been away, or its clock was set.
    until_async("it is noted", || async { server.get::<bool, _>(["HEXISTS", CONTROL, "silent"]) }).await;
    assert_eq!(watching.ready.len().await.unwrap(), 1);
    server.cmd(["HSET", CONTROL, "silent", &ago(31)]);
    until_async("they are Java's again", || async { watching.ready.len().await.unwrap() == 3 }).await;
    assert_eq!(server.get::<usize, _>(["HLEN", MESSAGES]), 0);
}

/// The hour of what is abandoned, shortened: what dead receivers had keeps its losses while a client sweeps
/// the queue. A payload that kills each of its processes keeps its count.
#[tokio::test]
async fn what_is_abandoned_stays_until_the_limit_is_over() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let dying = Queues::of_numbers(builder(&proxy).transfer(false)).await;
    dying.ready.offer_all(&[1, 2]).await.unwrap();
    // Nothing extends them.
    let receiver = dying.ready.receiver().lease(ms(300)).extend_for(Duration::ZERO);
    soon(receiver.receive()).await.unwrap().retry_after(HOUR).await.unwrap();
    let lost = soon(receiver.receive()).await.unwrap();
    let again = soon(receiver.receive()).await.unwrap();
    assert_eq!((*again.value(), again.attempt(), again.id()), (2, 2, lost.id()));
    server.cmd(["RPUSH", INBOX, "3"]);
    proxy.refuse(true);
    proxy.cut();
    // A look for receivers, every sixth of the limit, makes one of the first calls. So do others, with two of
    // the second ones.
    let looks = || ["hmget", "zcard"].map(|command| server.command_calls(command) as i64);
    let [before, others_before] = looks();

    let sweeping = patient_builder(&server).sweep_interval(ms(1000)).release_abandoned_after(ms(30_000));
    let sweeping = Queues::of_numbers(sweeping).await;
    until_async("it has looked twice", || async {
        let [calls, others] = looks();
        calls - before >= (others - others_before) / 2 + 2
    })
    .await;
    assert!(sweeping.ready.is_empty().await.unwrap(), "takers find nothing");
    let kept: [usize; 2] = [server.get(["HLEN", MESSAGES]), server.get(["LLEN", INBOX])];
    assert_eq!(kept, [2, 1]);

    let receiver = sweeping.ready.receiver().lease(ms(300));
    let mut got = Vec::new();
    for _ in 0..2 {
        let delivery = soon(receiver.receive()).await.unwrap();
        got.push((*delivery.value(), delivery.attempt()));
        if *delivery.value() == 2 {
            assert_eq!(delivery.id(), lost.id());
        }
        delivery.ack().await.unwrap();
    }
    got.sort_unstable();
    assert_eq!(got, [(2, 3), (3, 1)]);
    let waiting = sweeping.ready.unsettled().waiting(None, 9).await.unwrap();
    assert_eq!((waiting.len(), waiting[0].attempt, &waiting[0].payload[..]), (1, 2, &b"1"[..]));
}

/// The content of the oldest one was removed by somebody else.
#[tokio::test]
async fn each_is_listed_once() {
    let server = Server::start();
    let (_client, ready, _) = number_queues(&server).await;
    let ids = bury(&ready, &(0..250).collect::<Vec<_>>()).await;
    let dead = ready.dead_letters();
    let oldest = dead.read(None, 1).await.unwrap()[0].id.to_string();
    let oldest: Vec<u8> =
        (0..32).step_by(2).map(|at| u8::from_str_radix(&oldest[at..at + 2], 16).unwrap()).collect();
    server.cmd([b"HDEL", DEAD_MESSAGES.as_bytes(), &oldest]);
    let mut listed: Vec<MessageId> =
        dead.read(None, usize::MAX).await.unwrap().iter().map(|letter| letter.id).collect();
    listed.sort();
    assert_eq!(listed, ids[1..]);
}

/// The other queue cannot be written for a while.
#[tokio::test]
async fn they_are_sent_in_their_order() {
    let server = Server::start();
    let (client, ready, _) = number_queues(&server).await;
    let dead = client.blocking_queue("dead", codec::Long);
    server.cmd(["SET", "dead", "no list"]);
    let receiver = ready.receiver().lease(ms(300)).dead_letters_to(&dead);
    for number in 0..30 {
        ready.put(&number).await.unwrap();
        let delivery = soon(receiver.receive()).await.unwrap();
        let before: (u64, u64) = server.get(["TIME"]);
        delivery.reject("no").await.unwrap();
        let is_later = || async { server.get::<(u64, u64), _>(["TIME"]) > (before.0, before.1 + 1000) };
        until_async("a later millisecond", is_later).await;
    }
    let letters = ready.dead_letters().read(None, usize::MAX).await.unwrap();
    let numbers: Vec<String> = (0..30).map(|number| number.to_string()).collect();
    assert_eq!(payloads(&letters), numbers, "the oldest first");
    server.cmd(["DEL", "dead"]);
    until_async("all are sent", || async { server.list("dead").len() == 30 }).await;
    assert_eq!(dead.read_all().await.unwrap(), (0..30).collect::<Vec<_>>());
}

/// A blocked pop of a living receiver moves what goes back to the inbox. The receiver claims it there.
#[tokio::test]
async fn a_release_takes_nothing_from_a_receiver_that_waits() {
    let server = Server::start();
    let (dead, ready, _) = still_number_queues(&server).await;
    ready.put(&7).await.unwrap();
    soon(ready.receiver().receive()).await.unwrap().retry_after(HOUR).await.unwrap();
    dead.shutdown().await;
    let proxy = Proxy::start(server.port());
    let living = Queues::of_numbers(still_builder(&proxy).command_timeout(MINUTE)).await;
    let receiver = living.ready.receiver();
    let receive = tokio::spawn(async move { receiver.receive().await });
    until_async("it waits", || async { server.blocked_clients() == 1 }).await;
    // It does not hear of it before the release has ended.
    proxy.hold_replies(true);
    let (_other, other, _) = still_number_queues(&server).await;
    assert_eq!(other.release_all().await.unwrap(), 1);
    // On a busy machine, the receiver may have asked, which it does every few seconds, and claimed it.
    let inbox = server.list(INBOX);
    assert!(
        inbox == [b"7"] || inbox.is_empty() && server.get::<usize, _>(["HLEN", MESSAGES]) == 1,
        "for the one that waits: {inbox:?}"
    );
    proxy.hold_replies(false);
    let delivery = soon(receive).await.unwrap().unwrap();
    assert_eq!(*delivery.value(), 7);
    delivery.ack().await.unwrap();
    assert_eq!(server.get::<usize, _>(["EXISTS", TARGET, INBOX, MESSAGES]), 0);
}

/// After an outage, the leases of living receivers have ended, and they are about to extend them.
#[tokio::test]
async fn a_release_takes_no_lease_of_a_receiver_that_was_cut_off() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let living = Queues::of_numbers(still_builder(&proxy)).await;
    living.ready.put(&7).await.unwrap();
    let delivery = soon(living.ready.receiver().lease(ms(1000)).receive()).await.unwrap();
    proxy.refuse(true);
    proxy.cut();
    let ended = || async {
        let (seconds, micros): (u64, u64) = server.get(["TIME"]);
        server.zset(LEASES)[0].1 < (seconds * 1000 + micros / 1000) as f64
    };
    until_async("the lease has ended", ended).await;
    let (_other, other, _) = still_number_queues(&server).await;
    assert_eq!(other.release_all().await.unwrap(), 0);
    proxy.refuse(false);
    until_async("it is extended", || async { !ended().await }).await;
    delivery.ack().await.unwrap();
    assert_eq!(server.get::<usize, _>(["EXISTS", TARGET, MESSAGES]), 0);
}

/// Somebody has deleted what tells when receivers were active. Those that live show it within 7 s.
#[tokio::test]
async fn a_release_without_signs_of_life_waits_for_them() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let living = Queues::of_numbers(still_builder(&proxy)).await;
    living.ready.offer_all(&[7, 8]).await.unwrap();
    let receiver = living.ready.receiver().lease(ms(1000));
    let delivery = soon(receiver.receive()).await.unwrap();
    soon(receiver.receive()).await.unwrap().retry_after(HOUR).await.unwrap();
    proxy.refuse(true);
    proxy.cut();
    let now = || {
        let (seconds, micros): (u64, u64) = server.get(["TIME"]);
        seconds * 1000 + micros / 1000
    };
    let ended = || async { server.zset(LEASES)[0].1 < now() as f64 };
    until_async("the lease has ended", ended).await;
    let (_other, other, _) = still_number_queues(&server).await;
    for released in [1, 0] {
        server.cmd(["DEL", CONTROL]);
        server.cmd(["RPUSH", INBOX, "9"]);
        assert_eq!(other.release_all().await.unwrap(), released, "only what waits for a retry");
        assert_eq!(server.list(INBOX).len(), 2 - released);
    }
    proxy.refuse(false);
    until_async("it is extended", || async { !ended().await }).await;
    delivery.ack().await.unwrap();
    living.client.shutdown().await;
    // Nobody has shown it.
    server.cmd(["DEL", CONTROL]);
    assert_eq!(other.release_all().await.unwrap(), 0);
    server.cmd(["HSET", CONTROL, "silent", &(now() - 11_000).to_string()]);
    assert_eq!(other.release_all().await.unwrap(), server.list(INBOX).len());
}

/// Somebody has deleted messages. What is left of them hides none of the others.
#[tokio::test]
async fn a_release_goes_on_behind_messages_that_are_gone() {
    let server = Server::start();
    let (_client, ready, _) = still_number_queues(&server).await;
    ready.offer_all(&[1, 2]).await.unwrap();
    let receiver = ready.receiver();
    for _ in 0..2 {
        soon(receiver.receive()).await.unwrap().retry_after(HOUR).await.unwrap();
    }
    let gone =
        "for n = 1, 1500 do redis.call('ZADD', KEYS[1], 4102444800000 + n, string.format('%016d', n)) end";
    server.cmd(["EVAL", gone, "1", RETRIES]);
    assert_eq!(ready.release_all().await.unwrap(), 2);
    assert_eq!(ready.read_all().await.unwrap(), [1, 2]);
    assert_eq!(server.get::<usize, _>(["EXISTS", RETRIES, MESSAGES]), 0);
}

/// What fails again and again meanwhile does not keep it busy.
#[tokio::test]
async fn a_release_ends_beside_a_worker_that_fails() {
    let server = Server::start();
    let (_client, ready, _) = still_number_queues(&server).await;
    let (failing, other, _) = still_number_queues(&server).await;
    let failures = tokio::spawn(async move {
        let receiver = other.receiver().max_attempts(60_000);
        while let Ok(delivery) = receiver.receive().await {
            if delivery.retry_after(Duration::ZERO).await.is_err() {
                break;
            }
        }
    });
    ready.offer_all(&(0..20).collect::<Vec<_>>()).await.unwrap();
    for _ in 0..20 {
        let released = soon(ready.release_all()).await.unwrap();
        assert!(released <= 20, "{released}");
    }
    failing.shutdown().await;
    soon(failures).await.unwrap();
}
