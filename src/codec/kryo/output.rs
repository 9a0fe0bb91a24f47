//! A payload in the making.
//!
//! Classes are named once, where the first value of each stands. What will come first is not known while writing, as
//! Rust gives fields in another order than Kryo wants them, so classes are only marked, and named at the very end.

use std::borrow::Cow;
use std::cell::Cell;
use std::ops::Range;

use super::MAX_DEPTH;
use super::input::{Fault, Numbered, Outcome};

#[derive(Default)]
pub(super) struct Output {
    pub(super) bytes: Vec<u8>,
    /// Where a class is to be put in, in ascending order.
    marks: Vec<Mark>,
    classes: Vec<Cow<'static, str>>,
    /// Scratch of the last pass: the classes that it named, in order.
    named: Vec<usize>,
    depth: usize,
    /// What is kept aside by [`rewrite`](Self::rewrite).
    old: Old,
    /// Scratch of the structs that are being written: where each field begins and ends.
    pub(super) ranges: Vec<Part>,
    /// The order of [`ranges`](Self::ranges), if the value is a struct: it is not put into order before the last pass.
    pub(super) order: Option<&'static [usize]>,
    /// Scratch of the lists that are being written: where each element begins.
    pub(super) starts: Vec<usize>,
    /// Set by an element that is null, and wrote nothing.
    pub(super) null_element: bool,
}

#[derive(Clone, Copy)]
struct Mark {
    /// Behind the byte that says that a name or its number follows.
    at: usize,
    class: usize,
}

/// A part of the payload: its bytes, and which marks are in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    start: usize,
    end: usize,
    first_mark: usize,
    end_mark: usize,
}

impl Part {
    /// Of a field that was not written.
    pub(super) const ABSENT: Part = Part { start: usize::MAX, end: usize::MAX, first_mark: 0, end_mark: 0 };
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
    #[inline]
    pub(super) fn byte(&self, at: usize) -> u8 {
        self.bytes[at - self.start]
    }
}

/// The class of a value that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Numbered(u8),
    Named(usize),
}

impl Output {
    pub(super) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    #[inline]
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    #[inline]
    pub(super) fn varint(&mut self, number: u32) {
        varint(&mut self.bytes, number);
    }

    #[inline]
    pub(super) fn int(&mut self, number: i32) {
        self.varint((number << 1 ^ number >> 31) as u32);
    }

    #[inline]
    pub(super) fn varlong(&mut self, mut number: u64) {
        // The 9th byte has 8 bits.
        for _ in 0..8 {
            if number < 0x80 {
                break;
            }
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    #[inline]
    pub(super) fn long(&mut self, number: i64) {
        self.varlong((number << 1 ^ number >> 63) as u64);
    }

    #[inline]
    pub(super) fn flagged(&mut self, flag: bool, number: u32) {
        let flag = u8::from(flag) << 7;
        if number < 0x40 {
            return self.bytes.push(flag | number as u8);
        }
        self.bytes.push(flag | 0x40 | (number & 0x3f) as u8);
        self.varint(number >> 6);
    }

    pub(super) fn text(&mut self, text: &str) {
        if text.is_empty() {
            return self.byte(0x81);
        }
        if text.is_ascii() {
            if (2..=32).contains(&text.len()) {
                self.raw(text.as_bytes());
                return self.end_ascii();
            }
            self.flagged(true, text.len() as u32 + 1);
            return self.raw(text.as_bytes());
        }
        // Each unit of UTF-16 is written as UTF-8, so that only what has two of them differs from that.
        let pairs = text.bytes().filter(|byte| *byte >= 0xf0).count();
        self.flagged(true, (text.chars().count() + pairs) as u32 + 1);
        if pairs == 0 {
            return self.raw(text.as_bytes());
        }
        let mut rest = text;
        while let Some(at) = rest.find(|char| char > '\u{ffff}') {
            self.raw(&rest.as_bytes()[..at]);
            let mut chars = rest[at..].chars();
            let mut units = [0; 2];
            for char in chars.by_ref().take(1) {
                for unit in char.encode_utf16(&mut units) {
                    let unit = *unit;
                    self.raw(&[
                        0xe0 | (unit >> 12) as u8,
                        0x80 | (unit >> 6 & 0x3f) as u8,
                        0x80 | (unit & 0x3f) as u8,
                    ]);
                }
            }
            rest = chars.as_str();
        }
        self.raw(rest.as_bytes());
    }

    fn end_ascii(&mut self) {
        if let Some(last) = self.bytes.last_mut() {
            *last |= 0x80;
        }
    }

    /// How many elements, and one: 0 would be a null.
    #[inline]
    pub(super) fn length(count: usize) -> Outcome<u32> {
        // Java's lengths are of 31 bits.
        match i32::try_from(count) {
            Ok(count) if count < i32::MAX => Ok(count as u32 + 1),
            _ => Err(Fault::new(format!("{count} elements are more than Java can hold"))),
        }
    }

    pub(super) fn numbered(&mut self, class: Numbered) {
        self.byte(class as u8);
    }

    pub(super) fn class(&mut self, name: impl Into<Cow<'static, str>>) {
        let class = self.class_id(name);
        self.mark(class);
    }

    pub(super) fn class_id(&mut self, name: impl Into<Cow<'static, str>>) -> usize {
        let name = name.into();
        self.classes.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.classes.push(name);
            self.classes.len() - 1
        })
    }

