//! A value as one line of JSON.

use std::collections::HashSet;
use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::java::{Constant, Value};
use crate::levels::MAX_DEPTH;
use crate::number::{java_float, java_text};
use crate::signature::is_class;

/// A number of more characters is beyond a double, which other programs read it as, or has needless digits.
const MAX_NUMBER: usize = 1100;

/// A Java value. As deep as the value, which a codec has read.
pub(super) fn of(value: &Value) -> String {
    let mut out = String::new();
    put(&mut out, value);
    out
}

fn put(out: &mut String, value: &Value) {
    match value {
        Value::Null | Value::Optional(None) => out.push_str("null"),
        Value::Optional(Some(value)) | Value::Bare(value) => put(out, value),
        Value::Classed(classed) => put(out, &classed.value),
        Value::Serialized(object) => match object.value() {
            Some(value) => put(out, value),
            None => put_text(out, &text(value).unwrap_or_default()),
        },
        Value::Collection(value) => put_each(out, &value.elements, put),
        Value::EnumSet(value) => put_each(out, &value.constants, put_constant),
        Value::Array(array) => match (&array.elements[..], text(value)) {
            (_, Some(text)) => put_text(out, &text),
            // Jackson's `WRAPPER_ARRAY`.
            ([Value::String(class), Value::Object(object)], None)
                if array.class.is_empty() && object.class.is_empty() && is_class(class) =>
            {
                put_object(out, class, &object.fields);
            }
            (elements, None) => put_each(out, elements, put),
        },
        Value::Object(value) => put_object(out, &value.class, &value.fields),
        Value::Map(value) => put_map(out, &value.entries),
        Value::Enum(value) => put_constant(out, &value.constant),
        Value::Boolean(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Byte(_)
        | Value::Short(_)
        | Value::Integer(_)
        | Value::Long(_)
        | Value::Float(_)
        | Value::Double(_)
        | Value::BigInteger(_)
        | Value::BigDecimal(_) => put_number(out, &text(value).unwrap_or_default()),
        _ => put_text(out, &text(value).unwrap_or_default()),
    }
}

/// The text of a value that is none of several ones, as it stands where JSON has texts only.
fn text(value: &Value) -> Option<String> {
    Some(match value {
        Value::String(value) => value.clone(),
        Value::Text(value) => value.text.clone(),
        Value::Bytes(value) => STANDARD.encode(value),
        Value::Opaque(value) => STANDARD.encode(&value.bytes),
        Value::Serialized(object) => match object.value() {
            Some(value) => text(value)?,
            None => STANDARD.encode(object.bytes()),
        },
        // Jackson writes it as a text, too.
        Value::Array(value) if value.class == "[C" => {
            let unit = |element: &Value| match element {
                Value::Character(unit) => Some(*unit),
                _ => None,
            };
            String::from_utf16(&value.elements.iter().map(unit).collect::<Option<Vec<_>>>()?).ok()?
        }
        Value::Character(value) => match char::from_u32((*value).into()) {
            Some(value) => value.into(),
            None => format!("U+{value:04X}"),
        },
        Value::Byte(value) => value.to_string(),
        Value::Short(value) => value.to_string(),
        Value::Integer(value) => value.to_string(),
        Value::Long(value) => value.to_string(),
        Value::Float(value) => java_float(*value),
        Value::Double(value) => java_text(*value),
        Value::Enum(value) => value.constant.to_string(),
        Value::Bare(value) => text(value)?,
        Value::Classed(classed) => text(&classed.value)?,
        Value::Null
        | Value::Optional(_)
        | Value::Collection(_)
        | Value::EnumSet(_)
        | Value::Map(_)
        | Value::Array(_)
        | Value::Object(_) => return None,
        scalar => scalar.to_string(),
    })
}

fn put_constant(out: &mut String, constant: &Constant) {
    match constant {
        Constant::Ordinal(ordinal) => put_number(out, &ordinal.to_string()),
        Constant::Name(name) => put_text(out, name),
    }
}

pub(super) fn put_each<T>(out: &mut String, items: &[T], put: impl Fn(&mut String, &T)) {
    out.push('[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        put(out, item);
    }
    out.push(']');
}

fn put_object(out: &mut String, class: &str, fields: &[(String, Value)]) {
    let mut object = OpenObject::begin(out);
    if !class.is_empty() {
        put_text(object.property("@class"), class);
    }
    for (name, value) in fields {
        put(object.property(name), value);
    }
    object.end();
}

/// An object if every key has a text, and each another one, or else a list of pairs.
fn put_map(out: &mut String, entries: &[(Value, Value)]) {
    let keys: Option<Vec<String>> = entries.iter().map(|(key, _)| text(key)).collect();
    match keys.filter(|keys| keys.iter().collect::<HashSet<_>>().len() == keys.len()) {
        Some(keys) => {
            let mut object = OpenObject::begin(out);
            for (key, (_, value)) in keys.iter().zip(entries) {
                put(object.property(key), value);
            }
            object.end();
        }
        None => put_each(out, entries, |out, (key, value)| {
            put_each(out, &[key, value], |out, part| put(out, part))
        }),
    }
}

/// An object to whose end properties are written.
pub(super) struct OpenObject<'a> {
    out: &'a mut String,
    is_empty: bool,
}

