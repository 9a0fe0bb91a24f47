//! A payload and how far it was read, as Kryo 5 writes it.

mod class;
mod serialized;
mod utf16;

use super::MAX_DEPTH;
use super::failure::{Failure, Outcome};
use crate::java_serialization::Streams;

use class::Names;

pub(super) use class::ClassRef;

/// Elements that take no bytes, such as the nulls of a list that holds nothing else: the maximum in one
/// payload.
const MAX_EMPTY: usize = 1 << 16;

/// How many bytes the names of classes may take in memory that are longer than usual: each is once in the
/// payload, and each value of the class has it.
const MAX_LONG_NAMES: usize = 16 << 20;

pub(super) struct Input<'de> {
    bytes: &'de [u8],
    pub(super) at: usize,
    names: Names<'de>,
    /// Behind the class with which the payload begins, or 0.
    first_class: usize,
    depth: usize,
    /// How many more elements may take no bytes.
    empty: usize,
    /// How many more bytes of names that are longer than usual values may have.
    long_names: usize,
    /// Classes of the application that are described.
    #[cfg(feature = "classes")]
    pub(super) described: Option<Box<super::described::Described>>,
    /// What Java's own serialization wrote so far.
    streams: Option<Box<Streams>>,
}

impl<'de> Input<'de> {
    pub(super) fn new(bytes: &'de [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            names: Names::default(),
            first_class: 0,
            depth: 0,
            empty: MAX_EMPTY,
            long_names: MAX_LONG_NAMES,
            #[cfg(feature = "classes")]
            described: None,
            streams: None,
        }
    }

    #[inline]
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    #[cold]
    fn ends(&self) -> Failure {
        Failure::new(format!("it ends at offset {}, within a value", self.bytes.len()))
    }

    #[inline]
    pub(super) fn peek(&self) -> Outcome<u8> {
        self.bytes.get(self.at).copied().ok_or_else(|| self.ends())
    }

    pub(super) fn follows(&self, bytes: &[u8]) -> bool {
        self.bytes[self.at..].starts_with(bytes)
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Outcome<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Ok(byte)
    }

    #[inline]
    pub(super) fn take(&mut self, count: usize) -> Outcome<&'de [u8]> {
        if count > self.left() {
            return Err(self.ends());
        }
        let taken = &self.bytes[self.at..self.at + count];
        self.at += count;
        Ok(taken)
    }

    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Outcome<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    #[inline]
    pub(super) fn boolean(&mut self) -> Outcome<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            byte => {
                Err(Failure::new(format!("expected 0 or 1 at offset {}, found 0x{byte:02x}", self.at - 1)))
            }
        }
    }

    /// 7 bits a byte, the lowest first.
    #[inline]
    pub(super) fn varint(&mut self) -> Outcome<u32> {
        let mut number = 0;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            number |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        Ok(number)
    }

    /// Small negative numbers have few bytes.
    #[inline]
    pub(super) fn int(&mut self) -> Outcome<i32> {
        let number = self.varint()?;
        Ok((number >> 1) as i32 ^ -((number & 1) as i32))
    }

    /// Like [`varint`](Self::varint), but the 9th byte has 8 bits.
    #[inline]
    pub(super) fn varlong(&mut self) -> Outcome<u64> {
        let mut number = 0;
        for shift in (0..56).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Ok(number | u64::from(self.byte()?) << 56)
    }

    #[inline]
    pub(super) fn long(&mut self) -> Outcome<i64> {
        let number = self.varlong()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// A number behind a flag, which is the highest bit.
    #[inline]
    pub(super) fn flagged(&mut self) -> Outcome<(bool, u32)> {
        let first = self.byte()?;
        let mut number = u32::from(first & 0x3f);
        if first & 0x40 != 0 {
            for shift in (6..34).step_by(7) {
                let byte = self.byte()?;
                number |= u32::from(byte & 0x7f) << shift;
                if byte < 0x80 {
                    break;
                }
            }
        }
        Ok((first >= 0x80, number))
    }

    /// How many elements a length, one more than they are, announces.
    ///
    /// Nearly all take a byte at least, so a count that the payload cannot hold is refused at once.
    #[inline]
    pub(super) fn count(&self, length: u32) -> Outcome<usize> {
        let Some(count) = length.checked_sub(1) else {
            return Err(Failure::new(format!("a null before offset {}, where none may be", self.at)));
        };
        let count = count as usize;
        if count > self.left() && count - self.left() > self.empty {
            return Err(Failure::new(format!(
                "{count} elements are announced before offset {}, with {} bytes behind it",
                self.at,
                self.left()
            )));
        }
        Ok(count)
    }

    /// Counts an element that took no bytes since this offset.
    #[inline]
    pub(super) fn element_since(&mut self, start: usize) -> Outcome<()> {
        if self.at == start {
            let Some(empty) = self.empty.checked_sub(1) else {
                return Err(Failure::new(format!(
                    "more than {MAX_EMPTY} elements without bytes at offset {start}"
                )));
            };
            self.empty = empty;
        }
        Ok(())
    }

    #[inline]
    pub(super) fn deeper(&mut self) -> Outcome<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let why = format!("more than {MAX_DEPTH} levels at offset {}", self.at);
            return Err(Failure::new(why).endless());
        }
        Ok(())
    }

    #[inline]
    pub(super) fn shallower(&mut self) {
        self.depth -= 1;
    }
}
