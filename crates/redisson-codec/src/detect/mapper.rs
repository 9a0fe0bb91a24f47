//! The settings of an application's `ObjectMapper` that a payload shows.

use std::collections::BTreeSet;

use super::format::{Format, Kind};
use crate::java::{LocalDate, LocalDateTime, LocalTime, Value};
use crate::signature::is_class;
use crate::{Codec, JsonJackson};

/// The years of a list of numbers that is taken for a time, if no class says that it is one.
const YEARS: std::ops::Range<i64> = 1900..2200;

type Settings = BTreeSet<&'static str>;

impl Format {
    /// The methods of [`Mapper`](crate::Mapper) for the settings of an application's own `ObjectMapper` that
    /// a payload of [`Kind::JsonJackson`] shows: `wrapper_array`, `java_time`, `java_time_as_text`, and
    /// `local_date_time`, `local_date` and `local_time` where a time has a pattern of its own. Empty if it
    /// shows none: Redisson's own mapper writes such a payload, too.
    ///
    /// A list of numbers without a class is taken for a time if it is a day or a day and a time between 1900
    /// and 2199: an `int[]` may look like this.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::detect::{Format, Kind};
    ///
    /// let payload = br#"["com.acme.Order",{"due":["java.time.LocalDate",[2024,2,29]]}]"#;
    /// let settings = Format::Plain(Kind::JsonJackson).mapper_settings(payload);
    /// assert_eq!(settings, ["java_time", "wrapper_array"]);
    /// ```
    #[must_use]
    pub fn mapper_settings(self, payload: &[u8]) -> Vec<&'static str> {
        let mut settings = Settings::new();
        let read = self.read(payload, |kind, payload| match kind {
            Kind::JsonJackson => JsonJackson.decode(payload).map(Some),
            _ => Ok(None),
        });
        if let Ok(Some(value)) = read {
            find(&value, &mut settings);
        }
        settings.into_iter().collect()
    }
}

/// As deep as the value, which a codec has read.
fn find(value: &Value, settings: &mut Settings) {
    match value {
        Value::Bare(value) => find(value, settings),
        Value::Classed(classed) => {
            settings.extend(of_time(&classed.class, &classed.value));
            find(&classed.value, settings);
        }
        Value::Object(object) => object.fields.iter().for_each(|(_, value)| find(value, settings)),
        Value::Map(map) => map.entries.iter().for_each(|(_, value)| find(value, settings)),
        Value::Collection(list) => {
            // A list behind any class is read as a collection of this class.
            settings.extend(is_of_numbers(&list.class).then_some("java_time"));
            list.elements.iter().for_each(|value| find(value, settings));
        }
        Value::Array(array) => {
            match &array.elements[..] {
                _ if !array.class.is_empty() => {}
                [Value::String(class), Value::Object(_)] if is_class(class) => {
                    settings.insert("wrapper_array");
                }
                elements if is_day(elements) => {
                    settings.insert("java_time");
                }
                _ => {}
            }
            array.elements.iter().for_each(|value| find(value, settings));
        }
        _ => {}
    }
}

/// What writes this value behind the class of a time. Redisson's own mapper writes a `Date` as a number, and
/// no other time.
fn of_time(class: &str, value: &Value) -> Option<&'static str> {
    let text = match value {
        Value::String(text) => text,
        Value::Array(_) | Value::Integer(_) | Value::Double(_) | Value::Bare(_) => {
            return is_of_numbers(class).then_some("java_time");
        }
        _ => return None,
    };
    let (is_iso, pattern) = match class {
        "java.time.LocalDateTime" => (text.parse::<LocalDateTime>().is_ok(), "local_date_time"),
        "java.time.LocalDate" => (text.parse::<LocalDate>().is_ok(), "local_date"),
        "java.time.LocalTime" => (text.parse::<LocalTime>().is_ok(), "local_time"),
        "java.time.Instant" | "java.time.OffsetDateTime" | "java.time.ZonedDateTime" | "java.util.Date" => {
            return Some("java_time_as_text");
        }
        // The others are texts in both forms.
        _ => return None,
    };
    Some(if is_iso { "java_time_as_text" } else { pattern })
}

/// Whether `java_time` writes numbers for this class, and no other form does. A `Duration` is a number in
/// both.
fn is_of_numbers(class: &str) -> bool {
    class.starts_with("java.time.") && class != "java.time.Duration"
}

/// Whether a list of numbers is a day, or a day and a time.
fn is_day(elements: &[Value]) -> bool {
    let number = |element: &Value| match element {
        Value::Integer(number) => Some(i64::from(*number)),
        _ => None,
    };
    if !matches!(elements.len(), 3 | 5..=7) {
        return false;
    }
    let Some(numbers) = elements.iter().map(number).collect::<Option<Vec<_>>>() else { return false };
    let is_time = numbers.len() == 3 || LocalDateTime::of_numbers(&numbers).is_some();
    YEARS.contains(&numbers[0]) && LocalDate::of_numbers(&numbers[..3]).is_some() && is_time
}
