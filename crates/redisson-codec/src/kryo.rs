//! [`Kryo5`]: Redisson's default codec.
//!
//! | room | what is in it |
//! |---|---|
//! | `input`, `output` | numbers, texts and class names |
//! | `read`, `write` | serde's way between a payload and a Rust type, by its [shape](super::java) |
//! | `scalar`, `text`, `fields` | the types of [`java`](super::java), and other small classes of Java's library |
//! | `value` | [`Value`] |

mod failure;
mod input;
mod library_object;
mod numbered;
mod output;
mod read;
mod scalar;
mod text;
mod value;
mod write;

use std::any::Any;

use serde::Serialize;
use serde::de::DeserializeOwned;

use failure::Failure;
use input::Input;
use output::Output;
use write::Plan;

use super::java::shape::Shape;
use super::{AnyClass, Codec, CodecError};
use crate::serde_error::without_values;

pub use super::java::Value;

/// As deep as `serde_json` goes.
const MAX_DEPTH: usize = 127;

/// Kryo 5 as Redisson's `Kryo5Codec` has it, which is Redisson's codec where none is named.
///
/// Both sides read what the other writes, and write the same bytes, but for the order of hashed sets and maps. A struct
/// is a Java class: its serde name is that of the class, and its fields are those of the class, which are written
/// without names, in the order of their names. So all of them have to be there, with the right types; what these are is
/// in [`java`](super::java), and a class and its struct side by side are in `docs/codecs.md`. [`Value`] is any payload
/// whose classes are of Java's standard library.
///
/// Class names of structs and enums have to be the expected ones; see [`with_any_class`](Self::with_any_class).
///
/// # Errors
/// Decoding fails when the payload is not exactly one value of this type, announces more than it holds, nests deeper
/// than 127 levels, or has a class that is not expected or whose layout is not known; the error names the offset, and
/// quotes nothing but class names unless the type's own `Deserialize` does. Both directions fail for types that have
/// no counterpart in Java, and name the place in the type. Encoding fails when the type's `Serialize` does, for a null
/// where Java cannot have one, and beyond 127 levels.
///
/// # Examples
/// ```
/// use redisson_codec::{self as codec, Codec};
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
/// let payload = codec::Kryo5.encode(&point)?;
/// assert_eq!(payload, b"\x01\x00com.acme.Poin\xf4\x82a\x02\x00");
/// assert_eq!(point, codec::Kryo5.decode(&payload)?);
/// # Ok::<(), codec::CodecError>(())
/// ```
///
/// A payload of any class of the standard library:
/// ```
/// use redisson_codec::{self as codec, Codec, kryo::Value};
///
/// let payload = b"\x01\x00java.util.LinkedHashMa\xf0\x02\x03\x82a\x02\x02";
/// let value: Value = codec::Kryo5.decode(payload)?;
/// assert_eq!(value.to_string(), r#"{"a": 1}"#);
/// assert_eq!(codec::Kryo5.encode(&value)?, payload);
/// # Ok::<(), codec::CodecError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Kryo5;

impl Kryo5 {
    /// A codec that reads structs and enums of other class names than their own, too: for classes that were moved to
    /// another package, or that have classes below them with the same fields. It writes what [`Kryo5`] does.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::{self as codec, Codec};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// #[serde(rename = "com.acme.orders.Order")]
    /// struct Order {
    ///     id: i32,
    /// }
    ///
    /// let old = b"\x01\x00com.acme.Orde\xf2\x0e";
    /// let error = Codec::<Order>::decode(&codec::Kryo5, old).err().unwrap().to_string();
    /// assert!(error.contains("expected the class `com.acme.orders.Order`, found `com.acme.Order`"));
    /// let order: Order = codec::Kryo5.with_any_class().decode(old)?;
    /// assert_eq!(order.id, 7);
    /// # Ok::<(), codec::CodecError>(())
    /// ```
    #[must_use]
    pub fn with_any_class(self) -> AnyClass<Self> {
        AnyClass(self)
    }
}

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
        // On its own there is no need to hand over a copy.
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
    match written {
        Ok(()) => Ok(output.finish()),
        Err(failure) => {
            let kind = std::any::type_name::<T>();
            Err(CodecError::new(format!("`{kind}` cannot be written as Kryo 5: {failure}")))
        }
    }
}

fn decode<T: DeserializeOwned + 'static>(payload: &[u8], any_class: bool) -> Result<T, CodecError> {
    let shape = Shape::of::<T>()?;
    let mut reader = read::ReadContext { input: Input::new(payload), shape, any_class };
    let read =
        T::deserialize(read::ValueReader::whole(&mut reader)).and_then(|value| match reader.input.left() {
            0 => Ok(value),
            more => Err(Failure::new(format!("{more} bytes follow it at offset {}", reader.input.at))),
        });
    read.map_err(|failure| {
        let kind = std::any::type_name::<T>();
        let why = match failure.is_foreign() {
            true => format!("{}, before offset {}", without_values(&failure), reader.input.at),
            false => failure.to_string(),
        };
        CodecError::new(format!("expected `{kind}` as Kryo 5: {why}"))
    })
}
