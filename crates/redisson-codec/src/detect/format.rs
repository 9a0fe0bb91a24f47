//! [`Format`]: what a payload may be, and its name.

use std::fmt;
use std::str::FromStr;

use super::unpacked::Compression;
use crate::CodecError;

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
    SnappyV1(Kind),
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
    (Compression::SnappyV1, "snappy-v1+"),
    (Compression::SnappyV2, "snappy+"),
    (Compression::ZStd, "zstd+"),
];

impl Format {
    pub(super) fn new(compression: Option<Compression>, kind: Kind) -> Self {
        match compression {
            None => Format::Plain(kind),
            Some(Compression::Lz4V2) => Format::Lz4V2(kind),
            Some(Compression::SnappyV1) => Format::SnappyV1(kind),
            Some(Compression::SnappyV2) => Format::SnappyV2(kind),
            Some(Compression::ZStd) => Format::ZStd(kind),
        }
    }

    pub(super) fn parts(self) -> (Option<Compression>, Kind) {
        match self {
            Format::Plain(kind) => (None, kind),
            Format::Lz4V2(kind) => (Some(Compression::Lz4V2), kind),
            Format::SnappyV1(kind) => (Some(Compression::SnappyV1), kind),
            Format::SnappyV2(kind) => (Some(Compression::SnappyV2), kind),
            Format::ZStd(kind) => (Some(Compression::ZStd), kind),
        }
    }
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
