//! JSON to nodes.

use std::borrow::Cow;

use crate::CodecError;
use crate::jackson::node::{
    Is, Key, MAX_DEPTH, MAX_DIGITS, Node, USUAL_ELEMENTS, USUAL_PROPERTIES, room, too_deep, wrong,
};
use crate::java::BigInteger;
use crate::memory;

pub(super) struct Input<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Input<'a> {
    /// The value that the payload is.
    pub(super) fn payload(payload: &'a [u8]) -> Result<Node<'a>, CodecError> {
        let text =
            str::from_utf8(payload).map_err(|error| wrong(error.valid_up_to(), "UTF-8", "another byte"))?;
        let mut input = Input { text, at: 0 };
        input.space();
        let mut node = Node::NULL;
        input.value(0, &mut node)?;
        input.space();
        match input.peek() {
            None => Ok(node),
            Some(_) => Err(input.wrong("the end")),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    #[cold]
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

    /// Reads into a node where it is to stay.
    fn value(&mut self, depth: usize, node: &mut Node<'a>) -> Result<(), CodecError> {
        node.at = Node::offset(self.at);
        match self.peek() {
            Some(b'"') => match self.simple() {
                Some(text) => node.set(Is::Text(Cow::Borrowed(text))),
                None => node.set(Is::Text(Cow::Owned(self.escaped()?))),
            },
            Some(b'-' | b'0'..=b'9') => node.set(self.number()?),
            Some(b'{') => node.set(Is::Object(self.object(depth)?)),
            Some(b'[') => node.set(Is::Array(self.array(depth)?)),
            _ => node.set(self.word()?),
        }
        Ok(())
    }

    fn word(&mut self) -> Result<Is<'a>, CodecError> {
        let (length, is) = match self.text.as_bytes()[self.at..] {
            [b'n', b'u', b'l', b'l', ..] => (4, Is::Null),
            [b't', b'r', b'u', b'e', ..] => (4, Is::Bool(true)),
            [b'f', b'a', b'l', b's', b'e', ..] => (5, Is::Bool(false)),
            _ => return Err(self.wrong("a JSON value")),
        };
        self.at += length;
        Ok(is)
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
    #[inline]
    fn more(&mut self, close: u8) -> Result<bool, CodecError> {
        self.space();
        let found = self.peek();
        if found == Some(b',') {
            self.at += 1;
            self.space();
            return Ok(true);
        }
        if found == Some(close) {
            self.at += 1;
            return Ok(false);
        }
        Err(self.wrong(&format!("`,` or `{}`", char::from(close))))
    }

    fn array(&mut self, depth: usize) -> Result<Vec<Node<'a>>, CodecError> {
        if self.open(depth, b']')? {
            return Ok(Vec::new());
        }
        let mut values = memory::usual(USUAL_ELEMENTS);
        loop {
            let at = values.len();
            room(&mut values, self.at)?;
            values.push(Node::NULL);
            self.value(depth + 1, &mut values[at])?;
            if !self.more(b']')? {
                return Ok(values);
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Vec<(Key<'a>, Node<'a>)>, CodecError> {
        if self.open(depth, b'}')? {
            return Ok(Vec::new());
        }
        let mut entries = memory::usual(USUAL_PROPERTIES);
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.wrong("`\"`"));
            }
            let at = entries.len();
            room(&mut entries, self.at)?;
            entries.push((Key::NONE, Node::NULL));
            let (key, node) = &mut entries[at];
            match self.simple() {
                Some(text) => key.set(Cow::Borrowed(text)),
                None => key.set(Cow::Owned(self.escaped()?)),
            }
            self.space();
            self.expect(b':')?;
            self.space();
            self.value(depth + 1, node)?;
            if !self.more(b'}')? {
                return Ok(entries);
            }
        }
    }

    /// What is in a text as it is, from here on.
    #[inline]
    fn plain(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let mut end = 0;
        let (words, _) = rest.as_bytes().as_chunks();
        for word in words {
            let special = special(u64::from_le_bytes(*word));
            end += special.trailing_zeros() as usize / 8;
            if special != 0 {
                break;
            }
        }
        // At the end of the payload there may be less than a word.
        let is_special = |byte: &u8| matches!(byte, ..b' ' | b'"' | b'\\');
        end += rest.as_bytes()[end..].iter().take_while(|byte| !is_special(byte)).count();
        self.at += end;
        &rest[..end]
    }

    /// A text that is as it is. Nothing is read of any other.
    #[inline]
    fn simple(&mut self) -> Option<&'a str> {
        let start = self.at;
        self.at += 1;
        let plain = self.plain();
        let is_all = self.peek() == Some(b'"');
        self.at = if is_all { self.at + 1 } else { start };
        is_all.then_some(plain)
    }

    #[cold]
    fn escaped(&mut self) -> Result<String, CodecError> {
        self.at += 1;
        let mut text = String::new();
        loop {
            text.push_str(self.plain());
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
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

    #[inline]
    fn digits(&mut self) -> Result<(), CodecError> {
        let rest = &self.text.as_bytes()[self.at..];
        match rest.iter().take_while(|byte| byte.is_ascii_digit()).count() {
            0 => Err(self.wrong("a digit")),
            count => {
                self.at += count;
                Ok(())
            }
        }
    }

    /// A whole number of few digits. Nothing is read of any other.
    #[inline]
    fn short_number(&mut self) -> Option<i64> {
        const MOST: usize = 18;
        let rest = &self.text.as_bytes()[self.at..];
        let (negative, digits) = match rest {
            [b'-', digits @ ..] => (true, digits),
            digits => (false, digits),
        };
        let (mut number, mut count) = (0, 0);
        while let Some(digit @ b'0'..=b'9') = digits.get(count) {
            if count == MOST {
                return None;
            }
            number = number * 10 + i64::from(digit - b'0');
            count += 1;
        }
        let is_number = count > 0 && (digits[0] != b'0' || count == 1);
        if !is_number || matches!(digits.get(count), Some(b'.' | b'e' | b'E')) {
            return None;
        }
        self.at += count + usize::from(negative);
        Some(if negative { -number } else { number })
    }

    fn number(&mut self) -> Result<Is<'a>, CodecError> {
        if let Some(number) = self.short_number() {
            return Ok(Is::Int(number));
        }
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

/// The highest bit of the first of these bytes that does not stand for itself in a text, and maybe some of
/// those behind it.
pub(super) fn special(word: u64) -> u64 {
    const EACH: u64 = u64::MAX / 0xff;
    let zero = |word: u64| word.wrapping_sub(EACH) & !word;
    let control = word.wrapping_sub(EACH * 0x20) & !word;
    (control | zero(word ^ (EACH * 0x22)) | zero(word ^ (EACH * 0x5c))) & (EACH << 7)
}
