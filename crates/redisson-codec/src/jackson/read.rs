//! From nodes through serde to a value, with or without the classes that Redisson's mapper writes.

mod choice;
mod constant;
mod list;
mod map;
mod object;
mod scalar;

use std::fmt::Display;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Visitor};

use list::{BytesReader, CharactersReader, ListReader};
use map::MapReader;
use object::{FieldSet, ObjectReader};

use super::failure::{Failure, Outcome};
use super::mapper::{Mapper, Typing};
use super::node::{Is, Key, Node};
use super::value::{self, as_text};
use super::write::enum_set_class;
use crate::java::known_classes::ClassKind;
use crate::java::shape::{self, Choice, Kind, NodeId, Shape, Tag};
use crate::java::type_hint::{TypeHint, type_hint};
use crate::java::value_slot;
use crate::java::variant::VariantReader;
use crate::memory;
use crate::shown::shown;

pub(super) fn read<T: DeserializeOwned>(
    node: &Node<'_>,
    shape: &'static Shape,
    any_class: bool,
    mapper: &Mapper,
) -> Outcome<T> {
    let context = ReadContext { shape, any_class, mapper };
    T::deserialize(ValueReader {
        context: &context,
        id: shape.root(),
        node,
        root: true,
        untyped: true,
        open: false,
        in_enum_set: false,
        tag: None,
    })
}

/// What is the same at all places.
struct ReadContext<'n> {
    shape: &'static Shape,
    any_class: bool,
    mapper: &'n Mapper,
}

struct ValueReader<'n, 'a> {
    context: &'n ReadContext<'n>,
    id: NodeId,
    node: &'n Node<'a>,
    root: bool,
    /// Nothing says what the elements of a list here are.
    untyped: bool,
    /// Something is declared here that has others below it, so that a final class is written, too.
    open: bool,
    /// An `EnumSet` is around it, whose class says that of its constants.
    in_enum_set: bool,
    /// The property of the object that is the name of its class.
    tag: Option<&'static str>,
}

// Not derived: the node's lifetimes are no types.
impl Clone for ValueReader<'_, '_> {
    fn clone(&self) -> Self {
        *self
    }
}

impl Copy for ValueReader<'_, '_> {}

type Nodes<'n, 'a> = &'n [Node<'a>];

type Entry<'a> = (Key<'a>, Node<'a>);

/// An object, and its class if it says it.
struct Object<'n, I> {
    class: Option<FoundClass<'n>>,
    entries: I,
}

/// The name of a class and its offset.
type FoundClass<'n> = (&'n str, u32);

