//! The length of the decompressed bytes that Redisson puts in front of LZ4 and Zstandard: a big-endian `int`.

use super::over_limit;
use crate::CodecError;

/// The announced length, and the bytes behind it.
pub(super) fn split_length<'a>(
    format: &str,
    payload: &'a [u8],
    limit: usize,
) -> Result<(usize, &'a [u8]), CodecError> {
    let Some((length, rest)) = payload.split_first_chunk() else {
        let found = payload.len();
        return Err(CodecError::new(format!(
            "expected 4 bytes of length at offset 0 and {format}, found {found} bytes"
        )));
    };
    let length = i32::from_be_bytes(*length);
    match usize::try_from(length) {
        Ok(length) if length <= limit => Ok((length, rest)),
        _ => Err(over_limit(format, limit, length)),
    }
}

/// The length as it is in front.
pub(super) fn length(inner: &[u8]) -> Result<[u8; 4], CodecError> {
    match i32::try_from(inner.len()) {
        Ok(length) => Ok(length.to_be_bytes()),
        Err(_) => Err(CodecError::new(format!(
            "{} bytes to compress are more than Java's arrays hold",
            inner.len()
        ))),
    }
}

pub(super) fn check_length(format: &str, announced: usize, found: usize) -> Result<(), CodecError> {
    if announced == found {
        return Ok(());
    }
    Err(CodecError::new(format!(
        "expected {announced} bytes behind {format}, as announced at offset 0, found {found}"
    )))
}
