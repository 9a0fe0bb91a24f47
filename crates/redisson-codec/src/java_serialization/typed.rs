//! From a [`Value`] to a Rust type, by its shape.

mod parts;

use std::marker::PhantomData;

use serde::de::value::StringDeserializer;
use serde::de::{Deserializer, Error, IntoDeserializer, Visitor};

use crate::java::known_classes::{Class, ClassKind, known};
use crate::java::shape::{Choice, Kind, Node, NodeId, Shape, Variant};
use crate::java::type_hint::{TypeHint, type_hint};
use crate::java::variant::VariantReader;
use crate::java::{Constant, Value, value_slot};
use crate::shown::shown;

use parts::{Elements, Entries, Fields};

/// A place in the type, and the value for it.
pub(crate) struct Typed<'a, E> {
    shape: &'a Shape,
    node: NodeId,
    value: Value,
    any_class: bool,
    error: PhantomData<E>,
}

fn changed<E: Error>() -> E {
    E::custom("its `Deserialize` asks for something else than it did at first")
}

impl<'a, E: Error> Typed<'a, E> {
    pub(crate) fn new(shape: &'a Shape, node: NodeId, value: Value, any_class: bool) -> Self {
        Self { shape, node, value, any_class, error: PhantomData }
    }

    /// A value in this one.
    fn inside(&self, node: NodeId, value: Value) -> Typed<'a, E> {
        Typed { node, value, ..*self }
    }

    fn node(&self) -> &'a Node {
        &self.shape.nodes[self.node]
    }

    #[cold]
    fn wrong(&self) -> E {
        let (expected, found) = (self.shape.class_name(self.node), shown(self.value.class()));
        match self.value {
            Value::Null => E::custom(format_args!("expected `{expected}`, found a null")),
            _ => E::custom(format_args!("expected the class `{expected}`, found `{found}`")),
        }
    }

    /// Whether a class is the declared one, or may be instead of it.
    fn is(&self, declared: &str, found: &str) -> bool {
        self.any_class || declared == found
    }

    /// The variant for the class of the value. One of exactly this class comes before those that also take
    /// others.
    fn variant(&self, choice: &'a Choice) -> Option<&'a Variant> {
        let find = |fits: &dyn Fn(&Variant) -> bool| choice.variants.iter().find(|variant| fits(variant));
        let kind = |variant: &Variant| &self.shape.nodes[variant.node].kind;
        find(&|variant| {
            *kind(variant) != Kind::Value && self.shape.class_name(variant.node) == self.value.class()
        })
        .or_else(|| {
            find(&|variant| match (kind(variant), &self.value) {
                (Kind::Collection(..), Value::Collection(_) | Value::EnumSet(_)) => true,
                (Kind::EnumSet(..), Value::Collection(_) | Value::EnumSet(_)) => true,
                (Kind::Map(..), Value::Map(_)) => true,
                (Kind::Choice(at), _) => self.variant(&self.shape.choices[*at]).is_some(),
                _ => false,
            })
        })
        .or_else(|| find(&|variant| *kind(variant) == Kind::Value))
    }

    /// A text that is written in the way of a class.
    fn is_text(declared: &Class, found: &str) -> bool {
        // A `ZoneId` is one of two classes.
        declared.name == found || declared.name == "java.time.ZoneRegion" && found == "java.time.ZoneOffset"
    }
}

macro_rules! primitives {
    ($($method:ident $kind:ident => $visit:ident;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
            match (&self.node().kind, &self.value) {
                (Kind::$kind, Value::$kind(value)) => visitor.$visit(*value),
                (Kind::$kind, _) => Err(self.wrong()),
                _ => Err(changed()),
            }
        }
    )*};
}

