//! The field of the properties that the struct does not know: a payload without names has none.

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::java::refuse::refuse;
use crate::kryo::failure::{Failure, Outcome};

/// Takes a map without entries, and writes nothing. It has the name of the field.
pub(super) struct OnlyEmpty(pub(super) &'static str);

fn no_names(field: &str) -> Failure {
    Failure::new(format!(
        "the field `{field}` has properties that the class does not have: Kryo writes no names"
    ))
}

impl Serializer for OnlyEmpty {
    type Ok = ();
    type Error = Failure;
    type SerializeSeq = serde::ser::Impossible<(), Failure>;
    type SerializeTuple = serde::ser::Impossible<(), Failure>;
    type SerializeTupleStruct = serde::ser::Impossible<(), Failure>;
    type SerializeTupleVariant = serde::ser::Impossible<(), Failure>;
    type SerializeMap = Self;
    type SerializeStruct = serde::ser::Impossible<(), Failure>;
    type SerializeStructVariant = serde::ser::Impossible<(), Failure>;

    fn serialize_none(self) -> Outcome<()> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Outcome<()> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Outcome<()> {
        value.serialize(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Outcome<Self> {
        Ok(self)
    }

    refuse! {
        super::changed() => bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str bytes unit unit_struct unit_variant
            newtype_variant seq tuple tuple_struct tuple_variant struct struct_variant
    }
}

impl SerializeMap for OnlyEmpty {
    type Ok = ();
    type Error = Failure;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, _: &T) -> Outcome<()> {
        Err(no_names(self.0))
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, _: &T) -> Outcome<()> {
        Err(no_names(self.0))
    }

    fn end(self) -> Outcome<()> {
        Ok(())
    }
}
