//! Classes with their fields, and those above them.

use super::bytes::Reader;
use super::{Description, Entity, Field, Id, code, flag, is_object, primitive_size};
use crate::java_serialization::Refused;
use crate::memory;

/// How many classes may be above each other. Each of them costs time at each object.
const MAX_CLASSES: usize = 64;

impl Reader<'_> {
    pub(super) fn some_description(&mut self) -> Result<Id, Refused> {
        let start = self.at;
        self.description()?.ok_or_else(|| self.wrong(start, "no class"))
    }

    /// A class and those above it.
    pub(super) fn description(&mut self) -> Result<Option<Id>, Refused> {
        let mut new = Vec::new();
        let top = loop {
            let start = self.at;
            let description = match self.byte()? {
                code::NULL => break None,
                code::REFERENCE => {
                    let id = self.reference()?;
                    match self.stream.description(id) {
                        Some(class) if class.classes > 0 => break Some(id),
                        _ => return Err(self.wrong(start, "no class")),
                    }
                }
                code::DESCRIPTION => self.class()?,
                code::PROXY => self.proxy()?,
                _ => return Err(self.wrong(start, "no class")),
            };
            new.push(description);
            if new.len() > MAX_CLASSES {
                return Err(self.wrong(start, &format!("more than {MAX_CLASSES} classes above each other")));
            }
        };
        let mut base = top;
        let mut classes = top.and_then(|top| self.stream.description(top)).map_or(0, |top| top.classes);
        for id in new.into_iter().rev() {
            classes += 1;
            if let Some(Entity::Description(class)) = self.stream.entities.get_mut(id as usize) {
                (class.base, class.classes) = (base, classes);
            }
            base = Some(id);
        }
        if classes > MAX_CLASSES {
            return Err(self.wrong(self.at, &format!("more than {MAX_CLASSES} classes above each other")));
        }
        Ok(base)
    }

    fn class(&mut self) -> Result<Id, Refused> {
        memory::take(size_of::<Description>())?;
        let name = self.short_text()?;
        // The number of its version.
        self.take(8)?;
        let id = self.add(Entity::Open)?;
        let start = self.at;
        let flags = self.byte()?;
        let both = flag::SERIALIZABLE | flag::EXTERNALIZABLE;
        if flags & both == both {
            return Err(self.wrong(start, "no class"));
        }
        let (mut fields, mut primitive) = (Vec::new(), 0);
        for _ in 0..self.short()? {
            let start = self.at;
            let kind = self.byte()?;
            let field = Field { kind, name: self.short_text()? };
            match primitive_size(kind) {
                Some(size) if fields.last().is_none_or(|last: &Field| !is_object(last.kind)) => {
                    primitive += size as u32;
                }
                None if is_object(kind) => {
                    self.text()?;
                }
                _ => return Err(self.wrong(start, "no field")),
            }
            memory::push(&mut fields, field)?;
        }
        self.end_of_class()?;
        let description = Description { name, flags, fields, primitive, base: None, classes: 0 };
        self.stream.entities[id as usize] = Entity::Description(Box::new(description));
        Ok(id)
    }

    fn proxy(&mut self) -> Result<Id, Refused> {
        memory::take(size_of::<Description>())?;
        let id = self.add(Entity::Open)?;
        let mut name = self.span(0)?;
        for number in 0..self.int()? {
            let interface = self.short_text()?;
            if number == 0 {
                name = interface;
            }
        }
        self.end_of_class()?;
        let (flags, fields) = (flag::SERIALIZABLE, Vec::new());
        let description = Description { name, flags, fields, primitive: 0, base: None, classes: 0 };
        self.stream.entities[id as usize] = Entity::Description(Box::new(description));
        Ok(id)
    }

    /// Whatever a subclass of `ObjectOutputStream` might write is not expected.
    fn end_of_class(&mut self) -> Result<(), Refused> {
        match self.byte()? {
            code::END => Ok(()),
            _ => Err(self.wrong(self.at - 1, "an annotation of a class")),
        }
    }
}
