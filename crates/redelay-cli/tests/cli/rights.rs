//! A user who may only look, and what is sent for it.

use redelay_fixture::Server;

use super::{at, fill};

/// What a user needs who looks and does nothing else.
const LOOKING: &str = "-@all +@read +scan +time +ping +info +type +pubsub|channels +pubsub|numsub +client";

fn looking(server: &Server) -> String {
    let words = ["ACL", "SETUSER", "looks", "on", ">secret", "~*"].into_iter().chain(LOOKING.split(' '));
    server.cmd(words);
    server.url().replace("redis://", "redis://looks:secret@")
}

const COMMANDS: [&[&str]; 10] = [
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
    let executed: Vec<String> = server
        .info("commandstats")
        .lines()
        .filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(":calls="))
        .filter(|(_, rest)| !rest.starts_with("0,"))
        .map(|(name, _)| name.to_owned())
        .collect();
    let reads = [
        "auth",
        "client",
        "client|id",
        "client|info",
        "client|setname",
        "hello",
        "hget",
        "hlen",
        "hmget",
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
    assert!(executed.iter().all(|name| reads.contains(&&**name)), "{executed:?}");
    assert!(executed.len() > 10, "{executed:?}");
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
        ("zcount", &["due", "orders"]),
    ] {
        without(right);
        let ran = at(&url, words);
        // A list of one element is read by its index.
        let right = if right == "lrange" && ran.code == 0 { continue } else { right };
        let said = ran.failed(4);
        assert!(said.contains(&format!("the missing right: +{right}")), "{words:?}: {said}");
    }
    // Unknown is not ok, and not zero.
    for (right, field) in [("zcard", "pending"), ("llen", "ready"), ("hmget", "is_paused")] {
        without(right);
        let ls = at(&url, ["ls"]);
        assert_eq!(ls.code, 0, "{}", ls.err);
        let note = format!("redelay: {field} is unknown: NOPERM");
        assert!(
            ls.err.contains(&note) && ls.err.contains(&format!("(the missing right: +{right})")),
            "{}",
            ls.err
        );
        assert!(!ls.out.ends_with(" ok\n"), "{}", ls.out);
    }
    looking(&server);
    server.cmd(["ACL", "SETUSER", "looks", "-pubsub"]);
    let said = at(&url, ["watch"]).failed(4);
    assert!(said.contains("the missing right: +psubscribe"), "{said}");
}
