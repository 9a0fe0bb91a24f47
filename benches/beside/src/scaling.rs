//! The cost of a message when more processes share its queue.

use crate::bench::{Bench, Measured, warm_up};
use crate::end_to_end::{TAKERS, cost_rows, run};
use crate::results::Table;

pub(crate) fn measure(bench: &mut Bench) -> Measured {
    let mut rows = Vec::new();
    for &processes in bench.effort.processes {
        let rounds = bench.effort.rounds_afresh;
        let rate = bench.effort.per_second;
        let name = if processes == 1 { "1 process".into() } else { format!("{processes} processes") };
        let costs = bench.alternate(&format!("scaling: {name}"), rounds, |bench, system| {
            let mut workers = bench.start_workers(system, processes, TAKERS.div_ceil(processes))?;
            warm_up(&mut workers, bench.effort.warm_up / 2)?;
            run(bench, &mut workers, rate)
        });
        rows.extend(cost_rows(&name, &costs));
    }
    let about = "As end to end at a rate. The rate is that of all processes together: each of them offers and takes its share.";
    Measured {
        tables: vec![Table { name: "scaling".into(), about: about.into(), rows }],
        ..Measured::default()
    }
}
