//! The times of `java.time`, and [`Date`]. They carry; for calculating there are crates.

mod duration;
pub(crate) mod forms;
mod instant;
mod local;
#[cfg(feature = "kryo")]
pub(crate) mod parts;

pub use duration::Duration;
pub use instant::{Date, Instant};
pub use local::{LocalDate, LocalDateTime, LocalTime};

const NANOS: u32 = 1_000_000_000;

/// Of the digits behind a point.
fn nanos(fraction: &str) -> Option<u32> {
    let valid = fraction.len() <= 9 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    valid.then(|| format!("{fraction:0<9}").parse().ok())?
}

#[cfg(test)]
#[track_caller]
fn both_ways<T>(value: T, text: &str)
where
    T: std::fmt::Display + std::fmt::Debug + PartialEq + std::str::FromStr<Err = super::ParseError>,
{
    assert_eq!(value.to_string(), text);
    assert_eq!(text.parse(), Ok(value));
}
