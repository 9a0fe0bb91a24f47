//! Random paths of the model's server beside a real one: after each call of a script, both have answered the
//! same, published the same, and have the same in every key.

mod jobs;
mod receivers;
mod recovery;
mod usual;

use std::collections::BTreeMap;

use crate::usual::{LONG_TRANSFER, long_transfer};
use redelay_fixture::Server;
use redelay_fixture::redis::{self, Cmd, Value};
use redelay_model::protocol::{
    Call, Command, Entry, Id, Popped, Protocol, Published, Receipt, Reply, Time, When,
};
use redelay_model::server;
use redelay_support::{
    CHANNEL, DEAD, DEAD_MESSAGES, INBOX, JOBS, LEASES, MESSAGES, MORE_NOTES, MOVED, NOTES, ORDERED_LIST,
    QUARANTINE, REBUILD, RECEIPTS, RETRIES, TARGET, TIMEOUT_SET, part,
};

const CLAIMS: &str = "redelay:popped:{q}";
const OFFERED: &str = "redelay:offered:{q}:";
const RETURNED: &str = "redelay:returned:{q}:";
const SCRATCH: &str = "redelay:scratch:{q}";
/// The keys of the scripts that remove entries.
const OF_REMOVALS: [&str; 6] = [TIMEOUT_SET, ORDERED_LIST, SCRATCH, JOBS, NOTES, MORE_NOTES];
const CONTROL: &str = "redelay:control:{q}";
const CHANNEL_OF_RETRIES: &str = "redelay:receivers:{q}";
/// The keys of `receive.lua`.
const OF_RECEIVE: [&str; 14] = [
    TARGET,
    INBOX,
    MESSAGES,
    LEASES,
    RETRIES,
    RECEIPTS,
    DEAD,
    DEAD_MESSAGES,
    CONTROL,
    CHANNEL_OF_RETRIES,
    TIMEOUT_SET,
    JOBS,
    NOTES,
    MORE_NOTES,
];
/// The keys from which the scripts read the time, since the clock of a real server cannot be set.
const CLOCK: [&str; 2] = ["clock:s", "clock:us"];
/// The name of the user who lacks a permission.
const USER: &str = "client";
/// The model's time 0, in seconds. Its unit is a second.
const EPOCH: i64 = 1_700_000_000;
const HOUR_MS: &str = "3600000";

