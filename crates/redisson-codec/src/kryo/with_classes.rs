//! [`WithClasses`]: Kryo 5 that knows the fields of an application's classes.

use std::sync::Arc;

use super::described::{Described, Plans};
use super::failure::Failure;
use super::input::Input;
use super::output::Output;
use super::{Kryo5, value};
use crate::classes::Classes;
use crate::java::Value;
use crate::serde_error::unreadable;
use crate::shown::{LONGEST, within};
use crate::signature::Signature;
use crate::{Codec, CodecError};

/// [`Kryo5`] with the descriptions of classes. Made by [`Kryo5::with_classes`]. Cloning is cheap, and clones
/// share how the objects of each class are read.
#[derive(Clone, Debug)]
pub struct WithClasses(Arc<Plans>);

impl Kryo5 {
    /// Returns a codec that reads any payload of described classes as a [`Value`], with the names of fields
    /// and constants. It writes what it has read with the same bytes. A payload that the descriptions do not
    /// cover, or do not fit, is read as [`Kryo5`] alone reads it: of an object, as `Value::Opaque`.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::classes::Classes;
    /// use redisson_codec::{Codec, Kryo5};
    ///
    /// let classes: Classes = "class com.acme.Stock { Long article; int count; List<Long> shelves; }".parse()?;
    /// let codec = Kryo5.with_classes(classes);
    /// let payload = b"\x01\x00com.acme.Stoc\xeb\x01\x0e\x06\x01\x01java.util.ArrayLis\xf4\x02\x12";
    /// let value = codec.decode(payload)?;
    /// assert_eq!(value.to_string(), "Stock{article: 7L, count: 3, shelves: [9L]}");
    /// assert_eq!(codec.encode(&value)?, payload);
    /// # Ok::<(), redisson_codec::CodecError>(())
    /// ```
    #[must_use]
    pub fn with_classes(self, classes: impl Into<Arc<Classes>>) -> WithClasses {
        WithClasses(Arc::new(Plans::new(classes.into())))
    }
}

impl Codec<Value> for WithClasses {
    fn encode(&self, value: &Value) -> Result<Vec<u8>, CodecError> {
        let mut output = Output::take();
        output.described = Some(Described::new(self.0.clone()));
        let written = value::write(&mut output, value);
        output.described = None;
        written.and_then(|()| output.finish()).map_err(|failure| {
            let why = failure.of_writing();
            CodecError::new(within(format!("the value cannot be written as Kryo 5: {why}"), LONGEST))
        })
    }

    fn decode(&self, payload: &[u8]) -> Result<Value, CodecError> {
        self.described(payload).or_else(|error| Kryo5.decode(payload).map_err(|_| error))
    }
}

impl WithClasses {
    /// The value, of which every object is described.
    pub(crate) fn described(&self, payload: &[u8]) -> Result<Value, CodecError> {
        let mut input = Input::new(payload);
        input.described = Some(Described::new(self.0.clone()));
        let read = value::read_any(&mut input).and_then(|value| match input.left() {
            0 => Ok(value),
            more => Err(Failure::new(format!("{more} bytes follow it at offset {}", input.at))),
        });
        read.map_err(|failure| {
            unreadable::<Value>("Kryo 5", &failure.of_reading(input.at), payload, &[Signature::Kryo5])
        })
    }
}
