//! The codecs: compared with bytes that Redisson 4.7.0 wrote, in round trips, and with arbitrary bytes.
//!
//! This file tests texts, bytes and numbers. The other codecs have their own files.

mod classes;
mod compressed;
mod depth;
mod described;
mod errors;
mod hostile;
mod jackson;
mod jackson_hostile;
mod jackson_places;
mod jackson_values;
mod json;
mod kept;
mod kinds;
mod kryo;
mod kryo_hostile;
mod long_messages;
mod mappers;
mod msgpack;
mod objects;
mod own_maps;
mod places;
mod send;
mod serialized;
mod shapes;
mod structured;
mod tagged;
mod wrong_structs;

use std::fmt::Debug;

use bytes::Bytes;
use proptest::prelude::*;
use redelay_compat_values::vectors::{Row, rows};
use redisson_codec::{self as codec, Codec, CodecError};
use serde_json::Value;

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
        // `IntegerCodec` writes the `toString` of any object, so it can write payloads that it cannot read.
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

proptest! {
    /// Up to 15 digits identify one double. Its neighbours print differently.
    #[test]
    fn doubles_of_few_digits(unscaled in -999_999_999_999_999i64..=999_999_999_999_999, decimals in 0i32..10) {
        let number: f64 = format!("{unscaled}e-{decimals}").parse().unwrap();
        for number in [number, number.next_up(), number.next_down(), number as f32 as f64, -0.0] {
            let text = String::from_utf8(codec::Double.encode(&number)?).unwrap();
            prop_assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(number.to_bits()));
            if number == 0.0 || (1e-3..1e7).contains(&number.abs()) {
                prop_assert_eq!(text.len(), format!("{number:?}").len());
                if text.len() <= 15 {
                    prop_assert_eq!(text, format!("{number:?}"));
                }
            } else {
                prop_assert!(text.contains('E'), "{}", text);
            }
        }
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
        // Rust's shortest digits differ from Java's.
        (5e-324, "4.9E-324"),
        (2f64.powi(50) + 0.25, "1.1258999068426242E15"),
        (2f64.powi(19) + 2f64.powi(-11), "524288.0004882812"),
        // At a power of two, the nearest 16 digits belong to another double.
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
