//! Passes a [`Value`] through serde, whose data model has no dates, decimals or classes.
//!
//! A type of [`java`](super) serializes as a newtype with a reserved name. A codec that knows the name
//! exchanges the value itself with the type through a thread-local slot:
//!
//! | | codec | type |
//! |---|---|---|
//! | encoding | [`capture`] requests the value | [`store_if_requested`] stores it, and serializes a unit |
//! | decoding | [`supply`] stores the value | [`take_supplied`] takes it |
//!
//! Other formats never touch the slot and see the inside of the newtype. Nothing else runs between the two
//! calls.

use std::cell::Cell;
use std::fmt;
use std::str::FromStr;

use serde::de::value::UnitDeserializer;
use serde::de::{Error as _, Expected, SeqAccess, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};

use super::refuse::refuse;
use super::{ParseError, Value};
use crate::shown::shown;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Slot {
    Empty,
    /// The next value that is serialized stores itself in [`VALUE`].
    Requested,
    /// It is in [`VALUE`].
    Full,
}

thread_local! {
    // Apart from the value, since what need not be dropped is faster to reach.
    static SLOT: Cell<Slot> = const { Cell::new(Slot::Empty) };
    static VALUE: Cell<Option<Value>> = const { Cell::new(None) };
}

#[inline]
fn fill(value: Value) {
    VALUE.set(Some(value));
    SLOT.set(Slot::Full);
}

#[inline]
fn take() -> Option<Value> {
    match SLOT.replace(Slot::Empty) {
        Slot::Full => VALUE.take(),
        _ => None,
    }
}

/// The value of a type that serializes as such a newtype. For codecs, in `serialize_newtype_struct`.
#[inline]
pub(crate) fn capture<T: Serialize + ?Sized>(inside: &T) -> Option<Value> {
    SLOT.set(Slot::Requested);
    // This fails for any other type, and then the slot is not full.
    let _ = inside.serialize(OnlyUnit);
    take()
}

/// Passes a value to the visitor of such a newtype. For codecs, in `deserialize_newtype_struct`.
#[inline]
pub(crate) fn supply<'de, V: Visitor<'de>, E: serde::de::Error>(
    value: Value,
    visitor: V,
) -> Result<V::Value, E> {
    fill(value);
    let given = visitor.visit_newtype_struct(UnitDeserializer::new());
    take();
    given
}

/// Stores the value if a codec requested it, and says whether it did. For the types, in `Serialize` of the
/// inside.
#[inline]
pub(super) fn store_if_requested(value: impl FnOnce() -> Value) -> bool {
    let asked = SLOT.replace(Slot::Empty) == Slot::Requested;
    if asked {
        fill(value());
    }
    asked
}

/// The value that a codec supplied, if any. For the types, in their visitor.
#[inline]
pub(super) fn take_supplied() -> Option<Value> {
    take()
}

/// The error for a value of another class.
pub(super) fn wrong_class<E: serde::de::Error>(expected: &str, found: &Value) -> E {
    E::custom(format_args!("expected {expected}, found {}", shown(found.class())))
}

/// How such a type is read from formats that know nothing of Java.
pub(super) trait Plain: FromStr<Err = ParseError> {
    /// From a list of integers, if it can be one.
    const OF_NUMBERS: Option<OfNumbers<Self>> = None;

    fn of_text(text: &str) -> Result<Self, ParseError> {
        text.parse()
    }
}

pub(super) type OfNumbers<T> = fn(&[i64]) -> Option<T>;

/// Reads a list of integers.
pub(super) fn of_numbers<'de, T: Plain, A: SeqAccess<'de>>(
    mut list: A,
    expected: &dyn Expected,
) -> Result<T, A::Error> {
    // None has more.
    const MOST: usize = 7;
    let Some(of_numbers) = T::OF_NUMBERS else {
        return Err(A::Error::invalid_type(Unexpected::Seq, expected));
    };
    let mut numbers = Vec::with_capacity(MOST);
    while numbers.len() <= MOST
        && let Some(number) = list.next_element()?
    {
        numbers.push(number);
    }
    of_numbers(&numbers).ok_or_else(|| A::Error::invalid_value(Unexpected::Seq, expected))
}

/// Accepts only a unit, which a type serializes after it has stored its value.
struct OnlyUnit;

#[derive(Debug)]
struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a type of `redisson_codec::java`")
    }
}

impl std::error::Error for Refused {}

impl serde::ser::Error for Refused {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Refused
    }
}

impl serde::de::Error for Refused {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Refused
    }
}

impl Serializer for OnlyUnit {
    fn serialize_unit(self) -> Result<(), Refused> {
        Ok(())
    }

    refuse! {
        type Ok = ();
        type Error = Refused;
        Refused => bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str bytes none some unit_struct
            unit_variant newtype_struct newtype_variant
    }
}

/// `Serialize` and `Deserialize` of a type that is a variant of [`Value`]. Other formats see a text, or what
/// the first closure writes, and are read by the second.
macro_rules! scalar {
    ($kind:ident $name:literal) => {
        scalar! { $kind $name |value, output| output.collect_str(value) }
    };
    ($kind:ident $name:literal |$value:ident, $output:ident| $plain:expr) => {
        scalar! { $kind $name |$value, $output| $plain, |input, visitor| input.deserialize_any(visitor) }
    };
    ($kind:ident $name:literal |$value:ident, $output:ident| $plain:expr, |$input:ident, $visitor:ident| $read:expr) => {
        impl serde::Serialize for $kind {
            fn serialize<S: serde::Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
                struct Inside<'a>(&'a $kind);

                impl serde::Serialize for Inside<'_> {
                    fn serialize<S: serde::Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
                        if $crate::java::value_slot::store_if_requested(|| {
                            $crate::java::Value::$kind(self.0.clone())
                        }) {
                            return output.serialize_unit();
                        }
                        let ($value, $output) = (self.0, output);
                        $plain
                    }
                }

                output.serialize_newtype_struct($name, &Inside(self))
            }
        }

        impl<'de> serde::Deserialize<'de> for $kind {
            fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                struct Visitor;

                impl<'de> serde::de::Visitor<'de> for Visitor {
                    type Value = $kind;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("a ", stringify!($kind)))
                    }

                    fn visit_newtype_struct<D: serde::Deserializer<'de>>(
                        self,
                        input: D,
                    ) -> Result<$kind, D::Error> {
                        match $crate::java::value_slot::take_supplied() {
                            Some($crate::java::Value::$kind(value)) => Ok(value),
                            Some(found) => Err($crate::java::value_slot::wrong_class($name, &found)),
                            None => {
                                let ($input, $visitor) = (input, self);
                                $read
                            }
                        }
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$kind, E> {
                        $crate::java::value_slot::Plain::of_text(text).map_err(E::custom)
                    }

                    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, list: A) -> Result<$kind, A::Error> {
                        $crate::java::value_slot::of_numbers(list, &self)
                    }

                    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<$kind, E> {
                        self.visit_str(&number.to_string())
                    }

                    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<$kind, E> {
                        self.visit_str(&number.to_string())
                    }

                    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<$kind, E> {
                        self.visit_str(&number.to_string())
                    }
                }

                input.deserialize_newtype_struct($name, Visitor)
            }
        }
    };
}
pub(super) use scalar;
