//! Payloads behind a compression, and how much memory is spent on a payload.

use crate::{Bytes, Codec, CodecError, Lz4V2, SnappyV2, ZStd, memory};

/// No block of LZ4 decompresses to more than 255 times its length, nor does Snappy.
const TIMES: usize = 256;

/// What a payload decompresses to, in any case and at most.
const DECOMPRESSED: (usize, usize) = (1 << 20, 64 << 20);

/// What its values take in any case.
const LEAST_VALUES: usize = 64 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Compression {
    Lz4V2,
    SnappyV1,
    SnappyV2,
    ZStd,
}

/// What a payload decompresses to.
pub(super) fn unpacked(compression: Compression, payload: &[u8]) -> Result<Vec<u8>, CodecError> {
    let limit = payload.len().saturating_mul(TIMES).clamp(DECOMPRESSED.0, DECOMPRESSED.1);
    match compression {
        Compression::Lz4V2 => Lz4V2(Bytes).with_limit(limit).decode(payload),
        Compression::SnappyV1 => snappy_blocks(payload, limit),
        Compression::SnappyV2 => SnappyV2(Bytes).with_limit(limit).decode(payload),
        Compression::ZStd => ZStd(Bytes).with_limit(limit).decode(payload),
    }
}

/// What `SnappyCodec` of Redisson 3 writes: blocks of at most 32,767 bytes, each behind its compressed length
/// as a big-endian `int`.
fn snappy_blocks(payload: &[u8], limit: usize) -> Result<Vec<u8>, CodecError> {
    let wrong = || CodecError::new("expected blocks of Snappy, each behind its length");
    let (mut inside, mut rest): (Vec<u8>, _) = (Vec::new(), payload);
    while let Some((length, behind)) = rest.split_first_chunk() {
        let length = u32::from_be_bytes(*length) as usize;
        let block = behind.get(..length).ok_or_else(wrong)?;
        let block: Vec<u8> = SnappyV2(Bytes).with_limit(limit - inside.len()).decode(block)?;
        inside.extend(block);
        rest = &behind[length..];
    }
    match rest.is_empty() && !payload.is_empty() {
        true => Ok(inside),
        false => Err(wrong()),
    }
}

/// Decodes with as much memory for values as a payload may take.
pub(super) fn within_bounds<T>(payload: &[u8], decode: impl FnOnce() -> T) -> T {
    memory::within(payload.len().saturating_mul(TIMES).max(LEAST_VALUES), decode)
}
