//! From bytes to a value of a described class.

use super::{Described, Generic, numbered};
use crate::classes::{ClassKind, Hierarchy, Layout, Primitive};
use crate::java::class::{ClassKind as Library, Layout as LibraryLayout, known};
use crate::java::{ClassName, Collection, Constant, Enum, Map, Object, Value};
use crate::java_serialization::HEADER;
use crate::kryo::failure::{Failure, Outcome};
use crate::kryo::input::{ClassRef, Input};
use crate::kryo::value;
use crate::memory;

/// An object of this class, which is not one of Java's library; `None` if it is not described.
pub(in crate::kryo) fn object(input: &mut Input<'_>, class: &str) -> Outcome<Option<Value>> {
    own(input, class, &[])
}

/// An element of an array of this class, which is not one of Java's library, or null.
pub(in crate::kryo) fn element(input: &mut Input<'_>, class: &str) -> Outcome<Value> {
    nullable(input, class, &[])
}

/// The descriptions, which are there whenever this module is called.
fn described<'i>(input: &'i mut Input<'_>) -> Outcome<&'i mut Described> {
    input.described.as_deref_mut().ok_or_else(|| Failure::new("no class is described"))
}

/// A value of this class of an application, for which the place declares these type arguments.
fn own(input: &mut Input<'_>, class: &str, arguments: &[Generic]) -> Outcome<Option<Value>> {
    let at = input.at;
    let Some(described) = input.described.as_deref() else { return Ok(None) };
    if input.follows(HEADER) {
        return Ok(None);
    }
    let classes = described.classes.clone();
    let layout = classes.layout(class).map_err(|why| Failure::new(format!("{why}, before offset {at}")))?;
    if layout.is_some() {
        input.keep_name(class.len())?;
    }
    let name = || ClassName::Owned(class.to_owned());
    Ok(Some(match layout {
        None => return Ok(None),
        Some(Layout::Object(hierarchy)) => fields(input, &hierarchy, arguments)?,
        Some(Layout::Enum(found)) => {
            let ordinal = match value::constant(input, None)? {
                Constant::Ordinal(ordinal) => ordinal as usize,
                constant => return Ok(Some(Value::Enum(Box::new(Enum { class: name(), constant })))),
            };
            let Some(constant) = found.constants.get(ordinal) else {
                return Err(Failure::new(format!(
                    "expected one of the {} constants of `{class}` at offset {at}, found the number {}",
                    found.constants.len(),
                    ordinal.saturating_add(1)
                )));
            };
            let constant = Constant::Name(constant.name.clone());
            Value::Enum(Box::new(Enum { class: name(), constant }))
        }
        Some(Layout::Collection(layout)) => {
            let (comparator, elements) = collection(input, layout, arguments)?;
            Value::Collection(Box::new(Collection { class: name(), comparator, elements }))
        }
        Some(Layout::Map(layout)) => {
            let (comparator, entries) = map(input, layout, arguments)?;
            Value::Map(Box::new(Map { class: name(), comparator, entries }))
        }
    }))
}

/// An object, field by field.
fn fields(input: &mut Input<'_>, hierarchy: &Hierarchy<'_>, arguments: &[Generic]) -> Outcome<Value> {
    let before = described(input)?.bind(hierarchy, arguments);
    let is_record = hierarchy.0[0].kind == ClassKind::Record;
    let mut fields = Vec::new();
    for declared in hierarchy.fields() {
        let kind = Generic::of(hierarchy, declared.by, &declared.field.kind);
        // Kryo keeps the type arguments of the fields of classes, but not of those of records.
        let value = place(input, &kind, if is_record { &[] } else { kind.arguments() })?;
        memory::take(declared.field.name.len())?;
        memory::push(&mut fields, (declared.field.name.clone(), value))?;
    }
    described(input)?.unbind(before);
    Ok(Value::Object(Box::new(Object { class: hierarchy.0[0].name.clone().into(), fields })))
}

/// The class of a place, if no other one can be there.
fn final_class(input: &mut Input<'_>, declared: &Generic) -> Outcome<Option<String>> {
    let at = input.at;
    let found = described(input)?.final_class(declared);
    found.map_err(|why| Failure::new(format!("{why}, before offset {at}")))
}

/// What a field holds, or an element of which the type is declared.
fn place(input: &mut Input<'_>, declared: &Generic, arguments: &[Generic]) -> Outcome<Value> {
    if let Generic::Primitive(primitive) = declared {
        return primitive_value(input, *primitive);
    }
    match final_class(input, declared)? {
        Some(class) => nullable(input, &class, arguments),
        None => match input.class()? {
            None => Ok(Value::Null),
            Some(class) => with_class(input, class, arguments),
        },
    }
}

fn primitive_value(input: &mut Input<'_>, primitive: Primitive) -> Outcome<Value> {
    match numbered(primitive.boxed()) {
        Some(class) => value::read(input, ClassRef::Numbered(class)),
        None => Err(Failure::new("no primitive type")),
    }
}

/// A value of a class that is not in the payload, or null.
fn nullable(input: &mut Input<'_>, class: &str, arguments: &[Generic]) -> Outcome<Value> {
    if is_null(input, class)? { Ok(Value::Null) } else { of_class(input, class, arguments) }
}

/// Whether a null follows, or what is in front of a value.
fn is_null(input: &mut Input<'_>, class: &str) -> Outcome<bool> {
    match null(input, class)? {
        Some(null) if input.peek()? == null => {
            input.byte()?;
            Ok(true)
        }
        Some(_) => Ok(false),
        None => Ok(!input.boolean()?),
    }
}

/// The byte of a null of this class, if it has one.
fn null(input: &mut Input<'_>, class: &str) -> Outcome<Option<u8>> {
    Ok(value::null_of(class).or(described(input)?.null_of(class)))
}

fn with_class(input: &mut Input<'_>, class: ClassRef, arguments: &[Generic]) -> Outcome<Value> {
    match class {
        ClassRef::Numbered(_) => value::read(input, class),
        ClassRef::Named(_) if arguments.is_empty() => value::read(input, class),
        ClassRef::Named(_) if input.known(class).is_none() && input.is_serialized(class) => {
            value::read(input, class)
        }
        ClassRef::Named(_) => {
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
    input.deeper()?;
    memory::take(size_of::<Object>())?;
    let known = known(class);
    let value = match known.map(|known| (known, known.kind)) {
        Some((known, Library::Collection(layout))) => {
            let (comparator, elements) = collection(input, layout, arguments)?;
            Value::Collection(Box::new(Collection { class: known.name.into(), comparator, elements }))
        }
        Some((known, Library::Map(layout))) => {
            let (comparator, entries) = map(input, layout, arguments)?;
            Value::Map(Box::new(Map { class: known.name.into(), comparator, entries }))
        }
        Some((known, _)) => value::read_known(input, known)?,
        None if class.starts_with('[') => value::read_array(input, class)?,
        None => match own(input, class, arguments)? {
            Some(value) => value,
            None => return Err(value::unknown_class(input, class)),
        },
    };
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
