//! What every target of a codec of Java's values does with a payload.

use redelay::codec::Codec;
use redelay::codec::java::Value;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::zoo::{Boxes, Envelope, Ledger, Level, Nested, Order, RefundEvent};

/// What decodes is encoded to something that decodes to the same, unless Java could not write it.
fn survives<T: Serialize + DeserializeOwned + 'static>(codec: &impl Codec<T>, payload: &[u8]) {
    if let Ok(value) = codec.decode(payload)
        && let Ok(again) = codec.encode(&value)
    {
        let value = codec.decode(&again).expect("what was encoded");
        assert_eq!(codec.encode(&value).expect("what was decoded"), again);
    }
}

pub fn survive<C>(codec: &C, payload: &[u8])
where
    C: Codec<Value>
        + Codec<Order>
        + Codec<RefundEvent>
        + Codec<Envelope>
        + Codec<Ledger>
        + Codec<Nested>
        + Codec<Boxes>
        + Codec<Level>,
{
    survives::<Value>(codec, payload);
    survives::<Order>(codec, payload);
    survives::<RefundEvent>(codec, payload);
    survives::<Envelope>(codec, payload);
    survives::<Ledger>(codec, payload);
    survives::<Nested>(codec, payload);
    survives::<Boxes>(codec, payload);
    survives::<Level>(codec, payload);
}
