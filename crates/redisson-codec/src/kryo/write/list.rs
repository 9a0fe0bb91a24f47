//! The elements of a list or array.

use serde::ser::{Serialize, SerializeSeq};

use super::super::output::{Output, Spot, WrittenClass};
use super::ValueWriter;
use super::byte::ByteWriter;
use super::map::length_of;
use super::plan::{Content, ElementForm, ListPlan, Plan, Site};
use crate::java::known_classes::Layout;
use crate::java::path::Step;
use crate::kryo::failure::{Failure, Outcome};

/// The elements of a list or array.
pub(in super::super) struct ListWriter<'w> {
    output: &'w mut Output,
    plan: &'static Plan,
    list: &'static ListPlan,
    element: &'static Site,
    start: Spot,
    /// The first of this list in [`Output::starts`].
    base: usize,
    count: usize,
    announced: usize,
    nulls: usize,
    /// The class of the first constant of an `EnumSet`, if that is not the class of an empty one.
    constant: Option<WrittenClass>,
}

impl<'w> ListWriter<'w> {
    pub(super) fn new(
        output: &'w mut Output,
        plan: &'static Plan,
        list: &'static ListPlan,
        length: Option<usize>,
    ) -> Outcome<Self> {
        let element = plan.site(list.element);
        let (start, base) = (output.here(), output.starts.len());
        // Mostly serde knows the length, and it is right.
        let announced = length.unwrap_or(0);
        let mut writer = ListWriter {
            output,
            plan,
            list,
            element,
            start,
            base,
            count: 0,
            announced,
            nulls: 0,
            constant: None,
        };
        writer.header(announced, false)?;
        Ok(writer)
    }

    /// Writes the header for this many elements, some of which may be null.
    fn header(&mut self, count: usize, nulls: bool) -> Outcome<()> {
        let length = Output::length(count)?;
        match self.list.each {
            ElementForm::Byte | ElementForm::Array => self.output.varint(length),
            ElementForm::Constant(class) => {
                self.output.written(self.constant.unwrap_or(class));
                self.output.varint(length - 1);
            }
            ElementForm::Declared if self.list.layout == Layout::Immutable => self.output.varint(length),
            ElementForm::Declared => {
                self.output.flagged(nulls, length);
                self.comparator();
            }
            ElementForm::Same => {
                self.output.flagged(count > 0, length);
                self.comparator();
                if count > 0 {
                    self.output.written(self.element.class);
                    self.nullable(nulls);
                }
            }
            ElementForm::Any => {
                self.output.flagged(false, length);
                self.comparator();
            }
        }
        Ok(())
    }

    /// Whether there are nulls among the elements, where there may be.
    #[inline]
    fn nullable(&mut self, nulls: bool) {
        if self.list.layout != Layout::Immutable {
            self.output.byte(nulls.into());
        }
    }

    /// In natural order there is none.
    #[inline]
    fn comparator(&mut self) {
        if self.list.layout == Layout::Sorted {
            self.output.byte(0);
        }
    }

    /// Writes the elements again, behind the correct header.
    fn again(&mut self) -> Outcome<()> {
        let same = self.one_class();
        let end = self.output.here();
        let old = self.output.cut(self.start);
        // Whether the class of each is in the prefix, and is not to be repeated.
        let (null, once) = match (self.list.each, same) {
            (ElementForm::Any, Same::One(same)) => {
                self.same_header(Some(same))?;
                let null = self.plan.null_of(self.element, same, self.output.class_name(same));
                (null, Some(same))
            }
            (ElementForm::Any | ElementForm::Same, Same::Null) => {
                self.same_header(None)?;
                self.output.reuse(old);
                return Ok(());
            }
            _ => {
                self.header(self.count, self.nulls > 0)?;
                (self.list.null, None)
            }
        };
        let marked = self.nulls > 0
            && (once.is_some() || matches!(self.list.each, ElementForm::Declared | ElementForm::Same));
        let output = &mut *self.output;
        for at in self.base..output.starts.len() {
            let start = output.starts[at];
            let end = output.starts.get(at + 1).copied().unwrap_or(end);
            // A null is one byte where there is a class, and none elsewhere.
            let is_null = match once {
                Some(_) => old.byte(start.at) == 0,
                None => start == end,
            };
            match null {
                _ if !marked => {}
                null if is_null => output.byte(null.unwrap_or(0)),
                None => output.byte(1),
                Some(_) => {}
            }
            if !is_null {
                output.copy(&old, once.map_or(start, |class| start.behind(class)), end);
            }
        }
        output.reuse(old);
        Ok(())
    }

