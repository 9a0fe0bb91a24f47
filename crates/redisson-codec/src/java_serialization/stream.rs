//! From bytes to objects, by the grammar of Java's Object Serialization Stream Protocol.
//!
//! Everything in a stream has a number, by which it is referred to later.

mod bytes;
mod class;
mod values;

use super::{Refused, hash};
use crate::shown::shown;

use bytes::Reader;

/// The magic number and the version.
pub(crate) const HEADER: &[u8] = b"\xac\xed\x00\x05";

/// The hash of no bytes.
pub(super) const EMPTY: u64 = 0xcbf2_9ce4_8422_2325;

/// What begins.
mod code {
    pub(super) const NULL: u8 = 0x70;
    pub(super) const REFERENCE: u8 = 0x71;
    pub(super) const DESCRIPTION: u8 = 0x72;
    pub(super) const OBJECT: u8 = 0x73;
    pub(super) const TEXT: u8 = 0x74;
    pub(super) const ARRAY: u8 = 0x75;
    pub(super) const CLASS: u8 = 0x76;
    pub(super) const DATA: u8 = 0x77;
    pub(super) const END: u8 = 0x78;
    pub(super) const LONG_DATA: u8 = 0x7a;
    pub(super) const LONG_TEXT: u8 = 0x7c;
    pub(super) const PROXY: u8 = 0x7d;
    pub(super) const ENUM: u8 = 0x7e;
}

/// How a class writes its objects.
mod flag {
    /// It has a method `writeObject`.
    pub(super) const WRITES: u8 = 1;
    pub(super) const SERIALIZABLE: u8 = 2;
    pub(super) const EXTERNALIZABLE: u8 = 4;
    /// What an externalizable class writes has an end that can be found.
    pub(super) const BLOCKS: u8 = 8;
}

/// Bytes of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    pub(super) fn of(self, payload: &[u8]) -> &[u8] {
        payload.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// Which of [`Stream::entities`].
pub(super) type Id = u32;

/// A value of a field, or an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    Null,
    Entity(Id),
    /// Bytes that a class writes itself.
    Data(Span),
}

/// What has a number.
#[derive(Debug)]
pub(super) enum Entity {
    /// Its parts are being read.
    Open,
    Text(Span),
    Description(Box<Description>),
    /// A `java.lang.Class`: its description, unless it is null.
    Class(Option<Id>),
    Object(Box<Object>),
    Array(Box<Array>),
    Enum {
        class: Id,
        name: Id,
    },
}

/// A class with its fields.
#[derive(Debug)]
pub(super) struct Description {
    /// Of a proxy, that of its first interface.
    pub(super) name: Span,
    flags: u8,
    pub(super) fields: Vec<Field>,
    /// How many bytes the fields of primitive types take; they come first.
    primitive: u32,
    pub(super) base: Option<Id>,
    /// How many classes, with those above it. 0 while those are being read.
    classes: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    /// The letter that a descriptor has for the type.
    pub(super) kind: u8,
    pub(super) name: Span,
}

#[derive(Debug)]
pub(super) struct Object {
    pub(super) class: Id,
    /// What each class wrote, base classes first. Those that wrote nothing are left out.
    pub(super) parts: Vec<Part>,
}

/// What one class of an object wrote.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) class: Id,
    /// The values of its fields of primitive types.
    pub(super) primitive: Span,
    /// The values of its other fields.
    pub(super) objects: Vec<Item>,
    /// What it wrote itself.
    pub(super) more: Vec<Item>,
}

#[derive(Debug)]
pub(super) struct Array {
    pub(super) class: Id,
    /// Those of a primitive type.
    pub(super) primitive: Span,
    pub(super) elements: Vec<Item>,
}

/// Whether the value of an entity was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Never,
    /// It is being made.
    Now,
    Before,
}

pub(super) struct Stream {
    pub(super) entities: Vec<Entity>,
    pub(super) seen: Vec<Seen>,
    hash: u64,
}

impl Default for Stream {
    fn default() -> Self {
        Self { entities: Vec::new(), seen: Vec::new(), hash: EMPTY }
    }
}

/// Whether what begins with this is an object of this class, which it names.
pub(super) fn names(object: &[u8], class: &str) -> bool {
    let Ok(length) = u16::try_from(class.len()) else { return false };
    let behind = object.strip_prefix(&[code::OBJECT, code::DESCRIPTION]);
    let name = behind.and_then(|behind| behind.strip_prefix(&length.to_be_bytes()));
    name.is_some_and(|name| name.starts_with(class.as_bytes()))
}

impl Stream {
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    /// Reads the next object, which may be behind a header. Says where it ends.
    pub(super) fn object(&mut self, payload: &[u8], at: usize) -> Result<(Item, usize), Refused> {
        if u32::try_from(payload.len()).is_err() {
            return Err(Refused::new(format!("{} bytes are more than Java can hold", payload.len())));
        }
        let head = if self.entities.is_empty() { HEADER.len() } else { 0 };
        let mut reader = Reader { stream: self, payload, at };
        if head > 0 && reader.take(head)? != HEADER {
            return Err(Refused::new(format!("no stream begins at offset {at}")));
        }
        let item = reader.whole()?;
        let end = reader.at;
        self.hash = hash(self.hash, &payload[at..end]);
        Ok((item, end))
    }

    pub(super) fn description(&self, id: Id) -> Option<&Description> {
        match self.entities.get(id as usize)? {
            Entity::Description(description) => Some(description),
            _ => None,
        }
    }

    /// The bytes of a text.
    pub(super) fn text(&self, id: Id) -> Option<Span> {
        match self.entities.get(id as usize)? {
            Entity::Text(text) => Some(*text),
            _ => None,
        }
    }
}

pub(super) fn is_object(kind: u8) -> bool {
    matches!(kind, b'L' | b'[')
}

pub(super) fn primitive_size(kind: u8) -> Option<usize> {
    match kind {
        b'B' | b'Z' => Some(1),
        b'C' | b'S' => Some(2),
        b'F' | b'I' => Some(4),
        b'D' | b'J' => Some(8),
        _ => None,
    }
}

/// For messages.
pub(super) fn class_shown(name: &[u8]) -> String {
    shown(&String::from_utf8_lossy(name))
}