    fn mark(&mut self, class: usize) {
        self.byte(1);
        self.marks.push(Mark { at: self.bytes.len(), class });
    }

    pub(super) fn written(&mut self, class: Written) {
        match class {
            Written::Numbered(number) => self.byte(number),
            Written::Named(class) => self.mark(class),
        }
    }

    /// The class that was written here, if it was not a null.
    pub(super) fn class_at(&self, start: usize) -> Option<Written> {
        match *self.bytes.get(start)? {
            0 => None,
            1 => {
                let mark = self.marks.partition_point(|mark| mark.at <= start);
                Some(Written::Named(self.marks.get(mark)?.class))
            }
            number => Some(Written::Numbered(number)),
        }
    }

    #[inline]
    pub(super) fn deeper(&mut self) -> Outcome<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Fault::new(format!("more than {MAX_DEPTH} levels")));
        }
        Ok(())
    }

    #[inline]
    pub(super) fn shallower(&mut self) {
        self.depth -= 1;
    }

    /// Whether what is being written is not within anything else.
    pub(super) fn is_outermost(&self) -> bool {
        self.depth == 1
    }

    /// Takes away everything from `start` on, to be written anew out of its parts.
    #[inline]
    pub(super) fn cut(&mut self, start: usize) -> Old {
        let mut old = std::mem::take(&mut self.old);
        old.start = start;
        old.bytes.clear();
        old.bytes.extend_from_slice(&self.bytes[start..]);
        self.bytes.truncate(start);
        let mark = self.marks.partition_point(|mark| mark.at <= start);
        old.first_mark = mark;
        old.marks.clear();
        old.marks.extend_from_slice(&self.marks[mark..]);
        self.marks.truncate(mark);
        old
    }

    /// Keeps the memory of what was cut for the next time.
    #[inline]
    pub(super) fn reuse(&mut self, old: Old) {
        self.old = old;
    }

    /// Where the payload ends now, which is where a part begins.
    #[inline]
    pub(super) fn here(&self) -> (usize, usize) {
        (self.bytes.len(), self.marks.len())
    }

    /// From there on.
    #[inline]
    pub(super) fn part_from(&self, (start, first_mark): (usize, usize)) -> Part {
        Part { start, end: self.bytes.len(), first_mark, end_mark: self.marks.len() }
    }

    /// A part of what was there, with its classes.
    #[inline]
    pub(super) fn copy_part(&mut self, old: &Old, part: Part) {
        let to = self.bytes.len();
        self.raw(&old.bytes[part.start - old.start..part.end - old.start]);
        for mark in &old.marks[part.first_mark - old.first_mark..part.end_mark - old.first_mark] {
            self.marks.push(Mark { at: mark.at - part.start + to, class: mark.class });
        }
    }

    /// Any bytes of what was there, with their classes.
    pub(super) fn copy(&mut self, old: &Old, range: Range<usize>) {
        let mark = |at| old.first_mark + old.marks.partition_point(|mark| mark.at <= at);
        let (first_mark, end_mark) = (mark(range.start), mark(range.end));
        self.copy_part(old, Part { start: range.start, end: range.end, first_mark, end_mark });
    }

    /// The name of a class that was written.
    pub(super) fn class_name(&self, class: Written) -> &str {
        match class {
            Written::Numbered(number) => Numbered::of(number.into()).map_or("", Numbered::name),
            Written::Named(class) => &self.classes[class],
        }
    }

    /// An empty one, with the memory of the thread's last one.
    pub(super) fn take() -> Box<Self> {
        SPARE.take().unwrap_or_default()
    }

    /// The payload, with the classes named.
    pub(super) fn finish(mut self: Box<Self>) -> Vec<u8> {
        let names: usize = self.classes.iter().map(|name| name.len()).sum();
        let mut payload = Vec::with_capacity(self.bytes.len() + names + 3 * self.marks.len());
        self.named.clear();
        match self.order.take() {
            None => self.finish_part(&mut payload, self.part_from((0, 0))),
            Some(order) => {
                // What is before the first field.
                let (end, end_mark) =
                    self.ranges.iter().map(|part| (part.start, part.first_mark)).min().unwrap_or_default();
                self.finish_part(&mut payload, Part { start: 0, end, first_mark: 0, end_mark });
                for &field in order {
                    self.finish_part(&mut payload, self.ranges[field]);
                }
                self.ranges.clear();
            }
        }
        if self.bytes.capacity() <= MAX_SPARE {
            self.bytes.clear();
            self.marks.clear();
            self.classes.clear();
            SPARE.set(Some(self));
        }
        payload
    }

    fn finish_part(&mut self, payload: &mut Vec<u8>, part: Part) {
        let mut from = part.start;
        for mark in &self.marks[part.first_mark..part.end_mark] {
            payload.extend_from_slice(&self.bytes[from..mark.at]);
            from = mark.at;
            // The number of each class is its place among those that were named.
            if let Some(number) = self.named.iter().position(|class| *class == mark.class) {
                varint(payload, number as u32);
                continue;
            }
            varint(payload, self.named.len() as u32);
            self.named.push(mark.class);
            let name = &self.classes[mark.class];
            if name.is_ascii() && name.len() > 1 {
                payload.extend_from_slice(name.as_bytes());
                if let Some(last) = payload.last_mut() {
                    *last |= 0x80;
                }
            } else {
                let mut text = Output::default();
                text.text(name);
                payload.extend_from_slice(&text.bytes);
            }
        }
        payload.extend_from_slice(&self.bytes[from..part.end]);
    }
}

