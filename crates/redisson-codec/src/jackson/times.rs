//! Times as Jackson's `JavaTimeModule` writes them: arrays of numbers, decimal seconds, texts.

use super::failure::Failure;
use super::mapper::{Mapper, Times};
use super::node::{Is, Node};
use super::value::as_text;
use crate::java::known_classes::Scalar;
use crate::java::time::forms::{self, GREGORIAN, offset_minutes, split_offset};
use crate::java::{Date, Duration, Instant, LocalDate, LocalDateTime, LocalTime, Value};

/// Why a time is not written by Redisson's own mapper.
const NO_MODULE: &str =
    "Redisson's own mapper has no module for it; `JsonJackson::with_mapper` is for one that has";

pub(super) fn refused(class: &str, why: &str) -> Failure {
    Failure::new(format!("a {class} is not written: {why}"))
}

/// A time of one of these classes, in any of its forms.
pub(super) fn read(kind: Scalar, node: &Node<'_>, mapper: &Mapper) -> Option<Value> {
    let text = as_text(node);
    Some(match kind {
        Scalar::LocalDateTime => Value::LocalDateTime(match (text, &mapper.local_date_time) {
            (Some(text), Some(pattern)) => pattern.parse_date_time(text).or_else(|| text.parse().ok())?,
            (Some(text), None) => text.parse().ok()?,
            _ => LocalDateTime::of_numbers(&numbers(node)?)?,
        }),
        Scalar::LocalDate => Value::LocalDate(match (text, &mapper.local_date) {
            (Some(text), Some(pattern)) => pattern.parse_date(text).or_else(|| text.parse().ok())?,
            (Some(text), None) => text.parse().ok()?,
            _ => LocalDate::of_numbers(&numbers(node)?)?,
        }),
        Scalar::LocalTime => Value::LocalTime(match (text, &mapper.local_time) {
            (Some(text), Some(pattern)) => pattern.parse_time(text).or_else(|| text.parse().ok())?,
            (Some(text), None) => text.parse().ok()?,
            _ => LocalTime::of_numbers(&numbers(node)?)?,
        }),
        Scalar::Instant => match text {
            Some(text) => Value::Instant(text.parse().ok()?),
            None => {
                let (seconds, nanos) = seconds(node)?;
                Value::Instant(Instant::new(seconds, nanos)?)
            }
        },
        Scalar::Duration => match text {
            Some(text) => Value::Duration(text.parse().ok()?),
            None => {
                let (seconds, nanos) = seconds(node)?;
                Value::Duration(Duration::new(seconds, nanos)?)
            }
        },
        Scalar::Date => match (text, &node.is) {
            (Some(text), _) => Value::Date(forms::date(text)?),
            (None, Is::Int(millis)) => Value::Date(Date::from_millis(*millis)),
            _ => return None,
        },
        _ => return None,
    })
}

/// The elements of a list of integers.
fn numbers(node: &Node<'_>) -> Option<Vec<i64>> {
    let (Is::Array(elements) | Is::Bare(elements)) = &node.is else { return None };
    let number = |element: &Node<'_>| match element.is {
        Is::Int(number) => Some(number),
        _ => None,
    };
    // None has more.
    if elements.len() > 7 { None } else { elements.iter().map(number).collect() }
}

/// Whether two forms of a time are the same, wherever they are in a payload.
pub(super) fn is_same(one: &Is<'_>, other: &Is<'_>) -> bool {
    match (one, other) {
        (Is::Array(one) | Is::Bare(one), Is::Array(other) | Is::Bare(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(&one.is, &other.is))
        }
        _ => one == other,
    }
}

/// Seconds and nanoseconds of a decimal number.
fn seconds(node: &Node<'_>) -> Option<(i64, u32)> {
    let text = match &node.is {
        Is::Int(seconds) => return Some((*seconds, 0)),
        Is::Number(text) => &text[..],
        Is::Decimal(number) => &number.to_string(),
        _ => return None,
    };
    forms::seconds(text)
}

/// A time as this mapper writes it, or why it does not.
pub(super) fn write(value: &Value, mapper: &Mapper) -> Result<Is<'static>, &'static str> {
    const YEAR: &str = "the pattern has no era, which a year before 1 needs";
    let texts = mapper.times == Times::Texts;
    let text = |text: Option<String>| text.map(|text| Is::Text(text.into())).ok_or(YEAR);
    match *value {
        Value::Date(date) if !texts => return Ok(Is::Int(date.millis())),
        Value::Date(date) => {
            return date_text(date)
                .map(|text| Is::Text(text.into()))
                .ok_or("before 1582, Java prints days of another calendar");
        }
        _ if mapper.times == Times::Refused => return Err(NO_MODULE),
        _ => {}
    }
    Ok(match *value {
        Value::LocalDateTime(value) => match &mapper.local_date_time {
            Some(pattern) => text(pattern.print_date_time(value))?,
            None if texts => Is::Text(format!("{}T{}", value.date(), iso(value.time())).into()),
            None => list(date_parts(value.date()).into_iter().chain(time_parts(value.time()))),
        },
        Value::LocalDate(value) => match &mapper.local_date {
            Some(pattern) => text(pattern.print_date(value))?,
            None if texts => Is::Text(value.to_string().into()),
            None => list(date_parts(value)),
        },
        Value::LocalTime(value) => match &mapper.local_time {
            Some(pattern) => text(pattern.print_time(value))?,
            None if texts => Is::Text(iso(value).into()),
            None => list(time_parts(value)),
        },
        Value::Instant(value) if texts => Is::Text(value.to_string().into()),
        Value::Instant(value) => decimal(value.seconds(), value.nanos()),
        // A feature of its own makes it a text.
        Value::Duration(value) => decimal(value.seconds(), value.nanos()),
        _ => return Err("it is no time"),
    })
}

