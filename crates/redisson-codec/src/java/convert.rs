//! Conversions to and from the types of other crates, each behind the feature of that crate's name.
//!
//! A conversion that holds for every value is a `From`. Any other is a `TryFrom` with a [`ConversionError`]; none panics,
//! whatever a payload contains.

#[cfg(feature = "bigdecimal")]
mod bigdecimal;
#[cfg(feature = "jiff")]
mod jiff;
#[cfg(feature = "num-bigint")]
mod num_bigint;
#[cfg(feature = "uuid")]
mod uuid;

/// The value is outside of what the target type can hold.
///
/// Returned by the conversions of the features `jiff` and `bigdecimal`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
