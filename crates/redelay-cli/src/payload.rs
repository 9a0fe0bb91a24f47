//! A payload as a command prints it: its codec, and its value as JSON, or what else can be said of it.

use redelay::codec::WithClasses;
use redelay::codec::detect::{self, Detector, Format, Kind, Verdict};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::escape;
use crate::mask::Mask;

/// What is printed where the server has refused to say.
pub(crate) const UNKNOWN: &str = "?";
/// The codec of what a program of the user's has read.
const DECODER: &str = "decoder";

/// How the payloads of a queue are read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reader {
    /// What the profile says.
    chosen: Option<Format>,
    /// What was found, the codec of most payloads first.
    verdicts: Vec<Verdict>,
    mask: Mask,
    /// The classes of objects in Kryo 5.
    classes: Option<WithClasses>,
    /// What the server has said instead of a sample.
    pub(crate) refusal: Option<String>,
}

/// A payload for people and programs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Shown {
    /// The codec that has read it.
    pub(crate) codec: String,
    /// How many bytes it has.
    pub(crate) bytes: usize,
    /// Its value. What cannot be read is an object of `@class`, `@length` and `@strings`.
    pub(crate) value: Option<Box<RawValue>>,
    /// Its bytes in hexadecimal digits; `null` if the profile masks values.
    pub(crate) payload_hex: Option<String>,
    /// Why `--decoder` has not read it; `null` if it has, and without it.
    pub(crate) decoder_error: Option<String>,
    /// The value for people, escaped.
    #[serde(skip)]
    pub(crate) text: String,
}

/// What a document says of a payload. Where there is none, the fields are `null`.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum PayloadFields {
    Of(Shown),
    Absent { codec: (), bytes: (), value: (), payload_hex: (), decoder_error: () },
}

impl From<Option<Shown>> for PayloadFields {
    fn from(shown: Option<Shown>) -> Self {
        let absent = Self::Absent { codec: (), bytes: (), value: (), payload_hex: (), decoder_error: () };
        shown.map_or(absent, Self::Of)
    }
}

/// A codec of a queue, as a document says it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Codec {
    codec: String,
    /// Codecs that are as likely.
    #[serde(rename = "or")]
    tied: Vec<String>,
    /// How many payloads of the sample.
    payloads: usize,
}

impl From<&Verdict> for Codec {
    fn from(verdict: &Verdict) -> Self {
        Self {
            codec: verdict.format.to_string(),
            tied: verdict.tied.iter().map(Format::to_string).collect(),
            payloads: verdict.payloads,
        }
    }
}

impl Reader {
    /// For a queue of which these payloads are a sample.
    pub(crate) fn new<'a>(
        chosen: Option<Format>,
        mask: Mask,
        sample: impl IntoIterator<Item = &'a [u8]>,
    ) -> Self {
        let mut detector = Detector::new();
        sample.into_iter().for_each(|payload| detector.add(payload));
        Self { chosen, mask, verdicts: detector.verdicts(), classes: None, refusal: None }
    }

    /// With the classes that are described.
    pub(crate) fn with_classes(self, classes: Option<WithClasses>) -> Self {
        Self { classes, ..self }
    }

    /// What was found in the sample, unless the profile says the codec.
    pub(crate) fn found(&self) -> &[Verdict] {
        if self.chosen.is_some() { &[] } else { &self.verdicts }
    }

    /// The codecs of the sample; `None` if the server has refused one.
    pub(crate) fn codecs(&self) -> Option<Vec<Codec>> {
        let is_known = !self.verdicts.is_empty() || self.refusal.is_none();
        is_known.then(|| self.verdicts.iter().map(Codec::from).collect())
    }

    /// The codec in a word or two: `kryo5`, `long (or int, …)`, `kryo5, json`. Empty if there is no payload,
    /// and `?` if the server shows none.
    pub(crate) fn codec(&self) -> String {
        if let Some(chosen) = self.chosen {
            return chosen.to_string();
        }
        if self.verdicts.is_empty() && self.refusal.is_some() {
            return UNKNOWN.into();
        }
        let verdict = |verdict: &Verdict| match &verdict.tied[..] {
            [] => verdict.format.to_string(),
            [one] => format!("{} (or {one})", verdict.format),
            [one, ..] => format!("{} (or {one}, …)", verdict.format),
        };
        self.verdicts.iter().map(verdict).collect::<Vec<_>>().join(", ")
    }

    /// Reads a payload with the queue's codecs, or else with its own best one.
    pub(crate) fn read(&self, payload: &[u8]) -> Shown {
        let of_queue = self.verdicts.iter().map(|verdict| verdict.format);
        let own = || detect::candidates(payload).into_iter().map(|candidate| candidate.format);
        let json = |format: Format| Some((format, format.to_json(payload).ok()?));
        let read = self.chosen.into_iter().chain(of_queue).find_map(json).or_else(|| own().find_map(json));
        let (format, json) = match read {
            Some((format, json)) => (format, Some(json)),
            None => (Format::Plain(Kind::Bytes), None),
        };
        let mut described = format.describe(payload);
        let (mut json, mut why) = (json, String::new());
        if let (Some(_), Some(classes)) = (&described, &self.classes) {
            match format.to_json_with_classes(payload, classes) {
                Ok(read) => (json, described) = (Some(read), None),
                Err(error) => why = format!(": {error}"),
            }
        }
        let value = json.and_then(|json| RawValue::from_string(escape::json(&json).into_owned()).ok());
        let text = match (&described, &value) {
            _ if !self.mask.is_empty() && (described.is_some() || is_bytes(format)) => "(masked)".to_owned(),
            (Some(described), _) => format!("{described} (its fields are not known{why})"),
            (None, Some(_)) if is_bytes(format) => format!("0x{}", hex(payload)),
            (None, Some(value)) => self.mask.apply(value.clone()).get().to_owned(),
            (None, None) => format!("0x{}", hex(payload)),
        };
        let value = match described.is_some() && !self.mask.is_empty() {
            true => RawValue::from_string("\"(masked)\"".into()).ok(),
            false => value.map(|value| self.mask.apply(value)),
        };
        Shown {
            codec: format.to_string(),
            bytes: payload.len(),
            value,
            payload_hex: self.mask.is_empty().then(|| hex(payload)),
            decoder_error: None,
            text: escape::text(&text),
        }
    }
}

