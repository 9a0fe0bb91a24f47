//! Receive and acknowledge, as fast as possible: messages a second, and what each costs.

use super::{QUEUE, workers};
use crate::bench::{Bench, Measured, Workers};
use crate::contest::{Aim, Column, Contest, Line};
use crate::job::{Fill, Job, Receive};
use crate::repeat::Outcome;
use crate::report::count;
use crate::results::{self, Axis, Plot};
use crate::spread::{Better, spread};
use crate::system::System;

/// apalis-redis moves all that is ready in one call of Lua's `unpack`, which fails above 8,000 values.
const APALIS_READY: u64 = 7_000;

/// How messages are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Worker,
    ByHand,
    /// Not acknowledged.
    Take,
    Peer(System),
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Worker => "redelay, worker",
            Self::ByHand => "redelay, by hand",
            Self::Take => "redelay, take",
            Self::Peer(system) => system.name(),
        }
    }

    fn system(self) -> System {
        match self {
            Self::Peer(system) => system,
            _ => System::Redelay,
        }
    }
}

struct Turn {
    per_second: f64,
    scripts: f64,
    server_micros: f64,
    client_micros: f64,
}

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    let mut workers = workers(bench);
    let own = [Way::Worker, Way::ByHand, Way::Take];
    let ways: Vec<Way> = own.into_iter().chain(bench.peers.iter().copied().map(Way::Peer)).collect();
    let (mut rates, mut costs) = (Vec::new(), Vec::new());
    let mut lines: Vec<_> = ways.iter().map(|way| (*way, Vec::new())).collect();
    for &concurrency in bench.effort.in_flight {
        let what = format!("{} in flight", count(concurrency as u64));
        let rounds = bench.effort.rounds;
        let turns = bench.take_turns(&format!("receive: {what}"), &ways, rounds, |bench, way| {
            turn(bench, &mut workers, *way, concurrency)
        });
        let columns = |value: fn(&Turn) -> f64| {
            let values = turns.iter().map(|rounds| rounds.iter().map(value).collect());
            ways.iter()
                .zip(values)
                .map(|(way, rounds)| Column { of: way.name().into(), rounds })
                .collect::<Vec<_>>()
        };
        let rate = columns(|turn| turn.per_second);
        for ((_, points), column) in lines.iter_mut().zip(&rate) {
            points.push((concurrency as f64, spread(column.rounds.iter().copied()).median));
        }
        rates.push(with_goals(Line::new(what.clone(), "messages/s", Better::More, rate), concurrency));
        let cost = |name: &str, unit, value| {
            Line::new(format!("{what}: {name}"), unit, Better::Less, columns(value))
        };
        costs.push(cost("scripts", "per message", |turn| turn.scripts));
        costs.push(cost("server's CPU", "µs per message", |turn| turn.server_micros));
        costs.push(cost("client's CPU", "µs per message", |turn| turn.client_micros));
    }
    let about = "Messages of 100 bytes that are ready are received and acknowledged; the handler returns at once. The time ends when \
                 the last one is acknowledged, for asynq and apalis-redis when the last handler has returned. By hand: as many tasks as there are \
                 messages in flight, each of which calls `receive` and then `ack`. `take` is for comparison: it does not \
                 acknowledge. A worker of BullMQ has this `concurrency`, its defaults otherwise, and removes completed jobs. A \
                 server of asynq has this `Concurrency`, its defaults otherwise, and retains nothing. A worker of apalis-redis fetches as many tasks at a time, keeps \
                 what is done, as always, and has at most 7,000 messages: above 8,000 that are ready, its script fails (\"too many results to \
                 unpack\") and each of its workers ends. Behind a value: how \
                 many times better the first column was.";
    let plot = Plot {
        file: "acknowledged.svg".into(),
        title: "Messages received and acknowledged per second, 100 bytes each".into(),
        x: Axis { name: "in flight".into(), log: true, early: None },
        y: Axis { name: "messages/s".into(), log: true, early: None },
        lines: lines
            .into_iter()
            .filter(|(way, _)| *way != Way::Take)
            .map(|(way, points)| results::Line {
                label: way.name().into(),
                system: Some(way.system()),
                points,
            })
            .collect(),
    };
    let contest = Contest {
        name: "acknowledged receive".into(),
        about: about.into(),
        rows: rates.into_iter().chain(costs).collect(),
    };
    Measured { contests: vec![contest], plots: vec![plot], ..Measured::default() }
}

fn turn(bench: &mut Bench, workers: &mut Workers, way: Way, concurrency: usize) -> Outcome<Turn> {
    let most = if way == Way::Peer(System::Apalis) { APALIS_READY } else { bench.effort.taken };
    let count = most.min(3_000 * concurrency as u64);
    workers.turn(bench, way.system(), |bench, worker| {
        worker.ask(&Fill::new(QUEUE, count).job())?;
        let (client, server) = (worker.cpu_seconds(), bench.server.counters());
        let receive = Receive { queue: QUEUE.into(), by_hand: way == Way::ByHand, concurrency, count };
        let reply = worker.ask(&match way {
            Way::Take => Job::Take { queue: QUEUE.into(), takers: concurrency, count },
            _ => Job::Receive(receive),
        })?;
        let (server, messages) = (bench.server.counters().since(server), count as f64);
        Ok(Turn {
            per_second: reply.per_second(),
            scripts: server.scripts / messages,
            server_micros: server.cpu_seconds * 1e6 / messages,
            client_micros: (worker.cpu_seconds() - client) * 1e6 / messages,
        })
    })
}

fn with_goals(line: Line, concurrency: usize) -> Line {
    let times =
        |of: Way, than: Way, least| Aim::Times { of: of.name().into(), than: than.name().into(), least };
    let at_least = |of: Way, least| Aim::AtLeast { of: of.name().into(), least };
    match concurrency {
        1 => line
            .aim(at_least(Way::Worker, 10_000.0))
            .aim(times(Way::ByHand, Way::Take, 0.45))
            .aim(times(Way::Worker, Way::Peer(System::BullMq), 1.5))
            .aim(times(Way::Worker, Way::Peer(System::Asynq), 1.5)),
        64 => line
            .aim(at_least(Way::Worker, 130_000.0))
            .aim(times(Way::Worker, Way::Peer(System::BullMq), 5.0))
            .aim(times(Way::Worker, Way::Peer(System::Asynq), 7.0)),
        _ => line,
    }
}
