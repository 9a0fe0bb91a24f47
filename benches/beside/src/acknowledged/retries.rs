//! A storm of retries: every message fails once, and is due again after a millisecond.

use std::time::{Duration, Instant};

use super::{QUEUE, columns, systems, wait, workers};
use crate::bench::{Bench, Measured, Workers};
use crate::contest::{Contest, Line};
use crate::job::{Fill, Handler, Job, Work};
use crate::repeat::Outcome;
use crate::report;
use crate::spread::Better;
use crate::system::System;

const CONCURRENCY: usize = 64;

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    let mut workers = workers(bench);
    let (systems, rounds) = (systems(bench), bench.effort.rounds_afresh);
    let count = bench.effort.taken / 3;
    let rates = bench
        .take_turns("retries", &systems, rounds, |bench, system| turn(bench, &mut workers, *system, count));
    let what = format!("{} messages that fail once", report::count(count));
    let line = Line::new(what, "messages/s", Better::More, columns(&systems, rates));
    let about = "From the start of the worker, with a concurrency of 64, until every message has been \
                 handled a second time. asynq looks for what is due every five seconds, which is its \
                 default.";
    let contest = Contest { name: "retries".into(), about: about.into(), rows: vec![line] };
    Measured { contests: vec![contest], ..Measured::default() }
}

fn turn(bench: &mut Bench, workers: &mut Workers, system: System, count: u64) -> Outcome<f64> {
    workers.turn(bench, system, |_, worker| {
        worker.ask(&Fill { handler: Handler::FailOnce, ..Fill::new(QUEUE, count) }.job())?;
        let begun = Instant::now();
        worker.ask(&Work::new(QUEUE, CONCURRENCY, Handler::FailOnce).job())?;
        wait(worker, count, Duration::from_secs(15))?;
        let seconds = begun.elapsed().as_secs_f64();
        worker.ask(&Job::Stop)?;
        Ok(count as f64 / seconds)
    })
}