impl<'a> OpenObject<'a> {
    pub(super) fn begin(out: &'a mut String) -> Self {
        out.push('{');
        Self { out, is_empty: true }
    }

    /// Writes a name, which the value is to follow.
    pub(super) fn property(&mut self, name: &str) -> &mut String {
        if !std::mem::take(&mut self.is_empty) {
            self.out.push(',');
        }
        put_text(self.out, name);
        self.out.push(':');
        self.out
    }

    pub(super) fn end(self) {
        self.out.push('}');
    }
}

/// A number that a double can hold as it is, and else its text.
fn put_number(out: &mut String, number: &str) {
    let fits = number.len() <= MAX_NUMBER && number.parse::<f64>().is_ok_and(f64::is_finite);
    match fits {
        true => out.push_str(number),
        false => put_text(out, number),
    }
}

/// A text in quotes.
pub(super) fn put_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ => put_char(out, c),
        }
    }
    out.push('"');
}

/// Escapes what would drive a terminal, or reorder what is on it.
fn put_char(out: &mut String, c: char) {
    let drives = c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    if drives {
        _ = write!(out, "\\u{:04x}", u32::from(c));
    } else {
        out.push(c);
    }
}

/// JSON without the spaces between its parts, if it is JSON that a codec reads: with whole characters only,
/// and not too deep. Its texts and numbers stay as they are, also the digits that a double has no room for.
pub(super) fn compact(text: &str) -> Option<String> {
    // It checks the syntax, and keeps nothing.
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut depth) = (text, 0);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest)?,
            '-' | '0'..='9' => rest
                .find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'))
                .unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (part, behind) = rest.split_at(length);
        rest = behind;
        match first {
            ' ' | '\n' | '\r' | '\t' => {}
            '"' => part.chars().for_each(|c| put_char(&mut out, c)),
            '-' | '0'..='9' => put_number(&mut out, part),
            _ => out.push(first),
        }
        match first {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            _ => {}
        }
        if depth > MAX_DEPTH {
            return None;
        }
    }
    Some(out)
}

/// The length of the text in quotes that this begins with, unless it has half of a surrogate pair.
fn string_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut at = 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => match unit(at) {
                Some(0xd800..0xdc00) => match unit(at + 6) {
                    Some(0xdc00..0xe000) => at += 12,
                    _ => return None,
                },
                Some(0xdc00..0xe000) => return None,
                Some(_) => at += 6,
                None => at += 2,
            },
            _ => at += 1,
        }
    }
}
