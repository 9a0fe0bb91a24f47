//! Redisson's Jackson codecs: [`JsonJackson`], [`CborJackson`], [`MsgPackJackson`].
//!
//! | module | contents |
//! |---|---|
//! | `json.rs`, `cbor.rs`, `msgpack.rs` | one format each: bytes to nodes and back |
//! | `format.rs` | how the formats write what they have in common |
//! | `mapper.rs`, `times.rs`, `pattern.rs` | the settings of an application's `ObjectMapper`, and how it writes times |
//! | `node.rs` | nodes: a decoded payload, or a scalar that is about to be written |
//! | `read.rs` | nodes to a type, by its shape in Java |
//! | `write.rs` | a type to bytes, by a plan made from its shape |
//! | `value.rs` | nodes to a [`Value`](super::java::Value), and a `Value` to bytes |

/// The public codec of a format.
macro_rules! codec {
    ($(#[$doc:meta])* $name:ident $format:ty, $mapper:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;

        impl $name {
            /// Returns a codec that does not check the class names in a payload. Without it, an unexpected
            /// class is an error that names both classes.
            ///
            /// # Examples
            #[doc = concat!("```\nuse redisson_codec::", stringify!($name), ";\n\nlet codec = ", stringify!($name), ".with_any_class();\n```")]
            #[must_use]
            pub fn with_any_class(self) -> $crate::AnyClass<Self> {
                $crate::AnyClass(self)
            }
        }

        impl<T: serde::Serialize + serde::de::DeserializeOwned + 'static> $crate::Codec<T> for $name {
            fn encode(&self, value: &T) -> Result<Vec<u8>, $crate::CodecError> {
                $crate::jackson::encode::<$format, T>(value, None)
            }

            fn decode(&self, payload: &[u8]) -> Result<T, $crate::CodecError> {
                $crate::jackson::decode::<$format, T>(payload, false, &$crate::jackson::mapper::$mapper)
            }
        }

        impl<T: serde::Serialize + serde::de::DeserializeOwned + 'static> $crate::Codec<T> for $crate::AnyClass<$name> {
            fn encode(&self, value: &T) -> Result<Vec<u8>, $crate::CodecError> {
                self.0.encode(value)
            }

            fn decode(&self, payload: &[u8]) -> Result<T, $crate::CodecError> {
                $crate::jackson::decode::<$format, T>(payload, true, &$crate::jackson::mapper::$mapper)
            }
        }
    };
}

mod base64;
#[cfg(feature = "cbor-jackson")]
mod cbor;
mod failure;
mod format;
#[cfg(feature = "json-jackson")]
mod json;
mod mapper;
#[cfg(feature = "msgpack-jackson")]
mod msgpack;
mod node;
mod pattern;
mod read;
#[cfg(test)]
mod tests;
mod times;
mod value;
mod write;

#[cfg(feature = "cbor-jackson")]
pub use cbor::CborJackson;
#[cfg(feature = "json-jackson")]
pub use json::JsonJackson;
#[cfg(feature = "json-jackson")]
pub use mapper::{Mapper, WithMapper};
#[cfg(feature = "msgpack-jackson")]
pub use msgpack::MsgPackJackson;

use std::any::Any;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use self::format::Format;
#[cfg(not(feature = "json-jackson"))]
use self::mapper::Mapper;
use self::mapper::Typing;
use self::write::{Output, Plan, ValueWriter};
use super::CodecError;
use super::java::Value;
use super::java::shape::Shape;
use crate::serde_error::unreadable;
use crate::shown::{LONGEST, within};
use crate::signature::Signature;

fn encode<F: Format, T: Serialize + DeserializeOwned + 'static>(
    value: &T,
    mapper: Option<&Arc<Mapper>>,
) -> Result<Vec<u8>, CodecError> {
    let plan = Plan::of::<F, T>(mapper.map_or(Typing::Redisson, |mapper| mapper.typing))?;
    let mut output = Output::take(mapper);
    let writer = ValueWriter::<F>::whole(&mut output, plan);
    let written = match (value as &dyn Any).downcast_ref::<Value>() {
        // A whole `Value` is written directly, without a copy through serde.
        Some(value) => writer.value_of(value),
        None => value.serialize(writer),
    };
    written.map_err(|failure| CodecError::new(within(failure.to_string(), LONGEST)))?;
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
    mapper: &Mapper,
) -> Result<T, CodecError> {
    let wrong = |why: &dyn std::fmt::Display| {
        let own = match mapper.typing {
            Typing::Redisson | Typing::Property => [F::SIGNATURE, Signature::JsonOfClass, Signature::Json],
            Typing::Wrapper => [Signature::WrapperArray, Signature::JsonOfClass, Signature::Json],
            Typing::Nowhere => [Signature::Json; 3],
        };
        // The other formats have no mappers.
        let own = if F::SIGNATURE == Signature::JsonJackson { &own[..] } else { &own[..1] };
        unreadable::<T>(&format!("{} of Redisson", F::NAME), &why.to_string(), payload, own)
    };
    let shape = Shape::of::<T>()?;
    let node = F::read(payload).map_err(|error| wrong(&error))?;
    read::read(&node, shape, any_class, mapper).map_err(|failure| wrong(&failure))
}
