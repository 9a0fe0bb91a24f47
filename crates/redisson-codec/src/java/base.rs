//! Classes and interfaces of Java's library that have others below them. No object is of one, but fields and
//! arrays are declared with them.

#[cfg(feature = "classes")]
use super::known_classes::{ClassKind, known};

/// What is below such a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    /// Values of all kinds.
    Object,
    Collection,
    Map,
    /// Classes of one kind.
    Other,
}

/// What is below a class or interface, if it is one of these.
pub(crate) fn base(name: &str) -> Option<Base> {
    BASES.iter().find(|(base, _)| *base == name).map(|(_, kind)| *kind)
}

/// Those that are collections or maps.
#[cfg(feature = "classes")]
pub(crate) fn groups() -> impl Iterator<Item = (&'static str, Base)> {
    BASES.iter().copied().filter(|(_, kind)| matches!(kind, Base::Collection | Base::Map))
}

/// Whether a class of Java's library is a collection.
#[cfg(feature = "classes")]
pub(crate) fn is_collection(name: &str) -> bool {
    match known(name) {
        Some(class) => matches!(class.kind, ClassKind::Collection(_) | ClassKind::EnumSet),
        None => base(name) == Some(Base::Collection),
    }
}

/// Whether a class of Java's library is a map.
#[cfg(feature = "classes")]
pub(crate) fn is_map(name: &str) -> bool {
    match known(name) {
        Some(class) => matches!(class.kind, ClassKind::Map(_)),
        None => base(name) == Some(Base::Map),
    }
}

use Base::{Collection, Map, Object, Other};

static BASES: &[(&str, Base)] = &[
    ("java.lang.Object", Object),
    ("java.lang.Number", Object),
    ("java.lang.Comparable", Object),
    ("java.lang.CharSequence", Object),
    ("java.io.Serializable", Object),
    ("java.lang.Iterable", Other),
    ("java.util.Collection", Collection),
    ("java.util.List", Collection),
    ("java.util.Set", Collection),
    ("java.util.SortedSet", Collection),
    ("java.util.NavigableSet", Collection),
    ("java.util.Queue", Collection),
    ("java.util.Deque", Collection),
    ("java.util.SequencedCollection", Collection),
    ("java.util.AbstractCollection", Collection),
    ("java.util.AbstractList", Collection),
    ("java.util.AbstractSequentialList", Collection),
    ("java.util.AbstractSet", Collection),
    ("java.util.AbstractQueue", Collection),
    ("java.util.concurrent.BlockingQueue", Collection),
    ("java.util.concurrent.BlockingDeque", Collection),
    ("java.util.concurrent.TransferQueue", Collection),
    ("java.util.EnumSet", Collection),
    ("java.util.Map", Map),
    ("java.util.SortedMap", Map),
    ("java.util.NavigableMap", Map),
    ("java.util.SequencedMap", Map),
    ("java.util.AbstractMap", Map),
    ("java.util.concurrent.ConcurrentMap", Map),
    ("java.util.concurrent.ConcurrentNavigableMap", Map),
    ("java.util.TimeZone", Other),
    ("java.util.Calendar", Other),
    ("java.nio.charset.Charset", Other),
    ("java.time.ZoneId", Other),
];
