//! MessagePack as Jackson's mapper for it writes it: each number in the fewest bytes that hold it.

use std::borrow::Cow;

use rmp::Marker;

use super::failure::{Failure, Outcome};
use super::format::{Format, Group};
use super::node::{Is, Key, MAX_DEPTH, Node, USUAL_ELEMENTS, USUAL_PROPERTIES, room, too_deep, wrong};
use crate::CodecError;
use crate::java::{BigDecimal, BigInteger};
use crate::memory;
use crate::signature::Signature;

codec! {
    /// MessagePack with the names of Java's classes, byte for byte as Redisson's `MsgPackJacksonCodec` writes
    /// it.
    ///
    /// The values are those of the `JsonJackson` codec: the types of [`java`](crate::java), with sorted
    /// properties and without nulls. The only difference is that bytes are binary.
    ///
    /// # Errors
    /// Decoding fails when the payload is not exactly one MessagePack value of this type, or nests deeper
    /// than 127 levels (a Java list takes two, one for its class). Extensions are refused. The error names
    /// the offset. It quotes no value, unless the type's own `Deserialize` does.
    ///
    /// Encoding fails for `java.time` and `Optional`, which Redisson's mapper refuses, and when the type's
    /// `Serialize` fails. As Jackson's mapper does, it also fails for a `BigInteger` beyond 64 bits, and for
    /// a `BigDecimal` that is neither an integer nor exactly what a double prints as. Other `BigDecimal`s
    /// lose their trailing zeros.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::{Codec, MsgPackJackson};
    ///
    /// assert_eq!(MsgPackJackson.encode(&"hello".to_owned())?, b"\xa5hello");
    /// let payload = MsgPackJackson.encode(&vec![1, 2])?;
    /// assert_eq!(payload, b"\x92\xb3java.util.ArrayList\x92\x01\x02");
    /// # Ok::<(), redisson_codec::CodecError>(())
    /// ```
    #[doc(alias = "MsgPackJacksonCodec")]
    MsgPackJackson MsgPack, BINARY
}

pub(super) struct MsgPack;

impl Format for MsgPack {
    const NAME: &'static str = "MessagePack";
    const SIGNATURE: Signature = Signature::MsgPackJackson;

    const BEHIND: &'static [u8] = b"";

    const MAX_PAYLOAD: usize = u32::MAX as usize;

