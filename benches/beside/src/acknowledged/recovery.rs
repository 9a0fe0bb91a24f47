//! Recovery: a process is killed while it handles messages, and another one gets them.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{QUEUE, systems, wait};
use crate::bench::{Bench, Measured};
use crate::contest::{Aim, Column, Contest, Line};
use crate::job::{Fill, Handler, Job, Work};
use crate::repeat::Outcome;
use crate::server::Server;
use crate::spread::Better;
use crate::system::System;
use crate::worker::Worker;

const IN_FLIGHT: usize = 64;
/// asynq takes up to two minutes.
const LONGEST: Duration = Duration::from_secs(150);

/// One killed process, and its heir.
struct Case {
    name: String,
    most: Option<f64>,
    heir: Worker,
    /// Not another program's.
    _server: Server,
    killed: Instant,
    took: Option<f64>,
}

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    let wait = bench.effort.leases.iter().max().copied().unwrap_or(0);
    bench.progress.set_message(format!("recovery: leases of up to {} s have to end", wait / 1_000));
    let cases = bench.turn("recovery", |bench| cases(bench));
    let mut line = Line::new("all are handled again", "s", Better::Less, Vec::new());
    for Case { name, most, took, .. } in cases {
        line.columns.push(Column { of: name.clone(), rounds: took.into_iter().collect() });
        if let Some(most) = most {
            line = line.aim(Aim::AtMost { of: name, most });
        }
    }
    let about = "A process with 64 messages in flight is killed (`SIGKILL`), while another one is idle. From then on until the \
                 other one has handled all of them. The lease of BullMQ and asynq is 30 s, which is their default; they are \
                 measured in a full run only. A dash says that it took longer than 150 s.";
    let contest = Contest { name: "recovery".into(), about: about.into(), rows: vec![line] };
    Measured { contests: vec![contest], ..Measured::default() }
}

/// All at once, each with its own server, since they wait most of the time.
fn cases(bench: &Bench) -> Outcome<Vec<Case>> {
    let mut cases = Vec::new();
    for &lease_ms in bench.effort.leases {
        let seconds = lease_ms as f64 / 1_000.0;
        let name = format!("redelay, lease of {seconds} s");
        cases.push(kill_one(bench, System::Redelay, name, lease_ms, Some(seconds + 1.0))?);
    }
    let peers =
        systems(bench).into_iter().filter(|system| *system != System::Redelay && bench.effort.peers_recover);
    for system in peers {
        cases.push(kill_one(bench, system, system.name().to_owned(), 0, None)?);
    }
    let begun = Instant::now();
    while cases.iter().any(|case| case.took.is_none()) && begun.elapsed() < LONGEST {
        for case in cases.iter_mut().filter(|case| case.took.is_none()) {
            if case.heir.ask(&Job::Collected)?.count >= IN_FLIGHT as u64 {
                case.took = Some(case.killed.elapsed().as_secs_f64());
            }
        }
        sleep(Duration::from_millis(20));
    }
    Ok(cases)
}

fn kill_one(bench: &Bench, system: System, name: String, lease_ms: u64, most: Option<f64>) -> Outcome<Case> {
    let server = Server::start(None);
    let mut both = Worker::start_many(system, &server.url(system), bench.tuning.best, 2)?;
    let (mut heir, mut victim) = (both.remove(1), both.remove(0));
    victim.ask(&Work { lease_ms, ..Work::new(QUEUE, IN_FLIGHT, Handler::Hold) }.job())?;
    victim.ask(&Fill::new(QUEUE, IN_FLIGHT as u64).job())?;
    wait(&mut victim, IN_FLIGHT as u64, Duration::from_secs(10))?;
    heir.ask(&Work { lease_ms, ..Work::new(QUEUE, IN_FLIGHT, Handler::Done) }.job())?;
    // As in operation: both have been there for a while.
    sleep(Duration::from_millis(500));
    let killed = Instant::now();
    drop(victim);
    Ok(Case { name, most, heir, _server: server, killed, took: None })
}
