//! What jobs by id cost the server, by how many are pending. Only redelay has them.

mod held;
mod numbered;
mod script_time;

use std::ops::Range;
use std::time::{Duration, Instant};

use redelay::DelayedQueue;
use redelay_fixture::redis::{Connection, cmd};
use tokio::runtime::Runtime;

use crate::bench::{Bench, Measured};
use crate::contest::{Aim, Column, Contest, Line};
use crate::report::count;
use crate::server::{ordered_list, timeout_set};
use crate::spread::Better;
use crate::system::System;
use numbered::{CALLS, LATER, QUEUE, any, connect, id, last, later, payload};
use script_time::{IN_FLIGHT, cancels, cost, spent};

/// Until when stale ids have to be gone, and how many of them may be left.
const SWEPT_WITHIN: Duration = Duration::from_secs(600);
const LEFT: f64 = 0.01;

/// The names of the rows, and the most µs of a call among a million.
const ROWS: [(&str, Option<f64>); 8] = [
    ("offer a new job", Some(30.0)),
    ("offer one that is kept", Some(30.0)),
    ("debounce, with the same payload", Some(30.0)),
    ("debounce one of the last 1,000, with another payload", None),
    ("reschedule", Some(30.0)),
    ("cancel one of the last 1,000", None),
    ("cancel at a random place", Some(20_000.0)),
    ("cancel 1,000 at random places at once: of each", None),
];

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    let runtime = Runtime::new().expect("a runtime");
    let pending = bench.effort.jobs;
    let mut rounds: Vec<Vec<Vec<f64>>> = vec![vec![Vec::new(); pending.len()]; ROWS.len()];
    for _ in 0..bench.effort.rounds {
        for (column, &pending) in pending.iter().enumerate() {
            bench.server.clear();
            let mut server = bench.server.connect();
            let costs = runtime.block_on(calls(&bench.server.url(System::Redelay), &mut server, pending));
            costs.into_iter().zip(&mut rounds).for_each(|(cost, row)| row[column].push(cost));
        }
    }
    let names: Vec<String> = pending.iter().map(|pending| format!("{} pending", count(*pending))).collect();
    let columns = |rounds: &[Vec<f64>]| -> Vec<Column> {
        names.iter().cloned().zip(rounds.iter().cloned()).map(|(of, rounds)| Column { of, rounds }).collect()
    };
    let most_pending = names.last().expect("a size").clone();
    let rows = ROWS.iter().zip(&rounds).map(|((what, goal), rounds)| {
        let line = Line::new(*what, "µs of the server", Better::Less, columns(rounds));
        match goal {
            Some(most) => line.aim(Aim::AtMost { of: most_pending.clone(), most: *most }),
            None => line,
        }
    });
    let about = "Time that the server spends in the scripts for a call, with 64 calls in flight. The ids are random ones of those that are \
                 pending, except where the row says more. Payloads of 100 bytes.";
    let mut contests = vec![Contest { name: "jobs by id".into(), about: about.into(), rows: rows.collect() }];

    let &pending = pending.last().expect("a size");
    bench.server.clear();
    let mut server = bench.server.connect();
    let swept = runtime.block_on(sweep(&bench.server.url(System::Redelay), &mut server, pending));
    let of = "redelay";
    let row = |what: &str, unit: &str, value: f64, most: f64| {
        let column = Column { of: of.into(), rounds: vec![value] };
        Line::new(what, unit, Better::Less, vec![column]).aim(Aim::AtMost { of: of.into(), most })
    };
    let about = format!(
        "{} jobs are pending, and an eleventh of them is due and is moved by a program that does not know ids. From then on until one \
         hundredth of their ids is left, with one client whose sweep comes every second.",
        count(pending + pending / 10)
    );
    let rows = vec![
        row("time", "s", swept.0, SWEPT_WITHIN.as_secs_f64()),
        row("of the server's time", "%", swept.1, 1.0),
    ];
    contests.push(Contest { name: "stale ids".into(), about, rows });
    contests.extend(held::measure(bench, &runtime));
    Measured { contests, ..Measured::default() }
}

