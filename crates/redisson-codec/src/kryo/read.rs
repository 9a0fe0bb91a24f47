//! From a payload to a Rust type, by its shape.

mod constant;
mod list;
mod map;
mod object;
mod prefix;

use std::borrow::Cow;

use serde::de::{Deserializer, Visitor};

use super::input::ClassRef;
use super::{parts_as_text, scalar, small_classes, value};
use crate::java::known_classes::ClassKind;
use crate::java::shape::{Kind, Node, NodeId, Shape};
use crate::java::type_hint::{TypeHint, type_hint};
use crate::java::variant::VariantReader;
use crate::java::{Value, value_slot};
use crate::java_serialization::Typed;
use crate::kryo::failure::{Failure, Outcome};
use crate::memory;

use constant::ConstantReader;
use object::ObjectReader;
use prefix::{Found, Prefix};

pub(super) use prefix::ReadContext;

/// A place in the type, and what is before the value there.
pub(super) struct ValueReader<'r, 'a, 'de> {
    reader: &'r mut ReadContext<'a, 'de>,
    node: NodeId,
    prefix: Prefix,
    /// Whether Kryo knows the type arguments here, as declared by a field.
    generic: bool,
}

impl<'r, 'a, 'de> ValueReader<'r, 'a, 'de> {
    /// The value of a whole payload.
    #[inline]
    pub(super) fn whole(reader: &'r mut ReadContext<'a, 'de>) -> Self {
        let node = reader.shape.root();
        Self { reader, node, prefix: Prefix::Class, generic: false }
    }

    #[inline]
    fn inner(&mut self, node: NodeId, prefix: Prefix, generic: bool) -> ValueReader<'_, 'a, 'de> {
        // An `Object` says nothing of the elements of the list that it is.
        let generic = generic && !self.reader.node(node).object;
        ValueReader { reader: self.reader, node, prefix, generic }
    }
}

/// For the places of which the type asks for something else than what it was traced with.
fn changed() -> Failure {
    Failure::new("its `Deserialize` asks for something else than it did at first")
}

macro_rules! primitives {
    ($($method:ident $kind:ident |$input:ident| $value:expr => $visit:ident;)*) => {$(
        fn $method<V: Visitor<'de>>(mut self, visitor: V) -> Outcome<V::Value> {
            let (_, node) = self.present()?;
            let ($input, Kind::$kind) = (&mut self.reader.input, &node.kind) else { return Err(changed()) };
            visitor.$visit($value)
        }
    )*};
}

impl<'r, 'a, 'de> ValueReader<'r, 'a, 'de> {
    /// What is in front of a value that is not null.
    #[inline]
    fn present(&mut self) -> Outcome<(Found, &'a Node)> {
        match self.reader.prefix(self.node, self.prefix)? {
            Some(found) => Ok((found, self.reader.node(self.node))),
            None => Err(self.reader.unexpected_null(self.node)),
        }
    }

    /// One of several classes.
    fn choice<V: Visitor<'de>>(mut self, at: usize, found: Found, visitor: V) -> Outcome<V::Value> {
        let Found::Any(class) = found else { return Err(changed()) };
        let shape: &'a Shape = self.reader.shape;
        let Some((variant, found)) = self.reader.variant(&shape.choices[at], class) else {
            return Err(self.reader.unexpected_class(self.node, class));
        };
        let value = self.inner(variant.node, Prefix::Nothing(found), false);
        visitor.visit_enum(VariantReader { name: variant.name, value })
    }

    /// A value that Java's own serialization wrote. Apart, since to have all of it inside the usual functions
    /// costs each payload time.
    #[cold]
    #[inline(never)]
    fn serialized<T>(
        self,
        class: ClassRef,
        read: impl FnOnce(Typed<'a, Failure>) -> Outcome<T>,
    ) -> Outcome<T> {
        self.reader.serialized(self.node, class).and_then(read)
    }

    /// A value of [`Value`] or one of its kinds.
    fn value(&mut self) -> Outcome<Value> {
        let found = self.reader.prefix(self.node, self.prefix)?;
        let node = self.reader.node(self.node);
        match (&node.kind, found) {
            (Kind::Value, None) => Ok(Value::Null),
            (Kind::Value, Some(Found::Any(class))) => match self.reader.input.is_behind_first_class() {
                true => value::read_whole(&mut self.reader.input, class),
                false => value::read(&mut self.reader.input, class),
            },
            (Kind::Value, Some(Found::Opaque(class))) => value::opaque(&mut self.reader.input, class),
            (Kind::Scalar(class), Some(_)) => match class.kind {
                ClassKind::Fields(fields) => small_classes::read(&mut self.reader.input, class.name, fields),
                _ => scalar::read(&mut self.reader.input, class),
            },
            (_, None) => Err(self.reader.unexpected_null(self.node)),
            _ => Err(changed()),
        }
    }
}

