#![no_main]

mod survives;
#[path = "../../compat/zoo.rs"]
mod zoo;

libfuzzer_sys::fuzz_target!(|payload: &[u8]| survives::survive(&redelay::codec::JsonJackson, payload));
