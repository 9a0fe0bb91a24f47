//! A message from end to end at a low rate, beside a program that makes its three calls on blocking sockets.

use std::slice::from_mut;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use super::rung::{self, Rung, Socket};
use super::ways::{QUEUE, Way, Workers, with_worker};
use crate::bench::Bench;
use crate::contest::{Aim, Column, Contest, Line};
use crate::load::Load;
use crate::report::count;
use crate::scripts;
use crate::spread::Better;
use crate::system::System;

const WAYS: [Way; 3] = [Way::TwoThreads, Way::OneThread, SOCKETS];
const SOCKETS: Way = Way::Rung(Rung::Socket);
/// ms, of the messages that are not redelay's.
const DELAY: u64 = 50;

/// CPU time of a message, µs.
struct Cost {
    client: f64,
    server: f64,
}

pub(super) fn measure(bench: &mut Bench, workers: &mut Workers) -> Contest {
    let rows = bench.effort.rates.iter().flat_map(|rate| lines(bench, workers, *rate)).collect();
    let about = "A message now and then. redelay offers it with a delay of 0 to 100 ms, and has 16 takers. The blocking sockets are \
                 three, of a thread each: one offers it, one transfers it when it is due, and one waits for it. Payloads have 100 bytes.";
    Contest { name: "a message at a rate".into(), about: about.into(), rows }
}

fn lines(bench: &mut Bench, workers: &mut Workers, rate: f64) -> [Line; 2] {
    let what = format!("{}/s", count(rate as u64));
    let rounds = bench.effort.rounds;
    let costs = bench.take_turns(&format!("ladder: messages, {what}"), &WAYS, rounds, |bench, way| {
        let load = Load::new(rate, bench.effort.millis * 5, bench.effort.counted);
        if *way == SOCKETS {
            return Ok(three_calls(bench, &load));
        }
        with_worker(bench, workers, *way, |bench, worker| {
            let cost = load.run(bench, from_mut(worker))?;
            Ok(Cost { client: cost.client_micros(), server: cost.server_micros() })
        })
    });
    let line = |side: &str, value: fn(&Cost) -> f64| {
        let columns = WAYS.iter().zip(&costs).map(|(way, rounds)| Column {
            of: way.name().into(),
            rounds: rounds.iter().map(value).collect(),
        });
        Line::new(format!("{what}: {side}'s CPU"), "µs each", Better::Less, columns.collect())
    };
    let (client, server) = (line("client", |cost| cost.client), line("server", |cost| cost.server));
    let at_most = |way: Way, most| Aim::AtMost { of: way.name().into(), most };
    let beside_sockets =
        |most| Aim::AtMostTimes { of: Way::TwoThreads.name().into(), than: SOCKETS.name().into(), most };
    match rate {
        50.0 => [client.aim(at_most(Way::TwoThreads, 520.0)), server.aim(beside_sockets(1.3))],
        1_000.0 => [
            client.aim(at_most(Way::TwoThreads, 180.0)).aim(at_most(Way::OneThread, 155.0)),
            server.aim(beside_sockets(1.0)),
        ],
        _ => [client, server],
    }
}

/// Three threads with a socket each: one offers, one transfers when it is time, and one waits for the
/// payloads.
fn three_calls(bench: &mut Bench, load: &Load) -> Cost {
    bench.server.clear();
    let url = bench.server.url(System::Redelay);
    let (rate, count) = (load.rate, load.count() as u64);
    let mut sockets = [(); 3].map(|()| Socket::connect(&url));
    let digests = ["OFFER", "TRANSFER"].map(|name| sockets[0].load(name));
    let [mut offers, mut transfers, mut pops] = sockets;
    let before = bench.server.counters();
    let (due, when_due) = channel();
    let seconds: f64 = thread::scope(|scope| {
        let [offer_digest, transfer_digest] = &digests;
        let offer = scope.spawn(move || {
            let begun = Instant::now();
            for n in 0..count {
                sleep_until(begun + Duration::from_secs_f64(n as f64 / rate));
                offers.call(rung::offer(offer_digest, QUEUE, 100, DELAY));
                // A due time is rounded up to a millisecond.
                due.send(Instant::now() + Duration::from_millis(DELAY + 1))
                    .expect("the thread that transfers");
            }
            cpu_seconds()
        });
        let transfer = scope.spawn(move || {
            for due in when_due {
                sleep_until(due);
                transfers.call(scripts::transfer(transfer_digest, QUEUE));
            }
            cpu_seconds()
        });
        let pop = scope.spawn(move || {
            for _ in 0..count {
                pops.call(rung::pop(QUEUE));
            }
            cpu_seconds()
        });
        [offer, transfer, pop]
            .into_iter()
            .map(|thread| thread.join().expect("a thread without a panic"))
            .sum()
    });
    let server = bench.server.counters().since(before);
    let each = 1e6 / count as f64;
    Cost { client: seconds * each, server: server.cpu_seconds * each }
}

fn sleep_until(time: Instant) {
    thread::sleep(time.saturating_duration_since(Instant::now()));
}

/// Of this thread.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("a clock of Linux");
    Duration::from(time).as_secs_f64()
}
