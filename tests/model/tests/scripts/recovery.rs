//! When messages of dead processes are delivered again, and that those of the living are not: the real
//! script, with a clock that jumps from call to call, so that leases may last a day.

use redelay_fixture::Server;
use redelay_fixture::redis::{self, Cmd, Value};
use redelay_support::{TARGET, part};

use crate::receivers::{numbers, numbers_in};
use crate::{CLOCK, EPOCH, OF_RECEIVE, script};

/// Milliseconds since the beginning.
type Ms = i64;

const DAY: Ms = 86_400_000;

/// A message of a dead process is delivered again within this time after its death: see `docs/guarantees.md`.
fn bound(lease: Ms) -> Ms {
    lease + (lease / 2).max(1500) + 6000
}

/// The longest pause between two attempts to connect after an outage, and the time that it takes. After a
/// long one, an attempt may be under way that hangs.
fn reconnects_within(outage: Ms) -> Ms {
    if outage > 7500 { 5900 } else { (outage * 5 / 4 + 250).min(1500) }
}

/// A receiver, as `src/receiving` is: when it calls, and what it says of its pause.
#[derive(Clone, Debug)]
struct Receiver {
    id: String,
    lease: Ms,
    round_trip: Ms,
    /// It calls at least this often.
    pace: Ms,
    /// It is a new one for each call.
    is_new: bool,
    next_call: Ms,
    /// What the clock showed when it was last answered, and when that call was sent.
    last: Option<(Ms, Ms)>,
    calls: i64,
}

/// What a call is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed<'a> {
    Look,
    Claim,
    Extend(&'a [u8]),
}

/// What the reply says.
#[derive(Debug)]
struct Answer {
    clock: Ms,
    lease_ends: Option<Ms>,
    recovered: i64,
    claimed: Option<Vec<u8>>,
    extended: bool,
}

struct Real {
    connection: redis::Connection,
    sha1: String,
    _server: Server,
}

impl Real {
    fn start() -> Self {
        let server = Server::start();
        let mut connection = server.redis();
        let load = Cmd::new().arg(&["SCRIPT", "LOAD"]).arg(script("RECEIVE")).query(&mut connection);
        Self { connection, sha1: load.expect("a digest"), _server: server }
    }

    /// A payload that is ready, and nothing else.
    fn begin(&mut self) {
        Cmd::new().arg("FLUSHALL").exec(&mut self.connection).expect("FLUSHALL");
        Cmd::new().arg(&["RPUSH", TARGET, "1"]).exec(&mut self.connection).expect("RPUSH");
    }

    /// The call that this receiver began at `begun` is executed at `now`.
    fn call(&mut self, receiver: &mut Receiver, begun: Ms, now: Ms, deed: Deed) -> Answer {
        let clock = EPOCH * 1000 + now;
        let (seconds, micros) = (clock / 1000, clock % 1000 * 1000);
        Cmd::new()
            .arg(&["MSET", CLOCK[0], &seconds.to_string(), CLOCK[1], &micros.to_string()])
            .exec(&mut self.connection)
            .expect("MSET");
        receiver.calls += 1;
        if receiver.is_new {
            receiver.last = None;
            receiver.id = format!("{now}");
        }
        let mut token = [0; 16];
        token[..6].copy_from_slice(&clock.to_be_bytes()[2..]);
        token[6..14].copy_from_slice(&receiver.calls.to_be_bytes());
        let policy = [&[0, 9, 0, 9][..], &(receiver.lease as u32).to_be_bytes(), b"k"].concat();
        let (last, pause) = receiver.last.map_or((0, 0), |(clock, sent)| (clock, begun - sent));
        let (most, extends) =
            (usize::from(deed == Deed::Claim), usize::from(matches!(deed, Deed::Extend(_))));
        let mut call = Cmd::new();
        call.arg("EVALSHA").arg(&self.sha1).arg(OF_RECEIVE.len()).arg(&OF_RECEIVE);
        call.arg(&receiver.id).arg(&token).arg(policy).arg("");
        call.arg(numbers([most, 0, extends, 0, 0, 0], last, pause));
        if let Deed::Extend(member) = deed {
            call.arg(member);
        }
        let parts: Vec<Value> = call.query(&mut self.connection).expect("a reply");
        let numbers = numbers_in(&parts[0]);
        let bytes = |n: usize| match parts.get(n) {
            Some(Value::BulkString(bytes)) => Some(bytes.clone()),
            None => None,
            other => panic!("{other:?}"),
        };
        let since_begun = |at: i64| (at >= 0).then(|| at - EPOCH * 1000);
        Answer {
            clock: numbers[0],
            lease_ends: since_begun(numbers[1]),
            recovered: numbers[4],
            claimed: bytes(4).map(|id| [&id[..], &1_u32.to_be_bytes()].concat()),
            extended: bytes(3).is_some_and(|results| results == b"1"),
        }
    }
}

impl Receiver {
    fn new(number: usize, lease: Ms, round_trip: Ms) -> Self {
        let pace = 6000.min(lease / 5);
        let id = number.to_string();
        Self { id, lease, round_trip, pace, is_new: false, next_call: 0, last: None, calls: 0 }
    }

