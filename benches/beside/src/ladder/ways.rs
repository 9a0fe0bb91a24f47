//! The ways to make a call, and their processes.

use std::collections::BTreeMap;
use std::slice::from_mut;

use super::rung::Rung;
use crate::bench::Bench;
use crate::job::Job;
use crate::repeat::Outcome;
use crate::settings::Settings;
use crate::system::System;
use crate::warm_up::warm_up;
use crate::worker::Worker;

pub(super) const QUEUE: &str = "ladder";
/// The most takers.
pub(super) const TAKERS: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    OneThread,
    TwoThreads,
    Rung(Rung),
    Redisson,
}

pub(super) type Workers = BTreeMap<Way, Worker>;

impl Way {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::OneThread => "redelay, 1 thread",
            Self::TwoThreads => "redelay, 2 threads",
            Self::Rung(rung) => rung.name(),
            Self::Redisson => System::Redisson.name(),
        }
    }

    pub(super) fn start(self, bench: &Bench) -> Outcome<Worker> {
        let threads = if self == Self::OneThread { 1 } else { 2 };
        let settings = Settings { worker_threads: threads, ..bench.tuning.best }.with_takers(TAKERS);
        let url = |system| bench.server.url(system);
        let mut worker = match self {
            Self::Redisson => Worker::start(System::Redisson, &url(System::Redisson), settings)?,
            Self::Rung(rung) => {
                return Worker::start_rung(&url(System::Redelay), rung.argument(), settings);
            }
            _ => Worker::start(System::Redelay, &url(System::Redelay), settings)?,
        };
        warm_up(from_mut(&mut worker), bench.effort.warm_up)?;
        Ok(worker)
    }

    /// Its process, or a new one if the last turn failed. The server is empty.
    fn again(self, bench: &mut Bench, workers: &mut Workers) -> Outcome<Worker> {
        let worker = match workers.remove(&self) {
            Some(worker) => worker,
            None => self.start(bench)?,
        };
        bench.server.clear();
        Ok(worker)
    }
}

/// Measures with the process of this way, which serves the next turn, too, if this one succeeds.
pub(super) fn with_worker<T>(
    bench: &mut Bench,
    workers: &mut Workers,
    way: Way,
    measure: impl FnOnce(&mut Bench, &mut Worker) -> Outcome<T>,
) -> Outcome<T> {
    let mut worker = way.again(bench, workers)?;
    let measured = measure(bench, &mut worker)?;
    worker.ask(&Job::Close)?;
    workers.insert(way, worker);
    Ok(measured)
}
