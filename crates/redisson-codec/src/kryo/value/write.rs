//! A [`Value`] to its bytes.

use super::{COMPARATORS, Final, constants_of, final_element, is_open, null_of};
use crate::java::known_classes::{ClassKind, Layout, known};
use crate::java::{ClassName, Collection, Constant, Map, Opaque, Value};
#[cfg(feature = "classes")]
use crate::kryo::described;
use crate::kryo::failure::{Failure, Outcome};
use crate::kryo::numbered::Numbered;
use crate::kryo::output::Output;
use crate::kryo::{parts_as_text, scalar, small_classes};
use crate::shown::shown;

/// A value with its class in front.
pub(in crate::kryo) fn write(output: &mut Output, value: &Value) -> Outcome<()> {
    let value = bare(value);
    if *value == Value::Null {
        output.byte(0);
        return Ok(());
    }
    if let Value::Opaque(value) = value {
        return write_opaque(output, value);
    }
    write_class(output, value);
    write_content(output, value)
}

/// The numbers of classes in it are those of a payload that begins with it.
fn write_opaque(output: &mut Output, value: &Opaque) -> Outcome<()> {
    if output.here().at > 0 {
        return Err(Failure::new(format!(
            "an object of the unknown class `{}` can only be a whole payload",
            shown(&value.class)
        )));
    }
    output.class(value.class.clone().into_owned());
    output.raw(&value.bytes);
    Ok(())
}

pub(in crate::kryo) fn write_class(output: &mut Output, value: &Value) {
    match bare(value) {
        Value::Boolean(_) => output.numbered(Numbered::Boolean),
        Value::Byte(_) => output.numbered(Numbered::Byte),
        Value::Short(_) => output.numbered(Numbered::Short),
        Value::Character(_) => output.numbered(Numbered::Character),
        Value::Integer(_) => output.numbered(Numbered::Integer),
        Value::Long(_) => output.numbered(Numbered::Long),
        Value::Float(_) => output.numbered(Numbered::Float),
        Value::Double(_) => output.numbered(Numbered::Double),
        Value::String(_) => output.numbered(Numbered::String),
        value => output.class(value.class()),
    }
}

/// A value that is known not to be null.
pub(in crate::kryo) fn write_content(output: &mut Output, value: &Value) -> Outcome<()> {
    match bare(value) {
        Value::Null => return Err(Failure::new("a null where none may be")),
        Value::Boolean(value) => output.byte((*value).into()),
        Value::Byte(value) => output.byte(*value as u8),
        Value::Short(value) => output.raw(&value.to_le_bytes()),
        Value::Character(value) => output.raw(&value.to_le_bytes()),
        Value::Integer(value) => output.int(*value),
        Value::Long(value) => output.long(*value),
        Value::Float(value) => output.raw(&value.to_le_bytes()),
        Value::Double(value) => output.raw(&value.to_le_bytes()),
        Value::String(value) => output.text(value),
        // Whatever has a class with a name is a level when it is read.
        value => {
            output.deeper()?;
            write_named(output, value)?;
            output.shallower();
        }
    }
    Ok(())
}

fn unknown(class: &str, kind: &str) -> Failure {
    Failure::new(format!("`{}` is not a {kind} class whose layout is known", shown(class)))
}

