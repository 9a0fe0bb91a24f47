//! CBOR as Jackson writes it.
//!
//! Objects, and arrays that have a class in front, are of indefinite length; arrays without say how long they
//! are.

use std::borrow::Cow;
use std::convert::Infallible;

use minicbor::data::{IanaTag, Type};
use minicbor::decode::Error;
use minicbor::{Decoder, Encoder};

use super::failure::Outcome;
use super::format::{Format, Group, OpenGroup};
use super::node::{
    Is, Key, MAX_BIG_BYTES, MAX_DEPTH, Node, USUAL_ELEMENTS, USUAL_PROPERTIES, room, too_deep, wrong,
};
use crate::CodecError;
use crate::java::{BigDecimal, BigInteger};
use crate::memory;
use crate::signature::Signature;

codec! {
    /// CBOR with the names of Java's classes, byte for byte as Redisson's `CborJacksonCodec` writes it.
    ///
    /// The values are those of the `JsonJackson` codec: the types of [`java`](crate::java), with sorted
    /// properties and without nulls. There are three differences: bytes are binary, a `BigDecimal` keeps its
    /// scale, and the keys of a map from `Integer` or `Long` are numbers.
    ///
    /// # Errors
    /// Decoding fails when the payload is not exactly one CBOR value of this type, nests deeper than 127
    /// levels (a Java list takes two, one for its class), or has a number of more than 1000 digits. Half
    /// floats, simple values, and tags other than those of numbers are refused. The error names the offset.
    /// It quotes no value, unless the type's own `Deserialize` does.
    ///
    /// Encoding fails for `java.time` and `Optional`, which Redisson's mapper refuses, and when the type's
    /// `Serialize` fails.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::{CborJackson, Codec};
    ///
    /// assert_eq!(CborJackson.encode(&"hello".to_owned())?, b"\x65hello");
    /// let payload = CborJackson.encode(&vec![1, 2])?;
    /// assert_eq!(payload, b"\x9f\x73java.util.ArrayList\x9f\x01\x02\xff\xff");
    /// # Ok::<(), redisson_codec::CodecError>(())
    /// ```
    #[doc(alias = "CborJacksonCodec")]
    CborJackson Cbor, BINARY
}

pub(super) struct Cbor;

/// Of UTF-16, in one piece of text; longer ones are written in pieces.
const MAX_PIECE: usize = 3996;

/// Of what is of indefinite length.
const END: &[u8] = &[0xff];

impl Format for Cbor {
    const NAME: &'static str = "CBOR";
    const SIGNATURE: Signature = Signature::CborJackson;

    const BEHIND: &'static [u8] = END;

    fn read(payload: &[u8]) -> Result<Node<'_>, CodecError> {
        let (mut input, mut node) = (Input(Decoder::new(payload)), Node::NULL);
        input.value(0, &mut node)?;
        match payload.len() - input.0.position() {
            0 => Ok(node),
            more => Err(wrong(input.0.position(), "the end", &format!("{more} bytes more"))),
        }
    }

    #[inline]
    fn null(out: &mut Vec<u8>) {
        out.push(0xf6);
    }

    #[inline]
    fn boolean(out: &mut Vec<u8>, value: bool) {
        out.push(0xf4 | u8::from(value));
    }

    #[inline]
    fn integer(out: &mut Vec<u8>, value: i64) {
        match value {
            0.. => head(out, 0, value as u64),
            _ => head(out, 0x20, !value as u64),
        }
    }

    fn big(out: &mut Vec<u8>, value: &BigInteger) -> Outcome<()> {
        big(value, out);
        Ok(())
    }

    /// Only JSON is read into these; a double is what Jackson takes it for.
    fn number(out: &mut Vec<u8>, value: &str) {
        Self::double(out, value.parse().unwrap_or(f64::NAN));
    }

    fn decimal(out: &mut Vec<u8>, value: &BigDecimal) -> Outcome<()> {
        decimal(value, out);
        Ok(())
    }

    fn float(out: &mut Vec<u8>, value: f32) {
        sure(Encoder::new(out).f32(value));
    }

    #[inline]
    fn double(out: &mut Vec<u8>, value: f64) {
        out.push(0xfb);
        out.extend_from_slice(&value.to_be_bytes());
    }

    #[inline]
    fn text(out: &mut Vec<u8>, value: &str) {
        if value.len() > MAX_PIECE {
            return long_text(value, &mut Encoder::new(out));
        }
        head(out, TEXT, value.len() as u64);
        out.extend_from_slice(value.as_bytes());
    }

    fn bytes(out: &mut Vec<u8>, value: &[u8]) {
        sure(Encoder::new(out).bytes(value));
    }

    fn number_key(out: &mut Vec<u8>, key: i64) {
        Self::integer(out, key);
    }

    #[inline]
    fn header(out: &mut Vec<u8>, group: Group, count: usize) {
        match group {
            Group::Object => out.push(0xbf),
            Group::List => out.push(0x9f),
            Group::Bare => head(out, 0x80, count as u64),
        }
    }

    #[inline]
    fn close(out: &mut Vec<u8>, open: OpenGroup, count: usize) {
        match open.group {
            Group::Object | Group::List => out.extend_from_slice(END),
            Group::Bare => open.correct::<Self>(out, count),
        }
    }
}

