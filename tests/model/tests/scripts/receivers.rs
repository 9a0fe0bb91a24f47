//! The same for the keys and scripts of receivers.

use std::collections::BTreeMap;

use redelay_fixture::Server;
use redelay_fixture::redis::{self, Cmd, Value};
use redelay_model::receiving::protocol::{
    Call, DeadMode, Delivery, Letter, Member, MessageId, Payload, Policy, Protocol, Reason, Receive,
    Received, ReceiverId, Record, Reply, Settled, Time, Token, Verb,
};
use redelay_model::receiving::server::{self, Control, Receipt, Silence};
use redelay_support::{
    CONTROL, DEAD, DEAD_MESSAGES, INBOX, JOBS, LEASES, MESSAGES, MORE_NOTES, NOTES, RECEIPTS, RETRIES,
    SCRATCH, TARGET, part,
};

use crate::usual::{USUAL, WHOLE, with_and_without_its_beginning};
use crate::{Bytes, CHANNEL_OF_RETRIES, CLOCK, EPOCH, OF_RECEIVE, command, script, text};

/// The model's unit of time, a quarter of the usual lease of 30 s. With the shortest lease of two units, half
/// a lease is one of them.
const UNIT_MS: i64 = 7500;
/// The longest silence that the scripts tell apart.
const LONGEST_MS: i64 = 43_200_000;

/// Everything that receivers have, in one reply; and how many other keys there are.
const READ: &str = "
local letters = {}
for _, id in ipairs(redis.call('HKEYS', KEYS[8])) do
    local letter = cmsgpack.unpack(redis.call('HGET', KEYS[8], id))
    for i, part in ipairs(letter) do
        letter[i] = type(part) == 'number' and string.format('%.0f', part) or part
    end
    letters[#letters + 1] = id
    letters[#letters + 1] = letter
end
return {
    redis.call('LRANGE', KEYS[1], 0, -1),
    redis.call('LRANGE', KEYS[2], 0, -1),
    redis.call('HGETALL', KEYS[3]),
    redis.call('ZRANGE', KEYS[4], 0, -1, 'WITHSCORES'),
    redis.call('ZRANGE', KEYS[5], 0, -1, 'WITHSCORES'),
    redis.call('HGETALL', KEYS[6]),
    redis.call('ZRANGE', KEYS[7], 0, -1, 'WITHSCORES'),
    letters,
    redis.call('HGETALL', KEYS[9]),
    redis.call('DBSIZE') - redis.call('EXISTS', unpack(KEYS)),
}";

const OF_JOBS: [&str; 3] = [JOBS, NOTES, MORE_NOTES];

const KEYS: [&str; 9] = [TARGET, INBOX, MESSAGES, LEASES, RETRIES, RECEIPTS, DEAD, DEAD_MESSAGES, CONTROL];

fn millis(time: Time) -> i64 {
    EPOCH * 1000 + i64::from(time) * UNIT_MS
}

fn time_of(millis: i64) -> Time {
    let units = (millis - EPOCH * 1000) / UNIT_MS;
    assert_eq!(millis, EPOCH * 1000 + units * UNIT_MS, "a time of the model");
    Time::try_from(units).expect("a time of the model")
}

fn time(text_of_millis: &[u8]) -> Time {
    time_of(text(text_of_millis).parse().expect("a number"))
}

fn big_endian(bytes: &[u8]) -> i64 {
    bytes.iter().fold(0, |number, byte| number << 8 | i64::from(*byte))
}

/// Begins with the time, and a number that orders the calls of one millisecond.
fn token_bytes(token: Token) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&(EPOCH * 1000 + i64::from(token / 4)).to_be_bytes()[2..]);
    bytes[11] = token % 4;
    // Has no order.
    bytes[13] = 255 - token;
    bytes
}

fn token_of(bytes: &[u8]) -> Token {
    255 - bytes[13]
}

fn id_bytes(id: MessageId) -> [u8; 16] {
    let mut bytes = token_bytes(id.token);
    bytes[15] = id.number;
    bytes
}

fn id_of(bytes: &[u8]) -> MessageId {
    let id = MessageId { token: token_of(bytes), number: bytes[15] };
    assert_eq!(bytes, id_bytes(id));
    id
}

fn member_bytes(member: Member) -> Vec<u8> {
    [&id_bytes(member.id)[..], &u32::from(member.delivery).to_be_bytes()].concat()
}

