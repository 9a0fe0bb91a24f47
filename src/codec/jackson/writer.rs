//! From a value through serde to nodes, with the classes that Redisson's mapper writes.
//!
//! The class of an object is its first property, `@class`; that of anything else is in front of it, in a list of two.
//! Whether it is written at all depends on what the field declares: nothing stands in front of what can be of one class
//! only. `Long` is the exception, since Redisson wants to read it as one.

use serde::ser::{self, Impossible, Serialize, Serializer};

use super::failure::Failure;
use super::node::{Is, Key, MAX_DEPTH, Node};
use super::value;
use crate::codec::java::class::ClassKind;
use crate::codec::java::handover;
use crate::codec::java::marker::{Marker, marker};
use crate::codec::java::shape::{self, Form, Kind, NodeId, Shape};
use crate::codec::number::java_text;

type Done = Node<'static>;

pub(super) fn write<T: Serialize>(value: &T, shape: &'static Shape) -> Result<Done, Failure> {
    value.serialize(Writer { shape, id: shape.root(), place: Place::Root, depth: 0, optional: false })
}

/// Where a value stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    /// Here the class of the value itself decides, as nothing declares it.
    Root,
    Field,
    /// Of a list, set or map, which hold references only.
    Element,
    Array,
}

#[derive(Clone, Copy)]
struct Writer {
    shape: &'static Shape,
    id: NodeId,
    place: Place,
    depth: usize,
    /// Inside of a `java.util.Optional`, which only a null one may be.
    optional: bool,
}

impl Writer {
    fn node(&self) -> &'static shape::Node {
        &self.shape.nodes[self.id]
    }

    /// Declared as something that has classes below it.
    fn open(&self) -> bool {
        self.node().object && self.place != Place::Root
    }

    fn inner(&self, id: NodeId, place: Place) -> Result<Writer, Failure> {
        // A list and its class are two.
        let depth = self.depth + 2;
        if depth > 2 * MAX_DEPTH {
            return Err(Failure::new(format!("a value of more than {MAX_DEPTH} levels is too deep")));
        }
        Ok(Writer { id, place, depth, ..*self })
    }

    /// A value of a final class.
    fn last(&self, class: &'static str, is: Is<'static>) -> Done {
        if self.open() { Node::wrapped(class, is) } else { is.into() }
    }

    fn integer(&self, value: i64) -> Result<Done, Failure> {
        let node = self.node();
        let is = Is::Int(value);
        Ok(match node.kind {
            Kind::Byte => self.last("java.lang.Byte", is),
            Kind::Short => self.last("java.lang.Short", is),
            Kind::Integer => is.into(),
            Kind::Long => {
                let primitive = !node.nullable && matches!(self.place, Place::Field | Place::Array);
                if primitive && !self.open() { is.into() } else { Node::wrapped("java.lang.Long", is) }
            }
            _ => return Err(self.other("an integer")),
        })
    }

    /// What is written is not what is read, so that the shape is of no use.
    fn other(&self, found: &str) -> Failure {
        let kind = &self.node().kind;
        Failure::new(format!("the type writes {found} where it reads {}", name(kind)))
    }

    fn character(&self, c: char) -> Done {
        self.last("java.lang.Character", Is::Text(c.to_string().into()))
    }
}

fn name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Struct(_) => "an object",
        Kind::Enum(_) => "an enum",
        Kind::Map(..) => "a map",
        Kind::Collection(..) | Kind::Array(_) | Kind::EnumSet(..) => "a list",
        Kind::String | Kind::Text(_) | Kind::Character => "text",
        Kind::Bytes => "bytes",
        Kind::Boolean => "a boolean",
        Kind::Value | Kind::Scalar(_) | Kind::Optional(_) => "a value of `java`",
        _ => "another number",
    }
}

/// The name that Jackson has for a set of an enum.
pub(super) fn enum_set_class(element: &str) -> String {
    format!("java.util.EnumSet<{element}>")
}