/// Writing into a `Vec` does not fail.
fn sure<T>(written: Result<T, minicbor::encode::Error<Infallible>>) {
    debug_assert!(written.is_ok());
}

/// What a text begins with.
const TEXT: u8 = 0x60;

/// What an item begins with: its type, and a number in the fewest bytes.
#[inline]
fn head(out: &mut Vec<u8>, kind: u8, number: u64) {
    match number {
        ..0x18 => out.push(kind | number as u8),
        0x18..0x100 => out.extend_from_slice(&[kind | 0x18, number as u8]),
        _ => long_head(out, kind, number),
    }
}

fn long_head(out: &mut Vec<u8>, kind: u8, number: u64) {
    let (width, size) = match number {
        ..0x1_0000 => (0x19, 2),
        0x1_0000..0x1_0000_0000 => (0x1a, 4),
        _ => (0x1b, 8),
    };
    out.push(kind | width);
    out.extend_from_slice(&number.to_be_bytes()[8 - size..]);
}

/// A text that is in pieces, if it has more units than one.
#[cold]
fn long_text(text: &str, out: &mut Encoder<&mut Vec<u8>>) {
    if !units_exceed(text) {
        return sure(out.str(text));
    }
    sure(out.begin_str());
    let mut rest = text;
    while units_exceed(rest) {
        let mut units = 0;
        // No piece ends within a character.
        let fits = |&(_, c): &(usize, char)| {
            units += c.len_utf16();
            units > MAX_PIECE
        };
        let end = rest.char_indices().find(fits).map_or(rest.len(), |(at, _)| at);
        sure(out.str(&rest[..end]));
        rest = &rest[end..];
    }
    if !rest.is_empty() {
        sure(out.str(rest));
    }
    sure(out.end());
}

/// Looks no further than it must, so that long texts take linear time.
fn units_exceed(text: &str) -> bool {
    text.chars().flat_map(|c| std::iter::repeat_n((), c.len_utf16())).nth(MAX_PIECE).is_some()
}

/// Jackson 2 writes the magnitude of a negative number, where the standard has one less.
fn big(value: &BigInteger, out: &mut Vec<u8>) {
    let mut out = Encoder::new(out);
    let negative = value.as_be_bytes()[0] >= 0x80;
    sure(out.tag(if negative { IanaTag::NegBignum } else { IanaTag::PosBignum }));
    match negative {
        true => sure(out.bytes(negated(value.as_be_bytes()).as_be_bytes())),
        false => sure(out.bytes(value.as_be_bytes())),
    }
}

/// The number of these bytes in two's complement, with the other sign.
fn negated(bytes: &[u8]) -> BigInteger {
    let extended = if bytes[0] >= 0x80 { 0xff } else { 0 };
    let mut bytes = [&[extended], bytes].concat();
    let mut carry = true;
    for byte in bytes.iter_mut().rev() {
        (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
    }
    BigInteger::from_be_bytes(&bytes)
}

/// The tag of a decimal, and the head of the two numbers that it is.
const DECIMAL: &[u8] = &[0xc4, 0x82];

fn decimal(value: &BigDecimal, out: &mut Vec<u8>) {
    out.extend_from_slice(DECIMAL);
    Cbor::integer(out, -i64::from(value.scale()));
    match value.unscaled().to_i128().map(i64::try_from) {
        Some(Ok(unscaled)) if i32::try_from(unscaled).is_ok() => Cbor::integer(out, unscaled),
        Some(Ok(unscaled)) => long(unscaled, out),
        _ => big(value.unscaled(), out),
    }
}

/// In 8 bytes, as Jackson writes the digits of a decimal even where 4 would do.
fn long(value: i64, out: &mut Vec<u8>) {
    let (head, argument) = if value < 0 { (0x3b, !value) } else { (0x1b, value) };
    out.push(head);
    out.extend(argument.to_be_bytes());
}

struct Input<'a>(Decoder<'a>);

impl<'a> Input<'a> {
    /// What minicbor says, and where; it leaves out where the end is.
    fn broken(&self) -> impl Fn(Error) -> CodecError + use<> {
        let (at, end) = (self.0.position(), self.0.input().len());
        move |error| match error.is_end_of_input() {
            true => wrong(end, "more CBOR", "the end"),
            false => CodecError::new(format!(
                "expected CBOR at offset {}: {error}",
                error.position().unwrap_or(at)
            )),
        }
    }