fn member_of(bytes: &[u8]) -> Member {
    Member { id: id_of(&bytes[..16]), delivery: big_endian(&bytes[16..]) as u8 }
}

fn policy_bytes(policy: Policy) -> Vec<u8> {
    let dead = match policy.dead {
        DeadMode::Keep => b'k',
        DeadMode::Send => b's',
        DeadMode::Discard => b'd',
    };
    let lease = (i64::from(policy.lease) * UNIT_MS) as u32;
    let limits = [u16::from(policy.attempts).to_be_bytes(), u16::from(policy.losses).to_be_bytes()].concat();
    [&limits[..], &lease.to_be_bytes(), &[dead]].concat()
}

fn record_of(bytes: &[u8]) -> Record {
    assert_eq!(bytes[0], 1, "the version");
    Record {
        delivery: big_endian(&bytes[1..5]) as u8,
        failed: big_endian(&bytes[5..7]) as u8,
        lost: big_endian(&bytes[7..9]) as u8,
        policy: Policy {
            attempts: big_endian(&bytes[9..11]) as u8,
            losses: big_endian(&bytes[11..13]) as u8,
            lease: (big_endian(&bytes[13..17]) / UNIT_MS) as Time,
            dead: match bytes[17] {
                b'k' => DeadMode::Keep,
                b's' => DeadMode::Send,
                b'd' => DeadMode::Discard,
                other => panic!("{other}"),
            },
        },
        first: time_of(big_endian(&bytes[18..24])),
        payload: number(&bytes[24..]),
    }
}

fn number(bytes: &[u8]) -> Payload {
    text(bytes).parse().expect("a number")
}

fn result_of(result: u8) -> Settled {
    match result {
        b'1' => Settled::Done,
        b'd' => Settled::Dead,
        b'0' => Settled::Gone,
        other => panic!("{other}"),
    }
}

fn receipt_of(bytes: &[u8]) -> Receipt {
    // Behind the clock.
    let results = 26 + big_endian(&bytes[22..26]) as usize;
    let token = token_of(bytes);
    assert_eq!(bytes[..16], token_bytes(token));
    // Seven counts, or none. The model knows the first two.
    let (has_counts, rest) = bytes[results..].split_first().expect("whether it has counts");
    let (counts, claims) = rest.split_at(if *has_counts == 0 { 0 } else { 28 });
    let count = |at: usize| counts.get(4 * at..4 * at + 4).map_or(0, |count| big_endian(count) as u8);
    let counts = [count(0), count(1)];
    let (new, redelivered) = claims.split_at(4);
    let (from, count) = (big_endian(&new[..2]) as usize, big_endian(&new[2..]) as usize);
    let new = (from..from + count)
        .map(|number| Member { id: MessageId { token, number: number as u8 }, delivery: 1 });
    let mut claims: Vec<Member> = redelivered.chunks(20).map(member_of).collect();
    claims.splice(from..from, new);
    Receipt { token, results: bytes[26..results].iter().copied().map(result_of).collect(), counts, claims }
}

fn letter_of(score: &[u8], parts: &[Bytes]) -> Letter {
    let [reason, error, failed, lost, first, died, delivery, payload] = parts else { panic!("{parts:?}") };
    let score: i64 = text(score).parse().expect("a number");
    let to_send = score < 0;
    let died = time(died);
    assert_eq!(score, millis(died) - if to_send { 1_000_000_000_000_000 } else { 0 });
    let reason = match text(reason) {
        "attempts" => Reason::Attempts,
        "lost" => Reason::Lost,
        "rejected" => Reason::Rejected,
        other => panic!("{other}"),
    };
    let because: &[u8] = if reason == Reason::Lost { b"" } else { b"because" };
    assert_eq!(error, because);
    let (delivery, failed, lost) = (number(delivery), number(failed), number(lost));
    Letter { to_send, died, reason, delivery, failed, lost, first: time(first), payload: number(payload) }
}

fn silences_of(text: &str) -> Vec<Silence> {
    let silence = |one: &str| {
        let (ended, length) = one.split_once(':').expect("three numbers");
        let (length, since) = length.split_once(':').expect("three numbers");
        let length: i64 = length.parse().expect("a number");
        let is_longest = length == LONGEST_MS;
        let length = if is_longest { Time::MAX } else { time_of(EPOCH * 1000 + length) };
        let since = (since != "0").then(|| time(since.as_bytes()));
        Silence { ended: time(ended.as_bytes()), length, since }
    };
    text.split_whitespace().map(silence).collect()
}

