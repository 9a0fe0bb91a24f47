//! Numbers and texts, as Kryo 5 writes them.

use super::Output;

impl Output {
    #[inline]
    pub(in super::super) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    #[inline]
    pub(in super::super) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    #[inline]
    pub(in super::super) fn varint(&mut self, number: u32) {
        varint(&mut self.bytes, number);
    }

    #[inline]
    pub(in super::super) fn int(&mut self, number: i32) {
        self.varint((number << 1 ^ number >> 31) as u32);
    }

    #[inline]
    pub(in super::super) fn varlong(&mut self, number: u64) {
        varlong(&mut self.bytes, number);
    }

    #[inline]
    pub(in super::super) fn long(&mut self, number: i64) {
        self.varlong((number << 1 ^ number >> 63) as u64);
    }

    #[inline]
    pub(in super::super) fn flagged(&mut self, flag: bool, number: u32) {
        let flag = u8::from(flag) << 7;
        if number < 0x40 {
            return self.bytes.push(flag | number as u8);
        }
        self.bytes.push(flag | 0x40 | (number & 0x3f) as u8);
        self.varint(number >> 6);
    }

    #[inline]
    pub(in super::super) fn text(&mut self, text: &str) {
        if let Some(ascii) = short_ascii(text.as_bytes()) {
            // A fixed length needs no call of `memcpy`.
            let end = self.bytes.len() + text.len();
            self.bytes.extend_from_slice(&ascii.to_le_bytes());
            return self.bytes.truncate(end);
        }
        self.long_text(text);
    }

    fn long_text(&mut self, text: &str) {
        if text.is_empty() {
            return self.byte(0x81);
        }
        if text.is_ascii() {
            if (2..=32).contains(&text.len()) {
                self.raw(text.as_bytes());
                return end_ascii(&mut self.bytes);
            }
            self.flagged(true, text.len() as u32 + 1);
            return self.raw(text.as_bytes());
        }
        // Each unit of UTF-16 is written as UTF-8, so that only what has two of them differs from that.
        let pairs = count(text.as_bytes(), |byte| byte >= 0xf0);
        let chars = count(text.as_bytes(), |byte| byte & 0xc0 != 0x80);
        self.flagged(true, (chars + pairs) as u32 + 1);
        if pairs == 0 {
            return self.raw(text.as_bytes());
        }
        let mut rest = text;
        while let Some(at) = rest.bytes().position(|byte| byte >= 0xf0) {
            self.raw(&rest.as_bytes()[..at]);
            let mut chars = rest[at..].chars();
            let mut units = [0; 2];
            for char in chars.by_ref().take(1) {
                for unit in char.encode_utf16(&mut units) {
                    let unit = *unit;
                    self.raw(&[
                        0xe0 | (unit >> 12) as u8,
                        0x80 | (unit >> 6 & 0x3f) as u8,
                        0x80 | (unit & 0x3f) as u8,
                    ]);
                }
            }
            rest = chars.as_str();
        }
        self.raw(rest.as_bytes());
    }
}

/// So much is copied at once where little is to be copied, and so there is so much behind what is copied.
pub(super) const CHUNK: usize = 32;

#[inline]
fn varint(bytes: &mut Vec<u8>, number: u32) {
    varlong(bytes, number.into());
}

#[inline]
fn varlong(bytes: &mut Vec<u8>, number: u64) {
    if number < 0x80 {
        return bytes.push(number as u8);
    }
    // 7 bits into each of 8 bytes, without a branch for each: halves, quarters and eighths are moved apart.
    let mut spread = number & 0x00ff_ffff_ffff_ffff;
    spread = spread & 0x0fff_ffff | (spread & 0x00ff_ffff_f000_0000) << 4;
    spread = spread & 0x0000_3fff_0000_3fff | (spread & 0x0fff_c000_0fff_c000) << 2;
    spread = spread & 0x007f_007f_007f_007f | (spread & 0x3f80_3f80_3f80_3f80) << 1;
    let count = (70 - number.leading_zeros() as usize) / 7;
    const MORE: u64 = 0x8080_8080_8080_8080;
    if count > 8 {
        // The 9th byte has 8 bits.
        bytes.extend_from_slice(&(spread | MORE).to_le_bytes());
        return bytes.push((number >> 56) as u8);
    }
    let end = bytes.len() + count;
    spread |= MORE & ((1 << (8 * (count - 1))) - 1);
    bytes.extend_from_slice(&spread.to_le_bytes());
    bytes.truncate(end);
}

