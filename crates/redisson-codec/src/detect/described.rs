//! [`Description`]: what can be said of a payload that cannot be read.

use std::fmt;

use super::format::Kind;
use super::json::{OpenObject, put_each, put_text};
use crate::shown::shown;
use crate::signature::is_class;
use crate::{kryo, signature};

/// How many texts a description has.
const MOST_STRINGS: usize = 32;

/// In bytes. Shorter ones are found everywhere.
const SHORTEST: usize = 2;

/// In characters, and in bytes.
const LONGEST: usize = 200;
const MOST_BYTES: usize = 4 * LONGEST;

/// In how many bytes of a payload texts are searched for.
const SEARCHED: usize = 64 << 10;

/// What can be said of a payload that cannot be read, such as an object of an application's class in Kryo 5.
/// Returned by [`Format::describe`](super::Format::describe).
///
/// Prints as `com.acme.Coupon, 25 bytes: "WINTER26"`, in one line without control characters.
///
/// # Examples
/// ```
/// use redisson_codec::detect::{Format, Kind};
///
/// let payload = b"\x04\x3e\x05hello";
/// let described = Format::Plain(Kind::JBossMarshalling).describe(payload).unwrap();
/// assert_eq!(described.class.as_deref(), Some("java.lang.String"));
/// assert_eq!((described.length, described.strings), (8, vec!["hello".to_owned()]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// The class of the value, if the payload names it.
    pub class: Option<String>,
    /// How many bytes the payload has, or what it decompresses to.
    pub length: usize,
    /// The texts in it, and the names of further classes. Nothing says where a text begins in Kryo 5, so one
    /// may have a letter too many in front. At most 32, of at most 200 characters each.
    pub strings: Vec<String>,
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(class) = &self.class {
            write!(f, "{class}, ")?;
        }
        write!(f, "{} bytes", self.length)?;
        for (at, string) in self.strings.iter().enumerate() {
            write!(f, "{}{string:?}", if at == 0 { ": " } else { ", " })?;
        }
        Ok(())
    }
}

pub(super) fn json(description: &Description) -> String {
    let mut out = String::new();
    let mut object = OpenObject::begin(&mut out);
    if let Some(class) = &description.class {
        put_text(object.property("@class"), class);
    }
    object.property("@length").push_str(&description.length.to_string());
    put_each(object.property("@strings"), &description.strings, |out, string| put_text(out, string));
    object.end();
    out
}

/// Whether a payload is of a kind that no codec reads, or an object of Kryo 5.
pub(super) fn is(kind: Kind, payload: &[u8]) -> bool {
    match kind {
        Kind::Kryo5 => kryo::named_class(payload).is_some_and(|(class, _)| signature::is_java_name(&class)),
        Kind::JavaSerialization => signature::is_java_serialization(payload),
        Kind::Smile => signature::is_smile(payload),
        Kind::JBossMarshalling => signature::is_marshalled(payload),
        _ => false,
    }
}

/// The description of a payload, if it [`is`] one.
pub(super) fn of(kind: Kind, payload: &[u8]) -> Option<Description> {
    if !is(kind, payload) {
        return None;
    }
    let (class, strings) = match kind {
        Kind::Kryo5 => {
            let (class, fields) = kryo::named_class(payload)?;
            (Some(class), strings(fields, kryo_text))
        }
        Kind::JavaSerialization => (java_class(payload), strings(payload, java_text)),
        Kind::JBossMarshalling => {
            let class = match payload.get(1)? {
                0x3e => Some("java.lang.String".to_owned()),
                0x4b => Some("java.lang.Integer".to_owned()),
                0x4c => Some("java.lang.Long".to_owned()),
                _ => None,
            };
            let named = || strings(payload, river_class).into_iter().next();
            (class.or_else(named), strings(payload, river_text))
        }
        _ => (smile_class(payload), strings(payload.get(4..).unwrap_or_default(), smile_text)),
    };
    let other = |string: &String| Some(string) != class.as_ref();
    let strings = strings.iter().filter(|string| other(string)).take(MOST_STRINGS);
    Some(Description {
        length: payload.len(),
        strings: strings.map(|string| shortened(string)).collect(),
        class: class.as_deref().map(shown),
    })
}

/// What prints as it is, apart from quotes, which are escaped where they are printed.
fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// What begins at an offset: a text that can be read, if it is one, and how many bytes to go on.
type Found = (Option<String>, usize);

const NOTHING: Found = (None, 1);

/// The readable texts in a payload, in the order in which they begin.
fn strings(payload: &[u8], find: impl Fn(&[u8]) -> Found) -> Vec<String> {
    let payload = &payload[..payload.len().min(SEARCHED)];
    let (mut strings, mut at) = (Vec::new(), 0);
    // The class is among them.
    while at < payload.len() && strings.len() <= MOST_STRINGS {
        let (text, length) = find(&payload[at..]);
        strings.extend(text);
        at += length;
    }
    strings
}

