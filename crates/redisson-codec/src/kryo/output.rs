//! A payload under construction.
//!
//! serde passes the fields of a struct in another order than Kryo needs. A class is named once, at its first
//! value, and which value comes first is not known before the fields are in order. So both are only marked,
//! and resolved in one pass at the end: see [`finish`].

mod finish;
mod primitives;

use std::cell::Cell;
use std::ops::Range;

use super::MAX_DEPTH;
use crate::java::Serialized;
use crate::java_serialization::Place;
use crate::kryo::failure::{Failure, Outcome};
use crate::kryo::numbered::Numbered;
use finish::put_bytes;
use primitives::CHUNK;

#[derive(Default)]
pub(super) struct Output {
    pub(super) bytes: Vec<u8>,
    /// In ascending order.
    marks: Vec<Mark>,
    /// The classes that the type itself names. They come first in the numbering.
    planned: &'static [Name],
    /// The other classes, in the order in which they were written.
    classes: Vec<Name>,
    structs: Vec<StructMark>,
    /// What Java's own serialization wrote. Whether an object can be where it is, is seen when the fields are
    /// in order.
    serialized: Vec<Place>,
    /// Where each field of the structs is, in Java's order.
    spans: Vec<FieldSpan>,
    depth: usize,
    /// Bytes that were cut off, to be written again.
    old: Old,
    /// Scratch of the lists that are being written: where each element begins.
    pub(super) starts: Vec<Spot>,
    /// Set by an element that is null, and wrote nothing.
    pub(super) null_element: bool,
    last_pass: finish::Scratch,
    /// Classes of the application that are described.
    #[cfg(feature = "classes")]
    pub(super) described: Option<Box<super::described::Described>>,
}

/// Something that is done at the end.
#[derive(Clone, Copy)]
struct Mark {
    at: usize,
    kind: MarkKind,
}

#[derive(Clone, Copy)]
enum MarkKind {
    /// Behind the byte that says that a name or its number follows.
    Class(usize),
    /// Which of [`Output::structs`] begins.
    Struct(usize),
    /// Which of [`Output::serialized`] is before it.
    Serialized(usize),
}

/// A struct whose fields are to be put into order. If they need not be, it has none.
struct StructMark {
    /// Where it was when it was written.
    start: Spot,
    end: Spot,
    /// In [`Output::spans`].
    fields: Range<usize>,
}

/// A field: its bytes, and which marks are in it, where they were when it was written.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FieldSpan {
    start: u32,
    end: u32,
    first_mark: u32,
    end_mark: u32,
}

impl FieldSpan {
    /// Of a field that was not written.
    const ABSENT: FieldSpan = FieldSpan { start: u32::MAX, end: 0, first_mark: 0, end_mark: 0 };
}

/// A place between two bytes, and between two marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) at: usize,
    mark: usize,
}

impl Spot {
    /// Behind the class that was written here.
    pub(super) fn behind(self, class: WrittenClass) -> Spot {
        Spot { at: self.at + 1, mark: self.mark + usize::from(matches!(class, WrittenClass::Named(_))) }
    }

    /// Behind bytes without marks.
    pub(super) fn skip(self, count: usize) -> Spot {
        Spot { at: self.at + count, ..self }
    }
}

/// A struct that is being written.
#[derive(Clone, Copy)]
pub(super) struct OpenStruct {
    number: usize,
    /// Of its fields in [`Output::spans`].
    first: usize,
}

/// The end of the payload, as it was.
#[derive(Default)]
pub(super) struct Old {
    start: usize,
    bytes: Vec<u8>,
    /// The number of marks before `start`.
    first_mark: usize,
    marks: Vec<Mark>,
}

impl Old {
    pub(super) fn byte(&self, at: usize) -> u8 {
        self.bytes[at - self.start]
    }
}

/// The class of a value that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WrittenClass {
    Numbered(u8),
    Named(usize),
}

/// The name of a class, and how it is written.
pub(super) struct Name {
    text: String,
    /// With some more bytes behind them.
    bytes: Vec<u8>,
    length: usize,
}

impl Name {
    pub(super) fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let mut bytes = primitives::name(&text);
        let length = bytes.len();
        bytes.extend_from_slice(&[0; CHUNK]);
        Self { text, bytes, length }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

impl Output {
    /// An empty one, with the memory of the thread's last one.
    pub(super) fn take() -> Box<Self> {
        Self::of(&[])
    }

    /// Like [`take`](Self::take), for values of a type that names these classes.
    pub(super) fn of(planned: &'static [Name]) -> Box<Self> {
        let mut output = SPARE.take().unwrap_or_default();
        output.planned = planned;
        output
    }

