//! [`Long`], [`Int`] and [`Double`]: numbers as the decimal text that Java's `toString` gives.

use std::fmt::Display;
use std::str::FromStr;

use super::{Codec, CodecError};
use crate::signature::of_another_codec;

/// An `i64` as decimal text, as Redisson's `LongCodec` writes a `Long`: `-1` is the two bytes `2d 31`.
///
/// # Errors
/// Decoding fails unless the payload is an optional sign and ASCII digits, without spaces, in the range of an
/// `i64`, as `Long.valueOf` requires. Encoding does not fail.
///
/// # Examples
/// ```
/// use redisson_codec::{Codec, Long};
///
/// assert_eq!(Long.encode(&5_000_000_000)?, b"5000000000");
/// assert_eq!(Long.decode(b"-1")?, -1);
/// let error = Long.decode(b"12x").unwrap_err();
/// assert!(error.to_string().ends_with("found the byte 0x78 at offset 2"));
/// # Ok::<(), redisson_codec::CodecError>(())
/// ```
#[doc(alias = "LongCodec")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Long;

impl Codec<i64> for Long {
    fn encode(&self, value: &i64) -> Result<Vec<u8>, CodecError> {
        Ok(value.to_string().into_bytes())
    }

    fn decode(&self, payload: &[u8]) -> Result<i64, CodecError> {
        integer(payload, i64::MIN, i64::MAX)
    }
}

/// An `i32` as decimal text, as Redisson's `IntegerCodec` writes an `Integer`: `-1` is the two bytes `2d 31`.
///
/// # Errors
/// Decoding fails unless the payload is an optional sign and ASCII digits, without spaces, in the range of an
/// `i32`, as `Integer.valueOf` requires. Encoding does not fail.
///
/// # Examples
/// ```
/// use redisson_codec::{Codec, Int};
///
/// assert_eq!(Int.encode(&-1)?, b"-1");
/// assert_eq!(Int.decode(b"+7")?, 7);
/// assert!(Int.decode(b"5000000000").is_err());
/// # Ok::<(), redisson_codec::CodecError>(())
/// ```
#[doc(alias = "IntegerCodec")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Int;

impl Codec<i32> for Int {
    fn encode(&self, value: &i32) -> Result<Vec<u8>, CodecError> {
        Ok(value.to_string().into_bytes())
    }

    fn decode(&self, payload: &[u8]) -> Result<i32, CodecError> {
        integer(payload, i32::MIN, i32::MAX)
    }
}

// Java also accepts the digits of other scripts. No Redisson codec writes them, so they are refused like any
// other text.
fn integer<T: FromStr + Display>(payload: &[u8], min: T, max: T) -> Result<T, CodecError> {
    if let Ok(text) = str::from_utf8(payload)
        && let Ok(value) = text.parse()
    {
        return Ok(value);
    }
    let sign = usize::from(payload.starts_with(b"-") || payload.starts_with(b"+"));
    let found = match first_not(payload, sign, |byte| byte.is_ascii_digit()) {
        Some(byte) => byte,
        None if payload.len() == sign => "no digit".to_owned(),
        None => format!("{} digits, out of that range", payload.len() - sign),
    };
    let other = of_another_codec(payload, &[]);
    Err(CodecError::new(format!(
        "expected an integer from {min} to {max} as decimal text, found {found}{other}"
    )))
}

/// An `f64` as decimal text, as Redisson's `DoubleCodec` writes a `Double`: `1.5`, `-1.0E300`, `NaN`,
/// `-Infinity`.
///
/// Encodes as `Double.toString` of JDK 19 and later. Older JDKs print some numbers with more digits than
/// necessary, such as JDK 17 with `1.9999999999999998E23` for `2.0E23`. The bytes differ, but either side
/// reads the same number.
///
/// # Errors
/// Decoding fails unless the payload is a decimal number, with or without a fraction or an exponent, or `NaN`
/// or `Infinity`. A sign is accepted, and so are spaces and control characters around the number, which
/// `Double.valueOf` trims. Java's hexadecimal numbers and its suffixes (`1.5f`) are refused: `toString` never
/// prints them. Encoding does not fail.
///
/// # Examples
/// ```
/// use redisson_codec::{Codec, Double};
///
/// assert_eq!(Double.encode(&-1e300)?, b"-1.0E300");
/// assert_eq!(Double.decode(b"51.125")?, 51.125);
/// assert!(Double.decode(b"1,5").is_err());
/// # Ok::<(), redisson_codec::CodecError>(())
/// ```
#[doc(alias = "DoubleCodec")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Double;

impl Codec<f64> for Double {
    fn encode(&self, value: &f64) -> Result<Vec<u8>, CodecError> {
        Ok(java_text(*value).into_bytes())
    }

    fn decode(&self, payload: &[u8]) -> Result<f64, CodecError> {
        str::from_utf8(payload).ok().and_then(java_value).ok_or_else(|| {
            let known = |byte: u8| byte <= b' ' || byte.is_ascii_digit() || b"+-.eE".contains(&byte);
            let found = first_not(payload, 0, known)
                .unwrap_or_else(|| format!("{} bytes that are no such number", payload.len()));
            let other = of_another_codec(payload, &[]);
            CodecError::new(format!(
                "expected a number as Java prints a double (1.5, -1.0E300, NaN, Infinity), found {found}{other}"
            ))
        })
    }
}

