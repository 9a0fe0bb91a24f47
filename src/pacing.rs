//! When to go on: yielding to other tasks, the pauses between retries, and limits for what a reply ends.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::mpsc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

/// A limit is waited for in steps of this length.
const STEP: Duration = Duration::from_millis(100);
/// A step that takes so much longer was held up, most likely with the whole process. The reply may wait in a
/// socket meanwhile, so another step follows; but not more often than this.
const HELD_UP: Duration = Duration::from_millis(50);
const EXCUSED: u32 = 10;

/// The steps of a limit.
struct Steps {
    left: Duration,
    excused: u32,
}

impl Steps {
    fn of(time: Duration) -> Self {
        Self { left: time, excused: 0 }
    }

    /// `None` when the time is over.
    fn next(&self) -> Option<Duration> {
        (!self.left.is_zero()).then(|| self.left.min(STEP))
    }

    /// A step has taken this long.
    fn took(&mut self, step: Duration, time: Duration) {
        if time > step + HELD_UP && self.excused < EXCUSED {
            self.excused += 1;
        } else {
            self.left -= step;
        }
    }
}

/// Waits for a future for this time at most, not counting time for which the whole process was held up:
/// payloads would be lost whose replies have come meanwhile. `None` if the time is over.
pub(crate) async fn within<F: Future>(time: Duration, future: F) -> Option<F::Output> {
    let (mut future, mut steps) = (pin!(future), Steps::of(time));
    while let Some(step) = steps.next() {
        let begun = Instant::now();
        if let Ok(output) = timeout(step, &mut future).await {
            return Some(output);
        }
        steps.took(step, begun.elapsed());
    }
    None
}

/// Lets every task run that is ready now, at least those of this worker thread.
///
/// Tokio's `yield_now` waits longer: until the worker has nothing else to do, or for 61 polls. Where tasks
/// compute for a millisecond each, that is 60 ms.
pub(crate) async fn yield_once() {
    let mut passed = false;
    poll_fn(|context| {
        if std::mem::replace(&mut passed, true) {
            return Poll::Ready(());
        }
        // A task that wakes itself while it runs goes to the end of the queue, and stays there if it is woken
        // again.
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// As [`within`], in any context: there may be no Tokio runtime, or one without a timer, and no thread may be
/// driving the runtime of the tasks that the future waits for. A thread measures the time.
pub(crate) async fn at_most(time: Duration, future: impl Future<Output = ()>) {
    // The thread ends when this is dropped.
    let (_waiting, has_ended) = mpsc::channel::<()>();
    let (over, is_over) = oneshot::channel();
    let timer = thread::Builder::new().name("redelay-timer".to_owned()).spawn(move || {
        let mut steps = Steps::of(time);
        while let Some(step) = steps.next() {
            let begun = std::time::Instant::now();
            if has_ended.recv_timeout(step) != Err(mpsc::RecvTimeoutError::Timeout) {
                return;
            }
            steps.took(step, begun.elapsed());
        }
        let _ = over.send(());
    });
    tokio::select! {
        biased;
        () = future => {}
        // Fails only without a thread.
        Ok(()) = is_over, if timer.is_ok() => {}
    }
}

/// The pause after this number of failures in a row: 10 ms, doubled each time up to a second, minus up to
/// half of it at random.
pub(crate) fn pause_after(failures: u32) -> Duration {
    pause_after_with(failures, fastrand::f64())
}

/// The same, with a number from 0 to 1 instead of chance.
pub(crate) fn pause_after_with(failures: u32, chance: f64) -> Duration {
    const FIRST: Duration = Duration::from_millis(10);
    const LAST: Duration = Duration::from_secs(1);
    FIRST.saturating_mul(1 << failures.min(10)).min(LAST).mul_f64(0.5 + chance / 2.0)
}

/// This time, or up to a quarter less or more, so that clients do not act in step.
pub(crate) fn jittered(time: Duration) -> Duration {
    jittered_with(time, fastrand::f64())
}

/// The same, with a number from 0 to 1 instead of chance.
pub(crate) fn jittered_with(time: Duration, chance: f64) -> Duration {
    time.mul_f64(0.75 + chance / 2.0)
}

/// Retries of one call until a deadline: the first after 2 ms, each pause twice as long as the one before.
#[derive(Debug)]
pub(crate) struct Retries {
    pause: Duration,
    deadline: Instant,
}

impl Retries {
    pub(crate) fn until(deadline: Instant) -> Self {
        Self { pause: Duration::from_millis(2), deadline }
    }

    /// Pauses before the next try. False, at once, when that try would come after the deadline.
    pub(crate) async fn pause(&mut self) -> bool {
        if Instant::now() + self.pause >= self.deadline {
            return false;
        }
        sleep(self.pause).await;
        self.pause *= 2;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_was_held_up_is_repeated_a_few_times() {
        let ms = Duration::from_millis;
        let (mut steps, mut next) = (Steps::of(ms(250)), Vec::new());
        for took in [100, 3000, 100, 160, 50] {
            let step = steps.next().expect("there is time");
            next.push(step.as_millis());
            steps.took(step, ms(took));
        }
        assert_eq!((&next[..], steps.next()), (&[100, 100, 100, 50, 50][..], None));

        let (mut steps, mut count) = (Steps::of(ms(100)), 0);
        while let Some(step) = steps.next() {
            steps.took(step, ms(60_000));
            count += 1;
        }
        assert_eq!(count, 1 + EXCUSED, "it ends");
    }
}
