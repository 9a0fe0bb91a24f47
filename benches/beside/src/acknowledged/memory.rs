//! The server's memory for each message: while it waits, and while it is in flight.

use std::thread::sleep;
use std::time::Duration;

use super::{QUEUE, WORKER, columns, systems, wait};
use crate::bench::{Bench, Measured};
use crate::contest::{Aim, Contest, Line};
use crate::job::{Fill, Handler, Work};
use crate::repeat::Outcome;
use crate::spread::Better;
use crate::system::System;
use crate::warm_up::receive;

struct Turn {
    ready: f64,
    in_flight: f64,
}

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    let systems = systems(bench);
    let turns = bench.take_turns("memory in flight", &systems, 1, |bench, system| turn(bench, *system));
    let row = |what: &str, value: fn(&Turn) -> f64| {
        let values = turns.iter().map(|rounds| rounds.iter().map(value).collect());
        Line::new(what, "bytes per message", Better::Less, columns(&systems, values))
    };
    let rows = vec![
        row("in flight", |turn| turn.in_flight).aim(Aim::AtMost { of: WORKER.into(), most: 350.0 }),
        row("ready", |turn| turn.ready),
    ];
    let about = "What the server has allocated, without the buffers of its clients, for each of 10,000 messages of 100 bytes in a full \
                 run: while they wait for a worker, and while its handlers have them.";
    let contest = Contest { name: "memory in flight".into(), about: about.into(), rows };
    Measured { contests: vec![contest], ..Measured::default() }
}

fn turn(bench: &mut Bench, system: System) -> Outcome<Turn> {
    let count = bench.effort.held;
    let mut worker = bench.start_workers(system, 1, 1)?.remove(0);
    // The scripts are loaded, and are no part of it.
    receive(&mut worker, QUEUE, 1, 10)?;
    bench.server.clear();
    let memory = |bench: &mut Bench| {
        // The server resizes its tables while it is idle.
        sleep(Duration::from_secs(2));
        // Part of the server's memory, too.
        bench.server.reset_slowlog();
        bench.server.memory_of_data() / count as f64
    };
    let before = memory(bench);
    worker.ask(&Fill::new(QUEUE, count).job())?;
    let ready = memory(bench) - before;
    worker.ask(&Work::new(QUEUE, count as usize, Handler::Hold).job())?;
    wait(&mut worker, count, Duration::from_secs(30))?;
    Ok(Turn { ready, in_flight: memory(bench) - before })
}
