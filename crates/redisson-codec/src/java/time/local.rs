//! [`LocalDate`], [`LocalTime`] and [`LocalDateTime`]: what a calendar and a clock show.

use std::fmt;
use std::str::FromStr;

use super::{NANOS, nanos};
use crate::java::ParseError;
use crate::java::value_slot::scalar;

/// A `java.time.LocalDate`: a day without a time zone.
///
/// # Examples
/// ```
/// use redisson_codec::java::LocalDate;
///
/// assert_eq!(LocalDate::new(2024, 2, 29).unwrap().to_string(), "2024-02-29");
/// assert_eq!(LocalDate::new(2023, 2, 29), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalDate {
    year: i32,
    month: u8,
    day: u8,
}

impl LocalDate {
    /// The day. `None` if the calendar does not have it, or if the year has more than 9 digits.
    #[must_use]
    pub fn new(year: i32, month: u8, day: u8) -> Option<Self> {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 => 28 + u8::from(leap),
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => 0,
        };
        let valid = (1..=days).contains(&day) && (-999_999_999..=999_999_999).contains(&year);
        valid.then_some(Self { year, month, day })
    }

    /// The year; 0 is the one before 1.
    #[must_use]
    pub fn year(self) -> i32 {
        self.year
    }

    /// The month, from 1.
    #[must_use]
    pub fn month(self) -> u8 {
        self.month
    }

    /// The day of the month, from 1.
    #[must_use]
    pub fn day(self) -> u8 {
        self.day
    }

    /// Days since 1970-01-01. Years begin in March here, so that leap days come last.
    pub(super) fn epoch_day(self) -> i64 {
        let year = i64::from(self.year) - i64::from(self.month < 3);
        let month = (i64::from(self.month) + 9) % 12;
        let day_of_year = (153 * month + 2) / 5 + i64::from(self.day) - 1;
        365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
    }

    pub(super) fn from_epoch_day(day: i64) -> Self {
        let day = day + 719_468;
        let (era, day_of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
        let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let year = era * 400 + year + i64::from(month >= 10);
        Self { year: year as i32, month: ((month + 2) % 12 + 1) as u8, day: day as u8 }
    }
}

impl fmt::Display for LocalDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.year {
            10_000.. => write!(f, "+{}", self.year)?,
            0..10_000 => write!(f, "{:04}", self.year)?,
            _ => write!(f, "-{:04}", self.year.unsigned_abs())?,
        }
        write!(f, "-{:02}-{:02}", self.month, self.day)
    }
}

impl FromStr for LocalDate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let parse = || {
            let (rest, day) = text.rsplit_once('-')?;
            let (year, month) = rest.rsplit_once('-')?;
            Self::new(year.parse().ok()?, two_digits(month)?, two_digits(day)?)
        };
        parse().ok_or(ParseError::new("a day such as 2024-02-29"))
    }
}

fn two_digits(text: &str) -> Option<u8> {
    (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// A `java.time.LocalTime`: a time of day without a time zone.
///
/// # Examples
/// ```
/// use redisson_codec::java::LocalTime;
///
/// assert_eq!(LocalTime::new(12, 34, 56, 500_000_000).unwrap().to_string(), "12:34:56.500");
/// assert_eq!(LocalTime::new(24, 0, 0, 0), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalTime {
    hour: u8,
    minute: u8,
    second: u8,
    nano: u32,
}

impl LocalTime {
    /// The time of day. `None` if there is no such time.
    #[must_use]
    pub fn new(hour: u8, minute: u8, second: u8, nano: u32) -> Option<Self> {
        (hour < 24 && minute < 60 && second < 60 && nano < NANOS).then_some(Self {
            hour,
            minute,
            second,
            nano,
        })
    }

    /// The hour, from 0.
    #[must_use]
    pub fn hour(self) -> u8 {
        self.hour
    }

    /// The minute, from 0.
    #[must_use]
    pub fn minute(self) -> u8 {
        self.minute
    }

    /// The second, from 0.
    #[must_use]
    pub fn second(self) -> u8 {
        self.second
    }

    /// The nanosecond, from 0.
    #[must_use]
    pub fn nano(self) -> u32 {
        self.nano
    }

    pub(super) fn second_of_day(self) -> u32 {
        u32::from(self.hour) * 3600 + u32::from(self.minute) * 60 + u32::from(self.second)
    }

    pub(super) fn from_second_of_day(second: u32, nano: u32) -> Self {
        let [hour, minute, second] = [second / 3600, second / 60 % 60, second % 60].map(|part| part as u8);
        Self { hour, minute, second, nano }
    }
}

/// As Java prints it: without seconds that are 0, and with 3, 6 or 9 digits of a fraction.
impl fmt::Display for LocalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.hour, self.minute)?;
        if self.second > 0 || self.nano > 0 {
            write!(f, ":{:02}", self.second)?;
        }
        match self.nano {
            0 => Ok(()),
            nano if nano % 1_000_000 == 0 => write!(f, ".{:03}", nano / 1_000_000),
            nano if nano % 1_000 == 0 => write!(f, ".{:06}", nano / 1_000),
            nano => write!(f, ".{nano:09}"),
        }
    }
}

