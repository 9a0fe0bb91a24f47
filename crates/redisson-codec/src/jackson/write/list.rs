//! Lists, sets and arrays.

use serde::ser::{self, Serialize, Serializer};

use super::plan::SiteId;
use super::{ValueWriter, Written, text_of, unit};
use crate::jackson::failure::{Failure, Outcome};
use crate::jackson::format::{Format, Group, OpenGroup};
use crate::java::path::Step;
use crate::java::refuse::refuse;

pub(in crate::jackson) struct ListWriter<'w, F> {
    place: ValueWriter<'w, F>,
    kind: ListKind,
}

enum ListKind {
    List {
        element: SiteId,
        open: OpenGroup,
        count: usize,
    },
    /// All in one value.
    Bytes(Vec<u8>),
    /// The same, of characters.
    Text(Vec<u16>),
}

impl<'w, F: Format> ListWriter<'w, F> {
    #[inline]
    pub(super) fn list(
        place: ValueWriter<'w, F>,
        group: Group,
        element: SiteId,
        length: Option<usize>,
    ) -> Outcome<Self> {
        place.output.deeper(levels(&place))?;
        let out = &mut place.output.bytes;
        if let Some(class) = &place.site.class {
            class.put(out);
        }
        let open = F::open(out, group, length.unwrap_or(0));
        Ok(Self { place, kind: ListKind::List { element, open, count: 0 } })
    }

    pub(super) fn bytes(place: ValueWriter<'w, F>) -> Self {
        Self { place, kind: ListKind::Bytes(Vec::new()) }
    }

    pub(super) fn text(place: ValueWriter<'w, F>) -> Self {
        Self { place, kind: ListKind::Text(Vec::new()) }
    }
}

/// A list that has its class in front is in another one.
#[inline]
fn levels<F>(place: &ValueWriter<'_, F>) -> usize {
    1 + usize::from(place.site.class.is_some())
}

impl<F: Format> ser::SerializeSeq for ListWriter<'_, F> {
    type Ok = Written;
    type Error = Failure;

    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Outcome<()> {
        match &mut self.kind {
            ListKind::List { element, count, .. } => {
                F::next(&mut self.place.output.bytes);
                let at = Step::Element(*count);
                value.serialize(self.place.inner(*element)).map_err(|failure| failure.within(at))?;
                *count += 1;
            }
            ListKind::Bytes(bytes) => bytes.push(value.serialize(ByteWriter)?),
            ListKind::Text(units) => units.push(value.serialize(CharacterWriter)?),
        }
        Ok(())
    }

    #[inline]
    fn end(self) -> Outcome<Written> {
        match self.kind {
            ListKind::List { open, count, .. } => {
                let out = &mut self.place.output.bytes;
                F::close(out, open, count);
                if self.place.site.class.is_some() {
                    out.extend_from_slice(F::BEHIND);
                }
                self.place.output.shallower(levels(&self.place));
                Ok(Written::Value)
            }
            ListKind::Bytes(bytes) => self.place.serialize_bytes(&bytes),
            ListKind::Text(units) => {
                let text = text_of(&units)?;
                self.place.declared(|out| F::text(out, &text))
            }
        }
    }
}

/// An element of a list of bytes.
struct ByteWriter;

fn no_byte() -> Failure {
    Failure::new("the type writes something else where it reads a byte")
}

impl Serializer for ByteWriter {
    fn serialize_u8(self, value: u8) -> Outcome<u8> {
        Ok(value)
    }

    fn serialize_i8(self, value: i8) -> Outcome<u8> {
        Ok(value as u8)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, inside: &T) -> Outcome<u8> {
        inside.serialize(self)
    }

    refuse! {
        type Ok = u8;
        type Error = Failure;
        no_byte() => bool i16 i32 i64 u16 u32 u64 f32 f64 char str bytes none some unit unit_struct
            unit_variant newtype_variant
    }
}

/// An element of a `char[]`.
struct CharacterWriter;

fn no_character() -> Failure {
    Failure::new("the type writes something else where it reads a character")
}

impl Serializer for CharacterWriter {
    fn serialize_u16(self, value: u16) -> Outcome<u16> {
        Ok(value)
    }

    fn serialize_char(self, value: char) -> Outcome<u16> {
        unit(value)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, inside: &T) -> Outcome<u16> {
        inside.serialize(self)
    }

    refuse! {
        type Ok = u16;
        type Error = Failure;
        no_character() => bool i8 i16 i32 i64 u8 u32 u64 f32 f64 str bytes none some unit unit_struct
            unit_variant newtype_variant
    }
}
