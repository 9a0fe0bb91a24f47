//! Any bytes as Kryo 5: `cargo +nightly fuzz run kryo`. What decodes has to encode to something that decodes again.
#![no_main]

#[path = "../../compat/zoo.rs"]
mod zoo;

use libfuzzer_sys::fuzz_target;
use redelay::codec::{Codec, Kryo5, kryo::Value};
use serde::{Serialize, de::DeserializeOwned};

fn survives<T: Serialize + DeserializeOwned + 'static>(payload: &[u8]) {
    if let Ok(value) = Codec::<T>::decode(&Kryo5, payload)
        && let Ok(again) = Kryo5.encode(&value)
    {
        let value: T = Kryo5.decode(&again).expect("what was written is read");
        assert_eq!(Kryo5.encode(&value).expect("written before"), again);
    }
}

fuzz_target!(|payload: &[u8]| {
    survives::<Value>(payload);
    survives::<zoo::Order>(payload);
    survives::<zoo::RefundEvent>(payload);
    survives::<zoo::Envelope>(payload);
    survives::<zoo::Ledger>(payload);
    survives::<zoo::Times>(payload);
    survives::<zoo::Nested>(payload);
    survives::<zoo::Boxes>(payload);
    survives::<zoo::Point>(payload);
});
