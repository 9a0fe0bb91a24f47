//! Codecs: what the bytes of a payload are. A handle is made with one, which must be the writer's.
//!
//! | here | in Redisson | bytes |
//! |---|---|---|
//! | [`String`] | `StringCodec` | UTF-8 |
//! | [`Bytes`] | `ByteArrayCodec` | as they are |
//! | [`Long`], [`Int`] | `LongCodec`, `IntegerCodec` | decimal text |
//! | [`Double`] | `DoubleCodec` | decimal text, as Java prints a double |
//! | `Json` (feature `json`) | `TypedJsonJacksonCodec` | plain JSON |
//! | `Kryo5` (feature `kryo`) | `Kryo5Codec`, the default | Kryo 5; Java classes are structs |
//! | `MsgPack` (feature `msgpack`) | – (Jackson's MessagePack mapper without type information) | MessagePack, structs as maps |
//! | `JsonJackson` (feature `json-jackson`) | `JsonJacksonCodec` | JSON with Java's classes in it |
//! | `CborJackson` (feature `cbor-jackson`) | `CborJacksonCodec` | the same in CBOR |
//! | `MsgPackJackson` (feature `msgpack-jackson`) | `MsgPackJacksonCodec` | the same in MessagePack |
//! | `Lz4V2(_)`, `SnappyV2(_)`, `ZStd(_)` (features `lz4`, `snappy`, `zstd`) | `LZ4CodecV2`, `SnappyCodecV2`, `ZStdCodec` | another codec's, compressed |
//!
//! A codec of one's own is any type with [`Codec`] for the payload's type; see `examples/custom_codec.rs`.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "_java")]
mod any_class;
#[cfg(feature = "_compressed")]
mod compressed;
mod error;
#[cfg(feature = "_jackson")]
mod jackson;
#[cfg(feature = "_java")]
pub mod java;
#[cfg(feature = "json")]
mod json;
#[cfg(feature = "kryo")]
pub mod kryo;
#[cfg(feature = "msgpack")]
mod msgpack;
mod number;
#[cfg(feature = "_serde")]
mod serde_error;
mod text;

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
#[cfg(feature = "json-jackson")]
pub use jackson::JsonJackson;
#[cfg(feature = "msgpack-jackson")]
pub use jackson::MsgPackJackson;
#[cfg(feature = "json")]
pub use json::Json;
#[cfg(feature = "kryo")]
pub use kryo::Kryo5;
#[cfg(feature = "msgpack")]
pub use msgpack::MsgPack;
pub use number::{Double, Int, Long};
pub use text::{Bytes, String};

pub use error::CodecError;

/// Turns a value into the bytes of a payload and back.
///
/// Both directions are called on the caller's task, never in the background, and must not block.
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
pub trait Codec<T>: Send + Sync + 'static {
    /// The payload of a value.
    ///
    /// # Errors
    /// When the value has no representation in this format. Nothing is sent then.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::{self as codec, Codec};
    ///
    /// // The bytes that are compared by `contains` and `remove`, and that `redis-cli` shows.
    /// assert_eq!(codec::Double.encode(&1e7)?, b"1.0E7");
    /// # Ok::<(), codec::CodecError>(())
    /// ```
    fn encode(&self, value: &T) -> Result<Vec<u8>, CodecError>;

    /// The value of a payload. Called with whatever bytes anybody wrote: it must neither panic nor allocate without
    /// bound.
    ///
    /// # Errors
    /// When the payload is no such value; the error should say what was expected, and where.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::{self as codec, Codec};
    ///
    /// let error = codec::Int.decode(b"7 pieces").unwrap_err();
    /// assert!(error.to_string().starts_with("expected an integer from -2147483648"));
    /// ```
    fn decode(&self, payload: &[u8]) -> Result<T, CodecError>;
}