    /// Keeps the memory for the thread's next one.
    fn spare(mut self: Box<Self>) {
        let most = self.bytes.capacity().max(size_of::<FieldSpan>() * self.spans.capacity());
        let most = most.max(size_of::<Mark>() * self.marks.capacity());
        if most.max(size_of::<Spot>() * self.starts.capacity()) <= MAX_SPARE {
            self.bytes.clear();
            self.marks.clear();
            self.classes.clear();
            self.structs.clear();
            self.serialized.clear();
            self.spans.clear();
            SPARE.set(Some(self));
        }
    }

    /// How many elements, and one: 0 would be a null.
    #[inline]
    pub(super) fn length(count: usize) -> Outcome<u32> {
        // Java's lengths are of 31 bits.
        match i32::try_from(count) {
            Ok(count) if count < i32::MAX => Ok(count as u32 + 1),
            _ => Err(Failure::new(format!("{count} elements are more than Java can hold"))),
        }
    }

    pub(super) fn numbered(&mut self, class: Numbered) {
        self.byte(class as u8);
    }

    pub(super) fn class(&mut self, name: impl Into<String> + AsRef<str>) {
        let planned = self.planned;
        let known = planned.iter().chain(&self.classes).position(|known| known.text == name.as_ref());
        let class = known.unwrap_or_else(|| {
            self.classes.push(Name::new(name));
            planned.len() + self.classes.len() - 1
        });
        self.mark(class);
    }

    fn name(&self, class: usize) -> &Name {
        match self.planned.get(class) {
            Some(name) => name,
            None => &self.classes[class - self.planned.len()],
        }
    }

    #[inline]
    fn mark(&mut self, class: usize) {
        self.byte(1);
        self.marks.push(Mark { at: self.bytes.len(), kind: MarkKind::Class(class) });
    }

    #[inline]
    pub(super) fn written(&mut self, class: WrittenClass) {
        match class {
            WrittenClass::Numbered(number) => self.byte(number),
            WrittenClass::Named(class) => self.mark(class),
        }
    }

    /// The class that was written here, if it was not a null.
    pub(super) fn class_at(&self, spot: Spot) -> Option<WrittenClass> {
        match *self.bytes.get(spot.at)? {
            0 => None,
            1 => match self.marks.get(spot.mark)?.kind {
                MarkKind::Class(class) => Some(WrittenClass::Named(class)),
                MarkKind::Struct(_) | MarkKind::Serialized(_) => None,
            },
            number => Some(WrittenClass::Numbered(number)),
        }
    }

    /// The name of a class that was written.
    pub(super) fn class_name(&self, class: WrittenClass) -> &str {
        match class {
            WrittenClass::Numbered(number) => Numbered::of(number.into()).map_or("", Numbered::name),
            WrittenClass::Named(class) => &self.name(class).text,
        }
    }

    /// Writes an object that Java's own serialization wrote, behind its class.
    #[cold]
    pub(super) fn serialized(&mut self, object: &Serialized) {
        self.raw(object.bytes());
        self.marks.push(Mark { at: self.bytes.len(), kind: MarkKind::Serialized(self.serialized.len()) });
        self.serialized.push(Place::of(object));
    }

