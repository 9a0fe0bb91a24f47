//! From bytes to a value of a described class.

use std::borrow::Cow;

use super::plan::{ObjectPlan, Plan};
use super::{Described, Generic, numbered};
use crate::java::known_classes::{Class, ClassKind as Library, Layout as LibraryLayout, known};
use crate::java::{ClassName, Collection, Enum, Map, Object, Value};
use crate::java_serialization::HEADER;
use crate::kryo::failure::{Failure, Outcome};
use crate::kryo::input::{ClassRef, Input};
use crate::kryo::value;
use crate::memory;

/// An object of this class, which is not one of Java's library; `None` if it is not described.
pub(in crate::kryo) fn object(input: &mut Input<'_>, class: String) -> Outcome<Option<Value>> {
    own(input, class.into(), &[])
}

/// An element of an array of this class, which is not one of Java's library, or null.
pub(in crate::kryo) fn element(input: &mut Input<'_>, class: &str) -> Outcome<Value> {
    nullable(input, class, &[])
}

/// Most objects have no more fields.
const USUAL_FIELDS: usize = 16;

/// The descriptions, which are there whenever this module is called.
fn described<'i>(input: &'i mut Input<'_>) -> Outcome<&'i mut Described> {
    input.described.as_deref_mut().ok_or_else(|| Failure::new("no class is described"))
}

/// A value of this class of an application, for which the place declares these type arguments.
fn own(input: &mut Input<'_>, class: Cow<'_, str>, arguments: &[Generic]) -> Outcome<Option<Value>> {
    let at = input.at;
    let Some(described) = input.described.as_deref() else { return Ok(None) };
    if input.follows(HEADER) {
        return Ok(None);
    }
    let plan = described.plans.of(&class);
    let plan = plan.map_err(|why| Failure::new(format!("{why}, before offset {at}")))?;
    let Some(plan) = plan else { return Ok(None) };
    input.keep_name(class.len())?;
    Ok(Some(match &*plan {
        Plan::Object(plan) => {
            let fields = fields(input, plan, arguments)?;
            Value::Object(Box::new(Object { class: class.into_owned().into(), fields }))
        }
        Plan::Enum(names) => {
            let constant = value::constant(input, &class, Some(names))?;
            Value::Enum(Box::new(Enum { class: class.into_owned().into(), constant }))
        }
        Plan::Collection(layout) => {
            let (comparator, elements) = collection(input, *layout, arguments)?;
            Value::Collection(Box::new(Collection { class: class.into_owned().into(), comparator, elements }))
        }
        Plan::Map(layout) => {
            let (comparator, entries) = map(input, *layout, arguments)?;
            Value::Map(Box::new(Map { class: class.into_owned().into(), comparator, entries }))
        }
    }))
}

/// An object, field by field.
fn fields(input: &mut Input<'_>, class: &ObjectPlan, arguments: &[Generic]) -> Outcome<Vec<(String, Value)>> {
    let before = described(input)?.bind(class, arguments);
    let mut fields = memory::usual(class.fields.len().min(USUAL_FIELDS));
    for field in &class.fields {
        let value = place(input, &field.kind, field.arguments())?;
        memory::take(field.name.len())?;
        memory::push(&mut fields, (field.name.clone(), value))?;
    }
    described(input)?.unbind(before);
    Ok(fields)
}

/// The class of a place, if no other one can be there.
fn final_class<'g>(input: &mut Input<'_>, declared: &'g Generic) -> Outcome<Option<Cow<'g, str>>> {
    let at = input.at;
    let found = described(input)?.final_class(declared);
    found.map_err(|why| Failure::new(format!("{why}, before offset {at}")))
}

/// What a field holds, or an element of which the type is declared.
fn place(input: &mut Input<'_>, declared: &Generic, arguments: &[Generic]) -> Outcome<Value> {
    match declared {
        Generic::Primitive(number) => return value::read(input, ClassRef::Numbered(*number)),
        Generic::Numbered(number) => return value::read_nullable(input, ClassRef::Numbered(*number)),
        _ => {}
    }
    match final_class(input, declared)? {
        Some(class) => nullable(input, &class, arguments),
        None => any(input, arguments),
    }
}

/// A value of a class that is not in the payload, or null.
fn nullable(input: &mut Input<'_>, class: &str, arguments: &[Generic]) -> Outcome<Value> {
    if is_null(input, class)? { Ok(Value::Null) } else { of_class(input, class, arguments) }
}

/// Whether a null follows, or what is in front of a value.
fn is_null(input: &mut Input<'_>, class: &str) -> Outcome<bool> {
    let null = match value::null_of(class) {
        None => described(input)?.null_of(class),
        null => null,
    };
    match null {
        Some(null) if input.peek()? == null => {
            input.byte()?;
            Ok(true)
        }
        Some(_) => Ok(false),
        None => Ok(!input.boolean()?),
    }
}

