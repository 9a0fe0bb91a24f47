//! [`Json`]: plain JSON by `serde_json`.

use std::io::{self, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::ser::Formatter;

use super::{Codec, CodecError};
use crate::levels::MAX_DEPTH;
use crate::serde_error::{unreadable, without_values};
use crate::signature::Signature;

/// Plain JSON, as Redisson's `TypedJsonJacksonCodec` reads and writes it: without `@class`, because both
/// sides know the type. Redisson's `JsonJacksonCodec` is another format, with class names inside.
///
/// Both sides read what the other writes, but the bytes differ. Redisson sorts the properties, leaves out
/// nulls, and escapes characters beyond U+FFFF (`\ud83d\ude80`). This codec writes the fields in the order of
/// the struct, with `null`, in UTF-8. Where the bytes must be the same, and for a `byte[]`, use `JsonJackson`
/// with the mapper `Mapper::new().without_classes()`. For your own types:
///
/// * The fields have Java's names: `#[serde(rename_all = "camelCase")]`.
/// * A property that Redisson left out is a `None`. A type other than `Option` needs `#[serde(default)]`.
/// * Redisson writes a `byte[]` as a base64 string, which is a `String` here, or any type that serializes as
///   one, such as with `serde_with::base64`. This codec writes a `Vec<u8>` as a list of numbers, which
///   Redisson reads, too, and reads it from nothing else.
/// * A `java::BigDecimal` or `java::BigInteger` is written as a text, and read from a text or a number, with
///   all its digits.
/// * The times of `java` are written as ISO texts. They are read from them, and from the numbers of Jackson's
///   `JavaTimeModule`: `[2024,2,29,12,34]`, decimal seconds. A `java::Date` is read from a number and a text.
/// * JSON has no NaN and no infinities. Redisson writes `"NaN"`; this codec writes `null`, which Java reads
///   into a `double` as 0. Do not send them.
///
/// # Errors
/// Decoding fails when the payload is not exactly one JSON value of this type, nests deeper than 127 levels,
/// or has a number or text that Rust cannot hold (half of a surrogate pair). The error names line and column.
/// It quotes no value, unless the type's own `Deserialize` does. Encoding fails when the type's `Serialize`
/// fails, and for a map whose keys are lists or structs, and beyond 127 levels.
///
/// # Examples
/// ```
/// use redisson_codec::{Codec, Json};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Debug, PartialEq)]
/// #[serde(rename_all = "camelCase")]
/// struct Order {
///     order_id: i64,
///     coupon: Option<String>,
/// }
///
/// let order = Order { order_id: 7, coupon: None };
/// assert_eq!(Json.encode(&order)?, br#"{"orderId":7,"coupon":null}"#);
/// assert_eq!(order, Json.decode(br#"{"orderId":7}"#)?);
/// # Ok::<(), redisson_codec::CodecError>(())
/// ```
#[doc(alias = "TypedJsonJacksonCodec")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

impl<T: Serialize + DeserializeOwned> Codec<T> for Json {
    fn encode(&self, value: &T) -> Result<Vec<u8>, CodecError> {
        let mut payload = Vec::with_capacity(128);
        let mut output = serde_json::Serializer::with_formatter(&mut payload, Compact { depth: 0 });
        value.serialize(&mut output).map_err(|error| CodecError::new(without_values(&error)))?;
        Ok(payload)
    }

    fn decode(&self, payload: &[u8]) -> Result<T, CodecError> {
        serde_json::from_slice(payload).map_err(|error| {
            let (text, place) =
                (error.to_string(), format!(" at line {} column {}", error.line(), error.column()));
            let why = match text.strip_suffix(&place) {
                Some(why) => without_values(&why) + &place,
                None => without_values(&text),
            };
            unreadable::<T>("JSON", &why, payload, &[Signature::Json])
        })
    }
}

/// Writes what `serde_json` writes, but nothing that is too deep to be read again.
struct Compact {
    /// How many lists and objects are open.
    depth: usize,
}

impl Compact {
    fn deeper(&mut self) -> io::Result<()> {
        self.depth += 1;
        match self.depth > MAX_DEPTH {
            true => Err(io::Error::other(format!("a value of more than {MAX_DEPTH} levels is too deep"))),
            false => Ok(()),
        }
    }
}

impl Formatter for Compact {
    #[inline]
    fn begin_array<W: Write + ?Sized>(&mut self, output: &mut W) -> io::Result<()> {
        self.deeper()?;
        output.write_all(b"[")
    }

    #[inline]
    fn end_array<W: Write + ?Sized>(&mut self, output: &mut W) -> io::Result<()> {
        self.depth -= 1;
        output.write_all(b"]")
    }

    #[inline]
    fn begin_object<W: Write + ?Sized>(&mut self, output: &mut W) -> io::Result<()> {
        self.deeper()?;
        output.write_all(b"{")
    }

    #[inline]
    fn end_object<W: Write + ?Sized>(&mut self, output: &mut W) -> io::Result<()> {
        self.depth -= 1;
        output.write_all(b"}")
    }
}
