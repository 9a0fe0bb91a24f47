//! Lateness: the time from the due time that the caller asked for until a taker has the payload.

use std::time::Duration;

use crate::bench::{Bench, Measured};
use crate::job::{Collect, Job, Offer};
use crate::repeat::Outcome;
use crate::results::{Axis, Goal, Line, Plot, Row, Table};
use crate::spread::{Better, quantile};
use crate::system::{Sides, System};
use crate::warm_up::warm_up;
use crate::worker::{Worker, ask_all, wait_for};

/// Other offers per second at the same time, on a queue of their own.
const BESIDE: f64 = 5_000.0;
/// Measured offers per second, of all processes together.
const RATE: f64 = 1_000.0;
/// Points of a line in the plot.
const POINTS: usize = 400;

#[derive(Clone, Copy)]
struct Case {
    processes: usize,
    busy: bool,
}

impl Case {
    fn name(self) -> String {
        let load = if self.busy { "5,000 other offers/s" } else { "quiet" };
        let processes =
            if self.processes == 1 { "1 process".into() } else { format!("{} processes", self.processes) };
        format!("{processes}, {load}")
    }
}

/// One turn of one system.
#[derive(Clone, Default)]
struct Turn {
    /// Lateness in ms, sorted.
    late: Vec<f64>,
    missing: u64,
    scripts: f64,
}

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    for &(processes, busy) in bench.effort.late_cases {
        let case = Case { processes, busy };
        let rounds = if processes == 1 { bench.effort.late_rounds } else { bench.effort.rounds_afresh };
        let what = format!("lateness: {}", case.name());
        let turns = bench.alternate(&what, rounds, |bench, system| turn(bench, system, case));
        rows.extend(case_rows(case, &turns));
        if processes == 1 {
            lines.extend(System::BOTH.map(|system| line(system, case, &turns)));
        }
    }
    let about = "From the time that the caller asked for (its clock when it offers, plus the delay) until a `take` has \
                 returned, so redelay's rounding up to whole milliseconds counts. Delays are random, 50 to 3,000 ms in a full run. \
                 Each round has fresh processes, since Redisson draws the tick of its timer once for each client. The \
                 other offers come from another process of the same system and go to another queue. Scripts are those \
                 that transfer and take, without those of the offers.";
    let table = Table { name: "lateness".into(), about: about.into(), rows };
    let plot = Plot {
        file: "lateness.svg".into(),
        title: "Lateness: share of messages taken, by how late they are".into(),
        x: Axis { name: "ms after the due time".into(), log: true, early: Some(0.1) },
        y: Axis { name: "% of the messages".into(), log: false, early: None },
        lines,
    };
    Measured { tables: vec![table], plots: vec![plot], ..Measured::default() }
}

fn turn(bench: &mut Bench, system: System, case: Case) -> Outcome<Turn> {
    let takers = 4_usize.div_ceil(case.processes);
    let mut workers = bench.start_workers(system, case.processes, takers)?;
    warm_up(&mut workers, bench.effort.warm_up / 2)?;
    let mut beside = if case.busy { bench.start_workers(system, 1, 1)? } else { Vec::new() };
    let (count, delay) = (bench.effort.late_entries, bench.effort.late_delays);
    warm_up(&mut beside, bench.effort.warm_up / 2)?;
    rehearse(&mut workers)?;
    for beside in &mut beside {
        // As long as the entries are offered, wait and are taken.
        let seconds = delay.1 as f64 / 1_000.0 + 1.5;
        let job = Offer { per_second: BESIDE, count: (BESIDE * seconds) as u64, ..Offer::new("beside") };
        beside.begin(&job.job())?;
    }
    ask_all(&mut workers, &Collect::new("late", takers).job())?;
    let before = bench.server.counters();
    let (count, per_second) = (count / case.processes as u64, RATE / case.processes as f64);
    let offered = ask_all(&mut workers, &Offer { delay, count, per_second, ..Offer::new("late") }.job())?;
    let offered: u64 = offered.iter().map(|reply| reply.count).sum();
    let collected = wait_for(&mut workers, offered, Duration::from_millis(delay.1 + 3_000))?;
    let scripts = bench.server.counters().since(before).scripts - offered as f64;
    // The offers beside it are scripts, too, and their number so far is not known.
    let scripts = if case.busy { f64::NAN } else { scripts / offered as f64 };
    let late = ask_all(&mut workers, &Job::Stop)?.into_iter().flat_map(|reply| reply.late);
    let mut late: Vec<f64> = late.map(|micros| micros as f64 / 1_000.0).collect();
    late.sort_unstable_by(f64::total_cmp);
    Ok(Turn { late, missing: offered - collected.min(offered), scripts })
}

/// Offers and takes once without counting anything.
fn rehearse(workers: &mut [Worker]) -> Outcome<()> {
    ask_all(workers, &Collect::new("rehearsal", 1).job())?;
    let (count, per_second) = (RATE as u64 / workers.len() as u64, RATE / workers.len() as f64);
    let offer = Offer { delay: (0, 300), count, per_second, ..Offer::new("rehearsal") };
    let offered = ask_all(workers, &offer.job())?.iter().map(|reply| reply.count).sum();
    wait_for(workers, offered, Duration::from_secs(5))?;
    ask_all(workers, &Job::Stop)?;
    ask_all(workers, &Job::Close)?;
    Ok(())
}

fn case_rows(case: Case, turns: &[Sides<Turn>]) -> Vec<Row> {
    let values =
        |value: &dyn Fn(&Turn) -> f64| turns.iter().map(|round| round.map(value)).collect::<Vec<_>>();
    let name = case.name();
    let mut rows = Vec::new();
    for (label, part) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)] {
        let rounds = values(&|turn| quantile(&turn.late, part));
        let mut row = Row::new(format!("{label}, {name}"), "ms", Better::Less, rounds);
        if label == "p99" && case.processes == 1 && !case.busy {
            row = row.goal(Goal::Ratio(8.0));
        }
        rows.push(row);
    }
    let missing = turns
        .iter()
        .fold((0, 0), |sum, round| (sum.0 + round.redelay.missing, sum.1 + round.redisson.missing));
    if missing != (0, 0) {
        rows[0].note = format!("not delivered within 3 s: redelay {}, Redisson {}", missing.0, missing.1);
    }
    if !case.busy {
        let mut row =
            Row::new(format!("scripts per entry, {name}"), "", Better::Less, values(&|turn| turn.scripts));
        if case.processes == 1 {
            row = row.goal(Goal::AtMost(2.0));
        }
        rows.push(row);
    }
    rows
}

/// A line of the plot, of all rounds together.
fn line(system: System, case: Case, turns: &[Sides<Turn>]) -> Line {
    let mut late: Vec<f64> = turns.iter().flat_map(|round| round.get(system).late.clone()).collect();
    late.sort_unstable_by(f64::total_cmp);
    let parts = (1..=POINTS).map(|n| n as f64 / POINTS as f64);
    let points = parts.map(|part| (quantile(&late, part), part * 100.0)).collect();
    let load = if case.busy { ", 5,000 other offers/s" } else { "" };
    Line { label: format!("{}{load}", system.name()), system: Some(system), points }
}
