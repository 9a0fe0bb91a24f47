//! The bytes of a class file, and its constants.

use std::fmt;

use super::signature::name;

/// The most bytes of names and types in a class. A field has some 50 of them, so this is more than a thousand
/// fields. Without a limit, 64 Ki fields of a type of 64 KiB would be a file of less than a MiB. A type
/// argument in it may take a byte, and 88 in memory.
const MOST_TEXT: usize = 64 << 10;

pub(super) type Outcome<T> = Result<T, String>;

/// An error, and where the file names what is wrong.
pub(super) fn behind(why: impl fmt::Display, at: usize) -> String {
    format!("{why}, named at offset {at}")
}

/// Bytes, and the offset in the file.
pub(super) struct Input<'a> {
    bytes: &'a [u8],
    /// Where the bytes begin in the file.
    start: usize,
    pub(super) at: usize,
}

impl<'a> Input<'a> {
    pub(super) fn new(bytes: &'a [u8], start: usize) -> Self {
        Self { bytes, start, at: start }
    }

    pub(super) fn left(&self) -> usize {
        self.bytes.len() - (self.at - self.start)
    }

    pub(super) fn take(&mut self, count: usize) -> Outcome<&'a [u8]> {
        let from = self.at - self.start;
        let taken = from.checked_add(count).and_then(|to| self.bytes.get(from..to));
        let taken = taken.ok_or_else(|| format!("it ends at offset {}", self.start + self.bytes.len()))?;
        self.at += count;
        Ok(taken)
    }

    pub(super) fn u1(&mut self) -> Outcome<u8> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn u2(&mut self) -> Outcome<u16> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    pub(super) fn u4(&mut self) -> Outcome<u32> {
        Ok(u32::from(self.u2()?) << 16 | u32::from(self.u2()?))
    }
}

/// The constants of a class file: texts, and what refers to them.
pub(super) struct Pool<'a> {
    entries: Vec<Entry<'a>>,
    /// How many more bytes of text may be taken.
    left: usize,
}

#[derive(Clone, Copy)]
enum Entry<'a> {
    Text(&'a [u8]),
    /// Its name.
    Class(u16),
    /// Its name, and its type.
    NameAndType(u16),
    /// The class is not needed; the name and type.
    Field(u16),
    Other,
}

impl<'a> Pool<'a> {
    pub(super) fn read(input: &mut Input<'a>) -> Outcome<Self> {
        let count = input.u2()?;
        let mut entries = vec![Entry::Other];
        while entries.len() < count.into() {
            let at = input.at;
            let (entry, size) = match input.u1()? {
                1 => {
                    let length = input.u2()?;
                    (Entry::Text(input.take(length.into())?), 0)
                }
                7 => (Entry::Class(input.u2()?), 0),
                9 => {
                    input.take(2)?;
                    (Entry::Field(input.u2()?), 0)
                }
                12 => {
                    let name = input.u2()?;
                    (Entry::NameAndType(name), 2)
                }
                3 | 4 | 10 | 11 | 17 | 18 => (Entry::Other, 4),
                5 | 6 => (Entry::Other, 8),
                8 | 16 | 19 | 20 => (Entry::Other, 2),
                15 => (Entry::Other, 3),
                tag => return Err(format!("a constant of the unknown kind {tag} at offset {at}")),
            };
            input.take(size)?;
            entries.push(entry);
            if size == 8 {
                // They count twice.
                entries.push(Entry::Other);
            }
        }
        Ok(Self { entries, left: MOST_TEXT })
    }

    fn entry(&self, index: u16) -> Entry<'a> {
        self.entries.get(usize::from(index)).copied().unwrap_or(Entry::Other)
    }

    /// A text that is only compared.
    pub(super) fn bytes(&self, index: u16, at: usize) -> Outcome<&'a [u8]> {
        match self.entry(index) {
            Entry::Text(text) => Ok(text),
            _ => Err(format!("the constant {index}, named at offset {at}, is no text")),
        }
    }

    pub(super) fn text(&mut self, index: u16, at: usize) -> Outcome<&'a str> {
        let bytes = self.bytes(index, at)?;
        self.left = self
            .left
            .checked_sub(bytes.len())
            .ok_or_else(|| format!("names and types of more than {MOST_TEXT} bytes before offset {at}"))?;
        str::from_utf8(bytes).map_err(|_| format!("the name {index}, named at offset {at}, is no UTF-8"))
    }

    pub(super) fn class(&mut self, index: u16, at: usize) -> Outcome<String> {
        match self.entry(index) {
            Entry::Class(index) => {
                let class = self.text(index, at)?;
                name(class).map_err(|why| behind(why, at))
            }
            _ => Err(format!("the constant {index}, named at offset {at}, is no class")),
        }
    }

    /// The class with this index, for code.
    pub(super) fn class_of(&mut self, index: u16) -> Outcome<String> {
        self.class(index, 0)
    }

    /// The name of a field, for code.
    pub(super) fn field_of(&self, index: u16) -> Option<&'a [u8]> {
        let Entry::Field(name_and_type) = self.entry(index) else { return None };
        let Entry::NameAndType(name) = self.entry(name_and_type) else { return None };
        match self.entry(name) {
            Entry::Text(text) => Some(text),
            _ => None,
        }
    }
}
