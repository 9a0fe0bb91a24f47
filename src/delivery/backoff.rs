//! `Backoff`: how long a message waits for its next attempt. Pure.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How long a failed message waits for its next attempt.
///
/// The default is [`Backoff::exponential`] from 15 seconds to 6 hours.
///
/// # Examples
/// ```
/// # use std::time::Duration;
/// use redelay::worker::Backoff;
///
/// let steps = Backoff::ladder([15, 180, 600].map(Duration::from_secs));
/// assert_eq!(steps.after(1), Duration::from_secs(15)); // after the first failure
/// assert_eq!(steps.after(9), Duration::from_secs(600)); // the last step repeats
/// ```
#[derive(Clone)]
pub struct Backoff(Kind);

#[derive(Clone)]
enum Kind {
    Exponential { first: Duration, most: Duration },
    Ladder(Arc<[Duration]>),
    By(Arc<dyn Fn(u32) -> Duration + Send + Sync>),
}

impl Backoff {
    /// Doubles with each failure: `first`, twice as long, and so on up to `most`. Each pause is shortened at
    /// random by up to half, so that messages that failed together are not redelivered together.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// use redelay::worker::Backoff;
    ///
    /// let pause = Backoff::exponential(Duration::from_secs(1), Duration::from_secs(60)).after(3);
    /// assert!((Duration::from_secs(2)..=Duration::from_secs(4)).contains(&pause));
    /// ```
    #[must_use]
    pub fn exponential(first: Duration, most: Duration) -> Self {
        Self(Kind::Exponential { first, most })
    }

    /// The same pause after each failure.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// use redelay::worker::Backoff;
    ///
    /// assert_eq!(Backoff::fixed(Duration::from_secs(5)).after(7), Duration::from_secs(5));
    /// ```
    #[must_use]
    pub fn fixed(pause: Duration) -> Self {
        Self(Kind::Ladder([pause].into()))
    }

    /// A pause for each failure. The last one repeats. Without any, the next attempt comes at once.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// use redelay::worker::Backoff;
    ///
    /// let minutes = Backoff::ladder([1, 5, 15].map(|minutes| Duration::from_secs(60 * minutes)));
    /// assert_eq!(minutes.after(2), Duration::from_secs(300));
    /// ```
    #[must_use]
    pub fn ladder(pauses: impl IntoIterator<Item = Duration>) -> Self {
        Self(Kind::Ladder(pauses.into_iter().collect()))
    }

    /// Your own function of the number of failures, which counts from 1. It must not panic.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// use redelay::worker::Backoff;
    ///
    /// let linear = Backoff::by(|failures| Duration::from_secs(u64::from(10 * failures)));
    /// assert_eq!(linear.after(3), Duration::from_secs(30));
    /// ```
    #[must_use]
    pub fn by(pause: impl Fn(u32) -> Duration + Send + Sync + 'static) -> Self {
        Self(Kind::By(Arc::new(pause)))
    }

    /// The pause after this number of failures, which counts from 1.
    ///
    /// # Examples
    /// ```
    /// # use std::time::Duration;
    /// use redelay::worker::Backoff;
    ///
    /// assert!(Backoff::default().after(1) <= Duration::from_secs(15));
    /// ```
    #[must_use]
    pub fn after(&self, failures: u32) -> Duration {
        let before = failures.saturating_sub(1);
        match &self.0 {
            Kind::Exponential { first, most } => {
                let pause = first.saturating_mul(1u32.checked_shl(before).unwrap_or(u32::MAX)).min(*most);
                // Half of it, and up to the other half.
                pause / 2 + (pause / 2).mul_f64(fastrand::f64())
            }
            Kind::Ladder(pauses) => {
                let last = pauses.len().saturating_sub(1);
                pauses.get(last.min(before as usize)).copied().unwrap_or_default()
            }
            Kind::By(pause) => pause(failures),
        }
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::exponential(Duration::from_secs(15), Duration::from_secs(6 * 3600))
    }
}

impl fmt::Debug for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Exponential { first, most } => {
                f.debug_struct("Exponential").field("first", first).field("most", most).finish()
            }
            Kind::Ladder(pauses) => f.debug_tuple("Ladder").field(pauses).finish(),
            Kind::By(_) => f.debug_tuple("By").finish_non_exhaustive(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_pauses_stay_between_half_and_all() {
        let secs = Duration::from_secs;
        let backoff = Backoff::exponential(secs(15), secs(3_600));
        for (failures, whole) in
            [(1, 15), (2, 30), (3, 60), (8, 1_920), (9, 3_600), (40, 3_600), (u32::MAX, 3_600)]
        {
            for _ in 0..100 {
                let pause = backoff.after(failures);
                assert!(pause >= secs(whole) / 2 && pause <= secs(whole), "{failures}: {pause:?}");
            }
        }
        assert_eq!(Backoff::exponential(Duration::ZERO, Duration::MAX).after(5), Duration::ZERO);
        let _does_not_overflow = Backoff::exponential(Duration::MAX, Duration::MAX).after(u32::MAX);
    }

    #[test]
    fn ladders_repeat_their_last_step() {
        let secs = Duration::from_secs;
        let pauses = |backoff: &Backoff| [0, 1, 2, 3, 4].map(|failures| backoff.after(failures));
        assert_eq!(pauses(&Backoff::ladder([secs(1), secs(2)])), [1, 1, 2, 2, 2].map(secs));
        assert_eq!(pauses(&Backoff::fixed(secs(3))), [secs(3); 5]);
        assert_eq!(pauses(&Backoff::ladder([])), [Duration::ZERO; 5]);
    }
}