impl<'r, 'a, 'de> Deserializer<'de> for ValueReader<'r, 'a, 'de> {
    type Error = Failure;

    primitives! {
        deserialize_bool Boolean |input| input.boolean()? => visit_bool;
        deserialize_i8 Byte |input| input.byte()? as i8 => visit_i8;
        deserialize_i16 Short |input| i16::from_le_bytes(input.array()?) => visit_i16;
        deserialize_u16 Character |input| u16::from_le_bytes(input.array()?) => visit_u16;
        deserialize_i32 Integer |input| input.int()? => visit_i32;
        deserialize_i64 Long |input| input.long()? => visit_i64;
        deserialize_f32 Float |input| f32::from_le_bytes(input.array()?) => visit_f32;
        deserialize_f64 Double |input| f64::from_le_bytes(input.array()?) => visit_f64;
    }

    fn deserialize_char<V: Visitor<'de>>(mut self, visitor: V) -> Outcome<V::Value> {
        self.present()?;
        let unit = u16::from_le_bytes(self.reader.input.array()?);
        match char::from_u32(unit.into()) {
            Some(char) => visitor.visit_char(char),
            None => {
                Err(Failure::new(format!("half of a surrogate pair before offset {}", self.reader.input.at)))
            }
        }
    }

    fn deserialize_str<V: Visitor<'de>>(mut self, visitor: V) -> Outcome<V::Value> {
        let (found, node) = self.present()?;
        match (&node.kind, found) {
            (Kind::String, _) => {}
            (Kind::Text(_), Found::Known(class)) | (&Kind::Text(class), _) => {
                return visitor.visit_string(parts_as_text::read(&mut self.reader.input, class)?);
            }
            _ => return Err(changed()),
        }
        let text = self.reader.input.text()?;
        memory::take(text.as_ref().map_or(0, |text| text.len()))?;
        match text {
            Some(Cow::Borrowed(text)) => visitor.visit_borrowed_str(text),
            Some(Cow::Owned(text)) => visitor.visit_string(text),
            None => Err(self.reader.unexpected_null(self.node)),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(mut self, visitor: V) -> Outcome<V::Value> {
        self.present()?;
        visitor.visit_borrowed_bytes(self.bytes()?)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Outcome<V::Value> {
        match self.reader.prefix(self.node, self.prefix)? {
            None => visitor.visit_none(),
            Some(found) => {
                self.prefix = Prefix::Nothing(found);
                visitor.visit_some(self)
            }
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        visitor: V,
    ) -> Outcome<V::Value> {
        match type_hint(name) {
            Some(TypeHint::Value) => value_slot::supply(self.value()?, visitor),
            Some(TypeHint::Class(class)) => match class.kind {
                ClassKind::Scalar(_) | ClassKind::Fields(_) => value_slot::supply(self.value()?, visitor),
                ClassKind::Optional => {
                    let Kind::Optional(inside) = self.reader.node(self.node).kind else {
                        return Err(changed());
                    };
                    // A null is taken for an empty one, whose null is read next.
                    let prefix = match self.reader.prefix(self.node, self.prefix)? {
                        None => Prefix::Null,
                        Some(_) => Prefix::Class,
                    };
                    self.reader.input.deeper()?;
                    let value = visitor.visit_newtype_struct(self.inner(inside, prefix, false))?;
                    self.reader.input.shallower();
                    Ok(value)
                }
                _ => visitor.visit_newtype_struct(self),
            },
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Outcome<V::Value> {
        let (found, node) = self.present()?;
        if let Found::Serialized(class) = found {
            return self.serialized(class, |value| value.deserialize_struct(name, fields, visitor));
        }
        let Kind::Struct(at) = node.kind else { return Err(changed()) };
        let shape: &'a Shape = self.reader.shape;
        let class = &shape.structs[at];
        self.reader.input.deeper()?;
        let mut fields = ObjectReader { place: self, class, next: 0, rest: false, reading: None };
        let mut read = visitor.visit_map(&mut fields);
        match &mut read {
            Ok(_) if fields.next < class.sorted.len() => return Err(changed()),
            Ok(_) => fields.place.reader.input.shallower(),
            Err(failure) => fields.of_field(failure),
        }
        read
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(mut self, _: &'static str, visitor: V) -> Outcome<V::Value> {
        self.present()?;
        visitor.visit_unit()
    }

    fn deserialize_enum<V: Visitor<'de>>(
        mut self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Outcome<V::Value> {
        let (found, node) = self.present()?;
        let at = match node.kind {
            Kind::Enum(at) => at,
            Kind::Choice(at) => return self.choice(at, found, visitor),
            _ => return Err(changed()),
        };
        let declared = &self.reader.shape.enums[at];
        let input = &mut self.reader.input;
        let start = input.at;
        let number = input.varint()? as usize;
        let ordinal = number.wrapping_sub(1);
        let Some(variant) = declared.variants.get(ordinal) else {
            let (class, count) = (&declared.class, declared.variants.len());
            return Err(Failure::new(format!(
                "expected one of the {count} constants of `{class}` at offset {start}, found the number {number}"
            )));
        };
        if let Found::Any(class) = found
            && !input.is_named(class, declared.class_of(ordinal))
        {
            return Err(constant::wrong_class(input, declared, ordinal, class, start));
        }
        visitor.visit_enum(ConstantReader(variant))
    }

    fn deserialize_seq<V: Visitor<'de>>(mut self, visitor: V) -> Outcome<V::Value> {
        let (found, node) = self.present()?;
        if let Found::Serialized(class) = found {
            return self.serialized(class, |value| value.deserialize_seq(visitor));
        }
        self.reader.input.deeper()?;
        let mut elements = self.elements(found, node)?;
        let value = visitor.visit_seq(&mut elements)?;
        if elements.left > 0 {
            return Err(changed());
        }
        elements.place.reader.input.shallower();
        Ok(value)
    }

    fn deserialize_map<V: Visitor<'de>>(mut self, visitor: V) -> Outcome<V::Value> {
        let (found, node) = self.present()?;
        if let Found::Serialized(class) = found {
            return self.serialized(class, |value| value.deserialize_map(visitor));
        }
        let (Kind::Map(_, key, value), Found::Known(class)) = (&node.kind, found) else {
            return Err(changed());
        };
        self.reader.input.deeper()?;
        let mut entries = self.entries(*key, *value, class)?;
        let map = visitor.visit_map(&mut entries)?;
        if entries.left > 0 {
            return Err(changed());
        }
        entries.place.reader.input.shallower();
        Ok(map)
    }

    fn is_human_readable(&self) -> bool {
        true
    }

    serde::forward_to_deserialize_any! {
        u8 u32 u64 i128 u128 unit tuple tuple_struct identifier ignored_any
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Outcome<V::Value> {
        Err(changed())
    }
}
