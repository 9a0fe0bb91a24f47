//! [`Value`] from and to nodes: what stands there decides what it is, as for Java where an `Object` is declared.

use std::borrow::Cow;

use super::base64;
use super::failure::Failure;
use super::node::{Is, Key, MAX_BIG_BYTES, MAX_DIGITS, Node};
use super::writer::{CLASS, enum_set_class, refused};
use crate::codec::java::class::{Class, ClassKind, Scalar, known};
use crate::codec::java::{
    Array, BigDecimal, BigInteger, ClassName, Collection, Constant, Date, Enum, EnumSet, Map, Object, Text,
    Uuid, Value,
};
use crate::codec::number::java_text;

/// The inside of what has its class in front.
pub(super) fn unwrapped(node: Node<'_>) -> Node<'_> {
    match node.is {
        Is::Array(mut pair) if pair.len() == 2 => pair.swap_remove(1),
        is => Node { at: node.at, is },
    }
}

pub(super) fn as_text<'n>(node: &'n Node<'_>) -> Option<&'n str> {
    match &node.is {
        Is::Text(text) => Some(text),
        _ => None,
    }
}

/// A map's key, as Jackson prints it.
pub(super) fn key(value: &Value) -> Option<Key<'static>> {
    let text = match value {
        Value::Long(key) => return Some(Key::Long(*key)),
        Value::String(text) => text.clone(),
        Value::Boolean(key) => key.to_string(),
        Value::Byte(key) => key.to_string(),
        Value::Short(key) => key.to_string(),
        Value::Integer(key) => key.to_string(),
        Value::Character(key) => char::from_u32((*key).into())?.to_string(),
        Value::Double(key) => java_text(*key),
        Value::Uuid(key) => key.to_string(),
        Value::Text(text) if !is_time(&text.class) => text.text.clone(),
        Value::Enum(constant) => name(&constant.constant).ok()?.to_owned(),
        _ => return None,
    };
    Some(Key::Text(text.into()))
}

fn name(constant: &Constant) -> Result<&str, Failure> {
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
pub(super) fn write(value: Value, root: bool) -> Result<Node<'static>, Failure> {
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
            if is_of_kryo(&object) {
                return Err(Failure::new(format!("the fields of a {} are those of Kryo only", object.class)));
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
                Is::Array(names.collect::<Result<_, Failure>>()?),
            ));
        }
        Value::Array(array) => return self::array(*array, root),
        Value::Instant(_)
        | Value::LocalDate(_)
        | Value::LocalTime(_)
        | Value::LocalDateTime(_)
        | Value::Duration(_)
        | Value::Optional(_) => return Err(refused(value.class())),
        Value::Text(text) if is_time(&text.class) => return Err(refused(&text.class)),
        value => return self::scalar(&value, root),
    };
    Ok(is.into())
}

/// Whether it is a text of `java.time`, for which Redisson's mapper has no module.
pub(super) fn is_time(class: &str) -> bool {
    class.starts_with("java.time.")
}

/// Whether an object has the fields that Kryo gives to a class of Java's library, and Jackson does not.
fn is_of_kryo(object: &Object) -> bool {
    match known(&object.class).map(|class| class.kind) {
        Some(ClassKind::Fields(fields)) => {
            object.fields.iter().map(|(name, _)| &name[..]).eq(fields.iter().map(|(name, _)| *name))
        }
        _ => false,
    }
}

/// What has its class in front, unless it is the root and of a final class.
fn scalar(value: &Value, root: bool) -> Result<Node<'static>, Failure> {
    let Some(is) = bare(value) else {
        return Err(Failure::new(format!("this {} has no text", value.class())));
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

fn all(values: Vec<Value>) -> Result<Vec<Node<'static>>, Failure> {
    values.into_iter().map(|value| write(value, false)).collect()
}

fn object(
    class: ClassName,
    fields: impl Iterator<Item = (Option<Key<'static>>, Value)>,
) -> Result<Node<'static>, Failure> {
    let mut entries = Vec::new();
    if !class.is_empty() {
        entries.push((Key::Text(CLASS.into()), Node::text(class)));
    }
    for (key, value) in fields {
        let Some(key) = key else {
            return Err(Failure::new("a map's key is text, a number, a boolean, an enum or a UUID"));
        };
        // Redisson leaves nulls out.
        if value != Value::Null {
            entries.push((key, write(value, false)?));
        }
    }
    Ok(Is::Object(entries).into())
}

