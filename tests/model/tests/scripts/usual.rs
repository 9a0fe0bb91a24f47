//! The beginning of `receive.lua`, which makes the usual calls: with and without it, a call has the same
//! effect and the same reply, whichever command the server refuses, and whichever key is of another type.

use std::collections::BTreeMap;

use redelay_fixture::Server;
use redelay_fixture::redis::{self, Cmd, Value};
use redelay_support::{
    CONTROL, DEAD, DEAD_MESSAGES, INBOX, LEASES, MESSAGES, RECEIPTS, RETRIES, TARGET, part,
};

use crate::{Bytes, CLOCK, EPOCH, OF_RECEIVE, USER, command, script};

/// The name of `receive.lua` without its beginning.
pub(crate) const WHOLE: &str = "RECEIVE without its beginning";
/// Where the calls that the beginning makes are counted.
pub(crate) const USUAL: &str = "usual";

const LISTS: [&str; 2] = [TARGET, INBOX];
const HASHES: [&str; 4] = [MESSAGES, RECEIPTS, CONTROL, DEAD_MESSAGES];
const SETS: [&str; 3] = [LEASES, RETRIES, DEAD];
const LEASE_MS: u64 = 30_000;

/// The script `receive.lua` that counts the calls which its beginning makes, and the same without that
/// beginning.
pub(crate) fn with_and_without_its_beginning(receive: &str) -> (String, String) {
    let (begins, ends) = ("local ok, reply = pcall(call_as_usual)", "if ok and reply then");
    assert_eq!((receive.matches(begins).count(), receive.matches(ends).count()), (1, 1));
    let counts = format!("{ends} redis.call('INCR', '{USUAL}')");
    (receive.replace(ends, &counts), receive.replace(begins, "local ok, reply = false, nil"))
}

/// One database, and what it has answered.
struct Twin {
    admin: redis::Connection,
    /// Lacks permissions.
    client: redis::Connection,
    name: &'static str,
}

impl Twin {
    fn start(server: &Server, database: &str, name: &'static str) -> Self {
        let (mut admin, mut client) = (server.redis(), server.redis());
        for connection in [&mut admin, &mut client] {
            Cmd::new().arg(&["SELECT", database]).exec(connection).expect("SELECT");
        }
        Cmd::new().arg(&["AUTH", USER, "any"]).exec(&mut client).expect("AUTH");
        Self { admin, client, name }
    }

    fn admin<T: redis::FromRedisValue>(&mut self, words: &[&str]) -> T {
        Cmd::new().arg(words).query(&mut self.admin).expect("a reply")
    }

