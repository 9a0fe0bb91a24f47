//! What goes wrong: a line on stderr that says what to do, and the exit code.

use std::io::Read;
use std::process::Stdio;

use redelay_fixture::{Port, Server};

use super::{at, fill, program, redelay};

const READING: [&[&str]; 5] =
    [&["ls"], &["show", "orders"], &["list", "orders"], &["due", "orders"], &["watch"]];

#[test]
fn without_a_server() {
    let port = Port::reserve();
    let url = format!("redis://127.0.0.1:{}", port.number());
    let start = |words: &&[&str]| {
        let mut command = program();
        command.env("REDIS_URL", &url).arg("--timeout=4s").args(*words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    // All at once, because each of them waits.
    for child in READING.each_ref().map(start) {
        let said = super::Ran::new(&child.wait_with_output().unwrap()).failed(3);
        assert!(said.contains(&format!("127.0.0.1:{}", port.number())), "{said}");
        assert!(said.contains("is a server running there"), "{said}");
    }
}

#[test]
fn with_a_wrong_password() {
    let server = Server::builder().password("right").start();
    for words in READING {
        for url in [
            format!("redis://:wrong@127.0.0.1:{}", server.port()),
            format!("redis://127.0.0.1:{}", server.port()),
        ] {
            let said = at(&url, words).failed(4);
            assert!(said.contains("check the user and password") && !said.contains("wrong@"), "{said}");
        }
    }
}

#[test]
fn without_such_a_queue() {
    let server = Server::start();
    for words in &READING[1..4] {
        let said = redelay(&server, *words).failed(1);
        assert!(
            said.contains("there is no queue `orders` on 127.0.0.1:") && said.contains("redelay ls"),
            "{said}"
        );
    }
}

#[test]
fn with_keys_of_another_type() {
    let server = Server::start();
    server.cmd(["SET", "redisson_delay_queue_timeout:{orders}", "1"]);
    server.cmd(["RPUSH", "orders", "7"]);
    let ls = redelay(&server, ["ls"]);
    assert!(ls.code == 0 && ls.out.lines().last().unwrap().ends_with("unknown"), "{}", ls.out);
    assert!(ls.err.contains("pending is unknown: WRONGTYPE"), "{}", ls.err);
    let said = redelay(&server, ["list", "orders"]).failed(1);
    assert!(said.contains("WRONGTYPE") && said.contains("rename that key"), "{said}");
    assert!(redelay(&server, ["list", "orders", "ready"]).ok().contains('7'));
}

/// The server or the machine refuses the call. The user has made no mistake.
#[test]
fn with_a_server_or_a_machine_that_refuses() {
    let server = Server::builder().config("rename-command ZCOUNT \"\"").start();
    server.cmd(["ZADD", "redisson_delay_queue_timeout:{orders}", "4102444800000", "junk"]);
    let said = redelay(&server, ["due", "orders"]).failed(5);
    assert!(said.contains("ERR unknown command"), "{said}");
    for words in [&["ls"][..], &["ls", "--json"], &["man"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = program();
        command.env("REDIS_URL", server.url()).arg(super::LONG).args(words).stdout(full);
        let said = super::Ran::new(&command.output().unwrap()).failed(5);
        assert!(said.contains("the output cannot be written: "), "{said}");
    }
}

/// Scores that are no times.
#[test]
fn with_scores_beyond_all_times() {
    let server = Server::start();
    for (name, scores) in [("early", ["-inf", "-5"]), ("late", ["1e300", "inf"])] {
        let key = format!("redisson_delay_queue_timeout:{{{name}}}");
        server.cmd(["ZADD", &key, scores[0], "one", scores[1], "two"]);
        let page = redelay(&server, ["list", name, "--limit=1"]).ok();
        let (_, cursor) = page.trim_end().rsplit_once("--after ").expect("the last line says how to go on");
        assert!(redelay(&server, ["list", name, "--after", cursor]).ok().contains("0x74776f"), "{page}");
    }
    let queues = redelay(&server, ["ls", "--json"]).json();
    let years = queues[0]["overdue_for_ms"].as_f64().unwrap() / 3.15576e10;
    assert!((56.0..1_000.0).contains(&years), "since 1970: {years}");
    let ls = redelay(&server, ["ls"]).ok();
    assert!(ls.contains("  never  "), "{ls}");
}

#[test]
fn with_wrong_words() {
    let server = Server::start();
    for (words, why) in [
        (&["ls", "--no-such"][..], "--no-such"),
        (&["list", "orders", "--after", "x"], "expected a cursor"),
        (&["due", "orders", "--step", "soon"], "expected a time"),
        (&["due", "orders", "--count", "0"], "--count"),
        (&["list", "orders", "nowhere"], "in-flight"),
        (&["inspect", "0x0"], "hexadecimal digits"),
        (&[], "Usage"),
    ] {
        let said = redelay(&server, words).failed(2);
        assert!(said.contains(why), "{words:?}: {said}");
    }
    // A cursor of something else.
    server.cmd(["RPUSH", "redelay:quarantine:{orders}", "1", "junk"]);
    let said = redelay(&server, ["list", "orders", "quarantine", "--after", "7:order-8"]).failed(2);
    assert!(said.contains("is no cursor of what is read here"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_has_enough_ends_it() {
    let server = Server::start();
    fill(&server).await;
    for words in [
        &["list", "orders", "--limit", "1000"][..],
        &["list", "orders", "--json", "--limit", "1000"],
        &["man"],
    ] {
        let mut command = program();
        command.env("REDIS_URL", server.url()).arg(super::LONG).args(words);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // More than a pipe holds is never read.
        let mut some = [0; 1];
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut some).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), &output.stderr[..]), (Some(0), &b""[..]), "{words:?}");
    }
}

#[test]
fn a_replica_is_named() {
    let (master, replica) = (Server::start(), Server::start());
    master.cmd(["ZADD", "redisson_delay_queue_timeout:{q}", "4102444800000", "junk"]);
    replica.cmd(["REPLICAOF", "127.0.0.1", &master.port().to_string()]);
    redelay_fixture::until("it follows", || replica.follows(&master) && !replica.keys().is_empty());
    let ls = redelay(&replica, ["ls"]);
    assert!(ls.out.lines().next().unwrap().contains(", REPLICA · 1 queue"), "{}", ls.out);
    assert!(ls.err.contains("is a replica: what it shows may be old"), "{}", ls.err);
}
