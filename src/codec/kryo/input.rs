//! A payload and how far it was read: numbers, texts and classes as Kryo 5 writes them.

use std::borrow::Cow;
use std::fmt;

use super::MAX_DEPTH;
use crate::codec::java::class::{Class, known};

/// Why a payload is refused, or a value cannot be written.
///
/// In a box, so that what is passed on where nothing is wrong stays small.
#[derive(Debug)]
pub(super) struct Fault(Box<Why>);

#[derive(Debug)]
struct Why {
    text: String,
    foreign: bool,
}

impl Fault {
    #[cold]
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self(Box::new(Why { text: why.into(), foreign: false }))
    }

    #[cold]
    fn foreign(message: impl fmt::Display) -> Self {
        Self(Box::new(Why { text: message.to_string(), foreign: true }))
    }

    /// Whether it is in serde's words, which have no offset and may quote a value.
    pub(super) fn is_foreign(&self) -> bool {
        self.0.foreign
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl std::error::Error for Fault {}

impl serde::de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Fault::foreign(message)
    }
}

impl serde::ser::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Fault::foreign(message)
    }
}

pub(super) type Outcome<T> = std::result::Result<T, Fault>;

/// Elements that take no bytes, such as the nulls of a list that holds nothing else: so many in one payload.
const MAX_EMPTY: usize = 1 << 16;

pub(super) struct Input<'de> {
    bytes: &'de [u8],
    pub(super) at: usize,
    /// The classes that were named so far; they are named once, and then by number.
    names: Vec<Name<'de>>,
    depth: usize,
    /// How many more elements may take no bytes.
    empty: usize,
}

/// The class of a value, as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClassRef {
    /// One of those that have numbers: `String` and the boxes of primitive types.
    Numbered(Numbered),
    /// The place in [`Input::names`].
    Named(usize),
}

/// The classes that Kryo registers by itself, by the byte that stands for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Numbered {
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
    pub(super) fn of(number: u32) -> Option<Self> {
        use Numbered::*;
        [Integer, String, Float, Boolean, Byte, Character, Short, Long, Double]
            .into_iter()
            .find(|class| *class as u32 == number)
    }

    pub(super) fn name(self) -> &'static str {
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
enum Name<'de> {
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

/// A text whose end is marked in its last byte.
fn ascii(bytes: &[u8]) -> String {
    let mut bytes = bytes.to_vec();
    if let Some(last) = bytes.last_mut() {
        *last &= 0x7f;
    }
    // It ends at the first byte that is not ASCII.
    String::from_utf8(bytes).unwrap_or_default()
}

impl<'de> Input<'de> {
    pub(super) fn new(bytes: &'de [u8]) -> Self {
        Self { bytes, at: 0, names: Vec::with_capacity(8), depth: 0, empty: MAX_EMPTY }
    }

    #[inline]
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    #[cold]
    fn ends(&self) -> Fault {
        Fault::new(format!("it ends at offset {}, within a value", self.bytes.len()))
    }

    #[inline]
    pub(super) fn peek(&self) -> Outcome<u8> {
        self.bytes.get(self.at).copied().ok_or_else(|| self.ends())
    }

    pub(super) fn follows(&self, bytes: &[u8]) -> bool {
        self.bytes[self.at..].starts_with(bytes)
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Outcome<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Ok(byte)
    }