    /// The reply; of errors and refusals, only that they are some. Their texts name lines of the script.
    fn receive(
        &mut self,
        scripts: &BTreeMap<&'static str, String>,
        arguments: &[Bytes],
    ) -> Option<Vec<Value>> {
        let call = command(scripts, self.name, &OF_RECEIVE, arguments);
        let mut parts: Vec<Value> = call.query(&mut self.client).ok()?;
        for part in &mut parts {
            let Value::BulkString(text) = part else { continue };
            let text = String::from_utf8_lossy(text);
            if ["permissions", "can't run", "wrong kind"].iter().any(|words| text.contains(words)) {
                *part = Value::Nil;
            }
        }
        Some(parts)
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

/// A call that may be a usual one: what it acknowledges, and the most messages that it is to claim.
fn arguments(calls: u64, now: u64, acknowledge: Option<&Bytes>, most: u8, words: &str) -> Vec<Bytes> {
    let mut token = [&now.to_be_bytes()[2..], &calls.to_be_bytes()[2..], &[0; 4]].concat();
    token[12] = 1;
    let policy = [&[0, 3, 0, 3][..], &(LEASE_MS as u32).to_be_bytes(), b"k"].concat();
    let number = |number: u64| number.to_string().into_bytes();
    let acks = u64::from(acknowledge.is_some());
    let mut all = vec![b"me".into(), token, number(most.into()), policy, number(0), number(0), words.into()];
    all.extend([number(1), number(now), number(0), number(acks)]);
    all.extend([0; 4].map(number));
    all.extend(acknowledge.cloned());
    all
}

/// Set `REDELAY_CASES` for more.
#[test]
fn usual_calls_do_what_the_whole_script_does() {
    const COMMANDS: [&str; 12] = [
        "hdel", "hset", "zadd", "ltrim", "zrem", "llen", "lrange", "zrange", "hget", "hmget", "zmscore",
        "zcard",
    ];
    let cases = std::env::var("REDELAY_CASES").map_or(40, |cases| cases.parse().expect("a number"));
    let server = Server::start();
    let mut user = Cmd::new();
    user.arg(&["ACL", "SETUSER", USER, "on", "nopass", "~*", "&*", "+@all"]);
    user.exec(&mut server.redis()).expect("a user");
    let (usual, whole) = with_and_without_its_beginning(&script("RECEIVE"));
    let scripts = BTreeMap::from([("RECEIVE", usual), (WHOLE, whole)]);
    let mut twins = [Twin::start(&server, "0", "RECEIVE"), Twin::start(&server, "1", WHOLE)];
    let mut count = 0;
    for seed in (0..cases).filter(|seed| part().has(*seed)) {
        let random = &mut fastrand::Rng::with_seed(seed);
        let (mut now, mut path) = (EPOCH as u64 * 1000, Vec::new());
        // Members of the leases, those that are gone included.
        let mut held: Vec<Bytes> = Vec::new();
        twins[0].admin::<()>(&["FLUSHALL"]);
        for calls in 0..100 {
            if random.u8(..4) == 0 {
                now += *random.choice(&[1, 20, 900, 1500, LEASE_MS]).expect("one of them");
            }
            let refused = (random.u8(..3) == 0).then(|| random.choice(COMMANDS).expect("a command"));
            let push = random.bool().then(|| random.u8(..2));
            let member = random.choice(&held).filter(|_| random.u8(..3) > 0).cloned();
            let words = if random.u8(..4) == 0 { "retries " } else { "" };
            let arguments = arguments(calls, now, member.as_ref(), random.u8(..3), words);
            let damaged = (random.u8(..16) == 0).then(|| *random.choice(&OF_RECEIVE[..9]).expect("a key"));
            path.push((now, refused, push, damaged, arguments.clone()));
            let (mut replies, mut states) = (Vec::new(), Vec::new());
            for twin in &mut twins {
                let (seconds, micros) = ((now / 1000).to_string(), (now % 1000 * 1000).to_string());
                twin.admin::<()>(&["MSET", CLOCK[0], &seconds, CLOCK[1], &micros]);
                if let Some(list) = push {
                    twin.admin::<u32>(&["RPUSH", LISTS[usize::from(list)], &calls.to_string()]);
                }
                if let Some(key) = damaged {
                    twin.admin::<()>(&["SET", key, ""]);
                }
                let permission = refused.map_or_else(|| "+@all".to_owned(), |command| format!("-{command}"));
                twin.admin::<()>(&["ACL", "SETUSER", USER, &permission]);
                replies.push(twin.receive(&scripts, &arguments));
                twin.admin::<()>(&["ACL", "SETUSER", USER, "+@all"]);
                if let Some(key) = damaged {
                    twin.admin::<()>(&["DEL", key]);
                }
                states.push(twin.state());
            }
            assert_eq!(replies[0], replies[1], "seed {seed}, the replies: {path:#?}");
            assert_eq!(states[0], states[1], "seed {seed}, the keys: {path:#?}");
            held.extend(states[0].2[0].iter().map(|(member, _)| member.clone()));
        }
        count += twins[0].admin::<Option<u32>>(&["GET", USUAL]).unwrap_or(0);
    }
    assert!(count > 0, "some calls were usual ones");
}
