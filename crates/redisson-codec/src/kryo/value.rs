//! [`Value`](crate::java::Value): anything whose class is known, without a type that says what to expect.

mod read;
mod write;

pub(super) use read::{comparator, opaque, read, read_any, read_whole};
#[cfg(feature = "classes")]
pub(super) use read::{
    constant, read_array, read_collection, read_each, read_known, read_map, read_nullable, unknown_class,
};
pub(super) use write::write;
#[cfg(feature = "classes")]
pub(super) use write::{
    write_class, write_collection, write_comparator, write_constant, write_content, write_map, write_named,
};

use super::input::{ClassRef, Input};
use super::scalar;
use crate::java::base::base;
use crate::java::known_classes::{Class, ClassKind, known};
use crate::kryo::numbered::Numbered;

/// The comparators that have no fields. What follows the class is for an enum the number of its only
/// constant.
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
        ClassRef::Named(_) => {
            let name = input.class_name(class);
            let null = null_of(&name);
            #[cfg(feature = "classes")]
            let null = null.or_else(|| input.described.as_deref()?.null_of(&name));
            null
        }
    }
}

pub(super) fn null_of(class: &str) -> Option<u8> {
    match class {
        "java.lang.String" => Some(0x80),
        _ if class.starts_with('[') => Some(0),
        _ => known(class).and_then(scalar::null),
    }
}

/// The names of an enum's constants, if it is one of Java's library.
fn constants_of(class: &str) -> Option<&'static [&'static str]> {
    match known(class)?.kind {
        ClassKind::Enum(constants) => Some(constants),
        _ => None,
    }
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
    known(name).is_some() || base(name).is_some()
}
