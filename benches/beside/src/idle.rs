//! The cost of queues in which nothing happens.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::bench::{Bench, Measured};
use crate::job::Job;
use crate::results::{Better, Row, Table};
use crate::server::{Counters, Server};
use crate::tuning::Settings;
use crate::worker::{Sides, System, Worker};

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    let (millis, settings) = (bench.effort.idle_millis, bench.tuning.best);
    bench.progress.set_message(format!("idle: {} s of waiting", millis as f64 / 1_000.0));
    // All at once, each with its own server: idle processes do not disturb each other, and the wait is the same minute
    // for all.
    let cases: Vec<_> = bench
        .effort
        .idle_queues
        .iter()
        .map(|queues| (*queues, Sides::of(|system| Idle::open(system, *queues, settings))))
        .collect();
    // Work that opening has left to do in the background.
    sleep(Duration::from_millis(millis / 10));
    let before: Vec<_> = cases
        .into_iter()
        .map(|(queues, mut sides)| {
            let seen = Sides::of(|system| sides.get_mut(system).look());
            (queues, sides, seen, Instant::now())
        })
        .collect();
    sleep(Duration::from_millis(millis));
    let mut rows = Vec::new();
    for (queues, mut sides, before, since) in before {
        let seconds = since.elapsed().as_secs_f64();
        let after = Sides::of(|system| sides.get_mut(system).look());
        let cost = |value: fn(&Look) -> f64| {
            vec![Sides::of(|system| value(&after.get(system).since(before.get(system))) / seconds)]
        };
        let state = |value: fn(&Look) -> f64| vec![after.map(value)];
        let name = if queues == 1 { "1 queue".into() } else { format!("{queues} queues") };
        let row =
            |what: &str, unit: &str, rounds| Row::new(format!("{what}, {name}"), unit, Better::Less, rounds);
        rows.push(row("commands", "/s", cost(|look| look.counters.commands)));
        rows.push(row("client's CPU", "ms/s", cost(|look| look.client_cpu * 1_000.0)));
        rows.push(row("server's CPU", "ms/s", cost(|look| look.counters.cpu_seconds * 1_000.0)));
        rows.push(row("client's memory", "MB", state(|look| look.client_memory / 1e6)));
        rows.push(row("server's memory", "MB", state(|look| look.server_memory / 1e6)));
    }
    let about = "One process with this number of delayed queues open, in which nothing is pending, on a server of its own. Memory \
                 is the resident memory. A virtual machine and a native program differ from the start, so compare the difference \
                 between few queues and many as well.";
    (vec![Table { name: "idle".into(), about: about.into(), rows }], Vec::new())
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
    fn open(system: System, queues: usize, settings: Settings) -> Self {
        let mut server = Server::start(None);
        let mut worker = Worker::start(system, &server.url(system), settings);
        worker.ask(&Job::Open { queue: "idle".into(), number: queues });
        let begun = Instant::now();
        while server.channels() < queues {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "not all queues of {} are open",
                system.name()
            );
            sleep(Duration::from_millis(20));
        }
        Self { worker, server }
    }

    fn look(&mut self) -> Look {
        Look {
            counters: self.server.counters(),
            client_cpu: self.worker.cpu_seconds(),
            client_memory: self.worker.memory(),
            server_memory: self.server.memory(),
        }
    }
}