impl Shown {
    /// What a program has made of the payload, or why not: then the rest stays as it is.
    pub(crate) fn decoded(self, decoded: Result<String, String>) -> Self {
        match decoded {
            Ok(text) => {
                let json = serde_json::from_str::<&RawValue>(&text).ok().map(RawValue::get);
                let value = json.map_or_else(|| serde_json::Value::from(&*text).to_string(), str::to_owned);
                let value = escape::json(&value).into_owned();
                let text = if json.is_some() { value.clone() } else { escape::text(&text) };
                let value = RawValue::from_string(value).ok();
                Self { codec: DECODER.into(), value, decoder_error: None, text, ..self }
            }
            Err(why) => {
                let text = format!("{} (the decoder: {})", self.text, escape::text(&why));
                Self { text, decoder_error: Some(why), ..self }
            }
        }
    }
}

fn is_bytes(format: Format) -> bool {
    format == Format::Plain(Kind::Bytes)
}

/// Hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of hexadecimal digits, with spaces between them or `0x` in front.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = text
        .trim_start()
        .trim_start_matches("0x")
        .chars()
        .filter(|char| !char.is_ascii_whitespace())
        .map(|char| char.to_digit(16))
        .collect::<Option<_>>()?;
    let pair = |pair: &[u32]| u8::try_from(pair[0] * 16 + pair[1]).ok();
    digits.len().is_multiple_of(2).then(|| digits.chunks_exact(2).filter_map(pair).collect())
}

#[cfg(test)]
mod tests {
    use redelay::codec::Kryo5;
    use redelay::codec::classes::Classes;

    use super::*;

    const COUPON: &[u8] = b"\x01\x00com.acme.Coupo\xeeWINTER2\xb6\x0e";

    fn reader(mask: &[&str], sample: &[&[u8]]) -> Reader {
        let mask: Vec<_> = mask.iter().map(ToString::to_string).collect();
        Reader::new(None, Mask::new(&mask), sample.iter().copied())
    }