/// Whether an array of these has its class in front.
fn is_final(shape: &Shape, element: NodeId) -> bool {
    let node = &shape.nodes[element];
    match node.kind {
        Kind::Array(element) => is_final(shape, element),
        // By Redisson's doing.
        Kind::Long => !node.nullable && !node.object,
        _ => shape.is_final(element),
    }
}

fn no_java(what: &str) -> Failure {
    Failure::new(format!("{what} is no Java value"))
}

impl Serializer for Writer {
    type Ok = Done;
    type Error = Failure;
    type SerializeSeq = Elements;
    type SerializeTuple = Impossible<Done, Failure>;
    type SerializeTupleStruct = Impossible<Done, Failure>;
    type SerializeTupleVariant = Impossible<Done, Failure>;
    type SerializeMap = Entries;
    type SerializeStruct = Fields;
    type SerializeStructVariant = Impossible<Done, Failure>;

    fn serialize_bool(self, value: bool) -> Result<Done, Failure> {
        Ok(Is::Bool(value).into())
    }

    fn serialize_i8(self, value: i8) -> Result<Done, Failure> {
        self.integer(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<Done, Failure> {
        self.integer(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<Done, Failure> {
        self.integer(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result<Done, Failure> {
        self.integer(value)
    }

    fn serialize_u8(self, _: u8) -> Result<Done, Failure> {
        Err(self.other("a `u8`"))
    }

    fn serialize_u16(self, value: u16) -> Result<Done, Failure> {
        match char::from_u32(value.into()) {
            Some(c) => Ok(self.character(c)),
            None => Err(Failure::new("half of a surrogate pair cannot be written as text")),
        }
    }

    fn serialize_u32(self, _: u32) -> Result<Done, Failure> {
        Err(no_java("a `u32`"))
    }

    fn serialize_u64(self, _: u64) -> Result<Done, Failure> {
        Err(no_java("a `u64`"))
    }

    fn serialize_f32(self, value: f32) -> Result<Done, Failure> {
        Ok(self.last("java.lang.Float", Is::Float(value)))
    }

    fn serialize_f64(self, value: f64) -> Result<Done, Failure> {
        if value.is_finite() {
            Ok(Is::Double(value).into())
        } else {
            Ok(self.last("java.lang.Double", Is::Double(value)))
        }
    }

    fn serialize_char(self, value: char) -> Result<Done, Failure> {
        match u16::try_from(u32::from(value)) {
            Ok(_) => Ok(self.character(value)),
            Err(_) => Err(Failure::new("a character beyond U+FFFF is not one `char` in Java")),
        }
    }

    fn serialize_str(self, value: &str) -> Result<Done, Failure> {
        let text = Is::Text(value.to_owned().into());
        match &self.node().kind {
            Kind::Text(class) if value::is_time(class.name) => Err(refused(class.name)),
            Kind::Text(class) if !class.is_final => Ok(Node::wrapped(class.name, text)),
            Kind::Text(class) => Ok(self.last(class.name, text)),
            Kind::Character => Err(self.other("text")),
            _ => Ok(text.into()),
        }
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<Done, Failure> {
        Ok(self.last("[B", Is::Bytes(value.to_vec().into())))
    }

    fn serialize_none(self) -> Result<Done, Failure> {
        Ok(Is::Null.into())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Done, Failure> {
        if self.optional {
            return Err(refused("java.util.Optional"));
        }
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Done, Failure> {
        Err(no_java("`()`"))
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Done, Failure> {
        Err(no_java("a struct without fields"))
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Done, Failure> {
        let Kind::Enum(at) = self.node().kind else { return Err(self.other("an enum")) };
        let shape = &self.shape.enums[at];
        let below = shape.form == Form::Abstract && self.place != Place::Root;
        let text = Is::Text(variant.into());
        Ok(if below || self.open() { Node::wrapped(&shape.class[..], text) } else { text.into() })
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        inside: &T,
    ) -> Result<Done, Failure> {
        match marker(name) {
            Some(Marker::Value) => {
                let value = handover::ask(inside).ok_or_else(|| self.other("something else"))?;
                value::write(value, self.place == Place::Root)
            }
            Some(Marker::Class(class)) => match class.kind {
                ClassKind::Scalar(_) => {
                    let value = handover::ask(inside).ok_or_else(|| self.other("something else"))?;
                    value::write(value, self.place == Place::Root)
                }
                ClassKind::Optional => match self.node().kind {
                    Kind::Optional(id) => inside.serialize(Writer { id, optional: true, ..self }),
                    _ => Err(self.other("an Optional")),
                },
                _ => inside.serialize(self),
            },
            _ => inside.serialize(self),
        }
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<Done, Failure> {
        Err(no_java("an enum with data"))
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Elements, Failure> {
        let element = match self.node().kind {
            Kind::Bytes => {
                return Ok(Elements { writer: self, element: None, nodes: Vec::new(), bytes: Vec::new() });
            }
            Kind::Collection(_, element) | Kind::EnumSet(_, element) => {
                self.inner(element, Place::Element)?
            }
            Kind::Array(element) => self.inner(element, Place::Array)?,
            _ => return Err(self.other("a list")),
        };
        let nodes = Vec::with_capacity(length.unwrap_or(0));
        Ok(Elements { writer: self, element: Some(element), nodes, bytes: Vec::new() })
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, Failure> {
        Err(no_java("a tuple"))
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, Failure> {
        Err(no_java("a tuple"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Failure> {
        Err(no_java("an enum with data"))
    }

    fn serialize_map(self, length: Option<usize>) -> Result<Entries, Failure> {
        let Kind::Map(class, _, value) = self.node().kind else { return Err(self.other("a map")) };
        let mut entries = Vec::with_capacity(length.unwrap_or(0) + 1);
        entries.push(class_entry(class.name));
        Ok(Entries { value: self.inner(value, Place::Element)?, entries, key: None })
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Fields, Failure> {
        let Kind::Struct(at) = self.node().kind else { return Err(self.other("an object")) };
        let fields = self.shape.structs[at].fields.iter().map(|_| None).collect();
        Ok(Fields { writer: self.inner(self.id, self.place)?, open: self.open(), at, next: 0, fields })
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Failure> {
        Err(no_java("an enum with data"))
    }
}

pub(super) fn refused(class: &str) -> Failure {
    Failure::new(format!("Redisson's Jackson codecs write no {class}"))
}

pub(super) const CLASS: &str = "@class";

pub(super) fn class_entry(class: &'static str) -> (Key<'static>, Done) {
    (Key::Text(CLASS.into()), Node::text(class))
}

struct Elements {
    writer: Writer,
    /// `None`: these are bytes.
    element: Option<Writer>,
    nodes: Vec<Done>,
    bytes: Vec<u8>,
}

impl ser::SerializeSeq for Elements {
    type Ok = Done;
    type Error = Failure;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        match self.element {
            Some(element) => self.nodes.push(value.serialize(element)?),
            None => self.bytes.push(value.serialize(OneByte)?),
        }
        Ok(())
    }

    fn end(self) -> Result<Done, Failure> {
        let Elements { writer, nodes, bytes, .. } = self;
        let shape = writer.shape;
        Ok(match writer.node().kind {
            Kind::Collection(class, _) => Node::wrapped(class.name, Is::Array(nodes)),
            Kind::EnumSet(_, element) => {
                let Kind::Enum(at) = shape.nodes[element].kind else { return Err(writer.other("a set")) };
                // The class of the set says that of its constants.
                let constants = nodes.into_iter().map(value::unwrapped).collect();
                Node::wrapped(enum_set_class(&shape.enums[at].class), Is::Array(constants))
            }
            Kind::Array(element) => {
                let of = &shape.nodes[element];
                // A `char[]` is one text.
                let text = of.kind == Kind::Character && !of.nullable && !of.object;
                let open = writer.open() || !is_final(shape, element);
                let is = match (text, open) {
                    (true, _) => Is::Text(nodes.iter().filter_map(value::as_text).collect::<String>().into()),
                    (_, true) => Is::Array(nodes),
                    (_, false) => Is::Bare(nodes),
                };
                if open { Node::wrapped(shape.array_class(writer.id), is) } else { is.into() }
            }
            _ => writer.last("[B", Is::Bytes(bytes.into())),
        })
    }
}

struct Entries {
    value: Writer,
    entries: Vec<(Key<'static>, Done)>,
    key: Option<Key<'static>>,
}

impl ser::SerializeMap for Entries {
    type Ok = Done;
    type Error = Failure;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Failure> {
        self.key = Some(key.serialize(OneKey)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        let value = value.serialize(self.value)?;
        // Redisson leaves them out.
        if let Some(key) = self.key.take()
            && value.is != Is::Null
        {
            self.entries.push((key, value));
        }
        Ok(())
    }

    fn end(self) -> Result<Done, Failure> {
        Ok(Is::Object(self.entries).into())
    }
}

struct Fields {
    writer: Writer,
    open: bool,
    at: usize,
    /// The field that most likely is the next one.
    next: usize,
    fields: Vec<Option<Done>>,
}

impl ser::SerializeStruct for Fields {
    type Ok = Done;
    type Error = Failure;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Failure> {
        let fields = &self.writer.shape.structs[self.at].fields;
        let expected = fields.get(self.next).filter(|field| field.name == name).map(|_| self.next);
        let Some(at) = expected.or_else(|| fields.iter().position(|field| field.name == name)) else {
            return Err(Failure::new(format!("the type writes the field `{name}`, and does not read it")));
        };
        self.next = at + 1;
        let field = value.serialize(Writer { id: fields[at].node, place: Place::Field, ..self.writer })?;
        self.fields[at] = Some(field);
        Ok(())
    }

    fn end(mut self) -> Result<Done, Failure> {
        let shape = &self.writer.shape.structs[self.at];
        let mut entries = Vec::with_capacity(shape.fields.len() + 1);
        if self.open || shape.form == Form::Plain {
            entries.push(class_entry(&shape.class));
        }
        for &at in &shape.sorted {
            if let Some(value) = self.fields[at].take()
                && value.is != Is::Null
            {
                entries.push((Key::Text(shape.fields[at].name.into()), value));
            }
        }
        Ok(Is::Object(entries).into())
    }
}

macro_rules! refuse {
    ($self:ident $why:expr; $($method:ident($($kind:ty),*) -> $ok:ty;)*) => {$(
        fn $method($self, $(_: $kind),*) -> Result<$ok, Failure> {
            Err($why)
        }
    )*};
}

macro_rules! refuse_compounds {
    ($ok:ty, $why:expr) => {
        type Ok = $ok;
        type Error = Failure;
        type SerializeSeq = Impossible<$ok, Failure>;
        type SerializeTuple = Impossible<$ok, Failure>;
        type SerializeTupleStruct = Impossible<$ok, Failure>;
        type SerializeTupleVariant = Impossible<$ok, Failure>;
        type SerializeMap = Impossible<$ok, Failure>;
        type SerializeStruct = Impossible<$ok, Failure>;
        type SerializeStructVariant = Impossible<$ok, Failure>;

        refuse! { self $why;
            serialize_u32(u32) -> $ok;
            serialize_u64(u64) -> $ok;
            serialize_bytes(&[u8]) -> $ok;
            serialize_none() -> $ok;
            serialize_unit() -> $ok;
            serialize_unit_struct(&'static str) -> $ok;
            serialize_seq(Option<usize>) -> Self::SerializeSeq;
            serialize_tuple(usize) -> Self::SerializeTuple;
            serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
            serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
            serialize_map(Option<usize>) -> Self::SerializeMap;
            serialize_struct(&'static str, usize) -> Self::SerializeStruct;
            serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
        }

        fn serialize_newtype_variant<T: Serialize + ?Sized>(
            self,
            _: &'static str,
            _: u32,
            _: &'static str,
            _: &T,
        ) -> Result<$ok, Failure> {
            Err($why)
        }
    };
}

/// An element of a list of bytes.
struct OneByte;

fn no_byte() -> Failure {
    Failure::new("the type writes something else where it reads a byte")
}

impl Serializer for OneByte {
    refuse_compounds!(u8, no_byte());

    refuse! { self no_byte();
        serialize_bool(bool) -> u8;
        serialize_i16(i16) -> u8;
        serialize_i32(i32) -> u8;
        serialize_i64(i64) -> u8;
        serialize_u16(u16) -> u8;
        serialize_f32(f32) -> u8;
        serialize_f64(f64) -> u8;
        serialize_char(char) -> u8;
        serialize_str(&str) -> u8;
        serialize_unit_variant(&'static str, u32, &'static str) -> u8;
    }

    fn serialize_u8(self, value: u8) -> Result<u8, Failure> {
        Ok(value)
    }

    fn serialize_i8(self, value: i8) -> Result<u8, Failure> {
        Ok(value as u8)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<u8, Failure> {
        Err(no_byte())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        inside: &T,
    ) -> Result<u8, Failure> {
        inside.serialize(self)
    }
}

/// The key of a map's entry.
struct OneKey;

fn no_key() -> Failure {
    Failure::new("a map's key is text, a number, a boolean, an enum or a UUID")
}

fn key<T: ToString>(value: T) -> Result<Key<'static>, Failure> {
    Ok(Key::Text(value.to_string().into()))
}

impl Serializer for OneKey {
    refuse_compounds!(Key<'static>, no_key());

    refuse! { self no_key();
        serialize_u8(u8) -> Key<'static>;
    }

    fn serialize_bool(self, value: bool) -> Result<Key<'static>, Failure> {
        key(value)
    }

    fn serialize_i8(self, value: i8) -> Result<Key<'static>, Failure> {
        key(value)
    }

    fn serialize_i16(self, value: i16) -> Result<Key<'static>, Failure> {
        key(value)
    }

    fn serialize_i32(self, value: i32) -> Result<Key<'static>, Failure> {
        key(value)
    }

    fn serialize_i64(self, value: i64) -> Result<Key<'static>, Failure> {
        Ok(Key::Long(value))
    }

    fn serialize_u16(self, value: u16) -> Result<Key<'static>, Failure> {
        char::from_u32(value.into()).ok_or_else(no_key).and_then(key)
    }

    fn serialize_f32(self, value: f32) -> Result<Key<'static>, Failure> {
        key(crate::codec::number::java_float(value))
    }

    fn serialize_f64(self, value: f64) -> Result<Key<'static>, Failure> {
        key(java_text(value))
    }

    fn serialize_char(self, value: char) -> Result<Key<'static>, Failure> {
        key(value)
    }

    fn serialize_str(self, value: &str) -> Result<Key<'static>, Failure> {
        key(value)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Key<'static>, Failure> {
        value.serialize(self)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Key<'static>, Failure> {
        Ok(Key::Text(variant.into()))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        inside: &T,
    ) -> Result<Key<'static>, Failure> {
        match marker(name) {
            Some(Marker::Value | Marker::Class(_)) => match handover::ask(inside) {
                Some(value) => value::key(&value).ok_or_else(no_key),
                None => inside.serialize(self),
            },
            _ => inside.serialize(self),
        }
    }
}
