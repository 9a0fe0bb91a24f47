//! The entries of a map.

use serde::ser::{Serialize, SerializeMap};

use super::super::output::{Output, Spot};
use super::ValueWriter;
use super::plan::{MapPlan, Plan, Site};
use crate::java::path::Step;
use crate::kryo::failure::{Failure, Outcome};

/// How many bytes a length takes.
pub(super) fn length_of(count: usize) -> Outcome<usize> {
    let mut output = Output::default();
    output.varint(Output::length(count)?);
    Ok(output.bytes.len())
}

fn header(output: &mut Output, count: usize, sorted: bool) -> Outcome<()> {
    output.varint(Output::length(count)?);
    if sorted {
        output.byte(0);
    }
    Ok(())
}

/// The entries of a map.
pub(in super::super) struct MapWriter<'w> {
    output: &'w mut Output,
    plan: &'static Plan,
    key: &'static Site,
    value: &'static Site,
    sorted: bool,
    start: Spot,
    count: usize,
    announced: usize,
}

impl<'w> MapWriter<'w> {
    pub(super) fn new(
        output: &'w mut Output,
        plan: &'static Plan,
        map: &'static MapPlan,
        length: Option<usize>,
    ) -> Outcome<Self> {
        let (key, value, sorted) = (plan.site(map.key), plan.site(map.value), map.sorted);
        let (start, announced) = (output.here(), length.unwrap_or(0));
        header(output, announced, sorted)?;
        Ok(MapWriter { output, plan, key, value, sorted, start, count: 0, announced })
    }
}

impl SerializeMap for MapWriter<'_> {
    type Ok = ();
    type Error = Failure;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Outcome<()> {
        self.count += 1;
        let at = Step::Key(self.count - 1);
        key.serialize(ValueWriter { output: self.output, plan: self.plan, site: self.key })
            .map_err(|failure| failure.within(at))
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Outcome<()> {
        let at = Step::Element(self.count - 1);
        value
            .serialize(ValueWriter { output: self.output, plan: self.plan, site: self.value })
            .map_err(|failure| failure.within(at))
    }

    fn end(self) -> Outcome<()> {
        let output = self.output;
        if self.count != self.announced {
            let from = self.start.skip(length_of(self.announced)? + usize::from(self.sorted));
            let end = output.here();
            let old = output.cut(self.start);
            header(output, self.count, self.sorted)?;
            output.copy(&old, from, end);
            output.reuse(old);
        }
        output.shallower();
        Ok(())
    }
}
