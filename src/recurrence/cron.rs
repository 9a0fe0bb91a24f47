//! Cron texts in time zones.
//!
//! `croner` reads a text, and finds its matches in a calendar without time zones. How they lie in a zone is
//! decided here:
//!
//! | when the clocks are | a text with `*` in its seconds, minutes or hours | any other |
//! |---|---|---|
//! | set forward | matches in the gap are left out | they run once, at the end of the gap |
//! | set back | matches in the repeated time run twice | they run once, the first time |

use chrono::{DateTime, MappedLocalTime, NaiveDateTime, TimeZone, Utc};
use chrono_tz::Tz;
use croner::errors::CronError;
use croner::parser::CronParser;

use crate::wire::time;

const FIELDS: [&str; 7] =
    ["seconds", "minutes", "hours", "day of the month", "month", "day of the week", "year"];
/// Their numbers.
const RANGES: [&str; 7] = [
    "0 to 59",
    "0 to 59",
    "0 to 23",
    "1 to 31",
    "1 to 12 or JAN to DEC",
    "0 to 7 or SUN to SAT",
    "1 to 5000",
];

pub(super) struct Cron {
    cron: croner::Cron,
    zone: Tz,
    /// Whether it has `*` in its seconds, minutes or hours.
    is_interval: bool,
}

impl Cron {
    /// Returns what is wrong, and where.
    pub(super) fn new(text: &str, zone: &str) -> Result<Self, String> {
        let zone = zone.parse().map_err(|_| {
            format!("there is no time zone `{zone}`: use a name of the IANA database, such as Europe/Berlin")
        })?;
        let clock = fields(text);
        let cron = parser().parse(&with_sundays(text, &clock)?).map_err(|error| explain(text, &error))?;
        let is_interval = match text.trim().strip_prefix('@') {
            Some(name) => name.eq_ignore_ascii_case("hourly"),
            None => clock.iter().any(|(name, field)| FIELDS[..3].contains(name) && field.contains('*')),
        };
        let cron = Self { cron, zone, is_interval };
        if cron.next(0).is_none() {
            let date: Vec<_> = clock.iter().filter(|(name, _)| FIELDS[3..].contains(name)).collect();
            let date: Vec<_> = date.iter().map(|(name, field)| format!("{name} `{field}`")).collect();
            return Err(format!("the cron text `{text}` never comes: no date has {}", date.join(", ")));
        }
        Ok(cron)
    }

    /// The first match after a time.
    pub(super) fn next(&self, after: u64) -> Option<u64> {
        let after = Some(after).filter(|after| *after < time::LIMIT)?;
        let after = DateTime::from_timestamp(i64::try_from(after / 1000).ok()?, 0)?;
        let next = self.next_instant(after)?.timestamp();
        u64::try_from(next).ok()?.checked_mul(1000)
    }

    fn next_instant(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let local = after.with_timezone(&self.zone).naive_local();
        let repeated = match self.zone.from_local_datetime(&local) {
            MappedLocalTime::Ambiguous(first, second) if first == after => {
                Some((first.to_utc(), second.to_utc()))
            }
            _ => None,
        };
        let mut found = self.next_local(local);
        let next = loop {
            let at = match self.zone.from_local_datetime(&found?) {
                MappedLocalTime::Single(at) => Some(at.to_utc()),
                MappedLocalTime::Ambiguous(first, second) if self.is_interval => {
                    [first, second].map(|at| at.to_utc()).into_iter().find(|at| *at > after)
                }
                MappedLocalTime::Ambiguous(first, _) => Some(first.to_utc()),
                MappedLocalTime::None if self.is_interval => None,
                MappedLocalTime::None => self.end_of_gap(found?),
            };
            if let Some(at) = at.filter(|at| *at > after) {
                break at;
            }
            found = self.next_local(found?);
        };
        // In the first of two equal hours: the second one begins before what comes after both.
        if let (true, Some((first, second))) = (self.is_interval, repeated) {
            let set_back = self.first_change(first, second)?;
            let again = self.zone.from_utc_datetime(&set_back.naive_utc()).naive_local();
            let match_again = self.next_local(again - chrono::TimeDelta::seconds(1))?;
            let MappedLocalTime::Ambiguous(_, at) = self.zone.from_local_datetime(&match_again) else {
                return Some(next);
            };
            return Some(next.min(at.to_utc()));
        }
        Some(next)
    }

    /// The first match after a time on the wall.
    fn next_local(&self, after: NaiveDateTime) -> Option<NaiveDateTime> {
        self.cron.find_next_occurrence(&after.and_utc(), false).ok().map(|at| at.naive_utc())
    }

