//! The fields of a struct.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, MapAccess};

use super::super::input::{Fault, Outcome};
use super::head::{Found, Head};
use super::{Place, changed};
use crate::java::shape::{Form, StructShape};

/// The fields of a struct, in Java's order.
pub(super) struct Fields<'r, 'a, 'de> {
    pub(super) place: Place<'r, 'a, 'de>,
    pub(super) class: &'a StructShape,
    /// How many were read.
    pub(super) next: usize,
}

impl<'de> MapAccess<'de> for &mut Fields<'_, '_, 'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Outcome<Option<K::Value>> {
        let Some(&field) = self.class.sorted.get(self.next) else { return Ok(None) };
        seed.deserialize(BorrowedStrDeserializer::new(self.class.fields[field].name)).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Outcome<T::Value> {
        let Some(&field) = self.class.sorted.get(self.next) else { return Err(changed()) };
        self.next += 1;
        let node = self.class.fields[field].node;
        let head = match self.place.reader.node(node) {
            declared if declared.is_primitive() => Head::Nothing(Found::Declared),
            _ => self.place.reader.declared(node),
        };
        // Kryo keeps the type arguments of the fields of classes, but not of those of records.
        seed.deserialize(self.place.inner(node, head, self.class.form != Form::Record))
    }
}
