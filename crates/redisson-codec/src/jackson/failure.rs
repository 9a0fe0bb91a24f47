//! [`Failure`]: why a payload is refused, or a value cannot be written.

use std::fmt;

use crate::java::path::{Path, Step};
use crate::memory::TooMuch;
use crate::serde_error::without_values;

/// Boxed, so that a successful `Result` stays small.
#[derive(Debug)]
pub(super) struct Failure(Box<Why>);

#[derive(Debug)]
struct Why {
    text: String,
    /// Of the innermost node that is known.
    at: Option<u32>,
    /// Where in the type it happened.
    path: Path,
}

impl Failure {
    #[cold]
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self(Box::new(Why { text: why.into(), at: None, path: Path::default() }))
    }

    /// Names the place, unless one further inside is named.
    #[cold]
    pub(super) fn at(mut self, at: u32) -> Self {
        self.0.at.get_or_insert(at);
        self
    }

    /// The same, where what failed need not be moved.
    #[cold]
    pub(super) fn place(&mut self, at: u32) {
        self.0.at.get_or_insert(at);
    }

    /// Adds what is around the place so far.
    #[cold]
    pub(super) fn within(mut self, step: Step) -> Self {
        self.0.path.step(step);
        self
    }

    /// The way to the place, to which each value around it adds a step.
    pub(super) fn path(&mut self) -> &mut Path {
        &mut self.0.path
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.path.in_front_of(&self.0.text, false))?;
        match self.0.at {
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
        Self::new(without_values(&why))
    }
}

impl serde::de::Error for Failure {
    fn custom<T: fmt::Display>(why: T) -> Self {
        Self::new(without_values(&why))
    }
}

pub(super) type Outcome<T> = Result<T, Failure>;
