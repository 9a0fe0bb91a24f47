//! The value of a payload of a known format.

use super::described::{self, Description};
use super::format::{Format, Kind};
use super::json;
use super::unpacked::{unpacked, within_bounds};
use crate::java::Value;
use crate::java_serialization;
use crate::shown::shown;
use crate::{
    CborJackson, Codec, CodecError, Double, Int, JsonJackson, Kryo5, Long, MsgPack, MsgPackJackson,
    WithClasses,
};

impl Format {
    /// The value of a payload of this format as JSON, in one line without control characters.
    ///
    /// What JSON has no type for is printed like this:
    ///
    /// | Java | JSON |
    /// |---|---|
    /// | `Date`, `Instant` | text of RFC 3339: `"2024-02-29T12:34:56.789Z"` |
    /// | the other times, `UUID`, `URI`, `Class` and so on | the text that Java prints |
    /// | constant of an enum | its name; in Kryo 5 its number, if the enum is not of Java's library |
    /// | `byte[]`, `char[]` | text in base64; text |
    /// | NaN, infinities | `"NaN"`, `"Infinity"`, `"-Infinity"` |
    /// | number beyond a double | its text |
    /// | `Optional` | the value in it, or `null` |
    /// | object | object; its class, if the payload names it, is a first property `@class` |
    /// | list, set, array, map | list or object, without its class |
    /// | map with other keys than texts | object with the texts of the keys; a list of pairs, if a key is `null`, a list or an object, or if two keys have the same text |
    /// | half of a surrogate pair | text: `"U+D83D"` |
    ///
    /// JSON with classes and values that Redisson's own object mapper does not write, such as
    /// `["java.util.Date","2024-02-29"]`, is printed as it is.
    ///
    /// Properties and keys stay in the order of the payload. What [`describe`](Self::describe) describes
    /// becomes an object with the properties `@class` (if it is known), `@length` and `@strings`.
    ///
    /// # Errors
    /// When the payload is not of this format.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::detect::{Format, Kind};
    ///
    /// let payload = b"\x01\x00java.util.LinkedHashMa\xf0\x02\x03orderI\xe4\x09\xe0\x7e";
    /// assert_eq!(Format::Plain(Kind::Kryo5).to_json(payload)?, r#"{"orderId":8112}"#);
    /// # Ok::<(), redisson_codec::CodecError>(())
    /// ```
    pub fn to_json(self, payload: &[u8]) -> Result<String, CodecError> {
        self.read(payload, |kind, payload| match value(kind, payload) {
            Ok(json) => Ok(json),
            Err(error) => described::of(kind, payload).map(|found| described::json(&found)).ok_or(error),
        })
    }

    /// The same where the classes of an application are described: the objects of Kryo 5 have the names of
    /// their fields, and the constants of enums theirs. Make `classes` once for many payloads: it keeps how
    /// the objects of each class are read.
    ///
    /// # Errors
    /// When the payload is not of this format, or has an object of a class that is not described. It is not
    /// replaced by what [`describe`](Self::describe) says.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::Kryo5;
    /// use redisson_codec::classes::Classes;
    /// use redisson_codec::detect::{Format, Kind};
    ///
    /// let classes: Classes = "class com.acme.Coupon { String code; Integer percent; }".parse()?;
    /// let classes = Kryo5.with_classes(classes);
    /// let payload = b"\x01\x00com.acme.Coupo\xeeWINTER2\xb6\x01\x0e";
    /// let json = Format::Plain(Kind::Kryo5).to_json_with_classes(payload, &classes)?;
    /// assert_eq!(json, r#"{"@class":"com.acme.Coupon","code":"WINTER26","percent":7}"#);
    /// # Ok::<(), redisson_codec::CodecError>(())
    /// ```
    pub fn to_json_with_classes(self, payload: &[u8], classes: &WithClasses) -> Result<String, CodecError> {
        self.read(payload, |kind, payload| match kind {
            Kind::Kryo5 => Ok(json::of(&classes.described(payload)?)),
            kind => value(kind, payload),
        })
    }

    /// What can be said of a payload of this format that is recognised but cannot be read. `None` if
    /// [`to_json`](Self::to_json) prints its value, or if it is not of this format.
    ///
    /// # Examples
    /// ```
    /// use redisson_codec::detect::{Format, Kind};
    ///
    /// let payload = b"\x01\x00com.acme.Coupo\xeeWINTER2\xb6\x0e";
    /// let described = Format::Plain(Kind::Kryo5).describe(payload).unwrap();
    /// assert_eq!(described.to_string(), r#"com.acme.Coupon, 26 bytes: "WINTER26""#);
    /// ```
    #[must_use]
    pub fn describe(self, payload: &[u8]) -> Option<Description> {
        let described = self.read(payload, |kind, payload| match value(kind, payload) {
            Ok(_) => Ok(None),
            Err(_) => Ok(described::of(kind, payload)),
        });
        described.ok().flatten()
    }

    /// Reads what is behind the compression.
    pub(super) fn read<T>(
        self,
        payload: &[u8],
        read: impl FnOnce(Kind, &[u8]) -> Result<T, CodecError>,
    ) -> Result<T, CodecError> {
        let (compression, kind) = self.parts();
        within_bounds(payload, || match compression {
            None => read(kind, payload),
            Some(compression) => read(kind, &unpacked(compression, payload)?),
        })
    }
}

/// The value of a payload as JSON.
fn value(kind: Kind, payload: &[u8]) -> Result<String, CodecError> {
    let of = |value: Value| json::of(&value);
    Ok(match kind {
        Kind::Kryo5 => match Kryo5.decode(payload)? {
            Value::Opaque(object) => {
                let class = shown(&object.class);
                return Err(CodecError::new(format!("the fields of the class `{class}` are not known")));
            }
            value => of(value),
        },
        // As it is, with its classes, if an object mapper of the application wrote it.
        Kind::JsonJackson => match JsonJackson.decode(payload) {
            Ok(value) => of(value),
            Err(error) => as_it_is(payload).ok_or(error)?,
        },
        Kind::CborJackson => of(CborJackson.decode(payload)?),
        Kind::MsgPackJackson => of(MsgPackJackson.decode(payload)?),
        Kind::MsgPack => of(MsgPack.decode(payload)?),
        Kind::Json => as_it_is(payload).ok_or_else(|| CodecError::new("expected JSON"))?,
        Kind::String => of(crate::String.decode(payload)?.into()),
        Kind::Long => of(Long.decode(payload)?.into()),
        Kind::Int => of(Int.decode(payload)?.into()),
        Kind::Double => of(Double.decode(payload)?.into()),
        Kind::Bytes => of(Value::Bytes(payload.to_vec())),
        Kind::JavaSerialization => {
            of(java_serialization::value(payload).map_err(|why| CodecError::new(why.of_object_at(0)))?)
        }
        Kind::JBossMarshalling | Kind::Smile => {
            return Err(CodecError::new(format!("{} cannot be read", Format::Plain(kind))));
        }
    })
}

/// JSON, without being read as Jackson's.
fn as_it_is(payload: &[u8]) -> Option<String> {
    json::compact(str::from_utf8(payload).ok()?)
}
