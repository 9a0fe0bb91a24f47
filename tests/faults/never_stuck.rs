//! After any fault of any length, every acknowledged payload is delivered once, within a bound, and no
//! process needs a restart.
//!
//! This file runs plans that are made from seeds. Faults that fit into no plan have their own tests in the
//! folder. `make test` runs [a sixth](sixth) of the plans of each part; all of them run without parts, and in
//! `make soak`.
//!
//! | variable | effect |
//! |---|---|
//! | `REDELAY_SEED=17` | runs this one plan |
//! | `REDELAY_SOAK=600` | runs plans from random seeds for this number of seconds (`make soak`); also those of `fleet` |
//! | `REDELAY_FAULT=Delete` | only plans with such a fault, of those |
//! | `REDELAY_PLANS=200` | runs all of 200 plans of each test, from the seeds 0 to 199 |

pub(super) mod clock;
mod clusters;
mod deletions;
mod failover;
mod faults;
mod held;
mod jobs;
mod limits;
mod loading;
mod memory;
mod overflow;
mod plan;
mod redisson;
mod rig;
mod stopped;

use std::collections::HashSet;
use std::fmt::Debug;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use crate::deliveries::DEEDS;
use deletions::DELETED;
use faults::{Hit, Hits};
use plan::{Plan, kinds};
use redelay_support::part;
use rig::{BOUND, Report};
use tokio::sync::Semaphore;

/// The plans of a run without these variables.
pub(crate) const SEEDS: Range<u64> = 0..360;
/// The number of plans that run at a time, in all tests together. Most of the time, a plan waits.
const AT_A_TIME: usize = 4;
static RUNNING: Semaphore = Semaphore::const_new(AT_A_TIME);
/// From this number of plans on, each deed must be done, and some of the faults of each kind do something. A
/// part of the plans may be without, on a slow machine.
const MANY: usize = 45;
/// The same for plans without jobs and limits, of which there are more.
const VERY_MANY: usize = 300;
/// A plan without receivers that takes longer is told.
const SLOW: Duration = Duration::from_secs(2);
/// The time limit of a plan. It ends a plan that hangs where nothing else does.
const LONGEST: Duration = Duration::from_secs(600);

/// The number in an environment variable.
pub(super) fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value}: it should be a number")))
}

/// The seeds that the variables ask for, or else those of `all` that belong to this part.
pub(super) fn seeds(all: Range<u64>) -> Box<dyn Iterator<Item = u64> + Send> {
    let begun = Instant::now();
    let soak = variable("REDELAY_SOAK").map(Duration::from_secs);
    match (variable("REDELAY_SEED"), soak) {
        (Some(seed), _) => Box::new(std::iter::once(seed)),
        (None, Some(time)) => {
            Box::new(std::iter::repeat_with(|| fastrand::u64(..)).take_while(move |_| begun.elapsed() < time))
        }
        (None, None) => {
            let all = variable("REDELAY_PLANS").map_or(all, |plans| 0..plans);
            Box::new(all.filter(|seed| part().has(*seed)))
        }
    }
}

/// The same. Of one of several parts, [a sixth](sixth) of the plans, unless a variable asks for others.
fn some_seeds(all: Range<u64>, kinds: impl Fn(u64) -> Vec<String>) -> Box<dyn Iterator<Item = u64> + Send> {
    let is_asked =
        ["REDELAY_SEED", "REDELAY_SOAK", "REDELAY_PLANS"].map(variable).iter().any(Option::is_some);
    if is_asked || !part().is_one_of_several() {
        return seeds(all);
    }
    Box::new(sixth(seeds(all), kinds).into_iter())
}

