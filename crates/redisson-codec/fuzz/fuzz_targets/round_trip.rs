//! What the targets of the codecs for Java objects share: every payload is tried as every type.

use redelay_compat_values::tasks::{Job, Payments};
use redelay_compat_values::zoo::{Boxes, Envelope, Ledger, Level, Nested, Order, RefundEvent};
use redisson_codec::Codec;
use redisson_codec::java::Value;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A value that decodes must encode to a payload that decodes to the same value, unless Java could not write
/// it.
pub fn round_trip<T: Serialize + DeserializeOwned + 'static>(codec: &impl Codec<T>, payload: &[u8]) {
    if let Ok(value) = codec.decode(payload)
        && let Ok(encoded) = codec.encode(&value)
    {
        let value = codec.decode(&encoded).expect("this payload was just encoded");
        assert_eq!(codec.encode(&value).expect("this value was encoded before"), encoded);
    }
}

pub fn all_types<C>(codec: &C, payload: &[u8])
where
    C: Codec<Value>
        + Codec<Order>
        + Codec<RefundEvent>
        + Codec<Envelope>
        + Codec<Ledger>
        + Codec<Nested>
        + Codec<Boxes>
        + Codec<Level>
        + Codec<Job>
        + Codec<Payments>,
{
    round_trip::<Value>(codec, payload);
    round_trip::<Order>(codec, payload);
    round_trip::<RefundEvent>(codec, payload);
    round_trip::<Envelope>(codec, payload);
    round_trip::<Ledger>(codec, payload);
    round_trip::<Nested>(codec, payload);
    round_trip::<Boxes>(codec, payload);
    round_trip::<Level>(codec, payload);
    round_trip::<Job>(codec, payload);
    round_trip::<Payments>(codec, payload);
}
