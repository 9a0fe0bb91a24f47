//! [`Json`]: plain JSON by `serde_json`.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Codec, CodecError};
use crate::serde_error::without_values;

/// Plain JSON, as Redisson's `TypedJsonJacksonCodec` reads and writes it: without `@class`, because both sides know the
/// type. Redisson's `JsonJacksonCodec` is another format, with class names inside.
///
/// Both sides read what the other writes, but the bytes differ. Redisson sorts the properties, leaves out nulls, and
/// escapes characters beyond U+FFFF (`\ud83d\ude80`). This codec writes the fields in the order of the struct, with
/// `null`, in UTF-8. For your own types:
///
/// * The fields have Java's names: `#[serde(rename_all = "camelCase")]`.
/// * A property that Redisson left out is a `None`. A type other than `Option` needs `#[serde(default)]`.
/// * Redisson writes a `byte[]` as a base64 string. This codec writes a `Vec<u8>` as a list of numbers, which Redisson
///   reads, too.
/// * JSON has no NaN and no infinities. Redisson writes `"NaN"`; this codec writes `null`, which Java reads into a
///   `double` as 0. Do not send them.
///
/// # Errors
/// Decoding fails when the payload is not exactly one JSON value of this type, nests deeper than 127 levels, or has a
/// number or text that Rust cannot hold (half of a surrogate pair). The error names line and column. It quotes no value,
/// unless the type's own `Deserialize` does. Encoding fails when the type's `Serialize` fails, and for a map whose keys
/// are lists or structs.
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
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

impl<T: Serialize + DeserializeOwned> Codec<T> for Json {
    fn encode(&self, value: &T) -> Result<Vec<u8>, CodecError> {
        serde_json::to_vec(value).map_err(CodecError::new)
    }

    fn decode(&self, payload: &[u8]) -> Result<T, CodecError> {
        serde_json::from_slice(payload).map_err(|error| {
            let kind = std::any::type_name::<T>();
            CodecError::new(format!("expected `{kind}` as JSON: {}", without_values(&error)))
        })
    }
}
