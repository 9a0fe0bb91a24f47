//! The last pass: the fields are put into order, and the classes are named.

use super::primitives::CHUNK;
use super::{MAX_SPARE, MarkKind, Output};
use crate::java_serialization::{Place, Written};
use crate::kryo::failure::{Failure, Outcome};
use crate::shown::shown;

/// Memory of the last pass, kept for the thread's next one.
#[derive(Default)]
pub(super) struct Scratch {
    /// The payload, and whatever is behind it.
    payload: Vec<u8>,
    numbers: Numbers,
}

/// The numbers that were given to the classes that were named.
#[derive(Default)]
struct Numbers {
    of: Vec<Option<u32>>,
    next: u32,
    /// What Java's own serialization wrote, if it wrote anything.
    written: Option<Box<Written>>,
    /// Which of it cannot be where it is.
    misplaced: Option<usize>,
}

impl Numbers {
    #[cold]
    fn serialized(&mut self, number: usize, place: &Place) {
        if !self.written.get_or_insert_default().add(place) {
            self.misplaced = self.misplaced.or(Some(number));
        }
    }
}

/// The number of a class is no longer.
const MAX_NUMBER: usize = 5;

impl Output {
    pub(in super::super) fn finish(mut self: Box<Self>) -> Outcome<Vec<u8>> {
        let end = self.here();
        self.bytes.extend_from_slice(&[0; CHUNK]);
        let mut scratch = std::mem::take(&mut self.last_pass);
        scratch.numbers.of.clear();
        scratch.numbers.of.resize(self.planned.len() + self.classes.len(), None);
        scratch.numbers.next = 0;
        scratch.numbers.written = None;
        let names: usize = self.planned.iter().chain(&self.classes).map(|name| name.length).sum();
        let most = self.bytes.len() + names + MAX_NUMBER * self.marks.len();
        if scratch.payload.len() < most {
            scratch.payload.resize(most, 0);
        }
        let length = self.put(&mut scratch.payload, &mut scratch.numbers, 0, (0, end.at), (0, end.mark));
        let payload = match scratch.numbers.misplaced.take() {
            None => Ok(scratch.payload[..length].to_vec()),
            Some(number) => Err(misplaced(&self.serialized[number])),
        };
        if scratch.payload.capacity() <= MAX_SPARE {
            self.last_pass = scratch;
        }
        self.spare();
        payload
    }

    /// Puts what is between two bytes at an offset of the payload, and does what is between two marks. Says
    /// where it ends.
    fn put(
        &self,
        payload: &mut [u8],
        numbers: &mut Numbers,
        mut to: usize,
        (mut start, end): (usize, usize),
        (mut mark, end_mark): (usize, usize),
    ) -> usize {
        let bytes = &self.bytes[..];
        while mark < end_mark {
            let marked = self.marks[mark];
            to = put_bytes(payload, to, bytes, start, marked.at);
            start = marked.at;
            mark += 1;
            match marked.kind {
                MarkKind::Class(class) => to = self.put_class(payload, numbers, to, class),
                MarkKind::Serialized(number) => numbers.serialized(number, &self.serialized[number]),
                MarkKind::Struct(number) => {
                    let class = &self.structs[number];
                    // It may have been moved since.
                    let moved = start.wrapping_sub(class.start.at);
                    let moved_mark = mark.wrapping_sub(class.start.mark);
                    for span in &self.spans[class.fields.clone()] {
                        let first = (span.start as usize).wrapping_add(moved);
                        let last = (span.end as usize).wrapping_add(moved);
                        if span.first_mark == span.end_mark {
                            to = put_bytes(payload, to, bytes, first, last);
                            continue;
                        }
                        let first_mark = (span.first_mark as usize).wrapping_add(moved_mark);
                        let end_mark = (span.end_mark as usize).wrapping_add(moved_mark);
                        to = self.put(payload, numbers, to, (first, last), (first_mark, end_mark));
                    }
                    start += class.end.at - class.start.at;
                    mark += class.end.mark - class.start.mark;
                }
            }
        }
        put_bytes(payload, to, bytes, start, end)
    }

    /// The number of each class is its place among those that were named.
    #[inline]
    fn put_class(&self, payload: &mut [u8], numbers: &mut Numbers, mut to: usize, class: usize) -> usize {
        let known = numbers.of[class];
        let mut number = known.unwrap_or(numbers.next);
        while number >= 0x80 {
            payload[to] = number as u8 | 0x80;
            to += 1;
            number >>= 7;
        }
        payload[to] = number as u8;
        to += 1;
        if known.is_none() {
            numbers.of[class] = Some(numbers.next);
            numbers.next += 1;
            let name = self.name(class);
            to = put_bytes(payload, to, &name.bytes, 0, name.length);
        }
        to
    }
}

#[cold]
fn misplaced(place: &Place) -> Failure {
    let class = shown(&place.class);
    Failure::new(match place.follows {
        None => {
            format!("a second object of the class `{class}` that Java's own serialization wrote elsewhere")
        }
        Some(_) => {
            format!("an object of the class `{class}` that refers to another one, which is not before it")
        }
    })
}

/// Copies some bytes, behind which there are some more, mostly a few.
#[inline]
pub(super) fn put_bytes(payload: &mut [u8], to: usize, from: &[u8], start: usize, end: usize) -> usize {
    let length = end.wrapping_sub(start);
    // A fixed length needs no call of `memcpy`.
    if length <= CHUNK
        && let Some(from) = from.get(start..start.wrapping_add(CHUNK))
        && let Some(payload) = payload.get_mut(to..to.wrapping_add(CHUNK))
    {
        payload.copy_from_slice(from);
    } else {
        payload[to..to + length].copy_from_slice(&from[start..end]);
    }
    to + length
}
