//! `redelay exporter`: what Prometheus gets.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use redelay_fixture::{Program, Proxy, Server, until};

use super::{LONG, at, fill, page, redelay};

pub(super) fn exporter(url: &str, timeout: &str, words: &[&str]) -> Program {
    let words: Vec<&str> =
        [timeout, "exporter", "--listen=127.0.0.1:0"].into_iter().chain(words.iter().copied()).collect();
    Program::start(env!("CARGO_BIN_EXE_redelay"), &words, &[("REDIS_URL", url), ("HOME", "/nonexistent")])
}

fn metrics(program: &Program) -> Option<String> {
    let (status, body) = page(program, "metrics at http://", "/metrics")?;
    (status == 200).then_some(body)
}

/// The values by the names with their labels.
fn values(program: &Program) -> BTreeMap<String, f64> {
    let mut text = None;
    until("it answers", || {
        text = metrics(program);
        text.is_some()
    });
    let text = text.unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            (name.to_owned(), value.parse().expect("a number"))
        })
        .collect()
}

/// Names of queues that mean something to the format, to a terminal or to nobody.
pub(super) const ODD_NAMES: [&[u8]; 8] =
    [b"a\"b", b"a\\b", b"a\nb", b"\xff", b"\\xff", b"{x} y", "ü".as_bytes(), b"\x00\x1b[2J"];

/// Something is overdue in each of them.
pub(super) fn offer_to_odd_names(server: &Server) {
    for name in ODD_NAMES {
        let tag = if name.contains(&b'{') { name.to_vec() } else { [b"{", name, b"}"].concat() };
        server.cmd([&b"ZADD"[..], &[b"redisson_delay_queue_timeout:", &tag[..]].concat(), b"1", b"x"]);
    }
}

