//! What errors say: which other codec wrote the payload, and where in the type it could not be read. None is
//! long, whatever the payload has.

use std::collections::{BTreeMap, HashMap};

use codec::java::{self, BigDecimal, Instant, Value};
use codec::{
    CborJackson, Double, Int, Json, JsonJackson, Kryo5, Long, Lz4V2, Mapper, MsgPack, MsgPackJackson,
    SnappyV2, ZStd,
};
use redelay_compat_values::tasks::{Batch, Job, Payments, Task};
use redelay_compat_values::zoo::{Entries, Envelope, Ledger, Nested, Order, Status, Times};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::*;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Other")]
struct Other {
    number: i32,
}

/// The end of the error, if it names another codec.
#[track_caller]
fn named(codec: &impl Codec<Other>, payload: &[u8]) -> Option<String> {
    let error = error(codec.decode(payload));
    Some(error.split_once("; this looks like ")?.1.to_owned())
}

/// Files of vectors, the codec among the tried ones that wrote them, and what the others call it.
const OF_FILES: [(&str, &str, &str); 10] = [
    ("shapes-serialization", "", "Java's own serialization (`SerializationCodec`)"),
    ("shapes-marshalling", "", "JBoss Marshalling (`MarshallingCodec`, the default before Redisson 3.19)"),
    ("shapes-smile", "", "Smile (`SmileJacksonCodec`)"),
    ("shapes-kryo5", "kryo5", "`Kryo5`"),
    ("kryo5", "kryo5", "`Kryo5`"),
    ("shapes-json-jackson", "json-jackson", "`JsonJackson`"),
    ("shapes-wrapper-array", "wrapper", "`JsonJackson` with `Mapper::wrapper_array`"),
    ("shapes-cbor-jackson", "cbor-jackson", "`CborJackson`"),
    ("zstd-kryo5", "", "`ZStd` around another codec"),
    ("lz4v2-kryo5", "", "`Lz4V2` around another codec"),
];

/// Of an object, each codec names the codec that wrote it. What is a number or a text says less.
#[test]
fn payloads_of_other_codecs_are_named() {
    for (file, own, expected) in OF_FILES {
        let mut right = 0;
        let all = rows(file);
        for row in &all {
            let wrapped = JsonJackson.with_mapper(Mapper::new().wrapper_array());
            let bare = JsonJackson.with_mapper(Mapper::new().without_classes());
            let of_codecs = [
                ("kryo5", error(Codec::<Other>::decode(&Kryo5, &row.payload))),
                ("json-jackson", error(Codec::<Other>::decode(&JsonJackson, &row.payload))),
                ("wrapper", error(Codec::<Other>::decode(&wrapped, &row.payload))),
                ("bare", error(Codec::<Other>::decode(&bare, &row.payload))),
                ("cbor-jackson", error(Codec::<Other>::decode(&CborJackson, &row.payload))),
                ("msgpack-jackson", error(Codec::<Other>::decode(&MsgPackJackson, &row.payload))),
                ("json", error(Codec::<Other>::decode(&Json, &row.payload))),
                ("msgpack", error(Codec::<Other>::decode(&MsgPack, &row.payload))),
            ];
            for (codec, error) in of_codecs {
                let named = error.split_once("; this looks like ").map(|(_, named)| named);
                if codec == own {
                    assert_eq!(named, None, "{}: {error}", row.name);
                } else {
                    right += usize::from(named == Some(expected));
                }
            }
        }
        println!("{file}: {right} of {}", all.len() * 8);
        // The other payloads are texts and numbers.
        assert!(right >= all.len() * 4, "{file}: {right} of {}", all.len() * 8);
    }
}

