//! Maps, whose keys are texts.

use std::marker::PhantomData;
use std::ops::Range;

use serde::ser::{self, Serialize, Serializer};

use super::object::levels;
use super::plan::SiteId;
use super::{ValueWriter, Written, text_of, unit};
use crate::jackson::failure::{Failure, Outcome};
use crate::jackson::format::{Format, Group, OpenGroup};
use crate::jackson::value::{self, no_key};
use crate::java::path::Step;
use crate::java::refuse::refuse;
use crate::java::type_hint::{TypeHint, type_hint};
use crate::java::value_slot;
use crate::number::{java_float, java_text};

pub(in crate::jackson) struct MapWriter<'w, F> {
    place: ValueWriter<'w, F>,
    value: SiteId,
    /// Unless its entries are properties of the object around it.
    open: Option<OpenGroup>,
    /// How many entries are written, with the class.
    count: usize,
    /// How many were begun, those of null values, too.
    entries: usize,
    /// Where the last entry ends that is complete.
    end: usize,
    /// The entries, if they are to be among the properties of the object around it.
    rest: Option<Vec<(String, Range<usize>)>>,
}

impl<'w, F: Format> MapWriter<'w, F> {
    pub(super) fn new(place: ValueWriter<'w, F>, value: SiteId, length: Option<usize>) -> Outcome<Self> {
        place.output.deeper(levels(&place))?;
        let out = &mut place.output.bytes;
        if let Some(around) = &place.site.around {
            out.extend_from_slice(&around.before);
        }
        let class = place.site.class.as_ref();
        let count = usize::from(class.is_some());
        let open = F::open(out, Group::Object, length.unwrap_or(0) + count);
        if let Some(class) = class {
            class.put(out);
        }
        let end = out.len();
        Ok(Self { place, value, open: Some(open), count, entries: 0, end, rest: None })
    }

    pub(super) fn properties(place: ValueWriter<'w, F>, value: SiteId, is_rest: bool) -> Outcome<Self> {
        let end = place.output.bytes.len();
        Ok(Self { place, value, open: None, count: 0, entries: 0, end, rest: is_rest.then(Vec::new) })
    }
}

impl<F: Format> ser::SerializeMap for MapWriter<'_, F> {
    type Ok = Written;
    type Error = Failure;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Outcome<()> {
        self.entries += 1;
        if let Some(rest) = &mut self.rest {
            rest.push((key.serialize(KeyText)?, 0..0));
        }
        key.serialize(KeyWriter { out: &mut self.place.output.bytes, format: PhantomData::<F> })
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Outcome<()> {
        let at = Step::Element(self.entries - 1);
        let written = value.serialize(self.place.inner(self.value)).map_err(|failure| failure.within(at))?;
        match (written, &mut self.rest) {
            // Also a null, since the payload had it.
            (_, Some(rest)) => {
                self.count += 1;
                let start = std::mem::replace(&mut self.end, self.place.output.bytes.len());
                if let Some((_, span)) = rest.last_mut() {
                    *span = start..self.end;
                }
            }
            (Written::Value | Written::Properties(_), None) => {
                self.count += 1;
                self.end = self.place.output.bytes.len();
            }
            // Redisson leaves them out.
            (Written::Null, None) => self.place.output.bytes.truncate(self.end),
        }
        Ok(())
    }

    fn end(self) -> Outcome<Written> {
        let Some(open) = self.open else {
            self.place.output.rest = self.rest.unwrap_or_default();
            return Ok(Written::Properties(self.count));
        };
        let out = &mut self.place.output.bytes;
        F::close(out, open, self.count);
        if let Some(around) = &self.place.site.around {
            out.extend_from_slice(&around.behind);
        }
        self.place.output.shallower(levels(&self.place));
        Ok(Written::Value)
    }
}

/// The name of a property.
struct KeyText;

impl Serializer for KeyText {
    fn serialize_str(self, value: &str) -> Outcome<String> {
        Ok(value.to_owned())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Outcome<String> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Outcome<String> {
        value.serialize(self)
    }

    refuse! {
        type Ok = String;
        type Error = Failure;
        no_key() => bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char bytes none unit unit_struct unit_variant
            newtype_variant
    }
}

/// The key of a map's entry.
struct KeyWriter<'w, F> {
    out: &'w mut Vec<u8>,
    format: PhantomData<F>,
}

impl<F: Format> KeyWriter<'_, F> {
    fn key(self, key: impl ToString) -> Outcome<()> {
        self.serialize_str(&key.to_string())
    }
}

impl<F: Format> Serializer for KeyWriter<'_, F> {
    fn serialize_bool(self, value: bool) -> Outcome<()> {
        self.key(value)
    }

    fn serialize_i8(self, value: i8) -> Outcome<()> {
        self.key(value)
    }

    fn serialize_i16(self, value: i16) -> Outcome<()> {
        self.key(value)
    }

    fn serialize_i32(self, value: i32) -> Outcome<()> {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Outcome<()> {
        F::number_key(self.out, value);
        Ok(())
    }

    fn serialize_u16(self, value: u16) -> Outcome<()> {
        self.serialize_str(&text_of(&[value])?)
    }

    fn serialize_f32(self, value: f32) -> Outcome<()> {
        self.serialize_str(&java_float(value))
    }

    fn serialize_f64(self, value: f64) -> Outcome<()> {
        self.serialize_str(&java_text(value))
    }

    fn serialize_char(self, value: char) -> Outcome<()> {
        self.serialize_u16(unit(value)?)
    }

    fn serialize_str(self, value: &str) -> Outcome<()> {
        F::key(self.out, value);
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Outcome<()> {
        value.serialize(self)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Outcome<()> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, inside: &T) -> Outcome<()> {
        match type_hint(name) {
            Some(TypeHint::Value | TypeHint::Class(_)) => match value_slot::capture(inside) {
                Some(value) => {
                    value::key(&value)?.write::<F>(self.out);
                    Ok(())
                }
                None => inside.serialize(self),
            },
            _ => inside.serialize(self),
        }
    }

    refuse! {
        type Ok = ();
        type Error = Failure;
        no_key() => u8 u32 u64 bytes none unit unit_struct newtype_variant
    }
}
