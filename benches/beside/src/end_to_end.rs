//! Offer, transfer and take, for some time: messages per second, and the cost of a thousand of them on client
//! and server.

use crate::bench::{Bench, Measured};
use crate::load::{Cost, Load, PATIENCE};
use crate::report::count;
use crate::results::{Goal, Row, Table};
use crate::spread::Better;
use crate::system::{Sides, System};

/// The most at 1,000 messages a second. The goals of the CPU time are in `ladder/messages.rs`.
const GOALS: [(&str, f64); 3] = [("scripts", 1.7), ("commands", 12.0), ("lateness", 2.5)];

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    let mut rows = Vec::new();
    for rate in bench.effort.rates.iter().copied().chain([0.0]) {
        let rounds = bench.effort.rounds_afresh;
        let name =
            if rate > 0.0 { format!("{}/s", count(rate as u64)) } else { "as fast as possible".into() };
        let costs = bench.alternate(&format!("end to end: {name}"), rounds, |bench, system| {
            let load = Load::new(rate, bench.effort.millis * 5, bench.effort.counted);
            let mut workers = load.start(bench, system)?;
            load.run(bench, &mut workers)
        });
        if rate == 0.0 {
            rows.push(row(
                "messages a second, ",
                &name,
                "messages/s",
                Better::More,
                &costs,
                Cost::per_second,
            ));
        }
        let mut of_rate = cost_rows(&name, &costs);
        if rate > 0.0 {
            of_rate.push(row("lateness p99, ", &name, "ms", Better::Less, &costs, Cost::late_p99));
        }
        rows.extend(of_rate.into_iter().map(|row| {
            match GOALS.iter().find(|(what, _)| row.what.starts_with(what)) {
                Some((_, most)) if rate == 1_000.0 => row.goal(Goal::AtMost(*most)),
                _ => row,
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

fn cost_rows(name: &str, costs: &[Sides<Cost>]) -> Vec<Row> {
    type Value = fn(&Cost) -> f64;
    let all: [(&str, &str, Value); 4] = [
        ("client, ", "CPU s/1,000 messages", |cost| cost.client_micros() / 1_000.0),
        ("server, ", "CPU s/1,000 messages", |cost| cost.server_micros() / 1_000.0),
        ("scripts, ", "per message", Cost::scripts),
        ("commands, ", "per message", Cost::commands),
    ];
    let mut rows: Vec<_> = all
        .into_iter()
        .map(|(what, unit, value)| row(what, name, unit, Better::Less, costs, value))
        .collect();
    let missing = |system| costs.iter().map(|round| round.get(system).missing).sum::<u64>();
    let (redelay, redisson) = (missing(System::Redelay), missing(System::Redisson));
    if redelay + redisson > 0 {
        let patience = PATIENCE.as_secs();
        rows[0].note = format!(
            "not delivered after {patience} s without a message: redelay {redelay}, Redisson {redisson}"
        );
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
