//! The cost of queues in which nothing happens.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::bench::{Bench, Measured};
use crate::job::Job;
use crate::repeat::Outcome;
use crate::report::count;
use crate::results::{Row, Table};
use crate::server::{Counters, Server};
use crate::settings::Settings;
use crate::spread::Better;
use crate::system::{Sides, System};
use crate::worker::Worker;

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
    let (settings, numbers) = (bench.tuning.best, bench.effort.idle_queues);
    let cases = numbers.iter().flat_map(|&queues| System::BOTH.map(|system| (system, queues)));
    let all = cases.map(|(system, queues)| Idle::open(system, queues, settings));
    let used = watch(&mut all.collect::<Outcome<Vec<_>>>()?, millis)?;
    let mut rows = Vec::new();
    for (&queues, both) in numbers.iter().zip(used.chunks(System::BOTH.len())) {
        let name = named(queues);
        let mut row = |what: &str, unit: &str, value: fn(&Use) -> f64| {
            let round = Sides { redelay: value(&both[0]), redisson: value(&both[1]) };
            rows.push(Row::new(format!("{what}, {name}"), unit, Better::Less, vec![round]));
        };
        row("commands", "/s", |used| used.counters.commands);
        row("client's CPU", "ms/s", |used| used.client_seconds * 1_000.0);
        row("server's CPU", "ms/s", |used| used.counters.cpu_seconds * 1_000.0);
        row("client's memory", "MB", |used| used.client_memory / 1e6);
        row("server's memory", "MB", |used| used.server_memory / 1e6);
    }
    Ok(rows)
}

pub(crate) fn named(queues: usize) -> String {
    if queues == 1 { "1 queue".into() } else { format!("{} queues", count(queues as u64)) }
}

/// A process in which nothing happens, and its server.
pub(crate) struct Idle {
    pub(crate) worker: Worker,
    server: Server,
}

/// What a process and its server use in a second, and what they have.
pub(crate) struct Use {
    pub(crate) counters: Counters,
    pub(crate) client_seconds: f64,
    pub(crate) client_memory: f64,
    pub(crate) server_memory: f64,
    pub(crate) connections: f64,
}

impl Idle {
    pub(crate) fn start(system: System, settings: Settings) -> Outcome<Self> {
        let server = Server::start(None);
        let worker = Worker::start(system, &server.url(system), settings)?;
        Ok(Self { worker, server })
    }

    fn open(system: System, queues: usize, settings: Settings) -> Outcome<Self> {
        let mut idle = Self::start(system, settings)?;
        idle.worker.ask(&Job::Open { queue: "idle".into(), number: queues })?;
        wait_until_open(&mut idle.server, &idle.worker, queues)?;
        Ok(idle)
    }

    fn look(&mut self) -> (Instant, Counters, f64) {
        (Instant::now(), self.server.counters(), self.worker.cpu_seconds())
    }
}

/// What each of them uses while this time passes. They are watched at once: idle processes do not disturb
/// each other, and the wait is the same minute for all.
pub(crate) fn watch(all: &mut [Idle], millis: u64) -> Outcome<Vec<Use>> {
    // Work that opening has left to do in the background.
    sleep(Duration::from_millis(1_000 + millis / 10));
    let before: Vec<_> = all.iter_mut().map(Idle::look).collect();
    sleep(Duration::from_millis(millis));
    let since = all.iter_mut().zip(before);
    since
        .map(|(idle, (begun, server, client))| {
            let (now, server_now, client_now) = idle.look();
            let seconds = (now - begun).as_secs_f64();
            Ok(Use {
                counters: server_now.since(server).divided_by(seconds),
                client_seconds: (client_now - client) / seconds,
                client_memory: idle.worker.memory()?,
                server_memory: idle.server.memory(),
                connections: idle.server.connections(),
            })
        })
        .collect()
}

/// Waits until redelay or Redisson transfers this number of queues.
pub(crate) fn wait_until_open(server: &mut Server, worker: &Worker, queues: usize) -> Outcome<()> {
    let begun = Instant::now();
    while server.channels() < queues {
        if begun.elapsed() > Duration::from_secs(60) {
            return Err(worker.failure("has not opened all queues after 60 s"));
        }
        sleep(Duration::from_millis(20));
    }
    Ok(())
}
