//! Any bytes as `MsgPackJackson`: `cargo +nightly fuzz run msgpack_jackson`.
#![no_main]

mod round_trip;

use libfuzzer_sys::fuzz_target;
use redisson_codec::MsgPackJackson;

fuzz_target!(|payload: &[u8]| round_trip::all_types(&MsgPackJackson, payload));
