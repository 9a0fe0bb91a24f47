//! The fields of a struct.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, MapAccess};

use super::prefix::{Found, Prefix};
use super::{ValueReader, changed};
use crate::java::class::class;
use crate::java::shape::{Field, Form, StructShape};
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
        let field = match self.class.sorted.get(self.next) {
            Some(&field) => field,
            None => match self.rest_behind() {
                Some(rest) => rest,
                None => return Ok(None),
            },
        };
        seed.deserialize(BorrowedStrDeserializer::new(self.class.fields[field].name)).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Outcome<T::Value> {
        let Some(&field) = self.class.sorted.get(self.next) else { return self.rest(seed) };
        self.next += 1;
        let node = self.class.fields[field].node;
        let prefix = match self.place.reader.node(node) {
            declared if declared.is_primitive() => Prefix::Nothing(Found::Declared),
            _ => self.place.reader.declared(node),
        };
        // Kryo keeps the type arguments of the fields of classes, but not of those of records.
        let mut read = seed.deserialize(self.place.inner(node, prefix, self.class.form != Form::Record));
        if let Err(failure) = &mut read {
            self.of_field(failure, field);
        }
        read
    }
}

impl<'de> ObjectReader<'_, '_, 'de> {
    /// The field that is none of the class, once, behind the others.
    fn rest_behind(&mut self) -> Option<usize> {
        let rest = self.class.rest.filter(|_| !self.rest)?;
        self.rest = true;
        Some(rest)
    }

    /// Its value: a map that takes no bytes.
    #[cold]
    #[inline(never)]
    fn rest<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Outcome<T::Value> {
        let Some(field) = self.class.rest else { return Err(changed()) };
        let prefix = Prefix::Nothing(Found::Known(class("java.util.Collections$EmptyMap")));
        let mut read = seed.deserialize(self.place.inner(self.class.fields[field].node, prefix, true));
        if let Err(failure) = &mut read {
            self.of_field(failure, field);
        }
        read
    }

    /// Adds the field to the way to what is wrong with its value.
    #[cold]
    fn of_field(&self, failure: &mut Failure, field: usize) {
        let Field { name, node, .. } = &self.class.fields[field];
        failure.path().enter_field(self.place.reader.shape, &self.class.class, name, *node);
    }
}
