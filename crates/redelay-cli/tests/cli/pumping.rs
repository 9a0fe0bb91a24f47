//! `redelay pump`: what it moves, whatever happens to it and to others.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redelay::codec;
use redelay_fixture::{Cluster, Program, Server, until};
use serde_json::Value;

use super::schemas::are_as_documented;
use super::{LONG, Ran, at, client, page, program, redelay};

const HOURS: &str = "4102444800000";

fn pump(server: &Server, words: &[&str]) -> Program {
    pump_at(&server.url(), words)
}

fn pump_at(url: &str, words: &[&str]) -> Program {
    patient_pump(url, LONG, words)
}

fn patient_pump(url: &str, timeout: &str, words: &[&str]) -> Program {
    let words: Vec<&str> = [timeout, "pump"].into_iter().chain(words.iter().copied()).collect();
    Program::start(env!("CARGO_BIN_EXE_redelay"), &words, &[("REDIS_URL", url), ("HOME", "/nonexistent")])
}

/// Writes an entry as Redisson does, with this payload and due time, and announces nothing.
fn offer(server: &Server, queue: &[u8], payload: &[u8], due: &str) {
    static OFFERS: AtomicU64 = AtomicU64::new(0);
    let id = OFFERS.fetch_add(1, Ordering::Relaxed).to_be_bytes().repeat(2);
    let entry = [&[16][..], &id, &(payload.len() as u64).to_le_bytes(), payload].concat();
    let tag = if queue.contains(&b'{') { queue.to_vec() } else { [b"{", queue, b"}"].concat() };
    let key = |prefix: &str| [prefix.as_bytes(), &tag].concat();
    server.cmd([&b"ZADD"[..], &key("redisson_delay_queue_timeout:"), due.as_bytes(), &entry]);
    server.cmd([&b"RPUSH"[..], &key("redisson_delay_queue:"), &entry]);
}

/// Asks a pump for its health: the status, and the document.
fn health(program: &Program) -> Option<(u16, Value)> {
    let (status, body) = page(program, "its health is at http://", "/health")?;
    Some((status, serde_json::from_str(&body).ok()?))
}

/// The exit code, when it ends.
fn exit_code(program: &Program) -> Option<i32> {
    until("it ends", || !program.is_running());
    program.exit_code()
}

fn is_ready(program: &Program) -> bool {
    program.output().contains("pumps ")
}

#[test]
fn once_moves_what_is_due_and_nothing_else() {
    let server = Server::start();
    let payload: &[u8] = b"\x00\xff{\"a\":1}\r\n";
    for name in [&b"orders"[..], b"{shop}mails", b"a b\n", b"\xff\xfe", b"x}y"] {
        offer(&server, name, payload, "1");
        offer(&server, name, b"later", HOURS);
    }
    server.cmd(["ZADD", "redisson_delay_queue_timeout:{orders}", "2", "junk"]);
    server.cmd(["RPUSH", "redisson_delay_queue:{orders}", "junk"]);
    let ran = redelay(&server, ["pump", "--once"]).ok();
    let lines: Vec<&str> = ran.lines().collect();
    assert!(lines[0].contains("by the server's clock"), "{ran}");
    assert!(lines[0].contains("go to the quarantine"), "{ran}");
    assert!(
        ran.contains("orders: moved 1 entry, and 1 entry that cannot be read to the quarantine"),
        "{ran}"
    );
    assert!(ran.contains("a b\\n: moved 1 entry\n") && ran.contains("\\xff\\xfe: moved 1 entry\n"), "{ran}");
    assert_eq!(*lines.last().unwrap(), "moved 5 entries of 5 queues");
    for name in [&b"orders"[..], b"{shop}mails", b"a b\n", b"\xff\xfe", b"x}y"] {
        assert_eq!(server.list(name), [payload], "{name:?}");
    }
    assert_eq!(server.list("redelay:quarantine:{orders}"), [&b"2"[..], b"junk"]);
    assert_eq!(server.zset("redisson_delay_queue_timeout:{orders}").len(), 1);
    // As documents, and of one queue.
    offer(&server, b"orders", b"again", "1");
    offer(&server, b"mails", b"again", "1");
    let moved = redelay(&server, ["pump", "--once", "--json", "orders"]).json();
    assert_eq!(moved.len(), 1);
    are_as_documented("pump", &moved, &["queue_hex", "patterns", "notice"]);
    assert_eq!((&moved[0]["what"], &moved[0]["queue"]), (&"moved".into(), &"orders".into()));
    assert_eq!((&moved[0]["transferred"], &moved[0]["quarantined"]), (&1.into(), &0.into()));
    assert_eq!(server.list("mails").len(), 0);
}

