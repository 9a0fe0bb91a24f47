//! Wakes when it is time, and not a millisecond later.
//!
//! Tokio's timers count whole milliseconds and are rounded up, and so is the wait for events beneath them: they are late
//! by one on average, by two at most, which would be most of what a payload is late. So the last two milliseconds are
//! slept by a thread of the runtime's pool, which the system wakes within some 60 µs. Should that pool be busy, Tokio's
//! timer is there as well.

use std::time::Duration;

use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep_until};

/// How late Tokio's timers may be.
const LATE: Duration = Duration::from_millis(2);

/// One that is used again and again, for one time at a time.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    /// A thread that sleeps until then. It goes on when nobody waits for it any more, and serves the next who does.
    nap: Option<(Instant, JoinHandle<()>)>,
}

impl Alarm {
    /// Waits until then. May be dropped, and called again for another time.
    pub(super) async fn wait(&mut self, at: Instant) {
        let left = at.saturating_duration_since(Instant::now());
        if left > LATE {
            sleep_until(at - LATE).await;
        }
        tokio::select! {
            () = sleep_until(at) => {}
            () = self.nap(at) => {}
        }
    }

    async fn nap(&mut self, at: Instant) {
        loop {
            let left = at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let (_, nap) = match &mut self.nap {
                Some(nap) if nap.0 <= at => nap,
                other => other.insert((at, spawn_blocking(move || std::thread::sleep(left)))),
            };
            // Fails only when the runtime is shutting down.
            let _ = nap.await;
            self.nap = None;
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
    async fn it_is_never_early_whatever_was_waited_for_before() {
        let mut alarm = Alarm::default();
        for (given_up, then) in [(1, 2), (2, 1), (5, 1), (1, 5), (0, 3), (3, 0)] {
            let now = Instant::now();
            assert!(alarm.wait(now + ms(given_up + 1)).now_or_never().is_none());
            alarm.wait(now + ms(then)).await;
            assert!(Instant::now() >= now + ms(then));
        }
    }

    #[tokio::test]
    async fn who_waits_for_the_same_again_and_again_occupies_one_thread() {
        let mut alarm = Alarm::default();
        let at = Instant::now() + LATE;
        let mut naps = HashSet::new();
        for _ in 0..100 {
            let _ = alarm.wait(at).now_or_never();
            naps.extend(alarm.nap.as_ref().map(|(_, nap)| nap.id()));
        }
        assert_eq!(naps.len(), 1);
        alarm.wait(at).await;
    }

    #[test]
    fn a_pool_without_a_free_thread_stops_nothing() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().max_blocking_threads(1).build().unwrap();
        let (free, occupied) = mpsc::channel::<()>();
        runtime.block_on(async {
            spawn_blocking(move || occupied.recv());
            let at = Instant::now() + ms(3);
            Alarm::default().wait(at).await;
            assert!(Instant::now() >= at);
        });
        drop(free);
    }
}
