//! The codecs of Java [Redisson](https://github.com/redisson/redisson): they turn values into the bytes that
//! Redisson stores in Redis, and back. The crate has no Redis client and does no I/O.
//!
//! Every codec is a type that implements [`Codec<T>`] for the values it can hold. Use the codec that the Java
//! side uses: nothing in a payload says which codec wrote it. The module `detect` finds out what can be found
//! out, for tools that print the payloads of others.
//!
//! ```
//! use redisson_codec::{Codec, Int, String};
//!
//! assert_eq!(Int.encode(&-1)?, b"-1");
//! assert_eq!(String.decode(b"hello").map(|text: std::string::String| text.len())?, 5);
//! # Ok::<(), redisson_codec::CodecError>(())
//! ```
//!
//! # Codecs
//!
//! * [`String`], [`Bytes`], [`Long`], [`Int`] and [`Double`] are always there: the payload is the value as
//!   text or bytes.
//! * `Json` and `MsgPack` write any serde type without Java's class names.
//! * `Kryo5`, `JsonJackson`, `CborJackson` and `MsgPackJackson` write Java objects. What a Java class is in
//!   Rust is in the documentation of the module `java`, which they share.
//! * `Lz4V2`, `SnappyV2` and `ZStd` compress the payload of another codec.
//!
//! The README has the table of Redisson's codecs, an example of each, and the limits.
//!
//! # Features
//!
//! | feature | what it adds | dependency |
//! |---|---|---|
//! | `json` (default) | `Json`, Redisson's `TypedJsonJacksonCodec` | `serde_json` |
//! | `msgpack` | `MsgPack` | `rmp-serde` |
//! | `kryo` | `Kryo5`, `java` | |
//! | `json-jackson` | `JsonJackson`, `java` | `base64` |
//! | `cbor-jackson` | `CborJackson`, `java` | `base64`, `minicbor` |
//! | `msgpack-jackson` | `MsgPackJackson`, `java` | `base64`, `rmp` |
//! | `lz4` | `Lz4V2` | `lz4_flex` |
//! | `snappy` | `SnappyV2` | `snap` |
//! | `zstd` | `ZStd` | `ruzstd` |
//! | `classes` | `classes`: the fields of Java classes, from `.class` files or text | |
//! | `detect` | `detect`: which codec wrote a payload | those of all codecs |
//! | `uuid-1` | conversions of `java::Uuid` | `uuid` |
//! | `jiff-1` | conversions of the times in `java` | `jiff` |
//! | `num-bigint-0-5` | conversions of `java::BigInteger` | `num-bigint` |
//! | `bigdecimal-0-4` | conversions of `java::BigDecimal` | `bigdecimal`, `num-bigint` |
//!
//! A feature with conversions has an effect only together with one that adds `java`.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "_java")]
mod any_class;
#[cfg(feature = "classes")]
pub mod classes;
#[cfg(feature = "_compressed")]
mod compressed;
#[cfg(feature = "detect")]
pub mod detect;
mod error;
#[cfg(feature = "_jackson")]
mod jackson;
#[cfg(feature = "_java")]
pub mod java;
#[cfg(feature = "kryo")]
mod java_serialization;
#[cfg(feature = "json")]
mod json;
#[cfg(feature = "kryo")]
mod kryo;
#[cfg(feature = "_serde")]
mod levels;
#[cfg(any(feature = "_java", feature = "_compressed"))]
mod memory;
#[cfg(feature = "msgpack")]
mod msgpack;
mod number;
mod plain;
#[cfg(feature = "_serde")]
mod serde_error;
#[cfg(feature = "_serde")]
mod shown;
mod signature;

use std::sync::Arc;

#[cfg(feature = "_java")]
pub use any_class::AnyClass;
#[cfg(feature = "_compressed")]
pub use compressed::Limited;
#[cfg(feature = "lz4")]
pub use compressed::Lz4V2;
#[cfg(feature = "snappy")]
pub use compressed::SnappyV2;
#[cfg(feature = "zstd")]
pub use compressed::ZStd;
#[cfg(feature = "cbor-jackson")]
pub use jackson::CborJackson;
#[cfg(feature = "msgpack-jackson")]
pub use jackson::MsgPackJackson;
#[cfg(feature = "json-jackson")]
pub use jackson::{JsonJackson, Mapper, WithMapper};
#[cfg(feature = "json")]
pub use json::Json;
#[cfg(feature = "kryo")]
pub use kryo::Kryo5;
#[cfg(feature = "classes")]
pub use kryo::WithClasses;
#[cfg(feature = "msgpack")]
pub use msgpack::MsgPack;
pub use number::{Double, Int, Long};
pub use plain::{Bytes, String};

