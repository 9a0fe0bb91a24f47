//! [`Value`]: anything whose class is known, without a type that says what to expect.

use super::input::{ClassRef, Fault, Input, Numbered, Outcome};
use super::output::Output;
use super::{fields, scalar, texts};
use crate::codec::java::class::{Class, ClassKind, Layout, constants_of, known};
use crate::codec::java::{Array, ClassName, Collection, Constant, Enum, EnumSet, Map, Text, Value};

/// The comparators that have no fields. What follows the class is for an enum the number of its only constant.
const COMPARATORS: [(&str, bool); 3] = [
    ("java.util.Collections$ReverseComparator", false),
    ("java.lang.String$CaseInsensitiveComparator", false),
    ("java.util.Comparators$NaturalOrderComparator", true),
];

/// The byte that a value of the class is if it is null, as in [`scalar::null`].
pub(super) fn null(input: &Input<'_>, class: ClassRef) -> Option<u8> {
    match class {
        ClassRef::Numbered(Numbered::String) => Some(0x80),
        ClassRef::Numbered(_) => None,
        ClassRef::Named(_) => null_of(&input.class_name(class)),
    }
}

pub(super) fn null_of(class: &str) -> Option<u8> {
    match class {
        "java.lang.String" => Some(0x80),
        _ if class.starts_with('[') => Some(0),
        _ => known(class).and_then(scalar::null),
    }
}

/// A value with its class in front.
pub(super) fn read_any(input: &mut Input<'_>) -> Outcome<Value> {
    match input.class()? {
        None => Ok(Value::Null),
        Some(class) => read(input, class),
    }
}

/// A value that says itself whether it is null, or has a byte in front that does.
fn read_nullable(input: &mut Input<'_>, class: ClassRef) -> Outcome<Value> {
    let present = match null(input, class) {
        Some(null) => {
            let present = input.peek()? != null;
            if !present {
                input.byte()?;
            }
            present
        }
        None => input.boolean()?,
    };
    if present { read(input, class) } else { Ok(Value::Null) }
}

/// A value of this class.
pub(super) fn read(input: &mut Input<'_>, class: ClassRef) -> Outcome<Value> {
    let number = match class {
        ClassRef::Numbered(number) => number,
        ClassRef::Named(_) => {
            input.deeper()?;
            let value = read_named(input, class)?;
            input.shallower();
            return Ok(value);
        }
    };
    Ok(match number {
        Numbered::Integer => Value::Integer(input.int()?),
        Numbered::String => Value::String(input.some_text()?.into_owned()),
        Numbered::Float => Value::Float(f32::from_le_bytes(input.array()?)),
        Numbered::Boolean => Value::Boolean(input.boolean()?),
        Numbered::Byte => Value::Byte(input.byte()? as i8),
        Numbered::Character => Value::Character(u16::from_le_bytes(input.array()?)),
        Numbered::Short => Value::Short(i16::from_le_bytes(input.array()?)),
        Numbered::Long => Value::Long(input.long()?),
        Numbered::Double => Value::Double(f64::from_le_bytes(input.array()?)),
    })
}

fn read_named(input: &mut Input<'_>, class: ClassRef) -> Outcome<Value> {
    let Some(known) = input.known(class) else {
        let name = input.class_name(class).into_owned();
        return match name.starts_with('[') {
            true => read_array(input, name),
            false => Err(unknown_fields(input, class)),
        };
    };
    read_known(input, known)
}

fn unknown_fields(input: &Input<'_>, class: ClassRef) -> Fault {
    let advice = match input.follows(b"\xac\xed\x00\x05") {
        true => "Java's own serialization wrote them",
        false => "read it as a struct of this name",
    };
    let (class, at) = (input.shown(class), input.at);
    Fault::new(format!("the fields of the class `{class}` before offset {at} are not known: {advice}"))
}

