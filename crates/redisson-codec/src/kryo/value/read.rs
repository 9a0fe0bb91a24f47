//! A [`Value`] from its bytes.

use super::{COMPARATORS, Final, constants_of, final_element, is_open, null};
use crate::java::known_classes::{Class, ClassKind, Layout};
use crate::java::{Array, ClassName, Collection, Constant, Enum, EnumSet, Map, Object, Opaque, Text, Value};
#[cfg(feature = "classes")]
use crate::java_serialization::HEADER;
#[cfg(feature = "classes")]
use crate::kryo::described;
use crate::kryo::failure::{Failure, Outcome};
use crate::kryo::input::{ClassRef, Input};
use crate::kryo::numbered::Numbered;
use crate::kryo::{parts_as_text, scalar, small_classes};
use crate::memory;
use crate::shown::shown;
use crate::signature::is_java_name;

/// A value with its class in front.
pub(in crate::kryo) fn read_any(input: &mut Input<'_>) -> Outcome<Value> {
    match input.class()? {
        None => Ok(Value::Null),
        Some(class) => read(input, class),
    }
}

/// A value that says itself whether it is null, or has a byte in front that does.
pub(in crate::kryo) fn read_nullable(input: &mut Input<'_>, class: ClassRef) -> Outcome<Value> {
    let present = match null(input, class) {
        Some(null) => {
            let present = input.peek()? != null;
            if !present {
                input.byte()?;
            }
            present
        }
        // An enum of an application says itself whether it is null.
        None => match input.boolean() {
            Err(failure) if matches!(class, ClassRef::Named(_)) && input.known(class).is_none() => {
                return Err(failure.endless());
            }
            present => present?,
        },
    };
    if present { read(input, class) } else { Ok(Value::Null) }
}

/// A value of this class.
pub(in crate::kryo) fn read(input: &mut Input<'_>, class: ClassRef) -> Outcome<Value> {
    let number = match class {
        ClassRef::Numbered(number) => number,
        ClassRef::Named(_) => {
            input.deeper()?;
            // Most of these are in a box.
            memory::take(size_of::<Object>())?;
            let value = read_named(input, class)?;
            input.shallower();
            return Ok(value);
        }
    };
    Ok(match number {
        Numbered::Integer => Value::Integer(input.int()?),
        Numbered::String => {
            let text = input.some_text()?;
            memory::take(text.len())?;
            Value::String(text.into_owned())
        }
        Numbered::Float => Value::Float(f32::from_le_bytes(input.array()?)),
        Numbered::Boolean => Value::Boolean(input.boolean()?),
        Numbered::Byte => Value::Byte(input.byte()? as i8),
        Numbered::Character => Value::Character(u16::from_le_bytes(input.array()?)),
        Numbered::Short => Value::Short(i16::from_le_bytes(input.array()?)),
        Numbered::Long => Value::Long(input.long()?),
        Numbered::Double => Value::Double(f64::from_le_bytes(input.array()?)),
    })
}

/// A value of this class that is the whole payload. If it cannot be read because the end of an object in it
/// is not known, or because it is too deep, its bytes are kept.
pub(in crate::kryo) fn read_whole(input: &mut Input<'_>, class: ClassRef) -> Outcome<Value> {
    let start = input.at;
    match read(input, class) {
        Err(failure) if failure.is_endless() => {
            input.at = start;
            opaque(input, class)
        }
        read => read,
    }
}

/// All that follows, of a class of which nothing is known.
pub(in crate::kryo) fn opaque(input: &mut Input<'_>, class: ClassRef) -> Outcome<Value> {
    let class = input.class_name(class).into_owned().into();
    let bytes = input.take(input.left())?;
    memory::take(size_of::<Opaque>() + bytes.len())?;
    Ok(Value::Opaque(Box::new(Opaque { class, bytes: bytes.to_vec() })))
}

fn read_named(input: &mut Input<'_>, class: ClassRef) -> Outcome<Value> {
    if let Some(known) = input.known(class) {
        return read_known(input, known);
    }
    if input.is_serialized(class) {
        return Ok(Value::Serialized(Box::new(input.keep_serialized(class)?)));
    }
    let name = input.class_name(class).into_owned();
    if name.starts_with('[') {
        return read_array(input, &name);
    }
    #[cfg(feature = "classes")]
    if input.described.is_some() {
        let value = described::read_object(input, name)?;
        return value.ok_or_else(|| unknown_class(input, &input.class_name(class)));
    }
    Err(unknown_fields(input, class))
}

fn unknown_fields(input: &Input<'_>, class: ClassRef) -> Failure {
    let (name, at) = (input.class_name(class), input.at);
    let class = shown(&name);
    let why = format!(
        "the fields of the class `{class}` before offset {at} are not known: read it as a struct of this name"
    );
    if is_java_name(&name) { Failure::new(why).endless() } else { Failure::new(why) }
}

