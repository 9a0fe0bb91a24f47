//! From a value through serde to nodes, with the classes that Redisson's mapper writes.
//!
//! The class of an object is its first property, `@class`; that of anything else is in front of it, in a list of two.
//! Whether it is written at all depends on what the field declares: nothing stands in front of what can be of one class
//! only. `Long` is the exception, since Redisson wants to read it as one.

mod list;
mod map;
mod object;

use serde::ser::{Impossible, Serialize, Serializer};

use list::Elements;
use map::Entries;
use object::Fields;

use super::failure::Failure;
use super::node::{Is, Key, MAX_DEPTH, Node};
use super::value;
use crate::codec::java::class::ClassKind;
use crate::codec::java::handover;
use crate::codec::java::marker::{Marker, marker};
use crate::codec::java::shape::{self, Form, Kind, NodeId, Shape};

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
