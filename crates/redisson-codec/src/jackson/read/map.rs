//! Maps, whose keys are texts whatever they were.

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};

use super::ValueReader;
use crate::jackson::failure::{Failure, Outcome};
use crate::jackson::mapper::REDISSON;
use crate::jackson::node::{Is, Key, MAX_DIGITS, Node};
use crate::jackson::value::{self, as_text};
use crate::java::known_classes::{ClassKind, Scalar};
use crate::java::path::Step;
use crate::java::type_hint::{TypeHint, type_hint};
use crate::java::value_slot;
use crate::memory;

pub(super) struct MapReader<'n, 'a, I> {
    /// Of a value.
    reader: ValueReader<'n, 'a>,
    left: I,
    /// How many there are, and at most one more.
    total: usize,
    value: Option<&'n Node<'a>>,
    /// How many entries were begun.
    begun: usize,
}

impl ValueReader<'_, '_> {
    /// Refuses a map that another mapper has written: its class would be an entry of it, and be written back
    /// as one.
    pub(super) fn has_no_class_inside(&self) -> Outcome<()> {
        if self.context.mapper.typing.is_property() {
            return Ok(());
        }
        let Is::Object(entries) = &self.node.is else { return Ok(()) };
        match entries.first() {
            Some((key, class)) if key.text() == "@class" && as_text(class).is_some_and(value::is_map) => {
                Err(Failure::new("found an `@class` in a map").at(class.at))
            }
            _ => Ok(()),
        }
    }
}

impl<'n, 'a: 'n, I: Iterator<Item = &'n (Key<'a>, Node<'a>)>> MapReader<'n, 'a, I> {
    pub(super) fn new(reader: ValueReader<'n, 'a>, entries: I) -> Self {
        let total = entries.size_hint().1.unwrap_or_default();
        Self { reader, left: entries, total, value: None, begun: 0 }
    }

    /// What is wrong with an entry, and where.
    #[cold]
    fn of_entry(&self, failure: Failure, at: u32, step: fn(usize) -> Step) -> Failure {
        let mut failure = failure.at(at);
        failure.path().enter(self.reader.context.shape, self.reader.id, step(self.begun - 1));
        failure
    }
}

impl<'de, 'n, 'a: 'n, I: Iterator<Item = &'n (Key<'a>, Node<'a>)>> de::MapAccess<'de>
    for MapReader<'n, 'a, I>
{
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Outcome<Option<K::Value>> {
        let Some((key, value)) = self.left.next() else { return Ok(None) };
        self.reader.placed(memory::element::<K::Value>(self.begun, self.total).map_err(Failure::from))?;
        self.value = Some(value);
        self.begun += 1;
        seed.deserialize(KeyReader(key))
            .map(Some)
            .map_err(|failure| self.of_entry(failure, value.at, Step::Key))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Outcome<V::Value> {
        let Some(node) = self.value.take() else { return Err(Failure::new("a value without a key")) };
        self.reader.placed(memory::element::<V::Value>(self.begun - 1, self.total).map_err(Failure::from))?;
        let reader = ValueReader { node, ..self.reader };
        seed.deserialize(reader).map_err(|failure| self.of_entry(failure, node.at, Step::Element))
    }
}

/// The key of a map's entry, which is text whatever it was.
struct KeyReader<'n, 'a>(&'n Key<'a>);

macro_rules! parsed {
    ($($method:ident $visit:ident;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
            match self.0.text().parse() {
                Ok(key) => visitor.$visit(key),
                Err(_) => Err(Failure::new("expected another kind of key, found one")),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for KeyReader<'_, '_> {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        visitor.visit_str(&self.0.text())
    }

    parsed! {
        deserialize_bool visit_bool;
        deserialize_i8 visit_i8;
        deserialize_i16 visit_i16;
        deserialize_i32 visit_i32;
        deserialize_i64 visit_i64;
        deserialize_f32 visit_f32;
        deserialize_f64 visit_f64;
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        match value::unit(&self.0.text()) {
            Some(key) => visitor.visit_u16(key),
            None => Err(Failure::new("expected a key of one character")),
        }
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        match value::unit(&self.0.text()).and_then(|unit| char::from_u32(unit.into())) {
            Some(key) => visitor.visit_char(key),
            None => Err(Failure::new("expected a key of one character")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Outcome<V::Value> {
        let text = self.0.text();
        match type_hint(name) {
            Some(TypeHint::Value) => {
                let key = match self.0 {
                    Key::Text(key) => crate::java::Value::from(&key[..]),
                    Key::Number(key) => crate::java::Value::Long(*key),
                };
                value_slot::supply(key, visitor)
            }
            Some(TypeHint::Class(class)) if matches!(class.kind, ClassKind::Scalar(_)) => {
                let ClassKind::Scalar(kind) = class.kind else { return Err(Failure::new("no key")) };
                let key = match kind {
                    Scalar::BigInteger | Scalar::BigDecimal if text.len() > MAX_DIGITS => {
                        return Err(Failure::new(format!(
                            "expected a number of at most {MAX_DIGITS} characters, found one of {}",
                            text.len()
                        )));
                    }
                    // Values of these are numbers, and keys are not.
                    Scalar::BigInteger => text.parse().ok().map(crate::java::Value::BigInteger),
                    Scalar::BigDecimal => text.parse().ok().map(crate::java::Value::BigDecimal),
                    _ => value::scalar_of(kind, &Node::text(&text[..]), &REDISSON),
                };
                match key {
                    Some(key) => value_slot::supply(key, visitor),
                    None => Err(Failure::new(format!("expected a key of the class {}", class.name))),
                }
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Outcome<V::Value> {
        let text = self.0.text();
        let name: StrDeserializer<'_, Failure> = (&*text).into_deserializer();
        visitor.visit_enum(name)
    }

    serde::forward_to_deserialize_any! {
        i128 u8 u32 u64 u128 str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier
        ignored_any
    }
}
