//! Workers of an idle queue: what they cost while nothing happens, and what one message costs.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{QUEUE, WORKER, all_systems, columns};
use crate::bench::{Bench, Measured};
use crate::contest::{Aim, Contest, Line};
use crate::job::{Fill, Handler, Work};
use crate::repeat::Outcome;
use crate::server::{Counters, Server};
use crate::spread::Better;
use crate::system::System;
use crate::worker::{Worker, ask_all};

/// Long enough for a message to be handled. With many processes, short enough for each to have a message
/// before its blocking pop ends by itself.
const INTERVAL: Duration = Duration::from_millis(20);

/// What was counted for one system.
struct Seen {
    /// A second, for each process.
    commands: f64,
    client_millis: f64,
    server_millis: f64,
    message: Message,
}

/// What was counted for each message.
struct Message {
    /// With what the processes do by themselves in that time.
    all: Counters,
    /// Without it.
    own: Counters,
}

struct Idle {
    server: Server,
    workers: Vec<Worker>,
    producer: Worker,
}

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    let (systems, most) = (all_systems(bench), bench.effort.processes.iter().max().copied().unwrap_or(1));
    let mut rows = Vec::new();
    for processes in [1, most] {
        bench.progress.set_message(format!("idle workers: {processes} of each"));
        let seen = bench.turn("idle workers", |bench| look(bench, &systems, processes));
        rows.extend(lines(&systems, processes, &seen));
    }
    let about = "Workers with a concurrency of 10 wait for messages of one queue, on a server of its own \
                 for each system. Then messages come, 1,000 in a full run, one every 20 ms, from another \
                 process. What they cost is counted on the server, with what their offers cost. The \
                 commands are without those that idle workers send in the same time. The scripts and \
                 blocking pops are all that the server has seen, asynq's looks at empty queues among them. \
                 Each process that a message wakes begins a blocking pop again when it has handled it. \
                 asynq and apalis-redis have none; an idle worker of apalis-redis asks every 100 ms here.";
    let contest = Contest { name: "idle workers".into(), about: about.into(), rows };
    Measured { contests: vec![contest], ..Measured::default() }
}

/// All systems at once: they do not disturb each other, and the wait is the same for all.
fn look(bench: &Bench, systems: &[System], processes: usize) -> Outcome<Vec<Seen>> {
    let mut all =
        systems.iter().map(|system| Idle::start(bench, *system, processes)).collect::<Outcome<Vec<_>>>()?;
    let millis = bench.effort.idle_millis;
    sleep(Duration::from_millis(1_000 + millis / 10));
    let before: Vec<_> = all.iter_mut().map(Idle::counters).collect();
    sleep(Duration::from_millis(millis));
    let mut seen = Vec::new();
    for (idle, (begun, server, client)) in all.iter_mut().zip(before) {
        let (now, server_now, client_now) = idle.counters();
        let seconds = (now - begun).as_secs_f64();
        let per_process = seconds * processes as f64;
        let idly = server_now.since(server);
        let message = idle.messages(bench.effort.idle_messages, idly.divided_by(seconds))?;
        seen.push(Seen {
            commands: idly.commands / per_process,
            client_millis: (client_now - client) * 1_000.0 / per_process,
            server_millis: idly.cpu_seconds * 1_000.0 / per_process,
            message,
        });
    }
    Ok(seen)
}

impl Idle {
    fn start(bench: &Bench, system: System, processes: usize) -> Outcome<Self> {
        let server = Server::start(None);
        let settings = bench.tuning.best;
        let mut workers = Worker::start_many(system, &server.url(system), settings, processes)?;
        let mut producer = Worker::start(system, &server.url(system), settings)?;
        ask_all(&mut workers, &Work::new(QUEUE, 10, Handler::Done).job())?;
        // Loads scripts and makes connections.
        producer.ask(&Fill::new(QUEUE, 20 * processes as u64).job())?;
        Ok(Self { server, workers, producer })
    }

    fn counters(&mut self) -> (Instant, Counters, f64) {
        let client = self.workers.iter().map(Worker::cpu_seconds).sum();
        (Instant::now(), self.server.counters(), client)
    }

    /// What a message costs, if idle processes cost this in a second.
    fn messages(&mut self, count: u64, idly: Counters) -> Outcome<Message> {
        let (begun, before) = (Instant::now(), self.server.counters());
        for _ in 0..count {
            self.producer.ask(&Fill::new(QUEUE, 1).job())?;
            sleep(INTERVAL);
        }
        let spent = self.server.counters().since(before);
        let idly = idly.divided_by(1.0 / begun.elapsed().as_secs_f64());
        let of_each = |counters: Counters| counters.divided_by(count as f64);
        Ok(Message { own: of_each(spent.without(idly)), all: of_each(spent) })
    }
}

fn lines(systems: &[System], processes: usize, seen: &[Seen]) -> Vec<Line> {
    let name = if processes == 1 { "1 process".to_owned() } else { format!("{processes} processes") };
    let line = |what: &str, unit: &str, value: &dyn Fn(&Seen) -> f64| {
        let values = seen.iter().map(|seen| vec![value(seen).max(0.0)]);
        Line::new(format!("{name}: {what}"), unit, Better::Less, columns(systems, values))
    };
    let at_most = |most| Aim::AtMost { of: WORKER.into(), most };
    vec![
        line("commands while idle", "/s and process", &|seen| seen.commands),
        line("client's CPU while idle", "ms/s and process", &|seen| seen.client_millis),
        line("server's CPU while idle", "ms/s and process", &|seen| seen.server_millis),
        line("commands", "per message", &|seen| seen.message.own.commands),
        line("scripts", "per message", &|seen| seen.message.all.scripts).aim(at_most(2.1)),
        line("blocking pops", "per message", &|seen| seen.message.all.blocking).aim(at_most(1.1)),
    ]
}
