//! Plans that run beside each other.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use redelay_support::part;

use crate::never_stuck::variable;

/// Runs each of these on some threads, each with a runtime of its own: what one of them waits for delays no
/// other.
pub(crate) fn each_on_threads<P: Send>(threads: usize, plans: Vec<P>, run: impl AsyncFn(P) + Sync) {
    let plans = Mutex::new(plans);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some(plan) = plans.lock().unwrap().pop() else { return };
                    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                    runtime.block_on(run(plan));
                }
            });
        }
    });
}

/// Runs the plan of each seed: of `REDELAY_SEED`, or of this part among the first `plans` (or
/// `REDELAY_PLANS`). Each returns its story, or what went wrong. `test` runs one of them again.
pub(crate) fn each_seed(
    threads: usize,
    plans: u64,
    deadline: Duration,
    test: &str,
    run: impl AsyncFn(u64) -> Result<String, String> + Sync,
) {
    let plans = variable("REDELAY_PLANS").unwrap_or(plans);
    let seeds: Vec<u64> = match variable("REDELAY_SEED") {
        Some(seed) => vec![seed],
        None => (0..plans).filter(|seed| part().has(*seed)).collect(),
    };
    let failed = Mutex::new(Vec::<String>::new());
    each_on_threads(threads, seeds, async |seed| match tokio::time::timeout(deadline, run(seed)).await {
        Ok(Ok(story)) => println!("seed {seed}: {story}"),
        Ok(Err(why)) => failed.lock().unwrap().push(format!("seed {seed}: {why}")),
        Err(_) => failed.lock().unwrap().push(format!("seed {seed}: it hangs")),
    });
    let failed = failed.into_inner().unwrap();
    assert!(
        failed.is_empty(),
        "{}\nTo run one again: REDELAY_SEED=17 cargo test --workspace --all-features --test faults {test}",
        failed.join("\n")
    );
}
