//! `Json`: payloads that Redisson wrote, and payloads that are refused.

use std::collections::BTreeMap;
use std::fmt::Display;

use codec::java::{
    BigDecimal, BigInteger, Date, Duration, Instant, LocalDate, LocalDateTime, LocalTime, Uuid,
};
use codec::{Json, JsonJackson, Mapper};
use redelay_compat_values::zoo::{self, Amounts, Entries};
use serde::de::DeserializeOwned;
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

/// Compared as values, both ways: Redisson sorts properties, leaves nulls out, and escapes text beyond
/// U+FFFF.
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

/// With a `byte[]`, which is base64.
#[test]
fn orders_of_redisson_with_the_same_bytes() {
    let codec = JsonJackson.with_mapper(Mapper::new().without_classes());
    let mut blobs = 0;
    for row in rows("typed-json-order") {
        let order: zoo::Order =
            codec.decode(&row.payload).unwrap_or_else(|error| panic!("{}: {error}", row.name));
        assert_eq!(order.blob.is_some(), row.json["blob"].is_string(), "{}", row.name);
        blobs += usize::from(order.blob.is_some());
        both_ways(&codec, &row, order);
    }
    assert!(blobs > 10, "{blobs}");
}

#[test]
fn small_ones_of_redisson() {
    check::<Small>("typed-json-small");
}

#[test]
fn strings_of_redisson() {
    check::<String>("typed-json-string");
}

/// Also where a double has no room for it, and with the zeros at the end.
#[test]
fn amounts_of_redisson() {
    for Row { name, payload, .. } in rows("typed-json-amounts") {
        let amounts: Amounts = Json.decode(&payload).unwrap_or_else(|error| panic!("{name}: {error}"));
        let number = |prefix: &str| name.strip_prefix(prefix).filter(|number| *number != "null");
        if let Some(amount) = number("amounts.") {
            // Jackson writes no exponent.
            let amount = if amount == "1E+3" { "1000" } else { amount };
            let amount: BigDecimal = amount.parse().unwrap();
            assert_eq!(amounts.amount.as_ref(), Some(&amount));
            assert_eq!(amounts.amounts, Some(vec![Some(amount), None]));
        }
        if let Some(big) = number("bigs.") {
            let big: BigInteger = big.parse().unwrap();
            assert_eq!(amounts.big.as_ref(), Some(&big));
            assert_eq!(amounts.bigs, Some(Entries(vec![("k".to_owned(), big)])));
        }
        let again: Amounts = Json.decode(&Json.encode(&amounts).unwrap()).unwrap();
        assert_eq!(again, amounts, "{name}");
    }
}

#[test]
fn amounts_in_other_forms() {
    let read =
        |json: &str| Codec::<BigDecimal>::decode(&Json, json.as_bytes()).map(|amount| amount.to_string());
    for (json, amount) in [
        ("9.90", "9.90"),
        (" 9.90 ", "9.90"),
        ("\"9.90\"", "9.90"),
        ("\"9\\u002e90\"", "9.90"),
        ("-1e400", "-1E+400"),
        ("1E-7", "1E-7"),
        ("0", "0"),
    ] {
        assert_eq!(read(json).unwrap(), amount, "{json}");
    }
    for json in
        ["null", "true", "[9.90]", "{\"SECRET\":1}", "\"SECRET\"", "\"\\ud83d\"", "1.", "01", "", "9.90 1"]
    {
        let error = error(Codec::<BigDecimal>::decode(&Json, json.as_bytes()));
        assert!(error.contains("as JSON: ") && !error.contains("SECRET"), "{json}: {error}");
    }
    assert_eq!(Codec::<Option<BigDecimal>>::decode(&Json, b"null").unwrap(), None);
    let keys = BTreeMap::from([("18446744073709551616".to_owned(), 1)]);
    let keys: Entries<BigInteger, i32> = Json.decode(&Json.encode(&keys).unwrap()).unwrap();
    assert_eq!(keys.0[0].0.to_string(), "18446744073709551616");
}

/// `com.acme.Clock`.
#[derive(Debug, Serialize, Deserialize)]
struct Times {
    local: Option<LocalDateTime>,
    day: Option<LocalDate>,
    time: Option<LocalTime>,
    instant: Option<Instant>,
    gap: Option<Duration>,
    date: Option<Date>,
    list: Option<Vec<LocalDateTime>>,
    map: Option<BTreeMap<String, Instant>>,
    array: Option<Vec<Option<LocalDate>>>,
}

