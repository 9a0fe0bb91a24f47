//! One call in flight: what each layer costs, from a bare socket to Redisson. redelay runs on one thread of
//! Tokio's and on two.

mod messages;
pub(crate) mod rung;
mod system_calls;
mod ways;

use self::rung::Rung;
use self::system_calls::Counter;
use self::ways::{QUEUE, TAKERS, Way, Workers, with_worker};
use crate::bench::{Bench, Measured};
use crate::contest::{Aim, Column, Contest, Line};
use crate::job::{Job, Offer, Receive, payload};
use crate::repeat::Outcome;
use crate::spread::Better;
use crate::worker::Worker;

/// redelay first: the others are compared with it.
const WAYS: [Way; 6] = [
    Way::TwoThreads,
    Way::OneThread,
    Way::Rung(Rung::Socket),
    Way::Rung(Rung::RedisRs),
    Way::Rung(Rung::Fred),
    Way::Redisson,
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Offer,
    /// With this number of takers.
    Take(usize),
    /// A call for a message, and one to acknowledge it.
    ByHand,
    /// Each call acknowledges one message and claims the next one.
    Work,
}

const CALLS: [Call; 5] = [Call::Offer, Call::Take(1), Call::Take(TAKERS), Call::ByHand, Call::Work];

impl Call {
    fn name(self) -> &'static str {
        match self {
            Self::Offer => "offer",
            Self::Take(1) => "take",
            Self::Take(_) => "take, 8 takers",
            Self::ByHand => "receive and ack",
            Self::Work => "worker, 1 at a time",
        }
    }

    /// Who can do it.
    fn ways(self) -> Vec<Way> {
        let can = |way: &Way| match way {
            Way::Redisson => !matches!(self, Self::ByHand | Self::Work),
            Way::Rung(_) => self != Self::Take(TAKERS),
            _ => true,
        };
        WAYS.into_iter().filter(can).collect()
    }

    /// How many times as fast as another one redelay is to be, on two threads and on one.
    fn goals(self) -> [Aim; 2] {
        let (than, two, one) = match self {
            Self::Offer => (Way::Redisson, 0.95, 0.95),
            Self::Take(1) => (Way::Redisson, 0.95, 1.1),
            Self::Take(_) => (Way::Redisson, 0.85, 1.3),
            Self::ByHand => (Way::Rung(Rung::Socket), 0.9, 0.9),
            Self::Work => (Way::Rung(Rung::Socket), 0.85, 0.85),
        };
        [(Way::TwoThreads, two), (Way::OneThread, one)].map(|(way, least)| Aim::Times {
            of: way.name().into(),
            than: than.name().into(),
            least,
        })
    }

    /// What redelay may need on two threads.
    fn most_system_calls(self) -> Option<Aim> {
        let most = match self {
            Self::Offer | Self::Take(1) => 3.2,
            Self::ByHand => 7.0,
            _ => return None,
        };
        Some(Aim::AtMost { of: Way::TwoThreads.name().into(), most })
    }
}

struct Turn {
    per_second: f64,
    client_micros: f64,
    server_micros: f64,
}

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    let mut workers = Workers::new();
    for way in WAYS {
        let worker = bench.turn("ladder: warm-up", |bench| way.start(bench));
        workers.insert(way, worker);
    }
    let messages = messages::measure(bench, &mut workers);
    let rows = CALLS.into_iter().flat_map(|call| rows(bench, &mut workers, call)).collect();
    let about = "One call at a time, each after the reply to the last one, in short turns. The blocking socket writes and reads by \
                 itself, without a runtime; redis-rs and fred are the clients of that name on two threads of Tokio's. They offer \
                 and receive with the scripts of redelay, and take with `BLPOP`. Payloads have 100 bytes; those that are taken are ready. System \
                 calls are counted in one turn, by `strace -c` if it is installed. Behind a value: how many times better the first column was.";
    let contest = Contest { name: "one caller".into(), about: about.into(), rows };
    Measured { contests: vec![contest, messages], ..Measured::default() }
}

