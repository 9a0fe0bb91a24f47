//! The server's clock, measured against the local clock. Pure.

use std::time::Duration;

use tokio::time::Instant;

/// How far two clocks can drift apart, in parts per million. Quartz drifts less.
const DRIFT_PPM: i64 = 100;
/// In µs. A clock that is off by more than this was set. One that is off by less is slewed: NTP lets it run
/// faster or slower by 500 ppm for a while, and some programs by much more.
const SET: i64 = 5_000;

/// The server's clock showed `micros`, epoch µs, at some instant between these two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockReading {
    pub(crate) sent: Instant,
    pub(crate) received: Instant,
    pub(crate) micros: i64,
}

/// Bounds on the difference between the server's clock and the local clock. Every reply with the server's
/// time narrows them.
///
/// Announcements carry due times of the server's clock. The local wall clock is never read: it may be wrong,
/// and the server's clock may jump. A reply that contradicts the bounds replaces them.
#[derive(Debug)]
pub(crate) struct ServerClock {
    origin: Instant,
    bounds: Option<Bounds>,
    /// The bounds that were contradicted first since the clock was last said to be set.
    before: Option<Bounds>,
}

/// The server's µs since the epoch minus the local µs since `origin`.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    low: i64,
    high: i64,
    at: Instant,
}

impl ServerClock {
    pub(crate) fn new(origin: Instant) -> Self {
        Self { origin, bounds: None, before: None }
    }

    /// Takes a reading into account. Returns whether the server's clock was set since the last time that this
    /// was said, so that times which were computed before are wrong.
    pub(crate) fn observe(&mut self, reading: ClockReading) -> bool {
        let ClockReading { sent, received, micros } = reading;
        let new = Bounds {
            low: micros.saturating_sub(self.micros_of(received)),
            high: micros.saturating_sub(self.micros_of(sent)),
            at: received,
        };
        self.bounds = Some(match self.bounds {
            Some(known) => {
                let elapsed = self.micros_of(received).saturating_sub(self.micros_of(known.at));
                let drift = elapsed.saturating_mul(DRIFT_PPM) / 1_000_000 + 1;
                let low = new.low.max(known.low.saturating_sub(drift));
                let high = new.high.min(known.high.saturating_add(drift));
                if low <= high {
                    Bounds { low, high, at: received }
                } else {
                    self.before.get_or_insert(known);
                    new
                }
            }
            None => new,
        });
        let is_off = |before: &mut Bounds| {
            new.low > before.high.saturating_add(SET) || new.high < before.low.saturating_sub(SET)
        };
        self.before.take_if(is_off).is_some()
    }

    /// When to send a call that the server should execute at this time of its clock (epoch ms). It is rather
    /// early than late, by no more than the quickest reply took: a call that is early finds nothing, and its
    /// reply has the time again. `None` when the time is too far in the future to matter. Before the first
    /// reply, every time may be now.
    pub(crate) fn instant_of(&self, epoch_ms: f64) -> Option<Instant> {
        let Some(Bounds { high, .. }) = self.bounds else { return Some(self.origin) };
        let micros = (epoch_ms * 1000.0).ceil() - high as f64;
        // NaN and every time more than a century from now mean never.
        (micros < 3.2e15).then(|| self.origin + Duration::from_micros(micros.max(0.0) as u64))
    }