    /// When the call that it begins at `begun` is executed.
    fn arrives(&self, begun: Ms) -> Ms {
        begun + self.round_trip / 2
    }

    /// The reply to the call that it began at `begun` and that was sent at `sent`.
    fn answered(&mut self, begun: Ms, sent: Ms, answer: &Answer, random: &mut fastrand::Rng) {
        let now = sent + self.round_trip;
        self.last = Some((answer.clock, sent.max(now - 1000)));
        self.next_call = begun + self.pace;
        if let (Some(ends), false) = (answer.lease_ends, self.is_new) {
            let wait = (ends - (answer.clock - EPOCH * 1000)).max(0);
            self.next_call = self.next_call.min(now + wait + 1 + random.i64(0..20));
        }
        self.next_call = self.next_call.max(now);
    }
}

fn lease(random: &mut fastrand::Rng, longest: Ms) -> Ms {
    let exponent = random.f64() * (longest as f64 / 100.0).ln();
    (100.0 * exponent.exp()) as Ms
}

/// Round trips take up to a third of the shorter lease, and a second at most.
fn round_trip(random: &mut fastrand::Rng, leases: impl Iterator<Item = Ms>) -> Ms {
    let most = leases.min().unwrap_or(0) / 3;
    random.i64(0..=most.min(1000))
}

/// Of how many seeds. Set `REDELAY_CASES` for more.
fn seeds(usual: u64) -> impl Iterator<Item = u64> {
    let cases = std::env::var("REDELAY_CASES").map_or(usual, |cases| cases.parse().expect("a number"));
    (0..cases).filter(|seed| part().has(*seed))
}

/// Whatever the leases, the number of survivors, and how often they call.
#[test]
fn what_dead_receivers_had_is_taken_back_in_time() {
    let mut real = Real::start();
    let mut latest = (0.0, String::new());
    for seed in seeds(60) {
        let random = &mut fastrand::Rng::with_seed(seed);
        let mut survivors: Vec<Receiver> = (0..if seed == 0 { 1 } else { random.usize(1..=4) })
            .map(|n| Receiver::new(n, lease(random, DAY), 0))
            .collect();
        // So that there are not too many calls.
        let quickest = survivors.iter().map(|one| one.pace).min().unwrap_or(0);
        let dead_lease = if seed == 0 { DAY } else { lease(random, (300 * quickest).min(DAY)) };
        let round_trip = round_trip(random, survivors.iter().map(|one| one.lease).chain([dead_lease]));
        // They were there all the time, or come when the lease has nearly ended.
        let from = if dead_lease == DAY { DAY - random.i64(0..60_000) } else { 0 };
        for one in &mut survivors {
            one.round_trip = round_trip;
            // Traffic makes some of them call more often.
            one.pace =
                if random.bool() { one.pace } else { random.i64(one.pace / 4..=one.pace).max(round_trip) };
            one.next_call = from + random.i64(0..=one.pace);
        }
        real.begin();
        let mut dead = Receiver::new(9, dead_lease, 0);
        assert!(real.call(&mut dead, 0, 0, Deed::Claim).claimed.is_some());
        let at = loop {
            let next = survivors.iter_mut().min_by_key(|one| one.next_call).expect("one of them");
            let begun = next.next_call;
            let now = next.arrives(begun);
            assert!(
                now <= bound(dead_lease).max(from + bound(0) + dead_lease / 2),
                "seed {seed}: {survivors:#?}"
            );
            let answer = real.call(next, begun, now, Deed::Look);
            next.answered(begun, begun, &answer, random);
            if answer.recovered > 0 {
                break now;
            }
        };
        let share = (at - from.max(dead_lease)) as f64 / (bound(dead_lease) - dead_lease) as f64;
        if share > latest.0 {
            latest = (share, format!("{dead_lease} ms, {survivors:?}"));
        }
    }
    println!("at the latest after {:.2} of the time: {}", latest.0, latest.1);
}

/// Receivers that call once and end: two of them at most find that the lease is spared.
#[test]
fn receivers_that_call_once_take_back_what_the_dead_had() {
    let mut real = Real::start();
    for seed in seeds(100) {
        let random = &mut fastrand::Rng::with_seed(seed);
        let dead_lease = lease(random, 600_000);
        let period = lease(random, 60_000);
        real.begin();
        let mut dead = Receiver::new(9, dead_lease, 0);
        assert!(real.call(&mut dead, 0, 0, Deed::Claim).claimed.is_some());
        let mut cron = Receiver { is_new: true, pace: period, ..Receiver::new(0, lease(random, DAY), 0) };
        cron.next_call = random.i64(0..=period);
        loop {
            let now = cron.next_call;
            assert!(now <= bound(dead_lease) + 2 * period, "seed {seed}: {dead_lease} ms, every {period} ms");
            let answer = real.call(&mut cron, now, now, Deed::Look);
            cron.answered(now, now, &answer, random);
            if answer.recovered > 0 {
                break;
            }
        }
    }
}

