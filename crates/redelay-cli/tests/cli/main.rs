//! The program against real servers: what it prints, what it ends with, and what it sends.

mod answers;
mod clusters;
mod connecting;
mod doctor;
#[cfg(feature = "exporter")]
mod exporting;
mod failover;
mod failures;
mod names;
mod offline;
#[cfg(feature = "exporter")]
mod prometheus;
mod pumping;
mod rights;
mod scale;
mod schemas;
mod top;
mod watching;

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use redelay::{Client, codec};
use redelay_fixture::{Program, Server};
use serde_json::Value;

/// Longer than anything takes on a busy machine.
const LONG: &str = "--timeout=10m";
const HOUR: Duration = Duration::from_secs(3600);
/// An interval whose next run comes at no time of any day while a test runs.
const SELDOM: Duration = Duration::from_secs(10_000 * 24 * 3600);

/// What the program has done.
struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Ran {
    fn new(output: &Output) -> Self {
        Self {
            code: output.status.code().expect("it ends by itself"),
            out: String::from_utf8(output.stdout.clone()).expect("what it prints is UTF-8"),
            err: String::from_utf8(output.stderr.clone()).expect("what it says is UTF-8"),
        }
    }

    /// What it prints, if it was successful.
    #[track_caller]
    fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self.out
    }

    /// What it says in one line, if it ended with this code and printed nothing.
    #[track_caller]
    fn failed(self, code: i32) -> String {
        assert_eq!((self.code, &*self.out), (code, ""), "{}", self.err);
        assert!(self.err.starts_with("redelay: ") || code == 2, "{}", self.err);
        if code != 2 {
            assert_eq!(self.err.matches('\n').count(), 1, "{}", self.err);
        }
        self.err
    }

    /// The documents that it prints, if it was successful.
    #[track_caller]
    fn json(self) -> Vec<Value> {
        let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.ok().lines().map(line).collect()
    }
}

/// The program without anything of this machine.
fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_redelay"));
    for name in
        ["REDELAY_URL", "REDIS_URL", "REDELAY_PROFILE", "XDG_CONFIG_HOME", "NO_COLOR", "CLICOLOR_FORCE"]
    {
        command.env_remove(name);
    }
    command.env("HOME", "/nonexistent").env("TZ", "UTC").stdin(Stdio::null());
    command
}

/// Runs the program on a server.
fn redelay<W: AsRef<OsStr>>(server: &Server, words: impl IntoIterator<Item = W>) -> Ran {
    at(&server.url(), words)
}

fn at<W: AsRef<OsStr>>(url: &str, words: impl IntoIterator<Item = W>) -> Ran {
    let output = program().env("REDIS_URL", url).arg(LONG).args(words).output();
    Ran::new(&output.expect("the program can be executed"))
}

/// Runs the program without a server, with this on stdin.
fn offline(words: &[&str], stdin: &[u8]) -> Ran {
    let mut command = program();
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program can be executed");
    // It may have ended before it has read everything.
    let _ = child.stdin.take().expect("it is piped").write_all(stdin);
    Ran::new(&child.wait_with_output().expect("it ends"))
}

/// Reads a page of a program that has printed its address: the status, and what it says.
fn page(program: &Program, behind: &str, path: &str) -> Option<(u16, String)> {
    let output = program.output();
    let (_, rest) = output.split_once(behind)?;
    let mut stream = TcpStream::connect(rest.split_once('/')?.0).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// The payloads that Redisson wrote, by their names.
fn vectors(file: &str) -> Vec<(String, Vec<u8>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../redisson-codec/tests/vectors").join(file);
    let text = std::fs::read_to_string(path).expect("the vectors");
    let row = |row: &str| {
        let cells: Vec<&str> = row.split('\t').collect();
        let digits = cells.last().expect("a cell");
        let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
        (cells[0].to_owned(), (0..digits.len()).step_by(2).map(byte).collect())
    };
    text.lines().filter(|line| !line.starts_with('#')).map(row).collect()
}

async fn client(server: &Server) -> Client {
    let long = Duration::from_secs(600);
    let client =
        Client::builder().url(server.url()).transfer(false).connect_timeout(long).command_timeout(long);
    client.connect().await.expect("a client")
}

/// Fills every place of the queue `orders`: with the payloads of Redisson's Kryo codec, in the order of their
/// names, where there are many.
async fn fill(server: &Server) {
    let payloads: Vec<Vec<u8>> = vectors("kryo5.tsv").into_iter().map(|(_, payload)| payload).collect();
    let client = client(server).await;
    let ready = client.blocking_queue("orders", codec::Bytes);
    let delayed = client.delayed_queue(&ready);
    let offers = payloads.iter().enumerate();
    let offers = offers.map(|(n, payload)| (payload, HOUR + Duration::from_secs(n as u64)));
    delayed.offer_all(offers).await.expect("offers");
    let first = delayed.offer(&payloads[2], Duration::from_secs(1800)).id("order-7");
    first.await.expect("an offer");
    for payload in &payloads[..4] {
        ready.put(payload).await.expect("a put");
    }
    let receiver = ready.receiver();
    receiver.receive().await.expect("a message").reject("no such \x1b[2Jproduct").await.expect("a reject");
    receiver.receive().await.expect("a message").retry_after(HOUR).await.expect("a retry");
    // It stays in flight without a client.
    std::mem::forget(receiver.receive().await.expect("a message"));
    delayed.schedule("nightly").every(SELDOM).upsert(&payloads[1]).await.expect("a schedule");
    ready.put(&payloads[3]).await.expect("a put");
    server.cmd(["RPUSH", "redelay:quarantine:{orders}", "4102444800000", "junk\x1b"]);
    let hello = &payloads[2];
    let entry = [&b"\x08\x10\x68\x90\xaa\x3e\x21\x91\x25\x06\0\0\0\0\0\0\0"[..], hello].concat();
    let pops = "local function leave(id, kind, ...)
            redis.call('HSET', KEYS[1], id, cmsgpack.pack({kind, 1795252457299, {...}}))
        end
        leave('pop-1', 'LPOP', ARGV[1], ARGV[1])
        leave('pop-2', 'poll', ARGV[2], '4102444800000')";
    let words = ["EVAL", pops, "1", "redelay:popped:{orders}"].map(str::as_bytes);
    server.cmd(words.into_iter().chain([&hello[..], &entry]));
    drop(receiver);
    client.shutdown().await;
}
