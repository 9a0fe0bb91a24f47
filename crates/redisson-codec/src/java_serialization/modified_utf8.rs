//! Java's form of UTF-8: a character beyond U+FFFF is two surrogates of three bytes each, and U+0000 has two.

use std::borrow::Cow;

/// The text, unless it is none, or has half of a surrogate pair.
pub(super) fn text(bytes: &[u8]) -> Option<Cow<'_, str>> {
    if let Ok(text) = str::from_utf8(bytes) {
        return Some(Cow::Borrowed(text));
    }
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    loop {
        let low = |byte: u8| (byte & 0xc0 == 0x80).then_some(u16::from(byte & 0x3f));
        (_, rest) = match *rest {
            [] => break,
            [byte @ 0..0x80, ref rest @ ..] => (units.push(byte.into()), rest),
            [high @ 0xc0..0xe0, second, ref rest @ ..] => {
                (units.push(u16::from(high & 0x1f) << 6 | low(second)?), rest)
            }
            [high @ 0xe0..0xf0, second, third, ref rest @ ..] => {
                (units.push(u16::from(high & 0x0f) << 12 | low(second)? << 6 | low(third)?), rest)
            }
            _ => return None,
        };
    }
    String::from_utf16(&units).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_java_writes_it() {
        assert_eq!(text("aä€".as_bytes()).unwrap(), "aä€");
        assert_eq!(text(b"a\xc0\x80b").unwrap(), "a\0b");
        assert_eq!(text(b"\xed\xa0\xbd\xed\xba\x80").unwrap(), "🚀");
        for wrong in [&b"\xed\xa0\xbd"[..], b"\xc3", b"\xe2\x82", b"\x80", b"\xc3a", b"\xff"] {
            assert_eq!(text(wrong), None);
        }
    }
}