/// A value of a class that stands in the library.
fn read_known(input: &mut Input<'_>, known: &'static Class) -> Outcome<Value> {
    let class = ClassName::Borrowed(known.name);
    Ok(match known.kind {
        ClassKind::Scalar(_) => scalar::read(input, known)?,
        ClassKind::Text(_) => Value::Text(Box::new(Text { class, text: texts::read(input, known)? })),
        ClassKind::Fields(fields) => fields::read(input, known.name, fields)?,
        ClassKind::Enum(names) => {
            let constant = constant(input, Some(names))?;
            Value::Enum(Box::new(Enum { class, constant }))
        }
        ClassKind::Optional => Value::Optional(match read_any(input)? {
            Value::Null => None,
            value => Some(Box::new(value)),
        }),
        ClassKind::EnumSet => {
            let element: ClassName = match input.class()? {
                Some(class) => input.class_name(class).into_owned().into(),
                None => return Err(Fault::new(format!("a set of no enum before offset {}", input.at))),
            };
            let count = input.varint()?;
            let count = input.count(count.saturating_add(1))?;
            let names = constants_of(&element);
            let mut constants = Vec::new();
            for _ in 0..count {
                constants.push(constant(input, names)?);
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

/// The names of an enum's constants, if it is one of Java's library.
type Names = Option<&'static [&'static str]>;

/// Which constant of an enum.
fn constant(input: &mut Input<'_>, names: Names) -> Outcome<Constant> {
    let start = input.at;
    let Some(ordinal) = input.varint()?.checked_sub(1) else {
        return Err(Fault::new(format!("a null at offset {start}, where none may be")));
    };
    let Some(names) = names else { return Ok(Constant::Ordinal(ordinal)) };
    match names.get(ordinal as usize) {
        Some(name) => Ok(Constant::Name((*name).to_owned())),
        None => Err(Fault::new(format!(
            "expected one of the {} constants of an enum at offset {start}, found another",
            names.len()
        ))),
    }
}

/// So many values, each read by the same function.
fn read_each<'de, T>(
    input: &mut Input<'de>,
    count: usize,
    mut read: impl FnMut(&mut Input<'de>) -> Outcome<T>,
) -> Outcome<Vec<T>> {
    // A value takes more memory than the byte that is certain.
    let mut values = Vec::with_capacity(count.min(64));
    for _ in 0..count {
        let start = input.at;
        values.push(read(input)?);
        input.element_since(start)?;
    }
    Ok(values)
}

fn read_collection(input: &mut Input<'_>, layout: Layout) -> Outcome<(Option<ClassName>, Vec<Value>)> {
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

type Entries = Vec<(Value, Value)>;

fn read_map(input: &mut Input<'_>, layout: Layout) -> Outcome<(Option<ClassName>, Entries)> {
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
pub(super) fn comparator(input: &mut Input<'_>) -> Outcome<Option<ClassName>> {
    let Some(class) = input.class()? else { return Ok(None) };
    let Some((name, constant)) = COMPARATORS.into_iter().find(|(name, _)| input.is_named(class, name)) else {
        return Err(Fault::new(format!(
            "the fields of the comparator `{}` before offset {} are not known",
            input.shown(class),
            input.at
        )));
    };
    if constant {
        input.varint()?;
    }
    Ok(Some(name.into()))
}

fn read_array(input: &mut Input<'_>, class: String) -> Outcome<Value> {
    let length = input.varint()?;
    let count = input.count(length)?;
    let elements = match &class[1..] {
        "B" => return Ok(Value::Bytes(input.take(count)?.to_vec())),
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
            let array = read_array(input, array.to_owned())?;
            input.shallower();
            Ok(array)
        })?,
        element => match final_element(element) {
            Some(Final::Numbered(number)) => {
                read_each(input, count, |input| read_nullable(input, ClassRef::Numbered(number)))?
            }
            Some(Final::Known(class)) => read_each(input, count, |input| read_final(input, class))?,
            None if count == 0 || is_open(element) => read_each(input, count, read_any)?,
            None => {
                let class: String = class.chars().take(200).collect();
                return Err(Fault::new(format!(
                    "the elements of the array `{}` before offset {} are not known: read it as a list with \
                     `java::array`",
                    class.escape_debug(),
                    input.at
                )));
            }
        },
    };
    Ok(Value::Array(Box::new(Array { class: class.into(), elements })))
}

/// The elements of an array whose class is final have no class of their own.
enum Final {
    Numbered(Numbered),
    Known(&'static Class),
}

fn final_element(descriptor: &str) -> Option<Final> {
    use Numbered::*;
    let name = descriptor.strip_prefix('L')?.strip_suffix(';')?;
    let numbered = [Integer, String, Float, Boolean, Byte, Character, Short, Long, Double];
    if let Some(number) = numbered.into_iter().find(|number| number.name() == name) {
        return Some(Final::Numbered(number));
    }
    known(name).filter(|class| class.is_final).map(Final::Known)
}

/// Whether the elements of an array have classes of their own for sure.
fn is_open(descriptor: &str) -> bool {
    let Some(name) = descriptor.strip_prefix('L').and_then(|name| name.strip_suffix(';')) else {
        return false;
    };
    known(name).is_some() || OPEN.contains(&name)
}

/// Classes and interfaces that fields and arrays are declared with, and that have others below them.
const OPEN: [&str; 18] = [
    "java.lang.Object",
    "java.lang.Number",
    "java.lang.Comparable",
    "java.lang.CharSequence",
    "java.lang.Iterable",
    "java.io.Serializable",
    "java.util.Collection",
    "java.util.List",
    "java.util.Set",
    "java.util.SortedSet",
    "java.util.Queue",
    "java.util.Deque",
    "java.util.Map",
    "java.util.SortedMap",
    "java.util.TimeZone",
    "java.util.Calendar",
    "java.nio.charset.Charset",
    "java.time.ZoneId",
];

/// A value of a final class that stands in the library, or null.
fn read_final(input: &mut Input<'_>, class: &'static Class) -> Outcome<Value> {
    let present = match scalar::null(class) {
        Some(null) if input.peek()? == null => {
            input.byte()?;
            false
        }
        Some(_) => true,
        None => input.boolean()?,
    };
    if present { read_known(input, class) } else { Ok(Value::Null) }
}

/// A value with its class in front.
pub(super) fn write(output: &mut Output, value: &Value) -> Outcome<()> {
    if let Value::Bare(value) = value {
        return write(output, value);
    }
    if *value == Value::Null {
        output.byte(0);
        return Ok(());
    }
    write_class(output, value);
    write_content(output, value)
}

fn write_class(output: &mut Output, value: &Value) {
    match value {
        Value::Boolean(_) => output.numbered(Numbered::Boolean),
        Value::Byte(_) => output.numbered(Numbered::Byte),
        Value::Short(_) => output.numbered(Numbered::Short),
        Value::Character(_) => output.numbered(Numbered::Character),
        Value::Integer(_) => output.numbered(Numbered::Integer),
        Value::Long(_) => output.numbered(Numbered::Long),
        Value::Float(_) => output.numbered(Numbered::Float),
        Value::Double(_) => output.numbered(Numbered::Double),
        Value::String(_) => output.numbered(Numbered::String),
        value => output.class(value.class().to_owned()),
    }
}

/// A value that is known not to be null.
pub(super) fn write_content(output: &mut Output, value: &Value) -> Outcome<()> {
    match value {
        Value::Null => return Err(Fault::new("a null where none may be")),
        Value::Boolean(value) => output.byte((*value).into()),
        Value::Byte(value) => output.byte(*value as u8),
        Value::Short(value) => output.raw(&value.to_le_bytes()),
        Value::Character(value) => output.raw(&value.to_le_bytes()),
        Value::Integer(value) => output.int(*value),
        Value::Long(value) => output.long(*value),
        Value::Float(value) => output.raw(&value.to_le_bytes()),
        Value::Double(value) => output.raw(&value.to_le_bytes()),
        Value::String(value) => output.text(value),
        Value::Text(value) => match known(&value.class) {
            Some(class) => texts::write(output, class, &value.text)?,
            None => return Err(unknown(&value.class, "text")),
        },
        Value::Bytes(value) => {
            output.varint(Output::length(value.len())?);
            output.raw(value);
        }
        value => {
            if !scalar::write(output, value)? {
                output.deeper()?;
                write_nested(output, value)?;
                output.shallower();
            }
        }
    }
    Ok(())
}

fn unknown(class: &str, kind: &str) -> Fault {
    Fault::new(format!("`{class}` is not a {kind} class whose layout is known"))
}

fn write_nested(output: &mut Output, value: &Value) -> Outcome<()> {
    match value {
        Value::Optional(None) => output.byte(0),
        Value::Optional(Some(value)) => write(output, value)?,
        Value::Enum(value) => write_constant(output, constants_of(&value.class), &value.constant)?,
        Value::EnumSet(value) => {
            output.class(value.element.clone().into_owned());
            // Not one more than they are.
            output.varint(Output::length(value.constants.len())? - 1);
            let names = constants_of(&value.element);
            value.constants.iter().try_for_each(|constant| write_constant(output, names, constant))?;
        }
        Value::Collection(value) => match known(&value.class).map(|class| class.kind) {
            Some(ClassKind::Collection(layout)) => write_collection(output, value, layout)?,
            _ => return Err(unknown(&value.class, "collection")),
        },
        Value::Map(value) => match known(&value.class).map(|class| class.kind) {
            Some(ClassKind::Map(layout)) => write_map(output, value, layout)?,
            _ => return Err(unknown(&value.class, "map")),
        },
        Value::Array(value) => write_array(output, &value.class, &value.elements)?,
        value => {
            if let Value::Object(object) = value
                && let Some(ClassKind::Fields(fields)) = known(&object.class).map(|class| class.kind)
            {
                return fields::write(output, object, fields);
            }
            return Err(Fault::new(format!(
                "the fields of the class `{}` are not known: write it as a struct of this name",
                value.class()
            )));
        }
    }
    Ok(())
}

fn write_constant(output: &mut Output, names: Names, constant: &Constant) -> Outcome<()> {
    let ordinal = match constant {
        Constant::Ordinal(ordinal) => Some(*ordinal),
        Constant::Name(name) => {
            names.and_then(|names| names.iter().position(|known| known == name)).map(|ordinal| ordinal as u32)
        }
    };
    match ordinal {
        Some(ordinal) => output.varint(ordinal.saturating_add(1)),
        None => return Err(Fault::new("Kryo writes the number of a constant, not its name")),
    }
    Ok(())
}

fn write_comparator(output: &mut Output, comparator: &Option<ClassName>) -> Outcome<()> {
    let Some(comparator) = comparator else {
        output.byte(0);
        return Ok(());
    };
    let Some((name, constant)) = COMPARATORS.into_iter().find(|(name, _)| name == comparator) else {
        return Err(unknown(comparator, "comparator"));
    };
    output.class(name);
    if constant {
        output.varint(1);
    }
    Ok(())
}

fn write_collection(output: &mut Output, collection: &Collection, layout: Layout) -> Outcome<()> {
    let elements = &collection.elements;
    let wrong = || Fault::new(format!("a `{}` does not have {} elements", collection.class, elements.len()));
    match (layout, &elements[..]) {
        (Layout::Empty, []) => return Ok(()),
        (Layout::Singleton, [element]) => return write(output, element),
        (Layout::Empty | Layout::Singleton, _) => return Err(wrong()),
        _ => {}
    }
    let mut present = elements.iter().filter(|element| **element != Value::Null);
    let first = present.next();
    let same = first.is_none_or(|first| present.all(|element| element.class() == first.class()));
    let nulls = elements.contains(&Value::Null);
    output.flagged(same && !elements.is_empty(), Output::length(elements.len())?);
    if layout == Layout::Sorted {
        write_comparator(output, &collection.comparator)?;
    }
    match first {
        _ if elements.is_empty() => Ok(()),
        _ if !same => elements.iter().try_for_each(|element| write(output, element)),
        None => {
            output.byte(0);
            Ok(())
        }
        Some(first) => {
            write_class(output, first);
            if layout != Layout::Immutable {
                output.byte(nulls.into());
            } else if nulls {
                return Err(Fault::new(format!("a `{}` holds no nulls", collection.class)));
            }
            let null = null_of(first.class());
            elements.iter().try_for_each(|element| write_element(output, element, null, nulls))
        }
    }
}

/// A value whose class was written before, with a null's mark where there are nulls.
fn write_element(output: &mut Output, element: &Value, null: Option<u8>, nulls: bool) -> Outcome<()> {
    if nulls {
        if *element == Value::Null {
            output.byte(null.unwrap_or(0));
            return Ok(());
        }
        if null.is_none() {
            output.byte(1);
        }
    }
    write_content(output, element)
}

fn write_map(output: &mut Output, map: &Map, layout: Layout) -> Outcome<()> {
    let count = map.entries.len();
    match layout {
        Layout::Empty if count == 0 => return Ok(()),
        Layout::Singleton if count == 1 => {}
        Layout::Empty | Layout::Singleton => {
            return Err(Fault::new(format!("a `{}` does not have {count} entries", map.class)));
        }
        Layout::Plain | Layout::Sorted | Layout::Immutable => {
            output.varint(Output::length(count)?);
            if layout == Layout::Sorted {
                write_comparator(output, &map.comparator)?;
            }
        }
    }
    map.entries.iter().try_for_each(|(key, value)| {
        write(output, key)?;
        write(output, value)
    })
}

fn write_array(output: &mut Output, class: &str, elements: &[Value]) -> Outcome<()> {
    output.varint(Output::length(elements.len())?);
    let descriptor = class.strip_prefix('[').ok_or_else(|| unknown(class, "array"))?;
    for element in elements {
        let fits = match (descriptor, element) {
            ("Z", Value::Boolean(_))
            | ("S", Value::Short(_))
            | ("C", Value::Character(_))
            | ("I", Value::Integer(_))
            | ("J", Value::Long(_))
            | ("F", Value::Float(_))
            | ("D", Value::Double(_)) => {
                write_content(output, element)?;
                true
            }
            (array, Value::Null) if array.starts_with('[') => {
                output.byte(0);
                true
            }
            ("[B", Value::Bytes(_)) => {
                write_content(output, element)?;
                true
            }
            (array, Value::Array(inner)) if array.starts_with('[') => {
                output.deeper()?;
                write_array(output, array, &inner.elements)?;
                output.shallower();
                inner.class == array
            }
            (element_class, element) if element_class.starts_with('L') => {
                match final_element(element_class) {
                    None => {
                        write(output, element)?;
                        true
                    }
                    Some(class) => {
                        let name = match class {
                            Final::Numbered(number) => number.name(),
                            Final::Known(class) => class.name,
                        };
                        write_element(output, element, null_of(name), true)?;
                        *element == Value::Null || element.class() == name
                    }
                }
            }
            _ => false,
        };
        if !fits {
            return Err(Fault::new(format!("a `{}` is no element of a `{class}`", element.class())));
        }
    }
    Ok(())
}