    /// The first instant after the gap that a time on the wall is in.
    fn end_of_gap(&self, local: NaiveDateTime) -> Option<DateTime<Utc>> {
        // No offset is a day or more.
        let day = chrono::TimeDelta::days(1);
        self.first_change(local.and_utc() - day, local.and_utc() + day)
    }

    /// The first instant with another offset than `from`, up to `to`, which has one. There is one change
    /// between them.
    fn first_change(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let offset = |at: DateTime<Utc>| at.with_timezone(&self.zone).naive_local() - at.naive_utc();
        let (old, mut from, mut to) = (offset(from), from.timestamp(), to.timestamp());
        while to - from > 1 {
            let middle = from + (to - from) / 2;
            if offset(DateTime::from_timestamp(middle, 0)?) == old { from = middle } else { to = middle }
        }
        DateTime::from_timestamp(to, 0)
    }
}

fn parser() -> CronParser {
    CronParser::builder().build()
}

/// The text with 0 for a last Sunday that is written as 7: the parser would leave it out.
fn with_sundays(text: &str, fields: &[(&str, &str)]) -> Result<String, String> {
    let days = fields.iter().find(|(name, _)| *name == FIELDS[5]).map_or("", |(_, days)| *days);
    let last = |day: &str| {
        day.to_ascii_uppercase().strip_suffix('L').map(|day| day.trim_end_matches('#').to_owned())
    };
    let is_open =
        |day: &str| last(day).is_some_and(|day| ["-7", "-SUN"].iter().any(|end| day.ends_with(end)));
    if let Some(day) = days.split(',').find(|day| is_open(day)) {
        return Err(format!(
            "in the cron text `{text}`, `{day}` ends with a Sunday: write that by itself, as 0#L"
        ));
    }
    if !days.split(',').any(|day| last(day).as_deref() == Some("7")) {
        return Ok(text.to_owned());
    }
    let days: Vec<String> = days
        .split(',')
        .map(|day| if last(day).as_deref() == Some("7") { day.replacen('7', "0", 1) } else { day.into() })
        .collect();
    let texts = fields
        .iter()
        .map(|(name, field)| if *name == FIELDS[5] { days.join(",") } else { (*field).to_owned() });
    Ok(texts.collect::<Vec<_>>().join(" "))
}

/// The fields of a text, with their names.
fn fields(text: &str) -> Vec<(&'static str, &str)> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    // Without seconds, a text begins with the minutes.
    let names = &FIELDS[usize::from(fields.len() == 5)..];
    names.iter().copied().zip(fields).collect()
}

/// What is wrong with a text, and where.
fn explain(text: &str, error: &CronError) -> String {
    let count = text.split_whitespace().count();
    if text.trim().starts_with('@') {
        return format!(
            "there is no cron text `{text}`: use @yearly, @monthly, @weekly, @daily or @hourly; for an interval, call every()"
        );
    }
    if !(5..=7).contains(&count) {
        return format!(
            "the number of fields in the cron text `{text}` is {count}: it needs minutes, hours, day of the month, month and \
             day of the week; seconds may come before them, and with those a year behind"
        );
    }
    // The field that is wrong is wrong by itself.
    let fields = fields(text);
    for (wrong, (name, field)) in fields.iter().enumerate() {
        let alone: Vec<&str> = (0..fields.len()).map(|at| if at == wrong { *field } else { "*" }).collect();
        if let Err(error) = parser().parse(&alone.join(" ")) {
            let number = wrong + 1;
            return format!(
                "field {number} of the cron text `{text}`, `{field}` ({name}), {}",
                wrong_field(name, &error)
            );
        }
    }
    format!("the cron text `{text}` is wrong: {}", reason(error))
}

/// What is wrong with a field. The reader's own messages quote the text as it has changed it.
fn wrong_field(name: &str, error: &CronError) -> String {
    let reason = reason(error);
    let range = FIELDS.iter().zip(RANGES).find(|(known, _)| **known == name).map_or("", |(_, range)| range);
    match error {
        CronError::IllegalCharacters(_) => {
            format!("has a character that means nothing there; use {range}, `*`, `-`, `,` and `/`")
        }
        _ if reason.starts_with("Range out") => format!("is out of range, or backwards; use {range}"),
        _ if reason.starts_with("Number out") => format!("is out of range; use {range}"),
        _ => format!("is wrong: {reason}"),
    }
}

fn reason(error: &CronError) -> String {
    match error {
        CronError::InvalidPattern(why)
        | CronError::IllegalCharacters(why)
        | CronError::ComponentError(why) => why.trim_end_matches('.').to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
