//! [`Json`]: plain JSON by `serde_json`.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Codec, CodecError};
use crate::serde_error::without_values;

/// Plain JSON, as Redisson's `TypedJsonJacksonCodec` reads and writes it: no `@class`, the type is the handle's. (Its
/// `JsonJacksonCodec` is another format, with class names inside.)
///
/// Both sides read what the other writes, though not every byte is the same: Redisson sorts the properties, leaves out
/// those that are null, and escapes what is beyond U+FFFF (`\ud83d\ude80`); this writes fields in the order of the
/// struct, with `null`, in UTF-8. What to know for types of one's own:
///
/// * Java's names are those of the fields: `#[serde(rename_all = "camelCase")]`.
/// * A property that Redisson left out is a `None`; a type other than `Option` needs `#[serde(default)]`.
/// * A `byte[]` is a base64 string there; a `Vec<u8>` is a list of numbers here, which Redisson reads too.
/// * NaN and the infinities are not JSON: Redisson writes `"NaN"`, this writes `null`, which Java reads into a `double`
///   as 0. Do not send them.
///
/// # Errors
/// Decoding fails when the payload is not exactly one JSON value of this type, nests deeper than 127 levels, or has a
/// number or text beyond Rust's (half of a surrogate pair); the error names line and column, and quotes no value unless
/// the type's own `Deserialize` does. Encoding fails when the type's `Serialize` does, or for a map whose keys are lists
/// or structs.
///
/// # Examples
/// ```
/// use redisson_codec::{self as codec, Codec};
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
/// assert_eq!(codec::Json.encode(&order)?, br#"{"orderId":7,"coupon":null}"#);
/// assert_eq!(order, codec::Json.decode(br#"{"orderId":7}"#)?);
/// # Ok::<(), codec::CodecError>(())
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
