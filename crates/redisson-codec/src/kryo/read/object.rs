//! The fields of a struct.

use serde::de::value::{BorrowedStrDeserializer, MapDeserializer};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};

use super::ValueReader;
use super::prefix::{Found, Prefix};
use crate::java::shape::{Form, StructShape};
use crate::kryo::failure::{Failure, Outcome};

/// The fields of a struct, in Java's order.
pub(super) struct ObjectReader<'r, 'a, 'de> {
    pub(super) place: ValueReader<'r, 'a, 'de>,
    pub(super) class: &'a StructShape,
    /// How many were read.
    pub(super) next: usize,
    /// The field that is none of the class was read.
    pub(super) rest: bool,
}

impl<'de> MapAccess<'de> for &mut ObjectReader<'_, '_, 'de> {
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Outcome<Option<K::Value>> {
        let field = match (self.class.sorted.get(self.next), self.class.rest) {
            (Some(&field), _) => field,
            (None, Some(rest)) if !self.rest => {
                self.rest = true;
                rest
            }
            _ => return Ok(None),
        };
        seed.deserialize(BorrowedStrDeserializer::new(self.class.fields[field].name)).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Outcome<T::Value> {
        let Some(&field) = self.class.sorted.get(self.next) else { return seed.deserialize(NoProperties) };
        self.next += 1;
        let node = self.class.fields[field].node;
        let prefix = match self.place.reader.node(node) {
            declared if declared.is_primitive() => Prefix::Nothing(Found::Declared),
            _ => self.place.reader.declared(node),
        };
        // Kryo keeps the type arguments of the fields of classes, but not of those of records.
        let mut read = seed.deserialize(self.place.inner(node, prefix, self.class.form != Form::Record));
        if let Err(failure) = &mut read {
            let name = self.class.fields[field].name;
            failure.in_field(self.place.reader.shape, &self.class.class, name, node);
        }
        read
    }
}

/// What a payload without names has of the properties that the struct does not know.
struct NoProperties;

impl<'de> Deserializer<'de> for NoProperties {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        visitor.visit_map(MapDeserializer::new(std::iter::empty::<((), ())>()))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        visitor.visit_none()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Outcome<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
}
