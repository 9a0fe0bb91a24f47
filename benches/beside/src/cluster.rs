//! A cluster beside one server: what a message costs when its queues are on several masters.

mod cost;
mod partitions;
mod place;

use std::collections::BTreeMap;
use std::slice::from_mut;

use crate::bench::{Bench, Measured};
use crate::contest::{Aim, Column, Contest, Line};
use crate::job::{Job, Offer, Receive};
use crate::repeat::Outcome;
use crate::spread::Better;
use crate::system::System;
use crate::warm_up::warm_up;
use crate::worker::Worker;
use cost::{Cost, IN_FLIGHT, counted};
use place::{Place, QUEUE};

/// Queues of a turn, spread over the masters.
const QUEUES: usize = 16;
/// The most times the CPU time of one server that a message may cost on three masters.
const MOST: f64 = 1.3;
/// Takes of whichever queue has one, a second, on one server.
const LEAST_OF_ANY: f64 = 50_000.0;

/// What is done with each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Offer,
    /// From one of the queues.
    Take,
    /// From whichever queue has one.
    TakeAny,
    Worker,
    ByHand,
}

const ALL: [Work; 5] = [Work::Offer, Work::Take, Work::TakeAny, Work::Worker, Work::ByHand];

impl Work {
    fn name(self) -> &'static str {
        match self {
            Self::Offer => "offers",
            Self::Take => "takes",
            Self::TakeAny => "takes of whichever has one",
            Self::Worker => "receives, worker",
            Self::ByHand => "receives, by hand",
        }
    }

    fn is_of(self, system: System) -> bool {
        system == System::Redelay || matches!(self, Self::Offer | Self::Take)
    }

    /// A job with this number of messages, which are ready unless they are offered.
    fn job(self, count: u64, concurrency: usize, millis: u64) -> Job {
        let queue = QUEUE.to_owned();
        let receive = |by_hand, queue| Job::Receive(Receive { queue, by_hand, concurrency, count });
        match self {
            Self::Offer => Offer { concurrency, count, millis, ..Offer::new(QUEUE) }.job(),
            Self::Take => Job::Take { queue, takers: concurrency, count },
            Self::TakeAny => Job::TakeAny { queue, takers: concurrency, count },
            Self::Worker => receive(false, queue),
            Self::ByHand => receive(true, queue),
        }
    }
}

/// A system on one of the places.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    system: System,
    place: usize,
}

impl Way {
    fn name(self, places: &[Place]) -> String {
        format!("{}, {}", self.system.name(), places[self.place].name)
    }
}

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    bench.progress.set_message("cluster: starting the servers");
    let mut places = [Place::one_server(), Place::cluster("1 master", 1), Place::cluster("3 masters", 3)];
    let numbers = places[2].partitions_of_masters(QUEUES);
    assert!(!numbers.contains(&0), "each master has some of the queues: {numbers:?}");
    let mut contests = vec![beside_redisson(bench, &mut places, &numbers)];
    let [one_server, _, three_masters] = &mut places;
    contests.push(partitions::contest(bench, three_masters));
    contests.push(partitions::contest(bench, one_server));
    Measured { contests, ..Measured::default() }
}

