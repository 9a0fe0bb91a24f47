//! [`Lz4V2`]: four bytes of length and one LZ4 block.

use super::length_prefix::{self, check_length, split_length};
use super::{Limited, around_any_codec};
use crate::CodecError;

const FORMAT: &str = "LZ4";

/// LZ4 around another codec, as Redisson's `LZ4CodecV2`: the decompressed length as a big-endian `int`, and
/// one LZ4 block. `LZ4Codec` writes the same format.
///
/// Decompresses at most 64 MiB; see [`with_limit`](Self::with_limit). Redisson 4.7.0 cannot compress an empty
/// payload (it throws an `IndexOutOfBoundsException`), but reads the one that this codec writes.
///
/// # Errors
/// Decoding fails when the payload announces more than the limit, or is not exactly one block of the
/// announced length, or when the codec inside fails. Encoding fails when the codec inside fails, and beyond 2
/// GiB.
///
/// # Examples
/// ```
/// use redisson_codec::{self as codec, Codec};
///
/// let codec = codec::Lz4V2(codec::String);
/// assert_eq!(codec.encode(&"hello".to_owned())?, b"\0\0\0\x05\x50hello");
/// let text: String = codec.decode(b"\0\0\0\x05\x50hello")?;
/// assert_eq!(text, "hello");
/// # Ok::<(), codec::CodecError>(())
/// ```
#[doc(alias = "LZ4CodecV2")]
#[doc(alias = "LZ4Codec")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Lz4V2<C>(pub C);

impl<C> Lz4V2<C> {
    /// Sets the maximum number of bytes that a payload decompresses to. Defaults to 64 MiB.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::{self as codec, Codec};
    ///
    /// let codec = codec::Lz4V2(codec::String).with_limit(1 << 20);
    /// let gigabytes = b"\x7f\xff\xff\xff\x50hello";
    /// assert!(codec.decode(gigabytes).is_err());
    /// ```
    #[must_use]
    pub fn with_limit(self, bytes: usize) -> Limited<Self> {
        Limited { codec: self, limit: bytes }
    }
}

around_any_codec!(Lz4V2, compress, decompress);

fn compress(inner: &[u8]) -> Result<Vec<u8>, CodecError> {
    Ok([&length_prefix::length(inner)?[..], &lz4_flex::block::compress(inner)].concat())
}

fn decompress(payload: &[u8], limit: usize) -> Result<Vec<u8>, CodecError> {
    let (length, block) = split_length(FORMAT, payload, limit)?;
    // Java also reads a missing block as no bytes.
    if length == 0 && block.is_empty() {
        return Ok(Vec::new());
    }
    // One byte of a block decompresses to at most 255. Nothing is allocated that the block cannot fill.
    if length / 255 > block.len() {
        return Err(CodecError::new(format!(
            "expected an LZ4 block of {length} bytes at offset 4, found {} bytes, which cannot hold as many",
            block.len()
        )));
    }
    let inner = lz4_flex::block::decompress(block, length).map_err(|error| {
        CodecError::new(format!("expected an LZ4 block of {length} bytes at offset 4: {error}"))
    })?;
    check_length(FORMAT, length, inner.len())?;
    Ok(inner)
}
