//! `redelay doctor`: queues and servers that were damaged on purpose, one way each, and healthy ones.

mod damage;
mod fixes;
mod healthy;
mod queues;
mod rights;
mod sentinels;
mod servers;

use std::collections::BTreeMap;
use std::time::SystemTime;

use redelay_fixture::Server;
use serde_json::Value;

use super::{Ran, at};

/// A server without findings.
fn sound() -> Server {
    Server::builder().appendonly(true).start()
}

/// Runs the doctor, whatever it finds.
fn doctor(url: &str, queues: &[&str]) -> Vec<Value> {
    let words = ["doctor", "--json"].into_iter().chain(queues.iter().copied());
    let ran = at(url, words);
    let findings = lines(&ran);
    let severe = |finding: &Value| ["error", "warning"].contains(&finding["severity"].as_str().unwrap());
    let code = i32::from(findings.iter().any(severe));
    assert_eq!((ran.code, &*ran.err), (code, ""), "{}", ran.out);
    findings
}

fn lines(ran: &Ran) -> Vec<Value> {
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    ran.out.lines().map(line).collect()
}

/// The codes of each queue, and of the server under the empty name.
fn codes(findings: &[Value]) -> BTreeMap<String, Vec<String>> {
    let mut codes = BTreeMap::<_, Vec<_>>::new();
    for finding in findings {
        let queue = finding["queue"].as_str().unwrap_or_default().to_owned();
        codes.entry(queue).or_default().push(finding["code"].as_str().unwrap().to_owned());
    }
    codes.values_mut().for_each(|codes| codes.sort());
    codes
}

/// What is found on the server itself.
fn of_server(findings: &[Value]) -> Vec<String> {
    codes(findings).remove("").unwrap_or_default()
}

/// Epoch ms. The clock of the server is that of this machine.
fn now() -> i64 {
    SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis() as i64
}

const HOUR: i64 = 3_600_000;

/// The timeout set of a queue.
fn set(queue: &str) -> String {
    format!("redisson_delay_queue_timeout:{}", tag(queue))
}

/// The ordered list of a queue.
fn list(queue: &str) -> String {
    format!("redisson_delay_queue:{}", tag(queue))
}

/// Another key of a queue.
fn key(what: &str, queue: &str) -> String {
    format!("redelay:{what}:{}", tag(queue))
}

fn tag(queue: &str) -> String {
    if queue.contains('{') { queue.to_owned() } else { format!("{{{queue}}}") }
}

/// An entry, as Redisson writes it since 3.21.1.
fn entry(id: &str, payload: &[u8]) -> Vec<u8> {
    let mut entry = vec![id.len() as u8];
    entry.extend(id.as_bytes());
    entry.extend((payload.len() as u64).to_le_bytes());
    entry.extend(payload);
    entry
}

/// An entry, as Redisson wrote it before.
fn legacy(id: &[u8; 8], payload: &[u8]) -> Vec<u8> {
    [&id[..], &(payload.len() as u64).to_le_bytes(), payload].concat()
}

/// A text in Kryo.
fn text(text: &str) -> Vec<u8> {
    let mut payload = vec![3];
    payload.extend(text.as_bytes());
    *payload.last_mut().unwrap() |= 0x80;
    payload
}

/// Makes an entry pending.
fn add(server: &Server, queue: &str, due: impl ToString, entry: &[u8]) {
    server.cmd([b"ZADD", set(queue).as_bytes(), due.to_string().as_bytes(), entry]);
    server.cmd([b"RPUSH", list(queue).as_bytes(), entry]);
}

/// Makes an entry pending that is due in an hour.
fn add_sound(server: &Server, queue: &str) {
    add(server, queue, now() + HOUR, &entry("sound", &text("hello")));
}

/// A connection that subscribes to the announcements of a queue, and does nothing.
fn subscribed(server: &Server, queue: &str) -> redelay_fixture::redis::Connection {
    let mut connection = server.redis();
    let channel = format!("redisson_delay_queue_channel:{}", tag(queue));
    let _: redelay_fixture::redis::Value =
        redelay_fixture::redis::cmd("SUBSCRIBE").arg(channel).query(&mut connection).unwrap();
    connection
}

/// Ends what others do meanwhile, also if the test fails.
struct Ends<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}
