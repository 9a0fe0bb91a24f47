//! From a Rust type, by its shape, to a payload.

use serde::ser::{Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, Serializer};

use super::input::{Fault, Numbered, Outcome};
use super::output::{Output, Part, Written};
use super::{scalar, texts, values};
use crate::codec::java::class::{Class, ClassKind, Layout};
use crate::codec::java::marker::{Marker, marker};
use crate::codec::java::shape::{Form, Kind, Node, NodeId, Shape, StructShape};
use crate::codec::java::{Value, handover};

pub(super) struct Writer {
    pub(super) output: Box<Output>,
    pub(super) shape: &'static Shape,
}

/// A place in the type, and what is to be written in front of the value there.
pub(super) struct Place<'w> {
    writer: &'w mut Writer,
    node: NodeId,
    head: Head,
    /// Whether Kryo knows the type arguments here, as declared by a field.
    generic: bool,
}

/// What is in front of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Head {
    /// Its class, or null.
    Class,
    /// A null, or something else that is not one.
    Nullable,
    /// Nothing.
    Nothing,
    /// Nothing; whether there was a null is told when the list ends.
    Element,
}

impl<'w> Place<'w> {
    /// The value of a whole payload.
    #[inline]
    pub(super) fn whole(writer: &'w mut Writer) -> Self {
        let node = writer.shape.root();
        Self { writer, node, head: Head::Class, generic: false }
    }

    #[inline]
    fn node(&self) -> &'static Node {
        let shape: &'static Shape = self.writer.shape;
        &shape.nodes[self.node]
    }

    /// Writes what is in front of a value that is not null.
    #[inline]
    fn present(&mut self) {
        match self.head {
            Head::Nothing | Head::Element => {}
            Head::Class => self.writer.class(self.node),
            Head::Nullable if null(self.node()).is_none() => self.writer.output.byte(1),
            Head::Nullable => {}
        }
    }
}

/// The byte that a value itself is if it is null.
fn null(node: &Node) -> Option<u8> {
    match &node.kind {
        Kind::String => Some(0x80),
        Kind::Bytes | Kind::Array(_) | Kind::Enum(_) => Some(0),
        Kind::Scalar(class) | Kind::Text(class) | Kind::Collection(class, _) | Kind::Map(class, ..) => {
            scalar::null(class)
        }
        _ => None,
    }
}

fn changed() -> Fault {
    Fault::new("its `Serialize` gives something else than its `Deserialize` asks for")
}

impl Writer {
    /// The class of what is declared at a place. An enum with bodies says its own.
    fn class(&mut self, node: NodeId) {
        let shape: &'static Shape = self.shape;
        let output = &mut self.output;
        match &shape.nodes[node].kind {
            Kind::Boolean => output.numbered(Numbered::Boolean),
            Kind::Byte => output.numbered(Numbered::Byte),
            Kind::Short => output.numbered(Numbered::Short),
            Kind::Character => output.numbered(Numbered::Character),
            Kind::Integer => output.numbered(Numbered::Integer),
            Kind::Long => output.numbered(Numbered::Long),
            Kind::Float => output.numbered(Numbered::Float),
            Kind::Double => output.numbered(Numbered::Double),
            Kind::String => output.numbered(Numbered::String),
            _ => output.class(shape.class_name(node)),
        }
    }

    /// How the class of a field or element is told where it is declared.
    #[inline]
    fn declared(&self, node: NodeId) -> Head {
        if self.shape.nodes[node].is_final { Head::Nullable } else { Head::Class }
    }

    fn is_abstract(&self, node: NodeId) -> bool {
        matches!(self.shape.nodes[node].kind, Kind::Enum(at) if self.shape.enums[at].form == Form::Abstract)
    }
}

macro_rules! primitives {
    ($($method:ident $type:ident $kind:ident |$output:ident, $value:ident| $write:expr;)*) => {$(
        fn $method(mut self, $value: $type) -> Outcome<()> {
            if !matches!(self.node().kind, Kind::$kind) {
                return Err(changed());
            }
            self.present();
            let $output = &mut self.writer.output;
            $write;
            Ok(())
        }
    )*};
}

