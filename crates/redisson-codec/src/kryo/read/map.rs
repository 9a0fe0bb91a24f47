//! The entries of a map.

use serde::de::{DeserializeSeed, MapAccess};

use super::super::value;
use super::prefix::Prefix;
use super::{ValueReader, changed};
use crate::java::known_classes::{Class, ClassKind, Layout};
use crate::java::path::Step;
use crate::java::shape::NodeId;
use crate::kryo::failure::{Failure, Outcome};
use crate::memory;

pub(super) struct MapReader<'r, 'a, 'de> {
    pub(super) place: ValueReader<'r, 'a, 'de>,
    /// How many are still to be read.
    pub(super) left: usize,
    /// How many there are.
    total: usize,
    key: (NodeId, Prefix),
    value: (NodeId, Prefix),
}

impl<'de> MapAccess<'de> for &mut MapReader<'_, '_, 'de> {
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Outcome<Option<K::Value>> {
        if self.left == 0 {
            return Ok(None);
        }
        memory::element::<K::Value>(self.total - self.left, self.total)?;
        self.left -= 1;
        let ((node, prefix), generic) = (self.key, self.place.generic);
        let start = self.place.reader.input.at;
        match seed.deserialize(self.place.inner(node, prefix, generic)) {
            Ok(key) => {
                self.place.reader.input.element_since(start)?;
                Ok(Some(key))
            }
            Err(mut failure) => {
                let step = Step::Key(self.total - self.left - 1);
                failure.path().enter(self.place.reader.shape, node, step);
                Err(failure)
            }
        }
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Outcome<T::Value> {
        let at = (self.total - self.left).saturating_sub(1);
        memory::element::<T::Value>(at, self.total)?;
        let ((node, prefix), generic) = (self.value, self.place.generic);
        let mut read = seed.deserialize(self.place.inner(node, prefix, generic));
        if let Err(failure) = &mut read {
            failure.path().enter(self.place.reader.shape, node, Step::Element(at));
        }
        read
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.min(self.place.reader.input.left()))
    }
}

impl<'r, 'a, 'de> ValueReader<'r, 'a, 'de> {
    /// What is in front of the entries, and then they themselves.
    pub(super) fn entries(
        mut self,
        key: NodeId,
        value: NodeId,
        class: &'static Class,
    ) -> Outcome<MapReader<'r, 'a, 'de>> {
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
                    value::comparator(&mut reader.input)?;
                }
                left
            }
        };
        let generic = self.generic;
        let prefix = |node| match reader.declared(node) {
            _ if !generic => Prefix::Class,
            Prefix::Nullable(found) if layout == Layout::Immutable => Prefix::Nothing(found),
            prefix => prefix,
        };
        let (key, value) = ((key, prefix(key)), (value, prefix(value)));
        Ok(MapReader { place: self, left, total: left, key, value })
    }
}
