//! How the cost of a message grows: with the rate, the queues, the pending entries, the payload and the
//! processes.

use std::slice::from_mut;

use crate::bench::{Bench, Measured, Workers};
use crate::contest::{Aim, Contest, Line};
use crate::effort::Effort;
use crate::idle::named;
use crate::load::{Cost, Load, lines, missing};
use crate::report::count;
use crate::results::{self, Plot};
use crate::spread::spread;
use crate::system::System;

/// Messages a second, where the payload grows up to a megabyte.
const PER_SECOND_OF_SIZES: f64 = 50.0;
/// The most queues of all systems but redelay.
const MOST_QUEUES: usize = 1_000;
const MOST_PROCESSES: usize = 16;
/// The most pending entries of all systems but redelay. With a million, Redisson's connections time out.
const MOST_PENDING: u64 = 100_000;

/// Something that grows.
struct Axis {
    name: &'static str,
    /// Of the plot.
    x: &'static str,
    about: &'static str,
    points: Vec<Point>,
}

struct Point {
    x: f64,
    what: String,
    load: Load,
}

/// What was measured at a point.
struct Measurement {
    load: Load,
    systems: Vec<System>,
    costs: Vec<Vec<Cost>>,
}

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    let axes = axes(&bench.effort);
    let shared = ordinary(&bench.effort);
    let mut workers = Workers::new(move |bench, system| Ok(shared.start(bench, system)?.remove(0)));
    // Some loads are points of several axes.
    let mut all: Vec<Measurement> = Vec::new();
    for point in axes.iter().flat_map(|axis| &axis.points) {
        if all.iter().all(|measured| measured.load != point.load) {
            all.push(at(bench, &mut workers, point));
        }
    }
    let of =
        |point: &Point| all.iter().find(|measured| measured.load == point.load).expect("a measured load");
    let measured: Vec<_> =
        axes.iter().map(|axis| (axis, axis.points.iter().map(of).collect::<Vec<_>>())).collect();
    Measured {
        contests: measured.iter().map(|(axis, all)| contest(axis, all)).collect(),
        plots: measured.iter().flat_map(|(axis, all)| plots(axis, all)).collect(),
        ..Measured::default()
    }
}

/// The load of which one thing grows at a time.
fn ordinary(effort: &Effort) -> Load {
    Load::new(effort.per_second, effort.growth.millis, effort.growth.least)
}

fn axes(effort: &Effort) -> [Axis; 5] {
    let (growth, ordinary) = (effort.growth, ordinary(effort));
    let point = |x, what, load| Point { x, what, load };
    let rates = growth.rates.iter().map(|&rate| {
        let what =
            if rate > 0.0 { format!("{}/s", count(rate as u64)) } else { "as fast as possible".into() };
        point(rate, what, Load { rate, ..ordinary })
    });
    let queues =
        growth.queues.iter().map(|&queues| point(queues as f64, named(queues), Load { queues, ..ordinary }));
    let pending = growth.pending.iter().map(|&pending| {
        point(pending as f64, format!("{} pending", count(pending)), Load { pending, ..ordinary })
    });
    let sizes = growth.sizes.iter().map(|&size| {
        let load = Load { size, rate: PER_SECOND_OF_SIZES, ..ordinary };
        point(size as f64, format!("{} B", count(size as u64)), load)
    });
    let processes = effort.processes.iter().map(|&processes| {
        let what = if processes == 1 { "1 process".into() } else { format!("{processes} processes") };
        point(processes as f64, what, Load { processes, ..ordinary })
    });
    [
        Axis {
            name: "rate",
            x: "messages a second",
            about: "At low rates, most of it is waking up, and what a process does by itself. As fast as \
                    possible is with 64 offers in flight; in the plots, it is at the rate that the system \
                    has reached.",
            points: rates.collect(),
        },
        Axis {
            name: "queues",
            x: "queues",
            about: "1,000 messages a second in a full run go to the queues by turns. There are 16 takers, \
                    or one for each queue if these are more; BullMQ has a worker for each, and asynq one \
                    server for all. Others than redelay have up to 1,000 queues: Redisson and BullMQ need a \
                    connection for each, and a server accepts 10,000; asynq asks queue after queue.",
            points: queues.collect(),
        },
        Axis {
            name: "pending",
            x: "pending entries",
            about: "1,000 messages a second in a full run, in a queue in which these entries were offered \
                    before, and wait for an hour. Others than redelay have up to 100,000: beyond that, \
                    connections of Redisson time out.",
            points: pending.collect(),
        },
        Axis {
            name: "payload",
            x: "bytes of a payload",
            about: "50 messages a second of every size, so that nothing but the size grows.",
            points: sizes.collect(),
        },
        Axis {
            name: "processes",
            x: "processes",
            about: "1,000 messages a second in a full run, of all processes together: each of them offers and handles its share.",
            points: processes.collect(),
        },
    ]
}

