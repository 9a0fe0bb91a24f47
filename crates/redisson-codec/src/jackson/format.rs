//! [`Format`]: how JSON, CBOR and MessagePack write what they have in common.

use std::ops::Range;

use super::failure::Outcome;
use super::node::Node;
use crate::CodecError;
use crate::java::{BigDecimal, BigInteger};
use crate::signature::Signature;

/// A format that Jackson reads and writes. What is written goes to the end of `out`.
pub(super) trait Format: Sized + 'static {
    const NAME: &'static str;

    /// What a payload of the format is recognised as.
    const SIGNATURE: Signature;

    /// What is behind a value that has its class in front.
    const BEHIND: &'static [u8];

    /// A payload that is longer may have a length in it that the format cannot say.
    const MAX_PAYLOAD: usize = usize::MAX;

    /// The value that the payload is; it must be exactly one.
    fn read(payload: &[u8]) -> Result<Node<'_>, CodecError>;

    fn null(out: &mut Vec<u8>);

    fn boolean(out: &mut Vec<u8>, value: bool);

    fn integer(out: &mut Vec<u8>, value: i64);

    fn big(out: &mut Vec<u8>, value: &BigInteger) -> Outcome<()>;

    /// A number as JSON has it, with a fraction or an exponent.
    fn number(out: &mut Vec<u8>, value: &str);

    fn decimal(out: &mut Vec<u8>, value: &BigDecimal) -> Outcome<()>;

    fn float(out: &mut Vec<u8>, value: f32);

    fn double(out: &mut Vec<u8>, value: f64);

    fn text(out: &mut Vec<u8>, value: &str);

    fn bytes(out: &mut Vec<u8>, value: &[u8]);

    /// The class in front of a value, which [`BEHIND`](Self::BEHIND) is to follow.
    #[inline]
    fn class(out: &mut Vec<u8>, class: &str) {
        Self::header(out, Group::List, 2);
        Self::text(out, class);
    }

    /// The name of a property or of a map's entry, whose value is to follow.
    #[inline]
    fn key(out: &mut Vec<u8>, key: &str) {
        Self::text(out, key);
    }

    /// The same, of an entry whose key is an `Integer` or `Long`.
    fn number_key(out: &mut Vec<u8>, key: i64);

    /// What is in front of each element of a list.
    fn next(_: &mut Vec<u8>) {}

    /// Writes the header of a list or object with this many elements or properties.
    fn header(out: &mut Vec<u8>, group: Group, count: usize);

    /// Begins a list or object, probably with this many elements or properties.
    #[inline]
    fn open(out: &mut Vec<u8>, group: Group, likely: usize) -> OpenGroup {
        let start = out.len();
        Self::header(out, group, likely);
        OpenGroup { group, likely, header: start..out.len() }
    }

    /// Ends it, now that all that is in it has been written.
    fn close(out: &mut Vec<u8>, open: OpenGroup, count: usize) {
        open.correct::<Self>(out, count);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    Object,
    /// A list that has its class in front, or the pair that it is with it.
    List,
    /// A list without a class: in CBOR this one says how long it is.
    Bare,
}

/// A list or object that is being written.
pub(super) struct OpenGroup {
    pub(super) group: Group,
    pub(super) likely: usize,
    /// Where its header is.
    pub(super) header: Range<usize>,
}

impl OpenGroup {
    /// Writes the header again if the count was not the likely one.
    pub(super) fn correct<F: Format>(self, out: &mut Vec<u8>, count: usize) {
        if count == self.likely {
            return;
        }
        let end = out.len();
        F::header(out, self.group, count);
        let length = out.len() - end;
        out[self.header.end..].rotate_right(length);
        out.drain(self.header);
    }
}
