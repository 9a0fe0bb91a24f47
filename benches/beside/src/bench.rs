//! Shared by all measurements: the server, a warm worker of each system, and taking turns.

use std::collections::BTreeMap;
use std::mem::replace;
use std::slice::from_mut;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::contest::Contest;
use crate::effort::Effort;
use crate::job::{Collect, Job, Offer, Reply};
use crate::repeat::{Outcome, Repeat, Repeats};
use crate::results::{Plot, Table};
use crate::server::Server;
use crate::tuning::{Settings, Tuning, tune};
use crate::worker::{Sides, System, Worker};

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

/// Offers and takes for this time, ms, in each worker, as the measurements do. A native program only has to
/// make its connections. A virtual machine is slow until it has compiled the code that it runs, for which it
/// needs a core. When sixteen of them warm up together on two cores, commands wait for longer than Redisson's
/// timeouts; so no more of them do at a time than there are cores.
pub(crate) fn warm_up(workers: &mut [Worker], millis: u64) -> Outcome<()> {
    let Some(system) = workers.first().map(Worker::system) else { return Ok(()) };
    let (group, millis) = match system {
        System::Redelay => (workers.len(), millis.min(500)),
        System::Redisson => (available_parallelism().map_or(1, usize::from), millis),
        System::BullMq | System::Asynq | System::Apalis => return Ok(()),
    };
    workers.chunks_mut(group).try_for_each(|group| warm_up_together(group, millis))
}

fn warm_up_together(workers: &mut [Worker], millis: u64) -> Outcome<()> {
    // Of all processes together as many as of one, if that is enough to keep the connections of each busy.
    let concurrency = (64 / workers.len()).max(16);
    for batch in [1, 16] {
        let job = Offer { concurrency, batch, millis: millis / 4, ..Offer::new("warm-up") }.job();
        ask_all(workers, &job)?;
    }
    ask_all(workers, &Collect::new("warm-up-due", 1).job())?;
    let concurrency = concurrency.div_ceil(4);
    let due = Offer { delay: (0, 50), concurrency, millis: millis / 2, ..Offer::new("warm-up-due") };
    let offered = ask_all(workers, &due.job())?.iter().map(|reply| reply.count).sum();
    wait_for(workers, offered, Duration::from_secs(5))?;
    ask_all(workers, &Job::Stop)?;
    ask_all(workers, &Job::Close)?;
    Ok(())
}

/// Gives the same job to all workers at the same time, and returns their replies.
pub(crate) fn ask_all(workers: &mut [Worker], job: &Job) -> Outcome<Vec<Reply>> {
    workers.iter_mut().try_for_each(|worker| worker.begin(job))?;
    workers.iter_mut().map(Worker::end).collect()
}

/// Waits until this number of payloads is collected, or until none has come for as long as `patience`.
/// Returns the number collected.
pub(crate) fn wait_for(workers: &mut [Worker], count: u64, patience: Duration) -> Outcome<u64> {
    wait_and_look(workers, count, patience, Duration::from_millis(10))
}

/// The same with this pause between two looks. Each costs the worker as much as a message or more.
pub(crate) fn wait_and_look(
    workers: &mut [Worker],
    count: u64,
    patience: Duration,
    pause: Duration,
) -> Outcome<u64> {
    let (mut last, mut since) = (0, Instant::now());
    loop {
        let collected = ask_all(workers, &Job::Collected)?.iter().map(|reply| reply.count).sum();
        if collected > last {
            (last, since) = (collected, Instant::now());
        }
        if collected >= count || since.elapsed() > patience {
            return Ok(collected);
        }
        std::thread::sleep(pause);
    }
}