/// As `TypedJsonJacksonCodec(Clock.class, mapper)` writes them, with each kind of `JavaTimeModule`.
#[test]
fn times_of_redisson() {
    let mut read = [0; 2];
    for (file, count) in ["mapper-typed-numbers", "mapper-typed-text"].into_iter().zip(&mut read) {
        for Row { name, payload, .. } in rows(file).into_iter().filter(|row| row.class == "com.acme.Clock") {
            let Some((kind, of)) = name.split_once('.') else { continue };
            // Java prints Julian days there.
            if name == "date.-62135596800000" && file == "mapper-typed-text" {
                continue;
            }
            let clock: Times = Json.decode(&payload).unwrap_or_else(|error| panic!("{file} {name}: {error}"));
            let point = || {
                of.rsplit_once('.').map(|(seconds, nanos)| (seconds.parse().unwrap(), nanos.parse().unwrap()))
            };
            match kind {
                "local" => {
                    let at: LocalDateTime = format!("2024-02-29T{of}").parse().unwrap();
                    assert_eq!((clock.local, clock.time), (Some(at), Some(at.time())), "{file} {name}");
                    assert_eq!(clock.list, Some(vec![at]));
                }
                "day" => {
                    assert_eq!(clock.day, LocalDate::new(of.parse().unwrap(), 1, 2), "{file} {name}");
                    assert_eq!(clock.array, Some(vec![clock.day, None]));
                }
                "instant" => {
                    let (seconds, nanos) = point().unwrap();
                    let instant = Instant::new(seconds, nanos);
                    assert_eq!(
                        (clock.instant, clock.map.unwrap()["k"]),
                        (instant, instant.unwrap()),
                        "{file} {name}"
                    );
                }
                "gap" => {
                    let (seconds, nanos) = point().unwrap();
                    assert_eq!(clock.gap, Duration::new(seconds, nanos), "{file} {name}");
                }
                "date" => {
                    assert_eq!(clock.date, Some(Date::from_millis(of.parse().unwrap())), "{file} {name}")
                }
                _ => continue,
            }
            *count += 1;
        }
    }
    assert_eq!(read, [37, 36]);
}

#[test]
fn times_in_other_forms() {
    fn read<T: Display + Serialize + DeserializeOwned>(json: &str) -> Result<String, CodecError> {
        Codec::<T>::decode(&Json, json.as_bytes()).map(|time| time.to_string())
    }
    assert_eq!(read::<Instant>("1709210096").unwrap(), "2024-02-29T12:34:56Z");
    assert_eq!(read::<Instant>("\"1709210096.5\"").unwrap(), "2024-02-29T12:34:56.500Z");
    assert_eq!(read::<Instant>("\"2024-02-29T12:34:56Z\"").unwrap(), "2024-02-29T12:34:56Z");
    // With more digits than a double has.
    assert_eq!(read::<Instant>("1709210096.123456789").unwrap(), "2024-02-29T12:34:56.123456789Z");
    assert_eq!(read::<Duration>("-9223372036854775808").unwrap(), "PT-2562047788015215H-30M-8S");
    assert_eq!(read::<Date>("\"2024-02-29T13:34:56.789+0100\"").unwrap(), "1709210096789");
    for json in [
        "[]",
        "[2024]",
        "[2024,2,30]",
        "[2024,2,29,12]",
        "[2024,2,29,12,0,0,0,0]",
        "[2024,2,\"SECRET\"]",
        "{}",
        "true",
    ] {
        for read in [
            read::<LocalDateTime>,
            read::<LocalDate>,
            read::<LocalTime>,
            read::<Instant>,
            read::<Date>,
            read::<Uuid>,
        ] {
            let error = error(read(json));
            assert!(error.contains("as JSON: ") && !error.contains("SECRET"), "{json}: {error}");
        }
    }
    for json in
        ["1e3", "1.1234567890", "-", "99999999999999999999999999999999999999999", "\"1.-5\"", "\"SECRET\""]
    {
        for read in [read::<Instant>, read::<Duration>] {
            let error = error(read(json));
            assert!(error.contains("as JSON: ") && !error.contains("SECRET"), "{json}: {error}");
        }
    }
}

