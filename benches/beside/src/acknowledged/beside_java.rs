//! Takers of Java's beside a worker of redelay's on the same queue.

use std::thread::sleep;
use std::time::{Duration, Instant};

use redelay_fixture::redis::cmd;

use super::QUEUE;
use crate::bench::{Bench, Measured};
use crate::contest::{Aim, Column, Contest, Line};
use crate::job::{Collect, Handler, Job, Work, payload};
use crate::repeat::Outcome;
use crate::spread::Better;
use crate::system::System;
use crate::warm_up::warm_up;
use crate::worker::{Worker, ask_all, wait_for};

const ALONE: &str = "Java alone";
const BESIDE: &str = "beside a worker";
const TAKERS: usize = 64;

#[derive(Clone, Copy)]
struct Turn {
    per_second: f64,
    server_micros: f64,
}

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    let mut processes = bench.turn("beside Java", start);
    let mut rows = Vec::new();
    for arriving in [true, false] {
        let name = if arriving { "arriving one by one" } else { "in bursts" };
        // Of what arrives one by one, the rates change by half between two rounds.
        let rounds = if arriving { 10 } else { 2 } * bench.effort.rounds;
        let turns =
            bench.take_turns(&format!("beside Java: {name}"), &[false, true], rounds, |bench, is_beside| {
                let turn = turn(bench, &mut processes, arriving, *is_beside);
                if turn.is_err() {
                    processes = start(bench)?;
                }
                turn
            });
        let line = |unit: &str, better, value: fn(&Turn) -> f64| {
            let values = turns.iter().map(|rounds| rounds.iter().map(value).collect());
            let columns = [BESIDE, ALONE].into_iter().zip(values.rev());
            let columns = columns.map(|(of, rounds)| Column { of: of.into(), rounds }).collect();
            let aim = Aim::Times { of: BESIDE.into(), than: ALONE.into(), least: 0.92 };
            Line::new(format!("{name}: {unit}"), unit, better, columns).aim(aim)
        };
        rows.push(line("takes/s", Better::More, |turn| turn.per_second));
        rows.push(line("server µs per take", Better::Less, |turn| turn.server_micros));
    }
    let about = "64 threads of Java wait in `take`, alone, and with a worker of redelay's that waits on the \
                 same queue with a concurrency of 64. The messages come from a third client: one `RPUSH` \
                 each, or a thousand in each. Takes are those of both together.";
    let contest = Contest { name: "beside Java's takers".into(), about: about.into(), rows };
    Measured { contests: vec![contest], ..Measured::default() }
}

/// Java's takers and redelay's worker, both warm.
fn start(bench: &mut Bench) -> Outcome<Vec<Worker>> {
    let mut java = bench.start_workers(System::Redisson, 1, TAKERS)?;
    warm_up(&mut java, bench.effort.warm_up / 2)?;
    let redelay = bench.start_workers(System::Redelay, 1, TAKERS)?;
    let mut processes: Vec<_> = java.into_iter().chain(redelay).collect();
    for is_beside in [false, true] {
        turn(bench, &mut processes, false, is_beside)?;
    }
    Ok(processes)
}

fn turn(bench: &mut Bench, processes: &mut [Worker], arriving: bool, is_beside: bool) -> Outcome<Turn> {
    let count = bench.effort.taken;
    let running = if is_beside { &mut processes[..] } else { &mut processes[..1] };
    running[0].ask(&Collect::new(QUEUE, TAKERS).job())?;
    if let [_, redelay] = running {
        redelay.ask(&Work::new(QUEUE, TAKERS, Handler::Done).job())?;
    }
    // Each of them waits on the server. A worker needs only one connection for that.
    let (begun, parked) = (Instant::now(), TAKERS + running.len() - 1);
    while bench.server.blocked_clients() < parked {
        if begun.elapsed() > Duration::from_secs(30) {
            return Err(
                running[0].failure("has not as many takers that wait on the server as it should, after 30 s")
            );
        }
        sleep(Duration::from_millis(5));
    }
    let payload = payload(0, 100);
    let (before, begun) = (bench.server.counters(), Instant::now());
    if arriving {
        let mut producer = bench.server.connect();
        for _ in 0..count {
            cmd("RPUSH").arg(QUEUE).arg(&payload).exec(&mut producer).expect("RPUSH");
        }
    } else {
        bench.server.fill(QUEUE, count, &payload);
    }
    let taken = wait_for(running, count, Duration::from_secs(5))?;
    let (seconds, spent) = (begun.elapsed().as_secs_f64(), bench.server.counters().since(before));
    // Java's takers are ended by payloads, which the worker must not receive.
    running.iter_mut().rev().try_for_each(|worker| worker.ask(&Job::Stop).map(drop))?;
    ask_all(running, &Job::Close)?;
    if taken < count {
        return Err(running[0].failure(&format!("and redelay have taken {taken} of {count} messages")));
    }
    Ok(Turn { per_second: count as f64 / seconds, server_micros: spent.cpu_seconds * 1e6 / count as f64 })
}
