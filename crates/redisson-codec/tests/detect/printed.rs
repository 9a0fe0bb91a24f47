//! Values as JSON.

use redisson_codec::detect::{self, Kind};
use redisson_codec::java::{Date, Value as Java};
use redisson_codec::{Codec, Kryo5, Lz4V2};
use serde_json::Value;

use super::*;

/// What JSON says of a value without the classes.
fn plain(json: Value) -> Value {
    match json {
        Value::Object(map) => {
            let map = map.into_iter().filter(|(name, value)| name != "@class" && !value.is_null());
            Value::Object(map.map(|(name, value)| (name, plain(value))).collect())
        }
        Value::Array(values) => values.into_iter().map(plain).collect(),
        other => other,
    }
}

/// Whether one is the other, where a date is its milliseconds or its text, and a number that a double cannot
/// hold its text.
fn same(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            found.len() == expected.len()
                && found
                    .iter()
                    .all(|(name, value)| expected.get(name).is_some_and(|expected| same(value, expected)))
        }
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(found, expected)| same(found, expected))
        }
        (Value::String(text), Value::Number(number)) => {
            let date = number.as_i64().map(|millis| Java::Date(Date::from_millis(millis)).to_string());
            // An object mapper that writes dates as texts has the offset.
            date.is_some_and(|date| date == text.replace("+00:00", "Z"))
        }
        (Value::Number(found), Value::Number(expected)) => found.as_f64() == expected.as_f64(),
        _ => found == expected,
    }
}

#[test]
fn every_row_prints_as_json() {
    let mut compared = 0;
    let mut differing = Vec::new();
    for (format, row) in all_rows() {
        // `IntegerCodec` writes what it cannot read.
        if format == Format::Plain(Kind::Int) && row.class == "java.math.BigInteger" {
            continue;
        }
        let text =
            format.to_json(&row.payload).unwrap_or_else(|error| panic!("{format} {}: {error}", row.name));
        let found: Value = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{format} {}: {error}: {text}", row.name));
        assert!(!text.contains(char::is_control), "{text}");
        let comparable = matches!(format, Format::Plain(Kind::JsonJackson | Kind::Json)) && row.has_json();
        if comparable {
            compared += 1;
            if !same(&plain(found), &plain(row.json.clone())) {
                differing.push(format!("{format} {}: {text}, not {}", row.name, row.json));
            }
        }
    }
    differing.iter().for_each(|row| println!("{row}"));
    println!("{} of {compared} differ", differing.len());
    assert!(compared > 500 && differing.is_empty());
}

/// What Java's own serialization wrote, as a payload and within Kryo, is what Java says that it is.
#[test]
fn what_java_serializes() {
    // Jackson prints these otherwise than as their fields, or as another text.
    let others = [
        "atomic.int",
        "atomic.long",
        "atomic.boolean",
        "pattern",
        "bits",
        "timestamp",
        "entry",
        "own",
        "zoned",
        "zoned.offset",
        "locale",
        "local.time.hour",
        "local.time.minute",
        "optional.int",
        "optional.long",
        "optional.double",
        "optional.none",
    ];
    let mut differing = Vec::new();
    for (file, format) in [
        ("java-serialization", Kind::JavaSerialization),
        ("shapes-serialization", Kind::JavaSerialization),
        ("kryo5-serialized", Kind::Kryo5),
    ] {
        for row in rows(file) {
            let name = row.name.strip_prefix("inside.").unwrap_or(&row.name);
            // An object of fastjson's first version is a map in a field.
            let other = others.contains(&name) || name == "28-fastjson1-object" || !row.has_json();
            if other
                || row.class.starts_with("com.acme.Kept$Shelf")
                || row.class.starts_with("com.acme.Kept$Maybe")
            {
                continue;
            }
            let text =
                Format::Plain(format).to_json(&row.payload).unwrap_or_else(|error| panic!("{name}: {error}"));
            let found: Value = serde_json::from_str(&text).unwrap();
            if !same(&plain(found), &plain(row.json.clone())) {
                differing.push(format!("{format:?} {name}: {text}, not {}", row.json));
            }
        }
    }
    differing.iter().for_each(|row| println!("{row}"));
    assert!(differing.is_empty());
}

/// The best candidate of each row prints, too, although it may be another one.
#[test]
fn every_candidate_prints() {
    for (format, row) in all_rows() {
        for candidate in detect::candidates(&row.payload) {
            let text = candidate.format.to_json(&row.payload);
            let text =
                text.unwrap_or_else(|error| panic!("{format} {} as {}: {error}", row.name, candidate.format));
            serde_json::from_str::<Value>(&text)
                .unwrap_or_else(|error| panic!("{}: {error}: {text}", row.name));
        }
    }
}

#[track_caller]
fn prints(format: &str, payload: &[u8], json: &str) {
    let format: Format = format.parse().unwrap();
    assert_eq!(format.to_json(payload).unwrap(), json);
    assert!(serde_json::from_str::<Value>(json).is_ok(), "{json}");
}

