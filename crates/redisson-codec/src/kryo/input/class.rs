//! Classes: those that have numbers, and those that are named once and then have one, too.

use std::borrow::Cow;

use super::Input;
use super::utf16::ascii;
use crate::java::known_classes::{Class, PACKAGES, frequent, known};
use crate::kryo::failure::{Failure, Outcome};
use crate::kryo::numbered::Numbered;
use crate::memory;
use crate::shown::shown;
use crate::signature::LONGEST_NAME;

/// A longer name is copied once, and not whenever it is asked for.
const USUAL_NAME: usize = 128;

/// The class of a value, as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum ClassRef {
    /// One of those that have numbers: `String` and the boxes of primitive types.
    Numbered(Numbered),
    /// The place in [`Input::names`].
    Named(usize),
}

/// A class name as it stands in the payload, so that comparing it costs no copy.
#[derive(Clone)]
pub(super) enum RawName<'de> {
    /// The last byte has its highest bit set.
    Ascii(&'de [u8]),
    Text(Cow<'de, str>),
}

/// How many names need no memory of their own.
const USUAL: usize = 4;

/// The classes that were named so far; they are named once, and then by number.
#[derive(Default)]
pub(super) struct Names<'de> {
    first: [RawName<'de>; USUAL],
    others: Vec<RawName<'de>>,
    count: usize,
}

impl<'de> Names<'de> {
    fn get(&self, id: usize) -> &RawName<'de> {
        match self.first.get(id) {
            Some(name) => name,
            None => &self.others[id - USUAL],
        }
    }

    fn push(&mut self, name: RawName<'de>) {
        match self.first.get_mut(self.count) {
            Some(place) => *place = name,
            None => self.others.push(name),
        }
        self.count += 1;
    }
}

impl Default for RawName<'_> {
    fn default() -> Self {
        RawName::Ascii(&[])
    }
}

impl RawName<'_> {
    fn len(&self) -> usize {
        match self {
            RawName::Ascii(bytes) => bytes.len(),
            RawName::Text(text) => text.len(),
        }
    }

    fn is(&self, name: &str) -> bool {
        match self {
            RawName::Text(text) => text == name,
            RawName::Ascii(bytes) => {
                let (Some((last, bytes)), Some((end, name))) =
                    (bytes.split_last(), name.as_bytes().split_last())
                else {
                    return false;
                };
                bytes == name && last & 0x7f == *end
            }
        }
    }

    fn starts_with(&self, start: &str) -> bool {
        let bytes = match self {
            RawName::Text(text) => text.as_bytes(),
            RawName::Ascii(bytes) => bytes,
        };
        bytes.starts_with(start.as_bytes())
    }

    fn text(&self) -> Cow<'_, str> {
        match self {
            RawName::Text(text) => Cow::Borrowed(text),
            RawName::Ascii(bytes) => Cow::Owned(ascii(bytes)),
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
                if id > self.names.count {
                    return Err(Failure::new(format!("a class at offset {start} that was not named before")));
                }
                if id == self.names.count {
                    let name = match self.peek()? {
                        0..0x80 => match self.ascii()? {
                            long if long.len() > USUAL_NAME => RawName::Text(ascii(long).into()),
                            usual => RawName::Ascii(usual),
                        },
                        _ => RawName::Text(self.some_text()?),
                    };
                    if name.len() > LONGEST_NAME {
                        return Err(Failure::new(format!(
                            "a class with a name of more than {LONGEST_NAME} bytes at offset {start}"
                        )));
                    }
                    self.names.push(name);
                    if start == 0 {
                        self.first_class = self.at;
                    }
                }
                Ok(Some(ClassRef::Named(id)))
            }
            number => match Numbered::of(number) {
                Some(class) => Ok(Some(ClassRef::Numbered(class))),
                None => Err(Failure::new(format!(
                    "class id {number} at offset {start}, but no class is registered under it"
                ))),
            },
        }
    }

    /// Whether the class that was just read is that of the whole payload.
    pub(in super::super) fn is_behind_first_class(&self) -> bool {
        self.at == self.first_class
    }

    /// Whether a class has this name.
    #[inline]
    pub(in super::super) fn is_named(&self, class: ClassRef, name: &str) -> bool {
        matches!(class, ClassRef::Named(id) if self.names.get(id).is(name))
    }

    pub(in super::super) fn known(&self, class: ClassRef) -> Option<&'static Class> {
        let ClassRef::Named(id) = class else { return None };
        let name = self.names.get(id);
        if !PACKAGES.iter().any(|package| name.starts_with(package)) {
            return None;
        }
        // Mostly without a copy.
        frequent(|frequent| name.is(frequent)).or_else(|| known(&name.text()))
    }

    pub(in super::super) fn class_name(&self, class: ClassRef) -> Cow<'_, str> {
        match class {
            ClassRef::Numbered(class) => Cow::Borrowed(class.name()),
            ClassRef::Named(id) => self.names.get(id).text(),
        }
    }

    /// The name of a class for a value, which keeps it.
    pub(in super::super) fn kept_class_name(&mut self, class: ClassRef) -> Outcome<String> {
        let name = self.class_name(class).into_owned();
        self.keep_name(name.len())?;
        Ok(name)
    }

    /// Counts a name that a value keeps.
    pub(in super::super) fn keep_name(&mut self, length: usize) -> Outcome<()> {
        memory::take(length)?;
        match self.long_names.checked_sub(length.saturating_sub(USUAL_NAME)) {
            Some(left) => self.long_names = left,
            None => {
                return Err(Failure::new(format!(
                    "the names of their classes take too much memory before offset {}",
                    self.at
                )));
            }
        }
        Ok(())
    }

    /// For messages: whatever the payload says, short and on one line.
    pub(in super::super) fn shown(&self, class: ClassRef) -> String {
        shown(&self.class_name(class))
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