/// The same, where other classes are described.
#[cfg(feature = "classes")]
pub(in crate::kryo) fn unknown_class(input: &Input<'_>, class: &str) -> Failure {
    let (shown, at) = (shown(class), input.at);
    let why = match input.follows(HEADER) {
        true => "are not known: Java's own serialization wrote them",
        false => "are not described",
    };
    Failure::new(format!("the fields of the class `{shown}` before offset {at} {why}"))
}

/// A value of a library class.
pub(in crate::kryo) fn read_known(input: &mut Input<'_>, known: &'static Class) -> Outcome<Value> {
    let class = ClassName::Borrowed(known.name);
    Ok(match known.kind {
        ClassKind::Scalar(_) => scalar::read(input, known)?,
        ClassKind::Text(_) => Value::Text(Box::new(Text { class, text: parts_as_text::read(input, known)? })),
        ClassKind::Fields(fields) => small_classes::read(input, known.name, fields)?,
        ClassKind::Enum(names) => {
            let constant = constant(input, &class, Some(names))?;
            Value::Enum(Box::new(Enum { class, constant }))
        }
        ClassKind::Optional => Value::Optional(match read_any(input)? {
            Value::Null => None,
            value => Some(Box::new(value)),
        }),
        ClassKind::EnumSet => {
            let element: ClassName = match input.class()? {
                Some(class) => input.kept_class_name(class)?.into(),
                None => return Err(Failure::new(format!("a set of no enum before offset {}", input.at))),
            };
            let count = input.varint()?;
            let count = input.count(count.saturating_add(1))?;
            let names = constants_of(&element);
            #[cfg(feature = "classes")]
            let own = input.described.as_deref().and_then(|described| described.constants(&element));
            let mut constants = Vec::new();
            for _ in 0..count {
                #[cfg(feature = "classes")]
                let constant = match &own {
                    Some(own) => constant(input, &element, Some(own))?,
                    None => constant(input, &element, names)?,
                };
                #[cfg(not(feature = "classes"))]
                let constant = constant(input, &element, names)?;
                memory::push(&mut constants, constant)?;
            }
            Value::EnumSet(Box::new(EnumSet { class, element, constants }))
        }
        ClassKind::Collection(layout) => {
            let (comparator, elements) = read_collection(input, layout)?;
            Value::Collection(Box::new(Collection { class, comparator, elements }))
        }
        ClassKind::Map(layout) => {
            let (comparator, entries) = read_map(input, layout)?;
            Value::Map(Box::new(Map { class, comparator, entries }))
        }
    })
}

/// Which constant of an enum of this class, by its name if these are known.
pub(in crate::kryo) fn constant<S: AsRef<str>>(
    input: &mut Input<'_>,
    class: &str,
    names: Option<&[S]>,
) -> Outcome<Constant> {
    let start = input.at;
    let Some(ordinal) = input.varint()?.checked_sub(1) else {
        return Err(Failure::new(format!("a null at offset {start}, where none may be")));
    };
    let Some(names) = names else { return Ok(Constant::Ordinal(ordinal)) };
    match names.get(ordinal as usize) {
        Some(name) => Ok(Constant::Name(name.as_ref().to_owned())),
        None => Err(Failure::new(format!(
            "expected one of the {} constants of `{}` at offset {start}, found the number {}",
            names.len(),
            shown(class),
            ordinal.saturating_add(1)
        ))),
    }
}

/// So many values, each read by the same function.
pub(in crate::kryo) fn read_each<'de, T>(
    input: &mut Input<'de>,
    count: usize,
    mut read: impl FnMut(&mut Input<'de>) -> Outcome<T>,
) -> Outcome<Vec<T>> {
    // A value takes more memory than the byte that is certain.
    let mut values = Vec::new();
    for _ in 0..count {
        let start = input.at;
        memory::push(&mut values, read(input)?)?;
        input.element_since(start)?;
    }
    Ok(values)
}

pub(in crate::kryo) fn read_collection(
    input: &mut Input<'_>,
    layout: Layout,
) -> Outcome<(Option<ClassName>, Vec<Value>)> {
    match layout {
        Layout::Empty => return Ok((None, Vec::new())),
        Layout::Singleton => return Ok((None, vec![read_any(input)?])),
        Layout::Plain | Layout::Sorted | Layout::Immutable => {}
    }
    let (same, length) = input.flagged()?;
    let count = input.count(length)?;
    let comparator = if layout == Layout::Sorted { comparator(input)? } else { None };
    if count == 0 {
        return Ok((comparator, Vec::new()));
    }
    let elements = match same {
        false => read_each(input, count, read_any)?,
        true => match input.class()? {
            None => read_each(input, count, |_| Ok(Value::Null))?,
            Some(class) if layout != Layout::Immutable && input.boolean()? => {
                read_each(input, count, |input| read_nullable(input, class))?
            }
            Some(class) => read_each(input, count, |input| read(input, class))?,
        },
    };
    Ok((comparator, elements))
}

