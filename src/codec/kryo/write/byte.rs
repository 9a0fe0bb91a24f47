//! The elements of an array of bytes.

use serde::ser::{Serialize, Serializer};

use super::super::input::{Fault, Outcome};
use super::super::output::Output;
use super::{No, changed, refuse};

/// An element of a `byte[]`.
pub(super) struct Byte<'w>(pub(super) &'w mut Output);

impl Serializer for Byte<'_> {
    type Ok = ();
    type Error = Fault;
    type SerializeSeq = No;
    type SerializeTuple = No;
    type SerializeTupleStruct = No;
    type SerializeTupleVariant = No;
    type SerializeMap = No;
    type SerializeStruct = No;
    type SerializeStructVariant = No;

    fn serialize_u8(self, value: u8) -> Outcome<()> {
        self.0.byte(value);
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Outcome<()> {
        self.0.byte(value as u8);
        Ok(())
    }

    refuse! {
        serialize_bool(bool) -> ();
        serialize_i16(i16) -> ();
        serialize_i32(i32) -> ();
        serialize_i64(i64) -> ();
        serialize_u16(u16) -> ();
        serialize_u32(u32) -> ();
        serialize_u64(u64) -> ();
        serialize_f32(f32) -> ();
        serialize_f64(f64) -> ();
        serialize_char(char) -> ();
        serialize_str(&str) -> ();
        serialize_bytes(&[u8]) -> ();
        serialize_none() -> ();
        serialize_unit() -> ();
        serialize_unit_struct(&'static str) -> ();
        serialize_unit_variant(&'static str, u32, &'static str) -> ();
        serialize_seq(Option<usize>) -> No;
        serialize_tuple(usize) -> No;
        serialize_tuple_struct(&'static str, usize) -> No;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> No;
        serialize_map(Option<usize>) -> No;
        serialize_struct(&'static str, usize) -> No;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> No;
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Outcome<()> {
        Err(changed())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, _: &T) -> Outcome<()> {
        Err(changed())
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Outcome<()> {
        Err(changed())
    }
}
