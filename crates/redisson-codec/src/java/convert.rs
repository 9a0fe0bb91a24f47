//! Conversions to and from the types of other crates, each behind a feature that names the crate and its
//! version.
//!
//! A conversion that holds for every value is a `From`. Any other is a `TryFrom` with a [`ConversionError`];
//! none panics, whatever a payload contains.

#[cfg(feature = "bigdecimal-0-4")]
mod bigdecimal;
#[cfg(feature = "jiff-1")]
mod jiff;
#[cfg(feature = "num-bigint-0-5")]
mod num_bigint;
#[cfg(feature = "uuid-1")]
mod uuid;

/// The value is outside of what the target type can hold.
///
/// Returned by the conversions of the features `jiff-1` and `bigdecimal-0-4`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversionError {
    /// What does not fit, and where.
    pub(super) why: &'static str,
}

impl std::fmt::Display for ConversionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.why)
    }
}

impl std::error::Error for ConversionError {}
