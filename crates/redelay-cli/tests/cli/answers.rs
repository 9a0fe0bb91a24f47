//! Each command on a filled queue: for people, and as JSON.

use std::collections::BTreeSet;
use std::time::Duration;

use redelay::inspector::PendingEntry;
use serde_json::Value;

use redelay_fixture::Server;

use super::{fill, redelay};

const PLACES: [&str; 8] =
    ["pending", "ready", "in-flight", "waiting", "dead", "quarantine", "schedules", "pops"];

#[tokio::test(flavor = "multi_thread")]
async fn every_command_shows_what_is_there() {
    let server = Server::start();
    fill(&server).await;
    let ls = redelay(&server, ["ls"]).ok();
    let lines: Vec<&str> = ls.lines().collect();
    let front = format!("127.0.0.1:{} · ", server.port());
    assert!(lines[0].starts_with(&front) && lines[0].contains(", master · 1 queue, found in"), "{ls}");
    assert!(lines[0].ends_with(" calls"), "{ls}");
    assert!(lines[2].starts_with("QUEUE ") && lines[2].ends_with("STATE"), "{ls}");
    assert!(lines[3].starts_with("orders ") && lines[3].contains(" kryo5 "), "{ls}");
    assert!(lines[3].ends_with("dead letters") && lines.len() == 4, "{ls}");
    let show = redelay(&server, ["show", "orders"]).ok();
    let facts = [("STATE", "dead letters"), ("DEAD", "1"), ("QUARANTINED", "1"), ("CODEC", "kryo5")];
    for fact in facts.map(|(what, text)| format!("\n{what:<18}{text}\n")) {
        assert!(show.contains(&fact), "{fact} in {show}");
    }
    let list = redelay(&server, ["list", "orders", "--limit", "2"]).ok();
    let lines: Vec<&str> = list.lines().collect();
    assert!(lines[0].starts_with("DUE ") && lines[0].ends_with("PAYLOAD"), "{list}");
    assert!(lines[1].contains("  order-7 ") && lines[1].ends_with("\"hello\""), "{list}");
    let pending = server.get::<u64, _>(["ZCARD", "redisson_delay_queue_timeout:{orders}"]);
    let more = format!("{} more: --after ", pending - 2);
    assert!(lines[3].starts_with(&more), "{list}");
    for place in PLACES {
        let text = redelay(&server, ["list", "orders", place]).ok();
        assert!(text.lines().count() >= 2 && !text.contains('\x1b'), "{place}: {text}");
    }
    let dead = redelay(&server, ["list", "orders", "dead"]).ok();
    assert!(dead.contains("rejected") && dead.contains("no such \\x1b[2Jproduct"), "{dead}");
    let due = redelay(&server, ["due", "orders", "--step", "1h", "--count", "2"]).ok();
    let lines: Vec<&str> = due.lines().map(str::trim_start).collect();
    assert!(lines[0].starts_with("1 h") && lines[1].starts_with("2 h") && lines[1].ends_with('█'), "{due}");
    assert_eq!(lines[2].split_whitespace().collect::<Vec<_>>(), ["later", "1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn json_is_a_document_a_line_with_all_of_the_table() {
    let server = Server::start();
    fill(&server).await;
    let ls = redelay(&server, ["ls", "--json"]).json();
    let [queue] = &ls[..] else { panic!("{ls:?}") };
    assert_eq!(queue, &redelay(&server, ["--json", "show", "orders"]).json().remove(0).without_times(queue));
    assert_eq!((&queue["queue"], &queue["state"]), (&"orders".into(), &"dead_letters".into()));
    let counts = ["in_flight", "waiting", "dead_letters", "quarantined", "schedules", "overdue"];
    assert_eq!(counts.map(|count| queue[count].as_u64()), [1, 1, 1, 1, 1, 0].map(Some), "{queue}");
    assert_eq!(queue["codecs"][0]["codec"], "kryo5");
    let items = redelay(&server, ["list", "orders", "--json", "--limit", "1000"]).json();
    assert_eq!(items.len() as u64, queue["pending"].as_u64().unwrap());
    assert_eq!((&items[0]["id"], &items[0]["value"]), (&"order-7".into(), &"hello".into()));
    assert!(items.iter().all(|item| item["codec"] == "kryo5" && item["due"].is_string()));
    // What is printed is what Redisson has written.
    let offered = &items[1..items.len() - 1];
    let written = super::vectors("kryo5.tsv");
    assert_eq!(offered.len(), written.len());
    for (item, (name, payload)) in offered.iter().zip(&written) {
        assert_eq!(item["payload_hex"], hex(payload), "{name}");
        assert!(!item["value"].is_null() || name.contains("null"), "{name}");
    }
    for (place, key) in
        PLACES.into_iter().zip(["due", "index", "attempt", "attempt", "error", "entry_hex", "runs", "from"])
    {
        let items = redelay(&server, ["list", "orders", place, "--json"]).json();
        assert!(!items.is_empty() && items.iter().all(|item| !item[key].is_null()), "{place}: {items:?}");
        assert!(items.iter().all(|item| item["queue"] == "orders" && item["cursor"].is_string()));
    }
    let due = redelay(&server, ["due", "orders", "--count", "2", "--json"]).json();
    assert_eq!((due.len(), &due[3]["until"]), (4, &Value::Null));
    assert_eq!(due.iter().map(|span| span["count"].as_u64().unwrap()).sum::<u64>(), items.len() as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_read_page_by_page() {
    let server = Server::start();
    fill(&server).await;
    let all = redelay(&server, ["list", "orders", "--json", "--limit", "1000"]).json();
    let (mut seen, mut after) = (Vec::new(), None::<String>);
    loop {
        let mut words = vec!["list", "orders", "--json", "--limit", "70"];
        words.extend(after.iter().flat_map(|after| ["--after", after]));
        let page = redelay(&server, &words).json();
        let Some(last) = page.last() else { break };
        after = Some(last["cursor"].as_str().unwrap().to_owned());
        seen.extend(page.into_iter().map(|item| item["cursor"].clone()));
    }
    assert_eq!(seen, all.iter().map(|item| item["cursor"].clone()).collect::<Vec<_>>());
    let last = seen.last().unwrap().as_str().unwrap();
    assert_eq!(redelay(&server, ["list", "orders", "--after", last]).ok(), "nothing more\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn pops_have_a_row_for_each_payload() {
    let server = Server::start();
    fill(&server).await;
    let table = redelay(&server, ["list", "orders", "pops"]).ok();
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("AGO ") && lines.len() == 4, "{table}");
    assert!(lines[1].contains("  head ") && lines[1].contains("  1 of 2 "), "{table}");
    assert!(lines[1].ends_with("\"hello\"") && lines[2].contains("  2 of 2 "), "{table}");
    assert!(
        lines[3].contains("  delayed queue  1 of 1  kryo5 ") && lines[3].ends_with("\"hello\""),
        "{table}"
    );
    let first = redelay(&server, ["list", "orders", "pops", "--limit", "1"]).ok();
    let last = first.lines().last().unwrap();
    assert_eq!((first.lines().count(), last), (4, "1 more: --after :pop-1"), "{first}");
    let rest = redelay(&server, ["list", "orders", "pops", "--after", ":pop-1", "--json"]).json();
    let [pop] = &rest[..] else { panic!("{rest:?}") };
    assert_eq!((&pop["id"], &pop["from"], &pop["payloads"]), (&"pop-2".into(), &"delayed".into(), &1.into()));
    assert!(pop["age_ms"].as_f64() > Some(0.0) && pop["value"] == "hello", "{pop}");
}

/// A program of the user's: what it prints, and what it does not.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_reads_payloads() {
    let server = Server::start();
    fill(&server).await;
    let decoder =
        "payload=$(od -An -tx1 | tr -d ' \n'); [ $payload = 0368656c6cef ] || exit 3; echo '{\"is\": 1}'";
    let read = |words: &[&str]| redelay(&server, words.iter().chain(&["--decoder", decoder]));
    let items = read(&["list", "orders", "--json", "--limit", "3"]).json();
    assert_eq!((&items[0]["codec"], &items[0]["value"]["is"]), (&"decoder".into(), &1.into()));
    assert_eq!((&items[0]["decoder_error"], &items[0]["bytes"]), (&Value::Null, &6.into()));
    for item in &items[1..] {
        assert_eq!(item["decoder_error"], "it has failed: exit status: 3");
        assert_eq!(item["codec"], "kryo5");
    }
    let table = read(&["list", "orders", "--limit", "2"]).ok();
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[1].contains("  decoder      6  {\"is\": 1}"), "{table}");
    assert!(lines[2].ends_with(" (the decoder: it has failed: exit status: 3)"), "{table}");
    let [inspected] =
        &read(&["inspect", "08106890aa3e21912506000000000000000368656c6cef", "--json"]).json()[..]
    else {
        panic!("another number")
    };
    assert_eq!((&inspected["codec"], &inspected["value"]["is"]), (&"decoder".into(), &1.into()));
    assert!(inspected["candidates"].as_array().unwrap().len() > 1);
    let escaped = redelay(&server, ["list", "orders", "-n", "1", "--decoder", "printf 'a\\033[2J'"]).ok();
    assert!(escaped.lines().nth(1).unwrap().ends_with("  a\\x1b[2J"), "{escaped}");
}

#[test]
fn a_long_queue_is_printed_as_it_is_read() {
    const COUNT: usize = 3_500;
    let server = Server::start();
    let fill = "for n = 1, tonumber(ARGV[1]) do
            local entry = '\\4' .. string.format('%04d', n) .. struct.pack('<L', 4) .. string.format('%04d', n)
            redis.call('ZADD', KEYS[1], 4102444800000 + n, entry)
        end";
    server.cmd(["EVAL", fill, "1", "redisson_delay_queue_timeout:{q}", &COUNT.to_string()]);
    let items = redelay(&server, ["list", "q", "--json", "--limit", "100000"]).json();
    let ids: Vec<&str> = items.iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!(ids, (1..=COUNT).map(|n| format!("{n:04}")).collect::<Vec<_>>());
    let some = redelay(&server, ["list", "q", "--json", "--limit", "1500"]).json();
    assert_eq!(some.len(), 1_500);
}

#[test]
fn the_worst_queues_come_first() {
    let server = Server::start();
    // What receivers leave behind.
    server.cmd(["HSET", "redelay:control:{used once}", "seen", "1"]);
    assert!(redelay(&server, ["ls"]).ok().contains(" · 0 queues, found in"));
    assert_eq!(redelay(&server, ["ls", "--json"]).ok(), "");
    let entry = b"\x08\x10\x68\x90\xaa\x3e\x21\x91\x25\x06\0\0\0\0\0\0\0\x03hell\xef";
    for (queue, due) in [("a", "4102444800000"), ("late", "1000"), ("mails", "4102444800000")] {
        server.cmd([
            &b"ZADD"[..],
            format!("redisson_delay_queue_timeout:{{{queue}}}").as_bytes(),
            due.as_bytes(),
            entry,
        ]);
        server.cmd([&b"RPUSH"[..], format!("redisson_delay_queue:{{{queue}}}").as_bytes(), entry]);
    }
    server.cmd(["HSET", "redelay:control:{mails}", "paused", "1"]);
    let ls = redelay(&server, ["ls"]).ok();
    let states: Vec<(&str, &str)> = ls
        .lines()
        .skip(3)
        .map(|line| (line.split(' ').next().unwrap(), line.rsplit("  ").next().unwrap()))
        .collect();
    assert_eq!(states, [("late", "stands still"), ("mails", "paused"), ("a", "ok")]);
    assert!(redelay(&server, ["show", "late"]).ok().contains("no process transfers"));
    let some = redelay(&server, ["ls", "[a-b]", "--json"]).json();
    assert_eq!(some.iter().map(|queue| queue["queue"].as_str().unwrap()).collect::<Vec<_>>(), ["a"]);
}

/// A limit of pending entries is shown, and so is a queue that has reached it, and one that has nothing else.
#[test]
fn a_limit_of_pending_entries() {
    let server = Server::start();
    for queue in ["full", "limited"] {
        server.cmd(["ZADD", &format!("redisson_delay_queue_timeout:{{{queue}}}"), "4102444800000", "junk"]);
    }
    for (queue, most) in [("full", "1"), ("limited", "2"), ("only", "3")] {
        server.cmd(["HSET", &format!("redelay:control:{{{queue}}}"), "max_pending", most]);
    }
    let ls = redelay(&server, ["ls", "--json"]).json();
    let states: Vec<_> =
        ls.iter().map(|queue| [&queue["queue"], &queue["state"], &queue["max_pending"]]).collect();
    let expected = [("full", "full", 1), ("limited", "ok", 2), ("only", "ok", 3)]
        .map(|(name, state, most)| [Value::from(name), state.into(), most.into()]);
    assert_eq!(states, expected.iter().map(|fields| fields.each_ref()).collect::<Vec<_>>(), "{ls:#?}");
    let show = redelay(&server, ["show", "full"]).ok();
    assert!(show.contains("full\n") && show.contains("1 entry is pending, and at most 1 may be"), "{show}");
    assert!(redelay(&server, ["show", "only"]).ok().contains("at most 3 pending"));
}

/// Messages and dead letters say which job they are, if something travels with it.
#[tokio::test(flavor = "multi_thread")]
async fn messages_and_dead_letters_name_their_jobs() {
    const JOBS: [&[u8]; 3] = [b"order 8", b"\xff\x01", b"order\x1b9"];
    let server = Server::start();
    let client = redelay::Client::connect(&server.url()).await.unwrap();
    let ready = client.blocking_queue("orders", redelay::codec::String);
    let delayed = client.delayed_queue(&ready);
    let receiver = ready.receiver();
    for (id, place) in JOBS.into_iter().zip(["in-flight", "waiting", "dead"]) {
        for id in [Some(id), None] {
            match id {
                Some(id) => drop(delayed.offer(place, Duration::ZERO).id(id).until_done().await.unwrap()),
                None => drop(delayed.offer(place, Duration::ZERO).await.unwrap()),
            }
            let message = receiver.receive().await.unwrap();
            match place {
                "in-flight" => std::mem::forget(message),
                "waiting" => message.retry_after(super::HOUR).await.unwrap(),
                _ => message.reject("no").await.unwrap(),
            }
        }
    }
    let jobs = ["order 8", "0xff01", "0x6f726465721b39"];
    for (place, shown) in ["in-flight", "waiting", "dead"].into_iter().zip(jobs) {
        let table = redelay(&server, ["list", "orders", place]).ok();
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].contains("  JOB  ") && lines.len() == 3, "{table}");
        let named: Vec<_> = lines[1..].iter().filter(|line| line.contains(&format!("  {shown}  "))).collect();
        assert_eq!(named.len(), 1, "{table}");
    }
    let ids = |place| {
        let items = redelay(&server, ["list", "orders", place, "--json"]).json();
        let mut ids: Vec<_> = items.into_iter().map(|item| item["job_id"].clone()).collect();
        ids.sort_by_key(Value::is_null);
        ids
    };
    assert_eq!(ids("in-flight"), ["order 8".into(), Value::Null]);
    assert_eq!(ids("waiting"), ["0xff01".into(), Value::Null]);
    assert_eq!(ids("dead"), ["0x6f726465721b39".into(), Value::Null]);
    drop(receiver);
    client.shutdown().await;
}

