//! Base64 as Jackson writes bytes into JSON: the usual alphabet, padded, in one line.

use ::base64::Engine;
use ::base64::alphabet::STANDARD;
use ::base64::engine::{GeneralPurpose, GeneralPurposeConfig};

// Like Jackson's MIME_NO_LINEFEEDS, which ignores bits that no byte is left for.
const MIME_NO_LINEFEEDS: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

pub(super) fn encode(bytes: &[u8]) -> String {
    MIME_NO_LINEFEEDS.encode(bytes)
}

/// What the text stands for, if it is base64.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    MIME_NO_LINEFEEDS.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_every_length() {
        for (bytes, text) in
            [(&b""[..], ""), (b"f", "Zg=="), (b"fo", "Zm8="), (b"foo", "Zm9v"), (b"foob", "Zm9vYg==")]
        {
            assert_eq!(encode(bytes), text);
            assert_eq!(decode(text).as_deref(), Some(bytes));
        }
        for text in ["A", "AA", "AAA", "A===", "====", "AA=A", "AAA-", "AA AA===", "AA==AA==", "AA\n=="] {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    #[test]
    fn bits_that_no_byte_is_left_for() {
        for (text, bytes) in [("Zh==", &b"f"[..]), ("Zm9=", b"fo"), ("Zm8=", b"fo")] {
            assert_eq!(decode(text).as_deref(), Some(bytes), "{text}");
        }
    }
}