struct Real {
    connection: redis::Connection,
    scripts: BTreeMap<&'static str, String>,
    _server: Server,
}

type Pairs = Vec<(Bytes, Bytes)>;
type Contents = (
    Vec<Bytes>,
    Vec<Bytes>,
    Pairs,
    Pairs,
    Pairs,
    Pairs,
    Pairs,
    Vec<(Bytes, Vec<Bytes>)>,
    Vec<(String, Bytes)>,
    u8,
);

impl Real {
    fn start() -> Self {
        let server = Server::start();
        let mut scripts: BTreeMap<_, _> = ["RECEIVE", "RELEASE_ALL", "REQUEUE_DEAD", "REMOVE_MESSAGE"]
            .into_iter()
            .map(|name| (name, script(name)))
            .collect();
        // The model knows this number.
        let receive = scripts.get_mut("RECEIVE").expect("a script");
        assert_eq!(receive.matches("math.random()").count(), 1);
        *receive = receive.replace("math.random()", "0.5");
        // In the model, one record fits into the reply to a call that is repeated.
        assert_eq!(receive.matches("AGAIN = 131072").count(), 1);
        *receive = receive.replace("AGAIN = 131072", "AGAIN = 1");
        let (usual, whole) = with_and_without_its_beginning(receive);
        scripts.extend([("RECEIVE", usual), (WHOLE, whole)]);
        Self { connection: server.redis(), scripts, _server: server }
    }

    fn set_clock(&mut self, clock: Time) {
        let (seconds, micros) = (millis(clock) / 1000, millis(clock) % 1000 * 1000);
        Cmd::new()
            .arg(&["MSET", CLOCK[0], &seconds.to_string(), CLOCK[1], &micros.to_string()])
            .exec(&mut self.connection)
            .expect("MSET");
    }

    /// `whole`: without the beginning of `receive.lua` that makes the usual calls.
    fn call(&mut self, call: &Call, whole: bool) -> Reply {
        let (name, keys, arguments) = arguments(call);
        let name = if whole && name == "RECEIVE" { WHOLE } else { name };
        match command(&self.scripts, name, &keys, &arguments).query::<Value>(&mut self.connection) {
            Ok(reply) => reply_of(call, reply),
            Err(error) => {
                assert!(error.to_string().contains("a later call"), "{call:?}: {error}");
                Reply::TooLate
            }
        }
    }

    /// How many calls the beginning of `receive.lua` has made.
    fn usual_calls(&mut self) -> u32 {
        Cmd::new().arg("GET").arg(USUAL).query::<Option<u32>>(&mut self.connection).expect("GET").unwrap_or(0)
    }

    /// Somebody removes a lease or a retry.
    fn tamper(&mut self, random: &mut fastrand::Rng, model: &mut server::Server) {
        if let Some(member) = random.choice(model.leases.keys().copied().collect::<Vec<_>>()) {
            model.leases.remove(&member);
            Cmd::new()
                .arg("ZREM")
                .arg(LEASES)
                .arg(member_bytes(member))
                .exec(&mut self.connection)
                .expect("ZREM");
        } else if let Some(id) = random.choice(model.retries.keys().copied().collect::<Vec<_>>()) {
            model.retries.remove(&id);
            Cmd::new().arg("ZREM").arg(RETRIES).arg(&id_bytes(id)).exec(&mut self.connection).expect("ZREM");
        }
    }

    fn state(&mut self) -> server::Server {
        let mut read = Cmd::new();
        read.arg("EVAL").arg(READ).arg(KEYS.len() + CLOCK.len() + 1).arg(&KEYS).arg(&CLOCK).arg(USUAL);
        let contents: Contents = read.query(&mut self.connection).expect("the keys");
        let (target, inbox, messages, leases, retries, receipts, dead, letters, control, others) = contents;
        assert_eq!(others, 0, "no other keys, and the scratch key is absent after each script");
        let letters: BTreeMap<_, _> = letters.into_iter().collect();
        assert_eq!(letters.len(), dead.len(), "each dead letter is in both keys");
        let mut of_all = Control::default();
        for (field, value) in control {
            match &*field {
                "seen" => of_all.seen = Some(time(&value)),
                "silences" => of_all.silences = silences_of(text(&value)),
                "back" => of_all.back = Some(time(&value)),
                "silent" => of_all.silent = Some(time(&value)),
                // It saves work, and changes no outcome.
                "spared" => {}
                other => panic!("{other}"),
            }
        }
        server::Server {
            clock: 0,
            target: target.iter().map(|payload| number(payload)).collect(),
            inbox: inbox.iter().map(|payload| number(payload)).collect(),
            messages: messages.iter().map(|(id, record)| (id_of(id), record_of(record))).collect(),
            leases: leases.iter().map(|(member, ends)| (member_of(member), time(ends))).collect(),
            retries: retries.iter().map(|(id, due)| (id_of(id), time(due))).collect(),
            receipts: receipts.iter().map(|(id, receipt)| (number(id), receipt_of(receipt))).collect(),
            dead: dead.iter().map(|(id, score)| (id_of(id), letter_of(score, &letters[id]))).collect(),
            control: of_all,
        }
    }
}

