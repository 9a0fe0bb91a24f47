//! JSON as Jackson writes it.
//!
//! Not by `serde_json`, which keeps no digits of a number, and tells no offsets.

use std::borrow::Cow;

use super::base64;
use super::node::{Format, Is, Key, MAX_DEPTH, MAX_DIGITS, Node, too_deep, wrong};
use crate::codec::CodecError;
use crate::codec::java::{BigDecimal, BigInteger};
use crate::codec::number::{java_float, java_text};

pub(super) struct Json;

impl Format for Json {
    const NAME: &'static str = "JSON";

    fn read(payload: &[u8]) -> Result<Node<'_>, CodecError> {
        let text =
            str::from_utf8(payload).map_err(|error| wrong(error.valid_up_to(), "UTF-8", "another byte"))?;
        let mut input = Input { text, at: 0 };
        input.space();
        let node = input.value(0)?;
        input.space();
        match input.peek() {
            None => Ok(node),
            Some(_) => Err(input.wrong("the end")),
        }
    }

    fn write(node: &Node<'_>, out: &mut Vec<u8>) -> Result<(), CodecError> {
        match &node.is {
            Is::Null => out.extend(b"null"),
            Is::Bool(value) => out.extend(value.to_string().bytes()),
            Is::Int(value) => out.extend(value.to_string().bytes()),
            Is::Big(value) => out.extend(readable(value.to_string())?.bytes()),
            Is::Number(value) => out.extend(value.bytes()),
            Is::Decimal(value) => plain(value, out)?,
            // Not JSON, and so text.
            Is::Float(value) if !value.is_finite() => string(&java_float(*value), out),
            Is::Double(value) if !value.is_finite() => string(&java_text(*value), out),
            Is::Float(value) => out.extend(java_float(*value).bytes()),
            Is::Double(value) => out.extend(java_text(*value).bytes()),
            Is::Text(value) => string(value, out),
            Is::Bytes(value) => string(&base64::encode(value), out),
            Is::Array(values) | Is::Bare(values) => {
                out.push(b'[');
                for (at, value) in values.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    Self::write(value, out)?;
                }
                out.push(b']');
            }
            Is::Object(entries) => {
                out.push(b'{');
                for (at, (key, value)) in entries.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    string(&key.text(), out);
                    out.push(b':');
                    Self::write(value, out)?;
                }
                out.push(b'}');
            }
        }
        Ok(())
    }
}

/// Only what JSON demands is escaped, and what is beyond U+FFFF, which are two `char`s in Java.
fn string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for c in text.chars() {
        match c {
            '"' => out.extend(b"\\\""),
            '\\' => out.extend(b"\\\\"),
            '\n' => out.extend(b"\\n"),
            '\r' => out.extend(b"\\r"),
            '\t' => out.extend(b"\\t"),
            '\u{8}' => out.extend(b"\\b"),
            '\u{c}' => out.extend(b"\\f"),
            '\0'..' ' | '\u{10000}'.. => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.extend(format!("\\u{unit:04X}").bytes());
                }
            }
            _ => out.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    out.push(b'"');
}

/// Without an exponent, as Redisson has it; Jackson stops at the same scales.
fn plain(value: &BigDecimal, out: &mut Vec<u8>) -> Result<(), CodecError> {
    let scale = value.scale();
    if !(-9999..=9999).contains(&scale) {
        return Err(CodecError::new(format!(
            "a BigDecimal of scale {scale} has no JSON form: Jackson writes those from -9999 to 9999"
        )));
    }
    let digits = value.unscaled().to_string();
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", &digits[..]),
    };
    if scale <= 0 {
        let zeros = if digits == "0" { 0 } else { scale.unsigned_abs() as usize };
        out.extend(readable(format!("{sign}{digits}{}", "0".repeat(zeros)))?.bytes());
        return Ok(());
    }
    // At least one digit stands in front of the point.
    let scale = scale as usize;
    let padded = format!("{}{digits}", "0".repeat((scale + 1).saturating_sub(digits.len())));
    let (front, behind) = padded.split_at(padded.len() - scale);
    out.extend(readable(format!("{sign}{front}.{behind}"))?.bytes());
    Ok(())
}

/// Nothing that Jackson, and this, would not read again.
fn readable(number: String) -> Result<String, CodecError> {
    match number.len() {
        ..=MAX_DIGITS => Ok(number),
        length => Err(CodecError::new(format!(
            "a number of {length} characters is more than the {MAX_DIGITS} that Jackson reads"
        ))),
    }
}

