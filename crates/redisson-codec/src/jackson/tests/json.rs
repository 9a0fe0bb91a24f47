//! JSON.

use proptest::prelude::*;

use super::*;
use crate::jackson::json::Json;

#[test]
fn json_of_redisson() {
    check::<Json>("json");
}

#[test]
fn json_that_is_none() {
    for (text, says) in [
        ("", "expected a JSON value at offset 0, found the end"),
        ("[1,]", "expected a JSON value at offset 3, found the byte 0x5d"),
        ("[1 2]", "expected `,` or `]` at offset 3, found the byte 0x32"),
        ("{\"a\" 1}", "expected `:` at offset 5"),
        ("{a:1}", "expected `\"` at offset 1"),
        ("1 x", "expected the end at offset 2"),
        ("01", "expected a number without zeros in front at offset 0"),
        ("-", "expected a digit at offset 1, found the end"),
        ("1.", "expected a digit at offset 2"),
        ("1e+", "expected a digit at offset 3"),
        ("\"a\nb\"", "expected the end of the text at offset 2, found the byte 0x0a"),
        ("\"\\x\"", "expected an escaped character at offset 2"),
        ("\"a\\ud83d\"", "expected a character at offset 2, found half of a surrogate pair"),
        ("\"\\udc00\\ud83d\"", "expected a character at offset 1"),
        ("\"\\ud83d\\u0041\"", "expected a character at offset 1"),
        ("\"\\u12\"", "expected 4 hexadecimal digits at offset 3"),
        ("nul", "expected a JSON value at offset 0"),
    ] {
        refused::<Json>(text.as_bytes(), says);
    }
    refused::<Json>(b"\"a\xff\"", "expected UTF-8 at offset 2");
    refused::<Json>(&b"1".repeat(1001), "a number of at most 1000 at offset 0, found 1001 characters");
}

#[test]
fn deep_nesting_is_refused() {
    refused::<Json>(&b"[".repeat(100_000), "expected at most 127 levels, found more at offset 127");
    refused::<Json>(&b"{\"a\":".repeat(100_000), "expected at most 127 levels, found more at offset 635");
}

#[test]
fn numbers_of_redisson() {
    for Decimal { text, json, .. } in decimals() {
        assert_eq!(String::from_utf8(written::<Json>(&decimal(text))).unwrap(), json);
    }
    for (value, text) in [(1.1f32, "1.1"), (1e-45, "1.4E-45"), (f32::NEG_INFINITY, "\"-Infinity\"")] {
        assert_eq!(written::<Json>(&Is::Float(value).into()), text.as_bytes());
    }
    assert_eq!(written::<Json>(&Is::Double(f64::NAN).into()), b"\"NaN\"");
    let zeros = format!("0.{}1", "0".repeat(399));
    assert_eq!(written::<Json>(&decimal("1E-400")), zeros.as_bytes());
    assert!(decimal("1E+12000").write::<Json>(&mut Vec::new(), 0).is_err());
}

proptest! {
    #[test]
    fn any_bytes(payload: Vec<u8>, json in "[\\[\\]{}\",:0-9eE.+\\\\untrf -]{0,40}") {
        let _ = Json::read(&payload);
        let _ = Json::read(json.as_bytes());
    }

    #[test]
    fn texts_and_numbers(text: String, int: i64, double in any::<u64>().prop_map(f64::from_bits), float: f32) {
        texts_and_numbers_come_back::<Json>(text, int)?;
        if let Is::Number(text) = Json::read(&written::<Json>(&Is::Double(double).into())).unwrap().is {
            prop_assert_eq!(text.parse(), Ok(double));
        }
        if let Is::Number(text) = Json::read(&written::<Json>(&Is::Float(float).into())).unwrap().is {
            prop_assert_eq!(text.parse(), Ok(float));
        }
    }
}

proptest! {
    /// Also beyond the eight bytes that are looked at at once.
    #[test]
    fn each_text_and_number_comes_back(text in "[a-zß€🚀\"\\\\\n\u{1}]{0,40}", number: i64, short in -20_i64..20) {
        let mut out = Vec::new();
        Json::text(&mut out, &text);
        prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text.as_str());
        prop_assert!(!out.iter().any(|byte| *byte < b' ' || *byte >= 0xf0));
        prop_assert_eq!(Json::read(&out).unwrap().is, Is::Text(text.into()));
        for number in [number, short] {
            let payload = number.to_string();
            prop_assert_eq!(Json::read(payload.as_bytes()).unwrap().is, Is::Int(number));
        }
    }
}
