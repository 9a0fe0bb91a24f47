//! Sleeps until an instant, to a fraction of a millisecond.
//!
//! Tokio's timers count whole milliseconds and are rounded up, and so is the wait for events beneath them: they are late by
//! one millisecond on average, by two at most. That would be most of the lateness of a payload. So a thread of the
//! runtime's blocking pool sleeps for the last two milliseconds; the system wakes it within some 60 µs. If that pool is
//! busy, Tokio's timer ends the sleep.

use std::time::Duration;

use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep_until};

/// How late Tokio's timers can be.
const LATE: Duration = Duration::from_millis(2);

/// A timer for one instant at a time, to be used again and again.
#[derive(Debug, Default)]
pub(super) struct PreciseSleep {
    /// A thread that sleeps until this instant. It continues when nothing waits for it any more, and serves the next wait.
    tail: Option<(Instant, JoinHandle<()>)>,
}

impl PreciseSleep {
    /// Waits until this instant. Cancel safe; the next call may name another instant.
    pub(super) async fn until(&mut self, at: Instant) {
        let left = at.saturating_duration_since(Instant::now());
        if left > LATE {
            sleep_until(at - LATE).await;
        }
        tokio::select! {
            () = sleep_until(at) => {}
            () = self.blocking_tail(at) => {}
        }
    }

    async fn blocking_tail(&mut self, at: Instant) {
        loop {
            let left = at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let (_, tail) = match &mut self.tail {
                Some(tail) if tail.0 <= at => tail,
                other => other.insert((at, spawn_blocking(move || std::thread::sleep(left)))),
            };
            // Fails only when the runtime is shutting down.
            let _ = tail.await;
            self.tail = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::mpsc;

    use futures::future::FutureExt;

    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[tokio::test]
    async fn it_is_never_early_whatever_the_instant_before_was() {
        let mut sleep = PreciseSleep::default();
        for (dropped, then) in [(1, 2), (2, 1), (5, 1), (1, 5), (0, 3), (3, 0)] {
            let now = Instant::now();
            assert!(sleep.until(now + ms(dropped + 1)).now_or_never().is_none());
            sleep.until(now + ms(then)).await;
            assert!(Instant::now() >= now + ms(then));
        }
    }

    #[tokio::test]
    async fn repeated_waits_for_one_instant_occupy_one_thread() {
        let mut sleep = PreciseSleep::default();
        let at = Instant::now() + LATE;
        let mut tails = HashSet::new();
        for _ in 0..100 {
            let _ = sleep.until(at).now_or_never();
            tails.extend(sleep.tail.as_ref().map(|(_, tail)| tail.id()));
        }
        assert_eq!(tails.len(), 1);
        sleep.until(at).await;
    }

    #[test]
    fn a_pool_without_a_free_thread_stops_nothing() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().max_blocking_threads(1).build().unwrap();
        let (free, occupied) = mpsc::channel::<()>();
        runtime.block_on(async {
            spawn_blocking(move || occupied.recv());
            let at = Instant::now() + ms(3);
            PreciseSleep::default().until(at).await;
            assert!(Instant::now() >= at);
        });
        drop(free);
    }
}
