//! Which codec wrote a payload, and what its value is: for tools that print the payloads of other programs.
//!
//! Nothing in a payload names the codec, and some payloads are the same bytes in several codecs: `30` is `0`
//! of [`Int`](crate::Int), [`Long`](crate::Long), [`Json`](crate::Json) and
//! [`JsonJackson`](crate::JsonJackson), and a text of [`String`](crate::String). So [`candidates`] says which
//! codecs may have written a payload, and why, and a [`Detector`] names the codec of a queue from several
//! payloads. Use the answer to print a payload, and never to choose the codec of what a program writes.
//!
//! ```
//! use redisson_codec::detect::{self, Detector, Format, Kind, Reason};
//!
//! let payload = br#"{"@class":"com.acme.Order","id":["java.lang.Long",7]}"#;
//! let best = &detect::candidates(payload)[0];
//! assert_eq!((best.format, best.reason), (Format::Plain(Kind::JsonJackson), Reason::Magic));
//! assert_eq!(best.format.to_json(payload)?, r#"{"@class":"com.acme.Order","id":7}"#);
//!
//! let mut queue = Detector::new();
//! queue.add(b"7");
//! assert_eq!(queue.verdicts()[0].to_string(), "long (or int, json-jackson, json, string, cbor-jackson, msgpack-jackson, msgpack)");
//! queue.add(b"5000000000");
//! queue.add(b"order-8");
//! assert_eq!(queue.verdicts()[0].to_string(), "string");
//! # Ok::<(), redisson_codec::CodecError>(())
//! ```
//!
//! # What is found
//!
//! | [`Kind`] | how | printed by [`Format::to_json`] |
//! |---|---|---|
//! | `kryo5` | it begins with the name of a class, or is decoded and encodes to the same bytes | yes, if all classes are in Java's library |
//! | `json-jackson` | JSON; magic if it names classes, as `{"@class":…}`, `["java.util.Date",…]` or `["com.acme.Order",{…}]` | yes |
//! | `cbor-jackson`, `msgpack-jackson` | decoded as a whole; magic if it names classes | yes |
//! | `json` | JSON | yes |
//! | `msgpack` | decoded as a whole | yes |
//! | `string` | UTF-8; weak if it has control characters or is a JSON object, list or string | yes |
//! | `long`, `int`, `double` | the text that Java prints of such a number | yes |
//! | `bytes` | anything, always weak | in base64 |
//! | `java-serialization` | `ac ed 00 05`: Redisson's `SerializationCodec` | yes |
//! | `jboss-marshalling` | begins with `04`: `MarshallingCodec` of Redisson 3 | no |
//! | `smile` | `3a 29 0a`: `SmileJacksonCodec` | no |
//!
//! Each of them is also found inside of [`Lz4V2`](crate::Lz4V2), [`SnappyV2`](crate::SnappyV2) and
//! [`ZStd`](crate::ZStd). Of what cannot be read, [`Format::describe`] has the class and the readable texts.
//! That is most often an object of an application's class in Kryo 5, whose payload has neither names nor
//! types of its fields. `KryoCodec` (Kryo 4) writes numbers, texts and booleans as Kryo 5 does.
//! [`Format::mapper_settings`] names the settings of an application's `ObjectMapper` that a payload shows.
//!
//! # Limits
//!
//! Anybody may have written a payload. Nothing here panics. What a payload decompresses to takes at most 1
//! MiB, or 256 times the payload if that is more, and never more than 64 MiB. The values that are decoded
//! take at most 64 MiB, or 256 times the payload if that is more, and while a list grows twice as much. A
//! payload that needs more is not recognised as that format. Values nest 127 levels at most.

mod described;
mod format;
mod json;
mod mapper;
mod printed;
mod rules;
mod unpacked;
mod vote;

pub use described::Description;
pub use format::{Format, Kind};
pub use rules::{Candidate, Reason, candidates};
pub use vote::{Detector, Verdict};
