//! Lists, sets and arrays.

use std::slice;

use serde::de::{self, DeserializeSeed, Deserializer, Visitor};

use super::Reader;
use crate::jackson::failure::Failure;
use crate::jackson::node::Node;

/// A list of bytes.
pub(super) struct Bytes(pub(super) std::vec::IntoIter<u8>);

impl<'de> de::SeqAccess<'de> for Bytes {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        self.0.next().map(|byte| seed.deserialize(OneByte(byte))).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct OneByte(u8);

impl<'de> Deserializer<'de> for OneByte {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_u8(self.0)
    }

    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_i8(self.0 as i8)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        bool i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq
        tuple tuple_struct map struct enum identifier ignored_any
    }
}

pub(super) struct List<'n, 'a> {
    pub(super) reader: Reader<'n, 'a>,
    pub(super) left: slice::Iter<'n, Node<'a>>,
}

impl<'de> de::SeqAccess<'de> for List<'_, '_> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        let Some(node) = self.left.next() else { return Ok(None) };
        let reader = Reader { node, ..self.reader };
        reader.placed(seed.deserialize(reader)).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.len())
    }
}