macro_rules! refuse {
    ($($method:ident($($kind:ty),*) -> $ok:ty;)*) => {$(
        fn $method(self, $(_: $kind),*) -> Outcome<$ok> {
            Err(changed())
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

    fn serialize_str(mut self, value: &str) -> Outcome<()> {
        match self.node().kind {
            Kind::String => {
                self.present();
                self.writer.output.text(value);
                Ok(())
            }
            Kind::Text(class) => {
                self.present();
                texts::write(&mut self.writer.output, class, value)
            }
            _ => Err(changed()),
        }
    }

    fn serialize_bytes(mut self, value: &[u8]) -> Outcome<()> {
        if !matches!(self.node().kind, Kind::Bytes) {
            return Err(changed());
        }
        self.present();
        self.writer.output.varint(Output::length(value.len())?);
        self.writer.output.raw(value);
        Ok(())
    }

    fn serialize_none(self) -> Outcome<()> {
        let node = self.node();
        let output = &mut self.writer.output;
        match self.head {
            Head::Class => output.byte(0),
            Head::Nullable => output.byte(null(node).unwrap_or(0)),
            Head::Element => output.null_element = true,
            Head::Nothing => return Err(Fault::new("a null where Java cannot have one")),
        }
        Ok(())
    }

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
                    let Kind::Optional(inside) = self.node().kind else { return Err(changed()) };
                    self.present();
                    self.writer.output.deeper()?;
                    value.serialize(Place {
                        writer: self.writer,
                        node: inside,
                        head: Head::Class,
                        generic: false,
                    })?;
                    self.writer.output.shallower();
                    Ok(())
                }
                _ => value.serialize(self),
            },
            _ => value.serialize(self),
        }
    }

    fn serialize_unit_struct(mut self, _: &'static str) -> Outcome<()> {
        self.present();
        Ok(())
    }

    fn serialize_unit_variant(mut self, _: &'static str, _: u32, variant: &'static str) -> Outcome<()> {
        let Kind::Enum(at) = self.node().kind else { return Err(changed()) };
        let shape: &'static Shape = self.writer.shape;
        let class = &shape.enums[at];
        // Not the number that serde gives, which counts other variants, too.
        let Some(ordinal) = class.variants.iter().position(|name| *name == variant) else {
            return Err(changed());
        };
        if class.form == Form::Abstract && self.head == Head::Class {
            self.writer.output.class(format!("{}${}", class.class, ordinal + 1));
        } else {
            self.present();
        }
        self.writer.output.varint(ordinal as u32 + 1);
        Ok(())
    }

    fn serialize_struct(mut self, _: &'static str, _: usize) -> Outcome<Fields<'w>> {
        let Kind::Struct(at) = self.node().kind else { return Err(changed()) };
        self.present();
        let shape: &'static Shape = self.writer.shape;
        let class = &shape.structs[at];
        let output = &mut self.writer.output;
        output.deeper()?;
        let (start, base) = (output.bytes.len(), output.ranges.len());
        output.ranges.resize(base + class.fields.len(), Part::ABSENT);
        Ok(Fields { writer: self.writer, class, start, base, next: 0, in_order: true })
    }

    fn serialize_seq(mut self, length: Option<usize>) -> Outcome<Elements<'w>> {
        let shape: &'static Shape = self.writer.shape;
        self.present();
        let (element, kind) = match &self.node().kind {
            Kind::Bytes => (0, Each::Byte),
            Kind::Array(element) => {
                let node = &shape.nodes[*element];
                let head = match &node.kind {
                    _ if node.is_primitive() => Head::Nothing,
                    // The class of an array is final, whatever its elements.
                    Kind::Array(_) | Kind::Bytes if !node.object => Head::Nullable,
                    _ => self.writer.declared(*element),
                };
                (*element, Each::Array(head))
            }
            Kind::EnumSet(_, element) => (*element, Each::Constant),
            Kind::Collection(class, element) => {
                let node = &shape.nodes[*element];
                let kind = if self.generic && node.is_final {
                    Each::Declared(class)
                } else if node.kind == Kind::Value || self.writer.is_abstract(*element) {
                    Each::Any(class)
                } else {
                    Each::Same(class)
                };
                (*element, kind)
            }
            _ => return Err(changed()),
        };
        let output = &mut self.writer.output;
        output.deeper()?;
        let (start, base) = (output.bytes.len(), output.starts.len());
        let generic = self.generic && !matches!(kind, Each::Array(_));
        let mut elements = Elements {
            writer: self.writer,
            element,
            kind,
            generic,
            start,
            base,
            count: 0,
            announced: 0,
            nulls: 0,
        };
        // Mostly it is told, and right.
        elements.announced = length.unwrap_or(0);
        elements.head(elements.announced, false)?;
        Ok(elements)
    }

    fn serialize_map(mut self, length: Option<usize>) -> Outcome<Entries<'w>> {
        let Kind::Map(class, key, value) = self.node().kind else { return Err(changed()) };
        self.present();
        let head = |node| if self.generic { self.writer.declared(node) } else { Head::Class };
        let (key, value) = ((key, head(key)), (value, head(value)));
        let output = &mut self.writer.output;
        output.deeper()?;
        let start = output.bytes.len();
        let announced = length.unwrap_or(0);
        let entries = Entries {
            sorted: class.kind == ClassKind::Map(Layout::Sorted),
            generic: self.generic,
            writer: self.writer,
            key,
            value,
            start,
            count: 0,
            announced,
        };
        entry_head(&mut entries.writer.output, announced, entries.sorted)?;
        Ok(entries)
    }

    fn is_human_readable(&self) -> bool {
        true
    }

    fn collect_str<T: std::fmt::Display + ?Sized>(self, value: &T) -> Outcome<()> {
        self.serialize_str(&value.to_string())
    }

    refuse! {
        serialize_u8(u8) -> ();
        serialize_u32(u32) -> ();
        serialize_u64(u64) -> ();
        serialize_unit() -> ();
        serialize_tuple(usize) -> No;
        serialize_tuple_struct(&'static str, usize) -> No;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> No;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> No;
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

impl Place<'_> {
    /// A [`Value`] or one of its kinds.
    fn value(mut self, value: &Value) -> Outcome<()> {
        match &self.node().kind {
            Kind::Value if self.head == Head::Class => values::write(&mut self.writer.output, value),
            Kind::Scalar(_) => {
                self.present();
                match scalar::write(&mut self.writer.output, value)? {
                    true => Ok(()),
                    false => Err(changed()),
                }
            }
            _ => Err(changed()),
        }
    }
}

/// The fields of a struct: written in Rust's order, and put into Java's at the end.
pub(super) struct Fields<'w> {
    writer: &'w mut Writer,
    class: &'static StructShape,
    start: usize,
    /// The first of this struct in [`Output::ranges`].
    base: usize,
    /// The field that is expected next.
    next: usize,
    /// So far, each came at its place in Java's order.
    in_order: bool,
}

