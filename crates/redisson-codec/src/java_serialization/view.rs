//! [`Value`]s of the objects in a stream.
//!
//! What is referred to twice is there twice. So a small payload could make a large value, whose additional
//! memory is limited; and an object that contains itself has none.

use super::contents::Contents;
use super::modified_utf8::text;
use super::special_classes;
use super::stream::{Array, Description, Entity, Field, Id, Item, Object, Part, Seen, Stream, class_shown};
use super::stream::{is_object, primitive_size};
use super::{Refused, times};
use crate::java::{self, Constant, Enum, Value};
use crate::memory::{self, TooMuch};

/// What objects take in memory that are there once more.
const MAX_REPEATED: usize = 16 << 20;

/// Why there is no value.
#[derive(Debug)]
pub(super) enum Failure {
    /// It takes too much of a memory that is limited.
    TooMuch(TooMuch),
    /// There is none of this object.
    None(Refused),
}

impl From<TooMuch> for Failure {
    fn from(why: TooMuch) -> Self {
        Failure::TooMuch(why)
    }
}

pub(super) type Outcome<T> = Result<T, Failure>;

/// The value of an object, if it has one.
pub(super) fn value(
    stream: &mut Stream,
    payload: &[u8],
    item: Item,
    depth: usize,
    repeated: &mut usize,
) -> Result<Result<Value, Refused>, TooMuch> {
    let mut seen = std::mem::take(&mut stream.seen);
    let mut view = View { stream, payload, seen: &mut seen, open: Vec::new(), repeated, again: 0, depth };
    let value = view.value(item);
    let open = std::mem::take(&mut view.open);
    open.iter().for_each(|id| view.seen[*id as usize] = Seen::Before);
    stream.seen = seen;
    match value {
        Ok(value) => Ok(Ok(value)),
        Err(Failure::None(why)) => Ok(Err(why)),
        Err(Failure::TooMuch(why)) => Err(why),
    }
}

pub(super) struct View<'a> {
    stream: &'a Stream,
    pub(super) payload: &'a [u8],
    seen: &'a mut [Seen],
    /// Those that are being made, outermost first.
    open: Vec<Id>,
    repeated: &'a mut usize,
    /// How many of those are there once more.
    again: usize,
    /// How many more may be within each other.
    depth: usize,
}

impl<'a> View<'a> {
    pub(super) fn value(&mut self, item: Item) -> Outcome<Value> {
        let id = match item {
            Item::Null => return Ok(Value::Null),
            Item::Data(data) => {
                let bytes = data.of(self.payload);
                memory::take(bytes.len())?;
                return Ok(Value::Bytes(bytes.to_vec()));
            }
            Item::Entity(id) => id,
        };
        let Some(seen) = self.seen.get(id as usize).copied() else { return Err(none("nothing")) };
        let stream = self.stream;
        if seen == Seen::Now {
            return Err(none("an object that contains itself"));
        }
        if self.depth == 0 {
            return Err(none("too many levels"));
        }
        let again = usize::from(seen == Seen::Before);
        self.again += again;
        self.depth -= 1;
        self.seen[id as usize] = Seen::Now;
        self.open.push(id);
        memory::take(size_of::<java::Object>())?;
        self.repeat(size_of::<java::Object>())?;
        let value = match &stream.entities[id as usize] {
            Entity::Open => Err(none("an object that contains itself")),
            Entity::Text(_) => self.text(id).map(Value::String),
            Entity::Description(_) => Err(none("the description of a class")),
            Entity::Class(class) => {
                let name = match class {
                    Some(class) => self.class(*class)?.0,
                    None => return Err(none("a class without a name")),
                };
                Ok(special_classes::text("java.lang.Class", name))
            }
            Entity::Enum { class, name } => {
                let (class, constant) = (self.class(*class)?.0.into(), Constant::Name(self.text(*name)?));
                Ok(Value::Enum(Box::new(Enum { class, constant })))
            }
            Entity::Array(array) => self.array(array),
            Entity::Object(object) => {
                // Its fields are looked up among all of them.
                let size = |part: &Part| part.primitive.of(self.payload).len() + part.objects.len();
                self.repeat(object.parts.iter().map(size).sum())?;
                match special_classes::value(self, object)? {
                    Some(value) => Ok(value),
                    None => self.object(object),
                }
            }
        }?;
        self.charge(0)?;
        self.open.pop();
        self.seen[id as usize] = Seen::Before;
        self.depth += 1;
        self.again -= again;
        Ok(value)
    }

    /// Counts what an object takes that is there once more.
    pub(super) fn repeat(&mut self, bytes: usize) -> Outcome<()> {
        if self.again > 0 { self.charge(bytes) } else { Ok(()) }
    }

    /// Counts what has no bytes of its own in the stream.
    pub(super) fn charge(&mut self, bytes: usize) -> Outcome<()> {
        *self.repeated = self.repeated.saturating_add(bytes);
        if *self.repeated > MAX_REPEATED { Err(none("objects that are there too often")) } else { Ok(()) }
    }

