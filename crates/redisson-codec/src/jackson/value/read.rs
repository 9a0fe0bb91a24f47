//! A [`Value`] from nodes.

use std::borrow::Cow;

use base64::Engine;

use super::write::is_classed;
use super::{PATTERN, as_text, has_known_fields, is_time, only_field};
use crate::jackson::base64::MIME_NO_LINEFEEDS;
use crate::jackson::failure::{Failure, Outcome};
use crate::jackson::mapper::{Mapper, Times, Typing};
use crate::jackson::node::{Is, Key, Node};
use crate::jackson::times;
use crate::jackson::write::CLASS;
use crate::java::known_classes::{Class, ClassKind, FieldKind, Scalar, known};
use crate::java::{
    Array, BigDecimal, BigInteger, ClassName, Classed, Collection, Constant, Date, Enum, EnumSet, Map,
    Object, Text, Uuid, Value,
};
use crate::memory::{self, TooMuch};
use crate::number::{java_float, java_text};
use crate::shown::shown;

/// The class in front and what is behind it, if that is what the two elements are.
///
/// `["a.b","c"]` may also be an array of two strings: both are written alike.
fn pair<'n, 'a>(elements: &'n [Node<'a>], mapper: &Mapper) -> Option<(&'n str, &'n Node<'a>)> {
    let [class, inside] = elements else { return None };
    if mapper.typing == Typing::Nowhere {
        return None;
    }
    let class = as_text(class)?;
    let letter =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.' | ';' | '[' | '<' | '>' | ',' | '-');
    let named = class.starts_with('[') || class.contains('.') && class.chars().all(letter);
    let fits = match inside.is {
        Is::Array(_) | Is::Bare(_) => true,
        Is::Text(_) => !class.starts_with('[') || matches!(class, "[B" | "[C"),
        Is::Object(_) => mapper.typing == Typing::Wrapper,
        Is::Null => false,
        _ => true,
    };
    (named && fits).then_some((class, inside))
}

fn owned(class: &str) -> ClassName {
    match known(class) {
        Some(class) => Cow::Borrowed(class.name),
        None => Cow::Owned(class.to_owned()),
    }
}

/// Any node.
pub(in crate::jackson) fn read(node: &Node<'_>, root: bool, mapper: &Mapper) -> Outcome<Value> {
    // What is in a box, or in a text, is not in the list that the value is in.
    memory::take(match &node.is {
        Is::Object(_) | Is::Array(_) | Is::Bare(_) => size_of::<Object>(),
        Is::Text(text) => text.len(),
        Is::Bytes(bytes) => size_of::<Value>() + bytes.len(),
        _ => 0,
    })
    .map_err(|why| Failure::from(why).at(node.at))?;
    let without_class = |value| if root { value } else { Value::Bare(Box::new(value)) };
    Ok(match &node.is {
        Is::Null => Value::Null,
        Is::Bool(value) => Value::Boolean(*value),
        Is::Int(value) => match i32::try_from(*value) {
            Ok(value) => Value::Integer(value),
            Err(_) => Value::Bare(Box::new(Value::Long(*value))),
        },
        Is::Number(text) => number(text).ok_or_else(|| wrong(node, "java.lang.Double"))?,
        Is::Double(value) if value.is_finite() => Value::Double(*value),
        Is::Double(value) => without_class(Value::Double(*value)),
        Is::Float(value) => without_class(Value::Float(*value)),
        Is::Big(value) => Value::Bare(Box::new(Value::BigInteger(value.clone()))),
        Is::Decimal(value) => Value::Bare(Box::new(Value::BigDecimal((**value).clone()))),
        Is::Text(text) => Value::String(text.to_string()),
        Is::Bytes(bytes) => without_class(Value::Bytes(bytes.to_vec())),
        Is::Object(entries) => object_of(None, entries, mapper)?,
        Is::Array(elements) => match pair(elements, mapper) {
            Some((class, inside)) => classed(class, inside, root, mapper)?,
            None => array_of("", elements, mapper)?,
        },
        Is::Bare(elements) => array_of("", elements, mapper)?,
    })
}

/// A double, or a decimal number if Java would write the double in another way: 1.50, as a field of a
/// `BigDecimal` may have it.
fn number(text: &str) -> Option<Value> {
    let double = text.parse().ok()?;
    match text.contains(['e', 'E']) || java_text(double) == text {
        true => Some(Value::Double(double)),
        false => Some(Value::Bare(Box::new(Value::BigDecimal(text.parse().ok()?)))),
    }
}

fn each(elements: &[Node<'_>], mapper: &Mapper) -> Outcome<Vec<Value>> {
    all(elements, elements.len(), |element| read(element, false, mapper))
}

/// As many values as there are, each read by the same function.
fn all<I: IntoIterator, T>(items: I, count: usize, read: impl Fn(I::Item) -> Outcome<T>) -> Outcome<Vec<T>> {
    let mut all = memory::list(count)?;
    for item in items {
        all.push(read(item)?);
    }
    Ok(all)
}

fn array_of(class: &str, elements: &[Node<'_>], mapper: &Mapper) -> Outcome<Value> {
    let primitive = match class {
        "[I" => "java.lang.Integer",
        "[J" => "java.lang.Long",
        "[S" => "java.lang.Short",
        "[F" => "java.lang.Float",
        "[D" => "java.lang.Double",
        "[Z" => "java.lang.Boolean",
        _ => {
            return Ok(Value::Array(Box::new(Array {
                class: owned(class),
                elements: each(elements, mapper)?,
            })));
        }
    };
    let elements = all(elements, elements.len(), |element| of_class(primitive, element, mapper))?;
    Ok(Value::Array(Box::new(Array { class: owned(class), elements })))
}

/// Whether Java has this map, or one like it, in its library.
pub(in crate::jackson) fn is_map(class: &str) -> bool {
    let known = known(class).map(|class| class.kind);
    matches!(known, Some(ClassKind::Map(_))) || class.starts_with("java.util.") && class.contains("Map")
}

/// The class that an object names, if it may do so inside, and the entries that are not it.
#[inline]
pub(in crate::jackson) fn split_class<'n, 'a>(
    entries: &'n [(Key<'a>, Node<'a>)],
    inside: bool,
) -> (Option<(&'n str, u32)>, impl Iterator<Item = &'n (Key<'a>, Node<'a>)>) {
    let is_class = |(key, value): &(Key<'_>, Node<'_>)| {
        matches!(key, Key::Text(key) if key == CLASS) && as_text(value).is_some()
    };
    let at = if inside { entries.iter().position(is_class) } else { None };
    let class = at.and_then(|at| Some((as_text(&entries[at].1)?, entries[at].1.at)));
    (class, entries.iter().enumerate().filter(move |(index, _)| Some(*index) != at).map(|(_, entry)| entry))
}

/// An object with its class in front, or inside.
fn object_of(class: Option<&str>, entries: &[(Key<'_>, Node<'_>)], mapper: &Mapper) -> Outcome<Value> {
    let count = entries.len();
    // Where the class is in front, a property of this name is like any other.
    let inside = class.is_none() && mapper.typing.is_property();
    // Those of a map, since the names of properties are texts.
    let has_numbers = entries.iter().any(|(key, _)| matches!(key, Key::Number(_)));
    let (found, entries) = split_class(entries, inside);
    let class = class.or(found.map(|(class, _)| class)).unwrap_or_default();
    if is_map(class) || has_numbers {
        let entries = all(entries, count, |(key, value)| {
            let key = match key {
                Key::Text(key) => Value::String(key.to_string()),
                Key::Number(key) => Value::Long(*key),
            };
            Ok((key, read(value, false, mapper)?))
        })?;
        return Ok(Value::Map(Box::new(Map { class: owned(class), comparator: None, entries })));
    }
    let fields =
        all(entries, count, |(key, value)| Ok((key.text().into_owned(), read(value, false, mapper)?)))?;
    let object = Object { class: owned(class), fields };
    Ok(match has_known_fields(&object) {
        // Jackson does not write such an object like this: it is kept as it is.
        true => Value::Classed(Box::new(Classed {
            class: object.class.clone(),
            value: Value::Object(Box::new(object)),
        })),
        false => Value::Object(Box::new(object)),
    })
}

fn wrong(node: &Node<'_>, class: &str) -> Failure {
    Failure::new(format!("expected a {}, found {}", shown(class), node.kind())).at(node.at)
}

/// What is behind a class: a value of this class if it is one, and otherwise as it is.
fn classed(class: &str, node: &Node<'_>, root: bool, mapper: &Mapper) -> Outcome<Value> {
    match of_class(class, node, mapper) {
        Ok(value) if is_classed(&value, !root, mapper) && is_written_as(&value, node, mapper) => Ok(value),
        // What is in it was read without its class, so it is as deep as before.
        _ => {
            let value = read(node, true, mapper)?;
            Ok(Value::Classed(Box::new(Classed { class: owned(class), value })))
        }
    }
}

/// Whether a value that may have several forms is written in this one.
fn is_written_as(value: &Value, node: &Node<'_>, mapper: &Mapper) -> bool {
    let written = match value {
        Value::Text(text) if is_time(&text.class) => times::write_text(&text.class, &text.text, mapper),
        Value::Date(_)
        | Value::Instant(_)
        | Value::LocalDate(_)
        | Value::LocalTime(_)
        | Value::LocalDateTime(_)
        | Value::Duration(_) => times::write(value, mapper),
        // A `java.sql.Timestamp`.
        Value::Object(object) if !matches!(node.is, Is::Object(_)) => match &object.fields[..] {
            [(_, time @ Value::Date(_))] => times::write(time, mapper),
            _ => return true,
        },
        value => return is_written_like(value, node, mapper.is_binary),
    };
    written.is_ok_and(|written| times::is_same(&written, &node.is))
}

/// The same of numbers and texts.
fn is_written_like(value: &Value, node: &Node<'_>, is_binary: bool) -> bool {
    match (value, &node.is) {
        (Value::Float(value), Is::Number(text)) => java_float(*value) == *text,
        (Value::Float(value), Is::Text(_)) => !value.is_finite() && !is_binary,
        (Value::Float(_), is) => matches!(is, Is::Float(_)),
        (Value::Double(value), Is::Number(text)) => java_text(*value) == *text,
        (Value::Double(value), Is::Text(_)) => !value.is_finite() && !is_binary,
        (Value::Bytes(_), Is::Text(_)) => !is_binary,
        (Value::Double(_), is) => matches!(is, Is::Double(_)),
        (Value::BigDecimal(_), Is::Number(text)) => !text.contains(['e', 'E']),
        (Value::Uuid(value), Is::Text(text)) => value.to_string() == *text,
        (Value::Array(array), Is::Array(nodes) | Is::Bare(nodes))
            if matches!(&array.class[..], "[F" | "[D") =>
        {
            array.elements.iter().zip(nodes).all(|(value, node)| is_written_like(value, node, is_binary))
        }
        _ => true,
    }
}

/// A `char[]`.
fn characters(text: &str) -> Result<Value, TooMuch> {
    let count = text.encode_utf16().count();
    memory::take(count * size_of::<Value>())?;
    let mut elements = Vec::with_capacity(count);
    elements.extend(text.encode_utf16().map(Value::Character));
    Ok(Value::Array(Box::new(Array { class: "[C".into(), elements })))
}

/// The value behind its class.
fn of_class(class: &str, node: &Node<'_>, mapper: &Mapper) -> Outcome<Value> {
    let wrong = || wrong(node, class);
    let value = match class {
        "java.lang.Boolean" => match node.is {
            Is::Bool(value) => Some(Value::Boolean(value)),
            _ => None,
        },
        "java.lang.Byte" => integer(node).map(Value::Byte),
        "java.lang.Short" => integer(node).map(Value::Short),
        "java.lang.Integer" => integer(node).map(Value::Integer),
        "java.lang.Long" => integer(node).map(Value::Long),
        "java.lang.Float" => float(node).map(Value::Float),
        "java.lang.Double" => double(node).map(Value::Double),
        "java.lang.Character" => as_text(node).and_then(unit).map(Value::Character),
        "java.lang.String" => as_text(node).map(Value::from),
        "[B" => bytes(node).map(|bytes| Value::Bytes(bytes.into_owned())),
        "[C" => {
            let characters = as_text(node).map(characters).transpose();
            characters.map_err(|why| Failure::from(why).at(node.at))?
        }
        _ => return of_other_class(class, node, mapper),
    };
    value.ok_or_else(wrong)
}

fn of_other_class(class: &str, node: &Node<'_>, mapper: &Mapper) -> Outcome<Value> {
    if mapper.times != Times::Refused
        && let Some(known) = known(class)
    {
        match known.kind {
            ClassKind::Scalar(kind) => {
                return scalar_of(kind, node, mapper).ok_or_else(|| wrong(node, class));
            }
            ClassKind::Text(_) if is_time(class) => {
                let text = times::read_text(class, node).ok_or_else(|| wrong(node, class))?;
                return Ok(Value::Text(Box::new(Text { class: owned(class), text })));
            }
            _ => {}
        }
    }
    let elements = match &node.is {
        Is::Object(entries) => return object_of(Some(class), entries, mapper),
        Is::Array(elements) | Is::Bare(elements) => elements,
        _ => {
            if let Some((name, field)) = only_field(class) {
                let value = match (field, &node.is) {
                    (FieldKind::Boolean, Is::Bool(value)) => Some(Value::Boolean(*value)),
                    (FieldKind::Int, _) => integer(node).map(Value::Integer),
                    (FieldKind::Date, _) => {
                        integer(node).map(|millis| Value::Date(Date::from_millis(millis)))
                    }
                    _ => integer(node).map(Value::Long),
                };
                let fields = vec![(name.to_owned(), value.ok_or_else(|| wrong(node, class))?)];
                return Ok(Value::Object(Box::new(Object { class: owned(class), fields })));
            }
            return match known(class) {
                Some(Class { kind: ClassKind::Scalar(kind), .. }) => {
                    scalar_of(*kind, node, mapper).ok_or_else(|| wrong(node, class))
                }
                Some(Class { kind: ClassKind::Text(_), .. }) => match as_text(node) {
                    Some(text) if !is_time(class) => {
                        Ok(Value::Text(Box::new(Text { class: owned(class), text: text.to_owned() })))
                    }
                    _ => Err(wrong(node, class)),
                },
                _ => match as_text(node) {
                    Some(constant) => Ok(Value::Enum(Box::new(Enum {
                        class: owned(class),
                        constant: Constant::Name(constant.to_owned()),
                    }))),
                    None => Err(Failure::new(format!("the class {} is not known", shown(class))).at(node.at)),
                },
            };
        }
    };
    if class.starts_with('[') {
        return array_of(class, elements, mapper);
    }
    if let Some(element) = class.strip_prefix("java.util.EnumSet<").and_then(|rest| rest.strip_suffix('>')) {
        let constants = all(elements, elements.len(), |constant| match as_text(constant) {
            Some(name) => Ok(Constant::Name(name.to_owned())),
            None => Err(wrong(constant, element)),
        })?;
        return Ok(Value::EnumSet(Box::new(EnumSet {
            class: "java.util.RegularEnumSet".into(),
            element: owned(element),
            constants,
        })));
    }
    Ok(Value::Collection(Box::new(Collection {
        class: owned(class),
        comparator: None,
        elements: each(elements, mapper)?,
    })))
}

pub(in crate::jackson) fn integer<T: TryFrom<i64>>(node: &Node<'_>) -> Option<T> {
    match node.is {
        Is::Int(value) => value.try_into().ok(),
        _ => None,
    }
}

pub(in crate::jackson) fn double(node: &Node<'_>) -> Option<f64> {
    match &node.is {
        Is::Int(value) => Some(*value as f64),
        Is::Big(value) => value.to_string().parse().ok(),
        Is::Number(text) => text.parse().ok(),
        Is::Decimal(value) => value.to_string().parse().ok(),
        Is::Float(value) => Some((*value).into()),
        Is::Double(value) => Some(*value),
        Is::Text(text) => infinite(text),
        _ => None,
    }
}

pub(in crate::jackson) fn float(node: &Node<'_>) -> Option<f32> {
    match &node.is {
        // Not by way of a double, which would round twice.
        Is::Number(text) => text.parse().ok(),
        Is::Float(value) => Some(*value),
        _ => double(node).map(|value| value as f32),
    }
}

/// What JSON has no number for is text there.
fn infinite(text: &str) -> Option<f64> {
    Some(match text {
        "NaN" => f64::NAN,
        "Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        _ => return None,
    })
}

/// The only UTF-16 unit of a text.
pub(in crate::jackson) fn unit(text: &str) -> Option<u16> {
    let mut units = text.encode_utf16();
    let first = units.next()?;
    units.next().is_none().then_some(first)
}

pub(in crate::jackson) fn bytes<'n>(node: &'n Node<'_>) -> Option<Cow<'n, [u8]>> {
    match &node.is {
        Is::Bytes(bytes) => Some(Cow::Borrowed(bytes)),
        Is::Text(text) => MIME_NO_LINEFEEDS.decode(&**text).ok().map(Cow::Owned),
        _ => None,
    }
}

/// The same where the class is expected: Redisson 3 writes a UUID as its bytes in CBOR.
pub(in crate::jackson) fn typed_scalar_of(kind: Scalar, node: &Node<'_>, mapper: &Mapper) -> Option<Value> {
    match (kind, &node.is) {
        (Scalar::Uuid, Is::Bytes(bytes)) => {
            Some(Value::Uuid(Uuid::from_bytes(<[u8; 16]>::try_from(&**bytes).ok()?)))
        }
        _ => scalar_of(kind, node, mapper),
    }
}

/// A value of a class that has a type of its own.
pub(in crate::jackson) fn scalar_of(kind: Scalar, node: &Node<'_>, mapper: &Mapper) -> Option<Value> {
    Some(match kind {
        Scalar::BigInteger => Value::BigInteger(big(node)?),
        Scalar::BigDecimal => Value::BigDecimal(match &node.is {
            Is::Decimal(value) => (**value).clone(),
            Is::Number(text) => text.parse().ok()?,
            // What MessagePack has instead.
            Is::Double(value) if value.is_finite() => java_text(*value).parse().ok()?,
            Is::Float(value) if value.is_finite() => java_text((*value).into()).parse().ok()?,
            _ => BigDecimal::new(big(node)?, 0),
        }),
        Scalar::Uuid => Value::Uuid(as_text(node)?.parse::<Uuid>().ok()?),
        _ => return times::read(kind, node, mapper),
    })
}

/// An object of Java's library that Jackson writes as a text: a pattern, without its flags.
pub(in crate::jackson) fn pattern_of(class: &Class, node: &Node<'_>) -> Option<Value> {
    if class.name != PATTERN {
        return None;
    }
    let pattern = Value::String(as_text(node)?.to_owned());
    let fields = vec![("pattern".to_owned(), pattern), ("flags".to_owned(), Value::Integer(0))];
    Some(Value::Object(Box::new(Object { class: owned(class.name), fields })))
}

fn big(node: &Node<'_>) -> Option<BigInteger> {
    match &node.is {
        Is::Int(value) => Some((*value).into()),
        Is::Big(value) => Some(value.clone()),
        _ => None,
    }
}

/// Whether a class is a list or set that is read without knowing more about it.
pub(in crate::jackson) fn is_collection(class: &str) -> bool {
    let known = known(class).map(|class| class.kind);
    matches!(known, Some(ClassKind::Collection(_) | ClassKind::EnumSet))
        || class.starts_with("java.util.EnumSet<")
        || class.starts_with("java.util.Collections$")
}
