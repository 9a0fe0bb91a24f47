//! [`Reader`]: a payload and how far it was read.

use super::{Entity, Id, Seen, Span, Stream};
use crate::java_serialization::Refused;
use crate::memory;

/// The number of what comes first.
const FIRST: u32 = 0x7e_0000;

pub(super) struct Reader<'a> {
    pub(super) stream: &'a mut Stream,
    pub(super) payload: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Reader<'a> {
    #[cold]
    pub(super) fn wrong(&self, at: usize, what: &str) -> Refused {
        Refused::new(format!("{what} at offset {at}, in what Java's own serialization wrote"))
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Refused> {
        match self.payload[self.at..].get(..count) {
            Some(bytes) => {
                self.at += count;
                Ok(bytes)
            }
            None => Err(Refused::new(format!("it ends at offset {}, within a value", self.payload.len()))),
        }
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Refused> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Refused> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn short(&mut self) -> Result<u16, Refused> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn int(&mut self) -> Result<u32, Refused> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.payload.get(self.at).copied()
    }

    pub(super) fn span(&mut self, length: usize) -> Result<Span, Refused> {
        let start = self.at as u32;
        self.take(length)?;
        Ok(Span { start, end: self.at as u32 })
    }

    pub(super) fn short_text(&mut self) -> Result<Span, Refused> {
        let length = self.short()?;
        self.span(length.into())
    }

    /// Gives the next number.
    pub(super) fn add(&mut self, entity: Entity) -> Result<Id, Refused> {
        let id = self.stream.entities.len() as Id;
        memory::push(&mut self.stream.entities, entity)?;
        memory::push(&mut self.stream.seen, Seen::Never)?;
        Ok(id)
    }

    /// What is referred to.
    pub(super) fn reference(&mut self) -> Result<Id, Refused> {
        let start = self.at;
        let id = self.int()?.wrapping_sub(FIRST);
        match self.stream.entities.get(id as usize) {
            Some(_) => Ok(id),
            None => Err(self.wrong(start, "a reference to nothing")),
        }
    }
}
