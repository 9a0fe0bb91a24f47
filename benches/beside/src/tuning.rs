//! Which settings suit Redisson best here: it is measured with these, whatever its defaults are.

use std::slice::from_mut;
use std::thread::available_parallelism;

use crate::bench::warm_up;
use crate::effort::Effort;
use crate::job::Offer;
use crate::redisson::{DEFAULTS, Settings};
use crate::server::Server;
use crate::worker::{System, Worker};

/// In flight while settings are compared.
const CONCURRENCY: usize = 64;

/// Tries some, and returns the one with the most offers a second, and what each of them reached.
pub(crate) fn tune(
    effort: &Effort,
    server: &mut Server,
    mut tell: impl FnMut(String),
) -> (Settings, Vec<(Settings, f64)>) {
    let threads = available_parallelism().map_or(2, usize::from);
    let few = effort.pools.iter().flat_map(|&connections| {
        [threads, DEFAULTS.netty_threads].map(|netty_threads| Settings { connections, netty_threads })
    });
    let tried: Vec<_> = few
        .chain([DEFAULTS])
        .map(|settings| {
            tell(format!(
                "tuning Redisson: {} connections, {} threads",
                settings.connections, settings.netty_threads
            ));
            (settings, offers(effort, server, settings))
        })
        .collect();
    let best = tried.iter().max_by(|one, other| one.1.total_cmp(&other.1)).expect("one at least");
    (best.0, tried)
}

fn offers(effort: &Effort, server: &mut Server, settings: Settings) -> f64 {
    let mut worker = Worker::start(System::Redisson, &server.url(System::Redisson), settings.with_takers(1));
    warm_up(from_mut(&mut worker), effort.warm_up / 2);
    server.clear();
    let job = Offer { concurrency: CONCURRENCY, millis: effort.millis * 2, ..Offer::new("tuning") };
    worker.ask(&job.job()).per_second()
}
