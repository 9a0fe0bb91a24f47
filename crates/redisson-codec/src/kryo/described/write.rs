//! A value of a described class to its bytes.

use super::plan::{ObjectPlan, Plan};
use super::{Described, Generic, numbered};
use crate::java::known_classes::{ClassKind as Library, Layout as LibraryLayout, known};
use crate::java::{Collection, Map, Object, Value};
use crate::kryo::failure::{Failure, Outcome};
use crate::kryo::numbered::Numbered;
use crate::kryo::output::Output;
use crate::kryo::value;
use crate::shown::shown;

/// A value of a class of an application, whose class is written. Whether it is described.
pub(in crate::kryo) fn value(output: &mut Output, value: &Value) -> Outcome<bool> {
    own(output, value, &[])
}

/// An element of an array of this class, which is not one of Java's library, or null.
pub(in crate::kryo) fn element(output: &mut Output, class: &str, value: &Value) -> Outcome<()> {
    nullable(output, class, value, &[])
}

fn described(output: &mut Output) -> Outcome<&mut Described> {
    output.described.as_deref_mut().ok_or_else(|| Failure::new("no class is described"))
}

fn other(class: &str, value: &Value) -> Failure {
    Failure::new(format!("a `{}` where `{}` is declared", shown(value.class()), shown(class)))
}

fn own(output: &mut Output, value: &Value, arguments: &[Generic]) -> Outcome<bool> {
    let Some(described) = output.described.as_deref() else { return Ok(false) };
    let Some(plan) = described.plans.of(value.class()).map_err(Failure::new)? else { return Ok(false) };
    match (&*plan, value) {
        (Plan::Object(plan), Value::Object(object)) => fields(output, plan, object, arguments)?,
        (Plan::Enum(names), Value::Enum(value)) => {
            value::write_constant(output, &value.class, Some(names), &value.constant)?;
        }
        (Plan::Collection(layout), Value::Collection(value)) => {
            collection(output, value, *layout, arguments)?
        }
        (Plan::Map(layout), Value::Map(value)) => map(output, value, *layout, arguments)?,
        _ => return Err(Failure::new(format!("a value that `{}` is not", shown(value.class())))),
    }
    Ok(true)
}

fn fields(output: &mut Output, class: &ObjectPlan, object: &Object, arguments: &[Generic]) -> Outcome<()> {
    let before = described(output)?.bind(class, arguments);
    let declared = &class.fields;
    let in_order = declared.len() == object.fields.len()
        && declared.iter().zip(&object.fields).all(|(declared, (name, _))| declared.name == *name);
    let is_unknown = |name: &str| !declared.iter().any(|declared| declared.name == name);
    if !in_order && let Some((name, _)) = object.fields.iter().find(|(name, _)| is_unknown(name)) {
        return Err(Failure::new(format!("`{}` has no field `{}`", shown(&object.class), shown(name))));
    }
    for (at, field) in declared.iter().enumerate() {
        let value = match in_order {
            true => Some(&object.fields[at].1),
            false => object.fields.iter().find(|(found, _)| *found == field.name).map(|(_, value)| value),
        };
        place(output, &field.kind, value.unwrap_or(&Value::Null), field.arguments())?;
    }
    described(output)?.unbind(before);
    Ok(())
}

fn place(output: &mut Output, declared: &Generic, value: &Value, arguments: &[Generic]) -> Outcome<()> {
    if let Generic::Primitive(number) = declared {
        return match value.class() == number.name() {
            true => value::write_content(output, value),
            false => Err(other(number.name(), value)),
        };
    }
    if let Generic::Numbered(number) = declared
        && value.class() == number.name()
    {
        // A text says itself whether it is null.
        if *number != Numbered::String {
            output.byte(1);
        }
        return value::write_content(output, value);
    }
    match described(output)?.final_class(declared)? {
        Some(class) => nullable(output, &class, value, arguments),
        None => any(output, value, arguments),
    }
}

/// A value with its class in front.
fn any(output: &mut Output, value: &Value, arguments: &[Generic]) -> Outcome<()> {
    match value {
        _ if arguments.is_empty() => value::write(output, value),
        Value::Null => value::write(output, value),
        Value::Bare(value) => any(output, value, arguments),
        value => {
            value::write_class(output, value);
            of_class(output, value, arguments)
        }
    }
}

