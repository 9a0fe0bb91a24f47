//! Type hints: `with` modules and newtypes with reserved names, for what a Rust type cannot say about a Java
//! class.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::known_classes::{self, Class};

/// The prefix of the reserved names.
///
/// Other formats ignore the name of a newtype and see what is inside.
pub(crate) const PREFIX: &str = "redisson::java::";

/// The reserved names that are not the name of a class in [`class`].
pub(crate) const OBJECT: &str = "redisson::java::Object";
pub(crate) const ARRAY: &str = "redisson::java::[]";
pub(crate) const VALUE: &str = "redisson::java::Value";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypeHint {
    /// Declared as a class with subclasses (`Object`, an interface), so the class of the value is written.
    Object,
    /// A Java array.
    Array,
    /// Any value. It goes through the [`value_slot`](super::value_slot).
    Value,
    /// This class. A scalar goes through the [`value_slot`](super::value_slot).
    Class(&'static Class),
}

/// The hint of a newtype with this name, if the name is reserved.
pub(crate) fn type_hint(newtype: &str) -> Option<TypeHint> {
    let rest = newtype.strip_prefix(PREFIX)?;
    match newtype {
        OBJECT => Some(TypeHint::Object),
        ARRAY => Some(TypeHint::Array),
        VALUE => Some(TypeHint::Value),
        _ => known_classes::known(rest).map(TypeHint::Class),
    }
}

/// Reads a newtype as its inside.
struct Inside<T>(std::marker::PhantomData<T>);

impl<'de, T: Deserialize<'de>> serde::de::Visitor<'de> for Inside<T> {
    type Value = T;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a newtype")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inside: D) -> Result<T, D::Error> {
        T::deserialize(inside)
    }
}

fn read<'de, T: Deserialize<'de>, D: Deserializer<'de>>(input: D, name: &'static str) -> Result<T, D::Error> {
    input.deserialize_newtype_struct(name, Inside(std::marker::PhantomData))
}

macro_rules! type_hints {
    ($($(#[$doc:meta])* $module:ident $name:expr;)*) => {
        /// Each module, and its reserved name.
        #[cfg(feature = "classes")]
        pub(crate) const MODULES: &[(&str, &str)] = &[$((stringify!($module), $name)),*];
        $(
        $(#[$doc])*
        ///
        /// For a field, of the type or of an `Option` of it: `#[serde(with = "…")]`. Where there is no field,
        /// as in the elements of a list, wrap the value in `Of`.
        pub mod $module {
            use super::*;

            #[doc(hidden)]
            pub fn serialize<T: Serialize + ?Sized, S: Serializer>(value: &T, output: S) -> Result<S::Ok, S::Error> {
                output.serialize_newtype_struct($name, value)
            }

            #[doc(hidden)]
            pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(input: D) -> Result<T, D::Error> {
                read(input, $name)
            }

            $(#[$doc])*
            ///
            /// Wraps a value that is not a field.
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub struct Of<T>(pub T);

            impl<T: Serialize> Serialize for Of<T> {
                fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
                    serialize(&self.0, output)
                }
            }

            impl<'de, T: Deserialize<'de>> Deserialize<'de> for Of<T> {
                fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                    deserialize(input).map(Self)
                }
            }

            impl<T> From<T> for Of<T> {
                fn from(value: T) -> Self {
                    Self(value)
                }
            }
        }
        )*
    };
}

type_hints! {
    /// A reference that Java declares as `Object`, as an interface or as another class with subclasses. The
    /// class of the value is always written. So are those of the elements of a list or map, for which this
    /// means `Object`: a `Collection<Line>` goes without it.
    object "redisson::java::Object";
    /// A Java array: of a primitive type (`Vec<i32>` is `int[]`), of its box (`Vec<Option<i32>>` is
    /// `Integer[]`), of `String` or of objects.
    array "redisson::java::[]";
    /// `java.util.Optional`, of an `Option`. A null is read as an empty `Optional`; use an `Option` of `Of`
    /// to tell them apart.
    optional "redisson::java::java.util.Optional";
    /// `java.util.HashSet`. Without a hint, a Rust set is an `ArrayList`.
    hash_set "redisson::java::java.util.HashSet";
    /// `java.util.LinkedHashSet`.
    linked_hash_set "redisson::java::java.util.LinkedHashSet";
    /// `java.util.TreeSet` in natural order.
    tree_set "redisson::java::java.util.TreeSet";
    /// `java.util.LinkedList`.
    linked_list "redisson::java::java.util.LinkedList";
    /// `java.util.ArrayDeque`.
    array_deque "redisson::java::java.util.ArrayDeque";
    /// `java.util.RegularEnumSet`, the `EnumSet` of an enum with up to 64 constants. For a list or set of
    /// enums that is never empty.
    enum_set "redisson::java::java.util.RegularEnumSet";
    /// `java.util.HashMap`, the default of maps.
    hash_map "redisson::java::java.util.HashMap";
    /// `java.util.LinkedHashMap`.
    linked_hash_map "redisson::java::java.util.LinkedHashMap";
    /// `java.util.TreeMap` in natural order.
    tree_map "redisson::java::java.util.TreeMap";
    /// `java.util.concurrent.ConcurrentHashMap`.
    concurrent_hash_map "redisson::java::java.util.concurrent.ConcurrentHashMap";
    /// `java.net.URI`, of a text.
    uri "redisson::java::java.net.URI";
    /// `java.net.URL`, of a text.
    url "redisson::java::java.net.URL";
    /// `java.util.Currency`, of a text such as `EUR`.
    currency "redisson::java::java.util.Currency";
    /// `java.lang.Class`, of its name: `java.lang.String`, `int`, `[I`.
    class_name "redisson::java::java.lang.Class";
    /// `java.util.Locale`, of a text such as `de_DE`.
    locale "redisson::java::java.util.Locale";
    /// `java.time.ZonedDateTime`, of a text such as `2024-02-29T12:34:56+01:00[Europe/Berlin]`. The offset is
    /// not in the payload: encoding does not need it, and decoding gives a text without it.
    zoned_date_time "redisson::java::java.time.ZonedDateTime";
    /// `java.time.OffsetDateTime`, of a text such as `2024-02-29T12:34:56+01:00`.
    offset_date_time "redisson::java::java.time.OffsetDateTime";
    /// `java.time.OffsetTime`, of a text such as `12:34:56+01:00`.
    offset_time "redisson::java::java.time.OffsetTime";
    /// `java.time.ZoneOffset`, of a text such as `+01:00` or `Z`.
    zone_offset "redisson::java::java.time.ZoneOffset";
    /// `java.time.ZoneId`, of a text such as `Europe/Berlin` or `+01:00`. An offset is written as a zone of
    /// this name, which Java reads as the offset.
    zone_id "redisson::java::java.time.ZoneRegion";
    /// `java.time.Year`, of a text such as `2024`.
    year "redisson::java::java.time.Year";
    /// `java.time.YearMonth`, of a text such as `2024-02`.
    year_month "redisson::java::java.time.YearMonth";
    /// `java.time.MonthDay`, of a text such as `--02-29`.
    month_day "redisson::java::java.time.MonthDay";
    /// `java.time.Period`, of a text such as `P1Y2M3D`.
    period "redisson::java::java.time.Period";
    /// `java.lang.StringBuilder`, of a text.
    string_builder "redisson::java::java.lang.StringBuilder";
}