/// Everything that a queue has, in one reply; and how many other keys there are.
const READ: &str = "
local claims, receipts = {}, {}
for _, id in ipairs(redis.call('HKEYS', KEYS[4])) do
    claims[#claims + 1] = {id, cmsgpack.unpack(redis.call('HGET', KEYS[4], id))[3]}
end
for _, key in ipairs(redis.call('KEYS', 'redelay:*')) do
    if redis.call('TYPE', key).ok == 'string' then
        receipts[#receipts + 1] = {key, redis.call('GET', key)}
    end
end
local known = #receipts + redis.call('EXISTS', unpack(KEYS))
return {
    redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES'),
    redis.call('LRANGE', KEYS[2], 0, -1),
    redis.call('LRANGE', KEYS[3], 0, -1),
    claims,
    receipts,
    redis.call('DBSIZE') - known,
}";

type Bytes = Vec<u8>;
/// The reply to [`READ`].
type Contents =
    (Vec<(Bytes, Bytes)>, Vec<Bytes>, Vec<Bytes>, Vec<(String, Vec<Bytes>)>, Vec<(String, Bytes)>, u8);

/// The script of this name, with another clock.
fn script(name: &str) -> String {
    with_clock(&redelay_support::script(name))
}

fn with_clock(script: &str) -> String {
    script.replace("redis.call('TIME')", &format!("redis.call('MGET', '{}', '{}')", CLOCK[0], CLOCK[1]))
}

fn entry(n: Entry) -> Vec<u8> {
    let payload = n.to_string();
    let id = [[0; 8], u64::from(n).to_be_bytes()].concat();
    [&[16], &*id, &(payload.len() as u64).to_le_bytes(), payload.as_bytes()].concat()
}

/// The number of an entry or of a payload.
fn number(bytes: &[u8]) -> Entry {
    let payload = if bytes.first() == Some(&16) { &bytes[25..] } else { bytes };
    text(payload).parse().expect("a number")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

fn millis(time: Time) -> String {
    ((EPOCH + i64::from(time)) * 1000).to_string()
}

fn time(millis: &[u8]) -> Time {
    let millis: i64 = text(millis).parse().expect("a number");
    Time::try_from(millis / 1000 - EPOCH).expect("a time of the model")
}

/// One real server, and two connections to it: the administrator's, and that of the user who calls the
/// scripts.
struct Real {
    admin: redis::Connection,
    client: redis::Connection,
    /// Everything that is published, until a message on the channel `end`.
    subscriber: redis::Connection,
    scripts: BTreeMap<&'static str, String>,
    is_refused: bool,
    transfers: u32,
    _server: Server,
}

impl Real {
    fn start() -> Self {
        let server = Server::start();
        let (mut admin, mut client, mut subscriber) = (server.redis(), server.redis(), server.redis());
        let mut user = Cmd::new();
        user.arg(&["ACL", "SETUSER", USER, "on", "nopass", "~*", "&*", "+@all"])
            .exec(&mut admin)
            .expect("a user");
        Cmd::new().arg(&["AUTH", USER, "any"]).exec(&mut client).expect("AUTH");
        // By hand: the library's `PubSub` ends the subscription when it is dropped.
        subscriber
            .send_packed_command(&Cmd::new().arg(&["PSUBSCRIBE", "*"]).get_packed_command())
            .expect("sent");
        subscriber.recv_response().expect("a subscription");
        let names = [
            "OFFER",
            "TRANSFER",
            "TAKE",
            "RETURN_TO_LIST",
            "POLL",
            "RESTORE_ENTRIES",
            "CANCEL",
            "REMOVE",
            "CLEAR",
            "RESCHEDULE",
        ];
        let mut scripts: BTreeMap<_, _> = names.into_iter().map(|name| (name, script(name))).collect();
        scripts.insert("OFFER BEFORE", with_clock(include_str!("../../before/offer.lua")));
        scripts.insert(LONG_TRANSFER, long_transfer());
        Self { admin, client, subscriber, scripts, is_refused: false, transfers: 0, _server: server }
    }

    fn admin(&mut self, words: &[&str]) -> Value {
        Cmd::new().arg(words).query(&mut self.admin).expect("a reply")
    }

    fn set_clock(&mut self, clock: Time) {
        let seconds = (EPOCH + i64::from(clock)).to_string();
        self.admin(&["MSET", CLOCK[0], &seconds, CLOCK[1], "0"]);
    }

    fn refuse(&mut self, command: Option<Command>) {
        self.is_refused = command.is_some();
        self.admin(&["ACL", "SETUSER", USER, "+@all", "allchannels"]);
        match command {
            None => {}
            Some(Command::Announce) => {
                drop(self.admin(&["ACL", "SETUSER", USER, "resetchannels", &format!("&{MOVED}")]))
            }
            Some(Command::PublishMoved) => {
                self.admin(&["ACL", "SETUSER", USER, "resetchannels", &format!("&{CHANNEL}")]);
            }
            Some(command) => {
                let name = format!("-{command:?}").to_lowercase();
                self.admin(&["ACL", "SETUSER", USER, &name]);
            }
        }
    }

    fn call(&mut self, call: &Call) -> Reply {
        let (mut name, keys, arguments) = arguments(call);
        // The long way needs more permissions.
        if name == "TRANSFER" && !self.is_refused {
            self.transfers += 1;
            name = if self.transfers.is_multiple_of(2) { LONG_TRANSFER } else { name };
        }
        match command(&self.scripts, name, &keys, &arguments).query::<Value>(&mut self.client) {
            Ok(reply) => reply_of(call, reply),
            Err(error) => {
                let error = error.to_string();
                let expected = ["NOPERM", "can't run this command", "no permissions", "not allowed"];
                assert!(expected.iter().any(|part| error.contains(part)), "{call:?}: {error}");
                Reply::Refused
            }
        }
    }

    /// What was published since the last time.
    fn published(&mut self) -> Vec<Published> {
        self.admin(&["PUBLISH", "end", ""]);
        std::iter::from_fn(|| {
            let message = self.subscriber.recv_response().expect("a message");
            let [_, _, channel, payload]: [Vec<u8>; 4] =
                redis::from_redis_value(message).expect("four strings");
            match text(&channel) {
                CHANNEL => Some(Published::Announcement(time(&payload))),
                MOVED => {
                    let head = payload.rsplit(|byte| *byte == b' ').next().filter(|head| !head.is_empty());
                    Some(Published::Moved(head.map(time)))
                }
                _ => None,
            }
        })
        .collect()
    }

    /// What is in the keys.
    fn state(&mut self) -> server::Server {
        let mut read = Cmd::new();
        read.arg(&["EVAL", READ, "6", TIMEOUT_SET, ORDERED_LIST, TARGET, CLAIMS, CLOCK[0], CLOCK[1]]);
        let contents: Contents = read.query(&mut self.admin).expect("the keys");
        let (pending, ordered_list, target, claims, receipts, others) = contents;
        assert_eq!(others, 0, "no other keys, and the scratch key is absent after each script");
        let numbers = |list: Vec<Vec<u8>>| list.iter().map(|bytes| number(bytes)).collect();
        let receipt = |(key, outcome): (String, Vec<u8>)| {
            if let Some(id) = key.strip_prefix(RETURNED) {
                return (id.parse().expect("an id"), (Receipt::Returned, Time::MAX));
            }
            let id = key.strip_prefix(OFFERED).expect("no other key").parse().expect("an id");
            let receipt = match outcome.split_first() {
                Some((undone, [b' ', ..])) => Receipt::NotStored { undone: *undone == b'1' },
                _ => Receipt::Stored(time(&outcome)),
            };
            (id, (receipt, Time::MAX))
        };
        server::Server {
            clock: 0,
            timeout_set: pending.iter().map(|(entry, due)| (time(due), number(entry))).collect(),
            ordered_list: numbers(ordered_list),
            target: numbers(target),
            claims: claims
                .into_iter()
                .map(|(id, popped)| (id.parse().expect("an id"), popped_of(&popped)))
                .collect(),
            receipts: receipts.into_iter().map(receipt).collect(),
            refused: None,
        }
    }
}

/// Payloads; or entries, each before its score.
fn popped_of(strings: &[Vec<u8>]) -> Popped {
    if strings.first().is_some_and(|first| first.first() == Some(&16)) {
        let pair = |pair: &[Vec<u8>]| {
            (number(&pair[0]), Some(&pair[1]).filter(|due| !due.is_empty()).map(|due| time(due)))
        };
        strings.chunks(2).map(pair).collect()
    } else {
        strings.iter().map(|payload| (number(payload), None)).collect()
    }
}

/// A call of a script, or a command of this name.
fn command(
    scripts: &BTreeMap<&'static str, String>,
    name: &str,
    keys: &[impl AsRef<str>],
    arguments: &[Vec<u8>],
) -> Cmd {
    let mut command = Cmd::new();
    match scripts.get(name) {
        Some(script) => command.arg("EVAL").arg(script).arg(keys.len()),
        None => command.arg(name),
    };
    for word in keys.iter().map(|key| key.as_ref().as_bytes()).chain(arguments.iter().map(Vec::as_slice)) {
        command.arg(word);
    }
    command
}

/// The name of the script or command, its keys and arguments.
fn arguments(call: &Call) -> (&'static str, Vec<String>, Vec<Vec<u8>>) {
    let offered = |id: &Id| format!("{OFFERED}{id}");
    let (name, keys, arguments): (_, Vec<String>, Vec<Vec<u8>>) = match call {
        Call::Offer { receipt: Some(receipt), when, entries } => {
            let base = match when {
                When::Now => "now".to_owned(),
                When::From(base) => millis(*base),
            };
            let delay = |delay: Time| (i64::from(delay) * 1000).to_string();
            let entries = entries.iter().flat_map(|(time, n)| [delay(*time).into(), entry(*n)]);
            // It does not look for a limit.
            let arguments = [base.into(), HOUR_MS.into(), "0".into()].into_iter().chain(entries).collect();
            let keys =
                [TIMEOUT_SET.into(), ORDERED_LIST.into(), CHANNEL.into(), offered(receipt), CONTROL.into()];
            ("OFFER", keys.into(), arguments)
        }
        Call::Offer { receipt: None, when, entries } => {
            let (mode, time): (_, fn(Time, Time) -> String) = match when {
                When::Now => ("after", |_, delay| (i64::from(delay) * 1000).to_string()),
                When::From(_) => ("0", |base, delay| millis(base + delay)),
            };
            let base = if let When::From(base) = when { *base } else { 0 };
            let entries = entries.iter().flat_map(|(delay, n)| [time(base, *delay).into(), entry(*n)]);
            let arguments = [mode.into()].into_iter().chain(entries).collect();
            ("OFFER BEFORE", vec![TIMEOUT_SET.into(), ORDERED_LIST.into(), CHANNEL.into()], arguments)
        }
        Call::Transfer => {
            let keys = [TIMEOUT_SET, ORDERED_LIST, TARGET, QUARANTINE, MOVED, SCRATCH, JOBS, REBUILD];
            (
                "TRANSFER",
                keys.map(str::to_owned).into(),
                ["5000", "40000", "me", "0", "0"].map(Into::into).into(),
            )
        }
        Call::Take { claim, forget } => {
            let forget = forget.map_or_else(String::new, |id| id.to_string());
            let arguments =
                ["LPOP".to_owned(), "1".to_owned(), HOUR_MS.to_owned(), claim.to_string(), forget];
            (
                "TAKE",
                vec![TARGET.into(), CLAIMS.into(), SCRATCH.into()],
                arguments.map(String::into_bytes).into(),
            )
        }
        Call::ReturnToList { receipt, payloads } => {
            let payloads = payloads.iter().rev().map(|payload| payload.to_string().into_bytes());
            let arguments = ["LPUSH".into(), HOUR_MS.into()].into_iter().chain(payloads).collect();
            let keys = vec![TARGET.into(), format!("{RETURNED}{receipt}"), SCRATCH.into()];
            ("RETURN_TO_LIST", keys, arguments)
        }
        Call::Poll { claim } => {
            let arguments = ["1".to_owned(), HOUR_MS.to_owned(), claim.to_string()];
            let keys = [TIMEOUT_SET, ORDERED_LIST, QUARANTINE, CLAIMS, SCRATCH, JOBS].map(str::to_owned);
            ("POLL", keys.into(), arguments.map(String::into_bytes).into())
        }
        Call::Restore { receipt, entries } => {
            let pairs =
                entries.iter().flat_map(|(n, due)| [entry(*n), due.map_or_else(String::new, millis).into()]);
            let receipt = format!("{RETURNED}{receipt}");
            let keys = [TIMEOUT_SET.into(), ORDERED_LIST.into(), CHANNEL.into(), receipt, SCRATCH.into()];
            ("RESTORE_ENTRIES", keys.into(), [HOUR_MS.into()].into_iter().chain(pairs).collect())
        }
        Call::Cancel(n) => ("CANCEL", OF_REMOVALS.map(String::from).into(), vec![entry(*n)]),
        Call::Remove(n) => {
            let keys = OF_REMOVALS.map(String::from).into();
            ("REMOVE", keys, vec!["first".into(), "-1".into(), "no entry".into(), n.to_string().into()])
        }
        Call::Reschedule(n, delay) => {
            let delay = (i64::from(*delay) * 1000).to_string();
            let arguments = vec!["now".into(), delay.into(), entry(*n)];
            let keys = [TIMEOUT_SET, CHANNEL, JOBS, NOTES, MORE_NOTES, ORDERED_LIST, REBUILD];
            ("RESCHEDULE", keys.map(String::from).into(), arguments)
        }
        Call::Clear => ("CLEAR", OF_REMOVALS.map(String::from).into(), Vec::new()),
        Call::Forget(id) => ("DEL", vec![offered(id), format!("{RETURNED}{id}")], Vec::new()),
        Call::Confirm(id) => ("HDEL", vec![CLAIMS.into()], vec![id.to_string().into()]),
    };
    (name, keys, arguments)
}

/// The reply as the model has it.
fn reply_of(call: &Call, reply: Value) -> Reply {
    let bytes = |value: &Value| match value {
        Value::BulkString(bytes) => Some(bytes.clone()),
        Value::Nil => None,
        other => panic!("{call:?}: {other:?}"),
    };
    let head = |value: &Value| bytes(value).filter(|due| !due.is_empty()).map(|due| time(&due));
    let int = |value: &Value| match value {
        Value::Int(int) => *int,
        other => panic!("{call:?}: {other:?}"),
    };
    let clock = |value: &Value| time(int(value).to_string().as_bytes());
    match (call, reply) {
        (Call::Offer { receipt: None, .. }, Value::Nil) => Reply::TooLate,
        (Call::Offer { receipt: None, .. }, now) => Reply::Stored { base: clock(&now), head: None },
        (Call::Offer { .. }, Value::Array(parts)) if parts.len() == 3 => {
            Reply::NotStored { undone: int(&parts[2]) == 1 }
        }
        (Call::Offer { .. }, Value::Array(parts)) => {
            Reply::Stored { base: clock(&parts[0]), head: head(&parts[1]) }
        }
        (Call::Transfer, Value::Array(parts)) => {
            assert_eq!(
                (int(&parts[1]), int(&parts[4])),
                (0, 0),
                "nothing is quarantined, and the pass is complete"
            );
            Reply::Transferred { count: int(&parts[0]) as u8, head: head(&parts[2]) }
        }
        (Call::Take { .. }, Value::Array(parts)) => {
            Reply::Popped(popped_of(&parts.iter().filter_map(bytes).collect::<Vec<_>>()))
        }
        (Call::Poll { .. }, Value::Array(parts)) => {
            assert_eq!(int(&parts[0]), 0, "nothing is quarantined");
            // Behind that: whether it came to the end of the list, and whether some may be jobs.
            Reply::Popped(popped_of(&parts[3..].iter().filter_map(bytes).collect::<Vec<_>>()))
        }
        (Call::Restore { .. }, value) => Reply::Pending { head: head(&value) },
        (Call::Reschedule(..), Value::Nil) => Reply::Count(0),
        (Call::Reschedule(..), Value::Array(parts)) => Reply::Pending { head: head(&parts[1]) },
        // How many, and where the next part begins.
        (Call::Remove(..) | Call::Clear, Value::Array(parts)) => Reply::Count(int(&parts[0]) as u8),
        (_, value) => Reply::Count(int(&value) as u8),
    }
}

/// Something that a client may send. The ids of offers, of returns and of claims are never the same.
fn random_call(random: &mut fastrand::Rng, protocol: Protocol, clock: Time) -> Call {
    let n = |random: &mut fastrand::Rng| random.u8(..4);
    let mut some = vec![n(random), n(random)];
    some.dedup();
    some.truncate(random.usize(1..=2));
    let receipt = 10 + random.u8(..20);
    match random.u8(..16) {
        0..5 => Call::Offer {
            receipt: protocol.receipts.then(|| random.u8(..6)),
            when: if random.bool() { When::Now } else { When::From(clock - random.i8(0..3)) },
            entries: some.into_iter().map(|n| (random.i8(0..4), n)).collect(),
        },
        5..8 => Call::Transfer,
        8 => Call::Take { claim: 30 + n(random), forget: Some(30 + n(random)).filter(|_| random.bool()) },
        9 => Call::ReturnToList { receipt, payloads: some },
        10 => Call::Poll { claim: 40 + n(random) },
        11 => {
            let due =
                |random: &mut fastrand::Rng| Some(clock + random.i8(-2..4)).filter(|_| random.u8(..4) > 0);
            Call::Restore { receipt, entries: some.into_iter().map(|n| (n, due(random))).collect() }
        }
        12 => Call::Cancel(n(random)),
        13 => Call::Remove(n(random)),
        14 => Call::Reschedule(n(random), random.i8(0..4)),
        _ => match random.u8(..8) {
            0 => Call::Clear,
            1..4 => Call::Forget(random.u8(..30)),
            _ => Call::Confirm(30 + random.u8(..14)),
        },
    }
}

/// Set `REDELAY_CASES` for more.
#[test]
fn the_model_does_what_the_scripts_do() {
    let cases = std::env::var("REDELAY_CASES").map_or(60, |cases| cases.parse().expect("a number"));
    let mut real = Real::start();
    for seed in (0..cases).filter(|seed| part().has(*seed)) {
        let random = &mut fastrand::Rng::with_seed(seed);
        let protocol = if seed % 4 == 3 { Protocol::BEFORE } else { Protocol::NOW };
        let mut model = server::Server::default();
        real.admin(&["FLUSHALL"]);
        real.refuse(None);
        let mut path = Vec::new();
        for _ in 0..100 {
            match random.u8(..10) {
                0 | 1 => model.set_clock((model.clock + random.i8(-3..5)).clamp(0, 60)),
                2 => model.refused = Some(*random.choice(Command::ALL).expect("a command")),
                3 | 4 => model.refused = None,
                _ => {}
            }
            real.set_clock(model.clock);
            real.refuse(model.refused);
            let call = random_call(random, protocol, model.clock);
            path.push((model.clock, model.refused, call.clone()));
            let expected = model.execute(protocol, &call);
            let is = (real.call(&call), real.published());
            assert_eq!(is, expected, "seed {seed}, the reply and what is published: {path:#?}");
            let state = server::Server { clock: model.clock, refused: model.refused, ..real.state() };
            assert_eq!(state, model, "seed {seed}, the keys: {path:#?}");
        }
    }
}
