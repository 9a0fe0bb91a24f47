//! Shared by all measurements: the server, a warm worker of each system, and taking turns.

use std::slice::from_mut;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::effort::Effort;
use crate::job::{Job, Offer, Reply};
use crate::results::{Plot, Table};
use crate::server::Server;
use crate::tuning::{Settings, Tuning, tune};
use crate::worker::{Sides, System, Worker};

/// The result of a measurement.
pub(crate) type Measured = (Vec<Table>, Vec<Plot>);

pub(crate) struct Bench {
    pub(crate) effort: Effort,
    pub(crate) server: Server,
    pub(crate) tuning: Tuning,
    /// One process of each system, from the first measurement to the last. Some measurements start fresh ones.
    workers: Sides<Worker>,
    pub(crate) progress: ProgressBar,
    begun: Instant,
}

impl Bench {
    pub(crate) fn start(effort: Effort, mut server: Server, measurements: u64) -> Self {
        let style = ProgressStyle::with_template("{elapsed_precise} {bar:24} {pos}/{len} {wide_msg}");
        let progress = ProgressBar::new(measurements).with_style(style.expect("a template"));
        progress.set_message("starting, and warming up");
        progress.enable_steady_tick(Duration::from_millis(200));
        let begun = Instant::now();
        let tuning = tune(&effort, &mut server, |what| progress.set_message(what));
        let workers =
            Sides::of(|system| Worker::start(system, &server.url(system), tuning.best.with_takers(1)));
        let mut bench = Self { effort, server, tuning, workers, progress, begun };
        for system in System::BOTH {
            bench.server.clear();
            warm_up(from_mut(bench.workers.get_mut(system)), effort.warm_up);
        }
        bench
    }

    pub(crate) fn worker(&mut self, system: System) -> &mut Worker {
        self.workers.get_mut(system)
    }

    /// Fresh processes, and connections for this number of takers in each.
    pub(crate) fn start_workers(&self, system: System, number: usize, takers: usize) -> Vec<Worker> {
        Worker::start_many(system, &self.server.url(system), self.tuning.best.with_takers(takers), number)
    }

    /// A warm worker with default settings.
    pub(crate) fn start_untuned(&self, system: System) -> Worker {
        let settings = Settings::defaults().with_takers(1);
        let mut worker = Worker::start(system, &self.server.url(system), settings);
        warm_up(from_mut(&mut worker), self.effort.warm_up);
        worker
    }

    pub(crate) fn ask(&mut self, system: System, job: &Job) -> Reply {
        self.worker(system).ask(job)
    }

    /// Measures both systems in turns, for this number of rounds. The system that goes first changes from round to
    /// round. The server is empty at the start of each turn.
    pub(crate) fn alternate<T>(
        &mut self,
        what: &str,
        rounds: usize,
        mut measure: impl FnMut(&mut Self, System) -> T,
    ) -> Vec<Sides<T>> {
        let mut all = Vec::with_capacity(rounds);
        for round in 0..rounds {
            let mut turn = |bench: &mut Self, system: System| {
                bench.progress.set_message(format!(
                    "{what}, {}, round {} of {rounds}",
                    system.name(),
                    round + 1
                ));
                bench.server.clear();
                let measured = measure(bench, system);
                bench.ask(system, &Job::Close);
                measured
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

    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }
}

/// Offers and takes for this time, ms, in all workers at once, as the measurements do. A virtual machine is slow until
/// it has compiled the code that it runs. With more processes than cores this takes longer, so the time is extended. A
/// native program only has to make its connections.
pub(crate) fn warm_up(workers: &mut [Worker], millis: u64) {
    let Some(system) = workers.first().map(Worker::system) else { return };
    let cores = available_parallelism().map_or(1, usize::from);
    let millis = match system {
        System::Redelay => millis.min(500),
        System::Redisson => millis * workers.len().div_ceil(cores) as u64,
    };
    for batch in [1, 16] {
        let job = Offer { concurrency: 64, batch, millis: millis / 4, ..Offer::new("warm-up") }.job();
        ask_all(workers, &job);
    }
    ask_all(workers, &Job::Collect { queue: "warm-up-due".into(), takers: 1 });
    let due = Offer { delay: (0, 50), concurrency: 16, millis: millis / 2, ..Offer::new("warm-up-due") };
    let offered = ask_all(workers, &due.job()).iter().map(|reply| reply.count).sum();
    wait_for(workers, offered, Duration::from_secs(5));
    ask_all(workers, &Job::Stop);
    ask_all(workers, &Job::Close);
}

/// Gives the same job to all workers at the same time, and returns their replies.
pub(crate) fn ask_all(workers: &mut [Worker], job: &Job) -> Vec<Reply> {
    workers.iter_mut().for_each(|worker| worker.begin(job));
    workers.iter_mut().map(Worker::end).collect()
}

/// Waits until this number of payloads is collected, or until none has come for as long as `patience`. Returns the
/// number collected.
pub(crate) fn wait_for(workers: &mut [Worker], count: u64, patience: Duration) -> u64 {
    let (mut last, mut since) = (0, Instant::now());
    loop {
        let collected = ask_all(workers, &Job::Collected).iter().map(|reply| reply.count).sum();
        if collected > last {
            (last, since) = (collected, Instant::now());
        }
        if collected >= count || since.elapsed() > patience {
            return collected;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