    #[inline]
    pub(super) fn deeper(&mut self) -> Outcome<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Failure::new(format!("more than {MAX_DEPTH} levels")));
        }
        Ok(())
    }

    #[inline]
    pub(super) fn shallower(&mut self) {
        self.depth -= 1;
    }

    /// Where the payload ends now.
    #[inline]
    pub(super) fn here(&self) -> Spot {
        Spot { at: self.bytes.len(), mark: self.marks.len() }
    }

    /// Begins a struct with this many fields. Each is then reported by [`field`](Self::field).
    #[inline]
    pub(super) fn open(&mut self, fields: usize) -> OpenStruct {
        let (number, first) = (self.structs.len(), self.spans.len());
        self.marks.push(Mark { at: self.bytes.len(), kind: MarkKind::Struct(number) });
        let start = self.here();
        self.structs.push(StructMark { start, end: start, fields: 0..0 });
        self.spans.resize(first + fields, FieldSpan::ABSENT);
        OpenStruct { number, first }
    }

    /// Says that the field of this number in Java's order is all that was written since then.
    #[inline]
    pub(super) fn field(&mut self, open: OpenStruct, place: usize, since: Spot) {
        // Longer payloads are refused at the end of the struct.
        self.spans[open.first + place] = FieldSpan {
            start: since.at as u32,
            end: self.bytes.len() as u32,
            first_mark: since.mark as u32,
            end_mark: self.marks.len() as u32,
        };
    }

    /// Whether the field was not written.
    pub(super) fn is_absent(&self, open: OpenStruct, place: usize) -> bool {
        self.spans[open.first + place] == FieldSpan::ABSENT
    }

    /// Ends a struct with this many fields, which must be put into order.
    #[inline]
    pub(super) fn close(&mut self, open: OpenStruct, fields: usize) -> Outcome<()> {
        let end = self.here();
        if u32::try_from(end.at).is_err() {
            return Err(Failure::new(format!("{} bytes are more than Java can hold", end.at)));
        }
        let class = &mut self.structs[open.number];
        (class.end, class.fields) = (end, open.first..open.first + fields);
        if self.spans.len() > MANY_SPANS && class.start.mark == end.mark {
            self.arrange(open);
        }
        Ok(())
    }

    /// Puts the fields of the last struct, in which there are no marks, into order at once.
    fn arrange(&mut self, open: OpenStruct) {
        let StructMark { start, end, .. } = self.structs[open.number];
        self.bytes.extend_from_slice(&[0; CHUNK]);
        let sorted = &mut self.old.bytes;
        if sorted.len() < end.at - start.at + CHUNK {
            sorted.resize(end.at - start.at + CHUNK, 0);
        }
        let mut to = 0;
        for span in &self.spans[open.first..] {
            to = put_bytes(sorted, to, &self.bytes, span.start as usize, span.end as usize);
        }
        self.bytes.truncate(start.at);
        self.bytes.extend_from_slice(&sorted[..to]);
        self.spans.truncate(open.first);
        self.structs.truncate(open.number);
        self.marks.truncate(start.mark - 1);
    }

    /// Cuts off everything from there on, to be written again from its parts.
    pub(super) fn cut(&mut self, start: Spot) -> Old {
        let mut old = std::mem::take(&mut self.old);
        (old.start, old.first_mark) = (start.at, start.mark);
        old.bytes.clear();
        old.bytes.extend_from_slice(&self.bytes[start.at..]);
        self.bytes.truncate(start.at);
        old.marks.clear();
        old.marks.extend_from_slice(&self.marks[start.mark..]);
        self.marks.truncate(start.mark);
        old
    }

    /// Keeps the memory of what was cut for the next time.
    pub(super) fn reuse(&mut self, old: Old) {
        self.old = old;
    }

    /// Some of what was there, with its marks.
    pub(super) fn copy(&mut self, old: &Old, from: Spot, to: Spot) {
        let at = self.bytes.len();
        self.raw(&old.bytes[from.at - old.start..to.at - old.start]);
        for mark in &old.marks[from.mark - old.first_mark..to.mark - old.first_mark] {
            self.marks.push(Mark { at: mark.at - from.at + at, kind: mark.kind });
        }
    }
}

/// More bytes than this of any kind are not kept for the next payload.
const MAX_SPARE: usize = 1 << 16;

/// From this many fields on, structs are put into order at once: in a long list, remembering where each field
/// is takes more memory than the fields.
const MANY_SPANS: usize = 1 << 10;

thread_local! {
    static SPARE: Cell<Option<Box<Output>>> = const { Cell::new(None) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_named_where_they_come_first() {
        let mut output = Output::take();
        let start = output.here();
        output.class("Late");
        let late = output.here();
        output.class("Early");
        output.class("Late");
        let end = output.here();
        let old = output.cut(start);
        output.copy(&old, late, end);
        output.byte(0x7f);
        output.copy(&old, start, late);
        output.reuse(old);
        assert_eq!(output.class_at(start), Some(WrittenClass::Named(1)));
        assert_eq!(output.finish().unwrap(), b"\x01\x00Earl\xf9\x01\x01Lat\xe5\x7f\x01\x01");
    }

    #[test]
    fn fields_within_fields_are_put_into_order() {
        let mut output = Output::take();
        let outer = output.open(2);
        let start = output.here();
        output.class("Ab");
        let inner = output.open(2);
        for byte in [1, 0] {
            let start = output.here();
            output.byte(byte);
            output.field(inner, byte.into(), start);
        }
        output.close(inner, 2).unwrap();
        output.class("Cd");
        output.field(outer, 1, start);
        let start = output.here();
        output.class("Cd");
        assert!(output.is_absent(outer, 0));
        output.field(outer, 0, start);
        output.close(outer, 2).unwrap();
        assert_eq!(output.finish().unwrap(), b"\x01\x00C\xe4\x01\x01A\xe2\x00\x01\x01\x00");
    }
}
