//! The three formats, below what serde is told: against bytes that Redisson 4.7.0 wrote, and whatever bytes.

use proptest::prelude::*;

use super::cbor::Cbor;
use super::format::Format;
use super::json::Json;
use super::msgpack::MsgPack;
use super::node::{Is, Node};
use crate::CodecError;
use crate::java::BigDecimal;

fn payloads(file: &str) -> Vec<(String, Vec<u8>)> {
    let path = format!("{}/tests/vectors/{file}-jackson.tsv", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let rows = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let columns: Vec<_> = line.split('\t').collect();
        let byte = |at| u8::from_str_radix(&columns[3][at..at + 2], 16).unwrap();
        (columns[0].to_owned(), (0..columns[3].len()).step_by(2).map(byte).collect())
    });
    rows.collect()
}

fn written<F: Format>(node: &Node<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    node.write::<F>(&mut out).unwrap();
    out
}

#[track_caller]
fn says_where(error: &CodecError) {
    let error = error.to_string();
    assert!(error.contains("expected ") && error.contains(" at offset "), "{error}");
}

fn check<F: Format>(file: &str) {
    let rows = payloads(file);
    assert!(rows.len() > 200);
    for (name, payload) in rows {
        let node = F::read(&payload).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(written::<F>(&node), payload, "{file} {name}");
        // A value that is cut is none, but for a number of JSON.
        for end in 0..payload.len() {
            match F::read(&payload[..end]) {
                Ok(cut) => assert!(matches!(cut.is, Is::Int(_) | Is::Number(_)), "{name} {end}"),
                Err(error) => says_where(&error),
            }
        }
        for bit in 0..payload.len().min(200) * 8 {
            let mut payload = payload.clone();
            payload[bit / 8] ^= 1 << (bit % 8);
            if let Err(error) = F::read(&payload) {
                says_where(&error);
            }
        }
    }
}

#[test]
fn json_of_redisson() {
    check::<Json>("json");
}

#[test]
fn cbor_of_redisson() {
    check::<Cbor>("cbor");
}

#[test]
fn msgpack_of_redisson() {
    check::<MsgPack>("msgpack");
}

#[track_caller]
fn refused<F: Format>(payload: &[u8], says: &str) {
    let error = F::read(payload).unwrap_err().to_string();
    assert!(error.contains(says), "{error}");
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
    refused::<Cbor>(&b"\x9f".repeat(100_000), "expected at most 127 levels, found more at offset 127");
    refused::<Cbor>(&b"\xbf\x60".repeat(100_000), "expected at most 127 levels, found more at offset 254");
    refused::<Cbor>(&b"\xc4\x82\x00".repeat(100_000), "expected CBOR at offset 6: ");
    refused::<MsgPack>(&b"\x91".repeat(100_000), "expected at most 127 levels, found more at offset 127");
    refused::<MsgPack>(&b"\x81\xa0".repeat(100_000), "expected at most 127 levels, found more at offset 254");
}

#[test]
fn lengths_that_nothing_is_behind() {
    for payload in [
        &b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff\x01"[..],
        b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff\x60\x01",
        b"\x7b\xff\xff\xff\xff\xff\xff\xff\xffa",
        b"\x5b\x00\x00\x00\xff\xff\xff\xff\xffa",
        b"\x7f\x7b\xff\xff\xff\xff\xff\xff\xff\xffa",
    ] {
        refused::<Cbor>(payload, &format!("expected more CBOR at offset {}, found the end", payload.len()));
    }
    for payload in [
        &b"\xdd\xff\xff\xff\xff\x01"[..],
        b"\xdf\xff\xff\xff\xff\xa0\x01",
        b"\xdb\xff\xff\xff\xffa",
        b"\xc6\xff\xff\xff\xffa",
    ] {
        refused::<MsgPack>(payload, "");
    }
    refused::<MsgPack>(b"\xc1", "found an extension or the reserved byte 0xc1");
    refused::<MsgPack>(b"\x81\x01\x01", "expected the name of a property at offset 1");
}

