//! Each damage is found, and nothing else.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use redelay_fixture::{Cluster, Server};
use redelay_support::{Mover, ORDERED_LIST, REBUILD, TIMEOUT_SET, fill_at_random, script};

use super::damage::DAMAGES;
use super::{add, add_sound, at, codes, doctor, entry, list, now, of_server, set, sound, subscribed, text};

#[test]
fn the_cause_is_found_and_nothing_else() {
    let server = sound();
    let mut expected = BTreeMap::new();
    for (queue, code, damage) in DAMAGES {
        damage(&server, queue);
        assert!(expected.insert((*queue).to_owned(), vec![(*code).to_owned()]).is_none(), "{queue}");
    }
    assert!(expected.len() >= 45, "{}", expected.len());
    // Somebody is subscribed, and moves nothing.
    let _subscriptions: Vec<_> =
        ["still", "still-twice", "still-twice"].map(|q| subscribed(&server, q)).into();
    for queue in ["still", "still-twice"] {
        add(&server, queue, now() - 252_000, &entry("a", &text("hello")));
        add_sound(&server, queue);
        expected.insert(queue.to_owned(), vec!["Q02".to_owned()]);
    }
    // What is in front of an entry that is due holds a Redisson up.
    let old = super::legacy(b"\x81\xed\x4b\xdc\x43\x9a\xc0\xc3", &text("hello"));
    let fronts = [
        ("junk", b"junk".to_vec(), "Q09"),
        ("old", old, "Q07"),
        ("negative", entry("b", &text("hello")), "Q11"),
    ];
    let _others: Vec<_> = fronts
        .map(|(front, before, code)| {
            let queue = format!("{front}-in-front");
            let due = if front == "negative" { -5 } else { now() - 300_000 };
            add(&server, &queue, due, &before);
            add(&server, &queue, now() - 252_000, &entry("a", &text("hello")));
            expected.insert(queue.clone(), vec![code.to_owned()]);
            subscribed(&server, &queue)
        })
        .into();
    let findings = doctor(&server.url(), &[]);
    let found = codes(&findings);
    for (queue, expected) in &expected {
        assert_eq!(found.get(queue), Some(expected), "{queue}: {findings:#?}");
    }
    assert_eq!(found, expected);
    let still = findings.iter().find(|finding| finding["queue"] == "still").unwrap();
    let said = still["text"].as_str().unwrap();
    assert!(said.starts_with("1 entry has been due for up to "), "{said}");
    assert!(said.ends_with(", one process is subscribed, and nothing moves"), "{said}");
    // No payload is in what it prints.
    let all = format!("{findings:?}");
    assert!(!all.contains("hell"), "{all}");
    // One by one, it is the same.
    for (queue, code) in [("never", "Q12"), ("throttled", "K02")] {
        let found = codes(&doctor(&server.url(), &["nobody-takes", queue]));
        assert_eq!(found.get(queue), Some(&vec![code.to_owned()]));
        assert_eq!(found["nobody-takes"], ["Q24"]);
        assert_eq!(found.len(), 2, "{found:?}");
    }
}

#[test]
fn a_full_queue_is_why_its_schedules_do_not_run() {
    let server = sound();
    add_sound(&server, "q");
    server.cmd(["HSET", &super::key("control", "q"), "max_pending", "1"]);
    let record = &b"every 3600000\n\n\x03hell\xef"[..];
    server.cmd([&b"HSET"[..], super::key("schedule-records", "q").as_bytes(), b"nightly", record]);
    server.cmd(["ZADD", &super::key("schedules", "q"), &(now() - 120_000).to_string(), "nightly"]);
    let findings = doctor(&server.url(), &["q"]);
    assert_eq!(codes(&findings)["q"], ["Q39", "Q44"], "{findings:#?}");
    let of = |code: &str| findings.iter().find(|finding| finding["code"] == code).unwrap();
    let text = of("Q39")["text"].as_str().unwrap();
    assert!(text.ends_with(", and should have a minute ago: the queue is full"), "{text}");
    assert!(!of("Q39").to_string().contains("Start a service"), "{findings:#?}");
    assert_eq!(of("Q44")["text"], "1 entry is pending, and at most 1 may be");
    assert_eq!(of("Q44")["commands"], serde_json::json!(["redelay list q"]));
    // With room, it is another cause.
    server.cmd(["HSET", &super::key("control", "q"), "max_pending", "2"]);
    let findings = doctor(&server.url(), &["q"]);
    assert_eq!(codes(&findings)["q"], ["Q39"], "{findings:#?}");
    assert!(findings[0].to_string().contains("Start a service"), "{findings:#?}");
}

