//! redelay beside two other ways to delay messages: a sorted set that is polled, and timers of the process.

mod in_process;
mod polling;
mod store;
pub(crate) mod work;

use std::slice::from_mut;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::bench::{Bench, Measured};
use crate::contest::{Column, Contest, Line};
use crate::job::{Collect, Job, Offer};
use crate::repeat::Outcome;
use crate::report;
use crate::server::{Counters, Server};
use crate::spread::{Better, quantile};
use crate::system::System;
use crate::worker::{Worker, ask_all, wait_for};

const QUEUE: &str = "late";
const TAKERS: usize = 4;
/// The most ms of a delay.
const LONGEST: u64 = 2_000;

/// A way to delay messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Redelay,
    /// The time between two polls, ms.
    Polled(u64),
    InProcess,
}

const WAYS: [Way; 4] = [Way::Redelay, Way::Polled(100), Way::Polled(1_000), Way::InProcess];

impl Way {
    fn name(self) -> String {
        match self {
            Self::Redelay => System::Redelay.name().into(),
            Self::Polled(millis) => format!("polled every {} s", millis as f64 / 1_000.0),
            Self::InProcess => "in process".into(),
        }
    }

    fn start(self, bench: &Bench, server: &Server) -> Outcome<Worker> {
        let (url, settings) = (server.url(System::Redelay), bench.tuning.best.with_takers(TAKERS));
        match self {
            Self::Redelay => Worker::start(System::Redelay, &url, settings),
            Self::Polled(millis) => Worker::start_alternative(&url, millis, settings),
            Self::InProcess => Worker::start_alternative(&url, 0, settings),
        }
    }
}

/// What a way has cost.
struct Cost {
    server: Counters,
    client_seconds: f64,
}

/// One turn of one way.
struct Turn {
    /// Lateness in ms, sorted.
    late: Vec<f64>,
    /// Of each message.
    cost: Cost,
}

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    let mut rows = Vec::new();
    let rounds = bench.effort.rounds_afresh;
    for &(per_second, count) in bench.effort.alternatives {
        let name = format!("{}/s", report::count(per_second as u64));
        let what = format!("alternatives: {name}");
        let turns = bench.take_turns(&what, &WAYS, rounds, |bench, way| turn(bench, *way, per_second, count));
        let line = |what: &str, unit: &str, value: &dyn Fn(&Turn) -> f64| {
            let rounds = turns.iter().map(|turns| turns.iter().map(value).collect());
            Line::new(format!("{name}: {what}"), unit, Better::Less, columns(rounds))
        };
        rows.extend([
            line("lateness, p50", "ms", &|turn| quantile(&turn.late, 0.5)),
            line("lateness, p99", "ms", &|turn| quantile(&turn.late, 0.99)),
            line("lateness, max", "ms", &|turn| quantile(&turn.late, 1.0)),
            line("client's CPU", "µs/message", &|turn| turn.cost.client_seconds * 1e6),
            line("server's CPU", "µs/message", &|turn| turn.cost.server.cpu_seconds * 1e6),
            line("commands", "per message", &|turn| turn.cost.server.commands),
        ]);
    }
    bench.progress.set_message("alternatives: idle");
    let idle = bench.turn("alternatives: idle", |bench| idle(bench));
    let line = |what: &str, unit: &str, value: &dyn Fn(&Cost) -> f64| {
        let rounds = idle.iter().map(|cost| vec![value(cost).max(0.0)]);
        Line::new(format!("idle: {what}"), unit, Better::Less, columns(rounds))
    };
    rows.extend([
        line("client's CPU", "ms/s", &|cost| cost.client_seconds * 1e3),
        line("server's CPU", "ms/s", &|cost| cost.server.cpu_seconds * 1e3),
        line("commands", "/s", &|cost| cost.server.commands),
    ]);
    let about = "One process offers messages with random delays of up to two seconds, and receives them: redelay with its defaults and \
                 four takers; a sorted set, which one thread polls with a script that reads and removes up to 100 due members, with a \
                 synchronous client; and the hashed timing wheel of tokio-util, a `DelayQueue`, which no other process sees, and \
                 which is lost with its own. Lateness counts from the time that the caller asked for. The costs are those of \
                 offers and receives together, and of the same seconds of an idle process and server, which count more when there \
                 are few messages: a server without commands uses CPU time, too. Commands include those of scripts.";
    let contest = Contest { name: "alternatives".into(), about: about.into(), rows };
    Measured { contests: vec![contest], ..Measured::default() }
}

fn columns(rounds: impl Iterator<Item = Vec<f64>>) -> Vec<Column> {
    WAYS.iter().zip(rounds).map(|(way, rounds)| Column { of: way.name(), rounds }).collect()
}

fn turn(bench: &mut Bench, way: Way, per_second: f64, count: u64) -> Outcome<Turn> {
    let mut worker = way.start(bench, &bench.server)?;
    let offer = |count| {
        let delay = (0, LONGEST.min(bench.effort.late_delays.1));
        Offer { delay, count, per_second, ..Offer::new(QUEUE) }.job()
    };
    let late = |worker: &mut Worker, count| {
        worker.ask(&offer(count))?;
        // Questions for the number of messages would cost the client more than some of the ways.
        sleep(Duration::from_millis(LONGEST.min(bench.effort.late_delays.1) + 1_100));
        let collected = wait_for(from_mut(worker), count, Duration::from_secs(5))?;
        if collected == count { Ok(()) } else { Err(worker.failure("has lost messages")) }
    };
    // Makes the connections, and loads the scripts.
    worker.ask(&Collect::new(QUEUE, TAKERS).job())?;
    late(&mut worker, count / 10)?;
    worker.ask(&Job::Stop)?;

    worker.ask(&Collect::new(QUEUE, TAKERS).job())?;
    let (server, client) = (bench.server.counters(), worker.cpu_seconds());
    late(&mut worker, count)?;
    let client_seconds = (worker.cpu_seconds() - client) / count as f64;
    let server = bench.server.counters().since(server).divided_by(count as f64);
    let late = worker.ask(&Job::Stop)?.late;
    let mut late: Vec<f64> = late.into_iter().map(|micros| micros as f64 / 1_000.0).collect();
    late.sort_unstable_by(f64::total_cmp);
    Ok(Turn { late, cost: Cost { server, client_seconds } })
}

/// What each way costs in a second in which nothing happens: all at once, each with its own server.
fn idle(bench: &Bench) -> Outcome<Vec<Cost>> {
    let mut servers: Vec<_> = WAYS.iter().map(|_| Server::start(None)).collect();
    let workers = WAYS.iter().zip(&servers).map(|(way, server)| way.start(bench, server));
    let mut workers = workers.collect::<Outcome<Vec<_>>>()?;
    ask_all(&mut workers, &Collect::new(QUEUE, TAKERS).job())?;
    // Work that opening has left to do in the background.
    sleep(Duration::from_millis(1_000 + bench.effort.idle_millis / 10));
    let mut look = || -> Vec<_> {
        let all = servers.iter_mut().zip(&workers);
        all.map(|(server, worker)| (Instant::now(), server.counters(), worker.cpu_seconds())).collect()
    };
    let before = look();
    sleep(Duration::from_millis(bench.effort.idle_millis));
    let costs =
        before.into_iter().zip(look()).map(|((begun, server, client), (now, server_now, client_now))| {
            let seconds = (now - begun).as_secs_f64();
            let server = server_now.since(server).divided_by(seconds);
            Cost { server, client_seconds: (client_now - client) / seconds }
        });
    Ok(costs.collect())
}
