//! CBOR.

use proptest::prelude::*;

use super::*;
use crate::jackson::cbor::Cbor;

#[test]
fn cbor_of_redisson() {
    check::<Cbor>("cbor");
}

#[test]
fn deep_nesting_is_refused() {
    refused::<Cbor>(&b"\x9f".repeat(100_000), "expected at most 127 levels, found more at offset 127");
    refused::<Cbor>(&b"\xbf\x60".repeat(100_000), "expected at most 127 levels, found more at offset 254");
    refused::<Cbor>(&b"\xc4\x82\x00".repeat(100_000), "expected CBOR at offset 6: ");
}

#[test]
fn lengths_beyond_the_end() {
    for payload in [
        &b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff\x01"[..],
        b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff\x60\x01",
        b"\x7b\xff\xff\xff\xff\xff\xff\xff\xffa",
        b"\x5b\x00\x00\x00\xff\xff\xff\xff\xffa",
        b"\x7f\x7b\xff\xff\xff\xff\xff\xff\xff\xffa",
    ] {
        refused::<Cbor>(payload, &format!("expected more CBOR at offset {}, found the end", payload.len()));
    }
}

#[test]
fn numbers_of_redisson() {
    for Decimal { text, cbor, .. } in decimals() {
        let node = decimal(text);
        assert_eq!(hex(&written::<Cbor>(&node)), cbor);
        assert_eq!(Cbor::read(&written::<Cbor>(&node)).unwrap().is, node.is);
    }
    let big = |text: &str| Node::from(Is::Big(text.parse().unwrap()));
    for (text, cbor) in [
        ("-1", "c34101"),
        ("-256", "c3420100"),
        ("18446744073709551615", "c24900ffffffffffffffff"),
        ("-18446744073709551617", "c349010000000000000001"),
    ] {
        assert_eq!(hex(&written::<Cbor>(&big(text))), cbor);
        assert_eq!(Cbor::read(&written::<Cbor>(&big(text))).unwrap().is, big(text).is);
    }
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
    fn any_bytes(payload: Vec<u8>) {
        let _ = Cbor::read(&payload);
    }

    #[test]
    fn texts_and_numbers(text: String, int: i64) {
        texts_and_numbers_come_back::<Cbor>(text, int)?;
    }
}
