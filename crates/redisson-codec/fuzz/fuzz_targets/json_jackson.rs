//! Any bytes as `JsonJackson`: `cargo +nightly fuzz run json_jackson`.
#![no_main]

mod round_trip;

use libfuzzer_sys::fuzz_target;
use redisson_codec::JsonJackson;

fuzz_target!(|payload: &[u8]| round_trip::all_types(&JsonJackson, payload));