/// Default typing within a payload that does not begin with a class.
#[test]
fn classes_inside_are_named() {
    #[derive(Debug, Serialize, Deserialize)]
    struct Batch {
        open: Option<String>,
        tasks: Option<Vec<Small>>,
    }
    let looks_like = |payload: &str| {
        let error = error(Codec::<Batch>::decode(&Json, payload.as_bytes()));
        error.split_once("; this looks like ").map(|(_, codec)| codec.to_owned())
    };
    const WRAPPER: &str = "`JsonJackson` with `Mapper::wrapper_array`";
    for (payload, codec) in [
        (r#"{"tasks":["java.util.ArrayList",[["com.acme.Sms",{"id":1}]]]}"#, Some(WRAPPER)),
        (r#"{"tasks": [ "java.util.ArrayList" , []], "open":{}}"#, Some("`JsonJackson`")),
        (r#"{"open":{"@class":"com.acme.Sms","id":1}}"#, Some("`JsonJackson`")),
        (r#"{"open":["a.b","c"]}"#, None),
        (r#"{"open":"[\"com.acme.Sms\",{}]","tasks":1}"#, None),
        (r#"{"tasks":[1]}"#, None),
    ] {
        assert_eq!(looks_like(payload).as_deref(), codec, "{payload}");
    }
}

/// Kryo has a field for each name, and refuses the type.
#[test]
fn a_renamed_field_is_read_by_both_names() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(rename = "com.acme.Order")]
    struct Order {
        #[serde(alias = "old_id")]
        id: i64,
    }
    for json in [br#"{"id":7}"#.as_slice(), br#"{"old_id":7}"#] {
        assert_eq!(Codec::<Order>::decode(&Json, json).unwrap(), Order { id: 7 });
    }
    let packed = codec::MsgPack.encode(&serde_json::json!({ "old_id": 7 })).unwrap();
    assert_eq!(Codec::<Order>::decode(&codec::MsgPack, &packed).unwrap(), Order { id: 7 });
    for error in [
        error(codec::Kryo5.encode(&Order { id: 7 })),
        error(Codec::<Order>::decode(&codec::Kryo5, b"\x01\x00com.acme.Orde\xf2\x0e")),
    ] {
        let why = "at `com.acme.Order`, `id` and `old_id` are one field by `alias`, and Kryo would have two";
        assert!(error.contains(why), "{error}");
    }
}

/// Through serde's own buffer a number with a fraction is a double.
#[test]
fn amounts_in_flattened_structs() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Inner {
        amount: BigDecimal,
        big: BigInteger,
    }
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Outer {
        #[serde(flatten)]
        inner: Inner,
    }
    let read = |json: &str| Codec::<Outer>::decode(&Json, json.as_bytes()).map(|outer| outer.inner);
    let inner = read(r#"{"amount":1234567890.125,"big":18446744073709551615}"#).unwrap();
    assert_eq!(
        (inner.amount.to_string(), inner.big.to_string()),
        ("1234567890.125".into(), "18446744073709551615".into())
    );
    for json in [r#"{"amount":12345678901234567.89,"big":1}"#, r#"{"amount":1,"big":18446744073709551617}"#] {
        let error = error(read(json));
        assert!(error.contains("may have lost digits: send it as a text"), "{error}");
    }
    // As it is written here.
    let outer = Outer {
        inner: Inner {
            amount: "12345678901234567.890".parse().unwrap(),
            big: "-18446744073709551617".parse().unwrap(),
        },
    };
    assert_eq!(Codec::<Outer>::decode(&Json, &Json.encode(&outer).unwrap()).unwrap(), outer);
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
    strict(br#"{"other":1}"#, "unknown field `other`, expected `a` at line 1 column 8");
    strict(br#"{"of SECRET`, expected `SECRET":1}"#, "unknown field, expected `a` at line 1 column 31");
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
    fn amounts_round_trip(unscaled: Vec<u8>, scale in -1000..1000i32) {
        let big = BigInteger::from_be_bytes(&unscaled);
        let amounts = Amounts { amount: Some(BigDecimal::new(big.clone(), scale)), big: Some(big), ..Amounts::default() };
        prop_assert_eq!(&Codec::<Amounts>::decode(&Json, &Json.encode(&amounts)?)?, &amounts);
        // As a number, too.
        let text = String::from_utf8(Json.encode(&amounts)?).unwrap();
        let numbers = text.replace("\":\"", "\":").replace("\",", ",").replace("\"}", "}");
        prop_assert_eq!(&Codec::<Amounts>::decode(&Json, numbers.as_bytes())?, &amounts);
    }

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