    fn micros_of(&self, instant: Instant) -> i64 {
        i64::try_from(instant.saturating_duration_since(self.origin).as_micros()).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EPOCH: i64 = 1_795_249_257_299_000;

    fn at(sent: Instant, received: Instant, micros: i64) -> ClockReading {
        ClockReading { sent, received, micros }
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn is_early_by_the_quickest_reply_at_most() {
        let start = Instant::now();
        let mut clock = ServerClock::new(start);
        assert_eq!(clock.instant_of(EPOCH as f64 / 1000.0), Some(start));
        clock.observe(at(start, start + ms(40), EPOCH + 20_000));
        clock.observe(at(start + ms(100), start + ms(102), EPOCH + 101_000));
        clock.observe(at(start + ms(200), start + ms(260), EPOCH + 230_000));
        let due = clock.instant_of((EPOCH + 500_000) as f64 / 1000.0).unwrap();
        let right = start + ms(500);
        assert!(due <= right && due >= right - ms(2), "{:?}", right - due);
    }

    #[test]
    fn follows_a_clock_that_jumped() {
        let start = Instant::now();
        let mut clock = ServerClock::new(start);
        clock.observe(at(start, start + ms(1), EPOCH));
        for jump in [3_600_000_000, -7_200_000_000] {
            assert!(clock.observe(at(start + ms(10), start + ms(11), EPOCH + 10_000 + jump)));
            assert!(!clock.observe(at(start + ms(12), start + ms(13), EPOCH + 12_000 + jump)));
            let due = clock.instant_of((EPOCH + jump + 20_000) as f64 / 1000.0).unwrap();
            assert!(due <= start + ms(20) && due >= start + ms(18));
        }
    }

    /// Each time, all queues of the server are swept.
    #[test]
    fn a_clock_that_is_slewed_is_set_now_and_then() {
        for ppm in [500, -500] {
            let start = Instant::now();
            let mut clock = ServerClock::new(start);
            let shows = |at: u64| EPOCH + at as i64 * 1000 + at as i64 * ppm / 1000;
            let mut set = 0;
            for at in (0..60_000).step_by(10) {
                let (sent, received) = (start + ms(at), start + ms(at) + Duration::from_micros(200));
                set += u32::from(clock.observe(ClockReading { sent, received, micros: shows(at) }));
                let due = clock.instant_of(shows(at + 10) as f64 / 1000.0).unwrap();
                let right = start + ms(at + 10);
                assert!(due <= right + ms(1) && due + ms(1) >= right, "{at}");
            }
            // By 30 ms in a minute, less what the bounds allow.
            assert!((3..=6).contains(&set), "{set}");
        }
    }

    #[test]
    fn a_microsecond_is_no_jump() {
        let start = Instant::now();
        let mut clock = ServerClock::new(start);
        for micros in [EPOCH, EPOCH, EPOCH + 1, EPOCH] {
            assert!(!clock.observe(at(start, start, micros)), "{micros}");
        }
    }

    #[test]
    fn strange_times() {
        let start = Instant::now();
        let mut clock = ServerClock::new(start);
        clock.observe(at(start, start, EPOCH));
        for past in [0.0, -5.0, f64::NEG_INFINITY] {
            assert_eq!(clock.instant_of(past), Some(start), "{past}");
        }
        for never in [f64::INFINITY, f64::NAN, 1e20] {
            assert_eq!(clock.instant_of(never), None, "{never}");
        }
    }

    /// How long a call or a reply takes, ms.
    fn latency() -> impl Strategy<Value = u64> {
        prop_oneof![0_u64..3, 0_u64..2_000]
    }

    /// The drift of a bad quartz, in either direction.
    const PPM: i64 = DRIFT_PPM / 2;

    /// Numbers at the ends of their ranges, and any others.
    fn any_micros() -> impl Strategy<Value = i64> {
        prop_oneof![
            any::<i64>(),
            proptest::sample::select(vec![
                i64::MIN,
                i64::MIN + 1,
                -1,
                0,
                1,
                1 << 53,
                (1 << 53) + 1,
                i64::MAX - 1,
                i64::MAX
            ]),
        ]
    }

    fn any_score() -> impl Strategy<Value = f64> {
        let ends = vec![
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MAX,
            f64::MIN,
            1e308,
            -1e308,
            9007199254740993.0,
            0.0,
            -0.0,
        ];
        prop_oneof![any::<f64>(), proptest::sample::select(ends)]
    }

    proptest! {
        #[test]
        fn any_reading_and_any_score_are_taken(
            readings in proptest::collection::vec((any_micros(), 0_u64..10_000), 1..6),
            scores in proptest::collection::vec(any_score(), 1..6),
        ) {
            let start = Instant::now();
            let mut clock = ServerClock::new(start);
            let mut sent = start;
            for (micros, took) in readings {
                clock.observe(at(sent, sent + ms(took), micros));
                sent += ms(took);
                for score in &scores {
                    if let Some(instant) = clock.instant_of(*score) {
                        prop_assert!(instant >= start && instant <= start + Duration::from_secs(3_200_000_000));
                    }
                }
            }
        }

        /// Calls overlap, their replies are observed in another order than they arrived, and the clocks drift
        /// apart.
        #[test]
        fn is_never_late(
            calls in proptest::collection::vec((0_u64..600_000, latency(), latency()), 1..10),
            ppm in -PPM..=PPM,
            ahead in 0_u64..100_000,
        ) {
            let start = Instant::now();
            let shows = |at: u64| EPOCH + at as i64 * 1000 + at as i64 * ppm / 1000;
            let mut clock = ServerClock::new(start);
            let (mut sent, mut last) = (0, 0);
            for (pause, there, back) in &calls {
                sent += pause;
                let received = sent + there + back;
                clock.observe(at(start + ms(sent), start + ms(received), shows(sent + there)));
                last = last.max(received);
            }
            let right = start + ms(last + ahead);
            let due = clock.instant_of(shows(last + ahead) as f64 / 1000.0).unwrap();
            // No bound can foresee the drift from the last call to the due time, and a µs of rounding per
            // call.
            let rounding = Duration::from_micros(2 * calls.len() as u64);
            let unforeseen = Duration::from_nanos((ahead + 4_000) * DRIFT_PPM as u64) + rounding;
            prop_assert!(due <= right + unforeseen, "late by {:?}", due - right);
            // The bounds widen with the time since the quickest call.
            let quickest = calls.iter().map(|(_, there, back)| ms(there + back)).min().unwrap();
            let widened = Duration::from_nanos(2 * (last + 4_000 * calls.len() as u64) * DRIFT_PPM as u64);
            prop_assert!(due + quickest + widened + unforeseen >= right, "early by {:?}", right - due);
        }
    }
}
