//! Texts: UTF-16, of which each unit is written as UTF-8.

use std::borrow::Cow;

use super::Input;
use crate::kryo::failure::{Failure, Outcome};

/// A text whose end is marked in its last byte.
#[inline]
pub(super) fn ascii(bytes: &[u8]) -> String {
    let Some((last, front)) = bytes.split_last() else { return String::new() };
    // It ends at the first byte that is not ASCII. To check what was copied would have to wait for the copy.
    let front = str::from_utf8(front).unwrap_or_default();
    let mut text = String::with_capacity(bytes.len());
    text.push_str(front);
    text.push(char::from(last & 0x7f));
    text
}

impl<'de> Input<'de> {
    /// A text, or null.
    #[inline]
    pub(in super::super) fn text(&mut self) -> Outcome<Option<Cow<'de, str>>> {
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

    pub(in super::super) fn some_text(&mut self) -> Outcome<Cow<'de, str>> {
        let at = self.at;
        self.text()?.ok_or_else(|| Failure::new(format!("a null at offset {at}, where a text was expected")))
    }

    /// Up to the byte that has its highest bit set.
    #[inline]
    pub(super) fn ascii(&mut self) -> Outcome<&'de [u8]> {
        let rest = &self.bytes[self.at..];
        let (eights, others) = rest.as_chunks::<8>();
        for (at, eight) in eights.iter().enumerate() {
            let ends = u64::from_le_bytes(*eight) & 0x8080_8080_8080_8080;
            if ends != 0 {
                return self.take(8 * at + ends.trailing_zeros() as usize / 8 + 1);
            }
        }
        let last = others.iter().position(|byte| *byte >= 0x80).ok_or_else(|| self.ends())?;
        self.take(8 * eights.len() + last + 1)
    }

    /// So many units of UTF-16, if they are UTF-8, which all are but those of surrogate pairs.
    #[inline]
    fn utf8(&mut self, units: usize) -> Option<&'de str> {
        let rest = &self.bytes[self.at..];
        let mut end = 0;
        for _ in 0..units {
            end += match rest.get(end)? {
                0..0x80 => 1,
                0x80..0xe0 => 2,
                0xe0..0xf0 => 3,
                // Two units, each of which has three bytes.
                _ => return None,
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
            let lone = || Failure::new(format!("half of a surrogate pair before offset {start}"));
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
            Some(_) => Err(Failure::new(format!("half of a surrogate pair before offset {}", self.at))),
        }
    }

    fn unit(&mut self) -> Outcome<u32> {
        let first = self.byte()?;
        let more = match first {
            0..0x80 => return Ok(first.into()),
            0xc0..0xe0 => 1,
            0xe0..0xf0 => 2,
            _ => {
                return Err(Failure::new(format!(
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> Result<Option<String>, String> {
        let mut input = Input::new(bytes);
        let text = input.text().map_err(|failure| failure.to_string())?;
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
            (b"\x83\xf0\x9f\x9a\x80a", "expected a character at offset 1, found 0xf0"),
            (b"\x82\xe0\x80", "ends at offset 3"),
        ] {
            let found = text(bytes).unwrap_err();
            assert!(found.contains(why), "{found}");
        }
    }
}
