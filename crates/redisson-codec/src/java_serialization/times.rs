//! The times of `java.time`, which are all written by a class `java.time.Ser`.

use super::contents::Contents;
use super::modified_utf8::text;
use crate::java::time::parts::{month_day_text, offset_text, period_text, year_month_text, year_text};
use crate::java::{ClassName, Duration, Instant, LocalDate, LocalDateTime, LocalTime, Text, Value};

/// What it wrote. `None`: it is none.
pub(super) fn read(contents: &mut Contents<'_>) -> Option<Value> {
    Some(match contents.byte()? {
        1 => Value::Duration(Duration::new(contents.long()?, nanos(contents)?)?),
        2 => Value::Instant(Instant::new(contents.long()?, nanos(contents)?)?),
        3 => Value::LocalDate(date(contents)?),
        4 => Value::LocalTime(time(contents)?),
        5 => Value::LocalDateTime(date_time(contents)?),
        6 => {
            let (time, offset) = (date_time(contents)?, offset(contents)?);
            let zone = match contents.byte()? {
                7 => format!("[{}]", region(contents)?),
                // It is the same.
                8 => offset_text(self::seconds(contents)?)
                    .filter(|zone| *zone == offset)
                    .map(|_| String::new())?,
                _ => return None,
            };
            of("java.time.ZonedDateTime", format!("{time}{offset}{zone}"))
        }
        7 => of("java.time.ZoneRegion", region(contents)?),
        8 => of("java.time.ZoneOffset", offset(contents)?),
        9 => of("java.time.OffsetTime", format!("{}{}", time(contents)?, offset(contents)?)),
        10 => of("java.time.OffsetDateTime", format!("{}{}", date_time(contents)?, offset(contents)?)),
        11 => of("java.time.Year", year_text(contents.int()?)?),
        12 => of("java.time.YearMonth", year_month_text(contents.int()?, contents.byte()?)?),
        13 => of("java.time.MonthDay", month_day_text(contents.byte()?, contents.byte()?)?),
        14 => of("java.time.Period", period_text([contents.int()?, contents.int()?, contents.int()?])),
        _ => return None,
    })
}

fn of(class: &'static str, text: String) -> Value {
    Value::Text(Box::new(Text { class: ClassName::Borrowed(class), text }))
}

fn nanos(contents: &mut Contents<'_>) -> Option<u32> {
    contents.int()?.try_into().ok()
}

fn date(contents: &mut Contents<'_>) -> Option<LocalDate> {
    LocalDate::new(contents.int()?, contents.byte()?, contents.byte()?)
}

/// The last part that is not 0 has its bits flipped, and those behind it are left out.
fn time(contents: &mut Contents<'_>) -> Option<LocalTime> {
    let mut parts = [0; 3];
    for part in &mut parts {
        let byte = contents.byte()?;
        if byte >= 0x80 {
            *part = !byte;
            return LocalTime::new(parts[0], parts[1], parts[2], 0);
        }
        *part = byte;
    }
    LocalTime::new(parts[0], parts[1], parts[2], nanos(contents)?)
}

fn date_time(contents: &mut Contents<'_>) -> Option<LocalDateTime> {
    Some(LocalDateTime::new(date(contents)?, time(contents)?))
}

fn offset(contents: &mut Contents<'_>) -> Option<String> {
    offset_text(seconds(contents)?)
}

fn seconds(contents: &mut Contents<'_>) -> Option<i32> {
    match contents.byte()? as i8 {
        127 => contents.int(),
        quarters => Some(i32::from(quarters) * 900),
    }
}

fn region(contents: &mut Contents<'_>) -> Option<String> {
    Some(text(&contents.text()?)?.into_owned())
}
