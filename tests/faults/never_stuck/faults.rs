//! Causes each fault, and ends it.

use std::time::{Duration, Instant};

use redelay_fixture::{Proxy, Server};
use redelay_support::{CHANNEL, ORDERED_LIST, QUARANTINE, TARGET, TIMEOUT_SET};
use tokio::time::sleep;

use super::plan::{Fault, Injected, Key, Kind, poison_lengths};

const REPEATED: Duration = Duration::from_millis(15);

/// The path from the clients to the server.
pub(crate) struct Way {
    pub(crate) server: Server,
    pub(crate) proxy: Proxy,
}

impl Way {
    /// Causes a fault for its duration.
    pub(crate) async fn suffer(&self, fault: Fault, lasts: Duration) {
        let Self { server, proxy } = self;
        match fault {
            Fault::Kill(kind) => again_and_again(lasts, || kill(server, kind)).await,
            Fault::ScriptFlush => again_and_again(lasts, || server.flush_scripts()).await,
            Fault::Cut => proxy.cut(),
            Fault::Refuse => {
                proxy.refuse(true);
                proxy.cut();
                sleep(lasts).await;
                proxy.refuse(false);
            }
            Fault::BlackHole => {
                proxy.blackhole(true);
                sleep(lasts).await;
                proxy.blackhole(false);
            }
            Fault::Strand => proxy.strand(),
            Fault::HangUp => proxy.hang_up(),
            Fault::LoseReplies => {
                proxy.hold_replies(true);
                sleep(lasts).await;
                proxy.cut();
                proxy.hold_replies(false);
            }
            Fault::Truncate(bytes) => {
                proxy.truncate(bytes);
                sleep(lasts).await;
                proxy.truncate_nothing();
            }
            Fault::Delay(delay) => {
                proxy.delay(delay);
                sleep(lasts).await;
                proxy.delay(Duration::ZERO);
            }
            Fault::KillServer | Fault::StopServer => {
                if fault == Fault::KillServer {
                    server.kill_9()
                } else {
                    server.stop()
                }
                sleep(lasts).await;
                server.start_again();
            }
            Fault::Freeze => {
                server.freeze();
                sleep(lasts).await;
                server.thaw();
            }
            Fault::Pause => {
                server.pause(lasts);
                sleep(lasts).await;
            }
            Fault::OutOfMemory => {
                server.cmd(["CONFIG", "SET", "maxmemory", "1"]);
                sleep(lasts).await;
                server.cmd(["CONFIG", "SET", "maxmemory", "0"]);
            }
            Fault::Demote => {
                // No server listens there: this one listens on 127.0.0.1 only.
                server.cmd(["REPLICAOF", "127.0.0.2", &server.port().to_string()]);
                sleep(lasts).await;
                server.cmd(["REPLICAOF", "NO", "ONE"]);
            }
            Fault::WrongType(key) => {
                let (key, aside) = (name(key), "aside:{q}");
                eval(server, SET_ASIDE, &[key, aside], &[]);
                sleep(lasts).await;
                eval(server, PUT_BACK, &[key, aside], &[]);
            }
            Fault::Inject(injected) => again_and_again(lasts, || proxy.inject(bytes(injected))).await,
            Fault::Poison(rest) => poison(server, rest),
        }
    }
}

const SET_ASIDE: &str =
    "if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('RENAME', KEYS[1], KEYS[2]) end
    redis.call('SET', KEYS[1], 'not what it should be')";
const PUT_BACK: &str = "redis.call('DEL', KEYS[1])
    if redis.call('EXISTS', KEYS[2]) == 1 then redis.call('RENAME', KEYS[2], KEYS[1]) end";
/// Stores entries that are due at once, and announces them.
const POISON: &str = "local time = redis.call('TIME')
    local now = string.format('%.0f', math.floor(time[1] * 1000 + time[2] / 1000))
    for _, entry in ipairs(ARGV) do
        redis.call('ZADD', KEYS[1], now, entry)
        redis.call('RPUSH', KEYS[2], entry)
    end
    redis.call('PUBLISH', KEYS[3], now)";

pub(crate) fn name(key: Key) -> &'static str {
    match key {
        Key::Target => TARGET,
        Key::TimeoutSet => TIMEOUT_SET,
        Key::OrderedList => ORDERED_LIST,
        Key::Quarantine => QUARANTINE,
    }
}

fn bytes(injected: Injected) -> &'static [u8] {
    match injected {
        Injected::Garbage => b"HTTP/1.1 400 Bad Request\r\n\r\n",
        Injected::Foreign => b"#t\r\n",
    }
}

fn eval(server: &Server, script: &str, keys: &[&str], args: &[Vec<u8>]) {
    let count = keys.len().to_string();
    let mut words = vec![b"EVAL".to_vec(), script.into(), count.into()];
    words.extend(keys.iter().map(|key| key.as_bytes().to_vec()));
    words.extend_from_slice(args);
    server.cmd(words);
}

fn poison(server: &Server, rest: usize) {
    let entries: Vec<_> = poison_lengths(rest).map(|length| vec![0xff; length]).collect();
    eval(server, POISON, &[TIMEOUT_SET, ORDERED_LIST, CHANNEL], &entries);
}

async fn again_and_again(lasts: Duration, fault: impl Fn()) {
    let begun = Instant::now();
    loop {
        fault();
        if begun.elapsed() >= lasts {
            return;
        }
        sleep(REPEATED).await;
    }
}

fn kill(server: &Server, kind: Kind) {
    let list: String = server.get(["CLIENT", "LIST"]);
    let wanted = |line: &&str| {
        let (listens, blocks) = (!line.contains(" sub=0 "), line.contains(" cmd=blpop"));
        line.contains(" name=member ")
            && match kind {
                Kind::Commands => !listens && !blocks,
                Kind::Blocking => blocks,
                Kind::Subscribers => listens,
                Kind::All => true,
            }
    };
    for line in list.lines().filter(wanted) {
        let id = line.strip_prefix("id=").and_then(|line| line.split(' ').next()).expect("an id");
        server.cmd(["CLIENT", "KILL", "ID", id]);
    }
}
