//! The cost of receivers in which nothing happens, each of a queue of its own.

use super::WORKER;
use crate::bench::{Bench, Measured};
use crate::contest::{Column, Contest, Line};
use crate::idle::{Idle, Use, named, watch};
use crate::job::Job;
use crate::repeat::Outcome;
use crate::spread::Better;
use crate::system::System;

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    let (millis, numbers) = (bench.effort.idle_millis, bench.effort.idle_queues);
    bench.progress.set_message(format!("idle receivers: {} s of waiting", millis as f64 / 1_000.0));
    let used = bench.turn("idle receivers", |bench| {
        let waiting = numbers.iter().map(|&number| {
            let mut idle = Idle::start(System::Redelay, bench.tuning.best)?;
            idle.worker.ask(&Job::Wait { queue: "idle".into(), number })?;
            Ok(idle)
        });
        watch(&mut waiting.collect::<Outcome<Vec<_>>>()?, millis)
    });
    let rows = numbers.iter().zip(&used).flat_map(|(&number, used)| lines(number, used)).collect();
    let about = "One process with this number of queues, each of which has a receiver that waits, on a server of its own. Memory is \
                 the resident memory.";
    let contest = Contest { name: "idle receivers".into(), about: about.into(), rows };
    Measured { contests: vec![contest], ..Measured::default() }
}

fn lines(number: usize, used: &Use) -> [Line; 6] {
    let name = named(number);
    let line = |what: &str, unit: &str, value: f64| {
        let column = Column { of: WORKER.into(), rounds: vec![value] };
        Line::new(format!("{what}, {name}"), unit, Better::Less, vec![column])
    };
    [
        line("commands", "/s", used.counters.commands),
        line("client's CPU", "ms/s", used.client_seconds * 1_000.0),
        line("server's CPU", "ms/s", used.counters.cpu_seconds * 1_000.0),
        line("client's memory", "MB", used.client_memory / 1e6),
        line("server's memory", "MB", used.server_memory / 1e6),
        line("connections", "of the process", used.connections),
    ]
}
