//! The worker on an alternative: this program, which starts itself again. It does those jobs that the
//! measurement needs.

use std::io::stdin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::in_process::Timers;
use super::polling::Polled;
use super::store::{Store, Taken};
use crate::job::{Collect, Job, Offer, Reply, now, payload};
use crate::redelay::answer;

/// Runs jobs until the input ends. `interval` is that of the polls, in ms; zero stands for timers in this
/// process.
pub(crate) fn work(url: &str, interval: u64) {
    answer(&Reply::default());
    let mut running: Option<(Box<dyn Store>, Taken, Receiver<i64>)> = None;
    for line in stdin().lines() {
        let job = serde_json::from_str(&line.expect("a readable line")).expect("a job");
        let reply = match (job, &mut running) {
            (Job::Collect(Collect { queue, .. }), _) => {
                let (late, received) = channel();
                let taken = Taken { late, count: Arc::default() };
                let store: Box<dyn Store> = match interval {
                    0 => Box::new(Timers::start(taken.clone())),
                    _ => Box::new(Polled::start(url, &queue, Duration::from_millis(interval), taken.clone())),
                };
                running = Some((store, taken, received));
                Reply::default()
            }
            (Job::Offer(job), Some((store, ..))) => offer(&mut **store, &job),
            (Job::Collected, Some((_, taken, _))) => {
                Reply { count: taken.count.load(Relaxed), ..Reply::default() }
            }
            (Job::Stop, Some((_, _, received))) => {
                let late: Vec<_> = received.try_iter().collect();
                running = None;
                Reply { count: late.len() as u64, late, ..Reply::default() }
            }
            (job, _) => Reply { error: Some(format!("cannot do {job:?}")), ..Reply::default() },
        };
        answer(&reply);
    }
}

fn offer(store: &mut dyn Store, job: &Offer) -> Reply {
    let begun = Instant::now();
    for n in 0..job.count {
        let at = begun + Duration::from_secs_f64(n as f64 / job.per_second);
        sleep(at.saturating_duration_since(Instant::now()));
        let delay = fastrand::u64(job.delay.0..=job.delay.1);
        // A set holds no two equal ones.
        let message = format!("{}{n}", payload(now() + delay as i64 * 1_000, job.size));
        store.offer(message, Duration::from_millis(delay));
    }
    Reply { count: job.count, seconds: begun.elapsed().as_secs_f64(), ..Reply::default() }
}
