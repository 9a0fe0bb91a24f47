//! What jobs cost the server that hold their ids until they are done, or have headers.

use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use redelay::delayed_queue::JobOffer;
use redelay::{BlockingQueue, Client, DelayedQueue, codec};
use redelay_fixture::redis::Connection;
use redelay_fixture::until_async;
use tokio::runtime::Runtime;

use super::numbered::{CALLS, LATER, QUEUE, any, connect, id, last, later, payload};
use super::script_time::{IN_FLIGHT, cancels, cost};
use crate::bench::Bench;
use crate::contest::{Aim, Column, Contest, Line};
use crate::report::count;
use crate::spread::Better;
use crate::system::System;

/// The first one is what the others are compared with.
const KINDS: [&str; 3] = ["by id", "until done", "with a header"];
/// The names of the rows, and how many times the cost of a job by id.
const ROWS: [(&str, f64); 3] = [
    ("offer", 1.3),
    ("receive and acknowledge, 1 in flight", 1.2),
    ("receive and acknowledge, 64 in flight", 1.2),
];
/// The same among many, and the most µs of a call.
const AMONG_MANY: [(&str, Option<f64>); 4] = [
    ("state", Some(30.0)),
    ("replace one of the last 1,000", None),
    ("cancel one of the last 1,000", None),
    ("cancel at a random place", Some(20_000.0)),
];

pub(super) fn measure(bench: &mut Bench, runtime: &Runtime) -> Vec<Contest> {
    let mut rounds: Vec<Vec<Vec<f64>>> = vec![vec![Vec::new(); KINDS.len()]; ROWS.len()];
    for _ in 0..bench.effort.rounds {
        for (column, kind) in KINDS.iter().enumerate() {
            bench.server.clear();
            let mut server = bench.server.connect();
            let costs = runtime.block_on(calls(&bench.server.url(System::Redelay), &mut server, kind));
            costs.into_iter().zip(&mut rounds).for_each(|(cost, row)| row[column].push(cost));
        }
    }
    let rows = ROWS.iter().zip(rounds).map(|((what, most), rounds)| {
        let columns =
            KINDS.iter().zip(rounds).map(|(of, rounds)| Column { of: (*of).into(), rounds }).collect();
        let line = Line::new(*what, "µs of the server", Better::Less, columns);
        KINDS[1..].iter().fold(line, |line, of| {
            line.aim(Aim::AtMostTimes { of: (*of).into(), than: KINDS[0].into(), most: *most })
        })
    });
    let about = "Time that the server spends in the scripts for a call, or for a message. Offers have 64 calls in flight. The header is \
                 one of 32 bytes. Payloads of 100 bytes.";
    let mut contests =
        vec![Contest { name: "jobs that are held".into(), about: about.into(), rows: rows.collect() }];

    let &pending = bench.effort.jobs.last().expect("a size");
    bench.server.clear();
    let mut server = bench.server.connect();
    let costs = runtime.block_on(among_many(&bench.server.url(System::Redelay), &mut server, pending));
    let rows = AMONG_MANY.iter().zip(costs).map(|((what, most), cost)| {
        let column = Column { of: "until done".into(), rounds: vec![cost] };
        let line = Line::new(*what, "µs of the server", Better::Less, vec![column]);
        match *most {
            Some(most) => line.aim(Aim::AtMost { of: "until done".into(), most }),
            None => line,
        }
    });
    let about = format!("The same, once, with {} such jobs pending.", count(pending));
    contests.push(Contest { name: "many jobs that are held".into(), about, rows: rows.collect() });
    contests
}

fn offer(delayed: &DelayedQueue<String>, kind: &str, number: u64, delay: Duration) -> JobOffer {
    let offer = delayed.offer(&payload(number), delay).id(id(number));
    match kind {
        "until done" => offer.until_done(),
        "with a header" => offer.header("traceparent", "0123456789abcdef0123456789abcdef"),
        _ => offer,
    }
}

async fn store(offers: impl Iterator<Item = JobOffer>) {
    let stored = stream::iter(offers).buffer_unordered(IN_FLIGHT);
    stored.for_each(async |stored| _ = stored.expect("stored")).await;
}

async fn calls(url: &str, server: &mut Connection, kind: &str) -> Vec<f64> {
    let (client, delayed) = connect(url, None).await;
    let new = async |number| {
        offer(&delayed, kind, number, LATER).await.map(drop).expect("stored");
    };
    let mut costs = vec![cost(server, CALLS, IN_FLIGHT, new).await];
    // For both rows, and the calls before them that load the scripts.
    let ready = 10_000..10_000 + 2 * (CALLS + 1);
    let at_once = ready.clone().map(|number| offer(&delayed, kind, number, Duration::ZERO));
    store(at_once).await;
    until_moved(url, (ready.end - ready.start) as usize).await;
    let queue = client.blocking_queue(QUEUE, codec::String);
    let receiver = queue.receiver();
    let receive = async |_| {
        let delivery = receiver.receive().await.expect("a message");
        delivery.ack().await.expect("acknowledged");
    };
    costs.push(cost(server, CALLS, 1, receive).await);
    costs.push(cost(server, CALLS, IN_FLIGHT, receive).await);
    client.shutdown().await;
    costs
}

/// Another client moves them.
async fn until_moved(url: &str, number: usize) {
    let client = Client::connect(url).await.expect("a connection");
    let queue: BlockingQueue<String> = client.blocking_queue(QUEUE, codec::String);
    let _delayed = client.delayed_queue(&queue);
    until_async("all are ready", || async { queue.len().await.expect("a length") == number }).await;
    client.shutdown().await;
}

async fn among_many(url: &str, server: &mut Connection, pending: u64) -> Vec<f64> {
    let (client, delayed) = connect(url, None).await;
    let held = (0..pending).map(|number| offer(&delayed, "until done", number, later(LATER)));
    store(held).await;
    let state = async |_| {
        delayed.job(id(any(pending))).state().await.expect("an answer").expect("it is pending");
    };
    let mut costs = vec![cost(server, CALLS, IN_FLIGHT, state).await];
    let replace = async |number| {
        let other = delayed.job(id(last(pending, number))).replace(&payload(pending + number), LATER);
        other.until_done().await.map(drop).expect("replaced");
    };
    costs.push(cost(server, CALLS, IN_FLIGHT, replace).await);
    costs.extend(cancels(server, &delayed, pending).await);
    client.shutdown().await;
    costs
}