/// More memory than this is not kept for the next payload.
const MAX_SPARE: usize = 1 << 16;

thread_local! {
    static SPARE: Cell<Option<Box<Output>>> = const { Cell::new(None) };
}

fn varint(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::input::Input;
    use super::*;

    proptest! {
        #[test]
        fn numbers_and_texts_come_back(
            int: i32, long: i64, unsigned: u32, wide: u64, flag: bool, length in 0u32..0x8000_0000, text: String,
        ) {
            let mut output = Output::take();
            output.int(int);
            output.long(long);
            output.varint(unsigned);
            output.varlong(wide);
            output.flagged(flag, length);
            output.text(&text);
            let payload = output.finish();
            let mut input = Input::new(&payload);
            prop_assert_eq!(input.int().unwrap(), int);
            prop_assert_eq!(input.long().unwrap(), long);
            prop_assert_eq!(input.varint().unwrap(), unsigned);
            prop_assert_eq!(input.varlong().unwrap(), wide);
            prop_assert_eq!(input.flagged().unwrap(), (flag, length));
            prop_assert_eq!(input.text().unwrap().unwrap(), text);
            prop_assert_eq!(input.left(), 0);
        }
    }

    #[test]
    fn lengths_at_their_limits() {
        let written = |number: i64| {
            let mut output = Output::take();
            output.long(number);
            output.bytes
        };
        assert_eq!(written(i64::MIN), [0xff; 9]);
        assert_eq!(written(63), [0x7e]);
        assert_eq!(written(64), [0x80, 0x01]);
    }

    #[test]
    fn classes_are_named_where_they_come_first() {
        let mut output = Output::take();
        output.class("Late");
        let late = output.bytes.len();
        output.class("Early");
        output.class("Late");
        let end = output.bytes.len();
        let old = output.cut(0);
        output.copy(&old, late..end);
        output.byte(0x7f);
        output.copy(&old, 0..late);
        output.reuse(old);
        assert_eq!(output.class_at(0), Some(Written::Named(1)));
        assert_eq!(output.finish(), b"\x01\x00Earl\xf9\x01\x01Lat\xe5\x7f\x01\x01");
    }
}
