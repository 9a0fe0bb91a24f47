//! Reads Java's own serialization (`java.io.ObjectOutputStream`), to which Redisson's `Kryo5Codec` leaves
//! some classes: `Collections.unmodifiableList(…)`, `EnumMap`, exceptions.
//!
//! The stream names each class with its fields, so that any object in it can be read, and its end be found.

// | module | contents |
// |---|---|
// | `typed` | from a `Value` to a Rust type, by its shape |
// | `view` | from an object of the stream to a `Value`; `special_classes` has those of Java's library whose fields are not what they are, `times` those of `java.time`, `contents` what a class writes itself |
// | `stream` | from bytes to objects, which refer to each other |
// | `modified_utf8` | Java's form of UTF-8 |

mod contents;
mod modified_utf8;
mod special_classes;
mod stream;
mod times;
mod typed;
mod view;

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::java::{Serialized, Value};
#[cfg(feature = "detect")]
use crate::levels::MAX_DEPTH;
use crate::memory::TooMuch;

pub(crate) use stream::HEADER;
pub(crate) use typed::Typed;

use stream::Stream;

/// Why bytes are no object, or none of which there is a [`Value`].
#[derive(Debug)]
pub(crate) enum Refused {
    No(String),
    TooMuch(TooMuch),
}

impl Refused {
    #[cold]
    fn new(why: impl Into<String>) -> Self {
        Self::No(why.into())
    }

    /// What is said of an object that begins at an offset.
    pub(crate) fn of_object_at(&self, at: usize) -> String {
        match self {
            Self::No(why) => why.clone(),
            Self::TooMuch(why) => format!("{why}, in an object at offset {at}"),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::No(why) => f.write_str(why),
            Self::TooMuch(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for Refused {}

impl From<TooMuch> for Refused {
    #[cold]
    fn from(why: TooMuch) -> Self {
        Self::TooMuch(why)
    }
}

/// An object, and whether it has a value. Where it has none, because it contains itself or nests too deep,
/// its bytes are read nevertheless.
pub(crate) struct Read {
    pub(crate) value: Result<Value, Refused>,
    /// Where it ends.
    pub(crate) end: usize,
    /// The stream before it, if there was one.
    follows: Option<u64>,
}

/// Streams in a payload. Kryo goes on with the stream of a class at the next object of this class.
#[derive(Default)]
pub(crate) struct Streams {
    streams: Vec<Stream>,
    /// Which of them has the objects of a class.
    classes: HashMap<String, usize>,
    /// How many bytes of memory the values of objects take that are referred to once more.
    repeated: usize,
}

impl Streams {
    /// Whether a stream begins, with an object of this class.
    pub(crate) fn begins(class: &str, object: &[u8]) -> bool {
        object.strip_prefix(HEADER).is_some_and(|object| stream::names(object, class))
    }

    /// Whether Redisson leaves a class of Java's library to its serialization, as far as its name shows.
    pub(crate) fn is_left_to_java(class: &str) -> bool {
        class.starts_with("java.")
    }

    /// Whether there is a stream of this class.
    pub(crate) fn has(&self, class: &str) -> bool {
        self.classes.contains_key(class)
    }

    /// Whether an object of this class goes on with the stream of another one, as that of an exception does.
    pub(crate) fn is_shared(&self, class: &str, object: &[u8]) -> bool {
        !self.streams.is_empty() && stream::names(object, class)
    }

    /// Reads the object of a class at an offset. A value may nest so deep.
    ///
    /// # Errors
    /// When it is no such object, or takes too much memory.
    pub(crate) fn read(
        &mut self,
        class: &str,
        payload: &[u8],
        at: usize,
        depth: usize,
    ) -> Result<Read, Refused> {
        let begins = payload.get(at..).is_some_and(|rest| rest.starts_with(HEADER));
        let number = match self.classes.get(class) {
            Some(number) if !begins => *number,
            _ => {
                if begins {
                    self.streams.push(Stream::default());
                }
                let number = self.streams.len().checked_sub(1);
                let number =
                    number.ok_or_else(|| Refused::new(format!("no stream begins at offset {at}")))?;
                self.classes.insert(class.to_owned(), number);
                number
            }
        };
        let stream = &mut self.streams[number];
        let follows = (!begins).then_some(stream.hash());
        let (object, end) = stream.object(payload, at)?;
        let value = view::value(stream, payload, object, depth, &mut self.repeated)?;
        Ok(Read { value, end, follows })
    }
}

impl Read {
    /// As it is kept in a [`Value`].
    pub(crate) fn keep(self, class: String, bytes: &[u8]) -> Result<Serialized, Refused> {
        crate::memory::take(bytes.len())?;
        Ok(Serialized::new(class, self.value.ok(), bytes.to_vec(), self.follows))
    }
}

/// The value of a whole payload of Java's own serialization.
#[cfg(feature = "detect")]
pub(crate) fn value(payload: &[u8]) -> Result<Value, Refused> {
    let mut stream = Stream::default();
    let (object, end) = stream.object(payload, 0)?;
    if end < payload.len() {
        return Err(Refused::new(format!("{} bytes follow it at offset {end}", payload.len() - end)));
    }
    view::value(&mut stream, payload, object, MAX_DEPTH, &mut 0)?
}

/// Of the bytes of a stream so far, by which an object knows its place again.
fn hash(before: u64, bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x0100_0000_01b3;
    bytes.iter().fold(before, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

/// What an object needs to be read again: that nothing, or exactly what it went on with, is before it.
pub(crate) struct Place {
    pub(crate) class: String,
    pub(crate) follows: Option<u64>,
    /// Of the stream with this object.
    ends: u64,
}

impl Place {
    pub(crate) fn of(object: &Serialized) -> Self {
        let follows = object.follows();
        let ends = hash(follows.unwrap_or(stream::EMPTY), object.bytes());
        Self { class: object.class().to_owned(), follows, ends }
    }
}

/// The streams that were written so far: the classes that have one, and the places that one can go on with.
#[derive(Default)]
pub(crate) struct Written {
    classes: HashSet<String>,
    ends: HashSet<u64>,
}

impl Written {
    /// Whether an object can be written here: it begins the stream of its class, or goes on with exactly what
    /// it went on with when it was read.
    pub(crate) fn add(&mut self, place: &Place) -> bool {
        let fits = match place.follows {
            None => self.classes.insert(place.class.clone()),
            Some(follows) => self.ends.remove(&follows),
        };
        fits && self.ends.insert(place.ends)
    }
}
