//! Small classes of Java's library of which Kryo writes the fields: [`Pattern`], [`OptionalInt`] and so on.

use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use super::value_slot::{store_if_requested, take_supplied, wrong_class};
use super::{Object, Value};

/// A `java.util.OptionalInt`. Kryo only: Redisson's Jackson codecs cannot write one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OptionalInt(pub Option<i32>);

/// A `java.util.OptionalLong`. Kryo only: Redisson's Jackson codecs cannot write one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OptionalLong(pub Option<i64>);

/// A `java.util.OptionalDouble`. Kryo only: Redisson's Jackson codecs cannot write one.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct OptionalDouble(pub Option<f64>);

/// A `java.util.regex.Pattern`. Jackson writes the pattern only, and reads it without flags; so do formats
/// that know nothing of Java.
///
/// # Examples
/// ```
/// use redisson_codec::java::Pattern;
///
/// let pattern = Pattern { pattern: "a.*b".to_owned(), flags: Pattern::CASE_INSENSITIVE };
/// # #[cfg(feature = "kryo")] {
/// # use redisson_codec::{Codec, Kryo5};
/// assert_eq!(Kryo5.encode(&pattern)?, b"\x01\x00java.util.regex.Patter\xeea.*\xe2\x02");
/// # }
/// # Ok::<(), redisson_codec::CodecError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern {
    /// The regular expression, in Java's syntax.
    pub pattern: String,
    /// The flags, by the numbers that Java gives them.
    pub flags: i32,
}

impl Pattern {
    /// The flag for matching upper and lower case alike.
    pub const CASE_INSENSITIVE: i32 = 2;
}

macro_rules! optional {
    ($kind:ident $name:literal $variant:ident $number:ty) => {
        impl $kind {
            fn value(self) -> Value {
                object($name, vec![("value", self.0.map_or(Value::Null, Value::$variant))])
            }

            fn of_value(value: &Value) -> Option<Self> {
                match of_class(value, $name)?.get("value")? {
                    Value::Null => Some(Self(None)),
                    Value::$variant(number) => Some(Self(Some(*number))),
                    _ => None,
                }
            }

            fn plain(self) -> Option<$number> {
                self.0
            }

            fn of_plain(plain: Option<$number>) -> Self {
                Self(plain)
            }
        }

        slotted! { $kind $name Option<$number> }
    };
}

/// `Serialize` and `Deserialize` of a type that is an object in a [`Value`], and something plain elsewhere.
macro_rules! slotted {
    ($kind:ident $name:literal $plain:ty) => {
        impl Serialize for $kind {
            fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
                struct Inside<'a>(&'a $kind);

                impl Serialize for Inside<'_> {
                    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
                        match store_if_requested(|| self.0.clone().value()) {
                            true => output.serialize_unit(),
                            false => self.0.clone().plain().serialize(output),
                        }
                    }
                }

                output.serialize_newtype_struct(concat!("redisson::java::", $name), &Inside(self))
            }
        }

        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                struct Slot;

                impl<'de> Visitor<'de> for Slot {
                    type Value = $kind;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("a ", stringify!($kind)))
                    }

                    fn visit_newtype_struct<D: Deserializer<'de>>(self, input: D) -> Result<$kind, D::Error> {
                        match take_supplied() {
                            None => <$plain>::deserialize(input).map($kind::of_plain),
                            Some(value) => $kind::of_value(&value).ok_or_else(|| wrong_class($name, &value)),
                        }
                    }
                }

                input.deserialize_newtype_struct(concat!("redisson::java::", $name), Slot)
            }
        }
    };
}

optional! { OptionalInt "java.util.OptionalInt" Integer i32 }
optional! { OptionalLong "java.util.OptionalLong" Long i64 }
optional! { OptionalDouble "java.util.OptionalDouble" Double f64 }

const PATTERN: &str = "java.util.regex.Pattern";

impl Pattern {
    fn value(self) -> Value {
        object(PATTERN, vec![("pattern", self.pattern.into()), ("flags", self.flags.into())])
    }

    fn of_value(value: &Value) -> Option<Self> {
        let value = of_class(value, PATTERN)?;
        match (value.get("pattern")?, value.get("flags")?) {
            (Value::String(pattern), Value::Integer(flags)) => {
                Some(Self { pattern: pattern.clone(), flags: *flags })
            }
            _ => None,
        }
    }

    fn plain(self) -> String {
        self.pattern
    }

    fn of_plain(pattern: String) -> Self {
        Self { pattern, flags: 0 }
    }
}

slotted! { Pattern "java.util.regex.Pattern" String }

fn object(class: &'static str, fields: Vec<(&str, Value)>) -> Value {
    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Value::Object(Box::new(Object { class: class.into(), fields }))
}

fn of_class<'a>(value: &'a Value, class: &str) -> Option<&'a Value> {
    (value.class() == class).then_some(value)
}
