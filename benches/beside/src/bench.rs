//! What every measurement has: the server, a worker of each system that has run for a while, and taking turns.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::effort::Effort;
use crate::job::{Job, Offer};
use crate::redisson::Settings;
use crate::results::{Plot, Table};
use crate::server::Server;
use crate::tuning::tune;
use crate::worker::{Sides, System, Worker};

/// What a measurement gives.
pub(crate) type Measured = (Vec<Table>, Vec<Plot>);

pub(crate) struct Bench {
    pub(crate) effort: Effort,
    pub(crate) server: Server,
    /// Redisson's.
    settings: Settings,
    /// What was tried for that, and how many offers a second it gave.
    pub(crate) tuning: Vec<(Settings, f64)>,
    /// One process of each system, from the first measurement to the last. Those that want fresh ones start their own.
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
        let (settings, tuning) = tune(&effort, &mut server, |what| progress.set_message(what));
        let workers = Sides::of(|system| Worker::start(system, &server.url(system), settings.with_takers(1)));
        let mut bench = Self { effort, server, settings, tuning, workers, progress, begun };
        for system in System::BOTH {
            bench.server.clear();
            warm_up(bench.workers.get_mut(system), effort.warm_up);
        }
        bench
    }

    pub(crate) fn worker(&mut self, system: System) -> &mut Worker {
        self.workers.get_mut(system)
    }

    /// Fresh processes, and connections for so many takers in each.
    pub(crate) fn start_workers(&self, system: System, number: usize, takers: usize) -> Vec<Worker> {
        Worker::start_many(system, &self.server.url(system), self.settings.with_takers(takers), number)
    }

    pub(crate) fn settings(&self) -> Settings {
        self.settings
    }

    pub(crate) fn ask(&mut self, system: System, job: &Job) -> crate::job::Reply {
        self.worker(system).ask(job)
    }

    /// Lets both measure in turns, as often as that; who goes first changes from round to round. The server is empty
    /// each time.
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

/// Offers and takes for a while, as the measurements do.
pub(crate) fn warm_up(worker: &mut Worker, millis: u64) {
    for batch in [1, 16] {
        let job = Offer { concurrency: 64, batch, millis: millis / 4, ..Offer::new("warm-up") };
        worker.ask(&job.job());
    }
    worker.ask(&Job::Collect { queue: "warm-up-due".into(), takers: 1 });
    let due = Offer { delay: (0, 50), concurrency: 16, millis: millis / 2, ..Offer::new("warm-up-due") };
    let offered = worker.ask(&due.job()).count;
    wait_for(worker, offered, Duration::from_secs(5));
    worker.ask(&Job::Stop);
    worker.ask(&Job::Close);
}

/// Until so much is collected, or for so long without any more; how much it is.
pub(crate) fn wait_for(worker: &mut Worker, count: u64, patience: Duration) -> u64 {
    wait_for_all(std::slice::from_mut(worker), count, patience)
}

pub(crate) fn wait_for_all(workers: &mut [Worker], count: u64, patience: Duration) -> u64 {
    let (mut last, mut since) = (0, Instant::now());
    loop {
        let collected = workers.iter_mut().map(|worker| worker.ask(&Job::Collected).count).sum();
        if collected > last {
            (last, since) = (collected, Instant::now());
        }
        if collected >= count || since.elapsed() > patience {
            return collected;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
