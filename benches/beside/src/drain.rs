//! Moving entries that are already due: how fast, and for how long one call blocks the server.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::bench::{Bench, Measured};
use crate::effort::Drain;
use crate::job::{Job, NOT_SOON, payload};
use crate::report::count;
use crate::results::{Axis, Goal, Line, Plot, Row, Table};
use crate::server::Entry;
use crate::spread::{Better, spread};
use crate::system::{Sides, System};

/// The order of the due times in the list, which is in the order of the offers.
const ORDERS: [&str; 3] = ["in order", "random", "reverse"];
/// Orders in which some entries are not due: every hundredth, or every tenth. Only the largest drain has
/// them.
const NOT_DUE: [(&str, u64); 2] = [("random, 1 % not due", 100), ("random, 10 % not due", 10)];
/// The number of entries with which the orders of `GOALS` are the hardest cases.
const MOST: u64 = 1_000_000;
/// The least entries moved in a second, and the most seconds until the first move.
const GOALS: [(&str, f64, f64); 3] =
    [("random", 200_000.0, 0.1), (NOT_DUE[0].0, 100_000.0, 1.0), (NOT_DUE[1].0, 30_000.0, 1.0)];
/// The most ms of a call of these.
const LONGEST: f64 = 50.0;
/// The queue that is built and then copied for each turn.
const TEMPLATE: &str = "template";
/// The first queue that a worker opens for the name "drain".
const QUEUE: &str = "drain-0";
/// The interval between two looks at how many entries are left, by how long the drain may take.
fn look(pending: u64) -> Duration {
    Duration::from_micros(if pending <= 10_000 { 200 } else { 5_000 })
}

/// One turn of one system.
struct Turn {
    /// The number of entries moved by a time: seconds, entries.
    progress: Vec<(f64, u64)>,
    longest: f64,
}

impl Turn {
    fn moved(&self) -> u64 {
        self.progress.last().map_or(0, |(_, moved)| *moved)
    }

    /// Seconds until something was moved.
    fn first(&self) -> f64 {
        self.progress.iter().find(|(_, moved)| *moved > 0).map_or(f64::INFINITY, |(seconds, _)| *seconds)
    }

    /// Entries moved per second, until this number was moved.
    fn rate(&self, of: u64) -> f64 {
        let reached = self.progress.iter().find(|(_, moved)| *moved >= of);
        reached.map_or(0.0, |(seconds, _)| of as f64 / seconds)
    }
}

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    let mut rows = Vec::new();
    let mut lines: Vec<Line> = Vec::new();
    for order in ORDERS {
        let mut points = System::BOTH.map(|system| (system, Vec::new()));
        for drain in bench.effort.drains {
            let turns = turns(bench, order, *drain);
            for (system, points) in &mut points {
                let rates = turns.iter().map(|round| round.get(*system)).map(|turn| turn.rate(turn.moved()));
                points.push((drain.pending as f64, spread(rates).median));
            }
            rows.extend(case_rows(order, *drain, &turns));
        }
        lines.extend(points.map(|(system, points)| Line {
            label: format!("{}, {order}", system.name()),
            system: Some(system),
            points,
        }));
    }
    let largest = bench.effort.drains.iter().copied().max_by_key(|drain| drain.pending);
    let largest = largest.expect("one at least");
    for (order, _) in NOT_DUE {
        rows.extend(case_rows(order, largest, &turns(bench, order, largest)));
    }
    let about = "Everything is due when the queue is opened, unless a row says otherwise. The time ends when nothing is due. A drain \
                 that takes too long is cut off. Then both rates are those of the number of entries that the slower system has moved, so \
                 that both are compared over the same entries. The longest call is the longest script in `SLOWLOG`.";
    let table = Table { name: "drain".into(), about: about.into(), rows };
    let plot = Plot {
        file: "drain.svg".into(),
        title: "Moving due entries, by how many are pending".into(),
        x: Axis { name: "pending entries".into(), log: true, early: None },
        y: Axis { name: "moved/s".into(), log: true, early: None },
        lines,
    };
    Measured { tables: vec![table], plots: vec![plot], ..Measured::default() }
}