#[test]
fn a_backlog_that_moves() {
    let server = sound();
    let fill = "for n = 1, 1500 do
            local entry = '\\5' .. string.format('%05d', n) .. struct.pack('<L', 6) .. '\\3hell\\239'
            redis.call('ZADD', KEYS[1], ARGV[1] + n, entry)
            redis.call('RPUSH', KEYS[2], entry)
        end";
    server.cmd(["EVAL", fill, "2", &set("q"), &list("q"), &(now() - 600_000).to_string()]);
    let _subscription = subscribed(&server, "q");
    let is_over = AtomicBool::new(false);
    let found = thread::scope(|scope| {
        let _ends = super::Ends(&is_over);
        scope.spawn(|| {
            // Each that leaves is followed by a new one.
            let script = "local head = redis.call('ZPOPMIN', KEYS[1])
                redis.call('LREM', KEYS[2], 1, head[1])
                local entry = '\\5' .. string.format('%05d', ARGV[1]) .. string.sub(head[1], 7)
                redis.call('ZADD', KEYS[1], head[2] + 2000, entry)
                redis.call('RPUSH', KEYS[2], entry)";
            let mut number = 10_000;
            while !is_over.load(Ordering::Relaxed) {
                number += 1;
                server.cmd(["EVAL", script, "2", &set("q"), &list("q"), &number.to_string()]);
                thread::sleep(Duration::from_millis(20));
            }
        });
        doctor(&server.url(), &[])
    });
    assert_eq!(codes(&found).into_iter().collect::<Vec<_>>(), [("q".to_owned(), vec!["Q03".to_owned()])]);
}

#[test]
fn a_long_queue_is_counted_and_its_beginning_is_read() {
    const COUNT: usize = 25_000;
    let server = sound();
    let fill = "for n = 1, tonumber(ARGV[2]) do
            local entry = '\\5' .. string.format('%05d', n) .. struct.pack('<L', 6) .. '\\3hell\\239'
            redis.call('ZADD', KEYS[1], ARGV[1] + n, entry)
            redis.call('RPUSH', KEYS[2], entry)
        end";
    server.cmd([
        "EVAL",
        fill,
        "2",
        &set("q"),
        &list("q"),
        &(now() + super::HOUR).to_string(),
        &COUNT.to_string(),
    ]);
    server.cmd(["CONFIG", "RESETSTAT"]);
    let findings = doctor(&server.url(), &["q"]);
    assert_eq!(codes(&findings)["q"], ["Q43"]);
    assert_eq!(findings[0]["text"], "10,000 of 25,000 entries were read");
    // Pages of both keys, and the first entries again and again.
    for (command, most) in [("zrangebyscore", 60), ("lrange", 60), ("zmscore", 20)] {
        let calls = server.command_calls(command);
        assert!(calls > 0 && calls < most, "{command}: {calls}");
    }
    // What is wrong behind that is counted.
    server.cmd(["RPOP", &list("q"), "3"]);
    let findings = doctor(&server.url(), &["q"]);
    assert_eq!(codes(&findings)["q"], ["Q04", "Q43"]);
    let text = findings[0]["text"].as_str().unwrap();
    assert_eq!(text, "25,000 entries in the timeout set, and 24,997 in the ordered list");
    assert_eq!(findings[0]["commands"].as_array().unwrap().len(), 0, "{}", findings[0]);
}