/// As Redisson 4.7.0 writes them; see also the vectors.
#[test]
fn numbers_of_redisson() {
    let decimal = |text: &str| Node::from(Is::Decimal(Box::new(text.parse().unwrap())));
    let big = |text: &str| Node::from(Is::Big(text.parse().unwrap()));
    let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    for (text, json, cbor, msgpack) in [
        ("1E+3", "1000", "c4820301", Some("cd03e8")),
        ("1.30", "1.30", "c482211882", Some("cb3ff4cccccccccccd")),
        ("-0.5", "-0.5", "c4822024", Some("cbbfe0000000000000")),
        ("0", "0", "c4820000", Some("00")),
        ("0.1", "0.1", "c4822001", Some("cb3fb999999999999a")),
        ("2147483647", "2147483647", "c482001a7fffffff", Some("ce7fffffff")),
        ("2147483648", "2147483648", "c482001b0000000080000000", Some("ce80000000")),
        ("-2147483648", "-2147483648", "c482003a7fffffff", Some("d280000000")),
        ("-21474836.49", "-21474836.49", "c482213b0000000080000000", Some("cbc1747ae147d70a3d")),
        // Beyond 64 bits it is a double, if one prints the same digits.
        ("1E+25", "10000000000000000000000000", "c482181901", Some("cb45208b2a2c280291")),
        (
            "-100000000000000000000",
            "-100000000000000000000",
            "c48200c349056bc75e2d63100000",
            Some("cbc415af1d78b58c40"),
        ),
        ("100000000000000000001", "100000000000000000001", "c48200c249056bc75e2d63100001", None),
        ("-12345678901234567890.1", "-12345678901234567890.1", "c48220c34906b14e9f812f366c35", None),
        (
            "123456789012345678901234567890.5",
            "123456789012345678901234567890.5",
            "c48220c24d0f951a9fa3a286c94f0e766c39",
            None,
        ),
    ] {
        let node = decimal(text);
        assert_eq!(String::from_utf8(written::<Json>(&node)).unwrap(), json);
        assert_eq!(hex(written::<Cbor>(&node)), cbor);
        assert_eq!(Cbor::read(&written::<Cbor>(&node)).unwrap().is, node.is);
        let mut out = Vec::new();
        assert_eq!(node.write::<MsgPack>(&mut out).ok().map(|()| hex(out)).as_deref(), msgpack, "{text}");
    }
    for (text, cbor) in [
        ("-1", "c34101"),
        ("-256", "c3420100"),
        ("18446744073709551615", "c24900ffffffffffffffff"),
        ("-18446744073709551617", "c349010000000000000001"),
    ] {
        assert_eq!(hex(written::<Cbor>(&big(text))), cbor);
        assert_eq!(Cbor::read(&written::<Cbor>(&big(text))).unwrap().is, big(text).is);
    }
    assert_eq!(hex(written::<MsgPack>(&big("18446744073709551615"))), "cfffffffffffffffff");
    assert!(big("18446744073709551616").write::<MsgPack>(&mut Vec::new()).is_err());
    for (value, text) in [(1.1f32, "1.1"), (1e-45, "1.4E-45"), (f32::NEG_INFINITY, "\"-Infinity\"")] {
        assert_eq!(written::<Json>(&Is::Float(value).into()), text.as_bytes());
    }
    assert_eq!(written::<Json>(&Is::Double(f64::NAN).into()), b"\"NaN\"");
    let zeros = format!("0.{}1", "0".repeat(399));
    assert_eq!(written::<Json>(&decimal("1E-400")), zeros.as_bytes());
    assert!(decimal("1E+12000").write::<Json>(&mut Vec::new()).is_err());
    let last = Node::from(Is::Decimal(Box::new(BigDecimal::new(5, i32::MIN))));
    assert!(last.write::<MsgPack>(&mut Vec::new()).is_err());
}

/// Jackson cuts long text into pieces, and never a surrogate pair.
#[test]
fn long_text_in_cbor() {
    for (text, pieces) in [
        ("x".repeat(3996), &[3996][..]),
        ("x".repeat(3997), &[3996, 1]),
        ("é".repeat(3996), &[7992]),
        (format!("{}🚀x", "x".repeat(3995)), &[3995, 5]),
        (format!("{}🚀x", "x".repeat(3994)), &[3998, 1]),
        ("x".repeat(7992), &[3996, 3996]),
    ] {
        let payload = written::<Cbor>(&Node::text(text.clone()));
        let mut input = minicbor::Decoder::new(&payload);
        let found: Vec<usize> = input.str_iter().unwrap().map(|piece| piece.unwrap().len()).collect();
        assert_eq!(found, pieces);
        assert_eq!(Cbor::read(&payload).unwrap().is, Is::Text(text.into()));
    }
}

proptest! {
    #[test]
    fn any_bytes(
        payload: Vec<u8>,
        json in "[\\[\\]{}\",:0-9eE.+\\\\untrf -]{0,40}",
    ) {
        let _ = Json::read(&payload);
        let _ = Json::read(json.as_bytes());
        let _ = Cbor::read(&payload);
        let _ = MsgPack::read(&payload);
    }

    #[test]
    fn texts_and_numbers(text: String, int: i64, double in any::<u64>().prop_map(f64::from_bits), float: f32) {
        for is in [Is::Text(text.clone().into()), Is::Int(int)] {
            let node = Node::from(is);
            for back in [
                Json::read(&written::<Json>(&node)).unwrap().is,
                Cbor::read(&written::<Cbor>(&node)).unwrap().is,
                MsgPack::read(&written::<MsgPack>(&node)).unwrap().is,
            ] {
                prop_assert_eq!(&back, &node.is);
            }
        }
        if let Is::Number(text) = Json::read(&written::<Json>(&Is::Double(double).into())).unwrap().is {
            prop_assert_eq!(text.parse(), Ok(double));
        }
        if let Is::Number(text) = Json::read(&written::<Json>(&Is::Float(float).into())).unwrap().is {
            prop_assert_eq!(text.parse(), Ok(float));
        }
    }
}
