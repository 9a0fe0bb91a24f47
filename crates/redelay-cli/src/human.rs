//! Numbers, spans and times as people read them. Pure, but for the time zone.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// `1,203,154`.
pub(crate) fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number of things: `1 process`, `2,204 processes`.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// The two largest units: `20 ms`, `4 m 12 s`, `3 d 4 h`.
pub(crate) fn span(span: Duration) -> String {
    let millis = span.as_millis();
    if millis < 1_000 {
        return format!("{millis} ms");
    }
    let seconds = span.as_secs();
    if seconds < 10 {
        let tenths = millis / 100;
        return match tenths % 10 {
            0 => format!("{} s", tenths / 10),
            tenth => format!("{}.{tenth} s", tenths / 10),
        };
    }
    const UNITS: [(u64, &str); 5] = [(365 * 86_400, "y"), (86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let at = UNITS.iter().position(|(unit, _)| seconds >= *unit).unwrap_or(UNITS.len() - 1);
    let (unit, name) = UNITS[at];
    let first = format!("{} {name}", count(seconds / unit));
    match UNITS.get(at + 1).map(|(next, name)| (seconds % unit / next, name)) {
        Some((rest, name)) if rest > 0 => format!("{first} {rest} {name}"),
        _ => first,
    }
}

/// How long until then: `in 20 ms`, `now`, or `never` for what is no time.
pub(crate) fn until(left: Duration) -> String {
    match left.as_secs() {
        _ if left.is_zero() => "now".into(),
        seconds if seconds / 86_400 / 365 > 9_999 => "never".into(),
        _ => format!("in {}", span(left)),
    }
}

/// A time in RFC 3339, in UTC, with milliseconds. For JSON.
pub(crate) fn rfc_3339(at: SystemTime) -> Option<String> {
    let at = Timestamp::try_from(at).ok()?;
    Some(at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
}

/// A time in this zone: `2026-11-25 14:03:10.220`.
pub(crate) fn local(at: SystemTime, zone: &TimeZone) -> String {
    let Ok(at) = Timestamp::try_from(at) else { return "after the year 9999".into() };
    at.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%d %H:%M:%S%.3f").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        let shown = [0, 7, 999, 1_000, 46_600, 1_203_154, u64::MAX].map(count);
        assert_eq!(shown, ["0", "7", "999", "1,000", "46,600", "1,203,154", "18,446,744,073,709,551,615"]);
        assert_eq!(counted(1, "queue", "queues"), "1 queue");
        assert_eq!(counted(2_204, "queue", "queues"), "2,204 queues");
    }

    #[test]
    fn spans_have_two_units() {
        for (millis, shown) in [
            (0, "0 ms"),
            (20, "20 ms"),
            (999, "999 ms"),
            (1_000, "1 s"),
            (1_490, "1.4 s"),
            (11_900, "11 s"),
            (60_000, "1 m"),
            (252_000, "4 m 12 s"),
            (3_600_000, "1 h"),
            (7_500_000, "2 h 5 m"),
            (273_600_000, "3 d 4 h"),
            (86_400_000 * 400, "1 y 35 d"),
        ] {
            assert_eq!(span(Duration::from_millis(millis)), shown);
        }
        assert_eq!((&*until(Duration::ZERO), &*until(Duration::MAX)), ("now", "never"));
        assert_eq!(until(Duration::from_micros(20_100)), "in 20 ms");
        assert!(!span(Duration::MAX).is_empty());
    }

    #[test]
    fn times_are_in_utc_for_programs_and_local_for_people() {
        let at = SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_615_390_307);
        assert_eq!(rfc_3339(at).as_deref(), Some("2026-11-25T14:03:10.307Z"));
        assert_eq!(local(at, &TimeZone::fixed(jiff::tz::offset(2))), "2026-11-25 16:03:10.307");
        let late = SystemTime::UNIX_EPOCH + Duration::from_millis(999_999_999_999_999);
        assert_eq!((rfc_3339(late), local(late, &TimeZone::UTC)), (None, "after the year 9999".into()));
    }
}
