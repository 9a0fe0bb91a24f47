//! The times of [`java`](crate::java) and those of `jiff`, whose years go from -9999 to 9999.

use jiff::{SignedDuration, Timestamp, civil};

use super::ConversionError;
use crate::java::{Date, Duration, Instant, LocalDate, LocalDateTime, LocalTime};

const NANOS: i32 = 1_000_000_000;

fn out_of_range<E>(why: &'static str) -> impl FnOnce(E) -> ConversionError {
    move |_| ConversionError { why }
}

/// Whole seconds before the point in time or at it, and the nanoseconds from there. `None` below `i64::MIN`
/// seconds.
fn floor(seconds: i64, nanos: i32) -> Option<(i64, u32)> {
    match u32::try_from(nanos) {
        Ok(nanos) => Some((seconds, nanos)),
        Err(_) => Some((seconds.checked_sub(1)?, (NANOS + nanos) as u32)),
    }
}

/// # Errors
/// When the year is not in the range of `jiff`.
///
/// # Examples
/// ```
/// use jiff::Timestamp;
/// use redisson_codec::java;
///
/// let at: Timestamp = "2023-11-14T22:13:20.5Z".parse().unwrap();
/// assert_eq!(java::Instant::from(at).to_string(), "2023-11-14T22:13:20.500Z");
/// assert_eq!(Timestamp::try_from(java::Instant::from(at))?, at);
/// # Ok::<(), java::ConversionError>(())
/// ```
impl TryFrom<Instant> for Timestamp {
    type Error = ConversionError;

    fn try_from(instant: Instant) -> Result<Self, ConversionError> {
        Timestamp::new(instant.seconds(), instant.nanos() as i32)
            .map_err(out_of_range("the instant is out of the range of `jiff::Timestamp`"))
    }
}

impl From<Timestamp> for Instant {
    fn from(timestamp: Timestamp) -> Self {
        floor(timestamp.as_second(), timestamp.subsec_nanosecond())
            .and_then(|(seconds, nanos)| Instant::new(seconds, nanos))
            .expect("Java's instants include those of jiff")
    }
}

/// # Errors
/// When the year is not in the range of `jiff`.
impl TryFrom<Date> for Timestamp {
    type Error = ConversionError;

    fn try_from(date: Date) -> Result<Self, ConversionError> {
        Timestamp::from_millisecond(date.millis())
            .map_err(out_of_range("the date is out of the range of `jiff::Timestamp`"))
    }
}

/// # Errors
/// When the timestamp is not a whole number of milliseconds. Round it first:
/// `timestamp.round(Unit::Millisecond)`.
impl TryFrom<Timestamp> for Date {
    type Error = ConversionError;

    fn try_from(timestamp: Timestamp) -> Result<Self, ConversionError> {
        match timestamp.subsec_nanosecond() % 1_000_000 {
            0 => Ok(Date::from_millis(timestamp.as_millisecond())),
            _ => {
                Err(ConversionError { why: "a `java.util.Date` has milliseconds only: round the timestamp" })
            }
        }
    }
}

impl From<Duration> for SignedDuration {
    fn from(duration: Duration) -> Self {
        SignedDuration::new(duration.seconds(), duration.nanos() as i32)
    }
}

/// # Errors
/// For the last second before `i64::MIN` seconds, which Java's durations do not have.
///
/// # Examples
/// ```
/// use jiff::SignedDuration;
/// use redisson_codec::java;
///
/// let gap = SignedDuration::from_millis(-1500);
/// assert_eq!(java::Duration::try_from(gap)?.to_string(), "PT-1.5S");
/// assert_eq!(SignedDuration::from(java::Duration::try_from(gap)?), gap);
/// # Ok::<(), java::ConversionError>(())
/// ```
impl TryFrom<SignedDuration> for Duration {
    type Error = ConversionError;

    fn try_from(duration: SignedDuration) -> Result<Self, ConversionError> {
        let why = "the duration is out of the range of `java.time.Duration`";
        floor(duration.as_secs(), duration.subsec_nanos())
            .and_then(|(seconds, nanos)| Duration::new(seconds, nanos))
            .ok_or(ConversionError { why })
    }
}

/// # Errors
/// When the year is not in the range of `jiff`.
impl TryFrom<LocalDate> for civil::Date {
    type Error = ConversionError;

    fn try_from(date: LocalDate) -> Result<Self, ConversionError> {
        let why = "the year is out of the range of `jiff::civil::Date`";
        let year = date.year().try_into().map_err(out_of_range(why))?;
        civil::Date::new(year, date.month() as i8, date.day() as i8).map_err(out_of_range(why))
    }
}

impl From<civil::Date> for LocalDate {
    fn from(date: civil::Date) -> Self {
        LocalDate::new(date.year().into(), date.month() as u8, date.day() as u8)
            .expect("Java's dates include those of jiff")
    }
}

