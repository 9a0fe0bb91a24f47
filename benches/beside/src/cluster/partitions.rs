//! What a message costs by the number of partitions of its queue. Only redelay has them.

use std::slice::from_mut;
use std::time::{Duration, Instant};

use super::cost::{Cost, IN_FLIGHT, counted};
use super::place::{Place, QUEUE};
use crate::bench::Bench;
use crate::contest::{Column, Contest, Line};
use crate::job::{Collect, Job, Offer, Reply};
use crate::repeat::Outcome;
use crate::report::count;
use crate::spread::Better;
use crate::system::System;
use crate::warm_up::warm_up;
use crate::worker::{Worker, wait_for};

const TAKERS: usize = 16;
/// The range of delays, ms.
const DELAYS: (u64, u64) = (0, 100);

/// One turn of a number of partitions.
struct Turn {
    offers: Cost,
    fast: Cost,
    at_a_rate: Cost,
}

pub(super) fn contest(bench: &mut Bench, place: &mut Place) -> Contest {
    let (ways, rounds) = (bench.effort.partitions, bench.effort.rounds_afresh);
    let what = format!("partitions, {}", place.name);
    let turns = bench.take_turns(&what, ways, rounds, |bench, partitions| turn(bench, place, *partitions));
    let names = ways.iter().map(|&partitions| match partitions {
        1 => "ordinary queue".to_owned(),
        _ => format!("{partitions} partitions"),
    });
    let line = |what: String, unit: &str, better, value: &dyn Fn(&Turn) -> f64| {
        let rounds = turns.iter().map(|turns| turns.iter().map(value).collect());
        let columns = names.clone().zip(rounds).map(|(of, rounds)| Column { of, rounds }).collect();
        Line::new(what, unit, better, columns)
    };
    let rate = format!("end to end, {}/s", count(bench.effort.per_second as u64));
    type Kind<'a> = (&'a str, fn(&Turn) -> &Cost);
    let kinds: [Kind<'_>; 3] = [
        ("offers", |turn| &turn.offers),
        ("end to end, as fast as possible", |turn| &turn.fast),
        (&rate, |turn| &turn.at_a_rate),
    ];
    let mut rows = Vec::new();
    for (name, of) in kinds {
        if name != rate {
            rows.push(line(name.into(), "messages/s", Better::More, &|turn| of(turn).per_second));
        }
        let mut cost = |what: &str, unit: &str, value: fn(&Cost) -> f64| {
            rows.push(line(format!("{name}: {what}"), unit, Better::Less, &|turn| value(of(turn))));
        };
        cost("scripts", "per message", |cost| cost.scripts);
        cost("commands", "per message", |cost| cost.commands);
        cost("client's CPU", "µs per message", |cost| cost.client_micros);
        cost("servers' CPU", "µs per message", |cost| cost.servers_micros);
    }
    let about = format!(
        "A partitioned queue of one process, by the number of its partitions, on {} of the table above. Offers are due in an hour, with \
         {IN_FLIGHT} in flight. From end to end they have a delay of 0 to 100 ms, and {TAKERS} takers of the same process take from \
         whichever partition has one, first with {IN_FLIGHT} offers in flight, then at a rate. The commands include those that \
         scripts run. Behind a value: how many times better the ordinary queue was.",
        place.name
    );
    Contest { name: what, about, rows }
}

fn turn(bench: &Bench, place: &mut Place, partitions: usize) -> Outcome<Turn> {
    let settings = bench.tuning.best;
    let mut worker = Worker::start_with_partitions(System::Redelay, &place.url(), settings, partitions)?;
    place.clear();
    warm_up(from_mut(&mut worker), bench.effort.warm_up.min(300))?;
    let millis = bench.effort.millis;
    let offer = Offer { concurrency: IN_FLIGHT, millis, ..Offer::new(QUEUE) };
    worker.ask(&Offer { count: IN_FLIGHT as u64, ..offer.clone() }.job())?;
    let offers = counted(place, &mut worker, |worker| worker.ask(&offer.clone().job()))?;
    worker.ask(&Job::Close)?;
    place.clear();

    let offer = Offer { delay: DELAYS, millis: millis * 2, ..offer };
    let fast = end_to_end(place, &mut worker, &offer)?;
    let per_second = bench.effort.per_second;
    let at_a_rate = Offer { per_second, count: (per_second * offer.millis as f64 / 1_000.0) as u64, ..offer };
    let at_a_rate = end_to_end(place, &mut worker, &at_a_rate)?;
    Ok(Turn { offers, fast, at_a_rate })
}

/// Offers, transfers and takes.
fn end_to_end(place: &mut Place, worker: &mut Worker, offer: &Offer) -> Outcome<Cost> {
    worker.ask(&Collect::new(QUEUE, TAKERS).job())?;
    let cost = counted(place, worker, |worker| {
        let begun = Instant::now();
        let offered = worker.ask(&offer.clone().job())?.count;
        let collected = wait_for(from_mut(worker), offered, Duration::from_secs(5))?;
        if collected < offered {
            return Err(worker.failure(&format!("has taken {collected} of {offered} messages")));
        }
        Ok(Reply { count: collected, seconds: begun.elapsed().as_secs_f64(), ..Reply::default() })
    })?;
    worker.ask(&Job::Stop)?;
    Ok(cost)
}
