//! The simple codecs: against bytes that Redisson 4.7.0 wrote, round trips, and whatever bytes anybody may write.

use std::fmt::Debug;

use bytes::Bytes;
use proptest::prelude::*;
use redelay::codec::{self, Codec, CodecError};
use serde_json::Value;

/// A row of `tests/vectors`: what a Java value is, and what its codec made of it.
struct Row {
    name: String,
    class: String,
    json: Value,
    payload: Vec<u8>,
}

fn rows(file: &str) -> Vec<Row> {
    let path = format!("{}/tests/vectors/{file}.tsv", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let rows: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).map(row).collect();
    assert!(!rows.is_empty(), "{path} has no rows");
    rows
}

fn row(line: &str) -> Row {
    let columns: Vec<_> = line.split('\t').collect();
    let [name, class, json, hex] = columns[..] else { panic!("not 4 columns: {line}") };
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    Row {
        name: name.into(),
        class: class.into(),
        json: serde_json::from_str(json).unwrap(),
        payload: (0..hex.len()).step_by(2).map(byte).collect(),
    }
}

/// Decodes to the value and encodes to the same bytes.
#[track_caller]
fn both_ways<T: Debug + PartialEq>(codec: &impl Codec<T>, row: &Row, value: T) {
    let name = &row.name;
    assert_eq!(codec.decode(&row.payload).unwrap(), value, "decode {name}");
    assert_eq!(codec.encode(&value).unwrap(), row.payload, "encode {name}");
}

