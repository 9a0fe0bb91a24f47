//! The elements of an array of bytes.

use serde::ser::Serializer;

use super::super::output::Output;
use super::changed;
use crate::java::refuse::refuse;
use crate::kryo::failure::{Failure, Outcome};

/// An element of a `byte[]`.
pub(super) struct ByteWriter<'w>(pub(super) &'w mut Output);

impl Serializer for ByteWriter<'_> {
    fn serialize_u8(self, value: u8) -> Outcome<()> {
        self.0.byte(value);
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Outcome<()> {
        self.0.byte(value as u8);
        Ok(())
    }

    refuse! {
        type Ok = ();
        type Error = Failure;
        changed() => bool i16 i32 i64 u16 u32 u64 f32 f64 char str bytes none some unit unit_struct
            unit_variant newtype_struct newtype_variant
    }
}
