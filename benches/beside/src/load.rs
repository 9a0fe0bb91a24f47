//! Messages that are offered with a short delay and handled by the processes that offered them, and what each
//! costs.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::bench::Bench;
use crate::contest::{Line, columns};
use crate::idle::wait_until_open;
use crate::job::{Collect, Handler, Job, Offer, Work};
use crate::repeat::Outcome;
use crate::server::Counters;
use crate::spread::{Better, quantile};
use crate::system::System;
use crate::warm_up::{warm_up, warm_up_receiving};
use crate::worker::{Worker, ask_all, wait_and_look};

/// ms.
const DELAYS: (u64, u64) = (0, 100);
/// Takers, or the concurrency of workers, of all processes together.
const TAKERS: usize = 16;
const QUEUE: &str = "messages";
/// Longer than asynq's five seconds between two looks at what is due.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Longer than a blocking pop of redelay blocks.
const LEFT_BEHIND: Duration = Duration::from_secs(15);
/// For work that opening has left to do in the background.
const SETTLE: Duration = Duration::from_millis(200);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Load {
    /// Messages a second of all processes together. Zero: as many as possible, with 64 offers in flight.
    pub(crate) rate: f64,
    /// How long messages are offered.
    pub(crate) millis: u64,
    /// At a rate, messages are offered for longer if they are fewer than these.
    pub(crate) least: u64,
    pub(crate) processes: usize,
    /// They get the messages by turns.
    pub(crate) queues: usize,
    /// Entries that do not become due.
    pub(crate) pending: u64,
    /// Bytes of a payload.
    pub(crate) size: usize,
    /// Whether redelay handles them with a worker, and not with takers. The peers have nothing else, Redisson
    /// has none.
    pub(crate) is_acknowledged: bool,
}

/// The cost of a number of messages.
pub(crate) struct Cost {
    messages: f64,
    seconds: f64,
    client_seconds: f64,
    server: Counters,
    late_p99: f64,
    pub(crate) missing: u64,
}

impl Cost {
    pub(crate) fn per_second(&self) -> f64 {
        self.messages / self.seconds
    }

    /// CPU time of a message, µs.
    pub(crate) fn client_micros(&self) -> f64 {
        self.client_seconds * 1e6 / self.messages
    }

    /// CPU time of a message, µs.
    pub(crate) fn server_micros(&self) -> f64 {
        self.server.cpu_seconds * 1e6 / self.messages
    }

    /// Of a message.
    pub(crate) fn scripts(&self) -> f64 {
        self.server.scripts / self.messages
    }

    /// Of a message.
    pub(crate) fn commands(&self) -> f64 {
        self.server.commands / self.messages
    }

    /// ms.
    pub(crate) fn late_p99(&self) -> f64 {
        self.late_p99
    }
}

impl Load {
    /// Small payloads of one queue, taken by the process that offers them.
    pub(crate) fn new(rate: f64, millis: u64, least: u64) -> Self {
        let (processes, queues, pending, size, is_acknowledged) = (1, 1, 0, 100, false);
        Self { rate, millis, least, processes, queues, pending, size, is_acknowledged }
    }

    /// Warm processes for it.
    pub(crate) fn start(&self, bench: &mut Bench, system: System) -> Outcome<Vec<Worker>> {
        let takers = self.takers().max(self.queues);
        let mut workers = bench.start_workers(system, self.processes, takers)?;
        if System::BOTH.contains(&system) {
            warm_up(&mut workers, bench.effort.warm_up / 2)?;
        } else {
            for worker in &mut workers {
                warm_up_receiving(worker, QUEUE, bench.effort.taken / self.processes as u64)?;
            }
        }
        bench.server.clear();
        Ok(workers)
    }

    /// Takers, or the concurrency of the worker, of each process. Each queue has a taker, even if there are
    /// more queues than these.
    fn takers(&self) -> usize {
        TAKERS.div_ceil(self.processes)
    }

    fn handle(&self, system: System) -> Job {
        let (queues, takers) = (self.queues, self.takers());
        if self.is_acknowledged || !System::BOTH.contains(&system) {
            Work { queues, ..Work::new(QUEUE, takers, Handler::Late) }.job()
        } else {
            Collect { queues, ..Collect::new(QUEUE, takers) }.job()
        }
    }

    /// Messages at a rate, of all processes together.
    pub(crate) fn count(&self) -> f64 {
        (self.rate * self.millis as f64 / 1_000.0).max(self.least as f64)
    }

