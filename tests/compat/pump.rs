//! `redelay pump` beside a Redisson, which loses a wake-up now and then.

use redelay_fixture::{Program, Server, until};

use super::peer::{self, Lang, Peer, Setup};
use super::{CHANNEL, HOUR, report};

/// How often a payload is offered and taken: `REDELAY_CYCLES`, or a twentieth of what `make soak` does.
fn cycles() -> usize {
    std::env::var("REDELAY_CYCLES").ok().and_then(|count| count.parse().ok()).unwrap_or(50)
}

fn pump(server: &Server) -> Program {
    let environment = [("REDIS_URL", &*server.url()), ("HOME", "/nonexistent")];
    Program::start(peer::command(), &["--timeout=1m", "pump"], &environment)
}

/// A Redisson that transfers `q`, in which an entry is due much later.
fn redisson(server: &Server, version: &str) -> Peer {
    let url = server.url();
    let mut java = Setup { redisson: version, ..Setup::new(&url) }.start(Lang::Java);
    java.open("q");
    java.tell(&["offer", "q", "\"far\"", HOUR]);
    java
}

/// Offers one payload, and takes it. Returns whether it came within this time, in seconds.
fn cycle(server: &Server, java: &mut Peer, n: usize, within: &str) -> bool {
    java.tell(&["offer", "q", &format!("\"{n}\""), "15"]);
    let taken: Option<(String, String)> = server.get(["BLPOP", "q", within]);
    taken.is_some_and(|(_, payload)| {
        assert_eq!(payload, n.to_string());
        true
    })
}

/// How many payloads stand still if nothing helps: for `make soak`, which shows that the next test tests
/// something.
fn alone(version: &str) {
    let server = Server::start();
    let mut java = redisson(&server, version);
    let mut still = 0;
    for n in 0..cycles() {
        if !cycle(&server, &mut java, n, "3") {
            still += 1;
            // What the manual recommends.
            let (_, head) = server.zset("redisson_delay_queue_timeout:{q}").remove(0);
            server.cmd(["PUBLISH", CHANNEL, &format!("{head:.0}")]);
            until("it is moved", || !server.list("q").is_empty());
            server.cmd(["DEL", "q"]);
        }
    }
    report(&format!("Redisson {version} alone: {still} of {} stood still", cycles()));
    java.quit();
}

fn beside(version: &str) {
    let server = Server::start();
    let mut java = redisson(&server, version);
    let (mut killed, mut frozen) = (pump(&server), pump(&server));
    until("they transfer", || server.subscribers(CHANNEL) == 3);
    for n in 0..cycles() {
        match n * 5 / cycles() {
            // Both pump. Then one of them is frozen, then none, and then the other one is killed.
            1 => frozen.freeze(),
            2 => frozen.thaw(),
            3 => killed.kill(),
            4 if !killed.is_running() => {
                killed = std::mem::replace(&mut frozen, pump(&server));
                until("it transfers", || server.subscribers(CHANNEL) == 3);
            }
            _ => {}
        }
        assert!(cycle(&server, &mut java, n, "300"), "{n} stands still beside Redisson {version}");
    }
    report(&format!("Redisson {version} and pumps: 0 of {} stood still", cycles()));
    assert_eq!(server.zset("redisson_delay_queue_timeout:{q}").len(), 1);
    java.quit();
}

#[test]
fn nothing_stands_still_beside_a_pump() {
    for version in ["4.7.0", "3.21.0"] {
        if std::env::var_os("REDELAY_CYCLES").is_some() {
            alone(version);
        }
        beside(version);
    }
}
