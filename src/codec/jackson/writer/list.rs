//! Lists, sets and arrays.

use serde::ser::{self, Impossible, Serialize, Serializer};

use super::refuse::{refuse, refuse_compounds};
use super::{Done, Writer, enum_set_class, is_final};
use crate::codec::jackson::failure::Failure;
use crate::codec::jackson::node::{Is, Node};
use crate::codec::jackson::value;
use crate::codec::java::shape::Kind;

pub(super) struct Elements {
    pub(super) writer: Writer,
    /// `None`: these are bytes.
    pub(super) element: Option<Writer>,
    pub(super) nodes: Vec<Done>,
    pub(super) bytes: Vec<u8>,
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
