//! The classes of Java's standard library that the codecs know, by name.

/// A class of Java's standard library.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) name: &'static str,
    pub(crate) kind: ClassKind,
    /// Where a field declares a final class, the class is not written.
    pub(crate) is_final: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClassKind {
    Collection(Layout),
    Map(Layout),
    Scalar(Scalar),
    /// What is written as its text.
    Text,
    Optional,
    EnumSet,
}

/// What is special about a collection or map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Plain,
    /// It has a comparator.
    Sorted,
    /// It holds no nulls: `List.of` and the like.
    Immutable,
    /// `Collections.emptyList` and the like.
    Empty,
    /// `Collections.singletonList` and the like.
    Singleton,
}

/// Classes that have a type of their own in [`java`](super).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    BigInteger,
    BigDecimal,
    Uuid,
    Date,
    Instant,
    LocalDate,
    LocalTime,
    LocalDateTime,
    Duration,
}

/// The class of this name, if it is one of those below.
pub(crate) fn known(name: &str) -> Option<&'static Class> {
    // Both lists are short; the length of the name and its last letters differ early.
    CLASSES.iter().find(|class| class.name == name)
}

/// Like [`known`], for names that are in the list for sure.
pub(crate) fn class(name: &'static str) -> &'static Class {
    known(name).unwrap_or_else(|| panic!("{name} is not in the list"))
}

const fn collection(name: &'static str, layout: Layout) -> Class {
    Class { name, kind: ClassKind::Collection(layout), is_final: false }
}

const fn map(name: &'static str, layout: Layout) -> Class {
    Class { name, kind: ClassKind::Map(layout), is_final: false }
}

const fn scalar(name: &'static str, scalar: Scalar, is_final: bool) -> Class {
    Class { name, kind: ClassKind::Scalar(scalar), is_final }
}

const fn text(name: &'static str, is_final: bool) -> Class {
    Class { name, kind: ClassKind::Text, is_final }
}

use Layout::{Empty, Immutable, Plain, Singleton, Sorted};

static CLASSES: [Class; 72] = [
    collection("java.util.ArrayList", Plain),
    map("java.util.HashMap", Plain),
    map("java.util.LinkedHashMap", Plain),
    collection("java.util.HashSet", Plain),
    collection("java.util.LinkedHashSet", Plain),
    collection("java.util.LinkedList", Plain),
    collection("java.util.TreeSet", Sorted),
    map("java.util.TreeMap", Sorted),
    scalar("java.math.BigInteger", Scalar::BigInteger, false),
    scalar("java.math.BigDecimal", Scalar::BigDecimal, false),
    scalar("java.util.UUID", Scalar::Uuid, true),
    scalar("java.util.Date", Scalar::Date, false),
    scalar("java.time.Instant", Scalar::Instant, true),
    scalar("java.time.LocalDate", Scalar::LocalDate, true),
    scalar("java.time.LocalTime", Scalar::LocalTime, true),
    scalar("java.time.LocalDateTime", Scalar::LocalDateTime, true),
    scalar("java.time.Duration", Scalar::Duration, true),
    Class { name: "java.util.Optional", kind: ClassKind::Optional, is_final: true },
    collection("java.util.Arrays$ArrayList", Plain),
    collection("java.util.ImmutableCollections$List12", Immutable),
    collection("java.util.ImmutableCollections$ListN", Immutable),
    collection("java.util.ImmutableCollections$SubList", Immutable),
    collection("java.util.ImmutableCollections$Set12", Immutable),
    collection("java.util.ImmutableCollections$SetN", Immutable),
    map("java.util.ImmutableCollections$Map1", Immutable),
    map("java.util.ImmutableCollections$MapN", Immutable),
    collection("java.util.Collections$EmptyList", Empty),
    collection("java.util.Collections$EmptySet", Empty),
    map("java.util.Collections$EmptyMap", Empty),
    collection("java.util.Collections$SingletonList", Singleton),
    collection("java.util.Collections$SingletonSet", Singleton),
    map("java.util.Collections$SingletonMap", Singleton),
    Class { name: "java.util.RegularEnumSet", kind: ClassKind::EnumSet, is_final: false },
    Class { name: "java.util.JumboEnumSet", kind: ClassKind::EnumSet, is_final: false },
    collection("java.util.ArrayDeque", Plain),
    collection("java.util.PriorityQueue", Sorted),
    collection("java.util.Vector", Plain),
    collection("java.util.Stack", Plain),
    collection("java.util.concurrent.CopyOnWriteArrayList", Plain),
    collection("java.util.concurrent.CopyOnWriteArraySet", Plain),
    collection("java.util.concurrent.ConcurrentLinkedQueue", Plain),
    collection("java.util.concurrent.ConcurrentLinkedDeque", Plain),
    collection("java.util.concurrent.ConcurrentSkipListSet", Plain),
    collection("java.util.concurrent.LinkedBlockingQueue", Plain),
    collection("java.util.concurrent.LinkedBlockingDeque", Plain),
    collection("java.util.concurrent.PriorityBlockingQueue", Plain),
    collection("java.util.ArrayList$SubList", Plain),
    collection("java.util.HashMap$KeySet", Plain),
    collection("java.util.HashMap$Values", Plain),
    collection("java.util.LinkedHashMap$LinkedKeySet", Plain),
    collection("java.util.LinkedHashMap$LinkedValues", Plain),
    collection("java.util.TreeMap$KeySet", Plain),
    collection("java.util.TreeMap$Values", Plain),
    map("java.util.concurrent.ConcurrentHashMap", Plain),
    map("java.util.concurrent.ConcurrentSkipListMap", Sorted),
    map("java.util.Hashtable", Plain),
    map("java.util.IdentityHashMap", Plain),
    map("java.util.WeakHashMap", Plain),
    map("java.util.Properties", Plain),
    text("java.net.URI", true),
    text("java.net.URL", true),
    text("java.util.Currency", true),
    text("java.lang.StringBuilder", true),
    text("java.lang.StringBuffer", true),
    text("java.time.ZoneRegion", true),
    text("sun.util.calendar.ZoneInfo", false),
    text("java.util.SimpleTimeZone", false),
    text("sun.nio.cs.UTF_8", true),
    text("sun.nio.cs.US_ASCII", false),
    text("sun.nio.cs.ISO_8859_1", false),
    text("sun.nio.cs.UTF_16", false),
    text("sun.nio.cs.UTF_16LE", false),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_stands_once() {
        for (at, class) in CLASSES.iter().enumerate() {
            assert_eq!(known(class.name), Some(&CLASSES[at]), "{}", class.name);
        }
        assert_eq!(known("java.util.Collections$UnmodifiableList"), None);
        assert_eq!(class("java.util.UUID").kind, ClassKind::Scalar(Scalar::Uuid));
    }
}
