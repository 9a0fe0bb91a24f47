//! Any bytes as `Kryo5`: `cargo +nightly fuzz run kryo`.
#![no_main]

mod round_trip;

use libfuzzer_sys::fuzz_target;
use redelay_compat_values::zoo::{Point, Times};
use redisson_codec::Kryo5;

fuzz_target!(|payload: &[u8]| {
    round_trip::all_types(&Kryo5, payload);
    round_trip::round_trip::<Times>(&Kryo5, payload);
    round_trip::round_trip::<Point>(&Kryo5, payload);
});
