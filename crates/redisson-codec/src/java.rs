//! Java's values, for the codecs that exchange objects with Java: types that Rust does not have, attributes
//! for what Rust's types cannot express, and [`Value`] for any value.
//!
//! A Java class is a struct with the serde name of the class. A Java field is a field of the same name:
//!
//! | in Rust | in Java |
//! |---|---|
//! | `i32`, `i64`, `i16`, `i8`, `f32`, `f64`, `bool` | `int`, `long`, `short`, `byte`, `float`, `double`, `boolean` |
//! | `u16`, or a `char` up to U+FFFF | `char`; in a `char[]`, a character beyond that is two: use `Vec<u16>` |
//! | `Option<i32>` and so on | `Integer` and so on |
//! | `String`, `Option<String>` | `String` |
//! | `Vec<T>` | `ArrayList`; its elements are objects, so that `Vec<i32>` is a `List<Integer>` |
//! | `HashSet<T>`, `BTreeSet<T>` with [`hash_set`] or another of the set modules | `HashSet` … |
//! | `HashMap<K, V>`, `BTreeMap<K, V>` | `HashMap`; with [`linked_hash_map`], [`tree_map`] another |
//! | `Vec<u8>`, `serde_bytes` | `byte[]` |
//! | `Vec<T>` with [`array`](mod@array) | `int[]`, `Integer[]`, `String[]`, `Line[]` … |
//! | `String` with [`offset_date_time`], [`year`], [`uri`], [`locale`] or another of the text modules | `OffsetDateTime` … |
//! | a struct, `Option` of a struct | an object of the class that is its serde name |
//! | `#[serde(rename = "record com.acme.Point")]` on a struct | a record |
//! | `#[serde(rename = "final com.acme.Point")]` | a class that is declared `final` |
//! | an enum without data | an enum of the same constants in the same order |
//! | `#[serde(rename = "abstract com.acme.Level")]` on it | an enum whose constants have bodies |
//! | `#[serde(rename = "abstract(B, D) com.acme.Kind")]` | an enum of which only these constants have bodies |
//! | a newtype around a list or map, `#[serde(rename = "com.acme.Props")]` | a list or map of this class |
//! | an enum with data | objects of several classes: see below |
//! | any of these with [`object`] | the same, declared as `Object`, as an interface or a base class; lists and maps only as `Object` |
//! | [`Value`] | any value, declared as `Object` |
//!
//! Any reference in Java may be null. Decoding a null into anything but an `Option` fails, but with Kryo 5
//! into a number, which is 0 then.
//!
//! # Several classes in one place
//! A Java field can hold objects of several classes: it is declared as their base class, as an interface, or
//! as `Object`. In Rust this is an enum with data. Its serde name is that of the declared class, and each
//! variant has the struct of one class:
//!
//! ```
//! use redisson_codec::java::Value;
//! use serde::{Deserialize, Serialize};
//!
//! /// `interface Step {}`
//! #[derive(Serialize, Deserialize)]
//! #[serde(rename = "com.acme.Step")]
//! enum Step {
//!     Http(HttpStep),
//!     Sleep(SleepStep),
//!     /// Any other class.
//!     Other(Value),
//! }
//!
//! #[derive(Serialize, Deserialize)]
//! #[serde(rename = "com.acme.HttpStep")]
//! struct HttpStep {
//!     url: Option<String>,
//! }
//!
//! #[derive(Serialize, Deserialize)]
//! #[serde(rename = "com.acme.SleepStep")]
//! struct SleepStep {
//!     millis: i64,
//! }
//! ```
//!
//! The class in the payload decides which variant is read. If none has it, the variant of a [`Value`] takes
//! it, and writes it back unchanged; without such a variant it is an error. Kryo takes an unknown class only
//! if it is the whole payload, because nothing says where its object ends.
//!
//! For `@JsonTypeInfo(use = Id.NAME)`, the serde names of the variants are those names, and a word in front
//! of the enum's class says where Jackson writes them: `tag(type) com.acme.Step` for `property = "type"`,
//! `wrapper-object com.acme.Step` and `wrapper-array com.acme.Step` for `As.WRAPPER_OBJECT` and
//! `As.WRAPPER_ARRAY`. The variant of a [`Value`] takes other names, but not with `wrapper-array`.
//!
//! The types of this module carry values; they do not calculate. With the features `uuid-1`, `jiff-1`,
//! `num-bigint-0-5` and `bigdecimal-0-4` they convert to and from the types of those crates.
//!
//! # Examples
//! ```
//! use redisson_codec::java;
//! use serde::{Deserialize, Serialize};
//!
//! /// `class Order { long id; String customer; Set<String> tags; BigDecimal total; Object extra; }`
//! #[derive(Serialize, Deserialize)]
//! #[serde(rename = "com.acme.Order")]
//! struct Order {
//!     id: i64,
//!     customer: Option<String>,
//!     #[serde(with = "java::hash_set")]
//!     tags: Option<Vec<String>>,
//!     total: Option<java::BigDecimal>,
//!     extra: java::Value,
//! }
//! ```

#[cfg(feature = "kryo")]
pub(crate) mod base;
mod big;
mod convert;
mod exact;
pub(crate) mod known_classes;
pub(crate) mod path;
pub(crate) mod per_type;
mod probe;
pub(crate) mod refuse;
pub(crate) mod shape;
mod small_classes;
pub(crate) mod time;
pub(crate) mod type_hint;
mod uuid;
mod value;
pub(crate) mod value_slot;
pub(crate) mod variant;

pub use big::{BigDecimal, BigInteger};
pub use convert::ConversionError;
pub use small_classes::{OptionalDouble, OptionalInt, OptionalLong, Pattern};
pub use time::{Date, Duration, Instant, LocalDate, LocalDateTime, LocalTime};
pub use type_hint::{
    array, array_deque, class_name, concurrent_hash_map, currency, enum_set, hash_map, hash_set,
    linked_hash_map, linked_hash_set, linked_list, locale, month_day, object, offset_date_time, offset_time,
    optional, period, string_builder, tree_map, tree_set, uri, url, year, year_month, zone_id, zone_offset,
    zoned_date_time,
};
pub use uuid::Uuid;
pub use value::{
    Array, ClassName, Classed, Collection, Constant, Enum, EnumSet, Map, Object, Opaque, Serialized, Text,
    Value,
};

/// The text is not of the expected form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    expected: &'static str,
}

impl ParseError {
    fn new(expected: &'static str) -> Self {
        Self { expected }
    }
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "expected {}", self.expected)
    }
}

impl std::error::Error for ParseError {}