fn array(array: Array, root: bool) -> Result<Node<'static>, Failure> {
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
                Ok(bare(element).ok_or_else(|| Failure::new(format!("no element of {class}")))?.into())
            })
            .collect::<Result<_, Failure>>()?,
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

/// The class in front and what is behind it, if that is what the two elements are.
///
/// `["a.b","c"]` may also be an array of two strings: both are written alike.
fn pair<'n, 'a>(elements: &'n [Node<'a>]) -> Option<(&'n str, &'n Node<'a>)> {
    let [class, inside] = elements else { return None };
    let class = as_text(class)?;
    let letter =
        |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.' | ';' | '[' | '<' | '>' | ',' | '-');
    let named = class.starts_with('[') || class.contains('.') && class.chars().all(letter);
    let fits = match inside.is {
        Is::Array(_) | Is::Bare(_) => true,
        Is::Text(_) => !class.starts_with('[') || matches!(class, "[B" | "[C"),
        Is::Object(_) | Is::Null | Is::Bool(_) => false,
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

/// What stands there, whatever it is.
pub(super) fn read(node: &Node<'_>, root: bool) -> Result<Value, Failure> {
    let without_class = |value| if root { value } else { Value::Bare(Box::new(value)) };
    Ok(match &node.is {
        Is::Null => Value::Null,
        Is::Bool(value) => Value::Boolean(*value),
        Is::Int(value) => match i32::try_from(*value) {
            Ok(value) => Value::Integer(value),
            Err(_) => Value::Bare(Box::new(Value::Long(*value))),
        },
        Is::Number(text) => Value::Double(text.parse().map_err(|_| wrong(node, "java.lang.Double"))?),
        Is::Double(value) if value.is_finite() => Value::Double(*value),
        Is::Double(value) => without_class(Value::Double(*value)),
        Is::Float(value) => without_class(Value::Float(*value)),
        Is::Big(value) => Value::Bare(Box::new(Value::BigInteger(value.clone()))),
        Is::Decimal(value) => Value::Bare(Box::new(Value::BigDecimal((**value).clone()))),
        Is::Text(text) => Value::String(text.to_string()),
        Is::Bytes(bytes) => without_class(Value::Bytes(bytes.to_vec())),
        Is::Object(entries) => object_of(entries)?,
        Is::Array(elements) => match pair(elements) {
            Some((class, inside)) => of_class(class, inside)?,
            None => array_of("", elements)?,
        },
        Is::Bare(elements) => array_of("", elements)?,
    })
}

fn each(elements: &[Node<'_>]) -> Result<Vec<Value>, Failure> {
    elements.iter().map(|element| read(element, false)).collect()
}

fn array_of(class: &str, elements: &[Node<'_>]) -> Result<Value, Failure> {
    let primitive = match class {
        "[I" => "java.lang.Integer",
        "[J" => "java.lang.Long",
        "[S" => "java.lang.Short",
        "[F" => "java.lang.Float",
        "[D" => "java.lang.Double",
        "[Z" => "java.lang.Boolean",
        _ => {
            return Ok(Value::Array(Box::new(Array { class: owned(class), elements: each(elements)? })));
        }
    };
    let elements = elements.iter().map(|element| of_class(primitive, element)).collect::<Result<_, _>>()?;
    Ok(Value::Array(Box::new(Array { class: owned(class), elements })))
}

/// Whether Java has this map, or one like it, in its library.
pub(super) fn is_map(class: &str) -> bool {
    let known = known(class).map(|class| class.kind);
    matches!(known, Some(ClassKind::Map(_))) || class.starts_with("java.util.") && class.contains("Map")
}

/// The class that an object names, and the entries that are not it.
pub(super) fn split_class<'n, 'a>(
    entries: &'n [(Key<'a>, Node<'a>)],
) -> (Option<(&'n str, u32)>, impl Iterator<Item = &'n (Key<'a>, Node<'a>)>) {
    let is_class = |(key, value): &(Key<'_>, Node<'_>)| {
        matches!(key, Key::Text(key) if key == CLASS) && as_text(value).is_some()
    };
    let at = entries.iter().position(is_class);
    let class = at.and_then(|at| Some((as_text(&entries[at].1)?, entries[at].1.at)));
    (class, entries.iter().enumerate().filter(move |(index, _)| Some(*index) != at).map(|(_, entry)| entry))
}

fn object_of(entries: &[(Key<'_>, Node<'_>)]) -> Result<Value, Failure> {
    let (class, entries) = split_class(entries);
    let class = class.map_or("", |(class, _)| class);
    if is_map(class) {
        let entries = entries.map(|(key, value)| {
            let key = match key {
                Key::Text(key) => Value::String(key.to_string()),
                Key::Long(key) => Value::Long(*key),
            };
            Ok((key, read(value, false)?))
        });
        let entries = entries.collect::<Result<_, Failure>>()?;
        return Ok(Value::Map(Box::new(Map { class: owned(class), comparator: None, entries })));
    }
    let fields = entries.map(|(key, value)| Ok((key.text().into_owned(), read(value, false)?)));
    let fields = fields.collect::<Result<_, Failure>>()?;
    Ok(Value::Object(Box::new(Object { class: owned(class), fields })))
}

fn wrong(node: &Node<'_>, class: &str) -> Failure {
    Failure::new(format!("expected a {class}, found {}", node.kind())).at(node.at)
}

/// What stands behind its class.
fn of_class(class: &str, node: &Node<'_>) -> Result<Value, Failure> {
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
        "[C" => as_text(node).map(|text| {
            let elements = text.encode_utf16().map(Value::Character).collect();
            Value::Array(Box::new(Array { class: "[C".into(), elements }))
        }),
        _ => return of_other_class(class, node),
    };
    value.ok_or_else(wrong)
}

fn of_other_class(class: &str, node: &Node<'_>) -> Result<Value, Failure> {
    let elements = match &node.is {
        Is::Array(elements) | Is::Bare(elements) => elements,
        _ => {
            return match known(class) {
                Some(Class { kind: ClassKind::Scalar(kind), .. }) => {
                    scalar_of(*kind, node).ok_or_else(|| wrong(node, class))
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
                    None => Err(Failure::new(format!("the class {class} is not known")).at(node.at)),
                },
            };
        }
    };
    if class.starts_with('[') {
        return array_of(class, elements);
    }
    if let Some(element) = class.strip_prefix("java.util.EnumSet<").and_then(|rest| rest.strip_suffix('>')) {
        let constants = elements.iter().map(|constant| match as_text(constant) {
            Some(name) => Ok(Constant::Name(name.to_owned())),
            None => Err(wrong(constant, element)),
        });
        return Ok(Value::EnumSet(Box::new(EnumSet {
            class: "java.util.RegularEnumSet".into(),
            element: owned(element),
            constants: constants.collect::<Result<_, _>>()?,
        })));
    }
    Ok(Value::Collection(Box::new(Collection {
        class: owned(class),
        comparator: None,
        elements: each(elements)?,
    })))
}

pub(super) fn integer<T: TryFrom<i64>>(node: &Node<'_>) -> Option<T> {
    match node.is {
        Is::Int(value) => value.try_into().ok(),
        _ => None,
    }
}

pub(super) fn double(node: &Node<'_>) -> Option<f64> {
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

pub(super) fn float(node: &Node<'_>) -> Option<f32> {
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
pub(super) fn unit(text: &str) -> Option<u16> {
    let mut units = text.encode_utf16();
    let first = units.next()?;
    units.next().is_none().then_some(first)
}

pub(super) fn bytes<'n>(node: &'n Node<'_>) -> Option<Cow<'n, [u8]>> {
    match &node.is {
        Is::Bytes(bytes) => Some(Cow::Borrowed(bytes)),
        Is::Text(text) => base64::decode(text).map(Cow::Owned),
        _ => None,
    }
}

/// A value of a class that has a type of its own; none of those that Redisson's mapper refuses.
pub(super) fn scalar_of(kind: Scalar, node: &Node<'_>) -> Option<Value> {
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
        Scalar::Date => Value::Date(Date::from_millis(integer(node)?)),
        _ => return None,
    })
}

fn big(node: &Node<'_>) -> Option<BigInteger> {
    match &node.is {
        Is::Int(value) => Some((*value).into()),
        Is::Big(value) => Some(value.clone()),
        _ => None,
    }
}

/// Whether a class is a list or set that is read without knowing more about it.
pub(super) fn is_collection(class: &str) -> bool {
    let known = known(class).map(|class| class.kind);
    matches!(known, Some(ClassKind::Collection(_) | ClassKind::EnumSet))
        || class.starts_with("java.util.EnumSet<")
        || class.starts_with("java.util.Collections$")
}