/// The text of a time for which there is only the text.
pub(super) fn read_text(class: &str, node: &Node<'_>) -> Option<String> {
    if let Some(text) = as_text(node) {
        return Some(text.to_owned());
    }
    match (class, &node.is) {
        ("java.time.Year", Is::Int(year)) => Some(year.to_string()),
        ("java.time.YearMonth", _) => {
            let [year, month] = numbers(node)?[..] else { return None };
            let day = LocalDate::of_numbers(&[year, month, 1])?.to_string();
            Some(day.strip_suffix("-01")?.to_owned())
        }
        ("java.time.OffsetTime", Is::Array(parts) | Is::Bare(parts)) => {
            let (offset, parts) = parts.split_last()?;
            let parts = Node { at: node.at, is: Is::Array(parts.to_vec()) };
            Some(format!("{}{}", LocalTime::of_numbers(&numbers(&parts)?)?, as_text(offset)?))
        }
        // As Java reads it: in UTC.
        ("java.time.OffsetDateTime" | "java.time.ZonedDateTime", _) => {
            let (seconds, nanos) = seconds(node)?;
            let zone = if class == "java.time.ZonedDateTime" { "[UTC]" } else { "" };
            Some(format!("{}{zone}", Instant::new(seconds, nanos)?))
        }
        _ => None,
    }
}

/// The same as this mapper writes it, or why it does not.
pub(super) fn write_text(class: &str, text: &str, mapper: &Mapper) -> Result<Is<'static>, &'static str> {
    const WRONG: &str = "it is no text of this class";
    let as_it_is = || Ok(Is::Text(text.to_owned().into()));
    match (class, mapper.times) {
        (_, Times::Refused) => Err(NO_MODULE),
        ("java.time.Year", Times::Numbers) => text.parse().map(Is::Int).map_err(|_| WRONG),
        ("java.time.YearMonth", Times::Numbers) => {
            let day: LocalDate = format!("{text}-01").parse().map_err(|_| WRONG)?;
            Ok(list([day.year().into(), day.month().into()]))
        }
        ("java.time.OffsetTime", times) => {
            let (at, offset) = split_offset(text).ok_or(WRONG)?;
            let at: LocalTime = at.parse().map_err(|_| WRONG)?;
            if times == Times::Texts {
                return Ok(Is::Text(format!("{}{offset}", iso(at)).into()));
            }
            let parts = time_parts(at).into_iter().map(|part| Is::Int(part).into());
            Ok(Is::Array(parts.chain([Node::text(offset.to_owned())]).collect()))
        }
        ("java.time.OffsetDateTime" | "java.time.ZonedDateTime", times) => {
            let text = text.split_once('[').map_or(text, |(text, _)| text);
            let (at, offset) = split_offset(text).ok_or("the text has no offset")?;
            let at: LocalDateTime = at.parse().map_err(|_| WRONG)?;
            if times == Times::Texts {
                return Ok(Is::Text(format!("{}T{}{offset}", at.date(), iso(at.time())).into()));
            }
            let utc: Instant = format!("{at}Z").parse().map_err(|_| WRONG)?;
            let offset = offset_minutes(offset).ok_or(WRONG)?;
            Ok(decimal(utc.seconds() - offset * 60, utc.nanos()))
        }
        _ => as_it_is(),
    }
}

fn list(numbers: impl IntoIterator<Item = i64>) -> Is<'static> {
    Is::Array(numbers.into_iter().map(|number| Is::Int(number).into()).collect())
}

fn date_parts(date: LocalDate) -> [i64; 3] {
    [date.year().into(), date.month().into(), date.day().into()]
}

/// Without the seconds and nanoseconds at the end that are 0.
fn time_parts(time: LocalTime) -> Vec<i64> {
    let mut parts =
        vec![time.hour().into(), time.minute().into(), time.second().into(), i64::from(time.nano())];
    while parts.len() > 2 && parts.last() == Some(&0) {
        parts.pop();
    }
    parts
}

/// Unlike `LocalTime.toString`, with the seconds, and without the zeros at the end of a fraction.
fn iso(time: LocalTime) -> String {
    let text = format!("{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second());
    match time.nano() {
        0 => text,
        nano => format!("{text}.{}", format!("{nano:09}").trim_end_matches('0')),
    }
}

const NANOS: i128 = 1_000_000_000;

fn decimal(seconds: i64, nanos: u32) -> Is<'static> {
    if (seconds, nanos) == (0, 0) {
        return Is::Number("0.0".into());
    }
    let total = i128::from(seconds) * NANOS + i128::from(nanos);
    let (whole, nanos) = (total.abs() / NANOS, total.abs() % NANOS);
    let sign = if total < 0 { "-" } else { "" };
    Is::Number(format!("{sign}{whole}.{nanos:09}").into())
}

/// As `StdDateFormat` prints it.
fn date_text(date: Date) -> Option<String> {
    let millis = date.millis();
    let instant = Instant::new(millis.div_euclid(1000), 0).filter(|_| millis >= GREGORIAN)?;
    let text = instant.to_string();
    Some(format!("{}.{:03}+00:00", text.strip_suffix('Z')?, millis.rem_euclid(1000)))
}