fn at(bench: &mut Bench, workers: &mut Workers, point: &Point) -> Measurement {
    let load = point.load;
    let mut systems: Vec<_> = System::BOTH
        .into_iter()
        .chain(bench.peers.iter().copied())
        .filter(|system| system.has_milliseconds())
        .collect();
    let suits_all = load.queues <= MOST_QUEUES && load.pending <= MOST_PENDING;
    systems.retain(|system| *system == System::Redelay || suits_all);
    // A goal depends on the most processes.
    let rounds = if load.processes == MOST_PROCESSES { bench.effort.rounds_afresh } else { 1 };
    let costs = bench.take_turns(&format!("cost: {}", point.what), &systems, rounds, |bench, system| {
        if load.processes == 1 && load.queues == 1 {
            workers.turn(bench, *system, |bench, worker| load.run(bench, from_mut(worker)))
        } else {
            let mut workers = load.start(bench, *system)?;
            load.run(bench, &mut workers)
        }
    });
    Measurement { load, systems, costs }
}

fn contest(axis: &Axis, measured: &[&Measurement]) -> Contest {
    let mut about = format!(
        "Offers with a delay of 0 to 100 ms, taken by 16 takers of the same process with redelay and \
         Redisson, and handled by a worker with a concurrency of 16 with BullMQ and asynq, which have \
         nothing else. The commands include those that scripts run, and those of the offers. {}",
        axis.about
    );
    let mut rows = Vec::new();
    for (point, Measurement { load, systems, costs }) in axis.points.iter().zip(measured) {
        rows.extend(lines(&point.what, load.rate, systems, costs).into_iter().map(with_goals));
        about += &missing(&point.what, systems, costs);
    }
    Contest { name: format!("cost by {}", axis.name), about, rows }
}

/// Many processes compete for each due entry.
fn with_goals(line: Line) -> Line {
    let of = || System::Redelay.name().into();
    match line.what.strip_prefix(&format!("{MOST_PROCESSES} processes: ")) {
        Some("server's CPU") => {
            line.aim(Aim::AtMostTimes { of: of(), than: System::Redisson.name().into(), most: 1.6 })
        }
        Some("lateness p99") => line.aim(Aim::AtMost { of: of(), most: 4.0 }),
        _ => line,
    }
}

fn plots(axis: &Axis, measured: &[&Measurement]) -> [Plot; 2] {
    let plot = |side: &str, micros: fn(&Cost) -> f64| {
        let line = |system: System| {
            let points = axis.points.iter().zip(measured).filter_map(|(point, measured)| {
                let at = measured.systems.iter().position(|measured| *measured == system)?;
                let median = |value: fn(&Cost) -> f64| spread(measured.costs[at].iter().map(value)).median;
                let x = if point.x > 0.0 { point.x } else { median(Cost::per_second) };
                Some((x, median(micros)))
            });
            results::Line { label: system.name().into(), system: Some(system), points: points.collect() }
        };
        Plot {
            file: format!("cost-by-{}-{side}.svg", axis.name),
            title: format!("CPU time of the {side} for a message, by {}", axis.x),
            x: results::Axis { name: axis.x.into(), log: true, early: None },
            y: results::Axis { name: "µs per message".into(), log: true, early: None },
            lines: measured[0].systems.iter().map(|system| line(*system)).collect(),
        }
    };
    [plot("client", Cost::client_micros), plot("server", Cost::server_micros)]
}