/// `Double.toString` and `Float.toString`, as of JDK 19. Any decimal with at most this many digits is the
/// only one of its length that gives its number back.
macro_rules! java_text {
    ($name:ident, $put:ident, $kind:ident, $digits:literal) => {
        pub(super) fn $name(value: $kind) -> String {
            let mut text = Vec::new();
            $put(&mut text, value);
            String::from_utf8(text).unwrap_or_default()
        }

        /// Writes it to the end of a text.
        pub(super) fn $put(out: &mut Vec<u8>, value: $kind) {
            if value.is_nan() {
                return out.extend_from_slice(b"NaN");
            }
            if value.is_infinite() {
                return out.extend_from_slice(if value > 0.0 { b"Infinity" } else { b"-Infinity" });
            }
            let plain = value == 0.0 || (1e-3..1e7).contains(&value.abs());
            // What is written down by people has few digits, which can be tried: of whole numbers that are
            // exact, the quotient is the number that the text denotes.
            if plain {
                for (decimals, power) in (1..).zip([1e1, 1e2, 1e3, 1e4, 1e5, 1e6]) {
                    let unscaled = (value * power + $kind::copysign(0.5, value)) as i64;
                    let again = unscaled as $kind / power;
                    if again.to_bits() == value.to_bits() && unscaled.abs() < 10i64.pow($digits) {
                        return put_digits(out, unscaled, decimals);
                    }
                }
            }
            let shortest = if plain { format!("{value:?}") } else { format!("{value:E}") };
            // Java (since 19) and Rust both take the fewest digits that give the value back, but not always
            // the same ones: Java prints two at least, the nearest such (4.9E-324, not 5E-324), and of two
            // equally near ones the even (1.1258999068426242E15 for 2^50 + 0.25, where Rust rounds up to …3).
            // The exact value rounded to as many digits is both. Only at a power of two, where the numbers
            // below are closer, can that be another number's text.
            let decimals = match shortest.split_once('.') {
                Some((_, fraction)) => fraction.bytes().take_while(u8::is_ascii_digit).count(),
                None => 1,
            };
            let nearest = if plain { format!("{value:.decimals$}") } else { format!("{value:.decimals$E}") };
            let text = if nearest.parse() == Ok(value) { nearest } else { shortest };
            out.extend_from_slice(text.as_bytes());
        }
    };
}

java_text!(java_text, put_java_text, f64, 15);
#[cfg(feature = "_jackson")]
java_text!(java_float, put_java_float, f32, 6);

/// All numbers of two digits.
static PAIRS: [[u8; 2]; 100] = pairs();

const fn pairs() -> [[u8; 2]; 100] {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + number as u8 / 10, b'0' + number as u8 % 10];
        number += 1;
    }
    pairs
}

/// Writes a number with this many decimals, at most 18.
pub(super) fn put_digits(out: &mut Vec<u8>, unscaled: i64, decimals: usize) {
    // With room for a point and a sign.
    let mut text = [b'0'; 24];
    let (mut at, mut left) = (text.len(), unscaled.unsigned_abs());
    while left >= 10 {
        at -= 2;
        text[at..at + 2].copy_from_slice(&PAIRS[(left % 100) as usize]);
        left /= 100;
    }
    if left > 0 {
        at -= 1;
        text[at] = b'0' + left as u8;
    }
    // At least one digit is in front of the point.
    let point = text.len() - decimals;
    at = at.min(point - 1);
    if decimals > 0 {
        text.copy_within(at..point, at - 1);
        text[point - 1] = b'.';
        at -= 1;
    }
    if unscaled < 0 {
        at -= 1;
        text[at] = b'-';
    }
    out.extend_from_slice(&text[at..]);
}

fn java_value(text: &str) -> Option<f64> {
    // `String.trim`, which is not Unicode white space.
    let text = text.trim_matches(|c| c <= ' ');
    let magnitude = match text.strip_prefix(['+', '-']).unwrap_or(text) {
        "NaN" => f64::NAN,
        "Infinity" => f64::INFINITY,
        // Rust would also read `inf` and `nan`.
        number if number.starts_with(|c: char| c.is_ascii_digit() || c == '.') => number.parse().ok()?,
        _ => return None,
    };
    Some(if text.starts_with('-') { -magnitude } else { magnitude })
}

/// The first byte from an offset on that is not of a kind. One byte and its offset do not disclose the
/// payload.
fn first_not(payload: &[u8], from: usize, kind: impl Fn(u8) -> bool) -> Option<String> {
    let at = from + payload[from..].iter().position(|&byte| !kind(byte))?;
    Some(format!("the byte 0x{:02x} at offset {at}", payload[at]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn digits_with_a_point(number: i64, few in -999_i64..999, decimals in 0_usize..=18) {
            for unscaled in [number, few] {
                let mut out = Vec::new();
                put_digits(&mut out, unscaled, decimals);
                let digits = format!("{:0>1$}", unscaled.unsigned_abs(), decimals + 1);
                let (front, behind) = digits.split_at(digits.len() - decimals);
                let (sign, point) = (if unscaled < 0 { "-" } else { "" }, if decimals > 0 { "." } else { "" });
                prop_assert_eq!(String::from_utf8(out).unwrap(), format!("{sign}{front}{point}{behind}"));
            }
        }
    }
}
