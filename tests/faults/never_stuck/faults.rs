//! Causes each fault, and ends it.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant, SystemTime};

use redelay_fixture::redis::{FromRedisValue, Value};
use redelay_fixture::{Proxy, Server};
use redelay_support::{
    CHANNEL, CLAIMS, CONTROL, DEAD, DEAD_MESSAGES, INBOX, JOBS, LEASES, MESSAGES, MOVED, ORDERED_LIST,
    QUARANTINE, RECEIPTS, RETRIES, TARGET, TIMEOUT_SET, ms,
};
use tokio::time::sleep;

use super::clock::Dial;
use super::deletions::{DELETED, delete, until_there};
use super::plan::{Fault, Injected, Key, Kind, Plan, Silence, poison_lengths};
use crate::ledger::Ledger;

const REPEATED: Duration = Duration::from_millis(15);
/// A balancer's idle timeout, which is minutes elsewhere.
const IDLE: Duration = Duration::from_millis(30);
/// The bytes of a command that is long: the text of a script.
const LONG: usize = 4_000;

/// The path from the clients to the server.
pub(crate) struct Way {
    pub(crate) server: Server,
    pub(crate) proxy: Proxy,
    /// Whether the server keeps its data when it ends.
    is_durable: bool,
    /// Sets the server's clock, if the plan does.
    dial: Option<Dial>,
}

/// What the faults did, of each kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hits(BTreeMap<&'static str, Hit>);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hit {
    pub(crate) what: &'static str,
    pub(crate) count: usize,
    /// The number of faults that did it ...
    pub(crate) hitting: usize,
    /// ... and of those that could have.
    pub(crate) faults: usize,
}

pub(super) const KEYS_DELETED: &str = "keys deleted";

impl Hits {
    /// Each of them must have happened in a run of many plans.
    pub(crate) const ALL: [&str; 27] = [
        "connections killed",
        "connections cut",
        "connections cut while others were refused",
        "connections that were silent",
        "connections stranded",
        "connections hung up",
        "connections forgotten",
        "replies swallowed behind a long command",
        "bytes of replies lost",
        "connections replaced after replies that broke off",
        "commands whose replies were late",
        "connections of a server that was killed",
        "connections of a server that was stopped",
        "commands to a frozen server",
        "commands to a paused server",
        "scripts that the server had forgotten",
        "commands without memory",
        "commands to a replica",
        "commands on a key of another type",
        "connections replaced after injected replies",
        "unreadable entries",
        "commands refused",
        "announcements refused",
        "commands that the server did not know",
        KEYS_DELETED,
        "entries that a clock made due",
        "entries that a clock put off",
    ];

    /// Records what one fault did.
    fn add(&mut self, what: &'static str, count: usize) {
        assert!(Self::ALL.contains(&what) || DELETED.contains(&what), "{what} is not in the list");
        let hit = self.0.entry(what).or_default();
        *hit = Hit {
            what,
            count: hit.count + count,
            hitting: hit.hitting + usize::from(count > 0),
            faults: hit.faults + 1,
        };
    }

    pub(crate) fn of(&self, what: &str) -> Hit {
        self.0.get(what).copied().unwrap_or_default()
    }
}

impl Way {
    pub(crate) fn of_plan(plan: &Plan) -> Self {
        Self::new(plan.is_durable, plan.sets_clock())
    }

    pub(crate) fn new(is_durable: bool, sets_clock: bool) -> Self {
        // In the file, so that it is there after a restart.
        let user = format!("user {USER} on >{PASSWORD} ~* &* +@all");
        let builder = Server::builder().appendonly(is_durable).config(user);
        let (server, dial) = if sets_clock {
            let (server, dial) = Dial::start(builder);
            (server, Some(dial))
        } else {
            (builder.start(), None)
        };
        let proxy = Proxy::start(server.port());
        Self { server, proxy, is_durable, dial }
    }

    /// The address for the clients.
    pub(crate) fn url(&self) -> String {
        format!("redis://{USER}:{PASSWORD}@127.0.0.1:{}", self.proxy.port())
    }

