//! [`Date`] and [`Instant`]: points in time.

use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use super::{LocalDate, LocalDateTime, LocalTime, NANOS};
use crate::java::value_slot::scalar;
use crate::java::{ParseError, exact};

/// A `java.util.Date`: milliseconds since 1970-01-01T00:00Z, without a time zone. In other formats it is that
/// number.
///
/// # Examples
/// ```
/// use redisson_codec::java::Date;
///
/// assert_eq!(Date::from_millis(1_700_000_000_000).millis(), 1_700_000_000_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(i64);

impl Date {
    /// The date this many milliseconds after 1970-01-01T00:00Z.
    #[must_use]
    pub fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970-01-01T00:00Z.
    #[must_use]
    pub fn millis(self) -> i64 {
        self.0
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Date {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        text.parse().map(Self).map_err(|_| ParseError::new("milliseconds since 1970"))
    }
}

/// The days of 400 years.
const CYCLE: i64 = 146_097;

/// A `java.time.Instant`: seconds since 1970-01-01T00:00Z, and nanoseconds.
///
/// # Examples
/// ```
/// use redisson_codec::java::Instant;
///
/// let instant = Instant::new(1_700_000_000, 5).unwrap();
/// assert_eq!(instant.to_string(), "2023-11-14T22:13:20.000000005Z");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant {
    seconds: i64,
    nanos: u32,
}

impl Instant {
    /// Seconds since 1970, and nanoseconds after them. `None` if there are 10^9 nanoseconds or more, or if
    /// the year is beyond ±10^9, Java's limit.
    #[must_use]
    pub fn new(seconds: i64, nanos: u32) -> Option<Self> {
        // Java's Instant.MIN and MAX.
        let in_range = (-31_557_014_167_219_200..=31_556_889_864_403_199).contains(&seconds);
        (in_range && nanos < NANOS).then_some(Self { seconds, nanos })
    }

    /// Whole seconds since 1970.
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

impl From<SystemTime> for Instant {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => Self { seconds: after.as_secs() as i64, nanos: after.subsec_nanos() },
            Err(before) => {
                let before = before.duration();
                let (seconds, nanos) = (-(before.as_secs() as i64), before.subsec_nanos());
                match nanos {
                    0 => Self { seconds, nanos },
                    _ => Self { seconds: seconds - 1, nanos: NANOS - nanos },
                }
            }
        }
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let date = LocalDate::from_epoch_day(self.seconds.div_euclid(86_400));
        let time = LocalTime::from_second_of_day(self.seconds.rem_euclid(86_400) as u32, self.nanos);
        let full = LocalDateTime::new(date, time);
        // Unlike a LocalDateTime, an instant is printed with its seconds.
        let seconds = if time.second() == 0 && time.nano() == 0 { ":00" } else { "" };
        write!(f, "{full}{seconds}Z")
    }
}

impl FromStr for Instant {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = || ParseError::new("an instant such as 2023-11-14T22:13:20Z");
        let text = text.strip_suffix('Z').ok_or_else(wrong)?;
        // The first and the last year of an instant are beyond those of a date. The calendar repeats itself.
        let early = text.strip_prefix("-1000000000-").map(|rest| (format!("-999999600-{rest}"), -CYCLE));
        let late = || text.strip_prefix("+1000000000-").map(|rest| (format!("+999999600-{rest}"), CYCLE));
        let (text, days) = early.or_else(late).unwrap_or_else(|| (text.to_owned(), 0));
        let at: LocalDateTime = text.parse().map_err(|_| wrong())?;
        let seconds = (at.date().epoch_day() + days) * 86_400 + i64::from(at.time().second_of_day());
        Self::new(seconds, at.time().nano()).ok_or_else(wrong)
    }
}

scalar!(Date "redisson::java::java.util.Date" |date, output| output.serialize_i64(date.0));
scalar! {
    Instant "redisson::java::java.time.Instant" |instant, output| output.collect_str(instant),
        |input, visitor| exact::read(input, visitor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::java::time::both_ways;

    #[test]
    fn as_java_prints_them() {
        both_ways(Instant::new(0, 0).unwrap(), "1970-01-01T00:00:00Z");
        both_ways(Instant::new(-1, 999_000_000).unwrap(), "1969-12-31T23:59:59.999Z");
        both_ways(Instant::new(253_402_300_800, 1).unwrap(), "+10000-01-01T00:00:00.000000001Z");
        both_ways(Instant::new(-62_198_755_200, 0).unwrap(), "-0001-01-01T00:00:00Z");
        // Instant.MIN and MAX.
        both_ways(Instant::new(-31_557_014_167_219_200, 0).unwrap(), "-1000000000-01-01T00:00:00Z");
        let last = Instant::new(31_556_889_864_403_199, 999_999_999).unwrap();
        both_ways(last, "+1000000000-12-31T23:59:59.999999999Z");
        for beyond in
            ["+1000000001-01-01T00:00:00Z", "+1000000000-02-30T00:00:00Z", "-1000000001-12-31T00:00:00Z"]
        {
            assert!(beyond.parse::<Instant>().is_err(), "{beyond}");
        }
    }

    #[test]
    fn what_is_none() {
        assert_eq!(Instant::new(i64::MAX, 0), None);
    }
}
