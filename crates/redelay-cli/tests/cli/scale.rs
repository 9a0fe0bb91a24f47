//! Looking at much costs little: few calls, few entries, few bytes.

use redelay_fixture::Server;
use redelay_support::part;

use super::redelay;

/// Other keys, queues of three entries, and the entries of one more queue.
const KEYS: usize = 100_000;
const QUEUES: usize = 1_000;
const PENDING: usize = 1_000_000;

/// Puts entries into a queue.
const FILL: &str = include_str!("fill.lua");

fn fill(server: &Server, name: &str, count: usize) {
    for first in (1..=count).step_by(50_000) {
        let last = count.min(first + 49_999);
        server.cmd(["EVAL", FILL, "1", name, &first.to_string(), &last.to_string()]);
    }
}

/// What the server has done for one run of the program.
#[derive(Debug)]
struct Work {
    scans: u64,
    commands: u64,
    sent: u64,
}

fn work(server: &Server, words: &[&str]) -> (String, Work) {
    server.cmd(["CONFIG", "RESETSTAT"]);
    let out = redelay(server, words).ok();
    let stats = server.info("stats");
    let number = |name: &str| {
        let line = stats.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|number| number.trim().parse().ok()).unwrap_or_else(|| panic!("no {name}: {stats}"))
    };
    let work = Work {
        scans: server.command_calls("scan"),
        commands: number("total_commands_processed"),
        sent: server.bytes_sent(),
    };
    println!("{words:?}: {work:?}");
    (out, work)
}

#[test]
fn many_queues_and_many_entries() {
    let server = Server::start();
    for first in (0..KEYS).step_by(10_000) {
        let fill = "for n = ARGV[1], ARGV[1] + 9999 do redis.call('SET', 'other:' .. n, n) end";
        server.cmd(["EVAL", fill, "0", &first.to_string()]);
    }
    for n in 0..QUEUES {
        fill(&server, &format!("queue-{n}"), 3);
    }
    let pending = part().share(PENDING);
    fill(&server, "long", pending);
    let queues = QUEUES as u64 + 1;

    let (out, all) = work(&server, &["--json", "ls"]);
    assert_eq!(out.lines().count() as u64, queues);
    assert!(all.scans <= 250, "{all:?}");
    // The types of its keys, what is in it, and a sample of its payloads.
    assert!(all.commands <= all.scans + 20 * queues && all.sent <= 2_000 * queues, "{all:?}");

    // Those that are not asked for are only found.
    let (_, one) = work(&server, &["--json", "ls", "long"]);
    assert!(one.commands <= one.scans + 2 * queues + 50, "{one:?}");

    let (out, show) = work(&server, &["--json", "show", "long"]);
    assert!(out.contains(&format!(r#""pending":{pending},"#)), "{out}");
    assert!(show.scans == 0 && show.commands <= 50 && show.sent <= 20_000, "{show:?}");

    let (out, list) = work(&server, &["--json", "list", "long", "--limit", "5000"]);
    assert_eq!(out.lines().count(), 5_000);
    assert!(list.scans == 0 && list.commands <= 100 && list.sent <= 5_000 * 200, "{list:?}");

    let (out, due) = work(&server, &["--json", "due", "long", "--step", "1m", "--count", "60"]);
    // What is overdue, and what is later.
    assert_eq!(out.lines().count(), 60 + 2, "{out}");
    assert!(due.scans == 0 && due.commands <= 120 && due.sent <= 20_000, "{due:?}");
}
