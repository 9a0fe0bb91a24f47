//! A [`Value`] to nodes.

use super::{PATTERN, has_known_fields, is_time, only_field};
use crate::jackson::failure::{Failure, Outcome};
use crate::jackson::mapper::{Mapper, Typing};
use crate::jackson::node::{Is, Key, MAX_BIG_BYTES, MAX_DIGITS, Node};
use crate::jackson::times;
use crate::jackson::write::{CLASS, enum_set_class, refused};
use crate::java::class::known;
use crate::java::{Array, ClassName, Classed, Constant, Object, Value};
use crate::number::{java_float, java_text};
use crate::shown::shown;

/// A map's key, as Jackson prints it.
pub(in crate::jackson) fn key(value: &Value) -> Option<Key<'static>> {
    let text = match value {
        Value::Long(key) => return Some(Key::Number(*key)),
        Value::Integer(key) => return Some(Key::Number((*key).into())),
        Value::String(text) => text.clone(),
        Value::Boolean(key) => key.to_string(),
        Value::Byte(key) => key.to_string(),
        Value::Short(key) => key.to_string(),
        Value::Character(key) => char::from_u32((*key).into())?.to_string(),
        Value::Float(key) => java_float(*key),
        Value::Double(key) => java_text(*key),
        Value::BigInteger(key) => key.to_string(),
        Value::BigDecimal(key) => key.to_string(),
        Value::Uuid(key) => key.to_string(),
        Value::Text(text) if !is_time(&text.class) => text.text.clone(),
        Value::Enum(constant) => name(&constant.constant).ok()?.to_owned(),
        _ => return None,
    };
    Some(Key::Text(text.into()))
}

fn name(constant: &Constant) -> Outcome<&str> {
    match constant {
        Constant::Name(name) => Ok(name),
        _ => Err(Failure::new("a constant of an enum that has only its number cannot be written by name")),
    }
}

/// Without its class, as at the root or where a field declares it.
fn bare(value: &Value, mapper: &Mapper) -> Option<Is<'static>> {
    Some(match value {
        Value::Byte(value) => Is::Int((*value).into()),
        Value::Short(value) => Is::Int((*value).into()),
        Value::Integer(value) => Is::Int((*value).into()),
        Value::Long(value) => Is::Int(*value),
        Value::Character(value) => Is::Text(char::from_u32((*value).into())?.to_string().into()),
        Value::Float(value) => Is::Float(*value),
        Value::Double(value) => Is::Double(*value),
        Value::Boolean(value) => Is::Bool(*value),
        Value::Bytes(value) => Is::Bytes(value.clone().into()),
        Value::BigInteger(value) => Is::Big(value.clone()),
        Value::BigDecimal(value) => Is::Decimal(Box::new(value.clone())),
        Value::Uuid(value) => Is::Text(value.to_string().into()),
        Value::Date(_)
        | Value::Instant(_)
        | Value::LocalDate(_)
        | Value::LocalTime(_)
        | Value::LocalDateTime(_)
        | Value::Duration(_) => times::write(value, mapper).ok()?,
        Value::Text(value) if is_time(&value.class) => {
            times::write_text(&value.class, &value.text, mapper).ok()?
        }
        Value::Text(value) => Is::Text(value.text.clone().into()),
        Value::Enum(value) => Is::Text(name(&value.constant).ok()?.to_owned().into()),
        _ => return None,
    })
}

