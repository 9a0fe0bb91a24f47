//! From a value through serde to a payload, by its [plan](plan), with the classes that Redisson's mapper
//! writes.
//!
//! The class of an object is its first property, `@class`; that of anything else is in front of it, in a list
//! of two. Whether it is written at all depends on what the field declares: nothing is in front of what can
//! be of one class only. `Long` is the exception, since Redisson wants to read it as one.

mod list;
mod map;
mod object;
mod output;
mod plan;

use std::marker::PhantomData;

use serde::ser::{Impossible, Serialize, Serializer};

use list::ListWriter;
use map::MapWriter;
use object::ObjectWriter;
use plan::{Content, Site, SiteId};

use super::failure::{Failure, Outcome};
use super::format::Format;
use super::mapper::REDISSON;
use super::node::Node;
use super::times;
use super::value;
use crate::java::Value;
use crate::java::known_classes::ClassKind;
use crate::java::shape::Kind;
use crate::java::type_hint::{PREFIX, TypeHint, type_hint};
use crate::java::value_slot;
use crate::shown::shown;

pub(super) use output::Output;
pub(super) use plan::{CLASS, Plan, enum_set_class, written_class};

/// Whether there is something: where it is null, a property or an entry of a map is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Null,
    Value,
    /// So many properties of the object around it.
    Properties(usize),
}

/// A place in the type, and the end of the payload so far.
pub(super) struct ValueWriter<'w, F> {
    output: &'w mut Output,
    plan: &'static Plan,
    site: &'static Site,
    format: PhantomData<F>,
}

impl<'w, F: Format> ValueWriter<'w, F> {
    /// The value of a whole payload.
    pub(super) fn whole(output: &'w mut Output, plan: &'static Plan) -> Self {
        Self { output, plan, site: plan.root(), format: PhantomData }
    }

    #[inline]
    fn inner(&mut self, site: SiteId) -> ValueWriter<'_, F> {
        ValueWriter { output: self.output, plan: self.plan, site: self.plan.site(site), format: PhantomData }
    }

    /// Writes a value of the declared class.
    #[inline]
    fn declared(self, write: impl FnOnce(&mut Vec<u8>)) -> Outcome<Written> {
        let Some(class) = &self.site.class else { return Ok(self.plain(write)) };
        self.output.allows(1)?;
        let out = &mut self.output.bytes;
        class.put(out);
        write(out);
        out.extend_from_slice(F::BEHIND);
        Ok(Written::Value)
    }

    /// Writes a value of a final class, which need not be the declared one.
    #[inline]
    fn last(self, class: &str, write: impl FnOnce(&mut Vec<u8>)) -> Outcome<Written> {
        if !self.site.open {
            return Ok(self.plain(write));
        }
        self.output.allows(1)?;
        let out = &mut self.output.bytes;
        F::class(out, class);
        write(out);
        out.extend_from_slice(F::BEHIND);
        Ok(Written::Value)
    }

    #[inline]
    fn plain(self, write: impl FnOnce(&mut Vec<u8>)) -> Written {
        write(&mut self.output.bytes);
        Written::Value
    }

    #[inline]
    fn integer(self, value: i64) -> Outcome<Written> {
        match self.site.content {
            Content::Integer => self.declared(|out| F::integer(out, value)),
            _ => Err(self.other("an integer")),
        }
    }

    fn character(self, unit: u16) -> Outcome<Written> {
        let text = text_of(&[unit])?;
        self.last("java.lang.Character", |out| F::text(out, &text))
    }

    /// One that hands itself over.
    fn value<T: Serialize + ?Sized>(self, inside: &T) -> Outcome<Written> {
        let value = value_slot::capture(inside).ok_or_else(|| self.other("something else"))?;
        self.value_of(&value)
    }

    /// One of the declared class.
    fn scalar<T: Serialize + ?Sized>(self, inside: &T) -> Outcome<Written> {
        let value = value_slot::capture(inside).ok_or_else(|| self.other("something else"))?;
        if let Some(class) = &self.site.class {
            self.output.allows(1)?;
            class.put(&mut self.output.bytes);
        }
        let Output { bytes, mapper, depth, .. } = self.output;
        value::write_scalar::<F>(bytes, &value, mapper.as_deref().unwrap_or(&REDISSON), *depth)?;
        if self.site.class.is_some() {
            bytes.extend_from_slice(F::BEHIND);
        }
        Ok(Written::Value)
    }

    /// Any value, without serde.
    pub(super) fn value_of(self, value: &Value) -> Outcome<Written> {
        let Output { bytes, mapper, depth, .. } = self.output;
        value::write::<F>(bytes, value, self.site.open, mapper.as_deref().unwrap_or(&REDISSON), *depth)
    }

    /// A text of `java.time`, for which Redisson's own mapper has no module.
    fn time(self, class: &'static str, text: &str) -> Outcome<Written> {
        let mapper = self.output.mapper.clone();
        let mapper = mapper.as_deref().unwrap_or(&REDISSON);
        let is = times::write_text(class, text, mapper).map_err(|why| times::refused(class, why))?;
        let node = Node::from(is);
        let depth = self.output.depth;
        let mut bytes = Vec::new();
        node.write::<F>(&mut bytes, depth)?;
        self.declared(|out| out.extend_from_slice(&bytes))
    }

    fn optional<T: Serialize + ?Sized>(mut self, inside: &T) -> Outcome<Written> {
        let Content::Optional(site) = self.site.content else { return Err(self.other("an Optional")) };
        let around = std::mem::replace(&mut self.output.optional, true);
        let written = inside.serialize(self.inner(site))?;
        self.output.optional = around;
        Ok(written)
    }

    /// The type writes something other than it reads, so the plan does not apply.
    #[cold]
    fn other(&self, found: &str) -> Failure {
        Failure::new(format!("the type writes {found} where it reads {}", name(self.site.kind)))
    }
}

