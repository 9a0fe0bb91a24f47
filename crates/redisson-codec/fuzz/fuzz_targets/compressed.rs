#![no_main]

use redelay::codec::{Bytes, Codec, Lz4V2, SnappyV2, ZStd};

/// So that a target of libFuzzer's is not killed for what a caller has allowed.
const LIMIT: usize = 1 << 20;

fn survives(codec: &impl Codec<Vec<u8>>, payload: &[u8]) {
    if let Ok(value) = codec.decode(payload) {
        assert!(value.len() <= LIMIT);
        let again = codec.encode(&value).expect("a compression of anything");
        assert_eq!(codec.decode(&again).expect("what was encoded"), value);
    }
    let inside = payload.to_vec();
    let compressed = codec.encode(&inside).expect("a compression of anything");
    assert_eq!(codec.decode(&compressed).expect("what was encoded"), inside);
}

libfuzzer_sys::fuzz_target!(|payload: &[u8]| {
    survives(&Lz4V2(Bytes).with_limit(LIMIT), payload);
    survives(&SnappyV2(Bytes).with_limit(LIMIT), payload);
    survives(&ZStd(Bytes).with_limit(LIMIT), payload);
});
