//! The candidates for one payload.

use std::cmp::Reverse;

use super::format::{Format, Kind};
use super::unpacked::{Compression, unpacked, within_bounds};
use super::{described, json};
use crate::java::Value;
use crate::signature::is_class;
use crate::{CborJackson, Codec, Double, Int, JsonJackson, Kryo5, Long, MsgPack, MsgPackJackson, memory};

/// A format that a payload may have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Candidate {
    /// The format.
    pub format: Format,
    /// What speaks for it.
    pub reason: Reason,
}

/// What speaks for a format; the strongest is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The codec reads nearly any payload, or would have written other bytes.
    Weak,
    /// The codec reads the whole payload, and the value looks like one.
    Decodes,
    /// The codec reads the whole payload, and writes the same bytes, which are no readable text.
    RoundTrip,
    /// It has a signature or names Java classes, as no other format does.
    Magic,
}

/// The formats that a payload may have, best first. [`Kind::Bytes`], which reads anything, is always among
/// them.
///
/// Those with the same [`Reason`] as the first are as likely. [`Detector`](super::Detector) decides with
/// further payloads.
///
/// # Examples
/// ```
/// use redisson_codec::detect::{self, Kind, Reason};
///
/// let candidates = detect::candidates(b"\x03hell\xef");
/// assert_eq!((candidates[0].format, candidates[0].reason), (Kind::Kryo5.into(), Reason::RoundTrip));
/// assert_eq!((candidates[1].format, candidates[1].reason), (Kind::Bytes.into(), Reason::Weak));
/// ```
#[must_use]
pub fn candidates(payload: &[u8]) -> Vec<Candidate> {
    within_bounds(payload, || {
        let mut found = plain(payload).with(None);
        for compression in COMPRESSIONS {
            if let Ok(inside) = unpacked(compression, payload) {
                found.extend(packed(compression, &inside).with(Some(compression)));
            }
        }
        found.sort_by_key(|candidate| Reverse(candidate.reason));
        found
    })
}

const COMPRESSIONS: [Compression; 4] =
    [Compression::ZStd, Compression::Lz4V2, Compression::SnappyV1, Compression::SnappyV2];

/// The kinds that bytes may be, with the likely ones of the same reason first.
struct Kinds(Vec<(Kind, Reason)>);

impl Kinds {
    fn add(&mut self, kind: Kind, reason: Reason) {
        self.0.push((kind, reason));
    }

    /// Adds what Jackson may have written with classes, and what another codec may have written without them.
    /// A list or object that names none is more often the second.
    fn add_both(&mut self, jackson: (Kind, Option<Reason>), plain: (Kind, Option<Reason>), is_group: bool) {
        let both = if is_group { [plain, jackson] } else { [jackson, plain] };
        self.0.extend(both.into_iter().filter_map(|(kind, reason)| Some((kind, reason?))));
    }

    fn with(self, compression: Option<Compression>) -> Vec<Candidate> {
        let format = |kind| Format::new(compression, kind);
        self.0.into_iter().map(|(kind, reason)| Candidate { format: format(kind), reason }).collect()
    }
}

/// What is behind a compression, which came out with the length that the payload announces. That is more than
/// weak, also if nothing is known of what came out.
fn packed(compression: Compression, inside: &[u8]) -> Kinds {
    let mut kinds = plain(inside);
    let is_known = kinds.0.iter().any(|(_, reason)| *reason > Reason::Weak);
    // Without anything in it, only Zstandard has a signature.
    if !is_known && (!inside.is_empty() || compression == Compression::ZStd) {
        kinds.0.iter_mut().for_each(|(_, reason)| *reason = Reason::Decodes);
    }
    kinds
}

fn plain(payload: &[u8]) -> Kinds {
    let mut kinds = Kinds(Vec::new());
    for kind in [Kind::JavaSerialization, Kind::JBossMarshalling, Kind::Smile] {
        if described::is(kind, payload) {
            kinds.add(kind, Reason::Magic);
        }
    }
    kryo(payload, &mut kinds);
    let text = str::from_utf8(payload).ok();
    let printable = text.filter(|text| is_printable(text));
    if let Some(text) = printable {
        readable(text, &mut kinds);
    }
    binary(payload, printable.is_some(), &mut kinds);
    kinds.add(Kind::Bytes, Reason::Weak);
    if text.is_some() && printable.is_none() {
        kinds.add(Kind::String, Reason::Weak);
    }
    kinds
}

/// Kryo 5 begins with the number or the name of a class.
fn kryo(payload: &[u8], kinds: &mut Kinds) {
    if described::is(Kind::Kryo5, payload) {
        return kinds.add(Kind::Kryo5, Reason::Magic);
    }
    match value(&Kryo5, payload) {
        // Redisson stores no nulls.
        Some(Value::Null) => kinds.add(Kind::Kryo5, Reason::Weak),
        Some(value) => kinds.add(Kind::Kryo5, round_trip(&Kryo5, &value, payload)),
        None => {}
    }
}