/// Due entries are missing in the list while a transfer rebuilds it.
#[test]
fn a_list_that_is_rebuilt_is_not_damaged() {
    let server = sound();
    fill_at_random(&server, 30_000, 29_900);
    let mut mover = Mover::new(script("TRANSFER"), 1_000);
    for _ in 0..2 {
        mover.call(&server);
    }
    let [listed, pending] =
        [["LLEN", ORDERED_LIST], ["ZCARD", TIMEOUT_SET]].map(|words| server.get::<usize, _>(words));
    assert!(listed < pending, "{listed} of {pending} are listed");
    let found = codes(&doctor(&server.url(), &["q"])).remove("q").unwrap_or_default();
    assert!(!["Q04", "Q05"].iter().any(|code| found.iter().any(|found| found == code)), "{found:?}");
    // Without the mark, they are a damage.
    server.cmd(["DEL", REBUILD]);
    let found = codes(&doctor(&server.url(), &["q"])).remove("q").unwrap_or_default();
    assert!(found.contains(&"Q04".to_owned()), "{found:?}");
}

#[test]
fn a_name_that_a_cluster_divides() {
    let cluster = Cluster::without_replicas(3);
    cluster.require_no_full_coverage();
    cluster.servers().iter().for_each(|server| drop(server.cmd(["CONFIG", "SET", "appendonly", "yes"])));
    for queue in ["a}b", "orders"] {
        for (key, command) in [(set(queue), "ZADD"), (list(queue), "RPUSH")] {
            let master: &Server = cluster.master_of(cluster.slot_of(&key));
            let entry = entry("a", &text("hello"));
            let due = (now() + super::HOUR).to_string();
            let due = (command == "ZADD").then_some(due.as_bytes());
            let words = [command.as_bytes(), key.as_bytes()].into_iter().chain(due).chain([&entry[..]]);
            master.cmd(words);
        }
    }
    let findings = doctor(&cluster.url(), &[]);
    assert_eq!(of_server(&findings), Vec::<String>::new(), "{findings:#?}");
    assert_eq!(
        codes(&findings).into_iter().collect::<Vec<_>>(),
        [("a}b".to_owned(), vec!["Q18".to_owned()])]
    );
}

#[test]
fn people_get_a_table_and_the_exit_code() {
    let server = sound();
    let quiet = at(&server.url(), ["doctor"]);
    assert!(
        quiet.code == 0 && quiet.out.starts_with("0 queues: nothing is wrong. It took "),
        "{}",
        quiet.out
    );
    add(&server, "refunds", now() - 252_000, &entry("a", &text("hello")));
    add_sound(&server, "orders");
    server.cmd(["HSET", "redelay:control:{orders}", "paused", "1"]);
    let ran = at(&server.url(), ["doctor"]);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(ran.code, 1);
    assert!(
        lines[0].starts_with("refunds  E Q01  no client transfers: 1 entry has been due for up to "),
        "{lines:#?}"
    );
    assert!(lines[1].starts_with("                Start a service"), "{lines:#?}");
    assert!(
        lines[1].contains("Now: redelay pump --once refunds. From now on: redelay pump refunds"),
        "{lines:#?}"
    );
    assert!(lines[2].starts_with("orders   I Q27  the queue is paused: "), "{lines:#?}");
    assert!(lines[4].starts_with("2 queues: 1 error, 1 information. It took "), "{lines:#?}");
    assert_eq!(at(&server.url(), ["doctor", "orders"]).code, 0, "information is not negative");
    let absent = at(&server.url(), ["doctor", "orders", "nowhere"]);
    assert!(absent.code == 2 && absent.err.contains("there is no queue `nowhere`"), "{}", absent.err);
    assert!(absent.out.contains("I Q27") && absent.out.contains("1 queue: "), "{}", absent.out);
}