    /// What the classes of the elements are, apart from nulls.
    fn one_class(&self) -> Same {
        if self.nulls == self.count {
            return Same::Null;
        }
        let ElementForm::Any = self.list.each else { return Same::No };
        let output = &self.output;
        let mut classes = output.starts[self.base..].iter().filter_map(|start| output.class_at(*start));
        match classes.next() {
            Some(first) if classes.all(|class| class == first) => Same::One(first),
            _ => Same::No,
        }
    }

    /// The prefix of elements that turned out to be of one class, or all null.
    fn same_header(&mut self, same: Option<WrittenClass>) -> Outcome<()> {
        self.output.flagged(self.count > 0, Output::length(self.count)?);
        self.comparator();
        match same {
            None if self.count > 0 => self.output.byte(0),
            None => {}
            Some(same) => {
                self.output.written(same);
                self.nullable(self.nulls > 0);
            }
        }
        Ok(())
    }
}

enum Same {
    No,
    /// All are null, or there are none.
    Null,
    One(WrittenClass),
}

/// The number that these bytes begin with.
fn varint(bytes: &[u8]) -> usize {
    let last = bytes.iter().position(|byte| *byte < 0x80).unwrap_or_default();
    bytes[..=last].iter().rev().fold(0, |number, byte| number << 7 | usize::from(byte & 0x7f))
}

impl SerializeSeq for ListWriter<'_> {
    type Ok = ();
    type Error = Failure;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Outcome<()> {
        self.count += 1;
        if self.list.each == ElementForm::Byte {
            return value.serialize(ByteWriter(self.output));
        }
        let start = self.output.here();
        self.output.starts.push(start);
        let at = Step::Element(self.count - 1);
        value
            .serialize(ValueWriter { output: self.output, plan: self.plan, site: self.element })
            .map_err(|failure| failure.within(at))?;
        if let (1, ElementForm::Constant(class), Content::Enum(constants)) =
            (self.count, self.list.each, &self.element.content)
        {
            let ordinal = varint(&self.output.bytes[start.at..]).wrapping_sub(1);
            self.constant = constants.bodies.get(ordinal).copied().filter(|body| *body != class);
        }
        self.nulls += usize::from(match self.list.each {
            ElementForm::Declared | ElementForm::Same => std::mem::take(&mut self.output.null_element),
            ElementForm::Any => self.output.bytes.get(start.at) == Some(&0),
            _ => false,
        });
        Ok(())
    }

    fn end(mut self) -> Outcome<()> {
        if self.nulls > 0 && self.list.layout == Layout::Immutable {
            return Err(Failure::new("a null in a list or set that holds none"));
        }
        let right = self.count == self.announced
            && match self.list.each {
                // The header says that the classes of the elements differ.
                ElementForm::Any => self.count == 0 || matches!(self.one_class(), Same::No),
                _ => self.nulls == 0 && self.constant.is_none(),
            };
        if !right {
            if self.list.each == ElementForm::Byte {
                // All at once.
                self.output.starts.push(self.start.skip(length_of(self.announced)?));
            }
            self.again()?;
        }
        self.output.starts.truncate(self.base);
        self.output.shallower();
        Ok(())
    }
}
