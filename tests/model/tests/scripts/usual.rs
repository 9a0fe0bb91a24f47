//! The beginnings of `receive.lua`, `offer_jobs.lua` and `transfer.lua`, which make the usual calls: with and
//! without them, a call has the same effect and the same reply, whichever command the server refuses, and
//! whichever key is of another type.

use std::collections::BTreeMap;

use redelay_fixture::Server;
use redelay_fixture::redis::{self, Cmd, Value};
use redelay_support::{
    CHANNEL, CONTROL, DEAD, DEAD_MESSAGES, INBOX, JOBS, LEASES, MESSAGES, MORE_NOTES, MOVED, NOTES,
    ORDERED_LIST, QUARANTINE, REBUILD, RECEIPTS, RETRIES, SCRATCH, TARGET, TIMEOUT_SET, part,
};

use crate::jobs::OF_OFFER_HELD;
use crate::receivers::numbers;
use crate::{Bytes, CLOCK, EPOCH, OF_RECEIVE, OFFERED, USER, command, script};

/// The name of `receive.lua` without its beginning.
pub(crate) const WHOLE: &str = "RECEIVE without its beginning";
/// Where the calls that the beginning makes are counted.
pub(crate) const USUAL: &str = "usual";

const LISTS: [&str; 4] = [TARGET, INBOX, ORDERED_LIST, QUARANTINE];
const HASHES: [&str; 6] = [MESSAGES, RECEIPTS, CONTROL, DEAD_MESSAGES, JOBS, NOTES];
const SETS: [&str; 5] = [LEASES, RETRIES, DEAD, TIMEOUT_SET, MORE_NOTES];
const LEASE_MS: u64 = 30_000;
/// Makes a job ready: list, payload, id, flags, what its field and its note begin with, the time when it
/// expires, whether its entry is pending, and in what its field differs from its note.
const PUSH_JOB: &str = "local list, payload, id, flags, kind, others, expires, is_pending, differs = unpack(ARGV)
    local due, entry = struct.pack('>I6', 1), string.char(#id) .. id .. struct.pack('<I8', #payload) .. payload
    local data = due .. string.char(#id) .. id .. string.char(flags) .. due .. struct.pack('>I6', expires)
    redis.call('RPUSH', list, payload)
    redis.call('HSET', KEYS[1], redis.sha1hex(payload), others .. data .. 'header')
    if others == '1' then
        redis.call('ZADD', KEYS[5], 0, redis.sha1hex(payload) .. data .. 'other')
    end
    local was_due, was = differs == 'due' and struct.pack('>I6', 2) or due, differs == 'entry' and id or entry
    redis.call('HSET', KEYS[2], id, kind .. due .. was_due .. was)
    redis.call('HSET', KEYS[3], 'notes', '1')
    return is_pending == '1' and redis.call('ZADD', KEYS[4], 1, entry)";
/// The keys of `OFFER_JOBS`, but for the receipt.
const OF_OFFER_JOBS: [&str; 9] =
    [TIMEOUT_SET, ORDERED_LIST, CHANNEL, "receipt", JOBS, SCRATCH, CONTROL, NOTES, REBUILD];

/// The script that counts the calls which its beginning makes, and the same without that beginning.
pub(crate) fn with_and_without_its_beginning(script: &str) -> (String, String) {
    let (begins, ends, never) = if script.contains("pcall(call_for_one)") {
        let begins =
            &["local ok, reply = pcall(call_for_one)", "local ok, reply = pcall(call_for_many, ...)"][..];
        (begins, "if ok and reply then", "local ok, reply = false, nil")
    } else {
        (&["local reply = call_as_usual()"][..], "if reply then", "local reply = nil")
    };
    assert_eq!(script.matches(ends).count(), begins.len());
    let counts = script.replace(ends, &format!("{ends} redis.call('INCR', '{USUAL}')"));
    let mut whole = script.to_owned();
    for begins in begins {
        assert_eq!(script.matches(begins).count(), 1);
        whole = whole.replace(begins, never);
    }
    (counts, whole)
}

/// The name of `transfer.lua` without its beginning.
pub(crate) const LONG_TRANSFER: &str = "TRANSFER without its beginning";

/// `transfer.lua` without the short ways, for few entries and for none: with a search of the list.
pub(crate) fn long_transfer() -> String {
    let (script, begins) = (script("TRANSFER"), "local is_usual = ");
    assert_eq!(script.matches(begins).count(), 1);
    script.replace(begins, "local is_usual = false and ")
}

/// One database, and what it has answered.
struct Twin {
    admin: redis::Connection,
    /// Lacks permissions.
    client: redis::Connection,
}

impl Twin {
    fn start(server: &Server, database: &str) -> Self {
        let (mut admin, mut client) = (server.redis(), server.redis());
        for connection in [&mut admin, &mut client] {
            Cmd::new().arg(&["SELECT", database]).exec(connection).expect("SELECT");
        }
        Cmd::new().arg(&["AUTH", USER, "any"]).exec(&mut client).expect("AUTH");
        Self { admin, client }
    }

    fn admin<T: redis::FromRedisValue>(&mut self, words: &[&str]) -> T {
        Cmd::new().arg(words).query(&mut self.admin).expect("a reply")
    }

    /// The reply; of errors and refusals, only that they are some. Their texts name lines of the script.
    fn call(
        &mut self,
        scripts: &BTreeMap<&'static str, String>,
        name: &str,
        keys: &[&str],
        arguments: &[Bytes],
    ) -> Option<Vec<Value>> {
        let call = command(scripts, name, keys, arguments);
        let mut parts: Vec<Value> = call.query(&mut self.client).ok()?;
        for part in &mut parts {
            if matches!(part, Value::BulkString(text) if is_refusal(text)) {
                *part = Value::Nil;
            }
        }
        Some(parts)
    }

    /// Makes what follows happen at this time, in ms.
    fn set_clock(&mut self, now: u64) {
        let (seconds, micros) = ((now / 1000).to_string(), (now % 1000 * 1000).to_string());
        self.admin::<()>(&["MSET", CLOCK[0], &seconds, CLOCK[1], &micros]);
    }

    /// The same while the server refuses a command, and while a key has another type.
    fn call_damaged(
        &mut self,
        refused: Option<&str>,
        damaged: Option<&str>,
        call: impl FnOnce(&mut Self) -> Option<Vec<Value>>,
    ) -> Option<Vec<Value>> {
        if let Some(key) = damaged {
            self.admin::<()>(&["SET", key, ""]);
        }
        let permission = refused.map_or_else(|| "+@all".to_owned(), |command| format!("-{command}"));
        self.admin::<()>(&["ACL", "SETUSER", USER, &permission]);
        let reply = call(self);
        self.admin::<()>(&["ACL", "SETUSER", USER, "+@all"]);
        if let Some(key) = damaged {
            self.admin::<()>(&["DEL", key]);
        }
        reply
    }

    /// What the keys have, without an order where the server has none.
    #[allow(clippy::type_complexity)]
    fn state(&mut self) -> (Vec<Vec<Bytes>>, Vec<BTreeMap<Bytes, Bytes>>, Vec<Vec<(Bytes, Bytes)>>) {
        (
            LISTS.map(|key| self.admin(&["LRANGE", key, "0", "-1"])).into(),
            HASHES.map(|key| self.admin(&["HGETALL", key])).into(),
            SETS.map(|key| self.admin(&["ZRANGE", key, "0", "-1", "WITHSCORES"])).into(),
        )
    }
}

/// Whether the text is why the server has refused something.
fn is_refusal(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    ["permissions", "can't run", "wrong kind"].iter().any(|words| text.contains(words))
}

fn server_with_user() -> Server {
    let server = Server::start();
    let mut user = Cmd::new();
    user.arg(&["ACL", "SETUSER", USER, "on", "nopass", "~*", "&*", "+@all"]);
    user.exec(&mut server.redis()).expect("a user");
    server
}

fn cases() -> u64 {
    std::env::var("REDELAY_CASES").map_or(40, |cases| cases.parse().expect("a number"))
}

/// A call that may be a usual one: what it acknowledges, with the ids that these hold, and the most messages
/// that it is to claim.
fn arguments(calls: u64, now: u64, acknowledged: &[(Bytes, Bytes)], most: u8, words: &str) -> Vec<Bytes> {
    let mut token = [&now.to_be_bytes()[2..], &calls.to_be_bytes()[2..], &[0; 4]].concat();
    token[12] = 1;
    let policy = [&[0, 3, 0, 3][..], &(LEASE_MS as u32).to_be_bytes(), b"k"].concat();
    let holding: Vec<_> = (1..).zip(acknowledged).filter(|(_, (_, id))| !id.is_empty()).collect();
    let numbers = numbers([most.into(), acknowledged.len(), 0, 0, holding.len(), 0], now as i64, 0);
    let mut all = vec![b"me".into(), token, policy, words.into(), numbers];
    all.extend(acknowledged.iter().map(|(member, _)| member.clone()));
    all.extend(holding.into_iter().flat_map(|(number, (_, id))| [number.to_string().into(), id.clone()]));
    all
}

/// The id of the job in this record, or nothing.
fn job_in(record: &[u8]) -> Bytes {
    if record[0] == 2 { record[41..41 + usize::from(record[40])].into() } else { Bytes::new() }
}

/// Payloads that become ready: the list, and each of them. Those that are long do not fit into one call.
fn ready(random: &mut fastrand::Rng, calls: u64) -> Vec<Bytes> {
    let list = LISTS[usize::from(random.u8(..6) == 0)].into();
    let count = if random.bool() { 1 } else { random.usize(1..24) };
    let length = if random.u8(..12) == 0 { 80_000 } else { 0 };
    let payload = |number| [format!("{calls}.{number}").as_bytes(), &b"x".repeat(length)].concat();
    [list].into_iter().chain((0..count).map(payload)).collect()
}

/// A job that becomes ready: the arguments of [`PUSH_JOB`].
fn ready_job(random: &mut fastrand::Rng, calls: u64, now: u64) -> Vec<String> {
    let list = LISTS[usize::from(random.u8(..6) == 0)].to_owned();
    let payload = if random.u8(..4) == 0 { 0 } else { calls };
    let id = if random.bool() { random.u64(..3) } else { calls };
    let flags = random.u8(..4);
    let kind = if random.u8(..8) == 0 { "p" } else { ["d", "h"][usize::from(flags % 2)] };
    let others = if random.u8(..8) == 0 { "1" } else { "0" };
    let expires = *random.choice(&[0, 0, 0, 0, 0, now - 1, now + 100]).expect("a time");
    let is_pending = u8::from(random.u8(..8) == 0);
    let numbers = [payload, id, flags.into()].map(|number| number.to_string());
    let differs = *random.choice(&["due", "entry", "", "", "", "", "", ""]).expect("one of them");
    let rest = [kind, others, &expires.to_string(), &is_pending.to_string(), differs].map(str::to_owned);
    [&[list][..], &numbers, &rest].concat()
}

/// The version of this record, if it is one.
fn kind_of_record(part: &Value) -> Option<u8> {
    let Value::BulkString(record) = part else { return None };
    (record.len() > 24 && record[1..5] == [0, 0, 0, 1]).then(|| record[0])
}

/// Set `REDELAY_CASES` for more.
#[test]
fn usual_calls_do_what_the_whole_script_does() {
    const COMMANDS: [&str; 13] = [
        "hdel", "hset", "zadd", "ltrim", "zrem", "llen", "lrange", "zrange", "hget", "hmget", "zmscore",
        "zcard", "zscore",
    ];
    let server = server_with_user();
    let (usual, whole) = with_and_without_its_beginning(&script("RECEIVE"));
    let scripts = BTreeMap::from([("RECEIVE", usual), (WHOLE, whole)]);
    let mut twins = ["0", "1"].map(|database| Twin::start(&server, database));
    let (mut count, mut jobs, mut done, mut many, mut many_jobs) = (0, 0, 0, 0, 0);
    for seed in (0..cases()).filter(|seed| part().has(*seed)) {
        let random = &mut fastrand::Rng::with_seed(seed);
        let mut now = EPOCH as u64 * 1000;
        // Members of the leases, those that are gone included, and the ids of their jobs.
        let mut held: Vec<(Bytes, Bytes)> = Vec::new();
        twins[0].admin::<()>(&["FLUSHALL"]);
        let has_jobs = seed % 2 == 0;
        for calls in 0..100 {
            if random.u8(..4) == 0 {
                now += *random.choice(&[1, 20, 900, 1500, LEASE_MS]).expect("one of them");
            }
            let refused = (random.u8(..3) == 0).then(|| random.choice(COMMANDS).expect("a command"));
            let payloads = (random.u8(..if has_jobs { 6 } else { 2 }) == 0).then(|| ready(random, calls));
            let jobs_of_call = if has_jobs { *random.choice(&[0, 1, 1, 6]).expect("one of them") } else { 0 };
            let ready_jobs: Vec<_> =
                (0..jobs_of_call).map(|number| ready_job(random, 10 * calls + number, now)).collect();
            let count_of_acks = if random.bool() { random.usize(..2) } else { random.usize(..24) };
            let acknowledged = random.choose_multiple(held.iter().rev().take(32).cloned(), count_of_acks);
            let words = if random.u8(..4) == 0 { "retries " } else { "" };
            let most = if random.bool() { random.u8(..3) } else { random.u8(..40) };
            let arguments = arguments(calls, now, &acknowledged, most, words);
            let damaged = (random.u8(..16) == 0).then(|| *random.choice(&OF_RECEIVE).expect("a key"));
            let step = format!(
                "{now}, {refused:?}, {damaged:?}, {} acks, {most}, {ready_jobs:?}",
                acknowledged.len()
            );
            let (mut replies, mut states) = (Vec::new(), Vec::new());
            for (twin, name) in twins.iter_mut().zip(["RECEIVE", WHOLE]) {
                twin.set_clock(now);
                if let Some(payloads) = &payloads {
                    Cmd::new().arg("RPUSH").arg(payloads).exec(&mut twin.admin).expect("RPUSH");
                }
                for job in &ready_jobs {
                    let begin = ["EVAL", PUSH_JOB, "5", NOTES, JOBS, CONTROL, TIMEOUT_SET, MORE_NOTES];
                    let job: Vec<&str> = job.iter().map(|word| &**word).collect();
                    twin.admin::<()>(&[&begin[..], &job].concat());
                }
                replies.push(twin.call_damaged(refused, damaged, |twin| {
                    twin.call(&scripts, name, &OF_RECEIVE, &arguments)
                }));
                states.push(twin.state());
                // The long member stays without a permission, until a call removes it sooner or later.
                twin.admin::<()>(&["ZREM", LEASES, &"x".repeat(65)]);
            }
            assert_eq!(replies[0], replies[1], "seed {seed}, call {calls}, the replies: {step}");
            assert_eq!(states[0], states[1], "seed {seed}, call {calls}, the keys: {step}");
            let (_, hashes, sets) = &states[0];
            let job =
                |member: &Bytes| hashes[0].get(&member[..16]).map_or(Bytes::new(), |record| job_in(record));
            let members = sets[0].iter().map(|(member, _)| member);
            held.extend(members.map(|member| (member.clone(), job(member))));
            let usual = twins[0].admin::<Option<u32>>(&["GETSET", USUAL, "0"]).unwrap_or(0);
            let records: Vec<_> = replies[0].iter().flatten().filter_map(kind_of_record).collect();
            let are_jobs = records.iter().filter(|version| **version == 2).count() > 1;
            (count, jobs, done, many, many_jobs) = (
                count + usual,
                jobs + usual * u32::from(records == [2]),
                done + usual * u32::from(acknowledged.len() == 1),
                many + usual * u32::from(records.len() > 1 && acknowledged.len() > 1),
                many_jobs + usual * u32::from(are_jobs && acknowledged.iter().any(|(_, id)| !id.is_empty())),
            );
        }
    }
    println!(
        "{count} usual ones: {jobs} claimed a job, {done} acknowledged one, {many} did both with many, {many_jobs} with jobs"
    );
    assert!(jobs > 0 && done > 0 && many > 0 && many_jobs > 0, "some calls were usual ones");
}

/// An error that nobody has foreseen, behind the pop: the messages are delivered again when their leases end.
#[test]
fn what_a_usual_call_has_popped_is_not_lost() {
    let server = server_with_user();
    let popped = "is_popped = true\n";
    let receive = script("RECEIVE");
    assert_eq!(receive.matches(popped).count(), 2);
    let scripts = [("RECEIVE", receive.replace(popped, &format!("{popped} error('a fault')\n")))].into();
    let mut twin = Twin::start(&server, "0");
    let now = EPOCH as u64 * 1000;
    for count in [1, 3] {
        twin.admin::<()>(&["FLUSHALL"]);
        twin.set_clock(now);
        // A call that is no usual one notes the clock.
        twin.call(&scripts, "RECEIVE", &OF_RECEIVE, &arguments(0, now, &[], 0, ""));
        let payloads = &["a", "b", "c"][..count];
        twin.admin::<()>(&[&["RPUSH", TARGET], payloads].concat());
        let reply = twin.call(&scripts, "RECEIVE", &OF_RECEIVE, &arguments(1, now, &[], count as u8, ""));
        assert_eq!(reply.expect("a reply").len(), 4, "it claims nothing");
        let (lists, hashes, sets) = twin.state();
        assert_eq!(lists[0].len() + lists[1].len(), 0);
        let of_messages = hashes[0].values().map(|record| &record[24..]);
        assert_eq!(
            of_messages.collect::<Vec<_>>(),
            payloads.iter().map(|payload| payload.as_bytes()).collect::<Vec<_>>()
        );
        assert_eq!(sets[0].len(), count, "each has a lease");
    }
}

/// Jobs with equal payloads, with ids that are taken or not, with what travels with them or nothing; calls
/// that are repeated; and what somebody has removed by hand.
#[test]
fn usual_offers_of_jobs_do_what_the_whole_script_does() {
    const COMMANDS: [&str; 11] =
        ["hget", "zscore", "set", "get", "hset", "zadd", "rpush", "hdel", "zrem", "zrange", "publish"];
    const POLICIES: [&str; 4] = ["keep", "replace", "earliest", "debounce"];
    let server = server_with_user();
    let scripts = ["OFFER_JOBS", "OFFER_HELD"].map(|name| with_and_without_its_beginning(&script(name)));
    let [(jobs, all_jobs), (held, all_held)] = scripts;
    let scripts = [("jobs", jobs), ("all jobs", all_jobs), ("held", held), ("all held", all_held)].into();
    let mut twins = ["0", "1"].map(|database| Twin::start(&server, database));
    let mut count = 0;
    for seed in (0..cases()).filter(|seed| part().has(*seed)) {
        let random = &mut fastrand::Rng::with_seed(seed);
        let (mut now, mut receipts, mut path) = (EPOCH as u64 * 1000, 0, Vec::new());
        let mut last: Option<(bool, Vec<Bytes>)> = None;
        twins[0].admin::<()>(&["FLUSHALL"]);
        for _ in 0..60 {
            now += random.u64(..3) * 500;
            let repeated = last.take().filter(|_| random.u8(..5) == 0);
            receipts += u32::from(repeated.is_none());
            let (is_held, arguments) = repeated.unwrap_or_else(|| {
                let is_held = random.bool();
                let (id, payload) = (random.u8(..6).to_string(), random.u8(..3).to_string());
                let entry = [&[1], id.as_bytes(), &1_u64.to_le_bytes(), payload.as_bytes()].concat();
                let mut data = Vec::new();
                if is_held {
                    let (from, expires) = *random.choice(&[(b'-', 0), (b'n', 900), (b'n', 5)]).expect("one");
                    data.extend([random.u8(..4), from]);
                    data.extend(&u64::to_be_bytes(expires)[2..]);
                    data.extend(&b"header"[..random.usize(..7)]);
                }
                let base = if random.bool() { "now".to_owned() } else { (now - 100).to_string() };
                let time = random.choice(&["0", "200", "1000", "1e15"]).expect("one of them");
                let policy = random.choice(POLICIES).expect("one of them");
                let looks = if random.bool() { "1" } else { "0" };
                let mut all: Vec<Bytes> =
                    [&base, "60000", policy, "700", "0", looks, time].map(Into::into).into();
                all.extend([id.into(), entry, data]);
                (is_held, all)
            });
            let receipt = format!("{OFFERED}{receipts}");
            let keys: &[&str] = if is_held { &OF_OFFER_HELD } else { &OF_OFFER_JOBS };
            let keys: Vec<&str> =
                keys.iter().map(|key| if *key == "receipt" { &receipt } else { *key }).collect();
            let refused = (random.u8(..3) == 0).then(|| random.choice(COMMANDS).expect("a command"));
            let damaged = (random.u8(..12) == 0).then(|| random.choice(&keys).expect("a key").to_string());
            let id = String::from_utf8(arguments[7].clone()).expect("an id");
            let by_hand = match random.u8(..10) {
                0 => vec!["HDEL", JOBS, &id],
                1 => vec!["DEL", NOTES],
                2 => vec!["ZREMRANGEBYRANK", TIMEOUT_SET, "0", "1"],
                3 => vec!["HSET", CONTROL, "max_pending", "3"],
                4 => vec!["HDEL", CONTROL, "max_pending"],
                _ => vec!["PING"],
            };
            path.push((now, refused, damaged.clone(), by_hand.join(" "), keys.join(" "), arguments.clone()));
            let (mut replies, mut states) = (Vec::new(), Vec::new());
            let names = if is_held { ["held", "all held"] } else { ["jobs", "all jobs"] };
            for (twin, name) in twins.iter_mut().zip(names) {
                twin.set_clock(now);
                twin.admin::<Value>(&by_hand);
                let announced = server.command_calls("publish");
                let reply = twin.call_damaged(refused, damaged.as_deref(), |twin| {
                    twin.call(&scripts, name, &keys, &arguments)
                });
                replies.push((reply, server.command_calls("publish") - announced));
                // Of a refusal, the receipt has the text.
                let outcome = twin.admin::<Option<Bytes>>(&["GET", &receipt]);
                let outcome = outcome.map(|outcome| if is_refusal(&outcome) { Vec::new() } else { outcome });
                states.push((twin.state(), outcome));
            }
            assert_eq!(replies[0], replies[1], "seed {seed}, the replies: {path:#?}");
            assert_eq!(states[0], states[1], "seed {seed}, the keys: {path:#?}");
            last = Some((is_held, arguments));
        }
        count += twins[0].admin::<Option<u32>>(&["GET", USUAL]).unwrap_or(0);
    }
    println!("{count} usual ones");
    assert!(count > 0, "some calls were usual ones");
}

/// Entries of jobs and others, some of them malformed, in the list or in the set only. The whole script needs
/// more commands; refused are those that both need.
#[test]
fn transfers_of_few_do_what_the_whole_script_does() {
    const COMMANDS: [&str; 11] = [
        "llen",
        "zrange",
        "zcount",
        "lrem",
        "rpush",
        "zremrangebyrank",
        "lpos",
        "hlen",
        "hmget",
        "hdel",
        "publish",
    ];
    const KEYS: [&str; 8] = [TIMEOUT_SET, ORDERED_LIST, TARGET, QUARANTINE, MOVED, SCRATCH, JOBS, REBUILD];
    const ARGUMENTS: [&str; 5] = ["1000", "20000", "me", "0", "0"];
    let server = server_with_user();
    let few = script("TRANSFER");
    let begins = "if are_few then";
    assert_eq!(few.matches(begins).count(), 1);
    let few = few.replace(begins, &format!("{begins} redis.call('INCR', '{USUAL}')"));
    let scripts = [("TRANSFER", few), (LONG_TRANSFER, long_transfer())].into();
    let mut twins = ["0", "1"].map(|database| Twin::start(&server, database));
    let (mut count, mut moved) = (0, 0);
    for seed in (0..cases()).filter(|seed| part().has(*seed)) {
        let random = &mut fastrand::Rng::with_seed(seed);
        let (mut now, mut path) = (EPOCH as u64 * 1000, Vec::new());
        twins[0].admin::<()>(&["FLUSHALL"]);
        for call in 0..60 {
            now += random.u64(..3) * 100;
            let changes = added(random, call, now);
            let refused = (random.u8(..3) == 0).then(|| random.choice(COMMANDS).expect("a command"));
            // A transfer of few does not look at the quarantine.
            let damaged = (random.u8(..12) == 0).then(|| *random.choice(&KEYS).expect("a key"));
            let damaged = damaged.filter(|key| ![QUARANTINE, MOVED].contains(key));
            path.push((now, refused, damaged, changes.clone()));
            let (mut replies, mut states) = (Vec::new(), Vec::new());
            for (twin, name) in twins.iter_mut().zip(["TRANSFER", LONG_TRANSFER]) {
                twin.set_clock(now);
                for change in &changes {
                    Cmd::new().arg(change).exec(&mut twin.admin).expect("a change");
                }
                let announced = server.command_calls("publish");
                let reply = twin.call_damaged(refused, damaged, |twin| {
                    twin.call(&scripts, name, &KEYS, &ARGUMENTS.map(Into::into))
                });
                replies.push((reply, server.command_calls("publish") - announced));
                states.push(twin.state());
            }
            assert_eq!(replies[0], replies[1], "seed {seed}, the replies: {path:#?}");
            assert_eq!(states[0], states[1], "seed {seed}, the keys: {path:#?}");
            let usual = twins[0].admin::<Option<u32>>(&["GETSET", USUAL, "0"]).unwrap_or(0);
            count += usual;
            moved += usual * u32::from(replies[0].0.is_some());
        }
    }
    println!("{count} transfers of few, {moved} of which were not refused");
    assert!(moved > 0 && moved < count, "some were refused");
}

/// Commands that add pending entries.
fn added(random: &mut fastrand::Rng, call: u64, now: u64) -> Vec<Vec<Bytes>> {
    let mut commands = Vec::new();
    for n in 0..random.u64(..5) {
        let id = if random.u8(..4) == 0 { format!("run@{call}{n}") } else { format!("{call}.{n}") };
        let payload = random.u8(..4).to_string();
        let entry = [&[id.len() as u8], id.as_bytes(), &1_u64.to_le_bytes(), payload.as_bytes()].concat();
        let is_malformed = random.u8(..16) == 0;
        let entry = if is_malformed { entry[..entry.len() - 1].to_vec() } else { entry };
        let due = (now + random.u64(..4) * 100).to_string();
        let end = if random.u8(..4) == 0 { "LPUSH" } else { "RPUSH" };
        if random.u8(..8) > 0 {
            commands.push(vec!["ZADD".into(), TIMEOUT_SET.into(), due.into(), entry.clone()]);
        }
        if random.u8(..8) > 0 {
            commands.push(vec![end.into(), ORDERED_LIST.into(), entry.clone()]);
        }
        if random.u8(..3) == 0 {
            let kind = if random.bool() { b"p" } else { b"d" };
            let field = [&kind[..], &[0; 12], &entry].concat();
            commands.push(vec!["HSET".into(), JOBS.into(), id.into(), field]);
        }
    }
    commands
}