    /// Counts a name, which many short objects may have.
    pub(super) fn named(&mut self, name: &[u8]) -> Outcome<()> {
        const USUAL: usize = 64;
        memory::take(name.len())?;
        let free = if self.again > 0 { 0 } else { USUAL };
        self.charge(name.len().saturating_sub(free))
    }

    pub(super) fn is_text(&self, id: Id) -> bool {
        self.stream.text(id).is_some()
    }

    pub(super) fn text(&mut self, id: Id) -> Outcome<String> {
        let bytes = self.stream.text(id).map_or(&[][..], |text| text.of(self.payload));
        memory::take(bytes.len())?;
        // Many objects may have the same one.
        match self.seen.get_mut(id as usize) {
            Some(seen @ Seen::Never) => {
                *seen = Seen::Before;
                self.repeat(bytes.len())?;
            }
            Some(Seen::Before) => self.charge(bytes.len())?,
            _ => self.repeat(bytes.len())?,
        }
        match text(bytes) {
            Some(text) => Ok(text.into_owned()),
            None => Err(none("half of a surrogate pair")),
        }
    }

    /// A class and its name.
    pub(super) fn class(&mut self, id: Id) -> Outcome<(String, &'a Description)> {
        let Some(class) = self.stream.description(id) else { return Err(none("no class")) };
        let bytes = class.name.of(self.payload);
        self.named(bytes)?;
        match text(bytes) {
            Some(name) => Ok((name.into_owned(), class)),
            None => Err(none(&class_shown(bytes))),
        }
    }

