//! MessagePack.

use proptest::prelude::*;

use super::*;
use crate::jackson::msgpack::MsgPack;
use crate::java::BigDecimal;

#[test]
fn msgpack_of_redisson() {
    check::<MsgPack>("msgpack");
}

#[test]
fn deep_nesting_is_refused() {
    refused::<MsgPack>(&b"\x91".repeat(100_000), "expected at most 127 levels, found more at offset 127");
    refused::<MsgPack>(&b"\x81\xa0".repeat(100_000), "expected at most 127 levels, found more at offset 254");
}

#[test]
fn lengths_beyond_the_end() {
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

#[test]
fn numbers_of_redisson() {
    for Decimal { text, msgpack, .. } in decimals() {
        let mut out = Vec::new();
        let payload = decimal(text).write::<MsgPack>(&mut out, 0).ok().map(|()| hex(&out));
        assert_eq!(payload.as_deref(), msgpack, "{text}");
    }
    let big = |text: &str| Node::from(Is::Big(text.parse().unwrap()));
    assert_eq!(hex(&written::<MsgPack>(&big("18446744073709551615"))), "cfffffffffffffffff");
    assert!(big("18446744073709551616").write::<MsgPack>(&mut Vec::new(), 0).is_err());
    let last = Node::from(Is::Decimal(Box::new(BigDecimal::new(5, i32::MIN))));
    assert!(last.write::<MsgPack>(&mut Vec::new(), 0).is_err());
}

proptest! {
    #[test]
    fn any_bytes(payload: Vec<u8>) {
        let _ = MsgPack::read(&payload);
    }

    #[test]
    fn texts_and_numbers(text: String, int: i64) {
        texts_and_numbers_come_back::<MsgPack>(text, int)?;
    }
}