struct Input<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Input<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn wrong(&self, expected: &str) -> CodecError {
        match self.peek() {
            Some(byte) => wrong(self.at, expected, &format!("the byte 0x{byte:02x}")),
            None => wrong(self.at, expected, "the end"),
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), CodecError> {
        if self.peek() != Some(byte) {
            return Err(self.wrong(&format!("`{}`", char::from(byte))));
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Node<'a>, CodecError> {
        let start = self.at;
        let is = match self.peek() {
            Some(b'{') => Is::Object(self.object(depth)?),
            Some(b'[') => Is::Array(self.array(depth)?),
            Some(b'"') => Is::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Node::new(start, is))
    }

    fn word(&mut self) -> Result<Is<'a>, CodecError> {
        for (word, is) in [("null", Is::Null), ("true", Is::Bool(true)), ("false", Is::Bool(false))] {
            if self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(is);
            }
        }
        Err(self.wrong("a JSON value"))
    }

    /// Steps into an array or object, and says whether it is empty.
    fn open(&mut self, depth: usize, close: u8) -> Result<bool, CodecError> {
        if depth >= MAX_DEPTH {
            return Err(too_deep(self.at));
        }
        self.at += 1;
        self.space();
        let empty = self.peek() == Some(close);
        self.at += usize::from(empty);
        Ok(empty)
    }

    /// Whether another element follows, or else the end of the array or object.
    fn more(&mut self, close: u8) -> Result<bool, CodecError> {
        self.space();
        let more = self.peek() == Some(b',');
        if !more && self.peek() != Some(close) {
            return Err(self.wrong(&format!("`,` or `{}`", char::from(close))));
        }
        self.at += 1;
        if more {
            self.space();
        }
        Ok(more)
    }

    fn array(&mut self, depth: usize) -> Result<Vec<Node<'a>>, CodecError> {
        let mut values = Vec::new();
        if self.open(depth, b']')? {
            return Ok(values);
        }
        loop {
            values.push(self.value(depth + 1)?);
            if !self.more(b']')? {
                return Ok(values);
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Vec<(Key<'a>, Node<'a>)>, CodecError> {
        let mut entries = Vec::new();
        if self.open(depth, b'}')? {
            return Ok(entries);
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.wrong("`\"`"));
            }
            let key = Key::Text(self.string()?);
            self.space();
            self.expect(b':')?;
            self.space();
            entries.push((key, self.value(depth + 1)?));
            if !self.more(b'}')? {
                return Ok(entries);
            }
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, CodecError> {
        let start = self.at + 1;
        self.at = start;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Cow::Borrowed(&self.text[start..self.at - 1]));
                }
                Some(b'\\') => break,
                Some(byte) if byte >= b' ' => self.at += 1,
                _ => return Err(self.wrong("the end of the text")),
            }
        }
        let mut text = self.text[start..self.at].to_owned();
        loop {
            let from = self.at;
            while matches!(self.peek(), Some(byte) if byte >= b' ' && !matches!(byte, b'"' | b'\\')) {
                self.at += 1;
            }
            text.push_str(&self.text[from..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Cow::Owned(text));
                }
                Some(b'\\') => text.push(self.escape()?),
                _ => return Err(self.wrong("the end of the text")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, CodecError> {
        let start = self.at;
        self.at += 1;
        let c = match self.peek() {
            Some(b'u') => {
                self.at += 1;
                return self.unicode(start);
            }
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            _ => return Err(self.wrong("an escaped character")),
        };
        self.at += 1;
        Ok(c)
    }

    fn unicode(&mut self, start: usize) -> Result<char, CodecError> {
        let first = self.unit()?;
        let mut units = vec![first];
        if (0xd800..0xdc00).contains(&first) && self.text.as_bytes()[self.at..].starts_with(b"\\u") {
            self.at += 2;
            units.push(self.unit()?);
        }
        match char::decode_utf16(units).next() {
            Some(Ok(c)) => Ok(c),
            _ => Err(wrong(start, "a character", "half of a surrogate pair")),
        }
    }

    fn unit(&mut self) -> Result<u16, CodecError> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let number = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit)).and_then(|digits| {
            let text = str::from_utf8(digits).ok()?;
            u16::from_str_radix(text, 16).ok()
        });
        let number = number.ok_or_else(|| wrong(self.at, "4 hexadecimal digits", "something else"))?;
        self.at += 4;
        Ok(number)
    }

    fn digits(&mut self) -> Result<(), CodecError> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.wrong("a digit"));
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Is<'a>, CodecError> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        let zero = self.peek() == Some(b'0');
        let first = self.at;
        self.digits()?;
        if zero && self.at > first + 1 {
            return Err(wrong(first, "a number without zeros in front", "one"));
        }
        let integer = !matches!(self.peek(), Some(b'.' | b'e' | b'E'));
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        let text = &self.text[start..self.at];
        if text.len() > MAX_DIGITS {
            let found = format!("{} characters", text.len());
            return Err(wrong(start, &format!("a number of at most {MAX_DIGITS}"), &found));
        }
        if !integer {
            return Ok(Is::Number(Cow::Borrowed(text)));
        }
        match text.parse() {
            Ok(value) => Ok(Is::Int(value)),
            Err(_) => {
                let big: BigInteger =
                    text.parse().map_err(|_| wrong(start, "an integer", "something else"))?;
                Ok(Is::Big(big))
            }
        }
    }
}
