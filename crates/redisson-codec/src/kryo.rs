//! [`Kryo5`]: Redisson's default codec.

// | module | contents |
// |---|---|
// | `input`, `output` | numbers, strings and class names as bytes |
// | `read`, `write` | serde: between a payload and a Rust type, by the shape of the type |
// | `scalar`, `parts_as_text`, `small_classes` | the types of `java`, and other small classes of Java's library |
// | `value` | `java::Value` |
// | `described` | the same of described classes |

#[cfg(feature = "classes")]
mod described;
mod failure;
mod input;
mod numbered;
mod output;
mod parts_as_text;
mod read;
mod scalar;
mod small_classes;
mod value;
mod write;

use std::any::Any;

use serde::Serialize;
use serde::de::DeserializeOwned;

use failure::Failure;
#[cfg(feature = "detect")]
use input::ClassRef;
use input::Input;
use output::Output;
use write::Plan;

use super::java::Value;
use super::java::shape::Shape;
use super::{AnyClass, Codec, CodecError};
use crate::levels::MAX_DEPTH;
use crate::serde_error::unreadable;
use crate::shown::{LONGEST, type_of, within};
use crate::signature::Signature;

/// Kryo 5 as Redisson's `Kryo5Codec` writes it. Redisson uses this codec by default.
///
/// Both sides read what the other writes. They also write the same bytes, apart from the order of hashed sets
/// and maps.
///
/// A struct stands for a Java class: its serde name is the name of the class, its fields are the fields of
/// the class. Kryo writes the fields without names, sorted by name, so the struct needs all of them, with the
/// right types. The module [`java`](super::java) lists the types. A [`java::Value`](super::java::Value) holds
/// any payload whose classes are in Java's standard library. Of any other class it keeps the bytes, if it is
/// the whole payload.
///
/// The classes of structs and enums must have the expected names; see
/// [`with_any_class`](Self::with_any_class).
///
/// # Errors
/// Decoding fails when the payload is not exactly one value of this type, announces more than it contains,
/// nests deeper than 127 levels, or has a class that is unexpected or whose layout is unknown. The error
/// names the field and its type, and the offset. It quotes only class names, unless the type's own
/// `Deserialize` quotes more; in any case 100 characters at most.
///
/// Encoding fails when the type's `Serialize` fails, for a null where Java has none, and beyond 127 levels.
///
/// Both directions fail for types without a counterpart in Java. The error names the place in the type.
///
/// # Examples
/// ```
/// use redisson_codec::{Codec, Kryo5};
/// use serde::{Deserialize, Serialize};
///
/// /// `package com.acme; class Point { int x; Integer y; String label; }`
/// #[derive(Serialize, Deserialize, Debug, PartialEq)]
/// #[serde(rename = "com.acme.Point")]
/// struct Point {
///     x: i32,
///     y: Option<i32>,
///     label: Option<String>,
/// }
///
/// let point = Point { x: 1, y: None, label: Some("a".into()) };
/// let payload = Kryo5.encode(&point)?;
/// assert_eq!(payload, b"\x01\x00com.acme.Poin\xf4\x82a\x02\x00");
/// assert_eq!(point, Kryo5.decode(&payload)?);
/// # Ok::<(), redisson_codec::CodecError>(())
/// ```
///
/// A payload of any class in the standard library:
/// ```
/// use redisson_codec::{Codec, Kryo5, java::Value};
///
/// let payload = b"\x01\x00java.util.LinkedHashMa\xf0\x02\x03\x82a\x02\x02";
/// let value: Value = Kryo5.decode(payload)?;
/// assert_eq!(value.to_string(), r#"{"a": 1}"#);
/// assert_eq!(Kryo5.encode(&value)?, payload);
/// # Ok::<(), redisson_codec::CodecError>(())
/// ```
#[doc(alias = "Kryo5Codec")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Kryo5;

impl Kryo5 {
    /// Returns a codec that does not check the class names of structs and enums when it decodes, nor those of
    /// lists and maps that are not of Java's library. Use it for classes that were moved to another package,
    /// or for subclasses with the same fields. It encodes as [`Kryo5`] does.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::{Codec, Kryo5};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// #[serde(rename = "com.acme.orders.Order")]
    /// struct Order {
    ///     id: i32,
    /// }
    ///
    /// let old = b"\x01\x00com.acme.Orde\xf2\x0e";
    /// let error = Codec::<Order>::decode(&Kryo5, old).err().unwrap().to_string();
    /// assert!(error.contains("expected the class `com.acme.orders.Order`, found `com.acme.Order`"));
    /// let order: Order = Kryo5.with_any_class().decode(old)?;
    /// assert_eq!(order.id, 7);
    /// # Ok::<(), redisson_codec::CodecError>(())
    /// ```
    #[must_use]
    pub fn with_any_class(self) -> AnyClass<Self> {
        AnyClass(self)
    }
}

#[cfg(feature = "classes")]
mod with_classes;

#[cfg(feature = "classes")]
pub use with_classes::WithClasses;

impl<T: Serialize + DeserializeOwned + 'static> Codec<T> for Kryo5 {
    fn encode(&self, value: &T) -> Result<Vec<u8>, CodecError> {
        encode(value)
    }

    fn decode(&self, payload: &[u8]) -> Result<T, CodecError> {
        decode(payload, false)
    }
}

impl<T: Serialize + DeserializeOwned + 'static> Codec<T> for AnyClass<Kryo5> {
    fn encode(&self, value: &T) -> Result<Vec<u8>, CodecError> {
        self.0.encode(value)
    }

    fn decode(&self, payload: &[u8]) -> Result<T, CodecError> {
        decode(payload, true)
    }
}

fn encode<T: Serialize + DeserializeOwned + 'static>(value: &T) -> Result<Vec<u8>, CodecError> {
    let (output, written) = match (value as &dyn Any).downcast_ref::<Value>() {
        // A whole `Value` is written directly, without a copy through serde.
        Some(value) => {
            let mut output = Output::take();
            let written = value::write(&mut output, value);
            (output, written)
        }
        None => {
            let plan = Plan::of::<T>()?;
            let mut output = Output::of(&plan.classes);
            let written = value.serialize(write::ValueWriter::whole(&mut output, plan));
            (output, written)
        }
    };
    written.and_then(|()| output.finish()).map_err(|failure| {
        let (kind, why) = (type_of::<T>(), failure.of_writing());
        CodecError::new(within(format!("`{kind}` cannot be written as Kryo 5: {why}"), LONGEST))
    })
}

fn decode<T: DeserializeOwned + 'static>(payload: &[u8], any_class: bool) -> Result<T, CodecError> {
    let shape = Shape::without_aliases::<T>()?;
    let mut reader = read::ReadContext { input: Input::new(payload), shape, any_class };
    let read =
        T::deserialize(read::ValueReader::whole(&mut reader)).and_then(|value| match reader.input.left() {
            0 => Ok(value),
            more => Err(Failure::new(format!("{more} bytes follow it at offset {}", reader.input.at))),
        });
    read.map_err(|failure| {
        unreadable::<T>("Kryo 5", &failure.of_reading(reader.input.at), payload, &[Signature::Kryo5])
    })
}

/// The class that a payload begins with, if it has no number, and the bytes behind it.
#[cfg(feature = "detect")]
pub(crate) fn named_class(payload: &[u8]) -> Option<(String, &[u8])> {
    let mut input = Input::new(payload);
    match input.class() {
        Ok(Some(class @ ClassRef::Named(_))) => {
            Some((input.class_name(class).into_owned(), &payload[input.at..]))
        }
        _ => None,
    }
}