/// Where an `Object` is declared, the place is `open`, and the class is written. Elsewhere it depends on the
/// class.
pub(in crate::jackson) fn write(value: Value, open: bool, mapper: &Mapper) -> Outcome<Node<'static>> {
    let is = match value {
        Value::Null => Is::Null,
        Value::Boolean(value) => Is::Bool(value),
        Value::Integer(value) => Is::Int(value.into()),
        Value::Double(value) if value.is_finite() => Is::Double(value),
        Value::String(text) => Is::Text(text.into()),
        Value::Bare(value) => match bare(&value, mapper) {
            Some(is) => is,
            None => return write(*value, false, mapper),
        },
        Value::Object(object) => {
            if let (PATTERN, Some((_, Value::String(pattern)))) = (&*object.class, object.fields.first())
                && has_known_fields(&object)
            {
                let is = Is::Text(pattern.clone().into());
                return Ok(if open { wrapped(PATTERN, is, mapper) } else { is.into() });
            }
            if has_known_fields(&object) {
                return known_fields(*object, mapper);
            }
            return self::object(
                object.class,
                object.fields.into_iter().map(|(name, value)| (Some(Key::Text(name.into())), value)),
                mapper,
            );
        }
        Value::Map(map) => {
            return self::object(
                map.class,
                map.entries.into_iter().map(|(name, value)| (key(&name), value)),
                mapper,
            );
        }
        Value::Collection(list) => {
            return Ok(wrapped(list.class, Is::Array(all(list.elements, mapper)?), mapper));
        }
        Value::EnumSet(set) => {
            let names = set.constants.iter().map(|constant| Ok(Node::text(name(constant)?.to_owned())));
            return Ok(wrapped(
                enum_set_class(&set.element),
                Is::Array(names.collect::<Outcome<_>>()?),
                mapper,
            ));
        }
        Value::Array(array) => return self::array(*array, open, mapper),
        Value::Optional(_) => return Err(refused(value.class())),
        Value::Opaque(object) => return Err(refused(&object.class)),
        Value::Serialized(object) => {
            let refused = refused(object.class());
            return write(object.into_value().ok_or(refused)?, open, mapper);
        }
        Value::Classed(classed) => {
            let Classed { class, value } = *classed;
            if let Value::Object(object) = &value
                && object.class == class
                && has_known_fields(object)
            {
                let fields = object.fields.iter().cloned();
                let fields = fields.map(|(name, value)| (Some(Key::Text(name.into())), value));
                return self::object(class, fields, mapper);
            }
            let node = write(value, false, mapper)?;
            let is = match node.is {
                Is::Bare(elements) => Is::Array(elements),
                is => is,
            };
            return Ok(wrapped(class, is, mapper));
        }
        value => return self::scalar(&value, open, mapper),
    };
    Ok(is.into())
}

/// With its class in front, if classes are written.
fn wrapped(class: impl Into<ClassName>, is: Is<'static>, mapper: &Mapper) -> Node<'static> {
    match mapper.typing {
        Typing::Nowhere => is.into(),
        _ => Node::wrapped(class.into(), is),
    }
}

/// One with a single number or boolean is that.
fn known_fields(object: Object, mapper: &Mapper) -> Outcome<Node<'static>> {
    match (only_field(&object.class), object.fields.first().and_then(|(_, value)| bare(value, mapper))) {
        (Some(_), Some(is)) => Ok(wrapped(object.class, is, mapper)),
        _ => Err(Failure::new(format!("the fields of a {} are those of Kryo only", shown(&object.class)))),
    }
}

/// What has its class in front, unless it is of a final class where no `Object` is declared.
fn scalar(value: &Value, open: bool, mapper: &Mapper) -> Outcome<Node<'static>> {
    let Some(is) = bare(value, mapper) else {
        let class = shown(value.class());
        let time = match value {
            Value::Text(text) => times::write_text(&text.class, &text.text, mapper),
            _ => times::write(value, mapper),
        };
        return Err(match time {
            Err(why) if is_time(&class) || class == "java.util.Date" => times::refused(&class, why),
            _ => Failure::new(format!("this {class} has no text")),
        });
    };
    let big = match &is {
        Is::Big(value) => Some(value),
        Is::Decimal(value) => Some(value.unscaled()),
        _ => None,
    };
    if big.is_some_and(|big| big.as_be_bytes().len() > MAX_BIG_BYTES) {
        return Err(Failure::new(format!(
            "a number of more than {MAX_DIGITS} digits is more than Jackson reads"
        )));
    }
    Ok(if !open && is_last(value, mapper) {
        is.into()
    } else {
        wrapped(value.class().to_owned(), is, mapper)
    })
}

