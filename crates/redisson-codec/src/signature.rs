//! What a payload of another codec begins with. An error names it; the module `detect` says more.

use std::ops::Range;

/// A format of Redisson that the first bytes of a payload show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signature {
    JavaSerialization,
    JBossMarshalling,
    Smile,
    Kryo5,
    /// JSON with the class in an object.
    JsonJackson,
    /// JSON with the class in front of something else than an object.
    JsonOfClass,
    /// The same with the classes in front of objects.
    WrapperArray,
    /// Other JSON.
    Json,
    CborJackson,
    MsgPackJackson,
    ZStd,
    Lz4,
}

impl Signature {
    /// The format that the payload has, most likely. Only in JBoss Marshalling and LZ4, more than a
    /// few bytes are looked at.
    pub(crate) fn of(payload: &[u8]) -> Option<Self> {
        let found = match payload {
            [0xac, ..] if is_java_serialization(payload) => Self::JavaSerialization,
            [b':', ..] if is_smile(payload) => Self::Smile,
            [_, _, _, _, 0x28, 0xb5, 0x2f, 0xfd, ..] => Self::ZStd,
            [4, ..] if is_marshalled(payload) => Self::JBossMarshalling,
            [1..=9, ..] if is_kryo(payload) => Self::Kryo5,
            [0x82 | 0x9f | 0xbf, ..] if names_class(payload, 0x60..0x78, 0x78) => Self::CborJackson,
            [0x80..0xa0 | 0xdc..0xe0, ..] if names_class(payload, 0xa0..0xc0, 0xd9) => Self::MsgPackJackson,
            _ => return of_json(payload).or_else(|| is_lz4(payload).then_some(Self::Lz4)),
        };
        Some(found)
    }

    /// What an error calls it.
    fn name(self) -> &'static str {
        match self {
            Self::JavaSerialization => "Java's own serialization (`SerializationCodec`)",
            Self::JBossMarshalling => {
                "JBoss Marshalling (`MarshallingCodec`, the default before Redisson 3.19)"
            }
            Self::Smile => "Smile (`SmileJacksonCodec`)",
            Self::Kryo5 => "`Kryo5`",
            Self::JsonJackson | Self::JsonOfClass => "`JsonJackson`",
            Self::WrapperArray => "`JsonJackson` with `Mapper::wrapper_array`",
            Self::Json => "JSON without classes (`Json`)",
            Self::CborJackson => "`CborJackson`",
            Self::MsgPackJackson => "`MsgPackJackson`",
            Self::ZStd => "`ZStd` around another codec",
            Self::Lz4 => "`Lz4V2` around another codec",
        }
    }
}

/// What an error says behind the reason: which other codec the payload is of. Empty if it shows none, or one
/// of these.
#[cold]
pub(crate) fn of_another_codec(payload: &[u8], own: &[Signature]) -> String {
    let found = match Signature::of(payload) {
        Some(Signature::Json) if own.contains(&Signature::Json) => inside_json(payload),
        found => found,
    };
    match found {
        Some(found) if !own.contains(&found) => format!("; this looks like {}", found.name()),
        _ => String::new(),
    }
}

pub(crate) fn is_java_serialization(payload: &[u8]) -> bool {
    payload.starts_with(b"\xac\xed\x00\x05")
}

pub(crate) fn is_smile(payload: &[u8]) -> bool {
    payload.starts_with(b":)\n")
}

/// The most bytes of the name of a class, as in class files.
pub(crate) const LONGEST_NAME: usize = 65_535;

/// In how many bytes of a payload the name of a class is searched for.
const SEARCHED: usize = 64 << 10;

/// What the River protocol of JBoss Marshalling writes: its version, then the code of a value.
pub(crate) fn is_marshalled(payload: &[u8]) -> bool {
    match payload {
        [4, 0x3e, length, text @ ..] => text.len() == usize::from(*length) && str::from_utf8(text).is_ok(),
        [4, 0x4b, number @ ..] => number.len() == 4,
        [4, 0x4c, number @ ..] => number.len() == 8,
        // An object names its class.
        [4, 0x04, ..] => {
            let searched = &payload[..payload.len().min(SEARCHED)];
            (0..searched.len()).any(|at| river_class(&searched[at..]).is_some())
        }
        // An array, a list or a map.
        [4, 0x42 | 0x53 | 0x7e, ..] => payload.len() > 5,
        _ => false,
    }
}

/// The name of a class in the River protocol: behind `3e` and a length of one byte, or one of four bytes.
pub(crate) fn river_class(bytes: &[u8]) -> Option<&str> {
    let (length, text) = match *bytes {
        [0x3e, length, ref text @ ..] | [0, 0, 0, length, ref text @ ..] => (usize::from(length), text),
        _ => return None,
    };
    str::from_utf8(text.get(..length)?).ok().filter(|name| is_class(name))
}

/// An object behind the name of its class, or a number, a boolean or a text behind that of its class.
fn is_kryo(payload: &[u8]) -> bool {
    let is_number = |bytes: &[u8], most: usize| {
        let more = bytes.iter().take_while(|byte| **byte >= 0x80).count();
        bytes.len() <= most && more + 1 == bytes.len()
    };
    match payload {
        [1, 0, rest @ ..] => {
            let letters = rest.iter().take(LONGEST_NAME).take_while(|byte| byte.is_ascii_graphic()).count();
            let Some(name) = rest.get(..=letters).filter(|name| name[letters] >= 0x80) else { return false };
            let name: String = name.iter().map(|byte| char::from(byte & 0x7f)).collect();
            is_java_name(&name)
        }
        [2, number @ ..] => is_number(number, 5),
        [3, text @ .., last] => *last >= 0x80 && !text.is_empty() && text.is_ascii(),
        [5, 0 | 1] => true,
        [9, number @ ..] => is_number(number, 9),
        _ => false,
    }
}

