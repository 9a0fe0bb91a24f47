//! A [`Value`] to nodes.

use super::{is_time, only_field};
use crate::jackson::failure::{Failure, Outcome};
use crate::jackson::node::{Is, Key, MAX_BIG_BYTES, MAX_DIGITS, Node};
use crate::jackson::write::{CLASS, enum_set_class, refused};
use crate::java::class::{ClassKind, known};
use crate::java::{Array, ClassName, Constant, Object, Value};
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
fn bare(value: &Value) -> Option<Is<'static>> {
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
        Value::Date(value) => Is::Int(value.millis()),
        Value::Text(value) => Is::Text(value.text.clone().into()),
        Value::Enum(value) => Is::Text(name(&value.constant).ok()?.to_owned().into()),
        _ => return None,
    })
}

/// At the root it is the class of the value that decides whether the class is written, elsewhere `Object`.
pub(in crate::jackson) fn write(value: Value, root: bool) -> Outcome<Node<'static>> {
    let is = match value {
        Value::Null => Is::Null,
        Value::Boolean(value) => Is::Bool(value),
        Value::Integer(value) => Is::Int(value.into()),
        Value::Double(value) if value.is_finite() => Is::Double(value),
        Value::String(text) => Is::Text(text.into()),
        Value::Bare(value) => match bare(&value) {
            Some(is) => is,
            None => return write(*value, true),
        },
        Value::Object(object) => {
            if has_known_fields(&object) {
                return known_fields(*object);
            }
            return self::object(
                object.class,
                object.fields.into_iter().map(|(name, value)| (Some(Key::Text(name.into())), value)),
            );
        }
        Value::Map(map) => {
            return self::object(map.class, map.entries.into_iter().map(|(name, value)| (key(&name), value)));
        }
        Value::Collection(list) => {
            return Ok(Node::wrapped(list.class, Is::Array(all(list.elements)?)));
        }
        Value::EnumSet(set) => {
            let names = set.constants.iter().map(|constant| Ok(Node::text(name(constant)?.to_owned())));
            return Ok(Node::wrapped(
                enum_set_class(&set.element),
                Is::Array(names.collect::<Outcome<_>>()?),
            ));
        }
        Value::Array(array) => return self::array(*array, root),
        Value::Instant(_)
        | Value::LocalDate(_)
        | Value::LocalTime(_)
        | Value::LocalDateTime(_)
        | Value::Duration(_)
        | Value::Optional(_) => return Err(refused(value.class())),
        Value::Opaque(object) => return Err(refused(&object.class)),
        Value::Text(text) if is_time(&text.class) => return Err(refused(&text.class)),
        value => return self::scalar(&value, root),
    };
    Ok(is.into())
}

/// Whether an object has the fields that a class of Java's library has in Kryo.
fn has_known_fields(object: &Object) -> bool {
    match known(&object.class).map(|class| class.kind) {
        Some(ClassKind::Fields(fields)) => {
            object.fields.iter().map(|(name, _)| &name[..]).eq(fields.iter().map(|(name, _)| *name))
        }
        _ => false,
    }
}

/// One with a single number or boolean is that.
fn known_fields(object: Object) -> Outcome<Node<'static>> {
    match (only_field(&object.class), object.fields.first().and_then(|(_, value)| bare(value))) {
        (Some(_), Some(is)) => Ok(Node::wrapped(object.class, is)),
        _ => Err(Failure::new(format!("the fields of a {} are those of Kryo only", shown(&object.class)))),
    }
}

/// What has its class in front, unless it is the root and of a final class.
fn scalar(value: &Value, root: bool) -> Outcome<Node<'static>> {
    let Some(is) = bare(value) else {
        return Err(Failure::new(format!("this {} has no text", shown(value.class()))));
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
    let last = match value {
        // By Redisson's doing the first two are not.
        Value::Long(_) | Value::Uuid(_) | Value::BigInteger(_) | Value::BigDecimal(_) | Value::Date(_) => {
            false
        }
        // Bare it is read from an enum whose constants have no bodies, but as a text.
        Value::Enum(_) => false,
        Value::Text(text) => known(&text.class).is_some_and(|class| class.is_final),
        _ => true,
    };
    Ok(if root && last { is.into() } else { Node::wrapped(value.class().to_owned(), is) })
}

fn all(values: Vec<Value>) -> Outcome<Vec<Node<'static>>> {
    values.into_iter().map(|value| write(value, false)).collect()
}

fn object(
    class: ClassName,
    fields: impl Iterator<Item = (Option<Key<'static>>, Value)>,
) -> Outcome<Node<'static>> {
    let mut entries = Vec::new();
    if !class.is_empty() {
        entries.push((Key::Text(CLASS.into()), Node::text(class)));
    }
    for (key, value) in fields {
        let Some(key) = key else {
            return Err(Failure::new("a map's key is text, a number, a boolean, an enum or a UUID"));
        };
        // Redisson writes a null only where an annotation wants it, but then the payload has it again.
        entries.push((key, write(value, false)?));
    }
    Ok(Is::Object(entries).into())
}

fn array(array: Array, root: bool) -> Outcome<Node<'static>> {
    let Array { class, elements } = array;
    let content = class.trim_start_matches('[');
    let dimensions = class.len() - content.len();
    let primitive = dimensions == 1 && content.len() == 1;
    if &class[..] == "[C" {
        let text = elements.iter().filter_map(bare).filter_map(|is| match is {
            Is::Text(text) => Some(text),
            _ => None,
        });
        let text = Is::Text(text.collect::<String>().into());
        return Ok(if root { text.into() } else { Node::wrapped(class, text) });
    }
    let nodes = match primitive {
        true => elements
            .iter()
            .map(|element| {
                Ok(bare(element)
                    .ok_or_else(|| Failure::new(format!("no element of {}", shown(&class))))?
                    .into())
            })
            .collect::<Outcome<_>>()?,
        false => all(elements)?,
    };
    let last = content.len() == 1
        || matches!(
            content,
            "Ljava.lang.String;" | "Ljava.lang.Integer;" | "Ljava.lang.Double;" | "Ljava.lang.Boolean;"
        );
    Ok(match class.is_empty() || root && last {
        true => Is::Bare(nodes).into(),
        false => Node::wrapped(class, Is::Array(nodes)),
    })
}
