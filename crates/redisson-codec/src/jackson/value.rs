//! [`Value`](crate::java::Value) from nodes and to bytes: the payload alone decides the type, as in Java
//! where an `Object` is declared.

mod read;
mod write;

pub(super) use read::{
    bytes, double, float, integer, is_collection, is_map, pattern_of, read, scalar_of, split_class,
    typed_scalar_of, unit,
};
pub(super) use write::{is_last_scalar, key, no_key, write, write_scalar};

use super::node::{Is, Node};
use crate::java::Object;
use crate::java::known_classes::{ClassKind, FieldKind, known};

#[inline]
pub(super) fn as_text<'n>(node: &'n Node<'_>) -> Option<&'n str> {
    match &node.is {
        Is::Text(text) => Some(text),
        _ => None,
    }
}

/// An object to Kryo, and a text to Jackson.
const PATTERN: &str = "java.util.regex.Pattern";

/// Whether it is a text of `java.time`, for which Redisson's mapper has no module.
pub(super) fn is_time(class: &str) -> bool {
    class.starts_with("java.time.")
}

/// The only field of a class whose objects are that field to Jackson, behind the class: the `value` of an
/// `AtomicInteger`.
fn only_field(class: &str) -> Option<(&'static str, FieldKind)> {
    match known(class)?.kind {
        // It is a text there.
        _ if class == "java.sql.Time" => None,
        ClassKind::Fields(
            [(name, field @ (FieldKind::Boolean | FieldKind::Int | FieldKind::Long | FieldKind::Date))],
        ) => Some((name, *field)),
        _ => None,
    }
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