impl Fields<'_> {
    fn write<T: Serialize + ?Sized>(&mut self, field: usize, value: &T) -> Outcome<()> {
        let node = self.class.fields[field].node;
        let head = match &self.writer.shape.nodes[node] {
            declared if declared.is_primitive() => Head::Nothing,
            _ => self.writer.declared(node),
        };
        let start = self.writer.output.here();
        // Kryo keeps the type arguments of the fields of classes, but not of those of records.
        let generic = self.class.form != Form::Record;
        value.serialize(Place { writer: self.writer, node, head, generic })?;
        self.writer.output.ranges[self.base + field] = self.writer.output.part_from(start);
        Ok(())
    }
}

impl SerializeStruct for Fields<'_> {
    type Ok = ();
    type Error = Fault;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Outcome<()> {
        let fields = &self.class.fields;
        let field = match fields.get(self.next) {
            // Mostly it is the very same text.
            Some(field) if std::ptr::eq(field.name, key) || field.name == key => self.next,
            _ => fields.iter().position(|field| field.name == key).ok_or_else(changed)?,
        };
        self.in_order &= field == self.next && self.class.sorted[field] == field;
        self.next = field + 1;
        self.write(field, value)
    }

    fn end(mut self) -> Outcome<()> {
        let base = self.base;
        for field in 0..self.class.fields.len() {
            // Skipped, because there is nothing to write.
            if self.writer.output.ranges[base + field] == Part::ABSENT {
                self.in_order = false;
                self.write(field, &None::<()>)?;
            }
        }
        let output = &mut self.writer.output;
        if base == 0 && output.is_outermost() && !self.in_order {
            output.order = Some(&self.class.sorted);
            output.shallower();
            return Ok(());
        }
        if !self.in_order {
            let old = output.cut(self.start);
            for &field in &self.class.sorted {
                let part = output.ranges[base + field];
                output.copy_part(&old, part);
            }
            output.reuse(old);
        }
        output.ranges.truncate(base);
        output.shallower();
        Ok(())
    }
}

