//! [`SnappyV2`]: one block of raw Snappy.

use super::{Limited, around_any_codec, over_limit};
use crate::CodecError;

const FORMAT: &str = "Snappy";

/// Snappy around another codec, as Redisson's `SnappyCodecV2`: one raw block, which begins with its length.
/// The `SnappyCodec` of older versions writes the same up to 32,767 bytes. Beyond that it writes several
/// blocks, which are refused.
///
/// Decompresses at most 64 MiB; see [`with_limit`](Self::with_limit).
///
/// # Errors
/// Decoding fails when the payload announces more than the limit, or is not exactly one block of the
/// announced length, or when the codec inside fails. Encoding fails when the codec inside fails, and beyond 4
/// GiB.
///
/// # Examples
/// ```
/// use redisson_codec::{self as codec, Codec};
///
/// let codec = codec::SnappyV2(codec::String);
/// assert_eq!(codec.encode(&"hello".to_owned())?, b"\x05\x10hello");
/// let text: String = codec.decode(b"\x05\x10hello")?;
/// assert_eq!(text, "hello");
/// # Ok::<(), codec::CodecError>(())
/// ```
#[doc(alias = "SnappyCodecV2")]
#[derive(Clone, Copy, Debug, Default)]
pub struct SnappyV2<C>(pub C);

impl<C> SnappyV2<C> {
    /// Sets the maximum number of bytes that a payload decompresses to. Defaults to 64 MiB.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::{self as codec, Codec};
    ///
    /// let codec = codec::SnappyV2(codec::String).with_limit(1 << 20);
    /// let gigabytes = b"\xff\xff\xff\xff\x07\x10hello";
    /// assert!(codec.decode(gigabytes).is_err());
    /// ```
    #[must_use]
    pub fn with_limit(self, bytes: usize) -> Limited<Self> {
        Limited { codec: self, limit: bytes }
    }
}

around_any_codec!(SnappyV2, compress, decompress);

fn compress(inner: &[u8]) -> Result<Vec<u8>, CodecError> {
    snap::raw::Encoder::new()
        .compress_vec(inner)
        .map_err(|error| CodecError::new(format!("{} bytes to compress: {error}", inner.len())))
}

fn decompress(payload: &[u8], limit: usize) -> Result<Vec<u8>, CodecError> {
    let wrong = |error| CodecError::new(format!("expected one Snappy block at offset 0: {error}"));
    // `snap` reads an empty payload as an empty block, which really begins with a length of 0.
    if payload.is_empty() {
        return Err(CodecError::new("expected one Snappy block at offset 0, found 0 bytes"));
    }
    let length = snap::raw::decompress_len(payload).map_err(wrong)?;
    if length > limit {
        return Err(over_limit(FORMAT, limit, length));
    }
    // Three bytes decompress to at most 64. Nothing is allocated that the block cannot fill.
    if length / 22 > payload.len() {
        return Err(CodecError::new(format!(
            "expected a Snappy block of {length} bytes at offset 0, found {} bytes, which cannot hold as many",
            payload.len()
        )));
    }
    snap::raw::Decoder::new().decompress_vec(payload).map_err(wrong)
}
