//! `MsgPack`: payloads that Jackson wrote, and payloads that are refused.

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
            // Its first property is `@class`, which is skipped like any unknown property.
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
    number(b"\xa6SECRET", "expected `i32` as MessagePack: wrong msgpack marker FixStr(6), before offset 1");
    number(b"\x01SECRET", "expected one MessagePack value: 6 bytes follow it at offset 1");
    number(b"", "it ends at offset 0, within a value");
    number(b"\xd2\x00", "the value at offset 0 announces more than the 1 bytes after its head");
    number(b"\xc1", "the reserved byte 0xc1 at offset 0");
    number(b"\xce\xff\xff\xff\xff", "invalid value: integer, expected i32, before offset 5");
    let strict = |payload: &[u8], says| refused::<Strict>(&MsgPack, payload, says);
    strict(b"\x81\xa1a\xa6SECRET", "unknown variant, expected one of `NEW`, `PAID`");
    strict(b"\x81\xa6of-one\x01", "unknown field `of-one`, expected `a`, before offset 8");
    strict(b"\x81\xa7+SECRET\x01", "unknown field, expected `a`, before offset 9");
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

/// Trusts the announced length.
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