async fn fill(delayed: &DelayedQueue<String>, numbers: Range<u64>, delay: Duration) {
    let numbers: Vec<u64> = numbers.collect();
    for numbers in numbers.chunks(10_000) {
        let jobs: Vec<_> = numbers.iter().map(|number| (id(*number), payload(*number))).collect();
        let jobs = jobs.iter().map(|(id, payload)| (id, payload, later(delay)));
        delayed.offer_jobs(jobs).await.expect("they are stored");
    }
}

async fn calls(url: &str, server: &mut Connection, pending: u64) -> Vec<f64> {
    let (client, delayed) = connect(url, None).await;
    fill(&delayed, 0..pending, LATER).await;
    let mut costs = Vec::new();
    let new = async |number| {
        delayed.offer(&payload(number), LATER).id(format!("new-{number}")).await.map(drop).expect("stored");
    };
    costs.push(cost(server, CALLS, IN_FLIGHT, new).await);
    // They lie behind the others.
    let new: Vec<_> = (0..=CALLS).map(|number| format!("new-{number}")).collect();
    delayed.cancel_all(&new).await.expect("cancelled");
    let keep = async |_| {
        let number = any(pending);
        delayed.offer(&payload(number), LATER).id(id(number)).await.map(drop).expect("kept");
    };
    costs.push(cost(server, CALLS, IN_FLIGHT, keep).await);
    let debounce = async |_| {
        let number = any(pending);
        let offer = delayed.offer(&payload(number), LATER).id(id(number));
        offer.debounce(LATER).await.map(drop).expect("replaced");
    };
    costs.push(cost(server, CALLS, IN_FLIGHT, debounce).await);
    let change = async |number| {
        let offer = delayed.offer(&payload(number), LATER).id(id(last(pending, number)));
        offer.debounce(LATER).await.map(drop).expect("replaced");
    };
    costs.push(cost(server, CALLS, IN_FLIGHT, change).await);
    let reschedule = async |_| {
        assert!(delayed.job(id(any(pending))).reschedule(LATER).await.expect("an answer"));
    };
    costs.push(cost(server, CALLS, IN_FLIGHT, reschedule).await);
    costs.extend(cancels(server, &delayed, pending).await);
    let some: Vec<String> = (0..CALLS).map(|_| id(any(pending))).collect();
    let cancel_all = async |number| {
        let none: [String; 0] = [];
        let ids = if number == 0 { &none[..] } else { &some[..] };
        delayed.cancel_all(ids).await.map(drop).expect("an answer");
    };
    costs.push(cost(server, 1, IN_FLIGHT, cancel_all).await / CALLS as f64);
    client.shutdown().await;
    costs
}

/// The seconds until stale ids are gone, and how much of the server's time their search has taken, in
/// percent.
async fn sweep(url: &str, server: &mut Connection, pending: u64) -> (f64, f64) {
    let (client, delayed) = connect(url, None).await;
    let moved = pending / 10;
    fill(&delayed, 0..moved, Duration::ZERO).await;
    fill(&delayed, moved..moved + pending, LATER).await;
    client.shutdown().await;
    // As Redisson moves them: from both structures.
    let entries: Vec<Vec<u8>> =
        cmd("LRANGE").arg(ordered_list(QUEUE)).arg(0).arg(moved - 1).query(server).expect("entries");
    for entries in entries.chunks(1000) {
        cmd("ZREM").arg(timeout_set(QUEUE)).arg(entries).exec(server).expect("ZREM");
    }
    cmd("LTRIM").arg(ordered_list(QUEUE)).arg(moved).arg(-1).exec(server).expect("LTRIM");
    let ids = format!("redelay:jobs:{{{QUEUE}}}");
    let (client, _delayed) = connect(url, Some(Duration::from_secs(1))).await;
    let begun = Instant::now();
    let before = spent(server);
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let left: u64 = cmd("HLEN").arg(&ids).query(server).expect("HLEN");
        if (left - pending) as f64 <= LEFT * moved as f64 || begun.elapsed() > 2 * SWEPT_WITHIN {
            break;
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let share = (spent(server) - before) / 1e6 / seconds * 100.0;
    client.shutdown().await;
    (seconds, share)
}