/// The name of the script or command, its keys and arguments.
fn arguments(call: &Call) -> (&'static str, Vec<&'static str>, Vec<Vec<u8>>) {
    match call {
        Call::Receive(call) => ("RECEIVE", OF_RECEIVE.to_vec(), arguments_of(call)),
        Call::Move => ("LMOVE", vec![TARGET, INBOX], vec![b"LEFT".into(), b"RIGHT".into()]),
        Call::ReleaseAll(silent) => {
            let silent = (i64::from(*silent) * UNIT_MS).to_string().into_bytes();
            let keys = [TARGET, INBOX, MESSAGES, LEASES, RETRIES, CONTROL, SCRATCH];
            ("RELEASE_ALL", [&keys[..], &OF_JOBS].concat(), vec![silent])
        }
        Call::Requeue(id) => {
            let keys = [DEAD, DEAD_MESSAGES, MESSAGES, RETRIES, SCRATCH, CHANNEL_OF_RETRIES];
            ("REQUEUE_DEAD", [&keys[..], &OF_JOBS].concat(), vec![id_bytes(*id).into()])
        }
        Call::Remove(id) | Call::RetryNow(id) => {
            let verb = if matches!(call, Call::Remove(_)) { "remove" } else { "retry" };
            let keys = [MESSAGES, LEASES, RETRIES, SCRATCH, CHANNEL_OF_RETRIES];
            (
                "REMOVE_MESSAGE",
                [&keys[..], &OF_JOBS].concat(),
                vec![verb.into(), b"any".to_vec(), id_bytes(*id).into()],
            )
        }
        Call::Forget(receiver) => ("HDEL", vec![RECEIPTS], vec![receiver.to_string().into()]),
        Call::Push(payload) => ("RPUSH", vec![TARGET], vec![payload.to_string().into()]),
        Call::Take => ("LPOP", vec![TARGET], Vec::new()),
    }
}

/// Whether the receiver asks how many dead letters are to be sent. The model tells it in each reply.
fn says_send(call: &Receive) -> bool {
    call.token.is_multiple_of(2)
}

/// The numbers of a call: counts, what the clock showed when the receiver was last answered, and how long
/// after that it meant to call, ms.
pub(crate) fn numbers(counts: [usize; 6], last: i64, pause: i64) -> Vec<u8> {
    let random = 1;
    let counts = counts.into_iter().chain([random]).flat_map(|count| (count as u32).to_be_bytes());
    let (most_dead, dead_age) = (0, 0);
    counts.chain([most_dead, dead_age, last, pause].into_iter().flat_map(i64::to_be_bytes)).collect()
}

/// The numbers of a reply, in the order in which `receive.lua` names them.
pub(crate) fn numbers_in(part: &Value) -> [i64; 13] {
    let Value::BulkString(bytes) = part else { panic!("{part:?}") };
    let number = |number: &[u8]| i64::from_be_bytes(number.try_into().expect("eight bytes"));
    bytes.chunks(8).map(number).collect::<Vec<_>>().try_into().expect("thirteen numbers")
}