#[test]
fn once_moves_a_backlog() {
    let server = Server::start();
    for n in 0..12_000 {
        offer(&server, b"orders", format!("{n}").as_bytes(), "1");
    }
    let said = redelay(&server, ["pump", "--once", "ord*"]).ok();
    assert!(said.ends_with("orders: moved 12,000 entries\nmoved 12,000 entries of 1 queue\n"), "{said}");
    assert_eq!(server.list("orders").len(), 12_000);
}

#[test]
fn once_says_what_it_cannot_do() {
    let server = Server::start();
    assert!(redelay(&server, ["pump", "--once"]).ok().ends_with("moved 0 entries of 0 queues\n"));
    let said = redelay(&server, ["pump", "--once", "--json", "orders"]).failed(1);
    assert!(said.contains("there is no queue `orders`"), "{said}");
    // One queue has a key of another type, and the other one is moved.
    offer(&server, b"orders", b"7", "1");
    offer(&server, b"mails", b"7", "1");
    server.cmd(["SET", "orders", "not a list"]);
    let ran = redelay(&server, ["pump", "--once", "--json"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("orders") && ran.err.contains("WRONGTYPE"), "{}", ran.err);
    assert_eq!(server.list("mails").len(), 1);
}

/// `q` and `{q}` have the same keys of pending entries.
#[test]
fn a_queue_whose_owner_is_not_clear_is_left_out() {
    let server = Server::start();
    offer(&server, b"q", b"due", "1");
    server.cmd(["RPUSH", "q", "ready"]);
    server.cmd(["RPUSH", "{q}", "ready"]);
    let ran = redelay(&server, ["pump", "--once", "--json"]);
    assert_eq!((ran.code, &*ran.out), (1, ""), "{}", ran.err);
    assert!(ran.err.contains("name the one that is meant"), "{}", ran.err);
    assert_eq!((server.list("q").len(), server.list("{q}").len()), (1, 1));
    redelay(&server, ["pump", "--once", "{q}", "*"]).ok();
    assert_eq!((server.list("q").len(), server.list("{q}").len()), (1, 2));
    // Its ready list says whose they are.
    server.cmd(["DEL", "q"]);
    offer(&server, b"q", b"due", "1");
    redelay(&server, ["pump", "--once"]).ok();
    assert_eq!((server.list("q").len(), server.list("{q}").len()), (0, 3));
    // Announcements and searches name the other one, too.
    let program = pump(&server, &["--search=100ms"]);
    until("it listens", || server.get::<u64, _>(["PUBSUB", "NUMPAT"]) == 2);
    for n in 4..8 {
        offer(&server, b"q", b"due", "1");
        server.cmd(["PUBLISH", "redisson_delay_queue_channel:{q}", "1"]);
        until("it is moved", || server.list("{q}").len() == n);
    }
    assert!(server.list("q").is_empty() && !program.output().contains("\nq: pumped"), "{}", program.output());
}

/// Takers in Java keep the list of `{q}` empty, so that `q` seems to be meant.
#[test]
fn a_queue_is_left_when_the_other_one_is_found_in_use() {
    let server = Server::start();
    offer(&server, b"q", b"later", HOURS);
    let program = pump(&server, &["--search=100ms", "--health=127.0.0.1:0"]);
    until("it is pumped", || program.output().contains("\nq: pumped\n"));
    server.cmd(["RPUSH", "{q}", "moved by Java"]);
    until("it is left", || program.output().contains("\nq: no longer pumped\n"));
    until("it says why", || program.output().contains("`{q}` is left out: `q` is in use, too"));
    server.cmd(["DEL", "{q}"]);
    offer(&server, b"q", b"due", "1");
    let searches = server.command_calls("scan");
    until("it has searched again", || server.command_calls("scan") > searches + 3);
    until("it is counted", || health(&program).is_some_and(|(_, health)| health["left_out"] == 2));
    assert!(server.list("q").is_empty() && server.list("{q}").is_empty());
    assert_eq!(program.output().matches("is left out").count(), 1, "{}", program.output());
}

/// A user who may only publish can invent them.
#[test]
fn announced_names_without_a_queue_take_no_place() {
    let server = Server::start();
    let program = pump(&server, &["--search=1h", "--most=2", "--health=127.0.0.1:0"]);
    until("it has searched", || health(&program).is_some_and(|(_, health)| health["searched"] == true));
    until("it listens", || server.get::<u64, _>(["PUBSUB", "NUMPAT"]) == 2);
    let announce =
        |name: &str| server.cmd(["PUBLISH", &format!("redisson_delay_queue_channel:{{{name}}}"), "1"]);
    let long = "x".repeat(5_000);
    offer(&server, long.as_bytes(), b"7", "1");
    for name in ["made", "up", "names", &long] {
        announce(name);
    }
    offer(&server, b"real", b"7", "1");
    announce("real");
    until("it is moved", || server.list("real").len() == 1);
    let lines: Vec<_> =
        program.output().lines().filter(|line| line.ends_with(": pumped")).map(str::to_owned).collect();
    assert_eq!(lines, ["real: pumped"]);
    assert!(server.list(&long).is_empty(), "only a search finds it");
}

#[test]
fn names_have_the_prefix_of_the_profile() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("redelay")).unwrap();
    let file = folder.path().join("redelay/config.toml");
    std::fs::write(&file, format!("[default]\nurl = '{}'\nname_prefix = 'shop:'", server.url())).unwrap();
    for name in [&b"shop:orders"[..], b"shop:mails", b"other"] {
        offer(&server, name, b"7", "1");
    }
    for (words, said) in [(&["mails"][..], "mails: moved 1 entry\n"), (&[], "orders: moved 1 entry\n")] {
        let mut command = program();
        command.env("XDG_CONFIG_HOME", folder.path()).args([LONG, "pump", "--once"]).args(words);
        let out = Ran::new(&command.output().unwrap()).ok();
        assert!(out.contains(said) && out.ends_with("moved 1 entry of 1 queue\n"), "{out}");
    }
    assert_eq!((server.list("shop:orders").len(), server.list("other").len()), (1, 0));
}

