//! Objects: the properties of a struct, sorted, without those that are null.

use std::ops::Range;

use serde::ser::{self, Serialize};

use super::plan::{FieldPlan, StructPlan};
use super::{ValueWriter, Written};
use crate::jackson::failure::{Failure, Outcome};
use crate::jackson::format::{Format, Group, OpenGroup};

/// Of a property that is not there.
const ABSENT: Range<usize> = 0..0;

/// So much is copied at once where less is to be copied.
const CHUNK: usize = 64;

/// Writes again what is in a payload. A fixed length needs no call of `memmove`.
#[inline]
fn copy(out: &mut Vec<u8>, span: Range<usize>) {
    let end = out.len() + span.len();
    match out.get(span.start..).and_then(|from| from.first_chunk::<CHUNK>()) {
        Some(&chunk) if span.len() <= CHUNK => {
            out.extend_from_slice(&chunk);
            out.truncate(end);
        }
        _ => out.extend_from_within(span),
    }
}

/// The properties of an object: written in Rust's order, and put into Java's at the end.
pub(in crate::jackson) struct ObjectWriter<'w, F> {
    place: ValueWriter<'w, F>,
    class: &'static StructPlan,
    open: OpenGroup,
    /// Where the first property is, behind the class.
    start: usize,
    /// In [`Output::spans`](super::Output), the first of this object's.
    first: usize,
    /// The field that most likely is the next one.
    next: usize,
    /// The properties so far are in Java's order, and the next one is from here on.
    least: usize,
    in_order: bool,
    /// How many properties there are so far, if they are in order.
    count: usize,
    /// How many properties are in the field of all other names, apart from one.
    others: usize,
    /// Those that are among the fields.
    rest: Vec<(String, Range<usize>)>,
}

/// An object that says its class outside is in another one, or in a list.
#[inline]
pub(super) fn levels<F>(place: &ValueWriter<'_, F>) -> usize {
    1 + usize::from(place.site.around.is_some())
}

impl<'w, F: Format> ObjectWriter<'w, F> {
    // So that it is made where it is to stay.
    #[inline(always)]
    pub(super) fn new(place: ValueWriter<'w, F>, class: usize) -> Outcome<Self> {
        let class = place.plan.class(class);
        place.output.deeper(levels(&place))?;
        let out = &mut place.output.bytes;
        if let Some(around) = &place.site.around {
            out.extend_from_slice(&around.before);
        }
        let name = place.site.class.as_ref();
        let open = F::open(out, Group::Object, class.fields.len() + usize::from(name.is_some()));
        if let Some(name) = name {
            name.put(out);
        }
        let start = out.len();
        let spans = &mut place.output.spans;
        let first = spans.len();
        spans.resize(first + class.fields.len(), ABSENT);
        Ok(Self {
            place,
            class,
            open,
            start,
            first,
            next: 0,
            least: 0,
            in_order: true,
            count: 0,
            others: 0,
            rest: Vec::new(),
        })
    }

    #[inline]
    fn find(&mut self, name: &str) -> Option<&'static FieldPlan> {
        let fields = &self.class.fields;
        let at = match fields.get(self.next) {
            // Mostly it is the very same text.
            Some(field) if std::ptr::eq(field.name, name) || field.name == name => self.next,
            _ => fields.iter().position(|field| field.name == name)?,
        };
        self.next = at + 1;
        fields.get(at)
    }

    /// What is wrong with the value of a field, and where.
    #[cold]
    fn of_field(&self, mut failure: Failure, field: &FieldPlan) -> Failure {
        failure.path().step_of(self.class.class, field.name);
        failure
    }

    /// Puts the properties that the struct does not know to where Java has them, which sorts all by name.
    #[cold]
    fn merge(&mut self) {
        let (fields, spans) = (&self.class.fields, &mut self.place.output.spans);
        let mut rest = std::mem::take(&mut self.rest);
        let is_before = |one: &str, other: &str| one.encode_utf16().lt(other.encode_utf16());
        rest.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
        let mut rest = rest.into_iter().peekable();
        let known: Vec<_> = spans.drain(self.first..).collect();
        for (place, span) in known.into_iter().enumerate() {
            let name = fields.iter().find(|field| field.place == place).map_or("", |field| field.name);
            while let Some((_, other)) =
                rest.next_if(|(other, _)| place >= self.class.pinned && is_before(other, name))
            {
                spans.push(other);
            }
            spans.push(span);
        }
        spans.extend(rest.map(|(_, other)| other));
    }
}

impl<F: Format> ser::SerializeStruct for ObjectWriter<'_, F> {
    type Ok = Written;
    type Error = Failure;

    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Outcome<()> {
        let Some(field) = self.find(name) else {
            return Err(Failure::new(format!("the type writes the field `{name}`, and does not read it")));
        };
        let start = self.place.output.bytes.len();
        field.key.put(&mut self.place.output.bytes);
        let written =
            value.serialize(self.place.inner(field.site)).map_err(|failure| self.of_field(failure, field))?;
        let output = &mut *self.place.output;
        let span = match written {
            Written::Value => start..output.bytes.len(),
            Written::Null if field.nulls => start..output.bytes.len(),
            Written::Properties(_) if !output.rest.is_empty() => {
                self.rest = std::mem::take(&mut output.rest);
                self.in_order = false;
                ABSENT
            }
            Written::Properties(count @ 1..) => {
                self.others = count - 1;
                start..output.bytes.len()
            }
            Written::Null | Written::Properties(_) => {
                output.bytes.truncate(start);
                ABSENT
            }
        };
        // One that comes again, and so is not in order, takes the place of the first.
        self.in_order &= field.place >= self.least;
        self.least = field.place + 1;
        self.count += usize::from(span != ABSENT);
        output.spans[self.first + field.place] = span;
        Ok(())
    }

    #[inline]
    fn end(mut self) -> Outcome<Written> {
        let levels = levels(&self.place);
        if !self.rest.is_empty() {
            self.merge();
        }
        let output = self.place.output;
        let out = &mut output.bytes;
        if !self.in_order {
            self.count = 0;
            let end = out.len();
            for span in &output.spans[self.first..] {
                self.count += usize::from(*span != ABSENT);
                copy(out, span.clone());
            }
            out.copy_within(end.., self.start);
            out.truncate(self.start + (out.len() - end));
        }
        output.spans.truncate(self.first);
        let count = self.count + self.others + usize::from(self.place.site.class.is_some());
        F::close(out, self.open, count);
        if let Some(around) = &self.place.site.around {
            out.extend_from_slice(&around.behind);
        }
        output.shallower(levels);
        Ok(Written::Value)
    }
}