pub(crate) fn is_java_name(class: &str) -> bool {
    is_class(class) || class.starts_with('[') || class.split('.').all(is_name)
}

/// Whether a binary format of Jackson names a class in front: as the first property or the first element. The
/// head of a `short` text has its length, and one byte behind `long` is that of a longer one.
fn names_class(payload: &[u8], short: Range<u8>, long: u8) -> bool {
    let text = match payload {
        // The long heads of MessagePack.
        [0xdc | 0xde, _, _, text @ ..] | [_, text @ ..] => text,
        [] => return false,
    };
    let (length, text) = match text {
        [head, text @ ..] if short.contains(head) => (usize::from(head - short.start), text),
        [head, length, text @ ..] if *head == long => (usize::from(*length), text),
        _ => return false,
    };
    let name = text.get(..length).and_then(|name| str::from_utf8(name).ok());
    name.is_some_and(|name| name == "@class" || is_class(name))
}

/// A length, and an LZ4 block of that length. LZ4 has no sign of its own.
fn is_lz4(payload: &[u8]) -> bool {
    let Some((length, block)) = payload.split_first_chunk() else { return false };
    let length = u32::from_be_bytes(*length);
    length > 0 && lz4_length(block) == usize::try_from(length).ok()
}

/// How many bytes an LZ4 block decompresses to, if it is one.
fn lz4_length(mut block: &[u8]) -> Option<usize> {
    // A length that did not fit goes on in the next bytes.
    fn longer(block: &mut &[u8], length: usize) -> Option<usize> {
        let mut length = length;
        if length == 15 {
            loop {
                let more = *block.split_off_first()?;
                length += usize::from(more);
                if more < 255 {
                    break;
                }
            }
        }
        Some(length)
    }

    let mut total = 0;
    loop {
        let token = usize::from(*block.split_off_first()?);
        let literals = longer(&mut block, token >> 4)?;
        block.split_off(..literals)?;
        total += literals;
        if block.is_empty() {
            return Some(total);
        }
        let offset = block.split_off(..2)?;
        let offset = usize::from(u16::from_le_bytes([offset[0], offset[1]]));
        if offset == 0 || offset > total {
            return None;
        }
        total += 4 + longer(&mut block, token & 15)?;
    }
}

/// JSON by its first few bytes.
fn of_json(payload: &[u8]) -> Option<Signature> {
    let payload = payload.trim_ascii_start();
    match payload {
        [b'{', rest @ ..] => {
            let first = rest.trim_ascii_start();
            match first.first()? {
                b'"' if first.starts_with(b"\"@class\"") => Some(Signature::JsonJackson),
                b'"' | b'}' => Some(Signature::Json),
                _ => None,
            }
        }
        [b'[', rest @ ..] => {
            let first = rest.trim_ascii_start();
            let named = first.strip_prefix(b"\"").and_then(|text| {
                let end = text.iter().take(1000).position(|byte| *byte == b'"')?;
                let name = str::from_utf8(&text[..end]).ok().filter(|name| is_class(name))?;
                let behind = text[name.len() + 1..].trim_ascii_start().strip_prefix(b",")?;
                behind.trim_ascii_start().first().copied()
            });
            match (named, first.first()?) {
                (Some(b'{'), _) => Some(Signature::WrapperArray),
                (Some(_), _) => Some(Signature::JsonOfClass),
                (None, b'[' | b']' | b'{' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                    Some(Signature::Json)
                }
                _ => None,
            }
        }
        [b'"', .., b'"'] => Some(Signature::Json),
        _ => None,
    }
}

/// The format that names classes within JSON which does not begin with one. Only `wrapper_array()` reads a
/// class in front of an object, so that one comes first.
fn inside_json(payload: &[u8]) -> Option<Signature> {
    let searched = &payload[..payload.len().min(SEARCHED)];
    let opens = |byte: &u8| matches!(byte, b'[' | b'{');
    let begun = (0..searched.len()).filter(|at| opens(&searched[*at]));
    let mut found = None;
    for signature in begun.filter_map(|at| of_json(&searched[at..])) {
        match signature {
            Signature::WrapperArray => return Some(signature),
            Signature::Json => {}
            _ => found = Some(signature),
        }
    }
    found
}

/// Whether a text looks like the name of a Java class with its package: `com.acme.Order$Line`.
pub(crate) fn is_class(text: &str) -> bool {
    if text.len() > LONGEST_NAME {
        return false;
    }
    let array = text.trim_start_matches('[');
    match array.strip_prefix('L').and_then(|name| name.strip_suffix(';')) {
        _ if array.len() == text.len() => is_no_array(text),
        Some(name) => is_no_array(name),
        None => matches!(array, "B" | "C" | "D" | "F" | "I" | "J" | "S" | "Z"),
    }
}

fn is_no_array(text: &str) -> bool {
    // `java.util.EnumSet<com.acme.Color>`
    let name = text.split('<').next().unwrap_or_default();
    let mut parts = name.rsplit('.');
    let last = parts.next().unwrap_or_default();
    last.starts_with(char::is_uppercase) && name.contains('.') && is_name(last) && parts.all(is_name)
}

/// Whether a text can be a part of the name of a Java class.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(is_name_letter)
}

/// Whether a letter is usual in the name of a class. Java's virtual machine takes nearly all.
pub(crate) fn is_name_letter(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '$' | '-')
}