/// The elements of a list or array.
pub(super) struct Elements<'w> {
    writer: &'w mut Writer,
    element: NodeId,
    kind: Each,
    generic: bool,
    start: usize,
    /// The first of this list in [`Output::starts`].
    base: usize,
    count: usize,
    announced: usize,
    nulls: usize,
}

/// How the elements are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Each {
    /// Of a `byte[]`.
    Byte,
    /// Of an array.
    Array(Head),
    /// Of an `EnumSet`.
    Constant,
    /// All are of the class that the field declares.
    Declared(&'static Class),
    /// All are of one class, which is written once.
    Same(&'static Class),
    /// Each has a class; where it is the same one, this is to be written once.
    Any(&'static Class),
}

impl Elements<'_> {
    /// What is in front of the elements, if there are so many and none or some of them are null.
    fn head(&mut self, count: usize, nulls: bool) -> Outcome<()> {
        let length = Output::length(count)?;
        let writer = &mut *self.writer;
        match self.kind {
            Each::Byte | Each::Array(_) => writer.output.varint(length),
            Each::Constant => {
                let class = writer.shape.class_name(self.element);
                match writer.is_abstract(self.element) {
                    true => writer.output.class(format!("{class}$1")),
                    false => writer.output.class(class),
                }
                writer.output.varint(length - 1);
            }
            Each::Declared(class) => {
                writer.output.flagged(nulls, length);
                comparator(&mut writer.output, class);
            }
            Each::Same(class) => {
                writer.output.flagged(count > 0, length);
                comparator(&mut writer.output, class);
                if count > 0 {
                    writer.class(self.element);
                    writer.output.byte(nulls.into());
                }
            }
            Each::Any(class) => {
                writer.output.flagged(false, length);
                comparator(&mut writer.output, class);
            }
        }
        Ok(())
    }

    /// Writes the elements anew, behind a head that is right.
    fn again(&mut self) -> Outcome<()> {
        let same = self.one_class();
        let end = self.writer.output.bytes.len();
        let starts = self.writer.output.starts.split_off(self.base);
        let old = self.writer.output.cut(self.start);
        // Whether the class of each is in the head, and is not to be repeated.
        let (null, once) = match (self.kind, same) {
            (Each::Any(class), Same::One(same)) => {
                self.same_head(class, Some(same))?;
                let is_enum = matches!(self.writer.shape.nodes[self.element].kind, Kind::Enum(_));
                let null =
                    if is_enum { Some(0) } else { values::null_of(self.writer.output.class_name(same)) };
                (null, 1)
            }
            (Each::Any(class) | Each::Same(class), Same::Null) => {
                self.same_head(class, None)?;
                self.writer.output.reuse(old);
                return Ok(());
            }
            _ => {
                self.head(self.count, self.nulls > 0)?;
                (null(&self.writer.shape.nodes[self.element]), 0)
            }
        };
        let marked = self.nulls > 0 && (once > 0 || matches!(self.kind, Each::Declared(_) | Each::Same(_)));
        let output = &mut self.writer.output;
        for (at, &start) in starts.iter().enumerate() {
            let range = start..starts.get(at + 1).copied().unwrap_or(end);
            // A null is one byte where there is a class, and none elsewhere.
            let is_null = if once > 0 { old.byte(start) == 0 } else { range.is_empty() };
            match null {
                _ if !marked => {}
                null if is_null => output.byte(null.unwrap_or(0)),
                None => output.byte(1),
                Some(_) => {}
            }
            if !is_null {
                output.copy(&old, start + once..range.end);
            }
        }
        output.reuse(old);
        Ok(())
    }

    /// What the classes of the elements are, apart from nulls.
    fn one_class(&self) -> Same {
        if self.nulls == self.count {
            return Same::Null;
        }
        let Each::Any(_) = self.kind else { return Same::No };
        let output = &self.writer.output;
        let mut classes = output.starts[self.base..].iter().filter_map(|start| output.class_at(*start));
        match classes.next() {
            Some(first) if classes.all(|class| class == first) => Same::One(first),
            _ => Same::No,
        }
    }

    /// The head of elements that turned out to be of one class, or all null.
    fn same_head(&mut self, class: &Class, same: Option<Written>) -> Outcome<()> {
        let output = &mut self.writer.output;
        output.flagged(self.count > 0, Output::length(self.count)?);
        comparator(output, class);
        match same {
            None if self.count > 0 => output.byte(0),
            None => {}
            Some(same) => {
                output.written(same);
                output.byte((self.nulls > 0).into());
            }
        }
        Ok(())
    }
}

enum Same {
    No,
    /// All are null, or there are none.
    Null,
    One(Written),
}

/// In natural order there is none.
fn comparator(output: &mut Output, class: &Class) {
    if class.kind == ClassKind::Collection(Layout::Sorted) {
        output.byte(0);
    }
}

impl SerializeSeq for Elements<'_> {
    type Ok = ();
    type Error = Fault;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Outcome<()> {
        self.count += 1;
        let head = match self.kind {
            Each::Byte => return value.serialize(Byte(&mut self.writer.output)),
            Each::Array(head) => head,
            Each::Constant => Head::Nothing,
            Each::Declared(_) | Each::Same(_) => Head::Element,
            Each::Any(_) => Head::Class,
        };
        let start = self.writer.output.bytes.len();
        self.writer.output.starts.push(start);
        value.serialize(Place { writer: self.writer, node: self.element, head, generic: self.generic })?;
        let output = &mut self.writer.output;
        self.nulls += usize::from(match head {
            Head::Element => std::mem::take(&mut output.null_element),
            Head::Class => matches!(self.kind, Each::Any(_)) && output.bytes.get(start) == Some(&0),
            _ => false,
        });
        Ok(())
    }

    fn end(mut self) -> Outcome<()> {
        let right = self.count == self.announced
            && match self.kind {
                // In front of the elements stands that their classes differ.
                Each::Any(_) => self.count == 0 || matches!(self.one_class(), Same::No),
                _ => self.nulls == 0,
            };
        if !right {
            if self.kind == Each::Byte {
                // All at once.
                self.writer.output.starts.push(self.start + length_of(self.announced)?);
            }
            self.again()?;
        }
        self.writer.output.starts.truncate(self.base);
        self.writer.output.shallower();
        Ok(())
    }
}

