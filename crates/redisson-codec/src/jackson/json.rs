//! JSON as Jackson writes it.
//!
//! `serde_json` is not used: it does not keep the digits of a number, and reports no offsets.

mod read;

use base64::Engine;
use read::Input;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::base64::MIME_NO_LINEFEEDS;
use super::failure::{Failure, Outcome};
use super::format::{Format, Group, OpenGroup};
use super::mapper::{Mapper, WithMapper};
use super::node::{MAX_DIGITS, Node};
use crate::java::{BigDecimal, BigInteger};
use crate::number::{java_float, java_text, put_digits, put_java_float, put_java_text};
use crate::signature::Signature;
use crate::{AnyClass, Codec, CodecError};

codec! {
    /// JSON with the names of Java's classes, byte for byte as Redisson's `JsonJacksonCodec` writes it.
    ///
    /// The module [`java`](crate::java) lists the types; a `Value` holds any payload. Properties are sorted.
    /// Nulls are left out of objects and maps, and read as `None`. Properties that the type does not have are
    /// skipped.
    ///
    /// Decoding accepts a payload without class names, but not with other class names. Only a list or map may
    /// have any class of Java's library. See [`with_any_class`](Self::with_any_class).
    ///
    /// # Errors
    /// Decoding fails when the payload is not exactly one JSON value of this type, nests deeper than 127
    /// levels (a Java list takes two, one for its class), or has a number of more than 1000 digits or half of
    /// a surrogate pair. The error names the offset. It quotes no value, unless the type's own `Deserialize`
    /// does.
    ///
    /// Encoding fails for `java.time` and `Optional`, which Redisson's mapper refuses, and when the type's
    /// `Serialize` fails.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::{Codec, JsonJackson};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize, Debug, PartialEq)]
    /// #[serde(rename = "com.acme.Order", rename_all = "camelCase")]
    /// struct Order {
    ///     order_id: i64,
    ///     coupon_id: Option<i64>,
    ///     tags: Vec<String>,
    ///     note: Option<String>,
    /// }
    ///
    /// let order = Order { order_id: 7, coupon_id: Some(1), tags: vec!["new".into()], note: None };
    /// let payload = JsonJackson.encode(&order)?;
    /// assert_eq!(
    ///     std::str::from_utf8(&payload),
    ///     Ok(concat!(
    ///         r#"{"@class":"com.acme.Order","couponId":["java.lang.Long",1],"orderId":7,"#,
    ///         r#""tags":["java.util.ArrayList",["new"]]}"#,
    ///     )),
    /// );
    /// assert_eq!(order, JsonJackson.decode(&payload)?);
    /// # Ok::<(), redisson_codec::CodecError>(())
    /// ```
    #[doc(alias = "JsonJacksonCodec")]
    JsonJackson Json, REDISSON
}

impl JsonJackson {
    /// Returns a codec for the payloads of an application's own `ObjectMapper`: `new
    /// JsonJacksonCodec(mapper)` or `new TypedJsonJacksonCodec(type, mapper)`. [`Mapper`] lists the settings.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::{Codec, JsonJackson, Mapper};
    ///
    /// let codec = JsonJackson.with_mapper(Mapper::new().wrapper_array());
    /// assert_eq!(codec.encode(&5i64)?, b"5");
    /// # Ok::<(), redisson_codec::CodecError>(())
    /// ```
    #[must_use]
    pub fn with_mapper(self, mapper: Mapper) -> WithMapper<Self> {
        WithMapper::new(mapper)
    }
}

impl<T: Serialize + DeserializeOwned + 'static> Codec<T> for WithMapper<JsonJackson> {
    fn encode(&self, value: &T) -> Result<Vec<u8>, CodecError> {
        super::encode::<Json, T>(value, Some(&self.mapper))
    }

    fn decode(&self, payload: &[u8]) -> Result<T, CodecError> {
        super::decode::<Json, T>(payload, false, &self.mapper)
    }
}

impl<T: Serialize + DeserializeOwned + 'static> Codec<T> for AnyClass<WithMapper<JsonJackson>> {
    fn encode(&self, value: &T) -> Result<Vec<u8>, CodecError> {
        self.0.encode(value)
    }

    fn decode(&self, payload: &[u8]) -> Result<T, CodecError> {
        super::decode::<Json, T>(payload, true, &self.0.mapper)
    }
}

pub(super) struct Json;

impl Format for Json {
    const NAME: &'static str = "JSON";
    const SIGNATURE: Signature = Signature::JsonJackson;

    const BEHIND: &'static [u8] = b"]";

