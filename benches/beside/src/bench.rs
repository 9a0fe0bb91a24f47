//! Shared by all measurements: the server, a warm worker of each system, and taking turns.

use std::collections::BTreeMap;
use std::mem::replace;
use std::slice::from_mut;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::contest::Contest;
use crate::effort::Effort;
use crate::job::Job;
use crate::repeat::{Outcome, Repeat, Repeats};
use crate::results::{Plot, Table};
use crate::server::Server;
use crate::settings::Settings;
use crate::system::{Sides, System};
use crate::tuning::{Tuning, tune};
use crate::warm_up::warm_up;
use crate::worker::Worker;

/// The result of a measurement.
#[derive(Default)]
pub(crate) struct Measured {
    pub(crate) tables: Vec<Table>,
    pub(crate) contests: Vec<Contest>,
    pub(crate) plots: Vec<Plot>,
}

pub(crate) struct Bench {
    pub(crate) effort: Effort,
    pub(crate) server: Server,
    pub(crate) tuning: Tuning,
    /// BullMQ, asynq and apalis-redis, if they are there.
    pub(crate) peers: Vec<System>,
    /// One process of each system for all measurements that do not start their own.
    workers: Workers,
    pub(crate) progress: ProgressBar,
    repeats: Repeats,
    begun: Instant,
}

impl Bench {
    pub(crate) fn start(effort: Effort, mut server: Server, peers: Vec<System>, measurements: u64) -> Self {
        let style = ProgressStyle::with_template("{elapsed_precise} {bar:24} {pos}/{len} {wide_msg}");
        let progress = ProgressBar::new(measurements).with_style(style.expect("a template"));
        progress.set_message("starting, and warming up");
        progress.enable_steady_tick(Duration::from_millis(200));
        let begun = Instant::now();
        let repeats = Repeats::new(progress.clone());
        let tuning = tune(&effort, &mut server, &repeats, |what| progress.set_message(what));
        let workers = Workers::warm();
        let mut bench = Self { effort, server, tuning, peers, workers, progress, repeats, begun };
        bench.with_shared(|bench, workers| workers.start(bench, System::BOTH));
        bench
    }

    /// Fresh processes, and connections for this number of takers in each.
    pub(crate) fn start_workers(&self, system: System, number: usize, takers: usize) -> Outcome<Vec<Worker>> {
        Worker::start_many(system, &self.server.url(system), self.tuning.best.with_takers(takers), number)
    }

    /// A warm worker with these settings.
    pub(crate) fn start_warm(&self, system: System, settings: Settings) -> Outcome<Worker> {
        let mut worker = Worker::start(system, &self.server.url(system), settings.with_takers(1))?;
        warm_up(from_mut(&mut worker), self.effort.warm_up)?;
        Ok(worker)
    }

    /// Runs one turn, on an empty server. A turn that fails is repeated.
    pub(crate) fn turn<T>(&mut self, what: &str, mut turn: impl FnMut(&mut Self) -> Outcome<T>) -> T {
        self.repeats.clone().turn(what, || {
            self.server.clear();
            turn(self)
        })
    }

    /// Measures both systems in turns, for this number of rounds. The system that goes first changes from
    /// round to round. The server is empty at the start of each turn. A turn that fails is repeated.
    pub(crate) fn alternate<T>(
        &mut self,
        what: &str,
        rounds: usize,
        mut measure: impl FnMut(&mut Self, System) -> Outcome<T>,
    ) -> Vec<Sides<T>> {
        let mut all = Vec::with_capacity(rounds);
        for round in 0..rounds {
            let mut turn = |bench: &mut Self, system: System| {
                let message = format!("{what}, {}, round {} of {rounds}", system.name(), round + 1);
                bench.progress.set_message(message);
                bench.turn(what, |bench| measure(bench, system))
            };
            all.push(if round % 2 == 0 {
                let redelay = turn(self, System::Redelay);
                Sides { redelay, redisson: turn(self, System::Redisson) }
            } else {
                let redisson = turn(self, System::Redisson);
                Sides { redelay: turn(self, System::Redelay), redisson }
            });
        }
        all
    }

