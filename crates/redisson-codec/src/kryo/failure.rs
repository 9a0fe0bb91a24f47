//! [`Failure`]: why a payload is refused, or a value cannot be written.

use std::fmt;

use crate::java::path::{Path, Step};
use crate::memory::TooMuch;
use crate::serde_error::without_values;

/// Why a payload is refused, or a value cannot be written.
///
/// Boxed, so that a successful `Result` stays small.
#[derive(Debug)]
pub(super) struct Failure(Box<Why>);

#[derive(Debug)]
struct Why {
    text: String,
    /// serde worded it, or the limit of a memory: without an offset.
    foreign: bool,
    /// The fields of a class are not known, so that its end is not either; or it is too deep to be found.
    endless: bool,
    /// Where in the type it happened.
    path: Path,
}

impl Failure {
    #[cold]
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self(Box::new(Why { text: why.into(), foreign: false, endless: false, path: Path::default() }))
    }

    #[cold]
    fn foreign(message: impl fmt::Display) -> Self {
        let mut failure = Self::new(message.to_string());
        failure.0.foreign = true;
        failure
    }

    /// Says that the rest of the payload cannot be read, and may be right.
    #[cold]
    pub(super) fn endless(mut self) -> Self {
        self.0.endless = true;
        self
    }

    pub(super) fn is_endless(&self) -> bool {
        self.0.endless
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

    /// Where and why reading failed, if it went up to this offset.
    pub(super) fn of_reading(&self, at: usize) -> String {
        let why = match self.0.foreign {
            // It may quote a value.
            true => format!("{}, before offset {at}", without_values(&self.0.text)),
            false => self.0.text.clone(),
        };
        self.0.path.in_front_of(&why, true)
    }

    /// Why writing failed.
    pub(super) fn of_writing(&self) -> String {
        let why = match self.0.foreign {
            true => without_values(&self.0.text),
            false => self.0.text.clone(),
        };
        self.0.path.in_front_of(&why, false)
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
        Self::foreign(why)
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