/// A sixth of some plans, or more. They have every kind of fault that all of them have.
fn sixth(all: impl Iterator<Item = u64>, kinds: impl Fn(u64) -> Vec<String>) -> Vec<u64> {
    let mut met = HashSet::new();
    let has_news = |seed: &u64| kinds(*seed).into_iter().filter(|kind| met.insert(kind.clone())).count() > 0;
    let (mut sixth, others): (Vec<_>, Vec<_>) = all.partition(has_news);
    let missing = (sixth.len() + others.len()).div_ceil(6).saturating_sub(sixth.len());
    sixth.extend(others.into_iter().take(missing));
    sixth.sort_unstable();
    sixth
}

/// Runs one plan of a test. Prints what failed.
///
/// # Errors
/// Fails with the seed and the reason.
fn run<R>(
    test: &str,
    seed: u64,
    plan: &impl Debug,
    running: impl Future<Output = Result<R, String>>,
) -> Result<R, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime can be built");
    let running = async { tokio::time::timeout(LONGEST, running).await };
    // A panic has printed its reason.
    let result = match catch_unwind(AssertUnwindSafe(|| runtime.block_on(running))) {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(format!("it hangs for {LONGEST:?}")),
        Err(_) => Err("it panicked".into()),
    };
    runtime.shutdown_background();
    result.map_err(|reason| {
        let again = format!(
            "REDELAY_SEED={seed} cargo test --all-features --test faults -- --exact never_stuck::{test}"
        );
        eprintln!("{plan:#?}\n{reason}\nTo run it again: {again}\n");
        format!("seed {seed}: {reason}")
    })
}

/// Runs the plans of these seeds. Returns the reports, and the errors of [`run`].
fn run_all<R: Send>(
    seeds: impl Iterator<Item = u64> + Send,
    run: impl Fn(u64) -> Result<R, String> + Sync,
) -> (Vec<R>, Vec<String>) {
    let (next, results) = (Mutex::new(seeds), Mutex::new((Vec::new(), Vec::new())));
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let Some(seed) = next.lock().unwrap().next() else { return };
                    let running = futures::executor::block_on(RUNNING.acquire());
                    let result = run(seed);
                    drop(running);
                    let mut results = results.lock().unwrap();
                    match result {
                        Ok(report) => results.0.push(report),
                        Err(failure) => results.1.push(failure),
                    }
                }
            });
        }
    });
    results.into_inner().unwrap()
}

/// Without faults, everything is counted exactly.
#[test]
fn plans_without_faults() {
    let seeds = seeds(SEEDS).filter(|seed| Plan::of_seed(*seed).has_receivers()).take(part().share(12));
    let (good, bad) = run_all(seeds, |seed| {
        let plan = Plan::of_seed(seed).without_faults();
        run("plans_without_faults", seed, &plan, rig::run(&plan))
    });
    println!("{} plans, {} deliveries", good.len(), good.iter().map(|report| report.received).sum::<usize>());
    assert!(bad.is_empty(), "{bad:?}");
    assert!(good.iter().all(|report| report.receipts == 0), "receivers that end leave receipts");
}

#[test]
fn seeded_plans() {
    let begun = Instant::now();
    let only = std::env::var("REDELAY_FAULT").ok();
    let seeds = some_seeds(SEEDS, |seed| kinds(&Plan::of_seed(seed).steps)).filter(|seed| {
        let steps = format!("{:?}", Plan::of_seed(*seed).steps);
        only.as_ref().is_none_or(|only| steps.contains(only))
    });
    let (good, bad) = run_all(seeds, |seed| {
        let plan = Plan::of_seed(seed);
        let result = run("seeded_plans", seed, &plan, rig::run(&plan));
        if let Ok(report) = &result
            && report.recovery > if report.received > 0 { BOUND / 3 } else { SLOW }
        {
            println!("seed {seed}: all delivered after {:.1?}; {:?}", report.recovery, plan.steps);
        }
        result
    });
    report(&good, begun.elapsed());
    let hits = summarize(good.iter().map(|report| &report.hits));
    let deeds = deeds(&good);
    let plans = good.len() + bad.len();
    assert!(bad.is_empty(), "{} of {plans} plans failed: {bad:?}", bad.len());
    if plans >= VERY_MANY {
        // Some keys are seldom there.
        let least = |hit: &Hit| if DELETED.contains(&hit.what) { 0 } else { (hit.faults - 1) / 4 };
        let does_too_little = |hit: &&Hit| hit.faults >= 4 && hit.hitting <= least(hit);
        let idle: Vec<_> = hits.iter().filter(does_too_little).collect();
        assert!(idle.is_empty(), "these kinds of faults did too little: {idle:?}");
        let never: Vec<_> = DEEDS.iter().zip(deeds).filter(|(_, count)| *count == 0).collect();
        assert!(never.is_empty(), "this was never done: {never:?}");
    }
}

