//! The entries of a map.

use serde::de::{DeserializeSeed, MapAccess};

use super::super::input::{Fault, Outcome};
use super::super::values;
use super::head::Head;
use super::{Place, changed};
use crate::java::class::{Class, ClassKind, Layout};
use crate::java::shape::NodeId;

pub(super) struct Entries<'r, 'a, 'de> {
    pub(super) place: Place<'r, 'a, 'de>,
    /// How many are still to be read.
    pub(super) left: usize,
    key: (NodeId, Head),
    value: (NodeId, Head),
}

impl<'de> MapAccess<'de> for &mut Entries<'_, '_, 'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Outcome<Option<K::Value>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let ((node, head), generic) = (self.key, self.place.generic);
        let start = self.place.reader.input.at;
        let key = seed.deserialize(self.place.inner(node, head, generic))?;
        self.place.reader.input.element_since(start)?;
        Ok(Some(key))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Outcome<T::Value> {
        let ((node, head), generic) = (self.value, self.place.generic);
        seed.deserialize(self.place.inner(node, head, generic))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.min(self.place.reader.input.left()))
    }
}

impl<'r, 'a, 'de> Place<'r, 'a, 'de> {
    /// What is in front of the entries, and then they themselves.
    pub(super) fn entries(
        mut self,
        key: NodeId,
        value: NodeId,
        class: &'static Class,
    ) -> Outcome<Entries<'r, 'a, 'de>> {
        let reader = &mut self.reader;
        let ClassKind::Map(layout) = class.kind else { return Err(changed()) };
        let left = match layout {
            Layout::Empty => 0,
            Layout::Singleton => {
                self.generic = false;
                1
            }
            Layout::Plain | Layout::Sorted | Layout::Immutable => {
                let length = reader.input.varint()?;
                let left = reader.input.count(length)?;
                if layout == Layout::Sorted {
                    values::comparator(&mut reader.input)?;
                }
                left
            }
        };
        let generic = self.generic;
        let head = |node| match reader.declared(node) {
            _ if !generic => Head::Class,
            Head::Nullable(found) if layout == Layout::Immutable => Head::Nothing(found),
            head => head,
        };
        let (key, value) = ((key, head(key)), (value, head(value)));
        Ok(Entries { place: self, left, key, value })
    }
}
