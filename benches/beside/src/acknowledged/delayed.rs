//! Delayed jobs: from the due time to the start of the handler.

use std::time::Duration;

use super::{QUEUE, columns, systems, wait, workers};
use crate::bench::{Bench, Measured, Workers};
use crate::contest::{Contest, Line};
use crate::job::{Handler, Job, Offer, Work};
use crate::repeat::Outcome;
use crate::spread::{Better, quantile};
use crate::system::System;

const PER_SECOND: f64 = 500.0;
const CONCURRENCY: usize = 64;

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    let mut workers = workers(bench);
    let (systems, rounds) = (systems(bench), bench.effort.rounds_afresh);
    let turns = bench
        .take_turns("delayed jobs", &systems, rounds, |bench, system| turn(bench, &mut workers, *system));
    let row = |(name, part): (&str, f64)| {
        let late = turns.iter().map(|rounds| rounds.iter().map(|late| quantile(late, part)).collect());
        Line::new(name, "ms", Better::Less, columns(&systems, late))
    };
    let about = "From the time that the caller asked for until the handler starts. 500 messages a second \
                 with random delays, 50 to 3,000 ms in a full run, offered by the process that handles \
                 them, with a concurrency of 64. asynq looks for what is due every five seconds, which is \
                 its default.";
    let rows = [("p50", 0.5), ("p99", 0.99), ("max", 1.0)].map(row).into();
    let contest = Contest { name: "delayed jobs".into(), about: about.into(), rows };
    Measured { contests: vec![contest], ..Measured::default() }
}

/// Lateness in ms, sorted.
fn turn(bench: &mut Bench, workers: &mut Workers, system: System) -> Outcome<Vec<f64>> {
    let (count, delay) = (bench.effort.late_entries, bench.effort.late_delays);
    workers.turn(bench, system, |_, worker| {
        worker.ask(&Work::new(QUEUE, CONCURRENCY, Handler::Late).job())?;
        worker.ask(&Offer { delay, count, per_second: PER_SECOND, ..Offer::new(QUEUE) }.job())?;
        wait(worker, count, Duration::from_millis(delay.1 + 10_000))?;
        let late = worker.ask(&Job::Stop)?.late;
        let mut late: Vec<f64> = late.into_iter().map(|micros| micros as f64 / 1_000.0).collect();
        late.sort_unstable_by(f64::total_cmp);
        Ok(late)
    })
}
