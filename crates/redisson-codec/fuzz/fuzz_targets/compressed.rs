//! Any bytes as a compressed payload: `cargo +nightly fuzz run compressed`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use redisson_codec::{Bytes, Codec, Lz4V2, SnappyV2, ZStd};

/// Small, so that libFuzzer's own memory limit is not reached.
const LIMIT: usize = 1 << 20;

fn round_trip(codec: &impl Codec<Vec<u8>>, payload: &[u8]) {
    if let Ok(value) = codec.decode(payload) {
        assert!(value.len() <= LIMIT);
        let encoded = codec.encode(&value).expect("any bytes can be compressed");
        assert_eq!(codec.decode(&encoded).expect("this payload was just encoded"), value);
    }
    let value = payload.to_vec();
    let encoded = codec.encode(&value).expect("any bytes can be compressed");
    assert_eq!(codec.decode(&encoded).expect("this payload was just encoded"), value);
}

fuzz_target!(|payload: &[u8]| {
    round_trip(&Lz4V2(Bytes).with_limit(LIMIT), payload);
    round_trip(&SnappyV2(Bytes).with_limit(LIMIT), payload);
    round_trip(&ZStd(Bytes).with_limit(LIMIT), payload);
});
