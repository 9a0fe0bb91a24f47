//! After any fault of any length, every acknowledged payload is delivered once, within a bound, and no process needs a
//! restart.
//!
//! This file runs plans that are made from seeds. Faults that fit into no plan have their own tests in the folder.
//!
//! | variable | effect |
//! |---|---|
//! | `REDELAY_SEED=17` | runs this one plan |
//! | `REDELAY_SOAK=600` | runs plans from random seeds for this number of seconds (`make soak`) |

pub(super) mod clock;
mod failover;
mod faults;
mod loading;
mod memory;
mod overflow;
mod plan;
mod rig;
mod stopped;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use faults::{Hit, Hits};
use plan::Plan;
use redelay_support::part;
use rig::{BOUND, Report};

/// The plans of a run without these variables.
pub(crate) const SEEDS: std::ops::Range<u64> = 0..600;
/// The number of plans that run at a time. Most of the time, a plan waits.
const AT_A_TIME: usize = 4;
/// From this number of plans on, a quarter at least of the faults of each kind must do something.
const MANY: usize = 60;
/// The time limit of a plan. It ends a plan that hangs where nothing else does.
const LONGEST: Duration = Duration::from_secs(90);

/// The number in an environment variable.
fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value}: it should be a number")))
}

fn run(seed: u64) -> Result<Report, String> {
    let plan = Plan::of_seed(seed);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime can be built");
    let running = async { tokio::time::timeout(LONGEST, rig::run(&plan)).await };
    // A panic has printed its reason.
    let result = match catch_unwind(AssertUnwindSafe(|| runtime.block_on(running))) {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(format!("it hangs for {LONGEST:?}")),
        Err(_) => Err("it panicked".into()),
    };
    runtime.shutdown_background();
    result.map_err(|reason| {
        let again = format!("REDELAY_SEED={seed} cargo test --all-features --test faults seeded");
        format!("{plan:#?}\n{reason}\nTo run it again: {again}\n")
    })
}

#[test]
fn seeded_plans() {
    let begun = Instant::now();
    let soak = variable("REDELAY_SOAK").map(Duration::from_secs);
    let mut seeds: Box<dyn Iterator<Item = u64> + Send> = match (variable("REDELAY_SEED"), soak) {
        (Some(seed), _) => Box::new(std::iter::once(seed)),
        (None, Some(time)) => {
            Box::new(std::iter::repeat_with(|| fastrand::u64(..)).take_while(move |_| begun.elapsed() < time))
        }
        (None, None) => Box::new(SEEDS.filter(|seed| part().has(*seed))),
    };
    let (next, reports) = (Mutex::new(&mut seeds), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let Some(seed) = next.lock().unwrap().next() else { return };
                    let result = run(seed);
                    if let Err(failure) = &result {
                        eprintln!("{failure}");
                    }
                    reports.lock().unwrap().push((seed, result));
                }
            });
        }
    });
    let reports = reports.into_inner().unwrap();
    let good: Vec<_> = reports.iter().filter_map(|(_, result)| result.as_ref().ok()).collect();
    let hits = summarize(&good, begun.elapsed());
    let bad: Vec<_> = reports.iter().filter(|(_, result)| result.is_err()).map(|(seed, _)| seed).collect();
    assert!(
        reports.len() < MANY || hits.iter().all(|hit| 4 * hit.hitting >= hit.faults),
        "a kind of fault did too little"
    );
    assert!(bad.is_empty(), "{} of {} plans failed, with the seeds {bad:?}", bad.len(), reports.len());
}

/// Returns what [`Hits::ALL`] counts.
fn summarize(good: &[&Report], took: Duration) -> [Hit; Hits::ALL.len()] {
    let sum = |of: fn(&Report) -> usize| good.iter().map(|report| of(report)).sum::<usize>();
    println!(
        "{} plans with {} faults in {took:.0?}: {} offers acknowledged, {} of unknown outcome, {} refused; {} taken",
        good.len(),
        sum(|report| report.faults),
        sum(|report| report.acknowledged),
        sum(|report| report.unknown),
        sum(|report| report.refused),
        sum(|report| report.taken),
    );
    println!(
        "lost: {} with {} parked pops that died, {} that a server without append-only file forgot",
        sum(|report| if report.forgot { 0 } else { report.lost }),
        sum(|report| report.dead_pops),
        sum(|report| if report.forgot { report.lost } else { 0 }),
    );
    let mut recoveries: Vec<_> = good.iter().map(|report| report.recovery).collect();
    recoveries.sort();
    if let Some(longest) = recoveries.last() {
        println!(
            "all delivered after {:.1?} (median), {longest:.1?} at most; {BOUND:?} are allowed",
            recoveries[recoveries.len() / 2]
        );
    }
    Hits::ALL.map(|what| {
        let sum = |of: fn(&Hit) -> usize| good.iter().map(|report| of(&report.hits.of(what))).sum();
        let hit = Hit {
            count: sum(|hit| hit.count),
            hitting: sum(|hit| hit.hitting),
            faults: sum(|hit| hit.faults),
        };
        println!("{} {what}, by {} of {} faults", hit.count, hit.hitting, hit.faults);
        hit
    })
}