    fn read(payload: &[u8]) -> Result<Node<'_>, CodecError> {
        let (mut input, mut node) = (Input { payload, at: 0 }, Node::NULL);
        input.value(0, &mut node)?;
        match payload.len() - input.at {
            0 => Ok(node),
            more => Err(wrong(input.at, "the end", &format!("{more} bytes more"))),
        }
    }

    #[inline]
    fn null(out: &mut Vec<u8>) {
        out.push(0xc0);
    }

    #[inline]
    fn boolean(out: &mut Vec<u8>, value: bool) {
        out.push(0xc2 | u8::from(value));
    }

    #[inline]
    fn integer(out: &mut Vec<u8>, value: i64) {
        match value {
            -0x20..0x80 => out.push(value as u8),
            0x80..0x100 => number(out, 0xcc, (value as u8).to_be_bytes()),
            0x100..0x1_0000 => number(out, 0xcd, (value as u16).to_be_bytes()),
            0x1_0000..0x1_0000_0000 => number(out, 0xce, (value as u32).to_be_bytes()),
            0x1_0000_0000.. => number(out, 0xcf, value.to_be_bytes()),
            -0x80..-0x20 => number(out, 0xd0, (value as i8).to_be_bytes()),
            -0x8000..-0x80 => number(out, 0xd1, (value as i16).to_be_bytes()),
            -0x8000_0000..-0x8000 => number(out, 0xd2, (value as i32).to_be_bytes()),
            _ => number(out, 0xd3, value.to_be_bytes()),
        }
    }

    fn big(out: &mut Vec<u8>, value: &BigInteger) -> Outcome<()> {
        match value.to_i128().is_some_and(|value| integer(value, out)) {
            true => Ok(()),
            false => Err(Failure::new("a BigInteger beyond 64 bits has no MessagePack form")),
        }
    }

    /// Only JSON is read into these; a double is what Jackson takes it for.
    fn number(out: &mut Vec<u8>, value: &str) {
        Self::double(out, value.parse().unwrap_or(f64::NAN));
    }

    fn decimal(out: &mut Vec<u8>, value: &BigDecimal) -> Outcome<()> {
        decimal(value, out)
    }

    fn float(out: &mut Vec<u8>, value: f32) {
        number(out, 0xca, value.to_be_bytes());
    }

    #[inline]
    fn double(out: &mut Vec<u8>, value: f64) {
        number(out, 0xcb, value.to_be_bytes());
    }

    #[inline]
    fn text(out: &mut Vec<u8>, value: &str) {
        match value.len() {
            length @ ..0x20 => out.push(0xa0 | length as u8),
            length @ 0x20..0x100 => out.extend_from_slice(&[0xd9, length as u8]),
            length => long(out, 0xda, length),
        }
        out.extend_from_slice(value.as_bytes());
    }

    fn bytes(out: &mut Vec<u8>, value: &[u8]) {
        match value.len() {
            length @ ..0x100 => out.extend_from_slice(&[0xc4, length as u8]),
            length => long(out, 0xc5, length),
        }
        out.extend_from_slice(value);
    }

    fn number_key(out: &mut Vec<u8>, key: i64) {
        Self::text(out, &key.to_string());
    }

    #[inline]
    fn header(out: &mut Vec<u8>, group: Group, count: usize) {
        let (short, other) = match group {
            Group::Object => (0x80, 0xde),
            Group::List | Group::Bare => (0x90, 0xdc),
        };
        match count {
            ..0x10 => out.push(short | count as u8),
            _ => long(out, other, count),
        }
    }
}

/// Writes a number behind its head.
#[inline]
fn number<const N: usize>(out: &mut Vec<u8>, head: u8, number: [u8; N]) {
    out.push(head);
    out.extend_from_slice(&number);
}

/// The head and the length of what is long. Behind the head for two bytes is that for four, and a payload
/// with a longer length is refused.
#[cold]
fn long(out: &mut Vec<u8>, head: u8, length: usize) {
    match u16::try_from(length) {
        Ok(length) => number(out, head, length.to_be_bytes()),
        Err(_) => number(out, head + 1, (length as u32).to_be_bytes()),
    }
}

/// Whether it was written: there are integers of 64 bits only.
fn integer(value: i128, out: &mut Vec<u8>) -> bool {
    match (i64::try_from(value), u64::try_from(value)) {
        (Ok(value), _) => MsgPack::integer(out, value),
        (_, Ok(value)) => number(out, 0xcf, value.to_be_bytes()),
        _ => return false,
    }
    true
}

/// There are no decimals, so that only those are written which an integer or a double can stand for, as
/// Jackson does.
fn decimal(value: &BigDecimal, out: &mut Vec<u8>) -> Outcome<()> {
    let lost =
        || Failure::new("a BigDecimal that is neither an integer nor a double has no MessagePack form");
    if whole(value).is_some_and(|whole| integer(whole, out)) {
        return Ok(());
    }
    if let Some(double) = exact(value) {
        MsgPack::double(out, double);
        return Ok(());
    }
    let double: f64 = value.to_string().parse().map_err(|_| lost())?;
    if !double.is_finite() || !same(value, double) {
        return Err(lost());
    }
    MsgPack::double(out, double);
    Ok(())
}

/// The decimal without its fraction, if that is zeros only.
fn whole(value: &BigDecimal) -> Option<i128> {
    let mut unscaled = value.unscaled().to_i128()?;
    // Most are short, and to divide those takes a fraction of the time.
    let power = u32::try_from(value.scale()).ok().and_then(|scale| 10i64.checked_pow(scale));
    if let (Ok(short), Some(power)) = (i64::try_from(unscaled), power) {
        return (short % power == 0).then(|| (short / power).into());
    }
    if unscaled == 0 {
        return Some(0);
    }
    for _ in 0..value.scale().max(0) {
        if unscaled % 10 != 0 {
            return None;
        }
        unscaled /= 10;
    }
    let zeros = value.scale().min(0).unsigned_abs();
    unscaled.checked_mul(10i128.checked_pow(zeros)?)
}