/// A job is spelt the same wherever it is, and no two jobs are.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_has_one_spelling() {
    // Its id, and how documents and the table of pending entries have it.
    const JOBS: [(&[u8], &str, &str); 5] = [
        (b"order 8", "order 8", "order 8"),
        ("Größe".as_bytes(), "Größe", "Größe"),
        (b"\xff\x01", "0xff01", "0xff01"),
        (b"0xff01", "0x307866663031", "0x30786666…"),
        (b"line\nfeed", "0x6c696e650a66656564", "0x6c696e65…"),
    ];
    let server = Server::start();
    let client = redelay::Client::connect(&server.url()).await.unwrap();
    let ready = client.blocking_queue("orders", redelay::codec::String);
    let delayed = client.delayed_queue(&ready);
    let expected: BTreeSet<String> = JOBS.iter().map(|(_, text, _)| (*text).to_owned()).collect();
    let check = |place: &str, field: &str| {
        let items = redelay(&server, ["list", "orders", place, "--json"]).json();
        let ids = items.iter().map(|item| item[field].as_str().expect("an id").to_owned());
        assert_eq!(ids.collect::<BTreeSet<_>>(), expected, "{place}");
        let table = redelay(&server, ["list", "orders", place]).ok();
        for (_, text, cell) in JOBS {
            // The id of an entry is short in a table.
            let cell = if place == "pending" { cell } else { text };
            let lines = table.lines().filter(|line| line.contains(&format!("  {cell}  ")));
            assert_eq!(lines.count(), 1, "{cell} in {table}");
        }
    };
    for (id, ..) in JOBS {
        delayed.offer("hello", super::HOUR).id(id).until_done().await.unwrap();
    }
    check("pending", "id");
    // As the library has it.
    let entries = client.inspector().pending("orders", None, 10).await.unwrap();
    assert_eq!(entries.iter().map(PendingEntry::id_text).collect::<BTreeSet<_>>(), expected);
    let receiver = ready.receiver();
    let mut held = Vec::new();
    for (id, ..) in JOBS {
        assert!(delayed.job(id).run_now().await.unwrap());
        held.push(receiver.receive().await.unwrap());
    }
    check("in-flight", "job_id");
    for message in held {
        message.retry_after(super::HOUR).await.unwrap();
    }
    check("waiting", "job_id");
    drop(receiver);
    client.shutdown().await;
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

trait WithoutTimes {
    /// With the times of another look.
    fn without_times(self, other: &Self) -> Self;
}

impl WithoutTimes for Value {
    fn without_times(mut self, other: &Self) -> Self {
        for time in ["next_due_in_ms", "received_ago_ms"] {
            assert!(self[time].is_number(), "{time} in {self}");
            self[time] = other[time].clone();
        }
        self
    }
}
