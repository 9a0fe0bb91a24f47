//! Very much at once: offers of as many tasks, and a payload on each of many lists on which takers wait.

use std::thread::sleep;
use std::time::{Duration, Instant};

use redelay_fixture::redis::pipe;

use crate::bench::{Bench, Measured};
use crate::contest::{Aim, Column, Contest, Line};
use crate::idle::wait_until_open;
use crate::job::{Collect, Job, Offer, names, now, payload};
use crate::repeat::Outcome;
use crate::report::count;
use crate::spread::Better;
use crate::system::System;
use crate::worker::{Worker, wait_and_look};

const QUEUE: &str = "many";
const SIZE: usize = 100;
/// What a task offers on average.
const EACH: u64 = 5;
/// The takers wait and the queues are open when no script has run for this long.
const QUIET: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    let (tasks, lists) = (bench.effort.many_tasks, bench.effort.many_lists);
    let offers = line(
        bench,
        format!("{} tasks that offer", count(tasks as u64)),
        "offers/s",
        Better::More,
        Aim::AtLeast { of: System::Redelay.name().into(), least: 200_000.0 },
        |_, worker| offers(worker, tasks),
    );
    let takes = line(
        bench,
        format!("a payload on each of {} lists", count(lists as u64)),
        "s until all are taken",
        Better::Less,
        Aim::AtMost { of: System::Redelay.name().into(), most: 1.0 },
        |bench, worker| takes(bench, worker, lists),
    );
    let about = "One process of redelay. All tasks offer to the same queue at the same time, each of them one payload of 100 bytes \
                 after the other, five on average. Each list has one taker, which waits before a third client puts one payload \
                 into each list, all of them with one pipeline. The time includes that of the pipeline.";
    let contest =
        Contest { name: "very much at once".into(), about: about.into(), rows: vec![offers, takes] };
    Measured { contests: vec![contest], ..Measured::default() }
}

/// A row of redelay alone.
fn line(
    bench: &mut Bench,
    what: String,
    unit: &str,
    better: Better,
    aim: Aim,
    mut turn: impl FnMut(&mut Bench, &mut Worker) -> Outcome<f64>,
) -> Line {
    let rounds = (0..bench.effort.rounds).map(|_| {
        bench.progress.set_message(what.clone());
        bench.turn_shared(System::Redelay, &what, &mut turn)
    });
    let column = Column { of: System::Redelay.name().into(), rounds: rounds.collect() };
    Line::new(what, unit, better, vec![column]).aim(aim)
}

fn offers(worker: &mut Worker, tasks: usize) -> Outcome<f64> {
    let job = Offer { concurrency: tasks, count: EACH * tasks as u64, size: SIZE, ..Offer::new(QUEUE) };
    Ok(worker.ask(&job.job())?.per_second())
}

fn takes(bench: &mut Bench, worker: &mut Worker, lists: usize) -> Outcome<f64> {
    worker.ask(&Collect { queues: lists, ..Collect::new(QUEUE, lists) }.job())?;
    wait_until_open(&mut bench.server, worker, lists)?;
    let (mut before, mut scripts) = (-1.0, bench.server.counters().scripts);
    while scripts > before {
        sleep(QUIET);
        (before, scripts) = (scripts, bench.server.counters().scripts);
    }
    let mut pipeline = pipe();
    for list in names(QUEUE, lists) {
        pipeline.cmd("RPUSH").arg(list).arg(payload(now(), SIZE)).ignore();
    }
    let mut producer = bench.server.connect();
    let begun = Instant::now();
    pipeline.exec(&mut producer).expect("RPUSH");
    let workers = std::slice::from_mut(worker);
    let taken = wait_and_look(workers, lists as u64, PATIENCE, Duration::from_millis(2))?;
    let seconds = begun.elapsed().as_secs_f64();
    workers[0].ask(&Job::Stop)?;
    if taken < lists as u64 {
        return Err(workers[0].failure(&format!("has taken {taken} of {lists} payloads")));
    }
    Ok(seconds)
}
