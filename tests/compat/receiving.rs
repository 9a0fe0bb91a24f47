//! Receivers and workers beside Redisson's takers, on one queue.

mod protocol;

use std::thread;
use std::time::{Duration, Instant};

use redelay::{BlockingQueue, Client, codec};
use redelay_fixture::{Server, until, until_async, until_within};
use redelay_support::{CONTROL, INBOX, LEASES, RETRIES};
use serde_json::{Value, json};

use crate::peer::{Lang, Peer, Setup};
use crate::{BOTH, HOUR, overdue};

const VERSIONS: [&str; 2] = ["4.7.0", "3.50.0"];

/// A delivery, as the Rust peer prints it.
#[derive(Clone, Debug)]
struct Received {
    id: String,
    attempt: u64,
    /// The id of a job that holds it.
    job: Option<String>,
    value: Value,
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {text}"))
}

fn delivery(text: &str) -> Received {
    let delivery = parsed(text);
    let id = delivery["id"].as_str().unwrap_or_else(|| panic!("no delivery: {text}"));
    let attempt = delivery["attempt"].as_u64().expect("a number");
    let job = delivery["job"].as_str().map(str::to_owned);
    let field = job.as_ref().map(|job| format!(r#""job":"{job}","#)).unwrap_or_default();
    let printed = format!(r#"{{"id":"{id}","attempt":{attempt},{field}"value":{}}}"#, delivery["value"]);
    assert_eq!(text, printed, "the fields, in their order");
    Received { id: id.into(), attempt, job, value: delivery["value"].clone() }
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
        assert_eq!(keys, [CONTROL], "redisson {redisson}");
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
        let (mut rounds_in_time, most) = (0, Duration::from_secs(9));
        for round in 0..20 {
            let begun = Instant::now();
            for (at, (lang, peer)) in parked.iter_mut().enumerate() {
                match lang {
                    Lang::Java => peer.send(&["take", "q"]),
                    Lang::Rust => peer.send(&["receive", "q", "60000"]),
                }
                until("it waits", || server.blocked_clients() == at as u64 + 1);
            }
            let values: Vec<_> = (0..parked.len()).map(|at| format!("{round}-{at}")).collect();
            let (mut served, mut in_time) = (Vec::new(), true);
            for (at, (lang, peer)) in parked.iter_mut().enumerate() {
                if in_time {
                    server.cmd(["RPUSH", "q", &values[at]]);
                    in_time = begun.elapsed() < most;
                    if !in_time {
                        // Any of them may have that one.
                        values[at + 1..].iter().for_each(|value| _ = server.cmd(["RPUSH", "q", value]));
                    }
                }
                let answer = peer.answer();
                served.push(match lang {
                    Lang::Java => parsed(&answer),
                    Lang::Rust => {
                        let delivery = delivery(&answer);
                        assert_eq!(delivery.attempt, 1);
                        peer.tell(&["ack", "q", &delivery.id]);
                        delivery.value
                    }
                });
            }
            until("nobody waits", || server.blocked_clients() == 0);
            if !in_time {
                served.sort_by_key(ToString::to_string);
            }
            assert_eq!(served, values);
            rounds_in_time += u8::from(in_time);
            if rounds_in_time == 2 {
                break;
            }
        }
        assert_eq!(rounds_in_time, 2, "each other round took longer than {most:?}");
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
    let receiver = queue.receiver().max_attempts(1).dead_letters_to(&dead);
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

/// Number 33. On another queue, the same is done without what waits for retries, and Redisson gives the same
/// answers.
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
        for member in server.zset(RETRIES) {
            server.cmd([&b"ZADD"[..], RETRIES.as_bytes(), b"0", &member.0]);
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
        for peer in [&mut rust, &mut dying] {
            peer.tell(&["lease", "q", "1000", "10", "on"]);
        }
        let held = receive(&mut rust);
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
        // The receiver that lives takes back what was lost, and puts the inbox back. Its own message stays.
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
    // All of them get their share, even if the worker handles some more before it stops: on a busy computer,
    // the signal comes some rounds late.
    const { assert!(2 * OF_EACH > 2 * TAKER + 2 * RECEIVER + WORKER + 20 * CONCURRENCY) };

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
            worker.send(&["work", "q", &WORKER.to_string(), &CONCURRENCY.to_string(), "20"]);
            for (peer, prefix) in offerers.iter_mut().zip(["r", "j"]) {
                peer.send(&["offerall", "q", &count, "300", prefix]);
            }
            offerers.iter().for_each(|peer| assert_eq!(peer.answer(), "ok"));
            let worked = texts(&worker.answer());
            assert!(worked.len() >= WORKER, "{}", worked.len());
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

/// Acknowledges `count` messages. Each seventh delivery fails first, and somebody gets it again.
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