/// How many bytes a length takes.
fn length_of(count: usize) -> Outcome<usize> {
    let mut output = Output::default();
    output.varint(Output::length(count)?);
    Ok(output.bytes.len())
}

fn entry_head(output: &mut Output, count: usize, sorted: bool) -> Outcome<()> {
    output.varint(Output::length(count)?);
    if sorted {
        output.byte(0);
    }
    Ok(())
}

/// The entries of a map.
pub(super) struct Entries<'w> {
    writer: &'w mut Writer,
    key: (NodeId, Head),
    value: (NodeId, Head),
    sorted: bool,
    generic: bool,
    start: usize,
    count: usize,
    announced: usize,
}

impl SerializeMap for Entries<'_> {
    type Ok = ();
    type Error = Fault;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Outcome<()> {
        self.count += 1;
        let (node, head) = self.key;
        key.serialize(Place { writer: self.writer, node, head, generic: self.generic })
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Outcome<()> {
        let (node, head) = self.value;
        value.serialize(Place { writer: self.writer, node, head, generic: self.generic })
    }

    fn end(self) -> Outcome<()> {
        let output = &mut self.writer.output;
        if self.count != self.announced {
            let from = self.start + length_of(self.announced)? + usize::from(self.sorted);
            let end = output.bytes.len();
            let old = output.cut(self.start);
            entry_head(output, self.count, self.sorted)?;
            output.copy(&old, from..end);
            output.reuse(old);
        }
        output.shallower();
        Ok(())
    }
}

/// An element of a `byte[]`.
struct Byte<'w>(&'w mut Output);

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