impl FromStr for LocalTime {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let parse = || {
            let (hour, rest) = text.split_once(':')?;
            let (minute, second) = rest.split_once(':').unwrap_or((rest, "00"));
            let (second, fraction) = second.split_once('.').unwrap_or((second, ""));
            Self::new(two_digits(hour)?, two_digits(minute)?, two_digits(second)?, nanos(fraction)?)
        };
        parse().ok_or(ParseError::new("a time such as 12:34:56.5"))
    }
}

/// A `java.time.LocalDateTime`: a day and a time without a time zone.
///
/// # Examples
/// ```
/// use redisson_codec::java::LocalDateTime;
///
/// let at: LocalDateTime = "2024-02-29T12:34".parse()?;
/// assert_eq!((at.date().day(), at.time().hour()), (29, 12));
/// # Ok::<(), redisson_codec::java::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalDateTime {
    date: LocalDate,
    time: LocalTime,
}

impl LocalDateTime {
    /// This time on this day.
    #[must_use]
    pub fn new(date: LocalDate, time: LocalTime) -> Self {
        Self { date, time }
    }

    /// The day.
    #[must_use]
    pub fn date(self) -> LocalDate {
        self.date
    }

    /// The time of day.
    #[must_use]
    pub fn time(self) -> LocalTime {
        self.time
    }
}

impl fmt::Display for LocalDateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}T{}", self.date, self.time)
    }
}

impl FromStr for LocalDateTime {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = || ParseError::new("a day and time such as 2024-02-29T12:34:56");
        let (date, time) = text.split_once('T').ok_or_else(wrong)?;
        Ok(Self { date: date.parse().map_err(|_| wrong())?, time: time.parse().map_err(|_| wrong())? })
    }
}

scalar!(LocalDate "redisson::java::java.time.LocalDate");
scalar!(LocalTime "redisson::java::java.time.LocalTime");
scalar!(LocalDateTime "redisson::java::java.time.LocalDateTime");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::java::time::both_ways;

    #[test]
    fn as_java_prints_them() {
        both_ways(LocalTime::new(0, 0, 0, 0).unwrap(), "00:00");
        both_ways(LocalTime::new(1, 2, 0, 3_000).unwrap(), "01:02:00.000003");
    }

    #[test]
    fn what_is_none() {
        for text in ["", "2024-02-30", "2024-2-3", "x-01-01", "2024-00-01"] {
            assert!(text.parse::<LocalDate>().is_err(), "{text}");
        }
        for text in ["", "24:00", "1:00", "12:60", "12:00:00.1234567890", "12:00:+1"] {
            assert!(text.parse::<LocalTime>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn days_count_up(day in -365_000_000_000i64..365_000_000_000) {
            let date = LocalDate::from_epoch_day(day);
            prop_assert_eq!(LocalDate::new(date.year, date.month, date.day), Some(date));
            prop_assert_eq!(date.epoch_day(), day);
            prop_assert!(date < LocalDate::from_epoch_day(day + 1));
            prop_assert_eq!(date.to_string().parse(), Ok(date));
        }
    }
}
