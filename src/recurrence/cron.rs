//! Cron texts in time zones.
//!
//! `croner` reads a text and finds its matches; `jiff` knows the zones:
//!
//! | when the clocks are | a text with `*` in its seconds, minutes or hours | any other |
//! |---|---|---|
//! | set forward | matches in the gap are left out | they run once, at the end of the gap |
//! | set back | matches in the repeated time run twice | they run once, the first time |

use std::cmp::Ordering;
use std::sync::LazyLock;

use croner::errors::CronError;
use croner::parser::CronParser;
use croner::{CivilDate, CivilDateTime, CivilTime, CronDateTime, Resolution, Weekday};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp, ZonedDateTime};

use crate::wire::time;

/// That of this program and not of the machine, so that all processes of a service agree.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

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
    zone: TimeZone,
    /// Whether it has `*` in its seconds, minutes or hours. croner has lists and ranges among them, too.
    is_interval: bool,
}

impl Cron {
    /// Returns what is wrong, and where.
    pub(super) fn new(text: &str, zone: &str) -> Result<Self, String> {
        let zone = ZONES.get(zone).map_err(|_| {
            format!("there is no time zone `{zone}`: use a name of the IANA database, such as Europe/Berlin")
        })?;
        let clock = fields(text);
        let cron = parser().parse(text).map_err(|error| explain(text, &error))?;
        let is_interval = match text.trim().strip_prefix('@') {
            Some(name) => name.eq_ignore_ascii_case("hourly"),
            None => clock.iter().any(|(name, field)| FIELDS[..3].contains(name) && field.contains('*')),
        };
        let cron = Self { cron, zone, is_interval };
        if cron.next(0).is_none() {
            let date: Vec<_> = clock.iter().filter(|(name, _)| FIELDS[3..].contains(name)).collect();
            let date: Vec<_> = date.iter().map(|(name, field)| format!("{name} `{field}`")).collect();
            return Err(format!("the cron expression `{text}` never comes: no date has {}", date.join(", ")));
        }
        Ok(cron)
    }

    /// The first match after a time.
    pub(super) fn next(&self, after: u64) -> Option<u64> {
        let after = Some(after).filter(|after| *after < time::LIMIT)?;
        let next = self.next_instant(Timestamp::from_second(i64::try_from(after / 1000).ok()?).ok()?)?;
        u64::try_from(next.as_second()).ok()?.checked_mul(1000)
    }

    fn next_instant(&self, after: Timestamp) -> Option<Timestamp> {
        let begin = after.to_zoned_datetime(self.zone.clone());
        if self.is_interval {
            return self.find(begin).map(|at| at.timestamp());
        }
        let mut wall = begin.datetime();
        loop {
            // A calendar in which no clock changes.
            wall = self.find(wall.to_zoned_datetime(TimeZone::UTC).ok()?)?.datetime();
            let at = self.zone.to_ambiguous_timestamp(wall);
            let is_in_gap = matches!(at.offset(), AmbiguousOffset::Gap { .. });
            let mut at = at.earlier().ok()?;
            if is_in_gap {
                at = self.zone.following(at).next()?.timestamp();
            }
            if at > after {
                return Some(at);
            }
        }
    }

    /// The first match after a time, in its zone.
    fn find(&self, after: ZonedDateTime) -> Option<ZonedDateTime> {
        self.cron.find_next_occurrence(&Wall(after), false).ok().map(|at| at.0)
    }
}

/// A time in a zone, as croner sees it. Its own implementation is for an older `jiff`.
#[derive(Clone)]
struct Wall(ZonedDateTime);

impl CronDateTime for Wall {
    fn to_civil(&self) -> CivilDateTime {
        let at = self.0.datetime();
        let part = |part: i8| part.unsigned_abs().into();
        CivilDateTime::new(
            CivilDate::from_parts_unchecked(at.year().into(), part(at.month()), part(at.day())),
            CivilTime::from_parts_unchecked(part(at.hour()), part(at.minute()), part(at.second())),
        )
    }

    fn civil_weekday(&self) -> Weekday {
        Weekday::from_days_from_sunday(self.0.weekday().to_sunday_zero_offset().unsigned_abs().into())
    }

    fn resolve_civil(&self, at: CivilDateTime) -> Result<Resolution<Self>, CronError> {
        let part = |part: u32| i8::try_from(part).map_err(|_| CronError::InvalidDate);
        let year = i16::try_from(at.year()).map_err(|_| CronError::InvalidDate)?;
        let (month, day) = (part(at.month())?, part(at.day())?);
        let (hour, minute, second) = (part(at.hour())?, part(at.minute())?, part(at.second())?);
        let at = DateTime::new(year, month, day, hour, minute, second, 0);
        let at = self.0.time_zone().to_ambiguous_zoned_datetime(at.map_err(|_| CronError::InvalidDate)?);
        let in_zone =
            |at: Result<ZonedDateTime, jiff::Error>| at.map(Self).map_err(|_| CronError::InvalidTime);
        Ok(match at.offset() {
            AmbiguousOffset::Unambiguous { .. } => Resolution::Single(in_zone(at.unambiguous())?),
            AmbiguousOffset::Fold { .. } => {
                Resolution::Ambiguous(in_zone(at.clone().earlier())?, in_zone(at.later())?)
            }
            AmbiguousOffset::Gap { .. } => Resolution::Gap,
        })
    }

    fn checked_add_seconds(&self, seconds: i64) -> Option<Self> {
        self.0.checked_add(SignedDuration::from_secs(seconds)).ok().map(Self)
    }

    fn cmp_instant(&self, other: &Self) -> Ordering {
        self.0.timestamp().cmp(&other.0.timestamp())
    }
}

fn parser() -> CronParser {
    CronParser::builder().build()
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
            "there is no cron expression `{text}`: use @yearly, @monthly, @weekly, @daily or @hourly; for an interval, call every()"
        );
    }
    if !(5..=7).contains(&count) {
        return format!(
            "the number of fields in the cron expression `{text}` is {count}: it needs minutes, hours, day of the month, month and \
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
                "field {number} of the cron expression `{text}`, `{field}` ({name}), {}",
                wrong_field(name, &error)
            );
        }
    }
    format!("the cron expression `{text}` is wrong: {}", reason(error))
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
