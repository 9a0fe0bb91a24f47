//! A user who may only look, and what is sent for it.

use std::time::Instant;

use redelay_fixture::{Cluster, Server, Terminal, until};

use super::{at, fill, program, redelay};

/// What a user needs who looks and does nothing else.
pub(super) const LOOKING: &str =
    "-@all +@read +scan +time +ping +info +type +pubsub|channels +pubsub|numsub +client";

fn looking(server: &Server) -> String {
    let words = ["ACL", "SETUSER", "looks", "on", ">secret", "~*"].into_iter().chain(LOOKING.split(' '));
    server.cmd(words);
    server.url().replace("redis://", "redis://looks:secret@")
}

/// What is sent to look.
pub(super) const READS: [&str; 31] = [
    "auth",
    "client",
    "client|id",
    "client|info",
    "client|setname",
    "hello",
    "hget",
    "hlen",
    "hmget",
    "hscan",
    "hstrlen",
    "info",
    "lindex",
    "llen",
    "lrange",
    "ping",
    "pubsub",
    "pubsub|channels",
    "pubsub|numsub",
    "quit",
    "role",
    "scan",
    "select",
    "time",
    "type",
    "zcard",
    "zcount",
    "zrange",
    "zrangebyscore",
    "config",
    "config|resetstat",
];

const COMMANDS: [&[&str]; 11] = [
    &["ls"],
    &["show", "orders"],
    &["due", "orders"],
    &["list", "orders"],
    &["list", "orders", "ready"],
    &["list", "orders", "in-flight"],
    &["list", "orders", "waiting"],
    &["list", "orders", "dead"],
    &["list", "orders", "quarantine"],
    &["list", "orders", "schedules"],
    &["list", "orders", "pops"],
];

