//! [`ZStd`]: four bytes of length and one Zstandard frame.

mod matches;

use std::cell::Cell;
use std::error::Error;
use std::io::{Cursor, Read};

use matches::Matches;
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, FrameCompressor};

use super::length_prefix::{self, check_length, split_length};
use super::{Limited, around_any_codec};
use crate::CodecError;

const FORMAT: &str = "Zstandard";
/// A frame may use a window of this many bytes, whatever the limit is: four times that of zstd's level 3.
const WINDOW: u64 = 8 << 20;

/// Zstandard around another codec, as Redisson's `ZStdCodec`: the decompressed length as a big-endian `int`,
/// and one frame. Compresses like zstd's level 1; Redisson uses level 3.
///
/// Decompresses at most 64 MiB; see [`with_limit`](Self::with_limit).
///
/// # Errors
/// Decoding fails when the payload announces more than the limit, or is not exactly one frame of the
/// announced length, or when the codec inside fails. Frames with a dictionary, or with a window beyond 8 MiB
/// and the limit, are refused. A checksum, which Redisson does not write, is not verified. Encoding fails
/// when the codec inside fails, and beyond 2 GiB.
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

type Compressor = FrameCompressor<Cursor<Vec<u8>>, Vec<u8>, Matches>;

/// What is kept for the thread's next payload, since to make it takes many times as long as a short payload.
#[derive(Default)]
struct Spare {
    matches: Matches,
    /// With the tables.
    compressor: Option<Box<Compressor>>,
}

/// More bytes than this are not kept.
const MAX_SPARE: usize = 1 << 16;

thread_local! {
    static SPARE: Cell<Option<Box<Spare>>> = const { Cell::new(None) };
}

fn compress(inner: &[u8]) -> Result<Vec<u8>, CodecError> {
    let length = length_prefix::length(inner)?;
    let mut spare = SPARE.take().unwrap_or_default();
    let payload = match spare.matches.are_too_few(inner) {
        true => stored(length, inner),
        false => spare.compress(length, inner),
    };
    if spare.matches.memory() > MAX_SPARE {
        spare.matches = Matches::default();
    }
    SPARE.set(Some(spare));
    Ok(payload)
}

/// A frame of one block as it is, as the compressor writes one that gets no shorter.
fn stored(length: [u8; 4], inner: &[u8]) -> Vec<u8> {
    // The magic number, nothing special, and a window of 128 KiB.
    const HEADER: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38];
    const IS_LAST: u32 = 1;
    let [size @ .., _] = ((inner.len() as u32) << 3 | IS_LAST).to_le_bytes();
    [&length[..], &HEADER, &size, inner].concat()
}

impl Spare {
    fn compress(&mut self, length: [u8; 4], inner: &[u8]) -> Vec<u8> {
        let new = || FrameCompressor::new_with_matcher(Matches::default(), CompressionLevel::Fastest);
        let compressor = self.compressor.get_or_insert_with(|| Box::new(new()));
        self.matches.left = inner.len();
        compressor.replace_matcher(std::mem::take(&mut self.matches));
        compressor.set_source(Cursor::new(inner.to_vec()));
        compressor.set_drain(length.to_vec());
        compressor.compress();
        compressor.take_source();
        self.matches = compressor.replace_matcher(Matches::default());
        compressor.take_drain().unwrap_or_default()
    }
}

fn decompress(payload: &[u8], limit: usize) -> Result<Vec<u8>, CodecError> {
    let (length, mut rest) = split_length(FORMAT, payload, limit)?;
    let wrong = |error: &dyn Error| {
        // The reason is often only in the source of the error.
        let why = error.source().map(|source| format!(": {source}")).unwrap_or_default();
        CodecError::new(format!("expected one Zstandard frame at offset 4: {error}{why}"))
    };
    let window = WINDOW.max(limit as u64);
    let frame = StreamingDecoder::new_with_max_window_size(&mut rest, window);
    let mut frame = frame.map_err(|error| wrong(&error))?;
    // Grows with the blocks of the frame, at most 128 KiB each, not with the announced length. Nothing of a
    // block comes out before the window is full.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ruzstd::encoding::compress_to_vec;

    use super::matches::BLOCK;
    use super::*;

    fn same_as_without(inner: &[u8]) {
        let frame = compress_to_vec(inner, CompressionLevel::Fastest);
        assert!(compress(inner).unwrap()[4..] == frame, "{} bytes: {inner:.80?}", inner.len());
    }

    proptest! {
        #[test]
        fn frames_are_those_of_ruzstd(
            words in prop::collection::vec("[ab]{0,3}|[a-d]{5,9}|[a-z]{0,40}", 0..40),
        ) {
            same_as_without(words.concat().as_bytes());
        }
    }

    #[test]
    fn frames_of_several_blocks() {
        let mut random = fastrand::Rng::with_seed(7);
        for length in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 5000, 3 * BLOCK + 5000] {
            let text: Vec<u8> = std::iter::repeat_with(|| random.u8(b'a'..b'd')).take(length).collect();
            same_as_without(&text);
            same_as_without(&vec![7; length]);
        }
    }
}
