//! The error of every codec.

use std::error::Error as StdError;
use std::fmt;

/// Why a [`Codec`](crate::Codec) could not encode or decode. [`CodecError::new`] makes one from any error or
/// text.
///
/// # Examples
/// ```
/// use redisson_codec::CodecError;
/// let error = CodecError::new("expected 8 bytes, found 3");
/// assert_eq!(error.to_string(), "expected 8 bytes, found 3");
/// ```
pub struct CodecError(Box<dyn StdError + Send + Sync>);

impl CodecError {
    /// Wraps an error, or a text.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::CodecError;
    ///
    /// let parse = |text: &str| text.parse::<u16>().map_err(CodecError::new);
    /// assert_eq!(parse("70000").unwrap_err().to_string(), "number too large to fit in target type");
    /// ```
    pub fn new(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self(error.into())
    }

    /// The error that [`CodecError::new`] was given.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::CodecError;
    ///
    /// let error = CodecError::new("300".parse::<u8>().unwrap_err());
    /// assert!(error.into_inner().is::<std::num::ParseIntError>());
    /// ```
    #[must_use]
    pub fn into_inner(self) -> Box<dyn StdError + Send + Sync> {
        self.0
    }
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for CodecError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}