    /// Sets the server's clock.
    pub(crate) fn set_clock(&self, ahead: i64, ledger: &Ledger) {
        let dial = self.dial.as_ref().expect("a clock that can be set");
        ledger.record().clock.begin(SystemTime::now(), ahead);
        dial.set(&self.server, ahead);
        ledger.record().clock.end_previous(SystemTime::now());
    }

    /// Causes a fault for its duration, and counts what it does.
    pub(crate) async fn suffer(&self, fault: Fault, lasts: Duration, ledger: &Ledger, hits: &mut Hits) {
        let Self { server, proxy, .. } = self;
        let commands = proxy.commands();
        let (what, count) = match fault {
            Fault::Forbid(commands) => {
                let change = |sign| commands.iter().map(move |command| format!("{sign}{command}"));
                server.cmd(["ACL", "LOG", "RESET"]);
                set_user(server, change('-'));
                for permission in change('+') {
                    sleep(lasts / commands.iter().count() as u32).await;
                    set_user(server, [permission]);
                }
                set_user(server, ["+@all".to_owned()]);
                ("commands refused", refused(server, |reason, _| reason == "command"))
            }
            Fault::Silence(silence) => {
                let (without, with) = match silence {
                    Silence::Publish => ("-publish", "+publish"),
                    Silence::Channels => ("resetchannels", "allchannels"),
                    Silence::Heads => ("resetchannels &redelay:moved:*", "allchannels"),
                    Silence::Transfers => ("resetchannels &redisson_delay_queue_channel:*", "allchannels"),
                };
                server.cmd(["ACL", "LOG", "RESET"]);
                set_user(server, without.split(' ').map(str::to_owned));
                sleep(lasts).await;
                set_user(server, [with.to_owned()]);
                // A connection that may not subscribe is refused at the top level.
                let announcements = |reason: &str, context: &str| {
                    ["command", "channel"].contains(&reason) && context != "toplevel"
                };
                ("announcements refused", refused(server, announcements))
            }
            Fault::Lack(command) => {
                let before = server.errors("ERR");
                let last = command.len() - 1;
                proxy.rewrite_commands(format!("{command}\r\n"), format!("{}_\r\n", &command[..last]));
                // What is asked when a connection begins is asked now.
                proxy.cut();
                sleep(lasts + ms(30)).await;
                proxy.rewrite_nothing();
                ("commands that the server did not know", (server.errors("ERR") - before) as usize)
            }
            Fault::SetClock(ahead) => {
                let now = ledger.record().clock.ahead();
                let until =
                    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_millis();
                let in_between = |from: i64, to: i64| -> usize {
                    let [from, to] = [from, to].map(|ahead| (until as i64 + ahead * 1000).to_string());
                    server.get(["ZCOUNT", TIMEOUT_SET, &format!("({from}"), &to])
                };
                let hit = if ahead > now {
                    ("entries that a clock made due", in_between(now, ahead))
                } else if ahead < now {
                    ("entries that a clock put off", server.get(["ZCARD", TIMEOUT_SET]))
                } else {
                    // It stays as it is.
                    return;
                };
                self.set_clock(ahead, ledger);
                sleep(lasts).await;
                hit
            }
            Fault::Kill(kind) => {
                let killed = Cell::new(0);
                again_and_again(lasts, || killed.set(killed.get() + kill(server, kind))).await;
                ("connections killed", killed.get())
            }
            Fault::ScriptFlush => {
                let before = server.errors("NOSCRIPT");
                again_and_again(lasts, || server.flush_scripts()).await;
                ("scripts that the server had forgotten", (server.errors("NOSCRIPT") - before) as usize)
            }
            Fault::Cut => {
                let open = proxy.connections();
                proxy.cut();
                ("connections cut", open)
            }
            Fault::Refuse => {
                let open = proxy.connections();
                proxy.refuse(true);
                proxy.cut();
                sleep(lasts).await;
                proxy.refuse(false);
                ("connections cut while others were refused", open)
            }
            Fault::BlackHole => {
                let open = proxy.connections();
                proxy.blackhole(true);
                sleep(lasts).await;
                proxy.blackhole(false);
                ("connections that were silent", open)
            }
            Fault::Strand => {
                let open = proxy.connections();
                proxy.strand();
                ("connections stranded", open)
            }
            Fault::HangUp => {
                let open = proxy.connections();
                proxy.hang_up();
                ("connections hung up", open)
            }
            Fault::ForgetIdle => {
                let before = proxy.forgotten();
                proxy.forget_idle(Some(IDLE));
                sleep(lasts + IDLE * 5).await;
                proxy.forget_idle(None);
                ("connections forgotten", proxy.forgotten() - before)
            }
            Fault::SwallowBehind => {
                let before = proxy.swallowing();
                proxy.swallow_behind(Some(LONG));
                again_and_again(lasts, || server.flush_scripts()).await;
                proxy.swallow_behind(None);
                ("replies swallowed behind a long command", proxy.swallowing() - before)
            }
            Fault::LoseReplies => {
                proxy.hold_replies(true);
                sleep(lasts).await;
                let held = proxy.held();
                proxy.cut();
                proxy.hold_replies(false);
                ("bytes of replies lost", held)
            }
            Fault::Delete(key) => {
                // What is there until the next call, or until a reply has come, is there for longer.
                proxy.delay(ms(20));
                sleep(lasts / 2 + ms(20)).await;
                until_there(server, key).await;
                proxy.hold_replies(key.is_receipt());
                let count = delete(server, key, ledger);
                if key.is_receipt() {
                    proxy.cut();
                }
                proxy.hold_replies(false);
                proxy.delay(Duration::ZERO);
                hits.add(KEYS_DELETED, count);
                (key.deleted(), count)
            }
            Fault::Truncate(bytes) => {
                let before = proxy.accepted();
                proxy.truncate(bytes);
                sleep(lasts).await;
                proxy.truncate_nothing();
                ("connections replaced after replies that broke off", proxy.accepted() - before)
            }
            Fault::Delay(delay) => {
                proxy.delay(delay);
                sleep(lasts).await;
                proxy.delay(Duration::ZERO);
                ("commands whose replies were late", proxy.commands() - commands)
            }
            Fault::KillServer | Fault::StopServer => {
                let open = proxy.connections();
                let what = if fault == Fault::KillServer {
                    server.kill_9();
                    "connections of a server that was killed"
                } else {
                    server.stop();
                    "connections of a server that was stopped"
                };
                if !self.is_durable {
                    let now = SystemTime::now();
                    ledger.record().receipt_losses.push((now, now));
                }
                sleep(lasts).await;
                server.start_again();
                (what, open)
            }
            Fault::Freeze => {
                server.freeze();
                sleep(lasts).await;
                server.thaw();
                ("commands to a frozen server", proxy.commands() - commands)
            }
            Fault::Pause => {
                server.pause(lasts);
                sleep(lasts).await;
                // By a clock that is set back next, it would not be over.
                server.cmd(["CLIENT", "UNPAUSE"]);
                ("commands to a paused server", proxy.commands() - commands)
            }
            Fault::OutOfMemory => {
                // Redis 6.2 does not say why a script has failed.
                let refused = || server.errors("OOM") + server.errors("ERR");
                let before = refused();
                server.cmd(["CONFIG", "SET", "maxmemory", "1"]);
                sleep(lasts).await;
                server.cmd(["CONFIG", "SET", "maxmemory", "0"]);
                ("commands without memory", (refused() - before) as usize)
            }
            Fault::Demote => {
                let before = server.errors("READONLY");
                // No server listens there: this one listens on 127.0.0.1 only.
                server.cmd(["REPLICAOF", "127.0.0.2", &server.port().to_string()]);
                sleep(lasts).await;
                server.cmd(["REPLICAOF", "NO", "ONE"]);
                ("commands to a replica", (server.errors("READONLY") - before) as usize)
            }
            Fault::WrongType(key) => {
                let before = server.errors("WRONGTYPE");
                let (key, aside) = (name(key), "aside:{q}");
                eval(server, SET_ASIDE, &[key, aside], &[]);
                sleep(lasts).await;
                eval(server, PUT_BACK, &[key, aside], &[]);
                ("commands on a key of another type", (server.errors("WRONGTYPE") - before) as usize)
            }
            Fault::Inject(injected) => {
                let before = proxy.accepted();
                again_and_again(lasts, || proxy.inject(bytes(injected))).await;
                ("connections replaced after injected replies", proxy.accepted() - before)
            }
            Fault::Poison(rest) => ("unreadable entries", poison(server, rest)),
        };
        hits.add(what, count);
    }
}

