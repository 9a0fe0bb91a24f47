//! The fields of a struct.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, MapAccess};

use super::prefix::{Found, Prefix};
use super::{ValueReader, changed};
use crate::java::known_classes::class;
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
    /// The field whose value is being read.
    pub(super) reading: Option<usize>,
}

impl<'de> MapAccess<'de> for &mut ObjectReader<'_, '_, 'de> {
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Outcome<Option<K::Value>> {
        self.reading = None;
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
        self.reading = Some(field);
        let node = self.class.fields[field].node;
        let prefix = match self.place.reader.node(node) {
            declared if declared.is_primitive() => Prefix::Nothing(Found::Declared),
            _ => self.place.reader.declared(node),
        };
        // Kryo keeps the type arguments of the fields of classes, but not of those of records.
        seed.deserialize(self.place.inner(node, prefix, self.class.form != Form::Record))
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
        self.reading = Some(field);
        seed.deserialize(self.place.inner(self.class.fields[field].node, prefix, true))
    }

    /// Adds the field to the way to what is wrong with its value. Not where that is read, since to move what
    /// is right takes time.
    #[cold]
    pub(super) fn of_field(&self, failure: &mut Failure) {
        let Some(field) = self.reading else { return };
        let Field { name, node, .. } = &self.class.fields[field];
        failure.path().enter_field(self.place.reader.shape, &self.class.class, name, *node);
    }
}
