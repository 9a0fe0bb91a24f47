//! Offer, transfer and take, for some time: messages per second, and the cost of a thousand of them on client and
//! server.

use std::time::{Duration, Instant};

use crate::bench::{Bench, Measured, ask_all, wait_for, warm_up};
use crate::job::{Job, Offer};
use crate::repeat::Outcome;
use crate::report::count;
use crate::results::{Better, Goal, Row, Table, quantile};
use crate::server::Counters;
use crate::worker::{Sides, System, Worker};

const DELAYS: (u64, u64) = (0, 100);
/// Takers of all processes together.
pub(crate) const TAKERS: usize = 16;
const QUEUE: &str = "messages";

/// The cost of this number of messages.
pub(crate) struct Cost {
    messages: f64,
    seconds: f64,
    client_cpu: f64,
    server: Counters,
    /// ms.
    late_p99: f64,
    missing: u64,
}

/// The most that a message may cost at a rate.
fn goals(rate: f64) -> &'static [(&'static str, f64)] {
    match rate {
        50.0 => &[("client", 0.4), ("server", 0.2)],
        1_000.0 => {
            &[("client", 0.15), ("server", 0.08), ("scripts", 1.7), ("commands", 12.0), ("lateness", 2.5)]
        }
        _ => &[],
    }
}

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    let mut rows = Vec::new();
    for rate in bench.effort.rates.iter().copied().chain([0.0]) {
        let rounds = bench.effort.rounds_afresh;
        let name =
            if rate > 0.0 { format!("{}/s", count(rate as u64)) } else { "as fast as possible".into() };
        let costs = bench.alternate(&format!("end to end: {name}"), rounds, |bench, system| {
            let mut workers = bench.start_workers(system, 1, TAKERS)?;
            warm_up(&mut workers, bench.effort.warm_up / 2)?;
            run(bench, &mut workers, rate)
        });
        if rate == 0.0 {
            rows.push(row("messages a second, ", &name, "messages/s", Better::More, &costs, |cost| {
                cost.messages / cost.seconds
            }));
        }
        let mut of_rate = cost_rows(&name, &costs);
        if rate > 0.0 {
            of_rate.push(row("lateness p99, ", &name, "ms", Better::Less, &costs, |cost| cost.late_p99));
        }
        rows.extend(of_rate.into_iter().map(|row| {
            let goal = goals(rate).iter().find(|(what, _)| row.what.starts_with(what));
            match goal {
                Some((_, most)) => row.goal(Goal::AtMost(*most)),
                None => row,
            }
        }));
    }
    let about = "Offers with a delay of 0 to 100 ms, taken by 16 takers of the same process: first at rates that are the same \
                 for both systems, then with 64 offers in flight at any time. The commands include those that scripts run, and those of \
                 the offers.";
    Measured {
        tables: vec![Table { name: "end to end".into(), about: about.into(), rows }],
        ..Measured::default()
    }
}

/// All workers offer and take, at this rate together, or as fast as they can.
pub(crate) fn run(bench: &mut Bench, workers: &mut [Worker], rate: f64) -> Outcome<Cost> {
    let (takers, share) = (TAKERS.div_ceil(workers.len()), workers.len() as f64);
    ask_all(workers, &Job::Collect { queue: QUEUE.into(), takers })?;
    let millis = bench.effort.millis * 5;
    let mut offer = Offer { delay: DELAYS, concurrency: 64, millis, ..Offer::new(QUEUE) };
    if rate > 0.0 {
        let count = (rate * millis as f64 / 1_000.0).max(bench.effort.counted as f64);
        (offer.per_second, offer.count) = (rate / share, (count / share) as u64);
    }
    let cpu = |workers: &[Worker]| workers.iter().map(Worker::cpu_seconds).sum::<f64>();
    let (server, client, begun) = (bench.server.counters(), cpu(workers), Instant::now());
    let offered = ask_all(workers, &offer.job())?.iter().map(|reply| reply.count).sum();
    let collected = wait_for(workers, offered, Duration::from_secs(5))?;
    let mut cost = Cost {
        messages: collected as f64,
        seconds: begun.elapsed().as_secs_f64(),
        client_cpu: cpu(workers) - client,
        server: bench.server.counters().since(server),
        late_p99: 0.0,
        missing: offered - collected.min(offered),
    };
    let late = ask_all(workers, &Job::Stop)?.into_iter().flat_map(|reply| reply.late);
    let mut late: Vec<f64> = late.map(|micros| micros as f64 / 1_000.0).collect();
    late.sort_unstable_by(f64::total_cmp);
    cost.late_p99 = quantile(&late, 0.99);
    Ok(cost)
}

pub(crate) fn cost_rows(name: &str, costs: &[Sides<Cost>]) -> Vec<Row> {
    type Value = fn(&Cost) -> f64;
    let all: [(&str, &str, Value); 4] = [
        ("client, ", "CPU s/1,000 messages", |cost| cost.client_cpu / cost.messages * 1_000.0),
        ("server, ", "CPU s/1,000 messages", |cost| cost.server.cpu_seconds / cost.messages * 1_000.0),
        ("scripts, ", "per message", |cost| cost.server.scripts / cost.messages),
        ("commands, ", "per message", |cost| cost.server.commands / cost.messages),
    ];
    let mut rows: Vec<_> = all
        .into_iter()
        .map(|(what, unit, value)| row(what, name, unit, Better::Less, costs, value))
        .collect();
    let missing = |system| costs.iter().map(|round| round.get(system).missing).sum::<u64>();
    let (redelay, redisson) = (missing(System::Redelay), missing(System::Redisson));
    if redelay + redisson > 0 {
        rows[0].note =
            format!("not delivered after 5 s without a message: redelay {redelay}, Redisson {redisson}");
    }
    rows
}

fn row(
    what: &str,
    name: &str,
    unit: &str,
    better: Better,
    costs: &[Sides<Cost>],
    value: impl Fn(&Cost) -> f64,
) -> Row {
    Row::new(format!("{what}{name}"), unit, better, costs.iter().map(|round| round.map(&value)).collect())
}
