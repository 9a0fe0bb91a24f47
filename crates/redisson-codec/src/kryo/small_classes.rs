//! Objects of Java's library that are a few fields: `AtomicInteger`, `Pattern`, `java.sql.Timestamp`.

use super::input::Input;
use super::output::Output;
use super::value;
use crate::java::known_classes::{ClassKind, FieldKind, known};
use crate::java::{Array, Date, Object, Value};
use crate::kryo::failure::{Failure, Outcome};
use crate::memory;
use crate::shown::shown;

type LibraryFields = &'static [(&'static str, FieldKind)];

/// An object of this class.
pub(super) fn read(input: &mut Input<'_>, class: &'static str, fields: LibraryFields) -> Outcome<Value> {
    memory::take(fields.len() * (size_of::<(String, Value)>() + memory::SHORT))?;
    let mut read = Vec::with_capacity(fields.len());
    for (name, field) in fields {
        read.push(((*name).to_owned(), read_field(input, *field)?));
    }
    Ok(Value::Object(Box::new(Object { class: class.into(), fields: read })))
}

fn read_field(input: &mut Input<'_>, field: FieldKind) -> Outcome<Value> {
    Ok(match field {
        FieldKind::Boolean => Value::Boolean(input.boolean()?),
        FieldKind::Int => Value::Integer(i32::from_le_bytes(input.array()?)),
        FieldKind::Short => Value::Integer(input.varint()? as i32),
        FieldKind::Long => Value::Long(i64::from_le_bytes(input.array()?)),
        FieldKind::ShortLong => Value::Long(input.long()?),
        FieldKind::Double => Value::Double(f64::from_le_bytes(input.array()?)),
        FieldKind::Text => {
            let text = input.some_text()?;
            memory::take(text.len())?;
            Value::String(text.into_owned())
        }
        FieldKind::Date => Value::Date(Date::from_millis(input.varlong()? as i64)),
        FieldKind::Longs => {
            let count = input.varint()? as usize;
            let bytes = input.take(count.saturating_mul(8))?;
            memory::take(count * size_of::<Value>() + size_of::<Array>())?;
            let (longs, _) = bytes.as_chunks();
            let elements = longs.iter().map(|long| Value::Long(i64::from_le_bytes(*long))).collect();
            Value::Array(Box::new(Array { class: "[J".into(), elements }))
        }
        FieldKind::Any => value::read_any(input)?,
        FieldKind::Maybe(field) => match input.boolean()? {
            true => read_field(input, *field)?,
            false => Value::Null,
        },
    })
}

/// Writes an object of a class whose fields are known.
pub(super) fn write_object(output: &mut Output, object: &Object) -> Outcome<()> {
    match known(&object.class).map(|class| class.kind) {
        Some(ClassKind::Fields(fields)) => write(output, object, fields),
        _ => Err(Failure::new(format!(
            "the fields of the class `{}` are not known: write it as a struct of this name",
            shown(&object.class)
        ))),
    }
}

/// Writes an object that has these fields.
fn write(output: &mut Output, object: &Object, fields: LibraryFields) -> Outcome<()> {
    let names = object.fields.iter().map(|(name, _)| &name[..]);
    if !names.eq(fields.iter().map(|(name, _)| *name)) {
        let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
        return Err(Failure::new(format!(
            "the fields of a `{}` are {}",
            shown(&object.class),
            names.join(", ")
        )));
    }
    for ((name, value), (_, field)) in object.fields.iter().zip(fields) {
        if !write_field(output, value, *field)? {
            return Err(Failure::new(format!(
                "a `{}` is no `{name}` of a `{}`",
                value.class(),
                object.class
            )));
        }
    }
    Ok(())
}

/// Whether the value is one for this field.
fn write_field(output: &mut Output, value: &Value, field: FieldKind) -> Outcome<bool> {
    match (field, value) {
        (FieldKind::Boolean, Value::Boolean(value)) => output.byte((*value).into()),
        (FieldKind::Int, Value::Integer(value)) => output.raw(&value.to_le_bytes()),
        (FieldKind::Short, Value::Integer(value)) => output.varint(*value as u32),
        (FieldKind::Long, Value::Long(value)) => output.raw(&value.to_le_bytes()),
        (FieldKind::ShortLong, Value::Long(value)) => output.long(*value),
        (FieldKind::Double, Value::Double(value)) => output.raw(&value.to_le_bytes()),
        (FieldKind::Text, Value::String(value)) => output.text(value),
        (FieldKind::Date, Value::Date(value)) => output.varlong(value.millis() as u64),
        (FieldKind::Longs, Value::Array(array)) => {
            // A length is one more than the elements, but not here.
            output.varint(Output::length(array.elements.len())? - 1);
            for element in &array.elements {
                let Value::Long(long) = element else { return Ok(false) };
                output.raw(&long.to_le_bytes());
            }
        }
        (FieldKind::Any, value) => value::write(output, value)?,
        (FieldKind::Maybe(_), Value::Null) => output.byte(0),
        (FieldKind::Maybe(field), value) => {
            output.byte(1);
            return write_field(output, value, *field);
        }
        _ => return Ok(false),
    }
    Ok(true)
}
