//! How a [`Value`] prints.

use std::fmt;

use super::{Constant, Value};
use crate::java::Instant;

/// Readable, and short: the classes of lists, maps and texts are left out where they are the usual ones.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Boolean(value) => value.fmt(f),
            Value::Byte(value) => write!(f, "(byte) {value}"),
            Value::Short(value) => write!(f, "(short) {value}"),
            Value::Character(value) => match char::from_u32((*value).into()) {
                Some(value) => write!(f, "{value:?}"),
                None => write!(f, "'\\u{value:04x}'"),
            },
            Value::Integer(value) => value.fmt(f),
            Value::Long(value) => write!(f, "{value}L"),
            Value::Float(value) => write!(f, "{value:?}f"),
            Value::Double(value) => write!(f, "{value:?}"),
            Value::String(value) => write!(f, "{value:?}"),
            Value::Bytes(value) => {
                f.write_str("0x")?;
                value.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Value::BigInteger(value) => value.fmt(f),
            Value::BigDecimal(value) => value.fmt(f),
            Value::Uuid(value) => value.fmt(f),
            Value::Date(value) => {
                let millis = value.millis();
                let nanos = millis.rem_euclid(1000) as u32 * 1_000_000;
                match Instant::new(millis.div_euclid(1000), nanos) {
                    Some(instant) => instant.fmt(f),
                    None => write!(f, "Date({millis})"),
                }
            }
            Value::Instant(value) => value.fmt(f),
            Value::LocalDate(value) => value.fmt(f),
            Value::LocalTime(value) => value.fmt(f),
            Value::LocalDateTime(value) => value.fmt(f),
            Value::Duration(value) => value.fmt(f),
            Value::Optional(None) => f.write_str("Optional.empty"),
            Value::Optional(Some(value)) => write!(f, "Optional({value})"),
            Value::Text(value) => value.text.fmt(f),
            Value::Enum(value) => write!(f, "{}.{}", short(&value.class), value.constant),
            Value::Collection(value) => {
                class(f, &value.class, &["java.util.ArrayList"])?;
                list(f, "[", &value.elements, "]", |f, element| element.fmt(f))
            }
            Value::EnumSet(value) => {
                f.write_str(short(&value.element))?;
                list(f, "[", &value.constants, "]", |f, constant| constant.fmt(f))
            }
            Value::Array(value) => {
                array(f, &value.class)?;
                list(f, "{", &value.elements, "}", |f, element| element.fmt(f))
            }
            Value::Map(value) => {
                class(f, &value.class, &["java.util.LinkedHashMap", "java.util.HashMap"])?;
                list(f, "{", &value.entries, "}", |f, (key, value)| write!(f, "{key}: {value}"))
            }
            Value::Object(value) => {
                f.write_str(short(&value.class))?;
                list(f, "{", &value.fields, "}", |f, (name, value)| write!(f, "{name}: {value}"))
            }
            Value::Classed(value) => write!(f, "{}({})", short(&value.class), value.value),
            Value::Opaque(value) => write!(f, "{}({} bytes)", short(&value.class), value.bytes.len()),
            Value::Serialized(object) => match object.value() {
                Some(value) => value.fmt(f),
                None => write!(f, "{}({} bytes)", short(object.class()), object.bytes().len()),
            },
            Value::Bare(value) => value.fmt(f),
        }
    }
}

impl fmt::Display for Constant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Constant::Ordinal(ordinal) => write!(f, "{ordinal}"),
            Constant::Name(name) => f.write_str(name),
        }
    }
}

/// Without the package.
fn short(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}

fn class(f: &mut fmt::Formatter<'_>, class: &str, usual: &[&str]) -> fmt::Result {
    if usual.contains(&class) { Ok(()) } else { f.write_str(short(class)) }
}

/// Like `int[]`, as Java's sources have it.
fn array(f: &mut fmt::Formatter<'_>, class: &str) -> fmt::Result {
    let element = class.trim_start_matches('[');
    f.write_str(match element {
        "B" => "byte",
        "C" => "char",
        "D" => "double",
        "F" => "float",
        "I" => "int",
        "J" => "long",
        "S" => "short",
        "Z" => "boolean",
        _ => short(element.strip_prefix('L').and_then(|name| name.strip_suffix(';')).unwrap_or(element)),
    })?;
    (0..class.len() - element.len()).try_for_each(|_| f.write_str("[]"))
}

fn list<T>(
    f: &mut fmt::Formatter<'_>,
    open: &str,
    items: &[T],
    close: &str,
    write: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    f.write_str(open)?;
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            f.write_str(", ")?;
        }
        write(f, item)?;
    }
    f.write_str(close)
}