fn beside_redisson(bench: &mut Bench, places: &mut [Place], numbers: &[usize]) -> Contest {
    let ways: Vec<_> = System::BOTH
        .into_iter()
        .flat_map(|system| (0..places.len()).map(move |place| Way { system, place }))
        .collect();
    let mut workers = BTreeMap::new();
    for way in &ways {
        bench.progress.set_message(format!("cluster: starting {}", way.name(places)));
        let worker = bench.turn("cluster: warm-up", |bench| start(bench, &mut places[way.place], way.system));
        workers.insert(*way, worker);
    }
    let (mut rates, mut costs) = (Vec::new(), Vec::new());
    for work in ALL {
        let ways: Vec<_> = ways.iter().copied().filter(|way| work.is_of(way.system)).collect();
        let what = work.name();
        let rounds = bench.effort.rounds;
        let turns = bench.take_turns(&format!("cluster: {what}"), &ways, rounds, |bench, way| {
            let place = &mut places[way.place];
            // A turn that fails ends its worker.
            let mut worker = match workers.remove(way) {
                Some(worker) => worker,
                None => start(bench, place, way.system)?,
            };
            let cost = turn(bench, place, &mut worker, work)?;
            workers.insert(*way, worker);
            Ok(cost)
        });
        let names: Vec<_> = ways.iter().map(|way| way.name(places)).collect();
        let line = |name: &str, unit: &str, better, value: fn(&Cost) -> f64| {
            let rounds = turns.iter().map(|rounds| rounds.iter().map(value).collect());
            let columns = names.iter().cloned().zip(rounds);
            let columns = columns.map(|(of, rounds)| Column { of, rounds }).collect();
            Line::new(format!("{what}{name}"), unit, better, columns)
        };
        let rate = line("", "messages/s", Better::More, |cost| cost.per_second);
        rates.push(match work {
            Work::TakeAny => rate.aim(Aim::AtLeast { of: names[0].clone(), least: LEAST_OF_ANY }),
            _ => rate,
        });
        let both = line(": CPU of client and servers", "µs per message", Better::Less, Cost::both_micros);
        costs.push(both.aim(Aim::AtMostTimes { of: names[2].clone(), than: names[0].clone(), most: MOST }));
        costs.push(line(": client's CPU", "µs per message", Better::Less, |cost| cost.client_micros));
        costs.push(line(": servers' CPU", "µs per message", Better::Less, |cost| cost.servers_micros));
        costs.push(line(": commands", "per message", Better::Less, |cost| cost.commands));
        costs.push(line(": scripts", "per message", Better::Less, |cost| cost.scripts));
    }
    let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
    let about = format!(
        "One server, a cluster of one master, and one of three, all without replicas, on this machine: more masters have no more \
         cores, so they cannot be faster here. What shows is what a message costs. There are {QUEUES} queues, of which the three \
         masters have {}: the partitions of one partitioned queue with redelay, and ordinary queues of the same names with \
         Redisson. For each server, {IN_FLIGHT} calls are in flight. Offers are due in an hour, and go to the queues by turns. \
         Payloads to take and receive are ready, as many in each queue, and each queue has the same number of takers, or of tasks that \
         receive by hand; a worker, and takers of whichever has one, are for all queues. The commands include those that scripts \
         run. Behind a value: how many times better the first column was.",
        numbers.join(", ")
    );
    Contest { name: "cluster".into(), about, rows: rates.into_iter().chain(costs).collect() }
}

/// A warm worker, which has done a little of all work.
fn start(bench: &Bench, place: &mut Place, system: System) -> Outcome<Worker> {
    let settings = bench.tuning.best.with_takers(IN_FLIGHT * place.masters());
    let mut worker = Worker::start_with_partitions(system, &place.url(), settings, QUEUES)?;
    warm_up(from_mut(&mut worker), bench.effort.warm_up / 2)?;
    for work in ALL.into_iter().filter(|work| work.is_of(system)) {
        turn(bench, place, &mut worker, work)?;
    }
    Ok(worker)
}

fn turn(bench: &Bench, place: &mut Place, worker: &mut Worker, work: Work) -> Outcome<Cost> {
    place.clear();
    let in_flight = IN_FLIGHT * place.masters();
    let job = |place: &mut Place, count| {
        if work != Work::Offer {
            place.fill(QUEUES, count);
        }
        work.job(count, in_flight, bench.effort.millis * 2)
    };
    // These open the queues and make the connections, and are not counted.
    worker.ask(&job(place, in_flight as u64))?;
    let count = if work == Work::Offer { u64::MAX / 2 } else { bench.effort.spread };
    let job = job(place, count);
    let cost = counted(place, worker, |worker| worker.ask(&job))?;
    worker.ask(&Job::Close)?;
    Ok(cost)
}