/// The double that prints as these digits, if they are few: then it is a quotient of two exact ones.
fn exact(value: &BigDecimal) -> Option<f64> {
    const POWERS: [f64; 16] =
        [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    let power = POWERS.get(usize::try_from(value.scale()).ok()?)?;
    let unscaled = i64::try_from(value.unscaled().to_i128()?).ok()?;
    (unscaled.unsigned_abs() < 10u64.pow(15)).then(|| unscaled as f64 / power)
}

/// Whether the double prints as these digits, whatever zeros follow them.
fn same(value: &BigDecimal, double: f64) -> bool {
    let digits = |decimal: &BigDecimal| {
        let digits = decimal.unscaled().to_string();
        let short = digits.trim_end_matches('0');
        (short.to_owned(), i64::from(decimal.scale()) - (digits.len() - short.len()) as i64)
    };
    crate::number::java_text(double).parse().is_ok_and(|printed| digits(&printed) == digits(value))
}

struct Input<'a> {
    payload: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    /// A short text. Nothing is read of anything else, nor of what is broken.
    #[inline]
    fn short_text(&mut self) -> Option<&'a str> {
        let (start, length) = match self.payload.get(self.at..)? {
            [head @ 0xa0..0xc0, ..] => (self.at + 1, head & 0x1f),
            [0xd9, length, ..] => (self.at + 2, *length),
            _ => return None,
        };
        let end = start + usize::from(length);
        let text = str::from_utf8(self.payload.get(start..end)?).ok()?;
        self.at = end;
        Some(text)
    }

    /// The values that are most frequent, without looking at all that others may be.
    #[inline]
    fn frequent(&mut self) -> Option<Is<'a>> {
        if let Some(text) = self.short_text() {
            return Some(Is::Text(Cow::Borrowed(text)));
        }
        let (is, length) = match self.payload.get(self.at..)? {
            [number @ (..0x80 | 0xe0..), ..] => (Is::Int((*number as i8).into()), 1),
            [0xc2, ..] => (Is::Bool(false), 1),
            [0xc3, ..] => (Is::Bool(true), 1),
            [0xcb, rest @ ..] => (Is::Double(f64::from_be_bytes(*rest.first_chunk()?)), 9),
            _ => return None,
        };
        self.at += length;
        Some(is)
    }

    /// Reads into a node where it is to stay.
    fn value(&mut self, depth: usize, node: &mut Node<'a>) -> Result<(), CodecError> {
        node.at = Node::offset(self.at);
        match self.frequent() {
            Some(is) => node.set(is),
            None => node.set(self.other(depth)?),
        }
        Ok(())
    }

    fn other(&mut self, depth: usize) -> Result<Is<'a>, CodecError> {
        let start = self.at;
        let marker = Marker::from_u8(self.number(1)? as u8);
        Ok(match marker {
            Marker::Null => Is::Null,
            Marker::True => Is::Bool(true),
            Marker::False => Is::Bool(false),
            Marker::FixPos(value) => Is::Int(value.into()),
            Marker::FixNeg(value) => Is::Int(value.into()),
            Marker::U8 => Is::Int(self.number(1)? as i64),
            Marker::U16 => Is::Int(self.number(2)? as i64),
            Marker::U32 => Is::Int(self.number(4)? as i64),
            Marker::U64 => {
                let value = self.number(8)?;
                i64::try_from(value).map_or_else(|_| Is::Big(i128::from(value).into()), Is::Int)
            }
            Marker::I8 => Is::Int((self.number(1)? as i8).into()),
            Marker::I16 => Is::Int((self.number(2)? as i16).into()),
            Marker::I32 => Is::Int((self.number(4)? as i32).into()),
            Marker::I64 => Is::Int(self.number(8)? as i64),
            Marker::F32 => Is::Float(f32::from_bits(self.number(4)? as u32)),
            Marker::F64 => Is::Double(f64::from_bits(self.number(8)?)),
            Marker::FixStr(_) | Marker::Str8 | Marker::Str16 | Marker::Str32 => {
                Is::Text(self.text(start, marker)?)
            }
            Marker::Bin8 | Marker::Bin16 | Marker::Bin32 => {
                let length = self.number(1 << (marker.to_u8() - Marker::Bin8.to_u8()))?;
                Is::Bytes(Cow::Borrowed(self.take(length)?))
            }
            Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => {
                let length = self.length(marker)?;
                Is::Array(self.array(start, length, depth)?)
            }
            Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => {
                let length = self.length(marker)?;
                Is::Object(self.object(start, length, depth)?)
            }
            _ => return Err(wrong(start, "a value", "an extension or the reserved byte 0xc1")),
        })
    }

    /// A big-endian number of this many bytes.
    #[inline]
    fn number(&mut self, width: usize) -> Result<u64, CodecError> {
        Ok(match *self.take(width as u64)? {
            [a] => a.into(),
            [a, b] => u16::from_be_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_be_bytes([a, b, c, d]).into(),
            ref bytes => bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
        })
    }

    #[inline]
    fn take(&mut self, length: u64) -> Result<&'a [u8], CodecError> {
        let held = self.payload.len() - self.at;
        if length > held as u64 {
            return Err(wrong(self.at, &format!("{length} bytes"), &format!("{held} before the end")));
        }
        let bytes = &self.payload[self.at..self.at + length as usize];
        self.at += length as usize;
        Ok(bytes)
    }

    /// How many elements or entries follow.
    fn length(&mut self, marker: Marker) -> Result<u64, CodecError> {
        match marker {
            Marker::FixArray(length) | Marker::FixMap(length) => Ok(length.into()),
            Marker::Array16 | Marker::Map16 => self.number(2),
            _ => self.number(4),
        }
    }

    fn text(&mut self, start: usize, marker: Marker) -> Result<Cow<'a, str>, CodecError> {
        let length = match marker {
            Marker::FixStr(length) => length.into(),
            Marker::Str8 => self.number(1)?,
            Marker::Str16 => self.number(2)?,
            Marker::Str32 => self.number(4)?,
            _ => return Err(wrong(start, "the name of a property", "something else")),
        };
        let begin = self.at;
        let bytes = self.take(length)?;
        str::from_utf8(bytes)
            .map(Cow::Borrowed)
            .map_err(|error| wrong(begin + error.valid_up_to(), "UTF-8", "another byte"))
    }

    fn array(&mut self, start: usize, length: u64, depth: usize) -> Result<Vec<Node<'a>>, CodecError> {
        if depth >= MAX_DEPTH {
            return Err(too_deep(start));
        }
        // Not with room for as many as are announced: those may not be there.
        let mut values = memory::usual(length.min(USUAL_ELEMENTS as u64) as usize);
        for _ in 0..length {
            let at = values.len();
            room(&mut values, start)?;
            values.push(Node::NULL);
            self.value(depth + 1, &mut values[at])?;
        }
        Ok(values)
    }

    fn object(
        &mut self,
        start: usize,
        length: u64,
        depth: usize,
    ) -> Result<Vec<(Key<'a>, Node<'a>)>, CodecError> {
        if depth >= MAX_DEPTH {
            return Err(too_deep(start));
        }
        let mut entries = memory::usual(length.min(2 * USUAL_PROPERTIES as u64) as usize);
        for _ in 0..length {
            let (start, at) = (self.at, entries.len());
            room(&mut entries, start)?;
            entries.push((Key::NONE, Node::NULL));
            let (key, node) = &mut entries[at];
            match self.short_text() {
                Some(text) => key.set(Cow::Borrowed(text)),
                None => {
                    let marker = Marker::from_u8(self.number(1)? as u8);
                    key.set(self.text(start, marker)?);
                }
            }
            self.value(depth + 1, node)?;
        }
        Ok(entries)
    }
}