/// A value whose class is not written, or null.
fn nullable(output: &mut Output, class: &str, value: &Value, arguments: &[Generic]) -> Outcome<()> {
    let null = match value::null_of(class) {
        None => described(output)?.null_of(class),
        null => null,
    };
    if *value == Value::Null {
        output.byte(null.unwrap_or(0));
        return Ok(());
    }
    if null.is_none() {
        output.byte(1);
    }
    content(output, class, value, arguments)
}

/// A value that must be of this class.
fn content(output: &mut Output, class: &str, value: &Value, arguments: &[Generic]) -> Outcome<()> {
    match value.class() == class {
        true => of_class(output, value, arguments),
        false => Err(other(class, value)),
    }
}

/// A value whose class is written, or need not be.
fn of_class(output: &mut Output, value: &Value, arguments: &[Generic]) -> Outcome<()> {
    let class = value.class();
    if arguments.is_empty() || numbered(class).is_some() {
        return value::write_content(output, value);
    }
    output.deeper()?;
    match (value, known(class).map(|known| known.kind)) {
        (Value::Collection(value), Some(Library::Collection(layout))) => {
            collection(output, value, layout, arguments)?;
        }
        (Value::Map(value), Some(Library::Map(layout))) => map(output, value, layout, arguments)?,
        (_, Some(_)) => value::write_named(output, value)?,
        (value, None) => {
            if !own(output, value, arguments)? {
                value::write_named(output, value)?;
            }
        }
    }
    output.shallower();
    Ok(())
}

fn collection(
    output: &mut Output,
    collection: &Collection,
    layout: LibraryLayout,
    arguments: &[Generic],
) -> Outcome<()> {
    let (Some(element), Some(inner), LibraryLayout::Plain | LibraryLayout::Sorted | LibraryLayout::Immutable) =
        (arguments.first(), arguments.last(), layout)
    else {
        return value::write_collection(output, collection, layout);
    };
    let known = described(output)?.final_class(element)?;
    let inner = inner.arguments();
    let elements = &collection.elements;
    let length = Output::length(elements.len())?;
    let has_nulls = elements.contains(&Value::Null);
    let mut present = elements.iter().filter(|element| **element != Value::Null);
    let first = present.next();
    let same = first.is_none_or(|first| present.all(|element| element.class() == first.class()));
    if layout == LibraryLayout::Immutable && has_nulls {
        return Err(Failure::new(format!("a `{}` holds no nulls", shown(&collection.class))));
    }
    match &known {
        Some(_) if layout == LibraryLayout::Immutable => output.varint(length),
        Some(_) => output.flagged(has_nulls, length),
        None => output.flagged(same && !elements.is_empty(), length),
    }
    if layout == LibraryLayout::Sorted {
        value::write_comparator(output, &collection.comparator)?;
    }
    let each = |output: &mut Output, class: &str| {
        elements.iter().try_for_each(|element| match has_nulls {
            true => nullable(output, class, element, inner),
            false => content(output, class, element, inner),
        })
    };
    match (known, first) {
        _ if elements.is_empty() => Ok(()),
        (Some(class), _) => each(output, &class),
        (None, _) if !same => elements.iter().try_for_each(|element| any(output, element, inner)),
        (None, None) => {
            output.byte(0);
            Ok(())
        }
        (None, Some(first)) => {
            value::write_class(output, first);
            if layout != LibraryLayout::Immutable {
                output.byte(has_nulls.into());
            }
            each(output, first.class())
        }
    }
}

fn map(output: &mut Output, map: &Map, layout: LibraryLayout, arguments: &[Generic]) -> Outcome<()> {
    let ([key, value], LibraryLayout::Plain | LibraryLayout::Sorted | LibraryLayout::Immutable) =
        (arguments, layout)
    else {
        return value::write_map(output, map, layout);
    };
    output.varint(Output::length(map.entries.len())?);
    if layout == LibraryLayout::Sorted {
        value::write_comparator(output, &map.comparator)?;
    }
    let nulls = layout != LibraryLayout::Immutable;
    let one = |output: &mut Output, declared: &Generic, value: &Value| match described(output)?
        .final_class(declared)?
    {
        Some(class) if nulls => nullable(output, &class, value, declared.arguments()),
        Some(class) => content(output, &class, value, declared.arguments()),
        None => any(output, value, declared.arguments()),
    };
    map.entries.iter().try_for_each(|(found, item)| {
        one(output, key, found)?;
        one(output, value, item)
    })
}