/// The value that a codec reads. Each of them may use all memory that the payload may take.
fn value(codec: &impl Codec<Value>, payload: &[u8]) -> Option<Value> {
    memory::within(usize::MAX, || codec.decode(payload).ok())
}

/// Whether the codec writes the same bytes again.
fn round_trip(codec: &impl Codec<Value>, value: &Value, payload: &[u8]) -> Reason {
    match codec.encode(value) {
        Ok(again) if again == payload => Reason::RoundTrip,
        _ => Reason::Decodes,
    }
}

/// Whether a text has something to read in it, and nothing that cannot be shown.
fn is_printable(text: &str) -> bool {
    let hidden = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r') || c == '\u{fffd}';
    text.contains(|c: char| !c.is_whitespace()) && !text.contains(hidden)
}

/// Codecs that write texts: of numbers, JSON, and as they are.
fn readable(text: &str, kinds: &mut Kinds) {
    let same = |again: Result<Vec<u8>, _>| again.is_ok_and(|again| again == text.as_bytes());
    let likely = |is_likely| if is_likely { Reason::Decodes } else { Reason::Weak };
    if let Ok(value) = Long.decode(text.as_bytes()) {
        kinds.add(Kind::Long, likely(same(Long.encode(&value))));
    }
    if let Ok(value) = Int.decode(text.as_bytes()) {
        kinds.add(Kind::Int, likely(same(Int.encode(&value))));
    }
    if let Ok(value) = Double.decode(text.as_bytes()) {
        // Older JDKs print more digits.
        kinds.add(Kind::Double, likely(text.contains('.') || same(Double.encode(&value))));
    }
    let json = json::compact(text);
    let of_jackson = json.as_deref().and_then(|json| match value(&JsonJackson, text.as_bytes()) {
        Some(value) => Some(likely_class(&value, Reason::Decodes)),
        // An object mapper of the application wrote other values behind the same classes.
        None => (json.contains("\"@class\":\"") || json.contains("[\"java.")).then_some(Reason::Magic),
    });
    let of_json = json.map(|_| likely(of_jackson != Some(Reason::Magic)));
    let first = text.trim_start().chars().next();
    let is_group = matches!(first, Some('{' | '['));
    kinds.add_both((Kind::JsonJackson, of_jackson), (Kind::Json, of_json), is_group);
    kinds.add(Kind::String, likely(of_json.is_none() || !is_group && first != Some('"')));
}

/// CBOR and MessagePack.
fn binary(payload: &[u8], is_printable: bool, kinds: &mut Kinds) {
    let cbor = value(&CborJackson, payload)
        .map(|value| likely_class(&value, unreadable(&CborJackson, &value, payload, is_printable)));
    kinds.0.extend(cbor.map(|reason| (Kind::CborJackson, reason)));
    let of_jackson = value(&MsgPackJackson, payload)
        .map(|value| likely_class(&value, unreadable(&MsgPackJackson, &value, payload, is_printable)));
    let of_plain = value(&MsgPack, payload).map(|value| match of_jackson {
        Some(Reason::Magic) => Reason::Weak,
        Some(reason) => reason,
        None => unreadable(&MsgPack, &value, payload, is_printable),
    });
    let is_group = matches!(payload, [0x80..0xa0 | 0xdc..0xe0, ..]);
    kinds.add_both((Kind::MsgPackJackson, of_jackson), (Kind::MsgPack, of_plain), is_group);
}

/// Whether a binary codec writes the same bytes again, which says less if they can be read as a text.
fn unreadable(codec: &impl Codec<Value>, value: &Value, payload: &[u8], is_printable: bool) -> Reason {
    match round_trip(codec, value, payload) {
        Reason::RoundTrip if is_printable => Reason::Decodes,
        _ if is_printable => Reason::Weak,
        reason => reason,
    }
}

/// Magic if Jackson's value names a class, as no other codec writes it.
fn likely_class(value: &Value, otherwise: Reason) -> Reason {
    if names_class(value) { Reason::Magic } else { otherwise }
}

/// Whether a class is in front of a value or of one in it. As deep as the value, which a codec has read.
fn names_class(value: &Value) -> bool {
    match value {
        Value::Object(object) => {
            !object.class.is_empty() || object.fields.iter().any(|(_, value)| names_class(value))
        }
        Value::Array(array) => match &array.elements[..] {
            _ if !array.class.is_empty() => true,
            // Jackson's `WRAPPER_ARRAY`.
            [Value::String(class), Value::Object(_) | Value::Array(_)] if is_class(class) => true,
            elements => elements.iter().any(names_class),
        },
        // Also a list of two texts is read like that.
        Value::Enum(constant) => is_class(&constant.class),
        Value::Collection(list) => is_class(&list.class) || list.elements.iter().any(names_class),
        Value::Long(_)
        | Value::Byte(_)
        | Value::Short(_)
        | Value::Character(_)
        | Value::BigInteger(_)
        | Value::BigDecimal(_)
        | Value::Uuid(_)
        | Value::Date(_)
        | Value::Text(_)
        | Value::EnumSet(_)
        | Value::Map(_) => true,
        _ => false,
    }
}