impl<'de, E: Error> Deserializer<'de> for Typed<'_, E> {
    type Error = E;

    primitives! {
        deserialize_bool Boolean => visit_bool;
        deserialize_i8 Byte => visit_i8;
        deserialize_i16 Short => visit_i16;
        deserialize_u16 Character => visit_u16;
        deserialize_i32 Integer => visit_i32;
        deserialize_i64 Long => visit_i64;
        deserialize_f32 Float => visit_f32;
        deserialize_f64 Double => visit_f64;
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        match self.value {
            Value::Character(unit) => match char::from_u32(unit.into()) {
                Some(char) => visitor.visit_char(char),
                None => Err(E::custom("half of a surrogate pair")),
            },
            _ => Err(self.wrong()),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        match (&self.node().kind, self.value) {
            (Kind::String, Value::String(text)) => visitor.visit_string(text),
            (Kind::Text(declared), Value::Text(text)) if Self::is_text(declared, &text.class) => {
                visitor.visit_string(text.text)
            }
            (Kind::String | Kind::Text(_), value) => Err(Typed { value, ..self }.wrong()),
            _ => Err(changed()),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        self.deserialize_byte_buf(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        match self.value {
            Value::Bytes(bytes) => visitor.visit_byte_buf(bytes),
            _ => Err(self.wrong()),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, E> {
        match (type_hint(name), &self.node().kind) {
            (Some(TypeHint::Value), Kind::Value) => value_slot::supply(self.value, visitor),
            (Some(TypeHint::Class(class)), kind) => match (class.kind, kind) {
                (ClassKind::Scalar(_) | ClassKind::Fields(_), _) if self.value.class() == class.name => {
                    value_slot::supply(self.value, visitor)
                }
                (ClassKind::Scalar(_) | ClassKind::Fields(_), _) => Err(self.wrong()),
                // Nothing writes one; a null is taken for one that is empty.
                (ClassKind::Optional, Kind::Optional(inside)) if self.value == Value::Null => {
                    visitor.visit_newtype_struct(self.inside(*inside, Value::Null))
                }
                (ClassKind::Optional, _) => Err(self.wrong()),
                _ => visitor.visit_newtype_struct(self),
            },
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, E> {
        let Kind::Struct(at) = self.node().kind else { return Err(changed()) };
        let class = &self.shape.structs[at];
        match &self.value {
            Value::Object(object) if self.is(&class.class, &object.class) => {
                visitor.visit_map(Fields::new(self, class))
            }
            _ => Err(self.wrong()),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, E> {
        match (&self.node().kind, &self.value) {
            (Kind::Struct(at), Value::Object(object))
                if self.is(&self.shape.structs[*at].class, &object.class) =>
            {
                visitor.visit_unit()
            }
            _ => Err(self.wrong()),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, E> {
        match self.node().kind {
            Kind::Choice(at) => {
                let choice = &self.shape.choices[at];
                match self.variant(choice) {
                    Some(variant) => {
                        let (name, node) = (variant.name, variant.node);
                        visitor.visit_enum(VariantReader { name, value: Typed { node, ..self } })
                    }
                    None => {
                        let (expected, found) = (self.shape.classes(choice), shown(self.value.class()));
                        Err(E::custom(format_args!("expected the class {expected}, found `{found}`")))
                    }
                }
            }
            Kind::Enum(at) => match &self.value {
                Value::Enum(found) if self.is(&self.shape.enums[at].class, &found.class) => {
                    let Constant::Name(name) = &found.constant else { return Err(self.wrong()) };
                    let constant: StringDeserializer<E> = name.clone().into_deserializer();
                    visitor.visit_enum(constant)
                }
                _ => Err(self.wrong()),
            },
            _ => Err(changed()),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        match Elements::of(self) {
            Ok(elements) => visitor.visit_seq(elements),
            Err(place) => Err(place.wrong()),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        match Entries::of(self) {
            Ok(entries) => visitor.visit_map(entries),
            Err(place) => Err(place.wrong()),
        }
    }

    fn is_human_readable(&self) -> bool {
        true
    }

    serde::forward_to_deserialize_any! {
        u8 u32 u64 i128 u128 unit tuple tuple_struct identifier
    }

    /// A field that the type does not have.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_unit()
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, E> {
        Err(changed())
    }
}

/// Whether a list or map of this class may be where another is declared.
fn is_of_library(class: &str) -> bool {
    known(class).is_some() || class.starts_with("java.util.Collections$") || class == "java.util.EnumMap"
}
