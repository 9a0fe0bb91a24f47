//! Takes per second: of payloads that are ready, and of payloads that arrive while the takers wait.

use std::slice::from_mut;
use std::time::{Duration, Instant};

use redelay_fixture::redis::cmd;

use crate::bench::{Bench, Measured, Workers};
use crate::job::{Job, payload};
use crate::repeat::Outcome;
use crate::report::count;
use crate::results::{Axis, Goal, Line, Plot, Row, Table};
use crate::spread::Better;
use crate::system::System;
use crate::warm_up::warm_up;
use crate::worker::Worker;

const LIST: &str = "ready";

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    let most = bench.effort.takers.iter().copied().max().unwrap_or(1);
    let mut workers = Workers::new(move |bench, system| {
        let mut worker = bench.start_workers(system, 1, most)?.remove(0);
        warm_up(from_mut(&mut worker), bench.effort.warm_up / 2)?;
        // The measured work, for as long as a few rounds of it.
        for _ in 0..4 {
            ready(bench, &mut worker, most.min(64))?;
        }
        Ok(worker)
    });
    workers.start(bench, System::BOTH);
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    for arriving in [false, true] {
        let mut points = System::BOTH.map(|system| (system, Vec::new()));
        for &takers in bench.effort.takers {
            let row = row(bench, &mut workers, takers, arriving);
            for (system, points) in &mut points {
                points.push((takers as f64, row.of(*system).median));
            }
            rows.push(row);
        }
        let kind = if arriving { "arriving one by one" } else { "ready" };
        lines.extend(points.map(|(system, points)| Line {
            label: format!("{}, {kind}", system.name()),
            system: Some(system),
            points,
        }));
    }
    let about = "Each taker takes the next payload as soon as it has one. Redisson's takers are chains of `takeAsync`, each with \
                 a connection of its own, which Redisson needs. Payloads that arrive one by one are put with a plain `RPUSH` by a \
                 third client, which waits for each reply. It limits the rate of all takers.";
    let table = Table { name: "take".into(), about: about.into(), rows };
    let plot = Plot {
        file: "take.svg".into(),
        title: "Takes per second, 100 bytes each".into(),
        x: Axis { name: "takers".into(), log: true, early: None },
        y: Axis { name: "takes/s".into(), log: true, early: None },
        lines,
    };
    Measured { tables: vec![table], plots: vec![plot], ..Measured::default() }
}

fn row(bench: &mut Bench, workers: &mut Workers, takers: usize, arriving: bool) -> Row {
    let kind = if arriving { "arriving one by one" } else { "ready" };
    let s = if takers == 1 { "" } else { "s" };
    let what = format!("{} taker{s}, {kind}", count(takers as u64));
    let rounds = bench.effort.rounds;
    let measured = bench.alternate_with(workers, &format!("take: {what}"), rounds, |bench, worker| {
        if arriving { hand_off(bench, worker, takers) } else { ready(bench, worker, takers) }
    });
    let row = Row::new(what, "takes/s", Better::More, measured);
    match takers {
        64 if !arriving => row.goal(Goal::Ratio(5.0)),
        1 if !arriving => row.goal(Goal::Ratio(0.95)),
        8 if !arriving => row.goal(Goal::Ratio(0.85)),
        _ => row,
    }
}

fn ready(bench: &mut Bench, worker: &mut Worker, takers: usize) -> Outcome<f64> {
    let count = bench.effort.taken;
    // The first takes make the connections and are not counted.
    bench.server.fill(LIST, takers as u64, "x");
    worker.ask(&Job::Take { queue: LIST.into(), takers, count: takers as u64 })?;
    bench.server.fill(LIST, count, &payload(0, 100));
    Ok(worker.ask(&Job::Take { queue: LIST.into(), takers, count })?.per_second())
}

fn hand_off(bench: &mut Bench, worker: &mut Worker, takers: usize) -> Outcome<f64> {
    let count = bench.effort.taken;
    worker.begin(&Job::Take { queue: LIST.into(), takers, count })?;
    let waiting = Instant::now();
    while bench.server.blocked_clients() == 0 {
        if waiting.elapsed() > Duration::from_secs(30) {
            return Err(worker.failure("has no taker that waits on the server after 30 s"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // Time for each of Redisson's takers to get a connection. redelay's takers share one.
    std::thread::sleep(Duration::from_millis(200));
    let mut producer = bench.server.connect();
    let payload = payload(0, 100);
    let begun = Instant::now();
    for _ in 0..count {
        cmd("RPUSH").arg(LIST).arg(&payload).exec(&mut producer).expect("RPUSH");
    }
    worker.end()?;
    Ok(count as f64 / begun.elapsed().as_secs_f64())
}
