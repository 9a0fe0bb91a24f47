//! Compression around any codec: [`Lz4V2`], [`SnappyV2`], [`ZStd`], and the limit of what they decompress.
//!
//! The module of each compression has the layout of the payload and two functions: bytes to payload, and
//! back.

#[cfg(feature = "_length_prefix")]
mod length_prefix;
#[cfg(feature = "lz4")]
mod lz4;
#[cfg(feature = "snappy")]
mod snappy;
#[cfg(feature = "zstd")]
mod zstd;

#[cfg(feature = "lz4")]
pub use lz4::Lz4V2;
#[cfg(feature = "snappy")]
pub use snappy::SnappyV2;
#[cfg(feature = "zstd")]
pub use zstd::ZStd;

use super::{Codec, CodecError, memory};
use crate::signature::{Signature, of_another_codec};

const DEFAULT_LIMIT: usize = 64 << 20;

/// The bytes and values of a payload may take this many times the limit. In the process that is twice as much
/// at most: a list that grows may be copied.
const MEMORY: usize = 4;

/// Values may take this in any case, or a low limit would refuse payloads that are nowhere near it.
const LEAST_MEMORY: usize = 16 << 20;

/// A compression with another limit than 64 MiB. Returned by `with_limit`.
///
/// # Examples
/// ```
/// use redisson_codec::{self as codec, Codec};
///
/// # #[cfg(feature = "lz4")]
/// # {
/// let small = codec::Lz4V2(codec::String).with_limit(1000);
/// let payload = codec::Lz4V2(codec::String).encode(&"x".repeat(1001))?;
/// assert!(payload.len() < 30);
/// let error = small.decode(&payload).unwrap_err().to_string();
/// assert_eq!(error, "expected at most 1000 bytes behind LZ4, found 1001 announced at offset 0");
/// # }
/// # Ok::<(), codec::CodecError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Limited<C> {
    codec: C,
    limit: usize,
}

/// The codec of a compression around another codec, with the default limit and with another one. `$compress`
/// makes a payload of bytes, and `$decompress` bytes of a payload, within a limit.
macro_rules! around_any_codec {
    ($name:ident, $compress:ident, $decompress:ident) => {
        impl<T, C: $crate::Codec<T>> $crate::Codec<T> for $name<C> {
            fn encode(&self, value: &T) -> Result<Vec<u8>, CodecError> {
                $compress(&self.0.encode(value)?)
            }

            fn decode(&self, payload: &[u8]) -> Result<T, CodecError> {
                $crate::compressed::decode(&self.0, payload, $crate::compressed::DEFAULT_LIMIT, $decompress)
            }
        }

        impl<T, C: $crate::Codec<T>> $crate::Codec<T> for Limited<$name<C>> {
            fn encode(&self, value: &T) -> Result<Vec<u8>, CodecError> {
                self.codec.encode(value)
            }

            fn decode(&self, payload: &[u8]) -> Result<T, CodecError> {
                $crate::compressed::decode(&self.codec.0, payload, self.limit, $decompress)
            }
        }
    };
}
use around_any_codec;

fn decode<T>(
    codec: &impl Codec<T>,
    payload: &[u8],
    limit: usize,
    decompress: fn(&[u8], usize) -> Result<Vec<u8>, CodecError>,
) -> Result<T, CodecError> {
    let inner = decompress(payload, limit).map_err(|error| {
        match of_another_codec(payload, &[Signature::ZStd, Signature::Lz4]) {
            other if other.is_empty() => error,
            other => CodecError::new(format!("{error}{other}")),
        }
    })?;
    let values = limit.saturating_mul(MEMORY).saturating_sub(inner.capacity()).max(LEAST_MEMORY);
    memory::within(values, || codec.decode(&inner))
}

fn over_limit(format: &str, limit: usize, found: impl std::fmt::Display) -> CodecError {
    CodecError::new(format!(
        "expected at most {limit} bytes behind {format}, found {found} announced at offset 0"
    ))
}