    #[test]
    fn a_payload_is_printed_by_the_codec_of_its_queue() {
        let sample: [&[u8]; 2] =
            [b"\x01\x00java.util.LinkedHashMa\xf0\x02\x03orderI\xe4\x09\xe0\x7e", COUPON];
        let reader = reader(&[], &sample);
        assert_eq!(reader.codec(), "kryo5");
        let order = reader.read(sample[0]);
        assert_eq!((&*order.codec, order.bytes, &*order.text), ("kryo5", 37, r#"{"orderId":8112}"#));
        assert_eq!(
            reader.read(COUPON).text,
            r#"com.acme.Coupon, 26 bytes: "WINTER26" (its fields are not known)"#
        );
        let json = serde_json::to_value(reader.read(COUPON)).unwrap();
        assert_eq!(json["value"]["@class"], "com.acme.Coupon");
        assert_eq!(json["payload_hex"], hex(COUPON));
    }

    #[test]
    fn what_the_queues_codec_cannot_read_is_read_by_its_own() {
        let reader = reader(&[], &[COUPON]);
        let other = reader.read(br#"{"@class":"com.acme.Order","id":7}"#);
        assert_eq!(other.codec, "json-jackson");
        let junk = reader.read(b"\xff\xfe\x00\x1b");
        assert_eq!((&*junk.codec, &*junk.text), ("bytes", "0xfffe001b"));
    }

    #[test]
    fn ties_are_named() {
        assert!(reader(&[], &[b"7"]).codec().starts_with("long (or int, …)"));
        assert_eq!(reader(&[], &[]).codec(), "");
        let chosen = Reader::new(Some("int".parse().unwrap()), Mask::default(), [&b"7"[..]]);
        assert_eq!((chosen.codec(), chosen.read(b"7").codec), ("int".into(), "int".into()));
    }

    #[test]
    fn what_is_masked_is_nowhere() {
        let secrets: [&[u8]; 4] = [br#"{"card":"WINTER26"}"#, COUPON, b"\xffWINTER26\x00", b"WINTER26"];
        let reader = reader(&["card"], &[secrets[0]]);
        for secret in secrets {
            let shown = reader.read(secret);
            let json = serde_json::to_string(&shown).unwrap();
            assert!(!json.contains("WINTER26") && !shown.text.contains("WINTER26"), "{json} {}", shown.text);
            assert!(json.contains(r#""payload_hex":null"#), "{json}");
        }
    }

    #[test]
    fn objects_of_described_classes_are_read_and_masked() {
        let classes = "class com.acme.Coupon { String code; int percent; }".parse::<Classes>().unwrap();
        let classes = Kryo5.with_classes(classes);
        let with = |mask: &[&str]| reader(mask, &[COUPON]).with_classes(Some(classes.clone()));
        let read = with(&[]).read(COUPON);
        assert_eq!(read.text, r#"{"@class":"com.acme.Coupon","code":"WINTER26","percent":7}"#);
        let masked = with(&["code"]).read(COUPON);
        assert_eq!(masked.text, r#"{"@class":"com.acme.Coupon","code":"(masked)","percent":7}"#);
        assert!(!serde_json::to_string(&masked).unwrap().contains("WINTER26"));
        let none = Kryo5.with_classes(Classes::new());
        let other = reader(&["code"], &[COUPON]).with_classes(Some(none.clone()));
        assert_eq!(other.read(COUPON).text, "(masked)");
        let other = reader(&[], &[COUPON]).with_classes(Some(none)).read(COUPON).text;
        assert!(other.ends_with("before offset 17 are not described)"), "{other}");
    }

    #[test]
    fn a_document_has_the_fields_of_a_payload_also_without_one() {
        let json = |shown: Option<Shown>| serde_json::to_value(PayloadFields::from(shown)).unwrap();
        let [none, some] = [None, Some(reader(&[], &[]).read(COUPON))].map(json);
        let fields = |json: &serde_json::Value| json.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(fields(&none), fields(&some));
        assert!(none.as_object().unwrap().values().all(serde_json::Value::is_null), "{none}");
        assert!(some["decoder_error"].is_null() && some["bytes"] == 26, "{some}");
    }

    #[test]
    fn what_a_program_prints_is_the_value() {
        let decoded = |text: &str| reader(&[], &[]).read(COUPON).decoded(Ok(text.into()));
        let json = decoded("{\"code\":\n \"WINTER26\"}");
        assert_eq!((&*json.codec, json.bytes), ("decoder", 26));
        assert_eq!(json.value.unwrap().get(), r#"{"code": "WINTER26"}"#);
        assert_eq!(json.text, r#"{"code": "WINTER26"}"#);
        let text = decoded("not JSON\x1b[2J");
        assert_eq!(text.text, "not JSON\\x1b[2J");
        assert_eq!(text.value.unwrap().get(), r#""not JSON\u001b[2J""#);
        let failed = reader(&[], &[]).read(COUPON).decoded(Err("it has\nfailed".into()));
        assert_eq!(failed.codec, "kryo5");
        assert!(failed.text.ends_with("(its fields are not known) (the decoder: it has\\nfailed)"));
        let json = serde_json::to_value(failed).unwrap();
        assert_eq!(
            (&json["decoder_error"], &json["value"]["@class"]),
            (&"it has\nfailed".into(), &"com.acme.Coupon".into())
        );
    }

    #[test]
    fn a_payload_cannot_drive_the_terminal() {
        let shown = reader(&[], &[br#"{"a":1}"#]).read("{\"a\":\n\"\u{202e}\u{9b}31m\"}".as_bytes());
        assert_eq!(shown.text, r#"{"a":"\u202e\u009b31m"}"#);
    }

    #[test]
    fn hexadecimal_digits() {
        assert_eq!(unhex(" 0x03 82\n61").as_deref(), Some(&[3, 0x82, 0x61][..]));
        assert_eq!((unhex("038"), unhex("zz"), unhex("")), (None, None, Some(Vec::new())));
        assert_eq!(unhex(&hex(b"\x00\xff")).as_deref(), Some(&b"\x00\xff"[..]));
    }
}
