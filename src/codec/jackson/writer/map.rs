//! Maps, whose keys are texts.

use serde::ser::{self, Impossible, Serialize, Serializer};

use super::{Done, Writer};
use crate::codec::jackson::failure::Failure;
use crate::codec::jackson::node::{Is, Key};
use crate::codec::jackson::value;
use crate::codec::java::handover;
use crate::codec::java::marker::{Marker, marker};
use crate::codec::java::refuse::refuse;
use crate::codec::number::java_text;

pub(super) struct Entries {
    pub(super) value: Writer,
    pub(super) entries: Vec<(Key<'static>, Done)>,
    pub(super) key: Option<Key<'static>>,
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

/// The key of a map's entry.
struct OneKey;

fn no_key() -> Failure {
    Failure::new("a map's key is text, a number, a boolean, an enum or a UUID")
}

fn key<T: ToString>(value: T) -> Result<Key<'static>, Failure> {
    Ok(Key::Text(value.to_string().into()))
}

impl Serializer for OneKey {
    type Ok = Key<'static>;
    type Error = Failure;
    type SerializeSeq = Impossible<Key<'static>, Failure>;
    type SerializeTuple = Impossible<Key<'static>, Failure>;
    type SerializeTupleStruct = Impossible<Key<'static>, Failure>;
    type SerializeTupleVariant = Impossible<Key<'static>, Failure>;
    type SerializeMap = Impossible<Key<'static>, Failure>;
    type SerializeStruct = Impossible<Key<'static>, Failure>;
    type SerializeStructVariant = Impossible<Key<'static>, Failure>;

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
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result<Key<'static>, Failure> {
        Ok(Key::Number(value))
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

    refuse! {
        no_key() => u8 u32 u64 bytes none unit unit_struct newtype_variant seq tuple tuple_struct tuple_variant map
            struct struct_variant
    }
}
