//! Any bytes as `CborJackson`: `cargo +nightly fuzz run cbor_jackson`.
#![no_main]

mod round_trip;

use libfuzzer_sys::fuzz_target;
use redisson_codec::CborJackson;

fuzz_target!(|payload: &[u8]| round_trip::all_types(&CborJackson, payload));
