//! Classes: those that have numbers, and those that are named once and then have one, too.

use std::borrow::Cow;

use super::text::ascii;
use super::{Fault, Input, Outcome};
use crate::java::class::{Class, known};

/// The class of a value, as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum ClassRef {
    /// One of those that have numbers: `String` and the boxes of primitive types.
    Numbered(Numbered),
    /// The place in [`Input::names`].
    Named(usize),
}

/// The classes that Kryo registers by itself, by the byte that stands for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(in super::super) enum Numbered {
    Integer = 2,
    String = 3,
    Float = 4,
    Boolean = 5,
    Byte = 6,
    Character = 7,
    Short = 8,
    Long = 9,
    Double = 10,
}

impl Numbered {
    pub(in super::super) fn of(number: u32) -> Option<Self> {
        use Numbered::*;
        [Integer, String, Float, Boolean, Byte, Character, Short, Long, Double]
            .into_iter()
            .find(|class| *class as u32 == number)
    }

    pub(in super::super) fn name(self) -> &'static str {
        match self {
            Numbered::Integer => "java.lang.Integer",
            Numbered::String => "java.lang.String",
            Numbered::Float => "java.lang.Float",
            Numbered::Boolean => "java.lang.Boolean",
            Numbered::Byte => "java.lang.Byte",
            Numbered::Character => "java.lang.Character",
            Numbered::Short => "java.lang.Short",
            Numbered::Long => "java.lang.Long",
            Numbered::Double => "java.lang.Double",
        }
    }
}

/// A class name as it stands in the payload, so that comparing it costs no copy.
#[derive(Clone)]
pub(super) enum Name<'de> {
    /// The last byte has its highest bit set.
    Ascii(&'de [u8]),
    Text(Cow<'de, str>),
}

impl Name<'_> {
    fn is(&self, name: &str) -> bool {
        match self {
            Name::Text(text) => text == name,
            Name::Ascii(bytes) => {
                let (Some((last, bytes)), Some((end, name))) =
                    (bytes.split_last(), name.as_bytes().split_last())
                else {
                    return false;
                };
                bytes == name && last & 0x7f == *end
            }
        }
    }

    fn text(&self) -> Cow<'_, str> {
        match self {
            Name::Text(text) => Cow::Borrowed(text),
            Name::Ascii(bytes) => Cow::Owned(ascii(bytes)),
        }
    }
}

impl<'de> Input<'de> {
    /// The class of what follows, or null.
    #[inline]
    pub(in super::super) fn class(&mut self) -> Outcome<Option<ClassRef>> {
        let start = self.at;
        match self.varint()? {
            0 => Ok(None),
            1 => {
                let id = self.varint()? as usize;
                if id > self.names.len() {
                    return Err(Fault::new(format!("a class at offset {start} that was not named before")));
                }
                if id == self.names.len() {
                    let name = match self.peek()? {
                        0..0x80 => Name::Ascii(self.ascii()?),
                        _ => Name::Text(self.some_text()?),
                    };
                    self.names.push(name);
                }
                Ok(Some(ClassRef::Named(id)))
            }
            number => match Numbered::of(number) {
                Some(class) => Ok(Some(ClassRef::Numbered(class))),
                None => Err(Fault::new(format!(
                    "a class at offset {start} with the number {number}, which has none"
                ))),
            },
        }
    }

    /// Whether a class has this name.
    #[inline]
    pub(in super::super) fn is_named(&self, class: ClassRef, name: &str) -> bool {
        matches!(class, ClassRef::Named(id) if self.names[id].is(name))
    }

    pub(in super::super) fn known(&self, class: ClassRef) -> Option<&'static Class> {
        known(&self.class_name(class))
    }

    pub(in super::super) fn class_name(&self, class: ClassRef) -> Cow<'_, str> {
        match class {
            ClassRef::Numbered(class) => Cow::Borrowed(class.name()),
            ClassRef::Named(id) => self.names[id].text(),
        }
    }

    /// For messages: whatever the payload says, short and on one line.
    pub(in super::super) fn shown(&self, class: ClassRef) -> String {
        let name = self.class_name(class);
        let shown: String = name.chars().take(200).collect();
        shown.escape_debug().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_named_once() {
        let mut input = Input::new(b"\x01\x00java.util.Dat\xe5\x01\x01\x82X\x01\x00\x01\x01\x00\x03\x01\x03");
        let date = input.class().unwrap().unwrap();
        assert!(input.is_named(date, "java.util.Date") && !input.is_named(date, "java.util.Data"));
        assert_eq!(input.known(date).unwrap().name, "java.util.Date");
        let short = input.class().unwrap().unwrap();
        assert_eq!(input.class_name(short), "X");
        assert_eq!(input.class().unwrap(), Some(date));
        assert_eq!(input.class().unwrap(), Some(short));
        assert_eq!(input.class().unwrap(), None);
        assert_eq!(input.class().unwrap(), Some(ClassRef::Numbered(Numbered::String)));
        assert!(input.class().unwrap_err().to_string().contains("not named before"));
    }
}
