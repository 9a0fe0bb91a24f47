//! Objects: the properties of a struct, sorted, without those that are null.

use serde::ser::{self, Serialize};

use super::{Done, Place, Writer, class_entry};
use crate::codec::jackson::failure::Failure;
use crate::codec::jackson::node::{Is, Key};
use crate::codec::java::shape::Form;

pub(super) struct Fields {
    pub(super) writer: Writer,
    pub(super) open: bool,
    pub(super) at: usize,
    /// The field that most likely is the next one.
    pub(super) next: usize,
    pub(super) fields: Vec<Option<Done>>,
}

impl ser::SerializeStruct for Fields {
    type Ok = Done;
    type Error = Failure;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Failure> {
        let fields = &self.writer.shape.structs[self.at].fields;
        let expected = fields.get(self.next).filter(|field| field.name == name).map(|_| self.next);
        let Some(at) = expected.or_else(|| fields.iter().position(|field| field.name == name)) else {
            return Err(Failure::new(format!("the type writes the field `{name}`, and does not read it")));
        };
        self.next = at + 1;
        let field = value.serialize(Writer { id: fields[at].node, place: Place::Field, ..self.writer })?;
        self.fields[at] = Some(field);
        Ok(())
    }

    fn end(mut self) -> Result<Done, Failure> {
        let shape = &self.writer.shape.structs[self.at];
        let mut entries = Vec::with_capacity(shape.fields.len() + 1);
        if self.open || shape.form == Form::Plain {
            entries.push(class_entry(&shape.class));
        }
        for &at in &shape.sorted {
            if let Some(value) = self.fields[at].take()
                && value.is != Is::Null
            {
                entries.push((Key::Text(shape.fields[at].name.into()), value));
            }
        }
        Ok(Is::Object(entries).into())
    }
}
