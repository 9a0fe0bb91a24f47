//! From a payload to a Rust type, by its shape.

use std::borrow::Cow;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};

use super::input::{ClassRef, Fault, Input, Numbered, Outcome};
use super::{scalar, texts, values};
use crate::codec::java::class::{Class, ClassKind, Layout, Part};
use crate::codec::java::marker::{Marker, marker};
use crate::codec::java::shape::{EnumShape, Form, Kind, Node, NodeId, Shape, StructShape};
use crate::codec::java::{Value, handover};

/// What a place of a type needs to be read.
pub(super) struct Reader<'a, 'de> {
    pub(super) input: Input<'de>,
    pub(super) shape: &'a Shape,
    /// Take structs and enums of other classes, too.
    pub(super) any_class: bool,
}

/// A place in the type, and what is before the value there.
pub(super) struct Place<'r, 'a, 'de> {
    reader: &'r mut Reader<'a, 'de>,
    node: NodeId,
    head: Head,
    /// Whether Kryo knows the type arguments here, as declared by a field.
    generic: bool,
}

/// What is in front of a value.
#[derive(Clone, Copy, Debug)]
enum Head {
    /// Its class, or null.
    Class,
    /// A null, or something else that is not one.
    Nullable(Found),
    /// Nothing.
    Nothing(Found),
    /// No value either: it is null.
    Null,
}

/// The class of a value, as far as its layout depends on it.
#[derive(Clone, Copy, Debug)]
enum Found {
    /// The declared one.
    Declared,
    /// A collection or map.
    Known(&'static Class),
    /// Any.
    Any(ClassRef),
}

impl<'r, 'a, 'de> Place<'r, 'a, 'de> {
    /// The value of a whole payload.
    #[inline]
    pub(super) fn whole(reader: &'r mut Reader<'a, 'de>) -> Self {
        let node = reader.shape.root();
        Self { reader, node, head: Head::Class, generic: false }
    }

    #[inline]
    fn inner(&mut self, node: NodeId, head: Head, generic: bool) -> Place<'_, 'a, 'de> {
        Place { reader: self.reader, node, head, generic }
    }
}

