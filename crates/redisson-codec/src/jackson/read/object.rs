//! Objects: properties in any order, and those that Java left out.

use serde::de::value::{StrDeserializer, UnitDeserializer};
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};

use super::ValueReader;
use super::map::MapReader;
use crate::jackson::failure::{Failure, Outcome};
use crate::jackson::node::{Is, Key, Node};
use crate::java::shape::{Field, Kind, StructShape};

/// What Java left out.
static NULL: Node<'static> = Node { at: 0, is: Is::Null };

/// The fields that were there, by the [first](Field::first) of each.
pub(super) struct FieldSet {
    /// So that most structs need no memory for it.
    first: u64,
    others: Vec<bool>,
}

impl FieldSet {
    #[inline]
    pub(super) fn new(fields: usize) -> Self {
        Self { first: 0, others: vec![false; fields.saturating_sub(64)] }
    }

    #[inline]
    fn add(&mut self, field: usize) {
        match field.checked_sub(64) {
            None => self.first |= 1 << field,
            Some(other) => self.others[other] = true,
        }
    }

    #[inline]
    fn has(&self, field: usize) -> bool {
        match field.checked_sub(64) {
            None => self.first >> field & 1 == 1,
            Some(other) => self.others[other],
        }
    }
}

pub(super) struct ObjectReader<'n, 'a, I> {
    pub(super) reader: ValueReader<'n, 'a>,
    pub(super) class: &'static StructShape,
    /// The property that is the name of the class, if the object has one.
    pub(super) tag: Option<&'static str>,
    /// Java writes the fields in the order of the class, so that the next one most likely is the next here.
    pub(super) next: usize,
    pub(super) left: I,
    /// The value of the field whose name was read; that of a field which is not known is skipped.
    pub(super) value: Option<(Option<usize>, &'n Node<'a>)>,
    /// The field whose value is being read, and where that is.
    pub(super) reading: Option<(usize, u32)>,
    pub(super) seen: FieldSet,
    /// How many of the fields have been looked at for being left out.
    pub(super) missing: usize,
    /// The properties for the field of all other names, if there is one.
    pub(super) others: Vec<&'n (Key<'a>, Node<'a>)>,
}

impl<'n, 'a: 'n, I: Iterator<Item = &'n (Key<'a>, Node<'a>)>> ObjectReader<'n, 'a, I> {
    #[inline]
    fn find(&mut self, name: &str) -> Option<usize> {
        match self.class.ordered.get(self.next) {
            Some(&at) if self.class.fields[at].name == name => {
                self.next += 1;
                Some(at)
            }
            _ => self.find_other(name),
        }
    }

    fn find_other(&mut self, name: &str) -> Option<usize> {
        let (ordered, fields) = (&self.class.ordered, &self.class.fields);
        let is_it = |at: &usize| fields[*at].name == name;
        // Java may have left out some.
        let (before, behind) = ordered.split_at(self.next.min(ordered.len()));
        let ahead = behind.iter().position(is_it).map(|ahead| before.len() + ahead);
        let place = ahead.or_else(|| before.iter().position(is_it))?;
        self.next = place + 1;
        Some(ordered[place])
    }

    /// The field that has the properties of all other names.
    #[inline]
    fn others_field(&self) -> Option<usize> {
        self.class.any.or(self.class.rest)
    }

    /// Whether they are one field of several names.
    fn is_same(&self, field: usize, other: usize) -> bool {
        self.class.fields[field].first == self.class.fields[other].first
    }

    /// A field that Java left out because it is null, and which can be.
    #[inline]
    fn left_out(&mut self) -> Option<usize> {
        while self.missing < self.class.fields.len() {
            let at = self.missing;
            self.missing += 1;
            let Field { first, node, .. } = self.class.fields[at];
            let node = &self.reader.context.shape.nodes[node];
            let nullable = node.nullable || matches!(node.kind, Kind::Value | Kind::Optional(_));
            if nullable && !self.seen.has(first) {
                self.seen.add(first);
                return Some(at);
            }
        }
        None
    }

    /// Says at which field a failure was, if it was at one.
    #[cold]
    pub(super) fn of_field(&self, failure: &mut Failure) {
        let Some((field, at)) = self.reading else { return };
        failure.place(at);
        let Field { name, node, .. } = &self.class.fields[field];
        failure.path().enter_field(self.reader.context.shape, &self.class.class, name, *node);
    }

    /// The key of a field that is not there.
    fn left_out_key<'de, K: DeserializeSeed<'de>>(&mut self, seed: K) -> Outcome<Option<K::Value>> {
        let any = self.others_field().filter(|at| {
            let Field { first, node, .. } = self.class.fields[*at];
            let nullable = self.reader.context.shape.nodes[node].nullable;
            !self.seen.has(first) && (!nullable || !self.others.is_empty())
        });
        let at = match any {
            Some(at) => {
                self.seen.add(self.class.fields[at].first);
                self.value = None;
                at
            }
            None => {
                let Some(at) = self.left_out() else { return Ok(None) };
                self.value = Some((Some(at), &NULL));
                at
            }
        };
        let name: StrDeserializer<'_, Failure> = self.class.fields[at].name.into_deserializer();
        seed.deserialize(name).map(Some)
    }
}

impl<'de, 'n, 'a: 'n, I: Iterator<Item = &'n (Key<'a>, Node<'a>)>> de::MapAccess<'de>
    for ObjectReader<'n, 'a, I>
{
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Outcome<Option<K::Value>> {
        self.reading = None;
        while let Some(entry @ (key, value)) = self.left.next() {
            let name = key.text();
            let field = self.find(&name);
            if field.is_none() && self.tag.is_some_and(|tag| tag == name) {
                continue;
            }
            if let Some(others) = self.others_field()
                && field.is_none_or(|field| self.is_same(field, others))
            {
                self.others.push(entry);
                continue;
            }
            if let Some(at) = field {
                self.seen.add(self.class.fields[at].first);
            }
            self.value = Some((field, value));
            let name: StrDeserializer<'_, Failure> = (&*name).into_deserializer();
            return seed.deserialize(name).map(Some).map_err(|failure| failure.at(value.at));
        }
        self.left_out_key(seed)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Outcome<V::Value> {
        match (self.value.take(), self.others_field()) {
            (Some((Some(field), node)), _) => {
                let reader = self.reader.field(self.class.fields[field].node, node);
                // What was left out is at no offset.
                let at = if std::ptr::eq(node, &NULL) { self.reader.node.at } else { node.at };
                // A failure is looked at where the object ends: here, each value would be moved for it.
                self.reading = Some((field, at));
                seed.deserialize(reader)
            }
            (None, Some(any)) => {
                let Kind::Map(_, _, value) =
                    self.reader.context.shape.nodes[self.class.fields[any].node].kind
                else {
                    return Err(Failure::new("expected a map"));
                };
                let reader = self.reader.field(value, self.reader.node);
                let others = OthersReader { reader, others: std::mem::take(&mut self.others) };
                self.reader.placed(seed.deserialize(others))
            }
            _ => seed.deserialize(UnitDeserializer::new()),
        }
    }
}

/// The properties of all other names, which are a map.
struct OthersReader<'n, 'a> {
    /// Of a value of the map.
    reader: ValueReader<'n, 'a>,
    others: Vec<&'n (Key<'a>, Node<'a>)>,
}

impl<'de> Deserializer<'de> for OthersReader<'_, '_> {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        visitor.visit_map(MapReader::new(self.reader, self.others.into_iter()))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Outcome<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
}
