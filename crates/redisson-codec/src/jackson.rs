//! Redisson's Jackson codecs: [`JsonJackson`], [`CborJackson`], [`MsgPackJackson`].
//!
//! | step | room |
//! |---|---|
//! | bytes to nodes and back, one room a format | `json.rs`, `cbor.rs`, `msgpack.rs` |
//! | how the formats write what they have in common | `format.rs` |
//! | nodes: what is read, and a `Value` on its way to be written | `node.rs` |
//! | nodes to a type, by its shape in Java | `reader.rs` |
//! | a type to bytes, by a plan that is made of its shape | `writer.rs` |
//! | nodes to [`Value`](super::java::Value) and back | `value.rs` |

// Without JSON some of these two is for nobody.
#[cfg_attr(not(feature = "json-jackson"), allow(dead_code))]
mod base64;
#[cfg(feature = "cbor-jackson")]
mod cbor;
mod failure;
mod format;
#[cfg(feature = "json-jackson")]
mod json;
#[cfg(feature = "msgpack-jackson")]
mod msgpack;
#[cfg_attr(not(feature = "json-jackson"), allow(dead_code))]
mod node;
mod reader;
#[cfg(all(test, feature = "json-jackson", feature = "cbor-jackson", feature = "msgpack-jackson"))]
mod tests;
mod value;
mod writer;

use serde::Serialize;
use serde::de::DeserializeOwned;

use self::format::Format;
use self::writer::{Output, Place, Plan};
use super::java::shape::Shape;
use super::{AnyClass, Codec, CodecError};

macro_rules! codec {
    ($(#[$doc:meta])* $name:ident $feature:literal $format:path) => {
        $(#[$doc])*
        #[cfg(feature = $feature)]
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;

        #[cfg(feature = $feature)]
        impl $name {
            /// Reads a payload whatever the classes in it are called, where an error would name both otherwise.
            ///
            /// # Examples
            #[doc = concat!("```\nuse redisson_codec as codec;\n\nlet codec = codec::", stringify!($name), ".with_any_class();\n```")]
            #[must_use]
            pub fn with_any_class(self) -> AnyClass<Self> {
                AnyClass(self)
            }
        }

        #[cfg(feature = $feature)]
        impl<T: Serialize + DeserializeOwned + 'static> Codec<T> for $name {
            fn encode(&self, value: &T) -> Result<Vec<u8>, CodecError> {
                encode::<$format, T>(value)
            }

            fn decode(&self, payload: &[u8]) -> Result<T, CodecError> {
                decode::<$format, T>(payload, false)
            }
        }

        #[cfg(feature = $feature)]
        impl<T: Serialize + DeserializeOwned + 'static> Codec<T> for AnyClass<$name> {
            fn encode(&self, value: &T) -> Result<Vec<u8>, CodecError> {
                self.0.encode(value)
            }

            fn decode(&self, payload: &[u8]) -> Result<T, CodecError> {
                decode::<$format, T>(payload, true)
            }
        }
    };
}

codec! {
    /// JSON with Java's classes in it, as Redisson's `JsonJacksonCodec` reads and writes it, to the byte.
    ///
    /// What [`java`](super::java) says of types holds here; a `Value` is any payload. Properties are sorted, nulls are
    /// left out of objects and maps, and read as `None`; properties that a type does not have are skipped.
    ///
    /// Classes may be missing from what is read, but not be others, except for lists and maps, where each that Java's
    /// library has will do; see [`with_any_class`](Self::with_any_class).
    ///
    /// # Errors
    /// Decoding fails when the payload is not exactly one JSON value of this type, nests deeper than 127 levels (a list in
    /// a list is two, for its class), has a number of more than 1000 digits or half of a surrogate pair; the error names
    /// the offset, and quotes no value unless the type's own `Deserialize` does. Encoding fails for what Redisson's mapper
    /// refuses, which are `java.time` and `Optional`, and when the type's `Serialize` does.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::{self as codec, Codec};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize, Debug, PartialEq)]
    /// #[serde(rename = "com.acme.Order", rename_all = "camelCase")]
    /// struct Order {
    ///     order_id: i64,
    ///     coupon_id: Option<i64>,
    ///     tags: Vec<String>,
    ///     note: Option<String>,
    /// }
    ///
    /// let order = Order { order_id: 7, coupon_id: Some(1), tags: vec!["new".into()], note: None };
    /// let payload = codec::JsonJackson.encode(&order)?;
    /// assert_eq!(
    ///     std::str::from_utf8(&payload),
    ///     Ok(concat!(
    ///         r#"{"@class":"com.acme.Order","couponId":["java.lang.Long",1],"orderId":7,"#,
    ///         r#""tags":["java.util.ArrayList",["new"]]}"#,
    ///     )),
    /// );
    /// assert_eq!(order, codec::JsonJackson.decode(&payload)?);
    /// # Ok::<(), codec::CodecError>(())
    /// ```
    JsonJackson "json-jackson" json::Json
}