#[test]
fn each_codec_names_others() {
    let java = b"\xac\xed\x00\x05sr\x00\x01a";
    let says = |named: Option<String>, expected: &str| {
        assert!(named.as_deref().is_some_and(|named| named.starts_with(expected)), "{named:?}");
    };
    says(named(&Kryo5, java), "Java's own serialization");
    says(named(&Kryo5.with_any_class(), b":)\n\x05"), "Smile");
    says(named(&Lz4V2(Kryo5), java), "Java's own serialization");
    says(named(&SnappyV2(Kryo5), br#"{"@class":"com.acme.Other","number":5}"#), "`JsonJackson`");
    says(named(&ZStd(Json), br#"{"number":5}"#), "JSON");
    let other = Other { number: 5 };
    says(named(&ZStd(Json), &ZStd(Kryo5).encode(&other).unwrap()), "`Kryo5`");
    says(named(&Json, &ZStd(Kryo5).encode(&other).unwrap()), "`ZStd` around another codec");
    says(named(&Json, &Lz4V2(Kryo5).encode(&other).unwrap()), "`Lz4V2` around another codec");
    assert_eq!(named(&Json, b"\0\0\0\x06\x50hello"), None);
    says(named(&Kryo5, br#"{"number":5}"#), "JSON");
    says(named(&Kryo5, &MsgPackJackson.encode(&vec![other]).unwrap()), "`MsgPackJackson`");
    assert_eq!(named(&Json, br#"{"number":"x"}"#), None);
    assert_eq!(named(&JsonJackson, br#"{"number":"x"}"#), None);
    assert_eq!(named(&JsonJackson, br#"["java.util.ArrayList",[]]"#), None);
    let looks = |error: String| error.split_once("; this looks like ").unwrap().1.to_owned();
    assert_eq!(looks(error(codec::String.decode(b"\x03hell\xef"))), "`Kryo5`");
    assert_eq!(looks(error(Long.decode(b"\x09\xd2\x0f"))), "`Kryo5`");
    assert_eq!(looks(error(Int.decode(br#"["java.lang.Long",7]"#))), "`JsonJackson`");
    assert_eq!(looks(error(Double.decode(b"\x04\x3e\x01x"))).split(' ').next(), Some("JBoss"));
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Cart")]
struct Cart {
    items: Option<Vec<Item>>,
    #[serde(with = "java::linked_hash_map")]
    counts: Entries<String, Option<i32>>,
    first: Task,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename = "com.acme.Shop$Item")]
struct Item {
    price: Option<BigDecimal>,
    done: bool,
    name: String,
}

fn cart() -> Cart {
    let item = |name: &str| Item { price: "9.90".parse().ok(), done: true, name: name.into() };
    let sms = redelay_compat_values::tasks::Sms { id: Some("sms-1".into()), template: Some(1), cost: None };
    Cart {
        items: Some(vec![item("first"), item("second")]),
        counts: Entries(vec![("one".into(), Some(1)), ("two".into(), Some(2))]),
        first: Task::Sms(sms),
    }
}

/// What the payload says after one change, or at an earlier end.
#[track_caller]
fn why<T: Debug>(codec: &impl Codec<T>, payload: &[u8]) -> String {
    let error = error(codec.decode(payload));
    error.split_once(": ").expect("the type").1.to_owned()
}

#[test]
fn a_kryo_error_says_which_field() {
    let payload = Kryo5.encode(&cart()).unwrap();
    let at = |text: &[u8]| payload.windows(text.len()).position(|window| window == text).unwrap();
    let cut = |end: usize| why::<Cart>(&Kryo5, &payload[..end]);
    let end = |end: usize| format!("it ends at offset {end}, within a value");
    let second = at(b"secon\xe4");
    assert_eq!(
        cut(second + 2),
        format!("at Cart.items[1].name: expected `java.lang.String`: {}", end(second + 2))
    );
    assert_eq!(cut(second), format!("at Cart.items[1].name: expected `java.lang.String`: {}", end(second)));
    assert_eq!(cut(second - 1), format!("at Cart.items[1].done: expected `boolean`: {}", end(second - 1)),);
    let two = at(b"tw\xef");
    assert_eq!(cut(two + 1), format!("at Cart.counts[1].key: expected `java.lang.String`: {}", end(two + 1)));
    assert_eq!(cut(two + 4), format!("at Cart.counts[1]: expected `java.lang.Integer`: {}", end(two + 4)));
    let sms = at(b"sms-\xb1");
    assert_eq!(cut(sms + 1), format!("at Cart.first.id: expected `java.lang.String`: {}", end(sms + 1)));
    let mut changed = payload.clone();
    changed[two + 3] = 3;
    let found = why::<Cart>(&Kryo5, &changed);
    assert!(
        found.starts_with("at Cart.counts[1]: expected `java.lang.Integer`: expected 0 or 1 at offset "),
        "{found}"
    );
    changed[at(b"Tasks$Sm\xf3")] = b'X';
    changed[two + 3] = 1;
    let found = why::<Cart>(&Kryo5, &changed);
    assert!(found.starts_with("at Cart.first: expected the class `com.acme.Tasks$Email`, "), "{found}");
    assert!(why::<Cart>(&Kryo5, &payload[..10]).starts_with("it ends at offset 10"));
    let list = Kryo5.encode(&vec![cart()]).unwrap();
    assert!(why::<Vec<Cart>>(&Kryo5, &list[..list.len() - 1]).starts_with("at [0].items"));
}

/// Which type's own `Deserialize` refused the value.
#[test]
fn a_kryo_error_of_the_type_itself_says_which_field() {
    #[derive(Debug, Deserialize)]
    #[serde(try_from = "i32")]
    struct Even(#[allow(dead_code)] i32);

    impl TryFrom<i32> for Even {
        type Error = &'static str;

        fn try_from(number: i32) -> Result<Self, &'static str> {
            if number % 2 == 0 { Ok(Self(number)) } else { Err("it is odd") }
        }
    }

    impl Serialize for Even {
        fn serialize<S: serde::Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
            output.serialize_i32(self.0)
        }
    }

    #[derive(Debug, Serialize, Deserialize)]
    #[serde(rename = "com.acme.Other")]
    struct Odd {
        number: Even,
    }
    let payload = Kryo5.encode(&Other { number: 5 }).unwrap();
    assert_eq!(why::<Odd>(&Kryo5, &payload), "at Other.number: expected `int`: it is odd, before offset 17");
    let payload = JsonJackson.encode(&Other { number: 5 }).unwrap();
    assert_eq!(why::<Odd>(&JsonJackson, &payload), "at Other.number: it is odd at offset 36");
}

#[test]
fn a_jackson_error_says_which_field() {
    let says = |json: &str, expected: &str| {
        let payload = serde_json::from_str::<serde_json::Value>(json).unwrap();
        let found = why::<Cart>(&JsonJackson, json.as_bytes());
        assert!(found.starts_with(expected) && found.contains(" at offset "), "{found}");
        let msgpack = MsgPack.encode(&payload).unwrap();
        let found = why::<Cart>(&MsgPackJackson, &msgpack);
        assert!(found.starts_with(expected) && found.contains(" at offset "), "{found}");
    };
    says(
        r#"{"items":["java.util.ArrayList",[{"price":null,"done":true,"name":"x"},{"done":"yes"}]]}"#,
        "at Cart.items[1].done: expected a boolean, found text",
    );
    says(r#"{"counts":{"one":1,"two":"x"}}"#, "at Cart.counts[1]: expected a java.lang.Integer, found text");
    says(
        r#"{"first":{"@class":"com.acme.Tasks$Sms","template":"x"}}"#,
        "at Cart.first.template: expected a java.lang.Integer, found text",
    );
    says(r#"{"first":{"@class":"com.acme.Fax"}}"#, "at Cart.first: expected the class ");
    says(r#"{"items":[5]}"#, "at Cart.items[0]: expected an object, found an integer");
}

/// A name of a field and a type that no line has room for.
#[test]
fn a_deep_place_is_short() {
    #[derive(Debug, Serialize, Deserialize)]
    #[serde(rename = "com.acme.Deep")]
    struct Deep {
        a_rather_long_name_of_a_field: Option<Box<Deep>>,
    }
    let payload = [&b"\x01\x00com.acme.Dee\xf0"[..], &b"\x01\x00".repeat(100)].concat();
    let found = why::<Deep>(&Kryo5, &payload);
    assert!(found.starts_with("at Deep.a_rather_long_name_of_a_field."), "{found}");
    assert!(found.contains(" it ends at offset 215"), "{found}");
    assert!(found.len() < 600, "{found}");
}

/// The most that the public contract allows.
const LONGEST: usize = 1024;
const MOST_QUOTED: usize = 100;

/// What no error may repeat more than `MOST_QUOTED` characters of: runs of it stand in the payloads.
fn hostile() -> impl Strategy<Value = String> {
    let letters = prop_oneof![
        Just("x".to_owned()),
        Just("ab c".to_owned()),
        Just("é🚀".to_owned()),
        Just("\u{7f}\n\u{1b}[31m".to_owned()),
        Just("`, expected `x` at line 1 column 1, there are no ".to_owned()),
        Just("com.acme.A$b.".to_owned()),
        Just("['\"".to_owned()),
        "\\PC{1,9}",
    ];
    (letters, 1..2000usize).prop_map(|(letters, count)| letters.repeat(count).chars().take(4000).collect())
}

/// A type whose own `Deserialize` repeats all that it finds.
#[derive(Debug)]
struct Quoting;

impl<'de> Deserialize<'de> for Quoting {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        use serde::de::Error;

        let text = String::deserialize(input)?;
        Err(D::Error::custom(format_args!("nothing good is in {text}, nor in {text}")))
    }
}

impl Serialize for Quoting {
    fn serialize<S: serde::Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        output.serialize_str("")
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename = "com.acme.Strict")]
struct Strict {
    quoting: Option<Quoting>,
    status: Option<Status>,
    amount: Option<BigDecimal>,
    texts: Option<Vec<i32>>,
    more: Option<HashMap<i32, i32>>,
}

macro_rules! wide {
    ($($variant:ident)*) => {
        /// The names of its variants are longer than an error may be.
        #[derive(Debug, Serialize, Deserialize)]
        #[serde(rename = "com.acme.Wide")]
        enum Wide {
            $($variant,)*
        }

        /// And fields.
        #[derive(Debug, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, rename = "com.acme.WideStruct")]
        #[allow(non_snake_case)]
        struct WideStruct {
            $($variant: Option<i32>,)*
        }
    };
}

wide! {
    AVeryLongNameOfAVariantOfWhichThereAreMany01 AVeryLongNameOfAVariantOfWhichThereAreMany02
    AVeryLongNameOfAVariantOfWhichThereAreMany03 AVeryLongNameOfAVariantOfWhichThereAreMany04
    AVeryLongNameOfAVariantOfWhichThereAreMany05 AVeryLongNameOfAVariantOfWhichThereAreMany06
    AVeryLongNameOfAVariantOfWhichThereAreMany07 AVeryLongNameOfAVariantOfWhichThereAreMany08
    AVeryLongNameOfAVariantOfWhichThereAreMany09 AVeryLongNameOfAVariantOfWhichThereAreMany10
    AVeryLongNameOfAVariantOfWhichThereAreMany11 AVeryLongNameOfAVariantOfWhichThereAreMany12
    AVeryLongNameOfAVariantOfWhichThereAreMany13 AVeryLongNameOfAVariantOfWhichThereAreMany14
    AVeryLongNameOfAVariantOfWhichThereAreMany15 AVeryLongNameOfAVariantOfWhichThereAreMany16
    AVeryLongNameOfAVariantOfWhichThereAreMany17 AVeryLongNameOfAVariantOfWhichThereAreMany18
    AVeryLongNameOfAVariantOfWhichThereAreMany19 AVeryLongNameOfAVariantOfWhichThereAreMany20
    AVeryLongNameOfAVariantOfWhichThereAreMany21 AVeryLongNameOfAVariantOfWhichThereAreMany22
    AVeryLongNameOfAVariantOfWhichThereAreMany23 AVeryLongNameOfAVariantOfWhichThereAreMany24
}

/// A type whose name is longer than an error.
type LongName<T> =
    Entries<String, Entries<String, Entries<String, Entries<String, Entries<String, Vec<T>>>>>>;

/// Whether an error is short, and repeats little of a text.
fn is_short<T: Debug>(codec: &impl Codec<T>, payload: &[u8], text: &str) {
    let Err(error) = codec.decode(payload) else { return };
    let error = error.to_string();
    assert!(error.len() <= LONGEST, "{} bytes: {error}", error.len());
    assert!(!error.contains(char::is_control), "{error:?}");
    let units: Vec<char> = text.chars().collect();
    let longest = units.windows(MOST_QUOTED + 1).next().map(String::from_iter);
    if let Some(quoted) = longest {
        assert!(!error.contains(&quoted), "{error}");
        assert!(!error.contains(&quoted.escape_debug().to_string()), "{error}");
    }
}

fn of_each_codec<T: Debug + Serialize + DeserializeOwned + 'static>(payload: &[u8], text: &str) {
    is_short::<T>(&Kryo5, payload, text);
    is_short::<T>(&Kryo5.with_any_class(), payload, text);
    is_short::<T>(&JsonJackson, payload, text);
    is_short::<T>(&JsonJackson.with_mapper(Mapper::new().wrapper_array()), payload, text);
    is_short::<T>(&CborJackson, payload, text);
    is_short::<T>(&MsgPackJackson, payload, text);
    is_short::<T>(&Json, payload, text);
    is_short::<T>(&MsgPack, payload, text);
    is_short::<T>(&Lz4V2(Json), payload, text);
}

fn of_each_type(payload: &[u8], text: &str) {
    of_each_codec::<Value>(payload, text);
    of_each_codec::<Quoting>(payload, text);
    of_each_codec::<Strict>(payload, text);
    of_each_codec::<Vec<Strict>>(payload, text);
    of_each_codec::<Wide>(payload, text);
    of_each_codec::<WideStruct>(payload, text);
    of_each_codec::<LongName<Wide>>(payload, text);
    of_each_codec::<Status>(payload, text);
    of_each_codec::<Task>(payload, text);
    of_each_codec::<String>(payload, text);
    is_short(&codec::String, payload, text);
    is_short(&codec::Long, payload, text);
    is_short(&codec::Int, payload, text);
    is_short(&codec::Double, payload, text);
}

/// The places of a text in JSON.
const TEMPLATES: [&str; 14] = [
    r#""TEXT""#,
    r#"{"TEXT":1}"#,
    r#"{"@class":"TEXT"}"#,
    r#"["TEXT",[]]"#,
    r#"["TEXT",{}]"#,
    r#"["java.util.ArrayList",[{"@class":"TEXT"},"TEXT"]]"#,
    r#"{"quoting":"TEXT"}"#,
    r#"{"status":"TEXT"}"#,
    r#"{"status":["TEXT","TEXT"]}"#,
    r#"{"amount":"TEXT"}"#,
    r#"{"amount":["TEXT",5]}"#,
    r#"{"texts":["java.util.ArrayList",["TEXT"]]}"#,
    r#"{"more":{"TEXT":1}}"#,
    r#"{"TEXT":{"TEXT":{"TEXT":{"TEXT":{"TEXT":["TEXT"]}}}}}"#,
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn no_error_repeats_a_text(text in hostile()) {
        for template in TEMPLATES {
            let mut node: serde_json::Value = template.parse().unwrap();
            fill(&mut node, &text);
            for payload in [Json.encode(&node).unwrap(), MsgPack.encode(&node).unwrap()] {
                of_each_type(&payload, &text);
            }
            let value: Value = Json.decode(&Json.encode(&node).unwrap()).unwrap();
            for payload in [CborJackson.encode(&value), MsgPackJackson.encode(&value), Kryo5.encode(&value)] {
                of_each_type(&payload.unwrap_or_default(), &text);
            }
        }
        let name: Vec<u8> = text.bytes().filter(u8::is_ascii).collect();
        of_each_type(&[b"\x01\x00", &name[..], b"\xe1\x01\x01"].concat(), &text);
        of_each_type(&[b"\x01\x00com.acme.Stric\xf4\x01\x00", &name[..], b"\xe1\x01\x01"].concat(), &text);
        of_each_type(&[b"\x03", &name[..], b"\xe1"].concat(), &text);
    }

    #[test]
    fn no_error_of_any_bytes_is_long(payload: Vec<u8>) {
        of_each_type(&payload, "");
    }
}

fn fill(node: &mut serde_json::Value, text: &str) {
    match node {
        serde_json::Value::String(value) if value == "TEXT" => *value = text.to_owned(),
        serde_json::Value::Array(values) => values.iter_mut().for_each(|value| fill(value, text)),
        serde_json::Value::Object(entries) => {
            for (mut key, mut value) in std::mem::take(entries) {
                if key == "TEXT" {
                    key = text.to_owned();
                }
                fill(&mut value, text);
                entries.insert(key, value);
            }
        }
        _ => {}
    }
}

/// Each payload of Redisson with a piece of it changed.
#[test]
fn no_error_of_a_changed_payload_is_long() {
    let files =
        ["kryo5", "kryo5-classes", "json-jackson", "json-jackson-classes", "cbor-jackson", "msgpack-jackson"];
    let payloads: Vec<_> = files.into_iter().flat_map(rows).map(|row| row.payload).collect();
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..3_000 {
        let mut payload = payloads[random.usize(..payloads.len())].clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..=payload.len());
            match payload.get_mut(at) {
                Some(byte) if random.bool() => *byte = random.u8(..),
                _ => payload.truncate(at),
            }
        }
        macro_rules! each {
            ($($kind:ty)*) => { $(of_each_codec::<$kind>(&payload, "");)* };
        }
        each! { Value Order Ledger Times Nested Envelope Job Batch Payments }
    }
}

/// What cannot be written.
#[test]
fn no_error_of_a_value_is_long() {
    let class = format!("com.{}", "ax.\u{7f}é".repeat(100_000));
    let fields = vec![("x".repeat(100_000), Value::Null)];
    let object = |class: &str| Value::Object(Box::new(java::Object::new(class.to_owned(), fields.clone())));
    for value in [
        object(&class),
        object("java.util.regex.Pattern"),
        Value::Text(Box::new(java::Text::new(class.clone(), class.clone()))),
        Value::Text(Box::new(java::Text::new("java.time.OffsetTime", class.clone()))),
        Value::Text(Box::new(java::Text::new("java.net.URI", class.clone()))),
        Value::list([object(&class)]),
    ] {
        for written in [Kryo5.encode(&value), JsonJackson.encode(&value), CborJackson.encode(&value)] {
            if let Err(error) = written {
                assert!(error.to_string().len() <= LONGEST, "{} bytes", error.to_string().len());
            }
        }
    }
    #[derive(Debug)]
    struct Loud;

    impl Serialize for Loud {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("loud ".repeat(10_000)))
        }
    }

    impl<'de> Deserialize<'de> for Loud {
        fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
            String::deserialize(input).map(|_| Loud)
        }
    }
    fn written(codec: &impl Codec<Loud>) {
        assert!(error(codec.encode(&Loud)).len() <= LONGEST);
    }
    written(&Kryo5);
    written(&JsonJackson);
    written(&MsgPackJackson);
    written(&Json);
    written(&MsgPack);
}

/// What cannot be written, and where it is.
#[test]
fn errors_of_encoding_name_the_field() {
    #[derive(Debug, Serialize, Deserialize)]
    #[serde(rename = "com.acme.Visit")]
    struct Visit {
        at: Option<Instant>,
        letter: Option<char>,
    }
    #[derive(Debug, Serialize, Deserialize)]
    #[serde(rename = "com.acme.Visits")]
    struct Visits {
        visits: Vec<Visit>,
        last: BTreeMap<String, Visit>,
    }
    let visit = |at, letter| Visit { at, letter };
    let visits = |second| Visits { visits: vec![visit(None, None), second], last: BTreeMap::new() };
    let at = visits(visit(Instant::new(5, 0), None));
    let why = error(JsonJackson.encode(&at));
    assert!(why.starts_with("at Visits.visits[1].at: a java.time.Instant is not written: "), "{why}");
    let letter = || visit(None, Some('\u{1f680}'));
    let why = error(Kryo5.encode(&visits(letter())));
    assert!(why.contains("at Visits.visits[1].letter: a character beyond U+FFFF"), "{why}");
    let last = Visits { visits: vec![], last: BTreeMap::from([("k".to_owned(), letter())]) };
    for why in [error(Kryo5.encode(&last)), error(CborJackson.encode(&last))] {
        assert!(why.contains("at Visits.last[0].letter: a character beyond U+FFFF"), "{why}");
    }
}

#[test]
fn numbers_of_any_length_are_printed_for_people() {
    let amount: BigDecimal = "9.90".parse().unwrap();
    assert_eq!(format!("{amount:?} {:?}", amount.unscaled()), "BigDecimal(9.90) BigInteger(990)");
}