#[test]
fn values_that_json_has_no_type_for() {
    let kryo = |value: Java, json: &str| prints("kryo5", &Kryo5.encode(&value).unwrap(), json);
    kryo(Java::Double(f64::NAN), "\"NaN\"");
    kryo(Java::Float(f32::NEG_INFINITY), "\"-Infinity\"");
    kryo(Java::Float(0.1), "0.1");
    kryo(Java::Long(i64::MIN), "-9223372036854775808");
    kryo(Java::Character(0xd83d), "\"U+D83D\"");
    kryo(Java::Bytes(vec![1, 2, 255]), "\"AQL/\"");
    kryo(Java::Date(Date::from_millis(1_709_210_096_789)), "\"2024-02-29T12:34:56.789Z\"");
    kryo(Java::Optional(Some(Box::new(Java::from(1)))), "1");
    kryo(Java::Optional(None), "null");
    kryo(Java::BigDecimal("1E+400".parse().unwrap()), "\"1E+400\"");
    kryo(Java::BigDecimal("9.90".parse().unwrap()), "9.90");
    kryo(Java::BigInteger("1".repeat(400).parse().unwrap()), &format!("\"{}\"", "1".repeat(400)));
    kryo(Java::from("a\"\\\n\u{1b}[31m\u{202e}\u{85}é🚀"), "\"a\\\"\\\\\\n\\u001b[31m\\u202e\\u0085é🚀\"");
}

#[test]
fn maps() {
    let kryo = |value: Java, json: &str| prints("kryo5", &Kryo5.encode(&value).unwrap(), json);
    kryo(Java::map([("b", Java::from(1)), ("a", Java::Null)]), r#"{"b":1,"a":null}"#);
    kryo(Java::map([(Java::from(2), Java::from(1)), (Java::Long(1), Java::from(2))]), r#"{"2":1,"1":2}"#);
    kryo(Java::map([(Java::from("1"), Java::from(1)), (Java::from(1), Java::from(2))]), r#"[["1",1],[1,2]]"#);
    kryo(Java::map([(Java::Null, Java::from(1))]), "[[null,1]]");
    kryo(Java::map([(Java::list([]), Java::from(1))]), "[[[],1]]");
    let empty: [(Java, Java); 0] = [];
    kryo(Java::map(empty), "{}");
}

#[test]
fn json_keeps_its_numbers_and_texts() {
    prints(
        "json",
        b" { \"b\" : [ 1.50 , \"a b\\u0020\\/\" ] ,\n \"a\":12345678901234567890.10 } ",
        r#"{"b":[1.50,"a b\u0020\/"],"a":12345678901234567890.10}"#,
    );
    prints("json", b"1e400", "\"1e400\"");
    prints("json", b"\"\\ud83d\\ude80\"", "\"\\ud83d\\ude80\"");
    prints("json", "\"\u{202e}\"".as_bytes(), "\"\\u202e\"");
    let json: Format = Kind::Json.into();
    for wrong in [&b"{"[..], b"\"\\ud83d\"", b"\"\\ude80\"", b"1 2", b"", b"\xff"] {
        assert!(json.to_json(wrong).is_err(), "{}", wrong.escape_ascii());
    }
    let nested = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
    assert!(json.to_json(nested(127).as_bytes()).is_ok());
    assert!(json.to_json(nested(128).as_bytes()).is_err());
}

#[test]
fn what_is_of_another_format_does_not_print() {
    for (format, payload) in [
        ("kryo5", &b"hello"[..]),
        ("java-serialization", b"hello"),
        ("smile", b""),
        ("jboss-marshalling", b"\x04"),
        ("int", b"x"),
        ("lz4+kryo5", b"\x02\x0e"),
        ("zstd+bytes", b""),
    ] {
        let format: Format = format.parse().unwrap();
        assert!(format.to_json(payload).is_err(), "{format}");
        assert_eq!(format.describe(payload), None, "{format}");
    }
}

#[test]
fn objects_of_an_application() {
    prints(
        "kryo5",
        b"\x01\x00com.acme.Coupo\xeeWINTER2\xb6",
        r#"{"@class":"com.acme.Coupon","@length":25,"@strings":["WINTER26"]}"#,
    );
    prints(
        "json-jackson",
        br#"["com.acme.Coupon",{"code":"x"}]"#,
        r#"{"@class":"com.acme.Coupon","code":"x"}"#,
    );
    let payload =
        Lz4V2(redisson_codec::Bytes).encode(&b"\x01\x00com.acme.Coupo\xeeWINTER2\xb6".to_vec()).unwrap();
    let format: Format = "lz4+kryo5".parse().unwrap();
    assert_eq!(format.describe(&payload).unwrap().to_string(), "com.acme.Coupon, 25 bytes: \"WINTER26\"");
    let list = Kryo5.encode(&Java::list([Java::from(1)])).unwrap();
    assert_eq!(Format::Plain(Kind::Kryo5).describe(&list), None);
}