codec! {
    /// CBOR with Java's classes in it, as Redisson's `CborJacksonCodec` reads and writes it, to the byte.
    ///
    /// All that is said of [`JsonJackson`](crate#codecs) holds: the values are the same, only that bytes are bytes
    /// here, a `BigDecimal` keeps its scale, and the keys of a map from `Integer` or `Long` are numbers.
    ///
    /// # Errors
    /// As for `JsonJackson`. Half floats, simple values and other tags than those of numbers are refused.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::{self as codec, Codec};
    ///
    /// assert_eq!(codec::CborJackson.encode(&"hello".to_owned())?, b"\x65hello");
    /// let payload = codec::CborJackson.encode(&vec![1, 2])?;
    /// assert_eq!(payload, b"\x9f\x73java.util.ArrayList\x9f\x01\x02\xff\xff");
    /// # Ok::<(), codec::CodecError>(())
    /// ```
    CborJackson "cbor-jackson" cbor::Cbor
}

codec! {
    /// MessagePack with Java's classes in it, as Redisson's `MsgPackJacksonCodec` reads and writes it, to the byte.
    ///
    /// All that is said of [`JsonJackson`](crate#codecs) holds: the values are the same, only that bytes are bytes
    /// here.
    ///
    /// # Errors
    /// As for `JsonJackson`. Extensions are refused. As Jackson's mapper does, this refuses to write a `BigInteger` beyond
    /// 64 bits and a `BigDecimal` that is neither an integer nor exactly what a double prints as, and loses the zeros at
    /// the end of the others.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::{self as codec, Codec};
    ///
    /// assert_eq!(codec::MsgPackJackson.encode(&"hello".to_owned())?, b"\xa5hello");
    /// let payload = codec::MsgPackJackson.encode(&vec![1, 2])?;
    /// assert_eq!(payload, b"\x92\xb3java.util.ArrayList\x92\x01\x02");
    /// # Ok::<(), codec::CodecError>(())
    /// ```
    MsgPackJackson "msgpack-jackson" msgpack::MsgPack
}

fn encode<F: Format, T: Serialize + DeserializeOwned + 'static>(value: &T) -> Result<Vec<u8>, CodecError> {
    let plan = Plan::of::<F, T>()?;
    let mut output = Output::take();
    value.serialize(Place::<F>::whole(&mut output, plan)).map_err(CodecError::new)?;
    let payload = output.finish();
    match payload.len() {
        length if length > F::MAX_PAYLOAD => {
            Err(CodecError::new(format!("{length} bytes are beyond {}", F::NAME)))
        }
        _ => Ok(payload),
    }
}

fn decode<F: Format, T: DeserializeOwned + 'static>(
    payload: &[u8],
    any_class: bool,
) -> Result<T, CodecError> {
    let wrong = |why: &dyn std::fmt::Display| {
        let kind = std::any::type_name::<T>();
        CodecError::new(format!("expected `{kind}` as {} of Redisson: {why}", F::NAME))
    };
    let shape = Shape::of::<T>()?;
    let node = F::read(payload).map_err(|error| wrong(&error))?;
    reader::read(&node, shape, any_class).map_err(|failure| wrong(&failure))
}