#[test]
fn queues_are_named_by_names_and_patterns() {
    let server = sound();
    for queue in ["shop:orders", "shop:mails", "other", "a*", "ab"] {
        add(&server, queue, -5, &entry("a", &text("hello")));
    }
    server.cmd(["SET", "redelay:throttle:{shop:slow}:id:order-7", ""]);
    let found = |words: &[&str]| codes(&doctor(&server.url(), words)).into_keys().collect::<Vec<_>>();
    assert_eq!(found(&["shop:*"]), ["shop:mails", "shop:orders", "shop:slow"]);
    assert_eq!(found(&["*:orders", "a?", "other"]), ["a*", "ab", "other", "shop:orders"]);
    assert_eq!(found(&["other"]), ["other"]);
    let nowhere = at(&server.url(), ["doctor", "nowhere*"]);
    assert!(
        nowhere.code == 2
            && nowhere.out.is_empty()
            && nowhere.err.contains("no queue matches; in a name, put a `"),
        "{}",
        nowhere.err
    );
    // What its findings name is this queue alone.
    let findings = doctor(&server.url(), &[r"a\*"]);
    assert_eq!(codes(&findings).into_keys().collect::<Vec<_>>(), ["a*"]);
    assert_eq!(findings[0]["commands"], serde_json::json!([r"redelay pump --once 'a\*'"]));
    // A name that is wrong is no finding, whatever is found elsewhere.
    let absent = at(&server.url(), ["doctor", "shop:*", "nowhere"]);
    assert_eq!((absent.code, absent.out.contains("E Q11")), (2, true), "{}", absent.out);
    assert!(absent.err.contains("there is no queue `nowhere`"), "{}", absent.err);
}

/// Their last page has as many entries as are read at a time, or more bytes than are read.
#[test]
fn a_queue_that_is_read_to_its_end_is_not_too_long() {
    let server = sound();
    let fill = "for n = 1, tonumber(ARGV[2]) do
            local entry = '\\5' .. string.format('%05d', n) .. struct.pack('<L', 2 + ARGV[3])
                .. '\\3' .. string.rep('h', ARGV[3]) .. '\\239'
            redis.call('ZADD', KEYS[1], ARGV[1] + n, entry)
            redis.call('RPUSH', KEYS[2], entry)
        end";
    let due = (now() + super::HOUR).to_string();
    for (queue, count, length) in [
        ("many", "10000", "4"),
        ("large", "900", "20000"),
        ("more", "10001", "4"),
        ("larger", "1001", "20000"),
    ] {
        server.cmd(["EVAL", fill, "2", &set(queue), &list(queue), &due, count, length]);
    }
    let found = codes(&doctor(&server.url(), &[]));
    assert_eq!(found, ["larger", "more"].map(|queue| (queue.to_owned(), vec!["Q43".to_owned()])).into());
}

#[test]
fn only_twins_share_their_pending_keys() {
    let server = sound();
    server.cmd([b"RPUSH", "{q}".as_bytes(), &text("hello")]);
    add_sound(&server, "{q}");
    add(&server, "{{q}}", -5, &entry("a", &text("hello")));
    let found = codes(&doctor(&server.url(), &["{q}", "{{q}}"]));
    assert_eq!(found, BTreeMap::from([("{{q}}".to_owned(), vec!["Q11".to_owned()])]));
    // Limits are those of each name.
    server.cmd([b"RPUSH", "q".as_bytes(), &text("hello")]);
    server.cmd(["HSET", "redelay:control::{q}", "max_pending", "1"]);
    let found = codes(&doctor(&server.url(), &["q", "{q}"]));
    assert_eq!(
        found,
        [("q", "Q19"), ("{q}", "Q44")].map(|(q, code)| (q.to_owned(), vec![code.to_owned()])).into()
    );
}