    /// Measures each of these ways in turns, for this number of rounds. Each round begins with another one.
    /// The server is empty at the start of each turn. A turn that fails is repeated. Returns the rounds of
    /// each way.
    pub(crate) fn take_turns<W, T>(
        &mut self,
        what: &str,
        ways: &[W],
        rounds: usize,
        mut measure: impl FnMut(&mut Self, &W) -> Outcome<T>,
    ) -> Vec<Vec<T>> {
        let mut all: Vec<Vec<T>> = ways.iter().map(|_| Vec::with_capacity(rounds)).collect();
        for round in 0..rounds {
            for turn in 0..ways.len() {
                let way = (round + turn) % ways.len();
                self.progress.set_message(format!("{what}, round {} of {rounds}", round + 1));
                all[way].push(self.turn(what, |bench| measure(bench, &ways[way])));
            }
        }
        all
    }

    /// As [`Bench::alternate`], with workers that are used in all rounds.
    pub(crate) fn alternate_with<T>(
        &mut self,
        workers: &mut Workers,
        what: &str,
        rounds: usize,
        mut measure: impl FnMut(&mut Self, &mut Worker) -> Outcome<T>,
    ) -> Vec<Sides<T>> {
        self.alternate(what, rounds, |bench, system| workers.turn(bench, system, &mut measure))
    }

    /// As [`Bench::alternate`], with the workers that measurements share.
    pub(crate) fn alternate_shared<T>(
        &mut self,
        what: &str,
        rounds: usize,
        measure: impl FnMut(&mut Self, &mut Worker) -> Outcome<T>,
    ) -> Vec<Sides<T>> {
        self.with_shared(|bench, workers| bench.alternate_with(workers, what, rounds, measure))
    }

    /// As [`Bench::turn`], with the worker that measurements share.
    pub(crate) fn turn_shared<T>(
        &mut self,
        system: System,
        what: &str,
        mut turn: impl FnMut(&mut Self, &mut Worker) -> Outcome<T>,
    ) -> T {
        self.with_shared(|bench, workers| bench.turn(what, |bench| workers.turn(bench, system, &mut turn)))
    }

    fn with_shared<T>(&mut self, work: impl FnOnce(&mut Self, &mut Workers) -> T) -> T {
        // If this work panics, its workers end, and the next work starts new ones.
        let mut workers = replace(&mut self.workers, Workers::warm());
        let result = work(self, &mut workers);
        self.workers = workers;
        result
    }

    /// The turns that were repeated so far.
    pub(crate) fn repeated(&self) -> Vec<Repeat> {
        self.repeats.all()
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }
}

type Start = Box<dyn Fn(&mut Bench, System) -> Outcome<Worker>>;

/// One worker of each system for many turns. A turn that fails ends its worker, and the next turn starts
/// another one.
pub(crate) struct Workers {
    all: BTreeMap<System, Worker>,
    start: Start,
}

impl Workers {
    /// `start` returns a warm worker.
    pub(crate) fn new(start: impl Fn(&mut Bench, System) -> Outcome<Worker> + 'static) -> Self {
        Self { all: BTreeMap::new(), start: Box::new(start) }
    }

    /// With the settings that suit each system best.
    fn warm() -> Self {
        Self::new(|bench, system| bench.start_warm(system, bench.tuning.best))
    }

    /// Starts these now, and not in their first turns.
    pub(crate) fn start(&mut self, bench: &mut Bench, systems: impl IntoIterator<Item = System>) {
        for system in systems {
            let started = bench.turn("warm-up", |bench| (self.start)(bench, system));
            self.all.insert(system, started);
        }
    }

    /// A turn with the worker on this system, and with another one after it has failed.
    pub(crate) fn turn<T>(
        &mut self,
        bench: &mut Bench,
        system: System,
        measure: impl FnOnce(&mut Bench, &mut Worker) -> Outcome<T>,
    ) -> Outcome<T> {
        let mut worker = if let Some(worker) = self.all.remove(&system) {
            worker
        } else {
            let worker = (self.start)(bench, system)?;
            bench.server.clear();
            worker
        };
        let measured = measure(bench, &mut worker)?;
        worker.ask(&Job::Close)?;
        self.all.insert(system, worker);
        Ok(measured)
    }
}
