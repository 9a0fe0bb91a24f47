//! Values. What is in one is read in a loop, so that a chain may be as long as the payload.

use super::bytes::Reader;
use super::{Array, Entity, Id, Item, Object, Part, Span, code, flag, is_object, primitive_size};
use crate::java_serialization::Refused;
use crate::memory;

/// Something that has parts, which are read after it has begun.
enum Begun {
    Object {
        id: Id,
        object: Box<Object>,
        /// The classes that write something, base classes last.
        classes: Vec<Id>,
        /// How many fields of the last part are still to come.
        fields: usize,
        /// Whether the class of the last part writes more, up to an end.
        more: bool,
    },
    Array {
        id: Id,
        array: Box<Array>,
        left: usize,
    },
}

impl Reader<'_> {
    /// A value with all that is in it.
    pub(super) fn whole(&mut self) -> Result<Item, Refused> {
        let mut open = Vec::new();
        let item = self.begin(&mut open)?;
        while let Some(last) = open.last_mut() {
            // What begins within it is read first.
            let mut inside = Vec::new();
            let is_done = match last {
                Begun::Array { left: 0, .. } => true,
                Begun::Array { array, left, .. } => {
                    *left -= 1;
                    let element = self.begin(&mut inside)?;
                    memory::push(&mut array.elements, element)?;
                    false
                }
                Begun::Object { object, classes, fields, more, .. } => match object.parts.last_mut() {
                    Some(part) if *fields > 0 => {
                        *fields -= 1;
                        let value = self.begin(&mut inside)?;
                        memory::push(&mut part.objects, value)?;
                        false
                    }
                    Some(part) if *more => {
                        match self.peek() {
                            Some(code::END) => {
                                self.at += 1;
                                *more = false;
                            }
                            Some(code::DATA | code::LONG_DATA) => {
                                let data = Item::Data(self.data()?);
                                memory::push(&mut part.more, data)?;
                            }
                            _ => {
                                let value = self.begin(&mut inside)?;
                                memory::push(&mut part.more, value)?;
                            }
                        }
                        false
                    }
                    _ => match classes.pop() {
                        None => true,
                        Some(class) => {
                            (*fields, *more) = self.part(object, class)?;
                            false
                        }
                    },
                },
            };
            if is_done && let Some(done) = open.pop() {
                let (id, entity) = match done {
                    Begun::Array { id, array, .. } => (id, Entity::Array(array)),
                    Begun::Object { id, object, .. } => (id, Entity::Object(object)),
                };
                self.stream.entities[id as usize] = entity;
            }
            for begun in inside {
                memory::push(&mut open, begun)?;
            }
        }
        Ok(item)
    }

    fn data(&mut self) -> Result<Span, Refused> {
        match self.byte()? {
            code::DATA => {
                let length = self.byte()?;
                self.span(length.into())
            }
            _ => {
                let length = self.int()?;
                self.span(length as usize)
            }
        }
    }

    /// A value whose parts are still to be read, if it has any.
    fn begin(&mut self, open: &mut Vec<Begun>) -> Result<Item, Refused> {
        let start = self.at;
        match self.byte()? {
            code::NULL => Ok(Item::Null),
            code::REFERENCE => self.reference().map(Item::Entity),
            code::TEXT => {
                let text = self.short_text()?;
                self.add(Entity::Text(text)).map(Item::Entity)
            }
            code::LONG_TEXT => {
                let length = u64::from_be_bytes(self.array()?);
                let text = self.span(usize::try_from(length).unwrap_or(usize::MAX))?;
                self.add(Entity::Text(text)).map(Item::Entity)
            }
            code::DESCRIPTION | code::PROXY => {
                self.at = start;
                match self.description()? {
                    Some(id) => Ok(Item::Entity(id)),
                    None => Ok(Item::Null),
                }
            }
            code::CLASS => {
                let class = self.description()?;
                self.add(Entity::Class(class)).map(Item::Entity)
            }
            code::ENUM => {
                let class = self.some_description()?;
                let id = self.add(Entity::Open)?;
                let name = self.text()?;
                self.stream.entities[id as usize] = Entity::Enum { class, name };
                Ok(Item::Entity(id))
            }
            code::ARRAY => {
                let class = self.some_description()?;
                let id = self.add(Entity::Open)?;
                memory::take(size_of::<Array>())?;
                let (primitive, left) = self.elements(class)?;
                let array = Box::new(Array { class, primitive, elements: Vec::new() });
                open.push(Begun::Array { id, array, left });
                Ok(Item::Entity(id))
            }
            code::OBJECT => {
                let class = self.some_description()?;
                let id = self.add(Entity::Open)?;
                let classes = self.classes(class);
                memory::take(size_of::<Object>() + classes.len() * size_of::<Part>())?;
                let object = Box::new(Object { class, parts: Vec::with_capacity(classes.len()) });
                open.push(Begun::Object { id, object, classes, fields: 0, more: false });
                Ok(Item::Entity(id))
            }
            _ => Err(self.wrong(start, "no value")),
        }
    }

    /// The elements of a primitive type, or how many others follow.
    fn elements(&mut self, class: Id) -> Result<(Span, usize), Refused> {
        let start = self.at;
        let name = self.stream.description(class).map_or(&[][..], |class| class.name.of(self.payload));
        let size = match name {
            [b'[', kind] => primitive_size(*kind),
            [b'[', b'L' | b'[', ..] => Some(0),
            _ => None,
        };
        let Some(size) = size else { return Err(self.wrong(start, "no array")) };
        let count = self.int()? as usize;
        if size > 0 {
            return Ok((self.span(count.saturating_mul(size))?, 0));
        }
        // Each takes a byte at least.
        let left = self.payload.len() - self.at;
        if count > left {
            return Err(Refused::new(format!(
                "{count} elements are announced at offset {start}, with {left} bytes behind it"
            )));
        }
        Ok((self.span(0)?, count))
    }

    /// The classes of an object that write something, base classes last.
    fn classes(&self, class: Id) -> Vec<Id> {
        let mut classes = Vec::new();
        let mut next = Some(class);
        while let Some(id) = next
            && let Some(class) = self.stream.description(id)
        {
            if class.flags & flag::EXTERNALIZABLE != 0
                || class.flags & flag::SERIALIZABLE != 0
                    && (class.flags & flag::WRITES != 0 || !class.fields.is_empty())
            {
                classes.push(id);
            }
            next = class.base;
        }
        classes
    }

    /// Begins what a class wrote of an object: how many of its fields follow, and whether there is more.
    fn part(&mut self, object: &mut Object, class: Id) -> Result<(usize, bool), Refused> {
        let Some(description) = self.stream.description(class) else {
            return Err(self.wrong(self.at, "no class"));
        };
        let flags = description.flags;
        let (primitive, fields) = match flags & flag::EXTERNALIZABLE {
            0 => (
                description.primitive,
                description.fields.iter().filter(|field| is_object(field.kind)).count(),
            ),
            _ if flags & flag::BLOCKS != 0 => (0, 0),
            _ => return Err(self.wrong(self.at, "an object of a class whose end cannot be found")),
        };
        let primitive = self.span(primitive as usize)?;
        object.parts.push(Part { class, primitive, objects: Vec::new(), more: Vec::new() });
        Ok((fields, flags & (flag::EXTERNALIZABLE | flag::WRITES) != 0))
    }

    /// A text that is there for sure, of which others may have been the first.
    pub(super) fn text(&mut self) -> Result<Id, Refused> {
        let start = self.at;
        let mut inside = Vec::new();
        match self.peek() {
            Some(code::TEXT | code::LONG_TEXT | code::REFERENCE) => match self.begin(&mut inside)? {
                Item::Entity(id) if self.stream.text(id).is_some() => Ok(id),
                _ => Err(self.wrong(start, "no text")),
            },
            _ => Err(self.wrong(start, "no text")),
        }
    }
}
