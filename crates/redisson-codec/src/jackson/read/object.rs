//! Objects: properties in any order, and those that Java left out.

use serde::de::value::{StrDeserializer, UnitDeserializer};
use serde::de::{self, DeserializeSeed, IntoDeserializer};

use super::ValueReader;
use crate::jackson::failure::{Failure, Outcome};
use crate::jackson::node::{Is, Key, Node};
use crate::java::shape::{self, Kind, NodeId};

/// What Java left out.
static NULL: Node<'static> = Node { at: 0, is: Is::Null };

/// The fields that were there.
pub(super) struct FieldSet {
    /// So that most structs need no memory for it.
    first: u64,
    others: Vec<bool>,
}

impl FieldSet {
    pub(super) fn new(fields: usize) -> Self {
        Self { first: 0, others: vec![false; fields.saturating_sub(64)] }
    }

    fn add(&mut self, field: usize) {
        match field.checked_sub(64) {
            None => self.first |= 1 << field,
            Some(other) => self.others[other] = true,
        }
    }

    fn has(&self, field: usize) -> bool {
        match field.checked_sub(64) {
            None => self.first >> field & 1 == 1,
            Some(other) => self.others[other],
        }
    }
}

pub(super) struct ObjectReader<'n, 'a, I> {
    pub(super) reader: ValueReader<'n, 'a>,
    pub(super) fields: &'static [shape::Field],
    /// Java writes them in this order, so that the next one is most likely the next one here.
    pub(super) sorted: &'static [usize],
    pub(super) next: usize,
    pub(super) left: I,
    /// The value of the field whose name was read; that of a field which is not known is skipped.
    pub(super) value: Option<(Option<NodeId>, &'n Node<'a>)>,
    pub(super) seen: FieldSet,
    /// How many of the fields have been looked at for being left out.
    pub(super) missing: usize,
}

impl<I> ObjectReader<'_, '_, I> {
    fn find(&mut self, name: &str) -> Option<usize> {
        let guess = self.sorted[self.next.min(self.sorted.len())..]
            .iter()
            .position(|&at| self.fields[at].name == name)
            .map(|ahead| self.next + ahead);
        let place = guess.or_else(|| self.sorted.iter().position(|&at| self.fields[at].name == name))?;
        self.next = place + 1;
        Some(self.sorted[place])
    }

    /// A field that Java left out because it is null, and which can be.
    fn left_out(&mut self) -> Option<usize> {
        while self.missing < self.fields.len() {
            let at = self.missing;
            self.missing += 1;
            let node = &self.reader.shape.nodes[self.fields[at].node];
            if !self.seen.has(at) && (node.nullable || matches!(node.kind, Kind::Value | Kind::Optional(_))) {
                return Some(at);
            }
        }
        None
    }
}

impl<'de, 'n, 'a: 'n, I: Iterator<Item = &'n (Key<'a>, Node<'a>)>> de::MapAccess<'de>
    for ObjectReader<'n, 'a, I>
{
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Outcome<Option<K::Value>> {
        if let Some((key, value)) = self.left.next() {
            let name = key.text();
            let field = self.find(&name);
            if let Some(at) = field {
                self.seen.add(at);
            }
            self.value = Some((field.map(|at| self.fields[at].node), value));
            let name: StrDeserializer<'_, Failure> = (&*name).into_deserializer();
            return seed.deserialize(name).map(Some).map_err(|failure| failure.at(value.at));
        }
        let Some(at) = self.left_out() else { return Ok(None) };
        self.value = Some((Some(self.fields[at].node), &NULL));
        let name: StrDeserializer<'_, Failure> = self.fields[at].name.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Outcome<V::Value> {
        match self.value.take() {
            Some((Some(id), node)) => {
                let reader = self.reader.inner(id, node);
                // What was left out is at no offset.
                let at = if std::ptr::eq(node, &NULL) { self.reader.node.at } else { node.at };
                seed.deserialize(reader).map_err(|failure| failure.at(at))
            }
            _ => seed.deserialize(UnitDeserializer::new()),
        }
    }
}
