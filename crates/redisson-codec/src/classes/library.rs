//! The classes of Java's library, as far as descriptions name them.

use super::primitive::PRIMITIVES;
use crate::java::class::{ClassKind as Library, known};

pub(super) const OBJECT: &str = "java.lang.Object";

/// Superclasses of Java's library that have no fields to write.
pub(super) const WITHOUT_FIELDS: [&str; 5] =
    [OBJECT, "java.lang.Record", "java.lang.Enum", "java.lang.Number", "java.util.EventObject"];

pub(super) const COLLECTIONS: [&str; 17] = [
    "java.util.Collection",
    "java.util.List",
    "java.util.Set",
    "java.util.SortedSet",
    "java.util.NavigableSet",
    "java.util.Queue",
    "java.util.Deque",
    "java.util.SequencedCollection",
    "java.util.AbstractCollection",
    "java.util.AbstractList",
    "java.util.AbstractSequentialList",
    "java.util.AbstractSet",
    "java.util.AbstractQueue",
    "java.util.concurrent.BlockingQueue",
    "java.util.concurrent.BlockingDeque",
    "java.util.concurrent.TransferQueue",
    "java.util.EnumSet",
];

pub(super) const MAPS: [&str; 7] = [
    "java.util.Map",
    "java.util.SortedMap",
    "java.util.NavigableMap",
    "java.util.SequencedMap",
    "java.util.AbstractMap",
    "java.util.concurrent.ConcurrentMap",
    "java.util.concurrent.ConcurrentNavigableMap",
];

/// Whether a class of Java's library is a collection.
pub(super) fn is_collection(name: &str) -> bool {
    COLLECTIONS.contains(&name)
        || matches!(known(name), Some(class) if matches!(class.kind, Library::Collection(_) | Library::EnumSet))
}

/// Whether a class of Java's library is a map.
pub(super) fn is_map(name: &str) -> bool {
    MAPS.contains(&name) || matches!(known(name), Some(class) if matches!(class.kind, Library::Map(_)))
}

/// The packages whose classes need no package here.
const PACKAGES: [&str; 4] = ["java.lang.", "java.util.", "java.time.", "java.math."];

/// Classes of these packages that no codec writes, but that fields are declared as.
const DECLARED: [&str; 6] = [
    OBJECT,
    "java.lang.Number",
    "java.lang.Comparable",
    "java.lang.CharSequence",
    "java.lang.Iterable",
    "java.time.ZoneId",
];

fn needs_no_package(name: &str) -> bool {
    let simple = PACKAGES.iter().find_map(|package| name.strip_prefix(package));
    simple.is_some_and(|simple| !simple.contains(['.', '$']))
        && (known(name).is_some()
            || DECLARED.contains(&name)
            || name == "java.lang.String"
            || PRIMITIVES.iter().any(|(.., boxed)| *boxed == name)
            || is_collection(name)
            || is_map(name))
}

/// The name of a class, without its package if it needs none.
pub(super) fn short(name: &str) -> &str {
    match needs_no_package(name) {
        true => name.rsplit('.').next().unwrap_or(name),
        false => name,
    }
}

/// The name with its package.
pub(super) fn long(name: &str) -> String {
    let with = PACKAGES.iter().map(|package| format!("{package}{name}")).find(|name| needs_no_package(name));
    with.unwrap_or_else(|| name.to_owned())
}

/// Of Java itself, where what is not in the list of classes is an interface or a base class.
pub(super) fn known_java(class: &str) -> bool {
    class.starts_with("java.") || class.starts_with("javax.")
}