/// A dashboard joins the metrics of the clients with those of the exporter by this label.
#[test]
fn the_label_is_the_name_on_the_server() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("redelay")).unwrap();
    let profile = format!("[default]\nurl = '{}'\nname_prefix = 'shop:'", server.url());
    std::fs::write(folder.path().join("redelay/config.toml"), profile).unwrap();
    server.cmd(["RPUSH", "shop:orders", "7"]);
    let words = ["--profile=default", LONG, "exporter", "--listen=127.0.0.1:0", "orders"];
    let environment = [("XDG_CONFIG_HOME", folder.path().to_str().unwrap())];
    let program = Program::start(env!("CARGO_BIN_EXE_redelay"), &words, &environment);
    assert_eq!(values(&program)["redelay_queue_ready{queue=\"shop:orders\"}"], 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_in_gauges() {
    let server = Server::start();
    fill(&server).await;
    server.cmd(["ZADD", "redisson_delay_queue_timeout:{late}", "1", "SECRET"]);
    server.cmd(["RPUSH", "late", "SECRET"]);
    server.cmd(["HSET", "redelay:control:{late}", "max_pending", "7"]);
    let words = "ACL SETUSER looks on >secret ~* -@all +@read +scan +time +ping +info +type +pubsub|channels \
        +pubsub|numsub +client";
    server.cmd(words.split_whitespace());
    let url = server.url().replace("redis://", "redis://looks:secret@");
    let program = exporter(&url, LONG, &[]);
    let values = values(&program);
    for (name, value) in [
        ("redelay_up", 1.0),
        ("redelay_exporter_queues_left_out", 0.0),
        ("redelay_queue_ready{queue=\"orders\"}", 2.0),
        ("redelay_queue_in_flight{queue=\"orders\"}", 1.0),
        ("redelay_queue_retries{queue=\"orders\"}", 1.0),
        ("redelay_queue_dead_letters{queue=\"orders\"}", 1.0),
        ("redelay_queue_quarantined{queue=\"orders\"}", 1.0),
        ("redelay_queue_paused{queue=\"orders\"}", 0.0),
        ("redelay_queue_overdue{queue=\"orders\"}", 0.0),
        ("redelay_queue_overdue_for_seconds{queue=\"orders\"}", 0.0),
        ("redelay_queue_transferring_processes{queue=\"late\"}", 0.0),
        ("redelay_queue_overdue{queue=\"late\"}", 1.0),
        ("redelay_queue_max_pending{queue=\"late\"}", 7.0),
        ("redelay_queue_next_due_seconds{queue=\"late\"}", 0.0),
        ("redelay_queue_due_within{queue=\"late\",seconds=\"60\"}", 0.0),
    ] {
        assert_eq!(values.get(name), Some(&value), "{name}: {values:?}");
    }
    assert!(!values.contains_key("redelay_queue_max_pending{queue=\"orders\"}"), "{values:?}");
    assert!(values["redelay_queue_overdue_for_seconds{queue=\"late\"}"] > 1e9);
    assert!(values["redelay_queue_next_due_seconds{queue=\"orders\"}"] > 60.0);
    let text = metrics(&program).unwrap();
    assert!(!text.contains("SECRET") && !text.contains("counter"), "{text}");
    // Nothing else is there.
    assert_eq!(page(&program, "metrics at http://", "/").unwrap().0, 404);
    // A right that is missing leaves out what depends on it.
    server.cmd(["ACL", "SETUSER", "looks", "-zcount", "-pubsub"]);
    let values = self::values(&exporter(&url, LONG, &["late"]));
    for name in ["overdue", "due_within", "transferring_processes"] {
        assert!(!values.keys().any(|key| key.starts_with(&format!("redelay_queue_{name}{{"))), "{values:?}");
    }
    assert_eq!(values["redelay_queue_pending{queue=\"late\"}"], 1.0);
    program.terminate();
    until("it ends", || !program.is_running());
    assert_eq!(program.exit_code(), Some(0));
}

#[test]
fn names_are_labels_whatever_they_are() {
    let server = Server::start();
    offer_to_odd_names(&server);
    let values = values(&exporter(&server.url(), LONG, &[]));
    let pending: Vec<_> = values.keys().filter(|key| key.starts_with("redelay_queue_pending")).collect();
    assert_eq!(pending.len(), ODD_NAMES.len(), "{pending:?}");
    for label in [
        r#"queue="a\"b""#,
        r#"queue="a\\b""#,
        r#"queue="a\nb""#,
        r#"queue="\\xff",queue_hex="ff""#,
        r#"queue="\\xff""#,
    ] {
        assert!(values.contains_key(&format!("redelay_queue_pending{{{label}}}")), "{pending:?}");
    }
}

#[test]
fn it_looks_once_in_a_while_however_many_ask() {
    let server = Server::start();
    for n in 0..30 {
        server.cmd(["ZADD", &format!("redisson_delay_queue_timeout:{{q{n:02}}}"), "1", "x"]);
    }
    let program = exporter(&server.url(), LONG, &["--most=10", "--interval=1h", "q*"]);
    let values = self::values(&program);
    assert_eq!(values["redelay_exporter_queues_left_out"], 20.0);
    let pending: Vec<_> = values.keys().filter(|key| key.starts_with("redelay_queue_pending")).collect();
    assert_eq!(pending.len(), 10);
    assert!(pending[0].contains("q00") && pending[9].contains("q09"), "{pending:?}");
    let looks = server.command_calls("zcard");
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| assert!(metrics(&program).is_some()));
        }
    });
    assert_eq!(server.command_calls("zcard"), looks);
    // And it looks each time, if it may.
    let program = exporter(&server.url(), LONG, &["--interval=1ms"]);
    self::values(&program);
    let looks = server.command_calls("zcard");
    until("it looks again", || {
        self::values(&program);
        server.command_calls("zcard") > looks
    });
}

