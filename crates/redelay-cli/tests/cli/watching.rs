//! `redelay watch`, and signals.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use redelay_fixture::{Server, until};
use serde_json::Value;

use super::program;
use super::schemas::are_as_documented;

fn start(server: &Server, words: &[&str]) -> Child {
    let mut command = program();
    command.env("REDIS_URL", server.url()).arg(super::LONG).args(words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn signal(child: &Child, signal: &str) {
    let status = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

/// Whether a process has a connection to a port of this machine.
fn is_connected(child: &Child, port: u16) -> bool {
    let folder = format!("/proc/{}", child.id());
    let files = std::fs::read_dir(format!("{folder}/fd")).into_iter().flatten().flatten();
    let sockets = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    let sockets: Vec<String> = sockets
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let table = std::fs::read_to_string(format!("{folder}/net/tcp")).unwrap_or_default();
    table.lines().any(|line| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        cells.get(2).is_some_and(|remote| remote.ends_with(&format!(":{port:04X}")))
            && cells.get(9).is_some_and(|inode| sockets.iter().any(|socket| socket == inode))
    })
}

#[test]
fn announcements_and_transfers_are_printed_until_a_signal_comes() {
    let server = Server::start();
    for (end, is_json) in [("-INT", true), ("-TERM", false)] {
        let mut child = start(&server, if is_json { &["watch", "--json"] } else { &["watch"] });
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next = || lines.next().unwrap().unwrap();
        let listening = next();
        assert!(listening.contains("listening"), "{listening}");
        server.cmd(["PUBLISH", "redisson_delay_queue_channel:{orders}", "4102444800000"]);
        let announced = next();
        server.cmd(["PUBLISH", "redelay:moved:{a\nb}", "me 1795615390307000 1795615390400"]);
        let moved = next();
        if is_json {
            let documents =
                [listening, announced, moved].map(|line| serde_json::from_str::<Value>(&line).unwrap());
            are_as_documented("watch", &documents, &["queue_hex"]);
            let [_, announced, moved] = documents;
            assert_eq!((&announced["what"], &announced["queue"]), (&"announced".into(), &"orders".into()));
            assert_eq!(announced["due"], "2100-01-01T00:00:00.000Z");
            assert_eq!((&moved["what"], &moved["queue"]), (&"transferred".into(), &"a\nb".into()));
            assert_eq!(moved["at"], "2026-11-25T14:03:10.307Z");
        } else {
            assert!(announced.contains("  orders: the next one is due in "), "{announced}");
            assert!(moved.starts_with("2026-11-25 14:03:10.307  a\\nb: moved what was due"), "{moved}");
        }
        signal(&child, end);
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

fn handles_sigint(child: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    caught.is_some_and(|caught| caught & 2 != 0)
}

/// Also the program that it waits for, and what that has started.
#[test]
fn an_interrupted_command_ends_its_decoder() {
    let server = Server::start();
    server.cmd(["ZADD", "redisson_delay_queue_timeout:{q}", "4102444800000", "\x01x\x01\0\0\0\0\0\0\x007"]);
    let folder = tempfile::tempdir().unwrap();
    let commands = [&["list", "q"][..], &["inspect", "37"]];
    // A terminal that is closed sends the second one.
    let ends = commands.into_iter().flat_map(|words| ["-INT", "-HUP"].map(|end| (words, end)));
    for (at, (words, end)) in ends.enumerate() {
        let file = folder.path().join(at.to_string());
        let decoder = format!("sleep 600 & echo $! >{0}.part; mv {0}.part {0}; wait", file.display());
        let mut child = start(&server, &[words, &["--decoder", &decoder]].concat());
        until("it decodes", || file.exists());
        until("it has a handler", || handles_sigint(&child));
        signal(&child, end);
        assert_eq!(child.wait().unwrap().code(), Some(130));
        let pid = std::fs::read_to_string(&file).unwrap();
        let stat = format!("/proc/{}/stat", pid.trim());
        until("its program has ended", || {
            std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "))
        });
    }
}

#[test]
fn any_other_command_that_is_interrupted_says_so() {
    let server = Server::start();
    server.freeze();
    let mut child = start(&server, &["ls"]);
    // It has its handler before it connects.
    until("it connects", || is_connected(&child, server.port()));
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    server.thaw();
}