    fn read(payload: &[u8]) -> Result<Node<'_>, CodecError> {
        Input::payload(payload)
    }

    #[inline]
    fn null(out: &mut Vec<u8>) {
        out.extend_from_slice(b"null");
    }

    #[inline]
    fn boolean(out: &mut Vec<u8>, value: bool) {
        out.extend_from_slice(if value { b"true" } else { b"false" });
    }

    #[inline]
    fn integer(out: &mut Vec<u8>, value: i64) {
        put_digits(out, value, 0);
    }

    fn big(out: &mut Vec<u8>, value: &BigInteger) -> Outcome<()> {
        out.extend(readable(value.to_string())?.bytes());
        Ok(())
    }

    fn number(out: &mut Vec<u8>, value: &str) {
        out.extend_from_slice(value.as_bytes());
    }

    fn decimal(out: &mut Vec<u8>, value: &BigDecimal) -> Outcome<()> {
        plain(value, out)
    }

    fn float(out: &mut Vec<u8>, value: f32) {
        match value.is_finite() {
            true => put_java_float(out, value),
            // Not JSON, and so text.
            false => Self::text(out, &java_float(value)),
        }
    }

    #[inline]
    fn double(out: &mut Vec<u8>, value: f64) {
        match value.is_finite() {
            true => put_java_text(out, value),
            false => Self::text(out, &java_text(value)),
        }
    }

    /// Only what JSON demands is escaped, and what is beyond U+FFFF, which are two `char`s in Java.
    #[inline]
    fn text(out: &mut Vec<u8>, value: &str) {
        out.push(b'"');
        match first_escaped(value.as_bytes()) {
            None => out.extend_from_slice(value.as_bytes()),
            Some(at) => escaped(out, value, at),
        }
        out.push(b'"');
    }

    fn bytes(out: &mut Vec<u8>, value: &[u8]) {
        Self::text(out, &MIME_NO_LINEFEEDS.encode(value));
    }

    #[inline]
    fn class(out: &mut Vec<u8>, class: &str) {
        out.push(b'[');
        Self::text(out, class);
        out.push(b',');
    }

    #[inline]
    fn key(out: &mut Vec<u8>, key: &str) {
        out.push(b',');
        Self::text(out, key);
        out.push(b':');
    }

    fn number_key(out: &mut Vec<u8>, key: i64) {
        Self::key(out, &key.to_string());
    }

    #[inline]
    fn next(out: &mut Vec<u8>) {
        out.push(b',');
    }

    /// Nothing: a comma is in front of everything, and in the end the first of them becomes the bracket. So
    /// properties can be put into another order.
    #[inline]
    fn header(_: &mut Vec<u8>, _: Group, _: usize) {}

    #[inline]
    fn close(out: &mut Vec<u8>, open: OpenGroup, _: usize) {
        let (left, right) = match open.group {
            Group::Object => (b'{', b'}'),
            Group::List | Group::Bare => (b'[', b']'),
        };
        match out.get_mut(open.header.start) {
            Some(comma) => *comma = left,
            None => out.push(left),
        }
        out.push(right);
    }
}

/// A text of which the first character that is not written as it is is here.
#[cold]
fn escaped(out: &mut Vec<u8>, text: &str, first: usize) {
    let (mut rest, mut next) = (text, Some(first));
    while let Some(at) = next {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        let mut from_here = rest[at..].chars();
        from_here.next().into_iter().for_each(|c| escape(out, c));
        rest = from_here.as_str();
        next = first_escaped(rest.as_bytes());
    }
    out.extend_from_slice(rest.as_bytes());
}

/// Where the first character is that is not written as it is. Eight bytes are looked at at once.
#[inline]
fn first_escaped(text: &[u8]) -> Option<usize> {
    let (words, rest) = text.as_chunks();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let long = word & word << 1 & word << 2 & word << 3 & (u64::MAX / 0xff) << 7;
        let escaped = read::special(word) | long;
        if escaped != 0 {
            return Some(8 * at + escaped.trailing_zeros() as usize / 8);
        }
    }
    rest.iter().position(|byte| is_escaped(*byte)).map(|at| 8 * words.len() + at)
}

/// Whether a character that begins with this byte is not written as it is.
fn is_escaped(byte: u8) -> bool {
    matches!(byte, ..b' ' | b'"' | b'\\' | 0xf0..)
}

fn escape(out: &mut Vec<u8>, c: char) {
    let short = match c {
        '"' | '\\' => c as u8,
        '\n' => b'n',
        '\r' => b'r',
        '\t' => b't',
        '\u{8}' => b'b',
        '\u{c}' => b'f',
        _ => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.extend(format!("\\u{unit:04X}").bytes());
            }
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Without an exponent, as Redisson has it; Jackson stops at the same scales.
fn plain(value: &BigDecimal, out: &mut Vec<u8>) -> Outcome<()> {
    let scale = value.scale();
    if !(-9999..=9999).contains(&scale) {
        return Err(Failure::new(format!(
            "a BigDecimal of scale {scale} has no JSON form: Jackson writes those from -9999 to 9999"
        )));
    }
    // Most are short.
    if let (0..=18, Some(Ok(unscaled))) = (scale, value.unscaled().to_i128().map(i64::try_from)) {
        put_digits(out, unscaled, scale as usize);
        return Ok(());
    }
    let digits = value.unscaled().to_string();
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", &digits[..]),
    };
    if scale <= 0 {
        let zeros = if digits == "0" { 0 } else { scale.unsigned_abs() as usize };
        out.extend(readable(format!("{sign}{digits}{}", "0".repeat(zeros)))?.bytes());
        return Ok(());
    }
    // At least one digit is in front of the point.
    let scale = scale as usize;
    let padded = format!("{}{digits}", "0".repeat((scale + 1).saturating_sub(digits.len())));
    let (front, behind) = padded.split_at(padded.len() - scale);
    out.extend(readable(format!("{sign}{front}.{behind}"))?.bytes());
    Ok(())
}

/// Nothing that Jackson, and this, would not read again.
fn readable(number: String) -> Outcome<String> {
    match number.len() {
        ..=MAX_DIGITS => Ok(number),
        length => Err(Failure::new(format!(
            "a number of {length} characters is more than the {MAX_DIGITS} that Jackson reads"
        ))),
    }
}
