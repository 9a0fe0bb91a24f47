//! Receivers and workers beside Redisson's takers, on one queue.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use redelay::{BlockingQueue, Client, codec};
use redelay_fixture::{Server, until, until_async, until_within};
use serde_json::{Value, json};

use crate::peer::{Lang, Peer, Setup};
use crate::{BOTH, HOUR, overdue};

const VERSIONS: [&str; 2] = ["4.7.0", "3.50.0"];
const INBOX: &str = "redelay:inbox:{q}";
const LEASES: &str = "redelay:leases:{q}";

/// A delivery, as the Rust peer prints it.
#[derive(Clone, Debug)]
struct Received {
    id: String,
    attempt: u64,
    value: Value,
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {text}"))
}

fn delivery(text: &str) -> Received {
    let delivery = parsed(text);
    let id = delivery["id"].as_str().unwrap_or_else(|| panic!("no delivery: {text}"));
    let attempt = delivery["attempt"].as_u64().expect("a number");
    let printed = format!(r#"{{"id":"{id}","attempt":{attempt},"value":{}}}"#, delivery["value"]);
    assert_eq!(text, printed, "the fields, in their order");
    Received { id: id.into(), attempt, value: delivery["value"].clone() }
}

fn receive(peer: &mut Peer) -> Received {
    delivery(&peer.ask(&["receive", "q", "20000"]))
}

/// The values of a JSON array, in their order.
fn texts(array: &str) -> Vec<String> {
    serde_json::from_str(array).unwrap_or_else(|_| panic!("no texts: {array}"))
}

fn fails(answer: &str, kind: &str) {
    assert!(answer.starts_with(&format!("!{kind}: ")), "{answer}");
}

/// Nothing of the queue is left, as Redisson sees it.
fn nothing_for(java: &mut Peer) {
    for (command, answer) in
        [("size", "0"), ("len", "0"), ("readall", "[]"), ("peek", "null"), ("dpoll", "null")]
    {
        assert_eq!(java.ask(&[command, "q"]), answer, "{command}");
    }
    assert_eq!(java.ask(&["poll", "q", "0"]), "null");
}

/// Number 2 of the tests that the design asks for.
#[test]
fn what_java_offers_and_moves_is_received_and_gone() {
    for redisson in VERSIONS {
        let server = Server::start();
        let url = server.url();
        let setup = Setup { redisson, ..Setup::new(&url) };
        let (mut java, mut rust) = (setup.java(), setup.rust());
        java.open("q");
        for n in 0..5 {
            java.tell(&["offer", "q", &format!("\"v{n} é\""), &(n * 200).to_string()]);
        }
        let received: Vec<Received> = (0..5).map(|_| receive(&mut rust)).collect();
        for (n, delivery) in received.iter().enumerate() {
            assert_eq!((&delivery.value, delivery.attempt), (&json!(format!("v{n} é")), 1));
        }
        assert_eq!(rust.ask(&["inflight", "q"]), "5");
        nothing_for(&mut java);
        received.iter().for_each(|delivery| rust.tell(&["ack", "q", &delivery.id]));
        assert_eq!(rust.ask(&["inflight", "q"]), "0");
        nothing_for(&mut java);
        java.tell(&["destroy", "q"]);
        rust.quit();
        let keys: Vec<String> =
            server.keys().iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect();
        assert_eq!(keys, ["redelay:control:{q}"], "redisson {redisson}");
    }
}

/// Number 3.
#[test]
fn takers_and_receivers_are_served_in_the_order_in_which_they_wait() {
    for redisson in VERSIONS {
        let server = Server::start();
        let url = server.url();
        let setup = Setup { redisson, ..Setup::new(&url) };
        let mut parked: Vec<(Lang, Peer)> = [Lang::Java, Lang::Rust, Lang::Java, Lang::Rust, Lang::Rust]
            .into_iter()
            .map(|lang| (lang, setup.start(lang)))
            .collect();
        // A blocked pop of a receiver begins again after ten seconds, and then waits behind the others.
        for round in 0..2 {
            for (at, (lang, peer)) in parked.iter_mut().enumerate() {
                match lang {
                    Lang::Java => peer.send(&["take", "q"]),
                    Lang::Rust => peer.send(&["receive", "q", "60000"]),
                }
                until("it waits", || server.blocked_clients() == at as u64 + 1);
            }
            for (at, (lang, peer)) in parked.iter_mut().enumerate() {
                let value = format!("{round}-{at}");
                server.cmd(["RPUSH", "q", &value]);
                let answer = peer.answer();
                match lang {
                    Lang::Java => assert_eq!(parsed(&answer), json!(value)),
                    Lang::Rust => {
                        let delivery = delivery(&answer);
                        assert_eq!((delivery.value, delivery.attempt), (json!(value), 1));
                        peer.tell(&["ack", "q", &delivery.id]);
                    }
                }
            }
            until("nobody waits", || server.blocked_clients() == 0);
        }
        parked.into_iter().for_each(|(_, peer)| peer.quit());
    }
}

async fn queue(server: &Server, name: &str) -> (Client, BlockingQueue<String>) {
    let client = Client::connect(&server.url()).await.expect("a connection");
    let queue = client.blocking_queue(name, codec::String);
    (client, queue)
}

/// Number 9.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_dropped_receive_got_is_javas_next() {
    let server = Server::start();
    let mut java = Setup::new(&server.url()).java();
    let (client, queue) = queue(&server, "q").await;
    let receiver = queue.receiver();
    for _ in 0..10 {
        let mut receive = Box::pin(receiver.receive());
        assert!(futures::poll!(&mut receive).is_pending());
        server.cmd(["RPUSH", "q", "a", "b", "c"]);
        until_async("it has one", || async { server.get::<usize, _>(["ZCARD", LEASES]) == 1 }).await;
        drop(receive);
        until_async("it is back", || async { server.list("q").len() == 3 }).await;
        assert_eq!(java.ask(&["drain", "q", "3"]), r#"["a","b","c"]"#);
    }
    client.shutdown().await;
}

/// Number 11.
#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_sent_to_a_queue_that_java_reads() {
    let server = Server::start();
    let mut java = Setup::new(&server.url()).java();
    let (client, queue) = queue(&server, "q").await;
    let dead = client.blocking_queue("q:dead", codec::String);
    let receiver = queue.receiver().attempts(1).dead_letters_to(&dead);
    for value in ["\"rejected é\"", "\"failed\"", "\"done\""] {
        java.tell(&["put", "q", value]);
    }
    java.send(&["drain", "q:dead", "2"]);
    let next = || async { receiver.receive().await.expect("a delivery") };
    next().await.reject("no such order").await.expect("it is held");
    next().await.retry().await.expect("it is held");
    next().await.ack().await.expect("it is held");
    assert_eq!(java.answer(), r#"["rejected é","failed"]"#);
    until_async("nothing is left", || async { queue.dead_letters().len().await.is_ok_and(|len| len == 0) })
        .await;
    for queue in ["q", "q:dead"] {
        assert_eq!(java.ask(&["len", queue]), "0");
    }
    client.shutdown().await;
}

/// Number 33. On another queue, the same is done without what waits for retries, and Redisson gives the same answers.
#[test]
fn java_does_not_see_what_waits_for_retries() {
    for redisson in VERSIONS {
        let server = Server::start();
        let url = server.url();
        let setup = Setup { redisson, ..Setup::new(&url) };
        let (mut java, mut rust) = (setup.java(), setup.rust());
        for value in ["\"r1\"", "\"r2\"", "\"r3\""] {
            java.tell(&["put", "q", value]);
        }
        for delivery in (0..3).map(|_| receive(&mut rust)).collect::<Vec<_>>() {
            rust.tell(&["retry", "q", &delivery.id, HOUR]);
        }
        for queue in ["q", "beside"] {
            java.open(queue);
            ["\"x\"", "\"y\"", "\"x\""].iter().for_each(|value| java.tell(&["put", queue, value]));
            ["\"p\"", "\"r1\""].iter().for_each(|value| java.tell(&["offer", queue, value, HOUR]));
        }
        let commands: [(&str, &[&str]); 20] = [
            ("len", &[]),
            ("size", &[]),
            ("readall", &[]),
            ("peek", &[]),
            ("contains", &["\"r1\""]),
            ("contains", &["\"r2\""]),
            ("remove", &["\"r1\""]),
            ("remove", &["\"r2\""]),
            ("take", &[]),
            ("poll", &["0"]),
            ("len", &[]),
            ("dpoll", &[]),
            ("offer", &["\"late\"", HOUR]),
            ("clear", &[]),
            ("size", &[]),
            ("readall", &[]),
            ("offer", &["\"soon\"", "1"]),
            ("drain", &["2"]),
            ("len", &[]),
            ("poll", &["0"]),
        ];
        for (command, arguments) in commands {
            let mut on = |queue| java.ask(&[&[command, queue], arguments].concat());
            let (answer, expected) = (on("q"), on("beside"));
            assert_eq!(answer, expected, "{command} {arguments:?}");
            assert!(!answer.starts_with('!'), "{command} {arguments:?}: {answer}");
        }
        assert_eq!(rust.ask(&["inflight", "q"]), "3");
        // They are due now.
        for member in server.zset("redelay:retries:{q}") {
            server.cmd([&b"ZADD"[..], b"redelay:retries:{q}", b"0", &member.0]);
        }
        let mut again = Vec::new();
        for _ in 0..3 {
            let delivery = receive(&mut rust);
            assert_eq!(delivery.attempt, 2);
            rust.tell(&["ack", "q", &delivery.id]);
            again.push(delivery.value.as_str().expect("a text").to_owned());
        }
        again.sort();
        assert_eq!(again, ["r1", "r2", "r3"]);
        nothing_for(&mut java);
    }
}

/// Number 34, its first half.
#[test]
fn java_takes_what_receivers_left() {
    for redisson in VERSIONS {
        let server = Server::start();
        let url = server.url();
        let setup = Setup { redisson, ..Setup::new(&url) };
        let (mut java, mut rust, mut dying) = (setup.java(), setup.rust(), setup.rust());
        for value in ["held", "lost", "retried", "snoozed", "left"] {
            java.tell(&["put", "q", &json!(value).to_string()]);
        }
        let held = receive(&mut rust);
        dying.tell(&["lease", "q", "1000", "10", "on"]);
        let [_lost, retried, snoozed] = [(); 3].map(|()| receive(&mut dying));
        dying.tell(&["retry", "q", &retried.id, HOUR]);
        dying.tell(&["snooze", "q", &snoozed.id, HOUR]);
        drop(dying);
        // As if it had died while this was on its way to it.
        server.cmd(["RPUSH", INBOX, "moved"]);
        let mut released = 0;
        until_within(Duration::from_secs(30), "all that was left is back", || {
            released += rust.ask(&["releaseall", "q"]).parse::<usize>().expect("a number");
            java.ask(&["len", "q"]) == "5"
        });
        // The receiver that lives may have put the inbox back, and gives its own messages back never.
        assert!((3..=4).contains(&released), "{released}");
        let mut taken = texts(&java.ask(&["drain", "q", "5"]));
        taken.sort();
        assert_eq!(taken, ["left", "lost", "moved", "retried", "snoozed"]);
        assert_eq!(rust.ask(&["inflight", "q"]), "1");
        rust.tell(&["ack", "q", &held.id]);
        assert_eq!(rust.ask(&["releaseall", "q"]), "0");
        nothing_for(&mut java);
    }
}

/// Takers in Java, receivers and a worker in Rust, all at once.
#[test]
fn consumers_of_both_languages_get_each_message_once() {
    const OF_EACH: usize = 1000;
    const TAKER: usize = 300;
    const RECEIVER: usize = 300;
    const WORKER: usize = 400;
    const CONCURRENCY: usize = 16;
    // All of them get their share, even if the worker handles some more before it stops.
    const { assert!(2 * OF_EACH > 2 * TAKER + 2 * RECEIVER + WORKER + CONCURRENCY) };

    for redisson in VERSIONS {
        let server = Server::start();
        let url = server.url();
        let setup = Setup { redisson, ..Setup::new(&url) };
        let (takers, receivers) = ([setup.java(), setup.java()], [setup.rust(), setup.rust()]);
        let (mut worker, mut offerers) = (setup.rust(), BOTH.map(|lang| setup.start(lang)));
        offerers.iter_mut().for_each(|peer| peer.open("q"));
        let (count, share) = (OF_EACH.to_string(), TAKER.to_string());
        let mut got: Vec<String> = thread::scope(|scope| {
            let takers = takers.map(|mut java| {
                let share = &share;
                scope.spawn(move || texts(&java.ask(&["drain", "q", share])))
            });
            let receivers =
                receivers.map(|mut rust| scope.spawn(move || receive_and_settle(&mut rust, RECEIVER)));
            worker.send(&["work", "q", &WORKER.to_string(), &CONCURRENCY.to_string(), "2"]);
            for (peer, prefix) in offerers.iter_mut().zip(["r", "j"]) {
                peer.send(&["offerall", "q", &count, "300", prefix]);
            }
            offerers.iter().for_each(|peer| assert_eq!(peer.answer(), "ok"));
            let worked = texts(&worker.answer());
            assert!((WORKER..WORKER + CONCURRENCY).contains(&worked.len()), "{}", worked.len());
            let rest =
                takers.into_iter().chain(receivers).flat_map(|thread| thread.join().expect("its share"));
            worked.into_iter().chain(rest).collect()
        });
        // What is left over, retries included.
        while got.len() < 2 * OF_EACH {
            let java = offerers[1].ask(&["poll", "q", "0"]);
            if java != "null" {
                got.extend(texts(&format!("[{java}]")));
            }
            let rust = worker.ask(&["receive", "q", "1000"]);
            if rust != "null" {
                let delivery = delivery(&rust);
                worker.tell(&["ack", "q", &delivery.id]);
                got.push(delivery.value.as_str().expect("a text").to_owned());
            }
        }
        got.sort();
        let mut expected: Vec<String> =
            ["j", "r"].iter().flat_map(|prefix| (0..OF_EACH).map(move |n| format!("{prefix}{n}"))).collect();
        expected.sort();
        assert_eq!(got, expected, "redisson {redisson}");
        assert!(overdue(&server, 0.0) || server.zset("redisson_delay_queue_timeout:{q}").is_empty());
        assert_eq!(worker.ask(&["inflight", "q"]), "0");
        assert_eq!(worker.ask(&["dead", "q"]), "[]");
        nothing_for(&mut offerers[1]);
    }
}

/// Acknowledges so many messages. Each seventh delivery fails first, and somebody gets it again.
fn receive_and_settle(rust: &mut Peer, count: usize) -> Vec<String> {
    let mut got = Vec::new();
    for n in 1.. {
        let delivery = receive(rust);
        if n % 7 == 0 && delivery.attempt == 1 {
            rust.tell(&["retry", "q", &delivery.id, "5"]);
            continue;
        }
        rust.tell(&["ack", "q", &delivery.id]);
        got.push(delivery.value.as_str().expect("a text").to_owned());
        if got.len() == count {
            break;
        }
    }
    got
}

/// The commands of the Rust peer, without a Redisson.
mod protocol {
    use super::*;

    #[test]
    fn a_delivery_is_named_by_its_id_until_it_is_settled() {
        let server = Server::start();
        let mut rust = Setup::new(&server.url()).rust();
        assert_eq!(rust.ask(&["receive", "q", "0"]), "null");
        assert_eq!(rust.ask(&["receivemany", "q", "3"]), "[]");
        rust.tell(&["put", "q", "\"a\""]);
        let first = receive(&mut rust);
        assert_eq!((first.id.len(), first.attempt, &first.value), (32, 1, &json!("a")));
        rust.tell(&["extend", "q", &first.id, "60000"]);
        for command in ["release", "snooze", "retry"] {
            let pause: &[&str] = if command == "release" { &[] } else { &["1"] };
            rust.tell(&[&[command, "q", &first.id], pause].concat());
            fails(&rust.ask(&["ack", "q", &first.id]), "argument");
            let again = receive(&mut rust);
            assert_eq!((&again.id, again.attempt), (&first.id, 1 + u64::from(command == "retry")));
        }
        rust.tell(&["ack", "q", &first.id]);
        fails(&rust.ask(&["ack", "q", &first.id]), "argument");
        fails(&rust.ask(&["extend", "q", &first.id, "1"]), "argument");
        assert_eq!(rust.ask(&["inflight", "q"]), "0");
        rust.quit();
    }

    #[test]
    fn many_are_received_without_waiting() {
        let server = Server::start();
        let mut rust = Setup::new(&server.url()).rust();
        // More than one call of the script claims.
        let values: Vec<Value> = (0..1500).map(|n| json!(format!("v{n}"))).collect();
        values.iter().for_each(|value| rust.send(&["put", "q", &value.to_string()]));
        values.iter().for_each(|_| assert_eq!(rust.answer(), "ok"));
        let mut received = Vec::new();
        for (most, count) in [("1200", 1200), ("1200", 300), ("1200", 0)] {
            let many = parsed(&rust.ask(&["receivemany", "q", most]));
            let many = many.as_array().expect("an array");
            assert_eq!(many.len(), count);
            received.extend(many.iter().map(|one| delivery(&one_line(one))));
        }
        assert_eq!(received.iter().map(|delivery| delivery.value.clone()).collect::<Vec<_>>(), values);
        let ids: BTreeSet<&String> = received.iter().map(|delivery| &delivery.id).collect();
        assert_eq!(ids.len(), 1500);
        assert_eq!(rust.ask(&["inflight", "q"]), "1500");
        // At the end of the peer, others get them at once.
        rust.quit();
        let mut other = Setup::new(&server.url()).rust();
        assert_eq!(receive(&mut other).attempt, 1);
    }

    fn one_line(delivery: &Value) -> String {
        format!(
            r#"{{"id":{},"attempt":{},"value":{}}}"#,
            delivery["id"], delivery["attempt"], delivery["value"]
        )
    }

    #[test]
    fn without_heartbeats_a_delivery_is_lost_to_others() {
        let server = Server::start();
        let url = server.url();
        let setup = Setup::new(&url);
        let mut peers = [(); 2].map(|()| setup.rust());
        peers[0].tell(&["lease", "q", "300", "10", "off"]);
        server.cmd(["RPUSH", "q", "a"]);
        let first = receive(&mut peers[0]);
        // The same peer gets it again: the id names the later delivery.
        let second = receive(&mut peers[0]);
        assert_eq!((&second.id, second.attempt), (&first.id, 2));
        let third = receive(&mut peers[1]);
        assert_eq!((&third.id, third.attempt), (&first.id, 3));
        for _ in 0..2 {
            fails(&peers[0].ask(&["ack", "q", &first.id]), "leaselost");
        }
        fails(&peers[0].ask(&["extend", "q", &first.id, "1000"]), "leaselost");
        peers[1].tell(&["ack", "q", &first.id]);

        server.cmd(["RPUSH", "q", "b"]);
        receive(&mut peers[0]);
        let again = receive(&mut peers[0]);
        assert_eq!(again.attempt, 2);
        peers[0].tell(&["ack", "q", &again.id]);
        assert_eq!(peers[0].ask(&["inflight", "q"]), "0");
        peers.into_iter().for_each(Peer::quit);
    }

    #[test]
    fn with_heartbeats_a_delivery_is_kept() {
        let server = Server::start();
        let url = server.url();
        let setup = Setup::new(&url);
        let mut peers = [(); 2].map(|()| setup.rust());
        peers[0].tell(&["lease", "q", "1000", "10", "on"]);
        server.cmd(["RPUSH", "q", "a"]);
        let held = receive(&mut peers[0]);
        // Three leases.
        assert_eq!(peers[1].ask(&["receive", "q", "3000"]), "null");
        peers[0].tell(&["ack", "q", &held.id]);
    }

    #[test]
    fn dead_letters_are_listed_and_requeued() {
        let server = Server::start();
        let url = server.url();
        let mut rust = Setup { codec: "long", ..Setup::new(&url) }.rust();
        rust.tell(&["lease", "q", "30000", "2", "on"]);
        server.cmd(["RPUSH", "q", "not a number", "1", "2"]);
        fails(&rust.ask(&["receive", "q", "20000"]), "undecodable");
        let undecodable = parsed(&rust.ask(&["dead", "q"]));
        assert_eq!(undecodable.as_array().map(Vec::len), Some(1), "{undecodable}");
        let rejected = receive(&mut rust);
        rust.tell(&["reject", "q", &rejected.id, "there is no \"1\""]);
        let failed = receive(&mut rust);
        rust.tell(&["retry", "q", &failed.id, "1"]);
        assert_eq!(receive(&mut rust).attempt, 2);
        rust.tell(&["retry", "q", &failed.id, "1"]);
        let dead = parsed(&rust.ask(&["dead", "q"]));
        let dead = dead.as_array().expect("an array");
        let of = |reason: &str| dead.iter().find(|letter| letter["reason"] == reason).cloned();
        let expected = |id: &str, value: u64, reason: &str, attempts: u64| {
            Some(json!({"id": id, "value": value, "reason": reason, "attempts": attempts}))
        };
        assert_eq!(of("there is no \"1\""), expected(&rejected.id, 1, "there is no \"1\"", 1));
        assert_eq!(of("attempts"), expected(&failed.id, 2, "attempts", 2));
        let undecodable = of("undecodable").expect("a letter");
        assert_eq!((&undecodable["value"], &undecodable["attempts"]), (&Value::Null, &json!(1)));

        assert_eq!(rust.ask(&["requeue", "q", "1"]), "1");
        fails(&rust.ask(&["receive", "q", "20000"]), "undecodable");
        assert_eq!(rust.ask(&["requeue", "q", "10"]), "3");
        let mut answers: Vec<String> = (0..3).map(|_| rust.ask(&["receive", "q", "20000"])).collect();
        answers.sort_by_key(|answer| !answer.starts_with('!'));
        fails(&answers[0], "undecodable");
        for answer in &answers[1..] {
            let again = delivery(answer);
            assert_eq!(again.attempt, 1);
            rust.tell(&["ack", "q", &again.id]);
        }
    }

    #[test]
    fn a_worker_handles_so_many_and_stops() {
        let server = Server::start();
        let mut rust = Setup::new(&server.url()).rust();
        assert_eq!(rust.ask(&["work", "q", "0", "4", "1"]), "[]");
        let mut values: Vec<String> = (0..40).map(|n| format!("v{n:02}")).collect();
        values.iter().for_each(|value| rust.tell(&["put", "q", &json!(value).to_string()]));
        let mut worked = texts(&rust.ask(&["work", "q", "20", "4", "5"]));
        assert!((20..24).contains(&worked.len()), "{worked:?}");
        let left = rust.ask(&["len", "q"]).parse::<usize>().expect("a number");
        assert_eq!((left, rust.ask(&["inflight", "q"])), (40 - worked.len(), "0".into()));
        worked.extend(texts(&rust.ask(&["work", "q", &left.to_string(), "1", "0"])));
        worked.sort();
        values.sort();
        assert_eq!(worked, values);
        fails(&rust.ask(&["work", "q", "1", "0", "1"]), "invalid");
    }

    #[test]
    fn what_a_peer_does_not_have_is_unsupported() {
        let server = Server::start();
        let url = server.url();
        let [mut rust, mut java] = BOTH.map(|lang| Setup::new(&url).start(lang));
        let later = "job jobget jobcancel jobmove schedule unschedule pause resume limit maxinflight";
        let receiving = "lease receive receivemany ack retry snooze release reject extend inflight dead requeue releaseall work";
        for command in later.split(' ') {
            fails(&rust.ask(&[command, "q"]), "unsupported");
            fails(&java.ask(&[command, "q"]), "unsupported");
        }
        for command in receiving.split(' ') {
            fails(&java.ask(&[command, "q"]), "unsupported");
            fails(&rust.ask(&[command, "q", "x", "x", "x", "x", "x"]), "argument");
        }
        for wrong in
            [&["lease", "q", "1000", "3", "maybe"][..], &["receive", "q", "-1"], &["receivemany", "q", "x"]]
        {
            fails(&rust.ask(wrong), "argument");
        }
        rust.tell(&["lease", "q", "1", "3", "on"]);
        fails(&rust.ask(&["receive", "q", "0"]), "invalid");
        assert_eq!(rust.ask(&["len", "q"]), "0", "and it goes on");
    }
}