impl<'n, 'a> ValueReader<'n, 'a> {
    #[inline]
    fn expected(&self) -> &'static shape::Node {
        &self.context.shape.nodes[self.id]
    }

    /// A field of an object, or what is in the field of all other properties.
    #[inline]
    fn field(&self, id: NodeId, node: &'n Node<'a>) -> ValueReader<'n, 'a> {
        let open = self.context.shape.nodes[id].object;
        ValueReader { id, node, root: false, untyped: false, open, in_enum_set: false, tag: None, ..*self }
    }

    /// An element of a list, or a value of a map.
    #[inline]
    fn element(&self, id: NodeId) -> ValueReader<'n, 'a> {
        let untyped = self.untyped || self.open;
        let kind = &self.expected().kind;
        let in_enum_set = matches!(kind, Kind::EnumSet(..));
        let open = self.context.shape.nodes[id].object || untyped && !matches!(kind, Kind::Array(_));
        ValueReader { id, root: false, untyped, open, in_enum_set, tag: None, ..*self }
    }

    #[cold]
    fn wrong(&self, expected: impl Display) -> Failure {
        Failure::new(format!("expected {expected}, found {}", self.node.kind())).at(self.node.at)
    }

    /// Puts the offset to what the type itself complains of.
    #[inline]
    fn placed<T>(&self, mut read: Outcome<T>) -> Outcome<T> {
        if let Err(failure) = &mut read {
            failure.place(self.node.at);
        }
        read
    }

    #[inline]
    fn check(&self, expected: &str, found: &str, at: u32) -> Outcome<()> {
        if self.context.any_class || expected == found {
            return Ok(());
        }
        Err(Failure::new(format!("expected the class `{expected}`, found `{}`", shown(found))).at(at))
    }

    /// The node behind the class, if a class is there and is the expected one.
    #[inline]
    fn bare(&self, class: &str) -> Outcome<&'n Node<'a>> {
        let (Is::Array(pair) | Is::Bare(pair)) = &self.node.is else { return Ok(self.node) };
        let [found, inside] = &pair[..] else { return Ok(self.node) };
        let Some(name) = as_text(found) else { return Ok(self.node) };
        self.check(class, name, found.at)?;
        Ok(inside)
    }

    /// The entries of an object, and the class in them or in front of them.
    #[inline]
    fn object(&self, expected: &str) -> Outcome<Object<'n, impl Iterator<Item = &'n Entry<'a>>>> {
        let is_property = self.context.mapper.typing.is_property();
        if let Is::Object(entries) = &self.node.is {
            let (class, entries) = value::split_class(entries, is_property);
            return Ok(Object { class, entries });
        }
        let (class, entries) = self.object_behind_class(expected)?;
        let (_, entries) = value::split_class(entries, false);
        Ok(Object { class: Some(class), entries })
    }

    fn object_behind_class(&self, expected: &str) -> Outcome<(FoundClass<'n>, &'n [Entry<'a>])> {
        let (Is::Array(pair) | Is::Bare(pair)) = &self.node.is else { return Err(self.wrong(expected)) };
        let [Node { is: Is::Text(class), at }, Node { is: Is::Object(entries), .. }] = &pair[..] else {
            return Err(self.wrong(expected));
        };
        if self.context.mapper.typing != Typing::Wrapper {
            let why = "found its class in front of it, as `Mapper::wrapper_array` reads it";
            return Err(Failure::new(format!("expected {expected}, {why}")).at(self.node.at));
        }
        Ok(((class, *at), entries))
    }

    /// The elements of a list, and the class in front of them.
    #[inline]
    fn list(&self) -> Outcome<(Option<FoundClass<'n>>, Nodes<'n, 'a>)> {
        let (Is::Array(elements) | Is::Bare(elements)) = &self.node.is else {
            return Err(self.wrong("a list"));
        };
        if self.context.mapper.typing != Typing::Nowhere
            && let [class, Node { is: Is::Array(inside) | Is::Bare(inside), .. }] = &elements[..]
            && let Some(name) = as_text(class)
            && (name.starts_with('[') || name.contains('.'))
        {
            return Ok((Some((name, class.at)), inside));
        }
        Ok((None, elements))
    }

    #[inline]
    fn elements(&self, element: NodeId) -> Outcome<Nodes<'n, 'a>> {
        let (class, elements) = self.list()?;
        let Some((class, at)) = class else { return Ok(elements) };
        match &self.expected().kind {
            Kind::Array(_) => self.check(&self.context.shape.array_class(self.id), class, at)?,
            Kind::EnumSet(..) if !value::is_collection(class) => {
                let constants = match self.context.shape.nodes[element].kind {
                    Kind::Enum(at) => &self.context.shape.enums[at].class[..],
                    _ => "",
                };
                self.check(&enum_set_class(constants), class, at)?;
            }
            Kind::Collection(expected, _) if !value::is_collection(class) => {
                self.check(expected.name, class, at)?
            }
            _ => {}
        }
        Ok(elements)
    }
}

macro_rules! integers {
    ($($method:ident $visit:ident $class:literal;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
            let value = self.integer($class)?;
            self.placed(visitor.$visit(value))
        }
    )*};
}

macro_rules! no_java {
    ($($method:ident $what:literal;)*) => {$(
        fn $method<V: Visitor<'de>>(self, _: V) -> Outcome<V::Value> {
            Err(Failure::custom(concat!($what, " is no Java value")))
        }
    )*};
}

impl<'de> Deserializer<'de> for ValueReader<'_, '_> {
    type Error = Failure;

    integers! {
        deserialize_i8 visit_i8 "java.lang.Byte";
        deserialize_i16 visit_i16 "java.lang.Short";
        deserialize_i32 visit_i32 "java.lang.Integer";
        deserialize_i64 visit_i64 "java.lang.Long";
    }

