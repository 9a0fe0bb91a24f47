//! Sleeps until an instant, to a fraction of a millisecond.
//!
//! Tokio's timers count whole milliseconds and are rounded up, and so is the wait for events beneath them:
//! they are late by one millisecond on average, by two at most. That would be most of the lateness of a
//! payload. Linux has timers that are events themselves (timerfd). Other systems make do with Tokio's.

use tokio::time::{Instant, sleep_until};

#[cfg(target_os = "linux")]
use linux::Timer;

/// A timer for one instant at a time, to be used again and again.
#[derive(Debug, Default)]
pub(super) struct PreciseSleep {
    #[cfg(target_os = "linux")]
    timer: Option<Timer>,
}

impl PreciseSleep {
    /// Waits until this instant. Cancel safe; the next call may name another instant.
    pub(super) async fn until(&mut self, at: Instant) {
        #[cfg(target_os = "linux")]
        {
            if self.timer.is_none() {
                self.timer = Timer::new().ok();
            }
            if let Some(timer) = &mut self.timer
                && timer.until(at).await.is_ok()
            {
                return;
            }
        }
        // Other systems, and processes that cannot have a timer, wait here.
        sleep_until(at).await;
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;
    use tokio::time::Instant;

    #[derive(Debug)]
    pub(super) struct Timer {
        fd: AsyncFd<OwnedFd>,
        /// The instant that it is set to.
        set_to: Option<Instant>,
    }

    impl Timer {
        pub(super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            // Newer versions of Tokio deprecate it in favour of an unsafe function. It is sound here, because
            // `OwnedFd` keeps its descriptor open.
            #[allow(deprecated)]
            let fd = AsyncFd::with_interest(fd, Interest::READABLE)?;
            Ok(Self { fd, set_to: None })
        }

        pub(super) async fn until(&mut self, at: Instant) -> io::Result<()> {
            loop {
                let left = at.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(());
                }
                if self.set_to != Some(at) {
                    self.set(left)?;
                    self.set_to = Some(at);
                }
                // It may still be ready because of an instant before this one, or its clock may be ahead.
                // Then it is set again.
                self.fd.readable().await?.clear_ready();
                self.set_to = None;
            }
        }

        /// To set the timer again is all that it needs after it has fired: nothing has to be read.
        fn set(&self, left: Duration) -> io::Result<()> {
            const ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            let spec = Itimerspec { it_interval: ONCE, it_value: left };
            timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &spec)?;
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
            let _ = sleep.until(now + ms(dropped + 1)).now_or_never();
            sleep.until(now + ms(then)).await;
            assert!(Instant::now() >= now + ms(then));
        }
    }

    /// The instant before has passed while nothing waited for it.
    #[tokio::test]
    async fn it_is_not_early_after_an_instant_that_nobody_waited_for() {
        let mut sleep = PreciseSleep::default();
        for wait in 0..20 {
            let now = Instant::now();
            let _ = sleep.until(now + ms(2)).now_or_never();
            tokio::time::sleep(ms(wait % 4)).await;
            let at = Instant::now() + ms(3);
            sleep.until(at).await;
            assert!(Instant::now() >= at);
        }
    }

    /// The same instant is waited for again after each event of the task.
    #[tokio::test]
    async fn a_wait_that_is_interrupted_again_and_again_ends() {
        let mut sleep = PreciseSleep::default();
        let at = Instant::now() + ms(20);
        while Instant::now() < at - ms(5) {
            let _ = sleep.until(at).now_or_never();
            tokio::task::yield_now().await;
        }
        sleep.until(at).await;
        sleep.until(at).await;
        assert!(Instant::now() >= at);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_timer_itself_waits() {
        let mut timer = Timer::new().expect("a timer");
        let century = Duration::from_secs(100 * 365 * 24 * 3_600);
        assert!(timer.until(Instant::now() + century).now_or_never().is_none());
        let at = Instant::now() + ms(2);
        timer.until(at).await.expect("a timer that fires");
        assert!(Instant::now() >= at);
    }
}