/// A text of this length behind its head, if it can be read.
fn text(bytes: &[u8], head: usize, length: usize) -> Found {
    let Some(bytes) = bytes.get(head..head + length) else { return NOTHING };
    let shown = &bytes[..length.min(MOST_BYTES)];
    let valid = shown.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    // The end may be within a character.
    let whole = valid.len() == length || length > MOST_BYTES && valid.len() + 4 > MOST_BYTES;
    match whole && length >= SHORTEST && !valid.contains(char::is_control) {
        true => (Some(valid.to_owned()), head + length),
        false => NOTHING,
    }
}

/// The same, if it is what is looked for.
fn only((text, length): Found, is: impl Fn(&str) -> bool) -> Found {
    match text {
        Some(text) if is(&text) => (Some(text), length),
        _ => NOTHING,
    }
}

/// ASCII whose last byte has the highest bit set, or a length in characters and UTF-8.
fn kryo_text(bytes: &[u8]) -> Found {
    let is_ascii = |byte: u8| matches!(byte, b' '..=b'~');
    let run = bytes.iter().take_while(|byte| is_ascii(**byte)).count();
    let Some(last) = bytes.get(run) else { return (None, run.max(1)) };
    if run > 0 {
        let ends = *last >= 0x80 && is_ascii(last & 0x7f) && run < MOST_BYTES;
        let ascii = ends.then(|| bytes[..=run].iter().map(|byte| char::from(byte & 0x7f)).collect());
        // Numbers may look like a text, too.
        let letters = |text: &String| text.chars().filter(|c| c.is_alphanumeric()).count() * 2 >= text.len();
        return (ascii.filter(letters), run + usize::from(ends));
    }
    let units = usize::from(last.wrapping_sub(0x81));
    let behind = &bytes[1..bytes.len().min(1 + 4 * 0x3f)];
    let valid = behind.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    match valid.char_indices().nth(units).map_or(valid.len(), |(end, _)| end) {
        length if units < 0x3f && valid[..length].chars().count() == units && !valid[..length].is_ascii() => {
            text(bytes, 1, length)
        }
        _ => NOTHING,
    }
}

/// A length in two bytes and UTF-8, behind a `t`; not the type of a field.
fn java_text(bytes: &[u8]) -> Found {
    let [b't', high, low, ..] = *bytes else { return NOTHING };
    let is_type = |text: &str| text.starts_with('[') || text.starts_with('L') && text.ends_with(';');
    only(text(bytes, 3, u16::from_be_bytes([high, low]).into()), |text| !is_type(text))
}

/// The class of the object, array or enum that a stream of Java's serialization begins with.
fn java_class(payload: &[u8]) -> Option<String> {
    match payload.get(4..)? {
        [b't', ..] => Some("java.lang.String".to_owned()),
        [b's' | b'u' | b'~', b'r', high, low, ..] => {
            text(payload, 8, u16::from_be_bytes([*high, *low]).into()).0
        }
        _ => None,
    }
}

/// A length in one byte and UTF-8, behind `3e`; neither a class nor the name of a field, which its type
/// follows.
fn river_text(bytes: &[u8]) -> Found {
    let [0x3e, length, ..] = *bytes else { return NOTHING };
    let (found, end) = text(bytes, 2, length.into());
    match bytes.get(end..end + 2) {
        Some([0x10..0x30, 0]) => NOTHING,
        _ => only((found, end), |text| !is_class(text)),
    }
}

/// The same of a class, or one with a length in four bytes.
fn river_class(bytes: &[u8]) -> Found {
    match signature::river_class(bytes) {
        Some(class) if bytes[0] == 0x3e => (Some(class.to_owned()), 2 + class.len()),
        Some(class) => (Some(class.to_owned()), 4 + class.len()),
        None => NOTHING,
    }
}

/// ASCII of up to 64 bytes behind its length, as a value.
fn smile_text(bytes: &[u8]) -> Found {
    match bytes.first() {
        Some(length @ 0x40..0x80) => only(text(bytes, 1, usize::from(length - 0x40) + 1), str::is_ascii),
        _ => NOTHING,
    }
}

/// The text behind the property `@class`, or the first one of a list.
fn smile_class(payload: &[u8]) -> Option<String> {
    const PROPERTY: &[u8] = b"\xfa\x85@class";
    let behind = payload.get(4..)?;
    let class = behind.strip_prefix(PROPERTY).or_else(|| behind.strip_prefix(b"\xf8"))?;
    smile_text(class).0.filter(|class| is_class(class))
}
