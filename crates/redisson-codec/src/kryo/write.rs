//! From a Rust type, by its [plan](plan), to a payload.

mod byte;
mod list;
mod map;
mod object;
mod plan;
mod rest;

use serde::ser::{Impossible, Serialize, Serializer};

use super::output::Output;
use super::{parts_as_text, scalar, small_classes, value};
use crate::java::known_classes::ClassKind;
use crate::java::refuse::refuse;
use crate::java::type_hint::{TypeHint, type_hint};
use crate::java::{Value, value_slot};
use crate::kryo::failure::{Failure, Outcome};

use list::ListWriter;
use map::MapWriter;
use object::ObjectWriter;
use plan::{Content, Prefix, Site};

pub(super) use plan::Plan;

/// A place in the type, and in the payload.
pub(super) struct ValueWriter<'w> {
    output: &'w mut Output,
    plan: &'static Plan,
    site: &'static Site,
}

impl<'w> ValueWriter<'w> {
    /// The value of a whole payload.
    #[inline]
    pub(super) fn whole(output: &'w mut Output, plan: &'static Plan) -> Self {
        Self { output, plan, site: plan.root() }
    }

    /// Writes what is in front of a value that is not null.
    #[inline]
    fn present(&mut self) {
        match self.site.prefix {
            Prefix::Class => self.output.written(self.site.class),
            Prefix::Flag => self.output.byte(1),
            Prefix::Null(_) | Prefix::Nothing | Prefix::Element => {}
        }
    }
}

#[cold]
fn changed() -> Failure {
    Failure::new("its `Serialize` gives something else than its `Deserialize` asks for")
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

type No = Impossible<(), Failure>;

impl<'w> Serializer for ValueWriter<'w> {
    type Ok = ();
    type Error = Failure;
    type SerializeSeq = ListWriter<'w>;
    type SerializeTuple = No;
    type SerializeTupleStruct = No;
    type SerializeTupleVariant = No;
    type SerializeMap = MapWriter<'w>;
    type SerializeStruct = ObjectWriter<'w>;
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
            _ => Err(Failure::new("a character beyond U+FFFF is two of Java's: use a text")),
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
                parts_as_text::write(self.output, class, value)
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
        match self.site.prefix {
            Prefix::Class | Prefix::Flag => output.byte(0),
            Prefix::Null(null) => output.byte(null),
            Prefix::Element => output.null_element = true,
            Prefix::Nothing => return Err(Failure::new("a null where Java cannot have one")),
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
        match type_hint(name) {
            Some(TypeHint::Value) => self.value(&value_slot::capture(value).ok_or_else(changed)?),
            Some(TypeHint::Class(class)) => match class.kind {
                ClassKind::Scalar(_) | ClassKind::Fields(_) => {
                    self.value(&value_slot::capture(value).ok_or_else(changed)?)
                }
                ClassKind::Optional => {
                    let Content::Optional(inside) = self.site.content else { return Err(changed()) };
                    self.present();
                    self.output.deeper()?;
                    let site = self.plan.site(inside);
                    value.serialize(ValueWriter { output: self.output, plan: self.plan, site })?;
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
            Some(body) if self.site.prefix == Prefix::Class => self.output.written(*body),
            _ => self.present(),
        }
        self.output.varint(ordinal as u32 + 1);
        Ok(())
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        value: &T,
    ) -> Outcome<()> {
        let Content::Choice(variants) = &self.site.content else { return Err(changed()) };
        let variant = variants.iter().find(|variant| variant.name == name).ok_or_else(changed)?;
        value.serialize(ValueWriter { site: self.plan.site(variant.site), ..self })
    }

    #[inline]
    fn serialize_struct(mut self, _: &'static str, _: usize) -> Outcome<ObjectWriter<'w>> {
        let Content::Struct(class) = self.site.content else { return Err(changed()) };
        self.present();
        self.output.deeper()?;
        Ok(ObjectWriter::new(self.output, self.plan, class))
    }

    fn serialize_seq(mut self, length: Option<usize>) -> Outcome<ListWriter<'w>> {
        let list = match &self.site.content {
            Content::List(list) => list,
            Content::Bytes => &plan::BYTES,
            _ => return Err(changed()),
        };
        self.present();
        self.output.deeper()?;
        ListWriter::new(self.output, self.plan, list, length)
    }

    fn serialize_map(mut self, length: Option<usize>) -> Outcome<MapWriter<'w>> {
        let Content::Map(map) = &self.site.content else { return Err(changed()) };
        self.present();
        self.output.deeper()?;
        MapWriter::new(self.output, self.plan, map, length)
    }

    fn is_human_readable(&self) -> bool {
        true
    }

    fn collect_str<T: std::fmt::Display + ?Sized>(self, value: &T) -> Outcome<()> {
        self.serialize_str(&value.to_string())
    }

    refuse! {
        changed() => u8 u32 u64 unit tuple tuple_struct tuple_variant struct_variant
    }
}

impl ValueWriter<'_> {
    /// A [`Value`] or one of its kinds.
    fn value(mut self, value: &Value) -> Outcome<()> {
        match self.site.content {
            Content::Value if self.site.prefix == Prefix::Class => value::write(self.output, value),
            Content::Scalar => {
                self.present();
                match value {
                    Value::Object(object) => small_classes::write_object(self.output, object),
                    value => match scalar::write(self.output, value)? {
                        true => Ok(()),
                        false => Err(changed()),
                    },
                }
            }
            _ => Err(changed()),
        }
    }
}