impl From<LocalTime> for civil::Time {
    fn from(time: LocalTime) -> Self {
        let [hour, minute, second] = [time.hour(), time.minute(), time.second()].map(|part| part as i8);
        civil::Time::new(hour, minute, second, time.nano() as i32).expect("both have the same times of day")
    }
}

impl From<civil::Time> for LocalTime {
    fn from(time: civil::Time) -> Self {
        let [hour, minute, second] = [time.hour(), time.minute(), time.second()].map(|part| part as u8);
        LocalTime::new(hour, minute, second, time.subsec_nanosecond() as u32)
            .expect("both have the same times of day")
    }
}

/// # Errors
/// When the year is not in the range of `jiff`.
impl TryFrom<LocalDateTime> for civil::DateTime {
    type Error = ConversionError;

    fn try_from(at: LocalDateTime) -> Result<Self, ConversionError> {
        Ok(civil::DateTime::from_parts(at.date().try_into()?, at.time().into()))
    }
}

impl From<civil::DateTime> for LocalDateTime {
    fn from(at: civil::DateTime) -> Self {
        LocalDateTime::new(at.date().into(), at.time().into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn back<J, T>(java: J) -> Option<T>
    where
        J: TryFrom<T> + Copy + PartialEq + std::fmt::Debug,
        T: TryFrom<J> + Copy,
        <J as TryFrom<T>>::Error: std::fmt::Debug,
    {
        let other = T::try_from(java).ok()?;
        assert_eq!(J::try_from(other).unwrap(), java);
        Some(other)
    }

    proptest! {
        #[test]
        fn any_instant(seconds: i64, near in -400_000_000_000i64..400_000_000_000, nanos in 0..1_000_000_000u32) {
            for seconds in [seconds, near] {
                if let Some(instant) = Instant::new(seconds, nanos) {
                    let text = back::<_, Timestamp>(instant).map(|timestamp| timestamp.to_string().parse());
                    if let Some(Ok(parsed)) = text {
                        prop_assert_eq!(instant, parsed);
                    }
                }
            }
            back::<Date, Timestamp>(Date::from_millis(seconds));
            back::<Date, Timestamp>(Date::from_millis(near));
        }

        #[test]
        fn any_duration(seconds: i64, nanos in 0..1_000_000_000u32) {
            let duration = Duration::new(seconds, nanos).unwrap();
            let nanos = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
            prop_assert_eq!(back::<_, SignedDuration>(duration).unwrap().as_nanos(), nanos);
        }

        #[test]
        fn any_local_time(day in 0..28u8, month in 0..12u8, year: i32, near in -9999..=9999i32, second in 0..86_400u32) {
            let [hour, minute] = [second / 3600, second / 60 % 60].map(|part| part as u8);
            let time = LocalTime::new(hour, minute, (second % 60) as u8, second * 11_111).unwrap();
            prop_assert_eq!(back::<_, civil::Time>(time).unwrap().hour(), hour as i8);
            for year in [year, near] {
                if let Some(date) = LocalDate::new(year, month + 1, day + 1) {
                    let found = back::<_, civil::DateTime>(LocalDateTime::new(date, time));
                    prop_assert_eq!(found.is_some(), (-9999..=9999).contains(&year));
                    prop_assert_eq!(back::<_, civil::Date>(date), found.map(|at| at.date()));
                }
            }
        }
    }

    #[test]
    fn limits() {
        for timestamp in [Timestamp::MIN, Timestamp::UNIX_EPOCH, Timestamp::MAX] {
            assert_eq!(Timestamp::try_from(Instant::from(timestamp)), Ok(timestamp));
        }
        for date in [civil::DateTime::MIN, civil::DateTime::MAX] {
            assert_eq!(civil::DateTime::try_from(LocalDateTime::from(date)), Ok(date));
        }
        assert_eq!(
            Timestamp::try_from(Instant::new(31_556_889_864_403_199, 0).unwrap()).unwrap_err().to_string(),
            "the instant is out of the range of `jiff::Timestamp`"
        );
        assert!(Timestamp::try_from(Date::from_millis(i64::MIN)).is_err());
        assert!(civil::Date::try_from(LocalDate::new(10_000, 1, 1).unwrap()).is_err());
        assert!(Duration::try_from(SignedDuration::MIN).is_err());
        assert!(Duration::try_from(SignedDuration::MAX).is_ok());
        assert!(Duration::try_from(SignedDuration::from_secs(i64::MIN)).is_ok());
        assert_eq!(
            Date::try_from(Timestamp::from_nanosecond(-1_000_000).unwrap()),
            Ok(Date::from_millis(-1))
        );
        assert!(Date::try_from(Timestamp::from_nanosecond(1).unwrap()).is_err());
    }
}
