//! [`ZStd`]: four bytes of length and one Zstandard frame.

use std::error::Error;
use std::io::Read;

use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::length_prefix::{check_length, split_length, with_length};
use super::{Limited, around_any_codec};
use crate::CodecError;

const FORMAT: &str = "Zstandard";

/// Zstandard around another codec, as Redisson's `ZStdCodec`: the decompressed length as a big-endian `int`,
/// and one frame. Compresses like zstd's level 1; Redisson uses level 3.
///
/// Decompresses at most 64 MiB; see [`with_limit`](Self::with_limit).
///
/// # Errors
/// Decoding fails when the payload announces more than the limit, or is not exactly one frame of the
/// announced length, or when the codec inside fails. Frames with a dictionary or a window beyond 128 MiB are
/// refused. A checksum, which Redisson does not write, is not verified. Encoding fails when the codec inside
/// fails, and beyond 2 GiB.
///
/// # Examples
/// ```
/// use redisson_codec::{self as codec, Codec};
///
/// let codec = codec::ZStd(codec::String);
/// let payload = codec.encode(&"hello ".repeat(100))?;
/// assert!(payload.len() < 100);
/// assert_eq!(codec.decode(&payload)?, "hello ".repeat(100));
/// // As Redisson writes it.
/// let text: String = codec.decode(b"\0\0\0\x05\x28\xb5\x2f\xfd\x00\x58\x28\x00\x00hello\x01\x00\x00")?;
/// assert_eq!(text, "hello");
/// # Ok::<(), codec::CodecError>(())
/// ```
#[doc(alias = "ZStdCodec")]
#[derive(Clone, Copy, Debug, Default)]
pub struct ZStd<C>(pub C);

impl<C> ZStd<C> {
    /// Sets the maximum number of bytes that a payload decompresses to. Defaults to 64 MiB.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::{self as codec, Codec};
    ///
    /// let codec = codec::ZStd(codec::String).with_limit(1 << 20);
    /// let payload = codec::ZStd(codec::String).encode(&"x".repeat(2 << 20))?;
    /// assert!(codec.decode(&payload).is_err());
    /// # Ok::<(), codec::CodecError>(())
    /// ```
    #[must_use]
    pub fn with_limit(self, bytes: usize) -> Limited<Self> {
        Limited { codec: self, limit: bytes }
    }
}

around_any_codec!(ZStd, compress, decompress);

fn compress(inner: &[u8]) -> Result<Vec<u8>, CodecError> {
    with_length(inner, &compress_to_vec(inner, CompressionLevel::Fastest))
}

fn decompress(payload: &[u8], limit: usize) -> Result<Vec<u8>, CodecError> {
    let (length, mut rest) = split_length(FORMAT, payload, limit)?;
    let wrong = |error: &dyn Error| {
        // The reason is often only in the source of the error.
        let why = error.source().map(|source| format!(": {source}")).unwrap_or_default();
        CodecError::new(format!("expected one Zstandard frame at offset 4: {error}{why}"))
    };
    let mut frame = StreamingDecoder::new(&mut rest).map_err(|error| wrong(&error))?;
    // Grows with the blocks of the frame, at most 128 KiB each, not with the announced length.
    let mut inner = Vec::new();
    frame.by_ref().take(length as u64 + 1).read_to_end(&mut inner).map_err(|error| wrong(&error))?;
    check_length(FORMAT, length, inner.len())?;
    match frame.into_inner().len() {
        0 => Ok(inner),
        more => Err(CodecError::new(format!(
            "expected one Zstandard frame, found {more} bytes after it at offset {}",
            payload.len() - more
        ))),
    }
}