/// A value behind its class.
fn with_class(input: &mut Input<'_>, class: ClassRef, arguments: &[Generic]) -> Outcome<Value> {
    if arguments.is_empty() || matches!(class, ClassRef::Numbered(_)) {
        return value::read(input, class);
    }
    match input.known(class) {
        Some(known) => of_known(input, known, arguments),
        None if input.is_serialized(class) => value::read(input, class),
        None => {
            let name = input.class_name(class).into_owned();
            of_class(input, &name, arguments)
        }
    }
}

/// A value of this class, for which the place declares these type arguments.
fn of_class(input: &mut Input<'_>, class: &str, arguments: &[Generic]) -> Outcome<Value> {
    if let Some(class) = numbered(class) {
        return value::read(input, ClassRef::Numbered(class));
    }
    if let Some(known) = known(class) {
        return of_known(input, known, arguments);
    }
    level(input, |input| match class.starts_with('[') {
        true => value::read_array(input, class),
        false => own(input, class.into(), arguments)?.ok_or_else(|| value::unknown_class(input, class)),
    })
}

/// The same of a class of Java's library.
fn of_known(input: &mut Input<'_>, known: &'static Class, arguments: &[Generic]) -> Outcome<Value> {
    let class = ClassName::Borrowed(known.name);
    level(input, |input| match known.kind {
        Library::Collection(layout) => {
            let (comparator, elements) = collection(input, layout, arguments)?;
            Ok(Value::Collection(Box::new(Collection { class, comparator, elements })))
        }
        Library::Map(layout) => {
            let (comparator, entries) = map(input, layout, arguments)?;
            Ok(Value::Map(Box::new(Map { class, comparator, entries })))
        }
        _ => value::read_known(input, known),
    })
}

/// A value that is a level.
fn level(input: &mut Input<'_>, read: impl FnOnce(&mut Input<'_>) -> Outcome<Value>) -> Outcome<Value> {
    input.deeper()?;
    memory::take(size_of::<Object>())?;
    let value = read(input)?;
    input.shallower();
    Ok(value)
}

type Elements = (Option<ClassName>, Vec<Value>);

fn collection(input: &mut Input<'_>, layout: LibraryLayout, arguments: &[Generic]) -> Outcome<Elements> {
    // The first argument says the class, and the last one is that of the elements themselves.
    let (Some(element), Some(inner), LibraryLayout::Plain | LibraryLayout::Sorted | LibraryLayout::Immutable) =
        (arguments.first(), arguments.last(), layout)
    else {
        return value::read_collection(input, layout);
    };
    let known = final_class(input, element)?;
    let (inner, nulls) = (inner.arguments(), layout != LibraryLayout::Immutable);
    let (flag, length) = match known.is_some() && !nulls {
        true => (false, input.varint()?),
        false => input.flagged()?,
    };
    let count = input.count(length)?;
    let comparator = if layout == LibraryLayout::Sorted { value::comparator(input)? } else { None };
    if count == 0 {
        return Ok((comparator, Vec::new()));
    }
    let elements = match (known, flag) {
        (Some(class), true) => value::read_each(input, count, |input| nullable(input, &class, inner))?,
        (Some(class), false) => value::read_each(input, count, |input| of_class(input, &class, inner))?,
        (None, false) => value::read_each(input, count, |input| any(input, inner))?,
        // All are of one class, which comes first.
        (None, true) => match input.class()? {
            None => value::read_each(input, count, |_| Ok(Value::Null))?,
            Some(class) => {
                let name = input.class_name(class).into_owned();
                match nulls && input.boolean()? {
                    true => value::read_each(input, count, |input| match is_null(input, &name)? {
                        true => Ok(Value::Null),
                        false => with_class(input, class, inner),
                    })?,
                    false => value::read_each(input, count, |input| with_class(input, class, inner))?,
                }
            }
        },
    };
    Ok((comparator, elements))
}

/// A value with its class in front.
fn any(input: &mut Input<'_>, arguments: &[Generic]) -> Outcome<Value> {
    match input.class()? {
        None => Ok(Value::Null),
        Some(class) => with_class(input, class, arguments),
    }
}

type Entries = (Option<ClassName>, Vec<(Value, Value)>);

fn map(input: &mut Input<'_>, layout: LibraryLayout, arguments: &[Generic]) -> Outcome<Entries> {
    let ([key, value], LibraryLayout::Plain | LibraryLayout::Sorted | LibraryLayout::Immutable) =
        (arguments, layout)
    else {
        return value::read_map(input, layout);
    };
    let length = input.varint()?;
    let count = input.count(length)?;
    let comparator = if layout == LibraryLayout::Sorted { value::comparator(input)? } else { None };
    let nulls = layout != LibraryLayout::Immutable;
    let one = |input: &mut Input<'_>, declared: &Generic| match final_class(input, declared)? {
        Some(class) if nulls => nullable(input, &class, declared.arguments()),
        Some(class) => of_class(input, &class, declared.arguments()),
        None => any(input, declared.arguments()),
    };
    let entries = value::read_each(input, count, |input| Ok((one(input, key)?, one(input, value)?)))?;
    Ok((comparator, entries))
}
