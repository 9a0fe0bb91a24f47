//! What is in a value: fields, elements, entries.

use std::collections::HashSet;
use std::marker::PhantomData;

use serde::de::value::StringDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};

use super::{Typed, is_of_library};
use crate::java::shape::{Kind, NodeId, StructShape};
use crate::java::{Enum, Value};
use crate::memory;

/// The fields of an object, of which the type may have only some.
pub(super) struct Fields<'a, E> {
    place: Typed<'a, E>,
    class: &'a StructShape,
    fields: std::vec::IntoIter<(String, Value)>,
    value: Option<(NodeId, Value)>,
}

impl<'a, E: Error> Fields<'a, E> {
    pub(super) fn new(mut place: Typed<'a, E>, class: &'a StructShape) -> Self {
        let mut fields = match std::mem::replace(&mut place.value, Value::Null) {
            Value::Object(object) => object.fields,
            _ => Vec::new(),
        };
        // A class may have a field of the same name as one above it, which comes first.
        let mut names = HashSet::with_capacity(fields.len());
        let mut lowest: Vec<_> = fields.iter().rev().map(|(name, _)| names.insert(name.as_str())).collect();
        fields.retain(|_| lowest.pop().unwrap_or(true));
        Self { place, class, fields: fields.into_iter(), value: None }
    }
}

impl<'de, E: Error> MapAccess<'de> for Fields<'_, E> {
    type Error = E;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, E> {
        let Some((name, value)) = self.fields.next() else { return Ok(None) };
        let field = self.class.fields.iter().find(|field| field.name == name);
        // Of a field that the type does not have, the node does not matter.
        self.value = Some((field.map_or(self.place.node, |field| field.node), value));
        let name: StringDeserializer<E> = name.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, E> {
        let Some((node, value)) = self.value.take() else { return Err(super::changed()) };
        seed.deserialize(self.place.inside(node, value))
    }
}

/// The elements of a list, set or array.
pub(super) enum Elements<'a, E> {
    Bytes(std::vec::IntoIter<u8>),
    /// And how many there are.
    Values(Typed<'a, E>, NodeId, std::vec::IntoIter<Value>, usize),
}

impl<'a, E: Error> Elements<'a, E> {
    /// Those of the value, if it is what is declared.
    pub(super) fn of(mut place: Typed<'a, E>) -> Result<Self, Typed<'a, E>> {
        let value = std::mem::replace(&mut place.value, Value::Null);
        let (element, elements) = match (&place.node().kind, value) {
            (Kind::Bytes, Value::Bytes(bytes)) => return Ok(Elements::Bytes(bytes.into_iter())),
            (Kind::Array(element), Value::Array(array))
                if place.is(&place.shape.array_class(place.node), &array.class) =>
            {
                (*element, array.elements)
            }
            (Kind::Collection(_, element) | Kind::EnumSet(_, element), Value::Collection(list))
                if place.any_class
                    || is_of_library(&list.class)
                    || list.class == place.shape.class_name(place.node) =>
            {
                (*element, list.elements)
            }
            (Kind::Collection(_, element) | Kind::EnumSet(_, element), Value::EnumSet(set)) => {
                let class = set.element;
                let constant = |constant| Value::Enum(Box::new(Enum { class: class.clone(), constant }));
                (*element, set.constants.into_iter().map(constant).collect())
            }
            (_, value) => {
                place.value = value;
                return Err(place);
            }
        };
        let total = elements.len();
        Ok(Elements::Values(place, element, elements.into_iter(), total))
    }
}

impl<'de, E: Error> SeqAccess<'de> for Elements<'_, E> {
    type Error = E;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, E> {
        match self {
            Elements::Bytes(bytes) => {
                bytes.next().map(|byte| seed.deserialize(Byte(byte, PhantomData))).transpose()
            }
            Elements::Values(place, node, values, total) => {
                let done = *total - values.len();
                let Some(value) = values.next() else { return Ok(None) };
                memory::element::<T::Value>(done, *total).map_err(E::custom)?;
                seed.deserialize(place.inside(*node, value)).map(Some)
            }
        }
    }

    fn size_hint(&self) -> Option<usize> {
        match self {
            Elements::Bytes(bytes) => Some(bytes.len()),
            Elements::Values(_, _, values, _) => Some(values.len()),
        }
    }
}

/// An element of a `byte[]`, as a `u8` or an `i8`.
struct Byte<E>(u8, PhantomData<E>);

impl<'de, E: Error> Deserializer<'de> for Byte<E> {
    type Error = E;

    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_i8(self.0 as i8)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_u8(self.0)
    }

    serde::forward_to_deserialize_any! {
        bool i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// The entries of a map.
pub(super) struct Entries<'a, E> {
    place: Typed<'a, E>,
    nodes: (NodeId, NodeId),
    entries: std::vec::IntoIter<(Value, Value)>,
    /// How many there are.
    total: usize,
    value: Option<Value>,
}

impl<'a, E: Error> Entries<'a, E> {
    /// Those of the value, if it is what is declared.
    pub(super) fn of(mut place: Typed<'a, E>) -> Result<Self, Typed<'a, E>> {
        let value = std::mem::replace(&mut place.value, Value::Null);
        match (&place.node().kind, value) {
            (Kind::Map(_, key, value), Value::Map(map))
                if place.any_class
                    || is_of_library(&map.class)
                    || map.class == place.shape.class_name(place.node) =>
            {
                let nodes = (*key, *value);
                let total = map.entries.len();
                Ok(Self { place, nodes, entries: map.entries.into_iter(), total, value: None })
            }
            (_, value) => {
                place.value = value;
                Err(place)
            }
        }
    }
}

impl<'de, E: Error> MapAccess<'de> for Entries<'_, E> {
    type Error = E;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, E> {
        let done = self.total - self.entries.len();
        let Some((key, value)) = self.entries.next() else { return Ok(None) };
        memory::element::<K::Value>(done, self.total).map_err(E::custom)?;
        self.value = Some(value);
        seed.deserialize(self.place.inside(self.nodes.0, key)).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, E> {
        let Some(value) = self.value.take() else { return Err(super::changed()) };
        let done = self.total - self.entries.len() - 1;
        memory::element::<T::Value>(done, self.total).map_err(E::custom)?;
        seed.deserialize(self.place.inside(self.nodes.1, value))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}
