//! The same for jobs that hold their ids.

use std::collections::{BTreeMap, BTreeSet};

use redelay_fixture::Server;
use redelay_fixture::redis::{self, Cmd, Value};
use redelay_model::jobs::model::{Bounds, Event, Left, Outcome, State};
use redelay_model::jobs::offers::{Cancelled, JobState, Offer, Offered, Policy};
use redelay_model::jobs::protocol::Protocol;
use redelay_model::jobs::receiving::{ATTEMPTS, Received, Verb};
use redelay_model::jobs::server::{
    Field, JobId, Kind, Letter, MessageId, Note, Payload, Place, Reason, Record, Server as Keys, Time,
};
use redelay_support::{
    CHANNEL, CONTROL, DEAD, DEAD_MESSAGES, INBOX, JOBS, LEASES, MESSAGES, MORE_NOTES, MOVED, NOTES,
    ORDERED_LIST, QUARANTINE, REBUILD, RECEIPTS, RETRIES, SCRATCH, TARGET, TIMEOUT_SET, part,
};

use crate::receivers::{numbers, numbers_in};
use crate::usual::{LONG_TRANSFER, long_transfer};
use crate::{Bytes, CHANNEL_OF_RETRIES, CLOCK, EPOCH, OF_RECEIVE, OF_REMOVALS, command, script, text};

/// The model's unit of time is longer than a lease, and than what clocks differ by.
const UNIT_MS: i64 = 3_600_000;
const LEASE_MS: i64 = 30_000;
const RECEIPT: &str = "redelay:offered:{q}:1";
/// The keys of the scripts that remove ready payloads.
const OF_READY: [&str; 6] = [TARGET, TIMEOUT_SET, JOBS, NOTES, MORE_NOTES, SCRATCH];
/// Before the id.
const THROTTLE: &str = "redelay:throttle:{q}:id:";
/// The keys of `OFFER_HELD`, but for the receipt.
pub(crate) const OF_OFFER_HELD: [&str; 16] = [
    TIMEOUT_SET,
    ORDERED_LIST,
    CHANNEL,
    "receipt",
    JOBS,
    SCRATCH,
    CONTROL,
    TARGET,
    INBOX,
    MESSAGES,
    RETRIES,
    DEAD,
    DEAD_MESSAGES,
    NOTES,
    MORE_NOTES,
    REBUILD,
];
const ERROR: &str = "because";
const PROTOCOL: Protocol = Protocol { knows_offers: true, ..Protocol::NOW };
const IDS: JobId = 3;

