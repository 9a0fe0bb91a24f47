//! [`Node`]: what JSON, CBOR and MessagePack have in common, as Jackson writes it.

use std::borrow::Cow;

use crate::codec::CodecError;
use crate::codec::java::{BigDecimal, BigInteger};

/// How deep values may nest. As deep as `serde_json` goes; a Java list is two levels, itself and its class's.
pub(super) const MAX_DEPTH: usize = 127;

/// As many digits as Jackson reads in a number, by default. What it costs to convert more of them grows with their
/// square.
pub(super) const MAX_DIGITS: usize = 1000;

/// As many bytes as these digits take.
pub(super) const MAX_BIG_BYTES: usize = MAX_DIGITS * 10 / 24;

/// A value and where it begins in the payload.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node<'a> {
    pub(super) at: u32,
    pub(super) is: Is<'a>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Is<'a> {
    Null,
    Bool(bool),
    Int(i64),
    /// Beyond an `i64`, or a `BigInteger`.
    Big(BigInteger),
    /// As JSON has it, with a fraction or an exponent: of a `float`, a `double` or a `BigDecimal`, who knows.
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

impl Key<'_> {
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
    pub(super) fn new(at: usize, is: Is<'a>) -> Self {
        // Redis holds no payload of 4 GiB.
        Self { at: at.try_into().unwrap_or(u32::MAX), is }
    }

    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Is::Text(text.into()).into()
    }

    /// `["java.lang.Long",1]`.
    pub(super) fn wrapped(class: impl Into<Cow<'a, str>>, inside: impl Into<Node<'a>>) -> Self {
        Is::Array(vec![Node::text(class), inside.into()]).into()
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

/// A format that Jackson reads and writes.
pub(super) trait Format {
    const NAME: &'static str;

    /// The value that the payload is; it must be exactly one.
    fn read(payload: &[u8]) -> Result<Node<'_>, CodecError>;

    fn write(node: &Node<'_>, out: &mut Vec<u8>) -> Result<(), CodecError>;
}

/// What should have been at an offset, and what was.
pub(super) fn wrong(at: usize, expected: &str, found: &str) -> CodecError {
    CodecError::new(format!("expected {expected} at offset {at}, found {found}"))
}

pub(super) fn too_deep(at: usize) -> CodecError {
    CodecError::new(format!("expected at most {MAX_DEPTH} levels, found more at offset {at}"))
}
