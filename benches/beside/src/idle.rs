//! The cost of queues in which nothing happens.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::bench::{Bench, Measured};
use crate::job::Job;
use crate::repeat::Outcome;
use crate::report::count;
use crate::results::{Better, Row, Table};
use crate::server::{Counters, Server};
use crate::tuning::Settings;
use crate::worker::{Sides, System, Worker};

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    let millis = bench.effort.idle_millis;
    bench.progress.set_message(format!("idle: {} s of waiting", millis as f64 / 1_000.0));
    let rows = bench.turn("idle", |bench| rows(bench, millis));
    let about = "One process with this number of delayed queues open, in which nothing is pending, on a server of its own. Memory \
                 is the resident memory. A virtual machine and a native program differ from the start, so compare the difference \
                 between few queues and many as well.";
    Measured { tables: vec![Table { name: "idle".into(), about: about.into(), rows }], ..Measured::default() }
}

fn rows(bench: &Bench, millis: u64) -> Outcome<Vec<Row>> {
    let settings = bench.tuning.best;
    // All at once, each with its own server: idle processes do not disturb each other, and the wait is the same minute
    // for all.
    let mut cases = Vec::new();
    for &queues in bench.effort.idle_queues {
        cases.push((queues, Sides::try_of(|system| Idle::open(system, queues, settings))?));
    }
    // Work that opening has left to do in the background.
    sleep(Duration::from_millis(millis / 10));
    let mut before = Vec::new();
    for (queues, mut sides) in cases {
        let seen = Sides::try_of(|system| sides.get_mut(system).look())?;
        before.push((queues, sides, seen, Instant::now()));
    }
    sleep(Duration::from_millis(millis));
    let mut rows = Vec::new();
    for (queues, mut sides, before, since) in before {
        let seconds = since.elapsed().as_secs_f64();
        let after = Sides::try_of(|system| sides.get_mut(system).look())?;
        let cost = |value: fn(&Look) -> f64| {
            vec![Sides::of(|system| value(&after.get(system).since(before.get(system))) / seconds)]
        };
        let state = |value: fn(&Look) -> f64| vec![after.map(value)];
        let name = if queues == 1 { "1 queue".into() } else { format!("{} queues", count(queues as u64)) };
        let row =
            |what: &str, unit: &str, rounds| Row::new(format!("{what}, {name}"), unit, Better::Less, rounds);
        rows.push(row("commands", "/s", cost(|look| look.counters.commands)));
        rows.push(row("client's CPU", "ms/s", cost(|look| look.client_cpu * 1_000.0)));
        rows.push(row("server's CPU", "ms/s", cost(|look| look.counters.cpu_seconds * 1_000.0)));
        rows.push(row("client's memory", "MB", state(|look| look.client_memory / 1e6)));
        rows.push(row("server's memory", "MB", state(|look| look.server_memory / 1e6)));
    }
    Ok(rows)
}

struct Idle {
    worker: Worker,
    server: Server,
}

#[derive(Clone, Copy)]
struct Look {
    counters: Counters,
    client_cpu: f64,
    client_memory: f64,
    server_memory: f64,
}

impl Look {
    /// The use since then. The memory is the current one.
    fn since(&self, before: &Self) -> Self {
        let counters = self.counters.since(before.counters);
        Self { counters, client_cpu: self.client_cpu - before.client_cpu, ..*self }
    }
}

impl Idle {
    fn open(system: System, queues: usize, settings: Settings) -> Outcome<Self> {
        let mut server = Server::start(None);
        let mut worker = Worker::start(system, &server.url(system), settings)?;
        worker.ask(&Job::Open { queue: "idle".into(), number: queues })?;
        let begun = Instant::now();
        while server.channels() < queues {
            if begun.elapsed() > Duration::from_secs(60) {
                return Err(worker.failure("has not opened all queues after 60 s"));
            }
            sleep(Duration::from_millis(20));
        }
        Ok(Self { worker, server })
    }

    fn look(&mut self) -> Outcome<Look> {
        Ok(Look {
            counters: self.server.counters(),
            client_cpu: self.worker.cpu_seconds(),
            client_memory: self.worker.memory()?,
            server_memory: self.server.memory(),
        })
    }
}