#[track_caller]
fn error<T: Debug>(result: Result<T, CodecError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn strings_of_redisson() {
    for row in rows("string") {
        both_ways(&codec::String, &row, row.json.as_str().unwrap().to_owned());
    }
}

#[test]
fn bytes_of_redisson() {
    for row in rows("bytes") {
        both_ways(&codec::Bytes, &row, row.payload.clone());
        both_ways(&codec::Bytes, &row, Bytes::from(row.payload.clone()));
    }
}

#[test]
fn longs_of_redisson() {
    for row in rows("long") {
        both_ways(&codec::Long, &row, row.json.as_i64().unwrap());
    }
}

#[test]
fn ints_of_redisson() {
    for row in rows("int") {
        // `IntegerCodec` writes any object's `toString`, and so can write what it cannot read.
        if row.class == "java.math.BigInteger" {
            assert_eq!(
                error(codec::Int.decode(&row.payload)),
                "expected an integer from -2147483648 to 2147483647 as decimal text, found 30 digits, out of that range",
                "{}",
                row.name
            );
        } else {
            both_ways(&codec::Int, &row, row.json.as_i64().unwrap().try_into().unwrap());
        }
    }
}

#[test]
fn doubles_of_redisson() {
    for row in rows("double") {
        both_ways(&codec::Double, &row, row.json.as_f64().unwrap());
    }
}

#[test]
fn integers_as_java_reads_them() {
    for (text, value) in [("+7", 7), ("-0", 0), ("007", 7), ("-9223372036854775808", i64::MIN)] {
        assert_eq!(codec::Long.decode(text.as_bytes()).unwrap(), value, "{text}");
    }
    for (text, found) in [
        ("", "no digit"),
        ("-", "no digit"),
        ("1 ", "the byte 0x20 at offset 1"),
        ("+-1", "the byte 0x2d at offset 1"),
        ("1.0", "the byte 0x2e at offset 1"),
        ("٣", "the byte 0xd9 at offset 0"),
        ("9223372036854775808", "19 digits, out of that range"),
    ] {
        let error = error(codec::Long.decode(text.as_bytes()));
        assert!(error.ends_with(&format!("found {found}")), "{text:?}: {error}");
    }
}

/// As printed by JDK 25.
#[test]
fn doubles_as_java_prints_them() {
    for (value, text) in [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (100.0, "100.0"),
        (0.001, "0.001"),
        (0.001f64.next_down(), "9.999999999999998E-4"),
        (1e-5, "1.0E-5"),
        (1e7f64.next_down(), "9999999.999999998"),
        (1e7, "1.0E7"),
        (-12345678.9, "-1.23456789E7"),
        (2e23, "2.0E23"),
        (f64::MAX, "1.7976931348623157E308"),
        (f64::NAN, "NaN"),
        (f64::NEG_INFINITY, "-Infinity"),
        // Where Rust's shortest digits are others.
        (5e-324, "4.9E-324"),
        (2f64.powi(50) + 0.25, "1.1258999068426242E15"),
        (2f64.powi(19) + 2f64.powi(-11), "524288.0004882812"),
        // At a power of two: the nearest 16 digits are another double's.
        (2f64.powi(-44), "5.684341886080802E-14"),
    ] {
        assert_eq!(codec::Double.encode(&value).unwrap(), text.as_bytes(), "{text}");
    }
}

#[test]
fn doubles_as_java_reads_them() {
    for (text, value) in [
        ("5", 5.0),
        ("+.5", 0.5),
        ("1.", 1.0),
        ("-1e+2", -100.0),
        ("\t 1.5\0\n", 1.5),
        ("1e999", f64::INFINITY),
        ("-Infinity", f64::NEG_INFINITY),
        ("1.9999999999999998E23", 2e23),
    ] {
        assert_eq!(codec::Double.decode(text.as_bytes()).unwrap(), value, "{text:?}");
    }
    assert!(codec::Double.decode(b"-NaN").unwrap().is_nan());
    for (text, found) in [
        ("", "0 bytes that are no such number"),
        (" ", "1 bytes that are no such number"),
        (".", "1 bytes that are no such number"),
        ("1e", "2 bytes that are no such number"),
        ("1 2", "3 bytes that are no such number"),
        ("--1", "3 bytes that are no such number"),
        ("nan", "the byte 0x6e at offset 0"),
        ("-inf", "the byte 0x69 at offset 1"),
        ("1.5f", "the byte 0x66 at offset 3"),
        ("0x1p3", "the byte 0x78 at offset 1"),
        ("\u{a0}1", "the byte 0xc2 at offset 0"),
    ] {
        let error = error(codec::Double.decode(text.as_bytes()));
        assert!(error.ends_with(&format!("found {found}")), "{text:?}: {error}");
    }
}

#[test]
fn text_that_is_not_utf8() {
    assert_eq!(
        error(codec::String.decode(b"Zo\xeb")),
        "expected UTF-8, found incomplete utf-8 byte sequence from index 2"
    );
}

proptest! {
    #[test]
    fn texts_and_bytes_round_trip(text: String, bytes: Vec<u8>) {
        prop_assert_eq!(codec::String.decode(&codec::String.encode(&text)?)?, text);
        let shared = Bytes::from(bytes.clone());
        let back: Bytes = codec::Bytes.decode(&codec::Bytes.encode(&shared)?)?;
        prop_assert_eq!(back, shared);
        let back: Vec<u8> = codec::Bytes.decode(&codec::Bytes.encode(&bytes)?)?;
        prop_assert_eq!(back, bytes);
    }

    #[test]
    fn numbers_round_trip(long: i64, int: i32, double in any::<u64>().prop_map(f64::from_bits)) {
        prop_assert_eq!(codec::Long.decode(&codec::Long.encode(&long)?)?, long);
        prop_assert_eq!(codec::Int.decode(&codec::Int.encode(&int)?)?, int);
        let back = codec::Double.decode(&codec::Double.encode(&double)?)?;
        prop_assert!(back.to_bits() == double.to_bits() || back.is_nan() && double.is_nan());
    }

    #[test]
    fn any_bytes_of_a_text(payload in prop_oneof![
        any::<Vec<u8>>(),
        "[-+0-9.eEINafinty \0]{0,24}".prop_map(String::into_bytes),
    ]) {
        let _ = codec::String.decode(&payload);
        let _ = codec::Long.decode(&payload);
        let _ = codec::Int.decode(&payload);
        let _ = codec::Double.decode(&payload);
    }
}

/// `Json` and `MsgPack`, which take any type that serde does.
#[cfg(any(feature = "json", feature = "msgpack"))]
mod structured {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub(crate) struct Small {
        pub(crate) a: i32,
        pub(crate) b: Option<String>,
    }

    /// Something of everything, and of any depth.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub(crate) enum Tree {
        Leaf,
        Number(f64),
        Pair(i64, u64),
        Named { name: String, tags: Option<Vec<String>>, counts: BTreeMap<String, i32>, small: Small },
        Next(Box<Tree>),
        Many(Vec<Tree>),
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(crate) struct Strict {
        pub(crate) a: Status,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "UPPERCASE")]
    pub(crate) enum Status {
        New,
        Paid,
        Shipped,
        Closed,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    pub(crate) enum Never {}

    pub(crate) fn trees() -> impl Strategy<Value = Tree> {
        let small = (any::<i32>(), any::<Option<String>>()).prop_map(|(a, b)| Small { a, b });
        let maps = prop::collection::btree_map(any::<String>(), any::<i32>(), 0..4);
        let named = (any::<String>(), any::<Option<Vec<String>>>(), maps, small);
        let leaf = prop_oneof![
            Just(Tree::Leaf),
            any::<f64>().prop_map(Tree::Number),
            any::<(i64, u64)>().prop_map(|(a, b)| Tree::Pair(a, b)),
            named.prop_map(|(name, tags, counts, small)| Tree::Named { name, tags, counts, small }),
        ];
        leaf.prop_recursive(8, 32, 4, |tree| {
            prop_oneof![
                tree.clone().prop_map(|tree| Tree::Next(Box::new(tree))),
                prop::collection::vec(tree, 0..4).prop_map(Tree::Many),
            ]
        })
    }

    /// Payloads with a byte changed, so that what is behind it is reached.
    pub(crate) fn damaged(payload: Vec<u8>, at: prop::sample::Index, byte: u8) -> Vec<u8> {
        let mut payload = payload;
        let at = at.index(payload.len());
        payload[at] = byte;
        payload
    }

    /// Whatever the value is, an error shows nothing of it.
    #[track_caller]
    pub(crate) fn refused<T: Debug>(codec: &impl Codec<T>, payload: &[u8], says: &str) {
        let error = error(codec.decode(payload));
        assert!(error.contains(says), "{error}");
        assert!(!error.contains("SECRET"), "{error}");
    }
}

#[cfg(feature = "json")]
mod json {
    use std::collections::BTreeMap;

    use codec::Json;
    use serde::{Deserialize, Serialize};

    use super::structured::{Never, Small, Status, Strict, Tree, damaged, refused, trees};
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Order {
        id: i64,
        customer: Option<String>,
        items: i32,
        total: f64,
        paid: bool,
        coupon_id: Option<i64>,
        rank: Option<i32>,
        status: Option<Status>,
        address: Option<Address>,
        lines: Option<Vec<Line>>,
        tags: Option<Vec<String>>,
        counts: Option<BTreeMap<String, i32>>,
        blob: Option<String>,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Address {
        street: String,
        zip: i32,
        city: Option<String>,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Line {
        sku: String,
        quantity: i32,
        price: f64,
    }

    /// Both ways as values: Redisson's properties are sorted and not null, its text escaped beyond U+FFFF.
    fn check<T: Debug + PartialEq + Serialize + for<'de> Deserialize<'de>>(file: &str) {
        for Row { name, json, payload, .. } in rows(file) {
            let value: T = Json.decode(&payload).unwrap();
            assert_eq!(value, T::deserialize(&json).unwrap(), "decode {name}");
            let encoded: Value = serde_json::from_slice(&Json.encode(&value).unwrap()).unwrap();
            assert_eq!(encoded, json, "encode {name}");
            assert_eq!(Json.decode(&payload).ok(), Some(without_nulls(json)), "decode {name} without a type");
        }
    }

    fn without_nulls(value: Value) -> Value {
        match value {
            Value::Object(map) => map
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(k, v)| (k, without_nulls(v)))
                .collect(),
            Value::Array(values) => values.into_iter().map(without_nulls).collect(),
            other => other,
        }
    }

    #[test]
    fn orders_of_redisson() {
        check::<Order>("typed-json-order");
    }

    #[test]
    fn small_ones_of_redisson() {
        check::<Small>("typed-json-small");
    }

    #[test]
    fn strings_of_redisson() {
        check::<String>("typed-json-string");
    }

    #[test]
    fn errors_say_where_and_quote_nothing() {
        let number = |payload: &[u8], says| refused::<i32>(&Json, payload, says);
        number(
            br#""SECRET, expected SECRET""#,
            "`i32` as JSON: invalid type: string, expected i32 at line 1 column 25",
        );
        number(b"1 SECRET", "trailing characters at line 1 column 3");
        number(b"", "EOF while parsing a value at line 1 column 0");
        number(b"5000000000", "invalid value: integer, expected i32 at line 1 column 10");
        let strict = |payload: &[u8], says| refused::<Strict>(&Json, payload, says);
        strict(br#"{"a":"SECRET`, there are no SECRET"}"#, "unknown variant, expected one of `NEW`, `PAID`");
        strict(br#"{"SECRET":1}"#, "unknown field, expected `a` at line 1 column 9");
        strict(b"{}", "missing field `a` at line 1 column 2");
        refused::<Never>(
            &Json,
            br#""SECRET, expected SECRET""#,
            "unknown variant, there are no variants at line 1",
        );
        refused::<String>(&Json, br#""SECRET\ud83d""#, "at line 1 column 14");
    }

    #[test]
    fn deep_nesting_is_refused() {
        let deep = |level: &str| level.repeat(100_000).into_bytes();
        refused::<Value>(&Json, &deep("["), "recursion limit exceeded at line 1 column 128");
        refused::<Tree>(&Json, &deep(r#"{"Next":"#), "recursion limit exceeded");
        refused::<Small>(&Json, &[br#"{"c":"#, &deep("[")[..]].concat(), "");
    }

    proptest! {
        #[test]
        fn values_round_trip(tree in trees()) {
            prop_assert_eq!(&Codec::<Tree>::decode(&Json, &Json.encode(&tree)?)?, &tree);
        }

        #[test]
        fn any_bytes(payload: Vec<u8>, tree in trees(), at: prop::sample::Index, byte: u8) {
            for payload in [payload, damaged(Json.encode(&tree)?, at, byte)] {
                let _: Result<Value, _> = Json.decode(&payload);
                let _: Result<Tree, _> = Json.decode(&payload);
            }
        }
    }
}

#[cfg(feature = "msgpack")]
mod msgpack {
    use codec::MsgPack;
    use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
    use serde::{Deserialize, Serialize};

    use super::structured::{Never, Small, Strict, Tree, damaged, refused, trees};
    use super::*;

    /// The rows of Redisson's `MsgPackJacksonCodec` that have no class name around the value, and a bean.
    #[test]
    fn plain_values_of_jackson() {
        for row in rows("msgpack-untyped") {
            match row.class.as_str() {
                "[B" => both_ways(&MsgPack, &row, Bytes::copy_from_slice(&row.payload[2..])),
                "java.lang.Float" => both_ways(&MsgPack, &row, row.json.as_f64().unwrap() as f32),
                // Its first property is `@class`, which is skipped as any unknown one.
                "lab.Small" => {
                    let small: Small = MsgPack.decode(&row.payload).unwrap();
                    assert_eq!(small, Small::deserialize(&row.json).unwrap(), "decode {}", row.name);
                }
                _ => both_ways(&MsgPack, &row, row.json.clone()),
            }
        }
    }

    #[test]
    fn structs_are_maps() {
        let small = Small { a: 7, b: None };
        assert_eq!(MsgPack.encode(&small).unwrap(), b"\x82\xa1a\x07\xa1b\xc0");
    }

    #[test]
    fn errors_say_where_and_quote_nothing() {
        let number = |payload: &[u8], says| refused::<i32>(&MsgPack, payload, says);
        number(
            b"\xa6SECRET",
            "expected `i32` as MessagePack: wrong msgpack marker FixStr(6), before offset 1",
        );
        number(b"\x01SECRET", "expected one MessagePack value: 6 bytes follow it at offset 1");
        number(b"", "it ends at offset 0, within a value");
        number(b"\xd2\x00", "the value at offset 0 announces more than the 1 bytes after its head");
        number(b"\xc1", "the reserved byte 0xc1 at offset 0");
        number(b"\xce\xff\xff\xff\xff", "invalid value: integer, expected i32, before offset 5");
        let strict = |payload: &[u8], says| refused::<Strict>(&MsgPack, payload, says);
        strict(b"\x81\xa1a\xa6SECRET", "unknown variant, expected one of `NEW`, `PAID`");
        strict(b"\x81\xa6SECRET\x01", "unknown field, expected `a`, before offset 8");
        strict(b"\xa6SECRET", "invalid type: string, expected struct Strict, before offset 7");
        refused::<Never>(&MsgPack, b"\xa6SECRET", "unknown variant, there are no variants");
        refused::<String>(&MsgPack, b"\xa7SECRET\xff", "invalid utf-8 sequence of 1 bytes from index 6");
    }

    #[test]
    fn deep_nesting_is_refused() {
        fn check<T: Debug + Serialize + for<'de> Deserialize<'de>>(level: &[u8]) {
            let nested = |levels| [level.repeat(levels), vec![0]].concat();
            refused::<T>(&MsgPack, &nested(100_000), "more than 127 levels at offset");
            refused::<T>(&MsgPack, &nested(128), "more than 127 levels at offset");
            assert!(Codec::<T>::decode(&MsgPack, &nested(127)).is_ok());
        }
        check::<Value>(b"\x91");
        // A map of one, with the number of `Tree::Next`: rmp_serde alone overflows the stack.
        check::<Tree>(b"\x81\x04");
    }

    /// Takes any value.
    #[derive(Debug, Serialize)]
    struct Anything;

    impl<'de> Deserialize<'de> for Anything {
        fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
            IgnoredAny::deserialize(input).map(|IgnoredAny| Anything)
        }
    }

    #[test]
    fn each_kind_of_value_ends_where_it_should() {
        for (head, rest) in [
            (&b"\x7f"[..], 0),
            (b"\xe0", 0),
            (b"\xc0", 0),
            (b"\xc3", 0),
            (b"\xcc", 1),
            (b"\xcd", 2),
            (b"\xce", 4),
            (b"\xcf", 8),
            (b"\xd0", 1),
            (b"\xd1", 2),
            (b"\xd2", 4),
            (b"\xd3", 8),
            (b"\xca", 4),
            (b"\xcb", 8),
            (b"\xbf", 31),
            (b"\xd9\x03", 3),
            (b"\xda\x00\x03", 3),
            (b"\xdb\x00\x00\x00\x03", 3),
            (b"\xc4\x03", 3),
            (b"\xc5\x00\x03", 3),
            (b"\xc6\x00\x00\x00\x03", 3),
            // The type of an extension is not part of its length.
            (b"\xd4", 2),
            (b"\xd5", 3),
            (b"\xd6", 5),
            (b"\xd7", 9),
            (b"\xd8", 17),
            (b"\xc7\x03", 4),
            (b"\xc8\x00\x03", 4),
            (b"\xc9\x00\x00\x00\x03", 4),
            (b"\x9f", 15),
            (b"\xdc\x00\x03", 3),
            (b"\xdd\x00\x00\x00\x03", 3),
            (b"\x8f", 30),
            (b"\xde\x00\x03", 6),
            (b"\xdf\x00\x00\x00\x03", 6),
        ] {
            let payload = [head, &vec![0; rest + 1]].concat();
            let accepts = |end| Codec::<Anything>::decode(&MsgPack, &payload[..end]).is_ok();
            let end = payload.len() - 1;
            assert_eq!([end - 1, end, end + 1].map(accepts), [false, true, false], "{head:x?}");
        }
    }

    /// Believes what it is told about its length.
    #[derive(Debug, Serialize)]
    struct Trusting(Vec<u64>);

    impl<'de> Deserialize<'de> for Trusting {
        fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
            input.deserialize_seq(Trusting(Vec::new()))
        }
    }

    impl<'de> Visitor<'de> for Trusting {
        type Value = Self;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("numbers")
        }

        fn visit_seq<A: SeqAccess<'de>>(mut self, mut values: A) -> Result<Self, A::Error> {
            self.0.reserve_exact(values.size_hint().unwrap());
            while let Some(value) = values.next_element()? {
                self.0.push(value);
            }
            Ok(self)
        }
    }

    #[test]
    fn claims_are_checked() {
        assert_eq!(MsgPack.decode(b"\x92\x01\x02").map(|Trusting(values)| values).unwrap(), [1, 2]);
        let says = "the value at offset 0 announces more than the 1 bytes after its head";
        for head in
            [&b"\xdd\xff\xff\xff\xff"[..], b"\xdc\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff"]
        {
            refused::<Trusting>(&MsgPack, &[head, b"\x01"].concat(), says);
        }
    }

    proptest! {
        #[test]
        fn values_round_trip(tree in trees()) {
            prop_assert_eq!(&Codec::<Tree>::decode(&MsgPack, &MsgPack.encode(&tree)?)?, &tree);
        }

        #[test]
        fn any_bytes(payload: Vec<u8>, tree in trees(), at: prop::sample::Index, byte: u8) {
            for payload in [payload, damaged(MsgPack.encode(&tree)?, at, byte)] {
                let _: Result<Value, _> = MsgPack.decode(&payload);
                let _: Result<Tree, _> = MsgPack.decode(&payload);
            }
        }
    }
}
