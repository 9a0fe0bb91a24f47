//! The classes of Java's standard library that the codecs know, by name.

use std::collections::HashMap;
use std::sync::LazyLock;

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
    /// What is its text, which Kryo writes in these parts.
    Text(&'static [TextPart]),
    /// An object of which Kryo writes these fields.
    Fields(&'static [(&'static str, FieldKind)]),
    /// An enum of these constants.
    Enum(&'static [&'static str]),
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

/// Classes that have a type in [`java`](super).
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

/// A part of a text that Kryo has its own form for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextPart {
    /// What is left of the text, as it is.
    Rest,
    DateTime,
    Time,
    Offset,
    /// In brackets, unless it is an offset.
    Zone,
    Year,
    YearMonth,
    MonthDay,
    Period,
    Locale,
    /// The name of a class.
    Class,
}

/// A field of an object of Java's library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
    Boolean,
    /// An `Integer` in 4 bytes.
    Int,
    /// An `Integer` of which small ones are shorter.
    Short,
    Long,
    /// A `Long` of which small ones are shorter.
    ShortLong,
    Double,
    Text,
    /// As in `java.util.Date`.
    Date,
    /// A `long[]`.
    Longs,
    /// Anything, with its class.
    Any,
    /// One of these, or null.
    Maybe(&'static FieldKind),
}

/// So many classes at the beginning of the list are the most frequent ones.
const FREQUENT: usize = 12;

static BY_NAME: LazyLock<HashMap<&str, &Class>> =
    LazyLock::new(|| CLASSES.iter().map(|class| (class.name, class)).collect());

/// What the names of all classes below begin with: most others are those of an application.
pub(crate) const PACKAGES: [&str; 2] = ["java.", "sun."];

/// The class of this name, if it is one of those below.
pub(crate) fn known(name: &str) -> Option<&'static Class> {
    if !PACKAGES.iter().any(|package| name.starts_with(package)) {
        return None;
    }
    frequent(|class| class == name).or_else(|| BY_NAME.get(name).copied())
}

/// A class with such a name, if it is one of the most frequent ones. Most names differ in their lengths, so
/// that to compare them takes less time than a hash.
pub(crate) fn frequent(is: impl Fn(&str) -> bool) -> Option<&'static Class> {
    CLASSES[..FREQUENT].iter().find(|class| is(class.name))
}