    /// Of each process.
    fn offer(&self) -> Job {
        let (millis, size, queues) = (self.millis, self.size, self.queues);
        let mut offer = Offer { delay: DELAYS, concurrency: 64, millis, size, queues, ..Offer::new(QUEUE) };
        if self.rate > 0.0 {
            let share = self.processes as f64;
            (offer.per_second, offer.count) = (self.rate / share, (self.count() / share) as u64);
        }
        offer.job()
    }

    /// What its messages cost.
    pub(crate) fn run(&self, bench: &mut Bench, workers: &mut [Worker]) -> Outcome<Cost> {
        let system = workers[0].system();
        wait_until_nobody_takes(bench);
        if self.pending > 0 {
            let count = self.pending;
            workers[0].ask(&Offer { batch: 100, concurrency: 32, count, ..Offer::new(QUEUE) }.job())?;
        }
        ask_all(workers, &self.handle(system))?;
        if System::BOTH.contains(&system) {
            wait_until_open(&mut bench.server, &workers[0], self.queues)?;
        }
        sleep(SETTLE);
        let cpu = |workers: &[Worker]| workers.iter().map(Worker::cpu_seconds).sum::<f64>();
        let (server, client, begun) = (bench.server.counters(), cpu(workers), Instant::now());
        let offered = ask_all(workers, &self.offer())?.iter().map(|reply| reply.count).sum();
        let pause = if self.rate > 0.0 {
            // Most systems have handled all of them before the first look.
            sleep(Duration::from_millis(DELAYS.1 + 50));
            Duration::from_millis(300)
        } else {
            // Two percent of the time that is measured.
            begun.elapsed() / 50
        };
        let collected = wait_and_look(workers, offered, PATIENCE, pause)?;
        let seconds = begun.elapsed().as_secs_f64();
        let (client_seconds, server) = (cpu(workers) - client, bench.server.counters().since(server));
        let late = ask_all(workers, &Job::Stop)?.into_iter().flat_map(|reply| reply.late);
        let mut late: Vec<f64> = late.map(|micros| micros as f64 / 1_000.0).collect();
        late.sort_unstable_by(f64::total_cmp);
        Ok(Cost {
            messages: collected as f64,
            seconds,
            client_seconds,
            server,
            late_p99: quantile(&late, 0.99),
            missing: offered - collected.min(offered),
        })
    }
}

/// A taker of the turn before, of any system, must not take the messages of this one.
fn wait_until_nobody_takes(bench: &mut Bench) {
    let begun = Instant::now();
    while bench.server.blocked_clients() > 0 {
        if begun.elapsed() > LEFT_BEHIND {
            eprintln!(
                "takers of the turn before are still blocked on the server; their connections are closed"
            );
            bench.server.kill_blocked_clients();
        }
        sleep(Duration::from_millis(20));
    }
}

/// What a message has cost each of these systems, round by round.
pub(crate) fn lines(what: &str, rate: f64, systems: &[System], costs: &[Vec<Cost>]) -> Vec<Line> {
    let line = |name: &str, unit: &str, better, value: fn(&Cost) -> f64| {
        let rounds = costs.iter().map(|rounds| rounds.iter().map(value).collect());
        Line::new(format!("{what}: {name}"), unit, better, columns(systems, rounds))
    };
    let mut lines = vec![
        line("client's CPU", "µs per message", Better::Less, Cost::client_micros),
        line("server's CPU", "µs per message", Better::Less, Cost::server_micros),
        line("scripts", "per message", Better::Less, Cost::scripts),
        line("commands", "per message", Better::Less, Cost::commands),
    ];
    if rate > 0.0 {
        lines.push(line("lateness p99", "ms", Better::Less, Cost::late_p99));
    } else {
        lines.insert(0, line("messages a second", "messages/s", Better::More, Cost::per_second));
    }
    lines
}

/// A sentence about each system that has not delivered all messages, for the reader.
pub(crate) fn missing(what: &str, systems: &[System], costs: &[Vec<Cost>]) -> String {
    let missing = costs.iter().map(|rounds| rounds.iter().map(|cost| cost.missing).sum::<u64>());
    let some = systems.iter().zip(missing).filter(|(_, missing)| *missing > 0);
    some.map(|(system, missing)| {
        let patience = PATIENCE.as_secs();
        format!(
            " {what}: {missing} messages of {} were missing after {patience} s without one.",
            system.name()
        )
    })
    .collect()
}