#[test]
fn queues_that_are_created_later_are_pumped_until_a_signal_comes() {
    let server = Server::start();
    for (is_json, end) in [(true, Program::interrupt as fn(&Program)), (false, Program::terminate)] {
        server.cmd(["FLUSHALL"]);
        let format: &[&str] = if is_json { &["--json"] } else { &[] };
        let program = pump(&server, &[&["--health=127.0.0.1:0", "--search=1h"], format].concat());
        // Both are listened to.
        until("it listens", || server.get::<u64, _>(["PUBSUB", "NUMPAT"]) == 2);
        let time: (u64, u64) = server.get(["TIME"]);
        for name in [&b"new"[..], b"{shop}new"] {
            let due = (time.0 * 1_000 + 200).to_string();
            offer(&server, name, b"7", &due);
            let tag = if name == b"new" { &b"{new}"[..] } else { name };
            server.cmd([&b"PUBLISH"[..], &[b"redisson_delay_queue_channel:", tag].concat(), due.as_bytes()]);
            until("it is moved", || server.list(name).len() == 1);
        }
        until("all is well", || {
            health(&program).is_some_and(|(status, health)| {
                status == 200
                    && health["ok"] == true
                    && health["queues"] == 2
                    && health["transferred"] == 2
                    && health.as_object().unwrap().values().all(|value| !value.is_string())
            })
        });
        end(&program);
        assert_eq!(exit_code(&program), Some(0), "{}", program.output());
        let output = program.output();
        if is_json {
            let lines = output.lines().filter(|line| line.starts_with('{'));
            let documents: Vec<Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
            are_as_documented("pump", &documents, &["queue_hex", "transferred", "quarantined"]);
            assert!(output.contains(r#"{"what":"pumps","queue":"{shop}new"}"#), "{output}");
        } else {
            assert!(output.contains("\nnew: pumped\n"), "{output}");
        }
    }
}

#[test]
fn what_nobody_announced_is_found_by_a_search() {
    let server = Server::start();
    let program = pump(&server, &["--search=100ms", "--most=2", "--health=127.0.0.1:0"]);
    until("it has begun", || is_ready(&program));
    for name in [&b"one"[..], b"\xff"] {
        offer(&server, name, b"7", "1");
        until("it is moved", || server.list(name).len() == 1);
    }
    // There is no room for a third one.
    offer(&server, b"three", b"7", "1");
    until("it is counted", || health(&program).is_some_and(|(_, health)| health["left_out"] == 1));
    assert_eq!(server.list("three").len(), 0);
    assert!(program.output().contains("1 queue is left out: --most is 2"), "{}", program.output());
}

#[tokio::test(flavor = "multi_thread")]
async fn several_are_killed_and_frozen_and_every_payload_is_moved_once() {
    const EACH: usize = 200;
    let server = Server::start();
    let client = client(&server).await;
    let queues: Vec<_> =
        (0..3).map(|n| client.delayed_queue(&client.blocking_queue(&format!("q{n}"), codec::Long))).collect();
    let survivor = pump(&server, &["--search=1s"]);
    for round in 0..3 {
        let (killed, frozen) = (pump(&server, &[]), pump(&server, &["q*"]));
        until("they have begun", || [&survivor, &killed, &frozen].into_iter().all(is_ready));
        for n in 0..EACH {
            let value = (round * EACH + n) as i64;
            let delay = Duration::from_millis(n as u64 % 20 * 25);
            queues[n % 3].offer(&value, delay).await.unwrap();
            if n == EACH / 3 {
                frozen.freeze();
            }
            if n == EACH / 2 {
                killed.kill();
            }
        }
        until("all are moved", || {
            (0..3).map(|n| server.list(format!("q{n}")).len()).sum::<usize>() == (round + 1) * EACH
        });
        frozen.thaw();
    }
    let mut values: Vec<i64> = Vec::new();
    for n in 0..3 {
        values.extend(client.blocking_queue(&format!("q{n}"), codec::Long).read_all().await.unwrap());
    }
    values.sort_unstable();
    assert_eq!(values, (0..3 * EACH as i64).collect::<Vec<_>>());
}

#[test]
fn a_schedule_that_does_not_run_is_named() {
    let server = Server::start();
    server.cmd(["HSET", "redelay:schedule-records:{q}", "nightly", "from 3 to 4\n\npayload"]);
    server.cmd(["ZADD", "redelay:schedules:{q}", "5", "nightly"]);
    let program = pump(&server, &["q"]);
    until("it is named", || program.output().contains("schedules of `q`: `nightly` does not run: "));
    program.terminate();
    assert_eq!(exit_code(&program), Some(0));
    assert_eq!(program.output().matches("nightly").count(), 1, "{}", program.output());
}

#[test]
fn it_goes_on_when_the_server_is_back() {
    let server = Server::start();
    let program = patient_pump(&server.url(), "--timeout=10s", &["--search=500ms", "--health=127.0.0.1:0"]);
    until("all is well", || health(&program).is_some_and(|(status, _)| status == 200));
    server.kill_9();
    until("it says so", || {
        health(&program).is_some_and(|(status, health)| status == 503 && health["connected"] == false)
    });
    server.start_again();
    offer(&server, b"orders", b"7", "1");
    until("it is moved", || server.list("orders").len() == 1);
    until("all is well again", || health(&program).is_some_and(|(status, _)| status == 200));
    assert!(program.is_running(), "{}", program.output());
}

#[test]
fn queues_of_a_cluster() {
    let cluster = Cluster::without_replicas(3);
    let program = pump_at(&cluster.url(), &["--search=200ms", "--health=127.0.0.1:0"]);
    until("it has begun", || is_ready(&program));
    for n in 0..8 {
        let name = format!("q{n}");
        let master = cluster.master_of(cluster.slot_of(&name));
        offer(master, name.as_bytes(), b"7", "1");
        until("it is moved", || master.list(&name).len() == 1);
    }
    until("all is well", || health(&program).is_some_and(|(status, _)| status == 200));
    // A cluster has its keys in several slots.
    let split = pump_at(&cluster.url(), &["a}b"]);
    until("it says so", || {
        split.output().contains("a cluster would put the keys of `a}b` on several servers")
    });
}

/// What a pump needs.
const PUMPING: &str = "-@all +@read +scan +time +ping +info +type +pubsub|channels +pubsub|numsub +client \
    +psubscribe +subscribe +unsubscribe +publish +eval +evalsha \
    +rpush +lpush +lset +ltrim +lrem +zremrangebyrank +pexpire";

#[test]
fn a_user_who_may_pump_and_nothing_else() {
    let server = Server::start();
    let rights = || {
        let words = ["ACL", "SETUSER", "pump", "reset", "on", ">secret", "~*", "&*"];
        server.cmd(words.into_iter().chain(PUMPING.split_whitespace()));
    };
    rights();
    let url = server.url().replace("redis://", "redis://pump:secret@");
    for n in 0..300 {
        offer(&server, b"orders", format!("{n}").as_bytes(), if n % 3 == 0 { HOURS } else { "1" });
    }
    offer(&server, b"mails", b"7", "1");
    server.cmd(["ZADD", "redisson_delay_queue_timeout:{mails}", "2", "junk"]);
    server.cmd(["RPUSH", "redisson_delay_queue:{mails}", "junk"]);
    server.cmd(["ACL", "LOG", "RESET"]);
    let ran = at(&url, ["pump", "--once"]);
    assert_eq!((ran.code, &*ran.err), (0, ""), "{}", ran.out);
    assert_eq!((server.list("orders").len(), server.list("mails").len()), (200, 1));
    let program = pump_at(&url, &["--search=200ms"]);
    offer(&server, b"orders", b"7", "1");
    until("it is moved", || server.list("orders").len() == 201);
    program.terminate();
    assert_eq!(exit_code(&program), Some(0), "{}", program.output());
    // Every single one is needed.
    for right in
        ["scan", "psubscribe", "subscribe", "eval", "zcount", "rpush", "lrem", "zremrangebyrank", "llen"]
    {
        rights();
        server.cmd(["ACL", "SETUSER", "pump", &format!("-{right}")]);
        server.cmd(["SCRIPT", "FLUSH"]);
        offer(&server, b"orders", b"7", "1");
        let program = pump_at(&url, &["--search=200ms"]);
        let code = exit_code(&program);
        let output = program.output();
        assert_eq!(code, Some(4), "without {right}: {output}");
        let last = output.lines().last().unwrap_or_default();
        let named = last.split_once("the missing permission: ").map_or("", |(_, named)| named);
        assert!(
            named.split([' ', ',']).any(|named| named == format!("+{right}")),
            "without {right}: {output}"
        );
    }
}

#[test]
fn a_queue_that_is_refused_does_not_end_the_others() {
    let server = Server::start();
    let words = ["ACL", "SETUSER", "pump", "on", ">secret", "&*", "~*good*", "+@all"];
    server.cmd(words);
    let url = server.url().replace("redis://", "redis://pump:secret@");
    offer(&server, b"bad", b"7", "1");
    offer(&server, b"good", b"7", "1");
    let program = pump_at(&url, &["--health=127.0.0.1:0", "good", "bad"]);
    until("it is moved", || server.list("good").len() == 1);
    until("it says so", || {
        health(&program).is_some_and(|(status, health)| status == 503 && health["failing"] == 1)
    });
    assert!(program.output().contains("transfer of queue `bad`: NOPERM"), "{}", program.output());
    let said = at(&url, ["pump", "--once", "--json", "bad"]).failed(4);
    assert!(said.contains("~*, or a pattern of the keys"), "{said}");
}

/// Each queue has an entry that is due. The user of the URL may access the keys of `shop:orders` alone.
pub(super) fn with_queues_of_others(server: &Server) -> String {
    server.cmd(["ACL", "SETUSER", "shop", "on", ">secret", "&*", "~*shop*", "+@all"]);
    offer(server, b"billing", b"7", "1");
    offer(server, b"shop:orders", b"7", "1");
    server.url().replace("redis://", "redis://shop:secret@")
}

#[test]
fn queues_of_others_do_not_end_a_pump_with_patterns() {
    let server = Server::start();
    let url = with_queues_of_others(&server);
    assert!(at(&url, ["pump", "--once", "shop:*"]).ok().ends_with("moved 1 entry of 1 queue\n"));
    let several = at(&url, ["pump", "--once", "shop:*", "sh?p:*"]).ok();
    assert!(several.ends_with("moved 0 entries of 0 queues\n"), "{several}");
    for (count, words) in [&["shop:*"][..], &["shop:*", "sh?p:*"], &["*"]].into_iter().enumerate() {
        server.cmd(["CONFIG", "RESETSTAT"]);
        let words = [&["--search=100ms", "--health=127.0.0.1:0"], words].concat();
        let program = pump_at(&url, &words);
        offer(&server, b"shop:orders", b"7", "1");
        until("it is moved", || server.list("shop:orders").len() == count + 2);
        let searched = || health(&program).is_some_and(|(_, health)| health["searched"] == true);
        until("it has searched", searched);
        match words.last() {
            // It is asked for, and reported.
            Some(&"*") => until("it says so", || {
                program.output().contains("transfer of queue `billing`: NOPERM")
                    && health(&program).is_some_and(|(status, _)| status == 503)
            }),
            Some(&"shop:*") => assert_eq!(server.errors("NOPERM"), 0, "nothing of others is asked for"),
            _ => assert!(!program.output().contains("billing"), "{}", program.output()),
        }
        program.terminate();
        assert_eq!(exit_code(&program), Some(0), "{}", program.output());
    }
    let said = at(&url, ["pump", "--once", "--json"]);
    assert!(said.code == 4 && said.err.contains("`billing`"), "{}{}", said.out, said.err);
}