#[tokio::test(flavor = "multi_thread")]
async fn every_command_works_for_a_user_who_may_only_look_and_executes_no_script() {
    let server = Server::start();
    fill(&server).await;
    let url = looking(&server);
    let before = server.keys();
    server.cmd(["CONFIG", "RESETSTAT"]);
    for words in COMMANDS {
        let ran = at(&url, words);
        assert_eq!((ran.code, &*ran.err), (0, ""), "{words:?}");
    }
    let executed: Vec<String> =
        executed(&server).into_iter().filter(|(_, count)| *count > 0).map(|(name, _)| name).collect();
    assert!(executed.iter().all(|name| READS.contains(&&**name)), "{executed:?}");
    assert!(executed.len() > 10, "{executed:?}");
    // Nor is anything sent that such a user is refused.
    assert!(!server.info("commandstats").contains("config|get"));
    assert_eq!(server.errors("NOPERM"), 0);
    assert_eq!(server.keys(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_right_is_named() {
    let server = Server::start();
    fill(&server).await;
    let url = looking(&server);
    let without = |command: &str| {
        looking(&server);
        server.cmd(["ACL", "SETUSER", "looks", &format!("-{command}")]);
    };
    for (right, words) in [
        ("scan", &["ls"][..]),
        ("zrange", &["list", "orders"]),
        ("lrange", &["list", "orders", "quarantine"]),
        ("lindex", &["list", "orders", "ready"]),
        ("hget", &["list", "orders", "dead"]),
        ("hscan", &["list", "orders", "pops"]),
        ("zcount", &["due", "orders"]),
    ] {
        without(right);
        let ran = at(&url, words);
        // A list of one element is read by its index.
        let right = if right == "lrange" && ran.code == 0 { continue } else { right };
        let said = ran.failed(4);
        assert!(said.contains(&format!("the missing permission: +{right}")), "{words:?}: {said}");
    }
    // Unknown is not ok, and not zero.
    for (right, field) in
        [("zcard", "pending"), ("llen", "ready"), ("hmget", "is_paused"), ("zrange", "next_due_in")]
    {
        without(right);
        let ls = at(&url, ["ls"]);
        assert_eq!(ls.code, 0, "{}", ls.err);
        let note = format!("redelay: {field} is unknown: NOPERM");
        assert!(
            ls.err.contains(&note) && ls.err.contains(&format!("(the missing permission: +{right})")),
            "{}",
            ls.err
        );
        assert!(!ls.out.ends_with(" ok\n"), "{}", ls.out);
    }
    server.cmd(["DEL", "redisson_delay_queue_timeout:{orders}"]);
    server.cmd(["ACL", "SETUSER", "looks", "+@all", "-lindex", "-lrange"]);
    let ls = at(&url, ["ls"]);
    assert!(ls.code == 0 && ls.out.contains(" ? "), "{}", ls.out);
    assert!(
        ls.err.contains("a codec is unknown: ") && ls.err.contains("the missing permission: +l"),
        "{}",
        ls.err
    );
    // A document has the server's words.
    let json = at(&url, ["ls", "--json"]).out;
    assert!(json.contains(r#""what":"codecs""#) && !json.contains("is unknown"), "{json}");
    server.cmd(["ZADD", "redisson_delay_queue_timeout:{late}", "1", "junk"]);
    without("zrange");
    let ls = at(&url, ["ls", "late"]);
    assert!(ls.code == 0 && ls.out.ends_with("  unknown\n"), "{}", ls.out);
    without("info");
    let ls = at(&url, ["ls", "--json"]);
    assert!(ls.code == 0 && ls.err.contains("the missing permission: +info"), "{}", ls.err);
    // What a watch cannot do without, and what it can.
    looking(&server);
    server.cmd(["ACL", "SETUSER", "looks", "-pubsub", "-time"]);
    let watch = at(&url, ["watch"]);
    assert_eq!((watch.code, &*watch.out), (4, ""), "{}", watch.err);
    for right in ["+time); times are by the clock of this machine", "the missing permission: +psubscribe"] {
        assert!(watch.err.contains(right), "{}", watch.err);
    }
}

/// How often the server has executed each command.
pub(super) fn executed(server: &Server) -> std::collections::BTreeMap<String, u64> {
    let stats = server.info("commandstats");
    let calls = |line: &str| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((name.to_owned(), rest.split(',').next()?.parse().ok()?))
    };
    stats.lines().filter_map(calls).collect()
}

const QUEUES: usize = 1_000;
const OTHERS: usize = 20_000;
const KEYS: u64 = (OTHERS + 2 * QUEUES) as u64;

/// Many queues among many other keys.
fn fill_many(server: &Server) {
    let fill = "
        for n = 1, tonumber(ARGV[1]) do
            local entry = '\\1x' .. struct.pack('<L', 6) .. '\\3hell\\239'
            redis.call('ZADD', 'redisson_delay_queue_timeout:{q' .. n .. '}', 4102444800000, entry)
            redis.call('RPUSH', 'redisson_delay_queue:{q' .. n .. '}', entry)
        end
        for n = 1, tonumber(ARGV[2]) do redis.call('SET', 'other:' .. n, n) end";
    server.cmd(["EVAL", fill, "0", &QUEUES.to_string(), &OTHERS.to_string()]);
}

#[test]
fn many_queues_among_many_keys_cost_a_bounded_number_of_calls() {
    let server = Server::start();
    fill_many(&server);
    server.cmd(["CONFIG", "RESETSTAT"]);
    let ls = redelay(&server, ["ls", "--json"]).json();
    assert_eq!(ls.len(), QUEUES);
    assert!(ls.iter().all(|queue| queue["codecs"][0]["codec"] == "kryo5"), "{}", ls[0]);
    let executed = executed(&server);
    assert!(executed["scan"] <= KEYS / 500 + 2, "{executed:?}");
    let reads =
        ["zcard", "zcount", "llen", "hlen", "hmget", "zrange", "zrangebyscore", "lindex", "lrange", "type"];
    let sum: u64 = reads.iter().filter_map(|read| executed.get(*read)).sum();
    assert!(sum <= 20 * QUEUES as u64, "{executed:?}");
    let others: Vec<_> =
        executed.iter().filter(|(name, count)| !reads.contains(&&***name) && **count > 100).collect();
    assert!(others.is_empty(), "{others:?}");
}

/// It searches rarely, and asks often about what is in sight only.
#[test]
fn top_costs_as_much_as_ls_and_then_less() {
    const LOOKS: u64 = 4;
    let server = Server::start();
    fill_many(&server);
    let url = looking(&server);
    server.cmd(["CONFIG", "RESETSTAT"]);
    let mut terminal = Terminal::new(120, 40);
    let mut command = program();
    command.env("REDIS_URL", &url).args([super::LONG, "top", "--interval=500ms"]);
    let begun = Instant::now();
    let mut child = terminal.start(&command);
    terminal.shows("1,000 queues, found with");
    // One for each queue that a look asks about.
    let looked = || executed(&server).get("hmget").copied().unwrap_or_default();
    until("it looks", || looked() > QUEUES as u64 + LOOKS * 130);
    terminal.press("q");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let executed = executed(&server);
    // There may have been time for another search.
    let searches = 1 + begun.elapsed().as_secs() / 30;
    assert!(executed["scan"] <= searches * (KEYS / 500 + 2), "{executed:?}");
    let sent = || executed.iter().filter(|(_, count)| **count > 0);
    assert!(sent().all(|(name, _)| READS.contains(&&**name)), "{executed:?}");
    let others = ["scan", "type", "info", "time", "config|resetstat"];
    let sum: u64 = sent().filter(|(name, _)| !others.contains(&&***name)).map(|(_, count)| count).sum();
    assert!(sum <= 20 * executed["hmget"], "{executed:?}");
    // At the beginning, each is in sight of the first look, or of those while the search goes on.
    // Each look at a queue sends one ZRANGE. The others read payloads.
    let reads = executed["zrange"] - executed["hmget"];
    assert!(reads <= QUEUES as u64, "codecs are read of what is in sight: {executed:?}");
}

#[test]
fn long_payloads_are_not_read_to_know_the_codec() {
    const LONG: usize = 1_000_000;
    let server = Server::start();
    let fill = "
        for n = 1, 12 do redis.call('RPUSH', 'q', string.rep('x', ARGV[1])) end
        for n = 1, 12 do
            local entry = '\\1x' .. struct.pack('<L', ARGV[1]) .. string.rep(string.char(96 + n), ARGV[1])
            redis.call('ZADD', 'redisson_delay_queue_timeout:{q}', 4102444800000, entry)
        end";
    server.cmd(["EVAL", fill, "0", &LONG.to_string()]);
    let before = server.bytes_sent();
    assert_eq!(redelay(&server, ["ls", "--json"]).json().len(), 1);
    // The head of the pending entries is read for its time, too.
    let of_long = server.bytes_sent() - before;
    assert!(of_long < 4 * LONG as u64, "{of_long}");
    // The first ones are short.
    server.cmd(["LPUSH", "q", "short"]);
    server.cmd(["ZADD", "redisson_delay_queue_timeout:{q}", "1", "\x01x\x01\0\0\0\0\0\0\x007"]);
    let before = server.bytes_sent();
    assert_eq!(redelay(&server, ["ls", "--json"]).json().len(), 1);
    let behind_short = server.bytes_sent() - before;
    assert!(behind_short < 5 * LONG as u64, "{behind_short}");
}

#[test]
fn the_queues_of_a_cluster() {
    let cluster = Cluster::without_replicas(3);
    let names: Vec<String> = (0..12).map(|n| format!("queue-{n}")).collect();
    for name in &names {
        let key = format!("redisson_delay_queue_timeout:{{{name}}}");
        let master = cluster.master_of(cluster.slot_of(&key));
        master.cmd(["ZADD", &key, "4102444800000", "\x01x\x01\0\0\0\0\0\0\x007"]);
    }
    let looking = LOOKING.split(' ').chain(["+cluster|slots", "+cluster|nodes"]);
    let words: Vec<&str> =
        ["ACL", "SETUSER", "looks", "on", ">secret", "~*"].into_iter().chain(looking).collect();
    cluster.servers().iter().for_each(|server| drop(server.cmd(&words)));
    let url = cluster.url().replace("redis-cluster://", "redis-cluster://looks:secret@");
    let ls = at(&url, ["ls"]);
    assert_eq!((ls.code, &*ls.err), (0, ""));
    assert!(ls.out.contains(" and 2 others · ") && ls.out.contains(" · 12 queues, found"), "{}", ls.out);
    let mut found: Vec<_> = at(&url, ["ls", "--json"]).json();
    let mut found: Vec<_> = found.iter_mut().map(|queue| queue["queue"].take()).collect();
    found.sort_by_key(|name| name.as_str().map(str::len));
    assert_eq!(found, names.iter().map(String::as_str).collect::<Vec<_>>());
    for name in &names {
        let items = at(&url, ["list", name, "--json"]).json();
        assert_eq!((items.len(), &items[0]["value"]), (1, &7.into()));
        assert!(at(&url, ["due", name]).ok().contains("later"));
    }
}
