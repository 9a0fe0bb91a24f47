//! Offer, transfer, handle and acknowledge, with a worker, for some time: messages per second, and the cost
//! of each on client and server.

use super::all_systems;
use crate::bench::{Bench, Measured};
use crate::contest::Contest;
use crate::load::{Load, lines, missing};
use crate::report::count;

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    let (systems, rounds) = (all_systems(bench), bench.effort.rounds_afresh);
    let mut rows = Vec::new();
    let mut about =
        "Offers with a delay of 0 to 100 ms, handled by a worker of the same process with a concurrency of \
         16: first at rates that are the same for all systems, then with 64 offers in flight at any time. \
         The commands include those that scripts run, and those of the offers. asynq looks for what is due \
         every five seconds, which is its default. apalis-redis has due times in whole seconds, so its \
         messages may be early; an idle worker of it asks every 100 ms here (30 s by default)."
            .to_owned();
    for rate in bench.effort.rates.iter().copied().chain([0.0]) {
        let what =
            if rate > 0.0 { format!("{}/s", count(rate as u64)) } else { "as fast as possible".into() };
        let load = Load::new(rate, bench.effort.millis * 5, bench.effort.counted);
        let load = Load { is_acknowledged: true, ..load };
        let costs =
            bench.take_turns(&format!("receive end to end: {what}"), &systems, rounds, |bench, system| {
                let mut workers = load.start(bench, *system)?;
                load.run(bench, &mut workers)
            });
        rows.extend(lines(&what, rate, &systems, &costs));
        about += &missing(&what, &systems, &costs);
    }
    let contest = Contest { name: "receive end to end".into(), about, rows };
    Measured { contests: vec![contest], ..Measured::default() }
}
