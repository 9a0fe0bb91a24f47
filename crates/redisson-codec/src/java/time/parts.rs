//! The texts of those times of `java.time` that have no type here, as Java prints them.

use std::fmt::Write as _;

use super::LocalDate;

/// Java's offsets end at 18 hours.
pub(crate) const MAX_OFFSET: i32 = 18 * 3600;

/// Of a `ZoneOffset`.
pub(crate) fn offset_text(seconds: i32) -> Option<String> {
    if seconds == 0 {
        return Some("Z".to_owned());
    }
    if !(-MAX_OFFSET..=MAX_OFFSET).contains(&seconds) {
        return None;
    }
    let (sign, all) = (if seconds < 0 { '-' } else { '+' }, seconds.abs());
    let mut text = format!("{sign}{:02}:{:02}", all / 3600, all / 60 % 60);
    if all % 60 > 0 {
        let _ = write!(text, ":{:02}", all % 60);
    }
    Some(text)
}

/// Of a `Year`.
pub(crate) fn year_text(year: i32) -> Option<String> {
    LocalDate::new(year, 1, 1).map(|date| without(date, "-01-01"))
}

/// Of a `YearMonth`.
pub(crate) fn year_month_text(year: i32, month: u8) -> Option<String> {
    LocalDate::new(year, month, 1).map(|date| without(date, "-01"))
}

fn without(date: LocalDate, end: &str) -> String {
    let mut text = date.to_string();
    text.truncate(text.len() - end.len());
    text
}

/// Of a `MonthDay`.
pub(crate) fn month_day_text(month: u8, day: u8) -> Option<String> {
    const LEAP: i32 = 2000;
    LocalDate::new(LEAP, month, day).map(|date| format!("-{}", &date.to_string()["2000".len()..]))
}

/// Of a `Period`: like `P1Y-2M3D`, without what is 0.
pub(crate) fn period_text(counts: [i32; 3]) -> String {
    if counts == [0; 3] {
        return "P0D".to_owned();
    }
    let mut text = "P".to_owned();
    for (count, unit) in counts.into_iter().zip(['Y', 'M', 'D']) {
        if count != 0 {
            let _ = write!(text, "{count}{unit}");
        }
    }
    text
}