/// Long leases that an outage spares are in front of short ones, which it does not spare.
#[test]
fn what_is_spared_does_not_hide_what_is_not() {
    const SPARED: i64 = 1500;
    let mut real = Real::start();
    real.begin();
    Cmd::new().arg(&["DEL", TARGET]).exec(&mut real.connection).expect("DEL");
    let push = |real: &mut Real| {
        Cmd::new().arg(&["RPUSH", TARGET, "1"]).exec(&mut real.connection).expect("RPUSH");
    };
    let (long, short) = (600_000, 5_000);
    let mut dead = Receiver::new(9, long, 0);
    for _ in 0..SPARED {
        push(&mut real);
        assert!(real.call(&mut dead, 0, 0, Deed::Claim).claimed.is_some());
    }
    // Nobody reaches the server for longer than a quarter of that lease, and until it has ended.
    let back = long + 1000;
    let mut survivor = Receiver::new(1, 30_000, 0);
    assert_eq!(real.call(&mut survivor, back, back, Deed::Look).recovered, 0, "they are spared");
    let mut other = Receiver::new(2, short, 0);
    for _ in 0..5 {
        push(&mut real);
        assert!(real.call(&mut other, back + 1, back + 1, Deed::Claim).claimed.is_some());
    }
    let (mut now, mut recovered) = (back + 1 + survivor.pace, 0);
    while recovered < 5 {
        assert!(now < back + bound(short), "{recovered}");
        let answer = real.call(&mut survivor, now, now, Deed::Look);
        recovered += answer.recovered;
        survivor.last = Some((EPOCH * 1000 + now, now));
        // A call looks at a thousand of them, and says that there are more.
        now += if answer.lease_ends == Some(now) { 1 } else { survivor.pace };
    }
    assert_eq!(recovered, 5, "the others are still spared");
    // Calls that come until then do not look at them again.
    let looks = |real: &mut Real| {
        let stats: String =
            Cmd::new().arg(&["INFO", "commandstats"]).query(&mut real.connection).expect("INFO");
        let hget = stats.lines().find_map(|line| line.strip_prefix("cmdstat_hget:calls="));
        hget.map_or(0, |rest| rest.split(',').next().expect("a number").parse::<i64>().expect("a number"))
    };
    real.call(&mut survivor, now, now, Deed::Look);
    let before = looks(&mut real);
    for n in 1..=10 {
        assert_eq!(real.call(&mut survivor, now + n, now + n, Deed::Look).recovered, 0);
    }
    let looks = looks(&mut real) - before;
    assert!(looks <= 20, "{looks} looks at records in 10 calls");
    // All of them come back in the end, a hundred a call.
    let end = back + long / 2;
    let calls: Vec<_> =
        (1..=16).map(|n| real.call(&mut survivor, end + n, end + n, Deed::Look).recovered).collect();
    assert_eq!(calls[..15], [100; 15]);
    assert_eq!(calls[15], 0);
}

/// A receiver extends its lease in time, except while nobody reaches the server. Others, of any lease, may be
/// there first.
#[test]
fn what_the_living_have_is_not_taken_back_after_an_outage() {
    let mut real = Real::start();
    for seed in seeds(100) {
        let random = &mut fastrand::Rng::with_seed(seed);
        let mut others: Vec<Receiver> =
            (0..random.usize(1..=4)).map(|n| Receiver::new(n, lease(random, DAY), 0)).collect();
        let mut living = Receiver::new(9, lease(random, 600_000).max(1000), 0);
        for one in &mut others {
            one.is_new = random.u8(..4) == 0;
            one.next_call = random.i64(0..=one.pace);
        }
        real.begin();
        let member = real.call(&mut living, 0, 0, Deed::Claim).claimed.expect("the payload");
        living.next_call = living.lease / 3;
        let begins = random.i64(1..=2 * living.lease);
        let length = lease(random, 3 * living.lease);
        let ends = begins + length;
        let until = ends + 2 * living.lease;
        // When each of them has connected again.
        let connects: Vec<Ms> =
            (0..=others.len()).map(|_| ends + random.i64(0..=reconnects_within(length))).collect();
        loop {
            let (n, next) = others
                .iter()
                .chain([&living])
                .map(|one| one.next_call)
                .enumerate()
                .min_by_key(|(_, at)| *at)
                .expect("one");
            if next > until {
                break;
            }
            let sent = if (begins..connects[n]).contains(&next) { connects[n] } else { next };
            let (one, deed) = match others.get_mut(n) {
                Some(one) => (one, Deed::Look),
                None => (&mut living, Deed::Extend(&member)),
            };
            if sent > next {
                // It tries until then; others may be earlier.
                one.next_call = sent;
                one.last = one.last.map(|(clock, at)| (clock, at + sent - next));
                continue;
            }
            let answer = real.call(one, next, sent, deed);
            one.answered(next, sent, &answer, random);
            if n == others.len() {
                assert!(
                    answer.extended,
                    "seed {seed}: lost after an outage of {length} ms: {living:?} {others:#?}"
                );
                living.next_call = next + living.lease / 3;
            }
        }
    }
}