    fn peek(&self) -> Result<Type, CodecError> {
        self.0.datatype().map_err(self.broken())
    }

    /// The number in the head of what follows, and where the head ends. `None` if it has none, or no end.
    #[inline]
    fn head(&self) -> Option<(u64, usize)> {
        let (bytes, at) = (self.0.input(), self.0.position());
        let (head, rest) = bytes.get(at..)?.split_first()?;
        Some(match head & 0x1f {
            number @ 0..24 => (number.into(), at + 1),
            24 => ((*rest.first()?).into(), at + 2),
            25 => (u16::from_be_bytes(*rest.first_chunk()?).into(), at + 3),
            26 => (u32::from_be_bytes(*rest.first_chunk()?).into(), at + 5),
            27 => (u64::from_be_bytes(*rest.first_chunk()?), at + 9),
            _ => return None,
        })
    }

    /// A text in one piece. Nothing is read of anything else, nor of what is broken.
    #[inline]
    fn plain_text(&mut self) -> Option<&'a str> {
        let input = self.0.input();
        if input.get(self.0.position())? >> 5 != 3 {
            return None;
        }
        let (length, start) = self.head()?;
        let end = start.checked_add(length.try_into().ok()?)?;
        let text = str::from_utf8(input.get(start..end)?).ok()?;
        self.0.set_position(end);
        Some(text)
    }

    /// The values that are most frequent, without all that minicbor does to say what is wrong.
    #[inline]
    fn frequent(&mut self) -> Option<Is<'a>> {
        if let Some(text) = self.plain_text() {
            return Some(Is::Text(Cow::Borrowed(text)));
        }
        let at = self.0.position();
        let (is, end) = match self.0.input().get(at..)? {
            [0x00..0x40, ..] => {
                let (number, end) = self.head()?;
                let number = i64::try_from(number).ok()?;
                (Is::Int(if self.0.input()[at] < 0x20 { number } else { !number }), end)
            }
            [0xf4, ..] => (Is::Bool(false), at + 1),
            [0xf5, ..] => (Is::Bool(true), at + 1),
            [0xf6, ..] => (Is::Null, at + 1),
            [0xfb, rest @ ..] => (Is::Double(f64::from_be_bytes(*rest.first_chunk()?)), at + 9),
            _ => return None,
        };
        self.0.set_position(end);
        Some(is)
    }

    /// Reads into a node where it is to stay.
    fn value(&mut self, depth: usize, node: &mut Node<'a>) -> Result<(), CodecError> {
        node.at = Node::offset(self.0.position());
        match self.frequent() {
            Some(is) => node.set(is),
            None => node.set(self.other(depth)?),
        }
        Ok(())
    }

    fn other(&mut self, depth: usize) -> Result<Is<'a>, CodecError> {
        let start = self.0.position();
        Ok(match self.peek()? {
            Type::Null => self.0.null().map(|()| Is::Null).map_err(self.broken())?,
            Type::Undefined => self.0.undefined().map(|()| Is::Null).map_err(self.broken())?,
            Type::Bool => Is::Bool(self.0.bool().map_err(self.broken())?),
            Type::F32 => Is::Float(self.0.f32().map_err(self.broken())?),
            Type::F64 => Is::Double(self.0.f64().map_err(self.broken())?),
            Type::Bytes | Type::BytesIndef => Is::Bytes(self.bytes()?),
            Type::String | Type::StringIndef => Is::Text(self.text()?),
            Type::Array | Type::ArrayIndef => self.array(depth)?,
            Type::Map | Type::MapIndef => Is::Object(self.object(depth)?),
            Type::Tag => self.tagged(depth)?,
            Type::Break => return Err(wrong(start, "a value", "the end of a list or object")),
            Type::Simple | Type::F16 | Type::Unknown(_) => {
                return Err(wrong(start, "a value", "a kind that Jackson does not write"));
            }
            _ => {
                let number = i128::from(self.0.int().map_err(self.broken())?);
                i64::try_from(number).map_or_else(|_| Is::Big(number.into()), Is::Int)
            }
        })
    }

    fn bytes(&mut self) -> Result<Cow<'a, [u8]>, CodecError> {
        if self.peek()? == Type::Bytes {
            return self.0.bytes().map(Cow::Borrowed).map_err(self.broken());
        }
        let mut all = Vec::new();
        let broken = self.broken();
        for piece in self.0.bytes_iter().map_err(&broken)? {
            all.extend_from_slice(piece.map_err(&broken)?);
        }
        Ok(Cow::Owned(all))
    }

    fn text(&mut self) -> Result<Cow<'a, str>, CodecError> {
        if self.peek()? == Type::String {
            return self.0.str().map(Cow::Borrowed).map_err(self.broken());
        }
        let mut all = String::new();
        let broken = self.broken();
        for piece in self.0.str_iter().map_err(&broken)? {
            all.push_str(piece.map_err(&broken)?);
        }
        Ok(Cow::Owned(all))
    }

    /// Whether there is another of the elements, as many as were announced or until the end.
    fn more(&mut self, left: &mut Option<u64>) -> Result<bool, CodecError> {
        match left {
            Some(0) => Ok(false),
            Some(left) => {
                *left -= 1;
                Ok(true)
            }
            // The byte that minicbor has no method for.
            None => match self.0.input().get(self.0.position()) {
                Some(0xff) => {
                    self.0.set_position(self.0.position() + 1);
                    Ok(false)
                }
                Some(_) => Ok(true),
                None => self.peek().map(|_| false),
            },
        }
    }

    fn array(&mut self, depth: usize) -> Result<Is<'a>, CodecError> {
        if depth >= MAX_DEPTH {
            return Err(too_deep(self.0.position()));
        }
        let start = self.0.position();
        let announced = self.0.array().map_err(self.broken())?;
        let (mut left, mut values) = (announced, memory::usual(USUAL_ELEMENTS));
        while self.more(&mut left)? {
            let at = values.len();
            room(&mut values, start)?;
            values.push(Node::NULL);
            self.value(depth + 1, &mut values[at])?;
        }
        Ok(if announced.is_some() { Is::Bare(values) } else { Is::Array(values) })
    }

    fn object(&mut self, depth: usize) -> Result<Vec<(Key<'a>, Node<'a>)>, CodecError> {
        if depth >= MAX_DEPTH {
            return Err(too_deep(self.0.position()));
        }
        let mut left = self.0.map().map_err(self.broken())?;
        let mut entries = memory::usual(USUAL_PROPERTIES);
        while self.more(&mut left)? {
            let (start, at) = (self.0.position(), entries.len());
            room(&mut entries, start)?;
            entries.push((Key::NONE, Node::NULL));
            let (key, node) = &mut entries[at];
            match self.plain_text() {
                Some(text) => key.set(Cow::Borrowed(text)),
                None => *key = self.other_key(start)?,
            }
            self.value(depth + 1, node)?;
        }
        Ok(entries)
    }

    /// A text in pieces, or a number.
    fn other_key(&mut self, start: usize) -> Result<Key<'a>, CodecError> {
        match self.peek()? {
            Type::String | Type::StringIndef => self.text().map(Key::Text),
            _ => match self.0.int().map(i128::from).map(i64::try_from) {
                Ok(Ok(key)) => Ok(Key::Number(key)),
                _ => Err(wrong(start, "the name of a property", "something else")),
            },
        }
    }

    fn tagged(&mut self, depth: usize) -> Result<Is<'a>, CodecError> {
        let start = self.0.position();
        let tag = self.0.tag().map_err(self.broken())?;
        let inside = self.0.position();
        match IanaTag::try_from(tag) {
            Ok(tag @ (IanaTag::PosBignum | IanaTag::NegBignum)) if self.bytes_follow()? => {
                let bytes = self.bytes()?;
                if bytes.len() > MAX_BIG_BYTES {
                    let found = format!("{} bytes", bytes.len());
                    return Err(wrong(inside, &format!("a number of at most {MAX_BIG_BYTES}"), &found));
                }
                let magnitude = [&[0], &bytes[..]].concat();
                Ok(Is::Big(match tag {
                    IanaTag::NegBignum => negated(&magnitude),
                    _ => BigInteger::from_be_bytes(&magnitude),
                }))
            }
            Ok(IanaTag::Decimal) => {
                // Of values that hold none, so that this goes no deeper.
                let pair =
                    if self.peek()? == Type::Array { self.0.array().map_err(self.broken())? } else { None };
                let scale = match pair {
                    Some(2) => self.0.i32().ok().and_then(i32::checked_neg),
                    _ => None,
                };
                let wrong = || wrong(start, "a decimal fraction", "something else");
                let scale = scale.ok_or_else(wrong)?;
                let unscaled = match self.peek()? {
                    Type::Tag if depth < MAX_DEPTH => self.tagged(MAX_DEPTH)?,
                    _ => Is::Int(self.0.i64().map_err(self.broken())?),
                };
                match unscaled {
                    Is::Int(unscaled) => Ok(Is::Decimal(Box::new(BigDecimal::new(unscaled, scale)))),
                    Is::Big(unscaled) => Ok(Is::Decimal(Box::new(BigDecimal::new(unscaled, scale)))),
                    _ => Err(wrong()),
                }
            }
            _ => Err(wrong(start, "a tag of a number", "another")),
        }
    }

    fn bytes_follow(&self) -> Result<bool, CodecError> {
        Ok(matches!(self.peek()?, Type::Bytes | Type::BytesIndef))
    }
}
