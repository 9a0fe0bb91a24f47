//! A Redisson on a queue whose ordered list redelay rebuilds, because a backlog is due.

use redelay_fixture::{Server, until};
use redelay_support::{Mover, ORDERED_LIST, REBUILD, TARGET, TIMEOUT_SET, fill_at_random, script};

use super::peer::{Lang, Setup};

const DUE: usize = 20_000;
const ALL: usize = 20_200;

fn beside(version: &str) {
    let server = Server::start();
    let url = server.url();
    let setup = Setup { redisson: version, ..Setup::new(&url) };
    let (mut java, mut mover) = (setup.start(Lang::Java), setup.start(Lang::Java));
    fill_at_random(&server, ALL, DUE);
    let (listed, pending) = (
        || server.get::<usize, _>(["LLEN", ORDERED_LIST]),
        || server.get::<usize, _>(["ZCARD", TIMEOUT_SET]),
    );
    // Calls that take as little time as they can.
    let mut calls = Mover::new(script("TRANSFER"), 1_000);
    for _ in 0..2 {
        calls.call(&server);
    }
    assert!(server.get::<bool, _>(["EXISTS", REBUILD]) && listed() < pending(), "it is rebuilt");
    // Redisson sees what the list has.
    assert_eq!(java.ask(&["size", "q"]), listed().to_string());
    let all: Vec<String> = serde_json::from_str(&java.ask(&["readall", "q"])).unwrap();
    assert_eq!(all.len(), listed());
    let is_listed = |n: &usize| all.contains(&n.to_string());
    let gone = (1_000..DUE).find(|n| !is_listed(n)).expect("a due entry has left it");
    let last = DUE + 100;
    assert!(is_listed(&last) && is_listed(&(last + 1)));
    for (n, answer) in [(last, "true"), (last, "false"), (gone, "false")] {
        assert_eq!(java.ask(&["contains", "q", &format!("\"{n}\"")]), answer, "{n}");
        assert_eq!(java.ask(&["remove", "q", &format!("\"{n}\"")]), answer, "{n}");
    }
    let mut polled = vec![last];
    for _ in 0..20 {
        let payload: String = serde_json::from_str(&java.ask(&["dpoll", "q"])).unwrap();
        polled.push(payload.parse().unwrap());
    }
    java.tell(&["offer", "q", &format!("\"{ALL}\""), "0"]);
    java.tell(&["offer", "q", &format!("\"{}\"", ALL + 1), super::HOUR]);
    // It transfers, too, in between.
    let before = pending();
    mover.open("q");
    until("Redisson moves some of what is not listed", || pending() < before);
    for _ in 0..1_000 {
        calls.call(&server);
        if pending() == listed() {
            break;
        }
    }
    until("all is moved", || pending() < ALL + 2 - DUE);
    until("each is in one place", || {
        let entries: Vec<Vec<u8>> = server.get(["ZRANGE", TIMEOUT_SET, "0", "-1"]);
        let payloads = entries.iter().map(|entry| entry[entry.len().min(17)..].to_vec());
        let all = payloads.chain(server.list(TARGET));
        let mut all: Vec<usize> = all
            .map(|payload| String::from_utf8(payload).unwrap().parse().unwrap())
            .chain(polled.clone())
            .collect();
        all.sort_unstable();
        all == (0..ALL + 2).collect::<Vec<_>>()
    });
    let mut listed = server.list(ORDERED_LIST);
    listed.sort();
    let mut entries: Vec<Vec<u8>> = server.get(["ZRANGE", TIMEOUT_SET, "0", "-1"]);
    entries.sort();
    assert_eq!(listed, entries);
    mover.tell(&["destroy", "q"]);
    java.quit();
    mover.quit();
}

#[test]
fn each_entry_is_delivered_or_removed_once() {
    beside("4.7.0");
    beside("3.50.0");
}
