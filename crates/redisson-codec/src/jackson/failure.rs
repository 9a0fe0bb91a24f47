//! [`Failure`]: why a payload is refused, or a value cannot be written.

use std::fmt;

use crate::memory::TooMuch;

use crate::serde_error::without_values;

#[derive(Debug)]
pub(super) struct Failure {
    why: String,
    /// Of the innermost node that is known.
    at: Option<u32>,
}

impl Failure {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), at: None }
    }

    /// Names the place, unless one further inside is named.
    pub(super) fn at(mut self, at: u32) -> Self {
        self.at.get_or_insert(at);
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)?;
        match self.at {
            Some(at) => write!(f, " at offset {at}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

impl From<TooMuch> for Failure {
    #[cold]
    fn from(why: TooMuch) -> Self {
        Self::new(why.to_string())
    }
}

impl serde::ser::Error for Failure {
    fn custom<T: fmt::Display>(why: T) -> Self {
        Self::new(why.to_string())
    }
}

impl serde::de::Error for Failure {
    fn custom<T: fmt::Display>(why: T) -> Self {
        Self::new(without_values(&why))
    }
}

pub(super) type Outcome<T> = Result<T, Failure>;