/// All that jobs have.
const READ: &str = "
local letters = {}
for _, id in ipairs(redis.call('HKEYS', KEYS[10])) do
    local letter = cmsgpack.unpack(redis.call('HGET', KEYS[10], id))
    letters[#letters + 1] = {id, letter[1], string.format('%.0f', letter[6]), letter[8], letter[9] or ''}
end
return {
    redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES'),
    redis.call('LRANGE', KEYS[2], 0, -1),
    redis.call('LRANGE', KEYS[3], 0, -1),
    redis.call('LRANGE', KEYS[4], 0, -1),
    redis.call('HGETALL', KEYS[5]),
    redis.call('HGETALL', KEYS[6]),
    redis.call('ZRANGE', KEYS[7], 0, -1),
    redis.call('HGETALL', KEYS[8]),
    redis.call('ZRANGE', KEYS[9], 0, -1),
    letters,
    redis.call('ZRANGE', KEYS[11], 0, -1, 'WITHSCORES'),
    redis.call('ZRANGE', KEYS[12], 0, -1, 'WITHSCORES'),
}";
/// Where what holds an id may be, for the scripts that look for it.
const HOLDERS: [&str; 9] =
    [NOTES, TARGET, INBOX, MESSAGES, RETRIES, DEAD, DEAD_MESSAGES, CHANNEL_OF_RETRIES, MORE_NOTES];
const READ_KEYS: [&str; 12] = [
    TIMEOUT_SET,
    ORDERED_LIST,
    TARGET,
    INBOX,
    JOBS,
    NOTES,
    MORE_NOTES,
    MESSAGES,
    DEAD,
    DEAD_MESSAGES,
    LEASES,
    RETRIES,
];
type Pairs = Vec<(Bytes, Bytes)>;
type Contents = (
    Pairs,
    Vec<Bytes>,
    Vec<Bytes>,
    Vec<Bytes>,
    Pairs,
    Pairs,
    Vec<Bytes>,
    Pairs,
    Vec<Bytes>,
    Vec<[Bytes; 5]>,
    Pairs,
    Pairs,
);

fn millis(time: Time) -> i64 {
    EPOCH * 1000 + i64::from(time) * UNIT_MS
}

fn time_of(millis: i64) -> Time {
    let time = ((millis - EPOCH * 1000) / UNIT_MS) as Time;
    assert_eq!(self::millis(time), millis, "a time of the model");
    time
}

fn time(text_of_millis: &[u8]) -> Time {
    time_of(text(text_of_millis).parse().expect("a number"))
}

fn big_endian(bytes: &[u8]) -> i64 {
    bytes.iter().fold(0, |number, byte| number << 8 | i64::from(*byte))
}

fn job_id(id: JobId) -> Vec<u8> {
    vec![b'a' + id]
}

fn id_of_job(bytes: &[u8]) -> JobId {
    assert_eq!(bytes.len(), 1);
    bytes[0] - b'a'
}

fn payload_of(bytes: &[u8]) -> Payload {
    text(bytes).parse().expect("a number")
}

fn entry(id: JobId, payload: Payload) -> Vec<u8> {
    let payload = payload.to_string();
    [&[1], &*job_id(id), &(payload.len() as u64).to_le_bytes(), payload.as_bytes()].concat()
}

fn entry_of(bytes: &[u8]) -> (JobId, Payload) {
    (id_of_job(&bytes[1..2]), payload_of(&bytes[10..]))
}

fn token(call: u8) -> [u8; 16] {
    let mut token = [0; 16];
    token[13] = call;
    token
}

fn throttle(id: JobId) -> String {
    format!("{THROTTLE}{}", text(&job_id(id)))
}

fn message(id: MessageId) -> Vec<u8> {
    [&token(id.0)[..14], &id.1.to_be_bytes()].concat()
}

fn message_of(bytes: &[u8]) -> MessageId {
    MessageId(bytes[13], big_endian(&bytes[14..16]) as u16)
}

fn note_of(data: &[u8]) -> Option<Note> {
    let flags = data.get(8)?;
    let expires = big_endian(&data[15..21]);
    Some(Note {
        due: time_of(big_endian(&data[..6])),
        id: id_of_job(&data[7..8]),
        holds: flags & 1 == 1,
        discarded: flags & 2 == 2,
        offered: time_of(big_endian(&data[9..15])),
        expires: (expires > 0).then(|| time_of(expires)),
    })
}

fn field_of(bytes: &[u8]) -> Field {
    let [first, due] = [1, 7].map(|at| time_of(big_endian(&bytes[at..at + 6])));
    let rest = &bytes[13..];
    let kind = match bytes[0] {
        b'p' => Kind::Plain,
        b'd' => Kind::Free,
        b'h' => Kind::Holds,
        kind @ (b'm' | b'c') => {
            return Field::Message { id: message_of(rest), first, due, is_cancelled: kind == b'c' };
        }
        other => panic!("{other}"),
    };
    Field::Entry { kind, first, due, payload: entry_of(rest).1 }
}

fn record_of(bytes: &[u8], place: Place) -> Record {
    let (delivery, failed, lost) =
        (big_endian(&bytes[1..5]), big_endian(&bytes[5..7]) as u8, big_endian(&bytes[7..9]) as u8);
    let (note, error, payload) = match bytes[0] {
        1 => (None, &b""[..], &bytes[24..]),
        2 => {
            let (data, error) = (big_endian(&bytes[30..32]) as usize, big_endian(&bytes[32..34]) as usize);
            let (data, rest) = bytes[34..].split_at(data);
            let (error, payload) = rest.split_at(error);
            (note_of(data), error, payload)
        }
        other => panic!("{other}"),
    };
    let is_fresh = matches!(place, Place::InFlight(_)) && delivery == 1 && failed + lost == 0;
    Record { payload: payload_of(payload), note, place, is_fresh, failed, lost, has_error: !error.is_empty() }
}

fn reason_of(reason: &[u8]) -> Reason {
    match text(reason) {
        "attempts" => Reason::Attempts,
        "lost" => Reason::Lost,
        "rejected" => Reason::Rejected,
        "expired" => Reason::Expired,
        other => panic!("{other}"),
    }
}

struct Real {
    connection: redis::Connection,
    scripts: BTreeMap<&'static str, String>,
    clock: Time,
    calls: u32,
    transfers: u32,
    _server: Server,
}

impl Real {
    fn start() -> Self {
        let server = Server::start();
        let names = [
            "OFFER_HELD",
            "TRANSFER",
            "RECEIVE",
            "CANCEL_JOBS",
            "RESCHEDULE_JOB",
            "JOB_STATES",
            "SWEEP_JOBS",
            "REQUEUE_DEAD",
            "REMOVE_DEAD",
            "REMOVE_MESSAGE",
            "RELEASE_ALL",
            "POLL",
            "FORGET_JOBS",
            "REMOVE",
            "CLEAR",
            "REMOVE_FIRST",
            "CLEAR_READY",
        ];
        let mut scripts: BTreeMap<_, _> = names.into_iter().map(|name| (name, script(name))).collect();
        scripts.insert(LONG_TRANSFER, long_transfer());
        Self { connection: server.redis(), scripts, clock: 0, calls: 0, transfers: 0, _server: server }
    }

    fn call<K: AsRef<str>>(&mut self, name: &str, keys: &[K], arguments: &[Vec<u8>]) -> Vec<Value> {
        match command(&self.scripts, name, keys, arguments).query(&mut self.connection).expect(name) {
            Value::Array(parts) => parts,
            part => vec![part],
        }
    }

    /// Calls it a second time, as if the first reply was lost. Nothing more may change: what the keys have
    /// then is compared with what one call leaves. Returns both replies.
    fn call_again<K: AsRef<str>>(
        &mut self,
        name: &str,
        keys: &[K],
        arguments: &[Vec<u8>],
    ) -> [Vec<Value>; 2] {
        [(); 2].map(|()| self.call(name, keys, arguments))
    }

    /// The same. What the first call has done, the second one finds done.
    fn call_again_in_vain<K: AsRef<str>>(&mut self, name: &str, keys: &[K], arguments: &[Vec<u8>]) -> u8 {
        let [done, again] = self.call_again(name, keys, arguments).map(|reply| int(&reply[0]));
        assert_eq!(again, 0, "{name}");
        done
    }

    fn plain(&mut self, words: &[&[u8]]) -> Value {
        let mut command = Cmd::new();
        words.iter().for_each(|word| {
            command.arg(word);
        });
        command.query(&mut self.connection).expect("a reply")
    }

    fn set_clock(&mut self, clock: Time) {
        self.clock = clock;
        let seconds = (millis(clock) / 1000).to_string();
        self.plain(&[b"MSET", CLOCK[0].as_bytes(), seconds.as_bytes(), CLOCK[1].as_bytes(), b"0"]);
    }

    /// Receivers gave their last sign of life `before` ms ago, and have never been silent.
    fn seen(&mut self, before: i64) {
        let seen = (millis(self.clock) - before).to_string();
        self.plain(&[b"HSET", CONTROL.as_bytes(), b"seen", seen.as_bytes()]);
        self.plain(&[b"HDEL", CONTROL.as_bytes(), b"silences", b"silent"]);
    }

    fn offer(&mut self, offer: &Offer) -> Offered {
        let ms = |time: Time| i64::from(time) * UNIT_MS;
        let (policy, wait) = match offer.policy {
            Policy::Keep => ("keep", 0),
            Policy::Replace => ("replace", 0),
            Policy::Earliest => ("earliest", 0),
            Policy::Debounce(wait) => ("debounce", ms(wait)),
        };
        let (discarded, from, expires) = match offer.expiry {
            None => (false, b'-', 0),
            Some((after, discarded)) => (discarded, b'n', ms(after)),
        };
        let flags = u8::from(offer.kind == Kind::Holds) + 2 * u8::from(discarded);
        let mut data = [&[flags, from][..], &expires.to_be_bytes()[2..]].concat();
        if offer.kind == Kind::Plain {
            data.clear();
        }
        let [delay, wait, window] =
            [ms(offer.delay), wait, offer.throttle.map_or(0, ms)].map(|ms| ms.to_string());
        let mut keys: Vec<String> =
            OF_OFFER_HELD.map(|key| if key == "receipt" { RECEIPT } else { key }.to_owned()).into();
        if offer.throttle.is_some() {
            keys.push(throttle(offer.id));
        }
        let mut arguments: Vec<Vec<u8>> =
            ["now", "60000", policy, &wait, &window, "0", &delay].map(Into::into).into();
        arguments.extend([job_id(offer.id), entry(offer.id, offer.payload), data]);
        let [reply, again] = self.call_again("OFFER_HELD", &keys, &arguments);
        let offered = match &reply[3] {
            Value::BulkString(word) => match text(word) {
                "stored" => Offered::Stored,
                "kept" => Offered::Kept,
                "replaced" => Offered::Replaced,
                "running" => Offered::Running,
                "throttled" => Offered::Throttled,
                other => panic!("{other}"),
            },
            other => panic!("{other:?}"),
        };
        if matches!(offered, Offered::Stored | Offered::Replaced) {
            assert_eq!(again[3..], reply[3..], "the reply to the same call");
        }
        self.plain(&[b"DEL", RECEIPT.as_bytes()]);
        offered
    }

    /// The member of the leases that names this delivery.
    fn member(&mut self, id: MessageId) -> Vec<u8> {
        let Value::BulkString(record) = self.plain(&[b"HGET", MESSAGES.as_bytes(), &message(id)]) else {
            panic!("a message")
        };
        [&message(id)[..], &record[1..5]].concat()
    }

    fn receive(
        &mut self,
        call: u8,
        most: usize,
        settle: Option<(MessageId, Verb, Option<JobId>)>,
    ) -> Received {
        self.seen(0);
        self.calls += 1;
        let most_losses = u16::from(ATTEMPTS).to_be_bytes();
        let policy = [&most_losses[..], &most_losses, &(LEASE_MS as u32).to_be_bytes(), b"k"].concat();
        let (is_ack, is_other) = (
            matches!(settle, Some((_, Verb::Ack, _))),
            matches!(settle, Some((_, verb, _)) if verb != Verb::Ack),
        );
        let held = settle.filter(|_| is_ack).and_then(|(_, _, job)| job);
        let counts = [most, is_ack.into(), 0, is_other.into(), held.is_some().into(), 0];
        let mut arguments = vec![
            format!("receiver {}", self.calls).into(),
            token(call).into(),
            policy,
            b"retries".into(),
            numbers(counts, 0, 0),
        ];
        if let Some((id, verb, _)) = settle {
            let member = self.member(id);
            let (verb, after, reason) = match verb {
                Verb::Ack => ("", 0, ""),
                Verb::Retry(after) => ("f", after, ""),
                Verb::Reject => ("x", 0, "rejected"),
                Verb::Unread => ("u", 0, ""),
            };
            let after = (i64::from(after) * UNIT_MS).to_string();
            if is_ack {
                arguments.push(member);
            } else {
                arguments.extend([verb.into(), member, after.into(), reason.into(), ERROR.into()]);
            }
        }
        if let Some(job) = held {
            arguments.extend([b"1".into(), job_id(job)]);
        }
        let before = self.dead_letters("expired");
        let [parts, again] = self.call_again("RECEIVE", &OF_RECEIVE, &arguments);
        // The numbers are about the next call.
        assert_eq!(again[1..], parts[1..], "the reply to the same call");
        self.plain(&[b"DEL", RECEIPTS.as_bytes()]);
        let bytes = |part: &Value| match part {
            Value::BulkString(bytes) => bytes.clone(),
            other => panic!("{other:?}"),
        };
        assert!(parts[1..3].iter().all(|refused| bytes(refused).is_empty()), "nothing is refused");
        let expired = numbers_in(&parts[0])[10] as u8;
        Received {
            was_held: matches!(&*bytes(&parts[3]), b"1" | b"d"),
            claimed: parts[4..].chunks(2).map(|claim| message_of(&bytes(&claim[0]))).collect(),
            expired,
            discarded: expired - (self.dead_letters("expired") - before),
        }
    }

    fn dead_letters(&mut self, reason: &str) -> u8 {
        self.state().dead.values().filter(|letter| reason_of(reason.as_bytes()) == letter.reason).count()
            as u8
    }

    /// As Java does it.
    fn java_transfer(&mut self) -> u8 {
        let due: Vec<Bytes> = Cmd::new()
            .arg(&["ZRANGEBYSCORE", TIMEOUT_SET, "0", &millis(self.clock).to_string(), "LIMIT", "0", "100"])
            .query(&mut self.connection)
            .expect("entries");
        for entry in &due {
            self.plain(&[b"RPUSH", TARGET.as_bytes(), &entry[10..]]);
            self.java_forget(entry);
        }
        due.len() as u8
    }

    fn java_forget(&mut self, entry: &[u8]) -> u8 {
        self.plain(&[b"LREM", ORDERED_LIST.as_bytes(), b"1", entry]);
        int(&self.plain(&[b"ZREM", TIMEOUT_SET.as_bytes(), entry]))
    }

    /// Does what happens. `before` is the model's state before.
    fn apply(&mut self, before: &Keys, event: &Event) -> Outcome {
        match event {
            Event::Offer(offer) => return Outcome::Offered(self.offer(offer)),
            Event::Cancel(id) => {
                let keys = [&[TIMEOUT_SET, ORDERED_LIST, JOBS, SCRATCH][..], &HOLDERS].concat();
                let arguments = [b"100000".to_vec(), b"-1".into(), b"no entry".into(), job_id(*id)];
                let [answer, again] =
                    self.call_again("CANCEL_JOBS", &keys, &arguments).map(|reply| int(&reply[1]));
                assert_eq!(again, if answer == 2 { 2 } else { 0 }, "what is removed is not found again");
                return Outcome::Cancelled(match answer {
                    0 => Cancelled::NotFound,
                    1 => Cancelled::Removed,
                    _ => Cancelled::Requested,
                });
            }
            Event::Tick => {
                self.set_clock(before.clock + 1);
                // The windows of throttles are times of the server.
                let mut after = before.clone();
                after.tick();
                for id in before.throttles.keys().filter(|id| !after.throttles.contains_key(id)) {
                    self.plain(&[b"DEL", throttle(*id).as_bytes()]);
                }
                return Outcome::Nothing;
            }
            Event::JavaOffer(payload) => {
                self.plain(&[b"RPUSH", TARGET.as_bytes(), payload.to_string().as_bytes()]);
                return Outcome::Nothing;
            }
            Event::Claim(most) => return Outcome::Received(self.receive(before.next_call(), *most, None)),
            Event::Recover => return Outcome::Received(self.receive(before.next_call(), 0, None)),
            Event::Settle(id, verb) => {
                let job = before.messages[id].note.filter(|note| note.holds).map(|note| note.id);
                let settled = self.receive(before.next_call(), 0, Some((*id, *verb, job)));
                return Outcome::Received(settled);
            }
            _ => {}
        }
        let pop = |popped: Value| u8::from(popped != Value::Nil);
        Outcome::Count(match event {
            Event::Transfer => {
                let keys = [TIMEOUT_SET, ORDERED_LIST, TARGET, QUARANTINE, MOVED, SCRATCH, JOBS, REBUILD];
                self.transfers += 1;
                let script = if self.transfers.is_multiple_of(2) { LONG_TRANSFER } else { "TRANSFER" };
                int(&self.call(script, &keys, &["5000", "40000", "me", "0", "0"].map(Into::into))[0])
            }
            Event::JavaTransfer => self.java_transfer(),
            Event::Reschedule(id, delay) => {
                let keys = [&[TIMEOUT_SET, CHANNEL, JOBS][..], &HOLDERS, &[ORDERED_LIST, REBUILD]].concat();
                let delay = (i64::from(*delay) * UNIT_MS).to_string();
                let arguments = [b"now".into(), delay.into(), job_id(*id)];
                let [reply, again] = self.call_again("RESCHEDULE_JOB", &keys, &arguments);
                assert_eq!(again, reply, "the reply to the same call");
                u8::from(reply != [Value::Nil])
            }
            Event::Wake => {
                pop(self.plain(&[b"LMOVE", TARGET.as_bytes(), INBOX.as_bytes(), b"LEFT", b"RIGHT"]))
            }
            Event::Requeue(id) => {
                let keys = [
                    DEAD,
                    DEAD_MESSAGES,
                    MESSAGES,
                    RETRIES,
                    SCRATCH,
                    CHANNEL_OF_RETRIES,
                    JOBS,
                    NOTES,
                    MORE_NOTES,
                ];
                let [reply, again] = self.call_again("REQUEUE_DEAD", &keys, &[message(*id)]);
                assert_eq!(again, reply, "the reply to the same call");
                int(&reply[0])
            }
            Event::Remove(id) if before.dead.contains_key(id) => {
                self.call_again_in_vain("REMOVE_DEAD", &[DEAD, DEAD_MESSAGES, SCRATCH], &[message(*id)])
            }
            Event::Remove(id) => {
                let arguments = [b"remove".to_vec(), b"any".into(), message(*id)];
                self.call_again_in_vain(
                    "REMOVE_MESSAGE",
                    &[MESSAGES, LEASES, RETRIES, SCRATCH, CHANNEL_OF_RETRIES, JOBS, NOTES, MORE_NOTES],
                    &arguments,
                )
            }
            Event::Release { are_gone } => {
                self.seen(if *are_gone { 20_000 } else { 0 });
                let keys =
                    [TARGET, INBOX, MESSAGES, LEASES, RETRIES, CONTROL, SCRATCH, JOBS, NOTES, MORE_NOTES];
                self.call_again_in_vain("RELEASE_ALL", &keys, &[b"0".into()])
            }
            Event::Sweep => {
                // A whole pass at once.
                self.plain(&[b"HDEL", CONTROL.as_bytes(), b"jobs", b"jobs-at", b"notes-at"]);
                let keys = [
                    TIMEOUT_SET,
                    JOBS,
                    CONTROL,
                    DEAD,
                    DEAD_MESSAGES,
                    NOTES,
                    TARGET,
                    INBOX,
                    MESSAGES,
                    MORE_NOTES,
                    SCRATCH,
                ];
                int(&self.call("SWEEP_JOBS", &keys, &[b"1000".into()])[0])
            }
            Event::Poll => {
                let keys = [TIMEOUT_SET, ORDERED_LIST, QUARANTINE, "redelay:popped:{q}", SCRATCH, JOBS];
                let reply = self.call("POLL", &keys, &["1", "1000", "poll"].map(Into::into));
                self.plain(&[b"DEL", b"redelay:popped:{q}"]);
                let [_, _, are_jobs, Value::BulkString(entry), Value::BulkString(score)] = &reply[..] else {
                    return Outcome::Count(0);
                };
                if int(are_jobs) == 1 {
                    let job = [entry.clone(), score.clone()];
                    self.call_again("FORGET_JOBS", &[TIMEOUT_SET, JOBS, NOTES, MORE_NOTES, SCRATCH], &job);
                }
                1
            }
            Event::RemoveEntry(payload) => {
                let arguments = ["first", "-1", "no entry", &payload.to_string()].map(Into::into);
                int(&self.call("REMOVE", &OF_REMOVALS, &arguments)[0])
            }
            Event::Clear => int(&self.call("CLEAR", &OF_REMOVALS, &[])[0]),
            Event::RemovePayload(payload) => {
                int(&self.call("REMOVE_FIRST", &OF_READY, &[payload.to_string().into()])[0])
            }
            Event::ClearReady => int(&self.call("CLEAR_READY", &OF_READY, &[])[0]),
            Event::JavaTake => pop(self.plain(&[b"LPOP", TARGET.as_bytes()])),
            Event::JavaPoll => match before.list.first() {
                Some(first) => self.java_forget(&entry(first.0, first.1)),
                None => 0,
            },
            Event::JavaRemove(payload) => match before.list.iter().find(|entry| entry.1 == *payload) {
                Some(first) => self.java_forget(&entry(first.0, first.1)),
                None => 0,
            },
            Event::JavaClear => {
                self.plain(&[b"DEL", ORDERED_LIST.as_bytes(), TIMEOUT_SET.as_bytes()]);
                before.pending.len() as u8
            }
            other => panic!("{other:?}"),
        })
    }

    /// `JOB_STATES`
    fn states(&mut self) -> Vec<JobState> {
        let ids: Vec<_> = (0..IDS).map(job_id).collect();
        let keys =
            [TIMEOUT_SET, JOBS, NOTES, TARGET, INBOX, MESSAGES, RETRIES, DEAD, DEAD_MESSAGES, MORE_NOTES];
        let parts = self.call("JOB_STATES", &keys, &ids);
        let texts = |part: &Value| match part {
            Value::BulkString(bytes) => bytes.clone(),
            Value::Int(int) => int.to_string().into_bytes(),
            other => panic!("{other:?}"),
        };
        let parts: Vec<_> = parts.iter().map(texts).collect();
        let state = |part: &[Bytes]| match text(&part[0]) {
            "none" => JobState::None,
            "pending" => JobState::Pending(time(&part[2])),
            "ready" => JobState::Ready(time(&part[2])),
            "running" => JobState::Running(payload_of(&part[1]), time(&part[2])),
            "waiting" => JobState::Waiting(payload_of(&part[1]), time(&part[2]), !part[3].is_empty()),
            "dead" => JobState::Dead(reason_of(&part[3]), time(&part[2])),
            other => panic!("{other}"),
        };
        parts.chunks(4).map(state).collect()
    }

    /// What is in the keys.
    fn state(&mut self) -> Keys {
        let mut read = Cmd::new();
        read.arg("EVAL").arg(READ).arg(READ_KEYS.len()).arg(&READ_KEYS);
        let contents: Contents = read.query(&mut self.connection).expect("the keys");
        let (pending, list, target, inbox, jobs, first, others, messages, dead, letters, leases, retries) =
            contents;
        assert_eq!(letters.len(), dead.len(), "each dead letter is in both keys");
        assert_eq!(messages.len(), leases.len() + retries.len(), "each message has a lease or a retry");
        let since = |ends: &Bytes| time_of(text(ends).parse::<i64>().expect("a number") - LEASE_MS);
        let mut places: BTreeMap<_, _> =
            leases.iter().map(|(member, ends)| (message_of(member), Place::InFlight(since(ends)))).collect();
        places.extend(retries.iter().map(|(id, due)| (message_of(id), Place::Waiting(time(due)))));
        let sha1s: BTreeMap<String, Payload> = (0..IDS).map(|n| (self.sha1(n), n)).collect();
        let mut notes: BTreeMap<_, _> = first
            .iter()
            .map(|(sha1, known)| (sha1s[text(sha1)], (note_of(&known[1..]).expect("data"), BTreeSet::new())))
            .collect();
        for other in &others {
            let of = notes.get_mut(&sha1s[text(&other[..40])]).expect("a first note");
            of.1.insert(note_of(&other[40..]).expect("data"));
        }
        let letter = |[id, reason, died, payload, data]: &[Bytes; 5]| {
            let (payload, note) = (payload_of(payload), note_of(data));
            (message_of(id), Letter { payload, note, reason: reason_of(reason), died: time(died) })
        };
        let payloads = |list: &[Bytes]| list.iter().map(|payload| payload_of(payload)).collect();
        Keys {
            clock: self.clock,
            pending: pending.iter().map(|(entry, due)| (entry_of(entry), time(due))).collect(),
            list: list.iter().map(|entry| entry_of(entry)).collect(),
            target: payloads(&target),
            inbox: payloads(&inbox),
            jobs: jobs.iter().map(|(id, field)| (id_of_job(id), field_of(field))).collect(),
            notes,
            throttles: BTreeMap::new(),
            messages: messages
                .iter()
                .map(|(id, record)| (message_of(id), record_of(record, places[&message_of(id)])))
                .collect(),
            dead: letters.iter().map(letter).collect(),
        }
    }

    fn sha1(&mut self, payload: Payload) -> String {
        Cmd::new()
            .arg(&["EVAL", "return redis.sha1hex(ARGV[1])", "0", &payload.to_string()])
            .query(&mut self.connection)
            .expect("a digest")
    }
}

fn int(value: &Value) -> u8 {
    match value {
        Value::Int(int) => u8::try_from(*int).expect("a small number"),
        other => panic!("{other:?}"),
    }
}

/// Set `REDELAY_CASES` for more.
#[test]
fn the_model_of_jobs_does_what_the_scripts_do() {
    let cases = std::env::var("REDELAY_CASES").map_or(20, |cases| cases.parse().expect("a number"));
    let mut real = Real::start();
    for seed in (0..cases).filter(|seed| part().has(*seed)) {
        let random = &mut fastrand::Rng::with_seed(seed);
        let bounds = Bounds {
            // Equal payloads, different ones, and both.
            ids: match seed % 3 {
                0 => vec![vec![0], vec![0], vec![0]],
                1 => vec![vec![0, 1], vec![2], vec![2]],
                _ => vec![vec![0, 1], vec![1, 2], vec![2, 0]],
            },
            // Most jobs hold their ids.
            kinds: vec![Kind::Holds, Kind::Holds, Kind::Free, Kind::Plain],
            throttles: vec![None, None, None, Some(2)],
            policies: vec![Policy::Keep, Policy::Replace, Policy::Earliest, Policy::Debounce(1)],
            delays: vec![0, 1, 2],
            expiries: vec![None, None, Some((2, false)), Some((2, true))],
            ticks: 100,
            claims: vec![1, 2, 3],
            verbs: vec![Verb::Ack, Verb::Retry(0), Verb::Retry(1), Verb::Reject, Verb::Unread],
            ..Bounds::new(PROTOCOL)
        };
        let mut state = State::new(&bounds);
        real.plain(&[b"FLUSHALL"]);
        real.set_clock(0);
        let mut path = Vec::new();
        for _ in 0..300 {
            // Java is not always there.
            let java = u8::from(seed % 2 == 0);
            let bounds = Bounds { strangers: java * 3, ..bounds.clone() };
            let [reschedules, operations, removals] = [0; 3].map(|_| u8::from(random.u8(..4) == 0));
            state.left = Left { offers: 1, reschedules, java, operations, removals };
            let is_offer = |event: &Event| matches!(event, Event::Offer(_));
            let wants_offer = random.u8(..4) == 0;
            let events = bounds.events(&state).into_iter().filter(|event| is_offer(event) == wants_offer);
            let Some(mut event) = random.choice(events.collect::<Vec<_>>()) else { continue };
            if event == Event::Transfer && java == 1 && random.bool() {
                event = Event::JavaTransfer;
            }
            path.push(event.clone());
            let before = state.server.clone();
            let expected = state.apply(&PROTOCOL, &event);
            assert_eq!(real.apply(&before, &event), expected, "seed {seed}, the reply: {path:#?}");
            // The keys of throttles are not read: the replies show them.
            let throttles = state.server.throttles.clone();
            assert_eq!(Keys { throttles, ..real.state() }, state.server, "seed {seed}, the keys: {path:#?}");
            let states: Vec<_> = (0..IDS).map(|id| state.server.state_of(id)).collect();
            assert_eq!(real.states(), states, "seed {seed}, the states: {path:#?}");
        }
    }
}
