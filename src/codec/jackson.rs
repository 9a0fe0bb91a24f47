//! Redisson's Jackson codecs.

mod base64;
#[cfg(feature = "cbor-jackson")]
mod cbor;
#[cfg(feature = "json-jackson")]
mod json;
#[cfg(feature = "msgpack-jackson")]
mod msgpack;
mod node;
#[cfg(all(test, feature = "json-jackson", feature = "cbor-jackson", feature = "msgpack-jackson"))]
mod tests;
