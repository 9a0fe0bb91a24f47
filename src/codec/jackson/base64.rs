//! Base64 as Jackson writes bytes into JSON: the usual alphabet, padded, in one line.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let group =
            three.iter().fold(0, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for digit in 0..4 {
            text.push(match digit > three.len() {
                true => '=',
                false => char::from(ALPHABET[(group >> (18 - 6 * digit)) as usize % 64]),
            });
        }
    }
    text
}

/// What the text stands for, if it is base64. Bits that no byte is left for are ignored, as Jackson does.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let digits = text.trim_end_matches('=');
    if text.len() - digits.len() > 2 {
        return None;
    }
    for four in digits.as_bytes().chunks(4) {
        let mut group = 0;
        for digit in four {
            group = group << 6 | u32::from(value(*digit)?);
        }
        let whole = four.len() - 1;
        group <<= 6 * (4 - four.len());
        bytes.extend_from_slice(&group.to_be_bytes()[1..=whole]);
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u8> {
    Some(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn of_every_length() {
        for (bytes, text) in
            [(&b""[..], ""), (b"f", "Zg=="), (b"fo", "Zm8="), (b"foo", "Zm9v"), (b"foob", "Zm9vYg==")]
        {
            assert_eq!(encode(bytes), text);
            assert_eq!(decode(text).as_deref(), Some(bytes));
        }
        for text in ["A", "AA", "AAA", "A===", "====", "AA=A", "AAA-", "AA AA==="] {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes(bytes: Vec<u8>) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
    }
}
