//! The commands of the Rust peer, without a Redisson.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

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
    let texts = |values: &[Value]| values.iter().map(Value::to_string).collect::<BTreeSet<_>>();
    let mut received = Vec::new();
    for range in [0..1200, 1200..1500, 1500..1500] {
        let many = parsed(&rust.ask(&["receivemany", "q", "1200"]));
        let many: Vec<_> =
            many.as_array().expect("an array").iter().map(|one| delivery(&one_line(one))).collect();
        assert_eq!(many.len(), range.len());
        // Of two calls at a time, the second one may be answered first.
        let got: Vec<_> = many.iter().map(|delivery| delivery.value.clone()).collect();
        assert_eq!(texts(&got), texts(&values[range]));
        received.extend(many);
    }
    let ids: BTreeSet<&String> = received.iter().map(|delivery| &delivery.id).collect();
    assert_eq!(ids.len(), 1500);
    assert_eq!(rust.ask(&["inflight", "q"]), "1500");
    // At the end of the peer, others get them at once.
    rust.quit();
    let mut other = Setup::new(&server.url()).rust();
    assert_eq!(receive(&mut other).attempt, 1);
}

fn one_line(delivery: &Value) -> String {
    format!(r#"{{"id":{},"attempt":{},"value":{}}}"#, delivery["id"], delivery["attempt"], delivery["value"])
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
    // And those that were begun before the signal to stop came.
    assert!(worked.len() >= 20, "{worked:?}");
    let left = rust.ask(&["len", "q"]).parse::<usize>().expect("a number");
    assert_eq!((left, rust.ask(&["inflight", "q"])), (40 - worked.len(), "0".into()));
    worked.extend(texts(&rust.ask(&["work", "q", &left.to_string(), "1", "0"])));
    worked.sort();
    values.sort();
    assert_eq!(worked, values);
    fails(&rust.ask(&["work", "q", "1", "0", "1"]), "invalid");
}

#[test]
fn jobs_have_ids_and_policies() {
    let server = Server::start();
    let mut rust = Setup::new(&server.url()).rust();
    let mut job =
        |value: &str, millis: &str, policy: &str| rust.ask(&["job", "q", "17", value, millis, policy]);
    assert_eq!(job("\"a\"", "60000", "keep"), "stored");
    assert_eq!(job("\"b\"", "90000", "keep"), "kept");
    assert_eq!(job("\"b\"", "90000", "earliest"), "kept");
    assert_eq!(job("\"b\"", "50000", "earliest"), "replaced");
    assert_eq!(job("\"c\"", "60000", "debounce:70000"), "replaced");
    assert_eq!(job("\"d\"", "60000", "replace"), "replaced");
    assert_eq!(job("\"e\"", "60000", "throttle:60000"), "kept");
    fails(&job("\"e\"", "60000", "later"), "argument");
    let found = parsed(&rust.ask(&["jobget", "q", "17"]));
    assert_eq!(found["value"], json!("d"));
    assert!((1..=60_000).contains(&found["in"].as_u64().expect("a number")), "{found}");
    assert_eq!(rust.ask(&["jobmove", "q", "17", "0"]), "true");
    rust.tell(&["open", "q"]);
    assert_eq!(rust.ask(&["take", "q"]), "\"d\"");
    assert_eq!(rust.ask(&["jobget", "q", "17"]), "null");
    assert_eq!(rust.ask(&["jobmove", "q", "17", "0"]), "false");
    assert_eq!(rust.ask(&["jobcancel", "q", "17"]), "false");
    for (answer, millis) in [("stored", "60000"), ("throttled", "1")] {
        assert_eq!(rust.ask(&["job", "q", "18", "\"a\"", millis, "throttle:60000"]), answer);
        assert_eq!(rust.ask(&["jobcancel", "q", "18"]), (answer == "stored").to_string());
    }
    rust.quit();
}

#[test]
fn a_held_job_has_its_id_until_it_is_done() {
    let server = Server::start();
    let mut peer = Setup::new(&server.url()).rust();
    peer.open("q");
    let rust = &mut peer;
    let held =
        |rust: &mut Peer, value, millis, policy| rust.ask(&["jobheld", "q", "17", value, millis, policy]);
    let cancel = |rust: &mut Peer| rust.ask(&["jobcancel", "q", "17"]);
    let is = |rust: &mut Peer, state: &str| {
        assert_eq!(rust.ask(&["jobstate", "q", "17"]), format!("\"{state}\""));
    };
    let until_ready = |rust: &mut Peer| {
        until("it is ready", || rust.ask(&["jobstate", "q", "17"]) == "\"ready\"");
    };
    let received = |rust: &mut Peer, value: &str, attempt: u64| {
        let got = receive(rust);
        assert_eq!((&got.value, got.attempt, got.job.as_deref()), (&json!(value), attempt, Some("17")));
        is(rust, "inflight");
        got.id
    };
    is(rust, "none");
    assert_eq!(cancel(rust), "false");
    fails(&held(rust, "\"a\"", HOUR, "later"), "argument");

    assert_eq!(held(rust, "\"a\"", HOUR, "replace"), "stored");
    is(rust, "pending");
    assert_eq!(held(rust, "\"x\"", "0", "keep"), "kept");
    assert_eq!(held(rust, "\"b\"", HOUR, "replace"), "replaced");
    assert_eq!(rust.ask(&["readall", "q"]), "[\"b\"]");
    assert_eq!(cancel(rust), "true");
    is(rust, "none");
    assert_eq!((rust.ask(&["size", "q"]), cancel(rust)), ("0".into(), "false".into()));

    assert_eq!(held(rust, "\"c\"", "0", "replace"), "stored");
    until_ready(rust);
    assert_eq!(held(rust, "\"x\"", "0", "keep"), "kept");
    assert_eq!(held(rust, "\"d\"", HOUR, "replace"), "replaced");
    is(rust, "pending");
    assert_eq!(rust.ask(&["len", "q"]), "0");
    assert_eq!(rust.ask(&["jobmove", "q", "17", "0"]), "true");
    until_ready(rust);
    assert_eq!(cancel(rust), "true");
    is(rust, "none");
    assert_eq!(rust.ask(&["len", "q"]), "0");

    assert_eq!(held(rust, "\"e\"", "0", "replace"), "stored");
    let id = received(rust, "e", 1);
    assert_eq!(held(rust, "\"x\"", "0", "keep"), "kept");
    assert_eq!(held(rust, "\"x\"", "0", "replace"), "running");
    rust.tell(&["retry", "q", &id, "1"]);
    assert_eq!(received(rust, "e", 2), id);
    rust.tell(&["retry", "q", &id, HOUR]);
    is(rust, "waiting");
    assert_eq!(held(rust, "\"x\"", "0", "keep"), "kept");
    assert_eq!(held(rust, "\"f\"", "0", "replace"), "replaced");
    let other = received(rust, "f", 1);
    assert!(other != id && rust.ask(&["inflight", "q"]) == "1");
    rust.tell(&["retry", "q", &other, HOUR]);
    assert_eq!(cancel(rust), "true");
    is(rust, "none");
    assert_eq!(rust.ask(&["inflight", "q"]), "0");

    assert_eq!(held(rust, "\"g\"", "0", "keep"), "stored");
    let id = received(rust, "g", 1);
    rust.tell(&["reject", "q", &id, "no"]);
    is(rust, "dead");
    assert_eq!(held(rust, "\"x\"", "0", "keep"), "kept");
    assert_eq!(held(rust, "\"h\"", "0", "replace"), "replaced");
    assert_eq!(rust.ask(&["dead", "q"]), "[]");
    let id = received(rust, "h", 1);
    rust.tell(&["reject", "q", &id, "no"]);
    assert_eq!(cancel(rust), "true");
    is(rust, "none");
    assert_eq!(rust.ask(&["dead", "q"]), "[]");

    // One in flight is asked to end: it is acknowledged, or has no other attempt.
    for settle in [&["ack"][..], &["retry", "1"], &["reject", "no"]] {
        assert_eq!(held(rust, "\"i\"", "0", "replace"), "stored");
        let id = received(rust, "i", 1);
        for _ in 0..2 {
            assert_eq!(cancel(rust), "\"requested\"");
            is(rust, "inflight");
        }
        rust.tell(&[&[settle[0], "q", &id], &settle[1..]].concat());
        is(rust, "none");
        assert_eq!(cancel(rust), "false");
    }
    assert_eq!((rust.ask(&["inflight", "q"]), rust.ask(&["dead", "q"])), ("0".into(), "[]".into()));

    // Several at once have their ids, too, and a job that does not hold its id has none.
    assert_eq!(rust.ask(&["job", "q", "18", "\"k\"", "0", "keep"]), "stored");
    assert_eq!(receive(rust).job, None);
    assert_eq!(held(rust, "\"l\"", "0", "keep"), "stored");
    until_ready(rust);
    let many = parsed(&rust.ask(&["receivemany", "q", "2"]));
    let jobs: Vec<_> = many.as_array().expect("an array").iter().map(|one| &one["job"]).collect();
    assert_eq!(jobs, [&json!("17")]);
    peer.quit();
}

#[test]
fn a_schedule_runs_for_both_languages() {
    let server = Server::start();
    let url = server.url();
    let [mut rust, mut java] = BOTH.map(|lang| Setup::new(&url).start(lang));
    // Without `open`, this peer stores nothing behind the first run, and Java moves that.
    rust.tell(&["schedule", "q", "tick", "every:500", "\"a\""]);
    java.tell(&["open", "q"]);
    assert_eq!(java.ask(&["take", "q"]), "\"a\"");
    assert_eq!(rust.ask(&["size", "q"]), "0");
    rust.tell(&["open", "q"]);
    for _ in 0..4 {
        assert_eq!(java.ask(&["take", "q"]), "\"a\"");
    }
    rust.tell(&["schedule", "q", "nightly", "0 3 * * *", "\"b\""]);
    rust.tell(&["unschedule", "q", "tick"]);
    assert_eq!(rust.ask(&["readall", "q"]), "[\"b\"]");
    assert_eq!(java.ask(&["readall", "q"]), "[\"b\"]");
    rust.tell(&["unschedule", "q", "nightly"]);
    assert_eq!(java.ask(&["size", "q"]), "0");
    fails(&rust.ask(&["schedule", "q", "s", "every:0", "\"a\""]), "invalid");
    fails(&rust.ask(&["schedule", "q", "s", "0 25 * * *", "\"a\""]), "invalid");
    rust.quit();
}

#[test]
fn a_queue_is_paused_and_limited() {
    let server = Server::start();
    let mut rust = Setup::new(&server.url()).rust();
    for value in ["\"a\"", "\"b\"", "\"c\""] {
        rust.tell(&["put", "q", value]);
    }
    rust.tell(&["pause", "q"]);
    assert_eq!(rust.ask(&["receive", "q", "0"]), "null");
    rust.tell(&["resume", "q"]);
    rust.tell(&["maxinflight", "q", "1"]);
    let first = receive(&mut rust);
    assert_eq!(rust.ask(&["receive", "q", "0"]), "null");
    rust.tell(&["ack", "q", &first.id]);
    rust.tell(&["limit", "q", "1", "1"]);
    let begun = Instant::now();
    let second = receive(&mut rust);
    rust.tell(&["ack", "q", &second.id]);
    let third = rust.ask(&["receive", "q", "0"]);
    // Unless the machine was busy for as long as the limit says.
    assert!(third == "null" || begun.elapsed() >= Duration::from_millis(990), "{third}");
    fails(&rust.ask(&["limit", "q", "0", "1"]), "invalid");
    fails(&rust.ask(&["maxinflight", "q", "0"]), "invalid");
    rust.quit();
}

#[test]
fn what_a_peer_does_not_have_is_unsupported() {
    let server = Server::start();
    let url = server.url();
    let [mut rust, mut java] = BOTH.map(|lang| Setup::new(&url).start(lang));
    let receiving = "lease receive receivemany ack retry snooze release reject extend inflight dead requeue releaseall work";
    let jobs =
        "job jobheld jobget jobstate jobcancel jobmove schedule unschedule pause resume limit maxinflight";
    for command in receiving.split(' ').chain(jobs.split(' ')) {
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
