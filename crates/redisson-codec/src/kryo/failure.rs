//! [`Failure`]: why a payload is refused, or a value cannot be written.

use std::fmt;

use crate::memory::TooMuch;

/// Why a payload is refused, or a value cannot be written.
///
/// Boxed, so that a successful `Result` stays small.
#[derive(Debug)]
pub(super) struct Failure(Box<Why>);

#[derive(Debug)]
struct Why {
    text: String,
    foreign: bool,
}

impl Failure {
    #[cold]
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self(Box::new(Why { text: why.into(), foreign: false }))
    }

    #[cold]
    fn foreign(message: impl fmt::Display) -> Self {
        Self(Box::new(Why { text: message.to_string(), foreign: true }))
    }

    /// Whether serde worded it: without an offset, and possibly quoting a value.
    pub(super) fn is_foreign(&self) -> bool {
        self.0.foreign
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl std::error::Error for Failure {}

impl From<TooMuch> for Failure {
    #[cold]
    fn from(why: TooMuch) -> Self {
        Self::new(why.to_string())
    }
}

impl serde::de::Error for Failure {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Failure::foreign(message)
    }
}

impl serde::ser::Error for Failure {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Failure::foreign(message)
    }
}

pub(super) type Outcome<T> = Result<T, Failure>;
