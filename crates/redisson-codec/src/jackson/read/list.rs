//! Lists, sets and arrays.

use std::{slice, vec};

use serde::de::{self, DeserializeSeed, Deserializer, Visitor};

use super::ValueReader;
use crate::jackson::failure::{Failure, Outcome};
use crate::jackson::node::Node;
use crate::java::path::Step;
use crate::memory::{self, TooMuch};

/// A list of bytes.
pub(super) struct BytesReader(pub(super) vec::IntoIter<u8>);

impl<'de> de::SeqAccess<'de> for BytesReader {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Outcome<Option<T::Value>> {
        self.0.next().map(|byte| seed.deserialize(ByteReader(byte))).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct ByteReader(u8);

impl<'de> Deserializer<'de> for ByteReader {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        visitor.visit_u8(self.0)
    }

    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        visitor.visit_i8(self.0 as i8)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Outcome<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        bool i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq
        tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// The characters of a `char[]`, which is one text.
pub(super) struct CharactersReader {
    left: vec::IntoIter<u16>,
    /// How many there are.
    total: usize,
}

impl CharactersReader {
    pub(super) fn new(text: &str) -> Result<Self, TooMuch> {
        memory::take(text.len() * size_of::<u16>())?;
        let units: Vec<u16> = text.encode_utf16().collect();
        Ok(Self { total: units.len(), left: units.into_iter() })
    }
}

impl<'de> de::SeqAccess<'de> for CharactersReader {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Outcome<Option<T::Value>> {
        let done = self.total - self.left.len();
        let Some(unit) = self.left.next() else { return Ok(None) };
        memory::element::<T::Value>(done, self.total)?;
        seed.deserialize(CharacterReader(unit)).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.len())
    }
}

struct CharacterReader(u16);

impl<'de> Deserializer<'de> for CharacterReader {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        visitor.visit_u16(self.0)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        match char::from_u32(self.0.into()) {
            Some(c) => visitor.visit_char(c),
            None => Err(Failure::new("expected one character, found half of a surrogate pair: use `u16`")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Outcome<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
}

pub(super) struct ListReader<'n, 'a> {
    /// Of an element.
    reader: ValueReader<'n, 'a>,
    left: slice::Iter<'n, Node<'a>>,
    /// How many there are.
    total: usize,
}

impl<'n, 'a> ListReader<'n, 'a> {
    pub(super) fn new(reader: ValueReader<'n, 'a>, elements: &'n [Node<'a>]) -> Self {
        Self { reader, left: elements.iter(), total: elements.len() }
    }

    /// What is wrong with the last element, and where.
    #[cold]
    fn of_element(&self, failure: &mut Failure, at: u32) {
        failure.place(at);
        let step = Step::Element(self.total - self.left.len() - 1);
        failure.path().enter(self.reader.context.shape, self.reader.id, step);
    }
}

impl<'de> de::SeqAccess<'de> for ListReader<'_, '_> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Outcome<Option<T::Value>> {
        let done = self.total - self.left.len();
        let Some(node) = self.left.next() else { return Ok(None) };
        self.reader.placed(memory::element::<T::Value>(done, self.total).map_err(Failure::from))?;
        let reader = ValueReader { node, ..self.reader };
        match seed.deserialize(reader) {
            Ok(element) => Ok(Some(element)),
            Err(mut failure) => {
                self.of_element(&mut failure, node.at);
                Err(failure)
            }
        }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.len())
    }
}
