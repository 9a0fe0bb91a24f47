//! Lists, sets and arrays.

use serde::ser::{self, Impossible, Serialize, Serializer};

use super::plan::SiteId;
use super::{Place, Written, one_unit, unit};
use crate::jackson::failure::Failure;
use crate::jackson::format::{Format, Group, Open};
use crate::java::refuse::refuse;

pub(in crate::jackson) struct Elements<'w, F> {
    place: Place<'w, F>,
    what: What,
}

enum What {
    List {
        element: SiteId,
        open: Open,
        count: usize,
    },
    /// All in one value.
    Bytes(Vec<u8>),
    /// The same, of characters.
    Text(String),
}

impl<'w, F: Format> Elements<'w, F> {
    #[inline]
    pub(super) fn list(
        place: Place<'w, F>,
        group: Group,
        element: SiteId,
        length: Option<usize>,
    ) -> Result<Self, Failure> {
        place.output.deeper()?;
        let out = &mut place.output.bytes;
        out.extend_from_slice(place.site.class.as_deref().unwrap_or_default());
        let open = F::open(out, group, length.unwrap_or(0));
        Ok(Self { place, what: What::List { element, open, count: 0 } })
    }

    pub(super) fn bytes(place: Place<'w, F>) -> Self {
        Self { place, what: What::Bytes(Vec::new()) }
    }

    /// As deep as if they were written one by one.
    pub(super) fn text(place: Place<'w, F>) -> Result<Self, Failure> {
        place.output.deeper()?;
        Ok(Self { place, what: What::Text(String::new()) })
    }
}

impl<F: Format> ser::SerializeSeq for Elements<'_, F> {
    type Ok = Written;
    type Error = Failure;

    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failure> {
        match &mut self.what {
            What::List { element, count, .. } => {
                F::next(&mut self.place.output.bytes);
                value.serialize(self.place.inner(*element))?;
                *count += 1;
            }
            What::Bytes(bytes) => bytes.push(value.serialize(OneByte)?),
            What::Text(text) => text.push(value.serialize(OneCharacter)?),
        }
        Ok(())
    }

    #[inline]
    fn end(self) -> Result<Written, Failure> {
        match self.what {
            What::List { open, count, .. } => {
                let out = &mut self.place.output.bytes;
                F::close(out, open, count);
                if self.place.site.class.is_some() {
                    out.extend_from_slice(F::BEHIND);
                }
                self.place.output.shallower();
                Ok(Written::Value)
            }
            What::Bytes(bytes) => self.place.serialize_bytes(&bytes),
            What::Text(text) => {
                self.place.output.shallower();
                Ok(self.place.declared(|out| F::text(out, &text)))
            }
        }
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

/// An element of a `char[]`.
struct OneCharacter;

fn no_character() -> Failure {
    Failure::new("the type writes something else where it reads a character")
}

impl Serializer for OneCharacter {
    type Ok = char;
    type Error = Failure;
    type SerializeSeq = Impossible<char, Failure>;
    type SerializeTuple = Impossible<char, Failure>;
    type SerializeTupleStruct = Impossible<char, Failure>;
    type SerializeTupleVariant = Impossible<char, Failure>;
    type SerializeMap = Impossible<char, Failure>;
    type SerializeStruct = Impossible<char, Failure>;
    type SerializeStructVariant = Impossible<char, Failure>;

    fn serialize_u16(self, value: u16) -> Result<char, Failure> {
        unit(value)
    }

    fn serialize_char(self, value: char) -> Result<char, Failure> {
        one_unit(value)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        inside: &T,
    ) -> Result<char, Failure> {
        inside.serialize(self)
    }

    refuse! {
        no_character() => bool i8 i16 i32 i64 u8 u32 u64 f32 f64 str bytes none some unit unit_struct unit_variant
            newtype_variant seq tuple tuple_struct tuple_variant map struct struct_variant
    }
}
