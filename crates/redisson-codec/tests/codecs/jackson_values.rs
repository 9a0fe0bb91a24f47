//! The Jackson codecs with random values, and with damaged payloads of these.

use std::collections::HashMap;

use codec::java::{self, Value};
use codec::{CborJackson, JsonJackson, MsgPackJackson};
use redelay_compat_values::zoo::Order;

use super::*;

pub(super) fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        any::<i16>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        any::<Vec<u8>>().prop_map(Value::Bytes),
        any::<[u8; 16]>().prop_map(|bytes| java::Uuid::from_bytes(bytes).into()),
        any::<i64>().prop_map(|millis| java::Date::from_millis(millis).into()),
        any::<i64>().prop_map(|number| java::BigInteger::from(number).into()),
    ];
    leaf.prop_recursive(4, 32, 4, |value| {
        prop_oneof![
            prop::collection::vec(value.clone(), 0..4).prop_map(Value::list),
            prop::collection::vec((any::<String>(), value), 0..4).prop_map(|entries| {
                // Jackson leaves nulls out.
                Value::map(entries.into_iter().filter(|(_, value)| *value != Value::Null))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn values_round_trip(value in values()) {
        let list = Value::list([value]);
        let back: Value = JsonJackson.decode(&JsonJackson.encode(&list)?)?;
        prop_assert_eq!(&back, &list);
        let back: Value = CborJackson.decode(&CborJackson.encode(&list)?)?;
        prop_assert_eq!(&back, &list);
        let back: Value = MsgPackJackson.decode(&MsgPackJackson.encode(&list)?)?;
        prop_assert_eq!(&back, &list);
    }

    #[test]
    fn any_bytes(payload: Vec<u8>, value in values(), at: prop::sample::Index, byte: u8) {
        macro_rules! decode {
            ($($codec:ident)*) => {$(
                let mut damaged = $codec.encode(&Value::list([value.clone()]))?;
                let place = at.index(damaged.len());
                damaged[place] = byte;
                for payload in [&payload, &damaged] {
                    let read: Result<Value, _> = $codec.decode(payload);
                    // What is read is written.
                    if let Ok(value) = read {
                        let written = $codec.encode(&value)?;
                        let again: Value = $codec.decode(&written)?;
                        prop_assert_eq!($codec.encode(&again)?, written);
                    }
                    let _: Result<Order, _> = $codec.decode(payload);
                    let _: Result<Vec<Value>, _> = $codec.decode(payload);
                    let _: Result<HashMap<String, i64>, _> = $codec.decode(payload);
                }
            )*};
        }
        decode!(JsonJackson CborJackson MsgPackJackson);
    }
}

/// As Redisson 3.50.0 writes it, where 4.7.0 writes the class and a text.
#[test]
fn a_uuid_of_redisson_3_in_cbor() {
    let bytes = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2];
    let uuid = java::Uuid::from_bytes(bytes);
    let payload = [&b"\x50"[..], &bytes].concat();
    assert_eq!(Codec::<java::Uuid>::decode(&CborJackson, &payload).unwrap(), uuid);
    let payload = [&b"\xbf\x66@class\x6ecom.acme.Clock\x64uuid"[..], &payload, b"\xff"].concat();
    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    #[serde(rename = "com.acme.Clock")]
    struct Clock {
        uuid: Option<java::Uuid>,
    }
    assert_eq!(Codec::<Clock>::decode(&CborJackson, &payload).unwrap(), Clock { uuid: Some(uuid) });
    // A `Value` is written again as it was.
    let value: Value = CborJackson.decode(&payload).unwrap();
    assert_eq!(CborJackson.encode(&value).unwrap(), payload);
    let why = error(Codec::<java::Uuid>::decode(&CborJackson, b"\x42\x01\x02"));
    assert!(why.ends_with("expected a java.util.UUID, found bytes at offset 0"), "{why}");
}