    no_java! {
        deserialize_u8 "a lone `u8`";
        deserialize_u32 "a `u32`";
        deserialize_u64 "a `u64`";
        deserialize_unit "`()`";
        deserialize_any "what cannot say what it is";
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        let value = self.scalar("java.lang.Boolean", "a boolean", |node| match node.is {
            Is::Bool(value) => Some(value),
            _ => None,
        })?;
        self.placed(visitor.visit_bool(value))
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        let value =
            self.scalar("java.lang.Character", "one character", |node| value::unit(as_text(node)?))?;
        self.placed(visitor.visit_u16(value))
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        let value = self.scalar("java.lang.Character", "one character", |node| {
            char::from_u32(value::unit(as_text(node)?)?.into())
        })?;
        self.placed(visitor.visit_char(value))
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        let value = self.scalar("java.lang.Float", "a number", value::float)?;
        self.placed(visitor.visit_f32(value))
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        let value = self.scalar("java.lang.Double", "a number", value::double)?;
        self.placed(visitor.visit_f64(value))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        if let Kind::Text(class) = self.expected().kind
            && value::is_time(class.name)
        {
            let text = self.time(class.name)?;
            self.placed(memory::take(text.len()).map_err(Failure::from))?;
            return self.placed(visitor.visit_string(text));
        }
        let text = self.text()?;
        self.placed(memory::take(text.len()).map_err(Failure::from))?;
        self.placed(visitor.visit_str(text))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        let bytes = self.bytes()?;
        self.placed(visitor.visit_byte_buf(bytes))
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        match self.node.is {
            Is::Null => self.placed(visitor.visit_none()),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, _: V) -> Outcome<V::Value> {
        Err(Failure::custom("a struct without fields is no Java value"))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Outcome<V::Value> {
        match type_hint(name) {
            Some(TypeHint::Value) => self.placed(value_slot::supply(self.value()?, visitor)),
            Some(TypeHint::Class(class)) => match class.kind {
                ClassKind::Scalar(kind) => {
                    let value = self.scalar(class.name, format_args!("a {}", class.name), |node| {
                        value::typed_scalar_of(kind, node, self.context.mapper)
                    })?;
                    self.placed(value_slot::supply(value, visitor))
                }
                ClassKind::Fields(_) => {
                    let value = self.scalar(class.name, format_args!("a {}", class.name), |node| {
                        value::pattern_of(class, node)
                    })?;
                    self.placed(value_slot::supply(value, visitor))
                }
                ClassKind::Optional => match self.expected().kind {
                    Kind::Optional(id) => visitor.visit_newtype_struct(ValueReader { id, ..self }),
                    _ => Err(self.wrong("another type")),
                },
                _ => visitor.visit_newtype_struct(self),
            },
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        let element = match self.expected().kind {
            Kind::Bytes => {
                let bytes = self.bytes()?;
                return self.placed(visitor.visit_seq(BytesReader(bytes.into_iter())));
            }
            Kind::Collection(_, element) | Kind::EnumSet(_, element) | Kind::Array(element) => element,
            _ => return Err(self.wrong("something else")),
        };
        // A `char[]`.
        if self.context.shape.nodes[element].kind == Kind::Character
            && let Ok(text) = self.scalar("[C", "text", as_text)
        {
            let list = self.placed(CharactersReader::new(text).map_err(Failure::from))?;
            return self.placed(visitor.visit_seq(list));
        }
        let elements = self.elements(element)?;
        let mut list = ListReader::new(self.element(element), elements);
        self.placed(visitor.visit_seq(&mut list))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, _: V) -> Outcome<V::Value> {
        Err(Failure::custom("a tuple is no Java value"))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(self, _: &'static str, _: usize, _: V) -> Outcome<V::Value> {
        Err(Failure::custom("a tuple is no Java value"))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        let Kind::Map(expected, _, id) = &self.expected().kind else { return Err(self.wrong("a map")) };
        let Object { class, entries } = self.object("a map")?;
        if let Some((class, at)) = class
            && !value::is_map(class)
        {
            self.check(expected.name, class, at)?;
        }
        self.has_no_class_inside()?;
        let mut map = MapReader::new(self.element(*id), entries);
        self.placed(visitor.visit_map(&mut map))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Outcome<V::Value> {
        let Kind::Struct(at) = &self.expected().kind else { return Err(self.wrong("an object")) };
        let shape = &self.context.shape.structs[*at];
        let Object { class, entries } = self.object("an object")?;
        if let Some((class, at)) = class {
            self.check(&shape.class, class, at)?;
        }
        let mut fields = ObjectReader {
            reader: self,
            class: shape,
            tag: self.tag,
            next: 0,
            left: entries,
            value: None,
            reading: None,
            seen: FieldSet::new(shape.fields.len()),
            missing: 0,
            others: Vec::new(),
        };
        let mut read = visitor.visit_map(&mut fields);
        if let Err(failure) = &mut read {
            fields.of_field(failure);
            failure.place(self.node.at);
        }
        read
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Outcome<V::Value> {
        let at = match self.expected().kind {
            Kind::Enum(at) => at,
            Kind::Choice(at) => {
                let choice: &'static Choice = &self.context.shape.choices[at];
                let (variant, node) = choice::variant(&self, choice)?;
                let tag = choice.tag.as_ref().and_then(Tag::property);
                let open = self.open || !self.root;
                let value = ValueReader { id: variant.node, node, open, tag, ..self };
                return self.placed(visitor.visit_enum(VariantReader { name: variant.name, value }));
            }
            _ => return Err(self.wrong("something else")),
        };
        let constants = &self.context.shape.enums[at];
        let name = self.scalar(&constants.class, "the name of a constant", as_text)?;
        self.check_bodies(constants, name)?;
        let name: StrDeserializer<'_, Failure> = name.into_deserializer();
        self.placed(visitor.visit_enum(name))
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        visitor.visit_unit()
    }
}
