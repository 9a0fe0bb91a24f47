//! [`Format`]: the names of formats, and what a payload of one is.

use std::fmt;
use std::str::FromStr;

use super::described::{self, Description};
use super::json;
use super::unpacked::{Compression, unpacked, within_bounds};
use crate::java::Value;
use crate::{CborJackson, Codec, CodecError, Double, Int, JsonJackson, Kryo5, Long, MsgPack, MsgPackJackson};

/// What a payload is: that of a codec, or of a compression around one.
///
/// Prints as, and parses from, the names of [`Kind`], with that of the compression in front.
///
/// # Examples
/// ```
/// use redisson_codec::detect::{Format, Kind};
///
/// let format: Format = "lz4+kryo5".parse()?;
/// assert_eq!(format, Format::Lz4V2(Kind::Kryo5));
/// assert_eq!(Format::from(Kind::JsonJackson).to_string(), "json-jackson");
/// let error = "kryo".parse::<Format>().unwrap_err();
/// assert!(error.to_string().starts_with("expected kryo5, json-jackson, "));
/// # Ok::<(), redisson_codec::CodecError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Not compressed.
    Plain(Kind),
    /// [`Lz4V2`](crate::Lz4V2) around it: `lz4+`.
    Lz4V2(Kind),
    /// `SnappyCodec` of Redisson 3 around it, which has no codec here: `snappy-v1+`.
    Snappy(Kind),
    /// [`SnappyV2`](crate::SnappyV2) around it: `snappy+`.
    SnappyV2(Kind),
    /// [`ZStd`](crate::ZStd) around it: `zstd+`.
    ZStd(Kind),
}

/// What a payload is, without a compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// [`Kryo5`](crate::Kryo5): `kryo5`.
    Kryo5,
    /// [`JsonJackson`](crate::JsonJackson): `json-jackson`.
    JsonJackson,
    /// [`CborJackson`](crate::CborJackson): `cbor-jackson`.
    CborJackson,
    /// [`MsgPackJackson`](crate::MsgPackJackson): `msgpack-jackson`.
    MsgPackJackson,
    /// [`Json`](crate::Json): `json`.
    Json,
    /// [`MsgPack`](crate::MsgPack): `msgpack`.
    MsgPack,
    /// [`String`](crate::String): `string`.
    String,
    /// [`Long`](crate::Long): `long`.
    Long,
    /// [`Int`](crate::Int): `int`.
    Int,
    /// [`Double`](crate::Double): `double`.
    Double,
    /// [`Bytes`](crate::Bytes), or what is not recognised: `bytes`.
    Bytes,
    /// Java's own serialization, which has no codec here: `java-serialization`.
    JavaSerialization,
    /// The `MarshallingCodec` of Redisson 3, which has no codec here: `jboss-marshalling`.
    JBossMarshalling,
    /// `SmileJacksonCodec`, which has no codec here: `smile`.
    Smile,
}

const NAMES: [(Kind, &str); 14] = [
    (Kind::Kryo5, "kryo5"),
    (Kind::JsonJackson, "json-jackson"),
    (Kind::CborJackson, "cbor-jackson"),
    (Kind::MsgPackJackson, "msgpack-jackson"),
    (Kind::Json, "json"),
    (Kind::MsgPack, "msgpack"),
    (Kind::String, "string"),
    (Kind::Long, "long"),
    (Kind::Int, "int"),
    (Kind::Double, "double"),
    (Kind::Bytes, "bytes"),
    (Kind::JavaSerialization, "java-serialization"),
    (Kind::JBossMarshalling, "jboss-marshalling"),
    (Kind::Smile, "smile"),
];

const COMPRESSIONS: [(Compression, &str); 4] = [
    (Compression::Lz4V2, "lz4+"),
    (Compression::Snappy, "snappy-v1+"),
    (Compression::SnappyV2, "snappy+"),
    (Compression::ZStd, "zstd+"),
];

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
    fn read<T>(
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

    pub(super) fn new(compression: Option<Compression>, kind: Kind) -> Self {
        match compression {
            None => Format::Plain(kind),
            Some(Compression::Lz4V2) => Format::Lz4V2(kind),
            Some(Compression::Snappy) => Format::Snappy(kind),
            Some(Compression::SnappyV2) => Format::SnappyV2(kind),
            Some(Compression::ZStd) => Format::ZStd(kind),
        }
    }

    fn parts(self) -> (Option<Compression>, Kind) {
        match self {
            Format::Plain(kind) => (None, kind),
            Format::Lz4V2(kind) => (Some(Compression::Lz4V2), kind),
            Format::Snappy(kind) => (Some(Compression::Snappy), kind),
            Format::SnappyV2(kind) => (Some(Compression::SnappyV2), kind),
            Format::ZStd(kind) => (Some(Compression::ZStd), kind),
        }
    }
}

/// The value of a payload as JSON.
fn value(kind: Kind, payload: &[u8]) -> Result<String, CodecError> {
    let of = |value: Value| json::of(&value);
    Ok(match kind {
        Kind::Kryo5 => of(Kryo5.decode(payload)?),
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
        Kind::JavaSerialization | Kind::JBossMarshalling | Kind::Smile => {
            return Err(CodecError::new(format!("{} cannot be read", name(kind))));
        }
    })
}

/// JSON, without being read as Jackson's.
fn as_it_is(payload: &[u8]) -> Option<String> {
    json::compact(str::from_utf8(payload).ok()?)
}

fn name(kind: Kind) -> &'static str {
    NAMES.iter().find(|(found, _)| *found == kind).map_or("", |(_, name)| name)
}

impl From<Kind> for Format {
    fn from(kind: Kind) -> Self {
        Format::Plain(kind)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (compression, kind) = self.parts();
        let front = COMPRESSIONS.iter().find(|(found, _)| Some(*found) == compression);
        let front = front.map_or("", |(_, front)| front);
        f.pad(&format!("{front}{}", name(kind)))
    }
}

impl FromStr for Format {
    type Err = CodecError;

    fn from_str(text: &str) -> Result<Self, CodecError> {
        let behind = |(compression, front): &(_, &str)| Some((Some(*compression), text.strip_prefix(front)?));
        let (compression, inside) = COMPRESSIONS.iter().find_map(behind).unwrap_or((None, text));
        match NAMES.iter().find(|(_, name)| *name == inside) {
            Some((kind, _)) => Ok(Format::new(compression, *kind)),
            None => {
                let (names, fronts) = (NAMES.map(|(_, name)| name), COMPRESSIONS.map(|(_, front)| front));
                let (names, fronts) = (names.join(", "), fronts.join(", "));
                Err(CodecError::new(format!("expected {names}, or one of them behind {fronts}")))
            }
        }
    }
}
