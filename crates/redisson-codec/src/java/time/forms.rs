//! The forms that Jackson's `JavaTimeModule` gives to times: arrays of numbers, decimal seconds, and texts
//! with an offset.

use super::{Date, Duration, Instant, LocalDate, LocalDateTime, LocalTime, NANOS, nanos};
use crate::java::ParseError;
use crate::java::value_slot::{OfNumbers, Plain};

/// 1582-10-15. Before that, `java.util.Date` prints Julian days.
pub(crate) const GREGORIAN: i64 = -12_219_292_800_000;

impl Plain for LocalDate {
    const OF_NUMBERS: Option<OfNumbers<Self>> = Some(Self::of_numbers);
}

impl LocalDate {
    pub(crate) fn of_numbers(parts: &[i64]) -> Option<Self> {
        let [year, month, day] = *parts else { return None };
        Self::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?)
    }
}

impl Plain for LocalTime {
    const OF_NUMBERS: Option<OfNumbers<Self>> = Some(Self::of_numbers);
}

impl LocalTime {
    pub(crate) fn of_numbers(parts: &[i64]) -> Option<Self> {
        let (hour, minute, second, nano) = match *parts {
            [hour, minute] => (hour, minute, 0, 0),
            [hour, minute, second] => (hour, minute, second, 0),
            [hour, minute, second, nano] => (hour, minute, second, nano),
            _ => return None,
        };
        let [hour, minute, second] = [hour, minute, second].map(u8::try_from);
        Self::new(hour.ok()?, minute.ok()?, second.ok()?, nano.try_into().ok()?)
    }
}

impl Plain for LocalDateTime {
    const OF_NUMBERS: Option<OfNumbers<Self>> = Some(Self::of_numbers);
}

impl LocalDateTime {
    pub(crate) fn of_numbers(parts: &[i64]) -> Option<Self> {
        let (date, time) = parts.split_at_checked(3)?;
        Some(Self::new(LocalDate::of_numbers(date)?, LocalTime::of_numbers(time)?))
    }
}

impl Plain for Instant {
    fn of_text(text: &str) -> Result<Self, ParseError> {
        let of_seconds = || seconds(text).and_then(|(seconds, nanos)| Self::new(seconds, nanos));
        text.parse().or_else(|wrong| of_seconds().ok_or(wrong))
    }
}

impl Plain for Duration {
    fn of_text(text: &str) -> Result<Self, ParseError> {
        let of_seconds = || seconds(text).and_then(|(seconds, nanos)| Self::new(seconds, nanos));
        text.parse().or_else(|wrong| of_seconds().ok_or(wrong))
    }
}

impl Plain for Date {
    fn of_text(text: &str) -> Result<Self, ParseError> {
        text.parse().or_else(|wrong| date(text).ok_or(wrong))
    }
}

/// A decimal number of seconds, as whole ones and nanoseconds after them.
pub(crate) fn seconds(text: &str) -> Option<(i64, u32)> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || !whole.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let total = whole.parse::<i128>().ok()?.checked_mul(NANOS.into())?;
    let total = total.checked_add(nanos(fraction)?.into())?;
    let (total, second) = (if negative { -total } else { total }, i128::from(NANOS));
    Some((total.div_euclid(second).try_into().ok()?, total.rem_euclid(second) as u32))
}

/// A `Date` as `StdDateFormat` prints it, with an offset that may lack the colon.
pub(crate) fn date(text: &str) -> Option<Date> {
    let (at, offset) = split_offset(text)?;
    let instant: Instant = format!("{at}Z").parse().ok()?;
    let seconds = instant.seconds().checked_sub(offset_minutes(offset)? * 60)?;
    let date =
        Date::from_millis(seconds.checked_mul(1000)?.checked_add(i64::from(instant.nanos() / 1_000_000))?);
    (date.millis() >= GREGORIAN).then_some(date)
}

/// The text before the offset, and the offset.
pub(crate) fn split_offset(text: &str) -> Option<(&str, &str)> {
    if let Some(at) = text.strip_suffix('Z') {
        return Some((at, "Z"));
    }
    // The first one may be the sign of a year, and there are some in a date.
    let from = text.rfind(['+', '-']).filter(|from| text[..*from].contains(':'))?;
    Some(text.split_at(from))
}

/// `Z`, `+02:00` or `+0200`.
pub(crate) fn offset_minutes(offset: &str) -> Option<i64> {
    if offset == "Z" {
        return Some(0);
    }
    let digits: String = offset.get(1..)?.chars().filter(|c| *c != ':').collect();
    let valid = digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let minutes: i64 = valid.then(|| digits.parse::<i64>().ok())??;
    let minutes = minutes / 100 * 60 + minutes % 100;
    Some(if offset.starts_with('-') { -minutes } else { minutes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_seconds_than_there_can_be() {
        for text in ["170141183460469231731687303715.999999999", "-170141183460469231731687303715.999999999"]
        {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
