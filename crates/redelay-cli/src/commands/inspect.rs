//! `redelay inspect`.

use std::io::{self, IsTerminal, Read};
use std::sync::Arc;

use redelay::codec::Kryo5;
use redelay::codec::classes::Classes;
use redelay::codec::detect::{self, Format, Reason};
use redelay::delayed_queue::EntryFormat;
use serde::Serialize;

use crate::decoder::Decoder;
use crate::escape;
use crate::failure::Failure;
use crate::mask::Mask;
use crate::out::Out;
use crate::payload::{Reader, Shown, hex, unhex};
use crate::table::{Cell, Column};

/// What some bytes are, as a document.
#[derive(Serialize)]
struct Inspected {
    /// The layout and the id of the entry around the payload, if it is a whole entry.
    entry: Option<Entry>,
    #[serde(flatten)]
    payload: Shown,
    /// Why the codec of `--codec` has not read it.
    codec_error: Option<String>,
    /// The settings of an application's own `ObjectMapper` that it shows: methods of `codec::Mapper`.
    mapper_settings: Vec<&'static str>,
    /// Which codecs may have written it, the likeliest first.
    candidates: Vec<Candidate>,
}

#[derive(Serialize)]
struct Entry {
    format: EntryFormat,
    id_hex: String,
}

#[derive(Serialize)]
struct Candidate {
    codec: String,
    reason: String,
}

/// How the bytes are read.
pub(crate) struct Reading {
    pub(crate) codec: Option<Format>,
    pub(crate) decoder: Option<String>,
    pub(crate) classes: Option<Arc<Classes>>,
}

pub(crate) async fn run(
    digits: Option<String>,
    has_digits: bool,
    reading: Reading,
    out: &Out,
) -> Result<(), Failure> {
    let bytes = match digits {
        Some(digits) => of_digits(&digits)?,
        None => {
            let bytes = from_stdin()?;
            match has_digits {
                true => of_digits(&String::from_utf8_lossy(&bytes))?,
                false if ends_with_line_feed(&bytes, reading.codec) => {
                    out.note("the line feed at the end is not part of the payload");
                    bytes[..bytes.len() - 1].to_vec()
                }
                false => bytes,
            }
        }
    };
    let mut inspected = inspect(&bytes, reading.codec, reading.classes);
    if let Some(line) = reading.decoder {
        let payload = payload(&bytes);
        inspected.payload = inspected.payload.decoded(Decoder::new(line).decode(payload).await);
    }
    if out.is_json {
        return out.json(&inspected);
    }
    out.facts(&[Column::text(""), Column::long("")], &facts(&inspected))
}

fn of_digits(digits: &str) -> Result<Vec<u8>, Failure> {
    let wrong = "expected hexadecimal digits, two for each byte; bytes as they are go to stdin";
    unhex(digits).ok_or_else(|| Failure::Usage(wrong.into()))
}

/// The payload of a whole entry, or all.
fn payload(bytes: &[u8]) -> &[u8] {
    EntryFormat::unpack(bytes).map_or(bytes, |(_, _, payload)| payload)
}

/// Whether a line feed follows the bytes, as `redis-cli` prints one: without it, they are more of a payload.
fn ends_with_line_feed(bytes: &[u8], codec: Option<Format>) -> bool {
    let Some(without) = bytes.strip_suffix(b"\n") else { return false };
    let reads = |codec: Format, bytes| codec.to_json(payload(bytes)).is_ok();
    let reason = |bytes| detect::candidates(payload(bytes)).first().map(|candidate| candidate.reason);
    match codec {
        Some(codec) => reads(codec, without) && !reads(codec, bytes),
        None => reason(without) > reason(bytes),
    }
}

fn from_stdin() -> Result<Vec<u8>, Failure> {
    let mut stdin = io::stdin().lock();
    if stdin.is_terminal() {
        return Err(Failure::Usage("give the bytes in hexadecimal digits, or send them to stdin".into()));
    }
    let mut bytes = Vec::new();
    stdin
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::Usage(format!("stdin cannot be read: {error}")))?;
    Ok(bytes)
}

fn inspect(bytes: &[u8], codec: Option<Format>, classes: Option<Arc<Classes>>) -> Inspected {
    let unpacked = EntryFormat::unpack(bytes);
    let payload = unpacked.map_or(bytes, |(_, _, payload)| payload);
    let candidate = |candidate: detect::Candidate| Candidate {
        codec: candidate.format.to_string(),
        reason: reason(candidate.reason).into(),
    };
    let classes = classes.map(|classes| Kryo5.with_classes(classes));
    let shown = Reader::new(codec, Mask::default(), [payload]).with_classes(classes).read(payload);
    let format: Option<Format> = shown.codec.parse().ok();
    Inspected {
        entry: unpacked.map(|(format, id, _)| Entry { format, id_hex: hex(id) }),
        payload: shown,
        mapper_settings: format.map(|format| format.mapper_settings(payload)).unwrap_or_default(),
        codec_error: codec.and_then(|codec| codec.to_json(payload).err()).map(|error| error.to_string()),
        candidates: detect::candidates(payload).into_iter().map(candidate).collect(),
    }
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Magic => "magic",
        Reason::RoundTrip => "round trip",
        Reason::Decodes => "decodes",
        _ => "weak",
    }
}

