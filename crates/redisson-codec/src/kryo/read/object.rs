//! The fields of a struct.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, MapAccess};

use super::prefix::{Found, Prefix};
use super::{ValueReader, changed};
use crate::java::shape::{Form, StructShape};
use crate::kryo::failure::{Failure, Outcome};

/// The fields of a struct, in Java's order.
pub(super) struct ObjectReader<'r, 'a, 'de> {
    pub(super) place: ValueReader<'r, 'a, 'de>,
    pub(super) class: &'a StructShape,
    /// How many were read.
    pub(super) next: usize,
}

impl<'de> MapAccess<'de> for &mut ObjectReader<'_, '_, 'de> {
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Outcome<Option<K::Value>> {
        let Some(&field) = self.class.sorted.get(self.next) else { return Ok(None) };
        seed.deserialize(BorrowedStrDeserializer::new(self.class.fields[field].name)).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Outcome<T::Value> {
        let Some(&field) = self.class.sorted.get(self.next) else { return Err(changed()) };
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
