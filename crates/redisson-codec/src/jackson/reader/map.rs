//! Maps, whose keys are texts whatever they were.

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};

use super::Reader;
use crate::jackson::failure::Failure;
use crate::jackson::node::{Key, Node};
use crate::jackson::value;
use crate::java::class::ClassKind;
use crate::java::handover;
use crate::java::marker::{Marker, marker};

pub(super) struct Entries<'n, 'a, I> {
    pub(super) reader: Reader<'n, 'a>,
    pub(super) left: I,
    pub(super) value: Option<&'n Node<'a>>,
}

impl<'de, 'n, 'a: 'n, I: Iterator<Item = &'n (Key<'a>, Node<'a>)>> de::MapAccess<'de> for Entries<'n, 'a, I> {
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Failure> {
        let Some((key, value)) = self.left.next() else { return Ok(None) };
        self.value = Some(value);
        seed.deserialize(OneKey(key)).map(Some).map_err(|failure| failure.at(value.at))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Failure> {
        let Some(node) = self.value.take() else { return Err(Failure::new("a value without a key")) };
        let reader = Reader { node, ..self.reader };
        reader.placed(seed.deserialize(reader))
    }
}

/// The key of a map's entry, which is text whatever it was.
struct OneKey<'n, 'a>(&'n Key<'a>);

macro_rules! parsed {
    ($($method:ident $visit:ident;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
            match self.0.text().parse() {
                Ok(key) => visitor.$visit(key),
                Err(_) => Err(Failure::new("expected another kind of key, found one")),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for OneKey<'_, '_> {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
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
        deserialize_char visit_char;
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match value::unit(&self.0.text()) {
            Some(key) => visitor.visit_u16(key),
            None => Err(Failure::new("expected a key of one character")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        let text = self.0.text();
        match marker(name) {
            Some(Marker::Value) => {
                let key = match self.0 {
                    Key::Text(key) => crate::java::Value::from(&key[..]),
                    Key::Number(key) => crate::java::Value::Long(*key),
                };
                handover::give(key, visitor)
            }
            Some(Marker::Class(class)) if matches!(class.kind, ClassKind::Scalar(_)) => {
                let ClassKind::Scalar(kind) = class.kind else { return Err(Failure::new("no key")) };
                match value::scalar_of(kind, &Node::text(&text[..])) {
                    Some(key) => handover::give(key, visitor),
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
    ) -> Result<V::Value, Failure> {
        let text = self.0.text();
        let name: StrDeserializer<'_, Failure> = (&*text).into_deserializer();
        visitor.visit_enum(name)
    }

    serde::forward_to_deserialize_any! {
        i128 u8 u32 u64 u128 str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier
        ignored_any
    }
}
