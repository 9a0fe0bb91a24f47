//! From a Rust type, by its [plan](plan), to a payload.

mod byte;
mod elements;
mod entries;
mod fields;
mod plan;

use serde::ser::{Impossible, Serialize, Serializer};

use super::input::{Fault, Outcome};
use super::output::Output;
use super::{scalar, texts, values};
use crate::java::class::ClassKind;
use crate::java::marker::{Marker, marker};
use crate::java::refuse::refuse;
use crate::java::{Value, handover};

use elements::Elements;
use entries::Entries;
use fields::Fields;
use plan::{Content, Head, Site};

pub(super) use plan::Plan;

/// A place in the type, and in the payload.
pub(super) struct Place<'w> {
    output: &'w mut Output,
    site: &'static Site,
}

impl<'w> Place<'w> {
    /// The value of a whole payload.
    #[inline]
    pub(super) fn whole(output: &'w mut Output) -> Self {
        let site = output.plan.root();
        Self { output, site }
    }

    /// Writes what is in front of a value that is not null.
    #[inline]
    fn present(&mut self) {
        match self.site.head {
            Head::Class => self.output.written(self.site.class),
            Head::Flag => self.output.byte(1),
            Head::Null(_) | Head::Nothing | Head::Element => {}
        }
    }
}

#[cold]
fn changed() -> Fault {
    Fault::new("its `Serialize` gives something else than its `Deserialize` asks for")
}

macro_rules! primitives {
    ($($method:ident $type:ident $kind:ident |$output:ident, $value:ident| $write:expr;)*) => {$(
        #[inline]
        fn $method(mut self, $value: $type) -> Outcome<()> {
            if !matches!(self.site.content, Content::$kind) {
                return Err(changed());
            }
            self.present();
            let $output = self.output;
            $write;
            Ok(())
        }
    )*};
}

type No = Impossible<(), Fault>;

impl<'w> Serializer for Place<'w> {
    type Ok = ();
    type Error = Fault;
    type SerializeSeq = Elements<'w>;
    type SerializeTuple = No;
    type SerializeTupleStruct = No;
    type SerializeTupleVariant = No;
    type SerializeMap = Entries<'w>;
    type SerializeStruct = Fields<'w>;
    type SerializeStructVariant = No;

    primitives! {
        serialize_bool bool Boolean |output, value| output.byte(value.into());
        serialize_i8 i8 Byte |output, value| output.byte(value as u8);
        serialize_i16 i16 Short |output, value| output.raw(&value.to_le_bytes());
        serialize_u16 u16 Character |output, value| output.raw(&value.to_le_bytes());
        serialize_i32 i32 Integer |output, value| output.int(value);
        serialize_i64 i64 Long |output, value| output.long(value);
        serialize_f32 f32 Float |output, value| output.raw(&value.to_le_bytes());
        serialize_f64 f64 Double |output, value| output.raw(&value.to_le_bytes());
    }

    fn serialize_char(self, value: char) -> Outcome<()> {
        let mut units = [0; 2];
        match value.encode_utf16(&mut units) {
            [unit] => {
                let unit = *unit;
                self.serialize_u16(unit)
            }
            _ => Err(Fault::new("a character beyond U+FFFF is two of Java's: use a text")),
        }
    }

    #[inline]
    fn serialize_str(mut self, value: &str) -> Outcome<()> {
        match self.site.content {
            Content::Text => {
                self.present();
                self.output.text(value);
                Ok(())
            }
            Content::TextOf(class) => {
                self.present();
                texts::write(self.output, class, value)
            }
            _ => Err(changed()),
        }
    }

    fn serialize_bytes(mut self, value: &[u8]) -> Outcome<()> {
        if !matches!(self.site.content, Content::Bytes) {
            return Err(changed());
        }
        self.present();
        self.output.varint(Output::length(value.len())?);
        self.output.raw(value);
        Ok(())
    }

    #[inline]
    fn serialize_none(self) -> Outcome<()> {
        let output = self.output;
        match self.site.head {
            Head::Class | Head::Flag => output.byte(0),
            Head::Null(null) => output.byte(null),
            Head::Element => output.null_element = true,
            Head::Nothing => return Err(Fault::new("a null where Java cannot have one")),
        }
        Ok(())
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Outcome<()> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        mut self,
        name: &'static str,
        value: &T,
    ) -> Outcome<()> {
        match marker(name) {
            Some(Marker::Value) => self.value(&handover::ask(value).ok_or_else(changed)?),
            Some(Marker::Class(class)) => match class.kind {
                ClassKind::Scalar(_) => self.value(&handover::ask(value).ok_or_else(changed)?),
                ClassKind::Optional => {
                    let Content::Optional(inside) = self.site.content else { return Err(changed()) };
                    self.present();
                    self.output.deeper()?;
                    let site = self.output.plan.site(inside);
                    value.serialize(Place { output: self.output, site })?;
                    self.output.shallower();
                    Ok(())
                }
                _ => value.serialize(self),
            },
            _ => value.serialize(self),
        }
    }

    fn serialize_unit_struct(mut self, _: &'static str) -> Outcome<()> {
        self.present();
        // So that it is no null, though it has no bytes.
        self.output.open(0);
        Ok(())
    }

    fn serialize_unit_variant(mut self, _: &'static str, _: u32, variant: &'static str) -> Outcome<()> {
        let Content::Enum(constants) = &self.site.content else { return Err(changed()) };
        // Not the number that serde gives, which counts other variants, too.
        let Some(ordinal) = constants.variants.iter().position(|name| *name == variant) else {
            return Err(changed());
        };
        match constants.bodies.get(ordinal) {
            Some(body) if self.site.head == Head::Class => self.output.written(*body),
            _ => self.present(),
        }
        self.output.varint(ordinal as u32 + 1);
        Ok(())
    }

    #[inline]
    fn serialize_struct(mut self, _: &'static str, _: usize) -> Outcome<Fields<'w>> {
        let Content::Struct(class) = self.site.content else { return Err(changed()) };
        self.present();
        self.output.deeper()?;
        Ok(Fields::new(self.output, class))
    }

    fn serialize_seq(mut self, length: Option<usize>) -> Outcome<Elements<'w>> {
        let list = match &self.site.content {
            Content::List(list) => list,
            Content::Bytes => &plan::BYTES,
            _ => return Err(changed()),
        };
        self.present();
        self.output.deeper()?;
        Elements::new(self.output, list, length)
    }

    fn serialize_map(mut self, length: Option<usize>) -> Outcome<Entries<'w>> {
        let Content::Map(map) = &self.site.content else { return Err(changed()) };
        self.present();
        self.output.deeper()?;
        Entries::new(self.output, map, length)
    }

    fn is_human_readable(&self) -> bool {
        true
    }

    fn collect_str<T: std::fmt::Display + ?Sized>(self, value: &T) -> Outcome<()> {
        self.serialize_str(&value.to_string())
    }

    refuse! {
        changed() => u8 u32 u64 unit newtype_variant tuple tuple_struct tuple_variant struct_variant
    }
}

impl Place<'_> {
    /// A [`Value`] or one of its kinds.
    fn value(mut self, value: &Value) -> Outcome<()> {
        match self.site.content {
            Content::Value if self.site.head == Head::Class => values::write(self.output, value),
            Content::Scalar => {
                self.present();
                match scalar::write(self.output, value)? {
                    true => Ok(()),
                    false => Err(changed()),
                }
            }
            _ => Err(changed()),
        }
    }
}