type ValueEntries = Vec<(Value, Value)>;

pub(in crate::kryo) fn read_map(
    input: &mut Input<'_>,
    layout: Layout,
) -> Outcome<(Option<ClassName>, ValueEntries)> {
    let entry = |input: &mut Input<'_>| Ok((read_any(input)?, read_any(input)?));
    match layout {
        Layout::Empty => return Ok((None, Vec::new())),
        Layout::Singleton => return Ok((None, vec![entry(input)?])),
        Layout::Plain | Layout::Sorted | Layout::Immutable => {}
    }
    let length = input.varint()?;
    let count = input.count(length)?;
    let comparator = if layout == Layout::Sorted { comparator(input)? } else { None };
    Ok((comparator, read_each(input, count, entry)?))
}

/// The comparator of a sorted collection or map, if it has one.
pub(in crate::kryo) fn comparator(input: &mut Input<'_>) -> Outcome<Option<ClassName>> {
    let Some(class) = input.class()? else { return Ok(None) };
    let Some((name, constant)) = COMPARATORS.into_iter().find(|(name, _)| input.is_named(class, name)) else {
        return Err(Failure::new(format!(
            "the fields of the comparator `{}` before offset {} are not known",
            input.shown(class),
            input.at
        ))
        .endless());
    };
    if constant {
        input.varint()?;
    }
    Ok(Some(name.into()))
}

/// How many dimensions an array has in Java at most.
const MAX_DIMENSIONS: usize = 255;

pub(in crate::kryo) fn read_array(input: &mut Input<'_>, class: &str) -> Outcome<Value> {
    if class.bytes().take_while(|byte| *byte == b'[').count() > MAX_DIMENSIONS {
        return Err(Failure::new(format!(
            "an array of more than {MAX_DIMENSIONS} dimensions before offset {}",
            input.at
        )));
    }
    input.keep_name(class.len())?;
    let length = input.varint()?;
    let count = input.count(length)?;
    let elements = match &class[1..] {
        "B" => {
            let bytes = input.take(count)?;
            memory::take(bytes.len())?;
            return Ok(Value::Bytes(bytes.to_vec()));
        }
        "Z" => read_each(input, count, |input| input.boolean().map(Value::Boolean))?,
        "S" => read_each(input, count, |input| Ok(Value::Short(i16::from_le_bytes(input.array()?))))?,
        "C" => read_each(input, count, |input| Ok(Value::Character(u16::from_le_bytes(input.array()?))))?,
        "I" => read_each(input, count, |input| input.int().map(Value::Integer))?,
        "J" => read_each(input, count, |input| input.long().map(Value::Long))?,
        "F" => read_each(input, count, |input| Ok(Value::Float(f32::from_le_bytes(input.array()?))))?,
        "D" => read_each(input, count, |input| Ok(Value::Double(f64::from_le_bytes(input.array()?))))?,
        array if array.starts_with('[') => read_each(input, count, |input| {
            if input.peek()? == 0 {
                input.byte()?;
                return Ok(Value::Null);
            }
            input.deeper()?;
            memory::take(size_of::<Array>() + array.len())?;
            let array = read_array(input, array)?;
            input.shallower();
            Ok(array)
        })?,
        element => match final_element(element) {
            Some(Final::Numbered(number)) => {
                read_each(input, count, |input| read_nullable(input, ClassRef::Numbered(number)))?
            }
            Some(Final::Known(class)) => read_each(input, count, |input| read_final(input, class))?,
            None if count == 0 || is_open(element) => read_each(input, count, read_any)?,
            #[cfg(feature = "classes")]
            None if described_element(input, element).is_some() => match described_element(input, element) {
                Some((element, true)) => {
                    read_each(input, count, |input| described::read_element(input, element))?
                }
                _ => read_each(input, count, read_any)?,
            },
            None => {
                return Err(Failure::new(format!(
                    "the elements of the array `{}` before offset {} are not known: read it as a list with \
                     `java::array`",
                    shown(class),
                    input.at
                ))
                .endless());
            }
        },
    };
    Ok(Value::Array(Box::new(Array { class: class.to_owned().into(), elements })))
}

/// The class of the elements of an array, and whether it is final, if it is described.
#[cfg(feature = "classes")]
fn described_element<'a>(input: &Input<'_>, element: &'a str) -> Option<(&'a str, bool)> {
    let class = element.strip_prefix('L')?.strip_suffix(';')?;
    Some((class, input.described.as_deref()?.is_final(class)?))
}

/// A value of a final library class, or null.
fn read_final(input: &mut Input<'_>, class: &'static Class) -> Outcome<Value> {
    let present = match scalar::null(class) {
        Some(null) if input.peek()? == null => {
            input.byte()?;
            false
        }
        Some(_) => true,
        None => input.boolean()?,
    };
    if !present {
        return Ok(Value::Null);
    }
    // What is in a box is not in the array.
    memory::take(size_of::<Object>())?;
    read_known(input, class)
}