impl<'a, 'de> Reader<'a, 'de> {
    #[inline]
    fn node(&self, node: NodeId) -> &'a Node {
        let shape: &'a Shape = self.shape;
        &shape.nodes[node]
    }

    /// Reads what is in front of a value; `None` is a null.
    fn head(&mut self, node: NodeId, head: Head) -> Outcome<Option<Found>> {
        match head {
            Head::Nothing(found) => Ok(Some(found)),
            Head::Null => Ok(None),
            Head::Class => match self.input.class()? {
                None => Ok(None),
                Some(class) => self.check(node, class).map(Some),
            },
            Head::Nullable(found) => {
                let present = match self.null(node, found) {
                    Some(null) => {
                        let present = self.input.peek()? != null;
                        if !present {
                            self.input.byte()?;
                        }
                        present
                    }
                    None => self.input.boolean()?,
                };
                Ok(present.then_some(found))
            }
        }
    }

    /// The byte by which the value itself says that it is null, if it does.
    fn null(&self, node: NodeId, found: Found) -> Option<u8> {
        match (&self.node(node).kind, found) {
            (Kind::Value, Found::Any(class)) => values::null(&self.input, class),
            (Kind::String, _) => Some(0x80),
            (Kind::Bytes | Kind::Array(_) | Kind::Enum(_), _) => Some(0),
            (Kind::Scalar(class) | Kind::Text(class), _) => scalar::null(class),
            (Kind::Collection(declared, _) | Kind::Map(declared, ..), found) => {
                let class = if let Found::Known(class) = found { class } else { declared };
                scalar::null(class)
            }
            _ => None,
        }
    }

    /// Whether a value of this class can be what is declared here.
    fn check(&self, node: NodeId, class: ClassRef) -> Outcome<Found> {
        let numbered =
            |number| if class == ClassRef::Numbered(number) { Some(Found::Declared) } else { None };
        let named = |name: &str| self.input.is_named(class, name).then_some(Found::Declared);
        let one_of = |declared: &'static Class, fits: fn(ClassKind) -> bool| match class {
            ClassRef::Named(_) if self.input.is_named(class, declared.name) => Some(Found::Known(declared)),
            ClassRef::Named(_) => self.input.known(class).filter(|known| fits(known.kind)).map(Found::Known),
            ClassRef::Numbered(_) => None,
        };
        let found = match &self.node(node).kind {
            Kind::Boolean => numbered(Numbered::Boolean),
            Kind::Byte => numbered(Numbered::Byte),
            Kind::Short => numbered(Numbered::Short),
            Kind::Character => numbered(Numbered::Character),
            Kind::Integer => numbered(Numbered::Integer),
            Kind::Long => numbered(Numbered::Long),
            Kind::Float => numbered(Numbered::Float),
            Kind::Double => numbered(Numbered::Double),
            Kind::String => numbered(Numbered::String),
            Kind::Bytes => named("[B"),
            // A `ZoneId` is one of two classes.
            Kind::Text(declared) if declared.name == "java.time.ZoneRegion" => {
                one_of(declared, |kind| kind == ClassKind::Text(&[Part::Offset]))
            }
            Kind::Scalar(declared) | Kind::Text(declared) => named(declared.name),
            Kind::Optional(_) => named("java.util.Optional"),
            Kind::Value => Some(Found::Any(class)),
            Kind::Array(_) => named(&self.shape.array_class(node)),
            Kind::Collection(declared, _) | Kind::EnumSet(declared, _) => {
                one_of(declared, |kind| matches!(kind, ClassKind::Collection(_) | ClassKind::EnumSet))
            }
            Kind::Map(declared, ..) => one_of(declared, |kind| matches!(kind, ClassKind::Map(_))),
            Kind::Struct(at) => {
                let named = named(&self.shape.structs[*at].class);
                let other = || self.any_class && matches!(class, ClassRef::Named(_));
                named.or_else(|| other().then_some(Found::Declared))
            }
            Kind::Enum(at) => {
                let known = self.is_enum(&self.shape.enums[*at], class) || self.any_class;
                (known && matches!(class, ClassRef::Named(_))).then_some(Found::Declared)
            }
        };
        found.ok_or_else(|| {
            let expected = self.shape.class_name(node);
            let (found, at) = (self.input.shown(class), self.input.at);
            Fault::new(format!("expected the class `{expected}`, found `{found}`, before offset {at}"))
        })
    }

    /// A constant with a body has a class of its own: `Level$1`.
    fn is_enum(&self, declared: &EnumShape, class: ClassRef) -> bool {
        if declared.form != Form::Abstract {
            return self.input.is_named(class, &declared.class);
        }
        match self.input.class_name(class).strip_prefix(&declared.class[..]) {
            Some("") => true,
            Some(body) => {
                body.strip_prefix('$').is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
            }
            None => false,
        }
    }

    #[cold]
    fn unexpected_null(&self, node: NodeId) -> Fault {
        let expected = self.shape.class_name(node);
        Fault::new(format!("expected `{expected}`, found a null before offset {}", self.input.at))
    }
}

/// For the places of which the type asks for something else than what it was traced with.
fn changed() -> Fault {
    Fault::new("its `Deserialize` asks for something else than it did at first")
}

macro_rules! primitives {
    ($($method:ident $kind:ident |$input:ident| $value:expr => $visit:ident;)*) => {$(
        fn $method<V: Visitor<'de>>(mut self, visitor: V) -> Outcome<V::Value> {
            let (_, node) = self.present()?;
            let ($input, Kind::$kind) = (&mut self.reader.input, &node.kind) else { return Err(changed()) };
            visitor.$visit($value)
        }
    )*};
}