fn turns(bench: &mut Bench, order: &str, drain: Drain) -> Vec<Sides<Turn>> {
    let entries = entries(order, drain.pending);
    let due = due(order, drain.pending);
    let what = format!("drain: {} {order}", drain.pending);
    bench.alternate_shared(&what, drain.rounds, |bench, worker| {
        bench.server.store(TEMPLATE, &entries);
        bench.server.copy(TEMPLATE, QUEUE);
        bench.server.delete(TEMPLATE);
        bench.server.reset_slowlog();
        let begun = Instant::now();
        worker.begin(&Job::Open { queue: "drain".into(), number: 1 })?;
        let mut progress = Vec::new();
        loop {
            let moved = drain.pending - bench.server.pending(QUEUE);
            let seconds = begun.elapsed().as_secs_f64();
            if progress.last().is_none_or(|(_, last)| *last < moved) {
                progress.push((seconds, moved));
            }
            if moved >= due || seconds > drain.limit {
                break;
            }
            std::thread::sleep(look(drain.pending));
        }
        worker.end()?;
        worker.ask(&Job::Close)?;
        Ok(Turn { progress, longest: bench.server.longest_script() })
    })
}

/// Every how many entries one is not due.
fn not_due(order: &str) -> Option<u64> {
    NOT_DUE.iter().find(|(name, _)| *name == order).map(|(_, one_in)| *one_in)
}

/// How many of them are due.
fn due(order: &str, pending: u64) -> u64 {
    pending - not_due(order).map_or(0, |one_in| pending / one_in)
}

/// The entries in the order of the list, the same ones each time.
fn entries(order: &str, number: u64) -> Vec<Entry> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    // One millisecond apart, and due unless the order says otherwise.
    let mut dues: Vec<u64> = (0..number).map(|n| now - 1_000 - number + n).collect();
    match order {
        "in order" => {}
        "reverse" => dues.reverse(),
        _ => fastrand::Rng::with_seed(6).shuffle(&mut dues),
    }
    if let Some(one_in) = not_due(order) {
        dues.iter_mut().step_by(one_in as usize).for_each(|due| *due += NOT_SOON);
    }
    let entry = |due: u64| {
        let payload = payload(due as i64 * 1_000, 100);
        // As Redisson packs it: an id of eight bytes.
        let head = [&[8][..], &due.to_be_bytes(), &(payload.len() as u64).to_le_bytes()].concat();
        [head, payload.into_bytes()].concat()
    };
    dues.into_iter().map(|due| Entry { due, bytes: entry(due) }).collect()
}

fn case_rows(order: &str, drain: Drain, turns: &[Sides<Turn>]) -> Vec<Row> {
    let rates = turns.iter().map(|round| {
        let both = round.redelay.moved().min(round.redisson.moved());
        round.map(|turn| turn.rate(both))
    });
    let name = format!("{} {order}", count(drain.pending));
    let mut rate = Row::new(name.clone(), "moved/s", Better::More, rates.collect());
    if (drain.pending, order) == (100_000, "random") {
        rate = rate.goal(Goal::Ratio(50.0));
    }
    let due = due(order, drain.pending);
    for system in System::BOTH {
        let moved = spread(turns.iter().map(|round| round.get(system).moved() as f64)).median;
        if (moved as u64) < due {
            let all = if rate.note.is_empty() { "" } else { "; " };
            rate.note +=
                &format!("{all}{} had moved {} after {} s", system.name(), count(moved as u64), drain.limit);
        }
    }
    let longest = turns.iter().map(|round| round.map(|turn| turn.longest * 1_000.0)).collect();
    let mut longest = Row::new(format!("{name}: longest call"), "ms", Better::Less, longest);
    let goals = GOALS.iter().find(|(of, ..)| drain.pending == MOST && *of == order);
    let Some((_, least, most)) = goals else { return vec![rate, longest] };
    longest = longest.goal(Goal::AtMost(LONGEST));
    let value = |value: fn(&Turn) -> f64| turns.iter().map(|round| round.map(value)).collect();
    let own = value(|turn| turn.rate(turn.moved()));
    let own = Row::new(format!("{name}: in all of the time"), "moved/s", Better::More, own);
    let first = value(Turn::first);
    let first = Row::new(format!("{name}: first move"), "s", Better::Less, first);
    vec![rate, own.goal(Goal::AtLeast(*least)), longest, first.goal(Goal::AtMost(*most))]
}
