//! Finds the settings with which each system is fastest on this machine. Each is measured with these, not
//! with its defaults.

use std::slice::from_mut;

use serde::{Deserialize, Serialize};

use crate::effort::Effort;
use crate::job::Offer;
use crate::redisson;
use crate::repeat::{Outcome, Repeats};
use crate::server::Server;
use crate::settings::{Settings, cores};
use crate::system::System;
use crate::warm_up::warm_up;
use crate::worker::Worker;

/// Offers in flight while settings are compared.
const CONCURRENCY: usize = 64;

/// The settings with the most offers per second, and the results of all others.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Tuning {
    pub(crate) best: Settings,
    pub(crate) worker_threads: Vec<(usize, f64)>,
    pub(crate) redisson: Vec<(redisson::Settings, f64)>,
}

/// Tries several settings for each system.
pub(crate) fn tune(
    effort: &Effort,
    server: &mut Server,
    repeats: &Repeats,
    mut tell: impl FnMut(String),
) -> Tuning {
    let mut rate = |system, settings| repeats.turn("tuning", || offers(effort, server, system, settings));
    let threads = if cores() == 1 { vec![1] } else { vec![1, cores()] };
    let worker_threads = threads.into_iter().map(|worker_threads| {
        tell(format!("tuning redelay: {worker_threads} threads"));
        let settings = Settings { worker_threads, ..Settings::defaults() };
        (worker_threads, rate(System::Redelay, settings))
    });
    let worker_threads: Vec<_> = worker_threads.collect();
    let pools = effort.pools.iter().flat_map(|&connections| {
        [cores(), redisson::DEFAULTS.netty_threads]
            .map(|netty_threads| redisson::Settings { connections, netty_threads })
    });
    let redisson = pools.chain([redisson::DEFAULTS]).map(|redisson| {
        let redisson::Settings { connections, netty_threads } = redisson;
        tell(format!("tuning Redisson: {connections} connections, {netty_threads} threads"));
        let settings = Settings { redisson, ..Settings::defaults() };
        (redisson, rate(System::Redisson, settings))
    });
    let redisson: Vec<_> = redisson.collect();
    let best = Settings { worker_threads: best(&worker_threads), redisson: best(&redisson) };
    Tuning { best, worker_threads, redisson }
}

fn best<T: Copy>(tried: &[(T, f64)]) -> T {
    tried.iter().max_by(|one, other| one.1.total_cmp(&other.1)).expect("one at least").0
}

fn offers(effort: &Effort, server: &mut Server, system: System, settings: Settings) -> Outcome<f64> {
    let mut worker = Worker::start(system, &server.url(system), settings.with_takers(1))?;
    warm_up(from_mut(&mut worker), effort.warm_up / 2)?;
    server.clear();
    let job = Offer { concurrency: CONCURRENCY, millis: effort.millis * 2, ..Offer::new("tuning") };
    Ok(worker.ask(&job.job())?.per_second())
}