/// A server that is slow, and clients that are not patient.
#[test]
fn a_look_goes_on_without_the_client_that_has_asked_for_it() {
    let server = Server::start();
    server.cmd(["ZADD", "redisson_delay_queue_timeout:{q}", "1", "x"]);
    let proxy = Proxy::start(server.port());
    let program = exporter(&proxy.url(), LONG, &["--interval=1h"]);
    until("it listens", || program.output().contains("metrics at http://"));
    proxy.hold_replies(true);
    let output = program.output();
    let (_, rest) = output.split_once("metrics at http://").unwrap();
    let address = rest.split_once('/').unwrap().0;
    let mut stream = TcpStream::connect(address).unwrap();
    // Redis before 7.0 counts them as one command.
    let looks = || server.command_calls("pubsub|numsub") + server.command_calls("pubsub");
    let before = looks();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    until("it looks", || looks() > before);
    stream.shutdown(Shutdown::Write).unwrap();
    stream.read_to_end(&mut Vec::new()).expect("it has seen that the client is gone");
    proxy.hold_replies(false);
    assert_eq!(values(&program)["redelay_queue_overdue{queue=\"q\"}"], 1.0);
    assert_eq!(looks(), before + 1);
}

#[test]
fn a_server_that_is_away_is_down() {
    for queues in [0, 3] {
        let server = Server::start();
        for n in 0..queues {
            server.cmd(["ZADD", &format!("redisson_delay_queue_timeout:{{q{n}}}"), "1", "x"]);
        }
        let program = exporter(&server.url(), "--timeout=10s", &["--interval=1ms", "--search=300ms"]);
        until("it is up", || values(&program)["redelay_up"] == 1.0);
        server.kill_9();
        until("it is down", || {
            let values = values(&program);
            values["redelay_up"] == 0.0 && !values.keys().any(|key| key.starts_with("redelay_queue_"))
        });
        server.start_again();
        until("it is up again", || values(&program)["redelay_up"] == 1.0);
    }
}

#[test]
fn an_address_that_is_taken_is_named() {
    let server = Server::start();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let said = redelay(&server, ["exporter", "--listen", &address]).failed(5);
    assert!(said.contains(&format!("{address} cannot be listened at")), "{said}");
    let said = redelay(&server, ["pump", "--health", &address]).failed(5);
    assert!(said.contains("cannot be listened at"), "{said}");
}

#[test]
fn queues_of_others_are_not_known_and_end_nothing() {
    let server = Server::start();
    let url = super::pumping::with_queues_of_others(&server);
    for patterns in [&["shop:*"][..], &["shop:*", "sh?p:*"], &["*"]] {
        let values = values(&exporter(&url, LONG, patterns));
        let counted: Vec<_> = values.keys().filter(|key| key.starts_with("redelay_queue_pending{")).collect();
        assert_eq!(counted, ["redelay_queue_pending{queue=\"shop:orders\"}"], "{values:?}");
        assert_eq!(values["redelay_up"], 1.0);
    }
}

/// Without it, no number of a queue can be told.
#[test]
fn a_right_that_every_look_needs_is_named() {
    let server = Server::start();
    server.cmd(["ZADD", "redisson_delay_queue_timeout:{q}", "1", "x"]);
    let words = ["ACL", "SETUSER", "looks", "on", ">secret", "~*"];
    server.cmd(words.into_iter().chain(super::rights::LOOKING.split(' ')));
    let url = server.url().replace("redis://", "redis://looks:secret@");
    let program = exporter(&url, LONG, &["--interval=1ms"]);
    until("it is up", || values(&program)["redelay_up"] == 1.0);
    server.cmd(["ACL", "SETUSER", "looks", "-time"]);
    until("it is down", || {
        let values = values(&program);
        values["redelay_up"] == 0.0 && !values.keys().any(|key| key.starts_with("redelay_queue_"))
    });
    let refused = server.errors("NOPERM");
    until("it looks again", || !values(&program).is_empty() && server.errors("NOPERM") > refused);
    let output = program.output();
    assert_eq!(output.matches("the missing permission: +time").count(), 1, "{output}");
    let refused = at(&url, ["exporter", "--listen=127.0.0.1:0"]).failed(4);
    assert!(refused.contains("the missing permission: +time"), "{refused}");
    server.cmd(["ACL", "SETUSER", "looks", "+time"]);
    until("it is up again", || values(&program).contains_key("redelay_queue_overdue{queue=\"q\"}"));
}