fn name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Struct(_) => "an object",
        Kind::Choice(_) => "one of several classes",
        Kind::Enum(_) => "an enum",
        Kind::Map(..) => "a map",
        Kind::Collection(..) | Kind::Array(_) | Kind::EnumSet(..) => "a list",
        Kind::String | Kind::Text(_) | Kind::Character => "text",
        Kind::Bytes => "bytes",
        Kind::Boolean => "a boolean",
        Kind::Value | Kind::Scalar(_) | Kind::Optional(_) => "a value of `java`",
        _ => "another number",
    }
}

/// The text of characters of Java, each of which is a unit of UTF-16.
pub(super) fn text_of(units: &[u16]) -> Outcome<String> {
    String::from_utf16(units).map_err(|_| Failure::new("half of a surrogate pair cannot be written as text"))
}

/// A character that is one of Java's, too.
fn unit(c: char) -> Outcome<u16> {
    u16::try_from(u32::from(c))
        .map_err(|_| Failure::new("a character beyond U+FFFF is not one `char` in Java"))
}

fn no_java(what: &str) -> Failure {
    Failure::new(format!("{what} is no Java value"))
}

type No = Impossible<Written, Failure>;

impl<'w, F: Format> Serializer for ValueWriter<'w, F> {
    type Ok = Written;
    type Error = Failure;
    type SerializeSeq = ListWriter<'w, F>;
    type SerializeTuple = No;
    type SerializeTupleStruct = No;
    type SerializeTupleVariant = No;
    type SerializeMap = MapWriter<'w, F>;
    type SerializeStruct = ObjectWriter<'w, F>;
    type SerializeStructVariant = No;

    #[inline]
    fn serialize_bool(self, value: bool) -> Outcome<Written> {
        Ok(self.plain(|out| F::boolean(out, value)))
    }

    #[inline]
    fn serialize_i8(self, value: i8) -> Outcome<Written> {
        self.integer(value.into())
    }

    #[inline]
    fn serialize_i16(self, value: i16) -> Outcome<Written> {
        self.integer(value.into())
    }

    #[inline]
    fn serialize_i32(self, value: i32) -> Outcome<Written> {
        self.integer(value.into())
    }

    #[inline]
    fn serialize_i64(self, value: i64) -> Outcome<Written> {
        self.integer(value)
    }

    fn serialize_u8(self, _: u8) -> Outcome<Written> {
        Err(self.other("a `u8`"))
    }

    fn serialize_u16(self, value: u16) -> Outcome<Written> {
        self.character(value)
    }

    fn serialize_u32(self, _: u32) -> Outcome<Written> {
        Err(no_java("a `u32`"))
    }

    fn serialize_u64(self, _: u64) -> Outcome<Written> {
        Err(no_java("a `u64`"))
    }

    fn serialize_f32(self, value: f32) -> Outcome<Written> {
        self.last("java.lang.Float", |out| F::float(out, value))
    }