impl<'r, 'a, 'de> Place<'r, 'a, 'de> {
    /// What is in front of a value that is not null.
    #[inline]
    fn present(&mut self) -> Outcome<(Found, &'a Node)> {
        match self.reader.head(self.node, self.head)? {
            Some(found) => Ok((found, self.reader.node(self.node))),
            None => Err(self.reader.unexpected_null(self.node)),
        }
    }

    /// A value of [`Value`] or one of its kinds.
    fn value(&mut self) -> Outcome<Value> {
        let found = self.reader.head(self.node, self.head)?;
        let node = self.reader.node(self.node);
        match (&node.kind, found) {
            (Kind::Value, None) => Ok(Value::Null),
            (Kind::Value, Some(Found::Any(class))) => values::read(&mut self.reader.input, class),
            (Kind::Scalar(class), Some(_)) => scalar::read(&mut self.reader.input, class),
            (_, None) => Err(self.reader.unexpected_null(self.node)),
            _ => Err(changed()),
        }
    }
}

impl<'r, 'a, 'de> Deserializer<'de> for Place<'r, 'a, 'de> {
    type Error = Fault;

    primitives! {
        deserialize_bool Boolean |input| input.boolean()? => visit_bool;
        deserialize_i8 Byte |input| input.byte()? as i8 => visit_i8;
        deserialize_i16 Short |input| i16::from_le_bytes(input.array()?) => visit_i16;
        deserialize_u16 Character |input| u16::from_le_bytes(input.array()?) => visit_u16;
        deserialize_i32 Integer |input| input.int()? => visit_i32;
        deserialize_i64 Long |input| input.long()? => visit_i64;
        deserialize_f32 Float |input| f32::from_le_bytes(input.array()?) => visit_f32;
        deserialize_f64 Double |input| f64::from_le_bytes(input.array()?) => visit_f64;
    }

    fn deserialize_char<V: Visitor<'de>>(mut self, visitor: V) -> Outcome<V::Value> {
        self.present()?;
        let unit = u16::from_le_bytes(self.reader.input.array()?);
        match char::from_u32(unit.into()) {
            Some(char) => visitor.visit_char(char),
            None => {
                Err(Fault::new(format!("half of a surrogate pair before offset {}", self.reader.input.at)))
            }
        }
    }

    fn deserialize_str<V: Visitor<'de>>(mut self, visitor: V) -> Outcome<V::Value> {
        let (found, node) = self.present()?;
        match (&node.kind, found) {
            (Kind::String, _) => {}
            (Kind::Text(_), Found::Known(class)) | (&Kind::Text(class), _) => {
                return visitor.visit_string(texts::read(&mut self.reader.input, class)?);
            }
            _ => return Err(changed()),
        }
        match self.reader.input.text()? {
            Some(Cow::Borrowed(text)) => visitor.visit_borrowed_str(text),
            Some(Cow::Owned(text)) => visitor.visit_string(text),
            None => Err(self.reader.unexpected_null(self.node)),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(mut self, visitor: V) -> Outcome<V::Value> {
        self.present()?;
        visitor.visit_borrowed_bytes(self.reader.bytes()?)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Outcome<V::Value> {
        match self.reader.head(self.node, self.head)? {
            None => visitor.visit_none(),
            Some(found) => {
                self.head = Head::Nothing(found);
                visitor.visit_some(self)
            }
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        visitor: V,
    ) -> Outcome<V::Value> {
        match marker(name) {
            Some(Marker::Value) => handover::give(self.value()?, visitor),
            Some(Marker::Class(class)) => match class.kind {
                ClassKind::Scalar(_) => handover::give(self.value()?, visitor),
                ClassKind::Optional => {
                    let Kind::Optional(inside) = self.reader.node(self.node).kind else {
                        return Err(changed());
                    };
                    // A null is taken for an empty one, whose null is read next.
                    let head = match self.reader.head(self.node, self.head)? {
                        None => Head::Null,
                        Some(_) => Head::Class,
                    };
                    self.reader.input.deeper()?;
                    let value = visitor.visit_newtype_struct(self.inner(inside, head, false))?;
                    self.reader.input.shallower();
                    Ok(value)
                }
                _ => visitor.visit_newtype_struct(self),
            },
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Outcome<V::Value> {
        let (_, node) = self.present()?;
        let Kind::Struct(at) = node.kind else { return Err(changed()) };
        let shape: &'a Shape = self.reader.shape;
        let class = &shape.structs[at];
        self.reader.input.deeper()?;
        let mut fields = Fields { place: self, class, next: 0 };
        let value = visitor.visit_map(&mut fields)?;
        if fields.next < class.fields.len() {
            return Err(changed());
        }
        fields.place.reader.input.shallower();
        Ok(value)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(mut self, _: &'static str, visitor: V) -> Outcome<V::Value> {
        self.present()?;
        visitor.visit_unit()
    }

    fn deserialize_enum<V: Visitor<'de>>(
        mut self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Outcome<V::Value> {
        let (_, node) = self.present()?;
        let Kind::Enum(at) = node.kind else { return Err(changed()) };
        let declared = &self.reader.shape.enums[at];
        let input = &mut self.reader.input;
        let start = input.at;
        let number = input.varint()? as usize;
        let Some(variant) = number.checked_sub(1).and_then(|ordinal| declared.variants.get(ordinal)) else {
            let (class, count) = (&declared.class, declared.variants.len());
            return Err(Fault::new(format!(
                "expected one of the {count} constants of `{class}` at offset {start}, found the number {number}"
            )));
        };
        visitor.visit_enum(Constant(variant))
    }

    fn deserialize_seq<V: Visitor<'de>>(mut self, visitor: V) -> Outcome<V::Value> {
        let (found, node) = self.present()?;
        self.reader.input.deeper()?;
        let elements = match (&node.kind, found) {
            (Kind::Bytes, _) => {
                Elements { kind: Each::Byte(self.reader.bytes()?.iter()), place: self, left: 0 }
            }
            (Kind::Array(element), _) => self.array(*element)?,
            (Kind::Collection(_, element) | Kind::EnumSet(_, element), Found::Known(class)) => {
                self.collection(*element, class)?
            }
            _ => return Err(changed()),
        };
        let mut elements = elements;
        let value = visitor.visit_seq(&mut elements)?;
        if elements.left > 0 {
            return Err(changed());
        }
        elements.place.reader.input.shallower();
        Ok(value)
    }

    fn deserialize_map<V: Visitor<'de>>(mut self, visitor: V) -> Outcome<V::Value> {
        let (found, node) = self.present()?;
        let (Kind::Map(_, key, value), Found::Known(class)) = (&node.kind, found) else {
            return Err(changed());
        };
        self.reader.input.deeper()?;
        let mut entries = self.map(*key, *value, class)?;
        let map = visitor.visit_map(&mut entries)?;
        if entries.left > 0 {
            return Err(changed());
        }
        entries.place.reader.input.shallower();
        Ok(map)
    }

    fn is_human_readable(&self) -> bool {
        true
    }

    serde::forward_to_deserialize_any! {
        u8 u32 u64 i128 u128 unit tuple tuple_struct identifier ignored_any
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Outcome<V::Value> {
        Err(changed())
    }
}

impl<'a, 'de> Reader<'a, 'de> {
    fn bytes(&mut self) -> Outcome<&'de [u8]> {
        let length = self.input.varint()?;
        let count = self.input.count(length)?;
        self.input.take(count)
    }

    /// How the class of a field or element is told where it is declared.
    #[inline]
    fn declared(&self, node: NodeId) -> Head {
        let declared = self.node(node);
        if declared.is_final { Head::Nullable(Found::Declared) } else { Head::Class }
    }

    /// A comparator has no fields, or is not known.
    fn comparator(&mut self) -> Outcome<()> {
        values::comparator(&mut self.input).map(drop)
    }
}

impl<'r, 'a, 'de> Place<'r, 'a, 'de> {
    fn array(mut self, element: NodeId) -> Outcome<Elements<'r, 'a, 'de>> {
        let reader = &mut self.reader;
        let length = reader.input.varint()?;
        let left = reader.input.count(length)?;
        let node = reader.node(element);
        let head = if node.is_primitive() {
            Head::Nothing(Found::Declared)
        } else if let (Kind::Array(_) | Kind::Bytes, false) = (&node.kind, node.object) {
            // The class of an array is final, whatever its elements.
            Head::Nullable(Found::Declared)
        } else {
            reader.declared(element)
        };
        self.generic = false;
        Ok(Elements { place: self, left, kind: Each::Element(element, head) })
    }

    fn collection(mut self, element: NodeId, class: &'static Class) -> Outcome<Elements<'r, 'a, 'de>> {
        let reader = &mut self.reader;
        let layout = match class.kind {
            ClassKind::Collection(layout) => layout,
            ClassKind::EnumSet => {
                if let Some(class) = reader.input.class()? {
                    reader.check(element, class)?;
                }
                let left = reader.input.varint()?;
                let left = reader.input.count(left.saturating_add(1))?;
                let kind = Each::Element(element, Head::Nothing(Found::Declared));
                return Ok(Elements { place: self, left, kind });
            }
            _ => return Err(changed()),
        };
        let (left, head) = match layout {
            Layout::Empty => (0, Head::Class),
            Layout::Singleton => {
                self.generic = false;
                (1, Head::Class)
            }
            Layout::Plain | Layout::Sorted | Layout::Immutable => {
                let known = self.generic && reader.node(element).is_final;
                let nullable = layout != Layout::Immutable;
                let (flag, length) = match known && !nullable {
                    true => (false, reader.input.varint()?),
                    false => reader.input.flagged()?,
                };
                let left = reader.input.count(length)?;
                if layout == Layout::Sorted {
                    reader.comparator()?;
                }
                let head = match (left, known, flag) {
                    (0, ..) | (_, false, false) => Head::Class,
                    (_, true, true) => Head::Nullable(Found::Declared),
                    (_, true, false) => Head::Nothing(Found::Declared),
                    // All are of one class, which comes first.
                    (_, false, true) => match reader.input.class()? {
                        None => Head::Null,
                        Some(class) => {
                            let found = reader.check(element, class)?;
                            let nulls = nullable && reader.input.boolean()?;
                            if nulls { Head::Nullable(found) } else { Head::Nothing(found) }
                        }
                    },
                };
                (left, head)
            }
        };
        Ok(Elements { place: self, left, kind: Each::Element(element, head) })
    }

    fn map(mut self, key: NodeId, value: NodeId, class: &'static Class) -> Outcome<Entries<'r, 'a, 'de>> {
        let reader = &mut self.reader;
        let ClassKind::Map(layout) = class.kind else { return Err(changed()) };
        let left = match layout {
            Layout::Empty => 0,
            Layout::Singleton => {
                self.generic = false;
                1
            }
            Layout::Plain | Layout::Sorted | Layout::Immutable => {
                let length = reader.input.varint()?;
                let left = reader.input.count(length)?;
                if layout == Layout::Sorted {
                    reader.comparator()?;
                }
                left
            }
        };
        let generic = self.generic;
        let head = |node| match reader.declared(node) {
            _ if !generic => Head::Class,
            Head::Nullable(found) if layout == Layout::Immutable => Head::Nothing(found),
            head => head,
        };
        let (key, value) = ((key, head(key)), (value, head(value)));
        Ok(Entries { place: self, left, key, value })
    }
}

/// The fields of a struct, in Java's order.
struct Fields<'r, 'a, 'de> {
    place: Place<'r, 'a, 'de>,
    class: &'a StructShape,
    next: usize,
}

impl<'de> MapAccess<'de> for &mut Fields<'_, '_, 'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Outcome<Option<K::Value>> {
        let Some(&field) = self.class.sorted.get(self.next) else { return Ok(None) };
        seed.deserialize(BorrowedStrDeserializer::new(self.class.fields[field].name)).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Outcome<T::Value> {
        let Some(&field) = self.class.sorted.get(self.next) else { return Err(changed()) };
        self.next += 1;
        let node = self.class.fields[field].node;
        let head = match self.place.reader.node(node) {
            declared if declared.is_primitive() => Head::Nothing(Found::Declared),
            _ => self.place.reader.declared(node),
        };
        // Kryo keeps the type arguments of the fields of classes, but not of those of records.
        seed.deserialize(self.place.inner(node, head, self.class.form != Form::Record))
    }
}

struct Elements<'r, 'a, 'de> {
    place: Place<'r, 'a, 'de>,
    left: usize,
    kind: Each<'de>,
}

enum Each<'de> {
    Byte(std::slice::Iter<'de, u8>),
    Element(NodeId, Head),
}

impl<'de> SeqAccess<'de> for &mut Elements<'_, '_, 'de> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Outcome<Option<T::Value>> {
        match &mut self.kind {
            Each::Byte(bytes) => match bytes.next() {
                Some(byte) => seed.deserialize(Byte(*byte)).map(Some),
                None => Ok(None),
            },
            Each::Element(node, head) => {
                if self.left == 0 {
                    return Ok(None);
                }
                self.left -= 1;
                let start = self.place.reader.input.at;
                let (node, head, generic) = (*node, *head, self.place.generic);
                let element = seed.deserialize(self.place.inner(node, head, generic))?;
                self.place.reader.input.element_since(start)?;
                Ok(Some(element))
            }
        }
    }

    fn size_hint(&self) -> Option<usize> {
        match &self.kind {
            Each::Byte(bytes) => Some(bytes.len()),
            Each::Element(..) => Some(self.left.min(self.place.reader.input.left())),
        }
    }
}

