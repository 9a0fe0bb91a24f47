//! Times as they are on the server: whole milliseconds, below the limit of Redisson's decoder. And as serde
//! writes them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Serialize, Serializer};

/// Due times in epoch ms are below this: from 10^15, Redisson's decoder and Lua's doubles lose digits.
pub(crate) const LIMIT: u64 = 1_000_000_000_000_000;

/// A duration in whole milliseconds, rounded up, so that nothing ends early.
pub(crate) fn millis(span: Duration) -> Result<u64, String> {
    let millis = span.as_nanos().div_ceil(1_000_000);
    u64::try_from(millis)
        .ok()
        .filter(|millis| *millis < LIMIT)
        .ok_or_else(|| "the time is 10^15 ms or more (31,000 years), the limit of scores on the wire".into())
}

/// A point in time in epoch ms, rounded up. A time before 1970 becomes 0.
pub(crate) fn epoch_millis(at: SystemTime) -> Result<u64, String> {
    millis(at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO))
}

/// The point in time that epoch ms stand for, or a late one, if the system's clock does not go so far.
pub(crate) fn from_epoch_millis(millis: u64) -> SystemTime {
    let at = |millis| UNIX_EPOCH.checked_add(Duration::from_millis(millis));
    (0..u64::BITS).find_map(|halvings| at(millis >> halvings)).unwrap_or(UNIX_EPOCH)
}

/// The due time of a score, epoch ms, rounded up; `None` for a score that is no time.
pub(crate) fn of_score(score: f64) -> Option<u64> {
    (0.0..LIMIT as f64).contains(&score).then(|| score.ceil() as u64)
}

/// The server's clock in epoch µs, from the two parts of the reply to `TIME`; `None` if that is no time
/// before the limit.
pub(crate) fn server_clock(seconds: &[u8], micros: &[u8]) -> Option<i64> {
    let below = |text, limit| {
        let number = std::str::from_utf8(text).ok()?.parse::<i64>().ok()?;
        (0..limit).contains(&number).then_some(number)
    };
    Some(below(seconds, LIMIT as i64 / 1_000)? * 1_000_000 + below(micros, 1_000_000)?)
}

/// Whether the server's clock, epoch µs, shows a time before the limit.
pub(crate) fn is_clock(micros: i64) -> bool {
    (0..LIMIT as i64 * 1_000).contains(&micros)
}

/// Serializes a point in time as epoch ms, a whole number, rounded down.
pub(crate) fn in_epoch_ms<S: Serializer>(at: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    let millis = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    serializer.serialize_i64(match at.duration_since(UNIX_EPOCH) {
        Ok(since) => millis(since),
        Err(before) => -millis(before.duration() + Duration::from_nanos(999_999)),
    })
}

/// The same of a time that may be absent.
pub(crate) fn optional_in_epoch_ms<S: Serializer>(
    at: &Option<SystemTime>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => in_epoch_ms(at, serializer),
        None => serializer.serialize_none(),
    }
}

/// Serializes a duration as ms with decimals.
pub(crate) fn in_ms<S: Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(span.as_secs_f64() * 1e3)
}

/// The same of a duration that may be absent.
pub(crate) fn optional_in_ms<S: Serializer>(
    span: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    span.map(|span| span.as_secs_f64() * 1e3).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_up_and_ends() {
        assert_eq!(millis(Duration::ZERO), Ok(0));
        assert_eq!(millis(Duration::from_nanos(1)), Ok(1));
        assert_eq!(millis(Duration::from_micros(1500)), Ok(2));
        assert_eq!(millis(Duration::from_millis(LIMIT - 1)), Ok(LIMIT - 1));
        assert!(millis(Duration::from_millis(LIMIT)).is_err());
        assert!(millis(Duration::MAX).is_err());
        assert_eq!(epoch_millis(UNIX_EPOCH + Duration::from_micros(1500)), Ok(2));
        assert_eq!(epoch_millis(UNIX_EPOCH - Duration::from_secs(9)), Ok(0));
    }

    #[test]
    fn every_number_is_a_point_in_time() {
        for millis in [0, 1, LIMIT, 1 << 53, i64::MAX as u64, u64::MAX] {
            assert!(from_epoch_millis(millis) >= UNIX_EPOCH);
        }
        assert_eq!(from_epoch_millis(LIMIT), UNIX_EPOCH + Duration::from_millis(LIMIT));
    }

    #[test]
    fn serde_writes_milliseconds() {
        let epoch_ms = |at| in_epoch_ms(&at, serde_json::value::Serializer).unwrap();
        assert_eq!(
            epoch_ms(UNIX_EPOCH + Duration::from_micros(1_795_249_257_299_999)),
            1_795_249_257_299_i64
        );
        assert_eq!(epoch_ms(UNIX_EPOCH - Duration::from_micros(1_500)), -2);
        assert_eq!(
            optional_in_epoch_ms(&None, serde_json::value::Serializer).unwrap(),
            serde_json::Value::Null
        );
        assert_eq!(in_ms(&Duration::from_micros(1_500), serde_json::value::Serializer).unwrap(), 1.5);
    }

    #[test]
    fn clocks_of_servers() {
        let clock = |seconds: &str, micros: &str| server_clock(seconds.as_bytes(), micros.as_bytes());
        assert_eq!(clock("1795249257", "299000"), Some(1_795_249_257_299_000));
        assert_eq!(clock("0", "0"), Some(0));
        assert_eq!(clock("999999999999", "999999"), Some(999_999_999_999_999_999));
        for (seconds, micros) in [
            ("1000000000000", "0"),
            ("9223372036854775807", "0"),
            ("-9223372036854775808", "0"),
            ("-1", "0"),
            ("1", "1000000"),
            ("1", "-1"),
            ("", "1"),
            ("1e9", "1"),
            ("1", " 1"),
        ] {
            assert_eq!(clock(seconds, micros), None, "{seconds} {micros}");
        }
    }

    #[test]
    fn a_clock_shows_a_time_before_the_limit() {
        let limit = LIMIT as i64 * 1_000;
        assert!([0, 1_795_249_257_299_000, limit - 1].into_iter().all(is_clock));
        assert!(![i64::MIN, -1, limit, i64::MAX].into_iter().any(is_clock));
    }
}
