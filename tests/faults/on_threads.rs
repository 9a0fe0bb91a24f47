//! Plans that run beside each other.

use std::sync::Mutex;
use std::thread;

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