fn rows(bench: &mut Bench, workers: &mut Workers, call: Call) -> Vec<Line> {
    let (ways, slices) = (call.ways(), bench.effort.slices);
    let turns = bench.take_turns(&format!("ladder: {}", call.name()), &ways, slices, |bench, way| {
        with_worker(bench, workers, *way, |bench, worker| turn(bench, worker, call))
    });
    let counted = ways.iter().map(|way| {
        bench.turn(&format!("ladder: {}: system calls", call.name()), |bench| {
            with_worker(bench, workers, *way, |bench, worker| system_calls(bench, worker, call))
        })
    });
    let counted: Option<Vec<f64>> = counted.collect();
    let line = |what: &str, unit: &str, better, value: fn(&Turn) -> f64| {
        let columns = ways
            .iter()
            .zip(&turns)
            .map(|(way, turns)| Column { of: way.name().into(), rounds: turns.iter().map(value).collect() });
        Line::new(format!("{}{what}", call.name()), unit, better, columns.collect())
    };
    let calls = line("", "per second", Better::More, |turn| turn.per_second);
    let calls = call.goals().into_iter().fold(calls, Line::aim);
    let mut lines = vec![
        calls,
        line(": client's CPU", "µs each", Better::Less, |turn| turn.client_micros),
        line(": server's CPU", "µs each", Better::Less, |turn| turn.server_micros),
    ];
    if let Some(counted) = counted {
        let columns = ways
            .iter()
            .zip(counted)
            .map(|(way, count)| Column { of: way.name().into(), rounds: vec![count] });
        let what = format!("{}: system calls", call.name());
        let line = Line::new(what, "each", Better::Less, columns.collect());
        lines.push(call.most_system_calls().into_iter().fold(line, Line::aim));
    }
    lines
}

fn turn(bench: &mut Bench, worker: &mut Worker, call: Call) -> Outcome<Turn> {
    let job = prepare(bench, worker, call)?;
    let (client, server) = (worker.cpu_seconds(), bench.server.counters());
    let reply = worker.ask(&job)?;
    let (server, calls) = (bench.server.counters().since(server), reply.count as f64);
    Ok(Turn {
        per_second: reply.per_second(),
        client_micros: (worker.cpu_seconds() - client) * 1e6 / calls,
        server_micros: server.cpu_seconds * 1e6 / calls,
    })
}

/// System calls of the client for each call. `None` if nothing counts them here.
fn system_calls(bench: &mut Bench, worker: &mut Worker, call: Call) -> Outcome<Option<f64>> {
    let job = prepare(bench, worker, call)?;
    let Some(counter) = Counter::attach(worker.pid()) else { return Ok(None) };
    let reply = worker.ask(&job)?;
    Ok(counter.count().map(|count| count / reply.count as f64))
}

/// Returns the job of a turn, for which everything is ready.
fn prepare(bench: &mut Bench, worker: &mut Worker, call: Call) -> Outcome<Job> {
    Ok(match call {
        Call::Offer => Offer { millis: bench.effort.slice_millis, ..Offer::new(QUEUE) }.job(),
        Call::Take(takers) => {
            let take = |count| Job::Take { queue: QUEUE.into(), takers, count };
            // The first takes may make connections, and are not counted.
            bench.server.fill(QUEUE, takers as u64, "x");
            worker.ask(&take(takers as u64))?;
            let count = bench.effort.slice_takes;
            bench.server.fill(QUEUE, count, &payload(0, 100));
            take(count)
        }
        Call::ByHand | Call::Work => {
            let count = bench.effort.slice_takes;
            bench.server.fill(QUEUE, count, &payload(0, 100));
            let by_hand = call == Call::ByHand;
            Job::Receive(Receive { queue: QUEUE.into(), by_hand, concurrency: 1, count })
        }
    })
}
