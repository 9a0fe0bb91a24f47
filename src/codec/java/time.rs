//! The times of `java.time`, and [`Date`]. They carry; for calculating there are crates.

use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use super::ParseError;
use super::handover::scalar;

const NANOS: u32 = 1_000_000_000;

/// A `java.util.Date`: milliseconds since 1970-01-01T00:00Z, without a time zone. In other formats it is that number.
///
/// # Examples
/// ```
/// use redelay::codec::java::Date;
///
/// assert_eq!(Date::from_millis(1_700_000_000_000).millis(), 1_700_000_000_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(i64);

impl Date {
    /// The date so many milliseconds after 1970-01-01T00:00Z.
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

/// A `java.time.Instant`: seconds since 1970-01-01T00:00Z, and nanoseconds.
///
/// # Examples
/// ```
/// use redelay::codec::java::Instant;
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
    /// Seconds since 1970, and nanoseconds from there. `None` unless these are fewer than 10^9 and the year is within
    /// ±10^9, as Java has it.
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
        let full = LocalDateTime { date, time };
        // Unlike a LocalDateTime, an instant is printed with its seconds.
        let seconds = if time.second == 0 && time.nano == 0 { ":00" } else { "" };
        write!(f, "{full}{seconds}Z")
    }
}

impl FromStr for Instant {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = || ParseError::new("an instant such as 2023-11-14T22:13:20Z");
        let at: LocalDateTime = text.strip_suffix('Z').ok_or_else(wrong)?.parse().map_err(|_| wrong())?;
        let seconds = at.date.epoch_day() * 86_400 + i64::from(at.time.second_of_day());
        Self::new(seconds, at.time.nano).ok_or_else(wrong)
    }
}

/// A `java.time.LocalDate`: a day without a time zone.
///
/// # Examples
/// ```
/// use redelay::codec::java::LocalDate;
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
    /// The day, if there is such a one in a year of at most 9 digits.
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
    fn epoch_day(self) -> i64 {
        let year = i64::from(self.year) - i64::from(self.month < 3);
        let month = (i64::from(self.month) + 9) % 12;
        let day_of_year = (153 * month + 2) / 5 + i64::from(self.day) - 1;
        365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468
    }

    fn from_epoch_day(day: i64) -> Self {
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
/// use redelay::codec::java::LocalTime;
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
    /// The time, if the day has it.
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

    fn second_of_day(self) -> u32 {
        u32::from(self.hour) * 3600 + u32::from(self.minute) * 60 + u32::from(self.second)
    }

    fn from_second_of_day(second: u32, nano: u32) -> Self {
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

/// Of the digits behind a point.
fn nanos(fraction: &str) -> Option<u32> {
    let valid = fraction.len() <= 9 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    valid.then(|| format!("{fraction:0<9}").parse().ok())?
}

/// A `java.time.LocalDateTime`: a day and a time without a time zone.
///
/// # Examples
/// ```
/// use redelay::codec::java::LocalDateTime;
///
/// let at: LocalDateTime = "2024-02-29T12:34".parse()?;
/// assert_eq!((at.date().day(), at.time().hour()), (29, 12));
/// # Ok::<(), redelay::codec::java::ParseError>(())
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
        let wrong = ParseError::new("a day and time such as 2024-02-29T12:34:56");
        let (date, time) = text.split_once('T').ok_or(wrong)?;
        Ok(Self { date: date.parse().map_err(|_| wrong)?, time: time.parse().map_err(|_| wrong)? })
    }
}

/// A `java.time.Duration`: seconds, also negative ones, and nanoseconds.
///
/// # Examples
/// ```
/// use redelay::codec::java::Duration;
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
    /// Seconds, and nanoseconds after them, which are fewer than 10^9.
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

/// Longer ones than `i64::MAX` seconds become that.
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

scalar!(Date "redelay::java::java.util.Date" |date, output| output.serialize_i64(date.0));
scalar!(Instant "redelay::java::java.time.Instant");
scalar!(LocalDate "redelay::java::java.time.LocalDate");
scalar!(LocalTime "redelay::java::java.time.LocalTime");
scalar!(LocalDateTime "redelay::java::java.time.LocalDateTime");
scalar!(Duration "redelay::java::java.time.Duration");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn both_ways<T: fmt::Display + fmt::Debug + PartialEq + FromStr<Err = ParseError>>(value: T, text: &str) {
        assert_eq!(value.to_string(), text);
        assert_eq!(text.parse(), Ok(value));
    }

    #[test]
    fn as_java_prints_them() {
        both_ways(Instant::new(0, 0).unwrap(), "1970-01-01T00:00:00Z");
        both_ways(Instant::new(-1, 999_000_000).unwrap(), "1969-12-31T23:59:59.999Z");
        both_ways(Instant::new(253_402_300_800, 1).unwrap(), "+10000-01-01T00:00:00.000000001Z");
        both_ways(Instant::new(-62_198_755_200, 0).unwrap(), "-0001-01-01T00:00:00Z");
        both_ways(LocalTime::new(0, 0, 0, 0).unwrap(), "00:00");
        both_ways(LocalTime::new(1, 2, 0, 3_000).unwrap(), "01:02:00.000003");
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
        for text in ["", "2024-02-30", "2024-2-3", "x-01-01", "2024-00-01"] {
            assert!(text.parse::<LocalDate>().is_err(), "{text}");
        }
        for text in ["", "24:00", "1:00", "12:60", "12:00:00.1234567890", "12:00:+1"] {
            assert!(text.parse::<LocalTime>().is_err(), "{text}");
        }
        for text in ["", "PT", "P1D", "PT1", "PT1S2M", "PTxS"] {
            assert!(text.parse::<Duration>().is_err(), "{text}");
        }
        assert_eq!(Instant::new(i64::MAX, 0), None);
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

        #[test]
        fn durations_come_back(seconds: i64, nanos in 0..NANOS) {
            let duration = Duration { seconds, nanos };
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }
    }
}
