//! What handlers cost that hold their messages: the leases of these are extended all the time.

use std::time::Duration;

use super::{QUEUE, systems, wait};
use crate::bench::{Bench, Measured};
use crate::contest::{Column, Contest, Line};
use crate::idle::{Idle, Use, watch};
use crate::job::{Fill, Handler, Work};
use crate::repeat::Outcome;
use crate::spread::Better;
use crate::system::System;

const HELD: usize = 64;

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    let millis = bench.effort.idle_millis;
    bench.progress.set_message(format!("heartbeats: {} s of waiting", millis as f64 / 1_000.0));
    let leases = bench.effort.leases.iter().map(|&lease_ms| {
        (System::Redelay, format!("redelay, lease of {} s", lease_ms as f64 / 1_000.0), lease_ms)
    });
    let peers = systems(bench).into_iter().filter(|system| *system != System::Redelay);
    let peers = peers.map(|system| (system, system.name().to_owned(), 0));
    let cases: Vec<_> = leases.chain(peers).collect();
    let used = bench.turn("heartbeats", |bench| {
        let held = cases.iter().map(|(system, _, lease_ms)| hold(bench, *system, *lease_ms));
        watch(&mut held.collect::<Outcome<Vec<_>>>()?, millis)
    });
    let line = |what: &str, unit: &str, value: fn(&Use) -> f64| {
        let columns = cases.iter().zip(&used);
        let columns = columns.map(|((_, of, _), used)| Column { of: of.clone(), rounds: vec![value(used)] });
        Line::new(what, unit, Better::Less, columns.collect())
    };
    let rows = vec![
        line("commands", "/s", |used| used.counters.commands),
        line("scripts", "/s", |used| used.counters.scripts),
        line("client's CPU", "ms/s", |used| used.client_seconds * 1_000.0),
        line("server's CPU", "ms/s", |used| used.counters.cpu_seconds * 1_000.0),
    ];
    let about = "A process whose worker has a concurrency of 64, and 64 messages whose handlers do not \
                 return, on a server of its own. What an idle process and an idle server use is in it. The \
                 lease of BullMQ and asynq is 30 s, which is their default. They are watched for a minute \
                 in a full run. The three seconds of a quick run are too short for leases of 30 s.";
    let contest = Contest { name: "heartbeats".into(), about: about.into(), rows };
    Measured { contests: vec![contest], ..Measured::default() }
}

/// A process in the middle of this number of messages.
fn hold(bench: &Bench, system: System, lease_ms: u64) -> Outcome<Idle> {
    let mut idle = Idle::start(system, bench.tuning.best)?;
    idle.worker.ask(&Work { lease_ms, ..Work::new(QUEUE, HELD, Handler::Hold) }.job())?;
    idle.worker.ask(&Fill::new(QUEUE, HELD as u64).job())?;
    wait(&mut idle.worker, HELD as u64, Duration::from_secs(10))?;
    Ok(idle)
}