/// Like [`known`], for names that are in the list for sure.
pub(crate) fn class(name: &'static str) -> &'static Class {
    known(name).unwrap_or_else(|| panic!("{name} is not in the list"))
}

/// The text of a `Locale`. `None` if it could not be taken apart again.
#[cfg(feature = "kryo")]
pub(crate) fn locale_text(language: &str, country: &str, variant: &str) -> Option<String> {
    let fits = !language.contains('_') && !country.contains('_');
    fits.then(|| match (country, variant) {
        ("", "") => language.to_owned(),
        (_, "") => format!("{language}_{country}"),
        _ => format!("{language}_{country}_{variant}"),
    })
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
    Class { name, kind: ClassKind::Text(&[TextPart::Rest]), is_final }
}

/// Of a final class.
const fn parts(name: &'static str, parts: &'static [TextPart]) -> Class {
    Class { name, kind: ClassKind::Text(parts), is_final: true }
}

const fn fields(name: &'static str, fields: &'static [(&'static str, FieldKind)]) -> Class {
    Class { name, kind: ClassKind::Fields(fields), is_final: false }
}

const fn final_fields(name: &'static str, fields: &'static [(&'static str, FieldKind)]) -> Class {
    Class { name, kind: ClassKind::Fields(fields), is_final: true }
}

const fn constants(name: &'static str, constants: &'static [&'static str]) -> Class {
    Class { name, kind: ClassKind::Enum(constants), is_final: true }
}

use Layout::{Empty, Immutable, Plain, Singleton, Sorted};

const ENTRY: &[(&str, FieldKind)] = &[("key", FieldKind::Any), ("value", FieldKind::Any)];
const TIME: &[(&str, FieldKind)] = &[("time", FieldKind::Date)];

const DAYS: &[&str] = &["MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY"];
const MONTHS: &[&str] = &[
    "JANUARY",
    "FEBRUARY",
    "MARCH",
    "APRIL",
    "MAY",
    "JUNE",
    "JULY",
    "AUGUST",
    "SEPTEMBER",
    "OCTOBER",
    "NOVEMBER",
    "DECEMBER",
];
const CHRONO_UNITS: &[&str] = &[
    "NANOS",
    "MICROS",
    "MILLIS",
    "SECONDS",
    "MINUTES",
    "HOURS",
    "HALF_DAYS",
    "DAYS",
    "WEEKS",
    "MONTHS",
    "YEARS",
    "DECADES",
    "CENTURIES",
    "MILLENNIA",
    "ERAS",
    "FOREVER",
];
const TIME_UNITS: &[&str] =
    &["NANOSECONDS", "MICROSECONDS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"];
const ROUNDING_MODES: &[&str] =
    &["UP", "DOWN", "CEILING", "FLOOR", "HALF_UP", "HALF_DOWN", "HALF_EVEN", "UNNECESSARY"];

static CLASSES: &[Class] = &[
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
    // What a `ZoneId` is that is no offset; fields declare that, which has others below it.
    text("java.time.ZoneRegion", false),
    text("sun.util.calendar.ZoneInfo", false),
    text("java.util.SimpleTimeZone", false),
    text("sun.nio.cs.UTF_8", true),
    text("sun.nio.cs.US_ASCII", false),
    text("sun.nio.cs.ISO_8859_1", false),
    text("sun.nio.cs.UTF_16", false),
    text("sun.nio.cs.UTF_16BE", false),
    text("sun.nio.cs.UTF_16LE", false),
    text("sun.nio.cs.MS1252", false),
    parts("java.time.ZonedDateTime", &[TextPart::DateTime, TextPart::Zone]),
    parts("java.time.OffsetDateTime", &[TextPart::DateTime, TextPart::Offset]),
    parts("java.time.OffsetTime", &[TextPart::Time, TextPart::Offset]),
    parts("java.time.ZoneOffset", &[TextPart::Offset]),
    parts("java.time.Year", &[TextPart::Year]),
    parts("java.time.YearMonth", &[TextPart::YearMonth]),
    parts("java.time.MonthDay", &[TextPart::MonthDay]),
    parts("java.time.Period", &[TextPart::Period]),
    parts("java.util.Locale", &[TextPart::Locale]),
    parts("java.lang.Class", &[TextPart::Class]),
    constants("java.time.DayOfWeek", DAYS),
    constants("java.time.Month", MONTHS),
    constants("java.time.temporal.ChronoUnit", CHRONO_UNITS),
    constants("java.util.concurrent.TimeUnit", TIME_UNITS),
    constants("java.math.RoundingMode", ROUNDING_MODES),
    final_fields("java.util.OptionalInt", &[("value", FieldKind::Maybe(&FieldKind::Int))]),
    final_fields("java.util.OptionalLong", &[("value", FieldKind::Maybe(&FieldKind::Long))]),
    final_fields("java.util.OptionalDouble", &[("value", FieldKind::Maybe(&FieldKind::Double))]),
    fields("java.util.concurrent.atomic.AtomicBoolean", &[("value", FieldKind::Boolean)]),
    fields("java.util.concurrent.atomic.AtomicInteger", &[("value", FieldKind::Int)]),
    fields("java.util.concurrent.atomic.AtomicLong", &[("value", FieldKind::Long)]),
    fields("java.util.concurrent.atomic.AtomicReference", &[("value", FieldKind::Any)]),
    fields("java.sql.Timestamp", TIME),
    fields("java.sql.Date", TIME),
    fields("java.sql.Time", TIME),
    fields("java.util.BitSet", &[("words", FieldKind::Longs)]),
    final_fields("java.util.regex.Pattern", &[("pattern", FieldKind::Text), ("flags", FieldKind::Short)]),
    fields("java.util.AbstractMap$SimpleEntry", ENTRY),
    fields("java.util.AbstractMap$SimpleImmutableEntry", ENTRY),
    // What `Map.entry` makes.
    final_fields("java.util.KeyValueHolder", ENTRY),
    // What `ConcurrentHashMap.newKeySet` makes.
    fields(
        "java.util.concurrent.ConcurrentHashMap$KeySetView",
        &[("map", FieldKind::Any), ("value", FieldKind::Any)],
    ),
    fields(
        "java.util.GregorianCalendar",
        &[
            ("zone", FieldKind::Text),
            ("time", FieldKind::Date),
            ("lenient", FieldKind::Boolean),
            ("firstDayOfWeek", FieldKind::Short),
            ("minimalDaysInFirstWeek", FieldKind::Short),
            ("gregorianChange", FieldKind::ShortLong),
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_listed_once() {
        for (at, class) in CLASSES.iter().enumerate() {
            assert_eq!(known(class.name), Some(&CLASSES[at]), "{}", class.name);
        }
        assert_eq!(known("java.util.Collections$UnmodifiableList"), None);
        assert_eq!(class("java.util.UUID").kind, ClassKind::Scalar(Scalar::Uuid));
    }
}
