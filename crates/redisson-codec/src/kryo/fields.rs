//! Objects of Java's library that are a few fields: `AtomicInteger`, `Pattern`, `java.sql.Timestamp`.

use super::input::{Fault, Input, Outcome};
use super::output::Output;
use super::values;
use crate::java::class::Field;
use crate::java::{Array, Date, Object, Value};

type Fields = &'static [(&'static str, Field)];

/// An object of this class.
pub(super) fn read(input: &mut Input<'_>, class: &'static str, fields: Fields) -> Outcome<Value> {
    let mut read = Vec::with_capacity(fields.len());
    for (name, field) in fields {
        read.push(((*name).to_owned(), read_field(input, *field)?));
    }
    Ok(Value::Object(Box::new(Object { class: class.into(), fields: read })))
}

fn read_field(input: &mut Input<'_>, field: Field) -> Outcome<Value> {
    Ok(match field {
        Field::Boolean => Value::Boolean(input.boolean()?),
        Field::Int => Value::Integer(i32::from_le_bytes(input.array()?)),
        Field::Short => Value::Integer(input.varint()? as i32),
        Field::Long => Value::Long(i64::from_le_bytes(input.array()?)),
        Field::ShortLong => Value::Long(input.long()?),
        Field::Double => Value::Double(f64::from_le_bytes(input.array()?)),
        Field::Text => Value::String(input.some_text()?.into_owned()),
        Field::Date => Value::Date(Date::from_millis(input.varlong()? as i64)),
        Field::Longs => {
            let count = input.varint()? as usize;
            let bytes = input.take(count.saturating_mul(8))?;
            let (longs, _) = bytes.as_chunks();
            let elements = longs.iter().map(|long| Value::Long(i64::from_le_bytes(*long))).collect();
            Value::Array(Box::new(Array { class: "[J".into(), elements }))
        }
        Field::Any => values::read_any(input)?,
        Field::Maybe(field) => match input.boolean()? {
            true => read_field(input, *field)?,
            false => Value::Null,
        },
    })
}

/// Writes an object that has these fields.
pub(super) fn write(output: &mut Output, object: &Object, fields: Fields) -> Outcome<()> {
    let names = object.fields.iter().map(|(name, _)| &name[..]);
    if !names.eq(fields.iter().map(|(name, _)| *name)) {
        let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
        return Err(Fault::new(format!("the fields of a `{}` are {}", object.class, names.join(", "))));
    }
    for ((name, value), (_, field)) in object.fields.iter().zip(fields) {
        if !write_field(output, value, *field)? {
            return Err(Fault::new(format!("a `{}` is no `{name}` of a `{}`", value.class(), object.class)));
        }
    }
    Ok(())
}

/// Whether the value is one for this field.
fn write_field(output: &mut Output, value: &Value, field: Field) -> Outcome<bool> {
    match (field, value) {
        (Field::Boolean, Value::Boolean(value)) => output.byte((*value).into()),
        (Field::Int, Value::Integer(value)) => output.raw(&value.to_le_bytes()),
        (Field::Short, Value::Integer(value)) => output.varint(*value as u32),
        (Field::Long, Value::Long(value)) => output.raw(&value.to_le_bytes()),
        (Field::ShortLong, Value::Long(value)) => output.long(*value),
        (Field::Double, Value::Double(value)) => output.raw(&value.to_le_bytes()),
        (Field::Text, Value::String(value)) => output.text(value),
        (Field::Date, Value::Date(value)) => output.varlong(value.millis() as u64),
        (Field::Longs, Value::Array(array)) => {
            // A length is one more than the elements, but not here.
            output.varint(Output::length(array.elements.len())? - 1);
            for element in &array.elements {
                let Value::Long(long) = element else { return Ok(false) };
                output.raw(&long.to_le_bytes());
            }
        }
        (Field::Any, value) => values::write(output, value)?,
        (Field::Maybe(_), Value::Null) => output.byte(0),
        (Field::Maybe(field), value) => {
            output.byte(1);
            return write_field(output, value, *field);
        }
        _ => return Ok(false),
    }
    Ok(true)
}
