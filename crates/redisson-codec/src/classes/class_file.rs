//! A [`JavaClass`] from a `.class` file. See chapter 4 of the Java Virtual Machine Specification.

use std::fmt;

use super::code::bodies;
use super::signature::{class_signature, field_signature, name};
use super::{ClassKind, JavaClass, JavaConstant, JavaField, JavaType};

/// The most bytes of names and types in a class. A field of 20 bytes has some 50 of them, so this is
/// thousands of fields. Without a limit, 64 Ki fields of a type of 64 KiB would be a file of less than a MiB.
const MOST_TEXT: usize = 256 << 10;

pub(super) type Outcome<T> = Result<T, String>;

mod flags {
    pub(super) const STATIC: u16 = 0x8;
    pub(super) const FINAL: u16 = 0x10;
    pub(super) const TRANSIENT: u16 = 0x80;
    pub(super) const INTERFACE: u16 = 0x200;
    pub(super) const ABSTRACT: u16 = 0x400;
    pub(super) const SYNTHETIC: u16 = 0x1000;
    pub(super) const ENUM: u16 = 0x4000;
    pub(super) const MODULE: u16 = 0x8000;
}

/// Reads a class file.
pub(super) fn read(bytes: &[u8]) -> Outcome<JavaClass> {
    let mut input = Input::new(bytes, 0);
    if input.u4()? != 0xcafe_babe {
        return Err("the first four bytes are not ca fe ba be".to_owned());
    }
    input.take(4)?;
    let mut pool = Pool::read(&mut input)?;
    let access = input.u2()?;
    if access & flags::MODULE != 0 {
        return Err(format!("a module, and no class, at offset {}", input.at));
    }
    let name = pool.class(input.u2()?, input.at)?;
    let superclass = match input.u2()? {
        0 => None,
        at => Some(pool.class(at, input.at)?),
    };
    let count = input.u2()?;
    let mut interfaces = Vec::new();
    for _ in 0..count {
        interfaces.push(JavaType::class(pool.class(input.u2()?, input.at)?));
    }
    let kind = match superclass.as_deref() {
        _ if access & flags::INTERFACE != 0 => ClassKind::Interface,
        Some("java.lang.Record") => ClassKind::Record,
        _ if access & flags::ENUM != 0 => ClassKind::Enum,
        _ => ClassKind::Class,
    };
    let implied = match kind {
        ClassKind::Record => "java.lang.Record",
        ClassKind::Enum => "java.lang.Enum",
        _ => super::OBJECT,
    };
    let is_implied = |class: &JavaType| matches!(class, JavaType::Class { name, .. } if name == implied || name == super::OBJECT);
    let mut class = JavaClass {
        name,
        kind,
        is_final: access & flags::FINAL != 0,
        is_abstract: access & flags::ABSTRACT != 0,
        parameters: Vec::new(),
        superclass: superclass.map(JavaType::class),
        interfaces,
        fields: Vec::new(),
        constants: Vec::new(),
    };
    fields(&mut input, &mut pool, &mut class)?;
    methods(&mut input, &mut pool, &mut class)?;
    attributes(&mut input, &mut pool, |name, input, pool| {
        if name == b"Signature" {
            let (at, index) = (input.at, input.u2()?);
            let signature = class_signature(pool.text(index, at)?).map_err(|why| behind(why, at))?;
            class.parameters = signature.parameters;
            class.superclass = Some(signature.superclass);
            class.interfaces = signature.interfaces;
        }
        Ok(())
    })?;
    class.superclass = class.superclass.filter(|class| !is_implied(class));
    match input.left() {
        0 => Ok(class),
        more => Err(format!("{more} bytes follow it at offset {}", input.at)),
    }
}

fn behind(why: impl fmt::Display, at: usize) -> String {
    format!("{why}, named at offset {at}")
}

fn fields<'a>(input: &mut Input<'a>, pool: &mut Pool<'a>, class: &mut JavaClass) -> Outcome<()> {
    for _ in 0..input.u2()? {
        let (at, access) = (input.at, input.u2()?);
        let name = name(pool.text(input.u2()?, at)?).map_err(|why| behind(why, at))?;
        let mut kind = field_signature(pool.text(input.u2()?, at)?).map_err(|why| behind(why, at))?;
        attributes(input, pool, |attribute, input, pool| {
            if attribute == b"Signature" && access & flags::STATIC == 0 {
                let (at, index) = (input.at, input.u2()?);
                kind = field_signature(pool.text(index, at)?).map_err(|why| behind(why, at))?;
            }
            Ok(())
        })?;
        if access & flags::ENUM != 0 {
            class.constants.push(JavaConstant { name, body: None });
        } else if access & (flags::STATIC | flags::SYNTHETIC) == 0 {
            class.fields.push(JavaField { name, kind, is_transient: access & flags::TRANSIENT != 0 });
        }
    }
    Ok(())
}

/// Only the one that makes the constants of an enum matters.
fn methods<'a>(input: &mut Input<'a>, pool: &mut Pool<'a>, class: &mut JavaClass) -> Outcome<()> {
    for _ in 0..input.u2()? {
        let at = input.at;
        input.take(2)?;
        let is_initializer = pool.bytes(input.u2()?, at)? == b"<clinit>" && !class.constants.is_empty();
        input.take(2)?;
        attributes(input, pool, |attribute, input, pool| {
            if is_initializer && attribute == b"Code" {
                input.take(4)?;
                let length = input.u4()? as usize;
                let code = input.take(length)?;
                let start = input.at - length;
                bodies(code, pool, class).map_err(|why| behind(why, start))?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Each attribute, which need not be read to its end.
fn attributes<'a>(
    input: &mut Input<'a>,
    pool: &mut Pool<'a>,
    mut read: impl FnMut(&[u8], &mut Input<'a>, &mut Pool<'a>) -> Outcome<()>,
) -> Outcome<()> {
    for _ in 0..input.u2()? {
        let at = input.at;
        let name = pool.bytes(input.u2()?, at)?;
        let length = input.u4()? as usize;
        let start = input.at;
        let content = input.take(length)?;
        read(name, &mut Input::new(content, start), pool)?;
    }
    Ok(())
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
    fn read(input: &mut Input<'a>) -> Outcome<Self> {
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
    fn bytes(&self, index: u16, at: usize) -> Outcome<&'a [u8]> {
        match self.entry(index) {
            Entry::Text(text) => Ok(text),
            _ => Err(format!("the constant {index}, named at offset {at}, is no text")),
        }
    }

    fn text(&mut self, index: u16, at: usize) -> Outcome<&'a str> {
        let bytes = self.bytes(index, at)?;
        self.left = self
            .left
            .checked_sub(bytes.len())
            .ok_or_else(|| format!("names and types of more than {MOST_TEXT} bytes before offset {at}"))?;
        str::from_utf8(bytes).map_err(|_| format!("the name {index}, named at offset {at}, is no UTF-8"))
    }

    fn class(&mut self, index: u16, at: usize) -> Outcome<String> {
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
