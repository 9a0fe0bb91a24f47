//! [`Node`]: what JSON, CBOR and MessagePack have in common, as Jackson writes it.

use std::borrow::Cow;

use super::failure::{Failure, Outcome};
use super::format::{Format, Group};
use crate::CodecError;
use crate::java::{BigDecimal, BigInteger};
use crate::memory;

/// A Java list is two levels, itself and its class's.
pub(super) use crate::levels::MAX_DEPTH;

/// As many digits as Jackson reads in a number, by default. What it costs to convert more of them grows with
/// their square.
pub(super) const MAX_DIGITS: usize = 1000;

/// As many bytes as these digits take.
pub(super) const MAX_BIG_BYTES: usize = MAX_DIGITS * 10 / 24;

/// Most lists are a class and a value.
pub(super) const USUAL_ELEMENTS: usize = 2;

/// With the class.
pub(super) const USUAL_PROPERTIES: usize = 8;

/// A value and where it begins in the payload.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node<'a> {
    pub(super) at: u32,
    pub(super) is: Is<'a>,
}

#[derive(Clone, Debug, PartialEq)]
// So that it is written in words, as it is moved: a word whose bytes were just written one by one has to wait
// for them.
#[repr(u64)]
pub(super) enum Is<'a> {
    Null,
    Bool(bool),
    Int(i64),
    /// Beyond an `i64`, or a `BigInteger`.
    Big(BigInteger),
    /// A JSON number with a fraction or an exponent: a `float`, a `double` or a `BigDecimal`.
    Number(Cow<'a, str>),
    Decimal(Box<BigDecimal>),
    Float(f32),
    Double(f64),
    Text(Cow<'a, str>),
    /// In JSON this is written as base64, and read as text.
    Bytes(Cow<'a, [u8]>),
    /// With its class in front, or that pair itself.
    Array(Vec<Node<'a>>),
    /// Without a class: in CBOR this one says how long it is.
    #[cfg_attr(not(feature = "cbor-jackson"), allow(dead_code, reason = "the others do not tell them apart"))]
    Bare(Vec<Node<'a>>),
    Object(Vec<(Key<'a>, Node<'a>)>),
}

/// The name of a property or of a map's entry.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Key<'a> {
    Text(Cow<'a, str>),
    /// An `Integer` or `Long`, which CBOR writes as a number.
    Number(i64),
}

impl<'a> Key<'a> {
    /// What a key is until it is read, in its place.
    pub(super) const NONE: Key<'static> = Key::Number(0);

    /// Makes a text of a key that is still none, which need not be dropped.
    #[inline]
    pub(super) fn set(&mut self, text: Cow<'a, str>) {
        std::mem::forget(std::mem::replace(self, Key::Text(text)));
    }

    pub(super) fn write<F: Format>(&self, out: &mut Vec<u8>) {
        match self {
            Key::Text(key) => F::key(out, key),
            Key::Number(key) => F::number_key(out, *key),
        }
    }

    #[inline]
    pub(super) fn text(&self) -> Cow<'_, str> {
        match self {
            Key::Text(text) => Cow::Borrowed(text),
            Key::Number(number) => Cow::Owned(number.to_string()),
        }
    }
}

impl<'a> From<Is<'a>> for Node<'a> {
    /// A value that is to be written, and so is nowhere yet.
    fn from(is: Is<'a>) -> Self {
        Self { at: 0, is }
    }
}

impl<'a> Node<'a> {
    /// What a node is until it is read, in its place: to move it may take longer than to read it.
    pub(super) const NULL: Node<'static> = Node { at: 0, is: Is::Null };

    /// Makes something of a node that is still null, which need not be dropped.
    #[inline]
    pub(super) fn set(&mut self, is: Is<'a>) {
        std::mem::forget(std::mem::replace(&mut self.is, is));
    }

    pub(super) fn offset(at: usize) -> u32 {
        // Redis holds no payload of 4 GiB.
        at.try_into().unwrap_or(u32::MAX)
    }

    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Is::Text(text.into()).into()
    }

    /// Writes it with all that is in it, inside of this many levels.
    pub(super) fn write<F: Format>(&self, out: &mut Vec<u8>, depth: usize) -> Outcome<()> {
        match &self.is {
            Is::Null => F::null(out),
            Is::Bool(value) => F::boolean(out, *value),
            Is::Int(value) => F::integer(out, *value),
            Is::Big(value) => F::big(out, value)?,
            Is::Number(value) => F::number(out, value),
            Is::Decimal(value) => F::decimal(out, value)?,
            Is::Float(value) => F::float(out, *value),
            Is::Double(value) => F::double(out, *value),
            Is::Text(value) => F::text(out, value),
            Is::Bytes(value) => F::bytes(out, value),
            Is::Array(_) | Is::Bare(_) | Is::Object(_) if depth >= MAX_DEPTH => return Err(beyond_depth()),
            Is::Array(values) => write_list::<F>(values, Group::List, out, depth)?,
            Is::Bare(values) => write_list::<F>(values, Group::Bare, out, depth)?,
            Is::Object(entries) => {
                let open = F::open(out, Group::Object, entries.len());
                for (key, value) in entries {
                    key.write::<F>(out);
                    value.write::<F>(out, depth + 1)?;
                }
                F::close(out, open, entries.len());
            }
        }
        Ok(())
    }

    /// What it is, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self.is {
            Is::Null => "null",
            Is::Bool(_) => "a boolean",
            Is::Int(_) | Is::Big(_) => "an integer",
            Is::Number(_) | Is::Decimal(_) | Is::Float(_) | Is::Double(_) => "a number with a fraction",
            Is::Text(_) => "text",
            Is::Bytes(_) => "bytes",
            Is::Array(_) | Is::Bare(_) => "a list",
            Is::Object(_) => "an object",
        }
    }
}

fn write_list<F: Format>(values: &[Node<'_>], group: Group, out: &mut Vec<u8>, depth: usize) -> Outcome<()> {
    let open = F::open(out, group, values.len());
    for value in values {
        F::next(out);
        value.write::<F>(out, depth + 1)?;
    }
    F::close(out, open, values.len());
    Ok(())
}

/// What should have been at an offset, and what was.
pub(super) fn wrong(at: usize, expected: &str, found: &str) -> CodecError {
    CodecError::new(format!("expected {expected} at offset {at}, found {found}"))
}

/// What would be written, and not be read again.
#[cold]
pub(super) fn beyond_depth() -> Failure {
    Failure::new(format!("a value of more than {MAX_DEPTH} levels is too deep"))
}

/// Makes room for one more in the list of what is in a list or object that begins at an offset.
#[inline]
pub(super) fn room<T>(list: &mut Vec<T>, at: usize) -> Result<(), CodecError> {
    memory::room(list).map_err(|why| CodecError::new(format!("{why}, at offset {at}")))
}

pub(super) fn too_deep(at: usize) -> CodecError {
    CodecError::new(format!("expected at most {MAX_DEPTH} levels, found more at offset {at}"))
}
