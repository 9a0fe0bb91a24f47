//! [`String`] and [`Bytes`]: the payload is the value, with nothing around it.

use super::{Codec, CodecError};
use crate::signature::of_another_codec;

/// Text as UTF-8, as Redisson's `StringCodec` writes it. No length, no quotes; the empty text is the empty
/// payload.
///
/// # Errors
/// Decoding fails at the first byte that is not UTF-8 and names its offset. Java would read U+FFFD there;
/// here a payload is never changed silently. Encoding does not fail.
///
/// # Examples
/// ```
/// use redisson_codec::{self as codec, Codec};
///
/// assert_eq!(codec::String.encode(&"Zoë".to_owned())?, b"Zo\xc3\xab");
/// assert_eq!(codec::String.decode(b"Zo\xc3\xab")?, "Zoë");
/// assert!(codec::String.decode(b"Zo\xeb").is_err());
/// # Ok::<(), codec::CodecError>(())
/// ```
#[doc(alias = "StringCodec")]
#[derive(Clone, Copy, Debug, Default)]
pub struct String;

impl Codec<std::string::String> for String {
    fn encode(&self, value: &std::string::String) -> Result<Vec<u8>, CodecError> {
        Ok(value.as_bytes().to_vec())
    }

    fn decode(&self, payload: &[u8]) -> Result<std::string::String, CodecError> {
        match str::from_utf8(payload) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => {
                let other = of_another_codec(payload, &[]);
                Err(CodecError::new(format!("expected UTF-8, found {error}{other}")))
            }
        }
    }
}

/// Bytes as they are, as Redisson's `ByteArrayCodec` writes them; here they are [`bytes::Bytes`] or
/// `Vec<u8>`.
///
/// # Errors
/// None: every payload is a value, and every value a payload.
///
/// # Examples
/// ```
/// use redisson_codec::{self as codec, Codec};
///
/// assert_eq!(codec::Bytes.encode(&vec![1, 2, 3])?, [1, 2, 3]);
/// let value: bytes::Bytes = codec::Bytes.decode(&[1, 2, 3])?;
/// assert_eq!(value, [1, 2, 3][..]);
/// # Ok::<(), codec::CodecError>(())
/// ```
#[doc(alias = "ByteArrayCodec")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Bytes;

impl Codec<bytes::Bytes> for Bytes {
    fn encode(&self, value: &bytes::Bytes) -> Result<Vec<u8>, CodecError> {
        Ok(value.to_vec())
    }

    fn decode(&self, payload: &[u8]) -> Result<bytes::Bytes, CodecError> {
        Ok(bytes::Bytes::copy_from_slice(payload))
    }
}

impl Codec<Vec<u8>> for Bytes {
    fn encode(&self, value: &Vec<u8>) -> Result<Vec<u8>, CodecError> {
        Ok(value.clone())
    }

    fn decode(&self, payload: &[u8]) -> Result<Vec<u8>, CodecError> {
        Ok(payload.to_vec())
    }
}