pub(in crate::kryo) fn write_named(output: &mut Output, value: &Value) -> Outcome<()> {
    if scalar::write(output, value)? {
        return Ok(());
    }
    #[cfg(feature = "classes")]
    if known(value.class()).is_none() && described::write_value(output, value)? {
        return Ok(());
    }
    match value {
        Value::Text(value) => match known(&value.class) {
            Some(class) => parts_as_text::write(output, class, &value.text)?,
            None => return Err(unknown(&value.class, "text")),
        },
        Value::Bytes(value) => {
            output.varint(Output::length(value.len())?);
            output.raw(value);
        }
        Value::Optional(None) => output.byte(0),
        Value::Optional(Some(value)) => write(output, value)?,
        Value::Enum(value) => {
            write_constant(output, &value.class, constants_of(&value.class), &value.constant)?;
        }
        Value::EnumSet(value) => {
            output.class(value.element.clone().into_owned());
            // Not one more than they are.
            output.varint(Output::length(value.constants.len())? - 1);
            let (class, mut constants) = (&value.element, value.constants.iter());
            #[cfg(feature = "classes")]
            if let Some(names) = output.described.as_deref().and_then(|own| own.constants(class)) {
                return constants.try_for_each(|one| write_constant(output, class, Some(&names), one));
            }
            let names = constants_of(class);
            constants.try_for_each(|one| write_constant(output, class, names, one))?;
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
        Value::Serialized(object) => output.serialized(object),
        Value::Object(object) => small_classes::write_object(output, object)?,
        value => {
            return Err(Failure::new(format!(
                "the fields of the class `{}` are not known: write it as a struct of this name",
                shown(value.class())
            )));
        }
    }
    Ok(())
}

/// The number of a constant of an enum of this class, which may have it by its name if these are known.
pub(in crate::kryo) fn write_constant<S: AsRef<str>>(
    output: &mut Output,
    class: &str,
    names: Option<&[S]>,
    constant: &Constant,
) -> Outcome<()> {
    let ordinal = match (constant, names) {
        (Constant::Ordinal(ordinal), _) => *ordinal,
        (Constant::Name(name), Some(names)) => match names.iter().position(|known| known.as_ref() == name) {
            Some(ordinal) => ordinal as u32,
            None => return Err(Failure::new(format!("`{}` has no such constant", shown(class)))),
        },
        (Constant::Name(_), None) => {
            return Err(Failure::new("Kryo writes the number of a constant, not its name"));
        }
    };
    output.varint(ordinal.saturating_add(1));
    Ok(())
}

pub(in crate::kryo) fn write_comparator(output: &mut Output, comparator: &Option<ClassName>) -> Outcome<()> {
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

pub(in crate::kryo) fn write_collection(
    output: &mut Output,
    collection: &Collection,
    layout: Layout,
) -> Outcome<()> {
    let elements = &collection.elements;
    let wrong = || {
        Failure::new(format!("a `{}` does not have {} elements", shown(&collection.class), elements.len()))
    };
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
                return Err(Failure::new(format!("a `{}` holds no nulls", shown(&collection.class))));
            }
            let null = null_of(first.class());
            #[cfg(feature = "classes")]
            let null = null.or_else(|| output.described.as_deref()?.null_of(first.class()));
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

pub(in crate::kryo) fn write_map(output: &mut Output, map: &Map, layout: Layout) -> Outcome<()> {
    let count = map.entries.len();
    match layout {
        Layout::Empty if count == 0 => return Ok(()),
        Layout::Singleton if count == 1 => {}
        Layout::Empty | Layout::Singleton => {
            return Err(Failure::new(format!("a `{}` does not have {count} entries", shown(&map.class))));
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

/// What is written of a value that Jackson writes without its class.
fn bare(value: &Value) -> &Value {
    if let Value::Bare(inside) = value { bare(inside) } else { value }
}

fn write_array(output: &mut Output, class: &str, elements: &[Value]) -> Outcome<()> {
    output.varint(Output::length(elements.len())?);
    let descriptor = class.strip_prefix('[').ok_or_else(|| unknown(class, "array"))?;
    for element in elements {
        let element = bare(element);
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
                    // Whether Kryo writes the classes of the elements depends on whether theirs is final.
                    None => {
                        match described_element(output, element_class) {
                            #[cfg(feature = "classes")]
                            Some((class, true)) => described::write_element(output, class, element)?,
                            None if !is_open(element_class) => {
                                return Err(Failure::new(format!(
                                    "the elements of the array `{}` are not known: write it as a list with `java::array`",
                                    shown(class)
                                )));
                            }
                            _ => write(output, element)?,
                        }
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
            let (element, array) = (shown(element.class()), shown(class));
            return Err(Failure::new(format!("a `{element}` is no element of a `{array}`")));
        }
    }
    Ok(())
}

/// The class of the elements of an array, if it is described, and whether it is final.
#[cfg(feature = "classes")]
fn described_element<'a>(output: &Output, element: &'a str) -> Option<(&'a str, bool)> {
    let class = element.strip_prefix('L')?.strip_suffix(';')?;
    Some((class, output.described.as_deref()?.is_final(class)?))
}

#[cfg(not(feature = "classes"))]
fn described_element<'a>(_: &Output, _: &'a str) -> Option<(&'a str, bool)> {
    None
}
