//! [`MsgPack`]: MessagePack by `rmp_serde`, behind a check of the payload's outline.

use std::io::Cursor;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Codec, CodecError};
use crate::levels::MAX_DEPTH;
use crate::serde_error::{unreadable, without_values};
use crate::signature::of_another_codec;

/// MessagePack with structs as maps from field names, as Jackson's MessagePack mapper writes a bean.
///
/// No Redisson codec writes exactly this: `MsgPackJacksonCodec` puts class names into lists and maps, and
/// requires them. Numbers take the fewest bytes that hold them. `Vec<u8>` is an array, as any list;
/// [`bytes::Bytes`] is binary.
///
/// # Errors
/// Decoding fails when the payload is not exactly one MessagePack value of this type, announces more than it
/// contains, or nests deeper than 127 levels. The error names the offset. It quotes no value, unless the
/// type's own `Deserialize` does. Encoding fails when the type's `Serialize` fails, and beyond 127 levels.
///
/// # Examples
/// ```
/// use redisson_codec::{Codec, MsgPack};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Debug, PartialEq)]
/// struct Point {
///     x: i32,
///     y: i32,
/// }
///
/// let point = Point { x: 1, y: -1 };
/// assert_eq!(MsgPack.encode(&point)?, b"\x82\xa1x\x01\xa1y\xff");
/// assert_eq!(point, MsgPack.decode(b"\x82\xa1x\x01\xa1y\xff")?);
/// # Ok::<(), redisson_codec::CodecError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct MsgPack;

impl<T: Serialize + DeserializeOwned> Codec<T> for MsgPack {
    fn encode(&self, value: &T) -> Result<Vec<u8>, CodecError> {
        let payload =
            rmp_serde::to_vec_named(value).map_err(|error| CodecError::new(without_values(&error)))?;
        // What is too deep would not be read again. Only what has as many heads of arrays and maps can be.
        let heads = payload.iter().filter(|byte| matches!(byte, 0x80..=0x9f | 0xdc..=0xdf)).count();
        if heads > MAX_DEPTH {
            check(&payload).map_err(CodecError::new)?;
        }
        Ok(payload)
    }

    fn decode(&self, payload: &[u8]) -> Result<T, CodecError> {
        check(payload).map_err(|why| {
            let other = of_another_codec(payload, &[]);
            CodecError::new(format!("expected one MessagePack value: {why}{other}"))
        })?;
        // `from_slice` does not say where it stopped.
        let mut input = rmp_serde::Deserializer::new(Cursor::new(payload));
        T::deserialize(&mut input).map_err(|error| {
            let why = format!("{}, before offset {}", without_values(&error), input.position());
            unreadable::<T>("MessagePack", &why, payload, &[])
        })
    }
}

/// Checks that the payload is one value and nothing else, not too deep, with all that it announces.
///
/// `rmp_serde` 1.3 does not count nested enum variants as depth, so that two bytes a level overflow the stack
/// (3Hren/msgpack-rust#381), tells types lengths that were only claimed, and ignores what follows the value.
fn check(payload: &[u8]) -> Result<(), String> {
    let mut input = Input { payload, at: 0 };
    // How many values are to come, in the payload and in each array or map that is open.
    let mut open = vec![1];
    while let Some(left) = open.last_mut() {
        if *left == 0 {
            open.pop();
            continue;
        }
        *left -= 1;
        let start = input.at;
        let head = input.head()?;
        let held = input.payload.len() - input.at;
        // Each value takes a byte at least.
        if head.bytes + head.values > held as u64 {
            return Err(format!(
                "the value at offset {start} announces more than the {held} bytes after its head"
            ));
        }
        input.at += head.bytes as usize;
        if head.values > 0 {
            if open.len() > MAX_DEPTH {
                return Err(format!("more than {MAX_DEPTH} levels at offset {start}"));
            }
            open.push(head.values);
        }
    }
    match payload.len() - input.at {
        0 => Ok(()),
        more => Err(format!("{more} bytes follow it at offset {}", input.at)),
    }
}

struct Input<'a> {
    payload: &'a [u8],
    at: usize,
}

/// What follows the head of a value: bytes of its own, or other values.
struct Header {
    bytes: u64,
    values: u64,
}

impl Input<'_> {
    fn head(&mut self) -> Result<Header, String> {
        let bytes = |bytes| Header { bytes, values: 0 };
        let values = |values| Header { bytes: 0, values };
        let start = self.at;
        let marker = self.number(1)? as u8;
        Ok(match marker {
            // Small integers, nil, false, true.
            0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => bytes(0),
            0x80..=0x8f => values(2 * u64::from(marker & 0x0f)),
            0x90..=0x9f => values(u64::from(marker & 0x0f)),
            0xa0..=0xbf => bytes(u64::from(marker & 0x1f)),
            0xc1 => return Err(format!("the reserved byte 0xc1 at offset {start}")),
            // Binary, then extensions, whose type is one byte more.
            0xc4..=0xc6 => bytes(self.number(1 << (marker - 0xc4))?),
            0xc7..=0xc9 => bytes(self.number(1 << (marker - 0xc7))? + 1),
            // Floats, unsigned and signed integers.
            0xca..=0xcb => bytes(4 << (marker - 0xca)),
            0xcc..=0xcf => bytes(1 << (marker - 0xcc)),
            0xd0..=0xd3 => bytes(1 << (marker - 0xd0)),
            0xd4..=0xd8 => bytes((1 << (marker - 0xd4)) + 1),
            // Text, arrays, maps.
            0xd9..=0xdb => bytes(self.number(1 << (marker - 0xd9))?),
            0xdc..=0xdd => values(self.number(2 << (marker - 0xdc))?),
            0xde..=0xdf => values(2 * self.number(2 << (marker - 0xde))?),
        })
    }

    /// A big-endian number of this many bytes.
    fn number(&mut self, width: usize) -> Result<u64, String> {
        let ends = || format!("it ends at offset {}, within a value", self.payload.len());
        let bytes = self.payload.get(self.at..self.at + width).ok_or_else(ends)?;
        self.at += width;
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}
