//! Maps, whose keys are texts.

use std::marker::PhantomData;

use serde::ser::{self, Impossible, Serialize, Serializer};

use super::plan::SiteId;
use super::{Place, Written};
use crate::jackson::failure::Failure;
use crate::jackson::format::{Format, Group, Open};
use crate::jackson::value;
use crate::java::handover;
use crate::java::marker::{Marker, marker};
use crate::java::refuse::refuse;
use crate::number::{java_float, java_text};

pub(in crate::jackson) struct Entries<'w, F> {
    place: Place<'w, F>,
    value: SiteId,
    open: Open,
    count: usize,
    /// Where the last entry ends that is complete.
    end: usize,
}

impl<'w, F: Format> Entries<'w, F> {
    pub(super) fn new(place: Place<'w, F>, value: SiteId, length: Option<usize>) -> Result<Self, Failure> {
        place.output.deeper()?;
        let out = &mut place.output.bytes;
        let class = place.site.class.as_deref().unwrap_or_default();
        let open = F::open(out, Group::Object, length.unwrap_or(0) + 1);
        out.extend_from_slice(class);
        let end = out.len();
        Ok(Self { place, value, open, count: 1, end })
    }
}

impl<F: Format> ser::SerializeMap for Entries<'_, F> {
    type Ok = Written;
    type Error = Failure;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Failure> {
        key.serialize(OneKey { out: &mut self.place.output.bytes, format: PhantomData::<F> })
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        match value.serialize(self.place.inner(self.value))? {
            Written::Value => {
                self.count += 1;
                self.end = self.place.output.bytes.len();
            }
            // Redisson leaves them out.
            Written::Null => self.place.output.bytes.truncate(self.end),
        }
        Ok(())
    }

    fn end(self) -> Result<Written, Failure> {
        F::close(&mut self.place.output.bytes, self.open, self.count);
        self.place.output.shallower();
        Ok(Written::Value)
    }
}

/// The key of a map's entry.
struct OneKey<'w, F> {
    out: &'w mut Vec<u8>,
    format: PhantomData<F>,
}

impl<F: Format> OneKey<'_, F> {
    fn key(self, key: impl ToString) -> Result<(), Failure> {
        self.serialize_str(&key.to_string())
    }
}

fn no_key() -> Failure {
    Failure::new("a map's key is text, a number, a boolean, an enum or a UUID")
}

impl<F: Format> Serializer for OneKey<'_, F> {
    type Ok = ();
    type Error = Failure;
    type SerializeSeq = Impossible<(), Failure>;
    type SerializeTuple = Impossible<(), Failure>;
    type SerializeTupleStruct = Impossible<(), Failure>;
    type SerializeTupleVariant = Impossible<(), Failure>;
    type SerializeMap = Impossible<(), Failure>;
    type SerializeStruct = Impossible<(), Failure>;
    type SerializeStructVariant = Impossible<(), Failure>;

    fn serialize_bool(self, value: bool) -> Result<(), Failure> {
        self.key(value)
    }

    fn serialize_i8(self, value: i8) -> Result<(), Failure> {
        self.key(value)
    }

    fn serialize_i16(self, value: i16) -> Result<(), Failure> {
        self.key(value)
    }

    fn serialize_i32(self, value: i32) -> Result<(), Failure> {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result<(), Failure> {
        F::number_key(self.out, value);
        Ok(())
    }

    fn serialize_u16(self, value: u16) -> Result<(), Failure> {
        self.key(char::from_u32(value.into()).ok_or_else(no_key)?)
    }

    fn serialize_f32(self, value: f32) -> Result<(), Failure> {
        self.serialize_str(&java_float(value))
    }

    fn serialize_f64(self, value: f64) -> Result<(), Failure> {
        self.serialize_str(&java_text(value))
    }

    fn serialize_char(self, value: char) -> Result<(), Failure> {
        self.key(value)
    }

    fn serialize_str(self, value: &str) -> Result<(), Failure> {
        F::key(self.out, value);
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Failure> {
        value.serialize(self)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Failure> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        inside: &T,
    ) -> Result<(), Failure> {
        match marker(name) {
            Some(Marker::Value | Marker::Class(_)) => match handover::ask(inside) {
                Some(value) => {
                    value::key(&value).ok_or_else(no_key)?.write::<F>(self.out);
                    Ok(())
                }
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