    #[inline]
    fn serialize_f64(self, value: f64) -> Outcome<Written> {
        match value.is_finite() {
            true => Ok(self.plain(|out| F::double(out, value))),
            false => self.last("java.lang.Double", |out| F::double(out, value)),
        }
    }

    fn serialize_char(self, value: char) -> Outcome<Written> {
        self.character(unit(value)?)
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Outcome<Written> {
        match self.site.content {
            Content::TextOf => self.declared(|out| F::text(out, value)),
            Content::Time(class) => self.time(class, value),
            Content::Character => Err(self.other("text")),
            _ => Ok(self.plain(|out| F::text(out, value))),
        }
    }

    fn serialize_bytes(self, value: &[u8]) -> Outcome<Written> {
        self.last("[B", |out| F::bytes(out, value))
    }

    #[inline]
    fn serialize_none(self) -> Outcome<Written> {
        F::null(&mut self.output.bytes);
        Ok(Written::Null)
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Outcome<Written> {
        if self.output.optional {
            return Err(refused("java.util.Optional"));
        }
        value.serialize(self)
    }

    fn serialize_unit(self) -> Outcome<Written> {
        Err(no_java("`()`"))
    }

    fn serialize_unit_struct(self, _: &'static str) -> Outcome<Written> {
        Err(no_java("a struct without fields"))
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Outcome<Written> {
        match self.site.content {
            Content::Enum => self.declared(|out| F::text(out, variant)),
            Content::Constant(constants) => {
                let ordinal = constants.variants.iter().position(|name| *name == variant);
                let body = ordinal.is_some_and(|ordinal| constants.bodies[ordinal].is_some());
                let write = |out: &mut Vec<u8>| F::text(out, variant);
                if body { Ok(self.plain(write)) } else { self.declared(write) }
            }
            _ => Err(self.other("an enum")),
        }
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        inside: &T,
    ) -> Outcome<Written> {
        if let Content::Scalar(class) = self.site.content
            && name.strip_prefix(PREFIX) == Some(class.name)
        {
            return self.scalar(inside);
        }
        match type_hint(name) {
            Some(TypeHint::Value) => self.value(inside),
            Some(TypeHint::Class(class)) => match class.kind {
                ClassKind::Scalar(_) | ClassKind::Fields(_) => self.value(inside),
                ClassKind::Optional => self.optional(inside),
                _ => inside.serialize(self),
            },
            _ => inside.serialize(self),
        }
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        value: &T,
    ) -> Outcome<Written> {
        let Content::Choice(variants) = &self.site.content else {
            return Err(self.other("an enum with data"));
        };
        match variants.iter().find(|(variant, _)| *variant == name) {
            Some((_, site)) => value.serialize(ValueWriter { site: self.plan.site(*site), ..self }),
            None => Err(self.other("another variant")),
        }
    }

    #[inline]
    fn serialize_seq(self, length: Option<usize>) -> Outcome<ListWriter<'w, F>> {
        match self.site.content {
            Content::List(group, element) => ListWriter::list(self, group, element, length),
            Content::Bytes => Ok(ListWriter::bytes(self)),
            Content::Characters => Ok(ListWriter::text(self)),
            _ => Err(self.other("a list")),
        }
    }

    fn serialize_tuple(self, _: usize) -> Outcome<Self::SerializeTuple> {
        Err(no_java("a tuple"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Outcome<Self::SerializeTupleStruct> {
        Err(no_java("a tuple"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Outcome<Self::SerializeTupleVariant> {
        Err(no_java("an enum with data"))
    }

    fn serialize_map(self, length: Option<usize>) -> Outcome<MapWriter<'w, F>> {
        match self.site.content {
            Content::Map(value) => MapWriter::new(self, value, length),
            Content::Properties(value) => MapWriter::properties(self, value, false),
            Content::Rest(value) => MapWriter::properties(self, value, true),
            _ => Err(self.other("a map")),
        }
    }

    #[inline(always)]
    fn serialize_struct(self, _: &'static str, _: usize) -> Outcome<ObjectWriter<'w, F>> {
        match self.site.content {
            Content::Struct(class) => ObjectWriter::new(self, class),
            _ => Err(self.other("an object")),
        }
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Outcome<Self::SerializeStructVariant> {
        Err(no_java("an enum with data"))
    }
}

pub(super) fn refused(class: &str) -> Failure {
    Failure::new(format!("Redisson's Jackson codecs write no {}", shown(class)))
}