#[test]
fn plans_with_a_large_backlog() {
    let plan = |seed| Plan::of_seed(seed).with_large_backlog();
    let seeds = seeds(0..600).filter(|seed| plan(*seed).is_some()).take(part().share(9));
    let (good, bad) = run_all(seeds, |seed| {
        let plan = plan(seed).expect("it suits");
        run("plans_with_a_large_backlog", seed, &plan, rig::run(&plan))
    });
    let rebuilt = good.iter().filter(|report| report.zmscores > 0).count();
    println!("{} plans; in {rebuilt}, the list was rebuilt since the server was started last", good.len());
    assert!(bad.is_empty(), "{bad:?}");
    assert!(rebuilt > 0 || variable("REDELAY_SEED").is_some());
}

/// How often each of [`DEEDS`] was done.
fn deeds(good: &[Report]) -> [usize; DEEDS.len()] {
    let receiving = good.iter().filter(|report| report.received > 0).count();
    let received: usize = good.iter().map(|report| report.received).sum();
    let untidy = good.iter().filter(|report| report.receipts > 0).count();
    // A receiver that has lost a reply leaves its receipt on purpose.
    println!("{receiving} plans with receivers, {received} deliveries; {untidy} plans have left receipts");
    DEEDS.map(|deed| {
        let count = good.iter().map(|report| report.deeds.get(deed).copied().unwrap_or_default()).sum();
        println!("{count} {deed}");
        count
    })
}

/// Prints what happened.
fn report(good: &[Report], took: Duration) {
    let sum = |of: fn(&Report) -> usize| good.iter().map(of).sum::<usize>();
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
    // What a lost consumer had comes again after its lease.
    let (with, without): (Vec<_>, Vec<_>) = good.iter().partition(|report| report.received > 0);
    for (plans, which) in [(without, "without leases"), (with, "with leases")] {
        let mut recoveries: Vec<_> = plans.iter().map(|report| report.recovery).collect();
        recoveries.sort();
        let at = |share: f64| recoveries[((recoveries.len() - 1) as f64 * share) as usize];
        if !recoveries.is_empty() {
            println!(
                "{} plans {which}: all delivered after {:.1?} (median), {:.1?} (99 %), {:.1?} at most; {BOUND:?} \
                 are allowed",
                recoveries.len(),
                at(0.5),
                at(0.99),
                at(1.0),
            );
        }
    }
}

/// What the faults of each kind did in all plans.
fn summarize<'a>(plans: impl Iterator<Item = &'a Hits>) -> Vec<Hit> {
    let plans: Vec<_> = plans.collect();
    let all = Hits::ALL.iter().chain(&DELETED).map(|what| {
        let sum = |of: fn(&Hit) -> usize| plans.iter().map(|hits| of(&hits.of(what))).sum();
        let hit = Hit {
            what,
            count: sum(|hit| hit.count),
            hitting: sum(|hit| hit.hitting),
            faults: sum(|hit| hit.faults),
        };
        if hit.faults > 0 {
            println!("{} {what}, by {} of {} faults", hit.count, hit.hitting, hit.faults);
        }
        hit
    });
    all.collect()
}
