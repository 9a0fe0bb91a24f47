//! [`Kryo5`]: Redisson's default codec.

pub use super::java::Value;

/// Redisson's `Kryo5Codec`, which is its default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kryo5;
