//! The classes of Java's library, as far as descriptions name them.

use super::primitive::PRIMITIVES;
use crate::java::base::base;
use crate::java::known_classes::known;

pub(super) const OBJECT: &str = "java.lang.Object";

/// Superclasses of Java's library that have no fields to write.
pub(super) const WITHOUT_FIELDS: [&str; 5] =
    [OBJECT, "java.lang.Record", "java.lang.Enum", "java.lang.Number", "java.util.EventObject"];

/// The packages whose classes need no package here.
const PACKAGES: [&str; 4] = ["java.lang.", "java.util.", "java.time.", "java.math."];

fn needs_no_package(name: &str) -> bool {
    let simple = PACKAGES.iter().find_map(|package| name.strip_prefix(package));
    simple.is_some_and(|simple| !simple.contains(['.', '$']))
        && (known(name).is_some()
            || base(name).is_some()
            || name == "java.lang.String"
            || PRIMITIVES.iter().any(|(.., boxed)| *boxed == name))
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
