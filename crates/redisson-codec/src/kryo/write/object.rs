//! The fields of a struct.

use serde::ser::{Serialize, SerializeStruct};

use super::super::output::{OpenStruct, Output};
use super::plan::{FieldPlan, Plan, StructPlan};
use super::rest;
use super::{ValueWriter, changed};
use crate::kryo::failure::{Failure, Outcome};

/// The fields of a struct: written in Rust's order, and put into Java's at the end.
pub(in super::super) struct ObjectWriter<'w> {
    output: &'w mut Output,
    plan: &'static Plan,
    class: &'static StructPlan,
    open: OpenStruct,
    /// The field that is expected next.
    next: usize,
    /// So far, each came at its place in Rust's order.
    in_order: bool,
}

impl<'w> ObjectWriter<'w> {
    #[inline]
    pub(super) fn new(output: &'w mut Output, plan: &'static Plan, class: usize) -> Self {
        let class = plan.class(class);
        let open = output.open(class.fields.len());
        ObjectWriter { output, plan, class, open, next: 0, in_order: true }
    }

    /// The field, which does not look like the expected one.
    fn other(&mut self, key: &str) -> Outcome<&'static FieldPlan> {
        let fields = &self.class.fields;
        // Mostly it is, only that its name has another address.
        if let Some(field) = fields.get(self.next).filter(|field| field.name == key) {
            self.next += 1;
            return Ok(field);
        }
        self.in_order = false;
        let at = fields.iter().position(|field| field.name == key).ok_or_else(changed)?;
        self.next = at + 1;
        Ok(&fields[at])
    }

    #[inline]
    fn write<T: Serialize + ?Sized>(&mut self, field: &'static FieldPlan, value: &T) -> Outcome<()> {
        let start = self.output.here();
        value
            .serialize(ValueWriter { output: self.output, plan: self.plan, site: field.site })
            .map_err(|failure| self.of_field(failure, field))?;
        self.output.field(self.open, field.place, start);
        Ok(())
    }

    /// What is wrong with the value of a field, and where.
    #[cold]
    fn of_field(&self, mut failure: Failure, field: &FieldPlan) -> Failure {
        failure.path().step_of(self.class.class, field.name);
        failure
    }

    /// Those that were skipped, because there is nothing to write.
    #[cold]
    fn absent(&mut self) -> Outcome<()> {
        for field in &self.class.fields {
            if self.output.is_absent(self.open, field.place) {
                self.in_order = false;
                self.write(field, &None::<()>)?;
            }
        }
        Ok(())
    }
}

impl SerializeStruct for ObjectWriter<'_> {
    type Ok = ();
    type Error = Failure;

    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Outcome<()> {
        let field = match self.class.fields.get(self.next) {
            // Mostly it is the very same text.
            Some(field) if std::ptr::eq(field.name, key) => {
                self.next += 1;
                field
            }
            _ if self.class.rest == Some(key) => return value.serialize(rest::OnlyEmpty(key)),
            _ => self.other(key)?,
        };
        self.write(field, value)
    }

    #[inline]
    fn end(mut self) -> Outcome<()> {
        if !self.in_order || self.next < self.class.fields.len() {
            self.absent()?;
        }
        if !self.in_order || !self.class.is_sorted {
            self.output.close(self.open, self.class.fields.len())?;
        }
        self.output.shallower();
        Ok(())
    }
}