fn facts(inspected: &Inspected) -> Vec<Vec<Cell>> {
    let payload = &inspected.payload;
    let mut facts: Vec<(&str, String)> = Vec::new();
    if let Some(entry) = &inspected.entry {
        let layout = match entry.format {
            EntryFormat::Legacy => "an entry of Redisson 3.21.0 or older",
            _ => "an entry",
        };
        facts.push(("ENTRY", format!("{layout}, with the id 0x{}", entry.id_hex)));
    }
    facts.push(("CODEC", payload.codec.clone()));
    if let Some(why) = &inspected.codec_error {
        facts.push(("ERROR", format!("not the codec of --codec: {}", escape::text(why))));
    }
    if !inspected.mapper_settings.is_empty() {
        facts.push(("MAPPER", inspected.mapper_settings.join(", ")));
    }
    let named = |candidate: &Candidate| format!("{} ({})", candidate.codec, candidate.reason);
    facts.push(("MAY BE", inspected.candidates.iter().map(named).collect::<Vec<_>>().join(", ")));
    facts.push(("BYTES", payload.bytes.to_string()));
    facts.push(("PAYLOAD", payload.text.clone()));
    facts.into_iter().map(|(what, text)| vec![what.into(), text.into()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_unpacked() {
        let entry = unhex("08106890aa3e21912506000000000000000368656c6cef").unwrap();
        let inspected = inspect(&entry, None, None);
        assert_eq!(inspected.entry.as_ref().unwrap().id_hex, "106890aa3e219125");
        assert_eq!((&*inspected.payload.codec, &*inspected.payload.text), ("kryo5", "\"hello\""));
        let texts: Vec<String> = facts(&inspected).into_iter().map(|fact| fact[1].text.clone()).collect();
        assert_eq!(texts[0], "an entry, with the id 0x106890aa3e219125");
        let json = serde_json::to_string(&inspected).unwrap();
        assert!(
            json.starts_with(r#"{"entry":{"format":"current","id_hex":"106890aa3e219125"},"codec":"kryo5""#)
        );
    }

    #[test]
    fn settings_of_a_mapper_are_named() {
        let inspected = inspect(br#"["com.acme.Order",{"id":["java.lang.Long",7]}]"#, None, None);
        let names: Vec<String> = facts(&inspected).into_iter().map(|fact| fact[0].text.clone()).collect();
        assert_eq!((&*inspected.mapper_settings, &*names[1]), (&["wrapper_array"][..], "MAPPER"));
        let json = serde_json::to_string(&inspected).unwrap();
        assert!(json.contains(r#","mapper_settings":["wrapper_array"],"candidates":"#), "{json}");
        let json = serde_json::to_string(&inspect(b"7", None, None)).unwrap();
        assert!(json.contains(r#","codec_error":null,"mapper_settings":[],"#), "{json}");
    }

    #[test]
    fn a_codec_may_be_chosen() {
        assert_eq!(inspect(b"7", Some("string".parse().unwrap()), None).payload.text, "\"7\"");
        assert!(inspect(b"7", None, None).candidates.len() > 3);
        let other = inspect(b"7", Some("kryo5".parse().unwrap()), None);
        assert_eq!(other.payload.codec, "long");
        let error = facts(&other)[1][1].text.clone();
        assert!(
            error.starts_with("not the codec of --codec: expected ") && error.contains(" as Kryo 5: "),
            "{error}"
        );
    }

    #[test]
    fn a_line_feed_behind_a_payload_is_none_of_it() {
        let kryo = Some("kryo5".parse().unwrap());
        for (bytes, codec, is_behind) in [
            (&b"\x03hell\xef\n"[..], None, true),
            (b"\x03hell\xef", None, false),
            (b"\x03hell\xef\n", kryo, true),
            (b"{\"a\":1}\n", None, false),
            (b"hello\n", None, false),
            // JSON, whose value is the same.
            (b"7\n", None, false),
            (b"\n", None, false),
            // The number 5.
            (b"\x02\n", kryo, false),
        ] {
            assert_eq!(ends_with_line_feed(bytes, codec), is_behind, "{}", bytes.escape_ascii());
        }
    }
}
