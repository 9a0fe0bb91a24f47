//! Offers per second, each counted when its reply has arrived, and the rate of `redis-benchmark` with the
//! same script.

use crate::bench::{Bench, Measured, Workers};
use crate::job::Offer;
use crate::redis_benchmark;
use crate::results::{Axis, Goal, Line, Plot, Row, Table};
use crate::settings::Settings;
use crate::spread::Better;
use crate::system::System;

const BATCH: usize = 100;
/// The offers that have a goal: number in flight, bytes.
const GOAL: (usize, usize) = (64, 100);
/// With so few in flight, how many times as fast as Redisson redelay is to be.
const FEW: [(usize, f64); 2] = [(1, 0.95), (16, 1.2)];
/// The most bytes that the server receives in a turn. All of them stay in memory.
const MOST: u64 = 1 << 28;

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    // Started long before they are measured: a virtual machine goes on compiling for some time.
    let mut untuned = Workers::new(|bench, system| bench.start_warm(system, Settings::defaults()));
    untuned.start(bench, System::BOTH);
    let mut rows = Vec::new();
    let (mut lines, mut limits) = (System::BOTH.map(|system| (system, Vec::new())), Vec::new());
    for &size in bench.effort.sizes {
        for batch in [1, BATCH] {
            for &concurrency in bench.effort.concurrency {
                let row = row(bench, size, batch, concurrency);
                if size == bench.effort.sizes[0] && batch == 1 {
                    for (system, points) in &mut lines {
                        points.push((concurrency as f64, row.of(*system).median));
                    }
                    limits.push((concurrency as f64, crate::spread::spread(row.limit.clone()).median));
                }
                rows.push(row);
            }
        }
    }
    rows.push(untuned_row(bench, &mut untuned));
    let mut lines: Vec<Line> = lines
        .into_iter()
        .map(|(system, points)| Line { label: system.name().into(), system: Some(system), points })
        .collect();
    lines.push(Line { label: "redis-benchmark, same script".into(), system: None, points: limits });
    let about = "Entries that are due in an hour, acknowledged one by one. The number in flight is constant. \
                 redelay has one connection. Redisson has its pool, and sends the next offer when the reply to the last \
                 one arrives (`offerAsync`). A batch is 100 entries: one `offer_all` in redelay, and a hundred `offerAsync` \
                 in Redisson, which has no other way. The limit is `redis-benchmark` with this script: the better of one \
                 connection for each call in flight, and one connection with all of them in its pipeline.";
    let table = Table { name: "offer".into(), about: about.into(), rows };
    let plot = Plot {
        file: "offer.svg".into(),
        title: "Offers per second, 100 bytes each".into(),
        x: Axis { name: "in flight".into(), log: true, early: None },
        y: Axis { name: "offers/s".into(), log: false, early: None },
        lines,
    };
    Measured { tables: vec![table], plots: vec![plot], ..Measured::default() }
}

/// Both systems with default settings, which most services have.
fn untuned_row(bench: &mut Bench, untuned: &mut Workers) -> Row {
    let (concurrency, size) = GOAL;
    let job = Offer { concurrency, size, millis: bench.effort.millis, ..Offer::new("offer") }.job();
    let what = format!("single, {concurrency} in flight, {size} B, default settings");
    let rounds = bench.effort.rounds;
    let measured = bench.alternate_with(untuned, &format!("offer: {what}"), rounds, |_, worker| {
        Ok(worker.ask(&job)?.per_second())
    });
    Row::new(what, "offers/s", Better::More, measured).goal(Goal::Ratio(3.0))
}

fn row(bench: &mut Bench, size: usize, batch: usize, concurrency: usize) -> Row {
    let how = if batch == 1 { "single" } else { "batches" };
    let what = format!("{how}, {concurrency} in flight, {size} B");
    let (millis, rounds) = (bench.effort.millis, bench.effort.rounds);
    let count = MOST / (size as u64 + 200);
    let job = Offer { concurrency, batch, size, millis, count, ..Offer::new("offer") }.job();
    let measured = bench
        .alternate_shared(&format!("offer: {what}"), rounds, |_, worker| Ok(worker.ask(&job)?.per_second()));
    let mut row = Row::new(what, "offers/s", Better::More, measured);
    if batch == 1 {
        row.limit = (0..rounds).map(|_| redis_benchmark::offers(bench, size, concurrency)).collect();
        if concurrency >= 16 {
            row = row.goal(Goal::OfLimit(0.9));
        }
        if (concurrency, size) == GOAL {
            row = row.goal(Goal::Ratio(3.0));
        } else if let Some((_, least)) = FEW.iter().find(|few| (few.0, size) == (concurrency, GOAL.1)) {
            row = row.goal(Goal::Ratio(*least));
        }
    }
    row
}