/// The user of the clients.
const USER: &str = "worker";
const PASSWORD: &str = "secret";

fn set_user(server: &Server, changes: impl IntoIterator<Item = String>) {
    let words = ["ACL", "SETUSER", USER].map(str::to_owned);
    server.cmd(words.into_iter().chain(changes));
}

/// How often the server refused the clients' user something with such a reason and context since the log was
/// cleared.
fn refused(server: &Server, is_wanted: impl Fn(&str, &str) -> bool) -> usize {
    let log: Vec<HashMap<String, Value>> = server.get(["ACL", "LOG", "1000"]);
    let text =
        |entry: &HashMap<String, Value>, name| String::from_redis_value(entry[name].clone()).expect("a text");
    let wanted = log.iter().filter(|entry| {
        text(entry, "username") == USER && is_wanted(&text(entry, "reason"), &text(entry, "context"))
    });
    wanted.map(|entry| usize::from_redis_value(entry["count"].clone()).expect("a count")).sum()
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
        Key::Inbox => INBOX,
        Key::Messages => MESSAGES,
        Key::Leases => LEASES,
        Key::Retries => RETRIES,
        Key::Receipts => RECEIPTS,
        Key::Dead => DEAD,
        Key::DeadMessages => DEAD_MESSAGES,
        Key::Control => CONTROL,
        Key::Jobs => JOBS,
        Key::Popped => CLAIMS,
        Key::Offered => "redelay:offered:{q}:*",
        Key::Returned => "redelay:returned:{q}:*",
        Key::Throttles => "redelay:throttle:{q}:*",
    }
}

