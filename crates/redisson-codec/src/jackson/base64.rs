//! Base64 as Jackson writes bytes into JSON: the usual alphabet, padded, in one line.

use ::base64::alphabet::STANDARD;
use ::base64::engine::{GeneralPurpose, GeneralPurposeConfig};

/// Jackson's `MIME_NO_LINEFEEDS`, which ignores the bits that do not fill a byte.
pub(super) const MIME_NO_LINEFEEDS: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

#[cfg(test)]
mod tests {
    use ::base64::Engine;

    use super::*;

    #[test]
    fn of_every_length() {
        for (bytes, text) in
            [(&b""[..], ""), (b"f", "Zg=="), (b"fo", "Zm8="), (b"foo", "Zm9v"), (b"foob", "Zm9vYg==")]
        {
            assert_eq!(MIME_NO_LINEFEEDS.encode(bytes), text);
            assert_eq!(MIME_NO_LINEFEEDS.decode(text).ok().as_deref(), Some(bytes));
        }
        for text in ["A", "AA", "AAA", "A===", "====", "AA=A", "AAA-", "AA AA===", "AA==AA==", "AA\n=="] {
            assert_eq!(MIME_NO_LINEFEEDS.decode(text).ok(), None, "{text}");
        }
    }

    #[test]
    fn bits_that_no_byte_is_left_for() {
        for (text, bytes) in [("Zh==", &b"f"[..]), ("Zm9=", b"fo"), ("Zm8=", b"fo")] {
            assert_eq!(MIME_NO_LINEFEEDS.decode(text).ok().as_deref(), Some(bytes), "{text}");
        }
    }
}
