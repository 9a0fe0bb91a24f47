//! [`Duration`]: a length of time.

use std::fmt;
use std::str::FromStr;

use super::{NANOS, nanos};
use crate::java::value_slot::scalar;
use crate::java::{ParseError, exact};

/// A `java.time.Duration`: seconds, which may be negative, and nanoseconds.
///
/// # Examples
/// ```
/// use redisson_codec::java::Duration;
///
/// let gap = Duration::new(-2, 500_000_000).unwrap();
/// assert_eq!(gap.to_string(), "PT-1.5S");
/// assert_eq!(Duration::from(std::time::Duration::from_millis(90_500)).to_string(), "PT1M30.5S");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration {
    seconds: i64,
    nanos: u32,
}

impl Duration {
    /// Seconds, and nanoseconds after them. `None` if there are 10^9 nanoseconds or more.
    #[must_use]
    pub fn new(seconds: i64, nanos: u32) -> Option<Self> {
        (nanos < NANOS).then_some(Self { seconds, nanos })
    }

    /// Whole seconds, rounded down.
    #[must_use]
    pub fn seconds(self) -> i64 {
        self.seconds
    }

    /// Nanoseconds after [`seconds`](Self::seconds).
    #[must_use]
    pub fn nanos(self) -> u32 {
        self.nanos
    }
}

/// Durations beyond `i64::MAX` seconds become the longest one.
impl From<std::time::Duration> for Duration {
    fn from(duration: std::time::Duration) -> Self {
        match i64::try_from(duration.as_secs()) {
            Ok(seconds) => Self { seconds, nanos: duration.subsec_nanos() },
            Err(_) => Self { seconds: i64::MAX, nanos: NANOS - 1 },
        }
    }
}

/// As Java prints it, in hours, minutes and seconds.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded towards 0, with a fraction of the same sign.
        let negative = self.seconds < 0 && self.nanos > 0;
        let (whole, nanos) =
            if negative { (self.seconds + 1, NANOS - self.nanos) } else { (self.seconds, self.nanos) };
        let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
        f.write_str("PT")?;
        if hours != 0 {
            write!(f, "{hours}H")?;
        }
        if minutes != 0 {
            write!(f, "{minutes}M")?;
        }
        if nanos > 0 {
            let sign = if negative { "-" } else { "" };
            let fraction = format!("{nanos:09}");
            return write!(f, "{sign}{}.{}S", seconds.unsigned_abs(), fraction.trim_end_matches('0'));
        }
        if seconds != 0 || whole == 0 {
            write!(f, "{seconds}S")?;
        }
        Ok(())
    }
}

impl FromStr for Duration {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let parse = || {
            let mut rest = text.strip_prefix("PT").filter(|rest| !rest.is_empty())?;
            let mut total: i128 = 0;
            for (unit, seconds) in [('H', 3600), ('M', 60)] {
                if let Some((number, more)) = rest.split_once(unit) {
                    total += i128::from(number.parse::<i64>().ok()?) * seconds;
                    rest = more;
                }
            }
            total *= i128::from(NANOS);
            if let Some(number) = rest.strip_suffix('S') {
                let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
                let nanos = i128::from(nanos(fraction)?);
                total += i128::from(whole.parse::<i64>().ok()?) * i128::from(NANOS);
                total += if whole.starts_with('-') { -nanos } else { nanos };
            } else if !rest.is_empty() {
                return None;
            }
            let seconds = total.div_euclid(i128::from(NANOS)).try_into().ok()?;
            Self::new(seconds, total.rem_euclid(i128::from(NANOS)) as u32)
        };
        parse().ok_or(ParseError::new("a duration such as PT1H30M2.5S"))
    }
}

scalar! {
    Duration "redisson::java::java.time.Duration" |duration, output| output.collect_str(duration),
        |input, visitor| exact::read(input, visitor)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::java::time::both_ways;

    #[test]
    fn as_java_prints_them() {
        for (seconds, nanos, text) in [
            (0, 0, "PT0S"),
            (60, 0, "PT1M"),
            (3661, 10, "PT1H1M1.00000001S"),
            (-1, 0, "PT-1S"),
            (-1, 999_999_999, "PT-0.000000001S"),
            (-61, 500_000_000, "PT-1M-0.5S"),
            (i64::MIN, 0, "PT-2562047788015215H-30M-8S"),
        ] {
            both_ways(Duration::new(seconds, nanos).unwrap(), text);
        }
    }

    #[test]
    fn what_is_none() {
        for text in ["", "PT", "P1D", "PT1", "PT1S2M", "PTxS"] {
            assert!(text.parse::<Duration>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn durations_come_back(seconds: i64, nanos in 0..NANOS) {
            let duration = Duration { seconds, nanos };
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }
    }
}