struct Entries<'r, 'a, 'de> {
    place: Place<'r, 'a, 'de>,
    left: usize,
    key: (NodeId, Head),
    value: (NodeId, Head),
}

impl<'de> MapAccess<'de> for &mut Entries<'_, '_, 'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Outcome<Option<K::Value>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let ((node, head), generic) = (self.key, self.place.generic);
        let start = self.place.reader.input.at;
        let key = seed.deserialize(self.place.inner(node, head, generic))?;
        self.place.reader.input.element_since(start)?;
        Ok(Some(key))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Outcome<T::Value> {
        let ((node, head), generic) = (self.value, self.place.generic);
        seed.deserialize(self.place.inner(node, head, generic))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.min(self.place.reader.input.left()))
    }
}

/// An element of a `byte[]`, as a `u8` or an `i8`.
struct Byte(u8);

impl<'de> Deserializer<'de> for Byte {
    type Error = Fault;

    fn deserialize_i8<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        visitor.visit_i8(self.0 as i8)
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Outcome<V::Value> {
        visitor.visit_u8(self.0)
    }

    serde::forward_to_deserialize_any! {
        bool i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// A constant of an enum.
struct Constant(&'static str);

impl<'de> EnumAccess<'de> for Constant {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Outcome<(V::Value, Self)> {
        Ok((seed.deserialize(BorrowedStrDeserializer::new(self.0))?, self))
    }
}

impl<'de> VariantAccess<'de> for Constant {
    type Error = Fault;

    fn unit_variant(self) -> Outcome<()> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Outcome<T::Value> {
        Err(changed())
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Outcome<V::Value> {
        Err(changed())
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Outcome<V::Value> {
        Err(changed())
    }
}