pub use error::CodecError;

/// Compiles the examples of the README, which use every codec.
#[cfg(doctest)]
#[cfg_attr(
    all(
        feature = "json",
        feature = "msgpack",
        feature = "kryo",
        feature = "json-jackson",
        feature = "cbor-jackson",
        feature = "msgpack-jackson",
        feature = "lz4",
        feature = "snappy",
        feature = "zstd"
    ),
    doc = include_str!("../README.md")
)]
struct Readme;

/// Converts a value to the bytes of a payload, and back.
///
/// `redelay` calls both methods on the caller's task, never in the background. They must not block.
///
/// # Examples
/// ```
/// use redisson_codec::{Codec, CodecError};
///
/// /// One byte: the number of a shelf.
/// struct Shelf;
///
/// impl Codec<u8> for Shelf {
///     fn encode(&self, value: &u8) -> Result<Vec<u8>, CodecError> {
///         Ok(vec![*value])
///     }
///
///     fn decode(&self, payload: &[u8]) -> Result<u8, CodecError> {
///         match payload {
///             [shelf] => Ok(*shelf),
///             _ => Err(CodecError::new(format!("expected 1 byte, found {}", payload.len()))),
///         }
///     }
/// }
/// assert_eq!(Shelf.decode(&Shelf.encode(&7)?)?, 7);
/// # Ok::<(), CodecError>(())
/// ```
///
/// An `Arc<dyn Codec<T>>` or a `Box<dyn Codec<T>>` is a codec, too: for one that is chosen when the program
/// runs.
///
/// ```
/// use std::sync::Arc;
///
/// use redisson_codec::{Codec, Json, Long};
///
/// let is_java_long = true;
/// let codec: Arc<dyn Codec<i64>> = if is_java_long { Arc::new(Long) } else { Arc::new(Json) };
/// assert_eq!((codec.name(), codec.encode(&7)?), ("Long".to_owned(), b"7".to_vec()));
/// # Ok::<(), redisson_codec::CodecError>(())
/// ```
pub trait Codec<T>: Send + Sync + 'static {
    /// Encodes a value.
    ///
    /// # Errors
    /// When the value has no representation in this format. Then nothing is sent.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::{Codec, Double};
    ///
    /// // `contains` and `remove` compare these bytes, and `redis-cli` shows them.
    /// assert_eq!(Double.encode(&1e7)?, b"1.0E7");
    /// # Ok::<(), redisson_codec::CodecError>(())
    /// ```
    fn encode(&self, value: &T) -> Result<Vec<u8>, CodecError>;

    /// Decodes a payload. Anybody may have written the bytes: this must neither panic nor allocate without
    /// bound.
    ///
    /// # Errors
    /// When the payload is not a value of this type. The error should say what was expected, and where.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::{Codec, Int};
    ///
    /// let error = Int.decode(b"7 pieces").unwrap_err();
    /// assert!(error.to_string().starts_with("expected an integer from -2147483648"));
    /// ```
    fn decode(&self, payload: &[u8]) -> Result<T, CodecError>;

    /// The name of the format in errors. Defaults to the name of the type, without its path.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::{Codec, Long};
    ///
    /// assert_eq!(Codec::<i64>::name(&Long), "Long");
    /// ```
    fn name(&self) -> std::string::String {
        let (mut name, mut word) = (std::string::String::new(), std::string::String::new());
        for letter in std::any::type_name::<Self>().chars() {
            match letter {
                ':' => word.clear(),
                '<' | '>' | ',' | ' ' => {
                    name += &std::mem::take(&mut word);
                    name.push(letter);
                }
                _ => word.push(letter),
            }
        }
        name + &word
    }
}

/// A codec that is chosen when the program runs is an `Arc<dyn Codec<T>>` or a `Box<dyn Codec<T>>`.
macro_rules! behind_a_pointer {
    ($($pointer:ident),*) => {$(
        impl<T, C: Codec<T> + ?Sized> Codec<T> for $pointer<C> {
            fn encode(&self, value: &T) -> Result<Vec<u8>, CodecError> {
                (**self).encode(value)
            }

            fn decode(&self, payload: &[u8]) -> Result<T, CodecError> {
                (**self).decode(payload)
            }

            fn name(&self) -> std::string::String {
                (**self).name()
            }
        }
    )*};
}

behind_a_pointer!(Arc, Box);