fn arguments_of(call: &Receive) -> Vec<Vec<u8>> {
    let words = [
        (call.sweep, "sweep "),
        (call.retries_first, "retries "),
        (call.empty_inbox, "inbox "),
        (says_send(call), "send"),
    ];
    let words: String = words.iter().filter(|(is_said, _)| *is_said).map(|(_, word)| *word).collect();
    let mut all: Vec<Vec<u8>> = vec![
        call.receiver.to_string().into(),
        token_bytes(call.token).into(),
        policy_bytes(call.policy),
        words.into(),
        // No message is a job.
        numbers(
            [call.most.into(), call.acknowledge.len(), call.extend.len(), call.settle.len(), 0, 0],
            call.last.map_or(0, millis),
            call.last.map_or(0, |last| millis(call.expected) - millis(last)),
        ),
    ];
    all.extend(call.acknowledge.iter().chain(&call.extend).map(|delivery| member_bytes(delivery.member)));
    for (verb, delivery) in &call.settle {
        let (verb, after, reason) = match *verb {
            Verb::Retry(after) => ("f", after, ""),
            Verb::Snooze(after) => ("s", after, ""),
            Verb::Reject => ("x", 0, "rejected"),
            Verb::Extend(by) => ("e", by, ""),
            Verb::Unread => ("u", 0, ""),
        };
        let after = (i64::from(after) * UNIT_MS).to_string();
        all.extend([
            verb.into(),
            member_bytes(delivery.member),
            after.into(),
            reason.into(),
            b"because".into(),
        ]);
    }
    all
}

/// The reply as the model has it.
fn reply_of(call: &Call, reply: Value) -> Reply {
    match (call, reply) {
        (Call::Receive(call), Value::Array(parts)) => Reply::Received(received(call, parts)),
        (Call::Move | Call::Take, Value::BulkString(payload)) => Reply::Payload(Some(number(&payload))),
        (Call::Move | Call::Take, Value::Nil) => Reply::Payload(None),
        (_, Value::Int(count)) => Reply::Count(count as u8),
        (Call::ReleaseAll(_) | Call::Remove(_) | Call::RetryNow(_), Value::Array(parts)) => match parts[..] {
            [Value::Int(count), _] => Reply::Count(count as u8),
            _ => panic!("{parts:?}"),
        },
        (call, other) => panic!("{call:?}: {other:?}"),
    }
}

fn received(call: &Receive, parts: Vec<Value>) -> Received {
    let mut parts = parts.into_iter();
    let numbers = numbers_in(&parts.next().expect("numbers"));
    let mut bytes = || match parts.next() {
        Some(Value::BulkString(bytes)) => Some(bytes),
        None => None,
        other => panic!("{call:?}: {other:?}"),
    };
    let [
        clock,
        lease_ends,
        retry,
        left,
        recovered,
        died,
        trimmed,
        to_send,
        gone,
        newer,
        expired,
        apart,
        hold,
    ] = numbers;
    assert_eq!((trimmed, hold), (0, -1), "the model has no limits");
    assert_eq!((gone, newer, apart), (0, 0, 0), "nobody deletes what messages contain");
    assert_eq!(expired, 0, "the model has no jobs");
    assert_eq!(bytes().as_deref(), Some(&b""[..]), "claiming is not refused");
    assert_eq!(bytes().as_deref(), Some(&b""[..]), "dead letters are not refused");
    let results = bytes().expect("results").into_iter().map(result_of).collect();
    let (mut claims, mut unsent) = (Vec::new(), Vec::new());
    while let Some(id) = bytes() {
        match bytes().expect("a record, or nothing") {
            record if record.is_empty() => unsent.push(member_of(&id)),
            record => claims.push((id_of(&id), record_of(&record))),
        }
    }
    let at = |millis: i64| (millis >= 0).then(|| time_of(millis));
    // Who learns that a lease is spared looks again within this unit of time, which the model does not
    // divide.
    let begun = millis(0) + (lease_ends - millis(0)).div_euclid(UNIT_MS) * UNIT_MS;
    let lease_ends = if lease_ends > begun && lease_ends >= 0 { begun + UNIT_MS } else { lease_ends };
    Received {
        clock: time_of(clock),
        lease_ends: at(lease_ends),
        retry: at(retry),
        left: left as u8,
        recovered: recovered as u8,
        died: died as u8,
        to_send: to_send as u8,
        results,
        claims,
        unsent,
    }
}