    /// The names of a class and those above it.
    pub(super) fn lineage(&self, class: Id) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (stream, payload) = (self.stream, self.payload);
        let mut next = stream.description(class);
        std::iter::from_fn(move || {
            let class = next?;
            next = class.base.and_then(|base| stream.description(base));
            Some(class.name.of(payload))
        })
    }

    /// What the class of this name wrote of an object.
    pub(super) fn part(&self, object: &'a Object, class: &str) -> Option<&'a Part> {
        let is = |part: &&Part| {
            let description = self.stream.description(part.class);
            description.is_some_and(|found| found.name.of(self.payload) == class.as_bytes())
        };
        object.parts.iter().find(is)
    }

    /// What it wrote itself.
    pub(super) fn contents(&self, part: &'a Part) -> Contents<'a> {
        Contents::new(&part.more, self.payload)
    }

    /// A field of an object, with the letter of its type. Of several of this name, that of the class lowest
    /// down.
    pub(super) fn field(&self, object: &'a Object, name: &str) -> Option<(u8, FieldValue<'a>)> {
        let (stream, payload) = (self.stream, self.payload);
        object.parts.iter().rev().find_map(|part| {
            let found =
                fields(stream, payload, part).find(|(field, _)| field.name.of(payload) == name.as_bytes());
            found.map(|(field, value)| (field.kind, value))
        })
    }

    /// The value of a field that is no primitive type.
    pub(super) fn item(&self, object: &'a Object, name: &str) -> Option<Item> {
        match self.field(object, name)? {
            (_, FieldValue::Item(item)) => Some(item),
            _ => None,
        }
    }

    /// The bytes of a field of this primitive type.
    pub(super) fn primitive<const N: usize>(
        &self,
        object: &'a Object,
        name: &str,
        kind: u8,
    ) -> Option<[u8; N]> {
        match self.field(object, name)? {
            (found, FieldValue::Primitive(bytes)) if found == kind => bytes.try_into().ok(),
            _ => None,
        }
    }

    pub(super) fn int(&self, object: &'a Object, name: &str) -> Option<i32> {
        self.primitive(object, name, b'I').map(i32::from_be_bytes)
    }

    /// The array that an item is, which becomes something else.
    pub(super) fn array_of(&mut self, item: Item) -> Option<&'a Array> {
        let Item::Entity(id) = item else { return None };
        let Entity::Array(array) = self.stream.entities.get(id as usize)? else { return None };
        let seen = self.seen.get_mut(id as usize)?;
        if std::mem::replace(seen, Seen::Before) != Seen::Never {
            let size = array.primitive.of(self.payload).len() + array.elements.len() * size_of::<Value>();
            self.charge(size).ok()?;
        }
        Some(array)
    }

    /// The object that an item is.
    pub(super) fn object_of(&self, item: Item) -> Option<&'a Object> {
        match item {
            Item::Entity(id) => match self.stream.entities.get(id as usize)? {
                Entity::Object(object) => Some(object),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn values(&mut self, items: &[Item]) -> Outcome<Vec<Value>> {
        let mut values = Vec::new();
        for item in items {
            self.repeat(size_of::<Value>())?;
            let value = self.value(*item)?;
            memory::push(&mut values, value)?;
        }
        Ok(values)
    }

    /// Keys and values in turn.
    pub(super) fn entries(&mut self, items: &[Item]) -> Outcome<Vec<(Value, Value)>> {
        let mut entries = Vec::new();
        for [key, value] in items.as_chunks().0 {
            self.repeat(size_of::<(Value, Value)>())?;
            let entry = (self.value(*key)?, self.value(*value)?);
            memory::push(&mut entries, entry)?;
        }
        Ok(entries)
    }

    fn array(&mut self, array: &Array) -> Outcome<Value> {
        let (class, description) = self.class(array.class)?;
        let bytes = array.primitive.of(self.payload);
        let elements = match *description.name.of(self.payload) {
            [b'[', b'B'] => {
                memory::take(bytes.len())?;
                self.repeat(bytes.len())?;
                return Ok(Value::Bytes(bytes.to_vec()));
            }
            [b'[', kind] if primitive_size(kind).is_some() => {
                let size = primitive_size(kind).unwrap_or(1);
                let mut elements = Vec::new();
                for element in bytes.chunks_exact(size) {
                    self.repeat(size_of::<Value>())?;
                    memory::push(&mut elements, primitive(kind, element))?;
                }
                elements
            }
            _ => self.values(&array.elements)?,
        };
        Ok(Value::Array(Box::new(java::Array { class: class.into(), elements })))
    }

    /// An object of which nothing else is known: its fields. What a class writes behind them is a field with
    /// the name of the method that does.
    fn object(&mut self, object: &Object) -> Outcome<Value> {
        let (stream, payload) = (self.stream, self.payload);
        let is_error = self.lineage(object.class).any(|class| class == b"java.lang.Throwable");
        let (class, _) = self.class(object.class)?;
        let mut read = Vec::new();
        for part in &object.parts {
            for (field, value) in fields(stream, payload, part) {
                self.repeat(size_of::<(String, Value)>())?;
                let name = self.name(field)?;
                let value = match value {
                    FieldValue::Primitive(bytes) => primitive(field.kind, bytes),
                    // An error without a cause is its own.
                    FieldValue::Item(Item::Entity(id))
                        if is_error && name == "cause" && self.open.last() == Some(&id) =>
                    {
                        Value::Null
                    }
                    FieldValue::Item(item) => self.value(item)?,
                };
                memory::push(&mut read, (name, value))?;
            }
            if let Some(written) = self.written(part)? {
                memory::push(&mut read, ("writeObject".to_owned(), written))?;
            }
        }
        Ok(Value::Object(Box::new(java::Object { class: class.into(), fields: read })))
    }

    fn written(&mut self, part: &Part) -> Outcome<Option<Value>> {
        match part.more.is_empty() {
            true => Ok(None),
            false => Ok(Some(Value::list(self.values(&part.more)?))),
        }
    }

    fn name(&mut self, field: &Field) -> Outcome<String> {
        let bytes = field.name.of(self.payload);
        self.named(bytes)?;
        text(bytes).map(|name| name.into_owned()).ok_or_else(|| none(&class_shown(bytes)))
    }
}

/// The value of a field.
#[derive(Clone, Copy)]
pub(super) enum FieldValue<'a> {
    Primitive(&'a [u8]),
    Item(Item),
}

/// The fields that a class wrote of an object.
fn fields<'a>(
    stream: &'a Stream,
    payload: &'a [u8],
    part: &'a Part,
) -> impl Iterator<Item = (&'a Field, FieldValue<'a>)> {
    let described = stream.description(part.class).map_or(&[][..], |class| &class.fields);
    let (mut bytes, mut objects) = (part.primitive.of(payload), part.objects.iter());
    described.iter().map_while(move |field| {
        let value = match primitive_size(field.kind) {
            Some(size) => {
                let (value, rest) = bytes.split_at_checked(size)?;
                bytes = rest;
                FieldValue::Primitive(value)
            }
            None => FieldValue::Item(*objects.next().filter(|_| is_object(field.kind))?),
        };
        Some((field, value))
    })
}

/// A value of a primitive type, of as many bytes as it has.
fn primitive(kind: u8, bytes: &[u8]) -> Value {
    match (kind, bytes) {
        (b'Z', &[byte]) => Value::Boolean(byte != 0),
        (b'B', &[byte]) => Value::Byte(byte as i8),
        (b'C', &[a, b]) => Value::Character(u16::from_be_bytes([a, b])),
        (b'S', &[a, b]) => Value::Short(i16::from_be_bytes([a, b])),
        (b'I', &[a, b, c, d]) => Value::Integer(i32::from_be_bytes([a, b, c, d])),
        (b'F', &[a, b, c, d]) => Value::Float(f32::from_be_bytes([a, b, c, d])),
        (b'J', &[a, b, c, d, e, f, g, h]) => Value::Long(i64::from_be_bytes([a, b, c, d, e, f, g, h])),
        (b'D', &[a, b, c, d, e, f, g, h]) => Value::Double(f64::from_be_bytes([a, b, c, d, e, f, g, h])),
        _ => Value::Null,
    }
}

/// The value that a `java.time.Ser` wrote.
pub(super) fn time(view: &View<'_>, object: &Object) -> Option<Value> {
    let part = object.parts.first()?;
    times::read(&mut Contents::new(&part.more, view.payload))
}

#[cold]
pub(super) fn none(what: &str) -> Failure {
    Failure::None(Refused::new(format!("Java's own serialization wrote {what}")))
}
