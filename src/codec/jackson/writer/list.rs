//! Lists, sets and arrays.

use serde::ser::{self, Impossible, Serialize, Serializer};

use super::{Done, Writer, enum_set_class, is_final};
use crate::codec::jackson::failure::Failure;
use crate::codec::jackson::node::{Is, Node};
use crate::codec::jackson::value;
use crate::codec::java::refuse::refuse;
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
    type Ok = u8;
    type Error = Failure;
    type SerializeSeq = Impossible<u8, Failure>;
    type SerializeTuple = Impossible<u8, Failure>;
    type SerializeTupleStruct = Impossible<u8, Failure>;
    type SerializeTupleVariant = Impossible<u8, Failure>;
    type SerializeMap = Impossible<u8, Failure>;
    type SerializeStruct = Impossible<u8, Failure>;
    type SerializeStructVariant = Impossible<u8, Failure>;

    fn serialize_u8(self, value: u8) -> Result<u8, Failure> {
        Ok(value)
    }

    fn serialize_i8(self, value: i8) -> Result<u8, Failure> {
        Ok(value as u8)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        inside: &T,
    ) -> Result<u8, Failure> {
        inside.serialize(self)
    }

    refuse! {
        no_byte() => bool i16 i32 i64 u16 u32 u64 f32 f64 char str bytes none some unit unit_struct unit_variant
            newtype_variant seq tuple tuple_struct tuple_variant map struct struct_variant
    }
}
