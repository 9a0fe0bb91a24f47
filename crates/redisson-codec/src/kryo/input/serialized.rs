//! Objects that Java's own serialization wrote: their class, and then a stream of their own, or more of that
//! of the last object of the class.

use super::{ClassRef, Input};
use crate::java::Serialized;
use crate::java::known_classes::known;
use crate::java_serialization::{HEADER, Read, Streams};
use crate::kryo::MAX_DEPTH;
use crate::kryo::failure::{Failure, Outcome};

/// How many elements of a list may be null before the first that says that a stream begins.
const MAX_NULLS: usize = 256;

impl Input<'_> {
    /// Whether Java's own serialization wrote the object of this class that follows.
    #[inline]
    pub(in super::super) fn is_serialized(&self, class: ClassRef) -> bool {
        match class {
            ClassRef::Named(_) if self.streams.is_some() || self.begins_stream() => self.is_in_stream(class),
            _ => false,
        }
    }

    #[inline]
    fn begins_stream(&self) -> bool {
        match self.bytes[self.at..] {
            [0xac, 0xed, ..] => self.follows(HEADER),
            // Elements of one class are behind it and a byte. If that says that there are nulls, each has
            // one.
            [0, 0xac, 0xed, ..] => true,
            [1, ref nulls @ ..] => {
                let first = nulls.iter().take(MAX_NULLS).position(|byte| *byte != 0).unwrap_or_default();
                nulls[first..].starts_with(&[1, 0xac, 0xed])
            }
            _ => false,
        }
    }

    #[cold]
    fn is_in_stream(&self, class: ClassRef) -> bool {
        let class = &self.class_name(class);
        if self.streams.as_ref().is_some_and(|streams| streams.has(class)) {
            return true;
        }
        let object = &self.bytes[self.at..];
        // The fields of an application's class may have such bytes, too.
        let begins = Streams::is_left_to_java(class) || Streams::begins(class, object);
        begins && self.begins_stream() && known(class).is_none()
            || self.streams.as_ref().is_some_and(|streams| streams.is_shared(class, object))
    }

    /// Reads such an object, which has a value or not.
    pub(in super::super) fn serialized(&mut self, class: ClassRef) -> Outcome<Read> {
        let class = self.class_name(class).into_owned();
        let depth = MAX_DEPTH - self.depth.min(MAX_DEPTH);
        let (at, streams) = (self.at, self.streams.get_or_insert_default());
        let read = streams.read(&class, self.bytes, at, depth);
        let read = read.map_err(|why| Failure::new(why.of_object_at(at)))?;
        self.at = read.end;
        Ok(read)
    }

    /// The same, with its bytes.
    pub(in super::super) fn keep_serialized(&mut self, class: ClassRef) -> Outcome<Serialized> {
        let start = self.at;
        let read = self.serialized(class)?;
        let class = self.kept_class_name(class)?;
        read.keep(class, &self.bytes[start..self.at]).map_err(|why| Failure::new(why.of_object_at(start)))
    }
}