    #[inline]
    pub(super) fn take(&mut self, count: usize) -> Outcome<&'de [u8]> {
        if count > self.left() {
            return Err(self.ends());
        }
        let taken = &self.bytes[self.at..self.at + count];
        self.at += count;
        Ok(taken)
    }

    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Outcome<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    #[inline]
    pub(super) fn boolean(&mut self) -> Outcome<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            byte => Err(Fault::new(format!("expected 0 or 1 at offset {}, found 0x{byte:02x}", self.at - 1))),
        }
    }

    /// 7 bits a byte, the lowest first.
    #[inline]
    pub(super) fn varint(&mut self) -> Outcome<u32> {
        let mut number = 0;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            number |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        Ok(number)
    }

    /// Small negative numbers have few bytes.
    #[inline]
    pub(super) fn int(&mut self) -> Outcome<i32> {
        let number = self.varint()?;
        Ok((number >> 1) as i32 ^ -((number & 1) as i32))
    }

    /// Like [`varint`](Self::varint), but the 9th byte has 8 bits.
    #[inline]
    pub(super) fn varlong(&mut self) -> Outcome<u64> {
        let mut number = 0;
        for shift in (0..56).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Ok(number | u64::from(self.byte()?) << 56)
    }

    #[inline]
    pub(super) fn long(&mut self) -> Outcome<i64> {
        let number = self.varlong()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// A number behind a flag, which is the highest bit.
    #[inline]
    pub(super) fn flagged(&mut self) -> Outcome<(bool, u32)> {
        let first = self.byte()?;
        let mut number = u32::from(first & 0x3f);
        if first & 0x40 != 0 {
            for shift in (6..34).step_by(7) {
                let byte = self.byte()?;
                number |= u32::from(byte & 0x7f) << shift;
                if byte < 0x80 {
                    break;
                }
            }
        }
        Ok((first >= 0x80, number))
    }

    /// How many elements a length, one more than they are, announces.
    ///
    /// Nearly all take a byte at least, so a count that the payload cannot hold is refused at once.
    #[inline]
    pub(super) fn count(&self, length: u32) -> Outcome<usize> {
        let Some(count) = length.checked_sub(1) else {
            return Err(Fault::new(format!("a null before offset {}, where none may be", self.at)));
        };
        let count = count as usize;
        if count > self.left() && count - self.left() > self.empty {
            return Err(Fault::new(format!(
                "{count} elements are announced before offset {}, with {} bytes behind it",
                self.at,
                self.left()
            )));
        }
        Ok(count)
    }

    /// Counts an element that took no bytes since this offset.
    #[inline]
    pub(super) fn element_since(&mut self, start: usize) -> Outcome<()> {
        if self.at == start {
            let Some(empty) = self.empty.checked_sub(1) else {
                return Err(Fault::new(format!(
                    "more than {MAX_EMPTY} elements without bytes at offset {start}"
                )));
            };
            self.empty = empty;
        }
        Ok(())
    }

    #[inline]
    pub(super) fn deeper(&mut self) -> Outcome<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Fault::new(format!("more than {MAX_DEPTH} levels at offset {}", self.at)));
        }
        Ok(())
    }

    #[inline]
    pub(super) fn shallower(&mut self) {
        self.depth -= 1;
    }

    /// A text, or null.
    #[inline]
    pub(super) fn text(&mut self) -> Outcome<Option<Cow<'de, str>>> {
        if self.peek()? < 0x80 {
            return Ok(Some(Cow::Owned(ascii(self.ascii()?))));
        }
        let units = match self.flagged()?.1 {
            0 => return Ok(None),
            length => length as usize - 1,
        };
        // All in one go, where each is a byte.
        if let Some(bytes) = self.bytes.get(self.at..self.at.saturating_add(units))
            && bytes.is_ascii()
            && let Ok(text) = str::from_utf8(bytes)
        {
            self.at += units;
            return Ok(Some(Cow::Borrowed(text)));
        }
        if let Some(text) = self.utf8(units) {
            return Ok(Some(Cow::Borrowed(text)));
        }
        self.units(units).map(|text| Some(Cow::Owned(text)))
    }

    pub(super) fn some_text(&mut self) -> Outcome<Cow<'de, str>> {
        let at = self.at;
        self.text()?.ok_or_else(|| Fault::new(format!("a null at offset {at}, where a text was expected")))
    }

    /// Up to the byte that has its highest bit set.
    fn ascii(&mut self) -> Outcome<&'de [u8]> {
        let rest = &self.bytes[self.at..];
        let last = rest.iter().position(|byte| *byte >= 0x80).ok_or_else(|| self.ends())?;
        self.take(last + 1)
    }

    /// So many units of UTF-16, if they are UTF-8, which all are but those of surrogate pairs.
    fn utf8(&mut self, units: usize) -> Option<&'de str> {
        let rest = &self.bytes[self.at..];
        let mut end = 0;
        for _ in 0..units {
            end += match rest.get(end)? {
                0..0x80 => 1,
                0x80..0xe0 => 2,
                _ => 3,
            };
        }
        let text = str::from_utf8(rest.get(..end)?).ok()?;
        self.at += end;
        Some(text)
    }

    /// So many units of UTF-16, each in one to three bytes.
    fn units(&mut self, count: usize) -> Outcome<String> {
        // Each takes a byte at least.
        if count > self.left() {
            return Err(self.ends());
        }
        let mut text = String::with_capacity(count);
        let mut high: Option<u32> = None;
        for _ in 0..count {
            let start = self.at;
            let unit = self.unit()?;
            let lone = || Fault::new(format!("half of a surrogate pair before offset {start}"));
            match (high.take(), unit) {
                (None, 0xd800..=0xdbff) => high = Some(unit),
                (Some(high), 0xdc00..=0xdfff) => {
                    let code = 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00);
                    text.push(char::from_u32(code).ok_or_else(lone)?);
                }
                (None, unit) => text.push(char::from_u32(unit).ok_or_else(lone)?),
                (Some(_), _) => return Err(lone()),
            }
        }
        match high {
            None => Ok(text),
            Some(_) => Err(Fault::new(format!("half of a surrogate pair before offset {}", self.at))),
        }
    }

    fn unit(&mut self) -> Outcome<u32> {
        let first = self.byte()?;
        let more = match first {
            0..0x80 => return Ok(first.into()),
            0xc0..0xe0 => 1,
            0xe0..0xf0 => 2,
            _ => {
                return Err(Fault::new(format!(
                    "expected a character at offset {}, found 0x{first:02x}",
                    self.at - 1
                )));
            }
        };
        let mut unit = u32::from(first & if more == 1 { 0x1f } else { 0x0f });
        for byte in self.take(more)? {
            unit = unit << 6 | u32::from(byte & 0x3f);
        }
        Ok(unit)
    }

    /// The class of what follows, or null.
    #[inline]
    pub(super) fn class(&mut self) -> Outcome<Option<ClassRef>> {
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
    pub(super) fn is_named(&self, class: ClassRef, name: &str) -> bool {
        matches!(class, ClassRef::Named(id) if self.names[id].is(name))
    }

    pub(super) fn known(&self, class: ClassRef) -> Option<&'static Class> {
        known(&self.class_name(class))
    }

    pub(super) fn class_name(&self, class: ClassRef) -> Cow<'_, str> {
        match class {
            ClassRef::Numbered(class) => Cow::Borrowed(class.name()),
            ClassRef::Named(id) => self.names[id].text(),
        }
    }

    /// For messages: whatever the payload says, short and on one line.
    pub(super) fn shown(&self, class: ClassRef) -> String {
        let name = self.class_name(class);
        let shown: String = name.chars().take(200).collect();
        shown.escape_debug().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> Result<Option<String>, String> {
        let mut input = Input::new(bytes);
        let text = input.text().map_err(|fault| fault.to_string())?;
        assert_eq!(input.left(), 0);
        Ok(text.map(Cow::into_owned))
    }

    #[test]
    fn texts() {
        assert_eq!(text(b"\x80"), Ok(None));
        assert_eq!(text(b"\x81"), Ok(Some("".into())));
        assert_eq!(text(b"\x82a"), Ok(Some("a".into())));
        assert_eq!(text(b"hell\xef"), Ok(Some("hello".into())));
        assert_eq!(text(b"\x84Zo\xc3\xab"), Ok(Some("Zoë".into())));
        assert_eq!(text(b"\x83\xed\xa0\xbd\xed\xba\x80"), Ok(Some("🚀".into())));
        for (bytes, why) in [
            (&b""[..], "ends at offset 0"),
            (b"abc", "ends at offset 3"),
            (b"\xff\xff\xff\xff\x7f", "ends at offset 5"),
            (b"\x82\xed\xa0\xbd", "half of a surrogate pair before offset 4"),
            (b"\x83\xed\xa0\xbda", "half of a surrogate pair before offset 4"),
            (b"\x82\xed\xba\x80", "half of a surrogate pair before offset 1"),
            (b"\x82\xf0", "expected a character at offset 1, found 0xf0"),
            (b"\x82\xe0\x80", "ends at offset 3"),
        ] {
            let found = text(bytes).unwrap_err();
            assert!(found.contains(why), "{found}");
        }
    }

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
