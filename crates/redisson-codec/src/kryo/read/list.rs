//! The elements of a list or array.

use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};

use super::super::value;
use super::prefix::{Found, Prefix};
use super::{ValueReader, changed};
use crate::java::known_classes::{Class, ClassKind, Layout};
use crate::java::path::Step;
use crate::java::shape::{Kind, Node, NodeId};
use crate::kryo::failure::{Failure, Outcome};
use crate::memory;

pub(super) struct ListReader<'r, 'a, 'de> {
    pub(super) place: ValueReader<'r, 'a, 'de>,
    /// How many are still to be read, but those of a `byte[]`.
    pub(super) left: usize,
    /// How many there are.
    total: usize,
    kind: ElementSource<'de>,
}

enum ElementSource<'de> {
    Byte(std::slice::Iter<'de, u8>),
    Element(NodeId, Prefix),
}

impl<'de> SeqAccess<'de> for &mut ListReader<'_, '_, 'de> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Outcome<Option<T::Value>> {
        match &mut self.kind {
            ElementSource::Byte(bytes) => match bytes.next() {
                Some(byte) => seed.deserialize(ByteReader(*byte)).map(Some),
                None => Ok(None),
            },
            ElementSource::Element(node, prefix) => {
                if self.left == 0 {
                    return Ok(None);
                }
                memory::element::<T::Value>(self.total - self.left, self.total)?;
                self.left -= 1;
                let start = self.place.reader.input.at;
                let (node, prefix, generic) = (*node, *prefix, self.place.generic);
                match seed.deserialize(self.place.inner(node, prefix, generic)) {
                    Ok(element) => {
                        self.place.reader.input.element_since(start)?;
                        Ok(Some(element))
                    }
                    Err(mut failure) => {
                        let step = Step::Element(self.total - self.left - 1);
                        failure.path().enter(self.place.reader.shape, node, step);
                        Err(failure)
                    }
                }
            }
        }
    }

    fn size_hint(&self) -> Option<usize> {
        match &self.kind {
            ElementSource::Byte(bytes) => Some(bytes.len()),
            ElementSource::Element(..) => Some(self.left.min(self.place.reader.input.left())),
        }
    }
}

impl<'r, 'a, 'de> ValueReader<'r, 'a, 'de> {
    /// What is in front of the elements, and then they themselves.
    #[inline]
    pub(super) fn elements(mut self, found: Found, node: &Node) -> Outcome<ListReader<'r, 'a, 'de>> {
        match (&node.kind, found) {
            (Kind::Bytes, _) => Ok(ListReader {
                kind: ElementSource::Byte(self.bytes()?.iter()),
                place: self,
                left: 0,
                total: 0,
            }),
            (Kind::Array(element), _) => self.array(*element),
            (Kind::Collection(_, element) | Kind::EnumSet(_, element), Found::Known(class)) => {
                self.collection(*element, class)
            }
            _ => Err(changed()),
        }
    }

    #[inline]
    pub(super) fn bytes(&mut self) -> Outcome<&'de [u8]> {
        let input = &mut self.reader.input;
        let length = input.varint()?;
        let count = input.count(length)?;
        input.take(count)
    }

    #[inline]
    fn array(mut self, element: NodeId) -> Outcome<ListReader<'r, 'a, 'de>> {
        let reader = &mut self.reader;
        let length = reader.input.varint()?;
        let left = reader.input.count(length)?;
        let node = reader.node(element);
        let prefix = if node.is_primitive() {
            Prefix::Nothing(Found::Declared)
        } else if let (Kind::Array(_) | Kind::Bytes, false) = (&node.kind, node.object) {
            // The class of an array is final, whatever its elements.
            Prefix::Nullable(Found::Declared)
        } else {
            reader.declared(element)
        };
        self.generic = false;
        Ok(ListReader { place: self, left, total: left, kind: ElementSource::Element(element, prefix) })
    }

    fn collection(mut self, element: NodeId, class: &'static Class) -> Outcome<ListReader<'r, 'a, 'de>> {
        let reader = &mut self.reader;
        let layout = match class.kind {
            ClassKind::Collection(layout) => layout,
            ClassKind::EnumSet => {
                if !matches!(reader.node(element).kind, Kind::Enum(_)) {
                    return Err(reader.no_enum(element));
                }
                let named = reader.input.class()?;
                if let Some(class) = named {
                    reader.check(element, class)?;
                }
                let left = reader.input.varint()?;
                let left = reader.input.count(left.saturating_add(1))?;
                if let Some(class) = named {
                    reader.check_set(element, class, left > 0)?;
                }
                let kind = ElementSource::Element(element, Prefix::Nothing(Found::Declared));
                return Ok(ListReader { place: self, left, total: left, kind });
            }
            _ => return Err(changed()),
        };
        let (left, prefix) = match layout {
            Layout::Empty => (0, Prefix::Class),
            Layout::Singleton => {
                self.generic = false;
                (1, Prefix::Class)
            }
            Layout::Plain | Layout::Sorted | Layout::Immutable => {
                let known = self.generic && reader.node(element).is_final;
                let nullable = layout != Layout::Immutable;
                let (flag, length) = match known && !nullable {
                    true => (false, reader.input.varint()?),
                    false => reader.input.flagged()?,
                };
                let left = reader.input.count(length)?;
                if layout == Layout::Sorted {
                    value::comparator(&mut reader.input)?;
                }
                let prefix = match (left, known, flag) {
                    (0, ..) | (_, false, false) => Prefix::Class,
                    (_, true, true) => Prefix::Nullable(Found::Declared),
                    (_, true, false) => Prefix::Nothing(Found::Declared),
                    // All are of one class, which comes first.
                    (_, false, true) => match reader.input.class()? {
                        None => Prefix::Null,
                        Some(class) => {
                            let found = reader.check(element, class)?;
                            let nulls = nullable && reader.input.boolean()?;
                            if nulls { Prefix::Nullable(found) } else { Prefix::Nothing(found) }
                        }
                    },
                };
                (left, prefix)
            }
        };
        Ok(ListReader { place: self, left, total: left, kind: ElementSource::Element(element, prefix) })
    }
}

/// An element of a `byte[]`, as a `u8` or an `i8`.
struct ByteReader(u8);

impl<'de> Deserializer<'de> for ByteReader {
    type Error = Failure;

    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        visitor.visit_i8(self.0 as i8)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        visitor.visit_u8(self.0)
    }

    serde::forward_to_deserialize_any! {
        bool i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
