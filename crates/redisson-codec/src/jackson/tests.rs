//! The formats below serde: against bytes that Redisson 4.7.0 wrote, and against any bytes.

#[cfg(feature = "cbor-jackson")]
mod cbor;
#[cfg(feature = "json-jackson")]
mod json;
#[cfg(feature = "msgpack-jackson")]
mod msgpack;

use proptest::prelude::*;

use super::format::Format;
use super::node::{Is, Node};
use crate::CodecError;

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
    node.write::<F>(&mut out, 0).unwrap();
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

#[track_caller]
fn refused<F: Format>(payload: &[u8], says: &str) {
    let error = F::read(payload).unwrap_err().to_string();
    assert!(error.contains(says), "{error}");
}

fn decimal(text: &str) -> Node<'static> {
    Is::Decimal(Box::new(text.parse().unwrap())).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn texts_and_numbers_come_back<F: Format>(text: String, int: i64) -> Result<(), TestCaseError> {
    for is in [Is::Text(text.into()), Is::Int(int)] {
        let node = Node::from(is);
        let payload = written::<F>(&node);
        prop_assert_eq!(&F::read(&payload).unwrap().is, &node.is);
    }
    Ok(())
}

/// How Redisson 4.7.0 writes a `BigDecimal`; see also the vectors.
struct Decimal {
    text: &'static str,
    #[cfg_attr(not(feature = "json-jackson"), expect(dead_code))]
    json: &'static str,
    #[cfg_attr(not(feature = "cbor-jackson"), expect(dead_code))]
    cbor: &'static str,
    /// `None` where MessagePack cannot hold it.
    #[cfg_attr(not(feature = "msgpack-jackson"), expect(dead_code))]
    msgpack: Option<&'static str>,
}

fn decimals() -> impl Iterator<Item = Decimal> {
    [
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
    ]
    .into_iter()
    .map(|(text, json, cbor, msgpack)| Decimal { text, json, cbor, msgpack })
}