/// A text of 2 to 16 characters that are all ASCII, with its end marked.
#[inline]
fn short_ascii(text: &[u8]) -> Option<u128> {
    // Both halves overlap; where they do, they are the same.
    let (first, last, size) = match text.len() {
        2..=3 => (word::<2>(text.first_chunk()), word(text.last_chunk::<2>()), 2),
        4..=7 => (word::<4>(text.first_chunk()), word(text.last_chunk::<4>()), 4),
        8..=16 => (word::<8>(text.first_chunk()), word(text.last_chunk::<8>()), 8),
        _ => return None,
    };
    if (first | last) & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    let bytes = u128::from(first) | u128::from(last) << (8 * (text.len() - size));
    Some(bytes | 0x80 << (8 * (text.len() - 1)))
}

#[inline]
fn word<const N: usize>(bytes: Option<&[u8; N]>) -> u64 {
    let mut word = [0; 8];
    if let Some(bytes) = bytes {
        word[..N].copy_from_slice(bytes);
    }
    u64::from_le_bytes(word)
}

/// How many bytes are like this. The count of each part is a byte, so that the compiler counts many at once.
fn count(bytes: &[u8], like: impl Fn(u8) -> bool) -> usize {
    let part = |part: &[u8]| part.iter().map(|byte| u8::from(like(*byte))).sum::<u8>();
    bytes.chunks(255).map(|bytes| usize::from(part(bytes))).sum()
}

fn end_ascii(bytes: &mut [u8]) {
    if let Some(last) = bytes.last_mut() {
        *last |= 0x80;
    }
}

/// The name of a class: its length is never written if it is ASCII.
pub(super) fn name(text: &str) -> Vec<u8> {
    if text.is_ascii() && text.len() > 1 {
        let mut bytes = text.as_bytes().to_vec();
        end_ascii(&mut bytes);
        return bytes;
    }
    let mut output = Output::default();
    output.text(text);
    output.bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::input::Input;
    use super::*;

    proptest! {
        #[test]
        fn numbers_and_texts_come_back(
            int: i32, long: i64, unsigned: u32, wide: u64, flag: bool, length in 0u32..0x8000_0000, text: String,
        ) {
            let mut output = Output::take();
            output.int(int);
            output.long(long);
            output.varint(unsigned);
            output.varlong(wide);
            output.flagged(flag, length);
            output.text(&text);
            let payload = output.finish().unwrap();
            let mut input = Input::new(&payload);
            prop_assert_eq!(input.int().unwrap(), int);
            prop_assert_eq!(input.long().unwrap(), long);
            prop_assert_eq!(input.varint().unwrap(), unsigned);
            prop_assert_eq!(input.varlong().unwrap(), wide);
            prop_assert_eq!(input.flagged().unwrap(), (flag, length));
            prop_assert_eq!(input.text().unwrap().unwrap(), text);
            prop_assert_eq!(input.left(), 0);
        }
    }

    #[test]
    fn lengths_at_their_limits() {
        let written = |number: i64| {
            let mut output = Output::take();
            output.long(number);
            output.bytes
        };
        assert_eq!(written(i64::MIN), [0xff; 9]);
        assert_eq!(written(63), [0x7e]);
        assert_eq!(written(64), [0x80, 0x01]);
    }
}