/// Something that may arrive at this server: a new call of a receiver, another try of one, or somebody else's
/// call.
fn random_call(random: &mut fastrand::Rng, server: &server::Server, past: &[Call], pushed: &mut u8) -> Call {
    let id = |random: &mut fastrand::Rng| {
        let known: Vec<MessageId> = server.messages.keys().chain(server.dead.keys()).copied().collect();
        random.choice(known).unwrap_or(MessageId { token: 1, number: 0 })
    };
    match random.u8(..16) {
        0..7 => Call::Receive(random_receive(random, server, past)),
        7 | 8 if !past.is_empty() => {
            let recent = past.len().saturating_sub(4)..past.len();
            past[random.usize(recent)].clone()
        }
        7..12 => {
            *pushed += 1;
            Call::Push(*pushed)
        }
        12 => Call::Move,
        13 => match random.u8(..4) {
            0 => Call::Take,
            1 => Call::Forget(random.u8(..3)),
            _ => Call::ReleaseAll(random.i8(0..4) * 2),
        },
        14 => Call::Requeue(id(random)),
        _ if random.bool() => Call::Remove(id(random)),
        _ => Call::RetryNow(id(random)),
    }
}

fn random_receive(random: &mut fastrand::Rng, server: &server::Server, past: &[Call]) -> Receive {
    let receiver: ReceiverId = random.u8(..3);
    let last = (random.u8(..4) > 0).then(|| server.clock - random.i8(0..8));
    let expected = last.map_or(server.clock, |last| last + random.i8(0..8));
    let mut call = Receive {
        receiver,
        token: past.len() as Token + 1,
        most: random.u8(..4),
        policy: Policy {
            attempts: random.u8(1..4),
            losses: random.u8(1..5),
            lease: 2 * random.i8(1..3),
            dead: random.choice([DeadMode::Keep, DeadMode::Send, DeadMode::Discard]).expect("one of them"),
        },
        last,
        expected,
        sweep: random.bool(),
        retries_first: random.bool(),
        empty_inbox: random.u8(..4) == 0,
        acknowledge: Vec::new(),
        extend: Vec::new(),
        settle: Vec::new(),
    };
    let is_usual = random.bool();
    if is_usual {
        (call.sweep, call.empty_inbox) = (false, false);
    }
    for (id, record) in &server.messages {
        // Sometimes an earlier delivery, which no longer holds.
        let delivery = record.delivery - u8::from(random.u8(..6) == 0);
        let delivery = Delivery { member: Member { id: *id, delivery }, payload: 0 };
        match random.u8(..9) {
            0 | 1 if !is_usual || call.acknowledge.is_empty() => call.acknowledge.push(delivery),
            _ if is_usual => {}
            2 => call.extend.push(delivery),
            3..6 => {
                let time = random.i8(0..4);
                let verbs = [
                    Verb::Retry(time),
                    Verb::Retry(0),
                    Verb::Snooze(time),
                    Verb::Reject,
                    Verb::Extend(time),
                    Verb::Unread,
                ];
                call.settle.push((random.choice(verbs).expect("one of them"), delivery));
            }
            _ => {}
        }
    }
    call
}

/// Set `REDELAY_CASES` for more.
#[test]
fn the_model_of_receivers_does_what_the_scripts_do() {
    let cases = std::env::var("REDELAY_CASES").map_or(60, |cases| cases.parse().expect("a number"));
    let (mut real, mut usual) = (Real::start(), 0);
    for seed in (0..cases).filter(|seed| part().has(*seed)) {
        let random = &mut fastrand::Rng::with_seed(seed);
        let (mut model, mut past, mut path, mut pushed) =
            (server::Server::default(), Vec::new(), Vec::new(), 0);
        Cmd::new().arg("FLUSHALL").exec(&mut real.connection).expect("FLUSHALL");
        for _ in 0..100 {
            if random.u8(..4) == 0 {
                model.clock = (model.clock + random.i8(-2..5)).clamp(0, 100);
            }
            real.set_clock(model.clock);
            let call = random_call(random, &model, &past, &mut pushed);
            if matches!(&call, Call::Receive(_)) && !past.contains(&call) {
                past.push(call.clone());
            }
            if random.u8(..16) == 0 {
                real.tamper(random, &mut model);
            }
            path.push((model.clock, call.clone()));
            let mut expected = model.execute(Protocol::NOW, &call);
            if let (Call::Receive(call), Reply::Received(received)) = (&call, &mut expected) {
                received.to_send *= u8::from(says_send(call));
            }
            assert_eq!(real.call(&call, random.u8(..4) == 0), expected, "seed {seed}, the reply: {path:#?}");
            let state = server::Server { clock: model.clock, ..real.state() };
            assert_eq!(state, model, "seed {seed}, the keys: {path:#?}");
        }
        usual += real.usual_calls();
    }
    assert!(usual > 0, "some calls were usual ones");
}