/// Whether a scalar is of a final class.
fn is_last(value: &Value, mapper: &Mapper) -> bool {
    match value {
        // By Redisson's doing they are not.
        Value::Long(_) | Value::Uuid(_) => mapper.typing != Typing::Property,
        Value::BigInteger(_) | Value::BigDecimal(_) | Value::Date(_) => false,
        // Bare it is read from an enum whose constants have no bodies, but as a text.
        Value::Enum(_) => false,
        Value::Text(text) => known(&text.class).is_some_and(|class| class.is_final),
        _ => true,
    }
}

/// Whether a letter stands for a primitive type in the class of an array.
fn is_primitive(letter: &str) -> bool {
    matches!(letter, "Z" | "B" | "S" | "C" | "I" | "J" | "F" | "D")
}

/// Whether an array is of a final class.
fn is_last_array(class: &str) -> bool {
    let content = class.trim_start_matches('[');
    is_primitive(content)
        || matches!(
            content,
            "Ljava.lang.String;" | "Ljava.lang.Integer;" | "Ljava.lang.Double;" | "Ljava.lang.Boolean;"
        )
}

/// Whether a value that was read behind its class is written with it.
pub(super) fn is_classed(value: &Value, open: bool, mapper: &Mapper) -> bool {
    match value {
        Value::Null | Value::Boolean(_) | Value::Integer(_) | Value::String(_) | Value::Bare(_) => false,
        Value::Double(value) if value.is_finite() => false,
        Value::Object(_) => true,
        Value::Map(_) | Value::Collection(_) | Value::EnumSet(_) | Value::Classed(_) => true,
        Value::Array(array) => open || !is_last_array(&array.class),
        value => open || !is_last(value, mapper),
    }
}

fn all(values: Vec<Value>, mapper: &Mapper) -> Outcome<Vec<Node<'static>>> {
    values.into_iter().map(|value| write(value, true, mapper)).collect()
}

fn object(
    class: ClassName,
    fields: impl Iterator<Item = (Option<Key<'static>>, Value)>,
    mapper: &Mapper,
) -> Outcome<Node<'static>> {
    let mut entries = Vec::new();
    if !class.is_empty() && mapper.typing == Typing::Property {
        entries.push((Key::Text(CLASS.into()), Node::text(class.clone())));
    }
    for (key, value) in fields {
        let Some(key) = key else {
            return Err(Failure::new("a map's key is text, a number, a boolean, an enum or a UUID"));
        };
        // Redisson writes a null only where an annotation wants it, but then the payload has it again.
        entries.push((key, write(value, true, mapper)?));
    }
    Ok(match mapper.typing == Typing::Wrapper && !class.is_empty() {
        true => Node::wrapped(class, Is::Object(entries)),
        false => Is::Object(entries).into(),
    })
}

fn array(array: Array, open: bool, mapper: &Mapper) -> Outcome<Node<'static>> {
    let Array { class, elements } = array;
    let content = class.trim_start_matches('[');
    let dimensions = class.len() - content.len();
    let primitive = dimensions == 1 && is_primitive(content);
    if &class[..] == "[C" {
        let text = elements.iter().filter_map(|element| bare(element, mapper)).filter_map(|is| match is {
            Is::Text(text) => Some(text),
            _ => None,
        });
        let text = Is::Text(text.collect::<String>().into());
        return Ok(if open { wrapped(class, text, mapper) } else { text.into() });
    }
    let nodes = match primitive {
        true => elements
            .iter()
            .map(|element| {
                Ok(bare(element, mapper)
                    .ok_or_else(|| Failure::new(format!("no element of {}", shown(&class))))?
                    .into())
            })
            .collect::<Outcome<_>>()?,
        false => all(elements, mapper)?,
    };
    Ok(match class.is_empty() || !open && is_last_array(&class) {
        true => Is::Bare(nodes).into(),
        false => wrapped(class, Is::Array(nodes), mapper),
    })
}