fn bytes(injected: Injected) -> String {
    let message = |channel, text: &str| {
        let words = ["message", channel, text].map(|word| format!("${}\r\n{word}\r\n", word.len()));
        format!("*3\r\n{}", words.concat())
    };
    match injected {
        Injected::Reply(reply) => reply.to_owned(),
        Injected::Head(head) => message(CHANNEL, head),
        Injected::Transfer(transfer) => message(MOVED, transfer),
    }
}

fn eval(server: &Server, script: &str, keys: &[&str], args: &[Vec<u8>]) {
    let count = keys.len().to_string();
    let mut words = vec![b"EVAL".to_vec(), script.into(), count.into()];
    words.extend(keys.iter().map(|key| key.as_bytes().to_vec()));
    words.extend_from_slice(args);
    server.cmd(words);
}

/// Returns how many entries they are.
fn poison(server: &Server, rest: usize) -> usize {
    let entries: Vec<_> = poison_lengths(rest).map(|length| vec![0xff; length]).collect();
    eval(server, POISON, &[TIMEOUT_SET, ORDERED_LIST, CHANNEL], &entries);
    entries.len()
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

/// Returns how many it has ended.
fn kill(server: &Server, kind: Kind) -> usize {
    let list: String = server.get(["CLIENT", "LIST"]);
    let wanted = |line: &&str| {
        let (listens, blocks) =
            (!line.contains(" sub=0 "), [" cmd=blpop", " cmd=blmove"].iter().any(|pop| line.contains(pop)));
        line.contains(" name=member ")
            && match kind {
                Kind::Commands => !listens && !blocks,
                Kind::Blocking => blocks,
                Kind::Subscribers => listens,
                Kind::All => true,
            }
    };
    let ids = list
        .lines()
        .filter(wanted)
        .map(|line| line.strip_prefix("id=").and_then(|line| line.split(' ').next()).expect("an id"));
    ids.map(|id| server.get::<usize, _>(["CLIENT", "KILL", "ID", id])).sum()
}
